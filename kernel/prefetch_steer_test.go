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
	"memgpt/tool"
)

// boathouse are passages, each of which one of the questions below leans on.
var boathouse = []string{"The spare key of the boathouse hangs behind the clock.", "Otto has borrowed those oars.", "The padlock of the shed has the combination 4471."}

// joiner works for some steps, at each of which at is called, and then says done.
func joiner(steps int, at func(n int)) *script.Model {
	return script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		at(n + 1)
		if n >= steps-1 {
			return script.Say("done")
		}
		return script.Call("archival_memory_insert", "content", fmt.Sprintf("step %d.", n+1), "request_heartbeat", true)
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x") }})
}

// handedBefore returns what stands right before each message of a user in the log, by the message.
func (e *env) handedBefore() map[string]string {
	e.t.Helper()
	handed := map[string]string{}
	log := e.log()
	for i := range log {
		if log[i].Message.Role != memgpt.RoleUser {
			continue
		}
		handed[log[i].Message.Said()] = ""
		if i > 0 && log[i-1].Message.Type == memgpt.EventPrefetch {
			handed[log[i].Message.Said()] = log[i-1].Message.Said()
		}
	}
	return handed
}

// checkGrowing holds that each request of a turn is a beginning of the next.
func checkGrowing(t *testing.T, reqs []*memgpt.Request) {
	t.Helper()
	for i := 1; i < len(reqs); i++ {
		before, after := reqs[i-1].Messages, reqs[i].Messages
		if len(after) < len(before) || cmp.Diff(before, after[:len(before)]) != "" {
			t.Errorf("request %d does not begin with request %d", i+1, i)
		}
	}
}

// TestJoiningMessagesAreHandedWhatTheyLeanOn: messages that come in mid-turn get what the turn's own gets, right before
// them, in one budget.
func TestJoiningMessagesAreHandedWhatTheyLeanOn(t *testing.T) {
	for _, protocol := range []memgpt.Protocol{memgpt.ProtocolMemGPT, memgpt.ProtocolNative} {
		var e *env
		m := joiner(4, func(n int) {
			if n == 2 {
				e.post(memgpt.EventUser, "Who borrowed those oars?")
				e.post(memgpt.EventUser, "Thanks a lot!")
				e.post(memgpt.EventUser, "How do I get into the shed?")
			}
		})
		e = newEnv(t, m, options{prefetch: onPrefetch, protocol: protocol})
		e.archive(boathouse...)
		e.arrive = e.steerByInbox
		_, turn := e.say("Where is the key of the boathouse?")
		want := map[string]string{"Where is the key of the boathouse?": "behind the clock", "Who borrowed those oars?": "Otto", "How do I get into the shed?": "4471"}
		for text, handed := range e.handedBefore() {
			if want[text] == "" && handed != "" || !strings.Contains(handed, want[text]) {
				t.Errorf("before %q stands %q", text, handed)
			}
		}
		p := turn.Prefetch
		if p == nil || len(p.Hits) != 3 || p.Why != "" || p.Query != "How do I get into the shed?" || turn.State != memgpt.TurnDone {
			t.Errorf("the turn tells %+v", p)
		}
		reqs := m.Requests()
		if texts, at := handedIn(reqs[2]); len(texts) != 3 || at != len(reqs[2].Messages)-2 {
			t.Errorf("in the third request: %d entries, the last at %d of %d", len(texts), at, len(reqs[2].Messages))
		}
		checkGrowing(t, reqs)
		e.checkAll(m, 16384)
		counted := 0
		for i := range reqs[len(reqs)-1].Messages {
			if msg := &reqs[len(reqs)-1].Messages[i]; msg.Type == memgpt.EventPrefetch {
				counted += e.count.Message(msg)
			}
		}
		if counted != p.Tokens || counted > 1000 {
			t.Errorf("%d tokens stand in the prompt, %d are told", counted, p.Tokens)
		}
	}
}

// TestJoiningMessagesShareTheTurnsBudget: what the first message was handed is not to be had again.
func TestJoiningMessagesShareTheTurnsBudget(t *testing.T) {
	for _, budget := range []int{200, 450} {
		var e *env
		m := joiner(4, func(n int) {
			if n < 3 {
				e.post(memgpt.EventUser, fmt.Sprintf("And which bottle is from %d?", 1920+n))
			}
		})
		e = newEnv(t, m, options{prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchOn, Budget: budget}})
		for i := range 60 {
			e.archive(fmt.Sprintf("Bottle %d of the wine cellar is from %d, from a dry slope above the river.", i, 1900+i))
		}
		e.arrive = e.steerByInbox
		_, turn := e.say("Which bottle of the wine cellar is from 1937?")
		counted := 0
		texts, _ := handedIn(lastRequest(m))
		for i := range lastRequest(m).Messages {
			if msg := &lastRequest(m).Messages[i]; msg.Type == memgpt.EventPrefetch {
				counted += e.count.Message(msg)
			}
		}
		if counted > budget || counted != turn.Prefetch.Tokens || len(texts) == 0 || turn.Prefetch.Why != "" {
			t.Errorf("budget %d: %d tokens in %d entries, %+v", budget, counted, len(texts), turn.Prefetch)
		}
	}
}

