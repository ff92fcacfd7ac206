package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/internal/wire"
	"memgpt/model/modeltest"
)

// TestContract runs the contract against a scripted server.
func TestContract(t *testing.T) {
	calls := says(piece(`{"role":"assistant","content":"","thinking":"想"}`), piece(`{"role":"assistant","content":"好"}`), piece(`{"role":"assistant","content":"的🍷"}`),
		piece(`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"send_message","arguments":{"message":"你好"}}},{"function":{"name":"f","arguments":{}}}]}`), end("stop", counts))
	text := says(piece(`{"role":"assistant","content":"只有文字"}`), end("stop", counts))
	modeltest.Run(t, func(t *testing.T) modeltest.Subject {
		var opened atomic.Int64
		at := func(answer func(int, *wireChat, http.ResponseWriter, *http.Request)) *Model {
			srv := httptest.NewUnstartedServer(&server{t: t, show: everything, version: "0.33.2", answer: answer})
			srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					opened.Add(1)
				}
			}
			srv.Start()
			t.Cleanup(srv.Close)
			m, err := New(Config{BaseURL: srv.URL, Model: "qwen3:8b"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = m.Close() })
			return m
		}
		return modeltest.Subject{
			Model: at(func(n int, req *wireChat, w http.ResponseWriter, r *http.Request) {
				if len(req.Tools) == 0 {
					text(n, req, w, r)
				} else {
					calls(n, req, w, r)
				}
			}),
			Stuck:       at(func(_ int, _ *wireChat, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			Connections: func() int { return int(opened.Load()) },
		}
	})
}

// TestRequest holds the whole shape of a request with everything in it.
func TestRequest(t *testing.T) {
	s := &server{answer: says(piece(`{"content":"ok"}`), end("stop", counts))}
	m := serve(t, Config{KeepAlive: "10m", Think: "true", Options: map[string]json.RawMessage{"temperature": json.RawMessage("0.5")}}, s)
	assistant := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Reasoning{Text: "own", Provider: "ollama"}, memgpt.Reasoning{Text: "foreign", Provider: "openai"},
		memgpt.Text{Text: "a thought", Thought: true}, memgpt.Call{ID: "c1", Name: "f", Arguments: `{"a":"<b>"}`}, memgpt.Call{ID: "c2", Name: "g", Arguments: "{cut"}}}
	req := ask(user(memgpt.Text{Text: "look"}, memgpt.Image{MIME: "image/png", Data: []byte("PNG")}, memgpt.Image{URL: "https://example.com/a.png"}), assistant,
		memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "c1", Name: "f", Text: "one"}}},
		memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "c2", Text: "two"}}})
	if _, err := m.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	var got, want any
	const body = `{"model":"qwen3:8b","stream":true,"think":true,"keep_alive":"10m","truncate":false,"shift":false,
		"options":{"num_ctx":8192,"num_predict":500,"temperature":0.5},
		"tools":[{"type":"function","function":{"name":"f","description":"Does f.","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}],
		"messages":[{"role":"system","content":"system"},
			{"role":"user","content":"look\n[image https://example.com/a.png: not shown, this model can't see it]","images":["UE5H"]},
			{"role":"assistant","content":"a thought","thinking":"own","tool_calls":[{"id":"c1","function":{"name":"f","arguments":{"a":"<b>"}}},{"id":"c2","function":{"name":"g","arguments":{}}}]},
			{"role":"tool","content":"one","tool_name":"f","tool_call_id":"c1"},
			{"role":"tool","content":"two","tool_name":"g","tool_call_id":"c2"}]}`
	if json.Unmarshal(s.bodies[0], &got) != nil || json.Unmarshal([]byte(body), &want) != nil {
		t.Fatal("no JSON")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := []string{"POST /api/show", "GET /api/version", "POST /api/chat"}; !cmp.Equal(s.paths, want) {
		t.Errorf("asked %v, want %v: nothing is pulled unasked", s.paths, want)
	}
}

