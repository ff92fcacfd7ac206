package openai

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memgpt"
)

// facts are the recordings with the means to look at them.
type facts map[string]recording

// read replays the answer of a chat.
func (f facts) read(t *testing.T, name string) (*memgpt.Response, *heard) {
	t.Helper()
	m, _ := scripted(t, Config{Provider: "llamacpp"}, f[name].reply(false))
	h := &heard{}
	resp, err := m.Generate(t.Context(), ask("hi"), h.add)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return resp, h
}

// fails replays an answer that is an error.
func (f facts) fails(t *testing.T, name string, want memgpt.Code) *memgpt.Error {
	t.Helper()
	m, s := scripted(t, Config{Provider: "llamacpp"}, f[name].reply(false))
	_, err := m.Generate(t.Context(), ask("hi"), nil)
	e, ok := err.(*memgpt.Error)
	if !ok || e.Code != want || s.Posts() != 1 {
		t.Fatalf("%s: %v after %d requests, want %s after one", name, err, s.Posts(), want)
	}
	return e
}

// at returns a value of a JSON text by its path.
func (f facts) at(t *testing.T, text string, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	for _, p := range path {
		switch p := p.(type) {
		case int:
			v = v.([]any)[p]
		case string:
			v = v.(map[string]any)[p]
		}
	}
	return v
}

// recordedFacts is a test for each row of the table that describes the recordings, by the topic of the row.
var recordedFacts = map[string]func(*testing.T, facts){
	"content beside calls":         factContent,
	"arguments":                    factArguments,
	"call id":                      factCallID,
	"finish_reason":                factFinish,
	"`parallel_tool_calls: false`": factParallel,
	"`tool_choice: \"required\"`":  factRequired,
	"`tool_choice: {object}`":      factChoiceObject,
	"template without tools":       factTemplate,
	"broken arguments in history":  factBrokenArguments,
	"assistant without content and calls": func(t *testing.T, f facts) {
		f.fails(t, "error-no-content", memgpt.CodeModelRequest)
		req := &memgpt.Request{Messages: []memgpt.Message{{Role: memgpt.RoleAssistant}}}
		if got := encoded(req, Config{}, shape{}); !strings.Contains(got, `"content":"(empty)"`) {
			t.Errorf("an empty message goes out as %s", got)
		}
	},
	"grammar with tools": func(t *testing.T, f facts) {
		f.fails(t, "error-grammar-with-tools", memgpt.CodeModelRequest)
		if resp, _ := f.read(t, "json-schema-with-tools"); !object(resp.Message.Said()) || len(resp.Message.Calls()) > 0 {
			t.Errorf("a schema beside functions: %+v", resp.Message)
		}
	},
	"json_schema": func(t *testing.T, f facts) {
		if resp, _ := f.read(t, "json-schema"); !object(resp.Message.Said()) || resp.Finish != memgpt.FinishStop {
			t.Errorf("constrained output: %+v", resp)
		}
		if resp, _ := f.read(t, "json-schema-truncated"); object(resp.Message.Said()) || resp.Finish != memgpt.FinishLength {
			t.Errorf("cut constrained output: %+v", resp)
		}
	},
	"prompt too long": func(t *testing.T, f facts) {
		for _, name := range []string{"error-context-exceeded", "error-context-exceeded-stream"} {
			if e := f.fails(t, name, memgpt.CodeModelOverflow); e.Tokens != 2522 || e.Limit != 2048 {
				t.Errorf("%s: %+v", name, e)
			}
		}
	},
	"context full while answering": factContextFull,
	"error shape":                  factErrorShape,
	"loading":                      factLoading,
	"key": func(t *testing.T, f facts) {
		f.fails(t, "auth-missing", memgpt.CodeModelAuth)
		f.fails(t, "auth-wrong", memgpt.CodeModelAuth)
		m := serve(t, replay{"/v1/models": f["models-no-key"]}, Config{})
		if _, err := m.Window(t.Context()); memgpt.CodeOf(err) != memgpt.CodeModelAuth {
			t.Errorf("the list without a key: %v", err)
		}
	},
	"context size":    factContextSize,
	"exact counts":    factCounts,
	"token pieces":    factPieces,
	"usage":           factUsage,
	"cache":           factCache,
	"timings":         factTimings,
	"keepalive":       factKeepalive,
	"prompt progress": factProgress,
	"role": func(t *testing.T, f facts) {
		if strings.Contains(f["chat-unicode-stream"].body, `"role"`) || !strings.Contains(f["chat-stream"].body, `"role"`) {
			t.Error("the recordings don't show it")
		}
		if resp, _ := f.read(t, "chat-unicode-stream"); resp.Message.Role != memgpt.RoleAssistant || resp.Message.Said() == "" {
			t.Errorf("a stream without a role: %+v", resp)
		}
	},
	"reasoning": factReasoning,
	"cut connection": func(t *testing.T, f facts) {
		m, _ := scripted(t, Config{}, f["stream-cut"].reply(true))
		var h heard
		_, err := m.Generate(t.Context(), ask("hi"), h.add)
		e, ok := err.(*memgpt.Error)
		if !ok || e.Code != memgpt.CodeModelDown || !e.Started || h.text == "" {
			t.Errorf("%v after %q", err, h.text)
		}
	},
	"model name": func(t *testing.T, f facts) {
		if resp, _ := f.read(t, "chat-plain"); f.at(t, f["chat-plain"].asked, "model") == resp.Model || resp.Model != "smollm2-135m" {
			t.Errorf("model %q", resp.Model)
		}
	},
	"`n: 2`": func(t *testing.T, f facts) { f.fails(t, "error-n-2", memgpt.CodeModelRequest) },
	"last message assistant": func(t *testing.T, f facts) {
		const name = "quirk-last-assistant-continued"
		given := f.at(t, f[name].asked, "messages", 1, "content").(string)
		if resp, _ := f.read(t, name); !strings.HasPrefix(resp.Message.Said(), given) || given == "" {
			t.Errorf("%q does not continue %q", resp.Message.Said(), given)
		}
	},
	"other APIs": factOtherAPIs,
}

