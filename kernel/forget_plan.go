package kernel

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"memgpt"
	"memgpt/store"
)

// forgetPlan is what a Forgetting means to one store: what is read of it, and the erasure that it comes to.
type forgetPlan struct {
	k       *Kernel
	what    *Forgetting
	now     time.Time
	text    string // of what stays in place of a text
	zone    *time.Location
	term    *termMatcher
	traces  *traces
	agents  []memgpt.Agent // whose memory is looked through: of a shared archive all of its tenant's
	threads []memgpt.Thread
	blocks  []memgpt.Block
	sharers map[string]string // names of the other agents that have a block
	touched map[string]bool   // threads whose summary may tell of what goes
	evicted map[string]bool   // threads of which the sweep took something: summaries that calls brought later may tell of it
	entries map[string]string // ids of the entries that go whole, with their turn
	thinned map[string]bool   // turns of them
	turns   map[string]string // turns whose message of a user goes, with its text: what the agent wrote then may tell of it
	orphans map[string]bool   // those of them whose call goes too
	dead    map[string]bool   // passages that go whole
	reading map[string]bool   // calls that name what goes, by turn and call

	erasure store.Erasure
	done    Forgotten
}

// planForget reads the agent's memory and works out what goes. known are the traces of an earlier round, whose originals
// are gone already.
func (k *Kernel) planForget(ctx context.Context, what *Forgetting, known *traces) (*forgetPlan, error) {
	now := k.cfg.Now()
	if what.Archive != nil {
		what.Agent = memgpt.Agent{Tenant: what.Archive.Tenant}
	}
	zone := what.Agent.Location()
	p := &forgetPlan{k: k, what: what, now: now, zone: zone, text: forgotten(now.In(zone)), traces: known, sharers: map[string]string{},
		touched: map[string]bool{}, evicted: map[string]bool{}, thinned: map[string]bool{}, turns: map[string]string{}, entries: map[string]string{}, orphans: map[string]bool{}, dead: map[string]bool{}, reading: map[string]bool{}}
	if p.traces == nil {
		p.traces = newTraces()
	}
	if what.Term != "" {
		p.term = k.newTermMatcher(what.Term)
		if strings.TrimFunc(p.term.fold, func(c rune) bool { return unicode.IsPunct(c) || unicode.IsSpace(c) }) == "" {
			return nil, memgpt.Errorf(memgpt.CodeInvalid, "forget a term: %q holds no letter, digit or sign, and nearly every text has such marks; "+
				"name a word or phrase", what.Term)
		}
	}
	p.erasure.Now = now
	for _, step := range []func(context.Context) error{p.read, p.choose, p.sweep, p.finish} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("work out what is to be forgotten: %w", err)
		}
	}
	return p, nil
}

// read reads the agent's conversations and blocks, and who shares them.
func (p *forgetPlan) read(ctx context.Context) (err error) {
	s, a := p.k.cfg.Store, &p.what.Agent
	if p.what.Archive != nil {
		return p.readAll(ctx)
	}
	if *a, err = s.Agent(ctx, a.Tenant, a.ID); err != nil {
		return err
	}
	if p.threads, err = s.Threads(ctx, a.Tenant, a.ID); err != nil {
		return err
	}
	if p.blocks, err = s.Blocks(ctx, a.Tenant, a.Blocks); err != nil {
		return err
	}
	p.agents = []memgpt.Agent{*a}
	agents, err := s.Agents(ctx, a.Tenant)
	for _, other := range agents {
		for _, id := range other.Blocks {
			if other.ID != a.ID && slices.Contains(a.Blocks, id) {
				p.sharers[id] = strings.TrimPrefix(p.sharers[id]+", "+other.Name, ", ")
			}
		}
	}
	return err
}

// readAll reads the conversations and blocks of all agents: any may have read a shared archive.
func (p *forgetPlan) readAll(ctx context.Context) (err error) {
	s, tenant := p.k.cfg.Store, p.what.Archive.Tenant
	if p.agents, err = s.Agents(ctx, tenant); err != nil {
		return err
	}
	var blocks []string
	for i := range p.agents {
		threads, err := s.Threads(ctx, tenant, p.agents[i].ID)
		if err != nil {
			return err
		}
		p.threads, blocks = append(p.threads, threads...), append(blocks, p.agents[i].Blocks...)
	}
	slices.Sort(blocks)
	p.blocks, err = s.Blocks(ctx, tenant, slices.Compact(blocks))
	return err
}

