package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"memgpt"
	"memgpt/bench"
	"memgpt/config"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store/sqlite"
)

func (a *app) benchCommand() *cobra.Command {
	var quick, asJSON bool
	var dir, profile string
	cmd := &cobra.Command{
		Use: "bench [--quick]", Short: "measure what a step costs", Args: cobra.NoArgs,
		Long: "bench measures, in stores of its own that it removes: a step without the time of a model beside the bare cost of its\n" +
			"two commits, steps a second of 1, 16 and 256 agents, start-up, memory (also with many agents waiting for a slow\n" +
			"server), and how a step, compiling and searching, by words and by made-up vectors too, take longer as the log grows.\n" +
			"The stores are made on the disk of your data directory, if there is one. --quick ends within 40 s. What other\n" +
			"programs do at the same time shows in every figure, least in the ratio.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			rep, err := a.benchmark(cmd.Context(), dir, profile, quick)
			switch {
			case err != nil:
				return err
			case asJSON:
				return rep.WriteJSON(a.out)
			}
			return rep.WriteText(a.out)
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "measure less, within 40 s")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&dir, "dir", "", "directory in which the stores are made")
	cmd.Flags().StringVar(&profile, "cpuprofile", "", "write a CPU profile of the run to this file")
	cmd.AddCommand(a.benchServeCommand())
	return cmd
}

// benchmark runs the benchmark on stores in a temporary directory.
func (a *app) benchmark(ctx context.Context, dir, profile string, quick bool) (rep *bench.Report, err error) {
	if a.cfg, err = config.Read(a.getenv); err != nil {
		return nil, err
	}
	if info, e := os.Stat(a.cfg.Home); dir == "" && e == nil && info.IsDir() {
		dir = a.cfg.Home
	}
	if dir, err = os.MkdirTemp(dir, "memgpt-bench-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if profile != "" {
		stop, err := startProfile(profile)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	return bench.Run(ctx, bench.Config{Quick: quick, NewID: newID, Open: benchSites(dir), Kernel: newKernel, Model: benchModel,
		Startup: a.benchStartup, Slow: startSlow, Behind: benchBehind,
		Vectors: benchVectors, Meaning: benchMeaning, Note: func(text string) { a.say("bench: %s …", text) }})
}

// benchModel is a scripted model that says what next returns.
func benchModel(next func() string) memgpt.Model {
	return script.New(script.Config{CountOnly: true, Capabilities: memgpt.Capabilities{Name: "script", Tools: true, Parallel: true},
		Func:    func(int, *memgpt.Request) script.Reply { return script.Say(next()) },
		Summary: func(*memgpt.Request) script.Reply { return script.Text("They talked about this and that: " + next()) }})
}

// benchBehind runs the indexer with the built-in encoder.
func benchBehind(ctx context.Context, s *bench.Site, busy func() bool) (func() error, error) {
	made, err := openEmbedders(embedBuiltin, "")
	if err != nil {
		return nil, err
	}
	x, err := retrieve.NewIndexer(retrieve.IndexerConfig{Store: s.Store, Embedder: made[0], Busy: busy})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	return func() error {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}, nil
}

// benchSites makes stores under a directory.
func benchSites(dir string) func(context.Context) (*bench.Site, error) {
	return func(ctx context.Context) (*bench.Site, error) {
		home, err := os.MkdirTemp(dir, "")
		if err != nil {
			return nil, err
		}
		path := config.Config{Home: home}.Database()
		st, err := sqlite.Open(ctx, sqlite.Config{Path: path})
		if err != nil {
			return nil, err
		}
		search, err := retrieve.New(retrieve.Config{Index: st, Store: st})
		if err != nil {
			return nil, errors.Join(err, st.Close())
		}
		p, err := newPair(ctx, path)
		if err != nil {
			return nil, errors.Join(err, st.Close())
		}
		return &bench.Site{Store: st, Search: search, Home: home, Pair: p.commit, Close: func() error {
			return errors.Join(p.close(), st.Close(), os.RemoveAll(home))
		}}, nil
	}
}

// pair makes bare transactions in a store's file.
type pair struct {
	db     *sql.DB
	insert *sql.Stmt
}

func newPair(ctx context.Context, path string) (*pair, error) {
	q := url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	p := &pair{db: db}
	if _, err = db.ExecContext(ctx, "CREATE TABLE bench_pair (no INTEGER PRIMARY KEY, text TEXT)"); err == nil {
		p.insert, err = db.PrepareContext(ctx, "INSERT INTO bench_pair (text) VALUES (?)")
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return p, nil
}

// commit makes a transaction for each text. SQLite makes one of a lone INSERT, which is the barest there is; a context that
// can end would cost the driver a goroutine.
func (p *pair) commit(ctx context.Context, user, agent string) error {
	ctx = context.WithoutCancel(ctx)
	for _, text := range []string{user, agent} {
		if _, err := p.insert.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("commit a bare row: %w", err)
		}
	}
	return nil
}

func (p *pair) close() error { return errors.Join(p.insert.Close(), p.db.Close()) }

// benchStartup runs this program on a store from its start to its end.
func (a *app) benchStartup(ctx context.Context, s *bench.Site) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, exe, "log", "--agent", "default")
	cmd.Env = append(os.Environ(), "MEMGPT_HOME="+s.Home, "MEMGPT_MODEL=offline")
	cmd.Stdout, cmd.Stderr = io.Discard, a.err
	return cmd.Run()
}
