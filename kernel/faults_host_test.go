package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/host"
	"memgpt/kernel"
	"memgpt/model/script"
	"memgpt/store"
)

// world is a host over a kernel: many agents and conversations, with real goroutines and the real clock.
type world struct {
	*env
	host *host.Host
}

func newWorld(t *testing.T, m memgpt.Model, o options) *world {
	t.Helper()
	w := &world{env: newEnv(t, m, o)}
	var mu sync.Mutex
	ids := w.newID
	w.config.Now, w.config.NewID = time.Now, func(kind string) string {
		mu.Lock()
		defer mu.Unlock()
		return ids(kind)
	}
	var err error
	w.kernel, err = kernel.New(w.config)
	must(t, err)
	w.host, err = host.New(host.Config{Store: w.base, Kernel: w.kernel, NewID: w.config.NewID, Report: func(err error) { t.Error(err) }})
	must(t, err)
	t.Cleanup(func() { must(t, w.host.Close(context.Background())) })
	return w
}

func (w *world) agentOf(tenant, name string, blocks ...memgpt.Block) memgpt.Agent {
	w.t.Helper()
	a, err := w.host.Agent(w.t.Context(), tenant, name, host.AgentTemplate{Blocks: blocks})
	must(w.t, err)
	return a
}

func (w *world) threadOf(a memgpt.Agent, name string) memgpt.Thread {
	w.t.Helper()
	th, err := w.host.Thread(w.t.Context(), a, name)
	must(w.t, err)
	return th
}

