// Package openai is a model behind the Chat Completions protocol, as OpenAI, llama.cpp, Ollama, LM Studio, vLLM,
// OpenRouter and many others speak it at a base URL, or behind OpenAI's Responses API where a model needs that. What a
// provider is known to want is data ([Profile]); what it refuses nevertheless is learned. It takes what such servers really send: calls without index or id,
// arguments as objects, plain JSON where a stream was asked for, errors in a dozen shapes.
//
// It owns the wire format, the time limits of one call and the mapping of errors to codes, and finds out what to talk to
// when nothing is configured ([Discover]). It does not retry (model/retry does), but for a connection that turned out to
// be dead and a request that the server refused for its form.
package openai

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// filler is what a server sends while it has nothing to send.
const filler = "keepalives"

// Defaults of Config. They are fit for a large model on a slow machine, which reads a long prompt for minutes.
const (
	DefaultConnect = 10 * time.Second
	DefaultFirst   = 10 * time.Minute
	DefaultIdle    = 2 * time.Minute
	DefaultWhole   = time.Hour
)

// Config describes an endpoint and a model at it.
type Config struct {
	BaseURL string            // as other clients take it, e.g. "https://api.openai.com/v1"; "/v1" is added to a bare host
	APIKey  string            // sent as bearer token; "" sends none
	Headers map[string]string // sent with each request
	Model   string            // used where a request names none; "" leaves it to the server
	// Provider names the dialect that the server speaks (one of Providers); "" goes by the host of BaseURL, and takes a
	// careful form where that is not known.
	Provider string
	API      string       // APIChat or APIResponses; "" is chat, but for models that are known to speak the other alone
	Client   *http.Client // nil: one made for many slow calls at once, with the timeouts below

	Window    int  // tokens of the model's context; 0 when unknown, see Model.Window
	MaxOutput int  // tokens of a reply; 0 when unknown
	NoTools   bool // the model can't call functions
	Forced    bool // the server obeys tool_choice "required"
	Images    bool // the model sees images; else they are named in words
	Schema    bool // the server holds replies to a JSON schema (response_format)
	// ReasoningField is the field in which the reasoning of earlier replies goes back: "reasoning_content",
	// "reasoning" or "reasoning_details" (as OpenRouter has it). "" leaves it to the provider's profile, which mostly
	// keeps it, since many servers refuse it.
	ReasoningField string
	NoStream       bool // ask for answers in one piece

	// Extra are further fields of each request's body, e.g. "temperature". They are sent as they are.
	Extra map[string]json.RawMessage

	Connect time.Duration // to connect; 0 is DefaultConnect. It has no effect with a Client
	First   time.Duration // until the first piece of an answer, and between any two; 0 is DefaultFirst
	Idle    time.Duration // without a byte after the first piece; keepalives count as bytes. 0 is DefaultIdle
	Whole   time.Duration // for the whole of one call, so that a model that never ends a reply is cut off; 0 is DefaultWhole

	Now   func() time.Time // for dates in Retry-After; nil is time.Now
	NewID func() string    // names calls that came without an id, uniquely; nil draws random ones

	prof *Profile // of the provider
}

// Model is a memgpt.Model at one endpoint. It is safe for concurrent use.
type Model struct {
	cfg    Config
	base   *url.URL
	client *http.Client
	window atomic.Int64

	mu     sync.Mutex
	shapes map[string]shape // by model: what its server was found to want, where that is not what its profile says
}

// New returns a model. It opens no connection. A base URL, an extra field, a provider or an API that can't be used is
// CodeInvalid.
func New(cfg Config) (*Model, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	for name := range cfg.Extra {
		if slices.Contains([]string{"messages", "input", "stream", "tools", "stream_options"}, name) {
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "extra field %q: it is the client's own", name)
		}
	}
	if !slices.Contains([]string{"", APIChat, APIResponses}, cfg.API) {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "API %q: want %q or %q, or none to leave it to the provider", memgpt.CutText(cfg.API, 100), APIChat, APIResponses)
	}
	if cfg.prof, err = profileFor(cfg.Provider, base); err != nil {
		return nil, err
	}
	cfg.prof.rebase(base)
	cfg.Headers = cfg.prof.mergedHeaders(cfg.Headers)
	cfg.Connect = orDefault(cfg.Connect, DefaultConnect)
	cfg.First = orDefault(cfg.First, DefaultFirst)
	cfg.Idle = orDefault(cfg.Idle, DefaultIdle)
	cfg.Whole = orDefault(cfg.Whole, DefaultWhole)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = func() string { return "call_" + rand.Text()[:24] }
	}
	m := &Model{cfg: cfg, base: base, client: wire.NewClient(cfg.Client, cfg.Connect), shapes: map[string]shape{}}
	m.window.Store(int64(cfg.Window))
	return m, nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// parseBase reads a base URL as people write it.
func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "base URL %q: want http://host:port/v1 or https://host/v1", wire.Shown(s))
	}
	u.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"), "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	u.Fragment = ""
	return u, nil
}

