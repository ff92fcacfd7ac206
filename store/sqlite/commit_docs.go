package sqlite

import (
	"memgpt/store"
)

const (
	sqlDocNew = `INSERT INTO docs (no, id, kind, role, thread, time, length, sum_length, sum_bytes, terms, author, session)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlDocDie = "UPDATE docs SET dead = 1 WHERE no = ? AND dead = 0"
	sqlDocLen = "SELECT length FROM docs WHERE no = ?"
	sqlDead   = "INSERT INTO dead (no, doc, sum_length) VALUES (?, ?, ?)"
)

// newDoc is a doc of this commit whose id is still to be entered.
type newDoc struct {
	owner  *ownerState
	id     string
	packed []byte
	number int64
}

// applyDocs numbers the docs and writes their forward rows.
func (w *work) applyDocs(c *store.Commit, x *coded) error {
	for i := range c.Docs {
		d, xd := &c.Docs[i], &x.docs[i]
		o, err := w.owner(name{d.Tenant, d.Owner})
		if err != nil {
			return err
		}
		o.docs++
		o.sumLength += int64(d.Length)
		o.sumBytes += int64(len(xd.terms))
		if _, err := w.c.exec(sqlDocNew, rowNo(o.no, o.docs), xd.id, xd.kind, xd.role, d.Thread, xd.time, d.Length,
			o.sumLength, o.sumBytes, xd.terms, d.Author, d.Session); err != nil {
			return err
		}
		w.docs = append(w.docs, newDoc{o, d.ID, xd.id, o.docs})
	}
	return nil
}

// takeDoc returns the number of the commit's doc with an entry's id, 0 when it has none. An entry and its doc mostly
// come in one commit, and then their id is entered once.
func (w *work) takeDoc(o *ownerState, id string) int64 {
	for i := range w.docs {
		if d := w.docs[i]; d.owner == o && d.id == id {
			w.docs = append(w.docs[:i], w.docs[i+1:]...)
			return d.number
		}
	}
	return 0
}

// applyDocIDs enters the ids of the docs that no entry of the commit has. A doc with an id that is there replaces the
// earlier one.
func (w *work) applyDocIDs(*store.Commit, *coded) error {
	for _, d := range w.docs {
		r, err := w.c.one(sqlIDGet, d.owner.no, d.packed)
		if err != nil {
			return err
		}
		var entry, passage any
		if r != nil {
			entry, passage = r[0], r[1]
			if err := w.kill(d.owner, r.int(2)); err != nil {
				return err
			}
		}
		if _, err := w.c.exec(sqlIDSet, d.owner.no, d.packed, entry, passage, d.number); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) applyDead(c *store.Commit, _ *coded) error {
	for _, d := range c.DeadDocs {
		o, err := w.owner(name{d.Tenant, d.Owner})
		if err != nil {
			return err
		}
		r, err := w.c.one(sqlIDGet, o.no, packID(d.ID))
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		if err := w.kill(o, r.int(2)); err != nil {
			return err
		}
	}
	return nil
}

// kill takes a doc out of results and counts. The list of the dead lets readers catch up without looking at all docs.
func (w *work) kill(o *ownerState, number int64) error {
	if number == 0 {
		return nil
	}
	no := rowNo(o.no, number)
	n, err := w.c.exec(sqlDocDie, no)
	if err != nil || n == 0 {
		return err
	}
	r, err := w.c.one(sqlDocLen, no)
	if err != nil {
		return err
	}
	o.deaths++
	o.deadLength += r.int(0)
	_, err = w.c.exec(sqlDead, rowNo(o.no, o.deaths), number, o.deadLength)
	return err
}
