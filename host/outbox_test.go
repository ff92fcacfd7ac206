package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/store"
)

// hookServer is the place that hooks are told at, as a Poster.
type hookServer struct {
	mu     sync.Mutex
	posts  []hookPost
	answer func(n int, p hookPost) (status int, after time.Duration, err error) // nil is 200
	takes  time.Duration
	poll   time.Duration  // Config.Poll
	open   map[string]int // posts under way, by id
	twice  bool           // one id was posted by two at once
}

type hookPost struct {
	at      time.Time
	url, id string
	secrets []string
	body    string
}

func (s *hookServer) Post(ctx context.Context, url string, secrets []string, id string, body []byte) (int, time.Duration, error) {
	s.mu.Lock()
	p := hookPost{time.Now(), url, id, secrets, string(body)}
	n := len(s.posts)
	s.posts = append(s.posts, p)
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[id]++
	s.twice = s.twice || s.open[id] > 1
	takes := s.takes
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.open[id]--; s.mu.Unlock() }()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	if s.answer == nil {
		return 200, 0, nil
	}
	return s.answer(n, p)
}

func (s *hookServer) told() []hookPost {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.posts)
}

func (s *hookServer) overlapped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.twice
}

func (r *rig) reported() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reports)
}

func (s *hookServer) ids() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.posts {
		ids = append(ids, p.id)
	}
	return ids
}

func (s *hookServer) set(c *Config) { c.Hooks, c.Poll = s, s.poll }

const hookURL = "https://hooks.example/agent"

// newHookRig is a rig whose agent has a hook.
func newHookRig(t *testing.T, s *hookServer) *rig {
	t.Helper()
	r := newRig(t, s.set)
	r.agent.Reach.Hook = hookURL
	record, err := (&store.Hook{URL: hookURL, Secret: "whsec_c2VjcmV0"}).Record(store.Record{ID: r.agent.ID})
	r.must(err)
	r.commit(&store.Commit{Agents: []memgpt.Agent{r.agent}, Records: []store.Record{record}})
	r.agent.Version++
	return r
}

func (r *rig) commit(c *store.Commit) {
	r.t.Helper()
	c.Now = time.Now()
	_, err := r.store.Commit(r.ctx, c)
	r.must(err)
}

// speaks lets the agent say something unasked, as the commit of a step does, and returns the id of the words.
func (r *rig) speaks(text string) string {
	r.t.Helper()
	e := memgpt.Entry{ID: r.newID("message"), Agent: r.agent.ID, Thread: r.main.ID, Time: time.Now(),
		Message: memgpt.TextMessage(memgpt.RoleAssistant, memgpt.OriginModel, text)}
	s := store.Saying{ID: store.SayingID(e.ID, ""), Agent: r.agent.ID, Thread: r.main.ID, Turn: "turn-1", Entry: e.ID, Why: "heartbeat", Time: time.Now()}
	if r.agent.Reach.Hook != "" {
		s.Hook, s.Next = store.HookDue, time.Now()
	}
	r.commit(&store.Commit{Entries: []memgpt.Entry{e}, Sayings: []store.Saying{s}})
	return s.ID
}

func (r *rig) saying(id string) store.Saying {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return r.store.saying(id)
}

func (r *rig) startHook() {
	r.t.Helper()
	r.must(r.host.Start(r.ctx))
}

func (r *rig) endHook() {
	r.t.Helper()
	r.must(r.host.Close(r.ctx))
}

func TestHookIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{}
		r := newHookRig(t, s)
		r.startHook()
		defer r.endHook()
		time.Sleep(time.Second)
		said := time.Now().UTC()
		id := r.speaks("it is <time> to go")
		time.Sleep(2 * time.Second)
		if len(s.told()) != 1 {
			t.Fatalf("%d posts", len(s.told()))
		}
		p := s.told()[0]
		var body hookBody
		if err := json.Unmarshal([]byte(p.body), &body); err != nil {
			t.Fatal(err)
		}
		row := r.saying(id)
		want := hookBody{HookType, said, hookSaid{"default", r.agent.ID, "main", "turn-1", row.Entry, "it is <time> to go", "heartbeat"}}
		if diff := cmp.Diff(want, body); diff != "" || p.id != id || p.url != hookURL || !slices.Equal(p.secrets, []string{"whsec_c2VjcmV0"}) {
			t.Errorf("post %+v\n%s", p, diff)
		}
		if row.Hook != store.HookNone || row.Read || row.Error != "" {
			t.Errorf("row after delivery: %+v", row)
		}
		u, err := r.host.Unseen(r.ctx, "", r.agent.ID, 10)
		r.must(err)
		r.must(r.host.Seen(r.ctx, u))
		if len(u.Words) != 1 || r.saying(id).ID != "" {
			t.Errorf("what was told and seen stays: %+v", u)
		}
	})
}

