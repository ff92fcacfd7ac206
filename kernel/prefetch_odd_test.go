package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/tool"
)

// TestJoiningAtOddMoments: messages come at odd moments of a turn; each is in the log once, with what it leans on right before it.
func TestJoiningAtOddMoments(t *testing.T) {
	const text = "Who borrowed those oars?"
	for _, when := range []string{"outside call", "commit", "summary", "evict", "last"} {
		for _, protocol := range []memgpt.Protocol{memgpt.ProtocolMemGPT, memgpt.ProtocolNative} {
			t.Run(fmt.Sprint(when, " ", protocol), func(t *testing.T) {
				var e *env
				posted := false
				post := func(at string) {
					if at == when && !posted {
						posted = true
						e.post(memgpt.EventUser, text)
					}
				}
				ring, err := memtool.New("ring", "rings", memgpt.EffectOutside, func(context.Context, struct{}) (string, error) {
					post("outside call")
					return "rang", nil
				})
				must(t, err)
				m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
					switch {
					case n == 1:
						return script.Call("ring", "request_heartbeat", true)
					case n == 4 && when != "summary":
						post("evict")
						return script.Call("conversation_evict", "summary", "They talked.\nSearch for: x", "request_heartbeat", true)
					case n >= 7:
						post("last")
						if protocol == memgpt.ProtocolNative {
							return script.Text("done")
						}
						return script.Say("done")
					}
					return script.Call("archival_memory_insert", "content", fmt.Sprint(n, strings.Repeat(" padding words", 190)), "request_heartbeat", true)
				}, Summary: func(*memgpt.Request) script.Reply { post("summary"); return script.Text("folded\nSearch for: x") }})
				o := options{window: 4096, prefetch: onPrefetch, protocol: protocol, tools: []tool.Tool{ring}}
				e = newEnv(t, m, o)
				e.archive(boathouse...)
				e.store = &posting{Store: e.base, post: post}
				e.configure(m, o)
				e.setTools("ring")
				e.arrive = e.steerByInbox
				e.say("Where is the key of the boathouse?" + strings.Repeat(" I ask in many words.", 30))
				pending, err := e.base.Events(t.Context(), store.EventRange{})
				must(t, err)
				for _, ev := range pending {
					_, err := e.handle(t.Context(), ev)
					must(t, err)
				}
				if !posted {
					t.Fatal("it did not come to that")
				}
				n := 0
				for _, entry := range e.log() {
					if entry.Message.Said() == text {
						n++
					}
				}
				if got := e.handedBefore()[text]; n != 1 || strings.Count(got, "Otto") != 1 {
					t.Errorf("in the log %d times, before it stands %q", n, got)
				}
				for i, req := range m.Requests() {
					if req.Purpose != memgpt.PurposeSummary {
						if err := checkV(req, e.count, 1, 4096, ""); err != nil {
							t.Errorf("request %d: %v", i, err)
						}
					}
				}
				e.checkState(nil)
			})
		}
	}
}

// setTools lets the agent have tools.
func (e *env) setTools(names ...string) {
	a, err := e.base.Agent(e.t.Context(), "", e.agent.ID)
	must(e.t, err)
	a.Tools = names
	_, err = e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Agents: []memgpt.Agent{a}})
	must(e.t, err)
}

// posting is a store beside which a message is posted right after a step's commit.
type posting struct {
	store.Store
	post func(string)
	n    int
}

func (s *posting) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	done, err := s.Store.Commit(ctx, c)
	if s.n++; s.n == 4 && len(c.Entries) > 0 {
		s.post("commit")
	}
	return done, err
}

// lengths is a searcher that notes how long queries are.
type lengths struct {
	tool.Searcher
	longest int
}

func (s *lengths) Search(ctx context.Context, q tool.Query) (tool.Hits, error) {
	s.longest = max(s.longest, len(q.Text))
	return s.Searcher.Search(ctx, q)
}

