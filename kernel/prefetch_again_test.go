package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/storetest"
)

// TestSecondLookGoesByTheAgentsOwnWords: the user's words find nothing, the agent's do, and the reply that it doesn't know
// is not sent.
func TestSecondLookGoesByTheAgentsOwnWords(t *testing.T) {
	replies := map[string][2]script.Reply{
		"send":   {script.Say("I'm sorry, I don’t know the combination of the padlock."), script.Say("It is 4471.")},
		"native": {script.Text("I have no record of a padlock combination."), script.Text("It is 4471.")},
		"中文":     {script.Say("抱歉，我没有找到关于 padlock combination 的记录。"), script.Say("It is 4471.")},
	}
	for name, r := range replies {
		t.Run(name, func(t *testing.T) {
			o := options{prefetch: onPrefetch}
			if name == "native" {
				o.protocol = memgpt.ProtocolNative
			}
			m := script.Of(r[0], r[1], script.Say("bye"))
			e := newEnv(t, m, o)
			e.archive("The padlock has the combination 4471.")
			said, turn := e.say("How do I get into the shed?")
			p := turn.Prefetch
			if len(said) != 1 || said[0] != "It is 4471." || turn.Usage.Calls != 2 || turn.Steps != 1 || p == nil || !p.Second || len(p.Hits) != 1 || p.Why != "" {
				t.Fatalf("said %q, %+v, %+v", said, turn, p)
			}
			reqs := m.Requests()
			first, second := reqs[0].Messages, reqs[1].Messages
			if d := cmp.Diff(first, second[:len(first)]); d != "" || len(second) != len(first)+1 {
				t.Errorf("the prefix changed: %s", d)
			}
			if texts, at := handedIn(reqs[1]); at != len(second)-1 || !strings.Contains(texts[0], "4471") {
				t.Errorf("%q at %d", texts, at)
			}
			if !slices.ContainsFunc(e.seen, func(u memgpt.Update) bool { _, ok := u.(memgpt.StepDiscarded); return ok }) {
				t.Error("nobody was told that the reply was thrown away")
			}
			for _, entry := range e.log() {
				if strings.Contains(entry.Message.Said(), "padlock") && entry.Message.Role == memgpt.RoleAssistant {
					t.Errorf("the reply that was thrown away is in the log: %q", entry.Message.Said())
				}
			}
		})
	}
}

// TestSecondLookHappensOnce keeps replies that a second look does not help, and those of agents without prefetch.
func TestSecondLookHappensOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  memgpt.PrefetchMode
		say   string
		calls int
	}{
		{"twice unsure", memgpt.PrefetchOn, "I don't know the padlock combination.", 2},
		{"off", memgpt.PrefetchOff, "I don't know the padlock combination.", 1},
		{"nothing new", memgpt.PrefetchOn, "I don't know that.", 1},
		{"sure", memgpt.PrefetchOn, "The padlock combination opens it.", 1},
	} {
		m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Say(c.say) }})
		e := newEnv(t, m, options{prefetch: memgpt.Prefetch{Mode: c.mode}})
		e.archive("The padlock has the combination 4471.")
		said, turn := e.say("How do I get into the shed?")
		if len(said) != 1 || said[0] != c.say || turn.Usage.Calls != c.calls {
			t.Errorf("%s: said %q in %d calls, %+v", c.name, said, turn.Usage.Calls, turn.Prefetch)
		}
	}
}

// recordReads is a store that counts the reads of search records.
type recordReads struct {
	store.Store
	n, written int
}

func (s *recordReads) Record(ctx context.Context, tenant, kind, id string) (store.Record, error) {
	if kind == "search_record" {
		s.n++
	}
	return s.Store.Record(ctx, tenant, kind, id)
}

func (s *recordReads) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	s.written += len(c.Records)
	return s.Store.Commit(ctx, c)
}

