package host

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/store"
)

// stepper is a Runner that lets a test take the steps of a turn: it does what the kernel's borders do, and waits as long
// as its model's calls take.
type stepper struct {
	*kernel
	calls func(step int) time.Duration // how long the model's call of a step takes; 0 ends the turn
	cuts  []time.Duration              // ages of calls that were cut off
	taken []string                     // texts of events that were taken in
}

func (s *stepper) Run(ctx context.Context, w *store.Work) error {
	s.enter(w.Event.Thread)
	defer s.exit(w.Event.Thread)
	due, pend := -1, []memgpt.Event{}
	for step := w.Event.Step + 1; ; step++ {
		if err := s.border(ctx, w, step, &pend, due); err != nil {
			return s.end(ctx, w, step)
		}
		d := s.calls(step)
		for again := true; again && d > 0; {
			var err error
			if again, err = s.call(ctx, w, d); err != nil {
				return s.end(ctx, w, step)
			}
			if again {
				if err := s.border(ctx, w, 2, &pend, due); err != nil {
					return s.end(ctx, w, step)
				}
			}
		}
		if d == 0 {
			return s.end(ctx, w, step)
		}
		done, err := s.store.Commit(ctx, s.step(w, step, pend))
		if err != nil {
			return err
		}
		for _, e := range pend {
			w.Emit(memgpt.TookIn{Turn: s.record(w, e)})
		}
		w.Emit(memgpt.Spoke{Step: step, Text: "step"})
		due, pend = done.Pending, nil
	}
}

func (s *stepper) takenSoFar() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

func (s *stepper) border(ctx context.Context, w *store.Work, step int, pend *[]memgpt.Event, due int) error {
	if step == 1 {
		return nil
	}
	events, err := w.Arrived(ctx, due)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		s.taken = append(s.taken, e.Message.Said())
	}
	*pend = append(*pend, events...)
	return err
}

// call waits for a model. It reports true where it was cut off.
func (s *stepper) call(ctx context.Context, w *store.Work, d time.Duration) (bool, error) {
	own, end := ctx, func() {}
	if w.Call != nil {
		own, end = w.Call(ctx)
	}
	defer end()
	began := time.Now()
	select {
	case <-time.After(d):
		return false, nil
	case <-own.Done():
		s.cuts = append(s.cuts, time.Since(began))
		return ctx.Err() == nil, context.Cause(ctx)
	}
}

func (s *stepper) record(w *store.Work, e memgpt.Event) memgpt.Turn {
	return memgpt.Turn{ID: e.Turn, Agent: e.Agent, Thread: e.Thread, Event: e.ID, State: memgpt.TurnDone, Stop: memgpt.StopSteered, Into: w.Turn.ID}
}

func (s *stepper) step(w *store.Work, step int, pend []memgpt.Event) *store.Commit {
	w.Event.Step, w.Event.Begun = step, true
	lease := w.Lease
	lease.Until = time.Now().Add(w.TTL)
	c := &store.Commit{Now: time.Now(), Lease: &lease, Events: []memgpt.Event{w.Event}, Turns: []memgpt.Turn{w.Turn}}
	for _, e := range pend {
		c.Consume, c.Turns = append(c.Consume, e.ID), append(c.Turns, s.record(w, e))
	}
	return c
}

