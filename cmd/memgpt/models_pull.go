package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"memgpt/model/ollama"
)

func (a *app) modelsPull() *cobra.Command {
	return &cobra.Command{
		Use: "pull NAME", Short: "have Ollama load a model down", Args: cobra.ExactArgs(1),
		Long: "pull has Ollama (on this machine, or at OLLAMA_HOST) load a model down, which may be many gigabytes. No other command\n" +
			"does. An interrupted one is gone on with by the next.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.pull(cmd.Context(), args[0]) },
	}
}

func (a *app) pull(ctx context.Context, name string) error {
	if p, model, named := splitModel(name); named {
		if p.name == ollamaProvider {
			name = model
		} else if strings.HasPrefix(name, p.name+":") && !p.local && p.key(a.getenv) != "" {
			return fmt.Errorf("pull %s: only Ollama's models are pulled", name)
		}
	}
	if err := a.configure(); err != nil {
		return err
	}
	p, _ := providerNamed(ollamaProvider)
	base, key := p.address(a.getenv)
	limits := a.cfg.Timeouts
	m, err := ollama.New(ollama.Config{BaseURL: base, APIKey: key, Connect: limits.Connect, First: limits.First})
	if err != nil {
		return fmt.Errorf("OLLAMA_HOST: %w", err)
	}
	defer func() { _ = m.Close() }()
	f, isFile := a.err.(*os.File)
	bar := &pullBar{app: a, live: isFile && term.IsTerminal(int(f.Fd()))}
	err = m.Pull(ctx, name, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	a.say("%s is there; use it as MEMGPT_MODEL=ollama:%s", name, name)
	return nil
}

// pullBar shows how far a download is: one line that is written over on a terminal, a line a tenth elsewhere.
type pullBar struct {
	app  *app
	live bool
	last string
	open bool // a line is under way
}

// show takes in a piece of progress.
func (b *pullBar) show(p ollama.Progress) {
	text, step := pullText(p), p.Status
	if p.Total > 0 {
		step = fmt.Sprint(p.Digest, p.Completed*10/p.Total)
	}
	switch {
	case b.live:
		_, _ = fmt.Fprintf(b.app.err, "\r\x1b[K%s", printable(text))
		b.open = true
	case step != b.last:
		b.app.say("%s", text)
	}
	b.last = step
}

func (b *pullBar) end() {
	if b.open {
		b.app.say("")
	}
}

// pullWidth is the width of the bar in characters.
const pullWidth = 30

// pullText is a piece of progress for a person.
func pullText(p ollama.Progress) string {
	if p.Total <= 0 {
		return p.Status
	}
	done := min(max(p.Completed, 0), p.Total)
	filled := int(done * pullWidth / p.Total)
	return fmt.Sprintf("[%s%s] %3d%%  %d of %d MB  %s", strings.Repeat("#", filled), strings.Repeat(".", pullWidth-filled),
		done*100/p.Total, done>>20, p.Total>>20, p.Status)
}
