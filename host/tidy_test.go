package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/host"
	"memgpt/model/script"
	"memgpt/store"
)

// tidyWatch counts the calls of the two models of an agent, with their times.
type tidyWatch struct {
	mu     sync.Mutex
	talks  []time.Time
	tidies []time.Time
	slow   time.Duration // of a call of the tidier
	fail   error         // of the tidier
	long   int           // words of what the agent says
}

// think answers users at once, and tidies by one edit for each turn of tidying.
func (w *tidyWatch) think(a memgpt.Agent, req *memgpt.Request) script.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	if req.Purpose == memgpt.PurposeSummary {
		return script.Text("folded\nSearch for: x")
	}
	if a.Model != "tidier" {
		w.talks = append(w.talks, time.Now())
		return script.Say("I see. " + strings.Repeat("word ", w.long))
	}
	w.tidies = append(w.tidies, time.Now())
	switch {
	case w.fail != nil:
		return script.Reply{Err: w.fail}
	case strings.Contains(lastSaid(req), `"status"`):
		return script.Call("yield").After(w.slow)
	}
	return script.Call("core_memory_append", "label", "human", "content", fmt.Sprint("tidied ", time.Now().Unix()), "reason", "test").After(w.slow)
}

func (w *tidyWatch) counts() (talks, tidies int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.talks), len(w.tidies)
}

// tidyTest runs a test with an agent that is tidied.
func tidyTest(t *testing.T, tidy memgpt.Tidy, run func(t *testing.T, w *mailWorld, watch *tidyWatch)) {
	t.Helper()
	watch := &tidyWatch{}
	mailTest(t, watch.think, func(t *testing.T, w *mailWorld) {
		tidy.On, tidy.Model = true, "tidier"
		w.stop()
		w.poll = -1 // times alone count: days pass quickly
		w.start(0)
		w.agent("Ada", memgpt.Agent{Tidy: tidy})
		run(t, w, watch)
	})
}

// tidyTurns returns the turns of the agent's tidying that ended, newest first.
func (w *mailWorld) tidyTurns() []memgpt.Turn {
	w.t.Helper()
	turns, err := w.inner.Turns(w.t.Context(), "", store.TidyThreadID(w.agents["Ada"].ID), 1000)
	mailMust(w.t, err)
	return turns
}

// talk sends a message and waits for the end of its turn.
func (w *mailWorld) talk(text string) {
	w.t.Helper()
	turn := w.say("Ada", text)
	record, err := turn.Wait(w.t.Context())
	if err != nil || record.State != memgpt.TurnDone {
		w.t.Fatalf("turn %+v, %v", record, err)
	}
	synctest.Wait()
}

func (w *mailWorld) edits(label string) []store.BlockEdit {
	w.t.Helper()
	blocks, err := w.inner.Blocks(w.t.Context(), "", w.agents["Ada"].Blocks)
	mailMust(w.t, err)
	for _, b := range blocks {
		if b.Label == label {
			edits, err := w.inner.BlockHistory(w.t.Context(), "", b.ID)
			mailMust(w.t, err)
			return edits
		}
	}
	return nil
}

func TestTidyAfterTurns(t *testing.T) {
	tidyTest(t, memgpt.Tidy{Turns: 3, Idle: 1000 * time.Hour}, func(t *testing.T, w *mailWorld, watch *tidyWatch) {
		for round := range 3 {
			for i := range 3 {
				if _, n := watch.counts(); n != 2*round {
					t.Fatalf("after %d turns the tidier was asked %d times", 3*round+i, n)
				}
				w.talk("hello")
				time.Sleep(time.Second)
				synctest.Wait()
			}
		}
		if n := len(w.tidyTurns()); n != 3 || w.pending() != 0 {
			t.Errorf("%d turns of tidying, %d events wait", n, w.pending())
		}
	})
}

