package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/eval/card"
	"memgpt/model/offline"
	"memgpt/model/openai"
	"memgpt/model/retry"
)

// cardFlags are the flags of models test.
type cardFlags struct {
	time        time.Duration
	all, asJSON bool
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
			defer a.close()
			if err := a.configure(); err != nil {
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

// cardModel opens the model that the settings name, bare: how functions are called is what is tested. Where its protocol is
// OpenAI's it adds the same model at a temperature of 0, and the server's own count.
func (a *app) cardModel(ctx context.Context) (cfg card.Config, err error) {
	if a.models, err = a.newModels(nil); err != nil {
		return cfg, err
	}
	cfg.Window = a.cfg.Window
	if slips, ok, err := offline.Parse(a.cfg.Model); ok || err != nil {
		if err == nil {
			cfg.Model, err = offline.New(slips)
		}
		return cfg, err
	}
	t, err := resolve(ctx, a.getenv, a.cfg.Model)
	if err != nil {
		return cfg, err
	}
	if t.note != "" {
		a.say("%s: %s", t.place(), t.note)
	}
	if t.provider == offlineProvider {
		cfg.Model, err = offline.New(offline.Config{})
		return cfg, err
	}
	w, err := a.models.wired(&t)
	if err != nil {
		return cfg, err
	}
	own := &verdicts{place: w.place(&t), say: a.say, known: map[string]string{}}
	if note := w.meet(ctx, own); note != "" {
		a.say("%s: %s", t.place(), note)
	}
	cfg.Model, err = retry.New(retry.Config{Model: w.Model, Breaker: a.models.breaker(&t), Retry: a.models.tellRetry})
	if err != nil || w.openai == nil {
		return cfg, err
	}
	cfg.Count = w.openai.Count
	if cfg.Steady, err = a.steadyModel(&t, false); err == nil {
		cfg.Whole, err = a.steadyModel(&t, true)
	}
	return cfg, err
}

// steadyModel opens a target at a temperature of 0, where whole is set with replies in one piece on the wire too.
func (a *app) steadyModel(t *target, whole bool) (memgpt.Model, error) {
	return openai.New(openai.Config{BaseURL: t.base, APIKey: t.key, Model: t.model, Provider: t.provider, API: a.cfg.API, NoStream: whole,
		Extra: map[string]json.RawMessage{"temperature": json.RawMessage("0")}})
}
