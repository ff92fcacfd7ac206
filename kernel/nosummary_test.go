package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// Without summaries nobody is asked for one, messages leave all the same and stay in the log, and the head of the queue
// says how many there are.
func TestNoSummary(t *testing.T) {
	m := talker()
	e := newEnv(t, m, options{window: 4096})
	e.reconfigure(func() { e.config.NoSummary = true })
	users := 0
	for ; len(flushes(e.seen)) < 2; users++ {
		if users > 500 {
			t.Fatal("no flush")
		}
		e.say(fmt.Sprintf("message %d: %s", users, strings.Repeat("some words about it ", 12)))
	}
	e.checkAll(m, 4096)
	if _, sums := requests(m); len(sums) != 0 {
		t.Errorf("%d requests for summaries", len(sums))
	}
	th := e.state.Thread
	if th.Head == 0 || th.Folded != th.Head || th.Summary.Text != "" || th.Summary.Covers != 0 || th.Summary.Outside.Hidden == 0 || th.Summary.Failed != "" {
		t.Errorf("%+v", th)
	}
	in, err := e.kernel.Inspect(e.state)
	must(t, err)
	if in.Total > in.Target || in.Total < in.Target/2 {
		t.Errorf("after the flush the request has %d tokens, the target is %d", in.Total, in.Target)
	}
	logged := 0
	for _, entry := range e.log() {
		if entry.Message.Role == memgpt.RoleUser {
			logged++
		}
	}
	if logged != users {
		t.Errorf("%d of %d messages are in the log", logged, users)
	}
}

// The model's own summary is let go of too: what it moves out leaves without one.
func TestNoSummaryOfTheModel(t *testing.T) {
	m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		last := req.Messages[len(req.Messages)-1]
		if count(req, memgpt.EventAlert) > 0 && last.Role == memgpt.RoleUser {
			return script.Calls(script.Call("conversation_evict", "summary", "They spoke of plums."), script.Say("done"))
		}
		return script.Say("ok")
	}})
	e := newEnv(t, m, options{window: 4096})
	e.reconfigure(func() { e.config.NoSummary = true })
	for len(flushes(e.seen)) == 0 {
		e.say(strings.Repeat("some words about it ", 30))
	}
	if f := flushes(e.seen)[0]; !f.ByModel || f.Messages == 0 {
		t.Errorf("%+v", f)
	}
	e.say("next")
	if th := e.state.Thread; th.Head == 0 || th.Folded != th.Head || th.Summary.Text != "" {
		t.Errorf("%+v", th)
	}
	if _, sums := requests(m); len(sums) != 0 {
		t.Errorf("%d requests for summaries", len(sums))
	}
}
