package sqlite

import "memgpt"

const (
	sqlOwnerGet = `SELECT o.no, o.passages, o.passage_bytes, o.merged, d.no, d.sum_length, d.sum_bytes, x.no, x.sum_length
		FROM owners o
		LEFT JOIN docs d ON d.no = (SELECT max(no) FROM docs WHERE no BETWEEN o.no << 32 AND o.no << 32 | 0xffffffff)
		LEFT JOIN dead x ON x.no = (SELECT max(no) FROM dead WHERE no BETWEEN o.no << 32 AND o.no << 32 | 0xffffffff)
		WHERE o.tenant = ? AND o.id = ?`
	sqlOwnerNew  = "INSERT INTO owners (tenant, id) VALUES (?, ?)"
	sqlOwnerSet  = "UPDATE owners SET passages = ?, passage_bytes = ? WHERE no = ?"
	sqlThreadRow = `SELECT no, agent, name, version, head, hidden, first, last, messages, bytes, turn, summary, lease, lease_until,
		lease_holder, data, tenant, id FROM threads WHERE `
	sqlThreadGet = sqlThreadRow + "tenant = ? AND id = ?"
	sqlThreadAt  = sqlThreadRow + "no = ?"
	sqlThreadNew = `INSERT INTO threads (agent, tenant, id, name, version, head, data) VALUES (?, ?, ?, ?, 0, 0, '')`
	// The name has a statement of its own: SQLite writes the index of a column that is set, be it to what it was.
	sqlThreadName = "UPDATE threads SET name = ? WHERE no = ?"
	sqlThreadSet  = `UPDATE threads SET version = ?, head = ?, hidden = ?, first = ?, last = ?, messages = ?, bytes = ?,
		turn = ?, summary = ?, lease = ?, lease_until = ?, lease_holder = ?, data = ? WHERE no = ?`
)

// owner returns the working copy of an owner's row, which is made if there is none.
func (w *work) owner(of name) (*ownerState, error) {
	for _, o := range w.owners {
		if o.name == of {
			return o, nil
		}
	}
	o, known := w.s.rows.owners[of]
	if !known {
		var err error
		if o, err = w.loadOwner(of); err != nil {
			return nil, err
		}
	}
	w.owners = append(w.owners, &o)
	return &o, nil
}

func (w *work) loadOwner(of name) (ownerState, error) {
	o := ownerState{name: of}
	r, err := w.c.one(sqlOwnerGet, of.tenant, of.id)
	if err != nil {
		return o, err
	}
	if r == nil {
		o.no, err = w.c.insert(sqlOwnerNew, of.tenant, of.id)
		return o, err
	}
	o.no, o.passages, o.passageBytes, o.merged = r.int(0), r.int(1), r.int(2), r.int(3)
	o.docs, o.sumLength, o.sumBytes = posOf(r.int(4)), r.int(5), r.int(6)
	o.deaths, o.deadLength = posOf(r.int(7)), r.int(8)
	return o, nil
}

// thread returns the working copy of a thread's row, nil when there is none.
func (w *work) thread(of name) (*threadState, error) {
	for _, t := range w.threads {
		if t.name == of {
			return t, nil
		}
	}
	if t, known := w.s.rows.threads[of]; known {
		w.threads = append(w.threads, &t)
		return &t, nil
	}
	r, err := w.c.one(sqlThreadGet, of.tenant, of.id)
	return w.loadThread(r, err)
}

// threadAt is thread by number.
func (w *work) threadAt(no int64) (*threadState, error) {
	for _, t := range w.threads {
		if t.no == no {
			return t, nil
		}
	}
	if of, known := w.s.rows.byNo[no]; known {
		return w.thread(of)
	}
	r, err := w.c.one(sqlThreadAt, no)
	return w.loadThread(r, err)
}

func (w *work) loadThread(r row, err error) (*threadState, error) {
	if err != nil || r == nil {
		return nil, err
	}
	t := &threadState{no: r.int(0), agent: r.int(1), label: r.text(2), version: r.int(3), head: r.int(4), hidden: r.int(5),
		first: r[6], last: r[7], messages: r.int(8), bytes: r.int(9), turn: r.blob(10), summary: r.int(11), lease: r.int(12),
		until: r[13], holder: r.text(14), data: r.text(15), name: name{r.text(16), r.text(17)}}
	t.oldHead, t.oldLabel = t.head, t.label
	w.threads = append(w.threads, t)
	return t, nil
}

