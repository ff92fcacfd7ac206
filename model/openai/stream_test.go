package openai

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/internal/wire"
	"memgpt/model/script"
)

func text(s string) memgpt.Part { return memgpt.Text{Text: s} }
func think(s string) memgpt.Part {
	return memgpt.Reasoning{Text: s, Provider: "openai"}
}
func made(id, name, args string) memgpt.Part {
	return memgpt.Call{ID: id, Name: name, Arguments: args}
}

// delta is a chunk with a piece of a message; fin one with a finish reason.
func delta(body string) string { return `{"choices":[{"index":0,"delta":` + body + `}]}` }
func fin(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}
func tool(body string) string { return delta(`{"tool_calls":[` + body + `]}`) }

const done = "[DONE]"

// answers are bodies of answers with status 200 and what is to come of them.
var answers = []struct {
	name   string
	body   string
	parts  memgpt.Parts
	finish memgpt.Finish
}{
	{"text", stream(delta(`{"role":"assistant","content":null}`), delta(`{"content":"Hel"}`), delta(`{"content":"lo"}`), fin("stop"), done),
		memgpt.Parts{text("Hello")}, memgpt.FinishStop},
	{"no space, CRLF, comments, ids", ": hi\r\n\r\nid: 1\r\nevent: message\r\nretry: 5\r\ndata:" + delta(`{"content":"a"}`) + "\r\n\r\n:\r\n\r\ndata:" + fin("stop") + "\r\n\r\ndata:[DONE]\r\n\r\n",
		memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"CR", strings.ReplaceAll(stream(delta(`{"content":"a"}`), fin("stop")), "\n", "\r"), memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"byte order mark", "\uFEFF" + stream(delta(`{"content":"a"}`), fin("stop")), memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"bare objects", delta(`{"content":"a"}`) + "\n" + fin("stop") + "\n", memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"no empty lines", "data: " + delta(`{"content":"a"}`) + "\ndata: " + fin("stop") + "\ndata: [DONE]", memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"no [DONE]", stream(delta(`{"content":"a"}`), fin("stop")), memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"no finish", stream(delta(`{"content":"a"}`), done), memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"pretty printed over lines", "data: {\"choices\":[\ndata: {\"delta\":{\"content\":\"a\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n", memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"pretty printed, CRLF", "data: {\"choices\":[\r\ndata: {\"delta\":{\"content\":\"a\"},\r\ndata: \"finish_reason\":\"stop\"}]}\r\n\r\n", memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"huge line", stream(delta(`{"content":"`+strings.Repeat("好", 500_000)+`"}`), fin("stop")), memgpt.Parts{text(strings.Repeat("好", 500_000))}, memgpt.FinishStop},
	{"content parts", stream(delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}`), delta(`{"content":["b",{"text":"c"}]}`), fin("stop")),
		memgpt.Parts{think("hm"), text("abc")}, memgpt.FinishStop},
	{"other choices", stream(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, delta(`{"content":"yes"}`), fin("stop")), memgpt.Parts{text("yes")}, memgpt.FinishStop},
	{"odd types are left out", stream(`{"model":7,"usage":"none","created":"now","choices":[{"index":0,"delta":{"content":"a","refusal":null,"annotations":3}}]}`, fin("stop")),
		memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"characters cut between pieces", stream(delta("{\"content\":\"a\xe4\xbd\"}"), delta("{\"content\":\"\xa0\"}"), delta(`{"content":"\ud83c"}`), delta(`{"content":"\udf77!"}`), delta(`{"content":"\ud83c"}`), fin("stop")),
		memgpt.Parts{text("a你🍷!\uFFFD")}, memgpt.FinishStop},
	{"cut inside an argument", stream(tool("{\"index\":0,\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\\\"\xf0\x9f\"}}"), tool("{\"index\":0,\"function\":{\"arguments\":\"\x8d\xb7\\\"}\"}}"), fin("tool_calls")),
		memgpt.Parts{made("1", "f", `{"a":"🍷"}`)}, memgpt.FinishCalls},
	{"NUL", stream(delta(`{"content":"a\u0000b"}`), fin("stop")), memgpt.Parts{text("ab")}, memgpt.FinishStop},
	{"refusal", stream(delta(`{"refusal":"I won't"}`), fin("stop")), memgpt.Parts{text("I won't")}, memgpt.FinishStop},
	{"length", stream(delta(`{"content":"a"}`), fin("length")), memgpt.Parts{text("a")}, memgpt.FinishLength},
	{"filter", stream(delta(`{"content":null}`), fin("content_filter")), nil, memgpt.FinishFilter},
	{"repeated whole at the end", stream(delta(`{"content":"a"}`), `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`), memgpt.Parts{text("a")}, memgpt.FinishStop},

	{"reasoning_content", stream(delta(`{"reasoning_content":"h"}`), delta(`{"reasoning_content":"m"}`), delta(`{"content":"a"}`), fin("stop")), memgpt.Parts{think("hm"), text("a")}, memgpt.FinishStop},
	{"both names of reasoning", stream(delta(`{"reasoning":"hm","reasoning_content":"hm"}`), delta(`{"content":"a"}`), fin("stop")), memgpt.Parts{think("hm"), text("a")}, memgpt.FinishStop},
	{"think tags", stream(delta(`{"content":"\n<th"}`), delta(`{"content":"ink>h"}`), delta(`{"content":"m</thi"}`), delta(`{"content":"nk>\n\n a<think>"}`), fin("stop")),
		memgpt.Parts{think("hm"), text("a<think>")}, memgpt.FinishStop},
	{"think tag without end", stream(delta(`{"content":"<think>hm</t"}`), fin("length")), memgpt.Parts{think("hm</t")}, memgpt.FinishLength},
	{"no think tag after all", stream(delta(`{"content":" <th"}`), fin("stop")), memgpt.Parts{text(" <th")}, memgpt.FinishStop},
	{"reasoning_details", stream(delta(`{"reasoning":"h","reasoning_details":[{"type":"x","n":1}]}`), delta(`{"reasoning_details":[{"type":"y"}]}`), delta(`{"content":"a"}`), fin("stop")),
		memgpt.Parts{memgpt.Reasoning{Text: "h", Provider: "openai", Data: []byte(`[{"type":"x","n":1},{"type":"y"}]`)}, text("a")}, memgpt.FinishStop},

	{"call by delta", stream(tool(`{"index":0,"id":"1","type":"function","function":{"name":"f","arguments":""}}`), tool(`{"index":0,"function":{"arguments":"{\"a\":"}}`), tool(`{"index":0,"function":{"arguments":"1}"}}`), fin("tool_calls"), done),
		memgpt.Parts{made("1", "f", `{"a":1}`)}, memgpt.FinishCalls},
	{"interleaved calls", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{"}}`), tool(`{"index":1,"id":"2","function":{"name":"g","arguments":"{"}}`), tool(`{"index":0,"function":{"arguments":"}"}}`), tool(`{"index":1,"function":{"arguments":" }"}}`), fin("tool_calls")),
		memgpt.Parts{made("1", "f", `{}`), made("2", "g", `{ }`)}, memgpt.FinishCalls},
	{"text and call, finish stop", stream(delta(`{"content":"hm"}`), tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}`), fin("stop")), memgpt.Parts{text("hm"), made("1", "f", "{}")}, memgpt.FinishCalls},
	{"finish tool_calls without calls", stream(delta(`{"content":"hm"}`), fin("tool_calls")), memgpt.Parts{text("hm")}, memgpt.FinishStop},
	{"white space beside a call", stream(delta(`{"content":"\n\n"}`), tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}`), fin("tool_calls")), memgpt.Parts{made("1", "f", "{}")}, memgpt.FinishCalls},
	{"no index, ids", stream(tool(`{"id":"1","function":{"name":"f","arguments":"{\"a\":"}}`), tool(`{"function":{"arguments":"1}"}}`), tool(`{"id":"2","function":{"name":"f","arguments":"{}"}}`), fin("tool_calls")),
		memgpt.Parts{made("1", "f", `{"a":1}`), made("2", "f", `{}`)}, memgpt.FinishCalls},
	{"no index, no ids", stream(tool(`{"function":{"name":"f","arguments":"{}"}}`), tool(`{"function":{"name":"f","arguments":"{\"b\":"}}`), tool(`{"function":{"arguments":"2}"}}`), tool(`{"function":{"name":"g","arguments":""}}`), tool(`{"function":{"name":"h"}}`), fin("tool_calls")),
		memgpt.Parts{made("new_1", "f", `{}`), made("new_2", "f", `{"b":2}`), made("new_3", "g", ""), made("new_4", "h", "")}, memgpt.FinishCalls},
	{"index, no ids", stream(tool(`{"index":0,"function":{"name":"f","arguments":"{}"}}`), tool(`{"index":1,"function":{"name":"g","arguments":"{}"}}`), fin("stop")),
		memgpt.Parts{made("new_1", "f", `{}`), made("new_2", "g", `{}`)}, memgpt.FinishCalls},
	{"all with index 0", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}`), tool(`{"index":0,"id":"2","function":{"name":"g","arguments":"{\"x\":1}"}}`), fin("stop")),
		memgpt.Parts{made("1", "f", `{}`), made("2", "g", `{"x":1}`)}, memgpt.FinishCalls},
	{"all with index 0 and no ids", stream(tool(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`), tool(`{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}`), fin("stop")),
		memgpt.Parts{made("new_1", "f", `{"x":1}`), made("new_2", "f", `{"x":2}`)}, memgpt.FinishCalls},
	{"same id twice", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}`), tool(`{"index":1,"id":"1","function":{"name":"g","arguments":"{}"}}`), fin("stop")),
		memgpt.Parts{made("1", "f", `{}`), made("new_1", "g", `{}`)}, memgpt.FinishCalls},
	{"new id in every piece", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\""}}`), tool(`{"index":0,"id":"2","function":{"arguments":":1}"}}`), fin("stop")),
		memgpt.Parts{made("1", "f", `{"a":1}`)}, memgpt.FinishCalls},
	{"id and name in every piece", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\""}}`), tool(`{"index":0,"id":"1","function":{"name":"f","arguments":":1}"}}`), fin("stop")),
		memgpt.Parts{made("1", "f", `{"a":1}`)}, memgpt.FinishCalls},
	{"name in pieces", stream(tool(`{"index":0,"id":"1","function":{"name":"send_"}}`), tool(`{"index":0,"function":{"name":"message"}}`), tool(`{"index":0,"function":{"arguments":"{}"}}`), fin("stop")),
		memgpt.Parts{made("1", "send_message", `{}`)}, memgpt.FinishCalls},
	{"growing name", stream(tool(`{"index":0,"id":"1","function":{"name":"send_"}}`), tool(`{"index":0,"id":"1","function":{"name":"send_message","arguments":"{}"}}`), fin("stop")),
		memgpt.Parts{made("1", "send_message", `{}`)}, memgpt.FinishCalls},
	{"whole arguments again at the end", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{\"a\":"}}`), tool(`{"index":0,"function":{"arguments":"1}"}}`), tool(`{"index":0,"function":{"arguments":"{\"a\":1}"}}`), fin("stop")),
		memgpt.Parts{made("1", "f", `{"a":1}`)}, memgpt.FinishCalls},
	{"index that counts pieces", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{"}}`), tool(`{"index":1,"function":{"arguments":"}"}}`), fin("stop")),
		memgpt.Parts{made("1", "f", `{}`)}, memgpt.FinishCalls},
	{"arguments as an object", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":{"a": "好"}}}`), fin("stop")),
		memgpt.Parts{made("1", "f", `{"a": "好"}`)}, memgpt.FinishCalls},
	{"null arguments", stream(tool(`{"index":0,"id":7,"function":{"name":"f","arguments":null}}`), fin("stop")), memgpt.Parts{made("7", "f", "")}, memgpt.FinishCalls},
	{"cut arguments stay as they are", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{\"message\": \"long te"}}`), fin("length")), memgpt.Parts{made("1", "f", `{"message": "long te`)}, memgpt.FinishLength},
	{"cut by length, said tool_calls", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{\"message\": \"long te"}}`), fin("tool_calls"), `{"choices":[],"usage":{"completion_tokens":25}}`, done), memgpt.Parts{made("1", "f", `{"message": "long te`)}, memgpt.FinishLength},
	{"function_call", stream(delta(`{"function_call":{"name":"f","arguments":"{\"a\""}}`), delta(`{"function_call":{"arguments":":1}"}}`), fin("function_call")), memgpt.Parts{made("new_1", "f", `{"a":1}`)}, memgpt.FinishCalls},
	{"source code in an argument", stream(tool(`{"index":0,"id":"1","function":{"name":"f","arguments":"{\"message\":\"printf(\\\"%d\\\\n\\\", a[\\\"x\\\"]);\tend\"}"}}`), fin("stop")),
		memgpt.Parts{made("1", "f", `{"message":"printf(\"%d\\n\", a[\"x\"]);`+"\t"+`end"}`)}, memgpt.FinishCalls},

	{"plain", `{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`, memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"plain, spaced", "\n  {\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]},\"finish_reason\":null}]}\n", memgpt.Parts{text("a")}, memgpt.FinishStop},
	{"plain calls", `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"f","arguments":"{}"}},{"id":"1","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`,
		memgpt.Parts{made("1", "f", `{"a":1}`), made("new_1", "f", "{}"), made("new_2", "f", "{}")}, memgpt.FinishCalls},
	{"plain calls without anything", `{"choices":[{"message":{"tool_calls":[{"function":{"name":"f","arguments":""}},{"function":{"name":"f"}}]}}]}`,
		memgpt.Parts{made("new_1", "f", ""), made("new_2", "f", "")}, memgpt.FinishCalls},
	{"plain reasoning, empty text", `{"choices":[{"message":{"content":"","reasoning_content":"hm"},"finish_reason":"length"}]}`, memgpt.Parts{think("hm")}, memgpt.FinishLength},
}

func TestAnswers(t *testing.T) {
	for _, test := range answers {
		t.Run(test.name, func(t *testing.T) {
			m, _ := scripted(t, Config{NewID: ids()}, script.Status(200, test.body, "Content-Type", contentType(test.body)))
			req := ask("hi")
			req.MaxTokens = 25
			var h heard
			resp, err := m.Generate(t.Context(), req, h.add)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, resp, &h, test.parts, test.finish)
		})
	}
}

