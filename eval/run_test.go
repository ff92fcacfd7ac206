package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
)

func TestPerfectModelIsAtTheTop(t *testing.T) {
	rep := run(t, Config{Model: seeker("conversation_search", "so it is")}, talkSuite(t))
	want := &Report{Suite: SuiteLocomo, Mode: ModeMemGPT, Model: "script", Window: DefaultWindow, Policy: policyPlain(), Pressure: &PressureReport{}, Search: true, N: 4, WithoutEvidence: 1, GoldMissing: 1,
		Evidence: 75, Any: 75, All: 75, Answered: 100, Searches: 1, Steps: 2,
		ByCategory: map[string]float64{"one": 100, "two": 100, "none": 0}, NByCategory: map[string]int{"one": 2, "two": 1, "none": 1}, Data: "talk.jsonl"}
	got := *rep
	for _, m := range []struct{ got, want float64 }{{*rep.Contains, 0}, {*rep.RougeL, 0}, {*rep.Abstained, 0}, {rep.Lost[LostNotFound], 25}, {rep.Lost[LostNotUsed], 50}} {
		if m.got != m.want {
			t.Errorf("got %v, want %v", m.got, m.want)
		}
	}
	got.Tokens, got.Output, got.Prefix, got.Records = 0, 0, 0, nil
	got.Contains, got.F1, got.RougeL, got.Abstained, got.Intervals, got.Lost, got.Measures, got.Notes = nil, nil, nil, nil, nil, nil, nil, nil
	if diff := cmp.Diff(want, &got); diff != "" { // the last question's words stand in the other conversation alone
		t.Error(diff)
	}
	if rep.Tokens < 500 || rep.Tokens > 2*DefaultWindow {
		t.Errorf("%v tokens a question", rep.Tokens)
	}
}

func TestModelThatNeverSearchesIsAtTheBottom(t *testing.T) {
	silent := scripted(func(*memgpt.Message, *memgpt.Request) script.Reply { return script.Call(memgpt.FuncYield, "{}") })
	rep := run(t, Config{Model: silent}, talkSuite(t))
	if rep.Evidence != 0 || rep.Any != 0 || rep.All != 0 || rep.Answered != 0 || rep.Searches != 0 || rep.N != 4 {
		t.Errorf("got %+v", rep)
	}
}

func TestPartsOfTheEvidence(t *testing.T) {
	model := scripted(func(last *memgpt.Message, _ *memgpt.Request) script.Reply {
		if last.Role == memgpt.RoleTool {
			return script.Say("well")
		}
		return script.Call("conversation_search", "query", "kiln", "request_heartbeat", true)
	})
	rep := run(t, Config{Model: model}, talkSuite(t))
	if rep.Evidence != 12.5 || rep.Any != 25 || rep.All != 0 || rep.ByCategory["two"] != 50 {
		t.Errorf("got %+v", rep)
	}
}

func TestWithoutSearchNothingComesBack(t *testing.T) {
	var mu sync.Mutex
	offered := map[string]bool{}
	model := scripted(func(last *memgpt.Message, req *memgpt.Request) script.Reply {
		mu.Lock()
		defer mu.Unlock()
		for _, spec := range req.Tools {
			offered[spec.Name] = true
		}
		if last.Role == memgpt.RoleTool {
			return script.Say("well")
		}
		return script.Call("conversation_search", "query", message(last), "request_heartbeat", true)
	})
	rep := run(t, Config{Model: model, Mode: ModeNone}, talkSuite(t))
	if rep.Evidence != 0 || rep.Search {
		t.Errorf("got %+v", rep)
	}
	for _, name := range []string{"conversation_search", "archival_memory_search", "memory_read"} {
		if offered[name] {
			t.Errorf("%s was offered", name)
		}
	}
	if !offered["core_memory_append"] || !offered["archival_memory_insert"] || !offered["conversation_evict"] {
		t.Errorf("offered were %v", offered)
	}
	// A stand-in that obeys what it is offered does no better.
	if rep := run(t, Config{Model: standIn(t), Mode: ModeNone}, talkSuite(t)); rep.Evidence != 0 || rep.Searches != 0 {
		t.Errorf("the stand-in without search: %+v", rep)
	}
}

