package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/store"
)

func testTenants(e *env) {
	a, t := e.agent("x", "a1")
	b, u := e.agent("y", "a1")
	m := e.entry(t, 1, "of x")
	m.Key = "k"
	n := m
	n.Tenant, n.Agent, n.Thread = "y", b.ID, u.ID
	n.Message = memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "of y")
	ev := e.event(t, e.now, "of x")
	ev.Key = "k"
	e.commit(&store.Commit{Entries: []memgpt.Entry{m}, Events: []memgpt.Event{ev}, Turns: []memgpt.Turn{{ID: "turn-1", Tenant: "x", Agent: a.ID, Thread: t.ID, Event: "x"}},
		Blocks:   []memgpt.Block{{ID: "b", Tenant: "x", Value: "of x"}},
		Edits:    []store.BlockEdit{{Block: "b", Value: "of x"}},
		Passages: []memgpt.Passage{{ID: "p", Tenant: "x", Owner: a.ID, Key: "k", Text: "of x", Source: "s"}},
		Docs:     []store.Doc{{Tenant: "x", Owner: a.ID, ID: m.ID, Kind: memgpt.KindMessage, Terms: []store.TermCount{{Term: "x", N: 1}}}}})
	for what, got := range map[string]int{
		"entries": len(e.entries(store.EntryRange{Tenant: "y", Thread: t.ID})), "events": len(e.events(store.EventRange{Tenant: "y"})),
		"entries by id": len(must(e.s.EntriesByID(e.ctx, "y", b.ID, []string{m.ID}))(e)),
		"keys":          len(must(e.s.EntryKeys(e.ctx, "y", b.ID, []string{"k"}))(e)), "history": len(must(e.s.BlockHistory(e.ctx, "y", "b"))(e)),
		"passages": len(must(e.s.Passages(e.ctx, "y", b.ID, []string{"p"}))(e)), "turns": len(must(e.s.Turns(e.ctx, "y", u.ID, 0))(e)),
		"postings": len(postings(e, "y", b.ID, "x")), "numbers": len(must(e.s.DocNumbers(e.ctx, "y", b.ID, []string{m.ID}))(e)),
	} {
		if got != 0 {
			e.Errorf("a tenant sees %d of another's %s", got, what)
		}
	}
	// The same names, ids and keys in another tenant are other things.
	second := e.event(u, e.now, "of y")
	second.ID, second.Key = ev.ID, "k"
	e.commit(&store.Commit{Entries: []memgpt.Entry{n}, Events: []memgpt.Event{second}, Turns: []memgpt.Turn{{ID: "turn-1", Tenant: "y", Agent: b.ID, Thread: u.ID, Event: "y"}},
		Blocks:   []memgpt.Block{{ID: "b", Tenant: "y", Value: "of y"}},
		Edits:    []store.BlockEdit{{Block: "b", Value: "of y"}},
		Passages: []memgpt.Passage{{ID: "p", Tenant: "y", Owner: b.ID, Key: "k", Text: "of y"}}})
	e.same("entry of x", must(e.s.EntriesByID(e.ctx, "x", a.ID, []string{m.ID}))(e), []memgpt.Entry{m})
	e.same("entry of y", must(e.s.EntriesByID(e.ctx, "y", b.ID, []string{m.ID}))(e), []memgpt.Entry{n})
	e.same("turn of x", must(e.s.Turn(e.ctx, "x", "turn-1"))(e).Event, "x")
	e.same("turn of y", must(e.s.Turn(e.ctx, "y", "turn-1"))(e).Event, "y")
	e.same("history of y", must(e.s.BlockHistory(e.ctx, "y", "b"))(e)[0].Value, "of y")
	e.same("passage of y", must(e.s.PassageKeyed(e.ctx, "y", b.ID, "k"))(e).Text, "of y")
	e.same("sources of y", len(must(e.s.Outside(e.ctx, "y", b.ID, u.ID))(e).Sources), 0)
	lease := e.lease(u)
	e.commit(&store.Commit{Lease: lease, Consume: []string{ev.ID}})
	e.same("events of x", len(e.events(store.EventRange{Tenant: "x"})), 1)
	e.same("events of y", len(e.events(store.EventRange{Tenant: "y"})), 0)
}

