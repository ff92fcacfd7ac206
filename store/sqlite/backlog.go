package sqlite

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"memgpt/store"
)

// backlog is the owners that had docs without a vector when somebody asked last. As long as no other connection commits,
// which SQLite's data_version tells, only owners that this store's commits touched since can have changed: who asks often
// doesn't look at thousands of owners each time.
type backlog struct {
	mu      sync.Mutex
	model   string
	version int64                   // of the data of others
	behind  map[int64]store.Backlog // by owner; nil when all must be looked at
}

// Backlog implements store.Index.
func (s *Store) Backlog(ctx context.Context, model string) ([]store.Backlog, error) {
	b := &s.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	version, touched, err := s.takeTouched(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.bringUp(ctx, model, version, touched); err != nil {
		return nil, err
	}
	list := make([]store.Backlog, 0, len(b.behind))
	for _, o := range b.behind {
		list = append(list, o)
	}
	slices.SortFunc(list, func(x, y store.Backlog) int {
		return cmp.Or(cmp.Compare(x.Left(), y.Left()), cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.Owner, y.Owner))
	})
	return list, nil
}

// takeTouched returns the version of the data of others and the owners that were touched, nil when all may be. From its
// call on commits note whom they touch.
func (s *Store) takeTouched(ctx context.Context) (version int64, touched map[int64]bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if s.queue.isClosed() {
		return 0, nil, closedError()
	}
	select {
	case s.token <- struct{}{}:
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	defer s.release()
	if err := s.rows.check(s.writer); err != nil {
		return 0, nil, err
	}
	touched, s.touched = s.touched, map[int64]bool{}
	return s.rows.version, touched, nil
}

const (
	sqlBehind = `SELECT o.no, o.tenant, o.id, (SELECT max(no) FROM docs WHERE no BETWEEN o.no << 32 AND o.no << 32 | 0xffffffff),
		s.through, (SELECT count(*) FROM partials WHERE no BETWEEN s.no << 32 AND s.no << 32 | 0xffffffff) FROM owners o LEFT JOIN sets s ON s.owner = o.no AND s.model = (SELECT no FROM models WHERE id = ?)`
	sqlBehindOne = sqlBehind + " WHERE o.no = ?"
)

// bringUp makes the list that of a model, looking at the touched owners alone where the others can't have changed. Its
// snapshot begins after those were taken: what comes between is looked at twice.
func (s *Store) bringUp(ctx context.Context, model string, version int64, touched map[int64]bool) error {
	b := &s.backlog
	note := func(r row) error {
		o := store.Backlog{Tenant: r.text(1), Owner: r.text(2), After: r.int(4), Docs: posOf(r.int(3)), Partial: r.int(5)}
		if o.Left() > 0 {
			b.behind[r.int(0)] = o
		} else {
			delete(b.behind, r.int(0))
		}
		return ctx.Err()
	}
	err := s.snapshot(ctx, "what has no vectors", func(c *conn) error {
		if touched == nil || b.behind == nil || b.version != version || b.model != model {
			b.model, b.version, b.behind = model, version, map[int64]store.Backlog{}
			return c.each(note, sqlBehind, model)
		}
		for no := range touched {
			if err := c.each(note, sqlBehindOne, model, no); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.behind = nil // what was touched is forgotten
	}
	return err
}
