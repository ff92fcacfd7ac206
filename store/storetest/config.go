package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
)

func fullAgent(e *env) memgpt.Agent {
	return memgpt.Agent{ID: e.id("agent"), Tenant: "acme", Name: "Ada", System: "be <brief> & kind", Protocol: memgpt.ProtocolNative,
		Model: "m", Window: 4096, Zone: "Asia/Shanghai", Blocks: []string{"b1", "b2"}, Tools: []string{"web"},
		Archives:  []string{"law", "manuals"},
		Policy:    memgpt.Policy{Alert: 0.6, Flush: 0.9, Target: 0.4, PageSize: 7, MaxSteps: 9, MaxRepeats: 2},
		Heartbeat: time.Minute, Prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchAuto, Budget: 500, Age: time.Hour},
		Budget:  memgpt.Budget{Tokens: 1, TokensTotal: 2, Nano: 3, NanoTotal: 4},
		Timers:  memgpt.Timers{Cron: "0 9 * * 1-5", Quiet: "22:00-07:00", QuietAll: true, CatchUp: "all", Turns: 7},
		Reach:   memgpt.Reach{Agents: true, Tags: []string{"night", "紅"}, Wait: time.Minute, Hook: "https://example.org/in"},
		Tidy:    memgpt.Tidy{On: true, Turns: 3, Idle: time.Hour, Model: "local:small"},
		Created: e.now}
}

func testAgents(e *env) {
	a := fullAgent(e)
	none := memgpt.Agent{ID: e.id("agent"), Tenant: "acme", Name: "Bob", Tools: []string{}, Created: e.now}
	e.commit(&store.Commit{Agents: []memgpt.Agent{none, a}})
	a.Version, none.Version = 1, 1
	e.same("agent", must(e.s.Agent(e.ctx, "acme", a.ID))(e), a)
	e.same("agent by name", must(e.s.AgentNamed(e.ctx, "acme", "Ada"))(e), a)
	if got := must(e.s.Agent(e.ctx, "acme", none.ID))(e); got.Tools == nil {
		e.Errorf("an agent with no tools comes back with nil, which means all")
	}
	a.Name, a.Tools = "Ada Lovelace", nil
	e.commit(&store.Commit{Agents: []memgpt.Agent{a}})
	a.Version = 2
	e.same("agent renamed", must(e.s.AgentNamed(e.ctx, "acme", "Ada Lovelace"))(e), a)
	if got := must(e.s.Agent(e.ctx, "acme", a.ID))(e); got.Tools != nil {
		e.Errorf("an agent with every tool comes back with %v", got.Tools)
	}
	_, err := e.s.AgentNamed(e.ctx, "acme", "Ada")
	e.missing("the old name", err)
	list := must(e.s.Agents(e.ctx, "acme"))(e)
	e.same("agents", len(list), 2)
}

func testThreads(e *env) {
	a, main := e.agent("", "a1")
	t := memgpt.Thread{ID: e.id("conv"), Agent: a.ID, Name: "work", Next: 12, Head: 7, Folded: 5, Asked: 3,
		Summary: memgpt.Summary{Text: "s \u2028 ü", Covers: 5, Time: e.now, Failed: "no",
			Outside: memgpt.Outside{Hidden: 7, First: e.now, Last: e.now, Elsewhere: 2, Passages: 1, Sources: []string{"x"}}},
		Alerted: true, Open: []memgpt.OpenCall{{Entry: "m1", CallID: "c1", Name: "f", Effect: memgpt.EffectDeferred, On: "conv-2"}},
		Paused: e.now, Seen: e.now, Created: e.now}
	e.commit(&store.Commit{Threads: []memgpt.Thread{t}})
	t.Version = 1
	e.same("conversation", must(e.s.Thread(e.ctx, "", t.ID))(e), t)
	list := must(e.s.Threads(e.ctx, "", a.ID))(e)
	e.same("conversations", sortedIDs(list, func(t memgpt.Thread) string { return t.ID }), sorted(t.ID, main.ID))
	t.Summary.Text = "other"
	e.commit(&store.Commit{Threads: []memgpt.Thread{t}})
	t.Version = 2
	e.same("conversation with a new summary", must(e.s.Thread(e.ctx, "", t.ID))(e), t)
	for i, change := range []func(m *memgpt.Summary){
		func(m *memgpt.Summary) { m.Covers++ }, func(m *memgpt.Summary) { m.Time = m.Time.Add(1) }, func(m *memgpt.Summary) { m.Failed = "yes" },
		func(m *memgpt.Summary) { m.Outside.Hidden++ }, func(m *memgpt.Summary) { m.Outside.First = m.Outside.First.Add(1) },
		func(m *memgpt.Summary) { m.Outside.Last = m.Outside.Last.Add(1) }, func(m *memgpt.Summary) { m.Outside.Elsewhere++ },
		func(m *memgpt.Summary) { m.Outside.Passages++ }, func(m *memgpt.Summary) { m.Outside.Sources = []string{"x", "y"} },
		func(m *memgpt.Summary) {},
	} {
		change(&t.Summary)
		e.commit(&store.Commit{Threads: []memgpt.Thread{t}})
		t.Version++
		e.same(fmt.Sprint("conversation after change ", i, " of its summary"), must(e.s.Thread(e.ctx, "", t.ID))(e), t)
	}
	t.Summary, t.Open, t.Alerted, t.Name = memgpt.Summary{}, nil, false, "work 2"
	e.commit(&store.Commit{Threads: []memgpt.Thread{t}})
	t.Version++
	e.same("conversation without a summary", must(e.s.Thread(e.ctx, "", t.ID))(e), t)
}

