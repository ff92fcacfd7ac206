package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

func postings(e *env, tenant, owner, term string) []store.Posting {
	e.Helper()
	var out []store.Posting
	err := e.s.Postings(e.ctx, tenant, owner, term, func(block []store.Posting) bool {
		out = append(out, block...)
		return true
	})
	if err != nil {
		e.Fatalf("postings of %q: %v", term, err)
	}
	return out
}

func testIndexBasics(e *env) {
	terms := func(words ...string) (list []store.TermCount) {
		for _, w := range words {
			list = append(list, store.TermCount{Term: w, N: 1})
		}
		return list
	}
	doc := func(id string, words ...string) store.Doc {
		return store.Doc{Tenant: "x", Owner: "o", ID: id, Kind: memgpt.KindPassage, Length: len(words), Terms: terms(words...)}
	}
	first := doc("d1", "a", "b")
	first.Kind, first.Role, first.Thread, first.Time = memgpt.KindMessage, memgpt.RoleAssistant, "t1", time.Unix(1700000000, 0)
	first.Author, first.Session = "Ann", "s1"
	e.commit(&store.Commit{Docs: []store.Doc{first, doc("d2", "b", "c", "c2")}})
	e.commit(&store.Commit{Docs: []store.Doc{doc("d3", "a")}})
	e.same("stats", must(e.s.Stats(e.ctx, "x", "o", []string{"a", "b", "none"}))(e),
		store.Stats{Docs: 3, Length: 6, DF: map[string]int{"a": 2, "b": 2, "none": 0}})
	e.same("postings", postings(e, "x", "o", "a"), []store.Posting{{Doc: 1, N: 1}, {Doc: 3, N: 1}})
	e.same("postings of nothing", len(postings(e, "x", "o", "none")), 0)
	e.same("ids", must(e.s.DocIDs(e.ctx, "x", "o", []int64{3, 1, 9, 0, -1}))(e), []string{"d3", "d1", "", "", ""})
	e.same("numbers", must(e.s.DocNumbers(e.ctx, "x", "o", []string{"d3", "none", "d1"}))(e), []int64{3, 1})
	m := must(e.s.Meta(e.ctx, "x", "o"))(e)
	want := &store.Meta{Time: []int64{1700000000, store.NoTime, store.NoTime}, Length: []uint32{2, 3, 1},
		Kind: []uint8{0, 1, 1}, Role: []uint8{3, 0, 0}, Dead: make([]bool, 3), Thread: m.Thread, Threads: m.Threads,
		Author: m.Author, Authors: m.Authors, Session: m.Session, Sessions: m.Sessions}
	e.same("meta", m, want)
	e.same("thread, author and session of the first", []string{m.Threads[m.Thread[0]], m.Authors[m.Author[0]], m.Sessions[m.Session[0]]},
		[]string{"t1", "Ann", "s1"})
	e.same("those of the second", m.Threads[m.Thread[1]]+m.Authors[m.Author[1]]+m.Sessions[m.Session[1]], "")
	e.commit(&store.Commit{DeadDocs: []store.DocRef{{Tenant: "x", Owner: "o", ID: "d2"}, {Tenant: "x", Owner: "o", ID: "none"}}})
	e.commit(&store.Commit{DeadDocs: []store.DocRef{{Tenant: "x", Owner: "o", ID: "d2"}}}) // once more counts once
	st := must(e.s.Stats(e.ctx, "x", "o", nil))(e)
	e.same("stats without the dead", store.Stats{Docs: st.Docs, Length: st.Length}, store.Stats{Docs: 2, Length: 3})
	e.same("dead", must(e.s.Meta(e.ctx, "x", "o"))(e).Dead, []bool{false, true, false})
	e.same("the earlier snapshot", m, want)
	e.same("postings, dead ones too", postings(e, "x", "o", "b"), []store.Posting{{Doc: 1, N: 1}, {Doc: 2, N: 1}})
	e.refuse(&store.Commit{Docs: []store.Doc{{Owner: "o", ID: "d", Kind: "painting"}}}, memgpt.CodeInvalid)
	e.refuse(&store.Commit{Docs: []store.Doc{{Owner: "o", ID: "d", Kind: memgpt.KindMessage, Role: "ghost"}}}, memgpt.CodeInvalid)
}