// TestSchemaGoesOut holds that a schema is the format of the reply, and that there is none without it.
func TestSchemaGoesOut(t *testing.T) {
	s := &server{answer: says(piece(`{"content":"{}"}`), end("stop", counts))}
	m := serve(t, Config{}, s)
	if !m.Capabilities().Schema {
		t.Error("it is not said that replies are held to a schema")
	}
	for i, schema := range []string{`{"type":"object","properties":{"z":{},"a":{}}}`, ""} {
		req := hi()
		req.Schema = json.RawMessage(schema)
		if _, err := m.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Format json.RawMessage `json:"format"`
		}
		if err := json.Unmarshal(s.bodies[i], &got); err != nil || string(got.Format) != schema {
			t.Errorf("format %s, want %s: %v", got.Format, schema, err)
		}
	}
}

// TestWindowGoesOut holds that num_ctx is the agent's window in every request, summaries too, else the configured one.
func TestWindowGoesOut(t *testing.T) {
	s := &server{answer: says(piece(`{"content":"ok"}`), end("stop", counts))}
	m := serve(t, Config{Window: 4096}, s)
	for i, window := range []int{8192, 16384, 0} {
		req := hi()
		req.Window = window
		if i == 1 {
			req.Purpose = memgpt.PurposeSummary
		}
		if _, err := m.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if window == 0 {
			window = 4096
		}
		if got := s.request(i).Options["num_ctx"]; got != float64(window) {
			t.Errorf("num_ctx %v, want %d", got, window)
		}
	}
}

// TestCapabilities holds that tools, thinking and images go out only where the model has them, by its capabilities or, on
// older servers, its template.
func TestCapabilities(t *testing.T) {
	call := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Reasoning{Text: "t", Provider: "ollama"}, memgpt.Call{ID: "c1", Name: "f", Arguments: `{"a":1}`}}}
	result := memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "c1", Name: "f", Text: "one"}}}
	for _, tt := range []struct {
		name, show              string
		tools, thinking, vision bool
		window                  int
	}{
		{"everything", everything, true, true, true, 40960},
		{"nothing", `{"template":"{{ .Tools }}","capabilities":["completion"],"model_info":{"general.architecture":"x"}}`, false, false, false, 0},
		{"old server, template with tools", `{"template":"{{ if .Tools }}x{{ end }}"}`, true, false, false, 0},
		{"old server, template without", `{"template":"{{ .Prompt }}","projector_info":{"a":1},"model_info":{"general.architecture":"llama","llama.context_length":2048}}`, false, false, true, 2048},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{show: tt.show, answer: says(piece(`{"content":"ok"}`), end("stop", counts))}
			m := serve(t, Config{Think: "high"}, s)
			if _, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "hi"}, memgpt.Image{Data: []byte("x")}), call, result), nil); err != nil {
				t.Fatal(err)
			}
			got := s.request(0)
			if tools := len(got.Tools) > 0; tools != tt.tools || (got.Think == "high") != tt.thinking || (len(got.Messages[1].Images) == 1) != tt.vision {
				t.Errorf("sent %+v", got)
			}
			if c := m.Capabilities(); c.Tools != tt.tools || c.Reasoning != tt.thinking || c.Images != tt.vision || c.Window != tt.window {
				t.Errorf("capabilities %+v", c)
			}
			if last := got.Messages[3]; !tt.tools && (last.Role != "user" || last.Content != "[result of f] one" || got.Messages[2].Content != `f{"a":1}`) {
				t.Errorf("calls in words: %+v", got.Messages)
			}
		})
	}
}

