package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// writtenForms are the ways in which models write one call, by what they come from. args is a JSON object of texts.
var writtenForms = map[string]func(name, args string) string{
	"bare JSON":       func(n, a string) string { return `{"name": "` + n + `", "arguments": ` + a + `}` },
	"JSON over lines": func(n, a string) string { return "{\n  \"name\": \"" + n + "\",\n  \"arguments\": " + a + "\n}" },
	"fenced JSON":     func(n, a string) string { return "```json\n{\"name\": \"" + n + "\", \"arguments\": " + a + "}\n```" },
	"fence":           func(n, a string) string { return "```\n{\"name\":\"" + n + "\",\"arguments\":" + a + "}\n```" },
	"first MemGPT":    func(n, a string) string { return `{"function": "` + n + `", "params": ` + a + `}` },
	"tool and args":   func(n, a string) string { return `{"tool": "` + n + `", "args": ` + a + `}` },
	"wire": func(n, a string) string {
		return `{"tool_calls":[{"id":"c1","type":"function","function":{"name":"` + n + `","arguments":` + string(quote(nil, a)) + `}}]}`
	},
	"list": func(n, a string) string { return `[{"name":"` + n + `","arguments":` + a + `}]` },
	"Hermes": func(n, a string) string {
		return "<tool_call>\n{\"name\": \"" + n + "\", \"arguments\": " + a + "}\n</tool_call>"
	},
	"Qwen XML": func(n, a string) string {
		return "<tool_call>\n<function=" + n + ">\n" + parameterTags(a) + "</function>\n</tool_call>"
	},
	"Llama 3.1 JSON": func(n, a string) string { return `{"name": "` + n + `", "parameters": ` + a + `}` },
	"Llama python_tag": func(n, a string) string {
		return `<|python_tag|>{"name": "` + n + `", "parameters": ` + a + `}<|eom_id|>`
	},
	"Llama function":   func(n, a string) string { return `<function=` + n + `>` + a + `</function>` },
	"Llama 4 Pythonic": func(n, a string) string { return "[" + pythonCall(n, a) + "]" },
	"Pythonic":         pythonCall,
	"fenced Pythonic":  func(n, a string) string { return "```python\n" + pythonCall(n, a) + "\n```" },
	"Mistral":          func(n, a string) string { return `[TOOL_CALLS] [{"name": "` + n + `", "arguments": ` + a + `}]` },
	"Mistral new":      func(n, a string) string { return `[TOOL_CALLS]` + n + `[ARGS]` + a },
	"DeepSeek V3": func(n, a string) string {
		return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>" + n + "\n```json\n" + a + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
	},
	"DeepSeek V3.1": func(n, a string) string {
		return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>" + n + "<｜tool▁sep｜>" + a + "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
	},
}

func parameterTags(args string) string {
	v, err := readStrict(args)
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	for _, f := range v.fields {
		fmt.Fprintf(&b, "<parameter=%s>\n%s\n</parameter>\n", f.name, f.value.str)
	}
	return b.String()
}

func pythonCall(name, args string) string {
	v, err := readStrict(args)
	if err != nil {
		panic(err)
	}
	words := make([]string, len(v.fields))
	for i, f := range v.fields {
		words[i] = f.name + "=" + string(quote(nil, f.value.str))
	}
	return name + "(" + strings.Join(words, ", ") + ")"
}

func decoded(t *testing.T, args string) map[string]any {
	t.Helper()
	got, _, err := parse(t, `{}`).Decode(args, Options{})
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(got, &m)
	}
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return m
}

// TestReadReplyForms reads each form alone, between prose, twice, with an invented result behind, and cut at every byte.
func TestReadReplyForms(t *testing.T) {
	const args = `{"label": "human", "content": "drinks tea, \"never\" wine: 不能喝酒 <b>{x}</b>"}`
	known := knownTo("send_message", "core_memory_append")
	want := decoded(t, args)
	for name, form := range writtenForms {
		t.Run(name, func(t *testing.T) {
			one, two := form("core_memory_append", args), form("send_message", `{"message": "noted"}`)
			for text, rest := range map[string]string{
				one:                    "",
				"I keep that.\n" + one: "I keep that.",
				"I keep that.\n\n" + one + "\nThen rest.":                                                                "I keep that.\nThen rest.",
				one + "\nFUNCTION RETURN: {\"status\": \"OK\"}\nand more":                                                "",
				one + "\n{\"type\": \"function_result\", \"of\": \"x\", \"result\": {\"status\": \"OK\"}}":               "",
				one + "\n{\"type\": \"tool_response\", \"name\": \"send_message\", \"arguments\": {\"message\": \"x\"}}": "",
			} {
				r := ReadReply(text, known)
				if len(r.Calls) != 1 || r.Calls[0].Name != "core_memory_append" || r.Rest != rest || r.Begun || r.Calls[0].Truncated {
					t.Fatalf("%s\n%+v", text, r)
				}
				if d := cmp.Diff(want, decoded(t, r.Calls[0].Arguments)); d != "" {
					t.Errorf("%s\n%s", text, d)
				}
			}
			r := ReadReply(one+"\n"+two, known)
			if len(r.Calls) != 2 || r.Calls[1].Name != "send_message" || r.Rest != "" {
				t.Errorf("two calls: %+v", r)
			}
			cutEverywhere(t, one, want, known)
		})
	}
}

// cutEverywhere cuts a call at every byte: it is whole, or known to be cut, or known to have begun; it is never taken for
// text that the model says, and never for another call.
func cutEverywhere(t *testing.T, one string, want map[string]any, known func(string) bool) {
	for end := 1; end < len(one); end++ {
		if !utf8.RuneStart(one[end]) {
			continue
		}
		r := ReadReply(one[:end], known)
		switch {
		case len(r.Calls) == 1 && (r.Calls[0].Truncated || r.Calls[0].Open):
		case len(r.Calls) == 1:
			if d := cmp.Diff(want, decoded(t, r.Calls[0].Arguments)); d != "" {
				t.Errorf("cut at %d, taken for whole: %q\n%s", end, one[:end], d)
			}
		case len(r.Calls) == 0 && !r.Begun && end > 24:
			t.Errorf("cut at %d, taken for text: %q", end, one[:end])
		case len(r.Calls) > 1:
			t.Errorf("cut at %d: %+v", end, r)
		}
	}
}

func TestReadReplyUnknown(t *testing.T) {
	known := knownTo("send_message")
	for text, want := range map[string][]FoundCall{
		`{"name": "sing", "arguments": {"song": "x"}}`:                   {call("sing", `{"song":"x"}`)},
		"<tool_call>{\"name\":\"sing\",\"arguments\":{}}</tool_call>":    {call("sing", "{}")},
		"[TOOL_CALLS]sing[ARGS]{}":                                       {call("sing", "{}")},
		"<function=sing>{}</function>":                                   {call("sing", "{}")},
		`{"thoughts":"t","calls":[{"name":"sing","arguments":{"a":1}}]}`: {call("sing", `{"a":1}`)},
		`{"name": "Bob", "arguments": {"a": 1}, "age": 3}`:               nil,
		`{"name": "Bob and Eve", "arguments": {"a": 1}}`:                 nil,
		"print(x=1)": nil,
		`{"name": "sing", "description": "sings", "parameters": {}}`: nil,
	} {
		if d := cmp.Diff(want, ReadReply(text, known).Calls); d != "" {
			t.Errorf("%s\n%s", text, d)
		}
	}
}

func TestReadReplyEnvelope(t *testing.T) {
	known := knownTo("send_message", "f")
	for _, c := range []struct {
		text string
		want Reply
	}{
		{`{"thoughts":"greet","calls":[{"name":"send_message","arguments":{"message":"hi"}}]}`, Reply{Calls: []FoundCall{hi}, Rest: "greet"}},
		{"```json\n{\"text\":\"hello\",\"calls\":[]}\n```", Reply{Rest: "hello"}},
		{`{"thoughts":"","calls":[]}`, Reply{}},
		{`{"thoughts":"a","calls":[{"name":"f","arguments":{}},{"name":"send_message","arguments":{"message":"hi"}}],"mood":"glad"} so`,
			Reply{Calls: []FoundCall{call("f", "{}"), hi}, Rest: "a\nglad\nso"}},
		{`{"thoughts":"half a thou`, Reply{Rest: "half a thou"}},
		{`{"thoughts":"a","calls":[`, Reply{Rest: "a"}},
		{`{"thoughts":"a","calls":[{"name":"f"`, Reply{Rest: "a", Begun: true}},
		{`{"thoughts":"a","calls":[{"name":"f","arguments":{"x":"y`, Reply{Rest: "a", Calls: []FoundCall{{Name: "f", Arguments: `{"x":"y`, Truncated: true, Open: true}}}},
		{`{"thoughts":"a","calls":["f",{"name":"f"}]}`, Reply{Rest: "a\n\"f\"\n{\"name\":\"f\"}"}},
		{`{"thoughts":"no list"}`, Reply{Rest: `{"thoughts":"no list"}`}},
	} {
		c.want.Framed = c.want.Rest != c.text
		if d := cmp.Diff(c.want, ReadReply(c.text, known)); d != "" {
			t.Errorf("%s\n%s", c.text, d)
		}
	}
}

