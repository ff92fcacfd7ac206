package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// knownWindows are what well-known hosted models take as a prompt, in tokens, by the beginning of their names; the first
// that fits counts. Where a provider bounds the prompt apart from the window (OpenAI since GPT-5: 400,000 less 128,000 for
// the reply, 1,050,000 less 128,000), it is that bound, since a prompt over it is refused however short the reply is to be.
// Checked 2026-11-30 against the list of models in litellm 1.110.2 (max_input_tokens, max_output_tokens; its sources are
// the providers' pages; the smaller figure where OpenAI's and Azure's differ) and the names in openai 3.57.0; rows that it
// has not are older models, and smaller than what follows them. Newer names than these are left to the user or the server.
var knownWindows = []struct {
	prefix string
	tokens int
}{
	{"gpt-6", 922_000}, {"gpt-5.6-cyber", 272_000}, {"gpt-5.6", 922_000}, {"gpt-5.5", 922_000},
	{"gpt-5.4-mini", 272_000}, {"gpt-5.4-nano", 272_000}, {"gpt-5.4", 922_000},
	{"gpt-5-chat", 128_000}, {"gpt-5.1-chat", 111_616}, {"gpt-5.2-chat", 111_616}, {"gpt-5.3-chat", 111_616},
	{"gpt-5.3-codex-spark", 128_000}, {"gpt-5-pro", 128_000}, {"gpt-5", 272_000},
	{"gpt-4.1", 1_047_576}, {"gpt-4o", 128_000}, {"chatgpt-4o", 128_000}, {"gpt-4-turbo", 128_000}, {"gpt-4-1106", 128_000}, {"gpt-4-0125", 128_000},
	{"gpt-4-32k", 32_768}, {"gpt-4", 8_192}, {"gpt-3.5-turbo", 16_385},
	{"o1-mini", 128_000}, {"o1-preview", 128_000}, {"o1", 200_000}, {"o3", 200_000}, {"o4-mini", 200_000},
	{"claude-", 200_000}, // the smallest; package anthropic knows them one by one
	{"gemini-2.5-computer-use", 128_000}, {"gemini-omni", 131_072}, {"gemini-robotics", 131_072},
	{"gemini-2", 1_048_576}, {"gemini-3", 1_048_576}, {"gemini-4", 1_048_576},
	{"gemini-flash", 1_048_576}, {"gemini-pro", 1_048_576},
	{"deepseek-chat", 128_000}, {"deepseek-reasoner", 128_000},
	{"deepseek-v4", 1_000_000}, {"deepseek-flash", 1_000_000},
	{"grok-4.20", 1_000_000}, {"grok-4.3", 1_000_000}, {"grok-4.5", 500_000}, {"grok-4.6", 500_000}, {"grok-4.7", 500_000},
	{"grok-3", 131_072}, {"grok-4", 256_000}, {"grok-code", 256_000}, {"grok-build", 256_000},
}

// ollamaWindow is the context that Ollama gives a model on a machine with little graphics memory, if nobody sets another
// (its documentation, "Context length", 2026): what is over it is cut without a word.
const ollamaWindow = 4096

func knownWindow(model string) int {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:] // OpenRouter: "openai/gpt-4o"
	for _, k := range knownWindows {
		if strings.HasPrefix(name, k.prefix) {
			return k.tokens
		}
	}
	return 0
}

// tokenizerOf names the tokenizer of OpenAI's models (the table of models in tiktoken 0.14.0, seen 2026-11-30; it names
// none for GPT-6). The open models' o200k_harmony is o200k_base with more marks.
func tokenizerOf(model string) string {
	name := strings.ToLower(model)
	name = strings.TrimPrefix(name[strings.LastIndexByte(name, '/')+1:], "ft:")
	for _, prefix := range []string{"gpt-5", "gpt-4.5", "gpt-4.1", "gpt-4o", "gpt-oss", "chatgpt-4o", "o1", "o3", "o4-mini"} {
		if strings.HasPrefix(name, prefix) {
			return "o200k_base"
		}
	}
	if strings.HasPrefix(name, "gpt-4") || strings.HasPrefix(name, "gpt-3.5") || strings.HasPrefix(name, "gpt-35-turbo") {
		return "cl100k_base"
	}
	return ""
}

