package anthropic

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"memgpt"
)

// wireBlock, wireMessage and wireRequest are a request as a server reads it.
type wireBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     string          `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	IsError      bool            `json:"is_error"`
	Content      []wireBlock     `json:"content"`
	Source       map[string]any  `json:"source"`
	CacheControl *struct {
		Type string `json:"type"`
	} `json:"cache_control"`
}

type wireMessage struct {
	Role    string      `json:"role"`
	Content []wireBlock `json:"content"`
}

type wireRequest struct {
	Model     string      `json:"model"`
	MaxTokens int         `json:"max_tokens"`
	Stream    bool        `json:"stream"`
	System    []wireBlock `json:"system"`
	Tools     []struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		CacheControl json.RawMessage `json:"cache_control"`
	} `json:"tools"`
	ToolChoice map[string]any `json:"tool_choice"`
	Messages   []wireMessage  `json:"messages"`
	Thinking   map[string]any `json:"thinking"`
}

var (
	toolIDForm   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	toolNameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
)

// judge refuses what the Messages API refuses (its reference and its guides to tool use, thinking and caching).
func (r *wireRequest) judge() error {
	if r.Model == "" || r.MaxTokens < 1 || len(r.Messages) == 0 {
		return fmt.Errorf("model, max_tokens and messages: field required")
	}
	marks, names := 0, map[string]bool{}
	for _, t := range r.Tools {
		if !toolNameForm.MatchString(t.Name) || names[t.Name] || !strings.HasPrefix(string(t.InputSchema), "{") {
			return fmt.Errorf("tools: %q", t.Name)
		}
		names[t.Name] = true
		if t.CacheControl != nil {
			marks++
		}
	}
	ids := map[string]bool{}
	for i := range r.Messages {
		m := &r.Messages[i]
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("messages.%d: role %q, want %s", i, m.Role, want)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("messages.%d: all messages must have non-empty content", i)
		}
		if err := r.judgeContent(i, ids); err != nil {
			return err
		}
	}
	if len(r.Messages)%2 == 0 {
		return fmt.Errorf("this model does not support assistant message prefill")
	}
	if len(ids) > 0 && len(r.Tools) == 0 {
		return fmt.Errorf("requests which include tool_use blocks must define tools")
	}
	for _, b := range r.System {
		if strings.TrimSpace(b.Text) == "" {
			return fmt.Errorf("system: text content blocks must be non-empty")
		}
	}
	marks += strings.Count(mustJSON(r.System)+mustJSON(r.Messages), `"cache_control":{`)
	if marks > 4 {
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided, found %d", marks)
	}
	return nil
}

func (r *wireRequest) judgeContent(i int, ids map[string]bool) error {
	content := r.Messages[i].Content
	var want []string // ids whose results must come first
	if i > 0 {
		for _, b := range r.Messages[i-1].Content {
			if b.Type == "tool_use" {
				want = append(want, b.ID)
			}
		}
	}
	called := false
	for j, b := range content {
		if j < len(want) != (b.Type == "tool_result") || j < len(want) && b.ToolUseID != want[j] {
			return fmt.Errorf("messages.%d.content.%d: tool_use ids %q want tool_result blocks immediately after, in order; found %s %q", i, j, want, b.Type, b.ToolUseID)
		}
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				return fmt.Errorf("messages.%d.content.%d: text content blocks must contain non-whitespace text", i, j)
			}
		case "tool_use":
			if ids[b.ID] || !toolIDForm.MatchString(b.ID) || !toolNameForm.MatchString(b.Name) || !strings.HasPrefix(string(b.Input), "{") {
				return fmt.Errorf("messages.%d.content.%d: tool_use %q %q %s", i, j, b.ID, b.Name, b.Input)
			}
			ids[b.ID], called = true, true
		case "thinking", "redacted_thinking":
			if called || b.CacheControl != nil || b.Signature+b.Data == "" {
				return fmt.Errorf("messages.%d.content.%d: thinking out of its place or changed", i, j)
			}
		}
	}
	if len(content) < len(want) {
		return fmt.Errorf("messages.%d: tool_use ids %q without tool_result blocks", i, want)
	}
	if last := content[len(content)-1].Type; strings.Contains(last, "thinking") {
		return fmt.Errorf("messages.%d: the final block can't be %s", i, last)
	}
	return nil
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// server speaks the Messages API from a script. It refuses what the API refuses.
type server struct {
	t      *testing.T
	answer func(n int, req *wireRequest, w http.ResponseWriter, r *http.Request)

	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.heads = append(s.heads, r.Header)
	n := len(s.bodies)
	s.mu.Unlock()
	if r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		refuse(w, 404, "not_found_error", "no such path: "+r.URL.Path)
		return
	}
	var req wireRequest
	if err = json.Unmarshal(body, &req); err == nil {
		err = req.judge()
	}
	if err != nil {
		s.t.Errorf("the API would refuse this request: %v\n%s", err, body)
		refuse(w, 400, "invalid_request_error", err.Error())
		return
	}
	s.answer(n, &req, w, r)
}

func (s *server) body(i int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.bodies[i])
}

func (s *server) requests() []wireRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]wireRequest, len(s.bodies))
	for i, b := range s.bodies {
		if err := json.Unmarshal(b, &list[i]); err != nil {
			s.t.Fatal(err)
		}
	}
	return list
}

func refuse(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"type":"error","error":{"type":`+mustJSON(kind)+`,"message":`+mustJSON(text)+`},"request_id":"req_1"}`)
}