func testVersions(e *env) {
	a, t := e.agent("", "a1")
	b := memgpt.Block{ID: "b1", Label: "human", Value: "x", Limit: 10}
	r := store.Record{Kind: "key", ID: "k1", Data: json.RawMessage(`1`)}
	e.commit(&store.Commit{Blocks: []memgpt.Block{b}, Records: []store.Record{r}})
	b.Version, r.Version = 1, 1
	for _, version := range []int64{0, 2, 17} {
		a, t, b, r := a, t, b, r
		a.Version, t.Version, b.Version, r.Version = version, version, version, version
		e.refuse(&store.Commit{Agents: []memgpt.Agent{a}}, memgpt.CodeConflict)
		e.refuse(&store.Commit{Threads: []memgpt.Thread{t}}, memgpt.CodeConflict)
		e.refuse(&store.Commit{Blocks: []memgpt.Block{b}}, memgpt.CodeConflict)
		e.refuse(&store.Commit{Records: []store.Record{r}}, memgpt.CodeConflict)
	}
	// What isn't there has no version to agree with.
	e.refuse(&store.Commit{Agents: []memgpt.Agent{{ID: "a9", Name: "a9", Version: 1}}}, memgpt.CodeConflict)
	e.refuse(&store.Commit{Threads: []memgpt.Thread{{ID: "t9", Agent: "a1", Name: "t9", Version: 1}}}, memgpt.CodeConflict)
	e.refuse(&store.Commit{Blocks: []memgpt.Block{{ID: "b9", Version: 1}}}, memgpt.CodeConflict)
	e.refuse(&store.Commit{Records: []store.Record{{Kind: "key", ID: "k9", Version: 1}}}, memgpt.CodeConflict)
	// The version that was read is right, and is counted on.
	for v := int64(1); v < 4; v++ {
		a.Version, t.Version, b.Version, r.Version = v, v, v, v
		e.commit(&store.Commit{Agents: []memgpt.Agent{a}, Threads: []memgpt.Thread{t}, Blocks: []memgpt.Block{b}, Records: []store.Record{r}})
	}
	e.same("version of the agent", must(e.s.Agent(e.ctx, "", "a1"))(e).Version, int64(4))
	e.same("version of the conversation", must(e.s.Thread(e.ctx, "", t.ID))(e).Version, int64(4))
	e.same("version of the block", must(e.s.Blocks(e.ctx, "", []string{"b1"}))(e)[0].Version, int64(4))
	e.same("version of the record", must(e.s.Record(e.ctx, "", "key", "k1"))(e).Version, int64(4))
}

