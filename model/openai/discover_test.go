package openai

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"memgpt"
)

func serveURL(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func answer(body string) recording {
	return recording{Status: 200, ContentType: "application/json", body: body}
}

const ollamaModels = `{"object":"list","data":[{"id":"nomic-embed-text:latest","object":"model"},{"id":"qwen3:8b","object":"model"}]}`

func TestDiscover(t *testing.T) {
	refusing := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		return "http://" + l.Addr().String() + "/v1"
	}()
	ollama := serveURL(t, replay{"/v1/models": answer(ollamaModels), "/api/ps": answer(`{"models":[{"name":"qwen3:8b","context_length":16384}]}`)})
	cold := serveURL(t, replay{"/v1/models": answer(ollamaModels), "/api/ps": answer(`{"models":[]}`)})
	bare := serveURL(t, replay{"/v1/models": answer(`{"data":[]}`)})
	studio := serveURL(t, replay{
		"/v1/models":     answer(`{"data":[{"id":"text-embedding-nomic"},{"id":"small"},{"id":"big"}]}`),
		"/api/v0/models": answer(`{"data":[{"id":"text-embedding-nomic","type":"embeddings","state":"loaded"},{"id":"small","type":"llm","state":"not-loaded","max_context_length":32768},{"id":"big","type":"vlm","state":"loaded","max_context_length":131072,"loaded_context_length":8192}]}`),
	})
	page := serveURL(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	for _, test := range []struct {
		name string
		cfg  DiscoverConfig
		want *Found
	}{
		{"nothing", DiscoverConfig{Places: []Place{{"a", refusing}, {"b", page}, {"c", bare}}}, nil},
		{"Ollama", DiscoverConfig{Places: []Place{{"a", refusing}, {"Ollama", ollama}, {"LM Studio", studio}}},
			&Found{Source: "Ollama", BaseURL: ollama + "/v1", Model: "qwen3:8b", Window: 16384}},
		{"Ollama at rest", DiscoverConfig{Places: []Place{{"Ollama", cold}}}, &Found{Source: "Ollama", BaseURL: cold + "/v1", Model: "qwen3:8b", Window: 4096}},
		{"LM Studio", DiscoverConfig{Places: []Place{{"LM Studio", studio}, {"Ollama", ollama}}}, &Found{Source: "LM Studio", BaseURL: studio + "/v1", Model: "big", Window: 8192}},
		{"wanted model", DiscoverConfig{Model: "qwen3:8b", Places: []Place{{"LM Studio", studio}, {"Ollama", ollama}}}, &Found{Source: "Ollama", BaseURL: ollama + "/v1", Model: "qwen3:8b", Window: 16384}},
		{"not loaded model", DiscoverConfig{Model: "small", Places: []Place{{"LM Studio", studio}}}, &Found{Source: "LM Studio", BaseURL: studio + "/v1", Model: "small", Window: 32768}},
		{"key", DiscoverConfig{Env: env(EnvAPIKey, "k"), Places: []Place{{"Ollama", ollama}}}, &Found{Source: EnvAPIKey, BaseURL: HostedBaseURL, APIKey: "k", Model: HostedModel, Window: 1_047_576}},
		{"key and model", DiscoverConfig{Env: env(EnvAPIKey, "k"), Model: "gpt-4o-mini"}, &Found{Source: EnvAPIKey, BaseURL: HostedBaseURL, APIKey: "k", Model: "gpt-4o-mini", Window: 128_000}},
		{"base", DiscoverConfig{Env: env(EnvBaseURL, ollama), Places: []Place{{"LM Studio", studio}}}, &Found{Source: EnvBaseURL, BaseURL: ollama + "/v1", Model: "qwen3:8b", Window: 16384}},
		{"base, key and model", DiscoverConfig{Env: env(EnvBaseURL, studio, EnvAPIKey, "k"), Model: "big"}, &Found{Source: EnvBaseURL, BaseURL: studio + "/v1", APIKey: "k", Model: "big", Window: 8192}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.Probe = soon
			got, err := Discover(t.Context(), test.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(Found{})); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
	down, err := Discover(t.Context(), DiscoverConfig{Env: env(EnvBaseURL, refusing)})
	if err != nil || down == nil || down.BaseURL != refusing || !strings.Contains(down.Note, "refused") {
		t.Errorf("a named endpoint that is down: %+v, %v", down, err)
	}
	if _, err := Discover(t.Context(), DiscoverConfig{Env: env(EnvBaseURL, "nonsense")}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("a bad base URL: %v", err)
	}
}

// TestDiscoverIsQuick has three places that accept and never answer: they are asked at once.
func TestDiscoverIsQuick(t *testing.T) {
	var places []Place
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		places = append(places, Place{"silent", "http://" + l.Addr().String()})
	}
	start := time.Now()
	f, err := Discover(t.Context(), DiscoverConfig{Places: places, Probe: 100 * time.Millisecond})
	if took := time.Since(start); f != nil || err != nil || took > 290*time.Millisecond {
		t.Errorf("%+v, %v after %v", f, err, took)
	}
}

func TestPlacesAreLoopback(t *testing.T) {
	for _, p := range LocalPlaces() {
		if ip := net.ParseIP(mustParse(t, p.BaseURL).Hostname()); ip == nil || !ip.IsLoopback() {
			t.Errorf("%s at %s", p.Name, p.BaseURL)
		}
	}
}

// TestRedirectIsNotFollowed has a local server that sends its visitor elsewhere.
func TestRedirectIsNotFollowed(t *testing.T) {
	var visits atomic.Int64
	elsewhere := serveURL(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	})
	f, err := Discover(t.Context(), DiscoverConfig{Places: []Place{{"a", serveURL(t, h)}}, Probe: soon})
	if f != nil || err != nil {
		t.Errorf("%+v, %v", f, err)
	}
	m := serve(t, h, Config{APIKey: "k"})
	if _, err := m.Generate(t.Context(), ask("hi"), nil); memgpt.CodeOf(err) != memgpt.CodeModelRequest || !strings.Contains(err.Error(), elsewhere) {
		t.Errorf("a redirected chat: %v", err)
	}
	if _, err := m.Window(t.Context()); err == nil {
		t.Error("a redirected list gave no error")
	}
	if visits.Load() != 0 {
		t.Errorf("%d visits elsewhere", visits.Load())
	}
}

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		name, models, model string
		want                int
	}{
		{"vLLM", `{"data":[{"id":"a","max_model_len":4096},{"id":"m","max_model_len":32768}]}`, "m", 32768},
		{"OpenRouter", `{"data":[{"id":"m","context_length":65536}]}`, "m", 65536},
		{"Groq", `{"data":[{"id":"m","context_window":8192},{"id":"b"}]}`, "m", 8192},
		{"Mistral", `{"data":[{"id":"m","max_context_length":131072},{"id":"b"}]}`, "m", 131072},
		{"one of another name", `{"data":[{"id":"alias","meta":{"n_ctx":1024,"n_ctx_train":8192}}]}`, "m", 1024},
		{"only the training's", `{"data":[{"id":"m","meta":{"n_ctx_train":8192}}]}`, "m", 0},
		{"known", `{"data":[{"id":"x"},{"id":"y"}]}`, "openai/gpt-4o-mini", 128_000},
		{"unknown", `{"data":[{"id":"x"},{"id":"y"}]}`, "m", 0},
		{"odd", `{"data":[{"id":"m","max_model_len":"many","context_length":7}]}`, "m", 7},
		{"odd and unknown", `{"data":[{"id":"m","max_model_len":"many"}]}`, "m", 0},
	} {
		m := serve(t, replay{"/v1/models": answer(test.models)}, Config{Model: test.model})
		if n, err := m.Window(t.Context()); n != test.want || err != nil || m.Capabilities().Window != n {
			t.Errorf("%s: %d, %v; want %d", test.name, n, err, test.want)
		}
	}
	m := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a look at a known window") }), Config{Window: 5})
	if n, err := m.Window(t.Context()); n != 5 || err != nil {
		t.Errorf("configured: %d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m = serve(t, replay{}, Config{})
	if n, err := m.Window(ctx); n != 0 || err == nil {
		t.Errorf("cancelled: %d, %v", n, err)
	}
}

// TestKnownWindows looks up names as the providers list them (litellm 1.110.2, max_input_tokens of 2026-11-30): a row that
// stands before its time would give one of them another's window.
func TestKnownWindows(t *testing.T) {
	for model, want := range map[string]int{
		"gpt-5": 272_000, "gpt-5-mini-2025-08-07": 272_000, "gpt-5-codex": 272_000, "gpt-5.1": 272_000, "gpt-5.2-pro": 272_000, "gpt-5-chat-latest": 128_000,
		"gpt-5.4": 922_000, "gpt-5.4-mini": 272_000, "gpt-5.4-nano-2026-03-17": 272_000, "gpt-5.4-pro": 922_000, "gpt-5.5-2026-04-23": 922_000,
		"gpt-5.6-sol": 922_000, "gpt-5.6-cyber": 272_000, "gpt-6-astra": 922_000, "openai/gpt-6.1-terra": 922_000,
		"gpt-4.1-nano": 1_047_576, "gpt-4o-mini": 128_000, "gpt-4-1106-preview": 128_000, "gpt-4-0613": 8_192, "gpt-3.5-turbo-0125": 16_385,
		"o1-2024-12-17": 200_000, "o3-mini": 200_000, "o4-mini": 200_000,
		"gemini-2.5-flash": 1_048_576, "gemini-2.5-computer-use-preview-10-2025": 128_000, "gemini-3.1-pro-preview": 1_048_576, "gemini-4-argon": 1_048_576, "gemini-omni-1.2-flash": 131_072,
		"deepseek-v4-pro": 1_000_000, "deepseek-flash": 1_000_000, "deepseek-chat": 128_000,
		"grok-4.20-reasoning": 1_000_000, "grok-4.3": 1_000_000, "grok-4.7": 500_000, "grok-4": 256_000, "grok-code-fast-1": 256_000,
		"anthropic/claude-opus-5": 200_000, "llama-3": 0, "": 0,
	} {
		if got := knownWindow(model); got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
}

// TestTokenizers looks up names as tiktoken 0.14.0 has them in its table of models.
func TestTokenizers(t *testing.T) {
	for model, want := range map[string]string{
		"gpt-5.4-mini": "o200k_base", "gpt-4.1": "o200k_base", "openai/gpt-4o-mini": "o200k_base", "chatgpt-4o-latest": "o200k_base", "o1-mini": "o200k_base", "o4-mini": "o200k_base",
		"openai/gpt-oss-20b": "o200k_base", "ft:gpt-4o-2024-08-06:acme": "o200k_base", "gpt-4-0613": "cl100k_base", "gpt-3.5-turbo": "cl100k_base", "gpt-35-turbo": "cl100k_base", "ft:gpt-4-0613": "cl100k_base",
		"gpt-6-sol": "", "qwen3": "", "": "",
	} {
		m, err := New(Config{BaseURL: "https://api.openai.com/v1", Model: model})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Capabilities().Tokenizer; got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}
