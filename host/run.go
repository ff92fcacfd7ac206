package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

// givenUp is how long a conversation rests after the store failed too often.
const givenUp = time.Minute

// runEvent runs the next event of a conversation, if there is one.
func (h *Host) runEvent(ctx context.Context, c *conversation) {
	if c.tidies() {
		if waits, err := h.waitsForUser(ctx, c); waits || err != nil {
			h.trouble(ctx, c, nil, err)
			return
		}
	}
	held, err := h.hold(ctx, c)
	if err == nil && !held {
		h.refused(c)
		return
	}
	var event fresh
	found := false
	if err == nil {
		event, found, err = h.pick(ctx, c)
	}
	if err == nil && !found {
		c.fails = 0
		return
	}
	var w *store.Work
	if err == nil {
		w, err = h.prepare(ctx, c, event)
	}
	if err == nil {
		w, event, err = h.resume(ctx, c, w, event)
	}
	if w == nil || err != nil {
		h.trouble(ctx, c, nil, err)
		return
	}
	if later, err := h.beat(ctx, c, w); later || err != nil {
		h.keepState(c, w, err)
		h.trouble(ctx, c, nil, err)
		return
	}
	if t := h.adopt(c, event); t != nil {
		h.trouble(ctx, c, t, h.runTurn(ctx, c, t, w))
	}
}

// refused puts a conversation off that another process runs.
func (h *Host) refused(c *conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.wanted = true
	c.state = nil
	h.watchElsewhere(c)
	h.park(c, h.retryTime(c))
}

// watchElsewhere looks out for the end of the conversation's turns in other processes. Callers hold h.mu.
func (h *Host) watchElsewhere(c *conversation) {
	if c.handles == 0 {
		return
	}
	for id, t := range h.turns {
		if t.conv == c {
			h.elsewhere[id] = t
		}
	}
	h.startClock()
	h.kickClock()
}

