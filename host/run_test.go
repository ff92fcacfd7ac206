package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/store"
)

// sleep is a model call that ends with its context.
func sleep(d time.Duration) func(context.Context, *store.Work) error {
	return func(ctx context.Context, _ *store.Work) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func TestTwoHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.kernel.think, r.kernel.steps = sleep(40*time.Millisecond), 2
		other := r.another(func(c *Config) { c.Cached = -1 })
		r.must(r.host.Start(r.ctx))
		r.must(other.Start(r.ctx))
		var turns []*Turn
		want := map[string]int{}
		threads := []memgpt.Thread{r.main}
		for i := range 9 {
			_, thread := r.makeAgent(fmt.Sprint("a", i), AgentTemplate{})
			threads = append(threads, thread)
		}
		for i := range 20 {
			for j, thread := range threads {
				h := []*Host{r.host, other}[(i+j)%2]
				m := r.message(fmt.Sprint(i))
				m.Agent, m.Thread = thread.Agent, thread.ID
				turns = append(turns, r.must2(h.Send(r.ctx, m)))
				want[thread.ID]++
			}
			time.Sleep(17 * time.Millisecond)
		}
		for _, turn := range turns {
			got := r.wait(turn, memgpt.TurnDone)
			if said := turn.Said(); len(said) != 2 || got.Steps != 2 {
				t.Errorf("turn of %d steps said %q, want both steps' words once", got.Steps, said)
			}
		}
		for id, n := range want {
			ran := r.kernel.ran(id)
			if len(ran) != n {
				t.Errorf("%d turns ran, want %d: %v", len(ran), n, ran)
			}
			for i, text := range ran {
				if text != fmt.Sprint(i) {
					t.Errorf("order %v", ran)
					break
				}
			}
			if got := len(r.store.entries[id]); got != 3*n {
				t.Errorf("%d entries for %d turns", got, n)
			}
		}
		synctest.Wait()
		r.free()
		if n := len(other.convs); n != 0 {
			t.Errorf("%d conversations are kept without a cache", n)
		}
		r.close(other)
	})
}

func TestDeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		dead := r.another(func(c *Config) { c.Retries = 1000 })
		stuck := &kernel{t: t, store: r.store, busy: map[string]bool{}}
		stuck.think = func(ctx context.Context, w *store.Work) error { <-ctx.Done(); return context.Cause(ctx) }
		dead.cfg.Kernel, dead.cfg.Store = stuck, &broken{memory: r.store}
		lost := r.must2(dead.Send(r.ctx, r.message("lost")))
		synctest.Wait()
		start := time.Now()
		r.must(r.host.Start(r.ctx))
		turn := r.send("after")
		r.wait(turn, memgpt.TurnDone)
		r.ran("lost", "after")
		r.wait(lost, memgpt.TurnDone) // it was cut off from writing only
		if took := time.Since(start); took < 25*time.Second || took > 40*time.Second {
			t.Errorf("took over after %v, want the lease's time", took)
		}
		r.close(dead)
	})
}

func TestDeadHolderIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		e, err := r.host.Event(r.message("lost"))
		r.must(err)
		_, err = r.store.Commit(r.ctx, &store.Commit{Now: time.Now(), Events: []memgpt.Event{e}})
		r.must(err)
		r.store.leases[r.main.ID] = store.Lease{Thread: r.main.ID, Number: 1, Until: time.Now().Add(30 * time.Second)}
		r.must(r.host.Start(r.ctx))
		time.Sleep(45 * time.Second) // nothing changes in the store but the time
		r.ran("lost")
		r.close()
	})
}

// broken lets nothing through but acceptance: a process that is cut off from the store.
type broken struct{ *memory }

var errGone = errors.New("gone")

func (b *broken) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	if c.Acquire == nil || len(c.Events) == 0 {
		return store.Committed{}, errGone
	}
	return b.memory.Commit(ctx, c)
}

func TestLostLeaseEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		attempts := 0
		r.kernel.think = func(ctx context.Context, w *store.Work) error {
			attempts++
			if attempts == 1 {
				w.Emit(memgpt.Streamed{Step: 1})
				r.store.mu.Lock() // another process takes the conversation
				r.store.leases[r.main.ID] = store.Lease{Thread: r.main.ID, Number: 7, Until: time.Now().Add(time.Minute)}
				r.store.mu.Unlock()
				<-ctx.Done()
				return ctx.Err()
			}
			if end := time.Until(w.Ends()); end != 30*time.Second {
				t.Errorf("the lease lasts %v", end)
			}
			return sleep(11*time.Second)(ctx, w)
		}
		start := time.Now()
		turn := r.send("hi")
		got := kinds(turn.Updates(r.ctx))
		want := []string{"memgpt.TurnStarted", "memgpt.Streamed", "memgpt.StepDiscarded", "memgpt.StepCommitted", "memgpt.Spoke", "memgpt.TurnEnded"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("updates (-want +got):\n%s", diff)
		}
		if attempts != 2 {
			t.Errorf("%d attempts, want none under the lease that was lost", attempts)
		}
		if took := time.Since(start).Round(time.Second); took < 71*time.Second || took > 75*time.Second {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		r.free()
		r.close()
	})
}

