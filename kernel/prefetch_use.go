package kernel

import (
	"encoding/json"
	"strings"
	"sync"
	"unicode"

	"memgpt"
)

// funcRead brings back what was found already: it is no search.
const funcRead = "memory_read"

// A reply quotes a text where it shares so many words in a row with it, or characters of a script without spaces, that
// the user did not say himself.
const (
	quotedWords = 4
	quotedRunes = 6
	askedBytes  = 16 << 10 // of each end of a message that are looked at
)

// noteUse counts the model's own searches, and which of the texts that were handed over it read or quoted. It sees each
// reply once.
func (r *run) noteUse(calls []call, parts memgpt.Parts) {
	for i := range calls {
		if c := &calls[i]; c.fault == "" && c.tool.Search && c.Name != funcRead {
			r.turn.Searches++
		}
	}
	if p := r.turn.Prefetch; p == nil || len(p.Hits) == 0 {
		return
	}
	own := *r.turn.Prefetch
	said := strings.Join(messageTexts(&memgpt.Message{Parts: parts}), "\n")
	known, asked := wordRuns(said), sync.OnceValue(func() map[string]bool { return wordRuns(r.askedTexts()) })
	for id, text := range r.handedTexts() {
		if !r.handing.used[id] && (strings.Contains(said, id) || sharesRun(known, text, asked)) {
			if r.handing.used == nil {
				r.handing.used = map[string]bool{}
			}
			r.handing.used[id] = true
			own.Used++
		}
	}
	r.turn.Prefetch = &own
}

// askedTexts returns what users said in this turn, of long messages the ends.
func (r *run) askedTexts() string {
	text := endsOf(r.w.Event.Message.Said(), askedBytes)
	for i := len(r.st.Queue) - 1; i >= 0; i-- {
		e := &r.st.Queue[i]
		if e.Message.Role == memgpt.RoleUser {
			text += "\n" + endsOf(e.Message.Said(), askedBytes)
		}
		if e.Turn == r.turn.ID && e.Step == 0 && e.Message.Type == r.w.Event.Type {
			break
		}
	}
	return text
}

// handedTexts returns what was handed over in this turn, as far as it is in the queue, by id.
func (r *run) handedTexts() map[string]string {
	texts := map[string]string{}
	for i := range r.st.Queue {
		e := &r.st.Queue[i]
		if e.Turn != r.turn.ID || e.Message.Type != memgpt.EventPrefetch {
			continue
		}
		for line := range strings.Lines(e.Message.Said()) {
			var hit handedLine
			if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &hit) == nil {
				texts[hit.ID] = hit.Text
			}
		}
	}
	return texts
}

// sharesRun reports whether a text has a run of words that is among the known ones and not among the user's own.
func sharesRun(known map[string]bool, text string, own func() map[string]bool) bool {
	for run := range wordRuns(text) {
		if known[run] && !own()[run] {
			return true
		}
	}
	return false
}

// wordRuns returns the runs of quotedWords words, and of quotedRunes characters of scripts without spaces.
func wordRuns(text string) map[string]bool {
	runs := map[string]bool{}
	west, east := askScripts(text)
	for i := quotedWords; i <= len(west); i++ {
		var list []string
		for _, w := range west[i-quotedWords : i] {
			list = append(list, w.low)
		}
		runs[strings.Join(list, " ")] = true
	}
	for _, run := range east {
		runes := []rune(run)
		for i := quotedRunes; i <= len(runes); i++ {
			if piece := string(runes[i-quotedRunes : i]); strings.IndexFunc(piece, unicode.IsLetter) >= 0 {
				runs[piece] = true
			}
		}
	}
	return runs
}
