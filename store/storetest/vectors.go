package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"memgpt"
	"memgpt/store"
)

// docs are n documents of an owner.
func (e *env) docs(tenant, owner string, n int) []store.Doc {
	list := make([]store.Doc, n)
	for i := range list {
		list[i] = store.Doc{Tenant: tenant, Owner: owner, ID: e.id("message"), Kind: memgpt.KindMessage, Length: 1}
	}
	return list
}

// pieces are vectors as text: document, piece, content.
func pieces(list ...store.Vector) string {
	var out strings.Builder
	for _, v := range list {
		fmt.Fprintf(&out, "%d.%d=%s ", v.Doc, v.Piece, v.Data)
	}
	return out.String()
}

// collect takes vectors in as text while they are valid.
func collect(out *strings.Builder) func(store.Vector) bool {
	return func(v store.Vector) bool {
		out.WriteString(pieces(v))
		return true
	}
}

func (e *env) vectors(tenant, owner, model string, after int64) string {
	e.Helper()
	var out strings.Builder
	if err := e.s.Vectors(e.ctx, tenant, owner, model, after, collect(&out)); err != nil {
		e.Fatalf("vectors of %s: %v", owner, err)
	}
	return out.String()
}

func (e *env) vectorsAt(tenant, owner, model string, docs ...int64) string {
	e.Helper()
	var out strings.Builder
	if err := e.s.VectorsOf(e.ctx, tenant, owner, model, docs, collect(&out)); err != nil {
		e.Fatalf("vectors of documents of %s: %v", owner, err)
	}
	return out.String()
}

// cursors is how far the vectors of an owner go, by model.
func (e *env) cursors(tenant, owner string) map[string]int64 {
	e.Helper()
	out := map[string]int64{}
	for model, at := range must(e.s.Embedded(e.ctx, tenant, owner))(e) {
		out[model] = at.Through
	}
	return out
}

func vec(doc int64, piece int, data string) store.Vector {
	return store.Vector{Doc: doc, Piece: piece, Data: []byte(data)}
}

func embed(owner, model string, after, through int64, list ...store.Vector) *store.Commit {
	return &store.Commit{Vectors: []store.Vectors{{Owner: owner, Model: model, After: after, Through: through, List: list}}}
}

func testVectors(e *env) {
	e.commit(&store.Commit{Docs: e.docs("", "o", 5)})
	e.same("before any", len(must(e.s.Embedded(e.ctx, "", "o"))(e)), 0)
	e.same("vectors before any", e.vectors("", "o", "m", 0), "")
	e.commit(embed("o", "m", 0, 3, vec(1, 0, "a"), vec(1, 1, "b"), vec(3, 0, "c\x00\xff"), vec(3, 7, "")))
	e.commit(embed("o", "m", 3, 4)) // a document without text
	e.commit(embed("o", "n", 0, 1, vec(1, 0, "other")))
	e.same("cursors", e.cursors("", "o"), map[string]int64{"m": 4, "n": 1})
	e.same("all", e.vectors("", "o", "m", 0), "1.0=a 1.1=b 3.0=c\x00\xff 3.7= ")
	e.same("all after less than none", e.vectors("", "o", "m", -9), "1.0=a 1.1=b 3.0=c\x00\xff 3.7= ")
	e.same("after one", e.vectors("", "o", "m", 1), "3.0=c\x00\xff 3.7= ")
	e.same("after the last", e.vectors("", "o", "m", 3), "")
	e.same("after what can't be", e.vectors("", "o", "m", 1<<62), "")
	e.same("of the other model", e.vectors("", "o", "n", 0), "1.0=other ")
	e.same("of documents", e.vectorsAt("", "o", "m", -1, 0, 1, 2, 3, 4, 5, 6, 1<<32+1, 1<<33+3), "1.0=a 1.1=b 3.0=c\x00\xff 3.7= ")
	e.same("of one", e.vectorsAt("", "o", "m", 3), "3.0=c\x00\xff 3.7= ")
	e.same("of no model", e.vectors("", "o", "none", 0)+e.vectorsAt("", "o", "none", 1), "")
	e.same("of no owner", e.vectors("", "none", "m", 0)+e.vectorsAt("", "none", "m", 1), "")
	// Documents and their vectors can come in one commit.
	c := embed("p", "m", 0, 2, vec(2, 0, "x"))
	c.Docs = e.docs("", "p", 2)
	e.commit(c)
	e.same("of one commit with the documents", e.vectors("", "p", "m", 0), "2.0=x ")
}

