package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/store"
)

// merged waits until an owner's index is merged up to its threshold.
func merged(tb testing.TB, s *Store, owner int64) (m mark) {
	tb.Helper()
	for {
		err := s.read(tb.Context(), "", func(c *conn) (err error) { m, err = readMark(c, owner); return err })
		if err != nil {
			tb.Fatal(err)
		}
		if m.docs-m.merged < s.mergeThreshold(m.docs) && m.mergeTo <= m.merged {
			return m
		}
		time.Sleep(time.Millisecond) // real time: the merging goroutine works
	}
}

// TestLargeIndex grows an index over several packed units of meta and many blocks of postings, with deaths at all times,
// and compares what a warm and a cold store say of it.
func TestLargeIndex(t *testing.T) {
	if slowed {
		t.Skip("the race detector finds here what it finds in shorter tests")
	}
	path := filepath.Join(t.TempDir(), "m.db")
	cfg := Config{Path: path, Unsafe: true, mergeAt: 900}
	s := openAt(t, cfg)
	rng := rand.New(rand.NewPCG(1, 9))
	want := &store.Meta{}
	postings := map[string][]store.Posting{}
	live, length := 0, int64(0)
	for batch := range 25 {
		c := &store.Commit{}
		for range 400 {
			n := len(want.Time) + 1
			d := store.Doc{Owner: "o", ID: fmt.Sprint("d", n), Kind: store.MetaKinds[n%2], Role: store.MetaRoles[rng.IntN(5)],
				Thread: fmt.Sprint("t", rng.IntN(1+n/100)), Length: rng.IntN(1000),
				Author: []string{"", "Ann", "李"}[rng.IntN(3)], Session: fmt.Sprint("s", n/50)}
			at := store.NoTime
			if rng.IntN(4) > 0 {
				d.Time = time.Unix(rng.Int64N(4e9)-1e9, 0)
				at = d.Time.Unix()
			}
			terms := map[string]int{"all": 1, "é": n % 3, fmt.Sprint("r", rng.IntN(5000)): 1 + rng.IntN(300), fmt.Sprint("tens", n/10): 2}
			for term, count := range terms {
				if count > 0 {
					d.Terms = append(d.Terms, store.TermCount{Term: term, N: count})
					postings[term] = append(postings[term], store.Posting{Doc: uint32(n), N: uint32(count)})
				}
			}
			c.Docs = append(c.Docs, d)
			addMeta(want, d, at)
			live++
			length += int64(d.Length)
		}
		if _, err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		var dead []store.DocRef
		for range 10 {
			n := rng.IntN(len(want.Time))
			if !want.Dead[n] {
				want.Dead[n] = true
				live--
				length -= int64(want.Length[n])
			}
			dead = append(dead, store.DocRef{Owner: "o", ID: fmt.Sprint("d", n+1)})
		}
		if _, err := s.Commit(t.Context(), &store.Commit{DeadDocs: dead}); err != nil {
			t.Fatal(err)
		}
		if batch%5 == 4 {
			checkLarge(t, s, want, postings, live, length)
		}
	}
	if m := merged(t, s, 1); m.packed < 2*metaUnit || m.merged < 9000 {
		t.Errorf("after 10,000 documents the mark is %+v", m)
	}
	checkLarge(t, s, want, postings, live, length)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, cfg)
	checkLarge(t, s, want, postings, live, length)
	checkSizes(t, s)
}

func addMeta(m *store.Meta, d store.Doc, at int64) {
	kind, _ := codeOf(store.MetaKinds, d.Kind, "")
	role, _ := codeOf(store.MetaRoles, d.Role, "")
	m.Time, m.Length = append(m.Time, at), append(m.Length, uint32(d.Length))
	m.Kind, m.Role = append(m.Kind, uint8(kind)), append(m.Role, uint8(role))
	m.Thread, m.Dead = append(m.Thread, placeOf(&m.Threads, d.Thread)), append(m.Dead, false)
	m.Author, m.Session = append(m.Author, placeOf(&m.Authors, d.Author)), append(m.Session, placeOf(&m.Sessions, d.Session))
}

// placeOf returns the place of a text in a list, which takes in a new one.
func placeOf(list *[]string, text string) uint32 {
	i := slices.Index(*list, text)
	if i < 0 {
		i = len(*list)
		*list = append(*list, text)
	}
	return uint32(i)
}

