package storetest

import (
	"fmt"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
)

// saying returns what an entry of a conversation says by its own text.
func (e *env) saying(t memgpt.Thread, entry string) store.Saying {
	return store.Saying{ID: store.SayingID(entry, ""), Tenant: t.Tenant, Agent: t.Agent, Thread: t.ID, Turn: e.id("turn"), Entry: entry,
		Why: "heartbeat", Time: e.now, Hook: store.HookDue, Next: e.now}
}

// outbox reads the outbox without Order, which must ascend.
func (e *env) outbox(q store.SayingRange) []store.Saying {
	e.Helper()
	list := must(e.s.Sayings(e.ctx, q))(e)
	last := int64(0)
	for i := range list {
		if list[i].Order <= last {
			e.Errorf("order %d after %d", list[i].Order, last)
		}
		last, list[i].Order = list[i].Order, 0
	}
	return list
}

func stored(list ...store.Saying) []store.Saying {
	for i := range list {
		list[i].Version++
	}
	return list
}

func testSayings(e *env) {
	_, mine := e.agent("x", "a1")
	_, theirs := e.agent("x", "a2")
	_, other := e.agent("y", "a1")
	one, two, three, four := e.saying(mine, e.id("message")), e.saying(mine, e.id("message")), e.saying(theirs, e.id("message")), e.saying(other, e.id("message"))
	two.Call, two.Hook, two.Next = "call 7", store.HookNone, time.Time{}
	three.Read, three.Showing, three.First, three.Tries, three.Aside, three.Error = true, e.now.Add(time.Minute), e.now, 3, true, "answered 500"
	e.commit(&store.Commit{Sayings: []store.Saying{one, two}})
	e.commit(&store.Commit{Sayings: []store.Saying{three}})
	e.commit(&store.Commit{Sayings: []store.Saying{four}})
	list := stored(one, two, three, four)
	e.same("all", e.outbox(store.SayingRange{AllTenants: true}), list)
	e.same("a tenant's", e.outbox(store.SayingRange{Tenant: "x"}), list[:3])
	e.same("an agent's", e.outbox(store.SayingRange{Tenant: "x", Agent: "a1"}), list[:2])
	e.same("an agent's of the same id", e.outbox(store.SayingRange{Tenant: "y", Agent: "a1"}), list[3:])
	e.same("nobody's", len(e.outbox(store.SayingRange{Tenant: "y", Agent: "a2"})), 0)
	e.same("the first", e.outbox(store.SayingRange{Tenant: "x", Limit: 2}), list[:2])
	e.same("the last", e.outbox(store.SayingRange{Tenant: "x", Limit: 2, Last: true}), list[1:3])
	e.same("unread", e.outbox(store.SayingRange{Tenant: "x", Unread: true}), list[:2])
	e.same("due", e.outbox(store.SayingRange{Tenant: "x", Hook: store.HookDue}), []store.Saying{list[0], list[2]})
	e.same("failed", len(e.outbox(store.SayingRange{Tenant: "x", Hook: store.HookFailed})), 0)

	failed := list[0]
	failed.Hook, failed.Tries, failed.Error = store.HookFailed, 9, "answered 410"
	e.commit(&store.Commit{Sayings: []store.Saying{failed}})
	e.same("failed", e.outbox(store.SayingRange{Tenant: "x", Hook: store.HookFailed}), stored(failed))
	e.refuse(&store.Commit{Sayings: []store.Saying{failed}}, memgpt.CodeConflict) // of a version that is no more
	e.refuse(&store.Commit{Sayings: []store.Saying{one}}, memgpt.CodeConflict)    // one that is there already

	read := list[1]
	read.Read = true // and no hook: it is over
	e.commit(&store.Commit{Sayings: []store.Saying{read}})
	e.same("without what is over", len(e.outbox(store.SayingRange{Tenant: "x", Agent: "a1"})), 1)
	e.refuse(&store.Commit{Sayings: []store.Saying{read}}, memgpt.CodeConflict)
}

// testSayingsWithTheStep: a saying is there if and only if all else of its commit is.
func testSayingsWithTheStep(e *env) {
	_, th := e.agent("", "a1")
	entry := e.entry(th, 1, "it is time")
	th.Next = 2
	stale := th
	stale.Version--
	e.refuse(&store.Commit{Threads: []memgpt.Thread{stale}, Entries: []memgpt.Entry{entry}, Sayings: []store.Saying{e.saying(th, entry.ID)}}, memgpt.CodeConflict)
	e.same("after a refused step", len(e.outbox(store.SayingRange{})), 0)
	known := e.saying(th, entry.ID)
	known.Version = 7
	e.refuse(&store.Commit{Threads: []memgpt.Thread{th}, Entries: []memgpt.Entry{entry}, Sayings: []store.Saying{known}}, memgpt.CodeConflict)
	e.same("the log after a refused saying", len(e.entries(store.EntryRange{Thread: th.ID})), 0)
	nameless := e.saying(th, entry.ID)
	nameless.ID = ""
	e.refuse(&store.Commit{Sayings: []store.Saying{nameless}}, memgpt.CodeInvalid)
	nowhere := e.saying(th, entry.ID)
	nowhere.Thread = "none"
	e.refuse(&store.Commit{Sayings: []store.Saying{nowhere}}, memgpt.CodeNotFound)
}