// testVectorsRefused makes commits that must change nothing.
func testVectorsRefused(e *env) {
	e.commit(&store.Commit{Docs: e.docs("", "o", 5)})
	e.commit(embed("o", "m", 0, 2, vec(1, 0, "a")))
	for what, c := range map[string]*store.Commit{
		"a cursor that moved on": embed("o", "m", 0, 3), "a cursor that isn't there yet": embed("o", "m", 3, 4), "another model's cursor": embed("o", "n", 2, 3),
	} {
		err := e.refuse(c, memgpt.CodeConflict)
		if !strings.Contains(err.Error(), "vectors of o") {
			e.Errorf("%s: the error doesn't say what was attempted: %v", what, err)
		}
	}
	for _, c := range []*store.Commit{
		embed("o", "m", 2, 6), embed("none", "m", 0, 1), embed("o", "m", 2, 1<<40), // beyond the documents
		embed("o", "m", 2, 2), embed("o", "m", 2, 1), embed("o", "m", -1, 3), embed("o", "", 0, 1), embed("", "m", 0, 1),
		embed("o", "m", 2, 4, vec(2, 0, "x")), embed("o", "m", 2, 4, vec(5, 0, "x")), embed("o", "m", 2, 4, vec(3, -1, "x")),
		embed("o", "m", 2, 4, vec(4, 0, "x"), vec(3, 0, "x")), embed("o", "m", 2, 4, vec(3, 1, "x"), vec(3, 0, "x")),
		embed("o", "m", 2, 4, vec(3, 0, "x"), vec(3, 0, "x")),
	} {
		e.refuse(c, memgpt.CodeInvalid)
	}
	mixed := embed("o", "m", 2, 3, vec(3, 0, "x"))
	mixed.Vectors = append(mixed.Vectors, embed("o", "n", 1, 2).Vectors...)
	mixed.Docs = e.docs("", "o", 1)
	e.refuse(mixed, memgpt.CodeConflict)
	e.same("documents", must(e.s.Stats(e.ctx, "", "o", nil))(e).Docs, 5)
	e.same("cursors", e.cursors("", "o"), map[string]int64{"m": 2})
	e.same("vectors", e.vectors("", "o", "m", 0), "1.0=a ")
	e.same("of an owner that isn't there", len(must(e.s.Embedded(e.ctx, "", "none"))(e)), 0)
}

// testVectorsAlone holds that a commit of vectors, beside a running turn, touches nothing of it.
func testVectorsAlone(e *env) {
	a, th := e.agent("", "a1")
	l := e.lease(th)
	m, ev := e.entry(th, 1, "x"), e.event(th, e.now, "y")
	e.commit(&store.Commit{Lease: l, Entries: []memgpt.Entry{m}, Events: []memgpt.Event{ev}, Docs: e.docs("", a.ID, 3), Blocks: []memgpt.Block{{ID: "b1"}}})
	want, shared := dump(e, a, th), e.commit(&store.Commit{}).Shared
	change := must(e.s.Change(e.ctx))(e)
	out := e.commit(embed(a.ID, "m", 0, 3, vec(2, 0, "x")))
	e.same("what is there", dump(e, a, th), want)
	if out.Lease != nil || out.Shared != shared {
		e.Errorf("the commit gave %+v, and shared was %d", out, shared)
	}
	if now := must(e.s.Change(e.ctx))(e); now <= change {
		e.Errorf("the change counter is %d after %d and a commit of vectors", now, change)
	}
	e.commit(&store.Commit{Lease: l, Release: true, Consume: []string{ev.ID}})
}

func testVectorsDead(e *env) {
	docs := e.docs("", "o", 3)
	e.commit(&store.Commit{Docs: docs})
	e.commit(&store.Commit{DeadDocs: []store.DocRef{{Owner: "o", ID: docs[0].ID}}})
	e.commit(embed("o", "m", 0, 2, vec(1, 0, "a"), vec(2, 0, "b")))
	e.commit(&store.Commit{DeadDocs: []store.DocRef{{Owner: "o", ID: docs[1].ID}}})
	e.commit(embed("o", "m", 2, 3, vec(3, 0, "c")))
	e.same("vectors, dead ones too", e.vectors("", "o", "m", 0), "1.0=a 2.0=b 3.0=c ")
	e.same("backlog", len(must(e.s.Backlog(e.ctx, "m"))(e)), 0)
}

