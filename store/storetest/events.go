package storetest

import (
	"fmt"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

func eventIDs(list ...memgpt.Event) []string {
	return idsOf(list, func(ev memgpt.Event) string { return ev.ID })
}

func testEventOrder(e *env) {
	a, t := e.agent("", "a1")
	t2 := e.thread(a, "t-2")
	late := e.event(t, e.now.Add(time.Hour), "late")
	late.Timer = &memgpt.Timer{Schedule: "schedule-1", Cron: "0 9 * * *", Set: e.now.Add(-time.Hour), For: e.now, Wait: "quiet hours",
		After: e.now.Add(-2 * time.Hour), Seen: e.now, Rung: true}
	late.Mail = &memgpt.Mail{Thread: "t-9", Call: "m1/c1", Answers: "m2/c2", Chain: []string{"a1", "a2"}, Hops: 3}
	one, two := e.event(t, e.now, "one"), e.event(t, e.now.Add(-time.Hour), "two")
	other := e.event(t2, e.now, "other")
	e.commit(&store.Commit{Events: []memgpt.Event{late, one}})
	e.commit(&store.Commit{Events: []memgpt.Event{other}})
	e.now = e.now.Add(-time.Minute) // a clock that goes back doesn't change the order
	three := e.event(t, e.now.Add(-2*time.Hour), "three")
	e.commit(&store.Commit{Events: []memgpt.Event{two}})
	e.commit(&store.Commit{Events: []memgpt.Event{three}})
	// Events are handled in the order of acceptance, whenever they are due.
	e.same("all of the conversation", e.events(store.EventRange{Thread: t.ID}), eventIDs(late, one, two, three))
	e.same("all", e.events(store.EventRange{}), eventIDs(late, one, other, two, three))
	e.same("due", e.events(store.EventRange{Thread: t.ID, Until: e.now.Add(2 * time.Minute)}), eventIDs(one, two, three))
	got := must(e.s.Events(e.ctx, store.EventRange{Thread: t.ID}))(e)
	for i := range got {
		if i > 0 && got[i].Order <= got[i-1].Order {
			e.Errorf("orders are %d and then %d", got[i-1].Order, got[i].Order)
		}
	}
	late.Order = got[0].Order
	e.same("event", got[0], late)
	one.Due = e.now.Add(30 * time.Minute) // one that was due is put off, as that of a turn that waits
	e.commit(&store.Commit{Events: []memgpt.Event{one}, Consume: []string{two.ID, three.ID, other.ID}})
	e.same("due, but for one put off", e.events(store.EventRange{Until: e.now.Add(2 * time.Minute)}), eventIDs())
	if due := must(e.s.NextDue(e.ctx))(e); !due.Equal(one.Due) {
		e.Errorf("the next event is due at %v, want %v", due, one.Due)
	}
	e.same("in their order", e.events(store.EventRange{Until: e.now.Add(2 * time.Hour)}), eventIDs(late, one))
}

// testEventClasses: the inbox is in order of classes, and of arrival within each, also where an event changes its class.
func testEventClasses(e *env) {
	_, t := e.agent("", "a1")
	typed := func(typ memgpt.EventType, d memgpt.Delivery) memgpt.Event {
		ev := e.event(t, e.now, string(typ)+" "+string(d))
		ev.Type, ev.Delivery = typ, d
		return ev
	}
	timer, beat, notice := typed(memgpt.EventTimer, ""), typed(memgpt.EventHeartbeat, ""), typed(memgpt.EventNotice, "")
	alert, user, login := typed(memgpt.EventAlert, ""), typed(memgpt.EventUser, memgpt.DeliverQueue), typed(memgpt.EventLogin, "")
	agent, second := typed(memgpt.EventAgent, memgpt.DeliverSteer), typed(memgpt.EventUser, "")
	replace := typed(memgpt.EventNotice, memgpt.DeliverReplace)
	for _, ev := range []memgpt.Event{timer, agent, beat, notice, alert, user, login, second, replace} {
		e.commit(&store.Commit{Events: []memgpt.Event{ev}})
		e.now = e.now.Add(time.Second)
	}
	due := store.EventRange{Thread: t.ID, Until: e.now}
	e.same("inbox", e.events(due), eventIDs(replace, user, login, second, alert, notice, agent, beat, timer))
	beat.Begun = true
	timer.Step = 2
	e.commit(&store.Commit{Events: []memgpt.Event{beat}})
	e.commit(&store.Commit{Events: []memgpt.Event{timer}})
	e.same("with two that began", e.events(due), eventIDs(timer, beat, replace, user, login, second, alert, notice, agent))
	due.Limit = 3
	e.same("the first three", e.events(due), eventIDs(timer, beat, replace))
	got := must(e.s.Events(e.ctx, due))(e)
	for i, want := range []memgpt.Event{timer, beat, replace} {
		want.Order = got[i].Order
		e.same("event", got[i], want)
	}
}

func testEventRanges(e *env) {
	a, t := e.agent("", "a1")
	t2 := e.thread(a, "t-2")
	_, t3 := e.agent("", "a2")
	_, foreign := e.agent("y", "a1")
	var all []memgpt.Event
	for i, th := range []memgpt.Thread{t, t2, t3, foreign, t, t2, t3, foreign, t, t} {
		ev := e.event(th, e.now.Add(time.Duration(i-5)*time.Minute), fmt.Sprint(i))
		if i%4 == 0 {
			ev.Key = fmt.Sprint("key ", i)
		}
		all = append(all, ev)
		e.commit(&store.Commit{Events: []memgpt.Event{ev}})
	}
	for _, q := range []store.EventRange{
		{}, {Tenant: "y"}, {Tenant: "none"}, {AllTenants: true}, {AllTenants: true, Tenant: "none"}, {Agent: "a1"}, {Agent: "a2"},
		{Agent: "none"}, {Thread: t.ID}, {Thread: t.ID, Agent: "a2"}, {Thread: foreign.ID, Tenant: "y"}, {Thread: t.ID, AllTenants: true},
		{Key: "key 4"}, {Key: "key 4", Thread: t.ID}, {Key: "key 4", Thread: t2.ID}, {Key: "none"},
		{Until: e.now}, {Until: e.now.Add(-time.Minute), AllTenants: true}, {Until: e.now.Add(2 * time.Minute), Thread: t.ID},
		{Until: e.now.Add(-time.Hour)}, {Limit: 1}, {Limit: 3, AllTenants: true}, {Thread: t.ID, Limit: 2}, {Limit: 100},
	} {
		e.same(fmt.Sprintf("%+v", q), e.events(q), eventIDs(selectEvents(all, q)...))
	}
}

func selectEvents(all []memgpt.Event, q store.EventRange) (out []memgpt.Event) {
	for _, ev := range all {
		switch {
		case !q.AllTenants && ev.Tenant != q.Tenant, q.Agent != "" && ev.Agent != q.Agent, q.Thread != "" && ev.Thread != q.Thread,
			q.Key != "" && ev.Key != q.Key, !q.Until.IsZero() && ev.Due.After(q.Until), q.Limit > 0 && len(out) == q.Limit:
			continue
		}
		out = append(out, ev)
	}
	return out
}

func testEventReplaced(e *env) {
	_, t := e.agent("", "a1")
	one, two := e.event(t, e.now, "one"), e.event(t, e.now.Add(time.Hour), "two")
	one.Key = "k"
	e.commit(&store.Commit{Events: []memgpt.Event{one, two}})
	before := must(e.s.Events(e.ctx, store.EventRange{}))(e)
	one.Step, one.Message = 3, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "changed")
	two.Due = e.now
	if got := e.commit(&store.Commit{Events: []memgpt.Event{one, two}}); len(got.Duplicate) != 0 {
		e.Errorf("an event that replaces itself is called a duplicate: %+v", got)
	}
	after := must(e.s.Events(e.ctx, store.EventRange{Until: e.now}))(e)
	if len(after) != 2 || after[0].Order >= before[0].Order {
		e.Fatalf("a turn that began did not move up in the inbox: %+v, before %+v", after, before)
	}
	one.Order, two.Order = after[0].Order, before[1].Order
	e.same("events", after, []memgpt.Event{one, two})
	one.Due = e.now.Add(time.Hour)
	e.commit(&store.Commit{Events: []memgpt.Event{one}, Consume: []string{two.ID}})
	e.same("events", must(e.s.Events(e.ctx, store.EventRange{}))(e), []memgpt.Event{one})
	e.same("due", e.events(store.EventRange{Until: e.now}), []string{})
	if got := must(e.s.NextDue(e.ctx))(e); !got.Equal(one.Due) {
		e.Errorf("next is due at %v, want %v", got, one.Due)
	}
}

