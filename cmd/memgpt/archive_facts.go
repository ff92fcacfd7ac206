package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/memtool"
	"memgpt/tool"
)

// asOfHelp describes --as-of.
const asOfHelp = "what was known at the end of this day, month or year (2024-05-03, 2024-05, 2024)"

// asOfTime is the end of the time that --as-of names; zero for none.
func asOfTime(text string, agent memgpt.Agent) (time.Time, error) {
	_, end, err := memtool.ParseDate("--as-of", text, time.Now().In(agent.Location()))
	return end, err
}

// factTimes are the times of a passage as commands print them: empty where nothing says so.
type factTimes struct {
	About        string `json:"about,omitempty"`
	Ended        string `json:"ended,omitempty"`
	Learned      string `json:"learned,omitempty"`
	SupersededBy string `json:"superseded_by,omitempty"`
	Superseded   string `json:"superseded,omitempty"`
}

func factTimesOf(about, ended, learned, superseded time.Time, by string, agent memgpt.Agent) factTimes {
	zone := agent.Location()
	return factTimes{About: tool.DateText(about, zone), Ended: tool.DateText(ended, zone), Learned: tool.DateText(learned, zone),
		SupersededBy: by, Superseded: tool.DateText(superseded, zone)}
}

// text shows the times on a line, those alone that say more than when the passage was stored.
func (f *factTimes) text() string {
	var b strings.Builder
	for _, part := range []struct{ name, value string }{{"about ", f.About}, {"ended ", f.Ended}, {"replaced ", f.Superseded}} {
		if part.value != "" {
			b.WriteString("  " + part.name + part.value)
		}
	}
	if b.Len() > 0 && f.Learned != "" {
		b.WriteString("  learned " + f.Learned)
	}
	if b.Len() > 0 {
		b.WriteString("  ")
	}
	return b.String()
}

func newerNote(id string) string {
	if id == "" {
		return ""
	}
	return "; the newer is " + id
}

// printChain names what a passage replaced and what replaced it.
func (a *app) printChain(ctx context.Context, agent memgpt.Agent, p *memgpt.Passage) error {
	k, err := a.kernelWithoutModel()
	if err != nil {
		return err
	}
	list, err := k.History(ctx, agent.Tenant, agent.ID, p.ID)
	if err != nil || len(list) < 2 {
		return err
	}
	_, err = fmt.Fprintf(a.out, "one of %d versions; memgpt archive history %s shows all\n", len(list), p.ID)
	return err
}

func (a *app) archiveHistory() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "history ID", Short: "list what a passage replaced and what replaced it, in the order in which it was stored", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withOwner(cmd.Context(), func(agent memgpt.Agent) error {
				k, err := a.kernelWithoutModel()
				if err != nil {
					return err
				}
				list, err := k.History(cmd.Context(), agent.Tenant, agent.ID, args[0])
				for i := range list {
					if err := a.printPassage(&list[i], agent, asJSON, short(list[i].Text)); err != nil {
						return err
					}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one passage a line as an object")
	return cmd
}

func (a *app) archiveUndo() *cobra.Command {
	return &cobra.Command{
		Use: "undo ID", Short: "take a replacement back: what the passage replaced is found again, and the passage is not", Args: cobra.ExactArgs(1),
		Long: "undo takes an update or a merge back, by the id of the passage that it stored or of one that it replaced. What was replaced is\n" +
			"in results again under its own id, as if it had not been replaced; what replaced it is deleted, and its text stays until\n" +
			"memgpt forget.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withOwner(cmd.Context(), func(agent memgpt.Agent) error {
				k, err := a.kernelWithoutModel()
				if err != nil {
					return err
				}
				done, err := k.Revive(cmd.Context(), agent.Tenant, agent.ID, agent.Location(), args[0])
				if err != nil {
					return err
				}
				for i := range done.Live {
					a.say("in results again: %s", oneLine(&done.Live[i], agent))
				}
				for i := range done.Same {
					a.say("%s stays replaced, by %s, which has the same text", done.Same[i].ID, done.Same[i].SupersededBy)
				}
				switch {
				case done.Retired != "":
					a.say("out of results: %s", done.Retired)
				case done.Stays != "":
					a.say("what replaced it was stored before, and stays: %s", done.Stays)
				default:
					a.say("what replaced it had been deleted before")
				}
				return nil
			})
		},
	}
}
