package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
)

// dialect is what a provider publishes of its Chat Completions, written down from its own pages and from refusals that
// clients report, and not from the profiles: the scripted server enforces it.
type dialect struct {
	name, source string
	base, model  string // as a user writes them
	address      string // path and query of a chat
	keyHeader    string // with the key in it
	key          string
	fields       []string // fields of a body that are taken; nil takes any
	limit        string   // the one field that bounds a reply
	choices      []string // values of tool_choice that are taken
	system       string   // role of the system's message
	images       string   // "", "data" or "url"
	reasons      string   // fields of an answer that holds the reasoning "because"
	back         string   // "": reasoning is refused; "any"; "every": a field of every reply; "details": must go back unchanged
	usage        string   // with 30 of 100 tokens cached
	cached       string   // path to the 30
	ids          *regexp.Regexp
	noUserAfter  bool // no user's message after a result
	noNull       bool // content is never null
	signed       bool // the first call of a message carries a signature
	forced       bool // a forced choice is obeyed
	window       string
	windowBody   string // of the window's place
	wantWindow   int
}

const cachedUsage = `{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":30}}`

// plainFields are the fields that every provider takes.
var plainFields = []string{"model", "messages", "tools", "tool_choice", "stream", "temperature"}

func fieldsAnd(more ...string) []string { return slices.Concat(plainFields, more) }

// choicesAll are the values of OpenAI's own tool_choice.
var choicesAll = []string{"none", "auto", "required"}

