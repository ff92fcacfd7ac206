package sqlite

import (
	"time"

	"memgpt"
	"memgpt/store"
)

// keyLife is how long the key of a consumed event is known (memgpt.Event.Key).
const keyLife = 24 * time.Hour

const (
	sqlEventEnds = `SELECT * FROM (SELECT no, ord FROM events WHERE no BETWEEN ?1 AND ?2 ORDER BY no DESC LIMIT 1)
		UNION ALL SELECT * FROM (SELECT -no, ord FROM events WHERE no BETWEEN -?2 AND -?1 ORDER BY no LIMIT 1)`
	sqlEventNew   = "INSERT INTO events (no, thread, id, ord, due, key, data) VALUES (?, ?, ?, ?, ?, ?, ?)"
	sqlEventSet   = "UPDATE events SET due = ?, key = ?, data = ? WHERE no = ?"
	sqlEventDel   = "DELETE FROM events WHERE no = ?"
	sqlEventFind  = "SELECT no, thread, key, data FROM events WHERE no = ? AND id = ?"
	sqlEventIn    = "SELECT no, thread, key, data FROM events WHERE (no BETWEEN ?1 AND ?2 OR no BETWEEN -?2 AND -?1) AND id = ?3"
	sqlEventAny   = "SELECT no, thread, key, data FROM events WHERE id = ?1 AND (?2 IS NULL OR (SELECT tenant FROM threads WHERE threads.no = events.thread) = ?2)"
	sqlEventKeyed = "SELECT id, data FROM events WHERE thread = ? AND key = ?"
	sqlUsedGet    = "SELECT id, turn, time FROM consumed WHERE thread = ? AND key = ?"
	sqlUsedSet    = "REPLACE INTO consumed (thread, key, id, turn, time) VALUES (?, ?, ?, ?, ?)"
	sqlUsedPrune  = "DELETE FROM consumed WHERE no IN (SELECT no FROM consumed ORDER BY no LIMIT 4) AND time < ?"
)

func (w *work) applyEvents(c *store.Commit, x *coded) error {
	for i := range c.Events {
		e := &c.Events[i]
		t, err := w.needThread(name{e.Tenant, e.Thread}, "event "+e.ID)
		if err != nil {
			return err
		}
		at, err := w.findEvent(t, e.ID)
		if err != nil {
			return err
		}
		if at == nil {
			err = w.newEvent(t, e, x.events[i])
		} else {
			err = w.setEvent(at.int(0), e, x.events[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findEvent finds a pending event of a thread.
func (w *work) findEvent(t *threadState, id string) (row, error) {
	packed := packID(id)
	if no, ok := w.s.hints.get(id); ok && (no>>posBits == t.no || -no>>posBits == t.no) {
		if r, err := w.c.one(sqlEventFind, no, packed); err != nil || r != nil {
			return r, err
		}
	}
	lo := rowNo(t.no, 0)
	return w.c.one(sqlEventIn, lo, lo|maxPos, packed)
}

func (w *work) setEvent(no int64, e *memgpt.Event, data string) error {
	_, err := w.c.exec(sqlEventSet, w.due(e), keyValue(e.Key), data, no)
	return taken(err, "store event %s: the conversation has an event with key %q", e.ID, e.Key)
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
	pos, order, err := w.nextEvent(t)
	if err != nil {
		return err
	}
	no, due := rowNo(t.no, pos), w.due(e)
	if now, ok := timeValue(w.now).(int64); ok && due > now {
		no = -no
	}
	w.events = append(w.events, eventHint{e.ID, no})
	_, err = w.c.exec(sqlEventNew, no, t.no, packID(e.ID), order, due, keyValue(e.Key), data)
	return err
}

// nextEvent gives the position of a new event in its thread and its place in the order of acceptance. The order is the
// time of acceptance in microseconds, moved on where it must be to grow in each thread and in this process: a counter in
// the file would cost every acceptance another page.
func (w *work) nextEvent(t *threadState) (pos, order int64, err error) {
	lo := rowNo(t.no, 0)
	order = max(w.now.UnixMicro(), w.s.order+1)
	err = w.c.each(func(r row) error {
		pos, order = max(pos, posOf(r.int(0))), max(order, r.int(1)+1)
		return nil
	}, sqlEventEnds, lo, lo|maxPos)
	w.s.order = order
	return pos + 1, order, err
}

// knownKey reports the earlier event with the key, pending or consumed within the last day.
func (w *work) knownKey(t *threadState, e *memgpt.Event) (bool, error) {
	earlier := memgpt.Event{Tenant: e.Tenant, Agent: e.Agent, Thread: e.Thread, Key: e.Key}
	r, err := w.c.one(sqlEventKeyed, t.no, e.Key)
	if err != nil {
		return false, err
	}
	if r != nil {
		var data eventRow
		if err := decode(r.text(1), &data, "event"); err != nil {
			return false, err
		}
		known := memgpt.Event(data)
		known.ID, known.Tenant, known.Agent = unpackID(r.blob(0)), earlier.Tenant, earlier.Agent
		known.Thread, known.Key = earlier.Thread, earlier.Key
		w.out.Duplicate = append(w.out.Duplicate, known)
		return true, nil
	}
	r, err = w.c.one(sqlUsedGet, t.no, e.Key)
	if err != nil || r == nil || w.now.Sub(r.time(2)) >= keyLife {
		return false, err
	}
	earlier.ID, earlier.Turn = unpackID(r.blob(0)), unpackID(r.blob(1))
	w.out.Duplicate = append(w.out.Duplicate, earlier)
	return true, nil
}

func (w *work) applyConsume(c *store.Commit, _ *coded) error {
	for _, id := range c.Consume {
		r, err := w.findPending(c, id)
		if err != nil {
			return err
		}
		if r == nil {
			continue // someone else was done with it
		}
		if err := w.consume(id, r); err != nil {
			return err
		}
	}
	return nil
}

// findPending finds an event of which only the id is known: where it was last seen, in the thread that the commit is
// about, and only then among all.
func (w *work) findPending(c *store.Commit, id string) (row, error) {
	for _, l := range []*memgpt.Lease{c.Lease, c.Acquire} {
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
		if r, err := w.findEvent(t, id); err != nil || r != nil {
			return r, err
		}
	}
	var tenant any
	if t, ok := tenantOf(c); ok {
		tenant = t
	}
	return w.c.one(sqlEventAny, packID(id), tenant)
}

func (w *work) consume(id string, r row) error {
	w.s.hints.drop(id)
	no, thread, key := r.int(0), r.int(1), r.text(2)
	var data eventRow
	if key != "" {
		if err := decode(r.text(3), &data, "event"); err != nil {
			return err
		}
	}
	if _, err := w.c.exec(sqlEventDel, no); err != nil || key == "" {
		return err
	}
	if _, err := w.c.exec(sqlUsedSet, thread, key, packID(id), packID(data.Turn), w.now.UnixNano()); err != nil {
		return err
	}
	_, err := w.c.exec(sqlUsedPrune, w.now.Add(-keyLife).UnixNano())
	return err
}