func testNames(e *env) {
	a, t := e.agent("", "a1")
	err := e.refuse(&store.Commit{Agents: []memgpt.Agent{{ID: "a2", Name: "a1"}}}, memgpt.CodeExists)
	if !strings.Contains(err.Error(), `"a1"`) {
		e.Errorf("error %q doesn't name what is taken", err)
	}
	e.commit(&store.Commit{Agents: []memgpt.Agent{{ID: "a2", Name: "a2"}}})
	e.refuse(&store.Commit{Agents: []memgpt.Agent{{ID: "a2", Name: "a1", Version: 1}}}, memgpt.CodeExists)
	e.refuse(&store.Commit{Threads: []memgpt.Thread{{ID: "t9", Agent: a.ID, Name: t.Name}}}, memgpt.CodeExists)
	other := e.thread(a, "t2")
	other.Name = t.Name
	e.refuse(&store.Commit{Threads: []memgpt.Thread{other}}, memgpt.CodeExists)
	e.commit(&store.Commit{Threads: []memgpt.Thread{{ID: "t3", Agent: "a2", Name: t.Name}}})
	e.commit(&store.Commit{Agents: []memgpt.Agent{{ID: "a1", Tenant: "other", Name: "a1"}}})
}

func testBlocks(e *env) {
	b1 := memgpt.Block{ID: e.id("block"), Tenant: "x", Label: "human", Description: "d", Value: "名字", Limit: 2000, ReadOnly: true}
	b2 := memgpt.Block{ID: e.id("block"), Tenant: "x", Label: "persona"}
	cause := memgpt.Cause{Event: "e", Origin: memgpt.OriginModel, Agent: "a", Turn: "t", Call: "c"}
	edit := func(b memgpt.Block, v int64, value string) store.BlockEdit {
		return store.BlockEdit{Block: b.ID, Version: v, Value: value, Time: e.now, Cause: cause}
	}
	first := []store.BlockEdit{edit(b1, 1, "名字")}
	e.commit(&store.Commit{Blocks: []memgpt.Block{b1, b2}, Edits: first})
	b1.Version, b2.Version = 1, 1
	e.same("blocks", must(e.s.Blocks(e.ctx, "x", []string{b2.ID, b1.ID, b2.ID}))(e), []memgpt.Block{b2, b1, b2})
	b1.Value = "名字 2"
	more := []store.BlockEdit{edit(b1, 2, "名字 1"), edit(b1, 2, "名字 2")}
	e.commit(&store.Commit{Blocks: []memgpt.Block{b1}, Edits: more})
	e.same("history", must(e.s.BlockHistory(e.ctx, "x", b1.ID))(e), append(first, more...))
	e.same("history of the other", len(must(e.s.BlockHistory(e.ctx, "x", b2.ID))(e)), 0)
	_, err := e.s.Blocks(e.ctx, "x", []string{b1.ID, "block-none"})
	e.missing("a block that isn't there", err)
	_, err = e.s.Blocks(e.ctx, "y", []string{b1.ID})
	e.missing("another tenant's block", err)
}

func testRecords(e *env) {
	rec := func(kind, id, data string) store.Record {
		return store.Record{Tenant: "x", Kind: kind, ID: id, Data: json.RawMessage(data)}
	}
	a, b, c := rec("key", "b", `{"a":"<é>"}`), rec("key", "a", `[1, 2]`), rec("folder", "a", `null`)
	e.commit(&store.Commit{Records: []store.Record{a, b, c}})
	a.Version, b.Version, c.Version = 1, 1, 1
	e.same("record", must(e.s.Record(e.ctx, "x", "key", "b"))(e), a)
	e.same("records by id", must(e.s.Records(e.ctx, "x", "key"))(e), []store.Record{b, a})
	e.same("records of another tenant", len(must(e.s.Records(e.ctx, "y", "key"))(e)), 0)
	a.Version = 7
	e.refuse(&store.Commit{Drop: []store.Record{a}}, memgpt.CodeConflict)
	a.Version = 1
	e.commit(&store.Commit{Drop: []store.Record{a}})
	_, err := e.s.Record(e.ctx, "x", "key", "b")
	e.missing("a dropped record", err)
	a.Version = 0
	e.commit(&store.Commit{Records: []store.Record{a}})
	e.same("the same record made anew", must(e.s.Record(e.ctx, "x", "key", "b"))(e).Version, int64(1))
}

