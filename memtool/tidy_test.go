package memtool

import (
	"encoding/json"
	"strings"
	"testing"

	"memgpt"
	"memgpt/tool"
)

// TestTidyingDemandsReasons: each function that edits takes a reason and does nothing without one; no function speaks, sets
// timers or deletes.
func TestTidyingDemandsReasons(t *testing.T) {
	for _, compact := range []bool{false, true} {
		tools, err := Tidying(compact)
		if err != nil {
			t.Fatal(err)
		}
		edits := 0
		for _, f := range tools {
			name, params := f.Spec.Name, string(f.Spec.Parameters)
			if name == memgpt.FuncSendMessage || strings.Contains(name, "delete") || strings.Contains(name, "schedule") || strings.Contains(name, "agent") {
				t.Errorf("%s is offered", name)
			}
			if strings.Contains(params, memgpt.ArgHeartbeat) {
				t.Errorf("%s takes a heartbeat: %s", name, params)
			}
			if f.Effect != memgpt.EffectMemory || name == memgpt.FuncYield {
				if strings.Contains(params, `"reason"`) {
					t.Errorf("%s demands a reason", name)
				}
				continue
			}
			edits++
			for _, p := range []json.RawMessage{f.Spec.Parameters, f.Accepts} {
				var s struct {
					Properties map[string]any
					Required   []string
				}
				if len(p) == 0 {
					continue
				}
				if err := json.Unmarshal(p, &s); err != nil || s.Properties["reason"] == nil || s.Required[len(s.Required)-1] != "reason" {
					t.Errorf("%s: %v in %s", name, err, p)
				}
			}
			if _, err := f.Call(t.Context(), tool.Invocation{Args: json.RawMessage(`{"label":"human","content":"x","reason":" "}`)}); err == nil ||
				!strings.Contains(err.Error(), "reason") {
				t.Errorf("%s without a reason: %v", name, err)
			}
		}
		if edits != 6 || len(tools) != 10 {
			t.Errorf("%d functions edit of %d", edits, len(tools))
		}
	}
	if got := Reason(json.RawMessage(`{"reason":"why"}`)); got != "why" {
		t.Errorf("reason %q", got)
	}
}
