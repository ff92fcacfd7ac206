package schema

import "strings"

// pythonicList reports whether a list of calls as of Python starts here.
func (p *parser) pythonicList() bool {
	j := skipBlank(p.text, p.i+1)
	return j < len(p.text) && startsName(p.text[j]) && nameEnds(p.text, j) > 0
}

// nameEnds returns the index behind the "(" after the name that starts at j, or 0.
func nameEnds(s string, j int) int {
	for j < len(s) && (isWord(s[j]) && s[j] < 0x80 || s[j] == '.' || s[j] == '\\') {
		j++
	}
	if j < len(s) && s[j] == '(' {
		return j + 1
	}
	return 0
}

// pythonic reads f(a=1), one to a line, or [f(a=1), g(b='x')]. Prose mentions
// functions in the same way, so that such calls have to stand alone.
func (p *parser) pythonic() bool {
	start, n := p.i, len(p.found)
	if p.alone && !lineStart(p.text, p.i) {
		return false
	}
	list := p.text[p.i] == '['
	if list {
		p.i++
	}
	ok := p.pythonCall()
	for ok && list && p.token([]string{","}) {
		p.blank()
		ok = p.pythonCall()
	}
	if ok && list {
		ok = p.token([]string{"]"}) || skipBlank(p.text, p.i) == len(p.text)
	}
	if ok {
		p.token([]string{";"})
	}
	if ok && p.endsLine() {
		return true
	}
	p.i, p.found = start, p.found[:n]
	return false
}

// endsLine reports whether nothing else stands on this line.
func (p *parser) endsLine() bool {
	line, _, _ := strings.Cut(p.text[p.i:], "\n")
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "```") || strings.HasPrefix(line, "<")
}

// pythonCall reads one call, whose arguments all have names.
func (p *parser) pythonCall() bool {
	open := nameEnds(p.text, p.i)
	if open == 0 {
		return false
	}
	name := p.text[p.i : open-1]
	for _, plain := range []bool{false, true} {
		r := &reader{s: p.text, i: open, stack: []byte{'('}, plain: plain}
		v, err := r.keywords()
		p.spent += r.i - open
		if err != nil || r.cut && !plain {
			continue
		}
		if !p.add(name, v.String(), r.cut, r.ended) {
			return false
		}
		p.i = r.i
		return true
	}
	return false
}

// keywords reads a=1, b='x') behind the bracket of a call.
func (p *reader) keywords() (value, error) {
	v := value{kind: object}
	for {
		switch more, err := p.more(')'); {
		case err != nil:
			return v, err
		case !more:
			v.fields = settle(v.fields)
			return v, nil
		}
		if p.quoted() {
			return v, p.fail("the name of an argument")
		}
		f, err := p.field("=")
		if err != nil {
			return v, err
		}
		v.fields = append(v.fields, f)
	}
}
