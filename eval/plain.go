package eval

import (
	"context"
	_ "embed" // the instructions
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/tool"
)

// The baselines. Each puts what it has of the material into the head of one prompt and asks one model once, without
// functions: it has no memory that it could write, and no second look. They share the window's arithmetic, the counter and
// the measures with the agent.

//go:embed prompts/plain.txt
var plainPrompt string

// contextOpen and contextClose enclose the material in a baseline's prompt. It stands there a text a line.
const (
	contextOpen  = "<context>\n"
	contextClose = "</context>"
)

// plainText is a stored text as a baseline's prompt shows it.
type plainText struct {
	id   string
	head string // its day and speaker; "" of a passage
	text string // on one line
}

// oneLine is a text with runs of space as one, so that it stands on one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func plainLine(l kernel.Line) plainText {
	day := "undated"
	if !l.Time.IsZero() {
		day = l.Time.Format(time.DateOnly)
	}
	head := "[" + day + "] "
	if l.Speaker != "" {
		head += oneLine(l.Speaker) + ": "
	}
	return plainText{l.ID, head, oneLine(l.Text)}
}

// material is all that the case has, in the order of its file.
func (l *loader) material() []plainText {
	list := make([]plainText, 0, len(l.c.Passages)+len(l.c.Lines))
	for _, p := range l.c.Passages {
		list = append(list, plainText{id: p.ID, text: oneLine(p.Text)})
	}
	for _, line := range l.c.Lines {
		list = append(list, plainLine(line))
	}
	return list
}

// byID returns the texts of those ids, in their order.
func byID(list []plainText, ids []string) (some []plainText) {
	at := make(map[string]int, len(list))
	for i, t := range list {
		at[t.id] = i
	}
	for _, id := range ids {
		if i, ok := at[id]; ok {
			some = append(some, list[i])
		}
	}
	return some
}

// askPlain puts one question to a baseline. k bounds what ModeRAG takes of its search.
func (l *loader) askPlain(ctx context.Context, q *Question, k int, to *bill) (Record, error) {
	start := l.r.now()
	watch := newWatch(q)
	watch.count, watch.bill = l.r.counter, to
	if err := watch.lookUp(ctx, l.store, l.agent.ID); err != nil {
		return Record{}, err
	}
	for _, g := range watch.gold {
		g.runes = []rune(oneLine(g.Text))
	}
	req, err := l.plainRequest(ctx, q, k, watch)
	if err != nil {
		return Record{}, err
	}
	if err := watch.answerPlain(ctx, l.r, req); err != nil {
		return Record{}, err
	}
	rec := l.record(q, watch)
	if l.r.cfg.Mode == ModeRAG {
		rec.K = k
	}
	rec.Seconds = l.r.since(start)
	return rec, nil
}

// answerPlain asks the model. Its failure is the question's, the context's end is the run's.
func (w *watch) answerPlain(ctx context.Context, r *runner, req *memgpt.Request) error {
	w.input = r.requestSize(req)
	m := &watched{Model: r.cfg.Model, run: r, watch: w}
	reply, err := m.Generate(ctx, req, nil)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errNotKept):
		return err
	case err != nil:
		w.failure = err.Error()
		return nil
	}
	w.steps = 1
	if text := strings.TrimSpace(memgpt.CleanText(reply.Message.Said())); text != "" {
		w.said = append(w.said, text)
	}
	return nil
}

// plainRequest composes the one request of a baseline, and tells the watch what of the evidence stands in it.
func (l *loader) plainRequest(ctx context.Context, q *Question, k int, w *watch) (*memgpt.Request, error) {
	mode := l.r.cfg.Mode
	if mode == ModeSummary {
		text, err := l.summary(ctx, w.bill)
		if err != nil {
			return nil, err
		}
		w.shownIn(text)
		return l.wrap(q, oneLine(text)+"\n"), nil
	}
	budget := l.budget(q)
	list, err := l.pickPlain(ctx, q, k, w)
	if err != nil {
		return nil, err
	}
	for {
		shown := l.r.fit(mode, list, budget)
		var b strings.Builder
		for _, t := range shown {
			b.WriteString(t.head + t.text + "\n")
		}
		req := l.wrap(q, b.String())
		over := l.r.requestSize(req) - l.r.usable()
		if over <= 0 || len(shown) == 0 {
			w.shownLines(req, shown)
			return req, nil
		}
		budget -= over // counts of parts don't quite add up
	}
}

