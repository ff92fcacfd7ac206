package httprr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// echo answers with the method, path and body of the request and a count, which no replay could make up.
func echo(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("X-Key-Seen", r.Header.Get("Authorization"))
		w.Header().Set("Set-Cookie", "session=hush")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %d", r.Method, r.URL.Path, body, calls.Add(1))
	}))
	t.Cleanup(srv.Close)
	return srv, &calls
}

func open(t *testing.T, file string, cfg Config) *Trace {
	t.Helper()
	tr, err := Open(file, nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func post(t *testing.T, rt http.RoundTripper, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer hush")
	req.Header.Set("X-Api-Key", "hush")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(got)
}

func TestRecordThenReplay(t *testing.T) {
	srv, calls := echo(t)
	file := filepath.Join(t.TempDir(), "sub", "x.httprr")
	rec := open(t, file, Config{Record: true})
	bodies := []string{"", "one", "two\r\n\x00\xff\n\n< 200 3\n", "one"}
	var want []string
	for _, body := range bodies {
		_, got := post(t, rec, srv.URL+"/p?q=1&key=hush", body)
		want = append(want, got)
	}
	if !rec.Recording() || calls.Load() != 4 {
		t.Fatalf("%d calls while recording", calls.Load())
	}
	srv.Close()
	rep := open(t, file, Config{})
	for i, body := range bodies {
		status, got := post(t, rep, srv.URL+"/p?q=1&key=another", body)
		if got != want[i] || status != http.StatusTeapot {
			t.Errorf("replayed %d %q, recorded %q", status, got, want[i])
		}
	}
	if left := rep.Unused(); rep.Recording() || len(left) > 0 {
		t.Errorf("unused: %v", left)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The server said the key back in a header of its own, which is what ScrubResponse is for.
	if n := strings.Count(string(text), "hush"); n != len(bodies) {
		t.Errorf("the secret is in the trace %d times:\n%s", n, text)
	}
}

func TestScrubHooks(t *testing.T) {
	srv, _ := echo(t)
	file := filepath.Join(t.TempDir(), "x.httprr")
	cfg := Config{
		ScrubRequest: func(r *Request) {
			r.URL = "http://service" + r.URL[strings.LastIndex(r.URL, "/"):]
			r.Body = []byte(strings.ReplaceAll(string(r.Body), "hush", "X"))
		},
		ScrubResponse: func(r *Response) {
			r.Header.Del("X-Key-Seen")
			r.Body = []byte(strings.ReplaceAll(string(r.Body), "hush", "Y"))
		},
	}
	rec := cfg
	rec.Record = true
	if _, got := post(t, open(t, file, rec), srv.URL+"/p", "hush"); got != "POST /p hush 1" {
		t.Errorf("recording returned %q, not the real answer", got)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "hush") {
		t.Errorf("error %v, or the secret is in the trace:\n%s", err, text)
	}
	if _, got := post(t, open(t, file, cfg), "http://elsewhere:1/p", "X"); got != "POST /p Y 1" {
		t.Errorf("replayed %q", got)
	}
}

func TestRecordEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.httprr")
	for pattern, want := range map[string]bool{"*": true, "x.httprr": true, "x*": true, "y*": false, "": false} {
		t.Setenv(RecordEnv, pattern)
		tr, err := Open(file, nil, Config{})
		if got := err == nil && tr.Recording(); got != want {
			t.Errorf("%q records: %v, want %v", pattern, got, want)
		}
	}
	t.Setenv(RecordEnv, "[")
	if _, err := Open(file, nil, Config{}); err == nil || !strings.Contains(err.Error(), RecordEnv) {
		t.Errorf("bad pattern: error %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.httprr")
	_, err := Open(file, nil, Config{})
	wantError(t, err, file, RecordEnv+"=x.httprr")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v isn't fs.ErrNotExist", err)
	}
	if err := os.WriteFile(file, []byte(magic+"nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(file, nil, Config{})
	wantError(t, err, file, "line 2", RecordEnv+"=x.httprr")
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want %q in it", err, part)
		}
	}
}

func TestNoMatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.httprr")
	x := Exchange{Request{Method: "POST", URL: "http://h/p", Body: []byte("b")}, Response{}}
	if err := WriteFile(file, x); err != nil {
		t.Fatal(err)
	}
	tr := open(t, file, Config{})
	for _, r := range []struct{ method, url, body string }{{"PUT", "http://h/p", "b"}, {"POST", "http://h/q", "b"}, {"POST", "http://h/p", "c"}} {
		_, err := try(tr, r.method, r.url, r.body)
		wantError(t, err, "0 times", file, RecordEnv+"=x.httprr", r.method, r.url, fmt.Sprintf("%q", r.body))
	}
	if left := tr.Unused(); len(left) != 1 || left[0] != "POST http://h/p" {
		t.Errorf("unused: %v", left)
	}
	_, err := try(tr, "POST", "http://h/p", "b")
	if err != nil {
		t.Error(err)
	}
	_, err = try(tr, "POST", "http://h/p", "b")
	wantError(t, err, "1 times")
	_, err = try(Replay(Config{}), "GET", "http://h/", strings.Repeat("x", 1000))
	wantError(t, err, "the exchanges", "500 more bytes")
}

func try(rt http.RoundTripper, method, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return string(got), err
}

func TestConcurrent(t *testing.T) {
	srv, _ := echo(t)
	file := filepath.Join(t.TempDir(), "x.httprr")
	const n = 20
	recorded := all(t, open(t, file, Config{Record: true}), srv.URL, n)
	replayed := all(t, open(t, file, Config{}), srv.URL, n)
	for body, got := range recorded {
		if replayed[body] != got {
			t.Errorf("%s: replayed %q, recorded %q", body, replayed[body], got)
		}
	}
}

// all posts n bodies at once and returns the answers by body.
func all(t *testing.T, rt http.RoundTripper, url string, n int) map[string]string {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]string{}
	for i := range n {
		wg.Go(func() {
			body := fmt.Sprint("body ", i)
			got, err := try(rt, "POST", url+"/p", body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[body] = got
		})
	}
	wg.Wait()
	return answers
}

func TestRecordFails(t *testing.T) {
	srv, _ := echo(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "x.httprr")
	if err := WriteFile(file); err != nil {
		t.Fatal(err)
	}
	srv.Close()
	if _, err := try(open(t, file, Config{Record: true}), "GET", srv.URL, ""); err == nil {
		t.Error("a failed request was recorded")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != magic {
		t.Errorf("the old trace is gone: %q, %v", text, err)
	}
	_, err := try(open(t, filepath.Join(file, "below-a-file"), Config{Record: true}), "GET", echoURL(t), "")
	wantError(t, err, "write trace")
}

func echoURL(t *testing.T) string {
	srv, _ := echo(t)
	return srv.URL
}

func TestCancelled(t *testing.T) {
	tr := Replay(Config{}, Exchange{Request{Method: "GET", URL: "http://h/"}, Response{Body: []byte("abc")}})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "", "http://h/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	one := make([]byte, 1)
	if _, err := resp.Body.Read(one); err != nil || one[0] != 'a' {
		t.Errorf("read %q, %v", one, err)
	}
	cancel()
	if _, err := resp.Body.Read(one); !errors.Is(err, context.Canceled) {
		t.Errorf("read on after cancel: %v", err)
	}
	if _, err := tr.RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Errorf("request after cancel: %v", err)
	}
	if _, err := new(Response).RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Errorf("fixture after cancel: %v", err)
	}
}
