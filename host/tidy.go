package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// Tidying in the background is one event at a time of an agent's conversation for it (store.TidyThread). It is set when a turn
// of the agent ends, judged when its time comes, and cut off when a user writes.

// Defaults and bounds of tidying.
const (
	tidyTurns    = 8                // memgpt.Tidy.Turns
	tidyIdle     = 10 * time.Minute // memgpt.Tidy.Idle
	tidyDayTurns = 24               // turns of tidying that are begun on a day, one in an hour; more wait for the next
	tidyPace     = 2 * time.Second  // how often is looked whether a user is served still
	tidyBackOff  = 7                // doublings of Idle after turns that came to nothing
)

// errAside ends the context of tidying that a user's message stops.
var errAside = memgpt.Errorf(memgpt.CodeBusy, "memory work stands aside for a user; it goes on when nobody waits")

// Why tidying is due.
const (
	tidyMore    = "more is new than the last one could read"
	tidyPressed = "messages are about to leave main context"
	tidyByHand  = "asked for by its owner"
)

// tidies reports whether a conversation is its agent's for tidying.
func (c *conversation) tidies() bool { return c.thread == store.TidyThreadID(c.agent) }

// withTidied commits a change of an agent's event of tidying with its record, so that of two changes at once one is made
// again from what is there then. Nil is no change.
func (h *Host) withTidied(ctx context.Context, a *memgpt.Agent, change func(t *store.Tidied) (*store.Commit, error)) error {
	for try := 1; ; try++ {
		record, err := h.cfg.Store.Record(ctx, a.Tenant, store.TidyKind, a.ID)
		record, t, err := store.ReadTidied(a, record, err)
		if err != nil {
			return memgpt.Errorf(memgpt.CodeOf(err), "read how far the memory of agent %s is tidied: %w", a.Name, err)
		}
		c, err := change(&t)
		if err != nil || c == nil {
			return err
		}
		if record.Data, err = json.Marshal(t); err != nil {
			return err
		}
		c.Now, c.Records = h.cfg.Now(), append(c.Records, record)
		if _, err = h.cfg.Store.Commit(ctx, c); memgpt.CodeOf(err) != memgpt.CodeConflict || try == ringTries {
			return err
		}
	}
}

// tidyDue says when an agent's memory is to be tidied, and why; zero where nothing is new.
func (h *Host) tidyDue(ctx context.Context, a *memgpt.Agent, t *store.Tidied) (due time.Time, why string, err error) {
	now, idle := h.cfg.Now(), orDefault(a.Tidy.Idle, tidyIdle)
	fresh, err := h.tidyFresh(ctx, a, t, now)
	if err != nil || !fresh.any {
		return due, "", err
	}
	switch most := orDefault(a.Tidy.Turns, tidyTurns); {
	case t.More:
		due, why = now, tidyMore
	case fresh.pressed:
		due, why = now, tidyPressed
	case fresh.turns >= most:
		due, why = now, fmt.Sprintf("%d turns since the last", most)
	default:
		due, why = fresh.last.Add(idle), "nobody wrote for "+tidySpan(idle)
	}
	if t.Fails > 0 {
		if again := t.At.Add(min(idle<<min(t.Fails, tidyBackOff), 24*time.Hour)); again.After(due) {
			due, why = again, fmt.Sprintf("the last %d came to nothing; %s", t.Fails, why)
		}
	}
	if due.Before(now) {
		due = now
	}
	if end := tidySpent(a, t, due); end.After(due) {
		due, why = end, fmt.Sprintf("tidying had its %d turns of the day; %s", tidyDayTurns, why)
	}
	return due, why, nil
}

