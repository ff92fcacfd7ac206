package hook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSignature holds the example that the libraries of Standard Webhooks test themselves with.
func TestSignature(t *testing.T) {
	const secret, id = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for _, c := range []struct {
		secrets []string
		want    string
	}{{[]string{secret}, want}, {[]string{strings.TrimPrefix(secret, secretPrefix)}, want}, {[]string{secret, secret}, want + " " + want}} {
		if got, err := Sign(c.secrets, id, time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)); got != c.want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, bad := range []string{"", "whsec_", "whsec_not base64!"} {
		if _, err := Sign([]string{bad}, id, time.Unix(0, 0), nil); err == nil || strings.Contains(err.Error(), "not base64!") {
			t.Errorf("secret %q: %v", bad, err)
		}
	}
	one, two := NewSecret(), NewSecret()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(one, "whsec_"))
	if err != nil || len(key) != secretBytes || one == two {
		t.Errorf("%q and %q, %v", one, two, err)
	}
}

func TestCheck(t *testing.T) {
	for _, good := range []string{"https://example.org", "https://example.org:8443/a?token=x", "http://localhost:1/x", "http://127.0.0.1/", "http://[::1]:80/"} {
		if err := Check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{"http://example.org/": "https", "http://localhost.example.org/": "https", "http://127.0.0.1.example.org/": "https",
		"ftp://example.org/": "URL", "example.org": "URL", "https://": "URL", "https://a:b@example.org/": "password", "https://example.org/#x": "#", "https://[": "URL"} {
		if err := Check(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", bad, err, want)
		}
	}
}

// TestPost posts to a real server, which checks the signature by itself.
func TestPost(t *testing.T) {
	secret := NewSecret()
	var seen []string
	status, header := 204, http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key, _ := base64.StdEncoding.DecodeString(secret[6:])
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
		sent, err := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
		if r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) || err != nil || time.Since(time.Unix(sent, 0)).Abs() > time.Minute {
			t.Errorf("headers %v", r.Header)
		}
		seen = append(seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("webhook-id")+" "+string(body))
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	s := New(nil)
	defer s.Close()
	post := func() (int, time.Duration) {
		t.Helper()
		got, after, err := s.Post(t.Context(), server.URL+"/in", []string{secret}, "said-1", []byte(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		return got, after
	}
	if got, after := post(); got != 204 || after != 0 || len(seen) != 1 || seen[0] != `POST /in application/json said-1 {"a":1}` {
		t.Errorf("%d, %v, %q", got, after, seen)
	}
	status, header = 429, http.Header{"Retry-After": {"90"}}
	if got, after := post(); got != 429 || after != 90*time.Second {
		t.Errorf("%d, %v", got, after)
	}
	status, header = 503, http.Header{"Retry-After": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}}
	if got, after := post(); got != 503 || after < 59*time.Minute || after > 61*time.Minute {
		t.Errorf("%d, %v", got, after)
	}
	for _, wrong := range []string{"-5", "soon", "Mon, 02 Jan 2006 15:04:05 GMT", "99999999999999"} {
		header.Set("Retry-After", wrong)
		if _, after := post(); after != 0 {
			t.Errorf("Retry-After %q: %v", wrong, after)
		}
	}
	before := len(seen)
	status, header = 307, http.Header{"Location": {"/elsewhere"}}
	if got, _ := post(); got != 307 || len(seen) != before+1 {
		t.Errorf("redirect: %d, %q", got, seen[before:])
	}
}

// TestPostFails: what is no answer is an error, which says why and holds nothing that was sent.
func TestPostFails(t *testing.T) {
	const private = "private-words"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	_ = listener.Close()
	hangs := make(chan struct{})
	answers := func(answer string) string { // a raw answer, or the end of the connection
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if answer == "hang" {
				<-hangs
				return
			}
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	defer close(hangs)
	secret := NewSecret()
	s := New(nil)
	defer s.Close()
	for name, c := range map[string]struct{ url, want string }{
		"refused":        {closed, "refused"},
		"no answer":      {answers("hang"), "no answer in time"},
		"end":            {answers(""), "closed without an answer"},
		"no HTTP":        {answers(private + " is no HTTP\r\n\r\n"), "no answer of HTTP"},
		"endless header": {answers("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"), "no answer of HTTP"},
		"no TLS":         {strings.Replace(answers(""), "http:", "https:", 1), ""},
		"no name":        {"http://nowhere.invalid/", ""},
		"no URL":         {"http://[", "URL"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, _, err := s.Post(ctx, c.url+"?token=tok-"+private, []string{secret}, "said-1", []byte(private))
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), private) || strings.Contains(err.Error(), secret) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPostReadsLittle: an answer without end doesn't fill memory, and its status counts.
func TestPostReadsLittle(t *testing.T) {
	wrote := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			n, err := w.Write(chunk)
			if wrote += n; err != nil {
				return
			}
		}
	}))
	s := New(nil)
	status, _, err := s.Post(t.Context(), server.URL, []string{NewSecret()}, "said-1", nil)
	s.Close()
	server.CloseClientConnections()
	server.Close()
	if status != 200 || err != nil || wrote > 64<<20 {
		t.Errorf("%d, %v, %d bytes", status, err, wrote)
	}
}