// testSayingsClaimedOnce has many want to change one row at once: one succeeds, the others are told.
func testSayingsClaimedOnce(e *env) {
	_, th := e.agent("", "a1")
	e.commit(&store.Commit{Sayings: []store.Saying{e.saying(th, "message-1")}})
	row := must(e.s.Sayings(e.ctx, store.SayingRange{}))(e)[0]
	var wait sync.WaitGroup
	results := make(chan error, 8)
	for i := range 8 {
		wait.Go(func() {
			mine := row
			mine.Tries, mine.Next = i+1, e.now.Add(time.Minute)
			_, err := e.s.Commit(e.ctx, &store.Commit{Now: e.now, Sayings: []store.Saying{mine}})
			results <- err
		})
	}
	wait.Wait()
	close(results)
	claimed := 0
	for err := range results {
		switch {
		case err == nil:
			claimed++
		case memgpt.CodeOf(err) != memgpt.CodeConflict:
			e.Error(err)
		}
	}
	e.same("who has it", claimed, 1)
}

// testSayingsBound: of rows that no delivery is due for, the newest of an agent stay.
func testSayingsBound(e *env) {
	_, th := e.agent("", "a1")
	_, other := e.agent("", "a2")
	due := e.saying(th, "due")
	theirs := e.saying(other, "theirs")
	theirs.Hook = store.HookNone
	e.commit(&store.Commit{Sayings: []store.Saying{due, theirs}})
	const more = 3
	c := &store.Commit{}
	for i := range store.MostSayings + more {
		s := e.saying(th, fmt.Sprint("entry ", i))
		s.Hook = store.HookNone
		c.Sayings = append(c.Sayings, s)
	}
	e.commit(c)
	list := e.outbox(store.SayingRange{})
	e.same("how many", len(list), store.MostSayings+2)
	e.same("the one that is due", list[0].Entry, "due")
	e.same("another agent's", list[1].Entry, "theirs")
	e.same("the oldest that is left", list[2].Entry, fmt.Sprint("entry ", more))
}

// testSayingsErased: what is forgotten leaves no row, nor does a conversation or an agent that goes.
func testSayingsErased(e *env) {
	a, th := e.agent("", "a1")
	second := e.thread(a, "second")
	_, other := e.agent("", "a2")
	list := []memgpt.Entry{e.entry(th, 1, "one"), e.entry(th, 2, "two"), e.entry(second, 1, "three"), e.entry(other, 1, "four")}
	c := &store.Commit{Entries: list}
	for i := range list {
		list[i].Message.Role = memgpt.RoleAssistant
		c.Sayings = append(c.Sayings, e.saying(memgpt.Thread{ID: list[i].Thread, Agent: list[i].Agent}, list[i].ID))
	}
	c.Records = []store.Record{{Kind: store.HookKind, ID: a.ID, Data: []byte(`{"secret":"whsec_x"}`)}}
	e.commit(c)
	left := func() (said []string) {
		for _, s := range e.outbox(store.SayingRange{}) {
			said = append(said, must(e.s.EntriesByID(e.ctx, "", s.Agent, []string{s.Entry}))(e)[0].Message.Said())
		}
		return said
	}
	e.same("before", left(), []string{"one", "two", "three", "four"})
	gone, cut := list[0], list[1]
	gone.Message = memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginOwner, "forgotten")
	cut.Message = memgpt.TextMessage(memgpt.RoleAssistant, memgpt.OriginModel, "[forgotten]")
	e.erase(&store.Erasure{Entries: []memgpt.Entry{gone, cut}})
	e.same("without what was forgotten", left(), []string{"[forgotten]", "three", "four"})
	e.erase(&store.Erasure{GoneThreads: []memgpt.Thread{must(e.s.Thread(e.ctx, "", second.ID))(e)}})
	e.same("without a conversation", left(), []string{"[forgotten]", "four"})
	e.erase(&store.Erasure{GoneAgents: []memgpt.Agent{must(e.s.Agent(e.ctx, "", a.ID))(e)}, Drop: []store.Record{{Kind: store.HookKind, ID: a.ID}, {Kind: store.HookKind, ID: "none"}}})
	e.same("without an agent", left(), []string{"four"})
	_, err := e.s.Record(e.ctx, "", store.HookKind, a.ID)
	e.missing("the record of its hook", err)
}
