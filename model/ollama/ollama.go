// Package ollama is a model behind Ollama's own protocol, /api/chat. Beside the compatible endpoint (model/openai) it can
// say how large the context is to be: an agent's window is the num_ctx of each request, so that the server never cuts a
// prompt without a word.
//
// It owns the wire format, the time limits of one call, the mapping of errors to codes, and what /api/show tells of a
// model. It loads no model down unless Pull is called. It does not retry (model/retry does).
package ollama

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// provider marks the Reasoning parts that this package made and takes back.
const provider = "ollama"

// filler is what a server sends while it has nothing to send.
const filler = "empty pieces"

// Defaults of Config. They are fit for a large model on a slow machine, which is loaded and reads a long prompt for
// minutes.
const (
	DefaultBaseURL = "http://127.0.0.1:11434"
	DefaultConnect = 10 * time.Second
	DefaultFirst   = 10 * time.Minute
	DefaultIdle    = 2 * time.Minute
	DefaultWhole   = time.Hour
)

// Config describes a server and a model at it.
type Config struct {
	BaseURL string            // "" is DefaultBaseURL; a scheme is added to a bare host, and "/v1" or "/api" at its end is taken off
	APIKey  string            // sent as bearer token; "" sends none
	Headers map[string]string // sent with each request
	Model   string            // used where a request names none, e.g. "qwen3:8b"
	Client  *http.Client      // nil: one made for many slow calls at once, with the timeouts below

	Window    int    // num_ctx where a request names no window, and what Capabilities tells up to the model's own; 0 leaves it to the server
	MaxOutput int    // tokens of a reply; 0 when unknown
	KeepAlive string // how long the model stays loaded, as Ollama reads it ("10m", "-1" is for ever, "0" not at all); "" leaves it to the server
	// Think is what a thinking model is told: "" leaves it to the server, "true" and "false" turn thinking on and off,
	// "low", "medium" and "high" are for models with levels.
	Think string

	// Options are further options of the model, e.g. "temperature". They are sent as they are.
	Options map[string]json.RawMessage

	Connect time.Duration // to connect; 0 is DefaultConnect. It has no effect with a Client
	First   time.Duration // until the first piece of an answer, and between any two; 0 is DefaultFirst
	Idle    time.Duration // without a byte after the first piece; 0 is DefaultIdle
	Whole   time.Duration // for the whole of one call; 0 is DefaultWhole

	NewID func() string // names calls, uniquely; nil draws random ones
}

// Model is a memgpt.Model at one server. It is safe for concurrent use.
type Model struct {
	cfg    Config
	base   *url.URL
	client *http.Client

	mu    sync.Mutex
	shown map[string]*Shown // by model
}

// New returns a model. It opens no connection. A setting that can't be used is CodeInvalid.
func New(cfg Config) (*Model, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	for name, value := range cfg.Options {
		if name == "num_ctx" || name == "num_predict" {
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "option %q: it follows the agent's window", name)
		}
		if !json.Valid(value) {
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "option %q: its value is not JSON", name)
		}
	}
	if !slices.Contains([]string{"", "true", "false", "low", "medium", "high"}, cfg.Think) {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "think %q: want true, false, low, medium or high", memgpt.CutText(cfg.Think, 100))
	}
	cfg.Connect = orDefault(cfg.Connect, DefaultConnect)
	cfg.First = orDefault(cfg.First, DefaultFirst)
	cfg.Idle = orDefault(cfg.Idle, DefaultIdle)
	cfg.Whole = orDefault(cfg.Whole, DefaultWhole)
	if cfg.NewID == nil {
		cfg.NewID = func() string { return "call_" + rand.Text()[:24] }
	}
	return &Model{cfg: cfg, base: base, client: wire.NewClient(cfg.Client, cfg.Connect), shown: map[string]*Shown{}}, nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// parseBase reads a base URL as people write it, OLLAMA_HOST's form too.
func parseBase(s string) (*url.URL, error) {
	if s = strings.TrimSpace(s); s == "" {
		s = DefaultBaseURL
	}
	full := s
	if !strings.Contains(full, "://") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "base URL %q: want http://host:11434", wire.Shown(s))
	}
	path := strings.TrimRight(u.Path, "/")
	for _, end := range []string{"/api/chat", "/api", "/v1"} {
		path = strings.TrimSuffix(path, end)
	}
	u.Path, u.RawPath, u.RawQuery, u.Fragment = strings.TrimRight(path, "/"), "", "", ""
	return u, nil
}

