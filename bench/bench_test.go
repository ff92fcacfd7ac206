package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/openai"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/token"
	"memgpt/tool"
)

// wired is a configuration whose parts are real but for the server, which is in this process.
func wired(tb testing.TB) Config {
	return Config{Open: openSite(tb), Kernel: newKernel, Model: scripted, Slow: slow,
		NewID:   func(kind string) string { return kernel.NewIDs(rand.Reader, time.Now)(kind) },
		Startup: func(context.Context, *Site) error { return nil },
		Behind:  behind, Vectors: vectors, Meaning: meaning(tb)}
}

// vectors gives texts made-up vectors, as the program does.
func vectors(ctx context.Context, s *Site, owner string) error {
	x, err := retrieve.NewIndexer(retrieve.IndexerConfig{Store: s.Store, Embedder: MadeUp(nil)})
	for more := true; more && err == nil; {
		_, more, err = x.Some(ctx, "", owner)
	}
	return err
}

// meaning searches a site's file, opened anew.
func meaning(tb testing.TB) func(context.Context, *Site) (*Meaning, error) {
	return func(ctx context.Context, s *Site) (*Meaning, error) {
		st, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(s.Home, "memgpt.db")})
		if err != nil {
			return nil, err
		}
		search, err := retrieve.New(retrieve.Config{Index: st, Store: st, Embedders: []tool.Embedder{MadeUp(nil)}})
		return &Meaning{Search: search, Close: st.Close}, err
	}
}

// toy is an encoder of one dimension.
type toy struct{}

func (toy) Model() string { return "toy" }

func (toy) Embed(_ context.Context, list []string, _ bool) ([][]float32, error) {
	out := make([][]float32, len(list))
	for i := range out {
		out[i] = []float32{1}
	}
	return out, nil
}

// behind makes all vectors at the start and at the end.
func behind(ctx context.Context, s *Site, busy func() bool) (func() error, error) {
	x, err := retrieve.NewIndexer(retrieve.IndexerConfig{Store: s.Store, Embedder: toy{}, Busy: busy})
	if err != nil {
		return nil, err
	}
	all := func() error {
		for more := true; more && err == nil; {
			_, more, err = x.Some(ctx, "", "")
		}
		return err
	}
	return all, all()
}

func openSite(tb testing.TB) func(context.Context) (*Site, error) {
	return func(ctx context.Context) (*Site, error) {
		home := tb.TempDir()
		path := filepath.Join(home, "memgpt.db")
		st, err := sqlite.Open(ctx, sqlite.Config{Path: path})
		if err != nil {
			return nil, err
		}
		search, err := retrieve.New(retrieve.Config{Index: st, Store: st})
		if err != nil {
			return nil, err
		}
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=synchronous(full)")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		if _, err := db.ExecContext(ctx, "CREATE TABLE plain (no INTEGER PRIMARY KEY, text TEXT)"); err != nil {
			return nil, err
		}
		insert, err := db.PrepareContext(ctx, "INSERT INTO plain (text) VALUES (?)")
		return &Site{Store: st, Search: search, Home: home,
			Pair: func(_ context.Context, user, agent string) error {
				_, err := insert.ExecContext(context.Background(), user)
				_, err2 := insert.ExecContext(context.Background(), agent)
				return errors.Join(err, err2)
			},
			Close: func() error { return errors.Join(db.Close(), st.Close()) }}, err
	}
}

func newKernel(s store.Store, search tool.Searcher, m memgpt.Model, window int, newID func(string) string) (*kernel.Kernel, error) {
	count, err := token.New(token.Config{})
	if err != nil {
		return nil, err
	}
	return kernel.New(kernel.Config{Store: s, Search: search, Analyzer: new(retrieve.Analyzer), Counter: count, Window: window,
		Now: time.Now, NewID: newID, Model: func(memgpt.Agent) (memgpt.Model, error) { return m, nil },
		System: memtool.System})
}

