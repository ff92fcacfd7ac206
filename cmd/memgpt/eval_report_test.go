package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEvalReport runs a suite twice, keeps what it prints, and has a report written of it.
func TestEvalReport(t *testing.T) {
	dir, data := t.TempDir(), onePair(t)
	for _, mode := range []string{"memgpt", "rag"} {
		out, _, err := runEvalCommand(t, t.TempDir(), "dmr", "--data", data, "--mode", mode, "--limit", "1", "--embedder", "none", "--model", "offline", "--json")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, `"data":"`+filepath.Base(data)+`"`) || !strings.Contains(out, `"limit":1`) {
			t.Errorf("the report doesn't say of which questions it is: %s", out)
		}
		if err := os.WriteFile(filepath.Join(dir, mode+".json"), []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, _, err := runEvalCommand(t, t.TempDir(), "report", dir, "--title", "Two <systems>")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Two &lt;systems>\n", "| memgpt | offline | 4,096 | 1 |", "| rag | offline | 4,096 | 1 |", "prefers-color-scheme: dark"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	for name := range strings.Lines(out) {
		if _, err := os.Stat(strings.TrimSpace(name)); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := runEvalCommand(t, t.TempDir(), "report", t.TempDir()); err == nil || !strings.Contains(err.Error(), "eval report: there is no report in") {
		t.Errorf("an empty directory: %v", err)
	}
}
