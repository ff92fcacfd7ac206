package host

import (
	"context"
	"time"

	"memgpt"
	"memgpt/store"
)

// Words are something that an agent said unasked.
type Words struct {
	store.Saying
	Text         string
	Conversation string // its name
}

// Unseen is what an agent said unasked and nobody has seen. Who takes it shows it and says so with Seen.
type Unseen struct {
	Words []Words // the newest, the oldest of them first
	More  int     // how many there are before those
	taken []store.Saying
}

// showTime is how long what was taken is kept from others; whoever took it has died by then.
const showTime = 30 * time.Second

// Unseen takes what an agent said unasked and nobody has seen, limit at most with their words: nobody else gets it for half a minute,
// in no process. Where it is then not said to be seen, it waits for the next who asks.
func (h *Host) Unseen(ctx context.Context, tenant, agent string, limit int) (*Unseen, error) {
	for try := 0; ; try++ {
		u, err := h.takeUnseen(ctx, tenant, agent)
		if memgpt.CodeOf(err) == memgpt.CodeConflict && try < h.cfg.Retries {
			continue
		}
		if err != nil {
			return nil, memgpt.Errorf(memgpt.CodeOf(err), "read what agent %s said: %w", agent, err)
		}
		return u, h.readUnseen(ctx, u, limit)
	}
}

func (h *Host) takeUnseen(ctx context.Context, tenant, agent string) (*Unseen, error) {
	rows, err := h.cfg.Store.Sayings(ctx, store.SayingRange{Tenant: tenant, Agent: agent, Unread: true})
	u, now := &Unseen{}, h.cfg.Now()
	for _, s := range rows {
		if s.Showing.After(now) && s.Showing.Sub(now) <= showTime {
			continue // somebody else shows it
		}
		s.Showing = now.Add(showTime)
		u.taken = append(u.taken, s)
	}
	if err != nil || len(u.taken) == 0 {
		return u, err
	}
	_, err = h.cfg.Store.Commit(ctx, &store.Commit{Now: now, Sayings: u.taken})
	for i := range u.taken {
		u.taken[i].Version++
	}
	return u, err
}

// readUnseen reads the words of what was taken.
func (h *Host) readUnseen(ctx context.Context, u *Unseen, limit int) error {
	u.More = max(0, len(u.taken)-limit)
	for i := range u.taken[u.More:] {
		words, err := h.wordsOf(ctx, &u.taken[u.More+i])
		if err != nil {
			return err
		}
		if words != nil {
			u.Words = append(u.Words, *words)
		}
	}
	return nil
}

// wordsOf reads the words of a row; nil is where they were forgotten.
func (h *Host) wordsOf(ctx context.Context, s *store.Saying) (*Words, error) {
	entries, err := h.cfg.Store.EntriesByID(ctx, s.Tenant, s.Agent, []string{s.Entry})
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	text, ok := s.SaidBy(&entries[0])
	if !ok {
		return nil, nil
	}
	th, err := h.cfg.Store.Thread(ctx, s.Tenant, s.Thread)
	return &Words{Saying: *s, Text: text, Conversation: th.Name}, err
}

// Seen notes that what was taken was shown.
func (h *Host) Seen(ctx context.Context, u *Unseen) error { return h.settleUnseen(ctx, u, true) }

// NotSeen notes that what was taken could not be shown: the next who asks gets it at once.
func (h *Host) NotSeen(ctx context.Context, u *Unseen) error { return h.settleUnseen(ctx, u, false) }

func (h *Host) settleUnseen(ctx context.Context, u *Unseen, seen bool) error {
	rows := u.taken
	for try := 0; len(rows) > 0; try++ {
		for i := range rows {
			rows[i].Read, rows[i].Showing = seen, time.Time{}
		}
		_, err := h.cfg.Store.Commit(ctx, &store.Commit{Now: h.cfg.Now(), Sayings: rows})
		if err == nil {
			return nil
		}
		if memgpt.CodeOf(err) != memgpt.CodeConflict || try == h.cfg.Retries {
			return memgpt.Errorf(memgpt.CodeOf(err), "note what was shown: %w", err)
		}
		if rows, err = h.stillUnread(ctx, u.taken); err != nil {
			return err
		}
	}
	return nil
}

// stillUnread reads rows anew, those that are there: a hook may have been told meanwhile.
func (h *Host) stillUnread(ctx context.Context, taken []store.Saying) (list []store.Saying, err error) {
	rows, err := h.cfg.Store.Sayings(ctx, store.SayingRange{Tenant: taken[0].Tenant, Agent: taken[0].Agent, Unread: true})
	mine := map[string]bool{}
	for i := range taken {
		mine[taken[i].ID] = true
	}
	for _, s := range rows {
		if mine[s.ID] {
			list = append(list, s)
		}
	}
	return list, err
}
