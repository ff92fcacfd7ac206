package memtool

import (
	"strings"
	"unicode"
)

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
