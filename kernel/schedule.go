package kernel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// Bounds of schedules: each costs a turn, and its note is in the prompt of that.
const (
	maxSchedules = 100  // of an agent
	maxNote      = 1000 // characters
)

// timerChanges are the schedules that a step sets and cancels: part of its one commit.
type timerChanges struct {
	set       []memgpt.Event
	cancelled []string      // IDs of events
	rings     *store.Record // of the agent, where something is cancelled
}

// add puts the changes into the step's commit.
func (t *timerChanges) add(c *store.Commit) {
	c.Events = append(c.Events, t.set...)
	c.Consume = append(c.Consume, t.cancelled...)
	if len(t.cancelled) > 0 {
		c.Records = append(c.Records, *t.rings)
	}
}

// schedules returns the events of the agent's schedules as the step under way has them, in the order of their times.
func (r *run) schedules(ctx context.Context) ([]memgpt.Event, error) {
	all, err := r.k.cfg.Store.Events(ctx, store.EventRange{Tenant: r.st.Thread.Tenant, Agent: r.st.Agent.ID})
	if err != nil {
		return nil, fmt.Errorf("read the schedules: %w", err)
	}
	all = append(all, r.pend.timers.set...)
	all = slices.DeleteFunc(all, func(e memgpt.Event) bool {
		return !store.IsSchedule(&e) || slices.Contains(r.pend.timers.cancelled, e.ID)
	})
	slices.SortStableFunc(all, func(a, b memgpt.Event) int {
		return cmp.Or(a.Timer.For.Compare(b.Timer.For), cmp.Compare(a.Timer.Schedule, b.Timer.Schedule))
	})
	return all, nil
}

// Schedule adds the event of a schedule to the step.
func (m *memory) Schedule(ctx context.Context, p tool.Plan) (tool.Reminder, error) {
	r := m.run
	note := strings.TrimSpace(memgpt.CleanText(p.Note))
	if n := memgpt.Runes(note); n > maxNote {
		return tool.Reminder{}, fmt.Errorf("nothing was scheduled: the note has %d characters and may have %d; write it shorter", n, maxNote)
	}
	there, err := r.schedules(ctx)
	if err != nil {
		return tool.Reminder{}, err
	}
	if len(there) >= maxSchedules {
		return tool.Reminder{}, fmt.Errorf("nothing was scheduled: there are %d schedules, and there may be no more; cancel_schedule takes"+
			" one back, list_schedules shows them", len(there))
	}
	now := r.k.cfg.Now()
	e := store.ScheduleEvent(&r.st.Thread, now, memgpt.Timer{Schedule: r.k.cfg.NewID("schedule"), Cron: p.Cron, Set: now, For: p.For, Seen: now},
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginModel, note))
	r.pend.timers.set = append(r.pend.timers.set, e)
	return reminderOf(&e, r.st.Thread.Name), nil
}

func reminderOf(e *memgpt.Event, thread string) tool.Reminder {
	return tool.Reminder{ID: e.Timer.Schedule, Note: e.Message.Said(), Thread: thread, Cron: e.Timer.Cron, Set: e.Timer.Set, For: e.Timer.For,
		Wait: e.Timer.Wait}
}

// Schedules lists the agent's schedules, those of the step under way too.
func (m *memory) Schedules(ctx context.Context) ([]tool.Reminder, error) {
	events, err := m.run.schedules(ctx)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	names, err := m.run.threadNames(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]tool.Reminder, 0, len(events))
	for i := range events {
		list = append(list, reminderOf(&events[i], names[events[i].Thread]))
	}
	return list, nil
}

// CancelSchedule consumes the event of a schedule. The agent's record of rings is written with it, so that the step is done
// anew where the schedule rings meanwhile.
func (m *memory) CancelSchedule(ctx context.Context, id string) (tool.Reminder, error) {
	r, t := m.run, &m.run.pend.timers
	id = strings.TrimSpace(id)
	record, err := r.k.cfg.Store.Record(ctx, r.st.Agent.Tenant, store.RingsKind, r.st.Agent.ID)
	if record, _, err = store.ReadRings(&r.st.Agent, record, err); err != nil {
		return tool.Reminder{}, fmt.Errorf("read the schedules: %w", err)
	}
	events, err := r.schedules(ctx)
	if err != nil {
		return tool.Reminder{}, err
	}
	i := slices.IndexFunc(events, func(e memgpt.Event) bool { return e.Timer.Schedule == id })
	if i < 0 {
		return tool.Reminder{}, fmt.Errorf("there is no schedule with the id %q, or its time has come; list_schedules shows the ids",
			memgpt.CutText(id, 80))
	}
	e := &events[i]
	if own := slices.IndexFunc(t.set, func(s memgpt.Event) bool { return s.ID == e.ID }); own >= 0 {
		t.set = slices.Delete(slices.Clone(t.set), own, own+1)
	} else {
		t.cancelled = append(t.cancelled, e.ID)
		if t.rings == nil {
			t.rings = &record
		}
	}
	return reminderOf(e, ""), nil
}
