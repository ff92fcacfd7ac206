package bench

import (
	"context"
	"hash/fnv"
	"math/rand/v2"

	"memgpt/tool"
)

// Shape of made-up vectors: they all point one way, as those of one model do, and lie in groups.
const (
	madeDims   = 384 // of the built-in encoder
	madeGroups = 997
	madeNoises = 4093
	madeWay    = .5 // share of what all have in common, beside the 1 of a group and that of its own
)

// madeUp is an encoder that makes vectors up from a text's hash, in next to no time. A query takes what the inner encoder
// takes.
type madeUp struct {
	inner          tool.Embedder
	common         []float32
	groups, noises [][]float32
}

// MadeUp returns an encoder whose vectors are made up from texts, the same ones for the same text, with 384 dimensions and
// in groups. It makes a million in seconds. To embed a query takes as long as with inner; nil takes no time.
func MadeUp(inner tool.Embedder) tool.Embedder {
	r := rand.New(rand.NewPCG(2, 2))
	rows := func(n int) [][]float32 {
		out := make([][]float32, n)
		for i := range out {
			out[i] = make([]float32, madeDims)
			for d := range out[i] {
				out[i][d] = float32(r.NormFloat64())
			}
		}
		return out
	}
	return &madeUp{inner: inner, common: rows(1)[0], groups: rows(madeGroups), noises: rows(madeNoises)}
}

// Model implements tool.Embedder.
func (*madeUp) Model() string { return "made up for a benchmark" }

// Embed implements tool.Embedder.
func (m *madeUp) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	if query && m.inner != nil {
		if _, err := m.inner.Embed(ctx, texts, true); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		h := fnv.New64a()
		_, _ = h.Write([]byte(text))
		n := h.Sum64()
		group, noise := m.groups[n%madeGroups], m.noises[n/madeGroups%madeNoises]
		out[i] = make([]float32, madeDims)
		for d := range out[i] {
			out[i][d] = madeWay*m.common[d] + group[d] + noise[d]
		}
	}
	return out, nil
}
