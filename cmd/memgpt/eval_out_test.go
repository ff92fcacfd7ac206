package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"memgpt"
	"memgpt/eval"
	"memgpt/model/script"
)

// talkOf writes a made-up conversation with a question about each of its n lines.
func talkOf(t *testing.T, n int) string {
	t.Helper()
	var docs, queries []string
	for i := range n {
		docs = append(docs, fmt.Sprintf(`{"id":"%d","text":"The parrot of cabin%d is called Mira%d."}`, i, i, i))
		queries = append(queries, fmt.Sprintf(`{"id":"q%d","q":"What is the parrot of cabin%d called?","a":"Mira%d","cat":"x","gold":["%d"]}`, i, i, i, i))
	}
	return evalFile(t, "talk.jsonl", `{"conv":"c","docs":[`+strings.Join(docs, ",")+`],"queries":[`+strings.Join(queries, ",")+`]}`)
}

// birdServer is a model behind a server that searches once and then answers, a cent a call. It says to stop at its call of number
// at, which it doesn't answer.
type birdServer struct {
	env   []string
	calls atomic.Int32
	at    atomic.Int32
	stop  chan struct{}
}

func newBirdServer(t *testing.T) *birdServer {
	t.Helper()
	b := &birdServer{stop: make(chan struct{}, 1)}
	held := script.NewGate()
	s := script.NewServer(script.ServerConfig{Config: script.Config{CountOnly: true, Func: func(_ int, req *memgpt.Request) script.Reply {
		reply := script.Call("conversation_search", "query", "parrot", "request_heartbeat", true)
		if req.Messages[len(req.Messages)-1].Role == memgpt.RoleTool {
			reply = script.Say("It is a bird.")
		}
		if b.calls.Add(1) == b.at.Load() {
			b.stop <- struct{}{}
			return reply.Held(held)
		}
		return reply.Using(memgpt.Usage{Input: 1500, Output: 100})
	}}})
	srv := httptest.NewServer(s)
	t.Cleanup(func() { held.Open(); srv.Close() })
	prices := evalFile(t, "prices.json", `{"source":"a test","prices":[{"model":"script","input":0,"output":100}]}`)
	b.env = []string{"OPENAI_BASE_URL=" + srv.URL + "/v1", "OPENAI_API_KEY=k", "MEMGPT_MODEL=script", "MEMGPT_PRICES=" + prices}
	return b
}

