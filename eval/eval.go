// Package eval asks agents questions whose evidence is known, and measures whether it reached main context: the paper's
// experiments and today's memory benchmarks. It owns the suites and how their data is read, the run of a question
// through a real kernel, and the scores. It ships no data, draws nothing and knows no storage engine and no model: a
// store and a model are handed in.
//
// What it measures. A question of a suite names the stored texts that hold its answer, its evidence. Each question is
// put to the agent in a conversation of its own, on a memory in which no other question was ever asked. A piece of
// evidence was in context when its whole text stood in a request of that turn: in the queue, or in the results of
// search and reading, by its id, all pages together. Of a text that was never shown whole it is enough that one of the
// pieces holds the expected answer word for word. Summaries, and what the agent itself said, don't count.
//
// Retrieval measures the agent's search alone on the same data, without an agent's turn: how well evidence ranks.
package eval

import (
	"context"
	"fmt"
	"sync"

	"memgpt"
	"memgpt/memtool"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/token"
	"memgpt/tool"
)

// DefaultWindow is the context window in tokens where the configuration names none: far less than any suite's material.
const DefaultWindow = 4096

// Config says how a suite is run.
type Config struct {
	// Open makes a new, empty store and returns how to dispose of it. It is called once for each Case that is asked about,
	// from several goroutines.
	Open func(ctx context.Context) (s store.Store, dispose func() error, err error)
	// Model answers. It must be safe for concurrent use.
	Model memgpt.Model
	// Window is the context window in tokens; 0 is DefaultWindow.
	Window int
	// Limit bounds the questions, taken evenly from all; in suites of levels it holds for each level. 0 is all.
	Limit int
	// Mode is who looks into memory; "" is ModeMemGPT.
	Mode Mode
	// Budget bounds in tokens what the system hands over in ModePrefetch and ModeBoth; 0 is the kernel's default.
	Budget int
	// Embedder makes the vectors of queries, and Index, which is called when a case's memory is loaded, those of its texts.
	// Without both, search goes by words alone.
	Embedder tool.Embedder
	Index    func(ctx context.Context, s store.Store) error
	// Parallel is how many questions are asked at once; 0 is the number of CPUs. It does not change the results of a model
	// that answers equal requests equally.
	Parallel int
	// Progress is told how many questions were asked, one call at a time; nil is nobody.
	Progress func(done, total int)
}

// runner is what the questions of a run share.
type runner struct {
	cfg      Config
	suite    *Suite
	counter  *token.Counter
	analyzer *retrieve.Analyzer
	slots    chan struct{} // one for each question or loading under way

	mu    sync.Mutex // guards what follows
	tools map[memtool.Form][]tool.Tool
	done  int
	total int
}

// Run asks the questions of a suite and reports. It fails where a store does, where the context ends, and where the model
// failed in every question.
func Run(ctx context.Context, cfg Config, s *Suite) (*Report, error) {
	if cfg.Open == nil || cfg.Model == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "run suite %s: it needs a store and a model", s.Name)
	}
	if err := cfg.settle(); err != nil {
		return nil, fmt.Errorf("run suite %s: %w", s.Name, err)
	}
	counter, err := token.New(token.Config{})
	if err != nil {
		return nil, err
	}
	cases := s.pick(cfg.Limit)
	r := &runner{cfg: cfg, suite: s, counter: counter, analyzer: new(retrieve.Analyzer),
		slots: make(chan struct{}, cfg.Parallel), total: countQuestions(cases),
		tools: map[memtool.Form][]tool.Tool{}}
	if r.total == 0 {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "run suite %s: none of its %d questions names evidence", s.Name, s.Skipped())
	}
	outcomes, err := r.all(ctx, cases)
	if err != nil {
		return nil, fmt.Errorf("run suite %s: %w", s.Name, err)
	}
	return r.report(outcomes)
}

// all runs the cases, several at once, and returns their outcomes in order.
func (r *runner) all(ctx context.Context, cases []Case) ([]Outcome, error) {
	results := make([][]Outcome, len(cases))
	err := each(ctx, make(chan struct{}, r.cfg.Parallel), len(cases), func(ctx context.Context, i int) (err error) {
		results[i], err = r.runCase(ctx, &cases[i])
		return err
	})
	var out []Outcome
	for _, list := range results {
		out = append(out, list...)
	}
	return out, err
}

// runCase loads the material of a case and asks its questions.
func (r *runner) runCase(ctx context.Context, c *Case) (out []Outcome, err error) {
	s, dispose, err := r.cfg.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("make a store for %s: %w", c.Name, err)
	}
	defer func() {
		if bad := dispose(); err == nil && bad != nil {
			err = fmt.Errorf("dispose of the store for %s: %w", c.Name, bad)
		}
	}()
	l := loader{r: r, c: c, store: s}
	if err := r.slot(ctx, func() error { return l.load(ctx) }); err != nil {
		return nil, fmt.Errorf("load %s: %w", c.Name, err)
	}
	out = make([]Outcome, len(c.Questions))
	err = each(ctx, r.slots, len(c.Questions), func(ctx context.Context, i int) (err error) {
		if out[i], err = l.ask(ctx, &c.Questions[i]); err != nil {
			return fmt.Errorf("ask question %s of %s: %w", c.Questions[i].ID, c.Name, err)
		}
		r.progress()
		return nil
	})
	return out, err
}

// slot runs f when a slot is free.
func (r *runner) slot(ctx context.Context, f func() error) error {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.slots }()
	return f()
}

func (r *runner) progress() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if r.cfg.Progress != nil {
		r.cfg.Progress(r.done, r.total)
	}
}

// each calls f with 0 to n-1, each in a goroutine that holds a slot, and waits for all. The first error ends the context
// of the others and is returned.
func each(ctx context.Context, slots chan struct{}, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}
