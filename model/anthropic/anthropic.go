// Package anthropic is a model behind Anthropic's Messages API, over the vendor's Go SDK.
//
// It owns the shape of requests (cache breakpoints, the order of tool results, thinking that goes back unchanged), the
// reading of streams, the time limits of one call and the mapping of errors to codes. The SDK's own retries and its
// reading of the environment are off: model/retry retries, and settings come in Config. Like its siblings it resends a
// request only where the connection turned out to be dead or the form was refused.
package anthropic

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"memgpt"
	"memgpt/internal/wire"
)

// provider marks the Reasoning parts that this package made and takes back.
const provider = "anthropic"

// filler is what a server sends while it has nothing to send.
const filler = "pings"

// Defaults of Config. The first piece waits for a long prompt to be read and for thinking that isn't shown.
const (
	DefaultBaseURL = "https://api.anthropic.com"
	DefaultConnect = 10 * time.Second
	DefaultFirst   = 10 * time.Minute
	DefaultIdle    = 2 * time.Minute
	DefaultWhole   = time.Hour
)

// Config describes an account and a model.
type Config struct {
	BaseURL string            // "" is DefaultBaseURL; "/v1" at its end is taken off
	APIKey  string            // sent as bearer token, as the SDK does; "" sends none
	Headers map[string]string // sent with each request, e.g. "anthropic-version" and "x-api-key" for an older gateway
	Model   string            // used where a request names none
	Client  *http.Client      // nil: one made for many slow calls at once, with the timeouts below

	Window    int  // tokens of the model's context; 0 takes the table's, see Model.Window
	MaxOutput int  // most tokens of a reply; 0 takes the table's
	NoCache   bool // set no cache breakpoints

	// Extra are further fields of each request's body, sent as they are: "thinking", "output_config", "metadata".
	Extra map[string]json.RawMessage

	Connect time.Duration // to connect; 0 is DefaultConnect. It has no effect with a Client
	First   time.Duration // until the first piece of an answer, and between any two; 0 is DefaultFirst
	Idle    time.Duration // without a byte after the first piece; pings count as bytes. 0 is DefaultIdle
	Whole   time.Duration // for the whole of one call; 0 is DefaultWhole

	Now   func() time.Time // for dates in headers; nil is time.Now
	NewID func() string    // names calls that came without an id, uniquely; nil draws random ones
}

// Model is a memgpt.Model of one account. It is safe for concurrent use.
type Model struct {
	cfg     Config
	host    string
	http    *http.Client
	client  sdk.Client
	window  atomic.Int64
	output  atomic.Int64
	unforce sync.Map // names of models that refused a forced choice
}

// ownFields are the fields of a request that Extra can't set.
var ownFields = []string{"model", "messages", "system", "tools", "tool_choice", "max_tokens", "stream", "cache_control"}

// New returns a model. It opens no connection. A base URL or an extra field that can't be used is CodeInvalid.
func New(cfg Config) (*Model, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	for name, value := range cfg.Extra {
		if slices.Contains(ownFields, name) {
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "extra field %q: it is the client's own", name)
		}
		if !json.Valid(value) {
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "extra field %q: its value is not JSON", name)
		}
	}
	cfg.Connect = orDefault(cfg.Connect, DefaultConnect)
	cfg.First = orDefault(cfg.First, DefaultFirst)
	cfg.Idle = orDefault(cfg.Idle, DefaultIdle)
	cfg.Whole = orDefault(cfg.Whole, DefaultWhole)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = func() string { return "toolu_" + rand.Text()[:24] }
	}
	m := &Model{cfg: cfg, host: base.Host, http: wire.NewClient(cfg.Client, cfg.Connect)}
	m.client = sdk.NewClient(options(&cfg, base, m.http)...)
	known := knownModel(cfg.Model)
	m.window.Store(int64(orKnown(cfg.Window, known.window)))
	m.output.Store(int64(orKnown(cfg.MaxOutput, known.output)))
	return m, nil
}

// options are those of the SDK's client. It reads no environment: the caller's Config is all there is.
func options(cfg *Config, base *url.URL, client *http.Client) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(base.String()), option.WithHTTPClient(client),
		option.WithMaxRetries(0), option.WithHeader("User-Agent", "memgpt"),
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(cfg.APIKey))
	}
	for name, value := range cfg.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return opts
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

func orKnown(n, known int) int {
	if n > 0 {
		return n
	}
	return known
}