// stopping runs a command that a signal stops at a call of number at, and returns what it says.
func (b *birdServer) stopping(t *testing.T, how syscall.Signal, at int32, args []string) (out, errs string) {
	t.Helper()
	b.calls.Store(0)
	b.at.Store(at)
	cmd := child(t, "signalled", t.TempDir(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(cmd.Env, b.env...), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-b.stop
	if err := cmd.Process.Signal(how); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatalf("%v stopped nothing: %s", how, stderr.String())
	}
	b.at.Store(-1)
	return stdout.String(), stderr.String()
}

// whole runs a command to its end, and returns how many calls it made.
func (b *birdServer) whole(t *testing.T, args ...string) (ran, int) {
	t.Helper()
	b.calls.Store(0)
	r := command(t, t.TempDir(), "", b.env, args...)
	return r, int(b.calls.Load())
}

// untimed is what a report says, but for the time.
func untimed(text string) string {
	return regexp.MustCompile(`"seconds":[0-9.]+`).ReplaceAllString(text, "")
}

// TestEvalGoesOn kills a run, interrupts the next, lets a budget stop a third and lets the fourth end: each goes on where the one
// before stopped, and the last says what a run says that nobody disturbs.
func TestEvalGoesOn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals to send")
	}
	const n = 12 // questions, of two calls each
	path, out := talkOf(t, n), filepath.Join(t.TempDir(), "out")
	args := []string{"eval", "locomo", "--data", path, "--embedder", "none", "--json", "--parallel", "1"}
	kept := append(args[:len(args):len(args)], "--out", out)
	b := newBirdServer(t)
	b.stopping(t, syscall.SIGKILL, 4, kept) // of three calls the answers are kept
	stdout, stderr := b.stopping(t, syscall.SIGINT, 6, kept)
	if !strings.Contains(stderr, "stopped: it was interrupted; 4 of 12 questions are done") || !strings.Contains(stderr, "the same command goes on") ||
		!strings.Contains(stderr, "5 calls of models for $0.05") || !strings.Contains(stderr, "3 answers from the cache") ||
		!strings.Contains(stdout, `"partial":true,"n_done":4,"n_planned":12`) {
		t.Errorf("%s\n%s", stderr, stdout)
	}
	r, calls := b.whole(t, append(kept[:len(kept):len(kept)], "--budget", "0.055")...)
	if r.code != 1 || calls != 5 || !strings.Contains(r.err, "stopped: the budget of $0.055 is used up: $0.05 spent") || !strings.Contains(r.out, `"partial":true`) {
		t.Errorf("%d calls, status %d, %s\n%s", calls, r.code, r.err, r.out)
	}
	files, err := filepath.Glob(filepath.Join(out, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if records, err := eval.ReadRecords(files[0] + "l"); err != nil || len(records) != 6 || !strings.Contains(r.err, "6 of 12") {
		t.Errorf("%d records, %v, %s", len(records), err, r.err)
	}
	if r, calls = b.whole(t, kept...); r.code != 0 || 3+5+5+calls != 2*n {
		t.Errorf("%d calls, status %d, %s", calls, r.code, r.err)
	}
	if whole, _ := b.whole(t, args...); whole.code != 0 || untimed(whole.out) != untimed(r.out) {
		t.Errorf("undisturbed: %s\ngone on: %s", whole.out, r.out)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || string(text) != r.out || !strings.Contains(r.out, `"cost":0.02,"cost_total":0.24`) {
		t.Errorf("%v, %s, %s", err, text, r.out)
	}
}

// TestEvalKeepsResultsApart runs with settings that differ, and once more with those of the first.
func TestEvalKeepsResultsApart(t *testing.T) {
	path, out := onePair(t), t.TempDir()
	for i, more := range [][]string{nil, {"--pooled"}, {"--mode", "rag"}, {"--mode", "rag", "--k", "3"}, {"--window", "8192"}, {"--limit", "1"}, nil} {
		args := append([]string{"dmr", "--data", path, "--embedder", "none", "--out", out, "--parallel", "1"}, more...)
		_, errs, err := runEvalCommand(t, t.TempDir(), args...)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(out, "*"))
		if want := 2 * min(i+1, 6); err != nil || len(files) != want || !strings.Contains(errs, "the results are in "+out) {
			t.Errorf("%v: %v, %s", more, files, errs)
		}
	}
}

func TestEvalBudgetsThatCantBe(t *testing.T) {
	for want, args := range map[string][]string{
		`--budget is "much"`:         {"--budget", "much"},
		"a budget of nothing":        {"--budget", "0"},
		"--budget-tokens takes 0 or": {"--budget-tokens", "-1"},
	} {
		out, _, err := runEvalCommand(t, t.TempDir(), append([]string{"dmr", "--data", onePair(t), "--embedder", "none"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}

// TestEvalAgainstAnUnknownPrice asks a provider whose price nobody knows, and that nobody reaches.
func TestEvalAgainstAnUnknownPrice(t *testing.T) {
	env := []string{"OPENAI_BASE_URL=http://model.invalid/v1", "OPENAI_API_KEY=k", "MEMGPT_MODEL=nonesuch", "MEMGPT_WINDOW=8192"}
	r := command(t, t.TempDir(), "", env, "eval", "dmr", "--data", onePair(t), "--embedder", "none", "--budget", "1")
	if r.code != 1 || !strings.Contains(r.err, "what nonesuch costs isn't known") || !strings.Contains(r.err, "--budget-tokens") || strings.Contains(r.err, "trying again") {
		t.Errorf("%d, %s", r.code, r.err)
	}
}

// TestTheMeter holds what is written to a terminal and elsewhere.
// TestTheMeterTellsOfLoading: material that takes minutes to load is seen to be loaded, and the forecast is of the questions alone.
func TestTheMeterTellsOfLoading(t *testing.T) {
	var screen bytes.Buffer
	now := time.Now()
	m := &meter{out: &screen, now: func() time.Time { return now }, begun: now, told: now}
	for range 30 {
		now = now.Add(time.Second)
		m.embedded(10)
	}
	now = now.Add(2 * time.Second)
	m.progress(1, 4)
	if want := "loading: 100 texts got their vectors\nloading: 200 texts got their vectors\nloading: 300 texts got their vectors\n"; screen.String() != want {
		t.Errorf("%q", screen.String())
	}
	if text := m.text(); !strings.HasSuffix(text, "25%  1 of 4 questions, about 6s left") {
		t.Errorf("%q", text)
	}
	screen.Reset()
	m = &meter{out: &screen, now: m.now, begun: now, width: func() int { return 60 }}
	if m.embedded(0); screen.Len() > 0 {
		t.Errorf("nothing is loaded, and it says %q", screen.String())
	}
	if m.embedded(7); screen.String() != "\r\x1b[Kloading: 7 texts got their vectors" {
		t.Errorf("%q", screen.String())
	}
}

// TestOutIsTriedFirst: a run whose results could not be kept does not begin.
func TestOutIsTriedFirst(t *testing.T) {
	file := evalFile(t, "file", "")
	for _, out := range []string{file, filepath.Join(file, "below")} {
		text, _, err := runEvalCommand(t, t.TempDir(), "locomo", "--data", talkOf(t, 2), "--embedder", "none", "--out", out)
		if err == nil || text != "" || !strings.Contains(err.Error(), "--out: the results could not be written") {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// TestVectorsAreKeptBesideTheResults: the next run of the same material makes none anew.
func TestVectorsAreKeptBesideTheResults(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	data := talkOf(t, 3)
	size := func() int64 {
		list, err := filepath.Glob(filepath.Join(out, "vectors", "*.vectors"))
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		info, err := os.Stat(list[0])
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	var sizes []int64
	for range 2 {
		if _, _, err := runEvalCommand(t, t.TempDir(), "locomo", "--data", data, "--mode", "rag", "--out", out); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, size())
	}
	if sizes[0] == 0 || sizes[0] != sizes[1] {
		t.Errorf("the file of vectors has %v bytes", sizes)
	}
}

func TestTheMeter(t *testing.T) {
	var screen bytes.Buffer
	now := time.Now()
	clock := func() time.Time { return now }
	m := &meter{out: &screen, now: clock, begun: now, told: now, purse: eval.NewPurse(0, 0)}
	for i := range 100 {
		now = now.Add(time.Second)
		m.progress(i+1, 100)
	}
	text := screen.String()
	if strings.Count(text, "\n") != 10 || !strings.Contains(text, "[##..................]  10%  10 of 100 questions, about 1m30s left\n") ||
		!strings.HasSuffix(text, "[####################] 100%  100 of 100 questions\n") || strings.Contains(text, "\r") {
		t.Errorf("%q", text)
	}
	screen.Reset()
	m = &meter{out: &screen, now: clock, begun: now, width: func() int { return 40 }}
	m.progress(1, 8)
	_, _ = io.WriteString(m, "something else\n")
	m.progress(2, 8)
	lines := strings.Split(screen.String(), "\n")
	last := lines[len(lines)-1]
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "\r\x1b[Ksomething else") || !strings.HasPrefix(last, "\r\x1b[K[##....") || len(last[strings.LastIndex(last, "K")+1:]) > 39 {
		t.Errorf("%q", screen.String())
	}
	if !json.Valid([]byte(`"`+m.text()+`"`)) || strings.ContainsFunc(m.text(), func(r rune) bool { return r > 126 || r < 32 }) {
		t.Errorf("%q", m.text())
	}
}
