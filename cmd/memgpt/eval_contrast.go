package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"memgpt/eval"
	"memgpt/model/offline"
)

// contrastFlags are the flags of eval contrast.
type contrastFlags struct {
	window, limit int
	seed          uint64
	asJSON        bool
}

func (a *app) evalContrastCommand() *cobra.Command {
	var f contrastFlags
	cmd := &cobra.Command{
		Use: "contrast", Short: "measure in what paging memory differs from one search a turn", Args: cobra.NoArgs,
		Long: "eval contrast runs an agent that pages its memory and the baseline of one search with the user's words side by side, on\n" +
			"material of its own, and prints a table: when each searches, for what, whether it writes, what it does when a talk is\n" +
			"longer than the window, who decides, and what a search costs that misses. Each row is backed by runs, and says so\n" +
			"where one search is as good or better. The row of a model that forgets to search is there with the stand-in only.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runContrast(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&a.modelFlag, "model", "", "[provider:]model that answers; without it the configured one")
	cmd.Flags().IntVar(&f.window, "window", eval.DefaultWindow, "context window in tokens")
	cmd.Flags().IntVar(&f.limit, "limit", 10, "chains at each level")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "decides which keys are chained")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) runContrast(ctx context.Context, f contrastFlags) (err error) {
	if f.window <= 0 || f.limit <= 0 {
		return errors.New("eval contrast: --window and --limit take numbers above 0")
	}
	done, err := a.evalModel(ctx, f.window)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	dir, err := os.MkdirTemp("", "memgpt-eval-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg := eval.ContrastConfig{Config: eval.Config{Open: temporaryStores(dir), Model: a.model, Window: f.window, Limit: f.limit, Seed: f.seed, Clock: time.Now}}
	if a.model.Capabilities().StandIn {
		if cfg.Forgetful, err = offline.New(offline.Config{ForgetSearch: 1}); err != nil {
			return err
		}
	}
	rep, err := eval.Contrast(ctx, cfg)
	if err != nil {
		return err
	}
	if f.asJSON {
		return rep.WriteJSON(a.out)
	}
	return rep.WriteText(a.out)
}
