package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// flush evicts the oldest whole steps down to the target, folds them and what was set aside before into the recursive
// summary, and commits. A summary that can't be had loses nothing: the messages leave with a note, and the fold is tried
// again later.
func (r *run) flush(ctx context.Context) error {
	l := r.measure()
	total := tokens(l.total, r.factor())
	if !r.st.Thread.Alerted && total <= r.win.alert { // only what the model moved out without a summary, or a fold to make up for
		return r.flushOldest(ctx, l, 0)
	}
	longest := outsideTokens
	if !r.k.cfg.NoSummary {
		longest += r.win.summaryCap()
	}
	grow := max(longest-tokens(l.summary, r.factor()), 0)
	return r.flushOldest(ctx, l, r.oldest(l, total+grow-r.win.target, r.evictable()))
}

// flushOldest flushes the first n entries of the queue.
func (r *run) flushOldest(ctx context.Context, l layout, n int) error {
	r.folded = true
	th := &r.st.Thread
	aside, err := r.asideEntries(ctx)
	if err != nil {
		return err
	}
	gone := r.leave(n)
	if len(aside)+len(gone) == 0 {
		return nil
	}
	failed := ""
	if r.k.cfg.NoSummary {
		th.Folded = th.Head
	} else if failed, err = r.foldIn(ctx, append(aside, gone...)); err != nil {
		return err
	}
	if err := r.restate(ctx, failed); err != nil {
		return err
	}
	th.Alerted = r.total() > r.win.alert
	r.pend.flushed = append(r.pend.flushed, memgpt.Flushed{Messages: len(gone), Tokens: tokens(sum(l.queue[:n]), r.factor()),
		Failed: failed})
	if failed != "" {
		r.flag("summary_failed")
		r.emit(memgpt.Warned{Code: "summary_failed", Text: "messages left main context without a summary; it will be tried again: " + failed})
	}
	return r.commitPart(ctx)
}

// foldIn folds entries that have left the queue into the recursive summary, or says why it could not.
func (r *run) foldIn(ctx context.Context, gone []memgpt.Entry) (failed string, err error) {
	th := &r.st.Thread
	text, failed := r.fold(ctx, th.Summary.Text, gone)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if failed == "" {
		th.Summary.Text, th.Folded = text, th.Head
		th.Summary.Covers += len(gone)
	}
	return failed, nil
}

// outsideTokens is what the statement of what lies outside is taken to need.
const outsideTokens = 100

func sum(ns []int) (total int) {
	for _, n := range ns {
		total += n
	}
	return total
}

// asideEntries reads the entries that left the queue and are not in the summary, less imported ones: no model is asked
// about those.
func (r *run) asideEntries(ctx context.Context) ([]memgpt.Entry, error) {
	th := &r.st.Thread
	if th.Folded >= th.Head {
		return nil, nil
	}
	aside, err := r.k.cfg.Store.Entries(ctx, store.EntryRange{Tenant: th.Tenant, Thread: th.ID, After: th.Folded, Before: th.Head + 1})
	if err != nil {
		return nil, fmt.Errorf("read the messages that were set aside: %w", err)
	}
	return slices.DeleteFunc(aside, func(e memgpt.Entry) bool { return e.Message.Origin == memgpt.OriginImport }), nil
}

// restate writes anew what lies outside main context, with what leaves by the commit under way.
func (r *run) restate(ctx context.Context, failed string) error {
	th := &r.st.Thread
	o, err := r.k.cfg.Store.Outside(ctx, th.Tenant, r.st.Agent.ID, th.ID)
	if err != nil {
		return fmt.Errorf("count what lies outside main context: %w", err)
	}
	for i := range r.w.State.Queue {
		if e := &r.w.State.Queue[i]; e.Seq <= th.Head {
			hide(&o, e.Time)
		}
	}
	th.Summary.Outside, th.Summary.Time, th.Summary.Failed = o, r.k.cfg.Now(), failed
	return nil
}

// hide counts one more hidden message.
func hide(o *memgpt.Outside, at time.Time) {
	o.Hidden++
	if at.IsZero() {
		return
	}
	if o.First.IsZero() || at.Before(o.First) {
		o.First = at
	}
	if at.After(o.Last) {
		o.Last = at
	}
}

// maxParts bounds the requests of one fold.
const maxParts = 16

