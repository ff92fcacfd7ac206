package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"memgpt"
	"memgpt/tool"
)

// Prefetch is the "reminder" reading of the paper's interrupts: when a message of a user comes, the system looks through
// recall and archive itself and hands over what it finds in one entry of its own, right before the message. The entry is
// appended once and never changed, so that the prompt's prefix stays. It is not indexed, not folded into the summary, and
// leaves the queue with the message that it serves.

// Bounds of what is looked up.
const (
	prefetchBudget = 1000            // tokens a turn where the agent sets none
	prefetchShare  = 0.4             // of the room that the fixed part leaves, at most
	prefetchWait   = 2 * time.Second // for the search; then the turn goes on without
	prefetchLeast  = 120             // tokens under which there is room for no hit
	prefetchText   = 1500            // bytes of each end of a message by which is searched
)

// noRoom is why nothing is handed over where neither window nor budget leave room for a hit.
const noRoom = "no room in window or budget"

// handing is what a run knows of its turn's prefetch.
type handing struct {
	handed bool            // something was handed over before the model's first reply
	record *searchRecord   // of the model, in mode auto and where the message needs a look; else nil
	used   map[string]bool // texts handed over that the model used
}

// prefetches reports whether the system may look things up in this turn.
func (r *run) prefetches() bool {
	mode := r.st.Agent.Prefetch.Mode
	return r.userTurn() && (mode == memgpt.PrefetchOn || mode == memgpt.PrefetchAuto)
}

// handOver looks for what the turn's message leans on and puts what is found right before it. It never fails: without
// hits, and where the search fails, the turn goes on as it is. A turn whose message was taken in by an earlier run has
// what that run handed over.
func (r *run) handOver(ctx context.Context) {
	if r.w.Event.Type == memgpt.EventUser {
		r.handOverFor(ctx, &r.w.Event)
	}
}

// handOverFor does so for one message of a user, the turn's own or one that it takes in, which is the queue's last entry.
// What was found for an earlier message of the turn stays in the turn's record, and what is found now is added.
func (r *run) handOverFor(ctx context.Context, ev *memgpt.Event) {
	if !r.prefetches() {
		return
	}
	text := ev.Message.Said()
	why := prefetchSilence(text)
	if why == "" {
		if r.handing.record == nil {
			r.readSearchRecord(ctx)
		}
		why = r.mayHandOver()
	}
	at := len(r.st.Queue) - 1
	if at < 0 || !r.isFreshEvent(&r.st.Queue[at]) {
		r.handing.handed = r.turn.Prefetch != nil && len(r.turn.Prefetch.Hits) > 0
		return
	}
	if p := r.turn.Prefetch; p == nil {
		r.turn.Prefetch = &memgpt.Prefetched{Why: why}
	} else if why != "" && len(p.Hits) == 0 {
		own := *p
		own.Why, own.Query = why, ""
		r.turn.Prefetch = &own
	}
	if why != "" {
		return
	}
	if e, ok := r.lookUp(ctx, text, handedHead); ok {
		r.handing.handed = true
		e.Step = 0
		r.insert(at, e)
	}
}

// lookUp searches for a text and returns an entry with what it found, and tells the turn's record of it. The entry begins
// with head. Where nothing is found, the record keeps the words of an earlier look that found something.
func (r *run) lookUp(ctx context.Context, text, head string) (e memgpt.Entry, ok bool) {
	done := *r.turn.Prefetch // what was committed is not changed
	r.turn.Prefetch = &done
	before := done
	text = endsOf(text, prefetchText)
	done.Query, done.Why = text, ""
	defer func() {
		if !ok && len(done.Hits) > 0 {
			done.Query, done.Why = before.Query, before.Why
		}
	}()
	limit, start := r.prefetchLeft(), r.k.cfg.Now()
	if limit < prefetchLeast {
		done.Why = noRoom
		return e, false
	}
	hits, err := r.lookInto(ctx, text, limit)
	done.Millis += int(r.k.cfg.Now().Sub(start).Milliseconds())
	if err != nil {
		if ctx.Err() == nil {
			r.warnPrefetch(err)
		}
		done.Why = "the search failed"
		return e, false
	}
	if len(hits) == 0 {
		done.Why = "nothing found"
		return e, false
	}
	e, shown, size := r.handedEntry(hits, text, head, limit)
	if len(shown) == 0 {
		done.Why = noRoom
		return e, false
	}
	for i := range shown {
		h := &shown[i]
		done.Hits = append(slices.Clip(done.Hits), memgpt.PrefetchHit{ID: h.ID, Kind: h.Kind, Score: h.Score, Why: handedWhy(h.Parts)})
	}
	done.Tokens += size
	r.emit(memgpt.Handed{Hits: len(shown), Tokens: size})
	return e, true
}