// testIndexStops stops a walk over postings early, and reads the store in the midst of one.
func testIndexStops(e *env) {
	for i := range 50 {
		var docs []store.Doc
		for j := range 40 {
			docs = append(docs, store.Doc{Owner: "o", ID: fmt.Sprint(i, "-", j), Kind: memgpt.KindMessage, Length: 1, Terms: []store.TermCount{{Term: "a", N: 1}}})
		}
		e.commit(&store.Commit{Docs: docs})
	}
	blocks := 0
	if err := e.s.Postings(e.ctx, "", "o", "a", func([]store.Posting) bool { blocks++; return false }); err != nil || blocks != 1 {
		e.Errorf("%d blocks after a stop, error %v", blocks, err)
	}
	err := e.s.Postings(e.ctx, "", "o", "a", func(b []store.Posting) bool {
		must(e.s.DocIDs(e.ctx, "", "o", []int64{int64(b[0].Doc)}))(e)
		must(e.s.Stats(e.ctx, "", "o", []string{"a"}))(e)
		return true
	})
	if err != nil {
		e.Error(err)
	}
	e.same("postings", len(postings(e, "", "o", "a")), 2000)
}

// naive is an index as it should be.
type naive struct {
	docs []store.Doc
	dead []bool
	live map[string]int // id to number
}

func (n *naive) add(d store.Doc) {
	if n.live == nil {
		n.live = map[string]int{}
	}
	if old := n.live[d.ID]; old != 0 {
		n.dead[old-1] = true
	}
	n.docs, n.dead = append(n.docs, d), append(n.dead, false)
	n.live[d.ID] = len(n.docs)
}

func (n *naive) kill(id string) {
	if at := n.live[id]; at != 0 {
		n.dead[at-1] = true
	}
}

func (n *naive) postings(term string) (out []store.Posting) {
	for i, d := range n.docs {
		count := 0
		for _, t := range d.Terms {
			if t.Term == term {
				count += t.N
			}
		}
		if count > 0 {
			out = append(out, store.Posting{Doc: uint32(i + 1), N: uint32(count)})
		}
	}
	return out
}

// check compares the whole index of an owner with the model.
func (n *naive) check(e *env, tenant, owner string, terms []string) {
	e.Helper()
	var want store.Stats
	for i, d := range n.docs {
		if !n.dead[i] {
			want.Docs++
			want.Length += int64(d.Length)
		}
	}
	got := must(e.s.Stats(e.ctx, tenant, owner, terms))(e)
	e.same("docs and length", [2]int64{int64(got.Docs), got.Length}, [2]int64{int64(want.Docs), want.Length})
	for _, term := range terms {
		list := n.postings(term)
		e.same("postings of "+term, postings(e, tenant, owner, term), list)
		alive := 0
		for _, p := range list {
			if !n.dead[p.Doc-1] {
				alive++
			}
		}
		if df := got.DF[term]; df < alive || df > len(list) {
			e.Errorf("document frequency of %q is %d, want %d to %d", term, df, alive, len(list))
		}
	}
	n.checkMeta(e, must(e.s.Meta(e.ctx, tenant, owner))(e))
	var numbers []int64
	var ids []string
	for i, d := range n.docs {
		numbers, ids = append(numbers, int64(i+1)), append(ids, d.ID)
	}
	e.same("ids", must(e.s.DocIDs(e.ctx, tenant, owner, numbers))(e), ids)
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" }) // those that were erased
	numbers = numbers[:len(ids)]
	for i, id := range ids {
		numbers[i] = int64(n.live[id])
	}
	e.same("numbers", must(e.s.DocNumbers(e.ctx, tenant, owner, ids))(e), numbers)
}

