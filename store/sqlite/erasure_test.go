package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/store"
)

// findBytes looks for a text in every file beside the database, whatever the file is, and names those that hold it.
func findBytes(t testing.TB, path string, texts ...string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Dir(path), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		for _, text := range texts {
			if at := bytes.Index(data, []byte(text)); at >= 0 {
				found = append(found, fmt.Sprintf("%q in %s at %d", text, filepath.Base(file), at))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// secrets are the words of the n-th message that no other has, as the log and the index keep them.
func secrets(n int) []string {
	return []string{fmt.Sprintf("zyx%dq", n), fmt.Sprintf("密语%d号", n), fmt.Sprintf("au%dthor", n)}
}

func secretText(n int) string {
	return strings.Join(secrets(n), " \"and\"\n") + strings.Repeat(" long", n%3*900)
}

// secretCommit is the n-th message with its doc.
func secretCommit(n int) *store.Commit {
	e, d := numbered(int64(n))
	e.Message = memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, secretText(n))
	d.Author, d.Session = secrets(n)[2], secrets(n)[2]
	for _, s := range secrets(n)[:2] {
		d.Terms = append(d.Terms, store.TermCount{Term: s, N: 1})
	}
	return &store.Commit{Entries: []memgpt.Entry{e}, Docs: []store.Doc{d}}
}

func forgetNumber(t testing.TB, s *Store, numbers ...int) *store.Erasure {
	t.Helper()
	th, err := s.Thread(t.Context(), "", "t")
	if err != nil {
		t.Fatal(err)
	}
	x := &store.Erasure{Now: time.Now(), Threads: []memgpt.Thread{th}}
	for _, n := range numbers {
		e, _ := numbered(int64(n))
		e.Message = memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginOwner, "forgotten")
		x.Entries = append(x.Entries, e)
		x.Docs = append(x.Docs, store.Doc{Owner: "a", ID: e.ID})
	}
	return x
}

// checkSums compares what is counted in rows with the rows.
func checkSums(t testing.TB, s *Store) {
	t.Helper()
	for what, query := range map[string]string{
		"docs": `SELECT count(*) FROM docs d WHERE sum_bytes <> (SELECT sum(length(terms)) FROM docs e WHERE e.no <= d.no AND e.no >> 32 = d.no >> 32)
			OR sum_length <> (SELECT sum(length) FROM docs e WHERE e.no <= d.no AND e.no >> 32 = d.no >> 32)`,
		"dead": `SELECT count(*) FROM dead d WHERE sum_length <> (SELECT sum(e.length) FROM dead x JOIN docs e ON e.no = (x.no >> 32 << 32) + x.doc
			WHERE x.no <= d.no AND x.no >> 32 = d.no >> 32)`,
		"owners": `SELECT count(*) FROM owners o WHERE blocks <> (SELECT count(*) FROM postings WHERE owner = o.no)
			OR block_bytes <> (SELECT ifnull(sum(length(data)), 0) FROM postings WHERE owner = o.no)`,
		"threads": `SELECT count(*) FROM threads t WHERE bytes <> (SELECT ifnull(sum(length(CAST(message AS BLOB))), 0) FROM entries
			WHERE no BETWEEN t.no << 32 AND t.no << 32 | 0xffffffff)`,
	} {
		err := s.read(t.Context(), what, func(c *conn) error {
			r, err := c.one(query)
			if err == nil && r.int(0) != 0 {
				t.Errorf("%d rows of %s have wrong sums", r.int(0), what)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEraseBytes erases messages in every state of the index and finds no byte of them in any file, while another store is
// open on it.
func TestEraseBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	newThread(t, path)
	s := openAt(t, Config{Path: path, Unsafe: true, mergeAt: 40})
	other := openAt(t, Config{Path: path, Unsafe: true, mergeAt: 40})
	rng := rand.New(rand.NewPCG(8, 8))
	gone := map[int]bool{}
	last := 0
	for round := range 12 {
		for range 1 + rng.IntN(60) {
			last++
			if _, err := s.Commit(t.Context(), secretCommit(last)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.Stats(t.Context(), "", "a", []string{"number", "w1"}); err != nil {
			t.Fatal(err)
		}
		var numbers []int
		for range 1 + rng.IntN(5) {
			if n := 1 + rng.IntN(last); !gone[n] {
				gone[n] = true
				numbers = append(numbers, n)
			}
		}
		if len(numbers) > 0 {
			if found := findBytes(t, path, secrets(numbers[0])[:2]...); len(found) == 0 {
				t.Fatalf("round %d: the text isn't there before: the search can't fail", round)
			}
		}
		by := []*Store{s, other}[round%2]
		if err := by.Erase(t.Context(), forgetNumber(t, by, numbers...)); err != nil {
			t.Fatal(err)
		}
		for n := range last {
			found := findBytes(t, path, secrets(n+1)...)
			if gone[n+1] && len(found) > 0 {
				t.Fatalf("round %d: %v", round, found)
			}
			if !gone[n+1] && len(found) == 0 {
				t.Fatalf("round %d: %d is gone", round, n+1)
			}
		}
		for _, st := range []*Store{s, other} {
			checkSums(t, st)
			got, err := st.Stats(t.Context(), "", "a", []string{"number"})
			if err != nil || got.Docs != last-len(gone) || got.DF["number"] != got.Docs {
				t.Fatalf("round %d: %+v of %d less %d, error %v", round, got, last, len(gone), err)
			}
		}
	}
	checkIntegrity(t, s)
}

// TestEraseFreeSpace clears what was left in free space before, say by a page that was split or a program that doesn't
// overwrite what it deletes.
func TestEraseFreeSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	newThread(t, path)
	s := openAt(t, Config{Path: path, Unsafe: true})
	s.token <- struct{}{}
	err := s.writer.script("PRAGMA secure_delete = off")
	s.release()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		if _, err := s.Commit(t.Context(), secretCommit(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	s.token <- struct{}{}
	err = s.writer.script("DELETE FROM entries WHERE no & 0xffffffff = 8")
	r, err2 := s.writer.one(sqlCheckpoint)
	s.release()
	if err != nil || err2 != nil || r.int(0) != 0 {
		t.Fatalf("%v %v %v", err, err2, r)
	}
	text := secrets(8)[0] + ` \"and\"` // as the log has it, not the index
	if len(findBytes(t, path, text)) == 0 {
		t.Fatal("nothing is left of what was deleted: the test can't fail")
	}
	if err := s.Erase(t.Context(), forgetNumber(t, s, 9)); err != nil {
		t.Fatal(err)
	}
	if found := findBytes(t, path, text, secrets(9)[0]); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestErasePacked erases from packed units of meta, which hold names of authors.
func TestErasePacked(t *testing.T) {
	if slowed {
		t.Skip("the race detector finds here what it finds in shorter tests")
	}
	path := filepath.Join(t.TempDir(), "m.db")
	newThread(t, path)
	s := openAt(t, Config{Path: path, Unsafe: true, mergeAt: 900})
	last := 0
	for range 10 {
		c := &store.Commit{}
		for range 900 {
			last++
			n := secretCommit(last)
			n.Entries[0].Message = memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, secrets(last)[0])
			c.Entries, c.Docs = append(c.Entries, n.Entries...), append(c.Docs, n.Docs...)
		}
		if _, err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for {
		if m := merged(t, s, 1); m.packed >= metaUnit {
			break
		}
		time.Sleep(time.Millisecond) // real time: the merging goroutine works
	}
	before, err := s.Meta(t.Context(), "", "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, numbers := range [][]int{{7}, {8, 4000, 4097, 8999}} {
		if err := s.Erase(t.Context(), forgetNumber(t, s, numbers...)); err != nil {
			t.Fatal(err)
		}
		for _, n := range numbers {
			if found := findBytes(t, path, secrets(n)...); len(found) > 0 {
				t.Errorf("%v", found)
			}
		}
	}
	cold := openAt(t, Config{Path: path, Unsafe: true, mergeAt: 900})
	for _, st := range []*Store{s, cold} {
		after, err := st.Meta(t.Context(), "", "a")
		if err != nil {
			t.Fatal(err)
		}
		for i := range before.Time {
			gone := strings.Contains(" 7 8 4000 4097 8999 ", fmt.Sprint(" ", i+1, " "))
			author := after.Authors[after.Author[i]]
			if gone != after.Dead[i] || gone != (author == "") || !gone && author != before.Authors[before.Author[i]] ||
				after.Length[i] != before.Length[i] || after.Role[i] != before.Role[i] {
				t.Fatalf("document %d: dead %v, author %q", i+1, after.Dead[i], author)
			}
		}
	}
}

// TestEraseMidMerge erases a document in the midst of a merge, whose border stands at one of its terms.
func TestEraseMidMerge(t *testing.T) {
	for most := 1; most < 12; most++ {
		s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "m.db"), Unsafe: true, mergeAt: 1 << 40})
		if _, err := s.Commit(t.Context(), &store.Commit{Agents: []memgpt.Agent{{ID: "a", Name: "a"}},
			Threads: []memgpt.Thread{{ID: "t", Agent: "a", Name: "main", Next: 1}}}); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			if _, err := s.Commit(t.Context(), secretCommit(n+1)); err != nil {
				t.Fatal(err)
			}
		}
		m := &mergeJob{owner: 1, most: most}
		err := s.snapshot(t.Context(), "", func(c *conn) error { return m.load(c, func(int64) int64 { return 1 }) })
		if err != nil {
			t.Fatal(err)
		}
		s.token <- struct{}{}
		err = s.writeSlice(m)
		s.release()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Erase(t.Context(), forgetNumber(t, s, 2)); err != nil {
			t.Fatal(err)
		}
		if found := findBytes(t, s.cfg.Path, secrets(2)...); len(found) > 0 {
			t.Errorf("after %d terms: %v", most, found)
		}
		if !m.over { // the merge that was under way must not go on with what it had read
			s.token <- struct{}{}
			if err := s.writeSlice(m); err == nil {
				t.Errorf("after %d terms: the merge goes on", most)
			}
			s.release()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openAt(t, Config{Path: s.cfg.Path, Unsafe: true, mergeAt: 1})
		merged(t, s, 1)
		checkSums(t, s)
		for _, term := range append(secrets(1)[:2], "number", secrets(2)[0]) {
			var got []store.Posting
			err := s.Postings(t.Context(), "", "a", term, func(b []store.Posting) bool { got = append(got, b...); return true })
			want := map[string]string{"number": "[{1 1} {3 1}]", secrets(2)[0]: "[]"}[term]
			if want == "" {
				want = "[{1 1}]"
			}
			if err != nil || fmt.Sprint(got) != want {
				t.Errorf("after %d terms: postings of %q are %v, want %s, error %v", most, term, got, want, err)
			}
		}
	}
}

// TestEraseWhileRead erases while another program reads: the text is gone from every read, the error says what is left,
// and an erasure of nothing clears it.
func TestEraseWhileRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	newThread(t, path)
	s := openAt(t, Config{Path: path, Unsafe: true, Busy: 20 * time.Millisecond})
	for n := range 5 {
		if _, err := s.Commit(t.Context(), secretCommit(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := dial(s.dsn(false))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.close() }()
	if err := reader.script("BEGIN; SELECT * FROM entries"); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.one("SELECT count(*) FROM entries"); err != nil {
		t.Fatal(err)
	}
	err = s.Erase(t.Context(), forgetNumber(t, s, 2))
	if memgpt.CodeOf(err) != memgpt.CodeBusy || !strings.Contains(err.Error(), "run the same again") {
		t.Errorf("error %v", err)
	}
	list, err := s.Entries(t.Context(), store.EntryRange{Thread: "t"})
	if err != nil || len(list) != 5 || list[1].Message.Said() != "forgotten" {
		t.Errorf("%d entries, the second is %+v, error %v", len(list), list[1], err)
	}
	if len(findBytes(t, path, secrets(2)...)) == 0 {
		t.Errorf("nothing is left where a reader holds it: the test can't fail")
	}
	if err := reader.script("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := s.Erase(t.Context(), &store.Erasure{}); err != nil {
		t.Error(err)
	}
	if found := findBytes(t, path, secrets(2)...); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// eraseChild erases one message and says when it begins and when it is done.
func eraseChild(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, Config{Path: path, mergeAt: 20})
	if err != nil {
		return err
	}
	th, err := s.Thread(ctx, "", "t")
	if err != nil {
		return err
	}
	e, _ := numbered(th.Head)
	e.Message = memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginOwner, "forgotten")
	fmt.Println("begins")
	err = s.Erase(ctx, &store.Erasure{Threads: []memgpt.Thread{th}, Entries: []memgpt.Entry{e}, Docs: []store.Doc{{Owner: "a", ID: e.ID}}})
	if err != nil {
		return err
	}
	fmt.Println("done")
	return s.Close()
}

// TestKilledErasure kills a process in the midst of an erasure: all of it is there or nothing of it is done, and what was
// done is gone from the files as soon as somebody has opened the store again.
func TestKilledErasure(t *testing.T) {
	rounds := 14
	if slowed {
		rounds = 4
	}
	rng := rand.New(rand.NewPCG(1, 12))
	path := filepath.Join(t.TempDir(), "m.db")
	newThread(t, path)
	outcomes := map[string]int{}
	for round := range rounds {
		n := round + 1
		fillForKill(t, path, n)
		out, kill := child(t, "erase", path)
		if !out.Scan() || out.Text() != "begins" {
			t.Fatalf("the child says %q", out.Text())
		}
		time.Sleep(time.Duration(rng.IntN(1+rng.IntN(40000))) * time.Microsecond) // real time: a moment of another process
		kill()
		s := openAt(t, Config{Path: path, mergeAt: 20})
		list, err := s.Entries(t.Context(), store.EntryRange{Thread: "t", After: int64(n) - 1, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Stats(t.Context(), "", "a", secrets(n)[:2])
		if err != nil {
			t.Fatal(err)
		}
		whole := list[0].Message.Said() == secretText(n)
		if df := st.DF[secrets(n)[0]] + st.DF[secrets(n)[1]]; whole != (df == 2) || !whole && df != 0 {
			t.Fatalf("round %d: the entry is whole: %v, and %d terms are", round, whole, df)
		}
		if whole {
			outcomes["nothing"]++
			if err := s.Erase(t.Context(), forgetNumber(t, s, n)); err != nil {
				t.Fatal(err)
			}
		} else {
			outcomes["all"]++
			if err := s.Close(); err != nil { // waits for the cleaning
				t.Fatal(err)
			}
		}
		if found := findBytes(t, path, secrets(n)...); len(found) > 0 {
			t.Fatalf("round %d: %v", round, found)
		}
		if whole {
			checkIntegrity(t, s)
			checkSums(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%v", outcomes)
}

// fillForKill sees to it that the n-th message is there and is the next that the child erases.
func fillForKill(t *testing.T, path string, n int) {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: path, mergeAt: 20})
	if err != nil {
		t.Fatal(err)
	}
	th, err := s.Thread(t.Context(), "", "t")
	if err != nil {
		t.Fatal(err)
	}
	th.Head = int64(n)
	c := secretCommit(n)
	c.Threads = []memgpt.Thread{th}
	if _, err := s.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// eraseSlowly erases one message of a large file and says when it begins to write the file anew.
func eraseSlowly(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, Config{Path: path, Rewriting: func(bytes int64) func() { fmt.Println("rewrites", bytes); return func() {} }})
	if err != nil {
		return err
	}
	th, err := s.Thread(ctx, "", "t")
	if err != nil {
		return err
	}
	e, _ := numbered(1)
	e.Message = memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginOwner, "forgotten")
	err = s.Erase(ctx, &store.Erasure{Threads: []memgpt.Thread{th}, Entries: []memgpt.Entry{e}, Docs: []store.Doc{{Owner: "a", ID: e.ID}}})
	fmt.Println("done", err)
	return err
}

// largeSecrets makes a store of so many messages of 4 kB, the first one with the secrets to be erased.
func largeSecrets(t *testing.T, path string, n int) {
	t.Helper()
	newThread(t, path)
	s := openAt(t, Config{Path: path, Unsafe: true})
	first := secretCommit(1)
	for at := 2; at <= n; at++ {
		e, _ := numbered(int64(at))
		e.Message = memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, strings.Repeat(fmt.Sprint(at, " "), 800))
		first.Entries = append(first.Entries, e)
	}
	if _, err := s.Commit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestKilledRewriting kills a process while it writes the file anew. What it erased is out of every read, and the next
// opening, or the next erasure of nothing, writes the file anew.
func TestKilledRewriting(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	midway := 0
	for round := range 6 {
		path := filepath.Join(t.TempDir(), "m.db")
		largeSecrets(t, path, 4000)
		out, kill := child(t, "rewrite", path)
		if !out.Scan() || !strings.HasPrefix(out.Text(), "rewrites ") {
			t.Fatalf("the child says %q", out.Text())
		}
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond) // real time: a moment of another process
		kill()
		if !out.Scan() && len(findBytes(t, path, secrets(1)...)) > 0 {
			midway++
		}
		told := 0
		s := openAt(t, Config{Path: path, Rewriting: func(int64) func() { told++; return func() {} }})
		if round%2 == 0 {
			if err := s.Erase(t.Context(), &store.Erasure{}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := s.Entries(t.Context(), store.EntryRange{Thread: "t", Limit: 1})
		if err != nil || list[0].Message.Said() != "forgotten" {
			t.Fatalf("round %d: the first message is %+v, error %v", round, list, err)
		}
		checkIntegrity(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if found := findBytes(t, path, secrets(1)...); len(found) > 0 || told > 1 {
			t.Errorf("round %d: told of %d rewritings, left is %v", round, told, found)
		}
	}
	if midway == 0 {
		t.Error("no process was killed while it wrote the file anew: the test can't fail")
	}
}

// TestEraseInterrupted ends the context of an erasure that writes the file anew: it is committed, the error says what is
// left, and the next erasure of nothing does it.
func TestEraseInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	largeSecrets(t, path, 4000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := 0
	s := openAt(t, Config{Path: path, Rewriting: func(int64) func() { cancel(); return func() { ended++ } }})
	err := s.Erase(ctx, forgetNumber(t, s, 1))
	if err == nil || !strings.Contains(err.Error(), "out of every search and reading") || !strings.Contains(err.Error(), "interrupted") {
		t.Fatalf("error %v", err)
	}
	list, err := s.Entries(t.Context(), store.EntryRange{Thread: "t", Limit: 1})
	if err != nil || list[0].Message.Said() != "forgotten" {
		t.Fatalf("the first message is %+v, error %v", list, err)
	}
	if err := s.Erase(t.Context(), &store.Erasure{}); err != nil || ended != 2 {
		t.Fatalf("%d rewritings ended, error %v", ended, err)
	}
	if found := findBytes(t, path, secrets(1)...); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestCommitWaitsForRewriting holds the lock, as who writes the file anew does, for longer than commits wait for others.
func TestCommitWaitsForRewriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	newThread(t, path)
	s := openAt(t, Config{Path: path, Busy: 10 * time.Millisecond})
	other, err := dial(s.dsn(true))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.close() }()
	if err := other.script("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), secretCommit(1)); memgpt.CodeOf(err) != memgpt.CodeBusy || !strings.Contains(err.Error(), "locked for 10ms") {
		t.Fatalf("beside a lock that is none of a rewriting: %v", err)
	}
	if err := other.script(sqlUnclean + "; COMMIT; BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := s.Commit(context.Background(), secretCommit(1)); done <- err }()
	select {
	case err := <-done:
		t.Fatalf("the commit didn't wait: %v", err)
	case <-time.After(200 * time.Millisecond): // real time: many times what it waits for others
	}
	if err := other.script("COMMIT; " + sqlClean); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
