package sqlite

import (
	"context"
	"errors"
	"slices"

	"memgpt"
	"memgpt/store"
)

const (
	sqlPartials    = "SELECT no, pieces, data FROM partials WHERE no BETWEEN ? AND ? ORDER BY no LIMIT ?"
	sqlPartialGet  = "SELECT pieces, data FROM partials WHERE no = ?"
	sqlPartialSet  = "REPLACE INTO partials (no, pieces, data) VALUES (?, ?, ?)"
	sqlPartialDel  = "DELETE FROM partials WHERE no = ?"
	sqlPartialsDel = "DELETE FROM partials WHERE no BETWEEN ? AND ?"
	sqlSetChanged  = "UPDATE sets SET changed = changed + 1 WHERE no = ?"
	sqlSetVersion  = "SELECT changed FROM sets WHERE no = ?"
	sqlSuperseded  = `SELECT o.tenant, o.id, m.id FROM sets s JOIN owners o ON o.no = s.owner
		JOIN sets t ON t.owner = s.owner AND t.model <> s.model JOIN models m ON m.no = t.model
		WHERE s.model = (SELECT no FROM models WHERE id = ?)
		AND s.through >= (SELECT max(no) & 0xffffffff FROM docs WHERE no BETWEEN o.no << 32 AND o.no << 32 | 0xffffffff)
		AND NOT EXISTS (SELECT 1 FROM partials WHERE no BETWEEN s.no << 32 AND s.no << 32 | 0xffffffff)`
)

// versionOfSet is the version of a set's cursor: sets that were dropped and begun anew have other numbers.
func versionOfSet(set, changed int64) int64 { return rowNo(set, changed&maxPos) }

// Partials implements store.Index.
func (s *Store) Partials(ctx context.Context, tenant, owner, model string, limit int) (list []store.Partial, err error) {
	err = s.snapshot(ctx, "what lacks vectors of "+owner, func(c *conn) error {
		set, _, err := findSet(c, tenant, owner, model)
		if err != nil || set == 0 {
			return err
		}
		return c.each(func(r row) error {
			p := store.Partial{Doc: posOf(r.int(0)), Pieces: int(r.int(1))}
			err := eachVector(codedVectors{p.Doc, r.blob(2)}, func(v store.Vector) bool { p.First = slices.Clone(v.Data); return false })
			list = append(list, p)
			if errors.Is(err, errStop) {
				err = nil
			}
			return err
		}, sqlPartials, rowNo(set, 0), rowNo(set, maxPos), limit)
	})
	return list, err
}

// Superseded implements store.Index.
func (s *Store) Superseded(ctx context.Context, model string) (list []store.OwnerModel, err error) {
	err = s.read(ctx, "what vectors are of no more use", func(c *conn) error {
		return c.each(func(r row) error {
			list = append(list, store.OwnerModel{Tenant: r.text(0), Owner: r.text(1), Model: r.text(2)})
			return ctx.Err()
		}, sqlSuperseded, model)
	})
	return list, err
}

