// Package httprr records HTTP exchanges to a trace file and plays them back, at the level of http.RoundTripper, so that an
// adapter is tested against what a real service once answered, byte for byte. It owns the trace's format, the matching and the
// scrubbing of secrets. It does not imitate timing: a body is recorded whole and played back at once.
package httprr

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// RecordEnv is the environment variable that makes [Open] record: a pattern of path.Match against the
// trace file's base name, "*" for all.
const RecordEnv = "HTTPRR_RECORD"

// Request is the request of an exchange.
type Request struct {
	Method string
	URL    string // whole, as sent
	Header http.Header
	Body   []byte
}

// Exchange is one request with its answer.
type Exchange struct {
	Request  Request
	Response Response
}

// Config changes what a trace keeps. The zero value replays, and scrubs only the known secrets.
type Config struct {
	// Record records even if RecordEnv doesn't ask for it.
	Record bool
	// ScrubRequest changes a request before it is compared or written, while recording and replaying alike: it takes out secrets
	// and whatever differs from run to run, such as a port or a time. The request that is sent stays as it is. It gets a copy,
	// may run on several goroutines at once, and is applied to what it gave before, which it must not change again.
	ScrubRequest func(*Request)
	// ScrubResponse changes a response before it is written. While recording the caller still gets the real one.
	ScrubResponse func(*Response)
}

// Trace is an http.RoundTripper that records or replays. It is safe for concurrent use.
type Trace struct {
	file string // "" for a trace in memory
	real http.RoundTripper
	cfg  Config
	rec  bool

	mu      sync.Mutex
	all     []Exchange             // recorded
	waiting map[string][]*Exchange // to be replayed, by key, in the order of the trace
	known   map[string]int         // how many of a key the trace holds
}

// Open opens a trace. It records the answers of real (nil: http.DefaultTransport) into file if cfg.Record or RecordEnv says
// so; the file is replaced with the first answer. Otherwise it replays the file, and never uses real.
//
// Replaying answers a request with the recorded one of the same method, URL and body. Equal requests get their answers in
// the order of the trace, each once. A request without an answer gets an error that names the file and how to record it.
func Open(file string, real http.RoundTripper, cfg Config) (*Trace, error) {
	wanted, err := path.Match(os.Getenv(RecordEnv), filepath.Base(file))
	if err != nil {
		return nil, fmt.Errorf("httprr: %s: %w", RecordEnv, err)
	}
	if real == nil {
		real = http.DefaultTransport
	}
	if cfg.Record || wanted {
		return &Trace{file: file, real: real, cfg: cfg, rec: true}, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("httprr: no trace to replay: %w (%s)", err, howTo(file))
	} else if err != nil {
		return nil, fmt.Errorf("httprr: open trace: %w", err)
	}
	exchanges, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("httprr: trace %s: %w (%s)", file, err, howTo(file))
	}
	t := Replay(cfg, exchanges...)
	t.file = file
	return t, nil
}

// Replay is a trace in memory that answers with the exchanges.
func Replay(cfg Config, exchanges ...Exchange) *Trace {
	t := &Trace{cfg: cfg, waiting: map[string][]*Exchange{}, known: map[string]int{}}
	for _, x := range exchanges {
		k := key(t.scrubRequest(x.Request))
		t.waiting[k] = append(t.waiting[k], &x)
		t.known[k]++
	}
	return t
}

func howTo(file string) string {
	return fmt.Sprintf("to record it, run the test with %s=%s, the real service in reach", RecordEnv, filepath.Base(file))
}

// Recording says whether t asks the real service.
func (t *Trace) Recording() bool { return t.rec }

// Client is an HTTP client on t.
func (t *Trace) Client() *http.Client { return &http.Client{Transport: t} }

// Unused are the requests that a replayed trace still has an answer for, as method and URL, sorted.
func (t *Trace) Unused() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left []string
	for _, xs := range t.waiting {
		for _, x := range xs {
			left = append(left, x.Request.Method+" "+x.Request.URL)
		}
	}
	slices.Sort(left)
	return left
}

// RoundTrip implements http.RoundTripper.
func (t *Trace) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		defer req.Body.Close()
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, fmt.Errorf("httprr: read request body: %w", err)
		}
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	kept := t.scrubRequest(Request{cmp.Or(req.Method, http.MethodGet), req.URL.String(), req.Header, body})
	if t.rec {
		return t.record(req, body, kept)
	}
	x, err := t.take(kept)
	if err != nil {
		return nil, err
	}
	return x.Response.RoundTrip(req)
}

func (t *Trace) take(r Request) (*Exchange, error) {
	k := key(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	if xs := t.waiting[k]; len(xs) > 0 {
		t.waiting[k] = xs[1:]
		return xs[0], nil
	}
	where := "the exchanges"
	if t.file != "" {
		where = fmt.Sprintf("trace %s (%s)", t.file, howTo(t.file))
	}
	return nil, fmt.Errorf("httprr: %s %s with this body is %d times in %s, and no answer is left: %s", r.Method, r.URL, t.known[k], where, excerpt(r.Body))
}

func excerpt(b []byte) string {
	const most = 500
	if len(b) > most {
		return fmt.Sprintf("%q and %d more bytes", b[:most], len(b)-most)
	}
	return fmt.Sprintf("%q", b)
}

func (t *Trace) record(req *http.Request, body []byte, kept Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if req.Body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := t.real.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	got := Response{Status: resp.StatusCode, Header: resp.Header}
	got.Body, err = io.ReadAll(resp.Body)
	if got.Cut = errors.Is(err, io.ErrUnexpectedEOF); err != nil && !got.Cut {
		return nil, fmt.Errorf("httprr: read response body: %w", err)
	}
	if err := t.keep(Exchange{kept, t.scrubResponse(got)}); err != nil {
		return nil, err
	}
	return got.RoundTrip(req)
}

// keep writes the whole trace again, which is cheap for what a test says to a service, and leaves no
// half-written file and nothing to close.
func (t *Trace) keep(x Exchange) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, x)
	return WriteFile(t.file, t.all...)
}

// key is what is compared.
func key(r Request) string { return r.Method + " " + r.URL + "\n" + string(r.Body) }

const scrubbed = "scrubbed"

// scrubRequest returns a copy.
func (t *Trace) scrubRequest(r Request) Request {
	r.Header, r.Body, r.URL = scrubHeader(r.Header), bytes.Clone(r.Body), scrubURL(r.URL)
	if t.cfg.ScrubRequest != nil {
		t.cfg.ScrubRequest(&r)
	}
	return r
}

func (t *Trace) scrubResponse(r Response) Response {
	r.Header, r.Body = scrubHeader(r.Header), bytes.Clone(r.Body)
	if t.cfg.ScrubResponse != nil {
		t.cfg.ScrubResponse(&r)
	}
	return r
}

// secret says whether the lower-case name of a header or a query's parameter promises a secret.
func secret(name string) bool {
	if name == "key" || name == "token" {
		return true
	}
	return slices.ContainsFunc([]string{"authorization", "api-key", "api_key", "apikey", "auth-token", "access_token", "access-token", "secret", "password", "cookie"},
		func(s string) bool { return strings.Contains(name, s) })
}

func scrubHeader(h http.Header) http.Header {
	if h = h.Clone(); h == nil {
		h = http.Header{}
	}
	for name := range h {
		if secret(strings.ToLower(name)) {
			h[name] = []string{scrubbed}
		}
	}
	return h
}
