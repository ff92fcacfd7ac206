package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"memgpt"
	"memgpt/store"
)

// functionOf returns the name of the function that made a change. In tidying the id of its call stands after it.
func functionOf(c memgpt.Cause) string {
	name, _, _ := strings.Cut(c.Call, " ")
	return name
}

// Reasons are what calls of tidying gave as their reasons, by turn and id of the call.
type Reasons map[string]string

// Reasons reads the reasons of all changes that tidying made to an agent's memory.
func (k *Kernel) Reasons(ctx context.Context, a *memgpt.Agent) (Reasons, error) {
	reasons := Reasons{}
	err := k.eachTidyEntry(ctx, a, func(e *memgpt.Entry) {
		for _, c := range e.Message.Calls() {
			var args struct{ Reason string }
			if json.Unmarshal([]byte(c.Arguments), &args) == nil && args.Reason != "" {
				reasons[e.Turn+" "+c.ID] = args.Reason
			}
		}
	})
	return reasons, err
}

// Of returns why a change was made; "" where nothing says so.
func (r Reasons) Of(c memgpt.Cause) string {
	var all []string
	for call := range strings.SplitSeq(c.Call, ", ") {
		if _, id, ok := strings.Cut(call, " "); ok && r[c.Turn+" "+id] != "" {
			all = append(all, r[c.Turn+" "+id])
		}
	}
	return strings.Join(all, "; ")
}

// blockLabelled returns an agent's block with its history.
func (k *Kernel) blockLabelled(ctx context.Context, a *memgpt.Agent, label string) (memgpt.Block, []store.BlockEdit, error) {
	blocks, err := k.cfg.Store.Blocks(ctx, a.Tenant, a.Blocks)
	if err != nil {
		return memgpt.Block{}, nil, err
	}
	i := slices.IndexFunc(blocks, func(b memgpt.Block) bool { return b.Label == label })
	if i < 0 {
		var labels []string
		for _, b := range blocks {
			labels = append(labels, b.Label)
		}
		return memgpt.Block{}, nil, memgpt.Errorf(memgpt.CodeNotFound, "agent %s has no block %q; its blocks are %s", a.Name, label, strings.Join(labels, ", "))
	}
	history, err := k.cfg.Store.BlockHistory(ctx, a.Tenant, blocks[i].ID)
	return blocks[i], history, err
}

// RestoreBlock gives a block the value of an earlier version again, 0 for the one before the last, as a new version by the
// owner. It returns the block as it was and as it is.
func (k *Kernel) RestoreBlock(ctx context.Context, a *memgpt.Agent, label string, version int64) (was, now memgpt.Block, err error) {
	for try := 0; ; try++ {
		b, history, err := k.blockLabelled(ctx, a, label)
		if err != nil {
			return b, b, err
		}
		want := version
		if want == 0 {
			want = b.Version - 1
		}
		i := slices.IndexFunc(history, func(e store.BlockEdit) bool { return e.Version == want })
		if i < 0 {
			return b, b, memgpt.Errorf(memgpt.CodeNotFound, "the block %s has no version %d before the present one, %d; memgpt blocks --history shows them",
				label, want, b.Version)
		}
		now, err := k.putBack(ctx, a, b, history[i].Value, "undo")
		if memgpt.CodeOf(err) != memgpt.CodeConflict || try == maxConflicts {
			return b, now, err
		}
	}
}

// putBack commits an older value of a block as a new version by the owner.
func (k *Kernel) putBack(ctx context.Context, a *memgpt.Agent, b memgpt.Block, value, what string) (memgpt.Block, error) {
	if err := CheckLimit(b, value); err != nil {
		return b, memgpt.Errorf(memgpt.CodeInvalid, "the older value of block %s has %d characters and its limit is %d now", b.Label, memgpt.Runes(value), b.Limit)
	}
	if value == b.Value {
		return b, nil
	}
	now := k.cfg.Now()
	b.Value = value
	edit := store.BlockEdit{Block: b.ID, Version: b.Version + 1, Value: value, Time: now,
		Cause: memgpt.Cause{Origin: memgpt.OriginOwner, Agent: a.ID, Call: what}}
	_, err := k.cfg.Store.Commit(ctx, &store.Commit{Now: now, Blocks: []memgpt.Block{b}, Edits: []store.BlockEdit{edit}})
	if err == nil {
		b.Version++
	}
	return b, err
}

