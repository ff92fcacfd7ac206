// Package kernel runs an agent: it takes an event in, makes room in main context, compiles the prompt, asks the model,
// executes the functions it calls, commits the step and decides whether another follows. It owns the queue manager, the
// compiler and the function executor. It schedules nothing, does no I/O of its own (storage, models and search are
// handed in) and logs nothing: what happens is emitted as updates.
package kernel

import (
	"context"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// Counter measures requests. Package token meets it.
type Counter interface {
	// Text, Message and Tools count tokens by a fixed encoding.
	Text(s string) int
	Message(m *memgpt.Message) int
	Tools(specs []memgpt.ToolSpec) int
	// Factor is what counts are multiplied with for a model, as its provider's reports have shown.
	Factor(model string) float64
	// Observe reports what a provider counted for a request that was counted before multiplication.
	Observe(model string, counted, reported int)
	// Calibrate takes over the factor of a model that an earlier process learned, unless this one has learned its own.
	Calibrate(model string, factor float64)
	// Truncated reports whether a provider's count says that it cut the prompt.
	Truncated(counted, reported int) bool
}

// Config wires a Kernel. All fields without a default must be set.
type Config struct {
	Store    store.Store
	Search   tool.Searcher
	Analyzer store.Analyzer
	Counter  Counter
	// Model returns the model of an agent.
	Model func(memgpt.Agent) (memgpt.Model, error)
	// Summarizer returns the model that folds evicted messages; nil is Model.
	Summarizer func(memgpt.Agent) (memgpt.Model, error)
	// NoSummary has messages leave main context without a summary, of the queue manager or of the model: they are found in
	// recall storage alone. It is for measuring what the summary is worth.
	NoSummary bool
	// System returns the memory functions: compact descriptions for small windows, for the native protocol or not.
	System func(compact, native bool) ([]tool.Tool, error)
	// Mail returns, for the native protocol or not, the memory functions with those by which agents write to each other: in place
	// of System for agents whose Reach says so, but not in small windows. Nil is System for all.
	Mail func(native bool) ([]tool.Tool, error)
	// Tidying returns the memory functions for tidying in the background; nil is none, and no tidying. Tidier returns the model
	// that Agent.Tidy names, which is the Model of the agent that it is given; nil is Model.
	Tidying func(compact bool) ([]tool.Tool, error)
	Tidier  func(memgpt.Agent) (memgpt.Model, error)
	// Tools are further functions, offered to agents by name (Agent.Tools).
	Tools []tool.Tool
	// Normalize returns the form of a passage under which two are the same text; nil folds case and space.
	Normalize func(text string) string
	Now       func() time.Time         // nil is time.Now
	NewID     func(kind string) string // safe for concurrent use
	// Budget bounds all agents of a tenant together, beside each one's own; a day is one of UTC. Bounds of money hold only
	// for models that tell what they cost (cost.Meter).
	Budget memgpt.Budget
	// Window is the context window in tokens where neither the agent nor its model names one; 0 is 8,192 (first
	// implementation's default).
	Window int
}

// Kernel runs conversations. It holds no state of them and is safe for concurrent use.
type Kernel struct {
	cfg   Config
	mu    sync.Mutex
	forms map[formKey]*toolset
	abi   map[formKey]string // built-in instructions

	calibrations map[calibrationKey]*calibrated
}

// New returns a Kernel. It fails where a tool can't be offered to a model.
func New(cfg Config) (*Kernel, error) {
	if cfg.Summarizer == nil {
		cfg.Summarizer = cfg.Model
	}
	if cfg.Normalize == nil {
		cfg.Normalize = foldText
	}
	if cfg.Window == 0 {
		cfg.Window = 8192
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	k := &Kernel{cfg: cfg, forms: map[formKey]*toolset{}, abi: abi(), calibrations: map[calibrationKey]*calibrated{}}
	if _, err := k.build(formKey{tools: allTools, mail: true}, nil); err != nil {
		return nil, err
	}
	return k, nil
}

// Run handles one event of one conversation to the end of its turn: the seven steps of the architecture. It returns nil
// when the turn ended in any way (done, cancelled, failed by its model) and that was committed; the last commit consumes
// the event. It also returns nil where the turn waits for another agent (memgpt.TurnWaiting), and keeps the lease then. It returns an error where it could not commit: the context ended otherwise than by a cancel, the store
// failed, the lease was lost. Then the event stays pending, and a later Run goes on where the last commit stands.
func (k *Kernel) Run(ctx context.Context, w *store.Work) error {
	r, err := k.intake(ctx, w)
	defer r.keepSpending(ctx)
	if err != nil {
		return r.fail(ctx, err)
	}
	if r.ended() { // tidying has nothing to do
		if err := r.commit(ctx, func() { r.stop(memgpt.StopEnd) }); err != nil {
			return r.fail(ctx, err)
		}
	}
	r.handOver(ctx)
	if r.waiting() { // some answers are missing still
		if err := r.commitPart(ctx); err != nil {
			return r.fail(ctx, err)
		}
	}
	for !r.ended() {
		if paused, err := r.pause(ctx); err != nil {
			return r.fail(ctx, err)
		} else if paused {
			return nil
		}
		if err := r.border(ctx); err != nil {
			return r.fail(ctx, err)
		}
		if err := r.afford(ctx, nextCall{}); err != nil { // before messages are evicted for a request that isn't sent
			return r.fail(ctx, err)
		}
		if err := r.makeRoom(ctx); err != nil {
			return r.fail(ctx, err)
		}
		req := r.compile()
		reply, err := r.generate(ctx, req)
		if err != nil {
			return r.fail(ctx, err)
		}
		if err := r.execute(ctx, reply); err != nil {
			return r.fail(ctx, err)
		}
		// The commit asks whether another step is wanted, since the last one consumes the event.
		if err := r.commit(ctx, r.heartbeat); err != nil {
			return r.fail(ctx, err)
		}
	}
	return r.settle(ctx)
}
