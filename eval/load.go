package eval

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/token"
	"memgpt/tool"
)

// loader holds one case in a store: the agent, its memory, and the empty conversation in which each question is asked.
type loader struct {
	r     *runner
	c     *Case
	store store.Store
	agent memgpt.Agent
	main  string // ID of the conversation into which lines are imported
	asked memgpt.Thread
	lived map[string]string // IDs of the messages that lines became in a live conversation; nil where they were imported

	folding sync.Mutex // guards what follows
	folded  *string    // the recursive summary of ModeSummary; nil until it is made
}

const (
	mainThread  = "main"
	askedThread = "questions"
	blockLimit  = 2000      // characters, as the first implementation
	leaseTime   = time.Hour // nobody else is there to take a lease
)

// load makes the agent and fills its memory.
func (l *loader) load(ctx context.Context) error {
	clock := &clock{at: l.c.Now}
	id := l.ids(clock, "load")
	main, err := l.makeAgent(ctx, clock, id)
	if err != nil {
		return err
	}
	if err := l.storePassages(ctx, clock); err != nil {
		return err
	}
	if l.r.cfg.Live {
		if err := l.playLive(ctx, id); err != nil {
			return err
		}
	} else if len(l.c.Lines) > 0 {
		if err := l.importLines(ctx, clock, id, main); err != nil {
			return err
		}
	}
	if l.r.cfg.Index != nil && l.r.cfg.Mode.Looks() {
		if err := l.r.cfg.Index(ctx, l.store); err != nil {
			return fmt.Errorf("make the vectors of %s: %w", l.c.Name, err)
		}
	}
	if l.r.cfg.Live {
		return nil
	}
	return l.openThread(ctx, clock, id)
}

// ids is a source of ids that depends on the suite, the case and a name alone.
func (l *loader) ids(clock *clock, name string) func(string) string {
	seed := sha256.Sum256([]byte(l.r.suite.Name + "\x00" + l.c.Name + "\x00" + name))
	return kernel.NewIDs(rand.NewChaCha8(seed), clock.now)
}

// clock is an injected clock: each reading is a millisecond later, so that what happens has an order and runs repeat.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

// settle goes on to the next tenth of a second. How often the clock is read while a model is asked depends on whether it was
// asked once or again, or its answer was kept; what comes after must not.
func (c *clock) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	const step = 100 * time.Millisecond
	c.at = c.at.Add(step - 1).Truncate(step)
}

func (l *loader) makeAgent(ctx context.Context, clock *clock, id func(string) string) (memgpt.Thread, error) {
	now, who := clock.now(), l.c.Persona
	if l.r.cfg.Live && who == talkPersona {
		who = livePersona
	}
	persona := memgpt.Block{ID: id("block"), Label: "persona", Value: who, Limit: blockLimit, Description: "Who you are and what you do."}
	human := memgpt.Block{ID: id("block"), Label: "human", Value: l.c.Human, Limit: blockLimit, Description: "Key facts about the person you talk with."}
	l.agent = memgpt.Agent{ID: id("agent"), Name: "eval", Window: l.r.cfg.agentWindow(), Blocks: []string{persona.ID, human.ID}, Created: now,
		Prefetch: l.r.cfg.prefetch()}
	l.r.cfg.Policy.apply(&l.agent)
	main := memgpt.Thread{ID: id("conv"), Agent: l.agent.ID, Name: mainThread, Next: 1, Created: now}
	_, err := l.store.Commit(ctx, &store.Commit{Now: now, Agents: []memgpt.Agent{l.agent}, Blocks: []memgpt.Block{persona, human},
		Threads: []memgpt.Thread{main}})
	l.agent.Version, l.main = 1, main.ID
	return main, err
}

// storePassages puts the case's passages into archival storage, as the agent's owner would.
func (l *loader) storePassages(ctx context.Context, clock *clock) error {
	if len(l.c.Passages) == 0 {
		return nil
	}
	now := clock.now()
	commit := &store.Commit{Now: now}
	for _, p := range l.c.Passages {
		terms, length := l.r.analyzer.Analyze(store.IndexText{Text: p.Text, Time: now})
		commit.Passages = append(commit.Passages, memgpt.Passage{ID: p.ID, Owner: l.agent.ID, Text: p.Text, Time: now,
			Key: memgpt.HashKey(strings.ToLower(strings.Join(strings.Fields(p.Text), " "))), Cause: memgpt.Cause{Origin: memgpt.OriginOwner}})
		commit.Docs = append(commit.Docs, store.Doc{Owner: l.agent.ID, ID: p.ID, Kind: memgpt.KindPassage, Time: now, Length: length,
			Terms: terms})
	}
	_, err := l.store.Commit(ctx, commit)
	return err
}

