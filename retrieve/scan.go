package retrieve

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// token is one run of a text that was brought into normal form.
type token struct {
	start, end uint32
	class      class // classDigit for plain numbers
	ascii      bool
	split      uint32 // where digits and letters meet, if they do so exactly once; else 0
	mixed      bool   // it holds digits and letters
	used       bool   // part of a date: a query looks for the date instead
}

// normalise appends text in normal form to dst: NFKC, lower case, digits of every script as ASCII, without what is
// ignorable. Bytes that aren't UTF-8 become spaces. tmp is scratch space; both are returned for reuse.
func normalise(dst, tmp []byte, text string) (out, scratch []byte) {
	n := 0
	for n < len(text) && text[n] < utf8.RuneSelf {
		n++
	}
	if n == len(text) {
		from := len(dst)
		dst = append(dst, text...)
		for i, c := range dst[from:] {
			dst[from+i] = asciiLower[c&0x7f]
		}
		return dst, tmp
	}
	tmp = narrow(tmp[:0], text)
	if !norm.NFKC.IsNormal(tmp) {
		tmp = norm.NFKC.AppendString(tmp[:0], text)
	}
	for i := 0; i < len(tmp); {
		if c := tmp[i]; c < utf8.RuneSelf {
			dst = append(dst, asciiLower[c])
			i++
			continue
		}
		r, size := utf8.DecodeRune(tmp[i:])
		dst = appendLower(dst, r, tmp[i:i+size])
		i += size
	}
	return dst, tmp
}

// narrow appends text with full-width punctuation, letters and digits as ASCII. NFKC does that too, but slowly, and
// Chinese text of any length holds some of it.
func narrow(dst []byte, text string) []byte {
	for {
		i := strings.IndexByte(text, 0xef) // first byte of U+F000 to U+FFFF
		if i < 0 || i+3 > len(text) {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		if r, _ := utf8.DecodeRuneInString(text[i:]); r >= 0xff01 && r <= 0xff5e {
			dst = append(dst, byte(r-0xff01+'!'))
			i += 2
		} else {
			dst = append(dst, text[i])
		}
		text = text[i+1:]
	}
}

func appendLower(dst []byte, r rune, raw []byte) []byte {
	switch {
	case r >= 0x3040 && r <= 0xd7ff: // no case, no digits but ideographs
		return append(dst, raw...)
	case r == utf8.RuneError:
		return append(dst, ' ')
	case ignorable(r):
		return dst
	case unicode.IsUpper(r), unicode.IsTitle(r):
		return utf8.AppendRune(dst, unicode.ToLower(r))
	case unicode.Is(unicode.Nd, r):
		return append(dst, '0'+byte(digitValue(r)))
	}
	return append(dst, raw...)
}

// digitValue returns the value of a decimal digit: scripts keep theirs in rows of ten, so it is the distance to the
// first of the row.
func digitValue(r rune) int {
	n := 0
	for n < 9 && unicode.Is(unicode.Nd, r-1) {
		r--
		n++
	}
	return n
}

// tokenise appends the tokens of a text in normal form. It may write into the text where it mends contractions.
func tokenise(dst []token, text []byte) []token {
	for i := 0; i < len(text); {
		cl, size := classAt(text, i)
		switch {
		case cl == classSpace:
			i += size
		case cl == classDigit || cl.wordy():
			var t token
			t, i = scanWord(text, i)
			dst = append(dst, t)
		case cl == classHan, cl == classHangul, cl == classThai:
			end := scanRun(text, i+size, cl)
			dst = append(dst, token{start: uint32(i), end: uint32(end), class: cl})
			i = end
		case cl == classEmoji || cl == classFlag:
			end := i + size
			if next, n := classAt(text, end); cl == classFlag && next == classFlag {
				end += n
			}
			dst = append(dst, token{start: uint32(i), end: uint32(end), class: classEmoji})
			i = end
		default:
			i += size
		}
	}
	return dst
}

// classAt returns the class of the character at i and its length; classSpace and 1 at the end.
func classAt(text []byte, i int) (class, int) {
	if i >= len(text) {
		return classSpace, 1
	}
	if c := text[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, size := utf8.DecodeRune(text[i:])
	return classOf(r), size
}

// scanRun returns where a run of characters of one class ends; combining marks belong to it.
func scanRun(text []byte, i int, cl class) int {
	for {
		c, size := classAt(text, i)
		if c != cl && c != classMark {
			return i
		}
		i += size
	}
}

// scanWord scans letters of one class and digits from i on and returns where to go on.
func scanWord(text []byte, i int) (token, int) {
	if end := plainEnd(text, i); end > i {
		return token{start: uint32(i), end: uint32(end), class: classLatin, ascii: true}, end
	}
	t := token{start: uint32(i), class: classDigit, ascii: true}
	last, changes := classSpace, 0
	for {
		c, size := classAt(text, i)
		if c != classMark && c != classDigit && !c.wordy() || c.wordy() && t.class != classDigit && c != t.class {
			break
		}
		if c.wordy() {
			t.class = c
		}
		if c != classMark && last != classSpace && (c == classDigit) != (last == classDigit) {
			changes++
			t.split, t.mixed = uint32(i), true
		}
		if c != classMark {
			last = c
		}
		t.ascii = t.ascii && text[i] < utf8.RuneSelf
		i += size
	}
	if changes != 1 {
		t.split = 0
	}
	t.end = uint32(i)
	if t.class == classLatin && !t.mixed {
		return contraction(text, t)
	}
	return t, i
}

// plainEnd returns where a word of ASCII letters ends that a space, a full stop or a comma follows, else i: the common
// case.
func plainEnd(text []byte, i int) int {
	j := i
	for j < len(text) && text[j] >= 'a' && text[j] <= 'z' {
		j++
	}
	if j == len(text) || text[j] == ' ' || text[j] == '.' || text[j] == ',' {
		return j
	}
	return i
}

// contraction takes the end of an English contraction away: "caroline's" is caroline, "we'll" is we. "n't" stays, as
// in "dont", which a stop word is.
func contraction(text []byte, t token) (token, int) {
	i := int(t.end)
	n := apostrophe(text, i)
	if n == 0 {
		return t, i
	}
	end := i + n
	for end < len(text) && text[end] >= 'a' && text[end] <= 'z' {
		end++
	}
	if c, _ := classAt(text, end); c != classSpace {
		return t, i
	}
	switch string(text[i+n : end]) {
	case "t":
		text[i] = 't'
		t.end++
		for j := i + 1; j < end; j++ {
			text[j] = ' '
		}
	case "s", "d", "m", "ll", "re", "ve":
	default:
		return t, i
	}
	return t, end
}

// apostrophe returns the length of the apostrophe at i, 0 if there is none.
func apostrophe(text []byte, i int) int {
	if i < len(text) && text[i] == '\'' {
		return 1
	}
	if i+3 <= len(text) && (string(text[i:i+3]) == "\u2019" || string(text[i:i+3]) == "\u2018") {
		return 3
	}
	return 0
}