// parseBase reads a base URL as people write it.
func parseBase(s string) (*url.URL, error) {
	if s = strings.TrimSpace(s); s == "" {
		s = DefaultBaseURL
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "base URL %q: want https://host", wire.Shown(s))
	}
	path := strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/messages")
	u.Path, u.RawPath, u.Fragment = strings.TrimRight(strings.TrimSuffix(path, "/v1"), "/")+"/", "", ""
	return u, nil
}

// Capabilities implements memgpt.Model. The sizes are the configured ones, else what Window found, else the table's.
func (m *Model) Capabilities() memgpt.Capabilities {
	name := m.cfg.Model
	if name == "" {
		name = m.host
	}
	return memgpt.Capabilities{
		Name: name, Window: int(m.window.Load()), MaxOutput: int(m.output.Load()),
		Tools: true, Parallel: true, Forced: m.forces(m.cfg.Model), Images: true, Reasoning: true,
	}
}

// Close closes idle connections. Calls under way are not disturbed.
func (m *Model) Close() error {
	m.http.CloseIdleConnections()
	return nil
}

// forces reports whether a model may be told that it must call. The API refuses that beside thinking that is asked for,
// and models that always think refuse it too, which is known or learned.
func (m *Model) forces(model string) bool {
	var thinking struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(m.cfg.Extra["thinking"], &thinking)
	if thinking.Type == "enabled" || thinking.Type == "adaptive" || knownModel(model).unforced {
		return false
	}
	_, refused := m.unforce.Load(model)
	return !refused
}

// form is how a request is made; a refusal may call for another one.
type form struct {
	force    bool // a forced choice is sent as such
	thoughts bool // earlier thinking goes back
}

// maxForms bounds how often one request is sent: once in each form, and once over a new connection.
const maxForms = 4

// Generate implements memgpt.Model. With CodeModelEmpty the response is returned beside the error, for its usage.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	name := req.Model
	if name == "" {
		name = m.cfg.Model
	}
	if stream == nil {
		stream = func(memgpt.Delta) {}
	}
	how, revived := form{force: m.forces(name), thoughts: true}, false
	for try := 1; ; try++ {
		resp, f := m.call(ctx, req, name, how, stream)
		if f != nil {
			wire.HideIn(f.err, m.cfg.APIKey)
		}
		switch {
		case f == nil:
			return resp, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("messages: %w", ctx.Err())
		case f.stale && !revived:
			revived = true
		case try < maxForms && m.reform(&how, name, req, f):
		default:
			return resp, f.err
		}
	}
}

// reform takes from a refusal that the request should be formed otherwise, and reports whether it should be sent again.
// That a model can't be forced stays known. Thinking is left out of one request only: what another account signed leaves
// the queue in time, and what this one signs should go back.
func (m *Model) reform(how *form, name string, req *memgpt.Request, f *fault) bool {
	if f.status != http.StatusBadRequest || f.err.Code != memgpt.CodeModelRequest {
		return false
	}
	said := strings.ToLower(f.said)
	switch {
	case how.force && req.Choice == memgpt.ChoiceRequired && strings.Contains(said, "tool_choice"):
		how.force = false
		m.unforce.Store(name, true)
	case how.thoughts && strings.Contains(said, "thinking") && (strings.Contains(said, "signature") || strings.Contains(said, "block")):
		how.thoughts = false
	default:
		return false
	}
	return true
}

// call sends a request once and reads the answer.
func (m *Model) call(ctx context.Context, req *memgpt.Request, name string, how form, stream func(memgpt.Delta)) (*memgpt.Response, *fault) {
	w := wire.NewWatch(ctx, wire.Limits{First: m.cfg.First, Idle: m.cfg.Idle, Whole: m.cfg.Whole, Filler: filler})
	defer w.Stop()
	req.Restore()
	body, err := encode(req, name, &m.cfg, how)
	req.Release()
	if err != nil {
		return nil, &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "messages: make the request: %w", err)}
	}
	resp, f := m.send(w, body)
	if f != nil {
		return nil, f
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, m.refused(resp)
	}
	return m.read(w, resp, newReply(stream, m.cfg.NewID, name))
}

// send posts a body, which is not kept once it is sent.
func (m *Model) send(w *wire.Watch, body []byte) (*http.Response, *fault) {
	ctx, reused := wire.Traced(w.Context())
	size := int64(len(body))
	sized := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		r.ContentLength = size
		return next(r)
	})
	var resp *http.Response
	err := m.client.Post(ctx, "v1/messages", wire.NewBody(body), &resp, sized, option.WithHeader("Accept", "text/event-stream"))
	if err == nil {
		return resp, nil
	}
	var refusal *sdk.Error
	if errors.As(err, &refusal) {
		return nil, m.refusal(refusal)
	}
	return nil, m.unreachable(w, err, reused.Load())
}
