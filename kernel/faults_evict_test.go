package kernel_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// evicting is an agent with ten exchanges in its queue.
func evicting(t *testing.T) (*env, *script.Model) {
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply { return script.Say(fmt.Sprint("answer-", n)) },
		Summary: func(*memgpt.Request) script.Reply { return script.Text("the manager's words\nSearch for: x") }})
	e := newEnv(t, m, options{window: 8192})
	for i := range 10 {
		e.say(fmt.Sprintf("question-%d with some words behind it", i))
	}
	return e, m
}

var leftForm = regexp.MustCompile(`^(\d+) messages? with ([\d,]+) tokens left the queue \(through (message-[0-9a-f-]+)\); ([\d,]+) tokens free`)

func TestFaultsOfEviction(t *testing.T) {
	t.Run("whole steps, and what is left is told", func(t *testing.T) {
		e, m := evicting(t)
		log := e.log()
		text := e.ok(m, "conversation_evict", "through", log[4].ID, "summary", "We spoke of 7391.") // the call of the second exchange
		parts := leftForm.FindStringSubmatch(text)
		if parts == nil || parts[1] != "6" || parts[3] != log[5].ID {
			t.Fatalf("%s", text)
		}
		if n, err := strconv.Atoi(strings.ReplaceAll(parts[2], ",", "")); err != nil || n < 100 || n > 1000 {
			t.Errorf("%s", text)
		}
		in, err := e.kernel.Inspect(e.state)
		must(t, err)
		if free, _ := strconv.Atoi(strings.ReplaceAll(parts[4], ",", "")); free < in.Flush-in.Total || free > in.Flush-in.Total+300 {
			t.Errorf("%d are said to be free, %d are after the step", free, in.Flush-in.Total)
		}
		shown := wire(in.Request)
		contains(t, shown, "We spoke of 7391.", "6 earlier messages", "question-2")
		excludes(t, shown, "question-0", "question-1")
		if th := e.state.Thread; th.Head != 6 || th.Folded != 6 || th.Summary.Covers != 6 {
			t.Errorf("%+v", th)
		}
		contains(t, e.ok(m, "conversation_evict", "through", log[8].ID, "summary", "And of tulips."), "3 messages")
		contains(t, e.state.Thread.Summary.Text, "We spoke of 7391.\nAnd of tulips.")
		if th := e.state.Thread; th.Summary.Covers != 9 || th.Folded != 9 {
			t.Errorf("%+v", th)
		}
		if _, sums := requests(m); len(sums) != 0 {
			t.Errorf("%d summaries were asked for", len(sums))
		}
		found := hits(t, e.ok(m, "conversation_search", "query", "question-0"))
		if len(found) == 0 || !strings.HasPrefix(found[0].Text, "question-0") {
			t.Errorf("%+v", found)
		}
		e.checkAll(m, 8192)
		e.checkState(nil)
	})
	t.Run("without a summary the manager writes one", func(t *testing.T) {
		e, m := evicting(t)
		e.ok(m, "conversation_evict", "through", e.log()[2].ID)
		e.say("next")
		_, sums := requests(m)
		if len(sums) != 1 {
			t.Fatalf("%d summaries were asked for", len(sums))
		}
		contains(t, wire(sums[0]), "question-0", "answer-0")
		excludes(t, wire(sums[0]), "question-1")
		if th := e.state.Thread; th.Folded != th.Head || !strings.HasPrefix(th.Summary.Text, "the manager's words") {
			t.Errorf("%+v", th)
		}
	})
	t.Run("what can't leave stays", func(t *testing.T) {
		e, m := evicting(t)
		before := e.state.Thread
		for _, args := range [][]any{
			{},                             // far below the target
			{"through", "message-nowhere"}, // not in the queue
			{"through", e.log()[2].ID, "summary", strings.Repeat("words and more words ", 2000)}, // too long
		} {
			if res := e.do(m, "conversation_evict", args...); !res.Failed {
				t.Errorf("%v: %+v", args, res)
			}
		}
		if th := e.state.Thread; th.Head != before.Head || th.Summary.Text != before.Summary.Text {
			t.Errorf("%+v", th)
		}
	})
	t.Run("the question leaves in mid-turn and is still shown", func(t *testing.T) {
		e, _ := evicting(t)
		m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
			switch n {
			case 0:
				return script.Call("conversation_search", "query", "question-3", "request_heartbeat", true)
			case 1:
				log := e.log()
				return script.Call("conversation_evict", "through", log[len(log)-1].ID, "summary", "I searched.", "request_heartbeat", true)
			}
			return script.Say("done")
		}})
		e.configure(m, options{window: 8192})
		if said, _ := e.say("MARK-question"); !slices.Equal(said, []string{"done"}) {
			t.Errorf("%q", said)
		}
		last := m.Last()
		if err := checkV(last, e.count, 1, 8192, "MARK-question"); err != nil || strings.Count(wire(last), "MARK-question") != 1 || len(last.Messages) != 5 {
			t.Errorf("%v: %s", err, wire(last))
		}
	})
}
