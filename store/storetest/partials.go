package storetest

import (
	"fmt"
	"strings"

	"memgpt"
	"memgpt/store"
)

// partials are an owner's partial documents as text, with how many pieces they have.
func (e *env) partials(owner, model string) string {
	e.Helper()
	var out strings.Builder
	for _, p := range must(e.s.Partials(e.ctx, "", owner, model, 99))(e) {
		fmt.Fprintf(&out, "%d+%d%s ", p.Doc, p.Pieces, p.First)
	}
	return out.String()
}

// rest is a commit of more vectors of a document that has some, under the cursor's present version.
func (e *env) rest(owner, model string, doc int64, have int, whole bool, list ...store.Vector) *store.Commit {
	e.Helper()
	at := must(e.s.Embedded(e.ctx, "", owner))(e)[model]
	return &store.Commit{Rests: []store.Rest{{Owner: owner, Model: model, Doc: doc, Pieces: have, Version: at.Version, List: list, Whole: whole}}}
}

// testPartials makes documents whole piece by piece.
func testPartials(e *env) {
	e.commit(&store.Commit{Docs: e.docs("", "o", 6)})
	c := embed("o", "m", 0, 5, vec(1, 0, "a"), vec(2, 0, "b"), vec(3, 0, "c"), vec(3, 1, "d"), vec(5, 0, "e"))
	c.Vectors[0].Partial = []int64{2, 3, 4}
	e.commit(c)
	begun := must(e.s.Embedded(e.ctx, "", "o"))(e)["m"]
	e.same("cursor", []int64{begun.Through, begun.Partial}, []int64{5, 3})
	e.same("partial documents", e.partials("o", "m"), "2+1b 3+2c 4+0 ")
	e.same("the first of them", len(must(e.s.Partials(e.ctx, "", "o", "m", 1))(e)), 1)
	e.same("of another model and owner", e.partials("o", "n")+e.partials("none", "m"), "")
	e.same("backlog", must(e.s.Backlog(e.ctx, "m"))(e), []store.Backlog{{Owner: "o", After: 5, Docs: 6, Partial: 3}})
	e.same("vectors of whole documents", e.vectors("", "o", "m", 0)+e.vectorsAt("", "o", "m", 1, 2, 3, 4, 5), "1.0=a 5.0=e 1.0=a 5.0=e ")

	e.commit(e.rest("o", "m", 3, 2, false, vec(3, 2, "f")))
	e.same("after a piece more", e.partials("o", "m"), "2+1b 3+3c 4+0 ")
	e.same("the version, since nothing became whole", must(e.s.Embedded(e.ctx, "", "o"))(e)["m"].Version, begun.Version)
	late := e.rest("o", "m", 2, 1, true)
	e.commit(e.rest("o", "m", 3, 3, true, vec(3, 3, "g"), vec(3, 4, "h")))
	e.same("a document in its place", e.vectors("", "o", "m", 0), "1.0=a 3.0=c 3.1=d 3.2=f 3.3=g 3.4=h 5.0=e ")
	e.same("documents beside it", e.vectorsAt("", "o", "m", 1, 3), "1.0=a 3.0=c 3.1=d 3.2=f 3.3=g 3.4=h ")
	e.same("documents behind it", e.vectorsAt("", "o", "m", 2, 4, 5), "5.0=e ")
	if at := must(e.s.Embedded(e.ctx, "", "o"))(e)["m"]; at.Version == begun.Version || at.Through != 5 || at.Partial != 2 {
		e.Errorf("the cursor is %+v after %+v and a document that became whole", at, begun)
	}
	e.refuse(late, memgpt.CodeConflict)
	e.commit(e.rest("o", "m", 4, 0, true)) // without a text
	e.commit(e.rest("o", "m", 2, 1, true)) // it was all
	e.same("all", e.vectors("", "o", "m", 0), "1.0=a 2.0=b 3.0=c 3.1=d 3.2=f 3.3=g 3.4=h 5.0=e ")
	e.same("partial documents in the end", e.partials("o", "m"), "")
	e.commit(embed("o", "m", 5, 6))
	e.same("backlog in the end", len(must(e.s.Backlog(e.ctx, "m"))(e)), 0)
}