// TestHookOfAnAgentWithout: nothing is posted where there is no hook, or no more, or nothing to say.
func TestHookOfAnAgentWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{}
		r := newHookRig(t, s)
		forgotten := r.speaks("forget this")
		r.store.mu.Lock()
		r.store.entries[r.main.ID] = nil
		r.store.mu.Unlock()
		r.startHook()
		defer r.endHook()
		time.Sleep(time.Minute)
		r.agent.Reach.Hook = ""
		r.commit(&store.Commit{Agents: []memgpt.Agent{r.agent}})
		r.agent.Reach.Hook = hookURL // as the step that spoke knew it
		late := r.speaks("nobody to tell")
		time.Sleep(time.Hour)
		if len(s.told()) != 0 || r.saying(forgotten).Hook != store.HookNone || r.saying(late).Hook != store.HookNone {
			t.Errorf("%d posts, rows %+v %+v", len(s.told()), r.saying(forgotten), r.saying(late))
		}
	})
}

// TestHookBackoff: an endpoint that is down is asked ever more rarely, for three days, always under the same id; then never.
func TestHookBackoff(t *testing.T) {
	for name, fails := range map[string]func(int, hookPost) (int, time.Duration, error){
		"500":      func(int, hookPost) (int, time.Duration, error) { return 500, 0, nil },
		"redirect": func(int, hookPost) (int, time.Duration, error) { return 302, 0, nil },
		"no network": func(int, hookPost) (int, time.Duration, error) {
			return 0, 0, errors.New("dial tcp: connection refused")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &hookServer{answer: fails, poll: time.Minute}
				r := newHookRig(t, s)
				r.startHook()
				defer r.endHook()
				id := r.speaks("are you there?")
				time.Sleep(14 * 24 * time.Hour)
				row := r.saying(id)
				if row.Hook != store.HookFailed || row.Error == "" || row.Tries != len(s.told()) || row.Read {
					t.Fatalf("row %+v after %d posts", row, len(s.told()))
				}
				pause := hookPace
				for i := 1; i < len(s.told()); i++ {
					gap := s.told()[i].at.Sub(s.told()[i-1].at)
					if gap < pause*3/4 || gap > pause*5/4+2*time.Second || s.told()[i].id != id {
						t.Errorf("attempt %d of %s after %v, want about %v", i+1, s.told()[i].id, gap, pause)
					}
					pause = min(3*pause, hookSlowest)
				}
				if span := s.told()[len(s.told())-1].at.Sub(s.told()[0].at); span < hookGivesUp || span > hookGivesUp+2*hookSlowest {
					t.Errorf("given up after %v", span)
				}
				if len(r.reported()) != 2 || !strings.Contains(r.reported()[0].Error(), row.Error) || !strings.Contains(r.reported()[1].Error(), "no more") {
					t.Errorf("reports %v", r.reported())
				}
			})
		})
	}
}

func TestHookRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := []time.Duration{time.Hour, 7 * 24 * time.Hour}
		s := &hookServer{poll: time.Minute, answer: func(n int, _ hookPost) (int, time.Duration, error) {
			if n < len(asked) {
				return 429, asked[n], nil
			}
			return 204, 0, nil
		}}
		r := newHookRig(t, s)
		r.startHook()
		defer r.endHook()
		id := r.speaks("hello")
		time.Sleep(48 * time.Hour)
		if len(s.told()) != 3 || r.saying(id).Hook != store.HookNone {
			t.Fatalf("%d posts, row %+v", len(s.told()), r.saying(id))
		}
		if first, second := s.told()[1].at.Sub(s.told()[0].at), s.told()[2].at.Sub(s.told()[1].at); first < time.Hour || first > time.Hour+time.Minute ||
			second < hookPatient || second > hookPatient+time.Minute {
			t.Errorf("asked again after %v and %v", first, second)
		}
	})
}

