package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/store"
)

// Bounds of what agents write to each other: each message costs a turn of its receiver.
const (
	maxMail      = 8000 // characters of a message
	maxHops      = 8    // messages that lead to one another without a user, a timer or a program in between
	pairAMinute  = 20   // messages to one receiver
	mailAMinute  = 200  // to all
	maxNamed     = 20   // agents that are named where one isn't found
	maxWalk      = 1000 // conversations that are looked through for a circle of those that wait
	defaultReply = 2 * time.Minute
)

// mailChanges is what a step sends: part of its one commit, so that each message is sent exactly once.
type mailChanges struct {
	events  []memgpt.Event
	threads []memgpt.Thread // that are made for it
	record  *store.Record   // of what was sent lately, where the step sends
	sent    store.MailSent
}

// add puts the changes into the step's commit.
func (mc *mailChanges) add(c *store.Commit) error {
	if mc.record == nil {
		return nil
	}
	data, err := json.Marshal(mc.sent)
	if err != nil {
		return fmt.Errorf("encode what was sent: %w", err)
	}
	record := *mc.record
	record.Data = data
	c.Events = append(c.Events, mc.events...)
	c.Threads = append(c.Threads, mc.threads...)
	c.Records = append(c.Records, record)
	return nil
}

func (mc *mailChanges) clone() mailChanges {
	c := *mc
	c.events, c.threads = slices.Clone(mc.events), slices.Clone(mc.threads)
	c.sent = store.MailSent{}
	for to, times := range mc.sent {
		c.sent[to] = slices.Clone(times)
	}
	return c
}

// Write adds a message for another agent to the step.
func (m *memory) Write(ctx context.Context, agent, text string, ask bool) (string, error) {
	r := m.run
	if ask && (m.call.tool == nil || m.call.tool.Effect != memgpt.EffectDeferred) {
		return "", fmt.Errorf("not sent: the function %s can't wait for an answer", m.call.Name)
	}
	text, err := r.checkMail(text)
	if err != nil {
		return "", err
	}
	to, err := r.receiver(ctx, agent)
	if err != nil {
		return "", err
	}
	if ask {
		return to.Name, r.question(ctx, m.call, to, text)
	}
	_, err = r.mail(ctx, to, text, "")
	return to.Name, err
}

// question sends a question whose answer the call waits for.
func (r *run) question(ctx context.Context, c *call, to memgpt.Agent, text string) error {
	if slices.Contains(r.waitsForThis(), to.ID) {
		return fmt.Errorf("not sent: %s waits for your answer itself, so that each would wait for the other: answer first", to.Name)
	}
	th, err := r.pairThread(ctx, &to)
	if err != nil {
		return err
	}
	circle, err := r.circle(ctx, th.ID)
	if err != nil {
		return err
	}
	if circle {
		return fmt.Errorf("not sent: %s waits, itself or through others, for this conversation, so that all would wait for each other;"+
			" go on without it, or write with send_message_to_agent_async", to.Name)
	}
	key := r.said + "/" + c.ID
	if _, err := r.mail(ctx, to, text, key); err != nil {
		return err
	}
	c.on = th.ID
	return nil
}

