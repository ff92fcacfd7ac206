package sqlite

import (
	"memgpt"
	"memgpt/store"
)

// apply does everything of a commit. What it finds wrong it returns, and the caller undoes the rest.
func (w *work) apply(c *store.Commit, x *coded) error {
	w.now = c.Now
	for _, f := range []func(*store.Commit, *coded) error{
		w.applyLease, w.applyAgents, w.applyThreads, w.applyBlocks, w.applyRecords,
		w.applyPassages, w.applyDocs, w.applyEntries, w.applyDocIDs, w.applyDead, w.applyUnembed, w.applyVectors, w.applyRests, w.applyEvents, w.applyConsume, w.applyTurns, w.applySpending, w.applySayings, w.applyAcquire,
		w.applyPending,
	} {
		if err := f(c, x); err != nil {
			return err
		}
	}
	return w.flush()
}

func (w *work) applyLease(c *store.Commit, _ *coded) error {
	l := c.Lease
	if l == nil {
		return nil
	}
	t, err := w.thread(name{l.Tenant, l.Thread})
	if err != nil {
		return err
	}
	if t == nil || t.lease != l.Number || l.Number == 0 {
		return memgpt.Errorf(memgpt.CodeLeaseLost, "commit under lease %d of conversation %s: another holder runs it", l.Number, l.Thread)
	}
	t.changed, t.holder, t.until = true, w.s.holder.id, timeValue(l.Until)
	if c.Release {
		t.holder, t.until = "", nil
	}
	return nil
}

func (w *work) applyAcquire(c *store.Commit, _ *coded) error {
	l := c.Acquire
	if l == nil {
		return nil
	}
	t, err := w.thread(name{l.Tenant, l.Thread})
	if err != nil || t == nil {
		return err
	}
	w.out.Thread = t.version
	if !w.free(t) {
		return nil
	}
	t.changed, t.holder, t.until = true, w.s.holder.id, timeValue(l.Until)
	t.lease++
	w.out.Lease = &store.Lease{Tenant: l.Tenant, Thread: l.Thread, Number: t.lease, Until: l.Until}
	return nil
}

// free reports whether a lease may be taken: it was released, is over, or its holder died.
func (w *work) free(t *threadState) bool {
	return t.until == nil || !timeOf(t.until).After(w.now) || w.s.holder.dead(t.holder)
}

const (
	sqlAgentGet  = "SELECT version FROM agents WHERE owner = ?"
	sqlAgentNew  = "INSERT INTO agents (owner, tenant, name, version, data) VALUES (?, ?, ?, ?, ?)"
	sqlAgentSet  = "UPDATE agents SET name = ?, version = ?, data = ? WHERE owner = ?"
	sqlBlockGet  = "SELECT no, version FROM blocks WHERE tenant = ? AND id = ?"
	sqlBlockNew  = "INSERT INTO blocks (tenant, id, version, data) VALUES (?, ?, ?, ?)"
	sqlBlockSet  = "UPDATE blocks SET version = ?, data = ? WHERE no = ?"
	sqlBlockAny  = "SELECT no FROM blocks WHERE id = ?"
	sqlEditNew   = "INSERT INTO block_edits (no, data) VALUES (ifnull((SELECT max(no) FROM block_edits WHERE no BETWEEN ? AND ?), ?) + 1, ?)"
	sqlRecordGet = "SELECT version FROM records WHERE tenant = ? AND kind = ? AND id = ?"
	sqlRecordSet = "REPLACE INTO records (tenant, kind, id, version, data) VALUES (?, ?, ?, ?, ?)"
	sqlRecordDel = "DELETE FROM records WHERE tenant = ? AND kind = ? AND id = ?"
	sqlSumSet    = "REPLACE INTO summaries (thread, data) VALUES (?, ?)"
	sqlSumDel    = "DELETE FROM summaries WHERE thread = ?"
)

// checkVersion compares the version that a row has, 0 when there is none, with the one that its writer had read.
func checkVersion(what, id string, has, read int64) error {
	if has == read {
		return nil
	}
	return memgpt.Errorf(memgpt.CodeConflict, "store %s %s: version %d was read, and it has version %d now", what, id, read, has)
}

func versionOf(r row, column int) int64 {
	if r == nil {
		return 0
	}
	return r.int(column)
}

func (w *work) applyAgents(c *store.Commit, x *coded) error {
	for i := range c.Agents {
		a := &c.Agents[i]
		o, err := w.owner(name{a.Tenant, a.ID})
		if err != nil {
			return err
		}
		r, err := w.c.one(sqlAgentGet, o.no)
		if err != nil {
			return err
		}
		if err := checkVersion("agent", a.ID, versionOf(r, 0), a.Version); err != nil {
			return err
		}
		if a.Version == 0 {
			_, err = w.c.exec(sqlAgentNew, o.no, a.Tenant, a.Name, 1, x.agents[i])
		} else {
			_, err = w.c.exec(sqlAgentSet, a.Name, a.Version+1, x.agents[i], o.no)
		}
		if err != nil {
			return taken(err, "there is an agent named %q already", a.Name)
		}
	}
	return nil
}

