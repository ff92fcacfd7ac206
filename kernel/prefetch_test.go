package kernel_test

import (
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
)

// prefetchAgent turns prefetch on for the environment's agent.
func (e *env) prefetchAgent(p memgpt.Prefetch) {
	e.t.Helper()
	e.agent.Prefetch = p
	_, err := e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Agents: []memgpt.Agent{e.agent}})
	must(e.t, err)
	e.agent.Version++
}

func TestPrefetchStandsBeforeItsMessage(t *testing.T) {
	m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Say("hm") }})
	e := newEnv(t, m, options{})
	e.agent.Version = 1
	e.prefetchAgent(memgpt.Prefetch{Mode: memgpt.PrefetchOn})
	_, err := e.kernel.Load(t.Context(), e.agent, []memgpt.Passage{{Text: "The spare key of the boathouse hangs behind the clock.", Source: "house.md"}})
	must(t, err)
	_, turn := e.say("Where is the key of the boathouse?")
	t.Logf("%+v", turn.Prefetch)
	reqs := m.Requests()
	msgs := reqs[len(reqs)-1].Messages
	for _, m := range msgs[1:] {
		t.Log(m.Said())
	}
	if !strings.Contains(msgs[len(msgs)-2].Said(), "behind the clock") {
		t.Error("not handed over")
	}
}
