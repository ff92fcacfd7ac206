package openai

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
)

// served is an endpoint that answers each request by do, and what it was asked.
type served struct {
	*Embedder
	requests []request
	waits    []time.Duration
}

func serve(t *testing.T, cfg Config, do func(n int, r request, w http.ResponseWriter)) *served {
	t.Helper()
	s := &served{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in request
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/v1/embeddings" || r.Method != http.MethodPost {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-Extra") != "1" {
			t.Errorf("headers %v", r.Header)
		}
		s.requests = append(s.requests, in)
		do(len(s.requests), in, w)
	}))
	t.Cleanup(srv.Close)
	cfg.BaseURL, cfg.APIKey, cfg.Model, cfg.Headers = srv.URL, "secret", "m", map[string]string{"X-Extra": "1"}
	cfg.Now = func() time.Time { return time.Unix(0, 0) }
	cfg.Wait = func(_ context.Context, d time.Duration) error { s.waits = append(s.waits, d); return nil }
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.Embedder = e
	return s
}

func say(w http.ResponseWriter, format string, args ...any) {
	_, _ = io.WriteString(w, fmt.Sprintf(format, args...))
}

// lengths answers each text with (its bytes, 1), the last text first.
func lengths(_ int, r request, w http.ResponseWriter) {
	var data []string
	for i := len(r.Input) - 1; i >= 0; i-- {
		data = append(data, fmt.Sprintf(`{"index": %d, "embedding": [%d, 1]}`, i, len(r.Input[i])))
	}
	say(w, `{"data": [%s], "model": "m"}`, strings.Join(data, ","))
}

