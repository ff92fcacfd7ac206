package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
)

// sweep goes over all that the agent has and makes the erasure: tombstones for what goes whole, marks where others quote
// it.
func (p *forgetPlan) sweep(ctx context.Context) error {
	if p.what.Whole {
		return p.forgetAgent(ctx)
	}
	for _, step := range []func(context.Context) error{p.sweepLog, p.sweepPassages, p.sweepBlocks, p.sweepInbox} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *forgetPlan) sweepLog(ctx context.Context) error {
	for i := range p.threads {
		t := &p.threads[i]
		if p.what.Thread != nil && p.what.Thread.ID == t.ID {
			if err := p.goneThread(ctx, t); err != nil {
				return err
			}
			continue
		}
		asked := int64(0) // the newest message of a user that stays
		err := p.eachEntry(ctx, t, func(e *memgpt.Entry) error {
			p.sweepEntry(t, e)
			_, gone := p.entries[e.ID]
			if !gone && e.Message.Role == memgpt.RoleUser && e.Message.Origin != memgpt.OriginImport {
				asked = e.Seq
			}
			if gone && e.Seq == t.Asked {
				t.Asked = asked
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := p.sweepTurns(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// goneThread plans the end of a conversation.
func (p *forgetPlan) goneThread(ctx context.Context, t *memgpt.Thread) error {
	p.done.Threads++
	p.done.Messages += len(p.entries)
	p.note("conversation", t.ID, t.Created, t.Name, false)
	p.erasure.GoneThreads = append(p.erasure.GoneThreads, *t)
	return p.record("conversation")
}

// sweepEntry takes an entry whole, or what it quotes.
func (p *forgetPlan) sweepEntry(t *memgpt.Thread, e *memgpt.Entry) {
	if wasForgotten(e) {
		return
	}
	for _, c := range e.Message.Calls() {
		if p.traces.named(c.Arguments) {
			p.reading[e.Turn+" "+c.ID] = true
		}
	}
	var left memgpt.Entry
	if _, gone := p.entries[e.ID]; gone {
		left = forgottenEntry(*e, p.text, !p.orphans[e.ID])
		p.done.Messages++
		p.note("message", e.ID, e.Time, describeMessage(&e.Message), false)
	} else if p.quotes(e) {
		left = forgottenEntry(*e, p.text, true)
		p.done.Quotes++
		p.note("message", e.ID, e.Time, describeMessage(&e.Message), true)
	} else {
		m, changed := p.traces.cutMessage(e.Message)
		if p.evicted[t.ID] {
			m, changed = withoutEvictions(m, changed)
		}
		if !changed {
			return
		}
		p.done.Quotes++
		p.note("message", e.ID, e.Time, describeMessage(&e.Message), true)
		left = *e
		left.Message = m
		if len(m.Parts) == 0 {
			left = forgottenEntry(*e, p.text, false)
		}
	}
	p.touched[t.ID] = p.touched[t.ID] || e.Seq <= t.Folded
	p.evicted[t.ID] = true
	p.erasure.Entries = append(p.erasure.Entries, left)
	p.erasure.Docs = append(p.erasure.Docs, p.entryDoc(&left))
	t.Open = slices.DeleteFunc(t.Open, func(c memgpt.OpenCall) bool { return c.Entry == e.ID && wasForgotten(&left) })
}

// evictFunction is the function whose calls bring a summary of what leaves the queue.
const evictFunction = "conversation_evict"

// withoutEvictions returns a message with the mark in place of the summaries that calls brought of what came before, and
// whether anything changed. They may tell of what goes in other words, as the conversation's own summary, which is dropped.
func withoutEvictions(m memgpt.Message, changed bool) (memgpt.Message, bool) {
	for i, part := range m.Parts {
		c, ok := part.(memgpt.Call)
		args, object := decodeTexts(c.Arguments).(map[string]any)
		if !ok || c.Name != evictFunction || !object || args["summary"] == nil || args["summary"] == forgottenMark {
			continue
		}
		if !changed {
			m.Parts, changed = slices.Clone(m.Parts), true
		}
		args["summary"] = forgottenMark
		c.Arguments = string(mustJSON(args))
		m.Parts[i] = c
	}
	return m, changed
}

// quotedWeight is the least weight of a result that may hold a quotation, beside the ids that it names.
const quotedWeight = 40

// quotes reports whether an entry is a page of results, or a heartbeat, that names what goes. Which part of it is a quotation can't be
// told, and its originals are still there.
func (p *forgetPlan) quotes(e *memgpt.Entry) bool {
	if e.Message.Role != memgpt.RoleTool && e.Message.Type != memgpt.EventPrefetch && e.Message.Type != memgpt.EventTimer && e.Message.Type != memgpt.EventTidy {
		return false
	}
	said := e.Message.Said()
	if textWeight(p.traces.withoutIDs(said)) < quotedWeight && !toldDates(said) {
		return false
	}
	res, _ := e.Message.Result()
	return p.traces.named(said) || p.reading[e.Turn+" "+res.CallID]
}

// entryDoc returns what stays of an entry's document.
func (p *forgetPlan) entryDoc(e *memgpt.Entry) store.Doc {
	d := store.Doc{Tenant: e.Tenant, Owner: e.Agent, ID: e.ID}
	if text := e.Message.Said(); !wasForgotten(e) && !onlyMarks(text) {
		full := p.k.entryDoc(e, strings.ReplaceAll(text, forgottenMark, " "), p.zone)
		d.Terms, d.Length = full.Terms, full.Length
	}
	return d
}

func describeMessage(m *memgpt.Message) string {
	who, said := string(m.Role), m.Said()
	if m.Author != "" {
		who = m.Author
	}
	if said == "" {
		said = m.Thoughts()
	}
	for _, c := range m.Calls() {
		if c.Name != memgpt.FuncSendMessage {
			said = strings.TrimSpace(said + " [" + c.Name + " " + c.Arguments + "]")
		}
	}
	return who + ": " + said
}

// sweepTurns takes texts out of the errors of turns, and out of what was looked up for them.
func (p *forgetPlan) sweepTurns(ctx context.Context, t *memgpt.Thread) error {
	turns, err := p.k.cfg.Store.Turns(ctx, t.Tenant, t.ID, 0)
	for _, turn := range turns {
		left := p.traces.cut(turn.Error)
		if p.term != nil && p.holds(turn.Error) {
			left = forgottenMark
		}
		looked, changed := p.cutPrefetched(&turn)
		if left != turn.Error || changed {
			p.done.Others++
			p.note("turn", turn.ID, turn.Started, turn.Error, true)
			turn.Error, turn.Prefetch = left, looked
			p.erasure.Turns = append(p.erasure.Turns, turn)
		}
	}
	return err
}

func (p *forgetPlan) sweepPassages(ctx context.Context) error {
	return p.eachPassage(ctx, func(pa *memgpt.Passage) error {
		switch left := p.traces.cut(pa.Text); {
		case forgottenAlready(pa):
		case p.dead[pa.ID], onlyMarks(left) && left != pa.Text:
			p.done.Passages++
			p.note("passage", pa.ID, pa.Time, pa.Text, false)
			p.erasure.Passages = append(p.erasure.Passages, forgottenPassage(*pa, p.text, p.now))
			p.erasure.Docs = append(p.erasure.Docs, store.Doc{Tenant: pa.Tenant, Owner: pa.Owner, ID: pa.ID})
		case left != pa.Text:
			p.done.Quotes++
			p.note("passage", pa.ID, pa.Time, pa.Text, true)
			q := *pa
			q.Text, q.Key = strings.ReplaceAll(left, forgottenMark, " "), ""
			p.erasure.Docs = append(p.erasure.Docs, p.k.passageDoc(&q, p.zone))
			q.Text = left
			p.erasure.Passages = append(p.erasure.Passages, q)
		case slices.ContainsFunc(pa.From, func(id string) bool { _, gone := p.entries[id]; return gone }):
			p.done.Kept = append(p.done.Kept, fmt.Sprintf("passage %s, which the agent took from it: %.60q", pa.ID, pa.Text))
		case p.turns[pa.Cause.Turn] != "":
			p.done.Kept = append(p.done.Kept, fmt.Sprintf("passage %s, which the agent wrote on it in other words: %.60q", pa.ID, pa.Text))
		}
		return nil
	})
}

// sweepBlocks takes texts out of blocks and their history: lines that hold the term, or what quotes.
func (p *forgetPlan) sweepBlocks(ctx context.Context) error {
	for i := range p.blocks {
		b := &p.blocks[i]
		edits, err := p.k.cfg.Store.BlockHistory(ctx, b.Tenant, b.ID)
		if err != nil {
			return err
		}
		value, about := p.cutLines(b.Value), p.cutLines(b.Description)
		changed := value != b.Value || about != b.Description
		if changed {
			p.note("block", b.ID, time.Time{}, b.Label+": "+b.Value, true)
		}
		past, reworded := false, false
		for j := range edits {
			left := p.cutLines(edits[j].Value)
			past = past || left != edits[j].Value
			reworded = reworded || left == edits[j].Value && p.turns[edits[j].Cause.Turn] != ""
			edits[j].Value = left
		}
		if reworded {
			p.done.Kept = append(p.done.Kept, fmt.Sprintf("block %q, in which the agent wrote on it in other words: look at it, and forget a term of it", b.Label))
		}
		if !changed && !past {
			continue
		}
		if !changed {
			p.note("block", b.ID, time.Time{}, b.Label+": in its history", true)
		}
		b.Value, b.Description = value, about
		p.done.Blocks++
		p.erasure.Blocks = append(p.erasure.Blocks, *b)
		p.erasure.Histories = append(p.erasure.Histories, store.History{Tenant: b.Tenant, Block: b.ID, Edits: edits})
		if names := p.sharers[b.ID]; names != "" {
			p.done.Shared = append(p.done.Shared, b.Label+" (also of "+names+")")
			if err := p.fenceSharers(ctx, b.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *forgetPlan) cutLines(text string) string {
	if p.term == nil {
		return p.traces.cut(text)
	}
	lines := strings.Split(text, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return line != "" && p.holds(line) })
	for size := 2; size <= len(lines) && p.taken(strings.Join(lines, "\n")); size++ { // a phrase that a line break parts
		for i := 0; i+size <= len(lines); {
			if p.taken(strings.Join(lines[i:i+size], "\n")) {
				lines = slices.Delete(lines, i, i+size)
			} else {
				i++
			}
		}
	}
	return strings.Join(lines, "\n")
}

// fenceSharers makes the other agents that have a block throw away the steps that they are at: they have read it.
func (p *forgetPlan) fenceSharers(ctx context.Context, block string) error {
	s, own := p.k.cfg.Store, &p.what.Agent
	agents, err := s.Agents(ctx, own.Tenant)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if a.ID == own.ID || !slices.Contains(a.Blocks, block) {
			continue
		}
		threads, err := s.Threads(ctx, a.Tenant, a.ID)
		if err != nil {
			return err
		}
		for _, t := range threads {
			if !slices.ContainsFunc(p.erasure.Threads, func(u memgpt.Thread) bool { return u.ID == t.ID }) {
				p.erasure.Threads = append(p.erasure.Threads, t)
			}
		}
	}
	return nil
}

// sweepInbox takes texts out of events that wait.
func (p *forgetPlan) sweepInbox(ctx context.Context) error {
	for i := range p.agents {
		if err := p.sweepInboxOf(ctx, &p.agents[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *forgetPlan) sweepInboxOf(ctx context.Context, a *memgpt.Agent) error {
	events, err := p.k.cfg.Store.Events(ctx, store.EventRange{Tenant: a.Tenant, Agent: a.ID})
	for _, ev := range events {
		if p.what.Thread != nil && p.what.Thread.ID == ev.Thread || ev.Message.Origin == memgpt.OriginOwner {
			continue
		}
		m, changed := p.traces.cutMessage(ev.Message)
		told := memgpt.Entry{Turn: ev.Turn, Message: ev.Message}
		told.Message.Type = ev.Type
		if p.goneWith(&ev) || p.quotes(&told) || p.term != nil && p.holds(messageTexts(&ev.Message)...) {
			changed = true
			m = memgpt.Message{Role: ev.Message.Role, Type: ev.Message.Type, Origin: memgpt.OriginOwner, Parts: memgpt.Parts{memgpt.Text{Text: p.text}}}
		}
		if changed {
			p.done.Others++
			p.note("event", ev.ID, ev.Created, describeMessage(&ev.Message), true)
			ev.Message = m
			p.erasure.Events = append(p.erasure.Events, ev)
		}
	}
	return err
}

// goneWith reports whether an event's message is in the log already, and goes.
func (p *forgetPlan) goneWith(ev *memgpt.Event) bool {
	for _, e := range p.erasure.Entries {
		if e.Turn == ev.Turn && e.Step == 0 && ev.Turn != "" && wasForgotten(&e) && p.entries[e.ID] == e.Turn {
			return true
		}
	}
	return false
}

// finish drops the summaries that may tell of what goes, and says what else of the conversations changes. All of them are
// stored anew, so that none goes on with what it has read.
func (p *forgetPlan) finish(context.Context) error {
	if p.what.Whole {
		return nil
	}
	var threads []memgpt.Thread
	for i := range p.threads {
		t := p.threads[i]
		if p.what.Thread != nil && p.what.Thread.ID == t.ID {
			continue
		}
		s := &t.Summary
		if s.Text != "" && (p.touched[t.ID] || p.traces.in(s.Text) || p.term != nil && p.holds(s.Text)) {
			p.done.Summaries++
			p.note("summary", t.ID, s.Time, s.Text, false)
			s.Text, s.Covers, t.Folded = "", 0, 0
		}
		s.Failed = p.withoutError(s.Failed)
		if p.sourceGoes() {
			s.Outside.Sources = slices.DeleteFunc(s.Outside.Sources, p.sourceGone)
		}
		if p.term != nil && p.holds(t.Name) {
			p.done.Kept = append(p.done.Kept, "the name of conversation "+t.Name)
		}
		threads = append(threads, t)
	}
	p.keepWhatIsTheOwners()
	if p.done.None() {
		p.erasure = store.Erasure{Now: p.now}
		return nil
	}
	p.erasure.Threads = append(threads, p.erasure.Threads...)
	if p.what.Source != "" || p.what.Term != "" {
		p.erasure.Keys = []string{p.what.Source + p.what.Term}
	}
	return nil
}

func (p *forgetPlan) withoutError(text string) string {
	if p.traces.in(text) || p.term != nil && p.holds(text) {
		return forgottenMark
	}
	return text
}

func (p *forgetPlan) sourceGoes() bool {
	return p.what.Source != "" && p.what.Archive == nil || p.term != nil
}

func (p *forgetPlan) sourceGone(name string) bool {
	return name == p.what.Source || p.term != nil && p.holds(name)
}

// keepWhatIsTheOwners says which of the owner's own settings hold the term.
func (p *forgetPlan) keepWhatIsTheOwners() {
	if p.term == nil {
		return
	}
	if p.holds(p.what.Agent.System) {
		p.done.Kept = append(p.done.Kept, "the agent's own instructions")
	}
	if p.holds(p.what.Agent.Name) {
		p.done.Kept = append(p.done.Kept, "the agent's name")
	}
	for _, b := range p.blocks {
		if p.holds(b.Label) {
			p.done.Kept = append(p.done.Kept, "the label of block "+b.Label)
		}
	}
}
