package kernel

import (
	"memgpt"
	"memgpt/store"
)

// Inspection is a compiled prompt with its sizes, in tokens as the provider counts them.
type Inspection struct {
	Request *memgpt.Request
	Parts   []Part

	Window  int // of the model
	Reserve int // kept for the reply
	Usable  int // what a request may fill
	Alert   int // mark of the pressure alert
	Flush   int // mark of the flush
	Target  int // what a flush evicts down to
	Total   int // the request
}

// Part is one row of an Inspection.
type Part struct {
	Name   string
	Tokens int
}

// Inspect compiles a conversation as the next step would send it, without changing it.
func (k *Kernel) Inspect(st *store.State) (*Inspection, error) {
	r := &run{k: k, w: &store.Work{State: st}, scale: 1, stale: true}
	r.begin()
	if err := r.configure(); err != nil {
		return nil, err
	}
	if err := r.fit(); err != nil {
		return nil, err
	}
	l := r.last
	in := &Inspection{Request: r.compile(), Window: r.win.size, Reserve: r.win.reserve, Usable: r.win.usable, Alert: r.win.alert,
		Flush: r.win.flush, Target: r.win.target, Total: tokens(l.total, r.factor())}
	add := func(name string, counted int) {
		in.Parts = append(in.Parts, Part{name, tokens(counted, r.factor())})
	}
	add("functions", r.ts.tokens())
	system := k.cfg.Counter.Text(r.instructions())
	add("system instructions", system)
	add("frame of blocks", r.st.Prefix.Tokens-system-sum(r.blockTokens()))
	for i, n := range r.blockTokens() {
		add("block "+r.st.Blocks[i].Label, n)
	}
	add("summary", l.summary)
	add("newest user message", l.asked)
	add("queue", sum(l.queue))
	return in, nil
}

func (r *run) blockTokens() []int {
	ns := make([]int, len(r.st.Blocks))
	for i := range r.st.Blocks {
		ns[i] = r.k.cfg.Counter.Text(r.st.Blocks[i].Value)
	}
	return ns
}
