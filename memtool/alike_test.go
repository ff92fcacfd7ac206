package memtool

import (
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/tool"
)

// TestInsertNamesWhatIsAlike stores a passage beside one that says the same and one that differs in facts.
func TestInsertNamesWhatIsAlike(t *testing.T) {
	f := newFake()
	f.alike = []tool.Alike{
		{Hit: tool.Hit{ID: "passage-8", Kind: memgpt.KindPassage, Time: f.now.Add(-time.Hour), Text: "Their meeting is\nat 3pm."}},
		{Hit: tool.Hit{ID: "passage-9", Kind: memgpt.KindPassage, Time: f.now.Add(-time.Minute), Text: "The meeting is not at 4pm.", About: time.Date(2024, 12, 1, 0, 0, 0, 0, tokyo)},
			Differs: []tool.Difference{{Kind: "number", Here: "3pm", There: "4pm"}, {Kind: "negation", There: "not"}}},
	}
	got := f.ok(t, "archival_memory_insert", `{"content":"The meeting is at 3pm."}`)
	want := []string{
		"Stored as passage-1.",
		"Much the same is stored already, what differs is named, with which of the two is newer. Merge or update what is outdated; " +
			"what was true and is no more: archival_memory_update with ended:",
		`{"id":"passage-8","kind":"passage","time":"2024-10-14T14:04:05+09:00","text":"Their meeting is\nat 3pm."}`,
		`{"id":"passage-9","kind":"passage","time":"2024-10-14T15:03:05+09:00","about":"2024-12-01","differs":[{"kind":"number","new":"3pm","stored":"4pm"},` +
			`{"kind":"negation","new":"","stored":"not"}],"newer":"stored","text":"The meeting is not at 4pm."}`,
	}
	if got != strings.Join(want, "\n") {
		t.Errorf("got:\n%s", got)
	}
}
