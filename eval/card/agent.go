package card

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

// agentSteps bounds the steps of a turn: a model that hasn't found the way in so many is lost.
const agentSteps = 5

// leaseTime is longer than any run; nobody else is there to take a lease.
const leaseTime = 24 * time.Hour

// subject is an agent of a real kernel over a temporary store.
type subject struct {
	store  store.Store
	kernel *kernel.Kernel
	agent  memgpt.Agent
	thread string
	newID  func(string) string
	model  memgpt.Model // that answers the next turn
	said   []string     // to the user, in the last turn
}

// subject makes a new agent, which has nothing to do with those before.
func (b *bench) subject(ctx context.Context, tools []tool.Tool) (*subject, error) {
	s := b.lab.store
	sub := &subject{store: s, model: b.model, newID: kernel.NewIDs(rand.Reader, time.Now)}
	search, err := retrieve.New(retrieve.Config{Index: s, Store: s})
	if err != nil {
		return nil, err
	}
	filler := &smallTalk{b.model.Capabilities()}
	sub.kernel, err = kernel.New(kernel.Config{Store: s, Search: search, Analyzer: new(retrieve.Analyzer), Counter: b.lab.counts[b.calls],
		Window: b.lab.cfg.Window, NewID: sub.newID, Tools: tools, System: memtool.System, Normalize: retrieve.SameKey,
		Model:      func(memgpt.Agent) (memgpt.Model, error) { return sub.model, nil },
		Summarizer: func(memgpt.Agent) (memgpt.Model, error) { return filler, nil }})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	b.lab.agents++
	persona := memgpt.Block{ID: sub.newID("block"), Label: "persona", Limit: 2000, Value: "I am a companion with a long memory. I am friendly and brief.",
		Description: "Who you are and what you do."}
	human := memgpt.Block{ID: sub.newID("block"), Label: "human", Limit: 2000, Description: "Key facts about the person you talk with."}
	sub.agent = memgpt.Agent{ID: sub.newID("agent"), Name: fmt.Sprint("card ", b.lab.agents), Window: b.lab.cfg.Window, Blocks: []string{persona.ID, human.ID},
		Created: now, Policy: memgpt.Policy{MaxSteps: agentSteps}}
	if b.way == WayPrefetch {
		sub.agent.Prefetch.Mode = memgpt.PrefetchOn
	}
	th := memgpt.Thread{ID: sub.newID("conv"), Agent: sub.agent.ID, Name: "main", Next: 1, Created: now}
	sub.thread = th.ID
	_, err = s.Commit(ctx, &store.Commit{Now: now, Agents: []memgpt.Agent{sub.agent}, Blocks: []memgpt.Block{persona, human},
		Threads: []memgpt.Thread{th}})
	return sub, err
}

// say sends a user's message and runs its turn.
func (s *subject) say(ctx context.Context, text string) (memgpt.Turn, error) {
	now := time.Now()
	ev := memgpt.Event{ID: s.newID("event"), Agent: s.agent.ID, Thread: s.thread, Type: memgpt.EventUser, Due: now, Created: now,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text), Turn: s.newID("turn")}
	done, err := s.store.Commit(ctx, &store.Commit{Now: now, Events: []memgpt.Event{ev},
		Acquire: &store.Lease{Thread: s.thread, Until: now.Add(leaseTime)}})
	if err != nil {
		return memgpt.Turn{}, err
	}
	if done.Lease == nil {
		return memgpt.Turn{}, errors.New("the conversation of the temporary store is in other hands")
	}
	st, err := store.Load(ctx, s.store, "", s.thread)
	if err != nil {
		return memgpt.Turn{}, err
	}
	s.said = nil
	w := &store.Work{State: st, Event: ev, Lease: *done.Lease, TTL: leaseTime, Emit: s.hear,
		Turn: memgpt.Turn{ID: ev.Turn, Agent: ev.Agent, Thread: ev.Thread, Event: ev.ID, Type: ev.Type, State: memgpt.TurnQueued}}
	err = s.kernel.Run(ctx, w)
	return w.Turn, err
}

func (s *subject) hear(u memgpt.Update) {
	if u, ok := u.(memgpt.Spoke); ok {
		s.said = append(s.said, u.Text)
	}
}

// heard reports whether the last turn said a word.
func (s *subject) heard(word string) bool {
	return strings.Contains(strings.ToLower(strings.Join(s.said, "\n")), word)
}

