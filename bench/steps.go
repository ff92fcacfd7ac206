package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// warm is how many steps go before a measurement: caches fill and the queue is as long as it will be.
const warm = 50

// steps measures idle memory, start-up, and the step beside its bare commits, all on one store.
func (r *runner) steps(ctx context.Context) error {
	return r.alone(ctx, texts(1, 500), func(t *talker) error { return r.stepsOf(ctx, t) })
}

func (r *runner) stepsOf(ctx context.Context, t *talker) (err error) {
	say := texts(2, 500)
	if _, err = t.step(ctx, say()); err != nil {
		return err
	}
	if r.out.RSS, err = resident(); err != nil {
		return err
	}
	if err = r.startup(ctx, t.g.Site); err != nil {
		return err
	}
	step, pair, err := r.pairs(ctx, t, say, r.size.pairs, warm)
	if len(step) < r.size.pairs {
		r.note("the medians of step and commits are of %d instead of %d: this machine is slow or busy", len(step), r.size.pairs)
	}
	r.out.StepMS, r.out.PairMS = median(step), median(pair)
	if r.out.PairMS > 0 {
		r.out.Ratio = r.out.StepMS / r.out.PairMS
	}
	return err
}

func (r *runner) startup(ctx context.Context, s *Site) error {
	if r.cfg.Startup == nil {
		r.note("start-up was not measured: there is no program to start")
		return nil
	}
	var took []time.Duration
	for range r.size.starts + 1 {
		start := r.cfg.Now()
		if err := r.cfg.Startup(ctx, s); err != nil {
			return fmt.Errorf("start the program: %w", err)
		}
		took = append(took, r.since(start))
	}
	r.out.StartupMS = median(took[1:]) // the first one reads the program from the disk
	return nil
}

// block is how many steps and then pairs are taken in turn: close enough that both meet the same load, and enough that
// the switch of connections, at which SQLite gives up its pages and which no store in use makes, does not count.
const block = 10

// pairs takes n steps and pairs of bare commits in turn, with the same texts, after some more to
// warm up.
func (r *runner) pairs(ctx context.Context, t *talker, say func() string, n, warm int) (step, pair []time.Duration, err error) {
	for i := 0; i < warm+n && (len(step) <= warm || !r.late(latePairs)); i += block {
		steps, pairs, err := r.block(ctx, t, say, min(block, warm+n-i))
		if err != nil {
			return nil, nil, err
		}
		if i >= warm {
			step, pair = append(step, steps...), append(pair, pairs...)
		}
	}
	return step, pair, nil
}

func (r *runner) block(ctx context.Context, t *talker, say func() string, n int) (step, pair []time.Duration, err error) {
	texts, answers := make([]string, n), make([]string, n)
	for i := range n {
		texts[i] = say()
		start := r.cfg.Now()
		if answers[i], err = t.step(ctx, texts[i]); err != nil {
			return nil, nil, err
		}
		step = append(step, r.since(start))
	}
	for i := range n {
		start := r.cfg.Now()
		if err = t.g.Pair(ctx, texts[i], answers[i]); err != nil {
			return nil, nil, err
		}
		pair = append(pair, r.since(start))
	}
	return step, pair, nil
}

// throughput counts steps per second of many agents on one store.
func (r *runner) throughput(ctx context.Context) error {
	for _, n := range r.size.rates {
		rate, err := r.rate(ctx, n)
		if err != nil {
			return fmt.Errorf("%d agents: %w", n, err)
		}
		r.out.StepsPerSecond[strconv.Itoa(n)] = rate
	}
	return nil
}

func (r *runner) rate(ctx context.Context, n int) (rate float64, err error) {
	g, err := r.rig(ctx, r.cfg.Model(texts(3, 500)), 0, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.close(ctx)) }()
	list := make([]*talker, n)
	if err = each(n, func(i int) (err error) {
		if list[i], err = g.talker(ctx, fmt.Sprint("agent ", i)); err == nil {
			_, err = list[i].step(ctx, "hello")
		}
		return err
	}); err != nil {
		return 0, err
	}
	say := texts(4, 500)
	var done atomic.Int64
	start := r.cfg.Now()
	err = each(n, func(i int) error {
		for r.since(start) < r.size.rate {
			if _, err := list[i].step(ctx, say()); err != nil {
				return err
			}
			done.Add(1)
		}
		return nil
	})
	return float64(done.Load()) / r.since(start).Seconds(), err
}

// each calls do for 0 to n-1 at once and waits for all.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the first will do; they are often thousands of one kind
		}
	}
	return nil
}
