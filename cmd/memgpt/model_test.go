package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"memgpt"
	"memgpt/model/openai"
	"memgpt/model/script"
)

// scriptedAPI is a server of any protocol that says one thing, and keeps what it is sent by method and path.
type scriptedAPI struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string // "METHOD /path body"
}

// serveAPI starts a server. The answers are by path, with %SAY% for what is said by send_message.
func serveAPI(t *testing.T, say string, answers map[string]string) *scriptedAPI {
	t.Helper()
	s := &scriptedAPI{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.sent = append(s.sent, r.Method+" "+r.URL.Path+" "+string(body))
		s.mu.Unlock()
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.Error(w, `{"error":{"message":"no such place"}}`, http.StatusNotFound)
			return
		}
		if strings.HasPrefix(answer, "event:") {
			w.Header().Set("Content-Type", "text/event-stream")
		} else {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(answer, "%SAY%", say))
	}))
	t.Cleanup(s.Close)
	return s
}

// posts returns the bodies that were posted to a path.
func (s *scriptedAPI) posts(path string) (bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.sent {
		if body, ok := strings.CutPrefix(line, "POST "+path+" "); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// events writes a stream of the Messages API.
func events(pieces ...string) string {
	var b strings.Builder
	for _, p := range pieces {
		var kind struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(p), &kind); err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind.Type, p)
	}
	return b.String()
}

func anthropicAnswers() map[string]string {
	return map[string]string{
		"/v1/messages": events(
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-haiku-5-5","content":[],"usage":{"input_tokens":900,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"send_message","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"message\":\"%SAY%\"}"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":20}}`,
			`{"type":"message_stop"}`),
		"/v1/models": `{"data":[{"type":"model","id":"claude-haiku-5-5","display_name":"H","created_at":"2026-01-01T00:00:00Z","max_input_tokens":200000,"max_tokens":64000},` +
			`{"type":"model","id":"claude-opus-5-5","display_name":"O","created_at":"2026-01-01T00:00:00Z","max_input_tokens":1000000,"max_tokens":64000}],"has_more":false,"first_id":null,"last_id":null}`,
	}
}

func ollamaAnswers() map[string]string {
	return map[string]string{
		"/api/version": `{"version":"0.12.3"}`,
		"/api/tags":    `{"models":[{"name":"qwen3:8b"},{"name":"nomic-embed-text:latest"},{"name":"mistral:7b"}]}`,
		"/v1/models":   `{"object":"list","data":[{"id":"qwen3:8b","object":"model"},{"id":"mistral:7b","object":"model"}]}`,
		"/api/show":    `{"template":"{{ .Tools }}","capabilities":["completion","tools"],"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960}}`,
		"/api/chat": `{"model":"qwen3:8b","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"send_message","arguments":{"message":"%SAY%"}}}]},` +
			`"done":true,"done_reason":"stop","prompt_eval_count":900,"eval_count":20}` + "\n",
		"/api/pull": `{"status":"pulling manifest"}` + "\n" + `{"status":"pulling abc","digest":"abc","total":4194304,"completed":1048576}` + "\n" +
			`{"status":"pulling abc","digest":"abc","total":4194304,"completed":4194304}` + "\n" + `{"status":"success"}` + "\n",
	}
}

const responsesAnswer = `{"id":"resp_1","object":"response","model":"m","status":"completed","error":null,"output":[` +
	`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"send_message","arguments":"{\"message\":\"%SAY%\"}","status":"completed"}],` +
	`"usage":{"input_tokens":900,"output_tokens":20,"total_tokens":920}}`

// runModel runs a command in this process with an environment of its own.
func runModel(t *testing.T, home string, env map[string]string, args ...string) ran {
	t.Helper()
	all := map[string]string{"MEMGPT_HOME": home, "MEMGPT_EMBEDDER": "none", "TZ": "UTC"}
	for k, v := range env {
		all[k] = v
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), args, streams{strings.NewReader(""), &out, &errs}, func(name string) string { return all[name] })
	return ran{out.String(), errs.String(), code}
}

// calling returns a server of Chat Completions that says hello by a call.
func calling(t *testing.T, cfg script.ServerConfig) (*script.Server, string) {
	t.Helper()
	if cfg.Config.Func == nil {
		cfg.Config.Func = func(int, *memgpt.Request) script.Reply { return script.Say("hello") }
	}
	s := script.NewServer(cfg)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv.URL + "/v1"
}

