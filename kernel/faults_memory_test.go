package kernel_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
	"memgpt/store"
)

// hit is a line of a search's result or of memory_read.
type hit struct {
	ID, Kind, Time, Conversation, Role, Name, Text, Type string
	Tags                                                 []string
	Cut, Asked                                           bool
	Offset, Length                                       int
	SupersededBy                                         string `json:"superseded_by"`
}

// hits reads the lines of a result back.
func hits(t testing.TB, text string) (out []hit) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "{") {
			var h hit
			must(t, json.Unmarshal([]byte(line), &h))
			if h.ID != "" { // a note of two hits that contradict each other has none
				out = append(out, h)
			}
		}
	}
	return out
}

var passageID = regexp.MustCompile(`passage-[0-9a-f-]{36}`)

func TestFaultsOfRecall(t *testing.T) {
	t.Run("hits have time with offset, role and text", func(t *testing.T) {
		m := script.Of(script.Say("Noted, tulips."), script.Say("ok"), script.Say("ok"))
		e := newEnv(t, m, options{zone: "Asia/Tokyo"})
		e.say("I like tulips")
		e.say("second")
		e.say("third")
		found := hits(t, e.ok(m, "conversation_search", "query", "tulips"))
		if len(found) != 2 {
			t.Fatalf("%+v", found)
		}
		for _, h := range found {
			at, err := time.Parse(time.RFC3339, h.Time)
			if err != nil || !strings.HasSuffix(h.Time, "+09:00") || at.Before(e.log()[0].Time.Truncate(time.Second)) || h.Conversation != "main" {
				t.Errorf("%+v: %v", h, err)
			}
		}
		if roles := found[0].Role + found[1].Role; roles != "userassistant" && roles != "assistantuser" { // what the agent said is found too
			t.Errorf("%+v", found)
		}
	})
	t.Run("search quotes itself", func(t *testing.T) {
		m := script.Of(script.Say("ok"))
		e := newEnv(t, m, options{})
		e.say("my bike code is 7391")
		for range 4 {
			found := hits(t, e.ok(m, "conversation_search", "query", "bike code", "roles", []string{"user", "assistant", "tool"}))
			if len(found) != 1 || found[0].Text != "my bike code is 7391" {
				t.Fatalf("%+v", found)
			}
		}
	})
	t.Run("search finds the present question", func(t *testing.T) {
		m := script.Of(script.Say("ok"), script.Call("conversation_search", "query", "bike", "request_heartbeat", true),
			script.Call("conversation_search", "query", "bike code", "request_heartbeat", true), script.Say("7391"))
		e := newEnv(t, m, options{})
		e.say("my bike code is 7391")
		e.say("what is my bike code?") // is in the log when the second search is made
		if found := hits(t, e.result("conversation_search").Text); len(found) != 1 || found[0].Text != "my bike code is 7391" {
			t.Errorf("%+v", found)
		}
	})
	t.Run("date formats", func(t *testing.T) {
		m := script.Of(script.Say("ok"))
		e := newEnv(t, m, options{})
		e.now = time.Date(2024, 10, 14, 12, 0, 0, 0, time.UTC)
		e.say("the tulips bloom")
		e.now = time.Date(2024, 10, 20, 12, 0, 0, 0, time.UTC)
		for _, c := range []struct {
			start, end string
			n          int
		}{{"2024-10-14", "now", 1}, {"2024/10/14", "", 1}, {"2024-10-14T00:00:00+09:00", "2024-10-14", 1}, {"yesterday", "today", 0},
			{"", "2024-10-13", 0}, {"2024-10-15", "", 0}, {"2024-10-14", "2024-10-14", 1}} {
			if found := hits(t, e.ok(m, "conversation_search", "query", "tulips", "start_date", c.start, "end_date", c.end)); len(found) != c.n {
				t.Errorf("%+v: %+v", c, found)
			}
		}
		for _, bad := range []string{"soon", "2024-13-45", "14", "2024-10-14T99:00"} {
			if res := e.do(m, "conversation_search", "query", "tulips", "start_date", bad); !res.Failed || !strings.Contains(res.Text, "2024-10-14") {
				t.Errorf("%s: %+v", bad, res)
			}
		}
	})
}

