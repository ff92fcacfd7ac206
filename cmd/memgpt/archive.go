package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/store"
)

func (a *app) archiveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "archive", Short: "look at and tidy archival memory"}
	cmd.AddCommand(a.archiveList(), a.archiveSources(), a.archiveShow(), a.archiveDelete())
	return cmd
}

// passageLine is one passage as archive --json prints it.
type passageLine struct {
	ID           string   `json:"id"`
	Seq          int64    `json:"seq"`
	Time         *string  `json:"time"`
	Source       string   `json:"source,omitempty"`
	Heading      string   `json:"heading,omitempty"`
	Position     int64    `json:"position,omitempty"`
	Tags         []string `json:"tags,omitempty"`
	SupersededBy string   `json:"superseded_by,omitempty"`
	Deleted      *string  `json:"deleted,omitempty"`
	Text         string   `json:"text"`
}

func passageLineOf(p *memgpt.Passage, agent memgpt.Agent) passageLine {
	l := passageLine{ID: p.ID, Seq: p.Seq, Time: timeOf(inZone(p.Time, agent)), Source: p.Source, Heading: p.Heading, Position: p.Position,
		Tags: p.Tags, SupersededBy: p.SupersededBy, Text: p.Text}
	if !p.Deleted.IsZero() {
		l.Deleted = timeOf(inZone(p.Deleted, agent))
	}
	return l
}

// archivePage is how many passages are read at once.
const archivePage = 500

// eachPassage hands an agent's passages to f in their order.
func (a *app) eachPassage(ctx context.Context, q store.PassageRange, f func(*memgpt.Passage) error) error {
	left := q.Limit
	for {
		q.Limit = archivePage
		if left > 0 {
			q.Limit = min(left, archivePage)
		}
		list, err := a.store.PassagesOf(ctx, q)
		if err != nil {
			return err
		}
		for i := range list {
			if err := f(&list[i]); err != nil {
				return err
			}
		}
		if len(list) < q.Limit {
			return nil
		}
		q.After = list[len(list)-1].Seq
		if left -= len(list); left == 0 {
			return nil
		}
	}
}

// withAgent opens the store and hands the agent of the command line over.
func (a *app) withAgent(ctx context.Context, do func(memgpt.Agent) error) error {
	defer a.close()
	if err := a.open(ctx); err != nil {
		return err
	}
	agent, err := a.known(ctx)
	if err != nil {
		return err
	}
	return do(agent)
}

func (a *app) archiveList() *cobra.Command {
	var asJSON, dead bool
	var source string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "list the passages in the order in which they were stored", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				q := store.PassageRange{Tenant: agent.Tenant, Owner: agent.ID, Source: source, Dead: dead, Limit: limit}
				return a.eachPassage(cmd.Context(), q, func(p *memgpt.Passage) error { return a.printPassage(p, agent, asJSON, short(p.Text)) })
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one passage a line as an object")
	cmd.Flags().BoolVar(&dead, "all", false, "also what was replaced or deleted")
	cmd.Flags().StringVar(&source, "source", "", "only what came from this document")
	cmd.Flags().IntVar(&limit, "limit", 0, "list as many at most; 0 is all")
	return cmd
}

func (a *app) printPassage(p *memgpt.Passage, agent memgpt.Agent, asJSON bool, text string) error {
	line := passageLineOf(p, agent)
	if asJSON {
		return writeJSON(a.out, line)
	}
	at := "(no time)"
	if line.Time != nil {
		at = *line.Time
	}
	from := ""
	for _, s := range []string{p.Source, p.Heading} {
		if s != "" {
			from += "  " + s
		}
	}
	state := ""
	switch {
	case line.Deleted != nil:
		state = "  (deleted)"
	case p.SupersededBy != "":
		state = "  (replaced by " + p.SupersededBy + ")"
	}
	_, err := fmt.Fprintf(a.out, "%s  %s%s%s\n     %s\n", p.ID, at, from, state, strings.ReplaceAll(text, "\n", "\n     "))
	return err
}

func (a *app) archiveSources() *cobra.Command {
	return &cobra.Command{
		Use: "sources", Short: "list the documents that passages came from", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				list, err := a.store.Sources(cmd.Context(), agent.Tenant, agent.ID)
				for _, s := range list {
					if _, err := fmt.Fprintf(a.out, "%7d  %s\n", s.Passages, s.Name); err != nil {
						return err
					}
				}
				return err
			})
		},
	}
}

func (a *app) archiveShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "print a passage whole", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				p, err := a.passage(cmd.Context(), agent, args[0])
				if err != nil {
					return err
				}
				return a.printPassage(&p, agent, asJSON, p.Text)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

func (a *app) passage(ctx context.Context, agent memgpt.Agent, id string) (memgpt.Passage, error) {
	list, err := a.store.Passages(ctx, agent.Tenant, agent.ID, []string{id})
	if err != nil {
		return memgpt.Passage{}, err
	}
	if len(list) == 0 {
		return memgpt.Passage{}, fmt.Errorf("agent %s has no passage %q; memgpt archive list shows them", agent.Name, id)
	}
	return list[0], nil
}

func (a *app) archiveDelete() *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use: "delete [ID...]", Short: "take passages out of results; their text stays until memgpt forget",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (source == "") == (len(args) == 0) {
				return fmt.Errorf("name passages by their ids, or all of a document with --source")
			}
			return a.withAgent(cmd.Context(), func(agent memgpt.Agent) error {
				n, err := a.deletePassages(cmd.Context(), agent, args, source)
				a.say("%d passages were taken out of results", n)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "all that came from this document")
	return cmd
}

// deletePassages takes passages out of results, in commits of a few hundred.
func (a *app) deletePassages(ctx context.Context, agent memgpt.Agent, ids []string, source string) (n int, err error) {
	c := &store.Commit{}
	flush := func() error {
		c.Now = time.Now()
		if len(c.Passages) == 0 {
			return nil
		}
		_, err := a.store.Commit(ctx, c)
		if err == nil {
			n += len(c.Passages)
		}
		c = &store.Commit{}
		return err
	}
	retire := func(p *memgpt.Passage) error {
		if !p.Live() {
			return nil
		}
		p.Deleted = time.Now()
		c.Passages = append(c.Passages, *p)
		c.DeadDocs = append(c.DeadDocs, store.DocRef{Tenant: p.Tenant, Owner: p.Owner, ID: p.ID})
		if len(c.Passages) < archivePage {
			return nil
		}
		return flush()
	}
	if source != "" {
		q := store.PassageRange{Tenant: agent.Tenant, Owner: agent.ID, Source: source}
		if err := a.eachPassage(ctx, q, retire); err != nil {
			return n, err
		}
		return n, flush()
	}
	for _, id := range ids {
		p, err := a.passage(ctx, agent, id)
		if err != nil {
			return n, err
		}
		if err := retire(&p); err != nil {
			return n, err
		}
	}
	return n, flush()
}