// TestHookGone: 410 ends it, also for what is said later, until the hook is set anew.
func TestHookGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{poll: time.Minute, answer: func(int, hookPost) (int, time.Duration, error) { return 410, 0, nil }}
		r := newHookRig(t, s)
		r.startHook()
		defer r.endHook()
		first, second := r.speaks("one"), r.speaks("two")
		time.Sleep(time.Hour)
		third := r.speaks("three")
		time.Sleep(24 * time.Hour)
		record, err := r.store.Record(r.ctx, "", store.HookKind, r.agent.ID)
		r.must(err)
		var hook store.Hook
		r.must(hook.Read(record))
		if len(s.told()) != 1 || hook.Stopped.IsZero() {
			t.Errorf("%d posts, hook %+v", len(s.told()), hook)
		}
		for _, id := range []string{first, second, third} {
			if row := r.saying(id); row.Hook != store.HookFailed || !strings.Contains(row.Error, "410") {
				t.Errorf("row %+v", row)
			}
		}
	})
}

// TestHookOrder: what was said first is told first, and holds up the rest while the endpoint is down; not what the endpoint refuses
// alone.
func TestHookOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, third string
		s := &hookServer{answer: func(n int, p hookPost) (int, time.Duration, error) {
			switch {
			case p.id == first && n < 3:
				return 503, 0, nil
			case p.id == third:
				return 422, 0, nil
			}
			return 200, 0, nil
		}}
		r := newHookRig(t, s)
		first = r.speaks("one")
		second := r.speaks("two")
		third = r.speaks("three")
		fourth := r.speaks("four")
		r.startHook()
		defer r.endHook()
		time.Sleep(5 * time.Minute)
		ids := s.ids()
		if want := []string{first, first, first, first, second, third, fourth, third}; len(ids) < len(want) || !slices.Equal(ids[:len(want)], want) {
			t.Errorf("told %v,\nwant %v", ids, want)
		}
	})
}

// TestHookOfTwoProcesses: each saying is told once, though two hosts look and attempts take long.
func TestHookOfTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{takes: 10 * time.Second}
		r := newHookRig(t, s)
		other := r.another(s.set)
		r.startHook()
		defer r.endHook()
		r.must(other.Start(r.ctx))
		defer func() { r.must(other.Close(r.ctx)) }()
		var want []string
		for i := range 20 {
			want = append(want, r.speaks(fmt.Sprint("words ", i)))
		}
		time.Sleep(10 * time.Minute)
		if got := s.ids(); !slices.Equal(got, want) || s.overlapped() {
			t.Errorf("told %v,\nwant %v; twice at once: %v", got, want, s.overlapped())
		}
	})
}

// TestHookAfterADeath: what was delivered and could not be marked is delivered again, under the same id, once the claim is over.
func TestHookAfterADeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{}
		r := newHookRig(t, s)
		dead := false
		s.answer = func(n int, _ hookPost) (int, time.Duration, error) {
			r.store.mu.Lock()
			defer r.store.mu.Unlock()
			dead = n == 0 // the process dies after the first delivery
			return 200, 0, nil
		}
		r.store.fail = func(*store.Commit) error {
			if dead {
				return memgpt.Errorf(memgpt.CodeClosed, "dead")
			}
			return nil
		}
		id := r.speaks("once at least")
		if err := r.host.TellHook(r.ctx, "", r.agent.ID); memgpt.CodeOf(err) != memgpt.CodeClosed {
			t.Fatalf("a dead store: %v", err)
		}
		r.store.mu.Lock()
		dead = false
		r.store.mu.Unlock()
		next := r.another(s.set)
		r.must(next.Start(r.ctx))
		defer func() { r.must(next.Close(r.ctx)) }()
		time.Sleep(5 * time.Minute)
		if ids := s.ids(); !slices.Equal(ids, []string{id, id}) || s.told()[1].at.Sub(s.told()[0].at) < hookClaim || s.told()[0].body != s.told()[1].body {
			t.Errorf("posts %+v", s.told())
		}
	})
}

// TestHookCalledOff: a host that closes in the middle leaves the delivery to the next at once.
func TestHookCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{takes: time.Minute}
		r := newHookRig(t, s)
		r.startHook()
		id := r.speaks("hold on")
		time.Sleep(2 * time.Second)
		r.endHook()
		if row := r.saying(id); row.Hook != store.HookDue || row.Next.After(time.Now()) {
			t.Fatalf("row %+v", row)
		}
		s.mu.Lock()
		s.takes = 0
		s.mu.Unlock()
		r.must(r.another(s.set).TellHook(r.ctx, "", r.agent.ID))
		if ids := s.ids(); !slices.Equal(ids, []string{id, id}) || r.saying(id).Hook != store.HookNone {
			t.Errorf("told %v, row %+v", ids, r.saying(id))
		}
	})
}