func compare(t *testing.T, resp *memgpt.Response, h *heard, parts memgpt.Parts, finish memgpt.Finish) {
	t.Helper()
	if diff := cmp.Diff(parts, resp.Message.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if resp.Finish != finish || resp.Message.Role != memgpt.RoleAssistant || resp.Message.Origin != memgpt.OriginModel {
		t.Errorf("finish %q, want %q; %s by %s", resp.Finish, finish, resp.Message.Role, resp.Message.Origin)
	}
	h.same(t, resp)
}

// TestAnswersByteByByte reads the same answers from a body that gives one byte at a time.
func TestAnswersByteByByte(t *testing.T) {
	for _, test := range answers {
		t.Run(test.name, func(t *testing.T) {
			m, err := New(Config{BaseURL: "http://x", NewID: ids()})
			if err != nil {
				t.Fatal(err)
			}
			w := wire.NewWatch(t.Context(), wire.Limits{First: soon, Idle: soon, Whole: soon, Filler: filler})
			defer w.Stop()
			var h heard
			resp, f := m.read(w, &http.Response{
				Header: http.Header{"Content-Type": {contentType(test.body)}},
				Body:   io.NopCloser(iotest.OneByteReader(strings.NewReader(test.body))),
			}, newReply(h.add, m.cfg.NewID, "m", 25))
			if f != nil {
				t.Fatal(f.err)
			}
			compare(t, resp, &h, test.parts, test.finish)
		})
	}
}

// TestOneByteAWrite has a server that writes and flushes each byte by itself, in text and in an argument.
func TestOneByteAWrite(t *testing.T) {
	const s = "请牢记,我不能喝酒 🍷👩‍👩‍👧‍👦 é"
	srv := script.NewServer(script.ServerConfig{Bytewise: true, Config: script.Config{Replies: []script.Reply{script.Calls(script.Text(s), script.Say(s))}}})
	m := serve(t, srv, Config{})
	var h heard
	resp, err := m.Generate(t.Context(), ask("hi"), h.add)
	if err != nil {
		t.Fatal(err)
	}
	h.same(t, resp)
	calls := resp.Message.Calls()
	if len(calls) != 1 || calls[0].Arguments != `{"message":"`+s+`"}` || h.text != s {
		t.Errorf("text %q, calls %+v", h.text, calls)
	}
}

func contentType(body string) string {
	if b := strings.TrimSpace(body); strings.HasPrefix(b, `{"choices":[{"message"`) || strings.HasPrefix(b, `{"model"`) {
		return "application/json"
	}
	return "text/event-stream; charset=utf-8"
}

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		usage string
		want  memgpt.Usage
	}{
		{`{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":7},"completion_tokens_details":{"reasoning_tokens":2}}`, memgpt.Usage{Input: 10, Cached: 7, Output: 3, Reasoning: 2, Calls: 1}},
		{`{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":6,"prompt_cache_miss_tokens":4}`, memgpt.Usage{Input: 10, Cached: 6, Output: 3, Calls: 1}},
		{`{"input_tokens":10,"output_tokens":3,"cached_tokens":5}`, memgpt.Usage{Input: 10, Cached: 5, Output: 3, Calls: 1}},
		{`{"prompt_tokens":10,"completion_tokens":3,"num_cached_tokens":4,"total_tokens":13}`, memgpt.Usage{Input: 10, Cached: 4, Output: 3, Calls: 1}},
		{`{"prompt_tokens":10,"completion_tokens":3,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":5}}`, memgpt.Usage{Input: 10, Output: 8, Reasoning: 5, Calls: 1}},
		{`{"prompt_tokens":10,"completion_tokens":8,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":5}}`, memgpt.Usage{Input: 10, Output: 8, Reasoning: 5, Calls: 1}},
		{`{"prompt_tokens":-1,"prompt_tokens_details":null}`, memgpt.Usage{Calls: 1}},
		{`null`, memgpt.Usage{Calls: 1}},
	} {
		for _, body := range []string{
			stream(delta(`{"content":"a"}`), fin("stop"), `{"choices":[],"usage":`+test.usage+`}`, done),
			stream(delta(`{"content":"a"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":`+test.usage+`}}`, done),
			`{"model":"served","choices":[{"message":{"content":"a"}}],"usage":` + test.usage + `}`,
		} {
			m, _ := scripted(t, Config{}, script.Status(200, body, "Content-Type", contentType(body)))
			resp, err := m.Generate(t.Context(), ask("hi"), nil)
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if resp.Usage != test.want {
				t.Errorf("%s: usage %+v, want %+v", body, resp.Usage, test.want)
			}
			if strings.HasPrefix(body, "{") && resp.Model != "served" {
				t.Errorf("model %q", resp.Model)
			}
		}
	}
}

