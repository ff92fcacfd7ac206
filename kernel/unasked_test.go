package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/storetest"
	"memgpt/tool"
)

// outboxWords are the words of the outbox, as the log has them.
func (e *env) outboxWords() (words []string) {
	e.t.Helper()
	rows, err := e.base.Sayings(e.t.Context(), store.SayingRange{})
	must(e.t, err)
	for i := range rows {
		entries, err := e.base.EntriesByID(e.t.Context(), "", rows[i].Agent, []string{rows[i].Entry})
		must(e.t, err)
		text, ok := rows[i].SaidBy(&entries[0])
		if !ok || rows[i].Turn != entries[0].Turn {
			e.t.Errorf("the log doesn't hold the words of %+v", rows[i])
		}
		words = append(words, text)
	}
	return words
}

// TestUnaskedIsInTheOutbox: what is said where no user waits is in the outbox, and nothing else.
func TestUnaskedIsInTheOutbox(t *testing.T) {
	asks := memgpt.Event{Type: memgpt.EventAgent, Mail: &memgpt.Mail{Call: "entry/1", Chain: []string{"other"}, Hops: 1}}
	for _, c := range []struct {
		name  string
		event memgpt.Event
		why   string // "" is nothing
	}{
		{"user", memgpt.Event{Type: memgpt.EventUser}, ""},
		{"login", memgpt.Event{Type: memgpt.EventLogin}, ""},
		{"tidying", memgpt.Event{Type: memgpt.EventTidy}, ""},
		{"question of an agent", asks, ""},
		{"message of an agent", memgpt.Event{Type: memgpt.EventAgent, Mail: &memgpt.Mail{Hops: 1}}, "agent_message"},
		{"heartbeat", memgpt.Event{Type: memgpt.EventTimer}, "heartbeat"},
		{"schedule", memgpt.Event{Type: memgpt.EventTimer, Timer: &memgpt.Timer{Schedule: "schedule-1"}}, "schedule"},
		{"document", memgpt.Event{Type: memgpt.EventDocument}, "document_loaded"},
		{"program", memgpt.Event{Type: memgpt.EventOutside}, "outside_event"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply {
				return script.Calls(script.Say("one"), script.Call("core_memory_append", "label", "nowhere", "content", "x"), script.Say("two"))
			}})
			e := newEnv(t, m, options{policy: memgpt.Policy{MaxSteps: 1}})
			e.agent.Reach.Hook = "https://hooks.example"
			e.agent.Version = 1
			_, err := e.base.Commit(t.Context(), &store.Commit{Now: e.now, Agents: []memgpt.Agent{e.agent}})
			must(t, err)
			ev, err := e.accept(c.event.Type, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "it happened"))
			must(t, err)
			ev.Mail, ev.Timer = c.event.Mail, c.event.Timer
			_, err = e.handle(t.Context(), ev)
			must(t, err)
			rows, err := e.base.Sayings(t.Context(), store.SayingRange{})
			must(t, err)
			var ids, told []string
			for _, u := range e.seen {
				if s, ok := u.(memgpt.Spoke); ok {
					told = append(told, s.Saying)
				}
			}
			for i := range rows {
				r := &rows[i]
				ids = append(ids, r.ID)
				if r.Why != c.why || r.Hook != store.HookDue || !r.Next.Equal(e.now) || r.Read || r.Thread != e.thread || !r.Time.Equal(e.now) {
					t.Errorf("row %+v", r)
				}
			}
			if c.why == "" {
				if c.event.Type == memgpt.EventTidy { // has no function to say anything
					told = append(told, "", "")
				}
				if len(rows) != 0 || !slices.Equal(told, []string{"", ""}) {
					t.Errorf("rows %+v, updates %q", rows, told)
				}
				return
			}
			if !slices.Equal(e.outboxWords(), []string{"one", "two"}) || !slices.Equal(ids, told) || ids[0] == ids[1] {
				t.Errorf("words %q, rows %v, updates %v", e.outboxWords(), ids, told)
			}
		})
	}
}

// TestUnaskedInPlainText: a model that speaks in plain text is in the outbox too; thoughts are not, and without a hook none is due.
func TestUnaskedInPlainText(t *testing.T) {
	for _, c := range []struct {
		protocol memgpt.Protocol
		want     []string
	}{{memgpt.ProtocolNative, []string{"the kettle boils"}}, {memgpt.ProtocolMemGPT, nil}} {
		m := script.New(script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Text("the kettle boils") }})
		e := newEnv(t, m, options{protocol: c.protocol})
		e.system(memgpt.EventTimer, "tick")
		if got := e.outboxWords(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.protocol, got)
		}
		due, err := e.base.Sayings(t.Context(), store.SayingRange{Hook: store.HookDue})
		must(t, err)
		if len(due) != 0 {
			t.Errorf("due without a hook: %+v", due)
		}
	}
}