// TestReplyIsCovered mixes prose and calls in all forms at random: each word is found again, in order, in the text or in
// the arguments, and nowhere twice.
func TestReplyIsCovered(t *testing.T) {
	known := knownTo("f")
	forms := make([]string, 0, len(writtenForms))
	for name := range writtenForms {
		forms = append(forms, name)
	}
	for seed := range uint64(4000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		var texts, args []string
		for i := range 1 + rnd.IntN(6) {
			word := fmt.Sprintf("w%dx%d", seed, i)
			if rnd.IntN(2) == 0 {
				texts = append(texts, word)
				b.WriteString("Some " + word + " [1] `code` and more.\n")
				continue
			}
			args = append(args, word)
			b.WriteString(writtenForms[forms[rnd.IntN(len(forms))]]("f", `{"a": "`+word+`"}`) + "\n")
		}
		text := b.String()
		r := ReadReply(text, known)
		if len(r.Calls) != len(args) {
			t.Fatalf("seed %d: %d calls of %d\n%s\n%+v", seed, len(r.Calls), len(args), text, r)
		}
		for i, c := range r.Calls {
			if got := decoded(t, c.Arguments); got["a"] != args[i] {
				t.Fatalf("seed %d: call %d is %+v\n%s", seed, i, c, text)
			}
		}
		var want []string
		for _, w := range texts {
			want = append(want, "Some "+w+" [1] `code` and more.")
		}
		if r.Rest != strings.Join(want, "\n") {
			t.Fatalf("seed %d: rest %q\n%s", seed, r.Rest, text)
		}
	}
}

