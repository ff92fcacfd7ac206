package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/storetest"
	"memgpt/tool"
)

// steerByInbox lets the kernel ask for what arrives: the pending events that are to be taken in, by the inbox alone.
func (e *env) steerByInbox(w *store.Work) {
	w.Arrived = func(ctx context.Context, due int) ([]memgpt.Event, error) {
		if due >= 0 && due < 2 {
			return nil, nil
		}
		pending, err := e.store.Events(ctx, store.EventRange{Thread: e.thread, Until: e.now})
		return slices.DeleteFunc(pending, func(ev memgpt.Event) bool {
			return ev.ID == w.Event.ID || store.DeliveryOf(&ev) != memgpt.DeliverSteer
		}), err
	}
}

// post puts an event into the inbox, as another process does that does not get the lease.
func (e *env) post(typ memgpt.EventType, text string) memgpt.Event {
	m := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, text)
	if typ == memgpt.EventUser {
		m = memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)
	}
	e.now = e.now.Add(time.Millisecond)
	ev := memgpt.Event{ID: e.newID("event"), Agent: e.agent.ID, Thread: e.thread, Type: typ, Due: e.now, Created: e.now,
		Delivery: memgpt.DeliverSteer, Key: text, Message: m, Turn: e.newID("turn")}
	_, err := e.base.Commit(context.Background(), &store.Commit{Now: e.now, Events: []memgpt.Event{ev}})
	must(e.t, err)
	return ev
}

// steerModel works for ten steps, each a call of its own, and says at the end what the newest message of the user is. at
// is called at each request of a step.
func steerModel(at func(n int)) *script.Model {
	return script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		at(n + 1)
		if n == 9 {
			text, _, _ := sinceUser(req)
			return script.Say("answer to " + text)
		}
		return script.Call("core_memory_append", "label", "human", "content", fmt.Sprintf("step %d.", n+1), "request_heartbeat", true)
	}})
}

func TestSteerAtTheNextStep(t *testing.T) {
	var e *env
	var sent memgpt.Event
	m := steerModel(func(n int) {
		if n == 2 {
			sent = e.post(memgpt.EventUser, "make it two cakes")
		}
	})
	e = newEnv(t, m, options{})
	e.arrive = e.steerByInbox
	said, turn := e.say("bake a cake in ten steps")
	if turn.Stop != memgpt.StopEnd || turn.Steps != 10 || !slices.Equal(said, []string{"answer to make it two cakes"}) {
		t.Errorf("said %q in %+v", said, turn)
	}
	reqs := m.Requests()
	if len(reqs) != 10 {
		t.Fatalf("%d requests", len(reqs))
	}
	for i, req := range reqs {
		asked := "bake a cake"
		if i >= 2 {
			asked = "make it two cakes"
		}
		must(t, checkV(req, e.count, 1, 16384, asked))
		n := 0
		for j := range req.Messages {
			n += strings.Count(req.Messages[j].Said(), "make it two cakes")
		}
		if want := min(i/2, 1); n != want {
			t.Errorf("request %d holds the message %d times, want %d", i+1, n, want)
		}
	}
	if last := reqs[2].Messages[len(reqs[2].Messages)-1].Said(); !strings.Contains(last, "make it two cakes") {
		t.Errorf("the third request ends with %q", last)
	}
	e.checkSteered(sent, turn.ID)
}

// checkSteered holds what is true of an event that a turn took in.
func (e *env) checkSteered(ev memgpt.Event, into string) {
	e.t.Helper()
	record, err := e.base.Turn(e.t.Context(), "", ev.Turn)
	must(e.t, err)
	if record.State != memgpt.TurnDone || record.Stop != memgpt.StopSteered || !record.Stop.Good() || record.Into != into ||
		record.Event != ev.ID || record.Ended.IsZero() {
		e.t.Errorf("record of the event's turn: %+v", record)
	}
	pending, err := e.base.Events(e.t.Context(), store.EventRange{})
	must(e.t, err)
	if len(pending) > 0 {
		e.t.Errorf("pending: %+v", pending)
	}
	n := 0
	for _, entry := range e.log() {
		if entry.Turn == ev.Turn {
			n++
		}
	}
	if n != 1 {
		e.t.Errorf("the message is in the log %d times", n)
	}
	told := slices.IndexFunc(e.seen, func(u memgpt.Update) bool { in, ok := u.(memgpt.TookIn); return ok && in.Turn.ID == ev.Turn })
	shown := slices.IndexFunc(e.seen, func(u memgpt.Update) bool {
		step, ok := u.(memgpt.StepCommitted)
		return ok && slices.ContainsFunc(step.Entries, func(entry memgpt.Entry) bool { return entry.Turn == ev.Turn })
	})
	if told < 0 || shown != told+1 {
		e.t.Errorf("taking in is told at %d, its step at %d", told, shown)
	}
}

// TestSteerCrash kills at every commit, before it and after, while messages arrive, and lets a new kernel go on.
func TestSteerCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := int64(1); steerCrashOnce(t, at, after); at += every(true) {
		}
	}
}

