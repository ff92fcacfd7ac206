// Package modeltest is the contract of memgpt.Model as a test. Every implementation runs it.
//
// It holds the sentences of the contract that are true of any model. What a protocol looks like on the wire, and what a
// model says, are the tests of each implementation.
package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"memgpt"
)

// Subject is what is tested.
type Subject struct {
	// Model answers any request with text, calls or both. One that can call functions should make several calls where
	// the request offers tools, so that the ids of calls are looked at.
	Model memgpt.Model
	// Stuck is of the same kind and never answers by itself; nil where there can't be one.
	Stuck memgpt.Model
	// Connections returns how many connections both have opened so far; nil for models that open none.
	Connections func() int
}

// Factory makes a new subject. What it opens it closes by t.Cleanup.
type Factory func(t *testing.T) Subject

// Run tests the contract.
func Run(t *testing.T, factory Factory) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"capabilities open no connection", capabilities},
		{"request is neither changed nor kept", requestIsLent},
		{"messages that were let go are made again", restores},
		{"pieces add up to the response", adds},
		{"response is well formed", formed},
		{"concurrent calls", concurrent},
		{"a context's end before the call", ended},
		{"a context's end during the call", cancelled},
		{"a deadline during the call", deadline},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, factory(t)) })
	}
}

// Request returns a request with every kind of message and part, as the kernel compiles it.
func Request(text string) *memgpt.Request {
	return &memgpt.Request{
		Messages: []memgpt.Message{
			memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "You are a test. <memory_blocks>\n</memory_blocks>"),
			memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, `{"type":"user_message","message":"请牢记,我不能喝酒 🍷","time":"2026-01-02T03:04:05+08:00"}`),
			{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: memgpt.Parts{
				memgpt.Reasoning{Text: "think", Provider: "other", Data: json.RawMessage(`{"a":1}`)},
				memgpt.Text{Text: "monologue", Thought: true},
				memgpt.Call{ID: "call_a", Name: "core_memory_append", Arguments: `{"label":"human","content":"不能喝酒"}`},
				memgpt.Call{ID: strings.Repeat("x", 60), Name: memgpt.FuncSendMessage, Arguments: `{"message":"好"}`},
			}},
			{Role: memgpt.RoleTool, Origin: memgpt.OriginTool, Parts: memgpt.Parts{memgpt.Result{CallID: "call_a", Name: "core_memory_append", Text: `{"status":"OK"}`}}},
			{Role: memgpt.RoleTool, Origin: memgpt.OriginTool, Parts: memgpt.Parts{memgpt.Result{CallID: strings.Repeat("x", 60), Name: memgpt.FuncSendMessage, Text: `{"status":"OK"}`}}},
			{Role: memgpt.RoleUser, Origin: memgpt.OriginUser, Parts: memgpt.Parts{
				memgpt.Text{Text: `{"type":"user_message","message":"` + text + `","time":"2026-01-02T03:05:00+08:00"}`},
				memgpt.Image{MIME: "image/png", Data: []byte("\x89PNG")},
				memgpt.File{Name: "a.txt", MIME: "text/plain", Data: []byte("file")},
				memgpt.Unknown{Kind: "hologram", Raw: json.RawMessage(`{"z":1}`)},
			}},
		},
		Tools: []memgpt.ToolSpec{
			{Name: memgpt.FuncSendMessage, Description: "Speak.", Parameters: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`)},
			{Name: "core_memory_append", Description: "Remember.", Parameters: json.RawMessage(`{"type":"object","properties":{"label":{"type":"string"},"content":{"type":"string"}},"required":["label","content"]}`)},
		},
		MaxTokens: 1000,
		Window:    8192,
		Session:   "conv-test",
	}
}

// limit bounds a call that should take no time at all.
const limit = 10 * time.Second

func generate(t *testing.T, m memgpt.Model, req *memgpt.Request, stream func(memgpt.Delta)) *memgpt.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	resp, err := m.Generate(ctx, req, stream)
	if err != nil {
		t.Fatalf("generate: %v", err)
	}
	if resp == nil {
		t.Fatal("generate: neither a response nor an error")
	}
	return resp
}

func capabilities(t *testing.T, s Subject) {
	c := s.Model.Capabilities()
	if c.Name == "" {
		t.Error("a model without a name")
	}
	if c.Window < 0 || c.MaxOutput < 0 {
		t.Errorf("negative sizes: %+v", c)
	}
	if c != s.Model.Capabilities() {
		t.Error("two answers without a call in between differ")
	}
	if s.Connections != nil && s.Connections() != 0 {
		t.Errorf("Capabilities opened %d connections", s.Connections())
	}
}

func requestIsLent(t *testing.T, s Subject) {
	req, same := Request("hi"), Request("hi")
	first := generate(t, s.Model, req, nil)
	if !reflect.DeepEqual(req, same) {
		t.Errorf("the request was changed:\n got %+v\nwant %+v", req, same)
	}
	before := fmt.Sprintf("%+v", first)
	spoil(req)
	if after := fmt.Sprintf("%+v", first); after != before {
		t.Errorf("the response refers to the request: it changed with it:\n%s\n%s", before, after)
	}
	generate(t, s.Model, Request("again"), nil)
	if after := fmt.Sprintf("%+v", first); after != before {
		t.Errorf("the response changed with the next call:\n%s\n%s", before, after)
	}
}

// restores calls twice with one request whose messages can be made again, as a retry does.
func restores(t *testing.T, s Subject) {
	req := Request("hi")
	made, messages := 0, req.Messages
	req.Again = func() []memgpt.Message {
		made++
		return messages
	}
	for try := 1; try <= 2; try++ {
		req.Release()
		generate(t, s.Model, req, nil)
		if made < try {
			t.Errorf("call %d did not ask for the messages", try)
		}
	}
}

// spoil overwrites all that a request refers to.
func spoil(req *memgpt.Request) {
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case memgpt.Image:
				fill(p.Data)
			case memgpt.File:
				fill(p.Data)
			case memgpt.Reasoning:
				fill(p.Data)
			case memgpt.Unknown:
				fill(p.Raw)
			}
		}
		clear(req.Messages[i].Parts)
	}
	for i := range req.Tools {
		fill(req.Tools[i].Parameters)
	}
	clear(req.Messages)
	clear(req.Tools)
}

func fill(b []byte) { copy(b, bytes.Repeat([]byte{'!'}, len(b))) }

// sum adds pieces up as a reader of a stream does.
type sum struct {
	text, reasoning string
	calls           []memgpt.Call
	problems        []string
}

func (s *sum) add(d memgpt.Delta) {
	fields := 0
	for _, set := range []bool{d.Text != "", d.Reasoning != "", d.Call != nil} {
		if set {
			fields++
		}
	}
	if fields != 1 {
		s.problems = append(s.problems, fmt.Sprintf("a piece has %d fields set, want 1: %+v", fields, d))
	}
	s.text += d.Text
	s.reasoning += d.Reasoning
	if d.Call != nil {
		s.addCall(d.Call)
		d.Text = d.Call.Name + d.Call.Arguments
	}
	if !utf8.ValidString(d.Text + d.Reasoning) {
		s.problems = append(s.problems, fmt.Sprintf("a piece is no text: %q", d.Text+d.Reasoning))
	}
}

func (s *sum) addCall(c *memgpt.CallDelta) {
	for len(s.calls) <= c.Index {
		s.calls = append(s.calls, memgpt.Call{})
	}
	call := &s.calls[c.Index]
	if first := call.ID == ""; first != (c.ID != "") || first != (c.Name != "") {
		s.problems = append(s.problems, fmt.Sprintf("id and name come with the first piece of a call and never again: %+v", c))
	}
	call.ID += c.ID
	call.Name += c.Name
	call.Arguments += c.Arguments
}

func adds(t *testing.T, s Subject) {
	for _, tools := range []bool{true, false} {
		req := Request("stream")
		if !tools {
			req.Tools = nil
		}
		var got, want sum
		resp := generate(t, s.Model, req, got.add)
		for _, p := range resp.Message.Parts {
			switch p := p.(type) {
			case memgpt.Text:
				want.text += p.Text
			case memgpt.Reasoning:
				want.reasoning += p.Text
			case memgpt.Call:
				want.calls = append(want.calls, p)
			}
		}
		for _, problem := range got.problems {
			t.Error(problem)
		}
		got.problems = nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("pieces %+v\nresponse %+v", got, want)
		}
	}
}

func formed(t *testing.T, s Subject) {
	check(t, generate(t, s.Model, Request("form"), nil))
	sum := Request("fold this")
	sum.Purpose, sum.Tools = memgpt.PurposeSummary, nil
	check(t, generate(t, s.Model, sum, nil))
}

// check looks at a response by itself.
func check(t *testing.T, resp *memgpt.Response) {
	t.Helper()
	if resp.Message.Role != memgpt.RoleAssistant {
		t.Errorf("role %q", resp.Message.Role)
	}
	switch resp.Finish {
	case memgpt.FinishStop, memgpt.FinishCalls, memgpt.FinishLength, memgpt.FinishFilter:
	default:
		t.Errorf("finish %q", resp.Finish)
	}
	ids := map[string]bool{}
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			checkText(t, p.Text)
		case memgpt.Reasoning:
			checkText(t, p.Text)
		case memgpt.Call:
			checkText(t, p.ID+p.Name+p.Arguments)
			if p.ID == "" || ids[p.ID] {
				t.Errorf("id %q of a call is empty or taken", p.ID)
			}
			ids[p.ID] = true
		default:
			t.Errorf("a part of type %T in a response", p)
		}
	}
	if len(resp.Message.Parts) == 0 && resp.Finish != memgpt.FinishLength && resp.Finish != memgpt.FinishFilter {
		t.Error("a response without content is an error with CodeModelEmpty")
	}
	if len(ids) > 0 == (resp.Finish == memgpt.FinishStop) {
		t.Errorf("%d calls, and finish is %q", len(ids), resp.Finish)
	}
	if u := resp.Usage; u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.Cached > u.Input || u.Reasoning < 0 {
		t.Errorf("usage %+v", u)
	}
}

func checkText(t *testing.T, s string) {
	t.Helper()
	if s != memgpt.CleanText(s) {
		t.Errorf("text is not valid UTF-8 without NUL: %q", s)
	}
}

func concurrent(t *testing.T, s Subject) {
	var wg sync.WaitGroup
	ids := make([][]memgpt.Call, 8)
	for i := range ids {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var got sum
			resp, err := s.Model.Generate(ctx, Request(fmt.Sprint("call ", i)), got.add)
			if err != nil {
				t.Errorf("call %d: %v", i, err)
				return
			}
			if ids[i] = resp.Message.Calls(); !reflect.DeepEqual(got.calls, ids[i]) {
				t.Errorf("call %d: the pieces of another call came: %+v, want %+v", i, got.calls, ids[i])
			}
		})
	}
	wg.Wait()
}

func ended(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	resp, err := s.Model.Generate(ctx, Request("never"), func(d memgpt.Delta) { t.Errorf("a piece: %+v", d) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v; want the context's error", resp, err)
	}
}

func cancelled(t *testing.T, s Subject) {
	if s.Stuck == nil {
		t.Skip("it can't be stuck")
	}
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, cancel)
	defer timer.Stop()
	stuck(ctx, t, s.Stuck, context.Canceled)
}

func deadline(t *testing.T, s Subject) {
	if s.Stuck == nil {
		t.Skip("it can't be stuck")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	stuck(ctx, t, s.Stuck, context.DeadlineExceeded)
}

// stuck calls a model that never answers and wants it to end with its context, within a second of it.
func stuck(ctx context.Context, t *testing.T, m memgpt.Model, want error) {
	t.Helper()
	start := time.Now()
	_, err := m.Generate(ctx, Request("wait"), func(memgpt.Delta) {})
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v to end with its context", took)
	}
}
