package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"memgpt"
	"memgpt/store"
)

// childEnv makes the test binary run as a child that is to be killed: its value is what to do and the database.
const childEnv = "MEMGPT_STORE_CHILD"

func TestMain(m *testing.M) {
	if what, path, ok := strings.Cut(os.Getenv(childEnv), ":"); ok {
		if err := map[string]func(string) error{"commit": commitForever, "migrate": migrateSlowly, "lease": holdLease, "erase": eraseChild, "rewrite": eraseSlowly,
			"embed": embedForever}[what](path); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child starts the test binary as a child and returns its output, and what kills it.
func child(t *testing.T, what, path string) (out *bufio.Scanner, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what+":"+path)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_, _ = io.Copy(io.Discard, pipe)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return bufio.NewScanner(pipe), kill
}

// numbered is the n-th entry that the child commits, with its document.
func numbered(n int64) (memgpt.Entry, store.Doc) {
	id := fmt.Sprintf("message-%08x-0000-7000-8000-000000000000", n)
	text := fmt.Sprintf("number %d says w%d and w%d", n, n%7, n%101)
	e := memgpt.Entry{ID: id, Agent: "a", Thread: "t", Seq: n, Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)}
	d := store.Doc{Owner: "a", ID: id, Kind: memgpt.KindMessage, Thread: "t", Role: memgpt.RoleUser, Length: 6,
		Terms: []store.TermCount{{Term: "number", N: 1}, {Term: fmt.Sprint("w", n%7), N: 2}, {Term: fmt.Sprint("x", n%101), N: 1}}}
	return e, d
}

// commitForever goes on where the thread ends, and prints the number of each commit that is acknowledged. Every commit
// consumes the event of the one before and accepts the next.
func commitForever(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, Config{Path: path, mergeAt: 50})
	if err != nil {
		return err
	}
	th, err := s.Thread(ctx, "", "t")
	if err != nil {
		return err
	}
	for {
		e, d := numbered(th.Next)
		ev := memgpt.Event{ID: fmt.Sprint("event ", th.Next), Agent: "a", Thread: "t", Key: fmt.Sprint("key ", th.Next)}
		th.Next++
		th.Head = max(0, th.Next-20)
		c := &store.Commit{Now: time.Now(), Threads: []memgpt.Thread{th}, Entries: []memgpt.Entry{e}, Docs: []store.Doc{d},
			Events: []memgpt.Event{ev}, Consume: []string{fmt.Sprint("event ", th.Next-2)}}
		if _, err := s.Commit(ctx, c); err != nil {
			return err
		}
		th.Version++
		fmt.Println(e.Seq)
	}
}

// holdLease takes a lease for an hour, says so and waits to be killed.
func holdLease(path string) error {
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		return err
	}
	now := time.Now()
	got, err := s.Commit(context.Background(), &store.Commit{Now: now, Acquire: &store.Lease{Thread: "t", Until: now.Add(time.Hour)}})
	if err != nil {
		return err
	}
	fmt.Println(got.Lease != nil)
	select {}
}