func steerCrashOnce(t *testing.T, at int64, after bool) bool {
	var e *env
	var sent []memgpt.Event
	rung := 0
	ring, err := memtool.New("ring", "rings", memgpt.EffectOutside, func(context.Context, struct{}) (string, error) {
		rung++
		return "rang", nil
	})
	must(t, err)
	faulty := &storetest.Faulty{At: at, Commits: true, After: after}
	o := options{tools: []tool.Tool{ring}, wrap: func(s store.Store) store.Store { faulty.Inner = s; return faulty }}
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		_, calls, _ := sinceUser(req)
		if want := []int{1, 3}; len(sent) < 2 && n >= want[len(sent)] {
			sent = append(sent, e.post(memgpt.EventUser, fmt.Sprint("extra ", len(sent))))
		}
		switch {
		case calls >= 3:
			return script.Say("done")
		case n == 2:
			return script.Calls(script.Call("ring", "request_heartbeat", true),
				script.Call("core_memory_append", "label", "human", "content", fmt.Sprintf("n%d;", n), "request_heartbeat", true))
		}
		return script.Call("core_memory_append", "label", "human", "content", fmt.Sprintf("n%d;", n), "request_heartbeat", true)
	}})
	e = newEnv(t, m, o)
	e.arrive = e.steerByInbox
	for i := range 2 {
		if err := e.deliver("begin", "key"); err == nil {
			break
		} else if i > 0 || !faulty.Dead() {
			t.Fatalf("at %d: %v", at, err)
		}
		e.store = e.base
		e.configure(m, o)
	}
	log := e.checkState(nil)
	count := map[string]int{}
	for _, entry := range log {
		if entry.Message.Role == memgpt.RoleUser {
			count[entry.Message.Said()]++
		}
	}
	if len(count) != 3 || count["begin"] != 1 || count["extra 0"] != 1 || count["extra 1"] != 1 || rung > 1 {
		t.Fatalf("at %d, after %v: messages of the user %v, rung %d times", at, after, count, rung)
	}
	for _, ev := range sent {
		record, err := e.base.Turn(t.Context(), "", ev.Turn)
		must(t, err)
		if record.State != memgpt.TurnDone {
			t.Fatalf("at %d: %+v", at, record)
		}
	}
	for i, req := range m.Requests() {
		if err := checkV(req, e.count, 1, 16384, ""); err != nil {
			t.Fatalf("at %d, request %d: %v", at, i, err)
		}
	}
	return faulty.Dead()
}

// TestSteerIntoATimersTurn: a user who joins is answered as if he had begun the turn, also with plain text, and also where
// the turn goes on in another process.
func TestSteerIntoATimersTurn(t *testing.T) {
	for _, crash := range []int64{0, 3} {
		var e *env
		var sent memgpt.Event
		think := func(n int) script.Reply {
			return script.Call("core_memory_append", "label", "human", "content", fmt.Sprintf("thought %d.", n), "request_heartbeat", true)
		}
		m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
			text, calls, _ := sinceUser(req)
			switch {
			case n == 0:
				sent = e.post(memgpt.EventUser, "are you there?")
			case text != "" && calls > 0:
				return script.Text("I am here")
			}
			return think(n)
		}})
		faulty := &storetest.Faulty{At: crash, Commits: true}
		o := options{wrap: func(s store.Store) store.Store { faulty.Inner = s; return faulty }}
		e = newEnv(t, m, o)
		e.arrive = e.steerByInbox
		ev, err := e.accept(memgpt.EventTimer, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "tick"))
		must(t, err)
		turn, err := e.handle(t.Context(), ev)
		if crash > 0 {
			if err == nil {
				t.Fatal("the store did not die")
			}
			e.store = e.base
			e.configure(m, o)
			pending, err := e.base.Events(t.Context(), store.EventRange{Thread: e.thread})
			must(t, err)
			if len(pending) != 2 || pending[0].ID != ev.ID || !pending[0].Begun {
				t.Fatalf("the turn that began is not the first of the inbox: %+v", pending)
			}
			turn, err = e.handle(t.Context(), pending[0])
			must(t, err)
		} else {
			must(t, err)
		}
		if said := spoken(e.seen); turn.Stop != memgpt.StopEnd || !slices.Equal(said, []string{"I am here"}) {
			t.Errorf("said %q in %+v", said, turn)
		}
		if !e.state.Thread.Seen.Equal(sent.Created) {
			t.Errorf("the user was seen at %v, wrote at %v", e.state.Thread.Seen, sent.Created)
		}
		e.checkSteered(sent, turn.ID)
	}
}

// TestSteerMeetsAConflict: a step that is done anew, since a shared block changed, still takes its message in once.
func TestSteerMeetsAConflict(t *testing.T) {
	var e *env
	var sent memgpt.Event
	m := steerModel(func(n int) {
		if n == 2 {
			sent = e.post(memgpt.EventUser, "one more thing")
		}
		if n == 3 { // another conversation edits the block that this step edits
			st, err := store.Load(context.Background(), e.base, "", e.thread)
			must(t, err)
			b := st.Blocks[1]
			b.Value += "other."
			_, err = e.base.Commit(context.Background(), &store.Commit{Now: e.now, Blocks: []memgpt.Block{b}})
			must(t, err)
		}
	})
	e = newEnv(t, m, options{})
	e.arrive = e.steerByInbox
	_, turn := e.say("work")
	if got := e.block("human"); !strings.Contains(got, "step 2.other.") || strings.Count(got, "step 3.") != 1 {
		t.Errorf("the block is %q", got)
	}
	e.checkSteered(sent, turn.ID)
}