// TestBadAnswers has answers with status 200 that are none.
func TestBadAnswers(t *testing.T) {
	half := stream(delta(`{"content":"abc"}`), delta(`{"content":"def"}`))
	for _, test := range []struct {
		name    string
		reply   script.Reply
		code    memgpt.Code
		started bool
		say     string
	}{
		{"only [DONE]", script.Events(stream(done)), memgpt.CodeModelEmpty, false, "without content"},
		{"nothing", script.Empty(), memgpt.CodeModelEmpty, false, ""},
		{"no events", script.Events(": ping\n\n"), memgpt.CodeModelEmpty, false, ""},
		{"no choices", script.Status(200, `{"choices":[],"usage":{"prompt_tokens":9}}`), memgpt.CodeModelEmpty, false, ""},
		{"null choices", script.Status(200, `{"choices":null,"usage":{"prompt_tokens":9}}`), memgpt.CodeModelEmpty, false, ""},
		{"no choices, streamed", script.Events(stream(`{"choices":[]}`, done)), memgpt.CodeModelEmpty, false, ""},
		{"empty content", script.Status(200, `{"choices":[{"message":{"content":" \n"},"finish_reason":"stop"}]}`), memgpt.CodeModelEmpty, false, ""},
		{"null content", script.Events(stream(delta(`{"content":null}`), fin("stop"), done)), memgpt.CodeModelEmpty, false, ""},
		{"only reasoning", script.Events(stream(delta(`{"reasoning":"hm"}`), fin("stop"), done)), memgpt.CodeModelEmpty, true, ""},
		{"ends in the middle", script.Events(half), memgpt.CodeModelDown, true, "broke off without an end"},
		{"ends before a piece", script.Events(stream(delta(`{"role":"assistant"}`))), memgpt.CodeModelDown, false, "broke off"},
		{"ends inside a piece", script.Events(half + `data: {"choi`), memgpt.CodeModelDown, true, "broke off"},
		{"connection breaks", script.Reply{Wire: &script.Wire{Body: half, Cut: true, Header: map[string]string{"Content-Type": "text/event-stream"}}}, memgpt.CodeModelDown, true, "unexpected EOF"},
		{"connection breaks in JSON", script.Half(`{"choices":[{"message":{"content":"abc"}}]}`), memgpt.CodeModelDown, false, "unexpected EOF"},
		{"half JSON", script.Status(200, `{"choices":[{"mess`), memgpt.CodeModelDown, false, "not whole JSON"},
		{"garbage", script.Garbage(), memgpt.CodeModelDown, false, "neither JSON nor"},
		{"garbage events", script.Events("data: hello\n\ndata: x\n\n"), memgpt.CodeModelDown, false, "not JSON"},
		{"a page", script.Status(200, "<!DOCTYPE html><title>Welcome to nginx!</title>", "Content-Type", "text/html"), memgpt.CodeModelRequest, false, "Welcome to nginx!"},
		{"an object of another kind", script.Status(200, `{"status":"ok"}`), memgpt.CodeModelDown, false, "no choices"},
		{"error as the answer", script.Status(200, `{"error":{"message":"Overloaded","code":503}}`), memgpt.CodeModelDown, false, "Overloaded"},
		{"error text as the answer", script.Status(200, `{"error":"model is busy"}`), memgpt.CodeModelDown, false, "model is busy"},
		{"error in the stream", script.Events(half + stream(`{"error":{"message":"Provider disconnected","code":502},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`)), memgpt.CodeModelDown, true, "Provider disconnected"},
		{"error event", script.Events("event: error\ndata: {\"message\":\"This model's maximum context length is 10 tokens\"}\n\n"), memgpt.CodeModelOverflow, false, "maximum context"},
		{"error event in words", script.Events("event: error\ndata: it broke\n\n"), memgpt.CodeModelDown, false, "it broke"},
		{"error without data", script.Events(half + `{"error":{"message":"rate limited","code":429}}` + "\n"), memgpt.CodeModelLimit, true, "rate limited"},
		{"error in a choice", script.Events(stream(`{"choices":[{"index":0,"delta":{},"error":{"code":429,"message":"slow"}}]}`)), memgpt.CodeModelLimit, false, "slow"},
		{"finish error", script.Events(half + stream(fin("error"), done)), memgpt.CodeModelDown, true, "with an error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, _ := scripted(t, Config{}, test.reply)
			resp, err := m.Generate(t.Context(), ask("hi"), func(memgpt.Delta) {})
			var e *memgpt.Error
			if !errors.As(err, &e) {
				t.Fatalf("%+v, %v", resp, err)
			}
			if e.Code != test.code || e.Started != test.started || !strings.Contains(e.Error(), test.say) {
				t.Errorf("code %q, started %v, %q\nwant %q, %v, %q", e.Code, e.Started, e, test.code, test.started, test.say)
			}
			if e.Code == memgpt.CodeModelEmpty && (resp == nil || resp.Usage.Calls != 1) {
				t.Errorf("an empty answer came without its usage: %+v", resp)
			}
		})
	}
}

