package eval

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// fold is the form in which texts are compared with expected answers: lower case, runs of space as one.
func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// words splits a text into what answers are compared by: runs of letters and digits in lower case, and each Chinese or
// Japanese character for itself, since those have no spaces. Punctuation is left out.
func words(s string) (list []string) {
	from := -1
	lower := strings.ToLower(s)
	end := func(i int) {
		if from >= 0 {
			list = append(list, lower[from:i])
			from = -1
		}
	}
	for i, r := range lower {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end(i)
			list = append(list, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if from < 0 {
				from = i
			}
		default:
			end(i)
		}
	}
	end(len(lower))
	return list
}

// plainWords are words without English articles, as SQuAD's F1 has it.
func plainWords(s string) []string {
	return slices.DeleteFunc(words(s), func(w string) bool { return w == "a" || w == "an" || w == "the" })
}

// containsWords reports whether the words of part stand in text, in order and next to each other.
func containsWords(text, part []string) bool {
	if len(part) == 0 {
		return false
	}
	for i := 0; i+len(part) <= len(text); i++ {
		if slices.Equal(text[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

// f1 is the harmonic mean of precision and recall of the words that two texts share, each as often as both have it.
func f1(answer, expected []string) float64 {
	have := map[string]int{}
	for _, w := range answer {
		have[w]++
	}
	shared := 0
	for _, w := range expected {
		if have[w] > 0 {
			have[w]--
			shared++
		}
	}
	if shared == 0 {
		return 0
	}
	return 2 * float64(shared) / float64(len(answer)+len(expected))
}

// rougeL is the recall of ROUGE-L: the length of the longest common subsequence as a share of the expected words.
func rougeL(answer, expected []string) float64 {
	if len(expected) == 0 {
		return 0
	}
	row := make([]int, len(expected)+1)
	for _, a := range answer {
		before := 0
		for j, e := range expected {
			old := row[j+1]
			if a == e {
				row[j+1] = before + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			before = old
		}
	}
	return float64(row[len(expected)]) / float64(len(expected))
}

// refusals are ways to say that one doesn't know.
var refusals = regexp.MustCompile(`(?i)\bno answer\b|\binsufficient information\b|\b(?:do(?:es)? ?n[o']?t|did ?n[o']?t|can ?n?o?'?t|could ?n[o']?t) ` +
	`(?:\w+ )?(?:know|recall|remember|find|have (?:any |that |this |the |enough )*(?:information|record|memory|memories|details?)|say|tell|answer|determine|mention)\b|` +
	`\bnot sure\b|\bno (?:information|record|mention|memory|idea|details?)\b|\b(?:is|was|were|are) ?n[o']t (?:\w+ )?(?:mentioned|stated|given|specified|known|available)\b|\bunknown\b|` +
	`没有?找到|找不到|不知道|不清楚|不记得|没有?(?:提到|提及|说过|相关|记录)|无法(?:回答|确定)|未(?:提到|提及|找到)`)

var (
	turnsBack = regexp.MustCompile(`(?i)\bbut\b|\bhowever\b|\bthough\b|但是?|不过|然而`)
	clauseEnd = regexp.MustCompile(`[.!?。！？\n]+`)
	offers    = regexp.MustCompile(`(?i)\b(?:sorry|apolog\w+|let me know|could you|would you|can you|please|if you|happy to|i can help)\b|抱歉|对不起|请|如果`)
)

// leastStatement is how many words make a statement beside a refusal, so that the answer is no refusal as a whole.
const leastStatement = 4

// abstains reports whether an answer says that the agent doesn't know, and nothing else but courtesies. No answer is one too.
func abstains(answer string) bool {
	if strings.TrimSpace(answer) == "" {
		return true
	}
	if !refusals.MatchString(strings.ReplaceAll(answer, "’", "'")) {
		return false
	}
	rest := 0
	ends := clauseEnd.Split(strings.ReplaceAll(answer, "’", "'"), -1)
	for _, s := range ends {
		if loc := refusals.FindStringIndex(s); loc != nil {
			turn := turnsBack.FindStringIndex(s[loc[1]:])
			if turn == nil {
				continue
			}
			s = s[loc[1]+turn[1]:]
		}
		if !offers.MatchString(s) && !refusals.MatchString(s) {
			rest += len(words(s))
		}
	}
	return rest < leastStatement
}

// leastUse is the share of a text's telling words that an answer must have to count as using it.
const leastUse = 0.5

// uses reports whether an answer holds what a piece of evidence says: the expected answer, or half of its words.
func uses(answer, expected, text string) bool {
	said := plainWords(answer)
	if containsWords(said, plainWords(expected)) {
		return true
	}
	have := map[string]bool{}
	for _, w := range said {
		have[w] = true
	}
	of, n := 0, 0
	for _, w := range plainWords(text) {
		if len(w) < 3 {
			continue // too short to tell anything; a Chinese character has three bytes
		}
		of++
		if have[w] {
			n++
		}
	}
	return of > 0 && float64(n) >= leastUse*float64(of)
}

// verdicts takes the measures that need no model. scored says that the suite has a verdict of its own.
func verdicts(r *Record, scored, allShown bool) (v Verdicts) {
	v.Abstained = r.Failure == "" && abstains(r.Answer)
	if r.Abstain {
		right := v.Abstained
		v.Right = &right
		return v
	}
	if strings.TrimSpace(r.Expected) == "" {
		return v
	}
	said, expected := plainWords(r.Answer), plainWords(r.Expected)
	contains := containsWords(said, expected)
	share, recall := places4(f1(said, expected)), places4(rougeL(words(r.Answer), words(r.Expected)))
	v.Contains, v.F1, v.RougeL = &contains, &share, &recall
	if scored {
		right := allShown && strings.Contains(fold(r.Answer), fold(r.Expected))
		v.Right = &right
	}
	return v
}

func places4(f float64) float64 { return math.Round(f*1e4) / 1e4 }
