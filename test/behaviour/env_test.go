// Package behaviour holds what models do, right and wrong, in one table, and what must come of it: the same effects in
// the store and the same words to the user over every protocol and every way of calling functions.
//
// A protocol is added by a line in protocols, a behaviour by one in behaviours. What a protocol can't express stands in its
// line with the reason.
package behaviour

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/anthropic"
	"memgpt/model/ollama"
	"memgpt/model/openai"
	"memgpt/model/prompted"
	"memgpt/model/script"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/token"
)

// protocol is a way to a model.
type protocol struct {
	name string
	// open makes a model that answers as it is told to, and the script for what it was asked. In one piece says that the
	// answer comes without a stream, as a client may ask for it or a gateway may send it unasked.
	open func(t testing.TB, cfg script.ServerConfig, onePiece bool) (memgpt.Model, *script.Model)
	// What it can't have, with the reason; "" is that it can.
	noConstrained string // replies held to a schema
	noBroken      string // calls whose arguments are no JSON object, in a stream
	noBrokenWhole string // the same in an answer of one piece
	noEmptyID     string // calls without an id
}

// protocols are the ways to a model. A line that is not run by TestMatrix fails it.
var protocols = []protocol{
	{name: "direct", open: func(_ testing.TB, cfg script.ServerConfig, _ bool) (memgpt.Model, *script.Model) {
		m := script.New(cfg.Config)
		return m, m
	}, noEmptyID: "the contract of a model asks for ids"},
	{name: "openai chat", open: func(t testing.TB, cfg script.ServerConfig, onePiece bool) (memgpt.Model, *script.Model) {
		s, url := serve(t, cfg, false)
		m, err := openai.New(openai.Config{BaseURL: url, Schema: true, NoStream: onePiece})
		must(t, err)
		return closed(t, m), s.Model
	}},
	{name: "openai responses", open: func(t testing.TB, cfg script.ServerConfig, onePiece bool) (memgpt.Model, *script.Model) {
		s, url := serve(t, cfg, false)
		m, err := openai.New(openai.Config{BaseURL: url, Schema: true, NoStream: onePiece, API: openai.APIResponses})
		must(t, err)
		return closed(t, m), s.Model
	}},
	{name: "anthropic", open: func(t testing.TB, cfg script.ServerConfig, onePiece bool) (memgpt.Model, *script.Model) {
		s, url := serve(t, cfg, onePiece)
		m, err := anthropic.New(anthropic.Config{BaseURL: url, Model: "script"})
		must(t, err)
		return closed(t, m), s.Model
	},
		noConstrained: "its schemas are a part of JSON Schema, in which functions don't fit, and all of its models call by themselves",
		noBrokenWhole: "input is an object in a whole message"},
	{name: "ollama", open: func(t testing.TB, cfg script.ServerConfig, onePiece bool) (memgpt.Model, *script.Model) {
		s, url := serve(t, cfg, onePiece)
		m, err := ollama.New(ollama.Config{BaseURL: url, Model: "script"})
		must(t, err)
		return closed(t, m), s.Model
	},
		noBroken:      "arguments are an object, and a call comes whole or not at all",
		noBrokenWhole: "arguments are an object, and a call comes whole or not at all"},
}

// serve starts a scripted server. Plain says that it answers in one piece whatever it is asked for.
func serve(t testing.TB, cfg script.ServerConfig, plain bool) (*script.Server, string) {
	cfg.Plain = plain
	s := script.NewServer(cfg)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv.URL
}

// closed closes a model with the test.
func closed[M interface {
	memgpt.Model
	Close() error
}](t testing.TB, m M) memgpt.Model {
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// agent is one agent with its kernel.
type agent struct {
	*home
	t      testing.TB
	id     string
	thread string
	human  string // the block
	emit   func(memgpt.Update)
}

// source gives random bytes to many at once.
type source struct {
	mu  sync.Mutex
	rnd *rand.ChaCha8
}

func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.Read(p)
}