// lingering is a Runner that takes its time after the last commit.
type lingering struct{ *kernel }

func (l lingering) Run(ctx context.Context, w *store.Work) error {
	err := l.kernel.Run(ctx, w)
	time.Sleep(19 * time.Second)
	return err
}

func TestRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.host.cfg.Kernel = lingering{r.kernel}
		r.kernel.think = func(ctx context.Context, w *store.Work) error {
			<-ctx.Done()
			time.Sleep(95 * time.Second) // a last tool call of a cancelled turn
			if left := time.Until(w.Ends()); left < 20*time.Second || left > 30*time.Second {
				t.Errorf("%v of the lease are left", left)
			}
			return nil
		}
		turn := r.send("long")
		time.Sleep(time.Minute)
		r.must(r.host.Cancel(r.ctx, "", turn.ID))
		r.wait(turn, memgpt.TurnCancelled)
		time.Sleep(18 * time.Second)
		r.free2() // it was given back, and no renewal took it again
		r.close()
	})
}

func TestLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var ended time.Time
		start := time.Now()
		r.kernel.think = func(ctx context.Context, w *store.Work) error {
			if ended.IsZero() {
				<-ctx.Done()
				ended = time.Now()
				return ctx.Err()
			}
			return nil
		}
		r.store.fail = func(c *store.Commit) error {
			if c.Lease != nil && ended.IsZero() {
				return memgpt.Errorf(memgpt.CodeBusy, "locked")
			}
			return nil
		}
		turn := r.send("hi")
		r.wait(turn, memgpt.TurnDone)
		if took := ended.Sub(start); took < 30*time.Second || took > 33*time.Second {
			t.Errorf("the turn ended %v after its lease was taken", took)
		}
		r.close()
	})
}

func TestStoreFailures(t *testing.T) {
	for _, code := range []memgpt.Code{memgpt.CodeBusy, memgpt.CodeConflict} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			fails := 3
			r.store.fail = func(c *store.Commit) error {
				if len(c.Consume) > 0 && fails > 0 {
					fails--
					return memgpt.Errorf(code, "no")
				}
				return nil
			}
			r.wait(r.send("a"), memgpt.TurnDone)
			fails = 100
			_, err := r.send("b").Wait(r.ctx)
			if memgpt.CodeOf(err) != code || len(r.pendingEvents()) != 1 || fails != 94 || len(r.reports) != 1 {
				t.Errorf("wait: %v after %d failures, %d pending", err, 100-fails, len(r.pendingEvents()))
			}
			synctest.Wait()
			r.free2()
			fails = 0
			r.wait(r.send("c"), memgpt.TurnDone)
			r.ran("a", "b", "c")
			r.close()
		})
	}
}

// free2 checks that no lease is held while a conversation rests.
func (r *rig) free2() {
	r.t.Helper()
	if l := r.store.leases[r.main.ID]; l.Until.After(time.Now()) {
		r.t.Error("the lease is held while nothing runs")
	}
}

func TestKernelLeavesATurnOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Kernel = idle{} })
		if _, err := r.send("a").Wait(r.ctx); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("wait: %v", err)
		}
		r.close()
	})
}

type idle struct{}

func (idle) Run(context.Context, *store.Work) error { return nil }

