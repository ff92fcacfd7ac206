package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
)

func sorted(ids ...string) []string {
	slices.Sort(ids)
	return ids
}

func testEntries(e *env) {
	_, t := e.agent("x", "a1")
	one, two := e.entry(t, 1, "one"), e.entry(t, 2, "two")
	one.Turn, one.Step, one.Key = "", 0, "line 1"
	two.Message.Type, two.Message.Author = memgpt.EventUser, "Caroline"
	two.Message.Session = "s1"
	e.commit(&store.Commit{Entries: []memgpt.Entry{one, two}})
	e.same("entries", e.entries(store.EntryRange{Tenant: "x", Thread: t.ID}), []memgpt.Entry{one, two})
	e.same("entries of another tenant", len(e.entries(store.EntryRange{Thread: t.ID})), 0)
	// An id of any form comes back as it was.
	odd := []string{"7", "dia_id:D1:3", "message-", "message-ABCDEF00-0000-7000-8000-000000000001", "message-zzzzzz00-0000-7000-8000-000000000001",
		"message-0000000000000-7000-8000-00000000000x", "名字", "message-00000000-0000-7000-8000-0000000000011", strings.Repeat("x", 300)}
	var want []memgpt.Entry
	for i, id := range odd {
		m := e.entry(t, int64(3+i), "odd")
		m.ID, m.Turn = id, id
		want = append(want, m)
	}
	e.commit(&store.Commit{Entries: want})
	e.same("entries with odd ids", must(e.s.EntriesByID(e.ctx, "x", "a1", odd))(e), want)
}

func testRanges(e *env) {
	_, t := e.agent("", "a1")
	other := e.thread(memgpt.Agent{ID: "a1"}, "t-2")
	var all []memgpt.Entry
	for seq := int64(1); seq <= 20; seq++ {
		all = append(all, e.entry(t, seq, fmt.Sprint(seq)))
	}
	e.commit(&store.Commit{Entries: all[:9]})
	e.commit(&store.Commit{Entries: append(slices.Clone(all[9:]), e.entry(other, 1, "other"), e.entry(other, 15, "other"))})
	for after := int64(0); after <= 22; after += 3 {
		for before := int64(0); before <= 24; before += 4 {
			for _, limit := range []int{0, 1, 5, 100} {
				for _, last := range []bool{false, true} {
					q := store.EntryRange{Thread: t.ID, After: after, Before: before, Limit: limit, Last: last}
					e.same(fmt.Sprintf("%+v", q), e.entries(q), selectRange(all, q))
				}
			}
		}
	}
}

func selectRange(all []memgpt.Entry, q store.EntryRange) (out []memgpt.Entry) {
	for _, m := range all {
		if m.Seq > q.After && (q.Before == 0 || m.Seq < q.Before) {
			out = append(out, m)
		}
	}
	if q.Limit == 0 || len(out) <= q.Limit {
		return out
	}
	if q.Last {
		return out[len(out)-q.Limit:]
	}
	return out[:q.Limit]
}

func testEntriesByID(e *env) {
	a, t := e.agent("", "a1")
	t2 := e.thread(a, "t-2")
	one, two, three := e.entry(t, 1, "one"), e.entry(t2, 1, "two"), e.entry(t, 2, "three")
	e.commit(&store.Commit{Entries: []memgpt.Entry{one, two, three}})
	got := must(e.s.EntriesByID(e.ctx, "", "a1", []string{three.ID, "none", two.ID, one.ID, three.ID}))(e)
	e.same("entries by id", got, []memgpt.Entry{three, two, one, three})
	e.agent("", "a2")
	e.same("entries of another agent", len(must(e.s.EntriesByID(e.ctx, "", "a2", []string{one.ID}))(e)), 0)
}