func TestFaultsOfFinding(t *testing.T) {
	t.Run("paging skips or repeats", func(t *testing.T) {
		m := script.Of()
		e := newEnv(t, m, options{policy: memgpt.Policy{PageSize: 6}})
		var lines []kernel.Line
		for i := range 46 {
			lines = append(lines, kernel.Line{Speaker: "user", Text: fmt.Sprint("tulips number ", i), Time: e.now.Add(-time.Duration(max(i, 10)) * time.Hour)})
		}
		e.imports(lines)
		seen := map[string]bool{}
		for page := range 8 {
			text := e.ok(m, "conversation_search", "query", "tulips", "page", page)
			contains(t, text, "of 46", fmt.Sprintf("page %d, last page 7", page))
			for _, h := range hits(t, text) {
				seen[h.ID] = true
			}
			if more := strings.Contains(text, fmt.Sprint("Next page: page=", page+1)); more != (page < 7) {
				t.Errorf("page %d: %s", page, text)
			}
		}
		if len(seen) != 46 {
			t.Errorf("%d of 46", len(seen))
		}
		contains(t, e.ok(m, "conversation_search", "query", "tulips", "page", 8), "beyond the last")
	})
	t.Run("Chinese, Japanese, code", func(t *testing.T) {
		texts := map[string]string{"腾讯云": "我们把服务部署在腾讯云上", "部署": "我们把服务部署在腾讯云上", "しりとり": "今日は成語しりとりをした", "itgc": "重跑gen-itgc后50条"}
		m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Say("好") }})
		e := newEnv(t, m, options{})
		for _, text := range []string{"我们把服务部署在腾讯云上", "今日は成語しりとりをした", "重跑gen-itgc后50条"} {
			e.say(text)
		}
		for query, want := range texts {
			if found := hits(t, e.ok(m, "conversation_search", "query", query)); len(found) == 0 || found[0].Text != want {
				t.Errorf("%s: %+v", query, found)
			}
		}
	})
	t.Run("a message of megabytes is read back whole", readBackWhole)
	t.Run("neighbours and unknown ids", func(t *testing.T) {
		m := script.Of(script.Say("a"), script.Say("b"), script.Say("c"))
		e := newEnv(t, m, options{})
		for _, text := range []string{"one", "two", "three"} {
			e.say(text)
		}
		id := e.log()[3].ID // two
		found := hits(t, e.ok(m, "memory_read", "id", id, "around", 1))
		if len(found) != 3 || found[1].Text != "two" || !found[1].Asked || found[0].Asked || found[2].Text != "b" {
			t.Errorf("%+v", found)
		}
		for _, args := range [][]any{{"id", "message-nothing"}, {"id", ""}, {"id", id, "offset", 99}, {"id", id, "offset", -1}} {
			if res := e.do(m, "memory_read", args...); !res.Failed {
				t.Errorf("%v: %+v", args, res)
			}
		}
	})
}

// readBackWhole sends a text, in the long form of 2 MB, and pages through it with memory_read, by what the results say.
func readBackWhole(t *testing.T) {
	size := 200_000
	switch {
	case long():
		size = 2_000_000
	case raced:
		size = 50_000
	}
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%d: naïve 猫 \"quoted\" \\ <tag>\t👩‍👩‍👧‍👦\n", i)
	}
	text := b.String()
	m := script.Of(script.Say("long"))
	e := newEnv(t, m, options{})
	e.say(text)
	id := e.log()[0].ID
	if got := e.log()[0].Message.Said(); got != text {
		t.Fatalf("stored %d bytes of %d", len(got), len(text))
	}
	var whole strings.Builder
	pages, next := 0, 0
	for more := true; more; pages++ {
		page := e.do(m, "memory_read", "id", id, "offset", next).Text
		h := hits(t, page)
		if len(h) != 1 || h[0].Offset != next || h[0].Length != memgpt.Runes(text) {
			t.Fatalf("page at %d: %.300s", next, page)
		}
		whole.WriteString(h[0].Text)
		_, after, ok := strings.Cut(page, "\nRead on: offset=")
		if more = ok; ok {
			_, err := fmt.Sscan(after, &next)
			must(t, err)
		}
	}
	if whole.String() != text {
		t.Errorf("%d pages give %d bytes of %d", pages, whole.Len(), len(text))
	}
}

