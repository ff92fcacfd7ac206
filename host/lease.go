package host

import (
	"context"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
)

// keeper keeps a lease alive while a turn runs, by a timer instead of a goroutine: ten thousand turns may wait at once.
type keeper struct {
	h    *Host
	lost context.CancelCauseFunc // ends the turn's context
	due  func(int)               // takes store.Committed.Pending of each renewal

	mu      sync.Mutex // held in a renewal, so that rest waits for it
	lease   store.Lease
	timer   *time.Timer
	over    bool
	skipped bool // the next renewal is left out
}

// keepAlive begins to renew a lease at a third of its time. If that fails to its end, or another has taken it, lost is
// called with a cause of code memgpt.CodeLeaseLost. due is told how many events wait.
func (h *Host) keepAlive(ctx context.Context, lease store.Lease, lost context.CancelCauseFunc, due func(int)) *keeper {
	k := &keeper{h: h, lost: lost, due: due, lease: lease}
	ctx = context.WithoutCancel(ctx) // a cancelled turn needs its lease for its last commit
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(h.cfg.LeaseTTL/3, func() { k.renew(ctx) })
	return k
}

func (k *keeper) renew(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	if k.skipped {
		k.skipped = false
		k.timer.Reset(k.h.cfg.LeaseTTL / 3)
		return
	}
	now := k.h.cfg.Now()
	next := k.lease
	next.Until = now.Add(k.h.cfg.LeaseTTL)
	done, err := k.h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Lease: &next})
	again := k.h.cfg.LeaseTTL / 3
	switch {
	case err == nil:
		k.lease = next
		k.due(done.Pending)
	case memgpt.CodeOf(err) == memgpt.CodeLeaseLost:
		k.fail(err)
		return
	case !k.h.cfg.Now().Before(k.lease.Until):
		k.fail(memgpt.Errorf(memgpt.CodeLeaseLost, "keep a lease, which ran out: %w", err))
		return
	default:
		again = min(again/4, k.lease.Until.Sub(now))
	}
	k.timer.Reset(again)
}

// fail ends the turn. Callers hold k.mu.
func (k *keeper) fail(err error) {
	k.over = true
	k.lost(err)
}

// ends returns the end of the lease as this holder knows it.
func (k *keeper) ends() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease.Until
}

// skip leaves the next renewal out, since the lease is about to be given back: a renewal after that would take it again.
func (k *keeper) skip() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.skipped = true
}

// rest ends the renewals and returns the lease as it stands.
func (k *keeper) rest() store.Lease {
	k.timer.Stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	return k.lease
}