func testUnembed(e *env) {
	e.commit(&store.Commit{Docs: append(e.docs("", "o", 3), e.docs("", "p", 1)...)})
	all := embed("o", "m", 0, 3, vec(1, 0, "a"), vec(3, 0, "c"))
	e.commit(all)
	e.commit(embed("o", "n", 0, 2, vec(2, 0, "n")))
	e.commit(embed("p", "m", 0, 1, vec(1, 0, "p")))
	drop := []store.OwnerModel{{Owner: "o", Model: "m"}, {Owner: "o", Model: "none"}, {Owner: "none", Model: "m"}, {Tenant: "x", Owner: "o", Model: "n"}}
	e.commit(&store.Commit{Unembed: drop})
	e.same("cursors", e.cursors("", "o"), map[string]int64{"n": 2})
	e.same("what is left", e.vectors("", "o", "m", 0)+e.vectorsAt("", "o", "m", 1)+e.vectors("", "o", "n", 0)+e.vectors("", "p", "m", 0), "2.0=n 1.0=p ")
	e.same("backlog", must(e.s.Backlog(e.ctx, "m"))(e), []store.Backlog{{Owner: "o", Docs: 3}})
	e.refuse(embed("o", "m", 3, 4), memgpt.CodeInvalid)
	e.refuse(embed("o", "m", 2, 3), memgpt.CodeConflict)
	e.commit(embed("o", "m", 0, 1, vec(1, 0, "new")))
	e.same("begun anew", e.vectors("", "o", "m", 0), "1.0=new ")
	// Dropped and begun anew in one commit.
	again := embed("o", "m", 0, 2, vec(2, 0, "newer"))
	again.Unembed = drop[:1]
	e.commit(again)
	e.same("begun anew at once", e.vectors("", "o", "m", 0), "2.0=newer ")
	// A commit that fails drops nothing.
	wrong := embed("o", "n", 0, 1)
	wrong.Unembed = drop[:1]
	e.refuse(wrong, memgpt.CodeConflict)
	e.same("after a commit that failed", e.vectors("", "o", "m", 0), "2.0=newer ")
}

func testVectorTenants(e *env) {
	e.commit(&store.Commit{Docs: append(e.docs("x", "o", 2), e.docs("y", "o", 3)...)})
	c := embed("o", "m", 0, 2, vec(1, 0, "of x"))
	c.Vectors[0].Tenant = "x"
	e.commit(c)
	e.same("of x", e.vectors("x", "o", "m", 0), "1.0=of x ")
	e.same("of others", e.vectors("y", "o", "m", 0)+e.vectors("", "o", "m", 0)+e.vectorsAt("y", "o", "m", 1), "")
	e.same("cursors of y", len(must(e.s.Embedded(e.ctx, "y", "o"))(e)), 0)
	e.same("backlog", must(e.s.Backlog(e.ctx, "m"))(e), []store.Backlog{{Tenant: "y", Owner: "o", Docs: 3}})
}

// testVectorsStop stops walks early, and reads and writes the store in the midst of one.
func testVectorsStop(e *env) {
	const n = 1300
	e.commit(&store.Commit{Docs: e.docs("", "o", n)})
	var list []store.Vector
	var numbers []int64
	long := strings.Repeat("x", 3000) // that one read brings all is unlikely
	for doc := range int64(n) {
		list = append(list, vec(doc+1, 0, fmt.Sprint("v", doc+1, long)), vec(doc+1, 1, "w"))
		numbers = append(numbers, doc+1)
	}
	e.commit(embed("o", "m", 0, n, list...))
	want := pieces(list...)
	e.same("all", e.vectors("", "o", "m", 0) == want, true)
	e.same("of all documents", e.vectorsAt("", "o", "m", numbers...) == want, true)
	walks := map[string]func(yield func(store.Vector) bool) error{
		"all":          func(yield func(store.Vector) bool) error { return e.s.Vectors(e.ctx, "", "o", "m", 0, yield) },
		"of documents": func(yield func(store.Vector) bool) error { return e.s.VectorsOf(e.ctx, "", "o", "m", numbers, yield) },
	}
	for name, walk := range walks {
		for _, stop := range []int{1, 2, 1025, 2 * n} {
			seen := 0
			err := walk(func(store.Vector) bool { seen++; return seen < stop })
			if err != nil || seen != stop {
				e.Errorf("%s: %d vectors after a stop at %d, error %v", name, seen, stop, err)
			}
		}
		seen := 0
		err := walk(func(v store.Vector) bool {
			if seen++; seen%500 == 1 {
				e.same("the vector in a walk within the walk", e.vectorsAt("", "o", "m", v.Doc), pieces(vec(v.Doc, 0, fmt.Sprint("v", v.Doc, long)), vec(v.Doc, 1, "w")))
				e.commit(&store.Commit{Docs: e.docs("", "o", 1)})
			}
			return true
		})
		if err != nil || seen != 2*n {
			e.Errorf("%s: %d vectors, error %v", name, seen, err)
		}
	}
}

