package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/eval"
	"memgpt/store"
	"memgpt/store/sqlite"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	data, embedder, mode, cache     string
	policy                          string
	judge, wrongGold                string
	window, limit, parallel, budget int
	ks                              []int
	summaryWords                    int
	seed                            uint64
	noSearch, pooled, live, asJSON  bool
	outFlags
}

const evalLong = `eval loads a benchmark's material into the memory of agents of its own, in a temporary store, asks its questions and
reports in how many of them the evidence reached main context, and what the answers are worth. Your own data is not
touched. No data comes with the program: see where each suite's is to be had.

  locomo, longmemeval, memdaily, madial, dmr
             conversations, imported; PATH is a file with one conversation a line, each of an agent of its own,
             {"conv","docs":[{"id","text","time","who","session"?}],"queries":[{"id","q","a","cat","gold":[ids],"time"}]}
             LoCoMo (CC BY-NC 4.0), LongMemEval (MIT), MemDaily (no licence stated), MADial-Bench (MIT) and
             MSC-Self-Instruct (Apache-2.0), brought into that form; or as they are downloaded, also .gz:
             locomo10.json of github.com/snap-research/locomo, longmemeval_s.json and longmemeval_oracle.json of
             github.com/xiaowu0162/LongMemEval, msc_self_instruct.jsonl of huggingface.co/datasets/MemGPT/MSC-Self-Instruct
             (dmr; it marks no evidence: utterances with half of the answer's content words count as such),
             memdaily.json of github.com/nuster1128/MemSim; of MADial-Bench (github.com/hejunqing/MADial-Bench) PATH is a
             directory with the files of one language, MADial-Bench-zh-memory.json and MADial-Bench-zh-dialogue.json
  docqa      documents of the same form, put into archival storage: XQuAD, CMRC 2018 (both CC BY-SA 4.0); or as they are
             downloaded: xquad.en.json, cmrc2018_dev.json, nq-open-30_total_documents_gold_at_0.jsonl.gz (the paper's)
  nested-kv  the paper's key-value pairs whose values are keys (Apache-2.0); PATH is the directory with its files
  relay      the same chains in other words, from the same files
  opener     the first message of the next session; PATH is a file of Multi-Session Chat's personas (CC BY-NC 4.0),
             {"test":[{"Speaker 1":[lines],"opener"?: text}]}

Each question is asked in a new conversation, and none can see another. evidence_in_context is the mean share of a
question's evidence whose whole text stood in a request of its turn (of a text that was never shown whole: the piece
with the expected answer), any and all the share of questions of which some or all evidence did. by_category holds
evidence_in_context, of openers SIM-1; by_level the share of right answers: the last value was said, and every pair of
the chain was in context. Shares are in per cent, similarities 0 to 1; intervals are what 95 of 100 resamples of the
questions give. lost says where evidence was lost: never stored, not searched for, not found, or found and not used.
Questions of which nothing is known are not asked and counted apart. --limit takes its questions evenly from all; in
nested-kv, relay and opener it holds for each level or variant. tokens are those of all requests of a question.

accuracy is what a judge says, a language model named with --judge; in nested-kv and relay a rule, in docqa without a
judge the expected answer word for word (accuracy_by). Without a judge there is none elsewhere. Questions whose answer
the material doesn't hold are apart: abstention_right is how often the agent says so.

--out DIR keeps the results, under names that say what was run; other settings have other names. What models answered is
kept beside them by content (or in --call-cache DIR): a run that was stopped, by Ctrl-C, by --budget or by a kill, goes on
with the same command and asks only for what is missing. Several runs may share a directory of a local disk. cost is what the
replies cost in dollars when they were asked for, a question, cost_total with judge and summaries for all; neither is there
where a price isn't known. --budget and --budget-tokens bound what this run spends, which answers from the cache don't
count for. A run that was stopped reports the questions done with partial, n_done and n_planned, and ends with status 1.

--mode says who answers. Where the system looks into memory, prefetch holds for how many questions it handed something
over (turns), what that cost and the evidence in it; floors what would be left if it spoke only where its best hit
scores high.

--model offline:forget_search=.3,bad_query=.1,stop_paging=.2,forget_save=.5,seed=7 makes the stand-in slip in that
share of its turns, always the same ones for a seed; MEMGPT_MODEL takes such names too.`

