package card_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/eval/card"
	"memgpt/model/offline"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/token"
)

// pupil is a scripted model that does all that the card asks, but for what it is told to do badly.
type pupil struct {
	defects []string
	count   *token.Counter
}

func (p *pupil) has(defect string) bool { return slices.Contains(p.defects, defect) }

// lesson is a request as the pupil reads it, whichever way functions were described.
type lesson struct {
	text   string // the newest message
	all    string // everything
	offers func(name string) bool
	forced bool
	result bool // the newest message is a function's result
}

func readLesson(req *memgpt.Request) lesson {
	last := &req.Messages[len(req.Messages)-1]
	var all strings.Builder
	for i := range req.Messages[1:] {
		all.WriteString(req.Messages[i+1].Said() + "\n")
	}
	l := lesson{text: last.Said(), all: strings.ToLower(all.String()), forced: req.Choice == memgpt.ChoiceRequired, result: last.Role == memgpt.RoleTool}
	l.offers = func(name string) bool {
		return slices.ContainsFunc(req.Tools, func(t memgpt.ToolSpec) bool { return t.Name == name })
	}
	if described := req.Messages[0].Said(); len(req.Tools) == 0 && strings.Contains(described, "You act by calling functions") {
		l.offers = func(name string) bool { return strings.Contains(described, "- "+name+"(") }
		l.forced = strings.Contains(string(req.Schema), `"minItems":1`) && !l.offers(memgpt.FuncSendMessage)
		l.text = l.text[strings.LastIndex(l.text, "\n")+1:] // messages of one side are joined
		l.result = strings.Contains(l.text, `"function_result"`)
	}
	return l
}

// answer is what a perfect model does, but for the pupil's defects.
func (p *pupil) answer(l lesson) script.Reply {
	switch {
	case l.offers("get_weather") || l.offers("set_reminder"):
		return p.bare(l)
	case l.offers(memgpt.FuncSendMessage):
		return p.turn(l)
	case p.has("speaks in signs") && strings.Contains(l.text, "hello"), p.has("speaks in signs") && strings.Contains(l.text, "fruit"):
		return script.Text("...")
	}
	return script.Text("Here are some words, as you asked for them.")
}

// bare answers what is asked without a kernel.
func (p *pupil) bare(l lesson) script.Reply {
	weather := func(city string) script.Reply { return script.Call("get_weather", "city", city) }
	remind := func(text string, minutes int) script.Reply {
		return script.Call("set_reminder", "text", text, "minutes", minutes)
	}
	both := func(a, b script.Reply) script.Reply {
		if p.has("one call a reply") {
			return a
		}
		return script.Calls(a, b)
	}
	switch {
	case strings.Contains(l.text, "Oslo and in Lima"):
		return both(weather("Oslo"), weather("Lima"))
	case strings.Contains(l.text, "two reminders"):
		return both(remind("tea", 4), remind("eggs", 9))
	case strings.Contains(l.text, "oven"):
		if p.has("bad arguments") {
			return script.Call("set_reminder", "text", "oven")
		}
		return remind("the oven", 20)
	case strings.Contains(l.text, "Oslo"):
		return weather("Oslo")
	case strings.Contains(l.text, "Lima"):
		return weather("Lima")
	case strings.Contains(l.text, "Cairo"):
		return weather("Cairo")
	case l.forced && !p.has("ignores forced choice"):
		return remind("the window", 5)
	}
	return script.Text("I am well, thank you.")
}

var code = regexp.MustCompile(`B[0-9]{4}`)

// turn takes part in an agent's turn.
func (p *pupil) turn(l lesson) script.Reply {
	for _, word := range []string{"parsnip", "flowerpot"} {
		if strings.Contains(l.all, word) && !p.has("never knows") {
			return script.Say("It is " + word + ".")
		}
	}
	switch {
	case l.result && strings.Contains(l.text, "nothing was booked"):
		if p.has("gives up") {
			return script.Say("That did not work.")
		}
		return script.Call("book_seat", "train", "there", "code", code.FindString(l.text)).Heartbeat()
	case l.result:
		return script.Say("It is done.")
	case strings.Contains(l.text, "book_seat"):
		return script.Call("book_seat", "train", "there").Heartbeat()
	case strings.Contains(l.text, "down in your memory"), strings.Contains(l.text, "down for good"):
		if p.has("does not save") {
			return script.Say("I have written it down.")
		}
		return script.Call("core_memory_append", "label", "human", "content", l.text).Heartbeat()
	case strings.Contains(l.text, "donkey"), strings.Contains(l.text, "boathouse"):
		if p.has("forgets") || p.has("never knows") {
			return script.Say("I don't know.")
		}
		return script.Call("conversation_search", "query", "cousin's donkey; spare key of the boathouse").Heartbeat()
	case p.has("mute"):
		return script.Call(memgpt.FuncYield)
	}
	return script.Say("Gladly, Ada.")
}

