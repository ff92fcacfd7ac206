package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"memgpt/kernel"
	"memgpt/store"
)

func (a *app) contextCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "context", Short: "print the prompt that the model would be sent, its sizes, and the tiers of memory", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			defer a.close()
			if err := a.start(ctx); err != nil {
				return err
			}
			agent, err := a.known(ctx)
			if err != nil {
				return err
			}
			th, err := a.thread(ctx, agent)
			if err != nil {
				return err
			}
			st, err := store.Load(ctx, a.store, th.Tenant, th.ID)
			if err != nil {
				return err
			}
			in, err := a.kernel.Inspect(st)
			if err != nil {
				return err
			}
			sizes, err := a.store.Sizes(ctx, agent.Tenant, agent.ID)
			if err != nil {
				return err
			}
			handed, err := a.handedContext(ctx, st)
			if err != nil {
				return err
			}
			if asJSON {
				out := contextJSON(in, st, sizes)
				out["prefetch"] = handed
				return writeJSON(a.out, out)
			}
			return a.printContext(in, st, sizes, handed)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object")
	a.threadFlag(cmd)
	return cmd
}

func contextJSON(in *kernel.Inspection, st *store.State, sizes store.Sizes) map[string]any {
	messages := make([]map[string]any, 0, len(in.Request.Messages))
	for i := range in.Request.Messages {
		m := &in.Request.Messages[i]
		messages = append(messages, map[string]any{"role": m.Role, "parts": m.Parts})
	}
	parts := map[string]int{}
	for _, p := range in.Parts {
		parts[p.Name] = p.Tokens
	}
	count, bytes := hot(st)
	return map[string]any{"messages": messages, "tokens": parts, "total": in.Total, "window": in.Window, "reserve": in.Reserve,
		"usable": in.Usable, "alert": in.Alert, "flush": in.Flush, "target": in.Target,
		"tiers": map[string]any{
			"hot":  map[string]any{"messages": count, "bytes": bytes, "blocks": len(st.Blocks)},
			"warm": map[string]any{"texts": sizes.Docs, "bytes": sizes.ForwardBytes + sizes.PostingBytes},
			"cold": map[string]any{"messages": sizes.Messages, "message_bytes": sizes.MessageBytes,
				"passages": sizes.Passages, "passage_bytes": sizes.PassageBytes},
		}}
}

// hot counts what of the memory stands in main context.
func hot(st *store.State) (messages, bytes int) {
	for i := range st.Queue {
		bytes += len(st.Queue[i].Message.Said()) + len(st.Queue[i].Message.Thoughts())
	}
	for i := range st.Blocks {
		bytes += len(st.Blocks[i].Value)
	}
	return len(st.Queue), bytes + len(st.Thread.Summary.Text)
}

func (a *app) printContext(in *kernel.Inspection, st *store.State, sizes store.Sizes, handed handedContext) error {
	entries := handed.Entries
	for i := range in.Request.Messages {
		m := &in.Request.Messages[i]
		if _, err := fmt.Fprintf(a.out, "── %s\n", m.Role); err != nil {
			return err
		}
		if text := m.Thoughts(); text != "" {
			_, _ = fmt.Fprintf(a.out, "(%s)\n", text)
		}
		calls := m.Calls()
		if text := m.Said(); text != "" && len(calls) == 0 {
			_, _ = fmt.Fprintln(a.out, text)
		}
		for _, c := range calls {
			_, _ = fmt.Fprintf(a.out, "→ %s %s\n", c.Name, c.Arguments)
		}
		if len(entries) > 0 && isHanded(m) {
			entries[0].print(a.out)
			entries = entries[1:]
		}
	}
	if err := handed.print(a.out); err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "\ntokens\tpart\t")
	for _, p := range in.Parts {
		_, _ = fmt.Fprintf(w, "%d\t%s\t\n", p.Tokens, p.Name)
	}
	_, _ = fmt.Fprintf(w, "%d\ttotal of %d usable\t\n", in.Total, in.Usable)
	_, _ = fmt.Fprintf(w, "%d\treply reserve\t\n", in.Reserve)
	_, _ = fmt.Fprintf(w, "%d\twindow\t\n", in.Window)
	_, _ = fmt.Fprintf(w, "%d\talert mark\t\n%d\tflush mark\t\n%d\tflush target\t\n", in.Alert, in.Flush, in.Target)
	count, bytes := hot(st)
	_, _ = fmt.Fprintln(w, "\ncount\tbytes\ttier\t")
	_, _ = fmt.Fprintf(w, "%d\t%d\thot: messages and blocks in main context\t\n", count+len(st.Blocks), bytes)
	_, _ = fmt.Fprintf(w, "%d\t%d\twarm: texts in the index\t\n", sizes.Docs, sizes.ForwardBytes+sizes.PostingBytes)
	_, _ = fmt.Fprintf(w, "%d\t%d\tcold: messages in recall storage\t\n", sizes.Messages, sizes.MessageBytes)
	_, _ = fmt.Fprintf(w, "%d\t%d\tcold: passages in archival storage\t\n", sizes.Passages, sizes.PassageBytes)
	return w.Flush()
}
