package kernel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"memgpt"
	"memgpt/kernel"
	"memgpt/model/script"
	"memgpt/store"
)

// TestForgetTermEscaped forgets terms that JSON and Go write otherwise, from wherever a text with one was quoted, and from a
// block in which a line break parts it.
func TestForgetTermEscaped(t *testing.T) {
	for _, term := range []string{`the "blue" key`, `C:\new\tmp`, "a <b>&c", "Zoë 🐝 hums", "'; DROP TABLE entries;--", `NEAR("a" OR b*)`} {
		t.Run(term, func(t *testing.T) {
			quoted, js := fmt.Sprintf("%q", term), string(must1(json.Marshal(term)))
			twice := string(must1(json.Marshal("it found " + js + " there")))
			var units strings.Builder // as JSON of ASCII alone has it
			for _, u := range utf16.Encode([]rune(term)) {
				fmt.Fprintf(&units, `\u%04x`, u)
			}
			e := newEnv(t, diarist(), options{})
			for _, text := range []string{term, "The document " + quoted + " was loaded", "note " + js + ".", "log: " + twice, "api says " + units.String()} {
				e.say("talk\nof " + text)
			}
			e.say("keep\nthe kettle is blue")
			broken := strings.Join(strings.Fields(term), "\n")
			st, err := store.Load(t.Context(), e.base, "", e.thread)
			must(t, err)
			b := st.Blocks[slices.IndexFunc(st.Blocks, func(b memgpt.Block) bool { return b.Label == "human" })]
			b.Value = "first line\n" + broken + "\n" + b.Value
			_, err = e.base.Commit(t.Context(), &store.Commit{Now: e.now, Blocks: []memgpt.Block{b}})
			must(t, err)
			if done := e.forget(kernel.Forgetting{Term: term}); done.Messages != 5 {
				t.Errorf("%d messages", done.Messages)
			}
			for _, form := range []string{term, quoted, js, twice, units.String()} {
				inner := strings.Trim(form, `"`)
				if found := e.fileBytes(inner, strings.Trim(string(must1(json.Marshal(inner))), `"`)); len(found) > 0 {
					t.Errorf("%s is left: %v", form, found)
				}
			}
			if left := e.block("human"); !strings.HasPrefix(left, "first line\n") || !strings.Contains(left, "kettle") || strings.Contains(left, broken) {
				t.Errorf("the block is %q", left)
			}
		})
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestForgetTermNamesOfFunctions: names of functions and of their parameters are no texts. Who has them forgotten as words
// keeps what calls said otherwise.
func TestForgetTermNamesOfFunctions(t *testing.T) {
	e := newEnv(t, diarist(), options{})
	e.say("keep\nthe kettle is blue")
	for _, term := range []string{"message", "content", "label", "send_message", "insert"} {
		if done := e.forget(kernel.Forgetting{Term: term}); done.Messages+done.Passages > 0 {
			t.Errorf("%s: %+v", term, done.Lines)
		}
	}
	if !strings.Contains(e.block("human"), "kettle") || len(e.finds("kettle")) == 0 {
		t.Error("what was kept is gone")
	}
}

// TestForgetWhatWasToldToBeKept forgets a message whose words after the colon were kept alone, and a summary of them in
// other words that a call brought.
func TestForgetWhatWasToldToBeKept(t *testing.T) {
	for lead, secret := range map[string]string{"Remember: ": "my locker code for the shed is zeta4711", "请记住：": "保险箱的密码是四七一一不要告诉别人"} {
		e := newEnv(t, diarist(), options{})
		e.say("talk\nof " + lead + secret)
		e.say("keep\n" + secret + " and so on")
		e.say("talk\nof tea")
		log := e.log()
		last := log[len(log)-1]
		th, err := e.base.Thread(t.Context(), "", e.thread)
		must(t, err)
		evict := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Text{Text: "I make room"},
			memgpt.Call{ID: "ev", Name: "conversation_evict", Arguments: `{"summary":"Search for: 4711x, 密码x","through":"m"}`}}}
		th.Next++
		_, err = e.base.Commit(t.Context(), &store.Commit{Now: e.now, Threads: []memgpt.Thread{th}, Entries: []memgpt.Entry{{ID: e.newID("message"),
			Agent: e.agent.ID, Thread: e.thread, Seq: last.Seq + 1, Turn: last.Turn, Time: e.now, Message: evict}}})
		must(t, err)
		e.forget(kernel.Forgetting{Messages: []string{e.said("talk\nof " + lead + secret)}})
		if found := e.fileBytes(secret, "4711x", "密码x"); len(found) > 0 {
			t.Errorf("left: %v", found)
		}
		log = e.log()
		if got := log[len(log)-1].Message; got.Said() != "I make room" || got.Calls()[0].Arguments != `{"summary":"[forgotten]","through":"m"}` {
			t.Errorf("%+v", got)
		}
	}
}

