package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

// insertFunction is the function that stores a passage which replaces none.
const insertFunction = "archival_memory_insert"

// maxChain bounds how many replacements are followed.
const maxChain = 1000

// successors returns what replaced a passage, what replaced that, and so on.
func (k *Kernel) successors(ctx context.Context, p *memgpt.Passage) (list []memgpt.Passage, err error) {
	seen := map[string]bool{p.ID: true}
	for id := p.SupersededBy; id != "" && !seen[id] && len(list) < maxChain; {
		seen[id] = true
		found, err := k.cfg.Store.Passages(ctx, p.Tenant, p.Owner, []string{id})
		if err != nil || len(found) == 0 {
			return list, err
		}
		list, id = append(list, found[0]), found[0].SupersededBy
	}
	return list, nil
}

// replacedBy returns the passages that one replaced itself, in the order in which they were stored.
func (k *Kernel) replacedBy(ctx context.Context, tenant, owner, id string) (list []memgpt.Passage, err error) {
	err = k.eachPassageOf(ctx, tenant, owner, func(p *memgpt.Passage) error {
		if p.SupersededBy == id {
			list = append(list, *p)
		}
		return nil
	})
	return list, err
}

// eachPassageOf hands all of an owner's passages to do, dead ones too, in the order in which they were stored.
func (k *Kernel) eachPassageOf(ctx context.Context, tenant, owner string, do func(*memgpt.Passage) error) error {
	for after := int64(0); ; {
		list, err := k.cfg.Store.PassagesOf(ctx, store.PassageRange{Tenant: tenant, Owner: owner, Dead: true, After: after, Limit: forgetPage})
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if err := do(&list[i]); err != nil {
				return err
			}
		}
		after = list[len(list)-1].Seq
	}
}

