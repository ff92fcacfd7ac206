package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/token"
	"memgpt/tool"
)

// forgetter is what the forms of forget share.
type forgetter struct {
	*app
	yes bool
	all bool
}

func (a *app) forgetCommand() *cobra.Command {
	f := &forgetter{app: a}
	cmd := &cobra.Command{
		Use: "forget", Short: "erase messages, passages, all about a term, a conversation or an agent for good",
		Long: "forget shows what would go, and erases it when you agree: from the log, the archive, every index, blocks and their\n" +
			"history, summaries (they are made anew) and free space of the file. A dated notice stays in the log. It can't be undone,\n" +
			"and copies that you made of the data directory are not touched. No model can do this: it may only propose it.",
	}
	cmd.PersistentFlags().BoolVar(&f.yes, "yes", false, "erase without asking")
	cmd.PersistentFlags().BoolVar(&f.all, "all", false, "show every text that goes, not only the first of them")
	cmd.AddCommand(f.message(), f.passage(), f.term(), f.thread(), f.agent())
	return cmd
}

func (f *forgetter) message() *cobra.Command {
	return &cobra.Command{
		Use: "message ID...", Short: "forget messages, with the results of their calls", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return f.forget(cmd.Context(), func(what *kernel.Forgetting) error { what.Messages = unique(ids); return nil })
		},
	}
}

func (f *forgetter) passage() *cobra.Command {
	var source, query string
	var limit int
	cmd := &cobra.Command{
		Use: "passage [ID...]", Short: "forget passages by id, by a search or by the document they came from",
		RunE: func(cmd *cobra.Command, ids []string) error {
			ways := 0
			for _, given := range []bool{len(ids) > 0, source != "", query != ""} {
				if given {
					ways++
				}
			}
			if ways != 1 {
				return errors.New("name passages by their ids, or by --search, or by --source")
			}
			return f.forget(cmd.Context(), func(what *kernel.Forgetting) (err error) {
				what.Source, what.Passages = source, unique(ids)
				if query != "" {
					what.Passages, err = f.found(cmd.Context(), what.Agent, query, limit)
				}
				return err
			})
		},
	}
	f.archiveFlag(cmd)
	cmd.Flags().StringVar(&source, "source", "", "all that came from this document")
	cmd.Flags().StringVar(&query, "search", "", "what a search for this finds, the best first")
	cmd.Flags().IntVar(&limit, "limit", 10, "with --search: as many at most")
	return cmd
}

func unique(ids []string) (out []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[id] {
			out, seen[id] = append(out, id), true
		}
	}
	return out
}

// found returns the ids of the passages that a search finds.
func (f *forgetter) found(ctx context.Context, agent memgpt.Agent, query string, limit int) (ids []string, err error) {
	if limit < 1 {
		return nil, errors.New("--limit must be at least 1")
	}
	hits, err := f.search.Search(ctx, tool.Query{Tenant: agent.Tenant, Owner: agent.ID, Text: query, Kinds: []memgpt.DocKind{memgpt.KindPassage},
		Size: limit, Zone: agent.Location()})
	for _, h := range hits.List {
		ids = append(ids, h.ID)
	}
	return ids, err
}