func checkLarge(t *testing.T, s *Store, want *store.Meta, postings map[string][]store.Posting, live int, length int64) {
	t.Helper()
	got, err := s.Meta(t.Context(), "", "o")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("meta differs (-want +got):\n%.2000s", diff)
	}
	st, err := s.Stats(t.Context(), "", "o", []string{"all", "é"})
	if err != nil || st.Docs != live || st.Length != length || st.DF["all"] != len(postings["all"]) || st.DF["é"] != len(postings["é"]) {
		t.Errorf("stats are %+v, want %d documents of %d words, error %v", st, live, length, err)
	}
	for i, term := range []string{"all", "é", "r1", "r77", "r4999", "tens3", "tens500", "tens999"} {
		var list []store.Posting
		err := s.Postings(t.Context(), "", "o", term, func(block []store.Posting) bool { list = append(list, block...); return true })
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(postings[term], list); diff != "" {
			t.Fatalf("postings of term %d differ (-want +got):\n%.2000s", i, diff)
		}
	}
}

// checkSizes counts the rows that the counters count.
func checkSizes(t *testing.T, s *Store) {
	t.Helper()
	z, err := s.Sizes(t.Context(), "", "o")
	if err != nil {
		t.Fatal(err)
	}
	s.token <- struct{}{}
	r, err := s.writer.one("SELECT count(*), sum(length(data)), (SELECT count(*) FROM docs), (SELECT sum(length(terms)) FROM docs), max(length(data)) FROM postings")
	s.release()
	if err != nil {
		t.Fatal(err)
	}
	if want := (store.Sizes{PostingBlocks: r.int(0), PostingBytes: r.int(1), Docs: r.int(2), ForwardBytes: r.int(3)}); z != want {
		t.Errorf("sizes are %+v, want %+v", z, want)
	}
	if r.int(4) > blockBytes+10 {
		t.Errorf("a block has %d bytes", r.int(4))
	}
}

// TestCacheLimit drops the parts of owners that were idle.
func TestCacheLimit(t *testing.T) {
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true, CacheBytes: 20_000})
	for i := range 30 {
		c := &store.Commit{}
		for j := range 20 {
			c.Docs = append(c.Docs, store.Doc{Owner: fmt.Sprint("o", i), ID: fmt.Sprint(j), Kind: memgpt.KindMessage,
				Terms: []store.TermCount{{Term: fmt.Sprint("w", j), N: 1}}})
		}
		if _, err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for owner := range i + 1 {
			if st, err := s.Stats(t.Context(), "", fmt.Sprint("o", owner), []string{"w3"}); err != nil || st.DF["w3"] != 1 {
				t.Fatalf("stats are %+v, error %v", st, err)
			}
		}
	}
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	if n := len(s.index.owners); s.index.size() > 20_000 || n >= 30 || n < 2 || s.index.owners[30] == nil {
		t.Errorf("%d owners with %d bytes are cached", n, s.index.size())
	}
}

// TestInbox takes a thread's inbox over the length up to which it is listed, and back.
func TestInbox(t *testing.T) {
	if slowed {
		t.Skip("the race detector finds here what it finds in shorter tests")
	}
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true})
	tr := newTurns(t, s, "agent-1")
	rng := rand.New(rand.NewPCG(1, 2))
	var want []string
	keys := map[string]string{}
	n := 0
	for round := range 400 {
		c := &store.Commit{Now: tr.now}
		for range rng.IntN(4) + 2*(1-round/200) {
			n++
			ev := memgpt.Event{ID: fmt.Sprint("event ", n), Agent: "agent-1", Thread: tr.thread.ID, Turn: fmt.Sprint("turn ", n),
				Due: tr.now.Add(time.Duration(rng.IntN(7)-3) * time.Hour)}
			if n%3 == 0 {
				ev.Key = fmt.Sprint("key ", n)
				keys[ev.Key] = ev.ID
			}
			c.Events = append(c.Events, ev)
		}
		for range 2 + 3*(round/200) {
			if i := rng.IntN(len(want) + 1); i < len(want) {
				c.Consume = append(c.Consume, want[i])
				want = append(want[:i], want[i+1:]...)
			}
		}
		for _, ev := range c.Events {
			want = append(want, ev.ID)
		}
		if len(keys) > 0 { // one more with a key that is known
			key := fmt.Sprint("key ", 3*(1+rng.IntN(n/3)))
			if keys[key] != "" {
				c.Events = append(c.Events, memgpt.Event{ID: "event again", Agent: "agent-1", Thread: tr.thread.ID, Key: key})
			}
		}
		got, err := s.Commit(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range got.Duplicate {
			if keys[d.Key] != d.ID || d.Turn != "turn "+d.ID[len("event "):] {
				t.Errorf("the duplicate of %s is %+v", d.Key, d)
			}
		}
		again := len(c.Events) > 0 && c.Events[len(c.Events)-1].ID == "event again"
		if again != (len(got.Duplicate) == 1) {
			t.Errorf("%d duplicates, one is wanted: %v", len(got.Duplicate), again)
		}
		checkInbox(t, s, tr.thread.ID, want)
		if t.Failed() {
			t.Fatalf("in round %d with %d pending", round, len(want))
		}
	}
}

