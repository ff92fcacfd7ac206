package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/store"
)

const (
	userText  = "I moved to Bergen in May and my sister Ingrid still keeps the two cats, so remind me to call her on Sunday."
	agentText = "Got it: you live in Bergen since May, and Ingrid looks after the cats. I'll remind you on Sunday to call her."
)

// turns makes the two commits of one-step turns of a conversation.
type turns struct {
	thread memgpt.Thread
	ids    func(kind string) string
	now    time.Time
	rng    *rand.Rand
}

func newTurns(tb testing.TB, s store.Store, agent string) *turns {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tr := &turns{now: now, rng: rand.New(rand.NewPCG(1, 2))}
	tr.ids = kernel.NewIDs(rand.NewChaCha8([32]byte([]byte(fmt.Sprintf("%-32s", agent)))), func() time.Time { return tr.now })
	tr.thread = memgpt.Thread{ID: tr.ids("conv"), Agent: agent, Name: "main", Next: 1,
		Summary: memgpt.Summary{Text: strings.Repeat("What was said before. ", 60), Covers: 30, Time: now}}
	c := &store.Commit{Now: now, Agents: []memgpt.Agent{{ID: agent, Name: agent}}, Threads: []memgpt.Thread{tr.thread}}
	if _, err := s.Commit(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	tr.thread.Version = 1
	return tr
}

func (tr *turns) doc(id, text string, role memgpt.Role) store.Doc {
	d := store.Doc{Owner: tr.thread.Agent, ID: id, Kind: memgpt.KindMessage, Thread: tr.thread.ID, Role: role, Time: tr.now}
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		d.Terms = append(d.Terms, store.TermCount{Term: strings.Trim(w, ".,:"), N: 1})
		d.Length++
	}
	return d
}

// one makes both commits of a turn.
func (tr *turns) one(ctx context.Context, s store.Store, said, answer string) error {
	tr.now = tr.now.Add(time.Second)
	t := &tr.thread
	ev := memgpt.Event{ID: tr.ids("event"), Agent: t.Agent, Thread: t.ID, Type: memgpt.EventUser, Due: tr.now, Created: tr.now,
		Turn: tr.ids("turn"), Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, said)}
	got, err := s.Commit(ctx, &store.Commit{Now: tr.now, Events: []memgpt.Event{ev},
		Acquire: &store.Lease{Thread: t.ID, Until: tr.now.Add(time.Minute)}})
	if err != nil {
		return err
	}
	messages := []memgpt.Message{ev.Message,
		{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: memgpt.Parts{memgpt.Text{Text: "The user tells me news.", Thought: true},
			memgpt.Call{ID: "call_1", Name: "send_message", Arguments: `{"message":"` + answer + `"}`}}},
		{Role: memgpt.RoleTool, Origin: memgpt.OriginTool, Parts: memgpt.Parts{memgpt.Result{CallID: "call_1", Name: "send_message",
			Text: `{"status":"OK","message":"None","time":"2026-03-01T12:00:00Z"}`}}}}
	c := &store.Commit{Now: tr.now, Lease: got.Lease, Release: true, Consume: []string{ev.ID}}
	for _, m := range messages {
		c.Entries = append(c.Entries, memgpt.Entry{ID: tr.ids("message"), Agent: t.Agent, Thread: t.ID, Seq: t.Next, Turn: ev.Turn,
			Step: 1, Time: tr.now, Message: m})
		t.Next++
	}
	c.Docs = []store.Doc{tr.doc(c.Entries[0].ID, said, memgpt.RoleUser), tr.doc(c.Entries[1].ID, answer, memgpt.RoleAssistant)}
	c.Threads = []memgpt.Thread{*t}
	c.Turns = []memgpt.Turn{{ID: ev.Turn, Agent: t.Agent, Thread: t.ID, Event: ev.ID, Type: ev.Type, State: memgpt.TurnDone,
		Stop: memgpt.StopEnd, Steps: 1, Spoke: 1, Usage: memgpt.Usage{Input: 2100, Output: 60, Calls: 1}, Started: tr.now, Ended: tr.now}}
	_, err = s.Commit(ctx, c)
	t.Version++
	return err
}

