package kernel

import (
	"context"
	"errors"
	"strconv"

	"memgpt"
)

// Bounds of what is asked again in one turn (field: three short tries at most, then a clear end).
const (
	maxEmpty  = 2 // replies without content
	maxCut    = 2 // replies whose calls were cut off
	maxBroken = 2 // replies that broke off after pieces of them were shown
)

// generate asks the model. A reply that can't be used is thrown away and asked again, within bounds; an overflow that
// the provider reports corrects our count, makes room anew and is asked once more.
func (r *run) generate(ctx context.Context, req *memgpt.Request) (*memgpt.Response, error) {
	for {
		counted := r.last.total
		reply, cut, err := r.ask(ctx, req)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if cut {
			if err := r.askAnew(ctx); err != nil {
				return nil, err
			}
			req = r.compile()
			continue
		}
		if err == nil {
			r.account(counted, reply)
			if err = r.judge(reply); err == nil {
				err = r.lookAgain(ctx, reply)
			}
			if err == nil {
				return reply, nil
			}
		}
		r.emit(memgpt.StepDiscarded{Step: r.step + 1, Reason: err.Error()})
		if err := r.again(ctx, counted, err); err != nil {
			return nil, err
		}
		req = r.compile() // anew, so that nobody holds the old one while the model is slow
	}
}

// again sees to what a discarded reply asks for, and returns an error where the model is not asked once more.
func (r *run) again(ctx context.Context, counted int, err error) error {
	switch memgpt.CodeOf(err) {
	case memgpt.CodeModelEmpty:
		if r.retries.empty++; r.retries.empty > maxEmpty {
			return err
		}
		return nil
	case memgpt.CodeModelCut:
		if r.retries.cut++; r.retries.cut > maxCut {
			return err
		}
		r.append(r.notice("Your reply was cut off by its limit of " + strconv.Itoa(r.win.reserve) +
			" tokens, and nothing of it was done. Write shorter, or in several calls."))
	case codeLookAgain:
	case memgpt.CodeModelOverflow:
		if r.retries.overflow++; r.retries.overflow > 1 {
			return err
		}
		r.correct(r.name, r.window, counted, err)
	default:
		if !brokeOff(err) {
			return err
		}
		if r.retries.broken++; r.retries.broken > maxBroken {
			return err
		}
		return nil
	}
	return r.makeRoom(ctx)
}

// brokeOff reports whether a reply broke off after pieces of it had come, for a reason that may pass. Whoever asks again
// below the kernel (model/retry) leaves that to it, since it alone can take back what was shown: nothing of the reply is
// in the log, so that the message is answered by the next one alone.
func brokeOff(err error) bool {
	var e *memgpt.Error
	if !errors.As(err, &e) || !e.Started {
		return false
	}
	return e.Code == memgpt.CodeModelDown || e.Code == memgpt.CodeModelTimeout || e.Code == memgpt.CodeModelLimit
}

// streamer passes a reply's pieces on.
func (r *run) streamer() func(memgpt.Delta) {
	if r.w.Emit == nil {
		return nil
	}
	step := r.step + 1
	return func(d memgpt.Delta) { r.emit(memgpt.Streamed{Step: step, Delta: d}) }
}

// account learns from a reply's usage how the provider counts.
func (r *run) account(counted int, reply *memgpt.Response) {
	u := reply.Usage
	if u.Input <= 0 {
		return
	}
	if reply.Prompted { // we counted schemas; the half that was not sent tells nothing of how the provider counts
		counted -= r.ts.tokens() / 2
	}
	if r.k.cfg.Counter.Truncated(counted, u.Input) {
		r.flag("upstream_truncated")
		r.emit(memgpt.Warned{Code: "upstream_truncated", Text: "the provider counted far fewer tokens than were sent:" +
			" it seems to have cut the prompt; set its context window to the agent's"})
		return
	}
	if !r.roomAt(float64(u.Input) / float64(max(counted, 1))) {
		r.flag("count_implausible")
		r.emit(memgpt.Warned{Code: "count_implausible", Text: "the provider counted " + strconv.Itoa(u.Input) + " tokens, by which the window of " +
			strconv.Itoa(r.window) + " would have no room for a conversation; that count is not relied on: set a larger window if it is right"})
		return
	}
	r.k.cfg.Counter.Observe(r.name, counted, u.Input)
}

// correct learns from an overflow how a model counts. Without figures of the provider the count is raised by a quarter.
func (r *run) correct(model string, window, counted int, err error) {
	reported := counted * 5 / 4
	var e *memgpt.Error
	if errors.As(err, &e) && e.Tokens > 0 {
		reported = e.Tokens
		if e.Limit > 0 && e.Limit < window {
			reported = e.Tokens * window / e.Limit // our window is larger than the provider's: count as if tokens were
		}
	}
	counter := r.k.cfg.Counter
	least := int(float64(counted) * counter.Factor(model) * 1.02)
	counter.Observe(model, counted, max(reported, least))
}

// judge returns an error where a reply can't be acted on: it has no content, or calls that were cut off.
func (r *run) judge(reply *memgpt.Response) error {
	calls, parts := r.plan(reply)
	for i := range calls {
		if calls[i].cut {
			return memgpt.Errorf(memgpt.CodeModelCut, "the model's reply was cut off inside a call of %s", calls[i].Name)
		}
	}
	if len(calls) == 0 && blank((&memgpt.Message{Parts: textOnly(parts)}).Said()+(&memgpt.Message{Parts: parts}).Thoughts()) {
		return memgpt.Errorf(memgpt.CodeModelEmpty, "the model answered nothing")
	}
	if reply.Finish == memgpt.FinishLength && len(calls) == 0 {
		r.flag("reply_truncated")
	}
	return nil
}

// notice returns an entry in which the system tells the model something.
func (r *run) notice(text string) memgpt.Entry { return r.systemEntry(memgpt.EventNotice, text) }

// systemEntry returns an entry of the system's own, before the next step.
func (r *run) systemEntry(typ memgpt.EventType, text string) memgpt.Entry {
	m := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, text)
	m.Type = typ
	return r.newEntry(m, r.step+1)
}
