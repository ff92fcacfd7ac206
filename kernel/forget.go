package kernel

import (
	"context"
	"fmt"
	"time"

	"memgpt"
	"memgpt/store"
)

// Forgetting is what the owner of an agent wants forgotten. One of the fields after Agent is set. There is no function of
// the model that forgets: it may only propose it.
type Forgetting struct {
	Agent    memgpt.Agent
	Archive  *store.Archive // by Passages or Source: those of a shared archive, and what any agent quotes of them; Agent is not looked at
	Messages []string       // ids of entries; the results of their calls go with them
	Passages []string       // ids; earlier versions that they replaced go with them
	Source   string         // all passages of a document
	Term     string         // every message, passage, line of a block and summary that holds it
	Thread   *memgpt.Thread // a conversation, whole
	Whole    bool           // the agent with all that it has

	// Forms takes for Term also longer words that hold it and other forms of it (of "ann" also "annual", of "run" also
	// "running").
	Forms bool
}

// Forgotten says what a Forgetting takes, or took.
type Forgotten struct {
	Messages  int // whole
	Passages  int // whole
	Quotes    int // messages, passages and events that lose only what they quote
	Blocks    int // that lose text, now or in their history
	Summaries int // that are dropped and made anew
	Others    int // events and turns that lose text
	Threads   int // removed whole
	Lines     []ForgottenLine
	Shared    []string // blocks that other agents have too, with their names: they change for all
	Related   int      // texts that hold Term only within a longer word, or another form of it: Forms takes them
	Kept      []string // what the owner must change by hand
	Already   int      // asked for and forgotten before
}

// ForgottenLine is one text that goes, or loses a part.
type ForgottenLine struct {
	Kind string // "message", "passage", "block", "summary", "event", "turn" or "conversation"
	ID   string
	Time time.Time
	Text string
	Part bool // only what it quotes goes
}

// None reports whether there is nothing to forget.
func (f *Forgotten) None() bool {
	return f.Messages+f.Passages+f.Quotes+f.Blocks+f.Summaries+f.Others+f.Threads == 0
}

// forgetRounds bounds how often Forget looks again for what was written while it worked.
const forgetRounds = 8

// PreviewForget returns what Forget would take, and changes nothing.
func (k *Kernel) PreviewForget(ctx context.Context, what Forgetting) (*Forgotten, error) {
	p, err := k.planForget(ctx, &what, nil)
	if err != nil {
		return nil, err
	}
	return &p.done, nil
}

// Forget takes out of the store what the owner wants forgotten: from the log, where a dated notice stays, from the
// archive, every index, blocks and their history, pending events, and the texts of failed turns. Where a text stands word
// for word in other messages, passages or blocks, a mark takes its place there, and results of searches that quoted it
// are taken whole. Summaries of it are dropped, and the next flush makes them anew from the log. Conversations that run
// meanwhile throw their step away and go on with what is left. It looks again until there is nothing left to take. An
// error of CodeBusy says that all this is done, but that bytes of it may be left in free space until it is run again.
func (k *Kernel) Forget(ctx context.Context, what Forgetting) (*Forgotten, error) {
	total := &Forgotten{}
	var known *traces
	for round := 0; ; round++ {
		p, err := k.planForget(ctx, &what, known)
		if err != nil {
			return total, err
		}
		if round > 0 && p.done.None() {
			return total, nil
		}
		err = k.cfg.Store.Erase(ctx, &p.erasure)
		if memgpt.CodeOf(err) == memgpt.CodeConflict && round < forgetRounds {
			continue // somebody wrote meanwhile
		}
		if err != nil {
			return total, err
		}
		known = p.traces
		total.add(&p.done)
		if what.Whole || p.done.None() || round >= forgetRounds {
			return total, nil
		}
	}
}

