package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/host"
)

// maxInput bounds what is read from standard input as one message: more is a file to be loaded, not a message.
const maxInput = 64 << 20

func (a *app) runCommand() *cobra.Command {
	var text string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "run", Short: "send one message and print what the agent says", Args: cobra.NoArgs,
		Long: "run sends one message, from -m or standard input, and prints what the agent says once it is stored.\n" +
			"Where the agent works already, also for another process, it takes the message in before its next step, and what it\n" +
			"says from then on is printed. It exits with 0 when the turn ended well. An agent that doesn't exist is made.\n" +
			"What the agent said unasked and nobody has seen goes to standard error, with time and what woke it, once; with --json it is\n" +
			"a line of its own (update unseen).",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("message") {
				data, err := io.ReadAll(io.LimitReader(stoppable(cmd.Context(), a.in), maxInput+1))
				if err != nil {
					return fmt.Errorf("read the message from standard input: %w", err)
				}
				if len(data) > maxInput {
					return fmt.Errorf("read the message from standard input: it is longer than %d MiB", maxInput>>20)
				}
				text = strings.TrimPrefix(string(data), "\ufeff") // as PowerShell and Notepad write it
			}
			defer a.close()
			return a.runOnce(cmd.Context(), text, asJSON)
		},
	}
	cmd.Flags().StringVarP(&text, "message", "m", "", "the message; without it standard input is one message")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one update a line instead")
	a.threadFlag(cmd)
	a.prefetchFlag(cmd)
	a.costFlag(cmd)
	return cmd
}

func (a *app) threadFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.threadName, "thread", host.MainThread, "name of the conversation")
}

func (a *app) runOnce(ctx context.Context, text string, asJSON bool) error {
	begun := time.Now()
	if err := a.start(ctx); err != nil {
		return err
	}
	a.banner()
	agent, th, err := a.agent(ctx)
	if err != nil {
		return err
	}
	if err := a.runUnseen(ctx, &agent, asJSON); err != nil {
		a.say("%v", err) // it waits for the next run; the message is sent
	}
	text = trimNewline(text)
	others := a.overhear(th)
	turn, err := a.host.Send(ctx, host.Message{Agent: agent.ID, Thread: th.ID,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
	if err != nil {
		return err
	}
	record, err := a.follow(ctx, turn, asJSON)
	if err != nil {
		return fmt.Errorf("the message is stored, its turn is not finished and goes on with the next run: %w", err)
	}
	a.sayCost(record.Usage)
	if err := a.runShare(ctx, &agent, th, others, asJSON, turn.ID, record.ID); err != nil {
		a.say("what else was due goes on with the next run: %v", err)
	} else if err := a.tidyShare(ctx, agent, begun); err != nil {
		a.say("memory work goes on with the next run: %v", err)
	}
	a.runHook(ctx, &agent)
	a.embedOwn(ctx, agent)
	return a.verdict(record)
}

// follow prints what happens for a message, also in a turn that takes it in, and returns how it ended. An error says that
// this is not known.
func (a *app) follow(ctx context.Context, turn *host.Turn, asJSON bool) (memgpt.Turn, error) {
	return a.host.Follow(ctx, turn, func(u memgpt.Update) error { return a.print(u, asJSON) })
}

// print writes one update: what the agent says to standard output, what a person should know to standard error.
func (a *app) print(u memgpt.Update, asJSON bool) error {
	if asJSON {
		return writeJSON(a.out, describe(u))
	}
	switch u := u.(type) {
	case memgpt.Spoke:
		_, err := fmt.Fprintln(a.out, u.Text)
		return err
	case memgpt.Warned:
		a.say("warning: %s", u.Text)
	}
	return nil
}

// verdict tells how a turn ended, where it did not end well.
func (a *app) verdict(t memgpt.Turn) error {
	if t.Stop == memgpt.StopSilent {
		a.say("the agent ended its turn without a word")
	}
	if t.State == memgpt.TurnDone && t.Stop.Good() {
		return nil
	}
	if t.Error != "" {
		a.say("the turn %s (%s): %s", t.State, t.Stop, t.Error)
		if t.Stop == memgpt.StopBudget {
			a.say("the message is kept and is read with the next one that a budget is there for; memgpt cost shows the budgets," +
				" memgpt agents set NAME budget=2.50 sets an agent's, MEMGPT_BUDGET that of all, MEMGPT_PRICES names prices")
		}
	} else {
		a.say("the turn ended early: %s", t.Stop)
	}
	return errQuiet
}

func trimNewline(s string) string {
	for len(s) > 0 && (s[len(s)-1] == '\n' || s[len(s)-1] == '\r') {
		s = s[:len(s)-1]
	}
	return s
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
