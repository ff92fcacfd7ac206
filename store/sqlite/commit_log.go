package sqlite

import (
	"bytes"

	"memgpt"
	"memgpt/store"
)

const (
	sqlEntryNew = "INSERT INTO entries (no, id, turn, step, time, key, message) VALUES (?, ?, ?, ?, ?, ?, ?)"
	sqlKeyNew   = "INSERT INTO entry_keys (owner, key, entry) VALUES (?, ?, ?)"
	sqlIDGet    = "SELECT entry, passage, doc FROM ids WHERE owner = ? AND id = ?"
	sqlIDSet    = "REPLACE INTO ids (owner, id, entry, passage, doc) VALUES (?, ?, ?, ?, ?)"
	sqlIDNew    = "INSERT INTO ids (owner, id, entry, passage, doc) VALUES (?, ?, ?, ?, ?)"
	sqlTurnNew  = "INSERT OR IGNORE INTO turns (tenant, id, thread, prev, data) VALUES (?, ?, ?, ?, ?)"
	sqlTurnSet  = "UPDATE turns SET data = ? WHERE tenant = ? AND id = ?"
)

func (w *work) applyEntries(c *store.Commit, x *coded) error {
	for i := range c.Entries {
		if err := w.applyEntry(&c.Entries[i], &x.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) applyEntry(e *memgpt.Entry, x *codedEntry) error {
	t, err := w.needThread(name{e.Tenant, e.Thread}, "entry "+e.ID)
	if err != nil {
		return err
	}
	o, err := w.owner(name{e.Tenant, e.Agent})
	if err != nil {
		return err
	}
	if o.no != t.agent {
		return memgpt.Errorf(memgpt.CodeInvalid, "store entry %s: conversation %s is not one of agent %s", e.ID, e.Thread, e.Agent)
	}
	no := rowNo(t.no, e.Seq)
	var key any
	if e.Key != "" {
		key = e.Key
	}
	if _, err := w.c.exec(sqlEntryNew, no, x.id, x.turn, e.Step, e.Time, key, x.message); err != nil {
		if isTaken(err) {
			return memgpt.Errorf(memgpt.CodeConflict, "store entry %s: conversation %s has an entry %d already", e.ID, e.Thread, e.Seq)
		}
		return err
	}
	if err := w.nameEntry(o, no, e, x.id); err != nil {
		return err
	}
	t.changed = true
	t.messages++
	t.bytes += int64(len(x.message))
	// What countHidden will count by itself is behind the head that was; what comes before it makes it count all.
	t.recount = t.recount || e.Seq <= t.oldHead
	return nil
}

// nameEntry enters the id and the key of an entry.
func (w *work) nameEntry(o *ownerState, no int64, e *memgpt.Entry, id []byte) error {
	doc := w.takeDoc(o, e.ID)
	var number any
	if doc != 0 {
		number = doc
	}
	if _, err := w.c.exec(sqlIDNew, o.no, id, no, nil, number); err != nil {
		if !isTaken(err) {
			return err
		}
		if err := w.joinID(o, id, no, number, e.ID); err != nil {
			return err
		}
	}
	if e.Key == "" {
		return nil
	}
	_, err := w.c.exec(sqlKeyNew, o.no, e.Key, no)
	return taken(err, "store entry %s: the agent has an entry with key %q already", e.ID, e.Key)
}

// joinID gives an entry an id that a passage or a doc has.
func (w *work) joinID(o *ownerState, id []byte, entry int64, doc any, text string) error {
	r, err := w.c.one(sqlIDGet, o.no, id)
	if err != nil {
		return err
	}
	if r[0] != nil {
		return memgpt.Errorf(memgpt.CodeExists, "store entry %s: the agent has an entry with this id already", text)
	}
	if doc == nil {
		doc = r[2]
	} else if err := w.kill(o, r.int(2)); err != nil {
		return err
	}
	_, err = w.c.exec(sqlIDSet, o.no, id, entry, r[1], doc)
	return err
}

func (w *work) applyTurns(c *store.Commit, x *coded) error {
	for i := range c.Turns {
		r := &c.Turns[i]
		t, err := w.needThread(name{r.Tenant, r.Thread}, "turn "+r.ID)
		if err != nil {
			return err
		}
		if err := w.applyTurn(t, r.Tenant, packID(r.ID), x.turns[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) applyTurn(t *threadState, tenant string, id []byte, data string) error {
	if !bytes.Equal(t.turn, id) {
		var prev any
		if len(t.turn) > 0 {
			prev = t.turn
		}
		n, err := w.c.exec(sqlTurnNew, tenant, id, t.no, prev, data)
		if err != nil {
			return err
		}
		if n > 0 {
			t.turn, t.changed = id, true
			return nil
		}
	}
	_, err := w.c.exec(sqlTurnSet, data, tenant, id)
	return err
}

const (
	sqlPassageGet = "SELECT live, data FROM passages WHERE no = ?"
	sqlPassageNew = `INSERT INTO passages (no, owner, key, live, data)
		VALUES (ifnull((SELECT max(no) FROM passages WHERE no BETWEEN ? AND ?), ?) + 1, ?, ?, ?, ?)`
	sqlPassageSet = "UPDATE passages SET key = ?, live = ?, data = ? WHERE no = ?"
	sqlSourceAdd  = `INSERT INTO sources (owner, source, passages) VALUES (?, ?, ?)
		ON CONFLICT (owner, source) DO UPDATE SET passages = passages + excluded.passages`
	sqlSourceDel = "DELETE FROM sources WHERE owner = ? AND source = ? AND passages <= 0"
)

// applyPassages writes those first that are no longer live: the one that replaces another may have its key.
func (w *work) applyPassages(c *store.Commit, x *coded) error {
	for _, live := range []bool{false, true} {
		for i := range c.Passages {
			if c.Passages[i].Live() != live {
				continue
			}
			if err := w.applyPassage(&c.Passages[i], x.passages[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *work) applyPassage(p *memgpt.Passage, data string) error {
	o, err := w.owner(name{p.Tenant, p.Owner})
	if err != nil {
		return err
	}
	o.changed = true
	id := packID(p.ID)
	at, err := w.c.one(sqlIDGet, o.no, id)
	if err != nil {
		return err
	}
	if at == nil || at[1] == nil {
		err = w.newPassage(o, p, id, at, data)
	} else {
		err = w.setPassage(o, p, at.int(1), data)
	}
	if err != nil {
		return taken(err, "store passage %s: a passage with the same text is there already (key %s)", p.ID, p.Key)
	}
	if !p.Live() {
		return nil
	}
	return w.countPassage(o, p.Source, len(p.Text), 1)
}

func (w *work) newPassage(o *ownerState, p *memgpt.Passage, id []byte, at row, data string) error {
	lo := rowNo(o.no, 0)
	no, err := w.c.insert(sqlPassageNew, lo, lo|maxPos, lo, o.no, p.Key, p.Live(), data)
	if err != nil {
		return err
	}
	var entry, doc any
	if at != nil {
		entry, doc = at[0], at[2]
	}
	_, err = w.c.exec(sqlIDSet, o.no, id, entry, no, doc)
	return err
}

func (w *work) setPassage(o *ownerState, p *memgpt.Passage, no int64, data string) error {
	r, err := w.c.one(sqlPassageGet, no)
	if err != nil {
		return err
	}
	if r != nil && r.int(0) == 1 {
		var old passageRow
		if err := decode(r.text(1), &old, "passage"); err != nil {
			return err
		}
		if err := w.countPassage(o, old.Source, len(old.Text), -1); err != nil {
			return err
		}
	}
	_, err = w.c.exec(sqlPassageSet, p.Key, p.Live(), data, no)
	return err
}

func (w *work) countPassage(o *ownerState, source string, bytes int, n int64) error {
	o.passages += n
	o.passageBytes += n * int64(bytes)
	if source == "" {
		return nil
	}
	if _, err := w.c.exec(sqlSourceAdd, o.no, source, n); err != nil || n > 0 {
		return err
	}
	_, err := w.c.exec(sqlSourceDel, o.no, source)
	return err
}
