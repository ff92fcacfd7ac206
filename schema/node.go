package schema

import "regexp"

// mask is a set of JSON types. A number without a fraction has two of them.
type mask uint8

const (
	isNull mask = 1 << iota
	isBoolean
	isInteger
	isNumeric
	isText
	isArray
	isObject
	anything mask = 1<<iota - 1
)

// node is a schema, or a part of one, made ready for walking along a value.
type node struct {
	mask  mask // types that pass here and in everything that applies in place
	types mask // types that this very schema names

	enum     []value // nil: any value
	props    []property
	byName   map[string]*node // of props
	required []string
	closed   bool       // additionalProperties is false
	rest     *node      // additionalProperties is a schema or true
	patterns []property // name is the pattern
	items    *node
	prefix   []*node

	all, any, one        []*node
	not, cond, then, alt *node // not, if, then, else
	ref                  *node
	limits
}

type property struct {
	name    string
	pattern *regexp.Regexp
	node    *node
}

// limits are the keywords that bound a value by a number or a pattern.
type limits struct {
	min, max, above, below, multiple *float64 // of numbers; above and below exclude themselves
	shortest, longest                *float64 // of texts, in characters
	fewest, most                     *float64 // of arrays
	fewestFields, mostFields         *float64 // of objects
	pattern                          *regexp.Regexp
	unique                           bool
}

// inPlace returns the schemas that apply to the same value as n.
func (n *node) inPlace() []*node {
	var list []*node
	list = append(list, n.all...)
	list = append(list, n.any...)
	list = append(list, n.one...)
	for _, m := range []*node{n.not, n.cond, n.then, n.alt, n.ref} {
		if m != nil {
			list = append(list, m)
		}
	}
	return list
}

// property returns what n itself says of a field, or nil.
func (n *node) property(name string) *node { return n.byName[name] }

// argument returns the first schema for a field that n or one that applies in
// place has, or nil.
func (n *node) argument(name string) *node {
	if m := n.property(name); m != nil {
		return m
	}
	for _, part := range n.inPlace() {
		if m := part.argument(name); m != nil {
			return m
		}
	}
	return nil
}

// arguments returns the fields that n and the schemas that apply in place name,
// in order and each once.
func (n *node) arguments() []property {
	var list []property
	seen := map[string]bool{}
	n.collect(func(p property) {
		if !seen[p.name] {
			seen[p.name] = true
			list = append(list, p)
		}
	})
	return list
}

func (n *node) collect(add func(property)) {
	for _, p := range n.props {
		add(p)
	}
	for _, part := range n.inPlace() {
		part.collect(add)
	}
}

// needs reports whether a field has to be there whatever the others are.
func (n *node) needs(name string) bool {
	for _, r := range n.required {
		if r == name {
			return true
		}
	}
	for _, part := range n.all {
		if part.needs(name) {
			return true
		}
	}
	return n.ref != nil && n.ref.needs(name)
}

// takesMore reports whether fields without a name in the schema are wanted.
func (n *node) takesMore() bool {
	if n.rest != nil || len(n.patterns) > 0 {
		return true
	}
	for _, part := range n.inPlace() {
		if part.takesMore() {
			return true
		}
	}
	return false
}

// maskOf returns the types of a value.
func maskOf(v value) mask {
	switch v.kind {
	case null:
		return isNull
	case boolean:
		return isBoolean
	case text:
		return isText
	case array:
		return isArray
	case object:
		return isObject
	}
	if _, whole := integer(v.str); whole {
		return isNumeric | isInteger
	}
	return isNumeric
}
