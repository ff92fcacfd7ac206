package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

// A turn that waits for answers of other agents holds no worker: its step is committed with the calls open, its event is due when
// the time for answers ends, and the run returns with the turn in state waiting. An answer is an event of the conversation; the
// host hands it to the next run, whose commit consumes it and closes the call. No request leaves while a call is open.

// deferredLast returns the calls in the order in which they run: those that wait last, so that nothing runs while one is open.
func deferredLast(calls []call) []call {
	calls = slices.Clone(calls)
	rank := func(c *call) int {
		if c.fault == "" && c.tool.Effect == memgpt.EffectDeferred {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(calls, func(a, b call) int { return rank(&a) - rank(&b) })
	return calls
}

// open notes that a call waits for its answer.
func (r *run) open(c *call) {
	open := slices.DeleteFunc(slices.Clone(r.st.Thread.Open), func(o memgpt.OpenCall) bool { return o.CallID == c.ID })
	r.st.Thread.Open = append(open, memgpt.OpenCall{Entry: r.said, CallID: c.ID, Name: c.Name, Effect: memgpt.EffectDeferred, On: c.on})
}

func (r *run) waiting() bool { return !r.done && len(store.Waits(&r.st.Thread)) > 0 }

// until is when the turn's event comes due: now, or when it has waited long enough.
func (r *run) until(now time.Time) time.Time {
	due := r.w.Event.Due
	switch {
	case !r.waiting():
		if due.After(now) {
			due = now
		}
	case !due.After(now) || r.w.Turn.State != memgpt.TurnWaiting:
		wait := r.st.Agent.Reach.Wait
		if wait <= 0 {
			wait = defaultReply
		}
		due = now.Add(wait)
	}
	return due
}

// replyTo returns the result of an open call where it is answered, or will not be waited for any longer.
func (r *run) replyTo(c *memgpt.OpenCall, closing bool) (text string, failed, over bool) {
	key := store.WaitKey(c)
	for i := range r.w.Answers {
		if e := &r.w.Answers[i]; e.Mail != nil && e.Mail.Answers == key {
			r.pend.taken = append(r.pend.taken, *e)
			return e.Message.Said(), false, true
		}
	}
	const later = " If an answer comes, it is a message of its own."
	switch {
	case closing:
		return "not waited for any longer: the turn was ended." + later, true, true
	case !r.w.Event.Due.After(r.k.cfg.Now()):
		return "no answer came in time; go on without it." + later, true, true
	case r.w.Cut:
		return "no answer has come, and it is not waited for any longer, since there is a message for you meanwhile." + later, true, true
	}
	return "", false, false
}

// closeOpen appends the result of an open call.
func (r *run) closeOpen(c *memgpt.OpenCall, text string, failed bool, origin memgpt.Origin) {
	m := memgpt.Message{Role: memgpt.RoleTool, Origin: origin,
		Parts: memgpt.Parts{memgpt.Result{CallID: c.CallID, Name: c.Name, Text: text, Failed: failed}}}
	r.append(r.newEntry(m, r.step))
}

// pause ends the run of a turn that waits. Where those that wait for each other form a circle, which two may close at the same
// time, the calls in it are answered at once, and the turn goes on if none is left.
func (r *run) pause(ctx context.Context) (paused bool, err error) {
	var rest []memgpt.OpenCall
	for _, c := range r.st.Thread.Open {
		circle := false
		if c.On != "" {
			if circle, err = r.circle(ctx, c.On); err != nil {
				return false, err
			}
		}
		if !circle {
			rest = append(rest, c)
			continue
		}
		r.closeOpen(&c, "no answer can come now: the other agent waits, itself or through others, for this conversation. It has your"+
			" message, and its answer will be a message of its own", true, memgpt.OriginSystem)
	}
	if len(rest) < len(r.st.Thread.Open) {
		r.st.Thread.Open = rest
		if err := r.commitPart(ctx); err != nil {
			return false, err
		}
	}
	return r.waiting(), nil
}

// circle reports whether a conversation waits, itself or through others, for this one.
func (r *run) circle(ctx context.Context, from string) (bool, error) {
	seen, ahead := map[string]bool{}, []string{from}
	for len(ahead) > 0 && len(seen) < maxWalk {
		id := ahead[0]
		ahead = ahead[1:]
		if id == r.st.Thread.ID {
			return true, nil
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		th, err := r.k.cfg.Store.Thread(ctx, r.st.Thread.Tenant, id)
		if memgpt.CodeOf(err) == memgpt.CodeNotFound {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("look who waits for whom: %w", err)
		}
		for _, c := range store.Waits(&th) {
			ahead = append(ahead, c.On)
		}
	}
	return false, nil
}
