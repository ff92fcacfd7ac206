package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"memgpt/store"

	"memgpt"
)

// recentTurns is how many of the newest turns are looked at for one that the system looked things up for.
const recentTurns = 50

// handedContext is what context shows of prefetch.
type handedContext struct {
	Mode    memgpt.PrefetchMode `json:"mode"`
	Entries []handedTurn        `json:"entries"` // those that stand in the prompt, in its order
	Newest  *handedTurn         `json:"newest"`  // the newest turn for which the system considered to look; null for none
}

// handedTurn is what the system looked up for a turn, and what came of it.
type handedTurn struct {
	Turn   string      `json:"turn"`
	Why    string      `json:"why,omitempty"` // why nothing was handed over
	Query  string      `json:"query,omitempty"`
	Hits   []handedHit `json:"hits"` // of an entry, those that stand in it
	Tokens int         `json:"tokens"`
	Millis int         `json:"millis"`
	Second bool        `json:"second"` // it looked once more, after the first reply
	Used   int         `json:"used"`   // hits that the model then read or quoted
}

// handedHit is one text that was handed over, with what its score is made of.
type handedHit struct {
	ID    string         `json:"id"`
	Kind  memgpt.DocKind `json:"kind"`
	Score float64        `json:"score"`
	Why   string         `json:"why"`
}

func (a *app) handedContext(ctx context.Context, st *store.State) (handedContext, error) {
	c := handedContext{Mode: st.Agent.Prefetch.Mode, Entries: []handedTurn{}}
	if c.Mode == "" {
		c.Mode = memgpt.PrefetchOff
	}
	for i := range st.Queue {
		e := &st.Queue[i]
		if e.Message.Type != memgpt.EventPrefetch {
			continue
		}
		turn, err := a.store.Turn(ctx, st.Thread.Tenant, e.Turn)
		if err != nil {
			return c, fmt.Errorf("read the turn for which something was looked up: %w", err)
		}
		c.Entries = append(c.Entries, handedTurnOf(&turn, &e.Message))
	}
	turns, err := a.store.Turns(ctx, st.Thread.Tenant, st.Thread.ID, recentTurns)
	if err != nil {
		return c, err
	}
	if i := slices.IndexFunc(turns, func(t memgpt.Turn) bool { return t.Prefetch != nil }); i >= 0 {
		newest := handedTurnOf(&turns[i], nil)
		c.Newest = &newest
	}
	return c, nil
}

// handedTurnOf takes the hits that an entry quotes; all where it is nil.
func handedTurnOf(t *memgpt.Turn, entry *memgpt.Message) handedTurn {
	h := handedTurn{Turn: t.ID, Hits: []handedHit{}}
	p := t.Prefetch
	if p == nil {
		return h
	}
	h.Why, h.Query, h.Tokens, h.Millis, h.Second, h.Used = p.Why, p.Query, p.Tokens, p.Millis, p.Second, p.Used
	for _, hit := range p.Hits {
		if entry == nil || quotes(entry, hit.ID) {
			h.Hits = append(h.Hits, handedHit(hit))
		}
	}
	return h
}

func quotes(m *memgpt.Message, id string) bool {
	return slices.ContainsFunc(m.Parts, func(p memgpt.Part) bool {
		q, ok := p.(memgpt.Quotes)
		return ok && slices.Contains(q.IDs, id)
	})
}

// isHanded tells whether a message of a request is an entry of prefetch.
func isHanded(m *memgpt.Message) bool {
	var e struct{ Type memgpt.EventType }
	return m.Role == memgpt.RoleUser && json.Unmarshal([]byte(m.Said()), &e) == nil && e.Type == memgpt.EventPrefetch
}

// print tells what an entry of the prompt holds, and why.
func (h *handedTurn) print(w io.Writer) {
	for _, hit := range h.Hits {
		_, _ = fmt.Fprintf(w, "   why %s: score %.2f: %s\n", hit.ID, hit.Score, inLine(hit.Why, shownBytes))
	}
}

// print sums up what the system looked up for the newest turn for which it considered to.
func (c *handedContext) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nprefetch: %s", c.Mode)
	switch h := c.Newest; {
	case h == nil:
	case len(h.Hits) == 0:
		fmt.Fprintf(&b, "; nothing was handed over in the newest turn: %s (%d ms)", h.Why, h.Millis)
	default:
		fmt.Fprintf(&b, "; in the newest turn %d texts in %d tokens and %d ms, %d of them used by the model", len(h.Hits), h.Tokens, h.Millis, h.Used)
		if h.Second {
			b.WriteString("; it looked twice")
		}
		if !slices.ContainsFunc(c.Entries, func(e handedTurn) bool { return e.Turn == h.Turn }) {
			b.WriteString("; they stand no longer in the prompt")
		}
		fmt.Fprintf(&b, "; it looked for: %s", inLine(h.Query, shownBytes))
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}