// add takes a further round in.
func (f *Forgotten) add(g *Forgotten) {
	f.Messages, f.Passages, f.Quotes, f.Blocks = f.Messages+g.Messages, f.Passages+g.Passages, f.Quotes+g.Quotes, f.Blocks+g.Blocks
	f.Summaries, f.Others, f.Threads = f.Summaries+g.Summaries, f.Others+g.Others, f.Threads+g.Threads
	f.Lines = append(f.Lines, g.Lines...)
	f.Shared = append(f.Shared, g.Shared...)
	f.Kept, f.Related, f.Already = g.Kept, g.Related, max(f.Already, g.Already)
}

// forgotten is the text that stays in place of another.
func forgotten(at time.Time) string { return "forgotten by the owner on " + at.Format(time.DateOnly) }

// forgottenMark stands where a part of a text was.
const forgottenMark = "[forgotten]"

// forgottenEntry returns the entry that stays in place of another: in place of a message a notice of the system, in place
// of a result whose call stays a result.
func forgottenEntry(e memgpt.Entry, text string, keepsCall bool) memgpt.Entry {
	if res, ok := e.Message.Result(); ok && keepsCall {
		res.Text = text
		e.Message = memgpt.Message{Role: memgpt.RoleTool, Origin: memgpt.OriginOwner, Parts: memgpt.Parts{res}}
		return e
	}
	e.Message = memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginOwner, text)
	e.Message.Type = memgpt.EventNotice
	return e
}

// wasForgotten reports whether an entry stands in place of one that was forgotten.
func wasForgotten(e *memgpt.Entry) bool { return e.Message.Origin == memgpt.OriginOwner }

// forgottenPassage returns the passage that stays in place of another.
func forgottenPassage(p memgpt.Passage, text string, now time.Time) memgpt.Passage {
	p.Text, p.Tags, p.Source, p.Heading, p.Position, p.Key, p.From = text, nil, "", "", 0, "", nil
	p.About, p.Ended, p.WasEnded = time.Time{}, time.Time{}, time.Time{} // a date of birth says what was forgotten
	p.Cause.Origin = memgpt.OriginOwner
	if p.Deleted.IsZero() {
		p.Deleted = now
	}
	return p
}

// forgetAgent plans the end of an agent: with it go its blocks that no other agent has.
func (p *forgetPlan) forgetAgent(ctx context.Context) error {
	a := &p.what.Agent
	for _, t := range p.threads {
		p.note("conversation", t.ID, t.Created, t.Name, false)
		p.done.Threads++
	}
	sizes, err := p.k.cfg.Store.Sizes(ctx, a.Tenant, a.ID)
	if err != nil {
		return err
	}
	p.done.Messages, p.done.Passages = int(sizes.Messages), int(sizes.Passages)
	for i := range p.blocks {
		b := &p.blocks[i]
		if names := p.sharers[b.ID]; len(names) > 0 {
			p.done.Kept = append(p.done.Kept, fmt.Sprintf("the block %q stays, since other agents have it: %s", b.Label, names))
			continue
		}
		p.done.Blocks++
		p.note("block", b.ID, time.Time{}, b.Label+": "+b.Value, false)
		p.erasure.GoneBlocks = append(p.erasure.GoneBlocks, *b)
	}
	p.erasure.GoneAgents = []memgpt.Agent{*a}
	p.erasure.Drop = []store.Record{{Tenant: a.Tenant, Kind: store.HookKind, ID: a.ID}}
	return p.record("agent")
}

// record adds the dated trace of something that was removed whole.
func (p *forgetPlan) record(what string) error {
	rec := struct {
		What     string    `json:"what"`
		Time     time.Time `json:"time"`
		Messages int       `json:"messages"`
		Passages int       `json:"passages"`
	}{what, p.now, p.done.Messages, p.done.Passages}
	p.erasure.Records = append(p.erasure.Records, store.Record{Tenant: p.what.Agent.Tenant, Kind: "forgotten",
		ID: p.k.cfg.NewID("forgotten"), Data: mustJSON(rec)})
	return nil
}