func checkInbox(t *testing.T, s *Store, thread string, want []string) {
	t.Helper()
	list, err := s.Events(t.Context(), store.EventRange{Thread: thread})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, ev := range list {
		got = append(got, ev.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("pending are %v, want %v", got, want)
	}
}

// TestMergeSlices looks at the index after every slice of merges, while documents come, and abandons merges at random
// slices as a crash would.
func TestMergeSlices(t *testing.T) {
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true, mergeAt: 1 << 40})
	s.merges.close() // the store's own merging would find those that are abandoned here
	<-s.merges.ended
	rng := rand.New(rand.NewPCG(8, 9))
	postings := map[string][]store.Posting{}
	docs := 0
	add := func(n int) {
		c := &store.Commit{}
		for range n {
			docs++
			d := store.Doc{Owner: "o", ID: fmt.Sprint(docs), Kind: memgpt.KindMessage, Length: 1}
			for w := range 8 {
				if term := fmt.Sprint("w", w); rng.IntN(w+1) == 0 {
					d.Terms = append(d.Terms, store.TermCount{Term: term, N: 1 + rng.IntN(2)})
					postings[term] = append(postings[term], store.Posting{Doc: uint32(docs), N: uint32(d.Terms[len(d.Terms)-1].N)})
				}
			}
			c.Docs = append(c.Docs, d)
		}
		if _, err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		terms := []string{"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", "none"}
		st, err := s.Stats(t.Context(), "", "o", terms)
		if err != nil {
			t.Fatal(err)
		}
		for _, term := range terms {
			var got []store.Posting
			err := s.Postings(t.Context(), "", "o", term, func(block []store.Posting) bool { got = append(got, block...); return true })
			if diff := cmp.Diff(postings[term], got); err != nil || diff != "" || st.DF[term] != len(got) {
				t.Fatalf("postings of %s differ, error %v, frequency %d (-want +got):\n%s", term, err, st.DF[term], diff)
			}
		}
	}
	for range 60 {
		add(rng.IntN(5))
		m, rival := &mergeJob{owner: 1, most: 1 + rng.IntN(3)}, &mergeJob{owner: 1, most: 1}
		for _, m := range []*mergeJob{m, rival} {
			load := func(c *conn) error { return m.load(c, func(int64) int64 { return 3 }) }
			if err := s.snapshot(t.Context(), "", load); err != nil {
				t.Fatal(err)
			}
		}
		for abandon := rng.IntN(12); m.to != 0 && !m.over && abandon > 0; abandon-- {
			s.token <- struct{}{}
			err := s.writeSlice(m)
			s.release()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.writeSlice(rival); !errors.Is(err, errMoved) {
				t.Fatalf("two processes merge the same: %v", err)
			}
			if rng.IntN(3) == 0 {
				s.index.init(1 << 20) // a reader that begins now
			}
			check()
			add(rng.IntN(3))
			check()
		}
	}
	add(10)
	check()
	all := &mergeJob{owner: 1}
	for !all.over {
		if all.to == 0 {
			load := func(c *conn) error { return all.load(c, func(int64) int64 { return 3 }) }
			if err := s.snapshot(t.Context(), "", load); err != nil {
				t.Fatal(err)
			}
		}
		s.token <- struct{}{}
		err := s.writeSlice(all)
		s.release()
		if err != nil {
			t.Fatal(err)
		}
	}
	check()
	m := merged(t, s, 1)
	if tail := s.index.owner(1).tail; m.merged < 50 || int64(tail.base) != m.merged || int64(tail.last) != m.docs {
		t.Errorf("the mark is %+v, and documents %d to %d are cached", m, tail.base, tail.last)
	}
}
