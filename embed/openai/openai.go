// Package openai turns texts to vectors at an endpoint that speaks the Embeddings protocol of OpenAI: OpenAI itself, Ollama,
// llama.cpp, LM Studio, vLLM and many others at a base URL. It owns the wire format, the size of batches, plain retries and the
// mapping of errors to codes. It knows nothing of chat models, and does not look for servers by itself.
package openai

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// Defaults of Config. A batch of 64 texts and 200,000 bytes stays under OpenAI's 300,000 tokens a request, and is quick
// enough for a small local server.
const (
	DefaultBatch      = 64
	DefaultBatchBytes = 200_000
	DefaultRetries    = 3
	DefaultTimeout    = 2 * time.Minute
)

// Config describes an endpoint and a model at it.
type Config struct {
	BaseURL string            // as other clients take it, e.g. "http://127.0.0.1:11434/v1"; "/v1" is added to a bare host
	APIKey  string            // sent as bearer token; "" sends none
	Headers map[string]string // sent with each request
	Model   string            // the model's name; needed, since vectors of two models must not be mixed

	Dimensions int  // asked of models that can shorten their vectors; 0 asks for nothing
	Base64     bool // ask for vectors as base64, which is a third of the bytes; both kinds of answers are always read

	// QueryPrefix and StoredPrefix are put before questions and stored texts, as models like e5 ("query: ", "passage: ")
	// were trained. Changing them makes other vectors, so Name must change with them.
	QueryPrefix, StoredPrefix string
	Name                      string // the id stored with vectors; "" is Model, with the dimensions if they are asked for

	Batch      int           // texts of a request; 0 is DefaultBatch
	BatchBytes int           // bytes of the texts of a request, unless a single text has more; 0 is DefaultBatchBytes
	Retries    int           // after failures that may pass; 0 is DefaultRetries, negative none
	Timeout    time.Duration // of one request; 0 is DefaultTimeout

	Client *http.Client                                     // nil is one of its own
	Now    func() time.Time                                 // for dates in Retry-After; nil is time.Now
	Wait   func(ctx context.Context, d time.Duration) error // between tries; nil waits by the clock
}

// Embedder embeds at one endpoint. It is safe for concurrent use.
type Embedder struct {
	cfg    Config
	url    string
	host   string
	client *http.Client
	dim    atomic.Int64
}

// New returns an embedder. It opens no connection. A base URL that can't be used, and a missing model, are CodeInvalid.
func New(cfg Config) (*Embedder, error) {
	u, err := url.Parse(strings.TrimSpace(cfg.BaseURL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "base URL %q: want http://host:port/v1 or https://host/v1", wire.Shown(cfg.BaseURL))
	}
	if cfg.Model == "" {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "embed at %s: no model is named", u.Host)
	}
	u.Path = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/embeddings"), "/")
	if u.Path == "" {
		u.Path = "/v1"
	}
	u.Path, u.Fragment = u.Path+"/embeddings", ""
	cfg.setDefaults()
	e := &Embedder{cfg: cfg, url: u.String(), host: u.Host, client: &http.Client{}}
	if cfg.Client != nil {
		*e.client = *cfg.Client
	}
	// A key must not go where the user did not send it.
	e.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e.dim.Store(int64(cfg.Dimensions))
	return e, nil
}

func (cfg *Config) setDefaults() {
	if cfg.Batch <= 0 {
		cfg.Batch = DefaultBatch
	}
	if cfg.BatchBytes <= 0 {
		cfg.BatchBytes = DefaultBatchBytes
	}
	if cfg.Retries == 0 {
		cfg.Retries = DefaultRetries
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Wait == nil {
		cfg.Wait = wait
	}
	if cfg.Name == "" {
		cfg.Name = cfg.Model
		if cfg.Dimensions > 0 {
			cfg.Name = fmt.Sprintf("%s:%d", cfg.Model, cfg.Dimensions)
		}
	}
}

// wait waits for d or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Model is the id to store with each vector: Config.Name.
func (e *Embedder) Model() string { return e.cfg.Name }

// Dim is the number of dimensions: those asked for, or those of the first answer; 0 until then.
func (e *Embedder) Dim() int { return int(e.dim.Load()) }

// Embed returns a vector of length 1 for each text, in their order. query says that the texts are questions, not stored
// texts. Errors carry the codes of a model. An answer with a vector that is missing, has another dimension than the first
// one had, is zero or holds something that is no number is CodeModelRequest.
func (e *Embedder) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	prefix := e.cfg.StoredPrefix
	if query {
		prefix = e.cfg.QueryPrefix
	}
	vectors := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := e.batch(texts)
		input := make([]string, n)
		for i, text := range texts[:n] {
			if input[i] = memgpt.CleanText(prefix + text); input[i] == "" {
				input[i] = " " // many servers refuse an empty text
			}
		}
		list, err := e.retry(ctx, input)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, list...)
		texts = texts[n:]
	}
	return vectors, nil
}

// batch is how many of the texts go into one request, at least one.
func (e *Embedder) batch(texts []string) int {
	size := 0
	for i, text := range texts {
		if size += len(text); i == e.cfg.Batch || i > 0 && size > e.cfg.BatchBytes {
			return i
		}
	}
	return len(texts)
}

// Waits between tries: they double from firstWait. An endpoint that asks for more than longestWait is not waited for.
const (
	firstWait   = 500 * time.Millisecond
	longestWait = time.Minute
)

// retry asks until there is an answer, it is no use, or the tries are used up.
func (e *Embedder) retry(ctx context.Context, input []string) ([][]float32, error) {
	pause := firstWait
	for try := 0; ; try++ {
		list, err := e.ask(ctx, input)
		if err == nil {
			return list, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("embed at %s: %w", e.host, ctx.Err())
		}
		if try >= e.cfg.Retries || !passes(err.Code) || err.RetryAfter > longestWait {
			return nil, err
		}
		if until, ok := ctx.Deadline(); ok && time.Until(until) < max(pause, err.RetryAfter) {
			return nil, err // it says more than that time ran out
		}
		if err := e.cfg.Wait(ctx, max(pause, err.RetryAfter)); err != nil {
			return nil, fmt.Errorf("embed at %s: %w", e.host, err)
		}
		pause *= 2
	}
}

// passes reports whether a failure may be over when asked again.
func passes(code memgpt.Code) bool {
	return code == memgpt.CodeModelLimit || code == memgpt.CodeModelDown || code == memgpt.CodeModelTimeout
}

// unit brings a vector to length 1.
func unit(v []float32) error {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	switch {
	case math.IsNaN(sum) || math.IsInf(sum, 0):
		return errors.New("holds a number that is none")
	case sum == 0:
		return errors.New("is zero")
	}
	f := 1 / math.Sqrt(sum)
	for i, x := range v {
		v[i] = float32(float64(x) * f)
	}
	return nil
}
