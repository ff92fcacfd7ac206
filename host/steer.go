package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

// ErrReplaced is the cause with which the context of a turn ends whose place a later event takes.
var ErrReplaced = memgpt.Errorf(memgpt.CodeReplaced, "a later message takes the turn's place")

// errCutOff ends the context of a model call that is cut off.
var errCutOff = errors.New("the call is cut off for a message that came meanwhile")

const (
	defaultCutAfter = 30 * time.Second // longer than a person waits without wondering whether he was heard

	// inboxAhead bounds how much of an inbox is read at a step border. What lies behind waits for the next.
	inboxAhead = 256
	// takenAtOnce bounds how many events one step takes in, so that they leave it room.
	takenAtOnce = 8
)

// arrivals are the events that come for a conversation while a turn of it runs here. Guarded by Host.mu.
type arrivals struct {
	came   bool            // an event to be taken in was seen since the last border
	fresh  []string        // IDs of those seen since that border began
	handed map[string]bool // IDs of those that the kernel was given
	due    int             // how many events were due, without those, when the inbox was last read

	began time.Time               // of the model's call under way
	cut   context.CancelCauseFunc // cuts it off; nil when there is none
	timer *time.Timer             // that will
}

// steering hands a running turn what arrives for it.
func (h *Host) steering(c *conversation, w *store.Work) {
	w.Arrived = func(ctx context.Context, due int) ([]memgpt.Event, error) { return h.arrived(ctx, c, due) }
	if h.cfg.CutAfter >= 0 {
		w.Call = func(ctx context.Context) (context.Context, func()) { return h.openCall(ctx, c) }
	}
}

// arrived answers store.Work.Arrived. The inbox is read only where the count of due events, or this host, knows of more.
func (h *Host) arrived(ctx context.Context, c *conversation, due int) ([]memgpt.Event, error) {
	h.mu.Lock()
	look := c.arrivals.came || due < 0 || due > 1 && due != c.arrivals.due
	c.arrivals.came, c.arrivals.fresh = false, nil
	h.mu.Unlock()
	if !look {
		return nil, nil
	}
	events, err := h.inbox(ctx, c)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var taken []memgpt.Event
	c.arrivals.due = 0
	// What was seen while the inbox was read may be in what was read. Else the next call would be cut off for it too.
	c.arrivals.came = slices.ContainsFunc(c.arrivals.fresh, func(id string) bool {
		return !slices.ContainsFunc(events, func(e memgpt.Event) bool { return e.ID == id })
	})
	for i := range events {
		e := &events[i]
		switch {
		case c.arrivals.handed[e.ID]:
			continue
		case c.withdrawn[e.Turn], e.Turn == c.current.ID:
		case store.DeliveryOf(e) == memgpt.DeliverReplace:
			h.replace(c)
			return nil, ErrReplaced
		case store.DeliveryOf(e) != memgpt.DeliverSteer:
		case len(taken) == takenAtOnce:
			c.arrivals.came = true
		default:
			taken = append(taken, *e)
			continue
		}
		c.arrivals.due++
	}
	if c.arrivals.handed == nil {
		c.arrivals.handed = map[string]bool{}
	}
	for i := range taken {
		c.arrivals.handed[taken[i].ID] = true
	}
	return taken, nil
}

func (h *Host) inbox(ctx context.Context, c *conversation) ([]memgpt.Event, error) {
	events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: c.tenant, Thread: c.thread, Until: h.cfg.Now(), Limit: inboxAhead})
	if err != nil {
		return nil, memgpt.Errorf(memgpt.CodeOf(err), "read the inbox: %w", err)
	}
	return events, nil
}

