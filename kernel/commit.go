package kernel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

// maxConflicts is how often a step is done anew because somebody else changed a shared block meanwhile.
const maxConflicts = 8

func (p *changes) clone() changes {
	c := *p
	c.entries, c.edits = slices.Clone(p.entries), slices.Clone(p.edits)
	c.passages, c.docs, c.dead = slices.Clone(p.passages), slices.Clone(p.docs), slices.Clone(p.dead)
	c.spoken, c.flushed = slices.Clone(p.spoken), slices.Clone(p.flushed)
	c.blocks, c.taken, c.mail = maps.Clone(p.blocks), slices.Clone(p.taken), p.mail.clone()
	return c
}

// commitPart commits what the working copy holds so far; the turn goes on.
func (r *run) commitPart(ctx context.Context) error {
	return r.commit(ctx, func() {})
}

// commit makes the step durable with all that it did, and then tells of it. decide is asked for each try whether the turn
// ends with it. When somebody else changed a block meanwhile, the calls run again on what it is now: no edit is lost.
func (r *run) commit(ctx context.Context, decide func()) error {
	for try := 0; ; try++ {
		decide()
		c, err := r.build(ctx)
		if err != nil {
			return err
		}
		done, err := r.k.cfg.Store.Commit(ctx, c)
		r.endClaims(err == nil)
		if err == nil {
			r.due = done.Pending
			r.committed(c)
			return nil
		}
		if memgpt.CodeOf(err) != memgpt.CodeConflict || try == maxConflicts {
			return fmt.Errorf("commit step %d of turn %s: %w", r.step, r.turn.ID, err)
		}
		if err := r.redo(ctx); err != nil {
			return err
		}
	}
}

// build lists what the commit holds.
func (r *run) build(ctx context.Context) (*store.Commit, error) {
	now := r.k.cfg.Now()
	r.turn.Steps = r.step
	r.see(&r.w.Event, now)
	lease := r.w.Lease
	lease.Until = now.Add(r.w.TTL)
	c := &store.Commit{Now: now, Lease: &lease, Threads: []memgpt.Thread{r.st.Thread}, Entries: r.pend.entries,
		Edits: r.pend.edits, Passages: r.pend.passages, Docs: r.docs(), DeadDocs: r.pend.dead,
		Spending: r.spent}
	for _, b := range r.st.Blocks {
		if changed, ok := r.pend.blocks[b.ID]; ok {
			c.Blocks = append(c.Blocks, changed)
		}
	}
	if r.tidies() {
		if r.done { // so that State is known
			r.endTurn(now)
		}
		if err := r.addTidied(c, now); err != nil {
			return nil, err
		}
	}
	r.pend.timers.add(c)
	if err := r.pend.mail.add(c); err != nil {
		return nil, err
	}
	if r.w.Event.ID == "" { // work that no event began, as an import
		return c, nil
	}
	c.Sayings = r.sayings(now)
	if r.done {
		r.addCalibrations(c)
	}
	switch {
	case r.settled:
	case r.done:
		r.endTurn(now)
		if err := r.answerMail(ctx); err != nil {
			return nil, err
		}
		if r.pend.answer.ID != "" {
			c.Events = append(c.Events, r.pend.answer)
		}
		c.Consume = append(c.Consume, r.w.Event.ID)
		r.addSearchRecord(c)
	default:
		e := r.w.Event
		e.Turn, e.Step, e.Begun, e.Due = r.turn.ID, r.step, true, r.until(now)
		c.Events = append([]memgpt.Event{e}, c.Events...)
	}
	for i := range r.pend.taken {
		r.see(&r.pend.taken[i], now)
		c.Consume = append(c.Consume, r.pend.taken[i].ID)
	}
	turn := r.turn
	turn.Spoke += len(r.pend.spoken)
	if r.waiting() {
		turn.State = memgpt.TurnWaiting
	}
	c.Turns = append(r.pend.steered(turn.ID, now), turn)
	c.Release = r.done && (r.settled || !r.flushLater()) && !r.more()
	return c, nil
}

// see notes when a user was last here. A time that lies ahead is a clock's that was wrong.
func (r *run) see(e *memgpt.Event, now time.Time) {
	th := &r.st.Thread
	if user := e.Type == memgpt.EventUser || e.Type == memgpt.EventLogin; user && (th.Seen.Before(e.Created) || th.Seen.After(now)) {
		th.Seen = e.Created
	}
}