func testBacklog(e *env) {
	backlog := func(model string) []store.Backlog { return must(e.s.Backlog(e.ctx, model))(e) }
	e.agent("", "without documents")
	e.same("nothing", len(backlog("m")), 0)
	e.commit(&store.Commit{Docs: append(append(e.docs("", "o", 5), e.docs("", "p", 2)...), e.docs("x", "o", 3)...)})
	all := []store.Backlog{{Owner: "p", Docs: 2}, {Tenant: "x", Owner: "o", Docs: 3}, {Owner: "o", Docs: 5}}
	e.same("all", backlog("m"), all)
	e.commit(embed("o", "m", 0, 4))
	e.same("the fewest first", backlog("m"), []store.Backlog{{Owner: "o", After: 4, Docs: 5}, {Owner: "p", Docs: 2}, {Tenant: "x", Owner: "o", Docs: 3}})
	e.same("of another model", backlog("n"), all)
	e.commit(embed("o", "m", 4, 5))
	e.commit(embed("p", "m", 0, 2))
	e.same("those with everything", backlog("m"), []store.Backlog{{Tenant: "x", Owner: "o", Docs: 3}})
	e.commit(&store.Commit{Docs: e.docs("", "p", 1)})
	e.same("what came since", backlog("m"), []store.Backlog{{Owner: "p", After: 2, Docs: 3}, {Tenant: "x", Owner: "o", Docs: 3}})
	e.commit(&store.Commit{Unembed: []store.OwnerModel{{Owner: "o", Model: "m"}}})
	e.same("what was dropped", backlog("m")[2], store.Backlog{Owner: "o", Docs: 5})
}

// embedded is what an owner should have of one model.
type embedded struct {
	through int64
	list    []store.Vector
	partial map[int64][]store.Vector
}

// sorted brings the vectors in order after some were added.
func (s *embedded) sorted() {
	slices.SortFunc(s.list, func(a, b store.Vector) int { return cmp.Or(cmp.Compare(a.Doc, b.Doc), cmp.Compare(a.Piece, b.Piece)) })
}

// vectorHistory makes random commits of documents and vectors, and knows what must be there.
type vectorHistory struct {
	*history
	sets map[store.OwnerModel]*embedded
}

var vectorModels = []string{"m1", "m2"}

func newVectorHistory(seed uint64) *vectorHistory {
	h := &vectorHistory{newHistory(seed), map[store.OwnerModel]*embedded{}}
	for i, o := range h.owners {
		h.owners[i].owner = fmt.Sprint(o.owner, "-vectors-", seed)
	}
	for i := range h.owners {
		for _, m := range vectorModels {
			h.sets[h.key(i, m)] = &embedded{partial: map[int64][]store.Vector{}}
		}
	}
	return h
}

func (h *vectorHistory) key(owner int, model string) store.OwnerModel {
	return store.OwnerModel{Tenant: h.owners[owner].tenant, Owner: h.owners[owner].owner, Model: model}
}

// next is a commit of vectors for an owner, right or with a wrong cursor.
func (h *vectorHistory) next(owner int, model string) (v store.Vectors, right bool) {
	k, set := h.key(owner, model), h.sets[h.key(owner, model)]
	left := int64(len(h.models[owner].docs)) - set.through
	v = store.Vectors{Tenant: k.Tenant, Owner: k.Owner, Model: model, After: set.through, Through: set.through + 1 + h.rng.Int64N(left)}
	right = h.rng.IntN(5) > 0
	if !right {
		v.After += h.rng.Int64N(2)*2 - 1
		v.After = max(v.After, 0)
		v.Through = max(v.Through, v.After+1)
		right = v.After == set.through
	}
	for doc := v.After + 1; doc <= v.Through; doc++ {
		v.List = append(v.List, h.some(model, doc, 0)...)
		if h.rng.IntN(6) == 0 {
			v.Partial = append(v.Partial, doc)
		}
	}
	return v, right
}