func (e *env) imports(lines []kernel.Line) kernel.Imported {
	e.t.Helper()
	st, err := store.Load(e.t.Context(), e.base, "", e.thread)
	must(e.t, err)
	done, err := e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Acquire: &store.Lease{Thread: e.thread, Until: e.now.Add(time.Minute)}})
	must(e.t, err)
	w := &store.Work{State: st, Lease: *done.Lease, TTL: time.Minute}
	in, err := e.kernel.Import(e.t.Context(), w, lines)
	must(e.t, err)
	_, err = e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Lease: &w.Lease, Release: true})
	must(e.t, err)
	return in
}

func TestFaultsOfArchive(t *testing.T) {
	t.Run("the same fact again and again", func(t *testing.T) {
		m := script.Of()
		e := newEnv(t, m, options{})
		first := e.ok(m, "archival_memory_insert", "content", "Ada likes tulips.")
		for _, again := range []string{"Ada likes tulips.", "ada  likes\nTULIPS.", " Ada likes tulips. "} {
			contains(t, e.ok(m, "archival_memory_insert", "content", again), "Already stored", passageID.FindString(first))
		}
		m.Add(script.Calls(script.Call("archival_memory_insert", "content", "Twice in a step."), script.Call("archival_memory_insert", "content", "twice in a step."), script.Say("x")))
		e.say("twice")
		contains(t, e.result("archival_memory_insert").Text, "Already stored")
		contains(t, e.ok(m, "archival_memory_search", "query", "tulips"), "of 1 ")
		contains(t, e.ok(m, "archival_memory_search", "query", "twice"), "of 1 ")
		e.counts(2)
	})
	t.Run("recalled memories are stored again", func(t *testing.T) {
		m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
			if _, calls, _ := sinceUser(req); calls == 0 {
				return script.Calls(script.Call("archival_memory_search", "query", "tulips"), script.Call("conversation_search", "query", "tulips")).Heartbeat()
			}
			return script.Say("told")
		}, Replies: []script.Reply{script.Calls(script.Call("archival_memory_insert", "content", "Ada likes tulips."), script.Say("ok"))}})
		e := newEnv(t, m, options{})
		for range 20 {
			e.say("what about tulips?")
		}
		e.counts(1)
	})
	t.Run("contradiction", func(t *testing.T) {
		m := script.Of()
		e := newEnv(t, m, options{})
		old := passageID.FindString(e.ok(m, "archival_memory_insert", "content", "Ada lives in Bonn.", "tags", []string{"home"}))
		e.now = e.now.Add(time.Hour)
		second := passageID.FindString(e.ok(m, "archival_memory_insert", "content", "Ada no longer lives in Bonn."))
		found := hits(t, e.ok(m, "archival_memory_search", "query", "Ada Bonn"))
		if len(found) != 2 || found[0].Time == found[1].Time {
			t.Errorf("%+v", found)
		}
		merged := e.ok(m, "archival_memory_merge", "ids", []string{old, second}, "content", "Ada moved from Bonn to Rome.")
		contains(t, merged, old, second)
		found = hits(t, e.ok(m, "archival_memory_search", "query", "Ada Bonn"))
		if len(found) != 1 || found[0].Text != "Ada moved from Bonn to Rome." || !slices.Equal(found[0].Tags, []string{"home"}) {
			t.Errorf("%+v", found)
		}
		e.counts(1)
		for _, id := range []string{old, second} { // nothing vanishes
			if h := hits(t, e.ok(m, "memory_read", "id", id)); len(h) != 1 || h[0].SupersededBy != found[0].ID {
				t.Errorf("%+v", h)
			}
		}
		if res := e.do(m, "archival_memory_update", "id", old, "content", "x"); !res.Failed || !strings.Contains(res.Text, found[0].ID) {
			t.Errorf("%+v", res)
		}
	})
	t.Run("update and delete", updateAndDelete)
	t.Run("scores", func(t *testing.T) {
		m := script.Of()
		e := newEnv(t, m, options{})
		for _, text := range []string{"I drink coffee in the morning", "I read books at night", "The rocket starts at noon"} {
			e.ok(m, "archival_memory_insert", "content", text)
		}
		if found := hits(t, e.ok(m, "archival_memory_search", "query", "coffee")); len(found) == 0 || !strings.Contains(found[0].Text, "coffee") {
			t.Errorf("%+v", found)
		}
		contains(t, e.ok(m, "archival_memory_search", "query", "zeppelin"), "No results for")
	})
	t.Run("many facts at once", func(t *testing.T) {
		var calls []script.Reply
		for i := range 15 {
			calls = append(calls, script.Call("archival_memory_insert", "content", fmt.Sprint("fact number ", i)))
		}
		m := script.Of(script.Calls(append(calls, script.Say("stored"))...))
		e := newEnv(t, m, options{})
		if _, turn := e.say("store"); turn.Steps != 1 || m.Count() != 1 {
			t.Errorf("%+v", turn)
		}
		e.counts(15)
	})
}

