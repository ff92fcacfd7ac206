// Package card finds out, in about two minutes and before the first chat, whether a model can run an agent. It asks the
// model a few small things in each of the ways in which it may be helped, and fills in a report card: what worked how
// often, what was asked and what came back, and in plain words what to make of it.
//
// It owns the checks, their bounds in time and the verdict. What the kernel does is checked through the kernel itself, on
// temporary stores that are handed in. It knows no wire protocol, and what a model says is looked at for a few words only.
package card

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"memgpt"
	"memgpt/model/prompted"
	"memgpt/store"
	"memgpt/token"
)

// Defaults of Config.
const (
	DefaultTime   = 2 * time.Minute
	DefaultWindow = 4096 // tokens: small, so that something leaves main context soon
)

// Bounds of one try and of one reply.
const (
	tryShare      = 4 // a try may take the whole time divided by this
	replyTokens   = 256
	thoughtTokens = 2048 // for models that think before they speak
)

// Config says which model is asked, and how.
type Config struct {
	// Model is the model itself, with nothing over it that changes how functions are called: the card does that.
	Model memgpt.Model
	// Steady and Whole are the same model with a temperature of 0, the first streaming, the second answering in one piece
	// also on the wire. Where both are set, their words are compared. Nil: Model is asked, and the shape is compared.
	Steady, Whole memgpt.Model
	// Count is the server's own count of a request's tokens; nil where it offers none.
	Count func(ctx context.Context, req *memgpt.Request) (int, error)
	// Open makes a new, empty store and returns how to dispose of it. It is called once.
	Open func(ctx context.Context) (s store.Store, dispose func() error, err error)
	// Time bounds the run; 0 is DefaultTime. What there was no time for is left open.
	Time time.Duration
	// Window is the context window of the agents in tokens; 0 is DefaultWindow, or the model's where that is smaller.
	Window int
	// All runs the checks with every help, where else helps are tried only if the model needs them.
	All bool
	// Progress is told before each try which one it is; nil is nobody.
	Progress func(check string, way Way, try int)
}

// Way is a way in which the model is asked.
type Way string

// Ways. The first three say how functions are called (see model/prompted), the last that the system looks memory up.
const (
	WayNative      Way = "native"
	WayPrompted    Way = "prompted"
	WayConstrained Way = "constrained"
	WayPrefetch    Way = "prefetch"
)

// Ways returns the ways in the order of the card's columns.
func Ways() []Way { return []Way{WayNative, WayPrompted, WayConstrained, WayPrefetch} }

// Card is what was found out.
type Card struct {
	Model   string `json:"model"`
	StandIn bool   `json:"stand_in,omitempty"` // not a language model but a rule-based stand-in
	Window  int    `json:"window"`             // of the agents that were asked, in tokens
	Lines   []Line `json:"lines"`

	Verdict Verdict `json:"verdict"`
	Says    string  `json:"says"` // the verdict in plain words
	// Raises says of each check that doesn't wholly work unaided which help raises its figure.
	Raises []Raise `json:"raises,omitempty"`
	// Notes are weaknesses that an agent can live with.
	Notes []string `json:"notes,omitempty"`
	// Settings are what to set, as "MEMGPT_CALLS=prompted" or "prefetch=on".
	Settings []string `json:"settings,omitempty"`
	Partial  bool     `json:"partial,omitempty"` // there was no time for all of it

	Seconds float64 `json:"seconds"`
	Tokens  int     `json:"tokens"` // of requests and replies, as reported, else by our count
}

// Line is one check.
type Line struct {
	Check   string   `json:"check"`
	About   string   `json:"about"`
	Figures []Figure `json:"figures"` // one a way in which it was run or left open
}

