package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt/config"
	"memgpt/eval"
	"memgpt/store"
	"memgpt/store/sqlite"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	data, model             string
	window, limit, parallel int
	noSearch, asJSON        bool
}

func (a *app) evalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use: "eval " + strings.Join(eval.Suites(), "|") + " --data PATH", Short: "measure whether what is asked for reaches main context",
		Args: cobra.ExactArgs(1), ValidArgs: eval.Suites(),
		Long: "eval loads a benchmark's material into the memory of agents of its own, in a temporary store, asks its questions and\n" +
			"reports in how many of them the evidence reached main context. Your own data is not touched.\n\n" +
			"  locomo     long conversations, imported; PATH is a file with one conversation a line,\n" +
			"             {\"conv\",\"docs\":[{\"id\",\"text\",\"time\",\"who\",\"session\"?}],\"queries\":[{\"id\",\"q\",\"a\",\"cat\",\"gold\":[ids],\"time\"}]}\n" +
			"  nested-kv  the paper's key-value pairs whose values are keys; PATH is the directory with its files\n\n" +
			"Each question is asked in a new conversation, and none can see another. evidence_in_context is the mean share of a\n" +
			"question's evidence whose whole text stood in a request of its turn (of a text that was never shown whole: the piece\n" +
			"with the expected answer), any and all the share of questions of which some or all evidence did. by_category holds\n" +
			"evidence_in_context; by_level the share of right answers: the last value was said, and every pair of the chain was in\n" +
			"context. Shares are in per cent. Questions that name no evidence are not asked and counted apart. --limit takes its\n" +
			"questions evenly from all; in nested-kv it holds for each level.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runEval(cmd.Context(), args[0], f) },
	}
	cmd.Flags().StringVar(&f.data, "data", "", "file or directory with the suite's data")
	cmd.Flags().StringVar(&f.model, "model", "", "model that answers, or offline; without it the configured one")
	cmd.Flags().IntVar(&f.window, "window", eval.DefaultWindow, "context window in tokens")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "how many questions are asked; 0 is all")
	cmd.Flags().IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "how many questions are asked at once; the results are the same")
	cmd.Flags().BoolVar(&f.noSearch, "no-search", false, "take the search functions away from the model, for comparison")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	if err := cmd.MarkFlagRequired("data"); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.AddCommand(a.evalRetrievalCommand())
	return cmd
}

func (a *app) runEval(ctx context.Context, name string, f evalFlags) error {
	if f.window <= 0 || f.limit < 0 || f.parallel <= 0 {
		return fmt.Errorf("eval %s: --window and --parallel take numbers above 0, --limit 0 or more", name)
	}
	suite, err := eval.Load(name, f.data)
	if err != nil {
		return err
	}
	if a.cfg, err = config.Read(a.getenv); err != nil {
		return err
	}
	if f.model != "" {
		a.cfg.Model = f.model
	}
	a.cfg.Window = f.window
	if a.model, err = a.pickModel(ctx); err != nil {
		return err
	}
	a.banner()
	rep, err := a.measure(ctx, suite, f)
	if err != nil {
		return err
	}
	if f.asJSON {
		return rep.WriteJSON(a.out)
	}
	return rep.WriteText(a.out)
}

// measure runs the suite on stores in a temporary directory.
func (a *app) measure(ctx context.Context, suite *eval.Suite, f evalFlags) (rep *eval.Report, err error) {
	dir, err := os.MkdirTemp("", "memgpt-eval-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	start := time.Now()
	meter := &meter{app: a, last: start}
	rep, err = eval.Run(ctx, eval.Config{Open: temporaryStores(dir), Model: a.model, Window: f.window, Limit: f.limit,
		NoSearch: f.noSearch, Parallel: f.parallel, Progress: meter.progress}, suite)
	meter.end()
	if err == nil {
		rep.Seconds = float64(time.Since(start).Round(10*time.Millisecond)) / float64(time.Second)
	}
	return rep, err
}

// temporaryStores makes stores under a directory. They need not outlive a crash, so nothing waits for the disk.
func temporaryStores(dir string) func(context.Context) (store.Store, func() error, error) {
	return func(ctx context.Context) (store.Store, func() error, error) {
		own, err := os.MkdirTemp(dir, "")
		if err != nil {
			return nil, nil, err
		}
		s, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(own, "memgpt.db"), Unsafe: true})
		if err != nil {
			return nil, nil, err
		}
		return s, func() error { return errors.Join(s.Close(), os.RemoveAll(own)) }, nil
	}
}

// meter shows how far a run is, in one line on standard error.
type meter struct {
	app   *app
	last  time.Time
	shown bool
}

// progress shows a line when the last one is a second old, and at the end. Calls come one at a time.
func (m *meter) progress(done, total int) {
	if now := time.Now(); done == total || now.Sub(m.last) >= time.Second {
		m.last, m.shown = now, true
		_, _ = fmt.Fprintf(m.app.err, "\r%d of %d questions", done, total)
	}
}

func (m *meter) end() {
	if m.shown {
		m.app.say("")
	}
}
