package host

import (
	"context"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// Bounds of timers.
const (
	lateAfter   = 5 * time.Minute // a time is missed when nothing ran for so long: turns that were in the way are no downtime
	mostCatchUp = 100             // missed times that catch_up=all delivers
	dayTurns    = 48              // default of Timers.Turns
	ringTries   = 16              // conflicts with other conversations of the agent
)

// ringing is one attempt to change an agent's timers.
type ringing struct {
	now   time.Time
	rings store.Rings
}

// withRings commits a change of an agent's timers together with its record of rings, so that of two changes at once only one
// happens and the other is made again from what is there then. Nil is no change.
func (h *Host) withRings(ctx context.Context, a *memgpt.Agent, change func(r *ringing) (*store.Commit, error)) error {
	for try := 1; ; try++ {
		record, err := h.cfg.Store.Record(ctx, a.Tenant, store.RingsKind, a.ID)
		r := ringing{now: h.cfg.Now()}
		record, r.rings, err = store.ReadRings(a, record, err)
		if err != nil {
			return memgpt.Errorf(memgpt.CodeOf(err), "read the timers of agent %s: %w", a.Name, err)
		}
		c, err := change(&r)
		if err != nil || c == nil {
			return err
		}
		if record.Data, err = r.rings.JSON(); err != nil {
			return err
		}
		c.Now, c.Records = r.now, append(c.Records, record)
		if _, err = h.cfg.Store.Commit(ctx, c); memgpt.CodeOf(err) != memgpt.CodeConflict || try == ringTries {
			return err
		}
	}
}

// stillPending returns an event as the inbox has it; nil where it has it no more.
func (h *Host) stillPending(ctx context.Context, e *memgpt.Event) (*memgpt.Event, error) {
	events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: e.Tenant, Thread: e.Thread})
	if err != nil {
		return nil, memgpt.Errorf(memgpt.CodeOf(err), "read the inbox: %w", err)
	}
	for i := range events {
		if events[i].ID == e.ID {
			return &events[i], nil
		}
	}
	return nil, nil
}

// verdict is what becomes of a timer's event whose time has come.
type verdict struct {
	text    string    // what the model is told; "" doesn't wake it, and the event waits until
	until   time.Time // this; zero drops it
	why     string    // it waits
	next    time.Time // For of what waits, where that is another time of its schedule
	rungFor time.Time // time that is delivered
	again   time.Time // when the schedule rings next; zero is never
	mark    *store.Record
}

// Why heartbeats wait that other settings may have come sooner.
const (
	nothingNew  = "nothing new"
	afterTurn   = "an interval after the last turn"
	settingsNow = "as the settings are now"
)

// wait is the verdict on an event that is put off.
func wait(until time.Time, why string) verdict { return verdict{until: until, why: why} }

// ring decides on the timer's event in hand, in one commit: the model is woken, and a schedule's next event set; or the
// event is put off, or dropped. It reports whether there is nothing to run.
func (h *Host) ring(ctx context.Context, c *conversation, w *store.Work) (later bool, err error) {
	a := &w.State.Agent
	var after memgpt.Event
	err = h.withRings(ctx, a, func(r *ringing) (*store.Commit, error) {
		later = true
		e, err := h.stillPending(ctx, &w.Event)
		if e == nil || err != nil { // it was cancelled
			return nil, err
		}
		v, err := h.judge(ctx, w, e, r)
		if err != nil {
			return nil, err
		}
		later = v.text == ""
		lease := w.Lease
		lease.Until = r.now.Add(h.cfg.LeaseTTL)
		commit := v.commit(&w.State.Thread, e, r)
		commit.Lease = &lease
		if len(commit.Consume) > 0 {
			turn := w.Turn
			turn.State, turn.Ended = memgpt.TurnWithdrawn, r.now
			commit.Turns = []memgpt.Turn{turn}
		} else {
			after = commit.Events[0]
		}
		return commit, nil
	})
	if err != nil {
		return false, memgpt.Errorf(memgpt.CodeOf(err), "ring a timer: %w", err)
	}
	if !later {
		w.Event = after
	}
	h.wakeClock()
	return later, nil
}