var dialects = []dialect{
	{
		name: "openai", source: "platform.openai.com/docs/api-reference/chat/create; reasoning guide: developer role, max_tokens refused by reasoning models",
		base: "http://api.openai.com/v1", model: "gpt-5-mini", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		fields: fieldsAnd("stream_options", "max_completion_tokens"), limit: "max_completion_tokens", choices: choicesAll, system: "developer", images: "url",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens", forced: true, wantWindow: 272_000,
	},
	{
		name: "azure", source: "learn.microsoft.com/azure/ai-services/openai/reference, version 2024-10-21: deployment in the path, api-version in the query, api-key header, max_completion_tokens unrecognised",
		base: "http://res.openai.azure.com", model: "gpt-4o", address: "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21", keyHeader: "api-key", key: "secret-key",
		fields: fieldsAnd("stream_options", "max_tokens"), limit: "max_tokens", choices: choicesAll, system: "system", images: "url",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens", forced: true, wantWindow: 128_000,
	},
	{
		name: "openrouter", source: "openrouter.ai/docs: reasoning tokens (reasoning_details go back unmodified with calls), X-Title; @openrouter/sdk 1.3.19: max_completion_tokens",
		base: "http://openrouter.ai", model: "anthropic/claude-sonnet-4", address: "/api/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		limit: "max_completion_tokens", choices: choicesAll, system: "system", images: "url",
		reasons: `"reasoning":"because","reasoning_details":[{"type":"reasoning.text","text":"because","signature":"s==","index":0}]`, back: "details",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens",
		window: "/api/v1/models", windowBody: `{"data":[{"id":"x"},{"id":"anthropic/claude-sonnet-4","context_length":1000000}]}`, wantWindow: 1_000_000,
	},
	{
		name: "deepseek", source: "@ai-sdk/deepseek 2.0.69: V4 demands reasoning_content on every assistant's message, 400 else; no forced choice while it thinks; usage; images for its vision models",
		base: "http://api.deepseek.com", model: "deepseek-v4-flash", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		fields: fieldsAnd("stream_options", "max_tokens"), limit: "max_tokens", choices: []string{"none", "auto"}, system: "system", images: "url",
		reasons: `"reasoning_content":"because"`, back: "every",
		usage:  `{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":30,"prompt_cache_miss_tokens":70}`,
		cached: "prompt_cache_hit_tokens", wantWindow: 1_000_000,
	},
	{
		name: "groq", source: "console.groq.com/docs/api-reference: max_completion_tokens (max_tokens is deprecated), required is enforced; x_groq in streams",
		base: "http://api.groq.com", model: "openai/gpt-oss-20b", address: "/openai/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		fields: fieldsAnd("stream_options", "max_completion_tokens"), limit: "max_completion_tokens", choices: choicesAll, system: "system", images: "url",
		reasons: `"reasoning":"because"`, back: "", usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens", forced: true,
		window: "/openai/v1/models", windowBody: `{"data":[{"id":"y"},{"id":"openai/gpt-oss-20b","context_window":131072}]}`, wantWindow: 131_072,
	},
	{
		name: "together", source: "docs.together.ai/reference/chat-completions-1; GET /models is a bare list with context_length",
		base: "http://api.together.xyz", model: "Qwen/Qwen3-Next", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		limit: "max_tokens", choices: choicesAll, system: "system", images: "url", reasons: `"reasoning":"because"`, back: "any",
		usage: `{"prompt_tokens":100,"completion_tokens":7,"cached_tokens":30}`, cached: "cached_tokens", forced: true,
		window: "/v1/models", windowBody: `[{"id":"z","context_length":1},{"id":"Qwen/Qwen3-Next","context_length":262144}]`, wantWindow: 262_144,
	},
	{
		name: "mistral", source: "docs.mistral.ai, function calling (tool_choice any) and api: extra fields forbidden (422); refusals 3230 \"Unexpected role 'user' after role 'tool'\" and 3280 \"length of 9\" in public reports of 2024-07 to 2026-05",
		base: "http://api.mistral.ai", model: "mistral-medium-latest", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		fields: fieldsAnd("max_tokens"), limit: "max_tokens", choices: []string{"none", "auto", "any"}, system: "system", images: "url",
		reasons: `"content":[{"type":"thinking","thinking":[{"type":"text","text":"because"}]},{"type":"text","text":"so"}]`,
		usage:   cachedUsage, cached: "prompt_tokens_details.cached_tokens", ids: regexp.MustCompile(`^[a-zA-Z0-9]{9}$`), noUserAfter: true, forced: true,
		window: "/v1/models", windowBody: `{"data":[{"id":"v"},{"id":"mistral-medium-latest","max_context_length":131072}]}`, wantWindow: 131_072,
	},
	{
		name: "xai", source: "docs.x.ai/docs/api-reference: max_completion_tokens; \"Each message must have at least one content element\" in public reports of 2025-11",
		base: "http://api.x.ai", model: "grok-4", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		limit: "max_completion_tokens", choices: choicesAll, system: "system", images: "url", reasons: `"reasoning_content":"because"`, back: "",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens", noNull: true, forced: true, wantWindow: 256_000,
	},
	{
		name: "gemini", source: "ai.google.dev/gemini-api/docs/openai, /docs/thought-signatures: the first call of each message carries extra_content.google.thought_signature, 400 else; images as data",
		base: "http://generativelanguage.googleapis.com", model: "gemini-2.5-flash", address: "/v1beta/openai/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		fields: fieldsAnd("stream_options", "max_tokens", "max_completion_tokens"), limit: "max_tokens", choices: choicesAll, system: "system", images: "data",
		reasons: `"content":"<think>because</think>so"`, back: "", usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens", signed: true, forced: true, wantWindow: 1_048_576,
	},
	{
		name: "vllm", source: "docs.vllm.ai, reasoning outputs v0.11: reasoning, formerly reasoning_content; required is enforced by guided decoding",
		base: "http://127.0.0.1:8000/v1", model: "qwen", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		limit: "max_tokens", choices: choicesAll, system: "system", images: "url", reasons: `"reasoning":"because","reasoning_content":"because"`, back: "any",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens", forced: true,
		window: "/v1/models", windowBody: `{"data":[{"id":"qwen","max_model_len":40960}]}`, wantWindow: 40_960,
	},
	{
		name: "sglang", source: "docs.sglang.ai, OpenAI APIs and reasoning parser: reasoning_content",
		base: "http://localhost:30000", model: "qwen", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		limit: "max_tokens", choices: choicesAll, system: "system", images: "url", reasons: `"reasoning_content":"because"`, back: "any",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens", forced: true,
		window: "/v1/models", windowBody: `{"data":[{"id":"qwen","max_model_len":32768}]}`, wantWindow: 32_768,
	},
	{
		name: "lmstudio", source: "lmstudio.ai/docs/app/api: tools, REST API v0 (loaded_context_length); images as base64",
		base: "http://127.0.0.1:1234/v1", model: "qwen", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		limit: "max_tokens", choices: choicesAll, system: "system", images: "data", reasons: `"reasoning_content":"because"`, back: "any",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens",
		window: "/api/v0/models", windowBody: `{"data":[{"id":"qwen","state":"loaded","max_context_length":131072,"loaded_context_length":8192}]}`, wantWindow: 8192,
	},
	{
		name: "llamacpp", source: "llama.cpp, tools/server/README.md; recordings of its server of 2026-11-29: required not always obeyed, props per slot",
		base: "http://127.0.0.1:8080", model: "small", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		limit: "max_tokens", choices: choicesAll, system: "system", images: "url", reasons: `"reasoning_content":"because"`, back: "any",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens",
		window: "/props", windowBody: `{"default_generation_settings":{"n_ctx":1024},"total_slots":2}`, wantWindow: 1024,
	},
	{
		name: "ollama", source: "docs.ollama.com/api/openai-compatibility: fields taken, base64 images, reasoning; /api/ps tells the running context",
		base: "http://localhost:11434", model: "qwen3:8b", address: "/v1/chat/completions", keyHeader: "Authorization", key: "Bearer secret-key",
		limit: "max_tokens", choices: choicesAll, system: "system", images: "data", reasons: `"reasoning":"because"`, back: "any",
		usage: cachedUsage, cached: "prompt_tokens_details.cached_tokens",
		window: "/api/ps", windowBody: `{"models":[{"name":"qwen3:8b","context_length":16384}]}`, wantWindow: 16_384,
	},
}

