package schema

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type insert struct {
	Label     string   `json:"label" enum:"human,persona"`
	Content   string   `json:"content" jsonschema:"what to remember"`
	Page      *int     `json:"page,omitempty"`
	Score     float64  `json:"score,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	Where     *address `json:"where,omitempty"`
	Heartbeat bool     `json:"request_heartbeat,omitempty"`
}

type say struct {
	Message string `json:"message"`
}

func schemaOf[T any](t testing.TB) *Schema {
	t.Helper()
	s, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecodeCoerces(t *testing.T) {
	s := schemaOf[insert](t)
	options := Options{Aliases: map[string]string{"name": "label", "text": "content"}}
	for _, c := range []struct{ name, raw, want string }{
		{"as is", `{"label":"human","content":"x"}`, `{"label":"human","content":"x"}`},
		{"alias", `{"name":"human","text":"x"}`, `{"label":"human","content":"x"}`},
		{"alias beside the name", `{"label":"human","name":"persona","content":"x"}`, `{"label":"human","content":"x"}`},
		{"spelling of a name", `{"Label":"human","content":"x","requestHeartbeat":true}`, `{"label":"human","content":"x","request_heartbeat":true}`},
		{"unknown dropped", `{"inner_thoughts":"t","label":"human","content":"x","mood":1}`, `{"label":"human","content":"x"}`},
		{"text to boolean", `{"label":"human","content":"x","request_heartbeat":"True"}`, `{"label":"human","content":"x","request_heartbeat":true}`},
		{"number to boolean", `{"label":"human","content":"x","request_heartbeat":1}`, `{"label":"human","content":"x","request_heartbeat":true}`},
		{"zero to boolean", `{"label":"human","content":"x","request_heartbeat":"0"}`, `{"label":"human","content":"x","request_heartbeat":false}`},
		{"text to integer", `{"label":"human","content":"x","page":"0"}`, `{"label":"human","content":"x","page":0}`},
		{"fraction to integer", `{"label":"human","content":"x","page":"2.0"}`, `{"label":"human","content":"x","page":2}`},
		{"float to integer", `{"label":"human","content":"x","page":2.0}`, `{"label":"human","content":"x","page":2.0}`},
		{"none to nothing", `{"label":"human","content":"x","page":"none"}`, `{"label":"human","content":"x"}`},
		{"null to nothing", `{"label":"human","content":"x","page":null,"tags":null}`, `{"label":"human","content":"x"}`},
		{"none is a text", `{"label":"human","content":"None"}`, `{"label":"human","content":"None"}`},
		{"text to number", `{"label":"human","content":"x","score":"-1.50"}`, `{"label":"human","content":"x","score":-1.50}`},
		{"number to text", `{"label":"human","content":12345678901234567890}`, `{"label":"human","content":"12345678901234567890"}`},
		{"boolean to text", `{"label":"human","content":true}`, `{"label":"human","content":"true"}`},
		{"object to text", `{"label":"human","content":{"event":"Birthday", "date":"2023-1-1"}}`, `{"label":"human","content":"{\"event\":\"Birthday\",\"date\":\"2023-1-1\"}"}`},
		{"array to text", `{"label":"human","content":["a",1]}`, `{"label":"human","content":"[\"a\",1]"}`},
		{"one to array", `{"label":"human","content":"x","tags":"a, b"}`, `{"label":"human","content":"x","tags":["a, b"]}`},
		{"text to array", `{"label":"human","content":"x","tags":"[\"a\", \"b\"]"}`, `{"label":"human","content":"x","tags":["a","b"]}`},
		{"Python text to array", `{"label":"human","content":"x","tags":"['a', 'b']"}`, `{"label":"human","content":"x","tags":["a","b"]}`},
		{"items", `{"label":"human","content":"x","tags":[1,true]}`, `{"label":"human","content":"x","tags":["1","true"]}`},
		{"text to object", `{"label":"human","content":"x","where":"{\"street\":5}"}`, `{"label":"human","content":"x","where":{"street":"5"}}`},
		{"nested", `{"label":"human","content":"x","where":{"street":"s","floor":"3","zip":1}}`, `{"label":"human","content":"x","where":{"street":"s","floor":3}}`},
		{"enum", `{"label":" Human ","content":"x"}`, `{"label":"human","content":"x"}`},
		{"encoded twice", `"{\"label\":\"human\",\"content\":\"x\"}"`, `{"label":"human","content":"x"}`},
		{"whole call", `{"name":"insert","arguments":{"label":"human","content":"x"}}`, `{"label":"human","content":"x"}`},
		{"in a list", `[{"label":"human","content":"x"}]`, `{"label":"human","content":"x"}`},
		{"twice the key", `{"label":"persona","content":"x","label":"human"}`, `{"label":"human","content":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, notes, err := s.Decode(c.raw, options)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, string(got)); d != "" {
				t.Error(d)
			}
			if (len(notes) == 0) != (string(got) == c.raw) && c.name != "twice the key" {
				t.Errorf("notes %v", notes)
			}
			var to insert
			if err := json.Unmarshal(got, &to); err != nil && c.name != "float to integer" {
				t.Error(err)
			}
		})
	}
}

