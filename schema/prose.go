package schema

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Prose tells, while a reply comes in pieces, how much of it is text for sure: no
// continuation can make it part of a call. What was handed out so is always the
// beginning of the Rest that [ReadReply] returns for the whole.
type Prose struct {
	known  func(string) bool
	text   strings.Builder
	i      int    // decided up to here
	sent   int    // handed out up to here
	until  string // what ends the code or thought that is skipped; "" outside of them
	closed bool   // the end of a thought was looked for, and found
}

// NewProse returns a Prose that knows the functions' names as ReadReply does.
func NewProse(known func(name string) bool) *Prose { return &Prose{known: known} }

// Push takes in a piece, which is whole characters, and returns what is text.
func (p *Prose) Push(piece string) string {
	from := max(0, p.text.Len()-len("</think>"))
	p.text.WriteString(piece)
	p.endThought(from)
	for p.advance() {
	}
	return p.release()
}

// Text returns all that was pushed.
func (p *Prose) Text() string { return p.text.String() }

// endThought goes on behind the end of a thought that began in the prompt, since
// calls are looked for only there (afterThought).
func (p *Prose) endThought(from int) {
	if p.closed {
		return
	}
	if i := strings.Index(p.text.String()[from:], "</think>"); i >= 0 {
		p.closed = true
		if end := afterThought(p.text.String()); end > p.i {
			p.i, p.until = end, ""
		}
	}
}

// release returns what is decided and was not handed out. Blanks at both ends are
// held back, since ReadReply takes them off.
func (p *Prose) release() string {
	text := p.text.String()[:p.i]
	if strings.TrimSpace(text[:p.sent]) == "" {
		p.sent = len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	}
	end := len(strings.TrimRightFunc(text, unicode.IsSpace))
	if end <= p.sent {
		return ""
	}
	out := text[p.sent:end]
	p.sent = end
	return out
}

// advance decides on what comes next, and reports whether it could.
func (p *Prose) advance() bool {
	text := p.text.String()
	s := text[p.i:]
	switch {
	case s == "":
		return false
	case p.until != "":
		return p.skip(text)
	case s[0] == '`':
		return p.tick(s)
	case strings.HasPrefix(s, "<think>"):
		p.until = "</think>"
	case s[0] == '{':
		return false
	case s[0] == '<' || s[0] == '[':
		if mayOpen(s) {
			return false
		}
	case startsName(s[0]) && lineStart(text, p.i):
		if p.mayCall(s, false) {
			return false
		}
	}
	p.i++
	return true
}

// skip goes past code or a thought, as far as it is there.
func (p *Prose) skip(text string) bool {
	n := strings.Index(text[p.i:], p.until)
	if n < 0 {
		for p.i = max(p.i, len(text)-len(p.until)+1); p.i > 0 && p.i < len(text) && !utf8.RuneStart(text[p.i]); {
			p.i--
		}
		return false
	}
	p.i += n + len(p.until)
	p.until = ""
	return true
}

// tick goes past a backtick: into a fence that shows code, or past code in a
// sentence.
func (p *Prose) tick(s string) bool {
	if strings.HasPrefix("```", s) && len(s) < 3 {
		return false
	}
	if strings.HasPrefix(s, "```") {
		return p.fence(s)
	}
	end, line := strings.IndexByte(s[1:], '`'), strings.IndexByte(s[1:], '\n')
	switch {
	case line >= 0 && (end < 0 || line < end):
		p.i++
	case end >= 0:
		p.i += end + 2
	default:
		return false
	}
	return true
}

// fence goes into a fenced block whose beginning is no call (finder.fence).
func (p *Prose) fence(s string) bool {
	head := s[:min(40, len(s))]
	body := strings.IndexAny(head, "\n{[")
	switch {
	case body < 0 && len(s) < 40:
		return false
	case body >= 0:
		if j := skipBlank(s, body); j == len(s) || strings.IndexByte("{[<", s[j]) >= 0 || startsName(s[j]) && p.mayCall(s[j:], false) {
			return false
		}
	}
	p.i += 3
	p.until = "```"
	return true
}

// mayCall reports whether s may go on as a name and a bracket, of a known function
// unless any will do.
func (p *Prose) mayCall(s string, any bool) bool {
	end := strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || !isWord(byte(r)) && r != '.' && r != '\\' })
	if end < 0 {
		return true
	}
	return s[end] == '(' && (any || knownForm(s[:end], p.known) != "")
}

// mayOpen reports whether s, which starts with a bracket, is or may become the
// start of a call.
func mayOpen(s string) bool {
	for _, mark := range append(openers(), "<function=", "<think>") {
		if strings.HasPrefix(s, mark) || strings.HasPrefix(mark, s) {
			return true
		}
	}
	if s[0] == '<' {
		return false
	}
	j := skipBlank(s, 1)
	return j == len(s) || s[j] == '{' || startsName(s[j]) && (&Prose{}).mayCall(s[j:], true)
}
