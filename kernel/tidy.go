package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// Tidying is an ordinary turn in a conversation of its own (store.TidyThread), with instructions, functions and a model of its
// own. It begins with an empty queue and is given what is new since the agent's memory was last read (store.Tidied). The place
// up to which it reads moves in the commit that ends it. It speaks to nobody, and nothing of it is indexed or folded.

// tidySteps bounds a turn of tidying where the agent's policy sets no lower bound. A stronger bound than that of other turns:
// nobody is there to stop it.
const tidySteps = 24

// tidying is what a run knows of its turn's tidying.
type tidying struct {
	record store.Record
	state  store.Tidied
	next   *store.TidyMark // where the turn comes to; nil where that isn't known

	written *store.Tidied // by the commit under way
}

// tidies reports whether the run is one of tidying.
func (r *run) tidies() bool { return r.w.Event.Type == memgpt.EventTidy }

// native reports whether the turn goes on while functions are called, without being asked to.
func (r *run) native() bool {
	return r.tidies() || r.st.Agent.Protocol == memgpt.ProtocolNative
}

// opens returns the model that answers in this run.
func (r *run) opens(a *memgpt.Agent) (memgpt.Model, error) {
	if !r.tidies() || a.Tidy.Model == "" {
		return r.k.cfg.Model(*a)
	}
	own := *a
	own.Model, own.Window = a.Tidy.Model, 0 // the window is that of the agent's own model
	if r.k.cfg.Tidier != nil {
		return r.k.cfg.Tidier(own)
	}
	return r.k.cfg.Model(own)
}

// asks returns the name under which a request asks for the model.
func (r *run) asks() string {
	if r.tidies() && r.st.Agent.Tidy.Model != "" {
		return r.st.Agent.Tidy.Model
	}
	return r.st.Agent.Model
}

// instructions returns the system instructions of the run.
func (r *run) instructions() string {
	switch {
	case !r.tidies():
		return r.k.instructions(&r.st.Agent, r.compact)
	case r.compact:
		return prompt("tidy_compact")
	}
	return prompt("tidy")
}

// openTidying puts what is new into an empty queue. Where nothing is, the turn ends without a call of the model.
func (r *run) openTidying(ctx context.Context) error {
	if r.k.cfg.Tidying == nil {
		return memgpt.Errorf(memgpt.CodeInvalid, "tidy the memory of agent %s: this kernel has no functions for it", r.st.Agent.Name)
	}
	t := &r.tidy
	if r.takenIn() {
		if t.state.Turn == r.turn.ID {
			t.next = t.state.Next
		}
		return nil
	}
	th := &r.st.Thread
	r.leave(len(r.st.Queue))
	r.st.Asked, th.Asked, th.Folded, th.Alerted = nil, 0, th.Head, false
	news, err := r.tidyNews(ctx)
	if err != nil {
		return err
	}
	t.next = &news.mark
	if news.text == "" {
		r.stop(memgpt.StopEnd)
		return nil
	}
	e := r.entryOf(&r.w.Event)
	e.Message.Parts = memgpt.Parts{memgpt.Text{Text: news.text}, memgpt.Quotes{IDs: news.ids}}
	r.append(e)
	return nil
}

// readTidied reads how far the agent's memory is tidied.
func (r *run) readTidied(ctx context.Context) error {
	a := &r.st.Agent
	record, err := r.k.cfg.Store.Record(ctx, a.Tenant, store.TidyKind, a.ID)
	r.tidy.record, r.tidy.state, err = store.ReadTidied(a, record, err)
	if err != nil {
		return fmt.Errorf("read how far the memory is tidied: %w", err)
	}
	return nil
}

// addTidied puts the place up to which the memory is read into a commit: for later into the first of a turn, for good into
// the last. A turn that came to nothing leaves it where it was.
func (r *run) addTidied(c *store.Commit, now time.Time) error {
	t := &r.tidy
	th := &c.Threads[0]
	th.Folded = th.Head // what a long turn sets aside is not folded either
	r.st.Thread.Folded = th.Folded
	t.written = nil
	if t.record.ID == "" || !r.done && t.state.Turn == r.turn.ID {
		return nil
	}
	s := t.state
	switch {
	case !r.done:
		s.Turn, s.Next = r.turn.ID, t.next
	case r.turn.State == memgpt.TurnRunning || r.turn.State == memgpt.TurnDone:
		if t.next != nil {
			s.TidyMark = *t.next
		}
		s.Turn, s.Next, s.At, s.Fails = "", nil, now, 0
		if r.step == 0 { // no model was asked: it costs nothing of the day
			s.Turns = max(s.Turns-1, 0)
		}
	default:
		s.Turn, s.Next, s.At, s.Fails = "", nil, now, s.Fails+1
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	record := t.record
	record.Data = data
	c.Records = append(c.Records, record)
	t.written = &s
	return nil
}

// tidied takes over what a commit made of the record.
func (r *run) tidied() {
	if t := &r.tidy; t.written != nil {
		t.state, t.written = *t.written, nil
		t.record.Version++
	}
}

// staleRewrite returns an error where a function that rewrites a whole block does so by a value that the block has no more:
// what somebody else wrote meanwhile would be lost.
func (m *memory) staleRewrite(b memgpt.Block) error {
	shown, ok := m.run.shownBlock(b.ID)
	if !ok || shown.Version == b.Version || !m.call.rewrites() {
		return nil
	}
	return fmt.Errorf("the block %s was not changed: it was edited meanwhile, and your rewriting would undo that. It holds now:\n%s\n"+
		"Rewrite it by this, or leave it", b.Label, b.Value)
}

// rewrites reports whether a call puts a text that the model made of what it saw in place of a whole block.
func (c *call) rewrites() bool { return c != nil && c.tool != nil && c.tool.Rewrites }

// shownBlock returns a block as the model saw it in the request under way.
func (r *run) shownBlock(id string) (memgpt.Block, bool) {
	i := slices.IndexFunc(r.shown, func(b memgpt.Block) bool { return b.ID == id })
	if i < 0 {
		return memgpt.Block{}, false
	}
	return r.shown[i], true
}

// alikeOf returns the agent's older passages that a passage resembles.
func (r *run) alikeOf(ctx context.Context, p *memgpt.Passage) ([]tool.Alike, error) {
	list, err := r.k.cfg.Search.Alike(ctx, p.Tenant, p.Owner, p.Text, maxAlike+1)
	return slices.DeleteFunc(list, func(a tool.Alike) bool { return a.ID == p.ID }), err
}

// mergeLines returns what a text that was made from base is where somebody else made theirs of base meanwhile: without the lines
// that they took out, and with those that they added, at its end.
func mergeLines(base, theirs, mine string) string {
	had, there := countLines(base), countLines(theirs)
	var lines []string
	if mine != "" {
		for line := range strings.SplitSeq(mine, "\n") {
			if had[line] > 0 && there[line] == 0 && !blank(line) {
				continue
			}
			lines = append(lines, line)
		}
	}
	for line := range strings.SplitSeq(theirs, "\n") {
		if had[line]--; had[line] < 0 && !blank(line) && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func countLines(text string) map[string]int {
	n := map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		n[line]++
	}
	return n
}
