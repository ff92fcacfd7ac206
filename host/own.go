package host

import (
	"container/list"
	"context"
	"time"

	"memgpt"
	"memgpt/store"
)

type convKey struct{ tenant, thread string }

// conversation is what a host knows of one thread that it runs, is asked to run, watches or has cached. While running is
// set its owner goroutine alone touches state and beating; everything else is guarded by Host.mu.
type conversation struct {
	tenant, agent, thread string

	running bool // has an owner goroutine
	queued  bool // is in Host.ready
	handles int  // entries of Host.turns
	sending int  // events on their way into the inbox
	wanted  bool // the inbox may hold something for it
	jobs    []*job

	lease     *store.Lease // held by this host, as far as it knows
	version   int64        // of the thread when the lease was taken; 0 is not known
	releasing bool         // the turn's last commit is giving the lease back
	fresh     *fresh       // the only due event when the lease was taken, so that the inbox needn't be read
	accepted  int          // events that came since the inbox was looked at

	current   *Turn           // being run
	last      string          // ID of the turn that ended last
	withdrawn map[string]bool // turns that the owner must not begin
	cancel    context.CancelCauseFunc
	stop      context.CancelCauseFunc
	served    int // turns and jobs since the owner began
	arrivals  arrivals

	retryAt time.Time // not to be tried before, where it is in Host.parked
	foreign bool      // why it is not: another holds the lease
	awaits  bool      // the reason is that its turn waits for answers
	keys    []string  // of the calls that wait (store.WaitKey)
	goesOn  bool      // its waiting turn is to go on though nothing is due
	stirred int       // counts what may end such a wait
	parks   int       // refusals in a row, for the pace of the next try
	fails   int       // failures in a row

	state   *store.State  // between turns; nil when it must be loaded
	shared  int64         // store.Committed.Shared when agent and blocks of state were read; 0 is not known
	slot    *list.Element // in Host.idle
	aside   bool          // tidying is to stop for a user; guarded by Host.mu
	beating bool          // a timer heartbeat is known to be pending
}

func (c *conversation) key() convKey { return convKey{c.tenant, c.thread} }

// fresh is the event to be run next; conversation.fresh one that runs at once after the commit that took it in.
type fresh struct {
	event    memgpt.Event
	shared   int64 // store.Committed.Shared of that commit
	replaced bool  // another event takes its place
}

// take keeps a lease that a commit gave. Callers hold Host.mu.
func (c *conversation) take(lease *store.Lease, version int64) {
	if lease != nil && (c.lease == nil || lease.Number > c.lease.Number) {
		c.lease, c.version, c.fresh = lease, version, nil
		c.parks, c.foreign = 0, false
	}
}

// job is exclusive work without an event.
type job struct {
	ctx  context.Context
	do   func(context.Context, *store.Work) error
	done chan error // takes one
}

// conversation returns what is known of a thread. Callers hold h.mu.
func (h *Host) conversation(tenant, agent, thread string) *conversation {
	key := convKey{tenant, thread}
	c := h.convs[key]
	if c == nil {
		c = &conversation{tenant: tenant, agent: agent, thread: thread}
		h.convs[key] = c
	}
	return c
}

// forget drops a conversation of which nothing needs to be known. Callers hold h.mu.
func (h *Host) forget(c *conversation) {
	if c.running || c.queued || c.handles > 0 || c.sending > 0 || c.wanted || len(c.jobs) > 0 || c.lease != nil || c.state != nil {
		return
	}
	delete(h.parked, c)
	if h.convs[c.key()] == c {
		delete(h.convs, c.key())
	}
}

// crowded reports whether as many conversations run as may. Callers hold h.mu.
func (h *Host) crowded() bool { return h.cfg.MaxRunning > 0 && h.running >= h.cfg.MaxRunning }

// wake gives a conversation an owner if it has something to do. Callers hold h.mu.
func (h *Host) wake(c *conversation) {
	due := c.wanted || len(c.jobs) > 0 || c.lease != nil && c.sending == 0
	if !due || h.closing || c.running || c.queued {
		return
	}
	if _, parked := h.parked[c]; parked && c.lease == nil {
		return
	}
	delete(h.parked, c)
	if h.crowded() {
		c.queued = true
		h.ready = append(h.ready, c)
		return
	}
	h.launch(c)
}

// launch starts an owner. Callers hold h.mu.
func (h *Host) launch(c *conversation) {
	ctx, stop := context.WithCancelCause(context.Background())
	c.running, c.served, c.stop = true, 0, stop
	h.running++
	if c.slot != nil {
		h.idle.Remove(c.slot)
		c.slot = nil
	}
	h.work.Go(func() { h.own(ctx, c) })
}

// own runs a conversation until it has nothing to do: the one goroutine that does.
func (h *Host) own(ctx context.Context, c *conversation) {
	for {
		task, j := h.next(c)
		switch task {
		case taskJob:
			h.runJob(ctx, c, j)
		case taskEvent:
			h.runEvent(ctx, c)
		case taskRelease:
			h.release(ctx, c)
		case taskLeave:
			return
		}
	}
}