// WriteTagged adds a message for each agent with the tags to the step.
func (m *memory) WriteTagged(ctx context.Context, tags []string, text string) (names, refused []string, err error) {
	r := m.run
	if text, err = r.checkMail(text); err != nil {
		return nil, nil, err
	}
	var want []string
	for _, t := range tags {
		if t = strings.TrimSpace(t); t != "" {
			want = append(want, t)
		}
	}
	if len(want) == 0 {
		return nil, nil, errors.New("not sent: name at least one tag")
	}
	agents, err := r.k.cfg.Store.Agents(ctx, r.st.Agent.Tenant)
	if err != nil {
		return nil, nil, fmt.Errorf("look for the agents: %w", err)
	}
	var known []string
	for _, a := range agents {
		if a.ID == r.st.Agent.ID || !a.Reach.Agents {
			continue
		}
		known = append(known, a.Reach.Tags...)
		if slices.ContainsFunc(want, func(t string) bool { return !slices.Contains(a.Reach.Tags, t) }) {
			continue
		}
		if _, err := r.mail(ctx, a, text, ""); err != nil {
			refused = append(refused, a.Name+": "+err.Error())
		} else {
			names = append(names, a.Name)
		}
	}
	switch {
	case len(names) == 0 && len(refused) > 0:
		return nil, nil, errors.New(strings.Join(refused[:min(len(refused), maxNamed)], "; "))
	case len(names) == 0:
		slices.Sort(known)
		known = slices.Compact(known)
		return nil, nil, fmt.Errorf("not sent: no other agent has the tags %s; the tags of others are %s", strings.Join(want, ", "),
			orNone(known))
	}
	return names, refused, nil
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	text := strings.Join(words[:min(len(words), maxNamed)], ", ")
	if more := len(words) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// checkMail returns a message's text as it is sent.
func (r *run) checkMail(text string) (string, error) {
	text = strings.TrimSpace(memgpt.CleanText(text))
	switch n := memgpt.Runes(text); {
	case !r.st.Agent.Reach.Agents:
		return "", errors.New("not sent: your owner has not allowed that you write to other agents")
	case n == 0:
		return "", errors.New("not sent: the message is empty")
	case n > maxMail:
		return "", fmt.Errorf("not sent: the message has %d characters and may have %d; write it shorter", n, maxMail)
	case r.hops() > maxHops:
		return "", fmt.Errorf("not sent: %d messages of agents led to this one, and nobody else took part. No more are taken:"+
			" end your turn, or tell your user", maxHops)
	}
	return text, nil
}

// hops counts the messages of agents that lead to one that is sent now, itself included.
func (r *run) hops() int {
	if r.w.Event.Mail == nil || r.asked {
		return 1
	}
	return r.w.Event.Mail.Hops + 1
}

// waitsForThis returns the IDs of the agents that wait for the end of this turn.
func (r *run) waitsForThis() []string {
	if store.Asks(&r.w.Event) {
		return r.w.Event.Mail.Chain
	}
	return nil
}

// receiver finds the agent that a message is for.
func (r *run) receiver(ctx context.Context, agent string) (memgpt.Agent, error) {
	tenant, agent := r.st.Agent.Tenant, strings.TrimSpace(agent)
	to, err := r.k.cfg.Store.AgentNamed(ctx, tenant, agent)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		to, err = r.k.cfg.Store.Agent(ctx, tenant, agent)
	}
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		all, err := r.k.cfg.Store.Agents(ctx, tenant)
		if err != nil {
			return to, fmt.Errorf("look for the agents: %w", err)
		}
		var names []string
		for _, a := range all {
			if a.ID != r.st.Agent.ID && a.Reach.Agents {
				names = append(names, a.Name)
			}
		}
		return to, fmt.Errorf("not sent: there is no agent %q; those that take messages are %s", memgpt.CutText(agent, 80), orNone(names))
	}
	switch {
	case err != nil:
		return to, fmt.Errorf("look for the agent: %w", err)
	case to.ID == r.st.Agent.ID:
		return to, errors.New("not sent: that is yourself")
	case !to.Reach.Agents:
		return to, fmt.Errorf("not sent: %s takes no messages of other agents", to.Name)
	}
	return to, nil
}

// mail adds a message to the step. call is what waits for its answer; "" is nothing.
func (r *run) mail(ctx context.Context, to memgpt.Agent, text, call string) (memgpt.Event, error) {
	now := r.k.cfg.Now()
	pend := r.pend.mail.clone()
	if pend.record == nil {
		record, err := r.k.cfg.Store.Record(ctx, r.st.Agent.Tenant, store.MailKind, r.st.Agent.ID)
		if record, pend.sent, err = store.ReadMailSent(&r.st.Agent, record, err, now); err != nil {
			return memgpt.Event{}, fmt.Errorf("look up what was sent lately: %w", err)
		}
		pend.record = &record
	}
	total := 0
	for _, times := range pend.sent {
		total += len(times)
	}
	if n := len(pend.sent[to.ID]); n >= pairAMinute || total >= mailAMinute {
		return memgpt.Event{}, fmt.Errorf("not sent: %d messages went to %s within the last minute, %d to all; no more than %d and %d may."+
			" Put what is left into one message later", n, to.Name, total, pairAMinute, mailAMinute)
	}
	th, err := r.pairThread(ctx, &to)
	if err != nil {
		return memgpt.Event{}, err
	}
	if th.Version == 0 && !slices.ContainsFunc(pend.threads, func(t memgpt.Thread) bool { return t.ID == th.ID }) {
		pend.threads = append(pend.threads, th)
	}
	pend.sent[to.ID] = append(pend.sent[to.ID], now.UnixMilli())
	e := memgpt.Event{ID: r.k.cfg.NewID("event"), Turn: r.k.cfg.NewID("turn"), Tenant: to.Tenant, Agent: to.ID, Thread: th.ID,
		Type: memgpt.EventAgent, Due: now, Created: now, Message: r.mailMessage(text, call != ""),
		Mail: &memgpt.Mail{Thread: r.st.Thread.ID, Call: call, Hops: r.hops()}}
	if call != "" {
		e.Mail.Chain = append(slices.Clone(r.waitsForThis()), r.st.Agent.ID)
	}
	pend.events = append(pend.events, e)
	r.pend.mail = pend
	return e, nil
}

