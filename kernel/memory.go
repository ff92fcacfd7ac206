package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// memory is the working copy of a step as the memory functions see it.
type memory struct {
	run  *run
	call *call
}

var _ tool.Memory = (*memory)(nil)

func (m *memory) Now() time.Time { return m.run.k.cfg.Now().In(m.run.zone) }

func (m *memory) Say(text string) {
	m.run.pend.spoken = append(m.run.pend.spoken, saidText{memgpt.CleanText(text), m.call.ID})
}

// Yield ends the turn; the executor sees it by the function's name, so that a failed call does not.
func (m *memory) Yield() {}

func (m *memory) PauseHeartbeats(d time.Duration) { m.run.st.Thread.Paused = m.run.k.cfg.Now().Add(d) }

func (m *memory) PageSize() int {
	if n := m.run.st.Agent.Policy.PageSize; n > 0 {
		return n
	}
	return 5
}

// Fits measures a result as compile will show it.
func (m *memory) Fits(result string) bool {
	v, calls := m.run.view(), max(len(m.run.calls), 1)
	e := memgpt.Entry{Time: m.Now(), Message: memgpt.Message{Role: memgpt.RoleTool,
		Parts: memgpt.Parts{memgpt.Result{CallID: m.call.ID, Name: m.call.Name, Text: result}}}}
	whole := v.whole(&e)
	return v.count.Message(&whole) <= v.caps.of(&e, calls)
}

func (m *memory) Block(label string) (memgpt.Block, error) {
	labels := make([]string, 0, len(m.run.st.Blocks))
	for _, b := range m.run.st.Blocks {
		if b.Label == label {
			return m.seen(b), nil
		}
		labels = append(labels, b.Label)
	}
	for _, b := range m.run.st.Blocks {
		if strings.EqualFold(b.Label, strings.TrimSpace(label)) {
			return m.seen(b), nil
		}
	}
	return memgpt.Block{}, fmt.Errorf("there is no block with the label %q; the labels are %s", label, strings.Join(labels, ", "))
}

func (m *memory) SetBlock(label, value string) (memgpt.Block, error) {
	b, err := m.Block(label)
	if err != nil {
		return b, err
	}
	value = memgpt.CleanText(value)
	if b.ReadOnly {
		return b, fmt.Errorf("the block %s is read-only and was not changed", b.Label)
	}
	if value == b.Value {
		return b, nil
	}
	if value, err = m.merge(b, value); err != nil {
		return b, err
	}
	if err := CheckLimit(b, value); err != nil {
		return b, err
	}
	b.Value = value
	m.putBlock(b)
	return b, nil
}

// seen returns a block as the call in hand works on it: where it rewrites the block, or is done anew by what the model saw, that
// is the value that the model saw.
func (m *memory) seen(b memgpt.Block) memgpt.Block {
	if m.call == nil || !m.call.rebased && !m.call.rewrites() || m.run.tidies() {
		return b
	}
	if shown, ok := m.run.shownBlock(b.ID); ok && shown.Version != b.Version {
		b.Value = shown.Value
	}
	return b
}

// merge returns what a block is to hold that seen returned: with what others made of it since the model saw it. Tidying has
// time to think again.
func (m *memory) merge(b memgpt.Block, value string) (string, error) {
	i := slices.IndexFunc(m.run.st.Blocks, func(o memgpt.Block) bool { return o.ID == b.ID })
	if m.run.tidies() {
		return value, m.staleRewrite(b)
	}
	if theirs := m.run.st.Blocks[i].Value; theirs != b.Value {
		value = mergeLines(b.Value, theirs, value)
	}
	return value, nil
}

// CheckLimit returns an error for the model where a block's new value is over its limit. A value that is shorter than
// the old one is taken even then: it is a step towards a lowered limit.
func CheckLimit(b memgpt.Block, value string) error {
	used, want := memgpt.Runes(b.Value), memgpt.Runes(value)
	if want <= b.Limit || want < used {
		return nil
	}
	return fmt.Errorf("the block %s was not changed: it would hold %d of at most %d characters (now %d/%d). Shorten what is"+
		" in it, or move what matters less to the archive with archival_memory_insert, and try again", b.Label, want, b.Limit, used, b.Limit)
}

