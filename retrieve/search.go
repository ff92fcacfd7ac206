package retrieve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// Texts is what a Searcher reads the originals of hits from; every store.Store is one.
type Texts interface {
	EntriesByID(ctx context.Context, tenant, agent string, ids []string) ([]memgpt.Entry, error)
	Passages(ctx context.Context, tenant, owner string, ids []string) ([]memgpt.Passage, error)
}

// Config is what a Searcher is made of.
type Config struct {
	Index    store.Index // required
	Store    Texts       // required
	Analyzer *Analyzer   // for queries; nil makes one

	// Embedders give vectors to queries; the first is the wanted one. A search uses the first that has made vectors of nearly
	// all of an owner's texts, else the one that has the most. None is search by words alone.
	Embedders []tool.Embedder
	Records   Records          // keeps what is known of a model for other processes; nil keeps it in memory alone
	Wait      time.Duration    // for the embedding of a query; words alone decide after it. 0 is two seconds
	Memory    int64            // bytes of owners' vectors and layouts that are kept; 0 is 256 MiB
	Now       func() time.Time // for "last week" in queries without a Now; nil is time.Now
	Off       []string         // parts of the ranking to do without, to see what they are worth; see Parts
}

// Searcher finds texts by words and, with embedders, by meaning (tool.Searcher). It is safe for concurrent use.
type Searcher struct {
	index     store.Index
	texts     Texts
	analyzer  *Analyzer
	embedders []tool.Embedder
	wait      time.Duration
	now       func() time.Time
	shelf     *shelf
	priors    priors
	recipe    recipe
	boards    sync.Pool // of *board
}

var _ tool.Searcher = (*Searcher)(nil)

// New returns a Searcher.
func New(cfg Config) (*Searcher, error) {
	if cfg.Index == nil || cfg.Store == nil {
		return nil, errors.New("make a searcher: it needs an index and a store")
	}
	s := &Searcher{index: cfg.Index, texts: cfg.Store, analyzer: cfg.Analyzer, embedders: cfg.Embedders,
		wait: cmp.Or(cfg.Wait, defaultWait), now: cfg.Now, recipe: defaultRecipe(), priors: priors{records: cfg.Records}}
	s.shelf = newShelf(cmp.Or(cfg.Memory, defaultShelf))
	if s.analyzer == nil {
		s.analyzer = new(Analyzer)
	}
	if s.now == nil {
		s.now = time.Now
	}
	for _, part := range cfg.Off {
		if !s.recipe.off(part) {
			return nil, fmt.Errorf("make a searcher: it can't do without %q, but without %v", part, Parts())
		}
	}
	return s, nil
}

// defaultSize is the number of hits a page where the query names none (first implementation).
const defaultSize = 5

// Search returns one page of the texts of q.Owner that pass the filters and hold at least one word of q.Text, best
// first by BM25; among equals the newer stands first, then the one stored later. A text that holds a quoted phrase, or
// the whole query, verbatim stands before all others.
//
// Where an embedder is configured and the owner's texts have vectors of it, meaning counts too, and a query that nothing
// is near enough to finds nothing (Hits.Weak). Where the embedder fails or is slow, words alone decide, and Hits.Words says
// why: a query is never an error for want of vectors.
//
// A question that asks for a time and nothing else ("what happened last May?") finds what is of that time.
//
// Without text, or with stop words or punctuation alone beside a filter, it lists what passes, the newest first;
// punctuation alone without a filter finds nothing. What has no time does
// not pass a filter of time; what has no role, conversation or tag passes no filter of those. An empty list is no filter. Any text is a valid query.
func (s *Searcher) Search(ctx context.Context, q tool.Query) (tool.Hits, error) {
	q.Page = max(q.Page, 0)
	if q.Size <= 0 {
		q.Size = defaultSize
	}
	hits := tool.Hits{Page: q.Page, Size: q.Size}
	meta, err := s.index.Meta(ctx, q.Tenant, q.Owner)
	if err != nil {
		return hits, fmt.Errorf("search: read what the index knows: %w", err)
	}
	pass, err := s.filter(ctx, q, meta)
	if err != nil {
		return hits, fmt.Errorf("search: prepare the filters: %w", err)
	}
	want := &wanted{Query: q, meta: meta, pass: pass}
	want.dates = s.spans(want)
	asked := s.asked(want)
	switch bare := len(asked.groups) == 0 && !asked.dated; {
	case bare && strings.TrimSpace(q.Text) == "", narrowed(q) && (bare || asked.stopsOnly() && !asked.quoted):
		hits.Total = want.newest()
	case bare: // punctuation: nothing holds it
		return hits, nil
	default:
		err = s.score(ctx, want, asked, &hits)
	}
	if err != nil {
		return hits, fmt.Errorf("search: score: %w", err)
	}
	hits.List, err = s.fetch(ctx, want)
	if err != nil {
		return hits, fmt.Errorf("search: read the texts found: %w", err)
	}
	return hits, nil
}

