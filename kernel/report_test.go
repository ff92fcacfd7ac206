package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// reports answers each request with parts, and reports a usage that is made of the request's size in bytes.
func reports(usage func(bytes int) memgpt.Usage, parts func(n int) script.Reply) *script.Model {
	return script.New(script.Config{
		Capabilities: memgpt.Capabilities{Name: "script", Tools: true},
		Func: func(n int, req *memgpt.Request) script.Reply {
			size := 0
			for _, t := range req.Tools {
				size += len(t.Name) + len(t.Description) + len(t.Parameters)
			}
			for i := range req.Messages {
				size += len(req.Messages[i].Said()) + 40
			}
			r := parts(n)
			r.Usage = usage(size)
			return r
		}, Summary: func(*memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x") }})
}

// TestStepsForAlertsShowAlerts: a reply that corrects the count moves the marks too. A step that nobody asked for is there
// for the pressure alert alone, so its request shows one.
func TestStepsForAlertsShowAlerts(t *testing.T) {
	for name, reply := range map[string]func(n int) script.Reply{
		"speaks": func(int) script.Reply { return script.Say("noted") },
		"edits": func(n int) script.Reply {
			return script.Calls(script.Call("core_memory_append", "label", "human", "content", fmt.Sprint("likes tea ", n)), script.Say("noted"))
		},
		"long": func(int) script.Reply { return script.Say(strings.Repeat("noted and kept ", 100)) },
		"archive": func(n int) script.Reply {
			return script.Calls(script.Call("archival_memory_insert", "content", fmt.Sprint("tea ", n), "request_heartbeat", false), script.Say("noted"))
		},
	} {
		for _, divisor := range []int{1, 2, 4} {
			t.Run(fmt.Sprint(name, " at ", divisor, " bytes a token"), func(t *testing.T) {
				m := reports(func(bytes int) memgpt.Usage { return memgpt.Usage{Input: bytes / divisor, Output: 50} }, reply)
				e := newEnv(t, m, options{window: 24_000})
				for i := range 6 {
					before := len(m.Requests())
					said, turn := e.say(fmt.Sprint("hello ", i))
					if len(said) == 0 || !turn.Stop.Good() {
						t.Fatalf("%+v", turn)
					}
					for _, req := range m.Requests()[before:][1:] {
						if !slices.ContainsFunc(req.Messages, func(m memgpt.Message) bool { return strings.Contains(m.Said(), "Memory pressure") }) && req.Purpose == memgpt.PurposeStep {
							t.Fatalf("turn %d has a further step for nothing: %+v", i, turn)
						}
					}
				}
			})
		}
	}
}

// TestImplausibleCounts: a provider that reports nonsense does not end conversations, in the same process either.
func TestImplausibleCounts(t *testing.T) {
	for _, n := range []int{100_000_000, 1 << 62} {
		m := reports(func(int) memgpt.Usage { return memgpt.Usage{Input: n, Output: n} }, func(int) script.Reply { return script.Say("ok") })
		e := newEnv(t, m, options{})
		for range 3 {
			said, turn := e.say("hello")
			if len(said) != 1 || !turn.Stop.Good() || !slices.Contains(turn.Flags, "count_implausible") {
				t.Fatalf("%+v", turn)
			}
		}
	}
}

// TestBudgetsHoldWithoutReports: what a provider leaves out is estimated, so that budgets of tokens and of money end calls
// all the same, and is marked.
func TestBudgetsHoldWithoutReports(t *testing.T) {
	silent := func(int) memgpt.Usage { return memgpt.Usage{} }
	long := func(int) script.Reply { return script.Say(strings.Repeat("many words ", 300)) }
	for name, c := range map[string]struct {
		usage  func(int) memgpt.Usage
		budget memgpt.Budget
		most   int // turns
	}{
		"tokens":          {silent, memgpt.Budget{Tokens: 10_000}, 4},
		"money":           {silent, memgpt.Budget{Nano: 15 * aCent}, 4},
		"no input told":   {func(int) memgpt.Usage { return memgpt.Usage{Output: 5} }, memgpt.Budget{Tokens: 10_000}, 6},
		"no output told":  {func(int) memgpt.Usage { return memgpt.Usage{Input: 5} }, memgpt.Budget{Tokens: 2_000}, 5},
		"a negative told": {func(int) memgpt.Usage { return memgpt.Usage{Input: -5, Output: -5} }, memgpt.Budget{TokensTotal: 10_000}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			m := reports(c.usage, long)
			e := newEnv(t, meteredAt(t, m, "dear"), options{})
			e.setBudget(c.budget)
			for n := 0; ; n++ {
				_, turn := e.say("tell me more")
				if turn.Stop == memgpt.StopBudget {
					if n == 0 {
						t.Fatalf("nothing was asked: %+v", turn)
					}
					break
				}
				if n > c.most {
					t.Fatalf("%d turns, and %+v is counted", n, e.spentOn(""))
				}
				if u := turn.Usage; u.Input == 0 || u.Output == 0 || u.Priced != u.Calls || u.Calls != turn.Steps || !slices.Contains(turn.Flags, "usage_estimated") {
					t.Errorf("%+v", turn)
				}
			}
		})
	}
}

// TestEstimateIsNearTheTruth: an estimate is that of our own count, of the input and of the reply.
func TestEstimateIsNearTheTruth(t *testing.T) {
	text := strings.Repeat("nine small words stand here in a row again ", 40)
	m := reports(func(int) memgpt.Usage { return memgpt.Usage{} }, func(int) script.Reply { return script.Say(text) })
	e := newEnv(t, m, options{})
	_, turn := e.say("hello")
	if u := turn.Usage; u.Calls != 1 || u.Output < 360 || u.Output > 720 || u.Input < 1000 || u.Input > 8192 {
		t.Errorf("%+v", u)
	}
	if rows := e.spentOn(""); rows != turn.Usage {
		t.Errorf("the day has %+v", rows)
	}
}

// TestBrokenRepliesAreCounted: what broke off after its first piece was read by the provider, which is paid for it.
func TestBrokenRepliesAreCounted(t *testing.T) {
	m := reports(func(int) memgpt.Usage { return memgpt.Usage{Input: 2000, Output: 10} }, func(n int) script.Reply {
		if n == 0 {
			return script.Text(strings.Repeat("once upon a time ", 20)).Broken(10)
		}
		return script.Say("ok")
	})
	e := newEnv(t, meteredScript(t, m), options{})
	said, turn := e.say("hello")
	if u := turn.Usage; len(said) != 1 || u.Calls != 2 || u.Input < 3000 || u.Output < 60 || !slices.Contains(turn.Flags, "usage_estimated") {
		t.Errorf("%+v", turn)
	}
}

// TestSpendingOutlivesTheProcess: what was used is kept where the run ends with its context, as at the end of a process.
func TestSpendingOutlivesTheProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := endless(func(n int, _ *memgpt.Request) script.Reply {
		if n == 1 {
			cancel()
		}
		return script.Text("")
	})
	e := newEnv(t, meteredScript(t, m), options{})
	ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hello"))
	must(t, err)
	if _, err := e.handle(ctx, ev); err == nil {
		t.Fatal("the run did not end")
	}
	if u := e.spentOn(""); u.Calls == 0 || u.Nano == 0 {
		t.Errorf("of what was used is kept %+v", u)
	}
}