// at returns the address of a path below the base; one that begins with a slash is below the host.
func at(base *url.URL, name string) string {
	u := *base
	if strings.HasPrefix(name, "/") {
		u.Path, u.RawQuery = name, ""
	} else {
		u.Path = path.Join(u.Path, name)
	}
	u.RawPath = ""
	return u.String()
}

// Capabilities implements memgpt.Model. The window is the configured one, or what Window found.
func (m *Model) Capabilities() memgpt.Capabilities {
	name := m.cfg.Model
	if name == "" {
		name = m.base.Host
	}
	p, sent := m.cfg.profile(), m.shape(m.cfg.Model).sent(&m.cfg, &memgpt.Request{})
	return memgpt.Capabilities{
		Name: name, Window: int(m.window.Load()), MaxOutput: m.cfg.MaxOutput,
		Tools: !m.cfg.NoTools, Parallel: p.Parallel && !m.cfg.NoTools, Forced: (m.cfg.Forced || p.Forced) && !m.cfg.NoTools,
		Images: sent.images, Reasoning: sent.thoughts, Schema: m.cfg.Schema, Tokenizer: tokenizerOf(m.cfg.Model),
	}
}

// Close closes idle connections. Calls under way are not disturbed.
func (m *Model) Close() error {
	m.client.CloseIdleConnections()
	return nil
}

// maxForms bounds how often a request is sent anew in another form; it is more than there are forms.
const maxForms = 8

// Generate implements memgpt.Model. With CodeModelEmpty the response is returned beside the error, for its usage.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	name := req.Model
	if name == "" {
		name = m.cfg.Model
	}
	if stream == nil {
		stream = func(memgpt.Delta) {}
	}
	revived := false
	for form := 1; ; form++ {
		sh := m.shape(name)
		resp, f := m.call(ctx, req, name, sh, stream)
		if f != nil {
			wire.HideIn(f.err, m.cfg.APIKey)
		}
		switch {
		case f == nil:
			return resp, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%s: %w", callName(sh.responses), ctx.Err())
		case f.stale && !revived:
			revived = true
		case form < maxForms && m.learn(name, sh, sh.sent(&m.cfg, req), f):
		default:
			return resp, f.err
		}
	}
}

// shape returns what is known of the server's wishes for a model.
func (m *Model) shape(name string) shape {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known(name)
}

// known is shape under the lock.
func (m *Model) known(name string) shape {
	sh, ok := m.shapes[name]
	if !ok {
		sh = m.cfg.profile().firstShape(&m.cfg, name)
	}
	return sh
}

// learn takes from a refusal that the request should be formed otherwise, and reports whether it should be sent again.
func (m *Model) learn(name string, was shape, sent sentFields, f *fault) bool {
	next, ok := was.after(sent, f)
	if !ok {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known(name) == was { // else a call beside this one has learned
		m.shapes[name] = next
	}
	return true
}

// call sends a request once and reads the answer.
func (m *Model) call(ctx context.Context, req *memgpt.Request, name string, sh shape, stream func(memgpt.Delta)) (*memgpt.Response, *fault) {
	w := wire.NewWatch(ctx, wire.Limits{First: m.cfg.First, Idle: m.cfg.Idle, Whole: m.cfg.Whole, Filler: filler})
	defer w.Stop()
	req.Restore()
	path, body := "chat/completions", []byte(nil)
	if sh.responses {
		path, body = "responses", encodeResponses(req, name, &m.cfg, sh)
	} else {
		body = encode(req, name, &m.cfg, sh)
	}
	req.Release()
	resp, f := m.send(callName(sh.responses), w, m.address(name, path), body)
	if f != nil {
		return nil, f
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, m.refused(callName(sh.responses), resp)
	}
	r := newReply(stream, m.cfg.NewID, name, req.MaxTokens)
	r.costs = m.cfg.profile().TellsCost
	if sh.responses {
		r.items = &responseItems{}
	}
	return m.read(w, resp, r)
}

// address returns the address of a path of the API for a model.
func (m *Model) address(model, name string) string {
	return strings.ReplaceAll(at(m.base, name), url.PathEscape("{model}"), url.PathEscape(model))
}

// send posts a body, which is not kept once it is sent.
func (m *Model) send(call string, w *wire.Watch, address string, body []byte) (*http.Response, *fault) {
	ctx, reused := wire.Traced(w.Context())
	hreq, err := http.NewRequestWithContext(ctx, http.MethodPost, address, wire.NewBody(body))
	if err != nil {
		return nil, &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "make the request: %w", err)}
	}
	hreq.ContentLength = int64(len(body))
	hreq.Header.Set("Content-Type", "application/json")
	hreq.Header.Set("Accept", "text/event-stream, application/json")
	authorize(hreq, m.cfg.profile(), m.cfg.APIKey, m.cfg.Headers)
	resp, err := m.client.Do(hreq)
	if err != nil {
		return nil, m.unreachable(call, w, err, reused.Load())
	}
	return resp, nil
}

func authorize(r *http.Request, p *Profile, key string, headers map[string]string) {
	r.Header.Set("User-Agent", "memgpt")
	switch {
	case key == "":
	case p.KeyHeader != "":
		r.Header.Set(p.KeyHeader, key)
	default:
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for k, v := range headers {
		r.Header.Set(k, v)
	}
}