// took begins the result of a turn. A turn that the model failed in is a failed try.
func (b *bench) took(asked string, turn *memgpt.Turn) result {
	r := result{asked: asked, came: b.lab.meter.replies()}
	if turn.State != memgpt.TurnDone {
		r.why = fmt.Sprintf("the turn %s: %s", turn.State, turn.Error)
	} else if !turn.Stop.Good() {
		r.why = fmt.Sprintf("the turn was ended after %d steps (%s)", turn.Steps, turn.Stop)
	}
	return r
}

func runAnswers(ctx context.Context, b *bench) (result, error) {
	text := []string{"Hello, I am Ada. How are you?", "Can you suggest a name for a small rowing boat?", "What would you take along on a long walk in the rain?"}[b.try]
	s, err := b.subject(ctx, nil)
	if err != nil {
		return result{}, err
	}
	turn, err := s.say(ctx, text)
	if err != nil {
		return result{asked: text, came: b.lab.meter.replies()}, err
	}
	r := b.took(text, &turn)
	r.passed = r.why == "" && strings.ContainsFunc(strings.Join(s.said, ""), letter)
	if r.why == "" {
		r.why = "the turn ended without a word"
	}
	return r, nil
}

func runSaves(ctx context.Context, b *bench) (result, error) {
	text, word := "Please write this down in your memory, so that you still know it next year: my sister Ottilie collects barometers.", "barometer"
	if b.try == 1 {
		text, word = "Note it down for good in your memory: I am allergic to walnuts.", "walnut"
	}
	s, err := b.subject(ctx, nil)
	if err != nil {
		return result{}, err
	}
	turn, err := s.say(ctx, text)
	r := b.took(text, &turn)
	if err != nil {
		return r, err
	}
	kept, err := s.keeps(ctx, word)
	if err != nil {
		return r, err
	}
	r.passed = kept
	if r.why == "" {
		r.why = "nothing of it stands in working context or in archival storage"
	}
	return r, nil
}

// keeps reports whether a word stands in a block or in archival storage.
func (s *subject) keeps(ctx context.Context, word string) (bool, error) {
	st, err := store.Load(ctx, s.store, "", s.thread)
	if err != nil {
		return false, err
	}
	for _, b := range st.Blocks {
		if strings.Contains(strings.ToLower(b.Value), word) {
			return true, nil
		}
	}
	passages, err := s.store.PassagesOf(ctx, store.PassageRange{Owner: s.agent.ID})
	for _, p := range passages {
		if strings.Contains(strings.ToLower(p.Text), word) {
			return true, nil
		}
	}
	return false, err
}

// seat are the arguments of the function that refuses the first call.
type seat struct {
	Train string `json:"train" jsonschema:"where the train goes"`
	Code  string `json:"code,omitempty" jsonschema:"booking code, where one was given"`
}

const (
	funcSeat = "book_seat"
	seatCode = "B7421"
)

// runRepairs offers a function that wants what only its refusal tells.
func runRepairs(ctx context.Context, b *bench) (result, error) {
	city := []string{"Bergen", "Arequipa"}[b.try]
	refused, booked := 0, false
	book, err := memtool.New(funcSeat, "Books a seat on a train.", memgpt.EffectRead, func(_ context.Context, a seat) (string, error) {
		if !strings.Contains(strings.ToUpper(a.Code), seatCode) {
			refused++
			return "", fmt.Errorf("nothing was booked: the booking code is missing or wrong; call %s again with the same train and code %q", funcSeat, seatCode)
		}
		booked = refused > 0
		return "The seat is booked.", nil
	})
	if err != nil {
		return result{}, err
	}
	text := "Book a seat on the train to " + city + " for me, with the function " + funcSeat + "."
	s, err := b.subject(ctx, []tool.Tool{book})
	if err != nil {
		return result{}, err
	}
	turn, err := s.say(ctx, text)
	r := b.took(text, &turn)
	if err != nil {
		return r, err
	}
	r.passed = booked
	switch {
	case refused == 0:
		r.why = "the function was not called"
	case r.why == "" || refused > 1:
		r.why = fmt.Sprintf("the call was refused %d times, and not done right", refused)
	}
	return r, nil
}

// The facts that have to be found again. What is asked for has no capital letter: the kernel names such words in the summary.
var facts = [2]struct{ told, asked, word string }{
	{"By the way, my cousin's donkey eats nothing but parsnips.", "What does my cousin's donkey eat?", "parsnip"},
	{"One more thing: I keep the spare key of the boathouse under the blue flowerpot.", "Where do I keep the spare key of the boathouse?", "flowerpot"},
}