func testEntryKeys(e *env) {
	_, t := e.agent("", "a1")
	_, t2 := e.agent("", "a2")
	one := e.entry(t, 1, "one")
	one.Key = "line 1"
	e.commit(&store.Commit{Entries: []memgpt.Entry{one, e.entry(t, 2, "no key"), e.entry(t, 3, "no key")}})
	e.same("keys", must(e.s.EntryKeys(e.ctx, "", "a1", []string{"line 2", "line 1", ""}))(e), map[string]bool{"line 1": true})
	again := e.entry(t, 4, "again")
	again.Key = "line 1"
	if err := e.refuse(&store.Commit{Entries: []memgpt.Entry{again}}, memgpt.CodeExists); !strings.Contains(err.Error(), "line 1") {
		e.Errorf("error %q doesn't name the key", err)
	}
	other := e.entry(t2, 1, "another agent's")
	other.Key = "line 1"
	e.commit(&store.Commit{Entries: []memgpt.Entry{other}})
	e.same("keys of the other", must(e.s.EntryKeys(e.ctx, "", "a2", []string{"line 1"}))(e), map[string]bool{"line 1": true})
}

func testEntriesTaken(e *env) {
	a, t := e.agent("", "a1")
	one := e.entry(t, 1, "one")
	e.commit(&store.Commit{Entries: []memgpt.Entry{one}})
	same := e.entry(t, 2, "two")
	same.ID = one.ID
	if err := e.refuse(&store.Commit{Entries: []memgpt.Entry{same}}, memgpt.CodeExists); !strings.Contains(err.Error(), one.ID) {
		e.Errorf("error %q doesn't name the id", err)
	}
	e.refuse(&store.Commit{Entries: []memgpt.Entry{e.entry(t, 1, "same place")}}, memgpt.CodeConflict)
	for _, seq := range []int64{0, -1} {
		e.refuse(&store.Commit{Entries: []memgpt.Entry{e.entry(t, seq, "no place")}}, memgpt.CodeInvalid)
	}
	foreign := e.entry(t, 2, "another agent's")
	foreign.Agent = "a2"
	e.refuse(&store.Commit{Entries: []memgpt.Entry{foreign}}, memgpt.CodeInvalid)
	e.same("entries", e.entries(store.EntryRange{Thread: t.ID}), []memgpt.Entry{one})
	e.same("messages", must(e.s.Sizes(e.ctx, "", a.ID))(e).Messages, int64(1))
}

func testParts(e *env) {
	_, t := e.agent("", "a1")
	m := e.entry(t, 1, "")
	m.Message.Parts = memgpt.Parts{
		memgpt.Text{Text: "a <b> & \u2028 \"c\"\n", Thought: true}, memgpt.Image{MIME: "image/png", URL: "http://x/?a=1&b=2"},
		memgpt.Image{MIME: "image/png", Data: []byte{0, 1, 2, 255}}, memgpt.File{Name: "f", MIME: "text/plain", Data: []byte("x")},
		memgpt.Reasoning{Text: "r", Provider: "p", Data: json.RawMessage(`{"signature":"<x>"}`)},
		memgpt.Call{ID: "c", Name: "f", Arguments: `{"a": "<é>"}`}, memgpt.Call{ID: "c2", Name: "f", Arguments: `{broken`},
		memgpt.Result{CallID: "c", Name: "f", Text: `{"status":"OK"}`, Failed: true},
		memgpt.Quotes{IDs: []string{"m1", "<é>"}},
		memgpt.Unknown{Kind: "hologram", Raw: json.RawMessage(`{"depth":[1,2,{"a":"<b>"}],"n":12345678901234567890}`)},
	}
	ev := e.event(t, e.now, "")
	ev.Message = m.Message
	e.commit(&store.Commit{Entries: []memgpt.Entry{m}, Events: []memgpt.Event{ev}})
	e.same("parts", e.entries(store.EntryRange{Thread: t.ID}), []memgpt.Entry{m})
	e.same("parts of an event", must(e.s.Events(e.ctx, store.EventRange{}))(e)[0].Message, m.Message)
	empty := e.entry(t, 2, "")
	empty.Message.Parts = nil
	e.commit(&store.Commit{Entries: []memgpt.Entry{empty}})
	e.same("no parts", e.entries(store.EntryRange{Thread: t.ID, After: 1}), []memgpt.Entry{empty})
}