// pick reads which event is to be handled next, and notes whether another follows.
func (h *Host) pick(ctx context.Context, c *conversation) (fresh, bool, error) {
	h.mu.Lock()
	withdrawn, known, alone, goesOn := len(c.withdrawn), c.fresh, c.accepted < 2, c.goesOn
	c.fresh, c.accepted, c.goesOn = nil, 0, false
	h.mu.Unlock()
	if known != nil && withdrawn == 0 && alone && !goesOn {
		return *known, true, nil
	}
	q := store.EventRange{Tenant: c.tenant, Thread: c.thread, Until: h.cfg.Now(), Limit: 2 + withdrawn}
	if goesOn {
		q.Until = time.Time{} // its event comes first of all
	}
	events, err := h.cfg.Store.Events(ctx, q)
	if err != nil {
		return fresh{}, false, memgpt.Errorf(memgpt.CodeOf(err), "read the inbox: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var first *memgpt.Event
	replaced := false
	for i, e := range events {
		switch {
		case c.withdrawn[e.Turn]:
		case first == nil:
			first = &events[i]
		default:
			c.wanted = true
			replaced = replaced || store.DeliveryOf(&events[i]) == memgpt.DeliverReplace
		}
	}
	if first == nil {
		return fresh{}, false, nil
	}
	return fresh{event: *first, replaced: replaced}, true, nil
}

// prepare brings the conversation's state up to date and makes the work of one event.
func (h *Host) prepare(ctx context.Context, c *conversation, f fresh) (*store.Work, error) {
	event := f.event
	st, err := h.load(ctx, c, f.shared)
	if err != nil {
		return nil, memgpt.Errorf(memgpt.CodeOf(err), "load the conversation: %w", err)
	}
	turn := memgpt.Turn{ID: event.Turn, Tenant: event.Tenant, Agent: event.Agent, Thread: event.Thread, Event: event.ID,
		Type: event.Type, State: memgpt.TurnRunning, Started: h.cfg.Now()}
	if event.Begun || event.Step > 0 {
		before, err := h.cfg.Store.Turn(ctx, event.Tenant, event.Turn)
		switch {
		case err == nil:
			turn = before
		case memgpt.CodeOf(err) != memgpt.CodeNotFound:
			return nil, memgpt.Errorf(memgpt.CodeOf(err), "load the turn: %w", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.lease == nil {
		return nil, memgpt.Errorf(memgpt.CodeLeaseLost, "prepare a turn: the lease is gone")
	}
	return &store.Work{State: st, Event: event, Turn: turn, Lease: *c.lease, TTL: h.cfg.LeaseTTL}, nil
}

// load returns the state: the cached one where the thread is still what it was, with agent and blocks read anew unless
// shared tells that they are what they were.
func (h *Host) load(ctx context.Context, c *conversation, shared int64) (*store.State, error) {
	st, same := c.state, shared != 0 && shared == c.shared
	c.state, c.shared = nil, shared
	h.mu.Lock()
	version := c.version
	h.mu.Unlock()
	if st == nil || version != 0 && st.Thread.Version < version {
		return store.Load(ctx, h.cfg.Store, c.tenant, c.thread)
	}
	if same {
		return st, nil
	}
	return st, store.Refresh(ctx, h.cfg.Store, st)
}

// adopt makes an event the one being run. It returns nil where its turn was withdrawn meanwhile.
func (h *Host) adopt(c *conversation, f fresh) *Turn {
	event := f.event
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.withdrawn[event.Turn] {
		c.wanted = true
		return nil
	}
	t := h.turns[event.Turn]
	if t == nil {
		t = newTurn(c, event.Turn, event.ID, h.cfg.Buffer)
		h.enlist(t)
	}
	delete(h.elsewhere, t.ID)
	t.due, t.waits = time.Time{}, false
	c.current, c.arrivals, t.replaced = t, arrivals{}, f.replaced
	return t
}

// runTurn lets the kernel run one event, under a lease that is kept alive, and takes in what came of it.
func (h *Host) runTurn(ctx context.Context, c *conversation, t *Turn, w *store.Work) error {
	h.emit(t, memgpt.TurnStarted{Turn: w.Turn})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k := h.keepAlive(ctx, w.Lease, cancel, func(due int) { h.peek(ctx, c, due) })
	w.Emit, w.Ends = func(u memgpt.Update) { h.told(t, k, u) }, k.ends
	w.More = func() bool { return h.more(c, k) }
	h.steering(c, w)
	agent := w.State.Agent
	w.Wake, w.Sent = h.wakeClock, h.wakeMail
	h.allowCancel(c, t, cancel)
	if c.tidies() {
		h.watchUsers()
	}
	err := h.guard(func() error { return h.cfg.Kernel.Run(ctx, w) })
	if err == nil {
		err = unended(ctx, w.Turn)
	}
	h.settleLease(c, w, k, err)
	if crash := (*panicError)(nil); errors.As(err, &crash) {
		err = h.bury(ctx, c, w, crash)
	} else {
		h.keepState(c, w, err)
	}
	h.mu.Lock()
	c.current, c.cancel = nil, nil
	h.mu.Unlock()
	waits := w.Turn.State == memgpt.TurnWaiting
	if waits { // also where what followed its commit failed
		h.paused(c, t, w.Event)
	}
	if err == nil && !waits {
		h.finish(t, w.Turn, nil)
		h.afterTurn(ctx, c, &agent)
	} else if lost := context.Cause(ctx); err != nil && lost != nil && memgpt.CodeOf(lost) == memgpt.CodeLeaseLost {
		err = lost
	}
	return err
}

// allowCancel makes a turn cancellable; one that was cancelled before it began, or in an earlier attempt, is at once.
func (h *Host) allowCancel(c *conversation, t *Turn, cancel context.CancelCauseFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.cancel = cancel
	switch {
	case t.cancelled:
		cancel(ErrCancelled)
	case c.aside:
		cancel(errAside)
	case t.replaced:
		cancel(ErrReplaced)
	}
}

// more answers Work.More: whether the turn's last commit shall keep the lease. Where not, no renewal follows it.
func (h *Host) more(c *conversation, k *keeper) bool {
	h.mu.Lock()
	more := !h.closing && len(h.ready) == 0 && (c.wanted || c.sending > 0 || len(c.jobs) > 0)
	c.releasing = !more
	h.mu.Unlock()
	if !more {
		k.skip()
	}
	return more
}

// settleLease notes what became of the lease in a turn.
func (h *Host) settleLease(c *conversation, w *store.Work, k *keeper, err error) {
	lease := k.rest()
	if w.Lease.Number == lease.Number && w.Lease.Until.After(lease.Until) {
		lease.Until = w.Lease.Until
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.lease != nil && c.lease.Number == lease.Number {
		c.lease = &lease
		if err == nil && c.releasing {
			c.lease = nil
		}
	}
	c.releasing = false
}

// keepState keeps the state for the next turn, or drops it where it may not be what is stored.
func (h *Host) keepState(c *conversation, w *store.Work, err error) {
	c.state = nil
	if err == nil {
		c.state = w.State
	}
}

// unended returns an error for a kernel that returned nil without having ended the turn.
func unended(ctx context.Context, t memgpt.Turn) error {
	switch t.State {
	case memgpt.TurnDone, memgpt.TurnFailed, memgpt.TurnCancelled, memgpt.TurnWithdrawn, memgpt.TurnWaiting:
		if t.Stop != memgpt.StopInterrupted {
			return nil
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return memgpt.Errorf(memgpt.CodeInvalid, "run turn %s: the kernel left it in state %q", t.ID, t.State)
}

// panicError is a panic of the kernel or of a tool.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// guard makes a panic an error.
func (h *Host) guard(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value}
		}
	}()
	return do()
}

// told hands on what the kernel emits. The end of a turn frees whoever waits for it, though the kernel may still fold
// messages under a lease that it kept; where it gave the lease back, renewals end.
func (h *Host) told(t *Turn, k *keeper, u memgpt.Update) {
	end, ok := u.(memgpt.TurnEnded)
	if !ok {
		h.emit(t, u)
		if in, ok := u.(memgpt.TookIn); ok {
			h.tookIn(in.Turn)
		}
		return
	}
	h.mu.Lock()
	released := t.conv.releasing
	h.mu.Unlock()
	if released {
		k.rest()
	}
	h.finish(t, end.Turn, nil)
}

// bury commits a turn as failed whose kernel panicked. The event's message goes into the log if it isn't there yet, since
// nothing that was accepted may get lost.
func (h *Host) bury(ctx context.Context, c *conversation, w *store.Work, crash *panicError) error {
	ctx = context.WithoutCancel(ctx)
	h.report(fmt.Errorf("run turn %s: %w", w.Turn.ID, crash))
	event, err := h.pending(ctx, c, w.Event.ID)
	if err != nil {
		return err
	}
	st, err := store.Load(ctx, h.cfg.Store, c.tenant, c.thread)
	if err != nil {
		return err
	}
	now := h.cfg.Now()
	turn := w.Turn
	turn.State, turn.Stop, turn.Error, turn.Ended = memgpt.TurnFailed, StopPanic, crash.Error(), now
	lease := w.Lease
	lease.Until = now.Add(h.cfg.LeaseTTL)
	commit := &store.Commit{Now: now, Lease: &lease, Consume: []string{event.ID}, Turns: []memgpt.Turn{turn}}
	if commit.Events, err = h.unanswered(ctx, &event, "(It could not go on: "+memgpt.CutText(crash.Error(), 300)+")"); err != nil {
		return err
	}
	if !takenIn(st, event) {
		entry := memgpt.Entry{ID: h.cfg.NewID("message"), Tenant: c.tenant, Agent: event.Agent, Thread: c.thread,
			Seq: st.Thread.Next, Turn: turn.ID, Time: event.Created, Message: event.Message}
		thread := st.Thread
		thread.Next++
		if event.Type == memgpt.EventUser {
			thread.Asked = entry.Seq
		}
		commit.Entries, commit.Threads = []memgpt.Entry{entry}, []memgpt.Thread{thread}
	}
	if _, err := h.cfg.Store.Commit(ctx, commit); err != nil {
		return err
	}
	h.wakeMail(commit.Events)
	w.Turn = turn
	return nil
}

// takenIn reports whether the log holds an event's message.
func takenIn(st *store.State, event memgpt.Event) bool {
	own := func(e memgpt.Entry) bool { return e.Turn == event.Turn }
	return event.Step > 0 || slices.ContainsFunc(st.Queue, own) || st.Asked != nil && own(*st.Asked)
}

// StopPanic is why a turn ended whose kernel or tool panicked.
const StopPanic memgpt.StopReason = "panic"

// pending returns a pending event of the conversation.
func (h *Host) pending(ctx context.Context, c *conversation, id string) (memgpt.Event, error) {
	events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: c.tenant, Thread: c.thread})
	if err != nil {
		return memgpt.Event{}, err
	}
	for _, e := range events {
		if e.ID == id {
			return e, nil
		}
	}
	return memgpt.Event{}, memgpt.Errorf(memgpt.CodeNotFound, "find event %s in the inbox", id)
}

// trouble decides what follows an attempt: nothing after success; else another try at once (a conflict), after a while
// (the store failed) or much later, or watching another process.
func (h *Host) trouble(ctx context.Context, c *conversation, t *Turn, err error) {
	if err == nil {
		c.fails = 0
		return
	}
	if t != nil {
		if gone, ok := t.discard("the attempt failed: " + err.Error()); ok {
			h.emit(t, gone)
		}
	}
	code := memgpt.CodeOf(err)
	switch {
	case code == memgpt.CodeLeaseLost:
		h.loseLease(c, h.leaseOf(c))
		h.refused(c)
		return
	case ctx.Err() != nil:
		return // Close tells who waits
	case errors.Is(err, errAside):
		h.standAside(c)
		return
	}
	c.fails++
	if c.fails > h.cfg.Retries || code == memgpt.CodeClosed || code == memgpt.CodeNotFound {
		h.giveUp(c, t, err)
		return
	}
	h.mu.Lock()
	c.wanted = true
	h.mu.Unlock()
	if code != memgpt.CodeConflict {
		h.rest(ctx, c.fails)
	}
}

func (h *Host) leaseOf(c *conversation) *store.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.lease
}

// rest waits between attempts: 50 ms, doubled each time.
func (h *Host) rest(ctx context.Context, fails int) {
	timer := time.NewTimer(50 * time.Millisecond << min(fails-1, 6))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// giveUp leaves an event in the inbox for later and tells who waits for it.
func (h *Host) giveUp(c *conversation, t *Turn, err error) {
	err = memgpt.Errorf(memgpt.CodeOf(err), "run the conversation, which is tried again later: %w", err)
	h.report(err)
	c.fails = 0
	var waiting []*Turn
	h.mu.Lock()
	h.park(c, h.cfg.Now().Add(givenUp))
	c.wanted = true
	for _, other := range h.turns {
		if other == t || t == nil && other.conv == c {
			waiting = append(waiting, other)
		}
	}
	h.mu.Unlock()
	for _, t := range waiting {
		h.finish(t, memgpt.Turn{}, err)
	}
}
