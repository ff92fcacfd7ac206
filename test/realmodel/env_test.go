// Package realmodel runs an agent over a real server with a real, small model. Such a model can't reason: nothing of what it
// says is looked at. What is held is what stands around it: requests, counts, streams, the log.
//
// MEMGPT_REAL_BASE_URL and MEMGPT_REAL_MODEL name the server (test/real-model.sh starts one); without them the tests skip.
// MEMGPT_LONG=1 runs 30 turns where else there are 8.
package realmodel

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"memgpt"
	"memgpt/internal/checkv"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/openai"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/token"
	"memgpt/tool"
)

const (
	window    = 4096
	shortRun  = 8
	longRun   = 30
	replySize = 48 // tokens: a small model babbles up to any bound
)

// turns is how long the loop runs, and silent how many of its turns may end without a word: 2 of 30, and of 8 as many
// rounded down, but one.
func turns() (n, silent int) {
	if os.Getenv("MEMGPT_LONG") != "" {
		return longRun, 2
	}
	return shortRun, 1
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server returns a client of the real server, with further settings.
func server(t testing.TB, set func(*openai.Config)) *openai.Model {
	t.Helper()
	url := os.Getenv("MEMGPT_REAL_BASE_URL")
	if url == "" {
		t.Skip("MEMGPT_REAL_BASE_URL names no server of a real model (test/real-model.sh starts one)")
	}
	cfg := openai.Config{BaseURL: url, Model: os.Getenv("MEMGPT_REAL_MODEL"), Schema: true}
	if set != nil {
		set(&cfg)
	}
	m, err := openai.New(cfg)
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// steady makes a server's replies the same each time: no chance, and no part of a prompt read from the cache, which is
// computed in pieces of other sizes.
func steady(cfg *openai.Config) {
	cfg.Extra = map[string]json.RawMessage{"temperature": json.RawMessage("0"), "cache_prompt": json.RawMessage("false")}
}

// watched holds each request of an agent to what must be true of it, by the server's own count, and bounds its reply.
type watched struct {
	t     testing.TB
	inner *openai.Model

	mu    sync.Mutex
	asked string // newest message of the user
	seen  tally
}

// tally is what was seen of a conversation.
type tally struct {
	requests, summaries, most int // most: tokens of the largest request with its reply's reserve
	input, output             int
	cut, calls, prose         int // replies
	failed                    int
}

func (w *watched) Capabilities() memgpt.Capabilities { return w.inner.Capabilities() }

func (w *watched) ask(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = text
}

func (w *watched) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	req.Restore()
	c := *req
	c.Again = nil // it is looked at several times
	size, err := w.inner.Count(ctx, &c)
	if err != nil {
		w.t.Errorf("the server doesn't count a request: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	if req.Purpose == memgpt.PurposeSummary {
		asked = ""
		w.seen.summaries++
	}
	if err := checkv.Check(&c, size, window, asked); err != nil {
		w.t.Errorf("request %d: %v", w.seen.requests+1, err)
	}
	w.seen.requests++
	w.seen.most = max(w.seen.most, size+c.MaxTokens)
	c.MaxTokens = min(max(c.MaxTokens, 1), replySize)
	resp, err := w.inner.Generate(ctx, &c, stream)
	w.note(size, resp, err)
	return resp, err
}

func (w *watched) note(size int, resp *memgpt.Response, err error) {
	if resp == nil {
		w.seen.failed++
		w.t.Logf("the model failed: %v", err)
		return
	}
	if resp.Usage.Input != size {
		w.t.Errorf("we count %d tokens of a request, and the server reports %d", size, resp.Usage.Input)
	}
	w.seen.input += resp.Usage.Input
	w.seen.output += resp.Usage.Output
	if resp.Finish == memgpt.FinishLength {
		w.seen.cut++
	}
	if len(resp.Message.Calls()) > 0 {
		w.seen.calls++
	} else {
		w.seen.prose++
	}
}

// forcing requires a call of each reply, and leaves room for it.
type forcing struct{ memgpt.Model }

func (m *forcing) Generate(ctx context.Context, req *memgpt.Request, stream func(memgpt.Delta)) (*memgpt.Response, error) {
	req.Restore()
	c := *req
	c.Again, c.Choice, c.MaxTokens = nil, memgpt.ChoiceRequired, 4*replySize
	return m.Model.Generate(ctx, &c, stream)
}

// agent is one agent with its kernel, on a store of its own.
type agent struct {
	t      testing.TB
	store  *sqlite.Store
	kernel *kernel.Kernel
	id     string
	thread string
	newID  func(string) string
	model  memgpt.Model // that answers the next turn

	said    []string
	flushed int
	failed  []string // folds that failed
}

func newAgent(t testing.TB, protocol memgpt.Protocol, system func(compact, native bool) ([]tool.Tool, error)) *agent {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "memgpt.db"), Unsafe: true})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	a := &agent{t: t, store: s, newID: kernel.NewIDs(rand.Reader, time.Now)}
	count, err := token.New(token.Config{})
	must(t, err)
	search, err := retrieve.New(retrieve.Config{Index: s, Store: s})
	must(t, err)
	if system == nil {
		system = memtool.System
	}
	a.kernel, err = kernel.New(kernel.Config{Store: s, Search: search, Analyzer: new(retrieve.Analyzer), Counter: count, NewID: a.newID,
		Model: func(memgpt.Agent) (memgpt.Model, error) { return a.model, nil }, System: system, Normalize: retrieve.SameKey})
	must(t, err)
	now := time.Now()
	human := memgpt.Block{ID: a.newID("block"), Label: "human", Limit: 2000}
	row := memgpt.Agent{ID: a.newID("agent"), Name: "real", Protocol: protocol, Blocks: []string{human.ID}, Window: window, Created: now,
		Policy: memgpt.Policy{MaxSteps: 4}}
	th := memgpt.Thread{ID: a.newID("conv"), Agent: row.ID, Name: "main", Next: 1, Created: now}
	a.id, a.thread = row.ID, th.ID
	_, err = s.Commit(t.Context(), &store.Commit{Now: now, Agents: []memgpt.Agent{row}, Blocks: []memgpt.Block{human}, Threads: []memgpt.Thread{th}})
	must(t, err)
	return a
}

