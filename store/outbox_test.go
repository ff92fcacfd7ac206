package store

import (
	"slices"
	"strings"
	"testing"
	"time"

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

// A secret that was replaced signs for as long as it was told, also where a second one is replaced meanwhile.
func TestHookSecretsOfSeveralRotations(t *testing.T) {
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := Hook{URL: "https://x.example", Secret: "a"}
	for i, secret := range []string{"b", "c", "d"} {
		at := day.Add(time.Duration(i) * 10 * time.Hour)
		h.Rotate(secret, at, at.Add(24*time.Hour))
	}
	record, err := h.Record(Record{ID: "agent-1"})
	if err != nil {
		t.Fatal(err)
	}
	var again Hook
	if err := again.Read(record); err != nil {
		t.Fatal(err)
	}
	for hours, want := range map[int]string{21: "d c b a", 24: "d c b", 33: "d c b", 34: "d c", 44: "d", 1000: "d"} {
		if got := strings.Join(again.Secrets(day.Add(time.Duration(hours)*time.Hour)), " "); got != want {
			t.Errorf("after %d hours %s sign, want %s", hours, got, want)
		}
	}
	now := day.Add(1000 * time.Hour)
	if again.Rotate("e", now, now.Add(time.Hour)); len(again.Older) != 0 {
		t.Errorf("what signs no more is kept: %+v", again.Older)
	}
}
