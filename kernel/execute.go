package kernel

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/tool"
)

// execute runs the calls of a reply in order. Calls that touch only our memory work on the copy and are committed with
// the step; before a call with an outside effect everything so far is committed, with the calls that have no result
// marked open, and its result is committed when it comes (invariant 2).
func (r *run) execute(ctx context.Context, reply *memgpt.Response) error {
	calls, parts := r.plan(reply)
	r.noteUse(calls, parts)
	calls = deferredLast(calls)
	r.step++
	r.calls, r.segment, r.before = calls, r.segment[:0], r.st.Thread.Head
	said := r.newEntry(memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: parts}, r.step)
	r.append(said)
	r.said = said.ID
	if r.text = (&memgpt.Message{Parts: textOnly(parts)}).Said(); r.text != "" {
		r.pend.spoken = append(r.pend.spoken, saidText{text: r.text})
	}
	for i := range calls {
		if calls[i].outside() {
			if err := r.runOutside(ctx, said.ID, i); err != nil {
				return err
			}
			continue
		}
		r.segment = append(r.segment, i)
		r.runInside(ctx, &calls[i])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func textOnly(parts memgpt.Parts) (texts memgpt.Parts) {
	for _, p := range parts {
		if t, ok := p.(memgpt.Text); ok {
			texts = append(texts, t)
		}
	}
	return texts
}

// runInside runs a call on the working copy. A failure changes nothing.
func (r *run) runInside(ctx context.Context, c *call) {
	before, pend := r.st.Fork(), r.pend.clone()
	c.on, c.rebased = "", false
	c.text, c.failed = r.perform(ctx, c)
	if c.failed {
		r.st, r.pend = before, pend
		r.changed()
		r.rebase(ctx, c)
	}
	if !c.failed && c.on != "" {
		r.open(c)
		return
	}
	r.answer(c)
}

// rebase does an edit of a block as it was done before, by the value that the model saw, where it can't be done by what
// somebody else made of the block meanwhile. What they added is kept, and the model isn't asked again.
func (r *run) rebase(ctx context.Context, c *call) {
	if !c.again || c.fault != "" || r.tidies() || !editsBlocks(c.Name) {
		return
	}
	before, pend, text := r.st.Fork(), r.pend.clone(), c.text
	c.rebased = true
	if c.text, c.failed = r.perform(ctx, c); c.failed {
		r.st, r.pend, c.text = before, pend, text
		r.changed()
	}
}

// runOutside runs a call that acts on the world: between two commits, and not after the end of the lease.
func (r *run) runOutside(ctx context.Context, entry string, i int) error {
	r.st.Thread.Open = nil
	for _, c := range r.calls[i:] {
		r.st.Thread.Open = append(r.st.Thread.Open, memgpt.OpenCall{Entry: entry, CallID: c.ID, Name: c.Name, Effect: c.effect()})
	}
	if err := r.commitPart(ctx); err != nil {
		return err
	}
	if !r.k.cfg.Now().Before(r.leaseEnd()) {
		return memgpt.Errorf(memgpt.CodeLeaseLost, "the lease of the conversation ended before %s could start", r.calls[i].Name)
	}
	c := &r.calls[i]
	c.text, c.failed = r.perform(ctx, c)
	r.answer(c)
	return r.commitPart(context.WithoutCancel(ctx)) // it happened: its result is kept also by a turn that is cancelled
}

func (c *call) effect() memgpt.Effect {
	if c.tool == nil {
		return memgpt.EffectMemory
	}
	return c.tool.Effect
}

func (r *run) leaseEnd() time.Time {
	if r.w.Ends != nil {
		return r.w.Ends()
	}
	return r.w.Lease.Until
}

// perform runs a call's function and returns what the model is told.
func (r *run) perform(ctx context.Context, c *call) (text string, failed bool) {
	if c.fault != "" {
		return c.fault, true
	}
	in := tool.Invocation{CallID: c.ID, Args: c.args, Agent: r.st.Agent.ID, Thread: r.st.Thread.ID, Turn: r.turn.ID}
	if c.tool.Effect != memgpt.EffectOutside {
		in.Memory = &memory{run: r, call: c}
	}
	text, err := protect(func() (string, error) { return c.tool.Call(ctx, in) })
	if err != nil {
		return memgpt.CleanText(err.Error()), true
	}
	return memgpt.CleanText(text), false
}

// protect turns a panic of a function into an error: one bad tool must not end the process.
func protect(f func() (string, error)) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function broke down: %v (%s)", p, firstFrame(debug.Stack()))
		}
	}()
	return f()
}

