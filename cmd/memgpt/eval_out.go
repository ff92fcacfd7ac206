package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"memgpt"
	"memgpt/eval"
)

// outFlags say where results and answers are kept, and what a run may spend.
type outFlags struct {
	out, calls string
	money      string
	tokens     int64
}

func (f *outFlags) bind(set *pflag.FlagSet) {
	set.StringVar(&f.out, "out", "", "directory for the results: a .jsonl with the questions, and a .json with the report")
	set.StringVar(&f.calls, "call-cache", "", "directory that keeps what models answer, so that a stopped run goes on; without it \"calls\" in that of --out")
	set.StringVar(&f.money, "budget", "", "dollars that this run may spend on calls of models, as 2.50; then it stops and tells how to go on")
	set.Int64Var(&f.tokens, "budget-tokens", 0, "the same in tokens of requests and replies; 0 is no bound")
}

// purse is what the run may spend.
func (f *outFlags) purse() (*eval.Purse, error) {
	if f.tokens < 0 {
		return nil, errors.New("--budget-tokens takes 0 or more; 0 is no bound")
	}
	nano, err := parseBudget(f.money, true)
	if err != nil {
		return nil, fmt.Errorf("--budget is %q: %w", f.money, err)
	}
	return eval.NewPurse(nano, f.tokens), nil
}

// cacheDir is the directory that keeps what models answer; "" is none.
func (f *outFlags) cacheDir() string {
	if f.calls == "" && f.out != "" {
		return filepath.Join(f.out, "calls")
	}
	return f.calls
}

// vectorDir is the directory that keeps vectors; "" is none.
func (f *evalFlags) vectorDir() string {
	if f.cache == "" && f.out != "" {
		return filepath.Join(f.out, "vectors")
	}
	return f.cache
}

// makeOut makes the directory of --out, and finds out before the run whether results can be written into it.
func (f *outFlags) makeOut() error {
	if f.out == "" {
		return nil
	}
	err := os.MkdirAll(f.out, 0o777)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(f.out, ".try-"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("--out: the results could not be written: %w", err)
	}
	return nil
}

// evalModels fills in who answers and who judges, each before the cache of calls where there is one and it is a language model.
// It returns the cache, nil for none, and where the models are.
func (a *app) evalModels(ctx context.Context, f *evalFlags, cfg *eval.Config) (calls *eval.CallCache, places []string, err error) {
	cfg.Model = a.model
	var judge *openedModel
	if f.judge != "" {
		if judge, err = a.models.open(ctx, "", f.judge); err != nil {
			return nil, nil, fmt.Errorf("open the judge: %w", err)
		}
		cfg.Judge = judge.model
	}
	dir := f.cacheDir()
	real := !a.model.Capabilities().StandIn || judge != nil
	if dir != "" && real {
		if calls, err = eval.OpenCallCache(dir); err != nil {
			return nil, nil, err
		}
		if n := calls.Stats().Damaged; n > 0 {
			a.say("%s: %s not whole, as a killed run leaves them; they are asked for again", dir, plural(n, "answer"))
		}
	}
	own, err := a.models.open(ctx, "", a.asked)
	if err != nil {
		return calls, nil, err
	}
	places = []string{a.placeOf(own)}
	if calls != nil && !a.model.Capabilities().StandIn {
		cfg.Model = calls.Model(a.model, places[0])
	}
	if judge != nil {
		places = append(places, a.placeOf(judge))
		if calls != nil {
			cfg.Judge = calls.Model(judge.model, places[1])
		}
	}
	return calls, places, nil
}

// placeOf says where a model is, and what else of the settings decides its answers.
func (a *app) placeOf(o *openedModel) string {
	return strings.Join(append([]string{o.place, a.cfg.Calls, a.cfg.API}, a.cfg.Fallback...), "\n")
}

// saveResults writes the results into the directory of --out.
func (a *app) saveResults(f *evalFlags, name string, rep *eval.Report) error {
	if f.out == "" {
		return nil
	}
	saved, err := eval.SaveResults(f.out, name, rep)
	path := filepath.Join(f.out, name)
	switch {
	case err != nil:
		return err
	case !saved:
		a.say("%s.json is of a whole run and was left as it is", path)
	default:
		a.say("the results are in %s.json and .jsonl", path)
	}
	return nil
}

// sayCalls tells what the calls of models came to.
func (a *app) sayCalls(purse *eval.Purse, calls *eval.CallCache) {
	u, _ := purse.Spent()
	text := plural(u.Calls, "call") + " of models"
	if u.Calls > 0 {
		text += fmt.Sprintf(" for %s, %d tokens in and %d out", costText(u), u.Input, u.Output)
	}
	if calls != nil {
		text += fmt.Sprintf("; %s from the cache", plural(calls.Stats().Hits, "answer"))
	}
	a.say("%s", text)
}

// stopped tells why a run was stopped and how to go on. It returns what is left to be said.
func (f *outFlags) stopped(ctx context.Context, a *app, rep *eval.Report, err error) error {
	why, spent := "", new(memgpt.Error)
	switch {
	case ctx.Err() != nil:
		why = "it was interrupted"
	case memgpt.CodeOf(err) == memgpt.CodeBudget:
		if why = err.Error(); errors.As(err, &spent) {
			why = spent.Text
		}
	case errors.Is(err, eval.ErrNoPrice):
		return fmt.Errorf("%w (--budget-tokens N; MEMGPT_PRICES names a file with prices)", err)
	default:
		return err
	}
	done := "no question is done"
	if rep != nil {
		done = fmt.Sprintf("%d of %d questions are done", rep.Done, rep.Planned)
	}
	a.say("stopped: %s; %s", why, done)
	if f.cacheDir() != "" {
		a.say("the same command goes on from there: what was answered is in %s and costs nothing again", f.cacheDir())
	} else {
		a.say("the answers are not kept; with --out DIR or --call-cache DIR the same command would go on from there")
	}
	return errQuiet
}
