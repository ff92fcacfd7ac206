package sqlite

import (
	"context"
	"errors"
	"fmt"

	"memgpt"
	"memgpt/store"
)

const (
	sqlEmbedded = `SELECT m.id, s.through FROM owners o JOIN sets s ON s.owner = o.no JOIN models m ON m.no = s.model
		WHERE o.tenant = ? AND o.id = ?`
	sqlSetFind = `SELECT s.no, s.through FROM owners o JOIN models m JOIN sets s ON s.owner = o.no AND s.model = m.no
		WHERE o.tenant = ? AND o.id = ? AND m.id = ?`
	sqlVectors  = "SELECT no, data FROM vectors WHERE no BETWEEN ? AND ? ORDER BY no LIMIT ?"
	sqlVectorAt = "SELECT no, data FROM vectors WHERE no = ?"
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
func (s *Store) Embedded(ctx context.Context, tenant, owner string) (map[string]int64, error) {
	out := map[string]int64{}
	err := s.read(ctx, "what vectors "+owner+" has", func(c *conn) error {
		return c.each(func(r row) error { out[r.text(0)] = r.int(1); return nil }, sqlEmbedded, tenant, owner)
	})
	return out, err
}

// vectorChunk is how many docs' vectors are read before they are yielded, so that yield holds up no one and may itself
// read the store.
const vectorChunk = 512

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

// yield hands on what the last chunk brought; false says that the walk is over.
func (w *walk) yield(yield func(store.Vector) bool) (more bool, err error) {
	for _, d := range w.rows {
		if err := eachVector(d, yield); err != nil {
			if errors.Is(err, errStop) {
				err = nil
			}
			return false, err
		}
	}
	return true, nil
}

// eachVector calls yield with the vectors of a doc as appendVector packed them.
func eachVector(d codedVectors, yield func(store.Vector) bool) error {
	r := reader{d.data}
	for len(r.data) > 0 {
		piece, size := r.uvarint(), r.uvarint()
		if size > uint64(len(r.data)) {
			return fmt.Errorf("the vectors of document %d are damaged", d.doc)
		}
		if !yield(store.Vector{Doc: d.doc, Piece: int(piece), Data: r.data[:size:size]}) {
			return errStop
		}
		r.data = r.data[size:]
	}
	return nil
}

// Vectors implements store.Index. Where they are dropped in the midst of it, the error has CodeConflict.
func (s *Store) Vectors(ctx context.Context, tenant, owner, model string, after int64, yield func(store.Vector) bool) error {
	w := &walk{tenant: tenant, owner: owner, model: model}
	for after = max(after, 0); after < maxPos; {
		err := s.chunk(ctx, w, func(c *conn, set int64, add func(r row) error) error {
			return c.each(add, sqlVectors, rowNo(set, after+1), rowNo(set, maxPos), vectorChunk)
		})
		if err != nil {
			return err
		}
		n := len(w.rows)
		if n > 0 {
			after = w.rows[n-1].doc
		}
		if more, err := w.yield(yield); err != nil || !more || n < vectorChunk {
			return err
		}
	}
	return nil
}

// VectorsOf implements store.Index.
func (s *Store) VectorsOf(ctx context.Context, tenant, owner, model string, docs []int64, yield func(store.Vector) bool) error {
	w := &walk{tenant: tenant, owner: owner, model: model}
	for len(docs) > 0 {
		some := docs[:min(len(docs), vectorChunk)]
		docs = docs[len(some):]
		err := s.chunk(ctx, w, func(c *conn, set int64, add func(r row) error) error {
			for _, n := range some {
				if n < 1 || n > maxPos {
					continue
				}
				if err := c.each(add, sqlVectorAt, rowNo(set, n)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if more, err := w.yield(yield); err != nil || !more {
			return err
		}
	}
	return nil
}