// follower looks keys up in turn, as many as it has patience for, and says the last value. Alerts leave it cold.
func follower(patience int) memgpt.Model {
	return scripted(func(last *memgpt.Message, req *memgpt.Request) script.Reply {
		hops := 0
		var args struct{ Query string }
		for i := range req.Messages {
			switch m := &req.Messages[i]; m.Role {
			case memgpt.RoleTool:
				last = m
				hops++
			case memgpt.RoleAssistant:
				_ = json.Unmarshal([]byte(m.Calls()[0].Arguments), &args)
			}
		}
		if hops == 0 {
			_, key, _ := strings.Cut(message(last), "value of the key ")
			key, _, _ = strings.Cut(key, "?")
			return script.Call("archival_memory_search", "query", key, "request_heartbeat", true)
		}
		for line := range strings.Lines(message(last)) {
			var q quote
			if json.Unmarshal([]byte(line), &q) == nil && strings.HasPrefix(q.Text, args.Query+": ") {
				value := strings.TrimPrefix(q.Text, args.Query+": ")
				if hops >= patience {
					return script.Say("It is " + value)
				}
				return script.Call("archival_memory_search", "query", value, "request_heartbeat", true)
			}
		}
		return script.Say("It is " + strings.ToUpper(args.Query) + ".")
	})
}

func TestChainsAreJudged(t *testing.T) {
	s, err := Load(SuiteNestedKV, chains(t), false)
	if err != nil {
		t.Fatal(err)
	}
	for patience, want := range map[int]map[string]float64{
		1: {"0": 100, "1": 0, "2": 0}, 2: {"0": 100, "1": 100, "2": 0}, 9: {"0": 100, "1": 100, "2": 100}} {
		rep := run(t, Config{Model: follower(patience)}, s)
		if diff := cmp.Diff(want, rep.ByLevel); diff != "" || rep.ByCategory != nil {
			t.Errorf("patience %d: %s", patience, diff)
		}
		if diff := cmp.Diff(map[string]int{"0": 2, "1": 1, "2": 2}, rep.NByLevel); diff != "" {
			t.Error(diff)
		}
		if patience == 9 && (*rep.Accuracy != 100 || rep.Evidence != 100 || rep.All != 100) || patience == 1 && *rep.Accuracy != 40 {
			t.Errorf("patience %d: %+v, right %v", patience, rep, *rep.Accuracy)
		}
	}
}

func TestRightAnswerWithoutEvidenceIsNoneOfTheSystem(t *testing.T) {
	s, err := Load(SuiteNestedKV, chains(t), false)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for _, c := range s.Cases {
		answers[c.Questions[0].Text] = c.Questions[0].Answer
	}
	know := scripted(func(last *memgpt.Message, _ *memgpt.Request) script.Reply { return script.Say(answers[message(last)]) })
	rep := run(t, Config{Model: know}, s)
	if *rep.Accuracy != 0 || rep.Answered != 100 {
		t.Errorf("got %+v", rep)
	}
	wrong := seeker("archival_memory_search", "I could not find it.")
	if rep := run(t, Config{Model: wrong}, s); *rep.Accuracy != 0 || rep.ByLevel["0"] != 0 || rep.Any != 100 {
		t.Errorf("got %+v", rep)
	}
}

func TestStandInFollowsChains(t *testing.T) {
	s, err := Load(SuiteNestedKV, chains(t), false)
	if err != nil {
		t.Fatal(err)
	}
	if rep := run(t, Config{Model: standIn(t)}, s); *rep.Accuracy != 100 {
		t.Errorf("got %+v", rep)
	}
}

