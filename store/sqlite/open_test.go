package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/store"
)

func TestOpenFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "nested é ?#%")
	path := filepath.Join(dir, "m 1.db")
	s := openAt(t, Config{Path: path})
	if _, err := s.Commit(t.Context(), &store.Commit{Agents: []memgpt.Agent{{ID: "a"}}}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, path + ".holders": 0o700, dir: 0o700} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v, error %v", name, info.Mode().Perm(), want, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{Path: path})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a file that others could read has mode %v, error %v", info.Mode().Perm(), err)
	}
}

func TestPragmas(t *testing.T) {
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db")})
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "secure_delete": "1", "busy_timeout": "10000"} {
		s.token <- struct{}{}
		r, err := s.writer.one("PRAGMA " + pragma)
		s.release()
		if err != nil || fmt.Sprint(r[0]) != want {
			t.Errorf("%s is %v, want %s, error %v", pragma, r, want, err)
		}
	}
	err := s.read(t.Context(), "", func(c *conn) error { _, err := c.exec("DELETE FROM owners"); return err })
	if err == nil {
		t.Error("a connection for reading can write")
	}
}

// TestOpenErrors wants one clear line for each way in which a path is wrong, and the file as it was.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, make func(c *conn) error) string {
		path := filepath.Join(dir, name)
		c, err := dial(fileURI(path))
		if err == nil {
			err = errors.Join(make(c), c.close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("not a database\n"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := write("foreign", func(c *conn) error { return c.script("CREATE TABLE t (a)") })
	newer := filepath.Join(dir, "newer")
	if err := os.WriteFile(newer, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), Config{Path: newer}); err != nil {
		t.Fatal(err)
	} else if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	write("newer", func(c *conn) error { return c.script("PRAGMA user_version = 99") })
	for _, tt := range []struct {
		path string
		code memgpt.Code
		want []string
	}{
		{dir, memgpt.CodeInvalid, []string{"it is a directory"}},
		{filepath.Join(text, "m.db"), memgpt.CodeInvalid, []string{"not a directory", "give another path"}},
		{text, memgpt.CodeInvalid, []string{"not a SQLite database"}},
		{foreign, memgpt.CodeInvalid, []string{"another program's"}},
		{newer, memgpt.CodeNewer, []string{"version 99", "up to 6", "use the newer program"}},
		{"", memgpt.CodeInvalid, []string{"no path"}},
	} {
		before, _ := os.ReadFile(tt.path)
		s, err := Open(t.Context(), Config{Path: tt.path})
		if err == nil {
			t.Errorf("%s: opened", tt.path)
			_ = s.Close()
			continue
		}
		line := err.Error()
		if memgpt.CodeOf(err) != tt.code || strings.Contains(line, "\n") || !strings.Contains(line, tt.path) {
			t.Errorf("%s: code %q, want %q: %s", tt.path, memgpt.CodeOf(err), tt.code, line)
		}
		for _, want := range tt.want {
			if !strings.Contains(line, want) {
				t.Errorf("%s: error %q, want %q in it", tt.path, line, want)
			}
		}
		if after, _ := os.ReadFile(tt.path); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", tt.path)
		}
	}
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := openAt(t, Config{Path: path, Busy: time.Millisecond})
	other, err := dial(fileURI(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.close() }()
	if err := other.script("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Commit(t.Context(), &store.Commit{Agents: []memgpt.Agent{{ID: "a"}}})
	if memgpt.CodeOf(err) != memgpt.CodeBusy {
		t.Errorf("commit to a locked store: %v", err)
	}
	if err := other.script("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), &store.Commit{Agents: []memgpt.Agent{{ID: "a"}}}); err != nil {
		t.Errorf("commit after that: %v", err)
	}
	fresh := filepath.Join(t.TempDir(), "m.db")
	holder, err := dial(fileURI(fresh))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.close() }()
	if err := holder.script("BEGIN EXCLUSIVE; CREATE TABLE t (a)"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Path: fresh, Busy: time.Millisecond}); memgpt.CodeOf(err) != memgpt.CodeBusy {
		t.Errorf("open a locked file: %v", err)
	}
}