// committed takes over what a commit made durable and tells of it.
func (r *run) committed(c *store.Commit) {
	r.st.Thread.Version++
	r.spent = nil
	r.tidied()
	for i := range r.st.Blocks {
		if _, ok := r.pend.blocks[r.st.Blocks[i].ID]; ok {
			r.st.Blocks[i].Version++
		}
	}
	if len(c.Events) > 0 && c.Events[0].ID == r.w.Event.ID {
		r.w.Event = c.Events[0]
	}
	r.turn.Spoke += len(r.pend.spoken)
	r.settled, r.released = r.settled || slices.Contains(c.Consume, r.w.Event.ID), c.Release
	r.w.Turn, r.w.State = r.turn, r.st
	if r.waiting() {
		r.w.Turn.State = memgpt.TurnWaiting
	}
	r.w.Lease.Until = c.Lease.Until
	done := r.pend
	if len(done.timers.set) > 0 && r.w.Wake != nil {
		r.w.Wake()
	}
	if sent := slices.DeleteFunc(slices.Clone(c.Events), func(e memgpt.Event) bool { return e.Thread == r.st.Thread.ID }); len(sent) > 0 && r.w.Sent != nil {
		r.w.Sent(sent)
	}
	r.segment, r.before = r.segment[:0], r.st.Thread.Head
	r.begin()
	for _, t := range done.steered(r.turn.ID, c.Now) {
		r.emit(memgpt.TookIn{Turn: t})
	}
	r.emit(memgpt.StepCommitted{Step: r.step, Entries: done.entries, Usage: r.turn.Usage, Context: tokens(r.last.total, r.factor())})
	for _, f := range done.flushed {
		r.emit(f)
	}
	for i, said := range done.spoken {
		spoke := memgpt.Spoke{Step: r.step, Text: said.text}
		if i < len(c.Sayings) {
			spoke.Saying = c.Sayings[i].ID
		}
		r.emit(spoke)
	}
}

// docs returns the forward rows of the commit: its passages, and those of its entries that can be searched.
func (r *run) docs() []store.Doc {
	docs := slices.Clone(r.pend.docs)
	for i := range r.pend.entries {
		if r.tidies() { // it would double the conversations
			break
		}
		e := &r.pend.entries[i]
		if text, ok := r.searchable(e); ok {
			docs = append(docs, r.k.entryDoc(e, text, r.zone))
		}
	}
	return docs
}

// searchable returns the text under which an entry is found: what was said by users, other agents, the agent itself and
// tools of the outside; not what the system says, nor what functions quote.
func (r *run) searchable(e *memgpt.Entry) (string, bool) {
	m := &e.Message
	switch m.Role {
	case memgpt.RoleSystem:
		if m.Origin != memgpt.OriginAgent {
			return "", false
		}
	case memgpt.RoleTool:
		res, _ := m.Result()
		t := r.ts.find(res.Name)
		if t == nil || t.Search || t.Effect == memgpt.EffectMemory || res.Failed {
			return "", false
		}
	}
	text := m.Said()
	return text, !blank(text)
}

func (ts *toolset) find(name string) *offered {
	if ts == nil {
		return nil
	}
	return ts.byName[name]
}

func (k *Kernel) entryDoc(e *memgpt.Entry, text string, zone *time.Location) store.Doc {
	at := e.Time
	if !at.IsZero() {
		at = at.In(zone)
	}
	terms, length := k.cfg.Analyzer.Analyze(store.IndexText{Text: text, Author: e.Message.Author, Time: at})
	return store.Doc{Tenant: e.Tenant, Owner: e.Agent, ID: e.ID, Kind: memgpt.KindMessage, Thread: e.Thread, Role: e.Message.Role,
		Author: e.Message.Author, Session: e.Message.Session, Time: e.Time, Length: length, Terms: terms}
}

