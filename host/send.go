package host

import (
	"context"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
)

// Message is what Send takes in.
type Message struct {
	Tenant  string
	Agent   string           // ID
	Thread  string           // ID
	Type    memgpt.EventType // "" is memgpt.EventUser
	Message memgpt.Message   // Role and Origin may be left empty: they follow from Type
	Key     string           // idempotency key within the thread; "" is none
	Due     time.Time        // not before; zero is now
	// Delivery says what becomes of it while another turn of the conversation runs; "" is as for memgpt.Event.
	Delivery memgpt.Delivery
}

// Send takes a message into the inbox and returns once that is durable, in one commit. A turn of the conversation that
// runs takes it in, is waited for or is ended for it, as Delivery says; a message that was taken in has a turn that ends
// with memgpt.StopSteered, and Follow goes on with the one that took it in. What has a turn of its own runs in the order
// of the inbox (store.Class). A Key that is known gives the earlier event's turn and takes nothing in. An empty
// message is refused with memgpt.CodeInvalid.
func (h *Host) Send(ctx context.Context, m Message) (*Turn, error) {
	event, err := h.Event(m)
	if err != nil {
		return nil, err
	}
	c, t, acquire, err := h.beginSend(event)
	if err != nil {
		return nil, err
	}
	defer h.work.Done()
	commit := &store.Commit{Now: event.Created, Events: []memgpt.Event{event}}
	if acquire {
		commit.Acquire = &store.Lease{Tenant: c.tenant, Thread: c.thread, Until: event.Created.Add(h.cfg.LeaseTTL)}
	}
	done, err := h.cfg.Store.Commit(ctx, commit)
	taken := err == nil && len(done.Duplicate) == 0
	h.endSend(ctx, c, t, event, done, sent{taken: taken, refused: acquire && err == nil && done.Lease == nil})
	switch {
	case err != nil:
		return nil, memgpt.Errorf(memgpt.CodeOf(err), "take a message in: %w", err)
	case !taken:
		return h.attach(ctx, c, done.Duplicate[0].Turn, done.Duplicate[0].ID, false)
	}
	return t, nil
}

// sent is how a commit of Send went.
type sent struct {
	taken   bool // the event is in the inbox
	refused bool // the lease was asked for and is another's
}

// Event returns the inbox's row of a message, for who commits it together with something else; Send of a message with the
// same Key then gives its turn.
func (h *Host) Event(m Message) (memgpt.Event, error) {
	msg := cleanMessage(m.Message)
	if m.Agent == "" || m.Thread == "" {
		return memgpt.Event{}, memgpt.Errorf(memgpt.CodeInvalid, "take a message in: name agent and thread by their IDs")
	}
	if m.Thread == store.TidyThreadID(m.Agent) {
		return memgpt.Event{}, memgpt.Errorf(memgpt.CodeInvalid, "take a message in: the conversation %q is the system's own, in which"+
			" memory is tidied; write in another", store.TidyThread)
	}
	if isEmpty(msg) {
		return memgpt.Event{}, memgpt.Errorf(memgpt.CodeInvalid, "take a message in: it is empty; write some text")
	}
	now := h.cfg.Now()
	e := memgpt.Event{
		ID: h.cfg.NewID("event"), Turn: h.cfg.NewID("turn"), Tenant: m.Tenant, Agent: m.Agent, Thread: m.Thread,
		Type: orDefault(m.Type, memgpt.EventUser), Key: memgpt.CleanText(m.Key), Due: m.Due, Created: now, Delivery: m.Delivery,
	}
	switch m.Delivery {
	case "", memgpt.DeliverSteer, memgpt.DeliverQueue, memgpt.DeliverReplace:
	default:
		return memgpt.Event{}, memgpt.Errorf(memgpt.CodeInvalid, "take a message in: there is no delivery %q; it is %s, %s or %s",
			m.Delivery, memgpt.DeliverSteer, memgpt.DeliverQueue, memgpt.DeliverReplace)
	}
	if e.Due.IsZero() {
		e.Due = now
	}
	role, origin := memgpt.RoleSystem, memgpt.OriginSystem
	switch e.Type {
	case memgpt.EventUser:
		role, origin = memgpt.RoleUser, memgpt.OriginUser
	case memgpt.EventAgent:
		origin = memgpt.OriginAgent
	}
	msg.Role, msg.Origin, msg.Type = orDefault(msg.Role, role), orDefault(msg.Origin, origin), e.Type
	e.Message = msg
	return e, nil
}

