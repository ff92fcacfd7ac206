package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Fuel bounds the steps of one walk: a schema with alternatives inside of
// alternatives can ask for a number of steps that grows exponentially. A
// complaint costs more than a step, since it describes the schema.
const (
	fuel          = 200_000
	fuelPerByte   = 20
	complaintCost = 100
)

// maxNotes bounds what is told about one call.
const maxNotes = 100

// walk is one walk of a schema along a value.
type walk struct {
	fuel  int
	quiet bool // only whether there are problems counts, not what they are
	notes []Note
}

// spend reports whether the walk may go on.
func (w *walk) spend() bool {
	w.fuel--
	return w.fuel > 0
}

func (w *walk) note(path, format string, args ...any) {
	if len(w.notes) == maxNotes {
		return
	}
	w.notes = append(w.notes, Note{Argument: path, Text: fmt.Sprintf(format, args...)})
}

// fit brings v into the types that n wants, as far as the meaning is clear, and
// leaves alone what is not: check complains about it.
func (w *walk) fit(n *node, v value, path string) value {
	if !w.spend() {
		return v
	}
	v = w.retype(n, v, path)
	if n.enum != nil {
		v = w.pick(n.enum, v, path)
	}
	if n.ref != nil {
		v = w.fit(n.ref, v, path)
	}
	for _, part := range n.all {
		v = w.fit(part, v, path)
	}
	for _, choice := range [][]*node{n.any, n.one} {
		v = w.choose(choice, v, path)
	}
	switch v.kind {
	case array:
		return w.fitItems(n, v, path)
	case object:
		return w.fitFields(n, v, path)
	}
	return v
}

// choose fits v to the first schema that it meets as it is, or else to the
// first that it can be made to meet.
func (w *walk) choose(choice []*node, v value, path string) value {
	for _, part := range choice {
		if w.meets(part, v) {
			return w.fit(part, v, path)
		}
	}
	for _, part := range choice {
		notes := len(w.notes)
		fitted := w.fit(part, v, path)
		if w.meets(part, fitted) {
			return fitted
		}
		w.notes = w.notes[:notes]
	}
	return v
}

// retype changes the type of v to one that n wants.
func (w *walk) retype(n *node, v value, path string) value {
	has := maskOf(v)
	if has&n.mask != 0 || n.mask == 0 {
		return v
	}
	for _, to := range []struct {
		mask mask
		read func(value) (value, bool)
	}{
		{isBoolean, toBoolean}, {isInteger, toInteger}, {isNumeric, toNumber},
		{isObject, toObject}, {isArray, toArray}, {isText, toText},
	} {
		if n.mask&to.mask == 0 {
			continue
		}
		if changed, ok := to.read(v); ok {
			w.note(path, "%s was read as %s", brief(v), brief(changed))
			return changed
		}
	}
	return v
}

func toBoolean(v value) (value, bool) {
	if whole, ok := integer(v.str); v.kind == number && ok {
		v.str = whole
	}
	switch strings.ToLower(strings.TrimSpace(v.str)) {
	case "true", "yes", "1":
		return value{kind: boolean, str: "true"}, true
	case "false", "no", "0":
		return value{kind: boolean, str: "false"}, true
	}
	return v, false
}

func toInteger(v value) (value, bool) {
	n, ok := toNumber(v)
	if !ok {
		return v, false
	}
	whole, ok := integer(n.str)
	return value{kind: number, str: whole}, ok
}

func toNumber(v value) (value, bool) {
	if v.kind != text && v.kind != number {
		return v, false
	}
	n, ok := numeral(strings.TrimSpace(v.str))
	return value{kind: number, str: n}, ok
}

// toText keeps what a model put into a text as an object, in JSON.
func toText(v value) (value, bool) {
	switch v.kind {
	case null:
		return v, false
	case array, object:
		return textOf(v.String()), true
	}
	return textOf(v.str), true
}

func toObject(v value) (value, bool) { return inside(v, object) }

// toArray reads an array that stands in a text; anything else becomes its only
// item. A text with commas is one item, since commas are part of texts.
func toArray(v value) (value, bool) {
	if list, ok := inside(v, array); ok {
		return list, true
	}
	return value{kind: array, items: []value{v}}, v.kind != null
}

// inside reads an array or object that a model put into a text, in JSON or as
// Python writes it.
func inside(v value, want kind) (value, bool) {
	s := strings.TrimSpace(v.str)
	if v.kind != text || s == "" || s[0] != "[{"[want-array] {
		return v, false
	}
	if json.Valid([]byte(s)) {
		inner, err := readStrict(s)
		return inner, err == nil
	}
	p := &reader{s: s, whole: true}
	inner, err := p.value()
	p.i = skipBlank(s, p.i)
	return inner, err == nil && p.done() && !p.cut && !p.missing
}

// pick replaces v by the value of an enum that it is but for case and spelling.
func (w *walk) pick(enum []value, v value, path string) value {
	if v.kind == array || v.kind == object {
		return v
	}
	for _, e := range enum {
		if same(e, v) {
			return v
		}
	}
	for _, e := range enum {
		if e.kind != array && e.kind != object && e.kind != null && plain(e.str) == plain(v.str) {
			w.note(path, "%s was read as %s", brief(v), brief(e))
			return e
		}
	}
	return v
}

func (w *walk) fitItems(n *node, v value, path string) value {
	if n.items == nil && n.prefix == nil {
		return v
	}
	items := make([]value, len(v.items))
	for i, item := range v.items {
		items[i] = item
		here := fmt.Sprintf("%s[%d]", path, i)
		if i < len(n.prefix) {
			items[i] = w.fit(n.prefix[i], item, here)
		} else if n.items != nil {
			items[i] = w.fit(n.items, item, here)
		}
	}
	v.items = items
	return v
}

func (w *walk) fitFields(n *node, v value, path string) value {
	fields := make([]field, 0, len(v.fields))
	for _, f := range v.fields {
		here := join(path, f.name)
		part := n.property(f.name)
		switch {
		case part != nil && w.absent(part, f, n.needs(f.name)):
			w.note(here, "%s was taken for nothing", brief(f.value))
			continue
		case part != nil:
			f.value = w.fit(part, f.value, here)
		case n.closed && path != "" && !n.matches(f.name):
			w.note(here, "there is no such field; it was dropped")
			continue
		case n.rest != nil:
			f.value = w.fit(n.rest, f.value, here)
		}
		fields = append(fields, f)
	}
	v.fields = fields
	return v
}

// matches reports whether a pattern of n speaks of the field.
func (n *node) matches(name string) bool {
	for _, p := range n.patterns {
		if p.pattern == nil || p.pattern.MatchString(name) {
			return true
		}
	}
	return false
}

// absent reports whether a field has a value that models write for none. A text
// that says "none" is a text, where texts are wanted.
func (w *walk) absent(n *node, f field, needed bool) bool {
	if f.value.kind == null {
		return n.mask&isNull == 0
	}
	if needed || f.value.kind != text || n.mask&isText != 0 && n.enum == nil {
		return false
	}
	for _, e := range n.enum {
		if same(e, f.value) {
			return false
		}
	}
	switch plain(f.value.str) {
	case "", "none", "null":
		return true
	}
	return false
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// brief shows a value to a model, shortened.
func brief(v value) string {
	const most = 60
	s := string(v.encodeUpTo(most+1, nil))
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