// TestJoiningATurnOfTheSystems: the first message of a user decides, though a timer began the turn.
func TestJoiningATurnOfTheSystems(t *testing.T) {
	var e *env
	m := joiner(3, func(n int) {
		if n == 1 {
			e.post(memgpt.EventUser, "Who borrowed those oars?")
		}
	})
	e = newEnv(t, m, options{prefetch: onPrefetch})
	e.archive(boathouse...)
	e.arrive = e.steerByInbox
	_, turn := e.system(memgpt.EventTimer, "Where is the key of the boathouse?")
	if got := e.handedBefore()["Who borrowed those oars?"]; !strings.Contains(got, "Otto") || strings.Contains(got, "clock") || len(turn.Prefetch.Hits) != 1 {
		t.Errorf("handed %q, %+v", got, turn.Prefetch)
	}
}

// TestSecondLookGoesByTheNewestMessage: the agent has answered the first message; of the one that joined it says that it
// doesn't know.
func TestSecondLookGoesByTheNewestMessage(t *testing.T) {
	var e *env
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		switch n {
		case 0:
			e.post(memgpt.EventUser, "What opens it?")
			return script.Calls(script.Call("send_message", "message", "Hello."), script.Call("core_memory_append", "label", "human", "content", "x", "request_heartbeat", true))
		case 1:
			return script.Say("I don't know the padlock combination.")
		}
		return script.Say("4471.")
	}})
	e = newEnv(t, m, options{prefetch: onPrefetch})
	e.archive("The padlock has the combination 4471.")
	e.arrive = e.steerByInbox
	said, turn := e.say("Good morning!")
	if !slices.Equal(said, []string{"Hello.", "4471."}) || !turn.Prefetch.Second || len(turn.Prefetch.Hits) != 1 ||
		!strings.HasPrefix(turn.Prefetch.Query, "What opens it?") {
		t.Errorf("said %q, %+v", said, turn.Prefetch)
	}
}

// TestJoiningIsHandedOverOnceWhereverItCrashes kills the store at each commit, before it and after, in a small window.
func TestJoiningIsHandedOverOnceWhereverItCrashes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := int64(1); joinCrashOnce(t, at, after); at += every(true) {
		}
	}
}

func joinCrashOnce(t *testing.T, at int64, after bool) bool {
	var e *env
	posted := 0
	faulty := &storetest.Faulty{At: at, Commits: true, After: after}
	o := options{window: 4096, prefetch: onPrefetch, wrap: func(s store.Store) store.Store { faulty.Inner = s; return faulty }}
	texts := []string{"Who borrowed those oars?" + strings.Repeat(" I ask in many words.", 60), "How do I get into the shed?"}
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		if posted < 2 && n >= []int{1, 2}[posted] {
			e.post(memgpt.EventUser, texts[posted])
			posted++
		}
		if n >= 5 {
			return script.Say("done")
		}
		return script.Call("archival_memory_insert", "content", fmt.Sprint(n, strings.Repeat(" padding words", 120)), "request_heartbeat", true)
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x") }})
	e = newEnv(t, m, o)
	load := e.config
	load.Store = e.base
	k, err := kernel.New(load)
	must(t, err)
	l, err := k.BeginLoad(t.Context(), e.agent, "notes")
	must(t, err)
	var list []memgpt.Passage
	for _, text := range boathouse {
		list = append(list, memgpt.Passage{Text: text})
	}
	must(t, l.Add(t.Context(), list))
	e.arrive = e.steerByInbox
	question := "Where is the key of the boathouse?"
	for i := range 2 {
		if err := e.deliver(question, "key"); err == nil {
			break
		} else if i > 0 || !faulty.Dead() {
			t.Fatalf("at %d: %v", at, err)
		}
		e.store = e.base
		e.configure(m, o)
	}
	e.checkState(nil)
	handed := e.handedBefore()
	for text, mark := range map[string]string{question: "behind the clock", texts[0]: "Otto", texts[1]: "4471"} {
		if got, ok := handed[text]; !ok || strings.Count(got, mark) != 1 {
			t.Fatalf("at %d, after %v: before %.30q stands %q", at, after, text, got)
		}
	}
	for i, req := range m.Requests() {
		if req.Purpose == memgpt.PurposeSummary {
			continue
		}
		if err := checkV(req, e.count, 1, 4096, ""); err != nil {
			t.Fatalf("at %d, request %d: %v", at, i, err)
		}
	}
	return faulty.Dead()
}

