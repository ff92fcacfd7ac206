// Package bench measures what is behind `memgpt bench`: the cost of a step beside the bare cost of its two commits, steps
// per second, start-up, resident memory, and how the costs of steps, compiling and searching grow with the log.
//
// It owns the measurements and their figures. Stores, models, programs and servers are handed in; it opens no file and no
// connection. Figures of one run compare with each other; those of a loaded machine compare with nothing else.
package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"memgpt"
	"memgpt/host"
	"memgpt/kernel"
	"memgpt/store"
	"memgpt/tool"
)

// Config wires a run. All fields must be set but Now, Slow, Startup, Behind, Vectors, Meaning and Note.
type Config struct {
	Quick bool             // fewer and smaller measurements, see sizes
	Now   func() time.Time // nil is time.Now
	NewID func(kind string) string

	// Open makes a new store in a file of its own.
	Open func(ctx context.Context) (*Site, error)
	// Kernel wires a kernel on a store; window 0 leaves it to the kernel's default.
	Kernel func(s store.Store, search tool.Searcher, m memgpt.Model, window int, newID func(string) string) (*kernel.Kernel, error)
	// Model returns a model that says next() in one send_message call at each step and has words for each summary.
	Model func(next func() string) memgpt.Model
	// Startup runs the program once on the store of a site, from its start to its end. Nil leaves the figure out.
	Startup func(ctx context.Context, s *Site) error
	// Slow starts a server in another process that holds its first n requests. Nil leaves the figure out.
	Slow func(ctx context.Context, n int) (*Slow, error)
	// Behind starts what makes the vectors of a site's texts behind its work, and returns how to end it. Nil leaves the
	// figure out.
	Behind func(ctx context.Context, s *Site, busy func() bool) (stop func() error, err error)
	// Vectors gives all texts of an owner vectors that are made up, stored as others are. Nil leaves the figures out.
	Vectors func(ctx context.Context, s *Site, owner string) error
	// Meaning searches the texts by these vectors, the embedding of a query by a real encoder included.
	Meaning func(ctx context.Context, s *Site) (*Meaning, error)
	// Note is told what is being done; nil drops it.
	Note func(text string)
}

// Site is one store with what works on it.
type Site struct {
	Store  store.Store
	Search tool.Searcher
	Home   string // directory of the store's file
	// Pair makes two transactions at full durability in the same file: each inserts one row with one of the texts into a
	// plain table without an index.
	Pair func(ctx context.Context, user, agent string) error
	// Close closes and removes the store.
	Close func() error
}

// Slow is a model behind real connections to a server that keeps its clients waiting.
type Slow struct {
	Model memgpt.Model
	// Arrived waits until all requests are held.
	Arrived func(ctx context.Context) error
	// Release lets the server answer.
	Release func() error
	// Close ends the server.
	Close func() error
}

// sizes are how much is measured.
type sizes struct {
	pairs    int           // steps and pairs beside each other
	starts   int           // of the program
	rates    []int         // numbers of agents whose steps per second are counted
	rate     time.Duration // for each of them
	waiting  int           // agents at once
	lengths  []int         // of the log, in messages
	behind   int           // turns of steps with the making of vectors behind them, and without
	hurry    time.Duration // by which their times are divided, for tests; 0 is 1
	steps    int           // at each length
	searches int           // at each length
	budget   time.Duration // what does not fit is left out, see late; 0 is no bound
}

func sizesOf(quick bool) sizes {
	if quick {
		return sizes{pairs: 1000, starts: 9, rates: []int{1, 16, 256}, rate: 800 * time.Millisecond, waiting: 500,
			lengths: []int{1_000, 10_000, 100_000}, behind: 1, steps: 60, searches: 60, budget: 32 * time.Second}
	}
	return sizes{pairs: 3000, starts: 31, rates: []int{1, 16, 256}, rate: 5 * time.Second, waiting: 10_000,
		lengths: []int{1_000, 10_000, 100_000, 1_000_000}, behind: 6, steps: 500, searches: 300}
}

func (s sizes) share(d time.Duration) time.Duration { return d / max(s.hurry, 1) }

// runner is a run under way.
type runner struct {
	cfg   Config
	size  sizes
	began time.Time
	out   *Report
}

// Run measures. What could not be measured is said in the report's Notes, where that leaves the rest meaningful.
func Run(ctx context.Context, cfg Config) (*Report, error) { return run(ctx, cfg, sizesOf(cfg.Quick)) }