func TestEndAfterTheFinishDoesNotMatter(t *testing.T) {
	body := stream(delta(`{"content":"abc"}`), fin("stop"))
	m, _ := scripted(t, Config{}, script.Reply{Wire: &script.Wire{Body: body, Cut: true, Header: map[string]string{"Content-Type": "text/event-stream"}}})
	resp, err := m.Generate(t.Context(), ask("hi"), nil)
	if err != nil || resp.Message.Said() != "abc" {
		t.Errorf("%+v, %v", resp, err)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, a := range answers {
		if len(a.body) < 10_000 {
			f.Add([]byte(a.body), strings.Contains(contentType(a.body), "stream"))
		}
	}
	f.Add([]byte("data:[{\"error\":{\"x\":\"\x8d\"}}]"), true)
	m, err := New(Config{BaseURL: "http://x", NewID: ids()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, sse bool) {
		resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}
		if sse {
			resp.Header.Set("Content-Type", "text/event-stream")
		}
		w := wire.NewWatch(t.Context(), wire.Limits{First: soon, Idle: soon, Whole: soon, Filler: filler})
		defer w.Stop()
		var h heard
		got, fault := m.read(w, resp, newReply(h.add, m.cfg.NewID, "m", 0))
		if fault != nil {
			if fault.err.Code == "" || fault.err.Error() != memgpt.CleanText(fault.err.Error()) {
				t.Errorf("error %#v", fault.err)
			}
			return
		}
		h.same(t, got)
		seen := map[string]bool{}
		for _, p := range got.Message.Parts {
			c, ok := p.(memgpt.Call)
			if ok && (c.ID == "" || seen[c.ID]) {
				t.Errorf("id %q", c.ID)
			}
			seen[c.ID] = true
		}
		text, thinking := textAndThinking(got)
		if text != memgpt.CleanText(text) || thinking != memgpt.CleanText(thinking) {
			t.Errorf("unclean text %q %q", text, thinking)
		}
	})
}
