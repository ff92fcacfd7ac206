package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/token"
	"memgpt/tool"
)

// busy is a turn that uses every part of memory, at a window that makes it evict. The model names passages by the ids
// that it was told.
func busy() *script.Model {
	beat := func(name string, args ...any) script.Reply {
		return script.Call(name, append(args, "request_heartbeat", true)...)
	}
	long := strings.Repeat("the ferry to Rona leaves at noon ", 60)
	steps := []func(id string) script.Reply{
		func(string) script.Reply {
			return beat("archival_memory_insert", "content", "The plum tree is red.", "tags", []string{"garden"})
		},
		func(string) script.Reply { return beat("archival_memory_insert", "content", "the plum  tree is red.") },
		func(id string) script.Reply {
			return beat("archival_memory_update", "id", id, "content", "The plum tree is white.")
		},
		func(string) script.Reply { return beat("archival_memory_search", "query", "plum tree") },
		func(string) script.Reply {
			return beat("archival_memory_search", "query", "tree", "tags", []string{"garden"})
		},
		func(string) script.Reply { return beat("conversation_search", "query", "plum tree boat") },
		func(string) script.Reply {
			return beat("conversation_search", "query", "wagtail", "roles", []string{"user"})
		},
		func(string) script.Reply { return beat("memory_read", "id", "D1:2", "around", 3) },
		func(string) script.Reply {
			return beat("core_memory_append", "label", "human", "content", "likes boats")
		},
		func(string) script.Reply { return beat("conversation_evict") },
		func(string) script.Reply { return script.Call("send_message", "message", long) },
		func(string) script.Reply { return beat("archival_memory_delete", "id", "passage-0") },
		func(string) script.Reply { return beat("archival_memory_search", "query", "otter tree") },
		func(string) script.Reply { return script.Say("done") },
	}
	taken := 0 // summaries take no step
	return script.New(script.Config{Summary: func(*memgpt.Request) script.Reply { return script.Text("Boats.\nSearch for: boat") },
		Func: func(_ int, req *memgpt.Request) script.Reply {
			taken++
			id := ""
			for i := range req.Messages {
				if res, ok := req.Messages[i].Result(); ok && id == "" && strings.Contains(res.Text, "passage-0") {
					id = res.Text[strings.Index(res.Text, "passage-0"):]
					id = strings.FieldsFunc(id, func(r rune) bool { return strings.ContainsRune(`"\ .,;:)`, r) })[0]
				}
			}
			return steps[min(taken, len(steps))-1](id)
		}})
}

// TestOverlayReadsLikeAStore runs two turns in one conversation twice, once on an overlay and once on the store itself:
// the model must be asked the same, and all that a searcher reads must be equal.
func TestOverlayReadsLikeAStore(t *testing.T) {
	s := talkSuite(t)
	s.Cases[0].Passages = []Passage{{"passage-0", "An otter lives under the bridge."}, {"passage-1", "The tree surgeon is called Oke."}}
	var asked [2][]*memgpt.Request
	var read [2]string
	for i := range 2 {
		asked[i], read[i] = twoTurns(t, s, i == 0)
	}
	if len(asked[0]) < 14 || !strings.Contains(read[0], "left the queue") || strings.Contains(read[0], `"failed"`) {
		t.Fatalf("the model was asked %d times, and not all went well: %s", len(asked[0]), read[0])
	}
	if diff := cmp.Diff(asked[0], asked[1], cmpopts.IgnoreFields(memgpt.Request{}, "Again")); diff != "" {
		t.Errorf("what the model was asked (- on an overlay, + on the store): %s", diff)
	}
	if diff := cmp.Diff(read[0], read[1]); diff != "" {
		t.Errorf("what can be read (- of an overlay, + of the store): %s", diff)
	}
}