// Capabilities implements memgpt.Model. Until Show has been asked (each first call asks it) it tells what most models can.
func (m *Model) Capabilities() memgpt.Capabilities {
	name := m.cfg.Model
	if name == "" {
		name = m.base.Host
	}
	c := memgpt.Capabilities{Name: name, Window: m.cfg.Window, MaxOutput: m.cfg.MaxOutput, Tools: true, Parallel: true, Schema: true}
	m.mu.Lock()
	s := m.shown[m.cfg.Model]
	m.mu.Unlock()
	if s != nil {
		c.Tools, c.Parallel, c.Images, c.Reasoning = s.Tools, s.Tools, s.Vision, s.Thinking
		if c.Window == 0 || s.Window > 0 && s.Window < c.Window { // the server bounds num_ctx by it
			c.Window = s.Window
		}
	}
	return c
}

// Close closes idle connections. Calls under way are not disturbed.
func (m *Model) Close() error {
	m.client.CloseIdleConnections()
	return nil
}

// Generate implements memgpt.Model. With CodeModelEmpty the response is returned beside the error, for its usage.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	name := req.Model
	if name == "" {
		name = m.cfg.Model
	}
	if name == "" {
		return nil, memgpt.Errorf(memgpt.CodeModelRequest, "chat at %s: no model is set: name one that `ollama list` shows", m.base.Host)
	}
	if stream == nil {
		stream = func(memgpt.Delta) {}
	}
	shown, err := m.Show(ctx, name)
	if err != nil {
		return nil, err
	}
	for revived := false; ; {
		resp, f := m.call(ctx, req, name, shown, stream)
		if f != nil {
			wire.HideIn(f.err, m.cfg.APIKey)
		}
		switch {
		case f == nil:
			return resp, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("chat: %w", ctx.Err())
		case f.stale && !revived:
			revived = true
		case f.lacks(shown):
			shown = m.correct(name, shown, f)
		default:
			return resp, f.err
		}
	}
}

// call sends a request once and reads the answer.
func (m *Model) call(ctx context.Context, req *memgpt.Request, name string, shown *Shown, stream func(memgpt.Delta)) (*memgpt.Response, *fault) {
	w := wire.NewWatch(ctx, wire.Limits{First: m.cfg.First, Idle: m.cfg.Idle, Whole: m.cfg.Whole, Filler: filler})
	defer w.Stop()
	req.Restore()
	body, err := encode(req, name, &m.cfg, shown)
	req.Release()
	if err != nil {
		return nil, &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "chat: make the request: %w", err)}
	}
	resp, f := m.send(w, "/api/chat", body)
	if f != nil {
		return nil, f
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, m.refused(resp, "chat", name)
	}
	return m.read(w, resp, newReply(stream, m.cfg.NewID, name, shown.Whole))
}

// send posts a body, which is not kept once it is sent.
func (m *Model) send(w *wire.Watch, path string, body []byte) (*http.Response, *fault) {
	ctx, reused := wire.Traced(w.Context())
	u := *m.base
	u.Path += path
	hreq, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), wire.NewBody(body))
	if err != nil {
		return nil, &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "make the request: %w", err)}
	}
	hreq.ContentLength = int64(len(body))
	hreq.Header.Set("Content-Type", "application/json")
	m.authorize(hreq)
	resp, err := m.client.Do(hreq)
	if err != nil {
		return nil, m.unreachable(w, err, reused.Load())
	}
	return resp, nil
}

func (m *Model) authorize(r *http.Request) {
	r.Header.Set("User-Agent", "memgpt")
	if m.cfg.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+m.cfg.APIKey)
	}
	for k, v := range m.cfg.Headers {
		r.Header.Set(k, v)
	}
}

// fault is a failed call: the error for the caller and what this package judges by.
type fault struct {
	err   *memgpt.Error
	said  string // what the server said, in lower case
	stale bool   // the connection was an old one that the server had closed
}

// lacks reports whether the server says that the model can't do what it is thought to do.
func (f *fault) lacks(s *Shown) bool {
	return s.Tools && strings.Contains(f.said, "does not support tools") || s.Thinking && strings.Contains(f.said, "does not support thinking")
}

// correct takes from a refusal what a model can't do.
func (m *Model) correct(name string, was *Shown, f *fault) *Shown {
	s := *was
	s.Tools = s.Tools && !strings.Contains(f.said, "does not support tools")
	s.Thinking = s.Thinking && !strings.Contains(f.said, "does not support thinking")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown[name] = &s
	return &s
}

func down(format string, args ...any) *fault {
	return &fault{err: memgpt.Errorf(memgpt.CodeModelDown, format, args...)}
}
