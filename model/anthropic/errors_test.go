package anthropic

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"memgpt"
)

var clock = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// TestRefusals holds the code of each error that the API's reference names, with its figures and waits.
func TestRefusals(t *testing.T) {
	overload := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	limit := `{"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your rate limit"}}`
	said := func(kind, text string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":` + mustJSON(text) + `},"request_id":"req_011"}`
	}
	for _, tt := range []struct {
		name   string
		status int
		body   string
		header map[string]string
		want   memgpt.Error
		text   string
	}{
		{"overloaded", 529, overload, nil, memgpt.Error{Code: memgpt.CodeModelDown}, "Overloaded"},
		{"overloaded with a wait", 529, overload, map[string]string{"Retry-After": "7"}, memgpt.Error{Code: memgpt.CodeModelDown, RetryAfter: 7 * time.Second}, "529"},
		{"rate", 429, limit, map[string]string{"Retry-After": "2.5"}, memgpt.Error{Code: memgpt.CodeModelLimit, RetryAfter: 2500 * time.Millisecond}, "rate limit"},
		{"rate with a date", 429, limit, map[string]string{"Retry-After": "Mon, 30 Nov 2026 12:01:00 GMT"}, memgpt.Error{Code: memgpt.CodeModelLimit, RetryAfter: time.Minute}, ""},
		{"rate with resets", 429, limit, map[string]string{"Anthropic-Ratelimit-Requests-Remaining": "3", "Anthropic-Ratelimit-Requests-Reset": "2026-11-30T13:00:00Z",
			"Anthropic-Ratelimit-Input-Tokens-Remaining": "0", "Anthropic-Ratelimit-Input-Tokens-Reset": "2026-11-30T12:00:09Z"}, memgpt.Error{Code: memgpt.CodeModelLimit, RetryAfter: 9 * time.Second}, ""},
		{"rate with nonsense", 429, limit, map[string]string{"Retry-After": "soon"}, memgpt.Error{Code: memgpt.CodeModelLimit}, ""},
		{"spend", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"no","details":{"error_code":"enforced_spend_limit_reached"}}}`, map[string]string{"Retry-After": "2"}, memgpt.Error{Code: memgpt.CodeModelQuota}, ""},
		{"credit", 400, said("invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."), nil, memgpt.Error{Code: memgpt.CodeModelQuota}, "credit"},
		{"usage limit", 400, said("invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-12-01."), nil, memgpt.Error{Code: memgpt.CodeModelQuota}, ""},
		{"billing", 402, said("billing_error", "no"), nil, memgpt.Error{Code: memgpt.CodeModelQuota}, ""},
		{"overflow", 400, said("invalid_request_error", "prompt is too long: 213486 tokens > 200000 maximum"), nil, memgpt.Error{Code: memgpt.CodeModelOverflow, Tokens: 213486, Limit: 200000}, "too long"},
		{"overflow with the reply", 400, said("invalid_request_error", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"), nil,
			memgpt.Error{Code: memgpt.CodeModelOverflow, Tokens: 188240, Limit: 200000}, ""},
		{"overflow without figures", 400, said("invalid_request_error", "Input is too long for requested model."), nil, memgpt.Error{Code: memgpt.CodeModelOverflow}, ""},
		{"too many bytes", 413, said("request_too_large", "Request exceeds the maximum size"), nil, memgpt.Error{Code: memgpt.CodeModelOverflow}, ""},
		{"key", 401, said("authentication_error", "invalid x-api-key secret-key"), nil, memgpt.Error{Code: memgpt.CodeModelAuth}, "check the API key"},
		{"permission", 403, said("permission_error", "no"), nil, memgpt.Error{Code: memgpt.CodeModelAuth}, ""},
		{"model", 404, said("not_found_error", "model: claude-x"), nil, memgpt.Error{Code: memgpt.CodeModelRequest}, "check the model's name"},
		{"form", 400, said("invalid_request_error", "max_tokens: too large"), nil, memgpt.Error{Code: memgpt.CodeModelRequest}, "(request req_011)"},
		{"api", 500, said("api_error", "Internal server error"), nil, memgpt.Error{Code: memgpt.CodeModelDown}, ""},
		{"timeout", 504, said("timeout_error", "no"), nil, memgpt.Error{Code: memgpt.CodeModelTimeout}, ""},
		{"proxy", 502, "<html>Bad Gateway</html>", nil, memgpt.Error{Code: memgpt.CodeModelDown}, "Bad Gateway"},
		{"silent proxy", 503, "", nil, memgpt.Error{Code: memgpt.CodeModelDown}, "no explanation"},
		{"redirect", 302, "", map[string]string{"Location": "https://elsewhere.example/"}, memgpt.Error{Code: memgpt.CodeModelRequest}, "set the base URL to https://elsewhere.example/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, s := serveFunc(t, Config{APIKey: "secret-key", Now: func() time.Time { return clock }}, func(_ int, _ *wireRequest, w http.ResponseWriter, _ *http.Request) {
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Request-Id", "req_011")
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			_, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "hi"})), nil)
			var e *memgpt.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			got := memgpt.Error{Code: e.Code, RetryAfter: e.RetryAfter, Tokens: e.Tokens, Limit: e.Limit, Started: e.Started}
			if got != tt.want || !strings.Contains(e.Error(), tt.text) || strings.Contains(e.Error(), "secret-key") {
				t.Errorf("got %+v %q\nwant %+v with %q", got, e.Error(), tt.want, tt.text)
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("it was asked %d times: the SDK's retries are on", n)
			}
		})
	}
}

// TestUnreachable holds that a server that isn't there is told without the URL's secrets.
func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{BaseURL: "http://user:secret@" + l.Addr().String(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = m.Generate(t.Context(), ask(user(memgpt.Text{Text: "hi"})), nil)
	if memgpt.CodeOf(err) != memgpt.CodeModelDown || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Error(err)
	}
}

// TestStaleConnection holds that a connection that died between two calls costs nothing, and that only one is forgiven.
func TestStaleConnection(t *testing.T) {
	posts := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if posts++; posts == 2 {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		write(w, answer("end_turn", textBlock(0, "o", "k")))
	}))
	defer srv.Close()
	m, err := New(Config{BaseURL: srv.URL, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "hi"})), nil); err != nil {
			t.Fatal(err)
		}
	}
	if posts != 3 {
		t.Errorf("%d posts, want 3", posts)
	}
}

// TestWindow holds where the sizes come from: settings, the API, the table.
func TestWindow(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models/claude-next" {
			refuse(w, 404, "not_found_error", "model: none")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"model","id":"claude-next","display_name":"Next","created_at":"2027-01-01T00:00:00Z","max_input_tokens":2000000,"max_tokens":256000}`)
	}))
	defer srv.Close()
	for _, tt := range []struct {
		cfg            Config
		window, output int
		code           memgpt.Code
	}{
		{Config{Model: "claude-next"}, 2_000_000, 256_000, ""},
		{Config{Model: "claude-next", Window: 9, MaxOutput: 8}, 9, 8, ""},
		{Config{Model: "claude-haiku-4-5-20251001"}, 200_000, 64_000, memgpt.CodeModelRequest},
		{Config{Model: "vendor/claude-opus-5-5"}, 1_000_000, 128_000, memgpt.CodeModelRequest},
		{Config{Model: "claude-other"}, 200_000, 0, memgpt.CodeModelRequest},
		{Config{Model: "m"}, 0, 0, memgpt.CodeModelRequest},
		{Config{}, 0, 0, ""},
	} {
		tt.cfg.BaseURL = srv.URL
		m, err := New(tt.cfg)
		if err != nil {
			t.Fatal(err)
		}
		n, err := m.Window(t.Context())
		if c := m.Capabilities(); n != tt.window || c.Window != tt.window || c.MaxOutput != tt.output || memgpt.CodeOf(err) != tt.code {
			t.Errorf("%+v: %d, %+v, %v", tt.cfg, n, c, err)
		}
	}
	m, err := New(Config{BaseURL: srv.URL, Model: "claude-next"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Window(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
