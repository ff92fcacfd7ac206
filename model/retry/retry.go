// Package retry is a memgpt.Model that asks another one again when a failure may pass: the provider is overloaded or
// unreachable, too many requests were made, no answer came in time, or the answer was empty. A Breaker spares a provider
// that is down, and Fallbacks answer in its place.
//
// It knows no protocol and cuts no request down: refusals (a bad request, a wrong key, no credit, a request over the
// window) are returned at once. It never asks again once pieces of a reply were passed on, since the caller has them: the
// error says so (memgpt.Error.Started), and the caller takes back what it showed.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"memgpt"
)

// Defaults of Config: five tries and two minutes ride out a busy minute of a provider without keeping a person waiting
// for ever; the rest is the usual exponential backoff with full jitter above the half. The budget of tokens lets a request
// of 256 Ki tokens have all its tries, and one of a million a single further one.
const (
	DefaultTries       = 5
	DefaultTotal       = 2 * time.Minute
	DefaultBase        = 500 * time.Millisecond
	DefaultMax         = 30 * time.Second
	DefaultTokenBudget = 1 << 20
)

// emptyTries is how often an empty answer is asked for: it is mostly a slip of the model, and the kernel has its own way
// with a model that stays silent.
const emptyTries = 2

// Where another model could answer, one that fails is tried this often, and waited for no longer than that.
const (
	hurriedTries = 2
	hurriedWait  = 5 * time.Second
)

// Config describes a retrying model.
type Config struct {
	Model memgpt.Model
	Tries int           // calls of one model in all; 0 is DefaultTries
	Total time.Duration // no try begins later than that after the first, but for the first of a fallback; 0 is DefaultTotal
	Base  time.Duration // wait after the first failure, doubled by each; 0 is DefaultBase
	Max   time.Duration // longest wait that the provider did not ask for; 0 is DefaultMax

	// TokenBudget bounds what asking again may cost: the sum of the input tokens that are sent again for one request. What
	// follows a rate limit costs nothing, since the provider refused it unread. 0 is DefaultTokenBudget.
	TokenBudget int
	Count       func(*memgpt.Request) int // input tokens of a request as the caller counts; nil is a third of its bytes

	Breaker   *Breaker   // of the model's provider, shared by all models at it; nil is none
	Fallbacks []Fallback // asked in turn where those before are down, silent, over their limits or out of credit

	Now   func() time.Time                                                   // nil is time.Now
	Sleep func(ctx context.Context, d time.Duration) error                   // nil waits; it ends early with the context's error
	Rand  func() float64                                                     // in [0, 1); nil draws at random
	Retry func(ctx context.Context, err error, wait time.Duration)           // told before each wait; nil is nobody
	Fell  func(ctx context.Context, from, to memgpt.Capabilities, err error) // told before a fallback is asked, and why; nil is nobody
}

// Fallback is a model that answers when others can't. A request's Model is not passed on to it: that names a model of the
// first one's provider.
type Fallback struct {
	Model   memgpt.Model
	Breaker *Breaker // of its provider; nil is none
}

// Model is a memgpt.Model that retries. It is safe for concurrent use if its parts are.
type Model struct {
	cfg   Config
	chain []Fallback // the model itself, and then its fallbacks
}

