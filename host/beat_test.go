package host

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/store"
)

// beating returns a rig whose agent has timer heartbeats.
func beating(t *testing.T, every time.Duration) *rig {
	r := newRig(t, func(c *Config) { c.Poll = -1 })
	r.agent, r.main = r.makeAgent("beating", AgentTemplate{Agent: memgpt.Agent{Heartbeat: every}})
	return r
}

// beats checks how many heartbeats ran, and that one is pending at most beside one that runs.
func (r *rig) beats(want int) {
	r.t.Helper()
	synctest.Wait()
	n := 0
	for _, text := range r.kernel.ran(r.main.ID) {
		if strings.HasPrefix(text, timerText) {
			n++
		}
	}
	if n != want {
		r.t.Errorf("%d heartbeats ran, want %d", n, want)
	}
	r.host.mu.Lock()
	busy := r.host.running
	r.host.mu.Unlock()
	if events := r.pendingEvents(); len(events) != 1+busy {
		r.t.Errorf("%d events are pending while %d run, want one beside", len(events), busy)
	}
}

// feed puts a message into the log of the main conversation, as another process would, so that a heartbeat has something to
// tell.
func (r *rig) feed(text string) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	th := r.store.threads[r.main.ID]
	r.store.entries[th.ID] = append(r.store.entries[th.ID], memgpt.Entry{ID: r.newID("message"), Agent: th.Agent, Thread: th.ID,
		Seq: th.Next, Turn: r.newID("turn"), Time: time.Now(), Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
	th.Next, th.Version = th.Next+1, th.Version+1
	r.store.threads[th.ID] = th
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beating(t, time.Second)
		r.must(r.host.Start(r.ctx))
		r.must(r.host.Heartbeats(r.ctx, r.agent))
		r.must(r.host.Heartbeats(r.ctx, r.agent))
		time.Sleep(900 * time.Millisecond)
		r.beats(0)
		r.kernel.think = sleep(5 * time.Second) // longer than the interval
		turn := r.send("work")
		time.Sleep(4500 * time.Millisecond)
		r.beats(0)
		r.wait(turn, memgpt.TurnDone)
		r.kernel.think = nil
		time.Sleep(900 * time.Millisecond)
		r.beats(0)
		time.Sleep(400 * time.Millisecond)
		r.beats(1)
		for range 10 {
			r.feed("news")
			time.Sleep(time.Second)
		}
		if n := len(r.kernel.ran(r.main.ID)); n < 9 || n > 12 {
			t.Errorf("%d turns after ten more seconds", n)
		}
		time.Sleep(time.Minute)
		if n := len(r.kernel.ran(r.main.ID)); n < 9 || n > 12 {
			t.Errorf("%d turns after a minute without news", n)
		}
		r.close()
	})
}

func TestHeartbeatsPauseAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beating(t, time.Hour)
		r.must(r.host.Start(r.ctx))
		r.wait(r.send("hi"), memgpt.TurnDone) // a turn sets the first
		time.Sleep(59 * time.Minute)
		r.beats(0)
		time.Sleep(2 * time.Minute)
		r.beats(1)
		r.store.mu.Lock()
		main := r.store.threads[r.main.ID]
		main.Paused, main.Version = time.Now().Add(10*time.Hour), main.Version+1
		r.store.threads[r.main.ID] = main
		r.store.mu.Unlock()
		r.feed("news")
		time.Sleep(9*time.Hour + 50*time.Minute)
		r.beats(1)
		time.Sleep(20 * time.Minute)
		r.beats(2)
		r.close()
		r.feed("news")
		time.Sleep(100 * time.Hour)
		r.host = r.another(func(c *Config) { c.Poll = -1 })
		r.must(r.host.Start(r.ctx))
		time.Sleep(time.Minute)
		r.beats(3) // once for all that was missed
		r.feed("news")
		time.Sleep(time.Hour)
		r.beats(4)
		r.agent.Heartbeat = 0
		_, err := r.store.Commit(r.ctx, &store.Commit{Now: time.Now(), Agents: []memgpt.Agent{r.agent}})
		r.must(err)
		time.Sleep(5 * time.Hour)
		synctest.Wait()
		if n := len(r.pendingEvents()); n != 0 || len(r.kernel.ran(r.main.ID)) != 5 {
			t.Errorf("%d events are pending though heartbeats are off, %d turns", n, len(r.kernel.ran(r.main.ID)))
		}
		r.free()
		r.close()
	})
}

func TestHeartbeatsBeginLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beating(t, time.Hour)
		r.must(r.host.Start(r.ctx))
		time.Sleep(90 * time.Minute) // the clock sleeps
		r.feed("news")
		r.must(r.host.Heartbeats(r.ctx, r.agent))
		time.Sleep(61 * time.Minute)
		r.beats(1)
		r.close()
	})
}

func TestHeartbeatsOfTwoHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beating(t, time.Minute)
		other := r.another()
		for _, h := range []*Host{r.host, other} {
			r.must(h.Start(r.ctx))
		}
		r.kernel.think = sleep(10 * time.Second)
		done := make(chan error)
		for _, h := range []*Host{r.host, other} {
			go func() { done <- h.Heartbeats(r.ctx, r.agent) }()
		}
		r.must(<-done)
		r.must(<-done)
		for i := range 6 { // each takes 70 s
			r.feed("news")
			time.Sleep(70 * time.Second)
			if i == 0 {
				time.Sleep(5 * time.Second)
			}
		}
		time.Sleep(25 * time.Second)
		if n := len(r.kernel.ran(r.main.ID)); n != 6 {
			t.Errorf("%d heartbeats ran", n)
		}
		r.close(other)
	})
}

// TestHeartbeatSettingsChange: a heartbeat that waits follows the settings as they are now, sooner and later.
func TestHeartbeatSettingsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimerRig(t, "2026-05-01T08:00:00Z", memgpt.Agent{Timers: memgpt.Timers{Cron: "0 9 * * *"}})
		r.must(r.host.Start(r.ctx))
		set := func(every time.Duration, cron string) {
			r.agent.Heartbeat, r.agent.Timers.Cron = every, cron
			_, err := r.store.Commit(r.ctx, &store.Commit{Now: r.now(), Agents: []memgpt.Agent{r.agent}})
			r.must(err)
			r.must(r.host.Heartbeats(r.ctx, r.agent))
		}
		set(0, "0 9 * * *")
		r.feed("news")
		time.Sleep(30 * time.Minute)
		set(0, "0 18 * * *")
		time.Sleep(9 * time.Hour)
		r.rings("")
		time.Sleep(time.Hour)
		r.rings("", "2026-05-01T18:00:00Z")
		r.feed("news")
		set(10*time.Minute, "")
		time.Sleep(11 * time.Minute)
		if n := len(r.times("")); n != 2 {
			t.Errorf("%d heartbeats since the interval is ten minutes", n-1)
		}
		r.close()
	})
}

// TestRunDue: a host that isn't started runs what is due for one conversation, and only that; what another host runs it
// leaves alone.
func TestRunDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimerRig(t, "2026-05-01T08:00:00Z", memgpt.Agent{})
		due, later := r.schedule("due", "", r.now().Add(time.Minute)), r.schedule("later", "", r.now().Add(time.Hour))
		r.must(r.host.RunDue(r.ctx, "", r.agent.ID, r.main.ID))
		r.rings(due)
		time.Sleep(2 * time.Minute)
		r.must(r.host.RunDue(r.ctx, "", r.agent.ID, r.main.ID))
		r.rings(due, "2026-05-01T08:01:00Z")
		r.rings(later)
		other := r.another(r.set)
		r.kernel.think = sleep(time.Hour)
		turn, err := other.Send(r.ctx, r.message("work"))
		r.must(err)
		time.Sleep(59 * time.Minute)
		begun := time.Now()
		r.must(r.host.RunDue(r.ctx, "", r.agent.ID, r.main.ID))
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it waited for %v for what another host runs", took)
		}
		r.wait(turn, memgpt.TurnDone)
		r.close(other)
	})
}