func TestDecodeNothing(t *testing.T) {
	s := schemaOf[struct {
		Page int `json:"page,omitempty"`
	}](t)
	for _, raw := range []string{"", " \n", "null", "{}", `""`, "None", `"null"`, "```json\n{}\n```"} {
		if got, _, err := s.Decode(raw, Options{}); err != nil || string(got) != "{}" {
			t.Errorf("%q: %s, %v", raw, got, err)
		}
	}
}

func TestDecodeExplains(t *testing.T) {
	s := schemaOf[insert](t)
	usage := `Arguments: label: "human" or "persona"; content: string; page?: integer; score?: number; tags?: list of string; ` +
		`where?: object {street: string, floor?: integer}; request_heartbeat?: boolean. ` +
		`Write them as one JSON object, like {"label":"human","content":"..."}`
	for _, c := range []struct{ raw, want string }{
		{`{"label":"human"}`, `"content" is missing`},
		{`{"label":"human","contents":"x"}`, `"content" is missing (you wrote "contents")`},
		{`{"label":"humn","content":"x"}`, `"label" must be "human" or "persona", but is "humn"; did you mean "human"?`},
		{`{"label":"human","content":"x","page":"two"}`, `"page" must be integer, but is "two"`},
		{`{"label":"human","content":"x","page":2.5}`, `"page" must be integer, but is 2.5`},
		{`{"label":"human","content":null}`, `"content" is missing`},
		{`{"label":"human","content":"x","where":{"floor":1}}`, `"where.street" is missing`},
		{`{"label":"human","content":"x","tags":[null]}`, `"tags[0]" must be string, but is null`},
		{`hello there`, "not a JSON object"},
		{`[1,2]`, "not a JSON object"},
		{`{"label" "human"}`, `expected ":" after the name "label"`},
		{strings.Repeat(`{"a":`, 500), "deeper"},
		{strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500), "deeper"},
		{`{"label":"human","content":"long te`, "cut off"},
	} {
		_, _, err := s.Decode(c.raw, Options{Function: "insert"})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), usage) ||
			!strings.HasPrefix(err.Error(), "wrong arguments for insert: ") {
			t.Errorf("%.60s:\n got %v\nwant %s", c.raw, err, c.want)
		}
	}
}

