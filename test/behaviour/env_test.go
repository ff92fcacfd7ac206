// Package behaviour holds what models do, right and wrong, in one table, and what must come of it: the same effects in
// the store and the same words to the user over every protocol and every way of calling functions.
//
// A protocol is added by a line in protocols, a behaviour by one in behaviours.
package behaviour

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/openai"
	"memgpt/model/prompted"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/token"
)

// protocol makes a model that answers as it is told to, and the script for what it was asked.
type protocol func(t testing.TB, replies []script.Reply) (memgpt.Model, *script.Model)

// protocols are the ways to a model.
var protocols = map[string]protocol{
	"direct": func(_ testing.TB, replies []script.Reply) (memgpt.Model, *script.Model) {
		m := script.Of(replies...)
		return m, m
	},
	"openai": func(t testing.TB, replies []script.Reply) (memgpt.Model, *script.Model) {
		s := script.NewServer(script.ServerConfig{Config: script.Config{Replies: replies}, Count: func(body []byte) int { return len(body) / 4 }})
		srv := httptest.NewServer(s)
		t.Cleanup(srv.Close)
		m, err := openai.New(openai.Config{BaseURL: srv.URL, Schema: true})
		must(t, err)
		t.Cleanup(func() { _ = m.Close() })
		return m, s.Model
	},
}

// agent is one agent with its kernel.
type agent struct {
	t      testing.TB
	store  *sqlite.Store
	kernel *kernel.Kernel
	id     string
	thread string
	now    time.Time
	newID  func(string) string
	emit   func(memgpt.Update)
}

type source struct{ *rand.Rand }

func (s source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.Uint32())
	}
	return len(p), nil
}

// home is a store in which many agents live, since making one costs more than a case.
type home struct {
	store  *sqlite.Store
	agents int
}

func newHome(t testing.TB) *home {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "memgpt.db"), Unsafe: true})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return &home{store: s}
}

func (h *home) newAgent(t testing.TB, m memgpt.Model, protocol memgpt.Protocol) *agent {
	t.Helper()
	h.agents++
	a := &agent{t: t, store: h.store, now: time.Date(2026, 4, 6, 16, 51, 0, 0, time.UTC)}
	a.newID = kernel.NewIDs(source{rand.New(rand.NewPCG(uint64(h.agents), 7))}, func() time.Time { return a.now })
	count, err := token.New(token.Config{})
	must(t, err)
	search, err := retrieve.New(retrieve.Config{Index: a.store, Store: a.store})
	must(t, err)
	a.kernel, err = kernel.New(kernel.Config{Store: a.store, Search: search, Analyzer: new(retrieve.Analyzer), Counter: count, Window: 32768,
		Model:  func(memgpt.Agent) (memgpt.Model, error) { return m, nil },
		System: memtool.System, Normalize: retrieve.SameKey, Now: func() time.Time { return a.now }, NewID: a.newID})
	must(t, err)
	human := memgpt.Block{ID: a.newID("block"), Label: "human", Limit: 2000}
	row := memgpt.Agent{ID: a.newID("agent"), Name: fmt.Sprint("agent ", h.agents), Protocol: protocol, Blocks: []string{human.ID}, Created: a.now}
	th := memgpt.Thread{ID: a.newID("conv"), Agent: row.ID, Name: "main", Next: 1, Created: a.now}
	a.id, a.thread = row.ID, th.ID
	_, err = a.store.Commit(t.Context(), &store.Commit{Now: a.now, Agents: []memgpt.Agent{row}, Blocks: []memgpt.Block{human}, Threads: []memgpt.Thread{th}})
	must(t, err)
	return a
}

// say sends a user's message and runs its turn to the end.
func (a *agent) say(text string) memgpt.Turn {
	a.t.Helper()
	a.now = a.now.Add(time.Second)
	ev := memgpt.Event{ID: a.newID("event"), Agent: a.id, Thread: a.thread, Type: memgpt.EventUser, Due: a.now, Created: a.now,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text), Turn: a.newID("turn")}
	done, err := a.store.Commit(a.t.Context(), &store.Commit{Now: a.now, Events: []memgpt.Event{ev},
		Acquire: &memgpt.Lease{Thread: a.thread, Until: a.now.Add(time.Minute)}})
	must(a.t, err)
	st, err := store.Load(a.t.Context(), a.store, "", a.thread)
	must(a.t, err)
	w := &store.Work{State: st, Event: ev, Lease: *done.Lease, TTL: time.Minute, Emit: a.emit,
		Turn: memgpt.Turn{ID: ev.Turn, Agent: ev.Agent, Thread: ev.Thread, Event: ev.ID, Type: ev.Type, State: memgpt.TurnQueued}}
	must(a.t, a.kernel.Run(a.t.Context(), w))
	return w.Turn
}