// TestHookTimeout: an endpoint that never answers holds an attempt for no longer than it may take.
func TestHookTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{takes: time.Hour}
		r := newHookRig(t, s)
		id := r.speaks("well?")
		begun := time.Now()
		r.must(r.host.TellHook(r.ctx, "", r.agent.ID))
		if took := time.Since(begun); took != hookTimeout || r.saying(id).Tries != 1 || r.saying(id).Error == "" {
			t.Errorf("after %v: %+v", took, r.saying(id))
		}
	})
}

// TestHookOfShortCallers: an endpoint that never answers is left alone for longer and longer also where all that tell it have less
// time than an attempt may take, as memgpt run has. One that was given no chance was not told.
func TestHookOfShortCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{takes: time.Hour}
		r := newHookRig(t, s)
		id := r.speaks("well?")
		run := func(given time.Duration) {
			ctx, cancel := context.WithTimeout(r.ctx, given)
			defer cancel()
			r.must(r.host.TellHook(ctx, "", r.agent.ID))
		}
		run(time.Second)
		if row := r.saying(id); row.Error != "" || row.Next.After(time.Now()) {
			t.Errorf("an attempt of a second failed: %+v", row)
		}
		begun := time.Now()
		for range 100 {
			run(10 * time.Second)
			time.Sleep(time.Minute)
		}
		if row := r.saying(id); row.Tries > 10 || row.Error == "" || row.Hook != store.HookDue {
			t.Errorf("after %v: %+v", time.Since(begun), row)
		}
		for range 4 * 24 {
			run(10 * time.Second)
			time.Sleep(time.Hour)
		}
		if row := r.saying(id); row.Hook != store.HookFailed {
			t.Errorf("after %v: %+v", time.Since(begun), row)
		}
	})
}

// TestHookReadMeanwhile: words that somebody reads while their hook is told are marked as both.
func TestHookReadMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{}
		r := newHookRig(t, s)
		s.answer = func(int, hookPost) (int, time.Duration, error) {
			u, err := r.host.Unseen(r.ctx, "", r.agent.ID, 10)
			r.must(err)
			r.must(r.host.Seen(r.ctx, u))
			return 200, 0, nil
		}
		id := r.speaks("both at once")
		r.must(r.host.TellHook(r.ctx, "", r.agent.ID))
		if row := r.saying(id); row.ID != "" || len(s.told()) != 1 {
			t.Errorf("%d posts, row %+v", len(s.told()), row)
		}
	})
}

// TestHookAfterAWrongClock: what a clock put off that showed much more is told by the clock as it is.
func TestHookAfterAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{}
		r := newHookRig(t, s)
		id := r.speaks("hello from the future")
		row := r.saying(id)
		row.Next, row.First = time.Now().Add(400*24*time.Hour), time.Now().Add(399*24*time.Hour)
		r.commit(&store.Commit{Sayings: []store.Saying{row}})
		r.startHook()
		defer r.endHook()
		time.Sleep(2 * time.Minute)
		if !slices.Equal(s.ids(), []string{id}) {
			t.Errorf("told %v", s.ids())
		}
	})
}

// TestHookRotates: for a while after a new secret the old one signs too.
func TestHookRotates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{}
		r := newHookRig(t, s)
		record, err := r.store.Record(r.ctx, "", store.HookKind, r.agent.ID)
		r.must(err)
		record, err = (&store.Hook{URL: hookURL, Secret: "whsec_bmV3", Old: "whsec_c2VjcmV0", Until: time.Now().Add(time.Hour)}).Record(record)
		r.must(err)
		r.commit(&store.Commit{Records: []store.Record{record}})
		for range 2 {
			r.speaks("hello")
			r.must(r.host.TellHook(r.ctx, "", r.agent.ID))
			time.Sleep(time.Hour)
		}
		if len(s.told()) != 2 || !slices.Equal(s.told()[0].secrets, []string{"whsec_bmV3", "whsec_c2VjcmV0"}) || !slices.Equal(s.told()[1].secrets, []string{"whsec_bmV3"}) {
			t.Errorf("posts %+v", s.told())
		}
	})
}

func textsOf(u *Unseen) (texts []string) {
	for _, w := range u.Words {
		texts = append(texts, w.Text)
	}
	return texts
}

