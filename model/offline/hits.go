package offline

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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
	// noted: the page left the context, and what it had with it
	noted bool
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
	var list []page
	for _, it := range t.results {
		switch it.call.name {
		case toolRecall, toolArchive, toolRead:
			list = append(list, readPage(it))
		}
	}
	noted := slices.DeleteFunc(t.notes.pages(), func(p page) bool {
		return searched(list, p.call.name, p.call.str("query"), p.number())
	})
	return append(noted, list...)
}

// number is the number of a search's page.
func (p page) number() int {
	n, _ := p.call.args["page"].(float64)
	return int(n)
}

// misses tells whether a query is a code that no text of the page has whole. Searches also find texts with a part of it.
func (p page) misses(query string) bool {
	if p.noted {
		return false // see leadsOn
	}
	codes := codesOf(query)
	for _, h := range p.hits {
		if slices.ContainsFunc(codes, func(code string) bool { return holdsWhole(h.Text, code) }) {
			return false
		}
	}
	return len(codes) > 0
}

// leadsOn tells whether the next page may have what is looked for, if there is one.
func (p page) leadsOn(query string) bool {
	switch {
	case p.noted: // that there are more was noted only if so
		return true
	case shapeOf(query) != noShape:
		return p.fullOf(query)
	}
	return !p.misses(query)
}

// codesOf returns the words of a query that have letters or dashes and digits together.
func codesOf(query string) []string {
	var codes []string
	for _, tok := range codeRun.FindAllString(query, -1) {
		if s := shapeOf(tok); s == shapeUUID || s == shapeCode {
			codes = append(codes, tok)
		}
	}
	return codes
}

// holdsWhole tells whether a text has a code that is no part of a longer one.
func holdsWhole(text, code string) bool {
	text, code = strings.ToLower(text), strings.ToLower(code)
	part := func(r rune) bool { return r == '-' || r == '_' || runKind(r) == runWord }
	for from := 0; ; {
		i := strings.Index(text[from:], code)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:from+i])
		after, _ := utf8.DecodeRuneInString(text[from+i+len(code):])
		if !part(before) && !part(after) {
			return true
		}
		from += i + 1
	}
}

// found collects the texts that the turn has seen: what stands in the prompt, what the system handed over, what searches found, what was read on.
// Pieces of one text are put together where they meet.
func (t *turn) found() []hit {
	all := slices.Clone(t.given)
	for i, it := range t.items {
		if it.kind == heard && it.typ == memgpt.EventPrefetch && t.start-i <= 2 { // before the message, or after a first reply
			all = append(all, handedHits(it.text)...)
		}
	}
	var seen []hit
	for _, p := range t.pages() {
		seen = append(seen, p.hits...)
	}
	for _, h := range t.notes.Best { // what still stands in the prompt is seen whole there
		if !slices.ContainsFunc(seen, func(s hit) bool { return s.ID == h.ID }) {
			all = append(all, h)
		}
	}
	all = append(all, seen...)
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

// handedGroup is the line above texts that the system hands over: their day, and where they come from.
var handedGroup = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2}|undated)[^,{]*, (conversation|document|archive) ?(.*)$`)

// handedHits reads what the system handed over. A text has its speaker in "by", its day and kind in the line above.
func handedHits(text string) []hit {
	var list []hit
	var group []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := handedGroup.FindStringSubmatch(line); m != nil {
			group = m
			continue
		}
		for _, h := range readHits(line) {
			var by struct{ By string }
			_ = json.Unmarshal([]byte(line), &by) // else it has no speaker
			if group != nil && h.Kind == "" {
				h.Time, h.Kind = group[1], string(memgpt.KindPassage)
				if group[2] == "conversation" {
					h.Kind = string(memgpt.KindMessage)
				} else {
					h.Source = group[3]
				}
			}
			switch memgpt.Role(by.By) {
			case "":
			case memgpt.RoleUser, memgpt.RoleAssistant:
				h.Role = by.By
			default:
				h.Name = by.By
			}
			list = append(list, h)
		}
	}
	return list
}

// join puts another piece of the same text behind the first.
func (h hit) join(more hit) hit {
	rs := []rune(more.Text)
	skip := h.shown() - more.Offset
	if skip < 0 || skip >= len(rs) {
		return h
	}
	h.Text += string(rs[skip:])
	h.Cut = more.Cut || h.Length > 0 && h.shown() < h.Length
	return h
}

// shown is how many characters of the text were seen.
func (h hit) shown() int { return h.Offset + memgpt.Runes(h.Text) }

// own tells whether the agent itself said it.
func (h hit) own() bool { return h.Role == string(memgpt.RoleAssistant) }
