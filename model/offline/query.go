package offline

import (
	"slices"
	"strings"

	"memgpt"
)

// term is one thing to look for.
type term struct {
	text   string // as the question writes it
	dense  bool   // a run of characters without spaces
	weight float64
}

// contentTerms returns the words of a text that say what it is about, in order, each once.
func contentTerms(text string) []term {
	var list []term
	toks := tokens(text)
	for i, tok := range toks {
		if tok.dense {
			for _, piece := range strings.Fields(stopRuns.Replace(tok.text)) {
				list = append(list, runTerms(piece)...)
			}
			continue
		}
		if tok.text == "May" && i > 0 && (isNumber(toks[i-1].text) || i+1 < len(toks) && isNumber(toks[i+1].text)) {
			list = append(list, term{tok.text, false, 1})
			continue
		}
		word := strings.Trim(tok.text, "'’-_.:/")
		low := strings.ToLower(strings.ReplaceAll(word, "’", "'"))
		if word == "" || stopWords[low] || len(low) == 1 && low[0] > '9' {
			continue
		}
		word = strings.TrimSuffix(strings.TrimSuffix(word, "'s"), "’s")
		list = append(list, term{word, false, weightOf(word, false)})
	}
	return uniqueTerms(list)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// runTerms splits a run of characters without spaces at the everyday words that it holds.
func runTerms(run string) []term {
	var list []term
	add := func(piece string) {
		if piece != "" && !emptyRuns[piece] {
			list = append(list, term{piece, true, weightOf(piece, true)})
		}
	}
	rs := []rune(run)
	from := 0
	for i := 0; i < len(rs); {
		n := everyday(rs[i:])
		if n == 0 {
			i++
			continue
		}
		add(string(rs[from:i]))
		add(string(rs[i : i+n]))
		i += n
		from = i
	}
	add(string(rs[from:]))
	return list
}

// everyday returns the length of the word of at least two characters in the table of synonyms that a run begins with; 0
// when there is none.
func everyday(rs []rune) int {
	for n := min(len(rs), 4); n >= 2; n-- {
		if len(synonyms[string(rs[:n])]) > 0 {
			return n
		}
	}
	return 0
}

func uniqueTerms(list []term) []term {
	var out []term
	seen := map[string]bool{}
	for _, x := range list {
		if key := root(x.text); !seen[key] {
			seen[key] = true
			out = append(out, x)
		}
	}
	return out
}

// weightOf says how telling a word is by its looks: codes and numbers most, then long words.
func weightOf(word string, dense bool) float64 {
	switch {
	case dense:
		return 0.1 + 0.3*float64(min(memgpt.Runes(word), 4))
	case strings.ContainsAny(word, "0123456789"):
		return 2
	case len(word) >= 7:
		return 1.3
	}
	return 1
}

// join writes terms as a query.
func join(list []term) string {
	var words []string
	for _, x := range list {
		words = append(words, x.text)
	}
	return strings.Join(words, " ")
}

// queries lists the searches for a question in the order in which they are tried: its own words, then other words for
// what the hits lack, then fewer and fewer.
func (t *turn) queries(want []term, hits []hit) []string {
	list := []string{join(want)}
	if len(hits) == 0 {
		if alt := join(otherWords(want, want)); alt != "" {
			list = append(list, alt)
		}
		list = append(list, fewer(want)...)
		return unique(list)
	}
	best := rank(want, hits)
	if lacking := best[0].lacks; len(lacking) > 0 {
		if alt := otherWords(want, lacking); len(alt) > 0 {
			list = append(list, join(alt))
		}
		list = append(list, join(lacking))
	}
	return unique(append(list, fewer(want)...))
}

// maxSynonyms bounds the other words that one word is searched by.
const maxSynonyms = 3

// otherWords replaces the words that were lacking by synonyms, or by their other number; nil when there are none.
func otherWords(want, lacking []term) []term {
	var list []term
	changed := false
	for _, x := range want {
		others := []string(nil)
		if slices.Contains(lacking, x) {
			others = variants(x)
		}
		if len(others) == 0 {
			list = append(list, x)
		}
		for _, w := range others {
			list, changed = append(list, term{w, x.dense, x.weight}), true
		}
	}
	if !changed {
		return nil
	}
	return uniqueTerms(list)
}

func variants(x term) []string {
	var list []string
	for _, w := range synonyms[root(x.text)] {
		if dense([]rune(w)[0]) == x.dense && len(list) < maxSynonyms {
			list = append(list, w)
		}
	}
	if x.dense || len(list) > 0 || strings.ContainsAny(x.text, "0123456789") {
		return list
	}
	if low := strings.ToLower(x.text); strings.HasSuffix(low, "s") {
		return []string{low[:len(low)-1]}
	} else if len(low) > 3 {
		return []string{low + "s"}
	}
	return nil
}

// fewer drops words: the more telling half, then the most telling one.
func fewer(want []term) []string {
	if len(want) < 2 {
		return nil
	}
	sorted := slices.Clone(want)
	slices.SortStableFunc(sorted, func(a, b term) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		}
		return 0
	})
	var list []string
	if half := (len(sorted) + 1) / 2; half > 1 {
		list = append(list, join(sorted[:half]))
	}
	return append(list, sorted[0].text)
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
