package e5

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestMemoryIsBoundedAndFreed counts what Go holds. The built-in file, 45 MB at most of it in memory, comes on top of that
// and belongs to the binary: the system takes its pages back by itself.
func TestMemoryIsBoundedAndFreed(t *testing.T) {
	e := newEncoder(t, bestKernel())
	e.threads, e.slots = maxThreads, make(chan struct{}, maxThreads)
	before := inUse()
	texts := slices.Repeat([]string{strings.Repeat("word ", 600)}, 2*maxThreads)
	if _, err := e.Embed(t.Context(), texts, false); err != nil {
		t.Fatal(err)
	}
	loaded := inUse() - before
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	freed := inUse() - before
	t.Logf("loaded %.1f MB, freed %.1f MB", loaded/1e6, freed/1e6)
	if loaded < 10e6 || loaded > 105e6 || freed > 1e6 {
		t.Errorf("%.1f MB while loaded, want 10 to 105, and %.1f MB after, want under 1", loaded/1e6, freed/1e6)
	}
}

// inUse is what is alive, in bytes.
func inUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
