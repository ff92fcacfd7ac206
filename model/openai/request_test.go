package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/modeltest"
	"memgpt/model/script"
)

type jsonRaw = json.RawMessage

func encoded(req *memgpt.Request, cfg Config, sh shape) string {
	return string(encode(req, cfg.Model, &cfg, sh))
}

func TestBody(t *testing.T) {
	got := encoded(modeltest.Request("你好"), Config{Model: "m"}, shape{})
	want := `{"model":"m","messages":[
{"role":"system","content":"You are a test. <memory_blocks>\n</memory_blocks>"},
{"role":"user","content":"{\"type\":\"user_message\",\"message\":\"请牢记,我不能喝酒 🍷\",\"time\":\"2026-01-02T03:04:05+08:00\"}"},
{"role":"assistant","content":"monologue","tool_calls":[{"id":"call_a","type":"function","function":{"name":"core_memory_append","arguments":"{\"label\":\"human\",\"content\":\"不能喝酒\"}"}},{"id":"LONG","type":"function","function":{"name":"send_message","arguments":"{\"message\":\"好\"}"}}]},
{"role":"tool","tool_call_id":"call_a","content":"{\"status\":\"OK\"}"},
{"role":"tool","tool_call_id":"LONG","content":"{\"status\":\"OK\"}"},
{"role":"user","content":"{\"type\":\"user_message\",\"message\":\"你好\",\"time\":\"2026-01-02T03:05:00+08:00\"}\n[image image/png, 4 bytes: not shown, this model can't see images]\n[file a.txt, text/plain, 4 bytes: its contents are not shown]\n[a part of kind \"hologram\": not shown]"}
],"tools":[{"type":"function","function":{"name":"send_message","description":"Speak.","parameters":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}}},{"type":"function","function":{"name":"core_memory_append","description":"Remember.","parameters":{"type":"object","properties":{"label":{"type":"string"},"content":{"type":"string"}},"required":["label","content"]}}}],"max_tokens":1000,"stream":true,"stream_options":{"include_usage":true}}`
	long := "call_" + memgpt.HashKey(strings.Repeat("x", 60), "0")
	want = strings.ReplaceAll(strings.ReplaceAll(want, "\n", ""), "LONG", long)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if again := encoded(modeltest.Request("你好"), Config{Model: "m"}, shape{}); again != got {
		t.Error("the same request gave another body")
	}
}

