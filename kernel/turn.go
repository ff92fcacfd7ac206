package kernel

import (
	"context"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
)

// run is one turn under way. st is the working copy of the step, pend what its commit will hold; both are thrown away
// when a step is. What is committed stands in w.
type run struct {
	k     *Kernel
	w     *store.Work
	model memgpt.Model
	name  string // of the model, for the counter's calibration
	ts    *toolset

	window  int // tokens of the whole window
	compact bool
	zone    *time.Location
	win     window
	scale   float64        // of the caps; under 1 only where even the step in progress would not fit
	cuts    map[cutKey]int // see view

	st    *store.State
	stale bool // the prefix of st has to be made anew
	pend  changes

	turn     memgpt.Turn
	step     int    // of the turn, under way or last committed
	first    int    // step before the first of this run
	last     layout // of the request under way
	measured struct {
		key    layoutKey
		layout layout
	}
	calls    []call           // of the step under way
	planned  planned          // of the last reply
	segment  []int            // those that ran on the working copy since the last commit
	before   int64            // Thread.Head before the first of segment ran
	said     string           // ID of its message
	text     string           // what the step under way says without a call
	folded   bool             // a fold was tried in this turn
	extra    bool             // the step was added for an alert alone: its text is monologue
	spent    []store.Spending // what calls used since the last commit
	done     bool
	settled  bool // the event was consumed
	released bool // the lease was ended
	retries  retries
	handing  handing // see handOver

	due   int  // store.Committed.Pending of the last commit; -1 before the first
	asked bool // a user's message was taken in on the way
	heard int  // turn.Spoke when the newest was

	moreAsked, moreWaits bool // see more

	folds     string  // name of the model that folded in this turn
	claims    []claim // see addCalibrations
	uncounted bool    // what was learned of models' counts is left out

	tidy  tidying
	shown []memgpt.Block // as the request under way has them
}

// retries counts what is tried again in one turn.
type retries struct{ overflow, empty, cut, cutOff, broken int }

// changes is what a step's commit holds beside thread and turn.
type changes struct {
	entries  []memgpt.Entry
	blocks   map[string]memgpt.Block // by ID, with the version that was read
	edits    []store.BlockEdit
	passages []memgpt.Passage
	docs     []store.Doc
	dead     []store.DocRef
	spoken   []saidText
	flushed  []memgpt.Flushed
	taken    []memgpt.Event // that arrived and stand among entries
	timers   timerChanges
	mail     mailChanges
	answer   memgpt.Event // to one that waits for the end of the turn
}

// intake makes the event an entry of the working copy, unless an earlier run of its turn did.
func (k *Kernel) intake(ctx context.Context, w *store.Work) (*run, error) {
	r := &run{k: k, w: w, scale: 1, stale: true, cuts: map[cutKey]int{}, turn: w.Turn, step: w.Event.Step, first: w.Event.Step, due: -1}
	if r.turn.State == memgpt.TurnWaiting {
		r.turn.State = memgpt.TurnRunning
	} else if r.turn.State != memgpt.TurnRunning {
		r.turn.State, r.turn.Started = memgpt.TurnRunning, k.cfg.Now()
	}
	r.emit(memgpt.TurnStarted{Turn: r.turn})
	r.begin()
	if r.tidies() { // first, so that what fails is counted
		if err := r.readTidied(ctx); err != nil {
			return r, err
		}
	}
	if err := r.configure(); err != nil {
		return r, err
	}
	if r.calibrate(ctx, r.name) {
		if err := r.fitFixed(); err != nil {
			return r, err
		}
	}
	if err := r.stateOutside(ctx); err != nil {
		return r, err
	}
	r.answerOpenCalls(false)
	if r.tidies() {
		return r, r.openTidying(ctx)
	}
	if !r.takenIn() {
		r.append(r.entryOf(&r.w.Event))
	}
	r.rejoin()
	return r, nil
}

