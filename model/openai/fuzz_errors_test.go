package openai

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"memgpt"
)

// answering answers every request with one status and body, without a network.
type answering struct {
	status int
	header http.Header
	body   string
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// FuzzErrorBody holds that no body of a refusal breaks its reader: the error has a code, is clean text, never has the key,
// and what it tells of sizes and waits can be used. Each refusal ends, however often it asks for another form.
func FuzzErrorBody(f *testing.F) {
	for _, body := range []string{
		`{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
		`{"error":"no such model","code":404}`, `{"detail":[{"loc":["body","x"],"msg":"extra fields not permitted"}]}`, `[{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}]`,
		`{"error":{"message":"request (9 tokens) exceeds the available context size (8 tokens)","n_prompt_tokens":99999999999999999999,"n_ctx":-1}}`,
		"<html><title>502</title>", "secret-key \xff\x00", `{"error":{"message":"Please try again in 7.66s"}}`, `{"error":{"message":"Unsupported parameter: 'max_tokens' and stream, tool_choice, role 'system'"}}`, "",
	} {
		f.Add(400, body, "3")
		f.Add(429, body, "Wed, 21 Oct 2026 07:28:00 GMT")
		f.Add(500, body, "1e300")
	}
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		if status = status % 600; status < 300 || status == http.StatusSwitchingProtocols {
			status = 400
		}
		for _, api := range []string{APIChat, APIResponses} {
			h := http.Header{"Retry-After": {after}, "X-Ratelimit-Reset-Tokens": {after}}
			m, err := New(Config{BaseURL: "http://x", APIKey: "secret-key", API: api, Client: &http.Client{Transport: answering{status, h, body}}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Generate(t.Context(), worked(), nil)
			e, ok := err.(*memgpt.Error)
			if !ok || e.Code == "" || e.Text != memgpt.CleanText(e.Text) || !utf8.ValidString(e.Text) || len(e.Text) > 3000 {
				t.Fatalf("%d %q: %#v", status, body, err)
			}
			if strings.Contains(e.Text, "secret-key") || e.Tokens < 0 || e.Limit < 0 || e.RetryAfter < 0 || e.RetryAfter > 400*24*time.Hour {
				t.Errorf("%d %q: %#v", status, body, e)
			}
		}
	})
}

// FuzzLists holds that no answer to a question about models breaks its reader.
func FuzzLists(f *testing.F) {
	for _, body := range []string{`{"data":[{"id":"m","context_length":7}]}`, `[{"id":"m","max_model_len":-1}]`, `{"data":[{"id":1,"meta":{"n_ctx":"x"}}]}`,
		`{"default_generation_settings":{"n_ctx":1024},"chat_template_caps":{}}`, `{"models":[{"name":"m:latest","context_length":9}]}`, "", " ", "null", `{"data":null}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, base := range []string{"http://127.0.0.1:9", "https://example.com/v1"} {
			m, err := New(Config{BaseURL: base, Model: "m", Client: &http.Client{Transport: answering{200, http.Header{}, body}}})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := m.Window(t.Context()); n < 0 || err != nil && err.Error() == "" {
				t.Errorf("%q: %d %v", body, n, err)
			}
			m.TemplateTools(t.Context())
			if n, err := m.Count(t.Context(), ask("hi")); n < 0 || n == 0 && err == nil {
				t.Errorf("%q: counted %d, %v", body, n, err)
			}
		}
	})
}