// needThread is thread for rows that can't be without one.
func (w *work) needThread(of name, what string) (*threadState, error) {
	t, err := w.thread(of)
	if err == nil && t == nil {
		err = memgpt.Errorf(memgpt.CodeNotFound, "store %s: there is no conversation %q", what, of.id)
	}
	return t, err
}

func (w *work) newThread(of name, agent int64, label string) (*threadState, error) {
	no, err := w.c.insert(sqlThreadNew, agent, of.tenant, of.id, label)
	if err != nil {
		return nil, err
	}
	if no >= 1<<31-1 {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "the store holds as many conversations as it can")
	}
	t := &threadState{name: of, no: no, agent: agent, label: label, oldLabel: label, listed: true}
	w.threads = append(w.threads, t)
	return t, nil
}

func (t *threadState) save(c *conn) error {
	var holder, turn any
	if t.holder != "" {
		holder = t.holder
	}
	if len(t.turn) > 0 {
		turn = t.turn
	}
	if t.label != t.oldLabel {
		if _, err := c.exec(sqlThreadName, t.label, t.no); err != nil {
			return taken(err, "the agent has a conversation named %q already", t.label)
		}
	}
	_, err := c.exec(sqlThreadSet, t.version, t.head, t.hidden, t.first, t.last, t.messages, t.bytes, turn, t.summary,
		t.lease, t.until, holder, t.data, t.no)
	return err
}

const sqlHidden = `SELECT count(*), min(CASE WHEN typeof(time) = 'integer' THEN time END),
	max(CASE WHEN typeof(time) = 'integer' THEN time END) FROM entries WHERE no > ? AND no <= ?`

// countHidden brings the count of the entries up to the head and their times up to date. In the usual case, a head that
// moved on, only the entries that it passed are looked at.
func (t *threadState) countHidden(c *conn) error {
	if t.head == t.oldHead && !t.recount {
		return nil
	}
	from := t.oldHead
	if t.recount || t.head < t.oldHead {
		from, t.hidden, t.first, t.last = 0, 0, nil, nil
	}
	r, err := c.one(sqlHidden, rowNo(t.no, from), rowNo(t.no, min(t.head, maxPos)))
	if err != nil {
		return err
	}
	t.hidden += r.int(0)
	if first, ok := r[1].(int64); ok && (t.first == nil || first < t.first.(int64)) {
		t.first = first
	}
	if last, ok := r[2].(int64); ok && (t.last == nil || last > t.last.(int64)) {
		t.last = last
	}
	return nil
}

// flush writes the working copies that changed.
func (w *work) flush() error {
	for _, t := range w.threads {
		if !t.changed {
			continue
		}
		if err := t.countHidden(w.c); err != nil {
			return err
		}
		if err := t.save(w.c); err != nil {
			return err
		}
	}
	for _, o := range w.owners {
		if !o.changed {
			continue
		}
		if _, err := w.c.exec(sqlOwnerSet, o.passages, o.passageBytes, o.no); err != nil {
			return err
		}
	}
	return nil
}

// publish makes known what a commit made, once it is durable. The writer's token is held.
func (w *work) publish() {
	for _, o := range w.owners {
		if _, known := w.s.names.owner(o.name); !known {
			w.s.names.addOwner(o.name, o.no)
		}
		if o.docs-o.merged >= w.s.mergeThreshold(o.docs) {
			w.s.merges.want(o.no)
		}
		if w.s.touched != nil {
			w.s.touched[o.no] = true
		}
	}
	if w.dropped {
		w.s.touched = nil
		w.s.merges.signal()
	}
	for _, t := range w.threads {
		if _, known := w.s.names.thread(t.name); !known {
			w.s.names.addThread(t.name, threadName{t.no, t.agent})
		}
	}
	for _, e := range w.events {
		w.s.hints.set(e.id, e.no)
	}
}