func scripted(next func() string) memgpt.Model {
	return script.New(script.Config{CountOnly: true, Capabilities: memgpt.Capabilities{Name: "script", Tools: true},
		Func:    func(int, *memgpt.Request) script.Reply { return script.Say(next()) },
		Summary: func(*memgpt.Request) script.Reply { return script.Text("They talked: " + next()) }})
}

func slow(_ context.Context, n int) (*Slow, error) {
	gate := script.NewGate()
	srv := httptest.NewServer(script.NewServer(script.ServerConfig{Config: script.Config{CountOnly: true,
		Func: func(int, *memgpt.Request) script.Reply { return script.Say("here").Held(gate) }}}))
	m, err := openai.New(openai.Config{BaseURL: srv.URL, Model: "slow"})
	return &Slow{Model: m,
		Arrived: func(ctx context.Context) error {
			for range n {
				select {
				case <-gate.Entered():
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		},
		Release: func() error { gate.Open(); return nil },
		Close:   func() error { srv.Close(); return nil }}, err
}

// small are sizes that end in a second.
var small = sizes{pairs: 20, starts: 2, rates: []int{1, 3}, rate: 20 * time.Millisecond, waiting: 60, behind: 2, hurry: 100, lengths: []int{100, 300}, steps: 10, searches: 10}

// TestReport runs every measurement, small, and checks that each figure is there and can be true.
func TestReport(t *testing.T) {
	cfg := wired(t)
	started := 0
	cfg.Startup = func(context.Context, *Site) error { started++; return nil }
	cfg.Quick = true
	open, pairs := cfg.Open, 0
	cfg.Open = func(ctx context.Context) (*Site, error) {
		s, err := open(ctx)
		if err == nil {
			pair := s.Pair
			s.Pair = func(ctx context.Context, user, agent string) error {
				if pairs++; user == "" || agent == "" || user == agent {
					t.Errorf("pair of %q and %q", user, agent)
				}
				return pair(ctx, user, agent)
			}
		}
		return s, err
	}
	rep, err := run(t.Context(), cfg, small)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rep.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"step_median_ms", "commit_pair_median_ms", "step_over_commit_ratio", "startup_ms", "rss_mb",
		"step_indexing_ratio", "step_indexing_texts",
		"waiting_rss_mb", "seconds"} {
		if n, ok := got[key].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", key, got[key])
		}
	}
	for key, want := range map[string][]string{"steps_per_second": {"1", "3"}, "step_ms_by_log": {"100", "300"},
		"compile_ms_by_log": {"100", "300"}, "search_ms_by_log": {"100", "300"},
		"hybrid_ms_by_log": {"100", "300"}, "hybrid_filtered_ms_by_log": {"100", "300"}, "hybrid_first_ms_by_log": {"100", "300"},
		"hybrid_bytes_per_message_by_log": {"100", "300"}, "vectors_seconds_by_log": {"100", "300"}} {
		m, _ := got[key].(map[string]any)
		if len(m) != len(want) {
			t.Errorf("%s is %v", key, got[key])
		}
		for _, k := range want {
			if n, ok := m[k].(float64); !ok || n <= 0 {
				t.Errorf("%s of %s is %v", key, k, m[k])
			}
		}
	}
	if ratio := rep.StepMS / rep.PairMS; math.Abs(rep.Ratio-ratio) > 1e-9 || rep.Waiting != 60 || len(rep.Notes) > 0 {
		t.Errorf("ratio %v, want %v; %d waited; %q", rep.Ratio, ratio, rep.Waiting, rep.Notes)
	}
	if rep.WaitingWindow < 2500 || rep.WaitingWindow > 3584 {
		t.Errorf("prompts of waiting agents have %d tokens, and a window of 4,096 holds 3,584 beside the reply", rep.WaitingWindow)
	}
	if pairs != warm+small.pairs {
		t.Errorf("%d pairs", pairs)
	}
	if started != small.starts+1 {
		t.Errorf("the program was started %d times", started)
	}
	b.Reset()
	if err := rep.WriteText(&b); err != nil || !strings.HasPrefix(b.String(), "step / its two commits") ||
		strings.Index(b.String(), "agents: 1 ") > strings.Index(b.String(), "agents: 3 ") {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

// TestBudget holds that a run which is late leaves out what it may, says so, and still has the figures that it is for.
func TestBudget(t *testing.T) {
	cfg := wired(t)
	size := small
	size.pairs, size.lengths, size.budget = 1_000_000, []int{100, 1_000_000}, time.Nanosecond
	rep, err := run(t.Context(), cfg, size)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.StepByLog) != 0 || rep.Ratio <= 0 || len(rep.StepsPerSecond) != 2 {
		t.Errorf("%+v", rep)
	}
	for i, want := range []string{"are of 60 instead of 1000000", "waiting agents were not measured", "making of vectors", "log of 100 messages"} {
		if len(rep.Notes) != 4 || !strings.Contains(rep.Notes[i], want) {
			t.Fatalf("note %d of %q, want %q", i, rep.Notes, want)
		}
	}
}

// TestSizes holds what the command promises.
func TestSizes(t *testing.T) {
	for _, quick := range []bool{true, false} {
		s := sizesOf(quick)
		if s.pairs < 1000 || !slices.Equal(s.rates, []int{1, 16, 256}) || quick && (s.budget == 0 || s.budget > 35*time.Second) {
			t.Errorf("%+v", s)
		}
	}
	if s := sizesOf(false); s.waiting != 10_000 || s.lengths[len(s.lengths)-1] != 1_000_000 {
		t.Errorf("%+v", s)
	}
}

// TestWaitingFailure ends with a note where a turn ends instead of waiting.
func TestWaitingFailure(t *testing.T) {
	cfg := wired(t)
	cfg.Slow = func(context.Context, int) (*Slow, error) {
		return &Slow{Model: script.Of(script.Say("never").Held(script.NewGate()), script.Fail(memgpt.Errorf(memgpt.CodeModelDown, "too many open files"))),
			Arrived: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			Release: func() error { return nil }, Close: func() error { return nil }}, nil
	}
	r := &runner{cfg: cfg, size: sizes{waiting: 2}, out: new(Report)}
	r.cfg.Now = time.Now
	if err := r.waiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.out.Notes) != 1 || !strings.Contains(r.out.Notes[0], "too many open files") || r.out.Waiting != 0 {
		t.Errorf("%+v", r.out)
	}
}