// say sends a user's message and runs its turn to the end.
func (a *agent) say(text string) memgpt.Turn {
	a.t.Helper()
	if w, ok := a.model.(*watched); ok {
		w.ask(text[:min(len(text), 40)])
	}
	now := time.Now()
	ev := memgpt.Event{ID: a.newID("event"), Agent: a.id, Thread: a.thread, Type: memgpt.EventUser, Due: now, Created: now,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text), Turn: a.newID("turn")}
	done, err := a.store.Commit(a.t.Context(), &store.Commit{Now: now, Events: []memgpt.Event{ev},
		Acquire: &store.Lease{Thread: a.thread, Until: now.Add(time.Hour)}})
	must(a.t, err)
	st, err := store.Load(a.t.Context(), a.store, "", a.thread)
	must(a.t, err)
	a.said = nil
	w := &store.Work{State: st, Event: ev, Lease: *done.Lease, TTL: time.Hour, Emit: a.hear,
		Turn: memgpt.Turn{ID: ev.Turn, Agent: ev.Agent, Thread: ev.Thread, Event: ev.ID, Type: ev.Type, State: memgpt.TurnQueued}}
	must(a.t, a.kernel.Run(a.t.Context(), w))
	return w.Turn
}

func (a *agent) hear(u memgpt.Update) {
	switch u := u.(type) {
	case memgpt.Spoke:
		a.said = append(a.said, u.Text)
	case memgpt.Flushed:
		a.flushed++
		if u.Failed != "" {
			a.failed = append(a.failed, u.Failed)
		}
	}
}

// log is what the store holds of the conversation.
func (a *agent) log() []memgpt.Entry {
	a.t.Helper()
	entries, err := a.store.Entries(a.t.Context(), store.EntryRange{Thread: a.thread})
	must(a.t, err)
	return entries
}

// passages is how many passages the agent has in archival storage.
func (a *agent) passages() int {
	a.t.Helper()
	list, err := a.store.PassagesOf(a.t.Context(), store.PassageRange{Owner: a.id})
	must(a.t, err)
	return len(list)
}

// told returns a message about everyday things, about 190 tokens long and like no other.
func told(n int) string {
	lines := []string{
		"This morning the milk cart came late, because a wheel had come off on the hill behind the mill.",
		"My neighbour has bought three geese, and they follow the postman down the lane as far as the pump.",
		"We are going to mend the roof of the shed before the rain sets in, if the ladder holds.",
		"The choir sang in the square until it got dark, and somebody brought roasted chestnuts for everyone.",
		"I found an old map of the harbour in a drawer, with notes in a hand that nobody here knows.",
		"Tomorrow the ferry runs only twice, so we have to be at the landing stage before nine.",
		"The pear tree carries more fruit than ever, and the branches have to be propped up with poles.",
	}
	var b strings.Builder
	fmt.Fprintf(&b, "This is letter number %d.", n)
	for i := range 8 {
		b.WriteString(" " + lines[(n+i)%len(lines)])
	}
	return b.String()
}
