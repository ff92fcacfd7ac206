package eval

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/cost"
	"memgpt/model/script"
)

// centAnswers answers each question with one call of 500 tokens of input and 100 of output, which costs a cent.
func centAnswers(t *testing.T) (memgpt.Model, *countedCalls) {
	n := &countedCalls{Model: scripted(func(*memgpt.Message, *memgpt.Request) script.Reply {
		return script.Say("It is on shelf 2.").Using(memgpt.Usage{Input: 500, Output: 100})
	})}
	return centsModel(t, n), n
}

// TestABudgetStopsARun holds the spending of runs to budgets, and lets each go on where the one before stopped.
func TestABudgetStopsARun(t *testing.T) {
	suite := longSuite(30, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	for _, mode := range []Mode{ModeMemGPT, ModeFull} {
		for name, budget := range map[string][2]int64{"dollars": {35_000_000, 0}, "tokens": {0, 3 * 1500}} {
			dir := t.TempDir()
			done := 0
			for range 12 {
				purse, calls := NewPurse(budget[0], budget[1]), openCalls(t, dir)
				model, n := centAnswers(t)
				rep, err := Run(t.Context(), Config{Open: newOpener(t).make, Model: calls.Model(model, ""), Purse: purse, Mode: mode, Parallel: 3}, suite)
				u, asked := purse.Spent()
				if u.Calls != int(n.n.Load()) || asked != u.Calls || u.Nano != int64(u.Calls)*10_000_000 || u.Input != 500*u.Calls || u.Calls == 0 {
					t.Fatalf("%s %s: %+v in %d calls for %d questions", mode, name, u, n.n.Load(), asked)
				}
				if budget[0] > 0 && u.Nano > budget[0] || budget[1] > 0 && int64(u.Input+u.Output) > budget[1] {
					t.Errorf("%s %s: %+v was spent", mode, name, u)
				}
				if done += asked; rep == nil || rep.Done != done && rep.Partial || rep.Cost == nil || *rep.Cost != 0.01 {
					t.Fatalf("%s %s: %d questions are done, and %+v", mode, name, done, rep)
				}
				if err == nil {
					break
				}
				if memgpt.CodeOf(err) != memgpt.CodeBudget || !rep.Partial {
					t.Fatalf("%s %s: %v", mode, name, err)
				}
			}
			model, _ := centAnswers(t)
			whole := results(t, run(t, Config{Model: model, Mode: mode}, suite))
			last := results(t, run(t, Config{Model: openCalls(t, dir).Model(script.Of(), ""), Mode: mode}, suite))
			if diff := cmp.Diff(whole, last); diff != "" || done != 10 {
				t.Errorf("%s %s: %d questions in the end, %s", mode, name, done, diff)
			}
		}
	}
}

// TestABudgetHoldsForAllCalls stops a run at the judge, and at the summaries of a baseline: no question is counted as done.
func TestABudgetHoldsForAllCalls(t *testing.T) {
	calls := openCalls(t, t.TempDir())
	judge := &countedCalls{Model: shelfJudge()}
	answers, _ := centAnswers(t)
	cfg := Config{Open: newOpener(t).make, Model: answers, Judge: calls.Model(centsModel(t, judge), ""), Purse: NewPurse(0, 2300), Parallel: 1}
	rep, err := Run(t.Context(), cfg, longSuite(5, 1, 2, 3))
	if memgpt.CodeOf(err) != memgpt.CodeBudget || rep == nil || rep.N != rep.Judge.N || rep.N == 0 || int(judge.n.Load()) != rep.N {
		t.Errorf("%v, %+v", err, rep)
	}
	if rep.CostTotal == nil || *rep.CostTotal <= *rep.Cost*float64(rep.N) {
		t.Errorf("the judge costs nothing: %v", rep.CostTotal)
	}
	model := &countedCalls{Model: centsModel(t, scripted(func(*memgpt.Message, *memgpt.Request) script.Reply { return script.Say("x") }))}
	rep, err = Run(t.Context(), Config{Open: newOpener(t).make, Model: model, Mode: ModeSummary, Purse: NewPurse(0, 5), Parallel: 1}, longSuite(5, 1, 2))
	if memgpt.CodeOf(err) != memgpt.CodeBudget || rep != nil {
		t.Errorf("%v, %+v", err, rep)
	}
}

func TestABudgetInDollarsNeedsAPrice(t *testing.T) {
	inner := &countedCalls{Model: script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Say("x") }})}
	m := cost.Meter(inner, new(cost.Table), "p")
	rep, err := Run(t.Context(), Config{Open: newOpener(t).make, Model: m, Purse: NewPurse(1, 0)}, longSuite(5, 1, 2))
	if memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), "budget in tokens") || rep != nil || inner.n.Load() != 0 {
		t.Errorf("%v, %+v, %d calls", err, rep, inner.n.Load())
	}
	rep = run(t, Config{Model: m, Purse: NewPurse(0, 1_000_000)}, longSuite(5, 1, 2))
	if rep.Cost != nil || rep.CostTotal != nil || rep.Records[0].Cost != nil {
		t.Errorf("a cost is told that nobody knows: %v", rep.Cost)
	}
}