// Undone says what UndoTidy did, in lines for a person.
type Undone struct {
	Done []string
	Left []string // what could not be undone, and why
}

// UndoTidy takes back what a turn of tidying did to an agent's memory where nothing newer stands in the way: blocks get the values
// that they had before it, passages that it replaced live again, and those that it stored are deleted. Nothing is lost: blocks
// get new versions, and the texts of passages stay.
func (k *Kernel) UndoTidy(ctx context.Context, a *memgpt.Agent, turn string) (*Undone, error) {
	record, err := k.cfg.Store.Turn(ctx, a.Tenant, turn)
	switch {
	case err != nil:
		return nil, err
	case record.Agent != a.ID || record.Type != memgpt.EventTidy:
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "the turn %s is none in which memory of agent %s was tidied", turn, a.Name)
	case record.Ended.IsZero():
		return nil, memgpt.Errorf(memgpt.CodeBusy, "the turn %s has not ended; undo it after that", turn)
	}
	done := &Undone{}
	blocks, err := k.cfg.Store.Blocks(ctx, a.Tenant, a.Blocks)
	for i := range blocks {
		if err == nil {
			err = k.undoBlock(ctx, a, blocks[i].Label, turn, done)
		}
	}
	if err == nil {
		err = k.undoPassages(ctx, a, turn, done)
	}
	return done, err
}

