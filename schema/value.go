package schema

import (
	"math"
	"strings"
	"unicode/utf8"
)

// kind is the JSON type of a value; integer is not one of them, since JSON has
// only numbers.
type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// value is a JSON value that keeps what encoding/json's any loses: the order of
// fields and every digit of a number.
type value struct {
	kind   kind
	str    string // content of a text, literal of a number or boolean
	items  []value
	fields []field
	raw    string // of arrays and objects: the text that it was read from
	open   bool   // of arrays and objects: the text ended before their bracket
}

type field struct {
	name  string
	value value
}

func textOf(s string) value { return value{kind: text, str: s} }

// get returns the field of that name, or nil.
func (v value) get(name string) *value {
	for i := range v.fields {
		if v.fields[i].name == name {
			return &v.fields[i].value
		}
	}
	return nil
}

// has reports whether v has a field of that name.
func (v value) has(name string) bool { return v.get(name) != nil }

// settle keeps the last of several fields of one name, as encoding/json does,
// at the place of the first.
func settle(fields []field) []field {
	at := make(map[string]int, len(fields))
	kept := fields[:0]
	for _, f := range fields {
		if i, seen := at[f.name]; seen {
			kept[i] = f
			continue
		}
		at[f.name] = len(kept)
		kept = append(kept, f)
	}
	return kept
}

// encode appends v as compact JSON.
func (v value) encode(dst []byte) []byte { return v.encodeUpTo(math.MaxInt, dst) }

// encodeUpTo is encode, but may leave out what is beyond so many bytes.
func (v value) encodeUpTo(limit int, dst []byte) []byte {
	switch v.kind {
	case null:
		return append(dst, "null"...)
	case text:
		return quote(dst, v.str[:min(len(v.str), limit)])
	case array:
		dst = append(dst, '[')
		for i := 0; i < len(v.items) && len(dst) <= limit; i++ {
			dst = v.items[i].encodeUpTo(limit, comma(dst, i))
		}
		return append(dst, ']')
	case object:
		dst = append(dst, '{')
		for i := 0; i < len(v.fields) && len(dst) <= limit; i++ {
			dst = append(quote(comma(dst, i), v.fields[i].name), ':')
			dst = v.fields[i].value.encodeUpTo(limit, dst)
		}
		return append(dst, '}')
	default:
		return append(dst, v.str...)
	}
}

func (v value) String() string { return string(v.encode(nil)) }

func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

// quote appends s as a JSON string. Unlike encoding/json it leaves <, > and &
// alone: a model that reads \u003c pays six tokens for one character.
func quote(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// clean makes s storable everywhere: valid UTF-8 without U+0000, which
// PostgreSQL refuses.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}
