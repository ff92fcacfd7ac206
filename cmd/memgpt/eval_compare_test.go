package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memgpt/eval"
)

// comparedFile writes records of three questions; right says which are answered.
func comparedFile(t *testing.T, path, suite string, right ...bool) {
	t.Helper()
	var list []eval.Record
	for i, yes := range right {
		list = append(list, eval.Record{Version: eval.RecordVersion, Suite: suite, Mode: eval.ModeMemGPT, Model: "m", Window: 4096, Case: "c",
			Question: string(rune('a' + i)), Group: "g", QuestionHash: "h", Verdicts: eval.Verdicts{Contains: &yes}})
	}
	var b bytes.Buffer
	if err := eval.WriteRecords(&b, list); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEvalCompareFilesAndDirectories(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	comparedFile(t, at("a/dmr.jsonl"), "dmr", true, true, false)
	comparedFile(t, at("b/dmr.jsonl"), "dmr", false, true, true)
	comparedFile(t, at("a/locomo.jsonl"), "locomo", true)
	comparedFile(t, at("b/locomo.jsonl"), "locomo", true)
	comparedFile(t, at("b/docqa.jsonl"), "docqa", true)

	out, _, err := runEvalCommand(t, dir, "compare", at("a/dmr.jsonl"), at("b/dmr.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"suite dmr", "3 questions in both", "1 lost, 1 gained", "lost  c / a"} {
		if !strings.Contains(out, part) {
			t.Errorf("there is no %q in\n%s", part, out)
		}
	}
	out, told, err := runEvalCommand(t, dir, "compare", at("a"), at("b"), "--json")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var c eval.Comparison
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &c) != nil || c.Suite != "dmr" || len(c.Questions) != 2 || c.A.Name != at("a/dmr.jsonl") {
		t.Errorf("%s", out)
	}
	if !strings.Contains(told, "docqa.jsonl is only in "+at("b")) {
		t.Errorf("a file without a match isn't told: %q", told)
	}
}

func TestEvalCompareRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	comparedFile(t, at("good.jsonl"), "dmr", true, false)
	comparedFile(t, at("other.jsonl"), "locomo", true, false)
	good, err := os.ReadFile(at("good.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty.jsonl": "", "cut.jsonl": string(good[:len(good)-40]), "old.jsonl": `{"v":99}`} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(at("dir/sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"other.jsonl": "suite dmr and the second of locomo", "empty.jsonl": "no record in it", "cut.jsonl": "line 2",
		"old.jsonl": "version 99", "none.jsonl": "no such file", "dir": "one is a directory"} {
		out, _, err := runEvalCommand(t, dir, "compare", at("good.jsonl"), at(name))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) || out != "" {
			t.Errorf("%s: %v, printed %q", name, err, out)
		}
	}
	if _, _, err := runEvalCommand(t, dir, "compare", at("dir"), at("dir/sub")); err == nil || !strings.Contains(err.Error(), "no file of records of the same name") {
		t.Errorf("two empty directories: %v", err)
	}
}
