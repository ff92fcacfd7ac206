package main

import (
	"context"
	"strings"
	"sync"

	"memgpt/model/offline"
	"memgpt/model/openai"
)

// listModels asks all endpoints side by side. Its order is that of the providers, and of their lists.
func (a *app) listModels(ctx context.Context) []modelLine {
	ctx, cancel := context.WithTimeout(ctx, modelsAsk)
	defer cancel()
	var all []provider
	for _, p := range providers() {
		if a.configured(p) {
			all = append(all, p)
		}
	}
	found := make([][]modelLine, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { found[i] = a.modelsOf(ctx, p) })
	}
	var current target
	var wrong error
	name := a.currentModel(ctx)
	if _, offline, _ := offline.Parse(name); !offline {
		wg.Go(func() { current, wrong = resolve(ctx, a.getenv, name) })
	}
	wg.Wait()
	if wrong != nil {
		a.say("none of them would answer now: %v", wrong)
		current = target{}
	}
	listed := current.model == "" || current.provider == offlineProvider
	var lines []modelLine
	for _, own := range found {
		for _, l := range own {
			l.Current = l.Model == current.model && l.At == current.place() && l.Model != ""
			listed = listed || l.Current
			lines = append(lines, l)
		}
	}
	if !listed {
		lines = append(lines, a.unlistedLine(ctx, &current))
	}
	return append(lines, a.offlineLine(ctx, current))
}

// unlistedLine is the model that would answer where its server doesn't list it: it was named.
func (a *app) unlistedLine(ctx context.Context, t *target) modelLine {
	l := modelLine{Name: t.model, Provider: t.provider, Model: t.model, At: t.place(), State: modelUnlisted, Current: true,
		Why: "its server doesn't list it"}
	if l.Provider == "" {
		l.Provider = openaiProvider
	}
	l.Name = l.Provider + ":" + t.model
	a.completeLine(ctx, t, &l, false)
	return l
}

// currentModel is the name of the model that would answer for the command's agent.
func (a *app) currentModel(ctx context.Context) string {
	if a.store == nil {
		return a.cfg.Model
	}
	agent, err := a.store.AgentNamed(ctx, "", a.agentName)
	if err != nil {
		return a.cfg.Model
	}
	return a.modelOf(agent)
}

// offlineLine is the stand-in, which can always be reached.
func (a *app) offlineLine(ctx context.Context, current target) modelLine {
	l := modelLine{Name: offlineProvider, Provider: offlineProvider, Model: offlineProvider, Calls: "native", State: modelReady,
		Why: "a rule-based stand-in, not a language model", Can: []string{}, Price: &priceLine{}}
	if m, err := offline.New(offline.Config{}); err == nil {
		l.Can = can(m.Capabilities())
	}
	_, asked, _ := offline.Parse(a.currentModel(ctx))
	l.Current = asked || current.provider == offlineProvider
	return l
}

// configured reports whether a provider is worth a question: its key or its address is set, or it may run on this machine
// at a port at which servers are looked for.
func (a *app) configured(p provider) bool {
	if p.key(a.getenv) != "" || a.getenv(p.base) != "" {
		return true
	}
	return p.local && a.searched(p)
}

// searched reports whether a server is looked for unasked.
func (a *app) searched(p provider) bool {
	prof, ok := openai.ProfileOf(p.name)
	if !ok || a.getenv(p.base) != "" {
		return false
	}
	for _, place := range openai.LocalPlaces() {
		if strings.HasSuffix(strings.TrimSuffix(place.BaseURL, "/v1"), prof.Hosts[0]) {
			return true
		}
	}
	return false
}

