package host

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	memkernel "memgpt/kernel"
	"memgpt/store"
)

// rig is a host with what it stands on.
type rig struct {
	t      *testing.T
	ctx    context.Context
	store  *memory
	kernel *kernel
	host   *Host
	agent  memgpt.Agent
	main   memgpt.Thread
	newID  func(string) string

	mu      sync.Mutex
	reports []error
}

// lockedIDs is a source of ids that is safe for concurrent use.
func lockedIDs() func(string) string {
	var mu sync.Mutex
	ids := memkernel.NewIDs(readRand{rand.New(rand.NewPCG(1, 2))}, time.Now)
	return func(kind string) string {
		mu.Lock()
		defer mu.Unlock()
		return ids(kind)
	}
}

type readRand struct{ *rand.Rand }

func (r readRand) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}

var _ io.Reader = readRand{}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, ctx: t.Context(), store: newMemory(), newID: lockedIDs()}
	r.kernel = newKernel(t, r.store, r.newID)
	r.host = r.another(change...)
	r.agent, r.main = r.makeAgent("default", AgentTemplate{})
	r.store.commits = nil
	return r
}

func newKernel(t *testing.T, s store.Store, newID func(string) string) *kernel {
	return &kernel{t: t, store: s, now: time.Now, newID: newID, busy: map[string]bool{}, order: map[string][]string{}}
}

// another returns a further host on the same store, as another process would be.
func (r *rig) another(change ...func(*Config)) *Host {
	r.t.Helper()
	cfg := Config{Store: r.store, Kernel: r.kernel, NewID: r.newID, Report: r.report}
	for _, f := range change {
		f(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *rig) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports = append(r.reports, err)
}

func (r *rig) makeAgent(name string, template AgentTemplate) (memgpt.Agent, memgpt.Thread) {
	r.t.Helper()
	agent, err := r.host.Agent(r.ctx, "", name, template)
	r.must(err)
	thread, err := r.host.Thread(r.ctx, agent, MainThread)
	r.must(err)
	return agent, thread
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) message(text string) Message {
	return Message{Agent: r.agent.ID, Thread: r.main.ID, Message: memgpt.Message{Parts: memgpt.Parts{memgpt.Text{Text: text}}}}
}

func (r *rig) send(text string) *Turn {
	r.t.Helper()
	turn, err := r.host.Send(r.ctx, r.message(text))
	r.must(err)
	return turn
}

func (r *rig) wait(turn *Turn, state memgpt.TurnState) memgpt.Turn {
	r.t.Helper()
	got, err := turn.Wait(r.ctx)
	r.must(err)
	if got.State != state {
		r.t.Fatalf("turn is %s (%s), want %s", got.State, got.Error, state)
	}
	return got
}

func (r *rig) close(hosts ...*Host) {
	r.t.Helper()
	for _, h := range append(hosts, r.host) {
		r.must(h.Close(r.ctx))
	}
}

func (r *rig) ran(want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.kernel.ran(r.main.ID)); diff != "" {
		r.t.Errorf("turns that ran (-want +got):\n%s", diff)
	}
}

func (r *rig) pendingEvents() []memgpt.Event {
	events, err := r.store.Events(r.ctx, store.EventRange{AllTenants: true})
	r.must(err)
	return events
}

// free checks that nobody holds a lease and that nothing is left in the host.
func (r *rig) free() {
	r.t.Helper()
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	for _, l := range r.store.leases {
		if l.Until.After(time.Now()) {
			r.t.Errorf("lease %d of %s is still held", l.Number, l.Thread)
		}
	}
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	if n := len(r.host.turns) + len(r.host.elsewhere) + len(r.host.parked) + len(r.host.ready) + r.host.running; n != 0 {
		r.t.Errorf("the host still knows %d turns, %d elsewhere, %d parked, %d ready, %d running",
			len(r.host.turns), len(r.host.elsewhere), len(r.host.parked), len(r.host.ready), r.host.running)
	}
}

func TestOneTurnIsTwoCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.must(r.host.Start(r.ctx))
		for i := range 3 {
			turn := r.send(fmt.Sprint("hi ", i))
			r.wait(turn, memgpt.TurnDone)
			synctest.Wait()
			if got := len(r.store.commits); got != 2*(i+1) {
				t.Errorf("%d commits after turn %d, want %d", got, i+1, 2*(i+1))
			}
			if diff := cmp.Diff([]string{fmt.Sprint("re: hi ", i)}, turn.Said()); diff != "" {
				t.Error(diff)
			}
		}
		r.ran("hi 0", "hi 1", "hi 2")
		if n := r.host.idle.Len(); n != 1 {
			t.Errorf("%d cached states, want 1", n)
		}
		r.free()
		r.close()
	})
}

func TestManySendersOneAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.kernel.think = func(context.Context, *store.Work) error { time.Sleep(time.Second); return nil }
		var wg sync.WaitGroup
		turns := make([]*Turn, 20)
		for i := range turns {
			wg.Go(func() { turns[i] = r.send(fmt.Sprint(i)) })
		}
		wg.Wait()
		var inbox []string
		for _, e := range r.pendingEvents() {
			inbox = append(inbox, e.Message.Said())
		}
		for _, turn := range turns {
			r.wait(turn, memgpt.TurnDone)
		}
		synctest.Wait()
		r.ran(inbox...)
		r.free()
		if got := len(r.store.commits); got > 41 {
			t.Errorf("%d commits for 20 turns, want the lease kept between them", got)
		}
		r.close()
	})
}

func TestConversationsRunSideBySide(t *testing.T) {
	for _, limit := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.MaxRunning, c.Cached = limit, 2 })
			r.kernel.think = func(context.Context, *store.Work) error { time.Sleep(time.Second); return nil }
			var turns []*Turn
			start := time.Now()
			for i := range 9 {
				agent, thread := r.makeAgent(fmt.Sprint("a", i), AgentTemplate{})
				for range 2 {
					m := r.message("hi")
					m.Agent, m.Thread = agent.ID, thread.ID
					turn, err := r.host.Send(r.ctx, m)
					r.must(err)
					turns = append(turns, turn)
				}
			}
			for _, turn := range turns {
				r.wait(turn, memgpt.TurnDone)
			}
			want := 2 * time.Second
			if limit > 0 {
				want = 6 * time.Second
			}
			if took := time.Since(start); took != want {
				t.Errorf("took %v with at most %d at once, want %v", took, limit, want)
			}
			synctest.Wait()
			r.free()
			if n := r.host.idle.Len(); n > 2 || len(r.host.convs) != n {
				t.Errorf("%d states are cached, %d conversations known, want 2", n, len(r.host.convs))
			}
			r.close()
		})
	}
}

func TestDuplicateKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.kernel.think = func(context.Context, *store.Work) error { time.Sleep(time.Second); return nil }
		m := r.message("once")
		m.Key = "k"
		var turns []*Turn
		for range 2 {
			turn, err := r.host.Send(r.ctx, m)
			r.must(err)
			turns = append(turns, turn)
		}
		if turns[0] != turns[1] {
			t.Error("the second send got another hold than the first")
		}
		r.wait(turns[0], memgpt.TurnDone)
		synctest.Wait()
		after, err := r.host.Send(r.ctx, m)
		r.must(err)
		if got := r.wait(after, memgpt.TurnDone); got.ID != turns[0].ID {
			t.Errorf("turn %s, want the earlier %s", got.ID, turns[0].ID)
		}
		if diff := cmp.Diff([]string{"re: once"}, after.Said()); diff != "" {
			t.Error(diff)
		}
		synctest.Wait()
		r.ran("once")
		r.free()
		r.close()
	})
}