// endsOf returns a text's beginning and its end, at most so many bytes of each: what a long message asks stands there.
func endsOf(text string, bytes int) string {
	if len(text) <= 2*bytes {
		return text
	}
	tail := text[len(text)-bytes:]
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return memgpt.CutText(text, bytes) + "\n" + tail
}

// warnPrefetch tells once a turn that nothing could be looked up.
func (r *run) warnPrefetch(err error) {
	if slices.Contains(r.turn.Flags, "prefetch_failed") {
		return
	}
	r.flag("prefetch_failed")
	r.emit(memgpt.Warned{Code: "prefetch_failed", Text: "nothing was looked up for the message, and the turn goes on without: " + err.Error()})
}

// prefetchLeft is how many tokens may still be handed over in the turn, by the counter's encoding: a second look has what
// the first one left.
func (r *run) prefetchLeft() int {
	budget := r.st.Agent.Prefetch.Budget
	if budget <= 0 {
		budget = prefetchBudget
	}
	return int(min(float64(budget), prefetchShare*float64(r.win.room()))/r.factor()) - r.turn.Prefetch.Tokens
}

// lookInto asks the searcher, as the agent's own search does, for as many hits as could fit.
func (r *run) lookInto(ctx context.Context, text string, limit int) ([]tool.Hit, error) {
	ctx, cancel := context.WithTimeout(ctx, prefetchWait)
	defer cancel()
	q := tool.Query{Text: text, Exclude: r.idsInContext(), Size: min(max(limit/20, 5), 100), Explain: true}
	if age := r.st.Agent.Prefetch.Age; age > 0 {
		q.From = r.k.cfg.Now().Add(-age)
	}
	hits, err := (&memory{run: r}).Search(ctx, q)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the search took more than %v", prefetchWait)
	}
	return hits.List, err
}

// idsInContext returns the ids of what the model has in front of it: entries that are shown whole, and what the entries of
// the queue quote.
func (r *run) idsInContext() []string {
	var ids []string
	v := r.view()
	for i := range r.st.Queue {
		e := &r.st.Queue[i]
		if v.size(e, 1); e.Tokens <= v.caps.of(e, 1) {
			ids = append(ids, e.ID)
		}
		ids = append(ids, r.quotedIDs(e)...)
	}
	if a := r.st.Asked; a != nil {
		ids = append(ids, a.ID)
	}
	return ids
}

// quotedIDs returns the ids of stored texts that an entry quotes.
func (r *run) quotedIDs(e *memgpt.Entry) (ids []string) {
	for _, p := range e.Message.Parts {
		switch p := p.(type) {
		case memgpt.Quotes:
			ids = append(ids, p.IDs...)
		case memgpt.Result:
			if t := r.ts.find(p.Name); t == nil || !t.Search || p.Failed {
				continue
			}
			for line := range strings.Lines(p.Text) {
				var hit struct{ ID string }
				if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &hit) == nil && hit.ID != "" {
					ids = append(ids, hit.ID)
				}
			}
		}
	}
	return ids
}

// handedWhy lists the parts of a score in short: "words 3.1, cosine 0.84".
func handedWhy(parts []tool.Part) string {
	var list []string
	for _, p := range parts {
		if p.Value != 0 {
			list = append(list, p.Name+" "+strconv.FormatFloat(p.Value, 'g', 3, 64))
		}
	}
	return strings.Join(list, ", ")
}
