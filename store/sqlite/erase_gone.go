package sqlite

import "fmt"

// What is removed whole leaves an empty row in threads or owners under another name: its number is remembered by other
// processes, and must never be that of something else.
const (
	sqlThreadGrave = `UPDATE threads SET agent = 0, tenant = '', id = 'gone ' || no, name = 'gone ' || no, version = 0, head = 0, hidden = 0,
		first = NULL, last = NULL, messages = 0, bytes = 0, turn = NULL, summary = 0, lease_until = NULL, lease_holder = NULL, data = '{}'
		WHERE no = ?`
	sqlOwnerGrave = `UPDATE owners SET tenant = '', id = 'gone ' || no, passages = 0, passage_bytes = 0, merged = 0, merge_to = 0,
		merge_term = '', blocks = 0, block_bytes = 0, packed = 0, erased = erased + 1 WHERE no = ?`

	sqlThreadDocs = "SELECT no FROM docs WHERE no BETWEEN ? AND ? AND thread = ?"
	sqlThreadsOf  = "SELECT no FROM threads WHERE agent = ?"
	sqlIDsFree    = "UPDATE ids SET entry = NULL WHERE owner = ? AND entry BETWEEN ? AND ?"
	sqlIDsUnused  = "DELETE FROM ids WHERE owner = ? AND entry IS NULL AND passage IS NULL AND doc IS NULL"
	sqlBlockDel   = "DELETE FROM blocks WHERE no = ?"
)

// threadRows are the rows of a thread, but its own: statements with the first and the last number, or with the thread.
var (
	threadRanges = [...]string{"DELETE FROM entries WHERE no BETWEEN ? AND ?"}
	threadRows   = [...]string{"DELETE FROM summaries WHERE thread = ?", "DELETE FROM turns WHERE thread = ?",
		"DELETE FROM events WHERE thread = ?", "DELETE FROM consumed WHERE thread = ?", "DELETE FROM sayings WHERE thread = ?"}
	ownerRanges = [...]string{"DELETE FROM passages WHERE no BETWEEN ? AND ?", "DELETE FROM docs WHERE no BETWEEN ? AND ?",
		"DELETE FROM dead WHERE no BETWEEN ? AND ?", "DELETE FROM packs WHERE no BETWEEN ? AND ?"}
	ownerRows = [...]string{"DELETE FROM entry_keys WHERE owner = ?", "DELETE FROM ids WHERE owner = ?", "DELETE FROM sources WHERE owner = ?",
		"DELETE FROM postings WHERE owner = ?", "DELETE FROM sets WHERE owner = ?", "DELETE FROM agents WHERE owner = ?"}
)

// deleteAll runs statements that take a range of numbers, and others that take the number of whom the rows are.
func (w *eraser) deleteAll(no int64, ranges, rows []string) error {
	lo := rowNo(no, 0)
	for _, query := range ranges {
		if _, err := w.c.exec(query, lo, lo|maxPos); err != nil {
			return fmt.Errorf("%.40s: %w", query, err)
		}
	}
	for _, query := range rows {
		if _, err := w.c.exec(query, no); err != nil {
			return fmt.Errorf("%.40s: %w", query, err)
		}
	}
	return nil
}

func (w *eraser) goneThreads() error {
	for i := range w.e.GoneThreads {
		t := &w.e.GoneThreads[i]
		st, err := w.versionedThread(t)
		if err != nil {
			return err
		}
		if err := w.goneDocs(st, t.Agent); err != nil {
			return err
		}
		lo := rowNo(st.no, 0)
		if _, err := w.c.exec(sqlIDsFree, st.agent, lo, lo|maxPos); err != nil {
			return err
		}
		if _, err := w.c.exec(sqlIDsUnused, st.agent); err != nil {
			return err
		}
		if err := w.removeThread(st.no); err != nil {
			return err
		}
		st.changed = false
	}
	return nil
}

func (w *eraser) removeThread(no int64) error {
	if err := w.deleteAll(no, threadRanges[:], threadRows[:]); err != nil {
		return err
	}
	_, err := w.c.exec(sqlThreadGrave, no)
	return err
}

// goneDocs erases the documents of a thread.
func (w *eraser) goneDocs(t *threadState, agent string) error {
	o, err := w.owner(name{t.name.tenant, agent})
	if err != nil {
		return err
	}
	gone := &docErasure{owner: o, numbers: map[int64]bool{}}
	lo := rowNo(o.no, 0)
	err = w.c.each(func(r row) error { gone.numbers[posOf(r.int(0))] = true; return nil }, sqlThreadDocs, lo, lo|maxPos, t.name.id)
	if err != nil {
		return err
	}
	return w.eraseDocs(gone)
}

func (w *eraser) goneAgents() error {
	for i := range w.e.GoneAgents {
		a := &w.e.GoneAgents[i]
		o, err := w.owner(name{a.Tenant, a.ID})
		if err != nil {
			return err
		}
		r, err := w.c.one(sqlAgentGet, o.no)
		if err != nil {
			return err
		}
		if r == nil {
			return notFound("agent", a.ID)
		}
		if err := checkVersion("agent", a.ID, r.int(0), a.Version); err != nil {
			return err
		}
		if err := w.removeOwner(o.no); err != nil {
			return err
		}
	}
	return nil
}

func (w *eraser) removeOwner(no int64) error {
	threads, err := w.numbers(sqlThreadsOf, no)
	if err != nil {
		return err
	}
	for _, t := range threads {
		if err := w.removeThread(t); err != nil {
			return err
		}
	}
	sets, err := w.numbers(sqlSetsOf, no)
	if err != nil {
		return err
	}
	for _, set := range sets {
		for _, query := range []string{sqlVectorsDel, sqlPartialsDel} {
			if _, err := w.c.exec(query, rowNo(set, 0), rowNo(set, maxPos)); err != nil {
				return err
			}
		}
	}
	if err := w.deleteAll(no, ownerRanges[:], ownerRows[:]); err != nil {
		return err
	}
	_, err = w.c.exec(sqlOwnerGrave, no)
	return err
}

// numbers returns the first column of a query about something with a number.
func (w *eraser) numbers(query string, args ...any) (list []int64, err error) {
	err = w.c.each(func(r row) error { list = append(list, r.int(0)); return nil }, query, args...)
	return list, err
}

func (w *eraser) goneBlocks() error {
	for i := range w.e.GoneBlocks {
		b := &w.e.GoneBlocks[i]
		no, err := w.block(b.Tenant, b.ID, b.Version)
		if err != nil {
			return err
		}
		if err := w.deleteAll(no, []string{sqlEditsDel}, []string{sqlBlockDel}); err != nil {
			return err
		}
	}
	return nil
}
