package retrieve

import (
	"cmp"
	"context"
	"math"
	"slices"

	"memgpt/store"
)

// Parameters of BM25 (Robertson and Zaragoza, "The probabilistic relevance framework", 2009).
const (
	k1      = 1.2
	lengthB = .75
)

// board holds what a query gives each of the owner's documents, by number less one. Score and held are all zero between
// queries.
type board struct {
	score []float32 // by words
	held  []uint16  // how many of the phrases' groups it holds
	buf   [2][]scored
	fused fused
}

// scored is a document's score in one group.
type scored struct {
	doc   uint32
	score float32
}

func (s *Searcher) board(n int) *board {
	b, ok := s.boards.Get().(*board)
	if !ok {
		b = new(board)
	}
	if cap(b.score) < n {
		b.score, b.held = make([]float32, n+n/4), make([]uint16, n+n/4)
	}
	b.score, b.held = b.score[:n], b.held[:n]
	return b
}

func (s *Searcher) release(b *board) {
	clear(b.score)
	clear(b.held)
	s.boards.Put(b)
}

// fill adds up the scores of the query's groups, by the statistics of all owners. Groups that no document holds are dropped from the query, and the
// commonest of too many.
func (s *Searcher) fill(ctx context.Context, list owners, q *query) error {
	var terms []string
	seen := map[string]bool{}
	for _, g := range q.groups {
		for _, t := range g.terms {
			if !seen[t] {
				seen[t] = true
				terms = append(terms, t)
			}
		}
	}
	stats, err := s.stats(ctx, list, terms)
	if err != nil {
		return err
	}
	sc := newScorer(list[0].meta, stats)
	q.possible, q.rare = sc.possible(q.groups), sc.idf(1)*(k1+1)
	q.keepRarest(stats.DF)
	q.markPhrases()
	for _, w := range list {
		sc.length = w.meta.Length
		for i := range q.groups {
			if err := s.addGroup(ctx, w, &q.groups[i], sc); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepRarest drops the groups that nothing holds, and the commonest over maxGroups.
func (q *query) keepRarest(df map[string]int) {
	kept := q.groups[:0]
	for _, g := range q.groups {
		g.terms = slices.DeleteFunc(g.terms, func(t string) bool { return df[t] <= 0 })
		if len(g.terms) == 0 {
			q.missing(g.id)
			continue
		}
		kept = append(kept, g)
	}
	q.groups = kept
	if len(kept) <= maxGroups {
		return
	}
	order := make([]int, len(kept))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(kept[i].commonest(df), kept[j].commonest(df)) })
	for _, i := range order[maxGroups:] {
		q.forget(kept[i].id)
	}
	order = order[:maxGroups]
	slices.Sort(order) // the query's order, in which scores are added up
	for n, i := range order {
		kept[n] = kept[i]
	}
	q.groups = kept[:maxGroups]
}

func (g *group) commonest(df map[string]int) int {
	n := 0
	for _, t := range g.terms {
		n = max(n, df[t])
	}
	return n
}

// scorer is BM25 over the owners' statistics.
type scorer struct {
	stats  store.Stats
	length []uint32
	base   float32 // k1 (1 - b)
	slope  float32 // k1 b / average length
}

func newScorer(meta *store.Meta, stats store.Stats) *scorer {
	average := 1.0
	if stats.Docs > 0 && stats.Length > 0 {
		average = float64(stats.Length) / float64(stats.Docs)
	}
	return &scorer{stats: stats, length: meta.Length, base: float32(k1 * (1 - lengthB)), slope: float32(k1 * lengthB / average)}
}

// weight returns the constant part of a term's score: its inverse document frequency, which is never negative, times
// k1 + 1.
func (sc *scorer) weight(term string) float32 { return sc.idf(sc.stats.DF[term]) * (k1 + 1) }

// idf returns the inverse document frequency of a term that df documents hold.
func (sc *scorer) idf(df int) float32 {
	n := float64(sc.stats.Docs)
	held := min(float64(df), n)
	return float32(math.Log1p((n - held + .5) / (held + .5)))
}

// possible returns the greatest score that a document can have: all groups in it, each in its rarest form. A word that no
// document holds counts too, since a query with it is not covered.
func (sc *scorer) possible(groups []group) float32 {
	sum := float32(0)
	for _, g := range groups {
		if g.extra {
			continue
		}
		best, held := float32(0), false
		for _, t := range g.terms {
			if sc.stats.DF[t] > 0 {
				best, held = max(best, sc.weight(t)), true
			}
		}
		if !held {
			best = sc.weight(g.terms[0])
		}
		sum += best * g.weight
	}
	return sum
}

// addGroup adds the best of a group's terms to each document. All lists but the longest are held at once; that one
// streams.
func (s *Searcher) addGroup(ctx context.Context, w *wanted, g *group, sc *scorer) error {
	b := w.board
	slices.SortStableFunc(g.terms, func(x, y string) int { return cmp.Compare(sc.stats.DF[x], sc.stats.DF[y]) })
	held := b.buf[0][:0]
	for _, t := range g.terms[:len(g.terms)-1] {
		merged := merger{sc: sc, b: b, g: g, weight: sc.weight(t) * g.weight, held: held, out: b.buf[1][:0], keep: true}
		if err := s.index.Postings(ctx, w.Tenant, w.Owner, t, merged.take); err != nil {
			return err
		}
		merged.finish()
		b.buf[0], b.buf[1] = merged.out, held
		held = merged.out
	}
	last := g.terms[len(g.terms)-1]
	m := merger{sc: sc, b: b, g: g, weight: sc.weight(last) * g.weight, held: held}
	if err := s.index.Postings(ctx, w.Tenant, w.Owner, last, m.take); err != nil {
		return err
	}
	m.finish()
	return ctx.Err()
}

// merger joins a stream of postings with the scores that the group's earlier terms gave, both by ascending document:
// into out, or onto the board.
type merger struct {
	sc     *scorer
	b      *board
	g      *group
	weight float32
	held   []scored
	out    []scored
	keep   bool
}

func (m *merger) take(block []store.Posting) bool {
	if !m.keep && len(m.held) == 0 && !m.g.phrase {
		m.takePlain(block)
		return true
	}
	for _, p := range block {
		i := p.Doc - 1
		if int64(i) >= int64(len(m.b.score)) {
			continue
		}
		m.before(i)
		score := m.score(i, p.N)
		if len(m.held) > 0 && m.held[0].doc == i {
			score = max(score, m.held[0].score)
			m.held = m.held[1:]
		}
		m.put(i, score)
	}
	return true
}

// takePlain is take for the common case: one list, no phrase.
func (m *merger) takePlain(block []store.Posting) {
	score, length := m.b.score, m.sc.length
	for _, p := range block {
		if i := p.Doc - 1; int64(i) < int64(len(score)) && int64(i) < int64(len(length)) {
			n := float32(p.N)
			score[i] += m.weight * n / (n + m.sc.base + m.sc.slope*float32(length[i]))
		}
	}
}

func (m *merger) score(doc, n uint32) float32 {
	tf := float32(n)
	return m.weight * tf / (tf + m.sc.base + m.sc.slope*float32(m.sc.length[doc]))
}

// before puts what is held of documents before doc.
func (m *merger) before(doc uint32) {
	for len(m.held) > 0 && m.held[0].doc < doc {
		m.put(m.held[0].doc, m.held[0].score)
		m.held = m.held[1:]
	}
}

func (m *merger) finish() { m.before(math.MaxUint32) }

func (m *merger) put(doc uint32, score float32) {
	if m.keep {
		m.out = append(m.out, scored{doc, score})
		return
	}
	m.b.score[doc] += score
	if m.g.phrase {
		m.b.held[doc]++
	}
}

// found is a document in a ranking.
type found struct {
	doc   int // number less one
	score float32
	owner int32 // place among the owners of the search
}

// ranking keeps the best of what it is offered.
type ranking struct {
	meta *store.Meta
	size int
	heap []found // the worst first
}

func newRanking(meta *store.Meta, size int) *ranking { return &ranking{meta: meta, size: size} }

// least is the score below which nothing is kept.
func (r *ranking) least() float32 {
	if r.size == 0 || len(r.heap) < r.size {
		return float32(math.Inf(-1))
	}
	return r.heap[0].score
}

// less reports whether a stands behind b: by score, then the newer first, then the one stored later.
func (r *ranking) less(a, b found) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	if ta, tb := r.meta.Time[a.doc], r.meta.Time[b.doc]; ta != tb {
		return ta < tb
	}
	return a.doc < b.doc
}

