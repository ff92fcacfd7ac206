package kernel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"memgpt"
	"memgpt/model/openai"
	"memgpt/model/script"
	"memgpt/store"
)

// upstream is an agent that talks to a scripted server over real connections. The server counts one token a byte of the
// request's body, and refuses what is over its window.
type upstream struct {
	*env
	server *script.Server
}

func newUpstream(t *testing.T, cfg script.ServerConfig, o options) *upstream {
	t.Helper()
	u := &upstream{server: script.NewServer(cfg)}
	srv := httptest.NewServer(u.server)
	t.Cleanup(srv.Close)
	m, err := openai.New(openai.Config{BaseURL: srv.URL + "/v1", Model: "script", Window: cfg.Window})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	u.env = newEnv(t, m, o)
	return u
}

// body is a recorded chat request.
type body struct {
	Messages []struct {
		Role       string
		Content    any
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	Tools     []any
	MaxTokens int `json:"max_tokens"`
}

// checkBody holds check V on a recorded body. A body over the window is reported by over alone.
func checkBody(raw []byte, window int, asked string) (over bool, err error) {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return false, err
	}
	if !utf8.Valid(raw) || bytes.Contains(raw, []byte(`\u0000`)) || bytes.Contains(bytes.ToLower(raw), []byte(`\ud8`)) {
		return false, fmt.Errorf("the body is not clean text")
	}
	if len(b.Messages) == 0 || b.Messages[0].Role != "system" {
		return false, fmt.Errorf("the first message is not the system's")
	}
	ids, open := map[string]bool{}, []string(nil)
	found := asked == "" || len(b.Tools) == 0
	for i, m := range b.Messages {
		text, _ := m.Content.(string)
		found = found || m.Role == "user" && strings.Contains(text, asked)
		switch {
		case m.Role == "tool":
			if len(open) == 0 || open[0] != m.ToolCallID {
				return false, fmt.Errorf("message %d: a result of %q, open are %q", i, m.ToolCallID, open)
			}
			open = open[1:]
		case len(open) > 0:
			return false, fmt.Errorf("message %d: %q have no result", i, open)
		case i > 0 && m.Role == "system":
			return false, fmt.Errorf("message %d: a second message of the system", i)
		}
		if text == "" && len(m.ToolCalls) == 0 {
			return false, fmt.Errorf("message %d is empty", i)
		}
		for _, c := range m.ToolCalls {
			var args map[string]any
			if json.Unmarshal([]byte(c.Function.Arguments), &args) != nil || args == nil {
				return false, fmt.Errorf("message %d: arguments %.80s", i, c.Function.Arguments)
			}
			if c.ID == "" || len(c.ID) > 40 || ids[c.ID] {
				return false, fmt.Errorf("message %d: id %q", i, c.ID)
			}
			ids[c.ID] = true
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return false, fmt.Errorf("%q have no result", open)
	}
	if !found {
		return false, fmt.Errorf("the newest message of the user is not in it: %.80s", asked)
	}
	return len(raw)+b.MaxTokens > window, nil
}

func (u *upstream) check(from, window int, asked string) (over int) {
	u.t.Helper()
	for i, raw := range u.server.Bodies()[from:] {
		o, err := checkBody(raw, window, asked)
		if err != nil {
			u.t.Fatalf("request %d: %v", from+i, err)
		}
		if o {
			over++
		}
	}
	return over
}

func TestFaultsOnTheWire(t *testing.T) {
	t.Run("token count too low: a token a byte", tokenAByte)
	t.Run("overflow inside the summarizer", overflowInSummarizer)
	t.Run("overflow for ever", func(t *testing.T) {
		u := newUpstream(t, script.ServerConfig{Window: 100}, options{window: 60_000})
		u.agent.Window, u.agent.Version = 60_000, 1 // what it was set to, whatever the endpoint has
		_, err := u.base.Commit(t.Context(), &store.Commit{Now: u.now, Agents: []memgpt.Agent{u.agent}})
		must(t, err)
		for i := range 2 {
			before := u.server.Posts()
			_, turn := u.say("hello")
			if n := u.server.Posts() - before; n > 2 || n == 0 && i == 0 || turn.State != memgpt.TurnFailed || turn.Error == "" {
				t.Errorf("%d calls, %+v", n, turn)
			}
		}
	})
	t.Run("broken for good after an error", brokenForGood)
	t.Run("one byte a write", func(t *testing.T) {
		const text = "请牢记,我不能喝酒 🍷 naïve — 👩‍👩‍👧‍👦"
		u := newUpstream(t, script.ServerConfig{Bytewise: true, Window: 60_000,
			Config: script.Config{Replies: []script.Reply{script.Call("core_memory_append", "label", "human", "content", text, "request_heartbeat", true), script.Say(text)}}},
			options{window: 60_000})
		if said, _ := u.say(text); !slices.Equal(said, []string{text}) || u.block("human") != text {
			t.Errorf("%q %q", said, u.block("human"))
		}
		last := u.server.Bodies()[1]
		contains(t, string(last), `"message\":\"`+text)
		if n := strings.Count(string(last), "请牢记,我不能喝酒 🍷"); n != 3 {
			t.Errorf("the text stands %d times: in block, message and arguments it should", n)
		}
		excludes(t, string(last), `\u8bf7`, "\uFFFD")
		var streamed strings.Builder
		for _, up := range u.seen {
			if s, ok := up.(memgpt.Streamed); ok && s.Step == 2 && s.Delta.Call != nil {
				streamed.WriteString(s.Delta.Call.Arguments)
			}
		}
		contains(t, streamed.String(), text)
	})
	t.Run("strict server", func(t *testing.T) {
		u := newUpstream(t, script.ServerConfig{Strict: true, Window: 60_000, Config: script.Config{Replies: []script.Reply{script.Say("hi"), script.Say("hi")}}},
			options{window: 60_000})
		for range 2 {
			if said, turn := u.say("hello"); len(said) != 1 || turn.State != memgpt.TurnDone {
				t.Errorf("%q %+v", said, turn)
			}
		}
	})
	t.Run("empty stream is no success", func(t *testing.T) {
		u := newUpstream(t, script.ServerConfig{Window: 60_000, Config: script.Config{
			Func: func(int, *memgpt.Request) script.Reply { return script.Events("data: [DONE]\n\n") }}}, options{window: 60_000})
		said, turn := u.say("hello")
		if len(said) != 0 || turn.State != memgpt.TurnFailed || turn.Stop != memgpt.StopEmpty || u.server.Posts() > 3 {
			t.Errorf("%q %+v after %d calls", said, turn, u.server.Posts())
		}
		for _, entry := range u.log() {
			if entry.Message.Role == memgpt.RoleAssistant {
				t.Errorf("stored: %+v", entry)
			}
		}
	})
	t.Run("images", func(t *testing.T) {
		u := newUpstream(t, script.ServerConfig{Window: 60_000, Config: script.Config{Replies: []script.Reply{script.Say("nice"), script.Say("yes")}}}, options{window: 60_000})
		u.event(memgpt.EventUser, memgpt.Message{Role: memgpt.RoleUser, Origin: memgpt.OriginUser, Parts: memgpt.Parts{
			memgpt.Text{Text: "look"}, memgpt.Image{MIME: "image/png", Data: []byte{1, 2, 3}}, memgpt.Unknown{Kind: "hologram", Raw: json.RawMessage(`{"x":1}`)}}})
		u.say("and?")
		contains(t, string(u.server.Bodies()[1]), "look", "image/png")
		u.check(0, 60_000, "")
	})
}

// tokenAByte chats in Chinese, English and base64 with a model whose tokens are bytes, until the queue was flushed. At most
// one request a turn is over the window, and only until the count is corrected.
func tokenAByte(t *testing.T) {
	for _, report := range []bool{true, false} {
		for name, text := range map[string]string{"Chinese": "请记住我们说过的每一句话和每一个数字七三九一。", "base64": "aGVsbG8gd29ybGQhIDEyMzQ1Njc4OTAgYWJjZGVm"} {
			const window = 24_000
			reply := func(r script.Reply) script.Reply {
				if !report {
					r.Usage = memgpt.Usage{Output: 1} // a provider that doesn't tell the size of prompts
				}
				return r
			}
			u := newUpstream(t, script.ServerConfig{Window: window, Config: script.Config{
				Func:    func(n int, _ *memgpt.Request) script.Reply { return reply(script.Say(fmt.Sprint("好 ", n))) },
				Summary: func(*memgpt.Request) script.Reply { return reply(script.Text("他们谈过话。\nSearch for: 话")) }}}, options{window: window})
			refused := 0
			for i := 0; i < 200 && len(flushes(u.seen)) < 2; i++ {
				before := u.server.Posts()
				asked := fmt.Sprintf("n=%d ", i)
				said, turn := u.say(asked + strings.Repeat(text, 8))
				if len(said) == 0 || turn.State != memgpt.TurnDone {
					t.Fatalf("%s, turn %d: %q %+v", name, i, said, turn)
				}
				over := u.check(before, window, asked)
				if over > 1 {
					t.Errorf("%s, turn %d: %d requests over the window", name, i, over)
				}
				refused += over
			}
			f := flushes(u.seen)
			bound := 3 // without reports a count is corrected by a quarter at a time
			if report {
				bound = 1
			}
			if len(f) < 2 || refused > bound || refused != u.server.Refused() {
				t.Errorf("%s: %d flushes, %d refused (the server says %d)", name, len(f), refused, u.server.Refused())
			}
			for _, one := range f {
				if one.Failed != "" {
					t.Errorf("%s: %+v", name, one)
				}
			}
			u.checkState(nil)
		}
	}
}

// overflowInSummarizer has a summarizer of its own, behind an endpoint that counts bytes, for which no count is known yet.
func overflowInSummarizer(t *testing.T) {
	const window = 8192
	sum := script.NewServer(script.ServerConfig{Window: window, Config: script.Config{Capabilities: memgpt.Capabilities{Name: "sum"},
		Func: func(int, *memgpt.Request) script.Reply { return script.Text("folded\nSearch for: x") }}})
	srv := httptest.NewServer(sum)
	t.Cleanup(srv.Close)
	sm, err := openai.New(openai.Config{BaseURL: srv.URL + "/v1", Model: "sum", Window: window})
	must(t, err)
	t.Cleanup(func() { _ = sm.Close() })
	m := talker()
	e := newEnv(t, m, options{window: 16384, sum: sm})
	for i := 0; i < 100 && len(flushes(e.seen)) < 2; i++ {
		if said, turn := e.say(strings.Repeat("many different words stand here ", 40)); len(said) == 0 || turn.State != memgpt.TurnDone {
			t.Fatalf("%q %+v", said, turn)
		}
	}
	for i, f := range flushes(e.seen) {
		if f.Failed != "" {
			t.Errorf("flush %d failed: %s", i, f.Failed)
		}
	}
	if n := sum.Refused(); n > 1 {
		t.Errorf("%d of %d summary requests were over the window", n, sum.Posts())
	}
	for i, raw := range sum.Bodies() {
		if over, err := checkBody(raw, window, ""); err != nil || over && i > 0 {
			t.Errorf("summary request %d: over %v, %v", i, over, err)
		}
	}
}

// brokenForGood has each fault of an upstream at step 1 and 2 of a turn; the next message must be answered.
func brokenForGood(t *testing.T) {
	faults := map[string]script.Reply{
		"400": script.Status(400, `{"error":{"message":"bad","type":"invalid_request_error"}}`), "401": script.Status(401, `{"error":{"message":"no"}}`),
		"429": script.Status(429, `{"error":{"message":"slow"}}`, "Retry-After", "0"), "500": script.Status(500, "<html>oops</html>"),
		"half JSON": script.Half(`{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"half an answer`), "reset": script.Reset(),
		"empty body": script.Empty(), "garbage": script.Garbage(), "no choices": script.Status(200, `{"choices":[]}`),
		"cut stream": script.Say("a long answer that breaks off").Broken(2),
	}
	for name, fault := range faults {
		for step := 1; step <= 2; step++ {
			var replies []script.Reply
			if step == 2 {
				replies = append(replies, script.Call("core_memory_append", "label", "human", "content", "fact", "request_heartbeat", true))
			}
			u := newUpstream(t, script.ServerConfig{Window: 60_000, Config: script.Config{
				Replies: append(replies, fault, fault, fault), Func: func(int, *memgpt.Request) script.Reply { return script.Say("fine") }}}, options{window: 60_000})
			u.say("first")
			for u.server.Model.Left() > 0 {
				u.say("meanwhile")
			}
			said, turn := u.say("second")
			if !slices.Equal(said, []string{"fine"}) || turn.State != memgpt.TurnDone {
				t.Errorf("%s at step %d: %q %+v", name, step, said, turn)
			}
			if step == 2 && u.block("human") != "fact" {
				t.Errorf("%s: the block is %q", name, u.block("human"))
			}
			u.check(u.server.Posts()-1, 60_000, "second")
			u.checkState(nil)
			if n := strings.Count(string(u.server.Bodies()[u.server.Posts()-1]), `\"message\":\"first\"`); n != 1 {
				t.Errorf("%s at step %d: the first message is %d times in the prompt", name, step, n)
			}
		}
	}
}
