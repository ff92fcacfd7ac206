package retrieve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// Bounds of vector search.
const (
	defaultWait  = 2 * time.Second
	defaultShelf = 256 << 20
	rescored     = 400  // documents whose cosines by sign code are replaced by true ones
	mostRescored = 1600 // where the owner's vectors tell that rescored are too few:
	doubt        = 3.5  // deviations of a sign code's error by which the next could be nearer than it looks
	maxAimed     = 8192 // bytes of a query that are embedded
	nearlyAll    = .01  // share of texts without a vector that a model may have and still be the one
)

// sight is what vectors tell of a query.
type sight struct {
	*reading
	codes  *codes
	aim    *aim
	strict *aim // for the floor

	strange strangeness
}

// look is the embedding of a query under way.
type look struct {
	embedder tool.Embedder
	cursors  []store.Cursor // by owner
	cancel   context.CancelFunc
	late     <-chan struct{} // closed when it is waited for no longer
	done     chan struct{}
	vector   []float32
	prior    *prior
	err      error
}

// look picks the model and begins to embed the query; nil where words alone are to be used, which hits tells. The caller
// waits for it.
func (s *Searcher) look(ctx context.Context, list owners, hits *tool.Hits) *look {
	q, docs := list[0].Query, list.docs()
	if len(s.embedders) == 0 || docs == 0 {
		return nil
	}
	have := make([]map[string]store.Cursor, len(list))
	for k, w := range list {
		var err error
		if have[k], err = s.index.Embedded(ctx, w.Tenant, w.Owner); err != nil {
			hits.Words = fmt.Sprintf("the vectors can't be read: %v", err)
			return nil
		}
	}
	e, done := s.pick(list, have)
	missing := int64(docs) - done - int64(len(q.Exclude)) // what is excluded is mostly new, and not missed
	hits.Unembedded = float64(max(missing, 0)) / float64(docs)
	if done <= 0 {
		hits.Words = fmt.Sprintf("no text has a vector by %s yet", e.Model())
		return nil
	}
	l := &look{embedder: e, done: make(chan struct{})}
	for k := range list {
		l.cursors = append(l.cursors, have[k][e.Model()])
	}
	wait := s.wait
	if until, ok := ctx.Deadline(); ok { // words need their time too
		wait = min(wait, time.Until(until)/2)
	}
	ctx, l.cancel = context.WithTimeout(ctx, wait)
	l.late = ctx.Done()
	go func() {
		defer close(l.done)
		l.embed(ctx, s, q.Text)
	}()
	return l
}

// pick returns the first embedder that has nearly all of the owners' documents, else the one that has the most, and how
// many it has. Vectors of two models are not compared, so one serves all owners.
func (s *Searcher) pick(list owners, have []map[string]store.Cursor) (best tool.Embedder, most int64) {
	docs := list.docs()
	best, most = s.embedders[0], -1
	for _, e := range s.embedders {
		done := int64(0)
		for k, w := range list {
			cursor := have[k][e.Model()]
			done += min(cursor.Through, int64(len(w.meta.Time))) - cursor.Partial
		}
		if float64(int64(docs)-done) <= nearlyAll*float64(docs) {
			return e, done
		}
		if done > most {
			best, most = e, done
		}
	}
	return best, most
}

func (l *look) embed(ctx context.Context, s *Searcher, text string) {
	var vectors [][]float32
	prior, err := s.priors.of(ctx, l.embedder, 0)
	if err == nil {
		text = strings.ToValidUTF8(memgpt.CutText(text, maxAimed), " ")
		vectors, err = l.embedder.Embed(ctx, []string{text}, true)
	}
	if err == nil && len(vectors) == 1 && len(vectors[0]) != len(prior.mean) {
		prior, err = s.priors.of(ctx, l.embedder, len(vectors[0]))
	}
	switch {
	case err != nil:
		l.err = err
	case len(vectors) != 1 || len(vectors[0]) == 0:
		l.err = errors.New("it gave no vector")
	case len(vectors[0]) != len(prior.mean):
		l.err = fmt.Errorf("it gave a vector of %d dimensions, and %d before", len(vectors[0]), len(prior.mean))
	default:
		l.prior, l.vector = prior, vectors[0]
	}
}

// see waits for the embedding and sets what the owners' vectors tell. Where they can't, hits says why.
func (s *Searcher) see(ctx context.Context, list owners, l *look, hits *tool.Hits) {
	if l == nil {
		return
	}
	defer l.cancel()
	select {
	case <-l.done:
	case <-l.late: // an embedder may be slow to notice
		hits.Words = fmt.Sprintf("%s can't embed the query: %v", l.embedder.Model(), context.DeadlineExceeded)
		return
	}
	if l.err != nil {
		hits.Words = fmt.Sprintf("%s can't embed the query: %v", l.embedder.Model(), l.err)
		return
	}
	sights := make([]*sight, len(list))
	for k, w := range list {
		if at := l.cursors[k]; at.Through-at.Partial <= 0 {
			continue
		}
		var err error
		if sights[k], err = s.open(ctx, w, l, l.cursors[k]); err != nil {
			hits.Words = err.Error()
			return
		}
	}
	for k, w := range list {
		w.sight = sights[k]
	}
	hits.Model = l.embedder.Model()
}

