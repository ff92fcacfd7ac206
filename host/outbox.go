package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"memgpt"
	"memgpt/store"
)

// Poster makes one attempt to deliver a body to a URL under an id, signed with each of the secrets. It returns the status of the
// answer, and for how long the server asked for patience. An error says that there was no answer, without a word of the body.
type Poster interface {
	Post(ctx context.Context, url string, secrets []string, id string, body []byte) (status int, after time.Duration, err error)
}

// Times of delivery. The pace follows the example of Standard Webhooks, over as many days.
const (
	hookTimeout = 15 * time.Second // of an attempt; the specification recommends 15 to 30
	hookChance  = 5 * time.Second  // an attempt that was given so long and was not answered failed, whatever more it might have had
	hookClaim   = 30 * time.Second // after which an attempt is over, whoever made it
	hookPace    = 5 * time.Second  // before the second attempt, three times as long before each further one
	hookSlowest = 6 * time.Hour    // between attempts
	hookPatient = 24 * time.Hour   // most that a server's own wish is followed
	hookGivesUp = 72 * time.Hour   // after the first attempt
	hookLook    = time.Minute      // the outbox is looked through at least as often where something waits
)

// hooksAtOnce bounds the agents whose hooks are told at once.
const hooksAtOnce = 8

// HookType is the type of what hooks are told.
const HookType = "agent.spoke"

// hookBody is what a hook is told, in the form that Standard Webhooks recommends.
type hookBody struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // when it was said
	Data      hookSaid  `json:"data"`
}

type hookSaid struct {
	Agent        string `json:"agent"`
	AgentID      string `json:"agent_id"`
	Conversation string `json:"conversation"`
	Turn         string `json:"turn"`
	Message      string `json:"message"`
	Text         string `json:"text"`
	Why          string `json:"why"` // what woke the agent, as store.WhyOf
}

// courier is the one goroutine that looks through the outbox for what hooks are to be told.
type courier struct {
	h    *Host
	mu   sync.Mutex
	busy map[hookOf]bool // agents whose hook is being told; one thing at a time, so that order is kept
}

type hookOf struct{ tenant, agent string }

// startCourier starts it. Callers hold h.mu.
func (h *Host) startCourier() {
	if h.cfg.Hooks == nil || h.closing {
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	k := &courier{h: h, busy: map[hookOf]bool{}}
	h.work.Go(func() {
		<-h.stop
		cancel(ErrStopping)
	})
	h.work.Go(func() { k.run(ctx) })
}

func (h *Host) wakeCourier() {
	select {
	case h.mail <- struct{}{}:
	default:
	}
}

func (k *courier) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.h.mail:
		case <-timer.C:
		}
		wait, err := k.look(ctx)
		if err != nil && ctx.Err() == nil {
			k.h.report(memgpt.Errorf(memgpt.CodeOf(err), "look through the outbox: %w", err))
		}
		timer.Reset(wait)
	}
}

// look sets going what is due, and returns how long nothing more is.
func (k *courier) look(ctx context.Context) (time.Duration, error) {
	rows, err := k.h.cfg.Store.Sayings(ctx, store.SayingRange{AllTenants: true, Hook: store.HookDue})
	if err != nil {
		return hookLook, err
	}
	agents := map[hookOf][]store.Saying{}
	for _, s := range rows {
		of := hookOf{s.Tenant, s.Agent}
		agents[of] = append(agents[of], s)
	}
	wait, now := hookLook, k.h.cfg.Now()
	for of, list := range agents {
		switch s, next := nextToTell(list, now); {
		case s == nil:
			wait = min(wait, next.Sub(now))
		default:
			k.begin(ctx, of)
		}
	}
	return wait, nil
}

// begin tells an agent's hook what is due, unless that is under way or enough others are.
func (k *courier) begin(ctx context.Context, of hookOf) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy[of] || len(k.busy) >= hooksAtOnce {
		return
	}
	k.busy[of] = true
	k.h.work.Go(func() {
		if err := k.h.TellHook(ctx, of.tenant, of.agent); err != nil && ctx.Err() == nil {
			k.h.report(err)
			k.h.sleep(ctx, hookPace)
		}
		k.mu.Lock()
		delete(k.busy, of)
		k.mu.Unlock()
		k.h.wakeCourier()
	})
}