func newThread(t *testing.T, path string) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Commit(t.Context(), &store.Commit{Agents: []memgpt.Agent{{ID: "a", Name: "a"}},
		Threads: []memgpt.Thread{{ID: "t", Agent: "a", Name: "main", Next: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKill kills a process that commits as fast as it can at random moments. Every acknowledged commit is there once,
// and nothing of one that isn't.
func TestKill(t *testing.T) {
	rounds := 30
	switch {
	case os.Getenv("MEMGPT_LONG") != "":
		rounds = 200
	case slowed:
		rounds = 5
	}
	path := filepath.Join(t.TempDir(), "m.db")
	newThread(t, path)
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range rounds {
		out, kill := child(t, "commit", path)
		var acked int64
		for range 1 + rng.IntN(200) {
			if !out.Scan() {
				break
			}
			if _, err := fmt.Sscan(out.Text(), &acked); err != nil {
				t.Fatalf("the child says %q", out.Text())
			}
		}
		// A moment that is no multiple of a commit.
		time.Sleep(time.Duration(rng.IntN(400)) * time.Microsecond) // real time: a moment of another process
		kill()
		for out.Scan() {
			if _, err := fmt.Sscan(out.Text(), &acked); err != nil {
				break // a line that was cut off
			}
		}
		checkKilled(t, path, acked)
		if t.Failed() {
			t.Fatalf("in round %d, after %d", round, acked)
		}
	}
}

func checkKilled(t *testing.T, path string, acked int64) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path, mergeAt: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	th, err := s.Thread(t.Context(), "", "t")
	if err != nil {
		t.Fatal(err)
	}
	last := th.Next - 1
	if last < acked {
		t.Errorf("the conversation ends at %d, and %d was acknowledged", last, acked)
	}
	list, err := s.Entries(t.Context(), store.EntryRange{Thread: "t"})
	if err != nil || int64(len(list)) != last {
		t.Fatalf("%d entries, want %d, error %v", len(list), last, err)
	}
	for i, e := range list {
		if want, _ := numbered(int64(i + 1)); e.ID != want.ID || e.Message.Said() != want.Message.Said() {
			t.Fatalf("entry %d is %+v", i+1, e)
		}
	}
	events, err := s.Events(t.Context(), store.EventRange{})
	if err != nil || last > 0 && (len(events) != 1 || events[0].ID != fmt.Sprint("event ", last)) {
		t.Errorf("pending are %+v, want that of %d, error %v", events, last, err)
	}
	checkNumbered(t, s, last)
	checkIntegrity(t, s)
}

// checkNumbered compares the index with what the numbered documents say.
func checkNumbered(t *testing.T, s *Store, last int64) {
	t.Helper()
	terms := []string{"number", "w0", "w3", "x5", "x100", "none"}
	st, err := s.Stats(t.Context(), "", "a", terms)
	if err != nil || st.Docs != int(last) || st.Length != 6*last {
		t.Errorf("stats are %+v, error %v", st, err)
	}
	for _, term := range terms {
		var got, want []store.Posting
		err := s.Postings(t.Context(), "", "a", term, func(block []store.Posting) bool { got = append(got, block...); return true })
		if err != nil {
			t.Error(err)
		}
		for n := int64(1); n <= last; n++ {
			_, d := numbered(n)
			for _, tc := range d.Terms {
				if tc.Term == term {
					want = append(want, store.Posting{Doc: uint32(n), N: uint32(tc.N)})
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || st.DF[term] != len(want) {
			t.Errorf("postings of %q differ: %d, want %d; frequency %d", term, len(got), len(want), st.DF[term])
		}
	}
	m, err := s.Meta(t.Context(), "", "a")
	if err != nil || len(m.Time) != int(last) {
		t.Errorf("meta has %d rows, want %d, error %v", len(m.Time), last, err)
	}
}

func checkIntegrity(t *testing.T, s *Store) {
	t.Helper()
	err := s.read(t.Context(), "integrity", func(c *conn) error {
		r, err := c.one("PRAGMA integrity_check")
		if err == nil && r.text(0) != "ok" {
			t.Errorf("integrity: %s", r.text(0))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestKilledHolder takes the lease of a process that was killed at once, and not while it lives.
func TestKilledHolder(t *testing.T) {
	if !canLock {
		t.Skip("this system can't tell whether a holder died")
	}
	path := filepath.Join(t.TempDir(), "m.db")
	newThread(t, path)
	out, kill := child(t, "lease", path)
	if !out.Scan() || out.Text() != "true" {
		t.Fatalf("the child says %q", out.Text())
	}
	s := openAt(t, Config{Path: path})
	now := time.Now()
	acquire := func() *store.Lease {
		got, err := s.Commit(t.Context(), &store.Commit{Now: now, Acquire: &store.Lease{Thread: "t", Until: now.Add(time.Hour)}})
		if err != nil {
			t.Fatal(err)
		}
		return got.Lease
	}
	if got := acquire(); got != nil {
		t.Fatalf("a living holder's lease was taken: %+v", got)
	}
	kill()
	if got := acquire(); got == nil || got.Number != 2 {
		t.Fatalf("a dead holder's lease is %+v, want number 2", got)
	}
	s2 := openAt(t, Config{Path: path})
	files, err := os.ReadDir(path + ".holders")
	if err != nil || len(files) != 2 {
		t.Errorf("%d files of holders, want those of the two that live; error %v", len(files), err)
	}
	if err := s2.Close(); err != nil {
		t.Error(err)
	}
}

// slowMigrations are the real ones and one that takes its time between two changes.
func slowMigrations() ([]migration, error) {
	ms, err := loadMigrations(migrations)
	if err != nil {
		return nil, err
	}
	slow := `CREATE TABLE extra (a INTEGER);
		INSERT INTO extra WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT i FROM n;
		ALTER TABLE owners ADD COLUMN extra INTEGER;`
	return append(ms, migration{number: int64(len(ms) + 1), name: "slow", text: slow}), nil
}

func migrateSlowly(path string) error {
	ms, err := slowMigrations()
	if err != nil {
		return err
	}
	fmt.Println("begins")
	s, err := Open(context.Background(), Config{Path: path, migrations: ms})
	if err != nil {
		return err
	}
	fmt.Println("ends")
	return s.Close()
}

// TestKilledMigration kills processes at random moments of a migration; then one goes to its end.
func TestKilledMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	oldFile(t, path)
	rng := rand.New(rand.NewPCG(5, 6))
	for range 8 {
		out, kill := child(t, "migrate", path)
		out.Scan()
		time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond) // real time: a moment of another process
		kill()
	}
	checkMigrated(t, path, true)
}

// TestTwoMigrate lets several processes migrate one file at once.
func TestTwoMigrate(t *testing.T) {
	for _, exists := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "m.db")
		if exists {
			oldFile(t, path)
		}
		var outs []*bufio.Scanner
		for range 4 {
			out, _ := child(t, "migrate", path)
			outs = append(outs, out)
		}
		for _, out := range outs {
			last := ""
			for out.Scan() {
				last = out.Text()
			}
			if last != "ends" {
				t.Errorf("a child says %q", last)
			}
		}
		checkMigrated(t, path, exists)
	}
}

func checkMigrated(t *testing.T, path string, old bool) {
	t.Helper()
	ms, err := slowMigrations()
	if err != nil {
		t.Fatal(err)
	}
	s := openAt(t, Config{Path: path, migrations: ms})
	checkIntegrity(t, s)
	s.token <- struct{}{} // the background looks for work at first
	defer s.release()
	if old {
		checkOld(t, s, 0)
	}
	err = s.read(t.Context(), "", func(c *conn) error {
		r, err := c.one("SELECT count(*), (SELECT count(*) FROM pragma_table_info('owners') WHERE name = 'extra') FROM extra")
		if err != nil || r.int(0) != 20000 || r.int(1) != 1 {
			t.Errorf("the migration was done in part: %v, %v", r, err)
		}
		if n, err := schemaNumber(c); err != nil || n != int64(len(ms)) {
			t.Errorf("the schema has version %d, error %v", n, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLoadMigrations(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"gap":       {"migrations/0001_a.sql": {}, "migrations/0003_c.sql": {}},
		"twice":     {"migrations/0001_a.sql": {}, "migrations/0001_b.sql": {}},
		"no number": {"migrations/a.sql": {}},
	} {
		if ms, err := loadMigrations(files); err == nil {
			t.Errorf("%s: no error, %v", name, ms)
		}
	}
}