func testUnicode(e *env) {
	texts := []string{"我叫小林", "e\u0301 é", "👩‍👩‍👧", "\u202eabc", "'; DROP TABLE entries; --", "a\tb\r\nc", "\U0010ffff", `\u00e9 \\ "`, "ß İ ı", ""}
	_, t := e.agent("租户", "助手")
	var want []memgpt.Entry
	for i, text := range texts {
		m := e.entry(t, int64(i+1), text)
		m.Key = "key " + text
		want = append(want, m)
	}
	var terms []store.TermCount
	for _, text := range texts[:8] {
		terms = append(terms, store.TermCount{Term: text, N: 2})
	}
	e.commit(&store.Commit{Entries: want, Docs: []store.Doc{{Tenant: "租户", Owner: "助手", ID: want[0].ID, Kind: memgpt.KindMessage,
		Thread: t.ID, Role: memgpt.RoleUser, Length: 3, Terms: terms}}})
	e.same("entries", e.entries(store.EntryRange{Tenant: "租户", Thread: t.ID}), want)
	for _, term := range terms {
		e.same("postings of "+term.Term, postings(e, "租户", "助手", term.Term), []store.Posting{{Doc: 1, N: 2}})
	}
	e.same("meta", must(e.s.Meta(e.ctx, "租户", "助手"))(e).Threads, []string{t.ID})
}

// testTimes keeps instants to the nanosecond, far ones and none.
func testTimes(e *env) {
	_, t := e.agent("", "a1")
	zone := time.FixedZone("", 8*3600)
	for i, at := range []time.Time{{}, time.Date(2023, 5, 8, 13, 56, 0, 1, zone), time.Unix(0, 0), time.Date(1969, 1, 1, 0, 0, 0, 5, time.UTC),
		time.Date(1066, 10, 14, 9, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC), time.Unix(-5, 0)} {
		m := e.entry(t, int64(i+1), "x")
		m.Time = at
		ev := e.event(t, at, "x")
		e.commit(&store.Commit{Entries: []memgpt.Entry{m}, Events: []memgpt.Event{ev}})
		got := e.entries(store.EntryRange{Thread: t.ID, After: int64(i)})
		if len(got) != 1 || !got[0].Time.Equal(at) || got[0].Time.IsZero() != at.IsZero() {
			e.Errorf("time %v comes back as %v", at, got)
		}
		evs := must(e.s.Events(e.ctx, store.EventRange{Thread: t.ID}))(e)
		if !evs[i].Due.Equal(at) {
			e.Errorf("an event due at %v comes back as due at %v", at, evs[i].Due)
		}
	}
}

