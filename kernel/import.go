package kernel

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"memgpt/calendar"
	"memgpt/store"

	"memgpt"
)

// Line is one message of a conversation that was held elsewhere.
type Line struct {
	Speaker string // "user" and "assistant" set the role; any other name is a user's message with that name
	Text    string
	Time    time.Time // zero when unknown
	Session string
	ID      string // its own id; "" for none
}

// Imported tells what an import did.
type Imported struct {
	Added, Skipped int
	First, Last    time.Time // of the added lines; zero when no time is known
}

// importBatch is how many lines one commit holds: enough to make commits cheap, few enough to keep others waiting for
// milliseconds only.
const importBatch = 500

// Import appends lines to the log of a thread, with their own times, and moves the head past them: what stood in the
// queue is folded first, as in any eviction, and one notice in the queue says what came. No model is asked about the
// imported text. A line imported before (same id, else same speaker, text, time and occurrence) is skipped, so that an
// import that was interrupted is simply run again. It needs the thread's lease, which it
// keeps, and no event.
func (k *Kernel) Import(ctx context.Context, w *store.Work, lines []Line) (Imported, error) {
	var done Imported
	r := &run{k: k, w: w, scale: 1, stale: true}
	defer r.keepSpending(ctx)
	r.begin()
	if err := r.configure(); err != nil {
		return done, err
	}
	fresh, err := r.fresh(ctx, lines)
	if err != nil {
		return done, err
	}
	done.Skipped = len(lines) - len(fresh)
	if len(fresh) == 0 {
		return done, nil
	}
	if n := len(r.st.Queue); n > 0 {
		if err := r.flushOldest(ctx, r.measure(), n); err != nil {
			return done, err
		}
	}
	for len(fresh) > 0 {
		n := min(importBatch, len(fresh))
		if err := r.importLines(ctx, fresh[:n], &done); err != nil {
			return done, err
		}
		fresh = fresh[n:]
	}
	return done, r.announce(ctx, done)
}

// keyed is a line with its idempotency key.
type keyed struct {
	Line
	key string
}

// fresh returns the lines that were not imported before.
func (r *run) fresh(ctx context.Context, lines []Line) ([]keyed, error) {
	seen := map[string]int{}
	all, keys := make([]keyed, 0, len(lines)), make([]string, 0, len(lines))
	for _, l := range lines {
		l.Text, l.Speaker = memgpt.CleanText(l.Text), memgpt.CleanText(l.Speaker)
		key := "id:" + l.ID
		if l.ID == "" {
			same := memgpt.HashKey(l.Speaker, l.Text, l.Time.UTC().Format(time.RFC3339Nano))
			seen[same]++
			key = "text:" + same + ":" + strconv.Itoa(seen[same])
		} else if seen[key]++; seen[key] > 1 {
			continue
		}
		all, keys = append(all, keyed{l, key}), append(keys, key)
	}
	known, err := r.k.cfg.Store.EntryKeys(ctx, r.st.Thread.Tenant, r.st.Agent.ID, keys)
	if err != nil {
		return nil, fmt.Errorf("look for lines that were imported before: %w", err)
	}
	out := all[:0]
	for _, l := range all {
		if !known[l.key] {
			out = append(out, l)
		}
	}
	return out, nil
}

// importLines commits one batch.
func (r *run) importLines(ctx context.Context, lines []keyed, done *Imported) error {
	for _, l := range lines {
		r.append(r.lineEntry(l))
		done.Added++
		if t := l.Time; !t.IsZero() {
			if done.First.IsZero() || t.Before(done.First) {
				done.First = t
			}
			if t.After(done.Last) {
				done.Last = t
			}
		}
	}
	th := &r.st.Thread
	whole := th.Folded == th.Head
	r.leave(len(r.st.Queue))
	if whole { // else a fold failed: what it was for is folded later, without the imported text (asideEntries)
		th.Folded = th.Head
	}
	th.Asked = r.w.State.Thread.Asked // the newest message of a user is still the one that was said here
	r.st.Asked = r.w.State.Asked
	return r.commitPart(ctx)
}

func (r *run) lineEntry(l keyed) memgpt.Entry {
	m := memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginImport, l.Text)
	m.Session = l.Session
	switch l.Speaker {
	case "user", "":
		m.Type = memgpt.EventUser
	case "assistant":
		m.Role = memgpt.RoleAssistant
	default:
		m.Type, m.Author = memgpt.EventUser, l.Speaker
	}
	e := r.newEntry(m, 0)
	e.Time, e.Key, e.Turn = l.Time, l.key, ""
	if l.ID != "" {
		e.ID = l.ID
	}
	return e
}

// announce puts the notice of an import into the queue and restates what lies outside.
func (r *run) announce(ctx context.Context, done Imported) error {
	text := fmt.Sprintf("%d messages of earlier conversations were imported into recall storage", done.Added)
	if !done.First.IsZero() {
		text += fmt.Sprintf(", from %s to %s", calendar.Format(done.First, r.zone), calendar.Format(done.Last, r.zone))
	}
	r.append(r.notice(text + ". Find them with conversation_search."))
	if err := r.restate(ctx, r.st.Thread.Summary.Failed); err != nil {
		return err
	}
	return r.commitPart(ctx)
}
