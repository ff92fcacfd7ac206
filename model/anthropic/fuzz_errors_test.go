package anthropic

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"memgpt"
)

// answering answers every request with one status and body, without a network.
type answering struct {
	status int
	header http.Header
	body   string
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: a.header.Clone(), Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// FuzzErrorBody holds that no body of a refusal breaks its reader, of a message or of a question about the model.
func FuzzErrorBody(f *testing.F) {
	for _, body := range []string{`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213 tokens > 200 maximum"},"request_id":"r"}`,
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded","details":{"error_code":"x"}}}`, `{"error":"plain"}`, "secret-key \xff\x00", "<html>", "",
		`{"error":{"type":7,"message":{"a":1}}}`, `{"type":"error","error":{"message":"tool_choice forces tool use; thinking block signature"}}`} {
		f.Add(400, body, "3")
		f.Add(529, body, "Wed, 21 Oct 2026 07:28:00 GMT")
		f.Add(429, body, "1e300")
	}
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		if status = status % 600; status < 300 {
			status = 400
		}
		h := http.Header{"Retry-After": {after}, "Content-Type": {"application/json"}, "Anthropic-Ratelimit-Tokens-Remaining": {"0"}, "Anthropic-Ratelimit-Tokens-Reset": {after}}
		m, err := New(Config{BaseURL: "http://x", Model: "claude-next", APIKey: "secret-key", Client: &http.Client{Transport: answering{status, h, body}}})
		if err != nil {
			t.Fatal(err)
		}
		req := ask(user(memgpt.Text{Text: "one"}))
		req.Choice = memgpt.ChoiceRequired
		_, err = m.Generate(t.Context(), req, nil)
		var e *memgpt.Error
		if !errors.As(err, &e) || e.Code == "" || e.Text != memgpt.CleanText(e.Text) || len(e.Text) > 3000 || strings.Contains(e.Text, "secret-key") {
			t.Fatalf("%d %q: %#v", status, body, err)
		}
		if e.Tokens < 0 || e.Limit < 0 || e.RetryAfter < 0 || e.RetryAfter > 400*24*time.Hour {
			t.Errorf("%d %q: %#v", status, body, e)
		}
		if _, err := m.Window(t.Context()); (err == nil) != (status < 400) || err != nil && strings.Contains(err.Error(), "secret-key") {
			t.Errorf("%d %q: window: %v", status, body, err)
		}
	})
}