func TestDecodeForeign(t *testing.T) {
	for _, c := range []struct{ schema, raw, want string }{
		{`{}`, `{"any":{"thing":[1]}}`, `{"any":{"thing":[1]}}`},
		{`{"properties":{"a":{}},"additionalProperties":true}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{`{"properties":{"a":{}}}`, `{"a":1,"b":2}`, `{"a":1}`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":"None"}`, `{"a":"None"}`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":""}`, `{"a":""}`},
		{`{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"a":"7"}`, `{"a":7}`},
		{`{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"a":null}`, `{"a":null}`},
		{`{"properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`, `{"a":"7"}`, `{"a":"7"}`},
		{`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"boolean"}}}`, `{"a":"false"}`, `{"a":false}`},
		{`{"properties":{"a":{"type":"string","nullable":true}}}`, `{"a":null}`, `{"a":null}`},
		{`{"properties":{"a":{"type":"integer"}}}`, `{"a":123456789012345678901234567890}`, `{"a":123456789012345678901234567890}`},
		{`{"properties":{"a":{"type":"integer"}}}`, `{"a":"1e3"}`, `{"a":1000}`},
		{`{"allOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"b":{"type":"string"}}}]}`, `{"a":"1","b":2,"c":3}`, `{"a":1,"b":"2"}`},
		{`{"properties":{"a":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}}`, `{"a":{"n":"1"}}`, `{"a":[{"n":1}]}`},
	} {
		got, _, err := parse(t, c.schema).Decode(c.raw, Options{})
		if err != nil || string(got) != c.want {
			t.Errorf("%s of %s:\n got %s, %v\nwant %s", c.raw, c.schema, got, err, c.want)
		}
	}
}

func TestDecodeTypesOnly(t *testing.T) {
	s := parse(t, `{"properties":{"a":{"type":"integer","minimum":5}},"required":["a"]}`)
	if _, _, err := s.Decode(`{"a":1}`, Options{}); err == nil || !strings.Contains(err.Error(), `"a" must be at least 5, but is 1`) {
		t.Error(err)
	}
	if _, _, err := s.Decode(`{"a":1}`, Options{TypesOnly: true}); err != nil {
		t.Error(err)
	}
	for _, raw := range []string{`{}`, `{"a":"x"}`} {
		if _, _, err := s.Decode(raw, Options{TypesOnly: true}); err == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
}

// What is inside of a string arrives byte for byte, in good JSON and in bad.
func TestTextSurvives(t *testing.T) {
	texts := []string{
		"printf(\"%d\\n\", a[\"x\"]);\tint b = '\\0';\n\treturn {1, 2};\n",
		`C:\path\to\new\table.txt`, `\d+\s*"(\w+)"\\`, "“full‑width”，：；！ ｛｝ and 中文。", "```json\n{\"a\": 1}\n```", `{"a": "b"}`, `"`, `\`,
		"a // no comment\n# nor this /* or this */", "  blanks kept\t \n", "emoji 👩‍👩‍👧 and \u2028 and \u007f", "'single' `back`", `ends with \"`, "true", "NaN", "</function></tool_call>",
	}
	s := schemaOf[say](t)
	for _, text := range texts {
		good := `{"message": ` + string(quote(nil, text)) + `}`
		raw := strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(good)
		bad := []string{good, good[:len(good)-1], "```json\n" + good + "\n```", "Sure:\n" + good, good[:len(good)-1] + ",}", good + "}", string(quote(nil, good))}
		if !strings.Contains(text, `\`) { // else the replacement hits escaped backslashes
			bad = append(bad, raw, raw[:len(raw)-1])
		}
		for _, arguments := range bad {
			got, _, err := s.Decode(arguments, Options{})
			if err != nil {
				t.Errorf("%s: %v", arguments, err)
				continue
			}
			var to say
			mustUnmarshal(t, got, &to)
			if d := cmp.Diff(text, to.Message); d != "" {
				t.Errorf("%s:\n%s", arguments, d)
			}
		}
	}
}

func TestTextIsCleaned(t *testing.T) {
	for raw, want := range map[string]string{
		`{"message":"a\ud83d b"}`:          "a\uFFFD b",
		`{"message":"a\ude00"}`:            "a\uFFFD",
		`{"message":"\ud83d\ud83d\ude00"}`: "\uFFFD😀",
		`{"message":"\ud83d\u0041"}`:       "\uFFFDA",
		`{"message":"a\u0000b"}`:           "ab",
		"{\"message\":\"a\x00b\"}":         "ab",
		"{\"message\":\"a\xff\xfeb\"}":     "a\uFFFDb",
		"{\"message\":\"a\xff\",}":         "a\uFFFD",
	} {
		got, _, err := schemaOf[say](t).Decode(raw, Options{})
		if err != nil {
			t.Errorf("%q: %v", raw, err)
			continue
		}
		var to say
		mustUnmarshal(t, got, &to)
		if to.Message != want {
			t.Errorf("%q: got %q, want %q", raw, to.Message, want)
		}
	}
}

// Breakages as models make them, each with the one right reading.
func TestRepair(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"trailing comma", `{"a":1,"b":[1,2,],}`, `{"a":1,"b":[1,2]}`},
		{"missing comma", `{"a":"x" "b":"y"}`, `{"a":"x","b":"y"}`},
		{"missing comma between lines", "{\"a\":1\n\"b\":\"y\"}", `{"a":1,"b":"y"}`},
		{"missing brace", `{"a":{"b":"x"}`, `{"a":{"b":"x"}}`},
		{"missing bracket", `{"a":["x","y"}`, `{"a":["x","y"]}`},
		{"missing bracket and quotes in text", `{"a":["say "q" now"}`, `{"a":["say \"q\" now"]}`},
		{"missing all", `{"a":{"b":["x"`, `{"a":{"b":["x"]}}`},
		{"missing first brace", `"a":"x","b":1}`, `{"a":"x","b":1}`},
		{"brace too many", `{"a":"x"}}`, `{"a":"x"}`},
		{"single quotes", `{'a':'x','b':'it\'s'}`, `{"a":"x","b":"it's"}`},
		{"apostrophe in single quotes", `{'a':'it's fine','b':1}`, `{"a":"it's fine","b":1}`},
		{"Python words", `{"a":True,"b":False,"c":None}`, `{"a":true,"b":false,"c":null}`},
		{"names without quotes", `{a:"x",b_c:1}`, `{"a":"x","b_c":1}`},
		{"text without quotes", `{"a":hello world,"b":1}`, `{"a":"hello world","b":1}`},
		{"quotes in text", `{"a":"he said "hi, you" and left","b":1}`, `{"a":"he said \"hi, you\" and left","b":1}`},
		{"code in text", `{"a":"printf("%d\n", a["x"]);"}`, `{"a":"printf(\"%d\n\", a[\"x\"]);"}`},
		{"JSON in text", `{"a":"use {"k": "v"} here"}`, `{"a":"use {\"k\": \"v\"} here"}`},
		{"line break in text", "{\"a\":\"l1\nl2\"}", `{"a":"l1\nl2"}`},
		{"tab in text", "{\"a\":\"x\ty\"}", `{"a":"x\ty"}`},
		{"semicolons", `{"a":"x"; "b":1}`, `{"a":"x","b":1}`},
		{"expression", `{"a":"\d+\_\s"}`, `{"a":"\\d+\\_\\s"}`},
		{"bad escape", `{"a":"C:\path\_x"}`, `{"a":"C:\\path\\_x"}`},
		{"drive", `{"a":"C:\new\path"}`, `{"a":"C:\\new\\path"}`},
		{"escaped name", `{"inner\_a":"x"}`, `{"inner_a":"x"}`},
		{"comments", "{\"a\":1, // one\n /* two */ \"b\":2 # three\n}", `{"a":1,"b":2}`},
		{"fence", "```json\n{\"a\":1}\n```", `{"a":1}`},
		{"prose around", `Here you are: {"a":"x"} I hope this helps.`, `{"a":"x"}`},
		{"prose and fence", "Here:\n```\n{\"a\":1}\n```\nDone.", `{"a":1}`},
		{"quotes of full width", `{“a”:“x”，＂b＂：1}`, `{"a":"x","b":1}`},
		{"triple quotes", "{\"a\":\"\"\"l1\n\"q\" l2\"\"\"}", `{"a":"l1\n\"q\" l2"}`},
		{"numbers", `{"a":.5,"b":+1,"c":1_000,"d":007}`, `{"a":0.5,"b":1,"c":1000,"d":"007"}`},
		{"arrow", `{"a"=>1,"b"=2}`, `{"a":1,"b":2}`},
		{"empty object first", `{}{"a":1}`, `{"a":1}`},
		{"two objects", `{"a":1}{"a":2}`, `{"a":1}`},
		{"byte order mark", "\ufeff{\"a\":1}", `{"a":1}`},
		{"Python escapes", `{'a':'\xe9'}`, `{"a":"é"}`},
		{"missing value", `{"a":,"b":1}`, `{"a":null,"b":1}`},
		{"encoded twice and broken", `"{\"a\":\"x\",}"`, `{"a":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := understand(c.raw)
			if err != nil || r.cut {
				t.Fatalf("cut %v, %v", r.cut, err)
			}
			if d := cmp.Diff(c.want, r.value.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"message": "long te`:             true,
		`{"message": "ends in escape \`:    true,
		`{"message": "escaped quote \"`:    true,
		`{"message": "escaped quote \"}`:   true,
		`{"message": "half \u00`:           true,
		`{"message":`:                      true,
		`{"message"`:                       true,
		`{"mess`:                           true,
		`{"message": "x",`:                 true,
		`{`:                                true,
		`{"a": [`:                          true,
		`{"a": tru`:                        true,
		`{"a": 1.`:                         true,
		`{"a": -`:                          true,
		`"{\"message\": \"long te`:         true,
		`"{\"message\": \"long te"`:        true,
		"```json\n{\"message\": \"long te": true,
		`{"a":{"b":"x"},"c":{"d":"y`:       true,
		`{"a":1`:                           false,
		`{"a":true`:                        false,
		`{"a":"b"`:                         false,
		`{"a":{"b":["c"`:                   false,
		`{"a":1}`:                          false,
		`{"a":"b",}`:                       false,
		``:                                 false,
		`null`:                             false,
		`{"a":"x "y" z"}`:                  false,
		`{'a':'b'}`:                        false,
	} {
		if got := Truncated(raw); got != want {
			t.Errorf("%s: %v", raw, got)
		}
		_, _, err := parse(t, `{}`).Decode(raw, Options{})
		if f := AsFault(err); (f != nil && f.Cut) != want {
			t.Errorf("Decode %s: %v", raw, err)
		}
	}
}

func TestTruncatedEverywhere(t *testing.T) {
	const whole = `{"message": "he said \"hi\" \u00e9", "n": [1, {"x": "y"}]}`
	s := parse(t, `{}`)
	for i := 1; i < len(whole); i++ {
		if got, _, err := s.Decode(whole[:i], Options{Cut: true}); err == nil {
			t.Errorf("%s became %s", whole[:i], got)
		}
		got, _, err := s.Decode(whole[:i], Options{})
		if err == nil && !strings.HasPrefix(string(got), `{"message":"he said \"hi\" é"`) {
			t.Errorf("half a message was let through: %s became %s", whole[:i], got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"label":"human","content":"x"}`, `{"content":{"a":[1,"b"]},"page":"1e5"}`, "```json\n{'a':'it's'}\n```",
		`"{\"label\":\"human\"}"`, `{“a”:“x”，`, `{"a":"C:\new\u12`, `{"tags":"['a']","where":"{}"}`, `{"a":"""x"""}`, "{a:b//\n}"} {
		f.Add(seed)
	}
	free, strict := parse(f, `{}`), schemaOf[insert](f)
	f.Fuzz(func(t *testing.T, raw string) {
		for _, s := range []*Schema{free, strict} {
			got, _, err := s.Decode(raw, Options{})
			if err != nil {
				if AsFault(err) == nil || !utf8.ValidString(err.Error()) {
					t.Fatalf("%q: %v", raw, err)
				}
				continue
			}
			to, err := exactly(got)
			if err != nil || !utf8.Valid(got) || len(got) > 8*len(raw)+64 {
				t.Fatalf("%q gave %q: %v", raw, got, err)
			}
			if s == free {
				sameAsLibrary(t, raw, to)
			}
		}
		Truncated(raw)
		// Any text at all survives in an argument.
		wrapped, _, err := free.Decode(`{"message":`+string(quote(nil, clean(raw)))+`}`, Options{})
		var to say
		if err != nil || json.Unmarshal(wrapped, &to) != nil || to.Message != clean(raw) {
			t.Fatalf("%q became %q: %v", raw, to.Message, err)
		}
	})
}

// exactly reads an object without rounding its numbers.
func exactly(b []byte) (to map[string]any, err error) {
	if !json.Valid(b) {
		return nil, errNoJSON
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return to, d.Decode(&to)
}

// sameAsLibrary fails if raw is an object that encoding/json reads differently.
func sameAsLibrary(t *testing.T, raw string, got map[string]any) {
	t.Helper()
	want, err := exactly([]byte(raw))
	if err != nil || want == nil || strings.Contains(raw, `\u0000`) || !utf8.ValidString(raw) {
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%q: %s", raw, d)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range foreign {
		f.Add(seed, `{"a":"1","v":[{}]}`)
	}
	f.Fuzz(func(t *testing.T, raw, args string) {
		s, err := Parse(json.RawMessage(raw))
		if err != nil {
			return
		}
		kept, err := exactly(s.JSON())
		if err != nil {
			t.Fatal(err)
		}
		if raw != "" && raw != "null" {
			sameAsLibrary(t, raw, kept)
		}
		if _, _, err := s.Decode(args, Options{}); err != nil && AsFault(err) == nil {
			t.Fatal(err)
		}
	})
}
