package sqlite

import (
	"context"

	"memgpt"
	"memgpt/store"
)

func notFound(what, id string) error {
	return memgpt.Errorf(memgpt.CodeNotFound, "there is no %s %q", what, id)
}

const (
	sqlAgentCols  = "SELECT o.id, a.name, a.version, a.data FROM agents a JOIN owners o ON o.no = a.owner "
	sqlAgentByID  = sqlAgentCols + "WHERE o.tenant = ? AND o.id = ?"
	sqlAgentNamed = sqlAgentCols + "WHERE a.tenant = ? AND a.name = ?"
	sqlAgents     = sqlAgentCols + "WHERE a.tenant = ? ORDER BY a.name"
)

func agentOf(r row, tenant string) (memgpt.Agent, error) {
	var data agentRow
	if err := decode(r.text(3), &data, "agent"); err != nil {
		return memgpt.Agent{}, err
	}
	a := memgpt.Agent(data)
	a.ID, a.Tenant, a.Name, a.Version = r.text(0), tenant, r.text(1), r.int(2)
	return a, nil
}

// Agent implements store.Store.
func (s *Store) Agent(ctx context.Context, tenant, id string) (memgpt.Agent, error) {
	return s.agent(ctx, sqlAgentByID, tenant, id)
}

// AgentNamed implements store.Store.
func (s *Store) AgentNamed(ctx context.Context, tenant, name string) (memgpt.Agent, error) {
	return s.agent(ctx, sqlAgentNamed, tenant, name)
}

func (s *Store) agent(ctx context.Context, query, tenant, id string) (a memgpt.Agent, err error) {
	err = s.read(ctx, "agent "+id, func(c *conn) error {
		r, err := c.one(query, tenant, id)
		if err != nil {
			return err
		}
		if r == nil {
			return notFound("agent", id)
		}
		a, err = agentOf(r, tenant)
		return err
	})
	return a, err
}

// Agents implements store.Store; they come in order of their names.
func (s *Store) Agents(ctx context.Context, tenant string) (list []memgpt.Agent, err error) {
	err = s.read(ctx, "agents", func(c *conn) error {
		return c.each(func(r row) error {
			a, err := agentOf(r, tenant)
			list = append(list, a)
			return err
		}, sqlAgents, tenant)
	})
	return list, err
}

const (
	sqlThreadCols = `SELECT t.id, o.id, t.name, t.version, t.head, t.data, (SELECT data FROM summaries WHERE thread = t.no)
		FROM threads t JOIN owners o ON o.no = t.agent `
	sqlThreadByID = sqlThreadCols + "WHERE t.tenant = ? AND t.id = ?"
	sqlThreads    = sqlThreadCols + "WHERE t.agent = ? ORDER BY t.no"
)

func threadOf(r row, tenant string) (memgpt.Thread, error) {
	var data threadRow
	if err := decode(r.text(5), &data, "conversation"); err != nil {
		return memgpt.Thread{}, err
	}
	t := memgpt.Thread(data)
	t.ID, t.Tenant, t.Agent, t.Name, t.Version, t.Head = r.text(0), tenant, r.text(1), r.text(2), r.int(3), r.int(4)
	if r[6] == nil {
		return t, nil
	}
	return t, decode(r.text(6), &t.Summary, "summary")
}

// Thread implements store.Store.
func (s *Store) Thread(ctx context.Context, tenant, id string) (t memgpt.Thread, err error) {
	err = s.read(ctx, "conversation "+id, func(c *conn) error {
		r, err := c.one(sqlThreadByID, tenant, id)
		if err != nil {
			return err
		}
		if r == nil {
			return notFound("conversation", id)
		}
		t, err = threadOf(r, tenant)
		return err
	})
	return t, err
}

// Threads implements store.Store; they come in the order in which they were made.
func (s *Store) Threads(ctx context.Context, tenant, agent string) (list []memgpt.Thread, err error) {
	err = s.read(ctx, "conversations of "+agent, func(c *conn) error {
		no, err := s.ownerNo(c, name{tenant, agent})
		if err != nil {
			return err
		}
		return c.each(func(r row) error {
			t, err := threadOf(r, tenant)
			list = append(list, t)
			return err
		}, sqlThreads, no)
	})
	return list, err
}

const (
	sqlBlockRead = "SELECT version, data FROM blocks WHERE tenant = ? AND id = ?"
	sqlEdits     = "SELECT data FROM block_edits WHERE no BETWEEN ? AND ? ORDER BY no"
)

// Blocks implements store.Store.
func (s *Store) Blocks(ctx context.Context, tenant string, ids []string) (list []memgpt.Block, err error) {
	err = s.snapshot(ctx, "blocks", func(c *conn) error {
		for _, id := range ids {
			r, err := c.one(sqlBlockRead, tenant, id)
			if err != nil {
				return err
			}
			if r == nil {
				return notFound("block", id)
			}
			var data blockRow
			if err := decode(r.text(1), &data, "block"); err != nil {
				return err
			}
			b := memgpt.Block(data)
			b.ID, b.Tenant, b.Version = id, tenant, r.int(0)
			list = append(list, b)
		}
		return nil
	})
	return list, err
}

// BlockHistory implements store.Store.
func (s *Store) BlockHistory(ctx context.Context, tenant, block string) (list []store.BlockEdit, err error) {
	err = s.read(ctx, "the history of block "+block, func(c *conn) error {
		r, err := c.one(sqlBlockGet, tenant, block)
		if err != nil || r == nil {
			return err
		}
		lo := rowNo(r.int(0), 0)
		return c.each(func(r row) error {
			var data editRow
			if err := decode(r.text(0), &data, "edit of a block"); err != nil {
				return err
			}
			e := store.BlockEdit(data)
			e.Block = block
			list = append(list, e)
			return nil
		}, sqlEdits, lo, lo|maxPos)
	})
	return list, err
}

const sqlRecords = "SELECT id, version, data FROM records WHERE tenant = ? AND kind = ? "

// Record implements store.Store.
func (s *Store) Record(ctx context.Context, tenant, kind, id string) (rec store.Record, err error) {
	err = s.read(ctx, kind+" "+id, func(c *conn) error {
		r, err := c.one(sqlRecords+"AND id = ?", tenant, kind, id)
		if err != nil {
			return err
		}
		if r == nil {
			return notFound(kind, id)
		}
		rec = recordOf(r, tenant, kind)
		return nil
	})
	return rec, err
}

// Records implements store.Store.
func (s *Store) Records(ctx context.Context, tenant, kind string) (list []store.Record, err error) {
	err = s.read(ctx, "all of kind "+kind, func(c *conn) error {
		return c.each(func(r row) error {
			list = append(list, recordOf(r, tenant, kind))
			return nil
		}, sqlRecords+"ORDER BY id", tenant, kind)
	})
	return list, err
}

func recordOf(r row, tenant, kind string) store.Record {
	return store.Record{Tenant: tenant, Kind: kind, ID: r.text(0), Version: r.int(1), Data: []byte(r.text(2))}
}
