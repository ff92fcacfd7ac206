package eval

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"memgpt"
	"memgpt/store"
)

// Purse counts what the model calls of runs use and cost, and bounds it. What comes from a cache of calls costs nothing. It
// is told by models that tell what they cost (cost.Meter); what a provider doesn't report is estimated. It is safe for
// concurrent use.
type Purse struct {
	nano, tokens int64 // most; 0 is no bound

	mu     sync.Mutex // guards what follows
	spent  memgpt.Usage
	held   memgpt.Usage // forecast of the calls under way
	closed error        // why no call is made any more
	asked  int          // questions for which a call was made
}

// ErrNoPrice is why a run with a budget in dollars ends before its first call.
var ErrNoPrice = errors.New("give its price, or set a budget in tokens instead")

// NewPurse returns a purse of so many nano-dollars and tokens, of requests and replies together; 0 is no bound.
func NewPurse(nano, tokens int64) *Purse { return &Purse{nano: nano, tokens: tokens} }

// Spent returns what calls used so far, and for how many of the questions done a call was made.
func (p *Purse) Spent() (u memgpt.Usage, questions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent, p.asked
}

// stopped returns the error with which calls are refused; nil while none was.
func (p *Purse) stopped() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// underWay says what is set aside for calls that have not ended.
func underWay(any bool, amount string) string {
	if !any {
		return ""
	}
	return ", about " + amount + " set aside for calls under way"
}

// reserve sets aside what a call with so many tokens of input will use by forecast: its reply is taken to be as long as those
// before it were. It refuses the call where that is beyond the bounds, and then all others.
func (p *Purse) reserve(model string, input int, price func(memgpt.Usage) (int64, bool)) (memgpt.Usage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return memgpt.Usage{}, p.closed
	}
	next := memgpt.Usage{Input: input}
	if p.spent.Calls > 0 {
		next.Output = p.spent.Output / p.spent.Calls
	}
	nano, known := price(next)
	if next.Nano = nano; !known {
		next.Nano = 0
	}
	sum := p.spent.Add(p.held).Add(next)
	switch {
	case p.nano > 0 && !known:
		p.closed = memgpt.Errorf(memgpt.CodeInvalid, "what %s costs isn't known, so that a budget in dollars can't be held: %w", model, ErrNoPrice)
	case p.nano > 0 && sum.Nano > p.nano:
		p.closed = memgpt.Errorf(memgpt.CodeBudget, "the budget of %s is used up: %s spent%s, and the next call would pass it",
			store.FormatMoney(p.nano), store.FormatMoney(p.spent.Nano), underWay(p.held.Nano > 0, store.FormatMoney(p.held.Nano)))
	case p.tokens > 0 && int64(sum.Input+sum.Output) > p.tokens:
		p.closed = memgpt.Errorf(memgpt.CodeBudget, "the budget of %d tokens is used up: %d used%s, and the next call would pass it",
			p.tokens, p.spent.Input+p.spent.Output, underWay(p.held.Input+p.held.Output > 0, strconv.Itoa(p.held.Input+p.held.Output)))
	}
	if p.closed != nil {
		return memgpt.Usage{}, p.closed
	}
	p.held = p.held.Add(next)
	return next, nil
}

// take counts what a call used in place of what was set aside for it.
func (p *Purse) take(u, held memgpt.Usage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent = p.spent.Add(u)
	p.held.Input, p.held.Output, p.held.Nano = p.held.Input-held.Input, p.held.Output-held.Output, p.held.Nano-held.Nano
}

// done counts a question that is done; live says that a call was made for it.
func (p *Purse) done(live bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if live {
		p.asked++
	}
}

// bill is what the replies of one question used, those from a cache included.
type bill struct {
	nano    int64
	cached  int   // tokens of input that came from the provider's cache
	unknown bool  // the cost of a reply isn't known
	live    bool  // a call was made
	refused error // a call was refused
}

func (b *bill) add(u *memgpt.Usage) {
	b.nano += u.Nano
	b.cached += u.Cached
	b.unknown = b.unknown || u.Priced == 0
}

