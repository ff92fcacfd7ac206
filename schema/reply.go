package schema

import (
	"regexp"
	"strings"
)

// Reply is what a model without native calling wrote, taken apart.
type Reply struct {
	Calls []FoundCall
	Rest  string // the text around the calls
	// Begun says that the text ends in the beginning of a call, before any of its
	// arguments: where the reply was cut by its length, a call is missing.
	Begun bool
	// Framed says that the reply was one object of text and calls.
	Framed bool
}

// ReadReply takes a reply apart as [FindCalls] does, and beside that
//
//   - finds calls of functions that known does not know, where the form leaves no
//     doubt that a call is meant: between marks, or as an object of a name and
//     arguments. Whoever runs calls can then tell the model which names there are;
//   - reads {"thoughts": "…", "calls": […]}, also with "text" for "thoughts", the
//     form of replies that are held to a JSON schema.
//
// Nothing of the text is lost but layout, marks, and what pretends to be a result.
func ReadReply(text string, known func(name string) bool) Reply {
	if r, ok := readEnvelope(text, known); ok {
		return r
	}
	f := newFinder(text, known)
	f.any = true
	calls, rest := f.find()
	return Reply{Calls: calls, Rest: rest, Begun: beginsCall(rest)}
}

// readEnvelope reads a reply that is one object of text and calls.
func readEnvelope(written string, known func(string) bool) (r Reply, ok bool) {
	p := &parser{text: written, known: known, any: true, marked: true}
	p.token(fences())
	p.blank()
	if p.i >= len(written) || written[p.i] != '{' {
		return r, false
	}
	v, end, cut := p.readPrefix(p.i)
	if end == 0 || len(v.fields) == 0 || v.fields[0].name != "thoughts" && v.fields[0].name != "text" ||
		v.fields[0].value.kind != text || !v.has("calls") && !v.open {
		return r, false
	}
	f := &finder{}
	for _, field := range v.fields {
		if field.name == "calls" && field.value.kind == array {
			r.Begun = p.envelopeCalls(f, field.value, cut)
		} else if field.value.kind == text {
			f.keep(field.value.str)
		} else if field.value.kind != null {
			f.keep(field.value.String())
		}
	}
	p.i += end
	p.token([]string{"```"})
	if rest := strings.TrimSpace(written[p.i:]); !isInvented(rest) {
		f.keep(rest)
	}
	r.Calls, r.Rest, r.Framed = p.found, f.rest.String(), true
	return r, true
}

// envelopeCalls adds the calls of a list, and keeps in f what is none. It reports
// whether the last one had only begun.
func (p *parser) envelopeCalls(f *finder, list value, cut bool) bool {
	for i, item := range list.items {
		n := len(p.found)
		p.object(item, cut, 1)
		switch last := i == len(list.items)-1; {
		case len(p.found) > n:
		case last && item.open:
			return true
		default:
			f.keep(item.String())
		}
	}
	for _, thought := range p.thoughts {
		f.keep(thought)
	}
	return false
}

// begunName is a name alone on its last line.
var begunName = regexp.MustCompile(`(?:^|\n)[ \t\[]*[a-z]+(?:_[a-z]*)+$`)

// beginsTail is how far from its end a text is looked at: no call has more before
// its arguments.
const beginsTail = 400

func beginsCall(rest string) bool {
	tail := rest[max(0, len(rest)-beginsTail):]
	if begunName.MatchString(tail) || beginsMark(tail) {
		return true
	}
	for i := range len(tail) {
		if tail[i] == '{' && beginsObject(tail[i:], lineStart(tail, i) || i > 0 && tail[i-1] == '[') {
			return true
		}
	}
	return false
}

// beginsMark reports whether a text ends in a mark that opens a call, in part of
// one, or in a call so opened.
func beginsMark(tail string) bool {
	for _, mark := range append(openers(), "<function=") {
		if i := strings.LastIndex(tail, mark); i >= 0 && !strings.ContainsAny(tail[i+len(mark):], "})") {
			return true
		}
		for n := 3; n < len(mark); n++ {
			if strings.HasSuffix(tail, mark[:n]) {
				return true
			}
		}
	}
	return false
}

// beginsObject reports whether s is the beginning of an object that by its first
// field becomes a call. Alone on its line it needs not even have the field's name.
func beginsObject(s string, alone bool) bool {
	r := &reader{s: s, plain: true}
	v, err := r.value()
	if err != nil || !v.open {
		return false
	}
	if len(v.fields) == 0 {
		return alone
	}
	first := v.fields[0].name
	for _, key := range []string{"name", "function", "tool", "tool_name", "function_name", "tool_calls", "function_calls", "type", "id"} {
		if first == key || alone && len(v.fields) == 1 && r.cut && strings.HasPrefix(key, first) {
			return true
		}
	}
	return false
}