// TestCorrects holds that a model that can't do what its capabilities say is asked again without it, once.
func TestCorrects(t *testing.T) {
	s := &server{}
	s.answer = func(n int, req *wireChat, w http.ResponseWriter, r *http.Request) {
		switch {
		case len(req.Tools) > 0:
			refuse(w, 400, `registry.ollama.ai/library/x does not support tools`)
		case req.Think != nil:
			refuse(w, 400, `"x" does not support thinking`)
		default:
			says(piece(`{"content":"ok"}`), end("stop", counts))(n, req, w, r)
		}
	}
	m := serve(t, Config{Think: "true"}, s)
	for _, posts := range []int{3, 4} {
		if _, err := m.Generate(t.Context(), hi(), nil); err != nil {
			t.Fatal(err)
		}
		if len(s.bodies) != posts {
			t.Errorf("%d requests, want %d", len(s.bodies), posts)
		}
	}
	if c := m.Capabilities(); c.Tools || c.Reasoning {
		t.Errorf("capabilities %+v", c)
	}
}

// TestAnswers holds how answers are read.
func TestAnswers(t *testing.T) {
	call := `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a": "b"}}}]}`
	for _, tt := range []struct {
		name   string
		lines  []string
		parts  memgpt.Parts
		finish memgpt.Finish
	}{
		{"text", []string{piece(`{"content":"a"}`), "", piece(`{"content":"b"}`), end("stop", "")}, memgpt.Parts{memgpt.Text{Text: "ab"}}, memgpt.FinishStop},
		{"length", []string{piece(`{"content":"a"}`), end("length", "")}, memgpt.Parts{memgpt.Text{Text: "a"}}, memgpt.FinishLength},
		{"length without text", []string{end("length", "")}, nil, memgpt.FinishLength},
		{"no line end", []string{piece(`{"content":"a"}`), strings.TrimSpace(end("stop", ""))}, memgpt.Parts{memgpt.Text{Text: "a"}}, memgpt.FinishStop},
		{"thinking", []string{piece(`{"content":"","thinking":"t"}`), piece(`{"content":"a","thinking":"u"}`), end("stop", "")}, memgpt.Parts{memgpt.Reasoning{Text: "tu", Provider: "ollama"}, memgpt.Text{Text: "a"}}, memgpt.FinishStop},
		{"calls", []string{piece(call), piece(call), end("stop", "")}, memgpt.Parts{memgpt.Call{ID: "new_1", Name: "f", Arguments: `{"a": "b"}`}, memgpt.Call{ID: "new_2", Name: "f", Arguments: `{"a": "b"}`}}, memgpt.FinishCalls},
		{"calls in the last line", []string{`{"message":` + call + `,"done":true,"done_reason":"stop"}`}, memgpt.Parts{memgpt.Call{ID: "new_1", Name: "f", Arguments: `{"a": "b"}`}}, memgpt.FinishCalls},
		{"named calls, odd arguments", []string{piece(`{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"x","function":{"name":"","arguments":null}}]}`), end("stop", "")},
			memgpt.Parts{memgpt.Call{ID: "x", Name: "f", Arguments: `{"a":1}`}, memgpt.Call{ID: "new_1", Name: "unknown", Arguments: "{}"}}, memgpt.FinishCalls},
		{"not text", []string{piece(`{"content":"a\u0000b\ud800"}`), end("stop", "")}, memgpt.Parts{memgpt.Text{Text: "ab\uFFFD"}}, memgpt.FinishStop},
		{"odd fields", []string{`{"created_at":7,"message":{"content":"a"},"done":false}`, end("stop", `,"eval_count":"many"`)}, memgpt.Parts{memgpt.Text{Text: "a"}}, memgpt.FinishStop},
		{"long line", []string{piece(`{"content":"` + strings.Repeat("x", 5000) + `"}`), end("stop", "")}, memgpt.Parts{memgpt.Text{Text: strings.Repeat("x", 5000)}}, memgpt.FinishStop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			m := serve(t, Config{NewID: func() string { n++; return fmt.Sprint("new_", n) }}, &server{answer: says(tt.lines...)})
			resp, err := m.Generate(t.Context(), hi(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.parts, resp.Message.Parts); diff != "" || resp.Finish != tt.finish {
				t.Errorf("finish %s, want %s\n%s", resp.Finish, tt.finish, diff)
			}
		})
	}
}

