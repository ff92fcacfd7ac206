package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"memgpt"
	"memgpt/store"
)

// Loading is one document on its way into an agent's archive, or into a shared one. From the first passages to the end a record in the store says
// that it is not whole yet, so that who loads it again after an interruption knows that the agent was not told, even where
// nothing is left to store. The record holds no word of the document.
type Loading struct {
	Name string // of the document; the same name is the same document

	Before int  // passages that an interrupted load of it stored
	Added  int  // passages stored since BeginLoad
	Told   bool // the event of End is in the inbox

	k             *Kernel
	tenant, owner string
	cause         memgpt.Cause
	zone          *time.Location // in which a passage's time is read as a date
}

// loadingKind is the kind of the records of documents that are not whole.
const loadingKind = "loading"

// BeginLoad begins to load a document into an agent's archive, or goes on with it.
func (k *Kernel) BeginLoad(ctx context.Context, a memgpt.Agent, name string) (*Loading, error) {
	return k.beginLoad(ctx, &Loading{Name: name, tenant: a.Tenant, owner: a.ID, zone: a.Location(),
		cause: memgpt.Cause{Origin: memgpt.OriginDocument, Agent: a.ID}})
}

// BeginSharedLoad does so with a shared archive, which must be in the store. No agent is told.
func (k *Kernel) BeginSharedLoad(ctx context.Context, a store.Archive, name string) (*Loading, error) {
	return k.beginLoad(ctx, &Loading{Name: name, tenant: a.Tenant, owner: a.ID, zone: time.UTC,
		cause: memgpt.Cause{Origin: memgpt.OriginDocument}})
}

func (k *Kernel) beginLoad(ctx context.Context, l *Loading) (*Loading, error) {
	l.k = k
	_, before, err := l.record(ctx)
	if err != nil {
		return nil, err
	}
	l.Before = before
	return l, nil
}

// record returns the document's record and the passages that it counts; Version is 0 where there is none.
func (l *Loading) record(ctx context.Context) (r store.Record, stored int, err error) {
	id := memgpt.HashKey(l.owner, l.Name)
	r, err = l.k.cfg.Store.Record(ctx, l.tenant, loadingKind, id)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return store.Record{Tenant: l.tenant, Kind: loadingKind, ID: id}, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(r.Data, &stored)
	}
	if err != nil {
		return r, 0, fmt.Errorf("look for an earlier load of the document: %w", err)
	}
	return r, stored, nil
}

// Add stores passages of the document in one commit, beside whatever conversations do. Of a passage Text is read, and Tags,
// Source, Heading, Position and Time, which is now where it is zero. One whose text is stored already is left out, so that
// a load that was interrupted is simply run again.
func (l *Loading) Add(ctx context.Context, list []memgpt.Passage) error {
	return l.commit(ctx, list, false, nil)
}

// End stores the last passages. The event, which tells the agent of the document, enters the inbox in the same commit; not
// when neither this load nor an interrupted one stored anything. It is nil for a shared archive.
func (l *Loading) End(ctx context.Context, list []memgpt.Passage, told *memgpt.Event) error {
	return l.commit(ctx, list, true, told)
}

func (l *Loading) commit(ctx context.Context, list []memgpt.Passage, end bool, told *memgpt.Event) error {
	for try := 0; ; try++ {
		c, err := l.fresh(ctx, list)
		if err != nil {
			return fmt.Errorf("look for passages that are stored already: %w", err)
		}
		r, stored, err := l.record(ctx)
		if err != nil {
			return err
		}
		added := len(c.Passages)
		switch {
		case end && added+stored+l.Added == 0, !end && added == 0:
			return nil
		case !end:
			r.Data = mustJSON(stored + added)
			c.Records = []store.Record{r}
		default:
			if told != nil {
				c.Events = []memgpt.Event{*told}
			}
			if r.Version > 0 {
				c.Drop = []store.Record{r}
			}
		}
		if _, err = l.k.cfg.Store.Commit(ctx, c); err == nil {
			l.Added, l.Told = l.Added+added, told != nil
			return nil
		}
		code := memgpt.CodeOf(err) // somebody stored the same text meanwhile, or loads the same document
		if code != memgpt.CodeExists && code != memgpt.CodeConflict || try == maxConflicts {
			return fmt.Errorf("store passages: %w", err)
		}
	}
}

// fresh returns a commit of those passages whose text the archive does not have.
func (l *Loading) fresh(ctx context.Context, list []memgpt.Passage) (*store.Commit, error) {
	k, seen := l.k, map[string]bool{}
	c := &store.Commit{Now: k.cfg.Now()}
	for _, p := range list {
		p.Text, p.Heading, p.Source = memgpt.CleanText(p.Text), memgpt.CleanText(p.Heading), memgpt.CleanText(p.Source)
		p.Key = memgpt.HashKey(k.cfg.Normalize(p.Text))
		if blank(p.Text) || seen[p.Key] {
			continue
		}
		seen[p.Key] = true
		_, known, err := k.keyed(ctx, l.tenant, l.owner, p.Key)
		if err != nil {
			return nil, err
		}
		if known {
			continue
		}
		p.ID, p.Tenant, p.Owner = k.cfg.NewID("passage"), l.tenant, l.owner
		if p.Time.IsZero() {
			p.Time = c.Now
		}
		p.Cause = l.cause
		c.Passages = append(c.Passages, p)
		c.Docs = append(c.Docs, k.passageDoc(&p, l.zone))
	}
	return c, nil
}