// cost is in dollars; nil where it isn't known.
func (b *bill) cost() *float64 {
	if b.unknown {
		return nil
	}
	v := float64(b.nano) / 1e9
	return &v
}

// ask asks a model and notes what that costs in the question's bill, in the run's, and where a call was made in the purse.
func (r *runner) ask(ctx context.Context, m memgpt.Model, req *memgpt.Request, stream func(memgpt.Delta), to *bill) (*memgpt.Response, error) {
	req.Restore()
	messages, tools := req.Messages, req.Tools
	meter := &purseMeter{caller: req.Meter, purse: r.cfg.Purse, bill: to, model: m.Capabilities().Name, size: func() int {
		return r.requestSize(&memgpt.Request{Messages: messages}) + r.counter.Tools(tools)
	}}
	req.Meter = meter
	reply, err := m.Generate(ctx, req, stream)
	output := 0
	if err == nil {
		meter.fromCache(reply)
		to.add(&reply.Usage)
		r.mu.Lock()
		r.bill.add(&reply.Usage)
		r.mu.Unlock()
		output = r.counter.Message(&reply.Message)
	}
	meter.end(output)
	return reply, err
}

// purseMeter implements memgpt.Meter for one request. Its calls come one after the other.
type purseMeter struct {
	caller memgpt.Meter // of whoever made the request; nil is nobody
	purse  *Purse
	bill   *bill
	model  string
	size   func() int // tokens of the request as counted

	price func(memgpt.Usage) (int64, bool)
	held  memgpt.Usage // set aside for the call under way
	input int          // as counted, of the call under way
	told  bool         // the caller was told of a call
	owing bool         // the last call's output was not reported
}

// fromCache tells the caller what a reply used of which nobody told, since no call was made: it goes on as if one had been.
func (m *purseMeter) fromCache(reply *memgpt.Response) {
	if m.caller == nil || m.told {
		return
	}
	name := reply.Model
	if name == "" {
		name = m.model
	}
	m.caller.Spent(name, reply.Usage)
}

// Afford implements memgpt.Meter.
func (m *purseMeter) Afford(ctx context.Context, price func(memgpt.Usage) (int64, bool)) error {
	if m.caller != nil {
		if err := m.caller.Afford(ctx, price); err != nil {
			return err
		}
	}
	m.release()
	m.price, m.input = price, m.size()
	var err error
	if m.held, err = m.purse.reserve(m.model, m.input, price); err != nil {
		m.bill.refused = err
		return err
	}
	m.bill.live = true
	return nil
}

// Spent implements memgpt.Meter.
func (m *purseMeter) Spent(model string, u memgpt.Usage) {
	if m.caller != nil {
		m.caller.Spent(model, u)
	}
	m.told, m.owing = true, u.Output <= 0
	if u.Input <= 0 {
		u.Input = m.input
		m.estimate(&u, memgpt.Usage{})
	}
	u.Calls = 1
	m.purse.take(u, m.held)
	m.held = memgpt.Usage{}
}

// estimate prices a usage that nobody reported, less that which was priced before.
func (m *purseMeter) estimate(u *memgpt.Usage, less memgpt.Usage) {
	if m.price == nil {
		return
	}
	nano, known := m.price(memgpt.Usage{Input: less.Input + u.Input, Output: less.Output + u.Output})
	if before, _ := m.price(less); known {
		u.Nano = nano - before
	}
}

// release gives back what is set aside: the call failed before it cost anything.
func (m *purseMeter) release() {
	m.purse.take(memgpt.Usage{}, m.held)
	m.held = memgpt.Usage{}
}

// end settles what the request used; output is the size of its reply, as counted.
func (m *purseMeter) end(output int) {
	m.release()
	if m.owing && output > 0 {
		u := memgpt.Usage{Output: output}
		m.estimate(&u, memgpt.Usage{Input: m.input})
		m.purse.take(u, memgpt.Usage{})
	}
}