// reply answers a request in the manner that the pupil has mastered.
func (p *pupil) reply(_ int, req *memgpt.Request) script.Reply {
	l := readLesson(req)
	r := p.answer(l)
	described := len(req.Tools) == 0 && strings.Contains(req.Messages[0].Said(), "You act by calling functions")
	switch {
	case described && len(req.Schema) > 0:
		r = p.framed(r, req)
	case described && !p.has("knows no text calls"):
		r = asText(r)
	case described, len(req.Tools) > 0 && p.has("never calls"):
		r = script.Text("I would rather talk about it.")
	}
	input := p.count.Tools(req.Tools) + 3
	for i := range req.Messages {
		input += p.count.Message(&req.Messages[i])
	}
	switch {
	case p.has("counts double"):
		input *= 2
	case p.has("cuts prompts"):
		input /= 2
	case p.has("counts nothing"):
		return r
	}
	return r.Using(memgpt.Usage{Input: input, Output: 20})
}

// asText is a reply with its calls written as text.
func asText(r script.Reply) script.Reply {
	var lines []string
	for _, part := range r.Parts {
		switch part := part.(type) {
		case memgpt.Text:
			lines = append(lines, part.Text)
		case memgpt.Call:
			lines = append(lines, `{"name":"`+part.Name+`","arguments":`+part.Arguments+`}`)
		}
	}
	return script.Text(strings.Join(lines, "\n"))
}

// framed is a reply as the object that a schema asks for.
func (p *pupil) framed(r script.Reply, req *memgpt.Request) script.Reply {
	if p.has("knows no schema") {
		return script.Text("What schema?")
	}
	said := "text"
	if strings.Contains(string(req.Schema), `"thoughts"`) {
		said = "thoughts"
	}
	text, calls := "", []string{}
	for _, part := range r.Parts {
		switch part := part.(type) {
		case memgpt.Text:
			text = part.Text
		case memgpt.Call:
			calls = append(calls, `{"name":"`+part.Name+`","arguments":`+part.Arguments+`}`)
		}
	}
	quoted, _ := json.Marshal(text)
	return script.Text(`{"` + said + `":` + string(quoted) + `,"calls":[` + strings.Join(calls, ",") + `]}`)
}

// model makes the pupil a model.
func (p *pupil) model(t testing.TB) memgpt.Model {
	t.Helper()
	var err error
	p.count, err = token.New(token.Config{})
	must(t, err)
	m := script.New(script.Config{Func: p.reply, CountOnly: true})
	if p.has("cuts streams") {
		return cutting{m}
	}
	return m
}

// cutting loses the last piece of each stream.
type cutting struct{ memgpt.Model }