// modelsOf lists the models of one provider. A server that is only looked for and isn't there gives none.
func (a *app) modelsOf(ctx context.Context, p provider) []modelLine {
	t := target{provider: p.name}
	t.base, t.key = p.address(a.getenv)
	if p.local && a.searched(p) { // not at OPENAI_BASE_URL, which is listed as such
		t.base, t.key = (&provider{name: p.name, local: true}).address(func(string) string { return "" })
	}
	if p.name == openaiProvider && a.getenv(p.base) != "" {
		t.provider = ""
	}
	line := modelLine{Provider: p.name, At: t.place(), State: modelUnlisted, Can: []string{}}
	if p.name == azureProvider {
		line.Why = "deployments are not listed; write azure:DEPLOYMENT"
		if t.base == "" {
			line.State, line.Why = modelUnreachable, "set "+p.base
		}
		return []modelLine{line}
	}
	w, c, err := newWire(a.models, &t)
	if err != nil {
		line.State, line.Why = modelUnreachable, p.base+": "+err.Error()
		return []modelLine{line}
	}
	defer func() { _ = c.Close() }()
	line.At = w.place(&t)
	asking, cancel := ctx, context.CancelFunc(func() {})
	if a.searched(p) {
		asking, cancel = context.WithTimeout(ctx, 2*openai.DefaultProbe)
	}
	listed, err := w.list(asking)
	cancel()
	switch {
	case err != nil && a.searched(p):
		return nil
	case err != nil:
		line.State, line.Why = modelUnreachable, err.Error()
		return []modelLine{line}
	case len(listed) == 0:
		line.Why = "it has no model that chats"
		return []modelLine{line}
	}
	return a.modelLines(ctx, &t, line, listed)
}

// listedModel is a model of a list, of any protocol.
type listedModel struct {
	name   string
	window int
}

// list asks the server of a protocol for its models.
func (w *wire) list(ctx context.Context) (models []listedModel, err error) {
	switch {
	case w.anthropic != nil:
		list, err := w.anthropic.List(ctx)
		for _, l := range list {
			models = append(models, listedModel{l.Name, l.Window})
		}
		return models, err
	case w.ollama != nil:
		names, err := w.ollama.List(ctx)
		for _, name := range names {
			models = append(models, listedModel{name, 0})
		}
		return models, err
	}
	list, err := w.openai.List(ctx)
	for _, l := range list {
		models = append(models, listedModel{l.Name, l.Window})
	}
	return models, err
}

// modelsMet is how many models of an own server are asked about one by one.
const modelsMet = 32

// modelLines completes the lines of one provider's models.
func (a *app) modelLines(ctx context.Context, t *target, line modelLine, listed []listedModel) []modelLine {
	lines := make([]modelLine, len(listed))
	var wg sync.WaitGroup
	for i, m := range listed {
		one := *t
		one.model, one.window = m.name, m.window
		l := line
		l.State, l.Model, l.Name = modelReady, m.name, line.Provider+":"+m.name
		lines[i] = l
		wg.Go(func() { a.completeLine(ctx, &one, &lines[i], i < modelsMet) })
	}
	wg.Wait()
	return lines
}

// completeLine tells what is known of a model, and what its own server tells where ask is set.
func (a *app) completeLine(ctx context.Context, t *target, l *modelLine, ask bool) {
	w, c, err := newWire(a.models, t)
	if err != nil {
		l.State, l.Why = modelUnreachable, err.Error()
		return
	}
	defer func() { _ = c.Close() }()
	own := &verdicts{records: a.models.records, tenant: "", place: l.At, say: a.say, known: map[string]string{}}
	verdict, _ := own.Get(w.Capabilities().Name)
	if ask && (w.ollama != nil || w.near()) {
		seen := &verdicts{place: l.At, say: a.say, known: map[string]string{w.Capabilities().Name: verdict}} // stores nothing
		if note := w.meet(ctx, seen); note != "" {
			l.Why = note
		}
		verdict, _ = seen.Get(w.Capabilities().Name)
	}
	known := w.Capabilities()
	l.Window, l.Can, l.Price = known.Window, can(known), a.models.priceOf(t)
	l.Calls, l.Reason, _ = strings.Cut(verdict, ": ")
}

// place is that of a target as its client completes the address.
func (w *wire) place(t *target) string {
	if w.openai != nil {
		done := *t
		done.base = w.openai.BaseURL()
		return done.place()
	}
	return t.place()
}
