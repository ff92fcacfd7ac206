package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/script"
)

func TestRelayIsTheSameTaskInOtherWords(t *testing.T) {
	dir := chains(t)
	s, err := Load(SuiteRelay, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := Load(SuiteNestedKV, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Cases) != len(kv.Cases) || len(s.Cases) != 5 {
		t.Fatalf("%d and %d cases", len(s.Cases), len(kv.Cases))
	}
	for i, c := range s.Cases {
		q := c.Questions[0]
		if len(q.Gold) != len(kv.Cases[i].Questions[0].Gold) || q.Group != kv.Cases[i].Questions[0].Group || len(c.Passages) != 10 {
			t.Errorf("%+v", q)
		}
		// Following the passages by hand leads from the question to the answer.
		at, hops := q.Text[strings.Index(q.Text, "DP-"):], 0
		at, _, _ = strings.Cut(at, ".")
		for range c.Passages {
			for _, p := range c.Passages {
				if _, to, ok := strings.Cut(p.Text, "reaches depot "+at+" is passed on to depot "); ok {
					at, hops = strings.TrimSuffix(to, "."), hops+1
					break
				}
			}
		}
		if at != q.Answer || fmt.Sprint(hops-1) != q.Group {
			t.Errorf("%s: the chain ends at %s after %d hops, not at %s", c.Name, at, hops, q.Answer)
		}
		if text := q.Text + c.Persona; strings.Contains(text, "key") || strings.Contains(text, "value") {
			t.Errorf("the words are those of the other task: %s", text)
		}
	}
	if rep := run(t, Config{Model: standIn(t)}, s); *rep.Accuracy != 100 {
		t.Errorf("the stand-in: %+v", rep.ByLevel)
	}
	if rep := run(t, Config{Model: standIn(t), Mode: ModeRAG, Ks: []int{1}}, s); rep.ByLevel["0"] != 100 || rep.ByLevel["1"] != 0 || rep.ByLevel["2"] != 0 {
		t.Errorf("one search: %+v", rep.ByLevel)
	}
}

func TestDepotCodesDiffer(t *testing.T) {
	taken := map[string]bool{}
	for i := range 30 {
		depotCode("abcdef12-0000-4000-8000-00000000000"+fmt.Sprint(i), taken)
	}
	if len(taken) != 30 {
		t.Errorf("%d codes", len(taken))
	}
}

// letters embeds a text as the letters that it has.
type letters struct{}

func (letters) Model() string { return "letters" }

func (letters) Embed(_ context.Context, texts []string, _ bool) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, 26)
		for _, r := range strings.ToLower(text) {
			if r >= 'a' && r <= 'z' {
				v[r-'a']++
			}
		}
		out[i] = unitVector(v)
	}
	return out, nil
}

func unitVector(v []float32) []float32 {
	sum := float32(0)
	for _, x := range v {
		sum += x * x
	}
	for i := range v {
		v[i] /= sqrt32(max(sum, 1e-9))
	}
	return v
}

func sqrt32(x float32) float32 {
	r := x
	for range 40 {
		r = (r + x/r) / 2
	}
	return r
}

func personas(t *testing.T) string {
	t.Helper()
	text := `{"train":[{"Speaker 1":["unused"],"Speaker 2":[]}],"test":[
{"Speaker 1":["aaaa","bbbb","cccc","dddd"],"Speaker 2":["x"],"opener":"aaab"},
{"Speaker 1":["eeee","ffff"],"Speaker 2":["x"]},{"Speaker 1":[],"Speaker 2":["x"]}]}`
	return write(t, "personas.json", text)
}

