package kernel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/storetest"
)

// meanwhile is a store on which something happens just before the first commit that edits blocks.
type meanwhile struct {
	store.Store
	once func()
}

func (s *meanwhile) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	if do := s.once; len(c.Blocks) > 0 && do != nil {
		s.once = nil
		do()
	}
	return s.Store.Commit(ctx, c)
}

// set writes a block's value as somebody else.
func (e *env) set(label, value string, cause memgpt.Cause) {
	e.t.Helper()
	st, err := store.Load(e.t.Context(), e.base, "", e.thread)
	must(e.t, err)
	for _, b := range st.Blocks {
		if b.Label == label {
			b.Value = value
			_, err := e.base.Commit(e.t.Context(), &store.Commit{Now: e.now, Blocks: []memgpt.Block{b},
				Edits: []store.BlockEdit{{Block: b.ID, Version: b.Version + 1, Value: value, Time: e.now, Cause: cause}}})
			must(e.t, err)
		}
	}
}

// TestAUsersStepIsNotAskedAgainForTidying: what tidying made of a block meanwhile leaves a user's step standing, whatever the
// step does to the block, and nothing of either is lost.
func TestAUsersStepIsNotAskedAgainForTidying(t *testing.T) {
	for _, c := range []struct {
		name, theirs, want string
		edit               script.Reply
	}{
		{"append", "Ines, Porto.", "Ines, Porto.\nLikes tea.", script.Call("core_memory_append", "label", "human", "content", "Likes tea.")},
		{"rewrite", "Her name is Ines.\nShe lives in Porto.\nBorn in May.", "Ines of Porto, likes tea.\nBorn in May.",
			script.Call("memory_rethink", "label", "human", "new_memory", "Ines of Porto, likes tea.")},
		{"a text that is there no more", "Ines, Porto.", "She lives in Faro.\nInes, Porto.",
			script.Call("memory_replace", "label", "human", "old_string", "lives in Porto", "new_string", "lives in Faro")},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := script.Of(script.Calls(c.edit, script.Say("done")))
			e := newEnv(t, m, options{})
			e.set("human", "Her name is Ines.\nShe lives in Porto.", memgpt.Cause{})
			e.store = &meanwhile{Store: e.base, once: func() { e.set("human", c.theirs, memgpt.Cause{}) }}
			e.configure(m, options{})
			said, turn := e.say("hello")
			if got := e.block("human"); got != c.want || len(said) != 1 || turn.Steps != 1 || len(m.Requests()) != 1 {
				t.Errorf("said %q in %d steps by %d calls; the block holds %q", said, turn.Steps, len(m.Requests()), got)
			}
		})
	}
}

// TestTidyingNeverOverwritesWhatItDidNotSee: a rewriting by a stale read fails and shows what is there; the tidier decides anew.
func TestTidyingNeverOverwritesWhatItDidNotSee(t *testing.T) {
	rewrite := func(value string) script.Reply {
		return script.Call("memory_rethink", "label", "human", "new_memory", value, "reason", "shorter")
	}
	tidier := script.Of(rewrite("Ines."), rewrite("Ines, moved to Faro."), script.Call("yield"))
	talker := script.Of(script.Say("hi"))
	e := newTidyEnv(t, talker, tidier, options{})
	e.set("human", "Her name is Ines.", memgpt.Cause{})
	e.say("hello")
	e.store = &meanwhile{Store: e.base, once: func() { e.set("human", "Her name is Ines.\nShe moved to Faro.", memgpt.Cause{}) }}
	e.reconfigure(func() { e.config.Store = e.store })
	turn := e.tidyOnce()
	if got := e.block("human"); got != "Ines, moved to Faro." || turn.Steps != 3 {
		t.Errorf("%d steps, the block holds %q", turn.Steps, got)
	}
	last := tidier.Requests()[1].Messages
	if said := last[len(last)-1].Said(); !strings.Contains(said, "She moved to Faro.") || !strings.Contains(said, "Failed") {
		t.Errorf("the tidier was told %q", said)
	}
}

// TestTidyCrashAtEveryCommit: the process dies at each call of the store in turn. What was tidied is tidied once, and all that
// was said is read.
func TestTidyCrashAtEveryCommit(t *testing.T) {
	for _, mode := range []struct {
		name           string
		commits, after bool
	}{{"before the commit", true, false}, {"after the commit", true, true}, {"any call", false, false}} {
		t.Run(mode.name, func(t *testing.T) {
			for at := int64(1); ; at++ {
				if long() || (at-1)%every(mode.commits) == 0 {
					if !tidyCrash(t, &storetest.Faulty{At: at, Commits: mode.commits, After: mode.after}) {
						return
					}
				}
			}
		})
	}
}

