package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

type address struct {
	Street string `json:"street" jsonschema:"street & number"`
	Floor  *int   `json:"floor,omitempty"`
}

type everything struct {
	Zeta   string          `json:"zeta" jsonschema:"the last letter comes <first>"`
	Alpha  *string         `json:"alpha,omitempty"`
	Mood   string          `json:"mood,omitempty" enum:"good,bad"`
	Level  int             `json:"level,omitempty" enum:"1,2,3"`
	Tags   []string        `json:"tags,omitempty" enum:"day,night"`
	Homes  []address       `json:"homes"`
	Extra  map[string]int  `json:"extra,omitzero"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	hidden int
	Skip   string `json:"-"`
}

func TestFor(t *testing.T) {
	s, err := For[everything]()
	if err != nil {
		t.Fatal(err)
	}
	_ = everything{}.hidden
	const home = `{"type":"object","properties":{"street":{"type":"string","description":"street & number"},"floor":{"type":"integer"}},` +
		`"required":["street"],"additionalProperties":false}`
	want := `{"type":"object","properties":{` +
		`"zeta":{"type":"string","description":"the last letter comes <first>"},` +
		`"alpha":{"type":"string"},` +
		`"mood":{"type":"string","enum":["good","bad"]},` +
		`"level":{"type":"integer","enum":[1,2,3]},` +
		`"tags":{"type":"array","items":{"type":"string","enum":["day","night"]}},` +
		`"homes":{"type":"array","items":` + home + `},` +
		`"extra":{"type":"object","additionalProperties":{"type":"integer"}},` +
		`"raw":{}},"required":["zeta","homes"],"additionalProperties":false}`
	var got, wanted any
	mustUnmarshal(t, s.JSON(), &got)
	mustUnmarshal(t, []byte(want), &wanted)
	if d := cmp.Diff(wanted, got); d != "" {
		t.Error(d)
	}
	inOrder(t, string(s.JSON()), `"zeta"`, `"alpha"`, `"mood"`, `"level"`, `"tags"`, `"homes"`, `"extra"`, `"raw"`)
	if again, _ := For[everything](); string(again.JSON()) != string(s.JSON()) {
		t.Error("not deterministic")
	}
	resolve(t, s.JSON())
}

func inOrder(t *testing.T, s string, parts ...string) {
	t.Helper()
	at := 0
	for _, p := range parts {
		i := strings.Index(s[at:], p)
		if i < 0 {
			t.Fatalf("%s is missing or out of order in %s", p, s)
		}
		at += i
	}
}

func mustUnmarshal(t *testing.T, b []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
}

func resolve(t *testing.T, raw []byte) *jsonschema.Resolved {
	t.Helper()
	var js jsonschema.Schema
	mustUnmarshal(t, raw, &js)
	r, err := js.Resolve(nil)
	if err != nil {
		t.Fatalf("the library refuses %s: %v", raw, err)
	}
	return r
}

func TestForEmpty(t *testing.T) {
	s, err := For[struct{}]()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(s.JSON()), `{"type":"object","properties":{},"additionalProperties":false}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type circle struct {
	Next *circle `json:"next"`
}

type badEnum struct {
	N int `json:"n" enum:"one"`
}

func TestForRefuses(t *testing.T) {
	if _, err := For[string](); err == nil {
		t.Error("a string has no arguments")
	}
	if _, err := For[circle](); err == nil {
		t.Error("a type that holds itself")
	}
	if _, err := For[badEnum](); err == nil || !strings.Contains(err.Error(), "enum of n") {
		t.Errorf("wrong enum: %v", err)
	}
	if _, err := For[struct{ C chan int }](); err == nil {
		t.Error("a channel")
	}
}

// foreign are schemas as users and MCP servers write them.
var foreign = []string{
	`{}`,
	`{"type":"object"}`,
	`{"type":"object","properties":null}`,
	`{"type":["object","null"],"properties":{"a":{"type":["string","null"],"default":null}}}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"$ref":"#/definitions/n"}},"definitions":{"n":{"type":"integer"}}}`,
	`{"type":"object","properties":{"v":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}}}`,
	`{"type":"object","properties":{"v":{"oneOf":[{"const":"a"},{"enum":[1,2.50,null]}]}}}`,
	`{"type":"object","properties":{"tree":{"$ref":"#/$defs/tree"}},"$defs":{"tree":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}}}`,
	`{"type":"object","properties":{"x/y~z":{"type":"string"},"same":{"$ref":"#/properties/x~1y~0z"}}}`,
	`{"type":"object","properties":{"a":{"$ref":"#here"}},"$defs":{"x":{"$anchor":"here","type":"string"}}}`,
	`{"type":"object","properties":{"self":{"$ref":"#"}}}`,
	`{"type":"object","properties":{"p":{"type":"string","pattern":"^(?=a)b"}}}`,
	`{"type":"object","properties":{"t":{"type":"array","items":[{"type":"string"}],"additionalItems":{"type":"integer"}}}}`,
	`{"type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`,
	`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"required":["a"]}]}`,
	`{"type":"object","properties":{"big":{"const":12345678901234567890123}},"x-note":"<b> & c"}`,
}

func TestParse(t *testing.T) {
	for _, raw := range foreign {
		s, err := Parse(json.RawMessage(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if string(s.JSON()) != raw {
			t.Errorf("changed:\n %s\n %s", raw, s.JSON())
		}
		for _, args := range []string{`{}`, `{"a":"x"}`, `{"v":"1","n":"2","tree":{"kids":["x",{"kids":[]}]},"self":{"self":{}}}`, `{"t":["a",1]}`} {
			if _, _, err := s.Decode(args, Options{}); err != nil && AsFault(err) == nil {
				t.Errorf("%s of %s: %v", args, raw, err)
			}
		}
	}
}

func TestParseNothing(t *testing.T) {
	for _, raw := range []string{"", "null"} {
		s, err := Parse(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.Decode(`{"inner_thoughts":"x"}`, Options{}); err != nil || string(got) != "{}" {
			t.Errorf("%q: %s, %v", raw, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{`{`, "unexpected end"},
		{`[]`, "an object, true or false"},
		{`true`, "describe an object"},
		{`{"type":"string"}`, "describe an object"},
		{`{"type":"objekt"}`, `/type: "objekt" is no type`},
		{`{"properties":{"a":{"type":3}}}`, "/properties/a/type"},
		{`{"properties":[]}`, "/properties: has to be an object"},
		{`{"properties":{"a":"string"}}`, "/properties/a: a schema is"},
		{`{"required":"a"}`, "/required: has to be a list of names"},
		{`{"required":[1]}`, "/required"},
		{`{"properties":{"a":{"enum":"x"}}}`, "/properties/a/enum"},
		{`{"properties":{"a":{"minimum":"3"}}}`, "/properties/a/minimum"},
		{`{"properties":{"a":{"pattern":1}}}`, "/properties/a/pattern"},
		{`{"anyOf":[]}`, "/anyOf"},
		{`{"$ref":"#/nowhere"}`, "leads to nothing"},
		{`{"$ref":"https://example.com/x.json"}`, "leads outside"},
		{`{"$ref":"#"}`, "refers to itself"},
		{`{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "refers to itself"},
		{strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat(`}`, 200), "deeper"},
		{`{"x":"` + strings.Repeat("x", maxSchema) + `"}`, "more than"},
	} {
		_, err := Parse(json.RawMessage(c.raw))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: got %v, want %q", c.raw, err, c.want)
		}
	}
}

// Alternatives within alternatives double the work at each step.
func TestParseNoExplosion(t *testing.T) {
	defs := []string{`"d0":{"type":"string"}`}
	for i := 1; i < 40; i++ {
		p, n := string(rune('0'+(i-1)/10))+string(rune('0'+(i-1)%10)), string(rune('0'+i/10))+string(rune('0'+i%10))
		if i == 1 {
			p = "0"
		}
		defs = append(defs, `"d`+n+`":{"anyOf":[{"$ref":"#/$defs/d`+p+`"},{"$ref":"#/$defs/d`+p+`"}]}`)
	}
	if _, err := Parse(json.RawMessage(`{"properties":{"a":{"$ref":"#/$defs/d39"}},"$defs":{` + strings.Join(defs, ",") + `}}`)); err == nil {
		t.Error("2^39 schemas for one value were accepted")
	}
	twice := `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}},` +
		`"$defs":{"n":{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}},"required":["a"]}}}`
	s := parse(t, twice)
	_, _, err := s.Decode(strings.Repeat(`{"a":`, 60)+`1`+strings.Repeat(`}`, 60), Options{})
	if err == nil {
		t.Error("wrong arguments were accepted")
	}
}

func parse(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := Parse(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return s
}

func TestUsage(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"mode":{"$ref":"#/$defs/mode"},"who":{"type":"object","properties":{"age":{"type":"integer"},`+
		`"tall":{"type":"boolean"}},"required":["age"]},"list":{"type":"array","items":{"type":"number"}},"any":{},"maybe":{"type":["string","null"]},`+
		`"never":false},"required":["mode","who","list","any"],"$defs":{"mode":{"enum":["on",0]}}}`)
	want := `mode: "on" or 0; who: object {age: integer, tall?: boolean}; list: list of number; any: anything; maybe?: string or null; never?: nothing`
	if d := cmp.Diff(want, s.Usage()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(`{"mode":"on","who":{"age":0},"list":[],"any":"..."}`, s.Example()); d != "" {
		t.Error(d)
	}
	if got := parse(t, `{}`).Usage(); got != "any names and values" {
		t.Error(got)
	}
	if got := parse(t, ``).Usage(); got != "none" {
		t.Error(got)
	}
	if b, err := json.Marshal(s); err != nil || !json.Valid(b) {
		t.Error(err)
	}
}

// A megabyte of arguments is read in linear time, however odd it is; what can't
// be understood may be refused.
func TestDecodeLarge(t *testing.T) {
	s := schemaOf[insert](t)
	for _, c := range []struct {
		raw string
		ok  bool
	}{
		{`{"label":"human","content":"x","tags":[` + strings.Repeat(`"y",`, 100_000) + `"z"]}`, true},
		{`{"label":"human","content":` + strings.Repeat(`[`, 90) + strings.Repeat(`]`, 90) + `}`, true},
		{`{"label":"human","content":"` + strings.Repeat(`say "hi", `, 100_000) + `"}`, false},
		{`{"label":"human","content":"` + strings.Repeat("\" \n\t", 100_000) + `"}`, false},
		{`{` + strings.Repeat(`"contents":"x","q":1,`, 50_000) + `}`, false},
		{strings.Repeat(`{}`, 200_000), false},
		{strings.Repeat(`"`, 400_000), false},
		{strings.Repeat(`\"`, 200_000), false},
		{strings.Repeat("```", 100_000), false},
	} {
		if _, _, err := s.Decode(c.raw, Options{}); (err == nil) != c.ok {
			t.Errorf("%.60s: %.200v", c.raw, err)
		}
	}
}

// The library is the oracle for what meets a schema.
func TestCheckAgreesWithLibrary(t *testing.T) {
	schemas := []string{
		`{"type":"object","properties":{"a":{"type":"integer","minimum":2,"maximum":9,"multipleOf":2}},"required":["a"]}`,
		`{"properties":{"a":{"type":["string","null"],"minLength":2,"maxLength":3,"pattern":"^h"}}}`,
		`{"properties":{"a":{"exclusiveMinimum":1,"exclusiveMaximum":3}},"additionalProperties":false}`,
		`{"properties":{"a":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3,"uniqueItems":true}}}`,
		`{"properties":{"a":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}}`,
		`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer","minimum":3}]}}}`,
		`{"properties":{"a":{"oneOf":[{"type":"integer"},{"type":"number","minimum":3}]}}}`,
		`{"properties":{"a":{"not":{"type":"string"}}}}`,
		`{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]},"else":{"properties":{"a":{"type":"string"}}}}`,
		`{"additionalProperties":{"type":"integer"},"patternProperties":{"^b":{"type":"string"}}}`,
		`{"properties":{"a":{"enum":[1,"hi",null,[1,2],{"x":1}]}},"minProperties":1,"maxProperties":1}`,
		`{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"additionalProperties":false}}}`,
		`{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"minLength":2}}}]}`,
	}
	values := []string{`1`, `2`, `3`, `4.0`, `2.5`, `10`, `"h"`, `"hi"`, `"héy"`, `"xyz"`, `"hiiii"`, `null`, `true`, `[]`, `[1,2]`, `[2,2]`,
		`["x",1]`, `["x","y"]`, `[1,2,3,4]`, `{}`, `{"x":1}`, `{"x":1.0}`, `{"a":{"a":{}}}`, `{"a":{"b":{}}}`, `-1e3`}
	for _, raw := range schemas {
		oracle, s := resolve(t, []byte(raw)), parse(t, raw)
		for _, v := range values {
			for _, doc := range []string{`{"a":` + v + `}`, `{"b":` + v + `}`, `{"a":` + v + `,"b":` + v + `}`} {
				var instance any
				mustUnmarshal(t, []byte(doc), &instance)
				read, err := readStrict(doc)
				if err != nil {
					t.Fatal(err)
				}
				problems := (&walk{fuel: fuel}).check(s.root, read, "")
				if want := oracle.Validate(instance); (want == nil) != (len(problems) == 0) {
					t.Errorf("%s\n on %s: library %v, we %q", doc, raw, want, problems)
				}
			}
		}
	}
}