// end commits the end of a turn, by the cause of its context's end if it has one.
func (s *stepper) end(ctx context.Context, w *store.Work, step int) error {
	turn := w.Turn
	turn.State, turn.Stop, turn.Ended = memgpt.TurnDone, memgpt.StopEnd, time.Now()
	switch code := memgpt.CodeOf(context.Cause(ctx)); {
	case code == memgpt.CodeReplaced:
		turn.State, turn.Stop = memgpt.TurnCancelled, memgpt.StopReplaced
	case code == memgpt.CodeCancelled:
		turn.State, turn.Stop = memgpt.TurnCancelled, memgpt.StopCancelled
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	s.note(w.Event)
	lease := w.Lease
	lease.Until = time.Now().Add(w.TTL)
	c := &store.Commit{Now: time.Now(), Lease: &lease, Consume: []string{w.Event.ID}, Turns: []memgpt.Turn{turn}, Release: !w.More()}
	if _, err := s.store.Commit(context.WithoutCancel(ctx), c); err != nil {
		return err
	}
	w.Turn = turn
	w.Emit(memgpt.TurnEnded{Turn: turn})
	return nil
}

// steerRig is a rig whose kernel is a stepper. Each turn has the calls of times, and then ends.
func steerRig(t *testing.T, change func(*Config), times ...time.Duration) (*rig, *stepper) {
	r := newRig(t, change)
	s := &stepper{kernel: r.kernel, calls: func(step int) time.Duration {
		if step > len(times) {
			return 0
		}
		return times[step-1]
	}}
	r.host.cfg.Kernel = s
	return r, s
}

func (r *rig) sendAs(h *Host, text string, d memgpt.Delivery) *Turn {
	r.t.Helper()
	m := r.message(text)
	m.Delivery = d
	turn, err := h.Send(r.ctx, m)
	r.must(err)
	return turn
}

func TestSteering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := steerRig(t, func(*Config) {}, time.Second, time.Second, time.Second, time.Second, time.Second)
		r.store.reads = 0
		main := r.send("main")
		time.Sleep(2500 * time.Millisecond)
		if r.store.reads != 0 {
			t.Errorf("the inbox was read %d times at borders where nothing had arrived", r.store.reads)
		}
		queued := r.sendAs(r.host, "queued", memgpt.DeliverQueue)
		steered := r.send("steered")
		var told []memgpt.Update
		var followed sync.WaitGroup
		followed.Go(func() {
			end, err := r.host.Follow(r.ctx, steered, func(u memgpt.Update) error { told = append(told, u); return nil })
			if err != nil || end.ID != main.ID || end.Stop != memgpt.StopEnd {
				t.Errorf("following came to %+v, %v", end, err)
			}
		})
		record := r.wait(steered, memgpt.TurnDone)
		if record.Stop != memgpt.StopSteered || record.Into != main.ID || main.ID == "" {
			t.Errorf("the steered turn ended as %+v", record)
		}
		if r.store.reads != 1 {
			t.Errorf("the inbox was read %d times", r.store.reads)
		}
		if got := kinds(steered.Updates(r.ctx)); !slices.Equal(got, []string{"memgpt.TurnStarted", "memgpt.TurnEnded"}) {
			t.Errorf("updates of the steered turn: %v", got)
		}
		err := r.host.Cancel(r.ctx, "", steered.ID)
		if memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("cancelling what was taken in: %v", err)
		}
		followed.Wait()
		// Of the turn that took it in: what follows, which is the words of steps 4 and 5, and the end.
		want := []string{"memgpt.TurnStarted", "memgpt.TurnEnded", "memgpt.TookIn", "memgpt.Spoke", "memgpt.Spoke", "memgpt.TurnEnded"}
		if got := kinds(slices.Values(told)); !slices.Equal(got, want) {
			t.Errorf("who follows is told %v", got)
		}
		r.wait(queued, memgpt.TurnDone)
		r.ran("main", "queued")
		if !slices.Equal(s.taken, []string{"steered"}) {
			t.Errorf("taken in: %v", s.taken)
		}
		synctest.Wait()
		r.free()
		r.close()
	})
}

func TestCutOffTimes(t *testing.T) {
	for _, c := range []struct {
		name     string
		after    time.Duration
		sent     time.Duration
		delivery memgpt.Delivery
		other    bool // from another process, of which this host doesn't look for events
		min, max time.Duration
	}{
		{"young", 0, 5 * time.Second, "", false, 30 * time.Second, 30 * time.Second},
		{"old", 0, 45 * time.Second, "", false, 45 * time.Second, 45 * time.Second},
		{"soon", 2 * time.Second, time.Second, "", false, 2 * time.Second, 2 * time.Second},
		{"never", -1, time.Second, "", false, 0, 0},
		{"queued", 0, time.Second, memgpt.DeliverQueue, false, 0, 0},
		{"from elsewhere", 0, 12 * time.Second, "", true, 30 * time.Second, 30 * time.Second},
		{"late from elsewhere", 0, 41 * time.Second, "", true, 41 * time.Second, 51 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, s := steerRig(t, func(cfg *Config) { cfg.CutAfter = c.after }, 100*time.Second)
				h := r.host
				if c.other {
					h = r.another()
				}
				main := r.send("main")
				time.Sleep(c.sent)
				r.sendAs(h, "hurry", c.delivery)
				r.wait(main, memgpt.TurnDone)
				switch {
				case c.max == 0 && len(s.cuts) == 0:
				case len(s.cuts) != 1 || s.cuts[0] < c.min || s.cuts[0] > c.max:
					t.Errorf("cut off at the ages %v, want one from %v to %v", s.cuts, c.min, c.max)
				}
				if want := c.delivery == ""; want != slices.Equal(s.taken, []string{"hurry"}) {
					t.Errorf("taken in: %v", s.taken)
				}
				r.close()
				if c.other {
					r.must(h.Close(r.ctx))
				}
			})
		})
	}
}