// tidyCrash runs a turn of tidying of three steps over a store that dies, and runs it to its end. It reports whether the store
// died.
func tidyCrash(t *testing.T, faulty *storetest.Faulty) bool {
	var read []string
	tidier := script.New(script.Config{Func: func(_ int, req *memgpt.Request) script.Reply {
		steps := 0
		for i := range req.Messages {
			steps += len(req.Messages[i].Calls())
		}
		switch steps {
		case 0, 2:
			read = append(read, tidyGiven(t, req))
			n := fmt.Sprint(steps)
			return script.Calls(script.Call("core_memory_append", "label", "human", "content", "fact "+n+";", "reason", "x"),
				script.Call("archival_memory_insert", "content", "note "+n, "reason", "x"))
		}
		return script.Call("yield")
	}})
	e := newTidyEnv(t, script.Of(script.Say("one")), tidier, options{})
	e.say("remember this")
	ev := e.acceptTidy()
	faulty.Inner = e.base
	e.reconfigure(func() { e.config.Store = faulty })
	e.store, e.thread = faulty, store.TidyThreadID(e.agent.ID)
	_, err := e.handle(t.Context(), ev)
	if (err != nil) != faulty.Dead() {
		t.Fatalf("at %d: %v", faulty.At, err)
	}
	e.store = e.base
	e.reconfigure(func() { e.config.Store = e.base })
	e.now = e.now.Add(2 * time.Minute)
	for {
		done, err := e.base.Commit(t.Context(), &store.Commit{Now: e.now, Acquire: &store.Lease{Thread: e.thread, Until: e.now.Add(time.Minute)}})
		must(t, err)
		pending, err := e.base.Events(t.Context(), store.EventRange{Thread: e.thread})
		must(t, err)
		if len(pending) == 0 {
			break
		}
		e.lease = done.Lease
		_, err = e.handle(t.Context(), pending[0])
		must(t, err)
	}
	if got := e.block("human"); got != "fact 0;\nfact 2;" {
		t.Fatalf("at %d: the block holds %q", faulty.At, got)
	}
	list, err := e.base.PassagesOf(t.Context(), store.PassageRange{Owner: e.agent.ID})
	must(t, err)
	if mark := e.mark(); len(list) != 2 || mark.Seen[e.main] != 3 || mark.Turn != "" || mark.Next != nil {
		t.Fatalf("at %d: %d passages, %+v", faulty.At, len(list), mark)
	}
	for _, r := range read {
		if !strings.Contains(r, "remember this") {
			t.Fatalf("at %d: the tidier was given %q", faulty.At, r)
		}
	}
	return faulty.Dead()
}

