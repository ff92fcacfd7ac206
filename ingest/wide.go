package ingest

import (
	"bytes"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// wide returns the encoding of a document written in units of two or four bytes without a mark, nil where it is none.
func wide(head []byte) *charset {
	if utf8.Valid(head[:wholeRunes(head)]) && bytes.IndexByte(head, 0) < 0 || len(head) < 2 {
		return nil
	}
	for _, s := range wideSets() {
		size := 2
		if s.name[4] == '3' {
			size = 4
		}
		if looksWide(units(head, size, s.name[6:] == "be"), size == 4) {
			return s
		}
	}
	return nil
}

// units reads the whole units of s; nil where s does not consist of units and is short enough to be all of a document.
func units(s []byte, size int, big bool) []uint32 {
	if len(s)%size != 0 && len(s) < windowBytes {
		return nil
	}
	var us []uint32
	for ; len(s) >= size; s = s[size:] {
		u := uint32(0)
		for i := range size {
			b := s[i]
			if !big {
				b = s[size-1-i]
			}
			u = u<<8 | uint32(b)
		}
		us = append(us, u)
	}
	return us
}

// looksWide wants nearly all units to be characters, and some of those that stand between words in every script. In text
// of another encoding these come only by a rare chance, since half of each is a control character.
func looksWide(us []uint32, whole bool) bool {
	bad, between, ascii := 0, 0, 0
	for i := 0; i < len(us); i++ {
		r := rune(us[i])
		if us[i] > unicode.MaxRune {
			r = utf8.RuneError
		}
		if !whole && utf16.IsSurrogate(r) && i+1 < len(us) {
			if pair := utf16.DecodeRune(r, rune(us[i+1])); pair != utf8.RuneError {
				r, i = pair, i+1
			}
		}
		switch {
		case r == ' ' || r == '\n' || r == '\u3000' || r == '\u3001' || r == '\u3002' || r == '\uff0c':
			between++
		case r > ' ' && r < 0x7f:
			ascii++
		case r == '\t' || r == '\r' || r == '\f':
		case !unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r) || r == utf8.RuneError:
			bad++
		}
	}
	return bad*100 <= len(us) && (between*200 >= len(us) && between > 0 || ascii*2 > len(us))
}
