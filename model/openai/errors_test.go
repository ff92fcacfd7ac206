package openai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"memgpt"
	"memgpt/internal/wire"
	"memgpt/model/script"
)

var clock = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func now() time.Time { return clock }

// oai wraps an error message as OpenAI does.
func oai(message string) string {
	return `{"error":{"message":"` + message + `","type":"invalid_request_error","param":null,"code":null}}`
}

// refusals are answers with other statuses. tokens and limit are those of overflows.
var refusals = []struct {
	name          string
	status        int
	body          string
	code          memgpt.Code
	tokens, limit int
}{
	{"OpenAI", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, memgpt.CodeModelOverflow, 9000, 8192},
	{"OpenAI with reply", 400, oai(`This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).`), memgpt.CodeModelOverflow, 4000, 4097},
	{"OpenAI prompt", 400, oai(`This model's maximum context length is 4097 tokens, however you requested 5000 tokens (4000 in your prompt; 1000 for the completion).`), memgpt.CodeModelOverflow, 4000, 4097},
	{"OpenAI code alone", 400, `{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`, memgpt.CodeModelOverflow, 0, 0},
	{"vLLM", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}`, memgpt.CodeModelOverflow, 5000, 4096},
	{"vLLM prompt", 400, oai(`The prompt (total length 5000) is too long to fit into the model (context length 4096).`), memgpt.CodeModelOverflow, 5000, 4096},
	{"vLLM decoder", 400, oai(`The decoder prompt (length 5000) is longer than the maximum model length of 4096.`), memgpt.CodeModelOverflow, 5000, 4096},
	{"llama.cpp", 400, `{"error":{"code":400,"message":"request (2522 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":2522,"n_ctx":2048}}`, memgpt.CodeModelOverflow, 2522, 2048},
	{"llama.cpp words", 500, oai(`the request exceeds the available context size. try increasing the context size or enable context shift`), memgpt.CodeModelOverflow, 0, 0},
	{"Ollama", 400, `{"error":"the input length exceeds the context length"}`, memgpt.CodeModelOverflow, 0, 0},
	{"LM Studio", 400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`, memgpt.CodeModelOverflow, 5000, 4096},
	{"LM Studio keep", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}`, memgpt.CodeModelOverflow, 0, 0},
	{"Groq", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}`, memgpt.CodeModelOverflow, 0, 0},
	{"Groq a minute", 413, `{"error":{"message":"Request too large for model 'x' in organization 'y' on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}`, memgpt.CodeModelOverflow, 9000, 6000},
	{"OpenRouter", 400, `{"error":{"message":"This endpoint's maximum context length is 8192 tokens. However, you requested about 9100 tokens (8000 of text input, 1000 of tool input, 100 in the output).","code":400,"metadata":{"provider_name":null}}}`, memgpt.CodeModelOverflow, 8000, 8192},
	{"Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, memgpt.CodeModelOverflow, 208310, 200000},
	{"Google", 400, `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, memgpt.CodeModelOverflow, 1200000, 1048576},
	{"Mistral", 400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}`, memgpt.CodeModelOverflow, 40000, 32768},
	{"TGI", 422, `{"error":"Input validation error: 'inputs' tokens + 'max_new_tokens' must be <= 4096. Given: 4000 'inputs' tokens and 1000 'max_new_tokens'","error_type":"validation"}`, memgpt.CodeModelOverflow, 4000, 4096},
	{"xAI", 400, `{"code":"invalid","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}`, memgpt.CodeModelOverflow, 140000, 131072},
	{"Cohere", 400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000."}`, memgpt.CodeModelOverflow, 5000, 4081},
	{"Moonshot", 400, oai(`Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)`), memgpt.CodeModelOverflow, 9000, 8192},
	{"GitHub", 400, oai(`prompt token count of 9000 exceeds the limit of 8192`), memgpt.CodeModelOverflow, 9000, 8192},
	{"SGLang", 400, `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","code":400}`, memgpt.CodeModelOverflow, 5000, 4096},
	{"proxy", 413, `<html><head><title>413 Request Entity Too Large</title></head></html>`, memgpt.CodeModelOverflow, 0, 0},

	{"bad", 400, oai("messages must not be empty"), memgpt.CodeModelRequest, 0, 0},
	{"no tools", 400, `{"error":{"message":"registry.ollama.ai/library/x does not support tools","type":"api_error"}}`, memgpt.CodeModelRequest, 0, 0},
	{"no such model", 404, `{"error":{"message":"model 'x' not found","type":"not_found_error"}}`, memgpt.CodeModelRequest, 0, 0},
	{"FastAPI", 422, `{"detail":[{"loc":["body","messages"],"msg":"field required"}]}`, memgpt.CodeModelRequest, 0, 0},
	{"redirect", 308, ``, memgpt.CodeModelRequest, 0, 0},
	{"arguments in history", 500, oai("Failed to parse tool call arguments as JSON: unexpected end"), memgpt.CodeModelRequest, 0, 0},
	{"template", 500, oai("Jinja Exception: Conversation roles are wrong"), memgpt.CodeModelRequest, 0, 0},
	{"no key", 401, `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`, memgpt.CodeModelAuth, 0, 0},
	{"forbidden", 403, `{"detail":"Forbidden"}`, memgpt.CodeModelAuth, 0, 0},
	{"no credit", 402, `{"error":{"message":"Insufficient Balance"}}`, memgpt.CodeModelQuota, 0, 0},
	{"no quota", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, memgpt.CodeModelQuota, 0, 0},
	{"slow down", 429, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, memgpt.CodeModelLimit, 0, 0},
	{"tokens a minute", 429, oai("Limit 6000, reduce the length of the messages"), memgpt.CodeModelLimit, 0, 0},
	{"request timeout", 408, ``, memgpt.CodeModelTimeout, 0, 0},
	{"gateway timeout", 504, `<html><title>504 Gateway Time-out</title>`, memgpt.CodeModelTimeout, 0, 0},
	{"Cloudflare", 524, `error code: 524`, memgpt.CodeModelTimeout, 0, 0},
	{"loading", 503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, memgpt.CodeModelDown, 0, 0},
	{"bad gateway", 502, "<html>\n<head><TITLE>502 Bad Gateway</TITLE></head></html>", memgpt.CodeModelDown, 0, 0},
	{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, memgpt.CodeModelDown, 0, 0},
	{"not implemented", 501, `{}`, memgpt.CodeModelRequest, 0, 0},
	{"nothing said", 500, ``, memgpt.CodeModelDown, 0, 0},
	{"odd JSON", 500, `{"error":{"message":{"a":1},"code":[1]}}`, memgpt.CodeModelDown, 0, 0},
}

func TestRefusals(t *testing.T) {
	for _, test := range refusals {
		t.Run(test.name, func(t *testing.T) {
			m, srv := scripted(t, Config{APIKey: "secret-key"}, script.Status(test.status, test.body+"\x00secret-key", "Location", "http://elsewhere/"))
			m.cfg.Now = now
			_, err := m.Generate(t.Context(), ask("hi"), func(memgpt.Delta) { t.Error("a piece") })
			var e *memgpt.Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Code != test.code || e.Tokens != test.tokens || e.Limit != test.limit || e.Started {
				t.Errorf("%q, %d of %d tokens, started %v; want %q, %d of %d\n%v", e.Code, e.Tokens, e.Limit, e.Started, test.code, test.tokens, test.limit, e)
			}
			if s := e.Error(); strings.Contains(s, "secret-key") || strings.Contains(s, "\x00") || len(s) > 1500 {
				t.Errorf("text %q", s)
			}
			if srv.Posts() != 1 {
				t.Errorf("%d requests", srv.Posts())
			}
		})
	}
}

func TestRefusalSaysWhatTheServerSaid(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"the words"}}`:   "the words",
		`{"error":"the words"}`:               "the words",
		`{"message":"the words"}`:             "the words",
		`{"detail":"the words"}`:              "the words",
		`[{"error":{"message":"the words"}}]`: "the words",
		`"the words"`:                         "the words",
		`the words`:                           "the words",
		`<html><title>the words</title>`:      "the words",
		`{"detail":[{"msg":"the words"}]}`:    "the words",
		`{"error":{"message":"` + strings.Repeat("好", 9_000) + `"}}`: "好好",
	} {
		m, _ := scripted(t, Config{}, script.Status(500, body))
		if _, err := m.Generate(t.Context(), ask("hi"), nil); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1500 {
			t.Errorf("%.80s: %v", body, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		headers []string
		body    string
		want    time.Duration
	}{
		{[]string{"Retry-After", "2"}, "", 2 * time.Second},
		{[]string{"Retry-After", "1.5"}, "", 1500 * time.Millisecond},
		{[]string{"Retry-After", clock.Add(90 * time.Second).Format(http.TimeFormat)}, "", 90 * time.Second},
		{[]string{"Retry-After", clock.Add(-time.Hour).Format(http.TimeFormat)}, "", 0},
		{[]string{"Retry-After", "soon"}, "", 0},
		{[]string{"Retry-After", "-5"}, "", 0},
		{[]string{"Retry-After", "1e300"}, "", maxWait},
		{[]string{"Retry-After", "NaN"}, "", 0},
		{[]string{"Retry-After-Ms", "250", "Retry-After", "1"}, "", 250 * time.Millisecond},
		{[]string{"X-Ratelimit-Reset-Requests", "6m0s", "X-Ratelimit-Reset-Tokens", "20ms"}, "", 20 * time.Millisecond},
		{[]string{"X-Ratelimit-Reset-Requests", "6m0s", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Tokens", "20ms", "X-Ratelimit-Remaining-Tokens", "9"}, "", 6 * time.Minute},
		{[]string{"X-Ratelimit-Reset", "1795953605000"}, "", 5 * time.Second},
		{[]string{"X-Ratelimit-Reset", "1795953605"}, "", 5 * time.Second},
		{[]string{"X-Ratelimit-Reset", "7"}, "", 7 * time.Second},
		{[]string{"X-Ratelimit-Reset", "1.25"}, "", 1250 * time.Millisecond},
		{[]string{"X-Ratelimit-Reset", "1e300"}, "", maxWait},
		{[]string{"X-Ratelimit-Reset", "-1"}, "", 0},
		{[]string{"X-Ratelimit-Reset", "whenever"}, "", 0},
		{[]string{"X-Ratelimit-Reset-Tokens-Minute", "11.5", "X-Ratelimit-Reset-Requests-Day", "33011.38"}, "", 11500 * time.Millisecond},
		{[]string{"X-Ratelimit-Reset-Tokens-Minute", "11.5", "X-Ratelimit-Reset-Requests-Day", "3000", "X-Ratelimit-Remaining-Requests-Day", "0"}, "", 50 * time.Minute},
		{[]string{"X-Ratelimit-Reset-Project-Tokens", "3s", "X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Remaining-Project-Tokens", "0"}, "", 3 * time.Second},
		{[]string{"Ratelimit-Reset", "9", "Ratelimit-Remaining", "0"}, "", 9 * time.Second},
		{[]string{"Anthropic-Ratelimit-Requests-Reset", clock.Add(42 * time.Second).Format(time.RFC3339)}, "", 42 * time.Second},
		{[]string{"Retry-After", "3", "X-Ratelimit-Reset", "7"}, "", 3 * time.Second},
		{nil, `{"error":{"message":"Rate limit reached. Please try again in 1m7.66s. Visit"}}`, 67660 * time.Millisecond},
		{nil, `{"error":{"message":"x","details":[{"@type":"RetryInfo","retryDelay":"34s"}]}}`, 34 * time.Second},
		{nil, `{}`, 0},
	} {
		for _, status := range []int{429, 503} {
			m, _ := scripted(t, Config{Now: now}, script.Status(status, test.body, test.headers...))
			_, err := m.Generate(t.Context(), ask("hi"), nil)
			want := test.want
			if status != 429 && len(test.headers) > 0 && !strings.HasPrefix(test.headers[0], "Retry-After") {
				want = 0 // a limit that was not passed says nothing about a failure
			}
			var e *memgpt.Error
			if !errors.As(err, &e) || e.RetryAfter != want {
				t.Errorf("%d %v %s: %+v, want %v", status, test.headers, test.body, e, want)
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := l.Addr().String()
	_ = l.Close()
	for name, test := range map[string]struct {
		base string
		say  string
	}{
		"refused": {"http://" + refusing, "is the server running"},
		"no DNS":  {"http://nowhere.invalid", "nowhere.invalid"},
	} {
		m, err := New(Config{BaseURL: test.base, APIKey: "secret-key"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Generate(t.Context(), ask("hi"), nil)
		if memgpt.CodeOf(err) != memgpt.CodeModelDown || !strings.Contains(err.Error(), test.say) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	m, _ := scripted(t, Config{}, script.Reset(), script.Reset())
	if _, err := m.Generate(t.Context(), ask("hi"), nil); memgpt.CodeOf(err) != memgpt.CodeModelDown {
		t.Errorf("reset: %v", err)
	}
}

// slow is a server that streams what it is sent over a channel and notes when its client goes away.
type slow struct {
	pieces chan string
	gone   chan struct{}
	hold   bool // no headers before the first piece
}

func newSlow(hold bool) *slow { return &slow{make(chan string), make(chan struct{}), hold} }

func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	if !s.hold {
		w.(http.Flusher).Flush()
	}
	for {
		select {
		case p := <-s.pieces:
			_, _ = io.WriteString(w, p)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			close(s.gone)
			return
		}
	}
}

func TestTimeouts(t *testing.T) {
	const short = 60 * time.Millisecond
	for name, test := range map[string]struct {
		cfg     Config
		hold    bool
		pieces  []string
		ping    bool
		endless bool // pieces come for ever
		started bool
		say     string
	}{
		"first byte":            {cfg: Config{First: short}, hold: true, say: "no answer began within 60ms"},
		"first piece":           {cfg: Config{First: short}, say: "no answer began"},
		"keepalives only":       {cfg: Config{First: short}, ping: true, say: "no answer began"},
		"idle":                  {cfg: Config{Idle: short}, pieces: []string{stream(delta(`{"content":"abc"}`))}, started: true, say: "nothing more came within 60ms"},
		"whole, with pieces":    {cfg: Config{Whole: 5 * short}, endless: true, started: true, say: "the answer was not whole within 300ms"},
		"whole, silent":         {cfg: Config{Whole: short}, hold: true, say: "the answer was not whole within 60ms"},
		"keepalives in between": {cfg: Config{First: 5 * short}, pieces: []string{stream(delta(`{"content":"abc"}`))}, ping: true, started: true, say: "nothing but keepalives came within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSlow(test.hold)
			m := serve(t, s, test.cfg)
			feeding := make(chan struct{})
			go func() {
				defer close(feeding)
				for _, p := range test.pieces {
					s.pieces <- p
				}
				again := ": ping\n\n"
				if test.endless {
					again = stream(delta(`{"content":"and "}`))
				}
				for test.ping || test.endless {
					select {
					case s.pieces <- again:
					case <-s.gone:
						return
					}
				}
			}()
			start := time.Now()
			_, err := m.Generate(t.Context(), ask("hi"), nil)
			var e *memgpt.Error
			if !errors.As(err, &e) || e.Code != memgpt.CodeModelTimeout || e.Started != test.started || !strings.Contains(e.Text, test.say) {
				t.Errorf("%v", err)
			}
			if took := time.Since(start); took < short || took > soon/2 {
				t.Errorf("it took %v", took)
			}
			wait(t, s.gone)
			<-feeding
		})
	}
}

// TestConnectTimeout has a server that takes connections and never says a word, as a host behind a bad proxy does: the limit
// to connect is its own.
func TestConnectTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	m, err := New(Config{BaseURL: "https://" + l.Addr().String(), Connect: 60 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = m.Generate(t.Context(), ask("hi"), nil)
	var e *memgpt.Error
	if !errors.As(err, &e) || e.Code != memgpt.CodeModelTimeout || e.Started || !strings.Contains(err.Error(), "could not connect in time") {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took < 60*time.Millisecond || took > soon/2 {
		t.Errorf("it took %v", took)
	}
}

func wait(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(soon):
		t.Error("the connection upstream was not closed")
	}
}

// TestSlowIsNotSilent has an answer that takes longer than each limit but comes in time piece by piece.
func TestSlowIsNotSilent(t *testing.T) {
	const limit = 200 * time.Millisecond
	s := newSlow(false)
	m := serve(t, s, Config{First: limit, Idle: limit})
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(limit / 8)
		defer tick.Stop()
		for i := range 12 {
			<-tick.C
			if i == 11 {
				s.pieces <- stream(fin("stop"), "[DONE]")
				return
			}
			s.pieces <- stream(delta(`{"content":"x"}`))
			<-tick.C
			s.pieces <- ": ping\n\n" // moves no limit but that of silence
		}
	}()
	start := time.Now()
	resp, err := m.Generate(t.Context(), ask("hi"), nil)
	if err != nil || resp.Message.Said() != "xxxxxxxxxxx" || time.Since(start) < 2*limit {
		t.Errorf("%+v, %v after %v", resp, err, time.Since(start))
	}
	<-done
	wait(t, s.gone) // the server never ends its answer: the connection is given up soon
}

// TestOpenEnd has a server that says that it is done and keeps the connection open: the caller doesn't wait for it.
func TestOpenEnd(t *testing.T) {
	s := newSlow(false)
	m := serve(t, s, Config{First: 2 * soon, Idle: 2 * soon})
	go func() {
		for _, p := range []string{stream(delta(`{"content":"x"}`), fin("stop"), "[DONE]"), ": ping\n\n"} {
			select {
			case s.pieces <- p:
			case <-s.gone:
			}
			<-time.After(wire.DrainTimeout / 3) // so that the ping is not read together with the end
		}
	}()
	start := time.Now()
	if resp, err := m.Generate(t.Context(), ask("hi"), nil); err != nil || resp.Message.Said() != "x" || time.Since(start) > soon {
		t.Errorf("%+v, %v after %v", resp, err, time.Since(start))
	}
	wait(t, s.gone)
	w := wire.NewWatch(t.Context(), wire.Limits{First: soon, Idle: soon, Whole: soon, Filler: filler})
	if w.Stop(); w.Context().Err() == nil {
		t.Error("a stopped watch leaves its context open")
	}
}

func TestCancelClosesTheConnection(t *testing.T) {
	for name, first := range map[string]string{"before the answer": "", "in the answer": stream(delta(`{"content":"abc"}`))} {
		t.Run(name, func(t *testing.T) {
			s := newSlow(first == "")
			m := serve(t, s, Config{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var timer *time.Timer
			if first == "" {
				timer = time.AfterFunc(30*time.Millisecond, cancel)
				defer timer.Stop()
			} else {
				go func() { s.pieces <- first }()
			}
			_, err := m.Generate(ctx, ask("hi"), func(memgpt.Delta) { cancel() })
			if !errors.Is(err, context.Canceled) || memgpt.CodeOf(err) != "" {
				t.Errorf("error %v, want the context's without a code", err)
			}
			wait(t, s.gone)
		})
	}
}

// TestDeadConnection has a server that closes a kept connection when the next request comes over it.
func TestDeadConnection(t *testing.T) {
	s := script.NewServer(script.ServerConfig{Config: script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Text("ok") }}})
	var posts atomic.Int64
	m := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if posts.Add(1) == 2 {
			panic(http.ErrAbortHandler)
		}
		s.ServeHTTP(w, r)
	}), Config{})
	for i := range 2 {
		if resp, err := m.Generate(t.Context(), ask("hi"), nil); err != nil || resp.Message.Said() != "ok" {
			t.Errorf("call %d: %+v, %v", i, resp, err)
		}
	}
	if posts.Load() != 3 {
		t.Errorf("%d requests, want 3", posts.Load())
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	var opened atomic.Int64
	for _, plain := range []bool{true, false} {
		opened.Store(0)
		s := script.NewServer(script.ServerConfig{Plain: plain, Config: script.Config{Func: func(int, *memgpt.Request) script.Reply { return script.Text("ok") }}})
		client := &http.Client{Transport: wire.NewTransport(soon, nil)}
		dial := client.Transport.(*http.Transport).DialContext
		client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			opened.Add(1)
			return dial(ctx, network, addr)
		}
		m := serve(t, s, Config{Client: client})
		for range 5 {
			if _, err := m.Generate(t.Context(), ask("hi"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if opened.Load() != 1 {
			t.Errorf("plain %v: %d connections for five calls in turn", plain, opened.Load())
		}
	}
}

func TestNew(t *testing.T) {
	for in, want := range map[string]string{
		"http://localhost:8080":                      "http://localhost:8080/v1/chat/completions",
		" http://localhost:8080/ ":                   "http://localhost:8080/v1/chat/completions",
		"https://host/api/v1/":                       "https://host/api/v1/chat/completions",
		"https://host/v1/chat/completions":           "https://host/v1/chat/completions",
		"https://host/openai/v1?api-version=preview": "https://host/openai/v1/chat/completions?api-version=preview",
		"https://host/v1beta/openai/":                "https://host/v1beta/openai/chat/completions",
	} {
		m, err := New(Config{BaseURL: in})
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got := at(m.base, "chat/completions"); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{"", "localhost:8080", "ftp://host", "http://", "http://[::1", "host"} {
		if _, err := New(Config{BaseURL: in}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("%q: %v", in, err)
		}
	}
	if _, err := New(Config{BaseURL: "http://x", Extra: map[string]jsonRaw{"messages": nil}}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Errorf("extra messages: %v", err)
	}
}
