package kernel

import (
	"context"
	"slices"

	"memgpt"
	"memgpt/store"
)

// What model calls use is added up by day and model beside the conversation, and goes into the commits that are made
// anyway: store.Commit.Spending only adds, so that it conflicts with nobody's. It isn't part of a step's changes, since a
// reply that is thrown away was paid for like any other. What was used after the last commit of a run that fails is kept
// by a commit of its own; only what a killed process had not committed is not known any more.

// Bounds of what one call is taken to have used, so that nonsense of a provider doesn't break the sums.
const (
	maxCallTokens = 1 << 40
	maxCallNano   = 1_000_000_000_000_000 // a million dollars
)

// spend takes in what a call used.
func (r *run) spend(model string, u memgpt.Usage) {
	for _, n := range []*int{&u.Input, &u.Cached, &u.Written, &u.Output, &u.Reasoning} {
		*n = min(max(*n, 0), maxCallTokens)
	}
	u.Nano, u.Priced, u.Calls = min(max(u.Nano, 0), maxCallNano), min(max(u.Priced, 0), 1), 1
	r.turn.Usage = r.turn.Usage.Add(u)
	if a := r.st.Agent.Budget; u.Priced == 0 && (a.Nano > 0 || a.NanoTotal > 0 || r.k.cfg.Budget.Nano > 0 || r.k.cfg.Budget.NanoTotal > 0) {
		r.warnUnpriced(model)
	}
	now := r.k.cfg.Now()
	s := store.Spending{Tenant: r.st.Thread.Tenant, Agent: r.st.Agent.ID, Model: model,
		Day: now.In(r.zone).Format(store.DayFormat), UTC: now.UTC().Format(store.DayFormat), Usage: u}
	i := slices.IndexFunc(r.spent, func(o store.Spending) bool { return o.Model == s.Model && o.Day == s.Day && o.UTC == s.UTC })
	if i < 0 {
		r.spent = append(r.spent, s)
		return
	}
	r.spent[i].Usage = r.spent[i].Usage.Add(u)
}

// warnUnpriced says once a turn that a budget of money does not see a call.
func (r *run) warnUnpriced(model string) {
	const flag = "cost_unknown"
	if !slices.Contains(r.turn.Flags, flag) {
		r.flag(flag)
		r.emit(memgpt.Warned{Code: flag, Text: "what the call of " + model + " cost isn't known, so that the budget of money doesn't count it"})
	}
}

// keepSpending stores what was used and is in no commit: the run failed, or it ends without one. Where that fails too it is
// lost, like all that a store that is out of reach is not told.
func (r *run) keepSpending(ctx context.Context) {
	if len(r.spent) == 0 {
		return
	}
	c := &store.Commit{Now: r.k.cfg.Now(), Spending: r.spent}
	if _, err := r.k.cfg.Store.Commit(context.WithoutCancel(ctx), c); err == nil {
		r.spent = nil
	}
}

// metered asks a model with a meter on its calls: model/… is asked through cost.Meter mostly, which tells of each call,
// those that were asked again too. Where nobody tells, the reply is what is known. input is the request's size as counted.
func (r *run) metered(ctx context.Context, m memgpt.Model, req *memgpt.Request, input int, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	name := req.Model
	if name == "" {
		name = m.Capabilities().Name
	}
	next := nextCall{model: name, input: input}
	if err := r.afford(ctx, next); err != nil {
		return nil, err
	}
	meter := &callMeter{r: r, next: next}
	req.Meter = meter
	reply, err := m.Generate(ctx, req, stream)
	if reply != nil && !meter.told {
		if reply.Model != "" {
			name = reply.Model
		}
		r.spend(name, reply.Usage)
	}
	return reply, err
}

// callMeter implements memgpt.Meter for one request.
type callMeter struct {
	r    *run
	next nextCall
	told bool
}

// Afford implements memgpt.Meter.
func (m *callMeter) Afford(ctx context.Context, price func(memgpt.Usage) (int64, bool)) error {
	next := m.next
	next.price = price
	return m.r.afford(ctx, next)
}

// Spent implements memgpt.Meter.
func (m *callMeter) Spent(model string, u memgpt.Usage) {
	m.told = true
	m.r.spend(model, u)
}