// judge decides on a timer's event.
func (h *Host) judge(ctx context.Context, w *store.Work, e *memgpt.Event, r *ringing) (verdict, error) {
	if isBeat(e) {
		return h.judgeBeat(ctx, w, e, r)
	}
	return judgeSchedule(&w.State.Agent, e, r), nil
}

// judgeBeat decides on a heartbeat. One that has nothing to tell asks no model.
func (h *Host) judgeBeat(ctx context.Context, w *store.Work, e *memgpt.Event, r *ringing) (verdict, error) {
	a := &w.State.Agent
	next := nextBeat(a, r.now)
	if next.IsZero() {
		return verdict{}, nil
	}
	if t := e.Timer; t != nil && t.Wait == "" {
		if due := nextBeat(a, t.Seen); due.After(r.now) { // the settings were changed meanwhile
			return wait(due, settingsNow), nil
		}
	}
	due, why, err := h.beatTime(ctx, a, &w.State.Thread)
	if err != nil || due.After(r.now) {
		return wait(due, why), err
	}
	if end := quietEnd(a, r.now); end.After(r.now) {
		return wait(end, "quiet hours"), nil
	}
	if a.Timers.CatchUp == CatchUpSkip && r.now.Sub(e.Due) > lateAfter {
		return wait(next, ""), nil
	}
	news, err := h.news(ctx, w, e)
	if err != nil || news.text == "" {
		return wait(next, nothingNew), err
	}
	if end := r.spend(a); !end.IsZero() {
		return wait(end, spentText(a)), nil
	}
	return verdict{text: news.text, mark: &news.mark, rungFor: e.Due}, nil
}

// Ways to catch up with times of a repeating schedule at which nothing could run (memgpt.Timers.CatchUp). A single reminder
// is always delivered, however late, and heartbeats never pile up.
const (
	CatchUpSkip = "skip" // they are left out
	CatchUpOnce = "once" // the last is delivered, and tells how many were missed
	CatchUpAll  = "all"  // each is delivered, the last hundred at most
)

// judgeSchedule decides on the event of a schedule.
func judgeSchedule(a *memgpt.Agent, e *memgpt.Event, r *ringing) verdict {
	t, zone := e.Timer, a.Location()
	line, err := calendar.ParseCron(t.Cron)
	repeats := t.Cron != "" && err == nil
	if repeats || a.Timers.QuietAll {
		if end := quietEnd(a, r.now); end.After(r.now) {
			return wait(end, "quiet hours")
		}
	}
	m := missed{first: t.For, last: t.For}
	if repeats {
		m = timesOf(line, t.For, r.now, zone, a.Timers.CatchUp)
		ready := e.Due
		if m.last.After(ready) {
			ready = quietEnd(a, m.last)
		}
		if a.Timers.CatchUp == CatchUpSkip && r.now.Sub(ready) > lateAfter {
			return verdict{until: m.next, next: m.next}
		}
	}
	if end := r.spend(a); !end.IsZero() {
		return wait(end, spentText(a))
	}
	return verdict{text: ringText(e, m, r.now, zone), rungFor: m.last, again: m.next}
}

// missed are the times of a schedule up to now.
type missed struct {
	first time.Time // that was to be delivered
	last  time.Time // that is
	times int       // how many before it are not
	next  time.Time // zero is never
}

