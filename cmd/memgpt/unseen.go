package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/host"
	"memgpt/store"
)

const (
	mostUnseen = 20                     // messages that are shown at once
	unseenPace = 250 * time.Millisecond // of looking whether an agent has spoken
	unseenRest = 30 * time.Second       // after which is looked where nothing changed: somebody may have died who was to show it
	hookTime   = 10 * time.Second       // that run gives to telling hooks
)

// unseenLine is a message that nobody had asked for and seen, as run --json prints it.
type unseenLine struct {
	Update string  `json:"update"` // "unseen"
	ID     string  `json:"id"`
	Agent  string  `json:"agent"`
	Thread string  `json:"thread"`
	Turn   string  `json:"turn"`
	Time   *string `json:"time"`
	Why    string  `json:"why"`
	Text   string  `json:"text"`
}

// showUnseen shows what the agent said unasked and nobody has seen, and notes that it was shown.
func (a *app) showUnseen(ctx context.Context, agent *memgpt.Agent, thread string, show func(head, text string) error) error {
	return a.takeUnseen(ctx, agent, func(u *host.Unseen) error {
		for i := range u.Words {
			w := &u.Words[i]
			head := fmt.Sprintf("(unasked, %s, woken by %s", calendar.Format(w.Time, agent.Location()), wokenBy(w.Why))
			if w.Conversation != thread {
				head += ", in conversation " + w.Conversation
			}
			if err := show(head+")", w.Text); err != nil {
				return err
			}
		}
		return nil
	})
}

// takeUnseen takes what nobody has seen, lets it be shown, and notes that it was.
func (a *app) takeUnseen(ctx context.Context, agent *memgpt.Agent, show func(*host.Unseen) error) error {
	u, err := a.host.Unseen(ctx, agent.Tenant, agent.ID, mostUnseen)
	if err != nil {
		return err
	}
	if u.More > 0 {
		a.say("(%s more that %s said unasked: memgpt log --agent %s shows all)", plural(u.More, "message"), agent.Name, agent.Name)
	}
	if err := show(u); err != nil { // as where a pipe was closed
		return errors.Join(err, a.host.NotSeen(context.WithoutCancel(ctx), u))
	}
	return a.host.Seen(context.WithoutCancel(ctx), u)
}

// wokenBy says what woke an agent.
func wokenBy(why string) string {
	switch memgpt.EventType(why) {
	case "heartbeat":
		return "its heartbeat"
	case "schedule":
		return "its own reminder"
	case memgpt.EventOutside:
		return "an event of another program"
	case memgpt.EventDocument:
		return "a document"
	case memgpt.EventAgent:
		return "a message of another agent"
	}
	return "the event " + why
}

// runUnseen is showUnseen of run: on standard error, since a script reads the answer from standard output; with --json as lines
// of their own, but for those that were printed as updates.
func (a *app) runUnseen(ctx context.Context, agent *memgpt.Agent, asJSON bool, printed ...string) error {
	if !asJSON {
		return a.showUnseen(ctx, agent, a.threadName, func(head, text string) error {
			a.say("%s\n%s", head, text)
			return nil
		})
	}
	return a.takeUnseen(ctx, agent, func(u *host.Unseen) error {
		for _, w := range u.Words {
			if slices.Contains(printed, w.ID) {
				continue
			}
			line := unseenLine{"unseen", w.ID, agent.Name, w.Conversation, w.Turn, timeOf(w.Time.In(agent.Location())), w.Why, w.Text}
			if err := writeJSON(a.out, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// runHook tells the agent's hook what is due, for as long as run gives to it. The rest is another's, or the next run's.
func (a *app) runHook(ctx context.Context, agent *memgpt.Agent) {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	if err := a.host.TellHook(ctx, agent.Tenant, agent.ID); err != nil && ctx.Err() == nil {
		a.say("%v", err)
	}
}

// watchUnseen shows what the agent says unasked as it comes, in whatever conversation and process.
func (c *conversation) watchUnseen(ctx context.Context) {
	tick := time.NewTicker(unseenPace)
	defer tick.Stop()
	last, looked := int64(-1), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		change, err := c.store.Change(ctx)
		if err != nil || change == last && time.Since(looked) < unseenRest {
			continue // a store that fails is told of by whoever needs it
		}
		last, looked = change, time.Now()
		c.unseen(ctx)
	}
}

// unseen shows what nobody has seen yet above the line that a person types.
func (c *conversation) unseen(ctx context.Context) {
	c.showing.Lock()
	defer c.showing.Unlock()
	err := c.showUnseen(ctx, &c.agent, c.thread.Name, func(head, text string) error {
		c.say("%s", head)
		_, err := fmt.Fprintln(c.out, text)
		return err
	})
	if err != nil && ctx.Err() == nil {
		c.say("%v", err)
	}
}

// outboxCount is what waits of what an agent said unasked.
type outboxCount struct {
	unread, due, failed int
	why                 string // the newest failed, or the oldest due was not delivered
}

func (a *app) countOutbox(ctx context.Context, agent *memgpt.Agent) (n outboxCount, err error) {
	rows, err := a.store.Sayings(ctx, store.SayingRange{Tenant: agent.Tenant, Agent: agent.ID})
	for i := range rows {
		s := &rows[i]
		if !s.Read {
			n.unread++
		}
		switch s.Hook {
		case store.HookDue:
			n.due++
		case store.HookFailed:
			n.failed++
		}
		if s.Hook != store.HookNone && s.Error != "" {
			n.why = s.Error
		}
	}
	return n, err
}

// text says what waits in words; "" is nothing.
func (n *outboxCount) text() string {
	text := ""
	add := func(count int, format string) {
		if count == 0 {
			return
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf(format, count)
	}
	add(n.unread, "%d unread")
	add(n.due, "%d wait for the hook")
	add(n.failed, "%d that the hook was not told")
	if n.why != "" && n.due+n.failed > 0 {
		text += " (" + n.why + ")"
	}
	return text
}