func TestMessagesAreCleaned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, text := range []string{"", " \n\t", "\x00"} {
			if _, err := r.host.Send(r.ctx, r.message(text)); memgpt.CodeOf(err) != memgpt.CodeInvalid {
				t.Errorf("send %q: %v, want it refused", text, err)
			}
		}
		m := r.message("a\x00b\xff小")
		r.wait(r.must2(r.host.Send(r.ctx, m)), memgpt.TurnDone)
		if m.Message.Parts[0] != (memgpt.Text{Text: "a\x00b\xff小"}) {
			t.Error("the caller's message was changed")
		}
		if _, err := r.host.Send(r.ctx, Message{Message: m.Message}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("send without agent: %v", err)
		}
		r.ran("ab\uFFFD小")
		r.close()
		if _, err := r.host.Send(r.ctx, r.message("late")); memgpt.CodeOf(err) != memgpt.CodeClosed {
			t.Errorf("send after close: %v", err)
		}
	})
}

func (r *rig) must2(turn *Turn, err error) *Turn {
	r.t.Helper()
	r.must(err)
	return turn
}

func TestAgentIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		hosts := []*Host{r.host, r.another(), r.another()}
		agents := make([]memgpt.Agent, len(hosts))
		var wg sync.WaitGroup
		for i, h := range hosts {
			wg.Go(func() {
				var err error
				agents[i], err = h.Agent(r.ctx, "t", "new", AgentTemplate{})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, a := range agents {
			if a.ID != agents[0].ID {
				t.Errorf("agents %s and %s, want one", a.ID, agents[0].ID)
			}
		}
		blocks, _ := r.store.Blocks(r.ctx, "t", agents[0].Blocks)
		if len(blocks) != 2 || blocks[0].Label != "persona" || blocks[1].Label != "human" || blocks[0].Limit != 2000 {
			t.Errorf("blocks %+v", blocks)
		}
		r.store.outside = memgpt.Outside{Elsewhere: 3, Passages: 1}
		main, err := r.host.Thread(r.ctx, agents[0], MainThread)
		r.must(err)
		side, err := r.host.Thread(r.ctx, agents[0], "side")
		r.must(err)
		again, err := r.host.Thread(r.ctx, agents[0], "side")
		r.must(err)
		if main.Summary.Outside.Elsewhere != 0 || side.Summary.Outside.Elsewhere != 3 || side.Summary.Time.IsZero() || again.ID != side.ID {
			t.Errorf("main %+v, side %+v, again %+v", main, side, again)
		}
		if _, err := r.host.Agent(r.ctx, "t", "mars", AgentTemplate{Agent: memgpt.Agent{Zone: "Mars/Olympus"}}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("zone: %v", err)
		}
		long := []memgpt.Block{{Label: "x", Value: strings.Repeat("小", 11), Limit: 10}}
		if _, err := r.host.Agent(r.ctx, "t", "long", AgentTemplate{Blocks: long}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("long block: %v", err)
		}
		r.close(hosts[1:]...)
	})
}

func TestUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		gate := make(chan struct{})
		r.kernel.think = func(_ context.Context, w *store.Work) error {
			for i := range 1000 {
				w.Emit(memgpt.Streamed{Step: 1, Delta: memgpt.Delta{Text: fmt.Sprint(i, " ")}})
			}
			<-gate
			return nil
		}
		all := r.host.Watch(r.ctx, "", r.main.ID)
		turn := r.send("hi")
		synctest.Wait()
		past, rd := turn.subscribe() // in mid-step: pieces are there, joined
		turn.unsubscribe(rd)
		var text strings.Builder
		for _, u := range past {
			if s, ok := u.(memgpt.Streamed); ok {
				text.WriteString(s.Delta.Text)
			}
		}
		if !strings.HasPrefix(text.String(), "0 1 2 ") || !strings.HasSuffix(text.String(), "998 999 ") || len(past) > 2*compactAt {
			t.Errorf("%d updates with %q", len(past), text.String())
		}
		close(gate)
		r.wait(turn, memgpt.TurnDone)
		want := []string{"memgpt.TurnStarted", "memgpt.StepCommitted", "memgpt.Spoke", "memgpt.TurnEnded"}
		if diff := cmp.Diff(want, kinds(turn.Updates(r.ctx))); diff != "" {
			t.Errorf("updates read late (-want +got):\n%s", diff)
		}
		r.close()
		var watched []string
		for _, k := range kinds(all) {
			if k != "memgpt.Streamed" {
				watched = append(watched, k)
			}
		}
		if diff := cmp.Diff(want, watched); diff != "" {
			t.Errorf("updates of the conversation (-want +got):\n%s", diff)
		}
	})
}

