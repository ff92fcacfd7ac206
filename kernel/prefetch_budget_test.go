package kernel_test

import (
	"fmt"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// TestBothLooksShareTheBudget: what a turn is handed stays within the agent's budget, whether the first look fills it or
// leaves room for the second.
func TestBothLooksShareTheBudget(t *testing.T) {
	for _, c := range []struct {
		budget int
		second bool
	}{{200, false}, {2000, true}} {
		m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Say("I don't know the padlock combination.") }})
		e := newEnv(t, m, options{prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchOn, Budget: c.budget}})
		for i := range 4 {
			e.archive(fmt.Sprintf("The shed number %d stands behind the mill, where the path to the weir begins and the nettles grow.", i),
				fmt.Sprintf("The padlock number %d has the combination 44%d, and its key lies under the third stone of the wall.", i, i))
		}
		_, turn := e.say("How do I get into the shed behind the mill?")
		p := turn.Prefetch
		if p.Tokens > c.budget || p.Tokens < c.budget/8 || p.Second != c.second || len(p.Hits) == 0 {
			t.Errorf("budget %d: %d tokens, %d hits, looked twice: %v", c.budget, p.Tokens, len(p.Hits), p.Second)
		}
	}
}
