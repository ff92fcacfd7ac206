package store

import (
	"slices"
	"testing"

	"memgpt"
)

func TestSpokenIn(t *testing.T) {
	m := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Text{Text: "I wonder", Thought: true}, memgpt.Text{Text: "plain"},
		memgpt.Call{ID: "1", Name: memgpt.FuncSendMessage, Arguments: `{"message":"called\u0000"}`}, memgpt.Call{ID: "2", Name: "ring", Arguments: `{"message":"no"}`},
		memgpt.Call{ID: "3", Name: memgpt.FuncSendMessage, Arguments: `{"message":"again"}`}}}
	list := SpokenIn(&m)
	if want := []Spoken{{"", "plain"}, {"1", memgpt.CleanText("called\x00")}, {"3", "again"}}; !slices.Equal(list, want) {
		t.Errorf("%q, want %q", list, want)
	}
	e := memgpt.Entry{Message: m}
	for _, said := range list {
		if got, ok := (&Saying{Call: said.Call}).SaidBy(&e); !ok || got != said.Text {
			t.Errorf("call %q: %q, %v", said.Call, got, ok)
		}
	}
	if got, ok := (&Saying{Call: "2"}).SaidBy(&e); ok {
		t.Errorf("a call that says nothing: %q", got)
	}
	e.Message = memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginOwner, "forgotten by the owner")
	if got, ok := (&Saying{}).SaidBy(&e); ok {
		t.Errorf("what was forgotten: %q", got)
	}
}
