package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/tool"
)

func TestOneStepTurn(t *testing.T) {
	m := script.Of(script.Say("Hello!"))
	e := newEnv(t, m, options{zone: "America/New_York"})
	counted := &countingStore{Store: e.store}
	e.store = counted
	e.configure(m, options{})
	said, turn := e.say("hi")
	if d := cmp.Diff([]string{"Hello!"}, said); d != "" {
		t.Error(d)
	}
	if turn.State != memgpt.TurnDone || turn.Stop != memgpt.StopEnd || turn.Steps != 1 || turn.Spoke != 1 {
		t.Errorf("turn: %+v", turn)
	}
	if counted.commits != 2 {
		t.Errorf("%d commits, want 2: acceptance and step", counted.commits)
	}
	req := m.Requests()[0]
	user := req.Messages[len(req.Messages)-1].Said()
	want := `{"type":"user_message","message":"hi","time":"2026-04-06T12:51:01-04:00"}`
	if user != want {
		t.Errorf("the user's message on the wire is %s, want %s", user, want)
	}
	if events, err := e.store.Events(t.Context(), store.EventRange{Thread: e.thread}); err != nil || len(events) != 0 {
		t.Errorf("pending events: %v, %v", events, err)
	}
}

type countingStore struct {
	store.Store
	commits int
}

func (c *countingStore) Commit(ctx context.Context, m *store.Commit) (store.Committed, error) {
	c.commits++
	return c.Store.Commit(ctx, m)
}

func TestChainedSearchFindsWhatWasSaid(t *testing.T) {
	var hits string
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == memgpt.RoleTool && strings.Contains(last.Said(), "Showing"):
			hits = last.Said()
			return script.Say("7391")
		case strings.Contains(last.Said(), "what is my bike code"):
			return script.Call("conversation_search", "query", "bike code", "request_heartbeat", true)
		}
		return script.Say(fmt.Sprintf("ok %d", n))
	}})
	e := newEnv(t, m, options{})
	e.say("my bike code is 7391")
	for i := range 30 {
		e.say(fmt.Sprintf("turn %d about the weather", i))
	}
	said, turn := e.say("what is my bike code?")
	if d := cmp.Diff([]string{"7391"}, said); d != "" {
		t.Error(d)
	}
	if turn.Steps != 2 {
		t.Errorf("%d steps, want 2", turn.Steps)
	}
	var res struct{ Message string }
	must(t, json.Unmarshal([]byte(hits), &res))
	lines := strings.Split(res.Message, "\n")
	if len(lines) < 2 || !strings.Contains(lines[1], "my bike code is 7391") {
		t.Errorf("the first hit is not the statement:\n%s", res.Message)
	}
	if strings.Contains(res.Message, "what is my bike code") {
		t.Errorf("the present question is among the hits:\n%s", res.Message)
	}
}

