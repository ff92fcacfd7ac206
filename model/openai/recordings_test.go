package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// recording is a real answer of llama.cpp's server.
type recording struct {
	Method, Path, Request, Response string
	Status                          int
	ContentType                     string `json:"content_type"`
	Headers                         map[string]string
	body, asked                     string
}

// recordingsDir returns the folder of the recordings beside the repository.
func recordingsDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above")
		}
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, "..", "shared", "reference", "model-recordings", "llama-server")
}

// recordings reads the recordings beside the repository; it skips where they are absent.
func recordings(t *testing.T) map[string]recording {
	t.Helper()
	dir := recordingsDir(t)
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the recordings are not beside the repository (../shared)")
	}
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]recording{}
	if err := json.Unmarshal(index, &list); err != nil {
		t.Fatal(err)
	}
	for name, r := range list {
		body, err := os.ReadFile(filepath.Join(dir, r.Response))
		if err != nil {
			t.Fatal(err)
		}
		r.body = string(body)
		if r.Request != "" {
			asked, err := os.ReadFile(filepath.Join(dir, r.Request))
			if err != nil {
				t.Fatal(err)
			}
			r.asked = string(asked)
		}
		list[name] = r
	}
	return list
}

func (r recording) reply(cut bool) script.Reply {
	return script.Reply{Wire: &script.Wire{Status: r.Status, Body: r.body, Cut: cut, Header: map[string]string{"Content-Type": r.ContentType}}}
}

// recorded is what is to come of a chat recording that is not simply read (TestRecordedAnswers says how).
var recorded = map[string]struct {
	code          memgpt.Code
	started       bool
	tokens, limit int
}{
	"auth-missing":                   {code: memgpt.CodeModelAuth},
	"auth-wrong":                     {code: memgpt.CodeModelAuth},
	"chat-loading":                   {code: memgpt.CodeModelDown},
	"error-bad-arguments-in-history": {code: memgpt.CodeModelRequest},
	"error-bad-grammar":              {code: memgpt.CodeModelRequest},
	"error-bad-json":                 {code: memgpt.CodeModelRequest},
	"error-bad-schema":               {code: memgpt.CodeModelRequest},
	"error-bad-tool-choice":          {code: memgpt.CodeModelRequest},
	"error-context-exceeded":         {code: memgpt.CodeModelOverflow, tokens: 2522, limit: 2048},
	"error-context-exceeded-stream":  {code: memgpt.CodeModelOverflow, tokens: 2522, limit: 2048},
	"error-grammar-with-tools":       {code: memgpt.CodeModelRequest},
	"error-image-part":               {code: memgpt.CodeModelRequest},
	"error-n-2":                      {code: memgpt.CodeModelRequest},
	"error-no-content":               {code: memgpt.CodeModelRequest},
	"error-no-messages":              {code: memgpt.CodeModelRequest},
	"stream-cut":                     {code: memgpt.CodeModelDown, started: true},
	"stream-ping":                    {code: memgpt.CodeModelEmpty}, // pings, then a message without text
}

