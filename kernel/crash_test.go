package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/storetest"
	"memgpt/tool"
)

// crashTurns are what the user says in a crash test; the scripted model answers by what it reads, so that it goes on
// sensibly after a crash.
var crashTurns = []string{"remember 0", "ring 1", "mix 2", "remember 3", "mix 4"}

// crashModel edits memory once for each message, rings where it is asked to, and answers. It tells what it did already
// from the request, as a model does.
func crashModel() *script.Model {
	return script.New(script.Config{
		Func: func(_ int, req *memgpt.Request) script.Reply {
			text, calls, results := sinceUser(req)
			word, n, _ := strings.Cut(text, " ")
			edit := script.Call("core_memory_append", "label", "human", "content", "fact "+n+";", "request_heartbeat", true)
			ring := script.Call("ring", "n", n, "request_heartbeat", true)
			pad := script.Call("archival_memory_insert", "content", "note "+n, "request_heartbeat", true)
			said := script.Say("done " + n + strings.Repeat(" padding words", 40)).Using(memgpt.Usage{Output: 7})
			switch {
			case calls > 0 && results > 0:
				return said
			case word == "ring":
				return script.Calls(ring, pad, edit)
			case word == "mix":
				return script.Calls(edit, ring, pad, script.Call("ring", "n", n+"b", "request_heartbeat", true))
			}
			return script.Calls(edit, pad)
		},
		Summary: func(*memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x") },
	})
}

// sinceUser returns the newest message of the user, and how many calls and results stand after it.
func sinceUser(req *memgpt.Request) (text string, calls, results int) {
	for i := range req.Messages {
		m := &req.Messages[i]
		if _, after, ok := strings.Cut(m.Said(), `{"type":"user_message","message":"`); ok && m.Role == memgpt.RoleUser {
			text, _, _ = strings.Cut(after, `"`)
			calls, results = 0, 0
		}
		calls += len(m.Calls())
		if m.Role == memgpt.RoleTool {
			results++
		}
	}
	return text, calls, results
}

// every is of how many places for a crash one is tried.
func every(commits bool) int64 {
	switch {
	case !commits:
		return 7
	case raced:
		return 3
	}
	return 1
}

func TestCrashAtEveryCommit(t *testing.T) {
	for _, mode := range []struct {
		name           string
		commits, after bool
	}{{"before the commit", true, false}, {"after the commit", true, true}, {"any call", false, false}} {
		t.Run(mode.name, func(t *testing.T) {
			for at := int64(1); ; at++ {
				if long() || (at-1)%every(mode.commits) == 0 {
					if !crashOnce(t, at, mode.commits, mode.after) {
						return
					}
				}
			}
		})
	}
}

// crashOnce runs the conversation over a store that dies at a call, goes on with a new kernel on what was stored, and holds
// what must be true. It reports whether the store died.
func crashOnce(t *testing.T, at int64, commits, after bool) bool {
	rung := map[string]int{}
	ring, err := memtool.New("ring", "rings", memgpt.EffectOutside, func(_ context.Context, in struct {
		N string `json:"n"`
	}) (string, error) {
		rung[in.N]++
		return "rang", nil
	})
	must(t, err)
	faulty := &storetest.Faulty{At: at, Commits: commits, After: after}
	o := options{window: 3600, tools: []tool.Tool{ring}, wrap: func(s store.Store) store.Store {
		faulty.Inner = s
		return faulty
	}}
	m := crashModel()
	e := newEnv(t, m, o)
	recovered := false
	for i, text := range crashTurns {
		if err := e.deliver(text, fmt.Sprint("key", i)); err != nil {
			if recovered || !faulty.Dead() {
				t.Fatalf("at %d, turn %d: %v", at, i, err)
			}
			recovered = true
			e.store = e.base
			e.configure(m, o)
			if err := e.deliver(text, fmt.Sprint("key", i)); err != nil {
				t.Fatalf("at %d, turn %d, after the crash: %v", at, i, err)
			}
		}
	}
	e.checkCrash(at, rung)
	for i, req := range m.Requests() {
		if err := checkV(req, e.count, 1, 3600, ""); err != nil {
			t.Fatalf("at %d, request %d: %v", at, i, err)
		}
	}
	return faulty.Dead()
}

// deliver accepts a message under a key, unless it was accepted before, and runs what is pending.
func (e *env) deliver(text, key string) error {
	ctx := e.t.Context()
	e.now = e.now.Add(2 * 60 * 1e9) // the lease of whoever died has ended
	ev := memgpt.Event{ID: e.newID("event"), Agent: e.agent.ID, Thread: e.thread, Type: memgpt.EventUser, Due: e.now, Created: e.now,
		Key: key, Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text), Turn: e.newID("turn")}
	done, err := e.store.Commit(ctx, &store.Commit{Now: e.now, Events: []memgpt.Event{ev},
		Acquire: &store.Lease{Thread: e.thread, Until: e.now.Add(60 * 1e9)}})
	if err != nil {
		return err
	}
	e.lease = done.Lease
	for {
		pending, err := e.store.Events(ctx, store.EventRange{Thread: e.thread})
		if err != nil || len(pending) == 0 {
			return err
		}
		if e.lease == nil {
			return errors.New("no lease")
		}
		turn, err := e.handle(ctx, pending[0])
		if err != nil {
			return err
		}
		if turn.State != memgpt.TurnDone {
			return fmt.Errorf("turn %+v", turn)
		}
	}
}

func (e *env) checkCrash(at int64, rung map[string]int) {
	t := e.t
	log := e.checkState(nil)
	for i, text := range crashTurns {
		n := 0
		for _, entry := range log {
			if entry.Message.Role == memgpt.RoleUser && entry.Message.Said() == text {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("at %d: %q is in the log %d times", at, text, n)
		}
		if n := strings.Count(e.block("human"), fmt.Sprintf("fact %d;", i)); n != 1 && !e.interrupted(log, i) || n > 1 {
			t.Fatalf("at %d: fact %d was written %d times: %q", at, i, n, e.block("human"))
		}
	}
	turns, err := e.base.Turns(t.Context(), "", e.thread, 0)
	must(t, err)
	var used memgpt.Usage
	for _, turn := range turns {
		used = used.Add(turn.Usage)
	}
	if sum := e.spentOn(""); used.Calls < len(crashTurns) || sum != used {
		t.Fatalf("at %d: the turns used %+v, and the sums have %+v", at, used, sum)
	}
	for n, times := range rung {
		if times > 1 {
			t.Fatalf("at %d: the outside call %s was run %d times", at, n, times)
		}
	}
}

// interrupted reports whether a call of a turn was answered as interrupted: then the scripted model, which does not try
// again, may have left its edit undone.
func (e *env) interrupted(log []memgpt.Entry, turn int) bool {
	at := 0
	for _, entry := range log {
		if entry.Message.Role == memgpt.RoleUser && entry.Message.Said() == crashTurns[turn] {
			at = 1
		}
		if res, ok := entry.Message.Result(); at == 1 && ok && (strings.HasPrefix(res.Text, "interrupted") || strings.HasPrefix(res.Text, "not run")) {
			return true
		}
	}
	return false
}