func (w *work) applyThreads(c *store.Commit, x *coded) error {
	for i := range c.Threads {
		t := &c.Threads[i]
		st, err := w.threadToWrite(t)
		if err != nil {
			return err
		}
		st.changed = true
		st.label, st.version, st.head, st.data = t.Name, t.Version+1, t.Head, x.threads[i]
		if err := w.applySummary(st, &t.Summary); err != nil {
			return err
		}
	}
	return nil
}

// threadToWrite checks a thread's version and makes its row if it is new.
func (w *work) threadToWrite(t *memgpt.Thread) (*threadState, error) {
	of := name{t.Tenant, t.ID}
	st, err := w.thread(of)
	if err != nil {
		return nil, err
	}
	if st != nil {
		return st, checkVersion("conversation", t.ID, st.version, t.Version)
	}
	if err := checkVersion("conversation", t.ID, 0, t.Version); err != nil {
		return nil, err
	}
	o, err := w.owner(name{t.Tenant, t.Agent})
	if err != nil {
		return nil, err
	}
	st, err = w.newThread(of, o.no, t.Name)
	if err != nil {
		return nil, taken(err, "the agent has a conversation named %q already", t.Name)
	}
	return st, nil
}

// applySummary writes a summary only if it changed: it is by far the longest part of a thread.
func (w *work) applySummary(t *threadState, m *memgpt.Summary) error {
	if t.written != nil && sameSummary(t.written, m) {
		return nil
	}
	written := *m
	t.written = &written
	if sameSummary(m, &memgpt.Summary{}) {
		if t.summary == 0 {
			return nil
		}
		t.summary = 0
		_, err := w.c.exec(sqlSumDel, t.no)
		return err
	}
	data, err := w.s.enc.json(m, "summary of conversation", t.name.id)
	if err != nil {
		return err
	}
	hash := hashSummary(data)
	if t.summary == hash {
		return nil
	}
	t.summary = hash
	_, err = w.c.exec(sqlSumSet, t.no, data)
	return err
}

func (w *work) applyBlocks(c *store.Commit, x *coded) error {
	for i := range c.Blocks {
		b := &c.Blocks[i]
		r, err := w.c.one(sqlBlockGet, b.Tenant, b.ID)
		if err != nil {
			return err
		}
		if err := checkVersion("block", b.ID, versionOf(r, 1), b.Version); err != nil {
			return err
		}
		if r == nil {
			_, err = w.c.exec(sqlBlockNew, b.Tenant, b.ID, 1, x.blocks[i])
		} else {
			_, err = w.c.exec(sqlBlockSet, b.Version+1, x.blocks[i], r.int(0))
		}
		if err != nil {
			return err
		}
	}
	for i := range c.Edits {
		if err := w.applyEdit(c, c.Edits[i].Block, x.edits[i]); err != nil {
			return err
		}
	}
	return nil
}

// applyEdit appends to a block's history. An edit doesn't name its tenant: it is that of the commit.
func (w *work) applyEdit(c *store.Commit, block, data string) error {
	tenant, known := tenantOf(c)
	r, err := w.c.one(sqlBlockGet, tenant, block)
	if !known {
		r, err = w.c.one(sqlBlockAny, block)
	}
	if err != nil {
		return err
	}
	if r == nil {
		return memgpt.Errorf(memgpt.CodeNotFound, "store an edit of block %s: there is no such block", block)
	}
	no := r.int(0)
	_, err = w.c.exec(sqlEditNew, rowNo(no, 0), rowNo(no, maxPos), rowNo(no, 0), data)
	return err
}

// tenantOf returns the tenant of a commit: that of the first row that names one.
func tenantOf(c *store.Commit) (string, bool) {
	switch {
	case c.Lease != nil:
		return c.Lease.Tenant, true
	case len(c.Threads) > 0:
		return c.Threads[0].Tenant, true
	case len(c.Blocks) > 0:
		return c.Blocks[0].Tenant, true
	case len(c.Agents) > 0:
		return c.Agents[0].Tenant, true
	case len(c.Turns) > 0:
		return c.Turns[0].Tenant, true
	case c.Acquire != nil:
		return c.Acquire.Tenant, true
	case len(c.Events) > 0:
		return c.Events[0].Tenant, true
	}
	return "", false
}

func (w *work) applyRecords(c *store.Commit, _ *coded) error {
	for i := range c.Drop {
		r := &c.Drop[i]
		if r.Version != 0 {
			if err := w.checkRecord(r); err != nil {
				return err
			}
		}
		if _, err := w.c.exec(sqlRecordDel, r.Tenant, r.Kind, r.ID); err != nil {
			return err
		}
	}
	for i := range c.Records {
		r := &c.Records[i]
		if err := w.checkRecord(r); err != nil {
			return err
		}
		if _, err := w.c.exec(sqlRecordSet, r.Tenant, r.Kind, r.ID, r.Version+1, string(r.Data)); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) checkRecord(r *store.Record) error {
	at, err := w.c.one(sqlRecordGet, r.Tenant, r.Kind, r.ID)
	if err != nil {
		return err
	}
	return checkVersion(r.Kind, r.ID, versionOf(at, 0), r.Version)
}