// TestFailure ends a run whose steps fail, instead of measuring how fast they do.
func TestFailure(t *testing.T) {
	cfg := wired(t)
	cfg.Model = func(func() string) memgpt.Model { return script.Of(script.Calls(script.Call(memgpt.FuncYield))) }
	if _, err := run(t.Context(), cfg, small); err == nil || !strings.Contains(err.Error(), "the turn ended as done (yield_silent)") {
		t.Errorf("a silent turn: %v", err)
	}
	cfg.Model = func(func() string) memgpt.Model {
		return script.Of(script.Say("so far").Heartbeat(), script.Calls(script.Say("so far"), script.Call("x")).Heartbeat(),
			script.Fail(memgpt.Errorf(memgpt.CodeModelAuth, "no key")))
	}
	if _, err := run(t.Context(), cfg, small); err == nil || !strings.Contains(err.Error(), "the turn ended as failed") {
		t.Errorf("a turn that failed after some words: %v", err)
	}
}

func TestConfig(t *testing.T) {
	if _, err := Run(t.Context(), Config{}); err == nil {
		t.Error("an empty configuration runs")
	}
}

func TestKeys(t *testing.T) {
	if got := keys(map[string]float64{"256": 1, "16": 1, "1000": 1, "1": 1}); !slices.Equal(got, []string{"1", "16", "256", "1000"}) {
		t.Errorf("got %q", got)
	}
}

