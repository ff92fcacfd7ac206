package retrieve

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"memgpt"
)

// strangers are questions that hardly anybody's memory answers, in several languages. How near an owner's texts come to
// them tells how near a text comes that is no answer.
func strangers() []string {
	return []string{
		"how do bees find their way back to the hive",
		"what is the boiling point of mercury",
		"who painted the ceiling of that chapel",
		"how are bridges kept from swaying",
		"why is the sea salty",
		"rules for castling in chess",
		"how to sharpen a chisel",
		"when was the printing press invented",
		"difference between a lawyer and a notary",
		"how many strings does a harp have",
		"火山为什么会喷发",
		"怎样给自行车换链条",
		"珊瑚是动物还是植物",
		"唐朝的都城在哪里",
		"股票和债券有什么区别",
		"飞机为什么能飞起来",
		"豆腐是怎么做成的",
		"长城有多长",
		"彩虹有几种颜色",
		"¿Cómo se fabrica el vidrio?",
		"なぜ空は青いのですか",
		"Wie entsteht Nebel?",
	}
}

// strangerVectors keeps the vectors of the strangers, by model.
type strangerVectors struct {
	mu     sync.Mutex
	models map[string][][]float32
}

// of returns the vectors of a model, made with the first use. A failure is not kept.
func (s *strangerVectors) of(ctx context.Context, e memgpt.Embedder, dim int) ([][]float32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.models[e.Model()]; known != nil {
		return known, nil
	}
	texts := strangers()
	made, err := e.Embed(ctx, texts, true)
	if err != nil {
		return nil, fmt.Errorf("embed the questions that set the floor: %w", err)
	}
	if len(made) != len(texts) || slices.ContainsFunc(made, func(v []float32) bool { return len(v) != dim }) {
		return nil, fmt.Errorf("embed the questions that set the floor: got %d vectors for %d texts, or not all of %d dimensions",
			len(made), len(texts), dim)
	}
	if s.models == nil {
		s.models = map[string][][]float32{}
	}
	s.models[e.Model()] = made
	return made, nil
}

// strangeness is how near the owner's texts come to a stranger.
type strangeness struct {
	rows   int     // vectors that the owner had when it was measured
	cosine float32 // median over the strangers of the best among the rows that were looked at
	looked int     // how many those were
}

// Bounds of the measure of strangeness.
const (
	strangeRows  = 4096 // rows that are looked at, in strangeRuns runs over all
	strangeRuns  = 16
	strangeGrown = 8 // it is measured again when the owner's vectors have grown by one in so many
)

// grown returns the measure for the owner's vectors, the old one where they are nearly the same.
func (s strangeness) grown(c *codes, p *prior, vectors [][]float32) strangeness {
	n := len(c.doc)
	if s.rows > 0 && n >= s.rows && n-s.rows <= s.rows/strangeGrown {
		return s
	}
	out := strangeness{rows: n}
	run := min(n, strangeRows/strangeRuns)
	step := max(1, n/strangeRuns)
	if n <= strangeRows {
		run, step = n, max(n, 1)
	}
	cosines := make([]float32, run)
	best := make([]float32, len(vectors))
	for k, v := range vectors {
		_, aim := p.aim(v, c.mean)
		best[k], out.looked = noVector, 0
		for from := 0; from+run <= n && run > 0; from += step {
			c.compare(aim, cosines, from, from+run)
			best[k] = max(best[k], slices.Max(cosines))
			out.looked += run
		}
	}
	slices.Sort(best)
	out.cosine = best[len(best)/2]
	return out
}
