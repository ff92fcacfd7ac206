package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/calendar"
	"memgpt/hook"
	"memgpt/store"
)

// oldSecretTime is how long a secret that was replaced signs too, so that receivers can change over without a gap.
const oldSecretTime = 24 * time.Hour

// hookSetting is the URL of an agent's hook.
func hookSetting() setting {
	return textSetting("hook", "URL that is told what it says unasked, signed as Standard Webhooks says", "none",
		func(a *memgpt.Agent) *string { return &a.Reach.Hook }, func(to string) error {
			if to == "" {
				return nil
			}
			return hook.Check(to)
		})
}

// hookChange returns what else a commit holds that changes an agent's hook: another place gets a secret of its own, and without a
// place there is none.
func (a *app) hookChange(ctx context.Context, before, after *memgpt.Agent, c *store.Commit) (secret string, err error) {
	if before.Reach.Hook == after.Reach.Hook {
		return "", nil
	}
	old, err := a.store.Record(ctx, after.Tenant, store.HookKind, after.ID)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		old, err = store.Record{Tenant: after.Tenant, Kind: store.HookKind, ID: after.ID}, nil
	}
	if err != nil {
		return "", err
	}
	if after.Reach.Hook == "" {
		c.Drop = append(c.Drop, old)
		return "", nil
	}
	h := store.Hook{URL: after.Reach.Hook, Secret: hook.NewSecret()}
	record, err := h.Record(old)
	c.Records = append(c.Records, record)
	return h.Secret, err
}

// secretText tells the owner of a secret.
const secretText = "agent %s: the secret of its hook, with which receivers check that it was this agent (Standard Webhooks): %s\n" +
	"memgpt agents hook %s shows it again"

func (a *app) agentsHook() *cobra.Command {
	var rotate, retry, asJSON bool
	cmd := &cobra.Command{
		Use: "hook NAME", Short: "show an agent's hook: its secret, what waits for it and what it was not told", Args: cobra.ExactArgs(1),
		Long: "hook shows the URL that is told what an agent says unasked, the secret by which receivers check the signature, and what\n" +
			"waits or was given up. memgpt agents set NAME hook=URL sets it, hook=default takes it away. With --retry what waits longer for its\n" +
			"next attempt is due now, too.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.agentName = args[0]
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				if agent.Reach.Hook == "" {
					return fmt.Errorf("agent %s has no hook; memgpt agents set %s hook=https://… sets one", agent.Name, agent.Name)
				}
				if rotate || retry {
					if err := a.changeHook(cmd.Context(), &agent, rotate, retry); err != nil {
						return err
					}
				}
				return a.showHook(cmd.Context(), &agent, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "make a new secret; the old one signs too for a day")
	cmd.Flags().BoolVar(&retry, "retry", false, "tell it again what was given up, also after a server's 410 Gone")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

// hookLine is an agent's hook as agents hook --json prints it.
type hookLine struct {
	Agent   string  `json:"agent"`
	URL     string  `json:"url"`
	Secret  string  `json:"secret"`
	Old     string  `json:"old_secret,omitempty"` // signs too, until
	Until   *string `json:"old_until,omitempty"`
	Stopped *string `json:"stopped,omitempty"`
	Unread  int     `json:"unread"`
	Due     int     `json:"due"`
	Failed  int     `json:"failed"`
	Error   string  `json:"error,omitempty"`
}

func (a *app) showHook(ctx context.Context, agent *memgpt.Agent, asJSON bool) error {
	h, _, err := a.readHook(ctx, agent)
	if err != nil {
		return err
	}
	n, err := a.countOutbox(ctx, agent)
	if err != nil {
		return err
	}
	zone := agent.Location()
	l := hookLine{Agent: agent.Name, URL: agent.Reach.Hook, Secret: h.Secret, Unread: n.unread, Due: n.due, Failed: n.failed, Error: n.why}
	if time.Now().Before(h.Until) {
		l.Old, l.Until = h.Old, timeOf(h.Until.In(zone))
	}
	if !h.Stopped.IsZero() {
		l.Stopped = timeOf(h.Stopped.In(zone))
	}
	if asJSON {
		return writeJSON(a.out, l)
	}
	_, err = fmt.Fprintf(a.out, "hook    %s\nsecret  %s\n", l.URL, l.Secret)
	for _, s := range h.Replaced(time.Now()) {
		if err == nil {
			_, err = fmt.Fprintf(a.out, "        (an older one signs too until %s)\n", calendar.Format(s.Until, zone))
		}
	}
	if err == nil && l.Stopped != nil {
		_, err = fmt.Fprintf(a.out, "stopped since %s: the server answered 410 Gone; --retry starts it again\n", calendar.Format(h.Stopped, zone))
	}
	if text := n.text(); err == nil && text != "" {
		_, err = fmt.Fprintln(a.out, text)
	}
	return err
}

func (a *app) readHook(ctx context.Context, agent *memgpt.Agent) (h store.Hook, r store.Record, err error) {
	r, err = a.store.Record(ctx, agent.Tenant, store.HookKind, agent.ID)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return store.Hook{URL: agent.Reach.Hook}, store.Record{Tenant: agent.Tenant, Kind: store.HookKind, ID: agent.ID}, nil
	}
	if err == nil {
		err = h.Read(r)
	}
	return h, r, err
}

// changeHook makes a new secret, or puts what was given up back to what is due, with what the hook stopped for.
func (a *app) changeHook(ctx context.Context, agent *memgpt.Agent, rotate, retry bool) error {
	for try := 1; ; try++ {
		h, r, err := a.readHook(ctx, agent)
		if err != nil {
			return err
		}
		c := &store.Commit{Now: time.Now()}
		if rotate {
			h.Rotate(hook.NewSecret(), c.Now, c.Now.Add(oldSecretTime))
		}
		if retry {
			h.Stopped = time.Time{}
			if c.Sayings, err = a.sayingsAgain(ctx, agent, c.Now); err != nil {
				return err
			}
		}
		record, err := h.Record(r)
		if err != nil {
			return err
		}
		c.Records = []store.Record{record}
		if _, err = a.store.Commit(ctx, c); err == nil {
			return nil
		}
		if memgpt.CodeOf(err) != memgpt.CodeConflict || try == setTries {
			return errors.Join(fmt.Errorf("change the hook of agent %s: nothing was changed", agent.Name), err)
		}
	}
}

// attemptTime is longer than an attempt to tell a hook: who waits longer is not being told right now.
const attemptTime = time.Minute

// sayingsAgain returns what was given up as due, from the first attempt on, and what waits for a later attempt as due now.
func (a *app) sayingsAgain(ctx context.Context, agent *memgpt.Agent, now time.Time) (list []store.Saying, err error) {
	rows, err := a.store.Sayings(ctx, store.SayingRange{Tenant: agent.Tenant, Agent: agent.ID})
	for _, s := range rows {
		switch {
		case s.Hook == store.HookFailed:
			s.Hook, s.Next, s.First, s.Tries, s.Aside, s.Error = store.HookDue, now, time.Time{}, 0, false, ""
		case s.Hook == store.HookDue && s.Next.Sub(now) > attemptTime:
			s.Next = now
		default:
			continue
		}
		list = append(list, s)
	}
	return list, err
}
