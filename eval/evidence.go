package eval

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"memgpt"
	"memgpt/store"
	"memgpt/token"
)

// watched is a model whose requests are looked at before they leave.
type watched struct {
	memgpt.Model
	run   *runner
	watch *watch
	clock *clock // of the turn; nil in a baseline
}

// Generate implements memgpt.Model.
func (m *watched) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	req.Restore()
	if req.Purpose == memgpt.PurposeStep {
		m.watch.request(req)
		m.watch.repeats(req)
	}
	reply, err := m.run.ask(ctx, m.Model, req, stream, m.watch.bill)
	if err == nil && m.clock != nil {
		m.clock.settle()
	}
	if err == nil && m.watch.count != nil {
		m.watch.output += m.watch.count.Message(&reply.Message)
	}
	return reply, err
}

// repeats counts the tokens with which a request begins as the one before did: functions, whole messages, and the beginning
// of the first message that differs.
func (w *watch) repeats(req *memgpt.Request) {
	if w.count == nil {
		return
	}
	head := make([]string, 0, len(req.Messages)+1)
	if tools, err := json.Marshal(req.Tools); err == nil {
		head = append(head, string(tools))
	}
	for i := range req.Messages {
		text, err := json.Marshal(&req.Messages[i])
		if err != nil {
			return
		}
		head = append(head, string(text))
	}
	before := w.before
	w.before = head
	for i := range min(len(head), len(before)) {
		switch {
		case head[i] != before[i]:
			w.prefix += w.count.Text(common(head[i], before[i]))
			return
		case i == 0:
			w.prefix += w.count.Tools(req.Tools)
		default:
			w.prefix += w.count.Message(&req.Messages[i-1])
		}
	}
}

// common is the text with which two texts begin, less the borders of a message around it.
func common(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	_, text, _ := strings.Cut(strings.ToValidUTF8(a[:n], ""), `"text":{"text":"`)
	return text
}

// watch follows one turn: what stood in its requests, what was said, what it took.
type watch struct {
	question string
	answer   string // expected, folded
	gold     []*sighting
	handed   []*sighting // the same evidence, as far as the system handed it over
	said     []string
	searches int
	context  map[int]int // tokens of the request, by step
	again    map[int]int // replies that were thrown away, by step

	count         *token.Counter // nil counts nothing
	before        []string       // functions and messages of the last request
	prefix        int
	input, output int
	bill          *bill
	steps         int
	stop          memgpt.StopReason
	failure       string
	lookup        Lookup
	pressure      Pressure
	live          bool // the agent held the conversation itself, so that what it said there is evidence
}

func newWatch(q *Question) *watch {
	w := &watch{question: q.Text, answer: fold(q.Answer), context: map[int]int{}, again: map[int]int{}, bill: new(bill)}
	for _, g := range q.Gold {
		runes := []rune(g.Text)
		w.gold = append(w.gold, &sighting{Evidence: g, runes: runes})
		w.handed = append(w.handed, &sighting{Evidence: g, runes: runes})
	}
	return w
}

// update takes in what the kernel tells.
func (w *watch) update(u memgpt.Update) {
	w.pressure.add(u)
	switch u := u.(type) {
	case memgpt.Spoke:
		w.said = append(w.said, u.Text)
	case memgpt.StepDiscarded:
		w.again[u.Step]++
	case memgpt.StepCommitted:
		if u.Step > 0 && u.Context > 0 {
			w.context[u.Step] = u.Context
		}
		for _, e := range u.Entries {
			for _, c := range e.Message.Calls() {
				if searches(c.Name) {
					w.searches++
				}
			}
			if res, ok := e.Message.Result(); ok {
				w.hits(res)
			}
		}
	}
}

// hits notes which evidence a search brought, whether or not a request was still to show it.
func (w *watch) hits(res memgpt.Result) {
	if !searches(res.Name) || res.Failed {
		return
	}
	for _, q := range quotes(res.Text) { // as it is stored, without the envelope of a request
		for _, g := range w.gold {
			g.found = g.found || g.ID == q.ID
		}
	}
}

// allShown reports whether all evidence was in context.
func (w *watch) allShown() bool { return shownOf(w.gold) == len(w.gold) }

// lookUp notes which evidence the store has.
func (w *watch) lookUp(ctx context.Context, s store.Store, agent string) error {
	for _, g := range w.gold {
		entries, err := s.EntriesByID(ctx, "", agent, []string{g.ID})
		if err != nil {
			return err
		}
		passages, err := s.Passages(ctx, "", agent, []string{g.ID})
		if err != nil {
			return err
		}
		g.stored = len(entries) == 1 && entries[0].Message.Said() == g.Text || len(passages) == 1 && passages[0].Text == g.Text
	}
	return nil
}

