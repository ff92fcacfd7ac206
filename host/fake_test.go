package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/store"
)

// memory is a store.Store that implements what host calls, in memory, for bubbles of testing/synctest.
type memory struct {
	store.Store
	mu      sync.Mutex
	agents  []memgpt.Agent
	threads map[string]memgpt.Thread
	blocks  map[string]memgpt.Block
	edits   []store.BlockEdit
	entries map[string][]memgpt.Entry
	events  []memgpt.Event
	keys    map[string]memgpt.Event
	turns   map[string]memgpt.Turn
	order   []string // turns, oldest first
	leases  map[string]store.Lease
	change  int64
	next    int64
	records map[[3]string]store.Record
	commits []*store.Commit
	sayings []store.Saying
	outside memgpt.Outside
	fail    func(*store.Commit) error
	reads   int // of the inbox
}

func newMemory() *memory {
	return &memory{threads: map[string]memgpt.Thread{}, blocks: map[string]memgpt.Block{}, entries: map[string][]memgpt.Entry{},
		keys: map[string]memgpt.Event{}, turns: map[string]memgpt.Turn{}, leases: map[string]store.Lease{},
		records: map[[3]string]store.Record{}}
}

func (m *memory) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return store.Committed{}, err
	}
	if m.fail != nil {
		if err := m.fail(c); err != nil {
			return store.Committed{}, err
		}
	}
	if err := m.check(c); err != nil {
		return store.Committed{}, err
	}
	m.commits = append(m.commits, c)
	m.change++
	var done store.Committed
	if c.Acquire != nil {
		done = m.acquire(c)
	}
	if c.Lease != nil {
		l := *c.Lease
		if c.Release {
			l.Until = time.Time{}
		}
		m.leases[l.Thread] = l
	}
	m.write(c)
	for _, e := range c.Events {
		if old, ok := m.keys[e.Thread+"\x00"+e.Key]; ok && e.Key != "" && old.ID != e.ID {
			done.Duplicate = append(done.Duplicate, old)
			continue
		}
		m.putEvent(e)
	}
	m.events = slices.DeleteFunc(m.events, func(e memgpt.Event) bool { return slices.Contains(c.Consume, e.ID) })
	done.Pending = m.pending(c, done)
	return done, nil
}

// pending counts the due events of the thread under whose lease a commit is.
func (m *memory) pending(c *store.Commit, done store.Committed) (n int) {
	lease := done.Lease
	if c.Lease != nil && !c.Release {
		lease = c.Lease
	}
	for _, e := range m.events {
		if lease != nil && e.Thread == lease.Thread && !e.Due.After(c.Now) {
			n++
		}
	}
	return n
}

func (m *memory) check(c *store.Commit) error {
	if c.Lease != nil && m.leases[c.Lease.Thread].Number != c.Lease.Number {
		return memgpt.Errorf(memgpt.CodeLeaseLost, "lease %d of %s is not the newest", c.Lease.Number, c.Lease.Thread)
	}
	for _, r := range c.Records {
		if m.records[[3]string{r.Tenant, r.Kind, r.ID}].Version != r.Version {
			return memgpt.Errorf(memgpt.CodeConflict, "record %s %s changed", r.Kind, r.ID)
		}
	}
	for i := range c.Sayings {
		if m.saying(c.Sayings[i].ID).Version != c.Sayings[i].Version {
			return memgpt.Errorf(memgpt.CodeConflict, "saying %s changed", c.Sayings[i].ID)
		}
	}
	for _, t := range c.Threads {
		if m.threads[t.ID].Version != t.Version {
			return memgpt.Errorf(memgpt.CodeConflict, "thread %s changed", t.ID)
		}
	}
	for _, a := range c.Agents {
		for _, b := range m.agents {
			if a.ID != b.ID && a.Name == b.Name && a.Tenant == b.Tenant {
				return memgpt.Errorf(memgpt.CodeExists, "agent %s exists", a.Name)
			}
		}
	}
	return nil
}

func (m *memory) acquire(c *store.Commit) store.Committed {
	l := *c.Acquire
	done := store.Committed{Thread: m.threads[l.Thread].Version}
	if old := m.leases[l.Thread]; !old.Until.After(c.Now) {
		l.Number = old.Number + 1
		m.leases[l.Thread] = l
		done.Lease = &l
	}
	return done
}

func (m *memory) write(c *store.Commit) {
	for _, a := range c.Agents {
		a.Version++
		m.agents = append(slices.DeleteFunc(m.agents, func(b memgpt.Agent) bool { return a.ID == b.ID }), a)
	}
	for _, r := range c.Records {
		r.Version++
		m.records[[3]string{r.Tenant, r.Kind, r.ID}] = r
	}
	for _, b := range c.Blocks {
		b.Version++
		m.blocks[b.ID] = b
	}
	m.edits = append(m.edits, c.Edits...)
	for _, t := range c.Threads {
		t.Version++
		m.threads[t.ID] = t
	}
	for _, e := range c.Entries {
		m.entries[e.Thread] = append(m.entries[e.Thread], e)
	}
	m.putSayings(c.Sayings)
	for _, t := range c.Turns {
		if _, ok := m.turns[t.ID]; !ok {
			m.order = append(m.order, t.ID)
		}
		m.turns[t.ID] = t
	}
}