// some are vectors of a document from a piece on.
func (h *vectorHistory) some(model string, doc int64, from int) (list []store.Vector) {
	for i := range h.rng.IntN(4) {
		pad := []int{0, 0, 0, 0, 300, 1200, 5000}[h.rng.IntN(7)]
		list = append(list, vec(doc, from+i, fmt.Sprint(model, h.rng.IntN(1000), strings.Repeat("x", pad))))
	}
	return list
}

// resume adds vectors to partial documents of an owner, one commit for all.
func (h *vectorHistory) resume(e *env, owner int, model string) {
	e.Helper()
	k, set, c := h.key(owner, model), h.sets[h.key(owner, model)], &store.Commit{}
	version := must(e.s.Embedded(e.ctx, k.Tenant, k.Owner))(e)[model].Version
	for doc, have := range set.partial {
		if h.rng.IntN(2) == 0 {
			continue
		}
		r := store.Rest{Tenant: k.Tenant, Owner: k.Owner, Model: model, Doc: doc, Pieces: len(have), Version: version,
			List: h.some(model, doc, len(have)), Whole: h.rng.IntN(2) == 0}
		c.Rests = append(c.Rests, r)
		set.partial[doc] = append(have, r.List...)
		if r.Whole {
			set.list = append(set.list, set.partial[doc]...)
			delete(set.partial, doc)
		}
	}
	set.sorted()
	e.commit(c)
}

// turn makes a few commits of documents, vectors, or of what drops vectors.
func (h *vectorHistory) turn(e *env) {
	e.Helper()
	if h.rng.IntN(3) == 0 {
		h.step(e)
		return
	}
	owner, model := h.rng.IntN(len(h.owners)), vectorModels[h.rng.IntN(2)]
	set := h.sets[h.key(owner, model)]
	if h.rng.IntN(25) == 0 {
		e.commit(&store.Commit{Unembed: []store.OwnerModel{h.key(owner, model)}})
		*set = embedded{partial: map[int64][]store.Vector{}}
	}
	if len(set.partial) > 0 && h.rng.IntN(3) == 0 {
		h.resume(e, owner, model)
	}
	if set.through == int64(len(h.models[owner].docs)) {
		return
	}
	v, right := h.next(owner, model)
	if c := (&store.Commit{Vectors: []store.Vectors{v}}); right {
		e.commit(c)
		set.through = v.Through
		for _, doc := range v.Partial {
			set.partial[doc] = nil
		}
		for _, x := range v.List {
			if have, partial := set.partial[x.Doc]; partial {
				set.partial[x.Doc] = append(have, x)
			} else {
				set.list = append(set.list, x)
			}
		}
	} else if v.Through <= int64(len(h.models[owner].docs)) {
		e.refuse(c, memgpt.CodeConflict)
	}
}

func (h *vectorHistory) compare(e *env) {
	e.Helper()
	for i, o := range h.owners {
		cursors := map[string]int64{}
		for _, model := range vectorModels {
			set := h.sets[h.key(i, model)]
			if set.through > 0 {
				cursors[model] = set.through
			}
			h.compareSet(e, o.tenant, o.owner, model, set)
		}
		e.same("cursors", e.cursors(o.tenant, o.owner), cursors)
	}
	for _, model := range vectorModels {
		h.compareBacklog(e, model)
	}
}

func (h *vectorHistory) compareSet(e *env, tenant, owner, model string, set *embedded) {
	e.Helper()
	after := h.rng.Int64N(set.through+2) - 1
	var docs []int64
	for n := int64(1); n <= set.through; n++ {
		if h.rng.IntN(3) == 0 {
			docs = append(docs, n)
		}
	}
	var late, some []store.Vector
	for _, v := range set.list {
		if v.Doc > after {
			late = append(late, v)
		}
		if _, asked := slices.BinarySearch(docs, v.Doc); asked {
			some = append(some, v)
		}
	}
	e.same(fmt.Sprint("vectors after ", after), e.vectors(tenant, owner, model, after), pieces(late...))
	e.same("vectors of documents", e.vectorsAt(tenant, owner, model, docs...), pieces(some...))
	partials := map[int64]int{}
	for _, p := range must(e.s.Partials(e.ctx, tenant, owner, model, 1e6))(e) {
		partials[p.Doc] = p.Pieces
	}
	want := map[int64]int{}
	for doc, list := range set.partial {
		want[doc] = len(list)
	}
	e.same("partial documents", partials, want)
	if at := must(e.s.Embedded(e.ctx, tenant, owner))(e)[model]; at.Partial != int64(len(want)) {
		e.Errorf("%d documents are partial, want %d", at.Partial, len(want))
	}
}

