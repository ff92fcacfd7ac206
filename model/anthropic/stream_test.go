package anthropic

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/internal/wire"
)

// TestAnswers holds how the ends of answers are read.
func TestAnswers(t *testing.T) {
	call := memgpt.Call{ID: "toolu_1", Name: "f", Arguments: `{"a":"b"}`}
	text := textBlock(0, "你", "好")
	for _, tt := range []struct {
		name, body string
		parts      memgpt.Parts
		finish     memgpt.Finish
	}{
		{"end_turn", answer("end_turn", text), memgpt.Parts{memgpt.Text{Text: "你好"}}, memgpt.FinishStop},
		{"stop_sequence", answer("stop_sequence", text), memgpt.Parts{memgpt.Text{Text: "你好"}}, memgpt.FinishStop},
		{"pause_turn", answer("pause_turn", text), memgpt.Parts{memgpt.Text{Text: "你好"}}, memgpt.FinishStop},
		{"a reason of the future", answer("moonrise", text), memgpt.Parts{memgpt.Text{Text: "你好"}}, memgpt.FinishStop},
		{"max_tokens", answer("max_tokens", text), memgpt.Parts{memgpt.Text{Text: "你好"}}, memgpt.FinishLength},
		{"window", answer("model_context_window_exceeded", text), memgpt.Parts{memgpt.Text{Text: "你好"}}, memgpt.FinishLength},
		{"tool_use", answer("tool_use", text, callBlock(1, "toolu_1", "f", `{"a"`, `:"b"}`)), memgpt.Parts{memgpt.Text{Text: "你好"}, call}, memgpt.FinishCalls},
		{"call with another reason", answer("end_turn", callBlock(0, "toolu_1", "f", `{"a":"b"}`)), memgpt.Parts{call}, memgpt.FinishCalls},
		{"call without arguments", answer("tool_use", callBlock(0, "toolu_1", "f")), memgpt.Parts{memgpt.Call{ID: "toolu_1", Name: "f", Arguments: "{}"}}, memgpt.FinishCalls},
		{"cut call", answer("max_tokens", callBlock(0, "toolu_1", "f", `{"a":"`)), memgpt.Parts{memgpt.Call{ID: "toolu_1", Name: "f", Arguments: `{"a":"`}}, memgpt.FinishLength},
		{"call cut before its arguments", answer("max_tokens", callBlock(0, "toolu_1", "f")), memgpt.Parts{memgpt.Call{ID: "toolu_1", Name: "f"}}, memgpt.FinishLength},
		{"ids twice and none", answer("tool_use", callBlock(0, "toolu_1", "f", "{}"), callBlock(1, "toolu_1", "f", "{}"), callBlock(2, "", "f", "{}")),
			memgpt.Parts{memgpt.Call{ID: "toolu_1", Name: "f", Arguments: "{}"}, memgpt.Call{ID: "new_1", Name: "f", Arguments: "{}"}, memgpt.Call{ID: "new_2", Name: "f", Arguments: "{}"}}, memgpt.FinishCalls},
		{"blocks out of turn", events(messageStart, started(0, `{"type":"text","text":"a"}`), started(1, `{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`),
			grown(0, `{"type":"text_delta","text":"b"}`), grown(1, `{"type":"input_json_delta","partial_json":"{\"a\":\"b\"}"}`), ends("tool_use"), messageStop),
			memgpt.Parts{memgpt.Text{Text: "ab"}, call}, memgpt.FinishCalls},
		{"unknown events and blocks", events(messageStart, `{"type":"weather","sun":true}`, started(0, `{"type":"server_tool_use","id":"x","name":"web_search","input":{}}`),
			grown(0, `{"type":"input_json_delta","partial_json":"{}"}`), stopped(0), started(1, `{"type":"text","text":""}`), grown(1, `{"type":"aroma_delta","aroma":1}`),
			grown(1, `{"type":"text_delta","text":"ok"}`), grown(9, `{"type":"text_delta","text":"lost"}`), ends("end_turn"), messageStop),
			memgpt.Parts{memgpt.Text{Text: "ok"}}, memgpt.FinishStop},
		{"no message_stop", events(append(append([]string{messageStart}, text...), ends("end_turn"))...), memgpt.Parts{memgpt.Text{Text: "你好"}}, memgpt.FinishStop},
		{"refusal with text", answer("refusal", text), memgpt.Parts{memgpt.Text{Text: "你好"}}, memgpt.FinishFilter},
		{"refusal", events(messageStart, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"Too dangerous."}},"usage":{"output_tokens":1}}`, messageStop),
			memgpt.Parts{memgpt.Text{Text: "[The provider declined to answer. bio: Too dangerous.]"}}, memgpt.FinishFilter},
		{"length without text", answer("max_tokens"), nil, memgpt.FinishLength},
		{"not text", answer("end_turn", []string{started(0, `{"type":"text","text":"a\u0000b\ud800"}`)}), memgpt.Parts{memgpt.Text{Text: "ab\uFFFD"}}, memgpt.FinishStop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			m, _ := serve(t, Config{NewID: func() string { n++; return fmt.Sprint("new_", n) }}, tt.body)
			var got heard
			resp, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "hi"})), got.add)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.parts, resp.Message.Parts); diff != "" || resp.Finish != tt.finish {
				t.Errorf("finish %s, want %s\n%s", resp.Finish, tt.finish, diff)
			}
			if diff := cmp.Diff(heardOf(resp), got, cmp.AllowUnexported(heard{})); diff != "" {
				t.Errorf("the pieces differ from the response: %s", diff)
			}
		})
	}
}

// TestUsage holds that what was cached is part of the input.
func TestUsage(t *testing.T) {
	m, _ := serve(t, Config{}, answer("end_turn", textBlock(0, "a", "b")))
	resp, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "hi"})), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := (memgpt.Usage{Input: 1125, Cached: 1000, Written: 100, Output: 42, Reasoning: 7, Calls: 1}); resp.Usage != want || resp.Model != "claude-opus-5-5" {
		t.Errorf("%s: usage %+v, want %+v", resp.Model, resp.Usage, want)
	}
}

// TestBroken holds what becomes of answers that end badly.
func TestBroken(t *testing.T) {
	half := events(append([]string{messageStart}, textBlock(0, "a", "b")...)...)
	overloaded := "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	for _, tt := range []struct {
		name, kind, body string
		code             memgpt.Code
		started          bool
		text             string
	}{
		{"breaks off", "", half, memgpt.CodeModelDown, true, "broke off"},
		{"breaks off before a piece", "", events(messageStart), memgpt.CodeModelDown, false, "broke off"},
		{"breaks off in a line", "", events(messageStart) + "event: content_block_start\ndata: {\"type\":", memgpt.CodeModelDown, false, "broke off"},
		{"nothing", "", "", memgpt.CodeModelDown, false, "without a body"},
		{"not JSON", "", events(messageStart) + "event: content_block_start\ndata: {oops\n\n", memgpt.CodeModelDown, false, "not JSON"},
		{"overloaded in the stream", "", half + overloaded, memgpt.CodeModelDown, true, "Overloaded"},
		{"overloaded at once", "", overloaded, memgpt.CodeModelDown, false, "Overloaded"},
		{"limit in the stream", "", events(messageStart, `{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}`), memgpt.CodeModelLimit, false, "Slow down"},
		{"empty", "", answer("end_turn"), memgpt.CodeModelEmpty, false, "without content"},
		{"thinking alone", "", answer("end_turn", thinkingBlock(0)), memgpt.CodeModelEmpty, true, "without content"},
		{"a page", "text/html", "<html>", memgpt.CodeModelRequest, false, "check the base URL"},
		{"an error in one piece", "application/json", `{"type":"error","error":{"type":"api_error","message":"Internal"}}`, memgpt.CodeModelDown, false, "Internal"},
		{"half a piece", "application/json", `{"type":"mess`, memgpt.CodeModelDown, false, "not whole JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, s := serveFunc(t, Config{}, func(_ int, _ *wireRequest, w http.ResponseWriter, _ *http.Request) {
				if tt.kind == "" {
					write(w, tt.body)
					return
				}
				w.Header().Set("Content-Type", tt.kind)
				_, _ = io.WriteString(w, tt.body)
			})
			resp, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "hi"})), nil)
			var e *memgpt.Error
			if !errors.As(err, &e) || e.Code != tt.code || e.Started != tt.started || !strings.Contains(e.Error(), tt.text) {
				t.Fatalf("error %+v, want %s, started %v, with %q", err, tt.code, tt.started, tt.text)
			}
			if (resp != nil) != (tt.code == memgpt.CodeModelEmpty) {
				t.Errorf("response %+v", resp)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// TestSilence holds both time limits, and that pings don't count as an answer.
func TestSilence(t *testing.T) {
	hold := func(first string) func(int, *wireRequest, http.ResponseWriter, *http.Request) {
		return func(_ int, _ *wireRequest, w http.ResponseWriter, r *http.Request) {
			write(w, first)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
				w.(http.Flusher).Flush()
				if first != "" {
					<-r.Context().Done()
				}
			}
		}
	}
	for _, tt := range []struct {
		name, first string
		cfg         Config
		started     bool
	}{
		{"only pings", "", Config{First: 30 * time.Millisecond}, false},
		{"stops in the middle", events(messageStart, started(0, `{"type":"text","text":"a"}`)), Config{Idle: 30 * time.Millisecond}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := serveFunc(t, tt.cfg, hold(tt.first))
			_, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "hi"})), nil)
			var e *memgpt.Error
			if !errors.As(err, &e) || e.Code != memgpt.CodeModelTimeout || e.Started != tt.started {
				t.Errorf("error %+v", err)
			}
		})
	}
}

