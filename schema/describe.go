package schema

import (
	"encoding/json"
	"strings"
)

// Usage lists the arguments for a model, each with its type and whether it may
// be left out, for example
//
//	label: "human" or "persona"; content: string; page?: integer
//
// where the question mark means that the argument is optional.
func (s *Schema) Usage() string {
	args := s.root.arguments()
	if len(args) == 0 && (s.root.takesMore() || !s.root.closes()) {
		return "any names and values"
	}
	if len(args) == 0 {
		return "none"
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a.describe(s.root, 2)
	}
	return strings.Join(words, "; ")
}

// Example returns a call's arguments with placeholders, as a model writes them.
func (s *Schema) Example() string {
	v := value{kind: object}
	for _, a := range s.root.arguments() {
		if s.root.needs(a.name) {
			v.fields = append(v.fields, field{a.name, a.node.sample(2)})
		}
	}
	return v.String()
}

func (p property) describe(of *node, depth int) string {
	mark := "?: "
	if of.needs(p.name) {
		mark = ": "
	}
	return p.name + mark + p.node.describe(depth)
}

// describe names the type of n, down to a depth.
func (n *node) describe(depth int) string {
	if words := n.values(); words != nil {
		return enumerate(words)
	}
	switch {
	case n.mask == anything:
		return "anything"
	case n.mask == 0:
		return "nothing"
	}
	var words []string
	for _, t := range []struct {
		mask mask
		name string
	}{
		{isText, "string"}, {isInteger, "integer"}, {isNumeric, "number"}, {isBoolean, "boolean"},
		{isArray, "list" + n.itemPhrase(depth)}, {isObject, "object" + n.fieldPhrase(depth)}, {isNull, "null"},
	} {
		if n.mask&t.mask != 0 && (t.mask != isInteger || n.mask&isNumeric == 0) {
			words = append(words, t.name)
		}
	}
	return enumerate(words)
}

// values returns the values of an enum as JSON, or nil if any will do.
func (n *node) values() []string {
	if n.enum == nil {
		if n.ref != nil {
			return n.ref.values()
		}
		return nil
	}
	words := make([]string, len(n.enum))
	for i, v := range n.enum {
		words[i] = brief(v)
	}
	return words
}

func (n *node) itemPhrase(depth int) string {
	switch items := n.items; {
	case depth == 0:
		return ""
	case items != nil:
		return " of " + items.describe(depth-1)
	case n.ref != nil:
		return n.ref.itemPhrase(depth)
	}
	return ""
}

func (n *node) fieldPhrase(depth int) string {
	fields := n.arguments()
	if depth == 0 || len(fields) == 0 {
		return ""
	}
	const most = 12
	words := make([]string, 0, most)
	for _, f := range fields[:min(len(fields), most)] {
		words = append(words, f.describe(n, depth-1))
	}
	return " {" + strings.Join(words, ", ") + "}"
}

// sample returns a placeholder of the type of n.
func (n *node) sample(depth int) value {
	switch {
	case len(n.enum) > 0:
		return n.enum[0]
	case n.ref != nil && depth > 0:
		return n.ref.sample(depth - 1)
	case n.mask&isText != 0:
		return textOf("...")
	case n.mask&isInteger != 0:
		return value{kind: number, str: "0"}
	case n.mask&isBoolean != 0:
		return value{kind: boolean, str: "true"}
	case n.mask&isArray != 0:
		return value{kind: array}
	case n.mask&isObject != 0:
		return n.sampleObject(depth)
	}
	return value{}
}

func (n *node) sampleObject(depth int) value {
	v := value{kind: object}
	for _, f := range n.arguments() {
		if depth > 0 && n.needs(f.name) {
			v.fields = append(v.fields, field{f.name, f.node.sample(depth - 1)})
		}
	}
	return v
}

// Argument is one argument of a function, for a description in few words.
type Argument struct {
	Name        string
	Type        string // as in [Schema.Usage]
	Description string // "" where the schema has none
	Required    bool
}

// Arguments lists the arguments that the schema names, in its order.
func (s *Schema) Arguments() []Argument {
	var top struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(s.json, &top) != nil {
		top.Properties = nil
	}
	var list []Argument
	for _, a := range s.root.arguments() {
		var said struct {
			Description string `json:"description"`
		}
		if json.Unmarshal(top.Properties[a.name], &said) != nil {
			said.Description = ""
		}
		list = append(list, Argument{a.name, a.node.describe(2), said.Description, s.root.needs(a.name)})
	}
	return list
}