// peek reads the inbox where a renewal of the lease tells of more due events than are known.
func (h *Host) peek(ctx context.Context, c *conversation, due int) {
	h.mu.Lock()
	look := due > 1 && due != c.arrivals.due
	h.mu.Unlock()
	if !look {
		return
	}
	events, err := h.inbox(ctx, c)
	if err != nil {
		h.report(err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range events {
		h.notice(c, &events[i])
	}
	if !c.arrivals.came {
		c.arrivals.due = len(events)
	}
}

// notice sees to an event that came while a turn of its conversation runs here. Callers hold h.mu.
func (h *Host) notice(c *conversation, e *memgpt.Event) {
	if c.current == nil || e.Turn == c.current.ID || c.withdrawn[e.Turn] || c.arrivals.handed[e.ID] {
		return
	}
	switch store.DeliveryOf(e) {
	case memgpt.DeliverReplace:
		h.replace(c)
	case memgpt.DeliverSteer:
		c.arrivals.came = true
		c.arrivals.fresh = append(c.arrivals.fresh, e.ID)
		h.armCut(c)
	}
}

// replace ends the running turn, if it has not ended. Callers hold h.mu.
func (h *Host) replace(c *conversation) {
	select {
	case <-c.current.done:
		return
	default:
	}
	c.current.replaced = true
	if c.cancel != nil {
		c.cancel(ErrReplaced)
	}
}

// armCut cuts the model's call off once it has run long enough. Callers hold h.mu.
func (h *Host) armCut(c *conversation) {
	a := &c.arrivals
	if a.cut == nil || a.timer != nil {
		return
	}
	cut := a.cut
	a.timer = time.AfterFunc(max(time.Until(a.began.Add(h.cfg.CutAfter)), 0), func() { cut(errCutOff) })
}

// openCall answers store.Work.Call.
func (h *Host) openCall(ctx context.Context, c *conversation) (context.Context, func()) {
	ctx, cut := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &c.arrivals
	a.began, a.cut = time.Now(), cut
	if a.came {
		h.armCut(c)
	}
	return ctx, func() { h.closeCall(c) }
}

func (h *Host) closeCall(c *conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &c.arrivals
	if a.timer != nil {
		a.timer.Stop()
	}
	a.cut(nil)
	a.cut, a.timer = nil, nil
}

// tookIn ends the turn of an event that another turn took in, for who waits for it here. Watchers of the conversation learn
// of it from the other turn.
func (h *Host) tookIn(record memgpt.Turn) {
	h.mu.Lock()
	t := h.turns[record.ID]
	if t != nil {
		h.drop(t)
	}
	h.mu.Unlock()
	if t != nil {
		t.publish(memgpt.TurnStarted{Turn: record})
		t.publish(memgpt.TurnEnded{Turn: record})
		t.close(record, nil)
	}
}

// Follow yields what happens for an accepted message: the updates of its turn and, where another turn takes it in, those
// of that turn from there on. It returns the record of the turn that ended last; an error says that the end is not known,
// as for Turn.Wait, or is that of each.
func (h *Host) Follow(ctx context.Context, t *Turn, each func(memgpt.Update) error) (memgpt.Turn, error) {
	after := "" // the turn whose taking in is waited for
	for {
		for u := range t.Updates(ctx) {
			if in, ok := u.(memgpt.TookIn); ok && in.Turn.ID == after {
				after = ""
			}
			if _, end := u.(memgpt.TurnEnded); after != "" && !end {
				continue
			}
			if err := each(u); err != nil {
				return memgpt.Turn{}, err
			}
		}
		record, err := t.Wait(ctx)
		if err != nil || record.Stop != memgpt.StopSteered {
			return record, err
		}
		after = record.ID
		if t, err = h.attachTo(ctx, record.Tenant, record.Into, true); err != nil {
			return record, memgpt.Errorf(memgpt.CodeOf(err), "follow the turn that took the message in: %w", err)
		}
		h.tryElsewhere(t)
	}
}

// tryElsewhere sees to it that a turn goes on here if whoever runs it dies.
func (h *Host) tryElsewhere(t *Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turns[t.ID] == t && t.conv.current != t {
		t.conv.wanted = true
		h.wake(t.conv)
	}
}
