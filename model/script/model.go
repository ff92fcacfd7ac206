package script

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"memgpt"
)

// Config describes a scripted model.
type Config struct {
	Replies []Reply // given in order, to whoever asks
	// Func answers what the list doesn't: n counts the calls from 0, those answered from the list too. The request is only
	// lent. Nil: a call beyond the list fails with CodeModelRequest and is remembered (Err).
	Func func(n int, req *memgpt.Request) Reply
	// Summary answers requests with PurposeSummary, so that they take nothing from the list. Nil: they are like others.
	// At a Server they are those without tools.
	Summary func(req *memgpt.Request) Reply
	// Capabilities are what Capabilities returns; zero: named "script", everything possible, window unknown.
	Capabilities memgpt.Capabilities
	CountOnly    bool // keep no requests, only their number
	Piece        int  // bytes of a piece of a stream at most; 0 is 16
	// NewID names calls that have no ID; n counts them from 1. Nil is "call_1" and so on. It is called under a lock.
	NewID func(n int) string
}

// Model is a scripted memgpt.Model. It is safe for concurrent use.
type Model struct {
	cfg Config

	mu       sync.Mutex
	calls    int // requests so far
	taken    int // replies of the list so far
	ids      int
	requests []*memgpt.Request
	err      error
}

// New returns a scripted model.
func New(cfg Config) *Model {
	if cfg.Capabilities == (memgpt.Capabilities{}) {
		cfg.Capabilities = memgpt.Capabilities{Name: "script", Tools: true, Parallel: true, Forced: true, Images: true, Reasoning: true}
	}
	if cfg.Piece <= 0 {
		cfg.Piece = 16
	}
	if cfg.NewID == nil {
		cfg.NewID = func(n int) string { return fmt.Sprintf("call_%d", n) }
	}
	return &Model{cfg: cfg}
}

// Of returns a model with a list of replies.
func Of(replies ...Reply) *Model { return New(Config{Replies: replies}) }

// Capabilities implements memgpt.Model.
func (m *Model) Capabilities() memgpt.Capabilities { return m.cfg.Capabilities }

// Generate implements memgpt.Model.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	req.Restore()
	r := m.next(req)
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	if r.Wire != nil {
		return nil, memgpt.Errorf(memgpt.CodeModelDown, "script: a reply that only a server can give: status %d", r.Wire.Status)
	}
	if stream == nil {
		stream = func(memgpt.Delta) {}
	}
	ds := deltas(r.Parts, m.cfg.Piece)
	if r.Err != nil {
		ds = ds[:min(r.Pieces, len(ds))]
	}
	for _, d := range ds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		stream(d)
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return &memgpt.Response{
		Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: r.Parts},
		Finish:  r.Finish, Usage: r.Usage, Model: m.cfg.Capabilities.Name,
	}, nil
}

// wait holds a call as the reply says.
func (r *Reply) wait(ctx context.Context) error {
	if r.Gate != nil {
		select {
		case r.Gate.entered <- struct{}{}:
		default:
		}
		select {
		case <-r.Gate.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if r.Delay <= 0 {
		return nil
	}
	timer := time.NewTimer(r.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// next records a request and finds its reply.
func (m *Model) next(req *memgpt.Request) Reply {
	m.mu.Lock()
	n := m.calls
	m.calls++
	if !m.cfg.CountOnly {
		m.requests = append(m.requests, Clone(req))
	}
	r, answer := m.choose(n, req)
	m.mu.Unlock()
	if answer != nil { // outside of the lock, since it may wait
		r = answer()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.complete(&r)
	return r
}

// choose takes a reply from the list, or returns the function that makes one.
func (m *Model) choose(n int, req *memgpt.Request) (Reply, func() Reply) {
	switch {
	case req.Purpose == memgpt.PurposeSummary && m.cfg.Summary != nil:
		return Reply{}, func() Reply { return m.cfg.Summary(req) }
	case m.taken < len(m.cfg.Replies):
		m.taken++
		return m.cfg.Replies[m.taken-1], nil
	case m.cfg.Func != nil:
		return Reply{}, func() Reply { return m.cfg.Func(n, req) }
	}
	err := memgpt.Errorf(memgpt.CodeModelRequest, "script: call %d, and the script has %d replies; it was asked (purpose %q): %s",
		n+1, len(m.cfg.Replies), req.Purpose, lastOf(req))
	if m.err == nil {
		m.err = err
	}
	return Reply{Err: err}, nil
}

func lastOf(req *memgpt.Request) string {
	if len(req.Messages) == 0 {
		return "nothing"
	}
	last := req.Messages[len(req.Messages)-1]
	text := last.Said()
	if short := memgpt.CutText(text, 300); short != text {
		text = short + "…"
	}
	return string(last.Role) + ": " + text
}

// complete gives a reply what its author left out. Parts are copied, since replies may be given to many.
func (m *Model) complete(r *Reply) {
	r.Parts = cloneParts(r.Parts)
	calls := false
	for i, p := range r.Parts {
		if c, ok := p.(memgpt.Call); ok {
			calls = true
			if c.ID == "" {
				m.ids++
				c.ID = m.cfg.NewID(m.ids)
				r.Parts[i] = c
			}
		}
	}
	if r.Finish == "" {
		r.Finish = memgpt.FinishStop
		if calls {
			r.Finish = memgpt.FinishCalls
		}
	}
}

// Requests returns copies of the requests so far, in the order in which they came; nil with CountOnly.
func (m *Model) Requests() []*memgpt.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Last returns a copy of the newest request, nil when there is none.
func (m *Model) Last() *memgpt.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		return nil
	}
	return m.requests[len(m.requests)-1]
}

// Count returns the number of requests so far.
func (m *Model) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// Left returns how many replies of the list were not given.
func (m *Model) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.cfg.Replies) - m.taken
}

// Add appends replies to the list.
func (m *Model) Add(replies ...Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cfg.Replies = append(slices.Clip(m.cfg.Replies), replies...)
}

// Err returns the error of the first call that the script had no reply for; nil when there was none.
func (m *Model) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Reporter is what Done needs of a *testing.T.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Done reports a script that ran out, or of which replies are left.
func (m *Model) Done(t Reporter) {
	t.Helper()
	if err := m.Err(); err != nil {
		t.Errorf("%v", err)
	}
	if n := m.Left(); n > 0 {
		t.Errorf("script: %d of %d replies were not asked for", n, len(m.cfg.Replies))
	}
}
