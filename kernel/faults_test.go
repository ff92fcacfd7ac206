package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/storetest"
	"memgpt/tool"
)

// The tests of the files faults_*_test.go are the faults that users of agent memory have met elsewhere: one subtest a
// fault, named by it. Those that other tests hold:
//
//	tool output of megabytes                      TestMegabytesOfToolOutput, TestManyLargeResultsInOneStep
//	global cap on the summarizer                  TestOwnSummarizerHasItsOwnWindow
//	summary request gets a tool call              TestFailedSummaryLosesNothingAndIsRetried
//	overflow inside the summarizer                TestSummaryRequestFitsInParts, and faults_wire_test.go
//	plain text instead of a call                  TestExecutorRepairsAndReports, TestReplyRules
//	two JSON objects, invented results            TestExecutorRepairsAndReports
//	truncated arguments                           TestTruncatedCallIsNotRun, schema.TestTruncated
//	source code in arguments                      TestSourceCodeArrivesByteForByte
//	inner_thoughts, extras, missing argument      TestExecutorRepairsAndReports
//	replace with empty old text                   TestExecutorRepairsAndReports, memtool.TestReplaceAll
//	double reply: text and call                   TestExecutorRepairsAndReports
//	timed heartbeats pile up                      host.TestHeartbeats, host.TestHeartbeatsPauseAndRestart
//	search finds itself                           TestChainedSearchFindsWhatWasSaid
//	agent tells the wrong time                    TestOneStepTurn
//	time filter after the search                  retrieve.TestSearchFiltersBeforeTheCut
//	scores missing or inverted                    retrieve.TestSearchScores
//	conversation broken for good                  TestModelFailureKeepsTheMessageAndTheNextWorks, and faults_wire_test.go
//	cancelled message answered later              TestCancelledTurnIsNotAnswered
//	data gone, killed at any moment               TestCrashAtEveryCommit, cmd/memgpt.TestKill
//	long history blocks everything                BenchmarkStep and the searches of retrieve
//	client goes away                              host.TestUpdates, host.TestSlowReader
//	wire: bytes, endings, refusals, 429           model/openai, model/anthropic, model/ollama and model/retry
//	the same in every protocol and way of calling test/behaviour.TestMatrix: prose, invented results, cut calls, wrong names
//	                                              and types, extras, missing arguments, source code, ids, text and call, empty
//	a character cut between chunks, \u escapes    test/behaviour.TestTextOnEveryWire, openai.TestTextIsNotEscaped
//	replies that break off, refusals              test/behaviour.TestBrokenOnEveryWire, TestRefusalsOnEveryWire
//	streamed and stored differ                    test/behaviour.TestMatrix, model/modeltest, and faults_wire_test.go
//	slow local model                              openai.TestTimeouts, anthropic.TestSilence, ollama.TestSilence
//	upstream cuts the prompt, num_ctx             "upstream silently cuts the prompt", ollama.TestWindowGoesOut
//	strict server, window as set                  openai.TestStrictServer, openai.TestWindow
//	count too low for bytes, CJK                  test/behaviour.TestOneOverflowAConversation, token.TestPublishedCounts
//	language switches unasked                     test/behaviour.TestNoLanguageIsAdded
//	character limits and cuts                     memtool.TestLimit and "limits count characters"
//	migrations, two processes                     store/storetest, store/sqlite, host.TestProcesses

// do has the agent call a function in a turn of its own and returns the result that is stored.
func (e *env) do(m *script.Model, name string, args ...any) memgpt.Result {
	e.t.Helper()
	m.Add(script.Call(name, args...).Heartbeat(), script.Say("ok"))
	e.say("please use " + name)
	return e.result(name)
}

// result returns the newest result of a function.
func (e *env) result(name string) memgpt.Result {
	e.t.Helper()
	log := e.log()
	for i := len(log) - 1; i >= 0; i-- {
		if res, ok := log[i].Message.Result(); ok && res.Name == name {
			return res
		}
	}
	e.t.Fatalf("no result of %s", name)
	return memgpt.Result{}
}

// ok is do for a call that must not fail.
func (e *env) ok(m *script.Model, name string, args ...any) string {
	e.t.Helper()
	res := e.do(m, name, args...)
	if res.Failed {
		e.t.Fatalf("%s failed: %s", name, res.Text)
	}
	return res.Text
}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in: %.600s", p, text)
		}
	}
}

