package script

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"memgpt"
)

// Style is whose manners a Server has where providers differ.
type Style int

// Styles. They differ in how a request over the window is refused and in what /v1/models tells.
const (
	StyleOpenAI Style = iota
	StyleLlama        // llama.cpp
)

// ServerConfig describes a scripted server.
type ServerConfig struct {
	Config          // the script; Func is lent the request as it was read from the wire
	Style  Style    // whose manners it has
	Key    string   // refuse requests without this key (401); "" takes all
	Window int      // refuse requests over so many tokens (400); 0 takes all
	Strict bool     // refuse fields that are not of the first Chat Completions (400); it is for chats alone
	Refuse []string // names of fields to refuse (400)
	Plain  bool     // answer in one piece of JSON also when a stream is asked for
	// Count is the number of tokens of a request's body. Nil: one a byte.
	Count func(body []byte) int
	// Bytewise writes and flushes every byte by itself.
	Bytewise bool
	// Keepalive writes a comment line before every piece of a stream.
	Keepalive bool
}

// Server is an http.Handler that speaks from a script in four protocols, each at its own path: Chat Completions
// (POST …/chat/completions), the Responses API (…/responses), Anthropic's Messages API (…/messages) and Ollama's own
// (/api/chat, with /api/show and /api/version). GET …/models and GET /health answer too. It records the bodies that it is
// sent, with CountOnly their number alone. While a reply is held it keeps nothing of the request, so that many thousands
// can wait at once.
type Server struct {
	Model *Model // the script, for its counts and the requests as they were read
	cfg   ServerConfig

	mu      sync.Mutex
	bodies  [][]byte
	posts   int
	refused int
}

// NewServer returns a scripted server.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Count == nil {
		cfg.Count = func(body []byte) int { return len(body) }
	}
	return &Server{Model: New(cfg.Config), cfg: cfg}
}

// Bodies returns the bodies of all chat requests so far, the refused ones too; nil with CountOnly.
func (s *Server) Bodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.bodies...)
}

// Posts returns the number of chat requests so far, the refused ones too.
func (s *Server) Posts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts
}

// Refused returns how many requests were refused without asking the script (over the window, wrong key or field).
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		s.models(w)
	case r.Method == http.MethodGet && r.URL.Path == "/health":
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	case r.URL.Path == "/api/version":
		writeJSON(w, http.StatusOK, map[string]string{"version": "0.34.0"})
	case r.URL.Path == "/api/show":
		s.show(w)
	case r.Method == http.MethodPost && protocolAt(r.URL.Path) != nil:
		s.chat(w, r, protocolAt(r.URL.Path))
	default:
		writeJSON(w, http.StatusNotFound, errorBody("not_found_error", "File Not Found", nil))
	}
}

// protocol is how requests, replies and refusals look in one of the protocols.
type protocol struct {
	path    string // end of the path
	read    func(body []byte) (head, *memgpt.Request, error)
	whole   func(s *Server, h head, r Reply) any
	stream  func(s *Server, w *writer, h head, r Reply) // pieces: r.pieces tells where a broken reply ends
	kind    string                                      // content type of a stream
	failure func(status int, kind, text string, more map[string]any) *Wire
	empty   string // body of an answer without a reply
}

// protocolAt returns the protocol of a path; nil is none.
func protocolAt(path string) *protocol {
	for _, p := range []*protocol{&chatProtocol, &responsesProtocol, &messagesProtocol, &ollamaProtocol} {
		if strings.HasSuffix(path, p.path) {
			return p
		}
	}
	return nil
}

// show tells of the model as Ollama does.
func (s *Server) show(w http.ResponseWriter) {
	writeJSON(w, http.StatusOK, map[string]any{"capabilities": []string{"completion", "tools", "thinking", "vision"},
		"model_info": map[string]any{"general.architecture": "script", "script.context_length": s.cfg.Window}})
}

func (s *Server) models(w http.ResponseWriter) {
	one := map[string]any{"id": s.name(), "object": "model", "created": 0, "owned_by": "script"}
	if s.cfg.Style == StyleLlama && s.cfg.Window > 0 {
		one["meta"] = map[string]any{"n_ctx": s.cfg.Window}
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{one}})
}

