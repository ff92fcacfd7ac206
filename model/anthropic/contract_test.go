package anthropic

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"memgpt/model/modeltest"
)

// TestContract runs the contract against a server that refuses whatever the API refuses.
func TestContract(t *testing.T) {
	calls := answer("tool_use", thinkingBlock(0), textBlock(1, "好", "的"), callBlock(2, "toolu_1", "send_message", `{"message":`, `"你好🍷"}`), callBlock(3, "toolu_2", "f"))
	text := answer("end_turn", textBlock(0, "只有", "文字 🍷"))
	for name, write := range map[string]func(http.ResponseWriter, string){
		"stream": write,
		"bytewise": func(w http.ResponseWriter, body string) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range len(body) {
				_, _ = io.WriteString(w, body[i:i+1])
				w.(http.Flusher).Flush()
			}
		},
		"one piece": func(w http.ResponseWriter, body string) {
			w.Header().Set("Content-Type", "application/json")
			if body == text {
				_, _ = io.WriteString(w, `{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"只有文字"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}`)
				return
			}
			_, _ = io.WriteString(w, `{"type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"想","signature":"s"},{"type":"text","text":"好"},`+
				`{"type":"tool_use","id":"a","name":"send_message","input":{"message":"你好"}},{"type":"tool_use","id":"b","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			modeltest.Run(t, func(t *testing.T) modeltest.Subject {
				var opened atomic.Int64
				at := func(answer func(int, *wireRequest, http.ResponseWriter, *http.Request)) *Model {
					srv := httptest.NewUnstartedServer(&server{t: t, answer: answer})
					srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
						if s == http.StateNew {
							opened.Add(1)
						}
					}
					srv.Start()
					t.Cleanup(srv.Close)
					m, err := New(Config{BaseURL: srv.URL, APIKey: "k", Model: "claude-opus-5-5"})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = m.Close() })
					return m
				}
				return modeltest.Subject{
					Model: at(func(_ int, req *wireRequest, w http.ResponseWriter, _ *http.Request) {
						if req.ToolChoice["type"] == "none" {
							write(w, text)
						} else {
							write(w, calls)
						}
					}),
					Stuck:       at(func(_ int, _ *wireRequest, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
					Connections: func() int { return int(opened.Load()) },
				}
			})
		})
	}
}
