package retrieve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/store/storetest"
)

// longText is a text of n pieces, more or less, no two of which are alike.
func longText(name string, n int) string {
	var b strings.Builder
	for textSize(b.String()) < n*cutSize {
		fmt.Fprintf(&b, "Sentence %d of %s goes on for a while. ", b.Len(), name)
	}
	return b.String()
}

// TestShortProcesses embeds in processes that get to 8 texts each, two long documents among short ones: all are embedded
// in the end, and the short ones don't wait. One kind of process has a deadline, the other is killed.
func TestShortProcesses(t *testing.T) {
	const texts, processes = 8, 50
	for name, deadline := range map[string]bool{"a deadline": true, "killed": false} {
		h := newStacks(t)
		h.say("", "a", "before", longText("one", 60), "between", longText("two", 60), "after")
		short := 0 // processes until all short ones were found
		for n := 1; n <= processes; n++ {
			h.shortProcess(texts, deadline)
			if at := h.cursor("", "a", "m"); short == 0 && at.Through == 5 {
				short = n
			}
			h.check("", "a", "m")
		}
		if short == 0 || short > 5 {
			t.Errorf("%s: it took %d processes until the last short text had its vector", name, short)
		}
		h.checkAll("m")
	}
}

// shortProcess embeds until the embedder has had n texts: then it stops, by the clock or for good.
func (h *stacks) shortProcess(n int, deadline bool) {
	h.t.Helper()
	now := time.Now()
	ctx, cancel := context.WithCancel(h.t.Context())
	if deadline {
		ctx, cancel = context.WithDeadline(h.t.Context(), now.Add(time.Hour))
		now = now.Add(time.Hour - time.Duration(n)*time.Second)
	}
	defer cancel()
	f := &fakeEmbedder{model: "m", before: func(texts []string) error {
		now = now.Add(time.Duration(len(texts)) * time.Second)
		if n -= len(texts); n < 0 {
			cancel()
			return context.DeadlineExceeded
		}
		return nil
	}}
	x := h.indexer(IndexerConfig{Store: h.open(), Embedder: f, Now: func() time.Time { return now }})
	x.stored = 0
	for more := true; more; {
		var err error
		if _, more, err = x.Some(ctx, "", "a"); err != nil && !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			h.t.Fatal(err)
		} else if err != nil {
			return
		}
	}
}

// cursor is how far an owner's vectors are.
func (h *stacks) cursor(tenant, owner, model string) store.Cursor {
	h.t.Helper()
	at, err := h.s.Embedded(h.t.Context(), tenant, owner)
	if err != nil {
		h.t.Fatal(err)
	}
	return at[model]
}

// TestLongTextsCount counts a document as done when its last piece has a vector, and not before.
func TestLongTextsCount(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", longText("one", 10), "short")
	x := h.indexer(IndexerConfig{Size: 2 * cutSize})
	done := 0
	for range 100 {
		n, more, err := x.Some(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		done += n
		p, err := x.Progress(t.Context())
		if at := h.cursor("", "a", "m"); err != nil || more && (p.Docs != 2 || p.Done != int64(done) || p.Owners != 1 || at.Through-at.Partial != int64(done)) {
			t.Errorf("after %d documents the progress is %+v, the cursor %+v, error %v", done, p, at, err)
		}
		if !more {
			break
		}
	}
	if done != 2 {
		t.Errorf("%d documents were done", done)
	}
	h.checkAll("m")
}

// TestLongTextsCrash lets the store die at each commit, before and after it is made; another indexer goes on.
func TestLongTextsCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := int64(1); ; at++ {
			h := newStacks(t)
			h.say("", "a", longText("one", 7), "two", longText("three", 5))
			h.say("", "b", longText("four", 4))
			faulty := &storetest.Faulty{Inner: h.s, At: at, Commits: true, After: after}
			x := h.indexer(IndexerConfig{Store: faulty, Size: 2 * cutSize})
			var err error
			for more := true; more && err == nil; {
				_, more, err = x.Some(t.Context(), "", "")
			}
			h.finish(h.indexer(IndexerConfig{Size: 3 * cutSize}))
			h.checkAll("m")
			if err == nil {
				if at < 8 {
					t.Errorf("all took %d commits", at-1)
				}
				break
			}
		}
	}
}

// TestLongTextsAtOnce lets another indexer be faster with the rest of a long text.
func TestLongTextsAtOnce(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", longText("one", 7), longText("two", 7))
	other := h.indexer(IndexerConfig{Store: h.open(), Size: 2 * cutSize})
	f := &fakeEmbedder{model: "m"}
	x := h.indexer(IndexerConfig{Embedder: f, Size: 2 * cutSize})
	turn := 0
	f.before = func([]string) error {
		if turn++; turn%2 == 0 {
			_, _, err := other.Some(t.Context(), "", "")
			return err
		}
		return nil
	}
	h.finish(x)
	h.checkAll("m")
}