// home is a store and a kernel for many agents, since making them costs more than a case.
type home struct {
	store  *sqlite.Store
	kernel *kernel.Kernel
	newID  func(string) string

	mu     sync.Mutex
	models map[string]memgpt.Model // by agent
	now    time.Time
}

func newHome(t testing.TB, window int) *home {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "memgpt.db"), Unsafe: true})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	h := &home{store: s, models: map[string]memgpt.Model{}, now: time.Date(2026, 4, 6, 16, 51, 0, 0, time.UTC)}
	h.newID = kernel.NewIDs(&source{rnd: rand.NewChaCha8([32]byte{7})}, h.tick)
	count, err := token.New(token.Config{})
	must(t, err)
	search, err := retrieve.New(retrieve.Config{Index: s, Store: s})
	must(t, err)
	h.kernel, err = kernel.New(kernel.Config{Store: s, Search: search, Analyzer: new(retrieve.Analyzer), Counter: count, Window: window,
		Model:  h.modelOf,
		System: memtool.System, Normalize: retrieve.SameKey, Now: h.tick, NewID: h.newID})
	must(t, err)
	return h
}

func (h *home) modelOf(a memgpt.Agent) (memgpt.Model, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.models[a.ID], nil
}

// tick is a clock that moves on with each look.
func (h *home) tick() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(time.Millisecond)
	return h.now
}

func (h *home) newAgent(t testing.TB, m memgpt.Model, protocol memgpt.Protocol) *agent {
	t.Helper()
	now := h.tick()
	human := memgpt.Block{ID: h.newID("block"), Label: "human", Limit: 2000}
	row := memgpt.Agent{ID: h.newID("agent"), Name: "agent", Protocol: protocol, Blocks: []string{human.ID}, Created: now}
	row.Name += " " + row.ID
	th := memgpt.Thread{ID: h.newID("conv"), Agent: row.ID, Name: "main", Next: 1, Created: now}
	_, err := h.store.Commit(t.Context(), &store.Commit{Now: now, Agents: []memgpt.Agent{row}, Blocks: []memgpt.Block{human}, Threads: []memgpt.Thread{th}})
	must(t, err)
	h.mu.Lock()
	h.models[row.ID] = m
	h.mu.Unlock()
	return &agent{home: h, t: t, id: row.ID, thread: th.ID, human: human.ID}
}

// say sends a user's message and runs its turn to the end.
func (a *agent) say(text string) memgpt.Turn {
	a.t.Helper()
	now := a.tick()
	ev := memgpt.Event{ID: a.newID("event"), Agent: a.id, Thread: a.thread, Type: memgpt.EventUser, Due: now, Created: now,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text), Turn: a.newID("turn")}
	done, err := a.store.Commit(a.t.Context(), &store.Commit{Now: now, Events: []memgpt.Event{ev},
		Acquire: &store.Lease{Thread: a.thread, Until: now.Add(time.Hour)}})
	must(a.t, err)
	st, err := store.Load(a.t.Context(), a.store, "", a.thread)
	must(a.t, err)
	w := &store.Work{State: st, Event: ev, Lease: *done.Lease, TTL: time.Hour, Emit: a.emit,
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

// flagsOf are a turn's flags but for the one that nobody told how many tokens were used: many of the scripts don't.
func flagsOf(turn *memgpt.Turn) []string {
	return slices.DeleteFunc(slices.Clone(turn.Flags), func(f string) bool { return f == "usage_estimated" })
}

func (a *agent) effects(turn *memgpt.Turn, log []memgpt.Entry) effects {
	a.t.Helper()
	e := effects{Steps: turn.Steps, Stop: turn.Stop, Flags: strings.Join(flagsOf(turn), " ")}
	blocks, err := a.store.Blocks(a.t.Context(), "", []string{a.human})
	must(a.t, err)
	e.Human = blocks[0].Value
	passages, err := a.store.PassagesOf(a.t.Context(), store.PassageRange{Owner: a.id})
	must(a.t, err)
	for _, p := range passages {
		e.Passages = append(e.Passages, p.Text)
	}
	sort.Strings(e.Passages)
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

// checkWire is what must hold of each request to the model beneath, by way of calling. In mode Constrained it has a schema.
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
