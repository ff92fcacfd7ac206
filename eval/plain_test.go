package eval

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
)

// kOf asks for more hits than a window holds, where a mode searches.
func kOf(m Mode) []int {
	if m == ModeRAG {
		return []int{1, 30}
	}
	return nil
}

var baselines = []Mode{ModeFull, ModeSliding, ModeSummary, ModeRAG, ModeOracle}

// longSuite has n lines of made-up talk, each with a word of its own, and a question about the one at each of those places.
func longSuite(n int, asked ...int) *Suite {
	c := Case{Name: "long", Persona: talkPersona, Now: timeless}
	for i := range n {
		c.Lines = append(c.Lines, kernel.Line{ID: fmt.Sprint("m", i), Speaker: "Ana", Time: timeless.AddDate(0, 0, i-n),
			Text: fmt.Sprintf("On shelf %d of the pantry stands a jar with marmalade of sort%d, and it is still full to the brim.", i, i)})
	}
	for _, i := range asked {
		c.Questions = append(c.Questions, Question{ID: fmt.Sprint("q", i), Text: fmt.Sprintf("Where is the marmalade of sort%d?", i),
			Answer: fmt.Sprint("shelf ", i), Group: "one", Gold: []Evidence{{fmt.Sprint("m", i), c.Lines[i].Text}}})
	}
	return &Suite{Name: "long", Cases: []Case{c}}
}

// listener keeps the requests of a run and answers each with the same words.
type listener struct {
	mu       sync.Mutex
	requests []*memgpt.Request
	answer   string
}

func (l *listener) model() memgpt.Model {
	note := func(req *memgpt.Request) script.Reply {
		l.mu.Lock()
		defer l.mu.Unlock()
		copied := *req
		copied.Messages = slices.Clone(req.Messages)
		l.requests = append(l.requests, &copied)
		return script.Text(l.answer)
	}
	return script.New(script.Config{CountOnly: true, Func: func(_ int, req *memgpt.Request) script.Reply { return note(req) }, Summary: note})
}

func TestBaselinesShowWhatTheyClaim(t *testing.T) {
	const n = 300 // far more than the window holds
	for mode, want := range map[Mode][3]bool{
		ModeFull: {true, false, false}, ModeSliding: {false, false, true}, ModeSummary: {false, false, false}, ModeRAG: {true, true, true}, ModeOracle: {true, true, true},
	} {
		l := &listener{answer: "I don't know."}
		rep := run(t, Config{Model: l.model(), Mode: mode, Window: 2048, Parallel: 1}, longSuite(n, 0, n/2, n-1))
		for i, rec := range rep.Records {
			if got := rec.Seen() == 1; got != want[i] {
				t.Errorf("%s: evidence of %s shown: %v", mode, rec.Question, got)
			}
			if rec.Steps != 1 || !rec.Verdicts.Abstained || rec.Input == 0 || rec.Output == 0 {
				t.Errorf("%s: %+v", mode, rec)
			}
		}
		for _, req := range l.requests {
			if len(req.Tools) > 0 || req.Choice != memgpt.ChoiceNone {
				t.Errorf("%s: functions are offered", mode)
			}
		}
		searches := 0.0
		if mode == ModeRAG {
			searches = 1
		}
		if rep.Searches != searches {
			t.Errorf("%s: %v searches", mode, rep.Searches)
		}
	}
}

// TestBaselinesKeepToTheWindow gives every baseline texts of all lengths and scripts, and windows down to hardly any.
func TestBaselinesKeepToTheWindow(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	s := longSuite(40, 3, 39)
	for i := range s.Cases[0].Lines {
		s.Cases[0].Lines[i].Text += strings.Repeat([]string{" 天黑了", " ζω\n", " x", "\U0001F33F"}[i%4], chance.IntN(400))
	}
	for i := range s.Cases[0].Questions {
		q := &s.Cases[0].Questions[i]
		for _, l := range s.Cases[0].Lines {
			if l.ID == q.Gold[0].ID {
				q.Gold[0].Text = l.Text
			}
		}
	}
	for _, window := range []int{320, 512, 1024, 3000, 8192} {
		for _, mode := range baselines {
			l := &listener{answer: "well"}
			run(t, Config{Model: l.model(), Mode: mode, Window: window, Ks: kOf(mode)}, s)
			r := testRunner(t, l.model())
			r.cfg.Window = window
			if len(l.requests) < 2 {
				t.Fatalf("%s: %d requests", mode, len(l.requests))
			}
			for _, req := range l.requests {
				if n := r.requestSize(req); n > r.usable() {
					t.Errorf("%s at %d: a request of %d tokens, %d are usable", mode, window, n, r.usable())
				}
			}
		}
	}
}

