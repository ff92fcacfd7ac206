package schema

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func knownTo(names ...string) func(string) bool {
	return func(name string) bool {
		for _, n := range names {
			if n == name {
				return true
			}
		}
		return false
	}
}

func call(name, args string) FoundCall { return FoundCall{Name: name, Arguments: args} }

var hi = call("send_message", `{"message":"hi"}`)

type findCase struct {
	name, text string
	calls      []FoundCall
	rest       string
}

func runFind(t *testing.T, cases []findCase) {
	known := knownTo("send_message", "core_memory_append", "f", "g")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			calls, rest := FindCalls(c.text, known)
			if d := cmp.Diff(c.calls, calls); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.rest, rest); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFindJSON(t *testing.T) {
	runFind(t, []findCase{
		{"function and params", `{"function": "send_message", "params": {"message": "hi"}}`, []FoundCall{hi}, ""},
		{"thoughts in params", `{"function":"send_message","params":{"inner_thoughts":"t","message":"hi"}}`,
			[]FoundCall{call("send_message", `{"inner_thoughts":"t","message":"hi"}`)}, ""},
		{"thoughts beside", `{"inner_thoughts":"a greeting","function":"send_message","params":{"message":"hi"}}`, []FoundCall{hi}, "a greeting"},
		{"name and arguments", `{"name":"send_message","arguments":{"message":"hi"}}`, []FoundCall{hi}, ""},
		{"arguments in a text", `{"name":"send_message","arguments":"{\"message\":\"hi\"}"}`, []FoundCall{hi}, ""},
		{"name and parameters", `{"name":"send_message","parameters":{"message":"hi"}}`, []FoundCall{hi}, ""},
		{"tool and args", `{"tool":"send_message","args":{"message":"hi"}}`, []FoundCall{hi}, ""},
		{"flat", `{"function":"send_message","message":"hi"}`, []FoundCall{hi}, ""},
		{"function object", `{"type":"function","function":{"name":"send_message","arguments":{"message":"hi"}}}`, []FoundCall{hi}, ""},
		{"tool_calls", `{"tool_calls":[{"id":"1","type":"function","function":{"name":"send_message","arguments":"{\"message\":\"hi\"}"}},{"name":"f","arguments":{}}]}`,
			[]FoundCall{hi, call("f", "{}")}, ""},
		{"list", `[{"name":"f","arguments":{"a":1}},{"name":"g","arguments":null}]`, []FoundCall{call("f", `{"a":1}`), call("g", "{}")}, ""},
		{"several", "{\"name\":\"f\",\"arguments\":{}}\n{\"name\":\"g\",\"arguments\":{}}", []FoundCall{call("f", "{}"), call("g", "{}")}, ""},
		{"fence", "I greet.\n```json\n{\"name\":\"send_message\",\"arguments\":{\"message\":\"hi\"}}\n```\nDone.", []FoundCall{hi}, "I greet.\nDone."},
		{"fence with two", "```\n{\"name\":\"f\",\"arguments\":{}}\n{\"name\":\"g\",\"arguments\":{}}\n```", []FoundCall{call("f", "{}"), call("g", "{}")}, ""},
		{"fence in message", "{\"name\":\"send_message\",\"arguments\":{\"message\":\"```\\nx\\n```\"}}", []FoundCall{call("send_message", "{\"message\":\"```\\nx\\n```\"}")}, ""},
		{"after prose", `They said hi. {"name":"send_message","arguments":{"message":"hi"}} I hope that is right.`, []FoundCall{hi}, "They said hi.\nI hope that is right."},
		{"invented result", "{\"function\":\"f\",\"params\":{\"a\":1}}\n{\"function\":\"send_message\",\"params\":{\"message\":\"hi\"}}\nFUNCTION RETURN: {\"status\": \"OK\"}\n" +
			"{\"function\":\"g\",\"params\":{}}", []FoundCall{call("f", `{"a":1}`), hi}, ""},
		{"invented result on the line", `{"function":"f","params":{}} FUNCTION RETURN: {"status": "OK"}`, []FoundCall{call("f", "{}")}, ""},
		{"result in a message", `{"function":"f","params":{"a":"x\nFUNCTION RETURN: y"}}`, []FoundCall{call("f", `{"a":"x\nFUNCTION RETURN: y"}`)}, ""},
		{"invented turn", "{\"function\":\"f\",\"params\":{}}\n<|im_start|>user\nthanks", []FoundCall{call("f", "{}")}, ""},
		{"prefix", `{"name":"functions.f","arguments":{}}`, []FoundCall{call("f", "{}")}, ""},
		{"escaped", `{"name":"send\_message","arguments":{"message":"hi"}}`, []FoundCall{hi}, ""},
		{"Python dict", `{'name': 'send_message', 'arguments': {'message': "it's", 'ok': True}}`, []FoundCall{call("send_message", `{"message":"it's","ok":true}`)}, ""},
		{"raw line breaks", "{\"name\":\"f\",\"arguments\":{\"a\":\"l1\n\tl2\"}}", []FoundCall{call("f", `{"a":"l1\n\tl2"}`)}, ""},
		{"quotes in text", `{"name":"f","arguments":{"a":"he said "hi" to me"}} Good.`, []FoundCall{call("f", `{"a":"he said \"hi\" to me"}`)}, "Good."},
		{"missing braces", `{"function":"f","params":{"a":"b"`, []FoundCall{{Name: "f", Arguments: `{"a":"b"}`, Open: true}}, ""},
		{"cut", `Now: {"function":"f","params":{"a":"b`, []FoundCall{{Name: "f", Arguments: `{"a":"b`, Truncated: true, Open: true}}, "Now:"},
		{"second cut", `[{"name":"f","arguments":{"a":1}},{"name":"g","arguments":{"b":"c`,
			[]FoundCall{call("f", `{"a":1}`), {Name: "g", Arguments: `{"b":"c`, Truncated: true, Open: true}}, ""},
		{"cut inside of a text", `{"name":"f","arguments":"{\"a\":\"b"}`, []FoundCall{{Name: "f", Arguments: `{"a":"b`, Truncated: true}}, ""},
	})
}

