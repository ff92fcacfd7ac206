package eval

import (
	"cmp"
	"context"
	"slices"

	"memgpt"
	"memgpt/store"
)

// overlay is a store on top of one that is never written to: what one question's turn commits stands beside it in
// memory, is read like everything else, search included, and goes away with the overlay. It is for one turn at a time
// of one agent: leases are given to whoever asks, and events, turns, records and the history of blocks are not kept. A
// record says what a kernel has learned of a model, which the process knows anyway.
type overlay struct {
	store.Store // the loaded memory; methods that are not overridden read it as it is
	agent       string

	threads  map[string]memgpt.Thread
	blocks   map[string]memgpt.Block
	entries  []memgpt.Entry
	passages map[string]memgpt.Passage
	overlaidIndex
}

func newOverlay(base store.Store, agent string) *overlay {
	return &overlay{Store: base, agent: agent, threads: map[string]memgpt.Thread{}, blocks: map[string]memgpt.Block{},
		passages: map[string]memgpt.Passage{}}
}

// Commit implements store.Store for what a kernel commits in a turn.
func (o *overlay) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	if len(c.Agents)+len(c.Drop) > 0 || c.Acquire != nil || slices.ContainsFunc(c.Records, func(r store.Record) bool { return !learned(r) }) {
		return store.Committed{}, memgpt.Errorf(memgpt.CodeInvalid, "commit beside a loaded memory: agents, records and leases are not for a turn")
	}
	if err := o.check(ctx, c); err != nil {
		return store.Committed{}, err
	}
	for _, t := range c.Threads {
		t.Version++
		o.threads[t.ID] = t
	}
	for _, b := range c.Blocks {
		b.Version++
		o.blocks[b.ID] = b
	}
	if err := o.putPassages(ctx, c.Passages); err != nil {
		return store.Committed{}, err
	}
	for _, e := range c.Entries {
		e.Tokens = 0 // not stored
		o.entries = append(o.entries, e)
	}
	return store.Committed{}, o.index(ctx, o.Store, o.agent, c)
}

// learned reports whether a record says what a kernel has learned of a model. It is let go of: the process knows it.
func learned(r store.Record) bool { return r.Kind == "calibration" || r.Kind == "search_record" }

// putPassages keeps passages and places new ones after all others, in the order in which a store does.
func (o *overlay) putPassages(ctx context.Context, list []memgpt.Passage) error {
	for _, live := range []bool{false, true} {
		for _, p := range list {
			if p.Live() != live {
				continue
			}
			last, err := o.PassagesOf(ctx, store.PassageRange{Tenant: p.Tenant, Owner: p.Owner, Dead: true, Last: true, Limit: 1})
			if err != nil {
				return err
			}
			if p.Seq == 0 {
				p.Seq = 1
				if len(last) > 0 {
					p.Seq = last[0].Seq + 1
				}
			}
			o.passages[p.ID] = p
		}
	}
	return nil
}

// PassagesOf implements store.Store.
func (o *overlay) PassagesOf(ctx context.Context, q store.PassageRange) ([]memgpt.Passage, error) {
	every := q
	every.Limit, every.Dead = 0, true
	list, err := o.Store.PassagesOf(ctx, every)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(p memgpt.Passage) bool { _, changed := o.passages[p.ID]; return changed })
	for _, p := range o.passages {
		if p.Owner == q.Owner && p.Seq > q.After && (q.Before <= 0 || p.Seq < q.Before) && (q.Source == "" || p.Source == q.Source) {
			list = append(list, p)
		}
	}
	if !q.Dead {
		list = slices.DeleteFunc(list, func(p memgpt.Passage) bool { return !p.Live() })
	}
	slices.SortFunc(list, func(a, b memgpt.Passage) int { return cmp.Compare(a.Seq, b.Seq) })
	if n := len(list) - q.Limit; q.Limit > 0 && n > 0 {
		if q.Last {
			return list[n:], nil
		}
		return list[:q.Limit], nil
	}
	return list, nil
}