// timesOf goes over a schedule's times from one to now. Where all are to be delivered it stops at the first, unless they are
// too many.
func timesOf(line *calendar.Cron, from, now time.Time, zone *time.Location, catchUp string) missed {
	m := missed{first: from, last: from, next: line.Next(from, zone)}
	ahead := []time.Time{from}
	for !m.next.IsZero() && !m.next.After(now) {
		m.last, m.times = m.next, m.times+1
		m.next = line.Next(m.next, zone)
		if ahead = append(ahead, m.last); len(ahead) > mostCatchUp {
			ahead = ahead[1:]
		}
	}
	if catchUp == CatchUpAll && m.times > 0 {
		m.times -= len(ahead) - 1
		m.last, m.next = ahead[0], line.Next(ahead[0], zone)
	}
	return m
}

// quietEnd is when the agent's quiet hours end in which a time lies; the time itself outside of them. Hours that can't be
// read are none.
func quietEnd(a *memgpt.Agent, t time.Time) time.Time {
	hours, err := calendar.ParseHours(a.Timers.Quiet)
	if err != nil {
		return t
	}
	return hours.End(t, a.Location())
}

// spend takes a turn of the agent's day. Where none is left, it returns when the next day begins.
func (r *ringing) spend(a *memgpt.Agent) time.Time {
	local := r.now.In(a.Location())
	if day := local.Format(time.DateOnly); r.rings.Day != day {
		r.rings = store.Rings{Day: day}
	}
	if r.rings.Turns >= orDefault(a.Timers.Turns, dayTurns) {
		next, _ := calendar.Local(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, local.Location())
		if !next.After(r.now) { // midnight came twice
			next = r.now.Add(time.Hour)
		}
		return next
	}
	r.rings.Turns++
	return time.Time{}
}

// commit returns what a verdict comes to.
func (v *verdict) commit(th *memgpt.Thread, e *memgpt.Event, r *ringing) *store.Commit {
	now, t := *e, memgpt.Timer{For: e.Due, Seen: r.now}
	if e.Timer != nil {
		t = *e.Timer
	}
	now.Timer = &t
	c := &store.Commit{}
	if v.text == "" && v.until.IsZero() {
		c.Consume = []string{e.ID}
		return c
	}
	if v.text == "" {
		now.Due, t.Wait, t.Seen = v.until, v.why, r.now
		if !v.next.IsZero() {
			t.For = v.next
		}
		c.Events = []memgpt.Event{now}
		return c
	}
	note, was := e.Message, t.For
	t.Rung, t.Wait, t.For = true, "", v.rungFor
	now.Message = memgpt.TextMessage(memgpt.RoleSystem, note.Origin, v.text)
	now.Message.Type, now.Created = memgpt.EventTimer, r.now // as the time that the model is shown
	c.Events = []memgpt.Event{now}
	if !v.again.IsZero() {
		again := memgpt.Timer{Schedule: t.Schedule, Cron: t.Cron, Set: t.Set, For: v.again, After: t.After, Seen: r.now}
		if v.rungFor.Equal(was) { // else it tells of times that may come yet, where the clock is wrong
			again.After = was
		}
		c.Events = append(c.Events, store.ScheduleEvent(th, r.now, again, note))
	}
	if v.mark != nil {
		c.Records = []store.Record{*v.mark}
	}
	return c
}

// CancelSchedule takes a schedule of the agent back for good: by the schedule's ID. It returns the event that would have
// rung. A turn that it caused and that runs already goes on.
func (h *Host) CancelSchedule(ctx context.Context, a memgpt.Agent, id string) (memgpt.Event, error) {
	var gone memgpt.Event
	err := h.withRings(ctx, &a, func(r *ringing) (*store.Commit, error) {
		events, err := h.cfg.Store.Events(ctx, store.EventRange{Tenant: a.Tenant, Agent: a.ID})
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if store.IsSchedule(&e) && e.Timer.Schedule == id {
				gone = e
				return &store.Commit{Consume: []string{e.ID}}, nil
			}
		}
		return nil, memgpt.Errorf(memgpt.CodeNotFound, "cancel schedule %s: agent %s has none of that id that waits", id, a.Name)
	})
	return gone, err
}