// TestRunOverEachProtocol sends one message through the real command over each wire protocol.
func TestRunOverEachProtocol(t *testing.T) {
	claude, llama := serveAPI(t, "hello", anthropicAnswers()), serveAPI(t, "hello", ollamaAnswers())
	responses := serveAPI(t, "hello", map[string]string{"/v1/responses": responsesAnswer})
	_, chat := calling(t, script.ServerConfig{})
	for name, c := range map[string]struct {
		env  map[string]string
		sent func() []string
		want string // in the first request
	}{
		"anthropic by key alone": {map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": claude.URL, "OLLAMA_HOST": "127.0.0.1:9"},
			func() []string { return claude.posts("/v1/messages") }, `"model":"claude-haiku-5-5"`},
		"anthropic by family": {map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": claude.URL, "MEMGPT_MODEL": "claude-opus-5-5"},
			func() []string { return claude.posts("/v1/messages") }, `"model":"claude-opus-5-5"`},
		"ollama by name": {map[string]string{"OLLAMA_HOST": llama.URL, "MEMGPT_MODEL": "ollama:qwen3:8b"},
			func() []string { return llama.posts("/api/chat") }, `"model":"qwen3:8b"`},
		"ollama discovered": {map[string]string{"OLLAMA_HOST": llama.URL},
			func() []string { return llama.posts("/api/chat") }, `"num_ctx":8192`},
		"ollama's model with the name of a provider": {map[string]string{"OLLAMA_HOST": llama.URL, "MEMGPT_MODEL": "mistral:7b"},
			func() []string { return llama.posts("/api/chat") }, `"model":"mistral:7b"`},
		"responses": {map[string]string{"OPENAI_BASE_URL": responses.URL + "/v1", "MEMGPT_MODEL": "m", "MEMGPT_API": "responses"},
			func() []string { return responses.posts("/v1/responses") }, `"input":`},
		"the one key that is set": {map[string]string{"GROQ_API_KEY": "k", "GROQ_BASE_URL": chat, "MEMGPT_MODEL": "llama-3.3", "OLLAMA_HOST": "127.0.0.1:9",
			"MEMGPT_WINDOW": "60000"}, nil, ""},
		"chat": {map[string]string{"OPENAI_BASE_URL": chat, "MEMGPT_MODEL": "openai:m", "MEMGPT_WINDOW": "60000"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := 0
			if c.sent != nil {
				before = len(c.sent())
			}
			r := runModel(t, t.TempDir(), c.env, "run", "-m", "hi")
			if r.code != 0 || r.out != "hello\n" {
				t.Fatalf("%+v", r)
			}
			if c.sent == nil {
				return
			}
			if sent := c.sent(); len(sent) != before+1 || !strings.Contains(sent[before], c.want) {
				t.Errorf("%d requests, want one with %s: %.300s", len(sent)-before, c.want, sent[before:])
			}
		})
	}
	if n := len(llama.posts("/v1/chat/completions")); n > 0 {
		t.Errorf("Ollama was asked %d times at its compatible endpoint", n)
	}
}

// TestPromptedByTheSetting: with MEMGPT_CALLS no functions go on the wire, and calls are read from the text.
func TestPromptedByTheSetting(t *testing.T) {
	for mode, text := range map[string]string{
		"prompted":    `{"name":"send_message","arguments":{"message":"hello"}}`,
		"constrained": `{"thoughts":"hm","calls":[{"name":"send_message","arguments":{"message":"hello"}}]}`,
	} {
		s, base := calling(t, script.ServerConfig{Config: script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Text(text) }}})
		r := runModel(t, t.TempDir(), map[string]string{"OPENAI_BASE_URL": base, "MEMGPT_MODEL": "m", "MEMGPT_CALLS": mode, "MEMGPT_WINDOW": "60000"}, "run", "-m", "hi")
		if r.code != 0 || r.out != "hello\n" {
			t.Errorf("%s: %+v", mode, r)
		}
		body := string(s.Bodies()[0])
		if strings.Contains(body, `"tools":`) || strings.Contains(body, `"response_format"`) != (mode == "constrained") {
			t.Errorf("%s: the request is %.300s", mode, body)
		}
	}
}