// TestUsage holds which counts are believed: those of servers that leave out what was cached would look like a cut prompt.
func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		version, counts string
		want            memgpt.Usage
	}{
		{"0.33.2", counts, memgpt.Usage{Input: 26, Output: 298, Calls: 1}},
		{"0.34.0", counts + `,"prompt_eval_cached_count":16`, memgpt.Usage{Input: 26, Cached: 16, Output: 298, Calls: 1}},
		{"0.34.0", counts + `,"prompt_eval_cached_count":99`, memgpt.Usage{Input: 26, Cached: 26, Output: 298, Calls: 1}},
		{"0.30.1", counts, memgpt.Usage{Output: 298, Calls: 1}},
		{"0.30.9", counts + `,"prompt_eval_cached_count":0`, memgpt.Usage{Input: 26, Output: 298, Calls: 1}},
		{"0.1.30", counts, memgpt.Usage{Output: 298, Calls: 1}},
		{"0.6.2", counts, memgpt.Usage{Input: 26, Output: 298, Calls: 1}},
		{"0.0.0", counts, memgpt.Usage{Input: 26, Output: 298, Calls: 1}},
		{"1.0.0", counts, memgpt.Usage{Input: 26, Output: 298, Calls: 1}},
		{"?", counts, memgpt.Usage{Input: 26, Output: 298, Calls: 1}},
	} {
		m := serve(t, Config{}, &server{version: tt.version, answer: says(piece(`{"content":"a"}`), end("stop", tt.counts))})
		resp, err := m.Generate(t.Context(), hi(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Usage != tt.want {
			t.Errorf("%s: usage %+v, want %+v", tt.version, resp.Usage, tt.want)
		}
	}
}

// TestRefusals holds the code and the words of what servers refuse.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		said   string
		want   memgpt.Error
		text   string
	}{
		{"no model", 404, `model "qwen3:8b" not found, try pulling it first`, memgpt.Error{Code: memgpt.CodeModelRequest}, "`ollama pull qwen3:8b`"},
		{"overflow of llama.cpp", 400, "request (7952 tokens) exceeds the available context size (4096 tokens), try increasing it", memgpt.Error{Code: memgpt.CodeModelOverflow, Tokens: 7952, Limit: 4096}, ""},
		{"overflow of a runner", 400, "the input length exceeds the context length", memgpt.Error{Code: memgpt.CodeModelOverflow}, ""},
		{"overflow as a failure", 500, "the input length exceeds the context length", memgpt.Error{Code: memgpt.CodeModelOverflow}, ""},
		{"busy", 503, "server busy, please try again.  maximum pending requests exceeded", memgpt.Error{Code: memgpt.CodeModelDown, RetryAfter: 3 * time.Second}, ""},
		{"memory", 500, "model requires more system memory (9.1 GiB) than is available (4.0 GiB)", memgpt.Error{Code: memgpt.CodeModelRequest}, "smaller window"},
		{"crash", 500, "llama runner process has terminated: exit status 2", memgpt.Error{Code: memgpt.CodeModelDown, RetryAfter: 3 * time.Second}, ""},
		{"key", 401, "unauthorized secret-key", memgpt.Error{Code: memgpt.CodeModelAuth}, "check the API key"},
		{"cloud limit", 429, "you have reached your hourly usage limit", memgpt.Error{Code: memgpt.CodeModelLimit, RetryAfter: 3 * time.Second}, ""},
		{"options", 400, `option "x" must be of type integer`, memgpt.Error{Code: memgpt.CodeModelRequest}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := serve(t, Config{APIKey: "secret-key"}, &server{answer: func(_ int, _ *wireChat, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "3")
				refuse(w, tt.status, tt.said)
			}})
			_, err := m.Generate(t.Context(), hi(), nil)
			wantError(t, err, tt.want, tt.text)
		})
	}
	m := serve(t, Config{Model: "missing"}, &server{})
	_, err := m.Generate(t.Context(), hi(), nil)
	wantError(t, err, memgpt.Error{Code: memgpt.CodeModelRequest}, "`ollama pull missing`")
}