// listed is a model as GET /v1/models lists it, with the extras of those who tell the window there.
type listed struct {
	ID     label `json:"id"`
	Type   label `json:"type"`  // LM Studio: llm, vlm, embeddings
	State  label `json:"state"` // LM Studio: loaded, not-loaded
	MaxLen int   `json:"max_model_len"`
	Meta   struct {
		Ctx int `json:"n_ctx"`
	} `json:"meta"`
	ContextLength int `json:"context_length"`
	ContextWindow int `json:"context_window"`
	Loaded        int `json:"loaded_context_length"`
	MaxContext    int `json:"max_context_length"`
}

// window returns the window that a list tells: llama.cpp, vLLM, LM Studio (the loaded one first), OpenRouter and
// Together, Groq, Mistral.
func (l *listed) window() int {
	for _, n := range []int{l.Meta.Ctx, l.MaxLen, l.Loaded, l.ContextLength, l.ContextWindow, l.MaxContext} {
		if n > 0 {
			return n
		}
	}
	return 0
}

// noChat matches names of models that don't chat: embedders, rerankers, speech, pictures, moderation.
var noChat = regexp.MustCompile(`embed|rerank|\bbge-|\be5-|minilm|\bgte-|nomic|whisper|\btts|dall-e|image|moderation|transcribe|audio|realtime|sora|davinci|babbage|clip`)

func (l *listed) chats() bool {
	return l.ID != "" && l.Type != "embeddings" && !noChat.MatchString(strings.ToLower(string(l.ID)))
}

// endpoint is a place to ask about models.
type endpoint struct {
	base    *url.URL
	key     string
	headers map[string]string
	client  *http.Client
	prof    *Profile // nil is the unknown one
}

// get reads JSON from a path below the base, or below the host if it begins with a slash. It returns the status, and
// an error where that is not 200 or the body is not JSON.
func (e *endpoint) get(ctx context.Context, name string, into any) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at(e.base, name), nil)
	if err != nil {
		return 0, fmt.Errorf("ask for %s: %w", name, err)
	}
	authorize(req, e.profile(), e.key, e.headers)
	resp, err := e.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask %s for %s: %w", e.base.Host, name, wire.Plain(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return resp.StatusCode, fmt.Errorf("read %s of %s: %w", name, e.base.Host, err)
	}
	if resp.StatusCode != http.StatusOK {
		w := readError([]byte(wire.Hide(string(body), e.key)))
		return resp.StatusCode, &memgpt.Error{Code: w.judge(resp.StatusCode).Code,
			Text: fmt.Sprintf("ask %s for %s: status %d: %s", e.base.Host, name, resp.StatusCode, w.text)}
	}
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(body, into); err != nil && !errors.As(err, &wrong) { // an odd field is left out
		return resp.StatusCode, fmt.Errorf("read %s of %s: %w", name, e.base.Host, err)
	}
	return resp.StatusCode, nil
}

// list returns the models that a server lists.
func (e *endpoint) list(ctx context.Context, name string) ([]listed, int, error) {
	var page modelPage
	status, err := e.get(ctx, name, &page)
	return page.Data, status, err
}

func (e *endpoint) profile() *Profile {
	if e.prof == nil {
		return &unknownProfile
	}
	return e.prof
}

