package schema

import (
	"encoding/json"
	"errors"
	"strings"
)

// reading is what came of a text that should hold one JSON value.
type reading struct {
	value   value
	cut     bool // it ends inside a string or word, or where more had to come
	missing bool // it lacks closing brackets
	untidy  bool // it is not strict JSON
}

// understand reads the arguments that a model wrote, by the book if they are
// JSON, and else by guessing.
func understand(raw string) (reading, error) {
	raw = raw[skipBlank(raw, 0):]
	if json.Valid([]byte(raw)) {
		v, err := readStrict(raw)
		return unwrapText(reading{value: v}, err)
	}
	r, err := salvage(strip(raw))
	r.untidy = true
	return unwrapText(r, err)
}

// unwrapText reads on inside a text that holds an object, as of a model that
// encoded its arguments twice.
func unwrapText(r reading, err error) (reading, error) {
	s := strings.TrimSpace(r.value.str)
	if err != nil || r.value.kind != text || r.cut && s == "" {
		return r, err
	}
	if s == "" || s == "null" || s == "None" {
		return reading{value: value{kind: object}, untidy: true}, nil
	}
	if !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, `"{`) && !strings.HasPrefix(s, "```") {
		return r, nil
	}
	inner, err := understand(s) // shorter than what it stands in, by its quotes
	inner.cut = inner.cut || r.cut
	inner.untidy = true
	return inner, err
}

// strip takes the fence from around a value and the prose from before it.
func strip(raw string) string {
	if i := strings.Index(raw, "```"); i >= 0 && !strings.ContainsAny(raw[:i], `{["`) {
		raw = strings.TrimLeft(raw[i+3:], "`")
		if lang := strings.TrimLeft(raw, "abcdefghijklmnopqrstuvwxyzJSONPT_"); lang != "" {
			raw = lang
		}
		raw = strings.TrimRight(strings.TrimSpace(raw), "`")
	}
	raw = raw[skipBlank(raw, 0):]
	if open, _ := quotes(raw); raw == "" || raw[0] == '{' || raw[0] == '[' {
		return raw
	} else if nameAt(raw, 0, ":：") && strings.ContainsAny(raw, ":：") && (open != "" || !strings.Contains(raw, "{") && strings.HasSuffix(raw, "}")) {
		return "{" + raw // the first bracket was left out
	} else if open != "" {
		return raw
	}
	if i := strings.IndexByte(raw, '{'); i >= 0 {
		return raw[i:]
	}
	return raw
}

var errNoJSON = errors.New("there is no JSON object")

// salvage reads a broken value. Where the readings differ, one that uses up the
// text wins over one that leaves something over.
func salvage(s string) (reading, error) {
	first, rest, err := try(s, reader{})
	switch {
	case errors.Is(err, errDeep):
		return first, err
	case err == nil && !first.cut && harmless(rest):
		return first, nil
	case err == nil && first.value.kind == object && len(first.value.fields) == 0 && strings.HasPrefix(strings.ReplaceAll(rest, "{}", ""), "{"):
		for strings.HasPrefix(rest, "{}") { // streams begin with it on some servers
			rest = rest[skipBlank(rest, len("{}")):]
		}
		return salvage(rest)
	}
	for _, how := range []reader{{whole: true}, {plain: true}} {
		again, left, err := try(s, how)
		if err == nil && !again.cut && harmless(left) {
			return again, nil
		}
	}
	return first, err
}

// try reads s in one way; rest is what was left over.
func try(s string, p reader) (r reading, rest string, err error) {
	p.s = s
	v, err := p.value()
	p.i = skipBlank(s, p.i)
	return reading{value: v, cut: p.cut, missing: p.missing}, s[p.i:], err
}

// harmless reports whether a rest can be forgotten: it holds no JSON.
func harmless(rest string) bool {
	return strings.Trim(rest, "}]);`, \t\r\n") == "" || !strings.ContainsAny(rest, `"{`)
}

// Truncated reports whether arguments were cut off: whether they end inside a
// string or a word, or after a colon, a comma or an opening bracket, where
// something had to follow. Such a call must not run, for half a message would
// be taken for the whole.
//
// Arguments that only lack closing brackets don't count, since small models
// forget them. Whoever knows that the reply was cut by its length sets
// [Options.Cut], and then they count in [Schema.Decode].
func Truncated(raw string) bool {
	if strings.TrimSpace(raw) == "" {
		return false
	}
	r, _ := understand(raw)
	return r.cut
}