// check compares the versions that a commit names.
func (o *overlay) check(ctx context.Context, c *store.Commit) error {
	for _, t := range c.Threads {
		if old, err := o.Thread(ctx, t.Tenant, t.ID); err != nil || old.Version != t.Version {
			return memgpt.Errorf(memgpt.CodeConflict, "commit beside a loaded memory: conversation %s has changed", t.ID)
		}
	}
	for _, b := range c.Blocks {
		if old, err := o.Blocks(ctx, b.Tenant, []string{b.ID}); err != nil || old[0].Version != b.Version {
			return memgpt.Errorf(memgpt.CodeConflict, "commit beside a loaded memory: block %s has changed", b.ID)
		}
	}
	return nil
}

// Thread implements store.Store.
func (o *overlay) Thread(ctx context.Context, tenant, id string) (memgpt.Thread, error) {
	if t, ok := o.threads[id]; ok {
		return t, nil
	}
	return o.Store.Thread(ctx, tenant, id)
}

// Threads implements store.Store.
func (o *overlay) Threads(ctx context.Context, tenant, agent string) ([]memgpt.Thread, error) {
	list, err := o.Store.Threads(ctx, tenant, agent)
	for i, t := range list {
		if changed, ok := o.threads[t.ID]; ok {
			list[i] = changed
		}
	}
	return list, err
}

// Blocks implements store.Store.
func (o *overlay) Blocks(ctx context.Context, tenant string, ids []string) ([]memgpt.Block, error) {
	list, err := o.Store.Blocks(ctx, tenant, ids)
	for i, b := range list {
		if changed, ok := o.blocks[b.ID]; ok {
			list[i] = changed
		}
	}
	return list, err
}

// Entries implements store.Store: what was committed here follows what was loaded.
func (o *overlay) Entries(ctx context.Context, q store.EntryRange) ([]memgpt.Entry, error) {
	list, err := o.Store.Entries(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, e := range o.entries {
		if e.Thread == q.Thread && e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before) {
			list = append(list, e)
		}
	}
	if n := len(list) - q.Limit; q.Limit > 0 && n > 0 {
		if q.Last {
			return list[n:], nil
		}
		return list[:q.Limit], nil
	}
	return list, nil
}

// EntriesByID implements store.Store.
func (o *overlay) EntriesByID(ctx context.Context, tenant, agent string, ids []string) ([]memgpt.Entry, error) {
	list, err := o.Store.EntriesByID(ctx, tenant, agent, ids)
	if err != nil {
		return nil, err
	}
	for _, e := range o.entries {
		if slices.Contains(ids, e.ID) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b memgpt.Entry) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return list, nil
}

// Passages implements store.Store.
func (o *overlay) Passages(ctx context.Context, tenant, owner string, ids []string) ([]memgpt.Passage, error) {
	list, err := o.Store.Passages(ctx, tenant, owner, ids)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(p memgpt.Passage) bool { _, changed := o.passages[p.ID]; return changed })
	for _, id := range ids {
		if p, ok := o.passages[id]; ok && p.Owner == owner {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b memgpt.Passage) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return list, nil
}

// PassageKeyed implements store.Store.
func (o *overlay) PassageKeyed(ctx context.Context, tenant, owner, key string) (memgpt.Passage, error) {
	for _, p := range o.passages {
		if p.Owner == owner && p.Key == key && p.Live() {
			return p, nil
		}
	}
	p, err := o.Store.PassageKeyed(ctx, tenant, owner, key)
	if changed, ok := o.passages[p.ID]; ok && err == nil {
		if !changed.Live() {
			return memgpt.Passage{}, memgpt.Errorf(memgpt.CodeNotFound, "no live passage has the key %s", key)
		}
		return changed, nil
	}
	return p, err
}

// Outside implements store.Store.
func (o *overlay) Outside(ctx context.Context, tenant, agent, thread string) (memgpt.Outside, error) {
	out, err := o.Store.Outside(ctx, tenant, agent, thread)
	if err != nil {
		return out, err
	}
	head := o.threads[thread].Head
	for _, e := range o.entries {
		if e.Thread == thread && e.Seq <= head {
			out.Hidden++
			if out.First.IsZero() || e.Time.Before(out.First) {
				out.First = e.Time
			}
			if e.Time.After(out.Last) {
				out.Last = e.Time
			}
		}
	}
	for id, p := range o.passages {
		before, err := o.Store.Passages(ctx, tenant, p.Owner, []string{id})
		if err != nil {
			return out, err
		}
		switch was := len(before) == 1 && before[0].Live(); {
		case p.Live() && !was:
			out.Passages++
		case was && !p.Live():
			out.Passages--
		}
	}
	return out, nil
}
