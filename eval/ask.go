package eval

import (
	"context"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
)

// answer puts one question to whatever the mode says, and has the answer measured. k is for the baseline of one search. What
// was spent goes to a bill, that of the judge too.
func (l *loader) answer(ctx context.Context, q *Question, k int, to *bill) (rec Record, err error) {
	if l.r.cfg.Mode.baseline() {
		rec, err = l.askPlain(ctx, q, k, to)
	} else {
		rec, err = l.ask(ctx, q, to)
	}
	if err != nil {
		return rec, err
	}
	if q.Login {
		rec.Variant, rec.Verdicts = q.Group, Verdicts{}
		return rec, similar(ctx, l.r.cfg.Embedder, q, rec.Answer, &rec.Verdicts)
	}
	if l.r.suite.Sessions && l.r.cfg.Mode.Looks() && l.lived == nil {
		if err := l.rankSessions(ctx, q, &rec); err != nil {
			return rec, err
		}
	}
	if l.r.cfg.Judge != nil {
		rec.Verdicts.Judge, err = l.r.judge(ctx, q.Text, &rec, to)
		rec.Lost = rec.lost()
	}
	return rec, err
}

// ask puts one question to the agent in a conversation of its own. What comes of it is kept beside the store and thrown
// away, so that no question can find another one's words.
func (l *loader) ask(ctx context.Context, q *Question, to *bill) (Record, error) {
	start := l.r.now()
	clock := &clock{at: l.askedAt(q)}
	watch := newWatch(l.asHeard(q))
	watch.count, watch.live, watch.bill = l.r.counter, l.lived != nil, to
	side := newOverlay(l.store, l.agent.ID)
	if err := watch.lookUp(ctx, side, l.agent.ID); err != nil {
		return Record{}, err
	}
	if err := l.turn(ctx, side, l.asked.ID, q, watch, clock, l.ids(clock, "question "+q.ID+"\x00"+q.Text)); err != nil {
		return Record{}, err
	}
	rec := l.record(q, watch)
	for i := range rec.Evidence {
		rec.Evidence[i].ID = q.Gold[i].ID
	}
	rec.Seconds = l.r.since(start)
	return rec, nil
}

// turn runs one turn of a conversation on a memory that is kept aside.
func (l *loader) turn(ctx context.Context, side *overlay, thread string, q *Question, watch *watch, clock *clock, id func(string) string) error {
	k, err := l.kernel(side, &watched{Model: turnModel(l.r.cfg.Model), run: l.r, watch: watch, clock: clock}, clock.now, id)
	if err != nil {
		return err
	}
	st, err := store.Load(ctx, side, "", thread)
	if err != nil {
		return err
	}
	typ, origin := memgpt.EventUser, memgpt.OriginUser
	if q.Login {
		typ, origin = memgpt.EventLogin, memgpt.OriginSystem
	}
	w := &store.Work{State: st, TTL: leaseTime, Emit: watch.update}
	w.Event = memgpt.Event{ID: id("event"), Turn: id("turn"), Agent: l.agent.ID, Thread: thread, Type: typ,
		Created: clock.now(), Message: memgpt.TextMessage(memgpt.RoleUser, origin, q.Text)}
	w.Turn = memgpt.Turn{ID: w.Event.Turn, Agent: l.agent.ID, Thread: thread, Event: w.Event.ID, Type: typ,
		State: memgpt.TurnQueued}
	w.Lease = store.Lease{Thread: thread, Number: 1, Until: clock.now().Add(leaseTime)}
	if err := k.Run(ctx, w); err != nil {
		return err
	}
	watch.ended(&w.Turn)
	return nil
}

// now and since time a question, where the run has a clock.
func (r *runner) now() (t time.Time) {
	if r.cfg.Clock != nil {
		t = r.cfg.Clock()
	}
	return t
}

func (r *runner) since(start time.Time) float64 {
	if r.cfg.Clock == nil {
		return 0
	}
	return r.cfg.Clock().Sub(start).Round(time.Millisecond).Seconds()
}

// ended takes in how the turn ended.
func (w *watch) ended(turn *memgpt.Turn) {
	w.steps, w.stop = turn.Steps, turn.Stop
	for step, n := range w.context {
		w.input += n * (1 + w.again[step]) // the request of a reply that was thrown away is about as long as the next one
	}
	if p := turn.Prefetch; p != nil {
		w.lookup = Lookup{Why: p.Why, Query: p.Query, Tokens: p.Tokens, Second: p.Second, Used: p.Used}
		for _, h := range p.Hits {
			w.lookup.Hits = append(w.lookup.Hits, LookupHit{h.ID, h.Score})
		}
	}
	if turn.State != memgpt.TurnDone {
		w.failure = turn.Error
		if w.failure == "" {
			w.failure = string(turn.State)
		}
	}
}

// record writes down what the watch saw, and what the measures say of the answer.
func (l *loader) record(q *Question, w *watch) Record {
	r := &l.r.cfg
	rec := Record{Version: RecordVersion, Suite: l.r.suite.Name, Mode: r.Mode, Model: r.Model.Capabilities().Name, Window: r.Window, Seed: r.Seed, Policy: r.policyNote(), Pressure: w.pressure,
		Case: l.c.Name, Question: q.ID, Group: q.Group, QuestionHash: HashQuestion(q.Text), Expected: q.Answer, Abstain: q.Abstain, WrongGold: r.WrongGold.has(l.c.Name, q.ID),
		Answer: strings.Join(w.said, "\n"), Spoke: len(w.said) > 0, Faults: q.Faults, Input: w.input, Output: w.output, Cached: w.bill.cached, Prefix: w.prefix, Cost: w.bill.cost(),
		Searches: w.searches, Steps: w.steps, Prefetch: w.lookup, Stop: w.stop, Failure: w.failure, Evidence: []Piece{}}
	rec.Verdicts = verdicts(&rec, l.r.suite.Scored, w.allShown())
	for i, g := range w.gold {
		rec.Evidence = append(rec.Evidence, Piece{ID: g.ID, Stored: g.stored, Found: g.found || w.handed[i].found, Shown: g.shown(),
			Handed: w.handed[i].shown(), Used: g.shown() && uses(rec.Answer, q.Answer, g.Text)})
	}
	rec.Lost = rec.lost()
	return rec
}

// lost finds the first place at which a piece of the evidence was lost.
func (r *Record) lost() Loss {
	if r.answeredRight() || r.Abstain {
		return LostNothing
	}
	worst := len(Losses())
	for _, p := range r.Evidence {
		at := worst
		switch {
		case !p.Stored:
			at = 0
		case p.Shown && p.Used, p.Shown && r.Expected == "":
		case p.Shown || p.Found:
			at = 3
		case r.Searches > 0 || r.Prefetch.Query != "":
			at = 2
		default:
			at = 1
		}
		worst = min(worst, at)
	}
	if worst == len(Losses()) {
		return LostNothing
	}
	return Losses()[worst]
}

// answeredRight reports whether any measure that was taken calls the answer right.
func (r *Record) answeredRight() bool {
	v := &r.Verdicts
	judged := v.Judge != nil && v.Judge.Failure == "" && v.Judge.Right
	return judged || r.right() || v.Contains != nil && *v.Contains
}

// right is the suite's own verdict.
func (r *Record) right() bool { return r.Verdicts.Right != nil && *r.Verdicts.Right }
