package token

import (
	"unicode"
	"unicode/utf8"
)

// The encoding o200k_base first splits a text by a regular expression and then encodes each piece by itself, so that the
// count of a text is the sum of the counts of its pieces. This file splits the way that expression does, but without its
// engine, which takes most of the time of a count. The expression's alternatives, in their order:
//
//	word     [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	capital  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	number   \p{N}{1,3}
//	sign     ?[^\s\p{L}\p{N}]+[\r\n/]*
//	space    \s*[\r\n]+|\s+(?!\S)|\s+

// class is a set of the character classes that the expression tells apart.
type class uint8

const (
	upper   class = 1 << iota // may stand in the first part of a word: Lu, Lt, Lm, Lo, M
	lower                     // may stand in the second part of a word: Ll, Lm, Lo, M
	letter                    // L: the above without M
	number                    // N
	space                     // \s
	newline                   // \r and \n
)

func classOf(r rune) class {
	switch {
	case 'a' <= r && r <= 'z':
		return lower | letter
	case 'A' <= r && r <= 'Z':
		return upper | letter
	case '0' <= r && r <= '9':
		return number
	case r == '\r' || r == '\n':
		return space | newline
	case r < utf8.RuneSelf:
		if r == ' ' || '\t' <= r && r <= '\r' {
			return space
		}
		return 0
	case 0x4E00 <= r && r <= 0x9FFF || 0x3041 <= r && r <= 0x3096: // Han and hiragana
		return upper | lower | letter
	}
	return otherClass(r)
}

func otherClass(r rune) class {
	switch {
	case unicode.Is(unicode.Ll, r):
		return lower | letter
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper | letter
	case unicode.In(r, unicode.Lm, unicode.Lo):
		return upper | lower | letter
	case unicode.Is(unicode.M, r):
		return upper | lower
	case unicode.Is(unicode.N, r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return 0
}

// next returns the length of the first piece of s, which is valid and not empty.
func next(s string) int {
	first, size := classAt(s, 0)
	switch {
	case first&number != 0:
		return run(s, 0, number, 3)
	case first&newline == 0:
		if n := word(s, first, size); n > 0 {
			return n
		}
	}
	return signs(s, first)
}

// classAt returns the class and the length of the character at byte i; 0, 0 at the end.
func classAt(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	return classOf(r), size
}

// run returns the end of the run of characters from byte i on that have one of the classes, at most max of them.
func run(s string, i int, of class, max int) int {
	for ; max > 0; max-- {
		c, size := classAt(s, i)
		if c&of == 0 {
			break
		}
		i += size
	}
	return i
}

const unbounded = int(^uint(0) >> 1)

// word tries the alternatives word and capital, each with and without a leading character; 0 means that none fits.
func word(s string, first class, size int) int {
	starts := [2]int{size, 0}
	tries := starts[:]
	if first&(letter|number) != 0 {
		tries = starts[1:]
	}
	for _, start := range tries {
		if end := wordEnd(s, start); end > start {
			return suffix(s, end)
		}
	}
	for _, start := range tries {
		if end := run(s, start, upper, unbounded); end > start {
			return suffix(s, run(s, end, lower, unbounded))
		}
	}
	return 0
}

// wordEnd matches [upper]*[lower]+ from start on and returns its end, or start where it doesn't match. Where nothing
// lower follows the first part, that part gives back characters until its last one of both classes.
func wordEnd(s string, start int) int {
	end, both := start, start
	for {
		c, size := classAt(s, end)
		if c&upper == 0 {
			break
		}
		end += size
		if c&lower != 0 {
			both = end
		}
	}
	if after := run(s, end, lower, unbounded); after > end {
		return after
	}
	return both
}

// suffix returns end, or the end of an English contraction that stands there.
func suffix(s string, end int) int {
	if end+1 >= len(s) || s[end] != '\'' {
		return end
	}
	switch s[end+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return end + 2
	case 'r', 'v':
		if end+2 < len(s) && s[end+2]|0x20 == 'e' {
			return end + 3
		}
	case 'l':
		if end+2 < len(s) && s[end+2]|0x20 == 'l' {
			return end + 3
		}
	}
	return end
}

// signs matches the alternatives sign and space.
func signs(s string, first class) int {
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	end := start
	for end < len(s) {
		c, size := classAt(s, end)
		if c&(space|letter|number) != 0 {
			break
		}
		end += size
	}
	if end > start {
		for end < len(s) && (s[end] == '\r' || s[end] == '\n' || s[end] == '/') {
			end++
		}
		return end
	}
	return spaces(s)
}

// spaces matches white space: up to its last line break, else all but the last character before a word, else all.
func spaces(s string) int {
	end, last, broken := 0, 0, 0
	for {
		c, size := classAt(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += size
		if c&newline != 0 {
			broken = end
		}
	}
	switch {
	case broken > 0:
		return broken
	case end < len(s) && last > 0:
		return last
	}
	return end
}
