package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"memgpt"
	"memgpt/host"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/tool"
)

// talker answers users by a word, ignores alerts, and folds summaries by a line that names them.
func talker() *script.Model {
	return script.New(script.Config{
		Func:    func(n int, _ *memgpt.Request) script.Reply { return script.Say(fmt.Sprint("reply ", n)) },
		Summary: func(*memgpt.Request) script.Reply { return script.Text("They talked.\nSearch for: talk") },
	})
}

// requests splits recorded requests into steps and summaries.
func requests(m *script.Model) (steps, summaries []*memgpt.Request) {
	for _, r := range m.Requests() {
		if r.Purpose == memgpt.PurposeSummary {
			summaries = append(summaries, r)
		} else {
			steps = append(steps, r)
		}
	}
	return steps, summaries
}

func count(req *memgpt.Request, typ memgpt.EventType) (n int) {
	for i := range req.Messages {
		if req.Messages[i].Role == memgpt.RoleUser && strings.HasPrefix(req.Messages[i].Said(), `{"type":"`+string(typ)+`"`) {
			n++
		}
	}
	return n
}

func (e *env) checkAll(m *script.Model, window int) {
	e.t.Helper()
	for i, req := range m.Requests() {
		if err := checkV(req, e.count, 1, window, ""); err != nil {
			e.t.Errorf("request %d: %v", i, err)
		}
	}
}

func flushes(updates []memgpt.Update) (out []memgpt.Flushed) {
	for _, u := range updates {
		if f, ok := u.(memgpt.Flushed); ok {
			out = append(out, f)
		}
	}
	return out
}

func pressures(updates []memgpt.Update) (n int) {
	for _, u := range updates {
		if _, ok := u.(memgpt.Pressured); ok {
			n++
		}
	}
	return n
}

func TestAlertOnceAFillThenFlush(t *testing.T) {
	windows := []int{3500, 4096, 8192, 16384}
	if raced {
		windows = windows[:3]
	}
	for _, window := range windows {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			m := talker()
			e := newEnv(t, m, options{window: window})
			for i := 0; len(flushes(e.seen)) < 3; i++ {
				if i > 2000 {
					t.Fatal("no flush")
				}
				said, turn := e.say(fmt.Sprintf("message %d: %s", i, strings.Repeat("some words about it ", 12)))
				if len(said) < 1 || !turn.Stop.Good() {
					t.Fatalf("turn %d: said %q, %+v", i, said, turn)
				}
			}
			e.checkAll(m, window)
			if n, f := pressures(e.seen), len(flushes(e.seen)); n < f || n > f+1 {
				t.Errorf("%d alerts for %d flushes", n, f)
			}
			in, err := e.kernel.Inspect(e.state)
			must(t, err)
			if in.Total > in.Target {
				t.Errorf("after the flush the request has %d tokens, over the target of %d", in.Total, in.Target)
			}
			if in.Total < in.Target-in.Target/2 && window > 4096 {
				t.Errorf("the flush went far below its mark: %d of %d", in.Total, in.Target)
			}
			_, sums := requests(m)
			if len(sums) != len(flushes(e.seen)) {
				t.Errorf("%d summary requests for %d flushes", len(sums), len(flushes(e.seen)))
			}
			head := in.Request.Messages[1].Said()
			if !strings.Contains(head, `"type":"summary"`) || !strings.Contains(head, "They talked.") ||
				!strings.Contains(head, "earlier messages of this conversation (2026-04-06T") {
				t.Errorf("the head of the queue is %s", head)
			}
		})
	}
}

func TestAlertStandsBeforeTheUsersMessage(t *testing.T) {
	m := talker()
	e := newEnv(t, m, options{window: 4096})
	for pressures(e.seen) == 0 {
		e.say(strings.Repeat("some words about it ", 30))
	}
	steps, _ := requests(m)
	for _, req := range steps {
		if count(req, memgpt.EventAlert) == 0 {
			continue
		}
		msgs := req.Messages
		last := len(msgs) - 1
		if !strings.Contains(msgs[last].Said(), `"type":"user_message"`) && !strings.Contains(msgs[last].Said(), `"type":"system_alert"`) {
			t.Errorf("the last message is %s", msgs[last].Said())
		}
		return
	}
	t.Error("no request holds the alert")
}

