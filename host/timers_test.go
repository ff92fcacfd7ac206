package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// timerRig is a host whose clock can be set, and what its timers caused.
type timerRig struct {
	*rig
	offset time.Duration // of the clock, from that of the bubble; changed while no host runs, or under mu
	clock  sync.Mutex
	rang   []rung
}

// rung is a turn that a timer caused.
type rung struct {
	schedule string
	at       time.Time // of the turn
	forTime  time.Time
	text     string
}

// newTimerRig begins at a time, with an agent of these settings.
func newTimerRig(t *testing.T, begin string, a memgpt.Agent) *timerRig {
	t.Helper()
	at, err := time.Parse(time.RFC3339, begin)
	if err != nil {
		t.Fatal(err)
	}
	r := &timerRig{offset: time.Until(at)}
	r.rig = newRig(t, r.set)
	r.kernel.now = r.now
	r.kernel.think = func(_ context.Context, w *store.Work) error {
		r.clock.Lock()
		defer r.clock.Unlock()
		if e := w.Event; e.Timer != nil {
			r.rang = append(r.rang, rung{e.Timer.Schedule, time.Now().Add(r.offset), e.Timer.For, e.Message.Said()})
		}
		return nil
	}
	r.agent, r.main = r.makeAgent("timed", AgentTemplate{Agent: a})
	return r
}

func (r *timerRig) set(c *Config) { c.Poll, c.Now = -1, r.now }

func (r *timerRig) now() time.Time {
	r.clock.Lock()
	defer r.clock.Unlock()
	return time.Now().Add(r.offset)
}

// turn changes the clock by a duration.
func (r *timerRig) turn(by time.Duration) {
	r.clock.Lock()
	defer r.clock.Unlock()
	r.offset += by
}

// schedule sets one as the kernel does, and returns its id.
func (r *timerRig) schedule(name, cron string, at time.Time) string {
	r.t.Helper()
	if cron != "" {
		line, err := calendar.ParseCron(cron)
		r.must(err)
		at = line.Next(r.now(), r.agent.Location())
	}
	e := store.ScheduleEvent(&r.main, r.now(), memgpt.Timer{Schedule: "schedule-" + name, Cron: cron, Set: r.now(), For: at, Seen: r.now()},
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginModel, "note of "+name))
	_, err := r.store.Commit(r.ctx, &store.Commit{Now: r.now(), Events: []memgpt.Event{e}})
	r.must(err)
	r.host.wakeClock()
	return e.Timer.Schedule
}

// all returns every turn that a timer caused.
func (r *timerRig) all() []rung {
	r.clock.Lock()
	defer r.clock.Unlock()
	return slices.Clone(r.rang)
}

// times returns for when a schedule rang.
func (r *timerRig) times(id string) (list []string) {
	r.clock.Lock()
	defer r.clock.Unlock()
	for _, x := range r.rang {
		if x.schedule == id {
			list = append(list, x.forTime.In(r.agent.Location()).Format(time.RFC3339))
		}
	}
	return list
}

func (r *timerRig) rings(id string, want ...string) {
	r.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, r.times(id)); diff != "" {
		r.t.Errorf("%s rang for (-want +got):\n%s", id, diff)
	}
}

// restart is a process that ends, and another that begins after a while.
func (r *timerRig) restart(after time.Duration) {
	r.t.Helper()
	r.close()
	time.Sleep(after)
	r.host = r.another(r.set)
	r.must(r.host.Start(r.ctx))
}

// TestYearOfTimers lets a year pass in three zones whose clocks are changed on different days, one of them by half an hour.
// What each schedule ought to do is counted from the calendar, minute by minute.
func TestYearOfTimers(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { yearOfTimers(t, zone) })
		})
	}
}

