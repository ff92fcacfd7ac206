package openai

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"memgpt"
	"memgpt/model/script"
)

// serve starts a server and a model at it. The model is closed before the server.
func serve(t *testing.T, h http.Handler, cfg Config) *Model {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	cfg.BaseURL = srv.URL + "/v1"
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func scripted(t *testing.T, cfg Config, replies ...script.Reply) (*Model, *script.Server) {
	t.Helper()
	s := script.NewServer(script.ServerConfig{Config: script.Config{Replies: replies}})
	return serve(t, s, cfg), s
}

func ask(text string) *memgpt.Request {
	return &memgpt.Request{Messages: []memgpt.Message{
		memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "system"),
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text),
	}}
}

// ids returns a source of ids that counts.
func ids() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return "new_" + strconv.Itoa(n)
	}
}

// heard gathers the pieces of a stream.
type heard struct {
	text, reasoning string
	calls           []memgpt.Call
	pieces          int
}

func (h *heard) add(d memgpt.Delta) {
	h.pieces++
	h.text += d.Text
	h.reasoning += d.Reasoning
	if d.Call != nil {
		for len(h.calls) <= d.Call.Index {
			h.calls = append(h.calls, memgpt.Call{})
		}
		c := &h.calls[d.Call.Index]
		c.ID += d.Call.ID
		c.Name += d.Call.Name
		c.Arguments += d.Call.Arguments
	}
}

// same reports a difference between what was streamed and the response.
func (h *heard) same(t *testing.T, resp *memgpt.Response) {
	t.Helper()
	text, reasoning := textAndThinking(resp)
	calls := resp.Message.Calls()
	if h.text != text || h.reasoning != reasoning || len(h.calls) != len(calls) {
		t.Errorf("streamed %+v\nresponse %+v", h, resp)
		return
	}
	for i := range calls {
		if calls[i] != h.calls[i] {
			t.Errorf("call %d: streamed %+v, response %+v", i, h.calls[i], calls[i])
		}
	}
}

func textAndThinking(resp *memgpt.Response) (text, thinking string) {
	for _, p := range resp.Message.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			text += p.Text
		case memgpt.Reasoning:
			thinking += p.Text
		}
	}
	return text, thinking
}

// stream makes a body of events from the data of each.
func stream(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

const soon = 10 * time.Second

// refuser refuses bodies that are bad; a nil judge refuses all.
type refuser struct {
	http.Handler
	status  int
	refusal string
	bad     func(string) bool
	posts   atomic.Int64
}

func refusing(h http.Handler, status int, refusal string, bad func(string) bool) *refuser {
	return &refuser{Handler: h, status: status, refusal: refusal, bad: bad}
}

func (h *refuser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.posts.Add(1)
	body, err := io.ReadAll(r.Body)
	if err == nil && (h.bad == nil || h.bad(string(body))) {
		w.WriteHeader(h.status)
		_, _ = io.WriteString(w, h.refusal)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	h.Handler.ServeHTTP(w, r)
}