// testConcurrent commits from many goroutines, some of which must fail, and finds every acknowledged commit once.
func testConcurrent(e *env) {
	const workers, each = 16, 40
	a, main := e.agent("", "a1")
	threads := make([]memgpt.Thread, workers)
	for i := range threads {
		threads[i] = e.thread(a, fmt.Sprint("w", i))
	}
	e.commit(&store.Commit{Blocks: []memgpt.Block{{ID: "shared"}}})
	var wg sync.WaitGroup
	edits := make([]int, workers)
	for w := range workers {
		wg.Go(func() { edits[w] = contend(e, threads[w], main, each) })
	}
	wg.Wait()
	total := 0
	for w, t := range threads {
		total += edits[w]
		list := e.entries(store.EntryRange{Thread: t.ID})
		if len(list) != each {
			e.Errorf("conversation %d has %d entries, want %d", w, len(list), each)
		}
		for i, m := range list {
			e.same("text", m.Message.Said(), fmt.Sprint(t.ID, " ", i+1))
		}
	}
	e.same("version of the shared block", must(e.s.Blocks(e.ctx, "", []string{"shared"}))(e)[0].Version, int64(1+total))
	st := must(e.s.Stats(e.ctx, "", a.ID, []string{"every"}))(e)
	e.same("stats", st, store.Stats{Docs: workers * each, Length: workers * each, DF: map[string]int{"every": workers * each}})
	e.same("entries of the contended place", len(e.entries(store.EntryRange{Thread: main.ID})), 1)
	e.same("messages", must(e.s.Sizes(e.ctx, "", a.ID))(e).Messages, int64(workers*each+1))
}

// contend appends to a conversation of its own, edits a block that all edit, and tries for a place that one can have.
func contend(e *env, t, main memgpt.Thread, n int) (edits int) {
	for i := int64(1); i <= int64(n); i++ {
		m := memgpt.Entry{ID: fmt.Sprint(t.ID, "-", i), Agent: t.Agent, Thread: t.ID, Seq: i,
			Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, fmt.Sprint(t.ID, " ", i))}
		c := &store.Commit{Now: e.now, Entries: []memgpt.Entry{m}, Docs: []store.Doc{{Owner: t.Agent, ID: m.ID, Kind: memgpt.KindMessage,
			Thread: t.ID, Role: memgpt.RoleUser, Length: 1, Terms: []store.TermCount{{Term: "every", N: 1}, {Term: m.ID, N: 1}}}}}
		if _, err := e.s.Commit(e.ctx, c); err != nil {
			e.Errorf("commit: %v", err)
			return edits
		}
		blocks, err := e.s.Blocks(e.ctx, "", []string{"shared"})
		if err != nil {
			e.Errorf("read: %v", err)
			return edits
		}
		_, err = e.s.Commit(e.ctx, &store.Commit{Now: e.now, Blocks: blocks})
		switch {
		case err == nil:
			edits++
		case memgpt.CodeOf(err) != memgpt.CodeConflict:
			e.Errorf("commit of the shared block: %v", err)
		}
		m.ID, m.Thread, m.Seq = m.ID+"-main", main.ID, 1
		_, err = e.s.Commit(e.ctx, &store.Commit{Now: e.now, Entries: []memgpt.Entry{m}})
		if err != nil && memgpt.CodeOf(err) != memgpt.CodeConflict {
			e.Errorf("commit to the contended place: %v", err)
		}
	}
	return edits
}

// testConcurrentReads reads an index while it is written: postings only grow, and none is missing below those seen.
func testConcurrentReads(e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			seen := 0
			for ctx.Err() == nil {
				n, next := 0, uint32(1)
				err := e.s.Postings(ctx, "", "o", "a", func(block []store.Posting) bool {
					for _, p := range block {
						if p.Doc != next {
							e.Errorf("document %d comes after %d", p.Doc, next-1)
							return false
						}
						next, n = next+1, n+1
					}
					return true
				})
				if errors.Is(err, context.Canceled) {
					return
				}
				m, err2 := e.s.Meta(e.ctx, "", "o")
				if err != nil || err2 != nil || n < seen || len(m.Time) < n {
					e.Errorf("%d postings after %d, errors %v, %v", n, seen, err, err2)
					return
				}
				seen = n
			}
		})
	}
	for i := range 300 {
		e.commit(&store.Commit{Docs: []store.Doc{{Owner: "o", ID: fmt.Sprint(i), Kind: memgpt.KindMessage, Length: 1, Terms: []store.TermCount{{Term: "a", N: 1}}}}})
	}
	cancel()
	wg.Wait()
}