// narrowed reports whether a query has a filter beside the kind of text.
func narrowed(q tool.Query) bool {
	return len(q.Roles) > 0 || len(q.Threads) > 0 || len(q.Tags) > 0 || !q.From.IsZero() || !q.To.IsZero()
}

// wanted is a query on its way, and the page that it found.
type wanted struct {
	tool.Query
	meta  *store.Meta
	pass  *filter
	dates spans // that the text names
	page  []found

	parts map[int][]tool.Part // of the page's scores, where they are asked for
}

// bounds returns the places of the page among n hits.
func (w *wanted) bounds(n int) (from, to int) {
	if w.Page > n/w.Size {
		return n, n
	}
	from = min(n, w.Page*w.Size)
	return from, min(n, from+min(w.Size, n-from))
}

// newest takes the page out of what passes the filters, the newest first, and returns how many do.
func (w *wanted) newest() int {
	n := len(w.meta.Time)
	best := newRanking(w.meta, w.reach(n))
	total := 0
	for i := range n {
		if w.pass.passes(i) {
			total++
			best.offer(found{doc: i})
		}
	}
	w.take(best, total)
	for k := range w.page { // falls along the pages, as scores do
		w.page[k].score = 1 / (1 + float32(w.Page)*float32(w.Size) + float32(k))
	}
	return total
}

// reach returns how many of the best are needed to know the page, among n documents at most.
func (w *wanted) reach(n int) int {
	from, to := w.bounds(n)
	if from == to {
		return 0
	}
	return to
}

// take cuts the page out of the best of total documents.
func (w *wanted) take(best *ranking, total int) {
	list := best.sorted()
	from, to := w.bounds(total)
	w.page = list[min(from, len(list)):min(to, len(list))]
}

// score takes the page out of the best documents. Hits gets their number, and what is to be said of the vectors.
func (s *Searcher) score(ctx context.Context, w *wanted, q *query, hits *tool.Hits) error {
	b := s.board(len(w.meta.Time))
	defer s.release(b)
	l := s.look(ctx, w.Query, len(w.meta.Time), hits)
	err := s.fill(ctx, w, q, b)
	si := s.see(ctx, w, l, hits)
	if err != nil {
		return err
	}
	v, err := s.fuse(ctx, w, q, b, si)
	if err != nil {
		return err
	}
	if hits.Weak = v.weak; v.weak {
		return nil
	}
	lifted, err := s.liftVerbatim(ctx, w, q, b, v.score)
	if err != nil {
		return err
	}
	if lifted > 0 && q.literal() && !s.recipe.noFloor {
		v.match = func(i int) bool { return b.score[i] > 0 } // what it is like is no answer to who knows what it says
	}
	w.best(v, hits)
	if w.Explain {
		w.parts = map[int][]tool.Part{}
		for _, d := range w.page {
			w.parts[d.doc] = v.parts(d.doc)
		}
	}
	return nil
}

