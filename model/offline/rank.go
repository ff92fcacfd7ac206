package offline

import (
	"cmp"
	"slices"
	"strings"
)

// ranked is a text with what it has of the words that are looked for.
type ranked struct {
	hit   hit
	cover float64 // share of the words' weight, 0 to 1
	score float64 // cover, less for what is seldom an answer
	lacks []term  // words that it does not have
}

// rank orders texts by how well they have the words, best first; the order of the search decides ties. A word that nearly
// all hits have, such as the name of the one who talks, counts little.
func rank(want []term, hits []hit) []ranked {
	bags := make([]bag, len(hits))
	for i, h := range hits {
		bags[i] = bagOf(h.Name + " " + h.Text)
	}
	weights := make([]float64, len(want))
	for i, x := range want {
		weights[i] = x.weight * rarity(x, bags)
	}
	var list []ranked
	for i, h := range hits {
		r := ranked{hit: h}
		var have, all float64
		for j, x := range want {
			part := bags[i].has(x)
			have, all = have+part*weights[j], all+weights[j]
			if part < 0.5 {
				r.lacks = append(r.lacks, x)
			}
		}
		if all > 0 {
			r.cover = have / all
		}
		r.score = r.cover * trust(h)
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	return list
}

func rarity(x term, bags []bag) float64 {
	if len(bags) < 3 {
		return 1
	}
	var n float64
	for _, b := range bags {
		n += b.has(x)
	}
	return 1 - 0.6*n/float64(len(bags))
}

// trust is lower for what is seldom an answer: questions, and what the agent said itself.
func trust(h hit) float64 {
	switch {
	case h.own() && admits(h.Text):
		return 0
	case h.own():
		return 0.5
	case h.Kind == "summary":
		return 0.6
	case h.Role != "" && asksOnly(h.Text):
		return 0.3
	}
	return 1
}

// asksOnly tells whether a text is nothing but questions.
func asksOnly(text string) bool {
	list := sentences(text)
	for _, s := range list {
		if _, rest, ok := strings.Cut(s, ": "); ok && len(s)-len(rest) < 30 {
			s = rest // "Name: What is …?"
		}
		if !isQuestion(s) {
			return false
		}
	}
	return len(list) > 0
}

// bag is a text prepared for comparison.
type bag struct {
	words map[string]bool // roots of words, and of the parts of joined ones
	runs  string          // the rest
}

func bagOf(text string) bag {
	b := bag{words: map[string]bool{}}
	var runs strings.Builder
	for _, tok := range tokens(text) {
		if tok.dense {
			runs.WriteString(tok.text)
			runs.WriteByte(' ')
			continue
		}
		b.words[root(tok.text)] = true
		for _, part := range strings.FieldsFunc(tok.text, func(r rune) bool { return strings.ContainsRune("-_.@:/'’", r) }) {
			b.words[root(part)] = true
		}
	}
	b.runs = runs.String()
	return b
}

// has says how much of a term the text has, 0 to 1: a word or not, a synonym nearly, of a run the share of its pairs.
func (b bag) has(x term) float64 {
	if b.holds(x.text, x.dense) {
		return 1
	}
	for _, w := range synonyms[root(x.text)] {
		if b.holds(w, dense([]rune(w)[0])) {
			return 0.8
		}
	}
	if !x.dense {
		return 0
	}
	rs := []rune(x.text)
	var n float64
	for i := 0; i+1 < len(rs); i++ {
		if strings.Contains(b.runs, string(rs[i:i+2])) {
			n++
		}
	}
	if len(rs) < 3 {
		return 0
	}
	return n / float64(len(rs)-1)
}

func (b bag) holds(w string, run bool) bool {
	if run {
		return strings.Contains(b.runs, w)
	}
	return b.words[root(w)]
}