func testChange(e *env) {
	last := must(e.s.Change(e.ctx))(e)
	a, _ := e.agent("", "a1")
	for range 3 {
		now := must(e.s.Change(e.ctx))(e)
		if now <= last {
			e.Fatalf("the number is %d after %d and a commit", now, last)
		}
		last = now
		e.same("the number without a commit", must(e.s.Change(e.ctx))(e), now)
		e.commit(&store.Commit{Agents: []memgpt.Agent{a}})
		a.Version++
	}
}

// changes tells of a change of agents or blocks between two calls, as commits in e do; a store that tells nothing tells of
// one each time.
func (e *env) changes() func() bool {
	look := func() int64 { return e.commit(&store.Commit{}).Shared }
	last := look()
	return func() bool {
		before := last
		last = look()
		return last == 0 || last != before
	}
}

func testShared(e *env) {
	a, th := e.agent("", "a1")
	changed := e.changes()
	steps := []struct {
		what string
		c    *store.Commit
	}{
		{"an agent", &store.Commit{Agents: []memgpt.Agent{a}}},
		{"a new block", &store.Commit{Blocks: []memgpt.Block{{ID: "b1", Label: "human"}}}},
		{"a block", &store.Commit{Blocks: []memgpt.Block{{ID: "b1", Label: "human", Value: "x", Version: 1}}}},
	}
	for _, s := range steps {
		e.commit(s.c)
		if !changed() {
			e.Errorf("nothing tells that %s changed", s.what)
		}
	}
	e.commit(&store.Commit{Entries: []memgpt.Entry{e.entry(th, 1, "hello")}})
	changed()
	if e.commit(&store.Commit{}).Shared != 0 && changed() {
		e.Errorf("a change is told where there was none")
	}
}

func testSharedOfOthers(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	changed := e.changes()
	f.commit(&store.Commit{Blocks: []memgpt.Block{{ID: "b1", Label: "human"}}})
	if !changed() {
		t.Errorf("nothing tells that another store's commit changed a block")
	}
}

func testClosed(e *env) {
	a, _ := e.agent("", "a1")
	if err := e.s.Close(); err != nil {
		e.Fatal(err)
	}
	e.refuse(&store.Commit{Agents: []memgpt.Agent{a}}, memgpt.CodeClosed)
	if _, err := e.s.Agent(e.ctx, "", "a1"); memgpt.CodeOf(err) != memgpt.CodeClosed {
		e.Errorf("read after Close: %v", err)
	}
	if _, err := e.s.Change(e.ctx); memgpt.CodeOf(err) != memgpt.CodeClosed {
		e.Errorf("Change after Close: %v", err)
	}
	if err := e.s.Close(); err != nil {
		e.Errorf("Close once more: %v", err)
	}
}

// opened opens storage; what is open is closed at the end.
func opened(t *testing.T, open func() store.Store) *env {
	s := open()
	t.Cleanup(func() { _ = s.Close() })
	return newEnv(t, s)
}

func testReopen(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	a, th := e.agent("", "a1")
	th.Head = 1
	m := e.entry(th, 1, "x")
	m.Key = "k"
	ev := e.event(th, e.now.Add(time.Hour), "x")
	ev.Key = "k"
	e.commit(&store.Commit{Threads: []memgpt.Thread{th}, Entries: []memgpt.Entry{m}, Events: []memgpt.Event{ev}, Blocks: []memgpt.Block{{ID: "b1", Value: "v"}},
		Edits:    []store.BlockEdit{{Block: "b1", Value: "v"}},
		Passages: []memgpt.Passage{{ID: "p1", Owner: a.ID, Key: "k", Text: "x", Source: "s"}}, Turns: []memgpt.Turn{{ID: "turn-1", Agent: a.ID, Thread: th.ID}},
		Records: []store.Record{{Kind: "k", ID: "r", Data: []byte("1")}}})
	h := newHistory(5)
	want := dump(e, a, th)
	for i := range 8 {
		for range 15 {
			h.step(e)
		}
		if err := e.s.Close(); err != nil {
			t.Fatal(err)
		}
		e = opened(t, open)
		h.check(e)
		e.same(fmt.Sprint("what is there after opening again, ", i), dump(e, a, th), want)
	}
	got := e.commit(&store.Commit{Events: []memgpt.Event{func() memgpt.Event { again := e.event(th, e.now, "x"); again.Key = "k"; return again }()}})
	e.same("duplicates", eventIDs(got.Duplicate...), eventIDs(ev))
}

