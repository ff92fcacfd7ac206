package offline

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
)

var _ memgpt.Model = (*Model)(nil)

func TestNew(t *testing.T) {
	for _, p := range []float64{-0.1, 1.5} {
		if _, err := New(Config{ForgetSave: p}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("share %v: %v", p, err)
		}
	}
	c := newSim(t).m.Capabilities()
	if want := (memgpt.Capabilities{Name: "offline", Tools: true, Parallel: true, StandIn: true}); c != want {
		t.Errorf("capabilities %+v", c)
	}
}

func TestContextEnds(t *testing.T) {
	s := newSim(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.m.Generate(ctx, s.request(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestNativeProtocol(t *testing.T) {
	s := newSim(t)
	s.tools = []string{"yield", toolAppend, toolRecall, toolArchive, toolInsert}
	s.schema = `{"type":"object","properties":{"query":{"type":"string"}}}`
	wants(t, s.user("我叫小林"), "小林")
	s.told("Ben", "The ferry to Skye leaves at 9:40.")
	wants(t, s.user("When does the ferry to Skye leave?"), "9:40")
	for _, c := range s.calls {
		if _, ok := c.args["request_heartbeat"]; ok {
			t.Errorf("%s got an argument that it does not take", c.name)
		}
	}
	for _, m := range s.queue {
		if m.Role == memgpt.RoleAssistant && len(m.Calls()) > 0 && m.Said()+m.Thoughts() != "" {
			t.Errorf("text beside a call, which the protocol speaks: %q", m.Said()+m.Thoughts())
		}
	}
	if got := s.event(memgpt.EventTimer, "noon"); got != "" || s.called("yield") != 1 {
		t.Errorf("said %q", got)
	}
}

func TestWithoutTools(t *testing.T) {
	s := newSim(t)
	s.tools = nil
	s.human = "The user's name is Ann."
	if got := s.user("What is my name?"); got != "Your name is Ann." {
		t.Errorf("said %q", got)
	}
	s.user("The plumber comes on Friday")
	wants(t, s.user("When does the plumber come?"), "Friday")
	wants(t, s.user("I live in Oslo"), "could not store")
	s.tools = []string{"send_message"}
	wants(t, s.user("Who won the regatta of Malmö?"), nothingEnglish)
}

func TestSpeakingThatFails(t *testing.T) {
	s := newSim(t)
	s.fail["send_message"] = "the line is dead"
	wants(t, s.user("hello"), "Hello")
	if s.steps > 3 {
		t.Errorf("%d steps", s.steps)
	}
}

func TestPlainTextIsAUsersMessage(t *testing.T) {
	s := newSim(t)
	s.queue = append(s.queue, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "My name is Ann"))
	wants(t, s.run(), "Ann")
}

func TestStreamAddsUp(t *testing.T) {
	s := newSim(t)
	s.told("王", "轮船九点四十分开往斯凯岛，请提前三十分钟到码头。")
	s.turnLog = len(s.log)
	s.queue = append(s.queue, envelope(memgpt.EventUser, "轮船几点开往斯凯岛？", s.now(), ""))
	for range 2 {
		var text strings.Builder
		var calls []memgpt.Call
		res, err := s.m.Generate(t.Context(), s.request(), func(d memgpt.Delta) {
			text.WriteString(d.Text)
			if d.Call == nil {
				return
			}
			if d.Call.Index == len(calls) {
				calls = append(calls, memgpt.Call{ID: d.Call.ID, Name: d.Call.Name})
			}
			calls[d.Call.Index].Arguments += d.Call.Arguments
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(res.Message.Calls(), calls); diff != "" || text.String() != res.Message.Thoughts()+res.Message.Said()[:0] {
			t.Errorf("streamed %q and calls %s", text.String(), diff)
		}
		if res.Usage.Input <= 0 || res.Usage.Output <= 0 || res.Usage.Calls != 1 || res.Finish != memgpt.FinishCalls {
			t.Errorf("usage %+v, finish %s", res.Usage, res.Finish)
		}
		s.execute(&res.Message)
	}
	wants(t, strings.Join(s.said, ""), "九点四十分")
}

func TestCallIDsAreUnique(t *testing.T) {
	s := newSim(t)
	s.user("I like tea and I hate coffee")
	s.user("Who repaired the roof?")
	s.user("Who repaired the roof?")
	seen := map[string]bool{}
	for _, m := range s.queue {
		for _, c := range m.Calls() {
			if seen[c.ID] {
				t.Errorf("the id %s was given twice", c.ID)
			}
			seen[c.ID] = true
		}
	}
}

func TestRepeats(t *testing.T) {
	talk := func() []memgpt.Message {
		s := newSim(t)
		for _, text := range []string{"我叫小林", "I like tea", "Who painted the shed?", "我喜欢什么？"} {
			s.user(text)
		}
		return s.queue
	}
	if diff := cmp.Diff(talk(), talk()); diff != "" {
		t.Error(diff)
	}
}

func TestSlips(t *testing.T) {
	count := func(cfg Config) (forgot, unsearched, paged, bad int) {
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			s := newSim(t)
			s.m, s.size, s.clock = m, 1, i*3
			for range 4 {
				s.told("", "the copper boiler was cleaned")
			}
			s.user("I like tea")
			forgot += b2i(s.human == "")
			s.queue = nil
			s.user("Who cleaned the ornate copper samovar boiler in Odessa?")
			unsearched += b2i(len(s.asked) == 0)
			bad += b2i(len(s.asked) > 0 && !strings.Contains(s.asked[0], "samovar"))
			for _, c := range s.calls {
				if n, _ := c.args["page"].(float64); n > 0 {
					paged++
					break
				}
			}
		}
		return
	}
	if f, u, p, b := count(Config{}); f+u+b != 0 || p != 40 {
		t.Errorf("slips without a share: %d %d %d %d", f, u, p, b)
	}
	if f, u, p, b := count(Config{ForgetSave: 1, StopPaging: 1, BadQuery: 1}); f != 40 || u != 0 || p != 0 || b != 40 {
		t.Errorf("slips always: %d %d %d %d", f, u, p, b)
	}
	if _, u, _, _ := count(Config{ForgetSearch: 1}); u != 40 {
		t.Errorf("searched %d times", 40-u)
	}
	f, _, _, _ := count(Config{ForgetSave: 0.5, Seed: 7})
	if g, _, _, _ := count(Config{ForgetSave: 0.5, Seed: 7}); f < 8 || f > 32 || f != g {
		t.Errorf("slips at one half: %d, again %d", f, g)
	}
}

func TestEstimate(t *testing.T) {
	for _, x := range []struct {
		text string
		want int
	}{{"", 0}, {"four", 1}, {"eight by", 2}, {"汉字", 3}, {"汉字 ab", 4}} {
		if got := estimate(x.text); got != x.want {
			t.Errorf("estimate(%q) = %d, want %d", x.text, got, x.want)
		}
	}
	if got := cutCost("汉字汉字汉字", 4); got != "汉字" {
		t.Errorf("cut to %q", got)
	}
}

func TestRepliesKeepToMaxTokens(t *testing.T) {
	s := newSim(t)
	s.told("Ben", strings.Repeat("The ferry to Skye leaves from the old pier at 9:40. ", 8))
	s.turnLog = len(s.log)
	s.queue = append(s.queue, envelope(memgpt.EventUser, "When does the ferry to Skye leave?", s.now(), ""))
	for range 6 {
		req := s.request()
		req.MaxTokens = 60
		res, err := s.m.Generate(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.Usage.Output > 64+20 {
			t.Errorf("%d tokens", res.Usage.Output)
		}
		if !s.execute(&res.Message) {
			return
		}
	}
}

// FuzzGenerate feeds prompts that nobody would compile.
func FuzzGenerate(f *testing.F) {
	for _, s := range []string{"hi", "我叫小林", `{"type":"user_message","message":"my name is Ann"}`, `{"type":"system_alert","message":5}`, `{"type":7}`,
		"<memory_blocks>\n<block label=\"human\" chars=\"9/9\">\n</block", `{"status":"OK","message":"Showing\n{\"id\":\"a\",\"text\":\"b\"}\nNext page: page=1"}`,
		"key: a1b2c3, value:", "\xff\xfe", "Follow key 11111111-2222-3333-4444-555555555555", "remember that", "my is is"} {
		f.Add(s, uint64(1))
	}
	m, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		req := randomRequest(rand.New(rand.NewPCG(seed, 1)), text)
		a, err := m.Generate(context.Background(), req, func(memgpt.Delta) {})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := m.Generate(context.Background(), req, nil)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("not the same again: %s", diff)
		}
		if len(a.Message.Parts) == 0 {
			t.Error("an empty reply")
		}
		for _, c := range a.Message.Calls() {
			var args map[string]any
			if json.Unmarshal([]byte(c.Arguments), &args) != nil {
				t.Errorf("arguments %q", c.Arguments)
			}
		}
	})
}

func randomRequest(r *rand.Rand, text string) *memgpt.Request {
	req := &memgpt.Request{MaxTokens: r.IntN(3) * 50, Window: r.IntN(3) * 2000}
	if r.IntN(6) == 0 {
		req.Purpose = memgpt.PurposeSummary
	}
	roles := []memgpt.Role{memgpt.RoleSystem, memgpt.RoleUser, memgpt.RoleAssistant, memgpt.RoleTool, "other"}
	types := []memgpt.EventType{memgpt.EventUser, memgpt.EventAlert, memgpt.EventLogin, memgpt.EventSummary, memgpt.EventPrefetch, memgpt.EventTimer}
	names := append([]string{"memory_insert", "memory_replace", "unknown"}, allTools...)
	for range r.IntN(9) {
		role := roles[r.IntN(len(roles))]
		msg := memgpt.Message{Role: role}
		switch r.IntN(4) {
		case 0:
			msg.Parts = append(msg.Parts, memgpt.Text{Text: text, Thought: r.IntN(2) == 0})
		case 1:
			msg = envelope(types[r.IntN(len(types))], text, text, "")
		case 2:
			msg.Parts = append(msg.Parts, memgpt.Call{ID: "1", Name: names[r.IntN(len(names))], Arguments: text})
		case 3:
			msg.Parts = append(msg.Parts, memgpt.Result{CallID: "1", Name: names[r.IntN(len(names))], Text: text, Failed: r.IntN(3) == 0})
		}
		req.Messages = append(req.Messages, msg)
	}
	for _, name := range names {
		if r.IntN(3) > 0 {
			req.Tools = append(req.Tools, memgpt.ToolSpec{Name: name})
		}
	}
	return req
}
