package behaviour

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"memgpt"
	"memgpt/model/openai"
	"memgpt/model/script"
)

// TestOneOverflowAConversation has, in each protocol, a server that counts one token a byte and refuses what is over its
// window, in the words of its provider. A conversation runs into it at most once, and only where it begins with a text that
// is over it: from then on the count is right.
func TestOneOverflowAConversation(t *testing.T) {
	t.Parallel()
	const window = 24_000
	const chinese = "今天我们谈了很多事情,也谈了明天要做的那些。"
	for name, text := range map[string]string{"Chinese": chinese, "base64": "TG9uZyB0ZXh0cyB3aXRob3V0IHdvcmRzIGFyZSBoYXJk", "much Chinese at once": chinese} {
		first, bound := 12, 0
		if name == "much Chinese at once" {
			first, bound = 300, 1
		} else if underRaceDetector {
			continue // what is at once is in the third
		}
		for i := range protocols {
			p := &protocols[i]
			if p.name == "direct" {
				continue // it has no wire on which bytes could be counted
			}
			t.Run(name+" over "+p.name, func(t *testing.T) {
				var over atomic.Int64
				m, asks := p.open(t, script.ServerConfig{Window: window, Count: func(body []byte) int {
					if len(body) > window {
						over.Add(1)
					}
					return len(body)
				}, Config: script.Config{CountOnly: true,
					Func:    func(n int, _ *memgpt.Request) script.Reply { return script.Say(fmt.Sprint("好 ", n)) },
					Summary: func(*memgpt.Request) script.Reply { return script.Text("They talked.\nSearch for: talk") }}}, false)
				a := newHome(t, window).newAgent(t, m, "")
				folds := 0
				a.emit = func(u memgpt.Update) {
					if _, ok := u.(memgpt.Flushed); ok {
						folds++
					}
				}
				for n := 0; n < 100 && folds < 2; n++ {
					size := 12
					if n == 0 {
						size = first
					}
					if turn := a.say(fmt.Sprint(n, " ", strings.Repeat(text, size))); turn.State != memgpt.TurnDone {
						t.Fatalf("turn %d: %+v", n, turn)
					}
				}
				refused := int(over.Load())
				t.Logf("%d requests answered, %d over the window, %d folds", asks.Count(), refused, folds)
				if refused != bound || folds < 2 {
					t.Errorf("%d requests over the window, want %d; %d folds", refused, bound, folds)
				}
			})
		}
	}
}

// TestTextOnEveryWire has, in each protocol, a server that writes each byte by itself, in a text and in an argument: the text
// arrives as it is, and goes out as it is, without \\u escapes that models read badly.
func TestTextOnEveryWire(t *testing.T) {
	const text = "请牢记,我不能喝酒 🍷 naïve — 👩‍👩‍👧‍👦"
	for i := range protocols {
		p := &protocols[i]
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var bodies []string
			m, asks := p.open(t, script.ServerConfig{Bytewise: true, Count: func(body []byte) int {
				mu.Lock()
				defer mu.Unlock()
				bodies = append(bodies, string(body))
				return len(body) / 4
			}, Config: script.Config{Piece: 7, Replies: []script.Reply{script.Calls(script.Text(text), remember(text).Heartbeat()), script.Say(text)}}}, false)
			a := newHome(t, 32768).newAgent(t, m, "")
			var streamed strings.Builder
			a.emit = func(u memgpt.Update) {
				if s, ok := u.(memgpt.Streamed); ok {
					streamed.WriteString(s.Delta.Text)
				}
			}
			turn := a.say(text)
			got := a.effects(&turn, a.log())
			if len(got.Said) != 1 || got.Said[0] != text || got.Human != text || !strings.Contains(streamed.String(), text) {
				t.Errorf("%+v, streamed %q", got, streamed.String())
			}
			asks.Done(t)
			for n, body := range bodies {
				if !strings.Contains(body, text) || strings.Contains(body, `\u8bf7`) || strings.Contains(body, "\uFFFD") {
					t.Errorf("request %d does not hold the text as it is: %.300s", n, body)
				}
			}
		})
	}
}

// TestBrokenOnEveryWire has replies that break off after a few pieces, in each protocol: what was shown is taken back, and
// the user gets one whole reply.
func TestBrokenOnEveryWire(t *testing.T) {
	for i := range protocols {
		p := &protocols[i]
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			long := strings.Repeat("much is said here ", 20)
			m, asks := p.open(t, script.ServerConfig{Config: script.Config{Replies: []script.Reply{script.Calls(script.Text(long), script.Say(long)).Broken(3), script.Say("whole")}}}, false)
			a := newHome(t, 32768).newAgent(t, m, "")
			discarded := 0
			a.emit = func(u memgpt.Update) {
				if _, ok := u.(memgpt.StepDiscarded); ok {
					discarded++
				}
			}
			turn := a.say(asked)
			if got := a.effects(&turn, a.log()); fmt.Sprint(got.Said) != "[whole]" || turn.Stop != memgpt.StopEnd || discarded != 1 {
				t.Errorf("%+v, %d steps were taken back", got, discarded)
			}
			asks.Done(t)
		})
	}
}