func testPassages(e *env) {
	a, t := e.agent("x", "a1")
	p := memgpt.Passage{ID: e.id("passage"), Tenant: "x", Owner: a.ID, Text: "likes tea", Tags: []string{"b", "a"}, Source: "notes.txt", Heading: "A > B", Position: 7, Time: e.now,
		About: e.now.Add(-time.Hour), Ended: e.now.Add(time.Hour), Learned: e.now.Add(-time.Minute), From: []string{"m1", "m2"},
		Key: "k1", Cause: memgpt.Cause{Event: "e", Origin: memgpt.OriginUser, Agent: a.ID, Turn: "t", Call: "archival_memory_insert"}}
	q := memgpt.Passage{ID: e.id("passage"), Tenant: "x", Owner: a.ID, Text: "likes coffee", Time: e.now, Key: "k2"}
	e.commit(&store.Commit{Passages: []memgpt.Passage{p, q}})
	p.Seq, q.Seq = 1, 2
	e.same("passages", must(e.s.Passages(e.ctx, "x", a.ID, []string{q.ID, "none", p.ID}))(e), []memgpt.Passage{q, p})
	e.same("passages of another owner", len(must(e.s.Passages(e.ctx, "x", "a2", []string{p.ID}))(e)), 0)
	out := must(e.s.Outside(e.ctx, "x", a.ID, t.ID))(e)
	e.same("outside", out, memgpt.Outside{Passages: 2, Sources: []string{"notes.txt"}})
	p.SupersededBy, p.Superseded = q.ID, e.now.Add(time.Minute)
	e.commit(&store.Commit{Passages: []memgpt.Passage{p}})
	e.same("a superseded passage", must(e.s.Passages(e.ctx, "x", a.ID, []string{p.ID}))(e), []memgpt.Passage{p})
	e.same("outside", must(e.s.Outside(e.ctx, "x", a.ID, t.ID))(e), memgpt.Outside{Passages: 1})
	e.commit(&store.Commit{Passages: []memgpt.Passage{p}}) // once more counts once
	q.Deleted = e.now
	e.commit(&store.Commit{Passages: []memgpt.Passage{q}})
	e.same("outside", must(e.s.Outside(e.ctx, "x", a.ID, t.ID))(e), memgpt.Outside{})
	e.same("a deleted passage", must(e.s.Passages(e.ctx, "x", a.ID, []string{q.ID}))(e), []memgpt.Passage{q})
	e.same("sizes", must(e.s.Sizes(e.ctx, "x", a.ID))(e), store.Sizes{})
}

func testPassageRanges(e *env) {
	a, _ := e.agent("x", "a1")
	for i := range 9 {
		p := memgpt.Passage{ID: fmt.Sprint("p", i+1), Tenant: "x", Owner: a.ID, Text: "text", Source: []string{"b.txt", "", "a.txt"}[i%3]}
		e.commit(&store.Commit{Passages: []memgpt.Passage{p}})
		if i == 6 {
			p.Deleted = e.now
			e.commit(&store.Commit{Passages: []memgpt.Passage{p}})
		}
	}
	for _, test := range []struct {
		q    store.PassageRange
		want string
	}{
		{store.PassageRange{}, "p1 p2 p3 p4 p5 p6 p8 p9"},
		{store.PassageRange{Dead: true}, "p1 p2 p3 p4 p5 p6 p7 p8 p9"},
		{store.PassageRange{After: 2, Before: 9, Limit: 3}, "p3 p4 p5"},
		{store.PassageRange{After: 2, Before: 9, Limit: 3, Last: true}, "p5 p6 p8"},
		{store.PassageRange{Source: "b.txt"}, "p1 p4"},
		{store.PassageRange{Source: "b.txt", Dead: true, Limit: 2, Last: true}, "p4 p7"},
		{store.PassageRange{After: 9}, ""}, {store.PassageRange{Source: "c.txt"}, ""},
		{store.PassageRange{After: math.MaxInt64}, ""}, {store.PassageRange{After: -5, Before: 2}, "p1"},
	} {
		test.q.Tenant, test.q.Owner = "x", a.ID
		var got []string
		for _, p := range must(e.s.PassagesOf(e.ctx, test.q))(e) {
			got = append(got, p.ID)
			e.same("place of "+p.ID, p.ID, fmt.Sprint("p", p.Seq))
		}
		e.same(fmt.Sprintf("%+v", test.q), strings.Join(got, " "), test.want)
	}
	e.same("of another tenant", len(must(e.s.PassagesOf(e.ctx, store.PassageRange{Owner: a.ID}))(e)), 0)
	e.same("sources", must(e.s.Sources(e.ctx, "x", a.ID))(e), []store.Source{{Name: "a.txt", Passages: 3}, {Name: "b.txt", Passages: 2}})
	e.same("sources of another", len(must(e.s.Sources(e.ctx, "", a.ID))(e)), 0)
}

