package host

import (
	"context"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// lookCost bounds the share of time that is spent on looking through the inbox: a twentieth.
const lookCost = 20

// clock is the one goroutine that waits for times: due events, other processes' changes, and conversations put off.
type clock struct {
	h      *Host
	change int64     // store's counter when last looked
	due    time.Time // of the earliest pending event then; zero is none
	looked time.Time
	quiet  time.Time // no look before, unless something comes due
	seen   time.Time // at the last tick; zero before the first
	right  bool      // what a clock that went wrong left was seen to
}

// startClock starts the clock's goroutine. Callers hold h.mu.
func (h *Host) startClock() {
	if h.clocked || h.closing {
		return
	}
	h.clocked = true
	ctx, cancel := context.WithCancelCause(context.Background())
	k := &clock{h: h, change: -1}
	h.work.Go(func() {
		<-h.stop
		cancel(ErrStopping)
	})
	h.work.Go(func() { k.run(ctx) })
}

// kickClock makes the clock look at once. Callers hold h.mu.
func (h *Host) kickClock() {
	if !h.clocked {
		return
	}
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

func (h *Host) wakeClock() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kickClock()
}

// pollTime is the pace of looking where something is known to need it.
func (h *Host) pollTime() time.Duration {
	if h.cfg.Poll < 0 {
		return defaultPoll
	}
	return h.cfg.Poll
}

func (k *clock) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	kicked := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.h.kick:
			kicked = true
		case <-timer.C:
			wait, err := k.tick(ctx, kicked)
			if err != nil && ctx.Err() == nil {
				k.h.report(memgpt.Errorf(memgpt.CodeOf(err), "look for work: %w", err))
				wait = max(wait, k.h.pollTime())
			}
			kicked = err != nil
			timer.Reset(wait)
			continue
		}
		timer.Reset(0)
	}
}

// tick does what is to be done now and returns how long nothing is.
func (k *clock) tick(ctx context.Context, kicked bool) (time.Duration, error) {
	if err := k.watchBack(ctx); err != nil {
		return 0, err
	}
	k.h.unpark()
	err := k.poll(ctx, kicked)
	return k.wait(), err
}

// wentBack is by how much a clock must have been put back before what was worked out by it is worked out anew. Less is a
// correction, after which a time may not be met twice.
const wentBack = time.Hour

// watchBack sees to a clock that was put back, at the start and while the host runs: what waits for times that it showed
// by mistake would wait for long.
func (k *clock) watchBack(ctx context.Context) error {
	now := k.h.cfg.Now().Round(0) // by the clock on the wall
	if now.Before(k.seen.Add(-time.Minute)) {
		k.looked, k.quiet, k.due, k.change, k.right = time.Time{}, time.Time{}, time.Time{}, -1, false
		k.h.unparkAll(now)
	}
	k.seen = now
	if k.right || !k.h.isStarted() {
		return nil
	}
	err := k.h.setRight(ctx, now)
	k.right = err == nil
	return err
}

// unparkAll lets the conversations that were put off be tried again.
func (h *Host) unparkAll(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.parked {
		c.retryAt = now
	}
}

