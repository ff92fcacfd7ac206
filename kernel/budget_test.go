package kernel_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/cost"
	"memgpt/model/retry"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/sqlite"
)

// aCent is what each call of a metered script costs, in nano-dollars: 100 tokens of output. Its input is free, so that
// sums are whole cents, but at provider "dear".
const aCent = 10_000_000

// stepOfACent is about what the small requests of these tests have.
var stepOfACent, summaryOfACent = memgpt.Usage{Input: 2000, Output: 100}, memgpt.Usage{Output: 100}

// meteredScript prices a model.
func meteredScript(t testing.TB, m memgpt.Model) memgpt.Model { return meteredAt(t, m, "p") }

func meteredAt(t testing.TB, m memgpt.Model, provider string) memgpt.Model {
	t.Helper()
	table, err := new(cost.Table).With([]byte(`{"prices": [{"provider": "p", "model": "script", "input": 0, "output": 100},
		{"provider": "dear", "model": "script", "input": 10, "output": 100}]}`))
	must(t, err)
	return cost.Meter(m, table, provider)
}

// endless answers each request by f, and each call costs a cent.
func endless(f func(n int, req *memgpt.Request) script.Reply) *script.Model {
	return script.New(script.Config{
		Func: func(n int, req *memgpt.Request) script.Reply {
			r := f(n, req)
			r.Usage = stepOfACent
			return r
		},
		Summary: func(*memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x").Using(summaryOfACent) },
	})
}

func saysOK(int, *memgpt.Request) script.Reply { return script.Say("ok") }

// setBudget gives the agent a budget.
func (e *env) setBudget(b memgpt.Budget) {
	e.t.Helper()
	a, err := e.base.Agent(e.t.Context(), "", e.agent.ID)
	must(e.t, err)
	a.Budget = b
	_, err = e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Agents: []memgpt.Agent{a}})
	must(e.t, err)
}

// spentOn returns what the store has of a day in the agent's zone; "" is of all days.
func (e *env) spentOn(day string) (u memgpt.Usage) {
	e.t.Helper()
	rows, err := e.base.Spending(e.t.Context(), store.SpendingRange{Agent: e.agent.ID, From: day, To: day, Total: day == ""})
	must(e.t, err)
	for _, s := range rows {
		u = u.Add(s.Usage)
	}
	return u
}

// holdsBudgetStop holds a turn to what a budget's end promises.
func (e *env) holdsBudgetStop(turn memgpt.Turn, words ...string) {
	e.t.Helper()
	if turn.State != memgpt.TurnFailed || turn.Stop != memgpt.StopBudget {
		e.t.Fatalf("the turn went on: %+v", turn)
	}
	for _, w := range words {
		if !strings.Contains(turn.Error, w) {
			e.t.Errorf("%q says nothing of %q", turn.Error, w)
		}
	}
	if pending, err := e.base.Events(e.t.Context(), store.EventRange{Thread: e.thread}); err != nil || len(pending) != 0 {
		e.t.Errorf("the refused event stays in the inbox: %+v, %v", pending, err)
	}
}

func TestSpendingIsCounted(t *testing.T) {
	m := endless(saysOK)
	e := newEnv(t, meteredScript(t, m), options{zone: "Pacific/Auckland"}) // 16:51 UTC is past midnight there
	_, turn := e.say("hello")
	want := memgpt.Usage{Input: 2000, Output: 100, Calls: 1, Priced: 1, Nano: aCent}
	if turn.Usage != want || e.spentOn("2026-04-07") != want || e.spentOn("2026-04-06") != (memgpt.Usage{}) || e.spentOn("") != want {
		t.Errorf("the turn has %+v, its day %+v", turn.Usage, e.spentOn("2026-04-07"))
	}
	rows, err := e.base.Spending(t.Context(), store.SpendingRange{})
	must(t, err)
	if len(rows) != 1 || rows[0].UTC != "2026-04-06" || rows[0].Model != "script" {
		t.Errorf("%+v", rows)
	}
	if stored, err := e.base.Turn(t.Context(), "", turn.ID); err != nil || stored.Usage != want {
		t.Errorf("the stored turn has %+v, %v", stored.Usage, err)
	}
}

