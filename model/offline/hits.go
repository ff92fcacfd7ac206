package offline

import (
	"encoding/json"
	"regexp"
	"strings"

	"memgpt"
)

// hit is one text that a search or a reading showed.
type hit struct {
	ID     string `json:"id"`
	Kind   string `json:"kind,omitempty"`
	Time   string `json:"time,omitempty"`
	Role   string `json:"role,omitempty"`
	Name   string `json:"name,omitempty"`
	Source string `json:"source,omitempty"`
	Text   string `json:"text"`
	Cut    bool   `json:"cut,omitempty"`
	Length int    `json:"length,omitempty"` // characters of the whole text, where it is cut
	Offset int    `json:"offset,omitempty"` // characters before Text
}

// page is what one call of a search or of memory_read brought.
type page struct {
	call call
	hits []hit
	more bool // there is a next page
	next int  // its number, or the offset at which to read on
	ok   bool
}

var (
	nextPage = regexp.MustCompile(`(?m)^Next page: page=(\d+)`)
	readOn   = regexp.MustCompile(`(?m)^Read on: offset=(\d+)`)
)

// readPage reads the result of a search. Hits are whole lines of JSON, so that no text can pretend to be one.
func readPage(it item) page {
	p := page{call: it.call, ok: !it.failed}
	if it.failed {
		return p
	}
	p.hits = readHits(it.text)
	for _, re := range []*regexp.Regexp{nextPage, readOn} {
		if m := re.FindStringSubmatch(it.text); m != nil {
			p.more, p.next = true, atoi(m[1])
		}
	}
	return p
}

func readHits(text string) []hit {
	var hits []hit
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "{") {
			continue
		}
		if h, ok := readHit(line); ok {
			hits = append(hits, h)
		}
	}
	return hits
}

// readHit reads one line. The last line of a result that was shown cut may lack its end.
func readHit(line string) (hit, bool) {
	var h hit
	if json.Unmarshal([]byte(line), &h) == nil {
		return h, h.ID != ""
	}
	h = hit{}
	for _, end := range []string{`"}`, `}`} {
		if json.Unmarshal([]byte(strings.TrimRight(line, `\`)+end), &h) == nil && h.ID != "" && h.Text != "" {
			h.Cut = true
			return h, true
		}
	}
	return hit{}, false
}

const (
	toolRecall  = "conversation_search"
	toolArchive = "archival_memory_search"
	toolRead    = "memory_read"
	toolInsert  = "archival_memory_insert"
	toolAppend  = "core_memory_append"
	toolReplace = "core_memory_replace"
	toolEvict   = "conversation_evict"
)

// pages returns what the turn's searches and readings brought, in order; of those that left the context, what was noted.
func (t *turn) pages() []page {
	list := t.notes.pages()
	for _, it := range t.results {
		switch it.call.name {
		case toolRecall, toolArchive, toolRead:
			list = append(list, readPage(it))
		}
	}
	return list
}

// found collects the texts that the turn has seen: what the system handed over, what searches found, what was read on.
// Pieces of one text are put together where they meet.
func (t *turn) found() []hit {
	var all []hit
	for i, it := range t.items {
		if it.kind == heard && it.typ == memgpt.EventPrefetch && i < t.start && t.start-i <= 2 {
			all = append(all, readHits(it.text)...)
		}
	}
	all = append(all, t.notes.Best...)
	for _, p := range t.pages() {
		all = append(all, p.hits...)
	}
	var list []hit
	at := map[string]int{}
	for _, h := range all {
		i, seen := at[h.ID]
		if !seen {
			at[h.ID] = len(list)
			list = append(list, h)
			continue
		}
		list[i] = list[i].join(h)
	}
	return list
}

// join puts another piece of the same text behind the first.
func (h hit) join(more hit) hit {
	have := memgpt.Runes(h.Text)
	rs := []rune(more.Text)
	skip := have - more.Offset
	if skip < 0 || skip >= len(rs) {
		return h
	}
	h.Text += string(rs[skip:])
	h.Cut = more.Cut || h.Length > 0 && memgpt.Runes(h.Text) < h.Length
	return h
}

// shown is how many characters of the text were seen.
func (h hit) shown() int { return h.Offset + memgpt.Runes(h.Text) }

// own tells whether the agent itself said it.
func (h hit) own() bool { return h.Role == string(memgpt.RoleAssistant) }