// counts holds how many passages are live, by every way that counts them.
func (e *env) counts(n int) {
	e.t.Helper()
	o, err := e.base.Outside(e.t.Context(), "", e.agent.ID, e.thread)
	must(e.t, err)
	if o.Passages != n {
		e.t.Errorf("%d passages are counted, want %d", o.Passages, n)
	}
}

func updateAndDelete(t *testing.T) {
	m := script.Of()
	e := newEnv(t, m, options{})
	a := passageID.FindString(e.ok(m, "archival_memory_insert", "content", "Alpha tulip", "tags", []string{"t"}))
	up := e.ok(m, "archival_memory_update", "id", a, "content", "Alpha rose")
	b := passageID.FindString(up)
	if a == b {
		t.Fatal(up)
	}
	contains(t, e.ok(m, "archival_memory_search", "query", "tulip"), "No results")
	if found := hits(t, e.ok(m, "archival_memory_search", "query", "rose", "tags", []string{"t"})); len(found) != 1 || found[0].ID != b {
		t.Errorf("%+v", found)
	}
	e.counts(1)
	contains(t, e.ok(m, "archival_memory_delete", "id", b), "Deleted")
	contains(t, e.ok(m, "archival_memory_search", "query", "rose"), "No results")
	contains(t, e.ok(m, "archival_memory_search", "query", ""), "No results")
	e.counts(0)
	for _, name := range []string{"archival_memory_delete", "archival_memory_update"} {
		if res := e.do(m, name, "id", b, "content", "x"); !res.Failed || !strings.Contains(res.Text, "deleted") {
			t.Errorf("%s: %+v", name, res)
		}
	}
	if p, err := e.base.Passages(t.Context(), "", e.agent.ID, []string{b}); err != nil || len(p) != 1 || p[0].Text != "Alpha rose" {
		t.Errorf("the passage itself: %+v, %v", p, err)
	}
	again := passageID.FindString(e.ok(m, "archival_memory_insert", "content", "Alpha rose")) // what was deleted can be stored anew
	if again == b {
		t.Errorf("%s again", b)
	}
	e.counts(1)
	m.Add(script.Calls(script.Call("archival_memory_insert", "content", "Gamma"), script.Call("archival_memory_delete", "id", again), script.Call("archival_memory_insert", "content", "Alpha rose"), script.Say("x")))
	e.say("delete and store in one step")
	contains(t, e.result("archival_memory_insert").Text, "Stored as")
	contains(t, e.ok(m, "archival_memory_search", "query", "rose"), "of 1 ")
	e.counts(2)
	for _, c := range [][]any{{"archival_memory_update", "id", "passage-none", "content", "x"}, {"archival_memory_delete", "id", "passage-none"},
		{"archival_memory_merge", "ids", []string{again, "passage-none"}, "content", "x"}, {"archival_memory_insert", "content", "  "}} {
		if res := e.do(m, c[0].(string), c[1:]...); !res.Failed {
			t.Errorf("%v: %+v", c, res)
		}
	}
	e.counts(2)
}

