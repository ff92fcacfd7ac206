package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"memgpt"
	"memgpt/host"
	"memgpt/kernel"
	"memgpt/store"
)

const (
	waitingWindow = 4096 // tokens
	waitingFill   = 0.9  // share of what a request may hold, so that no message more makes the queue flush
	senders       = 64   // messages on their way in at once
	agentsACommit = 50
)

// waiting has many agents wait for a slow model at once and measures the memory that this takes. A failure is a note, since
// it may lie with the machine's bound of open files.
func (r *runner) waiting(ctx context.Context) error {
	if r.cfg.Slow == nil {
		r.note("waiting agents were not measured: there is no server")
		return nil
	}
	if r.late(lateWaiting) {
		r.note("waiting agents were not measured: too little time was left")
		return nil
	}
	if err := r.wait(ctx, r.size.waiting); err != nil {
		if ctx.Err() != nil {
			return err
		}
		r.note("%d waiting agents: %v", r.size.waiting, err)
	}
	return nil
}

func (r *runner) wait(ctx context.Context, n int) (err error) {
	slow, err := r.cfg.Slow(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, slow.Close()) }()
	waits, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g, err := r.rig(ctx, slow.Model, waitingWindow, func(w *store.Work, err error) {
		cancel(errors.Join(fmt.Errorf("a turn ended before all waited: %s %s", w.Turn.State, w.Turn.Error), err))
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close(ctx)) }()
	list, err := r.crowd(ctx, g, n)
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // what the making of agents left is no part of their waiting
	before, err := resident()
	if err != nil {
		return err
	}
	turns, err := sendAll(ctx, list)
	if err != nil {
		return err
	}
	if err := slow.Arrived(waits); err != nil {
		if waits.Err() != nil {
			return context.Cause(waits)
		}
		return err
	}
	during, err := resident()
	if err != nil {
		return err
	}
	if err := slow.Release(); err != nil {
		return err
	}
	if err := ended(ctx, turns); err != nil {
		return err
	}
	r.out.Waiting, r.out.WaitingRSS = n, during
	r.out.RSSPer1000 = (during - before) / float64(n) * 1000
	return nil
}

// sendAll sends one message to each.
func sendAll(ctx context.Context, list []*talker) ([]*host.Turn, error) {
	turns := make([]*host.Turn, len(list))
	err := each(senders, func(k int) error {
		for i := k; i < len(list); i += senders {
			var err error
			if turns[i], err = list[i].send(ctx, fmt.Sprintf("Are you there, number %d?", i)); err != nil {
				return err
			}
		}
		return nil
	})
	return turns, err
}

func ended(ctx context.Context, turns []*host.Turn) error {
	for _, t := range turns {
		record, err := t.Wait(ctx)
		if err != nil {
			return err
		}
		if record.State != memgpt.TurnDone {
			return fmt.Errorf("a turn ended as %s: %s", record.State, record.Error)
		}
	}
	return nil
}

// crowd stores n agents whose queues nearly fill the window.
func (r *runner) crowd(ctx context.Context, g *rig, n int) ([]*talker, error) {
	talk, tokens, err := r.fitting(g.kernel)
	if err != nil {
		return nil, err
	}
	r.out.WaitingWindow = tokens
	list := make([]*talker, 0, n)
	for len(list) < n {
		c := &store.Commit{Now: r.cfg.Now()}
		for range min(agentsACommit, n-len(list)) {
			st := r.member(len(list), talk)
			c.Agents, c.Threads = append(c.Agents, st.Agent), append(c.Threads, st.Thread)
			c.Blocks, c.Entries = append(c.Blocks, st.Blocks...), append(c.Entries, st.Queue...)
			list = append(list, &talker{g, st.Agent, st.Thread})
		}
		if _, err := g.Store.Commit(ctx, c); err != nil {
			return nil, fmt.Errorf("make agents: %w", err)
		}
	}
	return list, nil
}

// fitting returns as many turns of talk as nearly fill a window, and the size of that prompt.
func (r *runner) fitting(k *kernel.Kernel) (talk []string, tokens int, err error) {
	say := newWriter(9)
	for {
		talk = append(talk, say.message(), say.message())
		st := r.member(0, talk)
		in, err := k.Inspect(&st)
		if err != nil {
			return nil, 0, err
		}
		if in.Total > int(waitingFill*float64(in.Usable)) {
			return talk[:len(talk)-2], tokens, nil
		}
		tokens = in.Total
	}
}

// member makes an agent with a conversation of its own copy of the talk: the user's words and the agent's in turn. The
// pressure alert of this fill has been raised.
func (r *runner) member(i int, talk []string) store.State {
	now := r.cfg.Now()
	name := fmt.Sprint("agent ", i)
	st := store.State{Agent: memgpt.Agent{ID: r.cfg.NewID("agent"), Name: name, Created: now}}
	for _, b := range host.DefaultBlocks("I am "+name+".", "The user is number "+fmt.Sprint(i)+".") {
		b.ID = r.cfg.NewID("block")
		st.Blocks, st.Agent.Blocks = append(st.Blocks, b), append(st.Agent.Blocks, b.ID)
	}
	st.Thread = memgpt.Thread{ID: r.cfg.NewID("conv"), Agent: st.Agent.ID, Name: host.MainThread, Next: 1, Created: now, Alerted: true}
	add := func(m memgpt.Message) {
		th := &st.Thread
		st.Queue = append(st.Queue, memgpt.Entry{ID: r.cfg.NewID("message"), Agent: st.Agent.ID, Thread: th.ID, Seq: th.Next,
			Time: now.Add(-time.Hour), Message: m})
		th.Next++
	}
	for j := 0; j+1 < len(talk); j += 2 {
		st.Thread.Asked = st.Thread.Next
		user := memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, talk[j])
		user.Type = memgpt.EventUser
		add(user)
		add(memgpt.TextMessage(memgpt.RoleAssistant, memgpt.OriginModel, talk[j+1]))
	}
	return st
}
