package chart

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memgpt/eval"
)

// kvRun is a report of nested-kv with the accuracy of two levels.
func kvRun(mode eval.Mode, window int, level0, level1 float64) *eval.Report {
	right := (level0 + level1) / 2
	return &eval.Report{Suite: eval.SuiteNestedKV, Mode: mode, Model: "offline", Window: window, N: 20, Evidence: right, All: right, Accuracy: &right,
		AccuracyBy: eval.ByRule, Intervals: map[string][2]float64{"accuracy": {right - 1, right + 1}, "evidence_in_context": {right - 2, right + 2}},
		Lost: map[eval.Loss]float64{eval.LostNotFound: 100 - right}, Tokens: 1234, Searches: 2.5,
		ByLevel: map[string]float64{"0": level0, "1": level1}, NByLevel: map[string]int{"0": 10, "1": 10},
		Measures: map[string]eval.Measures{"0": {N: 10, Accuracy: &level0}, "1": {N: 10, Accuracy: &level1}}}
}

// talkRun is a report of a suite of talk with two categories.
func talkRun(suite string, mode eval.Mode, evidence float64) *eval.Report {
	f1, half := 12.5, evidence/2
	return &eval.Report{Suite: suite, Mode: mode, Model: "offline", Window: 4096, N: 7, Evidence: evidence, F1: &f1,
		Intervals: map[string][2]float64{"evidence_in_context": {half, evidence}}, Tokens: 100 * evidence,
		ByCategory: map[string]float64{"plain": evidence, "winding": half},
		Measures:   map[string]eval.Measures{"plain": {N: 4, Evidence: &evidence}, "winding": {N: 3, Evidence: &half}}}
}

