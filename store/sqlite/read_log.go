package sqlite

import (
	"context"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
)

const (
	sqlEntryCols = "SELECT no, id, turn, step, time, key, message FROM entries WHERE "
	sqlEntryAsc  = sqlEntryCols + "no BETWEEN ? AND ? ORDER BY no LIMIT ?"
	sqlEntryDesc = sqlEntryCols + "no BETWEEN ? AND ? ORDER BY no DESC LIMIT ?"
	sqlEntryAt   = sqlEntryCols + "no = ?"
	sqlThreadID  = "SELECT id FROM threads WHERE no = ?"
	sqlOwnerID   = "SELECT id FROM owners WHERE no = ?"
	sqlEntryKey  = "SELECT 1 FROM entry_keys WHERE owner = ? AND key = ?"
)

func entryOf(r row, tenant, agent, thread string) (memgpt.Entry, error) {
	e := memgpt.Entry{ID: unpackID(r.blob(1)), Tenant: tenant, Agent: agent, Thread: thread, Seq: posOf(r.int(0)),
		Turn: unpackID(r.blob(2)), Step: int(r.int(3)), Time: r.time(4), Key: r.text(5)}
	return e, decode(r.text(6), &e.Message, "entry")
}

// limitOf turns 0 into no limit.
func limitOf(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

// Entries implements store.Store.
func (s *Store) Entries(ctx context.Context, q store.EntryRange) (list []memgpt.Entry, err error) {
	err = s.read(ctx, "entries of conversation "+q.Thread, func(c *conn) error {
		t, err := s.threadNo(c, name{q.Tenant, q.Thread})
		if err != nil || t.no == 0 {
			return err
		}
		agent, err := c.one(sqlOwnerID, t.agent)
		if err != nil {
			return err
		}
		first, last := positions(q.After, q.Before)
		if first > last {
			return nil
		}
		query := sqlEntryAsc
		if q.Last {
			query = sqlEntryDesc
		}
		owner := agent.text(0)
		return c.each(func(r row) error {
			e, err := entryOf(r, q.Tenant, owner, q.Thread)
			list = append(list, e)
			return err
		}, query, rowNo(t.no, first), rowNo(t.no, last), limitOf(q.Limit))
	})
	if q.Last {
		reverse(list)
	}
	return append([]memgpt.Entry(nil), list...), err // of just that size: a conversation keeps it for as long as it waits
}

// positions returns the first and the last position between two that are not meant, of which before may be open.
func positions(after, before int64) (first, last int64) {
	if before <= 0 || before > maxPos {
		before = maxPos + 1
	}
	return min(max(after, 0), maxPos) + 1, before - 1
}

func reverse[T any](list []T) {
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
}

// byID calls f with the row of ids of each of an owner's ids that is there.
func (s *Store) byID(c *conn, of name, ids []string, f func(owner int64, id string, r row) error) error {
	no, err := s.ownerNo(c, of)
	if err != nil || no == 0 {
		return err
	}
	for _, id := range ids {
		r, err := c.one(sqlIDGet, no, packID(id))
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		if err := f(no, id, r); err != nil {
			return err
		}
	}
	return nil
}

// EntriesByID implements store.Store.
func (s *Store) EntriesByID(ctx context.Context, tenant, agent string, ids []string) (list []memgpt.Entry, err error) {
	threads := map[int64]string{}
	err = s.snapshot(ctx, "entries of "+agent, func(c *conn) error {
		return s.byID(c, name{tenant, agent}, ids, func(_ int64, _ string, at row) error {
			if at[0] == nil {
				return nil
			}
			thread := at.int(0) >> posBits
			if _, ok := threads[thread]; !ok {
				r, err := c.one(sqlThreadID, thread)
				if err != nil {
					return err
				}
				threads[thread] = r.text(0)
			}
			r, err := c.one(sqlEntryAt, at.int(0))
			if err != nil || r == nil {
				return err
			}
			e, err := entryOf(r, tenant, agent, threads[thread])
			list = append(list, e)
			return err
		})
	})
	return list, err
}

// EntryKeys implements store.Store.
func (s *Store) EntryKeys(ctx context.Context, tenant, agent string, keys []string) (map[string]bool, error) {
	found := map[string]bool{}
	err := s.snapshot(ctx, "keys of entries of "+agent, func(c *conn) error {
		no, err := s.ownerNo(c, name{tenant, agent})
		if err != nil || no == 0 {
			return err
		}
		for _, key := range keys {
			r, err := c.one(sqlEntryKey, no, key)
			if err != nil {
				return err
			}
			if r != nil {
				found[key] = true
			}
		}
		return nil
	})
	return found, err
}

const sqlEventFull = `SELECT e.no, e.id, e.ord, e.key, e.data, t.tenant, t.id, o.id
	FROM events e CROSS JOIN threads t ON t.no = e.thread CROSS JOIN owners o ON o.no = t.agent WHERE `

func eventOf(r row) (memgpt.Event, error) {
	e, err := decodeEvent(r.text(4))
	if err != nil {
		return e, err
	}
	e.ID, e.Order, e.Key, e.Tenant, e.Thread, e.Agent = unpackID(r.blob(1)), r.int(2), r.text(3), r.text(5), r.text(6), r.text(7)
	return e, nil
}

// eventQuery builds the statement for a range. There are few different ones.
func (s *Store) eventQuery(c *conn, q store.EventRange) (string, []any, error) {
	where := []string{"1"}
	var args []any
	add := func(cond string, values ...any) {
		where = append(where, cond)
		args = append(args, values...)
	}
	switch {
	case q.Thread != "" && !q.AllTenants:
		t, err := s.threadNo(c, name{q.Tenant, q.Thread})
		if err != nil {
			return "", nil, err
		}
		lo := rowNo(t.no, 0)
		add("(e.no BETWEEN ? AND ? OR e.no BETWEEN ? AND ?)", lo, lo|maxPos, -(lo | maxPos), -lo)
	case q.Thread != "":
		add("t.id = ?", q.Thread)
	}
	if !q.AllTenants {
		add("t.tenant = ?", q.Tenant)
	}
	if q.Agent != "" {
		add("o.id = ?", q.Agent)
	}
	if q.Key != "" {
		add("e.key = ?", q.Key)
	}
	if !q.Until.IsZero() {
		// What was due when it came has a positive number; the index knows when the others are.
		add("(e.no > 0 AND e.due <= ? OR e.no < 0 AND e.due <= ?)", q.Until, q.Until)
	}
	args = append(args, limitOf(q.Limit))
	return sqlEventFull + strings.Join(where, " AND ") + " ORDER BY e.ord, e.no LIMIT ?", args, nil
}

// Events implements store.Store.
func (s *Store) Events(ctx context.Context, q store.EventRange) (list []memgpt.Event, err error) {
	err = s.read(ctx, "events", func(c *conn) error {
		query, args, err := s.eventQuery(c, q)
		if err != nil {
			return err
		}
		return c.each(func(r row) error {
			e, err := eventOf(r)
			list = append(list, e)
			s.hints.set(e.ID, r.int(0))
			return err
		}, query, args...)
	})
	return list, err
}

const sqlNextDue = "SELECT min(due) FROM (SELECT min(due) AS due FROM events WHERE no > 0 UNION ALL SELECT min(due) FROM events WHERE no < 0)"

// NextDue implements store.Store.
func (s *Store) NextDue(ctx context.Context) (due time.Time, err error) {
	err = s.read(ctx, "the next event's time", func(c *conn) error {
		r, err := c.one(sqlNextDue)
		if err == nil && r != nil {
			due = r.time(0)
		}
		return err
	})
	return due, err
}

const (
	sqlTurnByID = `SELECT r.id, r.data, t.id, o.id FROM turns r JOIN threads t ON t.no = r.thread JOIN owners o ON o.no = t.agent
		WHERE r.tenant = ? AND r.id = ?`
	sqlTurnLast = "SELECT t.turn, o.id FROM threads t JOIN owners o ON o.no = t.agent WHERE t.tenant = ? AND t.id = ?"
	sqlTurnPrev = "SELECT id, data, prev FROM turns WHERE tenant = ? AND id = ?"
)

func turnOf(r row, tenant string) (memgpt.Turn, error) {
	var data turnRow
	if err := decode(r.text(1), &data, "turn"); err != nil {
		return memgpt.Turn{}, err
	}
	t := memgpt.Turn(data)
	t.ID, t.Tenant, t.Thread, t.Agent = unpackID(r.blob(0)), tenant, r.text(2), r.text(3)
	return t, nil
}

// Turn implements store.Store.
func (s *Store) Turn(ctx context.Context, tenant, id string) (t memgpt.Turn, err error) {
	err = s.read(ctx, "turn "+id, func(c *conn) error {
		r, err := c.one(sqlTurnByID, tenant, packID(id))
		if err != nil {
			return err
		}
		if r == nil {
			return notFound("turn", id)
		}
		t, err = turnOf(r, tenant)
		return err
	})
	return t, err
}

// Turns implements store.Store.
func (s *Store) Turns(ctx context.Context, tenant, thread string, limit int) (list []memgpt.Turn, err error) {
	err = s.snapshot(ctx, "turns of conversation "+thread, func(c *conn) error {
		last, err := c.one(sqlTurnLast, tenant, thread)
		if err != nil || last == nil {
			return err
		}
		agent := last.text(1)
		for id := last.blob(0); id != nil && (limit <= 0 || len(list) < limit); {
			r, err := c.one(sqlTurnPrev, tenant, id)
			if err != nil || r == nil {
				return err
			}
			turn, err := turnOf(row{r[0], r[1], thread, agent}, tenant)
			if err != nil {
				return err
			}
			list = append(list, turn)
			id = r.blob(2)
		}
		return ctx.Err()
	})
	return list, err
}

const (
	sqlThreadOut = "SELECT agent, hidden, first, last, messages FROM threads WHERE tenant = ? AND id = ?"
	sqlOwnerOut  = "SELECT passages, (SELECT sum(messages) FROM threads WHERE agent = owners.no) FROM owners WHERE no = ?"
	sqlSources   = "SELECT source FROM sources WHERE owner = ? AND passages > 0 ORDER BY source"
	sqlSizes     = `SELECT (SELECT sum(messages) FROM threads WHERE agent = o.no), (SELECT sum(bytes) FROM threads WHERE agent = o.no),
		o.passages, o.passage_bytes, d.no, d.sum_bytes, o.blocks, o.block_bytes FROM owners o
		LEFT JOIN docs d ON d.no = (SELECT max(no) FROM docs WHERE no BETWEEN o.no << 32 AND o.no << 32 | 0xffffffff) WHERE o.no = ?`
)

// Outside implements store.Store. It reads counters only.
func (s *Store) Outside(ctx context.Context, tenant, agent, thread string) (out memgpt.Outside, err error) {
	err = s.snapshot(ctx, "what is out of context", func(c *conn) error {
		no, err := s.ownerNo(c, name{tenant, agent})
		if err != nil {
			return err
		}
		t, err := c.one(sqlThreadOut, tenant, thread)
		if err != nil {
			return err
		}
		if t == nil || t.int(0) != no {
			return notFound("conversation", thread)
		}
		o, err := c.one(sqlOwnerOut, no)
		if err != nil {
			return err
		}
		tidied, err := c.one(sqlThreadOut, tenant, store.TidyThreadID(agent))
		if err != nil {
			return err
		}
		elsewhere := o.int(1) - t.int(4)
		if tidied != nil && thread != store.TidyThreadID(agent) { // nobody is to look for what is said there
			elsewhere -= tidied.int(4)
		}
		out = memgpt.Outside{Hidden: int(t.int(1)), First: t.time(2), Last: t.time(3),
			Elsewhere: int(elsewhere), Passages: int(o.int(0))}
		return c.each(func(r row) error {
			out.Sources = append(out.Sources, r.text(0))
			return nil
		}, sqlSources, no)
	})
	return out, err
}

// Sizes implements store.Store.
func (s *Store) Sizes(ctx context.Context, tenant, agent string) (z store.Sizes, err error) {
	err = s.read(ctx, "sizes", func(c *conn) error {
		no, err := s.ownerNo(c, name{tenant, agent})
		if err != nil || no == 0 {
			return err
		}
		r, err := c.one(sqlSizes, no)
		if err != nil || r == nil {
			return err
		}
		z = store.Sizes{Messages: r.int(0), MessageBytes: r.int(1), Passages: r.int(2), PassageBytes: r.int(3), Docs: posOf(r.int(4)),
			ForwardBytes: r.int(5), PostingBlocks: r.int(6), PostingBytes: r.int(7)}
		return nil
	})
	return z, err
}