func (f *forgetter) term() *cobra.Command {
	var forms bool
	cmd := &cobra.Command{
		Use: "term TEXT", Short: "forget every message, passage, line of a block and summary that holds a word or phrase", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, words []string) error {
			return f.forget(cmd.Context(), func(what *kernel.Forgetting) error {
				what.Term, what.Forms = strings.Join(words, " "), forms
				if strings.TrimSpace(what.Term) == "" {
					return errors.New("the term is empty")
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&forms, "forms", false, "also longer words that hold it, and other forms of it")
	return cmd
}

func (f *forgetter) thread() *cobra.Command {
	return &cobra.Command{
		Use: "thread NAME", Short: "forget a conversation", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.forget(cmd.Context(), func(what *kernel.Forgetting) error {
				f.threadName = args[0]
				th, err := f.app.thread(cmd.Context(), what.Agent)
				what.Thread = &th
				return err
			})
		},
	}
}

func (f *forgetter) agent() *cobra.Command {
	return &cobra.Command{
		Use: "agent NAME", Short: "forget an agent with all that it has", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.agentName = args[0]
			return f.forget(cmd.Context(), func(what *kernel.Forgetting) error { what.Whole = true; return nil })
		},
	}
}

// forget shows what goes, asks, and erases.
func (f *forgetter) forget(ctx context.Context, choose func(*kernel.Forgetting) error) error {
	return f.withOwner(ctx, func(agent memgpt.Agent) error {
		k, err := f.kernelWithoutModel()
		if err != nil {
			return err
		}
		what := kernel.Forgetting{Agent: agent}
		if f.archiveName != "" {
			what.Archive = &store.Archive{Tenant: agent.Tenant, Name: agent.Name, ID: agent.ID}
		}
		if err := choose(&what); err != nil {
			return err
		}
		if nothing := len(what.Messages)+len(what.Passages) == 0 && what.Source+what.Term == "" && what.Thread == nil && !what.Whole; nothing {
			f.say("nothing was found to forget")
			return nil
		}
		preview, err := k.PreviewForget(ctx, what)
		if err != nil {
			return err
		}
		f.show(agent, preview)
		if !preview.None() && !f.agreed() {
			f.say("nothing was erased; --yes erases it")
			return nil
		}
		done, err := k.Forget(ctx, what) // also of nothing: files that an earlier one left unclean are cleaned
		if err == nil && !done.None() {
			f.say("erased: %s", counts(done))
		}
		if err == nil && what.Source != "" && preview.None() {
			err = f.unknownSource(ctx, agent, what.Source)
		}
		return err
	})
}

// kernelWithoutModel returns a kernel that asks no model: forgetting needs none, nor does a shared archive.
func (a *app) kernelWithoutModel() (*kernel.Kernel, error) {
	count, err := token.New(token.Config{})
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Config{Store: a.store, Search: a.search, Analyzer: new(retrieve.Analyzer), Counter: count, NewID: newID,
		Normalize: retrieve.SameKey, System: memtool.System,
		Model: func(memgpt.Agent) (memgpt.Model, error) { return nil, errors.New("there is no model here") }})
}

// shownLines is how many texts are shown without --all.
const shownLines = 20

// show prints the preview, on standard output.
func (f *forgetter) show(agent memgpt.Agent, p *kernel.Forgotten) {
	print := func(format string, args ...any) { _, _ = fmt.Fprintf(f.out, format+"\n", args...) }
	for i, l := range p.Lines {
		if i == shownLines && !f.all {
			print("  … and %d more (--all shows them)", len(p.Lines)-i)
			break
		}
		at, how := "", "whole"
		if !l.Time.IsZero() {
			at = "  " + inZone(l.Time, agent).Format("2006-01-02 15:04")
		}
		if l.Part {
			how = "in part"
		}
		print("  %-12s %-7s  %s%s  %s", l.Kind, how, l.ID, at, inLine(l.Text, 100))
	}
	switch {
	case p.None() && p.Already > 0:
		print("that was forgotten already")
	case p.None():
		print("nothing was found to forget")
	default:
		print("to be erased: %s", counts(p))
	}
	for _, s := range p.Shared {
		print("shared block, changed for all: %s", s)
	}
	if p.Related > 0 {
		print("%d more texts hold it only within a longer word or in another form; --forms takes them too", p.Related)
	}
	for _, s := range p.Kept {
		print("not touched: %s", s)
	}
}

func counts(p *kernel.Forgotten) string {
	var list []string
	for _, c := range []struct {
		n    int
		what string
	}{{p.Threads, "conversations"}, {p.Messages, "messages"}, {p.Passages, "passages"}, {p.Quotes, "quotations of them elsewhere"},
		{p.Blocks, "blocks with their history"}, {p.Summaries, "summaries (made anew)"}, {p.Others, "waiting events and errors"}} {
		if c.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(list, ", ")
}

// agreed asks a person at a terminal. Others must say --yes.
func (f *forgetter) agreed() bool {
	if f.yes {
		return true
	}
	in, ok := f.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return false
	}
	_, _ = fmt.Fprint(f.err, "Erase it for good? [y/N] ")
	answer, _ := bufio.NewReader(in).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(answer), "y")
}
