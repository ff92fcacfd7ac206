package storetest

import (
	"fmt"
	"testing"

	"memgpt"
	"memgpt/store"
)

func (e *env) erase(x *store.Erasure) {
	e.Helper()
	if x.Now.IsZero() {
		x.Now = e.now
	}
	if err := e.s.Erase(e.ctx, x); err != nil {
		e.Fatalf("erase: %v", err)
	}
}

// diary is an agent with something of everything, all of it about one secret, and a second agent with the same.
type diary struct {
	agent  memgpt.Agent
	thread memgpt.Thread
	block  memgpt.Block
	first  memgpt.Entry
	event  memgpt.Event
	turn   memgpt.Turn
	old    memgpt.Passage
}

func newDiary(e *env, id string) *diary {
	e.Helper()
	d := &diary{}
	d.agent, d.thread = e.agent("", id)
	d.block = memgpt.Block{ID: "block of " + id, Label: "human", Value: "secret", Limit: 100}
	d.agent.Blocks = []string{d.block.ID}
	d.thread.Head, d.thread.Folded, d.thread.Next = 1, 1, 3
	d.thread.Summary = memgpt.Summary{Text: "the secret", Covers: 1, Time: e.now}
	d.first = e.entry(d.thread, 1, "the secret")
	d.first.Key, d.first.Turn, d.first.Step = "key of "+id, "turn of "+id, 2
	second := e.entry(d.thread, 2, "said openly")
	d.event = e.event(d.thread, e.now, "a secret event")
	d.turn = memgpt.Turn{ID: "turn of " + id, Agent: id, Thread: d.thread.ID, State: memgpt.TurnFailed, Error: "secret error", Started: e.now}
	d.old = memgpt.Passage{ID: "passage of " + id, Owner: id, Text: "secret passage", Source: "secret source", Key: "secret key", Time: e.now}
	doc := func(id string, words ...string) store.Doc {
		x := store.Doc{Owner: d.agent.ID, ID: id, Kind: memgpt.KindMessage, Thread: d.thread.ID, Author: "secret author", Length: len(words)}
		for _, w := range words {
			x.Terms = append(x.Terms, store.TermCount{Term: w, N: 2})
		}
		return x
	}
	docs := []store.Doc{doc(d.first.ID, "the", "secret"), doc(second.ID, "said", "openly"), doc(d.old.ID, "secret", "passage")}
	docs[2].Kind, docs[2].Thread = memgpt.KindPassage, ""
	used := e.event(d.thread, e.now, "x")
	used.Key = "document:Secret file:1"
	c := &store.Commit{Agents: []memgpt.Agent{d.agent}, Threads: []memgpt.Thread{d.thread}, Blocks: []memgpt.Block{d.block},
		Edits:    []store.BlockEdit{{Block: d.block.ID, Version: 1, Value: "old secret"}, {Block: d.block.ID, Version: 2, Value: "secret"}},
		Entries:  []memgpt.Entry{d.first, second},
		Passages: []memgpt.Passage{d.old}, Turns: []memgpt.Turn{d.turn}, Events: []memgpt.Event{d.event, used},
		Docs: docs}
	e.commit(c)
	e.commit(&store.Commit{Lease: e.lease(d.thread), Consume: []string{used.ID}, Release: true})
	d.agent.Version++
	d.thread.Version++
	d.block.Version = 1
	return d
}

// all is what is known of a diary, without versions.
func (d *diary) all(e *env) string {
	e.Helper()
	th := must(e.s.Thread(e.ctx, "", d.thread.ID))(e)
	blocks := must(e.s.Blocks(e.ctx, "", []string{d.block.ID}))(e)
	sizes := must(e.s.Sizes(e.ctx, "", d.agent.ID))(e)
	sizes.PostingBlocks, sizes.PostingBytes = 0, 0 // they change in the background
	return fmt.Sprint(th.Summary.Text, th.Head, blocks, must(e.s.BlockHistory(e.ctx, "", d.block.ID))(e),
		e.entries(store.EntryRange{Thread: th.ID}), must(e.s.PassagesOf(e.ctx, store.PassageRange{Owner: d.agent.ID, Dead: true}))(e),
		must(e.s.Sources(e.ctx, "", d.agent.ID))(e), must(e.s.Turns(e.ctx, "", th.ID, 0))(e),
		must(e.s.Events(e.ctx, store.EventRange{Thread: th.ID}))(e), sizes,
		must(e.s.Outside(e.ctx, "", d.agent.ID, th.ID))(e),
		must(e.s.Stats(e.ctx, "", d.agent.ID, []string{"the", "secret", "said", "openly", "passage"}))(e),
		postings(e, "", d.agent.ID, "secret"))
}

