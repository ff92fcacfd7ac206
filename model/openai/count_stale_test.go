package openai

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"memgpt"
)

// TestCountOnConnectionThatTheServerLeft has a server that answers one request a connection and leaves it when the next one
// comes, as a server does whose patience with idle connections ends just then.
func TestCountOnConnectionThatTheServerLeft(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var connections atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go answerOnce(c)
		}
	}()
	m, err := New(Config{BaseURL: "http://" + l.Addr().String() + "/v1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	req := &memgpt.Request{Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "hi")}}
	for i := range 3 {
		if n, err := m.Count(t.Context(), req); n != 7 || err != nil {
			t.Fatalf("count %d: %d, %v", i+1, n, err)
		}
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections, want one a count: else none was left", n)
	}
}

// answerOnce answers one count, and leaves once the next request is there.
func answerOnce(c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, req.Body)
	body := `{"input_tokens":7}`
	_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	_, _ = r.ReadByte()
}
