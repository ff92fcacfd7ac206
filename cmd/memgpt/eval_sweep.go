package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memgpt/eval"
	"memgpt/eval/chart"
)

// sweepFlags are the flags of eval sweep beside those of eval.
type sweepFlags struct {
	vary  []string
	grid  bool
	runs  int
	chart string
}

// sweepMost is how many runs a sweep makes unless their number is named.
const sweepMost = 16

// sweepStandard is what is varied where nothing else is said.
func sweepStandard() []string {
	return []string{"alert=.5,.7,.9", "target=.3,.5,.7", "page=3,5,10", "summary=on,off", "protocol=memgpt,native"}
}

const sweepLong = `eval sweep runs a suite again and again with other policies of its agents, with the same questions and the same seed, and
prints what each policy costs and brings: evidence in context, held against the run with the default policies question by
question, and tokens. One policy at a time is varied around the defaults (or around --policy); --grid runs all combinations.
All other flags are those of eval; --out keeps each run's results under a name of its own.

Which policies can act depends on the set-up, and a policy that had nothing to act on is said to make "no difference". A
question in a fresh conversation seldom fills the queue: alert, flush, target and summary act where the material is held as a
conversation (--live, suites of conversations), or where one turn reads much in a small window (nested-kv and relay at 2,048 to
4,096 tokens). page acts wherever the agent searches, prefetch in --mode prefetch and both.`

