package schema

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// maxParts bounds how many schemas apply to one value at once. Beyond it
// nobody could say in an error what was wanted.
const maxParts = 10_000

// compiler makes nodes of the schemas inside a document; each place gives one.
type compiler struct {
	root    value
	nodes   map[string]*node // by JSON pointer
	anchors map[string]string
}

func compile(root value) (*node, error) {
	c := &compiler{root: root, nodes: map[string]*node{}, anchors: map[string]string{}}
	c.findAnchors(root, "")
	n, err := c.node(root, "")
	if err != nil {
		return nil, err
	}
	parts := map[*node]int{}
	for _, m := range c.nodes {
		if err := m.finish(parts); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// finish computes the masks of n and what applies in place, and refuses circles.
func (n *node) finish(parts map[*node]int) error {
	switch parts[n] {
	case 0:
		parts[n] = -1
	case -1:
		return fmt.Errorf("a schema refers to itself for the same value")
	default:
		return nil
	}
	total := 1
	for _, m := range n.inPlace() {
		if err := m.finish(parts); err != nil {
			return err
		}
		total += parts[m]
		if total > maxParts {
			return fmt.Errorf("more than %d schemas apply to one value", maxParts)
		}
	}
	parts[n] = total
	n.mask = n.types & union(n.any) & union(n.one)
	for _, m := range n.all {
		n.mask &= m.mask
	}
	if n.ref != nil {
		n.mask &= n.ref.mask
	}
	n.mask &= enumMask(n.enum)
	return nil
}

func union(nodes []*node) mask {
	if nodes == nil {
		return anything
	}
	var m mask
	for _, n := range nodes {
		m |= n.mask
	}
	return m
}

func enumMask(enum []value) mask {
	if enum == nil {
		return anything
	}
	var m mask
	for _, v := range enum {
		m |= maskOf(v)
	}
	return m
}

func (c *compiler) findAnchors(v value, at string) {
	if name := v.get("$anchor"); name != nil && name.kind == text {
		c.anchors[name.str] = at
	}
	for _, f := range v.fields {
		c.findAnchors(f.value, at+"/"+pointerEscape(f.name))
	}
	for i, item := range v.items {
		c.findAnchors(item, at+"/"+strconv.Itoa(i))
	}
}

func pointerEscape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// node compiles the schema v that stands at a JSON pointer.
func (c *compiler) node(v value, at string) (*node, error) {
	if n := c.nodes[at]; n != nil {
		return n, nil
	}
	n := &node{types: anything}
	c.nodes[at] = n
	if v.kind == boolean {
		if v.str == "false" {
			n.types = 0
		}
		return n, nil
	}
	if v.kind != object {
		return nil, fault(at, "a schema is an object, true or false")
	}
	for _, f := range v.fields {
		if err := c.keyword(n, f.name, f.value, at); err != nil {
			return nil, err
		}
	}
	return n, c.openAPI(n, v)
}

func fault(at, format string, args ...any) error {
	if at == "" {
		at = "top level"
	}
	return fmt.Errorf("%s: %s", at, fmt.Sprintf(format, args...))
}

// openAPI applies two keywords that mean something only beside others:
// nullable of OpenAPI 3.0, and exclusive limits that are booleans, of draft 4.
func (c *compiler) openAPI(n *node, v value) error {
	if set := v.get("nullable"); set != nil && set.str == "true" && n.types != anything {
		n.types |= isNull
		if n.enum != nil {
			n.enum = append(n.enum, value{})
		}
	}
	if set := v.get("exclusiveMinimum"); set != nil && set.kind == boolean && set.str == "true" {
		n.above = n.min
	}
	if set := v.get("exclusiveMaximum"); set != nil && set.kind == boolean && set.str == "true" {
		n.below = n.max
	}
	return nil
}

// keyword reads one field of a schema into n.
func (c *compiler) keyword(n *node, name string, v value, at string) error {
	here := at + "/" + pointerEscape(name)
	var err error
	switch name {
	case "type":
		n.types, err = types(v, here)
	case "enum":
		if v.kind != array {
			return fault(here, "has to be a list of values")
		}
		n.enum = append([]value{}, v.items...)
	case "const":
		n.enum = []value{v}
	case "required":
		n.required, err = names(v, here)
	case "$ref":
		n.ref, err = c.reference(v, here)
	case "allOf":
		n.all, err = c.list(v, here)
	case "anyOf":
		n.any, err = c.list(v, here)
	case "oneOf":
		n.one, err = c.list(v, here)
	case "not":
		n.not, err = c.node(v, here)
	case "if":
		n.cond, err = c.node(v, here)
	case "then":
		n.then, err = c.node(v, here)
	case "else":
		n.alt, err = c.node(v, here)
	default:
		return c.structure(n, name, v, here)
	}
	return err
}

// structure reads the keywords about parts of arrays and objects.
func (c *compiler) structure(n *node, name string, v value, here string) error {
	var err error
	switch name {
	case "properties":
		n.props, err = c.properties(v, here)
		n.byName = make(map[string]*node, len(n.props))
		for _, p := range n.props {
			n.byName[p.name] = p.node
		}
	case "patternProperties":
		n.patterns, err = c.properties(v, here)
		for i := range n.patterns {
			n.patterns[i].pattern, _ = regexp.Compile(n.patterns[i].name)
		}
	case "additionalProperties":
		if v.kind == boolean && v.str == "false" {
			n.closed = true
			return nil
		}
		n.rest, err = c.node(v, here)
	case "prefixItems":
		n.prefix, err = c.list(v, here)
	case "items":
		if v.kind == array { // a tuple of draft 7
			n.prefix, err = c.list(v, here)
			return err
		}
		n.items, err = c.node(v, here)
	case "additionalItems":
		if n.items == nil {
			n.items, err = c.node(v, here)
		}
	default:
		return n.limit(name, v, here)
	}
	return err
}

// limit reads the keywords that bound a value.
func (l *limits) limit(name string, v value, here string) error {
	places := map[string]**float64{
		"minimum": &l.min, "maximum": &l.max, "exclusiveMinimum": &l.above, "exclusiveMaximum": &l.below,
		"multipleOf": &l.multiple, "minLength": &l.shortest, "maxLength": &l.longest, "minItems": &l.fewest,
		"maxItems": &l.most, "minProperties": &l.fewestFields, "maxProperties": &l.mostFields,
	}
	place := places[name]
	switch {
	case place != nil && v.kind == number:
		f, _ := strconv.ParseFloat(v.str, 64)
		*place = &f
	case place != nil && (v.kind != boolean || !strings.HasPrefix(name, "exclusive")):
		return fault(here, "has to be a number")
	case name == "uniqueItems":
		l.unique = v.str == "true"
	case name == "pattern" && v.kind != text:
		return fault(here, "has to be a regular expression in a string")
	case name == "pattern":
		l.pattern, _ = regexp.Compile(v.str) // nil for what only ECMAScript knows
	}
	return nil
}

func (c *compiler) list(v value, at string) ([]*node, error) {
	if v.kind != array || len(v.items) == 0 {
		return nil, fault(at, "has to be a list of schemas")
	}
	nodes := make([]*node, len(v.items))
	for i, item := range v.items {
		n, err := c.node(item, at+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return nodes, nil
}

func (c *compiler) properties(v value, at string) ([]property, error) {
	if v.kind == null {
		return nil, nil
	}
	if v.kind != object {
		return nil, fault(at, "has to be an object of schemas")
	}
	list := make([]property, len(v.fields))
	for i, f := range v.fields {
		n, err := c.node(f.value, at+"/"+pointerEscape(f.name))
		if err != nil {
			return nil, err
		}
		list[i] = property{name: f.name, node: n}
	}
	return list, nil
}

// reference compiles what a $ref leads to.
func (c *compiler) reference(v value, at string) (*node, error) {
	local, ok := strings.CutPrefix(v.str, "#")
	if id := c.root.get("$id"); !ok && id != nil && id.str != "" {
		local, ok = strings.CutPrefix(v.str, id.str+"#")
	}
	if v.kind != text || !ok {
		return nil, fault(at, "%s leads outside of the schema; put what it means under $defs and refer to it by #/$defs/NAME", v)
	}
	pointer, err := url.PathUnescape(local)
	if err != nil {
		return nil, fault(at, "%s: %v", v, err)
	}
	if place, named := c.anchors[pointer]; named {
		pointer = place
	}
	target, ok := c.find(pointer)
	if !ok {
		return nil, fault(at, "%s leads to nothing", v)
	}
	return c.node(target, pointer)
}

// find follows a JSON pointer (RFC 6901) from the root.
func (c *compiler) find(pointer string) (value, bool) {
	v := c.root
	if pointer == "" {
		return v, true
	}
	steps := strings.Split(pointer, "/")
	if steps[0] != "" {
		return v, false
	}
	for _, step := range steps[1:] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		i, err := strconv.Atoi(step)
		switch next := v.get(step); {
		case next != nil:
			v = *next
		case v.kind == array && err == nil && i >= 0 && i < len(v.items):
			v = v.items[i]
		default:
			return v, false
		}
	}
	return v, true
}

// types reads a name of a type or a list of them.
func types(v value, at string) (mask, error) {
	list := []value{v}
	if v.kind == array {
		list = v.items
	}
	var m mask
	for _, t := range list {
		bit := typeMask(t.str)
		if t.kind != text || bit == 0 {
			return 0, fault(at, "%s is no type; the types are string, number, integer, boolean, array, object and null", t)
		}
		m |= bit
	}
	return m, nil
}

func typeMask(name string) mask {
	switch name {
	case "null":
		return isNull
	case "boolean":
		return isBoolean
	case "integer":
		return isInteger
	case "number":
		return isNumeric | isInteger
	case "string":
		return isText
	case "array":
		return isArray
	case "object":
		return isObject
	default:
		return 0
	}
}

func names(v value, at string) ([]string, error) {
	list := make([]string, len(v.items))
	for i, item := range v.items {
		if item.kind != text {
			return nil, fault(at, "has to be a list of names")
		}
		list[i] = item.str
	}
	if v.kind != array {
		return nil, fault(at, "has to be a list of names")
	}
	return list, nil
}
