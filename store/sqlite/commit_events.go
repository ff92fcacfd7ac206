package sqlite

import (
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

// keyLife is how long the key of a consumed event is known (memgpt.Event.Key).
const keyLife = 24 * time.Hour

const (
	sqlEventEnds = `SELECT * FROM (SELECT no, ord FROM events WHERE no BETWEEN ?1 AND ?2 ORDER BY no DESC LIMIT 1)
		UNION ALL SELECT * FROM (SELECT no, ord FROM events WHERE no BETWEEN -?2 AND -?1 ORDER BY no LIMIT 1)`
	sqlEventNew   = "INSERT INTO events (no, thread, id, ord, due, key, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
	sqlEventSet   = "UPDATE events SET ord = ?, due = ?, key = ?, data = ? WHERE no = ?"
	sqlEventDel   = "DELETE FROM events WHERE no = ?"
	sqlEventCols  = "SELECT no, id, ord, due, key, CASE WHEN key IS NULL THEN NULL ELSE data END FROM events WHERE "
	sqlEventList  = sqlEventCols + "no BETWEEN ?1 AND ?2 OR no BETWEEN -?2 AND -?1 LIMIT ?3"
	sqlEventIn    = sqlEventCols + "(no BETWEEN ?1 AND ?2 OR no BETWEEN -?2 AND -?1) AND id = ?3"
	sqlEventAt    = sqlEventCols + "no = ? AND id = ?"
	sqlEventAny   = sqlEventCols + "id = ?1 AND (?2 IS NULL OR (SELECT tenant FROM threads WHERE threads.no = events.thread) = ?2)"
	sqlEventKeyed = "SELECT no, id, ord, key, data FROM events WHERE thread = ? AND key = ?"
	sqlUsedGet    = "SELECT id, turn, time FROM consumed WHERE thread = ? AND key = ?"
	sqlUsedSet    = "REPLACE INTO consumed (thread, key, id, turn, time) VALUES (?, ?, ?, ?, ?)"
	sqlUsedPrune  = "DELETE FROM consumed WHERE no IN (SELECT no FROM consumed ORDER BY no LIMIT 4) AND time < ?"
)

func pendingOf(r row) (pendingEvent, error) {
	p := pendingEvent{no: r.int(0), id: unpackID(r.blob(1)), order: r.int(2), due: r.int(3), key: r.text(4)}
	if r[5] == nil {
		return p, nil
	}
	e, err := decodeEvent(r.text(5))
	p.turn = e.Turn
	return p, err
}

// list reads a thread's pending events, if they are few.
func (w *work) list(t *threadState) error {
	if t.listed {
		return nil
	}
	var list []pendingEvent
	lo := rowNo(t.no, 0)
	err := w.c.each(func(r row) error {
		p, err := pendingOf(r)
		list = append(list, p)
		return err
	}, sqlEventList, lo, lo|maxPos, maxPending+1)
	if err == nil && len(list) <= maxPending {
		t.pending, t.listed = list, true
	}
	return err
}

// put notes a new or changed event in the list, or that one is gone; a list that grows too long is given up.
func (t *threadState) put(p pendingEvent, gone bool) {
	if !t.listed {
		return
	}
	list := slices.DeleteFunc(slices.Clone(t.pending), func(other pendingEvent) bool { return other.no == p.no })
	if !gone {
		list = append(list, p)
	}
	t.pending, t.listed = list, len(list) <= maxPending
	if !t.listed {
		t.pending = nil
	}
}

// find finds a pending event of a thread by its id; a nil one is none.
func (w *work) find(t *threadState, id string) (*pendingEvent, error) {
	if err := w.list(t); err != nil {
		return nil, err
	}
	if t.listed {
		for i := range t.pending {
			if t.pending[i].id == id {
				return &t.pending[i], nil
			}
		}
		return nil, nil
	}
	if no, ok := w.s.hints.get(id); ok {
		if p, err := w.first(sqlEventAt, no, packID(id)); err != nil || p != nil && threadOfEvent(p.no) == t.no {
			return p, err
		}
	}
	lo := rowNo(t.no, 0)
	return w.first(sqlEventIn, lo, lo|maxPos, packID(id))
}

func threadOfEvent(no int64) int64 { return max(no, -no) >> posBits }

func (w *work) first(query string, args ...any) (*pendingEvent, error) {
	r, err := w.c.one(query, args...)
	if err != nil || r == nil {
		return nil, err
	}
	p, err := pendingOf(r)
	return &p, err
}

func (w *work) applyEvents(c *store.Commit, x *coded) error {
	for i := range c.Events {
		e := &c.Events[i]
		t, err := w.needThread(name{e.Tenant, e.Thread}, "event "+e.ID)
		if err != nil {
			return err
		}
		at, err := w.find(t, e.ID)
		if err != nil {
			return err
		}
		if at == nil {
			err = w.newEvent(t, e, x.events[i])
		} else {
			err = w.setEvent(t, *at, e, x.events[i])
		}
		if err != nil {
			return taken(err, "store event %s: the conversation has an event with key %q", e.ID, e.Key)
		}
	}
	return nil
}

func (w *work) setEvent(t *threadState, p pendingEvent, e *memgpt.Event, data string) error {
	p.key, p.turn, p.due, p.order = e.Key, e.Turn, w.due(e), orderOf(e, arrivalOf(p.order))
	t.put(p, false)
	_, err := w.c.exec(sqlEventSet, p.order, p.due, keyValue(e.Key), data, p.no)
	return err
}

func keyValue(key string) any {
	if key == "" {
		return nil
	}
	return key
}

// due returns when an event is due: at once if it doesn't say.
func (w *work) due(e *memgpt.Event) int64 {
	if n, ok := timeValue(e.Due).(int64); ok {
		return n
	}
	if e.Due.After(maxTime) {
		return maxTime.UnixNano()
	}
	n, _ := timeValue(w.now).(int64)
	return n
}

func (w *work) newEvent(t *threadState, e *memgpt.Event, data string) error {
	if e.Key != "" {
		known, err := w.knownKey(t, e)
		if err != nil || known {
			return err
		}
	}
	pos, arrival, err := w.nextEvent(t)
	if err != nil {
		return err
	}
	no, due, order := rowNo(t.no, pos), w.due(e), orderOf(e, arrival)
	if now, ok := timeValue(w.now).(int64); ok && due > now {
		no = -no
	}
	w.events = append(w.events, eventHint{e.ID, no})
	t.put(pendingEvent{id: e.ID, turn: e.Turn, key: e.Key, no: no, order: order, due: due}, false)
	_, err = w.c.exec(sqlEventNew, no, t.no, packID(e.ID), order, due, keyValue(e.Key), data)
	return err
}

// arrivalBits is how many bits of an event's ord say when it arrived; those above are its class, so that ord is its
// place in the inbox.
const arrivalBits = 56

func orderOf(e *memgpt.Event, arrival int64) int64 { return store.Class(e)<<arrivalBits | arrival }

func arrivalOf(order int64) int64 { return order & (1<<arrivalBits - 1) }

// nextEvent gives the position of a new event in its thread and its arrival: the time of acceptance in microseconds, moved
// on where it must be to grow in each thread and in this process: a counter in the file would cost every acceptance
// another page.
func (w *work) nextEvent(t *threadState) (pos, arrival int64, err error) {
	arrival = max(min(w.now.UnixMicro(), 1<<(arrivalBits-1)), w.s.arrival+1)
	later := func(no, ord int64) {
		pos, arrival = max(pos, posOf(max(no, -no))), max(arrival, arrivalOf(ord)+1)
	}
	if t.listed {
		for _, p := range t.pending {
			later(p.no, p.order)
		}
	} else {
		lo := rowNo(t.no, 0)
		err = w.c.each(func(r row) error { later(r.int(0), r.int(1)); return nil }, sqlEventEnds, lo, lo|maxPos)
	}
	w.s.arrival = arrival
	return pos + 1, arrival, err
}

// knownKey reports the earlier event with the key, pending or consumed within the last day.
func (w *work) knownKey(t *threadState, e *memgpt.Event) (bool, error) {
	r, err := w.c.one(sqlEventKeyed, t.no, e.Key)
	if err != nil {
		return false, err
	}
	if r != nil {
		known, err := decodeEvent(r.text(4))
		if err != nil {
			return false, err
		}
		known.ID, known.Order, known.Key = unpackID(r.blob(1)), r.int(2), e.Key
		known.Tenant, known.Agent, known.Thread = e.Tenant, e.Agent, e.Thread
		w.out.Duplicate = append(w.out.Duplicate, known)
		return true, nil
	}
	r, err = w.c.one(sqlUsedGet, t.no, e.Key)
	if err != nil || r == nil || w.now.Sub(r.time(2)) >= keyLife {
		return false, err
	}
	w.out.Duplicate = append(w.out.Duplicate, memgpt.Event{Tenant: e.Tenant, Agent: e.Agent, Thread: e.Thread, Key: e.Key,
		ID: unpackID(r.blob(0)), Turn: unpackID(r.blob(1))})
	return true, nil
}

// applyPending counts the due events of the thread under whose lease the commit is.
func (w *work) applyPending(c *store.Commit, _ *coded) error {
	l := c.Lease
	if w.out.Lease != nil {
		l = w.out.Lease
	}
	if l == nil || c.Release {
		return nil
	}
	t, err := w.thread(name{l.Tenant, l.Thread})
	if err != nil || t == nil {
		return err
	}
	if err := w.list(t); err != nil {
		return err
	}
	now, ok := timeValue(w.now).(int64)
	if !t.listed || !ok {
		lo := rowNo(t.no, 0)
		r, err := w.c.one(sqlPending, lo, lo|maxPos, -(lo | maxPos), -lo, w.now)
		if err == nil && r != nil {
			w.out.Pending = int(r.int(0))
		}
		return err
	}
	for i := range t.pending {
		if t.pending[i].due <= now {
			w.out.Pending++
		}
	}
	return nil
}

const sqlPending = "SELECT count(*) FROM events WHERE (no BETWEEN ? AND ? OR no BETWEEN ? AND ?) AND due <= ?"

func (w *work) applyConsume(c *store.Commit, _ *coded) error {
	for _, id := range c.Consume {
		p, err := w.findPending(c, id)
		if err != nil {
			return err
		}
		if p == nil {
			continue // someone else was done with it
		}
		if err := w.consume(p); err != nil {
			return err
		}
	}
	return nil
}

// findPending finds an event of which only the id is known: in the thread that the commit is about, and only then among
// all.
func (w *work) findPending(c *store.Commit, id string) (*pendingEvent, error) {
	for _, l := range []*store.Lease{c.Lease, c.Acquire} {
		if l == nil {
			continue
		}
		t, err := w.thread(name{l.Tenant, l.Thread})
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		if p, err := w.find(t, id); err != nil || p != nil {
			return p, err
		}
	}
	tenant, known := tenantOf(c)
	if no, ok := w.s.hints.get(id); ok {
		t, err := w.threadAt(threadOfEvent(no))
		if err != nil {
			return nil, err
		}
		if t != nil && (!known || t.name.tenant == tenant) {
			if p, err := w.first(sqlEventAt, no, packID(id)); err != nil || p != nil {
				return p, err
			}
		}
	}
	var of any
	if known {
		of = tenant
	}
	return w.first(sqlEventAny, packID(id), of)
}

func (w *work) consume(p *pendingEvent) error {
	t, err := w.threadAt(threadOfEvent(p.no))
	if err != nil {
		return err
	}
	gone := *p
	t.put(gone, true)
	w.s.hints.drop(gone.id)
	if _, err := w.c.exec(sqlEventDel, gone.no); err != nil || gone.key == "" {
		return err
	}
	if _, err := w.c.exec(sqlUsedSet, t.no, gone.key, packID(gone.id), packID(gone.turn), w.now.UnixNano()); err != nil {
		return err
	}
	_, err = w.c.exec(sqlUsedPrune, w.now.Add(-keyLife).UnixNano())
	return err
}