// tell sends a message and returns what was said, once the turn has ended well.
func (w *world) tell(a memgpt.Agent, th memgpt.Thread, text string) []string {
	turn, err := w.host.Send(w.t.Context(), host.Message{Tenant: a.Tenant, Agent: a.ID, Thread: th.ID,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
	if err != nil {
		w.t.Error(err)
		return nil
	}
	record, err := turn.Wait(w.t.Context())
	if err != nil || !record.Stop.Good() {
		w.t.Errorf("%q: %+v, %v", text, record, err)
	}
	return turn.Said()
}

func (w *world) results(a memgpt.Agent, th memgpt.Thread, name string) (out []memgpt.Result) {
	w.t.Helper()
	entries, err := w.base.Entries(w.t.Context(), store.EntryRange{Tenant: a.Tenant, Thread: th.ID})
	must(w.t, err)
	for _, e := range entries {
		if res, ok := e.Message.Result(); ok && (name == "" || res.Name == name) {
			out = append(out, res)
		}
	}
	return out
}

// scripted answers by what the user said: a JSON list of calls is made, in one reply; anything else is echoed.
func scripted() *script.Model {
	return script.New(script.Config{NewID: func(int) string { return "" }, Func: func(_ int, req *memgpt.Request) script.Reply {
		var env struct{ Type, Message string }
		for i := range req.Messages {
			if m := &req.Messages[i]; m.Role == memgpt.RoleUser {
				_ = json.Unmarshal([]byte(m.Said()), &env)
			}
		}
		if req.Messages[len(req.Messages)-1].Role == memgpt.RoleTool {
			return script.Say("done")
		}
		var calls []struct {
			Name string
			Args map[string]any
		}
		if json.Unmarshal([]byte(env.Message), &calls) != nil {
			return script.Say("heard " + env.Message)
		}
		var replies []script.Reply
		for _, c := range calls {
			args, _ := json.Marshal(c.Args)
			replies = append(replies, script.Call(c.Name, string(args)))
		}
		return script.Calls(replies...).Heartbeat()
	}, Summary: func(*memgpt.Request) script.Reply { return script.Text("x\nSearch for: x") }})
}

func calling(name string, args map[string]any) string {
	b, _ := json.Marshal([]map[string]any{{"name": name, "args": args}})
	return string(b)
}

func TestFaultsOfConcurrency(t *testing.T) {
	t.Run("two messages at once to one agent", func(t *testing.T) {
		m := scripted()
		w := newWorld(t, m, options{})
		a := w.agentOf("", "one")
		th := w.threadOf(a, host.MainThread)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if said := w.tell(a, th, fmt.Sprintf("n=%d", i)); !slices.Equal(said, []string{fmt.Sprintf("heard n=%d", i)}) {
					t.Errorf("%d: %q", i, said)
				}
			})
		}
		wg.Wait()
		entries, err := w.base.Entries(t.Context(), store.EntryRange{Thread: th.ID})
		must(t, err)
		for i, e := range entries {
			if want := []memgpt.Role{memgpt.RoleUser, memgpt.RoleAssistant, memgpt.RoleTool}[i%3]; e.Message.Role != want {
				t.Fatalf("entry %d is the %s's", i, e.Message.Role)
			}
		}
		w.checkAll(m, 16384)
	})
	t.Run("conversations that edit one block lose no edit", sharedBlock)
	t.Run("one user sees another's memories", strangers)
	t.Run("separate conversations of one agent", func(t *testing.T) {
		m := scripted()
		w := newWorld(t, m, options{})
		a := w.agentOf("", "one")
		main, other := w.threadOf(a, host.MainThread), w.threadOf(a, "work")
		w.tell(a, main, "my bike code is 7391")
		w.tell(a, main, calling("core_memory_append", map[string]any{"label": "human", "content": "rides a bike"}))
		w.tell(a, other, "hello there")
		contains(t, m.Last().Messages[0].Said(), "rides a bike")
		excludes(t, wire(&memgpt.Request{Messages: m.Last().Messages[1:]}), "7391")
		w.tell(a, other, calling("conversation_search", map[string]any{"query": "bike code"}))
		found := hits(t, w.results(a, other, "conversation_search")[0].Text)
		if len(found) < 2 || found[0].Conversation != "main" || found[0].Text != "my bike code is 7391" {
			t.Errorf("%+v", found)
		}
		w.tell(a, other, calling("memory_read", map[string]any{"id": found[0].ID, "around": 1}))
		for _, h := range hits(t, w.results(a, other, "memory_read")[0].Text) {
			if h.Conversation != "main" {
				t.Errorf("%+v", h)
			}
		}
		late := w.threadOf(a, "late")
		w.tell(a, late, "what do you have?")
		contains(t, wire(m.Last()), "messages in other conversations (conversation_search)")
	})
	t.Run("a shared block that another agent changes", editElsewhere)
	t.Run("cancelled and waiting messages", func(t *testing.T) {
		gate := script.NewGate()
		first := true
		m := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
			if first {
				first = false
				return script.Say("a poem").Held(gate)
			}
			return script.Say("4")
		}})
		w := newWorld(t, m, options{})
		a := w.agentOf("", "one")
		th := w.threadOf(a, host.MainThread)
		turn, err := w.host.Send(t.Context(), host.Message{Agent: a.ID, Thread: th.ID, Message: memgpt.TextMessage("", "", "write a poem")})
		must(t, err)
		<-gate.Entered()
		must(t, w.host.Cancel(t.Context(), "", turn.ID))
		if record, err := turn.Wait(t.Context()); err != nil || record.State != memgpt.TurnCancelled || len(turn.Said()) != 0 {
			t.Errorf("%+v, %v", record, err)
		}
		if said := w.tell(a, th, "2+2?"); !slices.Equal(said, []string{"4"}) {
			t.Errorf("%q", said)
		}
		contains(t, wire(m.Last()), "cancelled what stands above")
	})
	t.Run("the store grows without end", func(t *testing.T) {
		turns := 120
		if long() {
			turns = 1000
		}
		w := newWorld(t, scripted(), options{})
		a := w.agentOf("", "one")
		th := w.threadOf(a, host.MainThread)
		for i := range turns {
			w.tell(a, th, fmt.Sprint("turn ", i, strings.Repeat(" another kilobyte of plain words", 32)))
		}
		info, err := os.Stat(w.path)
		must(t, err)
		if n := info.Size(); n > int64(turns)*9_000+1_000_000 {
			t.Errorf("%d bytes after %d turns", n, turns)
		}
	})
}