// mailMessage is what the receiver is told. The sender's name stands in the envelope, and its words in one JSON string, so that it
// can pass for nobody else.
func (r *run) mailMessage(text string, asks bool) memgpt.Message {
	how := "Another agent writes. What you say goes to your user; to write back, use send_message_to_agent_async. "
	if asks {
		how = "Another agent asks, and waits: what you say in this turn goes to it as the answer, not to your user. "
	}
	m := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginAgent, how+store.MailSays+text)
	m.Type, m.Author = memgpt.EventAgent, r.st.Agent.Name
	return m
}

// pairThread returns the receiver's conversation with this agent, or one that is to be made (Version 0). It is one of its own for
// each sender: others' words push nothing of a user out of main context, a user doesn't wait for the turns that they cause, and
// what is said in answer to one can't be mistaken for words to another. Blocks, archive and recall are the same in all.
func (r *run) pairThread(ctx context.Context, to *memgpt.Agent) (memgpt.Thread, error) {
	id := "conv-" + memgpt.HashKey("mail", r.st.Agent.ID, to.ID)
	if i := slices.IndexFunc(r.pend.mail.threads, func(t memgpt.Thread) bool { return t.ID == id }); i >= 0 {
		return r.pend.mail.threads[i], nil
	}
	th, err := r.k.cfg.Store.Thread(ctx, to.Tenant, id)
	if memgpt.CodeOf(err) != memgpt.CodeNotFound {
		return th, err
	}
	th = memgpt.Thread{ID: id, Tenant: to.Tenant, Agent: to.ID, Name: "agent " + r.st.Agent.Name, Next: 1, Created: r.k.cfg.Now()}
	others, err := r.k.cfg.Store.Threads(ctx, to.Tenant, to.ID)
	if err != nil {
		return th, fmt.Errorf("look for the conversation: %w", err)
	}
	if slices.ContainsFunc(others, func(t memgpt.Thread) bool { return t.Name == th.Name }) {
		th.Name += " " + id[len("conv-"):][:8]
	}
	return th, nil
}

// stateOutside notes, in a conversation that a message of another agent began, what the agent has outside of it: who made the
// conversation could not know.
func (r *run) stateOutside(ctx context.Context) error {
	th := &r.st.Thread
	if r.w.Event.Mail == nil || th.Next > 1 || !th.Summary.Time.IsZero() {
		return nil
	}
	out, err := r.k.cfg.Store.Outside(ctx, th.Tenant, th.Agent, th.ID)
	if err != nil {
		return fmt.Errorf("count what lies outside of a new conversation: %w", err)
	}
	if out.Hidden+out.Elsewhere+out.Passages > 0 {
		th.Summary.Outside, th.Summary.Time = out, r.k.cfg.Now()
	}
	return nil
}

// answerMail adds the answer to one who waits for the end of this turn: what was said in it, or why nothing was.
func (r *run) answerMail(ctx context.Context) error {
	q := &r.w.Event
	if !store.Asks(q) || r.settled {
		return nil
	}
	_, err := r.k.cfg.Store.Thread(ctx, q.Tenant, q.Mail.Thread)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound { // nobody is there to be told
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for who asked: %w", err)
	}
	said, err := r.saidInTurn(ctx)
	if err != nil {
		return err
	}
	text := strings.Join(said, "\n")
	switch {
	case r.turn.State == memgpt.TurnFailed:
		text = strings.TrimSpace(text + "\n(It could not go on: " + memgpt.CutText(r.turn.Error, 300) + ")")
	case r.turn.State == memgpt.TurnCancelled:
		text = strings.TrimSpace(text + "\n(Its turn was ended from outside.)")
	case blank(text):
		text = "(It ended its turn without an answer.)"
	}
	r.pend.answer = store.AnswerEvent(q, r.st.Agent.Name, text, r.k.cfg.Now())
	return nil
}

// saidInTurn returns what the turn has said, in earlier runs of it and in what is not committed yet too.
func (r *run) saidInTurn(ctx context.Context) ([]string, error) {
	entries, err := r.k.cfg.Store.Entries(ctx, store.EntryRange{Tenant: r.st.Thread.Tenant, Thread: r.st.Thread.ID, Limit: 500, Last: true})
	if err != nil {
		return nil, fmt.Errorf("read what was said: %w", err)
	}
	var said []string
	for _, e := range append(entries, r.pend.entries...) {
		if e.Turn == r.turn.ID && e.Message.Role == memgpt.RoleAssistant {
			if text := e.Message.Said(); !blank(text) {
				said = append(said, text)
			}
		}
	}
	return said, nil
}
