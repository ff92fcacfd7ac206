package eval

import (
	"encoding/json"
	"strings"
	"testing"

	"memgpt"
)

// told wraps lines in a function's result as the kernel shows it.
func told(status string, lines ...string) memgpt.Message {
	text, _ := json.Marshal(map[string]string{"status": status, "message": strings.Join(lines, "\n"), "time": "2024-01-01T12:00:00Z"})
	return memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "c", Name: "x", Text: string(text)}}}
}

// queued wraps a text as an entry of the queue.
func queued(kind memgpt.EventType, text string, more ...string) memgpt.Message {
	quoted, _ := json.Marshal(text)
	return memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, `{"type":"`+string(kind)+`","message":`+string(quoted)+strings.Join(more, "")+`}`)
}

func TestWhatCountsAsInContext(t *testing.T) {
	const text = "The kiln broke on Tuesday, 天黑 and the plum tree fell."
	const tree = "Plum  tree"
	const length = `,"cut":true,"length":53}`
	whole := `{"id":"m1","kind":"message","text":"` + text + `"}`
	tests := map[string]struct {
		messages []memgpt.Message
		answer   string
		want     bool
	}{
		"nothing":               {nil, "", false},
		"a line of results":     {[]memgpt.Message{told("OK", "Showing 1-1 of 1", whole)}, "", true},
		"another id":            {[]memgpt.Message{told("OK", strings.Replace(whole, "m1", "m2", 1))}, "", false},
		"another text":          {[]memgpt.Message{told("OK", strings.Replace(whole, "kiln", "oven", 1))}, "", false},
		"a failed result":       {[]memgpt.Message{told("Failed", whole)}, "", false},
		"a line that was cut":   {[]memgpt.Message{told("OK", whole[:len(whole)-4])}, "", false},
		"a message that stands": {[]memgpt.Message{queued(memgpt.EventUser, text)}, "", true},
		"a longer message":      {[]memgpt.Message{queued(memgpt.EventUser, "He said: "+text)}, "", false},
		"a summary":             {[]memgpt.Message{queued(memgpt.EventSummary, text)}, "", false},
		"an alert":              {[]memgpt.Message{queued(memgpt.EventAlert, whole)}, "", false},
		"prefetched":            {[]memgpt.Message{queued(memgpt.EventPrefetch, "Found:\n"+whole)}, "", true},
		"a cut message": {[]memgpt.Message{queued(memgpt.EventUser, "The kiln broke", `,"cut":true,"id":"m1","length":53`),
			told("OK", `{"id":"m1","text":" on Tuesday, 天黑 and the plum tree fell.","offset":14,"length":53}`)}, "", true},
		"what the agent said":         {[]memgpt.Message{memgpt.TextMessage(memgpt.RoleAssistant, memgpt.OriginModel, text)}, "", false},
		"a piece":                     {[]memgpt.Message{told("OK", `{"id":"m1","text":"The kiln broke"`+length)}, "", false},
		"two pieces with a gap":       {[]memgpt.Message{told("OK", `{"id":"m1","text":"The kiln broke"`+length, `{"id":"m1","offset":15,"text":"on Tuesday, 天黑 and the plum tree fell."`+length)}, "", false},
		"without the first character": {[]memgpt.Message{told("OK", `{"id":"m1","offset":1,"text":"he kiln broke on Tuesday, 天黑 and the plum tree fell."`+length)}, "", false},
		"pieces over two requests": {[]memgpt.Message{told("OK", `{"id":"m1","offset":10,"text":"roke on Tuesday, 天黑 and the plum tree fell."`+length),
			told("OK", `{"id":"m1","text":"The kiln broke on"`+length)}, "", true},
		"a piece at a wrong place":   {[]memgpt.Message{told("OK", `{"id":"m1","text":"he kiln broke"`+length)}, "", false},
		"the piece with the answer":  {[]memgpt.Message{told("OK", `{"id":"m1","offset":27,"text":"天黑 and the plum tree"`+length)}, tree, true},
		"the answer in another text": {[]memgpt.Message{told("OK", `{"id":"m1","text":"The kiln broke"`+length, `{"id":"m2","text":"plum tree"}`)}, tree, false},
	}
	for name, test := range tests {
		w := newWatch(&Question{Text: "Which tree?", Answer: test.answer, Gold: []Evidence{{"m1", text}}})
		for _, m := range test.messages {
			w.request(&memgpt.Request{Messages: []memgpt.Message{m}})
		}
		if got := shownOf(w.gold) == 1; got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestTheQuestionIsNoEvidence(t *testing.T) {
	w := newWatch(&Question{Text: "Who?", Gold: []Evidence{{"m1", "Who?"}}})
	w.request(&memgpt.Request{Messages: []memgpt.Message{queued(memgpt.EventUser, "Who?")}})
	if shownOf(w.gold) != 0 {
		t.Error("the question was taken for its evidence")
	}
}

func TestRequestsForSummariesDontCount(t *testing.T) {
	w := newWatch(&Question{Text: "Who?", Gold: []Evidence{{"m1", "Ana did."}}})
	m := &watched{Model: seeker("x", "y"), run: testRunner(t, nil), watch: w}
	req := &memgpt.Request{Purpose: memgpt.PurposeSummary, Messages: []memgpt.Message{queued(memgpt.EventUser, "Ana did.")}}
	for _, want := range []int{0, 1} {
		if _, err := m.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if shownOf(w.gold) != want {
			t.Errorf("after a request for %q: %d", req.Purpose, shownOf(w.gold))
		}
		req.Purpose = memgpt.PurposeStep
	}
}