// begin starts a working copy from what is committed.
func (r *run) begin() {
	r.st = r.w.State.Fork()
	r.pend = changes{}
}

// configure looks up what the agent runs with.
func (r *run) configure() (err error) {
	a := &r.st.Agent
	r.zone = a.Location()
	if r.model, err = r.opens(a); err != nil {
		return err
	}
	known := r.model.Capabilities()
	if r.name = known.Name; r.name == "" {
		r.name = r.asks()
	}
	r.window = r.k.cfg.Window
	if known.Window > 0 {
		r.window = known.Window
	}
	if a.Window > 0 && r.asks() == a.Model { // it is that of the agent's own model
		r.window = a.Window
	}
	r.compact = r.window < compactBelow
	if r.ts, err = r.k.toolsetOf(a, r.compact, r.tidies()); err != nil {
		return err
	}
	return r.fitFixed()
}

// mark computes the window's marks for the present blocks and the present count.
func (r *run) mark() {
	r.win = newWindow(r.window, tokens(r.ts.tokens()+r.prefix().Tokens+requestTokens, r.factor()), r.st.Agent.Policy)
}

// fitFixed is mark, and refuses a fixed part that leaves no room.
func (r *run) fitFixed() error {
	r.mark()
	if r.win.room() >= minRoom {
		return nil
	}
	factor := r.factor()
	tools := tokens(r.ts.tokens(), factor)
	system := tokens(r.k.cfg.Counter.Text(r.instructions()), factor)
	return r.win.refuse(tools, system, r.win.fixed-tools-system)
}

// factor is what counts are multiplied with to get the provider's tokens.
func (r *run) factor() float64 { return r.k.cfg.Counter.Factor(r.name) }

func tokens(counted int, factor float64) int { return int(float64(counted)*factor + 0.999) }

// takenIn reports whether the event is in the log already: an earlier run of its turn was interrupted.
func (r *run) takenIn() bool {
	own := func(e memgpt.Entry) bool {
		return e.Turn == r.turn.ID && e.Step == 0 && e.Message.Type == r.w.Event.Type
	}
	return r.w.Event.Begun || r.w.Event.Step > 0 || slices.ContainsFunc(r.st.Queue, own) || r.st.Asked != nil && own(*r.st.Asked)
}

// entryOf returns the entry of an event, as the first of the event's own turn.
func (r *run) entryOf(ev *memgpt.Event) memgpt.Entry {
	m := ev.Message
	m.Type = ev.Type
	if m.Role == "" {
		m.Role = memgpt.RoleSystem
	}
	e := r.newEntry(m, 0)
	e.Turn, e.Time = ev.Turn, ev.Created
	return e
}

func (r *run) newEntry(m memgpt.Message, step int) memgpt.Entry {
	return memgpt.Entry{ID: r.k.cfg.NewID("message"), Tenant: r.st.Thread.Tenant, Agent: r.st.Agent.ID,
		Thread: r.st.Thread.ID, Turn: r.turn.ID, Step: step, Time: r.k.cfg.Now(), Message: m}
}

// append puts an entry at the end of the working copy's queue.
func (r *run) append(e memgpt.Entry) { r.insert(len(r.st.Queue), e) }

// insert puts an entry into the queue among those that are not committed yet, and numbers them.
func (r *run) insert(at int, e memgpt.Entry) {
	r.st.Queue = slices.Insert(r.st.Queue, at, e)
	r.pend.entries = append(r.pend.entries, e)
	first := len(r.st.Queue) - len(r.pend.entries)
	th := &r.st.Thread
	th.Next = r.w.State.Thread.Next
	for i := first; i < len(r.st.Queue); i++ {
		q := &r.st.Queue[i]
		q.Seq = th.Next
		th.Next++
		if q.Message.Role == memgpt.RoleUser || q.Message.Type == memgpt.EventTidy {
			th.Asked, r.st.Asked = q.Seq, nil
		}
	}
	copy(r.pend.entries, r.st.Queue[first:])
}

