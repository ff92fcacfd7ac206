package offline

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"memgpt"
)

const toolMerge = "archival_memory_merge"

// tidyItem is a line of what tidying is given: a message, or a passage with those that it resembles.
type tidyItem struct {
	ID      string            `json:"id"`
	By      string            `json:"by"`
	Text    string            `json:"text"`
	Dates   map[string]string `json:"dates"`
	Differs []json.RawMessage `json:"differs"`
	Alike   []tidyItem        `json:"alike"`
}

// onTidy plays tidying by rules, in one step: what users stated about themselves is kept where it isn't yet, as in a turn of
// theirs, and passages that say the same are merged into the newest of them. It can judge nothing else.
func (m *Model) onTidy(t *turn) act {
	if len(t.results) > 0 || t.late() {
		return t.rest("tidied what rules can")
	}
	var texts []string
	var calls []call
	gone := map[string]bool{}
	for line := range strings.Lines(t.trigger.text) {
		var it tidyItem
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &it) != nil {
			continue
		}
		if len(it.Alike) == 0 && it.By != "the agent" {
			texts = append(texts, it.dated())
			continue
		}
		if ids := sameTexts(&it, gone); len(ids) > 1 && t.has(toolMerge) {
			calls = append(calls, t.call(toolMerge, true, "ids", ids, "content", it.Text))
		}
	}
	calls = append(calls, m.savings(t, texts)...)
	if len(calls) == 0 {
		return t.rest("nothing that rules can tidy")
	}
	for _, c := range calls {
		reason := "stated by the user"
		if c.name == toolMerge {
			reason = "they say the same"
		}
		c.args["reason"] = reason
	}
	return act{calls: calls[:min(len(calls), tidyCalls)]}
}

// dated returns the text with days in place of words that named them by the day on which it was said.
func (it *tidyItem) dated() string {
	text := it.Text
	for _, word := range slices.Sorted(maps.Keys(it.Dates)) {
		if day := it.Dates[word]; len(day) == len(time.DateOnly) { // no week, and one reading
			text = strings.ReplaceAll(text, word, day)
		}
	}
	return text
}

// tidyCalls is how many calls a reply may make.
const tidyCalls = 16

// sameTexts returns the ids of a passage and of those that differ from it in no fact, without those that went already.
func sameTexts(it *tidyItem, gone map[string]bool) (ids []string) {
	for _, p := range append([]tidyItem{*it}, it.Alike...) {
		if len(p.Differs) == 0 && !gone[p.ID] {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) > 1 {
		for _, id := range ids {
			gone[id] = true
		}
	}
	return ids
}

// tidies tells whether the turn is one of tidying.
func (t *turn) tidies() bool { return t.start >= 0 && t.trigger.typ == memgpt.EventTidy }