func (a *app) evalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use: "eval " + strings.Join(eval.Suites(), "|") + " --data PATH", Short: "measure whether what is asked for reaches main context",
		Args: cobra.ExactArgs(1), ValidArgs: eval.Suites(), Long: evalLong,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (args[0] == eval.SuiteNestedKV || args[0] == eval.SuiteRelay) && !cmd.Flags().Changed("embedder") {
				f.embedder = embedNone // keys have no meaning
			}
			if f.noSearch && !cmd.Flags().Changed("mode") {
				f.mode = string(eval.ModeNone)
			}
			return a.runEval(cmd.Context(), args[0], f)
		},
	}
	a.bindEval(cmd, &f)
	if err := cmd.MarkFlagRequired("data"); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.AddCommand(a.evalRetrievalCommand(), a.evalContrastCommand(), a.evalCompareCommand(), a.evalSweepCommand(), a.evalReportCommand())
	return cmd
}

func (a *app) bindEval(cmd *cobra.Command, f *evalFlags) {
	set := cmd.Flags()
	set.StringVar(&f.data, "data", "", "file or directory with the suite's data")
	set.StringVar(&a.modelFlag, "model", "", "[provider:]model that answers, or offline, also with slips; without it the configured one")
	set.StringVar(&f.judge, "judge", "", "[provider:]model that judges answers; without it nobody judges")
	set.StringVar(&f.embedder, "embedder", embedBuiltin, "what finds by meaning: builtin, none (always for nested-kv and relay unless named), a directory or a URL")
	set.IntVar(&f.window, "window", eval.DefaultWindow, "context window in tokens")
	set.IntVar(&f.limit, "limit", 0, "how many questions are asked; 0 is all")
	set.IntVar(&f.parallel, "parallel", runtime.GOMAXPROCS(0), "how many questions are asked at once; the results are the same")
	set.StringVar(&f.mode, "mode", string(eval.ModeMemGPT), "who answers: an agent whose memory the model pages (memgpt), the system looks into\n"+
		"(prefetch, the model has no search functions), both, or none; or a baseline with one prompt: full (all, cut at the end),\n"+
		"sliding (the newest), summary (recursive), rag (the first hits of one search), oracle (the evidence)")
	set.IntVar(&f.budget, "prefetch-budget", 0, "tokens that the system may hand over for a question; 0 is the default of agents")
	set.IntSliceVar(&f.ks, "k", nil, fmt.Sprintf("hits that --mode rag takes, one number or several (1,5,10); without it %d, for docqa those of\nthe paper's figure", eval.DefaultK))
	set.IntVar(&f.summaryWords, "summary-words", 0, fmt.Sprintf("words of the summary of --mode summary; 0 is %d for dmr, else what a quarter of the window holds", eval.SummaryWords))
	set.StringVar(&f.policy, "policy", "", "policies of the agents that differ from the defaults, as alert=.9,page=3:\n"+policyHelp)
	set.BoolVar(&f.live, "live", false, "the material is held as a conversation, in which the questions are then asked, instead of imported: so that its\n"+
		"messages fill the queue, and alerts, evictions and summaries happen; the model is asked at each alert and for each summary")
	set.StringVar(&f.wrongGold, "wrong-gold", "", "file with the ids of questions whose gold is known to be wrong, one a line: reported with and without")
	set.Uint64Var(&f.seed, "seed", 0, "decides what a suite draws by chance, and the intervals; a stand-in's slips have a seed of their own, in its name")
	set.StringVar(&f.cache, "cache", "", "directory that keeps vectors from run to run; without it \"vectors\" in that of --out")
	f.bind(set)
	set.BoolVar(&f.pooled, "pooled", false, "one agent remembers all lines of the file, where else each line has its own")
	set.BoolVar(&f.noSearch, "no-search", false, "the same as --mode none")
	set.BoolVar(&f.asJSON, "json", false, "print one JSON object")
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
	case f.summaryWords < 0:
		return errors.New("--summary-words takes 0 or more; 0 is the default")
	case len(f.ks) > 0 && (mode != eval.ModeRAG || slices.Min(f.ks) <= 0):
		return fmt.Errorf("--k is how many hits --mode rag takes, numbers above 0; it is %v, and --mode is %s", f.ks, mode)
	case f.summaryWords > 0 && mode != eval.ModeSummary:
		return fmt.Errorf("--summary-words bounds the summary of --mode summary, and --mode is %s", mode)
	case f.budget > 0 && mode != eval.ModePrefetch && mode != eval.ModeBoth:
		return fmt.Errorf("--prefetch-budget: nothing is handed over in --mode %s; take --mode prefetch or both", mode)
	}
	return nil
}

