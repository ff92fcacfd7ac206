package kernel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"memgpt"
	"memgpt/kernel"
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
