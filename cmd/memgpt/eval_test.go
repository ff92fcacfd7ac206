package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runEvalCommand runs eval as the command line does and returns what it prints and the error.
func runEvalCommand(t *testing.T, home string, args ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := map[string]string{"MEMGPT_HOME": home, "MEMGPT_MODEL": "offline"}
	a := &app{streams: streams{strings.NewReader(""), &stdout, &stderr}, getenv: func(name string) string { return env[name] }}
	cmd := a.evalCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestEval(t *testing.T) {
	dir := t.TempDir()
	home, path := filepath.Join(dir, "home"), filepath.Join(dir, "talk.jsonl")
	data := `{"conv":"a","docs":[{"id":"1","text":"Ana: I planted a plum tree behind the shed.","time":"2024-01-01","who":"Ana"},` +
		`{"id":"2","text":"Ben: My boat is called Wagtail.","time":"2024-01-02","who":"Ben"}],` +
		`"queries":[{"id":"q","q":"What did Ana plant behind the shed?","a":"a plum tree","cat":"single","gold":["1"]}]}`
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, err := runEvalCommand(t, home, "locomo", "--data", path, "--model", "offline", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var rep struct {
		Suite      string             `json:"suite"`
		N          int                `json:"n"`
		Window     int                `json:"window"`
		Evidence   float64            `json:"evidence_in_context"`
		ByCategory map[string]float64 `json:"by_category"`
	}
	if err := json.Unmarshal([]byte(out), &rep); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v in %q", err, out)
	}
	if rep.Suite != "locomo" || rep.N != 1 || rep.Window != 4096 || rep.Evidence != 100 || rep.ByCategory["single"] != 100 {
		t.Errorf("got %s", out)
	}
	if !strings.Contains(errs, "1 of 1 questions") || !strings.Contains(errs, "stand-in") {
		t.Errorf("standard error has %q", errs)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the data directory was touched: %v", err)
	}
	if out, _, err = runEvalCommand(t, home, "locomo", "--data", path, "--no-search"); err != nil || !strings.Contains(out, "mode                 none") {
		t.Errorf("%v, %s", err, out)
	}
}

// onePair writes two made-up conversations, each with a question.
func onePair(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pair.jsonl")
	data := `{"conv":"a","docs":[{"id":"1","text":"I keep bees on the roof of the mill."}],"queries":[{"id":"q","q":"Where do you keep bees?","cat":"dmr","gold":["1"]}]}
{"conv":"b","docs":[{"id":"1","text":"My uncle restores organs."}],"queries":[{"id":"q","q":"What does your uncle restore?","cat":"dmr","gold":["1"]}]}`
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEvalModes(t *testing.T) {
	path := onePair(t)
	for _, suite := range []string{"locomo", "madial", "dmr"} {
		for mode, want := range map[string]float64{"prefetch": 100, "memgpt": 100, "both": 100, "none": 0} {
			out, _, err := runEvalCommand(t, t.TempDir(), suite, "--data", path, "--mode", mode, "--embedder", "none", "--json", "--model",
				"offline:bad_query=0,seed=3", "--pooled")
			if err != nil {
				t.Fatal(err)
			}
			var rep struct {
				Suite, Mode, Model string
				N                  int
				Evidence           float64 `json:"evidence_in_context"`
				Prefetch           *struct{ Turns, Tokens, Evidence float64 }
				By                 map[string]float64 `json:"by_category"`
			}
			if err := json.Unmarshal([]byte(out), &rep); err != nil {
				t.Fatal(err)
			}
			p := rep.Prefetch
			if rep.Suite != suite || rep.Mode != mode || rep.N != 2 || rep.Evidence != want || rep.By["dmr"] != want || rep.Model != "offline:seed=3" {
				t.Errorf("%s", out)
			}
			if handed := mode == "prefetch" || mode == "both"; (p != nil) != handed || handed && (p.Turns != 100 || p.Evidence != 100 || p.Tokens < 20) {
				t.Errorf("%s", out)
			}
		}
	}
	out, _, err := runEvalCommand(t, t.TempDir(), "dmr", "--data", path, "--embedder", "none", "--model", "offline:forget_search=1", "--json")
	if err != nil || !strings.Contains(out, `"evidence_in_context":0,`) || !strings.Contains(out, `"searches":0,`) {
		t.Errorf("%v, %s", err, out)
	}
}

func TestEvalRefusesWhatItCantRun(t *testing.T) {
	for want, args := range map[string][]string{
		"no such file":            {"locomo", "--data", filepath.Join(t.TempDir(), "absent.jsonl")},
		"there is no suite":       {"chess", "--data", "x"},
		"\"data\" not set":        {"locomo"},
		"--window and --parallel": {"nested-kv", "--data", "x", "--window", "0"},
		"there is no mode":        {"locomo", "--data", "x", "--mode", "telepathy"},
		"leave one out":           {"locomo", "--data", "x", "--mode", "both", "--no-search"},
		"nothing is handed over":  {"locomo", "--data", "x", "--prefetch-budget", "500"},
		"--prefetch-budget 0 or":  {"locomo", "--data", "x", "--mode", "both", "--prefetch-budget", "-1"},
		"can't be pooled":         {"nested-kv", "--data", "x", "--pooled"},
		"there is no slip":        {"dmr", "--data", onePair(t), "--model", "offline:forget=1"},
		"no share within 0 and 1": {"dmr", "--data", onePair(t), "--model", "offline:bad_query=2"},
	} {
		if out, _, err := runEvalCommand(t, t.TempDir(), args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}

func TestEvalRetrieval(t *testing.T) {
	dir := t.TempDir()
	home, path := filepath.Join(dir, "home"), filepath.Join(dir, "talk.jsonl")
	data := `{"conv":"a","docs":[{"id":"1","text":"Ana: I planted a plum tree.","time":"2024-01-01","who":"Ana"}],` +
		`"queries":[{"id":"q","q":"What did Ana plant?","cat":"single","gold":["1"]},{"id":"r","q":"Who is Ben?","gold":[]}]}`
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--pooled", "--ablate"}, {"--docs", path}} {
		args := append([]string{"retrieval", path, path, "--embedder", "none", "--json"}, flags...)
		out, errs, err := runEvalCommand(t, home, args...)
		if err != nil {
			t.Fatal(err)
		}
		var rep struct {
			Files []struct {
				File       string             `json:"file"`
				Queries    int                `json:"queries"`
				Recall     map[string]float64 `json:"recall"`
				Categories map[string]any     `json:"categories"`
				Ablation   []any              `json:"ablation"`
			} `json:"files"`
		}
		if err := json.Unmarshal([]byte(out), &rep); err != nil || strings.Count(out, "\n") != 1 || len(rep.Files) != 2 {
			t.Fatalf("%v in %q", err, out)
		}
		f := rep.Files[1]
		if f.File != path || f.Queries != 1 || len(f.Recall) != 4 || f.Recall["20"] != 100 || f.Categories["single"] == nil {
			t.Errorf("%v: got %s", flags, out)
		}
		if (len(f.Ablation) > 0) != (len(flags) == 2 && flags[1] == "--ablate") {
			t.Errorf("%v: the ablation is %v", flags, f.Ablation)
		}
		if !strings.Contains(errs, " of ") {
			t.Errorf("standard error has %q", errs)
		}
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the data directory was touched: %v", err)
	}
	if out, _, err := runEvalCommand(t, home, "retrieval", path, "--embedder", "none"); err != nil || !strings.Contains(out, "R@5") {
		t.Errorf("%v, %s", err, out)
	}
}

func TestEvalRetrievalRefusesWhatItCantRun(t *testing.T) {
	for want, args := range map[string][]string{
		"no such file":           {"retrieval", filepath.Join(t.TempDir(), "absent.jsonl"), "--embedder", "none"},
		"requires at least 1":    {"retrieval", "--embedder", "none"},
		"embedder nonesuch:":     {"retrieval", "x", "--embedder", "nonesuch"},
		"unknown flag: --window": {"retrieval", "x", "--window", "7"},
	} {
		if out, _, err := runEvalCommand(t, t.TempDir(), args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}