// TestRecordedAnswers replays every recorded chat answer. Those with status 200 must give what a plain reading of the
// recording gives.
func TestRecordedAnswers(t *testing.T) {
	n := 0
	for name, rec := range recordings(t) {
		if !strings.HasSuffix(rec.Path, "/chat/completions") {
			continue
		}
		n++
		t.Run(name, func(t *testing.T) {
			m, srv := scripted(t, Config{}, rec.reply(name == "stream-cut"))
			var h heard
			resp, err := m.Generate(t.Context(), ask("hi"), h.add)
			if want, ok := recorded[name]; ok {
				var e *memgpt.Error
				if !errors.As(err, &e) || e.Code != want.code || e.Started != want.started || e.Tokens != want.tokens || e.Limit != want.limit {
					t.Errorf("error %+v, want %+v", err, want)
				}
				if srv.Posts() != 1 {
					t.Errorf("%d requests", srv.Posts())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			h.same(t, resp)
			plainReading(t, rec.body, resp)
		})
	}
	if n < 40 {
		t.Errorf("only %d chat recordings", n)
	}
}

// plainReading compares a response with the recording read in the simplest way: every string in its place added up.
func plainReading(t *testing.T, body string, resp *memgpt.Response) {
	t.Helper()
	var content, reasoning, names, args, ids, finish, model string
	var cached, output float64
	for _, line := range strings.Split(body, "\n") {
		var c map[string]any
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c) != nil {
			continue
		}
		model, _ = c["model"].(string)
		if u, ok := c["usage"].(map[string]any); ok {
			output, _ = u["completion_tokens"].(float64)
			cached, _ = u["prompt_tokens_details"].(map[string]any)["cached_tokens"].(float64)
		}
		for _, ch := range c["choices"].([]any) {
			ch := ch.(map[string]any)
			if f, ok := ch["finish_reason"].(string); ok {
				finish = f
			}
			msg, ok := ch["message"].(map[string]any)
			if !ok {
				msg, _ = ch["delta"].(map[string]any)
			}
			s, _ := msg["content"].(string)
			content += s
			s, _ = msg["reasoning_content"].(string)
			reasoning += s
			calls, _ := msg["tool_calls"].([]any)
			for _, call := range calls {
				call := call.(map[string]any)
				s, _ = call["id"].(string)
				ids += s
				fn := call["function"].(map[string]any)
				s, _ = fn["name"].(string)
				names += s
				args += fn["arguments"].(string)
			}
		}
	}
	if strings.HasPrefix(content, "<think>") {
		reasoning, content, _ = strings.Cut(strings.TrimPrefix(content, "<think>"), "</think>")
		content = strings.TrimSpace(content)
	}
	text, thinking := textAndThinking(resp)
	var gotNames, gotArgs, gotIDs string
	for _, c := range resp.Message.Calls() {
		gotNames += c.Name
		gotArgs += c.Arguments
		gotIDs += c.ID
	}
	if text != content || thinking != reasoning || gotNames != names || gotArgs != args || gotIDs != ids {
		t.Errorf("got %q, %q, %q, %q, %q\nwant %q, %q, %q, %q, %q", text, thinking, gotNames, gotArgs, gotIDs, content, reasoning, names, args, ids)
	}
	if string(resp.Finish) != finish || resp.Model != model || resp.Usage.Output != int(output) || resp.Usage.Cached != int(cached) {
		t.Errorf("finish %q, model %q, usage %+v; want %q, %q, %v out, %v cached", resp.Finish, resp.Model, resp.Usage, finish, model, output, cached)
	}
}

func TestRecordedShapes(t *testing.T) {
	list := recordings(t)
	read := func(name string) *memgpt.Response {
		m, _ := scripted(t, Config{}, list[name].reply(false))
		resp, err := m.Generate(t.Context(), ask("hi"), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return resp
	}
	if calls := read("parallel-calls-stream").Message.Calls(); len(calls) < 2 || calls[0].ID == calls[1].ID {
		t.Errorf("parallel calls: %+v", calls)
	}
	if calls := read("tool-call-stream").Message.Calls(); len(calls) != 1 || len(calls[0].ID) != 32 || !object(calls[0].Arguments) {
		t.Errorf("streamed call: %+v", calls)
	}
	for _, name := range []string{"tool-call-truncated", "tool-call-truncated-stream", "parallel-calls-truncated"} {
		resp := read(name)
		calls := resp.Message.Calls()
		if resp.Finish != memgpt.FinishLength || len(calls) == 0 || object(calls[len(calls)-1].Arguments) {
			t.Errorf("%s: %q, %+v", name, resp.Finish, calls)
		}
	}
	if resp := read("chat-unicode-stream"); strings.Contains(resp.Message.Said(), "\uFFFD") {
		t.Errorf("unicode: %q", resp.Message.Said())
	}
	if resp := read("reasoning-stream"); resp.Message.Said() != "Hello!" || resp.Message.Parts[0].(memgpt.Reasoning).Text != "The user greets me.\n" {
		t.Errorf("reasoning: %+v", resp.Message.Parts)
	}
}

// replay serves recordings by path; everything else is refused as that server refuses it.
type replay map[string]recording

func (p replay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec, ok := p[r.URL.Path]
	if !ok {
		rec = recording{Status: 404, ContentType: "application/json", body: `{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`}
	}
	w.Header().Set("Content-Type", rec.ContentType)
	w.WriteHeader(rec.Status)
	_, _ = w.Write([]byte(rec.body))
}

func TestRecordedWindows(t *testing.T) {
	list := recordings(t)
	for _, test := range []struct {
		models, props string
		want          int
	}{
		{"models", "props", 2048},
		{"models-two-slots", "props-two-slots", 1024},
		{"models-gemma", "", 0},
		{"", "props-two-slots", 1024},
	} {
		p := replay{}
		if test.models != "" {
			p["/v1/models"] = list[test.models]
		} else {
			p["/v1/models"] = recording{Status: 200, body: `{"data":[{"id":"m"}]}`}
		}
		if test.props != "" {
			p["/props"] = list[test.props]
		}
		m := serve(t, p, Config{})
		n, err := m.Window(t.Context())
		if test.want == 0 && n > 0 {
			continue // whatever that recording says
		}
		if err != nil || n != test.want || m.Capabilities().Window != n {
			t.Errorf("%+v: window %d, %v, capabilities %+v", test, n, err, m.Capabilities())
		}
	}
}

func TestRecordedDiscovery(t *testing.T) {
	list := recordings(t)
	for _, test := range []struct {
		models, model, note string
		window              int
		none                bool
	}{
		{models: "models-two-slots", model: "smollm2-135m", window: 1024},
		{models: "models-loading", note: "the server is loading its model"},
		{models: "models-no-key", none: true},
	} {
		url := serveURL(t, replay{"/v1/models": list[test.models]})
		f, err := Discover(t.Context(), DiscoverConfig{Places: []Place{{"llama.cpp", url}}, Probe: soon})
		if err != nil {
			t.Fatal(err)
		}
		if test.none {
			if f != nil {
				t.Errorf("%s: found %+v", test.models, f)
			}
			continue
		}
		if f == nil || f.Model != test.model || f.Window != test.window || f.Note != test.note || f.Source != "llama.cpp" {
			t.Errorf("%s: found %+v", test.models, f)
		}
	}
}

func mustParse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