func testPassageKeys(e *env) {
	a, _ := e.agent("", "a1")
	passage := func(id, key string) memgpt.Passage {
		return memgpt.Passage{ID: id, Owner: a.ID, Text: id, Key: key, Time: e.now}
	}
	p1 := passage("p1", "k")
	e.commit(&store.Commit{Passages: []memgpt.Passage{p1}})
	p1.Seq = 1
	e.same("keyed", must(e.s.PassageKeyed(e.ctx, "", a.ID, "k"))(e), p1)
	if err := e.refuse(&store.Commit{Passages: []memgpt.Passage{passage("p2", "k")}}, memgpt.CodeExists); !strings.Contains(err.Error(), "k") {
		e.Errorf("error %q doesn't name the key", err)
	}
	other := passage("p1", "k")
	other.Owner = "archive"
	e.commit(&store.Commit{Passages: []memgpt.Passage{other, passage("p3", ""), passage("p4", "")}})
	// What replaces a passage may have its key, in the same commit and in either order.
	p1.SupersededBy, p1.Superseded = "p2", e.now
	p2 := passage("p2", "k")
	e.commit(&store.Commit{Passages: []memgpt.Passage{p2, p1}})
	p2.Seq = 4
	e.same("keyed", must(e.s.PassageKeyed(e.ctx, "", a.ID, "k"))(e), p2)
	p2.Deleted = e.now
	e.commit(&store.Commit{Passages: []memgpt.Passage{p2}})
	_, err := e.s.PassageKeyed(e.ctx, "", a.ID, "k")
	e.missing("a passage with a dead one's key", err)
	_, err = e.s.PassageKeyed(e.ctx, "", a.ID, "")
	e.missing("a passage without a key", err)
	e.same("dead ones", len(must(e.s.Passages(e.ctx, "", a.ID, []string{"p1", "p2"}))(e)), 2)
}

func testTurns(e *env) {
	a, t := e.agent("", "a1")
	t2 := e.thread(a, "t-2")
	var want []memgpt.Turn
	for i := range 5 {
		r := memgpt.Turn{ID: e.id("turn"), Agent: a.ID, Thread: t.ID, Event: "e", Type: memgpt.EventUser, State: memgpt.TurnQueued, Started: e.now}
		if i == 2 {
			r.ID = "odd id"
		}
		e.commit(&store.Commit{Turns: []memgpt.Turn{r, {ID: e.id("turn"), Agent: a.ID, Thread: t2.ID}}})
		want = append([]memgpt.Turn{r}, want...)
	}
	e.same("turns", must(e.s.Turns(e.ctx, "", t.ID, 0))(e), want)
	e.same("newest turns", must(e.s.Turns(e.ctx, "", t.ID, 2))(e), want[:2])
	want[3].State, want[3].Stop, want[3].Error, want[3].Steps, want[3].Spoke = memgpt.TurnFailed, memgpt.StopModel, "no", 3, 1
	want[3].Usage, want[3].Flags, want[3].Ended = memgpt.Usage{Input: 1, Cached: 2, Written: 6, Output: 3, Reasoning: 4, Calls: 5, Priced: 7, Nano: 8}, []string{"f"}, e.now
	want[3].Searches, want[3].Prefetch = 2, &memgpt.Prefetched{Why: "w", Query: "q", Tokens: 3, Millis: 4, Second: true, Used: 1,
		Hits: []memgpt.PrefetchHit{{ID: "m", Kind: memgpt.KindMessage, Score: 0.5, Why: "s"}}}
	e.commit(&store.Commit{Turns: []memgpt.Turn{want[3]}})
	e.same("a turn replaced", must(e.s.Turn(e.ctx, "", want[3].ID))(e), want[3])
	e.same("turns after that", must(e.s.Turns(e.ctx, "", t.ID, 0))(e), want)
	_, err := e.s.Turn(e.ctx, "other", want[0].ID)
	e.missing("another tenant's turn", err)
}