// bare is the yardstick: a plain table in the same file, one row a transaction.
func bare(tb testing.TB, path string) func(text string) {
	c, err := dial((&Store{cfg: Config{Path: path, Busy: time.Second}}).dsn(true))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.close() })
	if _, err := c.exec("CREATE TABLE bare (no INTEGER PRIMARY KEY, text TEXT)"); err != nil {
		tb.Fatal(err)
	}
	return func(text string) {
		for _, q := range []string{"BEGIN IMMEDIATE", "INSERT INTO bare (text) VALUES (?)", "COMMIT"} {
			var args []any
			if strings.Contains(q, "?") {
				args = []any{text}
			}
			if _, err := c.exec(q, args...); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkStepCommits reports the two commits of a step beside two bare transactions. They are taken in turn, one by one
// or ten by ten: the bare ones come from another connection, and each time that another connection commits, SQLite's page
// cache and our rows are void, which in daily use is seldom.
func BenchmarkStepCommits(b *testing.B) {
	for _, run := range []int{1, 10} {
		b.Run(fmt.Sprint("InTurnBy", run), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "m.db")
			s := openAt(b, Config{Path: path})
			tr := newTurns(b, s, "agent-1")
			pair := bare(b, path)
			var step, plain []time.Duration
			for b.Loop() {
				for range run {
					start := time.Now()
					if err := tr.one(b.Context(), s, userText, agentText); err != nil {
						b.Fatal(err)
					}
					step = append(step, time.Since(start))
				}
				for range run {
					start := time.Now()
					pair(userText)
					pair(agentText)
					plain = append(plain, time.Since(start))
				}
			}
			b.ReportMetric(float64(median(step).Microseconds()), "step-µs")
			b.ReportMetric(float64(median(plain).Microseconds()), "pair-µs")
			b.ReportMetric(float64(median(step))/float64(median(plain)), "ratio")
		})
	}
}

func BenchmarkCommits(b *testing.B) {
	for _, workers := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			s := openAt(b, Config{Path: filepath.Join(b.TempDir(), "m.db")})
			list := make([]*turns, workers)
			for i := range list {
				list[i] = newTurns(b, s, fmt.Sprint("agent-", i))
			}
			var next atomic.Int64
			b.SetParallelism(max(1, workers/2))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				i := int(next.Add(1) - 1)
				if i >= workers {
					return
				}
				tr := list[i]
				for pb.Next() {
					if err := tr.one(b.Context(), s, userText, agentText); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

// words makes texts of Zipf distributed words.
type words struct {
	rng  *rand.Rand
	zipf *rand.Zipf
}

func newWords(seed uint64) *words {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &words{rng, rand.NewZipf(rng, 1.1, 2, 100_000)}
}

func (w *words) word() string { return w.at(w.zipf.Uint64()) }

// at is the word of a rank.
func (w *words) at(n uint64) string {
	var b []byte
	for n++; n > 0; n /= 18 {
		b = append(b, "bcdfghjklmnprstvwz"[n%18], "aeiou"[n%5])
	}
	return string(b)
}

func (w *words) text(bytes int) string {
	var b strings.Builder
	for b.Len() < bytes {
		b.WriteString(w.word())
		b.WriteByte(' ')
	}
	return b.String()
}

// filled makes an owner with n documents of about 20 terms and waits until its index is merged.
func filled(b *testing.B, n int) (s *Store, path string, took time.Duration) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "m.db")
	s = openAt(b, Config{Path: path, Unsafe: true})
	w := newWords(7)
	start := time.Now()
	for at := 0; at < n; at += 1000 {
		c := &store.Commit{}
		for i := range 1000 {
			d := store.Doc{Owner: "o", ID: fmt.Sprintf("message-%08x-0000-7000-8000-000000000000", at+i), Kind: memgpt.KindMessage, Thread: "t",
				Role: memgpt.RoleUser, Time: time.Unix(int64(at+i)*60, 0)}
			seen := map[string]bool{}
			for range 25 {
				if t := w.word(); !seen[t] {
					seen[t] = true
					d.Terms = append(d.Terms, store.TermCount{Term: t, N: 1})
				}
				d.Length++
			}
			c.Docs = append(c.Docs, d)
		}
		if _, err := s.Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
	merged(b, s, 1)
	return s, path, time.Since(start)
}

func BenchmarkIndex(b *testing.B) {
	sizes := []int{100_000}
	if os.Getenv("MEMGPT_LONG") != "" {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		s, path, took := filled(b, n)
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint("Cold/", n), func(b *testing.B) {
			for b.Loop() {
				s.index.init(1 << 30)
				if _, err := s.Meta(b.Context(), "", "o"); err != nil {
					b.Fatal(err)
				}
				if _, err := s.Stats(b.Context(), "", "o", nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/took.Seconds(), "docs-filled/s")
			b.ReportMetric(float64(info.Size())/float64(n), "bytes/doc")
		})
		b.Run(fmt.Sprint("Stats5/", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Stats(b.Context(), "", "o", []string{"ba", "ce", "di", "fobe", "guda"}); err != nil {
					b.Fatal(err)
				}
			}
		})
		w := newWords(1)
		for rank, term := range map[string]string{"top": w.at(0), "10th": w.at(10), "1000th": w.at(1000)} {
			b.Run(fmt.Sprintf("Postings/%s/%d", rank, n), func(b *testing.B) {
				sum := 0
				for b.Loop() {
					sum = 0
					err := s.Postings(b.Context(), "", "o", term, func(block []store.Posting) bool { sum += len(block); return true })
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(sum), "postings")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(max(sum, 1)), "ns/posting")
			})
		}
	}
}
