package eval

import (
	"math"
	"slices"
	"strings"
	"testing"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
)

func TestMeasuresOfAnswers(t *testing.T) {
	tests := []struct {
		answer, expected string
		contains         bool
		f1, rouge        float64
	}{
		{"A plum tree.", "the plum tree", true, 1, .6667}, // ROUGE keeps articles, F1 does not
		{"She planted a plum tree behind the shed.", "a plum tree", true, 2 * 2. / 8, 1},
		{"It was a tree with plum leaves", "plum tree", false, 4. / 8, .5},
		{"plum", "plum tree", false, 2. / 3, .5},
		{"I don't know.", "plum tree", false, 0, 0},
		{"13 of them", "3", false, 0, 0},
		{"3", "3", true, 1, 1},
		{"", "plum", false, 0, 0},
		{"我现在住在苏州。", "苏州", true, 2 * 2. / 9, 1},
		{"州苏", "苏州", false, 1, .5},
		{"Bart在学校", "学校", true, 2 * 2. / 6, 1},
		{"plum", "plum plum", false, 2. / 3, .5},
		{"plum plum plum", "plum tree", false, 2. / 5, .5}, // a word counts as often as both have it
	}
	for _, test := range tests {
		v := verdicts(&Record{Answer: test.answer, Expected: test.expected}, false, true)
		near := func(got *float64, want float64) bool { return math.Abs(*got-want) < 1e-4 }
		if *v.Contains != test.contains || !near(v.F1, test.f1) || !near(v.RougeL, test.rouge) {
			t.Errorf("%q for %q: %v %v %v", test.answer, test.expected, *v.Contains, *v.F1, *v.RougeL)
		}
		if v.Right != nil || v.Judge != nil || v.Sim1 != nil {
			t.Errorf("a measure was made up: %+v", v)
		}
	}
	if v := verdicts(&Record{Expected: "plum", Failure: "the key is wrong"}, false, true); v.Abstained || *v.Contains {
		t.Errorf("a failure is no abstention, and no answer: %+v", v)
	}
	if v := verdicts(&Record{Answer: "so"}, true, true); v.Contains != nil || v.F1 != nil || v.RougeL != nil || v.Right != nil {
		t.Errorf("no answer is expected, and yet %+v", v)
	}
}

func TestWhatIsAnAbstention(t *testing.T) {
	for answer, want := range map[string]bool{
		"":                         true,
		"NO ANSWER":                true,
		"NO ANSWER.":               true,
		"I don't know.":            true,
		"INSUFFICIENT INFORMATION": true,
		"I’m sorry, but I don’t have any information about that. Could you tell me more?":                    true,
		"I couldn't find anything about that (plum, tree), neither in our conversations nor in the archive.": true,
		"You did not mention this information.":                                                              true,
		"That was not mentioned in our talks. Let me know if you remember more!":                             true,
		"我没有找到相关的内容（李子树），对话记录和档案里都没有。":                                                                       true,
		"抱歉，我不知道。": true,
		"I don't know the exact day, but it was in the first week of June 2023.": false,
		"A plum tree.":                        false,
		"Nobody knows where the ladder went.": false,
		"I don't remember the name. She planted a plum tree behind the old shed.": false,
		"On 2023-05-08 Ana said: “I planted a plum tree.”":                        false,
		"我不知道具体日期，但是应该在六月的第一个星期。":                                                 false,
	} {
		if got := abstains(answer); got != want {
			t.Errorf("%q: %v", answer, got)
		}
	}
}

func TestUseOfEvidence(t *testing.T) {
	const text = "My uncle restores church organs in Trondheim."
	for answer, want := range map[string]bool{
		"He restores organs":                 false, // two of five telling words
		"She restores church organs":         true,
		"In Trondheim":                       true,  // the expected answer
		"I know an uncle":                    false, // one of six
		"":                                   false,
		"my uncle restores church organs in": true,
	} {
		if got := uses(answer, "Trondheim", text); got != want {
			t.Errorf("%q: %v", answer, got)
		}
	}
}

// planted is a suite of one question whose two pieces of evidence lie in talk, but for those that change says.
func planted(change func(c *Case)) *Suite {
	c := Case{Name: "c", Persona: talkPersona, Now: timeless, Lines: []kernel.Line{
		{ID: "m1", Text: "The ferry to Lund leaves at six past nine."}, {ID: "m2", Text: "The ferry to Lund has a red funnel."}, {ID: "m3", Text: "Owls nest in the barn."}}}
	q := Question{ID: "q", Text: "When does the ferry with the red funnel leave?", Answer: "six past nine", Group: "g",
		Gold: []Evidence{{"m1", c.Lines[0].Text}, {"m2", c.Lines[1].Text}}}
	c.Questions = []Question{q}
	change(&c)
	return &Suite{Name: "planted", Cases: []Case{c}}
}

