package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Options are what [Schema.Decode] may be told. The zero value is ready to use.
type Options struct {
	// Function is the name of the function, for errors. Empty leaves it out.
	Function string
	// Aliases maps other names of arguments to those in the schema, for example
	// "name" to "label". An argument of the schema is never renamed.
	Aliases map[string]string
	// Cut says that the model's reply ended by its length limit. Then arguments
	// that lack so much as a closing bracket are refused.
	Cut bool
	// TypesOnly leaves ranges, lengths, patterns and whatever is nested to the
	// function: only missing arguments, types and enums are checked.
	TypesOnly bool
}

// Note is a change that [Schema.Decode] made to what the model wrote.
type Note struct {
	Argument string // path, as in "items[2].age"; empty for the arguments as a whole
	Text     string // what was done, for a log or for the model
}

// String returns the note as one line.
func (n Note) String() string {
	if n.Argument == "" {
		return n.Text
	}
	return n.Argument + ": " + n.Text
}

// Fault is the error of [Schema.Decode]. Its text is meant for the model: what
// is wrong, and how the call is written right.
type Fault struct {
	Function string   // as in [Options]
	Problems []string // at least one
	Usage    string   // [Schema.Usage]
	Example  string   // [Schema.Example]
	Cut      bool     // the arguments were cut off; written shorter they may fit
}

// Error returns the problems with the arguments that the function takes.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString("wrong arguments")
	if f.Function != "" {
		b.WriteString(" for " + f.Function)
	}
	fmt.Fprintf(&b, ": %s. Arguments: %s. Write them as one JSON object, like %s",
		strings.Join(f.Problems, "; "), f.Usage, f.Example)
	return b.String()
}

// Decode turns the raw arguments of a call into a JSON object that fits the
// schema. It repairs broken JSON, renames aliases, drops unknown arguments, and
// changes types where the meaning is clear; notes tell of each change. Texts
// keep every byte but those that aren't Unicode. No arguments at all, and null,
// are an empty object.
//
// The error is a [*Fault]: the call must not run.
func (s *Schema) Decode(raw string, o Options) (json.RawMessage, []Note, error) {
	w := &walk{fuel: fuel + fuelPerByte*len(raw)}
	v, err := s.object(raw, o, w)
	if err != nil {
		return nil, w.notes, err
	}
	v = s.unwrapCall(v, w)
	v = s.rename(v, o.Aliases, w)
	v, unknown := s.drop(v, w)
	v = w.fit(s.root, v, "")
	if problems := s.check(v, o, w); len(problems) > 0 {
		for i := range problems {
			problems[i] += suggest(problems[i], unknown[:min(len(unknown), maxNotes)])
		}
		return nil, w.notes, s.fault(o, problems...)
	}
	return v.encode(nil), w.notes, nil
}

func (s *Schema) fault(o Options, problems ...string) *Fault {
	return &Fault{Function: o.Function, Problems: problems, Usage: s.Usage(), Example: s.Example()}
}

// object reads raw down to an object.
func (s *Schema) object(raw string, o Options, w *walk) (value, error) {
	r, err := reading{value: value{kind: object}}, error(nil)
	if strings.TrimSpace(raw) != "" {
		r, err = understand(raw)
	}
	v := r.value
	if v.kind == array && len(v.items) == 1 && v.items[0].kind == object {
		v = v.items[0]
		w.note("", "the arguments were taken out of a list")
	}
	if v.kind == null {
		v = value{kind: object}
	}
	switch {
	case r.cut || r.missing && o.Cut:
		f := s.fault(o, "the arguments were cut off before their end, so nothing was done; write the whole call again, and shorter")
		f.Cut = true
		return v, f
	case err == nil && v.kind != object:
		err = errNoJSON
	}
	if err != nil {
		return v, s.fault(o, fmt.Sprintf("the arguments are not a JSON object (%v); put names and texts in double quotes, "+
			`and write \" for a quote and \n for a line break inside a text`, err))
	}
	if r.untidy {
		w.note("", "the arguments were not strict JSON and were repaired")
	}
	return v, nil
}

// unwrapCall takes the arguments out of a whole call that a model wrote where
// only its arguments belong.
func (s *Schema) unwrapCall(v value, w *walk) value {
	around := []string{"name", "function", "tool", "type", "id"}
	for _, key := range []string{"arguments", "parameters", "params", "args", "kwargs", "input"} {
		inner := v.get(key)
		if inner == nil || s.Has(key) || s.root.takesMore() {
			continue
		}
		others := slices.ContainsFunc(v.fields, func(f field) bool {
			return f.name != key && !slices.Contains(around, f.name)
		})
		if held, ok := toObject(*inner); ok {
			inner = &held
		}
		if inner.kind == object && !others {
			w.note(key, "the arguments were taken out of %q", key)
			return *inner
		}
	}
	return v
}

// rename gives arguments the names of the schema where they have another one
// that can only mean that.
func (s *Schema) rename(v value, aliases map[string]string, w *walk) value {
	known := s.root.arguments()
	fields := slices.Clone(v.fields)
	for i, f := range fields {
		if s.Has(f.name) {
			continue
		}
		name, ok := aliases[f.name]
		if !ok {
			name = respelled(f.name, known)
		}
		if name != "" && s.Has(name) && !v.has(name) {
			w.note(name, "%q was taken for it", f.name)
			fields[i].name = name
		}
	}
	v.fields = settle(fields)
	return v
}

// respelled returns the known name that differs only in case and punctuation.
func respelled(name string, known []property) string {
	for _, k := range known {
		if plain(k.name) == plain(name) {
			return k.name
		}
	}
	return ""
}

// drop takes out the arguments that the schema does not name, unless it wants
// such. Models add thoughts and moods; no function should fail for them.
func (s *Schema) drop(v value, w *walk) (value, []string) {
	known := s.root.arguments()
	if s.root.takesMore() || len(known) == 0 && !s.root.closes() {
		return v, nil
	}
	var unknown []string
	fields := make([]field, 0, len(v.fields))
	for _, f := range v.fields {
		if s.Has(f.name) {
			fields = append(fields, f)
			continue
		}
		unknown = append(unknown, f.name)
		w.note(f.name, "there is no such argument; it was dropped")
	}
	v.fields = fields
	return v, unknown
}

// closes reports whether n says which fields there are, if only that there are
// none, or forbids others.
func (n *node) closes() bool {
	return n.closed || n.props != nil || n.ref != nil && n.ref.closes() || slices.ContainsFunc(n.all, (*node).closes)
}

func (s *Schema) check(v value, o Options, w *walk) []string {
	if !o.TypesOnly {
		return w.check(s.root, v, "")
	}
	var problems []string
	for _, a := range s.root.arguments() {
		switch given := v.get(a.name); {
		case given == nil && s.root.needs(a.name):
			problems = append(problems, fmt.Sprintf("%q is missing", a.name))
		case given != nil && (maskOf(*given)&a.node.mask == 0 || a.node.enum != nil):
			problems = append(problems, w.check(a.node, *given, a.name)...)
		}
	}
	return problems
}

// suggest adds to a complaint about a missing argument the unknown one that
// was probably meant to be it.
func suggest(problem string, unknown []string) string {
	name, missing := strings.CutSuffix(problem, " is missing")
	if near := Closest(strings.Trim(name, `"`), unknown); missing && near != "" {
		return fmt.Sprintf(" (you wrote %q)", near)
	}
	return ""
}

// AsFault returns the [*Fault] in an error, or nil.
func AsFault(err error) *Fault {
	var f *Fault
	errors.As(err, &f)
	return f
}