// modelPage is a list of models: under "data", or the list itself (Together).
type modelPage struct {
	Data []listed `json:"data"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *modelPage) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return json.Unmarshal(raw, &p.Data)
	}
	type plainPage modelPage
	return json.Unmarshal(raw, (*plainPage)(p))
}

// window looks a model's window up where the provider tells it. With a provider that is not known that is the list of
// models; on a machine near by also where llama.cpp, LM Studio and Ollama tell it; the table of known ones. 0 when
// unknown. The error is that of the list.
func (e *endpoint) window(ctx context.Context, model string) (int, error) {
	ways := e.profile().Window
	if ways == nil {
		ways = []WindowWay{WindowModels, WindowTable}
		if near(e.base.Hostname()) {
			ways = []WindowWay{WindowModels, WindowProps, WindowStudio, WindowOllama, WindowTable}
		}
	}
	var failed error
	for _, way := range ways {
		n := 0
		switch {
		case way == WindowTable:
			n = knownWindow(model)
		case way == WindowModels:
			var list []listed
			list, _, failed = e.list(ctx, "models")
			n = windowIn(list, model)
		case failed == nil:
			n = e.ownWindow(ctx, way, model)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, failed
}

// ownWindow asks at the place that one kind of server has.
func (e *endpoint) ownWindow(ctx context.Context, way WindowWay, model string) int {
	switch way {
	case WindowProps:
		return e.propsWindow(ctx)
	case WindowStudio:
		return e.studioWindow(ctx, model)
	case WindowOllama:
		return e.ollamaWindow(ctx, model)
	}
	return 0
}

// windowIn finds a model in a list; a list of one answers for any name, since a server of one model takes any.
func windowIn(list []listed, model string) int {
	for i := range list {
		if string(list[i].ID) == model || len(list) == 1 {
			return list[i].window()
		}
	}
	return 0
}

// serverProps is what llama.cpp tells of itself.
type serverProps struct {
	Settings struct {
		Ctx int `json:"n_ctx"`
	} `json:"default_generation_settings"`
	Template *struct {
		Tools bool `json:"supports_tools"`
	} `json:"chat_template_caps"`
}

// propsWindow asks llama.cpp; the figure is that of one slot.
func (e *endpoint) propsWindow(ctx context.Context) int {
	var props serverProps
	if _, err := e.get(ctx, "/props", &props); err != nil {
		return 0
	}
	return max(props.Settings.Ctx, 0)
}

// TemplateTools asks a llama.cpp server whether its chat template shows functions to the model. Where it doesn't, the
// server drops them without a word, a forced choice too. told is whether the server says it at all. Servers that can't be
// llama.cpp are not asked.
func (m *Model) TemplateTools(ctx context.Context) (shown, told bool) {
	if !m.endpoint().tellsProps() {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var props serverProps
	if _, err := m.endpoint().get(ctx, "/props", &props); err != nil || props.Template == nil {
		return false, false
	}
	return props.Template.Tools, true
}

// endpoint returns the place of the model, to ask about it.
func (m *Model) endpoint() *endpoint {
	return &endpoint{base: m.base, key: m.cfg.APIKey, headers: m.cfg.Headers, client: m.client, prof: m.cfg.profile()}
}

// studioWindow asks LM Studio, which tells the window of a loaded model.
func (e *endpoint) studioWindow(ctx context.Context, model string) int {
	list, _, err := e.list(ctx, "/api/v0/models")
	if err != nil {
		return 0
	}
	return windowIn(list, model)
}

// ollamaWindow asks Ollama, which tells the window of a running model; one that is not running will get the default.
func (e *endpoint) ollamaWindow(ctx context.Context, model string) int {
	var running struct {
		Models *[]struct {
			Name    string `json:"name"`
			Context int    `json:"context_length"`
		} `json:"models"`
	}
	if _, err := e.get(ctx, "/api/ps", &running); err != nil || running.Models == nil {
		return 0
	}
	for _, m := range *running.Models {
		if strings.TrimSuffix(m.Name, ":latest") == strings.TrimSuffix(model, ":latest") && m.Context > 0 {
			return m.Context
		}
	}
	return ollamaWindow
}

// near reports whether a host is this machine or one of a private network.
func near(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".local") || !strings.Contains(host, ".") && ip == nil ||
		ip != nil && (ip.IsLoopback() || ip.IsPrivate())
}

// lookTimeout bounds the look-ups at an endpoint that the user named.
const lookTimeout = 5 * time.Second

// Window looks the window of the configured model up at the endpoint and in a table of known models, and Capabilities
// tells it from then on. A configured window is returned as it is, without a look. 0 is unknown, with an error if the
// endpoint could not be asked.
func (m *Model) Window(ctx context.Context) (int, error) {
	if m.cfg.Window > 0 {
		return m.cfg.Window, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	n, err := m.endpoint().window(ctx, m.cfg.Model)
	if n > 0 {
		m.window.Store(int64(n))
	}
	return n, err
}