// beginPartials notes docs that a set passes before they have all of their vectors, and returns the vectors of the others.
func (w *work) beginPartials(o *ownerState, set int64, v *store.Vectors) ([]store.Vector, error) {
	var list []store.Vector
	held := map[int64][]store.Vector{}
	for _, x := range v.List {
		if _, found := slices.BinarySearch(v.Partial, x.Doc); found {
			held[x.Doc] = append(held[x.Doc], x)
		} else {
			list = append(list, x)
		}
	}
	for _, doc := range v.Partial {
		r, err := w.c.one(sqlErasedIn, rowNo(o.no, doc), rowNo(o.no, doc))
		if err != nil {
			return nil, err
		}
		if r == nil {
			err = w.setPartial(set, doc, held[doc])
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (w *work) setPartial(set, doc int64, list []store.Vector) error {
	data := []byte{}
	for _, v := range list {
		data = appendVector(data, doc, v)
	}
	_, err := w.c.exec(sqlPartialSet, rowNo(set, doc), len(list), data)
	return err
}

// applyRests adds vectors to partial docs.
func (w *work) applyRests(c *store.Commit, _ *coded) error {
	for i := range c.Rests {
		r := &c.Rests[i]
		if _, err := w.owner(name{r.Tenant, r.Owner}); err != nil {
			return err
		}
		set, list, err := w.partial(r)
		if err != nil {
			return err
		}
		for i, v := range r.List {
			if v.Doc != r.Doc || v.Piece != r.Pieces+i {
				return memgpt.Errorf(memgpt.CodeInvalid, "store more vectors of document %d of %s: piece %d of document %d is out of order",
					r.Doc, r.Owner, v.Piece, v.Doc)
			}
		}
		if list = append(list, r.List...); !r.Whole {
			if err := w.setPartial(set, r.Doc, list); err != nil {
				return err
			}
			continue
		}
		if err := w.completePartial(set, r.Doc, list); err != nil {
			return err
		}
	}
	return w.changeSets(c)
}

// changeSets gives the sets with docs that became whole new versions: after all, since their rests name the old ones.
func (w *work) changeSets(c *store.Commit) error {
	seen := map[int64]bool{}
	for i := range c.Rests {
		r := &c.Rests[i]
		if !r.Whole {
			continue
		}
		set, _, err := findSet(w.c, r.Tenant, r.Owner, r.Model)
		if err != nil {
			return err
		}
		if seen[set] {
			continue
		}
		seen[set] = true
		if _, err := w.c.exec(sqlSetChanged, set); err != nil {
			return err
		}
	}
	return nil
}

// partial finds the set and the vectors of a partial doc, which must be as the rest says.
func (w *work) partial(r *store.Rest) (set int64, list []store.Vector, err error) {
	conflict := memgpt.Errorf(memgpt.CodeConflict, "store more vectors of document %d of %s by %s: they are not as they were", r.Doc, r.Owner, r.Model)
	set, _, err = findSet(w.c, r.Tenant, r.Owner, r.Model)
	if err != nil {
		return 0, nil, err
	}
	at, err := w.c.one(sqlSetVersion, set)
	if err != nil {
		return 0, nil, err
	}
	if at == nil || r.Doc < 1 || r.Doc > maxPos || versionOfSet(set, at.int(0)) != r.Version {
		return 0, nil, conflict
	}
	have, err := w.c.one(sqlPartialGet, rowNo(set, r.Doc))
	if err != nil {
		return 0, nil, err
	}
	if have == nil || have.int(0) != int64(r.Pieces) {
		return 0, nil, conflict
	}
	list, err = vectorsOf(codedVectors{r.Doc, slices.Clone(have.blob(1))})
	return set, list, err
}

// completePartial puts the vectors of a doc among those of the set. A row that holds docs on both sides is split there.
func (w *work) completePartial(set, doc int64, list []store.Vector) error {
	if _, err := w.c.exec(sqlPartialDel, rowNo(set, doc)); err != nil || len(list) == 0 {
		return err
	}
	r, err := w.c.one(sqlVectors, rowNo(set, doc), rowNo(set, maxPos), 1)
	if err != nil {
		return err
	}
	if r != nil {
		row := codedVectors{posOf(r.int(0)), slices.Clone(r.blob(1))}
		others, err := vectorsOf(row)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(others, func(v store.Vector) bool { return v.Doc > doc })
		list = slices.Insert(others, at, list...)
		if _, err := w.c.exec(sqlVectorDel, rowNo(set, row.doc)); err != nil {
			return err
		}
	}
	return w.newVectors(set, packVectors(list))
}

func (w *work) newVectors(set int64, rows []codedVectors) error {
	for _, r := range rows {
		if _, err := w.c.exec(sqlVectorNew, rowNo(set, r.doc), r.data); err != nil {
			return err
		}
	}
	return nil
}

// vectorsOf takes a row apart.
func vectorsOf(row codedVectors) (list []store.Vector, err error) {
	err = eachVector(row, func(v store.Vector) bool { list = append(list, v); return true })
	return list, err
}
