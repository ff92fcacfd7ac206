package storetest

import (
	"fmt"
	"sync"

	"memgpt"
	"memgpt/store"
)

// usageOf returns a usage whose fields all differ.
func usageOf(n int) memgpt.Usage {
	return memgpt.Usage{Input: 100 * n, Cached: 20 * n, Written: 3 * n, Output: 7 * n, Reasoning: 2 * n, Calls: n, Priced: n, Nano: int64(n) * 1_000_000_007}
}

func spent(agent, model, day, utc string, n int) store.Spending {
	return store.Spending{Tenant: "x", Agent: agent, Model: model, Day: day, UTC: utc, Usage: usageOf(n)}
}

func testSpending(e *env) {
	read := func(q store.SpendingRange) []store.Spending {
		q.Tenant = "x"
		return must(e.s.Spending(e.ctx, q))(e)
	}
	e.same("nothing yet", len(read(store.SpendingRange{})), 0)
	a2, a3, a3late := spent("a", "m", "2026-03-02", "2026-03-02", 1), spent("a", "m", "2026-03-03", "2026-03-02", 2), spent("a", "m", "2026-03-03", "2026-03-03", 4)
	a3n, b3 := spent("a", "n", "2026-03-03", "2026-03-03", 8), spent("b", "m", "2026-03-03", "2026-03-03", 16)
	other := spent("a", "m", "2026-03-03", "2026-03-03", 32)
	other.Tenant = "y"
	e.commit(&store.Commit{Spending: []store.Spending{a2, a3, a3n, other}})
	e.commit(&store.Commit{Spending: []store.Spending{b3, a3late}})
	e.same("all days", read(store.SpendingRange{}), []store.Spending{a2, a3, a3late, a3n, b3})
	e.same("an agent's", read(store.SpendingRange{Agent: "b"}), []store.Spending{b3})
	e.same("nobody's", len(read(store.SpendingRange{Agent: "c"})), 0)
	day := store.SpendingRange{From: "2026-03-03", To: "2026-03-03"}
	e.same("a day", read(day), []store.Spending{a3, a3late, a3n, b3})
	e.same("the days before", read(store.SpendingRange{To: "2026-03-02"}), []store.Spending{a2})
	e.same("the days after", len(read(store.SpendingRange{From: "2026-03-04"})), 0)
	day.UTC = true
	e.same("a day in UTC", read(day), []store.Spending{a3late, a3n, b3})
	day.Agent = "a"
	e.same("an agent's day in UTC", read(day), []store.Spending{a3late, a3n})
	e.commit(&store.Commit{Spending: []store.Spending{a3, a3}})
	e.same("added up", read(store.SpendingRange{Agent: "a", From: "2026-03-03", To: "2026-03-03"}),
		[]store.Spending{spent("a", "m", "2026-03-03", "2026-03-02", 6), a3late, a3n})
	e.same("in all", read(store.SpendingRange{Total: true}),
		[]store.Spending{spent("a", "m", "", "", 11), spent("a", "n", "", "", 8), spent("b", "m", "", "", 16)})
	e.same("an agent's in all", read(store.SpendingRange{Total: true, Agent: "b"}), []store.Spending{spent("b", "m", "", "", 16)})
}

func testSpendingRefused(e *env) {
	good := spent("a", "m", "2026-03-02", "2026-03-02", 1)
	for name, change := range map[string]func(s *store.Spending){
		"agent": func(s *store.Spending) { s.Agent = "" }, "day": func(s *store.Spending) { s.Day = "" }, "utc": func(s *store.Spending) { s.UTC = "" },
		"tokens": func(s *store.Spending) { s.Output = -1 }, "money": func(s *store.Spending) { s.Nano = -1 },
	} {
		bad := good
		change(&bad)
		e.refuse(&store.Commit{Spending: []store.Spending{good, bad}}, memgpt.CodeInvalid)
		e.same("after bad "+name, len(must(e.s.Spending(e.ctx, store.SpendingRange{Tenant: "x"}))(e)), 0)
	}
}

// testSpendingAtOnce has many writers add to the same sums: none conflicts, and nothing is lost.
func testSpendingAtOnce(e *env) {
	const writers, times = 8, 10
	var wait sync.WaitGroup
	errs := make(chan error, writers)
	for range writers {
		wait.Go(func() {
			for range times {
				if _, err := e.s.Commit(e.ctx, &store.Commit{Now: e.now, Spending: []store.Spending{spent("a", "m", "2026-03-02", "2026-03-02", 1)}}); err != nil {
					errs <- fmt.Errorf("add to a sum: %w", err)
					return
				}
			}
		})
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		e.Error(err)
	}
	e.same("the sum", must(e.s.Spending(e.ctx, store.SpendingRange{Tenant: "x", Agent: "a", From: "2026-03-02"}))(e),
		[]store.Spending{spent("a", "m", "2026-03-02", "2026-03-02", writers*times)})
}
