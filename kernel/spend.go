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
	u.Calls = 1
	if a := r.st.Agent.Budget; u.Priced == 0 && (a.Nano > 0 || a.NanoTotal > 0 || r.k.cfg.Budget.Nano > 0 || r.k.cfg.Budget.NanoTotal > 0) {
		r.warnOfBudget("cost_unknown", "what the call of "+model+" cost isn't known, so that the budget of money doesn't count it")
	}
	r.addSpending(model, u)
}

// addSpending adds to the sums.
func (r *run) addSpending(model string, u memgpt.Usage) {
	for _, n := range []*int{&u.Input, &u.Cached, &u.Written, &u.Output, &u.Reasoning} {
		*n = min(max(*n, 0), maxCallTokens)
	}
	u.Nano, u.Priced = min(max(u.Nano, 0), maxCallNano), min(max(u.Priced, 0), 1)
	r.turn.Usage = r.turn.Usage.Add(u)
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

// warnOfBudget says once a turn what a budget can't see.
func (r *run) warnOfBudget(flag, text string) {
	if !slices.Contains(r.turn.Flags, flag) {
		r.flag(flag)
		r.emit(memgpt.Warned{Code: flag, Text: text})
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
	pass := stream
	if stream != nil {
		pass = func(d memgpt.Delta) { meter.came(d); stream(d) }
	}
	reply, err := m.Generate(ctx, req, pass)
	if reply != nil && !meter.told {
		if reply.Model != "" {
			name = reply.Model
		}
		meter.Spent(name, reply.Usage)
	}
	meter.estimateOutput(reply)
	return reply, err
}

// callMeter implements memgpt.Meter for one request. What a provider doesn't report is estimated, so that a budget holds
// with it too: the input as we count it, the output by what came. The turn's flag usage_estimated marks it.
type callMeter struct {
	r     *run
	next  nextCall
	told  bool
	owing string // the model whose last call's output was not reported
	bytes int    // of the reply that came in pieces
}

// Afford implements memgpt.Meter.
func (m *callMeter) Afford(ctx context.Context, price func(memgpt.Usage) (int64, bool)) error {
	m.next.price, m.bytes = price, 0
	return m.r.afford(ctx, m.next)
}

// Spent implements memgpt.Meter.
func (m *callMeter) Spent(model string, u memgpt.Usage) {
	m.told, m.owing = true, ""
	if u.Output <= 0 {
		m.owing = model
	}
	if u.Input <= 0 && m.next.input > 0 {
		u.Input = m.next.input
		m.estimated(model)
		if nano, known := m.price(memgpt.Usage{Input: u.Input}); known {
			u.Nano, u.Priced = max(u.Nano, 0)+nano, 1
		}
	}
	m.r.spend(model, u)
}

// came takes in a piece of a reply under way.
func (m *callMeter) came(d memgpt.Delta) {
	m.bytes += len(d.Text) + len(d.Reasoning)
	if d.Call != nil {
		m.bytes += len(d.Call.Name) + len(d.Call.Arguments)
	}
}

// bytesPerToken is on the safe side for most languages.
const bytesPerToken = 3

// estimateOutput adds what the last call's reply had, where nobody told; one that broke off is counted by its pieces.
func (m *callMeter) estimateOutput(reply *memgpt.Response) {
	if m.owing == "" {
		return
	}
	n := m.bytes / bytesPerToken
	if reply != nil {
		n = max(n, tokens(m.r.k.cfg.Counter.Message(&reply.Message), m.r.k.cfg.Counter.Factor(m.next.model)))
	}
	if n == 0 {
		return
	}
	u := memgpt.Usage{Output: n}
	if with, known := m.price(memgpt.Usage{Input: m.next.input, Output: n}); known {
		without, _ := m.price(memgpt.Usage{Input: m.next.input})
		u.Nano = with - without
	}
	m.estimated(m.owing)
	m.r.addSpending(m.owing, u)
}

// price is what a usage costs, as the call was affordable.
func (m *callMeter) price(u memgpt.Usage) (int64, bool) {
	if m.next.price == nil {
		return 0, false
	}
	return m.next.price(u)
}

// estimated marks the turn, and says so where a budget rests on it.
func (m *callMeter) estimated(model string) {
	const flag = "usage_estimated"
	if m.r.st.Agent.Budget == (memgpt.Budget{}) && m.r.k.cfg.Budget == (memgpt.Budget{}) {
		m.r.flag(flag)
		return
	}
	m.r.warnOfBudget(flag, model+" doesn't report what a call used, so that the budget counts our own estimate")
}
