package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// Bounds of a search for piles.
const (
	pileSize    = 64      // different texts of a pile
	pileRivals  = 4       // rivals a passage
	pileChunk   = 256     // passages read at once
	pileWords   = 1 << 18 // about the most words of those
	pileReading = 2 << 20 // bytes of texts that are held taken apart, which takes ten times as much
)

// Pile is what could be merged into one: passages of one owner that are the same or near to each other, each to each,
// the newest first. Rivals is what must stay apart from it. A passage may be alone with its rivals.
type Pile struct {
	Passages []memgpt.Passage
	Rivals   []Rival
}

// Rival is a passage outside of a pile that differs from one inside by a fact. Of two such, the one stored later has
// the rival in its pile, so each pair of piles is shown once.
type Rival struct {
	Passage  memgpt.Passage
	Of       string   // ID of the passage in the pile that it differs from
	Likeness Likeness // A is that passage, B the rival
}

// Piles yields the piles of an owner's live passages in the order in which their first passages were stored. It changes
// nothing. It ends with the first error of yield.
func (s *Searcher) Piles(ctx context.Context, tenant, owner string, yield func(Pile) error) error {
	meta, err := s.index.Meta(ctx, tenant, owner)
	if err != nil {
		return fmt.Errorf("find piles: read what the index knows: %w", err)
	}
	p := &piler{s: s, q: tool.Query{Tenant: tenant, Owner: owner}, meta: meta, at: map[int]int{}, texts: map[int]*pileText{},
		same: map[string]int{}}
	for _, doc := range passagesOf(meta) {
		if err := p.put(ctx, doc); err != nil {
			return fmt.Errorf("find piles: %w", err)
		}
	}
	return p.yield(ctx, yield)
}

// passagesOf returns the documents that are live passages.
func passagesOf(meta *store.Meta) []int {
	kind := uint8(slices.Index(store.MetaKinds, memgpt.KindPassage))
	var docs []int
	for i := range meta.Time {
		if meta.Kind[i] == kind && !meta.Dead[i] {
			docs = append(docs, i)
		}
	}
	return docs
}

// piler sorts passages into piles, one after the other as they were stored.
type piler struct {
	s     *Searcher
	q     tool.Query
	meta  *store.Meta
	at    map[int]int // pile of a document
	piles []heap
	same  map[string]int // document by hashed SameKey
	texts map[int]*pileText
	held  int // bytes of texts
}

// heap is a pile while it grows.
type heap struct {
	docs   []int
	kinds  []int // one document for each different text
	rivals []rivalry
}

type rivalry struct {
	of, doc  int
	likeness Likeness
}

// pileText is a passage's text taken apart.
type pileText struct {
	doc     int
	key     string
	wording *wording
}

// put finds the pile of a document among those before it.
func (p *piler) put(ctx context.Context, doc int) error {
	if err := p.load(ctx, p.ahead(doc)); err != nil {
		return err
	}
	own := p.texts[doc]
	if own == nil {
		return nil // it went away meanwhile
	}
	if twin, ok := p.same[own.key]; ok {
		p.join(doc, p.at[twin], false)
		return nil
	}
	p.same[own.key] = doc
	candidates, err := p.s.candidates(ctx, p.q, p.meta, own.wording, doc)
	if err != nil {
		return err
	}
	near, rivals, err := p.compare(ctx, own, candidates)
	if err != nil {
		return err
	}
	home, err := p.home(ctx, own, near)
	if err != nil {
		return err
	}
	p.join(doc, home, true)
	p.oppose(home, rivals)
	return nil
}

// ahead returns the document, and those behind it that are likely to be asked for next where it isn't held yet.
func (p *piler) ahead(doc int) []int {
	if p.texts[doc] != nil {
		return nil
	}
	kind := p.meta.Kind[doc]
	var docs []int
	words := 0
	for i := doc; i < len(p.meta.Kind) && len(docs) < pileChunk && words < pileWords; i++ {
		if p.meta.Kind[i] == kind && !p.meta.Dead[i] {
			docs = append(docs, i)
			words += int(p.meta.Length[i])
		}
	}
	return docs
}

// load takes the texts of documents apart that aren't held. When too much is held, all of it is let go first.
func (p *piler) load(ctx context.Context, docs []int) error {
	if len(docs) == 0 {
		return nil
	}
	if p.held > pileReading {
		clear(p.texts)
		p.held = 0
	}
	docs = slices.DeleteFunc(slices.Clone(docs), func(d int) bool { return p.texts[d] != nil })
	if len(docs) == 0 {
		return nil
	}
	passages, err := p.passages(ctx, docs)
	if err != nil {
		return err
	}
	var r reader
	for i, passage := range passages {
		if passage != nil {
			p.texts[docs[i]] = &pileText{docs[i], memgpt.HashKey(SameKey(passage.Text)), r.read(passage.Text)}
			p.held += len(passage.Text)
		}
	}
	return nil
}

