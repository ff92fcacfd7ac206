package host

import (
	"context"
	"slices"

	"memgpt"
	"memgpt/store"
)

// wakeMail runs the conversations into whose inboxes a commit of this host put messages, also where other processes' events are not
// looked for: who sends sees to it that it is read.
func (h *Host) wakeMail(events []memgpt.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range events {
		e := &events[i]
		c := h.conversation(e.Tenant, e.Agent, e.Thread)
		c.wanted = true
		h.stir(c, e)
		h.notice(c, e)
		h.wake(c)
		h.forget(c)
	}
}

// stir lets a conversation that waits for an answer look at an event that may end the wait. Callers hold h.mu.
func (h *Host) stir(c *conversation, e *memgpt.Event) {
	if !endsWait(e) || c.awaits && e.Mail != nil && e.Mail.Answers != "" && !slices.Contains(c.keys, e.Mail.Answers) {
		return // the last is a late answer, to another question than is open
	}
	c.stirred++
	h.unawait(c)
}

// unawait lets a conversation that was put off for answers run. Callers hold h.mu.
func (h *Host) unawait(c *conversation) {
	if c.awaits {
		c.awaits = false
		delete(h.parked, c)
	}
}

// endsWait reports whether an event of a conversation that waits for answers is looked at before they are there: an answer, or what is
// steered in or takes the turn's place, since a user doesn't wait for two agents. All others wait for the end of the turn.
func endsWait(e *memgpt.Event) bool {
	return e.Mail != nil && e.Mail.Answers != "" || store.DeliveryOf(e) != memgpt.DeliverQueue
}

// resume looks whether the conversation's turn waits for answers of other agents. Then that turn goes on, with what has come, before any
// other event is run; where nothing has come, the conversation is put off and there is nothing to run.
func (h *Host) resume(ctx context.Context, c *conversation, w *store.Work, f fresh) (*store.Work, fresh, error) {
	open := store.Waits(&w.State.Thread)
	if len(open) == 0 {
		return w, f, nil
	}
	h.mu.Lock()
	stirred := c.stirred
	h.mu.Unlock()
	events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: c.tenant, Thread: c.thread})
	if err != nil {
		return nil, f, memgpt.Errorf(memgpt.CodeOf(err), "read the inbox: %w", err)
	}
	i := slices.IndexFunc(events, func(e memgpt.Event) bool { return e.Begun || e.Step > 0 })
	if i < 0 { // its event was taken out of the inbox: what is open is answered by the next turn
		return w, f, nil
	}
	f.event = events[i]
	came := h.cameFor(c, open, events, &f)
	if !came.any && f.event.Due.After(h.cfg.Now()) {
		h.keepState(c, w, nil)
		h.await(c, f.event, open, stirred)
		return nil, f, nil
	}
	c.state, c.shared = w.State, f.shared
	if w, err = h.prepare(ctx, c, f); err != nil {
		return nil, f, err
	}
	w.Answers, w.Cut = came.answers, came.cut
	return w, f, nil
}

// came is what has come for a turn that waits.
type came struct {
	answers  []memgpt.Event
	cut, any bool
}

// cameFor looks through the inbox of a conversation that waits.
func (h *Host) cameFor(c *conversation, open []memgpt.OpenCall, events []memgpt.Event, f *fresh) (got came) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.cfg.Now()
	for i := range events {
		e := &events[i]
		answers := func(o memgpt.OpenCall) bool { return e.Mail != nil && e.Mail.Answers == store.WaitKey(&o) }
		switch {
		case e.Due.After(now), e.ID == f.event.ID, c.withdrawn[e.Turn]:
		case slices.ContainsFunc(open, answers):
			got.answers = append(got.answers, *e)
		case store.DeliveryOf(e) == memgpt.DeliverReplace:
			f.replaced, got.cut = true, true
		case store.DeliveryOf(e) == memgpt.DeliverSteer:
			got.cut = true
		}
	}
	t := h.turns[f.event.Turn]
	got.any = len(got.answers) > 0 || got.cut || t != nil && t.cancelled
	return got
}

// await puts a conversation off until its turn has waited long enough or something ends the wait. stirred is conversation.stirred
// before the inbox was read.
func (h *Host) await(c *conversation, e memgpt.Event, open []memgpt.OpenCall, stirred int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.turns[e.Turn]; t != nil {
		t.due, t.waits = e.Due, true
		h.elsewhere[t.ID] = t
	}
	c.wanted = true
	if c.stirred != stirred {
		return
	}
	c.awaits, c.keys = true, nil
	for i := range open {
		c.keys = append(c.keys, store.WaitKey(&open[i]))
	}
	h.park(c, e.Due)
}

// paused notes that the turn just run waits for answers. The owner looks at the inbox again, since some may have come meanwhile.
func (h *Host) paused(c *conversation, t *Turn, e memgpt.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turns[t.ID] == t {
		t.due, t.waits = e.Due, true
		h.elsewhere[t.ID] = t
	}
	c.wanted = true
}

// wakeAwaited looks, in a host that runs nothing but its own, for answers that other processes gave.
func (h *Host) wakeAwaited(ctx context.Context) error {
	h.mu.Lock()
	var waiting []store.EventRange
	for _, t := range h.turns {
		if c := t.conv; t.waits {
			waiting = append(waiting, store.EventRange{Tenant: c.tenant, Thread: c.thread, Until: h.cfg.Now()})
		}
	}
	h.mu.Unlock()
	for _, q := range waiting {
		events, err := h.cfg.Store.Events(ctx, q)
		if err != nil {
			return err
		}
		if events = slices.DeleteFunc(events, func(e memgpt.Event) bool { return !endsWait(&e) }); len(events) > 0 {
			h.wakeFor(events)
		}
	}
	return nil
}

// cancelAwaiting ends a turn that waits for answers here. It reports false where it doesn't. Callers hold h.mu.
func (h *Host) cancelAwaiting(t *Turn) bool {
	c := t.conv
	if !t.waits || c.current == t {
		return false
	}
	t.cancelled, c.wanted, c.goesOn = true, true, true
	c.stirred++
	h.unawait(c)
	h.wake(c)
	return true
}

// unanswered returns the answer to one who waits for what comes of an event whose turn ends without a kernel; nothing where
// nobody waits.
func (h *Host) unanswered(ctx context.Context, e *memgpt.Event, why string) ([]memgpt.Event, error) {
	if !store.Asks(e) {
		return nil, nil
	}
	_, err := h.cfg.Store.Thread(ctx, e.Tenant, e.Mail.Thread)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return nil, nil
	}
	a, errAgent := h.cfg.Store.Agent(ctx, e.Tenant, e.Agent)
	if err == nil {
		err = errAgent
	}
	if err != nil {
		return nil, memgpt.Errorf(memgpt.CodeOf(err), "tell who waits for an answer: %w", err)
	}
	return []memgpt.Event{store.AnswerEvent(e, a.Name, why, h.cfg.Now())}, nil
}
