package retrieve_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/tool"
)

// oneAnswer is an embedder so slow that the time of a search is over after so many answers.
type oneAnswer struct {
	*fakeEncoder
	answers int
	asked   []int // texts of each call
}

func (e *oneAnswer) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	e.asked = append(e.asked, len(texts))
	if e.answers--; e.answers < 0 {
		return nil, context.DeadlineExceeded
	}
	return e.fakeEncoder.Embed(ctx, texts, query)
}

// TestSlowEmbedder searches in processes whose time is enough for one answer: each comes one further, from the third on
// meaning counts, and from the first on where an indexer ran before.
func TestSlowEmbedder(t *testing.T) {
	m := fakeStore(someTexts, newFake("m"))
	kept := m.store(t)
	search := func(records retrieve.Records, fake *fakeEncoder) (tool.Hits, *oneAnswer) {
		t.Helper()
		e := &oneAnswer{fakeEncoder: fake, answers: 1}
		s, err := retrieve.New(retrieve.Config{Index: m, Store: m, Embedders: []tool.Embedder{e}, Records: records, Wait: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return ask(t, s, tool.Query{Text: "feline"}), e
	}
	for range 2 {
		if hits, e := search(nil, newFake("m")); hits.Model != "" || hits.Words == "" || len(e.asked) != 2 {
			t.Errorf("without anything kept: %+v after calls of %v texts", hits, e.asked)
		}
	}
	if hits, e := search(kept, newFake("m")); hits.Model != "" || hits.Words == "" || len(e.asked) != 2 {
		t.Errorf("the first process: %+v after calls of %v texts", hits, e.asked)
	}
	if hits, e := search(kept, newFake("m")); hits.Model != "" || len(e.asked) != 2 || e.asked[0] >= 24 {
		t.Errorf("the second process: %+v after calls of %v texts", hits, e.asked)
	}
	want := ask(t, hybrid(t, m, newFake("m")), tool.Query{Text: "feline"})
	for range 2 {
		hits, e := search(kept, newFake("m"))
		if hits.Model != "m" || !slices.Equal(e.asked, []int{1}) || len(hits.List) != len(want.List) || hits.List[0].ID != want.List[0].ID || hits.List[0].Score != want.List[0].Score {
			t.Errorf("a later process: %+v after calls of %v texts, want %+v", hits, e.asked, want)
		}
	}
	indexed := m.store(t)
	x, err := retrieve.NewIndexer(retrieve.IndexerConfig{Store: indexed, Embedder: newFake("m")})
	if err != nil {
		t.Fatal(err)
	}
	embedStore(t, x)
	if hits, e := search(indexed, newFake("m")); hits.Model != "m" || !slices.Equal(e.asked, []int{1}) {
		t.Errorf("after an indexer: %+v after calls of %v texts", hits, e.asked)
	}
	// Records that are damaged, or of other plain texts, are made anew.
	for what, spoil := range map[string]func(data string) string{
		"empty":          func(string) string { return "{}" },
		"of other texts": func(data string) string { return strings.Replace(data, `"Texts":"`, `"Texts":"0`, 1) },
		"cut":            func(data string) string { return strings.Replace(data, `"Mean":"`, `"Mean":"AAAA`, 1) },
	} {
		r, err := kept.Record(t.Context(), "", "prior", "m")
		if err != nil {
			t.Fatal(err)
		}
		r.Data = []byte(spoil(string(r.Data)))
		if _, err := kept.Commit(t.Context(), &store.Commit{Records: []store.Record{r}}); err != nil {
			t.Fatal(err)
		}
		if _, e := search(kept, newFake("m")); len(e.asked) != 2 {
			t.Errorf("a record that is %s was taken", what)
		}
		search(kept, newFake("m"))
		if hits, _ := search(kept, newFake("m")); hits.Model != "m" {
			t.Errorf("a record that is %s was not replaced: %+v", what, hits)
		}
	}
}

func embedStore(t *testing.T, x *retrieve.Indexer) {
	t.Helper()
	for more := true; more; {
		var err error
		if _, more, err = x.Some(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
	}
}

// shortEncoder is another model that goes by the same name.
type shortEncoder struct{ *fakeEncoder }

func (e shortEncoder) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	vectors, err := e.fakeEncoder.Embed(ctx, texts, query)
	for i := range vectors {
		vectors[i] = vectors[i][:fakeDim/2]
	}
	return vectors, err
}

// TestPriorOfAnotherModel has a model replaced by one of other dimensions under its name: what was kept of the first one
// isn't held against the second, by a search or by an indexer.
func TestPriorOfAnotherModel(t *testing.T) {
	m := fakeStore(someTexts, newFake("m"))
	kept := m.store(t)
	for _, e := range []tool.Embedder{newFake("m"), shortEncoder{newFake("m")}} {
		o := m.owner("", "a")
		for i, text := range someTexts {
			vectors, err := e.Embed(t.Context(), []string{text}, false)
			if err != nil {
				t.Fatal(err)
			}
			o.vectors["m"][i].Data = retrieve.PackVector(vectors[0])
		}
		s, err := retrieve.New(retrieve.Config{Index: m, Store: m, Embedders: []tool.Embedder{e}, Records: kept})
		if err != nil {
			t.Fatal(err)
		}
		if hits := ask(t, s, tool.Query{Text: "feline"}); hits.Model != "m" || len(hits.List) == 0 || hits.List[0].ID != "message-1" {
			t.Errorf("%T: %+v", e, hits)
		}
	}
}

// changed is a store whose agent "a" says the texts, and what searches and indexes it.
type changed struct {
	t *testing.T
	s *sqlite.Store
	n int
}

func newChanged(t *testing.T) *changed {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	h := &changed{t: t, s: s}
	if _, err := s.Commit(t.Context(), &store.Commit{Agents: []memgpt.Agent{{ID: "a", Name: "a"}}}); err != nil {
		t.Fatal(err)
	}
	h.say(someTexts...)
	return h
}

// say stores passages.
func (h *changed) say(texts ...string) {
	h.t.Helper()
	analyzer := new(retrieve.Analyzer)
	c := &store.Commit{}
	for _, text := range texts {
		h.n++
		id := fmt.Sprint("p", h.n)
		terms, length := analyzer.Analyze(store.IndexText{Text: text})
		c.Passages = append(c.Passages, memgpt.Passage{ID: id, Owner: "a", Text: text})
		c.Docs = append(c.Docs, store.Doc{Owner: "a", ID: id, Kind: memgpt.KindPassage, Length: length, Terms: terms})
	}
	if _, err := h.s.Commit(h.t.Context(), c); err != nil {
		h.t.Fatal(err)
	}
}

// index makes batches of two texts by a model, as a process that is configured with it.
func (h *changed) index(model string, batches int) {
	h.t.Helper()
	x, err := retrieve.NewIndexer(retrieve.IndexerConfig{Store: h.s, Embedder: newFake(model), Retire: true, Texts: 2})
	if err != nil {
		h.t.Fatal(err)
	}
	for more := true; more && batches > 0; batches-- {
		if _, more, err = x.Some(h.t.Context(), "", ""); err != nil {
			h.t.Fatal(err)
		}
	}
}

// ask searches as a process with the models, the wanted one first.
func (h *changed) ask(text string, models ...string) tool.Hits {
	h.t.Helper()
	var embedders []tool.Embedder
	for _, m := range models {
		embedders = append(embedders, newFake(m))
	}
	s, err := retrieve.New(retrieve.Config{Index: h.s, Store: h.s, Embedders: embedders, Records: h.s})
	if err != nil {
		h.t.Fatal(err)
	}
	return ask(h.t, s, tool.Query{Text: text})
}

// serves wants a model's vectors to have found the text about a cat by another word.
func (h *changed) serves(what string, hits tool.Hits, model string) {
	h.t.Helper()
	if hits.Model != model || hits.Words != "" || len(hits.List) == 0 || hits.List[0].ID != "p1" {
		h.t.Errorf("%s: %+v, want p1 by %s", what, hits, model)
	}
}

// models are those that the store has vectors of.
func (h *changed) models() string {
	h.t.Helper()
	at, err := h.s.Embedded(h.t.Context(), "", "a")
	if err != nil {
		h.t.Fatal(err)
	}
	var list []string
	for m := range at {
		list = append(list, m)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// TestChangeOfEmbedder changes the model, there and half back again: what is complete serves, nothing is mixed, and no
// vectors stay that nothing uses.
func TestChangeOfEmbedder(t *testing.T) {
	h := newChanged(t)
	h.index("A", 99)
	h.serves("at first", h.ask("feline", "A"), "A")
	h.index("B", 3)
	h.serves("half way, A still at hand", h.ask("feline", "B", "A"), "A")
	// A can't be asked any more: words find, and the result says how many texts have nothing else.
	hits := h.ask("umbrella", "C")
	if hits.Model != "" || !strings.Contains(hits.Words, "vector by C") || hits.Unembedded != 1 || len(hits.List) == 0 || hits.List[0].ID != "p6" {
		t.Errorf("where only another model is at hand: %+v", hits)
	}
	h.say("A text that came meanwhile")
	h.serves("half way and back", h.ask("feline", "A", "B"), "A")
	if got := h.models(); got != "A B" {
		t.Errorf("half way there are vectors of %s", got)
	}
	h.index("A", 99)
	if got := h.models(); got != "A" {
		t.Errorf("half way and back there are vectors of %s", got)
	}
	h.index("B", 99)
	if got := h.models(); got != "B" {
		t.Errorf("at the end there are vectors of %s", got)
	}
	h.serves("at the end", h.ask("feline", "B", "A"), "B")
	hits = h.ask("umbrella", "A")
	if hits.Model != "" || hits.Words == "" || hits.Unembedded != 1 || len(hits.List) == 0 {
		t.Errorf("by what went: %+v", hits)
	}
}

// TestSearchSeesLateVectors searches in one process while another one completes and erases vectors of documents that the
// cursor had passed.
func TestSearchSeesLateVectors(t *testing.T) {
	h := newChanged(t)
	e := newFake("m")
	s, err := retrieve.New(retrieve.Config{Index: h.s, Store: h.s, Embedders: []tool.Embedder{e}})
	if err != nil {
		t.Fatal(err)
	}
	v := store.Vectors{Owner: "a", Model: "m", Through: int64(len(someTexts)), Partial: []int64{1}}
	for i, text := range someTexts[1:] {
		v.List = append(v.List, store.Vector{Doc: int64(i + 2), Data: retrieve.PackVector(e.vector(text))})
	}
	if _, err := h.s.Commit(t.Context(), &store.Commit{Vectors: []store.Vectors{v}}); err != nil {
		t.Fatal(err)
	}
	if hits := ask(t, s, tool.Query{Text: "feline"}); hits.Unembedded != 1./12 || len(hits.List) > 0 && hits.List[0].ID == "p1" {
		t.Errorf("without its vector: %+v", hits)
	}
	at, err := h.s.Embedded(t.Context(), "", "a")
	if err != nil {
		t.Fatal(err)
	}
	whole := store.Rest{Owner: "a", Model: "m", Doc: 1, Version: at["m"].Version, Whole: true,
		List: []store.Vector{{Doc: 1, Data: retrieve.PackVector(e.vector(someTexts[0]))}}}
	if _, err := h.s.Commit(t.Context(), &store.Commit{Rests: []store.Rest{whole}}); err != nil {
		t.Fatal(err)
	}
	h.serves("with its vector", ask(t, s, tool.Query{Text: "feline"}), "m")
}