// TestSpendingNeedsNoCommit: a one-step turn is two commits, with its spending and under a budget.
func TestSpendingNeedsNoCommit(t *testing.T) {
	counter := &storeCommits{}
	e := newEnv(t, meteredScript(t, endless(saysOK)), options{wrap: func(s store.Store) store.Store { counter.Store = s; return counter }})
	e.setBudget(memgpt.Budget{Nano: 5 * aCent, Tokens: 1 << 30, NanoTotal: 1 << 40})
	if said, _ := e.say("hello"); len(said) != 1 || counter.n != 2 || e.spentOn("").Calls != 1 {
		t.Errorf("%d commits, %+v", counter.n, e.spentOn(""))
	}
	for range 4 {
		e.say("hello")
	}
	counter.n = 0
	if _, turn := e.say("hello"); turn.Stop != memgpt.StopBudget || counter.n != 2 {
		t.Errorf("a refused turn: %d commits, %+v", counter.n, turn)
	}
}

// storeCommits counts commits, and fails those that fail says.
type storeCommits struct {
	store.Store
	n    int
	fail func(*store.Commit) error
}

func (s *storeCommits) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	s.n++
	if s.fail != nil {
		if err := s.fail(c); err != nil {
			return store.Committed{}, err
		}
	}
	return s.Store.Commit(ctx, c)
}

// TestEveryCallIsCounted: replies that are thrown away, summaries, and turns that fail.
func TestEveryCallIsCounted(t *testing.T) {
	t.Run("thrown away", func(t *testing.T) {
		e := newEnv(t, meteredScript(t, endless(func(n int, _ *memgpt.Request) script.Reply {
			return []script.Reply{script.Text(""), script.Truncated(script.Say("cut")), script.Say("ok")}[n%3]
		})), options{})
		if said, turn := e.say("hello"); len(said) != 1 || turn.Usage.Calls != 3 || turn.Usage.Nano != 3*aCent || e.spentOn("") != turn.Usage {
			t.Errorf("%+v, the day %+v", turn.Usage, e.spentOn(""))
		}
	})
	t.Run("a turn that fails", func(t *testing.T) {
		e := newEnv(t, meteredScript(t, endless(func(int, *memgpt.Request) script.Reply { return script.Text("") })), options{})
		if _, turn := e.say("hello"); turn.Stop != memgpt.StopEmpty || turn.Usage.Calls != 3 || e.spentOn("") != turn.Usage {
			t.Errorf("%+v, the day %+v", turn, e.spentOn(""))
		}
	})
	t.Run("summaries", func(t *testing.T) {
		m := endless(func(int, *memgpt.Request) script.Reply { return script.Say(strings.Repeat("padding words ", 60)) })
		e := newEnv(t, meteredScript(t, m), options{window: 4096})
		var sum memgpt.Usage
		for i := range 12 {
			_, turn := e.say(fmt.Sprint("tell me more ", i))
			sum = sum.Add(turn.Usage)
		}
		if n := len(m.Requests()); n <= 12 || sum.Calls != n || e.spentOn("") != sum {
			t.Errorf("%d requests, the turns have %+v, the day %+v", n, sum, e.spentOn(""))
		}
	})
	t.Run("by the hour of the call", func(t *testing.T) {
		var e *env
		e = newEnv(t, meteredScript(t, endless(func(n int, _ *memgpt.Request) script.Reply {
			e.now = e.now.Add(4 * time.Hour)
			return []script.Reply{script.Calls(script.Call("core_memory_append", "label", "human", "content", "x", "request_heartbeat", true)), script.Say("ok")}[n]
		})), options{})
		e.lease = nil
		if _, turn := e.say("hello"); turn.Usage.Calls != 2 || e.spentOn("2026-04-06").Calls != 1 || e.spentOn("2026-04-07").Calls != 1 {
			t.Errorf("%+v", turn)
		}
	})
}

