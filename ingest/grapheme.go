package ingest

import (
	"unicode"
	"unicode/utf8"
)

// graphemeBorder reports whether a reader sees a border between characters at byte i of s, which begins a character: the
// rules of Unicode Standard Annex 29 as far as they keep marks, joined emoji, flags and Korean letters together.
func graphemeBorder(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(s[i:])
	prev, _ := utf8.DecodeLastRuneInString(s[:i])
	switch {
	case extends(next), prev == zwj && !unicode.IsSpace(next):
		return false
	case isFlag(prev) && isFlag(next):
		return flagsBefore(s[:i])%2 == 0
	case isConjoining(prev) && isConjoining(next):
		return false
	case prev == '\r' && next == '\n':
		return false
	}
	return true
}

const zwj = '\u200d'

// extends reports whether a character belongs to the one before it.
func extends(r rune) bool {
	return unicode.Is(unicode.M, r) || r == zwj || r == '\u200c' || r == 'ำ' || r == 'ຳ' ||
		r >= 0x1f3fb && r <= 0x1f3ff || // skin tones
		r >= 0xe0020 && r <= 0xe007f || // tags of flags
		r >= 0x1160 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7fb // vowels and ends of Korean syllables
}

func isConjoining(r rune) bool { return r >= 0x1100 && r <= 0x115f || r >= 0xa960 && r <= 0xa97c }

func isFlag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

func flagsBefore(s string) int {
	n := 0
	for {
		r, size := utf8.DecodeLastRuneInString(s)
		if !isFlag(r) {
			return n
		}
		s = s[:len(s)-size]
		n++
	}
}
