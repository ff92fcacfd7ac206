package host

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/store/sqlite"
)

// TestProcesses runs two hosts with a Store each on one file, as two processes do, on many conversations at once.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	newID := lockedIDs()
	open := func() store.Store {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Unsafe: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stores := []store.Store{open(), open()}
	k := newKernel(t, nil, newID)
	k.steps = 2
	var hosts []*Host
	for _, s := range stores {
		h, err := New(Config{Store: s, Kernel: on{k, s}, NewID: newID, Poll: 5 * time.Millisecond, MaxRunning: 8,
			Report: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	const conversations, messages = 10, 8
	var wg sync.WaitGroup
	for i := range conversations {
		wg.Go(func() { talk(t, hosts, fmt.Sprint("agent ", i), messages) })
	}
	wg.Wait()
	total := 0
	for thread, ran := range k.order {
		total += len(ran)
		if len(ran) != messages {
			t.Errorf("conversation %s ran %v", thread, ran)
		}
	}
	if total != conversations*messages {
		t.Errorf("%d turns ran", total)
	}
	for i, h := range hosts {
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := stores[i].Close(); err != nil {
			t.Error(err)
		}
	}
}

// on is the kernel on one of several stores.
type on struct {
	*kernel
	store store.Store
}

func (o on) Run(ctx context.Context, w *store.Work) error { return o.run(ctx, w, o.store) }

// talk sends messages to one agent through hosts in turn, and waits for all.
func talk(t *testing.T, hosts []*Host, name string, messages int) {
	var turns []*Turn
	for i := range messages {
		h := hosts[i%len(hosts)]
		agent, err := h.Agent(t.Context(), "", name, AgentTemplate{})
		if err != nil {
			t.Error(err)
			return
		}
		thread, err := h.Thread(t.Context(), agent, MainThread)
		if err != nil {
			t.Error(err)
			return
		}
		turn, err := h.Send(t.Context(), Message{Agent: agent.ID, Thread: thread.ID,
			Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, fmt.Sprint(i))})
		if err != nil {
			t.Error(err)
			return
		}
		turns = append(turns, turn)
	}
	for _, turn := range turns {
		if got, err := turn.Wait(t.Context()); err != nil || got.State != memgpt.TurnDone || len(turn.Said()) != 2 {
			t.Errorf("turn %s: %s, said %q: %v", turn.ID, got.State, turn.Said(), err)
		}
	}
}