// TestSpendingSurvivesFailures: what was used is kept where the step is not.
func TestSpendingSurvivesFailures(t *testing.T) {
	for name, code := range map[string]memgpt.Code{"lease": memgpt.CodeLeaseLost, "conflict": memgpt.CodeConflict} {
		t.Run(name, func(t *testing.T) {
			s := &storeCommits{}
			s.fail = func(c *store.Commit) error {
				if len(c.Entries) > 0 {
					return memgpt.Errorf(code, "on purpose")
				}
				return nil
			}
			e := newEnv(t, meteredScript(t, endless(saysOK)), options{wrap: func(base store.Store) store.Store { s.Store = base; return s }})
			ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hello"))
			must(t, err)
			if _, err := e.handle(t.Context(), ev); memgpt.CodeOf(err) != code {
				t.Fatalf("%v", err)
			}
			if u := e.spentOn(""); u.Calls != 1 || u.Nano != aCent {
				t.Errorf("of the call is kept %+v", u)
			}
		})
	}
	t.Run("conflict once", func(t *testing.T) {
		e := newEnv(t, nil, options{})
		m := meteredScript(t, endless(func(int, *memgpt.Request) script.Reply {
			return script.Calls(script.Call("core_memory_append", "label", "human", "content", "ours"), script.Say("ok"))
		}))
		e.store = &rival{Store: e.base}
		e.configure(m, options{})
		if said, turn := e.say("hello"); len(said) != 1 || turn.Usage.Calls != 1 || e.spentOn("").Calls != 1 || e.block("human") != "theirs\nours" {
			t.Errorf("%+v, the day %+v", turn, e.spentOn(""))
		}
	})
}

// TestBudgets lets a budget be used up by turns of one call each, and holds how it stops and frees.
func TestBudgets(t *testing.T) {
	all := func(b memgpt.Budget) func(*env) {
		return func(e *env) { e.reconfigure(func() { e.config.Budget = b }) }
	}
	own := func(b memgpt.Budget) func(*env) { return func(e *env) { e.setBudget(b) } }
	for _, c := range []struct {
		name  string
		set   func(*env)
		calls int           // that are made before it stops
		frees time.Duration // 0 is never
		words []string
	}{
		{"money a day", own(memgpt.Budget{Nano: 2*aCent + 1}), 3, 24 * time.Hour,
			[]string{"the budget of $0.02 a day of agent default is spent: $0.03 used", "it frees at 2026-04-08T00:00:00+12:00"}},
		{"money spent to the last", own(memgpt.Budget{Nano: 3 * aCent}), 3, 24 * time.Hour, []string{"of agent default is spent: $0.03 used", "raise it"}},
		{"tokens a day", own(memgpt.Budget{Tokens: 6500}), 3, 24 * time.Hour, []string{"6500 tokens a day of agent default would be passed: 6300 tokens used"}},
		{"money in all", own(memgpt.Budget{NanoTotal: 2 * aCent}), 2, 0, []string{"$0.02 in all of agent default is spent", "raise it to go on"}},
		{"tokens in all", own(memgpt.Budget{TokensTotal: 4400}), 2, 0, []string{"4400 tokens in all of agent default"}},
		{"money of all", all(memgpt.Budget{Nano: 2 * aCent}), 2, 8 * time.Hour, []string{"$0.02 a day of all agents together is spent", "it frees at 2026-04-07T00:00:00Z"}},
		{"tokens of all", all(memgpt.Budget{Tokens: 4300}), 2, 8 * time.Hour, []string{"4300 tokens a day of all agents together would be passed: 4200 tokens used, and the next request alone has "}},
		{"money of all in all", all(memgpt.Budget{NanoTotal: 2 * aCent}), 2, 0, []string{"$0.02 in all of all agents together"}},
		{"the least that holds", func(e *env) {
			own(memgpt.Budget{Nano: 5 * aCent, Tokens: 90000})(e)
			all(memgpt.Budget{Tokens: 2400, NanoTotal: 5 * aCent})(e)
		}, 1, 8 * time.Hour, []string{"2400 tokens a day of all agents together"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := endless(saysOK)
			e := newEnv(t, meteredScript(t, m), options{zone: "Pacific/Auckland"}) // where it is tomorrow
			c.set(e)
			for i := range c.calls {
				if said, turn := e.say(fmt.Sprint("hello ", i)); len(said) != 1 || !turn.Stop.Good() {
					t.Fatalf("turn %d: %+v", i, turn)
				}
			}
			said, turn := e.say("are you there?")
			e.holdsBudgetStop(turn, c.words...)
			if len(said) != 0 || len(m.Requests()) != c.calls || turn.Usage.Calls != 0 || e.spentOn("").Calls != c.calls {
				t.Errorf("said %q after %d requests, %+v", said, len(m.Requests()), e.spentOn(""))
			}
			log := e.log()
			if last := log[len(log)-2:]; last[0].Message.Said() != "are you there?" || last[1].Message.Type != memgpt.EventNotice {
				t.Errorf("the message and a notice are not at the end of the log: %+v", last)
			}
			e.now = e.now.Add(max(c.frees, 48*time.Hour*boolInt(c.frees == 0)))
			said, turn = e.say("and now?")
			if c.frees == 0 {
				e.holdsBudgetStop(turn)
				return
			}
			if len(said) != 1 || !strings.Contains(requestText(m.Requests()[c.calls]), "are you there?") {
				t.Errorf("after it freed: said %q, %+v", said, turn)
			}
		})
	}
}

