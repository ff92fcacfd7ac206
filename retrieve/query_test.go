package retrieve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt/store"
)

// asked writes the groups of a query: alternatives with |, weights over one with *, groups that are extra in ().
func asked(q *query) string {
	var list []string
	for _, g := range q.groups {
		text := strings.NewReplacer("\x01", "=", "\x02", "d:", "\x03", "t:").Replace(strings.Join(g.terms, "|"))
		if g.weight > 1 {
			text += fmt.Sprintf("*%v", g.weight)
		}
		if g.extra {
			text = "(" + text + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"%":                           "",
		"What did the runners eat?":   "runner|=runners eat",
		"the who":                     "the who",
		"tea and tea":                 "tea*2",
		"café":                        "cafe|=café",
		"猫":                           "猫",
		"我叫什么？":                       "我叫 叫什 什么",
		"Bart在学校":                     "bart 在学 学校",
		"학교에서":                        "학교 교에 에서 (학교에서)",
		"집":                           "집",
		"gen-itgc":                    "(gen-itgc) gen itgc",
		"1,000 kg":                    "1000 kg",
		"v1":                          "v1|v|1",
		"on 8 May 2023":               "d:2023-05-08|t:2023-05-08",
		"2023年5月8日":                   "d:2023-05-08|t:2023-05-08",
		"2023/05/08":                  "d:2023-05-08|t:2023-05-08",
		"May 2023":                    "d:2023-05|t:2023-05",
		"5月8日":                        "d:05-08|t:05-08",
		"last May":                    "last mai|=may|d:m05|t:m05",
		"may I go":                    "go",
		"in June":                     "june|d:m06|t:m06",
		"on Monday":                   "mondai|=monday|t:w1",
		"星期天":                         "星期 期天 (t:w0)",
		"周三开会":                        "周三 (t:w3) 三开 开会",
		"in 2022":                     "2022|t:2022",
		"2022年":                       "2022|t:2022",
		`foo"bar AND col:x -x`:        "(col:x) foo bar col x*2",
		"\x01forged \x02m05 \x04work": "forg|=forged m05|m|05 work",
	} {
		if d := cmp.Diff(want, asked(new(Analyzer).parse(text))); d != "" {
			t.Errorf("%q: -want +got\n%s", text, d)
		}
	}
}

func TestParsePhrases(t *testing.T) {
	for text, want := range map[string]string{
		`he said "I like Tea." to me`: "i like tea",
		`“über  uns” and «deux mots» and 「三个字」 and 『四』 „x”`: "über uns|deux mots|三个字|四|x",
		"I like tea.":         "i like tea",
		"tea":                 "",
		`"tea"`:               "tea",
		"部署":                  "",
		"腾讯云":                 "腾讯云",
		`open " only`:         `open " only`,
		`""`:                  "",
		"the who":             "the who",
		`"to be" or whatever`: "", // a phrase of stop words in a query with others can't be told apart
	} {
		var got []string
		for _, p := range new(Analyzer).parse(text).phrases {
			got = append(got, p.text)
		}
		if d := cmp.Diff(want, strings.Join(got, "|")); d != "" {
			t.Errorf("%q: -want +got\n%s", text, d)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "w%d ", i)
	}
	for _, text := range []string{b.String(), strings.Repeat("\"a\" ", 1<<18), strings.Repeat("学校", 1<<18), strings.Repeat("x", 1<<20)} {
		q := new(Analyzer).parse(text)
		if len(q.groups) > maxAsked || len(q.phrases) > maxPhrases {
			t.Errorf("%.10q…: %d groups, %d phrases", text, len(q.groups), len(q.phrases))
		}
	}
	df := map[string]int{}
	q := new(Analyzer).parse(b.String())
	for i, g := range q.groups {
		df[g.terms[0]] = len(q.groups) - i
	}
	q.keepRarest(df)
	if len(q.groups) != maxGroups || df[q.groups[0].terms[0]] != maxGroups || df[q.groups[maxGroups-1].terms[0]] != 1 {
		t.Errorf("kept %d groups, from %v to %v", len(q.groups), q.groups[0], q.groups[len(q.groups)-1])
	}
}

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		text, phrase string
		want         bool
	}{
		{"i like tea", "like tea", true}, {"i like teas", "like tea", false}, {"alike tea, like tea", "like tea", true},
		{"steak", "tea", false}, {"a plate x", "ate x", false}, {"用腾讯云部署", "腾讯云", true}, {"bart在学校", "bart", true}, {"", "x", false}, {"éa a", "a", true},
	} {
		if got := holds(c.text, c.phrase); got != c.want {
			t.Errorf("holds(%q, %q) = %v", c.text, c.phrase, got)
		}
	}
}

// Terms of one group, each with documents that the other lacks, in several blocks.
func TestMergerTakesTheBest(t *testing.T) {
	b := &board{score: make([]float32, 6), held: make([]uint16, 6)}
	sc := &scorer{length: make([]uint32, 6)} // tf / tf = 1: a score is its weight
	m := merger{sc: sc, b: b, g: &group{phrase: true}, weight: 2, held: []scored{{0, 5}, {2, 3}, {3, 1}, {5, 7}}}
	m.take([]store.Posting{{Doc: 2, N: 1}, {Doc: 3, N: 1}})
	m.take([]store.Posting{{Doc: 4, N: 1}, {Doc: 99, N: 1}, {Doc: 0, N: 1}})
	m.finish()
	if d := cmp.Diff([]float32{5, 2, 3, 2, 0, 7}, b.score); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if d := cmp.Diff([]uint16{1, 1, 1, 1, 0, 1}, b.held); d != "" {
		t.Errorf("held: -want +got\n%s", d)
	}
}

func TestBoardIsHandedBackClean(t *testing.T) {
	s := new(Searcher)
	b := s.board(3)
	b.score[1], b.held[2] = 1, 1
	s.release(b)
	if b.score[1] != 0 || b.held[2] != 0 {
		t.Errorf("the board still holds %v and %v", b.score, b.held)
	}
}