// TestAgentsWindowIsNumCtx: the window of an agent reaches Ollama, which is asked about its model first.
func TestAgentsWindowIsNumCtx(t *testing.T) {
	s, home := serveAPI(t, "hello", ollamaAnswers()), t.TempDir()
	env := map[string]string{"OLLAMA_HOST": s.URL, "MEMGPT_MODEL": "ollama:qwen3:8b"}
	for i, c := range []struct {
		set  []string
		more map[string]string
		want string
	}{
		{nil, nil, `"num_ctx":8192`},
		{nil, map[string]string{"MEMGPT_WINDOW": "16000"}, `"num_ctx":16000`},
		{nil, map[string]string{"OLLAMA_CONTEXT_LENGTH": "99999"}, `"num_ctx":40960`}, // no more than the model's own
		{[]string{"window=6000"}, map[string]string{"MEMGPT_WINDOW": "16000"}, `"num_ctx":6000`},
	} {
		if c.set != nil {
			if r := runModel(t, home, env, append([]string{"agents", "set", "default"}, c.set...)...); r.code != 0 {
				t.Fatalf("%+v", r)
			}
		}
		for k, v := range env {
			if c.more == nil {
				c.more = map[string]string{}
			}
			c.more[k] = v
		}
		if r := runModel(t, home, c.more, "run", "-m", "hi"); r.code != 0 {
			t.Fatalf("%+v", r)
		}
		if sent := s.posts("/api/chat"); len(sent) != i+1 || !strings.Contains(sent[i], c.want) {
			t.Errorf("%d requests, want the last with %s: %s", len(sent), c.want, sent[len(sent)-1][max(0, len(sent[len(sent)-1])-300):])
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.sent {
		if strings.HasPrefix(line, "POST /api/chat") {
			t.Fatal("the model was asked before the server was asked about it")
		}
		if strings.HasPrefix(line, "POST /api/show") {
			return
		}
	}
}

// TestFallbackAnswers: where the first model can't be reached the next one answers, and the person is told.
func TestFallbackAnswers(t *testing.T) {
	claude, home := serveAPI(t, "from the other", anthropicAnswers()), t.TempDir()
	env := map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "MEMGPT_MODEL": "openai:m", "MEMGPT_WINDOW": "20000",
		"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": claude.URL, "MEMGPT_FALLBACK": "anthropic:claude-haiku-5-5"}
	r := runModel(t, home, env, "run", "-m", "hi")
	if r.code != 0 || r.out != "from the other\n" || !strings.Contains(r.err, "claude-haiku-5-5 answers instead of m") ||
		!strings.Contains(r.err, "then anthropic:claude-haiku-5-5") {
		t.Errorf("%+v", r)
	}
	env["MEMGPT_FALLBACK"] = "groq:x"
	if r := runModel(t, home, env, "run", "-m", "hi"); r.code != 1 || !strings.Contains(r.err, "MEMGPT_FALLBACK") || !strings.Contains(r.err, "GROQ_API_KEY") {
		t.Errorf("%+v", r)
	}
	env["MEMGPT_FALLBACK"] = "offline"
	if r := runModel(t, home, env, "run", "-m", "hi"); r.code != 1 || !strings.Contains(r.err, "stand-in") {
		t.Errorf("%+v", r)
	}
}

// TestSilentServersAreLeft: a server that takes a request and stays silent is given up after the time that is set, over
// each protocol.
func TestSilentServersAreLeft(t *testing.T) {
	_, up := calling(t, script.ServerConfig{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil && r.Method == http.MethodPost && r.URL.Path != "/api/show" {
			<-r.Context().Done()
			return
		}
		if answer, ok := ollamaAnswers()[r.URL.Path]; ok {
			_, _ = io.WriteString(w, answer)
		}
	}))
	defer silent.Close()
	for _, bound := range []string{"MEMGPT_TIMEOUT_FIRST", "MEMGPT_TIMEOUT_WHOLE"} {
		for _, model := range []string{"vllm:m", "anthropic:claude-haiku-5-5", "ollama:qwen3:8b"} {
			r := runModel(t, t.TempDir(), map[string]string{"MEMGPT_MODEL": model, bound: "100ms", "MEMGPT_WINDOW": "60000",
				"VLLM_BASE_URL": silent.URL, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": silent.URL, "OLLAMA_HOST": silent.URL,
				"MEMGPT_FALLBACK": "openai:other", "OPENAI_BASE_URL": up}, "run", "-m", "hi")
			if r.code != 0 || r.out != "hello\n" || !strings.Contains(r.err, "other answers instead") {
				t.Errorf("%s, %s: %+v", bound, model, r)
			}
		}
	}
}