// TestLongMessagesAreLookedUpByTheirEnds: a message longer than the window, as the turn's own and as one that joins, is
// looked up by its beginning and its end, and its words are not kept a second time.
func TestLongMessagesAreLookedUpByTheirEnds(t *testing.T) {
	for _, protocol := range []memgpt.Protocol{memgpt.ProtocolMemGPT, memgpt.ProtocolNative} {
		var e *env
		filler := strings.Repeat(" Viele Wörter 和很多字。", 3000)
		own, joins := "Where is the key of the boathouse?"+filler, "Hear this."+filler+" Who borrowed those oars?"
		m := joiner(5, func(n int) {
			if n == 2 {
				e.post(memgpt.EventUser, joins)
			}
		})
		e = newEnv(t, m, options{window: 4096, prefetch: onPrefetch, protocol: protocol})
		e.archive(boathouse...)
		e.arrive = e.steerByInbox
		long := &lengths{Searcher: e.config.Search}
		e.reconfigure(func() { e.config.Search = long })
		_, turn := e.say(own)
		if turn.State != memgpt.TurnDone || long.longest == 0 || long.longest > 4000 || len(turn.Prefetch.Query) > 4000 {
			t.Errorf("%s (%s), queries of up to %d bytes, %d kept", turn.State, turn.Error, long.longest, len(turn.Prefetch.Query))
		}
		handed := e.handedBefore()
		if !strings.Contains(handed[own], "behind the clock") || !strings.Contains(handed[joins], "Otto") {
			t.Errorf("handed %q and %q", handed[own], handed[joins])
		}
		for _, req := range m.Requests() {
			if req.Purpose != memgpt.PurposeSummary {
				must(t, checkV(req, e.count, 1, 4096, ""))
			}
		}
		e.checkState(nil)
	}
}

// TestPrefetchBesideFullBlocks: whatever room blocks leave in the smallest usual window, no request is over it, and each
// turn ends.
func TestPrefetchBesideFullBlocks(t *testing.T) {
	for _, protocol := range []memgpt.Protocol{memgpt.ProtocolMemGPT, memgpt.ProtocolNative} {
		for chars := 0; chars <= 2000; chars += 1000 {
			m := talker()
			e := newEnv(t, m, options{window: 4096, prefetch: onPrefetch, protocol: protocol})
			for i := range 40 {
				e.archive(fmt.Sprintf("Shelf %d of the cellar holds jars of plum jam from the year %d, near the stairs.", i, 1900+i))
			}
			for _, label := range []string{"human", "persona"} {
				e.changeBlock(label, func(b *memgpt.Block) { b.Value = strings.Repeat("word ", chars/5) })
			}
			for i := range 4 {
				ev, err := e.accept(memgpt.EventUser, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, fmt.Sprintf("What is on shelf %d of the cellar?", i)))
				must(t, err)
				turn, err := e.handle(t.Context(), ev)
				must(t, err)
				if turn.State != memgpt.TurnDone {
					t.Errorf("%s, %d characters: %s %s", protocol, chars, turn.State, turn.Error)
				}
			}
			for _, req := range m.Requests() {
				if req.Purpose != memgpt.PurposeSummary {
					must(t, checkV(req, e.count, 1, 4096, "What is on shelf"))
				}
			}
		}
	}
}

// TestHandedTextsThatChange: what was handed over is superseded by the model, read by its old id, and forgotten by the owner.
func TestHandedTextsThatChange(t *testing.T) {
	var e *env
	var id string
	m := script.New(script.Config{Func: func(n int, req *memgpt.Request) script.Reply {
		switch n {
		case 0:
			texts, _ := handedIn(req)
			at := strings.Index(texts[0], "passage-")
			id = texts[0][at : at+len("passage-")+36]
			return script.Call("archival_memory_update", "id", id, "content", "The spare key of the boathouse hangs in the chapel.", "request_heartbeat", true)
		case 2:
			return script.Call("memory_read", "id", id, "request_heartbeat", true)
		case 3:
			return script.Say("x")
		}
		return script.Say("ok")
	}})
	e = newEnv(t, m, options{prefetch: onPrefetch})
	e.archive("The spare key of the boathouse hangs behind the clock.")
	e.say("Where is the key of the boathouse?")
	_, turn := e.say("Where is the key of the boathouse now?")
	texts, _ := handedIn(lastRequest(m))
	if len(texts) != 2 || !strings.Contains(texts[1], "in the chapel") || strings.Contains(texts[1], "behind the clock") || len(turn.Prefetch.Hits) != 1 {
		t.Errorf("after the change %q, %+v", texts, turn.Prefetch)
	}
	if read := e.result("memory_read"); !strings.Contains(read.Text, "superseded_by") {
		t.Errorf("by the old id: %+v", read)
	}
	_, err := e.kernel.Forget(t.Context(), kernel.Forgetting{Agent: e.agent, Passages: []string{id}})
	must(t, err)
	e.say("And where is the key of the boathouse again?")
	for _, msg := range lastRequest(m).Messages {
		if strings.Contains(msg.Said(), "behind the clock") {
			t.Errorf("still in the prompt: %s", msg.Said())
		}
	}
}