// New returns a retrying model. It needs a model, also in each fallback (CodeInvalid).
func New(cfg Config) (*Model, error) {
	chain := append([]Fallback{{cfg.Model, cfg.Breaker}}, cfg.Fallbacks...)
	for i, l := range chain {
		switch {
		case l.Model == nil && i == 0:
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "retry: no model is given")
		case l.Model == nil:
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "retry: fallback %d has no model", i)
		}
	}
	if cfg.Tries <= 0 {
		cfg.Tries = DefaultTries
	}
	if cfg.TokenBudget <= 0 {
		cfg.TokenBudget = DefaultTokenBudget
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
	if cfg.Count == nil {
		cfg.Count = estimate
	}
	return &Model{cfg, chain}, nil
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

// Capabilities implements memgpt.Model: they are those of the model beneath. With fallbacks they are what all can do, and
// the smallest window and reply, so that a request that fits fits whoever answers it.
func (m *Model) Capabilities() memgpt.Capabilities {
	c := m.cfg.Model.Capabilities()
	for _, f := range m.cfg.Fallbacks {
		o := f.Model.Capabilities()
		c.Window, c.MaxOutput = smaller(c.Window, o.Window), smaller(c.MaxOutput, o.MaxOutput)
		c.Tools, c.Parallel, c.Forced = c.Tools && o.Tools, c.Parallel && o.Parallel, c.Forced && o.Forced
		c.Images, c.Reasoning = c.Images && o.Images, c.Reasoning && o.Reasoning
	}
	return c
}

// smaller returns the smaller of two sizes of which 0 is unknown.
func smaller(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Generate implements memgpt.Model. When it gives up it returns the last failure as it is, with its RetryAfter; where
// fallbacks failed too, the first model's with the words of the others.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	c := &call{m: m, req: req, end: m.cfg.Now().Add(m.cfg.Total)}
	if stream != nil {
		c.pass = func(d memgpt.Delta) { c.passed = true; stream(d) }
	}
	resp, err := c.askAll(ctx)
	return resp, c.told(err)
}

// call is one request on its way through tries and models.
type call struct {
	m      *Model
	req    *memgpt.Request
	pass   func(memgpt.Delta)
	passed bool // pieces were passed on
	end    time.Time
	spent  int // input tokens that were sent again
	size   int // of the request; 0 until it is asked for
}

// ask asks one model until it answers, or fails for good. next says that another one could answer.
func (c *call) ask(ctx context.Context, l *Fallback, req *memgpt.Request, next bool) (*memgpt.Response, error) {
	for try := 1; ; try++ {
		pass, err := l.Breaker.begin(l.Model)
		if err != nil {
			return nil, err
		}
		resp, err := l.Model.Generate(ctx, req, c.pass)
		l.Breaker.end(ctx, pass, err)
		if err == nil || c.passed || ctx.Err() != nil {
			return resp, err
		}
		wait, ok := c.m.wait(err, try, next)
		if !ok || c.m.cfg.Now().Add(wait).After(c.end) || !c.affords(req, resp, err) {
			return resp, c.whenAgain(err)
		}
		if c.m.cfg.Retry != nil {
			c.m.cfg.Retry(ctx, err, wait)
		}
		if err := c.m.cfg.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// whenAgain adds to a failure how long the provider asked to be left alone, where that is longer than is waited for.
func (c *call) whenAgain(err error) error {
	e, ok := err.(*memgpt.Error)
	if !ok || !c.m.cfg.Now().Add(e.RetryAfter).After(c.end) {
		return err
	}
	own := *e
	own.Text = e.Error() + "; it asks to be left alone for " + e.RetryAfter.Round(time.Second).String()
	return &own
}

// affords takes what sending the request again costs from the budget, and reports whether that is enough.
func (c *call) affords(req *memgpt.Request, failed *memgpt.Response, err error) bool {
	if memgpt.CodeOf(err) == memgpt.CodeModelLimit {
		return true
	}
	size := c.sizeOf(req)
	if failed != nil && failed.Usage.Input > 0 {
		size = failed.Usage.Input
	}
	if c.spent+size > c.m.cfg.TokenBudget {
		return false
	}
	c.spent += size
	return true
}

// sizeOf returns the request's size in tokens. The request lets go of its messages again while it waits.
func (c *call) sizeOf(req *memgpt.Request) int {
	if c.size == 0 {
		req.Restore()
		c.size = max(c.m.cfg.Count(req), 1)
		req.Release()
	}
	return c.size
}

// told returns an error with the truth about what was passed on: the model beneath only knows what came.
func (c *call) told(err error) error {
	if e, ok := err.(*memgpt.Error); ok && e.Started != c.passed {
		own := *e
		own.Started = c.passed
		return &own
	}
	return err
}

// wait returns how long to wait after a failed try, or false where it is not tried again.
func (m *Model) wait(err error, try int, next bool) (time.Duration, bool) {
	var e *memgpt.Error
	if !errors.As(err, &e) || try >= m.cfg.Tries || next && try >= hurriedTries {
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
	wait := half + jitter
	if e.RetryAfter > 0 { // never before the provider said, and not everybody at once
		wait = e.RetryAfter + min(jitter, e.RetryAfter/4)
	}
	return wait, !next || wait <= hurriedWait
}

// bytesPerToken is on the safe side for English (about four) and right for Chinese.
const bytesPerToken = 3

// imageTokens is what a picture is taken for: that of a tall one in high detail by OpenAI's guide to vision.
const imageTokens = 1105

// estimate returns about how many tokens a request has.
func estimate(req *memgpt.Request) int {
	bytes, images := 0, 0
	for _, t := range req.Tools {
		bytes += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case memgpt.Text:
				bytes += len(p.Text)
			case memgpt.Reasoning:
				bytes += max(len(p.Text), len(p.Data))
			case memgpt.Call:
				bytes += len(p.Name) + len(p.Arguments)
			case memgpt.Result:
				bytes += len(p.Text)
			case memgpt.File:
				bytes += len(p.Data)
			case memgpt.Image:
				images++
			}
		}
	}
	return bytes/bytesPerToken + images*imageTokens
}
