package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"memgpt"
)

// tidyStep asks the stand-in with an event of tidying, and what came of an earlier step.
func tidyStep(t *testing.T, m *Model, event string, more ...memgpt.Message) *memgpt.Response {
	t.Helper()
	req := &memgpt.Request{Messages: []memgpt.Message{
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "You tidy.\n<memory_blocks>\n<block label=\"human\" chars=\"27/2000\">\nThe user lives in Porto.\n</block>\n</memory_blocks>"),
		envelope(memgpt.EventTidy, event, "2026-04-06T10:00:00Z", "")}}
	req.Messages = append(req.Messages, more...)
	for _, name := range []string{memgpt.FuncYield, toolAppend, "memory_replace", toolInsert, toolMerge} {
		req.Tools = append(req.Tools, memgpt.ToolSpec{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string"}}}`)})
	}
	reply, err := m.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// TestTidiesByRules: what a user stated is kept with the day that it names, passages that differ in nothing are merged, those
// that differ are left alone, and then it rests.
func TestTidiesByRules(t *testing.T) {
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	event := `New: 3 messages.
{"id":"message-1","time":"2026-04-05 Sun 09:00","in":"main","by":"user","text":"My name is Ines. My exam is tomorrow.","dates":{"tomorrow":"2026-04-06"}}
{"id":"message-2","time":"2026-04-05 Sun 09:00","in":"main","by":"the agent","text":"My name is Memo."}
{"id":"passage-1","time":"x","text":"The key hangs behind the oars.","alike":[{"id":"passage-2","time":"x","text":"the key hangs behind the oars"},{"id":"passage-3","time":"x","text":"The key hung behind 2 oars.","differs":[{"kind":"number","here":"","there":"2"}]}]}
Tidy.`
	calls := tidyStep(t, m, event).Message.Calls()
	var all []string
	for _, c := range calls {
		if !strings.Contains(c.Arguments, `"reason":"`) || strings.Contains(c.Arguments, memgpt.ArgHeartbeat) {
			t.Errorf("%s %s", c.Name, c.Arguments)
		}
		all = append(all, c.Name+" "+c.Arguments)
	}
	said := strings.Join(all, "\n")
	if !strings.Contains(said, "The user's name is Ines.") || !strings.Contains(said, "2026-04-06") || strings.Contains(said, "Memo") ||
		!strings.Contains(said, `["passage-1","passage-2"]`) || strings.Contains(said, "passage-3") {
		t.Errorf("calls:\n%s", said)
	}
	first := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "1", Name: toolAppend, Arguments: `{}`}}}
	done := memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "1", Name: toolAppend, Text: `{"status":"OK","message":"Updated."}`}}}
	if calls := tidyStep(t, m, event, first, done).Message.Calls(); len(calls) != 1 || calls[0].Name != memgpt.FuncYield {
		t.Errorf("then %+v", calls)
	}
	if calls := tidyStep(t, m, `{"id":"message-3","by":"user","text":"Hm."}`).Message.Calls(); len(calls) != 1 || calls[0].Name != memgpt.FuncYield {
		t.Errorf("with nothing to keep: %+v", calls)
	}
}
