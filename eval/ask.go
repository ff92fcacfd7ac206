package eval

import (
	"context"
	"strings"

	"memgpt"
	"memgpt/store"
)

// Outcome is how one question went.
type Outcome struct {
	Case, Question, Group string
	Gold, Seen            int // pieces of evidence, and how many of them were in context
	Answer                string
	Spoke                 bool // the agent said something
	Right                 bool // the answer holds the expected one and all evidence was in context; in scored suites
	Searches              int  // calls of the functions that bring stored texts back
	Steps                 int
	Tokens                int // of all requests, by our count
	Handed                int // pieces of evidence that the system handed over
	Prefetch              memgpt.Prefetched
	Stop                  memgpt.StopReason
	Failure               string // why the model failed; "" when it did not
	Faults                int    // pieces of evidence that the data names and does not have
}

// ask puts one question to the agent in a conversation of its own. What comes of it is kept beside the store and thrown
// away, so that no question can find another one's words.
func (l *loader) ask(ctx context.Context, q *Question) (Outcome, error) {
	at := q.Time
	if at.IsZero() {
		at = l.c.Now
	}
	clock := &clock{at: at}
	id := l.ids(clock, "question "+q.ID+"\x00"+q.Text)
	watch := newWatch(q)
	side := newOverlay(l.store, l.agent.ID)
	k, err := l.kernel(side, &watched{Model: l.r.cfg.Model, watch: watch}, clock.now, id)
	if err != nil {
		return Outcome{}, err
	}
	st, err := store.Load(ctx, side, "", l.asked.ID)
	if err != nil {
		return Outcome{}, err
	}
	w := &store.Work{State: st, TTL: leaseTime, Emit: watch.update}
	w.Event = memgpt.Event{ID: id("event"), Turn: id("turn"), Agent: l.agent.ID, Thread: l.asked.ID, Type: memgpt.EventUser,
		Created: clock.now(), Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, q.Text)}
	w.Turn = memgpt.Turn{ID: w.Event.Turn, Agent: l.agent.ID, Thread: l.asked.ID, Event: w.Event.ID, Type: memgpt.EventUser,
		State: memgpt.TurnQueued}
	w.Lease = store.Lease{Thread: l.asked.ID, Number: 1, Until: clock.now().Add(leaseTime)}
	if err := k.Run(ctx, w); err != nil {
		return Outcome{}, err
	}
	return l.outcome(q, watch, &w.Turn), nil
}

func (l *loader) outcome(q *Question, w *watch, turn *memgpt.Turn) Outcome {
	o := Outcome{Case: l.c.Name, Question: q.ID, Group: q.Group, Gold: len(q.Gold), Seen: shownOf(w.gold), Handed: shownOf(w.handed), Faults: q.Faults,
		Answer: strings.Join(w.said, "\n"), Spoke: len(w.said) > 0, Searches: w.searches, Steps: turn.Steps, Stop: turn.Stop}
	for step, n := range w.context {
		o.Tokens += n * (1 + w.again[step]) // the request of a reply that was thrown away is about as long as the next one
	}
	if turn.Prefetch != nil {
		o.Prefetch = *turn.Prefetch
	}
	if turn.State != memgpt.TurnDone {
		o.Failure = turn.Error
		if o.Failure == "" {
			o.Failure = string(turn.State)
		}
	}
	o.Right = l.r.suite.Scored && o.Seen == o.Gold && q.Answer != "" && strings.Contains(fold(o.Answer), fold(q.Answer))
	return o
}

// fold is the form in which texts are compared with expected answers: lower case, runs of space as one.
func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
