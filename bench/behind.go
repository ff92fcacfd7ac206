package bench

import (
	"context"
	"errors"
	"time"
)

// How long steps are taken in turn with the making of vectors behind them and without: it gives way to steps for two
// seconds at a time, so less would show nothing.
const (
	behindTime = 5 * time.Second
	aloneTime  = time.Second
)

// behind compares steps beside which vectors are made with steps alone, in turn on one store. What comes while it rests is
// made up for when it runs.
func (r *runner) behind(ctx context.Context) error {
	if r.cfg.Behind == nil {
		r.note("steps with the making of vectors behind them were not measured: there is no encoder")
		return nil
	}
	if r.late(lateWaiting) {
		r.note("steps with the making of vectors behind them were not measured: too little time was left")
		return nil
	}
	return r.alone(ctx, texts(7, 500), func(t *talker) error { return r.stepsBefore(ctx, t) })
}

// stepsBefore takes steps in turn with and without the making of vectors behind them.
func (r *runner) stepsBefore(ctx context.Context, t *talker) error {
	say := texts(8, 500)
	var with, alone []time.Duration
	for range r.size.behind {
		stop, err := r.cfg.Behind(ctx, t.g.Site, t.g.host.Busy)
		if err != nil {
			return err
		}
		if with, err = r.stepsFor(ctx, t, say, r.size.share(behindTime), with); err != nil {
			return errors.Join(err, stop())
		}
		if err = stop(); err != nil {
			return err
		}
		if alone, err = r.stepsFor(ctx, t, say, r.size.share(aloneTime), alone); err != nil {
			return err
		}
	}
	through, err := t.g.Store.Embedded(ctx, "", t.agent.ID)
	if err != nil {
		return err
	}
	for _, n := range through {
		r.out.Embedded = n.Through
	}
	if base := median(alone); base > 0 {
		r.out.BehindRatio = median(with) / base
	}
	return nil
}

// stepsFor takes steps for a while and adds what each took.
func (r *runner) stepsFor(ctx context.Context, t *talker, say func() string, most time.Duration, took []time.Duration) ([]time.Duration, error) {
	for began := r.cfg.Now(); r.since(began) < most; {
		start := r.cfg.Now()
		if _, err := t.step(ctx, say()); err != nil {
			return took, err
		}
		took = append(took, r.since(start))
	}
	return took, nil
}