// maxFilling bounds the turns in which an agent's queue is filled.
const maxFilling = 60

// runRemembers tells a fact, lets other talk push it out of main context, and asks for it. The talk is answered without the
// model, which has to do with the question alone.
func runRemembers(ctx context.Context, b *bench) (result, error) {
	fact := facts[b.try]
	s, err := b.subject(ctx, nil)
	if err != nil {
		return result{}, err
	}
	s.model = &smallTalk{b.model.Capabilities()}
	if err := s.pushOut(ctx, fact.told, fact.word); err != nil {
		return result{asked: fact.told}, err
	}
	s.model = b.model
	turn, err := s.say(ctx, fact.asked)
	r := b.took(fact.asked, &turn)
	if err != nil {
		return r, err
	}
	r.passed = s.heard(fact.word)
	switch {
	case r.why != "":
	case turn.Prefetch != nil && len(turn.Prefetch.Hits) > 0:
		r.why = "the fact was handed over, and not said"
	case turn.Searches == 0:
		r.why = "it did not look it up"
	default:
		r.why = fmt.Sprintf("it searched %d times, and did not say it", turn.Searches)
	}
	return r, nil
}

// pushOut tells a fact and goes on talking until the message has left main context, and its word with it.
func (s *subject) pushOut(ctx context.Context, fact, word string) error {
	if _, err := s.say(ctx, fact); err != nil {
		return err
	}
	told, err := s.store.Thread(ctx, "", s.thread)
	if err != nil {
		return err
	}
	for i := range maxFilling {
		if turn, err := s.say(ctx, small(13*i+12)+small(13*i+25)); err != nil {
			return err
		} else if turn.State != memgpt.TurnDone {
			return memgpt.Errorf(memgpt.CodeInvalid, "fill the agent's queue: the turn %s: %s", turn.State, turn.Error)
		}
		th, err := s.store.Thread(ctx, "", s.thread)
		if err != nil {
			return err
		}
		switch {
		case th.Head < told.Next-1:
		case strings.Contains(strings.ToLower(th.Summary.Text), word):
			return errors.New("fill the agent's queue: what is asked for stands in the summary")
		default:
			return nil
		}
	}
	return errors.New("fill the agent's queue: the fact has not left main context")
}

// smallTalk answers in place of the model where only time has to pass.
type smallTalk struct{ known memgpt.Capabilities }

// Capabilities implements memgpt.Model: those of the model that it stands for, whose counts are meant.
func (m *smallTalk) Capabilities() memgpt.Capabilities { return m.known }

// Generate implements memgpt.Model.
func (m *smallTalk) Generate(ctx context.Context, req *memgpt.Request, _ func(memgpt.Delta)) (*memgpt.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	resp := &memgpt.Response{Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel}, Finish: memgpt.FinishStop}
	if req.Purpose == memgpt.PurposeSummary {
		resp.Message.Parts = memgpt.Parts{memgpt.Text{Text: "They talked about everyday things."}}
		return resp, nil
	}
	resp.Finish = memgpt.FinishCalls
	resp.Message.Parts = memgpt.Parts{memgpt.Call{ID: "call_" + rand.Text(), Name: memgpt.FuncSendMessage, Arguments: `{"message":"I see. Do go on."}`}}
	return resp, nil
}

// talk are lines of small talk. None has anything to do with what is asked.
var talk = [...]string{
	"Nora painted the garden fence green on Saturday, and it took her the whole afternoon because of the rain. ",
	"The baker on the corner has a new oven, so the rolls are crisp again and everybody is pleased about it. ",
	"Emil walked up to the chapel with his uncle and counted eleven herons on the river on the way back. ",
	"The bus was late twice this week, and the driver said that the bridge is being mended until the spring. ",
	"Mira is learning to play the cello; the neighbours have been patient so far, but the dog leaves the room. ",
	"We had soup with beans and a loaf of rye bread, and later there was an apple cake that Paul had brought. ",
	"The library will be closed on Monday while they bring in new shelves for the maps and the old newspapers. ",
}

// small returns lines of small talk, about 25 tokens for each; which ones depends on n.
func small(n int) string {
	var b strings.Builder
	for i := range max(n%13, 3) {
		b.WriteString(talk[(n+i)%len(talk)])
	}
	return b.String()
}