// undoBlock gives a block the value before the turn's edits where those are its last.
func (k *Kernel) undoBlock(ctx context.Context, a *memgpt.Agent, label, turn string, done *Undone) error {
	for try := 0; ; try++ {
		b, history, err := k.blockLabelled(ctx, a, label)
		if err != nil {
			return err
		}
		n := len(history)
		for n > 0 && history[n-1].Cause.Turn == turn {
			n--
		}
		before := slices.ContainsFunc(history[:n], func(e store.BlockEdit) bool { return e.Cause.Turn == turn })
		if n == len(history) {
			if before && !undoneAlready(history, turn) {
				done.Left = append(done.Left, fmt.Sprintf("block %s was changed since, in version %d; memgpt blocks undo takes older versions", label, b.Version))
			}
			return nil
		}
		value := ""
		if n > 0 {
			value = history[n-1].Value
		}
		_, err = k.putBack(ctx, a, b, value, undoCall+turn)
		if memgpt.CodeOf(err) == memgpt.CodeConflict && try < maxConflicts {
			continue
		}
		if memgpt.CodeOf(err) == memgpt.CodeInvalid {
			done.Left = append(done.Left, err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		done.Done = append(done.Done, fmt.Sprintf("block %s holds again what it did in version %d", label, b.Version-int64(len(history)-n)))
		if before {
			done.Left = append(done.Left, fmt.Sprintf("block %s was changed by others between the turn's edits; the earlier ones stay", label))
		}
		return nil
	}
}

// undoCall begins the Cause.Call of an edit that took a turn's back.
const undoCall = "undo "

// undoneAlready reports whether the turn's last edits of a block were taken back.
func undoneAlready(history []store.BlockEdit, turn string) bool {
	for i := len(history) - 1; i > 0; i-- {
		if history[i-1].Cause.Turn == turn {
			return history[i].Cause.Call == undoCall+turn
		}
	}
	return false
}

// undoPassages takes the passages back that a turn stored, the last first, since one may have replaced another.
func (k *Kernel) undoPassages(ctx context.Context, a *memgpt.Agent, turn string, done *Undone) error {
	var ids []string
	err := k.eachPassageOf(ctx, a.Tenant, a.ID, func(p *memgpt.Passage) error {
		if p.Cause.Turn == turn {
			ids = append(ids, p.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := k.keptEnds(ctx, a, turn, done); err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		if err := k.undoPassage(ctx, a, id, done); err != nil {
			return err
		}
	}
	return nil
}

// keptEnds names the passages that a turn only marked as ended, which can't be told from what they were before.
func (k *Kernel) keptEnds(ctx context.Context, a *memgpt.Agent, turn string, done *Undone) error {
	marks := map[string]string{} // ids of passages by those of calls
	return k.eachTidyEntry(ctx, a, func(e *memgpt.Entry) {
		if e.Turn != turn {
			return
		}
		for _, c := range e.Message.Calls() {
			var args struct{ ID, Content, Ended string }
			if json.Unmarshal([]byte(c.Arguments), &args) == nil && blank(args.Content) && args.Ended != "" {
				marks[c.ID] = args.ID
			}
		}
		if res, ok := e.Message.Result(); ok && !res.Failed && marks[res.CallID] != "" {
			done.Left = append(done.Left, fmt.Sprintf("passage %s was only marked as ended, and stays so", marks[res.CallID]))
		}
	})
}

// eachTidyEntry hands all messages of an agent's tidying to do.
func (k *Kernel) eachTidyEntry(ctx context.Context, a *memgpt.Agent, do func(*memgpt.Entry)) error {
	for after := int64(0); ; {
		list, err := k.cfg.Store.Entries(ctx, store.EntryRange{Tenant: a.Tenant, Thread: store.TidyThreadID(a.ID), After: after, Limit: forgetPage})
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			do(&list[i])
		}
		after = list[len(list)-1].Seq
	}
}

func (k *Kernel) undoPassage(ctx context.Context, a *memgpt.Agent, id string, done *Undone) error {
	list, err := k.cfg.Store.Passages(ctx, a.Tenant, a.ID, []string{id})
	if err != nil || len(list) == 0 {
		return err
	}
	p := list[0]
	switch {
	case !p.Deleted.IsZero():
		return nil
	case p.SupersededBy != "":
		done.Left = append(done.Left, fmt.Sprintf("passage %s was replaced since, by %s", p.ID, p.SupersededBy))
		return nil
	}
	old, err := k.replacedBy(ctx, a.Tenant, a.ID, id)
	if err != nil {
		return err
	}
	old = slices.DeleteFunc(old, func(p memgpt.Passage) bool { return !revivable(&p) })
	for n := len(old); n > 0; { // what it was merged with since comes back first
		back, err := k.Revive(ctx, a.Tenant, a.ID, a.Location(), id)
		if code := memgpt.CodeOf(err); code == memgpt.CodeInvalid || code == memgpt.CodeNotFound {
			done.Left = append(done.Left, err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		done.Done = append(done.Done, fmt.Sprintf("passage %s is taken back; %d that it replaced live again", id, len(back.Live)))
		if back.Retired != "" {
			return nil
		}
		n -= len(back.Live) + len(back.Same)
	}
	p.Deleted = k.cfg.Now()
	_, err = k.cfg.Store.Commit(ctx, &store.Commit{Now: p.Deleted, Passages: []memgpt.Passage{p},
		DeadDocs: []store.DocRef{{Tenant: p.Tenant, Owner: p.Owner, ID: p.ID}}})
	if err == nil {
		done.Done = append(done.Done, fmt.Sprintf("passage %s is out of results: %s", p.ID, memgpt.CutText(p.Text, 80)))
	}
	return err
}

// LineDiff lists the lines that an edit took out of a text, after "- ", and those that it put in, after "+ ", in their order.
func LineDiff(before, after string) (lines []string) {
	had, there := countLines(before), countLines(after)
	if before != "" {
		for line := range strings.SplitSeq(before, "\n") {
			if there[line]--; there[line] < 0 {
				lines = append(lines, "- "+line)
			}
		}
	}
	if after != "" {
		for line := range strings.SplitSeq(after, "\n") {
			if had[line]--; had[line] < 0 {
				lines = append(lines, "+ "+line)
			}
		}
	}
	return lines
}