// TestUnaskedUntilAUserComes: in a turn that a user joins, what comes after his message answers it.
func TestUnaskedUntilAUserComes(t *testing.T) {
	var e *env
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply {
		if n == 0 {
			e.post(memgpt.EventUser, "are you there?")
			return script.Calls(script.Say("I was just thinking"), script.Call("core_memory_append", "label", "human", "content", "x", "request_heartbeat", true))
		}
		return script.Say("yes, here")
	}})
	e = newEnv(t, m, options{})
	e.arrive = e.steerByInbox
	said, _ := e.system(memgpt.EventTimer, "tick")
	if want := []string{"I was just thinking", "yes, here"}; !slices.Equal(said, want) || !slices.Equal(e.outboxWords(), want[:1]) {
		t.Errorf("said %q, outbox %q", said, e.outboxWords())
	}
}

// TestUnaskedAtEveryCrash kills the store at each commit of a turn that speaks before, between and after calls of the outside, and
// lets another process go on: what is in the log is in the outbox, once.
func TestUnaskedAtEveryCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := int64(1); unaskedCrash(t, at, after); at++ {
			if at > 50 {
				t.Fatal("it never survives")
			}
		}
	}
}

func unaskedCrash(t *testing.T, at int64, after bool) (died bool) {
	ring, err := memtool.New("ring", "rings", memgpt.EffectOutside, func(context.Context, struct{}) (string, error) { return "rang", nil })
	must(t, err)
	faulty := &storetest.Faulty{At: at, Commits: true, After: after}
	o := options{tools: []tool.Tool{ring}, wrap: func(s store.Store) store.Store { faulty.Inner = s; return faulty }}
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		if len(req.Messages) > 4 {
			return script.Say(fmt.Sprint("last ", n))
		}
		return script.Calls(script.Say(fmt.Sprint("before ", n)), script.Call("ring", "request_heartbeat", true), script.Say(fmt.Sprint("after ", n)))
	}})
	e := newEnv(t, m, o)
	ev, err := e.accept(memgpt.EventTimer, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "tick"))
	if err == nil {
		_, err = e.handle(t.Context(), ev)
	}
	if err != nil {
		e.store = e.base
		e.configure(m, o)
		must(t, e.deliver("go on", "key"))
	}
	log, err := e.base.Entries(t.Context(), store.EntryRange{Thread: e.thread})
	must(t, err)
	ran := map[string]bool{} // calls that have a result which is no failure
	for i := range log {
		if res, ok := log[i].Message.Result(); ok && !res.Failed {
			ran[res.CallID] = true
		}
	}
	var want []string
	for i := range log {
		if log[i].Turn != ev.Turn {
			continue
		}
		for _, said := range store.SpokenIn(&log[i].Message) {
			if ran[said.Call] {
				want = append(want, said.Text)
			}
		}
	}
	if got := e.outboxWords(); !slices.Equal(got, want) {
		t.Errorf("at %d, after %v: the outbox has %q, the log %q", at, after, got, want)
	}
	return faulty.Dead()
}

// TestUnaskedAndForgotten: forgetting takes words out of the outbox with the log, and with an agent goes all that it had.
func TestUnaskedAndForgotten(t *testing.T) {
	m := script.New(script.Config{Func: func(n int, _ *memgpt.Request) script.Reply { return script.Say(fmt.Sprintf("zyxq%d is due", n)) }})
	e := newEnv(t, m, options{})
	secret, err := (&store.Hook{URL: "https://hooks.example", Secret: "whsec_zyxqsecret"}).Record(store.Record{ID: e.agent.ID})
	must(t, err)
	_, err = e.base.Commit(t.Context(), &store.Commit{Now: e.now, Records: []store.Record{secret}})
	must(t, err)
	e.system(memgpt.EventTimer, "tick")
	e.system(memgpt.EventTimer, "tock")
	agent, err := e.base.Agent(t.Context(), "", e.agent.ID)
	must(t, err)
	_, err = e.kernel.Forget(t.Context(), kernel.Forgetting{Agent: agent, Term: "zyxq0"})
	must(t, err)
	if got := e.outboxWords(); !slices.Equal(got, []string{"zyxq1 is due"}) {
		t.Errorf("left %q", got)
	}
	if found := e.fileBytes("zyxq0"); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	_, err = e.kernel.Forget(t.Context(), kernel.Forgetting{Agent: agent, Whole: true})
	must(t, err)
	rows, err := e.base.Sayings(t.Context(), store.SayingRange{AllTenants: true})
	must(t, err)
	if found := e.fileBytes("zyxq"); len(rows) > 0 || len(found) > 0 {
		t.Errorf("rows %+v, found %v", rows, found)
	}
}
