package behaviour

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/internal/httprr"
	"memgpt/model/anthropic"
	"memgpt/model/ollama"
	"memgpt/model/openai"
	"memgpt/model/script"
)

// recordedAt is the address in the traces; nobody has it.
const recordedAt = "http://models.invalid"

// recorded are the protocols of the traces in testdata.
var recorded = []struct {
	name string
	open func(c *http.Client, onePiece bool) (memgpt.Model, error)
	over string // how the vendor says that a request is over the window
}{
	{"openai-chat", func(c *http.Client, onePiece bool) (memgpt.Model, error) {
		return openai.New(openai.Config{BaseURL: recordedAt, Client: c, Model: "script", NoStream: onePiece, NewID: numbered("call")})
	}, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."},
	{"openai-responses", func(c *http.Client, onePiece bool) (memgpt.Model, error) {
		return openai.New(openai.Config{BaseURL: recordedAt, Client: c, Model: "script", NoStream: onePiece, API: openai.APIResponses, NewID: numbered("call")})
	}, "Your input exceeds the context window of this model. Please adjust your input and try again."},
	{"anthropic", func(c *http.Client, _ bool) (memgpt.Model, error) {
		return anthropic.New(anthropic.Config{BaseURL: recordedAt, Client: c, Model: "script", NewID: numbered("call")})
	}, "prompt is too long: 9000 tokens > 8192 maximum"},
	{"ollama", func(c *http.Client, _ bool) (memgpt.Model, error) {
		return ollama.New(ollama.Config{BaseURL: recordedAt, Client: c, Model: "script", NewID: numbered("call")})
	}, "the input length exceeds the context length"},
}

// numbered names things by their number.
func numbered(kind string) func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("%s_%d", kind, n) }
}

// recordedReplies are what the scripted server answers, and said what must be read of it.
var recordedReplies = []struct {
	reply script.Reply
	said  string // texts, calls and the reason to stop
	code  memgpt.Code
}{
	{script.Text("Guten Morgen, 小林。 🍵"), "Guten Morgen, 小林。 🍵 stop", ""},
	{script.Call("archival_memory_search", "query", "tea \"嫩\" \\ \n", "page", 2), `archival_memory_search{"page":2,"query":"tea \"嫩\" \\ \n"} tool_calls`, ""},
	{script.Calls(script.Say("one"), script.Call("core_memory_append", "label", "human", "content", "二")),
		`send_message{"message":"one"} core_memory_append{"content":"二","label":"human"} tool_calls`, ""},
	{script.Truncated(script.Text("a reply that its bound cuts off")), "*", ""},
	{script.Reply{}, "", memgpt.CodeModelOverflow}, // fails in the vendor's words
	{script.Fail(&memgpt.Error{Code: memgpt.CodeModelLimit, Err: errors.New("slow down")}), "", memgpt.CodeModelLimit},
	{script.Fail(&memgpt.Error{Code: memgpt.CodeModelAuth, Err: errors.New("wrong key")}), "", memgpt.CodeModelAuth},
}

// TestRecordings plays one talk over each protocol from a trace in testdata, byte for byte in both directions: what is sent,
// and how what came is read. The traces were made from the scripted server, which follows what the vendors publish, by
// HTTPRR_RECORD='*' go test ./test/behaviour -run Recordings. A change of a request's form is seen as a request without answer.
func TestRecordings(t *testing.T) {
	for _, p := range recorded {
		for _, form := range []string{"stream", "whole"} {
			t.Run(p.name+"/"+form, func(t *testing.T) {
				trace := openTrace(t, p.name+"-"+form, p.over, form == "whole")
				m, err := p.open(trace.Client(), form == "whole")
				must(t, err)
				playTalk(t, m)
				if left := trace.Unused(); len(left) > 0 {
					t.Errorf("the trace has requests that were not made: %v", left)
				}
			})
		}
	}
}