// erasure takes the secret out of all but the doc of the second entry.
func (d *diary) erasure(e *env) *store.Erasure {
	th, block, first, passage, turn, ev := d.thread, d.block, d.first, d.old, d.turn, d.event
	th.Summary.Text, th.Folded, block.Value = "", 0, ""
	first.Message = memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginOwner, "gone")
	passage.Text, passage.Source, passage.Key, passage.Deleted = "gone", "", "", e.now
	turn.Error = "gone"
	ev.Message = memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "gone")
	return &store.Erasure{Threads: []memgpt.Thread{th}, Blocks: []memgpt.Block{block}, Entries: []memgpt.Entry{first},
		Histories: []store.History{{Block: block.ID, Edits: []store.BlockEdit{{Block: block.ID, Version: 1, Value: "gone"}}}},
		Passages:  []memgpt.Passage{passage}, Turns: []memgpt.Turn{turn}, Events: []memgpt.Event{ev}, Keys: []string{"sECRET"},
		Docs: []store.Doc{{Owner: d.agent.ID, ID: first.ID}, {Owner: d.agent.ID, ID: passage.ID}, {Owner: d.agent.ID, ID: "none"}}}
}

func testErase(e *env) {
	d, other := newDiary(e, "a1"), newDiary(e, "a2")
	theirs := other.all(e)
	before := must(e.s.Sizes(e.ctx, "", "a1"))(e)
	lease := e.lease(d.thread)
	changed := e.changes()
	changed()
	x := d.erasure(e)
	e.erase(x)
	if !changed() {
		e.Errorf("nothing tells that a block changed")
	}
	e.refuse(&store.Commit{Lease: lease}, memgpt.CodeLeaseLost)
	e.refuse(&store.Commit{Threads: []memgpt.Thread{d.thread}}, memgpt.CodeConflict)
	e.refuse(&store.Commit{Blocks: []memgpt.Block{d.block}}, memgpt.CodeConflict)

	th := must(e.s.Thread(e.ctx, "", d.thread.ID))(e)
	e.same("summary and version", []any{th.Summary.Text, th.Version}, []any{"", d.thread.Version + 1})
	want := d.first
	want.Message = x.Entries[0].Message
	list := e.entries(store.EntryRange{Thread: th.ID})
	e.same("the entry", list[0], want)
	e.same("its neighbour", list[1].Message.Said(), "said openly")
	e.same("its key", must(e.s.EntryKeys(e.ctx, "", "a1", []string{d.first.Key}))(e), map[string]bool{d.first.Key: true})
	e.same("history", must(e.s.BlockHistory(e.ctx, "", d.block.ID))(e), x.Histories[0].Edits)
	e.same("block", must(e.s.Blocks(e.ctx, "", []string{d.block.ID}))(e)[0].Value, "")
	e.same("passage", must(e.s.Passages(e.ctx, "", "a1", []string{d.old.ID}))(e)[0].Text, "gone")
	_, err := e.s.PassageKeyed(e.ctx, "", "a1", d.old.Key)
	e.missing("passage by key", err)
	e.same("sources", len(must(e.s.Sources(e.ctx, "", "a1"))(e)), 0)
	e.same("turn", must(e.s.Turn(e.ctx, "", d.turn.ID))(e).Error, "gone")
	e.same("event", must(e.s.Events(e.ctx, store.EventRange{Thread: th.ID}))(e)[0].Message.Said(), "gone")
	again := e.event(d.thread, e.now, "x")
	again.Key = "document:Secret file:1"
	e.same("the key of a consumed event", len(e.commit(&store.Commit{Events: []memgpt.Event{again}}).Duplicate), 0)

	e.same("stats", must(e.s.Stats(e.ctx, "", "a1", []string{"secret", "the", "openly"}))(e),
		store.Stats{Docs: 1, Length: 2, DF: map[string]int{"secret": 0, "the": 0, "openly": 1}})
	e.same("postings", len(postings(e, "", "a1", "secret")), 0)
	e.same("numbers", must(e.s.DocNumbers(e.ctx, "", "a1", []string{d.first.ID, d.old.ID, list[1].ID}))(e), []int64{2})
	for _, author := range must(e.s.Meta(e.ctx, "", "a1"))(e).Authors {
		if author != "" && author != "secret author" {
			e.Errorf("author %q", author)
		}
	}
	after := must(e.s.Sizes(e.ctx, "", "a1"))(e)
	e.same("messages", after.Messages, before.Messages)
	e.same("passages", []int64{after.Passages, after.PassageBytes}, []int64{0, 0})
	if after.MessageBytes >= before.MessageBytes || after.ForwardBytes >= before.ForwardBytes {
		e.Errorf("sizes %+v, before %+v", after, before)
	}
	e.same("the other agent", other.all(e), theirs)
	e.erase(&store.Erasure{}) // of nothing
}

