package retrieve

import (
	"slices"
	"strings"
	"testing"

	"memgpt/store"
)

// TestAnotherModelUnderTheSameName holds that vectors of two kinds never stand side by side: a server that gives other
// dimensions than those stored is another model, and all is made anew.
func TestAnotherModelUnderTheSameName(t *testing.T) {
	h := newStacks(t)
	h.say("", "a", "one", "two", "three", "")
	h.say("", "b", "four")
	h.finish(h.indexer(IndexerConfig{}))
	h.say("", "a", "five")
	h.say("", "c", "six")
	var told []string
	longer := &fakeEmbedder{model: "m", answer: func(_ []string, right [][]float32) [][]float32 {
		for i := range right {
			right[i] = append(slices.Clone(right[i]), .5, .25)
		}
		return right
	}}
	x := h.indexer(IndexerConfig{Embedder: longer, Report: func(err error) { told = append(told, err.Error()) }})
	h.finish(x)
	h.say("", "b", "seven")
	h.finish(x)
	h.say("", "a", "eight") // and by one that doesn't know what the other saw
	h.finish(h.indexer(IndexerConfig{Embedder: longer, Report: func(err error) { t.Error(err) }}))
	for owner, want := range map[string]int{"a": 5, "b": 2, "c": 1} {
		n := 0
		err := h.s.Vectors(t.Context(), "", owner, "m", 0, func(v store.Vector) bool {
			if n++; len(v.Data)-packedHead != 10 {
				t.Errorf("document %d of %s has %d dimensions", v.Doc, owner, len(v.Data)-packedHead)
			}
			return true
		})
		if err != nil || n != want {
			t.Errorf("%s has %d vectors, want %d: %v", owner, n, want, err)
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], "10 dimensions") {
		t.Errorf("told: %q", told)
	}
}
