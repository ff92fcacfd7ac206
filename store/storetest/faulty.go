package storetest

import (
	"context"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
)

// Faulty is a store that dies at a chosen call and stays dead: a crash, as those see it who use the store. Set its fields
// before it is used; then it is safe for concurrent use. A test that wants a crash at every call runs once with At 0 to
// learn Calls, and then once for each At from 1 on, until the store survives.
type Faulty struct {
	Inner store.Store
	At    int64 // the call that dies, from 1; 0 never dies
	// Commits says that only commits count as calls. Others work until the death.
	Commits bool
	// After makes a commit that dies happen: it is made, and its caller isn't told.
	After bool

	mu    sync.Mutex
	calls int64
	dead  bool
}

var _ store.Store = (*Faulty)(nil)

// ErrDead is what a dead store says; memgpt.CodeOf gives CodeClosed.
func (f *Faulty) errDead() error {
	return memgpt.Errorf(memgpt.CodeClosed, "the store died on purpose")
}

// Calls says how many calls were made, the one that died included.
func (f *Faulty) Calls() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Dead says whether the store has died.
func (f *Faulty) Dead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// call counts one and says whether it is the one that dies; the error is that of a store that is dead already.
func (f *Faulty) call(commit bool) (dies bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return false, f.errDead()
	}
	if f.Commits && !commit {
		return false, nil
	}
	f.calls++
	f.dead = f.calls == f.At
	return f.dead, nil
}

// live is call for everything but commits.
func (f *Faulty) live() error {
	dies, err := f.call(false)
	if dies {
		return f.errDead()
	}
	return err
}

// Commit implements store.Store.
func (f *Faulty) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	dies, err := f.call(true)
	if err != nil {
		return store.Committed{}, err
	}
	if dies && !f.After {
		return store.Committed{}, f.errDead()
	}
	out, err := f.Inner.Commit(ctx, c)
	if dies {
		return store.Committed{}, f.errDead()
	}
	return out, err
}

// Erase implements store.Store. It counts as a commit.
func (f *Faulty) Erase(ctx context.Context, e *store.Erasure) error {
	dies, err := f.call(true)
	if err != nil {
		return err
	}
	if dies && !f.After {
		return f.errDead()
	}
	err = f.Inner.Erase(ctx, e)
	if dies {
		return f.errDead()
	}
	return err
}

// through makes a call that reads, if the store lives.
func through[T any](f *Faulty, call func() (T, error)) (T, error) {
	if err := f.live(); err != nil {
		var none T
		return none, err
	}
	return call()
}

// Agent implements store.Store.
func (f *Faulty) Agent(ctx context.Context, tenant, id string) (memgpt.Agent, error) {
	return through(f, func() (memgpt.Agent, error) { return f.Inner.Agent(ctx, tenant, id) })
}

// AgentNamed implements store.Store.
func (f *Faulty) AgentNamed(ctx context.Context, tenant, name string) (memgpt.Agent, error) {
	return through(f, func() (memgpt.Agent, error) { return f.Inner.AgentNamed(ctx, tenant, name) })
}

// Agents implements store.Store.
func (f *Faulty) Agents(ctx context.Context, tenant string) ([]memgpt.Agent, error) {
	return through(f, func() ([]memgpt.Agent, error) { return f.Inner.Agents(ctx, tenant) })
}

// Thread implements store.Store.
func (f *Faulty) Thread(ctx context.Context, tenant, id string) (memgpt.Thread, error) {
	return through(f, func() (memgpt.Thread, error) { return f.Inner.Thread(ctx, tenant, id) })
}

// Threads implements store.Store.
func (f *Faulty) Threads(ctx context.Context, tenant, agent string) ([]memgpt.Thread, error) {
	return through(f, func() ([]memgpt.Thread, error) { return f.Inner.Threads(ctx, tenant, agent) })
}

// Blocks implements store.Store.
func (f *Faulty) Blocks(ctx context.Context, tenant string, ids []string) ([]memgpt.Block, error) {
	return through(f, func() ([]memgpt.Block, error) { return f.Inner.Blocks(ctx, tenant, ids) })
}

