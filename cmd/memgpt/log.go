package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/store"
)

// logLine is one message as log --json prints it. Text is what was said, without envelope.
type logLine struct {
	ID       string      `json:"id"`
	Seq      int64       `json:"seq"`
	Turn     string      `json:"turn"`
	Step     int         `json:"step"`
	Time     *string     `json:"time"` // null when unknown
	Role     memgpt.Role `json:"role"`
	Name     string      `json:"name,omitempty"`
	Type     string      `json:"type,omitempty"`
	Text     string      `json:"text"`
	Thought  string      `json:"thought,omitempty"`
	Calls    []logCall   `json:"calls,omitempty"`
	ResultOf string      `json:"result_of,omitempty"`
	Failed   bool        `json:"failed,omitempty"`
}

type logCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func lineOf(e *memgpt.Entry) logLine {
	m := &e.Message
	l := logLine{ID: e.ID, Seq: e.Seq, Turn: e.Turn, Step: e.Step, Role: m.Role, Name: m.Author, Text: m.Said(),
		Thought: m.Thoughts(), Time: timeOf(e.Time)}
	if m.Role == memgpt.RoleSystem {
		l.Type = string(m.Type)
	}
	for _, c := range m.Calls() {
		l.Calls = append(l.Calls, logCall{c.ID, c.Name, json.RawMessage(c.Arguments)})
	}
	if res, ok := m.Result(); ok {
		l.ResultOf, l.Failed = res.CallID, res.Failed
	}
	return l
}

func timeOf(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.Format(time.RFC3339)
	return &s
}

func (a *app) logCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "log", Short: "print every message of a conversation, the oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			agent, err := a.known(cmd.Context())
			if err != nil {
				return err
			}
			th, err := a.thread(cmd.Context(), agent)
			if err != nil {
				return err
			}
			return a.eachEntry(cmd, th, func(e *memgpt.Entry) error {
				e.Time = inZone(e.Time, agent)
				if asJSON {
					return writeJSON(a.out, lineOf(e))
				}
				_, err := fmt.Fprintln(a.out, plainLine(e))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	a.threadFlag(cmd)
	return cmd
}

func inZone(t time.Time, agent memgpt.Agent) time.Time {
	if t.IsZero() {
		return t
	}
	return t.In(agent.Location())
}

// logPage is how many entries are read at a time.
const logPage = 1000

func (a *app) eachEntry(cmd *cobra.Command, th memgpt.Thread, do func(*memgpt.Entry) error) error {
	for after := int64(0); ; {
		entries, err := a.store.Entries(cmd.Context(), store.EntryRange{Tenant: th.Tenant, Thread: th.ID, After: after, Limit: logPage})
		if err != nil || len(entries) == 0 {
			return err
		}
		for i := range entries {
			if err := do(&entries[i]); err != nil {
				return err
			}
			after = entries[i].Seq
		}
	}
}

// plainLine renders an entry for a person.
func plainLine(e *memgpt.Entry) string {
	l := lineOf(e)
	at := "(no time)"
	if l.Time != nil {
		at = e.Time.Format("2006-01-02 15:04:05 -07:00")
	}
	who := string(l.Role)
	if l.Name != "" {
		who = l.Name
	} else if l.Type != "" {
		who = l.Type
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%6d  %s  %s:", l.Seq, at, who)
	if l.Thought != "" {
		b.WriteString(" (" + l.Thought + ")")
	}
	for _, c := range l.Calls {
		if c.Name != memgpt.FuncSendMessage {
			fmt.Fprintf(&b, " [%s %s]", c.Name, c.Arguments)
		}
	}
	if l.Text != "" {
		b.WriteString(" " + strings.ReplaceAll(l.Text, "\n", "\n        "))
	}
	return b.String()
}