func excludes(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%q is in: %.600s", p, text)
		}
	}
}

// wire returns all that a request says.
func wire(req *memgpt.Request) string {
	var b strings.Builder
	for i := range req.Messages {
		m := &req.Messages[i]
		fmt.Fprintf(&b, "%s %s %s\n", m.Role, m.Said(), m.Thoughts())
		for _, c := range m.Calls() {
			fmt.Fprintf(&b, "  %s%s\n", c.Name, c.Arguments)
		}
	}
	return b.String()
}

func TestFaultsOfContext(t *testing.T) {
	t.Run("summarizer replaces one message by one message", func(t *testing.T) {
		m := talker()
		e := newEnv(t, m, options{window: 32768})
		for i := range 5 {
			e.say(fmt.Sprint("short ", i))
		}
		e.say(strings.Repeat("many different words stand here ", 460)) // 2,300 tokens
		e.configure(m, options{window: 4096})
		before := m.Count()
		if said, turn := e.say("Thank you"); len(said) == 0 || !turn.Stop.Good() {
			t.Fatalf("%q %+v", said, turn)
		}
		if n := m.Count() - before; n > 4 {
			t.Errorf("%d calls of the model", n)
		}
		for _, req := range m.Requests()[before:] {
			if err := checkV(req, e.count, 1, 4096, ""); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("fetch from the archive overflows", func(t *testing.T) {
		m := script.New(script.Config{Summary: func(*memgpt.Request) script.Reply { return script.Text("x\nSearch for: x") }})
		e := newEnv(t, m, options{window: 4096})
		for i := range 50 {
			m.Add(script.Calls(script.Call("archival_memory_insert", "content", fmt.Sprintf("fact %d %s", i, strings.Repeat(" lorem ipsum", 190))), script.Say("ok")))
		}
		for range 50 {
			e.say("store it")
		}
		m.Add(script.Call("archival_memory_search", "query", "lorem", "request_heartbeat", true), script.Say("the answer"),
			script.Say("more"), script.Say("more"))
		said, turn := e.say("what is there?")
		if !slices.Contains(said, "the answer") || !turn.Stop.Good() {
			t.Errorf("%q %+v", said, turn)
		}
		e.checkAll(m, 4096)
		contains(t, e.result("archival_memory_search").Text, "Showing 1-5 of 50")
	})
	t.Run("large output is searchable to its end", func(t *testing.T) {
		dump, err := memtool.New("dump", "dumps", memgpt.EffectOutside, func(context.Context, struct{}) (string, error) {
			return strings.Repeat("é ", 100_000) + "the needle zanzibar", nil
		})
		must(t, err)
		m := script.Of(script.Call("dump", "request_heartbeat", true), script.Say("done"))
		e := newEnv(t, m, options{tools: []tool.Tool{dump}})
		e.say("dump")
		contains(t, e.ok(m, "conversation_search", "query", "zanzibar"), `"role":"tool"`, `"length":200019`, "zanzibar")
	})
	t.Run("reply reserve and prompt are within the window", func(t *testing.T) {
		m := script.New(script.Config{Replies: []script.Reply{script.Say("Hi")},
			Capabilities: memgpt.Capabilities{Name: "script", Window: 8192, MaxOutput: 8192, Tools: true}})
		e := newEnv(t, m, options{})
		e.say("Hi")
		e.checkAll(m, 8192)
		if n := m.Last().MaxTokens; n <= 0 || n > 1024 {
			t.Errorf("max_tokens is %d", n)
		}
	})
}

func TestFaultsOfPressure(t *testing.T) {
	t.Run("run marked failed though the reply exists", func(t *testing.T) {
		down := true
		m := script.New(script.Config{
			Func: func(n int, _ *memgpt.Request) script.Reply { return script.Say(strings.Repeat("a long answer ", 150)) },
			Summary: func(*memgpt.Request) script.Reply {
				if down {
					return script.Fail(memgpt.Errorf(memgpt.CodeModelDown, "500"))
				}
				return script.Text("folded\nSearch for: x")
			}})
		e := newEnv(t, m, options{window: 4096})
		for i := 0; len(flushes(e.seen)) == 0 && i < 50; i++ {
			if said, turn := e.say("go on"); len(said) == 0 || turn.State != memgpt.TurnDone || turn.Error != "" {
				t.Fatalf("%d said, %+v", len(said), turn)
			}
		}
		if f := flushes(e.seen); len(f) == 0 || f[0].Failed == "" {
			t.Fatalf("%+v", f)
		}
		if !slices.ContainsFunc(e.seen, func(u memgpt.Update) bool { w, ok := u.(memgpt.Warned); return ok && w.Code == "summary_failed" }) {
			t.Error("no warning")
		}
		down = false
		e.say("go on")
		if th := e.state.Thread; th.Folded != th.Head || th.Summary.Text == "" {
			t.Errorf("not folded by the next turn: %+v", th)
		}
		e.checkAll(m, 4096)
	})
	t.Run("no sign before the cliff", func(t *testing.T) {
		saved := 0
		m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
			last := req.Messages[len(req.Messages)-1].Said()
			if n := len(req.Messages); strings.Contains(last, `"system_alert"`) || n > 1 && strings.Contains(req.Messages[n-2].Said(), `"system_alert"`) {
				saved++
				return script.Calls(script.Call("core_memory_append", "label", "human", "content", fmt.Sprint("saved ", saved)), script.Say("ok"))
			}
			return script.Say("ok")
		}, Summary: func(*memgpt.Request) script.Reply { return script.Text("x\nSearch for: x") }})
		e := newEnv(t, m, options{window: 4096})
		for i := 0; len(flushes(e.seen)) < 3 && i < 400; i++ {
			e.say("filler words for the window, again and again")
		}
		if n := pressures(e.seen); n != saved || saved < 3 {
			t.Errorf("%d alerts, the model saw %d", n, saved)
		}
		contains(t, e.block("human"), "saved 1", fmt.Sprint("saved ", saved))
	})
	t.Run("memory overrides the system prompt", func(t *testing.T) {
		m := script.Of(script.Say("ok"))
		e := newEnv(t, m, options{})
		a := e.agent
		a.System, a.Version, a.Blocks = "MARK-SYSTEM", 1, nil
		c := &store.Commit{Now: e.now}
		for i := range 5 {
			b := memgpt.Block{ID: e.newID("block"), Label: fmt.Sprint("b", i), Limit: 100, Value: fmt.Sprint("MARK-", i)}
			a.Blocks, c.Blocks = append(a.Blocks, b.ID), append(c.Blocks, b)
		}
		c.Agents = []memgpt.Agent{a}
		_, err := e.base.Commit(t.Context(), c)
		must(t, err)
		e.say("hi")
		contains(t, m.Last().Messages[0].Said(), "MARK-SYSTEM", "MARK-0", "MARK-1", "MARK-2", "MARK-3", "MARK-4")
	})
	t.Run("upstream silently cuts the prompt", func(t *testing.T) {
		m := script.Of(script.Say("one"), script.Say("two").Using(memgpt.Usage{Input: 2051, Output: 5}))
		e := newEnv(t, m, options{window: 32768})
		e.say(strings.Repeat("many different words stand here ", 1500))
		factor := e.count.Factor("script")
		_, turn := e.say("go on")
		if !slices.Contains(turn.Flags, "upstream_truncated") || e.count.Factor("script") < factor {
			t.Errorf("%+v, factor %v", turn, e.count.Factor("script"))
		}
	})
}