type task int

const (
	taskLeave task = iota
	taskRelease
	taskJob
	taskEvent
)

// next says what an owner does next. Where it is to leave, it has left: another may be launched.
func (h *Host) next(c *conversation) (task, *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, parked := h.parked[c]
	mayRun := !h.closing && !parked && !(len(h.ready) > 0 && c.served > 0)
	switch {
	case mayRun && len(c.jobs) > 0:
		j := c.jobs[0]
		c.jobs = c.jobs[1:]
		c.served++
		return taskJob, j
	case mayRun && c.wanted:
		c.wanted = false
		c.served++
		return taskEvent, nil
	case c.lease != nil && c.sending == 0:
		return taskRelease, nil
	}
	h.leave(c)
	return taskLeave, nil
}

// leave ends an owner's time. Callers hold h.mu.
func (h *Host) leave(c *conversation) {
	h.running--
	c.running, c.withdrawn = false, nil
	c.stop(nil)
	c.stop = nil
	if c.state != nil {
		c.slot = h.idle.PushFront(c)
	}
	if c.handles > 0 && !c.wanted {
		h.watchElsewhere(c) // what is awaited and isn't in the inbox any more
	}
	for h.idle.Len() > max(h.cfg.Cached, 0) {
		old := h.idle.Remove(h.idle.Back()).(*conversation)
		old.state, old.slot = nil, nil
		h.forget(old)
	}
	for len(h.ready) > 0 && !h.crowded() && !h.closing {
		first := h.ready[0]
		h.ready = h.ready[1:]
		first.queued = false
		h.wake(first)
		h.forget(first)
	}
	h.wake(c) // last, so that others had their turn
	h.forget(c)
}

// hold makes sure of the lease. It reports false where it is another's.
func (h *Host) hold(ctx context.Context, c *conversation) (bool, error) {
	h.mu.Lock()
	lease := c.lease
	h.mu.Unlock()
	now := h.cfg.Now()
	if lease != nil && lease.Until.Sub(now) > h.cfg.LeaseTTL/2 {
		return true, nil
	}
	if lease != nil && now.Before(lease.Until) {
		renewed := *lease
		renewed.Until = now.Add(h.cfg.LeaseTTL)
		_, err := h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Lease: &renewed})
		if memgpt.CodeOf(err) != memgpt.CodeLeaseLost {
			h.keepLease(c, renewed, err == nil)
			return err == nil, err
		}
	}
	h.loseLease(c, lease)
	want := store.Lease{Tenant: c.tenant, Thread: c.thread, Until: now.Add(h.cfg.LeaseTTL)}
	done, err := h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Acquire: &want})
	if err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c.take(done.Lease, done.Thread)
	return c.lease != nil, nil
}

// keepLease notes how long the lease lasts now.
func (h *Host) keepLease(c *conversation, lease store.Lease, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok && c.lease != nil && c.lease.Number == lease.Number {
		c.lease = &lease
	}
}

// loseLease forgets a lease, unless a newer one was taken meanwhile.
func (h *Host) loseLease(c *conversation, lease *store.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lease != nil && c.lease != nil && c.lease.Number == lease.Number {
		c.lease = nil
	}
}

// release gives the lease back.
func (h *Host) release(ctx context.Context, c *conversation) {
	h.mu.Lock()
	lease := c.lease
	c.lease = nil
	h.mu.Unlock()
	h.giveBack(context.WithoutCancel(ctx), *lease)
}

func (h *Host) giveBack(ctx context.Context, lease store.Lease) {
	_, err := h.cfg.Store.Commit(ctx, &store.Commit{Now: h.cfg.Now(), Lease: &lease, Release: true})
	if err != nil && memgpt.CodeOf(err) != memgpt.CodeLeaseLost {
		h.report(memgpt.Errorf(memgpt.CodeOf(err), "give a lease back, which will run out by itself: %w", err))
	}
}

// park puts a conversation off that can't be run now. Callers hold h.mu.
func (h *Host) park(c *conversation, until time.Time) {
	c.retryAt = until
	h.parked[c] = struct{}{}
	h.startClock()
	h.kickClock()
}

// unwatchElsewhere drops a conversation that another runs when nothing of it is awaited here any more. Callers hold h.mu.
func (h *Host) unwatchElsewhere(c *conversation) {
	if c.foreign && c.handles == 0 && !c.running && len(c.jobs) == 0 {
		c.wanted = false
	}
	h.forget(c)
}

// retryTime is when a lease that another holds is tried again: the pace doubles from Poll on. Callers hold h.mu.
func (h *Host) retryTime(c *conversation) time.Time {
	pace := h.pollTime()
	wait := min(pace<<min(c.parks, 3), h.cfg.LeaseTTL)
	c.parks++
	c.foreign = true
	return h.cfg.Now().Add(wait)
}