// TestVerdictOutlivesTheProcess: one process finds out that a model writes its calls as text; the next one offers it no
// functions, and models says why.
func TestVerdictOutlivesTheProcess(t *testing.T) {
	s, base := calling(t, script.ServerConfig{Config: script.Config{Func: func(int, *memgpt.Request) script.Reply {
		return script.Text("<tool_call>\n{\"name\":\"send_message\",\"arguments\":{\"message\":\"hello\"}}\n</tool_call>")
	}}})
	home := t.TempDir()
	env := []string{"OPENAI_BASE_URL=" + base, "OPENAI_API_KEY=k", "MEMGPT_MODEL=m", "MEMGPT_WINDOW=60000", "MEMGPT_EMBEDDER=none"}
	for i, tools := range []bool{true, false} {
		r := command(t, home, "", env, "run", "-m", "hi")
		if r.code != 0 || r.out != "hello\n" || strings.Contains(r.err, "functions prompted: it wrote a call as text") == tools {
			t.Fatalf("process %d: %+v", i, r)
		}
		bodies := s.Bodies()
		if len(bodies) != i+1 || strings.Contains(string(bodies[i]), `"tools":`) != tools {
			t.Errorf("process %d: %d requests, functions in the last: %v", i, len(bodies), !tools)
		}
	}
	r := command(t, home, "", append(env, "OPENAI_API_KEY="), "models", "--json")
	shown := false
	for _, l := range lines[modelLine](t, r.out) {
		shown = shown || l.Model == "m" && l.Current && l.Calls == "prompted" && l.Reason == "it wrote a call as text"
	}
	if !shown {
		t.Errorf("models doesn't tell: %s", r.out)
	}
}

// TestTemplateWithoutFunctions: a llama.cpp server whose template shows no functions is prompted from the first request
// on, and no more once its template does.
func TestTemplateWithoutFunctions(t *testing.T) {
	shows := false
	s := script.NewServer(script.ServerConfig{Style: script.StyleLlama, Window: 1 << 20, Config: script.Config{
		Func: func(n int, req *memgpt.Request) script.Reply {
			if len(req.Tools) > 0 {
				return script.Say("hello")
			}
			return script.Text(`{"name":"send_message","arguments":{"message":"hello"}}`)
		}}})
	counts := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/props":
			_, _ = fmt.Fprintf(w, `{"default_generation_settings":{"n_ctx":32768},"chat_template_caps":{"supports_tools":%v}}`, shows)
		case "/v1/chat/completions/input_tokens":
			counts++
			_, _ = io.WriteString(w, `{"input_tokens":3000}`)
		default:
			s.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	home := t.TempDir()
	env := map[string]string{"OPENAI_BASE_URL": srv.URL + "/v1", "MEMGPT_MODEL": "m", "MEMGPT_WINDOW": "16384"}
	for i, c := range []struct{ shows, tools bool }{{false, false}, {true, true}} {
		shows = c.shows
		r := runModel(t, home, env, "run", "-m", "hi")
		if r.code != 0 || r.out != "hello\n" || strings.Contains(r.err, "template of the server doesn't show") == c.shows {
			t.Errorf("%d: %+v", i, r)
		}
		if bodies := s.Bodies(); len(bodies) != i+1 || strings.Contains(string(bodies[i]), `"tools":`) != c.tools {
			t.Errorf("%d: %d requests, the last %.200s", i, len(bodies), bodies[len(bodies)-1])
		}
	}
	if counts == 0 || counts > 2 {
		t.Errorf("the server counted %d times, want once a process at most", counts)
	}
}