// fold returns the new recursive summary of the old one and of entries, in parts where they do not fit the summarizer's
// window; or why there is none.
func (r *run) fold(ctx context.Context, old string, entries []memgpt.Entry) (text, failed string) {
	m, err := r.k.cfg.Summarizer(r.st.Agent)
	if err != nil {
		return "", err.Error()
	}
	f := folder{r: r, model: m, name: m.Capabilities().Name, window: r.summarizerWindow(m), margin: 1.05}
	if m == r.model {
		f.name = r.name
	}
	r.folds = f.name
	r.calibrate(ctx, f.name)
	text, err = f.fold(ctx, old, entries)
	if memgpt.CodeOf(err) == memgpt.CodeModelOverflow && ctx.Err() == nil {
		f.margin = 1.25 // the count was corrected, by a text of other words
		text, err = f.fold(ctx, old, entries)
	}
	if err != nil {
		return "", err.Error()
	}
	return withSearchWords(text, entries), ""
}

func (r *run) summarizerWindow(m memgpt.Model) int {
	if w := m.Capabilities().Window; w > 0 && m != r.model {
		return w
	}
	return r.window
}

// folder asks one model for summaries.
type folder struct {
	r      *run
	model  memgpt.Model
	name   string // of the model, for the counter's calibration
	window int
	margin float64 // on counts, since lines are counted one by one
}

// fold folds entries into the old summary, in as many requests as it takes.
func (f *folder) fold(ctx context.Context, text string, entries []memgpt.Entry) (string, error) {
	lines := f.lines(entries)
	var err error
	for part := 0; len(lines) > 0; part++ {
		n := f.take(text, lines)
		if part == maxParts-1 && n < len(lines) {
			lines = lines[len(lines)-f.takeLast(text, lines):]
			n = len(lines)
		}
		if text, err = f.ask(ctx, text, lines[:n]); err != nil {
			return "", err
		}
		lines = lines[n:]
	}
	return text, nil
}

func (f *folder) cap() int { return max(f.r.win.summaryCap()-20, 40) }

// system is the summarizer's instructions; a word is taken as a token and a half.
func (f *folder) system() string { return fmt.Sprintf(prompt("summary"), f.cap()*2/3) }

// budget is how many counted tokens the lines of one request may take.
func (f *folder) budget(old string) int {
	count := f.r.k.cfg.Counter
	reply := f.maxTokens()
	fixed := count.Text(f.system()) + count.Text(old) + 80
	return int(float64(f.window-reply)/f.factor()) - fixed
}

func (f *folder) maxTokens() int { return min(2*f.cap(), f.window/4) }

func (f *folder) factor() float64 { return f.r.k.cfg.Counter.Factor(f.name) * f.margin }

// take returns how many of the lines fit one request, at least one.
func (f *folder) take(old string, lines []string) int {
	left := f.budget(old)
	for i, line := range lines {
		if left -= f.r.k.cfg.Counter.Text(line) + 1; left < 0 {
			return max(i, 1)
		}
	}
	return len(lines)
}

func (f *folder) takeLast(old string, lines []string) int {
	back := slices.Clone(lines)
	slices.Reverse(back)
	return f.take(old, back)
}