func boolInt(b bool) time.Duration {
	if b {
		return 1
	}
	return 0
}

// requestText is all that a request says.
func requestText(req *memgpt.Request) string {
	var b strings.Builder
	for i := range req.Messages {
		b.WriteString(req.Messages[i].Said() + "\n")
	}
	return b.String()
}

// TestBudgetBoundsTheFirstRequest: a request that alone is over the budget is not sent, by the count of its input.
func TestBudgetBoundsTheFirstRequest(t *testing.T) {
	for name, b := range map[string]memgpt.Budget{"tokens": {Tokens: 500}, "money": {Nano: aCent / 2}} {
		m := endless(saysOK)
		e := newEnv(t, meteredAt(t, m, "dear"), options{})
		e.setBudget(b)
		_, turn := e.say("hello")
		e.holdsBudgetStop(turn, "would be passed", "used, and the next request alone has ")
		if len(m.Requests()) != 0 || e.spentOn("") != (memgpt.Usage{}) {
			t.Errorf("%s: %d requests", name, len(m.Requests()))
		}
	}
}

// TestBudgetStopsBetweenSteps: the step that used the budget up is whole, and the turn ends before the next.
func TestBudgetStopsBetweenSteps(t *testing.T) {
	m := endless(func(n int, _ *memgpt.Request) script.Reply {
		return script.Calls(script.Call("core_memory_append", "label", "human", "content", fmt.Sprintf("fact %d;", n)),
			script.Call("archival_memory_insert", "content", fmt.Sprintf("note %d", n), "request_heartbeat", true))
	})
	e := newEnv(t, meteredScript(t, m), options{})
	e.setBudget(memgpt.Budget{Nano: 2 * aCent})
	_, turn := e.say("remember this")
	e.holdsBudgetStop(turn, "is spent")
	if got := e.block("human"); got != "fact 0;\nfact 1;" || turn.Steps != 2 || turn.Usage.Calls != 2 {
		t.Errorf("the block holds %q after %d steps", got, turn.Steps)
	}
	passages, err := e.base.PassagesOf(t.Context(), store.PassageRange{Owner: e.agent.ID})
	if err != nil || len(passages) != 2 {
		t.Errorf("%d passages, %v", len(passages), err)
	}
	e.checkState(nil)
	if th := e.state.Thread; len(th.Open) != 0 {
		t.Errorf("calls are open: %+v", th.Open)
	}
	e.setBudget(memgpt.Budget{Nano: 3 * aCent})
	if _, turn := e.say("go on"); turn.Steps != 1 || e.block("human") != "fact 0;\nfact 1;\nfact 2;" {
		t.Errorf("with more of it: %+v", turn)
	}
}

