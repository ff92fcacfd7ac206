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
	Rank    int            `json:"rank"` // from 1
	ID      string         `json:"id"`
	Kind    memgpt.DocKind `json:"kind"`
	Time    *string        `json:"time"` // null when unknown
	Role    memgpt.Role    `json:"role"`
	Name    string         `json:"name,omitempty"`
	Archive string         `json:"archive,omitempty"` // name of the shared archive that it is from
	Text    string         `json:"text"`
	Score   float64        `json:"score"`

	factTimes

	Parts  map[string]float64 `json:"parts,omitempty"`  // with --explain
	Before []string           `json:"before,omitempty"` // with --context
	After  []string           `json:"after,omitempty"`
}

func (a *app) searchCommand() *cobra.Command {
	var asJSON, explain bool
	var limit, page, around int
	var asOf string
	cmd := &cobra.Command{
		Use: "search QUERY", Short: "search everything that was said and stored, best first", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || page < 0 || around < 0 {
				return fmt.Errorf("--limit must be at least 1, --page and --context at least 0")
			}
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			agent, err := a.known(cmd.Context())
			if err != nil {
				return err
			}
			archives, names, err := a.readArchives(cmd.Context(), &agent)
			if err != nil {
				return err
			}
			then, err := asOfTime(asOf, agent)
			if err != nil {
				return err
			}
			hits, err := a.search.Search(cmd.Context(), tool.Query{Owner: agent.ID, Archives: archives, Text: strings.Join(args, " "), Page: page,
				Size: limit, Zone: agent.Location(), Context: around, Explain: explain, AsOf: then})
			if err != nil {
				return err
			}
			for i := range hits.List {
				hits.List[i].Archive = names[hits.List[i].Archive]
			}
			return a.printHits(agent, hits, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one hit a line as an object")
	cmd.Flags().IntVar(&limit, "limit", 10, "hits a page")
	cmd.Flags().IntVar(&page, "page", 0, "page, from 0")
	cmd.Flags().IntVar(&around, "context", 0, "turns to show before and after each message")
	cmd.Flags().StringVar(&asOf, "as-of", "", asOfHelp)
	cmd.Flags().BoolVar(&explain, "explain", false, "show what each score is made of")
	return cmd
}

func (a *app) printHits(agent memgpt.Agent, hits tool.Hits, asJSON bool) error {
	for i, h := range hits.List {
		line := hitLine{Rank: hits.Page*hits.Size + i + 1, ID: h.ID, Kind: h.Kind, Time: timeOf(inZone(h.Time, agent)), Role: h.Role,
			Name: h.Author, Archive: h.Archive, Text: h.Text, Score: h.Score, Before: spokenLines(h.Before), After: spokenLines(h.After),
			factTimes: factTimesOf(h.About, h.Ended, h.Learned, h.Superseded, h.SupersededBy, agent)}
		for _, p := range h.Parts {
			if line.Parts == nil {
				line.Parts = map[string]float64{}
			}
			line.Parts[p.Name] = p.Value
		}
		var err error
		if asJSON {
			err = writeJSON(a.out, line)
		} else {
			err = a.printHit(line, h.Parts)
		}
		if err != nil {
			return err
		}
	}
	a.tellHits(hits)
	return nil
}

func (a *app) printHit(l hitLine, parts []tool.Part) error {
	at, who := "(no time)", string(l.Role)
	if l.Time != nil {
		at = *l.Time
	}
	if l.Name != "" {
		who = l.Name
	}
	if l.Archive != "" {
		who = "of archive " + l.Archive
	}
	var b strings.Builder
	for _, s := range l.Before {
		fmt.Fprintf(&b, "       | %s\n", s)
	}
	fmt.Fprintf(&b, "%3d. %s  %s %s  %s%s\n", l.Rank, at, l.Kind, who, l.text(), strings.ReplaceAll(short(l.Text), "\n", "\n     "))
	for _, s := range l.After {
		fmt.Fprintf(&b, "       | %s\n", s)
	}
	if len(parts) > 0 {
		fmt.Fprintf(&b, "     score %.3f =", l.Score)
		for _, p := range parts {
			fmt.Fprintf(&b, " %s %.3f", p.Name, p.Value)
		}
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// spokenLines shows neighbours of a hit, a line each.
func spokenLines(hits []tool.Hit) (list []string) {
	for _, h := range hits {
		who := string(h.Role)
		if h.Author != "" {
			who = h.Author
		}
		list = append(list, who+": "+inLine(h.Text, 160))
	}
	return list
}

// tellHits says what a person should know of a search beside its hits.
func (a *app) tellHits(hits tool.Hits) {
	switch {
	case hits.Total == 0 && hits.Weak:
		a.say("nothing comes near enough to be an answer; try other words")
	case hits.Total == 0:
		a.say("nothing was found")
	case len(hits.List) == 0:
		a.say("page %d is beyond the last: %d results, pages 0 to %d", hits.Page, hits.Total, hits.Pages()-1)
	default:
		for _, c := range hits.Contradictions {
			a.say("%s and %s contradict each other%s", c.First, c.Second, newerNote(c.Newer))
		}
		a.say("%d of %d results, page %d of %d", len(hits.List), hits.Total, hits.Page, hits.Pages())
	}
	switch {
	case hits.Words != "":
		a.say("searched by words alone: %s", hits.Words)
	case hits.Unembedded > tool.ManyUnembedded:
		a.say("%.0f %% of the texts have no vector yet and are found by their words alone; memgpt index --wait makes them", 100*hits.Unembedded)
	}
}

// shownBytes is how much of a hit's text a person is shown; --json has it whole.
const shownBytes = 600

func short(text string) string { return cutShort(text, shownBytes) }

// inLine puts a text on one line, of so many bytes at most.
func inLine(text string, most int) string {
	return cutShort(strings.Join(strings.Fields(text), " "), most)
}

func cutShort(text string, most int) string {
	if part := memgpt.CutText(text, most); part != text {
		return part + "…"
	}
	return text
}