// Figure is how a check went in one way.
type Figure struct {
	Way    Way `json:"way"`
	With   Way `json:"with,omitempty"` // of WayPrefetch: how functions were called
	Passed int `json:"passed"`
	Tries  int `json:"tries"`
	// Open says why there were fewer tries than planned; "" where there were not.
	Open string `json:"open,omitempty"`
	// Asked, Came and Why are of the first try that failed, else of the first: what the model was asked, what came back, and
	// what was wrong with it.
	Asked string `json:"asked,omitempty"`
	Came  string `json:"came,omitempty"`
	Why   string `json:"why,omitempty"`

	Seconds float64 `json:"seconds"`
	Tokens  int     `json:"tokens"`
}

// full reports whether all tries passed, and there were any.
func (f *Figure) full() bool { return f.Tries > 0 && f.Passed == f.Tries }

// good reports whether the check works well enough to rely on: in two of three tries.
func (f *Figure) good() bool { return f.Tries > 0 && 3*f.Passed >= 2*f.Tries }

// share is the share of tries that passed.
func (f *Figure) share() float64 { return float64(f.Passed) / float64(max(f.Tries, 1)) }

// Figure returns how a check went in a way; nil where it wasn't run in it.
func (c *Card) Figure(check string, way Way) *Figure {
	for i := range c.Lines {
		for j := range c.Lines[i].Figures {
			if f := &c.Lines[i].Figures[j]; c.Lines[i].Check == check && f.Way == way {
				return f
			}
		}
	}
	return nil
}

// lab is what the tries of a run share.
type lab struct {
	cfg    Config
	end    time.Time
	count  *token.Counter
	store  store.Store
	agents int // made so far
	meter  *meter
	models map[Way]memgpt.Model
	counts map[Way]*token.Counter // of the kernels: each way has its own prompts, and so its own calibration
	checks []check
	card   *Card
}

// Run asks the model and fills in its card. It fails where a store does, where the context ends, and where the model can't
// be asked at all. The end of its time is no failure: then the card is partial.
func Run(ctx context.Context, cfg Config) (c *Card, err error) {
	start := time.Now()
	l, err := newLab(cfg, start)
	if err != nil {
		return nil, err
	}
	var dispose func() error
	if l.store, dispose, err = cfg.Open(ctx); err != nil {
		return nil, fmt.Errorf("test model %s: make a temporary store: %w", l.card.Model, err)
	}
	defer func() { err = errors.Join(err, dispose()) }()
	for round := range maxTries {
		if err := l.round(ctx, round); err != nil {
			return nil, fmt.Errorf("test model %s: %w", l.card.Model, err)
		}
	}
	l.card.judge()
	l.card.Seconds = seconds(time.Since(start))
	return l.card, nil
}

func newLab(cfg Config, start time.Time) (*lab, error) {
	if cfg.Model == nil || cfg.Open == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "test a model: it needs a model and a store")
	}
	if cfg.Time <= 0 {
		cfg.Time = DefaultTime
	}
	known := cfg.Model.Capabilities()
	if cfg.Window == 0 {
		cfg.Window = DefaultWindow
		if known.Window > 0 {
			cfg.Window = min(cfg.Window, known.Window)
		}
	}
	if cfg.Steady == nil || cfg.Whole == nil {
		cfg.Steady, cfg.Whole = nil, nil
	}
	count, err := token.New(token.Config{})
	if err != nil {
		return nil, err
	}
	l := &lab{cfg: cfg, end: start.Add(cfg.Time), count: count, checks: checks(),
		card: &Card{Model: known.Name, StandIn: known.StandIn, Window: cfg.Window}}
	l.meter = &meter{count: count, bound: replyTokens}
	native := l.metered(cfg.Model)
	l.models = map[Way]memgpt.Model{WayNative: native}
	for way, mode := range map[Way]prompted.Mode{WayPrompted: prompted.Prompted, WayConstrained: prompted.Constrained} {
		if l.models[way], err = prompted.New(prompted.Config{Model: native, Mode: mode}); err != nil {
			return nil, err
		}
	}
	l.counts = map[Way]*token.Counter{}
	for way := range l.models {
		if l.counts[way], err = token.New(token.Config{}); err != nil {
			return nil, err
		}
	}
	for _, c := range l.checks {
		l.card.Lines = append(l.card.Lines, Line{Check: c.name, About: c.about})
	}
	return l, nil
}