func testEventKeys(e *env) {
	a, t := e.agent("", "a1")
	t2 := e.thread(a, "t-2")
	keyed := func(t memgpt.Thread, key string) memgpt.Event {
		ev := e.event(t, e.now, key)
		ev.Key = key
		return ev
	}
	one := keyed(t, "k")
	e.same("first", len(e.commit(&store.Commit{Events: []memgpt.Event{one, keyed(t2, "k"), keyed(t, "")}}).Duplicate), 0)
	duplicate := func(what string, ev memgpt.Event) {
		e.Helper()
		fresh := keyed(t, "fresh "+what)
		got := e.commit(&store.Commit{Events: []memgpt.Event{ev, fresh}, Turns: []memgpt.Turn{{ID: e.id("turn"), Agent: a.ID, Thread: t.ID}}})
		if len(got.Duplicate) != 1 || got.Duplicate[0].ID != one.ID || got.Duplicate[0].Turn != one.Turn {
			e.Errorf("%s: duplicates are %+v, want %s", what, got.Duplicate, one.ID)
		}
		all := e.events(store.EventRange{Thread: t.ID})
		if slices.Contains(all, ev.ID) || !slices.Contains(all, fresh.ID) {
			e.Errorf("%s: pending are %v, want %s and not %s", what, all, fresh.ID, ev.ID)
		}
	}
	duplicate("pending", keyed(t, "k"))
	e.commit(&store.Commit{Consume: []string{one.ID}, Lease: e.lease(t)})
	duplicate("consumed", keyed(t, "k"))
	e.now = e.now.Add(23 * time.Hour)
	duplicate("nearly a day later", keyed(t, "k"))
	// Two of one commit are duplicates too.
	two, again := keyed(t, "twice"), keyed(t, "twice")
	got := e.commit(&store.Commit{Events: []memgpt.Event{two, again}})
	e.same("duplicates in one commit", eventIDs(got.Duplicate...), eventIDs(two))
}