func run(ctx context.Context, cfg Config, size sizes) (*Report, error) {
	if cfg.NewID == nil || cfg.Open == nil || cfg.Kernel == nil || cfg.Model == nil {
		return nil, errors.New("configure a benchmark: NewID, Open, Kernel and Model must be set")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Note == nil {
		cfg.Note = func(string) {}
	}
	r := &runner{cfg: cfg, size: size, began: cfg.Now(), out: &Report{Quick: cfg.Quick, StepsPerSecond: map[string]float64{},
		StepByLog: map[string]float64{}, CompileByLog: map[string]float64{}, SearchByLog: map[string]float64{},
		MeaningByLog: map[string]float64{}, FilteredByLog: map[string]float64{}, MeaningFirst: map[string]float64{},
		HeldByLog: map[string]float64{}, VectorsByLog: map[string]float64{}}}
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"the cost of a step", r.steps},
		{"steps per second", r.throughput},
		{"waiting agents", r.waiting}, // before the encoder is loaded
		{"steps while vectors are made", r.behind},
		{"the growth of the log", r.growth},
	} {
		cfg.Note(part.name)
		if err := part.do(ctx); err != nil {
			return nil, fmt.Errorf("measure %s: %w", part.name, err)
		}
	}
	r.out.Seconds = r.since(r.began).Seconds()
	return r.out, nil
}

func (r *runner) since(start time.Time) time.Duration { return r.cfg.Now().Sub(start) }

// late reports whether more than a share of the budget is spent. So a quick run ends in time also on a machine that is slow
// or busy.
func (r *runner) late(share float64) bool {
	return r.size.budget > 0 && r.since(r.began) > time.Duration(share*float64(r.size.budget))
}

// Shares of the budget after which parts of a run are cut short.
const (
	latePairs   = 0.5
	lateWaiting = 0.75
	lateMeaning = 0.8
	lateGrowth  = 1
)

func (r *runner) note(format string, args ...any) {
	r.out.Notes = append(r.out.Notes, fmt.Sprintf(format, args...))
}

// rig is a host on a site.
type rig struct {
	*Site
	kernel *kernel.Kernel
	host   *host.Host
}

// rig opens a site with a host whose model is m. ended, where it isn't nil, is told of every turn at its end.
func (r *runner) rig(ctx context.Context, m memgpt.Model, window int, ended func(*store.Work, error)) (*rig, error) {
	s, err := r.cfg.Open(ctx)
	if err != nil {
		return nil, err
	}
	g := &rig{Site: s}
	if g.kernel, err = r.cfg.Kernel(s.Store, s.Search, m, window, r.cfg.NewID); err == nil {
		g.host, err = host.New(host.Config{Store: s.Store, Kernel: told{g.kernel, ended}, Now: r.cfg.Now, NewID: r.cfg.NewID})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return g, nil
}

// alone has one conversation measured on a rig of its own, whose model says what say does.
func (r *runner) alone(ctx context.Context, say func() string, measure func(t *talker) error) (err error) {
	g, err := r.rig(ctx, r.cfg.Model(say), 0, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close(ctx)) }()
	t, err := g.talker(ctx, "default")
	if err != nil {
		return err
	}
	return measure(t)
}

// told is a kernel that tells of every turn at its end.
type told struct {
	host.Runner
	ended func(*store.Work, error)
}

func (t told) Run(ctx context.Context, w *store.Work) error {
	err := t.Runner.Run(ctx, w)
	if t.ended != nil {
		t.ended(w, err)
	}
	return err
}

// close ends the host and removes the site.
func (g *rig) close(ctx context.Context) error {
	return errors.Join(g.host.Close(context.WithoutCancel(ctx)), g.Close())
}

// talker is one conversation.
type talker struct {
	g     *rig
	agent memgpt.Agent
	th    memgpt.Thread
}

func (g *rig) talker(ctx context.Context, name string) (*talker, error) {
	agent, err := g.host.Agent(ctx, "", name, host.AgentTemplate{})
	if err != nil {
		return nil, err
	}
	th, err := g.host.Thread(ctx, agent, host.MainThread)
	return &talker{g, agent, th}, err
}

// step sends a message, waits for the end of its turn and returns what was said.
func (t *talker) step(ctx context.Context, text string) (string, error) {
	turn, err := t.send(ctx, text)
	if err != nil {
		return "", err
	}
	record, err := turn.Wait(ctx)
	if err != nil {
		return "", err
	}
	said := turn.Said()
	if record.State != memgpt.TurnDone || len(said) == 0 {
		return "", fmt.Errorf("the turn ended as %s (%s) and said %q: %s", record.State, record.Stop, said, record.Error)
	}
	return said[0], nil
}

func (t *talker) send(ctx context.Context, text string) (*host.Turn, error) {
	return t.g.host.Send(ctx, host.Message{Agent: t.agent.ID, Thread: t.th.ID,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
}

// median returns the middle of some durations in milliseconds. It sorts them.
func median(list []time.Duration) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return float64(list[len(list)/2]) / float64(time.Millisecond)
}
