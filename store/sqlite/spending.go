package sqlite

import (
	"context"

	"memgpt"
	"memgpt/store"
)

const (
	spendingCols   = "agent, day, model, utc, input, cached, written, output, reasoning, calls, priced, nano"
	sqlSpendingAdd = "INSERT INTO spending (tenant, " + spendingCols + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (tenant, agent, day, model, utc) DO UPDATE SET input = input + excluded.input, cached = cached + excluded.cached,
		written = written + excluded.written, output = output + excluded.output, reasoning = reasoning + excluded.reasoning,
		calls = calls + excluded.calls, priced = priced + excluded.priced, nano = nano + excluded.nano`
	sqlSpending      = "SELECT " + spendingCols + " FROM spending WHERE tenant = ? "
	sqlSpendingOrder = " ORDER BY day, agent, model, utc"

	// By which columns rows are looked for: the primary key begins with the agent, and the index is by days in UTC.
	sqlSpendingOf   = sqlSpending + "AND agent = ? AND day BETWEEN ? AND ?" + sqlSpendingOrder
	sqlSpendingOfAt = sqlSpending + "AND agent = ? AND utc BETWEEN ? AND ?" + sqlSpendingOrder
	sqlSpendingOn   = sqlSpending + "AND day BETWEEN ? AND ?" + sqlSpendingOrder
	sqlSpendingAt   = sqlSpending + "AND utc BETWEEN ? AND ?" + sqlSpendingOrder
)

// firstDay and lastDay lie around all days, but not around "", the sums' own.
const firstDay, lastDay = "0", "~"

// applySpending adds to the sums, which has no version to conflict with.
func (w *work) applySpending(c *store.Commit, _ *coded) error {
	for i := range c.Spending {
		s := &c.Spending[i]
		u := &s.Usage
		if s.Agent == "" || s.Day == "" || s.UTC == "" ||
			min(u.Input, u.Cached, u.Written, u.Output, u.Reasoning, u.Calls, u.Priced) < 0 || u.Nano < 0 {
			return memgpt.Errorf(memgpt.CodeInvalid, "store spending of agent %q on day %q (%q in UTC): it needs all three, and no count under 0",
				s.Agent, s.Day, s.UTC)
		}
		for _, at := range [][2]string{{s.Day, s.UTC}, {"", ""}} {
			if _, err := w.c.exec(sqlSpendingAdd, s.Tenant, s.Agent, at[0], s.Model, at[1], u.Input, u.Cached, u.Written, u.Output,
				u.Reasoning, u.Calls, u.Priced, u.Nano); err != nil {
				return err
			}
		}
	}
	return nil
}

// Spending implements store.Store.
func (s *Store) Spending(ctx context.Context, q store.SpendingRange) (list []store.Spending, err error) {
	from, to := max(q.From, firstDay), q.To
	if to == "" {
		to = lastDay
	}
	if q.Total {
		from, to, q.UTC = "", "", q.Agent == ""
	}
	query, args := map[bool]string{false: sqlSpendingOn, true: sqlSpendingAt}[q.UTC], []any{q.Tenant, from, to}
	if q.Agent != "" {
		query, args = map[bool]string{false: sqlSpendingOf, true: sqlSpendingOfAt}[q.UTC], []any{q.Tenant, q.Agent, from, to}
	}
	err = s.read(ctx, "spending", func(c *conn) error {
		return c.each(func(r row) error {
			n := func(column int) int { return int(r.int(column)) }
			list = append(list, store.Spending{Tenant: q.Tenant, Agent: r.text(0), Day: r.text(1), Model: r.text(2), UTC: r.text(3),
				Usage: memgpt.Usage{Input: n(4), Cached: n(5), Written: n(6), Output: n(7), Reasoning: n(8), Calls: n(9), Priced: n(10), Nano: r.int(11)}})
			return nil
		}, query, args...)
	})
	return list, err
}