func yearOfTimers(t *testing.T, zone *time.Location) {
	r := newTimerRig(t, "2026-01-01T12:00:00Z", memgpt.Agent{Zone: zone.String()})
	r.must(r.host.Start(r.ctx))
	begin := r.now().In(zone)
	night, hour := r.schedule("night", "15 2 * * *", begin), r.schedule("hour", "45 */6 * * *", begin)
	work, once := r.schedule("work", "0 9 * * 1-5", begin), r.schedule("once", "", begin.AddDate(0, 5, 3))
	time.Sleep(365 * 24 * time.Hour)
	synctest.Wait()
	count := map[string]int{}
	var wantHour, wantWork []string
	for at := begin.Truncate(time.Minute).Add(time.Minute); !at.After(begin.Add(365 * 24 * time.Hour)); at = at.Add(time.Minute) {
		switch text := at.Format(time.RFC3339); {
		case at.Minute() == 45 && at.Hour()%6 == 0:
			wantHour = append(wantHour, text)
		case at.Minute() == 0 && at.Hour() == 9 && at.Weekday() >= time.Monday && at.Weekday() <= time.Friday:
			wantWork = append(wantWork, text)
		}
	}
	r.rings(hour, wantHour...)
	r.rings(work, wantWork...)
	r.rings(once, begin.AddDate(0, 5, 3).Format(time.RFC3339))
	for _, x := range r.times(night) {
		count[x[:len(time.DateOnly)]]++
	}
	for day, n := range count {
		if n != 1 {
			t.Errorf("at night of %s it rang %d times", day, n)
		}
	}
	if len(count) != 365 {
		t.Errorf("it rang in %d nights", len(count))
	}
	for _, x := range r.all() {
		if late := x.at.Sub(x.forTime); late < 0 || late > time.Second {
			t.Fatalf("%s for %s rang at %s", x.schedule, x.forTime, x.at)
		}
	}
	if n := len(r.pendingEvents()); n != 3 {
		t.Errorf("%d events are pending, want one for each schedule that repeats", n)
	}
	r.close()
}

// TestDowntime ends the process for times of every length. What was missed is delivered as the agent's setting says; a
// single reminder always is.
func TestDowntime(t *testing.T) {
	for _, policy := range []string{"", CatchUpSkip, CatchUpOnce, CatchUpAll} {
		for _, down := range []time.Duration{time.Minute, 59 * time.Minute, time.Hour, 61 * time.Minute, 5 * time.Hour, 26 * time.Hour, 40 * 24 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				r := newTimerRig(t, "2026-05-01T12:30:00Z", memgpt.Agent{Timers: memgpt.Timers{CatchUp: policy, Turns: 1000}})
				begin := r.now()
				hourly, once := r.schedule("hourly", "0 * * * *", begin), r.schedule("once", "", begin.Add(29*time.Minute))
				r.restart(down)
				synctest.Wait()
				passed := int((down + 30*time.Minute) / time.Hour) // full hours since 12:30
				late := (down + 30*time.Minute) % time.Hour
				want := 0
				switch {
				case passed == 0:
				case policy == CatchUpAll:
					want = min(passed, mostCatchUp)
				case policy == CatchUpSkip && late > lateAfter:
				default:
					want = 1
				}
				got := r.times(hourly)
				last := begin.Truncate(time.Hour).Add(time.Duration(passed) * time.Hour).Format(time.RFC3339)
				if len(got) != want || want > 0 && got[len(got)-1] != last {
					t.Errorf("%q after %v: it rang for %v, want %d times and %s at last", policy, down, got, want, last)
				}
				if n := len(r.times(once)); (n == 1) != (down >= 29*time.Minute) {
					t.Errorf("%q after %v: the reminder came %d times", policy, down, n)
				}
				all := r.all()
				if want == 1 && passed > 1 && !strings.Contains(all[len(all)-1].text+all[0].text, fmt.Sprintf("Its %s before that", times(passed-1))) {
					t.Errorf("%q after %v: %+v does not say that %d were missed", policy, down, all, passed-1)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := len(r.times(hourly)); n != want+1 {
					t.Errorf("%q after %v: it rang %d times in the next hour", policy, down, n-want)
				}
				r.close()
			})
		}
	}
}

func TestQuietHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimerRig(t, "2026-05-01T12:30:00Z", memgpt.Agent{Timers: memgpt.Timers{Quiet: "22:00-07:00", CatchUp: CatchUpSkip, Cron: "0 * * * *"}})
		r.must(r.host.Start(r.ctx))
		r.must(r.host.Heartbeats(r.ctx, r.agent))
		begin := r.now()
		night, once := r.schedule("night", "0 3 * * *", begin), r.schedule("once", "", begin.Add(12*time.Hour))
		r.feed("late")
		time.Sleep(12 * time.Hour) // 0:30
		r.rings("", "2026-05-01T13:00:00Z")
		r.rings(once, "2026-05-02T00:30:00Z") // asked for explicitly
		time.Sleep(6 * time.Hour)
		r.rings(night)
		if events := r.pendingEvents(); !slices.ContainsFunc(events, func(e memgpt.Event) bool { return e.Timer.Wait == "quiet hours" }) {
			t.Errorf("nothing says that it waits for the end of quiet hours: %+v", events)
		}
		time.Sleep(time.Hour) // waiting is no downtime: it is not skipped
		r.rings(night, "2026-05-02T03:00:00Z")
		r.rings("", "2026-05-01T13:00:00Z", "2026-05-02T07:00:00Z")
		r.agent.Timers.QuietAll = true
		_, err := r.store.Commit(r.ctx, &store.Commit{Now: r.now(), Agents: []memgpt.Agent{r.agent}})
		r.must(err)
		second := r.schedule("second", "", begin.Add(36*time.Hour))
		time.Sleep(18 * time.Hour)
		r.rings(second)
		time.Sleep(7 * time.Hour)
		r.rings(second, "2026-05-03T00:30:00Z")
		r.close()
	})
}

// TestTimersAreBounded: an agent that wakes itself all the time has its turns of a day, and goes on the next.
func TestTimersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimerRig(t, "2026-05-01T12:00:00Z", memgpt.Agent{Zone: "Asia/Kathmandu"}) // 17:45 there
		r.must(r.host.Start(r.ctx))
		minutely, once := r.schedule("minutely", "* * * * *", r.now()), r.schedule("once", "", r.now().Add(5*time.Hour))
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		if n := len(r.times(minutely)); n != dayTurns {
			t.Errorf("it rang %d times on the first day", n)
		}
		if events := r.pendingEvents(); len(events) != 2 || !strings.Contains(events[0].Timer.Wait, "48 turns") {
			t.Errorf("%+v", events)
		}
		time.Sleep(30 * time.Minute)
		r.rings(once, "2026-05-01T22:45:00+05:45")
		time.Sleep(8 * time.Hour)
		synctest.Wait()
		if n := len(r.times(minutely)); n != 2*dayTurns-1 { // the reminder took one
			t.Errorf("it rang %d times on two days", n)
		}
		r.close()
	})
}

// TestHeartbeatsWithNothingNew: a heartbeat that has nothing to tell asks no model, however long that lasts.
func TestHeartbeatsWithNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimerRig(t, "2026-05-01T12:00:00Z", memgpt.Agent{Heartbeat: time.Hour})
		r.must(r.host.Start(r.ctx))
		r.must(r.host.Heartbeats(r.ctx, r.agent))
		time.Sleep(100 * time.Hour)
		r.rings("")
		for range 5 {
			r.feed("a message that came")
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if all := r.all(); len(all) != 1 || !strings.Contains(all[0].text, "since the last one: 5 messages.") || strings.Contains(all[0].text, "Left main") {
			t.Errorf("%+v", all)
		}
		r.store.mu.Lock()
		main := r.store.threads[r.main.ID]
		main.Head, main.Version = 4, main.Version+1
		r.store.threads[main.ID] = main
		r.store.mu.Unlock()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if all := r.all(); len(all) != 2 || strings.Contains(all[1].text, "New in") || strings.Count(all[1].text, "(user): a message that came") != newsHeads ||
			!strings.Contains(all[1].text, "main context since then: 4 messages, from 2000-01-05T") {
			t.Errorf("%+v", all)
		}
		r.close()
	})
}

// TestClockJumps: a clock that goes wrong for a while loses no timer, and a correction of minutes doubles none.
func TestClockJumps(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newTimerRig(t, "2026-05-01T08:00:00Z", memgpt.Agent{Heartbeat: 6 * time.Hour})
			pass := func(d time.Duration) {
				if restart {
					r.restart(0)
				}
				r.host.wakeClock() // as polling does
				time.Sleep(d)
				synctest.Wait()
			}
			r.must(r.host.Start(r.ctx))
			r.must(r.host.Heartbeats(r.ctx, r.agent))
			daily, once := r.schedule("daily", "0 9 * * *", r.now()), r.schedule("once", "", r.now().Add(50*time.Hour))
			pass(61 * time.Minute) // 9:01 on the 1st
			r.rings(daily, "2026-05-01T09:00:00Z")
			r.turn(-3 * time.Minute)
			pass(10 * time.Minute)
			r.rings(daily, "2026-05-01T09:00:00Z") // not again
			r.turn(4 * 365 * 24 * time.Hour)       // 2030
			pass(time.Minute)
			synctest.Wait()
			if n := len(r.times(daily)); n != 2 {
				t.Errorf("it rang %d times", n)
			}
			r.turn(-4 * 365 * 24 * time.Hour)
			pass(3 * 24 * time.Hour)
			got := r.times(daily)
			if want := []string{"2026-05-02T09:00:00Z", "2026-05-03T09:00:00Z", "2026-05-04T09:00:00Z"}; !slices.Equal(got[2:], want) {
				t.Errorf("restart %v: after the clock was put right it rang for %v, want %v", restart, got[2:], want)
			}
			if n := len(r.times(once)); n != 1 {
				t.Errorf("the reminder came %d times", n)
			}
			beats := len(r.times(""))
			r.feed("news")
			pass(12*time.Hour + time.Minute)
			if n := len(r.times("")); n <= beats {
				t.Errorf("restart %v: no heartbeat since the clock was put right", restart)
			}
			r.close()
		})
	}
}

