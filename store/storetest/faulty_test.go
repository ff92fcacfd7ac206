package storetest

import (
	"path/filepath"
	"testing"

	"memgpt"
	"memgpt/store"
	"memgpt/store/sqlite"
)

// TestFaulty crashes three commits and what is read between them at every call, and looks at what happened.
func TestFaulty(t *testing.T) {
	work := func(f *Faulty) (acked int) {
		for i := range int64(3) {
			if _, err := f.AgentNamed(t.Context(), "", "a"); err != nil && memgpt.CodeOf(err) != memgpt.CodeNotFound {
				return acked
			}
			if _, err := f.Commit(t.Context(), &store.Commit{Agents: []memgpt.Agent{{ID: "a", Name: "a", Version: i}}}); err != nil {
				return acked
			}
			acked++
		}
		return acked
	}
	for _, tt := range []struct {
		commits, after bool
		calls          int64
		acked, version []int64 // by the call that dies, from 1
	}{
		{false, false, 6, []int64{0, 0, 1, 1, 2, 2, 3}, []int64{0, 0, 1, 1, 2, 2, 3}},
		{true, false, 3, []int64{0, 1, 2, 3}, []int64{0, 1, 2, 3}},
		{true, true, 3, []int64{0, 1, 2, 3}, []int64{1, 2, 3, 3}},
	} {
		for at := int64(0); at <= tt.calls+1; at++ {
			s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true})
			if err != nil {
				t.Fatal(err)
			}
			f := &Faulty{Inner: s, At: at, Commits: tt.commits, After: tt.after}
			acked := work(f)
			i := at - 1
			if at == 0 {
				i = tt.calls
			}
			a, _ := s.Agent(t.Context(), "", "a")
			if int64(acked) != tt.acked[i] || a.Version != tt.version[i] || f.Dead() != (i < tt.calls) || f.Calls() != i+1 && f.Dead() {
				t.Errorf("%+v dies at %d: %d acknowledged, version %d, %d calls, dead %v", tt, at, acked, a.Version, f.Calls(), f.Dead())
			}
			if _, err := f.NextDue(t.Context()); f.Dead() != (memgpt.CodeOf(err) == memgpt.CodeClosed) {
				t.Errorf("a store that is dead (%v) says %v", f.Dead(), err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
