// Package eval asks agents questions whose evidence is known, and measures whether it reached main context and what came of
// it: the paper's experiments and today's memory benchmarks, beside baselines in the same window. It owns the suites and how
// their data is read, the run of a question through a real kernel or a baseline's one prompt, the measures, and the record of
// each question ([Record]). It ships no data, draws nothing and knows no storage engine and no model: a store and a model are
// handed in.
//
// What it measures. A question of a suite names the stored texts that hold its answer, its evidence. Each question is
// put to the agent in a conversation of its own, on a memory in which no other question was ever asked. A piece of
// evidence was in context when its whole text stood in a request of that turn: in the queue, or in the results of
// search and reading, by its id, all pages together; in a baseline's prompt, as a line of its own. Of a text that was never
// shown whole it is enough that one of the pieces holds the expected answer word for word. An agent's summaries, and what
// the agent itself said, don't count; a summary that is all a baseline has does where it holds the text or the answer.
//
// Answers are measured by what needs no model; a judge is a language model that is named, and without one there is no
// verdict of a judge.
//
// Retrieval measures the agent's search alone on the same data, without an agent's turn: how well evidence ranks. Contrast
// holds an agent that pages its memory against one search a turn.
package eval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"memgpt"
	"memgpt/memtool"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/token"
	"memgpt/tool"
)

// DefaultWindow is the context window in tokens where the configuration names none: far less than any suite's material.
const DefaultWindow = 4096

// DefaultK is how many hits the baseline of one search takes where the configuration names no number.
const DefaultK = 10

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
	// Policy is how agents manage their memory; the zero value is their defaults.
	Policy Policy
	// Live has the material of a suite of conversations held as one, and the questions asked in it: see live.go. Else it is
	// imported, and each question asked in a fresh conversation.
	Live bool
	// Ks is how many hits ModeRAG takes; with several it answers each question with each. nil is DefaultK.
	Ks []int
	// SummaryWords bounds the summary of ModeSummary; 0 is SummaryWords in the paper's suite, else what a quarter of the
	// window holds.
	SummaryWords int
	// Judge says whether answers are right; nil is nobody. A stand-in can't.
	Judge memgpt.Model
	// WrongGold lists questions that are reported with and without.
	WrongGold WrongGold
	// Embedder makes the vectors of queries, and Index, which is called when a case's memory is loaded, those of its texts.
	// Without both, search goes by words alone.
	Embedder tool.Embedder
	Index    func(ctx context.Context, s store.Store) error
	// Parallel is how many questions are asked at once; 0 is the number of CPUs. It does not change the results of a model
	// that answers equal requests equally.
	Parallel int
	// Seed decides what a suite draws by chance, and the resamples of the intervals. A model's own chance is the model's.
	Seed uint64
	// Clock times the questions; nil times none.
	Clock func() time.Time
	// Purse bounds what the run spends, and tells it; nil is one without bounds.
	Purse *Purse
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
	folds int // tokens of summaries that were made for the baseline
	live  LiveReport
	bill  bill
}

// spent adds to the tokens of summaries.
func (r *runner) spent(tokens int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.folds += tokens
}

// Run asks the questions of a suite and reports. It fails where a store does, where the context ends, where the purse holds no
// more (CodeBudget) or can't be held (CodeInvalid), and where the model failed in every question. Where some questions were
// done before, it returns their report beside the error, with Partial set.
func Run(ctx context.Context, cfg Config, s *Suite) (*Report, error) {
	if cfg.Open == nil || cfg.Model == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "run suite %s: it needs a store and a model", s.Name)
	}
	if err := cfg.settle(); err != nil {
		return nil, fmt.Errorf("run suite %s: %w", s.Name, err)
	}
	if s.Name == SuiteOpener && (cfg.Embedder == nil || cfg.Mode.baseline()) {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "run suite %s: an agent opens the conversation, and an encoder measures what it says; it needs"+
			" a mode of an agent (%s) and an embedder", s.Name, ModeMemGPT)
	}
	cases := s.pick(cfg.Limit)
	if cfg.Live && slices.ContainsFunc(cases, func(c Case) bool { return len(c.Lines) == 0 }) {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "run suite %s: it has no conversations that could be held live; leave live out, or take a suite of"+
			" conversations (%s)", s.Name, SuiteLocomo)
	}
	r, err := newRunner(cfg, s)
	if err != nil {
		return nil, err
	}
	r.total = countQuestions(cases) * len(cfg.Ks)
	if r.total == 0 {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "run suite %s: none of its %d questions names evidence", s.Name, s.Skipped())
	}
	records, err := r.all(ctx, cases)
	if err == nil {
		return r.report(records)
	}
	err = fmt.Errorf("run suite %s: %w", s.Name, err)
	rep, unfit := r.report(records)
	if unfit != nil {
		return nil, err // nothing is done of which anything could be said
	}
	rep.Partial, rep.Done, rep.Planned = true, len(records), r.total
	return rep, err
}