func (m *memory) putBlock(b memgpt.Block) {
	r := m.run
	r.stale = true
	for i := range r.st.Blocks {
		if r.st.Blocks[i].ID == b.ID {
			r.st.Blocks[i] = b
		}
	}
	blocks := map[string]memgpt.Block{b.ID: b}
	for id, other := range r.pend.blocks {
		if id != b.ID {
			blocks[id] = other
		}
	}
	r.pend.blocks = blocks
	edit := store.BlockEdit{Block: b.ID, Version: b.Version + 1, Value: b.Value, Time: r.k.cfg.Now(), Cause: m.cause()}
	if i := slices.IndexFunc(r.pend.edits, func(e store.BlockEdit) bool { return e.Block == b.ID }); i >= 0 && r.tidies() {
		edit.Cause.Call = r.pend.edits[i].Cause.Call + ", " + edit.Cause.Call
	}
	r.pend.edits = append(slices.DeleteFunc(r.pend.edits, func(e store.BlockEdit) bool { return e.Block == b.ID }), edit)
}

func (m *memory) cause() memgpt.Cause {
	r := m.run
	c := memgpt.Cause{Event: r.w.Event.ID, Origin: r.w.Event.Message.Origin, Agent: r.st.Agent.ID, Turn: r.turn.ID, Call: m.call.Name}
	if r.tidies() {
		c.Call += " " + m.call.ID // which has the reason
	}
	return c
}

func (m *memory) Search(ctx context.Context, q tool.Query) (tool.Hits, error) {
	r := m.run
	q.Tenant, q.Owner, q.Zone, q.Now = r.st.Thread.Tenant, r.st.Agent.ID, r.zone, m.Now()
	for i := range r.st.Blocks {
		q.Known = append(q.Known, r.st.Blocks[i].Value)
	}
	for i := range r.st.Queue {
		if e := &r.st.Queue[i]; e.Turn == r.turn.ID {
			q.Exclude = append(q.Exclude, e.ID)
		}
	}
	if a := r.st.Asked; a != nil && a.Turn == r.turn.ID {
		q.Exclude = append(q.Exclude, a.ID)
	}
	shared := map[string]string{}
	if len(q.Kinds) == 0 || slices.Contains(q.Kinds, memgpt.KindPassage) {
		archives, err := store.ArchivesOf(ctx, r.k.cfg.Store, &r.st.Agent)
		if err != nil {
			return tool.Hits{}, err
		}
		for _, a := range archives {
			q.Archives, shared[a.ID] = append(q.Archives, a.ID), a.Name
		}
	}
	hits, err := r.k.cfg.Search.Search(ctx, q)
	if err != nil || len(hits.List) == 0 {
		return hits, err
	}
	names, err := r.threadNames(ctx)
	for i := range hits.List {
		h := &hits.List[i]
		h.Thread, h.Archive = names[h.Thread], shared[h.Archive]
	}
	return hits, err
}

// threadNames maps the ids of the agent's conversations to their names.
func (r *run) threadNames(ctx context.Context) (map[string]string, error) {
	threads, err := r.k.cfg.Store.Threads(ctx, r.st.Thread.Tenant, r.st.Agent.ID)
	if err != nil {
		return nil, fmt.Errorf("read the names of the conversations: %w", err)
	}
	names := make(map[string]string, len(threads))
	for _, t := range threads {
		names[t.ID] = t.Name
	}
	return names, nil
}

// maxAround bounds the neighbours that are read with a message.
const maxAround = 50

func (m *memory) Read(ctx context.Context, id string, around int) ([]tool.Original, error) {
	r := m.run
	id = strings.TrimSpace(id)
	found, err := r.k.cfg.Store.EntriesByID(ctx, r.st.Thread.Tenant, r.st.Agent.ID, []string{id})
	if err != nil {
		return nil, err
	}
	around = min(max(around, 0), maxAround)
	if len(found) == 0 {
		return m.readPassage(ctx, id, around)
	}
	e := found[0]
	entries := found
	if around > 0 {
		entries, err = r.k.cfg.Store.Entries(ctx, store.EntryRange{Tenant: e.Tenant, Thread: e.Thread,
			After: e.Seq - int64(around) - 1, Before: e.Seq + int64(around) + 1})
		if err != nil {
			return nil, err
		}
	}
	names, err := r.threadNames(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]tool.Original, 0, len(entries))
	for i := range entries {
		out = append(out, original(&entries[i], names, id))
	}
	return out, nil
}

