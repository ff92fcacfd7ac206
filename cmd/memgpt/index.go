package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/embed/e5"
	"memgpt/embed/openai"
	"memgpt/retrieve"
	"memgpt/tool"
)

// Names of embedders that are no place.
const (
	embedBuiltin = "builtin"
	embedNone    = "none"
)

// openEmbedders returns what turns texts to vectors: the wanted one, and after it the built-in one, whose vectors still
// serve while the wanted one's are being made. A name is builtin, none, a folder with a model file, or the base URL of an
// OpenAI-compatible server, with the model behind a #.
func openEmbedders(name, key string) ([]tool.Embedder, error) {
	if name == embedNone {
		return nil, nil
	}
	builtin, err := e5.New(e5.Config{})
	if err != nil || name == "" || name == embedBuiltin {
		return []tool.Embedder{builtin}, err
	}
	var wanted tool.Embedder
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		base, model, _ := strings.Cut(name, "#")
		if model == "" {
			return nil, fmt.Errorf("embedder %s: name the model too, as %s#MODEL", name, base)
		}
		wanted, err = openai.New(openai.Config{BaseURL: base, Model: model, APIKey: key})
	} else {
		wanted, err = e5.New(e5.Config{Dir: name})
	}
	if err != nil {
		return nil, fmt.Errorf("embedder %s: %w", name, err)
	}
	return []tool.Embedder{wanted, builtin}, nil
}

// newIndexer returns what makes the vectors; nil where there are to be none.
func (a *app) newIndexer() (*retrieve.Indexer, error) {
	if len(a.embedders) == 0 {
		return nil, nil
	}
	cfg := retrieve.IndexerConfig{Store: a.store, Embedder: a.embedders[0], Retire: true, Report: func(err error) { a.say("%v", err) }}
	if a.host != nil {
		cfg.Busy = a.host.Busy
	}
	return retrieve.NewIndexer(cfg)
}

// embedLimit bounds what a command spends on vectors after its work is done: a person waits for the prompt.
const embedLimit = 300 * time.Millisecond

// embedOwn makes vectors of what a command stored, as far as time allows; the rest is left to the next process.
func (a *app) embedOwn(ctx context.Context, agent memgpt.Agent) {
	x, err := a.newIndexer()
	if err != nil || x == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, embedLimit)
	defer cancel()
	for more := true; more && err == nil; {
		_, more, err = x.Some(ctx, agent.Tenant, agent.ID)
	}
}

// embedBehind makes vectors behind the work of a process that stays, until stop is called.
func (a *app) embedBehind(ctx context.Context) (stop func(), err error) {
	x, err := a.newIndexer()
	if err != nil || x == nil {
		return func() {}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = x.Run(ctx) })
	return func() { cancel(); running.Wait() }, nil
}

func (a *app) indexCommand() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "index", Short: "show how far the vectors of texts are, or make them all", Args: cobra.NoArgs,
		Long: "Texts are found by their words at once, and by their meaning when they have a vector. Vectors are made in the background;\n" +
			"index shows how many are missing, and --wait makes them now.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer a.close()
			if err := a.open(cmd.Context()); err != nil {
				return err
			}
			x, err := a.newIndexer()
			if err != nil {
				return err
			}
			if x == nil {
				return errors.New("texts get no vectors: MEMGPT_EMBEDDER is none")
			}
			return a.index(cmd.Context(), x, wait)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "make all vectors that are missing")
	return cmd
}

func (a *app) index(ctx context.Context, x *retrieve.Indexer, wait bool) error {
	if !wait {
		p, err := x.Progress(ctx)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "model %s: %d texts of %d agents and archives wait for a vector\n", a.embedders[0].Model(), p.Docs-p.Done, p.Owners)
		return err
	}
	total, shown := 0, time.Now()
	for more := true; more; {
		var n int
		var err error
		if n, more, err = x.Some(ctx, "", ""); err != nil {
			return err
		}
		total += n
		if time.Since(shown) < time.Second {
			continue
		}
		shown = time.Now()
		p, err := x.Progress(ctx)
		if err != nil {
			return err
		}
		a.say("%d texts done, %d left, %.0f a second", total, p.Docs-p.Done, p.Rate)
	}
	_, err := fmt.Fprintf(a.out, "model %s: %d texts got a vector, none is left\n", a.embedders[0].Model(), total)
	return err
}