// TestRefusalsOnEveryWire has what providers refuse or fail at, in each protocol: the caller sees the same code.
func TestRefusalsOnEveryWire(t *testing.T) {
	for i := range protocols {
		p := &protocols[i]
		for _, code := range []memgpt.Code{memgpt.CodeModelLimit, memgpt.CodeModelAuth, memgpt.CodeModelQuota, memgpt.CodeModelRequest, memgpt.CodeModelDown, memgpt.CodeModelTimeout, memgpt.CodeModelEmpty} {
			m, asks := p.open(t, script.ServerConfig{Config: script.Config{Replies: []script.Reply{script.Fail(&memgpt.Error{Code: code, Text: "refused", RetryAfter: 7 * time.Second})}}}, false)
			_, err := m.Generate(t.Context(), &memgpt.Request{Model: "script", Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hi")}}, nil)
			var e *memgpt.Error
			if !errors.As(err, &e) || e.Code != code || e.Started {
				t.Errorf("%s: %v, want %s", p.name, err, code)
			}
			if code == memgpt.CodeModelLimit && e.RetryAfter != 7*time.Second {
				t.Errorf("%s: wait %v", p.name, e.RetryAfter)
			}
			asks.Done(t)
		}
	}
}

// signer is Gemini's compatible endpoint in as far as signatures go: the first call of each reply gets one, in
// extra_content, and each request has to have all of them at their calls, byte for byte.
type signer struct {
	t      *testing.T
	mu     sync.Mutex
	script []string // calls of the replies, as JSON of name and arguments
	given  []string
	wrong  []string
}

func (s *signer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Stream   bool
		Messages []struct {
			Role  string
			Calls []struct {
				Extra struct {
					Google struct {
						Signature string `json:"thought_signature"`
					}
				} `json:"extra_content"`
			} `json:"tool_calls"`
		}
	}
	raw, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(raw, &body); err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, m := range body.Messages {
		for i, c := range m.Calls {
			if i == 0 {
				got = append(got, c.Extra.Google.Signature)
			} else if c.Extra.Google.Signature != "" {
				s.wrong = append(s.wrong, "a signature at a later call")
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(s.given) {
		s.wrong = append(s.wrong, fmt.Sprintf("request %d has %q, want %q", len(s.given), got, s.given))
	}
	signature := fmt.Sprintf("CsIB+/%d==", len(s.given))
	calls := strings.Replace(s.script[len(s.given)], `{"id"`, `{"extra_content":{"google":{"thought_signature":"`+signature+`"}},"id"`, 1)
	s.given = append(s.given, signature)
	if body.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":%s}}]}\n\n"+
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n", calls)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":%s},"finish_reason":"tool_calls"}]}`, calls)
}

// TestSignaturesGoThroughTheLog has turns of several steps with Gemini: what it signs comes back unchanged in every later
// request, out of the log of the store, also after another process has opened it.
func TestSignaturesGoThroughTheLog(t *testing.T) {
	call := func(name, args string) string {
		quoted, _ := json.Marshal(args)
		return `{"id":"","type":"function","function":{"name":"` + name + `","arguments":` + string(quoted) + `}}`
	}
	for _, noStream := range []bool{false, true} {
		s := &signer{t: t, script: []string{
			"[" + call("core_memory_append", `{"label":"human","content":"drinks tea","request_heartbeat":true}`) + "," + call("archival_memory_insert", `{"content":"tea"}`) + "]",
			"[" + call("send_message", `{"message":"noted"}`) + "]",
			"[" + call("core_memory_append", `{"label":"human","content":"and wine","request_heartbeat":true}`) + "]",
			"[" + call("send_message", `{"message":"noted too"}`) + "]",
		}}
		srv := httptest.NewServer(s)
		t.Cleanup(srv.Close)
		h := newHome(t, 32768)
		var a *agent
		for range 2 {
			m, err := openai.New(openai.Config{BaseURL: srv.URL, Provider: "gemini", Model: "gemini-3", NoStream: noStream})
			must(t, err)
			if a == nil {
				a = h.newAgent(t, closed(t, m), "")
			}
			h.mu.Lock()
			h.models[a.id] = closed(t, m) // one that has seen nothing of the conversation
			h.mu.Unlock()
			if turn := a.say(asked); turn.Steps != 2 || turn.Stop != memgpt.StopEnd {
				t.Errorf("%+v", turn)
			}
		}
		if len(s.wrong) > 0 || len(s.given) != 4 {
			t.Errorf("in one piece %v: after %d replies: %q", noStream, len(s.given), s.wrong)
		}
	}
}
