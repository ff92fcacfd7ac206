package retrieve_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/embed/e5"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

// ownedPassage returns a passage of any owner.
func ownedPassage(owner string, n int, text string, at time.Time, tags ...string) memgpt.Passage {
	p := passage(n, text, at, tags...)
	p.Owner = owner
	return p
}

// killOf takes a document of any owner out of results.
func (m *memIndex) killOf(owner, id string) {
	o := m.owner("", owner)
	i := o.numbers[id] - 1
	o.meta.Dead[i] = true
	o.docs--
	o.length -= int64(o.meta.Length[i])
}

// embedOwner gives all passages of an owner vectors.
func (m *memIndex) embedOwner(owner string, e *fakeEncoder) {
	o := m.owner("", owner)
	for i, id := range o.ids {
		text := o.passages[id].Text
		if msg, ok := o.entries[id]; ok {
			text = msg.Message.Said()
		}
		o.vectors[e.model] = append(o.vectors[e.model], store.Vector{Doc: int64(i + 1), Data: retrieve.PackVector(e.vector(text))})
	}
}

// splitArchive holds random passages twice: all with the owner "all", and divided among the owners.
func splitArchive(r *rand.Rand, owners []string) (*memIndex, []original) {
	m, words := newMemIndex(), vocabulary(30)
	m.block = 1 + r.IntN(7)
	var docs []original
	for i, day := range r.Perm(5 + r.IntN(80)) {
		d := original{id: fmt.Sprintf("passage-%d", i+1), kind: memgpt.KindPassage, time: noon.Add(time.Duration(day) * 24 * time.Hour)}
		for range r.IntN(12) {
			d.words = append(d.words, words[int(float64(len(words))*r.Float64()*r.Float64())])
		}
		for range r.IntN(3) {
			d.tags = append(d.tags, fmt.Sprint("tag", r.IntN(4)))
		}
		owner, text := owners[r.IntN(len(owners))], strings.Join(d.words, " ")
		for _, owner := range []string{owner, "all"} {
			m.addPassage(ownedPassage(owner, i+1, text, d.time, d.tags...))
			if d.dead = i%11 == 5; d.dead {
				m.killOf(owner, d.id)
			}
		}
		docs = append(docs, d)
	}
	return m, docs
}