// TestRecordedFacts has a test for every fact of the recordings' own page, and none for facts that it doesn't have.
func TestRecordedFacts(t *testing.T) {
	list := facts(recordings(t))
	page, err := os.ReadFile(filepath.Join(recordingsDir(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| topic | fact |")
	var topics []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| `).FindAllStringSubmatch(table, -1) {
		if row[1] != "---" {
			topics = append(topics, row[1])
		}
	}
	if len(topics) != len(recordedFacts) {
		t.Errorf("%d facts, %d tests", len(topics), len(recordedFacts))
	}
	for _, topic := range topics {
		test := recordedFacts[topic]
		if test == nil {
			t.Errorf("no test for %q", topic)
			continue
		}
		t.Run(topic, func(t *testing.T) { test(t, list) })
	}
}

func factContent(t *testing.T, f facts) {
	for _, name := range []string{"tool-call", "tool-call-stream"} {
		resp, h := f.read(t, name)
		if text, _ := textAndThinking(resp); text != "" || h.text != "" || len(resp.Message.Parts) != 1 {
			t.Errorf("%s: text beside the call: %+v", name, resp.Message.Parts)
		}
	}
	if f.at(t, f["tool-call"].body, "choices", 0, "message", "content") != "" || !strings.Contains(f["tool-call-stream"].body, `"content":null`) {
		t.Error("the recordings don't show it")
	}
}

func factArguments(t *testing.T, f facts) {
	m, _ := scripted(t, Config{}, f["tool-call-stream"].reply(false))
	var pieces []memgpt.CallDelta
	if _, err := m.Generate(t.Context(), ask("hi"), func(d memgpt.Delta) { pieces = append(pieces, *d.Call) }); err != nil {
		t.Fatal(err)
	}
	if len(pieces) < 3 || pieces[0].Arguments != "{" || pieces[0].Name != "send_message" || pieces[0].ID == "" {
		t.Fatalf("pieces %+v", pieces)
	}
	for _, p := range pieces[1:] {
		if p.ID != "" || p.Name != "" || p.Arguments == "" {
			t.Errorf("a later piece: %+v", p)
		}
	}
}

func factCallID(t *testing.T, f facts) {
	resp, _ := f.read(t, "tool-call")
	id := resp.Message.Calls()[0].ID
	if !regexp.MustCompile(`^[a-zA-Z0-9]{32}$`).MatchString(id) {
		t.Errorf("id %q", id)
	}
	req := &memgpt.Request{Messages: []memgpt.Message{resp.Message}}
	if got := encoded(req, Config{}, shape{}); !strings.Contains(got, `"id":"`+id+`"`) {
		t.Errorf("the id does not go back as it came: %s", got)
	}
}

func factFinish(t *testing.T, f facts) {
	if resp, _ := f.read(t, "tool-call"); resp.Finish != memgpt.FinishCalls {
		t.Errorf("finish %q", resp.Finish)
	}
	for _, name := range []string{"tool-call-truncated", "tool-call-truncated-stream", "parallel-calls-truncated"} {
		resp, _ := f.read(t, name)
		calls := resp.Message.Calls()
		if resp.Finish != memgpt.FinishLength || len(calls) == 0 || object(calls[len(calls)-1].Arguments) {
			t.Errorf("%s: finish %q, calls %+v", name, resp.Finish, calls)
		}
	}
	if resp, _ := f.read(t, "parallel-calls-truncated"); resp.Message.Calls()[2].Arguments != "{" {
		t.Errorf("the last of several: %+v", resp.Message.Calls())
	}
}

func factParallel(t *testing.T, f facts) {
	const name = "parallel-calls-truncated"
	if f.at(t, f[name].asked, "parallel_tool_calls") != false {
		t.Error("the recording doesn't show it")
	}
	resp, _ := f.read(t, name)
	ids := map[string]bool{}
	for _, c := range resp.Message.Calls() {
		ids[c.ID] = true
	}
	if p, _ := ProfileOf("llamacpp"); len(ids) != 3 || !p.Parallel {
		t.Errorf("calls %+v, and the profile says parallel %v", resp.Message.Calls(), p.Parallel)
	}
}

func factRequired(t *testing.T, f facts) {
	resp, _ := f.read(t, "quirk-tool-required-not-obeyed")
	if len(resp.Message.Calls()) > 0 || resp.Finish != memgpt.FinishLength || resp.Message.Said() == "" {
		t.Errorf("%+v", resp)
	}
	if p, _ := ProfileOf("llamacpp"); p.Forced {
		t.Error("the profile says that a forced choice is obeyed")
	}
}

// factChoiceObject: a named function is no choice that this package makes, since it may be read as none.
func factChoiceObject(t *testing.T, f facts) {
	const name = "quirk-tool-choice-object-ignored"
	wanted := f.at(t, f[name].asked, "tool_choice", "function", "name")
	if resp, _ := f.read(t, name); len(resp.Message.Calls()) != 1 || resp.Message.Calls()[0].Name == wanted {
		t.Errorf("calls %+v, wanted %v", resp.Message.Calls(), wanted)
	}
	for _, choice := range []memgpt.Choice{memgpt.ChoiceAuto, memgpt.ChoiceNone, memgpt.ChoiceRequired} {
		req := ask("hi")
		req.Tools, req.Choice = []memgpt.ToolSpec{{Name: "f"}}, choice
		if got := encoded(req, Config{}, shape{}); strings.Contains(got, `"tool_choice":{`) {
			t.Errorf("choice %q: %s", choice, got)
		}
	}
}

func factTemplate(t *testing.T, f facts) {
	resp, _ := f.read(t, "quirk-tools-silently-dropped")
	if f.at(t, f["quirk-tools-silently-dropped"].asked, "tool_choice") != "required" || len(resp.Message.Calls()) > 0 || resp.Usage.Input != 35 {
		t.Errorf("%+v", resp)
	}
	for name, want := range map[string][2]bool{"props-two-slots": {false, true}, "props": {true, true}, "api-show": {false, false}} {
		m := serve(t, replay{"/props": f[name]}, Config{})
		if shown, told := m.TemplateTools(t.Context()); shown != want[0] || told != want[1] {
			t.Errorf("%s: functions are shown %v, and it is told %v", name, shown, told)
		}
	}
}

func factBrokenArguments(t *testing.T, f facts) {
	const name = "error-bad-arguments-in-history"
	if f[name].Status != 500 {
		t.Error("the recording doesn't show it")
	}
	f.fails(t, name, memgpt.CodeModelRequest)
	var asked struct {
		Messages []struct {
			ToolCalls []toolCall `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal([]byte(f[name].asked), &asked); err != nil {
		t.Fatal(err)
	}
	broken := 0
	for _, m := range asked.Messages {
		for _, c := range m.ToolCalls {
			broken++
			req := &memgpt.Request{Messages: []memgpt.Message{{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "1", Name: "f", Arguments: string(c.Function.Arguments)}}}}}
			if got := encoded(req, Config{}, shape{}); object(string(c.Function.Arguments)) || !strings.Contains(got, `"arguments":"{}"`) {
				t.Errorf("%q goes back as %s", c.Function.Arguments, got)
			}
		}
	}
	if broken != 1 {
		t.Errorf("%d calls in the recorded history", broken)
	}
}

func factContextFull(t *testing.T, f facts) {
	const name = "context-full-while-generating"
	resp, _ := f.read(t, name)
	if resp.Finish != memgpt.FinishLength || resp.Usage.Input+resp.Usage.Output != 1024 || float64(resp.Usage.Output) >= f.at(t, f[name].asked, "max_tokens").(float64) {
		t.Errorf("%+v", resp)
	}
}

func factErrorShape(t *testing.T, f facts) {
	n := 0
	for name, rec := range f {
		if !strings.HasPrefix(name, "error-") {
			continue
		}
		n++
		w := readError([]byte(rec.body))
		if code := f.at(t, rec.body, "error", "code"); code != float64(rec.Status) || w.text != f.at(t, rec.body, "error", "message") || w.status != rec.Status {
			t.Errorf("%s: code %v, read as %+v", name, code, w)
		}
	}
	if n < 14 {
		t.Errorf("only %d errors", n)
	}
}

func factLoading(t *testing.T, f facts) {
	e := f.fails(t, "chat-loading", memgpt.CodeModelDown)
	if e.RetryAfter != 0 || !strings.Contains(e.Text, "Loading model") {
		t.Errorf("%+v", e)
	}
	for _, name := range []string{"health-loading", "chat-loading", "models-loading", "props-loading"} {
		if f[name].Status != 503 || f[name].Headers["Retry-After"] != "" {
			t.Errorf("%s: %+v", name, f[name])
		}
	}
	loading := replay{}
	for _, path := range []string{"/v1/models", "/props", "/v1/chat/completions/input_tokens", "/tokenize", "/apply-template"} {
		loading[path] = f["models-loading"]
	}
	m := serve(t, loading, Config{Provider: "llamacpp"})
	if n, err := m.Window(t.Context()); n != 0 || memgpt.CodeOf(err) != memgpt.CodeModelDown {
		t.Errorf("window %d, %v", n, err)
	}
	if n, err := m.Count(t.Context(), ask("hi")); n != 0 || memgpt.CodeOf(err) != memgpt.CodeModelDown {
		t.Errorf("count %d, %v", n, err)
	}
}

func factContextSize(t *testing.T, f facts) {
	for i, want := range map[string]int{"": 2048, "-two-slots": 1024} {
		for _, p := range []replay{{"/v1/models": f["models"+i]}, {"/v1/models": answer(`{"data":[]}`), "/props": f["props"+i]}} {
			m := serve(t, p, Config{Provider: "llamacpp"})
			if n, err := m.Window(t.Context()); n != want || err != nil {
				t.Errorf("%q: window %d, %v", i, n, err)
			}
		}
		train := f.at(t, f["models"+i].body, "data", 0, "meta", "n_ctx_train").(float64)
		if int(train) == want {
			t.Errorf("%q: the recording does not tell the training's figure apart", i)
		}
	}
	for name, want := range map[string]float64{"slots": 2048, "slots-two": 1024} {
		if got := f.at(t, f[name].body, 0, "n_ctx"); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func factCounts(t *testing.T, f facts) {
	m := serve(t, replay{"/v1/chat/completions/input_tokens": f["input-tokens"]}, Config{Provider: "llamacpp"})
	resp, _ := f.read(t, "tool-call")
	n, err := m.Count(t.Context(), worked())
	if err != nil || n != resp.Usage.Input || f["input-tokens"].asked != f["tool-call"].asked {
		t.Errorf("count %d, %v; usage %+v", n, err, resp.Usage)
	}
	m = serve(t, replay{"/apply-template": f["apply-template"], "/tokenize": f["tokenize-special"]}, Config{Provider: "llamacpp"})
	if n, err := m.Count(t.Context(), worked()); n != 6 || err != nil { // the recorded tokens are of another text
		t.Errorf("count by template: %d, %v", n, err)
	}
}

func factPieces(t *testing.T, f facts) {
	m := serve(t, replay{"/apply-template": f["apply-template"], "/tokenize": f["tokenize-pieces"]}, Config{Provider: "llamacpp"})
	want := len(f.at(t, f["tokenize-pieces"].body, "tokens").([]any))
	if _, ok := f.at(t, f["tokenize-pieces"].body, "tokens", 1, "piece").([]any); !ok {
		t.Error("the recording doesn't show it")
	}
	if n, err := m.Count(t.Context(), ask("hi")); n != want || err != nil {
		t.Errorf("count %d, %v; want %d", n, err, want)
	}
}

func factUsage(t *testing.T, f facts) {
	if resp, _ := f.read(t, "chat-stream"); resp.Usage != (memgpt.Usage{Calls: 1}) {
		t.Errorf("not asked for: %+v", resp.Usage)
	}
	resp, _ := f.read(t, "chat-stream-usage")
	if resp.Usage.Input == 0 || resp.Usage.Output == 0 || !strings.Contains(f["chat-stream-usage"].body, `"choices":[]`) {
		t.Errorf("asked for: %+v", resp.Usage)
	}
	if got := encoded(ask("hi"), Config{}, shape{}); !strings.Contains(got, `"include_usage":true`) {
		t.Errorf("it is not asked for: %s", got)
	}
}

func factCache(t *testing.T, f facts) {
	resp, _ := f.read(t, "chat-plain-cached")
	again := f.at(t, f["chat-plain-cached"].body, "timings", "cache_n").(float64)
	if resp.Usage.Cached != int(again) || again == 0 || resp.Usage.Cached >= resp.Usage.Input {
		t.Errorf("usage %+v, timings say %v", resp.Usage, again)
	}
}

func factTimings(t *testing.T, f facts) {
	for _, name := range []string{"chat-plain", "chat-stream-usage"} {
		if !strings.Contains(f[name].body, `"timings"`) {
			t.Errorf("%s doesn't show it", name)
		}
		if resp, h := f.read(t, name); resp.Message.Said() == "" || h.text != resp.Message.Said() {
			t.Errorf("%s: %+v", name, resp)
		}
	}
}

func factKeepalive(t *testing.T, f facts) {
	if !strings.HasPrefix(f["stream-ping"].body, ":") {
		t.Error("the recording doesn't begin with one")
	}
	f.fails(t, "stream-ping", memgpt.CodeModelEmpty) // nothing but keepalives and an end came
	_, answer, _ := strings.Cut(f["chat-stream"].body, "data: ")
	rec := f["chat-stream"]
	rec.body = ":\n\n:\n\ndata: " + answer
	resp, h := facts{"x": rec}.read(t, "x")
	if want, _ := f.read(t, "chat-stream"); resp.Message.Said() != want.Message.Said() || h.text == "" {
		t.Errorf("%+v", resp)
	}
}

func factProgress(t *testing.T, f facts) {
	rec := f["stream-progress"]
	if !strings.Contains(rec.body, `"prompt_progress"`) {
		t.Error("the recording doesn't show it")
	}
	if resp, h := f.read(t, "stream-progress"); h.pieces > strings.Count(rec.body, "data: {")-strings.Count(rec.body, `"prompt_progress"`) || resp.Message.Said() != h.text {
		t.Errorf("%d pieces, %+v", h.pieces, resp)
	}
}

func factReasoning(t *testing.T, f facts) {
	for name, want := range map[string][2]string{
		"reasoning": {"Hello!", "The user greets me."}, "reasoning-stream": {"Hello!", "The user greets me."}, "reasoning-none": {"Hello!", "The user greets me."},
	} {
		resp, _ := f.read(t, name)
		if text, thinking := textAndThinking(resp); text != want[0] || strings.TrimSpace(thinking) != want[1] {
			t.Errorf("%s: text %q, reasoning %q", name, text, thinking)
		}
	}
	if !strings.Contains(f["reasoning"].body, `"reasoning_content"`) || !strings.Contains(f["reasoning-truncated"].body, `<think>`) {
		t.Error("the recordings don't show it")
	}
	resp, _ := f.read(t, "reasoning-truncated")
	if text, _ := textAndThinking(resp); strings.Contains(text, "<think>") || resp.Finish != memgpt.FinishLength {
		t.Errorf("a cut thought is said: %+v", resp)
	}
}

func factOtherAPIs(t *testing.T, f facts) {
	m := serve(t, replay{"/v1/responses": f["responses-api"]}, Config{API: APIResponses})
	resp, err := m.Generate(t.Context(), ask("hi"), nil)
	if err != nil {
		t.Fatal(err)
	}
	text := f.at(t, f["responses-api"].body, "output", 0, "content", 0, "text")
	if resp.Message.Said() != text || resp.Model != "smollm2-135m" || resp.Usage != (memgpt.Usage{Calls: 1, Input: 33, Cached: 24, Output: 6}) {
		t.Errorf("%+v", resp)
	}
	for _, name := range []string{"anthropic-messages", "count-tokens"} {
		if f[name].Status != 200 {
			t.Errorf("%s: %d", name, f[name].Status)
		}
	}
	for _, name := range []string{"api-chat", "api-show", "api-tags", "api-version"} {
		if f[name].Status != 404 {
			t.Errorf("%s: %d", name, f[name].Status)
		}
	}
	if n := serve(t, replay{"/v1/models": answer(`{"data":[]}`), "/api/ps": f["api-tags"]}, Config{Provider: "ollama"}).endpoint().ollamaWindow(t.Context(), "m"); n != 0 {
		t.Errorf("a path that isn't served tells the window %d", n)
	}
}

// TestRecordingsAreAllRead has every file of the recordings named by their index.
func TestRecordingsAreAllRead(t *testing.T) {
	var named []string
	for _, r := range recordings(t) {
		named = append(named, r.Response)
		if r.Request != "" {
			named = append(named, r.Request)
		}
	}
	files, err := os.ReadDir(recordingsDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); name != "README.md" && name != "index.json" && !slices.Contains(named, name) {
			t.Errorf("%s is not in the index", name)
		}
	}
}

// TestCount counts as servers of three kinds do, and says where none is there.
func TestCount(t *testing.T) {
	for _, test := range []struct {
		name  string
		serve replay
		cfg   Config
		want  int
		code  memgpt.Code
	}{
		{"llama.cpp", replay{"/v1/chat/completions/input_tokens": answer(`{"input_tokens":12}`)}, Config{}, 12, ""},
		{"vLLM", replay{"/tokenize": answer(`{"count":13,"max_model_len":4096,"tokens":[1,2]}`)}, Config{Provider: "vllm"}, 13, ""},
		{"older llama.cpp", replay{"/apply-template": answer(`{"prompt":"a b"}`), "/tokenize": answer(`{"tokens":[7,8,9]}`)}, Config{}, 3, ""},
		{"OpenAI's Responses API", replay{"/v1/responses/input_tokens": answer(`{"object":"response.input_tokens","input_tokens":14}`)}, Config{API: APIResponses}, 14, ""},
		{"nobody counts", replay{}, Config{}, 0, memgpt.CodeInvalid},
		{"a page", replay{"/v1/chat/completions/input_tokens": answer(`<html>`)}, Config{}, 0, memgpt.CodeInvalid},
		{"a refusal", replay{"/tokenize": {Status: 422, body: `{"detail":"prompt is missing"}`}}, Config{Provider: "vllm"}, 0, memgpt.CodeModelRequest},
		{"no key", replay{"/v1/chat/completions/input_tokens": {Status: 401, body: `{}`}}, Config{}, 0, memgpt.CodeModelAuth},
	} {
		n, err := serve(t, test.serve, test.cfg).Count(t.Context(), worked())
		if n != test.want || (err != nil) != (test.code != "") || err != nil && memgpt.CodeOf(err) != test.code {
			t.Errorf("%s: %d, %v", test.name, n, err)
		}
	}
}

// TestCountByTemplate sends the prompt on as the template made it, with its special tokens read as such.
func TestCountByTemplate(t *testing.T) {
	made := "<s>a \"b\"\n<e>"
	m := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/apply-template" && body["tools"] != nil && body["messages"] != nil:
			_ = json.NewEncoder(w).Encode(map[string]any{"prompt": made})
		case r.URL.Path == "/tokenize" && body["content"] == made && body["parse_special"] == true:
			_, _ = io.WriteString(w, `{"tokens":[1,2,3,4]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}), Config{Provider: "llamacpp"})
	if n, err := m.Count(t.Context(), worked()); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestStreamWithoutAnEnd has a stream that stays open after the reason of its end: the wait for the rest is short, and
// what came is the answer.
func TestStreamWithoutAnEnd(t *testing.T) {
	t.Parallel() // it waits
	hold := make(chan struct{})
	m := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream(delta(`{"content":"abc"}`), fin("stop")))
		w.(http.Flusher).Flush()
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}), Config{First: 100 * lingerTimeout, Idle: 100 * lingerTimeout})
	defer close(hold)
	resp, err := m.Generate(t.Context(), ask("hi"), nil)
	if err != nil || resp.Message.Said() != "abc" || resp.Finish != memgpt.FinishStop {
		t.Errorf("%+v, %v", resp, err)
	}
}