func (r *ranking) offer(f found) {
	if len(r.heap) < r.size {
		r.heap = append(r.heap, f)
		r.up(len(r.heap) - 1)
		return
	}
	if r.size == 0 || !r.less(r.heap[0], f) {
		return
	}
	r.heap[0] = f
	r.down(0)
}

// joined takes what another ranking kept; nil is none.
func (r *ranking) joined(other *ranking) *ranking {
	if other != nil {
		for _, f := range other.heap {
			r.offer(f)
		}
	}
	return r
}

func (r *ranking) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !r.less(r.heap[i], r.heap[parent]) {
			return
		}
		r.heap[i], r.heap[parent] = r.heap[parent], r.heap[i]
		i = parent
	}
}

func (r *ranking) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(r.heap) {
			return
		}
		if child+1 < len(r.heap) && r.less(r.heap[child+1], r.heap[child]) {
			child++
		}
		if !r.less(r.heap[child], r.heap[i]) {
			return
		}
		r.heap[i], r.heap[child] = r.heap[child], r.heap[i]
		i = child
	}
}

// sorted returns what was kept, the best first.
func (r *ranking) sorted() []found {
	slices.SortFunc(r.heap, func(a, b found) int {
		switch {
		case r.less(b, a):
			return -1
		case r.less(a, b):
			return 1
		}
		return 0
	})
	return r.heap
}
