package schema

import (
	"errors"
	"fmt"
	"strings"
)

// maxDepth bounds the nesting of arguments and schemas. No function has use for
// more, and the walkers recurse.
const maxDepth = 100

var errDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

// reader reads JSON as models write it. Besides JSON it takes what Python and
// JavaScript write, comments, missing and superfluous commas, missing closing
// brackets, raw control characters in strings and, unless plain is set, quotes
// that someone forgot to escape.
//
// The end of the text is not an error: what was open there is closed, and cut
// or missing tells in what state it was.
type reader struct {
	s string
	i int

	strict bool // s is known to be valid JSON: no guessing
	plain  bool // the next unescaped quote always ends a string
	whole  bool // nothing but blanks may follow the outermost value

	cut     bool   // the text ended inside a string, a word, or where more had to come
	missing bool   // a closing bracket was left out
	ended   bool   // the text ended inside of what is being read
	stack   []byte // the brackets that are open
}

func (p *reader) done() bool { return p.i >= len(p.s) }

// peek returns the next byte, or 0 at the end.
func (p *reader) peek() byte {
	if p.done() {
		return 0
	}
	return p.s[p.i]
}

// take skips the first of these tokens that comes next.
func (p *reader) take(tokens ...string) bool {
	for _, t := range tokens {
		if strings.HasPrefix(p.s[p.i:], t) {
			p.i += len(t)
			return true
		}
	}
	return false
}

func (p *reader) fail(wanted string) error {
	near := p.s[p.i:]
	if len(near) > 24 {
		near = near[:24]
	}
	return fmt.Errorf("expected %s at byte %d, near %q", wanted, p.i, clean(near))
}

// blank skips space and, outside of strict JSON, comments.
func (p *reader) blank() {
	for {
		p.i = skipBlank(p.s, p.i)
		switch {
		case p.strict || p.done():
			return
		case p.take("//"), p.s[p.i] == '#':
			p.skipTo("\n")
		case p.take("/*"):
			p.skipTo("*/")
		default:
			return
		}
	}
}

func (p *reader) skipTo(end string) {
	n := strings.Index(p.s[p.i:], end)
	if n < 0 {
		p.i = len(p.s)
		return
	}
	p.i += n + len(end)
}

func skipBlank(s string, i int) int {
	for i < len(s) {
		switch {
		case s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r':
			i++
		case strings.HasPrefix(s[i:], "\u00a0"):
			i += len("\u00a0")
		case strings.HasPrefix(s[i:], "\ufeff"), strings.HasPrefix(s[i:], "\u3000"):
			i += len("\ufeff")
		default:
			return i
		}
	}
	return i
}

func (p *reader) open(bracket byte) error {
	if len(p.stack) >= maxDepth {
		return errDeep
	}
	p.stack = append(p.stack, bracket)
	p.i++
	return nil
}

func (p *reader) shut() { p.stack = p.stack[:len(p.stack)-1] }

// value reads one value of any kind.
func (p *reader) value() (value, error) {
	p.blank()
	start := p.i
	var v value
	var err error
	switch c := p.peek(); {
	case p.done():
		p.cut = true
		return value{}, nil
	case c == '{':
		v, err = p.object()
	case c == '[':
		v, err = p.array()
	case p.quoted():
		return textOf(p.text(false)), nil
	default:
		return p.word()
	}
	v.raw, v.open = p.s[start:p.i], p.ended
	return v, err
}

func (p *reader) object() (value, error) {
	v := value{kind: object}
	if err := p.open('{'); err != nil {
		return v, err
	}
	defer p.shut()
	for {
		switch more, err := p.more('}'); {
		case err != nil:
			return v, err
		case !more:
			v.fields = settle(v.fields)
			return v, nil
		}
		f, err := p.field(":", "：", "=>", "=")
		if err != nil {
			return v, err
		}
		if f.name != "" || !p.cut {
			v.fields = append(v.fields, f)
		}
	}
}

func (p *reader) array() (value, error) {
	v := value{kind: array}
	if err := p.open('['); err != nil {
		return v, err
	}
	defer p.shut()
	for {
		switch more, err := p.more(']'); {
		case err != nil || !more:
			return v, err
		}
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
	}
}