// owners are whose passages are looked through, those first of which some go.
func (p *forgetPlan) owners() (ids []string) {
	if p.what.Archive != nil {
		ids = append(ids, p.what.Archive.ID)
	}
	for i := range p.agents {
		ids = append(ids, p.agents[i].ID)
	}
	return ids
}

// choose finds what goes whole, and keeps its traces.
func (p *forgetPlan) choose(ctx context.Context) error {
	if p.what.Whole {
		return nil
	}
	if err := p.chooseEntries(ctx); err != nil {
		return err
	}
	if err := p.choosePassages(ctx); err != nil {
		return err
	}
	if err := p.traceKept(ctx); err != nil {
		return err
	}
	p.traces.ready()
	return p.findQuotes(ctx)
}

// traceKept keeps traces of passages that the agent made of a part of a message that goes, word for word.
func (p *forgetPlan) traceKept(ctx context.Context) error {
	if len(p.turns) == 0 {
		return nil
	}
	return p.eachPassage(ctx, func(pa *memgpt.Passage) error {
		if said := p.turns[pa.Cause.Turn]; said != "" && strings.Contains(said, p.k.cfg.Normalize(pa.Text)) {
			p.traces.addText(pa.Text)
		}
		return nil
	})
}

// findQuotes notes the messages and passages that quote what goes: pages of results that name them may quote it too, cut
// anywhere.
func (p *forgetPlan) findQuotes(ctx context.Context) error {
	if len(p.traces.texts) == 0 {
		return nil
	}
	var ids []string
	for i := range p.threads {
		err := p.eachEntry(ctx, &p.threads[i], func(e *memgpt.Entry) error {
			if _, changed := p.traces.cutMessage(e.Message); changed {
				ids = append(ids, e.ID)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := p.eachPassage(ctx, func(pa *memgpt.Passage) error {
		if p.traces.in(pa.Text) {
			ids = append(ids, pa.ID)
		}
		return nil
	})
	for _, id := range ids {
		p.traces.addID(id)
	}
	p.traces.ready()
	return err
}

// forgetPage is how many entries or passages are read at a time.
const forgetPage = 500

func (p *forgetPlan) eachEntry(ctx context.Context, t *memgpt.Thread, do func(*memgpt.Entry) error) error {
	for after := int64(0); ; {
		list, err := p.k.cfg.Store.Entries(ctx, store.EntryRange{Tenant: t.Tenant, Thread: t.ID, After: after, Limit: forgetPage})
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

func (p *forgetPlan) eachPassage(ctx context.Context, do func(*memgpt.Passage) error) error {
	for _, owner := range p.owners() {
		if err := p.k.eachPassageOf(ctx, p.what.Agent.Tenant, owner, do); err != nil {
			return err
		}
	}
	return nil
}

func (p *forgetPlan) chooseEntries(ctx context.Context) error {
	if len(p.what.Messages) == 0 && p.term == nil && p.what.Thread == nil && (p.what.Source == "" || p.what.Archive != nil) {
		return nil
	}
	found := 0
	for i := range p.threads {
		t := &p.threads[i]
		calls := map[string]bool{} // of messages that go, by turn and call
		err := p.eachEntry(ctx, t, func(e *memgpt.Entry) error {
			asked := slices.Contains(p.what.Messages, e.ID)
			if asked {
				found++
			}
			if wasForgotten(e) {
				if asked {
					p.done.Already++
				}
				return nil
			}
			if res, ok := e.Message.Result(); ok {
				p.orphans[e.ID] = calls[e.Turn+" "+res.CallID]
			}
			if asked || p.orphans[e.ID] || p.chosen(t, e) {
				p.chooseEntry(e, calls)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if found < len(p.what.Messages) {
		return memgpt.Errorf(memgpt.CodeNotFound, "%d of the %d messages are not in the log of agent %s; memgpt log --json shows their ids",
			len(p.what.Messages)-found, len(p.what.Messages), p.what.Agent.Name)
	}
	return nil
}

// chooseEntry notes an entry that goes whole, and the calls that it made.
func (p *forgetPlan) chooseEntry(e *memgpt.Entry, calls map[string]bool) {
	p.entries[e.ID], p.thinned[e.Turn] = e.Turn, true
	p.traces.addID(e.ID)
	p.keepTraces(&e.Message)
	if p.term == nil && e.Message.Role == memgpt.RoleUser {
		p.turns[e.Turn] += p.k.cfg.Normalize(e.Message.Said()) + "\n"
	}
	for _, c := range e.Message.Calls() {
		calls[e.Turn+" "+c.ID] = true
	}
}

// keepTraces notes the texts of a message that goes. Those that hold a term need no traces: they are found by it. What was
// handed over quotes what stays. What the
// agent says in a conversation it says in others too, without quoting.
func (p *forgetPlan) keepTraces(m *memgpt.Message) {
	if p.term == nil && m.Type != memgpt.EventPrefetch && m.Type != memgpt.EventTidy && (p.what.Thread == nil || m.Role == memgpt.RoleUser) {
		p.traces.addMessage(m)
	}
}

// chosen reports whether an entry goes for what it says or where it stands.
func (p *forgetPlan) chosen(t *memgpt.Thread, e *memgpt.Entry) bool {
	switch {
	case p.what.Thread != nil:
		return t.ID == p.what.Thread.ID
	case p.what.Source != "":
		return e.Message.Type == memgpt.EventDocument && strings.Contains(e.Message.Said(), strconv.Quote(p.what.Source))
	case p.term != nil:
		return p.holds(messageTexts(&e.Message)...)
	}
	return false
}

// taken reports whether a text holds the term and goes.
func (p *forgetPlan) taken(text string) bool {
	whole, near := p.term.match(text)
	return whole || near && p.what.Forms
}

// holds reports whether one of the texts holds the term; what only relates to it is counted.
func (p *forgetPlan) holds(texts ...string) bool {
	related := false
	for _, text := range texts {
		whole, near := p.term.match(text)
		if whole || near && p.what.Forms {
			return true
		}
		related = related || near
	}
	if related {
		p.done.Related++
	}
	return false
}

func (p *forgetPlan) choosePassages(ctx context.Context) error {
	if len(p.what.Passages) == 0 && p.term == nil && p.what.Source == "" {
		return nil
	}
	found := 0
	older := map[string][]memgpt.Passage{} // those that a passage replaced
	var chosen []memgpt.Passage
	err := p.k.eachPassageOf(ctx, p.what.Agent.Tenant, p.owners()[0], func(pa *memgpt.Passage) error {
		if pa.SupersededBy != "" {
			older[pa.SupersededBy] = append(older[pa.SupersededBy], *pa)
		}
		asked := slices.Contains(p.what.Passages, pa.ID)
		if asked {
			found++
		}
		if asked || p.chosenPassage(pa) {
			chosen = append(chosen, *pa)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for len(chosen) > 0 {
		pa := chosen[0]
		chosen = append(chosen[1:], older[pa.ID]...)
		delete(older, pa.ID)
		p.choosePassage(&pa)
	}
	if found < len(p.what.Passages) {
		where := "archive of agent " + p.what.Agent.Name
		if p.what.Archive != nil {
			where = "archive " + strconv.Quote(p.what.Archive.Name)
		}
		return memgpt.Errorf(memgpt.CodeNotFound, "%d of the %d passages are not in the %s; memgpt archive list --all shows them",
			len(p.what.Passages)-found, len(p.what.Passages), where)
	}
	return nil
}

// choosePassage notes a passage that goes whole.
func (p *forgetPlan) choosePassage(pa *memgpt.Passage) {
	if forgottenAlready(pa) {
		p.done.Already++
		return
	}
	p.dead[pa.ID] = true
	p.traces.addID(pa.ID)
	if p.term == nil {
		p.traces.addText(pa.Text)
	}
}

// forgottenAlready reports whether a passage stands in place of one that was forgotten.
func forgottenAlready(p *memgpt.Passage) bool {
	return p.Cause.Origin == memgpt.OriginOwner && !p.Deleted.IsZero() && p.Key == ""
}

func (p *forgetPlan) chosenPassage(pa *memgpt.Passage) bool {
	switch {
	case p.what.Source != "":
		return pa.Source == p.what.Source
	case p.term != nil && !forgottenAlready(pa):
		return p.holds(append([]string{pa.Text, pa.Source, pa.Heading}, pa.Tags...)...)
	}
	return false
}

// note adds a line to what is told.
func (p *forgetPlan) note(kind, id string, at time.Time, text string, part bool) {
	p.done.Lines = append(p.done.Lines, ForgottenLine{Kind: kind, ID: id, Time: at, Text: text, Part: part})
}
