package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
)

// countingCommits notes the records of each commit.
type countingCommits struct {
	store.Store
	records []string
	refuse  int // commits with a record that are refused as conflicts
}

func (c *countingCommits) Commit(ctx context.Context, commit *store.Commit) (store.Committed, error) {
	for _, r := range commit.Records {
		c.records = append(c.records, r.Kind+" "+r.ID)
		if c.refuse > 0 {
			c.refuse--
			return store.Committed{}, memgpt.Errorf(memgpt.CodeConflict, "somebody else wrote it")
		}
	}
	return c.Store.Commit(ctx, commit)
}

// factorOf returns the stored factor of a model; 0 where there is none.
func factorOf(t *testing.T, s store.Store, model string) (f float64) {
	t.Helper()
	rec, err := s.Record(t.Context(), "", "calibration", model)
	if memgpt.CodeOf(err) == memgpt.CodeNotFound {
		return 0
	}
	must(t, err)
	var data struct{ Factor *float64 }
	data.Factor = &f
	must(t, json.Unmarshal(rec.Data, &data))
	return f
}

// TestCalibrationIsKept has a server that counts a token a byte: what a process learned of it the next one knows, so that
// its first request, which fills the window, is not refused.
func TestCalibrationIsKept(t *testing.T) {
	const window = 24_000
	cfg := script.ServerConfig{Window: window, Config: script.Config{
		Func:    func(n int, _ *memgpt.Request) script.Reply { return script.Say(fmt.Sprint("好 ", n)) },
		Summary: func(*memgpt.Request) script.Reply { return script.Text("他们谈过话。\nSearch for: 话") }}}
	o := options{window: window}
	u := newUpstream(t, cfg, o)
	text := strings.Repeat("请记住我们说过的每一句话和每一个数字七三九一。", 20)
	for i := range 40 {
		if said, turn := u.say(fmt.Sprint("n=", i, " ", text)); len(said) == 0 || turn.State != memgpt.TurnDone {
			t.Fatalf("turn %d: %q %+v", i, said, turn)
		}
	}
	learned := u.count.Factor("script")
	if refused := u.server.Refused(); refused > 1 {
		t.Errorf("%d requests of one conversation were over the window", refused)
	}
	if kept := factorOf(t, u.base, "script"); learned < 1.5 || kept < learned/1.02 || kept > learned*1.02 {
		t.Errorf("learned %v, kept %v", learned, kept)
	}
	refused := u.server.Refused()
	model := u.config.Model
	u.configure(nil, o) // a new process, whose counter knows nothing
	u.reconfigure(func() { u.config.Model = model })
	if f := u.count.Factor("script"); f != 1 {
		t.Fatalf("a new counter has the factor %v", f)
	}
	for i := range 20 {
		u.say(fmt.Sprint("again n=", i, " ", text))
		if f := u.count.Factor("script"); i == 0 && f < learned/1.02 {
			t.Errorf("the new process counts with %v", f)
		}
	}
	if n := u.server.Refused(); n != refused {
		t.Errorf("%d requests of the new process were over the window", n-refused)
	}
}

func reporting(factor float64, count func(*memgpt.Request) int) *script.Model {
	return script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		return script.Say("ok").Using(memgpt.Usage{Input: int(float64(count(req)) * factor), Output: 3})
	}})
}

func TestCalibrationIsWrittenSeldom(t *testing.T) {
	var e *env
	counting := &countingCommits{}
	factor := 1.4
	count := func(req *memgpt.Request) int { return countOf(req, e.count) }
	m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		return script.Say("ok").Using(memgpt.Usage{Input: int(float64(count(req)) * factor), Output: 3})
	}})
	e = newEnv(t, m, options{wrap: func(s store.Store) store.Store { counting.Store = s; return counting }})
	for range 20 {
		e.say("hello")
	}
	if !slices.Equal(counting.records, []string{"calibration script"}) {
		t.Errorf("written: %q", counting.records)
	}
	factor = 1.41
	for range 20 {
		e.say("hello")
	}
	if len(counting.records) != 1 {
		t.Errorf("a move of less than 2 %% was written: %q", counting.records)
	}
	factor = 1.6
	e.say("hello")
	if kept := factorOf(t, e.base, "script"); len(counting.records) != 2 || kept < 1.59 || kept > 1.61 {
		t.Errorf("%q, kept %v", counting.records, kept)
	}
}

// TestCalibrationThatConflicts has another process write the record first: the turn is not lost, and a later one writes.
func TestCalibrationThatConflicts(t *testing.T) {
	var e *env
	counting := &countingCommits{refuse: 1}
	m := reporting(1.5, func(req *memgpt.Request) int { return countOf(req, e.count) })
	e = newEnv(t, m, options{wrap: func(s store.Store) store.Store { counting.Store = s; return counting }})
	if said, turn := e.say("hello"); !slices.Equal(said, []string{"ok"}) || turn.State != memgpt.TurnDone || m.Count() != 1 {
		t.Errorf("%q %+v after %d calls", said, turn, m.Count())
	}
	if kept := factorOf(t, e.base, "script"); kept != 0 {
		t.Errorf("kept %v", kept)
	}
	e.say("hello")
	if kept := factorOf(t, e.base, "script"); kept < 1.49 || kept > 1.51 {
		t.Errorf("kept %v", kept)
	}
}

// TestCalibrationThatIsNonsense has records that no sane provider leads to: none of them may keep an agent from running.
func TestCalibrationThatIsNonsense(t *testing.T) {
	for _, data := range []string{`"x"`, `{"factor":-3}`, `{"factor":0}`, `{}`, `{"factor":1e300}`} {
		var e *env
		m := reporting(1.2, func(req *memgpt.Request) int { return countOf(req, e.count) })
		e = newEnv(t, m, options{})
		_, err := e.base.Commit(t.Context(), &store.Commit{Now: e.now, Records: []store.Record{{Kind: "calibration", ID: "script", Data: json.RawMessage(data)}}})
		must(t, err)
		for range 2 {
			if _, turn := e.say("hello"); turn.State != memgpt.TurnDone {
				t.Errorf("%s: %+v", data, turn)
			}
		}
		if f := e.count.Factor("script"); f < 1.19 || f > 1.21 {
			t.Errorf("%s: the factor is %v", data, f)
		}
	}
}
