package memtool

import (
	"strconv"
	"strings"

	"memgpt"
)

// thousands writes a number with commas: 1,900.
func thousands(n int) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// quote writes a text as one JSON string, so that it stays on its line and its end is seen.
func quote(s string) string {
	text, err := marshal(s)
	if err != nil { // no string fails
		return strconv.Quote(s)
	}
	return string(text)
}

// shorten cuts a text to max characters and marks the cut.
func shorten(s string, max int) string {
	if memgpt.Runes(s) <= max {
		return s
	}
	return substring(s, 0, max) + "…"
}

// substring returns the characters from and up to those numbers.
func substring(s string, from, to int) string {
	start, n := len(s), 0
	for i := range s {
		if n == from {
			start = i
		}
		if n == to {
			return s[start:i]
		}
		n++
	}
	return s[start:]
}

// clean returns the texts without blanks around them, without empty ones and without repetitions.
func clean(list []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