// TestAgentsOwnModel: agents name models of their own, a flag stands above them, and each is opened by its name.
func TestAgentsOwnModel(t *testing.T) {
	claude, home := serveAPI(t, "I am Claude", anthropicAnswers()), t.TempDir()
	_, base := calling(t, script.ServerConfig{Window: 1 << 20})
	env := map[string]string{"OPENAI_BASE_URL": base, "MEMGPT_MODEL": "m", "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": claude.URL,
		"MEMGPT_WINDOW": "60000"}
	say := func(want string, args ...string) {
		t.Helper()
		if r := runModel(t, home, env, append([]string{"run", "-m", "hi"}, args...)...); r.code != 0 || r.out != want+"\n" {
			t.Errorf("%v: %+v", args, r)
		}
	}
	say("hello", "--agent", "a")
	if r := runModel(t, home, env, "agents", "set", "a", "model=anthropic:claude-haiku-5-5"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	say("I am Claude", "--agent", "a")
	if sent := claude.posts("/v1/messages"); len(sent) != 1 || !strings.Contains(sent[0], `"model":"claude-haiku-5-5"`) {
		t.Errorf("sent %.200s", sent)
	}
	say("hello", "--agent", "b")
	say("hello", "--agent", "a", "--model", "openai:m")
	if r := runModel(t, home, env, "agents", "set", "a", "model=offline:no_slip=1"); r.code != 1 || !strings.Contains(r.err, "no slip") {
		t.Errorf("%+v", r)
	}
}

// TestNamesThatLeadNowhere: each error says what to set.
func TestNamesThatLeadNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"claude-opus-5-5":   {nil, "set ANTHROPIC_API_KEY"},
		"anthropic:":        {nil, "set ANTHROPIC_API_KEY"},
		"groq:llama":        {nil, "set GROQ_API_KEY"},
		"azure:dep":         {map[string]string{"AZURE_OPENAI_API_KEY": "k"}, "set AZURE_OPENAI_ENDPOINT"},
		"together:":         {map[string]string{"TOGETHER_API_KEY": "k"}, "MEMGPT_MODEL=together:MODEL"},
		"antropic:claude-x": {nil, "did you mean anthropic:claude-x?"},
		"openrouter":        {nil, "is the name of a provider"},
		"llama-3.3": {map[string]string{"GROQ_API_KEY": "k", "TOGETHER_API_KEY": "k", "ANTHROPIC_API_KEY": "k"},
			"write groq:llama-3.3 or together:llama-3.3"},
		"nothing-like-it":    {nil, "start Ollama"},
		"offline:no_slip=.5": {nil, "no slip"},
		"ollama:x":           {map[string]string{"OLLAMA_HOST": "ftp://x"}, "OLLAMA_HOST"},
		"anthropic:x":        {map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "nonsense"}, "base URL"},
		"xai:x":              {map[string]string{"XAI_API_KEY": "k", "XAI_BASE_URL": "nonsense"}, "XAI_BASE_URL"},
	} {
		env := map[string]string{"OLLAMA_HOST": "127.0.0.1:9"}
		for k, v := range c.env {
			env[k] = v
		}
		if r := runModel(t, t.TempDir(), env, "run", "--model", name, "-m", "hi"); r.code != 1 || !strings.Contains(r.err, c.want) || r.out != "" {
			t.Errorf("%s: want %q: %+v", name, c.want, r)
		}
	}
}

// TestAddresses completes what people write.
func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"": "http://127.0.0.1:11434", "box": "http://box:11434", "0.0.0.0": "http://127.0.0.1:11434", "0.0.0.0:99": "http://127.0.0.1:99",
		":99": "http://127.0.0.1:99", "https://ollama.com": "https://ollama.com", "http://[::1]:5": "http://[::1]:5", "[::]": "http://127.0.0.1:11434",
	} {
		if got := ollamaAddress(in); got != want {
			t.Errorf("OLLAMA_HOST=%s: %s, want %s", in, got, want)
		}
	}
	env := map[string]string{"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com/", "OPENAI_API_VERSION": "2025-01-01", "AZURE_OPENAI_API_KEY": "k"}
	p, model, named := splitModel("azure:dep")
	base, key := p.address(func(name string) string { return env[name] })
	if !named || model != "dep" || key != "k" || base != "https://x.openai.azure.com/openai/deployments/{model}?api-version=2025-01-01" {
		t.Errorf("%q %q %q", model, base, key)
	}
	for _, name := range openai.Providers() {
		if p, ok := providerNamed(name); !ok || p.base == "" || len(p.keys) == 0 {
			t.Errorf("provider %s can't be named", name)
		} else if _, _, named := splitModel(name + ":a/b:c"); !named {
			t.Errorf("%s: is not read", name)
		}
	}
	if _, _, named := splitModel("qwen3:8b"); named {
		t.Error("qwen3 passes for a provider")
	}
}

// TestVocabularyOfTheModel: requests are counted by the vocabulary of the model that is asked.
func TestVocabularyOfTheModel(t *testing.T) {
	const text = "今天天气很好，我们去公园散步吧。"
	counts := map[string]int{}
	for _, model := range []string{"gpt-4-0613", "gpt-4o"} {
		a := &app{streams: streams{err: io.Discard}, getenv: func(name string) string {
			return map[string]string{"MEMGPT_HOME": t.TempDir(), "MEMGPT_MODEL": "openai:" + model, "OPENAI_API_KEY": "k",
				"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "MEMGPT_WINDOW": "8192"}[name]
		}}
		if err := a.configure(); err != nil {
			t.Fatal(err)
		}
		var err error
		if a.models, err = a.newModels(nil); err == nil {
			err = a.pickModel(t.Context(), memgpt.Agent{})
		}
		if err != nil {
			t.Fatal(err)
		}
		m := memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)
		counts[model] = a.models.count.Message(&m)
	}
	if counts["gpt-4-0613"] <= counts["gpt-4o"] {
		t.Errorf("counted as %v: the older vocabulary needs more tokens for Chinese", counts)
	}
}
