package host

import (
	"context"
	"iter"
	"sync"
	"time"

	"memgpt"
)

// WarnCutOff is the code of the memgpt.Warned that closes the updates of a reader who was too slow. It may begin anew.
const WarnCutOff = "cut_off"

// compactAt is the number of updates above which the pieces of a streamed reply are joined in a turn's log.
const compactAt = 256

// Turn is a caller's hold on one accepted event: what happens in its turn, and how it ends. It is safe for concurrent use.
type Turn struct {
	ID     string
	Event  string // ID of the event
	Thread string // ID of the conversation

	conv   *conversation
	buffer int
	done   chan struct{}
	due    time.Time // where the event is for later; zero is now

	cancelled bool // guarded by Host.mu, as are the next three
	waits     bool // for answers of other agents
	replaced  bool // another event takes its place
	claimed   bool // somebody finishes it with what the store tells

	mu      sync.Mutex
	log     []memgpt.Update // what a new reader is told first: without the pieces of settled steps
	pieces  int             // Streamed updates at the end of log
	joinAt  int             // length of log at which pieces are joined
	started bool
	ended   bool
	said    []string
	readers map[*reader]struct{}
	record  memgpt.Turn
	err     error
}

func newTurn(c *conversation, id, event string, buffer int) *Turn {
	return &Turn{ID: id, Event: event, Thread: c.thread, conv: c, buffer: buffer, done: make(chan struct{}),
		joinAt: compactAt, readers: map[*reader]struct{}{}}
}

// Wait returns the record of the turn once it ended, also where it failed or was cancelled (see its State). An error says
// that the end is not known: ctx ended, the host closed (ErrStopping), or the store failed for long. The event then
// stays in the inbox.
func (t *Turn) Wait(ctx context.Context) (memgpt.Turn, error) {
	select {
	case <-t.done:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.record, t.err
	case <-ctx.Done():
		return memgpt.Turn{}, context.Cause(ctx)
	}
}

// Said returns what the agent has said to the user in this turn so far.
func (t *Turn) Said() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.said...)
}

// Updates yields the updates of the turn from its start to its end, or until ctx ends. The pieces of steps that were
// committed or thrown away before are left out. A reader that lags too far gets a last memgpt.Warned of code WarnCutOff;
// it may call Updates again. Each call is a reader of its own.
func (t *Turn) Updates(ctx context.Context) iter.Seq[memgpt.Update] {
	return func(yield func(memgpt.Update) bool) {
		past, r := t.subscribe()
		defer t.unsubscribe(r)
		for _, u := range past {
			if ctx.Err() != nil || !yield(u) {
				return
			}
		}
		r.each(ctx, yield)
	}
}

// subscribe returns what has happened and a reader of what will.
func (t *Turn) subscribe() ([]memgpt.Update, *reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := newReader(t.buffer)
	if t.ended {
		r.end()
	} else {
		t.readers[r] = struct{}{}
	}
	return append([]memgpt.Update(nil), t.log...), r
}

func (t *Turn) unsubscribe(r *reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.readers, r)
}

// publish takes an update in and hands it to the readers. It reports false for a second start or end.
func (t *Turn) publish(u memgpt.Update) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	switch u := u.(type) {
	case memgpt.TurnStarted:
		if t.started {
			return false
		}
		t.started = true
	case memgpt.Streamed:
		t.pieces++
	case memgpt.StepCommitted, memgpt.StepDiscarded:
		t.log = t.log[:len(t.log)-t.pieces]
		t.pieces = 0
	case memgpt.Spoke:
		t.said = append(t.said, u.Text)
	case memgpt.TurnEnded:
		t.ended = true
	}
	t.keep(u)
	for r := range t.readers {
		r.put(u)
		if t.ended {
			r.end()
		}
	}
	return true
}

// keep adds an update to the log, in which pieces stay at the end and are joined when they are many.
func (t *Turn) keep(u memgpt.Update) {
	if _, piece := u.(memgpt.Streamed); !piece && t.pieces > 0 {
		at := len(t.log) - t.pieces
		t.log = append(t.log[:at], append([]memgpt.Update{u}, t.log[at:]...)...)
		return
	}
	t.log = append(t.log, u)
	if t.pieces > 0 && len(t.log) >= t.joinAt {
		at := len(t.log) - t.pieces
		joined := joinPieces(t.log[at:])
		t.log, t.pieces = append(t.log[:at:at], joined...), len(joined)
		t.joinAt = max(compactAt, 2*len(t.log))
	}
}

// discard takes back what an attempt streamed and did not commit.
func (t *Turn) discard(reason string) (memgpt.StepDiscarded, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pieces == 0 {
		return memgpt.StepDiscarded{}, false
	}
	last, _ := t.log[len(t.log)-1].(memgpt.Streamed)
	return memgpt.StepDiscarded{Step: last.Step, Reason: reason}, true
}

// logged returns the IDs of the entries, and of the turns taken in, that updates have told of.
func (t *Turn) logged() map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := map[string]bool{}
	for _, u := range t.log {
		switch u := u.(type) {
		case memgpt.StepCommitted:
			for _, e := range u.Entries {
				ids[e.ID] = true
			}
		case memgpt.TookIn:
			ids[u.Turn.ID] = true
		}
	}
	return ids
}

// close ends the turn for all who wait. It reports false when it had ended before.
func (t *Turn) close(record memgpt.Turn, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.done:
		return false
	default:
	}
	t.ended, t.record, t.err = true, record, err
	for r := range t.readers {
		r.end()
	}
	close(t.done)
	return true
}

// joinPieces joins neighbours among the pieces of a reply where they are of one kind.
func joinPieces(pieces []memgpt.Update) []memgpt.Update {
	var out []memgpt.Update
	var run []memgpt.Streamed
	flush := func() {
		if len(run) > 0 {
			out = append(out, joinRun(run))
		}
		run = nil
	}
	for _, u := range pieces {
		p, ok := u.(memgpt.Streamed)
		if !ok {
			continue
		}
		if len(run) > 0 && !sameKind(run[0], p) {
			flush()
		}
		run = append(run, p)
	}
	flush()
	return out
}

func sameKind(a, b memgpt.Streamed) bool {
	switch {
	case a.Step != b.Step || (a.Delta.Call == nil) != (b.Delta.Call == nil):
		return false
	case a.Delta.Call != nil:
		return a.Delta.Call.Index == b.Delta.Call.Index && b.Delta.Call.ID == ""
	default:
		return (a.Delta.Text == "") == (b.Delta.Text == "") && (a.Delta.Reasoning == "") == (b.Delta.Reasoning == "")
	}
}

func joinRun(run []memgpt.Streamed) memgpt.Streamed {
	var text, reasoning, args []byte
	joined := run[0]
	for _, p := range run {
		text = append(text, p.Delta.Text...)
		reasoning = append(reasoning, p.Delta.Reasoning...)
		if p.Delta.Call != nil {
			args = append(args, p.Delta.Call.Arguments...)
		}
	}
	joined.Delta.Text, joined.Delta.Reasoning = string(text), string(reasoning)
	if joined.Delta.Call != nil {
		call := *joined.Delta.Call
		call.Arguments = string(args)
		joined.Delta.Call = &call
	}
	return joined
}