// TestBlockHistoryIsLinear lets agents with a shared block, their users and their tidying edit it at once, over a store on
// which commits are refused and processes die. The history of the block must be one sequence: versions without gaps, each
// value made from the one before, and no token gone that no edit took out.
func TestBlockHistoryIsLinear(t *testing.T) {
	rounds := 200
	switch {
	case long():
		rounds = 2000
	case raced:
		rounds = 40
	}
	var total linearTally
	for seed := range rounds {
		linearRound(t, uint64(seed), &total)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d rounds: %+v", rounds, total)
	if total.edits < 8*rounds || total.conflicts < rounds || total.rewrites < rounds || total.deaths < rounds/8 || total.removed < rounds/2 {
		t.Error("the rounds did not meet what they are for")
	}
}

type linearTally struct{ edits, conflicts, rewrites, deaths, removed, stale int }

// linearWorld is the store of a round, with those who edit the block.
type linearWorld struct {
	t      *testing.T
	rng    *rand.Rand
	env    *env
	block  string // ID
	actors []*linearActor
	tokens int
	calls  map[string]linearEdit // what models asked for, by token added
	tally  *linearTally
}

// linearEdit is what one call is to do.
type linearEdit struct{ removes []string }

// linearActor runs one conversation: an agent's with its user, or that for tidying.
type linearActor struct {
	env
	world   *linearWorld
	tidy    bool
	running bool
	through *linearSwitch // to the store of its process
}

// Commit lets others run before a commit that edits the block, and counts refusals.
func (w *linearWorld) before(ctx context.Context, s store.Store, c *store.Commit) (store.Committed, error) {
	if len(c.Blocks) > 0 && w.rng.IntN(2) == 0 {
		w.actors[w.rng.IntN(len(w.actors))].act()
	}
	done, err := s.Commit(ctx, c)
	if memgpt.CodeOf(err) == memgpt.CodeConflict {
		w.tally.conflicts++
	}
	return done, err
}

// linearSwitch is a store in whose place another comes with the next process.
type linearSwitch struct{ store.Store }

type linearStore struct {
	store.Store
	world *linearWorld
}

func (s *linearStore) Commit(ctx context.Context, c *store.Commit) (store.Committed, error) {
	return s.world.before(ctx, s.Store, c)
}

// linearLines returns the lines of the block as a request shows them.
func linearLines(req *memgpt.Request) []string {
	_, rest, _ := strings.Cut(req.Messages[0].Said(), `<block label="human"`)
	_, rest, _ = strings.Cut(rest, ">\n")
	value, _, _ := strings.Cut(rest, "</block>")
	return strings.Fields(value)
}

// reply edits the block once or twice in a turn, by what the model sees of it.
func (w *linearWorld) reply(req *memgpt.Request) script.Reply {
	calls := 0
	for i := len(req.Messages) - 1; i > 0 && (req.Messages[i].Role == memgpt.RoleTool || len(req.Messages[i].Calls()) > 0); i-- {
		calls += len(req.Messages[i].Calls())
	}
	tidy := !slices.ContainsFunc(req.Tools, func(s memgpt.ToolSpec) bool { return s.Name == memgpt.FuncSendMessage })
	if calls > 1+w.rng.IntN(2) {
		if tidy {
			return script.Call("yield")
		}
		return script.Say("done")
	}
	w.tokens++
	lines, token := linearLines(req), fmt.Sprintf("t%04d", w.tokens) // none is a part of another
	var edit script.Reply
	var e linearEdit
	more := []any{"reason", "x"}
	if !tidy {
		more = []any{"request_heartbeat", true}
	}
	args := func(args ...any) []any { return append(append([]any{"label", "human"}, args...), more...) }
	switch kind := w.rng.IntN(3); {
	case kind == 0 || len(lines) == 0:
		edit = script.Call("core_memory_append", args("content", token)...)
	case kind == 1:
		old := lines[w.rng.IntN(len(lines))]
		e.removes = []string{old}
		edit = script.Call("memory_replace", args("old_string", old, "new_string", token)...)
	default:
		w.tally.rewrites++
		kept := slices.Clone(lines)
		for range w.rng.IntN(3) {
			if len(kept) > 0 {
				i := w.rng.IntN(len(kept))
				e.removes = append(e.removes, kept[i])
				kept = slices.Delete(kept, i, i+1)
			}
		}
		edit = script.Call("memory_rethink", args("new_memory", strings.Join(append(kept, token), "\n"))...)
	}
	w.calls[token] = e
	return edit
}

// act runs what waits for the conversation, and something new, unless it is being run. The process may die.
func (a *linearActor) act() {
	w := a.world
	if a.running {
		return
	}
	a.running = true
	defer func() { a.running = false }()
	faulty := &storetest.Faulty{Inner: &linearStore{w.env.base, w}, Commits: true, After: w.rng.IntN(2) == 0}
	if w.rng.IntN(6) == 0 {
		faulty.At = 1 + w.rng.Int64N(4)
	}
	a.through.Store = faulty
	a.run(true)
	if faulty.Dead() {
		w.tally.deaths++
	}
}

// run handles all that is pending, and one event more.
func (a *linearActor) run(more bool) {
	w := a.world
	w.env.now = w.env.now.Add(2 * time.Minute)
	a.now = w.env.now
	ctx := w.t.Context()
	if pending, err := w.env.base.Events(ctx, store.EventRange{Thread: a.thread}); more && err == nil && len(pending) == 0 {
		e := store.TidyEvent(&a.agent, a.newID, a.now, a.now, "test")
		if !a.tidy {
			m := memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "go on")
			e = memgpt.Event{ID: e.ID, Turn: e.Turn, Agent: a.agent.ID, Thread: a.thread, Type: memgpt.EventUser, Due: a.now, Created: a.now, Message: m}
		}
		_, err := w.env.base.Commit(ctx, &store.Commit{Now: a.now, Events: []memgpt.Event{e}})
		must(w.t, err)
	}
	for {
		pending, err := w.env.base.Events(ctx, store.EventRange{Thread: a.thread})
		must(w.t, err)
		if len(pending) == 0 {
			return
		}
		done, err := w.env.base.Commit(ctx, &store.Commit{Now: a.now, Acquire: &store.Lease{Thread: a.thread, Until: a.now.Add(time.Minute)}})
		must(w.t, err)
		if a.lease = done.Lease; a.lease == nil {
			w.t.Fatal("no lease")
		}
		if _, err := a.handle(ctx, pending[0]); err != nil {
			if f, ok := a.through.Store.(*storetest.Faulty); !ok || !f.Dead() {
				w.t.Fatalf("%s: %v", a.thread, err)
			}
			return
		}
	}
}

