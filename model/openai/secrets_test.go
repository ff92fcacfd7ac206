package openai

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/modeltest"
)

// TestErrorsShowNoKey: a server that repeats the key in its words, whatever form they have, gets it into no error.
func TestErrorsShowNoKey(t *testing.T) {
	const key = "k-s3cret-77"
	for name, c := range map[string]struct{ kind, body string }{
		"whole":    {"application/json", `{"error":{"type":"authentication_error","message":"Incorrect API key %s"}}`},
		"words":    {"application/json", `{"error":"Incorrect API key %s"}` + "\n"},
		"streamed": {"text/event-stream", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"Incorrect API key %s\"}}\n\n"},
		"page":     {"text/html", "<html><head><title>bad key %s</title></head></html>"},
		"nonsense": {"text/plain", "%s"},
	} {
		for _, status := range []int{200, 302, 401, 500} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Location", "http://user:"+key+"@elsewhere.example/?key="+key)
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, c.body, key)
			}))
			m, err := New(Config{BaseURL: srv.URL, APIKey: key, Model: "m", Window: 8192})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Generate(t.Context(), modeltest.Request("hi"), func(memgpt.Delta) {})
			if err == nil || strings.Contains(err.Error(), key) {
				t.Errorf("%s, status %d: %v", name, status, err)
			}
			if _, err := m.List(t.Context()); err != nil && strings.Contains(err.Error(), key) {
				t.Errorf("%s, status %d, list: %v", name, status, err)
			}
			_ = m.Close()
			srv.Close()
		}
	}
	for _, base := range []string{"http://u:" + key + "@host:bad/v1", "ftp://u:" + key + "@host", "http://%zz:" + key + "@h?x=" + key} {
		if _, err := New(Config{BaseURL: base}); memgpt.CodeOf(err) != memgpt.CodeInvalid || strings.Contains(err.Error(), key) {
			t.Errorf("%v", err)
		}
	}
}