func TestFindTags(t *testing.T) {
	runFind(t, []findCase{
		{"Hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
			[]FoundCall{call("f", `{"a":1}`), call("g", "{}")}, ""},
		{"Hermes unclosed", "I think.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}", []FoundCall{call("f", `{"a":1}`)}, "I think."},
		{"Hermes and result", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_response>\nOK\n</tool_response>", []FoundCall{call("f", "{}")}, ""},
		{"Hermes and fence", "<tool_call>\n```json\n{\"name\":\"f\",\"arguments\":{}}\n```\n</tool_call>", []FoundCall{call("f", "{}")}, ""},
		{"Llama", `<function=f>{"a": 1}</function><function=g>{}</function>`, []FoundCall{call("f", `{"a":1}`), call("g", "{}")}, ""},
		{"Llama cut", `<function=f>{"a": "x`, []FoundCall{{Name: "f", Arguments: `{"a": "x`, Truncated: true, Open: true}}, ""},
		{"Qwen", "<tool_call>\n<function=f>\n<parameter=a>\nif x < 3:\n\tprint(\"\\n\")\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>",
			[]FoundCall{call("f", `{"a":"if x < 3:\n\tprint(\"\\n\")","b":"2"}`)}, ""},
		{"Qwen cut", "<function=f>\n<parameter=a>\nlong te", []FoundCall{{Name: "f", Arguments: `{"a":"long te"}`, Truncated: true, Open: true}}, ""},
		{"Qwen without parameters", "<function=f>\n</function>", []FoundCall{call("f", "{}")}, ""},
		{"Mistral", `[TOOL_CALLS][{"name":"f","arguments":{"a":1}},{"name":"g","arguments":{}}]`, []FoundCall{call("f", `{"a":1}`), call("g", "{}")}, ""},
		{"Mistral new", `[TOOL_CALLS]f[ARGS]{"a":1}[TOOL_CALLS]g[ARGS]{}`, []FoundCall{call("f", `{"a":1}`), call("g", "{}")}, ""},
		{"python_tag", `<|python_tag|>{"name":"f","parameters":{"a":1}}<|eom_id|>`, []FoundCall{call("f", `{"a":1}`)}, ""},
		{"DeepSeek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\":1}\n```<｜tool▁call▁end｜>\n" +
			"<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", []FoundCall{call("f", `{"a":1}`), call("g", "{}")}, ""},
		{"DeepSeek new", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\":1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", []FoundCall{call("f", `{"a":1}`)}, ""},
		{"unknown", `<tool_call>{"name":"h","arguments":{}}</tool_call>`, nil, `<tool_call>{"name":"h","arguments":{}}</tool_call>`},
		{"thought", "<think>maybe\nf(a=1)\n</think>\n{\"name\":\"g\",\"arguments\":{}}", []FoundCall{call("g", "{}")}, "<think>maybe\nf(a=1)\n</think>"},
		{"thought without its start", "maybe\nf(a=1)\n</think>\n{\"name\":\"g\",\"arguments\":{}}", []FoundCall{call("g", "{}")}, "maybe\nf(a=1)\n</think>"},
	})
}

func TestFindPythonic(t *testing.T) {
	runFind(t, []findCase{
		{"call", `send_message(message="hi", request_heartbeat=True)`, []FoundCall{call("send_message", `{"message":"hi","request_heartbeat":true}`)}, ""},
		{"list", `[f(a=1), g(b='x', c=None, d=[1, 'y'])]`, []FoundCall{call("f", `{"a":1}`), call("g", `{"b":"x","c":null,"d":[1,"y"]}`)}, ""},
		{"quotes and brackets", `f(a="say "hi" (now)", b='it's')`, []FoundCall{call("f", `{"a":"say \"hi\" (now)","b":"it's"}`)}, ""},
		{"lines", "Thinking.\nf(a=1)\ng()\nDone.", []FoundCall{call("f", `{"a":1}`), call("g", "{}")}, "Thinking.\nDone."},
		{"over lines", "f(\n  a=1,\n  b=\"x\ny\",\n)", []FoundCall{call("f", `{"a":1,"b":"x\ny"}`)}, ""},
		{"fence", "```python\nf(a=1)\ng(b=2)\n```", []FoundCall{call("f", `{"a":1}`), call("g", `{"b":2}`)}, ""},
		{"tagged", "<tool_call>f(a=1)</tool_call>", []FoundCall{call("f", `{"a":1}`)}, ""},
		{"cut", `f(a="x`, []FoundCall{{Name: "f", Arguments: `{"a":"x"}`, Truncated: true, Open: true}}, ""},
		{"cut at once", "f(", []FoundCall{{Name: "f", Arguments: "{}", Truncated: true, Open: true}}, ""},
		{"bracket left out", `f(a="x"`, []FoundCall{{Name: "f", Arguments: `{"a":"x"}`, Open: true}}, ""},
	})
}

// What only speaks of calls is none; the text stays as it is.
func TestFindNothing(t *testing.T) {
	for _, text := range []string{
		"", "Hi there!", "{", "[", "<", "`", "```", "f()x",
		`{"name":"Bob","age":3}`,
		`{"name":"send_message"}`,
		`{"name":"Bob","arguments":{"a":1}}`,
		`{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}}`,
		`{"name":"f","description":"does it","parameters":{}}`,
		"You can call `send_message(message=\"x\")` to speak.",
		"Write `{\"name\":\"f\",\"arguments\":{}}` and it runs.",
		"Call send_message(message=\"x\") and then f(a=1).",
		"send_message(message=\"x\") is how I speak.",
		"send_message(...)\nis the function.",
		"send_message(message) takes one argument.",
		"```python\nimport x\nf(a=1)\nprint(2)\n```",
		"```json\n{\"name\":\"Bob\"}\n```",
		"For example:\n```json\n{\"name\":\"f\",\"arguments\":{}}\n```\nThat is all.",
		"A call looks like this:\nf(a=1)",
		"<function=f> is what Llama writes.",
		"See [f](http://x) and [1] and {x}.",
		"FUNCTION RETURN: {\"status\": \"OK\"}",
		"{\"config\": {\"name\":\"f\",\"arguments\":{}}}",
		strings.TrimSpace(strings.Repeat("{\"a\": ", 3000)),
		strings.Repeat("[{", 20000),
	} {
		calls, rest := FindCalls(text, knownTo("send_message", "f"))
		if calls != nil || rest != text {
			t.Errorf("%.80q: %+v, rest %.80q", text, calls, rest)
		}
	}
}

// Calls behind much prose are still found.
func TestFindAfterProse(t *testing.T) {
	prose := strings.Repeat("some (words) here [1] <b> `x` {y}\n", 2000)
	calls, rest := FindCalls(strings.Repeat("words (x)\n", 2000)+`{"name":"f","arguments":{}}`, knownTo("f"))
	if len(calls) != 1 || !strings.HasPrefix(rest, "words") {
		t.Errorf("%d calls", len(calls))
	}
	if calls, rest := FindCalls(prose, knownTo("f")); calls != nil || rest != strings.TrimSpace(prose) {
		t.Error("prose was changed")
	}
}

// No text takes more than a few readings.
func TestFindLarge(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("```", 100_000),
		strings.Repeat("` ", 100_000),
		strings.Repeat("f(a=\"x\n", 30_000),
		strings.Repeat("<tool_call>{\"a\":", 15_000),
		strings.Repeat("```json\n{\"name\":\"f\"\n", 12_000),
		strings.Repeat("[TOOL_CALLS]", 30_000),
		strings.Repeat("{\"function\":\"g\"", 15_000),
	} {
		start := time.Now()
		FindCalls(text, knownTo("f"))
		if d := time.Since(start); d > 20*time.Second { // quadratic ones took minutes
			t.Errorf("%.20q took %v", text, d)
		}
	}
}