// TestAutoFollowsTheModelsRecord talks with a model that doesn't search until it is handed what it needs, and then with one
// that does.
func TestAutoFollowsTheModelsRecord(t *testing.T) {
	searches := false
	m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		if req.Messages[len(req.Messages)-1].Role != memgpt.RoleTool && searches {
			return script.Call("archival_memory_search", "query", fmt.Sprint("cellar ", len(req.Messages)), "request_heartbeat", true)
		}
		return script.Say("Plums.")
	}})
	reads := &recordReads{}
	e := newEnv(t, m, options{window: 32768, prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchAuto, Budget: 200}, wrap: func(s store.Store) store.Store {
		reads.Store = s
		return reads
	}})
	var texts []string
	for i := range 150 {
		texts = append(texts, fmt.Sprintf("Shelf %d of the cellar holds jars of the year %d.", i, 1800+i))
	}
	e.archive(texts...)
	ask := func(n int) (handed []bool) {
		for i := range n {
			_, turn := e.say(fmt.Sprintf("What is on shelf %d of the cellar?", len(e.seen)+i))
			handed = append(handed, len(turn.Prefetch.Hits) > 0)
		}
		return handed
	}
	if got := ask(5); slices.Contains(got, true) {
		t.Errorf("something was handed over before anything was known of the model: %v", got)
	}
	if got := ask(10); !slices.Equal(got, []bool{true, true, true, true, true, true, true, true, false, true}) {
		t.Errorf("to a model that doesn't search, but for one trial: %v", got)
	}
	searches = true
	ask(7 + 1 + 4*3) // to the next trial, and from then on trials come sooner
	if got := ask(4); slices.Contains(got, true) {
		t.Errorf("handing over did not end for a model that searches: %v", got)
	}
	searches = false
	ask(7)
	if got := ask(2); countTrue(got) == 0 {
		t.Errorf("handing over did not begin again: %v", got)
	}
	before := *reads
	e.say("Thanks a lot!")
	if reads.n != before.n || reads.written != before.written {
		t.Error("thanks cost a look at the record")
	}
}

func countTrue(list []bool) (n int) {
	for _, v := range list {
		if v {
			n++
		}
	}
	return n
}

// TestPrefetchOffCostsNothing holds that agents without prefetch read and write no search records.
func TestPrefetchOffCostsNothing(t *testing.T) {
	for _, mode := range []memgpt.PrefetchMode{"", memgpt.PrefetchOff, memgpt.PrefetchOn} {
		reads := &recordReads{}
		e := newEnv(t, talker(), options{prefetch: memgpt.Prefetch{Mode: mode}, wrap: func(s store.Store) store.Store {
			reads.Store = s
			return reads
		}})
		e.say("Where is the key of the boathouse?")
		if reads.n+reads.written > 0 {
			t.Errorf("mode %q: %d reads, %d writes", mode, reads.n, reads.written)
		}
	}
}

// TestPrefetchCountsWhatWasUsed: one text is read by id, one is quoted, one is left.
func TestPrefetchCountsWhatWasUsed(t *testing.T) {
	var e *env
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		if n == 0 {
			texts, _ := handedIn(req)
			at := strings.Index(texts[0], "passage-")
			return script.Call("memory_read", "id", texts[0][at:at+len("passage-")+36], "request_heartbeat", true)
		}
		return script.Say("The oars stand under the left bench.")
	}})
	e = newEnv(t, m, options{prefetch: onPrefetch})
	e.archive("Boathouse: the key is with Otto.", "Boathouse: the oars stand under the left bench.", "Boathouse: the lamp is broken.")
	_, turn := e.say("What do we know of the boathouse?")
	if p := turn.Prefetch; len(p.Hits) != 3 || p.Used < 1 || p.Used > 2 || turn.Searches != 0 {
		t.Errorf("%d of %d hits were used, %d searches", p.Used, len(p.Hits), turn.Searches)
	}
}

