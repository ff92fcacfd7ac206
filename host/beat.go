package host

import (
	"context"
	"slices"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// beat sees to the timers of the conversation in hand. A heartbeat or a schedule whose time has not come, or that has no
// reason to wake the model, is put off or dropped: then beat returns true. An agent that wants heartbeats has exactly one
// pending beside the event in hand, so they never pile up.
func (h *Host) beat(ctx context.Context, c *conversation, w *store.Work) (later bool, err error) {
	if c.tidies() {
		if tidyBegun(&w.Event) {
			return false, nil
		}
		return h.judgeTidy(ctx, w)
	}
	wants := beats(&w.State.Agent)
	if !wants {
		c.beating = false
	}
	if e := &w.Event; e.Type == memgpt.EventTimer && e.Step == 0 && !e.Begun && (e.Timer == nil || !e.Timer.Rung) {
		later, err = h.ring(ctx, c, w)
		if later || err != nil {
			return later, err
		}
	}
	if !wants || c.beating && !isBeat(&w.Event) {
		return false, nil
	}
	err = h.ensureBeat(ctx, &w.State.Agent, &w.State.Thread, w.Event.ID)
	c.beating = err == nil
	return false, err
}

// beats reports whether an agent wants timer heartbeats.
func beats(a *memgpt.Agent) bool { return a.Heartbeat > 0 || a.Timers.Cron != "" }

// isBeat reports whether an event is a timer heartbeat.
func isBeat(e *memgpt.Event) bool {
	return e.Type == memgpt.EventTimer && (e.Timer == nil || e.Timer.Schedule == "")
}

// nextBeat is the time of the agent's next heartbeat after another time: by the interval or by the cron line, whatever
// comes first. A line that can't be read is none.
func nextBeat(a *memgpt.Agent, after time.Time) time.Time {
	var next time.Time
	if a.Heartbeat > 0 {
		next = after.Add(a.Heartbeat)
	}
	if line, err := calendar.ParseCron(a.Timers.Cron); err == nil {
		if at := line.Next(after, a.Location()); next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

// longestPause is more than a model can pause heartbeats for (360 minutes) or than a test does: what lies farther ahead was
// written by a clock that went wrong.
const longestPause = 24 * time.Hour

// beatTime is the time before which no heartbeat may run: an interval after the last turn, and after the pause. A turn that
// ended later than it is now did so by a clock that went wrong.
func (h *Host) beatTime(ctx context.Context, a *memgpt.Agent, t *memgpt.Thread) (due time.Time, why string, err error) {
	now := h.cfg.Now()
	if t.Paused.Before(now.Add(longestPause)) {
		due, why = t.Paused, "paused"
	}
	if a.Heartbeat <= 0 || a.Timers.Cron != "" {
		return due, why, nil
	}
	turns, err := h.cfg.Store.Turns(ctx, t.Tenant, t.ID, 1)
	if err != nil {
		return due, why, memgpt.Errorf(memgpt.CodeOf(err), "look for the last turn: %w", err)
	}
	for _, last := range turns {
		if last.Into != "" { // it ended while another ran
			if last, err = h.cfg.Store.Turn(ctx, t.Tenant, last.Into); err != nil {
				return due, why, memgpt.Errorf(memgpt.CodeOf(err), "look for the last turn: %w", err)
			}
		}
		at := last.Ended
		if at.IsZero() {
			at = last.Started
		}
		if at = at.Add(a.Heartbeat); at.After(due) && !at.After(now.Add(a.Heartbeat)) {
			due, why = at, afterTurn
		}
	}
	return due, why, nil
}

// ensureBeat puts a heartbeat into the inbox unless one is there beside the event in hand. Its id follows from what
// stands in the store, so that two processes that do it at once make one.
func (h *Host) ensureBeat(ctx context.Context, a *memgpt.Agent, t *memgpt.Thread, inHand string) error {
	pending, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: t.Tenant, Thread: t.ID})
	if err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "look for heartbeats: %w", err)
	}
	now := h.cfg.Now()
	next := nextBeat(a, now)
	if next.IsZero() {
		return nil
	}
	for i := range pending {
		if e := &pending[i]; isBeat(e) && e.ID != inHand {
			return h.sooner(ctx, a, e, next)
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
	id := memgpt.HashKey(seed...)
	msg := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, timerText)
	msg.Type = memgpt.EventTimer
	event := memgpt.Event{ID: "event-" + id, Turn: "turn-" + id, Tenant: t.Tenant, Agent: t.Agent, Thread: t.ID,
		Type: memgpt.EventTimer, Due: next, Created: now, Message: msg, Timer: &memgpt.Timer{Set: now, For: next, Seen: now}}
	if _, err = h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Events: []memgpt.Event{event}}); err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "set a heartbeat: %w", err)
	}
	h.wakeClock()
	return nil
}

// sooner moves a heartbeat that waits for longer than the agent's settings say now: they were changed, or a clock that went
// wrong set it. What waits for a reason is left alone.
func (h *Host) sooner(ctx context.Context, a *memgpt.Agent, e *memgpt.Event, next time.Time) error {
	free := e.Timer == nil || !e.Timer.Rung && slices.Contains([]string{"", nothingNew, afterTurn, settingsNow}, e.Timer.Wait)
	if e.Begun || e.Step > 0 || !e.Due.After(next) || !free {
		return nil
	}
	err := h.withRings(ctx, a, func(r *ringing) (*store.Commit, error) {
		still, err := h.stillPending(ctx, e)
		if err != nil || still == nil || still.Timer != nil && still.Timer.Rung || still.Begun || still.Step > 0 {
			return nil, err
		}
		moved := *still
		moved.Due, moved.Timer = next, &memgpt.Timer{For: next, Set: r.now, Seen: r.now}
		return &store.Commit{Events: []memgpt.Event{moved}}, nil
	})
	h.wakeClock()
	return err
}

// Heartbeats makes the timer heartbeats of the agent's conversations follow its settings, and the tidying of its memory, to be
// called where those were changed; a turn does it for its own conversation.
func (h *Host) Heartbeats(ctx context.Context, agent memgpt.Agent) error {
	if err := h.ensureTidy(ctx, &agent); err != nil {
		return err
	}
	if !beats(&agent) {
		return nil // pending ones are dropped when they come due
	}
	threads, err := h.cfg.Store.Threads(ctx, agent.Tenant, agent.ID)
	if err != nil {
		return err
	}
	for i := range threads {
		if store.IsTidyThread(&threads[i]) {
			continue
		}
		if err := h.ensureBeat(ctx, &agent, &threads[i], ""); err != nil {
			return err
		}
	}
	return nil
}
