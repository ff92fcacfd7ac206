package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"memgpt"
)

// notes carry a search over evictions in mid-turn: what was searched, and the best of what was found. They stand in the
// thought of every step that goes on where the window is tight, since steps may leave at any time and nothing but the
// prompt tells the next one what was done. They are written one object a line, so that a thought that is shown cut loses
// its last lines only.
type notes struct {
	At       string // of a lookup, the key that it has come to
	Hops     int    // of a lookup, how many it took
	Searched []searchNote
	Best     []hit
}

// searchNote says how many pages of a query were seen in each store.
type searchNote struct {
	Query       string `json:"query"`
	Recall      int    `json:"recall,omitempty"`
	RecallMore  bool   `json:"recall_more,omitempty"` // there is another page
	Archive     int    `json:"archive,omitempty"`
	ArchiveMore bool   `json:"archive_more,omitempty"`
}

// noteLine is any line of notes but a hit.
type noteLine struct {
	At   string `json:"at,omitempty"`
	Hops int    `json:"hops,omitempty"`
	searchNote
}

const (
	notesMark   = "\nNotes on the search:\n"
	maxBest     = 3    // texts noted
	maxNoted    = 360  // characters of one that are noted
	maxSearched = 8    // queries noted
	maxFollowed = 3    // queries of a lookup that are noted
	noteShare   = 0.16 // of the queue's room for notes: a message of more than a quarter would be shown cut
	tightShare  = 0.4  // of the window: above it, a page of results may push older steps out
)

// ledger counts what the turn did. It stands in the ids of the calls of every step, and at the head of its thought: the
// last step is always in the prompt, so that the bounds hold whatever leaves.
type ledger struct{ steps, searches, reads int }

var (
	ledgerID   = regexp.MustCompile(`^call_[0-9a-f]{12}_(\d+)_(\d+)_(\d+)_\d+$`)
	ledgerMark = regexp.MustCompile(`^\[step (\d+), search (\d+), read (\d+)\] `)
)

// id names the call at index i of a step that leaves the ledger so.
func (l ledger) id(seed string, i int) string {
	return fmt.Sprintf("call_%s_%d_%d_%d_%d", seed, l.steps, l.searches, l.reads, i)
}

func (l ledger) mark() string {
	return fmt.Sprintf("[step %d, search %d, read %d] ", l.steps, l.searches, l.reads)
}

// read takes the counts in that re finds.
func (l *ledger) read(re *regexp.Regexp, text string) {
	if m := re.FindStringSubmatch(text); m != nil {
		l.steps, l.searches, l.reads = max(l.steps, atoi(m[1])), max(l.searches, atoi(m[2])), max(l.reads, atoi(m[3]))
	}
}

// recollect reads what a step of the turn counted and noted.
func (t *turn) recollect(it item) {
	t.ledger.steps++
	t.ledger.read(ledgerMark, it.musing)
	for _, c := range it.calls {
		t.ledger.read(ledgerID, c.id)
	}
	_, text, ok := strings.Cut(it.musing, notesMark)
	if !ok {
		return
	}
	for _, h := range readHits(text) {
		t.notes.keep(h)
	}
	for _, line := range strings.Split(text, "\n") {
		var n noteLine
		switch {
		case json.Unmarshal([]byte(line), &n) != nil:
		case n.At != "":
			t.notes.At, t.notes.Hops = n.At, n.Hops
		case n.Query != "":
			t.notes.add(n.searchNote)
		}
	}
}

func (n *notes) keep(h hit) {
	if !slices.ContainsFunc(n.Best, func(b hit) bool { return b.ID == h.ID }) {
		n.Best = append(n.Best, h)
	}
}

// add takes a search in; later notes know of at least as many pages.
func (n *notes) add(s searchNote) {
	for i := range n.Searched {
		if n.Searched[i].Query == s.Query {
			n.Searched[i] = s
			return
		}
	}
	n.Searched = append(n.Searched, s)
}

// count is how many searches the turn made.
func (t *turn) count() int { return max(t.ledger.searches, searches(t.pages())) }

// reads is how many times the turn read on.
func (t *turn) reads() int {
	pages := t.pages()
	return max(t.ledger.reads, len(pages)-searches(pages))
}

// maxSteps is the step after which a turn looks no further and speaks, well within what kernels allow.
const maxSteps = 36

// late tells whether the turn took so many steps that it has to come to its end.
func (t *turn) late() bool { return t.ledger.steps >= maxSteps }