func TestBodyVariants(t *testing.T) {
	simple := func(change func(*memgpt.Request)) *memgpt.Request {
		req := ask("hi")
		if change != nil {
			change(req)
		}
		return req
	}
	withTools := func(choice memgpt.Choice) *memgpt.Request {
		return simple(func(r *memgpt.Request) { r.Tools, r.Choice = []memgpt.ToolSpec{{Name: "f"}}, choice })
	}
	const head = `{"messages":[{"role":"system","content":"system"},{"role":"user","content":"hi"}]`
	const tools = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`
	for _, test := range []struct {
		name string
		req  *memgpt.Request
		cfg  Config
		sh   shape
		want string
	}{
		{"least", simple(nil), Config{NoStream: true}, shape{}, head + `}`},
		{"stream without usage", simple(nil), Config{}, shape{noUsage: true}, head + `,"stream":true}`},
		{"choice without tools", simple(func(r *memgpt.Request) { r.Choice = memgpt.ChoiceNone }), Config{NoStream: true}, shape{}, head + `}`},
		{"tools", withTools(""), Config{NoStream: true}, shape{}, head + tools + `}`},
		{"required", withTools(memgpt.ChoiceRequired), Config{NoStream: true}, shape{}, head + tools + `,"tool_choice":"required"}`},
		{"none", withTools(memgpt.ChoiceNone), Config{NoStream: true}, shape{}, head + tools + `,"tool_choice":"none"}`},
		{"required, refused", withTools(memgpt.ChoiceRequired), Config{NoStream: true}, shape{noChoice: true}, head + tools + `}`},
		{"model without tools", withTools(memgpt.ChoiceRequired), Config{NoStream: true, NoTools: true}, shape{}, head + `}`},
		{"schema", simple(func(r *memgpt.Request) { r.Schema = jsonRaw(`{"type":"object","properties":{"a":{"type":"string"}}}`) }), Config{NoStream: true}, shape{},
			head + `,"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":false,"schema":{"type":"object","properties":{"a":{"type":"string"}}}}}}`},
		{"completion tokens", simple(func(r *memgpt.Request) { r.MaxTokens = 7 }), Config{NoStream: true}, shape{completionTokens: true}, head + `,"max_completion_tokens":7}`},
		{"extra", simple(nil), Config{NoStream: true, Extra: map[string]jsonRaw{"top_p": jsonRaw("1"), "temperature": jsonRaw("0.5")}}, shape{}, head + `,"temperature":0.5,"top_p":1}`},
		{"empty", simple(func(r *memgpt.Request) {
			r.Messages = []memgpt.Message{{Role: "user"}, {Role: "assistant", Parts: memgpt.Parts{memgpt.Reasoning{Text: "r"}}},
				{Role: "assistant", Parts: memgpt.Parts{memgpt.Call{ID: "1", Name: "f", Arguments: "{"}}}, {Role: "tool", Parts: memgpt.Parts{memgpt.Result{CallID: "1"}}}}
		}), Config{NoStream: true}, shape{}, `{"messages":[{"role":"user","content":"(empty)"},{"role":"assistant","content":"(empty)"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"(empty)"}]}`},
		{"reasoning", simple(func(r *memgpt.Request) {
			r.Messages = []memgpt.Message{{Role: "assistant", Parts: memgpt.Parts{memgpt.Reasoning{Text: "r"}, memgpt.Text{Text: "t"}}}}
		}), Config{NoStream: true, ReasoningField: "reasoning_content"}, shape{}, `{"messages":[{"role":"assistant","content":"t","reasoning_content":"r"}]}`},
		{"reasoning details", simple(func(r *memgpt.Request) {
			r.Messages = []memgpt.Message{{Role: "assistant", Parts: memgpt.Parts{memgpt.Reasoning{Data: jsonRaw(`[{"a":1}]`)}, memgpt.Text{Text: "t"}}}}
		}), Config{NoStream: true, ReasoningField: "reasoning_details"}, shape{}, `{"messages":[{"role":"assistant","content":"t","reasoning_details":[{"a":1}]}]}`},
		{"images", simple(func(r *memgpt.Request) {
			r.Messages = []memgpt.Message{{Role: "user", Parts: memgpt.Parts{memgpt.Text{Text: "see"}, memgpt.Image{MIME: "image/gif", Data: []byte("GIF")}, memgpt.Image{URL: "https://x/a.png"}}},
				{Role: "tool", Parts: memgpt.Parts{memgpt.Result{CallID: "1", Text: "r"}, memgpt.Image{URL: "https://x/b.png"}}}}
		}), Config{NoStream: true, Images: true}, shape{}, `{"messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lG"}},{"type":"image_url","image_url":{"url":"https://x/a.png"}}]},{"role":"tool","tool_call_id":"1","content":"r\n[image https://x/b.png: not shown, this model can't see images]"}]}`},
		{"merged", simple(func(r *memgpt.Request) {
			r.Messages = append(r.Messages, memgpt.TextMessage("user", "", "two"), memgpt.TextMessage("assistant", "", "a"), memgpt.TextMessage("user", "", "three"))
		}), Config{NoStream: true}, shape{merge: true}, `{"messages":[{"role":"system","content":"system"},{"role":"user","content":"hi\ntwo"},{"role":"assistant","content":"a"},{"role":"user","content":"three"}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, encoded(test.req, test.cfg, test.sh)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIDsAreUniqueAndShort(t *testing.T) {
	long := strings.Repeat("長", 41)
	var req memgpt.Request
	for range 3 {
		req.Messages = append(req.Messages,
			memgpt.Message{Role: "assistant", Parts: memgpt.Parts{memgpt.Call{ID: "1", Name: "f"}, memgpt.Call{ID: long, Name: "f"}, memgpt.Call{ID: "", Name: "f"}, memgpt.Call{ID: "1", Name: "f"}}},
			memgpt.Message{Role: "tool", Parts: memgpt.Parts{memgpt.Result{CallID: "1", Text: "a"}, memgpt.Result{CallID: long, Text: "b"}, memgpt.Result{CallID: "", Text: "c"}, memgpt.Result{CallID: "1", Text: "d"}}})
	}
	var body struct {
		Messages []struct {
			ToolCalls []struct{ ID string } `json:"tool_calls"`
			ID        string                `json:"tool_call_id"`
			Content   *string
		}
	}
	if err := json.Unmarshal([]byte(encoded(&req, Config{}, shape{})), &body); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var open []string
	for i, m := range body.Messages {
		for _, c := range m.ToolCalls {
			if c.ID == "" || utf8.RuneCountInString(c.ID) > 40 || seen[c.ID] {
				t.Errorf("message %d: id %q is empty, long or taken", i, c.ID)
			}
			seen[c.ID] = true
			open = append(open, c.ID)
		}
		if m.ID != "" {
			if len(open) == 0 || open[0] != m.ID {
				t.Fatalf("message %d: result of %q, want of %v", i, m.ID, open)
			}
			open = open[1:]
		}
	}
	if !seen["1"] || len(seen) != 12 {
		t.Errorf("ids %v", seen)
	}
}

// TestLearns has servers that refuse forms of requests: one refusal each, then it is remembered.
func TestLearns(t *testing.T) {
	full := func() *memgpt.Request {
		r := modeltest.Request("hi")
		r.Choice = memgpt.ChoiceRequired
		r.Messages = append(r.Messages, memgpt.TextMessage("user", "", "more"))
		return r
	}
	for _, test := range []struct {
		name    string
		status  int
		refusal string
		bad     func(body string) bool
		posts   int // for two calls
	}{
		{"stream_options", 400, oai("Unrecognized request argument supplied: stream_options"), contains(`"stream_options"`), 3},
		{"stream_options, FastAPI", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`, contains(`"stream_options"`), 3},
		{"an unknown field without a name", 400, oai("json: unknown field in request"), contains(`"stream_options"`), 3},
		{"stream", 400, oai("streaming is not supported by this server"), contains(`"stream":true`), 3},
		{"max_tokens", 400, oai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."), contains(`"max_tokens"`), 3},
		{"any max_tokens", 400, oai("max_tokens and max_completion_tokens are not allowed"), func(b string) bool { return strings.Contains(b, "max_") }, 4},
		{"tool_choice", 400, oai("tool_choice required is not supported"), contains(`"tool_choice"`), 3},
		{"roles", 500, oai("Jinja error: Conversation roles must alternate user/assistant/user/assistant"), contains(`"},{"role":"user","content":"more"}`), 3},
		{"everything", 400, oai("stop"), nil, 1},
		{"tools", 400, oai("x does not support tools"), nil, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := script.NewServer(script.ServerConfig{Config: script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
				if len(req.Messages) < 3 {
					return script.Text("half a request")
				}
				return script.Text("ok")
			}}})
			h := refusing(s, test.status, test.refusal, test.bad)
			m := serve(t, h, Config{})
			for range 2 {
				req := full()
				req.Again = func() []memgpt.Message { return full().Messages }
				resp, err := m.Generate(t.Context(), req, nil)
				if req.Messages != nil {
					t.Error("the messages are kept")
				}
				if test.bad == nil {
					if memgpt.CodeOf(err) != memgpt.CodeModelRequest || h.posts.Load() != int64(test.posts) {
						t.Errorf("%v after %d requests", err, h.posts.Load())
					}
					return
				}
				if err != nil || resp.Message.Said() != "ok" {
					t.Fatalf("%+v, %v", resp, err)
				}
			}
			if h.posts.Load() != int64(test.posts) {
				t.Errorf("%d requests for two calls, want %d", h.posts.Load(), test.posts)
			}
		})
	}
}

