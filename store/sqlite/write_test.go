package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/store"
)

// waiting waits until as many commits are in the queue.
func (s *Store) waiting(n int) {
	for {
		s.queue.mu.Lock()
		have := len(s.queue.jobs)
		s.queue.mu.Unlock()
		if have == n {
			return
		}
		time.Sleep(time.Millisecond) // real time: other goroutines are about to wait
	}
}

// TestCancelledTooLate ends the context of a commit that is being written: it is made, and its caller is told so.
func TestCancelledTooLate(t *testing.T) {
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true})
	ctx, cancel := context.WithCancel(t.Context())
	s.token <- struct{}{}
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, &store.Commit{Agents: []memgpt.Agent{{ID: "a"}}})
		done <- err
	}()
	s.waiting(1)
	jobs := s.queue.take(10)
	cancel()
	select {
	case err := <-done:
		t.Errorf("a commit that was being written returned at once: %v", err)
	case <-time.After(20 * time.Millisecond): // real time: it must go on waiting
	}
	s.writeBatch(jobs)
	s.release()
	if err := <-done; err != nil {
		t.Errorf("a commit that was made returned %v", err)
	}
	if _, err := s.Agent(t.Context(), "", "a"); err != nil {
		t.Error(err)
	}
}

// TestFull fills the disk in the midst of a transaction of many commits. What fails says so, and what was acknowledged
// before and after is as it should be.
func TestFull(t *testing.T) {
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true})
	const n = 8
	agents := make([]memgpt.Agent, n)
	for i := range agents {
		agents[i] = memgpt.Agent{ID: fmt.Sprint("a", i), Name: fmt.Sprint("a", i)}
		if _, err := s.Commit(t.Context(), &store.Commit{Agents: agents[i : i+1],
			Threads: []memgpt.Thread{{ID: fmt.Sprint("t", i), Agent: agents[i].ID, Name: "main"}}}); err != nil {
			t.Fatal(err)
		}
		agents[i].Version = 1
	}
	s.token <- struct{}{}
	r, err := s.writer.one("PRAGMA page_count")
	s.release()
	if err != nil {
		t.Fatal(err)
	}
	pages := r.int(0)
	for round, limit := range []int64{pages + 2, 1 << 30} {
		s.token <- struct{}{}
		if _, err := s.writer.one(fmt.Sprint("PRAGMA max_page_count = ", limit)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			wg.Go(func() {
				th := fmt.Sprint("t", i)
				v := int64(1)
				if stored, err := s.Thread(t.Context(), "", th); err == nil {
					v = stored.Version
				}
				_, errs[i] = s.Commit(t.Context(), &store.Commit{Threads: []memgpt.Thread{{ID: th, Agent: agents[i].ID, Name: "main", Version: v}},
					Entries: []memgpt.Entry{{ID: fmt.Sprint("m", round), Agent: agents[i].ID, Thread: th, Seq: v,
						Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, strings.Repeat("x", 3000*i))}}})
			})
		}
		s.waiting(n)
		s.release()
		wg.Wait()
		failed := 0
		for i, err := range errs {
			th, e := s.Thread(t.Context(), "", fmt.Sprint("t", i))
			list, e2 := s.Entries(t.Context(), store.EntryRange{Thread: th.ID})
			if e != nil || e2 != nil || int64(len(list)) != th.Version-1 {
				t.Fatalf("conversation %d has version %d and %d entries, errors %v, %v", i, th.Version, len(list), e, e2)
			}
			if err != nil {
				failed++
			} else if len(list) == 0 {
				t.Errorf("commit %d was acknowledged and isn't there", i)
			}
		}
		if full := round == 0; full != (failed > 0) {
			t.Errorf("in round %d %d commits failed: %v", round, failed, errs)
		}
	}
	checkIntegrity(t, s)
}