// TestJoiningMeetsAConflict: a step that is done anew hands over once.
func TestJoiningMeetsAConflict(t *testing.T) {
	var e *env
	var sent memgpt.Event
	m := steerModel(func(n int) {
		switch n {
		case 2:
			sent = e.post(memgpt.EventUser, "Who borrowed those oars?")
		case 3: // another conversation edits the block that this step edits
			st, err := store.Load(context.Background(), e.base, "", e.thread)
			must(t, err)
			b := st.Blocks[1]
			b.Value += "other."
			_, err = e.base.Commit(context.Background(), &store.Commit{Now: e.now, Blocks: []memgpt.Block{b}})
			must(t, err)
		}
	})
	e = newEnv(t, m, options{prefetch: onPrefetch})
	e.archive(boathouse...)
	e.arrive = e.steerByInbox
	_, turn := e.say("Where is the key of the boathouse?")
	if got := e.handedBefore()["Who borrowed those oars?"]; strings.Count(got, "Otto") != 1 || len(turn.Prefetch.Hits) != 2 ||
		!strings.Contains(e.block("human"), "step 2.other.\nstep 3.") {
		t.Errorf("handed %q, %+v, block %q", got, turn.Prefetch, e.block("human"))
	}
	n := 0
	for _, entry := range e.log() {
		if entry.Message.Type == memgpt.EventPrefetch {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d entries", n)
	}
	e.checkSteered(sent, turn.ID)
	e.checkAll(m, 16384)
}

// TestJoiningAfterACutOff: the call that was cut off is asked again with the message and what it leans on.
func TestJoiningAfterACutOff(t *testing.T) {
	var e *env
	var cut context.CancelFunc
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if n == 0 {
			e.post(memgpt.EventUser, "Who borrowed those oars?")
			cut()
		}
		return script.Say("done")
	}})
	e = newEnv(t, m, options{prefetch: onPrefetch})
	e.archive(boathouse...)
	e.arrive = func(w *store.Work) {
		e.steerByInbox(w)
		w.Call = func(ctx context.Context) (context.Context, func()) {
			ctx, cut = context.WithCancel(ctx)
			return ctx, cut
		}
	}
	e.say("Where is the key of the boathouse?")
	if got := e.handedBefore(); !strings.Contains(got["Who borrowed those oars?"], "Otto") || !strings.Contains(got["Where is the key of the boathouse?"], "clock") {
		t.Errorf("handed %q", got)
	}
	checkGrowing(t, m.Requests())
	if len(m.Requests()) != 2 {
		t.Errorf("%d requests", len(m.Requests()))
	}
}

// TestWordsOfAJoiningMessageAreNoUse: a reply that repeats what the user himself said quotes nothing of what was handed over.
func TestWordsOfAJoiningMessageAreNoUse(t *testing.T) {
	for _, quoted := range []bool{false, true} {
		var e *env
		m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
			if n == 0 {
				e.post(memgpt.EventUser, "Is it true that Otto has borrowed those oars?")
				return script.Call("archival_memory_insert", "content", "a", "request_heartbeat", true)
			}
			if quoted {
				return script.Say("It is true: those oars with the red blades.")
			}
			return script.Say("You ask whether Otto has borrowed those oars.")
		}})
		e = newEnv(t, m, options{prefetch: onPrefetch})
		e.archive("Otto has borrowed those oars with the red blades.")
		e.arrive = e.steerByInbox
		if _, turn := e.say("Where is the key of the chapel?"); len(turn.Prefetch.Hits) != 1 || (turn.Prefetch.Used == 1) != quoted {
			t.Errorf("quoted %v: %+v", quoted, turn.Prefetch)
		}
	}
}

// twins is a searcher that finds each text twice.
type twins struct{ tool.Searcher }

func (s twins) Search(ctx context.Context, q tool.Query) (tool.Hits, error) {
	hits, err := s.Searcher.Search(ctx, q)
	for _, h := range hits.List {
		h.ID += "-twin"
		hits.List = append(hits.List, h)
	}
	return hits, err
}

// TestTheSameTextIsHandedOverOnce whatever stores hold it.
func TestTheSameTextIsHandedOverOnce(t *testing.T) {
	m := talker()
	e := newEnv(t, m, options{prefetch: onPrefetch})
	e.archive(boathouse...)
	e.reconfigure(func() { e.config.Search = twins{e.config.Search} })
	_, turn := e.say("Where is the key of the boathouse?")
	if texts, _ := handedIn(lastRequest(m)); len(texts) != 1 || strings.Count(texts[0], "behind the clock") != 1 || len(turn.Prefetch.Hits) != 1 {
		t.Errorf("%q, %+v", texts, turn.Prefetch)
	}
}

// TestALaterLookThatFindsNothingLeavesTheRecord: what was found before, and by what, stays told.
func TestALaterLookThatFindsNothingLeavesTheRecord(t *testing.T) {
	var e *env
	m := joiner(3, func(n int) {
		if n == 1 {
			e.post(memgpt.EventUser, "Who painted the zeppelin hangar?")
		}
	})
	e = newEnv(t, m, options{prefetch: onPrefetch})
	e.archive(boathouse...)
	e.arrive = e.steerByInbox
	_, turn := e.say("Where is the key of the boathouse?")
	if p := turn.Prefetch; p.Why != "" || p.Query != "Where is the key of the boathouse?" || len(p.Hits) != 1 {
		t.Errorf("%+v", p)
	}
}
