package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"memgpt/config"
	"memgpt/eval/card"
	"memgpt/model/offline"
	"memgpt/model/openai"
)

// cardFlags are the flags of models test.
type cardFlags struct {
	time        time.Duration
	all, asJSON bool
}

// modelsCardParent holds the commands about models.
func (a *app) modelsCardParent() *cobra.Command {
	cmd := &cobra.Command{Use: "models", Short: "find out about models"}
	cmd.AddCommand(a.modelsTestCommand())
	return cmd
}

func (a *app) modelsTestCommand() *cobra.Command {
	var f cardFlags
	cmd := &cobra.Command{
		Use: "test [MODEL]", Short: "find out in two minutes whether a model can run an agent", Args: cobra.MaximumNArgs(1),
		Long: "test asks a model small things and prints a report card: whether it speaks, calls functions (several at once, and where\n" +
			"a call is required), does a refused call again as it is told, streams what it says, counts tokens as we do, writes down\n" +
			"what it is asked to keep, and finds a fact again that has left its context. Your own data is not touched.\n\n" +
			"What an agent can't do without and the model can't do unaided is tried again with help: functions described in the\n" +
			"prompt (MEMGPT_CALLS=prompted), replies held to a schema (MEMGPT_CALLS=constrained), and memory looked up by the\n" +
			"system (memgpt agents set NAME prefetch=on). The figures stand side by side, k of n tries, and the verdict says which\n" +
			"help makes up for what.\n\n" +
			"Without MODEL it is the configured model. It costs about 40 short requests, more with helps. A slow model gets a\n" +
			"partial card; --time allows for more.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if a.cfg, err = config.Read(a.getenv); err != nil {
				return err
			}
			if len(args) > 0 {
				a.cfg.Model = args[0]
			}
			return a.testModel(cmd.Context(), f)
		},
	}
	cmd.Flags().DurationVar(&f.time, "time", card.DefaultTime, "how long it may take, as 5m")
	cmd.Flags().BoolVar(&f.all, "all", false, "try every help, also where the model needs none")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

// testModel prints the report card of the model that the settings name.
func (a *app) testModel(ctx context.Context, f cardFlags) (err error) {
	if f.time <= 0 {
		return errors.New("models test: --time takes a duration above 0, such as 5m")
	}
	cfg, err := a.cardModel(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "memgpt-card-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cfg.Open, cfg.Time, cfg.All = temporaryStores(dir), f.time, f.all
	start, shown := time.Now(), false
	cfg.Progress = func(check string, way card.Way, try int) {
		shown = true
		_, _ = fmt.Fprintf(a.err, "\r%-70s", fmt.Sprintf("%.0f of %.0f s: %s, %s, try %d", time.Since(start).Seconds(), f.time.Seconds(), check, way, try))
	}
	made, err := card.Run(ctx, cfg)
	if shown {
		a.say("")
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return made.WriteJSON(a.out)
	}
	return made.WriteText(a.out)
}

// cardModel opens the model that the settings name, bare, and where its server is known, the same at a temperature of 0
// and the server's own count.
func (a *app) cardModel(ctx context.Context) (cfg card.Config, err error) {
	if cfg.Model, err = a.pickModel(ctx); err != nil {
		return cfg, err
	}
	cfg.Window = a.cfg.Window
	if _, ok, err := offline.Parse(a.cfg.Model); ok || err != nil || cfg.Model.Capabilities().StandIn {
		return cfg, err
	}
	found, err := openai.Discover(ctx, openai.DiscoverConfig{Env: a.getenv, Model: a.cfg.Model})
	if err != nil || found == nil {
		return cfg, err
	}
	base := found.Config()
	counting, err := openai.New(base)
	if err != nil {
		return cfg, err
	}
	base.Extra = map[string]json.RawMessage{"temperature": json.RawMessage("0")}
	steady, err := openai.New(base)
	if err != nil {
		return cfg, err
	}
	base.NoStream = true
	whole, err := openai.New(base)
	if err != nil {
		return cfg, err
	}
	cfg.Steady, cfg.Whole, cfg.Count = steady, whole, counting.Count
	return cfg, nil
}
