package schema

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxSchema bounds the size of a schema that somebody else wrote. A quarter of
// a megabyte is already more than most models can hold.
const maxSchema = 256 << 10

// Schema is the JSON Schema of the arguments of one function: an object with
// one property an argument. It never changes and may be used by many
// goroutines at once.
type Schema struct {
	json json.RawMessage
	root *node
}

// Parse reads a schema that a user or an MCP server wrote, by JSON Schema
// draft 7 or 2020-12 or OpenAPI 3.0. No text at all and null mean a function
// without arguments.
//
// It refuses, with the place of the fault, what is no schema, what does not
// describe an object, references that lead outside, to nothing, or in a circle
// without ever reaching a value. It keeps and otherwise ignores keywords that
// say nothing about types or that it does not know ($dynamicRef, unevaluated…,
// contains, propertyNames, dependent…, format) and patterns that Go's regular
// expressions can't hold: then the function itself has to check.
func Parse(raw json.RawMessage) (*Schema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("reading schema: %d bytes are more than %d", len(raw), maxSchema)
	}
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var syntax json.RawMessage
	if err := json.Unmarshal(raw, &syntax); err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	v, err := readStrict(string(raw))
	if err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	root, err := compile(v)
	if err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	if root.mask&isObject == 0 || v.kind != object {
		return nil, errors.New("reading schema: it has to describe an object, since arguments have names")
	}
	return &Schema{json: v.encode(nil), root: root}, nil
}

// JSON returns the schema as it goes to the model: compact, in a fixed order,
// and for [Parse] of the same meaning as what was given. It must not be changed.
func (s *Schema) JSON() json.RawMessage { return s.json }

// MarshalJSON returns [Schema.JSON].
func (s *Schema) MarshalJSON() ([]byte, error) { return s.json, nil }

// Has reports whether the schema names an argument.
func (s *Schema) Has(argument string) bool { return s.root.argument(argument) != nil }