// History returns a passage with all that it replaced and all that replaced it, through any number of updates and merges: in the
// order in which they were stored.
func (k *Kernel) History(ctx context.Context, tenant, owner, id string) ([]memgpt.Passage, error) {
	var all []memgpt.Passage
	links := map[string][]int{} // of passages, by the IDs that they are linked to
	at := map[string]int{}
	err := k.eachPassageOf(ctx, tenant, owner, func(p *memgpt.Passage) error {
		at[p.ID], all = len(all), append(all, *p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of a passage: %w", err)
	}
	if _, ok := at[id]; !ok {
		return nil, noPassage(id)
	}
	for i := range all {
		if next, ok := at[all[i].SupersededBy]; ok {
			links[all[i].ID], links[all[next].ID] = append(links[all[i].ID], next), append(links[all[next].ID], i)
		}
	}
	seen, found := map[int]bool{at[id]: true}, []int{at[id]}
	for n := 0; n < len(found); n++ {
		for _, i := range links[all[found[n]].ID] {
			if !seen[i] {
				seen[i], found = true, append(found, i)
			}
		}
	}
	slices.Sort(found)
	list := make([]memgpt.Passage, len(found))
	for n, i := range found {
		list[n] = all[i]
	}
	return list, nil
}

func noPassage(id string) error {
	return memgpt.Errorf(memgpt.CodeNotFound, "there is no passage %q; memgpt archive list --all shows them", memgpt.CutText(id, 80))
}

// Revived says what Revive did.
type Revived struct {
	Live    []memgpt.Passage // in results again
	Same    []memgpt.Passage // that stay replaced, now by the passage that has their text already
	Retired string           // ID of the passage that had replaced them and is out of results; "" where it stays, or was out before
	Stays   string           // ID of the passage that had replaced them and stays, since it was stored before; "" where there is none
}

// Revive takes a replacement back. ID names the passage that replaced others, or one of those: all that it replaced live again,
// under their own IDs, as if they had not been replaced, and it is deleted. Its text stays, and so does what it is in searches as of
// the time between. One that was stored before, and was only found to say the same, stays: then only what it replaced in the same
// step comes back, by its own ID the last.
//
// It fails with CodeNotFound for an ID that is not there, and with CodeInvalid where nothing was replaced, where the replacement was
// itself replaced since, or where the owner had one of them forgotten.
func (k *Kernel) Revive(ctx context.Context, tenant, owner string, zone *time.Location, id string) (*Revived, error) {
	for try := 0; ; try++ {
		done, c, err := k.planRevive(ctx, tenant, owner, zone, id)
		if err != nil {
			return nil, fmt.Errorf("take a replacement back: %w", err)
		}
		_, err = k.cfg.Store.Commit(ctx, c)
		if err == nil {
			return done, nil
		}
		code := memgpt.CodeOf(err) // somebody stored the same text meanwhile
		if code != memgpt.CodeExists && code != memgpt.CodeConflict || try == maxConflicts {
			return nil, fmt.Errorf("take a replacement back: %w", err)
		}
	}
}

func (k *Kernel) planRevive(ctx context.Context, tenant, owner string, zone *time.Location, id string) (*Revived, *store.Commit, error) {
	by, old, err := k.replacement(ctx, tenant, owner, id)
	if err != nil {
		return nil, nil, err
	}
	old, stored := lastReplaced(&by, old, id)
	done, c := &Revived{}, &store.Commit{Now: k.cfg.Now()}
	switch {
	case by.Live() && !stored:
		done.Stays = by.ID
	case by.Live():
		done.Retired, by.Deleted = by.ID, c.Now
		c.Passages = append(c.Passages, by)
		c.DeadDocs = append(c.DeadDocs, store.DocRef{Tenant: tenant, Owner: owner, ID: by.ID})
	}
	live := map[string]string{} // IDs by key
	for i := len(old) - 1; i >= 0; i-- {
		p := old[i]
		if !revivable(&p) {
			continue
		}
		same, known := live[p.Key], false
		if same == "" && p.Key != "" {
			var there memgpt.Passage
			if there, known, err = k.keyed(ctx, tenant, owner, p.Key); err != nil {
				return nil, nil, err
			}
			if known && there.ID != done.Retired {
				same = there.ID
			}
		}
		if same != "" {
			p.SupersededBy, p.Replaced = same, c.Now
			done.Same = append(done.Same, p)
		} else {
			p.SupersededBy, p.Superseded, p.Replaced, p.Ended, p.WasEnded = "", time.Time{}, time.Time{}, p.WasEnded, time.Time{}
			if p.Key != "" {
				live[p.Key] = p.ID
			}
			done.Live = append(done.Live, p)
			c.Docs = append(c.Docs, k.passageDoc(&p, zone))
		}
		c.Passages = append(c.Passages, p)
	}
	if len(done.Live)+len(done.Same) == 0 {
		return nil, nil, memgpt.Errorf(memgpt.CodeInvalid, "what %s replaced was deleted or forgotten since, and can't come back", by.ID)
	}
	return done, c, nil
}

// revivable reports whether a passage that was replaced can come back: it was neither deleted nor forgotten.
func revivable(p *memgpt.Passage) bool { return p.Deleted.IsZero() && !forgottenAlready(p) }

// lastReplaced returns those of the passages that by replaced which are to come back, and whether they are what it was stored for:
// then all come back, since it goes. Else they are those that it replaced together with the one that id names, or last.
func lastReplaced(by *memgpt.Passage, old []memgpt.Passage, id string) (list []memgpt.Passage, stored bool) {
	when := func(p *memgpt.Passage) time.Time {
		if p.Replaced.IsZero() {
			return by.Time
		}
		return p.Replaced
	}
	var at time.Time
	for i := range old {
		if old[i].ID == id {
			at = when(&old[i])
			break
		}
		if revivable(&old[i]) && when(&old[i]).After(at) {
			at = when(&old[i])
		}
	}
	if at.Equal(by.Time) && functionOf(by.Cause) != insertFunction && by.Source == "" {
		return old, true
	}
	for i := range old {
		if when(&old[i]).Equal(at) {
			list = append(list, old[i])
		}
	}
	return list, false
}

// replacement returns the passage that a replacement stored, and those that it replaced, by the ID of any of them.
func (k *Kernel) replacement(ctx context.Context, tenant, owner, id string) (by memgpt.Passage, old []memgpt.Passage, err error) {
	find := func(id string) (memgpt.Passage, error) {
		list, err := k.cfg.Store.Passages(ctx, tenant, owner, []string{id})
		if err == nil && len(list) == 0 {
			err = noPassage(id)
		}
		if err != nil {
			return memgpt.Passage{}, err
		}
		return list[0], nil
	}
	if by, err = find(id); err != nil {
		return by, nil, err
	}
	if old, err = k.replacedBy(ctx, tenant, owner, by.ID); err != nil {
		return by, nil, err
	}
	if len(old) == 0 && by.SupersededBy != "" {
		if by, err = find(by.SupersededBy); err != nil {
			return by, nil, err
		}
		if old, err = k.replacedBy(ctx, tenant, owner, by.ID); err != nil {
			return by, nil, err
		}
	}
	switch {
	case len(old) == 0:
		return by, nil, memgpt.Errorf(memgpt.CodeInvalid, "the passage %s replaced none, and none replaced it", by.ID)
	case by.SupersededBy != "":
		return by, nil, memgpt.Errorf(memgpt.CodeInvalid, "the passage %s was itself replaced by %s: take that back first", by.ID, by.SupersededBy)
	}
	return by, old, nil
}