func (m cutting) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	if stream == nil {
		return m.Model.Generate(ctx, req, nil)
	}
	var held *memgpt.Delta
	return m.Model.Generate(ctx, req, func(d memgpt.Delta) {
		if held != nil {
			stream(*held)
		}
		held = &d
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opener makes temporary stores under a test's directory.
func opener(t testing.TB) func(context.Context) (store.Store, func() error, error) {
	dir := t.TempDir()
	return func(ctx context.Context) (store.Store, func() error, error) {
		own, err := os.MkdirTemp(dir, "")
		if err != nil {
			return nil, nil, err
		}
		s, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(own, "x.db"), Unsafe: true})
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
}

// examine runs the card over a pupil with defects. Its time is ample, so that no figure depends on the machine.
func examine(t testing.TB, defects ...string) *card.Card {
	t.Helper()
	c, err := card.Run(t.Context(), card.Config{Model: (&pupil{defects: defects}).model(t), Open: opener(t), Time: time.Hour})
	must(t, err)
	return c
}

// failed returns the checks that did not wholly work in a way, and those that never did.
func failed(c *card.Card, way card.Way) (some, all []string) {
	for _, line := range c.Lines {
		if f := c.Figure(line.Check, way); f != nil && f.Passed < f.Tries {
			some = append(some, line.Check)
			if f.Passed == 0 {
				all = append(all, line.Check)
			}
		}
	}
	return some, all
}

func TestPerfectModelGetsFullMarks(t *testing.T) {
	c := examine(t)
	if some, _ := failed(c, card.WayNative); some != nil {
		t.Errorf("a perfect model failed %q: %+v", some, c.Figure(some[0], card.WayNative))
	}
	for _, line := range c.Lines {
		f := c.Figure(line.Check, card.WayNative)
		if f == nil || f.Tries == 0 || f.Asked == "" || f.Came == "" || f.Tokens == 0 {
			t.Errorf("%s: not run, or without what was asked, what came back and what it took: %+v", line.Check, f)
		}
		if len(line.Figures) != 1 {
			t.Errorf("%s: helps were tried with a model that needs none: %+v", line.Check, line.Figures)
		}
	}
	if c.Verdict != card.Can || c.Says != "can run an agent" || c.Partial || len(c.Notes)+len(c.Raises)+len(c.Settings) > 0 {
		t.Errorf("verdict %s: %s; notes %q, raises %v, settings %q", c.Verdict, c.Says, c.Notes, c.Raises, c.Settings)
	}
}

// TestOneDefectFailsOneLine plants one defect each: the line that it belongs to fails, and no other.
func TestOneDefectFailsOneLine(t *testing.T) {
	for _, test := range []struct {
		defect, check string
		never         bool // not one try passes
		verdict       card.Verdict
		settings      string
	}{
		{"speaks in signs", card.CheckSpeaks, true, card.Can, ""},
		{"cuts streams", card.CheckStreams, true, card.Can, ""},
		{"counts double", card.CheckCounts, true, card.Can, ""},
		{"counts nothing", card.CheckCounts, true, card.Can, ""},
		{"cuts prompts", card.CheckCounts, true, card.Can, ""},
		{"bad arguments", card.CheckCalls, false, card.Can, ""},
		{"one call a reply", card.CheckParallel, true, card.Can, ""},
		{"ignores forced choice", card.CheckForced, true, card.Can, ""},
		{"mute", card.CheckAnswers, true, card.Cannot, ""},
		{"does not save", card.CheckSaves, true, card.Cannot, ""},
		{"gives up", card.CheckRepairs, true, card.Cannot, ""},
		{"forgets", card.CheckRemembers, true, card.Helped, "prefetch=on"},
		{"never knows", card.CheckRemembers, true, card.Cannot, ""},
	} {
		t.Run(test.defect, func(t *testing.T) {
			t.Parallel()
			c := examine(t, test.defect)
			some, all := failed(c, card.WayNative)
			if !slices.Equal(some, []string{test.check}) {
				t.Fatalf("failed are %q, want %s alone", some, test.check)
			}
			if f := c.Figure(test.check, card.WayNative); f.Why == "" || test.never != slices.Contains(all, test.check) {
				t.Errorf("figure %+v", f)
			}
			if c.Verdict != test.verdict || strings.Join(c.Settings, " ") != test.settings {
				t.Errorf("verdict %s (%s), settings %q", c.Verdict, c.Says, c.Settings)
			}
			if c.Verdict == card.Cannot && !strings.Contains(c.Says, "can't run an agent unaided: "+test.check+" 0 of ") {
				t.Errorf("it says %q", c.Says)
			}
		})
	}
}

// TestHelpsAreTold has models that call functions in one way only, and looks whether the card finds it.
func TestHelpsAreTold(t *testing.T) {
	for _, test := range []struct {
		name     string
		defects  []string
		verdict  card.Verdict
		settings string
		raised   []card.Way // of the check calls
	}{
		{"prompted", []string{"never calls", "knows no schema"}, card.Helped, "MEMGPT_CALLS=prompted", []card.Way{card.WayPrompted}},
		{"constrained", []string{"never calls", "knows no text calls"}, card.Helped, "MEMGPT_CALLS=constrained", []card.Way{card.WayConstrained}},
		{"constrained, and memory looked up", []string{"never calls", "knows no text calls", "forgets"}, card.Helped,
			"MEMGPT_CALLS=constrained prefetch=on", []card.Way{card.WayConstrained}},
		{"none", []string{"never calls", "knows no text calls", "knows no schema"}, card.Cannot, "", nil},
		{"not enough", []string{"never calls", "knows no text calls", "does not save"}, card.Cannot, "MEMGPT_CALLS=constrained",
			[]card.Way{card.WayConstrained}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := examine(t, test.defects...)
			if c.Verdict != test.verdict || strings.Join(c.Settings, " ") != test.settings || !strings.Contains(c.Says, "naided") {
				t.Errorf("verdict %s (%s), settings %q", c.Verdict, c.Says, c.Settings)
			}
			var raised []card.Way
			for _, r := range c.Raises {
				if r.Check == card.CheckCalls {
					raised = append(raised, r.Way)
					if r.From != "0 of 3" || r.To != "3 of 3" {
						t.Errorf("calls are raised from %s to %s", r.From, r.To)
					}
				}
			}
			if !slices.Equal(raised, test.raised) {
				t.Errorf("calls are raised by %q, want %q", raised, test.raised)
			}
		})
	}
}

