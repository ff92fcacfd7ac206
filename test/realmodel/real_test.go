package realmodel

import (
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/openai"
	"memgpt/model/prompted"
	"memgpt/model/script"
	"memgpt/tool"
)

// TestRealAgentLoop has a conversation that is longer than the window, over the real server. The model is shown by two
// turns of a script how an agent speaks, and goes on from there.
func TestRealAgentLoop(t *testing.T) {
	w := &watched{t: t, inner: server(t, nil)}
	a := newAgent(t, memgpt.ProtocolMemGPT, nil)
	a.model = script.Of(script.Say("Hello! Tell me about your day."), script.Say("That sounds nice. What else happened?"))
	sent := []string{"Hello, I am Ada.", "I have been to the market and have bought a basket of plums."}
	for _, text := range sent {
		a.say(text)
	}
	a.model = w
	n, silent := turns()
	start, spoke := time.Now(), 0
	for i := range n {
		text := told(i)
		sent = append(sent, text)
		turn := a.say(text)
		ok := turn.State == memgpt.TurnDone && strings.TrimSpace(strings.Join(a.said, "")) != ""
		if ok {
			spoke++
		}
		t.Logf("turn %d: %s after %d steps (%s), %d tokens in, %d out, %d flushes, flags %q, said %.60q", i+1, turn.State, turn.Steps, turn.Stop,
			turn.Usage.Input, turn.Usage.Output, a.flushed, turn.Flags, strings.Join(a.said, " | "))
	}
	t.Logf("%d of %d turns ended in words, %d flushes, failed folds %q, %+v, %v", spoke, n, a.flushed, a.failed, w.seen, time.Since(start).Round(time.Second))
	if spoke < n-silent {
		t.Errorf("%d of %d turns ended in spoken words, want at least %d", spoke, n, n-silent)
	}
	if a.flushed == 0 {
		t.Error("nothing was evicted: the conversation is too short for the window")
	}
	checkLog(t, a, sent)
}

// checkLog holds that nothing of a conversation is lost, doubled or left open.
func checkLog(t *testing.T, a *agent, sent []string) {
	t.Helper()
	var users []string
	open := map[string]bool{}
	for _, e := range a.log() {
		if e.Message.Role == memgpt.RoleUser {
			users = append(users, e.Message.Said())
		}
		for _, c := range e.Message.Calls() {
			if open[c.ID] {
				t.Errorf("call %s is there twice", c.ID)
			}
			open[c.ID] = true
		}
		if r, ok := e.Message.Result(); ok {
			if !open[r.CallID] {
				t.Errorf("result %s without its call", r.CallID)
			}
			open[r.CallID] = false
		}
	}
	if !slices.Equal(users, sent) {
		t.Errorf("%d messages of the user are in the log, %d were sent", len(users), len(sent))
	}
	for id, is := range open {
		if is {
			t.Errorf("call %s has no result", id)
		}
	}
}

// TestRealStreamsEqualReplies asks the same streamed and in one piece.
func TestRealStreamsEqualReplies(t *testing.T) {
	streamed := server(t, steady)
	whole := server(t, func(cfg *openai.Config) { steady(cfg); cfg.NoStream = true })
	tools, err := onlyInsert(true, false)
	must(t, err)
	for _, test := range []struct {
		text  string
		tools bool
	}{{"Tell me about the sea.", false}, {"My name is Ada and I drink tea.", true}, {"你好！请介绍一下大海。🌊", false}} {
		req := &memgpt.Request{MaxTokens: replySize, Messages: []memgpt.Message{
			memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "You are a helpful assistant."),
			memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, test.text)}}
		if test.tools {
			for i := range tools {
				req.Tools = append(req.Tools, tools[i].Spec)
			}
		}
		var pieces strings.Builder
		a, err := streamed.Generate(t.Context(), req, func(d memgpt.Delta) { pieces.WriteString(d.Text) })
		must(t, err)
		b, err := whole.Generate(t.Context(), req, nil)
		must(t, err)
		if a.Finish != b.Finish || a.Usage.Input != b.Usage.Input || a.Usage.Output != b.Usage.Output || words(a) != words(b) {
			t.Errorf("%q: streamed %q (%s, %+v), in one piece %q (%s, %+v)", test.text, words(a), a.Finish, a.Usage, words(b), b.Finish, b.Usage)
		}
		if len(a.Message.Calls()) == 0 && pieces.String() != words(a) {
			t.Errorf("%q: the pieces make up %q, the reply is %q", test.text, pieces.String(), words(a))
		}
	}
}

// words is what a reply says and calls, without ids, which are drawn.
func words(r *memgpt.Response) string {
	var b strings.Builder
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			b.WriteString(p.Text)
		case memgpt.Call:
			b.WriteString("\n" + p.Name + p.Arguments)
		}
	}
	return b.String()
}

// onlyInsert offers the function alone that writes into archival storage.
func onlyInsert(compact, native bool) ([]tool.Tool, error) {
	all, err := memtool.System(compact, native)
	return slices.DeleteFunc(all, func(x tool.Tool) bool { return x.Spec.Name != "archival_memory_insert" }), err
}

// TestRealMemoryIsWritten offers one function alone, and holds the replies to a call of it.
func TestRealMemoryIsWritten(t *testing.T) {
	m, err := prompted.New(prompted.Config{Model: server(t, nil), Mode: prompted.Constrained})
	must(t, err)
	a := newAgent(t, memgpt.ProtocolMemGPT, onlyInsert)
	a.model = &forcing{m}
	var sent []string
	for _, text := range []string{"I am Ada and I drink tea.", "My boat is called Wagtail.", "The key lies under the mat."} {
		sent = append(sent, text)
		turn := a.say(text)
		t.Logf("%s after %d steps (%s), flags %q", turn.State, turn.Steps, turn.Stop, turn.Flags)
		if a.passages() > 0 {
			break
		}
	}
	if n := a.passages(); n == 0 {
		t.Error("no passage was written, where every reply has to be a call that writes one")
	}
	checkLog(t, a, sent)
}

// TestRealModelIsSurvived has short turns in the ways to call functions that the loop doesn't go. What comes is taken as it
// is: prose, calls of functions that there aren't, calls that are cut off.
func TestRealModelIsSurvived(t *testing.T) {
	for _, test := range []struct {
		mode     prompted.Mode
		protocol memgpt.Protocol
	}{{prompted.Prompted, memgpt.ProtocolMemGPT}, {prompted.Constrained, memgpt.ProtocolNative}} {
		t.Run(string(test.mode), func(t *testing.T) {
			w := &watched{t: t, inner: server(t, nil)}
			m, err := prompted.New(prompted.Config{Model: w, Mode: test.mode})
			must(t, err)
			a := newAgent(t, test.protocol, nil)
			a.model = m
			text := "Hello, I am Ada. Remember that I drink tea."
			w.ask(text)
			turn := a.say(text)
			t.Logf("%s after %d steps (%s), flags %q, said %.80q, %+v, %s", turn.State, turn.Steps, turn.Stop, turn.Flags, strings.Join(a.said, " | "), w.seen, turn.Error)
			if w.seen.failed > 0 {
				t.Error("the server refused a request")
			}
			checkLog(t, a, []string{text})
		})
	}
}