func (h *vectorHistory) compareBacklog(e *env, model string) {
	e.Helper()
	var want []store.Backlog
	for i, o := range h.owners {
		set, docs := h.sets[h.key(i, model)], int64(len(h.models[i].docs))
		if docs > set.through || len(set.partial) > 0 {
			want = append(want, store.Backlog{Tenant: o.tenant, Owner: o.owner, After: set.through, Docs: docs, Partial: int64(len(set.partial))})
		}
	}
	list := must(e.s.Backlog(e.ctx, model))(e)
	fewest := func(a, b store.Backlog) int { return cmp.Compare(a.Left(), b.Left()) }
	if !slices.IsSortedFunc(list, fewest) {
		e.Errorf("the backlog isn't sorted: %+v", list)
	}
	byName := func(a, b store.Backlog) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Owner, b.Owner))
	}
	list = slices.DeleteFunc(list, func(b store.Backlog) bool { // another history's
		return !slices.ContainsFunc(h.owners, func(o struct{ tenant, owner string }) bool { return o.tenant == b.Tenant && o.owner == b.Owner })
	})
	slices.SortFunc(list, byName)
	slices.SortFunc(want, byName)
	e.same("backlog", list, want)
}

func testVectorsRandom(e *env) {
	for seed := range seeds() {
		h := newVectorHistory(seed)
		for i := range 200 {
			h.turn(e)
			if i%7 == 6 {
				h.compare(e)
			}
			if e.Failed() {
				e.Fatalf("with seed %d in round %d", seed, i)
			}
		}
	}
}

// testVectorsOfOthers makes a history through two stores in turn, and compares through both.
func testVectorsOfOthers(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	h := newVectorHistory(9)
	for i := range 200 {
		at := []*env{e, e, f}[h.rng.IntN(3)]
		h.turn(at)
		if i%5 == 4 {
			h.compare(e)
			h.compare(f)
		}
		if t.Failed() {
			t.Fatalf("in round %d", i)
		}
	}
	if err := e.s.Close(); err != nil {
		t.Fatal(err)
	}
	h.compare(opened(t, open))
}

// testVectorsRace lets four embed the same owner through two stores at once, while documents come: each document gets the
// vector of one of them.
func testVectorsRace(t *testing.T, open func() store.Store) {
	e := opened(t, open)
	f := e.with(opened(t, open).s)
	const n = 120
	var wg sync.WaitGroup
	made := make([]int, 4)
	for i, at := range []*env{e, f, e, f} {
		wg.Go(func() { made[i] = race(at, fmt.Sprint("by ", i), n) })
	}
	for range n / 4 {
		e.commit(&store.Commit{Docs: e.docs("", "o", 4)})
	}
	wg.Wait()
	next, sum := int64(1), 0
	err := f.s.Vectors(f.ctx, "", "o", "m", 0, func(v store.Vector) bool {
		if v.Doc != next || v.Piece != 0 {
			t.Errorf("document %d, piece %d, comes where %d is due", v.Doc, v.Piece, next)
		}
		next++
		return true
	})
	for _, k := range made {
		sum += k
	}
	if err != nil || next != n+1 || sum != n {
		t.Errorf("%d documents have vectors, and %d were acknowledged, want %d; error %v", next-1, sum, n, err)
	}
}

// race embeds until an owner has n vectors, and returns how many were its own.
func race(e *env, data string, n int64) (made int) {
	for {
		at, err := e.s.Embedded(e.ctx, "", "o")
		if err != nil {
			e.Errorf("read: %v", err)
			return made
		}
		if at["m"].Through == n {
			return made
		}
		list, err := e.s.Backlog(e.ctx, "m")
		if err != nil {
			e.Errorf("read: %v", err)
			return made
		}
		for _, b := range list {
			through := min(b.After+3, b.Docs)
			c := embed("o", "m", b.After, through)
			for doc := b.After + 1; doc <= through; doc++ {
				c.Vectors[0].List = append(c.Vectors[0].List, vec(doc, 0, data))
			}
			c.Now = e.now
			_, err := e.s.Commit(e.ctx, c)
			switch {
			case err == nil:
				made += int(through - b.After)
			case memgpt.CodeOf(err) != memgpt.CodeConflict:
				e.Errorf("commit: %v", err)
				return made
			}
		}
	}
}
