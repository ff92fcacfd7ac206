package ingest

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
)

// detector tells the encoding of bytes by asking of each encoding how likely it makes them: every character has a share
// of the text of its language, and the bytes of a wrong encoding mean rare characters, or none. Scores are logarithms
// of such shares, roughly; they are added up and the highest wins.
type detector struct {
	doubles []*double
	singles []*single
}

// Scores that all encodings share.
const (
	scoreASCII   = -3.0
	scoreInvalid = -25.0
	scoreRare    = -13.0 // an assigned character that hardly any text has
)

// sampleBytes of a window are scored, more would make no difference; of ASCII only what stands near to something else.
const (
	sampleBytes = 16 << 10
	aroundBytes = 4
)

func newDetector() *detector { return &detector{doubles: newDoubles(), singles: newSingles()} }

// of returns the encoding of a window that begins with what is not ASCII, given the bytes before it. At the end of the document, end, nothing may
// be missing from the last character.
func (d *detector) of(before, win []byte, end bool) *charset {
	if looksEscaped(win) {
		return &charset{name: "iso-2022-jp", enc: japanese.ISO2022JP}
	}
	if looksUTF8(win, end) {
		return utf8Set()
	}
	win = sample(slices.Concat(before, win))
	var best *charset
	top := 0.0
	for _, c := range d.doubles {
		if s := c.score(win); best == nil || s > top {
			best, top = &charset{name: c.name, enc: c.enc}, s
		}
	}
	for _, c := range d.singles {
		if s := c.score(win); s > top {
			best, top = &charset{name: c.name, enc: c.enc}, s
		}
	}
	return best
}

// sample takes the parts of a window that tell something: what is not ASCII, with a few bytes around it.
func sample(win []byte) []byte {
	out := make([]byte, 0, sampleBytes+2*aroundBytes)
	done := 0 // bytes of win that are taken or passed over
	for i := 0; i < len(win) && len(out) < sampleBytes; i++ {
		if win[i] < utf8.RuneSelf {
			continue
		}
		if from := i - aroundBytes; from > done {
			out = append(out, ' ')
			done = from
		}
		end := min(len(win), i+1+aroundBytes)
		out = append(out, win[done:max(done, end)]...)
		done = max(done, end)
	}
	return out
}

// looksEscaped tells ISO-2022-JP, which has seven bits and switches its sets by escapes.
func looksEscaped(win []byte) bool {
	for _, esc := range []string{"\x1b$B", "\x1b$@", "\x1b(J", "\x1b(I", "\x1b$(D"} {
		if bytes.HasPrefix(win, []byte(esc)) {
			return true
		}
	}
	return false
}

// looksUTF8 allows one broken character in ten, which other encodings don't reach by chance.
func looksUTF8(win []byte, end bool) bool {
	if !end {
		win = win[:wholeRunes(win)]
	}
	good, bad := 0, 0
	for i := 0; i < len(win); {
		r, size := utf8.DecodeRune(win[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			bad++
		case size > 1:
			good++
		}
		i += size
	}
	return bad == 0 || good >= 10*bad
}
