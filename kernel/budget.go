package kernel

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// A budget is looked at before each call of a model, in what the store has of all processes and what this run has used
// since its last commit. It refuses where it is used up, or where the input alone of the next call would pass it; the
// reply isn't known before. So one call may pass it, and as many as are under way at once.

// nextCall is a call that is about to be made. Its zero value asks whether anything is left.
type nextCall struct {
	model string
	input int                                         // tokens as counted
	price func(memgpt.Usage) (nano int64, known bool) // nil where nobody knows prices
}

// bound is one figure of a budget and what was used of it.
type bound struct {
	whose string // "agent ada", or all agents
	span  string // "a day" or "in all"
	most  int64
	money bool
	used  memgpt.Usage
	frees time.Time // zero for never
}

// afford returns an error (CodeBudget) where a call is not to be made.
func (r *run) afford(ctx context.Context, next nextCall) error {
	now := r.k.cfg.Now()
	agent, all := r.st.Agent.Budget, r.k.cfg.Budget
	for _, b := range []struct {
		whose  string
		budget memgpt.Budget
		agent  string
		zone   *time.Location
	}{{"agent " + r.st.Agent.Name, agent, r.st.Agent.ID, r.zone}, {"all agents together", all, "", time.UTC}} {
		if b.budget == (memgpt.Budget{}) { // mostly: each call of a model comes here
			continue
		}
		day := now.In(b.zone).Format(store.DayFormat)
		of := store.SpendingRange{Tenant: r.st.Thread.Tenant, Agent: b.agent, UTC: b.agent == "", From: day, To: day}
		y, m, d := now.In(b.zone).Date()
		daily := bound{whose: b.whose, span: "a day", frees: time.Date(y, m, d+1, 0, 0, 0, 0, b.zone)}
		if err := r.within(ctx, of, daily, b.budget.Tokens, b.budget.Nano, next); err != nil {
			return err
		}
		of.Total = true
		if err := r.within(ctx, of, bound{whose: b.whose, span: "in all"}, b.budget.TokensTotal, b.budget.NanoTotal, next); err != nil {
			return err
		}
	}
	return nil
}

// within holds a call against the two figures of one span.
func (r *run) within(ctx context.Context, of store.SpendingRange, b bound, tokens, nano int64, next nextCall) error {
	if tokens <= 0 && nano <= 0 {
		return nil
	}
	rows, err := r.k.cfg.Store.Spending(ctx, of)
	if err != nil {
		return fmt.Errorf("read what was spent: %w", err)
	}
	for _, s := range append(rows, r.spent...) {
		day := s.Day
		if of.UTC {
			day = s.UTC
		}
		if of.Total || day == of.From {
			b.used = b.used.Add(s.Usage)
		}
	}
	if b.most = tokens; b.most > 0 {
		if err := b.refuse(int64(b.used.Input+b.used.Output), int64(next.input)); err != nil {
			return err
		}
	}
	if b.most, b.money = nano, true; b.most <= 0 {
		return nil
	}
	cost, known := int64(0), true
	if next.price != nil {
		cost, known = next.price(memgpt.Usage{Input: next.input})
	}
	if !known {
		return memgpt.Errorf(memgpt.CodeBudget, "what %s costs isn't known, so that the budget of %s of %s can't be held; give its"+
			" price, or set a budget in tokens instead", next.model, b.figure(b.most), b.whose)
	}
	return b.refuse(b.used.Nano, cost)
}

// refuse returns an error where nothing is left, or not enough for the next request.
func (b *bound) refuse(used, next int64) error {
	if used < b.most && next <= b.most-used {
		return nil
	}
	text := fmt.Sprintf("the budget of %s of %s is spent: %s used", b.figure(b.most), b.whose, b.amount(used))
	if used < b.most {
		text = fmt.Sprintf("the budget of %s of %s would be passed: %s used, and the next request alone has %s", b.figure(b.most), b.whose,
			b.amount(used), b.amount(next))
	}
	if n := b.used.Calls - b.used.Priced; b.money && n > 0 {
		text += fmt.Sprintf(" (besides, %d calls have no known cost)", n)
	}
	if b.frees.IsZero() {
		return memgpt.Errorf(memgpt.CodeBudget, "%s; raise it to go on", text)
	}
	return memgpt.Errorf(memgpt.CodeBudget, "%s; it frees at %s; raise it to go on before", text, calendar.Format(b.frees, b.frees.Location()))
}

// figure names the budget: "$2.50 a day", "500000 tokens in all".
func (b *bound) figure(n int64) string { return b.amount(n) + " " + b.span }

func (b *bound) amount(n int64) string {
	if b.money {
		return store.FormatMoney(n)
	}
	return strconv.FormatInt(n, 10) + " tokens"
}
