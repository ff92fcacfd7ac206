package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"memgpt"
	"memgpt/config"
	"memgpt/cost"
	"memgpt/model/offline"
	"memgpt/model/prompted"
	"memgpt/model/retry"
	"memgpt/retrieve"
	"memgpt/token"
)

// modelSet opens models by name, each once, and closes them together. It is safe for concurrent use.
type modelSet struct {
	cfg     config.Config
	getenv  func(string) string
	say     func(format string, args ...any)
	records retrieve.Records // keeps verdicts; nil keeps them in memory
	count   *token.Counter
	prices  *cost.Table

	mu       sync.Mutex
	opened   map[modelKey]*openedModel
	breakers map[string]*retry.Breaker // by place
	closers  []io.Closer
}

type modelKey struct{ tenant, name string }

// openedModel is a model that is ready for an agent, or on the way to it.
type openedModel struct {
	mu    sync.Mutex
	model memgpt.Model // nil until it is open
	about string       // for people: who answers, and how it calls functions
	place string       // where the model is; "" for a stand-in
	meet  func(ctx context.Context) (note string)
	unmet time.Time // of the last look at a server that did not answer; zero where it did
}

// meetAgain is how long after it a server that did not answer is looked at again, before a turn.
const meetAgain = 10 * time.Second

// look asks a server once more for what it could not tell before: the window is that of the model only then.
func (o *openedModel) look(ctx context.Context) {
	if o.unmet.IsZero() || time.Since(o.unmet) < meetAgain {
		return
	}
	if o.unmet = time.Now(); o.meet(ctx) == "" {
		o.unmet = time.Time{}
	}
}

// newModels returns what opens the models of the settings.
func (a *app) newModels(records retrieve.Records) (*modelSet, error) {
	count, err := token.New(token.Config{})
	if err != nil {
		return nil, err
	}
	prices, err := a.prices()
	return &modelSet{cfg: a.cfg, getenv: a.getenv, say: a.say, records: records, count: count, prices: prices,
		opened: map[modelKey]*openedModel{}, breakers: map[string]*retry.Breaker{}}, err
}

// pickModel opens the model of the command's agent, if it has one of its own, else the one that the settings name or that
// is found, else the stand-in.
func (a *app) pickModel(ctx context.Context, agent memgpt.Agent) error {
	a.asked = a.modelOf(agent)
	o, err := a.models.open(ctx, agent.Tenant, a.asked)
	if err != nil {
		return err
	}
	a.model, a.about = o.model, o.about
	return a.models.countLike(o.model.Capabilities().Tokenizer)
}

// countLike has requests counted by a vocabulary, that of the model that is asked most.
func (s *modelSet) countLike(tokenizer string) error {
	encoding := token.EncodingOf(tokenizer)
	if encoding == token.O200k {
		return nil
	}
	count, err := token.New(token.Config{Encoding: encoding})
	if err == nil {
		s.count = count
	}
	return err
}

// modelOf names the model of an agent: what the flag says of the command's agent, else its own, else that of the settings.
func (a *app) modelOf(agent memgpt.Agent) string {
	if agent.Model == "" || a.modelFlag != "" && agent.Name == a.agentName {
		return a.cfg.Model
	}
	return agent.Model
}

// openFor is what the kernel opens models with. It has no context, so look-ups have bounds of their own.
func (a *app) openFor(agent memgpt.Agent) (memgpt.Model, error) {
	o, err := a.models.open(context.Background(), agent.Tenant, a.modelOf(agent))
	if err != nil {
		return nil, err
	}
	return o.model, nil
}

// openTidier opens the model that an agent's settings name for tidying. The flag is about who answers.
func (a *app) openTidier(agent memgpt.Agent) (memgpt.Model, error) {
	o, err := a.models.open(context.Background(), agent.Tenant, agent.Model)
	if err != nil {
		return nil, err
	}
	return o.model, nil
}

// open returns the model of a name. A failure is not kept.
func (s *modelSet) open(ctx context.Context, tenant, name string) (*openedModel, error) {
	s.mu.Lock()
	key := modelKey{tenant, name}
	o := s.opened[key]
	if o == nil {
		o = new(openedModel)
		s.opened[key] = o
	}
	s.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.model != nil {
		o.look(ctx)
		return o, nil
	}
	return o, s.fill(ctx, o, key)
}