func testTwoAtOnce(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	a, th := e.agent("", "a1")
	f.same("agent seen by the other", must(f.s.Agent(f.ctx, "", "a1"))(f), a)
	f.commit(&store.Commit{Threads: []memgpt.Thread{th}})
	e.refuse(&store.Commit{Threads: []memgpt.Thread{th}}, memgpt.CodeConflict)
	ev := f.event(th, e.now, "x")
	ev.Key = "k"
	f.commit(&store.Commit{Events: []memgpt.Event{ev}})
	again := e.event(th, e.now, "y")
	again.ID, again.Key = "event-again", "k"
	e.same("duplicates across stores", eventIDs(e.commit(&store.Commit{Events: []memgpt.Event{again}}).Duplicate...), eventIDs(ev))
	e.commit(&store.Commit{Consume: []string{ev.ID}})
	f.same("events", f.events(store.EventRange{}), []string{})
	f.same("duplicates of one that another consumed", eventIDs(f.commit(&store.Commit{Events: []memgpt.Event{again}}).Duplicate...), eventIDs(ev))
}

func testTwoHolders(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	_, th := e.agent("", "a1")
	l := e.lease(th)
	if got := f.acquire(th, time.Minute); got != nil {
		t.Fatalf("another holder took a running lease: %+v", got)
	}
	e.commit(&store.Commit{Lease: l, Release: true})
	l2 := f.lease(th)
	if l2.Number <= l.Number {
		t.Errorf("number %d comes after %d", l2.Number, l.Number)
	}
	e.refuse(&store.Commit{Lease: l}, memgpt.CodeLeaseLost)
	if e.acquire(th, time.Minute) != nil {
		t.Errorf("the first holder took the lease of the second")
	}
	e.now = e.now.Add(2 * time.Minute)
	e.lease(th)
	f.refuse(&store.Commit{Lease: l2}, memgpt.CodeLeaseLost)
}

// testClosedHolder takes the lease of a store that was closed without giving it back.
func testClosedHolder(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	_, th := e.agent("", "a1")
	l := e.acquire(th, 24*time.Hour)
	if err := e.s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := f.acquire(th, time.Minute); got == nil || got.Number <= l.Number {
		t.Errorf("a closed store keeps its lease: %+v", got)
	}
}

func testChangeOfOthers(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	before := must(e.s.Change(e.ctx))(e)
	f.agent("", "a1")
	if after := must(e.s.Change(e.ctx))(e); after <= before {
		t.Errorf("the number is %d after %d and another store's commit", after, before)
	}
}

// testOrderOfOthers accepts events of one conversation through two stores in turn, whose clocks differ.
func testOrderOfOthers(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	f.now = e.now.Add(-time.Hour)
	_, th := e.agent("", "a1")
	var want []string
	for i := range 20 {
		at := e
		if i%2 == 1 {
			at = f
		}
		due := e.now
		if i%3 == 0 {
			due = due.Add(-time.Duration(i) * time.Hour)
		}
		ev := at.event(th, due, "x")
		ev.ID = fmt.Sprint("event ", i)
		at.commit(&store.Commit{Events: []memgpt.Event{ev}})
		want = append(want, ev.ID)
	}
	e.same("order", e.events(store.EventRange{Thread: th.ID}), want)
}

// testIndexOfOthers writes an index through two stores in turn, and reads it through both.
func testIndexOfOthers(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	h := newHistory(9)
	for i := range 150 {
		if i%3 == 0 {
			h.step(f)
		} else {
			h.step(e)
		}
		if i%10 == 9 {
			h.check(e)
			h.check(f)
		}
	}
}

// testTwoWriters commits through two stores at once.
func testTwoWriters(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	_, main := e.agent("", "a1")
	var wg sync.WaitGroup
	for i, at := range []*env{e, f, e, f} {
		th := e.thread(memgpt.Agent{ID: "a1"}, fmt.Sprint("w", i))
		wg.Go(func() {
			for n := range int64(50) {
				m := memgpt.Entry{ID: fmt.Sprint(th.ID, "-", n), Agent: th.Agent, Thread: th.ID, Seq: n + 1,
					Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "x")}
				if _, err := at.s.Commit(at.ctx, &store.Commit{Now: at.now, Entries: []memgpt.Entry{m}}); err != nil {
					t.Errorf("commit: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		e.same("entries", len(e.entries(store.EntryRange{Thread: fmt.Sprint("w", i)})), 50)
	}
	out := must(f.s.Outside(f.ctx, "", "a1", main.ID))(f)
	e.same("elsewhere", out.Elsewhere, 200)
}
