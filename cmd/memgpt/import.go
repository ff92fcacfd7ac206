package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt/ingest"
	"memgpt/kernel"
	"memgpt/store"
)

func (a *app) importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "import FILE.jsonl", Short: "append a conversation that was held elsewhere to the log", Args: cobra.ExactArgs(1),
		Long: "import reads lines {\"speaker\",\"text\",\"time\",\"session\"?,\"id\"?} and appends them to the log with their own times.\n" +
			"Lines that were imported before are skipped. - reads standard input.",
		RunE: func(cmd *cobra.Command, args []string) error {
			lines, err := a.readLines(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer a.close()
			return a.importLines(cmd.Context(), args[0], lines)
		},
	}
	a.threadFlag(cmd)
	return cmd
}

func (a *app) importLines(ctx context.Context, name string, lines []kernel.Line) error {
	if err := a.start(ctx); err != nil {
		return err
	}
	agent, th, err := a.agent(ctx)
	if err != nil {
		return err
	}
	var done kernel.Imported
	err = a.host.Do(ctx, agent.Tenant, agent.ID, th.ID, func(ctx context.Context, w *store.Work) error {
		done, err = a.kernel.Import(ctx, w, lines)
		return err
	})
	if err != nil {
		return fmt.Errorf("import %s: %w; %d lines are in, run it again to go on", name, err, done.Added)
	}
	a.say("imported %d messages, skipped %d that were imported before", done.Added, done.Skipped)
	return nil
}

// readLines reads and checks a whole file before anything is imported.
func (a *app) readLines(ctx context.Context, path string) ([]kernel.Line, error) {
	var in io.Reader
	if path == "-" {
		in = stoppable(ctx, a.in)
	} else {
		f, _, err := openInput(ctx, path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	r := bufio.NewReaderSize(in, 1<<16)
	var lines []kernel.Line
	for n := 1; ; n++ {
		raw, err := r.ReadString('\n')
		if n == 1 {
			raw = strings.TrimPrefix(raw, "\ufeff")
		}
		if text := strings.TrimSpace(raw); text != "" {
			line, bad := parseLine(text)
			if bad != nil {
				return nil, fmt.Errorf("import %s: line %d: %w; nothing was imported", path, n, bad)
			}
			lines = append(lines, line)
		}
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("import %s: %w", path, err)
		}
	}
}

func parseLine(text string) (kernel.Line, error) {
	var in struct {
		Speaker string          `json:"speaker"`
		Text    *string         `json:"text"`
		Time    json.RawMessage `json:"time"`
		Session json.RawMessage `json:"session"`
		ID      json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return kernel.Line{}, fmt.Errorf("not a JSON object of the form {\"speaker\",\"text\",\"time\"}: %w", err)
	}
	if in.Text == nil || strings.TrimSpace(*in.Text) == "" {
		return kernel.Line{}, errors.New("it has no text")
	}
	return kernel.Line{Speaker: in.Speaker, Text: *in.Text, Time: parseTime(plain(in.Time)), Session: plain(in.Session),
		ID: plain(in.ID)}, nil
}

// plain returns a JSON string's text, or the number or word as it is written.
func plain(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// parseTime reads a time, zero when it can't be read. One without a zone is taken as UTC.
func parseTime(s string) time.Time {
	t, _ := ingest.ParseTime(strings.TrimSpace(s))
	return t
}
