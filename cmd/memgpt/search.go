package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/tool"
)

// hitLine is one hit as search --json prints it.
type hitLine struct {
	Rank  int            `json:"rank"` // from 1
	ID    string         `json:"id"`
	Kind  memgpt.DocKind `json:"kind"`
	Time  *string        `json:"time"` // null when unknown
	Role  memgpt.Role    `json:"role"`
	Name  string         `json:"name,omitempty"`
	Text  string         `json:"text"`
	Score float64        `json:"score"`
}

func (a *app) searchCommand() *cobra.Command {
	var asJSON bool
	var limit, page int
	cmd := &cobra.Command{
		Use: "search QUERY", Short: "search everything that was said and stored, best first", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || page < 0 {
				return fmt.Errorf("--limit must be at least 1 and --page at least 0")
			}
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			agent, err := a.known(cmd.Context())
			if err != nil {
				return err
			}
			hits, err := a.search.Search(cmd.Context(), tool.Query{Owner: agent.ID, Text: strings.Join(args, " "), Page: page,
				Size: limit, Zone: agent.Location()})
			if err != nil {
				return err
			}
			return a.printHits(agent, hits, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one hit a line as an object")
	cmd.Flags().IntVar(&limit, "limit", 10, "hits a page")
	cmd.Flags().IntVar(&page, "page", 0, "page, from 0")
	return cmd
}

func (a *app) printHits(agent memgpt.Agent, hits tool.Hits, asJSON bool) error {
	for i, h := range hits.List {
		line := hitLine{hits.Page*hits.Size + i + 1, h.ID, h.Kind, timeOf(inZone(h.Time, agent)), h.Role, h.Author, h.Text, h.Score}
		if asJSON {
			if err := writeJSON(a.out, line); err != nil {
				return err
			}
			continue
		}
		at := "(no time)"
		if line.Time != nil {
			at = *line.Time
		}
		who := string(h.Role)
		if h.Author != "" {
			who = h.Author
		}
		if _, err := fmt.Fprintf(a.out, "%3d. %s  %s %s  %s\n", line.Rank, at, h.Kind, who, strings.ReplaceAll(short(h.Text), "\n", "\n     ")); err != nil {
			return err
		}
	}
	a.say("%d of %d results, page %d of %d", len(hits.List), hits.Total, hits.Page, hits.Pages())
	return nil
}

// shownBytes is how much of a hit's text a person is shown; --json has it whole.
const shownBytes = 600

func short(text string) string {
	if part := memgpt.CutText(text, shownBytes); part != text {
		return part + "…"
	}
	return text
}
