package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/tool"
)

func (m *memory) Insert(ctx context.Context, fact tool.NewPassage) (memgpt.Passage, bool, error) {
	learned, err := m.learned(ctx, fact.From)
	if err != nil {
		return memgpt.Passage{}, false, err
	}
	return m.insert(ctx, fact, learned)
}

// insert stores a passage that was learned at a time; zero is now.
func (m *memory) insert(ctx context.Context, fact tool.NewPassage, learned time.Time) (memgpt.Passage, bool, error) {
	r := m.run
	text := memgpt.CleanText(fact.Text)
	key := memgpt.HashKey(r.k.cfg.Normalize(text))
	for _, p := range r.pend.passages {
		if p.Key == key && p.Live() {
			return p, false, nil
		}
	}
	p, known, err := r.k.keyed(ctx, r.st.Thread.Tenant, r.st.Agent.ID, key)
	if err != nil || known && !slices.ContainsFunc(r.pend.passages, func(q memgpt.Passage) bool { return q.ID == p.ID }) {
		return p, false, err
	}
	p = memgpt.Passage{ID: r.k.cfg.NewID("passage"), Tenant: r.st.Thread.Tenant, Owner: r.st.Agent.ID, Text: text, Tags: fact.Tags,
		Time: r.k.cfg.Now(), About: fact.About, Learned: learned, From: fact.From, Key: key, Cause: m.cause()}
	m.putPassage(p)
	r.pend.docs = append(r.pend.docs, r.k.passageDoc(&p, r.zone))
	return p, true, nil
}

// learned returns when the agent was told what it takes from messages: the time of the newest; zero without messages. Those that
// it names must be its own.
func (m *memory) learned(ctx context.Context, from []string) (newest time.Time, err error) {
	if len(from) == 0 {
		return newest, nil
	}
	found := map[string]time.Time{}
	for _, list := range [][]memgpt.Entry{m.run.st.Queue, m.run.pend.entries} {
		for i := range list {
			if slices.Contains(from, list[i].ID) {
				found[list[i].ID] = list[i].Time
			}
		}
	}
	if len(found) < len(from) {
		stored, err := m.run.k.cfg.Store.EntriesByID(ctx, m.run.st.Thread.Tenant, m.run.st.Agent.ID, from)
		if err != nil {
			return newest, err
		}
		for i := range stored {
			found[stored[i].ID] = stored[i].Time
		}
	}
	for _, id := range from {
		at, ok := found[id]
		if !ok {
			return newest, fmt.Errorf("there is no message with the id %q among yours, and nothing was stored: from takes the ids of the"+
				" messages that say it, as conversation_search shows them; or leave it out", memgpt.CutText(id, 80))
		}
		if at.After(newest) {
			newest = at
		}
	}
	if now := m.run.k.cfg.Now(); newest.After(now) { // of a clock that was wrong
		newest = now
	}
	return newest, nil
}

func (m *memory) Supersede(ctx context.Context, ids []string, ended time.Time, fact tool.NewPassage) (memgpt.Passage, error) {
	old, err := m.replaceable(ctx, ids)
	if err != nil {
		return memgpt.Passage{}, err
	}
	for _, o := range old {
		for _, t := range o.Tags {
			if !slices.Contains(fact.Tags, t) {
				fact.Tags = append(fact.Tags, t)
			}
		}
	}
	learned, err := m.learned(ctx, fact.From)
	if err != nil {
		return memgpt.Passage{}, err
	}
	if err := checkEnds(old, ended); err != nil {
		return memgpt.Passage{}, err
	}
	p, added, err := m.insert(ctx, fact, learned)
	if err != nil {
		return p, err
	}
	now := m.run.k.cfg.Now()
	if added { // what it was stored for is told by that from what it replaces later
		now = p.Time
	}
	if learned.IsZero() {
		learned = now
	}
	for _, o := range old {
		if o.ID == p.ID {
			if !ended.IsZero() {
				o.Ended = ended
				m.putPassage(o)
				p = o
			}
			continue
		}
		replace(&o, &p, ended, learned, now)
		m.retire(o)
	}
	return p, nil
}