// newRunner returns what the questions of a run share. The configuration is settled.
func newRunner(cfg Config, s *Suite) (*runner, error) {
	counter, err := token.New(token.Config{})
	if err != nil {
		return nil, err
	}
	return &runner{cfg: cfg, suite: s, counter: counter, analyzer: new(retrieve.Analyzer), slots: make(chan struct{}, cfg.Parallel),
		tools: map[memtool.Form][]tool.Tool{}}, nil
}

// all runs the cases, several at once, and returns the records of the questions that are done, in order, also beside an error.
func (r *runner) all(ctx context.Context, cases []Case) (done []Record, err error) {
	results := make([][]*Record, len(cases))
	err = each(ctx, make(chan struct{}, r.cfg.Parallel), len(cases), func(ctx context.Context, i int) (err error) {
		if r.cfg.Purse.stopped() == nil {
			results[i], err = r.runCase(ctx, &cases[i])
		}
		return err
	})
	for _, list := range results {
		for _, rec := range list {
			if rec != nil {
				done = append(done, *rec)
			}
		}
	}
	if err == nil {
		err = r.cfg.Purse.stopped()
	}
	return done, err
}

// runCase loads the material of a case and asks its questions. Records of questions that are not done are nil.
func (r *runner) runCase(ctx context.Context, c *Case) (out []*Record, err error) {
	l, dispose, err := r.loaded(ctx, c)
	ks := r.cfg.Ks
	switch {
	case err != nil && r.cfg.Live && r.cfg.Purse.stopped() != nil: // in the midst of a live conversation
		return make([]*Record, len(c.Questions)*len(ks)), nil
	case err != nil:
		return nil, err
	}
	defer dispose(&err)
	out = make([]*Record, len(c.Questions)*len(ks))
	err = each(ctx, r.slots, len(out), func(ctx context.Context, i int) error {
		if r.cfg.Purse.stopped() != nil {
			return nil // what is under way is waited for, since it is paid
		}
		q, b := &c.Questions[i/len(ks)], new(bill)
		rec, err := l.answer(ctx, q, ks[i%len(ks)], b)
		if b.refused != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("ask question %s of %s: %w", q.ID, c.Name, err)
		}
		out[i] = &rec
		r.progress(b.live)
		return nil
	})
	return out, err
}

// loaded opens a store and loads a case into it. The function that it returns disposes of the store, and sets an error of
// that where there is none.
func (r *runner) loaded(ctx context.Context, c *Case) (*loader, func(*error), error) {
	s, dispose, err := r.cfg.Open(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("make a store for %s: %w", c.Name, err)
	}
	end := func(err *error) {
		if bad := dispose(); *err == nil && bad != nil {
			*err = fmt.Errorf("dispose of the store for %s: %w", c.Name, bad)
		}
	}
	l := &loader{r: r, c: c, store: s}
	if err := r.slot(ctx, func() error { return l.load(ctx) }); err != nil {
		err = fmt.Errorf("load %s: %w", c.Name, err)
		end(&err)
		return nil, nil, err
	}
	return l, end, nil
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

func (r *runner) progress(live bool) {
	r.cfg.Purse.done(live)
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