func twoTurns(t *testing.T, s *Suite, beside bool) ([]*memgpt.Request, string) {
	t.Helper()
	base, dispose, err := newOpener(t).make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dispose() }()
	counter, err := token.New(token.Config{})
	if err != nil {
		t.Fatal(err)
	}
	model := busy()
	r := &runner{cfg: Config{Model: model, Window: 4096}, suite: s, counter: counter, analyzer: new(retrieve.Analyzer),
		tools: map[memtool.Form][]tool.Tool{}}
	l := &loader{r: r, c: &s.Cases[0], store: base}
	if err := l.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	on, lease := base, store.Lease{Thread: l.asked.ID, Number: 1}
	if beside {
		on = newOverlay(base, l.agent.ID)
	}
	clock := &clock{at: l.c.Now}
	id := l.ids(clock, "turns")
	k, err := l.kernel(on, model, clock.now, id)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		now := clock.now()
		if !beside {
			got, err := base.Commit(t.Context(), &store.Commit{Now: now, Acquire: &store.Lease{Thread: l.asked.ID, Until: now.Add(time.Hour)}})
			if err != nil || got.Lease == nil {
				t.Fatal(err, got)
			}
			lease = *got.Lease
		}
		st, err := store.Load(t.Context(), on, "", l.asked.ID)
		if err != nil {
			t.Fatal(err)
		}
		e := memgpt.Event{ID: id("event"), Turn: id("turn"), Agent: l.agent.ID, Thread: l.asked.ID, Type: memgpt.EventUser, Created: now, Due: now,
			Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, fmt.Sprintf("Tell me about tree %d", n))}
		if !beside {
			if _, err := base.Commit(t.Context(), &store.Commit{Now: now, Events: []memgpt.Event{e}}); err != nil {
				t.Fatal(err)
			}
		}
		w := &store.Work{State: st, Event: e, Lease: lease, TTL: time.Hour,
			Turn: memgpt.Turn{ID: e.Turn, Agent: e.Agent, Thread: e.Thread, Event: e.ID, Type: e.Type, State: memgpt.TurnQueued}}
		if err := k.Run(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	return model.Requests(), describe(t, on, l)
}

// describe reads all that a kernel and a searcher can read of the agent.
func describe(t *testing.T, s store.Store, l *loader) string {
	t.Helper()
	ctx := context.Background()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", " ")
	put := func(v any, err error) {
		if err == nil {
			err = enc.Encode(v)
		}
		if err != nil {
			t.Error(err)
		}
	}
	entries, err := s.Entries(ctx, store.EntryRange{Thread: l.asked.ID})
	put(entries, err)
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	put(s.Entries(ctx, store.EntryRange{Thread: l.asked.ID, After: 3, Before: 9, Limit: 2, Last: true}))
	put(s.Entries(ctx, store.EntryRange{Thread: l.asked.ID, After: 3, Limit: 2}))
	slices.Reverse(ids)
	put(s.EntriesByID(ctx, "", l.agent.ID, append(ids, "D1:1", "none")))
	put(s.Threads(ctx, "", l.agent.ID))
	put(s.Blocks(ctx, "", l.agent.Blocks))
	put(s.Outside(ctx, "", l.agent.ID, l.asked.ID))
	terms := []string{}
	for _, tc := range first(new(retrieve.Analyzer).Analyze(store.IndexText{Text: "plum tree boat otter tell ferry"})) {
		terms = append(terms, tc.Term)
		var list []store.Posting
		err := s.Postings(ctx, "", l.agent.ID, tc.Term, func(block []store.Posting) bool { list = append(list, block...); return true })
		put(list, err)
	}
	meta, err := s.Meta(ctx, "", l.agent.ID)
	put(meta, err)
	st, err := s.Stats(ctx, "", l.agent.ID, terms)
	put(map[string]any{"docs": st.Docs, "length": st.Length}, err)
	var numbers []int64
	for i := range meta.Time {
		numbers = append(numbers, int64(len(meta.Time)-i))
	}
	docs, err := s.DocIDs(ctx, "", l.agent.ID, numbers)
	put(docs, err)
	put(s.DocNumbers(ctx, "", l.agent.ID, docs[:1]))
	passages, err := s.Passages(ctx, "", l.agent.ID, docs)
	put(passages, err)
	put(s.PassagesOf(ctx, store.PassageRange{Owner: l.agent.ID, Dead: true, Limit: 3, Last: true}))
	put(s.PassagesOf(ctx, store.PassageRange{Owner: l.agent.ID, After: 1}))
	for _, p := range passages {
		got, err := s.PassageKeyed(ctx, "", l.agent.ID, p.Key)
		put(map[string]any{"id": got.ID, "code": memgpt.CodeOf(err)}, nil)
	}
	return b.String()
}

func first[T any](v T, _ int) T { return v }

func TestOverlayRefusesWhatIsNotATurns(t *testing.T) {
	base, dispose, err := newOpener(t).make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dispose() }()
	o := newOverlay(base, "agent-1")
	for name, c := range map[string]*store.Commit{
		"an agent":         {Agents: []memgpt.Agent{{ID: "agent-2"}}},
		"a lease":          {Acquire: &store.Lease{}},
		"a record":         {Records: []store.Record{{ID: "x"}}},
		"an old version":   {Threads: []memgpt.Thread{{ID: "conv-1", Version: 3}}},
		"an unknown block": {Blocks: []memgpt.Block{{ID: "block-1", Version: 1}}},
		"another's text":   {Docs: []store.Doc{{Owner: "agent-2", ID: "x"}}},
	} {
		if _, err := o.Commit(t.Context(), c); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