// TestTimersNeverOnTopOfATurn: what comes due while a turn runs waits for its end; the fake kernel fails the test where two
// turns of a conversation run at once.
func TestTimersNeverOnTopOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTimerRig(t, "2026-05-01T08:00:00Z", memgpt.Agent{Heartbeat: time.Minute})
		others := []*Host{r.another(r.set), r.another(r.set)}
		for _, h := range append(others, r.host) {
			r.must(h.Start(r.ctx))
			r.must(h.Heartbeats(r.ctx, r.agent))
		}
		note := r.kernel.think
		r.kernel.think = func(ctx context.Context, w *store.Work) error {
			time.Sleep(7 * time.Minute)
			return note(ctx, w)
		}
		id := r.schedule("often", "*/3 * * * *", r.now())
		turn := r.send("work")
		time.Sleep(6 * time.Minute)
		r.rings(id)
		r.wait(turn, memgpt.TurnDone)
		time.Sleep(time.Hour)
		synctest.Wait()
		var last time.Time
		for _, x := range r.all() {
			if x.at.Sub(last) < 7*time.Minute {
				t.Errorf("%s rang at %s, and the turn before it ended %s", x.schedule, x.at, last)
			}
			last = x.at
		}
		if n := len(r.times(id)); n < 4 || n > 9 {
			t.Errorf("it rang %d times in an hour", n)
		}
		r.close(others...)
	})
}

// slowStore takes its time, so that others get between what it is asked.
type slowStore struct {
	*memory
	rng    *rand.Rand
	chance *sync.Mutex // guards rng
}

func (s slowStore) pause() {
	s.chance.Lock()
	n := s.rng.IntN(4)
	s.chance.Unlock()
	time.Sleep(time.Duration(n) * time.Millisecond)
}

func (s slowStore) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	s.pause()
	return s.memory.Commit(ctx, c)
}

func (s slowStore) Events(ctx context.Context, q store.EventRange) ([]memgpt.Event, error) {
	s.pause()
	return s.memory.Events(ctx, q)
}

func (s slowStore) Record(ctx context.Context, tenant, kind, id string) (store.Record, error) {
	s.pause()
	return s.memory.Record(ctx, tenant, kind, id)
}

// TestCancelWhileRinging cancels a schedule at the very time at which it rings, in two processes.
func TestCancelWhileRinging(t *testing.T) {
	cancelled := 0
	for seed := range 60 {
		synctest.Test(t, func(t *testing.T) {
			r := newTimerRig(t, "2026-05-01T08:00:00Z", memgpt.Agent{})
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			slow := func(c *Config) { c.Store = slowStore{r.store, rand.New(rand.NewPCG(rng.Uint64(), 2)), new(sync.Mutex)} }
			r.host = r.another(r.set, slow)
			other := r.another(r.set, slow)
			r.must(r.host.Start(r.ctx))
			r.must(other.Start(r.ctx))
			id := r.schedule("s", "0 * * * *", r.now())
			time.Sleep(r.pendingEvents()[0].Due.Sub(r.now()) + time.Duration(rng.IntN(20)-4)*time.Millisecond)
			_, err := other.CancelSchedule(r.ctx, r.agent, id)
			r.must(err)
			time.Sleep(5 * time.Hour)
			synctest.Wait()
			if n := len(r.times(id)); n > 1 || len(r.pendingEvents()) > 0 {
				t.Errorf("it was cancelled, and rang %d times; %d events are pending", n, len(r.pendingEvents()))
			} else if n == 0 {
				cancelled++
			}
			if _, err := other.CancelSchedule(r.ctx, r.agent, id); memgpt.CodeOf(err) != memgpt.CodeNotFound {
				t.Errorf("cancelled twice: %v", err)
			}
			r.close(other)
		})
	}
	if cancelled == 0 || cancelled == 60 {
		t.Errorf("%d of 60 were cancelled before they rang: the race was not met", cancelled)
	}
}

