package memtool

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// leastLikeness is how like a name must be to one that is known to be taken for a slip of it.
const leastLikeness = 0.4

// Nearest returns the known names that one which isn't known may have been meant to be, at most n, the likest first: those
// that contain it, and those with many of its pairs of characters.
func Nearest(name string, known []string, n int) []string {
	wanted, low := pairs(name), strings.ToLower(strings.TrimSpace(name))
	like := map[string]float64{}
	for _, k := range known {
		s := likeness(pairs(k), wanted)
		if low != "" && strings.Contains(strings.ToLower(k), low) {
			s++
		}
		if s >= leastLikeness {
			like[k] = s
		}
	}
	return slices.SortedFunc(maps.Keys(like), func(a, b string) int {
		return cmp.Or(cmp.Compare(like[b], like[a]), strings.Compare(a, b))
	})[:min(n, len(like))]
}

// closestLine returns the line of value that is most like the first line of text, by the pairs of characters that both
// have.
func closestLine(value, text string) string {
	wanted := pairs(firstLine(text))
	best, score := firstLine(value), 0.0
	for line := range strings.SplitSeq(value, "\n") {
		if s := likeness(pairs(line), wanted); s > score {
			best, score = line, s
		}
	}
	return best
}

// firstLine returns the first line that is not blank.
func firstLine(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			return line
		}
	}
	return text
}

// pairs counts neighbouring characters, without regard to case and white space.
func pairs(s string) map[[2]rune]int {
	m := map[[2]rune]int{}
	last := rune(0)
	for _, r := range s {
		if unicode.IsSpace(r) {
			continue
		}
		r = unicode.ToLower(r)
		m[[2]rune{last, r}]++
		last = r
	}
	return m
}

// likeness is Dice's coefficient: 1 for the same pairs, 0 for none in common.
func likeness(a, b map[[2]rune]int) float64 {
	common, all := 0, 0
	for p, n := range a {
		common += min(n, b[p])
		all += n
	}
	for _, n := range b {
		all += n
	}
	if all == 0 {
		return 0
	}
	return 2 * float64(common) / float64(all)
}