func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.kernel.steps = 2
		at := 1
		calls := 0
		r.kernel.think = func(context.Context, *store.Work) error {
			if calls++; calls == at {
				panic("oh no")
			}
			return nil
		}
		for at = 1; at <= 2; at++ {
			calls = 0
			turn := r.send(fmt.Sprint("bad ", at))
			next := r.send("good")
			if got := r.wait(turn, memgpt.TurnFailed); !strings.Contains(got.Error, "oh no") || got.Stop != StopPanic {
				t.Errorf("turn %+v", got)
			}
			r.wait(next, memgpt.TurnDone)
		}
		var log []string
		for i, e := range r.store.entries[r.main.ID] {
			if log = append(log, e.Message.Said()); e.Seq != int64(i+1) {
				t.Errorf("entry %d has number %d", i+1, e.Seq)
			}
		}
		want := []string{"bad 1", "good", "re: good", "re: good", "bad 2", "re: bad 2", "good", "re: good", "re: good"}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		synctest.Wait()
		r.free()
		r.close()
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.kernel.think = sleep(time.Minute)
		r.must(r.host.Start(r.ctx))
		start := time.Now()
		running, queued, last := r.send("running"), r.send("queued"), r.send("last")
		synctest.Wait()
		r.must(r.host.Cancel(r.ctx, "", queued.ID))
		r.wait(queued, memgpt.TurnWithdrawn)
		if n := len(r.pendingEvents()); n != 2 {
			t.Errorf("%d events are pending, want 2", n)
		}
		r.must(r.host.Cancel(r.ctx, "", running.ID))
		r.wait(running, memgpt.TurnCancelled)
		if took := time.Since(start); took != 0 {
			t.Errorf("cancelling took %v", took)
		}
		if err := r.host.Cancel(r.ctx, "", running.ID); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("cancel again: %v", err)
		}
		if err := r.host.Cancel(r.ctx, "", "turn-x"); memgpt.CodeOf(err) != memgpt.CodeNotFound {
			t.Errorf("cancel an unknown turn: %v", err)
		}
		if err := r.host.Cancel(r.ctx, "other", last.ID); memgpt.CodeOf(err) != memgpt.CodeNotFound {
			t.Errorf("cancel another tenant's turn: %v", err)
		}
		r.wait(last, memgpt.TurnDone)
		r.ran("running", "last")
		m := r.message("later")
		m.Due = time.Now().Add(time.Hour)
		later := r.must2(r.host.Send(r.ctx, m))
		r.must(r.host.Cancel(r.ctx, "", later.ID))
		r.wait(later, memgpt.TurnWithdrawn)
		r.free2()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		r.ran("running", "last")
		r.free()
		r.close()
	})
}

func TestTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		attempts := 0
		r.kernel.think = func(ctx context.Context, w *store.Work) error {
			if attempts++; attempts == 1 {
				w.State.Thread.Next = 99 // half done
				return memgpt.Errorf(memgpt.CodeBusy, "locked")
			}
			return sleep(time.Minute)(ctx, w)
		}
		fails := 2
		r.store.fail = func(c *store.Commit) error {
			if len(c.Consume) > 0 && fails > 0 {
				fails--
				return memgpt.Errorf(memgpt.CodeBusy, "locked")
			}
			return nil
		}
		turn := r.send("hi")
		time.Sleep(10 * time.Second)
		r.must(r.host.Cancel(r.ctx, "", turn.ID))
		r.wait(turn, memgpt.TurnCancelled)
		if seq := r.store.entries[r.main.ID][0].Seq; seq != 1 || attempts < 3 {
			t.Errorf("the first entry has number %d after %d attempts", seq, attempts)
		}
		r.close()
	})
}

func TestTurnsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxRunning = 1 })
		r.kernel.think = sleep(time.Second)
		busy := []*Turn{r.send("1"), r.send("2"), r.send("3")}
		synctest.Wait()
		agent, thread := r.makeAgent("patient", AgentTemplate{})
		m := r.message("hi")
		m.Agent, m.Thread = agent.ID, thread.ID
		start := time.Now()
		r.wait(r.must2(r.host.Send(r.ctx, m)), memgpt.TurnDone)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("waited %v behind a busy conversation, want one turn of it", took)
		}
		for _, turn := range busy {
			r.wait(turn, memgpt.TurnDone)
		}
		r.close()
	})
}

func TestNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.store.leases[r.main.ID] = store.Lease{Thread: r.main.ID, Number: 1, Until: time.Now().Add(time.Minute)}
		turn := r.send("hi")
		r.store.mu.Lock()
		r.store.fail = func(c *store.Commit) error { return memgpt.Errorf(memgpt.CodeBusy, "locked") }
		r.store.mu.Unlock()
		if _, err := turn.Wait(r.ctx); memgpt.CodeOf(err) != memgpt.CodeBusy {
			t.Errorf("wait: %v", err)
		}
		r.close()
	})
}

func TestCancelElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.kernel.think = sleep(time.Minute)
		other := r.another()
		turn := r.send("running")
		if err := other.Cancel(r.ctx, "", turn.ID); memgpt.CodeOf(err) != memgpt.CodeConflict {
			t.Errorf("cancel: %v", err)
		}
		watch, err := other.Attach(r.ctx, "", turn.ID)
		r.must(err)
		r.wait(watch, memgpt.TurnDone)
		r.wait(turn, memgpt.TurnDone)
		if diff := cmp.Diff(kinds(turn.Updates(r.ctx))[0], kinds(watch.Updates(r.ctx))[0]); diff != "" || len(watch.Said()) != 1 {
			t.Errorf("watched elsewhere: %v, said %q", kinds(watch.Updates(r.ctx)), watch.Said())
		}
		r.close(other)
	})
}

func TestCloseInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		start := time.Now()
		r.kernel.steps, r.kernel.think = 3, sleep(time.Second)
		turn, next := r.send("a"), r.send("b")
		time.Sleep(1500 * time.Millisecond)
		job := make(chan error, 1)
		go func() { job <- r.host.Do(r.ctx, "", r.agent.ID, r.main.ID, nil) }()
		synctest.Wait()
		r.close()
		for _, turn := range []*Turn{turn, next} {
			if _, err := turn.Wait(r.ctx); !errors.Is(err, ErrStopping) {
				t.Errorf("wait: %v", err)
			}
		}
		if err := <-job; memgpt.CodeOf(err) != memgpt.CodeClosed {
			t.Errorf("job: %v", err)
		}
		r.free()
		later := r.another()
		r.must(later.Start(r.ctx))
		resumed, err := later.Attach(r.ctx, "", turn.ID)
		r.must(err)
		if got := r.wait(resumed, memgpt.TurnDone); got.Steps != 3 || !got.Started.Equal(start) {
			t.Errorf("%d steps since %v", got.Steps, got.Started)
		}
		again, err := later.Attach(r.ctx, "", next.ID)
		r.must(err)
		r.wait(again, memgpt.TurnDone)
		r.ran("a", "b")
		if n := len(r.store.entries[r.main.ID]); n != 8 {
			t.Errorf("%d entries, want each step once", n)
		}
		r.close(later)
	})
}

func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.kernel.think = func(context.Context, *store.Work) error { time.Sleep(time.Minute); return nil }
		turn := r.send("deaf to its context")
		synctest.Wait()
		short, end := context.WithTimeout(r.ctx, time.Second)
		defer end()
		if err := r.host.Close(short); memgpt.CodeOf(err) != memgpt.CodeBusy {
			t.Errorf("close: %v", err)
		}
		r.close()
		r.wait(turn, memgpt.TurnDone)
		r.free()
	})
}

func TestDelayed(t *testing.T) {
	for _, poll := range []time.Duration{0, -1} {
		for _, started := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.Poll = poll })
				if started {
					r.must(r.host.Start(r.ctx))
				}
				start := time.Now()
				var turns []*Turn
				for _, hours := range []int{3, 1, 2} {
					m := r.message(fmt.Sprint(hours))
					m.Due = start.Add(time.Duration(hours) * time.Hour)
					turns = append(turns, r.must2(r.host.Send(r.ctx, m)))
				}
				for i, at := range []time.Duration{3, 1, 2} {
					if got := r.wait(turns[i], memgpt.TurnDone).Started.Sub(start); got != at*time.Hour {
						t.Errorf("ran after %v, want %d h", got, at)
					}
				}
				synctest.Wait()
				r.free()
				r.close()
			})
		}
	}
}

func TestStartPicksUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		now := time.Now()
		for i := range 3 {
			m := r.message(fmt.Sprint(i))
			e, err := r.host.Event(m)
			r.must(err)
			_, err = r.store.Commit(r.ctx, &store.Commit{Now: now, Events: []memgpt.Event{e}})
			r.must(err)
		}
		r.wait(r.send("asked"), memgpt.TurnDone) // also what stands before it
		r.ran("0", "1", "2", "asked")
		e, err := r.host.Event(r.message("left"))
		r.must(err)
		_, err = r.store.Commit(r.ctx, &store.Commit{Now: now, Events: []memgpt.Event{e}})
		r.must(err)
		r.must(r.host.Do(r.ctx, "", r.agent.ID, r.main.ID, func(context.Context, *store.Work) error { return nil }))
		time.Sleep(time.Minute)
		r.ran("0", "1", "2", "asked") // a host that wasn't started runs only what it was asked to
		r.must(r.host.Start(r.ctx))
		time.Sleep(time.Second)
		if !slices.Contains(r.kernel.ran(r.main.ID), "left") {
			t.Error("what was left did not run")
		}
		r.close()
	})
}

// TestKnownKeyOfWhatNobodyRuns sends once more what a host took in that died: it runs, and once.
func TestKnownKeyOfWhatNobodyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.message("left")
		m.Key = "k"
		e, err := r.host.Event(m)
		r.must(err)
		_, err = r.store.Commit(r.ctx, &store.Commit{Now: time.Now(), Events: []memgpt.Event{e}})
		r.must(err)
		for range 2 {
			turn, err := r.host.Send(r.ctx, m)
			r.must(err)
			if r.wait(turn, memgpt.TurnDone); turn.ID != e.Turn {
				t.Errorf("turn %s, want %s", turn.ID, e.Turn)
			}
		}
		r.ran("left")
		r.close()
	})
}