// testConflictUndoesAll fails a commit by each kind of conflict, with a row of every kind in it.
func testConflictUndoesAll(e *env) {
	a, t := e.agent("", "a1")
	e.commit(&store.Commit{Blocks: []memgpt.Block{{ID: "b1"}}, Passages: []memgpt.Passage{{ID: "p1", Owner: a.ID, Key: "k1", Text: "x"}},
		Docs: []store.Doc{{Owner: a.ID, ID: "p1", Kind: memgpt.KindPassage, Length: 1}}})
	pending := e.event(t, e.now, "pending")
	taken := e.entry(t, 1, "first")
	taken.Key = "line 1"
	lease := e.commit(&store.Commit{Events: []memgpt.Event{pending}, Acquire: &store.Lease{Thread: t.ID, Until: e.now.Add(time.Hour)},
		Entries: []memgpt.Entry{taken}}).Lease
	before := dump(e, a, t)
	stale := *lease
	stale.Number--
	for name, change := range map[string]struct {
		code memgpt.Code
		f    func(c *store.Commit)
	}{
		"lease":    {memgpt.CodeLeaseLost, func(c *store.Commit) { c.Lease = &stale }},
		"agent":    {memgpt.CodeConflict, func(c *store.Commit) { c.Agents[0].Version++ }},
		"thread":   {memgpt.CodeConflict, func(c *store.Commit) { c.Threads[0].Version++ }},
		"block":    {memgpt.CodeConflict, func(c *store.Commit) { c.Blocks[0].Version++ }},
		"record":   {memgpt.CodeConflict, func(c *store.Commit) { c.Records[0].Version++ }},
		"entry":    {memgpt.CodeExists, func(c *store.Commit) { c.Entries[1].ID = taken.ID }},
		"position": {memgpt.CodeConflict, func(c *store.Commit) { c.Entries[1].Seq = 1 }},
		"key":      {memgpt.CodeExists, func(c *store.Commit) { c.Entries[1].Key = "line 1" }},
		"passage":  {memgpt.CodeExists, func(c *store.Commit) { c.Passages[0].Key = "k1" }},
	} {
		c := &store.Commit{Lease: lease, Agents: []memgpt.Agent{a}, Threads: []memgpt.Thread{t}, Blocks: []memgpt.Block{{ID: "b1", Value: "new", Version: 1}},
			Edits: []store.BlockEdit{{Block: "b1", Value: "new"}}, Entries: []memgpt.Entry{e.entry(t, 2, "two"), e.entry(t, 3, "three")},
			Passages: []memgpt.Passage{{ID: "p2", Owner: a.ID, Key: "k2", Text: "y", Source: "s"}},
			Docs:     []store.Doc{{Owner: a.ID, ID: "p2", Kind: memgpt.KindPassage, Length: 1, Terms: []store.TermCount{{Term: "y", N: 1}}}},
			DeadDocs: []store.DocRef{{Owner: a.ID, ID: "p1"}}, Events: []memgpt.Event{e.event(t, e.now, "more")}, Consume: []string{pending.ID},
			Turns: []memgpt.Turn{{ID: "turn-1", Agent: a.ID, Thread: t.ID}}, Records: []store.Record{{Kind: "k", ID: "r", Data: json.RawMessage("1")}},
			Spending: []store.Spending{{Agent: a.ID, Day: "2026-03-01", UTC: "2026-03-01", Usage: memgpt.Usage{Calls: 1}}}}
		change.f(c)
		e.refuse(c, change.code)
		e.same("the store after a conflict of "+name, dump(e, a, t), before)
	}
}

// state is what a store shows of one agent.
type state struct {
	Agent    memgpt.Agent
	Thread   memgpt.Thread
	Blocks   []memgpt.Block
	Edits    []store.BlockEdit
	Entries  []memgpt.Entry
	Events   []memgpt.Event
	Passages []memgpt.Passage
	Turns    []memgpt.Turn
	Records  []store.Record
	Spending []store.Spending
	Outside  memgpt.Outside
	Sizes    store.Sizes
	Stats    store.Stats
	Dead     []bool
}

