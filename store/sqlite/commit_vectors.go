package sqlite

import (
	"encoding/binary"

	"memgpt"
	"memgpt/store"
)

const (
	sqlModelNo   = "SELECT no FROM models WHERE id = ?"
	sqlModelNew  = "INSERT INTO models (id) VALUES (?)"
	sqlSetGet    = "SELECT no, through FROM sets WHERE owner = ? AND model = ?"
	sqlSetNew    = "INSERT INTO sets (owner, model, through) VALUES (?, ?, ?)"
	sqlSetMove   = "UPDATE sets SET through = ? WHERE no = ?"
	sqlSetDrop   = "DELETE FROM sets WHERE no = ?"
	sqlVectorNew = "INSERT INTO vectors (no, data) VALUES (?, ?)"
	sqlDropped   = "INSERT INTO dropped (no) VALUES (?)"
)

// codedVectors are the vectors of docs up to one, in a row.
type codedVectors struct {
	doc  int64 // the last one
	data []byte
}

// codeVectors checks what can be told without the store, and packs the vectors.
func (s *Store) codeVectors(c *store.Commit, x *coded) error {
	for i := range c.Vectors {
		v := &c.Vectors[i]
		if v.Owner == "" || v.Model == "" || v.After < 0 || v.Through <= v.After || v.Through > maxPos {
			return memgpt.Errorf(memgpt.CodeInvalid, "store vectors of %q by model %q: they need both names, and documents over %d up to %d are none",
				v.Owner, v.Model, v.After, v.Through)
		}
		if err := checkList(v); err != nil {
			return err
		}
		if len(v.Partial) > 0 {
			x.vectors = append(x.vectors, nil) // packed when the set is known
			continue
		}
		x.vectors = append(x.vectors, packVectors(v.List))
	}
	return nil
}

func checkList(v *store.Vectors) error {
	before := store.Vector{Doc: v.After, Piece: maxPos}
	for _, p := range v.List {
		if p.Doc > v.Through || p.Piece < 0 || p.Doc < before.Doc || p.Doc == before.Doc && p.Piece <= before.Piece {
			return memgpt.Errorf(memgpt.CodeInvalid, "store vectors of %s: document %d, piece %d, is out of order or not in %d to %d",
				v.Owner, p.Doc, p.Piece, v.After+1, v.Through)
		}
		before = p
	}
	last := v.After
	for _, doc := range v.Partial {
		if doc <= last || doc > v.Through {
			return memgpt.Errorf(memgpt.CodeInvalid, "store vectors of %s: the partial document %d is out of order or not in %d to %d",
				v.Owner, doc, v.After+1, v.Through)
		}
		last = doc
	}
	return nil
}

// Vectors of several docs share a row as long as it fits on a page: a walk over all is several times as fast as with a
// row for each. A row never changes.
const (
	vectorBytes = 4000 // most of a row, unless one doc has more
	vectorHead  = 6    // of a vector beside its data, about
)

func packVectors(list []store.Vector) (rows []codedVectors) {
	for len(list) > 0 {
		n := rowLen(list)
		row := codedVectors{doc: list[n-1].Doc}
		for _, v := range list[:n] {
			row.data = appendVector(row.data, row.doc, v)
		}
		rows, list = append(rows, row), list[n:]
	}
	return rows
}

// rowLen is how many of the vectors go into a row: those of whole docs, of one at least.
func rowLen(list []store.Vector) int {
	n, size := 0, 0
	for i, v := range list {
		if i > 0 && v.Doc != list[i-1].Doc {
			n = i
		}
		if size += len(v.Data) + vectorHead; size > vectorBytes && n > 0 {
			return n
		}
	}
	return len(list)
}

// appendVector packs a vector: how far its doc is before the row's last one, its piece, its size and what it holds.
func appendVector(out []byte, last int64, v store.Vector) []byte {
	out = binary.AppendUvarint(out, uint64(last-v.Doc))
	out = binary.AppendUvarint(out, uint64(v.Piece))
	out = binary.AppendUvarint(out, uint64(len(v.Data)))
	return append(out, v.Data...)
}

// applyVectors moves cursors on and writes the vectors.
func (w *work) applyVectors(c *store.Commit, x *coded) error {
	for i := range c.Vectors {
		v := &c.Vectors[i]
		o, err := w.owner(name{v.Tenant, v.Owner})
		if err != nil {
			return err
		}
		if v.Through > o.docs {
			return memgpt.Errorf(memgpt.CodeInvalid, "store vectors of %s up to document %d: it has %d", v.Owner, v.Through, o.docs)
		}
		set, err := w.moveSet(o, v)
		if err != nil {
			return err
		}
		rows := x.vectors[i]
		if len(v.Partial) > 0 {
			list, err := w.beginPartials(o, set, v)
			if err != nil {
				return err
			}
			rows = packVectors(list)
		}
		if rows, err = w.withoutErased(o, v, rows); err != nil {
			return err
		}
		if err := w.newVectors(set, rows); err != nil {
			return err
		}
	}
	return nil
}

// moveSet moves the cursor of a set, which is made if there is none, and returns the set's number.
func (w *work) moveSet(o *ownerState, v *store.Vectors) (int64, error) {
	model, err := w.model(v.Model)
	if err != nil {
		return 0, err
	}
	r, err := w.c.one(sqlSetGet, o.no, model)
	if err != nil {
		return 0, err
	}
	if at := versionOf(r, 1); at != v.After {
		return 0, memgpt.Errorf(memgpt.CodeConflict, "store vectors of %s by %s after document %d: they go up to %d by now",
			v.Owner, v.Model, v.After, at)
	}
	if r == nil {
		return w.c.insert(sqlSetNew, o.no, model, v.Through)
	}
	_, err = w.c.exec(sqlSetMove, v.Through, r.int(0))
	return r.int(0), err
}

// model returns the number of a model, which it gets if it has none.
func (w *work) model(id string) (int64, error) {
	r, err := w.c.one(sqlModelNo, id)
	if err != nil {
		return 0, err
	}
	if r == nil {
		return w.c.insert(sqlModelNew, id)
	}
	return r.int(0), nil
}

// applyUnembed drops sets. It goes before applyVectors, so that one commit can begin a set anew.
func (w *work) applyUnembed(c *store.Commit, _ *coded) error {
	for _, u := range c.Unembed {
		no, _, err := findSet(w.c, u.Tenant, u.Owner, u.Model)
		if err != nil {
			return err
		}
		if no == 0 {
			continue
		}
		if _, err := w.c.exec(sqlSetDrop, no); err != nil {
			return err
		}
		if _, err := w.c.exec(sqlPartialsDel, rowNo(no, 0), rowNo(no, maxPos)); err != nil {
			return err
		}
		if _, err := w.c.exec(sqlDropped, no); err != nil {
			return err
		}
		w.dropped = true
	}
	return nil
}
