package tool

import (
	"slices"
	"strings"
	"unicode"

	"memgpt"
)

// Bounds on the work for one excerpt: nobody needs the best of a thousand places.
const (
	maxWords   = 32
	maxMatches = 1000
	maxLooked  = 512 << 10 // bytes of a text
	lead       = 5         // an excerpt begins a fifth of its length before the first match, to show what leads to it
)

// match is a place where a word of the query stands, in characters.
type match struct{ at, word int }

// ExcerptAt returns the number of the character at which an excerpt of size characters shows most of the query's words: the
// first such place, and of that the latest beginning, so that what follows the words is shown rather than what goes before.
// It is 0 where the text holds none of them.
func ExcerptAt(text, query string, size int) int {
	runes := []rune(memgpt.CutText(text, maxLooked))
	for i, r := range runes {
		runes[i] = unicode.ToLower(r)
	}
	found := matches(runes, queryWords(query))
	best, most, end := -1, 0, -1
	for i, m := range found {
		seen, last := map[int]bool{}, m.at
		for _, n := range found[i:] {
			if n.at > m.at+size-size/lead {
				break
			}
			seen[n.word], last = true, n.at
		}
		if len(seen) > most || len(seen) == most && m.at <= end {
			if len(seen) > most {
				end = last
			}
			best, most = m.at, len(seen)
		}
	}
	return max(0, min(best-size/lead, len(runes)-size))
}

// matches finds the words in a lower-case text, in the order of their places.
func matches(text []rune, words [][]rune) []match {
	var found []match
	for i := range text {
		for w, word := range words {
			if text[i] == word[0] && len(text)-i >= len(word) && slices.Equal(text[i:i+len(word)], word) && begins(text, i) {
				found = append(found, match{i, w})
			}
		}
		if len(found) >= maxMatches {
			break
		}
	}
	return found
}

// begins reports whether a word may begin at i: everywhere in scripts without spaces, else where no letter goes before.
func begins(text []rune, i int) bool {
	return i == 0 || !isWord(text[i]) || spaceless(text[i]) || !isWord(text[i-1]) || spaceless(text[i-1])
}

// queryWords splits a query into lower-case words; runs of a script without spaces into pairs. Words of one or two
// letters are left out where there are longer ones: they stand everywhere.
func queryWords(query string) [][]rune {
	var long, short [][]rune
	for _, word := range strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return !isWord(r) }) {
		runes := []rune(word)
		switch {
		case len(long) >= maxWords:
		case spaceless(runes[0]):
			for i := range max(len(runes)-1, 1) {
				long = append(long, runes[i:min(i+2, len(runes))])
			}
		case len(runes) < 3:
			short = append(short, runes)
		default:
			long = append(long, runes)
		}
	}
	if len(long) == 0 {
		return short
	}
	return long[:min(len(long), maxWords)]
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }

func spaceless(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}
