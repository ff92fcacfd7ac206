package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/cost"
	"memgpt/model/script"
)

// countedCalls counts the calls that reach a model, and may do something before each.
type countedCalls struct {
	memgpt.Model
	n      atomic.Int32
	before func(n int)
}

func (m *countedCalls) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	n := int(m.n.Add(1))
	if m.before != nil {
		m.before(n)
	}
	return m.Model.Generate(ctx, req, stream)
}

func openCalls(t *testing.T, dir string) *CallCache {
	t.Helper()
	c, err := OpenCallCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// results is all that a run says, as it is written.
func results(t *testing.T, rep *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := errors.Join(rep.WriteJSON(&b), WriteRecords(&b, rep.Records)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// shelfJudge calls an answer right that names a shelf.
func shelfJudge() memgpt.Model {
	return script.New(script.Config{CountOnly: true, Capabilities: memgpt.Capabilities{Name: "judge"}, Func: func(_ int, req *memgpt.Request) script.Reply {
		if strings.Contains(req.Messages[1].Said(), "shelf 2.") {
			return script.Text("It names the shelf.\nCORRECT").Using(memgpt.Usage{Input: 50, Output: 5})
		}
		return script.Text("WRONG").Using(memgpt.Usage{Input: 50, Output: 5})
	}})
}

// centsModel makes each call of a model cost a cent for 100 tokens of output, as cost.Meter tells it.
func centsModel(t *testing.T, m memgpt.Model) memgpt.Model {
	t.Helper()
	table, err := new(cost.Table).With([]byte(`{"prices":[{"model":"*","provider":"p","input":0,"output":100}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return cost.Meter(m, table, "p")
}

// TestASecondRunAsksNothing runs each mode twice with a model that teaches the counter, once several questions at once.
func TestASecondRunAsksNothing(t *testing.T) {
	for _, mode := range Modes() {
		queries, window := []string{"marmalade", "pantry"}, 8192
		switch {
		case mode.baseline():
			queries = nil
		case mode == ModeMemGPT:
			window = 4096 // so small that an alert names a message of the turn itself
		}
		dir := t.TempDir()
		var first string
		for i, parallel := range []int{3, 1} {
			calls := openCalls(t, dir)
			model := &countedCalls{Model: centsModel(t, reporting{searching("It is on shelf 2.", queries...)})}
			judge := &countedCalls{Model: shelfJudge()}
			cfg := Config{Model: calls.Model(model, "here"), Judge: calls.Model(judge, "here"), Mode: mode, Parallel: parallel, Window: window}
			rep := run(t, cfg, longSuite(150, 2, 3, 40, 149))
			if rep.Failed > 0 || rep.Judge.N != 4 || rep.Cost == nil || *rep.Cost < 0.0008 {
				t.Errorf("%s: %+v", mode, rep)
			}
			asked, judged := int(model.n.Load()), int(judge.n.Load())
			stats := calls.Stats()
			switch {
			case i == 0:
				first = results(t, rep)
				if asked < 4 || judged != 4 || stats.Asked != asked+judged || stats.Known != 0 {
					t.Errorf("%s: %d and %d calls, %+v", mode, asked, judged, stats)
				}
			case asked != 0 || judged != 0 || stats.Asked != 0 || stats.Hits < 8:
				t.Errorf("%s: the second run makes %d and %d calls, %+v", mode, asked, judged, stats)
			default:
				if diff := cmp.Diff(first, results(t, rep)); diff != "" {
					t.Errorf("%s: %s", mode, diff)
				}
			}
		}
	}
}

// TestAStoppedRunGoesOn cancels a run in the middle and holds what the next one asks to what a whole run does.
func TestAStoppedRunGoesOn(t *testing.T) {
	answer := func() memgpt.Model { return reporting{searching("It is on shelf 2.", "marmalade", "pantry")} }
	suite := longSuite(60, 2, 3, 40, 59)
	whole := &countedCalls{Model: answer()}
	want := results(t, run(t, Config{Model: whole, Parallel: 1}, suite))
	if whole.n.Load() != 12 {
		t.Fatalf("%d calls", whole.n.Load())
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := openCalls(t, dir)
	stopped := &countedCalls{Model: answer(), before: func(n int) {
		if n == 8 { // the second one of the third question
			cancel()
		}
	}}
	rep, err := Run(ctx, Config{Open: newOpener(t).make, Model: calls.Model(stopped, ""), Parallel: 1}, suite)
	if !errors.Is(err, context.Canceled) || rep == nil || !rep.Partial || rep.N != 2 || rep.Done != 2 || rep.Planned != 4 || len(rep.Records) != 2 {
		t.Fatalf("%v, %+v", err, rep)
	}
	next := &countedCalls{Model: answer()}
	got := results(t, run(t, Config{Model: openCalls(t, dir).Model(next, ""), Parallel: 2}, suite))
	if next.n.Load() != 5 {
		t.Errorf("%d calls are made, of 12 of which 7 are known", next.n.Load())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func asking(text string) *memgpt.Request {
	return &memgpt.Request{Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "s"),
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)}}
}

// reply asks a model and returns what it says.
func reply(t *testing.T, m memgpt.Model, req *memgpt.Request) string {
	t.Helper()
	r, err := m.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Message.Said()
}

// TestWhatAKillLeaves cuts the file at each byte of its last line and changes each: no answer but that is lost, and none is wrong.
func TestWhatAKillLeaves(t *testing.T) {
	dir := t.TempDir()
	echo := func() memgpt.Model {
		return script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
			return script.Text("you said <" + req.Messages[1].Said() + ">")
		}})
	}
	m := openCalls(t, dir).Model(echo(), "")
	for _, text := range []string{"one", "two\n{", "三"} {
		reply(t, m, asking(text))
	}
	path := filepath.Join(dir, callsFile)
	data, err := os.ReadFile(path)
	if err != nil || bytes.Count(data, []byte("\n")) != 3 {
		t.Fatalf("%v: %s", err, data)
	}
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	for at := last; at < len(data); at++ {
		for _, damaged := range [][]byte{data[:at], slices.Concat(data[:at], []byte{data[at] ^ 1}, data[at+1:])} {
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			model := &countedCalls{Model: echo()}
			m := openCalls(t, dir).Model(model, "")
			for _, text := range []string{"one", "two\n{", "三", "four"} {
				if got := reply(t, m, asking(text)); got != "you said <"+text+">" {
					t.Fatalf("cut or changed at %d: %q", at, got)
				}
			}
			if n := model.n.Load(); n > 2 || n == 0 {
				t.Fatalf("cut or changed at %d: %d calls", at, n)
			}
			if again := openCalls(t, dir).Stats(); again.Known != 4 || again.Damaged > 1 {
				t.Fatalf("cut or changed at %d, and mended: %+v", at, again)
			}
		}
	}
}

// TestAnswersAreOnDiskFirst looks at the file when an answer is there, and lets two caches write to it.
func TestAnswersAreOnDiskFirst(t *testing.T) {
	dir := t.TempDir()
	a, b := openCalls(t, dir), openCalls(t, dir)
	for i := range 5 {
		for _, c := range []*CallCache{a, b} {
			who := fmt.Sprintf("%p", c)
			reply(t, c.Model(script.Of(script.Text("well")), who), asking(fmt.Sprint(i)))
			if got := openCalls(t, dir).Model(script.Of(), who); reply(t, got, asking(fmt.Sprint(i))) != "well" {
				t.Error("an answer is lost")
			}
		}
	}
	for _, c := range []*CallCache{a, b} { // neither sees that the other asks too
		reply(t, c.Model(script.Of(script.Text(fmt.Sprintf("I am %p", c))), ""), asking("who?"))
	}
	last := openCalls(t, dir)
	if s := last.Stats(); s.Known != 11 || s.Damaged != 0 || reply(t, last.Model(script.Of(), ""), asking("who?")) != fmt.Sprintf("I am %p", a) {
		t.Errorf("%+v", s)
	}
}

// TestTheKeyHoldsAllThatDecides changes one thing at a time.
func TestTheKeyHoldsAllThatDecides(t *testing.T) {
	calls := openCalls(t, t.TempDir())
	model := &countedCalls{Model: script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply { return script.Text(fmt.Sprint(n)) }})}
	m := calls.Model(model, "place")
	reply(t, m, asking("x"))
	for name, change := range map[string]func(*memgpt.Request){
		"model":    func(r *memgpt.Request) { r.Model = "m" },
		"text":     func(r *memgpt.Request) { r.Messages[1] = memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "y") },
		"role":     func(r *memgpt.Request) { r.Messages[1].Role = memgpt.RoleAssistant },
		"messages": func(r *memgpt.Request) { r.Messages = append(r.Messages, r.Messages[1]) },
		"call": func(r *memgpt.Request) {
			r.Messages[1].Parts = memgpt.Parts{memgpt.Call{ID: "1", Name: "f", Arguments: "{}"}}
		},
		"tools":    func(r *memgpt.Request) { r.Tools = []memgpt.ToolSpec{{Name: "f"}} },
		"schema":   func(r *memgpt.Request) { r.Tools = []memgpt.ToolSpec{{Name: "f", Parameters: json.RawMessage(`{}`)}} },
		"choice":   func(r *memgpt.Request) { r.Choice = memgpt.ChoiceNone },
		"reply":    func(r *memgpt.Request) { r.MaxTokens = 7 },
		"window":   func(r *memgpt.Request) { r.Window = 4096 },
		"purpose":  func(r *memgpt.Request) { r.Purpose = memgpt.PurposeSummary },
		"the form": func(r *memgpt.Request) { r.Schema = json.RawMessage(`{"type":"object"}`) },
	} {
		before := model.n.Load()
		for range 2 {
			req := asking("x")
			change(req)
			reply(t, m, req)
		}
		if n := model.n.Load() - before; n != 1 {
			t.Errorf("another %s: %d calls", name, n)
		}
	}
	before := model.n.Load()
	other := asking("x")
	other.Session = "another conversation"
	again := asking("x")
	again.Messages, again.Again = nil, func() []memgpt.Message { return asking("x").Messages }
	if reply(t, m, other) != "0" || reply(t, m, again) != "0" || model.n.Load() != before {
		t.Error("the same is asked again")
	}
	if reply(t, calls.Model(model, "another place"), asking("x")) == "0" || model.n.Load() != before+1 {
		t.Error("the answer of another place was given")
	}
	named := script.New(script.Config{Capabilities: memgpt.Capabilities{Name: "another"}, Replies: []script.Reply{script.Text("me")}})
	if reply(t, calls.Model(named, "place"), asking("x")) != "me" {
		t.Error("the answer of another model was given")
	}
}

// TestWhatIsKeptOfAnAnswer holds an answer from the cache to the model's own, streamed too.
func TestWhatIsKeptOfAnAnswer(t *testing.T) {
	want := script.Reply{Parts: memgpt.Parts{memgpt.Reasoning{Text: "hm", Provider: "p", Data: json.RawMessage(`{"sig":"<a&b>"}`)}, memgpt.Text{Text: "早 <b>&\u2028"},
		memgpt.Call{ID: "c1", Name: "f", Arguments: `{"a": "broken`}, memgpt.Call{ID: "c2", Name: "g", Arguments: "{}"}},
		Finish: memgpt.FinishLength, Usage: memgpt.Usage{Input: 1, Cached: 2, Written: 3, Output: 4, Reasoning: 5, Calls: 1, Priced: 1, Nano: 7}}
	dir := t.TempDir()
	direct, err := script.Of(want).Generate(t.Context(), asking("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		var text, thoughts strings.Builder
		calls := map[int]memgpt.Call{}
		got, err := openCalls(t, dir).Model(script.Of(want), "").Generate(t.Context(), asking("x"), func(d memgpt.Delta) {
			text.WriteString(d.Text)
			thoughts.WriteString(d.Reasoning)
			if c := d.Call; c != nil {
				was := calls[c.Index]
				calls[c.Index] = memgpt.Call{ID: was.ID + c.ID, Name: was.Name + c.Name, Arguments: was.Arguments + c.Arguments}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(direct, got); diff != "" {
			t.Errorf("run %d: %s", i, diff)
		}
		if text.String() != "早 <b>&\u2028" || thoughts.String() != "hm" || len(calls) != 2 || calls[0] != want.Parts[2] || calls[1] != want.Parts[3] {
			t.Errorf("run %d: %q, %q, %v were streamed", i, text.String(), thoughts.String(), calls)
		}
	}
}

func TestFailuresAreNotKept(t *testing.T) {
	down := memgpt.Errorf(memgpt.CodeModelDown, "it is down")
	calls := openCalls(t, t.TempDir())
	m := calls.Model(script.Of(script.Fail(down), script.Text("up"), script.Text("never asked")), "")
	if _, err := m.Generate(t.Context(), asking("x"), nil); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if reply(t, m, asking("x")) != "up" {
			t.Error("the answer was not kept")
		}
	}
	if s := calls.Stats(); s.Asked != 1 || s.Hits != 1 {
		t.Errorf("%+v", s)
	}
}

// TestAskedAgain asks the same twice in a turn: the second answer is another one, in each repetition of the turn the same.
func TestAskedAgain(t *testing.T) {
	dir := t.TempDir()
	m := openCalls(t, dir).Model(script.Of(script.Text("a"), script.Fail(memgpt.Errorf(memgpt.CodeModelDown, "down")), script.Text("b")), "")
	turn := turnModel(m)
	first := reply(t, turn, asking("x"))
	if _, err := turn.Generate(t.Context(), asking("x"), nil); err == nil {
		t.Error("the failure is gone")
	}
	if second := reply(t, turn, asking("x")); first != "a" || second != "b" {
		t.Errorf("%s, %s", first, second)
	}
	again := turnModel(openCalls(t, dir).Model(script.Of(), ""))
	if first, second := reply(t, again, asking("x")), reply(t, again, asking("x")); first != "a" || second != "b" {
		t.Errorf("in the next run %s, %s", first, second)
	}
}

// TestEqualRequestsAtOnce has many ask the same while the first answer is under way.
func TestEqualRequestsAtOnce(t *testing.T) {
	gate := script.NewGate()
	calls := openCalls(t, t.TempDir())
	model := &countedCalls{Model: script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if n == 0 {
			return script.Fail(memgpt.Errorf(memgpt.CodeModelDown, "down")).Held(gate)
		}
		return script.Text("well")
	}})}
	m := calls.Model(model, "")
	var wait sync.WaitGroup
	var failed, right atomic.Int32
	ask := func() {
		if r, err := m.Generate(t.Context(), asking("x"), nil); err != nil {
			failed.Add(1)
		} else if r.Message.Said() == "well" {
			right.Add(1)
		}
	}
	wait.Go(ask)
	<-gate.Entered()
	for range 9 {
		wait.Go(ask)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := m.Generate(ended, asking("x"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("who waited no longer got %v", err)
	}
	gate.Open()
	wait.Wait()
	if failed.Load() != 1 || right.Load() != 9 || model.n.Load() != 2 {
		t.Errorf("%d failed, %d are right, %d calls", failed.Load(), right.Load(), model.n.Load())
	}
}

// TestAnAnswerThatCantBeKept ends the run, in a baseline, an agent and a judge alike.
func TestAnAnswerThatCantBeKept(t *testing.T) {
	for _, mode := range []Mode{ModeMemGPT, ModeFull} {
		for _, judged := range []bool{false, true} {
			calls := openCalls(t, t.TempDir())
			if err := calls.Close(); err != nil {
				t.Fatal(err)
			}
			cfg := Config{Open: newOpener(t).make, Model: searching("It is on shelf 2."), Mode: mode, Parallel: 1}
			if judged {
				cfg.Judge = calls.Model(shelfJudge(), "")
			} else {
				cfg.Model = calls.Model(cfg.Model, "")
			}
			if rep, err := Run(t.Context(), cfg, longSuite(5, 2, 3)); !errors.Is(err, errNotKept) || rep != nil {
				t.Errorf("%s: %v, %+v", mode, err, rep)
			}
		}
	}
	if _, err := OpenCallCache(write(t, "file", "x")); err == nil {
		t.Error("a file was taken for a directory")
	}
}