func TestExecutorRepairsAndReports(t *testing.T) {
	cases := []struct {
		name  string
		reply []script.Reply
		said  []string
		block string
		want  string // in the second request's last message
	}{
		{"prose is spoken", []script.Reply{script.Text("Hi there!")}, []string{"Hi there!"}, "", ""},
		{"text and the same call speak once", []script.Reply{script.Calls(script.Text("Hi"), script.Say("Hi"))}, []string{"Hi"}, "", ""},
		{"thought beside a call", []script.Reply{script.Calls(script.Text("I think"), script.Say("Hi"))}, []string{"Hi"}, "", ""},
		{"unknown name", []script.Reply{script.Call("send_mail", "x", 1), script.Say("ok")}, []string{"ok"}, "", "there is no function"},
		{"name in other writing", []script.Reply{script.Call("functions.sendMessage", "message", "x")}, []string{"x"}, "", ""},
		{"argument missing", []script.Reply{script.Call("send_message"), script.Say("ok")}, []string{"ok"}, "", "message"},
		{"extras dropped", []script.Reply{script.Call("send_message", "inner_thoughts", "x", "message", "hi", "mood", 1)}, []string{"hi"}, "", ""},
		{"not JSON", []script.Reply{script.Call("core_memory_append", `{"label": 12 34}}}`), script.Say("ok")}, []string{"ok"}, "", "Failed"},
		{"empty brace", []script.Reply{script.Call("send_message", "{"), script.Say("ok")}, []string{"ok"}, "", ""},
		{"object for text", []script.Reply{script.Calls(script.Call("core_memory_append", "label", "human", "content",
			map[string]any{"event": "Birthday", "date": "2023-1-1"}, "request_heartbeat", "true")), script.Say("ok")}, []string{"ok"},
			`{"date":"2023-1-1","event":"Birthday"}`, "OK"},
		{"older spelling", []script.Reply{script.Calls(script.Call("core_memory_append", "name", "human", "content", "x"), script.Say("y"))}, []string{"y"}, "x", ""},
		{"unknown label", []script.Reply{script.Call("core_memory_append", "label", "section", "content", "x"), script.Say("ok")}, []string{"ok"}, "", "persona, human"},
		{"fenced JSON and invented result", []script.Reply{script.Text("```json\n{\"name\":\"core_memory_append\",\"arguments\":{\"label\":\"human\",\"content\":\"Chad\"}}\n```\n" +
			"{\"function\":\"send_message\",\"params\":{\"message\":\"noted\"}}\nFUNCTION RETURN: {\"status\": \"OK\"}")}, []string{"noted"}, "Chad", ""},
		{"duplicate call", []script.Reply{script.Calls(script.Say("x"), script.Say("x")), script.Say("y")}, []string{"x", "y"}, "", "same call"},
		{"empty old text", []script.Reply{script.Call("core_memory_replace", "label", "persona", "old_content", "", "new_content", "Z"), script.Say("ok")}, []string{"ok"}, "", "Failed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := script.Of(c.reply...)
			e := newEnv(t, m, options{})
			said, turn := e.say("hello")
			if d := cmp.Diff(c.said, said); d != "" {
				t.Errorf("said: %s\nturn %+v", d, turn)
			}
			if got := e.block("human"); got != c.block {
				t.Errorf("block is %q, want %q", got, c.block)
			}
			if c.want != "" {
				req := m.Requests()[1]
				if last := req.Messages[len(req.Messages)-1].Said(); !strings.Contains(last, c.want) {
					t.Errorf("the model is told %s, want %q in it", last, c.want)
				}
			}
			for i, req := range m.Requests() {
				if err := checkV(req, e.count, 1, 16384, "hello"); err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
		})
	}
}

func TestSourceCodeArrivesByteForByte(t *testing.T) {
	text := "printf(\"%d\\n\", a[\"x\"]);\tend C:\\path"
	e := newEnv(t, script.Of(script.Say(text)), options{})
	if said, _ := e.say("code?"); len(said) != 1 || said[0] != text {
		t.Errorf("said %q", said)
	}
}

func TestTruncatedCallIsNotRun(t *testing.T) {
	cut := script.Call("send_message", `{"message": "long te`)
	cut.Finish = memgpt.FinishCalls
	m := script.Of(cut, cut, cut, script.Say("next"))
	e := newEnv(t, m, options{})
	said, turn := e.say("hello")
	if len(said) != 0 || turn.Stop != memgpt.StopTruncated || len(m.Requests()) != 3 {
		t.Errorf("said %q, stop %s, %d requests", said, turn.Stop, len(m.Requests()))
	}
	if said, turn = e.say("again"); len(said) != 1 || !turn.Stop.Good() {
		t.Errorf("the next message: %q %+v", said, turn)
	}
}