func (s *Server) name() string { return s.Model.cfg.Capabilities.Name }

func (s *Server) chat(w http.ResponseWriter, r *http.Request, p *protocol) {
	head, reply, refusal := s.receive(r, p)
	if refusal != nil {
		refusal.write(w)
		return
	}
	if reply.wait(r.Context()) != nil {
		return
	}
	s.answer(w, p, head, reply)
	if reply.Wire != nil && reply.Wire.Stall {
		reply.Wire.stall(w, r)
	}
}

// receive reads a request whole. It is a function of its own so that nothing of the body is kept while the reply is held.
func (s *Server) receive(r *http.Request, p *protocol) (head, Reply, *Wire) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return head{}, Reply{}, p.failure(http.StatusBadRequest, "invalid_request_error", "read the body: "+err.Error(), nil)
	}
	return s.take(r.Header, body, p)
}

// take records a body and finds its reply, or says why it is refused.
func (s *Server) take(header http.Header, body []byte, p *protocol) (head, Reply, *Wire) {
	s.mu.Lock()
	s.posts++
	if !s.cfg.CountOnly {
		s.bodies = append(s.bodies, body)
	}
	s.mu.Unlock()
	h, req, err := p.read(body)
	if err == nil {
		h.fields, err = fieldsOf(body)
	}
	refusal := s.refuse(header, body, h, p, err)
	if refusal != nil {
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
		return h, Reply{}, refusal
	}
	if s.cfg.Summary != nil && len(req.Tools) == 0 {
		req.Purpose = memgpt.PurposeSummary
	}
	h.prompt, h.fields = s.cfg.Count(body), nil
	return h, s.Model.next(req), nil
}

func (s *Server) refuse(header http.Header, body []byte, h head, p *protocol, err error) *Wire {
	if s.cfg.Key != "" && header.Get("Authorization") != "Bearer "+s.cfg.Key {
		return p.failure(http.StatusUnauthorized, "authentication_error", "Invalid API Key", nil)
	}
	if err != nil {
		return p.failure(http.StatusBadRequest, "invalid_request_error", err.Error(), nil)
	}
	for _, name := range h.fields {
		if s.cfg.unwanted(name, p) {
			return p.failure(http.StatusBadRequest, "invalid_request_error", "Unrecognized request argument supplied: "+name,
				map[string]any{"param": name})
		}
	}
	if n := s.cfg.Count(body); s.cfg.Window > 0 && n+h.maxTokens > s.cfg.Window {
		return s.overflow(p, n, h.maxTokens)
	}
	return nil
}

// unwanted reports whether a field of a request is refused. What is always taken is the Chat Completions API with
// functions as it was first (2023), and tools.
func (c *ServerConfig) unwanted(name string, p *protocol) bool {
	for _, r := range c.Refuse {
		if r == name {
			return true
		}
	}
	switch name {
	case "model", "messages", "stream", "tools", "tool_choice", "max_tokens", "temperature", "top_p", "stop":
		return false
	}
	return c.Strict && p == &chatProtocol
}

// overflow refuses a request over the window in the words of the provider (llama.cpp, and Ollama above it: server recordings
// of 2026-11; OpenAI and Anthropic: their error references).
func (s *Server) overflow(p *protocol, prompt, reply int) *Wire {
	if s.cfg.Style == StyleLlama || p == &ollamaProtocol {
		return p.failure(http.StatusBadRequest, "exceed_context_size_error",
			fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it", prompt, s.cfg.Window),
			map[string]any{"n_prompt_tokens": prompt, "n_ctx": s.cfg.Window})
	}
	if p == &messagesProtocol {
		return p.failure(http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("prompt is too long: %d tokens > %d maximum", prompt+reply, s.cfg.Window), nil)
	}
	text := fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. "+
		"Please reduce the length of the messages.", s.cfg.Window, prompt)
	if reply > 0 {
		text = fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens "+
			"(%d in the messages, %d in the completion). Please reduce the length of the messages or completion.",
			s.cfg.Window, prompt+reply, prompt, reply)
	}
	return p.failure(http.StatusBadRequest, "invalid_request_error", text,
		map[string]any{"code": "context_length_exceeded", "param": "messages"})
}