// testEraseRefused finds nothing changed where one thing of an erasure is wrong.
func testEraseRefused(e *env) {
	d := newDiary(e, "a1")
	before := d.all(e)
	for name, spoil := range map[string]func(x *store.Erasure) memgpt.Code{
		"conversation": func(x *store.Erasure) memgpt.Code { x.Threads[0].Version--; return memgpt.CodeConflict },
		"block":        func(x *store.Erasure) memgpt.Code { x.Blocks[0].Version--; return memgpt.CodeConflict },
		"no entry":     func(x *store.Erasure) memgpt.Code { x.Entries[0].Seq = 9; return memgpt.CodeNotFound },
		"no passage":   func(x *store.Erasure) memgpt.Code { x.Passages[0].ID = "none"; return memgpt.CodeNotFound },
		"no turn":      func(x *store.Erasure) memgpt.Code { x.Turns[0].ID = "none"; return memgpt.CodeNotFound },
		"no history":   func(x *store.Erasure) memgpt.Code { x.Histories[0].Block = "none"; return memgpt.CodeNotFound },
		"agent": func(x *store.Erasure) memgpt.Code {
			x.GoneAgents = []memgpt.Agent{{ID: "a1", Version: 9}}
			return memgpt.CodeConflict
		},
		"no agent": func(x *store.Erasure) memgpt.Code {
			x.GoneAgents = []memgpt.Agent{{ID: "none"}}
			return memgpt.CodeNotFound
		},
		"gone block": func(x *store.Erasure) memgpt.Code {
			x.GoneBlocks = []memgpt.Block{{ID: "none"}}
			return memgpt.CodeNotFound
		},
		"gone conversation": func(x *store.Erasure) memgpt.Code {
			x.GoneThreads = []memgpt.Thread{{ID: "none"}}
			return memgpt.CodeNotFound
		},
	} {
		x := d.erasure(e)
		code := spoil(x)
		if err := e.s.Erase(e.ctx, x); memgpt.CodeOf(err) != code {
			e.Errorf("%s: error %v, want code %s", name, err, code)
		}
		e.same(name+": what is there", d.all(e), before)
	}
}