// TestAllHelpsAreTriedOnRequest shows figures side by side also where the model needs no help.
func TestAllHelpsAreTriedOnRequest(t *testing.T) {
	c, err := card.Run(t.Context(), card.Config{Model: (&pupil{}).model(t), Open: opener(t), Time: time.Hour, All: true})
	must(t, err)
	for _, way := range card.Ways() {
		if f := c.Figure(card.CheckRemembers, way); f == nil || f.Passed != 2 {
			t.Errorf("%s: %+v", way, f)
		}
	}
	if c.Verdict != card.Can || len(c.Settings) > 0 {
		t.Errorf("verdict %s, settings %q", c.Verdict, c.Settings)
	}
}

// TestSteadyRepliesAreCompared has a server that says one thing streamed and another in one piece.
func TestSteadyRepliesAreCompared(t *testing.T) {
	for _, test := range []struct {
		streamed, whole script.Reply
		passed          int
	}{
		{script.Text("A white tower."), script.Text("A white tower."), 2},
		{script.Text("A white tower."), script.Text("A white"), 0},
		{script.Fail(memgpt.Errorf(memgpt.CodeModelRequest, "temperature is not supported")), script.Text("x"), 2}, // then the model itself is asked
	} {
		always := func(r script.Reply) memgpt.Model {
			return script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return r }})
		}
		c, err := card.Run(t.Context(), card.Config{Model: (&pupil{}).model(t), Steady: always(test.streamed), Whole: always(test.whole),
			Open: opener(t), Time: time.Hour})
		must(t, err)
		if f := c.Figure(card.CheckStreams, card.WayNative); f.Passed != test.passed {
			t.Errorf("%+v: %+v", test, f)
		}
	}
}

// TestServersCountVouches has a server whose own count agrees or disagrees with what it reports.
func TestServersCountVouches(t *testing.T) {
	p := &pupil{defects: []string{"counts double"}}
	cfg := card.Config{Model: p.model(t), Open: opener(t), Time: time.Hour}
	for factor, passed := range map[int]int{2: 1, 3: 0} {
		cfg.Count = func(_ context.Context, req *memgpt.Request) (int, error) {
			n := 3
			for i := range req.Messages {
				n += p.count.Message(&req.Messages[i])
			}
			return factor * n, nil
		}
		c, err := card.Run(t.Context(), cfg)
		must(t, err)
		if f := c.Figure(card.CheckCounts, card.WayNative); f.Passed != passed {
			t.Errorf("own count %d times ours, reported twice: %+v", factor, f)
		}
	}
}

// TestSlowModelGetsPartialCard runs in a bubble of time that passes by itself.
func TestSlowModelGetsPartialCard(t *testing.T) {
	for _, test := range []struct {
		each    time.Duration
		known   []string // checks of which there is a figure
		says    string
		verdict card.Verdict
	}{
		{8 * time.Second, []string{card.CheckSpeaks, card.CheckStreams, card.CheckCounts, card.CheckCalls, card.CheckParallel, card.CheckForced,
			card.CheckAnswers, card.CheckSaves, card.CheckRepairs}, "no time", card.Unknown},
		{40 * time.Second, nil, "no time", card.Unknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &pupil{}
			p.model(t)
			m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply { return p.reply(n, req).After(test.each) }})
			start := time.Now()
			c, err := card.Run(t.Context(), card.Config{Model: m, Open: opener(t)})
			must(t, err)
			if took := time.Since(start); took > card.DefaultTime {
				t.Errorf("it took %v", took)
			}
			var known []string
			for _, line := range c.Lines {
				if f := c.Figure(line.Check, card.WayNative); f != nil && f.Tries > 0 {
					known = append(known, line.Check)
				}
			}
			if !slices.Equal(known, test.known) || !c.Partial || c.Verdict != test.verdict || !strings.Contains(c.Says, test.says) {
				t.Errorf("known %q, partial %v, %s: %s", known, c.Partial, c.Verdict, c.Says)
			}
			if f := c.Figure(card.CheckSpeaks, card.WayNative); test.known == nil && f.Open != "a try took over 30 s" {
				t.Errorf("a try that takes longer than its bound: %+v", f)
			}
			if text := printed(t, c); !strings.Contains(text, "partial") || !strings.Contains(text, "open") {
				t.Errorf("the card doesn't say that it is partial:\n%s", text)
			}
		})
	}
}