// FuzzStream holds that no answer breaks the reader: what it passes on is text and adds up to the response.
func FuzzStream(f *testing.F) {
	f.Add([]byte(answer("tool_use", thinkingBlock(0), textBlock(1, "a", "b"), callBlock(2, "t", "f", `{"a":1}`))), false)
	f.Add([]byte(answer("refusal")), false)
	f.Add([]byte("data: {\"type\":\"content_block_delta\",\"index\":-1}\r\n\r\n"), false)
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use","input":[1]},{"type":"text","text":"x"}],"stop_reason":"end_turn"}`), true)
	f.Add([]byte(`{"type":"error","error":"no object"}`), true)
	m := &Model{host: "h"}
	f.Fuzz(func(t *testing.T, body []byte, whole bool) {
		rec := httptest.NewRecorder()
		if whole {
			rec.Header().Set("Content-Type", "application/json")
		}
		_, _ = rec.Write(body)
		w := wire.NewWatch(t.Context(), wire.Limits{First: time.Minute, Idle: time.Minute, Filler: filler})
		defer w.Stop()
		var got heard
		n := 0
		resp, fault := m.read(w, rec.Result(), newReply(func(d memgpt.Delta) {
			if got.add(d); !utf8.ValidString(d.Text + d.Reasoning) {
				t.Errorf("a piece is no text: %q", d.Text+d.Reasoning)
			}
		}, func() string { n++; return fmt.Sprint("new_", n) }, "m"))
		if (fault == nil) == (resp == nil) && fault.err.Code != memgpt.CodeModelEmpty {
			t.Fatalf("%v %v", resp, fault)
		}
		if fault != nil {
			return
		}
		if diff := cmp.Diff(heardOf(resp), got, cmp.AllowUnexported(heard{})); diff != "" {
			t.Errorf("the pieces differ from the response: %s", diff)
		}
		back := ask(user(memgpt.Text{Text: "a"}), resp.Message)
		raw, err := encode(back, "m", &m.cfg, form{thoughts: true})
		if err != nil {
			t.Fatalf("the response can't go back: %v", err)
		}
		_ = raw
	})
}