// TestPrefetchIsMadeOnceWhereverItCrashes kills the store at each commit, before and after it.
func TestPrefetchIsMadeOnceWhereverItCrashes(t *testing.T) {
	questions := []string{"Where is the key of the boathouse?", "Who borrowed those oars?", "How do I get into the shed?"}
	crash := func(at int64, after bool) bool {
		faulty := &storetest.Faulty{At: at, Commits: true, After: after}
		o := options{window: 3600, prefetch: onPrefetch, wrap: func(s store.Store) store.Store {
			faulty.Inner = s
			return faulty
		}}
		m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
			if texts, _ := handedIn(req); strings.Contains(req.Messages[len(req.Messages)-1].Said(), "shed") && !strings.Contains(strings.Join(texts, ""), "4471") {
				return script.Say("I don't know the padlock combination.")
			}
			return script.Say("done" + strings.Repeat(" padding words", 300))
		}, Summary: func(*memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x") }})
		e := newEnv(t, m, o)
		load := e.config
		load.Store = e.base
		k, err := kernel.New(load)
		must(t, err)
		l, err := k.BeginLoad(t.Context(), e.agent, "notes")
		must(t, err)
		must(t, l.Add(t.Context(), []memgpt.Passage{{Text: "The key of the boathouse hangs behind the clock."},
			{Text: "Otto has borrowed those oars."}, {Text: "The padlock has the combination 4471."}}))
		for i, text := range questions {
			if err := e.deliver(text, fmt.Sprint("key", i)); err != nil {
				if !faulty.Dead() || e.store == store.Store(e.base) {
					t.Fatalf("at %d, question %d: %v", at, i, err)
				}
				e.store = e.base
				e.configure(m, o)
				if err := e.deliver(text, fmt.Sprint("key", i)); err != nil {
					t.Fatalf("at %d, question %d, after the crash: %v", at, i, err)
				}
			}
		}
		e.checkPrefetchLog(at, questions)
		e.checkAll(m, 3600)
		return faulty.Dead()
	}
	for _, after := range []bool{false, true} {
		for at := int64(1); crash(at, after); at += every(true) {
		}
	}
}

// checkPrefetchLog holds that each text was handed over at most once for each question, and the one that answers it was.
func (e *env) checkPrefetchLog(at int64, questions []string) {
	e.t.Helper()
	log := e.checkState(nil)
	byTurn, asked := map[string]string{}, map[string]string{}
	for i := range log {
		switch m := &log[i].Message; {
		case m.Type == memgpt.EventPrefetch:
			byTurn[log[i].Turn] += m.Said()
		case m.Role == memgpt.RoleUser:
			asked[m.Said()] = log[i].Turn
		}
	}
	for i, mark := range []string{"behind the clock", "Otto has", "4471"} {
		turn := asked[questions[i]]
		if n := strings.Count(byTurn[turn], mark); n != 1 {
			e.t.Fatalf("at %d: for %q %q was handed over %d times", at, questions[i], mark, n)
		}
	}
	if len(asked) != len(questions) {
		e.t.Fatalf("at %d: %d questions are in the log", at, len(asked))
	}
}

// TestForgettingTakesWhatWasHandedOver forgets a passage, a message and a term.
func TestForgettingTakesWhatWasHandedOver(t *testing.T) {
	const secret = "The spare key of the boathouse hangs behind the zeppelin clock."
	for _, by := range []string{"passage", "message", "term"} {
		e := newEnv(t, talker(), options{prefetch: onPrefetch})
		e.archive(secret)
		_, turn := e.say("Where is my boathouse key?")
		if len(turn.Prefetch.Hits) != 1 {
			t.Fatalf("%+v", turn.Prefetch)
		}
		what := kernel.Forgetting{Agent: e.agent}
		switch by {
		case "passage":
			what.Passages = []string{turn.Prefetch.Hits[0].ID}
		case "message":
			for _, entry := range e.log() {
				if entry.Message.Role == memgpt.RoleUser {
					what.Messages = append(what.Messages, entry.ID)
				}
			}
		case "term":
			what.Term = "boathouse"
		}
		_, err := e.kernel.Forget(t.Context(), what)
		must(t, err)
		left, err := e.base.Turn(t.Context(), "", turn.ID)
		must(t, err)
		log := ""
		for _, entry := range e.log() {
			log += entry.Message.Said()
		}
		if by != "message" && (strings.Contains(log, "zeppelin") || len(left.Prefetch.Hits) > 0 && by == "passage") {
			t.Errorf("by %s: left in the log %q, in the turn %+v", by, log, left.Prefetch)
		}
		if by != "passage" && left.Prefetch.Query != "[forgotten]" {
			t.Errorf("by %s: the query is left: %q", by, left.Prefetch.Query)
		}
	}
}