// serve starts a server that always answers with the given body of events, and a model at it.
func serve(t *testing.T, cfg Config, body string) (*Model, *server) {
	return serveFunc(t, cfg, func(_ int, _ *wireRequest, w http.ResponseWriter, _ *http.Request) { write(w, body) })
}

func serveFunc(t *testing.T, cfg Config, answer func(int, *wireRequest, http.ResponseWriter, *http.Request)) (*Model, *server) {
	t.Helper()
	s := &server{t: t, answer: answer}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	cfg.BaseURL = srv.URL
	if cfg.Model == "" {
		cfg.Model = "claude-opus-5-5"
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m, s
}

func write(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = io.WriteString(w, body)
}

// events makes a stream as the API's guide to streaming shows it: named events, a ping among them.
func events(data ...string) string {
	var b strings.Builder
	for i, d := range data {
		var head struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(d), &head); err != nil {
			panic(d)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", head.Type, d)
		if i == 0 {
			b.WriteString("event: ping\ndata: {\"type\": \"ping\"}\n\n")
		}
	}
	return b.String()
}

const (
	messageStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],` +
		`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}}}`
	messageStop = `{"type":"message_stop"}`
)

func started(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func grown(index int, delta string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)
}

func stopped(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func ends(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null,"stop_details":null},"usage":{"output_tokens":42,"output_tokens_details":{"thinking_tokens":7}}}`
}

// textBlock is a block of text in two pieces.
func textBlock(index int, a, b string) []string {
	return []string{started(index, `{"type":"text","text":""}`), grown(index, `{"type":"text_delta","text":`+mustJSON(a)+`}`),
		grown(index, `{"type":"text_delta","text":`+mustJSON(b)+`}`), stopped(index)}
}

func thinkingBlock(index int) []string {
	return []string{started(index, `{"type":"thinking","thinking":"","signature":""}`), grown(index, `{"type":"thinking_delta","thinking":"Let me <see>. "}`),
		grown(index, `{"type":"thinking_delta","thinking":"想一想"}`), grown(index, `{"type":"signature_delta","signature":"EqQBCg/+=="}`), stopped(index)}
}

func callBlock(index int, id, name string, pieces ...string) []string {
	list := []string{started(index, `{"type":"tool_use","id":`+mustJSON(id)+`,"name":`+mustJSON(name)+`,"input":{}}`), grown(index, `{"type":"input_json_delta","partial_json":""}`)}
	for _, p := range pieces {
		list = append(list, grown(index, `{"type":"input_json_delta","partial_json":`+mustJSON(p)+`}`))
	}
	return append(list, stopped(index))
}

func join(lists ...[]string) []string {
	var all []string
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// answer is a whole stream of some blocks.
func answer(reason string, blocks ...[]string) string {
	return events(append(append([]string{messageStart}, join(blocks...)...), ends(reason), messageStop)...)
}

func user(parts ...memgpt.Part) memgpt.Message {
	return memgpt.Message{Role: memgpt.RoleUser, Origin: memgpt.OriginUser, Parts: parts}
}

func assistant(parts ...memgpt.Part) memgpt.Message {
	return memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: parts}
}

func toolResult(id, text string) memgpt.Message {
	return memgpt.Message{Role: memgpt.RoleTool, Origin: memgpt.OriginTool, Parts: memgpt.Parts{memgpt.Result{CallID: id, Name: "f", Text: text}}}
}

func ask(list ...memgpt.Message) *memgpt.Request {
	system := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "Instructions about <memory_blocks>.\n<memory_blocks>\n<block>x</block>\n</memory_blocks>")
	return &memgpt.Request{Messages: append([]memgpt.Message{system}, list...), MaxTokens: 500, Window: 8192,
		Tools: []memgpt.ToolSpec{{Name: "f", Description: "Does f.", Parameters: json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`)},
			{Name: "g", Parameters: nil}}}
}

// heard gathers the pieces of a stream.
type heard struct {
	text, reasoning string
	calls           []memgpt.Call
}

func (h *heard) add(d memgpt.Delta) {
	h.text += d.Text
	h.reasoning += d.Reasoning
	if d.Call != nil {
		for len(h.calls) <= d.Call.Index {
			h.calls = append(h.calls, memgpt.Call{})
		}
		c := &h.calls[d.Call.Index]
		c.ID += d.Call.ID
		c.Name += d.Call.Name
		c.Arguments += d.Call.Arguments
	}
}

// heardOf is what the pieces of a response must add up to.
func heardOf(resp *memgpt.Response) heard {
	var h heard
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			h.text += p.Text
		case memgpt.Reasoning:
			h.reasoning += p.Text
		case memgpt.Call:
			h.calls = append(h.calls, p)
		}
	}
	return h
}