// importLines imports the case's lines into the agent's main conversation.
func (l *loader) importLines(ctx context.Context, clock *clock, id func(string) string, main memgpt.Thread) error {
	now := clock.now()
	got, err := l.store.Commit(ctx, &store.Commit{Now: now, Acquire: &store.Lease{Thread: main.ID, Until: now.Add(leaseTime)}})
	if err != nil {
		return err
	}
	if got.Lease == nil {
		return memgpt.Errorf(memgpt.CodeBusy, "import: the new conversation is in other hands")
	}
	st, err := store.Load(ctx, l.store, "", main.ID)
	if err != nil {
		return err
	}
	k, err := l.kernel(l.store, l.r.cfg.Model, clock.now, id)
	if err != nil {
		return err
	}
	_, err = k.Import(ctx, &store.Work{State: st, Lease: *got.Lease, TTL: leaseTime}, l.c.Lines)
	if err != nil {
		return err
	}
	_, err = l.store.Commit(ctx, &store.Commit{Now: clock.now(), Lease: got.Lease, Release: true})
	return err
}

// openThread makes the empty conversation for questions, and states in it what lies outside, as a host does.
func (l *loader) openThread(ctx context.Context, clock *clock, id func(string) string) error {
	now := clock.now()
	t := memgpt.Thread{ID: id("conv"), Agent: l.agent.ID, Name: askedThread, Next: 1, Created: now}
	if _, err := l.store.Commit(ctx, &store.Commit{Now: now, Threads: []memgpt.Thread{t}}); err != nil {
		return err
	}
	out, err := l.store.Outside(ctx, "", l.agent.ID, t.ID)
	if err != nil {
		return err
	}
	t.Version, t.Summary.Outside, t.Summary.Time = 1, out, now
	if _, err := l.store.Commit(ctx, &store.Commit{Now: now, Threads: []memgpt.Thread{t}}); err != nil {
		return err
	}
	l.asked, err = l.store.Thread(ctx, "", t.ID)
	return err
}

// kernel wires a kernel on a store.
func (l *loader) kernel(s store.Store, m memgpt.Model, now func() time.Time, id func(string) string) (*kernel.Kernel, error) {
	search, err := l.searcher(s, now)
	if err != nil {
		return nil, err
	}
	cfg := kernel.Config{Store: s, Search: search, Analyzer: l.r.analyzer, Counter: ownCounter{l.r.counter, new(token.Counter)}, Now: now, NewID: id,
		Window: l.r.cfg.agentWindow(), NoSummary: l.r.cfg.Policy.Summary == SummaryOff, Model: func(memgpt.Agent) (memgpt.Model, error) { return m, nil }, System: l.r.functions}
	if m.Capabilities().StandIn {
		cfg.Counter = plainCounter{l.r.counter}
	}
	if l.r.cfg.Mode == ModeNone {
		cfg.Search = nothing{}
	}
	return kernel.New(cfg)
}

// searcher is the search that agents have, less the parts that off names.
func (l *loader) searcher(s store.Store, now func() time.Time, off ...string) (*retrieve.Searcher, error) {
	wired := retrieve.Config{Index: s, Store: s, Analyzer: l.r.analyzer, Now: now, Off: off}
	if l.r.cfg.Embedder != nil {
		wired.Embedders = []tool.Embedder{l.r.cfg.Embedder}
	}
	return retrieve.New(wired)
}

// ownCounter counts as all do, and learns from the reports of one kernel alone: what one question teaches must not depend on
// which others are asked beside it, or no run could be repeated.
type ownCounter struct {
	*token.Counter
	learned *token.Counter
}

// Factor implements kernel.Counter.
func (c ownCounter) Factor(model string) float64 { return c.learned.Factor(model) }

// Observe implements kernel.Counter.
func (c ownCounter) Observe(model string, counted, reported int) {
	c.learned.Observe(model, counted, reported)
}

// Calibrate implements kernel.Counter.
func (c ownCounter) Calibrate(model string, factor float64) { c.learned.Calibrate(model, factor) }

// plainCounter learns nothing from reports: a stand-in's are estimates.
type plainCounter struct{ *token.Counter }

// Observe does nothing.
func (plainCounter) Observe(string, int, int) {}

// functions are the memory functions that the model is given, made once for all questions; without search those are
// missing that bring stored texts back.
func (r *runner) functions(compact, native bool) ([]tool.Tool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	form := memtool.Form{Compact: compact, Native: native}
	if made, ok := r.tools[form]; ok {
		return made, nil
	}
	all, err := memtool.Tools(form)
	if err != nil {
		return nil, err
	}
	if !r.cfg.Mode.searches() {
		all = slices.DeleteFunc(all, func(t tool.Tool) bool { return t.Search })
	}
	r.tools[form] = all
	return all, nil
}

// nothing is a search that finds nothing.
type nothing struct{}

// Alike returns none.
func (nothing) Alike(context.Context, string, string, string, int) ([]tool.Alike, error) {
	return nil, nil
}

// Search returns an empty page.
func (nothing) Search(_ context.Context, q tool.Query) (tool.Hits, error) {
	return tool.Hits{Page: q.Page, Size: q.Size}, nil
}
