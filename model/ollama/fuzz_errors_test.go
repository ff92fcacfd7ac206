package ollama

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
	body   string
	after  string
	show   string // of /api/show
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a.status, a.body
	if strings.HasSuffix(r.URL.Path, "/api/show") && a.show != "" {
		status, body = 200, a.show
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {a.after}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// FuzzErrorBody holds that no body of a refusal breaks its reader, of a chat or of a question about the model.
func FuzzErrorBody(f *testing.F) {
	for _, body := range []string{`{"error":"request (7952 tokens) exceeds the available context size (4096 tokens)"}`, `{"error":{"message":"x"}}`, `{"error":"\"m\" does not support tools"}`,
		"secret-key \xff\x00", "<html>", "", `{"error":"model requires more system memory (9.1 GiB) than is available"}`} {
		f.Add(400, body, "3")
		f.Add(503, body, "1e300")
		f.Add(404, body, "x")
	}
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		if status = status % 600; status < 300 {
			status = 400
		}
		for _, show := range []string{"", everything} {
			m, err := New(Config{Model: "m", APIKey: "secret-key", Client: &http.Client{Transport: answering{status, body, after, show}}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.Generate(t.Context(), hi(), nil)
			var e *memgpt.Error
			if !errors.As(err, &e) || e.Code == "" || e.Text != memgpt.CleanText(e.Text) || len(e.Text) > 3000 || strings.Contains(e.Text, "secret-key") {
				t.Fatalf("%d %q: %#v", status, body, err)
			}
			if e.Tokens < 0 || e.Limit < 0 || e.RetryAfter < 0 || e.RetryAfter > 400*24*time.Hour {
				t.Errorf("%d %q: %#v", status, body, e)
			}
		}
	})
}

// FuzzShow holds that no answer about a model breaks its reader.
func FuzzShow(f *testing.F) {
	for _, body := range []string{everything, `{"template":"{{ .Tools }}"}`, `{"model_info":{"general.architecture":7}}`, `{"capabilities":null,"projector_info":[]}`, `{"model_info":{"general.architecture":"a","a.context_length":-9}}`} {
		f.Add(body, "0.33.2")
	}
	f.Fuzz(func(t *testing.T, body, version string) {
		wholeCounts(version)
		m, err := New(Config{Model: "m", Client: &http.Client{Transport: answering{200, body, "", ""}}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Show(t.Context(), "m")
		if err == nil && s.Window < 0 || err != nil && memgpt.CodeOf(err) == "" {
			t.Errorf("%q: %+v, %v", body, s, err)
		}
	})
}