// TestBudgetBoundsRepliesThrownAway: what the turn used since its last commit counts.
func TestBudgetBoundsRepliesThrownAway(t *testing.T) {
	m := endless(func(int, *memgpt.Request) script.Reply { return script.Text("") })
	for name, set := range map[string]func(*env){
		"of the agent": func(e *env) { e.setBudget(memgpt.Budget{Nano: 2 * aCent}) },
		"of all":       func(e *env) { e.reconfigure(func() { e.config.Budget = memgpt.Budget{NanoTotal: 2 * aCent} }) },
	} {
		e := newEnv(t, meteredScript(t, m), options{})
		set(e)
		_, turn := e.say("hello")
		if e.holdsBudgetStop(turn, "$0.02 used"); turn.Usage.Calls != 2 || e.spentOn("").Calls != 2 {
			t.Errorf("%s: %+v", name, turn.Usage)
		}
	}
}

// silentOnce answers its first call with nothing that was paid for, as a provider's adapter tells it.
type silentOnce struct {
	memgpt.Model
	calls int
}

func (m *silentOnce) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	resp, err := m.Model.Generate(ctx, req, stream)
	if m.calls++; m.calls == 1 {
		return &memgpt.Response{Usage: resp.Usage}, memgpt.Errorf(memgpt.CodeModelEmpty, "an answer without content")
	}
	return resp, err
}

// TestRetriesAreCounted: who asks again beneath the kernel does so at the kernel's cost, and within its budget.
func TestRetriesAreCounted(t *testing.T) {
	for most, calls := range map[int64]int{0: 2, 5 * aCent: 2, aCent: 1} {
		inner := &silentOnce{Model: endless(saysOK)}
		m, err := retry.New(retry.Config{Model: meteredScript(t, inner), Sleep: func(context.Context, time.Duration) error { return nil }})
		must(t, err)
		e := newEnv(t, m, options{})
		e.setBudget(memgpt.Budget{Nano: most})
		said, turn := e.say("hello")
		if turn.Usage.Calls != calls || turn.Usage.Nano != int64(calls)*aCent || e.spentOn("") != turn.Usage || inner.calls != calls || (len(said) == 1) != (calls == 2) {
			t.Errorf("budget %d: said %q, %+v, %d calls", most, said, turn, inner.calls)
		}
		if calls == 1 {
			e.holdsBudgetStop(turn, "is spent")
		}
	}
}

// TestBudgetOfOtherProcesses: what another store of the same file spent counts, and other agents in the budget of all.
func TestBudgetOfOtherProcesses(t *testing.T) {
	e := newEnv(t, meteredScript(t, endless(saysOK)), options{})
	other, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Clean(e.path), Unsafe: true})
	must(t, err)
	defer func() { _ = other.Close() }()
	spend := func(agent string, n int) {
		day := e.now.Format(store.DayFormat)
		_, err := other.Commit(t.Context(), &store.Commit{Now: e.now, Spending: []store.Spending{{Agent: agent, Model: "m", Day: day, UTC: day,
			Usage: memgpt.Usage{Input: n, Calls: 1, Priced: 1, Nano: int64(n)}}}})
		must(t, err)
	}
	e.setBudget(memgpt.Budget{Tokens: 100_000})
	spend("agent-else", 100_000)
	if said, _ := e.say("another agent's spending is not mine"); len(said) != 1 {
		t.Error("the budget of one agent was used by another")
	}
	spend(e.agent.ID, 100_000)
	_, turn := e.say("mine is")
	e.holdsBudgetStop(turn, "100000 tokens a day of agent default is spent: 102100 tokens used")
	e.setBudget(memgpt.Budget{})
	e.reconfigure(func() { e.config.Budget = memgpt.Budget{Tokens: 202_100} })
	_, turn = e.say("together they are")
	e.holdsBudgetStop(turn, "202100 tokens a day of all agents together is spent: 202100 tokens used")
}