func (m *memory) putEvent(e memgpt.Event) {
	if e.Key != "" {
		m.keys[e.Thread+"\x00"+e.Key] = e
	}
	for i := range m.events {
		if m.events[i].ID == e.ID {
			e.Order = m.events[i].Order
			m.events[i] = e
			return
		}
	}
	m.next++
	e.Order = m.next
	m.events = append(m.events, e)
}

// saying returns a row of the outbox; the zero one is none.
func (m *memory) saying(id string) store.Saying {
	if i := slices.IndexFunc(m.sayings, func(s store.Saying) bool { return s.ID == id }); i >= 0 {
		return m.sayings[i]
	}
	return store.Saying{}
}

func (m *memory) putSayings(list []store.Saying) {
	for _, s := range list {
		s.Version++
		i := slices.IndexFunc(m.sayings, func(t store.Saying) bool { return t.ID == s.ID })
		switch {
		case i >= 0 && s.Over():
			m.sayings = slices.Delete(m.sayings, i, i+1)
		case i >= 0:
			m.sayings[i] = s
		case !s.Over():
			m.sayings = append(m.sayings, s)
		}
	}
}

func (m *memory) Sayings(_ context.Context, q store.SayingRange) (all []store.Saying, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sayings {
		if (q.AllTenants || q.Tenant == s.Tenant) && (q.Agent == "" || q.Agent == s.Agent) && (!q.Unread || !s.Read) && (q.Hook == "" || q.Hook == s.Hook) {
			all = append(all, s)
		}
	}
	return all, nil
}

func (m *memory) EntriesByID(_ context.Context, _, agent string, ids []string) (all []memgpt.Entry, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		for _, list := range m.entries {
			for _, e := range list {
				if e.ID == id && e.Agent == agent {
					all = append(all, e)
				}
			}
		}
	}
	return all, nil
}

func (m *memory) Agent(_ context.Context, tenant, id string) (memgpt.Agent, error) {
	return m.findAgent(func(a memgpt.Agent) bool { return a.Tenant == tenant && a.ID == id })
}

func (m *memory) AgentNamed(_ context.Context, tenant, name string) (memgpt.Agent, error) {
	return m.findAgent(func(a memgpt.Agent) bool { return a.Tenant == tenant && a.Name == name })
}

func (m *memory) findAgent(is func(memgpt.Agent) bool) (memgpt.Agent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.agents, is); i >= 0 {
		return m.agents[i], nil
	}
	return memgpt.Agent{}, memgpt.Errorf(memgpt.CodeNotFound, "no such agent")
}

func (m *memory) Thread(_ context.Context, _, id string) (memgpt.Thread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.threads[id]; ok {
		return t, nil
	}
	return memgpt.Thread{}, memgpt.Errorf(memgpt.CodeNotFound, "no such thread")
}

func (m *memory) Threads(_ context.Context, _, agent string) (all []memgpt.Thread, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.threads {
		if t.Agent == agent {
			all = append(all, t)
		}
	}
	return all, nil
}

func (m *memory) Blocks(_ context.Context, _ string, ids []string) (all []memgpt.Block, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		all = append(all, m.blocks[id])
	}
	return all, nil
}

func (m *memory) Entries(_ context.Context, q store.EntryRange) (all []memgpt.Entry, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries[q.Thread] {
		if e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before) {
			all = append(all, e)
		}
	}
	switch {
	case q.Limit <= 0 || len(all) <= q.Limit:
	case q.Last:
		all = all[len(all)-q.Limit:]
	default:
		all = all[:q.Limit]
	}
	return all, nil
}

func (m *memory) Events(_ context.Context, q store.EventRange) (all []memgpt.Event, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	for _, e := range m.events {
		if (q.AllTenants || q.Tenant == e.Tenant) && (q.Thread == "" || q.Thread == e.Thread) && (q.Agent == "" || q.Agent == e.Agent) && (q.Until.IsZero() || !e.Due.After(q.Until)) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b memgpt.Event) int {
		return cmp.Or(cmp.Compare(store.Class(&a), store.Class(&b)), cmp.Compare(a.Order, b.Order))
	})
	if q.Limit > 0 && len(all) > q.Limit {
		all = all[:q.Limit]
	}
	return all, nil
}

func (m *memory) Record(_ context.Context, tenant, kind, id string) (store.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.records[[3]string{tenant, kind, id}]; ok {
		return r, nil
	}
	return store.Record{}, memgpt.Errorf(memgpt.CodeNotFound, "no such record")
}

func (m *memory) NextDue(context.Context) (due time.Time, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.events {
		if due.IsZero() || e.Due.Before(due) {
			due = e.Due
		}
	}
	return due, nil
}

