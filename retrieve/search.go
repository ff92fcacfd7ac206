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

// Search returns one page of the texts of q.Owner and q.Archives that pass the filters and hold at least one word of q.Text, best
// first by BM25; among equals the newer stands first, then the one stored later. A text that holds a quoted phrase, or
// the whole query, verbatim stands before all others.
//
// Where an embedder is configured and the owner's texts have vectors of it, meaning counts too, and a query that nothing
// is near enough to finds nothing (Hits.Weak). Where the embedder fails or is slow, words alone decide, and Hits.Words says
// why: a query is never an error for want of vectors.
//
// The owners are ranked as one: what the words are worth is counted over all of their texts. Neighbours and sessions are
// found within an owner, and vectors compared after the owner's own mean is taken off.
//
// A question that asks for a time and nothing else ("what happened last May?") finds what is of that time.
//
// With q.AsOf it finds what was known right before then: messages that had been said, and passages that had been learned and were
// neither replaced nor deleted, as if nothing had come since.
//
// Of passages on the page that contradict each other the one that holds, or is about the later time, stands first; see contrast.
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
	list, err := s.owners(ctx, q)
	if err != nil {
		return hits, fmt.Errorf("search: %w", err)
	}
	asked := s.asked(list)
	var page []found
	switch bare := len(asked.groups) == 0 && !asked.dated; {
	case bare && strings.TrimSpace(q.Text) == "", narrowed(q) && (bare || asked.stopsOnly() && !asked.quoted):
		page, hits.Total = list.newest()
	case bare: // punctuation: nothing holds it
		return hits, nil
	default:
		page, err = s.score(ctx, list, asked, &hits)
	}
	if err != nil {
		return hits, fmt.Errorf("search: score: %w", err)
	}
	hits.List, err = s.fetch(ctx, list, page)
	if err != nil {
		return hits, fmt.Errorf("search: read the texts found: %w", err)
	}
	asksTime := len(list[0].dates) > 0 || !q.From.IsZero() || !q.To.IsZero()
	hits.Contradictions = contrast(hits.List, s.moment(q), strings.TrimSpace(q.Text) != "" && !asksTime)
	return hits, nil
}

// moment is the time from which a query is asked: its AsOf, its Now or the searcher's clock.
func (s *Searcher) moment(q tool.Query) time.Time {
	switch {
	case !q.AsOf.IsZero():
		return q.AsOf
	case !q.Now.IsZero():
		return q.Now
	}
	return s.now()
}

// narrowed reports whether a query has a filter beside the kind of text.
func narrowed(q tool.Query) bool {
	return len(q.Roles) > 0 || len(q.Threads) > 0 || len(q.Tags) > 0 || !q.From.IsZero() || !q.To.IsZero()
}

// wanted is a query on its way through one owner's documents.
type wanted struct {
	tool.Query
	meta  *store.Meta
	pass  *filter
	dates spans  // that the text names
	board *board // where documents are scored
	sight *sight // nil where there are no vectors to see
	verdict
	told map[int][]tool.Part // of the page's scores, where they are asked for
}

// bounds returns the places of the page among n hits.
func (w *wanted) bounds(n int) (from, to int) {
	if w.Page > n/w.Size {
		return n, n
	}
	from = min(n, w.Page*w.Size)
	return from, min(n, from+min(w.Size, n-from))
}

// newest returns the page of what passes the filters, the newest first, and how many do.
func (list owners) newest() (page []found, total int) {
	first := list[0]
	best := make([]*ranking, len(list))
	for k, w := range list {
		best[k] = newRanking(w.meta, first.reach(list.docs()))
		for i := range w.meta.Time {
			if w.pass.passes(i) {
				total++
				best[k].offer(found{doc: i})
			}
		}
	}
	page = list.page(best, total)
	for k := range page { // falls along the pages, as scores do
		page[k].score = 1 / (1 + float32(first.Page)*float32(first.Size) + float32(k))
	}
	return page, total
}

// reach returns how many of the best are needed to know the page, among n documents at most.
func (w *wanted) reach(n int) int {
	from, to := w.bounds(n)
	if from == to {
		return 0
	}
	return to
}

// score returns the page of the best documents. Hits gets their number, and what is to be said of the vectors.
func (s *Searcher) score(ctx context.Context, list owners, q *query, hits *tool.Hits) ([]found, error) {
	for _, w := range list {
		w.board = s.board(len(w.meta.Time))
		defer s.release(w.board)
	}
	l := s.look(ctx, list, hits)
	err := s.fill(ctx, list, q)
	s.see(ctx, list, l, hits)
	if err != nil {
		return nil, err
	}
	if hits.Weak, err = s.fuse(ctx, list, q); err != nil || hits.Weak {
		return nil, err
	}
	lifted, err := s.liftVerbatim(ctx, list, q)
	if err != nil {
		return nil, err
	}
	best := make([]*ranking, len(list))
	for k, w := range list {
		if lifted > 0 && q.literal() && !s.recipe.noFloor {
			words := w.board.score
			w.match = func(i int) bool { return words[i] > 0 } // what it is like is no answer to who knows what it says
		}
		var matching int
		best[k], matching = w.best(w.reach(list.docs()))
		hits.Total += matching
	}
	page := list.page(best, hits.Total)
	list.explain(page)
	return page, nil
}

// best returns the best of the documents that match and pass, reach at most, and how many do.
func (w *wanted) best(reach int) (*ranking, int) {
	var best [2]*ranking
	var totals [2]int
	match, pass, score := w.match, w.pass, w.score
	halver(large).run(len(score), func(half, from, to int) {
		best[half] = newRanking(w.meta, reach)
		least := best[half].least()
		for i := from; i < to; i++ {
			if !match(i) || !pass.passes(i) {
				continue
			}
			totals[half]++
			if y := score[i]; y >= least {
				best[half].offer(found{doc: i, score: y})
				least = best[half].least()
			}
		}
	})
	return best[0].joined(best[1]), totals[0] + totals[1]
}

// verdict is the final score of each document, and which of them are hits.
type verdict struct {
	score []float32
	match func(int) bool
	parts func(int) []tool.Part
}

// fetch reads the originals of the page's documents. One that went away meanwhile is left out.
func (s *Searcher) fetch(ctx context.Context, list owners, page []found) ([]tool.Hit, error) {
	originals, err := s.originalsOf(ctx, list, page)
	if err != nil {
		return nil, err
	}
	hits := make([]tool.Hit, 0, len(page))
	docs := make([]found, 0, len(page))
	for k, f := range page {
		if hit := originals[k]; hit != nil {
			hit.Score, hit.Parts = float64(f.score), list[f.owner].told[f.doc]
			hits, docs = append(hits, *hit), append(docs, f)
		}
	}
	return hits, s.addContext(ctx, list, docs, hits)
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
		if !ok || p.Tenant != q.Tenant || p.Owner != q.Owner || !shows(q, p) {
			continue
		}
		hits[k] = &tool.Hit{ID: p.ID, Kind: memgpt.KindPassage, Time: p.Time, Text: p.Text, Tags: p.Tags, Source: p.Source,
			Origin: p.Cause.Origin, About: p.About, Learned: tool.Learned(p), Ended: p.Ended, SupersededBy: p.SupersededBy, Superseded: p.Superseded}
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
