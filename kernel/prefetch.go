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

	"memgpt"
	"memgpt/tool"
)

// Prefetch is the "reminder" reading of the paper's interrupts: when a message of a user comes, the system looks through
// recall and archive itself and hands over what it finds in one entry of its own, right before the message. The entry is
// appended once and never changed, so that the prompt's prefix stays. It is not indexed, not folded into the summary, and
// leaves the queue with the message that it serves.

// Bounds of what is looked up.
const (
	prefetchBudget = 1000            // tokens of an entry where the agent sets none
	prefetchShare  = 0.4             // of the room that the fixed part leaves, at most
	prefetchWait   = 2 * time.Second // for the search; then the turn goes on without
	prefetchLeast  = 80              // tokens under which nothing is worth handing over
)

// handing is what a run knows of its turn's prefetch.
type handing struct {
	wants  bool // the message needs a look at what is stored
	handed bool // something was handed over before the model's first reply
	record *searchRecord
}

// prefetches reports whether the system may look things up in this turn.
func (r *run) prefetches() bool {
	mode := r.st.Agent.Prefetch.Mode
	return r.userTurn() && (mode == memgpt.PrefetchOn || mode == memgpt.PrefetchAuto)
}

// handOver looks for what a user's message leans on and puts what is found right before it. It never fails: without
// hits, and where the search fails, the turn goes on as it is.
func (r *run) handOver(ctx context.Context) {
	if !r.prefetches() {
		return
	}
	at := len(r.st.Queue) - 1
	fresh := at >= 0 && r.isFreshEvent(&r.st.Queue[at])
	text := r.w.Event.Message.Said()
	why := prefetchSilence(text)
	r.handing.wants = why == ""
	if r.handing.wants {
		r.readSearchRecord(ctx)
	}
	if !fresh { // an earlier run of the turn did all this
		r.handing.handed = r.turn.Prefetch != nil && len(r.turn.Prefetch.Hits) > 0
		return
	}
	r.turn.Prefetch = &memgpt.Prefetched{Why: why}
	if why == "" && !r.handing.record.on() {
		r.turn.Prefetch.Why = "the model's record does not show that it searches too little"
		return
	}
	if why != "" {
		return
	}
	e, ok := r.lookUp(ctx, text)
	if !ok {
		return
	}
	r.handing.handed = true
	e.Step = 0
	r.insert(at, e)
}

// lookUp searches for a text and returns an entry with what it found, and tells the turn's record of it.
func (r *run) lookUp(ctx context.Context, text string) (memgpt.Entry, bool) {
	start, done := r.k.cfg.Now(), r.turn.Prefetch
	own := *done
	done = &own // what was committed is not changed
	r.turn.Prefetch = done
	done.Query, done.Why = text, ""
	limit := r.prefetchLimit()
	if limit < prefetchLeast {
		done.Why = "no room in the window"
		return memgpt.Entry{}, false
	}
	hits, err := r.lookInto(ctx, text, limit)
	done.Millis += int(r.k.cfg.Now().Sub(start).Milliseconds())
	if err != nil {
		if ctx.Err() == nil {
			r.flag("prefetch_failed")
			r.emit(memgpt.Warned{Code: "prefetch_failed", Text: "nothing was looked up for the message, and the turn goes on without: " + err.Error()})
		}
		done.Why = "the search failed"
		return memgpt.Entry{}, false
	}
	if len(hits) == 0 {
		done.Why = "nothing found"
		return memgpt.Entry{}, false
	}
	e, shown, size := r.handedEntry(hits, text, limit)
	if len(shown) == 0 {
		done.Why = "no room in the window"
		return memgpt.Entry{}, false
	}
	for i := range shown {
		h := &shown[i]
		done.Hits = append(slices.Clip(done.Hits), memgpt.PrefetchHit{ID: h.ID, Kind: h.Kind, Score: h.Score, Why: handedWhy(h.Parts)})
	}
	done.Tokens += size
	r.emit(memgpt.Handed{Hits: len(shown), Tokens: size})
	return e, true
}

// prefetchLimit is how many tokens an entry may take, by the counter's encoding.
func (r *run) prefetchLimit() int {
	budget := r.st.Agent.Prefetch.Budget
	if budget <= 0 {
		budget = prefetchBudget
	}
	return int(min(float64(budget), prefetchShare*float64(r.win.room())) / r.factor())
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
