// Package retry is a memgpt.Model that asks another one again when a failure may pass: the provider is overloaded or
// unreachable, too many requests were made, no answer came in time, or the answer was empty.
//
// It knows no protocol and cuts no request down: refusals (a bad request, a wrong key, no credit, a request over the
// window) are returned at once. It never asks again once pieces of a reply were passed on, since the caller has them.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"memgpt"
)

// Defaults of Config: five tries and two minutes ride out a busy minute of a provider without keeping a person waiting
// for ever; the rest is the usual exponential backoff with full jitter above the half.
const (
	DefaultTries = 5
	DefaultTotal = 2 * time.Minute
	DefaultBase  = 500 * time.Millisecond
	DefaultMax   = 30 * time.Second
)

// emptyTries is how often an empty answer is asked for: it is mostly a slip of the model, and the kernel has its own way
// with a model that stays silent.
const emptyTries = 2

// Config describes a retrying model.
type Config struct {
	Model memgpt.Model
	Tries int           // calls in all; 0 is DefaultTries
	Total time.Duration // no call begins later than that after the first; 0 is DefaultTotal
	Base  time.Duration // wait after the first failure, doubled by each; 0 is DefaultBase
	Max   time.Duration // longest wait that the provider did not ask for; 0 is DefaultMax

	Now   func() time.Time                                         // nil is time.Now
	Sleep func(ctx context.Context, d time.Duration) error         // nil waits; it ends early with the context's error
	Rand  func() float64                                           // in [0, 1); nil draws at random
	Retry func(ctx context.Context, err error, wait time.Duration) // told before each wait; nil is nobody
}

// Model is a memgpt.Model that retries. It is safe for concurrent use if its parts are.
type Model struct{ cfg Config }

// New returns a retrying model. It needs a model (CodeInvalid).
func New(cfg Config) (*Model, error) {
	if cfg.Model == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "retry: no model is given")
	}
	if cfg.Tries <= 0 {
		cfg.Tries = DefaultTries
	}
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&cfg.Total, DefaultTotal}, {&cfg.Base, DefaultBase}, {&cfg.Max, DefaultMax}} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	return &Model{cfg}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Capabilities implements memgpt.Model: they are those of the model beneath.
func (m *Model) Capabilities() memgpt.Capabilities { return m.cfg.Model.Capabilities() }

// Generate implements memgpt.Model. When it gives up it returns the last failure as it is, with its RetryAfter.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	end := m.cfg.Now().Add(m.cfg.Total)
	passed := false
	pass := stream
	if stream != nil {
		pass = func(d memgpt.Delta) { passed = true; stream(d) }
	}
	for try := 1; ; try++ {
		resp, err := m.cfg.Model.Generate(ctx, req, pass)
		if err == nil || passed || ctx.Err() != nil {
			return resp, err
		}
		wait, ok := m.wait(err, try)
		if !ok || m.cfg.Now().Add(wait).After(end) {
			return resp, err
		}
		if m.cfg.Retry != nil {
			m.cfg.Retry(ctx, err, wait)
		}
		if err := m.cfg.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// wait returns how long to wait after a failed try, or false where it is not tried again.
func (m *Model) wait(err error, try int) (time.Duration, bool) {
	var e *memgpt.Error
	if !errors.As(err, &e) || e.Started || try >= m.cfg.Tries {
		return 0, false
	}
	switch e.Code {
	case memgpt.CodeModelDown, memgpt.CodeModelLimit, memgpt.CodeModelTimeout:
	case memgpt.CodeModelEmpty:
		if try >= emptyTries {
			return 0, false
		}
	default:
		return 0, false
	}
	backoff := m.cfg.Max
	if shift := try - 1; shift < 30 && m.cfg.Base<<shift > 0 {
		backoff = min(m.cfg.Base<<shift, m.cfg.Max)
	}
	half := backoff / 2
	jitter := time.Duration(m.cfg.Rand() * float64(half))
	if e.RetryAfter > 0 { // never before the provider said, and not everybody at once
		return e.RetryAfter + min(jitter, e.RetryAfter/4), true
	}
	return half + jitter, true
}
