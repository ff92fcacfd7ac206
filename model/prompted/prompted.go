// Package prompted is a memgpt.Model over another one that lets models without native calls call functions. It describes
// the functions in the prompt, writes earlier calls and results as text, and reads calls from the text of replies; where
// the model beneath can hold a reply to a JSON schema, it may ask for that. In mode Auto it finds out which way is needed.
//
// It owns how functions, calls and results look as text. How calls in a text are found is package schema's, what becomes
// of them the kernel's: names that don't exist and arguments that don't fit are passed on.
package prompted

import (
	"context"
	"crypto/rand"
	"sync"

	"memgpt"
)

// Mode is the way in which a model calls functions.
type Mode string

// Modes. The zero value is Auto.
const (
	// Auto tries native calls and takes another way where they don't work; see Verdicts.
	Auto Mode = ""
	// Native passes requests and replies on as they are.
	Native Mode = "native"
	// Prompted describes functions in the prompt and reads calls from text.
	Prompted Mode = "prompted"
	// Constrained is Prompted with replies held to a JSON schema (Request.Schema). Their text can't be streamed.
	Constrained Mode = "constrained"
)

// Verdicts remembers by a model's name how it calls functions: a Mode, perhaps with ": " and the reason behind it. It is
// safe for concurrent use. What it can't store it drops; then the model is tried again.
type Verdicts interface {
	Get(model string) (verdict string, ok bool)
	Put(model, verdict string)
}

// Config describes a model over another one.
type Config struct {
	Model    memgpt.Model
	Mode     Mode
	Verdicts Verdicts      // for mode Auto; nil keeps them in memory
	NewID    func() string // names the calls that are found in text, uniquely; nil draws random ones
}

// Model is a memgpt.Model that calls functions in one of the modes. It is safe for concurrent use if its parts are.
type Model struct {
	cfg Config

	mu    sync.Mutex
	known map[string]*functions // descriptions by what they describe
	plain map[string]int        // by model: replies in a row without the call that was due, while undecided
}

// New returns a model. It needs one beneath, and a mode that exists (CodeInvalid).
func New(cfg Config) (*Model, error) {
	switch cfg.Mode {
	case Auto, Native, Prompted, Constrained:
	default:
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "mode %q of calling functions: want native, prompted, constrained or nothing for auto",
			memgpt.CutText(string(cfg.Mode), 40))
	}
	if cfg.Model == nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "calling functions by prompt: no model is given")
	}
	if cfg.Verdicts == nil {
		cfg.Verdicts = &inMemory{verdicts: map[string]string{}}
	}
	if cfg.NewID == nil {
		cfg.NewID = func() string { return "call_" + rand.Text()[:24] }
	}
	return &Model{cfg: cfg, known: map[string]*functions{}, plain: map[string]int{}}, nil
}

// Capabilities implements memgpt.Model: those of the model beneath, and calls. That a call can be forced is said only where
// it is sure.
func (m *Model) Capabilities() memgpt.Capabilities {
	c := m.cfg.Model.Capabilities()
	if m.cfg.Mode != Native {
		c.Tools, c.Parallel, c.Forced = true, true, m.cfg.Mode == Constrained && c.Schema
	}
	return c
}

// Generate implements memgpt.Model. A reply that was cut off before a call had arguments is CodeModelCut; with it and
// with CodeModelEmpty the response is returned beside the error, for its usage.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.cfg.Mode == Auto {
		return m.auto(ctx, req, stream)
	}
	resp, _, err := m.as(ctx, m.cfg.Mode, req, stream)
	return resp, err
}

// as asks in one mode, and tells how the reply called functions.
func (m *Model) as(ctx context.Context, mode Mode, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, manner, error) {
	if mode == Native {
		resp, err := m.cfg.Model.Generate(ctx, req, stream)
		return resp, mannerOf(resp), err
	}
	f := m.functions(req)
	inner := rewritten(req, f, mode)
	resp, how, err := m.read(ctx, inner, f, stream)
	if resp != nil {
		resp.Prompted = f != nil
	}
	return resp, how, err
}

// functions returns the functions that a request offers, described; nil where it offers none.
func (m *Model) functions(req *memgpt.Request) *functions {
	if len(req.Tools) == 0 || req.Choice == memgpt.ChoiceNone {
		return nil
	}
	parts := make([]string, 0, 3*len(req.Tools))
	for _, t := range req.Tools {
		parts = append(parts, t.Name, t.Description, string(t.Parameters))
	}
	key := memgpt.HashKey(parts...)
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.known[key]; f != nil {
		return f
	}
	const most = 32 // sets of functions differ by form and protocol; who makes up a new one a call must not fill memory
	if len(m.known) >= most {
		clear(m.known)
	}
	f := describe(req.Tools)
	m.known[key] = f
	return f
}

type inMemory struct {
	mu       sync.Mutex
	verdicts map[string]string
}

func (v *inMemory) Get(model string) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	verdict, ok := v.verdicts[model]
	return verdict, ok
}

func (v *inMemory) Put(model, verdict string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.verdicts[model] = verdict
}