func TestFaultsOfHistory(t *testing.T) {
	t.Run("cut inside a group of calls", cutInsideGroups)
	t.Run("pending call vanishes when room is made in mid-turn", func(t *testing.T) {
		ring, rung := ringer(t)
		m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
			if text, calls, _ := sinceUser(req); calls == 0 && text == "ring" {
				return script.Calls(script.Call("ring", "n", "a"), script.Call("conversation_evict", "summary", "earlier talk"),
					script.Call("ring", "n", "b"), script.Say("rung"))
			}
			return script.Say("ok")
		}})
		e := newEnv(t, m, options{window: 4096, tools: []tool.Tool{ring}})
		for range 20 {
			e.say("hello, this is a message of some length, so that the queue has something that can leave")
		}
		if said, turn := e.say("ring"); !slices.Contains(said, "rung") || !turn.Stop.Good() {
			t.Errorf("%q %+v", said, turn)
		}
		if rung["a"] != 1 || rung["b"] != 1 {
			t.Errorf("%v", rung)
		}
		e.say("after")
		e.checkAll(m, 4096)
		e.checkState(nil)
	})
	t.Run("killed between the call and the result", killedInCall)
	t.Run("null text beside a call", func(t *testing.T) {
		m := script.Of(script.Call("conversation_search", "query", "x", "request_heartbeat", true), script.Say("done"))
		o := options{}
		e := newEnv(t, m, o)
		if said, _ := e.say("one"); len(said) != 1 {
			t.Fatalf("%q", said)
		}
		e.configure(m, o) // a new process
		m.Add(script.Say("again"))
		if said, _ := e.say("two"); len(said) != 1 {
			t.Fatalf("%q", said)
		}
		if n := len(e.log()); n != 1+2+2+1+2 {
			t.Errorf("%d entries", n)
		}
		e.checkAll(m, 16384)
	})
	t.Run("malformed arguments are not sent again", func(t *testing.T) {
		for _, raw := range []string{"{", "[1,2]", "null", `"text"`, "\x00\xff", `{"label":"human"} trailing {`, strings.Repeat("[", 5000)} {
			m := script.Of(script.Call("core_memory_append", raw), script.Call("no_such", raw), script.Say("done"))
			e := newEnv(t, m, options{})
			if said, turn := e.say("go"); len(said) != 1 {
				t.Errorf("%.20q: %q %+v", raw, said, turn)
			}
			e.checkAll(m, 16384)
			for _, entry := range e.log() {
				if res, ok := entry.Message.Result(); ok && !res.Failed && res.Name != memgpt.FuncSendMessage {
					t.Errorf("%.20q: %+v", raw, res)
				}
			}
		}
	})
}

