package httprr

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/fstest"
)

const sse = "data: {\"a\":\"ü\"}\r\n\r\n: ping\n\ndata: x\n\ndata: [DONE]"

func stream(cut bool) *Response {
	return &Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: []byte(sse), Cut: cut}
}

// A response gives the same bytes straight, through a server, recorded from the server, and replayed.
func TestResponseBothWays(t *testing.T) {
	for _, cut := range []bool{false, true} {
		srv := httptest.NewServer(stream(cut))
		defer srv.Close()
		file := filepath.Join(t.TempDir(), "x.httprr")
		same(t, "straight", stream(cut), srv.URL, cut)
		same(t, "served", http.DefaultTransport, srv.URL, cut)
		same(t, "recording", open(t, file, Config{Record: true}), srv.URL, cut)
		same(t, "replayed", open(t, file, Config{}), srv.URL, cut)
	}
}

func same(t *testing.T, how string, rt http.RoundTripper, url string, cut bool) {
	t.Helper()
	got, err := try(rt, "POST", url+"/v1", "{}")
	if got != sse || errors.Is(err, io.ErrUnexpectedEOF) != cut || err != nil && !cut {
		t.Errorf("%s, cut %v: body %q, error %v", how, cut, got, err)
	}
}

// Events come one by one: the first is here before the second is written.
func TestServeFlushes(t *testing.T) {
	w := httptest.NewRecorder()
	stream(false).ServeHTTP(w, nil)
	if !w.Flushed || w.Code != http.StatusOK || w.Body.String() != sse {
		t.Errorf("flushed %v, status %d, body %q", w.Flushed, w.Code, w.Body)
	}
}

func TestContentLength(t *testing.T) {
	for _, tt := range []struct {
		r    Response
		want int64
	}{
		{Response{Body: []byte("abc")}, -1},
		{Response{Body: []byte("abc"), Header: http.Header{"Content-Length": {"99"}}}, 3},
		{Response{Body: []byte("abc"), Header: http.Header{"Content-Length": {"99"}}, Cut: true}, -1},
	} {
		resp, err := tt.r.RoundTrip(httptest.NewRequest("GET", "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.ContentLength != tt.want || resp.Status != "200 OK" {
			t.Errorf("length %d, status %s; want %d, 200 OK", resp.ContentLength, resp.Status, tt.want)
		}
	}
}

func TestScrubURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://h/p?b=1&a=2":                 "http://h/p?b=1&a=2",
		"http://h/p?b=1&key=s":               "http://h/p?b=1&key=scrubbed",
		"http://h/p?access_token=s":          "http://h/p?access_token=scrubbed",
		"http://user:s@h/p":                  "http://h/p",
		"http://h/p?max_tokens=5&keyboard=1": "http://h/p?max_tokens=5&keyboard=1",
	} {
		if got := scrubURL(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestScrubHeader(t *testing.T) {
	h := http.Header{}
	secrets := []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "Set-Cookie", "X-Auth-Token"}
	plain := []string{"Content-Type", "X-Ratelimit-Remaining-Tokens", "Retry-After", "X-Request-Id"}
	for _, name := range append(secrets, plain...) {
		h.Set(name, "v")
	}
	got := scrubHeader(h)
	for _, name := range secrets {
		if got.Get(name) != scrubbed || h.Get(name) != "v" {
			t.Errorf("%s: %q (original %q)", name, got.Get(name), h.Get(name))
		}
	}
	for _, name := range plain {
		if got.Get(name) != "v" {
			t.Errorf("%s is scrubbed", name)
		}
	}
}

func TestPairs(t *testing.T) {
	fsys := fstest.MapFS{
		"index.json": {Data: []byte(`{
			"chat": {"method": "POST", "path": "/v1/chat", "request": "chat.request.json", "response": "chat.response.sse", "status": 200,
				"content_type": "text/event-stream", "headers": {"Transfer-Encoding": "chunked"}, "model": "m", "note": "n"},
			"models": {"method": "GET", "path": "/v1/models", "request": null, "response": "models.json", "status": 401,
				"content_type": "application/json", "headers": {"Content-Length": "2"}}}`)},
		"chat.request.json":  {Data: []byte(`{"stream":true}`)},
		"chat.response.sse":  {Data: []byte(sse)},
		"models.json":        {Data: []byte(`{}`)},
		"bad/index.json":     {Data: []byte(`[]`)},
		"missing/index.json": {Data: []byte(`{"x": {"response": "gone"}}`)},
	}
	pairs, err := Pairs(fsys, "http://h:1/")
	if err != nil {
		t.Fatal(err)
	}
	if h := pairs["chat"].Response.Header; len(h) != 1 {
		t.Errorf("a stream's header is %v, with more than its type", h)
	}
	file := filepath.Join(t.TempDir(), "x.httprr")
	if err := WriteFile(file, pairs["chat"], pairs["models"]); err != nil {
		t.Fatal(err)
	}
	tr := open(t, file, Config{})
	if got, err := try(tr, "POST", "http://h:1/v1/chat", `{"stream":true}`); got != sse || err != nil {
		t.Errorf("chat: %q, %v", got, err)
	}
	resp, err := tr.Client().Get("http://h:1/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 401 || resp.ContentLength != 2 || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("models: %+v", resp)
	}
	for _, dir := range []string{"bad", "missing", "none"} {
		sub, err := fsys.Sub(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Pairs(sub, "http://h"); err == nil {
			t.Errorf("%s: no error", dir)
		}
	}
}
