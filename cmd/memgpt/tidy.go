package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/calendar"
	"memgpt/host"
	"memgpt/store"
)

func (a *app) tidyCommand() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use: "tidy NAME", Short: "tidy an agent's memory in the background, now or when it is due", Args: cobra.ExactArgs(1),
		Long: "tidy runs the memory work of an agent that is due and says what it changed, or when it is due and why. With --now it\n" +
			"runs whatever the settings say, until nothing is new. The settings are tidy, tidy_turns, tidy_idle and tidy_model of memgpt\n" +
			"agents set. What it did is in memgpt log --thread \"memory work\", memgpt blocks NAME --history and memgpt archive list --all.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.agentName = args[0]
			defer a.close()
			return a.tidy(cmd.Context(), now)
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "at once, whatever the settings are; budgets hold")
	cmd.AddCommand(a.tidyUndo())
	return cmd
}

func (a *app) tidy(ctx context.Context, now bool) error {
	if err := a.start(ctx); err != nil {
		return err
	}
	agent, err := a.known(ctx)
	if err != nil {
		return err
	}
	if !now {
		due, why, err := a.host.TidyDue(ctx, agent)
		switch {
		case err != nil:
			return err
		case !agent.Tidy.On:
			return fmt.Errorf("memory work of agent %s is off: memgpt agents set %s tidy=on, or memgpt tidy %s --now for once", agent.Name, agent.Name, agent.Name)
		case due.IsZero():
			a.say("nothing is new since the memory of agent %s was last tidied", agent.Name)
			return nil
		case due.After(time.Now()):
			a.say("due %s: %s", calendar.Format(due, agent.Location()), why)
			return nil
		}
	}
	if err := a.sayTidier(ctx, agent); err != nil {
		return err
	}
	for ran := 0; ; ran++ {
		turn, err := a.host.Tidy(ctx, agent)
		if err != nil {
			return err
		}
		if turn == nil {
			if ran == 0 {
				a.say("nothing is new since the memory of agent %s was last tidied", agent.Name)
			}
			return nil
		}
		if err := a.sayUsersFirst(ctx, agent); err != nil {
			return err
		}
		record, err := turn.Wait(ctx)
		if err != nil {
			return fmt.Errorf("the memory work is not finished and goes on later: %w", err)
		}
		if err := a.tidyDone(ctx, agent, record); err != nil || !now {
			return err
		}
	}
}

// sayUsersFirst says that tidying waits where the agent has a turn that goes first.
func (a *app) sayUsersFirst(ctx context.Context, agent memgpt.Agent) error {
	events, err := a.store.Events(ctx, store.EventRange{Tenant: agent.Tenant, Agent: agent.ID, Until: time.Now()})
	for i := range events {
		if e := &events[i]; e.Type == memgpt.EventUser || e.Type != memgpt.EventTidy && e.Begun {
			a.say("agent %s has a message that goes first; if no process runs it, memgpt run or daemon does", agent.Name)
			break
		}
	}
	return err
}

// sayTidier says which model tidies.
func (a *app) sayTidier(ctx context.Context, agent memgpt.Agent) error {
	if agent.Tidy.Model == "" {
		a.banner()
		return nil
	}
	o, err := a.models.open(ctx, agent.Tenant, agent.Tidy.Model)
	if err == nil {
		a.say("memgpt: %s tidies", o.model.Capabilities().Name)
	}
	return err
}

// tidyDone prints what a turn of tidying did.
func (a *app) tidyDone(ctx context.Context, agent memgpt.Agent, t memgpt.Turn) error {
	if t.State != memgpt.TurnDone {
		if t.Error != "" {
			a.say("the memory work %s (%s): %s", t.State, t.Stop, t.Error)
		}
		return errQuiet
	}
	edits, passages, err := a.tidyChanges(ctx, agent, t.ID)
	if err != nil {
		return err
	}
	if t.Steps == 0 {
		return nil // nobody said anything
	}
	_, err = fmt.Fprintf(a.out, "%s  %s: %s of blocks, %s stored, after %s\n", t.ID, calendar.Format(t.Ended, agent.Location()),
		plural(edits, "change"), plural(passages, "passage"), plural(t.Steps, "step"))
	a.sayCost(t.Usage)
	return err
}

// tidyChanges counts what a turn of tidying changed.
func (a *app) tidyChanges(ctx context.Context, agent memgpt.Agent, turn string) (edits, passages int, err error) {
	for _, id := range agent.Blocks {
		history, err := a.store.BlockHistory(ctx, agent.Tenant, id)
		if err != nil {
			return 0, 0, err
		}
		for i := range history {
			if history[i].Cause.Turn == turn {
				edits++
			}
		}
	}
	err = a.eachPassage(ctx, store.PassageRange{Tenant: agent.Tenant, Owner: agent.ID, Dead: true}, func(p *memgpt.Passage) error {
		if p.Cause.Turn == turn {
			passages++
		}
		return nil
	})
	return edits, passages, err
}

func (a *app) tidyUndo() *cobra.Command {
	return &cobra.Command{
		Use: "undo NAME TURN", Short: "take back what a turn of memory work did, where nothing newer stands in the way", Args: cobra.ExactArgs(2),
		Long: "undo gives blocks the values that they had before the turn, as new versions, lets passages live again that it replaced, and\n" +
			"takes those out of results that it stored. What was changed since stays, and is named. TURN is the id that memgpt tidy\n" +
			"prints and memgpt blocks --history shows. Nothing is lost by it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.agentName = args[0]
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				k, err := a.kernelWithoutModel()
				if err != nil {
					return err
				}
				done, err := k.UndoTidy(cmd.Context(), &agent, args[1])
				if done != nil {
					for _, line := range done.Done {
						_, _ = fmt.Fprintln(a.out, printable(line))
					}
					for _, line := range done.Left {
						a.say("not undone: %s", line)
					}
				}
				if err == nil && len(done.Done) == 0 && len(done.Left) == 0 {
					a.say("the turn left nothing to be undone")
				}
				return err
			})
		},
	}
}

// How long run gives memory work after its answer, and how long it is silent about it.
const (
	tidyShareTime = 2 * time.Minute
	tidyShareTell = 5 * time.Second
)

// errShareOver ends the share of memory work that a run does.
var errShareOver = memgpt.Errorf(memgpt.CodeBusy, "it has had its time in this run")

// tidyShare runs the memory work that was due before the command began, where no daemon does. It has its turn after the answer, so
// that nobody waits for it, and a bounded time, since whoever called the command waits for its end: a tidier may never end.
func (a *app) tidyShare(ctx context.Context, agent memgpt.Agent, begun time.Time, most time.Duration) error {
	id := store.TidyThreadID(agent.ID)
	events, err := a.store.Events(ctx, store.EventRange{Tenant: agent.Tenant, Thread: id, Until: begun, Limit: 1})
	if err != nil || len(events) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, errShareOver)
	defer cancel()
	tell := time.AfterFunc(tidyShareTell, func() {
		a.say("memory work runs, for %v at most; what is not done then, or at Ctrl-C, goes on later", most)
	})
	defer tell.Stop()
	err = a.host.RunDue(ctx, agent.Tenant, agent.ID, id)
	if errors.Is(err, host.ErrStopping) {
		return nil
	}
	if over := context.Cause(ctx); err != nil && over != nil {
		return over
	}
	return err
}