// passages returns the passages of documents, nil where one is gone.
func (p *piler) passages(ctx context.Context, docs []int) ([]*memgpt.Passage, error) {
	numbers := make([]int64, len(docs))
	for i, d := range docs {
		numbers[i] = int64(d) + 1
	}
	ids, err := p.s.index.DocIDs(ctx, p.q.Tenant, p.q.Owner, numbers)
	if err != nil {
		return nil, err
	}
	if len(ids) != len(docs) {
		return nil, fmt.Errorf("the index gave %d ids for %d documents", len(ids), len(docs))
	}
	list, err := p.s.texts.Passages(ctx, p.q.Tenant, p.q.Owner, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*memgpt.Passage, len(list))
	for i := range list {
		if list[i].Live() {
			byID[list[i].ID] = &list[i]
		}
	}
	out := make([]*memgpt.Passage, len(docs))
	for i, id := range ids {
		out[i] = byID[id]
	}
	return out, nil
}

// compare returns the candidates that are near to a text, and those in conflict with it, the closest first.
func (p *piler) compare(ctx context.Context, own *pileText, candidates []found) (near, rivals []rivalry, err error) {
	docs := make([]int, len(candidates))
	for i, c := range candidates {
		docs[i] = c.doc
	}
	if err := p.load(ctx, docs); err != nil {
		return nil, nil, err
	}
	for _, d := range docs {
		if p.texts[d] == nil {
			continue
		}
		switch r := (rivalry{own.doc, d, compare(own.wording, p.texts[d].wording)}); r.likeness.Relation {
		case Near, Same:
			near = append(near, r)
		case Conflict:
			rivals = append(rivals, r)
		}
	}
	closest := func(a, b rivalry) int { return a.likeness.order(b.likeness) }
	slices.SortStableFunc(near, closest)
	slices.SortStableFunc(rivals, closest)
	return near, rivals[:min(len(rivals), pileRivals)], nil
}

// home returns the first pile of the near ones in which the text is near to every other, else a new one. To be
// near is not transitive: what one text adds, two others may state differently.
func (p *piler) home(ctx context.Context, own *pileText, near []rivalry) (int, error) {
	tried := map[int]bool{}
	for _, n := range near {
		pile := p.at[n.doc]
		if tried[pile] || len(p.piles[pile].kinds) >= pileSize {
			continue
		}
		tried[pile] = true
		if err := p.load(ctx, p.piles[pile].kinds); err != nil {
			return 0, err
		}
		if !slices.ContainsFunc(p.piles[pile].kinds, func(d int) bool {
			return p.texts[d] == nil || compare(own.wording, p.texts[d].wording).Relation != Near
		}) {
			return pile, nil
		}
	}
	p.piles = append(p.piles, heap{})
	return len(p.piles) - 1, nil
}

func (p *piler) join(doc, pile int, fresh bool) {
	h := &p.piles[pile]
	p.at[doc] = pile
	h.docs = append(h.docs, doc)
	if fresh {
		h.kinds = append(h.kinds, doc)
	}
}

// oppose notes the rivals of a pile, one from each other pile.
func (p *piler) oppose(pile int, rivals []rivalry) {
	for _, r := range rivals {
		other := p.at[r.doc]
		if !p.opposed(pile, other) && !p.opposed(other, pile) {
			p.piles[pile].rivals = append(p.piles[pile].rivals, r)
		}
	}
}

func (p *piler) opposed(pile, other int) bool {
	return slices.ContainsFunc(p.piles[pile].rivals, func(r rivalry) bool { return p.at[r.doc] == other })
}

// yield reads the passages of each pile that has something to show.
func (p *piler) yield(ctx context.Context, yield func(Pile) error) error {
	for _, h := range p.piles {
		if len(h.docs) < 2 && len(h.rivals) == 0 {
			continue
		}
		pile, err := p.original(ctx, h)
		if err != nil {
			return fmt.Errorf("find piles: read the passages of one: %w", err)
		}
		if len(pile.Passages) < 2 && len(pile.Rivals) == 0 {
			continue
		}
		if err := yield(pile); err != nil {
			return err
		}
	}
	return nil
}

func (p *piler) original(ctx context.Context, h heap) (Pile, error) {
	docs := slices.Clone(h.docs)
	for _, r := range h.rivals {
		docs = append(docs, r.doc, r.of)
	}
	list, err := p.passages(ctx, docs)
	if err != nil {
		return Pile{}, err
	}
	var pile Pile
	for _, passage := range list[:len(h.docs)] {
		if passage != nil {
			pile.Passages = append(pile.Passages, *passage)
		}
	}
	for i, r := range h.rivals {
		if other, of := list[len(h.docs)+2*i], list[len(h.docs)+2*i+1]; other != nil && of != nil {
			pile.Rivals = append(pile.Rivals, Rival{*other, of.ID, r.likeness})
		}
	}
	slices.SortStableFunc(pile.Passages, newer)
	slices.SortStableFunc(pile.Rivals, func(a, b Rival) int { return newer(a.Passage, b.Passage) })
	return pile, nil
}

// newer sorts the newest first, and by ids, which sort by time, where times are equal.
func newer(a, b memgpt.Passage) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID)) }
