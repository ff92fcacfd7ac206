package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memgpt"
	"memgpt/kernel"
	"memgpt/store"
)

// Live conversations. Imported material never stands in an agent's queue, so that a question in a fresh conversation seldom
// meets the queue manager. Config.Live has the material held as a conversation instead: each line is a message that the
// agent hears, in turns of the real kernel in the agent's main conversation, with alerts, flushes and summaries as they
// come; then each question is asked in that conversation as it stands, beside the store as always.
//
// What the agent does in those turns: lines of the speaker "assistant" are what it says itself; to all others it listens.
// Where the kernel alerts it to memory pressure the model is asked what to do, and what it saves or moves out is done; what
// it would say to the user is not said, since the dialogue is what it is. It makes the summaries too.

// livePersona is talkPersona for an agent that heard the conversation itself.
const livePersona = "I listen to a conversation and answer questions about it. Its newest part is in front of me; what came before is kept in my" +
	" recall storage, so I search it before I answer. What was said there counts, not what I suppose."

// liveAlertSteps bounds the steps that a model may take for one alert.
const liveAlertSteps = 4

// liveSpeaker is the speaker whose lines the agent says.
const liveSpeaker = "assistant"

// live is a conversation under way.
type live struct {
	l      *loader
	player *livePlayer
	kernel *kernel.Kernel
	clock  *clock
	id     func(string) string
	taken  string // ID of the next message that is made belongs to this line; "" is none
	report LiveReport
}

// playLive holds the case's lines as a conversation, and notes which message each of them became.
func (l *loader) playLive(ctx context.Context, id func(string) string) error {
	p := &live{l: l, clock: &clock{at: l.c.Now}, report: LiveReport{Conversations: 1}}
	if len(l.c.Lines) > 0 && !l.c.Lines[0].Time.IsZero() {
		p.clock.at = l.c.Lines[0].Time
	}
	l.lived = make(map[string]string, len(l.c.Lines))
	p.id = func(kind string) string {
		made := id(kind)
		if kind == "message" && p.taken != "" {
			l.lived[p.taken], p.taken = made, ""
		}
		return made
	}
	p.player = &livePlayer{Model: l.r.cfg.Model, live: p}
	var err error
	if p.kernel, err = l.kernel(l.store, p.player, p.clock.now, p.id); err != nil {
		return err
	}
	for i, line := range l.c.Lines {
		if err := p.turn(ctx, &line, i); err != nil {
			return fmt.Errorf("hold message %s in a live conversation: %w", line.ID, err)
		}
	}
	l.r.lived(&p.report)
	l.asked, err = l.store.Thread(ctx, "", l.main)
	return err
}

// turn runs the turn of one line.
func (p *live) turn(ctx context.Context, line *kernel.Line, i int) error {
	if !line.Time.IsZero() {
		p.clock.at = line.Time
	}
	p.player.line, p.player.said, p.player.alerted = nil, false, 0
	typ, m := memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, line.Text)
	if line.Speaker == liveSpeaker {
		typ, m = memgpt.EventLogin, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, loginText)
		p.player.line = line
	} else {
		m.Author, m.Session = line.Speaker, line.Session
		p.taken = line.ID
	}
	w, err := p.accept(ctx, typ, m)
	if err != nil {
		return err
	}
	heard := false
	w.Emit = func(u memgpt.Update) {
		p.report.add(u)
		switch u := u.(type) {
		case memgpt.StepDiscarded:
			p.player.said = false
		case memgpt.StepCommitted:
			for i := range u.Entries {
				heard = heard || u.Entries[i].ID == p.l.lived[line.ID] && u.Entries[i].Message.Said() == line.Text
			}
		}
	}
	if err := p.kernel.Run(ctx, w); err != nil {
		return err
	}
	switch {
	case w.Turn.State != memgpt.TurnDone:
		return memgpt.Errorf(memgpt.CodeModelRequest, "the turn of message %d ended as %s: %s", i+1, w.Turn.State, w.Turn.Error)
	case !heard:
		return memgpt.Errorf(memgpt.CodeInvalid, "message %d isn't in the log as it was said", i+1)
	}
	p.report.Messages++
	return nil
}

// accept commits an event as a host does, and takes the lease.
func (p *live) accept(ctx context.Context, typ memgpt.EventType, m memgpt.Message) (*store.Work, error) {
	now := p.clock.now()
	ev := memgpt.Event{ID: p.id("event"), Agent: p.l.agent.ID, Thread: p.l.main, Type: typ, Due: now, Created: now, Message: m, Turn: p.id("turn")}
	got, err := p.l.store.Commit(ctx, &store.Commit{Now: now, Events: []memgpt.Event{ev}, Acquire: &store.Lease{Thread: p.l.main, Until: now.Add(leaseTime)}})
	if err != nil {
		return nil, err
	}
	if got.Lease == nil {
		return nil, memgpt.Errorf(memgpt.CodeBusy, "the conversation is in other hands")
	}
	st, err := store.Load(ctx, p.l.store, "", p.l.main)
	if err != nil {
		return nil, err
	}
	return &store.Work{State: st, Event: ev, Lease: *got.Lease, TTL: leaseTime,
		Turn: memgpt.Turn{ID: ev.Turn, Agent: ev.Agent, Thread: ev.Thread, Event: ev.ID, Type: typ, State: memgpt.TurnQueued}}, nil
}

