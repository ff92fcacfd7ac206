package ollama

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"memgpt"
)

// wireChat is a request as the server reads it.
type wireChat struct {
	Model    string `json:"model"`
	Messages []struct {
		Role     string   `json:"role"`
		Content  string   `json:"content"`
		Thinking string   `json:"thinking"`
		Images   [][]byte `json:"images"`
		Calls    []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string         `json:"name"`
				Arguments map[string]any `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		ToolName string `json:"tool_name"`
		CallID   string `json:"tool_call_id"`
	} `json:"messages"`
	Tools     []map[string]any `json:"tools"`
	Stream    *bool            `json:"stream"`
	Think     any              `json:"think"`
	KeepAlive any              `json:"keep_alive"`
	Options   map[string]any   `json:"options"`
	Truncate  *bool            `json:"truncate"`
	Shift     *bool            `json:"shift"`
}

// judge refuses what the server's decoder refuses, and what would break a rule of ours: a cut in silence, a result that
// doesn't follow its call.
func (r *wireChat) judge() error {
	if r.Truncate == nil || *r.Truncate || r.Shift == nil || *r.Shift {
		return fmt.Errorf("the server may cut the prompt in silence")
	}
	var open []string
	for i := range r.Messages {
		m := &r.Messages[i]
		switch {
		case m.Role == "tool" && (len(open) == 0 || m.CallID != open[0] || m.ToolName == ""):
			return fmt.Errorf("message %d: result of %q (%s), want %q", i, m.CallID, m.ToolName, open)
		case m.Role == "tool":
			open = open[1:]
		case len(open) > 0:
			return fmt.Errorf("message %d: calls %q have no result", i, open)
		case m.Role != "user" && m.Role != "assistant" && (m.Role != "system" || i > 0):
			return fmt.Errorf("message %d: role %q", i, m.Role)
		}
		for _, c := range m.Calls {
			if c.Function.Arguments == nil || c.Function.Name == "" {
				return fmt.Errorf("message %d: call %+v", i, c)
			}
			open = append(open, c.ID)
		}
	}
	return nil
}

// server speaks Ollama's protocol from a script.
type server struct {
	t       *testing.T
	show    string // answer of /api/show; "" is a model that does everything
	version string
	answer  func(n int, req *wireChat, w http.ResponseWriter, r *http.Request)

	mu     sync.Mutex
	paths  []string
	bodies [][]byte // of /api/chat
}

const everything = `{"template":"{{ .Tools }}","capabilities":["completion","tools","thinking","vision"],"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960}}`

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.paths = append(s.paths, r.Method+" "+r.URL.Path)
	n := 0
	if r.URL.Path == "/api/chat" || r.URL.Path == "/api/pull" {
		s.bodies = append(s.bodies, body)
		n = len(s.bodies)
	}
	s.mu.Unlock()
	switch r.URL.Path {
	case "/api/show":
		if strings.Contains(string(body), "missing") {
			refuse(w, 404, "model 'missing' not found")
			return
		}
		_, _ = io.WriteString(w, s.show)
	case "/api/version":
		_, _ = io.WriteString(w, `{"version":"`+s.version+`"}`)
	case "/api/chat":
		var req wireChat
		if err = json.Unmarshal(body, &req); err == nil {
			err = req.judge()
		}
		if err != nil {
			s.t.Errorf("%v\n%s", err, body)
			refuse(w, 400, err.Error())
			return
		}
		s.answer(n, &req, w, r)
	case "/api/pull":
		s.answer(n, nil, w, r)
	default:
		refuse(w, 404, "page not found")
	}
}

func (s *server) request(i int) *wireChat {
	s.mu.Lock()
	defer s.mu.Unlock()
	var req wireChat
	if err := json.Unmarshal(s.bodies[i], &req); err != nil {
		s.t.Fatal(err)
	}
	return &req
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	b, err := json.Marshal(map[string]string{"error": text})
	if err == nil {
		_, _ = w.Write(b)
	}
}

// serve starts a server and a model at it.
func serve(t *testing.T, cfg Config, s *server) *Model {
	t.Helper()
	s.t = t
	if s.show == "" {
		s.show = everything
	}
	if s.version == "" {
		s.version = "0.33.2"
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	cfg.BaseURL = srv.URL
	if cfg.Model == "" {
		cfg.Model = "qwen3:8b"
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// says answers each request with the same lines.
func says(lines ...string) func(int, *wireChat, http.ResponseWriter, *http.Request) {
	return func(_ int, _ *wireChat, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, strings.Join(lines, "\n"))
	}
}

func piece(message string) string {
	return `{"model":"qwen3:8b","created_at":"2026-11-30T12:00:00.1Z","message":` + message + `,"done":false}`
}

func end(reason, rest string) string {
	return `{"model":"qwen3:8b","created_at":"2026-11-30T12:00:01Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"` + reason + `"` + rest + "}\n"
}

const counts = `,"total_duration":9,"load_duration":1,"prompt_eval_count":26,"prompt_eval_duration":3,"eval_count":298,"eval_duration":4`

func ask(list ...memgpt.Message) *memgpt.Request {
	return &memgpt.Request{Messages: append([]memgpt.Message{memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "system")}, list...), MaxTokens: 500, Window: 8192,
		Tools: []memgpt.ToolSpec{{Name: "f", Description: "Does f.", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}}
}

func user(parts ...memgpt.Part) memgpt.Message {
	return memgpt.Message{Role: memgpt.RoleUser, Parts: parts}
}

func hi() *memgpt.Request { return ask(user(memgpt.Text{Text: "hi"})) }