// setRight works the times of timers out anew that a clock set which showed much more than it is now.
func (h *Host) setRight(ctx context.Context, now time.Time) error {
	events, err := h.cfg.Store.Events(ctx, store.EventRange{AllTenants: true})
	if err != nil {
		return err
	}
	wrong := func(e *memgpt.Event) bool {
		return e.Timer != nil && !e.Timer.Rung && !e.Begun && e.Step == 0 && now.Before(e.Timer.Seen.Add(-wentBack))
	}
	for i := range events {
		if !wrong(&events[i]) {
			continue
		}
		a, err := h.cfg.Store.Agent(ctx, events[i].Tenant, events[i].Agent)
		if err != nil {
			return err
		}
		err = h.withRings(ctx, &a, func(r *ringing) (*store.Commit, error) {
			e, err := h.stillPending(ctx, &events[i])
			if err != nil || e == nil || !wrong(e) {
				return nil, err
			}
			return &store.Commit{Events: []memgpt.Event{timedAnew(&a, e, r.now)}}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// timedAnew returns a timer's event at the time that is right by the clock as it is now.
func timedAnew(a *memgpt.Agent, e *memgpt.Event, now time.Time) memgpt.Event {
	moved, t := *e, *e.Timer
	t.Seen, t.Wait = now, ""
	if isBeat(e) {
		t.For = nextBeat(a, now)
	} else if e.Type == memgpt.EventTidy { // it is judged then
		t.For = now
	} else if line, err := calendar.ParseCron(t.Cron); err == nil && t.Cron != "" {
		from := now
		if t.After.After(from) {
			from = t.After
		}
		t.For = line.Next(from, a.Location())
	}
	moved.Timer, moved.Due = &t, t.For
	return moved
}

// poll looks through the store where something may have changed or come due.
func (k *clock) poll(ctx context.Context, kicked bool) error {
	now := k.h.cfg.Now()
	change, err := k.h.cfg.Store.Change(ctx)
	if err != nil {
		return err
	}
	due := !k.due.IsZero() && !k.due.After(now)
	first := due && k.due.After(k.looked)
	// What was due before is looked at again too: the end of a dead holder's lease changes nothing in the store.
	if again := due || change != k.change; !kicked && !first && (!again || now.Before(k.quiet)) {
		return nil
	}
	if err := k.look(ctx, now); err != nil {
		return err
	}
	k.change, k.looked = change, now
	k.quiet = now.Add(lookCost * k.h.cfg.Now().Sub(now))
	return nil
}

func (k *clock) look(ctx context.Context, now time.Time) error {
	if err := k.h.settleElsewhere(ctx); err != nil {
		return err
	}
	if k.h.isStarted() {
		k.h.wakeCourier()
		events, err := k.h.cfg.Store.Events(ctx, store.EventRange{AllTenants: true, Until: now})
		if err != nil {
			return err
		}
		k.h.wakeFor(events)
	} else {
		if err := k.h.cutElsewhere(ctx); err != nil {
			return err
		}
		k.h.wakeOwn(now)
		if err := k.h.wakeAwaited(ctx); err != nil {
			return err
		}
	}
	var err error
	k.due, err = k.h.cfg.Store.NextDue(ctx)
	return err
}

// wait returns the time to the next tick. A due time that has passed belongs to an event that is being run or waits for
// another holder; what comes due after it is not known, so the pace of polling stands in for it.
func (k *clock) wait() time.Duration {
	now := k.h.cfg.Now()
	wait := k.h.cfg.Poll
	if wait < 0 {
		wait = 24 * time.Hour
	}
	if !k.due.IsZero() {
		until := k.due.Sub(now)
		if until <= 0 {
			until = k.h.pollTime()
		}
		wait = min(wait, until)
	}
	if at := k.h.nextParked(); !at.IsZero() {
		wait = min(wait, max(at.Sub(now), 0))
	}
	return wait
}

func (h *Host) isStarted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.started
}

// unpark wakes the conversations whose time to try again has come.
func (h *Host) unpark() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.cfg.Now()
	for c := range h.parked {
		if !c.retryAt.After(now) {
			delete(h.parked, c)
			c.awaits = false
			h.wake(c)
			h.forget(c)
		}
	}
}

func (h *Host) nextParked() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	var first time.Time
	for c := range h.parked {
		if first.IsZero() || c.retryAt.Before(first) {
			first = c.retryAt
		}
	}
	return first
}

// wakeFor wakes the conversations of due events, but for those events that are in hand here, or were when they were read.
func (h *Host) wakeFor(events []memgpt.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range events {
		h.cutTidying(&e)
		c := h.conversation(e.Tenant, e.Agent, e.Thread)
		if inHand := h.turns[e.Turn] != nil && h.elsewhere[e.Turn] == nil; !inHand && c.last != e.Turn {
			c.wanted = true
			h.stir(c, &e)
			h.notice(c, &e)
			h.wake(c)
		}
		h.forget(c)
	}
}

// wakeOwn wakes the conversations of this host's own delayed events, where others' are not to be run.
func (h *Host) wakeOwn(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.turns {
		if c := t.conv; c.current == nil && !t.due.IsZero() && !t.due.After(now) {
			c.wanted = true
			h.wake(c)
		}
	}
}

// settleElsewhere finishes the turns that ended in other processes.
func (h *Host) settleElsewhere(ctx context.Context) error {
	h.mu.Lock()
	var turns []*Turn
	for _, t := range h.elsewhere {
		turns = append(turns, t)
	}
	h.mu.Unlock()
	for _, t := range turns {
		record, err := h.cfg.Store.Turn(ctx, t.conv.tenant, t.ID)
		if memgpt.CodeOf(err) == memgpt.CodeNotFound || err == nil && !isOver(record) {
			continue
		}
		if err == nil {
			err = h.replay(ctx, t, record, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isOver(t memgpt.Turn) bool {
	switch t.State {
	case memgpt.TurnDone, memgpt.TurnFailed, memgpt.TurnCancelled, memgpt.TurnWithdrawn:
		return true
	}
	return false
}

// replayed bounds how far back the entries of an ended turn are looked for.
const replayed = 500

// replay finishes a turn that this host did not run, with the updates that its entries tell of. Where it is new, watchers
// of the conversation are told too.
func (h *Host) replay(ctx context.Context, t *Turn, record memgpt.Turn, isNew bool) error {
	publish := func(u memgpt.Update) {
		if isNew {
			h.emit(t, u)
		} else {
			t.publish(u)
		}
	}
	entries, err := h.cfg.Store.Entries(ctx, store.EntryRange{Tenant: record.Tenant, Thread: record.Thread, Limit: replayed, Last: true})
	if err != nil {
		return err
	}
	entries = between(entries, record.ID)
	steered, err := h.steeredInto(ctx, record, entries)
	if err != nil || !h.claim(t) {
		return err
	}
	known, asked := t.logged(), store.IsUsers(record.Type)
	publish(memgpt.TurnStarted{Turn: record})
	for _, e := range entries {
		in, ok := steered[e.Turn]
		asked = asked || ok && store.IsUsers(in.Type)
		if ok && !known[in.ID] {
			publish(memgpt.TookIn{Turn: in})
			known[in.ID] = true
		}
		if e.Turn != record.ID || known[e.ID] {
			continue
		}
		publish(memgpt.StepCommitted{Step: e.Step, Entries: []memgpt.Entry{e}})
		for _, said := range store.SpokenIn(&e.Message) {
			spoke := memgpt.Spoke{Step: e.Step, Text: said.Text}
			if !asked {
				spoke.Saying = store.SayingID(e.ID, said.Call)
			}
			publish(spoke)
		}
	}
	publish(memgpt.TurnEnded{Turn: record})
	h.finish(t, record, nil)
	return nil
}

// between returns the entries from a turn's first to its last.
func between(entries []memgpt.Entry, turn string) []memgpt.Entry {
	first, end := len(entries), 0
	for i := range entries {
		if entries[i].Turn == turn {
			first, end = min(first, i), i+1
		}
	}
	return entries[min(first, end):end]
}

// steeredInto returns, by ID, the turns among whose entries a turn's are that it took in.
func (h *Host) steeredInto(ctx context.Context, into memgpt.Turn, entries []memgpt.Entry) (map[string]memgpt.Turn, error) {
	turns := map[string]memgpt.Turn{}
	for i := range entries {
		if entries[i].Turn == into.ID {
			continue
		}
		in, err := h.cfg.Store.Turn(ctx, into.Tenant, entries[i].Turn)
		if err == nil && in.Into == into.ID {
			turns[in.ID] = in
		} else if err != nil && memgpt.CodeOf(err) != memgpt.CodeNotFound {
			return nil, err
		}
	}
	return turns, nil
}

// claim reports whether the caller is the one to finish a turn that ended elsewhere: this host doesn't run it.
func (h *Host) claim(t *Turn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turns[t.ID] != t || t.conv.current == t || t.claimed {
		return false
	}
	t.claimed = true
	return true
}
