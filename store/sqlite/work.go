package sqlite

import (
	"time"

	"memgpt"
	"memgpt/store"
)

// work is one commit as it is applied: the working copies of the rows of owners and threads that it touches, which are
// written once, at its end.
type work struct {
	s       *Store
	c       *conn
	now     time.Time
	owners  []*ownerState
	threads []*threadState
	docs    []newDoc    // those whose ids are still to be entered
	events  []eventHint // new ones
	out     store.Committed
}

// ownerState is the part of an owner's row that commits change.
type ownerState struct {
	name name
	no   int64

	messages, messageBytes, passages, passageBytes int64
	docs, live, length, forwardBytes, deaths       int64
	merged                                         int64
	changed                                        bool
}

// threadState is a thread's row.
type threadState struct {
	name  name
	no    int64
	agent int64

	label    string // its Name
	version  int64
	head     int64
	hidden   int64
	first    any // time
	last     any // time
	messages int64
	summary  int64
	lease    int64
	until    any // time
	holder   string
	data     string

	oldHead int64
	recount bool // hidden must be counted anew
	changed bool
}

const (
	sqlOwnerGet = `SELECT messages, message_bytes, passages, passage_bytes, docs, live, length, forward_bytes, deaths, merged
		FROM owners WHERE no = ?`
	sqlOwnerNew = "INSERT INTO owners (tenant, id) VALUES (?, ?)"
	sqlOwnerSet = `UPDATE owners SET messages = ?, message_bytes = ?, passages = ?, passage_bytes = ?, docs = ?, live = ?,
		length = ?, forward_bytes = ?, deaths = ? WHERE no = ?`
	sqlThreadGet = `SELECT no, agent, name, version, head, hidden, first, last, messages, summary, lease, lease_until,
		lease_holder, data FROM threads WHERE tenant = ? AND id = ?`
	sqlThreadNew = `INSERT INTO threads (agent, tenant, id, name, version, head, data) VALUES (?, ?, ?, ?, 0, 0, '')`
	sqlThreadSet = `UPDATE threads SET name = ?, version = ?, head = ?, hidden = ?, first = ?, last = ?, messages = ?,
		summary = ?, lease = ?, lease_until = ?, lease_holder = ?, data = ? WHERE no = ?`
	sqlThreadAt = `SELECT no, agent, name, version, head, hidden, first, last, messages, summary, lease, lease_until,
		lease_holder, data FROM threads WHERE no = ?`
)

// owner returns the working copy of an owner's row, which is made if there is none.
func (w *work) owner(of name) (*ownerState, error) {
	for _, o := range w.owners {
		if o.name == of {
			return o, nil
		}
	}
	no, err := w.s.committedOwner(w, of)
	if err != nil {
		return nil, err
	}
	o := &ownerState{name: of, no: no}
	if no == 0 {
		if o.no, err = w.c.insert(sqlOwnerNew, of.tenant, of.id); err != nil {
			return nil, err
		}
	} else if err := o.load(w.c); err != nil {
		return nil, err
	}
	w.owners = append(w.owners, o)
	return o, nil
}

// committedOwner is ownerNo without remembering: what is read inside of a transaction may be undone.
func (s *Store) committedOwner(w *work, of name) (int64, error) {
	if no, ok := s.names.owner(of); ok {
		return no, nil
	}
	r, err := w.c.one(sqlOwnerNo, of.tenant, of.id)
	if err != nil || r == nil {
		return 0, err
	}
	return r.int(0), nil
}

func (o *ownerState) load(c *conn) error {
	r, err := c.one(sqlOwnerGet, o.no)
	if err != nil || r == nil {
		return err
	}
	o.messages, o.messageBytes, o.passages, o.passageBytes = r.int(0), r.int(1), r.int(2), r.int(3)
	o.docs, o.live, o.length, o.forwardBytes, o.deaths, o.merged = r.int(4), r.int(5), r.int(6), r.int(7), r.int(8), r.int(9)
	return nil
}

func (o *ownerState) save(c *conn) error {
	_, err := c.exec(sqlOwnerSet, o.messages, o.messageBytes, o.passages, o.passageBytes, o.docs, o.live, o.length,
		o.forwardBytes, o.deaths, o.no)
	return err
}

// thread returns the working copy of a thread's row, nil when there is none.
func (w *work) thread(of name) (*threadState, error) {
	for _, t := range w.threads {
		if t.name == of {
			return t, nil
		}
	}
	r, err := w.threadRow(of)
	if err != nil || r == nil {
		return nil, err
	}
	t := &threadState{name: of, no: r.int(0), agent: r.int(1), label: r.text(2), version: r.int(3), head: r.int(4),
		hidden: r.int(5), first: r[6], last: r[7], messages: r.int(8), summary: r.int(9), lease: r.int(10), until: r[11],
		holder: r.text(12), data: r.text(13)}
	t.oldHead = t.head
	w.threads = append(w.threads, t)
	return t, nil
}

func (w *work) threadRow(of name) (row, error) {
	if t, ok := w.s.names.thread(of); ok {
		return w.c.one(sqlThreadAt, t.no)
	}
	return w.c.one(sqlThreadGet, of.tenant, of.id)
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
	t := &threadState{name: of, no: no, agent: agent, label: label}
	w.threads = append(w.threads, t)
	return t, nil
}

func (t *threadState) save(c *conn) error {
	var holder any
	if t.holder != "" {
		holder = t.holder
	}
	_, err := c.exec(sqlThreadSet, t.label, t.version, t.head, t.hidden, t.first, t.last, t.messages, t.summary, t.lease,
		t.until, holder, t.data, t.no)
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
			return taken(err, "conversation name %q is taken", t.label)
		}
	}
	for _, o := range w.owners {
		if !o.changed {
			continue
		}
		if err := o.save(w.c); err != nil {
			return err
		}
	}
	return nil
}

// publish makes known what a commit made, once it is durable.
func (w *work) publish() {
	for _, o := range w.owners {
		if _, known := w.s.names.owner(o.name); !known {
			w.s.names.addOwner(o.name, o.no)
		}
		if o.docs-o.merged >= w.s.mergeThreshold(o.docs) {
			w.s.merges.want(o.no)
		}
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