// searching makes a model that searches for each query in turn and then answers.
func searching(answer string, queries ...string) memgpt.Model {
	return scripted(func(_ *memgpt.Message, req *memgpt.Request) script.Reply {
		done := 0
		for i := range req.Messages {
			done += len(req.Messages[i].Calls())
		}
		if done < len(queries) {
			return script.Call("conversation_search", "query", queries[done], "request_heartbeat", true)
		}
		return script.Say(answer)
	})
}

func TestWhereEvidenceWasLost(t *testing.T) {
	const all, right = "ferry Lund", "It leaves at six past nine."
	keep := func(*Case) {}
	tests := map[string]struct {
		suite *Suite
		model memgpt.Model
		mode  Mode
		want  Loss
	}{
		"nothing":                          {planted(keep), searching(right, all), "", LostNothing},
		"a piece is not in the store":      {planted(func(c *Case) { c.Lines = c.Lines[1:] }), searching("hm", all), "", LostNeverStored},
		"a piece is stored in other words": {planted(func(c *Case) { c.Lines[1].Text = "A red funnel." }), searching("hm", all), "", LostNeverStored},
		"nobody searched":                  {planted(keep), searching("At noon."), "", LostNotSearched},
		"searched for something else":      {planted(keep), searching("At noon.", "owls nest barn"), "", LostNotFound},
		"found and not used":               {planted(keep), searching("At noon.", all), "", LostNotUsed},
		"found and a refusal":              {planted(keep), searching("I don't know.", all), "", LostNotUsed},
		"right by luck":                    {planted(keep), searching(right), "", LostNothing},
		"the second search finds":          {planted(keep), searching(right, "owls nest barn", all), "", LostNothing},
		"the system found nothing":         {planted(func(c *Case) { c.Questions[0].Text = "Do you remember what we said about zebras?" }), searching("At noon."), ModePrefetch, LostNotFound},
		"the prompt had it":                {planted(keep), (&listener{answer: "At noon."}).model(), ModeFull, LostNotUsed},
		"one search missed":                {planted(func(c *Case) { c.Questions[0].Text = "owls?" }), (&listener{answer: "At noon."}).model(), ModeRAG, LostNotFound},
	}
	for name, test := range tests {
		rep := run(t, Config{Model: test.model, Mode: test.mode}, test.suite)
		if got := rep.Records[0].Lost; got != test.want {
			t.Errorf("%s: %q, want %q; %+v", name, got, test.want, rep.Records[0])
		}
	}
	cut := planted(keep)
	for i := range 200 {
		cut.Cases[0].Lines = append([]kernel.Line{{ID: "x" + strings.Repeat("i", i), Text: "Much else was said of the weather and of wool on that long grey evening."}}, cut.Cases[0].Lines...)
	}
	if rep := run(t, Config{Model: (&listener{answer: "At noon."}).model(), Mode: ModeFull, Window: 1024}, cut); rep.Records[0].Lost != LostNotSearched {
		t.Errorf("what was cut off was not searched for: %+v", rep.Records[0])
	}
}

// TestFoundWithoutBeingShown holds apart what a search brought and what stood in a request.
func TestFoundWithoutBeingShown(t *testing.T) {
	last := scripted(func(last *memgpt.Message, _ *memgpt.Request) script.Reply { // ends the turn with the search
		return script.Calls(script.Call("conversation_search", "query", "ferry Lund", "request_heartbeat", false),
			script.Call(memgpt.FuncSendMessage, "message", "At noon."))
	})
	rep := run(t, Config{Model: last}, planted(func(*Case) {}))
	p := rep.Records[0].Evidence
	if !p[0].Found || p[0].Shown || rep.Records[0].Lost != LostNotUsed || rep.Evidence != 0 {
		t.Errorf("got %+v", rep.Records[0])
	}
}

func TestTheCostOfAQuestion(t *testing.T) {
	rep := run(t, Config{Model: searching("It leaves at six past nine.", "ferry Lund")}, planted(func(*Case) {}))
	rec := rep.Records[0]
	if rec.Steps != 2 || rec.Searches != 1 || float64(rec.Input) != rep.Tokens || rec.Output < 20 || rec.Output > 200 {
		t.Errorf("got %+v", rec)
	}
	// The second request begins with all of the first.
	if rec.Prefix < rec.Input/3 || rec.Prefix > rec.Input/2 {
		t.Errorf("prefix %d of %d", rec.Prefix, rec.Input)
	}
	full := run(t, Config{Model: (&listener{answer: "x"}).model(), Mode: ModeFull}, planted(func(*Case) {}))
	if full.Records[0].Prefix != 0 {
		t.Errorf("one request repeats nothing: %+v", full.Records[0])
	}
	if !slices.Equal(Losses(), []Loss{"never_stored", "not_searched", "not_found", "not_used"}) {
		t.Error(Losses())
	}
}
