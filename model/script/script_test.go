package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/model/script"
)

func ask(text string) *memgpt.Request {
	return &memgpt.Request{
		Messages: []memgpt.Message{
			memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "system"),
			memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text),
		},
		Tools: []memgpt.ToolSpec{{Name: "send_message", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}
}

func TestHelpers(t *testing.T) {
	for _, test := range []struct {
		name  string
		reply script.Reply
		want  memgpt.Parts
	}{
		{"say", script.Say("你好 <b>"), memgpt.Parts{memgpt.Call{Name: "send_message", Arguments: `{"message":"你好 <b>"}`}}},
		{"order", script.Call("f", "z", 1, "a", true), memgpt.Parts{memgpt.Call{Name: "f", Arguments: `{"z":1,"a":true}`}}},
		{"none", script.Call("f"), memgpt.Parts{memgpt.Call{Name: "f", Arguments: `{}`}}},
		{"raw", script.Call("f", "{"), memgpt.Parts{memgpt.Call{Name: "f", Arguments: `{`}}},
		{"heartbeat", script.Calls(script.Call("f"), script.Call("g", "x", "1"), script.Call("h", "{")).Heartbeat(), memgpt.Parts{
			memgpt.Call{Name: "f", Arguments: `{"request_heartbeat":true}`},
			memgpt.Call{Name: "g", Arguments: `{"x":"1","request_heartbeat":true}`},
			memgpt.Call{Name: "h", Arguments: `{`},
		}},
		{"truncated", script.Truncated(script.Say("你好")), memgpt.Parts{memgpt.Call{Name: "send_message", Arguments: `{"message"`}}},
		{"thinking", script.Calls(script.Think("hm"), script.Text("a"), script.Say("b")), memgpt.Parts{
			memgpt.Reasoning{Text: "hm"}, memgpt.Text{Text: "a"}, memgpt.Call{Name: "send_message", Arguments: `{"message":"b"}`}}},
	} {
		if diff := cmp.Diff(test.want, test.reply.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestModelGivesRepliesInOrderAndRecordsCopies(t *testing.T) {
	m := script.Of(script.Say("one"), script.Truncated(script.Text("twotwo")), script.Fail(errors.New("three")))
	req := ask("hi")
	first, err := m.Generate(t.Context(), req, nil)
	if err != nil || first.Finish != memgpt.FinishCalls || first.Message.Calls()[0].ID != "call_1" {
		t.Fatalf("first reply: %+v, %v", first, err)
	}
	req.Messages[1].Parts[0] = memgpt.Text{Text: "changed"}
	req.Tools[0].Parameters[2] = 'X'
	second, err := m.Generate(t.Context(), ask("two"), nil)
	if err != nil || second.Finish != memgpt.FinishLength || second.Message.Said() != "two" {
		t.Fatalf("second reply: %+v, %v", second, err)
	}
	if _, err := m.Generate(t.Context(), ask("three"), nil); err == nil || err.Error() != "three" {
		t.Fatalf("third reply: %v", err)
	}
	m.Done(t)
	if diff := cmp.Diff(ask("hi"), m.Requests()[0]); diff != "" {
		t.Errorf("recorded request changed with the caller's (-want +got):\n%s", diff)
	}
	_, err = m.Generate(t.Context(), ask("over"), nil)
	if memgpt.CodeOf(err) != memgpt.CodeModelRequest || !strings.Contains(err.Error(), "user: over") || m.Err() == nil {
		t.Errorf("a call beyond the script: %v", err)
	}
}

func TestOneReplyForMany(t *testing.T) {
	r := script.Say("again")
	m := script.Of(r, r)
	var ids []string
	for range 2 {
		resp, err := m.Generate(t.Context(), ask("x"), nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, resp.Message.Calls()[0].ID)
	}
	if ids[0] == ids[1] || r.Parts[0].(memgpt.Call).ID != "" {
		t.Errorf("ids %q, and the script's own part is %+v", ids, r.Parts[0])
	}
}

func TestSummaryFuncAndCountOnly(t *testing.T) {
	m := script.New(script.Config{
		Replies:   []script.Reply{script.Say("listed")},
		Func:      func(n int, req *memgpt.Request) script.Reply { return script.Text(req.Messages[1].Said()) },
		Summary:   func(*memgpt.Request) script.Reply { return script.Text("summary") },
		CountOnly: true,
	})
	sum := ask("fold")
	sum.Purpose = memgpt.PurposeSummary
	for i, test := range []struct {
		req  *memgpt.Request
		want string
	}{{sum, "summary"}, {ask("a"), "listed"}, {ask("b"), "b"}} {
		resp, err := m.Generate(t.Context(), test.req, nil)
		if err != nil || resp.Message.Said() != test.want {
			t.Errorf("call %d: %+v, %v; want %q", i, resp, err, test.want)
		}
	}
	if m.Count() != 3 || m.Requests() != nil {
		t.Errorf("count %d, %d requests kept", m.Count(), len(m.Requests()))
	}
}

func TestStreamAddsUp(t *testing.T) {
	text := strings.Repeat("你好🍷 a", 20)
	for _, size := range []int{1, 2, 5, 1000} {
		m := script.New(script.Config{Piece: size, Replies: []script.Reply{script.Calls(script.Text(text), script.Say(text), script.Call("f"))}})
		var got, args string
		resp, err := m.Generate(t.Context(), ask("x"), func(d memgpt.Delta) {
			got += d.Text
			if d.Call != nil {
				args += d.Call.Name + d.Call.Arguments
				d.Text = d.Call.Arguments
			}
			if !utf8.ValidString(d.Text) {
				t.Errorf("piece %q is cut inside a character", d.Text)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		calls := resp.Message.Calls()
		if want := calls[0].Name + calls[0].Arguments + calls[1].Name + calls[1].Arguments; got != text || args != want {
			t.Errorf("piece size %d: the pieces don't add up to the response", size)
		}
	}
}

func TestGateDelayAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := script.NewGate()
		m := script.Of(script.Say("held").Held(gate), script.Say("late").After(time.Minute), script.Say("never").Held(script.NewGate()))
		done := make(chan error, 1)
		go func() { _, err := m.Generate(t.Context(), ask("x"), nil); done <- err }()
		<-gate.Entered()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the gate held nothing: %v", err)
		default:
		}
		gate.Open()
		if err := <-done; err != nil {
			t.Error(err)
		}
		start := time.Now()
		if _, err := m.Generate(t.Context(), ask("x"), nil); err != nil || time.Since(start) != time.Minute {
			t.Errorf("delay: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Generate(ctx, ask("x"), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled call: %v", err)
		}
	})
}

func TestBroken(t *testing.T) {
	n := 0
	_, err := script.Of(script.Text(strings.Repeat("x", 100)).Broken(3)).Generate(t.Context(), ask("x"), func(memgpt.Delta) { n++ })
	var e *memgpt.Error
	if !errors.As(err, &e) || e.Code != memgpt.CodeModelDown || !e.Started || n != 3 {
		t.Errorf("%d pieces, then %v", n, err)
	}
}

func post(t *testing.T, srv *httptest.Server, body string) (int, string, http.Header) {
	t.Helper()
	resp, err := srv.Client().Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(b) + " ERROR " + err.Error(), resp.Header
	}
	return resp.StatusCode, string(b), resp.Header
}

const plain = `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}`
const streamed = `{"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`

func TestServer(t *testing.T) {
	limit := &memgpt.Error{Code: memgpt.CodeModelLimit, Text: "slow down", RetryAfter: 1500 * time.Millisecond}
	for _, test := range []struct {
		name   string
		cfg    script.ServerConfig
		reply  script.Reply
		body   string
		status int
		want   []string
	}{
		{"plain", script.ServerConfig{}, script.Say("你好"), plain, 200, []string{`"arguments":"{\"message\":\"你好\"}"`, `"finish_reason":"tool_calls"`, `"prompt_tokens":89`}},
		{"stream", script.ServerConfig{}, script.Text("hello"), streamed, 200, []string{"data: ", `"content":"hello"`, `"choices":[]`, "data: [DONE]\n\n"}},
		{"bytes", script.ServerConfig{Bytewise: true}, script.Text("hello"), streamed, 200, []string{`"content":"hello"`, "data: [DONE]\n\n"}},
		{"stream refused", script.ServerConfig{Plain: true}, script.Text("hello"), streamed, 200, []string{`"message":{"content":"hello"`}},
		{"broken stream", script.ServerConfig{}, script.Text(strings.Repeat("x", 90)).Broken(2), streamed, 200, []string{`xx`, "ERROR"}},
		{"broken body", script.ServerConfig{}, script.Text("hello").Broken(2), plain, 200, []string{"ERROR"}},
		{"limit", script.ServerConfig{}, script.Fail(limit), plain, 429, []string{"slow down"}},
		{"no choices", script.ServerConfig{}, script.Fail(memgpt.Errorf(memgpt.CodeModelEmpty, "x")), plain, 200, []string{`"choices":[]`}},
		{"status", script.ServerConfig{}, script.Status(503, "<html>"), plain, 503, []string{"<html>"}},
		{"reset", script.ServerConfig{}, script.Reset(), plain, 0, []string{""}},
		{"half", script.ServerConfig{}, script.Half(`{"a":"bcd"}`), plain, 200, []string{`{"a":`, "ERROR"}},
		{"window", script.ServerConfig{Window: 50}, script.Say("x"), plain, 400, []string{"maximum context length is 50 tokens", "resulted in 89 tokens", "context_length_exceeded"}},
		{"llama window", script.ServerConfig{Window: 50, Style: script.StyleLlama}, script.Say("x"), plain, 400, []string{"exceed_context_size_error", `"n_ctx":50`, `"n_prompt_tokens":89`}},
		{"counted", script.ServerConfig{Window: 50, Count: func([]byte) int { return 50 }}, script.Say("x"), plain, 200, []string{`"prompt_tokens":50`}},
		{"strict", script.ServerConfig{Strict: true}, script.Say("x"), streamed, 400, []string{"stream_options"}},
		{"key", script.ServerConfig{Key: "k"}, script.Say("x"), plain, 401, []string{"authentication_error"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cfg.Replies = []script.Reply{test.reply}
			s := script.NewServer(test.cfg)
			srv := httptest.NewServer(s)
			defer srv.Close()
			status, body, _ := post(t, srv, test.body)
			if status != test.status {
				t.Errorf("status %d, want %d: %s", status, test.status, body)
			}
			for _, want := range test.want {
				if !strings.Contains(body, want) {
					t.Errorf("body lacks %q:\n%s", want, body)
				}
			}
			if len(s.Bodies()) != 1 || string(s.Bodies()[0]) != test.body {
				t.Errorf("recorded %q", s.Bodies())
			}
			if n := s.Model.Count() + s.Refused(); n != 1 {
				t.Errorf("%d requests answered or refused, want 1", n)
			}
		})
	}
}

func TestServerReadsRequests(t *testing.T) {
	s := script.NewServer(script.ServerConfig{Config: script.Config{Summary: func(*memgpt.Request) script.Reply { return script.Text("sum") }}})
	srv := httptest.NewServer(s)
	defer srv.Close()
	body := `{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:x"}}]},
{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]}`
	if _, got, _ := post(t, srv, body); !strings.Contains(got, `"content":"sum"`) {
		t.Errorf("a request without tools is not a summary's: %s", got)
	}
	want := []memgpt.Message{
		{Role: "system", Parts: memgpt.Parts{memgpt.Text{Text: "s"}}},
		{Role: "user", Parts: memgpt.Parts{memgpt.Text{Text: "a"}, memgpt.Image{URL: "data:x"}}},
		{Role: "assistant", Parts: memgpt.Parts{memgpt.Call{ID: "1", Name: "f", Arguments: "{}"}}},
		{Role: "tool", Parts: memgpt.Parts{memgpt.Result{CallID: "1", Text: "r"}}},
	}
	if diff := cmp.Diff(want, s.Model.Last().Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestServerHoldsManyAtOnce(t *testing.T) {
	gate := script.NewGate()
	s := script.NewServer(script.ServerConfig{Config: script.Config{CountOnly: true,
		Func: func(int, *memgpt.Request) script.Reply { return script.Text("ok").Held(gate) }}})
	srv := httptest.NewServer(s)
	defer srv.Close()
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if status, body, _ := post(t, srv, plain); status != 200 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	for range 200 {
		<-gate.Entered()
	}
	gate.Open()
	wg.Wait()
	if s.Posts() != 200 || s.Bodies() != nil {
		t.Errorf("%d posts, %d bodies kept", s.Posts(), len(s.Bodies()))
	}
}

func TestModels(t *testing.T) {
	srv := httptest.NewServer(script.NewServer(script.ServerConfig{Window: 4096, Style: script.StyleLlama}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !strings.Contains(string(b), `"meta":{"n_ctx":4096}`) {
		t.Errorf("models: %s", b)
	}
}