// round makes one try of each check: first unaided, then, where that isn't enough, with each help. So a card that ends
// early knows a little of everything.
func (l *lab) round(ctx context.Context, round int) error {
	for i := range l.checks {
		if err := l.attempt(ctx, i, WayNative, round); err != nil {
			return err
		}
	}
	if !l.wantsHelp() {
		return nil
	}
	for _, way := range []Way{WayPrompted, WayConstrained} {
		for i := range l.checks {
			if l.checks[i].calls {
				if err := l.attempt(ctx, i, way, round); err != nil {
					return err
				}
			}
		}
	}
	for i := range l.checks {
		if l.checks[i].looks {
			if err := l.attempt(ctx, i, WayPrefetch, round); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantsHelp reports whether the model needs help: something that an agent can't do without doesn't wholly work. Nothing
// helps a stand-in, which reads its own prompts alone.
func (l *lab) wantsHelp() bool {
	if l.card.StandIn {
		return false
	}
	for _, name := range essentials() {
		if f := l.card.Figure(name, WayNative); f == nil || !f.full() {
			return true
		}
	}
	return l.cfg.All
}

// attempt makes a check's next try in one way, if there is one in this round, and time for it.
func (l *lab) attempt(ctx context.Context, i int, way Way, round int) error {
	c := &l.checks[i]
	f := l.figure(i, way)
	if round >= c.tries || f.Tries >= c.tries || f.Open != "" {
		return nil
	}
	left := time.Until(l.end)
	if left <= 0 {
		l.leaveOpen(f, "no time")
		return nil
	}
	if l.cfg.Progress != nil {
		l.cfg.Progress(c.name, way, f.Tries+1)
	}
	bound := l.cfg.Time / tryShare
	bounded, cancel := context.WithTimeout(ctx, min(left, bound))
	defer cancel()
	l.meter.reset()
	start := time.Now()
	b := &bench{lab: l, way: way, calls: f.calls(), model: l.models[f.calls()], try: f.Tries}
	got, err := c.run(bounded, b)
	f.Seconds += seconds(time.Since(start))
	used := l.meter.used()
	f.Tokens += used
	l.card.Tokens += used
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil && left <= bound:
		l.leaveOpen(f, "no time")
		return nil
	case bounded.Err() != nil:
		l.leaveOpen(f, fmt.Sprintf("a try took over %.0f s", bound.Seconds()))
		return nil
	case err != nil && (memgpt.CodeOf(err) == "" || i == 0 && f.Tries == 0 && unreachable(err)):
		return err
	}
	f.add(got, err)
	return nil
}

// figure returns the figure of a check in a way, made if there is none.
func (l *lab) figure(i int, way Way) *Figure {
	line := &l.card.Lines[i]
	if f := l.card.Figure(line.Check, way); f != nil {
		return f
	}
	f := Figure{Way: way}
	if way == WayPrefetch {
		f.With = l.card.bestCalls()
	}
	line.Figures = append(line.Figures, f)
	return &line.Figures[len(line.Figures)-1]
}

func (l *lab) leaveOpen(f *Figure, why string) { f.Open, l.card.Partial = why, true }

// calls is how functions are called for a figure.
func (f *Figure) calls() Way {
	if f.Way == WayPrefetch {
		return f.With
	}
	return f.Way
}

// unreachable reports whether a failure means that no other try would fare better.
func unreachable(err error) bool {
	switch memgpt.CodeOf(err) {
	case memgpt.CodeModelAuth, memgpt.CodeModelQuota, memgpt.CodeModelDown, memgpt.CodeInvalid:
		return true
	}
	return false
}

// result is how one try went.
type result struct {
	asked, came, why string
	passed           bool
}

// add counts a try. A model that failed has failed the try.
func (f *Figure) add(r result, err error) {
	if err != nil {
		r.passed, r.why = false, err.Error()
	}
	first := f.Tries == 0
	f.Tries++
	if r.passed {
		f.Passed++
		r.why = ""
	}
	if first || !r.passed && f.Why == "" {
		f.Asked, f.Came, f.Why = shown(r.asked), shown(r.came), shown(r.why)
	}
}

// shownBytes bounds what is kept of a text.
const shownBytes = 300

// shown is a text on one line, cut.
func shown(s string) string {
	s = strings.Join(strings.Fields(memgpt.CleanText(s)), " ")
	if cut := memgpt.CutText(s, shownBytes); cut != s {
		return cut + "…"
	}
	return s
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Millisecond)) / float64(time.Second)
}