// open loads the owner's codes, or what came since they were loaded.
func (s *Searcher) open(ctx context.Context, w *wanted, l *look, cursor store.Cursor) (*sight, error) {
	read := &reading{index: s.index, tenant: w.Tenant, owner: w.Owner, model: l.embedder.Model(), prior: l.prior}
	key := shelfKey{w.Tenant, w.Owner, read.model}
	sl := s.shelf.slot(key)
	defer s.shelf.done(key, sl)
	codes, err := read.grown(ctx, sl.codes, cursor)
	if err != nil {
		return nil, err
	}
	sl.codes = codes
	if codes.dim != len(l.vector) {
		return nil, fmt.Errorf("the query's vector by %s has %d dimensions, the stored ones %d", read.model, len(l.vector), codes.dim)
	}
	sl.strange = sl.strange.grown(codes, l.prior)
	aim, strict := l.prior.aim(l.vector, codes.mean)
	return &sight{reading: read, codes: codes, aim: aim, strict: strict, strange: sl.strange}, nil
}

// layout returns which of the owner's messages stand beside each other. It is kept once for all models.
func (s *Searcher) layout(w *wanted) *layout {
	key := shelfKey{w.Tenant, w.Owner, ""}
	sl := s.shelf.slot(key)
	defer s.shelf.done(key, sl)
	sl.layout = sl.layout.grown(w.meta, w.Zone)
	return sl.layout
}

// fuse joins words and vectors; where there are none, sights are nil, and words have the shares of neighbours, session,
// speaker and date alone. It sets the owners' verdicts, and reports whether all that there is is too weak to be a hit.
func (s *Searcher) fuse(ctx context.Context, list owners, q *query) (weak bool, err error) {
	blind := !slices.ContainsFunc(list, func(w *wanted) bool { return w.sight != nil })
	r := s.recipe
	if blind && list.docs() < fewTexts { // what neighbours say is no help where all can be looked over
		r.wordsNear, r.wordsFar, r.session = 0, 0, 0
	}
	columns := make([]*fused, len(list))
	for k, w := range list {
		columns[k] = s.columns(w, q, &r, blind)
	}
	fuse(columns, q.possible)
	for _, w := range list {
		if w.sight != nil && w.sight.codes.bits != nil {
			if err := s.rescore(ctx, w); err != nil {
				return false, err
			}
		}
	}
	return s.judge(list, q, blind), nil
}

// columns prepares the owner's columns for a fusion.
func (s *Searcher) columns(w *wanted, q *query, r *recipe, blind bool) *fused {
	b, f := w.board, &w.board.fused
	f.recipe, f.meta, f.layout, f.plain, f.blind, f.dated = r, w.meta, s.layout(w), b.score, blind, q.dated
	f.sized(len(w.meta.Time), f.layout.sessions)
	if w.sight == nil {
		for i := range f.cosine {
			f.cosine[i] = noVector
		}
	} else {
		w.sight.codes.cosines(w.sight.aim, f.cosine)
	}
	for i, dead := range w.meta.Dead {
		if dead {
			b.score[i], f.cosine[i] = 0, noVector
		}
	}
	f.extras = s.extras(w)
	return f
}

// judge tells which of the documents are hits. By words alone those that hold one are, and their neighbours if what they
// receive would do. With vectors nothing is where no owner has anything that clears its floor.
func (s *Searcher) judge(list owners, q *query, blind bool) (weak bool) {
	var fl []floors
	if !blind && !q.dated && !s.recipe.noFloor {
		fl = list.floors(&s.recipe, q)
		weak = !list.clear(fl)
	}
	least := q.leastWords(&s.recipe)
	for k, w := range list {
		score, f := w.board.score, &w.board.fused
		words, cosine, extras := f.words, f.cosine, f.extras
		w.verdict = verdict{score: f.total, parts: f.parts}
		switch {
		case s.recipe.noFloor && !blind:
			w.match = func(int) bool { return true }
		case q.dated:
			w.match = func(i int) bool { return score[i] > 0 || extras.within(i) }
		case blind:
			w.match = func(i int) bool { return score[i] > 0 || words[i] >= least && least > 0 || extras.within(i) }
		default:
			hit, dated := fl[k].hit, len(extras.dates) > 0
			w.match = func(i int) bool { return words[i] > 0 || cosine[i] >= hit || dated && extras.within(i) }
		}
	}
	return weak
}