func (m *memory) Turn(_ context.Context, _, id string) (memgpt.Turn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.turns[id]; ok {
		return t, nil
	}
	return memgpt.Turn{}, memgpt.Errorf(memgpt.CodeNotFound, "no such turn")
}

func (m *memory) Turns(_ context.Context, _, thread string, limit int) (all []memgpt.Turn, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.Backward(m.order) {
		if t := m.turns[id]; t.Thread == thread && len(all) < limit {
			all = append(all, t)
		}
	}
	return all, nil
}

func (m *memory) Outside(context.Context, string, string, string) (memgpt.Outside, error) {
	return m.outside, nil
}

func (m *memory) Change(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.change, nil
}

// kernel is a Runner that commits like the real one: one step a turn unless Steps says more, each a commit of entries,
// thread, lease and event. It fails the test where two turns of a conversation overlap.
type kernel struct {
	t     *testing.T
	store store.Store
	now   func() time.Time
	newID func(string) string
	steps int                                            // of a turn; 0 is 1
	think func(ctx context.Context, w *store.Work) error // the model's and the tools' time; nil is none

	mu    sync.Mutex
	busy  map[string]bool
	order map[string][]string // texts of the events whose turns ended, by thread
}

func (k *kernel) Run(ctx context.Context, w *store.Work) error { return k.run(ctx, w, k.store) }

func (k *kernel) run(ctx context.Context, w *store.Work, s store.Store) error {
	k.enter(w.Event.Thread)
	defer k.exit(w.Event.Thread)
	w.Emit(memgpt.TurnStarted{Turn: w.Turn})
	for step := w.Event.Step + 1; ; step++ {
		var err error
		if k.think != nil {
			err = k.think(ctx, w)
		}
		cancelled := memgpt.CodeOf(context.Cause(ctx)) == memgpt.CodeCancelled
		if err != nil && !cancelled {
			return err
		}
		last := step >= max(k.steps, 1) || cancelled
		if err := k.commit(context.WithoutCancel(ctx), s, w, step, last, cancelled); err != nil || last {
			return err
		}
	}
}

func (k *kernel) commit(ctx context.Context, s store.Store, w *store.Work, step int, last, cancelled bool) error {
	st, turn, event, lease := w.State.Fork(), w.Turn, w.Event, w.Lease
	now := k.now()
	lease.Until = now.Add(w.TTL)
	add := func(m memgpt.Message, step int) {
		st.Queue = append(st.Queue, memgpt.Entry{ID: k.newID("message"), Tenant: event.Tenant, Agent: event.Agent, Thread: event.Thread,
			Seq: st.Thread.Next, Turn: turn.ID, Step: step, Time: now, Message: m})
		st.Thread.Next++
	}
	if event.Step == 0 {
		add(event.Message, 0)
	}
	text := "re: " + event.Message.Said()
	args := fmt.Sprintf(`{"message":%q}`, text)
	add(memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "1", Name: memgpt.FuncSendMessage, Arguments: args}}}, step)
	turn.Steps = step
	c := &store.Commit{Now: now, Lease: &lease, Threads: []memgpt.Thread{st.Thread}}
	c.Entries = slices.Clone(st.Queue[len(w.State.Queue):])
	if last {
		turn.State, turn.Stop, turn.Ended = memgpt.TurnDone, memgpt.StopEnd, now
		if cancelled {
			turn.State, turn.Stop = memgpt.TurnCancelled, memgpt.StopCancelled
		}
		c.Consume, c.Release = []string{event.ID}, !w.More()
	} else {
		event.Step = step
		c.Events = []memgpt.Event{event}
	}
	c.Turns = []memgpt.Turn{turn}
	if last {
		k.note(event)
	}
	if _, err := s.Commit(ctx, c); err != nil {
		k.unnote(event, last)
		return err
	}
	st.Thread.Version++
	w.State, w.Turn, w.Event, w.Lease = st, turn, event, lease
	w.Emit(memgpt.StepCommitted{Step: step, Entries: c.Entries})
	w.Emit(memgpt.Spoke{Step: step, Text: text})
	if last {
		w.Emit(memgpt.TurnEnded{Turn: turn})
	}
	return nil
}

func (k *kernel) enter(thread string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy[thread] {
		k.t.Errorf("two turns of %s at once", thread)
	}
	k.busy[thread] = true
}

func (k *kernel) exit(thread string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy[thread] = false
}

// note counts a turn before its commit, after which the next may begin elsewhere.
func (k *kernel) note(e memgpt.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.order[e.Thread] = append(k.order[e.Thread], e.Message.Said())
	k.busy[e.Thread] = false
}

func (k *kernel) unnote(e memgpt.Event, last bool) {
	if !last {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.order[e.Thread]
	i := slices.Index(list, e.Message.Said())
	k.order[e.Thread] = slices.Delete(list, i, i+1)
}

func (k *kernel) ran(thread string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.order[thread])
}

// forgiving forgets which conversations were run by hosts that were killed.
func (k *kernel) forgiving() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.busy)
}
