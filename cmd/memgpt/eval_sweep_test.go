package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memgpt/eval"
)

func TestParsePolicy(t *testing.T) {
	p, err := parsePolicy(" alert=.6, flush=90%,target=.3,page=3,summary=off,protocol=native,prefetch=400")
	want := eval.Policy{Alert: .6, Flush: .9, Target: .3, PageSize: 3, Summary: "off", Protocol: "native", Prefetch: 400}
	if err != nil || p != want {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := parsePolicy(""); err != nil || p != (eval.Policy{}) {
		t.Errorf("%+v, %v", p, err)
	}
	for text, want := range map[string]string{
		"speed=1":                `there is no policy "speed"; the policies are alert, flush, target, page, prefetch, protocol, summary`,
		"alert":                  "write it as alert=value",
		"alert=2":                "it takes a share above 0 and up to 1",
		"alert=.5,alert=.6":      "alert is set twice",
		"page=0.5":               "it takes a whole number",
		"summary=no":             "it takes on or off",
		"summary=on,summary=off": "summary is set twice",
		"protocol=json":          "it takes memgpt or native",
		"target=.9,flush=.8":     "don't go together",
		"window=1,page=x":        "it takes a whole number", // all that is wrong is said
	} {
		if _, err := parsePolicy(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestEvalPolicyInTheReport(t *testing.T) {
	rep := evalJSON(t, "dmr", "--data", onePair(t), "--embedder", "none", "--model", "offline", "--policy", "alert=.6,page=3,summary=off")
	p, ok := rep["policy"].(map[string]any)
	if !ok || p["alert"] != .6 || p["page_size"] != 3.0 || p["summary"] != "off" || p["flush"] != 1.0 || p["protocol"] != "memgpt" {
		t.Errorf("%v", rep["policy"])
	}
	if rep := evalJSON(t, "dmr", "--data", onePair(t), "--embedder", "none", "--model", "offline", "--mode", "full"); rep["policy"] != nil {
		t.Errorf("a baseline has no policies: %v", rep["policy"])
	}
	for want, args := range map[string][]string{"no policy": {"--policy", "x=1"}, "no memory to manage": {"--policy", "alert=.6", "--mode", "rag"}} {
		if _, _, err := runEvalCommand(t, t.TempDir(), append([]string{"dmr", "--data", onePair(t), "--embedder", "none"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestEvalSweep(t *testing.T) {
	base := filepath.Join(t.TempDir(), "trade")
	args := []string{"sweep", "dmr", "--data", onePair(t), "--embedder", "none", "--vary", "alert=.5,.7", "--vary", "page=1,5", "--chart", base}
	out, told, err := runEvalCommand(t, t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"default ", "alert=.5", "page=1", "no difference"} {
		if !strings.Contains(out, part) {
			t.Errorf("there is no %q in\n%s", part, out)
		}
	}
	if strings.Contains(out, "\nalert=.7 ") || strings.Contains(out, "\npage=5 ") || !strings.Contains(told, "run 3 of 3") {
		t.Errorf("the defaults are run again:\n%s%s", out, told)
	}
	for _, end := range []string{".svg", ".png"} {
		if info, err := os.Stat(base + end); err != nil || info.Size() < 1000 {
			t.Errorf("%v", err)
		}
	}
	out, _, err = runEvalCommand(t, t.TempDir(), append(args, "--grid", "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var got []string
	for _, line := range lines {
		var r eval.SweepRun
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Value)
	}
	if want := "|alert=.5,page=1|alert=.5,page=5|alert=.7,page=1"; strings.Join(got, "|") != want { // .7 and 5 are the defaults
		t.Errorf("%v", got)
	}
}

func TestEvalSweepRefuses(t *testing.T) {
	path := onePair(t)
	grid := []string{"--grid", "--vary", "alert=.4,.5,.6,.8", "--vary", "page=1,2,3,4"}
	for want, args := range map[string][]string{
		`no policy "speed"`:                          {"--vary", "speed=1"},
		"there are no values":                        {"--vary", "alert="},
		"alert is varied twice":                      {"--vary", "alert=.5", "--vary", "alert=.6"},
		"no value but those":                         {"--vary", "alert=.7"},
		"don't go together":                          {"--vary", "flush=.4"},
		"say --runs 17":                              grid,
		"--runs says 9, and what is varied makes 17": append(grid, "--runs", "9"),
		"no memory to manage":                        {"--mode", "full"},
	} {
		out, _, err := runEvalCommand(t, t.TempDir(), append([]string{"sweep", "dmr", "--data", path, "--embedder", "none"}, args...)...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: %v, printed %q", args, err, out)
		}
	}
}

func TestWithPolicy(t *testing.T) {
	for _, c := range [][3]string{{"", "page=3", "page=3"}, {"alert=.5,page=2", "page=3", "alert=.5,page=3"}, {" page = 2", "page=3,alert=.9", "page=3,alert=.9"}} {
		if got := withPolicy(c[0], c[1]); got != c[2] {
			t.Errorf("%q with %q is %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// TestTheSweepsAxisEndsAtAHundred: no share is above that, also where every run is at it, and the whiskers are on the axis.
func TestTheSweepsAxisEndsAtAHundred(t *testing.T) {
	for low, want := range map[float64]float64{100: 90, 63.2: 60, 60: 50, 3: 0, 0: 0} {
		rep := &eval.Report{Evidence: 100, Intervals: map[string][2]float64{"evidence_in_context": {low, 100}}}
		if c := sweepChart([]eval.SweepRun{{Report: rep}}); c.YMin != want || c.YMax != 100 {
			t.Errorf("from %v: %v to %v", low, c.YMin, c.YMax)
		}
	}
}