// answerOpenCalls gives a result to each call that was started and whose result never came. Calls run in order and each
// is committed before it starts: the first open one may have happened, those after it did not. What works on our memory is
// committed with its result, so that without one it did not happen.
//
// A call that waits for another agent stays open until it is answered, or closing says that the turn ends.
func (r *run) answerOpenCalls(closing bool) {
	open := r.st.Thread.Open
	r.st.Thread.Open = nil
	for i, c := range open {
		if c.On != "" {
			if text, failed, over := r.replyTo(&c, closing); over {
				r.closeOpen(&c, text, failed, memgpt.OriginAgent)
			} else {
				r.st.Thread.Open = append(r.st.Thread.Open, c)
			}
			continue
		}
		text := "not run: the process was interrupted before this call started; call again if it is still needed"
		if i == 0 && c.Effect == memgpt.EffectOutside {
			text = "interrupted: the process ended while this call ran; it may or may not have happened." +
				" Find out before you call again"
		}
		r.closeOpen(&c, text, true, memgpt.OriginSystem)
	}
}

func (r *run) ended() bool { return r.done }

// userTurn reports whether a user began the turn or has joined it, or an agent that waits for what is said in it.
func (r *run) userTurn() bool {
	return r.w.Event.Type == memgpt.EventUser || r.asked || store.Asks(&r.w.Event)
}

func (r *run) emit(u memgpt.Update) {
	if r.w.Emit != nil {
		r.w.Emit(u)
	}
}

func (r *run) flag(name string) {
	if !slices.Contains(r.turn.Flags, name) {
		r.turn.Flags = append(slices.Clip(r.turn.Flags), name)
	}
}

// stop ends the turn after the step under way.
func (r *run) stop(why memgpt.StopReason) {
	if !r.done {
		r.done, r.turn.Stop = true, why
	}
}

// fail ends the turn for an error. A cancel and a model that failed are ends like others; what can't be committed is the
// caller's.
func (r *run) fail(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case memgpt.CodeOf(cause) == memgpt.CodeCancelled:
		r.turn.State, r.turn.Stop = memgpt.TurnCancelled, memgpt.StopCancelled
		return r.close(context.WithoutCancel(ctx), "The user cancelled what stands above. Do not answer it.")
	case memgpt.CodeOf(cause) == memgpt.CodeReplaced:
		r.turn.State, r.turn.Stop = memgpt.TurnCancelled, memgpt.StopReplaced
		return r.close(context.WithoutCancel(ctx), "This turn was ended for what comes next. Do not answer what stands above"+
			" unless that asks for it.")
	case ctx.Err() != nil, !modelFailed(err):
		return err
	}
	r.turn.State, r.turn.Stop, r.turn.Error = memgpt.TurnFailed, stopFor(err), err.Error()
	if r.turn.Stop == memgpt.StopBudget {
		return r.close(ctx, "No answer could be given to what stands above: the budget for model calls is spent.")
	}
	return r.close(ctx, "No answer could be given to what stands above: the model failed.")
}

// modelFailed tells errors that end a turn from those that leave its event pending.
func modelFailed(err error) bool {
	switch memgpt.CodeOf(err) {
	case memgpt.CodeModelOverflow, memgpt.CodeModelRequest, memgpt.CodeModelAuth, memgpt.CodeModelQuota, memgpt.CodeModelLimit,
		memgpt.CodeModelDown, memgpt.CodeModelTimeout, memgpt.CodeModelEmpty, memgpt.CodeModelCut, memgpt.CodeWindow,
		memgpt.CodeInvalid, memgpt.CodeBudget:
		return true
	}
	return false
}

func stopFor(err error) memgpt.StopReason {
	switch memgpt.CodeOf(err) {
	case memgpt.CodeModelCut:
		return memgpt.StopTruncated
	case memgpt.CodeModelEmpty:
		return memgpt.StopEmpty
	case memgpt.CodeBudget:
		return memgpt.StopBudget
	}
	return memgpt.StopModel
}