// TestBatch commits while the writer is held up: all go into one transaction, those that fail fail alone, and one whose
// context ends while it waits isn't made.
func TestBatch(t *testing.T) {
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db")})
	before, err := s.Change(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.token <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	errs := make([]error, 30)
	for i := range errs {
		wg.Go(func() {
			at := t.Context()
			if i%10 == 3 {
				at = ctx
			}
			_, errs[i] = s.Commit(at, &store.Commit{Agents: []memgpt.Agent{{ID: fmt.Sprint(i), Name: fmt.Sprint(i)}},
				Records: []store.Record{{Kind: "k", ID: fmt.Sprint(i % 20)}}})
		})
	}
	waiting := func() int {
		s.queue.mu.Lock()
		defer s.queue.mu.Unlock()
		return len(s.queue.jobs)
	}
	for waiting() < 30 {
		time.Sleep(time.Millisecond) // real time: other goroutines are about to wait
	}
	cancel()
	for waiting() > 27 {
		time.Sleep(time.Millisecond) // real time: other goroutines are about to give up
	}
	s.release()
	wg.Wait()
	made := 0
	for i, err := range errs {
		switch {
		case i%10 == 3 && !errors.Is(err, context.Canceled), i%10 != 3 && err != nil && memgpt.CodeOf(err) != memgpt.CodeConflict:
			t.Errorf("commit %d: %v", i, err)
		case i%10 == 3 && !strings.Contains(err.Error(), "commit not made"):
			t.Errorf("the error doesn't say that the commit wasn't made: %v", err)
		case err == nil:
			made++
		}
	}
	list, err := s.Agents(t.Context(), "")
	if err != nil || made != 18 || len(list) != made {
		t.Errorf("%d made and %d there, want 18; error %v", made, len(list), err)
	}
	if after, err := s.Change(t.Context()); err != nil || after != before+1 {
		t.Errorf("the number of changes went from %d to %d: not one transaction; error %v", before, after, err)
	}
	// Close finishes what waits.
	s.token <- struct{}{}
	var last error
	wg.Go(func() {
		_, last = s.Commit(t.Context(), &store.Commit{Agents: []memgpt.Agent{{ID: "last", Name: "last"}}})
	})
	for waiting() < 1 {
		time.Sleep(time.Millisecond) // real time: another goroutine is about to wait
	}
	wg.Go(func() { _ = s.Close() })
	s.release()
	wg.Wait()
	if last != nil {
		t.Errorf("a commit that waited at Close: %v", last)
	}
}

// TestGrowth holds the size of the file after 1,000 turns of 1 KB (field-faults).
func TestGrowth(t *testing.T) {
	if slowed {
		t.Skip("the race detector finds nothing in one goroutine")
	}
	path := filepath.Join(t.TempDir(), "m.db")
	s := openAt(t, Config{Path: path, Unsafe: true})
	tr := newTurns(t, s, "agent-1")
	size := func() int64 {
		var sum int64
		for _, name := range []string{path, path + "-wal"} {
			if info, err := os.Stat(name); err == nil {
				sum += info.Size()
			}
		}
		return sum
	}
	words := newWords(1)
	for range 1000 {
		if err := tr.one(t.Context(), s, words.text(500), words.text(500)); err != nil {
			t.Fatal(err)
		}
	}
	open := size()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d KB, %d KB while open", size()>>10, open>>10)
	if size() > 10e6 || open > 15e6 {
		t.Errorf("1,000 turns of 1 KB take %d bytes, %d while open", size(), open)
	}
}

// TestOpenAtOnce has many open a file that is not there yet: SQLite refuses some of the first steps at once, however long
// it was told to wait.
func TestOpenAtOnce(t *testing.T) {
	rounds := 10
	if os.Getenv("MEMGPT_LONG") != "" {
		rounds = 100
	}
	for range rounds {
		path := filepath.Join(t.TempDir(), "m.db")
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				s, err := Open(t.Context(), Config{Path: path})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
