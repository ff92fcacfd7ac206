package host

import (
	"context"
	"iter"
	"slices"
	"sync"

	"memgpt"
)

// reader is a bounded queue of updates between a turn and one who watches. Putting never blocks.
type reader struct {
	mu    sync.Mutex
	queue []memgpt.Update
	max   int
	cut   bool // too slow: nothing more is taken
	over  bool // nothing more will come
	ready chan struct{}
	ended []string // IDs of the turns whose end was told, the newest last; endedKept at most; guarded by Host.mu
}

// endedKept is how many ended turns a reader knows, so that none is told to it twice: somebody may come upon a turn that
// has just ended and have it told anew.
const endedKept = 64

func newReader(max int) *reader { return &reader{max: max, ready: make(chan struct{}, 1)} }

func (r *reader) put(u memgpt.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if len(r.queue) >= r.max {
		r.cut, r.over = true, true
	} else {
		r.queue = append(r.queue, u)
	}
	r.signal()
}

// putOf puts an update of a turn, unless the turn's end was told before.
func (r *reader) putOf(turn string, u memgpt.Update) {
	if slices.Contains(r.ended, turn) {
		return
	}
	r.put(u)
	if _, end := u.(memgpt.TurnEnded); end {
		r.ended = append(r.ended[max(0, len(r.ended)-endedKept+1):], turn)
	}
}

func (r *reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.signal()
}

func (r *reader) signal() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// take returns what is queued, and whether more may come.
func (r *reader) take() (updates []memgpt.Update, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	updates, r.queue = r.queue, nil
	if r.cut {
		updates = append(updates, memgpt.Warned{Code: WarnCutOff, Text: "updates came faster than they were read; begin anew"})
		r.cut = false
	}
	return updates, !r.over
}

// each yields updates as they come, until the end, ctx's end or a yield that returns false.
func (r *reader) each(ctx context.Context, yield func(memgpt.Update) bool) {
	for more := true; more; {
		var updates []memgpt.Update
		updates, more = r.take()
		for _, u := range updates {
			if ctx.Err() != nil || !yield(u) {
				return
			}
		}
		if !more {
			return
		}
		select {
		case <-r.ready:
		case <-ctx.Done():
			return
		}
	}
}

// Watch yields the updates of all turns of a conversation that this host runs from the call on, until ctx ends, the host
// closes, or the reader lags too far (WarnCutOff). Each turn's updates stand between its TurnStarted and TurnEnded; a turn
// that another took in has none but memgpt.TookIn. Of turns of other processes those are told, at their end, that
// somebody awaits here.
// The reader is there when Watch returns; its iterator must be run, once.
func (h *Host) Watch(ctx context.Context, tenant, thread string) iter.Seq[memgpt.Update] {
	key, r := convKey{tenant, thread}, newReader(h.cfg.Buffer)
	h.mu.Lock()
	if h.closing {
		r.end()
	}
	if h.watchers[key] == nil {
		h.watchers[key] = map[*reader]struct{}{}
	}
	h.watchers[key][r] = struct{}{}
	h.mu.Unlock()
	return func(yield func(memgpt.Update) bool) {
		defer h.unwatch(key, r)
		r.each(ctx, yield)
	}
}

func (h *Host) unwatch(key convKey, r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers[key], r)
	if len(h.watchers[key]) == 0 {
		delete(h.watchers, key)
	}
}

// emit hands an update of a turn to all who watch it.
func (h *Host) emit(t *Turn, u memgpt.Update) {
	if !t.publish(u) {
		return
	}
	if spoke, ok := u.(memgpt.Spoke); ok && spoke.Saying != "" {
		h.wakeCourier()
	}
	if h.cfg.Told != nil {
		h.cfg.Told(t.conv.tenant, t.conv.thread, u)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.watchers[t.conv.key()] {
		r.putOf(t.ID, u)
	}
}

// finish ends a turn for all who wait for it.
func (h *Host) finish(t *Turn, record memgpt.Turn, err error) {
	if err == nil {
		h.emit(t, memgpt.TurnStarted{Turn: record})
		h.emit(t, memgpt.TurnEnded{Turn: record})
	}
	h.mu.Lock()
	if err == nil {
		t.conv.last = t.ID
	}
	if h.turns[t.ID] == t {
		delete(h.turns, t.ID)
		delete(h.elsewhere, t.ID)
		t.conv.handles--
		h.unwatchElsewhere(t.conv)
	}
	h.mu.Unlock()
	t.close(record, err)
}