// pickPlain returns the texts that a baseline would show if all had room, those first that matter most to it.
func (l *loader) pickPlain(ctx context.Context, q *Question, k int, w *watch) ([]plainText, error) {
	all := l.material()
	switch l.r.cfg.Mode {
	case ModeOracle:
		ids := make([]string, 0, len(q.Gold))
		for _, t := range all { // in the order of the file
			if slices.ContainsFunc(q.Gold, func(g Evidence) bool { return g.ID == t.id }) {
				ids = append(ids, t.id)
			}
		}
		return byID(all, ids), nil
	case ModeRAG:
		ids, err := l.searchOnce(ctx, q, k)
		w.searches++
		for _, g := range w.gold {
			g.found = slices.Contains(ids, g.ID)
		}
		return byID(all, ids), err
	}
	return all, nil
}

// searchOnce searches the store once with the question's own words, as an agent would search, and returns the ids of the
// first k.
func (l *loader) searchOnce(ctx context.Context, q *Question, k int) ([]string, error) {
	now := func() time.Time { return l.askedAt(q) }
	var off []string
	if l.r.suite.Weak {
		off = []string{"floor"}
	}
	s, err := l.searcher(l.store, now, off...)
	if err != nil {
		return nil, err
	}
	hits, err := s.Search(ctx, tool.Query{Owner: l.agent.ID, Text: q.Text, Size: k, Now: now()})
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(hits.List))
	for _, h := range hits.List {
		ids = append(ids, h.ID)
	}
	return ids, nil
}

// wrap makes a request of a material and a question.
func (l *loader) wrap(q *Question, material string) *memgpt.Request {
	instructions := strings.TrimSpace(plainPrompt)
	if l.c.Plain != "" {
		instructions += "\n" + l.c.Plain
	}
	system := instructions + "\n" + contextOpen + material + contextClose + "\nIt is now " + l.askedAt(q).Format("2006-01-02 15:04") + "."
	return &memgpt.Request{Choice: memgpt.ChoiceNone, MaxTokens: l.r.reserve(), Window: l.r.cfg.Window, Messages: []memgpt.Message{
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, system),
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, q.Text)}}
}

// askedAt is when a question is asked.
func (l *loader) askedAt(q *Question) time.Time {
	if q.Time.IsZero() {
		return l.c.Now
	}
	return q.Time
}

// reserve is what is kept of the window for a reply, and usable the rest, as for an agent (kernel).
func (r *runner) reserve() int { return min(r.cfg.Window/8, 4096) }
func (r *runner) usable() int  { return r.cfg.Window - r.reserve() }

// budget is how many tokens of material fit beside a question.
func (l *loader) budget(q *Question) int { return l.r.usable() - l.r.requestSize(l.wrap(q, "")) }

// requestSize counts a request as the kernel does.
func (r *runner) requestSize(req *memgpt.Request) int {
	n := 3 // what stands before a reply
	for i := range req.Messages {
		n += r.counter.Message(&req.Messages[i])
	}
	if !r.cfg.Model.Capabilities().StandIn {
		n = int(float64(n)*r.counter.Factor(r.cfg.Model.Capabilities().Name)) + 1
	}
	return n
}

// size counts a text as a line of a prompt.
func (r *runner) size(t plainText) int { return r.counter.Text(t.head+t.text) + 1 }

// fit returns what fits a budget of tokens. A sliding window drops from the front, whole texts. All else is cut at the end,
// but for what a search brought and for given evidence: those texts are shortened, the longest first, until all fit.
func (r *runner) fit(mode Mode, list []plainText, budget int) []plainText {
	switch mode {
	case ModeSliding:
		for i := len(list); ; i-- {
			if i == 0 {
				return list
			}
			if budget -= r.size(list[i-1]); budget < 0 {
				return list[i:]
			}
		}
	case ModeRAG, ModeOracle:
		return r.shortenAll(list, budget)
	}
	for i, t := range list {
		size := r.size(t)
		if size <= budget {
			budget -= size
			continue
		}
		if t, ok := r.cutPlain(t, budget); ok {
			return append(slices.Clone(list[:i]), t)
		}
		return list[:i]
	}
	return list
}

// shortenAll shortens the longest texts to one bound in tokens, the largest at which all fit the budget. Texts of which
// nothing would be left are dropped from the end.
func (r *runner) shortenAll(list []plainText, budget int) []plainText {
	sizes := make([]int, len(list))
	longest := 0
	for i, t := range list {
		sizes[i] = r.size(t)
		longest = max(longest, sizes[i])
	}
	bound := bisect(0, longest, func(bound int) bool {
		sum := 0
		for _, n := range sizes {
			sum += min(n, bound)
		}
		return sum <= budget
	})
	out := make([]plainText, 0, len(list))
	for i, t := range list {
		if sizes[i] <= bound {
			out = append(out, t)
		} else if t, ok := r.cutPlain(t, bound); ok {
			out = append(out, t)
		}
	}
	return out
}

