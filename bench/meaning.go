package bench

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"time"

	"memgpt"
	"memgpt/tool"
)

// Meaning finds texts of a site by words and vectors, on the site's file opened anew.
type Meaning struct {
	Search tool.Searcher
	Close  func() error
}

// meaning measures searches by words and vectors in a log of n messages: the first after an opening, which loads what
// stays in memory, then others, then some with filters; and what is in memory by then, SQLite's own cache not counted: it
// is not of the heap that is looked at.
func (r *runner) meaning(ctx context.Context, t *talker, n int) (err error) {
	if r.cfg.Vectors == nil || r.cfg.Meaning == nil {
		return nil
	}
	key, start := strconv.Itoa(n), r.cfg.Now()
	if err := r.cfg.Vectors(ctx, t.g.Site, t.agent.ID); err != nil {
		return err
	}
	r.out.VectorsByLog[key] = r.since(start).Seconds()
	m, err := r.cfg.Meaning(ctx, t.g.Site)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	before := heap()
	first, err := r.hybrids(ctx, m, 1, tool.Query{Owner: t.agent.ID})
	if err != nil {
		return err
	}
	plain, err := r.hybrids(ctx, m, r.size.searches, tool.Query{Owner: t.agent.ID})
	if err != nil {
		return err
	}
	half := r.cfg.Now().Add(time.Duration(n/2-1_000_000) * between) // the later half of the lines
	filtered, err := r.hybrids(ctx, m, r.size.searches, tool.Query{Owner: t.agent.ID, From: half, Roles: []memgpt.Role{memgpt.RoleUser}})
	if err != nil {
		return err
	}
	r.out.MeaningFirst[key], r.out.MeaningByLog[key], r.out.FilteredByLog[key] = median(first), median(plain), median(filtered)
	r.out.HeldByLog[key] = (heap() - before) / float64(n)
	return nil
}

// hybrids measures searches.
func (r *runner) hybrids(ctx context.Context, m *Meaning, n int, q tool.Query) (took []time.Duration, err error) {
	w, found := newWriter(uint64(9+n)), 0
	for range n {
		q.Text, q.Size = w.question(), pageSize
		start := r.cfg.Now()
		hits, err := m.Search.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		if hits.Words != "" {
			return nil, errors.New("a search was by words alone: " + hits.Words)
		}
		took = append(took, r.since(start))
		found += len(hits.List)
	}
	if found == 0 && n > 1 {
		return nil, errors.New("no search found anything")
	}
	return took, nil
}

// heap returns the bytes in use of the heap, what is kept for the next search among them.
func heap() float64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}