// account adds to an act what the steps after it have to know: the counts, and where the window is tight the notes.
func (m *Model) account(t *turn, a act) act {
	a.ledger = ledger{t.ledger.steps + 1, t.count(), t.reads()}
	for _, c := range a.calls {
		switch c.name {
		case toolRecall, toolArchive:
			a.ledger.searches++
		case toolRead:
			a.ledger.reads++
		case memgpt.FuncSendMessage, memgpt.FuncYield:
			return a
		}
	}
	if len(a.calls) > 0 && a.ledger.searches > 0 && t.has(memgpt.FuncSendMessage) {
		a.thought = a.ledger.mark() + a.thought
		if t.tight() || t.alerted {
			a.thought += m.takeNotes(t)
		}
	}
	return a
}

// tight tells whether so much of the window is in use that older steps may leave before the next one.
func (t *turn) tight() bool {
	used := usage(t.req, &memgpt.Message{}).Input
	return float64(used) > tightShare*float64(t.req.Window)
}

// pages are the searches that were noted.
func (n *notes) pages() []page {
	var list []page
	add := func(store, query string, seen int, more bool) {
		for i := range seen {
			p := page{call: call{name: store, args: map[string]any{"query": query, "page": float64(i)}}, ok: true, noted: true}
			if p.more = more || i+1 < seen; p.more {
				p.next = i + 1
			}
			list = append(list, p)
		}
	}
	for _, s := range n.Searched {
		add(toolRecall, s.Query, s.Recall, s.RecallMore)
		add(toolArchive, s.Query, s.Archive, s.ArchiveMore)
	}
	return list
}

// takeNotes writes notes on the searches of the turn, where the user still waits for what they are for.
func (m *Model) takeNotes(t *turn) string {
	pages := t.pages()
	if !t.owes() || len(pages) == 0 {
		return ""
	}
	n := notes{Searched: searchedIn(pages)}
	best, queries := maxBest, maxSearched
	if start, ok := lookupStart(t.question); ok {
		if at, hops, _ := t.reached(start); hops > 0 {
			n.At, n.Hops = at, hops
		}
		best, queries = 1, maxFollowed
	}
	n.Searched = n.Searched[max(0, len(n.Searched)-queries):]
	n.Best = m.best(t, best)
	for budget := t.noteRoom(); len(n.Best) > 0 && estimate(n.write()) > budget; {
		n.Best = n.Best[:len(n.Best)-1]
	}
	for budget := t.noteRoom(); len(n.Searched) > 1 && estimate(n.write()) > budget; {
		n.Searched = n.Searched[1:]
	}
	return n.write()
}

func (n *notes) write() string {
	var b bytes.Buffer
	b.WriteString(notesMark)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	lines := []any{}
	if n.At != "" {
		lines = append(lines, struct {
			At   string `json:"at"`
			Hops int    `json:"hops"`
		}{n.At, n.Hops})
	}
	for _, s := range n.Searched {
		lines = append(lines, s)
	}
	for _, h := range n.Best {
		lines = append(lines, h)
	}
	for _, line := range lines {
		if enc.Encode(line) != nil {
			return ""
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// searchedIn sums pages up by query, in the order of the first page of each. That there are more is noted where they are
// worth it.
func searchedIn(pages []page) []searchNote {
	var n notes
	for _, p := range pages {
		if p.call.name == toolRead {
			continue
		}
		query := p.call.str("query")
		s := searchNote{Query: query}
		for _, have := range n.Searched {
			if have.Query == query {
				s = have
			}
		}
		seen, more := p.number()+1, p.more && p.leadsOn(query)
		if p.call.name == toolRecall && seen > s.Recall {
			s.Recall, s.RecallMore = seen, more
		} else if p.call.name == toolArchive && seen > s.Archive {
			s.Archive, s.ArchiveMore = seen, more
		}
		n.add(s)
	}
	return n.Searched
}

// noteRoom is how many tokens notes may take.
func (t *turn) noteRoom() int {
	if t.req.Window <= 0 {
		return 2 * unknownRoom
	}
	return int(noteShare * float64(t.queueRoom()))
}

// best returns the n texts found that fit the question best, shortened.
func (m *Model) best(t *turn, n int) []hit {
	want, _ := m.grammar.wants(t.question)
	terms := t.terms(questionOf(t.question), want)
	var list []hit
	for _, r := range rank(terms, t.found()) {
		if len(list) == n || r.score == 0 {
			break
		}
		h := r.hit
		if short := excerpt(h.Text, terms, maxNoted); short != h.Text { // else what is read on can be joined to it
			h.Text, h.Cut, h.Offset, h.Length = short, false, 0, 0
		}
		list = append(list, h)
	}
	return list
}