// editElsewhere has an agent see in its next prompt what another did to a block of both.
func editElsewhere(t *testing.T) {
	m := scripted()
	w := newWorld(t, m, options{})
	a := w.agentOf("", "one", memgpt.Block{Label: "notes", Limit: 1000})
	b := w.agentOf("", "two")
	b.Blocks = append(b.Blocks, a.Blocks[0])
	_, err := w.base.Commit(t.Context(), &store.Commit{Now: time.Now(), Agents: []memgpt.Agent{b}})
	must(t, err)
	ta, tb := w.threadOf(a, host.MainThread), w.threadOf(b, host.MainThread)
	for i := range 3 {
		w.tell(a, ta, "hello")
		excludes(t, wire(m.Last()), fmt.Sprintf("[edit %d]", i))
		w.tell(b, tb, calling("core_memory_append", map[string]any{"label": "notes", "content": fmt.Sprintf("[edit %d]", i)}))
		w.tell(a, ta, "hello")
		contains(t, wire(m.Last()), fmt.Sprintf("[edit %d]", i))
	}
}

// sharedBlock has two agents and four conversations edit one block at the same time.
func sharedBlock(t *testing.T) {
	w := newWorld(t, scripted(), options{})
	a := w.agentOf("", "one", memgpt.Block{Label: "notes", Limit: 100_000})
	b := w.agentOf("", "two")
	b.Blocks = append(b.Blocks, a.Blocks[0])
	_, err := w.base.Commit(t.Context(), &store.Commit{Now: time.Now(), Agents: []memgpt.Agent{b}})
	must(t, err)
	const edits = 12
	var wg sync.WaitGroup
	for n := range 4 {
		agent := []memgpt.Agent{a, b}[n%2]
		th := w.threadOf(agent, fmt.Sprint("t", n))
		wg.Go(func() {
			for i := range edits {
				w.tell(agent, th, calling("core_memory_append", map[string]any{"label": "notes", "content": fmt.Sprintf("[%d-%d]", n, i)}))
			}
			for _, res := range w.results(agent, th, "core_memory_append") {
				if res.Failed {
					t.Errorf("%+v", res)
				}
			}
		})
	}
	wg.Wait()
	blocks, err := w.base.Blocks(t.Context(), "", a.Blocks[:1])
	must(t, err)
	for n := range 4 {
		for i := range edits {
			if c := strings.Count(blocks[0].Value, fmt.Sprintf("[%d-%d]", n, i)); c != 1 {
				t.Errorf("edit %d-%d is in it %d times", n, i, c)
			}
		}
	}
	history, err := w.base.BlockHistory(t.Context(), "", a.Blocks[0])
	must(t, err)
	if len(history) != 4*edits+1 || history[len(history)-1].Value != blocks[0].Value {
		t.Errorf("%d edits in the history", len(history))
	}
}