// more reports whether another element comes before the closing bracket, and
// skips what separates the elements or closes them.
func (p *reader) more(closing byte) (bool, error) {
	expecting := p.s[p.i-1] == p.stack[len(p.stack)-1]
	for {
		p.blank()
		switch c := p.peek(); {
		case p.done():
			p.cut = p.cut || expecting
			p.missing, p.ended = true, true
			return false, nil
		case c == closing:
			p.i++
			return false, nil
		case p.take(",", "，", ";"):
			expecting = true
		case c == '}' || c == ']' || c == ')':
			return false, p.stray(c)
		default:
			return true, nil
		}
	}
}

// stray handles a bracket that closes something further out: what is open
// inside ends with it.
func (p *reader) stray(c byte) error {
	for _, open := range p.stack {
		if closer(open) == c {
			p.missing = true
			return nil
		}
	}
	return p.fail("an element")
}

func closer(open byte) byte {
	switch open {
	case '{':
		return '}'
	case '[':
		return ']'
	default:
		return ')'
	}
}

// field reads a name, one of the separators, and a value.
func (p *reader) field(separators ...string) (field, error) {
	var f field
	switch {
	case p.quoted():
		f.name = p.text(true)
	default:
		f.name = p.ident()
	}
	if f.name == "" && !p.strict && p.s[p.i-1] != '"' && !p.done() {
		return f, p.fail("the name of an argument in double quotes")
	}
	p.blank()
	if p.done() {
		p.cut = true
		return f, nil
	}
	if !p.take(separators...) {
		return f, p.fail(fmt.Sprintf("%q after the name %q", separators[0], f.name))
	}
	var err error
	f.value, err = p.value()
	return f, err
}

// ident reads a name without quotes.
func (p *reader) ident() string {
	start := p.i
	for !p.done() && (isWord(p.s[p.i]) || strings.IndexByte("-.$\\", p.s[p.i]) >= 0) {
		p.i++
	}
	return clean(strings.ReplaceAll(p.s[start:p.i], `\`, ""))
}

// isWord reports whether c belongs to a name; all that is not ASCII does, but
// separators of full width are taken before.
func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// word reads what is not in quotes: a number, true, None, or a text whose
// quotes were forgotten.
func (p *reader) word() (value, error) {
	start := p.i
	for !p.done() && !p.endsWord() {
		p.i++
	}
	w := strings.TrimSpace(p.s[start:p.i])
	if w == "" && start == p.i && strings.IndexByte(",}])", p.peek()) < 0 {
		return value{}, p.fail("a value")
	}
	v, known := constant(w)
	if p.done() && !known && len(p.stack) > 0 {
		p.cut = true
	}
	return v, nil
}

func (p *reader) endsWord() bool {
	switch c := p.s[p.i]; c {
	case ',', '}', ']', '\n', '\r':
		return true
	case ')':
		return len(p.stack) > 0 && p.stack[len(p.stack)-1] == '('
	case '/', '#':
		rest := p.s[p.i:]
		return p.i > 0 && p.s[p.i-1] == ' ' && (c == '#' || strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*"))
	case '"':
		return true
	default:
		return false
	}
}

// constant reads a word of JSON, Python or JavaScript; known is false for a
// text that lacks its quotes.
func constant(w string) (v value, known bool) {
	switch w {
	case "true", "True", "TRUE":
		return value{kind: boolean, str: "true"}, true
	case "false", "False", "FALSE":
		return value{kind: boolean, str: "false"}, true
	case "null", "None", "NULL", "undefined", "NaN":
		return value{}, true
	case "":
		return value{}, false
	}
	if n, ok := numeral(w); ok {
		return value{kind: number, str: n}, true
	}
	return textOf(clean(w)), false
}

// numeral returns w as a JSON number, every digit kept.
func numeral(w string) (string, bool) {
	if isNumber(w) {
		return w, true
	}
	w = strings.ReplaceAll(strings.TrimPrefix(w, "+"), "_", "")
	if strings.HasPrefix(w, ".") {
		w = "0" + w
	}
	return w, isNumber(w)
}

// isNumber reports whether s is a number by the grammar of RFC 8259, section 6.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	n := digits(s)
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	s = s[n:]
	if strings.HasPrefix(s, ".") {
		n = digits(s[1:])
		if n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && digits(s) == len(s)
}

func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// readStrict reads a text that encoding/json holds valid.
func readStrict(s string) (value, error) {
	p := &reader{s: s, strict: true, plain: true}
	v, err := p.value()
	if err == nil && p.cut {
		err = errors.New("unexpected end")
	}
	return v, err
}