// tidySpan writes a duration without units that are 0.
func tidySpan(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// tidyFresh is what is new for tidying.
type tidyFresh struct {
	any     bool
	turns   int  // that ended since the memory was last read, as many as are needed
	pressed bool // a queue is under memory pressure that it didn't read
	last    time.Time
}

func (h *Host) tidyFresh(ctx context.Context, a *memgpt.Agent, t *store.Tidied, now time.Time) (f tidyFresh, err error) {
	threads, err := h.cfg.Store.Threads(ctx, a.Tenant, a.ID)
	if err != nil {
		return f, err
	}
	for i := range threads {
		th := &threads[i]
		if store.IsTidyThread(th) || th.Next-1 <= t.Seen[th.ID] {
			continue
		}
		f.any = true
		if head, known := t.Pressed[th.ID]; th.Alerted && (!known || head != th.Head) {
			f.pressed = true
		}
		list, err := h.cfg.Store.Turns(ctx, th.Tenant, th.ID, orDefault(a.Tidy.Turns, tidyTurns))
		if err != nil {
			return f, err
		}
		for j := range list {
			at := list[j].Ended
			if at.IsZero() {
				at = list[j].Started
			}
			if at.After(t.Read) {
				f.turns++
			}
			if at.After(f.last) && !at.After(now) {
				f.last = at
			}
		}
	}
	return f, nil
}

// tidySpent returns when the next day begins where the day of a time has had its turns; else the time itself.
func tidySpent(a *memgpt.Agent, t *store.Tidied, at time.Time) time.Time {
	local := at.In(a.Location())
	if t.Day != local.Format(time.DateOnly) || t.Turns < tidyDayTurns {
		return at
	}
	next, _ := calendar.Local(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, local.Location())
	if !next.After(at) { // midnight came twice
		next = at.Add(time.Hour)
	}
	return next
}

// ensureTidy sets the event of tidying that an agent needs, or makes the one that waits due sooner.
func (h *Host) ensureTidy(ctx context.Context, a *memgpt.Agent) error {
	if !a.Tidy.On {
		return nil // one that waits is dropped when it comes due
	}
	err := h.withTidied(ctx, a, func(t *store.Tidied) (*store.Commit, error) {
		e, err := h.tidyPending(ctx, a)
		if err != nil || e != nil && tidyBegun(e) {
			return nil, err
		}
		due, why, err := h.tidyDue(ctx, a, t)
		if err != nil || due.IsZero() || e != nil && !due.Before(e.Due) {
			return nil, err
		}
		return h.tidyCommit(ctx, a, e, due, why)
	})
	if err != nil {
		return memgpt.Errorf(memgpt.CodeOf(err), "see to memory work: %w", err)
	}
	h.wakeClock()
	return nil
}

// tidyPending returns the agent's event of tidying; nil where there is none.
func (h *Host) tidyPending(ctx context.Context, a *memgpt.Agent) (*memgpt.Event, error) {
	events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: a.Tenant, Thread: store.TidyThreadID(a.ID), Limit: 1})
	if err != nil || len(events) == 0 {
		return nil, err
	}
	return &events[0], nil
}

// tidyBegun reports whether an event of tidying is being run, or will be without another look.
func tidyBegun(e *memgpt.Event) bool {
	return e.Begun || e.Step > 0 || e.Timer != nil && e.Timer.Rung
}

// tidyCommit returns the commit that sets or moves the event, and makes the conversation where it is the first.
func (h *Host) tidyCommit(ctx context.Context, a *memgpt.Agent, e *memgpt.Event, due time.Time, why string) (*store.Commit, error) {
	now := h.cfg.Now()
	if e != nil {
		moved, timer := *e, *e.Timer
		timer.For, timer.Wait, timer.Seen = due, why, now
		moved.Due, moved.Timer = due, &timer
		return &store.Commit{Events: []memgpt.Event{moved}}, nil
	}
	c := &store.Commit{Events: []memgpt.Event{store.TidyEvent(a, h.cfg.NewID, now, due, why)}}
	threads, err := h.cfg.Store.Threads(ctx, a.Tenant, a.ID)
	if err != nil {
		return nil, err
	}
	th := memgpt.Thread{ID: store.TidyThreadID(a.ID), Tenant: a.Tenant, Agent: a.ID, Name: store.TidyThread, Next: 1, Created: now}
	for i := range threads {
		if threads[i].ID == th.ID {
			return c, nil
		}
		if threads[i].Name == th.Name { // a user's conversation has the name
			th.Name += " " + th.ID[len("conv-"):][:8]
		}
	}
	c.Threads = []memgpt.Thread{th}
	return c, nil
}

// judgeTidy decides on the event of tidying whose time has come: its turn is counted and begins, or it is put off, or dropped.
// It reports whether there is nothing to run.
func (h *Host) judgeTidy(ctx context.Context, w *store.Work) (later bool, err error) {
	a := &w.State.Agent
	var after *memgpt.Event
	err = h.withTidied(ctx, a, func(t *store.Tidied) (*store.Commit, error) {
		e, err := h.tidyPending(ctx, a)
		if err != nil || e == nil || e.ID != w.Event.ID {
			return nil, err
		}
		due, why := time.Time{}, ""
		if a.Tidy.On {
			if due, why, err = h.tidyDue(ctx, a, t); err != nil {
				return nil, err
			}
		}
		now := h.cfg.Now()
		lease := w.Lease
		lease.Until = now.Add(h.cfg.LeaseTTL)
		if due.IsZero() {
			turn := w.Turn
			turn.State, turn.Ended = memgpt.TurnWithdrawn, now
			return &store.Commit{Lease: &lease, Consume: []string{e.ID}, Turns: []memgpt.Turn{turn}}, nil
		}
		c, err := h.tidyCommit(ctx, a, e, due, why)
		if err != nil {
			return nil, err
		}
		c.Lease = &lease
		if !due.After(now) {
			c.Events[0].Timer.Rung = true
			if day := now.In(a.Location()).Format(time.DateOnly); t.Day != day {
				t.Day, t.Turns = day, 0
			}
			t.Turns++
			after = &c.Events[0]
		}
		return c, nil
	})
	if err != nil {
		return false, memgpt.Errorf(memgpt.CodeOf(err), "judge memory work: %w", err)
	}
	if after != nil {
		w.Event = *after
	}
	h.wakeClock()
	return after == nil, nil
}