// TestOwnersAreRankedAsOne: by words alone, what several archives find is what one finds that holds all their passages.
func TestOwnersAreRankedAsOne(t *testing.T) {
	found := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		owners := []string{"a", "b", "c"}[:2+r.IntN(2)]
		m, docs := splitArchive(r, owners)
		s := searcher(t, m)
		for n := range 8 {
			q := randomQuery(r, docs)
			q.Threads, q.Roles = nil, nil
			switch d := &docs[r.IntN(len(docs))]; {
			case n == 6 && len(d.words) > 1:
				q.Text = `"` + strings.Join(d.words[:2], " ") + `" ` + d.words[len(d.words)-1]
			case n == 7:
				q.Text = "what happened in " + d.time.Format("January 2006") + "?"
			}
			q.Page, q.Size, q.Explain = r.IntN(3), 1+r.IntN(20), true
			one, many := q, q
			one.Owner, many.Owner, many.Archives = "all", owners[0], append(owners[1:], owners[0])
			want, err := s.Search(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Search(t.Context(), many)
			if err != nil {
				t.Fatal(err)
			}
			found += len(got.List)
			if problem := sameHits(want, got, m); problem != "" {
				t.Fatalf("seed %d, query %d %q: %s", seed, n, q.Text, problem)
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d hits were compared", found)
	}
}

// sameHits says in what the hits of several owners differ from those of one.
func sameHits(want, got tool.Hits, m *memIndex) string {
	if got.Total != want.Total || len(got.List) != len(want.List) || got.Weak != want.Weak {
		return fmt.Sprintf("%d of %d hits, not %d of %d", len(got.List), got.Total, len(want.List), want.Total)
	}
	for i, h := range got.List {
		w := want.List[i]
		owner := h.Archive
		if owner == "" {
			owner = "a"
		}
		_, held := m.owner("", owner).passages[h.ID]
		switch {
		case h.ID != w.ID || math.Abs(h.Score-w.Score) > 1e-4:
			return fmt.Sprintf("place %d: %s with %v, not %s with %v", i, h.ID, h.Score, w.ID, w.Score)
		case h.Text != w.Text || !slices.Equal(h.Tags, w.Tags) || !held:
			return fmt.Sprintf("place %d: %s is said to be of %s and to say %q", i, h.ID, owner, h.Text)
		case len(h.Parts) != len(w.Parts):
			return fmt.Sprintf("place %d: %d parts, not %d", i, len(h.Parts), len(w.Parts))
		}
	}
	return ""
}

// TestArchiveRanksLikeOwn: a text in an archive and the same one with the agent stand side by side, whatever the other
// texts of the two are about.
func TestArchiveRanksLikeOwn(t *testing.T) {
	e := newFake("m")
	m := newMemIndex()
	m.addPassage(passage(1, someTexts[0], noon)) // of a message its session would speak too
	far := noon.Add(-1000 * time.Hour)
	for i := range 400 {
		m.addEntry(message(100+i, fmt.Sprintf("harvest ledger number%d storage%d", i, i%7), noon.Add(time.Duration(i)*24*time.Hour)))
		m.addPassage(ownedPassage("books", i+1, fmt.Sprintf("glacier granite basalt layer%d moraine%d", i, i%5), far))
	}
	m.addPassage(ownedPassage("books", 900, someTexts[0], noon))
	m.addPassage(ownedPassage("books", 901, "The lighthouse was painted anew", noon))
	m.embedOwner("a", e)
	m.embedOwner("books", e)
	s := hybrid(t, m, e)
	for _, text := range []string{"feline", "does my cat sleep", "sofa"} {
		hits := ask(t, s, tool.Query{Text: text, Archives: []string{"books"}})
		if hits.Model != "m" || len(hits.List) < 2 {
			t.Fatalf("%s finds %+v", text, hits)
		}
		first, second := hits.List[0], hits.List[1]
		if first.Text != someTexts[0] || second.Text != someTexts[0] || first.Archive == second.Archive {
			t.Errorf("%s finds %q of %q, then %q of %q", text, first.Text, first.Archive, second.Text, second.Archive)
		}
		if apart := math.Abs(first.Score-second.Score) / first.Score; apart > .1 {
			t.Errorf("%s: the same text scores %v and %v", text, first.Score, second.Score)
		}
	}
	if hits := ask(t, s, tool.Query{Text: "lighthouse", Archives: []string{"books"}}); len(hits.List) == 0 || hits.List[0].ID != "passage-901" {
		t.Errorf("what only the archive has: %+v", hits)
	}
}

// TestArchiveWithoutVectors: what has none yet is found by its words, and counted.
func TestArchiveWithoutVectors(t *testing.T) {
	e := newFake("m")
	m := fakeStore(someTexts, e)
	for i := range 4 {
		m.addPassage(ownedPassage("new", i+1, fmt.Sprintf("Manual page %d: lubricate the bearing", i), noon))
	}
	s := hybrid(t, m, e)
	hits := ask(t, s, tool.Query{Text: "lubricate the bearing", Archives: []string{"new", "nobody"}})
	if hits.Model != "m" || hits.Unembedded != .25 || len(hits.List) < 4 || hits.List[0].Archive != "new" {
		t.Errorf("found %+v", hits)
	}
	if hits = ask(t, s, tool.Query{Text: "feline", Archives: []string{"new"}}); len(hits.List) == 0 || hits.List[0].ID != "message-1" {
		t.Errorf("by meaning: %+v", hits)
	}
	m.owner("", "new").vectors["m"] = []store.Vector{{Doc: 1, Data: []byte{1}}}
	if hits = ask(t, s, tool.Query{Text: "lubricate", Archives: []string{"new"}}); hits.Words == "" || hits.List[0].Archive != "new" {
		t.Errorf("with a vector that can't be read: %+v", hits)
	}
}

// TestFloorOfOwners: by the built-in encoder, a question that nobody answers finds nothing, and one that the archive answers
// finds that, though the agent's own texts are too weak.
func TestFloorOfOwners(t *testing.T) {
	enc, err := e5.New(e5.Config{})
	if err != nil {
		t.Skip(err)
	}
	m := newMemIndex()
	for i := range 30 {
		m.addPassage(passage(i+1, fmt.Sprintf("%s, said guest %d", someTexts[i%len(someTexts)], i), noon))
		m.addPassage(ownedPassage("law", i+1, []string{"The tenant pays a deposit of three months' rent", "The landlord repairs the roof and the heating",
			"Subletting needs consent in writing", "The lease ends with a notice of ninety days", "Noise after ten in the evening is forbidden"}[i%5]+
			fmt.Sprintf(" (section %d)", i), noon))
	}
	for _, owner := range []string{"a", "law"} {
		o := m.owner("", owner)
		for i, id := range o.ids {
			v, err := enc.Embed(t.Context(), []string{o.passages[id].Text}, false)
			if err != nil {
				t.Fatal(err)
			}
			o.vectors[enc.Model()] = append(o.vectors[enc.Model()], store.Vector{Doc: int64(i + 1), Data: retrieve.PackVector(v[0])})
		}
	}
	s, archives := hybrid(t, m, enc), []string{"law"}
	who := "who has to fix a broken boiler in a rented flat?"
	if hits := ask(t, s, tool.Query{Text: who}); !hits.Weak {
		t.Errorf("without the archive: %+v", hits)
	}
	if hits := ask(t, s, tool.Query{Text: who, Archives: archives}); len(hits.List) == 0 || !strings.Contains(hits.List[0].Text, "heating") {
		t.Errorf("with the archive: %+v", hits)
	}
	if hits := ask(t, s, tool.Query{Text: "which planets have rings?", Archives: archives}); !hits.Weak || len(hits.List) > 0 {
		t.Errorf("what nobody answers: %+v", hits)
	}
}

// TestOwnersKeepApart: context comes from the hit's own owner, ids that owners share are told apart by it, and listing and
// exclusion reach the archives.
func TestOwnersKeepApart(t *testing.T) {
	m := fakeStore(someTexts)
	for i, text := range []string{"The cellar key hangs behind the door", "Recipe for plum cake", "The cat flap needs oil"} {
		m.addPassage(ownedPassage("house", i+1, text, noon.Add(time.Duration(100+i)*24*time.Hour)))
	}
	m.addPassage(passage(2, "Recipe for cherry cake", noon.Add(-time.Hour)))
	s := searcher(t, m)
	archives := []string{"house"}
	hits := ask(t, s, tool.Query{Text: "cat", Archives: archives, Context: 1})
	if len(hits.List) != 2 {
		t.Fatalf("found %+v", hits.List)
	}
	for _, h := range hits.List {
		if h.Archive == "house" && len(h.Before)+len(h.After) != 0 || h.Archive == "" && (len(h.After) != 1 || h.After[0].Text != someTexts[1]) {
			t.Errorf("around %q stand %v and %v", h.Text, h.Before, h.After)
		}
	}
	hits = ask(t, s, tool.Query{Text: "recipe", Archives: archives})
	if len(hits.List) != 2 || hits.List[0].ID != hits.List[1].ID || hits.List[0].Text == hits.List[1].Text {
		t.Errorf("one id with two owners: %+v", hits.List)
	}
	if hits = ask(t, s, tool.Query{Text: "cellar", Archives: archives, Exclude: []string{"passage-1"}}); hits.Total != 0 {
		t.Errorf("what was excluded: %+v", hits.List)
	}
	hits = ask(t, s, tool.Query{Archives: archives, Size: 2, Page: 1, Kinds: []memgpt.DocKind{memgpt.KindPassage}})
	if hits.Total != 4 || len(hits.List) != 2 || hits.List[0].Text != "The cellar key hangs behind the door" || hits.List[1].Archive != "" {
		t.Errorf("the second page of a list: %+v", hits)
	}
	if hits = ask(t, s, tool.Query{Text: "cat", Archives: archives, Threads: []string{"conv-main"}}); hits.Total != 1 || hits.List[0].Archive != "" {
		t.Errorf("a filter by conversation: %+v", hits.List)
	}
}