// runsIn writes reports into a directory, each under its name.
func runsIn(t *testing.T, reports map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	for name, r := range reports {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reported makes the report of a directory and returns its text.
func reported(t *testing.T, dir string) string {
	t.Helper()
	files, err := Report(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() == 0 {
			t.Errorf("%s was named and is not there: %v", f, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func wantLine(t *testing.T, text string, parts ...string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			return
		}
	}
	t.Errorf("no line has all of %q in:\n%s", parts, text)
}

func TestRunsAreNamedByWhatDiffers(t *testing.T) {
	seeded := kvRun(eval.ModeFull, 4096, 60, 20)
	seeded.Seed = 7
	text := reported(t, runsIn(t, map[string]any{"a.json": kvRun(eval.ModeMemGPT, 4096, 100, 90), "b.json": kvRun(eval.ModeFull, 4096, 50, 10),
		"c.json": kvRun(eval.ModeFull, 16384, 100, 80), "d.json": seeded, "e.json": seeded, "notes.txt": "no report"}))
	wantLine(t, text, "| memgpt, window 4,096, seed 0 | offline | 4,096 | 20 |", "95.0 (94.0 to 96.0)", "| 2.5 | 1,234 |")
	wantLine(t, text, "| full, window 4,096, seed 0 |", "30.0 (29.0 to 31.0)")
	wantLine(t, text, "| full, window 16,384, seed 0 |", "90.0 (89.0 to 91.0)")
	wantLine(t, text, "| full, window 4,096, seed 7, d |", "40.0 (39.0 to 41.0)")
	wantLine(t, text, "| full, window 4,096, seed 7, e |")
	wantLine(t, text, "| memgpt, window 4,096, seed 0 | 100.0 (n 10) | 90.0 (n 10) |")
	wantLine(t, text, "| full, window 4,096, seed 0 | 0.0 | 0.0 | 70.0 | 0.0 |")
	wantLine(t, text, "Right, without a judge: "+eval.ByRule)
	wantLine(t, text, eval.Notes(eval.SuiteNestedKV)[0])
}

// TestPaperStaysApart: what the paper printed is marked as such wherever it stands, and only that.
func TestPaperStaysApart(t *testing.T) {
	p, err := readPaper()
	if err != nil {
		t.Fatal(err)
	}
	dir := runsIn(t, map[string]any{"kv.json": kvRun(eval.ModeMemGPT, 4096, 100, 90), "dmr.json": talkRun(eval.SuiteDMR, eval.ModeRAG, 80)})
	text := reported(t, dir)
	wantLine(t, text, "| *MemGPT, GPT-4 Turbo (paper)* | 100 | 100 |")
	wantLine(t, text, "| *MemGPT (paper)* | GPT-4 Turbo | 128,000 |", "| 93.4 |", "| 82.7 |")
	wantLine(t, text, "| *summary of the sessions (paper)* | GPT-4 | 8,192 |", "| 32.1 |", "| 29.6 |")
	wantLine(t, text, "gpt-4-0613 with a window of 8,192", "compare the shape")
	wantLine(t, text, "Nobody judged our answers")
	for _, s := range sections(mustRuns(t, dir), p) {
		for _, f := range s.figures() {
			ours := 0
			for _, series := range f.chart.Series {
				if series.Paper != strings.HasSuffix(series.Name, "(paper)") {
					t.Errorf("%s: series %q, of the paper: %v", f.chart.Title, series.Name, series.Paper)
				}
				if !series.Paper {
					ours++
				}
			}
			if ours != len(s.runs) {
				t.Errorf("%s has %d series of %d runs", f.chart.Title, ours, len(s.runs))
			}
			if want := "Hollow and dashed"; len(f.chart.Series) > ours && !strings.Contains(f.chart.Note, want) {
				t.Errorf("%s doesn't say which points are the paper's", f.chart.Title)
			}
		}
	}
}

func mustRuns(t *testing.T, dir string) []*run {
	t.Helper()
	runs, err := readRuns(dir)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// TestPaperTablesAreWhole: each row has a value for each X or column, and each model is known.
func TestPaperTablesAreWhole(t *testing.T) {
	p, err := readPaper()
	if err != nil {
		t.Fatal(err)
	}
	for suite, table := range p.Tables {
		if !slices.Contains(eval.Suites(), suite) || !strings.Contains(table.Where, "section") {
			t.Errorf("table of %q in %q", suite, table.Where)
		}
		for _, c := range table.Columns {
			if measureNamed(c).name != c {
				t.Errorf("%s: there is no measure %q", suite, c)
			}
		}
		for _, row := range table.Rows {
			if (row.Flat == nil) != (len(row.Values) == len(table.X)+len(table.Columns)) {
				t.Errorf("%s: row %q has %d values", suite, row.Name, len(row.Values))
			}
			for _, v := range row.Values {
				if v*table.Scale > 100 || v < 0 {
					t.Errorf("%s: row %q has %g", suite, row.Name, v)
				}
			}
			for _, m := range strings.Split(row.Model, ", ") {
				if m != "" && p.window(m) == "" {
					t.Errorf("%s: row %q is of model %q", suite, row.Name, m)
				}
			}
		}
	}
}

func TestDocumentsAgainstK(t *testing.T) {
	right := []float64{70, 90, 40}
	rag := &eval.Report{Suite: eval.SuiteDocQA, Mode: eval.ModeRAG, Model: "offline", Window: 4096, N: 9, K: 10, Accuracy: &right[1], AccuracyBy: eval.ByContained,
		ByK: map[string]eval.Measures{"1": {N: 9, Accuracy: &right[0]}, "10": {N: 9, Accuracy: &right[1]}, "200": {N: 9, Accuracy: &right[2]}}}
	paging := &eval.Report{Suite: eval.SuiteDocQA, Mode: eval.ModeMemGPT, Model: "offline", Window: 4096, N: 9, Accuracy: &right[1], AccuracyBy: eval.ByContained}
	dir := runsIn(t, map[string]any{"rag.json": rag, "memgpt.json": paging})
	text := reported(t, dir)
	wantLine(t, text, "| K | 1 | 10 | 200 |")
	wantLine(t, text, "| rag | 70.0 | 90.0 | 40.0 |")
	wantLine(t, text, "| *GPT-4 (paper)* | 42 | 70 | 12 |")
	wantLine(t, text, "| *MemGPT, GPT-3.5 Turbo (paper)* | 40 | 40 | 40 |")
	p, err := readPaper()
	if err != nil {
		t.Fatal(err)
	}
	c := sections(mustRuns(t, dir), p)[0].figures()[0].chart
	if want := []Point{{X: 1, Y: 90}, {X: 200, Y: 90}}; !slices.Equal(c.Series[0].Points, want) || c.Series[0].Name != "memgpt" {
		t.Errorf("memgpt is drawn as %v", c.Series[0])
	}
	if want := []Point{{X: 1, Y: 70}, {X: 10, Y: 90}, {X: 200, Y: 40}}; !slices.Equal(c.Series[1].Points, want) {
		t.Errorf("rag is drawn as %v", c.Series[1])
	}
}

func TestOpenerHasItsVariants(t *testing.T) {
	sims := []float64{.9, .8, .7}
	opener := &eval.Report{Suite: eval.SuiteOpener, Mode: eval.ModeMemGPT, Model: "offline", Window: 4096, N: 3, Sim1: &sims[0], Sim3: &sims[1],
		Intervals: map[string][2]float64{"sim1": {.85, .95}}, Measures: map[string]eval.Measures{"own": {N: 3, Sim1: &sims[0]}, "other": {N: 3, Sim1: &sims[2]}}}
	text := reported(t, runsIn(t, map[string]any{"o.json": opener}))
	wantLine(t, text, "| memgpt, own working context |", "| 0.900 (0.850 to 0.950) |", "| 0.800 |")
	wantLine(t, text, "| memgpt, another person's |", "| 0.700 |")
	wantLine(t, text, "| *human (paper)* |", "| 0.800 |", "| 1.000 |")
	wantLine(t, text, "there is no SIM-H of ours")
}

func TestCategoriesJudgesAndWhatWasLeftOut(t *testing.T) {
	right, off, left := 60.0, 25.0, 66.7
	judged := talkRun(eval.SuiteLocomo, eval.ModeMemGPT, 80)
	judged.Model, judged.Accuracy, judged.AccuracyBy, judged.AbstentionRight, judged.WithoutEvidence, judged.Failed = "big|model", &right, eval.ByJudge, &off, 5, 2
	judged.Judge = &eval.JudgeReport{Model: "umpire", Prompt: "1-abc", N: 6, Failed: 1}
	judged.WrongGold = &eval.GoldReport{Listed: 9, Asked: 2, Left: eval.Measures{N: 5, Accuracy: &left}}
	var stopped map[string]any
	data, err := json.Marshal(talkRun(eval.SuiteLocomo, eval.ModeFull, 30))
	if err == nil {
		err = json.Unmarshal(data, &stopped)
	}
	if err != nil {
		t.Fatal(err)
	}
	stopped["partial"], stopped["n_done"], stopped["n_planned"], stopped["cost"] = true, 7, 70, .0123
	text := reported(t, runsIn(t, map[string]any{"j.json": judged, "s.json": stopped}))
	wantLine(t, text, `| memgpt, big\|model |`, "| 60.0 |", "| 25.0 |", "| 80.0 (40.0 to 80.0) |", "| 2 |")
	wantLine(t, text, "| full, offline (partial) |", "| 7; stopped at 7 of 70 |", "| $0.0123 |")
	wantLine(t, text, "| system | plain | winding |")
	wantLine(t, text, "80.0 (n 4) | 40.0 (n 3)")
	wantLine(t, text, "by the judge umpire, instructions 1-abc; 6 verdicts, and 1 answers without one")
	wantLine(t, text, "without 2 of wrong gold | 5 | 66.7 |")
	wantLine(t, text, "5 questions of the data name no evidence")
	wantLine(t, text, `Runs of big\|model show`)
	wantLine(t, text, "Runs of `offline` are answered by a stand-in")
	if strings.Contains(text, "(paper)*") || strings.Contains(text, "SIM-1") {
		t.Errorf("LoCoMo has figures of the paper, or an empty column:\n%s", text)
	}
}

func TestDataSetsAreApart(t *testing.T) {
	one, two := talkRun(eval.SuiteLocomo, eval.ModeMemGPT, 80), talkRun(eval.SuiteLocomo, eval.ModeMemGPT, 30)
	one.Data, two.Data = "first.jsonl", "second.jsonl"
	text := reported(t, runsIn(t, map[string]any{"1.json": one, "2.json": two}))
	wantLine(t, text, "## locomo (first.jsonl):")
	wantLine(t, text, "## locomo (second.jsonl):")
	one.Data, two.Data = "\u4e00.jsonl", "\u4e8c.jsonl" // no letter of these is in a file's name
	text = reported(t, runsIn(t, map[string]any{"1.json": one, "2.json": two}))
	wantLine(t, text, `src="locomo-evidence-by-category.svg"`)
	wantLine(t, text, `src="locomo-evidence-by-category-2.svg"`)
}

func TestSameRunsSameReport(t *testing.T) {
	make := func() (string, map[string][]byte) {
		dir := runsIn(t, map[string]any{"b.json": talkRun(eval.SuiteLocomo, eval.ModeFull, 30), "a.json": talkRun(eval.SuiteLocomo, eval.ModeMemGPT, 80)})
		text, files := reported(t, dir), map[string][]byte{}
		list, err := filepath.Glob(filepath.Join(dir, "*.*g"))
		if err != nil || len(list) != 6 {
			t.Fatalf("there are %v, %v", list, err)
		}
		for _, path := range list {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(path)] = data
		}
		return text, files
	}
	text, files := make()
	again, others := make()
	if text != again {
		t.Error("the report differs")
	}
	for name := range files {
		if !bytes.Equal(files[name], others[name]) {
			t.Errorf("%s differs", name)
		}
		if strings.HasSuffix(name, ".svg") && !strings.Contains(text, name) {
			t.Errorf("the report doesn't show %s", name)
		}
	}
}

func TestWhatIsNoReport(t *testing.T) {
	good, err := json.Marshal(kvRun(eval.ModeFull, 4096, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string]string{
		"the file is empty":          "\n",
		"no JSON of a report":        string(good[:len(good)/2]),
		"more than one JSON value":   string(good) + "\n" + string(good),
		"it has no suite":            `{"rows":[]}`,
		`its suite is "chess"`:       `{"suite":"chess","mode":"full","n":1,"window":1}`,
		"there is no mode":           `{"suite":"dmr","mode":"guess","n":1,"window":1}`,
		"0 questions in a window of": `{"suite":"dmr","mode":"full","window":4096}`,
	} {
		dir := runsIn(t, map[string]any{"good.json": kvRun(eval.ModeFull, 4096, 1, 2)})
		if err := os.WriteFile(filepath.Join(dir, "odd.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Report(dir, "")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "odd.json") {
			t.Errorf("want %q, got %v", want, err)
		}
		if list, _ := os.ReadDir(dir); len(list) != 2 {
			t.Errorf("%s: something was written", want)
		}
	}
	if _, err := Report(t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "there is no report in") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Report(filepath.Join(t.TempDir(), "gone"), ""); err == nil {
		t.Error("a directory that isn't there passes")
	}
}

// TestWilson checks against figures worked out by hand from Wilson's formula, z = 1.96.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		share     float64
		n         int
		low, high float64
	}{{50, 100, 40.38, 59.62}, {100, 4, 51.01, 100}, {0, 4, 0, 48.99}, {90, 10, 59.58, 98.21}, {50, 0, 0, 0}} {
		if low, high := wilson(c.share, c.n); math.Abs(low-c.low) > .01 || math.Abs(high-c.high) > .01 {
			t.Errorf("%g %% of %d: %.2f to %.2f, want %.2f to %.2f", c.share, c.n, low, high, c.low, c.high)
		}
	}
}

func TestGroupedNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 128000: "128,000", -1234567: "-1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}