func TestAlertEarnsAStepWhenTheTurnWouldEnd(t *testing.T) {
	m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		if strings.Contains(req.Messages[len(req.Messages)-1].Said(), `"type":"system_alert"`) {
			return script.Call("archival_memory_insert", "content", "saved")
		}
		return script.Say(strings.Repeat("a long answer of the agent ", 60))
	}})
	e := newEnv(t, m, options{window: 4096})
	for pressures(e.seen) == 0 {
		said, turn := e.say("tell me")
		if len(said) != 1 || !turn.Stop.Good() {
			t.Fatalf("said %d, turn %+v", len(said), turn)
		}
		if pressures(e.seen) > 0 && turn.Steps != 2 {
			t.Errorf("the turn of the alert has %d steps, want one more for it", turn.Steps)
		}
	}
	if hits, err := e.config.Search.Search(t.Context(), tool.Query{Owner: e.agent.ID, Text: "saved", Size: 5}); err != nil || hits.Total != 1 {
		t.Errorf("what the model saved on the alert: %+v, %v", hits, err)
	}
}

func TestModelEvictsWithItsOwnSummary(t *testing.T) {
	const summary = "We spoke of words; his code is 7391.\nSearch for: code"
	m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		last := req.Messages[len(req.Messages)-1]
		if count(req, memgpt.EventAlert) > 0 && last.Role == memgpt.RoleUser {
			return script.Calls(script.Call("conversation_evict", "summary", summary), script.Say("done"))
		}
		return script.Say("ok")
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("the manager's") }})
	e := newEnv(t, m, options{window: 4096})
	for len(flushes(e.seen)) == 0 {
		e.say(strings.Repeat("some words about it ", 30))
	}
	f := flushes(e.seen)[0]
	if !f.ByModel || f.Messages == 0 {
		t.Errorf("%+v", f)
	}
	e.say("next")
	steps, sums := requests(m)
	if len(sums) != 0 {
		t.Errorf("%d calls of the summarizer", len(sums))
	}
	head := steps[len(steps)-1].Messages[1].Said()
	var env struct{ Message string }
	must(t, json.Unmarshal([]byte(head), &env))
	if !strings.HasSuffix(env.Message, summary) {
		t.Errorf("the summary does not stand verbatim: %s", env.Message)
	}
	e.checkAll(m, 4096)
}

func TestOneMessageOverTheWindow(t *testing.T) {
	big := strings.Repeat("Ein sehr langer Text mit Umlauten äöü. ", 3000)
	m := talker()
	e := newEnv(t, m, options{window: 4096})
	e.say("before")
	said, turn := e.say(big)
	if len(said) == 0 || !turn.Stop.Good() {
		t.Fatalf("%q %+v", said, turn)
	}
	if said, turn = e.say("hi"); len(said) == 0 || !turn.Stop.Good() {
		t.Fatalf("%q %+v", said, turn)
	}
	e.checkAll(m, 4096)
	var id string
	for _, entry := range e.log() {
		if entry.Message.Said() == big {
			id = entry.ID
		}
	}
	if id == "" {
		t.Fatal("the message is not stored whole")
	}
	found := false
	for _, req := range m.Requests() {
		for i := range req.Messages {
			found = found || strings.Contains(req.Messages[i].Said(), `"id":"`+id+`"`) && strings.Contains(req.Messages[i].Said(), "memory_read")
		}
	}
	if !found {
		t.Error("it is not shown cut with its id")
	}
}

