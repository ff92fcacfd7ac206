package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"memgpt/kernel"
	"memgpt/store"
	"memgpt/tool"
)

// growth fills one conversation by import, and measures at each length.
func (r *runner) growth(ctx context.Context) error {
	return r.alone(ctx, texts(5, 500), func(t *talker) error { return r.grow(ctx, t) })
}

func (r *runner) grow(ctx context.Context, t *talker) error {
	lines := newLines(r.cfg.Now())
	for _, n := range r.size.lengths {
		full, err := r.fill(ctx, t, lines, n)
		if err != nil {
			return err
		}
		if !full {
			r.note("a log of %d messages was not filled in time", n)
			return nil
		}
		if err := r.settle(ctx, t); err != nil {
			return err
		}
		if err := r.at(ctx, t, n); err != nil {
			return err
		}
		if r.late(lateMeaning) {
			r.note("searches by vectors in a log of %d messages were not measured: too little time was left", n)
		} else if err := r.meaning(ctx, t, n); err != nil {
			return err
		}
	}
	return nil
}

// How settle tells that an index rests: it stays as it is for some looks.
const (
	settleLooks = 8
	settleEvery = 150 * time.Millisecond
	settleMost  = 10 * time.Minute
)

// settle waits until the index has taken in what a fill left behind: a log that grows by talk is never that far behind.
func (r *runner) settle(ctx context.Context, t *talker) error {
	began, before, same := r.cfg.Now(), store.Sizes{}, 0
	for same < settleLooks && r.since(began) < settleMost && !r.late(lateGrowth) {
		now, err := t.g.Store.Sizes(ctx, "", t.agent.ID)
		if err != nil {
			return err
		}
		if same++; now != before {
			before, same = now, 0
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(settleEvery):
		}
	}
	return nil
}

// lines makes the lines of an import, one a minute up to a fixed time.
type lines struct {
	w    *writer
	made int
	end  time.Time
}

func newLines(now time.Time) *lines { return &lines{w: newWriter(6), end: now} }

// between is the time from one line to the next: a million take two years.
const between = time.Minute

func (l *lines) next(n int) []kernel.Line {
	out := make([]kernel.Line, n)
	for i := range out {
		speaker := "user"
		if l.made%2 == 1 {
			speaker = "assistant"
		}
		out[i] = kernel.Line{Speaker: speaker, Text: l.w.message(), Time: l.end.Add(time.Duration(l.made-1_000_000) * between),
			ID: "line-" + strconv.Itoa(l.made)}
		l.made++
	}
	return out
}

// importLines is how many lines are imported at once.
const importLines = 1000

// fill imports lines until there are n. It reports false when the time ran out before.
func (r *runner) fill(ctx context.Context, t *talker, l *lines, n int) (bool, error) {
	for l.made < n {
		if r.late(lateGrowth) {
			return false, nil
		}
		batch := l.next(min(importLines, n-l.made))
		err := t.g.host.Do(ctx, "", t.agent.ID, t.th.ID, func(ctx context.Context, w *store.Work) error {
			done, err := t.g.kernel.Import(ctx, w, batch)
			if err == nil && done.Added != len(batch) {
				err = fmt.Errorf("%d of %d lines came in", done.Added, len(batch))
			}
			return err
		})
		if err != nil {
			return false, fmt.Errorf("fill the log: %w", err)
		}
	}
	return true, nil
}

// at measures with a log of n messages. The steps come first: they fill the queue.
func (r *runner) at(ctx context.Context, t *talker, n int) error {
	key, say := strconv.Itoa(n), texts(7, 100)
	var took []time.Duration
	for range r.size.steps {
		start := r.cfg.Now()
		if _, err := t.step(ctx, say()); err != nil {
			return err
		}
		took = append(took, r.since(start))
	}
	compile, err := r.compiles(ctx, t)
	if err != nil {
		return err
	}
	search, err := r.searches(ctx, t)
	if err != nil {
		return err
	}
	r.out.StepByLog[key], r.out.CompileByLog[key], r.out.SearchByLog[key] = median(took), median(compile), median(search)
	return nil
}

// compiles measures how long the prompt of the conversation, as its owner keeps it, takes to compile.
func (r *runner) compiles(ctx context.Context, t *talker) (took []time.Duration, err error) {
	err = t.g.host.Do(ctx, "", t.agent.ID, t.th.ID, func(_ context.Context, w *store.Work) error {
		for range r.size.searches {
			start := r.cfg.Now()
			if _, err := t.g.kernel.Inspect(w.State); err != nil {
				return err
			}
			took = append(took, r.since(start))
		}
		return nil
	})
	return took, err
}

// pageSize is the hits of a page of results (memgpt.Policy's default).
const pageSize = 5

func (r *runner) searches(ctx context.Context, t *talker) (took []time.Duration, err error) {
	w, found := newWriter(8), 0
	for range r.size.searches + 1 {
		q := tool.Query{Owner: t.agent.ID, Text: w.question(), Size: pageSize}
		start := r.cfg.Now()
		hits, err := t.g.Search.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		took = append(took, r.since(start))
		found += len(hits.List)
	}
	if found == 0 {
		return nil, errors.New("no search found anything")
	}
	return took[1:], nil // the first one reads what the others find in the cache
}