// testEraseWhole removes a conversation, then its agent, beside another.
func testEraseWhole(e *env) {
	d, other := newDiary(e, "a1"), newDiary(e, "a2")
	second := e.thread(d.agent, "second")
	m := e.entry(second, 1, "of the second")
	e.commit(&store.Commit{Entries: []memgpt.Entry{m}, Docs: []store.Doc{{Owner: "a1", ID: m.ID, Kind: memgpt.KindMessage, Thread: second.ID, Length: 1,
		Terms: []store.TermCount{{Term: "second", N: 1}}}}})
	d.thread = must(e.s.Thread(e.ctx, "", d.thread.ID))(e)
	e.erase(&store.Erasure{GoneThreads: []memgpt.Thread{d.thread}})
	_, err := e.s.Thread(e.ctx, "", d.thread.ID)
	e.missing("conversation", err)
	e.same("conversations", len(must(e.s.Threads(e.ctx, "", "a1"))(e)), 1)
	e.same("entries", len(e.entries(store.EntryRange{Thread: d.thread.ID})), 0)
	e.same("entries by id", len(must(e.s.EntriesByID(e.ctx, "", "a1", []string{d.first.ID, m.ID}))(e)), 1)
	e.same("events", len(e.events(store.EventRange{Agent: "a1"})), 0)
	_, err = e.s.Turn(e.ctx, "", d.turn.ID)
	e.missing("turn", err)
	e.same("stats", must(e.s.Stats(e.ctx, "", "a1", []string{"the", "openly", "second", "passage"}))(e),
		store.Stats{Docs: 2, Length: 3, DF: map[string]int{"the": 0, "openly": 0, "second": 1, "passage": 1}})
	e.same("keys", len(must(e.s.EntryKeys(e.ctx, "", "a1", []string{d.first.Key}))(e)), 1)
	e.same("messages", must(e.s.Sizes(e.ctx, "", "a1"))(e).Messages, int64(1))

	third := e.thread(other.agent, "third") // must not be taken for the one that went
	e.same("entries after a new conversation", len(e.entries(store.EntryRange{Thread: d.thread.ID})), 0)
	e.same("entries of the new one", len(e.entries(store.EntryRange{Thread: third.ID})), 0)
	theirs := other.all(e)
	block := must(e.s.Blocks(e.ctx, "", []string{d.block.ID}))(e)
	e.erase(&store.Erasure{GoneAgents: []memgpt.Agent{must(e.s.Agent(e.ctx, "", "a1"))(e)}, GoneBlocks: block})
	_, err = e.s.AgentNamed(e.ctx, "", "a1")
	e.missing("agent", err)
	_, err = e.s.Blocks(e.ctx, "", []string{d.block.ID})
	e.missing("block", err)
	e.same("history", len(must(e.s.BlockHistory(e.ctx, "", d.block.ID))(e)), 0)
	e.same("entries of it", len(e.entries(store.EntryRange{Thread: second.ID})), 0)
	e.same("passages of it", len(must(e.s.PassagesOf(e.ctx, store.PassageRange{Owner: "a1", Dead: true}))(e)), 0)
	e.same("sizes of it", must(e.s.Sizes(e.ctx, "", "a1"))(e), store.Sizes{})
	e.same("the other agent", other.all(e), theirs)
	again := newDiary(e, "a1") // the name and the id are free
	e.same("entries of a new one", len(e.entries(store.EntryRange{Thread: again.thread.ID})), 2)
	e.same("stats of a new one", must(e.s.Stats(e.ctx, "", "a1", nil))(e).Docs, 3)
}

// erase erases some documents of the model, whole or in part.
func (h *history) erase(e *env) {
	e.Helper()
	owner := h.rng.IntN(len(h.owners))
	n, x := &h.models[owner], &store.Erasure{}
	if len(n.docs) == 0 {
		return
	}
	taken := map[string]bool{}
	for range 1 + h.rng.IntN(6) {
		at := h.rng.IntN(len(n.docs))
		d := n.docs[at]
		if d.ID == "" || taken[d.ID] {
			continue
		}
		taken[d.ID] = true
		left := store.Doc{Tenant: d.Tenant, Owner: d.Owner, ID: d.ID}
		if live := n.live[d.ID] - 1; h.rng.IntN(2) == 0 && !n.dead[live] {
			left = h.thinned(n.docs[live])
		}
		x.Docs = append(x.Docs, left)
		n.erase(left)
	}
	if len(x.Docs) > 0 {
		e.erase(x)
	}
}

// thinned is a document with about half of its terms, and fewer of some.
func (h *history) thinned(d store.Doc) store.Doc {
	counts := map[string]int{}
	for _, t := range d.Terms {
		counts[t.Term] += t.N
	}
	d.Terms, d.Length = nil, d.Length/2
	for term, n := range counts {
		if n = h.rng.IntN(n + 1); n > 0 {
			d.Terms = append(d.Terms, store.TermCount{Term: term, N: n})
		}
	}
	return d
}