func testEventKeyExpires(e *env) {
	_, t := e.agent("", "a1")
	keyed := func(key string) memgpt.Event {
		ev := e.event(t, e.now, key)
		ev.Key = key
		return ev
	}
	for i := range 20 { // enough that what is pruned in passing is pruned, and no more
		ev := keyed(fmt.Sprint("k", i))
		e.commit(&store.Commit{Events: []memgpt.Event{ev}})
		e.commit(&store.Commit{Consume: []string{ev.ID}})
		e.now = e.now.Add(2 * time.Hour)
	}
	for i := range 20 {
		age := time.Duration(20-i) * 2 * time.Hour
		again := keyed(fmt.Sprint("k", i))
		got := e.commit(&store.Commit{Events: []memgpt.Event{again}})
		if known := len(got.Duplicate) == 1; known != (age < 24*time.Hour) {
			e.Errorf("a key consumed %v ago: known is %v", age, known)
		}
	}
	// A key that is used again after a day is known again.
	e.same("reused key", len(e.commit(&store.Commit{Events: []memgpt.Event{keyed("k0")}}).Duplicate), 1)
}

func testConsume(e *env) {
	a, t := e.agent("", "a1")
	t2 := e.thread(a, "t-2")
	var list []memgpt.Event
	for i := range 6 {
		th := t
		if i%2 == 1 {
			th = t2
		}
		list = append(list, e.event(th, e.now.Add(time.Duration(i-3)*time.Hour), "x"))
	}
	e.commit(&store.Commit{Events: list})
	e.commit(&store.Commit{Consume: []string{list[0].ID}, Lease: e.lease(t)})
	e.commit(&store.Commit{Consume: []string{list[1].ID, "none"}})
	e.commit(&store.Commit{Consume: []string{list[5].ID}, Lease: e.lease(t2), Release: true})
	e.commit(&store.Commit{Consume: []string{list[0].ID}}) // once more does nothing
	e.same("pending", e.events(store.EventRange{}), eventIDs(list[2:5]...))
	e.commit(&store.Commit{Events: list[:1]}) // an id that was consumed may come again
	e.same("pending of the conversation", e.events(store.EventRange{Thread: t.ID}), eventIDs(list[2], list[4], list[0]))
	e.commit(&store.Commit{Consume: eventIDs(list...)})
	e.same("pending", e.events(store.EventRange{}), []string{})
}