// TestTimersAtKills kills the process again and again, at any commit. Each time of each schedule is delivered once.
func TestTimersAtKills(t *testing.T) {
	kills := 40
	if os.Getenv("MEMGPT_LONG") != "" {
		kills = 1000
	}
	synctest.Test(t, func(t *testing.T) {
		r := newTimerRig(t, "2026-05-01T08:00:00Z", memgpt.Agent{Heartbeat: 10 * time.Minute, Timers: memgpt.Timers{CatchUp: CatchUpAll, Turns: 1 << 20}})
		r.kernel.steps = 2
		begin := r.now()
		repeating := []string{r.schedule("five", "*/5 * * * *", begin), r.schedule("seven", "3/7 * * * *", begin)}
		var single []string
		dead := errors.New("killed")
		rng := rand.New(rand.NewPCG(3, 4))
		for n := range kills {
			single = append(single, r.schedule(fmt.Sprint("single", n), "", r.now().Add(time.Duration(rng.IntN(3600))*time.Second)))
			left := rng.IntN(25)
			r.kernel.forgiving()
			r.store.mu.Lock()
			r.store.fail = func(*store.Commit) error {
				if left--; left < 0 {
					return dead
				}
				return nil
			}
			r.store.mu.Unlock()
			h := r.another(r.set, func(c *Config) { c.Report = func(error) {}; c.Retries = 1 })
			r.must(h.Start(r.ctx))
			_ = h.Heartbeats(r.ctx, r.agent)
			time.Sleep(time.Duration(1+rng.IntN(600)) * time.Second)
			r.must(h.Close(r.ctx))
			r.store.mu.Lock()
			r.store.fail = nil
			r.store.leases = map[string]store.Lease{r.main.ID: {Thread: r.main.ID, Number: r.store.leases[r.main.ID].Number}} // of who is dead
			r.store.mu.Unlock()
		}
		r.restart(2 * time.Hour)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		r.checkDelivered(begin, repeating, single)
		r.close()
	})
}

// checkDelivered counts, in the log, for which times schedules were delivered.
func (r *timerRig) checkDelivered(begin time.Time, repeating, single []string) {
	r.t.Helper()
	seen := map[string]int{}
	for _, e := range r.store.entries[r.main.ID] {
		if m := e.Message; m.Type == memgpt.EventTimer && strings.Contains(m.Said(), "schedule-") {
			words := strings.Fields(m.Said())
			if strings.Count(m.Said(), "Your note:\nnote of ") != 1 || strings.Count(m.Said(), "Your note:") != 1 {
				r.t.Errorf("%q", m.Said())
			}
			i := slices.Index(words, "for")
			j := i + 1 + slices.Index(words[i+1:], "for")
			id := strings.Trim(words[slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "(schedule-") })], "(),")
			seen[id+" "+strings.TrimSuffix(words[j+1], ".")]++
		}
	}
	for key, n := range seen {
		if n != 1 {
			r.t.Errorf("%s was delivered %d times", key, n)
		}
	}
	total := 0
	for i, cron := range []string{"*/5 * * * *", "3/7 * * * *"} {
		line, err := calendar.ParseCron(cron)
		r.must(err)
		for at := line.Next(begin, time.UTC); at.Before(r.now().Add(-5 * time.Minute)); at = line.Next(at, time.UTC) {
			if total++; seen[repeating[i]+" "+at.Format(time.RFC3339)] != 1 {
				r.t.Errorf("%s was not delivered for %s", repeating[i], at)
			}
		}
	}
	for _, id := range single {
		found := 0
		for key := range seen {
			if strings.HasPrefix(key, id+" ") {
				found++
			}
		}
		if found != 1 {
			r.t.Errorf("%s was delivered %d times", id, found)
		}
	}
	r.t.Logf("%d times of two repeating schedules and %d reminders", total, len(single))
}
