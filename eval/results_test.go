package eval

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/script"
)

// TestNamesOfResults holds that what changes figures changes the name, and what doesn't does not.
func TestNamesOfResults(t *testing.T) {
	named := func(name string) memgpt.Model {
		return script.New(script.Config{Capabilities: memgpt.Capabilities{Name: name}})
	}
	base := func() Config { return Config{Model: named("org/Model:7b"), Seed: 3} }
	name := func(change func(*Config), s *Suite, shown []string, hidden ...string) string {
		t.Helper()
		cfg := base()
		change(&cfg)
		got, err := ResultName(cfg, s, shown, hidden...)
		if err != nil || strings.Trim(got, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") != "" || filepath.Base(got) != got {
			t.Fatalf("%q, %v", got, err)
		}
		return got
	}
	same := func(*Config) {}
	first := name(same, longSuite(5, 1), nil)
	if !strings.HasPrefix(first, "long-memgpt-org_Model_7b-4096-seed3-") || len(first) != len("long-memgpt-org_Model_7b-4096-seed3-")+8 {
		t.Errorf("got %s", first)
	}
	seen := map[string]string{first: "nothing"}
	for what, got := range map[string]string{
		"mode":        name(func(c *Config) { c.Mode = ModeBoth }, longSuite(5, 1), nil),
		"window":      name(func(c *Config) { c.Window = 8192 }, longSuite(5, 1), nil),
		"seed":        name(func(c *Config) { c.Seed = 4 }, longSuite(5, 1), nil),
		"limit":       name(func(c *Config) { c.Limit = 4 }, longSuite(5, 1), nil),
		"rag":         name(func(c *Config) { c.Mode = ModeRAG }, longSuite(5, 1), nil),
		"k":           name(func(c *Config) { c.Mode, c.Ks = ModeRAG, []int{1, 20} }, longSuite(5, 1), nil),
		"prefetch":    name(func(c *Config) { c.Mode, c.Budget = ModeBoth, 500 }, longSuite(5, 1), nil),
		"words":       name(func(c *Config) { c.SummaryWords = 50 }, longSuite(5, 1), nil),
		"gold":        name(func(c *Config) { c.WrongGold = WrongGold{"q1": true} }, longSuite(5, 1), nil),
		"other gold":  name(func(c *Config) { c.WrongGold = WrongGold{"q2": true} }, longSuite(5, 1), nil),
		"judge":       name(func(c *Config) { c.Judge = named("j") }, longSuite(5, 1), nil),
		"like model":  name(func(c *Config) { c.Model = named("org:Model/7b") }, longSuite(5, 1), nil),
		"data":        name(same, longSuite(6, 1), nil),
		"questions":   name(same, longSuite(5, 2), nil),
		"pooled":      name(same, longSuite(5, 1), []string{"pooled"}),
		"place":       name(same, longSuite(5, 1), nil, "there"),
		"other place": name(same, longSuite(5, 1), nil, "elsewhere"),
	} {
		if before, twice := seen[got]; twice {
			t.Errorf("another %s and another %s are both %s", what, before, got)
		}
		seen[got] = what
	}
	if got := name(func(c *Config) { c.Parallel, c.Purse, c.Window = 7, NewPurse(1, 1), DefaultWindow }, longSuite(5, 1), nil); got != first {
		t.Errorf("got %s, want %s", got, first)
	}
}

// TestSavedResults writes a partial and a whole report, and then a partial one that would take its place.
func TestSavedResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "out")
	rep := run(t, Config{Model: seeker("conversation_search", "x")}, talkSuite(t))
	part := *rep
	part.Partial, part.Records = true, rep.Records[:2]
	for i, step := range []struct {
		rep   *Report
		saved bool
		n     int
	}{{&part, true, 2}, {&part, true, 2}, {rep, true, 4}, {&part, false, 4}, {rep, true, 4}} {
		saved, err := SaveResults(dir, "name", step.rep)
		records, bad := ReadRecords(filepath.Join(dir, "name.jsonl"))
		if err != nil || bad != nil || saved != step.saved || len(records) != step.n {
			t.Errorf("%d: %v, %v, %v, %d records", i, saved, err, bad, len(records))
		}
		text, err := os.ReadFile(filepath.Join(dir, "name.json"))
		if err != nil || strings.Contains(string(text), `"partial":true`) != (step.n == 2) || !strings.HasPrefix(string(text), `{"suite":"locomo"`) {
			t.Errorf("%d: %v in %s", i, err, text)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("%v are left, %v", files, err)
	}
	if _, err := SaveResults(write(t, "file", "x"), "name", rep); err == nil {
		t.Error("a file was taken for a directory")
	}
}
