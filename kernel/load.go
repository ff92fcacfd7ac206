package kernel

import (
	"context"
	"fmt"

	"memgpt"
	"memgpt/store"
)

// Load stores passages of a document in the agent's archive in one commit, beside whatever its conversations do. Of a
// passage Text is read, and Tags, Source, Heading, Position and Time, which is now where it is zero. One whose text is
// stored already is left out, so that a load that was interrupted is simply run again. It returns how many were added.
// Events enter the inbox in the same commit, if there is one.
func (k *Kernel) Load(ctx context.Context, a memgpt.Agent, list []memgpt.Passage, events ...memgpt.Event) (int, error) {
	for try := 0; ; try++ {
		c, err := k.loading(ctx, &a, list)
		if err != nil {
			return 0, fmt.Errorf("look for passages that are stored already: %w", err)
		}
		if len(c.Passages) == 0 {
			return 0, nil
		}
		c.Events = events
		_, err = k.cfg.Store.Commit(ctx, c)
		if err == nil {
			return len(c.Passages), nil
		}
		if memgpt.CodeOf(err) != memgpt.CodeExists || try == maxConflicts { // else somebody stored the same text meanwhile
			return 0, fmt.Errorf("store passages: %w", err)
		}
	}
}

// loading returns a commit of those passages whose text the archive does not have.
func (k *Kernel) loading(ctx context.Context, a *memgpt.Agent, list []memgpt.Passage) (*store.Commit, error) {
	c := &store.Commit{Now: k.cfg.Now()}
	seen, zone := map[string]bool{}, a.Location()
	for _, p := range list {
		p.Text, p.Heading, p.Source = memgpt.CleanText(p.Text), memgpt.CleanText(p.Heading), memgpt.CleanText(p.Source)
		p.Key = memgpt.HashKey(k.cfg.Normalize(p.Text))
		if blank(p.Text) || seen[p.Key] {
			continue
		}
		seen[p.Key] = true
		_, known, err := k.keyed(ctx, a.Tenant, a.ID, p.Key)
		if err != nil {
			return nil, err
		}
		if known {
			continue
		}
		p.ID, p.Tenant, p.Owner = k.cfg.NewID("passage"), a.Tenant, a.ID
		if p.Time.IsZero() {
			p.Time = c.Now
		}
		p.Cause = memgpt.Cause{Origin: memgpt.OriginDocument, Agent: a.ID}
		c.Passages = append(c.Passages, p)
		c.Docs = append(c.Docs, k.passageDoc(&p, zone))
	}
	return c, nil
}