func wantError(t *testing.T, err error, want memgpt.Error, text string) {
	t.Helper()
	var e *memgpt.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	got := memgpt.Error{Code: e.Code, RetryAfter: e.RetryAfter, Tokens: e.Tokens, Limit: e.Limit, Started: e.Started}
	if got != want || !strings.Contains(e.Error(), text) || strings.Contains(e.Error(), "secret-key") {
		t.Errorf("got %+v %q\nwant %+v with %q", got, e.Error(), want, text)
	}
}

// TestBroken holds what becomes of answers that end badly.
func TestBroken(t *testing.T) {
	half := piece(`{"content":"a"}`)
	for _, tt := range []struct {
		name  string
		lines []string
		want  memgpt.Error
		text  string
	}{
		{"breaks off", []string{half, ""}, memgpt.Error{Code: memgpt.CodeModelDown, Started: true}, "broke off"},
		{"breaks off in a line", []string{half, `{"mess`}, memgpt.Error{Code: memgpt.CodeModelDown, Started: true}, "not JSON"},
		{"nothing", nil, memgpt.Error{Code: memgpt.CodeModelDown}, "without a body"},
		{"error in the stream", []string{half, `{"error":"an error was encountered while running the model"}`}, memgpt.Error{Code: memgpt.CodeModelDown, Started: true}, "an error was encountered"},
		{"overflow in the stream", []string{`{"error":"request (9 tokens) exceeds the available context size (8 tokens)"}`}, memgpt.Error{Code: memgpt.CodeModelOverflow, Tokens: 9, Limit: 8}, ""},
		{"empty", []string{end("stop", counts)}, memgpt.Error{Code: memgpt.CodeModelEmpty}, ""},
		{"a page", []string{"<html>"}, memgpt.Error{Code: memgpt.CodeModelRequest}, "check the base URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := serve(t, Config{}, &server{answer: says(tt.lines...)})
			resp, err := m.Generate(t.Context(), hi(), nil)
			wantError(t, err, tt.want, tt.text)
			if empty := tt.want.Code == memgpt.CodeModelEmpty; (resp != nil) != empty || empty && resp.Usage.Input != 26 {
				t.Errorf("response %+v", resp)
			}
		})
	}
}

// TestSilence holds both time limits.
func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		name, first string
		cfg         Config
	}{
		{"nothing", "", Config{First: 30 * time.Millisecond}},
		{"stops in the middle", piece(`{"content":"a"}`) + "\n", Config{Idle: 30 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := serve(t, tt.cfg, &server{answer: func(_ int, _ *wireChat, w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, tt.first)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}})
			_, err := m.Generate(t.Context(), hi(), nil)
			wantError(t, err, memgpt.Error{Code: memgpt.CodeModelTimeout, Started: tt.first != ""}, "within 30ms")
		})
	}
}