// redo reads the conversation anew and does again what the last commit was refused for: it puts the entries back and runs
// the calls again that ran on the working copy.
func (r *run) redo(ctx context.Context) error {
	entries, taken, head, alerted := r.pend.entries, r.pend.taken, r.st.Thread.Head, r.st.Thread.Alerted
	if len(r.segment) > 0 { // its calls evict again what they evicted
		head = r.before
	}
	st, err := store.Load(ctx, r.k.cfg.Store, r.st.Thread.Tenant, r.st.Thread.ID)
	if err != nil {
		return fmt.Errorf("read a conversation anew that changed meanwhile: %w", err)
	}
	open := r.st.Thread.Open
	r.w.State, r.handing.record = st, nil
	r.changed()
	r.begin()
	n := 0
	for n < len(r.st.Queue) && r.st.Queue[n].Seq <= head {
		n++
	}
	r.leave(n)
	r.st.Thread.Alerted, r.st.Thread.Open, r.pend.taken = alerted, open, taken
	for _, e := range entries {
		if res, ok := e.Message.Result(); !ok || !r.ranInSegment(res.CallID) {
			r.append(e)
		}
	}
	if r.text != "" && slices.ContainsFunc(entries, func(e memgpt.Entry) bool { return e.Message.Role == memgpt.RoleAssistant }) {
		r.pend.spoken = []saidText{{text: r.text}}
	}
	if was := r.turn.State; !r.settled && (was == memgpt.TurnRunning || was == memgpt.TurnDone) { // it is decided anew
		r.done, r.turn.Stop, r.turn.State = false, "", memgpt.TurnRunning
	}
	if r.tidies() {
		if err := r.readTidied(ctx); err != nil {
			return err
		}
	}
	for _, i := range r.segment {
		c := &r.calls[i]
		c.again = c.again || !c.failed
		r.runInside(ctx, c)
	}
	return nil
}

func (r *run) ranInSegment(callID string) bool {
	return slices.ContainsFunc(r.segment, func(i int) bool { return r.calls[i].ID == callID })
}

func (r *run) endTurn(now time.Time) {
	r.turn.Ended = now
	if r.turn.State == memgpt.TurnRunning {
		r.turn.State = memgpt.TurnDone
	}
}

// flushLater reports whether a flush follows the end of the turn.
func (r *run) flushLater() bool { return r.turn.State == memgpt.TurnDone && r.flushDue() }

// more reports whether another event waits for the conversation, so that the lease is kept. The host is asked once: what
// it answered binds it.
func (r *run) more() bool {
	if !r.moreAsked {
		r.moreAsked = true
		r.moreWaits = r.w.More != nil && r.w.More()
	}
	return r.moreWaits
}

// settle flushes after the end of the turn where that is due: the answer is out, nobody waits for the summary. What goes
// wrong here does not spoil the turn.
func (r *run) settle(ctx context.Context) error {
	if r.flushLater() && r.afford(ctx, nextCall{}) == nil {
		r.segment = nil
		if err := r.flush(ctx); err != nil {
			r.emit(memgpt.Warned{Code: "flush_failed", Text: "the queue could not be flushed after the turn: " + err.Error()})
			r.begin()
		}
	}
	err := r.release(ctx)
	r.emit(memgpt.TurnEnded{Turn: r.turn})
	return err
}

// release ends the lease if the last commit did not.
func (r *run) release(ctx context.Context) error {
	if r.released || r.more() {
		return nil
	}
	_, err := r.k.cfg.Store.Commit(context.WithoutCancel(ctx), &store.Commit{Now: r.k.cfg.Now(), Lease: &r.w.Lease, Release: true})
	return err
}

// close ends a turn that was cancelled or failed: what came in is kept, and the model is told why it has no answer.
func (r *run) close(ctx context.Context, notice string) error {
	r.begin()
	r.calls, r.segment, r.text = nil, nil, ""
	r.answerOpenCalls(true)
	begun := r.takenIn()
	// Beats that no budget is there for leave nothing in the queue, which they would fill while nobody may answer.
	if begun || r.turn.Stop != memgpt.StopBudget || r.w.Event.Type != memgpt.EventTimer && !r.tidies() {
		if !begun {
			r.append(r.entryOf(&r.w.Event))
		}
		r.append(r.notice(notice))
	}
	r.done = true
	if err := r.commit(ctx, func() { r.done = true }); err != nil {
		return err
	}
	r.emit(memgpt.TurnEnded{Turn: r.turn})
	return nil
}
