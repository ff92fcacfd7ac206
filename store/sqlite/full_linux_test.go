package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"memgpt/store"
)

// tmpfs mounts a file system of so many MB on a directory, or gives the one there another size.
func tmpfs(dir string, flags uintptr, megabytes int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", flags, fmt.Sprintf("size=%dm", megabytes))
}

// TestEraseOnFullDisk has room for an erasure but not for writing the file anew: what was erased is out of every read,
// nothing else is lost, commits go on, and with room the next erasure of nothing does it.
func TestEraseOnFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := tmpfs(disk, 0, 200); err != nil {
		t.Skipf("a full disk needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(disk, "m.db")
	largeSecrets(t, path, 4000)
	if err := tmpfs(disk, syscall.MS_REMOUNT, fileSize(path)>>20+6); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, Config{Path: path})
	err := s.Erase(t.Context(), forgetNumber(t, s, 1))
	if err == nil || !strings.Contains(err.Error(), "out of every search and reading") || !strings.Contains(err.Error(), "full") {
		t.Fatalf("error %v", err)
	}
	if _, err := s.Commit(t.Context(), secretCommit(4001)); err != nil {
		t.Fatal(err)
	}
	list, err := s.Entries(t.Context(), store.EntryRange{Thread: "t"})
	if err != nil || len(list) != 4001 || list[0].Message.Said() != "forgotten" || !strings.HasPrefix(list[3999].Message.Said(), "4000 4000") {
		t.Fatalf("%d entries, error %v", len(list), err)
	}
	checkIntegrity(t, s)
	if err := tmpfs(disk, syscall.MS_REMOUNT, 200); err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(t.Context(), &store.Erasure{}); err != nil {
		t.Fatal(err)
	}
	if found := findBytes(t, path, secrets(1)...); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
