package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt/model/script"
)

// TestModelsLists lists what can be reached at all kinds of endpoints, and generates nothing.
func TestModelsLists(t *testing.T) {
	claude, llama := serveAPI(t, "", anthropicAnswers()), serveAPI(t, "", ollamaAnswers())
	s, base := calling(t, script.ServerConfig{Style: script.StyleLlama, Window: 12345})
	env := map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": claude.URL, "OLLAMA_HOST": llama.URL, "OPENAI_BASE_URL": base,
		"GROQ_API_KEY": "k", "GROQ_BASE_URL": "http://127.0.0.1:9/v1", "AZURE_OPENAI_API_KEY": "k", "MEMGPT_MODEL": "anthropic:claude-opus-5-5"}
	home := t.TempDir()
	r := runModel(t, home, env, "models", "--json")
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	got := map[string]modelLine{}
	prices := map[string]string{"anthropic:claude-haiku-5-5": "$0.1 in, $0.5 out", "anthropic:claude-opus-5-5": "$4 in, $20 out",
		"ollama:qwen3:8b": "free", "ollama:mistral:7b": "free", "openai:script": "free", "groq": "?", "azure": "?", "offline": "free"}
	for _, l := range lines[modelLine](t, r.out) {
		key := l.Name
		if key == "" {
			key = l.Provider
		}
		price := "?"
		if l.Price != nil {
			price = l.Price.cell()
		}
		if want := prices[key]; price != want {
			t.Errorf("%s costs %s, want %s", key, price, want)
		}
		l.Price, l.At, l.Why = nil, "", strings.Join(strings.Fields(l.Why)[:min(1, len(strings.Fields(l.Why)))], "")
		got[key] = l
	}
	calls := []string{"tools", "parallel"}
	rich := []string{"tools", "parallel", "forced", "images", "reasoning"}
	want := map[string]modelLine{
		"anthropic:claude-haiku-5-5": {Name: "anthropic:claude-haiku-5-5", Provider: "anthropic", Model: "claude-haiku-5-5", Window: 200_000, Can: rich, State: "ready"},
		"anthropic:claude-opus-5-5":  {Name: "anthropic:claude-opus-5-5", Provider: "anthropic", Model: "claude-opus-5-5", Window: 1_000_000, Can: []string{"tools", "parallel", "images", "reasoning"}, State: "ready", Current: true},
		"ollama:qwen3:8b":            {Name: "ollama:qwen3:8b", Provider: "ollama", Model: "qwen3:8b", Window: 8192, Can: append(calls[:2:2], "schema"), State: "ready"},
		"ollama:mistral:7b":          {Name: "ollama:mistral:7b", Provider: "ollama", Model: "mistral:7b", Window: 8192, Can: append(calls[:2:2], "schema"), State: "ready"},
		"openai:script":              {Name: "openai:script", Provider: "openai", Model: "script", Window: 12345, Can: calls, State: "ready"},
		"groq":                       {Provider: "groq", Can: []string{}, State: "unreachable", Why: "ask"},
		"azure":                      {Provider: "azure", Can: []string{}, State: "unreachable", Why: "set"},
		"offline":                    {Name: "offline", Provider: "offline", Model: "offline", Can: calls, Calls: "native", State: "ready", Why: "a"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if n := len(claude.posts("/v1/messages")) + len(llama.posts("/api/chat")) + s.Posts(); n != 0 {
		t.Errorf("%d requests to generate", n)
	}
	r = runModel(t, home, env, "models")
	if !strings.Contains(r.out, "*  anthropic:claude-opus-5-5") || !strings.Contains(r.out, "not tried") || !strings.Contains(r.out, "AZURE_OPENAI_ENDPOINT") {
		t.Errorf("%s", r.out)
	}
}

// TestModelsPull has Ollama load a model down, with its progress on standard error.
func TestModelsPull(t *testing.T) {
	s := serveAPI(t, "", ollamaAnswers())
	r := runModel(t, t.TempDir(), map[string]string{"OLLAMA_HOST": s.URL}, "models", "pull", "ollama:qwen3:8b")
	if sent := s.posts("/api/pull"); r.code != 0 || r.out != "" || len(sent) != 1 || !strings.Contains(sent[0], `"qwen3:8b"`) {
		t.Fatalf("%+v, sent %q", r, sent)
	}
	for _, want := range []string{" 25%  1 of 4 MB", "100%  4 of 4 MB", "success", "MEMGPT_MODEL=ollama:qwen3:8b"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("no %q in %s", want, r.err)
		}
	}
	if r := runModel(t, t.TempDir(), map[string]string{"OLLAMA_HOST": "127.0.0.1:9"}, "models", "pull", "x"); r.code != 1 || !strings.Contains(r.err, "127.0.0.1:9") {
		t.Errorf("%+v", r)
	}
	if r := runModel(t, t.TempDir(), nil, "models", "pull"); r.code != 1 || !strings.Contains(r.err, "models pull NAME") {
		t.Errorf("%+v", r)
	}
}