func TestFullContextEndsWhereTheWindowDoes(t *testing.T) {
	l := &listener{answer: "x"}
	run(t, Config{Model: l.model(), Mode: ModeFull, Window: 1024}, longSuite(100, 0))
	r := testRunner(t, l.model())
	r.cfg.Window = 1024
	if n := r.requestSize(l.requests[0]); n < r.usable()*95/100 { // counts of lines are a little more than that of their sum
		t.Errorf("%d of %d usable tokens are filled", n, r.usable())
	}
	system := l.requests[0].Messages[0].Said()
	if !strings.Contains(system, "[2023-09-23] Ana: On shelf 0 of the pantry") || strings.Contains(system, "shelf 99") {
		t.Errorf("got %s", system)
	}
}

func TestSearchedTextsAreShortenedInTokensTheLongestFirst(t *testing.T) {
	r := testRunner(t, standIn(t))
	list := []plainText{{id: "a", text: "a plum"}, {id: "b", text: strings.Repeat("plum tree ", 100)}, {id: "c", text: strings.Repeat("李子树，", 100)}}
	got := r.shortenAll(list, 103)
	if len(got) != 3 || got[0].text != list[0].text {
		t.Fatalf("got %v", got)
	}
	b, c := r.size(got[1]), r.size(got[2])
	if sum := b + c + r.size(got[0]); sum > 103 || sum < 99 || b-c > 3 || c-b > 3 {
		t.Errorf("sizes %d and %d", b, c)
	}
	if whole := r.shortenAll(list, 100000); whole[1] != list[1] || whole[2] != list[2] {
		t.Error("texts that fit were shortened")
	}
}

func TestSummaryIsMadeOnceAndKeepsToItsWords(t *testing.T) {
	l := &listener{answer: strings.Repeat("On shelf 7 of the pantry stands a jar. ", 60)}
	s := longSuite(120, 7, 8)
	rep := run(t, Config{Model: l.model(), Mode: ModeSummary, Window: 1024, SummaryWords: 40}, s)
	folds := 0
	for _, req := range l.requests {
		if req.Purpose == memgpt.PurposeSummary {
			folds++
			if !strings.Contains(req.Messages[0].Said(), "at most 40 words") {
				t.Errorf("the instructions are %s", req.Messages[0].Said())
			}
		}
	}
	r := testRunner(t, l.model())
	if folds < 3 || len(l.requests) != folds+2 {
		t.Errorf("%d of %d requests are for summaries", folds, len(l.requests))
	}
	shown := l.requests[len(l.requests)-1].Messages[0].Said()
	_, shown, _ = strings.Cut(shown, contextOpen)
	shown, _, _ = strings.Cut(shown, contextClose)
	if n := r.counter.Text(shown); n > 61 || n < 50 {
		t.Errorf("the summary has %d tokens: %s", n, shown)
	}
	if rep.Records[0].Seen() != 1 || rep.Records[1].Seen() != 0 { // shelf 7 is an answer, shelf 8 is not there
		t.Errorf("got %+v", rep.Records)
	}
}

func TestStandInAnswersFromAPrompt(t *testing.T) {
	s := longSuite(8, 2, 5)
	for _, mode := range []Mode{ModeFull, ModeSliding, ModeRAG, ModeOracle} {
		rep := run(t, Config{Model: standIn(t), Mode: mode}, s)
		for _, rec := range rep.Records {
			if v := rec.Verdicts; !*v.Contains || *v.RougeL != 1 || rec.Lost != LostNothing {
				t.Errorf("%s: %q, %+v", mode, rec.Answer, v)
			}
		}
	}
	kv, err := Load(SuiteNestedKV, chains(t), false)
	if err != nil {
		t.Fatal(err)
	}
	if rep := run(t, Config{Model: standIn(t), Mode: ModeFull}, kv); *rep.Accuracy != 100 { // ten pairs fit
		t.Errorf("got %+v", rep)
	}
	if rep := run(t, Config{Model: standIn(t), Mode: ModeFull, Window: 512}, kv); *rep.Accuracy == 100 || rep.Evidence == 100 {
		t.Errorf("got %+v", rep)
	}
}

func TestBaselinesAreToldTheTime(t *testing.T) {
	l := &listener{answer: "x"}
	s := longSuite(3, 1)
	s.Cases[0].Questions[0].Time = time.Date(2024, 5, 6, 7, 8, 0, 0, time.UTC)
	run(t, Config{Model: l.model(), Mode: ModeOracle}, s)
	if !strings.HasSuffix(l.requests[0].Messages[0].Said(), "It is now 2024-05-06 07:08.") {
		t.Errorf("got %s", l.requests[0].Messages[0].Said())
	}
}

func TestAFailureOfTheModelIsTheQuestions(t *testing.T) {
	m := scripted(func(last *memgpt.Message, _ *memgpt.Request) script.Reply {
		if strings.Contains(last.Said(), "sort1?") {
			return script.Fail(memgpt.Errorf(memgpt.CodeModelAuth, "the key is wrong"))
		}
		return script.Text("hm")
	})
	rep := run(t, Config{Model: m, Mode: ModeFull}, longSuite(3, 1, 2))
	if rep.Failed != 1 || !strings.Contains(rep.Records[0].Failure, "the key is wrong") || rep.Records[1].Failure != "" {
		t.Errorf("got %+v", rep.Records)
	}
}