// cleanMessage returns a copy with texts as they may be stored.
func cleanMessage(m memgpt.Message) memgpt.Message {
	parts := make(memgpt.Parts, len(m.Parts))
	for i, p := range m.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			p.Text = memgpt.CleanText(p.Text)
			parts[i] = p
		case memgpt.File:
			p.Name = memgpt.CleanText(p.Name)
			parts[i] = p
		default:
			parts[i] = p
		}
	}
	m.Parts, m.Author = parts, memgpt.CleanText(m.Author)
	return m
}

// isEmpty reports whether a message has neither text nor anything else that a model could read.
func isEmpty(m memgpt.Message) bool {
	for _, p := range m.Parts {
		if t, ok := p.(memgpt.Text); !ok || strings.TrimSpace(t.Text) != "" {
			return false
		}
	}
	return true
}

// beginSend announces an event to its conversation, so that a turn that is ending keeps the lease for it. The lease is
// asked for where the turn could begin at once.
func (h *Host) beginSend(e memgpt.Event) (c *conversation, t *Turn, acquire bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, nil, false, errClosed("take a message in")
	}
	h.work.Add(1)
	c = h.conversation(e.Tenant, e.Agent, e.Thread)
	t = newTurn(c, e.Turn, e.ID, h.cfg.Buffer)
	h.enlist(t)
	later := e.Due.After(e.Created)
	if later {
		t.due = e.Due
	} else {
		c.sending++
	}
	held := c.lease != nil && !c.releasing
	return c, t, !later && !held && !h.crowded(), nil
}

// endSend puts what a commit gave into the conversation and sets it going.
func (h *Host) endSend(ctx context.Context, c *conversation, t *Turn, e memgpt.Event, done store.Committed, s sent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	later := e.Due.After(e.Created)
	if !later {
		c.sending--
	}
	if !s.taken {
		h.drop(t)
	}
	c.take(done.Lease, done.Thread)
	if s.taken && !later {
		c.accepted++
	}
	if s.taken && !later && done.Pending == 1 && c.lease == done.Lease {
		c.fresh = &fresh{event: e, shared: done.Shared}
	}
	switch {
	case s.taken && later:
		h.elsewhere[t.ID] = t
		h.startClock()
		h.kickClock()
	case s.taken && s.refused && !c.running:
		c.wanted = true
		h.elsewhere[t.ID] = t
		h.park(c, h.retryTime(c))
	case s.taken || done.Lease != nil: // with the lease of a known Key's conversation: its event may still wait
		c.wanted = true
	}
	if s.taken && !later {
		h.cutTidying(&e)
		h.stir(c, &e)
		h.notice(c, &e)
	}
	h.wake(c)
	if h.closing && !c.running && c.lease != nil {
		lease := c.lease
		c.lease = nil
		h.work.Go(func() { h.giveBack(context.WithoutCancel(ctx), *lease) })
	}
	h.forget(c)
}

// enlist makes a turn known. Callers hold h.mu.
func (h *Host) enlist(t *Turn) {
	h.turns[t.ID] = t
	t.conv.handles++
}

// drop forgets a turn that came to nothing. Callers hold h.mu.
func (h *Host) drop(t *Turn) {
	if h.turns[t.ID] == t {
		delete(h.turns, t.ID)
		delete(h.elsewhere, t.ID)
		t.conv.handles--
	}
}
