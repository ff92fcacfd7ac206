package host

import (
	"context"
	"time"

	"memgpt"
	"memgpt/store"
)

// timerText is what a timer heartbeat says to the model.
const timerText = "Timer heartbeat: some time has passed and nobody has written. Use it to think or to tidy your memory, speak if there is a reason to, or yield."

// beat keeps the timer heartbeats of the conversation in hand. An agent that wants them has exactly one pending beside
// the event in hand, so they never pile up. A heartbeat that comes due too early, since something else happened
// meanwhile or the model paused them, is put off without asking the model: then beat returns true.
func (h *Host) beat(ctx context.Context, c *conversation, w *store.Work) (later bool, err error) {
	every := w.State.Agent.Heartbeat
	fresh := w.Event.Type == memgpt.EventTimer && w.Event.Step == 0
	if every <= 0 {
		c.beating = false
		if fresh {
			return true, h.dropBeat(ctx, w)
		}
		return false, nil
	}
	if fresh {
		due, err := h.beatTime(ctx, &w.State.Thread, every)
		if err != nil || due.After(h.cfg.Now()) {
			return err == nil, h.putOff(ctx, w, due, err)
		}
	}
	if c.beating && w.Event.Type != memgpt.EventTimer {
		return false, nil
	}
	err = h.ensureBeat(ctx, &w.State.Thread, every, w.Event.ID)
	c.beating = err == nil
	return false, err
}

// beatTime is the time before which no heartbeat may run: an interval after the last turn, and after the pause.
func (h *Host) beatTime(ctx context.Context, t *memgpt.Thread, every time.Duration) (time.Time, error) {
	due := t.Paused
	turns, err := h.cfg.Store.Turns(ctx, t.Tenant, t.ID, 1)
	if err != nil {
		return due, memgpt.Errorf(memgpt.CodeOf(err), "look for the last turn: %w", err)
	}
	for _, last := range turns {
		if last.Into != "" { // it ended while another ran
			if last, err = h.cfg.Store.Turn(ctx, t.Tenant, last.Into); err != nil {
				return due, memgpt.Errorf(memgpt.CodeOf(err), "look for the last turn: %w", err)
			}
		}
		at := last.Ended
		if at.IsZero() {
			at = last.Started
		}
		if at = at.Add(every); at.After(due) {
			due = at
		}
	}
	return due, nil
}

// putOff moves the heartbeat in hand.
func (h *Host) putOff(ctx context.Context, w *store.Work, due time.Time, err error) error {
	if err != nil {
		return err
	}
	now := h.cfg.Now()
	event, lease := w.Event, w.Lease
	event.Due, lease.Until = due, now.Add(h.cfg.LeaseTTL)
	_, err = h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Lease: &lease, Events: []memgpt.Event{event}})
	if err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "put a heartbeat off: %w", err)
	}
	h.wakeClock()
	return nil
}

// dropBeat takes the heartbeat in hand out of the inbox, since the agent wants none any more.
func (h *Host) dropBeat(ctx context.Context, w *store.Work) error {
	now := h.cfg.Now()
	turn, lease := w.Turn, w.Lease
	turn.State, turn.Ended, lease.Until = memgpt.TurnWithdrawn, now, now.Add(h.cfg.LeaseTTL)
	_, err := h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Lease: &lease, Consume: []string{w.Event.ID}, Turns: []memgpt.Turn{turn}})
	if err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "drop a heartbeat: %w", err)
	}
	return nil
}

// ensureBeat puts a heartbeat into the inbox unless one is there beside the event in hand. Its id follows from what
// stands in the store, so that two processes that do it at once make one.
func (h *Host) ensureBeat(ctx context.Context, t *memgpt.Thread, every time.Duration, inHand string) error {
	pending, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: t.Tenant, Thread: t.ID})
	if err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "look for heartbeats: %w", err)
	}
	for _, e := range pending {
		if e.Type == memgpt.EventTimer && e.ID != inHand {
			return nil
		}
	}
	turns, err := h.cfg.Store.Turns(ctx, t.Tenant, t.ID, 1)
	if err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "look for the last turn: %w", err)
	}
	seed := []string{"heartbeat", t.ID, inHand}
	for _, last := range turns {
		seed = append(seed, last.ID)
	}
	now, id := h.cfg.Now(), memgpt.HashKey(seed...)
	msg := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, timerText)
	msg.Type = memgpt.EventTimer
	event := memgpt.Event{ID: "event-" + id, Turn: "turn-" + id, Tenant: t.Tenant, Agent: t.Agent, Thread: t.ID,
		Type: memgpt.EventTimer, Due: now.Add(every), Created: now, Message: msg}
	if _, err = h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Events: []memgpt.Event{event}}); err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "set a heartbeat: %w", err)
	}
	h.wakeClock()
	return nil
}

// Heartbeats makes the timer heartbeats of the agent's conversations follow its Heartbeat, to be called where that was
// changed; a turn does it for its own conversation.
func (h *Host) Heartbeats(ctx context.Context, agent memgpt.Agent) error {
	if agent.Heartbeat <= 0 {
		return nil // pending ones are dropped when they come due
	}
	threads, err := h.cfg.Store.Threads(ctx, agent.Tenant, agent.ID)
	if err != nil {
		return err
	}
	for i := range threads {
		if err := h.ensureBeat(ctx, &threads[i], agent.Heartbeat, ""); err != nil {
			return err
		}
	}
	return nil
}
