package eval

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLong runs the stand-in over whole data sets. MEMGPT_LONG=1 asks for it.
func TestLong(t *testing.T) {
	if os.Getenv("MEMGPT_LONG") == "" {
		t.Skip("takes minutes; set MEMGPT_LONG=1")
	}
	data := shared(t)
	talks, err := Load(SuiteLocomo, filepath.Join(data, "memory", "locomo_a.jsonl"), false)
	if err != nil {
		t.Fatal(err)
	}
	timed := func(cfg Config, s *Suite) *Report {
		start := time.Now()
		rep := run(t, cfg, s)
		rep.Seconds = time.Since(start).Seconds()
		_ = rep.WriteText(os.Stdout)
		return rep
	}
	with := timed(Config{Model: standIn(t)}, talks)
	without := timed(Config{Model: standIn(t), Mode: ModeNone}, talks)
	if with.N != without.N || with.Evidence < without.Evidence+30 {
		t.Errorf("evidence in context: %v with search, %v without", with.Evidence, without.Evidence)
	}
	kv, err := Load(SuiteNestedKV, filepath.Join(data, "nested_kv"), false)
	if err != nil {
		t.Fatal(err)
	}
	rep := timed(Config{Model: standIn(t)}, kv)
	for level, right := range rep.ByLevel {
		if right != 100 {
			t.Errorf("level %s: %v %%", level, right)
		}
	}
	for _, o := range rep.Records {
		if !o.right() {
			t.Logf("%s: %+v", o.Case, o)
		}
	}
}
