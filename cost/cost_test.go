package cost

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// prices is a table of our own, so that sums can be checked by hand: pico-dollars a token are dollars a million times a million.
const prices = `{"date": "2026-01-02", "source": "by hand", "prices": [
	{"provider": "p", "model": "m", "input": 3, "cached": 0.3, "written": 3.75, "output": 15},
	{"provider": "p", "model": "m", "over": 1000, "input": 6, "output": 22.5},
	{"provider": "p", "model": "plain", "input": 0.000001, "output": 0.5},
	{"provider": "p", "model": "big-*", "input": 1, "output": 1},
	{"provider": "p", "model": "big-one-*", "input": 2, "output": 2},
	{"provider": "p", "model": "big-one-2026-01-02", "input": 4, "output": 4},
	{"provider": "*", "model": "m", "input": 9, "output": 9},
	{"model": "everywhere", "input": 7, "output": 7}]}`

func tableOf(t *testing.T, base *Table, files ...string) *Table {
	t.Helper()
	for _, f := range files {
		var err error
		if base, err = base.With([]byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func TestNano(t *testing.T) {
	table := tableOf(t, new(Table), prices)
	for _, c := range []struct {
		model string
		usage memgpt.Usage
		want  int64 // nano-dollars
	}{
		{"m", memgpt.Usage{}, 0},
		{"m", memgpt.Usage{Input: 1}, 3_000},
		{"m", memgpt.Usage{Input: 1000, Output: 100}, 3_000_000 + 1_500_000},
		{"m", memgpt.Usage{Input: 1000, Cached: 600, Output: 100}, 400*3_000 + 600*300 + 1_500_000}, // cached ones are not paid twice
		{"m", memgpt.Usage{Input: 1000, Cached: 600, Written: 300}, 100*3_000 + 600*300 + 300*3_750},
		{"m", memgpt.Usage{Input: 1000, Output: 100, Reasoning: 90}, 4_500_000},               // reasoning is part of the output
		{"m", memgpt.Usage{Input: 1001}, 1001 * 6_000},                                        // a long request is dearer as a whole
		{"m", memgpt.Usage{Input: 1001, Cached: 1000, Output: 2}, 1001*6_000 + 2*22_500},      // no price of cached tokens: they are paid in full
		{"m", memgpt.Usage{Input: 10, Cached: 30, Written: 30}, 10 * 300},                     // nonsense is bounded by the input
		{"m", memgpt.Usage{Input: -5, Cached: -1, Written: -1, Output: -7}, 0},                //
		{"plain", memgpt.Usage{Input: 1}, 1},                                                  // a thousandth of a nano-dollar, rounded up
		{"plain", memgpt.Usage{Input: 1000}, 1},                                               //
		{"plain", memgpt.Usage{Input: 1001}, 2},                                               //
		{"m", memgpt.Usage{Input: math.MaxInt, Output: math.MaxInt}, math.MaxInt64},           // no overflow
		{"plain", memgpt.Usage{Input: 1_000_000_000_000, Output: 0}, 1_000_000_000_000 / 1e3}, //
	} {
		p, ok := table.Price("p", c.model, c.usage.Input)
		if got := p.Nano(c.usage); !ok || got != c.want {
			t.Errorf("%s, %+v: %d nano-dollars, want %d", c.model, c.usage, got, c.want)
		}
	}
}

func TestPriceIsFound(t *testing.T) {
	table := tableOf(t, new(Table), prices)
	for _, c := range []struct {
		provider, model string
		input           int64 // dollars a million; -1 unknown
	}{
		{"p", "m", 3}, {"p", " M ", 3}, {"p", "models/m", 3}, {"p", "m-2026-01-02", 3}, {"p", "m-20260102", 3}, {"p", "m-mini", -1}, {"p", "mm", -1},
		{"q", "m", 9}, {"", "m", 9}, {"q", "plain", -1}, {"q", "everywhere", 7}, {"p", "everywhere", 7}, {"p", "", -1},
		{"p", "big-x", 1}, {"p", "big-one-x", 2}, {"p", "big-one-2026-01-02", 4}, {"p", "big-one-2026-01-03", 2},
		{ProviderLocal, "m", 9}, {ProviderLocal, "any", 0}, {ProviderLocal, "", 0},
	} {
		p, ok := table.Price(c.provider, c.model, 10)
		if ok != (c.input >= 0) || ok && p.Input != c.input*1_000_000 {
			t.Errorf("%q at %q: %+v, %v, want %d", c.model, c.provider, p, ok, c.input)
		}
	}
	table = tableOf(t, table, `{"prices": [{"provider": "p", "model": "m", "input": 30, "output": 30, "source": "a contract"}, {"model": "mine*", "input": 8, "output": 8}]}`)
	for model, want := range map[string]int64{"m": 30_000_000, "mine-7": 8_000_000, "everywhere": 7_000_000} {
		if p, ok := table.Price("p", model, 1); !ok || p.Input != want {
			t.Errorf("%s with a file of one's own: %+v, %v", model, p, ok)
		}
	}
}

func TestBadFiles(t *testing.T) {
	row := func(s string) string { return `{"prices": [{"model": "m", "input": 1, "output": 1}, ` + s + `]}` }
	for file, want := range map[string]string{
		``: "EOF", `[]`: "array", `{}`: "no prices", `{"prices": []}`: "no prices", row(`{"model": "x", "input": 1, "output": 1}`) + "x": "more after",
		row(`{"input": 1, "output": 1}`):                                  "price 2, of model \"\": it names no model",
		row(`{"model": "x", "input": 1}`):                                 "price 2, of model \"x\": it needs input and output",
		row(`{"model": "x", "input": -1, "output": 1}`):                   "no amount in dollars",
		row(`{"model": "x", "input": 1e-3, "output": 1}`):                 "no amount in dollars",
		row(`{"model": "x", "input": 0.0000001, "output": 1}`):            "6 digits",
		row(`{"model": "x", "input": 1, "output": 99999999}`):             "can't be meant",
		row(`{"model": "x", "input": 1, "output": 99999999999999999999}`): "too many",
		row(`{"model": "x", "input": 1, "output": 1, "over": -1}`):        "over is",
		row(`{"model": "x", "input": 1, "output": 1, "cache": 0.1}`):      "unknown field",
		row(`{"model": "x", "input": "one", "output": 1}`):                "invalid",
	} {
		if _, err := new(Table).With([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", file, err, want)
		}
	}
}

// TestBuiltin holds the table that comes with the program to what it says of itself.
func TestBuiltin(t *testing.T) {
	table, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[2]string]int{}
	for _, r := range table.rows {
		p, ok := table.Price(r.Provider, r.Model, r.Over+1)
		if !ok || p != r.price || p.Date == "" || p.Source == "" || r.Provider == "" || r.Provider == "*" {
			t.Errorf("%+v: found is %+v", r, p)
		}
		if p.Cached > p.Input || p.Written < p.Input || p.Written > 2*p.Input || p.Output < p.Input {
			t.Errorf("%s at %s: %+v is not how prices are made", r.Model, r.Provider, p)
		}
		if before, twice := seen[[2]string{r.Provider, r.Model}]; twice && before >= r.Over {
			t.Errorf("%s at %s: rows over %d and %d", r.Model, r.Provider, before, r.Over)
		}
		seen[[2]string{r.Provider, r.Model}] = r.Over
	}
	if n := len(seen); n < 60 || n > 120 {
		t.Errorf("%d models", n)
	}
	if p, ok := table.Price("openai", "gpt-4o-mini-2024-07-18", 1); !ok || p.Nano(memgpt.Usage{Input: 1_000_000, Output: 1_000_000}) != 750_000_000 {
		t.Errorf("gpt-4o-mini: %+v, %v: 15 and 60 cents a million by its makers", p, ok)
	}
}

func TestParseDollars(t *testing.T) {
	for text, want := range map[string]int64{"2.50": 2_500_000_000, "$0.000000001": 1, " 7 ": 7_000_000_000, ".5": 500_000_000, "0": 0, "9223372036": 9_223_372_036_000_000_000} {
		if got, err := ParseDollars(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "$", "-1", "1,5", "1.0000000001", "9223372037", "1e3", "٣", "1 2"} {
		if got, err := ParseDollars(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// account is a memgpt.Meter that keeps what it is told.
type account struct {
	refuse error
	asked  []int64
	models []string
	usages []memgpt.Usage
}

func (a *account) Afford(_ context.Context, price func(memgpt.Usage) (int64, bool)) error {
	nano, known := price(memgpt.Usage{Input: 100})
	if !known {
		nano = -1
	}
	a.asked = append(a.asked, nano)
	return a.refuse
}

func (a *account) Spent(model string, u memgpt.Usage) {
	a.models, a.usages = append(a.models, model), append(a.usages, u)
}

// answering is a model that answers the same again and again.
type answering struct {
	memgpt.Model
	reply *memgpt.Response
	err   error
	calls int
}

func (m *answering) Generate(context.Context, *memgpt.Request, func(memgpt.Delta)) (*memgpt.Response, error) {
	m.calls++
	return m.reply, m.err
}

func (m *answering) Capabilities() memgpt.Capabilities { return memgpt.Capabilities{Name: "m"} }

func TestMeter(t *testing.T) {
	table := tableOf(t, new(Table), prices)
	used := memgpt.Usage{Input: 100, Output: 10}
	own := used
	own.Priced, own.Nano = 1, 77
	for _, c := range []struct {
		name, provider, request, answered string
		usage                             memgpt.Usage
		asked, nano                       int64 // -1 is unknown
	}{
		{"its own name", "p", "", "", used, 300_000, 450_000},
		{"the name of the request", "p", "big-x", "", used, 100_000, 110_000},
		{"the name that answered", "p", "m", "big-one-7", used, 300_000, 220_000},
		{"an answer under an unknown name", "p", "m", "alias", used, 300_000, 450_000},
		{"unknown", "p", "none", "none", used, -1, -1},
		{"unknown before it answers", "p", "none", "m", used, -1, 450_000},
		{"no usage was told", "p", "m", "m", memgpt.Usage{}, 300_000, -1},
		{"local", ProviderLocal, "x", "/models/x.gguf", used, 0, 0},
		{"local without usage", ProviderLocal, "x", "", memgpt.Usage{}, 0, 0},
		{"a provider that will tell", tellsItself, "none", "none", own, 0, 77},
		{"a provider that did not tell", tellsItself, "none", "none", used, 0, -1},
		{"the provider told the cost", "p", "m", "m", own, 300_000, 77},
	} {
		inner := &answering{reply: &memgpt.Response{Model: c.answered, Usage: c.usage}}
		a := new(account)
		resp, err := Meter(inner, table, c.provider).Generate(t.Context(), &memgpt.Request{Model: c.request, Meter: a}, nil)
		if err != nil || len(a.asked) != 1 || a.asked[0] != c.asked || len(a.usages) != 1 || a.usages[0] != resp.Usage || resp.Usage.Calls != 1 {
			t.Errorf("%s: %+v, %v, %+v", c.name, resp, err, a)
			continue
		}
		if known := resp.Usage.Priced == 1; known != (c.nano >= 0) || known && resp.Usage.Nano != c.nano {
			t.Errorf("%s: %+v, want %d", c.name, resp.Usage, c.nano)
		}
		if inner.reply.Usage != c.usage {
			t.Errorf("%s: the model's own reply was changed", c.name)
		}
	}
}

// TestMeterSeesFailures: what a failed call used is told, and a call that is refused is not made.
func TestMeterSeesFailures(t *testing.T) {
	table := tableOf(t, new(Table), prices)
	failed := memgpt.Errorf(memgpt.CodeModelEmpty, "nothing")
	inner := &answering{reply: &memgpt.Response{Usage: memgpt.Usage{Input: 100}}, err: failed}
	a := new(account)
	m := Meter(inner, table, "p")
	resp, err := m.Generate(t.Context(), &memgpt.Request{Meter: a}, nil)
	if !errors.Is(err, failed) || resp == nil || len(a.usages) != 1 || a.usages[0].Nano != 300_000 || a.models[0] != "m" {
		t.Errorf("%+v, %v, %+v", resp, err, a)
	}
	inner.reply = nil
	if resp, err = m.Generate(t.Context(), &memgpt.Request{Meter: a}, nil); resp != nil || !errors.Is(err, failed) || len(a.usages) != 1 {
		t.Errorf("without a reply: %+v, %v, %+v", resp, err, a)
	}
	inner.calls, a.refuse = 0, memgpt.Errorf(memgpt.CodeBudget, "spent")
	if _, err = m.Generate(t.Context(), &memgpt.Request{Meter: a}, nil); memgpt.CodeOf(err) != memgpt.CodeBudget || inner.calls != 0 || len(a.usages) != 1 {
		t.Errorf("refused: %v, %d calls, %+v", err, inner.calls, a)
	}
	s := Meter(script.Of(script.Text("x").Using(memgpt.Usage{Input: 1})), table, ProviderLocal)
	if resp, err = s.Generate(t.Context(), &memgpt.Request{Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hi")}}, nil); err != nil || resp.Usage.Priced != 1 {
		t.Errorf("without a meter: %+v, %v", resp, err)
	}
}