// TestSteerUnderPressure: the alert that a message raises stands before it, and the request fits.
func TestSteerUnderPressure(t *testing.T) {
	var e *env
	long := strings.Repeat("many words of a long message ", 300)
	m := steerModel(func(n int) {
		if n == 2 {
			e.post(memgpt.EventUser, "first "+long)
			e.post(memgpt.EventUser, "second "+long)
		}
	})
	e = newEnv(t, m, options{window: 4096})
	e.arrive = e.steerByInbox
	_, turn := e.say("work")
	var types []string
	for _, entry := range e.log() {
		if entry.Step == 0 || entry.Message.Type == memgpt.EventAlert {
			word, _, _ := strings.Cut(entry.Message.Said(), " ")
			types = append(types, string(entry.Message.Type)+" "+word)
		}
	}
	want := []string{"user_message work", "system_alert Memory", "user_message first", "user_message second"}
	if turn.State != memgpt.TurnDone || len(types) < 4 || !slices.Equal(types[:4], want) {
		t.Errorf("%+v: the log has %q", turn, types)
	}
	for i, req := range m.Requests() {
		asked := "work"
		if i >= 2 {
			asked = "second many words"
		}
		if req.Purpose != memgpt.PurposeSummary {
			must(t, checkV(req, e.count, 1, 4096, asked))
		}
	}
}

// TestCutOff: a call that is cut off is discarded and asked again with the message, at the same step; not without end.
func TestCutOff(t *testing.T) {
	var e *env
	var cut context.CancelFunc
	var sent []memgpt.Event
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if cut == nil {
			return script.Say("at last")
		}
		sent = append(sent, e.post(memgpt.EventUser, fmt.Sprint("hurry ", n)))
		cut()
		return script.Say("never heard")
	}})
	e = newEnv(t, m, options{})
	e.arrive = func(w *store.Work) {
		e.steerByInbox(w)
		w.Call = func(ctx context.Context) (context.Context, func()) {
			ctx, cut = context.WithCancel(ctx)
			return ctx, func() { cut(); cut = nil }
		}
	}
	said, turn := e.say("think long")
	if turn.Steps != 1 || turn.Usage.Calls != 1 || !slices.Equal(said, []string{"at last"}) || len(m.Requests()) != 3 || len(sent) != 2 {
		t.Errorf("said %q in %+v after %d requests", said, turn, len(m.Requests()))
	}
	discarded := 0
	for _, u := range e.seen {
		if d, ok := u.(memgpt.StepDiscarded); ok && d.Step == 1 {
			discarded++
		}
	}
	if discarded != 2 {
		t.Errorf("%d steps were discarded", discarded)
	}
	for i, req := range m.Requests() {
		must(t, checkV(req, e.count, 1, 16384, []string{"think long", "hurry 0", "hurry 1"}[i]))
	}
	var users []string
	for _, entry := range e.checkState(nil) {
		if entry.Message.Role == memgpt.RoleUser {
			users = append(users, entry.Message.Said())
		}
	}
	if want := []string{"think long", "hurry 0", "hurry 1"}; !slices.Equal(users, want) {
		t.Errorf("users say in the log %q", users)
	}
}

// TestSteerKnowsAfterACrashWhatWasAnswered: a user who joined was answered before the crash. What the model thinks after it
// is not said to him.
func TestSteerKnowsAfterACrashWhatWasAnswered(t *testing.T) {
	var e *env
	note := script.Call("core_memory_append", "label", "human", "content", "x", "request_heartbeat", true)
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		switch n {
		case 0:
			e.post(memgpt.EventUser, "are you there?")
			return note
		case 1:
			return script.Calls(script.Call("send_message", "message", "I am here"), note)
		}
		return script.Text("I hope that he is well")
	}})
	faulty := &storetest.Faulty{At: 4, Commits: true}
	o := options{wrap: func(s store.Store) store.Store { faulty.Inner = s; return faulty }}
	e = newEnv(t, m, o)
	e.arrive = e.steerByInbox
	ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hello"))
	must(t, err)
	if _, err = e.handle(t.Context(), ev); err == nil {
		t.Fatal("the store did not die")
	}
	e.store = e.base
	e.configure(m, o)
	pending, err := e.base.Events(t.Context(), store.EventRange{Thread: e.thread})
	must(t, err)
	turn, err := e.handle(t.Context(), pending[0])
	must(t, err)
	if said := spoken(e.seen); !slices.Equal(said, []string{"I am here"}) || turn.Spoke != 1 || turn.Stop != memgpt.StopMonologue {
		t.Errorf("said %q, %+v", said, turn)
	}
}
