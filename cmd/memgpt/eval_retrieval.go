package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"memgpt/eval"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

// retrievalFlags are the flags of eval retrieval.
type retrievalFlags struct {
	docs, embedder, cache  string
	pooled, ablate, asJSON bool
}

func (a *app) evalRetrievalCommand() *cobra.Command {
	var f retrievalFlags
	cmd := &cobra.Command{
		Use: "retrieval FILE...", Short: "measure whether search finds what answers a question", Args: cobra.MinimumNArgs(1),
		Long: "eval retrieval stores the texts of each FILE in a temporary store, asks its questions of the search that agents use,\n" +
			"and reports how well the texts rank that answer them. Your own data is not touched. A file has one store a line,\n" +
			"{\"conv\",\"docs\":[{\"id\",\"text\",\"time\",\"who\",\"session\"?}],\"queries\":[{\"id\",\"q\",\"a\",\"cat\",\"gold\":[ids],\"time\"}]}\n" +
			"Docs of a file with speakers (who) are stored as messages, else as passages.\n\n" +
			"R@k is the mean, over questions with evidence, of the share of it among the first k, in per cent; MRR the mean of\n" +
			"1/rank of the first, 0 beyond the first 20. In brackets stands what 95 of 100 resamples of the questions give. Ranks\n" +
			"are those before the floor under which weak hits are not shown. The times are of the search alone, without the\n" +
			"embedding of its question.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runEvalRetrieval(cmd.Context(), args, f) },
	}
	cmd.Flags().StringVar(&f.docs, "docs", "", "take the texts from this file, by id, and from FILE the questions alone")
	cmd.Flags().BoolVar(&f.pooled, "pooled", false, "put all stores of a file into one")
	cmd.Flags().StringVar(&f.embedder, "embedder", embedBuiltin, "what makes vectors: builtin, none, a directory with a model, or a URL")
	cmd.Flags().BoolVar(&f.ablate, "ablate", false, "measure the search also with parts of it switched off")
	cmd.Flags().StringVar(&f.cache, "cache", "", "directory that keeps vectors from run to run")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) runEvalRetrieval(ctx context.Context, files []string, f retrievalFlags) error {
	rep, err := a.measureRetrieval(ctx, files, f)
	if err != nil {
		return err
	}
	if f.asJSON {
		return rep.WriteJSON(a.out)
	}
	return rep.WriteText(a.out)
}

// measureRetrieval measures on stores in a temporary directory.
func (a *app) measureRetrieval(ctx context.Context, files []string, f retrievalFlags) (rep *eval.RetrievalReport, err error) {
	dir, err := os.MkdirTemp("", "memgpt-eval-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg := eval.RetrievalConfig{Open: temporaryStores(dir), Docs: f.docs, Pooled: f.pooled}
	cache, err := a.evalEmbedder(f.embedder, f.cache)
	if err != nil {
		return nil, err
	}
	if cache != nil {
		defer func() { err = errors.Join(err, cache.Close()) }()
		cfg.Embedder = cache
	}
	meter := a.meter(nil)
	wireRetrieval(&cfg, f.ablate, meter)
	cfg.Progress = meter.progress
	rep, err = eval.Retrieval(ctx, cfg, files)
	a.endMeter(meter)
	return rep, err
}

// wireRetrieval hands in the search that agents have, without the floor and with it, what adds vectors to a store, and
// the variants. The meter is told of vectors.
func wireRetrieval(cfg *eval.RetrievalConfig, ablate bool, m *meter) {
	search := func(e tool.Embedder, off ...string) eval.NewSearch {
		return func(s store.Store) (tool.Searcher, error) {
			c := retrieve.Config{Index: s, Store: s, Off: off}
			if e != nil {
				c.Embedders = []tool.Embedder{e}
			}
			return retrieve.New(c)
		}
	}
	cfg.Search, cfg.Shown = search(cfg.Embedder, "floor"), search(cfg.Embedder)
	if cfg.Embedder != nil {
		cfg.Index = func(ctx context.Context, s store.Store) error { return embedAll(ctx, s, cfg.Embedder, m.embedded) }
	}
	if !ablate {
		return
	}
	for _, part := range retrieve.Parts() {
		if part != "floor" {
			cfg.Variants = append(cfg.Variants, eval.Variant{Name: "without " + part, Search: search(cfg.Embedder, "floor", part)})
		}
	}
	cfg.Variants = append(cfg.Variants, eval.Variant{Name: "words alone", Search: search(nil, "floor")})
}

// embedAll makes all vectors of a store.
func embedAll(ctx context.Context, s store.Store, e tool.Embedder, told func(texts int)) error {
	x, err := retrieve.NewIndexer(retrieve.IndexerConfig{Store: s, Embedder: e})
	if err != nil {
		return err
	}
	for more := true; more; {
		done := 0
		if done, more, err = x.Some(ctx, "", ""); err != nil {
			return err
		}
		told(done)
	}
	return nil
}