func dump(e *env, a memgpt.Agent, t memgpt.Thread) state {
	e.Helper()
	return state{
		Agent:    must(e.s.Agent(e.ctx, a.Tenant, a.ID))(e),
		Thread:   must(e.s.Thread(e.ctx, t.Tenant, t.ID))(e),
		Blocks:   must(e.s.Blocks(e.ctx, a.Tenant, []string{"b1"}))(e),
		Edits:    must(e.s.BlockHistory(e.ctx, a.Tenant, "b1"))(e),
		Entries:  e.entries(store.EntryRange{Tenant: t.Tenant, Thread: t.ID}),
		Events:   must(e.s.Events(e.ctx, store.EventRange{Tenant: t.Tenant}))(e),
		Passages: must(e.s.Passages(e.ctx, a.Tenant, a.ID, []string{"p1", "p2"}))(e),
		Turns:    must(e.s.Turns(e.ctx, t.Tenant, t.ID, 0))(e),
		Records:  must(e.s.Records(e.ctx, a.Tenant, "k"))(e),
		Spending: must(e.s.Spending(e.ctx, store.SpendingRange{Tenant: a.Tenant}))(e),
		Outside:  must(e.s.Outside(e.ctx, a.Tenant, a.ID, t.ID))(e),
		Sizes:    must(e.s.Sizes(e.ctx, a.Tenant, a.ID))(e),
		Stats:    must(e.s.Stats(e.ctx, a.Tenant, a.ID, []string{"y"}))(e),
		Dead:     must(e.s.Meta(e.ctx, a.Tenant, a.ID))(e).Dead,
	}
}

func testNotFound(e *env) {
	_, err := e.s.Agent(e.ctx, "", "none")
	e.missing("agent", err)
	_, err = e.s.AgentNamed(e.ctx, "", "none")
	e.missing("agent by name", err)
	_, err = e.s.Thread(e.ctx, "", "none")
	e.missing("conversation", err)
	_, err = e.s.PassageKeyed(e.ctx, "", "none", "k")
	e.missing("passage", err)
	_, err = e.s.Turn(e.ctx, "", "none")
	e.missing("turn", err)
	_, err = e.s.Record(e.ctx, "", "k", "none")
	e.missing("record", err)
	for what, err := range map[string]error{
		"agents": second(e.s.Agents(e.ctx, "none")), "conversations": second(e.s.Threads(e.ctx, "", "none")),
		"entries": second(e.s.Entries(e.ctx, store.EntryRange{Thread: "none"})), "turns": second(e.s.Turns(e.ctx, "", "none", 3)),
		"history": second(e.s.BlockHistory(e.ctx, "", "none")), "events": second(e.s.Events(e.ctx, store.EventRange{Thread: "none"})),
		"passages": second(e.s.Passages(e.ctx, "", "none", []string{"x"})), "records": second(e.s.Records(e.ctx, "", "none")),
		"entries by id": second(e.s.EntriesByID(e.ctx, "", "none", []string{"x"})), "meta": second(e.s.Meta(e.ctx, "", "none")),
		"stats": second(e.s.Stats(e.ctx, "", "none", []string{"x"})), "sizes": second(e.s.Sizes(e.ctx, "", "none")),
		"keys": second(e.s.EntryKeys(e.ctx, "", "none", []string{"x"})), "numbers": second(e.s.DocNumbers(e.ctx, "", "none", []string{"x"})),
	} {
		if err != nil {
			e.Errorf("a list of nothing is an error: %s: %v", what, err)
		}
	}
	e.refuse(&store.Commit{Entries: []memgpt.Entry{{ID: "m", Agent: "a", Thread: "none", Seq: 1}}}, memgpt.CodeNotFound)
	e.refuse(&store.Commit{Events: []memgpt.Event{{ID: "e", Agent: "a", Thread: "none"}}}, memgpt.CodeNotFound)
	got := e.commit(&store.Commit{Acquire: &store.Lease{Thread: "none", Until: e.now.Add(time.Hour)}})
	e.same("lease of nothing", got.Lease, (*store.Lease)(nil))
}

func second[T any](_ T, err error) error { return err }

func testCancelled(e *env) {
	a, _ := e.agent("", "a1")
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	a.Name = "renamed"
	if _, err := e.s.Commit(ctx, &store.Commit{Now: e.now, Agents: []memgpt.Agent{a}}); !errors.Is(err, context.Canceled) {
		e.Errorf("commit with a context that ended: %v", err)
	}
	e.same("name", must(e.s.Agent(e.ctx, "", "a1"))(e).Name, "a1")
	if _, err := e.s.Agent(ctx, "", "a1"); !errors.Is(err, context.Canceled) {
		e.Errorf("read with a context that ended: %v", err)
	}
}