func original(e *memgpt.Entry, names map[string]string, asked string) tool.Original {
	msg := &e.Message
	o := tool.Original{ID: e.ID, Kind: memgpt.KindMessage, Thread: names[e.Thread], Role: msg.Role, Author: msg.Author,
		Origin: msg.Origin, Type: msg.Type, Time: e.Time, Text: msg.Said(), Asked: e.ID == asked}
	for _, c := range msg.Calls() {
		if c.Name != memgpt.FuncSendMessage {
			o.Calls = append(o.Calls, c)
		}
	}
	return o
}

// readPassage returns a passage, with its neighbours in the document that it came from.
func (m *memory) readPassage(ctx context.Context, id string, around int) ([]tool.Original, error) {
	p, archive, err := m.passage(ctx, id)
	if err != nil {
		return nil, err
	}
	list := []memgpt.Passage{p}
	if around > 0 && p.Source != "" && p.Seq > 0 {
		list, err = m.run.k.cfg.Store.PassagesOf(ctx, store.PassageRange{Tenant: p.Tenant, Owner: p.Owner, Source: p.Source, Dead: true,
			After: p.Seq - int64(around) - 1, Before: p.Seq + int64(around) + 1})
		if err != nil {
			return nil, err
		}
	}
	out := make([]tool.Original, 0, len(list))
	for i := range list {
		if p := &list[i]; p.ID == id || p.Live() {
			out = append(out, passageOriginal(p, archive, id))
		}
	}
	return out, m.addChain(ctx, p, out)
}

// passage finds a passage of the agent, those of the step under way among them, or of a shared archive, whose name it
// returns then.
func (m *memory) passage(ctx context.Context, id string) (p memgpt.Passage, archive string, err error) {
	for _, p := range m.run.pend.passages {
		if p.ID == id {
			return p, "", nil
		}
	}
	found, err := m.run.k.cfg.Store.Passages(ctx, m.run.st.Thread.Tenant, m.run.st.Agent.ID, []string{id})
	if err == nil && len(found) == 0 {
		found, archive, err = m.sharedPassage(ctx, id)
	}
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("there is nothing with the id %q; use an id from a search result or a message", memgpt.CutText(id, 80))
	}
	if err != nil {
		return p, "", err
	}
	return found[0], archive, nil
}

// sharedPassage looks for a passage in the shared archives that the agent reads, and returns the name of its own.
func (m *memory) sharedPassage(ctx context.Context, id string) (found []memgpt.Passage, archive string, err error) {
	shared, err := store.ArchivesOf(ctx, m.run.k.cfg.Store, &m.run.st.Agent)
	if err != nil {
		return nil, "", err
	}
	for _, a := range shared {
		if found, err = m.run.k.cfg.Store.Passages(ctx, a.Tenant, a.ID, []string{id}); err != nil || len(found) > 0 {
			return found, a.Name, err
		}
	}
	return nil, "", nil
}

// ownPassage is passage for one that is to be changed: shared ones can't be.
func (m *memory) ownPassage(ctx context.Context, id string) (memgpt.Passage, error) {
	p, archive, err := m.passage(ctx, strings.TrimSpace(id))
	if err == nil && archive != "" {
		err = fmt.Errorf("the passage %s is of the shared archive %q, which you can read and not change; store what you know"+
			" better as a passage of your own with archival_memory_insert", p.ID, archive)
	}
	return p, err
}

// foldText is the form under which two texts are the same where the configuration has no better one.
func foldText(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// keyed returns the owner's live passage with a key, if there is one.
func (k *Kernel) keyed(ctx context.Context, tenant, owner, key string) (memgpt.Passage, bool, error) {
	p, err := k.cfg.Store.PassageKeyed(ctx, tenant, owner, key)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return p, false, nil
	}
	return p, err == nil, err
}

// maxAlike is how many passages are shown that a new one resembles.
const maxAlike = 3

func (m *memory) Alike(ctx context.Context, text string) ([]tool.Alike, error) {
	return m.run.k.cfg.Search.Alike(ctx, m.run.st.Thread.Tenant, m.run.st.Agent.ID, memgpt.CleanText(text), maxAlike)
}

// passageDoc returns the forward row of a passage: searches by dates find it under the time that it is about.
func (k *Kernel) passageDoc(p *memgpt.Passage, zone *time.Location) store.Doc {
	terms, length := k.cfg.Analyzer.Analyze(store.IndexText{Text: p.Text, Time: tool.Dated(p).In(zone), Tags: p.Tags})
	return store.Doc{Tenant: p.Tenant, Owner: p.Owner, ID: p.ID, Kind: memgpt.KindPassage, Time: tool.Dated(p), Length: length, Terms: terms}
}