func kinds(updates func(func(memgpt.Update) bool)) (names []string) {
	for u := range updates {
		names = append(names, fmt.Sprintf("%T", u))
	}
	return names
}

func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Buffer = 10 })
		begin := make(chan struct{})
		r.kernel.think = func(_ context.Context, w *store.Work) error {
			<-begin
			for range 100 {
				w.Emit(memgpt.Streamed{Step: 1, Delta: memgpt.Delta{Text: "x"}})
			}
			return nil
		}
		turn := r.send("hi")
		synctest.Wait()
		var got []memgpt.Update
		for u := range turn.Updates(r.ctx) {
			if got = append(got, u); len(got) == 1 {
				close(begin) // and read nothing while the turn runs to its end
				r.wait(turn, memgpt.TurnDone)
			}
		}
		last, ok := got[len(got)-1].(memgpt.Warned)
		if !ok || last.Code != WarnCutOff || len(got) != 12 {
			t.Errorf("%d updates, the last is %#v", len(got), got[len(got)-1])
		}
		if again := kinds(turn.Updates(r.ctx)); len(again) != 4 {
			t.Errorf("updates read again: %v", again)
		}
		ended, end := context.WithCancel(r.ctx)
		end()
		if n := len(kinds(turn.Updates(ended))); n != 0 {
			t.Errorf("%d updates after the context's end", n)
		}
		r.close()
	})
}

func TestManyWaitingConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		r := newRig(t)
		r.kernel.think = func(context.Context, *store.Work) error { time.Sleep(time.Minute); return nil }
		var turns []*Turn
		for i := range n {
			agent, thread := r.makeAgent(fmt.Sprint("a", i), AgentTemplate{})
			m := r.message("hi")
			m.Agent, m.Thread = agent.ID, thread.ID
			turns = append(turns, r.must2(r.host.Send(r.ctx, m)))
		}
		for _, turn := range turns {
			r.wait(turn, memgpt.TurnDone)
		}
		renewed := 0
		for _, c := range r.store.commits {
			if c.Lease != nil && !c.Release && len(c.Threads) == 0 {
				renewed++
			}
		}
		if renewed < 4*n || renewed > 6*n {
			t.Errorf("%d renewals in a minute of %d conversations", renewed, n)
		}
		r.close()
	})
}

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.kernel.think = func(context.Context, *store.Work) error { time.Sleep(5 * time.Second); return nil }
		turn := r.send("hi")
		synctest.Wait()
		start := time.Now()
		var seq int64
		r.must(r.host.Do(r.ctx, "", r.agent.ID, r.main.ID, func(ctx context.Context, w *store.Work) error {
			seq = w.State.Thread.Next
			_, err := r.store.Commit(ctx, &store.Commit{Now: time.Now(), Lease: &w.Lease, Threads: []memgpt.Thread{w.State.Thread}})
			return err
		}))
		if took := time.Since(start); took != 5*time.Second || seq != 3 {
			t.Errorf("ran after %v at %d, want after the turn", took, seq)
		}
		r.wait(turn, memgpt.TurnDone)
		err := r.host.Do(r.ctx, "", r.agent.ID, r.main.ID, func(context.Context, *store.Work) error { panic("oh") })
		if err == nil || !strings.Contains(err.Error(), "oh") {
			t.Errorf("a panic gave %v", err)
		}
		r.wait(r.send("next"), memgpt.TurnDone)
		synctest.Wait()
		r.free()
		busy := r.send("busy")
		synctest.Wait()
		short, end := context.WithTimeout(r.ctx, time.Second)
		defer end()
		if err := r.host.Do(short, "", r.agent.ID, r.main.ID, nil); err == nil {
			t.Error("a job outlived its caller")
		}
		r.wait(busy, memgpt.TurnDone)
		r.close()
		if slices.Contains(r.kernel.ran(r.main.ID), "x") || len(r.reports) > 0 {
			t.Error(r.reports)
		}
	})
}