// dialectServer enforces a dialect. It counts chats, and refuses what breaks a rule.
type dialectServer struct {
	*dialect
	anywhere bool // does not look at address and key
	reply    string
	chats    atomic.Int64
	refusals atomic.Int64
}

func (s *dialectServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		switch {
		case r.URL.Path == s.window:
			_, _ = io.WriteString(w, s.windowBody)
		case strings.HasSuffix(r.URL.Path, "/models"):
			_, _ = io.WriteString(w, `{"data":[{"id":"one"},{"id":"two"}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
		return
	}
	s.chats.Add(1)
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.refuse(w, "body is not JSON")
		return
	}
	if refusal := s.judge(r, body); refusal != "" {
		s.refuse(w, refusal)
		return
	}
	s.answer(w, body["stream"] == true)
}

func (s *dialectServer) refuse(w http.ResponseWriter, refusal string) {
	s.refusals.Add(1)
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": refusal, "type": "invalid_request_error"}})
}

// answer sends the reply, cut into two events where a stream is asked for.
func (s *dialectServer) answer(w http.ResponseWriter, streamed bool) {
	if !streamed {
		_, _ = fmt.Fprintf(w, `{"model":"served","choices":[{"index":0,"message":{%s},"finish_reason":"stop"}],"usage":%s}`, s.reply, s.usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, stream(`{"model":"served","choices":[{"index":0,"delta":{`+s.reply+`}}]}`, fin("stop"), `{"choices":[],"usage":`+s.usage+`}`, done))
}

// judge returns what the provider says against a request; "" takes it.
func (s *dialectServer) judge(r *http.Request, body map[string]any) string {
	if !s.anywhere && (r.URL.RequestURI() != s.address || r.Header.Get(s.keyHeader) != s.key) {
		return fmt.Sprintf("no route %s, or no key in %s", r.URL.RequestURI(), s.keyHeader)
	}
	for name := range body {
		switch {
		case s.fields != nil && !slices.Contains(s.fields, name) && strings.HasPrefix(name, "max_"):
			return "Unsupported parameter: '" + name + "' is not supported with this model. Use '" + s.limit + "' instead."
		case s.fields != nil && !slices.Contains(s.fields, name):
			return "Unrecognized request argument supplied: " + name
		}
	}
	if c, ok := body["tool_choice"]; ok && !slices.Contains(s.choices, fmt.Sprint(c)) {
		return "Thinking mode does not support this tool_choice"
	}
	return s.judgeMessages(body["messages"].([]any))
}

func (s *dialectServer) judgeMessages(list []any) string {
	last := ""
	for i, m := range list {
		m := m.(map[string]any)
		role := m["role"].(string)
		if i == 0 && role != s.system {
			return "Unsupported value: 'messages[0].role' does not support '" + role + "' with this model."
		}
		if s.noUserAfter && role == "user" && last == "tool" {
			return "Unexpected role 'user' after role 'tool'"
		}
		if m["content"] == nil && s.noNull {
			return "Invalid request content: Each message must have at least one content element."
		}
		if refusal := s.judgeParts(m["content"]); refusal != "" {
			return refusal
		}
		if refusal := s.judgeReply(m); role == "assistant" && refusal != "" {
			return refusal
		}
		last = role
	}
	return ""
}

func (s *dialectServer) judgeParts(content any) string {
	parts, _ := content.([]any)
	for _, p := range parts {
		img, ok := p.(map[string]any)["image_url"].(map[string]any)
		switch {
		case ok && s.images == "":
			return "unknown variant `image_url`, expected `text`"
		case ok && s.images == "data" && !strings.HasPrefix(img["url"].(string), "data:"):
			return "invalid image input"
		}
	}
	return ""
}

// judgeReply looks at an assistant's message.
func (s *dialectServer) judgeReply(m map[string]any) string {
	calls, _ := m["tool_calls"].([]any)
	for i, c := range calls {
		c := c.(map[string]any)
		if id := c["id"].(string); s.ids != nil && !s.ids.MatchString(id) {
			return "Tool call id was " + id + " but must be a-z, A-Z, 0-9, with a length of 9."
		}
		if s.signed && i == 0 && c["extra_content"] == nil {
			return "Function call is missing a thought_signature"
		}
	}
	for _, name := range []string{"reasoning_content", "reasoning", "reasoning_details", "thinking"} {
		if _, ok := m[name]; ok && s.back == "" {
			return "property '" + name + "' is unsupported"
		}
	}
	if _, ok := m["reasoning_content"]; s.back == "every" && !ok {
		return "The `reasoning_content` in the thinking mode must be passed back to the API."
	}
	return ""
}
