package host

import (
	"context"

	"memgpt"
	"memgpt/store"
)

// Cancel takes a turn back. One that waits is withdrawn: its event leaves the inbox, durably when Cancel returns. One that
// runs in this host is asked to end, and Cancel returns at once; its record says how it ended. A turn that has ended is
// CodeInvalid, an unknown one CodeNotFound, and one of a conversation that another process runs, or of an event that the
// running turn is taking in, CodeConflict.
func (h *Host) Cancel(ctx context.Context, tenant, turn string) error {
	t, err := h.Attach(ctx, tenant, turn)
	if err != nil {
		return err
	}
	select {
	case <-t.done:
		return memgpt.Errorf(memgpt.CodeInvalid, "cancel turn %s: it has ended", turn)
	default:
	}
	switch h.beginCancel(t) {
	case cancelRunning:
		return nil
	case cancelTaken:
		return memgpt.Errorf(memgpt.CodeConflict, "cancel turn %s: the turn that runs is taking its message in; cancel that one", turn)
	case cancelQueued:
		return h.withdraw(ctx, t, nil)
	}
	return h.withdrawIdle(ctx, t)
}

type cancelWay int

const (
	cancelIdle    cancelWay = iota // no owner here: the lease is needed
	cancelQueued                   // the owner here is told to leave it out
	cancelRunning                  // it was told to end
	cancelTaken                    // the running turn is taking it in
)

func (h *Host) beginCancel(t *Turn) cancelWay {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := t.conv
	if h.cancelAwaiting(t) {
		return cancelRunning
	}
	if c.current == t {
		t.cancelled = true
		if c.cancel != nil {
			c.cancel(ErrCancelled)
		}
		return cancelRunning
	}
	if c.current != nil && c.arrivals.handed[t.Event] {
		return cancelTaken
	}
	if !c.running || c.lease == nil {
		return cancelIdle
	}
	if c.withdrawn == nil {
		c.withdrawn = map[string]bool{}
	}
	c.withdrawn[t.ID] = true
	return cancelQueued
}

// withdrawIdle withdraws a turn whose conversation no owner runs, under a lease that keeps it so.
func (h *Host) withdrawIdle(ctx context.Context, t *Turn) error {
	now := h.cfg.Now()
	want := store.Lease{Tenant: t.conv.tenant, Thread: t.conv.thread, Until: now.Add(h.cfg.LeaseTTL)}
	done, err := h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Acquire: &want})
	if err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "cancel turn %s: %w", t.ID, err)
	}
	if done.Lease != nil {
		err = h.withdraw(ctx, t, done.Lease)
		if err != nil {
			h.giveBack(context.WithoutCancel(ctx), *done.Lease)
		}
		return err
	}
	if way := h.beginCancel(t); way == cancelQueued { // an owner began meanwhile
		return h.withdraw(ctx, t, nil)
	} else if way == cancelRunning {
		return nil
	}
	return memgpt.Errorf(memgpt.CodeConflict, "cancel turn %s: another process runs its conversation", t.ID)
}

// withdraw takes the event of a turn out of the inbox, and ends the lease if it was taken for this.
func (h *Host) withdraw(ctx context.Context, t *Turn, lease *store.Lease) error {
	event, err := h.pending(ctx, t.conv, t.Event)
	if err == nil && (event.Begun || event.Step > 0) {
		err = memgpt.Errorf(memgpt.CodeConflict, "it began in another process")
	}
	now := h.cfg.Now()
	record := memgpt.Turn{ID: t.ID, Tenant: event.Tenant, Agent: event.Agent, Thread: event.Thread, Event: event.ID,
		Type: event.Type, State: memgpt.TurnWithdrawn, Stop: memgpt.StopCancelled, Started: now, Ended: now}
	var told []memgpt.Event
	if err == nil {
		told, err = h.unanswered(ctx, &event, "(Its owner took your message back.)")
	}
	if err == nil {
		_, err = h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Lease: lease, Release: lease != nil, Events: told,
			Consume: []string{event.ID}, Turns: []memgpt.Turn{record}})
	}
	if err == nil {
		h.wakeMail(told)
	}
	h.mu.Lock()
	t.conv.arrivals.due = 0 // of events, one of which is gone
	if err != nil {
		delete(t.conv.withdrawn, t.ID)
		t.conv.wanted = true
		h.wake(t.conv)
	}
	h.mu.Unlock()
	if err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "cancel turn %s: %w", t.ID, err)
	}
	h.finish(t, record, nil)
	return nil
}

// Attach returns a hold on a turn by its ID: the one that Send gave where this host still runs or watches it, one that
// has ended, or one that waits for the turn to end wherever it runs.
func (h *Host) Attach(ctx context.Context, tenant, turn string) (*Turn, error) {
	return h.attachTo(ctx, tenant, turn, false)
}

// attachTo is Attach. A turn that has ended is told to watchers where that is new.
func (h *Host) attachTo(ctx context.Context, tenant, turn string, isNew bool) (*Turn, error) {
	h.mu.Lock()
	t, closing := h.turns[turn], h.closing
	h.mu.Unlock()
	switch {
	case t != nil && t.conv.tenant == tenant:
		return t, nil
	case closing:
		return nil, errClosed("find a turn")
	}
	record, err := h.cfg.Store.Turn(ctx, tenant, turn)
	if err == nil {
		c := &conversation{tenant: tenant, agent: record.Agent, thread: record.Thread}
		return h.attach(ctx, c, turn, record.Event, isNew)
	}
	if memgpt.CodeOf(err) != memgpt.CodeNotFound {
		return nil, err
	}
	events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: tenant})
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if e.Turn == turn {
			c := &conversation{tenant: tenant, agent: e.Agent, thread: e.Thread}
			return h.attach(ctx, c, turn, e.ID, isNew)
		}
	}
	return nil, memgpt.Errorf(memgpt.CodeNotFound, "find turn %s", turn)
}

// attach returns a hold on a turn of which conversation and event are known.
func (h *Host) attach(ctx context.Context, of *conversation, turn, event string, isNew bool) (*Turn, error) {
	t, known, err := h.find(of, turn, event)
	if known || err != nil {
		return t, err
	}
	record, err := h.cfg.Store.Turn(ctx, of.tenant, turn)
	if err == nil && isOver(record) {
		err = h.replay(ctx, t, record, isNew)
	} else if err == nil || memgpt.CodeOf(err) == memgpt.CodeNotFound {
		err = nil
		h.awaitElsewhere(t)
	}
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.drop(t)
		h.forget(t.conv)
		return nil, memgpt.Errorf(memgpt.CodeOf(err), "find turn %s: %w", turn, err)
	}
	return t, nil
}

// find returns a turn that is known here, or makes it known.
func (h *Host) find(of *conversation, turn, event string) (t *Turn, known bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.turns[turn]; t != nil {
		return t, true, nil
	}
	if h.closing {
		return nil, false, errClosed("find a turn")
	}
	t = newTurn(h.conversation(of.tenant, of.agent, of.thread), turn, event, h.cfg.Buffer)
	h.enlist(t)
	return t, false, nil
}

// awaitElsewhere looks out for the end of a turn in another process.
func (h *Host) awaitElsewhere(t *Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turns[t.ID] == t && t.conv.current != t {
		h.elsewhere[t.ID] = t
		h.startClock()
		h.kickClock()
	}
}
