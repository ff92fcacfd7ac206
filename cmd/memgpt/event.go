package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/host"
	"memgpt/store"
)

// eventFlags are the options of event.
type eventFlags struct{ typ, text, data, key string }

func (a *app) eventCommand() *cobra.Command {
	var flags eventFlags
	cmd := &cobra.Command{
		Use: "event [-]", Short: "tell an agent what happened, from another program", Args: cobra.MaximumNArgs(1),
		Long: "event puts an event into an agent's inbox and prints its id. The agent is told that neither its user nor the system\n" +
			"wrote it. It runs on it at once where a daemon or a chat is open, else with the next run. With - each line of standard\n" +
			"input is an event: JSON where it is a JSON object, else text. An event with a key that the conversation knows, from the\n" +
			"last day or still waiting, is not taken in again; with - the lines are part of the key.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "-" {
				return fmt.Errorf("%q is no argument of event: write the text as --text, or - for lines of standard input", args[0])
			}
			if len(args) == 1 && flags.text+flags.data != "" {
				return errors.New("the events come from standard input or from --text and --json, not from both")
			}
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error { return a.raiseEvents(cmd.Context(), agent, flags, len(args) == 1) })
		},
	}
	cmd.Flags().StringVar(&flags.typ, "type", "", "what kind of event it is, as build_failed")
	cmd.Flags().StringVar(&flags.text, "text", "", "what happened, in words")
	cmd.Flags().StringVar(&flags.data, "json", "", "what happened, as a JSON value")
	cmd.Flags().StringVar(&flags.key, "key", "", "names the event: one with the same key is not taken in again")
	_ = cmd.MarkFlagRequired("type")
	a.threadFlag(cmd)
	return cmd
}

func (a *app) raiseEvents(ctx context.Context, agent memgpt.Agent, flags eventFlags, lines bool) error {
	h, err := a.inboxHost()
	if err != nil {
		return err
	}
	th, err := a.thread(ctx, agent)
	if err != nil {
		return err
	}
	if !lines {
		return a.raiseEvent(ctx, h, th, flags)
	}
	in := bufio.NewReader(io.LimitReader(stoppable(ctx, a.in), maxInput))
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			one := eventFlags{typ: flags.typ, text: string(line)}
			if line[0] == '{' && json.Valid(line) {
				one.text, one.data = "", string(line)
			}
			if flags.key != "" {
				one.key = memgpt.HashKey(flags.key, string(line))
			}
			if err := a.raiseEvent(ctx, h, th, one); err != nil {
				return fmt.Errorf("line %d: %w; the lines before it are in", n, err)
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read events from standard input: %w", err)
		}
		if err != nil {
			return nil
		}
	}
}

// raiseEvent commits one event, and prints the id of it or of the one that has its key.
func (a *app) raiseEvent(ctx context.Context, h *host.Host, th memgpt.Thread, flags eventFlags) error {
	m, err := host.OutsideMessage(flags.typ, flags.text, json.RawMessage(flags.data))
	if err != nil {
		return err
	}
	m.Agent, m.Thread, m.Key = th.Agent, th.ID, flags.key
	e, err := h.Event(m)
	if err != nil {
		return err
	}
	done, err := a.store.Commit(ctx, &store.Commit{Now: time.Now(), Events: []memgpt.Event{e}})
	if err != nil {
		return err
	}
	if len(done.Duplicate) > 0 {
		a.say("an event with the key %s was taken in before", flags.key)
		e.ID = done.Duplicate[0].ID
	}
	_, err = fmt.Fprintln(a.out, e.ID)
	return err
}

// noKernel runs nothing: for a host that only changes what waits.
type noKernel struct{}

func (noKernel) Run(context.Context, *store.Work) error {
	return memgpt.Errorf(memgpt.CodeClosed, "run a turn: this command runs none")
}

// inboxHost returns a host that runs no turn, for commands that need no model.
func (a *app) inboxHost() (*host.Host, error) {
	h, err := host.New(host.Config{Store: a.store, Kernel: noKernel{}, NewID: newID, Poll: -1, Report: func(err error) { a.say("%v", err) }})
	if err == nil && a.host == nil {
		a.host = h // so that it is closed
	}
	return h, err
}