func (h *Host) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// nextToTell returns which of an agent's rows, the oldest first, is to be told now; nil where none is, and when one will be. One that
// waits holds up later ones, unless the server refused it alone. A time that lies too far ahead is a clock's that was wrong.
func nextToTell(list []store.Saying, now time.Time) (*store.Saying, time.Time) {
	var first time.Time
	for i := range list {
		s := &list[i]
		if !s.Next.After(now) || s.Next.Sub(now) > hookPatient+hookSlowest {
			return s, now
		}
		if first.IsZero() || s.Next.Before(first) {
			first = s.Next
		}
		if !s.Aside {
			break
		}
	}
	return nil, first
}

// TellHook tells the hook of an agent what is due by now of what the agent said unasked, one after the other, and returns when
// nothing more is due, or ctx ends. Others may do so at the same time, in other processes too. Where the host is started it does so
// by itself.
func (h *Host) TellHook(ctx context.Context, tenant, agent string) error {
	for h.cfg.Hooks != nil && ctx.Err() == nil {
		rows, err := h.cfg.Store.Sayings(ctx, store.SayingRange{Tenant: tenant, Agent: agent, Hook: store.HookDue})
		if err != nil {
			return memgpt.Errorf(memgpt.CodeOf(err), "read the outbox: %w", err)
		}
		s, _ := nextToTell(rows, h.cfg.Now())
		if s == nil {
			return nil
		}
		if err := h.tell(ctx, s); err != nil && memgpt.CodeOf(err) != memgpt.CodeConflict {
			return memgpt.Errorf(memgpt.CodeOf(err), "tell the hook of agent %s: %w", agent, err)
		}
	}
	return nil
}

// letter is what a delivery needs to know.
type letter struct {
	agent  memgpt.Agent
	record store.Record // of the hook
	hook   store.Hook
	body   []byte
	gone   bool   // there is nothing to tell, or nobody
	never  string // why it can't be told
}

// tell makes one attempt with a row, which is claimed before and settled after. CodeConflict says that somebody else has it.
func (h *Host) tell(ctx context.Context, s *store.Saying) error {
	l, err := h.letter(ctx, s)
	if err != nil {
		return err
	}
	now := h.cfg.Now()
	switch {
	case l.gone:
		s.Hook, s.Next = store.HookNone, time.Time{}
		return h.keepSaying(ctx, s)
	case l.never != "":
		s.Hook, s.Error = store.HookFailed, l.never
		return h.keepSaying(ctx, s)
	}
	if s.First.IsZero() || s.First.After(now) {
		s.First = now
	}
	s.Tries++
	s.Next = now.Add(hookClaim)
	if err := h.keepSaying(ctx, s); err != nil {
		return err
	}
	s.Version++
	post, cancel := context.WithTimeout(ctx, hookTimeout)
	status, after, err := h.cfg.Hooks.Post(post, l.agent.Reach.Hook, l.hook.Secrets(now), s.ID, l.body)
	cancel()
	off := ctx.Err() != nil && (!errors.Is(ctx.Err(), context.DeadlineExceeded) || h.cfg.Now().Sub(now) < hookChance)
	return h.settleTold(context.WithoutCancel(ctx), s, l, told{status, after, err, off})
}

func (h *Host) keepSaying(ctx context.Context, s *store.Saying) error {
	_, err := h.cfg.Store.Commit(ctx, &store.Commit{Now: h.cfg.Now(), Sayings: []store.Saying{*s}})
	return err
}

// letter reads what a row is about.
func (h *Host) letter(ctx context.Context, s *store.Saying) (l letter, err error) {
	if l.agent, err = h.cfg.Store.Agent(ctx, s.Tenant, s.Agent); err != nil {
		return l, err
	}
	if l.agent.Reach.Hook == "" {
		l.gone = true
		return l, nil
	}
	l.record, err = h.cfg.Store.Record(ctx, s.Tenant, store.HookKind, s.Agent)
	if err == nil {
		err = l.hook.Read(l.record)
	}
	switch {
	case memgpt.CodeOf(err) == memgpt.CodeNotFound:
		l.never = "it has no secret: set it anew"
		return l, nil
	case err != nil:
		return l, err
	case !l.hook.Stopped.IsZero():
		l.never = goneText
		return l, nil
	}
	words, err := h.wordsOf(ctx, s)
	if err != nil || words == nil {
		l.gone = true
		return l, err
	}
	l.body, err = json.Marshal(hookBody{HookType, s.Time.UTC(), hookSaid{l.agent.Name, s.Agent, words.Conversation, s.Turn, s.Entry, words.Text, s.Why}})
	return l, err
}