// openTrace replays a trace, or records it from a scripted server.
func openTrace(t *testing.T, name, over string, plain bool) *httprr.Trace {
	cfg := script.ServerConfig{Plain: plain, Config: script.Config{NewID: func(n int) string { return fmt.Sprintf("call_%d", n) }}, Count: func(b []byte) int { return len(b) / 4 }}
	for _, r := range recordedReplies {
		if r.code == memgpt.CodeModelOverflow {
			r.reply = script.Fail(&memgpt.Error{Code: r.code, Err: errors.New(over)})
		}
		cfg.Replies = append(cfg.Replies, r.reply)
	}
	srv := httptest.NewServer(script.NewServer(cfg))
	t.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	must(t, err)
	real := roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Host, r.Host = at.Host, at.Host
		return srv.Client().Transport.RoundTrip(r)
	})
	trace, err := httprr.Open(filepath.Join("testdata", name+".httprr"), real, httprr.Config{
		ScrubRequest:  func(r *httprr.Request) { r.Header = nil },
		ScrubResponse: func(r *httprr.Response) { r.Header.Del("Date") },
	})
	must(t, err)
	return trace
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// playTalk asks for each reply, with all that was said before.
func playTalk(t *testing.T, m memgpt.Model) {
	req := &memgpt.Request{Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "You keep \"memory\".\n记忆")},
		MaxTokens: 500, Window: 8192, Tools: []memgpt.ToolSpec{
			{Name: "send_message", Description: "Speak.", Parameters: []byte(`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`)},
			{Name: "archival_memory_search", Description: "Look.", Parameters: []byte(`{"type":"object","properties":{"query":{"type":"string"},"page":{"type":"integer"}}}`)},
			{Name: "core_memory_append", Description: "Keep.", Parameters: []byte(`{"type":"object","properties":{"label":{"type":"string"},"content":{"type":"string"}}}`)},
		}}
	for i, want := range recordedReplies {
		asked := *req
		asked.Messages = append(asked.Messages[:len(asked.Messages):len(asked.Messages)],
			memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, fmt.Sprintf("message %d 你好", i)))
		var streamed strings.Builder
		resp, err := m.Generate(t.Context(), &asked, func(d memgpt.Delta) { streamed.WriteString(d.Text) })
		if memgpt.CodeOf(err) != want.code && (err != nil || want.code != "") {
			t.Errorf("reply %d: error %v, want code %q", i, err, want.code)
		}
		if err != nil {
			continue
		}
		if got := sumUp(resp); want.said == "*" && resp.Finish != memgpt.FinishLength || want.said != "*" && got != want.said {
			t.Errorf("reply %d is read as %q, want %q", i, got, want.said)
		}
		if d := cmp.Diff(textOf(&resp.Message), streamed.String()); d != "" {
			t.Errorf("reply %d: the pieces are not the whole (-whole +pieces):\n%s", i, d)
		}
		req.Messages = append(asked.Messages, resp.Message)
		for _, c := range resp.Message.Calls() {
			req.Messages = append(req.Messages, memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: c.ID, Name: c.Name, Text: "OK 好"}}})
		}
	}
}

// sumUp writes a reply down.
func sumUp(r *memgpt.Response) string {
	var parts []string
	if s := textOf(&r.Message); s != "" {
		parts = append(parts, s)
	}
	for _, c := range r.Message.Calls() {
		parts = append(parts, c.Name+sortedJSON(c.Arguments))
	}
	return strings.Join(append(parts, string(r.Finish)), " ")
}

func textOf(m *memgpt.Message) (s string) {
	for _, p := range m.Parts {
		if text, ok := p.(memgpt.Text); ok {
			s += text.Text
		}
	}
	return s
}

// sortedJSON writes arguments anew, with sorted keys.
func sortedJSON(s string) string {
	var v map[string]any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		return s
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
	return strings.TrimSpace(b.String())
}