func TestMegabytesOfToolOutput(t *testing.T) {
	big := strings.Repeat("é", 2_000_000)
	dump, err := memtool.New("dump", "dumps", memgpt.EffectRead, func(context.Context, struct{}) (string, error) { return big, nil })
	must(t, err)
	var replies []script.Reply
	for range 10 {
		replies = append(replies, script.Say("ok"))
	}
	m := script.Of(append(replies, script.Call("dump", "request_heartbeat", true), script.Say("done"))...)
	e := newEnv(t, m, options{window: 8192, tools: []tool.Tool{dump}})
	for i := range 10 {
		e.say(fmt.Sprintf("marker-%d", i))
	}
	if said, _ := e.say("dump it"); !slices.Equal(said, []string{"done"}) {
		t.Fatalf("%q", said)
	}
	reqs := m.Requests()
	last := fmt.Sprint(reqs[len(reqs)-1].Messages)
	for i := range 10 {
		if !strings.Contains(last, fmt.Sprintf("marker-%d", i)) {
			t.Errorf("message %d was squeezed out", i)
		}
	}
	if !strings.Contains(last, `"length":2000000`) {
		t.Error("no notice of what was cut")
	}
	e.checkAll(m, 8192)
	whole := slices.ContainsFunc(e.log(), func(e memgpt.Entry) bool { return e.Message.Said() == big })
	if !whole {
		t.Error("the output is not stored whole")
	}
}

func TestManyLargeResultsInOneStep(t *testing.T) {
	big := strings.Repeat("word ", 20000)
	dump, err := memtool.New("dump", "dumps", memgpt.EffectRead, func(_ context.Context, _ struct {
		N int `json:"n"`
	}) (string, error) {
		return big, nil
	})
	must(t, err)
	var calls []script.Reply
	for i := range 12 {
		calls = append(calls, script.Call("dump", "n", i, "request_heartbeat", true))
	}
	m := script.Of(script.Calls(calls...), script.Say("done"))
	e := newEnv(t, m, options{window: 4096, tools: []tool.Tool{dump}})
	if said, turn := e.say(big); !slices.Equal(said, []string{"done"}) {
		t.Fatalf("%q %+v", said, turn)
	}
	e.checkAll(m, 4096)
}

func TestFailedSummaryLosesNothingAndIsRetried(t *testing.T) {
	fails := 0
	m := script.New(script.Config{
		Func: func(n int, _ *memgpt.Request) script.Reply { return script.Say(fmt.Sprint("reply ", n)) },
		Summary: func(req *memgpt.Request) script.Reply {
			if fails < 2 {
				fails++
				return script.Reply{Parts: memgpt.Parts{memgpt.Call{Name: "core_memory_append", Arguments: "{}"}}}
			}
			return script.Text("All folded.\nSearch for: it")
		},
	})
	e := newEnv(t, m, options{window: 4096})
	for len(flushes(e.seen)) == 0 {
		said, turn := e.say(strings.Repeat("some words about it ", 30))
		if len(said) == 0 || turn.State != memgpt.TurnDone {
			t.Fatalf("%q %+v", said, turn)
		}
	}
	if f := flushes(e.seen)[0]; f.Failed == "" {
		t.Fatalf("the flush did not fail: %+v", f)
	}
	if th := e.state.Thread; th.Folded == th.Head || th.Summary.Failed == "" {
		t.Errorf("thread %+v", th)
	}
	e.say("next")
	if th := e.state.Thread; th.Folded != th.Head || th.Summary.Failed != "" || !strings.Contains(th.Summary.Text, "All folded.") {
		t.Errorf("the fold was not done later: %+v", th)
	}
	_, sums := requests(m)
	for _, s := range sums {
		if len(s.Tools) != 0 {
			t.Error("a summary request carries tools")
		}
	}
	e.checkAll(m, 4096)
}

func TestSummaryRequestFitsInParts(t *testing.T) {
	m := talker()
	e := newEnv(t, m, options{window: 32000})
	for range 12 {
		e.say(strings.Repeat("many different words stand here ", 300))
	}
	e.configure(m, options{window: 4096})
	if said, turn := e.say("and now?"); len(said) == 0 || turn.State != memgpt.TurnDone {
		t.Fatalf("%q %+v", said, turn)
	}
	e.say("more")
	_, sums := requests(m)
	if len(sums) < 2 {
		t.Errorf("%d summary requests", len(sums))
	}
	for i, s := range sums {
		if err := checkV(s, e.count, 1, 4096, ""); err != nil {
			t.Errorf("summary request %d: %v", i, err)
		}
	}
}

