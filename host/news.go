package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/store"
)

// timerText is what a timer heartbeat says to the model, before it tells what is new.
const timerText = "Timer heartbeat: some time has passed and nobody has written. Use it to think or to tidy your memory, speak if there is a reason to, or yield."

// tidyText ends a heartbeat.
const tidyText = "All of it stays in recall storage. What should be at hand later belongs in archival memory."

// beatKind is the kind of the records, one for a conversation by its ID, of what the last heartbeat told.
const beatKind = "heartbeat"

// beatMark is how far the last heartbeat saw.
type beatMark struct {
	Turn string `json:"turn"` // of the heartbeat
	Seq  int64  `json:"seq"`  // of the last entry before it
	Head int64  `json:"head"` // memgpt.Thread.Head then
}

// news is what a heartbeat has to tell; text is "" where that is nothing.
type news struct {
	text string
	mark store.Record // to be written where it is told
}

// Bounds of what a heartbeat tells.
const (
	newsRead  = 500 // entries that are read for it
	newsHeads = 3   // messages of those that left that are quoted
	newsHead  = 80  // characters of each
)

// news returns what came and what left main context since the last heartbeat of the conversation, beyond its own turn.
func (h *Host) news(ctx context.Context, w *store.Work, e *memgpt.Event) (news, error) {
	th := &w.State.Thread
	n := news{}
	var last beatMark
	record, err := h.cfg.Store.Record(ctx, th.Tenant, beatKind, th.ID)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		record, err = store.Record{Tenant: th.Tenant, Kind: beatKind, ID: th.ID}, nil
	} else if err == nil {
		err = json.Unmarshal(record.Data, &last)
	}
	if err != nil {
		return n, memgpt.Errorf(memgpt.CodeOf(err), "read what the last heartbeat told: %w", err)
	}
	came, err := h.cameSince(ctx, th, last)
	if err != nil {
		return n, err
	}
	left, err := h.leftSince(ctx, th, last, w.State.Agent.Location())
	if err != nil || came == "" && left == "" {
		return n, err
	}
	parts := []string{timerText}
	for _, part := range []string{came, left, tidyText} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	n.text, n.mark = strings.Join(parts, " "), record
	n.mark.Data, err = json.Marshal(beatMark{Turn: e.Turn, Seq: th.Next - 1, Head: th.Head})
	return n, err
}

// cameSince tells how many messages came since the last heartbeat, and when; "" where none did.
func (h *Host) cameSince(ctx context.Context, th *memgpt.Thread, last beatMark) (string, error) {
	entries, err := h.cfg.Store.Entries(ctx, store.EntryRange{Tenant: th.Tenant, Thread: th.ID, After: last.Seq, Limit: newsRead})
	if err != nil {
		return "", memgpt.Errorf(memgpt.CodeOf(err), "read what is new: %w", err)
	}
	n := 0
	for i := range entries {
		if entries[i].Turn != last.Turn || last.Turn == "" {
			n++
		}
	}
	if n == 0 {
		return "", nil
	}
	if len(entries) > 0 { // those that were not read
		n += int(th.Next - 1 - entries[len(entries)-1].Seq)
	}
	return fmt.Sprintf("New in this conversation since the last one: %s.", messages(n)), nil
}

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// leftSince tells what left main context since the last heartbeat; "" where nothing did. It quotes messages with their ids,
// each on a line of its own.
func (h *Host) leftSince(ctx context.Context, th *memgpt.Thread, last beatMark, zone *time.Location) (string, error) {
	n := th.Head - last.Head
	if n <= 0 {
		return "", nil
	}
	first, err := h.cfg.Store.Entries(ctx, store.EntryRange{Tenant: th.Tenant, Thread: th.ID, After: last.Head, Before: th.Head + 1, Limit: newsRead})
	if err != nil {
		return "", memgpt.Errorf(memgpt.CodeOf(err), "read what left main context: %w", err)
	}
	end, err := h.cfg.Store.Entries(ctx, store.EntryRange{Tenant: th.Tenant, Thread: th.ID, After: th.Head - 1, Before: th.Head + 1, Limit: 1})
	if err != nil {
		return "", memgpt.Errorf(memgpt.CodeOf(err), "read what left main context: %w", err)
	}
	if len(first) == 0 || len(end) == 0 {
		return "", nil
	}
	text := fmt.Sprintf("Left main context since then: %s, from %s to %s; the first of them, to be read on with memory_read(id):",
		messages(int(n)), calendar.Format(first[0].Time, zone), calendar.Format(end[0].Time, zone))
	quoted := 0
	for i := range first {
		m := &first[i].Message
		said := strings.Join(strings.Fields(m.Said()), " ")
		if m.Role != memgpt.RoleUser && m.Role != memgpt.RoleAssistant || said == "" || quoted == newsHeads {
			continue
		}
		quoted++
		text += fmt.Sprintf("\n%s (%s): %s", first[i].ID, m.Role, headOf(said))
	}
	return text + "\n", nil
}

// headOf returns the first characters of a text.
func headOf(text string) string {
	if runes := []rune(text); len(runes) > newsHead {
		return string(runes[:newsHead]) + "…"
	}
	return text
}

// ringText is what the model is told when its schedule rings. The note stands last, on a line of its own.
func ringText(e *memgpt.Event, m missed, now time.Time, zone *time.Location) string {
	t := e.Timer
	at := func(t time.Time) string { return calendar.Format(t, zone) }
	text := fmt.Sprintf("A reminder that you set for yourself with schedule (%s), on %s, for %s.", t.Schedule, at(t.Set), at(m.last))
	if late := now.Sub(m.last); late > lateAfter {
		text += fmt.Sprintf(" It comes late: now it is %s.", at(now))
	}
	if m.times > 0 {
		text += fmt.Sprintf(" Its %s before that, from %s on, could not be delivered.", times(m.times), at(m.first))
	}
	if t.Cron != "" && !m.next.IsZero() {
		text += fmt.Sprintf(" It repeats by the cron line %q, next on %s, until cancel_schedule ends it.", t.Cron, at(m.next))
	}
	return text + " Nobody has written. Your note:\n" + e.Message.Said()
}

func times(n int) string {
	if n == 1 {
		return "1 time"
	}
	return fmt.Sprintf("%d times", n)
}

// spentText says why a timer waits for the next day.
func spentText(a *memgpt.Agent) string {
	return fmt.Sprintf("timers had their %d turns of the day", orDefault(a.Timers.Turns, dayTurns))
}