func TestResultsDoNotDependOnParallel(t *testing.T) {
	s := talkSuite(t)
	kv, err := Load(SuiteNestedKV, chains(t), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range []*Suite{s, kv} {
		var first *Report
		for _, parallel := range []int{1, 2, 9} {
			rep := run(t, Config{Model: standIn(t), Parallel: parallel}, suite)
			if first == nil {
				first = rep
			} else if diff := cmp.Diff(first, rep); diff != "" {
				t.Errorf("%s with %d at once: %s", suite.Name, parallel, diff)
			}
		}
	}
}

// TestParallelAndWhatReportsTeach asks a model from whose reports the counter learns: what one question teaches is not known to
// those beside it.
func TestParallelAndWhatReportsTeach(t *testing.T) {
	var first *Report
	for _, parallel := range []int{1, 4} {
		m := reporting{script.New(script.Config{CountOnly: true, NewID: func(int) string { return "" }, Func: func(_ int, req *memgpt.Request) script.Reply {
			if last := req.Messages[len(req.Messages)-1]; last.Role == memgpt.RoleTool {
				return script.Say("It is on shelf 2.")
			}
			return script.Call("conversation_search", "query", "marmalade", "request_heartbeat", true)
		}})}
		rep := run(t, Config{Model: m, Parallel: parallel}, longSuite(100, 2, 3, 40, 50, 60, 99))
		if first == nil {
			first = rep
		} else if diff := cmp.Diff(first, rep); diff != "" || rep.Failed > 0 {
			t.Errorf("%d at once: %s", parallel, diff)
		}
	}
}

// TestQuestionsLeaveNoTrace asks an agent that writes whatever it is asked into its memory: no question sees what an
// earlier one wrote, and each finds what it wrote itself.
func TestQuestionsLeaveNoTrace(t *testing.T) {
	o := newOpener(t)
	o.before = func(s store.Store) {
		agents, err := s.Agents(context.Background(), "")
		if err != nil || len(agents) != 1 {
			t.Errorf("%d agents, %v", len(agents), err)
			return
		}
		sizes, err := s.Sizes(context.Background(), "", agents[0].ID)
		if err != nil || sizes.Passages != 0 {
			t.Errorf("%d passages are stored, %v", sizes.Passages, err)
		}
		blocks, err := s.Blocks(context.Background(), "", agents[0].Blocks)
		if err != nil || blocks[1].Value != "" {
			t.Errorf("the block is %q, %v", blocks[1].Value, err)
		}
	}
	var mu sync.Mutex
	var found []string
	model := scripted(func(last *memgpt.Message, req *memgpt.Request) script.Reply {
		steps := 0
		for i := range req.Messages {
			if req.Messages[i].Role == memgpt.RoleAssistant {
				steps++
			}
		}
		switch steps {
		case 0:
			return script.Calls(script.Call("archival_memory_insert", "content", "zebra "+message(last), "request_heartbeat", true),
				script.Call("core_memory_append", "label", "human", "content", "zebra", "request_heartbeat", true))
		case 1:
			return script.Calls(script.Call("archival_memory_search", "query", "zebra", "request_heartbeat", true),
				script.Call("conversation_search", "query", "plant boat kiln tree wagtail like", "request_heartbeat", true))
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range req.Messages {
			if res, ok := req.Messages[i].Result(); ok && strings.Contains(res.Name, "search") {
				found = append(found, res.Text)
			}
		}
		return script.Say("noted")
	})
	run(t, Config{Model: model, Open: o.make, Parallel: 1}, talkSuite(t))
	if len(found) != 8 {
		t.Fatalf("%d results", len(found))
	}
	for i, text := range found {
		if i%2 == 0 && !strings.Contains(text, "Showing 1-1 of 1 ") {
			t.Errorf("question %d finds %s", i/2, text)
		}
		if strings.Contains(text, "What ") && i%2 == 1 {
			t.Errorf("a question was found: %s", text)
		}
	}
}

func TestFailures(t *testing.T) {
	down := memgpt.Errorf(memgpt.CodeModelAuth, "the key is wrong")
	fails := scripted(func(*memgpt.Message, *memgpt.Request) script.Reply { return script.Fail(down) })
	_, err := Run(t.Context(), Config{Open: newOpener(t).make, Model: fails}, talkSuite(t))
	if err == nil || !strings.Contains(err.Error(), "the key is wrong") {
		t.Errorf("got %v", err)
	}
	some := scripted(func(last *memgpt.Message, _ *memgpt.Request) script.Reply {
		if strings.Contains(message(last), "plant") {
			return script.Fail(down)
		}
		return script.Say("hm")
	})
	rep := run(t, Config{Model: some}, talkSuite(t))
	if rep.Failed != 1 || rep.N != 4 || rep.Answered != 75 || rep.Records[0].Failure == "" {
		t.Errorf("got %+v", rep)
	}

	broken := errors.New("no disk")
	bad := func(context.Context) (store.Store, func() error, error) { return nil, nil, broken }
	if _, err := Run(t.Context(), Config{Open: bad, Model: some}, talkSuite(t)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stops := scripted(func(*memgpt.Message, *memgpt.Request) script.Reply { cancel(); return script.Say("late") })
	if _, err := Run(ctx, Config{Open: newOpener(t).make, Model: stops}, talkSuite(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Run(t.Context(), Config{}, talkSuite(t)); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("got %v", err)
	}
	empty := &Suite{Name: "x", Cases: []Case{{Questions: []Question{{ID: "q"}}}}}
	if _, err := Run(t.Context(), Config{Open: bad, Model: some}, empty); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

// reporting is a model that counts otherwise than we do, and says so, as language models do.
type reporting struct{ memgpt.Model }

func (m reporting) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	reply, err := m.Model.Generate(ctx, req, stream)
	if err == nil {
		n := 0
		for i := range req.Messages {
			n += len(req.Messages[i].Said())
		}
		reply.Usage = memgpt.Usage{Input: 1000 + n/2, Cached: 7, Output: 9, Calls: 1}
	}
	return reply, err
}

// TestModelsThatReportUsage asks a model from whose reports the kernel learns, which it stores.
func TestModelsThatReportUsage(t *testing.T) {
	for _, mode := range Modes() {
		rep := run(t, Config{Model: reporting{searching("It is on shelf 2.", "marmalade")}, Mode: mode, Parallel: 1, Window: 8192}, longSuite(5, 2, 3))
		for _, rec := range rep.Records {
			if rec.Failure != "" || rec.Cached != 7*rec.Steps && !mode.prefetches() {
				t.Errorf("%s: %+v", mode, rec)
			}
		}
	}
}

func TestProgress(t *testing.T) {
	var steps []string
	run(t, Config{Model: seeker("conversation_search", "x"), Limit: 3,
		Progress: func(done, total int) { steps = append(steps, fmt.Sprintf("%d/%d", done, total)) }}, talkSuite(t))
	if !slices.Equal(steps, []string{"1/3", "2/3", "3/3"}) {
		t.Errorf("got %v", steps)
	}
}

func TestReportAsJSONAndText(t *testing.T) {
	rep := run(t, Config{Model: seeker("conversation_search", "x"), Window: 8192, Seed: 3}, talkSuite(t))
	rep.Seconds, rep.Tokens, rep.Output, rep.Prefix = 1.25, 2000, 40, 45
	var b bytes.Buffer
	if err := rep.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	measures := func(n int, evidence string) string {
		text := fmt.Sprintf(`{"n":%d,"evidence_in_context":%s,`, n, evidence)
		if n == 2 { // the others expect no answer
			text += `"contains":0,"f1":0,"rouge_l":0,`
		}
		return text + `"abstained":0}`
	}
	notes, err := json.Marshal(Notes(SuiteLocomo))
	if err != nil || len(Notes(SuiteLocomo)) == 0 || len(Notes("chess")) != 0 {
		t.Errorf("the notes are %s, %v", notes, err)
	}
	want := `{"suite":"locomo","mode":"memgpt","model":"script","window":8192,"seed":3,"policy":{"alert":0.7,"flush":1,"target":0.5,"page_size":5,"summary":"on","protocol":"memgpt"},"pressure":{"alerts":0,"flushes":0,"evicted":0},"search":true,"n":4,"without_evidence":1,"gold_missing":1,` +
		`"evidence_in_context":75,"any":75,"all":75,"answered":100,"failed":0,"contains":0,"f1":0,"rouge_l":0,"abstained":0,` +
		`"intervals":{"abstained":[0,0],"contains":[0,0],"evidence_in_context":[25,100],"f1":[0,0],"rouge_l":[0,0]},` +
		`"lost":{"never_stored":0,"not_found":25,"not_searched":0,"not_used":50},` +
		`"searches":1,"steps":2,"tokens":2000,"output":40,"prefix":45,"seconds":1.25,` +
		`"by_category":{"none":0,"one":100,"two":100},"n_by_category":{"none":1,"one":2,"two":1},"measures":{"none":` +
		measures(1, "0") + `,"one":` + measures(2, "100") + `,"two":` + measures(1, "100") + `},"data":"talk.jsonl","notes":` + string(notes) + "}\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	if err := rep.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"evidence in context  75.00 %", "category one         100.00 % of 2", "window               8192"} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, b.String())
		}
	}
}

// TestTheAgentKnowsWhatItHas holds the loader to what a host and a kernel would have stored.
func TestTheAgentKnowsWhatItHas(t *testing.T) {
	s := talkSuite(t)
	s.Cases = s.Cases[:1]
	s.Cases[0].Passages = []Passage{{"passage-0", "An otter lives under the bridge."}}
	var mu sync.Mutex
	var heard []string
	model := scripted(func(last *memgpt.Message, req *memgpt.Request) script.Reply {
		mu.Lock()
		defer mu.Unlock()
		if last.Role == memgpt.RoleTool {
			heard = append(heard, message(last))
			return script.Say("so")
		}
		heard = append(heard, message(&req.Messages[1]))
		return script.Call("archival_memory_insert", "content", "an otter lives  under the bridge.", "request_heartbeat", true)
	})
	run(t, Config{Model: model, Limit: 1}, s)
	if len(heard) != 2 || !strings.Contains(heard[0], "5 messages in other conversations") || !strings.Contains(heard[0], "1 passages") &&
		!strings.Contains(heard[0], "1 passage ") || !strings.Contains(heard[1], "Already stored as passage-0") {
		t.Errorf("the model was told %q", heard)
	}
}