// bisect returns the largest number within low and high that holds, where all up to it do; low if none does.
func bisect(low, high int, holds func(int) bool) int {
	for low < high {
		if mid := (low + high + 1) / 2; holds(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// cutPlain cuts a text so that its line has at most n tokens. It reports false where nothing would be left of it.
func (r *runner) cutPlain(t plainText, n int) (plainText, bool) {
	runes := []rune(t.text)
	keep := bisect(0, len(runes), func(keep int) bool { return r.size(plainText{t.id, t.head, string(runes[:keep])}) <= n })
	t.text = string(runes[:keep])
	return t, keep > 0
}

// shownLines notes the evidence that stands in a request as lines of material.
func (w *watch) shownLines(req *memgpt.Request, shown []plainText) {
	system := req.Messages[0].Said()
	for _, t := range shown {
		if strings.Contains(system, "\n"+t.head+t.text+"\n") {
			w.piece(quote{ID: t.id, Text: t.text}, w.gold)
		}
	}
}

// shownIn notes the evidence that a summary holds: as a whole, or with the expected answer word for word. That is kinder to
// a summary than to an agent, whose own summary doesn't count.
func (w *watch) shownIn(summary string) {
	in := words(summary)
	for _, g := range w.gold {
		if whole := containsWords(in, words(g.Text)); whole || containsWords(in, words(w.answer)) {
			g.add(0, "")
			g.answered = true
		}
	}
}

// SummaryWords bounds the summary in the paper's suite. The paper gives no figure; 100 words is the bound in its authors'
// own prompt for summaries (gpt_summarize, WORD_LIMIT).
const SummaryWords = 100

//go:embed prompts/summary.txt
var summaryPrompt string

// summary folds the case's material into one recursive summary, once for all its questions: each part of it that fits a
// request replaces the summary by a new one. What it cost is no question's, but the run's; of the question's bill it only says
// whether a call was made or refused.
func (l *loader) summary(ctx context.Context, to *bill) (string, error) {
	l.folding.Lock()
	defer l.folding.Unlock()
	if l.folded != nil {
		return *l.folded, nil
	}
	text, rest := "", l.material()
	for len(rest) > 0 {
		req, n := l.foldRequest(text, rest)
		size, own := l.r.requestSize(req), new(bill)
		reply, err := l.r.ask(ctx, l.r.cfg.Model, req, nil, own)
		if to.live = to.live || own.live; err != nil {
			to.refused = own.refused
			return "", err
		}
		l.r.spent(size + l.r.counter.Message(&reply.Message))
		if said := strings.TrimSpace(memgpt.CleanText(reply.Message.Said())); said != "" {
			cut, _ := l.r.cutPlain(plainText{text: said}, l.summaryTokens())
			text = cut.text
		}
		rest = rest[n:]
	}
	l.folded = &text
	return text, nil
}

// summaryWords is the bound of the recursive summary; by default a quarter of what the window leaves.
func (l *loader) summaryWords() int {
	if n := l.r.cfg.SummaryWords; n > 0 {
		return n
	}
	if l.r.suite.Name == SuiteDMR {
		return SummaryWords
	}
	return l.r.usable() / 6
}

// summaryTokens bounds the summary in tokens; a word is taken as a token and a half.
func (l *loader) summaryTokens() int { return l.summaryWords() * 3 / 2 }

// foldRequest asks for the summary of the old one and of as much of the rest as fits; n is how many texts that is.
func (l *loader) foldRequest(old string, rest []plainText) (req *memgpt.Request, n int) {
	system := strings.Replace(strings.TrimSpace(summaryPrompt), "%d", strconv.Itoa(l.summaryWords()), 1)
	if old == "" {
		old = "(none)"
	}
	room := l.r.usable() - l.r.counter.Text(system) - l.r.counter.Text(old) - l.summaryTokens() - 40
	lines := make([]string, 0, len(rest))
	for _, t := range rest {
		if n == 0 {
			t, _ = l.r.cutPlain(t, room-30) // one that is too long for any request would never have its turn
		}
		line := foldLine(t)
		if room -= l.r.counter.Text(line) + 1; room < 0 && n > 0 {
			break
		}
		lines = append(lines, line)
		n++
	}
	body := "Summary so far:\n" + old + "\n\nMessages that come now:\n" + strings.Join(lines, "\n")
	return &memgpt.Request{Purpose: memgpt.PurposeSummary, Choice: memgpt.ChoiceNone, MaxTokens: 2 * l.summaryTokens(), Window: l.r.cfg.Window,
		Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, system),
			memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginSystem, body)}}, n
}

// foldLine is a text in the form in which an agent's own summaries are given what was said.
func foldLine(t plainText) string {
	day, who, ok := strings.Cut(strings.TrimPrefix(t.head, "["), "] ")
	if !ok || day == "undated" {
		day = "unknown"
	}
	if who = strings.TrimSuffix(who, ": "); who == "" {
		who = "user"
	}
	quoted, err := json.Marshal(t.text)
	if err != nil {
		return ""
	}
	return day + " " + who + ": " + string(quoted)
}
