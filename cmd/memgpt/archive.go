package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/calendar"
	"memgpt/memtool"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

func (a *app) archiveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "archive", Short: "look at and tidy archival memory"}
	cmd.AddCommand(a.archiveList(), a.archiveSources(), a.archiveShow(), a.archiveDelete(), a.archiveDedup(), a.archiveNames(), a.archiveHistory(),
		a.archiveUndo())
	a.archiveFlag(cmd)
	return cmd
}

// passageLine is one passage as archive --json prints it.
type passageLine struct {
	ID       string   `json:"id"`
	Seq      int64    `json:"seq"`
	Time     *string  `json:"time"`
	Source   string   `json:"source,omitempty"`
	Heading  string   `json:"heading,omitempty"`
	Position int64    `json:"position,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	From     []string `json:"from,omitempty"`
	Deleted  *string  `json:"deleted,omitempty"`
	Text     string   `json:"text"`

	factTimes
}

func passageLineOf(p *memgpt.Passage, agent memgpt.Agent) passageLine {
	l := passageLine{ID: p.ID, Seq: p.Seq, Time: timeOf(inZone(p.Time, agent)), Source: p.Source, Heading: p.Heading, Position: p.Position,
		Tags: p.Tags, From: p.From, Text: p.Text,
		factTimes: factTimesOf(p.About, p.Ended, tool.Learned(p), p.Superseded, p.SupersededBy, agent)}
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
	var source, asOf string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "list the passages in the order in which they were stored", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withOwner(cmd.Context(), func(agent memgpt.Agent) error {
				then, err := asOfTime(asOf, agent)
				if err != nil {
					return err
				}
				q := store.PassageRange{Tenant: agent.Tenant, Owner: agent.ID, Source: source, Dead: dead || !then.IsZero(), Limit: limit}
				if !then.IsZero() {
					q.Limit = 0
				}
				n := 0
				err = a.eachPassage(cmd.Context(), q, func(p *memgpt.Passage) error {
					if !then.IsZero() && (!tool.Known(p, then) || limit > 0 && n == limit) {
						return nil
					}
					n++
					return a.printPassage(p, agent, asJSON, short(p.Text))
				})
				if err == nil && n == 0 && source != "" {
					err = a.unknownSource(cmd.Context(), agent, source)
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one passage a line as an object")
	cmd.Flags().BoolVar(&dead, "all", false, "also what was replaced or deleted")
	cmd.Flags().StringVar(&source, "source", "", "only what came from this document")
	cmd.Flags().StringVar(&asOf, "as-of", "", asOfHelp)
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
	from += line.text()
	if len(p.From) > 0 {
		from += "  from " + strings.Join(p.From, ", ")
	}
	_, err := fmt.Fprintf(a.out, "%s  %s%s%s\n     %s\n", p.ID, at, from, state, strings.ReplaceAll(text, "\n", "\n     "))
	return err
}

func (a *app) archiveSources() *cobra.Command {
	return &cobra.Command{
		Use: "sources", Short: "list the documents that passages came from", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withOwner(cmd.Context(), func(agent memgpt.Agent) error {
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
			return a.withOwner(cmd.Context(), func(agent memgpt.Agent) error {
				p, err := a.passage(cmd.Context(), agent, args[0])
				if err != nil {
					return err
				}
				if err := a.printPassage(&p, agent, asJSON, p.Text); err != nil || asJSON {
					return err
				}
				return a.printChain(cmd.Context(), agent, &p)
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
		return memgpt.Passage{}, fmt.Errorf("%s has no passage %q; memgpt archive list shows them", a.ownerText(agent), id)
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
			return a.withOwner(cmd.Context(), func(agent memgpt.Agent) error {
				n, err := a.deletePassages(cmd.Context(), agent, args, source)
				if n > 0 || err == nil {
					a.say("%d passages were taken out of results", n)
				}
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
		if err := flush(); err != nil || n > 0 {
			return n, err
		}
		return 0, a.unknownSource(ctx, agent, source)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
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

// nearSources is how many sources an error names.
const nearSources = 3

// unknownSource is the error for a source that no passage came from.
func (a *app) unknownSource(ctx context.Context, agent memgpt.Agent, source string) error {
	list, err := a.store.Sources(ctx, agent.Tenant, agent.ID)
	if err != nil {
		return err
	}
	var names, near []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	for _, name := range memtool.Nearest(source, names, nearSources) {
		near = append(near, strconv.Quote(name))
	}
	hint := "memgpt archive sources lists the documents"
	if len(near) > 0 {
		hint = "near to it: " + strings.Join(near, ", ") + "; " + hint
	}
	return fmt.Errorf("%s has no passages of the document %q; %s", a.ownerText(agent), source, hint)
}

// maxShown is how many passages of a pile are printed.
const maxShown = 5

func (a *app) archiveDedup() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "dedup", Short: "propose merges of passages that say the same; nothing is changed", Args: cobra.NoArgs,
		Long: "dedup looks for passages that say the same in other words and proposes which to keep: the newest of each pile. Passages\n" +
			"that differ in a number, a date, a name or a negation stay apart and are shown side by side, the newer first.\n" +
			"It changes nothing; the commands that it prints do.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withOwner(cmd.Context(), func(agent memgpt.Agent) error {
				piles, spare := 0, 0
				err := a.search.Piles(cmd.Context(), agent.Tenant, agent.ID, func(p retrieve.Pile) error {
					if len(p.Passages) > 1 {
						piles, spare = piles+1, spare+len(p.Passages)-1
					}
					if asJSON {
						return writeJSON(a.out, pileJSON(p, agent))
					}
					return a.printPile(p, agent)
				})
				if err == nil {
					a.say("%d piles: %d passages could go; nothing was changed", piles, spare)
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one pile a line as an object")
	return cmd
}

func pileJSON(p retrieve.Pile, agent memgpt.Agent) map[string]any {
	same := make([]passageLine, 0, len(p.Passages))
	for i := range p.Passages {
		same = append(same, passageLineOf(&p.Passages[i], agent))
	}
	rivals := make([]map[string]any, 0, len(p.Rivals))
	for i := range p.Rivals {
		r := &p.Rivals[i]
		var differs []map[string]string
		for _, d := range r.Likeness.Diff {
			differs = append(differs, map[string]string{"kind": string(d.Kind), "here": d.A, "there": d.B})
		}
		rivals = append(rivals, map[string]any{"of": r.Of, "passage": passageLineOf(&r.Passage, agent), "differs": differs})
	}
	return map[string]any{"same": same, "differ": rivals}
}

func (a *app) printPile(p retrieve.Pile, agent memgpt.Agent) error {
	var b strings.Builder
	if len(p.Passages) > 1 {
		fmt.Fprintf(&b, "%d passages say the same:\n", len(p.Passages))
		var spare []string
		for i := range p.Passages {
			if i < maxShown {
				fmt.Fprintf(&b, "  %s\n", oneLine(&p.Passages[i], agent))
			}
			if i > 0 {
				spare = append(spare, p.Passages[i].ID)
			}
		}
		fmt.Fprintf(&b, "  to keep the first: memgpt archive delete %s\n", strings.Join(spare, " "))
	}
	for i := range p.Rivals {
		r := &p.Rivals[i]
		of := slices.IndexFunc(p.Passages, func(q memgpt.Passage) bool { return q.ID == r.Of })
		if of < 0 {
			continue
		}
		pair := []*memgpt.Passage{&p.Passages[of], &r.Passage}
		slices.SortStableFunc(pair, func(p, q *memgpt.Passage) int { return q.Time.Compare(p.Time) })
		var facts []string
		for _, d := range r.Likeness.Diff {
			facts = append(facts, fmt.Sprintf("%s %q / %q", d.Kind, d.A, d.B))
		}
		fmt.Fprintf(&b, "these differ (%s):\n  %s\n  %s\n", strings.Join(facts, ", "), oneLine(pair[0], agent), oneLine(pair[1], agent))
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// oneLine shows the beginning of a passage.
func oneLine(p *memgpt.Passage, agent memgpt.Agent) string {
	return p.ID + "  " + calendar.Format(p.Time, agent.Location()) + "  " + inLine(p.Text, 120)
}
