package eval

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// manyChains writes a data set of the form and the size of the paper's: 140 pairs of codes, chains of up to five hops.
func manyChains(t *testing.T) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(140, 1))
	code := func() string {
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", rng.Uint32(), rng.Uint32N(1<<16), rng.Uint32N(1<<12), rng.Uint32N(1<<12), rng.Uint64N(1<<48))
	}
	var pairs [][2]string
	for range 140 {
		pairs = append(pairs, [2]string{code(), code()})
	}
	example, err := json.Marshal(map[string]any{"ordered_kv_records": pairs})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{pairsFile: zip(string(example) + "\n")}
	for n := 1; n <= 6; n++ {
		row, err := json.Marshal(rng.Perm(140)[:n])
		if err != nil {
			t.Fatal(err)
		}
		files[fmt.Sprintf(orderingsFile, n)] = string(row) + "\n"
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestChainsAreFollowed: a store of 140 pairs is over a window of 4,096; an agent that searches follows each chain to its end,
// what is cut to fit doesn't.
func TestChainsAreFollowed(t *testing.T) {
	for _, suite := range []string{SuiteNestedKV, SuiteRelay} {
		s, err := Load(suite, manyChains(t), false)
		if err != nil {
			t.Fatal(err)
		}
		rep := run(t, Config{Model: standIn(t)}, s)
		if len(rep.ByLevel) != 6 {
			t.Fatalf("%s: %d levels, want 6", suite, len(rep.ByLevel))
		}
		for level, right := range rep.ByLevel {
			if right != 100 {
				t.Errorf("%s level %s: %v %% right", suite, level, right)
			}
		}
		if full := run(t, Config{Model: standIn(t), Mode: ModeFull}, s); *full.Accuracy == 100 {
			t.Errorf("%s: all is right where the pairs don't fit", suite)
		}
	}
}
