package sqlite

import (
	"context"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

// sayingRow is the file format of a saying, see rows.go.
type sayingRow struct {
	ID     string    `json:"-"`
	Tenant string    `json:"-"`
	Agent  string    `json:"-"`
	Thread string    `json:"-"`
	Turn   string    `json:"turn,omitempty"`
	Entry  string    `json:"-"`
	Call   string    `json:"call,omitempty"`
	Why    string    `json:"why,omitempty"`
	Time   time.Time `json:"time,omitzero"`

	Read    bool      `json:"-"`
	Showing time.Time `json:"showing,omitzero"`

	Hook  store.HookState `json:"-"`
	Next  time.Time       `json:"next,omitzero"`
	First time.Time       `json:"first,omitzero"`
	Tries int             `json:"tries,omitempty"`
	Aside bool            `json:"aside,omitempty"`
	Error string          `json:"error,omitempty"`

	Order   int64 `json:"-"`
	Version int64 `json:"-"`
}

const (
	sqlSayingGet = "SELECT no, version FROM sayings WHERE agent = ? AND id = ?"
	sqlSayingNew = "INSERT INTO sayings (thread, agent, id, entry, unread, hook, version, data) VALUES (?, ?, ?, ?, ?, ?, 1, ?)"
	sqlSayingSet = "UPDATE sayings SET unread = ?, hook = ?, version = ?, data = ? WHERE no = ?"
	sqlSayingDel = "DELETE FROM sayings WHERE no = ?"
	// The newest ones of an agent stay of which no delivery is due.
	sqlSayingOld = `DELETE FROM sayings WHERE no IN (SELECT no FROM sayings WHERE agent = ? AND hook <> ? ORDER BY no DESC LIMIT -1 OFFSET ?)`
	// Those of an entry, when it is erased.
	sqlSayingsOf = "DELETE FROM sayings WHERE thread = ? AND entry = ?"
)

func (w *work) applySayings(c *store.Commit, x *coded) error {
	for i := range c.Sayings {
		if err := w.applySaying(&c.Sayings[i], x.sayings[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) applySaying(s *store.Saying, data string) error {
	t, err := w.needThread(name{s.Tenant, s.Thread}, "saying "+s.ID)
	if err != nil {
		return err
	}
	r, err := w.c.one(sqlSayingGet, t.agent, s.ID)
	if err != nil {
		return err
	}
	if err := checkVersion("saying", s.ID, versionOf(r, 1), s.Version); err != nil {
		return err
	}
	unread := int64(1)
	if s.Read {
		unread = 0
	}
	switch {
	case s.Over() && r != nil:
		_, err = w.c.exec(sqlSayingDel, r.int(0))
	case s.Over():
	case r != nil:
		_, err = w.c.exec(sqlSayingSet, unread, string(s.Hook), s.Version+1, data, r.int(0))
	default:
		if _, err = w.c.exec(sqlSayingNew, t.no, t.agent, s.ID, packID(s.Entry), unread, string(s.Hook), data); err == nil {
			_, err = w.c.exec(sqlSayingOld, t.agent, string(store.HookDue), store.MostSayings)
		}
	}
	return err
}

func (s *Store) codeSayings(c *store.Commit, x *coded) error {
	return codeAll(s.enc, &x.sayings, c.Sayings, "saying", func(s *store.Saying) (any, string) { return (*sayingRow)(s), s.ID })
}

const (
	sqlSayings = `SELECT s.no, t.tenant, o.id, t.id, s.id, s.entry, s.unread, s.hook, s.version, s.data
		FROM sayings s JOIN threads t ON t.no = s.thread JOIN owners o ON o.no = s.agent WHERE TRUE`
	sqlSayingsOwned  = " AND s.agent = (SELECT no FROM owners WHERE tenant = ? AND id = ?)"
	sqlSayingsTenant = " AND t.tenant = ?"
	sqlSayingsUnread = " AND s.unread = 1"
	sqlSayingsDue    = " AND s.hook = 'due'" // written out, since an index is of these alone
	sqlSayingsHook   = " AND s.hook = ?"
	sqlSayingsLimit  = " ORDER BY s.no LIMIT ?"
	sqlSayingsLast   = " ORDER BY s.no DESC LIMIT ?"
)

// Sayings implements store.Store.
func (s *Store) Sayings(ctx context.Context, q store.SayingRange) (list []store.Saying, err error) {
	query, args := sqlSayings, []any{}
	add := func(text string, values ...any) { query, args = query+text, append(args, values...) }
	switch {
	case q.Agent != "":
		add(sqlSayingsOwned, q.Tenant, q.Agent)
	case !q.AllTenants:
		add(sqlSayingsTenant, q.Tenant)
	}
	if q.Unread {
		add(sqlSayingsUnread)
	}
	switch q.Hook {
	case store.HookNone:
	case store.HookDue:
		add(sqlSayingsDue)
	default:
		add(sqlSayingsHook, string(q.Hook))
	}
	limit := q.Limit
	if limit <= 0 {
		limit = -1
	}
	if q.Last {
		add(sqlSayingsLast, limit)
	} else {
		add(sqlSayingsLimit, limit)
	}
	err = s.read(ctx, "the outbox", func(c *conn) error {
		return c.each(func(r row) error {
			one, err := sayingOf(r)
			list = append(list, one)
			return err
		}, query, args...)
	})
	if q.Last {
		slices.Reverse(list)
	}
	return list, err
}

func sayingOf(r row) (store.Saying, error) {
	var data sayingRow
	if err := decode(r.text(9), &data, "saying"); err != nil {
		return store.Saying{}, err
	}
	s := store.Saying(data)
	s.Order, s.Tenant, s.Agent, s.Thread, s.ID, s.Entry = r.int(0), r.text(1), r.text(2), r.text(3), r.text(4), unpackID(r.blob(5))
	s.Read, s.Hook, s.Version = r.int(6) == 0, store.HookState(r.text(7)), r.int(8)
	return s, nil
}

// sayings removes those of entries that are the agent's words no more.
func (w *eraser) sayings() error {
	for i := range w.e.Entries {
		e := &w.e.Entries[i]
		if e.Message.Role == memgpt.RoleAssistant {
			continue
		}
		t, err := w.needThread(name{e.Tenant, e.Thread}, "entry "+e.ID)
		if err != nil {
			return err
		}
		if _, err := w.c.exec(sqlSayingsOf, t.no, packID(e.ID)); err != nil {
			return err
		}
	}
	return nil
}