// TestProseStreams shows how much of replies comes out before their end.
func TestProseStreams(t *testing.T) {
	known := knownTo("f", "send_message")
	for text, want := range map[string]string{
		"Hello, how are you? ":                    "Hello, how are you?",
		"See [1] and `f(a=1)` or <b>, f(x).\nYes": "See [1] and `f(a=1)` or <b>, f(x).",
		"So:\n```go\nfunc x() {}\n```\ndone. ":    "So:\n```go\nfunc x() {}\n```\ndone.",
		"I think.\n{\"name\":":                    "I think.",
		"I think.\n<tool_c":                       "I think.",
		"I think.\nsend_mess":                     "I think.",
		"I think.\nf(a=1)":                        "I think.",
		"I think.\n```json\n{":                    "I think.",
		"I think.\n[f(":                           "I think.",
		"<think>{maybe} f(a=1)</think> So ":       "<think>{maybe} f(a=1)</think> So",
	} {
		p := NewProse(known)
		var got string
		for _, r := range text {
			got += p.Push(string(r))
		}
		if got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// FuzzReadReply holds for any text: no panic, text without calls stays, and what was streamed is the beginning of the rest.
func FuzzReadReply(f *testing.F) {
	for name, form := range writtenForms {
		f.Add("Text "+name+".\n"+form("f", `{"a": "b"}`)+"\nMore.", uint8(len(name)))
	}
	f.Add("``` </think>\nf(a=1)\n```", uint8(1))
	f.Add("{\"thoughts\":\"x\",\"calls\":[{\"name\":\"f\",\"arguments\":{\"a\":1}}]}", uint8(3))
	known := knownTo("f", "g")
	f.Fuzz(func(t *testing.T, text string, step uint8) {
		text = strings.ToValidUTF8(text, "?")
		r := ReadReply(text, known)
		if r.Calls == nil && !r.Framed && r.Rest != strings.TrimSpace(text) {
			t.Fatalf("%q: text without calls became %q", text, r.Rest)
		}
		for _, c := range r.Calls {
			if !known(c.Name) && !namesFunction(c.Name) || Truncated(c.Arguments) && !c.Truncated {
				t.Fatalf("%q: %+v", text, c)
			}
		}
		p, sent := NewProse(known), ""
		for rest := text; rest != ""; {
			n := min(len(rest), 1+int(step))
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			sent += p.Push(rest[:n])
			rest = rest[n:]
		}
		if !strings.HasPrefix(r.Rest, sent) {
			t.Fatalf("%q: streamed %q, the rest is %q", text, sent, r.Rest)
		}
	})
}