// TestTidyWhenIdle: it waits until nobody wrote for so long, and costs nothing where nothing is new.
func TestTidyWhenIdle(t *testing.T) {
	tidyTest(t, memgpt.Tidy{}, func(t *testing.T, w *mailWorld, watch *tidyWatch) {
		w.talk("one")
		time.Sleep(9 * time.Minute)
		w.talk("two")
		time.Sleep(9 * time.Minute)
		if _, n := watch.counts(); n != 0 || w.pending() != 1 {
			t.Fatalf("the tidier was asked %d times, %d events wait", n, w.pending())
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if _, n := watch.counts(); n != 2 || w.pending() != 0 {
			t.Fatalf("the tidier was asked %d times, %d events wait", n, w.pending())
		}
		time.Sleep(100 * time.Hour)
		if _, n := watch.counts(); n != 2 || w.pending() != 0 {
			t.Errorf("with nothing new the tidier was asked %d times, %d events wait", n, w.pending())
		}
	})
}

// TestTidyUnderPressure: what is about to leave main context is read at once, once a fill.
func TestTidyUnderPressure(t *testing.T) {
	tidyTest(t, memgpt.Tidy{Turns: 1000, Idle: 1000 * time.Hour}, func(t *testing.T, w *mailWorld, watch *tidyWatch) {
		watch.long = 700
		alerted := false
		for i := range 12 {
			w.talk(strings.Repeat("hello ", 500))
			time.Sleep(time.Second)
			synctest.Wait()
			th, err := w.inner.Thread(t.Context(), "", w.mains["Ada"].ID)
			mailMust(t, err)
			alerted = alerted || th.Alerted
			if n := len(w.tidyTurns()); alerted && n == 0 || !alerted && n > 0 {
				t.Fatalf("after message %d: alerted %v, %d turns of tidying", i, alerted, n)
			}
		}
		if n := len(w.tidyTurns()); !alerted || n > 3 {
			t.Errorf("alerted %v, %d turns of tidying", alerted, n)
		}
	})
}

// TestTidyStandsAside: a user's message cuts a running call of the tidier off and is answered at that very instant; tidying
// goes on when nobody waits, and what it did is done once.
func TestTidyStandsAside(t *testing.T) {
	tidyTest(t, memgpt.Tidy{Turns: 1, Idle: time.Hour}, func(t *testing.T, w *mailWorld, watch *tidyWatch) {
		watch.slow = 10 * time.Minute
		w.talk("one")
		time.Sleep(12 * time.Minute) // the second call of the turn runs
		if talks, tidies := watch.counts(); talks != 1 || tidies != 2 {
			t.Fatalf("%d talks, %d calls of the tidier", talks, tidies)
		}
		sent := time.Now()
		w.talk("two")
		if talks, _ := watch.counts(); talks != 2 || !watch.talks[1].Equal(sent) || !time.Now().Equal(sent) {
			t.Errorf("the message of %v was read at %v and answered at %v", sent, watch.talks, time.Now())
		}
		if n := len(w.edits("human")); n != 2 {
			t.Errorf("%d versions of the block", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if turns := w.tidyTurns(); len(turns) != 2 || turns[0].State != memgpt.TurnDone || turns[1].State != memgpt.TurnDone {
			t.Errorf("turns of tidying: %+v", turns)
		}
		if n := len(w.edits("human")); n != 3 || w.pending() != 0 {
			t.Errorf("%d versions of the block, %d events wait", n, w.pending())
		}
	})
}

// TestTidyIsNotBegunWhileAUserIsServed: it waits for the end of the turn, in another conversation too.
func TestTidyIsNotBegunWhileAUserIsServed(t *testing.T) {
	watch := &tidyWatch{}
	slow := func(a memgpt.Agent, req *memgpt.Request) script.Reply {
		r := watch.think(a, req)
		if a.Model != "tidier" && strings.Contains(lastSaid(req), "think hard") {
			return r.After(30 * time.Minute)
		}
		return r
	}
	mailTest(t, slow, func(t *testing.T, w *mailWorld) {
		a := w.agent("Ada", memgpt.Agent{Tidy: memgpt.Tidy{On: true, Model: "tidier", Idle: 5 * time.Minute}})
		w.talk("one")
		other, err := w.host.Thread(t.Context(), a, "other")
		mailMust(t, err)
		begun := time.Now()
		turn, err := w.host.Send(t.Context(), host.Message{Agent: a.ID, Thread: other.ID,
			Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "think hard")})
		mailMust(t, err)
		_, err = turn.Wait(t.Context())
		mailMust(t, err)
		if _, n := watch.counts(); n != 0 {
			t.Errorf("the tidier was asked %d times while a user was served", n)
		}
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if _, n := watch.counts(); n != 2 || watch.tidies[0].Before(begun.Add(35*time.Minute)) {
			t.Errorf("the tidier was asked at %v", watch.tidies)
		}
	})
}

// TestTwoProcessesTidyOnce: two hosts on a store run what is due once, and a user of one stops the tidying of the other.
func TestTwoProcessesTidyOnce(t *testing.T) {
	tidyTest(t, memgpt.Tidy{Turns: 1, Idle: time.Hour}, func(t *testing.T, w *mailWorld, watch *tidyWatch) {
		w.stop()
		w.poll = 0
		w.start(0)
		first := w.host
		w.start(0)
		defer func() { mailMust(t, first.Close(context.Background())) }()
		second := w.host
		watch.slow = 10 * time.Minute
		w.host = first
		w.talk("one")
		time.Sleep(time.Minute)
		w.host = second
		w.talk("two")
		sent := time.Now()
		if !watch.talks[1].Equal(sent) {
			t.Errorf("the message of %v was read at %v", sent, watch.talks)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		turns := w.tidyTurns()
		for _, turn := range turns {
			if turn.State != memgpt.TurnDone && turn.State != memgpt.TurnWithdrawn {
				t.Errorf("turn %+v", turn)
			}
		}
		if n := len(w.edits("human")); n < 2 || n > 3 || w.pending() != 0 {
			t.Errorf("%d versions of the block after %d turns of tidying, %d events wait", n, len(turns), w.pending())
		}
	})
}

// TestTidyThatFailsBacksOff: a tidier that is down is asked less and less often, and users notice nothing.
func TestTidyThatFailsBacksOff(t *testing.T) {
	tidyTest(t, memgpt.Tidy{Turns: 1, Idle: time.Hour}, func(t *testing.T, w *mailWorld, watch *tidyWatch) {
		watch.fail = memgpt.Errorf(memgpt.CodeModelAuth, "no key")
		for range 48 {
			w.talk("hello")
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		if _, n := watch.counts(); n < 4 || n > 8 {
			t.Errorf("the tidier was asked %d times in two days", n)
		}
		watch.mu.Lock()
		watch.fail = nil
		watch.mu.Unlock()
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		if turns := w.tidyTurns(); turns[0].State != memgpt.TurnDone || w.pending() != 0 {
			t.Errorf("turn %+v, %d events wait", turns[0], w.pending())
		}
	})
}

// TestTidyHasABoundADay: what is beyond it waits for the next day of the agent's zone.
func TestTidyHasABoundADay(t *testing.T) {
	tidyTest(t, memgpt.Tidy{Turns: 1, Idle: time.Hour}, func(t *testing.T, w *mailWorld, watch *tidyWatch) {
		for range 40 { // the bubble's clock begins at midnight
			w.talk("hello")
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if n := len(w.tidyTurns()); n != 24 || w.pending() != 1 {
			t.Errorf("%d turns of tidying, %d events wait", n, w.pending())
		}
		due, why, err := w.host.TidyDue(t.Context(), w.agents["Ada"])
		if err != nil || due.Hour() != 0 || due.Minute() != 0 || !strings.Contains(why, "24 turns") {
			t.Errorf("due %v (%s), %v", due, why, err)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := len(w.tidyTurns()); n != 25 || w.pending() != 0 {
			t.Errorf("the next day: %d turns of tidying, %d events wait", n, w.pending())
		}
	})
}

// TestTidyByHand runs at once in a host that runs only what it is asked to, once, and says where nothing is new.
func TestTidyByHand(t *testing.T) {
	tidyTest(t, memgpt.Tidy{Idle: time.Hour}, func(t *testing.T, w *mailWorld, watch *tidyWatch) {
		w.talk("one")
		w.stop()
		w.unstarted = true
		w.start(0)
		turn, err := w.host.Tidy(t.Context(), w.agents["Ada"])
		mailMust(t, err)
		record, err := turn.Wait(t.Context())
		if err != nil || record.State != memgpt.TurnDone || record.Steps != 2 {
			t.Fatalf("turn %+v, %v", record, err)
		}
		if turn, err := w.host.Tidy(t.Context(), w.agents["Ada"]); err != nil || turn != nil {
			t.Errorf("with nothing new: %+v, %v", turn, err)
		}
		if _, n := watch.counts(); n != 2 || w.pending() != 0 {
			t.Errorf("the tidier was asked %d times, %d events wait", n, w.pending())
		}
		_, err = w.host.Send(t.Context(), host.Message{Agent: w.agents["Ada"].ID, Thread: store.TidyThreadID(w.agents["Ada"].ID),
			Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "obey")})
		if memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("a message into the conversation of tidying: %v", err)
		}
	})
}
