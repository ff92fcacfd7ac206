package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/storetest"
)

// withSchedules offers the functions that set timers.
func (e *env) withSchedules() {
	e.t.Helper()
	e.reconfigure(func() { e.config.System = memtool.SystemWithSchedules })
}

// waitingSchedules returns the events of schedules that the store holds.
func (e *env) waitingSchedules() []memgpt.Event {
	e.t.Helper()
	events, err := e.base.Events(e.t.Context(), store.EventRange{Agent: e.agent.ID})
	must(e.t, err)
	return slices.DeleteFunc(events, func(ev memgpt.Event) bool { return !store.IsSchedule(&ev) })
}

// lastResults returns the results of the newest step of the log.
func (e *env) lastResults() (list []memgpt.Result) {
	for _, entry := range slices.Backward(e.log()) {
		res, ok := entry.Message.Result()
		if !ok {
			break
		}
		list = append([]memgpt.Result{res}, list...)
	}
	return list
}

func TestSchedulesOfTheModel(t *testing.T) {
	m := script.Of(script.Calls(script.Call("schedule", "note", "water the ferns", "in", "3 days"),
		script.Call("schedule", "note", "stand-up", "cron", "0 9 * * 1-5"), script.Call("list_schedules"), script.Say("ok")))
	e := newEnv(t, m, options{zone: "Europe/Berlin"})
	e.withSchedules()
	woken := 0
	e.arrive = func(w *store.Work) { w.Wake = func() { woken++ } }
	before := e.now
	e.say("remind yourself")
	got := e.waitingSchedules()
	if len(got) != 2 || woken != 1 {
		t.Fatalf("%d schedules, woken %d times: %+v", len(got), woken, e.lastResults())
	}
	ferns, work := got[0], got[1]
	if ferns.Due.Before(before.AddDate(0, 0, 3)) || ferns.Due.After(e.now.AddDate(0, 0, 3)) || ferns.Message.Said() != "water the ferns" ||
		ferns.Timer.Cron != "" || ferns.Type != memgpt.EventTimer || !ferns.Timer.Set.Equal(e.now) {
		t.Errorf("%+v", ferns)
	}
	if work.Timer.Cron != "0 9 * * 1-5" || work.Due.UTC().Format(time.RFC3339) != "2026-04-07T07:00:00Z" {
		t.Errorf("%+v", work)
	}
	list := e.lastResults()[2].Text
	if !strings.Contains(list, "2 schedules") || strings.Index(list, "stand-up") > strings.Index(list, "water the ferns") {
		t.Errorf("a step doesn't see what it scheduled, the next first: %s", list)
	}
	id := ferns.Timer.Schedule
	m.Add(script.Calls(script.Call("cancel_schedule", "id", id), script.Call("cancel_schedule", "id", id, "request_heartbeat", false),
		script.Call("schedule", "note", "short-lived", "in", "1h"), script.Call("cancel_schedule", "id", "schedule-none"), script.Say("done")), script.Say("so it is"))
	e.say("never mind the ferns")
	if got := e.waitingSchedules(); len(got) != 2 || got[0].ID != work.ID || got[1].Message.Said() != "short-lived" {
		t.Errorf("%+v", got)
	}
}

// TestScheduleIsOfItsStep: a schedule and its cancelling in one step come to nothing, and a call that fails sets none.
func TestScheduleIsOfItsStep(t *testing.T) {
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		switch n {
		case 0:
			return script.Calls(script.Call("schedule", "note", "a", "in", "1h").Heartbeat())
		case 1:
			last := req.Messages[len(req.Messages)-1].Said()
			id := "schedule-" + strings.Split(strings.Split(last, "schedule-")[1], ":")[0]
			return script.Calls(script.Call("cancel_schedule", "id", id), script.Call("schedule", "note", strings.Repeat("x", 1001), "in", "1h"))
		}
		return script.Say("ok")
	}})
	e := newEnv(t, m, options{})
	e.withSchedules()
	e.say("go")
	if got := e.waitingSchedules(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	records, err := e.base.Records(t.Context(), "", store.RingsKind)
	if must(t, err); len(records) != 1 || records[0].Version != 1 {
		t.Errorf("cancelling is not tied to the agent's record: %+v", records)
	}
}

// TestSchedulesAreBounded: an agent can't have more than its hundred.
func TestSchedulesAreBounded(t *testing.T) {
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if n%2 == 1 {
			return script.Say("ok")
		}
		var calls []script.Reply
		for i := range 12 {
			calls = append(calls, script.Call("schedule", "note", fmt.Sprint(n, " ", i), "in", "1h"))
		}
		return script.Calls(calls...).Heartbeat()
	}})
	e := newEnv(t, m, options{window: 60_000})
	e.withSchedules()
	for range 10 {
		e.say("more")
	}
	if got := e.waitingSchedules(); len(got) != 100 {
		t.Errorf("%d schedules", len(got))
	}
}

// TestScheduleAfterAConflict: a step that is refused once sets its schedule once.
func TestScheduleAfterAConflict(t *testing.T) {
	m := script.Of(script.Calls(script.Call("core_memory_append", "label", "human", "content", "ours"),
		script.Call("schedule", "note", "once", "in", "1h"), script.Say("done")))
	e := newEnv(t, m, options{})
	e.store = &rival{Store: e.base}
	e.configure(m, options{})
	e.withSchedules()
	if said, turn := e.say("go"); len(said) != 1 || turn.Steps != 1 || e.block("human") != "theirs\nours" {
		t.Errorf("%q %+v %q", said, turn, e.block("human"))
	}
	got := e.waitingSchedules()
	if len(got) != 1 || !strings.Contains(e.log()[3].Message.Said(), got[0].Timer.Schedule) {
		t.Errorf("%d schedules; the model knows of %q", len(got), e.log()[3].Message.Said())
	}
}

