package cost

import (
	"context"

	"memgpt"
)

// Model is a memgpt.Model that says what its calls cost. It stands right on a wire protocol, beneath whatever asks again
// or elsewhere, so that each call is seen with the provider that was paid for it.
type Model struct {
	inner    memgpt.Model
	table    *Table
	provider string
}

// Meter returns a model that reports what calls of m at a provider cost (ProviderLocal: nothing).
func Meter(m memgpt.Model, t *Table, provider string) *Model { return &Model{m, t, provider} }

// tellsItself is a provider that says what each call cost (OpenRouter, docs on usage accounting), so that a model of unknown
// price has a known cost once it has answered.
const tellsItself = "openrouter"

// Capabilities implements memgpt.Model.
func (m *Model) Capabilities() memgpt.Capabilities { return m.inner.Capabilities() }

// Generate implements memgpt.Model. It asks the request's Meter before the call, and tells it of each reply, failed ones
// too where the provider reported what they used, or where pieces had come: then without figures. A usage that has a cost already, as a provider told it, keeps that.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	meter, name := req.Meter, req.Model
	if name == "" {
		name = m.inner.Capabilities().Name
	}
	if meter != nil {
		if err := meter.Afford(ctx, func(u memgpt.Usage) (int64, bool) {
			nano, known := m.nano(u, name)
			return nano, known || m.provider == tellsItself
		}); err != nil {
			return nil, err
		}
	}
	began := false
	pass := stream
	if meter != nil && stream != nil {
		pass = func(d memgpt.Delta) { began = true; stream(d) }
	}
	resp, err := m.inner.Generate(ctx, req, pass)
	if resp == nil && began { // it broke off or was given up: providers bill what they read, and nobody says how much
		meter.Spent(name, memgpt.Usage{Calls: 1})
	}
	if resp == nil {
		return nil, err
	}
	own := *resp
	u := &own.Usage
	u.Calls = 1
	if u.Priced == 0 && (u.Input > 0 || u.Output > 0 || m.provider == ProviderLocal) {
		if nano, known := m.nano(*u, own.Model, name); known {
			u.Priced, u.Nano = 1, nano
		}
	}
	if meter != nil {
		answered := own.Model
		if answered == "" {
			answered = name
		}
		meter.Spent(answered, *u)
	}
	return &own, err
}

// nano prices a usage by the first of the names that has a price.
func (m *Model) nano(u memgpt.Usage, names ...string) (int64, bool) {
	p, ok := m.table.priceOf(m.provider, u.Input, names...)
	return p.Nano(u), ok
}