// meter measures what the model is asked and answers, and bounds its replies.
type meter struct {
	count *token.Counter

	mu     sync.Mutex
	bound  int // tokens of a reply
	tokens int
	came   []string
}

func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens, m.came = 0, nil
}

func (m *meter) replyBound() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bound
}

func (m *meter) used() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tokens
}

// replies returns the replies since reset, as the model wrote them.
func (m *meter) replies() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.came, " ⏎ ")
}

// note adds a reply up. A model that thinks gets longer replies, since else it may never come to its words.
func (m *meter) note(req *memgpt.Request, resp *memgpt.Response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := resp.Usage
	if u.Input == 0 {
		u.Input = requestSize(m.count, req)
	}
	if u.Output == 0 {
		u.Output = m.count.Message(&resp.Message)
	}
	m.tokens += u.Input + u.Output
	m.came = append(m.came, written(resp))
	if resp.Message.Thoughts() != "" || u.Reasoning > 0 {
		m.bound = thoughtTokens
	}
}

// metered is a model with its meter.
type metered struct {
	inner memgpt.Model
	meter *meter
}

func (l *lab) metered(m memgpt.Model) memgpt.Model { return &metered{m, l.meter} }

// Capabilities implements memgpt.Model.
func (m *metered) Capabilities() memgpt.Capabilities { return m.inner.Capabilities() }

// Generate implements memgpt.Model. A thinking model that used up the bound before its first word is asked once more, with
// the longer one.
func (m *metered) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	req.Restore()
	bound := m.meter.replyBound()
	resp, err := m.bounded(ctx, req, bound, stream)
	if wider := m.meter.replyBound(); stream == nil && wider > bound && resp != nil && resp.Finish == memgpt.FinishLength {
		return m.bounded(ctx, req, wider, nil)
	}
	return resp, err
}

func (m *metered) bounded(ctx context.Context, req *memgpt.Request, bound int, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	c := *req
	c.Again = nil // the meter counts its messages afterwards
	if c.MaxTokens == 0 || c.MaxTokens > bound {
		c.MaxTokens = bound
	}
	resp, err := m.inner.Generate(ctx, &c, stream)
	if resp != nil {
		m.meter.note(&c, resp)
	}
	return resp, err
}

// requestSize counts a request by our encoding.
func requestSize(count *token.Counter, req *memgpt.Request) int {
	n := count.Tools(req.Tools) + 3 // three open the reply, as OpenAI's cookbook counts
	for i := range req.Messages {
		n += count.Message(&req.Messages[i])
	}
	return n
}

// written is a reply as it came: its text, and its calls.
func written(resp *memgpt.Response) string {
	var words []string
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			words = append(words, p.Text)
		case memgpt.Call:
			words = append(words, p.Name+"("+p.Arguments+")")
		}
	}
	if strings.TrimSpace(strings.Join(words, "")) == "" {
		words = []string{"(nothing)"}
	}
	if resp.Finish == memgpt.FinishLength {
		words = append(words, "(cut off at its length)")
	}
	return strings.Join(words, " ")
}