func TestMedian(t *testing.T) {
	if got := median([]time.Duration{5e6, 1e6, 9e6}); got != 5 {
		t.Errorf("got %v", got)
	}
	if got := median(nil); got != 0 {
		t.Errorf("got %v", got)
	}
}

func TestResident(t *testing.T) {
	if got, err := parseResident([]byte("Name:\tx\nVmHWM:\t 9 kB\nVmRSS:\t    2048 kB\nThreads:\t1\n")); err != nil || got != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseResident([]byte("Name:\tx\n")); err == nil {
		t.Error("no VmRSS, no error")
	}
	if runtimeMemory() <= 1 {
		t.Errorf("the runtime has %v MiB", runtimeMemory())
	}
}

// TestTexts holds the shape of the texts: the same for a seed, of both languages, mostly short, with common and rare words.
func TestTexts(t *testing.T) {
	a, b := newWriter(1), newWriter(1)
	han, words, seen, long := 0, 0, map[string]int{}, 0
	for range 2000 {
		text := a.message()
		if text != b.message() {
			t.Fatal("the same seed gives other texts")
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r >= 0x4E00 && r < 0xA000 }) {
			han++
		} else {
			fields := strings.Fields(text)
			words += len(fields)
			if len(fields) > 50 {
				long++
			}
			for _, w := range fields {
				seen[w]++
			}
		}
	}
	if han < 400 || han > 600 || words/(2000-han) < 10 || words/(2000-han) > 30 || long == 0 || len(seen) < 3000 || seen[latinWord(0)] < words/30 {
		t.Errorf("%d Chinese, %d words in the others, %d long, %d different, the first %d times", han, words, long, len(seen), seen[latinWord(0)])
	}
	for range 200 {
		if q := a.question(); strings.Contains(" "+q+" ", " "+latinWord(0)+" ") {
			t.Errorf("the commonest word is in %q", q)
		}
	}
	ranks := map[string]bool{}
	for rank := range uint64(vocabulary) {
		ranks[latinWord(rank)] = true
	}
	if len(ranks) != vocabulary {
		t.Errorf("%d words for %d ranks", len(ranks), vocabulary)
	}
}