func TestOwnSummarizerHasItsOwnWindow(t *testing.T) {
	sum := script.New(script.Config{Capabilities: memgpt.Capabilities{Name: "big", Window: 32000},
		Func: func(int, *memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x") }})
	m := talker()
	e := newEnv(t, m, options{window: 32000, sum: sum})
	for range 8 {
		e.say(strings.Repeat("many different words stand here ", 300))
	}
	e.configure(m, options{window: 8192, sum: sum})
	e.say("and now?")
	e.say("more")
	if n := len(sum.Requests()); n != 1 {
		t.Errorf("%d summary requests, want one large one", n)
	}
}

func TestReportedOverflowCorrectsTheCount(t *testing.T) {
	n := 0
	m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply {
		if n++; n == 4 {
			return script.Fail(&memgpt.Error{Code: memgpt.CodeModelOverflow, Text: "too long", Tokens: 4500, Limit: 4096})
		}
		return script.Say("ok")
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("x\nSearch for: x") }})
	e := newEnv(t, m, options{window: 4096})
	for i := range 5 {
		if said, turn := e.say(fmt.Sprint(i, strings.Repeat(" words here", 60))); len(said) == 0 || turn.State != memgpt.TurnDone {
			t.Fatalf("%d: %q %+v", i, said, turn)
		}
	}
	if f := e.count.Factor("script"); f < 1.2 {
		t.Errorf("the factor is %v", f)
	}
}

func TestWindowTooSmallIsRefusedWithTheSum(t *testing.T) {
	e := newEnv(t, talker(), options{window: 1500})
	_, turn := e.say("hi")
	if turn.State != memgpt.TurnFailed || !strings.Contains(turn.Error, "set a window of at least") {
		t.Errorf("%+v", turn)
	}
	if log := e.log(); len(log) == 0 || log[0].Message.Said() != "hi" {
		t.Error("the message was lost")
	}
}

func TestPrefixStaysBetweenEdits(t *testing.T) {
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if n%10 == 9 {
			return script.Calls(script.Call("core_memory_append", "label", "human", "content", fmt.Sprint("fact ", n)), script.Say("ok"))
		}
		return script.Calls(script.Call("archival_memory_insert", "content", fmt.Sprint("note ", n)), script.Say("ok"))
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("x\nSearch for: x") }})
	e := newEnv(t, m, options{window: 4096})
	for i := range 60 {
		e.say(fmt.Sprint("message ", i, strings.Repeat(" word", 20)))
	}
	steps, _ := requests(m)
	edits := 0
	for i := 1; i < len(steps); i++ {
		if steps[i].Messages[0].Said() != steps[i-1].Messages[0].Said() {
			edits++
		}
	}
	if want := len(steps) / 10; edits > want || edits == 0 {
		t.Errorf("the head changed %d times, edits were %d", edits, want)
	}
	rewritten := 0
	for i := 1; i < len(steps); i++ { // the summary's message changes only with a flush
		a, b := steps[i-1].Messages[1].Said(), steps[i].Messages[1].Said()
		if strings.Contains(b, `"type":"summary"`) && a != b {
			rewritten++
		}
	}
	if n := len(flushes(e.seen)); rewritten > n || n == 0 {
		t.Errorf("the summary's message was rewritten %d times in %d flushes", rewritten, n)
	}
}

// TestFixedPartIsSmall holds the bounds of DESIGN, section 1: functions, instructions and the frame of the usual two blocks,
// without their contents.
func TestFixedPartIsSmall(t *testing.T) {
	for _, c := range []struct{ window, bound int }{{16384, 2000}, {8191, 1000}} {
		for _, protocol := range []memgpt.Protocol{memgpt.ProtocolMemGPT, memgpt.ProtocolNative} {
			e := newEnv(t, talker(), options{window: c.window, protocol: protocol})
			e.reconfigure(func() { e.config.System, e.config.Mail = memtool.SystemWithSchedules, memtool.SystemWithMail })
			st, err := store.Load(t.Context(), e.base, "", e.thread)
			must(t, err)
			for i, b := range host.DefaultBlocks("", "") {
				st.Blocks[i].Description, st.Blocks[i].Value = b.Description, ""
			}
			st.Agent.Reach.Agents = true
			in, err := e.kernel.Inspect(st)
			must(t, err)
			if in.Total > c.bound {
				t.Errorf("window %d, %s: the fixed part has %d tokens, more than %d: %v", c.window, protocol, in.Total, c.bound, in.Parts)
			}
		}
	}
}