// testPartialsRefused makes commits that must change nothing.
func testPartialsRefused(e *env) {
	e.commit(&store.Commit{Docs: e.docs("", "o", 5)})
	for _, partial := range [][]int64{{0}, {1}, {5}, {4, 3}, {3, 3}} {
		if partial[0] == 1 {
			e.commit(embed("o", "m", 0, 2))
		}
		c := embed("o", "m", must(e.s.Embedded(e.ctx, "", "o"))(e)["m"].Through, 4)
		c.Vectors[0].Partial = partial
		e.refuse(c, memgpt.CodeInvalid)
	}
	c := embed("o", "m", 2, 4, vec(3, 0, "a"))
	c.Vectors[0].Partial = []int64{3}
	e.commit(c)
	for what, c := range map[string]*store.Commit{
		"fewer pieces": e.rest("o", "m", 3, 0, true, vec(3, 0, "x")), "more pieces": e.rest("o", "m", 3, 2, true),
		"a whole document": e.rest("o", "m", 1, 0, true), "one beyond the cursor": e.rest("o", "m", 5, 0, true),
		"no document": e.rest("o", "m", 0, 0, true), "another model": e.rest("o", "n", 3, 1, true), "another owner": e.rest("none", "m", 3, 1, true),
	} {
		if err := e.refuse(c, memgpt.CodeConflict); !strings.Contains(err.Error(), "vectors of document") {
			e.Errorf("%s: the error doesn't say what was attempted: %v", what, err)
		}
	}
	for _, list := range [][]store.Vector{{vec(4, 1, "x")}, {vec(3, 0, "x")}, {vec(3, 2, "x")}, {vec(3, 1, "x"), vec(3, 1, "x")}} {
		e.refuse(e.rest("o", "m", 3, 1, true, list...), memgpt.CodeInvalid)
	}
	other := e.rest("o", "m", 3, 1, true, vec(3, 1, "x"))
	other.Rests[0].Version++
	e.refuse(other, memgpt.CodeConflict)
	e.same("what is there", e.partials("o", "m")+e.vectors("", "o", "m", 0), "3+1a ")
	// What was begun anew is another set.
	old := e.rest("o", "m", 3, 1, true)
	again := embed("o", "m", 0, 4, vec(3, 0, "b"))
	again.Vectors[0].Partial, again.Unembed = []int64{3}, []store.OwnerModel{{Owner: "o", Model: "m"}}
	e.commit(again)
	e.refuse(old, memgpt.CodeConflict)
	e.same("what was begun anew", e.partials("o", "m"), "3+1b ")
}

// testErasePartials erases partial documents, whole and in part, also under the hands of who embeds them.
func testErasePartials(e *env) {
	docs := e.docs("", "o", 5)
	for i := range docs {
		docs[i].Terms = []store.TermCount{{Term: "a", N: 2}}
	}
	e.commit(&store.Commit{Docs: docs})
	c := embed("o", "m", 0, 5, vec(1, 0, "a"), vec(2, 0, "b"), vec(3, 0, "c"), vec(4, 0, "d"))
	c.Vectors[0].Partial = []int64{1, 2, 3}
	e.commit(c)
	under := []*store.Commit{e.rest("o", "m", 1, 1, true), e.rest("o", "m", 2, 1, true), e.rest("o", "m", 3, 1, true)}
	thin := docs[1]
	thin.Terms = []store.TermCount{{Term: "a", N: 1}}
	e.erase(&store.Erasure{Docs: []store.Doc{{Owner: "o", ID: docs[0].ID}, thin}})
	for _, c := range under {
		e.refuse(c, memgpt.CodeConflict)
	}
	e.same("partial documents", e.partials("o", "m"), "2+0 3+1c ")
	e.same("cursor", e.cursors("", "o"), map[string]int64{"m": 4})
	// The text was read before the erasure, and pieces are none as before.
	e.commit(e.rest("o", "m", 3, 1, true))
	stale := e.rest("o", "m", 2, 0, true, vec(2, 0, "of the old text"))
	thin.Terms = []store.TermCount{{Term: "a", N: 1}}
	e.erase(&store.Erasure{Docs: []store.Doc{thin}})
	e.refuse(stale, memgpt.CodeConflict)
	// A document that is whole again, and one that was erased while its first pieces were embedded.
	e.commit(e.rest("o", "m", 2, 0, true, vec(2, 0, "new")))
	e.same("vectors", e.vectors("", "o", "m", 0), "2.0=new 3.0=c ")
	n := embed("o", "n", 0, 2, vec(1, 0, "erased"), vec(2, 0, "n"))
	n.Vectors[0].Partial = []int64{1, 2}
	e.commit(n)
	e.same("partial documents of another model", e.partials("o", "n"), "2+1n ")
	e.commit(&store.Commit{Unembed: []store.OwnerModel{{Owner: "o", Model: "n"}}})
	e.same("what was dropped", e.partials("o", "n"), "")
}

// testSuperseded finds the vectors that are of no more use.
func testSuperseded(e *env) {
	superseded := func(model string) []store.OwnerModel { return must(e.s.Superseded(e.ctx, model))(e) }
	docs := append(e.docs("", "o", 2), e.docs("x", "o", 1)...)
	e.commit(&store.Commit{Docs: append(docs, e.docs("", "p", 1)...)})
	e.commit(embed("o", "m", 0, 1))
	e.commit(embed("o", "n", 0, 2))
	e.commit(embed("p", "n", 0, 1))
	x := embed("o", "k", 0, 1)
	x.Vectors[0].Tenant = "x"
	e.commit(x)
	x = embed("o", "m", 0, 1, vec(1, 0, "a"))
	x.Vectors[0].Tenant, x.Vectors[0].Partial = "x", []int64{1}
	e.commit(x)
	e.same("by a model that has all", superseded("n"), []store.OwnerModel{{Owner: "o", Model: "m"}})
	e.same("by one that hasn't, by one that is alone, by none", len(superseded("m"))+len(superseded("none"))+len(superseded("")), 0)
	at := must(e.s.Embedded(e.ctx, "x", "o"))(e)["m"]
	e.commit(&store.Commit{Rests: []store.Rest{{Tenant: "x", Owner: "o", Model: "m", Doc: 1, Pieces: 1, Version: at.Version, Whole: true}}})
	e.same("when the last is whole", superseded("m"), []store.OwnerModel{{Tenant: "x", Owner: "o", Model: "k"}})
	e.commit(&store.Commit{Unembed: superseded("n")})
	e.same("when they were dropped", len(superseded("n")), 0)
}