func (m *memory) putPassage(p memgpt.Passage) {
	r := m.run
	for i := range r.pend.passages {
		if r.pend.passages[i].ID == p.ID {
			r.pend.passages[i] = p
			return
		}
	}
	r.pend.passages = append(r.pend.passages, p)
}

func (m *memory) Delete(ctx context.Context, id string) (memgpt.Passage, error) {
	p, err := m.ownPassage(ctx, id)
	if err != nil {
		return p, err
	}
	if !p.Deleted.IsZero() {
		return p, fmt.Errorf("the passage %s is deleted already", p.ID)
	}
	p.Deleted = m.run.k.cfg.Now()
	m.retire(p)
	return p, nil
}

// retire takes a passage out of results.
func (m *memory) retire(p memgpt.Passage) {
	m.putPassage(p)
	m.run.pend.dead = append(m.run.pend.dead, store.DocRef{Tenant: p.Tenant, Owner: p.Owner, ID: p.ID})
}

func (m *memory) Evict(ctx context.Context, through, summary string) (tool.Eviction, error) {
	r := m.run
	limit := r.evictable()
	l := r.measure()
	n := 0
	if through == "" {
		n = r.oldest(l, tokens(l.total, r.factor())-r.win.target, limit)
		if n == 0 {
			return tool.Eviction{}, fmt.Errorf("nothing was moved: the queue is below %d tokens already, or holds only the step in progress", r.win.target)
		}
	} else {
		var err error
		if n, err = r.unitThrough(strings.TrimSpace(through), limit); err != nil {
			return tool.Eviction{}, err
		}
	}
	if err := r.takeSummary(summary, n); err != nil {
		return tool.Eviction{}, err
	}
	return m.evict(ctx, n, l)
}

// unitThrough returns how many entries leave so that the one with the id does, whole steps.
func (r *run) unitThrough(id string, limit int) (int, error) {
	at := slices.IndexFunc(r.st.Queue, func(e memgpt.Entry) bool { return e.ID == id })
	if at < 0 {
		return 0, fmt.Errorf("the message %q is not in the queue; leave through out to move the oldest ones", memgpt.CutText(id, 80))
	}
	for _, end := range units(r.st.Queue) {
		if at < end {
			if end > limit {
				return 0, fmt.Errorf("the step in progress can't leave; name an earlier message, or leave through out")
			}
			return end, nil
		}
	}
	return 0, fmt.Errorf("the message %q is not in the queue", id)
}

// takeSummary puts the model's own summary of the first n entries in place of one that the queue manager would write. It
// stands verbatim after the summary so far, of which as much is kept as there is room for.
func (r *run) takeSummary(summary string, n int) error {
	summary = strings.TrimSpace(memgpt.CleanText(summary))
	if summary == "" || r.k.cfg.NoSummary {
		return nil
	}
	v := r.view()
	limit := int(float64(r.win.summaryCap()) / r.factor())
	if !v.fits(summary, limit) {
		return fmt.Errorf("nothing was moved: the summary takes %d tokens and may take %d; write it shorter", v.count.Text(summary), limit)
	}
	s := &r.st.Thread.Summary
	if s.Text != "" {
		old, cut := v.prefix(s.Text, limit-v.count.Text(summary)-2)
		if cut {
			old += "…"
		}
		summary = strings.TrimSpace(old + "\n" + summary)
	}
	s.Text = summary
	s.Covers += n + int(r.st.Thread.Head-r.st.Thread.Folded)
	r.st.Thread.Folded = r.st.Queue[n-1].Seq
	return nil
}

func (m *memory) evict(ctx context.Context, n int, l layout) (tool.Eviction, error) {
	r := m.run
	gone := r.leave(n)
	th := &r.st.Thread
	freed := tokens(sum(l.queue[:n]), r.factor())
	if err := r.restate(ctx, ""); err != nil {
		return tool.Eviction{}, err
	}
	total := r.total()
	th.Alerted = th.Alerted && total > r.win.alert
	r.pend.flushed = append(r.pend.flushed, memgpt.Flushed{Messages: n, Tokens: freed, ByModel: true})
	return tool.Eviction{Messages: n, Tokens: freed, Free: max(r.win.flush-total, 0), Through: gone[n-1].ID}, nil
}