func TestReplace(t *testing.T) {
	for _, where := range []string{"here", "elsewhere", "elsewhere, looked for"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, s := steerRig(t, func(*Config) {}, 100*time.Second)
				h, most := r.host, time.Duration(0)
				if where != "here" {
					h, most = r.another(), 10*time.Second
				}
				if where == "elsewhere, looked for" {
					r.must(r.host.Start(r.ctx))
					most = 300 * time.Millisecond
				}
				main := r.send("main")
				waits := r.sendAs(r.host, "waits", memgpt.DeliverQueue)
				time.Sleep(12 * time.Second)
				sent := time.Now()
				instead := r.sendAs(h, "instead", memgpt.DeliverReplace)
				if record := r.wait(main, memgpt.TurnCancelled); record.Stop != memgpt.StopReplaced {
					t.Errorf("the replaced turn ended as %+v", record)
				}
				if took := time.Since(sent); took > most {
					t.Errorf("it took %v to end the turn, want at most %v", took, most)
				}
				r.wait(waits, memgpt.TurnDone)
				r.wait(instead, memgpt.TurnDone)
				r.ran("main", "instead", "waits")
				if len(s.taken) != 0 {
					t.Errorf("taken in: %v", s.taken)
				}
				r.close()
				if h != r.host {
					r.must(h.Close(r.ctx))
				}
			})
		})
	}
}

// TestReplacedBeforeItBegan: of two messages that take the place of a turn, the later one takes that of the earlier too.
func TestReplacedBeforeItBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := steerRig(t, func(*Config) {}, time.Second)
		var turns []*Turn
		m := r.message("old")
		m.Delivery, m.Due = memgpt.DeliverReplace, time.Now().Add(time.Minute)
		turns = append(turns, r.must2(r.host.Send(r.ctx, m)))
		m.Message.Parts = memgpt.Parts{memgpt.Text{Text: "new"}}
		turns = append(turns, r.must2(r.host.Send(r.ctx, m)))
		if record := r.wait(turns[0], memgpt.TurnCancelled); record.Stop != memgpt.StopReplaced {
			t.Errorf("the earlier ended as %+v", record)
		}
		if record := r.wait(turns[1], memgpt.TurnDone); record.Stop != memgpt.StopEnd {
			t.Errorf("the later ended as %+v", record)
		}
		r.ran("old", "new")
		r.close()
	})
}

// TestCancelOfWhatIsTakenIn: what the kernel was given can't be withdrawn any more; what was withdrawn isn't given.
func TestCancelOfWhatIsTakenIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := steerRig(t, func(*Config) {}, time.Second, time.Second, time.Second)
		main := r.send("main")
		time.Sleep(500 * time.Millisecond)
		gone, taken := r.send("gone"), r.send("taken")
		r.must(r.host.Cancel(r.ctx, "", gone.ID))
		time.Sleep(time.Second) // in step 2, which shows it and is not committed
		if err := r.host.Cancel(r.ctx, "", taken.ID); memgpt.CodeOf(err) != memgpt.CodeConflict {
			t.Errorf("cancelling what is being taken in: %v", err)
		}
		r.wait(gone, memgpt.TurnWithdrawn)
		if record := r.wait(taken, memgpt.TurnDone); record.Into != main.ID {
			t.Errorf("%+v", record)
		}
		r.wait(main, memgpt.TurnDone)
		if !slices.Equal(s.taken, []string{"taken"}) {
			t.Errorf("taken in: %v", s.taken)
		}
		r.close()
	})
}

func TestUnknownDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.message("hi")
		m.Delivery = "pigeon"
		if _, err := r.host.Send(r.ctx, m); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("sent: %v", err)
		}
		r.close()
	})
}

// slowWithdrawal is a store whose commit of a withdrawal takes a second.
type slowWithdrawal struct{ *memory }

func (s slowWithdrawal) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	if len(c.Turns) > 0 && c.Turns[0].State == memgpt.TurnWithdrawn {
		time.Sleep(time.Second)
	}
	return s.memory.Commit(ctx, c)
}