// TestLongPoison has a long text with a piece that the embedder never takes: all else is embedded.
func TestLongPoison(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", longText("good", 3)+"poison "+longText("bad", 3), "short", longText("two", 4))
	f := &fakeEmbedder{model: "m", before: func(texts []string) error {
		if strings.Contains(strings.Join(texts, ""), "poison") {
			return errors.New("I can't")
		}
		return nil
	}}
	x := h.indexer(IndexerConfig{Embedder: f, Size: 2 * cutSize})
	for range 100 {
		_, _, _ = x.Some(t.Context(), "", "")
	}
	if at := h.cursor("", "a", "m"); at.Through != 3 || at.Partial != 1 {
		t.Errorf("the cursor is %+v", at)
	}
	f.before = nil
	h.finish(x)
	h.checkAll("m")
}

// TestLongTextOfAnotherModel finds other dimensions under the same name while the only document is half done.
func TestLongTextOfAnotherModel(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", longText("one", 5))
	if _, _, err := h.indexer(IndexerConfig{Size: 2 * cutSize}).Some(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	longer := &fakeEmbedder{model: "m", answer: func(_ []string, right [][]float32) [][]float32 {
		for i := range right {
			right[i] = append(right[i], .5)
		}
		return right
	}}
	h.finish(h.indexer(IndexerConfig{Embedder: longer, Size: 2 * cutSize}))
	n := 0
	err := h.s.Vectors(t.Context(), "", "a", "m", 0, func(v store.Vector) bool {
		if n++; len(v.Data) != packedHead+9 {
			t.Errorf("piece %d has %d dimensions", v.Piece, len(v.Data)-packedHead)
		}
		return true
	})
	if err != nil || n < 5 {
		t.Errorf("%d vectors, error %v", n, err)
	}
}

// TestPartlyErased embeds anew what stays of a document of which a part was erased, whether it was embedded wholly, in part
// or not yet.
func TestPartlyErased(t *testing.T) {
	for embedded := range 4 {
		h := newStacks(t)
		for i := range 3 {
			h.passage(fmt.Sprint("p", i), longText(fmt.Sprint("passage ", i), 4)+" secret")
		}
		x := h.indexer(IndexerConfig{Size: 2 * cutSize})
		for range 2 * embedded {
			if _, _, err := x.Some(t.Context(), "", "a"); err != nil {
				t.Fatal(err)
			}
		}
		e := &store.Erasure{}
		for i := range 3 {
			text := longText(fmt.Sprint("passage ", i), 4)
			e.Passages = append(e.Passages, memgpt.Passage{ID: fmt.Sprint("p", i), Owner: "a", Text: text})
			e.Docs = append(e.Docs, store.Doc{Owner: "a", ID: fmt.Sprint("p", i), Kind: memgpt.KindPassage, Length: 1, Terms: []store.TermCount{{Term: "passage", N: 1}}})
			h.docs[[2]string{"", "a"}][i].text = text
		}
		if err := h.s.Erase(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if list, err := h.s.Backlog(t.Context(), "m"); err != nil || len(list) != 1 || list[0].Left() != 3 {
			t.Errorf("after the erasure the backlog is %+v, error %v", list, err)
		}
		h.finish(x)
		h.checkAll("m")
	}
}

// passage stores a passage of the owner "a" that is found by two words.
func (h *stacks) passage(id, text string) {
	h.t.Helper()
	h.commit(&store.Commit{Passages: []memgpt.Passage{{ID: id, Owner: "a", Text: text}}, Docs: []store.Doc{{Owner: "a", ID: id, Kind: memgpt.KindPassage,
		Length: 2, Terms: []store.TermCount{{Term: "passage", N: 1}, {Term: "secret", N: 1}}}}})
	key := [2]string{"", "a"}
	h.docs[key] = append(h.docs[key], shelved{id, text})
}

// TestModelChangedBack changes the model and back again before the new one had all: its vectors go.
func TestModelChangedBack(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", "one", "two", "three")
	h.say("", "b", "four")
	first := func() *Indexer { return h.indexer(IndexerConfig{Retire: true}) }
	h.finish(first())
	if _, _, err := h.indexer(IndexerConfig{Embedder: &fakeEmbedder{model: "new"}, Retire: true, Texts: 2}).Some(t.Context(), "", "a"); err != nil {
		t.Fatal(err)
	}
	if h.cursor("", "a", "new").Through == 0 || h.cursor("", "a", "m").Through != 3 {
		t.Fatal("nothing was embedded by the new model, or the old vectors went")
	}
	if n, more, err := first().Some(t.Context(), "", ""); n != 0 || more || err != nil {
		t.Errorf("%d were done, more %v, error %v", n, more, err)
	}
	if at := h.cursor("", "a", "new"); at != (store.Cursor{}) || h.check("", "a", "new") != 0 {
		t.Errorf("of the new model there is %+v", at)
	}
	h.checkAll("m")
}