// TestUnseenIsShownOnce: whoever takes it has it, in whatever process; what he doesn't show waits for the next.
func TestUnseenIsShownOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		other := r.another()
		for i := range 5 {
			r.speaks(fmt.Sprint("words ", i))
		}
		take := func(h *Host, limit int) *Unseen {
			u, err := h.Unseen(r.ctx, "", r.agent.ID, limit)
			r.must(err)
			return u
		}
		mine := take(r.host, 3)
		if got := textsOf(mine); !slices.Equal(got, []string{"words 2", "words 3", "words 4"}) || mine.More != 2 || mine.Words[0].Conversation != "main" {
			t.Errorf("%v and %d more, in %q", got, mine.More, mine.Words[0].Conversation)
		}
		if got := take(other, 3); len(got.Words) != 0 || got.More != 0 {
			t.Errorf("taken twice: %v", textsOf(got))
		}
		time.Sleep(showTime) // who took it died
		theirs := take(other, 10)
		if got := textsOf(theirs); len(got) != 5 || theirs.More != 0 {
			t.Errorf("%v and %d more after a death", got, theirs.More)
		}
		late := r.speaks("words 5")
		r.must(other.Seen(r.ctx, theirs))
		if got := textsOf(take(r.host, 10)); !slices.Equal(got, []string{"words 5"}) {
			t.Errorf("%v after the rest was seen", got)
		}
		if row := r.saying(late); row.Read {
			t.Errorf("%+v", row)
		}
	})
}

// TestUnseenThatCouldNotBeShown: what somebody took and could not show is there for the next at once, and a hook that was told
// meanwhile does not hide it.
func TestUnseenThatCouldNotBeShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &hookServer{}
		r := newHookRig(t, s)
		r.speaks("one")
		r.speaks("two")
		u, err := r.host.Unseen(r.ctx, "", r.agent.ID, 5)
		r.must(err)
		r.must(r.host.TellHook(r.ctx, "", r.agent.ID))
		r.must(r.host.NotSeen(r.ctx, u))
		again, err := r.another().Unseen(r.ctx, "", r.agent.ID, 5)
		r.must(err)
		if got := textsOf(again); !slices.Equal(got, []string{"one", "two"}) || len(s.ids()) != 2 {
			t.Errorf("shown %v, told %v", got, s.ids())
		}
	})
}

// TestUnseenOfAWrongClock: a claim from a clock that showed much more doesn't hide words.
func TestUnseenOfAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		row := r.saying(r.speaks("hello"))
		row.Showing = time.Now().Add(1000 * time.Hour)
		r.commit(&store.Commit{Sayings: []store.Saying{row}})
		u, err := r.host.Unseen(r.ctx, "", r.agent.ID, 10)
		r.must(err)
		if len(u.Words) != 1 {
			t.Errorf("%v", textsOf(u))
		}
	})
}

// TestWordsOfATurnElsewhere: who follows a turn of another process is told all that it said, plain text too, and what of it was
// said before a user's message joined.
func TestWordsOfATurnElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.endHook()
		turn := memgpt.Turn{ID: "turn-timer", Agent: r.agent.ID, Thread: r.main.ID, Event: "event-timer", Type: memgpt.EventTimer, State: memgpt.TurnDone, Stop: memgpt.StopEnd}
		joined := memgpt.Turn{ID: "turn-user", Agent: r.agent.ID, Thread: r.main.ID, Event: "event-user", Type: memgpt.EventUser, State: memgpt.TurnDone, Stop: memgpt.StopSteered, Into: turn.ID}
		entry := func(seq int64, turn string, m memgpt.Message) memgpt.Entry {
			return memgpt.Entry{ID: fmt.Sprint("message-", seq), Agent: r.agent.ID, Thread: r.main.ID, Seq: seq, Turn: turn, Message: m}
		}
		said := func(text string) memgpt.Message {
			return memgpt.TextMessage(memgpt.RoleAssistant, memgpt.OriginModel, text)
		}
		r.commit(&store.Commit{Turns: []memgpt.Turn{turn, joined}, Entries: []memgpt.Entry{
			entry(1, turn.ID, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "tick")), entry(2, turn.ID, said("by itself")),
			entry(3, joined.ID, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hello")), entry(4, turn.ID, said("an answer")),
		}})
		h, err := r.host.Attach(r.ctx, "", turn.ID)
		r.must(err)
		var spoke []memgpt.Spoke
		for u := range h.Updates(r.ctx) {
			if s, ok := u.(memgpt.Spoke); ok {
				spoke = append(spoke, s)
			}
		}
		want := []memgpt.Spoke{{Text: "by itself", Saying: store.SayingID("message-2", "")}, {Text: "an answer"}}
		if diff := cmp.Diff(want, spoke); diff != "" {
			t.Error(diff)
		}
	})
}
