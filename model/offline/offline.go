// Package offline is a rule-based stand-in for a language model. It follows the whole protocol of an agent that pages its
// own memory, in English and Chinese, purely from the compiled prompt: it keeps what the user states about himself,
// answers the pressure alert, searches, pages on, searches again in other words, and quotes what it finds. It is a demo, a
// test double and a floor for evaluation, and says so in its Capabilities; it understands nothing.
//
// It owns its rules and word lists. It keeps no state between requests, reads no clock and draws no random numbers: equal
// requests get equal replies. It knows nothing of any benchmark, opens no connection and counts tokens only roughly.
package offline

import (
	"context"
	"fmt"

	"memgpt"
)

// Name is the name under which the stand-in appears.
const Name = "offline"

// Config makes the stand-in worse than it is, for experiments on who should look into memory, the model or the system.
// Each share is the probability, 0 to 1, of a slip in a turn; zero values slip never. Slips are drawn from Seed and the
// turn's own text, so that a run repeats.
type Config struct {
	ForgetSearch float64 // answers a question without searching
	BadQuery     float64 // searches for the least telling word of a question only
	ForgetSave   float64 // does not save what the user states
	StopPaging   float64 // looks at the first page of the first search only
	Seed         uint64
}

// Model implements memgpt.Model. It is safe for concurrent use.
type Model struct {
	cfg     Config
	grammar *grammar
}

// New returns a stand-in. It fails when a share is not within 0 and 1.
func New(cfg Config) (*Model, error) {
	for _, p := range []float64{cfg.ForgetSearch, cfg.BadQuery, cfg.ForgetSave, cfg.StopPaging} {
		if !(p >= 0 && p <= 1) {
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "make the offline model: the share %v is not within 0 and 1", p)
		}
	}
	g, err := newGrammar()
	if err != nil {
		return nil, fmt.Errorf("make the offline model: %w", err)
	}
	return &Model{cfg: cfg, grammar: g}, nil
}

// Capabilities implements memgpt.Model.
func (m *Model) Capabilities() memgpt.Capabilities {
	return memgpt.Capabilities{Name: m.cfg.String(), Tools: true, Parallel: true, StandIn: true}
}

// Generate implements memgpt.Model. Usage is an estimate by the rule of estimate. The only errors are the context's.
func (m *Model) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req == nil {
		req = &memgpt.Request{}
	}
	req.Restore()
	if req.Purpose == memgpt.PurposeSummary {
		return respond(req, act{text: m.foldRequest(req)}, stream), nil
	}
	return respond(req, m.step(readTurn(readScene(req))), stream), nil
}

// step decides, and adds what the next steps have to know.
func (m *Model) step(t *turn) act { return m.account(t, m.decide(t)) }

// slips tells whether the stand-in makes the slip of this kind in a turn.
func (m *Model) slips(kind string, share float64, t *turn) bool {
	if share <= 0 {
		return false
	}
	key := memgpt.HashKey(fmt.Sprint(m.cfg.Seed), kind, t.trigger.when, t.trigger.text)
	var n uint32
	if _, err := fmt.Sscanf(key[:8], "%x", &n); err != nil {
		return false
	}
	return float64(n)/(1<<32) < share
}