// livePlayer says the lines of an agent in a live conversation. It asks the model behind it for summaries and what to do
// about memory pressure.
type livePlayer struct {
	memgpt.Model
	live    *live
	line    *kernel.Line // that the agent says in this turn; nil is none
	said    bool
	alerted int // steps that the model took in this turn
	calls   int
}

// Generate implements memgpt.Model.
func (p *livePlayer) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	req.Restore()
	if req.Purpose == memgpt.PurposeSummary {
		return p.ask(ctx, req, stream)
	}
	if pressed(req) || p.alerted > 0 && p.alerted < liveAlertSteps {
		reply, err := p.ask(ctx, req, nil)
		if err != nil {
			return nil, err
		}
		if saves := savingCalls(&reply.Message, offersSpeech(req)); len(saves) > 0 {
			p.alerted++
			reply.Message.Parts, reply.Finish = saves, memgpt.FinishCalls
			return reply, nil
		}
	}
	p.alerted = liveAlertSteps // the model has had its turn
	return p.speak(req), nil
}

// ask asks the model and counts what that takes.
func (p *livePlayer) ask(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	r, rep := p.live.l.r, &p.live.report
	size := r.requestSize(req) + r.counter.Tools(req.Tools)
	reply, err := r.ask(ctx, p.Model, req, stream, new(bill)) // what it costs is no question's, but the run's
	if err != nil {
		return nil, err
	}
	p.live.clock.settle()
	rep.Calls++
	rep.Tokens += size + r.counter.Message(&reply.Message)
	return reply, nil
}

// speak gives the agent's line, or ends the turn without a word.
func (p *livePlayer) speak(req *memgpt.Request) *memgpt.Response {
	p.calls++
	call := memgpt.Call{ID: "live_" + strconv.Itoa(p.calls), Name: memgpt.FuncYield, Arguments: "{}"}
	reply := &memgpt.Response{Finish: memgpt.FinishCalls, Model: p.Capabilities().Name,
		Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: memgpt.Parts{call}}}
	if p.line == nil || p.said {
		return reply
	}
	p.said, p.live.taken = true, p.line.ID
	if !offersSpeech(req) {
		reply.Finish, reply.Message.Parts = memgpt.FinishStop, memgpt.Parts{memgpt.Text{Text: p.line.Text}}
		return reply
	}
	args, err := json.Marshal(map[string]string{memgpt.ArgMessage: p.line.Text})
	if err != nil {
		return reply
	}
	call.Name, call.Arguments = memgpt.FuncSendMessage, string(args)
	reply.Message.Parts = memgpt.Parts{call}
	return reply
}

// pressed reports whether a request raises a pressure alert that the model has not answered yet.
func pressed(req *memgpt.Request) bool {
	for i := len(req.Messages) - 1; i >= 0; i-- {
		m := &req.Messages[i]
		if m.Role != memgpt.RoleUser {
			return false
		}
		if strings.HasPrefix(m.Said(), `{"type":"`+string(memgpt.EventAlert)+`"`) {
			return true
		}
	}
	return false
}

// offersSpeech reports whether the agent speaks by a function; in the native protocol its text speaks.
func offersSpeech(req *memgpt.Request) bool {
	return slices.ContainsFunc(req.Tools, func(t memgpt.ToolSpec) bool { return t.Name == memgpt.FuncSendMessage })
}

// savingCalls are the calls of a reply that change memory: they don't speak, don't end the turn and don't look up what to
// answer. Where calls say whether another step is wanted, these do.
func savingCalls(m *memgpt.Message, chained bool) (parts memgpt.Parts) {
	for _, c := range m.Calls() {
		switch {
		case c.Name == memgpt.FuncSendMessage, c.Name == memgpt.FuncYield, c.Name == "memory_read", searches(c.Name):
			continue
		}
		var args map[string]any
		if chained && json.Unmarshal([]byte(c.Arguments), &args) == nil && args != nil {
			args[memgpt.ArgHeartbeat] = true
			if text, err := json.Marshal(args); err == nil {
				c.Arguments = string(text)
			}
		}
		parts = append(parts, c)
	}
	return parts
}

// lived adds up what live conversations took.
func (r *runner) lived(rep *LiveReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live.Conversations += rep.Conversations
	r.live.Messages += rep.Messages
	r.live.Pressure.plus(rep.Pressure)
	r.live.Calls += rep.Calls
	r.live.Tokens += rep.Tokens
}

// asHeard is a question whose evidence goes by the ids of the messages that the lines became.
func (l *loader) asHeard(q *Question) *Question {
	if l.lived == nil {
		return q
	}
	heard := *q
	heard.Gold = slices.Clone(q.Gold)
	for i := range heard.Gold {
		heard.Gold[i].ID = l.lived[q.Gold[i].ID]
	}
	return &heard
}
