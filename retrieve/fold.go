package retrieve

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// fold appends a word of the class without what may be left out in writing: accents of Latin, Greek and Cyrillic,
// vowel points of Arabic and Hebrew. Other alphabets need their marks and stay as they are.
//
// tmp is scratch space; both are returned for reuse.
func fold(dst, tmp, word []byte, cl class) (out, scratch []byte) {
	if cl == classLetter {
		return append(dst, word...), tmp
	}
	parts := norm.NFD.Append(tmp[:0], word...)
	for i := 0; i < len(parts); {
		r, size := utf8.DecodeRune(parts[i:])
		if r < utf8.RuneSelf {
			dst = append(dst, byte(r))
		} else if plain := plainLetter(r); plain != "" {
			dst = append(dst, plain...)
		} else if r != 0x0640 && !unicode.Is(unicode.Mn, r) { // 0640 stretches Arabic words
			dst = append(dst, parts[i:i+size]...)
		}
		i += size
	}
	return dst, parts
}

// plainLetter returns how letters that no normal form takes apart are written without their strokes; "" for others.
func plainLetter(r rune) string {
	switch r {
	case 'ß':
		return "ss"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	case 'ø':
		return "o"
	case 'ł':
		return "l"
	case 'đ', 'ð':
		return "d"
	case 'þ':
		return "th"
	case 'ħ':
		return "h"
	case 'ı':
		return "i"
	case 'ς':
		return "σ"
	}
	return ""
}
