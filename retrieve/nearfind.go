package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// Bounds of the search for texts that are near to one.
const (
	nearTerms      = 12      // rarest terms of the text that are looked up
	nearPostings   = 1 << 18 // of those terms together; the rarest is always read
	nearCandidates = 24      // texts that are compared
)

// NearHit is a passage that resembles a text. In Likeness.Diff, A is the text's and B the passage's.
type NearHit struct {
	tool.Hit // its score is the likeness's
	Likeness Likeness
}

// Near returns the live passages of an owner that are the same as the text, near to it, or in conflict with it by a
// fact, at most limit: the same first, then what is near, then conflicts, each by score, the newer first among equals.
// It compares with what shares the text's rarest terms, not with all, so it finds the likeliest and may miss some.
func (s *Searcher) Near(ctx context.Context, tenant, owner, text string, limit int) ([]NearHit, error) {
	meta, err := s.index.Meta(ctx, tenant, owner)
	if err != nil {
		return nil, fmt.Errorf("find near texts: read what the index knows: %w", err)
	}
	q := tool.Query{Tenant: tenant, Owner: owner}
	own := new(reader).read(text)
	docs, err := s.candidates(ctx, q, meta, own, len(meta.Time))
	if err != nil {
		return nil, fmt.Errorf("find near texts: %w", err)
	}
	originals, err := s.originals(ctx, q, meta, docs)
	if err != nil {
		return nil, fmt.Errorf("find near texts: read the candidates: %w", err)
	}
	hits := likenesses(SameKey(text), own, originals)
	return hits[:min(len(hits), max(limit, 0))], nil
}

// Alike is Near for whoever is to decide about a new text: without what is the same, and with facts in plain words.
func (s *Searcher) Alike(ctx context.Context, tenant, owner, text string, limit int) ([]tool.Alike, error) {
	near, err := s.Near(ctx, tenant, owner, text, limit+1)
	if err != nil {
		return nil, err
	}
	var list []tool.Alike
	for _, h := range near {
		if h.Likeness.Relation == Same || len(list) == limit {
			continue
		}
		a := tool.Alike{Hit: h.Hit}
		for _, d := range h.Likeness.Diff {
			a.Differs = append(a.Differs, tool.Difference{Kind: string(d.Kind), Here: d.A, There: d.B})
		}
		list = append(list, a)
	}
	return list, nil
}

// likenesses compares a text with the candidates that are left and returns those that are close, best first.
func likenesses(key string, own *wording, candidates []*tool.Hit) []NearHit {
	var hits []NearHit
	var r reader
	for _, c := range candidates {
		if c == nil {
			continue
		}
		l := Likeness{Score: 1, Relation: Same}
		if SameKey(c.Text) != key {
			l = compare(own, r.read(c.Text))
		}
		if l.Close() {
			hit := NearHit{Hit: *c, Likeness: l}
			hit.Score = l.Score
			hits = append(hits, hit)
		}
	}
	slices.SortStableFunc(hits, func(a, b NearHit) int {
		return cmp.Or(a.Likeness.order(b.Likeness), b.Time.Compare(a.Time))
	})
	return hits
}

// order compares likenesses, the closest first.
func (l Likeness) order(m Likeness) int {
	return cmp.Or(cmp.Compare(m.Relation.rank(), l.Relation.rank()), cmp.Compare(m.Score, l.Score))
}

func (r Relation) rank() int {
	return slices.Index([]Relation{Different, Conflict, Near, Same}, r)
}

// candidates returns the passages among the first documents, as many as before says, that share most of the text's
// rarest terms, by BM25.
func (s *Searcher) candidates(ctx context.Context, q tool.Query, meta *store.Meta, own *wording, before int) ([]found, error) {
	stats, terms, err := s.rarest(ctx, q, own)
	if err != nil {
		return nil, err
	}
	c := newCollector(meta, stats, before, len(own.units))
	c.b = s.board(len(meta.Time))
	defer s.boards.Put(c.b) // best leaves it all zero
	budget := nearPostings
	for i, t := range terms {
		if budget -= stats.DF[t]; budget < 0 && i > 0 {
			break
		}
		c.weight = c.sc.weight(t)
		if err = s.index.Postings(ctx, q.Tenant, q.Owner, t, c.take); err != nil {
			break
		}
	}
	return c.best(), cmp.Or(err, ctx.Err())
}

// rarest returns the text's rarest terms that something holds, the rarest first.
func (s *Searcher) rarest(ctx context.Context, q tool.Query, own *wording) (store.Stats, []string, error) {
	var terms []string
	for _, g := range s.analyzer.parse(own.telling()).groups {
		if !g.extra {
			terms = append(terms, g.terms[0])
		}
	}
	stats, err := s.index.Stats(ctx, q.Tenant, q.Owner, terms)
	if err != nil {
		return stats, nil, err
	}
	terms = slices.DeleteFunc(terms, func(t string) bool { return stats.DF[t] <= 0 })
	slices.SortStableFunc(terms, func(a, b string) int { return cmp.Compare(stats.DF[a], stats.DF[b]) })
	return stats, terms[:min(len(terms), nearTerms)], nil
}

// telling returns the text without its words of grammar, fillers and negations: what comes and goes among near texts.
// Where nothing else is left it returns all.
func (r *wording) telling() string {
	text, left := []byte(r.lower), 0
	for _, u := range r.units {
		switch u.sense {
		case senseStop, senseFiller, sensePronoun, senseNegation:
			for i := u.start; i < u.end; i++ {
				text[i] = ' '
			}
		default:
			left++
		}
	}
	if left == 0 {
		return r.lower
	}
	return string(text)
}

// collector adds up the scores of candidates, of which there are few among all documents.
type collector struct {
	meta   *store.Meta
	sc     *scorer
	weight float32
	before int
	low    uint32 // lengths that a near text can have
	high   uint32
	kind   uint8
	b      *board
	docs   []int // that have a score
}

func newCollector(meta *store.Meta, stats store.Stats, before, length int) *collector {
	return &collector{meta: meta, sc: newScorer(meta, stats), before: before, low: uint32(max(0, length-8) / 4),
		high: uint32(min(4*length+8, math.MaxUint32)), kind: uint8(slices.Index(store.MetaKinds, memgpt.KindPassage))}
}

func (c *collector) take(block []store.Posting) bool {
	for _, p := range block {
		i := int(p.Doc) - 1
		if i >= c.before || i >= len(c.meta.Length) {
			return false
		}
		if c.meta.Kind[i] != c.kind || c.meta.Dead[i] || c.meta.Length[i] < c.low || c.meta.Length[i] > c.high {
			continue
		}
		if c.b.score[i] == 0 {
			c.docs = append(c.docs, i)
		}
		n := float32(p.N)
		c.b.score[i] += c.weight * n / (n + c.sc.base + c.sc.slope*float32(c.meta.Length[i]))
	}
	return true
}

// best returns the candidates with the highest scores and clears the board.
func (c *collector) best() []found {
	r := newRanking(c.meta, nearCandidates)
	for _, i := range c.docs {
		r.offer(found{doc: i, score: c.b.score[i]})
		c.b.score[i] = 0
	}
	return r.sorted()
}
