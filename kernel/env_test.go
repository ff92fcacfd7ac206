package kernel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/token"
	"memgpt/tool"
)

// env is an agent over a real store with a scripted model, and a clock, ids and chance that replay from a seed.
type env struct {
	t      testing.TB
	store  store.Store // what the kernel uses; may be faulty
	base   *sqlite.Store
	path   string // of its file
	kernel *kernel.Kernel
	count  *token.Counter
	agent  memgpt.Agent
	thread string
	now    time.Time
	newID  func(string) string
	state  *store.State
	lease  *store.Lease
	seen   []memgpt.Update
	config kernel.Config
	arrive func(*store.Work) // lets the kernel ask for what arrives; nil is never
}

type options struct {
	window   int
	protocol memgpt.Protocol
	policy   memgpt.Policy
	tools    []tool.Tool
	sum      memgpt.Model // summarizer
	seed     uint64
	zone     string
	wrap     func(store.Store) store.Store
	prefetch memgpt.Prefetch
}

type byteSource struct{ *rand.Rand }

func (b byteSource) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b.Uint32())
	}
	return len(p), nil
}

func newEnv(t testing.TB, m memgpt.Model, o options) *env {
	t.Helper()
	e := &env{t: t, now: time.Date(2026, 4, 6, 16, 51, 0, 0, time.UTC)}
	e.newID = kernel.NewIDs(byteSource{rand.New(rand.NewPCG(o.seed, 7))}, func() time.Time { return e.now })
	e.path = filepath.Join(t.TempDir(), "memgpt.db")
	base, err := sqlite.Open(t.Context(), sqlite.Config{Path: e.path, Unsafe: true})
	must(t, err)
	t.Cleanup(func() { _ = base.Close() })
	e.base, e.store = base, base
	if o.wrap != nil {
		e.store = o.wrap(base)
	}
	e.configure(m, o)
	e.makeAgent(o)
	return e
}

func (e *env) configure(m memgpt.Model, o options) {
	count, err := token.New(token.Config{})
	must(e.t, err)
	e.count = count
	search, err := retrieve.New(retrieve.Config{Index: e.store, Store: e.store})
	must(e.t, err)
	if o.window == 0 {
		o.window = 16384
	}
	e.config = kernel.Config{
		Store: e.store, Search: search, Analyzer: new(retrieve.Analyzer), Counter: count, Window: o.window, Tools: o.tools,
		Model:  func(memgpt.Agent) (memgpt.Model, error) { return m, nil },
		System: memtool.System, Tidying: memtool.Tidying, Normalize: retrieve.SameKey,
		Now: func() time.Time { return e.now }, NewID: e.newID,
	}
	if o.sum != nil {
		e.config.Summarizer = func(memgpt.Agent) (memgpt.Model, error) { return o.sum, nil }
	}
	e.kernel, err = kernel.New(e.config)
	must(e.t, err)
}

// reconfigure makes the kernel anew after a change of its configuration.
func (e *env) reconfigure(change func()) {
	e.t.Helper()
	change()
	var err error
	e.kernel, err = kernel.New(e.config)
	must(e.t, err)
}

func (e *env) makeAgent(o options) {
	persona := memgpt.Block{ID: e.newID("block"), Label: "persona", Limit: 2000, Value: "I am a test."}
	human := memgpt.Block{ID: e.newID("block"), Label: "human", Limit: 2000}
	e.agent = memgpt.Agent{ID: e.newID("agent"), Name: "default", Protocol: o.protocol, Policy: o.policy, Zone: o.zone,
		Prefetch: o.prefetch, Blocks: []string{persona.ID, human.ID}, Created: e.now}
	th := memgpt.Thread{ID: e.newID("conv"), Agent: e.agent.ID, Name: "main", Next: 1, Created: e.now}
	e.thread = th.ID
	_, err := e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Agents: []memgpt.Agent{e.agent},
		Blocks: []memgpt.Block{persona, human}, Threads: []memgpt.Thread{th}})
	must(e.t, err)
}

// accept commits an event as a host does.
func (e *env) accept(typ memgpt.EventType, m memgpt.Message) (memgpt.Event, error) {
	e.now = e.now.Add(time.Second)
	ev := memgpt.Event{ID: e.newID("event"), Agent: e.agent.ID, Thread: e.thread, Type: typ, Due: e.now, Created: e.now,
		Message: m, Turn: e.newID("turn")}
	done, err := e.store.Commit(e.t.Context(), &store.Commit{Now: e.now, Events: []memgpt.Event{ev},
		Acquire: &store.Lease{Thread: e.thread, Until: e.now.Add(time.Minute)}})
	e.lease = done.Lease
	return ev, err
}

// handle runs an accepted event to the end of its turn.
func (e *env) handle(ctx context.Context, ev memgpt.Event) (memgpt.Turn, error) {
	st, err := store.Load(ctx, e.store, "", e.thread)
	if err != nil {
		return memgpt.Turn{}, err
	}
	if e.lease == nil {
		return memgpt.Turn{}, fmt.Errorf("no lease")
	}
	w := &store.Work{State: st, Event: ev, Lease: *e.lease, TTL: time.Minute, Emit: func(u memgpt.Update) { e.seen = append(e.seen, u) },
		Turn: memgpt.Turn{ID: ev.Turn, Agent: ev.Agent, Thread: ev.Thread, Event: ev.ID, Type: ev.Type, State: memgpt.TurnQueued}}
	if turn, err := e.store.Turn(ctx, "", ev.Turn); err == nil {
		w.Turn = turn
	} else if memgpt.CodeOf(err) != memgpt.CodeNotFound {
		return memgpt.Turn{}, err
	}
	if e.arrive != nil {
		e.arrive(w)
	}
	err = e.kernel.Run(ctx, w)
	e.state = w.State
	return w.Turn, err
}

// say sends a user's message and returns what the agent said.
func (e *env) say(text string) (said []string, turn memgpt.Turn) {
	e.t.Helper()
	return e.event(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text))
}

func (e *env) system(typ memgpt.EventType, text string) (said []string, turn memgpt.Turn) {
	e.t.Helper()
	return e.event(typ, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, text))
}

func (e *env) event(typ memgpt.EventType, m memgpt.Message) (said []string, turn memgpt.Turn) {
	e.t.Helper()
	ev, err := e.accept(typ, m)
	must(e.t, err)
	before := len(e.seen)
	turn, err = e.handle(e.t.Context(), ev)
	must(e.t, err)
	return spoken(e.seen[before:]), turn
}

func spoken(updates []memgpt.Update) (said []string) {
	for _, u := range updates {
		if s, ok := u.(memgpt.Spoke); ok {
			said = append(said, s.Text)
		}
	}
	return said
}

// block returns the value of a block as it is stored.
func (e *env) block(label string) string {
	e.t.Helper()
	st, err := store.Load(e.t.Context(), e.base, "", e.thread)
	must(e.t, err)
	for _, b := range st.Blocks {
		if b.Label == label {
			return b.Value
		}
	}
	e.t.Fatalf("no block %q", label)
	return ""
}

func (e *env) log() []memgpt.Entry {
	e.t.Helper()
	entries, err := e.base.Entries(e.t.Context(), store.EntryRange{Thread: e.thread})
	must(e.t, err)
	return entries
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
