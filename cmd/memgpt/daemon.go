package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/calendar"
	"memgpt/ingest"
)

func (a *app) daemonCommand() *cobra.Command {
	var watch string
	cmd := &cobra.Command{
		Use: "daemon", Short: "run what is due without a terminal: heartbeats, schedules, messages and events", Args: cobra.NoArgs,
		Long: "daemon runs what comes due for all agents until it is asked to end (Ctrl-C, SIGTERM), and writes a line for each turn\n" +
			"to standard error. Several daemons, chats and runs may share one data directory: nothing is done twice. With --watch it\n" +
			"also loads what is new or changed in a directory into the archive of --agent, as memgpt load does.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			return a.daemon(cmd.Context(), watch)
		},
	}
	cmd.Flags().StringVar(&watch, "watch", "", "directory whose documents are loaded as they come and change")
	a.threadFlag(cmd)
	return cmd
}

// toldKept bounds the lines that wait to be written: a terminal that stands still must not hold up agents.
const toldKept = 1024

// ranTurn is a turn that has ended in a conversation.
type ranTurn struct {
	thread string
	turn   memgpt.Turn
}

func (a *app) daemon(ctx context.Context, watch string) error {
	lines := make(chan ranTurn, toldKept)
	a.told = func(_, thread string, u memgpt.Update) {
		if end, ok := u.(memgpt.TurnEnded); ok {
			select {
			case lines <- ranTurn{thread, end.Turn}:
			default:
			}
		}
	}
	if err := a.start(ctx); err != nil {
		return err
	}
	a.banner()
	agents, err := a.store.Agents(ctx, "")
	if err != nil {
		return err
	}
	for _, agent := range agents {
		if err := a.host.Heartbeats(ctx, agent); err != nil {
			return err
		}
	}
	var w *watcher
	if watch != "" {
		if w, err = a.watcher(ctx, watch); err != nil {
			return err
		}
		defer w.close()
	}
	if err := a.host.Start(ctx); err != nil {
		return err
	}
	stopIndexing, err := a.embedBehind(ctx)
	if err != nil {
		return err
	}
	defer stopIndexing()
	a.say("the daemon runs; %s", plural(len(agents), "agent"))
	a.runUntil(ctx, w, lines)
	a.say("the daemon ends; what is not done goes on at the next start")
	return nil
}

// runUntil writes lines, and looks at the watched directory, until ctx ends.
func (a *app) runUntil(ctx context.Context, w *watcher, lines <-chan ranTurn) {
	tick := time.NewTicker(watchPace)
	defer tick.Stop()
	if w != nil {
		w.round(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case ran := <-lines:
			a.say("%s", a.turnLine(ctx, ran))
		case <-tick.C:
			if w != nil {
				w.round(ctx)
			}
		}
	}
}

// turnLine says in a line what became of an event.
func (a *app) turnLine(ctx context.Context, ran ranTurn) string {
	t, name := &ran.turn, ran.thread
	zone := time.UTC
	if agent, err := a.store.Agent(ctx, t.Tenant, t.Agent); err == nil {
		name, zone = agent.Name, agent.Location()
		if th, err := a.store.Thread(ctx, t.Tenant, ran.thread); err == nil {
			name += "/" + th.Name
		}
	}
	text := fmt.Sprintf("%s %s %s: %s", calendar.Format(t.Ended, zone), name, t.Type, t.State)
	if t.Stop != "" {
		text += fmt.Sprintf(" (%s)", t.Stop)
	}
	if t.Steps > 0 {
		text += fmt.Sprintf(" after %s and %v, %s said", plural(t.Steps, "step"), t.Ended.Sub(t.Started).Round(time.Millisecond), plural(t.Spoke, "message"))
	}
	if t.Error != "" {
		text += ": " + inLine(t.Error, shownBytes)
	}
	return text
}

// watcher returns what loads the documents of a directory.
func (a *app) watcher(ctx context.Context, dir string) (*watcher, error) {
	cutter, err := ingest.New(ingest.Config{})
	if err != nil {
		return nil, err
	}
	agent, th, err := a.agent(ctx)
	if err != nil {
		return nil, err
	}
	return newWatcher(&loader{app: a, agent: agent, thread: th, cutter: cutter, behind: true}, dir)
}
