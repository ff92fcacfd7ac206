package sqlite

import (
	"context"

	"memgpt"
	"memgpt/store"
)

const (
	sqlPassageAt    = "SELECT key, data, no FROM passages WHERE no = ?"
	sqlPassages     = "SELECT key, data, no FROM passages WHERE no BETWEEN ? AND ? AND (live = 1 OR ?) ORDER BY no"
	sqlPassagesDesc = sqlPassages + " DESC"
	sqlSourceCounts = "SELECT source, passages FROM sources WHERE owner = ? ORDER BY source"
	sqlPassageKeyed = "SELECT key, data, no FROM passages WHERE owner = ? AND key = ? AND live = 1 AND key <> ''"
)

func passageOf(r row, tenant, owner string) (memgpt.Passage, error) {
	var data passageRow
	if err := decode(r.text(1), &data, "passage"); err != nil {
		return memgpt.Passage{}, err
	}
	p := memgpt.Passage(data)
	p.Tenant, p.Owner, p.Key, p.Seq = tenant, owner, r.text(0), posOf(r.int(2))
	return p, nil
}

// Passages implements store.Store.
func (s *Store) Passages(ctx context.Context, tenant, owner string, ids []string) (list []memgpt.Passage, err error) {
	err = s.snapshot(ctx, "passages of "+owner, func(c *conn) error {
		return s.byID(c, name{tenant, owner}, ids, func(_ int64, _ string, at row) error {
			if at[1] == nil {
				return nil
			}
			r, err := c.one(sqlPassageAt, at.int(1))
			if err != nil || r == nil {
				return err
			}
			p, err := passageOf(r, tenant, owner)
			list = append(list, p)
			return err
		})
	})
	return list, err
}

// PassageKeyed implements store.Store.
func (s *Store) PassageKeyed(ctx context.Context, tenant, owner, key string) (p memgpt.Passage, err error) {
	err = s.read(ctx, "passage of "+owner, func(c *conn) error {
		no, err := s.ownerNo(c, name{tenant, owner})
		if err != nil {
			return err
		}
		r, err := c.one(sqlPassageKeyed, no, key)
		if err != nil {
			return err
		}
		if r == nil {
			return notFound("passage with key", key)
		}
		p, err = passageOf(r, tenant, owner)
		return err
	})
	return p, err
}

// PassagesOf implements store.Store.
func (s *Store) PassagesOf(ctx context.Context, q store.PassageRange) (list []memgpt.Passage, err error) {
	err = s.read(ctx, "passages of "+q.Owner, func(c *conn) error {
		no, err := s.ownerNo(c, name{q.Tenant, q.Owner})
		if err != nil || no == 0 {
			return err
		}
		first, last := positions(q.After, q.Before)
		if first > last {
			return nil
		}
		query := sqlPassages
		if q.Last {
			query = sqlPassagesDesc
		}
		return c.each(func(r row) error {
			p, err := passageOf(r, q.Tenant, q.Owner)
			if err != nil || q.Source != "" && p.Source != q.Source {
				return err
			}
			list = append(list, p)
			if q.Limit > 0 && len(list) == q.Limit {
				return errStop
			}
			return nil
		}, query, rowNo(no, first), rowNo(no, last), q.Dead)
	})
	if q.Last {
		reverse(list)
	}
	return list, err
}

// Sources implements store.Store.
func (s *Store) Sources(ctx context.Context, tenant, owner string) (list []store.Source, err error) {
	err = s.read(ctx, "sources of "+owner, func(c *conn) error {
		no, err := s.ownerNo(c, name{tenant, owner})
		if err != nil || no == 0 {
			return err
		}
		return c.each(func(r row) error {
			list = append(list, store.Source{Name: r.text(0), Passages: int(r.int(1))})
			return nil
		}, sqlSourceCounts, no)
	})
	return list, err
}