// best takes the page out of the documents that match and pass.
func (w *wanted) best(v verdict, hits *tool.Hits) {
	var best [2]*ranking
	var totals [2]int
	halver(large).run(len(v.score), func(half, from, to int) {
		best[half] = newRanking(w.meta, w.reach(len(v.score)))
		least := best[half].least()
		for i := from; i < to; i++ {
			if !v.match(i) || !w.pass.passes(i) {
				continue
			}
			totals[half]++
			if y := v.score[i]; y >= least {
				best[half].offer(found{doc: i, score: y})
				least = best[half].least()
			}
		}
	})
	hits.Total = totals[0] + totals[1]
	w.take(best[0].joined(best[1]), hits.Total)
}

// verdict is the final score of each document, and which of them are hits.
type verdict struct {
	score []float32
	match func(int) bool
	parts func(int) []tool.Part
	weak  bool // none is, since all are too weak
}

// fetch reads the originals of the page's documents. One that went away meanwhile is left out.
func (s *Searcher) fetch(ctx context.Context, w *wanted) ([]tool.Hit, error) {
	originals, err := s.originals(ctx, w.Query, w.meta, w.page)
	if err != nil {
		return nil, err
	}
	hits := make([]tool.Hit, 0, len(w.page))
	docs := make([]found, 0, len(w.page))
	for k, f := range w.page {
		if hit := originals[k]; hit != nil {
			hit.Score, hit.Parts = float64(f.score), w.parts[f.doc]
			hits, docs = append(hits, *hit), append(docs, f)
		}
	}
	return hits, s.addContext(ctx, w, docs, hits)
}

// originals returns a hit for each document, nil where the original is gone.
func (s *Searcher) originals(ctx context.Context, q tool.Query, meta *store.Meta, docs []found) ([]*tool.Hit, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	numbers := make([]int64, len(docs))
	for k, f := range docs {
		numbers[k] = int64(f.doc) + 1
	}
	ids, err := s.index.DocIDs(ctx, q.Tenant, q.Owner, numbers)
	if err != nil {
		return nil, err
	}
	if len(ids) != len(docs) {
		return nil, fmt.Errorf("the index gave %d ids for %d documents", len(ids), len(docs))
	}
	place := make(map[string]int, len(ids))
	var messages, passages []string
	for k, id := range ids {
		place[id] = k
		if store.MetaKinds[meta.Kind[docs[k].doc]] == memgpt.KindPassage {
			passages = append(passages, id)
		} else {
			messages = append(messages, id)
		}
	}
	hits := make([]*tool.Hit, len(docs))
	if err := s.addEntries(ctx, q, messages, place, hits); err != nil {
		return nil, err
	}
	return hits, s.addPassages(ctx, q, passages, place, hits)
}

func (s *Searcher) addEntries(ctx context.Context, q tool.Query, ids []string, place map[string]int, hits []*tool.Hit) error {
	if len(ids) == 0 {
		return nil
	}
	entries, err := s.texts.EntriesByID(ctx, q.Tenant, q.Owner, ids)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		k, ok := place[e.ID]
		if !ok || e.Tenant != q.Tenant || e.Agent != q.Owner {
			continue
		}
		hits[k] = &tool.Hit{ID: e.ID, Kind: memgpt.KindMessage, Thread: e.Thread, Role: e.Message.Role, Author: e.Message.Author,
			Time: e.Time, Text: e.Message.Said(), Origin: e.Message.Origin}
	}
	return nil
}

func (s *Searcher) addPassages(ctx context.Context, q tool.Query, ids []string, place map[string]int, hits []*tool.Hit) error {
	if len(ids) == 0 {
		return nil
	}
	passages, err := s.texts.Passages(ctx, q.Tenant, q.Owner, ids)
	if err != nil {
		return err
	}
	for i := range passages {
		p := &passages[i]
		k, ok := place[p.ID]
		if !ok || p.Tenant != q.Tenant || p.Owner != q.Owner || !p.Live() {
			continue
		}
		hits[k] = &tool.Hit{ID: p.ID, Kind: memgpt.KindPassage, Time: p.Time, Text: p.Text, Tags: p.Tags, Source: p.Source,
			Origin: p.Cause.Origin}
	}
	return nil
}