func testOutside(e *env) {
	a, t := e.agent("", "a1")
	t2 := e.thread(a, "t-2")
	e.agent("", "a2")
	var list []memgpt.Entry
	for seq := int64(1); seq <= 6; seq++ {
		m := e.entry(t, seq, "x")
		if seq == 1 || seq == 3 {
			m.Time = time.Time{}
		}
		list = append(list, m)
	}
	e.commit(&store.Commit{Entries: append(list, e.entry(t2, 1, "y"), e.entry(t2, 2, "z"))})
	tidy := e.thread(a, store.TidyThreadID(a.ID)) // in which nobody is to look
	e.commit(&store.Commit{Entries: []memgpt.Entry{e.entry(tidy, 1, "v"), e.entry(tidy, 2, "w")}})
	outside := func() memgpt.Outside { return must(e.s.Outside(e.ctx, "", a.ID, t.ID))(e) }
	e.same("nothing hidden", outside(), memgpt.Outside{Elsewhere: 2})
	for _, head := range []int64{1, 3, 4, 6, 2, 0, 5} {
		t.Head = head
		e.commit(&store.Commit{Threads: []memgpt.Thread{t}})
		t.Version++
		e.same(fmt.Sprint("hidden up to ", head), outside(), naiveOutside(list, head, 2))
	}
	_, err := e.s.Outside(e.ctx, "", "a2", t.ID)
	e.missing("another agent's conversation", err)
}

func naiveOutside(list []memgpt.Entry, head int64, elsewhere int) memgpt.Outside {
	out := memgpt.Outside{Elsewhere: elsewhere}
	for _, m := range list {
		if m.Seq > head {
			continue
		}
		out.Hidden++
		if m.Time.IsZero() {
			continue
		}
		if out.First.IsZero() || m.Time.Before(out.First) {
			out.First = m.Time
		}
		if m.Time.After(out.Last) {
			out.Last = m.Time
		}
	}
	return out
}

// testOutsideRandom moves the head and appends, in one commit or in several, before and behind the head.
func testOutsideRandom(e *env) {
	rng := rand.New(rand.NewPCG(11, 7))
	a, t := e.agent("", "a1")
	var list []memgpt.Entry
	next := int64(1)
	for range 60 {
		c := &store.Commit{}
		for range rng.IntN(6) {
			m := e.entry(t, next, "x")
			m.Time = e.now.Add(time.Duration(rng.IntN(1e6)) * time.Second)
			if rng.IntN(4) == 0 {
				m.Time = time.Time{}
			}
			next++
			c.Entries = append(c.Entries, m)
		}
		if rng.IntN(2) == 0 {
			t.Head = rng.Int64N(next + 3)
			if rng.IntN(3) > 0 {
				t.Head = max(t.Head, next-3)
			}
			c.Threads = []memgpt.Thread{t}
		}
		e.commit(c)
		t.Version += int64(len(c.Threads))
		list = append(list, c.Entries...)
		e.same(fmt.Sprint("hidden up to ", t.Head), must(e.s.Outside(e.ctx, "", a.ID, t.ID))(e), naiveOutside(list, t.Head, 0))
	}
}

func testSizes(e *env) {
	a, t := e.agent("", "a1")
	e.same("empty", must(e.s.Sizes(e.ctx, "", a.ID))(e), store.Sizes{})
	e.commit(&store.Commit{Entries: []memgpt.Entry{e.entry(t, 1, strings.Repeat("x", 1000)), e.entry(t, 2, "y")},
		Passages: []memgpt.Passage{{ID: "p", Owner: a.ID, Text: strings.Repeat("z", 500)}},
		Docs:     []store.Doc{{Owner: a.ID, ID: "p", Kind: memgpt.KindPassage, Length: 1, Terms: []store.TermCount{{Term: "zzz", N: 1}}}}})
	z := must(e.s.Sizes(e.ctx, "", a.ID))(e)
	if z.Messages != 2 || z.Passages != 1 || z.Docs != 1 || z.MessageBytes < 1001 || z.PassageBytes != 500 || z.ForwardBytes <= 0 {
		e.Errorf("sizes are %+v", z)
	}
}