func TestReplyRules(t *testing.T) {
	t.Run("text after an answer is monologue", func(t *testing.T) {
		e := newEnv(t, script.Of(script.Say("a").Heartbeat(), script.Text("thinking on")), options{})
		said, turn := e.say("hi")
		if len(said) != 1 || !turn.Stop.Good() {
			t.Errorf("%q %+v", said, turn)
		}
	})
	t.Run("text in a timer's turn is monologue", func(t *testing.T) {
		e := newEnv(t, script.Of(script.Text("all quiet")), options{})
		if said, turn := e.system(memgpt.EventTimer, "tick"); len(said) != 0 || turn.Stop != memgpt.StopMonologue {
			t.Errorf("%q %+v", said, turn)
		}
	})
	t.Run("a silent yield says so", func(t *testing.T) {
		e := newEnv(t, script.Of(script.Call("yield")), options{})
		if said, turn := e.say("hi"); len(said) != 0 || turn.Stop != memgpt.StopSilent {
			t.Errorf("%q %+v", said, turn)
		}
	})
	t.Run("a forgotten flag is set right", func(t *testing.T) {
		e := newEnv(t, script.Of(script.Call("core_memory_append", "label", "human", "content", "x"), script.Say("done")), options{})
		if said, _ := e.say("hi"); len(said) != 1 {
			t.Errorf("%q", said)
		}
	})
	t.Run("native text speaks and calls go on", func(t *testing.T) {
		m := script.Of(script.Calls(script.Text("Let me see."), script.Call("conversation_search", "query", "x")), script.Text("Nothing."))
		e := newEnv(t, m, options{protocol: memgpt.ProtocolNative})
		if said, _ := e.say("hi"); cmp.Diff([]string{"Let me see.", "Nothing."}, said) != "" {
			t.Errorf("%q", said)
		}
		for _, s := range m.Requests()[0].Tools {
			if s.Name == "send_message" || strings.Contains(string(s.Parameters), "request_heartbeat") {
				t.Errorf("native offers %s %s", s.Name, s.Parameters)
			}
		}
	})
	t.Run("empty replies end with a clear stop", func(t *testing.T) {
		e := newEnv(t, script.Of(script.Text(""), script.Text(" "), script.Say("x")), options{})
		said, turn := e.say("hi")
		if len(said) != 1 || turn.Usage.Calls != 3 {
			t.Errorf("%q %+v", said, turn)
		}
	})
}

func TestRepeatedCallsAndStepsAreBounded(t *testing.T) {
	m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply {
		return script.Call("conversation_search", "query", "same", "request_heartbeat", true)
	}})
	e := newEnv(t, m, options{})
	_, turn := e.system(memgpt.EventTimer, "tick")
	if turn.Stop != memgpt.StopRepeated || turn.Steps > 5 {
		t.Errorf("%+v", turn)
	}
	m = script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		return script.Call("conversation_search", "query", fmt.Sprint("other ", n), "request_heartbeat", true)
	}})
	e = newEnv(t, m, options{policy: memgpt.Policy{MaxSteps: 7}})
	if _, turn = e.say("go"); turn.Stop != memgpt.StopMaxSteps || turn.Steps != 7 {
		t.Errorf("%+v", turn)
	}
}

func TestModelFailureKeepsTheMessageAndTheNextWorks(t *testing.T) {
	for _, code := range []memgpt.Code{memgpt.CodeModelRequest, memgpt.CodeModelAuth, memgpt.CodeModelQuota, memgpt.CodeModelLimit,
		memgpt.CodeModelDown, memgpt.CodeModelTimeout} {
		for step := 1; step <= 2; step++ {
			t.Run(fmt.Sprint(code, step), func(t *testing.T) {
				replies := []script.Reply{script.Fail(memgpt.Errorf(code, "boom"))}
				if step == 2 {
					replies = append([]script.Reply{script.Call("conversation_search", "query", "x", "request_heartbeat", true)}, replies...)
				}
				m := script.Of(append(replies, script.Say("fine"))...)
				e := newEnv(t, m, options{})
				_, turn := e.say("first")
				if turn.State != memgpt.TurnFailed || turn.Stop != memgpt.StopModel || !strings.Contains(turn.Error, "boom") {
					t.Errorf("%+v", turn)
				}
				said, turn := e.say("second")
				if len(said) != 1 || turn.State != memgpt.TurnDone {
					t.Errorf("%q %+v", said, turn)
				}
				reqs := m.Requests()
				last := reqs[len(reqs)-1]
				if err := checkV(last, e.count, 1, 16384, "second"); err != nil {
					t.Error(err)
				}
				if n := strings.Count(fmt.Sprint(last.Messages), `"message":"first"`); n != 1 {
					t.Errorf("the first message is %d times in the next prompt", n)
				}
			})
		}
	}
}