// rescore replaces the cosines of the best by sign code, and of the best in all, by true ones.
func (s *Searcher) rescore(ctx context.Context, w *wanted) error {
	f, si := &w.board.fused, w.sight
	var byCosine, byTotal [2]*ranking
	halver(large).run(len(f.cosine), func(half, from, to int) {
		cosines, totals := newRanking(w.meta, mostRescored), newRanking(w.meta, rescored)
		byCosine[half], byTotal[half] = cosines, totals
		leastCosine, leastTotal := cosines.least(), totals.least()
		cosine, total := f.cosine[from:to], f.total[from:to]
		for i, c := range cosine {
			if (c >= leastCosine || total[i] >= leastTotal) && c != noVector && w.pass.passes(from+i) {
				cosines.offer(found{doc: from + i, score: c})
				totals.offer(found{doc: from + i, score: total[i]})
				leastCosine, leastTotal = cosines.least(), totals.least()
			}
		}
	})
	nearest, best := byCosine[0].joined(byCosine[1]).sorted(), byTotal[0].joined(byTotal[1])
	done, err := si.rescoreBest(ctx, nearest, f.cosine, f.mend)
	if err != nil {
		return err
	}
	known := placesOf(nearest[:done])
	rest := slices.DeleteFunc(placesOf(best.heap), func(doc int) bool { _, ok := slices.BinarySearch(known, doc); return ok })
	return si.exact(ctx, si.codes, si.aim, rest, f.mend)
}

// rescoreBest replaces the cosines of the best by sign code, rescored at first, then twice as many as long as one that is
// left could well be among the ten nearest. It returns how many it replaced.
func (si *sight) rescoreBest(ctx context.Context, best []found, cosines []float32, set func(int, float32)) (done int, err error) {
	for end := rescored; done < len(best); end *= 2 {
		end = min(end, len(best))
		if err := si.exact(ctx, si.codes, si.aim, placesOf(best[done:end]), set); err != nil {
			return done, err
		}
		done = end
		if end == len(best) || tenthOf(best[:end], cosines) > best[end].score+doubt*si.codes.noise {
			break
		}
	}
	return done, nil
}

// placesOf returns the documents in ascending order.
func placesOf(list []found) []int {
	docs := make([]int, len(list))
	for k, d := range list {
		docs[k] = d.doc
	}
	slices.Sort(docs)
	return docs
}

// tenthOf returns the tenth best of the documents' cosines.
func tenthOf(list []found, cosines []float32) float32 {
	all := make([]float32, len(list))
	for k, d := range list {
		all[k] = cosines[d.doc]
	}
	slices.Sort(all)
	return all[max(0, len(all)-10)]
}

// extras are what speaks for a message beside words and cosine: that the query names who said it, or when.
type extras struct {
	recipe *recipe
	meta   *store.Meta
	named  []bool // by author; nil is none
	dates  spans
}

func (s *Searcher) extras(w *wanted) *extras {
	return &extras{recipe: &s.recipe, meta: w.meta, named: s.analyzer.named(w.Text, w.meta), dates: w.dates}
}

func (e *extras) any() bool { return e.named != nil || len(e.dates) > 0 }

func (e *extras) of(i int) (speaker, day float32) {
	if e.named != nil && e.named[e.meta.Author[i]] {
		speaker = e.recipe.speaker
	}
	if len(e.dates) > 0 && e.meta.Time[i] != store.NoTime {
		day = e.recipe.day * float32(e.dates.boost(e.meta.Time[i]))
	}
	return speaker, day
}

// within reports whether a document is of a time that the query names, or nearly so.
func (e *extras) within(i int) bool {
	return len(e.dates) > 0 && e.meta.Time[i] != store.NoTime && e.dates.boost(e.meta.Time[i]) >= .5
}

// spans returns the stretches of time that the query names.
func (s *Searcher) spans(w *wanted) spans {
	now := w.Now
	if now.IsZero() {
		now = s.now()
	}
	if w.Zone != nil {
		now = now.In(w.Zone)
	}
	var known []knownDate
	if len(w.Known) > 0 {
		if text, _ := plainDates(w.Text, maxDateText); knownWords.MatchString(text) {
			known = knownDates(w.Known...)
		}
	}
	return findSpans(w.Text, now, known)
}

// maxAuthors bounds the names that a query is searched for.
const maxAuthors = 2000

// named returns which authors the query names, nil where it names none.
func (a *Analyzer) named(text string, meta *store.Meta) []bool {
	s := a.get()
	defer a.pool.Put(s)
	text = s.plain(memgpt.CutText(text, maxAimed))
	var out []bool
	for k, author := range meta.Authors[:min(len(meta.Authors), maxAuthors)] {
		for _, name := range strings.Fields(s.plain(author[:min(len(author), nameSize)])) {
			if len(name) > 2 && holds(text, name) {
				if out == nil {
					out = make([]bool, len(meta.Authors))
				}
				out[k] = true
			}
		}
	}
	return out
}
