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
	data, model, embedder, mode, cache string
	window, limit, parallel, budget    int
	k, summaryWords                    int
	seed                               uint64
	noSearch, pooled, asJSON           bool
}

func (a *app) evalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use: "eval " + strings.Join(eval.Suites(), "|") + " --data PATH", Short: "measure whether what is asked for reaches main context",
		Args: cobra.ExactArgs(1), ValidArgs: eval.Suites(),
		Long: "eval loads a benchmark's material into the memory of agents of its own, in a temporary store, asks its questions and\n" +
			"reports in how many of them the evidence reached main context. Your own data is not touched.\n\n" +
			"  locomo, madial, dmr\n" +
			"             conversations, imported; PATH is a file with one conversation a line, each of an agent of its own,\n" +
			"             {\"conv\",\"docs\":[{\"id\",\"text\",\"time\",\"who\",\"session\"?}],\"queries\":[{\"id\",\"q\",\"a\",\"cat\",\"gold\":[ids],\"time\"}]}\n" +
			"  nested-kv  the paper's key-value pairs whose values are keys; PATH is the directory with its files\n\n" +
			"Each question is asked in a new conversation, and none can see another. evidence_in_context is the mean share of a\n" +
			"question's evidence whose whole text stood in a request of its turn (of a text that was never shown whole: the piece\n" +
			"with the expected answer), any and all the share of questions of which some or all evidence did. by_category holds\n" +
			"evidence_in_context; by_level the share of right answers: the last value was said, and every pair of the chain was in\n" +
			"context. Shares are in per cent. Questions that name no evidence are not asked and counted apart. --limit takes its\n" +
			"questions evenly from all; in nested-kv it holds for each level. tokens are those of all requests of a question.\n\n" +
			"--mode says who answers. Where the system looks into memory, prefetch holds for how many questions it handed something\n" +
			"over (turns), what that cost and the evidence in it; floors what would be left if it spoke only where its best hit\n" +
			"scores high.\n\n" +
			"--model offline:forget_search=.3,bad_query=.1,stop_paging=.2,forget_save=.5,seed=7 makes the stand-in slip in that\n" +
			"share of its turns, always the same ones for a seed; MEMGPT_MODEL takes such names too.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == eval.SuiteNestedKV && !cmd.Flags().Changed("embedder") {
				f.embedder = embedNone // keys have no meaning
			}
			if f.noSearch && !cmd.Flags().Changed("mode") {
				f.mode = string(eval.ModeNone)
			}
			return a.runEval(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.data, "data", "", "file or directory with the suite's data")
	cmd.Flags().StringVar(&f.model, "model", "", "model that answers, or offline, also with slips; without it the configured one")
	cmd.Flags().StringVar(&f.embedder, "embedder", embedBuiltin, "what finds by meaning: builtin, none (always for nested-kv unless named), a directory or a URL")
	cmd.Flags().IntVar(&f.window, "window", eval.DefaultWindow, "context window in tokens")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "how many questions are asked; 0 is all")
	cmd.Flags().IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "how many questions are asked at once; the results are the same")
	cmd.Flags().StringVar(&f.mode, "mode", string(eval.ModeMemGPT), "who answers: an agent whose memory the model pages (memgpt), the system looks into\n"+
		"(prefetch, the model has no search functions), both, or none; or a baseline with one prompt: full (all, cut at the end),\n"+
		"sliding (the newest), summary (recursive), rag (the first hits of one search), oracle (the evidence)")
	cmd.Flags().IntVar(&f.k, "k", 0, fmt.Sprintf("hits that --mode rag takes; 0 is %d", eval.DefaultK))
	cmd.Flags().IntVar(&f.summaryWords, "summary-words", 0, "words of the summary of --mode summary; 0 is 100 for dmr, else what a quarter of the window holds")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "decides what a suite draws by chance; a stand-in's slips have a seed of their own, in its name")
	cmd.Flags().IntVar(&f.budget, "prefetch-budget", 0, "tokens that the system may hand over for a question; 0 is the default of agents")
	cmd.Flags().StringVar(&f.cache, "cache", "", "directory that keeps vectors from run to run")
	cmd.Flags().BoolVar(&f.pooled, "pooled", false, "one agent remembers all lines of the file, where else each line has its own")
	cmd.Flags().BoolVar(&f.noSearch, "no-search", false, "the same as --mode none")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	if err := cmd.MarkFlagRequired("data"); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.AddCommand(a.evalRetrievalCommand())
	return cmd
}

// check refuses flags that can't be obeyed.
func (f *evalFlags) check() error {
	mode, err := eval.ParseMode(f.mode)
	switch {
	case err != nil:
		return err
	case f.window <= 0 || f.parallel <= 0 || f.limit < 0 || f.budget < 0:
		return errors.New("--window and --parallel take numbers above 0, --limit and --prefetch-budget 0 or more")
	case f.noSearch && mode != eval.ModeNone:
		return fmt.Errorf("--no-search is --mode none, and --mode says %s; leave one out", mode)
	case f.k < 0 || f.summaryWords < 0:
		return errors.New("--k and --summary-words take 0 or more; 0 is the default")
	case f.k > 0 && mode != eval.ModeRAG:
		return fmt.Errorf("--k is how many hits --mode rag takes, and --mode is %s", mode)
	case f.summaryWords > 0 && mode != eval.ModeSummary:
		return fmt.Errorf("--summary-words bounds the summary of --mode summary, and --mode is %s", mode)
	case f.budget > 0 && mode != eval.ModePrefetch && mode != eval.ModeBoth:
		return fmt.Errorf("--prefetch-budget: nothing is handed over in --mode %s; take --mode prefetch or both", mode)
	}
	return nil
}

func (a *app) runEval(ctx context.Context, name string, f evalFlags) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("eval %s: %w", name, err)
	}
	suite, err := eval.Load(name, f.data, f.pooled)
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
	cfg := eval.Config{Open: temporaryStores(dir), Model: a.model, Window: f.window, Limit: f.limit, Mode: eval.Mode(f.mode),
		Budget: f.budget, Parallel: f.parallel, Progress: meter.progress, K: f.k, SummaryWords: f.summaryWords, Seed: f.seed,
		Clock: time.Now}
	cache, err := a.evalEmbedder(f.embedder, f.cache)
	if err != nil {
		return nil, err
	}
	if cache != nil && cfg.Mode.Looks() {
		defer func() { err = errors.Join(err, cache.Close()) }()
		cfg.Embedder = cache
		cfg.Index = func(ctx context.Context, s store.Store) error { return embedAll(ctx, s, cache) }
	}
	rep, err = eval.Run(ctx, cfg, suite)
	meter.end()
	if err == nil {
		rep.Seconds = float64(time.Since(start).Round(10*time.Millisecond)) / float64(time.Second)
	}
	return rep, err
}

// evalEmbedder opens an embedder of that name, with a cache in a directory, or in memory where it is "". None is nil.
func (a *app) evalEmbedder(name, dir string) (*eval.VectorCache, error) {
	made, err := openEmbedders(name, a.getenv("OPENAI_API_KEY"))
	if err != nil || len(made) == 0 {
		return nil, err
	}
	return eval.NewVectorCache(dir, made[0])
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