// strangers has another agent and another tenant look for an agent's secret by every function that reads or changes.
func strangers(t *testing.T) {
	w := newWorld(t, scripted(), options{})
	a := w.agentOf("", "A")
	ta := w.threadOf(a, host.MainThread)
	w.tell(a, ta, "the word is SECRET_A1 密码 100%")
	w.tell(a, ta, calling("archival_memory_insert", map[string]any{"content": "passage SECRET_A1 密码 100%", "tags": []string{"SECRET_A1"}}))
	passage := passageID.FindString(w.results(a, ta, "archival_memory_insert")[0].Text)
	entries, err := w.base.Entries(t.Context(), store.EntryRange{Thread: ta.ID})
	must(t, err)
	before, err := w.base.Passages(t.Context(), "", a.ID, []string{passage})
	must(t, err)
	for _, tenant := range []string{"", "other"} {
		b := w.agentOf(tenant, "B")
		tb := w.threadOf(b, host.MainThread)
		for _, query := range []string{"SECRET_A1", "密", "密码", "%", "100%", "", "passage"} {
			for _, name := range []string{"conversation_search", "archival_memory_search"} {
				w.tell(b, tb, calling(name, map[string]any{"query": query}))
			}
		}
		for _, id := range []string{passage, entries[0].ID} {
			for name, args := range map[string]map[string]any{
				"memory_read": {"id": id, "around": 5}, "archival_memory_update": {"id": id, "content": "taken"},
				"archival_memory_delete": {"id": id}, "archival_memory_merge": {"ids": []string{id, "x"}, "content": "taken"},
				"conversation_evict": {"through": id},
			} {
				w.tell(b, tb, calling(name, args))
			}
		}
		w.tell(b, tb, calling("archival_memory_search", map[string]any{"query": "word", "tags": []string{"SECRET_A1"}}))
		for _, res := range w.results(b, tb, "") {
			if strings.Contains(res.Text, "the word is") || strings.Contains(res.Text, "passage SECRET") || strings.Contains(res.Text, "100% ") {
				t.Errorf("tenant %q sees %s", tenant, res.Text)
			}
		}
		w.tell(b, tb, calling("archival_memory_insert", map[string]any{"content": "passage SECRET_A1 密码 100%"}))
		all := w.results(b, tb, "archival_memory_insert")
		excludes(t, all[len(all)-1].Text, "Already", passage) // a stranger doesn't learn what others have
		w.tell(b, tb, calling("archival_memory_search", map[string]any{"query": "密码"}))
		all = w.results(b, tb, "archival_memory_search")
		if found := hits(t, all[len(all)-1].Text); len(found) != 1 || found[0].ID == passage {
			t.Errorf("tenant %q finds %+v of its own", tenant, found)
		}
	}
	after, err := w.base.Passages(t.Context(), "", a.ID, []string{passage})
	must(t, err)
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
}

func TestFaultsOfParts(t *testing.T) {
	parts := memgpt.Parts{memgpt.Reasoning{Text: "thinking", Provider: "p", Data: json.RawMessage(`{"signature":"a<b>&\u00e9","n":1.0}`)},
		memgpt.Unknown{Kind: "hologram", Raw: json.RawMessage(`{"x":[1,2,"ü"]}`)},
		memgpt.Call{ID: "c1", Name: "archival_memory_search", Arguments: `{"query":"x","request_heartbeat":true}`}}
	m := script.Of(script.Reply{Parts: parts}, script.Say("done"), script.Say("again"))
	e := newEnv(t, m, options{})
	in := memgpt.Message{Role: memgpt.RoleUser, Origin: memgpt.OriginUser, Parts: memgpt.Parts{memgpt.Text{Text: "look"},
		memgpt.Image{MIME: "image/png", Data: []byte{0, 1, 255}}, memgpt.File{Name: "a.txt", URL: "https://example.org/a"},
		memgpt.Unknown{Kind: "smell", Raw: json.RawMessage(`{"of":"rain"}`)}}}
	e.event(memgpt.EventUser, in)
	e.configure(m, options{}) // a new process
	e.say("more")
	reqs := m.Requests()
	for n, req := range reqs[1:] {
		t.Run(fmt.Sprint("request ", n+1), func(t *testing.T) {
			user, said := req.Messages[1], req.Messages[2]
			if d := cmp.Diff(in.Parts[1:], user.Parts[1:]); d != "" {
				t.Errorf("the user's parts: %s", d)
			}
			if len(said.Parts) != len(parts) {
				t.Fatalf("%+v", said.Parts)
			}
			for i, p := range parts {
				if d := cmp.Diff(p, said.Parts[i]); d != "" {
					t.Errorf("part %d: %s", i, d)
				}
			}
		})
	}
	e.checkAll(m, 16384)
}