func TestOpenersAreMeasuredByTheNearestLines(t *testing.T) {
	s, err := Load(SuiteOpener, personas(t), false)
	if err != nil {
		t.Fatal(err)
	}
	echo := scripted(func(_ *memgpt.Message, req *memgpt.Request) script.Reply { // says what its block human holds
		_, human, _ := strings.Cut(req.Messages[0].Said(), `<block label="human"`)
		_, human, _ = strings.Cut(human, ">\n")
		human, _, _ = strings.Cut(human, "</block>")
		first, _, _ := strings.Cut(strings.TrimSpace(human), "\n")
		if first == "" {
			return script.Say("zzzz")
		}
		return script.Say(first)
	})
	rep := run(t, Config{Model: echo, Embedder: letters{}}, s)
	if rep.N != 2 || rep.NByCategory[WorkingNone] != 2 || len(rep.Records) != 6 {
		t.Fatalf("got %+v", rep)
	}
	// The first persona's opener is its line "aaaa": 1 to the nearest line, a third to three, .949 to "aaab". The second's is
	// "eeee": 1, and a half to its two lines.
	if *rep.Sim1 != 1 || *rep.Sim3 != .4167 || *rep.SimH != .9487 {
		t.Errorf("own: %v %v %v", *rep.Sim1, *rep.Sim3, *rep.SimH)
	}
	if diff := cmp.Diff(map[string]float64{WorkingOwn: 1, WorkingNone: 0, WorkingOther: 0}, rep.ByCategory); diff != "" {
		t.Error(diff)
	}
	if rep.Contains != nil || rep.Abstained != nil || rep.Accuracy != nil {
		t.Errorf("an opener is no answer: %+v", rep)
	}
	silent := scripted(func(*memgpt.Message, *memgpt.Request) script.Reply { return script.Call(memgpt.FuncYield, "{}") })
	if rep := run(t, Config{Model: silent, Embedder: letters{}}, s); *rep.Sim1 != 0 {
		t.Errorf("who says nothing: %v", *rep.Sim1)
	}
	for _, cfg := range []Config{{Model: echo}, {Model: echo, Embedder: letters{}, Mode: ModeFull}} {
		cfg.Open = newOpener(t).make
		if _, err := Run(t.Context(), cfg, s); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("got %v", err)
		}
	}
}

func TestAnotherPersonIsDrawnBySeed(t *testing.T) {
	var list []string
	for i := range 20 {
		list = append(list, fmt.Sprintf(`{"Speaker 1":["line of %d"]}`, i))
	}
	path := write(t, "p.json", `{"all":[`+strings.Join(list, ",")+`]}`)
	others := func(seed uint64) (texts []string) {
		s, err := Opener(path, seed)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range s.Cases {
			if c.Questions[0].Group == WorkingOther {
				texts = append(texts, c.Human)
				if c.Human == s.Cases[i-2].Human {
					t.Errorf("%s is its own other", c.Name)
				}
			}
		}
		return texts
	}
	if diff := cmp.Diff(others(1), others(1)); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(others(1), others(2)) {
		t.Error("two seeds draw the same")
	}
}

