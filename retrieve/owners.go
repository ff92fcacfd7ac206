package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"memgpt/store"
	"memgpt/tool"
)

// owners are whose documents a search looks through, each with what is wanted of it: Query.Owner, and the archives. Each is
// scored on a board of its own by statistics of all, so that one owner alone costs what it did without the others.
type owners []*wanted

// owners reads what the index knows of the owners, and prepares the filters.
func (s *Searcher) owners(ctx context.Context, q tool.Query) (owners, error) {
	ids := []string{q.Owner}
	for _, id := range q.Archives {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	list := make(owners, len(ids))
	for k, id := range ids {
		q.Owner = id
		meta, err := s.index.Meta(ctx, q.Tenant, id)
		if err != nil {
			return nil, fmt.Errorf("read what the index knows: %w", err)
		}
		if !q.AsOf.IsZero() {
			if meta, err = s.asOf(ctx, q, meta); err != nil {
				return nil, err
			}
		}
		pass, err := s.filter(ctx, q, meta)
		if err != nil {
			return nil, fmt.Errorf("prepare the filters: %w", err)
		}
		list[k] = &wanted{Query: q, meta: meta, pass: pass}
	}
	dates := s.spans(list[0])
	for _, w := range list {
		w.dates = dates
	}
	return list, nil
}

// docs is how many documents there are.
func (list owners) docs() (n int) {
	for _, w := range list {
		n += len(w.meta.Time)
	}
	return n
}

// stats adds up the owners' statistics.
func (s *Searcher) stats(ctx context.Context, list owners, terms []string) (store.Stats, error) {
	var all store.Stats
	for k, w := range list {
		own, err := s.index.Stats(ctx, w.Tenant, w.Owner, terms)
		switch {
		case err != nil:
			return all, err
		case k == 0:
			all = own
			continue
		case k == 1: // a store may keep what it gave
			all.DF = maps.Clone(all.DF)
		}
		all.Docs += own.Docs
		all.Length += own.Length
		for t, n := range own.DF {
			all.DF[t] += n
		}
	}
	return all, nil
}

// joined returns what the owners' rankings kept, the best first: by score, then the newer first, then that of the earlier
// owner, then the one stored later.
func (list owners) joined(best []*ranking) []found {
	if len(best) == 1 {
		return best[0].sorted()
	}
	var all []found
	for k, r := range best {
		for _, f := range r.heap {
			f.owner = int32(k)
			all = append(all, f)
		}
	}
	said := func(f found) int64 { return list[f.owner].meta.Time[f.doc] }
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(said(b), said(a)), cmp.Compare(a.owner, b.owner), cmp.Compare(b.doc, a.doc))
	})
	return all
}

// page cuts the page out of the owners' best of total documents.
func (list owners) page(best []*ranking, total int) []found {
	all := list.joined(best)
	from, to := list[0].bounds(total)
	return all[min(from, len(all)):min(to, len(all))]
}

// explain keeps the parts of the page's scores, where they are asked for: boards don't last.
func (list owners) explain(page []found) {
	for _, f := range page {
		if w := list[f.owner]; w.Explain {
			if w.told == nil {
				w.told = map[int][]tool.Part{}
			}
			w.told[f.doc] = w.parts(f.doc)
		}
	}
}

// originalsOf is originals for documents of any of the owners.
func (s *Searcher) originalsOf(ctx context.Context, list owners, docs []found) ([]*tool.Hit, error) {
	if len(list) == 1 {
		return s.originals(ctx, list[0].Query, list[0].meta, docs)
	}
	hits := make([]*tool.Hit, len(docs))
	for k, w := range list {
		var own []found
		var at []int
		for i, f := range docs {
			if int(f.owner) == k {
				own, at = append(own, f), append(at, i)
			}
		}
		got, err := s.originals(ctx, w.Query, w.meta, own)
		if err != nil {
			return nil, err
		}
		for i, hit := range got {
			if hit != nil && k > 0 {
				hit.Archive = w.Owner
			}
			hits[at[i]] = hit
		}
	}
	return hits, nil
}
