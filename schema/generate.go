package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// For makes the schema of the arguments that are unmarshalled into a T, which
// has to be a struct. Of a field
//
//	Page *int `json:"page,omitempty" jsonschema:"zero-based page" enum:"0,1,2"`
//
// the tag json gives the name and, by omitempty or omitzero, that it may be left
// out; jsonschema gives the description; enum the values that it may have (of
// the items, if it is a slice). Properties stand in the order of the fields.
//
// The schema keeps to what strict servers accept: no object takes properties
// that it does not name, and what is optional is left out and never null.
func For[T any]() (*Schema, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("making a schema: %s is not a struct", t)
	}
	js, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {}, // not the list of bytes that it is to Go
	}})
	if err == nil {
		err = tidy(t, js)
	}
	if err != nil {
		return nil, fmt.Errorf("making a schema of %s: %w", t, err)
	}
	raw, err := json.Marshal(js)
	if err != nil {
		return nil, fmt.Errorf("making a schema of %s: %w", t, err)
	}
	v, err := readStrict(string(raw))
	if err != nil {
		return nil, fmt.Errorf("making a schema of %s: %w", t, err)
	}
	return Parse(spell(v).encode(nil))
}

// spell writes the schema that takes anything as {} where the library writes
// true, which servers refuse as a property.
func spell(schema value) value {
	for i, f := range schema.fields {
		switch {
		case f.name == "properties" && f.value.kind == object:
			for j, p := range f.value.fields {
				schema.fields[i].value.fields[j].value = spell(p.value)
			}
		case f.name == "items", f.name == "additionalProperties" && f.value.kind == object:
			schema.fields[i].value = spell(f.value)
		}
	}
	if schema.kind == boolean && schema.str == "true" {
		return value{kind: object}
	}
	return schema
}

// tidy takes null from the types of s, which was made of t, and adds what the
// library does not: enums, and the empty list of properties.
func tidy(t reflect.Type, s *jsonschema.Schema) error {
	s.Types = slices.DeleteFunc(s.Types, func(name string) bool { return name == "null" })
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return tidy(t.Elem(), s)
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			return tidy(t.Elem(), s.Items)
		}
	case reflect.Map:
		if s.AdditionalProperties != nil {
			return tidy(t.Elem(), s.AdditionalProperties)
		}
	case reflect.Struct:
		if s.Type == "object" {
			return tidyFields(t, s)
		}
	}
	return nil
}

func tidyFields(t reflect.Type, s *jsonschema.Schema) error {
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		property := s.Properties[name]
		if property == nil || !f.IsExported() {
			continue
		}
		if err := tidy(f.Type, property); err != nil {
			return err
		}
		if err := setEnum(property, f.Tag.Get("enum")); err != nil {
			return fmt.Errorf("enum of %s: %w", name, err)
		}
	}
	return nil
}

// setEnum gives s, or its items, the values of a tag such as "day,night".
func setEnum(s *jsonschema.Schema, tag string) error {
	if tag == "" {
		return nil
	}
	if s.Items != nil {
		s = s.Items
	}
	for word := range strings.SplitSeq(tag, ",") {
		if s.Type == "string" {
			s.Enum = append(s.Enum, word)
			continue
		}
		n, ok := numeral(word)
		if !ok {
			return fmt.Errorf("%q is not of type %s", word, s.Type)
		}
		s.Enum = append(s.Enum, json.Number(n))
	}
	return nil
}
