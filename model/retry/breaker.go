package retry

import (
	"context"
	"errors"
	"sync"
	"time"

	"memgpt"
)

// Defaults of BreakerConfig: as many failures in a row as one request has tries, and the time that a server takes to
// start again.
const (
	DefaultAfter = 5
	DefaultOpen  = 30 * time.Second
)

// BreakerConfig describes a Breaker. The zero value is usable.
type BreakerConfig struct {
	Name  string           // of the provider, as a person knows it; "" is the model's name
	After int              // failures in a row after which the provider is left alone; 0 is DefaultAfter
	Open  time.Duration    // how long, unless the provider asks for longer; 0 is DefaultOpen
	Now   func() time.Time // nil is time.Now
}

// BreakerState is what a Breaker does with calls.
type BreakerState string

// States of a Breaker.
const (
	BreakerClosed   BreakerState = "closed"    // calls go through
	BreakerOpen     BreakerState = "open"      // calls fail at once
	BreakerHalfOpen BreakerState = "half_open" // the next call goes through as a probe; beside it others fail at once
)

// Breaker keeps calls from a provider that is down: after some failures in a row (it can't be reached, or doesn't answer in
// time) calls fail at once, until its time is over and a single probe has been answered. Any answer shows that the provider
// lives, a refusal too. Models of one provider share one. A nil Breaker lets all through. It is safe for concurrent use.
type Breaker struct {
	cfg BreakerConfig

	mu      sync.Mutex
	failed  int       // in a row
	until   time.Time // of the time in which nobody asks; zero while closed
	probing bool
	last    string // the newest failure
}

// NewBreaker returns a closed Breaker.
func NewBreaker(cfg BreakerConfig) *Breaker {
	if cfg.After <= 0 {
		cfg.After = DefaultAfter
	}
	if cfg.Open <= 0 {
		cfg.Open = DefaultOpen
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Breaker{cfg: cfg}
}

// State returns what the Breaker does now, and until when it is open.
func (b *Breaker) State() (BreakerState, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.until.IsZero():
		return BreakerClosed, time.Time{}
	case b.probing || !b.cfg.Now().Before(b.until):
		return BreakerHalfOpen, time.Time{}
	}
	return BreakerOpen, b.until
}

// admission is how a call was let through.
type admission int

const (
	asUsual admission = iota
	asProbe
)

// begin lets a call through, or says until when there is none.
func (b *Breaker) begin(m memgpt.Model) (admission, error) {
	if b == nil {
		return asUsual, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return asUsual, nil
	}
	name := b.cfg.Name
	if name == "" {
		name = m.Capabilities().Name
	}
	now := b.cfg.Now()
	switch {
	case b.probing:
		return asUsual, memgpt.Errorf(memgpt.CodeModelDown, "%s is not asked: it failed %d times in a row, and one call finds out"+
			" whether it is back; try again when that has ended. The last failure: %s", name, b.failed, b.last)
	case now.Before(b.until):
		e := memgpt.Errorf(memgpt.CodeModelDown, "%s is not asked until %s: it failed %d times in a row; try again then."+
			" The last failure: %s", name, b.until.Format(time.RFC3339), b.failed, b.last)
		e.RetryAfter = b.until.Sub(now)
		return asUsual, e
	}
	b.probing = true
	return asProbe, nil
}

// end takes in how a call ended. One that its caller gave up says nothing.
func (b *Breaker) end(ctx context.Context, as admission, err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if as == asProbe {
		b.probing = false
	} else if !b.until.IsZero() {
		return // it began before the breaker opened, and the probe decides
	}
	code := memgpt.CodeOf(err)
	switch {
	case err != nil && ctx.Err() != nil:
	case code == memgpt.CodeModelDown || code == memgpt.CodeModelTimeout:
		b.fail(err, as == asProbe)
	default:
		b.failed, b.until, b.last = 0, time.Time{}, ""
	}
}

// fail counts a failure. That of a probe opens again at once.
func (b *Breaker) fail(err error, probe bool) {
	b.failed++
	b.last = memgpt.CutText(err.Error(), 300)
	if !probe && b.failed < b.cfg.After {
		return
	}
	open := b.cfg.Open
	var e *memgpt.Error
	if errors.As(err, &e) {
		open = max(open, e.RetryAfter)
	}
	b.until = b.cfg.Now().Add(open)
}