func TestFaultsOfTheLog(t *testing.T) {
	t.Run("ids of calls are too long or used twice", func(t *testing.T) {
		m := script.New(script.Config{NewID: func(int) string { return strings.Repeat("x", 80) }, Func: func(n int, _ *memgpt.Request) script.Reply {
			return script.Calls(script.Call("core_memory_append", "label", "human", "content", fmt.Sprint(n)), script.Say(fmt.Sprint(n)))
		}})
		e := newEnv(t, m, options{})
		for range 3 {
			e.say("hi")
		}
		e.checkAll(m, 16384)
	})
	t.Run("only every other message is answered", func(t *testing.T) {
		e := newEnv(t, talker(), options{})
		for i := range 5 {
			if said, _ := e.say("message"); len(said) != 1 || said[0] == "" {
				t.Errorf("%d: %q", i, said)
			}
		}
	})
	t.Run("what is told and what is stored differ", func(t *testing.T) {
		m := script.Of(script.Call("core_memory_append", "label", "human", "content", "a").Heartbeat(),
			script.Call("conversation_search", "query", "a").Heartbeat(), script.Say("done"))
		e := newEnv(t, m, options{})
		e.say("three steps")
		var told, stored []string
		ends := 0
		for _, u := range e.seen {
			switch u := u.(type) {
			case memgpt.StepCommitted:
				for _, entry := range u.Entries {
					told = append(told, entry.ID+fmt.Sprint(entry.Seq)+entry.Message.Said())
				}
			case memgpt.TurnEnded:
				ends++
			}
		}
		for _, entry := range e.log() {
			stored = append(stored, entry.ID+fmt.Sprint(entry.Seq)+entry.Message.Said())
		}
		if !slices.Equal(told, stored) || ends != 1 || len(stored) != 7 {
			t.Errorf("told %q\nstored %q\n%d ends", told, stored, ends)
		}
	})
}

// ringer is a function with an outside effect that counts what it did.
func ringer(t testing.TB) (tool.Tool, map[string]int) {
	rung := map[string]int{}
	ring, err := memtool.New("ring", "rings", memgpt.EffectOutside, func(_ context.Context, in struct {
		N string `json:"n"`
	}) (string, error) {
		rung[in.N]++
		return "rang", nil
	})
	must(t, err)
	return ring, rung
}

