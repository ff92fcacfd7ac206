package schema

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxKey bounds how far the reader looks ahead for the name of a field, so that
// guessing stays linear in the length of the text.
const maxKey = 100

// quotes are the marks that open a string, each with the mark that closes it.
// Triple quotes come before single ones.
func quotes(s string) (open, end string) {
	pairs := [...][2]string{
		{`"""`, `"""`}, {"'''", "'''"}, {`"`, `"`}, {"'", "'"}, {"“", "”"}, {"”", "”"},
		{"‘", "’"}, {"’", "’"}, {"＂", "＂"}, {"`", "`"},
	}
	for _, q := range pairs {
		if strings.HasPrefix(s, q[0]) {
			return q[0], q[1]
		}
	}
	return "", ""
}

// quoted reports whether a string comes next.
func (p *reader) quoted() bool {
	if p.strict {
		return p.peek() == '"'
	}
	open, _ := quotes(p.s[p.i:])
	return open != ""
}

// marks skips the opening mark and returns it with the closing one. An empty
// string is not taken for the first two thirds of a triple quote.
func (p *reader) marks() (open, end string) {
	if p.strict {
		p.i++
		return `"`, `"`
	}
	open, end = quotes(p.s[p.i:])
	p.i += len(open)
	return open, end
}

// text reads a string. A key ends at its first closing mark; in a value a mark
// has to look as if it closed something, since models forget to escape.
func (p *reader) text(key bool) string {
	open, end := p.marks()
	path := !p.strict && isDrive(p.s[p.i:])
	var b strings.Builder
	for !p.done() {
		switch c := p.s[p.i]; {
		case c == '\\' && path && !p.ends(end, p.i+1):
			b.WriteByte(c)
			p.i++
		case c == '\\':
			p.escape(&b, open, key)
		case strings.HasPrefix(p.s[p.i:], end) && (key || p.plain || len(end) == 3 || p.closes(p.i+len(end))):
			p.i += len(end)
			return clean(b.String())
		default:
			b.WriteByte(c)
			p.i++
		}
	}
	p.cut = true
	return clean(b.String())
}

func (p *reader) ends(end string, i int) bool { return strings.HasPrefix(p.s[i:], end) }

// isDrive reports whether s starts as a Windows path whose backslashes were not
// doubled. In broken JSON C:\new means no line break.
func isDrive(s string) bool {
	return len(s) > 3 && isWord(s[0]) && s[0] < 0x80 && s[1] == ':' && s[2] == '\\' && isWord(s[3])
}

// escape reads a backslash and what it stands for. A backslash that starts no
// escape is text, as in "C:\path"; in a name it is dropped, as in "send\_message".
func (p *reader) escape(b *strings.Builder, open string, key bool) {
	p.i++
	if p.done() {
		p.cut = true
		return
	}
	c := p.s[p.i]
	p.i++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		b.WriteByte("\"\\/\b\f\n\r\t"[i])
		return
	}
	switch {
	case c == 'u':
		p.unicode(b)
	case c == 'x' && open == "'" && p.hex(2) >= 0: // Python's repr
		b.WriteRune(rune(p.hex(2)))
		p.i += 2
	case strings.HasPrefix(open, string(c)) || c == '\'':
		b.WriteByte(c)
	default:
		if !key {
			b.WriteByte('\\')
		}
		p.i--
		_, n := utf8.DecodeRuneInString(p.s[p.i:])
		b.WriteString(p.s[p.i : p.i+n])
		p.i += n
	}
}

// unicode reads what follows \u, with the second half of a surrogate pair. A
// half without its other half becomes U+FFFD.
func (p *reader) unicode(b *strings.Builder) {
	n := p.hex(4)
	if n < 0 {
		b.WriteString(`\u`)
		return
	}
	p.i += 4
	r := rune(n)
	if utf16.IsSurrogate(r) {
		r = p.low(r)
	}
	b.WriteRune(r)
}

func (p *reader) low(high rune) rune {
	if !strings.HasPrefix(p.s[p.i:], `\u`) {
		return utf8.RuneError
	}
	p.i += 2
	r := utf16.DecodeRune(high, rune(p.hex(4)))
	if r == utf8.RuneError {
		p.i -= 2 // not the other half: it stands for itself
		return r
	}
	p.i += 4
	return r
}

// hex returns the number in the next n hexadecimal digits, or -1.
func (p *reader) hex(n int) int {
	if p.i+n > len(p.s) {
		return -1
	}
	u, err := strconv.ParseUint(p.s[p.i:p.i+n], 16, 32)
	if err != nil || p.s[p.i] == '+' {
		return -1
	}
	return int(u)
}

// closes reports whether a quote before j ends its string, judged by what
// comes after it.
func (p *reader) closes(j int) bool {
	j = skipBlank(p.s, j)
	if j == len(p.s) || len(p.stack) == 0 {
		return true
	}
	switch c := p.s[j]; {
	case c == ',':
		return p.another(skipBlank(p.s, j+1))
	case strings.HasPrefix(p.s[j:], "，"):
		return p.another(skipBlank(p.s, j+len("，")))
	case c == '}' || c == ']' || c == ')':
		return p.closesAll(j)
	default: // a missing comma
		open, _ := quotes(p.s[j:])
		return open != "" && p.another(j)
	}
}

// another reports whether an element of what is open starts at j.
func (p *reader) another(j int) bool {
	if j >= len(p.s) {
		return true
	}
	top := p.stack[len(p.stack)-1]
	if p.s[j] == closer(top) {
		return true
	}
	switch top {
	case '{':
		return nameAt(p.s, j, ":：")
	case '(':
		return nameAt(p.s, j, "=")
	default:
		open, _ := quotes(p.s[j:])
		return open != "" || strings.IndexByte("{[-0123456789tfnTFN", p.s[j]) >= 0
	}
}

// nameAt reports whether a name starts at j with one of the separators behind
// it, or the text ends inside the name.
func nameAt(s string, j int, separators string) bool {
	open, end := quotes(s[j:])
	j += len(open)
	limit := min(len(s), j+maxKey)
	for k := j; k < limit; k++ {
		switch {
		case open == "" && !isWord(s[k]), open != "" && strings.HasPrefix(s[k:], end):
			k = skipBlank(s, k+len(end))
			r, _ := utf8.DecodeRuneInString(s[k:])
			return k == len(s) || k > j && strings.ContainsRune(separators, r)
		case s[k] == '\n':
			return false
		}
	}
	return limit == len(s)
}

// closesAll reports whether the brackets from j on close what is open, the
// innermost first, up to something that may follow.
func (p *reader) closesAll(j int) bool {
	closed := 0
	for k := len(p.stack) - 1; k >= 0; k-- {
		before := j
		j = skipBlank(p.s, j)
		switch {
		case j == len(p.s):
			return true
		case p.s[j] == closer(p.stack[k]):
			closed++
			j++
		case closed == 0 && p.stack[k] == '[' && p.s[j] == '}': // "]" was left out
		case closed > 0 && p.s[j] == ',':
			return true
		default: // text after too few brackets: on a line of its own it is prose
			return closed > 0 && !p.whole && strings.Contains(p.s[before:j], "\n")
		}
	}
	return !p.whole || skipBlank(p.s, j) == len(p.s)
}
