package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/store"
)

// oldDocs is how many docs a file of the first schema has; more units than one merge packs.
const oldDocs = 30_000

// oldFile makes a file as the first schema had it, with an owner whose index is merged and packed, and a thread.
func oldFile(t *testing.T, path string) {
	t.Helper()
	ms, err := loadMigrations(migrations)
	if err == nil {
		err = prepareFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial((&Store{cfg: Config{Path: path, Busy: time.Second}}).dsn(true))
	if err != nil {
		t.Fatal(err)
	}
	err = migrate(c, ms[:1])
	for _, text := range []string{
		`INSERT INTO owners (no, tenant, id, merged, packed) VALUES (1, '', 'o', 30000, 28672)`,
		`INSERT INTO docs (no, id, kind, role, thread, time, length, sum_length, sum_bytes, terms)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
			SELECT 1 << 32 | i, CAST('m' || i AS BLOB), i % 2, i % 5, 't' || (i % 7), i * 10, 3, i * 3, i, x'00' FROM n`,
		`UPDATE docs SET dead = 1 WHERE no = 1 << 32 | 5; INSERT INTO dead VALUES (1 << 32 | 1, 5, 3)`,
		`INSERT INTO metas VALUES (1 << 32, x'ffffff')`,
		`INSERT INTO agents VALUES (1, '', 'old', 1, '{}'); INSERT INTO threads (agent, tenant, id, name, version, head, data)
			VALUES (1, '', 't', 'main', 1, 0, '{"next":1}')`,
	} {
		err = errors.Join(err, c.script(text))
	}
	if err = errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
}

// checkOld looks for what oldFile put in, and for n docs that came since, whose author is Ann.
func checkOld(t *testing.T, s *Store, n int) {
	t.Helper()
	m, err := s.Meta(t.Context(), "", "o")
	if err != nil || len(m.Time) != oldDocs+n || len(m.Author) != oldDocs+n || len(m.Session) != oldDocs+n {
		t.Fatalf("%d documents are described, want %d; error %v", len(m.Time), oldDocs+n, err)
	}
	for i := range m.Time {
		no, author, at := i+1, "", int64(i+1)*10
		if i >= oldDocs {
			author, at = "Ann", store.NoTime
		}
		if m.Authors[m.Author[i]] != author || m.Sessions[m.Session[i]] != "" || m.Time[i] != at || m.Dead[i] != (no == 5) ||
			i < oldDocs && m.Threads[m.Thread[i]] != fmt.Sprint("t", no%7) {
			t.Fatalf("document %d is by %q at %d", no, m.Authors[m.Author[i]], m.Time[i])
		}
	}
	if st, err := s.Stats(t.Context(), "", "o", nil); err != nil || st.Docs != oldDocs+n-1 {
		t.Errorf("stats are %+v, error %v", st, err)
	}
}

// TestUpgrade opens a file of the first schema: nothing is lost, and its meta columns are packed anew in the background.
func TestUpgrade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	oldFile(t, path)
	s := openAt(t, Config{Path: path, Unsafe: true})
	checkOld(t, s, 0)
	if _, err := s.Commit(t.Context(), &store.Commit{Docs: []store.Doc{{Owner: "o", ID: "new", Kind: memgpt.KindMessage, Author: "Ann"}}}); err != nil {
		t.Fatal(err)
	}
	checkOld(t, s, 1)
	var m mark
	for range 10_000 {
		if err := s.read(t.Context(), "", func(c *conn) (err error) { m, err = readMark(c, 1); return err }); err != nil {
			t.Fatal(err)
		}
		if m.packed == oldDocs/metaUnit*metaUnit {
			break
		}
		time.Sleep(time.Millisecond) // real time: the merging goroutine works
	}
	units := int64(0)
	err := s.read(t.Context(), "", func(c *conn) error {
		r, err := c.one("SELECT count(*) FROM packs")
		if err == nil {
			units = r.int(0)
		}
		return err
	})
	if err != nil || m.packed != oldDocs/metaUnit*metaUnit || units != oldDocs/metaUnit {
		t.Errorf("%d documents are packed, in %d units, error %v", m.packed, units, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, Config{Path: path, Unsafe: true})
	checkOld(t, s, 1)
	checkIntegrity(t, s)
}

// TestPackTwice lets two processes pack the same units: the second finds the work done.
func TestPackTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	oldFile(t, path)
	s := openAt(t, Config{Path: path, Unsafe: true, mergeAt: 1 << 40})
	s.merges.close() // what the store's own did is undone
	<-s.merges.ended
	if err := s.writer.script("DELETE FROM packs; UPDATE owners SET packed = 0"); err != nil {
		t.Fatal(err)
	}
	pack := func(m *mergeJob) error {
		s.token <- struct{}{}
		defer s.release()
		return s.writeSlice(m)
	}
	first, rival := &mergeJob{owner: 1}, &mergeJob{owner: 1}
	for _, m := range []*mergeJob{first, rival} {
		if err := s.snapshot(t.Context(), "", func(c *conn) error { return m.load(c, s.mergeThreshold) }); err != nil || len(m.metas) != packMost {
			t.Fatalf("%d units are to be packed, want %d; error %v", len(m.metas), packMost, err)
		}
	}
	if err := pack(first); err != nil || !first.over {
		t.Fatalf("the first packs: over %v, error %v", first.over, err)
	}
	if err := pack(rival); !errors.Is(err, errMoved) {
		t.Errorf("a second packs the same: %v", err)
	}
	checkOld(t, s, 0)
}