// firstFrame names the function in which a panic arose.
func firstFrame(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+2 < len(lines) {
			name, _, _ := strings.Cut(lines[i+2], "(")
			return name
		}
	}
	return "place unknown"
}

// answer appends the result of a call, which so is no longer open.
func (r *run) answer(c *call) {
	r.st.Thread.Open = slices.DeleteFunc(slices.Clone(r.st.Thread.Open), func(o memgpt.OpenCall) bool { return o.CallID == c.ID })
	if c.failed && c.tool != nil && c.tool.Effect == memgpt.EffectMemory && editsBlocks(c.Name) {
		r.flag("memory_write_failed")
	}
	origin := memgpt.OriginSystem
	if c.tool != nil && c.tool.Effect == memgpt.EffectOutside {
		origin = memgpt.OriginTool
	}
	m := memgpt.Message{Role: memgpt.RoleTool, Origin: origin,
		Parts: memgpt.Parts{memgpt.Result{CallID: c.ID, Name: c.Name, Text: c.text, Failed: c.failed}}}
	r.append(r.newEntry(m, r.step))
}

func editsBlocks(name string) bool {
	return strings.HasPrefix(name, "core_memory_") || strings.HasPrefix(name, "memory_") && name != "memory_read"
}

// heartbeat decides whether another step follows, and ends the turn if none does: step 7. A failure forces one, and so
// does an alert that is due.
func (r *run) heartbeat() {
	r.extra = false
	r.mark() // the reply may have corrected the count, and its calls the blocks: old marks would earn a step for no alert
	switch {
	case r.done, r.waiting():
	case slices.ContainsFunc(r.calls, func(c call) bool { return c.endless }):
		r.stop(memgpt.StopRepeated)
	case r.step >= r.maxSteps():
		if !r.wanted() {
			r.stop(r.reason())
		}
		r.stop(memgpt.StopMaxSteps)
	case r.wanted():
	case r.alertDue():
		r.extra = true
	default:
		r.stop(r.reason())
	}
}

// wanted reports whether the step asks for another one.
func (r *run) wanted() bool {
	more, yields, forgot := false, false, false
	native := r.native()
	for i := range r.calls {
		c := &r.calls[i]
		switch {
		case c.failed, native, c.heartbeat:
			more = true
		case !c.asked && !c.tool.Final:
			forgot = true
		}
		yields = yields || !c.failed && c.Name == memgpt.FuncYield
	}
	if yields {
		return false
	}
	return more || forgot && r.userTurn() && !r.spoke() // a model that forgot the flag and has not answered yet
}

func (r *run) reason() memgpt.StopReason {
	switch {
	case r.userTurn() && !r.spoke():
		return memgpt.StopSilent
	case len(r.calls) == 0 && r.tidies():
		return memgpt.StopEnd
	case len(r.calls) == 0 && len(r.pend.spoken) == 0:
		return memgpt.StopMonologue
	}
	for i := range r.calls {
		if r.calls[i].Name == memgpt.FuncYield {
			return memgpt.StopYield
		}
	}
	return memgpt.StopEnd
}

func (r *run) maxSteps() int {
	n := orCount(r.st.Agent.Policy.MaxSteps, 50)
	if r.tidies() {
		n = min(n, tidySteps)
	}
	return n
}

func orCount(n, standard int) int {
	if n > 0 {
		return n
	}
	return standard
}