func (n *naive) checkMeta(e *env, m *store.Meta) {
	e.Helper()
	for _, l := range []int{len(m.Time), len(m.Length), len(m.Kind), len(m.Role), len(m.Thread), len(m.Author), len(m.Session), len(m.Dead)} {
		if l != len(n.docs) {
			e.Fatalf("a column of meta has %d rows, want %d", l, len(n.docs))
		}
	}
	for i, d := range n.docs {
		at := store.NoTime
		if !d.Time.IsZero() {
			at = d.Time.Unix()
		}
		got := fmt.Sprint(m.Time[i], m.Length[i], store.MetaKinds[m.Kind[i]], store.MetaRoles[m.Role[i]], m.Threads[m.Thread[i]], m.Authors[m.Author[i]],
			m.Sessions[m.Session[i]], m.Dead[i])
		if want := fmt.Sprint(at, d.Length, d.Kind, d.Role, d.Thread, d.Author, d.Session, n.dead[i]); got != want {
			e.Fatalf("meta of document %d is %s, want %s", i+1, got, want)
		}
	}
}

// history makes random commits of documents.
type history struct {
	rng    *rand.Rand
	zipf   *rand.Zipf
	owners []struct{ tenant, owner string }
	models []naive
	n      int
}

func newHistory(seed uint64) *history {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &history{rng: rng, zipf: rand.NewZipf(rng, 1.3, 4, 200)}
	for _, o := range [][2]string{{"", "o1"}, {"", "o2"}, {"x", "o1"}} {
		h.owners = append(h.owners, struct{ tenant, owner string }{o[0], o[1]})
	}
	h.models = make([]naive, len(h.owners))
	return h
}

// terms are those that a check looks at: common ones, rare ones and one that no document has.
func (h *history) terms() []string {
	list := []string{"none", "w0", "w1", "w2", "w3"}
	for range 15 {
		list = append(list, fmt.Sprint("w", h.zipf.Uint64()))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (h *history) doc(owner int, now time.Time) store.Doc {
	h.n++
	o := h.owners[owner]
	d := store.Doc{Tenant: o.tenant, Owner: o.owner, ID: fmt.Sprint("d", h.n), Kind: store.MetaKinds[h.rng.IntN(2)],
		Role: store.MetaRoles[h.rng.IntN(len(store.MetaRoles))], Thread: fmt.Sprint("t", h.rng.IntN(4)), Length: h.rng.IntN(300),
		Author: []string{"", "Ann", "李"}[h.rng.IntN(3)], Session: []string{"", "s1", "Ann"}[h.rng.IntN(3)]}
	if h.rng.IntN(5) > 0 {
		d.Time = now.Add(time.Duration(h.rng.Int64N(1e9)-5e8) * time.Second)
	}
	if h.rng.IntN(20) == 0 && h.n > 3 {
		d.ID = fmt.Sprint("d", 1+h.rng.IntN(h.n-1)) // indexed anew, or another owner's id
	}
	for range h.rng.IntN(30) {
		d.Terms = append(d.Terms, store.TermCount{Term: fmt.Sprint("w", h.zipf.Uint64()), N: 1 + h.rng.IntN(1+h.rng.IntN(4))})
	}
	return d
}

// step makes one commit.
func (h *history) step(e *env) {
	e.Helper()
	owner := h.rng.IntN(len(h.owners))
	n, c := &h.models[owner], &store.Commit{}
	for range 1 + h.rng.IntN(1+h.rng.IntN(40)) {
		c.Docs = append(c.Docs, h.doc(owner, e.now))
	}
	for range h.rng.IntN(3) {
		c.DeadDocs = append(c.DeadDocs, store.DocRef{Tenant: h.owners[owner].tenant, Owner: h.owners[owner].owner, ID: fmt.Sprint("d", 1+h.rng.IntN(h.n))})
	}
	e.commit(c)
	for _, d := range c.Docs {
		n.add(d)
	}
	for _, d := range c.DeadDocs {
		n.kill(d.ID)
	}
}

func (h *history) check(e *env) {
	e.Helper()
	for i, o := range h.owners {
		h.models[i].check(e, o.tenant, o.owner, h.terms())
	}
}

// seeds is how many random histories are tried.
func seeds() uint64 {
	if raced {
		return 1
	}
	return 3
}

func testIndexRandom(e *env) {
	for seed := range seeds() {
		h := newHistory(seed)
		for i, o := range h.owners {
			h.owners[i].owner = fmt.Sprint(o.owner, "-", seed)
		}
		for i := range 120 {
			h.step(e)
			if i%10 == 9 {
				h.check(e)
			}
		}
		if e.Failed() {
			e.Fatalf("with seed %d", seed)
		}
	}
}