func TestCancelledTurnIsNotAnswered(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if n == 0 {
			cancel(memgpt.Errorf(memgpt.CodeCancelled, "cancelled"))
			return script.Say("a poem")
		}
		return script.Say("4")
	}})
	e := newEnv(t, m, options{})
	ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "write a poem"))
	must(t, err)
	turn, err := e.handle(ctx, ev)
	must(t, err)
	if turn.State != memgpt.TurnCancelled || turn.Stop != memgpt.StopCancelled {
		t.Errorf("%+v", turn)
	}
	said, _ := e.say("2+2?")
	if d := cmp.Diff([]string{"4"}, said); d != "" {
		t.Error(d)
	}
	reqs := m.Requests()
	if last := fmt.Sprint(reqs[len(reqs)-1].Messages); !strings.Contains(last, "cancelled what stands above") {
		t.Errorf("the next prompt doesn't show the cancel: %s", last)
	}
}

func TestInterruptedTurnStaysPending(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if n == 0 {
			cancel(errors.New("stopping"))
		}
		return script.Say("answer")
	}})
	e := newEnv(t, m, options{})
	ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "question"))
	must(t, err)
	if _, err := e.handle(ctx, ev); err == nil {
		t.Fatal("an interrupted run returned nil")
	}
	pending, err := e.store.Events(t.Context(), store.EventRange{Thread: e.thread})
	if err != nil || len(pending) != 1 {
		t.Fatalf("pending: %v, %v", pending, err)
	}
	if turn, err := e.handle(t.Context(), pending[0]); err != nil || turn.Spoke != 1 {
		t.Errorf("%+v, %v", turn, err)
	}
}

func TestOutsideCallIsCommittedBeforeItRuns(t *testing.T) {
	var open []memgpt.OpenCall
	var e *env
	ring := tool.Tool{Spec: memgpt.ToolSpec{Name: "ring", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
		Call: func(context.Context, tool.Invocation) (string, error) {
			st, err := store.Load(context.Background(), e.base, "", e.thread)
			must(t, err)
			open = st.Thread.Open
			return "rung", nil
		}}
	m := script.Of(script.Calls(script.Call("core_memory_append", "label", "human", "content", "a"), script.Call("ring"), script.Say("done")))
	e = newEnv(t, m, options{tools: []tool.Tool{ring}})
	said, _ := e.say("ring the bell")
	if len(open) != 2 || open[0].Name != "ring" || open[1].Name != "send_message" {
		t.Errorf("open while it ran: %+v", open)
	}
	if len(said) != 1 || e.block("human") != "a" || len(e.state.Thread.Open) != 0 {
		t.Errorf("said %q, block %q, open %+v", said, e.block("human"), e.state.Thread.Open)
	}
}

func TestOwnToolPanicsAndErrorsReachTheModel(t *testing.T) {
	boom, err := memtool.New("boom", "breaks", memgpt.EffectRead, func(context.Context, struct{}) (string, error) { panic("ouch") })
	must(t, err)
	fails, err := memtool.New("fails", "fails", memgpt.EffectOutside, func(context.Context, struct{}) (string, error) {
		return "", errors.New("no line")
	})
	must(t, err)
	m := script.Of(script.Call("boom"), script.Call("fails"), script.Say("sorry"))
	e := newEnv(t, m, options{tools: []tool.Tool{boom, fails}})
	said, turn := e.say("go")
	if len(said) != 1 || turn.Steps != 3 {
		t.Errorf("%q %+v", said, turn)
	}
	all := fmt.Sprint(m.Requests()[2].Messages)
	if !strings.Contains(all, "ouch") || !strings.Contains(all, "no line") {
		t.Errorf("the model was not told: %s", all)
	}
}
