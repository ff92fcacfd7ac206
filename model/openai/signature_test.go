package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
)

// signedServer answers as Gemini's compatible endpoint does: a call whole, without an index, its signature in
// extra_content; the signature of a reply without calls in extra_content of the message. It refuses a first call without
// the signature that it gave, or the word for one that is not known, and names of its own that it does not know.
type signedServer struct {
	account string // what its signatures begin with
	mu      sync.Mutex
	bodies  []string
	refused []string
}

const signedCalls = `"tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":1}"},"extra_content":{"google":{"thought_signature":"%[1]sAb+/=="}}},` +
	`{"id":"","type":"function","function":{"name":"g","arguments":"{}"}}]`

func (s *signedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var body struct {
		Stream   bool `json:"stream"`
		Tools    []any
		Messages []struct {
			Role  string          `json:"role"`
			Extra json.RawMessage `json:"extra_content"`
			Calls []struct {
				Extra json.RawMessage `json:"extra_content"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		http.Error(w, `[{"error":{"code":400,"message":"Invalid JSON payload received.","status":"INVALID_ARGUMENT"}}]`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, string(raw))
	for i, m := range body.Messages {
		extras := []json.RawMessage{m.Extra}
		for n, c := range m.Calls {
			if n == 0 && c.Extra == nil {
				s.refuse(w, fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call `default_api:f` , position %d.", i))
				return
			}
			extras = append(extras, c.Extra)
		}
		for _, extra := range extras {
			if extra != nil && !strings.Contains(string(extra), `"`+s.account) && string(extra) != skipSignature {
				s.refuse(w, "Corrupted thought signature.")
				return
			}
		}
	}
	message := fmt.Sprintf(`"content":"so","extra_content":{"google":{"thought_signature":"%sText=="}}`, s.account)
	if len(body.Tools) > 0 {
		message = fmt.Sprintf(signedCalls, s.account)
	}
	if !body.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant",%s},"finish_reason":"stop"}]}`, message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, stream(`{"choices":[{"index":0,"delta":{"role":"assistant",`+message+`}}]}`, `{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":"stop"}]}`, done))
}

func (s *signedServer) refuse(w http.ResponseWriter, text string) {
	s.refused = append(s.refused, text)
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode([]any{map[string]any{"error": map[string]any{"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}})
}

// signedHistory asks once with functions and once without, and returns the conversation with both replies, as it comes
// out of a log.
func signedHistory(t *testing.T, m *Model, req *memgpt.Request) *memgpt.Request {
	t.Helper()
	for _, tools := range [][]memgpt.ToolSpec{req.Tools, nil} {
		ask := *req
		ask.Tools = tools
		var h heard
		resp, err := m.Generate(t.Context(), &ask, h.add)
		if err != nil {
			t.Fatal(err)
		}
		h.same(t, resp)
		logged, err := json.Marshal(resp.Message)
		if err != nil {
			t.Fatal(err)
		}
		var back memgpt.Message
		if err := json.Unmarshal(logged, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(resp.Message, back); d != "" {
			t.Errorf("the log changes a reply: %s", d)
		}
		req.Messages = append(req.Messages, back)
		for _, c := range back.Calls() {
			req.Messages = append(req.Messages, memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: c.ID, Name: c.Name, Text: "ok"}}})
		}
	}
	return req
}

// TestSignatures carries signatures through the log and back unchanged, in streams and in one piece, to Gemini and to a
// gateway before it that nobody knows.
func TestSignatures(t *testing.T) {
	for _, provider := range []string{"gemini", ""} {
		for _, noStream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in one piece %v", provider, noStream), func(t *testing.T) {
				s := &signedServer{account: "own"}
				m := serve(t, s, Config{Provider: provider, NoStream: noStream, Model: "gemini-3"})
				req := ask("hi")
				req.Tools = worked().Tools
				if _, err := m.Generate(t.Context(), signedHistory(t, m, req), nil); err != nil {
					t.Fatal(err)
				}
				last := s.bodies[len(s.bodies)-1]
				if len(s.refused) > 0 || strings.Count(last, `"extra_content":{"google":{"thought_signature":"ownAb+/=="}}`) != 1 ||
					strings.Count(last, `"content":"so","extra_content":{"google":{"thought_signature":"ownText=="}}`) != 1 || strings.Count(last, "extra_content") != 2 {
					t.Errorf("refusals %q; the last request: %s", s.refused, last)
				}
			})
		}
	}
}

// TestForeignSignatures has histories that another account or another model made: one refusal each, and it is remembered.
func TestForeignSignatures(t *testing.T) {
	for _, provider := range []string{"gemini", ""} {
		other := &signedServer{account: "other"}
		m := serve(t, other, Config{Provider: provider})
		req := ask("hi")
		req.Tools = worked().Tools
		req = signedHistory(t, m, req)
		s := &signedServer{account: "own"}
		m = serve(t, s, Config{Provider: provider})
		for range 2 {
			if _, err := m.Generate(t.Context(), req, nil); err != nil {
				t.Errorf("%q, another account's: %v", provider, err)
			}
		}
		unsigned := &signedServer{account: "own"}
		m = serve(t, unsigned, Config{Provider: provider})
		for range 2 {
			if _, err := m.Generate(t.Context(), worked(), nil); err != nil {
				t.Errorf("%q, another model's: %v", provider, err)
			}
		}
		wantUnsigned := 0
		if provider == "" {
			wantUnsigned = 1
		}
		most := 1 + wantUnsigned // a gateway has to learn of the word for what is not known, too
		if len(s.refused) < 1 || len(s.refused) > most || len(unsigned.refused) != wantUnsigned {
			t.Errorf("%q: refusals %q and %q", provider, s.refused, unsigned.refused)
		}
	}
}

// TestNamesOfItsOwn has a server that takes no addition to a message, then none at all.
func TestNamesOfItsOwn(t *testing.T) {
	other := &signedServer{account: "other"}
	m := serve(t, other, Config{})
	req := ask("hi")
	req.Tools = worked().Tools
	req = signedHistory(t, m, req)
	for name, bad := range map[string]func(string) bool{
		"message": func(body string) bool { return strings.Contains(body, `"content":"so","extra_content"`) },
		"all":     func(body string) bool { return strings.Contains(body, `"extra_content"`) },
	} {
		plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"so"},"finish_reason":"stop"}]}`)
		})
		h := refusing(plain, 400, `{"error":{"message":"Unknown name \"extra_content\": cannot find field: unknown field"}}`, bad)
		m := serve(t, h, Config{})
		if _, err := m.Generate(t.Context(), req, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