// searches names the functions that look for stored texts; memory_read shows what was found already.
func searches(name string) bool {
	return name == "conversation_search" || name == "archival_memory_search"
}

// shownOf counts the pieces of evidence that were shown.
func shownOf(gold []*sighting) (n int) {
	for _, g := range gold {
		if g.shown() {
			n++
		}
	}
	return n
}

// request looks for evidence in a compiled prompt.
func (w *watch) request(req *memgpt.Request) {
	for i := range req.Messages {
		switch m := &req.Messages[i]; m.Role {
		case memgpt.RoleUser:
			w.queued(m.Said())
		case memgpt.RoleAssistant:
			w.recalled(m.Said())
		case memgpt.RoleTool:
			if res, ok := m.Result(); ok {
				w.quoted(res.Text)
			}
		}
	}
}

// envelope is what the queue's entries are wrapped in.
type envelope struct {
	Type    memgpt.EventType `json:"type"`
	Message string           `json:"message"`
	Cut     bool             `json:"cut"`
	ID      string           `json:"id"`
}

// queued looks at an entry of the queue: evidence that stands there as the message that it is, or quoted by the system.
func (w *watch) queued(text string) {
	var e envelope
	if json.Unmarshal([]byte(text), &e) != nil || e.Message == w.question {
		return
	}
	switch {
	case e.Type == memgpt.EventPrefetch:
		w.lines(e.Message, w.gold)
		w.lines(e.Message, w.handed)
	case e.Type != memgpt.EventUser && e.Type != memgpt.EventAgent:
	case e.Cut:
		w.piece(quote{ID: e.ID, Text: e.Message}, w.gold)
	default:
		for _, g := range w.gold {
			if g.Text == e.Message {
				g.add(0, e.Message)
			}
		}
	}
}

// recalled looks at what the agent said in a conversation that it held itself, but not at what it has said in this turn.
func (w *watch) recalled(text string) {
	if !w.live || len(w.said) > 0 {
		return
	}
	for _, g := range w.gold {
		if g.Text == text {
			g.add(0, text)
		}
	}
}

// quoted looks at the result of a function.
func (w *watch) quoted(text string) {
	w.lines(resultText(text), w.gold)
}

// resultText is what a function brought; "" where it failed.
func resultText(text string) string {
	var e struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(text), &e) != nil || e.Status != "OK" {
		return ""
	}
	return e.Message
}

// quote is a line in which search and reading show a stored text, or a piece of it from a character on.
type quote struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Offset int    `json:"offset"`
}

func (w *watch) lines(text string, gold []*sighting) {
	for _, q := range quotes(text) {
		for _, g := range gold {
			g.found = g.found || g.ID == q.ID
		}
		w.piece(q, gold)
	}
}

// quotes returns the lines of a text that quote stored texts.
func quotes(text string) (list []quote) {
	for line := range strings.Lines(text) {
		var q quote
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &q) == nil {
			list = append(list, q)
		}
	}
	return list
}

func (w *watch) piece(q quote, gold []*sighting) {
	for _, g := range gold {
		if g.ID == q.ID {
			g.add(q.Offset, q.Text)
			g.answered = g.answered || w.answer != "" && strings.Contains(fold(q.Text), w.answer)
		}
	}
}

// sighting is what was shown of one piece of evidence.
type sighting struct {
	Evidence
	runes    []rune
	spans    [][2]int // in characters
	answered bool     // a piece held the expected answer
	stored   bool     // the store has it
	found    bool     // a search or the system brought it, at least in part
}

// add notes that text, which stands in the evidence from a character on, was shown. What stands elsewhere is no quotation.
func (g *sighting) add(from int, text string) {
	piece := []rune(text)
	if to := from + len(piece); from >= 0 && to <= len(g.runes) && slices.Equal(g.runes[from:to], piece) {
		g.spans = append(g.spans, [2]int{from, to})
	}
}

// shown reports whether all of the text was shown, or the piece with the answer.
func (g *sighting) shown() bool {
	if len(g.spans) == 0 {
		return false
	}
	slices.SortFunc(g.spans, func(a, b [2]int) int { return a[0] - b[0] })
	reach := 0
	for _, s := range g.spans {
		if s[0] > reach {
			break
		}
		reach = max(reach, s[1])
	}
	return reach == len(g.runes) || g.answered
}
