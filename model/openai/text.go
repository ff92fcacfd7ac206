package openai

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"memgpt"
)

// unquote decodes a JSON string. Unlike encoding/json it keeps bytes that are not UTF-8, and half surrogate pairs as three
// bytes each (as WTF-8 has them), since servers that stream tokens cut characters in two.
func unquote(raw []byte) []byte {
	raw = bytes.TrimSuffix(bytes.TrimPrefix(raw, []byte(`"`)), []byte(`"`))
	if bytes.IndexByte(raw, '\\') < 0 {
		return bytes.Clone(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 >= len(raw) {
			out = append(out, raw[i])
			continue
		}
		i++
		if raw[i] != 'u' {
			out = append(out, unescape(raw[i]))
			continue
		}
		r, n := hexRune(raw[i:])
		out = appendRune(out, r)
		i += n - 1
	}
	return out
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// hexRune reads "uXXXX", or "uXXXX\uXXXX" where that is one character, and returns its length.
func hexRune(s []byte) (rune, int) {
	r, ok := hex4(s)
	if !ok {
		return utf8.RuneError, 1
	}
	if utf16.IsSurrogate(r) && len(s) > 6 && s[5] == '\\' {
		if low, ok := hex4(s[6:]); ok {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both, 11
			}
		}
	}
	return r, 5
}

func hex4(s []byte) (rune, bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[1:5]), 16, 32)
	return rune(v), err == nil
}

// appendRune is utf8.AppendRune that keeps half surrogate pairs.
func appendRune(b []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(b, r)
}

// joiner puts the pieces of a text together where they are cut inside a character.
type joiner struct{ hold []byte }

// push returns what is whole of the text up to now.
func (j *joiner) push(b []byte) string {
	if len(j.hold) > 0 {
		b = append(j.hold, b...)
		j.hold = nil
	}
	n := len(b) - unfinished(b)
	if n < len(b) {
		j.hold = bytes.Clone(b[n:])
	}
	return clean(b[:n])
}

// flush returns what is left; what never became whole is U+FFFD.
func (j *joiner) flush() string {
	rest := j.hold
	j.hold = nil
	return clean(rest)
}

// unfinished returns how many bytes at the end of b may be the beginning of a character. Half a surrogate pair waits for
// the other half.
func unfinished(b []byte) int {
	k := partial(b)
	n := len(b) - k
	if n >= 3 && highHalf(b[n-3:]) && (k == 0 || b[n] == 0xED) {
		k += 3
	}
	return k
}

// partial returns the length of the beginning of a character, or of half a pair, at the end of b.
func partial(b []byte) int {
	for k := 1; k <= min(3, len(b)); k++ {
		tail := b[len(b)-k:]
		if !utf8.RuneStart(tail[0]) {
			continue
		}
		if tail[0] >= utf8.RuneSelf && !utf8.FullRune(tail) || k == 2 && tail[0] == 0xED && tail[1]&0xE0 == 0xA0 {
			return k
		}
		return 0
	}
	return 0
}

func highHalf(b []byte) bool { return b[0] == 0xED && b[1]&0xF0 == 0xA0 && b[2]&0xC0 == 0x80 }
func lowHalf(b []byte) bool  { return b[0] == 0xED && b[1]&0xF0 == 0xB0 && b[2]&0xC0 == 0x80 }

// clean joins halves of surrogate pairs and returns valid text.
func clean(b []byte) string {
	if !utf8.Valid(b) {
		b = joinHalves(b)
	}
	return memgpt.CleanText(string(b))
}

func joinHalves(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if len(b) >= 6 && highHalf(b) && lowHalf(b[3:]) {
			out = utf8.AppendRune(out, utf16.DecodeRune(half(b), half(b[3:])))
			b = b[6:]
			continue
		}
		out, b = append(out, b[0]), b[1:]
	}
	return out
}

func half(b []byte) rune { return rune(b[0]&0x0F)<<12 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F) }

// thinkMarks are the marks of thinking at the head of a reply's text, where a server does not take it out.
var thinkMarks = [...]struct{ open, close string }{{"<think>", "</think>"}, {"<thought>", "</thought>"}}

// thinker takes the thinking out of the head of a text that comes in pieces.
type thinker struct {
	state thinkState
	hold  string
	close string // the mark of the end that is awaited
}

type thinkState int

const (
	thinkStart thinkState = iota // nothing but white space yet
	thinkInside
	thinkAfter // white space after the end mark is dropped
	thinkOut
)

// push takes a piece and returns what is known to be thinking and what is known to be text.
func (t *thinker) push(s string) (thinking, text string) {
	s = t.hold + s
	t.hold = ""
	if t.state == thinkStart {
		s = t.start(s)
	}
	if t.state == thinkInside {
		thinking, s = t.inside(s)
	}
	if t.state == thinkAfter {
		if s = strings.TrimLeft(s, " \t\r\n"); s != "" {
			t.state = thinkOut
		}
	}
	if t.state == thinkOut {
		text += s
	}
	return thinking, text
}

// start looks for the first mark and returns what is left. A piece that does not decide it is held for the next.
func (t *thinker) start(s string) string {
	head := strings.TrimLeft(s, " \t\r\n")
	for _, mark := range thinkMarks {
		switch {
		case strings.HasPrefix(head, mark.open):
			t.state, t.close = thinkInside, mark.close
			return head[len(mark.open):]
		case strings.HasPrefix(mark.open, head):
			t.hold = s
			return ""
		}
	}
	t.state = thinkOut
	return s
}

// inside returns thinking up to the end mark and what follows it.
func (t *thinker) inside(s string) (thinking, rest string) {
	if before, after, ok := strings.Cut(s, t.close); ok {
		t.state = thinkAfter
		return before, after
	}
	n := len(s)
	for k := min(len(t.close)-1, n); k > 0; k-- {
		if strings.HasSuffix(s, t.close[:k]) {
			n -= k
			break
		}
	}
	t.hold = s[n:]
	return s[:n], ""
}

// flush returns what was held back at the end. White space alone is no text.
func (t *thinker) flush() (thinking, text string) {
	rest := t.hold
	t.hold = ""
	if t.state == thinkInside {
		return rest, ""
	}
	if strings.TrimSpace(rest) == "" {
		return "", ""
	}
	return "", rest
}