func (a *app) runEval(ctx context.Context, name string, f evalFlags) (err error) {
	if err := f.check(); err != nil {
		return fmt.Errorf("eval %s: %w", name, err)
	}
	suite, err := eval.LoadSeeded(name, f.data, f.pooled, f.seed)
	if err != nil {
		return err
	}
	if name == eval.SuiteDocQA && eval.Mode(f.mode) == eval.ModeRAG && len(f.ks) == 0 {
		f.ks = eval.DocKs()
	}
	done, err := a.evalModel(ctx, f.window)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	rep, err := a.measure(ctx, suite, f)
	if rep != nil {
		write := rep.WriteText
		if f.asJSON {
			write = rep.WriteJSON
		}
		if bad := write(a.out); bad != nil {
			return errors.Join(err, bad)
		}
	}
	if err != nil {
		return f.stopped(ctx, a, rep, err)
	}
	return nil
}

// evalModel opens the model that answers, in a window of its own, and says who it is. Nothing is remembered of it.
func (a *app) evalModel(ctx context.Context, window int) (done func() error, err error) {
	if err := a.configure(); err != nil {
		return nil, err
	}
	a.cfg.Window = window
	if a.models, err = a.newModels(nil); err != nil {
		return nil, err
	}
	if err := a.pickModel(ctx, memgpt.Agent{}); err != nil {
		return nil, errors.Join(err, a.models.close())
	}
	a.banner()
	return a.models.close, nil
}

// measure runs the suite on stores in a temporary directory, and keeps the results where they are asked for. Beside an error it
// returns the report of what was done before.
func (a *app) measure(ctx context.Context, suite *eval.Suite, f evalFlags) (rep *eval.Report, err error) {
	dir, err := os.MkdirTemp("", "memgpt-eval-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	start := time.Now()
	if err := f.makeOut(); err != nil {
		return nil, err
	}
	cfg, err := a.evalConfig(f)
	if err != nil {
		return nil, err
	}
	calls, places, err := a.evalModels(ctx, &f, &cfg)
	if calls != nil {
		defer func() { err = errors.Join(err, calls.Close()) }()
	}
	if err != nil {
		return nil, err
	}
	name, err := eval.ResultName(cfg, suite, f.shown(&cfg), places...)
	if err != nil {
		return nil, err
	}
	cfg.Open = temporaryStores(dir)
	cache, err := a.evalEmbedder(f.embedder, f.vectorDir())
	if err != nil {
		return nil, err
	}
	if cache != nil && (cfg.Mode.Looks() || suite.Name == eval.SuiteOpener) {
		defer func() { err = errors.Join(err, cache.Close()) }()
		cfg.Embedder = cache
	}
	meter := a.meter(cfg.Purse)
	if cfg.Embedder != nil {
		cfg.Index = func(ctx context.Context, s store.Store) error { return embedAll(ctx, s, cache, meter.embedded) }
	}
	cfg.Progress = meter.progress
	rep, err = eval.Run(ctx, cfg, suite)
	a.endMeter(meter)
	if calls != nil || !a.model.Capabilities().StandIn || cfg.Judge != nil {
		a.sayCalls(cfg.Purse, calls)
	}
	if rep != nil {
		rep.Seconds = float64(time.Since(start).Round(10*time.Millisecond)) / float64(time.Second)
		err = errors.Join(err, a.saveResults(&f, name, rep))
	}
	return rep, err
}

// shown are settings that the name of results shows beside those of the configuration, where they are not as by default.
func (f *evalFlags) shown(cfg *eval.Config) (list []string) {
	if f.pooled {
		list = append(list, "pooled")
	}
	if f.embedder != embedBuiltin && cfg.Mode.Looks() {
		list = append(list, "embedder_"+f.embedder)
	}
	return list
}

// evalConfig is the configuration that the flags give.
func (a *app) evalConfig(f evalFlags) (cfg eval.Config, err error) {
	cfg = eval.Config{Window: f.window, Limit: f.limit, Mode: eval.Mode(f.mode), Budget: f.budget, Parallel: f.parallel,
		Ks: f.ks, SummaryWords: f.summaryWords, Seed: f.seed, Clock: time.Now}
	cfg.Live = f.live
	if cfg.Policy, err = parsePolicy(f.policy); err != nil {
		return cfg, fmt.Errorf("--policy: %w", err)
	}
	if f.wrongGold != "" {
		if cfg.WrongGold, err = eval.ReadWrongGold(f.wrongGold); err != nil {
			return cfg, err
		}
	}
	cfg.Purse, err = f.purse()
	return cfg, err
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