// goneText is why nothing more is told to a hook that does not want it.
const goneText = "the server wants nothing more (410 Gone)"

// told is how an attempt went.
type told struct {
	status int
	after  time.Duration
	err    error
	called bool // off, since this host closes, or its caller had too little time
}

// settleTold stores how an attempt went, unless another has begun since. Somebody may read the words at the same time.
func (h *Host) settleTold(ctx context.Context, s *store.Saying, l letter, how told) error {
	for try := 0; ; try++ {
		c := &store.Commit{Now: h.cfg.Now()}
		h.settle(s, how, c.Now)
		c.Sayings = []store.Saying{*s}
		if s.Error == goneText {
			l.hook.Stopped = c.Now
			record, err := l.hook.Record(l.record)
			if err != nil {
				return err
			}
			c.Records = []store.Record{record}
		}
		_, err := h.cfg.Store.Commit(ctx, c)
		if err == nil {
			h.reportTold(s, &l.agent)
			return nil
		}
		if memgpt.CodeOf(err) != memgpt.CodeConflict || try == h.cfg.Retries {
			return err
		}
		anew, err := h.sayingAgain(ctx, s)
		if err != nil || anew == nil || anew.Tries != s.Tries || anew.Hook != store.HookDue {
			return err
		}
		*s = *anew
		now, err := h.letter(ctx, s)
		if err != nil {
			return err
		}
		if now.agent.Reach.Hook != l.agent.Reach.Hook { // another place is to be told
			how = told{called: true}
		}
		l = now
	}
}

// sayingAgain reads a row anew; nil is one that is gone.
func (h *Host) sayingAgain(ctx context.Context, s *store.Saying) (*store.Saying, error) {
	rows, err := h.cfg.Store.Sayings(ctx, store.SayingRange{Tenant: s.Tenant, Agent: s.Agent})
	for i := range rows {
		if rows[i].ID == s.ID {
			return &rows[i], err
		}
	}
	return nil, err
}

// settle puts what came of an attempt into its row.
func (h *Host) settle(s *store.Saying, how told, now time.Time) {
	switch {
	case how.err == nil && how.status >= 200 && how.status < 300:
		s.Hook, s.Next, s.Error, s.Aside = store.HookNone, time.Time{}, "", false
		return
	case how.called: // it may have arrived; another process sends it at once, under the same id
		s.Next = now
		return
	case how.err != nil:
		s.Error = how.err.Error()
	case how.status == 410:
		s.Hook, s.Error = store.HookFailed, goneText
		return
	default:
		s.Error = fmt.Sprintf("the server answered %d", how.status)
	}
	s.Aside = how.status == 400 || how.status == 413 || how.status == 415 || how.status == 422
	if now.Sub(s.First) >= hookGivesUp {
		s.Hook = store.HookFailed
		return
	}
	s.Next = now.Add(max(pause(s.Tries), min(how.after, hookPatient)))
}

// pause is how long the next attempt waits: longer each time, with a quarter more or less by chance, so that many that failed
// together don't come again together.
func pause(tries int) time.Duration {
	d := hookPace
	for range tries - 1 {
		d = min(3*d, hookSlowest)
	}
	return d*3/4 + rand.N(d/2)
}

// reportTold reports the first failure of a row and the last.
func (h *Host) reportTold(s *store.Saying, a *memgpt.Agent) {
	switch {
	case s.Error == "" || s.Hook == store.HookNone:
	case s.Hook == store.HookFailed:
		h.report(fmt.Errorf("the hook of agent %s was not told %s, and is no more: %s", a.Name, s.ID, s.Error))
	case s.Tries == 1:
		h.report(fmt.Errorf("the hook of agent %s was not told %s: %s; it is tried again, for three days", a.Name, s.ID, s.Error))
	}
}
