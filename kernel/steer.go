package kernel

import (
	"context"
	"slices"
	"time"

	"memgpt"
)

// maxCutOff bounds how often the model's call of one step is cut off for what arrives, so that the step is done some day.
const maxCutOff = 2

// border stands between two steps of a turn: what has arrived is taken in.
func (r *run) border(ctx context.Context) error {
	r.retries.cutOff = 0
	if r.step == 0 {
		return nil
	}
	return r.takeIn(ctx)
}

// takeIn makes events that arrived for the running turn entries of the working copy. The commit of the step that shows
// them consumes them. So each is taken in exactly once: until that commit it stays in the inbox.
func (r *run) takeIn(ctx context.Context) error {
	if r.w.Arrived == nil {
		return nil
	}
	events, err := r.w.Arrived(ctx, r.due)
	if err != nil {
		return err
	}
	for i := range events {
		if e := &events[i]; !slices.ContainsFunc(r.pend.taken, func(t memgpt.Event) bool { return t.ID == e.ID }) {
			r.join(ctx, e)
		}
	}
	return nil
}

// join puts an event that came while the turn runs into the working copy, a user's message with what it leans on.
func (r *run) join(ctx context.Context, e *memgpt.Event) {
	r.append(r.entryOf(e))
	r.pend.taken = append(r.pend.taken, *e)
	if e.Type == memgpt.EventUser {
		r.asked, r.heard, r.extra = true, r.turn.Spoke+len(r.pend.spoken), false
		r.handOverFor(ctx, e)
	}
}

// rejoin finds out whether an earlier run of the turn took a user's message in, and what has been said since.
func (r *run) rejoin() {
	st := r.st
	if r.w.Event.Step == 0 || st.Thread.Asked == 0 {
		return
	}
	begun, since, asked := st.Thread.Head, 0, st.Asked
	for i := range st.Queue {
		e := &st.Queue[i]
		switch {
		case e.Seq == st.Thread.Asked:
			asked = e
		case e.Turn == r.turn.ID && e.Step == 0:
			begun = e.Seq
		case e.Turn == r.turn.ID && e.Seq > st.Thread.Asked && e.Message.Role == memgpt.RoleAssistant:
			since += sayings(&e.Message)
		}
	}
	if asked != nil && asked.Turn != r.turn.ID && asked.Seq > begun {
		r.asked, r.heard = true, r.turn.Spoke-since
	}
}

// sayings counts what a message of the model says to the user.
func sayings(m *memgpt.Message) (n int) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			if !p.Thought {
				n++
			}
		case memgpt.Call:
			if _, ok := p.Spoken(); ok {
				n++
			}
		}
	}
	return n
}

// spoke reports whether the newest message of a user in this turn has been answered with a word.
func (r *run) spoke() bool { return r.turn.Spoke+len(r.pend.spoken) > r.heard }

// steered lists the records of the turns of events that were taken in.
func (c *changes) steered(into string, now time.Time) []memgpt.Turn {
	var turns []memgpt.Turn
	for i := range c.taken {
		e := &c.taken[i]
		turns = append(turns, memgpt.Turn{ID: e.Turn, Tenant: e.Tenant, Agent: e.Agent, Thread: e.Thread, Event: e.ID, Type: e.Type,
			State: memgpt.TurnDone, Stop: memgpt.StopSteered, Into: into, Started: now, Ended: now})
	}
	return turns
}

// ask calls the model. cut says that the call was cut off for what arrived.
func (r *run) ask(ctx context.Context, req *memgpt.Request) (reply *memgpt.Response, cut bool, err error) {
	input := tokens(r.last.total, r.factor())
	if r.w.Call == nil || r.retries.cutOff >= maxCutOff {
		reply, err = r.metered(ctx, r.model, req, input, r.streamer())
		return reply, false, err
	}
	call, end := r.w.Call(ctx)
	defer end()
	reply, err = r.metered(call, r.model, req, input, r.streamer())
	return reply, err != nil && call.Err() != nil && ctx.Err() == nil, err
}

// askAnew takes in what the model's call was cut off for, and makes room for it.
func (r *run) askAnew(ctx context.Context) error {
	r.retries.cutOff++
	r.emit(memgpt.StepDiscarded{Step: r.step + 1, Reason: "the call of the model was cut off, since a message came"})
	if err := r.takeIn(ctx); err != nil {
		return err
	}
	return r.makeRoom(ctx)
}
