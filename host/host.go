// Package host decides who runs what: it takes events into the durable inbox, holds leases on conversations, runs one
// event of a conversation at a time through a kernel, wakes timers, hands the updates of turns to whoever watches, and
// cancels. Several hosts, in one process or many, share one store and never run a conversation twice at once.
//
// It owns no step of a turn (the kernel's), no storage and no wire protocol.
package host

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
)

// Runner runs one event to the end of its turn. It returns nil when the turn ended in any way and that was committed; the
// last commit consumes the event and ends the lease unless Work.More says that another event waits, which is asked once,
// while that commit is made. It returns an error where it could not commit; then the event stays pending.
//
// A context that ended with a cause of code memgpt.CodeCancelled or memgpt.CodeReplaced asks for a turn that is committed as
// cancelled; with any other cause, for the return of an error at the next clean point.
type Runner interface {
	Run(ctx context.Context, w *store.Work) error
}

// Causes with which the context of a running turn ends.
var (
	ErrCancelled = memgpt.Errorf(memgpt.CodeCancelled, "the turn was cancelled")
	ErrStopping  = memgpt.Errorf(memgpt.CodeClosed, "the host is closing; the turn goes on at the next start")
)

// Defaults of Config.
const (
	defaultTTL     = 30 * time.Second       // longer than the pauses of a loaded machine, short enough to wait out after a crash
	defaultPoll    = 250 * time.Millisecond // a person doesn't feel it
	defaultCached  = 256
	defaultBuffer  = 1024
	defaultRetries = 5
)

// Config wires a Host. Store, Kernel and NewID must be set.
type Config struct {
	Store  store.Store
	Kernel Runner
	Now    func() time.Time         // nil is time.Now
	NewID  func(kind string) string // safe for concurrent use

	LeaseTTL   time.Duration // how long a lease lasts without renewal; 0 is 30 s
	Poll       time.Duration // how often other processes' changes are looked for; 0 is 250 ms, negative is never
	MaxRunning int           // conversations that run at once; 0 is no bound
	Cached     int           // idle conversations whose state is kept in memory; 0 is 256, negative is none
	Buffer     int           // updates by which a reader may lag before it is cut off; 0 is 1,024
	CutAfter   time.Duration // age at which a model's call is cut off for an event that its turn is to take in; 0 is 30 s, negative is never
	Retries    int           // attempts after a failure of the store before a turn is given up for now; 0 is 5
	// Told receives the updates of all turns that this host runs or watches, with the ID of their conversation; must not
	// block; nil drops them.
	Told   func(tenant, thread string, u memgpt.Update)
	Hooks  Poster      // tells hooks what agents say unasked; nil leaves it in the outbox
	Report func(error) // receives failures that no caller waits for; must not block; nil drops them
}

// Host runs conversations. It is safe for concurrent use.
type Host struct {
	cfg Config

	mu        sync.Mutex // guards everything below and the fields of conversations
	convs     map[convKey]*conversation
	turns     map[string]*Turn // unfinished ones that this host runs or watches, by ID
	elsewhere map[string]*Turn // those of turns that may end in another process
	parked    map[*conversation]struct{}
	ready     []*conversation // wait for a place among MaxRunning
	running   int
	idle      *list.List // conversations with a cached state, the newest first
	watchers  map[convKey]map[*reader]struct{}
	started   bool // other processes' and earlier events are run too
	clocked   bool // the clock's goroutine runs
	closing   bool

	stop chan struct{} // closed by Close
	kick chan struct{} // wakes the clock
	mail chan struct{} // wakes the courier
	work sync.WaitGroup
}

// New returns a Host. It runs what it is asked to run; Start lets it look for more.
func New(cfg Config) (*Host, error) {
	if cfg.Store == nil || cfg.Kernel == nil || cfg.NewID == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "configure a host: Store, Kernel and NewID must be set")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
	cfg.LeaseTTL = orDefault(cfg.LeaseTTL, defaultTTL)
	cfg.Poll = orDefault(cfg.Poll, defaultPoll)
	cfg.Cached = orDefault(cfg.Cached, defaultCached)
	cfg.CutAfter = orDefault(cfg.CutAfter, defaultCutAfter)
	cfg.Buffer = orDefault(cfg.Buffer, defaultBuffer)
	cfg.Retries = orDefault(cfg.Retries, defaultRetries)
	return &Host{
		cfg:       cfg,
		convs:     map[convKey]*conversation{},
		turns:     map[string]*Turn{},
		elsewhere: map[string]*Turn{},
		parked:    map[*conversation]struct{}{},
		watchers:  map[convKey]map[*reader]struct{}{},
		idle:      list.New(),
		stop:      make(chan struct{}),
		kick:      make(chan struct{}, 1),
		mail:      make(chan struct{}, 1),
	}, nil
}

func orDefault[T comparable](value, normal T) T {
	var zero T
	if value == zero {
		return normal
	}
	return value
}

// Start lets the host run whatever is due in the store: what a dead process left, timers, and other processes' events.
func (h *Host) Start(ctx context.Context) error {
	if _, err := h.cfg.Store.Change(ctx); err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "start the host: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return errClosed("start the host")
	}
	if !h.started {
		h.startCourier()
	}
	h.started = true
	h.startClock()
	h.kickClock()
	return nil
}

// Busy reports whether any conversation runs.
func (h *Host) Busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running > 0
}

// Close takes nothing more in, asks running turns to end at their next clean point and waits for them. Turns that did
// not end stay in the inbox; who waits for them is told ErrStopping. When ctx ends first, its error is returned and the
// rest goes on ending. The store is not closed.
func (h *Host) Close(ctx context.Context) error {
	h.beginClose()
	done := make(chan struct{})
	go func() { // ends when the last goroutine of the host does
		h.work.Wait()
		h.finishAll()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return memgpt.Errorf(memgpt.CodeBusy, "close the host: turns are still running: %w", context.Cause(ctx))
	}
}

func (h *Host) beginClose() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return
	}
	h.closing = true
	close(h.stop)
	for _, c := range h.convs {
		h.failJobs(c, errClosed("wait for the conversation"))
		if c.stop != nil {
			c.stop(ErrStopping)
		}
	}
}

// finishAll tells whoever still waits that the host is gone.
func (h *Host) finishAll() {
	h.mu.Lock()
	turns := make([]*Turn, 0, len(h.turns))
	for _, t := range h.turns {
		turns = append(turns, t)
	}
	for _, readers := range h.watchers {
		for r := range readers {
			r.end()
		}
	}
	h.mu.Unlock()
	for _, t := range turns {
		h.finish(t, memgpt.Turn{}, ErrStopping)
	}
}

func errClosed(attempt string) error {
	return memgpt.Errorf(memgpt.CodeClosed, "%s: the host is closed", attempt)
}

// report reports something that no caller waits for. The end of a context is no failure.
func (h *Host) report(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		h.cfg.Report(err)
	}
}