// BlockHistory implements store.Store.
func (f *Faulty) BlockHistory(ctx context.Context, tenant, block string) ([]store.BlockEdit, error) {
	return through(f, func() ([]store.BlockEdit, error) { return f.Inner.BlockHistory(ctx, tenant, block) })
}

// Entries implements store.Store.
func (f *Faulty) Entries(ctx context.Context, q store.EntryRange) ([]memgpt.Entry, error) {
	return through(f, func() ([]memgpt.Entry, error) { return f.Inner.Entries(ctx, q) })
}

// EntriesByID implements store.Store.
func (f *Faulty) EntriesByID(ctx context.Context, tenant, agent string, ids []string) ([]memgpt.Entry, error) {
	return through(f, func() ([]memgpt.Entry, error) { return f.Inner.EntriesByID(ctx, tenant, agent, ids) })
}

// EntryKeys implements store.Store.
func (f *Faulty) EntryKeys(ctx context.Context, tenant, agent string, keys []string) (map[string]bool, error) {
	return through(f, func() (map[string]bool, error) { return f.Inner.EntryKeys(ctx, tenant, agent, keys) })
}

// Passages implements store.Store.
func (f *Faulty) Passages(ctx context.Context, tenant, owner string, ids []string) ([]memgpt.Passage, error) {
	return through(f, func() ([]memgpt.Passage, error) { return f.Inner.Passages(ctx, tenant, owner, ids) })
}

// PassagesOf implements store.Store.
func (f *Faulty) PassagesOf(ctx context.Context, q store.PassageRange) ([]memgpt.Passage, error) {
	return through(f, func() ([]memgpt.Passage, error) { return f.Inner.PassagesOf(ctx, q) })
}

// Sources implements store.Store.
func (f *Faulty) Sources(ctx context.Context, tenant, owner string) ([]store.Source, error) {
	return through(f, func() ([]store.Source, error) { return f.Inner.Sources(ctx, tenant, owner) })
}

// PassageKeyed implements store.Store.
func (f *Faulty) PassageKeyed(ctx context.Context, tenant, owner, key string) (memgpt.Passage, error) {
	return through(f, func() (memgpt.Passage, error) { return f.Inner.PassageKeyed(ctx, tenant, owner, key) })
}

// Events implements store.Store.
func (f *Faulty) Events(ctx context.Context, q store.EventRange) ([]memgpt.Event, error) {
	return through(f, func() ([]memgpt.Event, error) { return f.Inner.Events(ctx, q) })
}

// NextDue implements store.Store.
func (f *Faulty) NextDue(ctx context.Context) (time.Time, error) {
	return through(f, func() (time.Time, error) { return f.Inner.NextDue(ctx) })
}

// Spending implements store.Store.
func (f *Faulty) Spending(ctx context.Context, q store.SpendingRange) ([]store.Spending, error) {
	return through(f, func() ([]store.Spending, error) { return f.Inner.Spending(ctx, q) })
}

// Sayings implements store.Store.
func (f *Faulty) Sayings(ctx context.Context, q store.SayingRange) ([]store.Saying, error) {
	return through(f, func() ([]store.Saying, error) { return f.Inner.Sayings(ctx, q) })
}

// Turn implements store.Store.
func (f *Faulty) Turn(ctx context.Context, tenant, id string) (memgpt.Turn, error) {
	return through(f, func() (memgpt.Turn, error) { return f.Inner.Turn(ctx, tenant, id) })
}

// Turns implements store.Store.
func (f *Faulty) Turns(ctx context.Context, tenant, thread string, limit int) ([]memgpt.Turn, error) {
	return through(f, func() ([]memgpt.Turn, error) { return f.Inner.Turns(ctx, tenant, thread, limit) })
}

// Outside implements store.Store.
func (f *Faulty) Outside(ctx context.Context, tenant, agent, thread string) (memgpt.Outside, error) {
	return through(f, func() (memgpt.Outside, error) { return f.Inner.Outside(ctx, tenant, agent, thread) })
}