// cutInsideGroups compiles a history of parallel calls at every window that it can have, and sends a message at some.
func cutInsideGroups(t *testing.T) {
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		if _, calls, _ := sinceUser(req); calls == 0 {
			return script.Calls(script.Call("archival_memory_search", "query", fmt.Sprint("a", n)),
				script.Call("conversation_search", "query", fmt.Sprint("b", n))).Heartbeat()
		}
		return script.Say("done")
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("x\nSearch for: x") }})
	e := newEnv(t, m, options{window: 65536})
	for i := range 30 {
		e.say(fmt.Sprint("question ", i))
	}
	st, err := store.Load(t.Context(), e.base, "", e.thread)
	must(t, err)
	sizes := 0
	for window := 2300; window < 16000; window += 61 {
		st.Agent.Window = window
		in, err := e.kernel.Inspect(st)
		if err != nil {
			continue
		}
		sizes++
		if err := checkV(in.Request, e.count, 1, window, "question 29"); err != nil {
			t.Fatalf("window %d: %v", window, err)
		}
	}
	if sizes < 100 {
		t.Errorf("%d sizes were compiled", sizes)
	}
	for _, window := range []int{9000, 6000, 4096, 3000} {
		e.configure(m, options{window: window})
		before := m.Count()
		e.say("and now?")
		for _, req := range m.Requests()[before:] {
			if err := checkV(req, e.count, 1, window, ""); err != nil {
				t.Fatalf("window %d: %v", window, err)
			}
		}
	}
}

// killedInCall kills the process while an outside call runs or right after it, and goes on in a new one.
func killedInCall(t *testing.T) {
	const open, not = "interrupted: the process ended while this call ran", "not run: "
	for _, c := range []struct {
		at   int64 // commits: acceptance, the calls before the first starts, its result, those before the third starts, its result
		said []string
		rung map[string]int
	}{{3, []string{open, not, not}, map[string]int{"a": 1}}, {4, []string{"rang", not, not}, map[string]int{"a": 1}},
		{5, []string{"rang", "Block", open}, map[string]int{"a": 1, "b": 1}}} {
		ring, rung := ringer(t)
		faulty := &storetest.Faulty{Commits: true, At: c.at}
		o := options{tools: []tool.Tool{ring}, wrap: func(s store.Store) store.Store { faulty.Inner = s; return faulty }}
		m := script.Of(script.Calls(script.Call("ring", "n", "a"), script.Call("core_memory_append", "label", "human", "content", "x"),
			script.Call("ring", "n", "b")), script.Say("I am back"))
		e := newEnv(t, m, o)
		if err := e.deliver("ring", "k"); err == nil || !faulty.Dead() {
			t.Fatalf("no crash: %v", err)
		}
		e.store = e.base
		e.configure(m, o)
		must(t, e.deliver("ring", "k"))
		if said := spoken(e.seen); !slices.Equal(said, []string{"I am back"}) || !maps.Equal(rung, c.rung) {
			t.Errorf("at %d: %q, rung %v", c.at, said, rung)
		}
		if err := checkV(m.Last(), e.count, 1, 16384, "ring"); err != nil {
			t.Errorf("at %d: %v", c.at, err)
		}
		n := 0
		for _, entry := range e.log() {
			if res, ok := entry.Message.Result(); ok && n < len(c.said) {
				if !strings.HasPrefix(res.Text, c.said[n]) || res.Failed != (c.said[n] == open || c.said[n] == not) {
					t.Errorf("at %d, result %d: %+v", c.at, n, res)
				}
				n++
			}
		}
		if done := e.block("human") == "x"; done != (c.at == 5) {
			t.Errorf("at %d: the block is %q", c.at, e.block("human"))
		}
	}
}

// arguments returns a call's arguments as they go on the wire.
func arguments(t testing.TB, req *memgpt.Request, name string) map[string]any {
	t.Helper()
	for i := range req.Messages {
		for _, c := range req.Messages[i].Calls() {
			if c.Name == name {
				var args map[string]any
				must(t, json.Unmarshal([]byte(c.Arguments), &args))
				return args
			}
		}
	}
	t.Fatalf("no call of %s", name)
	return nil
}