func TestModelThatCannotBeAsked(t *testing.T) {
	refusal := memgpt.Errorf(memgpt.CodeModelAuth, "the key is wrong")
	m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Fail(refusal) }})
	if _, err := card.Run(t.Context(), card.Config{Model: m, Open: opener(t)}); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := card.Run(ctx, card.Config{Model: m, Open: opener(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := card.Run(t.Context(), card.Config{}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("without a model: %v", err)
	}
}

// TestFailuresAreFiguresNotErrors has a provider that fails in the middle.
func TestFailuresAreFiguresNotErrors(t *testing.T) {
	p := &pupil{}
	p.model(t)
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		if n == 0 {
			return p.reply(n, req)
		}
		return script.Fail(memgpt.Errorf(memgpt.CodeModelDown, "the provider fell asleep"))
	}})
	c, err := card.Run(t.Context(), card.Config{Model: m, Open: opener(t), Time: time.Hour})
	must(t, err)
	if f := c.Figure(card.CheckCalls, card.WayNative); f.Passed > 0 || !strings.Contains(f.Why, "fell asleep") {
		t.Errorf("%+v", f)
	}
	if f := c.Figure(card.CheckAnswers, card.WayNative); f.Passed > 0 || !strings.Contains(f.Why, "fell asleep") || c.Verdict != card.Cannot {
		t.Errorf("%s: %+v", c.Verdict, f)
	}
}

// TestThinkingModelGetsRoom has a model whose thoughts use up the bound of short replies.
func TestThinkingModelGetsRoom(t *testing.T) {
	p := &pupil{}
	p.model(t)
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		if req.MaxTokens < 1000 && req.MaxTokens > 100 {
			r := script.Think("Let me think about that at length").Using(memgpt.Usage{Input: 10, Output: req.MaxTokens, Reasoning: req.MaxTokens})
			r.Finish = memgpt.FinishLength
			return r
		}
		return p.reply(n, req)
	}})
	c, err := card.Run(t.Context(), card.Config{Model: m, Open: opener(t), Time: time.Hour, Window: 16384})
	must(t, err)
	if f := c.Figure(card.CheckSpeaks, card.WayNative); f.Passed != 2 || c.Verdict != card.Can {
		t.Errorf("%s: %+v", c.Says, f)
	}
}

func TestStandInSaysSo(t *testing.T) {
	m, err := offline.New(offline.Config{})
	must(t, err)
	c, err := card.Run(t.Context(), card.Config{Model: m, Open: opener(t), Time: time.Hour})
	must(t, err)
	text := printed(t, c)
	if !c.StandIn || len(c.Settings) > 0 || !strings.Contains(c.Says, "stand-in, not a language model") || !strings.Contains(text, c.Says) {
		t.Errorf("%s\n%s", c.Says, text)
	}
	if f := c.Figure(card.CheckRemembers, card.WayNative); f.Passed == 0 {
		t.Errorf("the stand-in pages its memory, and the card doesn't see it: %+v", f)
	}
	t.Log("\n" + text)
}

func printed(t testing.TB, c *card.Card) string {
	t.Helper()
	var b bytes.Buffer
	must(t, c.WriteText(&b))
	return b.String()
}

func TestPrinted(t *testing.T) {
	c := examine(t, "never calls", "knows no schema")
	text := printed(t, c)
	for _, want := range []string{"It can run an agent with help: MEMGPT_CALLS=prompted. Unaided it can't: calls 0 of 3;",
		"FAIL 0 of 3", "pass 3 of 3", "Describing functions in the prompt raises calls from 0 of 3 to 3 of 3.", "asked  What is the weather in Oslo",
		"wrong  no call", "native", "constrained", "prefetch", "tokens"} {
		if !strings.Contains(text, want) {
			t.Errorf("the card lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	var b bytes.Buffer
	must(t, c.WriteJSON(&b))
	var back card.Card
	must(t, json.Unmarshal(b.Bytes(), &back))
	if back.Verdict != card.Helped || len(back.Lines) != len(c.Lines) || bytes.Count(b.Bytes(), []byte("\n")) != 1 {
		t.Errorf("as JSON: %s", b.String())
	}
}
