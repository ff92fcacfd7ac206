package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/retry"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/storetest"
)

// shownByUI returns what a reader of updates has on the screen: what was streamed of messages, less what was taken back.
func shownByUI(updates []memgpt.Update) string {
	var kept, step strings.Builder
	for _, u := range updates {
		switch u := u.(type) {
		case memgpt.Streamed:
			if u.Delta.Call != nil {
				step.WriteString(u.Delta.Call.Arguments)
			}
			step.WriteString(u.Delta.Text)
		case memgpt.StepDiscarded:
			step.Reset()
		case memgpt.StepCommitted:
			kept.WriteString(step.String())
			step.Reset()
		}
	}
	return kept.String() + step.String()
}

// answersOf counts the stored messages of the model that say a text.
func answersOf(log []memgpt.Entry, text string) (n int) {
	for i := range log {
		if m := &log[i].Message; m.Role == memgpt.RoleAssistant && strings.Contains(m.Said(), text) {
			n++
		}
	}
	return n
}

func retried(t *testing.T, m memgpt.Model) memgpt.Model {
	t.Helper()
	r, err := retry.New(retry.Config{Model: m})
	must(t, err)
	return r
}

const brokenWords = "forty-two is the answer to that"

func TestBrokenStreamIsTakenBackAndAskedAnew(t *testing.T) {
	broken := script.Say(brokenWords).Broken(3)
	for _, behind := range []string{"a retrying model", "a bare model"} {
		m := script.Of(broken, broken, script.Say(brokenWords), script.Say("more"))
		var under memgpt.Model = m
		if behind == "a retrying model" {
			under = retried(t, m)
		}
		e := newEnv(t, under, options{})
		said, turn := e.say("what is it?")
		if !slices.Equal(said, []string{brokenWords}) || turn.State != memgpt.TurnDone {
			t.Errorf("%s: %q %+v", behind, said, turn)
		}
		if got := shownByUI(e.seen); got != `{"message":"`+brokenWords+`"}` {
			t.Errorf("%s: the screen has %q", behind, got)
		}
		if n := answersOf(e.checkState(nil), brokenWords); n != 1 {
			t.Errorf("%s: %d answers are stored", behind, n)
		}
		reqs := m.Requests()
		if d := cmp.Diff(reqs[0].Messages, reqs[2].Messages); len(reqs) != 3 || d != "" {
			t.Errorf("%s: the fresh try is another request: %s", behind, d)
		}
	}
}

func TestStreamThatAlwaysBreaksEndsTheTurn(t *testing.T) {
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if n < 3 {
			return script.Say(brokenWords).Broken(3)
		}
		return script.Say("fine")
	}})
	e := newEnv(t, retried(t, m), options{})
	said, turn := e.say("what is it?")
	if len(said) != 0 || turn.State != memgpt.TurnFailed || turn.Stop != memgpt.StopModel || m.Count() != 3 {
		t.Errorf("%q %+v after %d calls", said, turn, m.Count())
	}
	if got := shownByUI(e.seen); got != "" {
		t.Errorf("the screen still has %q", got)
	}
	if said, _ := e.say("again?"); !slices.Equal(said, []string{"fine"}) {
		t.Errorf("%q", said)
	}
	if n := answersOf(e.checkState(nil), brokenWords); n != 0 {
		t.Errorf("%d answers are stored", n)
	}
}

// TestKillAfterABrokenStream dies when the words of an answer were shown and taken back: between the tries, and before and
// after the commit of the fresh one. The message is answered once.
func TestKillAfterABrokenStream(t *testing.T) {
	for _, when := range []string{"between the tries", "before the commit", "after the commit"} {
		t.Run(when, func(t *testing.T) {
			ctx, kill := context.WithCancel(t.Context())
			calls := 0
			m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
				calls++
				switch {
				case n == 0:
					return script.Say(brokenWords).Broken(3)
				case n == 1 && when == "between the tries":
					kill()
				}
				return script.Say(fmt.Sprint(brokenWords, " ", n))
			}})
			faulty := &storetest.Faulty{Commits: true, After: when == "after the commit"}
			if when != "between the tries" {
				faulty.At = 2
			}
			o := options{wrap: func(s store.Store) store.Store { faulty.Inner = s; return faulty }}
			e := newEnv(t, retried(t, m), o)
			ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "what is it?"))
			must(t, err)
			if _, err = e.handle(ctx, ev); err == nil {
				t.Fatal("nothing was killed")
			}
			e.store = e.base
			e.configure(retried(t, m), o)
			must(t, e.deliver("and now?", "next"))
			log := e.checkState(nil)
			if n := answersOf(log, brokenWords); n != 2 { // one to each message
				t.Errorf("%d answers to two messages after %d calls", n, calls)
			}
			var asked []string
			for i := range log {
				if log[i].Message.Role == memgpt.RoleUser {
					asked = append(asked, log[i].Message.Said())
				}
			}
			if !slices.Equal(asked, []string{"what is it?", "and now?"}) {
				t.Errorf("the log has %q", asked)
			}
		})
	}
}