// TestPull holds that a download tells its progress, is whole only with its last word, and that Show asks anew after it.
func TestPull(t *testing.T) {
	s := &server{answer: says(`{"status":"pulling manifest"}`, `{"status":"pulling aa","digest":"sha256:aa","total":10,"completed":5}`, `{"status":"success"}`, "")}
	m := serve(t, Config{}, s)
	if _, err := m.Show(t.Context(), "qwen3:8b"); err != nil {
		t.Fatal(err)
	}
	var got []Progress
	if err := m.Pull(t.Context(), "qwen3:8b", func(p Progress) { got = append(got, p) }); err != nil {
		t.Fatal(err)
	}
	if want := []Progress{{Status: "pulling manifest"}, {"pulling aa", "sha256:aa", 10, 5}, {Status: "success"}}; !cmp.Equal(got, want) {
		t.Errorf("progress %+v", got)
	}
	if _, err := m.Show(t.Context(), "qwen3:8b"); err != nil || strings.Count(strings.Join(s.paths, " "), "/api/show") != 2 {
		t.Errorf("%v %v", s.paths, err)
	}
	s.answer = says(`{"status":"pulling manifest"}`, `{"error":"pull model manifest: file does not exist"}`)
	wantError(t, m.Pull(t.Context(), "x", nil), memgpt.Error{Code: memgpt.CodeModelDown}, "file does not exist")
	s.answer = says(`{"status":"pulling manifest"}`, "")
	wantError(t, m.Pull(t.Context(), "x", nil), memgpt.Error{Code: memgpt.CodeModelDown}, "broke off")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Pull(ctx, "x", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestConfig holds what New refuses, and the forms of addresses and of keep_alive.
func TestConfig(t *testing.T) {
	for _, cfg := range []Config{{BaseURL: "ftp://x"}, {BaseURL: "http://"}, {Think: "much"}, {Options: map[string]json.RawMessage{"num_ctx": json.RawMessage("1")}}, {Options: map[string]json.RawMessage{"x": json.RawMessage("{")}}} {
		if _, err := New(cfg); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for in, want := range map[string]string{"": "http://127.0.0.1:11434", "box:11434": "http://box:11434", "https://h/v1/": "https://h", "http://h/p/api/chat": "http://h/p"} {
		if u, err := parseBase(in); err != nil || u.String() != want {
			t.Errorf("%q: %v %v, want %s", in, u, err, want)
		}
	}
	for in, want := range map[string]string{"": "null", "10m": `"10m"`, "-1": "-1", "0": "0"} {
		if b, err := json.Marshal(keepAlive(in)); err != nil || string(b) != want {
			t.Errorf("keep_alive %q: %s, want %s", in, b, want)
		}
	}
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Generate(t.Context(), hi(), nil)
	wantError(t, err, memgpt.Error{Code: memgpt.CodeModelRequest}, "`ollama list`")
}

// FuzzStream holds that no answer breaks the reader: what it passes on is text and adds up to the response.
func FuzzStream(f *testing.F) {
	f.Add([]byte(piece(`{"content":"a","thinking":"t","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}`) + "\n" + end("stop", counts)))
	f.Add([]byte(`{"message":{"tool_calls":[{"function":{"arguments":[1]}},null]},"done":true,"prompt_eval_count":-1}`))
	f.Add([]byte("{\"error\":\"x\"}\r\n"))
	m := &Model{base: httptest.NewRequest(http.MethodGet, "http://h/", nil).URL}
	f.Fuzz(func(t *testing.T, body []byte) {
		rec := httptest.NewRecorder()
		_, _ = rec.Write(body)
		w := wire.NewWatch(t.Context(), wire.Limits{First: time.Minute, Idle: time.Minute, Filler: filler})
		defer w.Stop()
		var text, reasoning string
		var calls []memgpt.Call
		n := 0
		resp, fault := m.read(w, rec.Result(), newReply(func(d memgpt.Delta) {
			text, reasoning = text+d.Text, reasoning+d.Reasoning
			if d.Call != nil {
				calls = append(calls, memgpt.Call{ID: d.Call.ID, Name: d.Call.Name, Arguments: d.Call.Arguments})
			}
			if !utf8.ValidString(d.Text + d.Reasoning) {
				t.Errorf("a piece is no text: %q", d.Text+d.Reasoning)
			}
		}, func() string { n++; return fmt.Sprint("new_", n) }, "m", true))
		if fault != nil {
			return
		}
		if diff := cmp.Diff(calls, resp.Message.Calls()); diff != "" {
			t.Error(diff)
		}
		for _, p := range resp.Message.Parts {
			switch p := p.(type) {
			case memgpt.Text:
				text = strings.TrimPrefix(text, p.Text)
			case memgpt.Reasoning:
				reasoning = strings.TrimPrefix(reasoning, p.Text)
			}
		}
		if text+reasoning != "" || resp.Usage.Input < resp.Usage.Cached || resp.Usage.Input < 0 {
			t.Errorf("left over %q %q, usage %+v", text, reasoning, resp.Usage)
		}
		if _, err := encode(ask(user(memgpt.Text{Text: "a"}), resp.Message), "m", &m.cfg, &Shown{Tools: true, Thinking: true}); err != nil {
			t.Errorf("the response can't go back: %v", err)
		}
	})
}