func TestFaultsOfImport(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2023, 5, day, 9, 0, 0, 0, time.UTC) }
	lines := []kernel.Line{
		{Speaker: "user", Text: "I planted tulips", Time: at(1), Session: "s1"}, {Speaker: "assistant", Text: "Lovely tulips", Time: at(1)},
		{Speaker: "Caroline", Text: "Mine are roses 🌹", Time: at(2)}, {Speaker: "user", Text: "no time here"},
		{Speaker: "user", Text: "I planted tulips", Time: at(1)}, {Speaker: "user", Text: "named", Time: at(3), ID: "d1"},
		{Speaker: "user", Text: "named again, other text", Time: at(4), ID: "d1"},
	}
	m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Say("ok") },
		Summary: func(*memgpt.Request) script.Reply { return script.Text("before the import\nSearch for: x") }})
	e := newEnv(t, m, options{})
	e.say("a question from before")
	before := m.Count()
	done := e.imports(lines)
	if done.Added != 6 || done.Skipped != 1 || !done.First.Equal(at(1)) || !done.Last.Equal(at(3)) {
		t.Errorf("%+v", done)
	}
	t.Run("the queue is folded first, and no model sees the imported text", func(t *testing.T) {
		if n := m.Count() - before; n != 1 || m.Last().Purpose != memgpt.PurposeSummary {
			t.Errorf("%d calls", n)
		}
		contains(t, wire(m.Last()), "a question from before")
		excludes(t, wire(m.Last()), "tulips", "roses")
	})
	t.Run("times, names and roles", func(t *testing.T) {
		log := e.log()[3:]
		if !log[0].Time.Equal(at(1)) || !log[3].Time.IsZero() || log[2].Message.Author != "Caroline" || log[2].Message.Role != memgpt.RoleUser ||
			log[1].Message.Role != memgpt.RoleAssistant || log[0].Message.Session != "s1" || log[5].ID != "d1" || log[5].Message.Said() != "named" {
			t.Errorf("%+v", log)
		}
	})
	t.Run("again adds nothing", func(t *testing.T) {
		if done := e.imports(lines); done.Added != 0 || done.Skipped != len(lines) {
			t.Errorf("%+v", done)
		}
		if done := e.imports(append(lines, lines[0], kernel.Line{Speaker: "user", Text: "new", Time: at(9)})); done.Added != 2 {
			t.Errorf("a third occurrence and a new line: %+v", done)
		}
	})
	t.Run("what the model sees", func(t *testing.T) {
		before := m.Count()
		e.say("and now?")
		if m.Count() != before+1 {
			t.Errorf("%d calls", m.Count()-before)
		}
		text := wire(m.Last())
		contains(t, text, "2 messages of earlier conversations were imported", "2023-05-01T09:00:00Z to 2023-05-09T09:00:00Z", "before the import")
		excludes(t, text, "I planted tulips")
		e.checkAll(m, 16384)
	})
	t.Run("found, dated, with the true speaker", func(t *testing.T) {
		found := hits(t, e.ok(m, "conversation_search", "query", "roses"))
		if len(found) != 1 || found[0].Name != "Caroline" || found[0].Time != "2023-05-02T09:00:00Z" {
			t.Errorf("%+v", found)
		}
		if found = hits(t, e.ok(m, "conversation_search", "query", "no time here")); len(found) == 0 || found[0].Time != "unknown" {
			t.Errorf("%+v", found)
		}
	})
	t.Run("a fold that failed is made up for, without the imported text", foldFailsBeforeImport)
}

func foldFailsBeforeImport(t *testing.T) {
	down := true
	m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Say("ok") },
		Summary: func(*memgpt.Request) script.Reply {
			if down {
				return script.Fail(memgpt.Errorf(memgpt.CodeModelDown, "down"))
			}
			return script.Text("folded late\nSearch for: x")
		}})
	e := newEnv(t, m, options{})
	e.say("a question from before")
	e.imports([]kernel.Line{{Speaker: "user", Text: "imported tulips"}, {Speaker: "user", Text: "imported roses"}})
	down = false
	e.say("and now?")
	e.say("and then?")
	_, sums := requests(m)
	if th := e.state.Thread; th.Folded != th.Head || !strings.Contains(th.Summary.Text, "folded late") || th.Summary.Failed != "" {
		t.Errorf("%+v", th)
	}
	for _, s := range sums {
		contains(t, wire(s), "a question from before")
		excludes(t, wire(s), "imported")
	}
	e.checkAll(m, 16384)
}