func (a *app) evalSweepCommand() *cobra.Command {
	var f evalFlags
	var s sweepFlags
	cmd := &cobra.Command{
		Use: "sweep SUITE --data PATH", Short: "vary the policies of agents, and see what each costs and brings", Long: sweepLong,
		Args: cobra.ExactArgs(1), ValidArgs: eval.Suites(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (args[0] == eval.SuiteNestedKV || args[0] == eval.SuiteRelay) && !cmd.Flags().Changed("embedder") {
				f.embedder = embedNone // keys have no meaning
			}
			return a.runSweep(cmd.Context(), args[0], f, s)
		},
	}
	a.bindEval(cmd, &f)
	set := cmd.Flags()
	set.StringArrayVar(&s.vary, "vary", nil, "policy and its values, as alert=.5,.7,.9; may be repeated; without it "+strings.Join(sweepStandard(), " "))
	set.BoolVar(&s.grid, "grid", false, "run all combinations of what --vary names")
	set.IntVar(&s.runs, "runs", 0, fmt.Sprintf("the number of runs, named to make more than %d", sweepMost))
	set.StringVar(&s.chart, "chart", "", "draw tokens against evidence as NAME.svg and NAME.png")
	if err := cmd.MarkFlagRequired("data"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// sweepPoint is a run to be made.
type sweepPoint struct{ factor, value, policy string }

func (a *app) runSweep(ctx context.Context, name string, f evalFlags, s sweepFlags) (err error) {
	if err := f.check(); err != nil {
		return fmt.Errorf("eval sweep %s: %w", name, err)
	}
	points, err := s.points(f.policy)
	if err != nil {
		return fmt.Errorf("eval sweep %s: %w", name, err)
	}
	suite, err := eval.LoadSeeded(name, f.data, f.pooled, f.seed)
	if err != nil {
		return err
	}
	if f.vectorDir() == "" { // the vectors are the same in all runs
		if f.cache, err = os.MkdirTemp("", "memgpt-sweep-"); err != nil {
			return err
		}
		defer func(dir string) { err = errors.Join(err, os.RemoveAll(dir)) }(f.cache)
	}
	done, err := a.evalModel(ctx, f.window)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	runs, err := a.sweep(ctx, suite, f, points)
	if err != nil {
		return err
	}
	if err := eval.JudgeSweep(runs[0].Report, runs[1:]); err != nil {
		return err
	}
	if s.chart != "" {
		if err := sweepChart(runs).Write(s.chart); err != nil {
			return err
		}
	}
	if f.asJSON {
		return eval.WriteSweepJSON(a.out, runs)
	}
	return eval.WriteSweep(a.out, runs)
}

// sweep makes the runs, one after another.
func (a *app) sweep(ctx context.Context, suite *eval.Suite, f evalFlags, points []sweepPoint) (runs []eval.SweepRun, err error) {
	for i, p := range points {
		a.say("run %d of %d: %s", i+1, len(points), firstWord(p.policy, "default policies"))
		f.policy = p.policy
		rep, err := a.measure(ctx, suite, f)
		if err != nil {
			return nil, fmt.Errorf("run %d of %d, with %s: %w", i+1, len(points), firstWord(p.policy, "default policies"), err)
		}
		runs = append(runs, eval.SweepRun{Factor: p.factor, Value: p.value, Report: rep})
	}
	return runs, nil
}

func firstWord(text, empty string) string {
	if text == "" {
		return empty
	}
	return text
}

// sweepFactor is a policy with the values that it takes.
type sweepFactor struct {
	name   string
	values []string
}

// points returns the runs of a sweep around policies; the first is with those alone. A value that those have already is not
// run twice.
func (s *sweepFlags) points(policy string) ([]sweepPoint, error) {
	base, err := parsePolicy(policy)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	factors, err := s.factors()
	if err != nil {
		return nil, err
	}
	points := []sweepPoint{{"", "", policy}}
	add := func(p sweepPoint) error {
		made, err := parsePolicy(p.policy)
		if err != nil {
			return fmt.Errorf("--vary: %w", err)
		}
		if made.String() != base.String() {
			points = append(points, p)
		}
		return nil
	}
	var errs []error
	if s.grid {
		for _, combined := range combinations(factors) {
			errs = append(errs, add(sweepPoint{"", combined, withPolicy(policy, combined)}))
		}
	} else {
		for _, f := range factors {
			for _, v := range f.values {
				errs = append(errs, add(sweepPoint{f.name, v, withPolicy(policy, f.name+"="+v)}))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return points, s.checkRuns(len(points))
}

func (s *sweepFlags) checkRuns(n int) error {
	switch {
	case n < 2:
		return errors.New("--vary names no value but those of the default policies; name others")
	case s.runs > 0 && s.runs != n:
		return fmt.Errorf("--runs says %d, and what is varied makes %d runs of the suite; name that number if you mean them", s.runs, n)
	case s.runs == 0 && n > sweepMost:
		return fmt.Errorf("what is varied makes %d runs of the suite, more than %d; vary less, leave --grid out, or say --runs %d if you mean them", n, sweepMost, n)
	case s.runs < 0:
		return errors.New("--runs takes a number above 0")
	}
	return nil
}

// factors reads what is varied.
func (s *sweepFlags) factors() (list []sweepFactor, err error) {
	vary := s.vary
	if len(vary) == 0 {
		vary = sweepStandard()
	}
	for _, text := range vary {
		name, values, ok := strings.Cut(text, "=")
		f := sweepFactor{name: strings.TrimSpace(name)}
		for v := range strings.SplitSeq(values, ",") {
			if v = strings.TrimSpace(v); v != "" && !slices.Contains(f.values, v) {
				f.values = append(f.values, v)
			}
		}
		switch _, known := policySetting(f.name); {
		case !known:
			return nil, fmt.Errorf("--vary %s: there is no policy %q; the policies are %s", text, f.name, policyNames())
		case !ok || len(f.values) == 0:
			return nil, fmt.Errorf("--vary %s: there are no values; write it as alert=.5,.7,.9", text)
		case slices.ContainsFunc(list, func(g sweepFactor) bool { return g.name == f.name }):
			return nil, fmt.Errorf("--vary %s: %s is varied twice; name all its values at once", text, f.name)
		}
		list = append(list, f)
	}
	return list, nil
}

// combinations are all choices of one value each, as policies.
func combinations(factors []sweepFactor) []string {
	list := []string{""}
	for _, f := range factors {
		var longer []string
		for _, head := range list {
			for _, v := range f.values {
				longer = append(longer, strings.TrimPrefix(head+","+f.name+"="+v, ","))
			}
		}
		list = longer
	}
	return list
}

// withPolicy puts policies in place of those of a list, or at its end.
func withPolicy(policy, others string) string {
	var list []string
	for part := range strings.SplitSeq(policy+","+others, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok && strings.TrimSpace(part) == "" {
			continue
		}
		key = strings.TrimSpace(key) + "="
		list = slices.DeleteFunc(list, func(old string) bool { return strings.HasPrefix(old, key) })
		list = append(list, key+strings.TrimSpace(value))
	}
	return strings.Join(list, ",")
}

// sweepChart draws what each run costs against what it brings.
func sweepChart(runs []eval.SweepRun) *chart.Chart {
	base, low := runs[0].Report, 100.0
	c := &chart.Chart{Title: fmt.Sprintf("%s: tokens against evidence, by policy", base.Suite), X: "tokens of all requests, a question",
		Y:    "evidence in context, %",
		Note: fmt.Sprintf("%s, mode %s, window %d, %d questions in each run; bars: 95 of 100 resamples", base.Model, base.Mode, base.Window, base.N)}
	for _, r := range runs {
		name, label := r.Factor, r.Value
		if r.Value == "" {
			name, label = "default", ""
		} else if name == "" {
			name = "combination"
		}
		in := r.Report.Intervals["evidence_in_context"]
		low = min(low, r.Report.Evidence, in[0])
		point := chart.Point{X: r.Report.Tokens, Y: r.Report.Evidence, Low: in[0], High: in[1], Label: label}
		if i := slices.IndexFunc(c.Series, func(s chart.Series) bool { return s.Name == name }); i >= 0 {
			c.Series[i].Points = append(c.Series[i].Points, point)
		} else {
			c.Series = append(c.Series, chart.Series{Name: name, Points: []chart.Point{point}})
		}
	}
	c.YMin, c.YMax = max(0, math.Ceil(low/10)*10-10), 100 // no share is above it
	return c
}