// answer writes a reply.
func (s *Server) answer(w http.ResponseWriter, p *protocol, h head, r Reply) {
	out := &writer{ResponseWriter: w, bytewise: s.cfg.Bytewise}
	stream := h.stream && !s.cfg.Plain
	switch {
	case r.Wire != nil:
		r.Wire.write(w)
	case r.Err != nil && r.Pieces == 0:
		failed(p, r.Err).write(w)
	case stream:
		w.Header().Set("Content-Type", p.kind)
		p.stream(s, out, h, r)
	default:
		s.whole(out, p, h, r)
	}
}

// whole writes a reply as one piece of JSON. A broken one ends in the middle.
func (s *Server) whole(w *writer, p *protocol, h head, r Reply) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	body := []byte(encode(p.whole(s, h, r)))
	if r.Err != nil {
		w.write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	w.write(body)
}

// writer flushes what is written, if told to byte by byte.
type writer struct {
	http.ResponseWriter
	bytewise bool
}

// event writes an event without a name, named one with its name, and line one of a stream of lines.
func (w *writer) event(v any) { w.write([]byte("data: " + encode(v) + "\n\n")) }

func (w *writer) named(name string, v any) {
	w.write([]byte("event: " + name + "\ndata: " + encode(v) + "\n\n"))
}

func (w *writer) line(v any) { w.write([]byte(encode(v) + "\n")) }

// cut breaks off the stream of a broken reply before a piece, counted from 0.
func (r *Reply) cut(piece int) {
	if r.Err != nil && piece >= r.Pieces {
		panic(http.ErrAbortHandler)
	}
}

func (w *writer) write(b []byte) {
	flush, _ := w.ResponseWriter.(http.Flusher)
	step := len(b)
	if w.bytewise {
		step = 1
	}
	for len(b) > 0 {
		n := min(step, len(b))
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		if flush != nil {
			flush.Flush()
		}
		b = b[n:]
	}
}

// Wire is an answer given byte by byte.
type Wire struct {
	Status int // 0 is 200
	Header map[string]string
	Body   string
	Cut    bool // break the connection off after Body
	// Stall keeps the answer open after Body until the client leaves, and writes Every once a second; "" is silence.
	Stall bool
	Every string
	Reset bool // reset the connection at once, instead of an answer
}

func (f *Wire) write(w http.ResponseWriter) {
	if f.Reset {
		reset(w)
		return
	}
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	if f.Status != 0 {
		w.WriteHeader(f.Status)
	}
	_, _ = io.Copy(w, bytes.NewReader([]byte(f.Body)))
	if f.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// stall holds an answer that has begun.
func (f *Wire) stall(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		_ = flush.Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
			if _, err := io.WriteString(w, f.Every); err != nil {
				return
			}
		}
	}
}

// reset closes a connection in a way that the peer sees as a reset.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// Status is an answer with a status and a body. Headers are names and values in turn.
func Status(status int, body string, headers ...string) Reply {
	f := &Wire{Status: status, Body: body, Header: map[string]string{"Content-Type": "application/json"}}
	for i := 0; i+1 < len(headers); i += 2 {
		f.Header[headers[i]] = headers[i+1]
	}
	return Reply{Wire: f}
}

// Events is an answer that streams a body as it stands.
func Events(body string) Reply {
	return Status(http.StatusOK, body, "Content-Type", "text/event-stream")
}

// Stalled is a stream that begins with a body and then goes on for ever: with silence, or once a second with every, e.g. a
// comment that keeps the connection alive.
func Stalled(body, every string) Reply {
	r := Events(body)
	r.Wire.Stall, r.Wire.Every = true, every
	return r
}

// Reset is a connection reset instead of an answer.
func Reset() Reply { return Reply{Wire: &Wire{Reset: true}} }

// Empty is status 200 without a body.
func Empty() Reply { return Status(http.StatusOK, "") }

// Garbage is status 200 with bytes that are neither JSON nor events.
func Garbage() Reply { return Status(http.StatusOK, "\x1f\x8b\x08\x00 garbage \xff\xfe") }

// Half is status 200 with the first half of a body; then the connection breaks.
func Half(body string) Reply {
	r := Status(http.StatusOK, body[:len(body)/2])
	r.Wire.Cut = true
	return r
}