func TestClosest(t *testing.T) {
	known := []string{"send_message", "core_memory_append", "core_memory_replace", "archival_memory_search", "conversation_search", "server.tool", "human"}
	for name, want := range map[string]string{
		"send_message":                "send_message",
		"sendMessage":                 "send_message",
		"Send-Message":                "send_message",
		"functions.send_message":      "send_message",
		"memgpt.core_memory_append":   "core_memory_append",
		"default_api:sendMessage":     "send_message",
		`send\_message`:               "send_message",
		"send_mesage":                 "send_message",
		"send_messgae":                "send_message",
		"core_memory_replce":          "core_memory_replace",
		"memory_append":               "core_memory_append",
		"archival_memory_search_tool": "archival_memory_search",
		"tool":                        "server.tool",
		"Human":                       "human",
		"huamn":                       "human",
		"humans":                      "human",
		"":                            "",
		"x":                           "",
		"delete_everything":           "",
		strings.Repeat("send", 1000):  "",
		"пошли":                       "",
	} {
		if got := Closest(name, known); got != want {
			t.Errorf("%.40q: got %q, want %q", name, got, want)
		}
	}
}

func FuzzFindCalls(f *testing.F) {
	for _, seed := range []string{"{\"function\":\"f\",\"params\":{\"a\":1}}\nFUNCTION RETURN: x", "```json\n{\"name\":\"f\",\"arguments\":\"{}\"}\n```",
		"<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>", "[TOOL_CALLS]f[ARGS]{\"a\":1}", "[f(a=1), g(b='x')]", "<think>x</think>f(a=\"",
		"<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜>"} {
		f.Add(seed)
	}
	known := knownTo("f", "g")
	s := parse(f, `{}`)
	f.Fuzz(func(t *testing.T, raw string) {
		calls, rest := FindCalls(raw, known)
		if calls == nil && rest != strings.TrimSpace(raw) {
			t.Fatalf("%q: text without calls became %q", raw, rest)
		}
		for _, c := range calls {
			if !known(c.Name) || !utf8.ValidString(c.Name) {
				t.Fatalf("%q: unknown %q", raw, c.Name)
			}
			got, _, err := s.Decode(c.Arguments, Options{})
			if err == nil && (!json.Valid(got) || !utf8.Valid(got)) {
				t.Fatalf("%q: %q", raw, got)
			}
			if Truncated(c.Arguments) && !c.Truncated {
				t.Fatalf("%q: %+v was cut", raw, c)
			}
		}
	})
}
