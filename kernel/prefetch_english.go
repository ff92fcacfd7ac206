package kernel

import (
	"slices"
	"strings"
)

// Words of English by class, made when first used.
var (
	phaticWords      = lexicon(phaticEnglish)
	leaningWords     = lexicon(leaningEnglish)
	weakLeaningWords = lexicon(weakLeaningEnglish)
	atHandWords      = lexicon(atHandEnglish)
	pleasantWords    = lexicon(pleasantries)
	askingWords      = lexicon(askingEnglish)
	lookingWords     = lexicon(lookingEnglish)
	writingWords     = lexicon(writingEnglish)
	commandWords     = lexicon(commandEnglish)
	objectWords      = lexicon(objectEnglish)
	subjectWords     = lexicon(subjectEnglish)
	assistantWords   = lexicon(`who what what's how are is can could do does you your you're called a an the robot bot ai human real person old hear see
		help me understand speak made which model version functions languages language many able to have`)
	clockWords    = lexicon(`what what's whats is the time date day it today now current year month of week right current hour`)
	calendarWords = lexicon(`monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october
		november december english french german spanish italian chinese japanese korean russian portuguese arabic hindi latin greek turkish dutch i`)
)

// telling are verbs after which a question hides: "tell me about Anna".
const telling = "tell show give list say read check help describe explain teach"

// judgeEnglish judges a sentence by its words.
func judgeEnglish(words []askWord, question bool) verdict {
	words = withoutPleasantries(words)
	words, asked := unwrapEnglish(words)
	if len(words) == 0 {
		return phatic
	}
	if leansEnglish(words) {
		return leans
	}
	if !asked && (question || askingWords()[words[0].low]) {
		return judgeQuestion(words, question)
	}
	if isRequest(words) {
		return judgeRequest(words)
	}
	if !asked && tellsSomething(words) {
		return leans
	}
	return phatic
}

// withoutPleasantries leaves out "my pleasure", "my friend" and the like.
func withoutPleasantries(words []askWord) []askWord {
	var out []askWord
	for i := 0; i < len(words); i++ {
		if words[i].low == "my" && i+1 < len(words) && pleasantWords()[words[i+1].low] {
			i++
			continue
		}
		out = append(out, words[i])
	}
	return out
}

// unwrapEnglish takes off small talk up to a comma, and what a request is wrapped in: "please", "could you". asked says
// that it was wrapped as a question.
func unwrapEnglish(words []askWord) (rest []askWord, asked bool) {
	for i := len(words) - 1; i > 0; i-- {
		if words[i].comma && allIn(words[:i], phaticWords()) {
			words = words[i:]
			break
		}
	}
	for len(words) > 1 {
		first, second := words[0].low, words[1].low
		switch {
		case strings.Contains(" please now just then and ok okey okay hey hi hello so kindly well oh but also alright thanks ", " "+first+" ") &&
			!allIn(words, phaticWords()):
			words = words[1:]
		case (first == "can" || first == "could" || first == "would" || first == "will") && second == "you" && len(words) > 2:
			words, asked = words[2:], true
		default:
			return words, asked
		}
	}
	return words, asked
}

func allIn(words []askWord, set map[string]bool) bool {
	return !slices.ContainsFunc(words, func(w askWord) bool { return !set[w.low] })
}

func anyIn(words []askWord, set map[string]bool) bool {
	return slices.ContainsFunc(words, func(w askWord) bool { return set[w.low] })
}

func hasWord(words []askWord, list string) bool {
	return slices.ContainsFunc(words, func(w askWord) bool { return slices.Contains(strings.Fields(list), w.low) })
}

// leansEnglish reports whether words refer to the past or to what is the user's.
func leansEnglish(words []askWord) bool {
	if anyIn(words, leaningWords()) {
		return true
	}
	for i, w := range words {
		if weakLeaningWords()[w.low] && (i+1 == len(words) || !atHandWords()[words[i+1].low]) {
			return true
		}
	}
	return false
}

// judgeQuestion judges a question: those about the assistant or the clock, and those of small talk, lean on nothing.
func judgeQuestion(words []askWord, marked bool) verdict {
	first, small := words[0].low, allIn(words, phaticWords())
	about := hasWord(words, "i me we us")
	switch {
	case hasWord(words, "you your you're") && !about && allIn(words, assistantWords()), allIn(words, clockWords()) && len(words) > 2:
		return phatic
	case !small:
		if !marked && len(words) < 3 || len(words) == 1 && !words[0].capital {
			return phatic
		}
		return leans
	case first == "what" || first == "what's" || first == "whats":
		if len(words) < 2 || !hasWord(words[1:2], "up sup about new") && !hasWord(words, "going") {
			return leans
		}
	case strings.Contains(" when where why which who whose did was were ", " "+first+" ") && len(words) > 1:
		return leans
	case askingWords()[first] && hasWord(words, "i") && !hasWord(words, "hope see"):
		return leans
	}
	return phatic
}

// isRequest reports whether words have the shape of a command: a verb, and what is done with it.
func isRequest(words []askWord) bool {
	first := words[0].low
	if commandWords()[first] || lookingWords()[first] {
		return true
	}
	return len(words) > 1 && !phaticWords()[first] && !subjectWords()[first] && objectWords()[words[1].low] && !pastEnglish(first)
}

// judgeRequest judges a command: it leans on what is known of the user where it chooses or finds something for him, or
// is meant for a person.
func judgeRequest(words []askWord) verdict {
	first, rest := words[0].low, words[1:]
	switch {
	case hasWord(rest, "i we"):
		return leans
	case lookingWords()[first] && len(rest) > 0:
		return leans
	case strings.Contains(telling, first) && hasWord(rest, "about what when where which who if whether"):
		return leans
	}
	for i := range rest {
		if writingWords()[first] && i+1 < len(rest) && hasWord(rest[i:i+1], "to for") {
			if next := rest[i+1]; next.capital && !calendarWords()[next.low] || hasWord(rest[i+1:i+2], "him her them the") {
				return leans
			}
		}
	}
	return command
}

// tellsSomething reports whether a statement says something about the user, a person or a thing.
func tellsSomething(words []askWord) bool {
	content := 0
	named := false
	for i, w := range words {
		if !phaticWords()[w.low] {
			content++
			named = named || w.capital && i > 0 && !calendarWords()[w.low]
		}
	}
	first := words[0].low
	greets := phaticWords()[first] && !subjectWords()[first]
	switch {
	case content == 0:
		return false
	case greets && !(content > 1 && pastEnglish(first)):
		return named && content > 2 || content > 4
	case named, content > 4:
		return true
	case strings.Contains(" i i'm im we we're he he's she she's they they're his her their ", " "+first+" "):
		return true
	case strings.Contains(" the a an someone somebody nobody there there's ", " "+first+" "):
		return len(words) > 2
	case first == "it" || first == "it's" || first == "this" || first == "that":
		return hasWord(words, "again still")
	case words[0].capital && len(words) > 1 && (askingWords()[words[1].low] || pastEnglish(words[1].low)):
		return true
	}
	return len(words) > 2 && pastEnglish(first)
}

// pastEnglish reports whether a word looks like a verb of what happened or goes on.
func pastEnglish(word string) bool {
	return len(word) > 4 && (strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "ing")) ||
		strings.Contains(" went got bought had ate met saw made took lost found broke slept ran came left paid won sold sent wrote won't forgot ", " "+word+" ")
}