// TestSchemaRefused has servers that can't hold a reply to a schema. The caller is told, since without it the reply would be
// another one, and nothing else is taken out of the request.
func TestSchemaRefused(t *testing.T) {
	for _, refusal := range []string{
		"Unrecognized request argument supplied: response_format",
		"'response_format' of type 'json_schema' is not supported with this model.",
		"This response_format type is unavailable now: stream and max_tokens are not allowed with json_schema",
		"Invalid schema for text.format 'reply': max_output_tokens",
	} {
		h := refusing(nil, 400, oai(refusal), nil)
		cfg := Config{Schema: true}
		if strings.Contains(refusal, "text.format") {
			cfg.API = APIResponses
		}
		m := serve(t, h, cfg)
		before := m.shape("")
		req := modeltest.Request("hi")
		req.Schema = jsonRaw(`{"type":"object"}`)
		if _, err := m.Generate(t.Context(), req, nil); memgpt.CodeOf(err) != memgpt.CodeModelRequest || h.posts.Load() != 1 {
			t.Errorf("%s: %v after %d requests", refusal, err, h.posts.Load())
		}
		if m.shape("") != before {
			t.Errorf("%s: taken for a wish of the server: %+v", refusal, m.shape(""))
		}
	}
}

// TestOverflowTeachesNothing has refusals that name a field but are not about the form of the request.
func TestOverflowTeachesNothing(t *testing.T) {
	for status, refusal := range map[int]string{
		400: oai("'max_tokens' is not allowed to be so large: this model's maximum context length is 4096 tokens and your request has 4000 input tokens"),
		429: oai("stream_options: too many unsupported requests"),
		503: oai("unknown field of stream_options"),
	} {
		h := refusing(nil, status, refusal, nil)
		m := serve(t, h, Config{})
		if _, err := m.Generate(t.Context(), modeltest.Request("hi"), nil); err == nil || h.posts.Load() != 1 {
			t.Errorf("%d: %d requests, %v", status, h.posts.Load(), err)
		}
	}
}