// TestBudgetOfUnknownPrices: a budget of money isn't held by a guess. A request of an unknown price is refused before it
// is sent, and models that tell nothing of costs are warned of.
func TestBudgetOfUnknownPrices(t *testing.T) {
	m := script.New(script.Config{Func: saysOK, Capabilities: memgpt.Capabilities{Name: "newest", Tools: true}})
	e := newEnv(t, meteredScript(t, m), options{})
	if said, turn := e.say("no budget"); len(said) != 1 || turn.Usage.Priced != 0 {
		t.Errorf("%+v", turn)
	}
	e.setBudget(memgpt.Budget{Nano: aCent})
	_, turn := e.say("hello")
	e.holdsBudgetStop(turn, "what newest costs isn't known", "$0.01 a day of agent default can't be held", "in tokens")
	if len(m.Requests()) != 1 {
		t.Errorf("%d requests", len(m.Requests()))
	}
	e.reconfigure(func() { e.config.Model = func(memgpt.Agent) (memgpt.Model, error) { return m, nil } })
	before := len(e.seen)
	if said, turn := e.say("not metered"); len(said) != 1 || strings.Join(turn.Flags, " ") != "usage_estimated cost_unknown" {
		t.Errorf("%+v, %+v", turn, e.seen[before:])
	}
}

// TestBudgetOfBeats: heartbeats that are refused fill no queue.
func TestBudgetOfBeats(t *testing.T) {
	m := endless(saysOK)
	e := newEnv(t, meteredScript(t, m), options{})
	e.setBudget(memgpt.Budget{Nano: aCent})
	e.say("hello")
	before := len(e.log())
	for range 50 {
		_, turn := e.system(memgpt.EventTimer, "some time has passed")
		e.holdsBudgetStop(turn, "is spent")
	}
	if n := len(e.log()); n != before || len(m.Requests()) != 1 {
		t.Errorf("the log grew from %d to %d", before, n)
	}
	e.now = e.now.Add(24 * time.Hour)
	if _, turn := e.system(memgpt.EventTimer, "some time has passed"); !turn.Stop.Good() {
		t.Errorf("%+v", turn)
	}
}

// TestBudgetAndSummaries: where the budget ends while the queue is to be flushed, no message is lost, nothing is evicted
// for a request that isn't sent, and the fold follows when there is a budget again.
func TestBudgetAndSummaries(t *testing.T) {
	m := endless(func(int, *memgpt.Request) script.Reply { return script.Say(strings.Repeat("padding words ", 60)) })
	for most := int64(1); most < 30; most++ {
		e := newEnv(t, meteredScript(t, m), options{window: 4096})
		e.setBudget(memgpt.Budget{Nano: most * aCent})
		stopped, said := 0, 0
		for i := range 26 {
			head := int64(0)
			if stopped > 0 {
				head = e.state.Thread.Head
			}
			s, turn := e.say(fmt.Sprint("message ", i))
			if turn.Stop == memgpt.StopBudget {
				if stopped++; head > 0 && e.state.Thread.Head != head {
					t.Fatalf("budget %d, message %d: messages were evicted for nothing", most, i)
				}
				continue
			}
			said += len(s)
		}
		if u := e.spentOn(""); u.Nano > most*aCent || stopped > 0 && u.Nano != most*aCent {
			t.Fatalf("budget %d: %+v was spent", most, u)
		}
		if e.setBudget(memgpt.Budget{}); stopped > 0 {
			if s, turn := e.say("at last"); len(s) == 0 || !turn.Stop.Good() { // it speaks again in a step that an alert earns
				t.Fatalf("budget %d: %+v", most, turn)
			}
			e.say("once more")
		}
		if th := e.state.Thread; th.Folded != th.Head {
			t.Fatalf("budget %d: %d messages are not folded", most, th.Head-th.Folded)
		}
		log := e.checkState(nil)
		n := 0
		for _, entry := range log {
			if strings.HasPrefix(entry.Message.Said(), "message ") && entry.Message.Role == memgpt.RoleUser {
				n++
			}
		}
		if n != 26 {
			t.Fatalf("budget %d: %d of 26 messages are in the log", most, n)
		}
	}
}
