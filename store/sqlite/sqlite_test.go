package sqlite

import (
	"path/filepath"
	"testing"

	"memgpt/store"
	"memgpt/store/storetest"
)

func openAt(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true})
	})
}

// TestStoreMerging merges as early and as often as it can, with a cache that holds one owner.
func TestStoreMerging(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true, mergeAt: 3, CacheBytes: 1, Readers: 2})
	})
}

func TestStoreShared(t *testing.T) {
	for name, mergeAt := range map[string]int64{"Plain": 0, "Merging": 3} {
		t.Run(name, func(t *testing.T) {
			storetest.RunShared(t, func(t *testing.T) func() store.Store {
				path := filepath.Join(t.TempDir(), "m.db")
				return func() store.Store { return openAt(t, Config{Path: path, Unsafe: true, mergeAt: mergeAt}) }
			})
		})
	}
}