// TestUsageThatNobodyReports is estimated, so that a budget holds.
func TestUsageThatNobodyReports(t *testing.T) {
	m := centsModel(t, scripted(func(*memgpt.Message, *memgpt.Request) script.Reply { return script.Say(strings.Repeat("word ", 100)) }))
	purse := NewPurse(0, 0)
	run(t, Config{Model: m, Purse: purse, Mode: ModeFull}, longSuite(5, 1, 2))
	u, _ := purse.Spent()
	if u.Input < 300 || u.Input > 2000 || u.Output < 200 || u.Output > 400 || u.Nano != int64(u.Output)*100_000 {
		t.Errorf("%+v", u)
	}
}

// TestWhatFailsCostsNothing gives back what was set aside for calls that failed, so that it doesn't use a budget up.
func TestWhatFailsCostsNothing(t *testing.T) {
	n := 0
	m := centsModel(t, script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply {
		if n++; n < 20 {
			return script.Fail(memgpt.Errorf(memgpt.CodeModelDown, "down"))
		}
		return script.Say("x").Using(memgpt.Usage{Input: 500, Output: 100})
	}}))
	asked := make([]int, 25)
	for i := range asked {
		asked[i] = i
	}
	purse := NewPurse(0, 10_000)
	rep := run(t, Config{Model: m, Purse: purse, Mode: ModeOracle, Parallel: 1}, longSuite(25, asked...))
	if u, _ := purse.Spent(); rep.N != 25 || rep.Failed != 19 || u.Calls != 6 {
		t.Errorf("%d of %d failed, %+v", rep.Failed, rep.N, u)
	}
	if u := purse.held; u != (memgpt.Usage{}) {
		t.Errorf("%+v is held", u)
	}
}

// TestTheCallersMeterIsAsked too: a kernel's own budget holds beside the run's.
func TestTheCallersMeterIsAsked(t *testing.T) {
	r := testRunner(t, nil)
	m, _ := centAnswers(t)
	r.cfg.Model = m
	caller := &askedMeter{}
	req := asking("x")
	req.Meter = caller
	if _, err := r.ask(t.Context(), m, req, nil, new(bill)); err != nil || caller.told.Output != 100 {
		t.Errorf("%v, %+v", err, caller.told)
	}
	caller.refuse = memgpt.Errorf(memgpt.CodeBudget, "no")
	req = asking("x")
	req.Meter = caller
	if _, err := r.ask(t.Context(), m, req, nil, new(bill)); !errors.Is(err, caller.refuse) {
		t.Errorf("got %v", err)
	}
}

type askedMeter struct {
	refuse error
	told   memgpt.Usage
}

func (m *askedMeter) Afford(context.Context, func(memgpt.Usage) (int64, bool)) error { return m.refuse }
func (m *askedMeter) Spent(_ string, u memgpt.Usage)                                 { m.told = m.told.Add(u) }

// TestABudgetSaysWhatIsUnderWay: where calls that have not ended hold a budget, the refusal of the next one says so.
func TestABudgetSaysWhatIsUnderWay(t *testing.T) {
	for _, tt := range []struct {
		purse *Purse
		want  string
	}{
		{NewPurse(0, 1000), "0 used, about 900 set aside for calls under way, and"},
		{NewPurse(1000_000_000, 0), "$0.00 spent, about $0.90 set aside for calls under way, and"},
	} {
		price := func(u memgpt.Usage) (int64, bool) { return int64(u.Input) * 1_000_000, true }
		if _, err := tt.purse.reserve("toy", 900, price); err != nil {
			t.Fatal(err)
		}
		if _, err := tt.purse.reserve("toy", 900, price); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}
