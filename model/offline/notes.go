package offline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// notes carry a search over an eviction in mid-turn: what was searched, and the best of what was found. They stand in the
// thought of the step that answers the alert, since nothing but the prompt tells the next step what was done.
type notes struct {
	Searched []searchNote `json:"searched,omitempty"`
	Best     []hit        `json:"best,omitempty"`
	At       string       `json:"at,omitempty"`   // of a lookup, the key that it has come to
	Hops     int          `json:"hops,omitempty"` // of a lookup, how many it took
}

type searchNote struct {
	Store string `json:"in"`
	Query string `json:"query"`
	Page  int    `json:"page,omitempty"`
	Next  int    `json:"next,omitempty"` // next page; 0 is none
}

const (
	notesMark = "Notes on the search: "
	maxBest   = 3   // texts noted
	maxNoted  = 360 // characters of one that are noted
)

var countMark = regexp.MustCompile(`\(search (\d+)\)`)

// recollect reads what a thought of the turn noted.
func (t *turn) recollect(thought string) {
	if m := countMark.FindStringSubmatch(thought); m != nil {
		t.counted = max(t.counted, atoi(m[1]))
	}
	_, text, ok := strings.Cut(thought, notesMark)
	var n notes
	if ok && json.NewDecoder(strings.NewReader(text)).Decode(&n) == nil {
		t.notes = n
		t.results = slices.DeleteFunc(t.results, func(it item) bool { // what they brought is in the notes
			return it.call.name == toolRecall || it.call.name == toolArchive || it.call.name == toolRead
		})
	}
}

// count is how many searches the turn made.
func (t *turn) count() int { return max(t.counted, searches(t.pages())) }

// counting says in a thought how many searches the turn made with n more, so that the bound holds also where they leave
// the context.
func (t *turn) counting(n int) string { return fmt.Sprintf(" (search %d)", t.count()+n) }

// pages are the searches that were noted.
func (n *notes) pages() []page {
	var list []page
	for _, s := range n.Searched {
		c := call{s.Store, map[string]any{"query": s.Query, "page": float64(s.Page)}}
		list = append(list, page{call: c, more: s.Next > 0, next: s.Next, ok: true})
	}
	return list
}

// takeNotes writes notes on the searches of the turn, where the user still waits for what they are for.
func (m *Model) takeNotes(t *turn) string {
	pages := t.pages()
	if !t.owes() || len(pages) == 0 {
		return ""
	}
	n := notes{Best: m.best(t)}
	for _, p := range pages {
		number, _ := p.call.args["page"].(float64)
		if p.call.name != toolRead {
			n.Searched = append(n.Searched, searchNote{p.call.name, p.call.str("query"), int(number), p.next})
		}
	}
	if start, ok := lookupStart(t.question); ok {
		if n.At, n.Hops, _ = t.reached(start); n.Hops == 0 {
			n.At = ""
		}
		n.Best = n.Best[:min(1, len(n.Best))]
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(n) != nil {
		return ""
	}
	return "\n" + notesMark + strings.TrimSpace(b.String())
}

// best returns the texts found that fit the question best, shortened.
func (m *Model) best(t *turn) []hit {
	want, _ := m.grammar.wants(t.question)
	terms := t.terms(questionOf(t.question), want)
	var list []hit
	for _, r := range rank(terms, t.found()) {
		if len(list) == maxBest || r.score == 0 {
			break
		}
		h := r.hit
		h.Text, h.Cut, h.Offset = excerpt(h.Text, terms, maxNoted), false, 0
		list = append(list, h)
	}
	return list
}