// addDocs gives an owner n more docs.
func addDocs(t testing.TB, s *Store, owner string, n int) {
	t.Helper()
	c := &store.Commit{}
	for i := range n {
		c.Docs = append(c.Docs, store.Doc{Owner: owner, ID: fmt.Sprint(owner, "-", i), Kind: memgpt.KindMessage})
	}
	if _, err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// embedAll gives the docs over after, up to through, vectors of a size.
func embedAll(t testing.TB, s *Store, owner, model string, after, through int64, size int) {
	t.Helper()
	v := store.Vectors{Owner: owner, Model: model, After: after, Through: through}
	for doc := after + 1; doc <= through; doc++ {
		v.List = append(v.List, store.Vector{Doc: doc, Data: make([]byte, size)})
	}
	if _, err := s.Commit(t.Context(), &store.Commit{Vectors: []store.Vectors{v}}); err != nil {
		t.Fatal(err)
	}
}

// erased waits until no vectors are to be erased, and counts the rows of those that are there.
func erased(t *testing.T, s *Store) int64 {
	t.Helper()
	for range 10_000 {
		var left, there int64
		err := s.read(t.Context(), "", func(c *conn) error {
			r, err := c.one("SELECT (SELECT count(*) FROM dropped), (SELECT count(*) FROM vectors)")
			if err == nil {
				left, there = r.int(0), r.int(1)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return there
		}
		time.Sleep(time.Millisecond) // real time: the merging goroutine works
	}
	t.Fatal("vectors that were dropped are not erased")
	return 0
}

// TestErase drops vectors, which are gone for readers at once, and from the file soon, also where it was closed before
// that. Who reads them meanwhile is told.
func TestErase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := openAt(t, Config{Path: path, Unsafe: true})
	const docs, size = 700, 3900 // a row each
	addDocs(t, s, "o", docs)
	drop := &store.Commit{Unembed: []store.OwnerModel{{Owner: "o", Model: "m"}}}
	for round := range 3 {
		embedAll(t, s, "o", "m", 0, docs, size)
		if round == 0 {
			embedAll(t, s, "o", "n", 0, 7, size)
		}
		seen := 0
		err := s.Vectors(t.Context(), "", "o", "m", 0, func(store.Vector) bool {
			if seen++; seen == 10 {
				if _, err := s.Commit(t.Context(), drop); err != nil {
					t.Error(err)
				}
				embedAll(t, s, "o", "m", 0, 1, size)
			}
			return true
		})
		if memgpt.CodeOf(err) != memgpt.CodeConflict || seen >= docs {
			t.Errorf("a walk over vectors that were dropped saw %d of them, error %v", seen, err)
		}
		if _, err := s.Commit(t.Context(), drop); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, Config{Path: path, Unsafe: true})
		}
		if n := erased(t, s); n != 7 {
			t.Errorf("%d rows of vectors are there, want those of the other model", n)
		}
	}
}