// erase does to the model what an erasure of the document does.
func (n *naive) erase(left store.Doc) {
	live := n.live[left.ID] - 1
	for i := range n.docs {
		d := &n.docs[i]
		switch {
		case d.ID != left.ID:
		case i == live && len(left.Terms) > 0:
			d.Terms, d.Length = left.Terms, left.Length
		default:
			d.ID, d.Author, d.Session, d.Terms = "", "", "", nil
			n.dead[i] = true
		}
	}
	if len(left.Terms) == 0 {
		delete(n.live, left.ID)
	}
}

func testEraseIndex(e *env) {
	h := newHistory(11)
	for i := range 100 {
		h.step(e)
		if i%4 == 3 {
			h.erase(e)
			h.check(e)
		}
	}
}

// testEraseVectors takes vectors of erased documents away, also from whoever embedded them just now.
func testEraseVectors(e *env) {
	docs := e.docs("", "o", 6)
	for i := range docs {
		docs[i].Terms = []store.TermCount{{Term: "a", N: 2}}
	}
	e.commit(&store.Commit{Docs: docs})
	all := store.Vectors{Owner: "o", Model: "m", Through: 4, List: []store.Vector{vec(1, 0, "one"), vec(2, 0, "two"), vec(3, 0, "three"), vec(4, 0, "four")}}
	e.commit(&store.Commit{Vectors: []store.Vectors{all}})
	under := store.Vectors{Owner: "o", Model: "m", After: 4, Through: 6, List: []store.Vector{vec(5, 0, "five"), vec(6, 0, "six")}}
	first := store.Vectors{Owner: "o", Model: "n", Through: 6, List: []store.Vector{vec(5, 0, "five"), vec(6, 0, "six")}}
	thin := docs[1]
	thin.Terms = []store.TermCount{{Term: "a", N: 1}}
	e.erase(&store.Erasure{Docs: []store.Doc{{Owner: "o", ID: docs[0].ID}, thin, {Owner: "o", ID: docs[4].ID}}})
	e.refuse(&store.Commit{Vectors: []store.Vectors{under}}, memgpt.CodeConflict)
	e.commit(&store.Commit{Vectors: []store.Vectors{first}})
	e.same("vectors of a model that had none", e.vectors("", "o", "n", 0), pieces(vec(6, 0, "six")))
	at := must(e.s.Embedded(e.ctx, "", "o"))(e)["m"]
	under.After = at.Through
	e.same("cursor", []int64{at.Through, at.Partial}, []int64{3, 1})
	under.List = append([]store.Vector{vec(4, 0, "four")}, under.List...)
	e.commit(&store.Commit{Vectors: []store.Vectors{under}})
	e.same("vectors", e.vectors("", "o", "m", 0), pieces(vec(3, 0, "three"), vec(4, 0, "four"), vec(6, 0, "six")))
	e.same("what a part stayed of", e.partials("o", "m"), "2+0 ")
	e.commit(e.rest("o", "m", 2, 0, true, vec(2, 0, "two again")))
	e.same("vectors in the end", e.vectors("", "o", "m", 0), pieces(vec(2, 0, "two again"), vec(3, 0, "three"), vec(4, 0, "four"), vec(6, 0, "six")))
}

// testEraseOfOthers erases through one store what another has read.
func testEraseOfOthers(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	h := newHistory(13)
	for i := range 60 {
		h.step(e)
		h.check(f)
		if i%3 == 2 {
			h.erase(e)
			h.check(f)
			h.check(e)
		}
	}
	d := newDiary(e, "a1")
	f.same("the entry", f.entries(store.EntryRange{Thread: d.thread.ID})[0].Message.Said(), "the secret")
	e.erase(&store.Erasure{GoneAgents: []memgpt.Agent{d.agent}})
	newDiary(e, "a2")
	f.same("entries of what went", len(f.entries(store.EntryRange{Thread: d.thread.ID})), 0)
	st := must(f.s.Stats(f.ctx, "", "a1", []string{"secret"}))(f)
	f.same("stats of what went", []int{st.Docs, int(st.Length), st.DF["secret"]}, []int{0, 0, 0})
	lost := f.event(d.thread, f.now, "to what went")
	f.refuse(&store.Commit{Events: []memgpt.Event{lost}}, memgpt.CodeNotFound)
}
