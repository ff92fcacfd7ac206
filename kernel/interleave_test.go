package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/host"
	"memgpt/kernel"
	"memgpt/memtool"
	"memgpt/model/script"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/store/storetest"
	"memgpt/tool"
)

// TestInterleavings lets two processes run one agent's conversations while messages of every delivery, alerts, timers and
// cancels come at random times and processes die at random calls of the store. No event is lost, none is acted on twice,
// each ends in one record, the log is well formed, and no conversation runs twice at once.
func TestInterleavings(t *testing.T) {
	rounds := 40
	switch {
	case long():
		rounds = 1000
	case raced:
		rounds = 15
	}
	var total tally
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) { total.add(interleave(t, uint64(seed))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d rounds: %+v", rounds, total)
	if total.steered < rounds || total.replaced < rounds/10 || total.cancelled < rounds/10 || total.deaths < rounds/2 || total.cut == 0 ||
		total.withdrawn < rounds/10 || total.interrupted == 0 || total.handed < rounds/2 || total.handedLate < rounds/10 {
		t.Error("the rounds did not meet what they are for")
	}
}

// tally counts what rounds met.
type tally struct {
	events, own, steered, replaced, cancelled, withdrawn, deaths, cut, interrupted, handed, handedLate int
}

func (a *tally) add(b tally) {
	a.events, a.own, a.steered, a.replaced = a.events+b.events, a.own+b.own, a.steered+b.steered, a.replaced+b.replaced
	a.cancelled, a.withdrawn, a.deaths = a.cancelled+b.cancelled, a.withdrawn+b.withdrawn, a.deaths+b.deaths
	a.cut, a.interrupted = a.cut+b.cut, a.interrupted+b.interrupted
	a.handed, a.handedLate = a.handed+b.handed, a.handedLate+b.handedLate
}

// melee is one round.
type melee struct {
	*env
	tally
	model   *script.Model
	act     tool.Tool
	threads []memgpt.Thread
	alive   []*fighter
	sent    []*parcel
	follows sync.WaitGroup

	mu    sync.Mutex // guards what goroutines of hosts use
	rng   *rand.Rand
	acted map[string]int
	busy  map[string]*fighter // who runs a conversation
}

// fighter is a process.
type fighter struct {
	*melee
	host  *host.Host
	store *storetest.Faulty
	run   *kernel.Kernel
}

// parcel is an event that was sent.
type parcel struct {
	text      string
	thread    memgpt.Thread
	from      *fighter
	event     string
	turn      string
	handle    *host.Turn
	delivery  memgpt.Delivery
	cancelled bool
}

func interleave(t *testing.T, seed uint64) tally {
	m := newMelee(t, seed)
	for range 14 {
		m.step()
		time.Sleep(m.chance(6000) * time.Millisecond)
	}
	m.drain()
	m.check()
	for _, f := range m.alive {
		must(t, f.host.Close(context.Background()))
	}
	m.follows.Wait()
	return m.tally
}

func (m *melee) chance(n int64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Duration(m.rng.Int64N(n))
}

func newMelee(t *testing.T, seed uint64) *melee {
	m := &melee{rng: rand.New(rand.NewPCG(seed, 11)), acted: map[string]int{}, busy: map[string]*fighter{}}
	m.env = &env{t: t, newID: lockedIDsOf(seed)}
	base, err := sqlite.Open(t.Context(), sqlite.Config{Path: t.TempDir() + "/memgpt.db", Unsafe: true, Readers: 2})
	must(t, err)
	t.Cleanup(func() { must(t, base.Close()) })
	m.base, m.store, m.now = base, base, time.Now()
	m.act, err = memtool.New("act", "acts on a message", memgpt.EffectOutside, func(ctx context.Context, in struct {
		On string `json:"on"`
	}) (string, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.acted[in.On]++
		return "acted", nil
	})
	must(t, err)
	m.model = script.New(script.Config{CountOnly: true, Func: m.reply, NewID: func(int) string { return "" }})
	m.configure(m.model, options{window: 100_000, tools: []tool.Tool{m.act}})
	o := options{}
	if seed%2 == 0 {
		o.prefetch = memgpt.Prefetch{Mode: memgpt.PrefetchOn, Budget: 300}
	}
	m.makeAgent(o)
	for i := range 2 {
		m.fight(i > 0)
	}
	for _, name := range []string{host.MainThread, "side"} {
		th, err := m.alive[0].host.Thread(t.Context(), m.agent, name)
		must(t, err)
		m.threads = append(m.threads, th)
	}
	return m
}

func lockedIDsOf(seed uint64) func(string) string {
	var mu sync.Mutex
	ids := kernel.NewIDs(byteSource{rand.New(rand.NewPCG(seed, 7))}, time.Now)
	return func(kind string) string {
		mu.Lock()
		defer mu.Unlock()
		return ids(kind)
	}
}

// fight starts a process, one that dies at some call of its store if mortal.
func (m *melee) fight(mortal bool) {
	f := &fighter{melee: m, store: &storetest.Faulty{Inner: m.base}}
	if mortal {
		f.store.At, f.store.Commits, f.store.After = int64(m.chance(40)+2), m.chance(2) == 0, m.chance(2) == 0
	}
	cfg := m.config
	cfg.Store, cfg.Now, cfg.NewID = f.store, time.Now, m.newID
	var err error
	f.run, err = kernel.New(cfg)
	must(m.t, err)
	f.host, err = host.New(host.Config{Store: f.store, Kernel: f, NewID: m.newID, Poll: time.Second, Report: func(err error) {
		if memgpt.CodeOf(err) != memgpt.CodeClosed { // the store died
			m.t.Errorf("a host reports: %v", err)
		}
	}})
	must(m.t, err)
	m.alive = append(m.alive, f)
	if err := f.host.Start(m.t.Context()); err != nil && !f.store.Dead() {
		m.t.Fatal(err)
	}
}

// Run implements host.Runner. It notices who runs a conversation that another runs.
func (f *fighter) Run(ctx context.Context, w *store.Work) error {
	thread := w.Event.Thread
	f.mu.Lock()
	if other := f.busy[thread]; other != nil && !other.store.Dead() {
		f.t.Errorf("conversation %s runs twice at once", thread)
	}
	f.busy[thread] = f
	f.mu.Unlock()
	emit := w.Emit
	w.Emit = func(u memgpt.Update) {
		f.mu.Lock()
		switch u := u.(type) {
		case memgpt.StepDiscarded:
			if strings.Contains(u.Reason, "cut off") {
				f.cut++
			}
		case memgpt.TurnEnded: // its commit gave the conversation back
			if f.busy[thread] == f {
				f.busy[thread] = nil
			}
		}
		f.mu.Unlock()
		emit(u)
	}
	more := w.More
	w.More = func() bool { // so does the commit that asks this
		f.mu.Lock()
		if f.busy[thread] == f {
			f.busy[thread] = nil
		}
		f.mu.Unlock()
		return more()
	}
	err := f.run.Run(ctx, w)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[thread] == f {
		f.busy[thread] = nil
	}
	return err
}

// reply acts once on each message that it reads and has not acted on since, in a step each, and now and then thinks long.
func (m *melee) reply(n int, req *memgpt.Request) script.Reply {
	if err := checkV(req, m.count, 1, 100_000, ""); err != nil {
		m.t.Errorf("request: %v", err)
	}
	var todo []string
	for i := range req.Messages {
		msg := &req.Messages[i]
		var said struct{ Type, Message string }
		if msg.Role == memgpt.RoleUser && json.Unmarshal([]byte(msg.Said()), &said) == nil && strings.HasPrefix(said.Message, "#") {
			todo = append(todo, said.Message)
		}
		for _, c := range msg.Calls() {
			var in struct{ On string }
			if c.Name == "act" && json.Unmarshal([]byte(c.Arguments), &in) == nil {
				todo = slices.DeleteFunc(todo, func(s string) bool { return s == in.On })
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var r script.Reply
	switch {
	case len(todo) > 0:
		r = script.Call("act", "on", todo[0], "request_heartbeat", true)
	case m.rng.IntN(2) == 0:
		r = script.Call("core_memory_append", "label", "human", "content", fmt.Sprintf("%d;", n), "request_heartbeat", true)
	default:
		r = script.Say("done")
	}
	r.Delay = time.Duration(m.rng.Int64N(4000)) * time.Millisecond
	if m.rng.IntN(12) == 0 {
		r.Delay += 45 * time.Second
	}
	return r
}

// step does one thing at random.
func (m *melee) step() {
	m.bury()
	f := m.alive[m.chance(int64(len(m.alive)))]
	switch m.chance(10) {
	case 0, 1:
		if len(m.sent) > 0 {
			m.cancelOne(f, m.sent[m.chance(int64(len(m.sent)))])
		}
	case 2:
		m.send(f, memgpt.EventAlert, memgpt.DeliverSteer, 0)
	case 3:
		m.send(f, memgpt.EventHeartbeat, memgpt.DeliverQueue, m.chance(20)*time.Second)
	case 4:
		m.send(f, memgpt.EventUser, memgpt.DeliverReplace, 0)
	case 5:
		m.send(f, memgpt.EventUser, memgpt.DeliverQueue, 0)
	default:
		m.send(f, memgpt.EventUser, "", 0)
	}
}

// bury replaces the processes that died.
func (m *melee) bury() {
	n := len(m.alive)
	m.alive = slices.DeleteFunc(m.alive, func(f *fighter) bool {
		if f.store.Dead() {
			must(m.t, f.host.Close(context.Background())) // ends its goroutines; nothing of it reaches the store any more
		}
		return f.store.Dead()
	})
	for range n - len(m.alive) {
		m.deaths++
		m.fight(m.chance(2) == 0)
	}
}

func (m *melee) send(f *fighter, typ memgpt.EventType, d memgpt.Delivery, later time.Duration) {
	p := &parcel{text: fmt.Sprintf("#%d what did we say of oars?", len(m.sent)), thread: m.threads[min(m.chance(4), 1)^1], from: f, delivery: d}
	msg := host.Message{Agent: m.agent.ID, Thread: p.thread.ID, Type: typ, Delivery: d, Key: p.text,
		Message: memgpt.Message{Parts: memgpt.Parts{memgpt.Text{Text: p.text}}}}
	if later > 0 {
		msg.Due = time.Now().Add(later)
	}
	turn, err := f.host.Send(m.t.Context(), msg)
	for err != nil { // a client that doesn't know whether it was accepted sends it again, under its key
		if !f.store.Dead() {
			m.t.Fatalf("send: %v", err)
		}
		m.bury()
		f = m.alive[m.chance(int64(len(m.alive)))]
		p.from = f
		turn, err = f.host.Send(m.t.Context(), msg)
	}
	p.event, p.turn, p.handle = turn.Event, turn.ID, turn
	m.sent = append(m.sent, p)
	if m.chance(3) == 0 {
		m.follows.Go(func() { m.follow(f, p) })
	}
}

// follow waits for the end of a message as a client does.
func (m *melee) follow(f *fighter, p *parcel) {
	record, err := f.host.Follow(context.Background(), p.handle, func(memgpt.Update) error { return nil })
	if err != nil && !f.store.Dead() || err == nil && record.Stop == memgpt.StopSteered {
		m.t.Errorf("following %s came to %+v, %v", p.text, record, err)
	}
}

func (m *melee) cancelOne(f *fighter, p *parcel) {
	err := f.host.Cancel(m.t.Context(), "", p.turn)
	switch memgpt.CodeOf(err) {
	case memgpt.CodeInvalid, memgpt.CodeNotFound, memgpt.CodeConflict:
	case "":
		p.cancelled = true
	default:
		if !f.store.Dead() {
			m.t.Errorf("cancel: %v", err)
		}
		p.cancelled = true
	}
}

// drain waits until nothing is pending.
func (m *melee) drain() {
	for range 400 {
		m.bury()
		pending, err := m.base.Events(m.t.Context(), store.EventRange{AllTenants: true})
		must(m.t, err)
		if len(pending) == 0 {
			time.Sleep(time.Minute)
			return
		}
		time.Sleep(5 * time.Second)
	}
	m.t.Fatal("events stay in the inbox")
}

func (m *melee) check() {
	turns := map[string]memgpt.Turn{}
	logs := map[string][]memgpt.Entry{}
	for _, th := range m.threads {
		m.thread = th.ID
		logs[th.ID] = m.checkState(nil)
		m.checkLog(logs[th.ID])
	}
	for _, p := range m.sent {
		record, err := m.base.Turn(m.t.Context(), "", p.turn)
		must(m.t, err)
		turns[p.turn] = record
		if f := p.from; !f.store.Dead() {
			got, err := p.handle.Wait(m.t.Context())
			if err != nil || got.State != record.State || got.Stop != record.Stop || got.Into != record.Into {
				m.t.Errorf("%s: the sender was told %+v, %v; the record is %+v", p.text, got, err, record)
			}
		}
		m.checkParcel(p, record, logs[p.thread.ID])
	}
	for _, p := range m.sent {
		if into := turns[p.turn].Into; into != "" && turns[into].Stop == memgpt.StopSteered {
			m.t.Errorf("%s was taken in by a turn that was taken in", p.text)
		}
	}
	for text, n := range m.acted {
		if n > 1 {
			m.t.Errorf("%s was acted on %d times", text, n)
		}
	}
	if m.t.Failed() {
		m.dump(logs)
	}
}

// dump prints what a failed round left.
func (m *melee) dump(logs map[string][]memgpt.Entry) {
	for _, log := range logs {
		for _, e := range log {
			record, err := m.base.Turn(m.t.Context(), "", e.Turn)
			m.t.Logf("%d %s turn %s step %d (%s %s %s, %v): %s %q %v", e.Seq, e.Time.Format(time.TimeOnly), e.Turn[len(e.Turn)-4:], e.Step,
				record.State, record.Stop, record.Into, err, e.Message.Type, e.Message.Said(), e.Message.Calls())
		}
	}
}

// checkParcel holds what must be true of an event: it ended one way, and its message is in the log once, in the place
// that this way gives it.
func (m *melee) checkParcel(p *parcel, record memgpt.Turn, log []memgpt.Entry) {
	at, n, first, last := 0, 0, len(log), -1
	for i, e := range log {
		if e.Message.Said() == p.text && e.Message.Type != "" {
			n++
			at = i
			if e.Turn != p.turn {
				m.t.Errorf("%s stands in the log under turn %s, its own is %s", p.text, e.Turn, p.turn)
			}
		}
		if e.Turn == record.Into {
			first, last = min(first, i), i
		}
	}
	want := 1
	m.events++
	switch {
	case record.State == memgpt.TurnWithdrawn && p.cancelled:
		want = 0
		m.withdrawn++
	case record.State == memgpt.TurnDone && record.Stop == memgpt.StopSteered:
		m.steered++
		if first >= at || last <= at || p.delivery == memgpt.DeliverQueue {
			m.t.Errorf("%s (%s) stands at %d, the turn that took it in from %d to %d", p.text, p.delivery, at, first, last)
		}
	case record.State == memgpt.TurnDone && record.Stop == memgpt.StopEnd:
		m.own++
		if m.acted[p.text] == 0 && !actInterrupted(log, p.text) {
			m.t.Errorf("%s has its own turn, and was not acted on", p.text)
		}
	case record.State == memgpt.TurnCancelled && record.Stop == memgpt.StopCancelled && p.cancelled:
		m.cancelled++
	case record.State == memgpt.TurnCancelled && record.Stop == memgpt.StopReplaced:
		m.replaced++
	default:
		m.t.Errorf("%s ended as %+v, cancelled: %v", p.text, record, p.cancelled)
	}
	if n != want {
		m.t.Errorf("%s, %s (%s), is in the log %d times", p.text, record.State, record.Stop, n)
	}
}

// actInterrupted reports whether acting on a message was answered as interrupted.
func actInterrupted(log []memgpt.Entry, text string) bool {
	calls := map[string]bool{}
	for _, e := range log {
		for _, c := range e.Message.Calls() {
			calls[c.ID] = calls[c.ID] || c.Name == "act" && strings.Contains(c.Arguments, `"`+text+`"`)
		}
		if res, ok := e.Message.Result(); ok && calls[res.CallID] && res.Failed {
			return true
		}
	}
	return false
}

// checkLog holds that every call has its result right after it, and what is handed over its message; and that turns follow
// each other: between the entries of one stand those of others only where it took them in.
func (m *melee) checkLog(log []memgpt.Entry) {
	over := map[string]bool{}
	running := ""
	for i, e := range log {
		for n, c := range e.Message.Calls() {
			if res, ok := resultAt(log, i+1+n); !ok || res.CallID != c.ID {
				m.t.Errorf("entry %d: call %s has no result", e.Seq, c.ID)
			}
		}
		if res, ok := e.Message.Result(); ok && strings.HasPrefix(res.Text, "interrupted") {
			m.tally.interrupted++
		}
		if e.Message.Type == memgpt.EventPrefetch {
			m.handed++
			if i+1 == len(log) || log[i+1].Message.Type != memgpt.EventUser {
				m.t.Errorf("entry %d is not followed by the message that it is for", e.Seq)
			} else if log[i+1].Turn != e.Turn {
				m.handedLate++
			}
		}
		if e.Turn == running {
			continue
		}
		record, err := m.base.Turn(m.t.Context(), "", e.Turn)
		if err != nil {
			m.t.Errorf("entry %d is of turn %s: %v", e.Seq, e.Turn, err)
		}
		if record.Into == running && running != "" {
			continue
		}
		if over[e.Turn] {
			m.t.Errorf("entry %d: turn %s goes on after another began", e.Seq, e.Turn)
		}
		over[running], running = true, e.Turn
	}
}

func resultAt(log []memgpt.Entry, i int) (memgpt.Result, bool) {
	if i >= len(log) {
		return memgpt.Result{}, false
	}
	return log[i].Message.Result()
}