// lines renders entries for the summarizer: what was said, what functions were called with and what they did. Each is
// shortened so that several fit a request.
func (f *folder) lines(entries []memgpt.Entry) []string {
	v := f.r.view()
	limit := max(f.budget("")/6, 32)
	var lines []string
	for i := range entries {
		if line := f.line(&entries[i]); line != "" {
			line, cut := v.prefix(line, limit)
			if cut {
				line += " […]"
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func (f *folder) line(e *memgpt.Entry) string {
	m := &e.Message
	who := string(m.Role)
	if m.Author != "" {
		who = m.Author
	}
	at := calendar.Format(e.Time, f.r.zone) + " "
	switch {
	case m.Type == memgpt.EventAlert || m.Type == memgpt.EventPrefetch:
		return ""
	case m.Role == memgpt.RoleTool:
		res, _ := m.Result()
		if res.Name == memgpt.FuncSendMessage && !res.Failed {
			return ""
		}
		status := "OK"
		if res.Failed {
			status = "Failed"
		}
		return at + "result of " + res.Name + " (" + status + "): " + string(appendString(nil, res.Text))
	case m.Role == memgpt.RoleAssistant:
		return at + f.assistant(m)
	}
	return at + who + ": " + string(appendString(nil, m.Said()))
}

func (f *folder) assistant(m *memgpt.Message) string {
	var parts []string
	if said := m.Said(); said != "" {
		parts = append(parts, "the agent said: "+string(appendString(nil, said)))
	}
	for _, c := range m.Calls() {
		if c.Name != memgpt.FuncSendMessage {
			parts = append(parts, "the agent called "+c.Name+c.Arguments)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "the agent thought: "+string(appendString(nil, m.Thoughts())))
	}
	return strings.Join(parts, "; ")
}

// ask asks for one summary, once more if the reply is no text.
func (f *folder) ask(ctx context.Context, old string, lines []string) (string, error) {
	if old == "" {
		old = "(none)"
	}
	body := "Summary so far:\n" + old + "\n\nMessages that leave now:\n" + strings.Join(lines, "\n")
	req := &memgpt.Request{Purpose: memgpt.PurposeSummary, MaxTokens: f.maxTokens(), Window: f.window, Choice: memgpt.ChoiceNone,
		Session: f.r.st.Thread.ID, Messages: []memgpt.Message{
			memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, f.system()),
			memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginSystem, body)}}
	if f.model == f.r.model {
		req.Model = f.r.st.Agent.Model
	}
	for try := 0; ; try++ {
		reply, err := f.r.metered(ctx, f.model, req, int(float64(f.counted(req))*f.r.k.cfg.Counter.Factor(f.name)), nil)
		f.learn(req, reply, err)
		if err != nil {
			return "", err
		}
		text := strings.TrimSpace(memgpt.CleanText(reply.Message.Said()))
		if text != "" {
			return f.shorten(text), nil
		}
		if try == 1 {
			return "", memgpt.Errorf(memgpt.CodeModelEmpty, "the model gave no text for a summary")
		}
	}
}

// counted is the size of a request.
func (f *folder) counted(req *memgpt.Request) int {
	n := requestTokens
	for i := range req.Messages {
		n += f.r.k.cfg.Counter.Message(&req.Messages[i])
	}
	return n
}

// learn takes from an answer how the model counts.
func (f *folder) learn(req *memgpt.Request, reply *memgpt.Response, err error) {
	overflow := memgpt.CodeOf(err) == memgpt.CodeModelOverflow
	if !overflow && (err != nil || reply.Usage.Input <= 0) {
		return
	}
	counter, counted := f.r.k.cfg.Counter, f.counted(req)
	if overflow {
		f.r.correct(f.name, f.window, counted, err)
	} else if !counter.Truncated(counted, reply.Usage.Input) {
		counter.Observe(f.name, counted, reply.Usage.Input)
	}
}

// shorten cuts a summary that is over its cap. Its last line, the words to search for, stays.
func (f *folder) shorten(text string) string {
	v := f.r.view()
	limit := int(float64(f.cap()) / f.r.factor())
	if v.fits(text, limit) {
		return text
	}
	body, last := text, ""
	if i := strings.LastIndexByte(text, '\n'); i >= 0 && v.fits(text[i:], limit/3) {
		body, last = text[:i], text[i:]
	}
	body, _ = v.prefix(body, limit-v.count.Text(last))
	if i := strings.LastIndexAny(body, ".!?。！？\n"); i > len(body)/2 {
		_, size := utf8.DecodeRuneInString(body[i:])
		body = body[:i+size]
	}
	return body + last
}

// maxSearchWords is how many words a summary without search words of its own is given.
const maxSearchWords = 12

// withSearchWords sees to it that a summary ends with words to search for. Where the model gave none, they are the names,
// numbers and quoted words of what was said.
func withSearchWords(text string, entries []memgpt.Entry) string {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if strings.Contains(strings.ToLower(last), "search") || strings.Contains(last, "搜索") || strings.Contains(last, "検索") {
		return text
	}
	var words []string
	for i := range entries {
		if entries[i].Message.Role != memgpt.RoleTool && entries[i].Message.Role != memgpt.RoleSystem {
			words = salient(words, entries[i].Message.Said())
		}
	}
	if len(words) == 0 {
		return text
	}
	return text + "\nSearch for: " + strings.Join(words, ", ")
}

// salient adds the words of a text that look like names or numbers.
func salient(words []string, text string) []string {
	start := true
	for _, w := range strings.Fields(text) {
		word := strings.TrimFunc(w, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
		first, _ := utf8.DecodeRuneInString(word)
		named := unicode.IsUpper(first) && !start && memgpt.Runes(word) > 1 || unicode.IsDigit(first)
		start = strings.HasSuffix(w, ".") || strings.HasSuffix(w, "!") || strings.HasSuffix(w, "?")
		if named && len(word) <= 40 && len(words) < maxSearchWords && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}
