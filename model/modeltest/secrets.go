package modeltest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"memgpt"
)

// Keyed is a model of a protocol that was opened with a key.
type Keyed struct {
	Model memgpt.Model
	List  func(context.Context) error // asks the server for its models
	Close func() error
}

// ErrorsShowNoKey holds that a server that repeats the key in its words, whatever form they have, gets it into no error,
// nor does an address that can't be used. Open opens a model at a base URL.
func ErrorsShowNoKey(t *testing.T, open func(base, key string) (Keyed, error)) {
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
			m, err := open(srv.URL, key)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Model.Generate(t.Context(), Request("hi"), func(memgpt.Delta) {})
			if err == nil || strings.Contains(err.Error(), key) {
				t.Errorf("%s, status %d: %v", name, status, err)
			}
			if err := m.List(t.Context()); err != nil && strings.Contains(err.Error(), key) {
				t.Errorf("%s, status %d, list: %v", name, status, err)
			}
			_ = m.Close()
			srv.Close()
		}
	}
	for _, base := range []string{"http://u:" + key + "@host:bad/v1", "ftp://u:" + key + "@host", "http://%zz:" + key + "@h?x=" + key} {
		if _, err := open(base, ""); memgpt.CodeOf(err) != memgpt.CodeInvalid || strings.Contains(err.Error(), key) {
			t.Errorf("%v", err)
		}
	}
}