// benchRig is a conversation of a host on a new store.
func benchRig(b *testing.B) (*runner, *talker) {
	r := &runner{cfg: wired(b), out: new(Report)}
	r.cfg.Now = time.Now
	g, err := r.rig(b.Context(), r.cfg.Model(texts(1, 500)), 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := g.close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	t, err := g.talker(b.Context(), "default")
	if err != nil {
		b.Fatal(err)
	}
	return r, t
}

// BenchmarkStep is a whole step without the time of a model.
func BenchmarkStep(b *testing.B) {
	_, t := benchRig(b)
	say := texts(2, 500)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.step(b.Context(), say()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPair is two bare transactions in the same file.
func BenchmarkPair(b *testing.B) {
	_, t := benchRig(b)
	say := texts(2, 500)
	for b.Loop() {
		if err := t.g.Pair(b.Context(), say(), say()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStepOverPair takes both in turn, a block of each an iteration, and reports the ratio of their medians.
func BenchmarkStepOverPair(b *testing.B) {
	r, t := benchRig(b)
	say := texts(2, 500)
	var step, pair []time.Duration
	for b.Loop() {
		s, p, err := r.pairs(b.Context(), t, say, block, 0)
		if err != nil {
			b.Fatal(err)
		}
		step, pair = append(step, s...), append(pair, p...)
	}
	b.ReportMetric(median(step), "step-ms")
	b.ReportMetric(median(pair), "pair-ms")
	b.ReportMetric(median(step)/median(pair), "ratio")
}

// lengths are the lengths of logs in the benchmarks.
func lengths() map[string]int {
	m := map[string]int{"1k": 1_000}
	if os.Getenv("MEMGPT_LONG") != "" {
		m["100k"], m["1M"] = 100_000, 1_000_000
	}
	return m
}

// filled fills a log and calls f.
func filled(b *testing.B, f func(b *testing.B, r *runner, t *talker)) {
	for name, n := range lengths() {
		b.Run(name, func(b *testing.B) {
			r, t := benchRig(b)
			if _, err := r.fill(b.Context(), t, newLines(time.Now()), n); err != nil {
				b.Fatal(err)
			}
			say := texts(3, 100)
			for range 30 { // so that there is a queue
				if _, err := t.step(b.Context(), say()); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			f(b, r, t)
		})
	}
}

// BenchmarkCompile measures and compiles the prompt.
func BenchmarkCompile(b *testing.B) {
	filled(b, func(b *testing.B, _ *runner, t *talker) {
		err := t.g.host.Do(b.Context(), "", t.agent.ID, t.th.ID, func(_ context.Context, w *store.Work) error {
			for b.Loop() {
				if _, err := t.g.kernel.Inspect(w.State); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkSearch looks for some words in all messages of one agent.
func BenchmarkSearch(b *testing.B) {
	filled(b, func(b *testing.B, _ *runner, t *talker) {
		w := newWriter(4)
		var took []time.Duration
		for b.Loop() {
			q := tool.Query{Owner: t.agent.ID, Text: w.question(), Size: pageSize}
			start := time.Now()
			if _, err := t.g.Search.Search(b.Context(), q); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		b.ReportMetric(median(took), "p50-ms")
	})
}

// BenchmarkRate reports steps per second of many agents.
func BenchmarkRate(b *testing.B) {
	for _, n := range sizesOf(true).rates {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := &runner{cfg: wired(b), size: sizes{rate: 200 * time.Millisecond}, out: new(Report)}
			r.cfg.Now = time.Now
			for b.Loop() {
				rate, err := r.rate(b.Context(), n)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(rate, "steps/s")
			}
		})
	}
}

// TestMadeUp holds what made-up vectors are for: the same ones for the same text, some texts near to each other and most not,
// and a query that takes the inner encoder's time.
func TestMadeUp(t *testing.T) {
	w, list := newWriter(3), make([]string, 1500)
	for i := range list {
		list[i] = w.message()
	}
	inner := &asks{}
	made, again := MadeUp(inner), MadeUp(nil)
	v, err := made.Embed(t.Context(), list, false)
	if err != nil || inner.n != 0 {
		t.Fatalf("the inner encoder was asked %d times, error %v", inner.n, err)
	}
	u, err := again.Embed(t.Context(), list, true)
	if err != nil || !slices.EqualFunc(v, u, slices.Equal[[]float32]) {
		t.Fatalf("the vectors differ, error %v", err)
	}
	if _, err := made.Embed(t.Context(), list[:1], true); err != nil || inner.n != 1 {
		t.Errorf("the inner encoder was asked %d times, error %v", inner.n, err)
	}
	near := 0
	for i := range v[1:] {
		if c := cosine(v[0], v[i+1]); c > .4 {
			near++
		}
	}
	if near > 150 {
		t.Errorf("%d of %d are near to one", near, len(v)-1)
	}
	pairs := 0
	for i := range v[:200] {
		for j := range i {
			if cosine(v[i], v[j]) > .4 {
				pairs++
			}
		}
	}
	if pairs < 5 {
		t.Errorf("%d pairs of 200 texts are near to each other", pairs)
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i]*b[i]), aa+float64(a[i]*a[i]), bb+float64(b[i]*b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// asks counts what it is asked.
type asks struct {
	toy
	n int
}

func (a *asks) Embed(ctx context.Context, list []string, query bool) ([][]float32, error) {
	a.n++
	return a.toy.Embed(ctx, list, query)
}