// TestBacklogTouched plants an owner in the list that is kept: as long as only this store commits, it stays, since only
// owners that were touched are looked at; another store's commit makes it all anew.
func TestBacklogTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s, other := openAt(t, Config{Path: path, Unsafe: true}), openAt(t, Config{Path: path, Unsafe: true})
	addDocs(t, s, "o", 2)
	owners := func() (names string) {
		list, err := s.Backlog(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range list {
			names += fmt.Sprint(b.Owner, b.After, "-", b.Docs, " ")
		}
		return names
	}
	expect := func(what, want string) {
		t.Helper()
		if got := owners(); got != want {
			t.Errorf("%s: backlog is %q, want %q", what, got, want)
		}
	}
	expect("at first", "o0-2 ")
	s.backlog.behind[99] = store.Backlog{Owner: "planted", Docs: 9}
	expect("nothing happened", "o0-2 planted0-9 ")
	embedAll(t, s, "o", "m", 0, 1, 1)
	addDocs(t, s, "p", 3)
	expect("after commits", "o1-2 p0-3 planted0-9 ")
	addDocs(t, other, "q", 4)
	addDocs(t, s, "p", 1)
	expect("after another store's", "o1-2 p0-4 q0-4 ")
	s.backlog.behind[99] = store.Backlog{Owner: "planted", Docs: 9}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Backlog(ended, "m"); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was over before it began: %v", err)
	}
	addDocs(t, s, "r", 1)
	if err := s.bringUp(ended, "m", s.rows.version, map[int64]bool{1: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that ends in the midst: %v", err)
	}
	expect("after those, all being looked at", "o1-2 r0-1 p0-4 q0-4 ")
}

// embedForever gives docs their vectors as fast as it can, adds docs when all have theirs, and begins a second model's
// vectors anew again and again. It prints how far the first model's go after each commit that is acknowledged.
func embedForever(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, Config{Path: path, mergeAt: 50})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	for n := 0; ; n++ {
		c := &store.Commit{Now: time.Now()}
		if n%9 == 0 {
			c.Unembed = []store.OwnerModel{{Owner: "a", Model: "again"}}
		}
		for _, model := range []string{"m", "again"} {
			if n%9 == 0 && model == "again" {
				continue
			}
			v, err := nextVectors(ctx, s, model, rng)
			if err != nil {
				return err
			}
			if v.Through > 0 {
				c.Vectors = append(c.Vectors, v)
			}
		}
		if len(c.Vectors) == 0 {
			for i := range 1 + rng.IntN(9) {
				c.Docs = append(c.Docs, store.Doc{Owner: "a", ID: fmt.Sprint("doc ", os.Getpid(), " ", n, " ", i), Kind: memgpt.KindMessage})
			}
		}
		switch _, err := s.Commit(ctx, c); {
		case memgpt.CodeOf(err) == memgpt.CodeConflict: // the other was faster
		case err != nil:
			return err
		case len(c.Vectors) > 0 && c.Vectors[0].Model == "m":
			fmt.Println(c.Vectors[0].Through)
		}
	}
}

func nextVectors(ctx context.Context, s *Store, model string, rng *rand.Rand) (v store.Vectors, err error) {
	list, err := s.Backlog(ctx, model)
	if err != nil || len(list) == 0 {
		return v, err
	}
	b := list[0]
	v = store.Vectors{Owner: b.Owner, Model: model, After: b.After, Through: b.After + 1 + rng.Int64N(b.Docs-b.After)}
	v.List, err = rightVectors(ctx, s, v.After, v.Through)
	return v, err
}

// rightVectors are what docs must have: their id in each piece, and none, one or more pieces by number.
func rightVectors(ctx context.Context, s *Store, after, through int64) (list []store.Vector, err error) {
	var numbers []int64
	for n := after + 1; n <= through; n++ {
		numbers = append(numbers, n)
	}
	ids, err := s.DocIDs(ctx, "", "a", numbers)
	for i, n := range numbers {
		for piece := range int(n % 4) {
			list = append(list, store.Vector{Doc: n, Piece: piece, Data: fmt.Append(nil, ids[i], "/", piece)})
		}
	}
	return list, err
}