func testNextDue(e *env) {
	due := func(want time.Time) {
		e.Helper()
		if got := must(e.s.NextDue(e.ctx))(e); !got.Equal(want) {
			e.Errorf("next is due at %v, want %v", got, want)
		}
	}
	due(time.Time{})
	_, t := e.agent("", "a1")
	_, t2 := e.agent("y", "a1")
	late, later := e.event(t, e.now.Add(time.Hour), "late"), e.event(t2, e.now.Add(2*time.Hour), "later")
	past := e.event(t2, e.now.Add(-time.Hour), "past")
	e.commit(&store.Commit{Events: []memgpt.Event{later}})
	due(later.Due)
	e.commit(&store.Commit{Events: []memgpt.Event{late}})
	due(late.Due)
	e.commit(&store.Commit{Events: []memgpt.Event{past}})
	due(past.Due)
	e.commit(&store.Commit{Consume: []string{past.ID, late.ID}})
	due(later.Due)
}

// lease takes the lease of a conversation.
func (e *env) lease(t memgpt.Thread) *store.Lease {
	e.Helper()
	got := e.acquire(t, time.Minute)
	if got == nil {
		e.Fatalf("the lease of %s is not to be had", t.ID)
	}
	return got
}

// acquire tries to.
func (e *env) acquire(t memgpt.Thread, life time.Duration) *store.Lease {
	e.Helper()
	return e.commit(&store.Commit{Acquire: &store.Lease{Tenant: t.Tenant, Thread: t.ID, Until: e.now.Add(life)}}).Lease
}

func testLeaseNumbers(e *env) {
	_, t := e.agent("x", "a1")
	last := int64(0)
	for range 5 {
		l := e.lease(t)
		if l.Number <= last || l.Thread != t.ID || l.Tenant != "x" || !l.Until.Equal(e.now.Add(time.Minute)) {
			e.Fatalf("lease is %+v after number %d", l, last)
		}
		last = l.Number
		if again := e.acquire(t, time.Hour); again != nil {
			e.Fatalf("a lease that runs was given again: %+v", again)
		}
		e.commit(&store.Commit{Lease: l, Release: true})
	}
}

func testLeaseGuards(e *env) {
	a, t := e.agent("", "a1")
	t2 := e.thread(a, "t-2")
	old := e.lease(t)
	e.commit(&store.Commit{Lease: old, Release: true})
	l := e.lease(t)
	wrong := []store.Lease{*old, {Thread: t.ID, Number: l.Number + 1}, {Thread: t2.ID, Number: l.Number}, {Thread: t.ID}, {Thread: "none", Number: 1},
		{Thread: t.ID, Number: l.Number, Tenant: "y"}}
	for _, w := range wrong {
		e.refuse(&store.Commit{Lease: &w, Entries: []memgpt.Entry{e.entry(t, 1, "x")}}, memgpt.CodeLeaseLost)
		e.refuse(&store.Commit{Lease: &w, Release: true}, memgpt.CodeLeaseLost)
	}
	e.same("entries", len(e.entries(store.EntryRange{Thread: t.ID})), 0)
	if e.acquire(t, time.Minute) != nil {
		e.Errorf("a stale holder ended the lease of another")
	}
	e.commit(&store.Commit{Lease: l, Entries: []memgpt.Entry{e.entry(t, 1, "x")}})
}

