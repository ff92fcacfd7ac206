package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"memgpt"
	"memgpt/store"
)

const (
	sqlEmbedded = `SELECT m.id, s.through, s.no, s.changed,
		(SELECT count(*) FROM partials WHERE no BETWEEN s.no << 32 AND s.no << 32 | 0xffffffff) FROM owners o JOIN sets s ON s.owner = o.no JOIN models m ON m.no = s.model
		WHERE o.tenant = ? AND o.id = ?`
	sqlSetFind = `SELECT s.no, s.through FROM owners o JOIN models m JOIN sets s ON s.owner = o.no AND s.model = m.no
		WHERE o.tenant = ? AND o.id = ? AND m.id = ?`
	sqlVectors = "SELECT no, data FROM vectors WHERE no BETWEEN ? AND ? ORDER BY no LIMIT ?"
)

// findSet returns an owner's set of vectors of a model and the last doc that it goes up to, zeros when there is none.
func findSet(c *conn, tenant, owner, model string) (no, through int64, err error) {
	r, err := c.one(sqlSetFind, tenant, owner, model)
	if err != nil || r == nil {
		return 0, 0, err
	}
	return r.int(0), r.int(1), nil
}

// Embedded implements store.Index.
func (s *Store) Embedded(ctx context.Context, tenant, owner string) (map[string]store.Cursor, error) {
	out := map[string]store.Cursor{}
	err := s.read(ctx, "what vectors "+owner+" has", func(c *conn) error {
		return c.each(func(r row) error {
			out[r.text(0)] = store.Cursor{Through: r.int(1), Partial: r.int(4), Version: versionOfSet(r.int(2), r.int(3))}
			return nil
		}, sqlEmbedded, tenant, owner)
	})
	return out, err
}

// vectorChunk is how many rows are read before their vectors are yielded, so that yield holds up no one and may itself
// read the store.
const vectorChunk = 256

// walk is a walk over a set of vectors, chunk by chunk.
type walk struct {
	tenant, owner, model string
	set                  int64 // found by the first chunk
	rows                 []codedVectors
}

// chunk reads a part of the set by the query that ask makes of its number. Vectors that are dropped meanwhile end the
// walk with CodeConflict, since what was yielded of them isn't all.
func (s *Store) chunk(ctx context.Context, w *walk, ask func(c *conn, set int64, add func(r row) error) error) error {
	w.rows = w.rows[:0]
	return s.snapshot(ctx, "vectors of "+w.owner, func(c *conn) error {
		set, _, err := findSet(c, w.tenant, w.owner, w.model)
		if err != nil {
			return err
		}
		if w.set != 0 && w.set != set {
			return memgpt.Errorf(memgpt.CodeConflict, "they were dropped meanwhile")
		}
		if w.set = set; set == 0 {
			return nil
		}
		return ask(c, set, func(r row) error {
			w.rows = append(w.rows, codedVectors{posOf(r.int(0)), r.blob(1)})
			return ctx.Err()
		})
	})
}

// yield hands on those vectors of the last chunk that are wanted; false says that the walk is over.
func (w *walk) yield(wanted func(doc int64) bool, yield func(store.Vector) bool) (more bool, err error) {
	for _, d := range w.rows {
		err := eachVector(d, func(v store.Vector) bool { return !wanted(v.Doc) || yield(v) })
		if errors.Is(err, errStop) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read vectors of %s: %w", w.owner, err)
		}
	}
	return true, nil
}

// eachVector calls yield with the vectors of a row as appendVector packed them.
func eachVector(row codedVectors, yield func(store.Vector) bool) error {
	r := reader{row.data}
	for len(r.data) > 0 {
		back, piece, size := r.uvarint(), r.uvarint(), r.uvarint()
		if size > uint64(len(r.data)) {
			return fmt.Errorf("those up to document %d are damaged", row.doc)
		}
		if !yield(store.Vector{Doc: row.doc - int64(back), Piece: int(piece), Data: r.data[:size:size]}) {
			return errStop
		}
		r.data = r.data[size:]
	}
	return nil
}

// Vectors implements store.Index. Where they are dropped in the midst of it, the error has CodeConflict.
func (s *Store) Vectors(ctx context.Context, tenant, owner, model string, after int64, yield func(store.Vector) bool) error {
	w := &walk{tenant: tenant, owner: owner, model: model}
	wanted := func(doc int64) bool { return doc > after }
	for from := max(after, 0); from < maxPos; {
		err := s.chunk(ctx, w, func(c *conn, set int64, add func(r row) error) error {
			return c.each(add, sqlVectors, rowNo(set, from+1), rowNo(set, maxPos), vectorChunk)
		})
		if err != nil {
			return err
		}
		n := len(w.rows)
		if more, err := w.yield(wanted, yield); err != nil || !more || n < vectorChunk {
			return err
		}
		from = w.rows[n-1].doc
	}
	return nil
}

// VectorsOf implements store.Index. Where they are dropped in the midst of it, the error has CodeConflict.
func (s *Store) VectorsOf(ctx context.Context, tenant, owner, model string, docs []int64, yield func(store.Vector) bool) error {
	w := &walk{tenant: tenant, owner: owner, model: model}
	for len(docs) > 0 {
		some := docs[:min(len(docs), vectorChunk)]
		docs = docs[len(some):]
		err := s.chunk(ctx, w, func(c *conn, set int64, add func(r row) error) error {
			last := int64(0) // doc of the last row
			for _, n := range some {
				if n <= last || n > maxPos {
					continue
				}
				err := c.each(func(r row) error { last = posOf(r.int(0)); return add(r) }, sqlVectors, rowNo(set, n), rowNo(set, maxPos), 1)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		wanted := func(doc int64) bool { _, found := slices.BinarySearch(some, doc); return found }
		if more, err := w.yield(wanted, yield); err != nil || !more {
			return err
		}
	}
	return nil
}