// TestKilledEmbedders kills, at random moments, two processes that embed the same documents as fast as they can. Every
// acknowledged vector is there, and each document has its own, once.
func TestKilledEmbedders(t *testing.T) {
	rounds := 12
	switch {
	case os.Getenv("MEMGPT_LONG") != "":
		rounds = 100
	case slowed:
		rounds = 3
	}
	path := ""
	rng := rand.New(rand.NewPCG(7, 8))
	for round := range rounds {
		if round%10 == 0 { // so that a round's work doesn't grow without end
			path = filepath.Join(t.TempDir(), fmt.Sprint(round, ".db"))
			newThread(t, path)
		}
		out, kill := child(t, "embed", path)
		second, killSecond := child(t, "embed", path)
		var acked int64
		for range 1 + rng.IntN(60) {
			if !out.Scan() {
				break
			}
			if _, err := fmt.Sscan(out.Text(), &acked); err != nil {
				t.Fatalf("the child says %q", out.Text())
			}
		}
		time.Sleep(time.Duration(rng.IntN(400)) * time.Microsecond) // real time: a moment of another process
		kill()
		killSecond()
		for second.Scan() {
			var n int64
			if _, err := fmt.Sscan(second.Text(), &n); err != nil {
				break // a line that was cut off
			}
			acked = max(acked, n)
		}
		checkEmbedded(t, path, acked)
		if t.Failed() {
			t.Fatalf("in round %d, after %d", round, acked)
		}
	}
}

func checkEmbedded(t *testing.T, path string, acked int64) {
	t.Helper()
	s := openAt(t, Config{Path: path, mergeAt: 1 << 40})
	cursors, err := s.Embedded(t.Context(), "", "a")
	if err != nil || cursors["m"].Through < acked {
		t.Errorf("vectors go up to %v, and %d was acknowledged; error %v", cursors, acked, err)
	}
	st, err := s.Stats(t.Context(), "", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"m", "again"} {
		var got []store.Vector
		err := s.Vectors(t.Context(), "", "a", model, 0, func(v store.Vector) bool { got = append(got, v); return true })
		want, err2 := rightVectors(t.Context(), s, 0, cursors[model].Through)
		if diff := cmp.Diff(want, got); err != nil || err2 != nil || diff != "" {
			t.Errorf("vectors of %s differ, errors %v, %v (-want +got):\n%.2000s", model, err, err2, diff)
		}
		list, err := s.Backlog(t.Context(), model)
		if left := int64(st.Docs) - cursors[model].Through; err != nil || left > 0 != (len(list) == 1) || left > 0 && list[0].Docs-list[0].After != left {
			t.Errorf("the backlog is %+v, want %d documents; error %v", list, left, err)
		}
	}
	checkIntegrity(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkBacklog asks for the backlog where 10,000 owners have a few documents each, all but ten with vectors: when
// nothing happened, when a commit touched one of them, and anew.
func BenchmarkBacklog(b *testing.B) {
	s := openAt(b, Config{Path: filepath.Join(b.TempDir(), "m.db"), Unsafe: true})
	const owners = 10_000
	for i := range owners {
		owner := fmt.Sprint("owner ", i)
		addDocs(b, s, owner, 5)
		if i >= 10 {
			embedAll(b, s, owner, "m", 0, 5, 388)
		}
	}
	ask := func(b *testing.B) {
		if list, err := s.Backlog(b.Context(), "m"); err != nil || len(list) != 10 {
			b.Fatalf("%d owners, error %v", len(list), err)
		}
	}
	b.Run("Idle", func(b *testing.B) {
		for b.Loop() {
			ask(b)
		}
	})
	b.Run("Touched", func(b *testing.B) {
		for b.Loop() {
			s.touched[7] = true
			ask(b)
		}
	})
	b.Run("Anew", func(b *testing.B) {
		for b.Loop() {
			s.backlog.behind = nil
			ask(b)
		}
	})
}

// BenchmarkVectors walks over the 50,000 vectors of an owner, of 384 dimensions, and takes a page of them.
func BenchmarkVectors(b *testing.B) {
	s := openAt(b, Config{Path: filepath.Join(b.TempDir(), "m.db"), Unsafe: true})
	const n, unit = 50_000, 1000
	for at := int64(0); at < n; at += unit {
		addDocs(b, s, "o", unit)
		embedAll(b, s, "o", "m", at, at+unit, 388)
	}
	b.Run("All", func(b *testing.B) {
		for b.Loop() {
			seen := 0
			err := s.Vectors(b.Context(), "", "o", "m", 0, func(store.Vector) bool { seen++; return true })
			if err != nil || seen != n {
				b.Fatalf("%d vectors, error %v", seen, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/vector")
	})
	var docs []int64
	for i := range int64(100) {
		docs = append(docs, 1+i*499)
	}
	b.Run("Hundred", func(b *testing.B) {
		for b.Loop() {
			seen := 0
			err := s.VectorsOf(b.Context(), "", "o", "m", docs, func(store.Vector) bool { seen++; return true })
			if err != nil || seen != len(docs) {
				b.Fatalf("%d vectors, error %v", seen, err)
			}
		}
	})
}