// waitsForUser reports whether tidying is not to begin now, since the agent serves a user, and puts it off then.
func (h *Host) waitsForUser(ctx context.Context, c *conversation) (bool, error) {
	h.mu.Lock()
	c.aside = false
	h.mu.Unlock()
	events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: c.tenant, Agent: c.agent, Until: h.cfg.Now()})
	if err != nil {
		return false, memgpt.Errorf(memgpt.CodeOf(err), "read the inbox: %w", err)
	}
	for i := range events {
		if events[i].Thread != c.thread && servesUser(&events[i]) {
			h.standAside(c)
			return true, nil
		}
	}
	return false, nil
}

// servesUser reports whether an event that is due is a user's, or its turn runs.
func servesUser(e *memgpt.Event) bool {
	return e.Type == memgpt.EventUser || e.Type == memgpt.EventLogin || e.Begun || e.Step > 0
}

// standAside puts tidying off until nobody waits for the agent.
func (h *Host) standAside(c *conversation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.wanted = true
	h.park(c, h.cfg.Now().Add(tidyPace))
}

// cutTidying stops the tidying of an agent for an event of another of its conversations. Callers hold h.mu.
func (h *Host) cutTidying(e *memgpt.Event) {
	c := h.convs[convKey{e.Tenant, store.TidyThreadID(e.Agent)}]
	if c == nil || c.thread == e.Thread || !c.running || c.aside || !servesUser(e) {
		return
	}
	c.aside = true
	if c.current != nil && c.cancel != nil {
		c.cancel(errAside)
	}
}

// cutElsewhere stops tidying for users that other processes serve, where this host doesn't look at all events.
func (h *Host) cutElsewhere(ctx context.Context) error {
	h.mu.Lock()
	var running []*conversation
	for _, c := range h.convs {
		if c.running && c.tidies() {
			running = append(running, c)
		}
	}
	h.mu.Unlock()
	for _, c := range running {
		events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: c.tenant, Agent: c.agent, Until: h.cfg.Now()})
		if err != nil {
			return err
		}
		h.mu.Lock()
		for i := range events {
			h.cutTidying(&events[i])
		}
		h.mu.Unlock()
	}
	return nil
}

// afterTurn sees to tidying when a turn of the agent has ended: what it needs is set, and what stood aside goes on.
func (h *Host) afterTurn(ctx context.Context, c *conversation, a *memgpt.Agent) {
	if a.Tidy.On {
		h.report(h.ensureTidy(context.WithoutCancel(ctx), a))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	tidy := h.convs[convKey{c.tenant, store.TidyThreadID(c.agent)}]
	if _, parked := h.parked[tidy]; parked && tidy != c && tidy.aside {
		tidy.retryAt = h.cfg.Now()
		h.kickClock()
	}
}

// Tidy has an agent's memory tidied at once, whatever its settings are, and returns the turn that does it; nil where nothing is
// new. Budgets hold. Where a user is served, it begins after that.
func (h *Host) Tidy(ctx context.Context, a memgpt.Agent) (*Turn, error) {
	var event *memgpt.Event
	err := h.withTidied(ctx, &a, func(t *store.Tidied) (*store.Commit, error) {
		event = nil
		e, err := h.tidyPending(ctx, &a)
		if err != nil || e != nil && tidyBegun(e) {
			event = e
			return nil, err
		}
		fresh, err := h.tidyFresh(ctx, &a, t, h.cfg.Now())
		if err != nil || !fresh.any {
			return nil, err
		}
		c, err := h.tidyCommit(ctx, &a, e, h.cfg.Now(), tidyByHand)
		if err == nil {
			c.Events[0].Timer.Rung = true
			event = &c.Events[0]
		}
		return c, err
	})
	if err != nil || event == nil {
		return nil, err
	}
	t, err := h.Attach(ctx, a.Tenant, event.Turn)
	if err == nil {
		h.tryElsewhere(t)
	}
	return t, err
}

// TidyDue says when an agent's memory is tidied next, and why; zero where nothing is new, or it isn't to be.
func (h *Host) TidyDue(ctx context.Context, a memgpt.Agent) (due time.Time, why string, err error) {
	if !a.Tidy.On {
		return due, "", nil
	}
	record, err := h.cfg.Store.Record(ctx, a.Tenant, store.TidyKind, a.ID)
	_, t, err := store.ReadTidied(&a, record, err)
	if err != nil {
		return due, "", err
	}
	return h.tidyDue(ctx, &a, &t)
}

// watchUsers sees to it that users whom other processes serve are noticed while memory is tidied here.
func (h *Host) watchUsers() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.startClock()
	h.kickClock()
}