func testLeaseExpires(e *env) {
	_, t := e.agent("", "a1")
	l := e.lease(t)
	e.now = e.now.Add(59 * time.Second)
	if e.acquire(t, time.Minute) != nil {
		e.Errorf("a lease was taken a second before its end")
	}
	l.Until = e.now.Add(time.Minute) // renewed by any commit that names it
	e.commit(&store.Commit{Lease: l})
	e.now = e.now.Add(30 * time.Second)
	if e.acquire(t, time.Minute) != nil {
		e.Errorf("a renewed lease was taken")
	}
	// Past its end it still is the newest, until another is given.
	e.now = e.now.Add(time.Hour)
	e.commit(&store.Commit{Lease: l})
	e.now = e.now.Add(time.Hour)
	if next := e.lease(t); next.Number <= l.Number {
		e.Errorf("number %d comes after %d", next.Number, l.Number)
	}
	e.refuse(&store.Commit{Lease: l}, memgpt.CodeLeaseLost)
}

func testLeaseThreadVersion(e *env) {
	_, t := e.agent("", "a1")
	got := e.commit(&store.Commit{Acquire: &store.Lease{Thread: t.ID, Until: e.now.Add(time.Hour)}})
	e.same("version", got.Thread, int64(1))
	e.commit(&store.Commit{Threads: []memgpt.Thread{t}})
	got = e.commit(&store.Commit{Acquire: &store.Lease{Thread: t.ID, Until: e.now.Add(time.Hour)}})
	if got.Thread != 2 || got.Lease != nil {
		e.Errorf("got %+v, want version 2 and no lease", got)
	}
	t.Version = 2
	got = e.commit(&store.Commit{Threads: []memgpt.Thread{t}, Acquire: &store.Lease{Thread: t.ID, Until: e.now.Add(time.Hour)}})
	e.same("version after the commit's own change", got.Thread, int64(3))
	got = e.commit(&store.Commit{Threads: []memgpt.Thread{{ID: "new", Agent: "a1", Name: "new"}}, Acquire: &store.Lease{Thread: "new", Until: e.now.Add(time.Hour)}})
	if got.Thread != 1 || got.Lease == nil {
		e.Errorf("got %+v, want version 1 and the lease of a conversation made in the same commit", got)
	}
}

// testLeasePending: whoever takes a lease learns how many events are due, so that it need not read the inbox for one.
func testLeasePending(e *env) {
	a, t := e.agent("", "a1")
	other := e.thread(a, "t-2")
	late := e.event(t, e.now.Add(time.Hour), "late")
	take := func(events ...memgpt.Event) store.Committed {
		return e.commit(&store.Commit{Events: events, Acquire: &store.Lease{Thread: t.ID, Until: e.now.Add(time.Minute)}})
	}
	e.commit(&store.Commit{Events: []memgpt.Event{late, e.event(other, e.now, "elsewhere")}})
	one, two := e.event(t, e.now, "one"), e.event(t, e.now, "two")
	got := take(one)
	e.same("one's own alone", got.Pending, 1)
	e.same("without the lease", take(two).Pending, 0)
	e.commit(&store.Commit{Lease: got.Lease, Release: true})
	got = take()
	e.same("both", got.Pending, 2)
	e.commit(&store.Commit{Lease: got.Lease, Release: true, Consume: []string{one.ID, two.ID}})
	got = take()
	e.same("none", got.Pending, 0)
	e.now = e.now.Add(2 * time.Hour)
	again := take()
	e.same("the late one", again.Pending, 1)
	// A commit under the lease tells it too, as it is once the commit is made.
	held := func(c *store.Commit) int {
		c.Lease = again.Lease
		return e.commit(c).Pending
	}
	e.same("a renewal", held(&store.Commit{}), 1)
	e.commit(&store.Commit{Events: []memgpt.Event{e.event(t, e.now, "three"), e.event(t, e.now.Add(time.Hour), "later"), e.event(other, e.now, "elsewhere")}})
	e.same("another's event", held(&store.Commit{Entries: []memgpt.Entry{e.entry(t, 1, "x")}}), 2)
	e.same("the late one consumed", held(&store.Commit{Consume: []string{late.ID}}), 1)
	var many []memgpt.Event
	for i := range 100 {
		many = append(many, e.event(t, e.now, fmt.Sprint(i)))
	}
	e.same("a hundred more", held(&store.Commit{Events: many}), 101)
	e.same("all but one of them", held(&store.Commit{Consume: eventIDs(many[1:]...)}), 2)
	many[0].Due = e.now.Add(time.Hour)
	e.same("put off", held(&store.Commit{Events: many[:1]}), 1)
	e.same("released", held(&store.Commit{Release: true}), 0)
}
