package memtool

import (
	"errors"
	"strings"
	"testing"

	"memgpt"
)

// TestMailFunctions: names and spellings of arguments that other systems use reach the same functions, and errors go to the model.
func TestMailFunctions(t *testing.T) {
	tools, err := Mail(false)
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]memgpt.Effect{}
	for _, x := range tools {
		effects[x.Spec.Name] = x.Effect
	}
	run := func(f *fake, name, args string) (string, error) { t.Helper(); return callOf(t, tools, f, name, args) }
	for _, c := range []struct{ name, args, did, says string }{
		{"send_message_to_agent_async", `{"agent":"Bo","message":"hi"}`, `write Bo "hi" false`, "Sent to Bo"},
		{"send_message_to_agent_async", `{"other_agent_id":"Bo","content":"hi"}`, `write Bo "hi" false`, "Sent to Bo"},
		{"send_message_to_agent_and_wait_for_reply", `{"agent_name":"Bo","message":"hi?"}`, `write Bo "hi?" true`, "Sent to Bo"},
		{"send_message_to_agents_matching_tags", `{"match_all":["x","y"],"message":"all"}`, `write tagged ["x" "y"] "all"`, "2 agents: Ada, Bo. Not to others: Cy: busy"},
	} {
		f := newFake()
		got, err := run(f, c.name, c.args)
		if err != nil || !strings.Contains(got, c.says) || len(f.log) != 1 || f.log[0] != c.did {
			t.Errorf("%s %s: %q, did %q, %v", c.name, c.args, got, f.log, err)
		}
		f.err = errors.New("not sent: no")
		if _, err := run(f, c.name, c.args); err == nil || err.Error() != "not sent: no" {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := run(newFake(), c.name, `{"message":"lost"}`); err == nil {
			t.Errorf("%s: a message to nobody", c.name)
		}
	}
	if effects["send_message_to_agent_and_wait_for_reply"] != memgpt.EffectDeferred || effects["send_message_to_agent_async"] != memgpt.EffectMemory {
		t.Errorf("%v", effects)
	}
}