// replace notes that a passage was replaced by another, of which the agent learned at a time. What it learned only after
// that it held true until now.
func replace(old, by *memgpt.Passage, ended, learned, now time.Time) {
	old.SupersededBy, old.Superseded, old.Replaced, old.WasEnded = by.ID, learned, now, old.Ended
	if !tool.Learned(old).Before(learned) {
		old.Superseded = now
	}
	switch {
	case !ended.IsZero():
		old.Ended = ended
	case !old.Ended.IsZero():
	case !by.About.IsZero():
		old.Ended = by.About
	default:
		old.Ended = learned
	}
	if ended.IsZero() && tool.Over(old.Ended).Before(old.About) { // what is known better is about an earlier time
		old.Ended = old.About
	}
}

// checkEnds returns an error for an end that lies before what one of the passages is about.
func checkEnds(list []memgpt.Passage, ended time.Time) error {
	for i := range list {
		if p := &list[i]; !ended.IsZero() && !p.About.IsZero() && !tool.Over(ended).After(p.About) && !ended.Equal(p.About) {
			return fmt.Errorf("ended %s is before %s, which the passage %s is about, and nothing was changed: give a later time, or replace the"+
				" passage with archival_memory_update and the right about", tool.DateText(ended, nil), tool.DateText(p.About, nil), p.ID)
		}
	}
	return nil
}

// replaceable returns the agent's passages with the ids, none of which was replaced or deleted.
func (m *memory) replaceable(ctx context.Context, ids []string) (list []memgpt.Passage, err error) {
	for _, id := range ids {
		p, err := m.ownPassage(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case !p.Deleted.IsZero():
			return nil, fmt.Errorf("the passage %s was deleted; insert the text with archival_memory_insert", p.ID)
		case p.SupersededBy != "":
			return nil, fmt.Errorf("the passage %s was replaced by %s already; update that one", p.ID, p.SupersededBy)
		}
		list = append(list, p)
	}
	return list, nil
}

func (m *memory) End(ctx context.Context, id string, ended time.Time) (memgpt.Passage, error) {
	list, err := m.replaceable(ctx, []string{strings.TrimSpace(id)})
	if err == nil {
		err = checkEnds(list, ended)
	}
	if err != nil {
		return memgpt.Passage{}, err
	}
	p := list[0]
	p.Ended = ended
	m.putPassage(p)
	return p, nil
}

func passageOriginal(p *memgpt.Passage, archive, asked string) tool.Original {
	return tool.Original{ID: p.ID, Kind: memgpt.KindPassage, Origin: p.Cause.Origin, Time: p.Time, Text: p.Text, Tags: p.Tags,
		Archive: archive, Source: p.Source, Heading: p.Heading, Asked: p.ID == asked, Replaced: p.SupersededBy, About: p.About,
		Learned: tool.Learned(p), Ended: p.Ended, Superseded: p.Superseded, From: p.From}
}

// addChain tells of the passage that was asked for what it replaced, and what stands at the end of what replaced it. Only a
// passage that a replacement stored is looked for in what was replaced, since that is looked for in all that came before it.
func (m *memory) addChain(ctx context.Context, p memgpt.Passage, list []tool.Original) error {
	for i := range list {
		if !list[i].Asked {
			continue
		}
		next, err := m.run.k.successors(ctx, &p)
		if err != nil {
			return err
		}
		if len(next) > 1 {
			list[i].Newest = next[len(next)-1].ID
		}
		if p.Source != "" || p.Cause.Call == insertFunction {
			continue
		}
		older, err := m.run.k.replacedBy(ctx, p.Tenant, p.Owner, p.ID)
		if err != nil {
			return err
		}
		for j := len(older) - 1; j >= 0; j-- {
			list[i].Replaces = append(list[i].Replaces, older[j].ID)
		}
	}
	return nil
}
