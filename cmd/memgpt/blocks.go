package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/calendar"
	"memgpt/kernel"
	"memgpt/store"
)

func (a *app) blocksCommand() *cobra.Command {
	var history, asJSON bool
	cmd := &cobra.Command{
		Use: "blocks NAME [LABEL]", Short: "show an agent's working context and its history; put older values back", Args: cobra.RangeArgs(1, 2),
		Long: "blocks prints the blocks of an agent, or one. With --history it prints each edit with its time, by whom, why and what changed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.agentName = args[0]
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				return a.showBlocks(cmd.Context(), agent, args[1:], history, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&history, "history", false, "each edit, the oldest first")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	cmd.AddCommand(a.blocksUndo())
	return cmd
}

// blockLine is one block, or one edit of it, as blocks --json prints it.
type blockLine struct {
	Label   string  `json:"label"`
	Version int64   `json:"version"`
	Limit   int     `json:"limit"`
	Value   string  `json:"value"`
	Time    *string `json:"time,omitempty"`
	By      string  `json:"by,omitempty"`
	Why     string  `json:"why,omitempty"`
	Turn    string  `json:"turn,omitempty"`
}

func (a *app) showBlocks(ctx context.Context, agent memgpt.Agent, labels []string, history, asJSON bool) error {
	blocks, err := a.store.Blocks(ctx, agent.Tenant, agent.Blocks)
	if err != nil {
		return err
	}
	var known []string
	for _, b := range blocks {
		known = append(known, b.Label)
	}
	if len(labels) > 0 && !slices.Contains(known, labels[0]) {
		return fmt.Errorf("agent %s has no block %q; its blocks are %s", agent.Name, labels[0], strings.Join(known, ", "))
	}
	for i := range blocks {
		b := &blocks[i]
		switch {
		case len(labels) > 0 && b.Label != labels[0]:
			continue
		case history:
			err = a.showHistory(ctx, agent, b, asJSON)
		case asJSON:
			err = writeJSON(a.out, blockLine{Label: b.Label, Version: b.Version, Limit: b.Limit, Value: b.Value})
		default:
			_, err = fmt.Fprintf(a.out, "%s  version %d  %d/%d characters\n     %s\n", b.Label, b.Version, memgpt.Runes(b.Value), b.Limit,
				indented(b.Value))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func indented(text string) string { return strings.ReplaceAll(printable(text), "\n", "\n     ") }

func (a *app) showHistory(ctx context.Context, agent memgpt.Agent, b *memgpt.Block, asJSON bool) error {
	history, err := a.store.BlockHistory(ctx, agent.Tenant, b.ID)
	if err != nil {
		return err
	}
	k, err := a.kernelWithoutModel()
	if err != nil {
		return err
	}
	reasons, err := k.Reasons(ctx, &agent)
	if err != nil {
		return err
	}
	before := ""
	for i := range history {
		e := &history[i]
		by, err := a.editor(ctx, agent, e)
		if err != nil {
			return err
		}
		why := reasons.Of(e.Cause)
		if asJSON {
			err = writeJSON(a.out, blockLine{Label: b.Label, Version: e.Version, Limit: b.Limit, Value: e.Value, Time: timeOf(inZone(e.Time, agent)),
				By: by, Why: why, Turn: e.Cause.Turn})
		} else {
			_, err = fmt.Fprint(a.out, editText(b.Label, e, by, why, before, agent))
		}
		if err != nil {
			return err
		}
		before = e.Value
	}
	return nil
}

// editor says who made an edit: the owner, the agent, another agent with the block, or tidying.
func (a *app) editor(ctx context.Context, agent memgpt.Agent, e *store.BlockEdit) (string, error) {
	if e.Cause.Turn == "" {
		return "the owner", nil
	}
	name := "agent " + agent.Name
	if e.Cause.Agent != "" && e.Cause.Agent != agent.ID {
		other, err := a.store.Agent(ctx, agent.Tenant, e.Cause.Agent)
		if err != nil && memgpt.CodeOf(err) != memgpt.CodeNotFound {
			return "", err
		}
		name = "agent " + other.Name
	}
	turn, err := a.store.Turn(ctx, agent.Tenant, e.Cause.Turn)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return name, nil
	}
	if turn.Type == memgpt.EventTidy {
		name = "memory work of " + name
	}
	return name, err
}

// editText renders an edit with the lines that it took out and put in.
func editText(label string, e *store.BlockEdit, by, why, before string, agent memgpt.Agent) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  version %d  %s  by %s", label, e.Version, calendar.Format(e.Time, agent.Location()), by)
	if e.Cause.Turn != "" {
		fmt.Fprintf(&b, "  (%s)", e.Cause.Turn)
	}
	if why != "" {
		fmt.Fprintf(&b, "\n     why: %s", inLine(why, shownBytes))
	}
	b.WriteString("\n")
	for _, line := range kernel.LineDiff(before, e.Value) {
		fmt.Fprintf(&b, "     %s\n", printable(line))
	}
	return b.String()
}

func (a *app) blocksUndo() *cobra.Command {
	var to int64
	cmd := &cobra.Command{
		Use: "undo NAME LABEL", Short: "give a block an older value again, as a new version", Args: cobra.ExactArgs(2),
		Long: "undo takes the last edit of a block back, or with --to all edits after a version. The block gets a new version: nothing is\n" +
			"lost, and undo can be undone.",
		RunE: func(cmd *cobra.Command, args []string) error {
			a.agentName = args[0]
			if cmd.Flags().Changed("to") && to < 1 {
				return fmt.Errorf("--to takes a version from 1 on, not %s", strconv.FormatInt(to, 10))
			}
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				k, err := a.kernelWithoutModel()
				if err != nil {
					return err
				}
				was, now, err := k.RestoreBlock(cmd.Context(), &agent, args[1], to)
				if err == nil && was.Version == now.Version {
					a.say("block %s holds that already; nothing was changed", now.Label)
				} else if err == nil {
					a.say("block %s has version %d now; version %d stays in its history", now.Label, now.Version, was.Version)
				}
				return err
			})
		},
	}
	cmd.Flags().Int64Var(&to, "to", 0, "version whose value the block is to hold again; without it the one before the last")
	return cmd
}