// filter says which documents may be hits at all.
type filter struct {
	meta       *store.Meta
	kinds      [256]bool
	roles      [256]bool
	threads    []bool // by index into Meta.Threads; nil is all
	tagged     []bool // by document; nil is all
	excluded   map[int]bool
	allKinds   bool
	allRoles   bool
	timed      bool
	from, till int64
}

func (f *filter) passes(i int) bool {
	m := f.meta
	switch {
	case m.Dead[i]:
		return false
	case !f.allKinds && !f.kinds[m.Kind[i]], !f.allRoles && !f.roles[m.Role[i]]:
		return false
	case f.timed && (m.Time[i] == store.NoTime || m.Time[i] < f.from || m.Time[i] >= f.till):
		return false
	case f.threads != nil && !f.threads[m.Thread[i]]:
		return false
	case f.tagged != nil && !f.tagged[i]:
		return false
	}
	return len(f.excluded) == 0 || !f.excluded[i]
}

func (s *Searcher) filter(ctx context.Context, q tool.Query, meta *store.Meta) (*filter, error) {
	f := &filter{meta: meta, allKinds: len(q.Kinds) == 0, allRoles: len(q.Roles) == 0}
	for _, k := range q.Kinds {
		mark(f.kinds[:], store.MetaKinds, k)
	}
	for _, r := range q.Roles {
		if r != "" {
			mark(f.roles[:], store.MetaRoles, r)
		}
	}
	if len(q.Threads) > 0 {
		f.threads = make([]bool, len(meta.Threads))
		for _, t := range q.Threads {
			if t != "" {
				mark(f.threads, meta.Threads, t)
			}
		}
	}
	f.within(q.From, q.To)
	if err := s.tagged(ctx, q, f); err != nil {
		return nil, err
	}
	return f, s.exclude(ctx, q, f)
}

// mark sets the flag at the places of v in list.
func mark[T comparable](flags []bool, list []T, v T) {
	for i := range list {
		if list[i] == v {
			flags[i] = true
		}
	}
}

// within sets the bounds of time: from inclusive, to exclusive, either may be open. Documents have whole seconds.
func (f *filter) within(from, to time.Time) {
	f.timed = !from.IsZero() || !to.IsZero()
	f.from, f.till = math.MinInt64, math.MaxInt64
	if !from.IsZero() {
		f.from = from.Unix()
	}
	if !to.IsZero() {
		f.till = to.Unix()
		if to.Nanosecond() > 0 {
			f.till++
		}
	}
}

// tagged collects the documents that have one of the tags.
func (s *Searcher) tagged(ctx context.Context, q tool.Query, f *filter) error {
	if len(q.Tags) == 0 {
		return nil
	}
	f.tagged = make([]bool, len(f.meta.Time))
	for _, tag := range q.Tags {
		err := s.index.Postings(ctx, q.Tenant, q.Owner, s.analyzer.tagTerm(tag), func(block []store.Posting) bool {
			for _, p := range block {
				if i := int(p.Doc) - 1; i >= 0 && i < len(f.tagged) {
					f.tagged[i] = true
				}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Searcher) exclude(ctx context.Context, q tool.Query, f *filter) error {
	if len(q.Exclude) == 0 {
		return nil
	}
	numbers, err := s.index.DocNumbers(ctx, q.Tenant, q.Owner, q.Exclude)
	if err != nil {
		return err
	}
	f.excluded = make(map[int]bool, len(numbers))
	for _, n := range numbers {
		f.excluded[int(n)-1] = true
	}
	return nil
}

// tagTerm returns the term of a tag.
func (a *Analyzer) tagTerm(tag string) string {
	s := a.get()
	defer a.pool.Put(s)
	return term(prefixTag, s.tag(tag))
}