func TestStandInOpensFromWorkingContext(t *testing.T) {
	path := write(t, "p.json", `{"all":[{"Speaker 1":["I keep bees on the roof of the mill.","I restore old organs."]},{"Speaker 1":["I sail to Rona in a red boat.","I hate oysters."]}]}`)
	s, err := Opener(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	rep := run(t, Config{Model: standIn(t), Embedder: letters{}}, s)
	for _, rec := range rep.Records {
		own := strings.Contains(rec.Answer, "bees") == (rec.Question == "opener 0") && strings.Contains(rec.Answer, "oysters") == (rec.Question == "opener 1")
		named := strings.Contains(rec.Answer, "bees") || strings.Contains(rec.Answer, "oysters")
		if own != (rec.Variant == WorkingOwn) && named || named != (rec.Variant != WorkingNone) || rec.Answer == "" {
			t.Errorf("%s %s: %s", rec.Question, rec.Variant, rec.Answer)
		}
	}
}

const docs = `{"conv":"d","docs":[{"id":"p0","text":"The kiln at Lund was built in 1911 by Oke Berg. It burns birch from beyond the bridge of Sund.","time":"","who":""},` +
	`{"id":"p1","text":"Rona is an island. Its ferry sails at noon, and it has one shop. The kiln at Lund and the bridge of Sund are far away.","time":"","who":""},` +
	`{"id":"p2","text":"Otters live under the bridge of Sund, eleven of them in a good year. They are not seen at the kiln at Lund.","time":"","who":""}],` +
	`"queries":[{"id":"a","q":"Who built the kiln at Lund?","a":"Oke Berg","cat":"qa","gold":["p0"]},` +
	`{"id":"b","q":"How many otters live under the bridge of Sund?","a":"eleven","cat":"qa","gold":["p2"]}]}`

func TestDocumentsAgainstK(t *testing.T) {
	s, err := Load(SuiteDocQA, write(t, "docs.jsonl", docs), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Cases[0].Passages) != 3 || len(s.Cases[0].Lines) != 0 {
		t.Errorf("got %+v", s.Cases[0])
	}
	rep := run(t, Config{Model: standIn(t), Mode: ModeRAG, Ks: []int{1, 3}}, s)
	if rep.K != 1 || rep.N != 2 || len(rep.Records) != 4 || rep.AccuracyBy != ByContained || *rep.Accuracy != 100 {
		t.Errorf("got %+v", rep)
	}
	for _, k := range []string{"1", "3"} {
		if m := rep.ByK[k]; m.N != 2 || *m.Evidence != 100 {
			t.Errorf("%s: %+v", k, m)
		}
	}
	for i, want := range []int{1, 3, 1, 3} {
		if rep.Records[i].K != want {
			t.Errorf("record %d has K %d", i, rep.Records[i].K)
		}
	}
	// In a window that holds hardly more than one document, many are cut so short that the answers are gone.
	if rep := run(t, Config{Model: standIn(t), Mode: ModeRAG, Window: 150, Ks: []int{1, 3}}, s); *rep.ByK["1"].Evidence <= *rep.ByK["3"].Evidence {
		t.Errorf("cut: %v %v", *rep.ByK["1"].Evidence, *rep.ByK["3"].Evidence)
	}
	if rep := run(t, Config{Model: standIn(t)}, s); *rep.Accuracy != 100 || rep.K != 0 || rep.ByK != nil {
		t.Errorf("paging: %+v", rep)
	}
	if twice := run(t, Config{Model: standIn(t), Mode: ModeRAG, Ks: []int{1, 3, 1}}, s); twice.N != rep.N || len(twice.Records) != len(rep.Records) {
		t.Errorf("a number of hits that is named twice: %d questions, %d records", twice.N, len(twice.Records))
	}
	bad := Config{Model: standIn(t), Ks: []int{1, 2}, Open: newOpener(t).make}
	if _, err := Run(t.Context(), bad, s); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

func TestQuestionsWithoutAnAnswerInTheMaterial(t *testing.T) {
	data := `{"conv":"a","docs":[{"id":"1#0","text":"user: I bought a red kayak.","time":"","who":"user","session":"s1"},{"id":"2#0","text":"user: My cat is called Luna.","time":"","who":"user","session":"s2"}],` +
		`"queries":[{"id":"x_abs","q":"What is the name of my hamster?","a":"You did not mention it.","cat":"abstention","gold":[]},` +
		`{"id":"y","q":"What colour is my kayak?","a":"red","cat":"single","gold":["1#0"]},{"id":"z","q":"Who?","a":"me","cat":"single","gold":[]}]}`
	s, err := Load(SuiteLongMemEval, write(t, "l.jsonl", data), false)
	if err != nil {
		t.Fatal(err)
	}
	rep := run(t, Config{Model: searching("I don't know.", "red kayak")}, s)
	if rep.N != 2 || rep.WithoutEvidence != 1 || *rep.AbstentionRight != 100 || *rep.Abstained != 100 || *rep.Contains != 0 || rep.Evidence != 100 {
		t.Errorf("got %+v", rep)
	}
	rep = run(t, Config{Model: searching("It is red.", "red kayak")}, s)
	if *rep.AbstentionRight != 0 || *rep.Abstained != 0 || *rep.Contains != 100 {
		t.Errorf("got %+v", rep)
	}
	if diff := cmp.Diff(map[string]float64{"1": 100, "5": 100, "10": 100, "20": 100}, rep.Recall); diff != "" {
		t.Error(diff)
	}
	if rep := run(t, Config{Model: searching("x"), Mode: ModeFull}, s); rep.Records[1].RankedGold != 0 {
		t.Errorf("nothing was searched: %+v", rep.Records[1])
	}
	trap := strings.ReplaceAll(strings.ReplaceAll(data, `"abstention"`, `"adversarial"`), `"gold":[]}`, `"gold":["1#0"]}`)
	if s, err = Load(SuiteLocomo, write(t, "l.jsonl", trap), false); err != nil {
		t.Fatal(err)
	}
	rep = run(t, Config{Model: searching("You did not mention it. That is a hamster of somebody else, whom I know.")}, s)
	if *rep.AbstentionRight != 0 || rep.Records[0].Verdicts.Contains != nil || rep.Records[0].Lost != LostNothing {
		t.Errorf("a trap was taken for an answer: %+v", rep.Records[0])
	}
}

func TestSessionsAreRankedByTheirBestTurn(t *testing.T) {
	records := []Record{{Ranks: []int{2}, RankedGold: 1}, {Ranks: []int{1, 7}, RankedGold: 2}, {RankedGold: 0}, {RankedGold: 1}}
	recall, ndcg := sessionRecall(records)
	// NDCG@5 by hand: 1/log2(3) = .6309; 1/(1+.6309) = .6131; 0.
	for _, x := range []struct{ got, want float64 }{{recall["1"], 16.67}, {recall["5"], 50}, {recall["10"], 66.67}, {ndcg["1"], 33.33}, {ndcg["5"], 41.47}} {
		if x.got != x.want {
			t.Errorf("got %v, want %v", x.got, x.want)
		}
	}
	if recall, _ := sessionRecall(records[2:3]); len(recall) != 0 {
		t.Errorf("no session is known: %v", recall)
	}
}

// judging is a judge that calls an answer right if it names what is expected, and is told how to say so.
func judging(say func(right bool) script.Reply) memgpt.Model {
	return script.New(script.Config{CountOnly: true, Func: func(_ int, req *memgpt.Request) script.Reply {
		var asked struct {
			Expected string `json:"expected_answer"`
			Answer   string `json:"answer"`
		}
		_ = json.Unmarshal([]byte(req.Messages[1].Said()), &asked)
		return say(strings.Contains(asked.Answer, asked.Expected))
	}})
}

func TestJudge(t *testing.T) {
	word := map[bool]string{true: "CORRECT", false: "WRONG"}
	plainly := judging(func(right bool) script.Reply {
		return script.Text("It says so. WRONG would be odd.\nCORRECT\nor not:\n**" + word[right] + "**")
	})
	s := longSuite(4, 1, 2, 3)
	model := scripted(func(last *memgpt.Message, _ *memgpt.Request) script.Reply {
		if strings.Contains(message(last), "sort2?") {
			return script.Call(memgpt.FuncYield, "{}")
		}
		return script.Say("It is on shelf 1.")
	})
	rep := run(t, Config{Model: model, Judge: plainly}, s)
	if *rep.Accuracy != 33.33 || rep.AccuracyBy != ByJudge || rep.Judge.N != 3 || rep.Judge.Failed != 0 || rep.Judge.Model != "script" {
		t.Errorf("got %+v, %+v", rep, rep.Judge)
	}
	if !strings.HasPrefix(rep.Judge.Prompt, judgeVersion+"-") || len(rep.Judge.Prompt) != len(judgeVersion)+9 {
		t.Errorf("the prompt's version is %s", rep.Judge.Prompt)
	}
	j := rep.Records[0].Verdicts.Judge
	if !j.Right || j.Reason != "It says so. WRONG would be odd. CORRECT or not:" || rep.Records[1].Verdicts.Judge.Reason != "there is no answer" {
		t.Errorf("got %+v", j)
	}
	vague := judging(func(bool) script.Reply { return script.Text("It might be CORRECT or not.") })
	rep = run(t, Config{Model: model, Judge: vague}, s)
	if rep.Judge.Failed != 2 || rep.Judge.N != 1 || *rep.Accuracy != 0 {
		t.Errorf("got %+v", rep.Judge)
	}
	down := judging(func(bool) script.Reply { return script.Fail(memgpt.Errorf(memgpt.CodeModelAuth, "the key is wrong")) })
	if rep = run(t, Config{Model: model, Judge: down}, s); !strings.Contains(rep.Records[0].Verdicts.Judge.Failure, "the key is wrong") {
		t.Errorf("got %+v", rep.Records[0].Verdicts.Judge)
	}
	if rep := run(t, Config{Model: model}, s); rep.Accuracy != nil || rep.Judge != nil || rep.Records[0].Verdicts.Judge != nil || rep.AccuracyBy != "" {
		t.Errorf("a verdict was made up: %+v", rep)
	}
	_, err := Run(t.Context(), Config{Model: model, Judge: standIn(t), Open: newOpener(t).make}, s)
	if err == nil || !strings.Contains(err.Error(), "can't judge") {
		t.Errorf("got %v", err)
	}
}

func TestWrongGoldIsReportedBothWays(t *testing.T) {
	list, err := ReadWrongGold(write(t, "wrong.txt", "# said of the data\nq1  the answer is another\nother/q2\nlong/q3\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := longSuite(4, 1, 2, 3)
	rep := run(t, Config{Model: searching("It is on shelf 2.", "marmalade sort2"), WrongGold: list}, s)
	g := rep.WrongGold
	if g.Listed != 3 || g.Asked != 2 || g.Left.N != 1 || *g.Left.Contains != 100 || *rep.Contains != 33.33 || rep.N != 3 || !rep.Records[0].WrongGold || rep.Records[1].WrongGold {
		t.Errorf("got %+v of %+v", g, rep)
	}
	if _, err := ReadWrongGold(write(t, "none.txt", "# nothing\n")); err == nil || !strings.Contains(err.Error(), "there is no id in it") {
		t.Errorf("got %v", err)
	}
}

func TestIntervalsFollowTheSeedAndTheSpread(t *testing.T) {
	var records []Record
	for i := range 200 {
		right := i%4 == 0
		records = append(records, Record{Verdicts: Verdicts{Right: &right}})
	}
	a, b := Intervals(records, ByRule, 1), Intervals(records, ByRule, 1)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
	// By theory 1.96 standard errors of a share of a quarter of 200 are 6.0 per cent.
	got := a["accuracy"]
	if low, high := 25-got[0], got[1]-25; low < 5 || low > 7 || high < 5 || high > 7 {
		t.Errorf("got %v", got)
	}
	if cmp.Equal(a["accuracy"], Intervals(records, ByRule, 2)["accuracy"]) && cmp.Equal(a["accuracy"], Intervals(records, ByRule, 3)["accuracy"]) {
		t.Error("the seed changes nothing")
	}
	yes := true
	if m := Measure([]Record{{Abstain: true, Verdicts: Verdicts{Right: &yes}}}, ByRule); m.Accuracy != nil || *m.AbstentionRight != 100 {
		t.Errorf("a right abstention is in the accuracy: %+v", m)
	}
	if _, ok := a["f1"]; ok {
		t.Error("a measure was made up")
	}
}