// effects are what is left of a turn.
type effects struct {
	Said     []string          // to the user
	Human    string            // the block
	Passages []string          // in archival storage
	Steps    int               // of the turn
	Stop     memgpt.StopReason // of the turn
	Flags    string            // of the turn, joined
}

func (a *agent) effects(turn *memgpt.Turn) effects {
	a.t.Helper()
	e := effects{Steps: turn.Steps, Stop: turn.Stop, Flags: strings.Join(turn.Flags, " ")}
	st, err := store.Load(a.t.Context(), a.store, "", a.thread)
	must(a.t, err)
	e.Human = st.Blocks[0].Value
	passages, err := a.store.PassagesOf(a.t.Context(), store.PassageRange{Owner: a.id})
	must(a.t, err)
	for _, p := range passages {
		e.Passages = append(e.Passages, p.Text)
	}
	sort.Strings(e.Passages)
	log := a.log()
	failed := failures(log)
	for i := range log {
		for _, p := range log[i].Message.Parts {
			switch p := p.(type) {
			case memgpt.Text:
				if log[i].Message.Role == memgpt.RoleAssistant && !p.Thought {
					e.Said = append(e.Said, p.Text)
				}
			case memgpt.Call:
				if text, ok := p.Spoken(); ok && !failed[p.ID] {
					e.Said = append(e.Said, text)
				}
			}
		}
	}
	return e
}

func (a *agent) log() []memgpt.Entry {
	a.t.Helper()
	entries, err := a.store.Entries(a.t.Context(), store.EntryRange{Thread: a.thread})
	must(a.t, err)
	return entries
}

func failures(log []memgpt.Entry) map[string]bool {
	failed := map[string]bool{}
	for i := range log {
		if r, ok := log[i].Message.Result(); ok {
			failed[r.CallID] = r.Failed
		}
	}
	return failed
}

// story tells the log without what differs by nature: ids, and thoughts.
func story(log []memgpt.Entry) (lines []string) {
	for i := range log {
		m := &log[i].Message
		for _, p := range m.Parts {
			switch p := p.(type) {
			case memgpt.Text:
				if !p.Thought {
					lines = append(lines, fmt.Sprintf("%s: %s", m.Role, p.Text))
				}
			case memgpt.Call:
				lines = append(lines, fmt.Sprintf("call %s %s", p.Name, canonical(p.Arguments)))
			case memgpt.Result:
				lines = append(lines, fmt.Sprintf("result of %s, failed %v", p.Name, p.Failed))
			}
		}
	}
	return lines
}

func canonical(args string) string {
	var v map[string]any
	if json.Unmarshal([]byte(args), &v) != nil {
		return args
	}
	if _, broken := v["unreadable"]; broken {
		return "unreadable"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return args
	}
	return string(b)
}

// checkWire is what must hold of each request to the model beneath, by way of calling.
func checkWire(req *memgpt.Request, way prompted.Mode, asked string) error {
	if way == prompted.Native {
		return nil // the kernel's own tests hold it
	}
	if len(req.Tools) > 0 || (req.Schema != nil) != (way == prompted.Constrained) {
		return fmt.Errorf("%d functions, schema %.40s", len(req.Tools), req.Schema)
	}
	found := false
	for i := range req.Messages {
		m := &req.Messages[i]
		want := memgpt.RoleSystem
		if i > 0 {
			want = []memgpt.Role{memgpt.RoleAssistant, memgpt.RoleUser}[i%2]
		}
		text := m.Said() + m.Thoughts()
		if _, result := m.Result(); m.Role != want || result || len(m.Calls()) > 0 || text == "" || text != memgpt.CleanText(text) {
			return fmt.Errorf("message %d: role %s, want %s with clean text and nothing else", i, m.Role, want)
		}
		found = found || want == memgpt.RoleUser && strings.Contains(text, asked)
	}
	if last := req.Messages[len(req.Messages)-1].Role; !found || last != memgpt.RoleUser {
		return fmt.Errorf("the user's message is in it: %v; the last message is the %s's", found, last)
	}
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
