package sqlite

import (
	"slices"
	"strings"

	"memgpt"
	"memgpt/store"
)

// eraser is one erasure as it is applied.
type eraser struct {
	*work
	e      *store.Erasure
	x      *codedErasure
	erased map[int64]bool // owners whose index changed
}

// apply does everything of an erasure. What it finds wrong it returns, and the caller undoes the rest.
func (w *eraser) apply() error {
	w.erased = map[int64]bool{}
	if _, err := w.c.exec(sqlUnclean); err != nil {
		return err
	}
	for _, f := range []func() error{w.threads, w.blocks, w.histories, w.entries, w.sayings, w.passages, w.turns, w.events, w.keys, w.docs,
		w.records, w.goneThreads, w.flush, w.goneAgents, w.goneBlocks, w.droppedVectors} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (w *eraser) threads() error {
	for i := range w.e.Threads {
		t := &w.e.Threads[i]
		st, err := w.versionedThread(t)
		if err != nil {
			return err
		}
		st.changed = true
		st.label, st.version, st.head, st.data = t.Name, t.Version+1, t.Head, w.x.threads[i]
		st.lease++
		st.until, st.holder = nil, ""
		if err := w.applySummary(st, &t.Summary); err != nil {
			return err
		}
	}
	return nil
}

func (w *eraser) versionedThread(t *memgpt.Thread) (*threadState, error) {
	st, err := w.needThread(name{t.Tenant, t.ID}, "conversation "+t.ID)
	if err != nil {
		return nil, err
	}
	return st, checkVersion("conversation", t.ID, st.version, t.Version)
}

func (w *eraser) blocks() error {
	for i := range w.e.Blocks {
		b := &w.e.Blocks[i]
		no, err := w.block(b.Tenant, b.ID, b.Version)
		if err != nil {
			return err
		}
		if _, err := w.c.exec(sqlBlockSet, b.Version+1, w.x.blocks[i], no); err != nil {
			return err
		}
	}
	return nil
}

// block returns the number of a block, whose version is checked if it isn't negative.
func (w *eraser) block(tenant, id string, version int64) (int64, error) {
	r, err := w.c.one(sqlBlockGet, tenant, id)
	if err != nil {
		return 0, err
	}
	if r == nil {
		return 0, notFound("block", id)
	}
	no, has := r.int(0), r.int(1)
	if version >= 0 {
		err = checkVersion("block", id, has, version)
	}
	return no, err
}

const sqlEditsDel = "DELETE FROM block_edits WHERE no BETWEEN ? AND ?"

func (w *eraser) histories() error {
	for i := range w.e.Histories {
		h := &w.e.Histories[i]
		no, err := w.block(h.Tenant, h.Block, -1)
		if err != nil {
			return err
		}
		lo := rowNo(no, 0)
		if _, err := w.c.exec(sqlEditsDel, lo, lo|maxPos); err != nil {
			return err
		}
		for _, data := range w.x.edits[i] {
			if _, err := w.c.exec(sqlEditNew, lo, lo|maxPos, lo, data); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	sqlEntrySize = "SELECT length(CAST(message AS BLOB)) FROM entries WHERE no = ?"
	sqlEntrySet  = "UPDATE entries SET message = ? WHERE no = ?"
)

func (w *eraser) entries() error {
	for i := range w.e.Entries {
		e := &w.e.Entries[i]
		t, err := w.needThread(name{e.Tenant, e.Thread}, "entry "+e.ID)
		if err != nil {
			return err
		}
		no := rowNo(t.no, e.Seq)
		r, err := w.c.one(sqlEntrySize, no)
		if err != nil {
			return err
		}
		if r == nil {
			return notFound("entry", e.ID)
		}
		t.bytes += int64(len(w.x.entries[i].message)) - r.int(0)
		t.changed = true
		if _, err := w.c.exec(sqlEntrySet, w.x.entries[i].message, no); err != nil {
			return err
		}
	}
	return nil
}

func (w *eraser) passages() error {
	for i := range w.e.Passages {
		p := &w.e.Passages[i]
		o, err := w.owner(name{p.Tenant, p.Owner})
		if err != nil {
			return err
		}
		r, err := w.c.one(sqlIDGet, o.no, packID(p.ID))
		if err != nil {
			return err
		}
		if r == nil || r[1] == nil {
			return notFound("passage", p.ID)
		}
		if err := w.applyPassage(p, w.x.passages[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *eraser) turns() error {
	for i := range w.e.Turns {
		t := &w.e.Turns[i]
		if n, err := w.c.exec(sqlTurnSet, w.x.turns[i], t.Tenant, packID(t.ID)); err != nil || n == 0 {
			if err == nil {
				err = notFound("turn", t.ID)
			}
			return err
		}
	}
	return nil
}

func (w *eraser) events() error {
	for i := range w.e.Events {
		e := &w.e.Events[i]
		t, err := w.needThread(name{e.Tenant, e.Thread}, "event "+e.ID)
		if err != nil {
			return err
		}
		at, err := w.find(t, e.ID)
		if err != nil {
			return err
		}
		if at == nil {
			continue
		}
		if err := w.setEvent(t, *at, e, w.x.events[i]); err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlUsedKeys = "SELECT key FROM consumed WHERE thread = ?"
	sqlUsedDel  = "DELETE FROM consumed WHERE thread = ? AND key = ?"
)

func (w *eraser) keys() error {
	if len(w.e.Keys) == 0 {
		return nil
	}
	for _, t := range w.work.threads {
		var gone []string
		err := w.c.each(func(r row) error {
			key := r.text(0)
			for _, part := range w.e.Keys {
				if strings.Contains(strings.ToLower(key), strings.ToLower(part)) {
					gone = append(gone, key)
					break
				}
			}
			return nil
		}, sqlUsedKeys, t.no)
		if err != nil {
			return err
		}
		for _, key := range gone {
			if _, err := w.c.exec(sqlUsedDel, t.no, key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *eraser) records() error {
	return w.applyRecords(&store.Commit{Records: w.e.Records, Drop: unversioned(w.e.Drop)}, nil)
}

// unversioned returns records whose versions are not checked.
func unversioned(records []store.Record) []store.Record {
	list := slices.Clone(records)
	for i := range list {
		list[i].Version = 0
	}
	return list
}