// TestCancelAtABorder: what is being withdrawn when the running turn looks for what arrived is not taken in.
func TestCancelAtABorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := steerRig(t, func(*Config) {}, time.Second, time.Second, time.Second)
		r.host.cfg.Store = slowWithdrawal{r.store}
		main := r.send("main")
		time.Sleep(500 * time.Millisecond)
		gone := r.send("gone")
		r.must(r.host.Cancel(r.ctx, "", gone.ID))
		r.wait(gone, memgpt.TurnWithdrawn)
		r.wait(main, memgpt.TurnDone)
		if len(s.taken) > 0 {
			t.Errorf("taken in: %v", s.taken)
		}
		r.close()
	})
}

// TestTakenInByTheLastStep: who follows a message that the last step took in comes when the turn has ended. Watchers are
// not told of that turn a second time.
func TestTakenInByTheLastStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := steerRig(t, func(*Config) {}, time.Second, time.Second)
		ctx, stop := context.WithCancel(r.ctx)
		var seen []memgpt.Update
		updates := r.host.Watch(ctx, "", r.main.ID)
		var watching sync.WaitGroup
		watching.Go(func() {
			for u := range updates {
				seen = append(seen, u)
			}
		})
		main := r.send("main")
		time.Sleep(500 * time.Millisecond)
		steered := r.send("steered")
		r.wait(main, memgpt.TurnDone)
		for range 2 { // late, and once more
			end, err := r.host.Follow(r.ctx, steered, func(memgpt.Update) error { return nil })
			if err != nil || end.ID != main.ID {
				t.Errorf("following came to %+v, %v", end, err)
			}
		}
		synctest.Wait()
		stop()
		watching.Wait()
		want := []string{"memgpt.TurnStarted", "memgpt.Spoke", "memgpt.TookIn", "memgpt.Spoke", "memgpt.TurnEnded"}
		if got := kinds(slices.Values(seen)); !slices.Equal(got, want) {
			t.Errorf("watchers were told %v", got)
		}
		r.close()
	})
}

// TestManyAreTakenInByTurns: a step takes so many in, and the next the rest, though nothing came between.
func TestManyAreTakenInByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := steerRig(t, func(*Config) {}, time.Second, time.Second, time.Second, time.Second)
		main := r.send("main")
		time.Sleep(500 * time.Millisecond)
		var want []string
		for i := range takenAtOnce + 2 {
			want = append(want, string(rune('a'+i)))
			r.send(want[i])
		}
		time.Sleep(time.Second) // in step 2
		if got := s.takenSoFar(); !slices.Equal(got, want[:takenAtOnce]) {
			t.Errorf("step 2 took in %v", got)
		}
		time.Sleep(time.Second)
		if got := s.takenSoFar(); !slices.Equal(got, want) {
			t.Errorf("by step 3 %v were taken in", got)
		}
		r.wait(main, memgpt.TurnDone)
		r.ran("main")
		r.close()
	})
}

// TestCutOffInEachStep: a call of a later step is cut off as one of the first is.
func TestCutOffInEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := steerRig(t, func(*Config) {}, 40*time.Second, 40*time.Second)
		main := r.send("main")
		for _, text := range []string{"first", "second"} {
			time.Sleep(10 * time.Second)
			r.send(text)
			time.Sleep(61 * time.Second) // 20 to the cut, 40 of the call anew, into the next step
		}
		r.wait(main, memgpt.TurnDone)
		if want := []time.Duration{30 * time.Second, 30 * time.Second}; !slices.Equal(s.cuts, want) || !slices.Equal(s.taken, []string{"first", "second"}) {
			t.Errorf("cut off at the ages %v, taken in %v", s.cuts, s.taken)
		}
		r.close()
	})
}

// TestWaitingMessagesAreLookedAtOnce: renewals of the lease read the inbox for news alone.
func TestWaitingMessagesAreLookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := steerRig(t, func(*Config) {}, 10*time.Minute)
		other := r.another()
		main := r.send("main")
		time.Sleep(time.Second)
		r.sendAs(other, "later", memgpt.DeliverQueue)
		reads := func() int {
			r.store.mu.Lock()
			defer r.store.mu.Unlock()
			return r.store.reads
		}
		before := reads()
		time.Sleep(9 * time.Minute)
		if n := reads() - before; n > 2 { // one is the other host's
			t.Errorf("the inbox was read %d times", n)
		}
		r.wait(main, memgpt.TurnDone)
		r.close(r.host, other)
	})
}