func TestEmbedKeepsTheOrder(t *testing.T) {
	s := serve(t, Config{QueryPrefix: "query: ", Batch: 2, BatchBytes: 10, Dimensions: 2}, lengths)
	if s.Model() != "m:2" || s.Dim() != 2 {
		t.Errorf("model %q of %d", s.Model(), s.Dim())
	}
	got, err := s.Embed(t.Context(), []string{"1", "22", "333", "44444444444", "5", ""}, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range []float64{1, 2, 3, 11, 1, 1} {
		x, y := float64(got[i][0]), float64(got[i][1])
		if math.Abs(x-n*y) > 1e-5 || math.Abs(x*x+y*y-1) > 1e-6 {
			t.Errorf("vector %d is %v", i, got[i])
		}
	}
	want := []request{{"m", []string{"1", "22"}, 2, ""}, {"m", []string{"333"}, 2, ""}, {"m", []string{"44444444444"}, 2, ""}, {"m", []string{"5", " "}, 2, ""}}
	if diff := cmp.Diff(want, s.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if _, err := s.Embed(t.Context(), []string{"a\x00\xff"}, true); err != nil || s.requests[4].Input[0] != "query: a\uFFFD" {
		t.Errorf("sent %q (error %v)", s.requests[4].Input, err)
	}
}

func TestEmbedReadsBase64(t *testing.T) {
	s := serve(t, Config{Base64: true}, func(_ int, r request, w http.ResponseWriter) {
		var b []byte
		for _, x := range []float32{3, -4} {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		say(w, `{"data": [{"embedding": "%s"}]}`, base64.StdEncoding.EncodeToString(b))
	})
	got, err := s.Embed(t.Context(), []string{"x"}, false)
	if diff := cmp.Diff([][]float32{{.6, -.8}}, got); err != nil || diff != "" || s.requests[0].Encoding != "base64" || s.Dim() != 2 {
		t.Errorf("error %v, encoding %q, %d dimensions, (-want +got):\n%s", err, s.requests[0].Encoding, s.Dim(), diff)
	}
}

func TestBadAnswersGetClearErrors(t *testing.T) {
	nan := base64.StdEncoding.EncodeToString([]byte{0, 0, 0xc0, 0x7f, 0, 0, 0, 0})
	for name, c := range map[string]struct{ answer, want string }{
		"zero":      {`{"data": [{"embedding": [0, 0]}]}`, "vector 0 is zero"},
		"nan":       {`{"data": [{"embedding": "` + nan + `"}]}`, "vector 0 holds a number that is none"},
		"null":      {`{"data": [{"embedding": null}]}`, "a vector is empty"},
		"too few":   {`{"data": []}`, "0 vectors came for 1 texts"},
		"index":     {`{"data": [{"index": 1, "embedding": [1, 2]}]}`, "has the index 1"},
		"dimension": {`{"data": [{"embedding": [1, 2, 3]}]}`, "3 dimensions, and 2 are expected"},
		"page":      {`<html>`, "check the base URL"},
		"odd bytes": {`{"data": [{"embedding": "AAA="}]}`, "want a multiple of 4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, Config{}, func(_ int, _ request, w http.ResponseWriter) { say(w, "%s", c.answer) })
			s.dim.Store(2)
			_, err := s.Embed(t.Context(), []string{"x"}, false)
			if memgpt.CodeOf(err) != memgpt.CodeModelRequest || !strings.Contains(err.Error(), c.want) || len(s.requests) != 1 {
				t.Errorf("error %v after %d requests, want %q", err, len(s.requests), c.want)
			}
		})
	}
}

func TestRefusalsGetCodes(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		code   memgpt.Code
		tries  int
	}{
		{401, `{"error": {"message": "bad key secret"}}`, memgpt.CodeModelAuth, 1},
		{404, `{"error": "model not found"}`, memgpt.CodeModelRequest, 1},
		{400, `{"error": {"message": "maximum context length is 8192"}}`, memgpt.CodeModelOverflow, 1},
		{429, `{"error": {"message": "You exceeded your current quota"}}`, memgpt.CodeModelQuota, 1},
		{429, `slow down`, memgpt.CodeModelLimit, 4},
		{503, ``, memgpt.CodeModelDown, 4},
		{504, ``, memgpt.CodeModelTimeout, 4},
		{301, ``, memgpt.CodeModelRequest, 1},
		{200, `{"error": {"message": "runner crashed"}}`, memgpt.CodeModelDown, 4},
	} {
		s := serve(t, Config{}, func(_ int, _ request, w http.ResponseWriter) { w.WriteHeader(c.status); say(w, "%s", c.body) })
		_, err := s.Embed(t.Context(), []string{"x"}, false)
		if memgpt.CodeOf(err) != c.code || len(s.requests) != c.tries || strings.Contains(err.Error(), "secret") {
			t.Errorf("status %d: error %v (%s) after %d requests, want %s after %d", c.status, err, memgpt.CodeOf(err), len(s.requests), c.code, c.tries)
		}
	}
}

func TestRetriesWaitAsAsked(t *testing.T) {
	s := serve(t, Config{}, func(n int, r request, w http.ResponseWriter) {
		switch n {
		case 1:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		case 2:
			w.Header().Set("Retry-After", time.Unix(20, 0).UTC().Format(http.TimeFormat))
			w.WriteHeader(503)
		case 3:
			w.WriteHeader(500)
		default:
			lengths(n, r, w)
		}
	})
	if _, err := s.Embed(t.Context(), []string{"x"}, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Duration{7 * time.Second, 20 * time.Second, 2 * time.Second}, s.waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	s = serve(t, Config{}, func(_ int, _ request, w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
	})
	_, err := s.Embed(t.Context(), []string{"x"}, false)
	var e *memgpt.Error
	if !errors.As(err, &e) || e.RetryAfter != time.Hour || len(s.requests) != 1 {
		t.Errorf("error %v after %d requests, want one with the hour to wait", err, len(s.requests))
	}
}

func TestEmbedEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, Config{}, func(_ int, _ request, w http.ResponseWriter) { cancel(); w.WriteHeader(503) })
	if _, err := s.Embed(ctx, []string{"x"}, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestUnreachableAndBadConfigs(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	e, err := New(Config{BaseURL: srv.URL + "/v1/?key=hidden", Model: "m", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), []string{"x"}, false); memgpt.CodeOf(err) != memgpt.CodeModelDown || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v", err)
	}
	for _, cfg := range []Config{{}, {BaseURL: "localhost:11434", Model: "m"}, {BaseURL: "http://localhost"}} {
		if _, err := New(cfg); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("%+v: error %v", cfg, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"data": [{"index": 0, "embedding": [1, 2]}]}`)
	f.Add(`{"data": [{"embedding": "AACAPw=="}], "error": null}`)
	f.Fuzz(func(t *testing.T, body string) {
		var a answer
		e := &Embedder{}
		if json.Unmarshal([]byte(body), &a) != nil {
			return
		}
		list, err := e.take(&a, len(a.Data))
		for _, v := range list {
			if len(v) != e.Dim() {
				t.Errorf("%q: %d dimensions, want %d (error %v)", body, len(v), e.Dim(), err)
			}
		}
		_ = said(body)
	})
}

// TestNoWaitBeyondTheDeadline gives what the server said where there is no time to ask again, and not that time ran out.
func TestNoWaitBeyondTheDeadline(t *testing.T) {
	s := serve(t, Config{}, func(_ int, _ request, w http.ResponseWriter) { w.WriteHeader(500); say(w, "boom") })
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	if _, err := s.Embed(ctx, []string{"x"}, false); memgpt.CodeOf(err) != memgpt.CodeModelDown || !strings.Contains(err.Error(), "boom") || len(s.waits) > 0 {
		t.Errorf("error %v after waits of %v", err, s.waits)
	}
}