// Sizes implements store.Store.
func (f *Faulty) Sizes(ctx context.Context, tenant, agent string) (store.Sizes, error) {
	return through(f, func() (store.Sizes, error) { return f.Inner.Sizes(ctx, tenant, agent) })
}

// Record implements store.Store.
func (f *Faulty) Record(ctx context.Context, tenant, kind, id string) (store.Record, error) {
	return through(f, func() (store.Record, error) { return f.Inner.Record(ctx, tenant, kind, id) })
}

// Records implements store.Store.
func (f *Faulty) Records(ctx context.Context, tenant, kind string) ([]store.Record, error) {
	return through(f, func() ([]store.Record, error) { return f.Inner.Records(ctx, tenant, kind) })
}

// Stats implements store.Index.
func (f *Faulty) Stats(ctx context.Context, tenant, owner string, terms []string) (store.Stats, error) {
	return through(f, func() (store.Stats, error) { return f.Inner.Stats(ctx, tenant, owner, terms) })
}

// Postings implements store.Index.
func (f *Faulty) Postings(ctx context.Context, tenant, owner, term string, yield func(block []store.Posting) bool) error {
	if err := f.live(); err != nil {
		return err
	}
	return f.Inner.Postings(ctx, tenant, owner, term, yield)
}

// Meta implements store.Index.
func (f *Faulty) Meta(ctx context.Context, tenant, owner string) (*store.Meta, error) {
	return through(f, func() (*store.Meta, error) { return f.Inner.Meta(ctx, tenant, owner) })
}

// DocIDs implements store.Index.
func (f *Faulty) DocIDs(ctx context.Context, tenant, owner string, numbers []int64) ([]string, error) {
	return through(f, func() ([]string, error) { return f.Inner.DocIDs(ctx, tenant, owner, numbers) })
}

// DocNumbers implements store.Index.
func (f *Faulty) DocNumbers(ctx context.Context, tenant, owner string, ids []string) ([]int64, error) {
	return through(f, func() ([]int64, error) { return f.Inner.DocNumbers(ctx, tenant, owner, ids) })
}

// Embedded implements store.Index.
func (f *Faulty) Embedded(ctx context.Context, tenant, owner string) (map[string]store.Cursor, error) {
	return through(f, func() (map[string]store.Cursor, error) { return f.Inner.Embedded(ctx, tenant, owner) })
}

// Vectors implements store.Index.
func (f *Faulty) Vectors(ctx context.Context, tenant, owner, model string, after int64, yield func(store.Vector) bool) error {
	if err := f.live(); err != nil {
		return err
	}
	return f.Inner.Vectors(ctx, tenant, owner, model, after, yield)
}

// VectorsOf implements store.Index.
func (f *Faulty) VectorsOf(ctx context.Context, tenant, owner, model string, docs []int64, yield func(store.Vector) bool) error {
	if err := f.live(); err != nil {
		return err
	}
	return f.Inner.VectorsOf(ctx, tenant, owner, model, docs, yield)
}

// Backlog implements store.Index.
func (f *Faulty) Backlog(ctx context.Context, model string) ([]store.Backlog, error) {
	return through(f, func() ([]store.Backlog, error) { return f.Inner.Backlog(ctx, model) })
}

// Partials implements store.Index.
func (f *Faulty) Partials(ctx context.Context, tenant, owner, model string, limit int) ([]store.Partial, error) {
	return through(f, func() ([]store.Partial, error) { return f.Inner.Partials(ctx, tenant, owner, model, limit) })
}

// Superseded implements store.Index.
func (f *Faulty) Superseded(ctx context.Context, model string) ([]store.OwnerModel, error) {
	return through(f, func() ([]store.OwnerModel, error) { return f.Inner.Superseded(ctx, model) })
}

// Change implements store.Store.
func (f *Faulty) Change(ctx context.Context) (int64, error) {
	return through(f, func() (int64, error) { return f.Inner.Change(ctx) })
}

// Close closes the store beneath; it is no call that counts.
func (f *Faulty) Close() error { return f.Inner.Close() }