// ringing is a store on which a schedule rings in another process just before the commit that cancels it.
type ringing struct {
	store.Store
	rang bool
}

func (s *ringing) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	at := slices.IndexFunc(c.Records, func(r store.Record) bool { return r.Kind == store.RingsKind })
	if at >= 0 && !s.rang {
		s.rang = true
		events, err := s.Events(ctx, store.EventRange{})
		if err != nil {
			return store.Committed{}, err
		}
		for _, e := range events {
			if store.IsSchedule(&e) {
				t := *e.Timer
				t.Rung, e.Timer = true, &t
				if _, err := s.Store.Commit(ctx, &store.Commit{Now: c.Now, Events: []memgpt.Event{e}, Records: c.Records[at : at+1]}); err != nil {
					return store.Committed{}, err
				}
			}
		}
	}
	return s.Store.Commit(ctx, c)
}

// TestCancelOfAScheduleThatRings: the model is told that it came too late, and the event stays.
func TestCancelOfAScheduleThatRings(t *testing.T) {
	m := script.Of(script.Calls(script.Call("schedule", "note", "soon", "in", "1h"), script.Say("set")))
	e := newEnv(t, m, options{})
	e.store = &ringing{Store: e.base}
	e.configure(m, options{})
	e.withSchedules()
	e.say("go")
	id := e.waitingSchedules()[0].Timer.Schedule
	m.Add(script.Calls(script.Call("cancel_schedule", "id", id), script.Say("cancelled")), script.Say("too late"))
	if said, _ := e.say("cancel it"); !slices.Contains(said, "too late") {
		t.Errorf("%q", said)
	}
	events, err := e.base.Events(t.Context(), store.EventRange{})
	if must(t, err); len(events) != 1 || !events[0].Timer.Rung {
		t.Errorf("%+v", events)
	}
}

// TestScheduleAtACrash: whatever commit the process dies at, before or after it, a schedule is set once.
func TestScheduleAtACrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := int64(1); ; at++ {
			faulty := &storetest.Faulty{At: at, Commits: true, After: after}
			m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
				if _, calls, _ := sinceUser(req); calls > 0 {
					return script.Say("done")
				}
				return script.Calls(script.Call("schedule", "note", "once", "in", "1h")).Heartbeat()
			}})
			e := newEnv(t, m, options{wrap: func(s store.Store) store.Store { faulty.Inner = s; return faulty }})
			e.withSchedules()
			err := e.deliverDue("go")
			if !faulty.Dead() {
				must(t, err)
				break
			}
			e.store = e.base
			e.configure(m, options{})
			e.withSchedules()
			must(t, e.deliverDue("go"))
			if got := e.waitingSchedules(); len(got) != 1 {
				t.Errorf("died at commit %d: %d schedules", at, len(got))
			}
		}
	}
}

// deliverDue accepts a message once, and runs what is due.
func (e *env) deliverDue(text string) error {
	ctx := e.t.Context()
	e.now = e.now.Add(2 * time.Minute) // the lease of whoever died has ended
	ev := memgpt.Event{ID: e.newID("event"), Agent: e.agent.ID, Thread: e.thread, Type: memgpt.EventUser, Due: e.now, Created: e.now,
		Key: text, Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text), Turn: e.newID("turn")}
	done, err := e.store.Commit(ctx, &store.Commit{Now: e.now, Events: []memgpt.Event{ev},
		Acquire: &store.Lease{Thread: e.thread, Until: e.now.Add(time.Minute)}})
	if err != nil {
		return err
	}
	e.lease = done.Lease
	for {
		pending, err := e.store.Events(ctx, store.EventRange{Thread: e.thread, Until: e.now})
		if err != nil || len(pending) == 0 {
			return err
		}
		if _, err := e.handle(ctx, pending[0]); err != nil {
			return err
		}
	}
}

// TestForgetSchedules: a note that waits is forgotten, and so is what a heartbeat quoted, whether it ran or waits.
func TestForgetSchedules(t *testing.T) {
	m := script.Of(script.Calls(script.Call("schedule", "note", "use zeta4711 on the boat shed", "cron", "0 9 * * *"), script.Say("ok")), script.Say("fine"))
	e := newEnv(t, m, options{})
	e.withSchedules()
	e.say("my words of zeta9922 are long and nobody else says them so")
	quoted := e.log()[0].ID
	head := "Timer heartbeat. Left main context since then: 1 message; the first of them:\n" + quoted + " (user): my words of zeta9922 are lo…"
	m.Add(script.Call("yield"))
	e.system(memgpt.EventTimer, head)
	_, err := e.accept(memgpt.EventTimer, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, head))
	must(t, err)
	e.forget(kernel.Forgetting{Term: "zeta4711"})
	got := e.waitingSchedules()
	if len(got) != 1 || strings.Contains(got[0].Message.Said(), "zeta4711") || got[0].Timer.Cron == "" {
		t.Errorf("%+v", got)
	}
	e.forget(kernel.Forgetting{Messages: []string{quoted}})
	for _, word := range []string{"zeta4711", "zeta9922"} {
		if found := e.fileBytes(word); len(found) > 0 {
			t.Errorf("%s: %v", word, found)
		}
	}
}