// TestForgetSourceInSummary takes the name of a document out of what stands before the summary, too.
func TestForgetSourceInSummary(t *testing.T) {
	for _, what := range []kernel.Forgetting{{Source: "novel of sue.txt"}, {Term: "novel of sue"}} {
		e := newEnv(t, diarist(), options{window: 3600})
		_, err := e.load("book", append(pages("novel of sue.txt", 3), pages("other.txt", 3)...))
		must(t, err)
		for i := range 8 {
			e.say(fmt.Sprintf("talk number%d about the weather %s", i, strings.Repeat("rain and sun ", 40)))
		}
		sources := func() []string {
			th, err := e.base.Thread(t.Context(), "", e.thread)
			must(t, err)
			return th.Summary.Outside.Sources
		}
		if len(sources()) != 2 {
			t.Fatalf("the summary names %q", sources())
		}
		e.forget(what)
		if got := sources(); len(got) != 1 || got[0] != "other.txt" {
			t.Errorf("the summary names %q", got)
		}
		if found := e.fileBytes("novel of sue"); len(found) > 0 {
			t.Errorf("%v", found)
		}
	}
}

// TestForgetMessageWhoseEventWaits forgets a message too short to be looked for elsewhere, whose turn was interrupted: the
// event that waits holds it too.
func TestForgetMessageWhoseEventWaits(t *testing.T) {
	e := newEnv(t, diarist(), options{})
	e.say("hello")
	ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "pin 47"))
	must(t, err)
	th, err := e.base.Thread(t.Context(), "", e.thread)
	must(t, err)
	entry := memgpt.Entry{ID: e.newID("message"), Agent: e.agent.ID, Thread: e.thread, Seq: th.Next, Turn: ev.Turn, Time: e.now, Message: ev.Message}
	th.Next++
	_, err = e.base.Commit(t.Context(), &store.Commit{Now: e.now, Threads: []memgpt.Thread{th}, Entries: []memgpt.Entry{entry}})
	must(t, err)
	if done := e.forget(kernel.Forgetting{Messages: []string{entry.ID}}); done.Messages != 1 || done.Others != 1 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("pin 47"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestForgetLastFolded drops the summary also for the last message that it tells of, in whatever words.
func TestForgetLastFolded(t *testing.T) {
	e := newEnv(t, diarist(), options{window: 3600})
	for i := range 8 {
		e.say(fmt.Sprintf("talk number%d about the weather %s", i, strings.Repeat("rain and sun ", 40)))
	}
	th, err := e.base.Thread(t.Context(), "", e.thread)
	must(t, err)
	last := e.log()[th.Folded-1]
	if text := last.Message.Said(); last.Seq != th.Folded || len(text) > 10 {
		t.Fatalf("seq %d, folded %d: %q is found by its text", last.Seq, th.Folded, text)
	}
	if done := e.forget(kernel.Forgetting{Messages: []string{last.ID}}); done.Messages != 1 || done.Summaries != 1 {
		t.Errorf("%+v", done)
	}
	next := e.log()[th.Folded]
	if done := e.forget(kernel.Forgetting{Messages: []string{next.ID}}); done.Messages != 1 || done.Summaries != 0 {
		t.Errorf("the summary goes for what it doesn't tell of: %+v", done)
	}
}

// TestForgetKeyOfConsumedEvent takes the key of an event that is done with, where it holds the term.
func TestForgetKeyOfConsumedEvent(t *testing.T) {
	e := newEnv(t, diarist(), options{})
	e.say("talk\nof zeta4711 and tea")
	ev := memgpt.Event{ID: e.newID("event"), Agent: e.agent.ID, Thread: e.thread, Type: memgpt.EventUser, Due: e.now, Created: e.now, Turn: e.newID("turn"),
		Key: "order Zeta4711", Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hello")}
	for _, c := range []store.Commit{{Events: []memgpt.Event{ev}}, {Consume: []string{ev.ID}}} {
		c.Now = e.now
		c.Acquire = &store.Lease{Thread: e.thread, Until: e.now.Add(time.Minute)}
		_, err := e.base.Commit(t.Context(), &c)
		must(t, err)
	}
	if len(e.fileBytes("order Zeta4711")) == 0 {
		t.Fatal("the key isn't there before")
	}
	e.forget(kernel.Forgetting{Term: "zeta4711"})
	if found := e.fileBytes("order Zeta4711"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestForgetWhatWasMadeOfAMessage: a passage that is a part of the message goes with it; what the agent wrote on it in other
// words stays, and the owner is told.
func TestForgetWhatWasMadeOfAMessage(t *testing.T) {
	m := script.Of(script.Calls(script.Call("archival_memory_insert", "content", "the boat is called Wavecutter"),
		script.Call("archival_memory_insert", "content", "a vessel by the name W."), script.Call("core_memory_append", "label", "human", "content", "has W."),
		script.Say("Stored.")), script.Say("hello"))
	e := newEnv(t, m, options{})
	const said = "Keep in mind that the  boat is called Wavecutter"
	e.say(said)
	e.say("hi")
	done := e.forget(kernel.Forgetting{Messages: []string{e.said(said)}})
	if done.Messages != 1 || done.Passages != 1 || len(done.Kept) != 2 || !strings.Contains(done.Kept[0], "a vessel by the name W.") ||
		!strings.Contains(done.Kept[1], `block "human"`) {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("boat is called Wavecutter"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if e.block("human") == "" || len(e.finds("vessel")) == 0 {
		t.Error("what is in other words went")
	}
}

// TestForgetTermInSettings takes a term out of the description of a block and of the error of a summary that failed.
func TestForgetTermInSettings(t *testing.T) {
	e := newEnv(t, diarist(), options{})
	e.say("talk\nof tea")
	st, err := store.Load(t.Context(), e.base, "", e.thread)
	must(t, err)
	b, th := st.Blocks[0], st.Thread
	b.Description = "What is known.\nAlso of zeta4711."
	th.Summary.Failed = "refused: zeta4711 is not allowed"
	_, err = e.base.Commit(t.Context(), &store.Commit{Now: e.now, Blocks: []memgpt.Block{b}, Threads: []memgpt.Thread{th}})
	must(t, err)
	e.forget(kernel.Forgetting{Term: "zeta4711"})
	if found := e.fileBytes("zeta4711"); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestForgetTermOfSpeakers takes a term out of the names of speakers and sittings too.
func TestForgetTermOfSpeakers(t *testing.T) {
	e := newEnv(t, diarist(), options{})
	_, err := e.importLines([]kernel.Line{{Speaker: "Ann", Text: "hello out there", Session: "sitting zeta4711"},
		{Speaker: "Zeta4711", Text: "I keep bees"}, {Speaker: "Ann", Text: "I keep hens", Session: "another sitting"}})
	must(t, err)
	if done := e.forget(kernel.Forgetting{Term: "zeta4711"}); done.Messages != 2 {
		t.Errorf("%+v", done)
	}
	if found := e.fileBytes("zeta4711", "Zeta4711"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if len(e.finds("hens")) != 1 {
		t.Errorf("%v", e.finds("hens"))
	}
}

// TestForgetTermInArguments finds a term in what the arguments of a call say, and not in the names of its parameters.
func TestForgetTermInArguments(t *testing.T) {
	for args, term := range map[string]string{`{"pin":4711}`: "4711", `{"a":{"zeta":1}}`: "zeta", `{"a":["x",{"b":"\u007aeta"}]}`: "zeta",
		`{"a":"zeta","a":"x"}`: "zeta", `["x","zeta"]`: "zeta", `"zeta"`: "zeta", `{"a":"zeta`: "zeta", `{"zeta":"x","b":{},"zeta":[]}`: ""} {
		e := newEnv(t, diarist(), options{})
		e.say("hello")
		th, err := e.base.Thread(t.Context(), "", e.thread)
		must(t, err)
		seq := th.Next
		th.Next++
		m := memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "c", Name: "f", Arguments: args}}}
		_, err = e.base.Commit(t.Context(), &store.Commit{Now: e.now, Threads: []memgpt.Thread{th}, Entries: []memgpt.Entry{{ID: e.newID("message"),
			Agent: e.agent.ID, Thread: e.thread, Seq: seq, Turn: "turn-x", Time: e.now, Message: m}}})
		must(t, err)
		want := 1
		if term == "" {
			term, want = "zeta", 0
		}
		if done := e.forget(kernel.Forgetting{Term: term}); done.Messages != want {
			t.Errorf("%s: %d messages go, want %d", args, done.Messages, want)
		}
	}
}
