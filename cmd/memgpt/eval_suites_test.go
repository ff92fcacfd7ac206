package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// evalJSON runs eval and reads what it prints.
func evalJSON(t *testing.T, args ...string) map[string]any {
	t.Helper()
	out, _, err := runEvalCommand(t, t.TempDir(), append(args, "--json")...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	var rep map[string]any
	if err := json.Unmarshal([]byte(out), &rep); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v in %q", err, out)
	}
	return rep
}

func evalFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEvalBaselines(t *testing.T) {
	path := onePair(t)
	for _, mode := range []string{"full", "sliding", "summary", "rag", "oracle"} {
		rep := evalJSON(t, "dmr", "--data", path, "--mode", mode, "--embedder", "none", "--model", "offline")
		for _, key := range []string{"suite", "mode", "model", "window", "n", "evidence_in_context", "by_category", "tokens", "searches", "seconds", "lost", "intervals"} {
			if _, ok := rep[key]; !ok {
				t.Errorf("%s: there is no %s in %v", mode, key, rep)
			}
		}
		if rep["mode"] != mode || rep["n"] != 2.0 || rep["search"] != false || mode != "summary" && rep["evidence_in_context"] != 100.0 {
			t.Errorf("%v", rep)
		}
		if _, made := rep["accuracy"]; made {
			t.Errorf("%s: nobody judged, and yet %v", mode, rep["accuracy"])
		}
	}
}

func TestEvalDocQAGoesOverTheFiguresOfThePaper(t *testing.T) {
	path := evalFile(t, "docs.jsonl", `{"conv":"d","docs":[{"id":"1","text":"The kiln at Lund was built by Oke Berg."},{"id":"2","text":"Rona has a shop."}],`+
		`"queries":[{"id":"q","q":"Who built the kiln at Lund?","a":"Oke Berg","cat":"qa","gold":["1"]}]}`)
	rep := evalJSON(t, "docqa", "--data", path, "--mode", "rag", "--embedder", "none", "--model", "offline")
	if by, ok := rep["by_k"].(map[string]any); !ok || len(by) != 7 || by["200"] == nil || rep["k"] != 10.0 || rep["accuracy"] != 100.0 {
		t.Errorf("%v", rep)
	}
	rep = evalJSON(t, "docqa", "--data", path, "--mode", "rag", "--k", "2", "--embedder", "none", "--model", "offline")
	if by, ok := rep["by_k"].(map[string]any); !ok || len(by) != 1 || rep["k"] != 2.0 {
		t.Errorf("%v", rep)
	}
}

func TestEvalOpenerAndWrongGold(t *testing.T) {
	path := evalFile(t, "p.json", `{"test":[{"Speaker 1":["I keep bees on the roof of the mill."],"opener":"How are your bees?"},{"Speaker 1":["I sail a red boat to Rona."]}]}`)
	rep := evalJSON(t, "opener", "--data", path, "--model", "offline", "--limit", "2")
	by, _ := rep["by_category"].(map[string]any)
	own, _ := by["own"].(float64)
	none, _ := by["none"].(float64)
	if rep["n"] != 2.0 || len(by) != 3 || rep["sim1"] != own || own <= none || rep["simh"] == nil || rep["sim3"] == nil {
		t.Errorf("%v", rep)
	}
	rep = evalJSON(t, "dmr", "--data", onePair(t), "--embedder", "none", "--model", "offline", "--wrong-gold", evalFile(t, "w.txt", "a/q twisted\n"))
	if g, ok := rep["wrong_gold"].(map[string]any); !ok || g["asked"] != 1.0 {
		t.Errorf("%v", rep["wrong_gold"])
	}
}

func TestEvalContrast(t *testing.T) {
	if raced {
		t.Skip("its runs take a minute under the race detector, and are held in package eval")
	}
	rep := evalJSON(t, "contrast", "--limit", "1", "--model", "offline")
	rows, _ := rep["rows"].([]any)
	points := map[any]bool{}
	for _, r := range rows {
		if row, ok := r.(map[string]any); ok {
			points[row["point"]] = true
		}
	}
	if len(points) != 6 || rep["model"] != "offline" {
		t.Errorf("%v", rep)
	}
}

func TestEvalSuitesRefuseWhatTheyCantRun(t *testing.T) {
	path := onePair(t)
	people := evalFile(t, "p.json", `{"test":[{"Speaker 1":["a"]},{"Speaker 1":["b"]}]}`)
	for want, args := range map[string][]string{
		"it is no file of personas":   {"opener", "--data", path},
		"and another person's lines":  {"opener", "--data", evalFile(t, "one.json", `{"test":[{"Speaker 1":["a"]}]}`)},
		"needs a mode of an agent":    {"opener", "--data", people, "--embedder", "none"},
		"--k is how many hits":        {"dmr", "--data", path, "--k", "5"},
		"numbers above 0":             {"dmr", "--data", path, "--mode", "rag", "--k", "5,0"},
		"--summary-words bounds":      {"dmr", "--data", path, "--summary-words", "50"},
		"it can't judge answers":      {"dmr", "--data", path, "--model", "offline", "--judge", "offline", "--embedder", "none"},
		"there is no id in it":        {"dmr", "--data", path, "--wrong-gold", evalFile(t, "w.txt", "#\n"), "--embedder", "none"},
		"suite relay can't be pooled": {"relay", "--data", "x", "--pooled"},
		"--window and --limit":        {"contrast", "--limit", "0"},
		"is too small":                {"dmr", "--data", path, "--window", "300", "--embedder", "none"},
	} {
		if out, _, err := runEvalCommand(t, t.TempDir(), args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}