func linearRound(t *testing.T, seed uint64, tally *linearTally) {
	w := &linearWorld{t: t, rng: rand.New(rand.NewPCG(seed, 11)), calls: map[string]linearEdit{}, tally: tally}
	m := script.New(script.Config{CountOnly: true, Func: func(_ int, req *memgpt.Request) script.Reply { return w.reply(req) },
		Summary: func(*memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x") }})
	w.env = newEnv(t, m, options{seed: seed})
	w.block = w.env.agent.Blocks[1]
	for n := range 2 {
		a := w.env.agent
		if n > 0 { // another agent with the block
			a = memgpt.Agent{ID: w.env.newID("agent"), Name: "other", Blocks: []string{w.block}, Created: w.env.now}
			_, err := w.env.base.Commit(t.Context(), &store.Commit{Now: w.env.now, Agents: []memgpt.Agent{a}})
			must(t, err)
		}
		talk := memgpt.Thread{ID: w.env.newID("conv"), Agent: a.ID, Name: "talk", Next: 1, Created: w.env.now}
		tidy := memgpt.Thread{ID: store.TidyThreadID(a.ID), Agent: a.ID, Name: store.TidyThread, Next: 1, Created: w.env.now}
		_, err := w.env.base.Commit(t.Context(), &store.Commit{Now: w.env.now, Threads: []memgpt.Thread{talk, tidy}})
		must(t, err)
		for _, th := range []memgpt.Thread{talk, tidy} {
			actor := &linearActor{env: *w.env, world: w, tidy: th.ID == tidy.ID, through: &linearSwitch{w.env.base}}
			actor.agent, actor.thread, actor.store = a, th.ID, actor.through
			actor.reconfigure(func() { actor.config.Store = actor.through })
			w.actors = append(w.actors, actor)
		}
	}
	for range 6 {
		w.actors[w.rng.IntN(len(w.actors))].act()
	}
	for _, a := range w.actors { // nobody dies any more
		a.through.Store = w.env.base
		a.run(false)
	}
	w.check()
}

// accepted returns the tokens of the edits whose calls succeeded, by the logs.
func (w *linearWorld) accepted() map[string]bool {
	ok := map[string]bool{}
	for _, a := range w.actors {
		entries, err := w.env.base.Entries(w.t.Context(), store.EntryRange{Thread: a.thread})
		must(w.t, err)
		args := map[string]string{}
		for _, e := range entries {
			for _, c := range e.Message.Calls() {
				args[c.ID] = c.Arguments
			}
			if res, is := e.Message.Result(); is && !res.Failed {
				for token := range w.calls {
					if strings.Contains(args[res.CallID], token+`"`) {
						ok[token] = true
					}
				}
			} else if is && strings.Contains(res.Text, "edited meanwhile") {
				w.tally.stale++
			}
		}
	}
	return ok
}

// check holds that the history is one sequence in which nothing is lost.
func (w *linearWorld) check() {
	t := w.t
	history, err := w.env.base.BlockHistory(t.Context(), "", w.block)
	must(t, err)
	ok, seen, removed := w.accepted(), map[string]bool{}, map[string]bool{}
	var before []string
	for i, e := range history {
		if i > 0 && e.Version != history[i-1].Version+1 {
			t.Errorf("version %d follows %d", e.Version, history[i-1].Version)
		}
		now := strings.Fields(e.Value)
		var adds, takes []string
		for _, token := range now {
			if !slices.Contains(before, token) {
				adds = append(adds, token)
			}
		}
		for _, token := range before {
			if !slices.Contains(now, token) {
				takes = append(takes, token)
			}
		}
		w.tally.edits++
		if len(adds) != 1 || !ok[adds[0]] || seen[adds[0]] {
			t.Errorf("version %d: %q became %q, which adds %q: not one accepted edit that is new", e.Version, before, now, adds)
			return
		}
		seen[adds[0]] = true
		for _, token := range takes {
			removed[token] = true
			if w.tally.removed++; !slices.Contains(w.calls[adds[0]].removes, token) {
				t.Errorf("version %d: %q became %q: %s is lost, which %s did not take out", e.Version, before, now, token, adds[0])
			}
		}
		before = now
	}
	for token := range ok {
		if !seen[token] || !removed[token] && !slices.Contains(before, token) {
			t.Errorf("the edit that adds %s was accepted and is not in the history, or is gone: %q", token, before)
		}
	}
	blocks, err := w.env.base.Blocks(t.Context(), "", []string{w.block})
	must(t, err)
	if strings.Join(before, "\n") != blocks[0].Value {
		t.Errorf("the block holds %q, its history ends with %q", blocks[0].Value, before)
	}
}