// TestHead looks at what goes before the body: its length, since some servers take no chunks, and no wish for a
// compressed answer, which would be held back by its encoder.
func TestHead(t *testing.T) {
	s := script.NewServer(script.ServerConfig{Key: "k", Config: script.Config{Replies: []script.Reply{script.Text("ok")}}})
	m := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength <= 0 || r.Header.Get("Accept-Encoding") != "" || r.Header.Get("X-Title") != "t" {
			t.Errorf("length %d, header %v", r.ContentLength, r.Header)
		}
		s.ServeHTTP(w, r)
	}), Config{APIKey: "k", Headers: map[string]string{"X-Title": "t"}})
	if _, err := m.Generate(t.Context(), ask("hi"), nil); err != nil {
		t.Error(err)
	}
}

func contains(s string) func(string) bool {
	return func(body string) bool { return strings.Contains(body, s) }
}

// TestStrictServer has an upstream that takes no field beyond the oldest.
func TestStrictServer(t *testing.T) {
	s := script.NewServer(script.ServerConfig{Strict: true, Config: script.Config{Replies: []script.Reply{script.Say("你好🍷"), script.Say("again")}}})
	m := serve(t, s, Config{})
	for i := range 2 {
		resp, err := m.Generate(t.Context(), modeltest.Request("hi"), nil)
		if err != nil || len(resp.Message.Calls()) != 1 {
			t.Fatalf("call %d: %+v, %v", i, resp, err)
		}
	}
	if s.Refused() != 1 || s.Posts() != 3 {
		t.Errorf("%d of %d requests refused", s.Refused(), s.Posts())
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("你好\n\"\\\u2028<&>", "id", "{}", "\x00\xff\x1f")
	f.Fuzz(func(t *testing.T, s, id, args, name string) {
		req := &memgpt.Request{Model: name, Messages: []memgpt.Message{
			memgpt.TextMessage("user", "", s),
			{Role: "assistant", Parts: memgpt.Parts{memgpt.Call{ID: id, Name: name, Arguments: args}, memgpt.Call{ID: s, Name: name, Arguments: s}}},
			{Role: "tool", Parts: memgpt.Parts{memgpt.Result{CallID: id, Text: s}}},
		}}
		body := encode(req, name, &Config{}, shape{})
		if !json.Valid(body) || !utf8.Valid(body) || strings.Contains(string(body), "\\u0000") {
			t.Fatalf("body %q", body)
		}
		var got struct {
			Messages []struct {
				Content   string
				ToolCalls []struct {
					ID       string
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		want := memgpt.CleanText(s)
		if want == "" && strings.Trim(s, "\x00") == "" {
			want = got.Messages[0].Content
		}
		if runs(got.Messages[0].Content) != runs(want) {
			t.Errorf("text %q, want %q", got.Messages[0].Content, want)
		}
		for _, c := range got.Messages[1].ToolCalls {
			if !json.Valid([]byte(c.Function.Arguments)) || c.ID == "" || utf8.RuneCountInString(c.ID) > 40 {
				t.Errorf("call %+v", c)
			}
		}
		if got.Messages[1].ToolCalls[0].ID == got.Messages[1].ToolCalls[1].ID {
			t.Errorf("ids are the same: %q", got.Messages[1].ToolCalls[0].ID)
		}
	})
}

// runs makes one replacement character of several, since CleanText does so and the encoder need not.
func runs(s string) string {
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}

func TestTextIsNotEscaped(t *testing.T) {
	s := "请牢记,我不能喝酒 🍷 <b>&amp;</b> \u2028 é"
	m, srv := scripted(t, Config{}, script.Text("ok"))
	if _, err := m.Generate(t.Context(), ask(s), nil); err != nil {
		t.Fatal(err)
	}
	if body := string(srv.Bodies()[0]); !strings.Contains(body, s) || strings.Contains(body, `\u`) {
		t.Errorf("body %s", body)
	}
}
