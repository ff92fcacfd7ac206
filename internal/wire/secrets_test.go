package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestShownHasNoSecrets(t *testing.T) {
	for address, want := range map[string]string{
		"http://user:s3cret@host:1/v1":         "http://…@host:1/v1",
		"http://user:s3cret@host:bad/v1":       "http://…@host:bad/v1",
		"user:s3cret@host/v1":                  "…@host/v1",
		"http://a:s3cret@b:s3cret@host":        "http://…@host",
		"https://host/v1?key=s3cret#s3cret":    "https://host/v1?…",
		"http://%zz:s3cret@h/?a=s3cret@s3cret": "http://…@h/?…",
		" https://host/v1\n":                   "https://host/v1",
		"":                                     "",
	} {
		if got := Shown(address); got != want {
			t.Errorf("%q is shown as %q, want %q", address, got, want)
		}
	}
}

// TestCompressedAnswers: a gateway that compresses unasked is read, one that lies fails, and nothing is lost of a redirect.
func TestCompressedAnswers(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte("plain words"))
	_ = w.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("it was asked for %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "GZIP")
		if r.URL.Path == "/lie" {
			_, _ = w.Write([]byte("plain words"))
			return
		}
		_, _ = w.Write(packed.Bytes())
	}))
	defer srv.Close()
	client := NewClient(nil, time.Second)
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{"/": "plain words", "/lie": ""} {
		resp, err := client.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// TestAnswersEnd: a body that never ends does.
func TestAnswersEnd(t *testing.T) {
	w := NewWatch(t.Context(), Limits{First: time.Minute, Idle: time.Minute})
	defer w.Stop()
	b := &Watched{ReadCloser: io.NopCloser(endlessBody{}), Watch: w}
	n, err := io.Copy(io.Discard, b)
	if !errors.Is(err, ErrLong) || n < MaxAnswer || n > MaxAnswer+1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	long := &Watched{ReadCloser: io.NopCloser(io.LimitReader(endlessBody{}, MaxAnswer+10)), Watch: w, Long: true}
	if n, err := io.Copy(io.Discard, long); err != nil || n != MaxAnswer+10 {
		t.Errorf("%d bytes, %v", n, err)
	}
	whole := &Watched{ReadCloser: io.NopCloser(io.LimitReader(endlessBody{}, MaxAnswer)), Watch: w}
	if n, err := io.Copy(io.Discard, whole); err != nil || n != MaxAnswer {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type endlessBody struct{}

func (endlessBody) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", len(p))), nil }