// fill opens a model with all that stands around it: how it calls functions, retries, fallbacks.
func (s *modelSet) fill(ctx context.Context, o *openedModel, key modelKey) error {
	if slips, ok, err := offline.Parse(key.name); err != nil || ok {
		if err == nil {
			o.model, err = s.standIn(slips)
		}
		return err
	}
	t, err := resolve(ctx, s.getenv, key.name)
	if err != nil {
		return err
	}
	if t.provider == offlineProvider {
		if t.note != "" {
			s.say("%s", t.note)
		}
		o.model, err = s.standIn(offline.Config{})
		return err
	}
	first, err := s.calling(ctx, key.tenant, &t, o)
	if err != nil {
		return err
	}
	cfg := retry.Config{Model: first, Breaker: s.breaker(&t), Count: s.sizeOf(t.model), Retry: s.tellRetry, Fell: s.tellFell}
	for _, name := range s.cfg.Fallback {
		f, err := s.fallback(ctx, key.tenant, name)
		if err != nil {
			return fmt.Errorf("MEMGPT_FALLBACK: %w", err)
		}
		if f.Model.Capabilities().Name != t.model || f.Breaker != cfg.Breaker { // none stands in for itself
			cfg.Fallbacks = append(cfg.Fallbacks, f)
			o.about += ", then " + name
		}
	}
	m, err := retry.New(cfg)
	if err != nil {
		return err
	}
	o.model = ownName{m}
	return nil
}

// calling opens a target and lets it call functions in the way of the settings, or in that which it turns out to need. It
// fills in all of o but the model.
func (s *modelSet) calling(ctx context.Context, tenant string, t *target, o *openedModel) (memgpt.Model, error) {
	w, err := s.wired(t)
	if err != nil {
		return nil, err
	}
	own := &verdicts{records: s.records, tenant: tenant, place: w.place(t), say: s.say, known: map[string]string{}}
	o.meet = func(ctx context.Context) string { return w.meet(ctx, own) }
	if note := o.meet(ctx); note != "" {
		o.unmet = time.Now()
		if t.note == "" {
			t.note = note
		}
	}
	if t.note != "" {
		s.say("%s: %s", t.place(), t.note)
	}
	mode := prompted.Mode(s.cfg.Calls)
	o.about, o.place = t.place(), t.provider+" "+t.place()
	if verdict, ok := own.Get(w.Capabilities().Name); mode == prompted.Auto && ok && !strings.HasPrefix(verdict, string(prompted.Native)) {
		o.about += ", functions " + verdict
	} else if mode != prompted.Auto {
		o.about += ", functions " + string(mode)
	}
	return prompted.New(prompted.Config{Model: s.metered(w.counting(s.count), t), Mode: mode, Verdicts: own})
}

// fallback opens a model that stands in for others.
func (s *modelSet) fallback(ctx context.Context, tenant, name string) (retry.Fallback, error) {
	if _, ok, _ := offline.Parse(name); ok {
		return retry.Fallback{}, memgpt.Errorf(memgpt.CodeInvalid, "%q is a stand-in, which must not pass for a model that is down", name)
	}
	t, err := resolve(ctx, s.getenv, name)
	if err != nil {
		return retry.Fallback{}, err
	}
	m, err := s.calling(ctx, tenant, &t, new(openedModel))
	return retry.Fallback{Model: m, Breaker: s.breaker(&t)}, err
}

// breaker returns the one of a target's provider.
func (s *modelSet) breaker(t *target) *retry.Breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.breakers[t.place()]
	if b == nil {
		b = retry.NewBreaker(retry.BreakerConfig{Name: t.place()})
		s.breakers[t.place()] = b
	}
	return b
}

// sizeOf counts requests as the kernel does, with what was learned of the model.
func (s *modelSet) sizeOf(model string) func(*memgpt.Request) int {
	return func(req *memgpt.Request) int { return int(float64(counted(s.count, req)) * s.count.Factor(model)) }
}

func (s *modelSet) tellRetry(_ context.Context, err error, wait time.Duration) {
	s.say("%v; trying again in %s", err, wait.Round(100*time.Millisecond))
}

func (s *modelSet) tellFell(_ context.Context, from, to memgpt.Capabilities, err error) {
	s.say("%v; %s answers instead of %s", err, to.Name, from.Name)
}

// close closes all models.
func (s *modelSet) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// ownName is a model that goes by its own name. That of the request is the agent's, which has a provider before it.
type ownName struct{ memgpt.Model }

// Generate implements memgpt.Model.
func (m ownName) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	if req.Model == "" {
		return m.Model.Generate(ctx, req, stream)
	}
	own := *req
	own.Model = ""
	req.Release() // so that the copy alone holds the messages
	return m.Model.Generate(ctx, &own, stream)
}

// banner says which model answers. A stand-in is never presented as a language model.
func (a *app) banner() {
	known := a.model.Capabilities()
	if known.StandIn && a.asked != "" {
		a.say("memgpt: %s: not a language model but a rule-based stand-in, as it was asked for.", known.Name)
		return
	}
	if known.StandIn {
		a.say("memgpt: no language model is configured; a rule-based stand-in (%s) answers. Set OPENAI_BASE_URL,"+
			" OPENAI_API_KEY or another provider's key, or start a local server.", known.Name)
		return
	}
	window := "its window is not known"
	if n := a.cfg.Window; n > 0 {
		window = fmt.Sprintf("window %d tokens", n)
	} else if known.Window > 0 {
		window = fmt.Sprintf("window %d tokens", known.Window)
	}
	a.say("memgpt: %s at %s, %s", known.Name, a.about, window)
}
