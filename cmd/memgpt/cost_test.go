package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/cost"
	"memgpt/model/script"
	"memgpt/store"
)

// centServer answers each request for 2,000 tokens in and 100 out, and names a file of prices by which that costs a cent.
func centServer(t *testing.T) (s *script.Server, env []string) {
	s = script.NewServer(script.ServerConfig{Config: script.Config{Func: func(int, *memgpt.Request) script.Reply {
		return script.Say("ok").Using(memgpt.Usage{Input: 2000, Output: 100})
	}}})
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(file, []byte(`{"source": "a test", "prices": [{"model": "script", "input": 0, "output": 100}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, []string{"OPENAI_BASE_URL=" + srv.URL + "/v1", "OPENAI_API_KEY=k", "MEMGPT_MODEL=script", "MEMGPT_WINDOW=16384", "MEMGPT_EMBEDDER=none",
		"MEMGPT_PRICES=" + file}
}

func TestCostCommand(t *testing.T) {
	s, env := centServer(t)
	home := t.TempDir()
	if r := command(t, home, "", nil, "cost"); r.code != 0 || !strings.Contains(r.out, "7 days") {
		t.Errorf("nothing yet: %+v", r)
	}
	r := command(t, home, "", env, "run", "-m", "hello", "--cost")
	if r.code != 0 || !strings.Contains(r.err, "cost: $0.01 (1 call, 2000 tokens in, 0 of them cached, 100 out)") {
		t.Errorf("%+v", r)
	}
	if r := command(t, home, "", env, "run", "-m", "hello"); r.code != 0 || strings.Contains(r.err, "$") {
		t.Errorf("the cost is told unasked: %+v", r)
	}
	free := append(env[:len(env):len(env)], "MEMGPT_PRICES=")
	if r := command(t, home, "", free, "run", "-m", "hello", "--cost"); r.code != 0 || !strings.Contains(r.err, "cost: $0.00 (") {
		t.Errorf("a server on this machine: %+v", r)
	}
	if r := command(t, home, "", env, "run", "--agent", "other", "-m", "hello"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	type line struct {
		Day, Agent, Model    string
		Calls, Input, Output int
		Cost                 string
	}
	got := lines[line](t, command(t, home, "", nil, "cost", "--json").out)
	if len(got) != 2 || got[0].Agent != "default" || got[0].Calls != 3 || got[0].Input != 6000 || got[0].Output != 300 || got[0].Cost != "0.020000000" ||
		got[0].Model != "script" || got[1].Agent != "other" || got[1].Cost != "0.010000000" || got[0].Day == "" {
		t.Errorf("%+v", got)
	}
	if got := lines[line](t, good(t, home, "", "cost", "--json", "--agent", "other").out); len(got) != 1 || got[0].Agent != "other" {
		t.Errorf("of one agent: %+v", got)
	}
	if r := good(t, home, "", "cost"); !strings.Contains(r.out, "$0.03") {
		t.Errorf("no sum: %s", r.out)
	}
	for _, args := range [][]string{{"cost", "--days", "0"}, {"cost", "--agent", "nobody"}} {
		if r := command(t, home, "", nil, args...); r.code != 1 || r.err == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if n := len(s.Model.Requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

func TestBudgetsOfTheCommandLine(t *testing.T) {
	s, env := centServer(t)
	home := t.TempDir()
	run := func(agent, text string, more ...string) ran {
		return command(t, home, "", append(env[:len(env):len(env)], more...), "run", "--agent", agent, "-m", text)
	}
	if r := run("ada", "one"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	good(t, home, "", "agents", "set", "ada", "budget=$0.02/day", "budget_tokens_total=50_000")
	if r := run("ada", "two"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	r := run("ada", "three is refused")
	for _, want := range []string{"(budget)", "the budget of $0.02 a day of agent ada is spent: $0.02 used", "it frees at", "the message is kept", "agents set NAME budget="} {
		if r.code != 1 || r.out != "" || !strings.Contains(r.err, want) {
			t.Errorf("%+v, want %q", r, want)
		}
	}
	if n := len(s.Model.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	left := good(t, home, "", "cost").out
	for _, want := range []string{"budget of agent ada: $0.00 of $0.02 left a day, until ", "budget_tokens_total of agent ada: 45800 tokens of 50000 tokens left in all"} {
		if !strings.Contains(left, want) {
			t.Errorf("%s, want %q", left, want)
		}
	}
	good(t, home, "", "agents", "set", "ada", "budget=")
	if r := run("ada", "four"); r.code != 0 || !strings.Contains(string(s.Bodies()[2]), "three is refused") {
		t.Errorf("after it was raised: %+v", r)
	}
	if r := run("ben", "one", "MEMGPT_BUDGET=0.03"); r.code != 1 || !strings.Contains(r.err, "the budget of $0.03 a day of all agents together is spent") {
		t.Errorf("%+v", r)
	}
	if r := command(t, home, "", []string{"MEMGPT_BUDGET_TOKENS_TOTAL=10000"}, "cost"); !strings.Contains(r.out, "MEMGPT_BUDGET_TOKENS_TOTAL of all agents: 3700 tokens of 10000 tokens left in all") {
		t.Errorf("%+v", r)
	}
}

func TestBadBudgetsAndPrices(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"prices": [{"model": "m", "input": 1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for env, want := range map[string]string{"MEMGPT_BUDGET=much": `MEMGPT_BUDGET is "much": it takes an amount in dollars`, "MEMGPT_BUDGET_TOKENS=1.5": "whole number of tokens",
		"MEMGPT_BUDGET_TOTAL=0": "leave it empty for no bound", "MEMGPT_BUDGET_TOKENS_TOTAL=-1": "whole number",
		"MEMGPT_PRICES=" + bad: `price 1, of model "m": it needs input and output`, "MEMGPT_PRICES=" + bad + "x": "no such file"} {
		home := t.TempDir()
		if r := command(t, home, "", []string{env}, "run", "-m", "hi"); r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v, want %q", env, r, want)
		}
	}
}

func TestProviderAt(t *testing.T) {
	for base, want := range map[string]string{"": "", "http://127.0.0.1:11434/v1": cost.ProviderLocal, "http://localhost:8080/v1": cost.ProviderLocal,
		"http://[::1]:1/v1": cost.ProviderLocal, "https://api.openai.com/v1": "openai", "https://api.anthropic.com": "anthropic", "https://ollama.com": "ollama", "https://api.x.ai/v1": "xai", "https://API.together.xyz/v1": "together",
		"https://my.openai.azure.com/openai": "azure", "http://192.168.1.7:8000/v1": "", "https://evilapi.openai.com.example/v1": "", "https://notopenrouter.ai": "", "::": ""} {
		if got := providerAt(base); got != want {
			t.Errorf("%s: %q, want %q", base, got, want)
		}
	}
}

// TestProvidersAreMetered: a call's cost is that at the provider that a name leads to, and unknown at an address that
// nobody knows.
func TestProvidersAreMetered(t *testing.T) {
	table, err := cost.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	s := &modelSet{prices: table}
	for _, c := range []struct {
		target target
		want   string
	}{
		{target{provider: "openai", base: "https://api.openai.com/v1", model: "gpt-4o-mini"}, "$0.00075"},
		{target{provider: "openai", base: "https://gateway.example/v1", model: "gpt-4o-mini"}, "unknown"},
		{target{provider: anthropicProvider, base: "https://api.anthropic.com", model: "claude-haiku-4-5"}, "$0.006"},
		{target{provider: ollamaProvider, base: "http://192.168.1.7:11434", model: "llama3.2"}, "$0.00"},
		{target{provider: ollamaProvider, base: "https://ollama.com", model: "llama3.2"}, "unknown"},
		{target{provider: "llamacpp", base: "http://192.168.1.7:8080/v1", model: "x.gguf"}, "$0.00"},
		{target{base: "http://127.0.0.1:8080/v1", model: "x.gguf"}, "$0.00"},
		{target{base: "http://192.168.1.7:8080/v1", model: "x.gguf"}, "unknown"},
	} {
		m := script.New(script.Config{Replies: []script.Reply{script.Text("x").Using(memgpt.Usage{Input: 1000, Output: 1000})}, Capabilities: memgpt.Capabilities{Name: c.target.model}})
		resp, err := s.metered(m, &c.target).Generate(t.Context(), &memgpt.Request{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := costText(resp.Usage); got != c.want {
			t.Errorf("%+v: %s, want %s", c.target, got, c.want)
		}
	}
}

// TestCostOfDaysAndUnknowns: days are the agents' own, what isn't known is said so, and agents that are gone are shown.
func TestCostOfDaysAndUnknowns(t *testing.T) {
	home := t.TempDir()
	good(t, home, "", "run", "-m", "hello")
	good(t, home, "", "agents", "set", "default", "zone=Pacific/Kiritimati") // a day ahead of most of the world
	env := map[string]string{"MEMGPT_HOME": home, "MEMGPT_EMBEDDER": "none"}
	a := &app{streams: streams{nil, &strings.Builder{}, &strings.Builder{}}, getenv: func(name string) string { return env[name] }, agentName: "default"}
	if err := a.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	agent, err := a.known(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	here := time.Now().In(agent.Location())
	var rows []store.Spending
	for back := range 4 {
		day := here.AddDate(0, 0, -back).Format(store.DayFormat)
		rows = append(rows, store.Spending{Agent: agent.ID, Model: fmt.Sprint("m", back), Day: day, UTC: day, Usage: memgpt.Usage{Calls: 3, Priced: back, Nano: int64(back) * 1e9}})
	}
	rows = append(rows, store.Spending{Agent: "agent-gone", Model: "g", Day: time.Now().UTC().Format(store.DayFormat), UTC: time.Now().UTC().Format(store.DayFormat), Usage: memgpt.Usage{Calls: 1}})
	if _, err := a.store.Commit(t.Context(), &store.Commit{Now: time.Now(), Spending: rows}); err != nil {
		t.Fatal(err)
	}
	a.close()
	out := good(t, home, "", "cost", "--days", "3").out
	for _, want := range []string{"m0 ", "m1 ", "m2 ", "unknown", "$1.00 and 2 calls of unknown cost", "$2.00 and 1 call of unknown cost", "agent-gone"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nwant %q", out, want)
		}
	}
	if strings.Contains(out, "m3 ") {
		t.Errorf("the fourth day is shown:\n%s", out)
	}
}
