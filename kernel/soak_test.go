package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"memgpt"
	"memgpt/host"
	"memgpt/model/openai"
	"memgpt/model/retry"
	"memgpt/model/script"
)

// pipes is a network within the process, so that a clock that is not real can stand in for the waits on it.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	refuse func() bool // refuses the next connection
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if p.refuse() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connection refused")}
	}
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// soak is a conversation with a provider that fails in every way that users of others have met.
type soak struct {
	*world
	mu     sync.Mutex
	rng    *rand.Rand
	k      int // of the message that is to be answered
	calls  int // of the model for it
	dying  int // steps that come before the reply during which the process ends; -1 where it doesn't
	faults map[string]int
	names  []string
	wrong  []string // requests that break check V
	model  memgpt.Model
}

const soakWindow = 8192

func answerTo(k int) string { return fmt.Sprintf("answer #%d", k) }

// streamed is the body of a stream in which one delta stands.
func streamed(delta, finish string) string {
	return `data: {"choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}` + "\n\n"
}

// soakRefusals are the faults of providers, proxies and streams.
func soakRefusals(text string) map[string]script.Reply {
	one := func(status int, body string, headers ...string) script.Reply {
		return script.Status(status, body, headers...)
	}
	begun := `data: {"choices":[{"index":0,"delta":{"content":"answ"}}]}` + "\n\n"
	return map[string]script.Reply{
		"429 with Retry-After":    one(429, `{"error":{"message":"slow down"}}`, "Retry-After", "2"),
		"429 bare":                one(429, `slow down`),
		"429 with a reset":        one(429, `{"error":{"message":"x"}}`, "X-Ratelimit-Reset-Tokens", "1m3s", "X-Ratelimit-Remaining-Tokens", "0"),
		"429 for an hour":         one(429, `{"error":{"message":"x"}}`, "Retry-After", "3600"),
		"500 a page":              one(500, "<html><title>oops</title></html>"),
		"502":                     one(502, "Bad Gateway"),
		"503 loading":             one(503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`),
		"504":                     one(504, ""),
		"529":                     one(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Retry-After", "5"),
		"408":                     one(408, ""),
		"400":                     one(400, `{"error":{"message":"bad request","type":"invalid_request_error"}}`),
		"401":                     one(401, `{"error":{"message":"no"}}`),
		"402":                     one(402, `{"error":{"message":"pay"}}`),
		"quota as 429":            one(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`),
		"a page with status 200":  one(200, "<html><title>Welcome</title></html>", "Content-Type", "text/html"),
		"overflow that is none":   one(400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`),
		"reset":                   script.Reset(),
		"empty body":              script.Empty(),
		"garbage":                 script.Garbage(),
		"half JSON":               script.Half(`{"choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"}}]}`),
		"no choices":              one(200, `{"choices":[]}`),
		"only [DONE]":             script.Events("data: [DONE]\n\n"),
		"cut stream":              script.Say(text).Broken(2),
		"cut before the end":      script.Events(begun),
		"error in the stream":     script.Events(begun + `data: {"error":{"message":"the engine died","code":500}}` + "\n\n"),
		"error as the only event": script.Events(`data: {"error":{"message":"overloaded","code":503}}` + "\n\n"),
		"finish error":            script.Events(begun + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}` + "\n\n"),
		"broken JSON in a stream": script.Events(begun + "data: {\"choices\":[{\n\n"),
		"silence":                 script.Say(text).After(time.Hour),
		"slow":                    script.Say(text).After(50 * time.Second),
		"silence in the middle":   script.Stalled(begun, ""),
		"keepalives for ever":     script.Stalled("", ": keepalive\n\n"),
		"words for ever":          script.Stalled(begun, `data: {"choices":[{"index":0,"delta":{"content":" and"}}]}`+"\n\n"),
	}
}

// soakSlips are the faults of models and of what stands between them and the protocol. Those that hold the text answer.
func soakSlips(text string) map[string]script.Reply {
	quoted, _ := json.Marshal(map[string]string{"message": text})
	args, _ := json.Marshal(string(quoted))
	call := func(id string, args string) string {
		return `{"tool_calls":[{` + id + `"function":{"name":"send_message","arguments":` + args + `}}]}`
	}
	long := strings.Repeat("forty kilobytes of notes ", 1600)
	return map[string]script.Reply{
		"prose":                    script.Text(text),
		"text and the same call":   script.Calls(script.Text(text), script.Say(text)),
		"JSON for a stream":        script.Status(200, `{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1","function":{"name":"send_message","arguments":`+string(quoted)+`}}]},"finish_reason":"stop"}]}`),
		"arguments as an object":   script.Events(streamed(call(`"index":0,"id":"1",`, string(quoted)), "stop")),
		"no id and no index":       script.Events(streamed(call("", string(args)), "tool_calls") + "data: [DONE]\n\n"),
		"CRLF and no [DONE]":       script.Events(strings.ReplaceAll(streamed(call(`"index":0,"id":"1",`, string(args)), "stop"), "\n", "\r\n")),
		"call in prose, a result":  script.Text(`{"name":"send_message","arguments":` + string(quoted) + `}` + "\nFUNCTION RETURN: {\"status\": \"OK\"}"),
		"name in other writing":    script.Call("functions.sendMessage", "message", text),
		"extras":                   script.Call("send_message", "inner_thoughts", "x", "message", text, "mood", 1),
		"flag as text":             script.Calls(script.Call("archival_memory_insert", "content", text, "request_heartbeat", "true")),
		"object for text":          script.Call("archival_memory_insert", "content", map[string]any{"of": text}, "request_heartbeat", true),
		"two calls with one id":    script.Calls(script.Reply{Parts: memgpt.Parts{memgpt.Call{ID: "same", Name: "archival_memory_insert", Arguments: `{"content":"note"}`}}}, script.Reply{Parts: memgpt.Parts{memgpt.Call{ID: "same", Name: "send_message", Arguments: string(quoted)}}}),
		"no argument":              script.Call("send_message"),
		"unknown function":         script.Call("send_mail", "x", 1),
		"one right, one wrong":     script.Calls(script.Say(text), script.Call("core_memory_replace", "label", "nowhere", "old_content", "a", "new_content", "b")),
		"empty brace":              script.Call("send_message", "{"),
		"cut by length":            script.Truncated(script.Say(text + strings.Repeat(" and so on", 20))),
		"cut, said tool_calls":     script.Reply{Parts: script.Truncated(script.Say(text)).Parts, Finish: memgpt.FinishCalls, Usage: memgpt.Usage{Input: 3000, Output: 4096}},
		"nothing":                  script.Text(""),
		"white space":              script.Text(" \n\n "),
		"only thoughts":            script.Think("I think that " + text),
		"a filter":                 {Finish: memgpt.FinishFilter},
		"forty kilobytes":          script.Call("archival_memory_insert", "content", long, "request_heartbeat", true),
		"a prompt that was cut":    script.Say(text).Using(memgpt.Usage{Input: 400, Output: 9}),
		"an emoji and a half pair": script.Events(streamed(`{"content":"`+text+` \ud83c\udf77\ud83d"}`, "stop")),
	}
}

func newSoak(t *testing.T, seed uint64) *soak {
	s := &soak{rng: rand.New(rand.NewPCG(seed, 3)), faults: map[string]int{}, dying: -1}
	s.names = slices.Sorted(maps.Keys(soakRefusals("")))
	for name := range maps.Keys(soakSlips("")) {
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	server := script.NewServer(script.ServerConfig{Window: soakWindow, Count: func(body []byte) int { return len(body) * 2 / 7 },
		Config: script.Config{CountOnly: true, Func: s.reply, Summary: s.summary, NewID: func(n int) string { return fmt.Sprint("id_", n) }}})
	net := &pipes{conns: make(chan net.Conn), closed: make(chan struct{}), refuse: func() bool { return s.chance(0.03, "connection refused") }}
	srv := &http.Server{Handler: server}
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(net) })
	t.Cleanup(func() { _ = srv.Close(); serving.Wait() })
	m, err := openai.New(openai.Config{BaseURL: "http://provider.test/v1", Model: "script", Window: soakWindow,
		Client: &http.Client{Transport: &http.Transport{DialContext: net.dial}}, First: time.Minute, Idle: 20 * time.Second, Whole: 5 * time.Minute})
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	s.model, err = retry.New(retry.Config{Model: m, Breaker: retry.NewBreaker(retry.BreakerConfig{Name: "provider.test"})})
	must(t, err)
	s.world = newWorld(t, s.model, options{window: soakWindow})
	s.restart(t)
	return s
}

func (s *soak) chance(p float64, fault string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rng.Float64() >= p {
		return false
	}
	s.faults[fault]++
	return true
}

// restart ends the host, whatever it is doing, and begins a new one as a new process does.
func (s *soak) restart(t *testing.T) {
	t.Helper()
	must(t, s.host.Close(t.Context()))
	now, ids := s.config.Now, s.config.NewID
	s.configure(s.model, options{window: soakWindow})
	s.reconfigure(func() { s.config.Now, s.config.NewID = now, ids })
	var err error
	s.host, err = host.New(host.Config{Store: s.base, Kernel: s.kernel, NewID: ids, Poll: 5 * time.Second, LeaseTTL: 5 * time.Minute,
		Report: func(err error) { t.Error(err) }})
	must(t, err)
	must(t, s.host.Start(t.Context()))
}

var soakAsked = regexp.MustCompile(`question #(\d+)\.`)

// reply answers the newest message once, sometimes after a look into memory, and fails three times of five.
func (s *soak) reply(_ int, req *memgpt.Request) script.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if err := checkV(req, s.count, 1, soakWindow, fmt.Sprintf("question #%d.", s.k)); err != nil {
		s.wrong = append(s.wrong, fmt.Sprintf("message %d, call %d: %v", s.k, s.calls, err))
	}
	text, fault := answerTo(s.k), s.rng.IntN(5) < 3
	answered := false
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Role == memgpt.RoleAssistant {
			said := m.Said()
			answered = answered || said == text || strings.HasPrefix(said, text+" ") || strings.HasPrefix(said, text+"\n")
		}
	}
	name := s.names[s.rng.IntN(len(s.names))]
	slip, isSlip := soakSlips(text)[name]
	look := script.Call("conversation_search", "query", fmt.Sprint("question ", s.rng.IntN(s.k+1)), "request_heartbeat", true)
	switch {
	case s.dying == s.calls:
		return look
	case s.dying >= 0:
		return script.Say(text).After(50 * time.Second)
	case fault && !isSlip:
		s.faults[name]++
		return soakRefusals(text)[name]
	case answered:
		return script.Call(memgpt.FuncYield)
	case fault:
		s.faults[name]++
		return slip
	case s.rng.IntN(4) == 0:
		return look
	}
	return script.Say(text)
}

func (s *soak) summary(*memgpt.Request) script.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.names[s.rng.IntN(len(s.names))]
	if fault, ok := soakRefusals("x")[name]; ok && s.rng.IntN(3) == 0 {
		s.faults[name]++
		return fault
	}
	return script.Text("they asked and answered.\nSearch for: questions")
}

// ask sends the next message and waits for the end of its turn. dying is the number of steps after which the process ends,
// while the model is asked for the next; -1 is never.
func (s *soak) ask(t *testing.T, dying int) memgpt.Turn {
	t.Helper()
	s.mu.Lock()
	s.k++
	s.calls, s.dying = 0, dying
	text := fmt.Sprintf("question #%d. %s", s.k, strings.Repeat("some more words ", s.rng.IntN(30)))
	pause := time.Duration(30+s.rng.IntN(15)) * time.Second // the breaker may be open for 30 s
	s.mu.Unlock()
	turn, err := s.host.Send(t.Context(), host.Message{Agent: s.agent.ID, Thread: s.thread,
		Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, text)})
	must(t, err)
	if dying < 0 {
		record, err := turn.Wait(t.Context())
		must(t, err)
		return record
	}
	time.Sleep(pause)
	s.mu.Lock()
	s.dying = -1
	s.mu.Unlock()
	s.restart(t)
	for {
		record, err := s.base.Turn(t.Context(), "", turn.ID)
		if err == nil && record.State != memgpt.TurnQueued && record.State != memgpt.TurnRunning {
			return record
		}
		time.Sleep(time.Second)
	}
}

// TestBrokenProviderSoak holds a long conversation with a provider that fails at random: no message is lost, none is
// answered twice, no request has an unpaired call, and every turn ends.
func TestBrokenProviderSoak(t *testing.T) {
	turns := 100
	if long() {
		turns = 1000
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSoak(t, 11)
		records := map[int]memgpt.Turn{}
		var longest time.Duration
		most := 0
		for i := range turns {
			start := time.Now()
			dying := -1
			if i%20 == 7 {
				dying = i / 20 % 2
			}
			record := s.ask(t, dying)
			records[s.k] = record
			longest, most = max(longest, time.Since(start)), max(most, s.calls)
			time.Sleep(time.Duration(i%60) * time.Second)
		}
		s.checkSoak(t, records)
		if longest > 2*time.Hour || most > 100 {
			t.Errorf("a turn took %v, and one %d calls", longest, most)
		}
		t.Logf("the longest turn took %v; the most calls of a turn were %d", longest, most)
	})
}

func (s *soak) checkSoak(t *testing.T, records map[int]memgpt.Turn) {
	t.Helper()
	for _, w := range s.wrong[:min(len(s.wrong), 5)] {
		t.Errorf("check V, %d times: %s", len(s.wrong), w)
	}
	asked, answers, other := map[int]int{}, map[int]int{}, map[string]int{}
	open, last := map[string]bool{}, 0
	for _, e := range s.checkState(nil) {
		m := &e.Message
		if len(open) > 0 && m.Role != memgpt.RoleTool {
			t.Errorf("entry %d: calls without a result: %v", e.Seq, open)
		}
		for _, c := range m.Calls() {
			open[c.ID] = true
		}
		if res, ok := m.Result(); ok {
			if !open[res.CallID] {
				t.Errorf("entry %d: a result without a call", e.Seq)
			}
			delete(open, res.CallID)
		}
		if found := soakAsked.FindStringSubmatch(m.Said()); m.Role == memgpt.RoleUser && found != nil {
			last = 0
			_, _ = fmt.Sscan(found[1], &last)
			asked[last]++
		}
		if m.Role == memgpt.RoleAssistant {
			noteSaid(m, answerTo(last), answers, last, other)
		}
	}
	failed, codes := 0, map[memgpt.StopReason]int{}
	for k, record := range records {
		codes[record.Stop]++
		if asked[k] != 1 || answers[k] > 1 {
			t.Errorf("message %d is in the log %d times and was answered %d times: %+v", k, asked[k], answers[k], record)
		}
		if answers[k] == 0 {
			failed++
			if record.Error == "" || record.State != memgpt.TurnFailed {
				t.Errorf("message %d has no answer and no reason: %+v", k, record)
			}
		}
	}
	for said, n := range other {
		t.Errorf("said %d times, and it answers nothing: %.100q", n, said)
	}
	s.tellSoak(t, failed, codes)
}

// noteSaid notes what a message of the model says.
func noteSaid(m *memgpt.Message, want string, answers map[int]int, k int, other map[string]int) {
	for _, p := range m.Parts {
		text, spoken := "", false
		switch p := p.(type) {
		case memgpt.Text:
			text, spoken = p.Text, !p.Thought
		case memgpt.Call:
			text, spoken = p.Spoken()
		}
		if spoken && (text == want || strings.HasPrefix(text, want+" ")) {
			answers[k]++
		} else if spoken {
			other[text]++
		}
	}
}

// tellSoak reports figures, and that the faults did come up.
func (s *soak) tellSoak(t *testing.T, failed int, stops map[memgpt.StopReason]int) {
	total, kinds := 0, 0
	for _, n := range s.faults {
		total += n
		kinds++
	}
	t.Logf("%d messages, %d without an answer (%v); %d faults of %d kinds; factor %.2f", s.k, failed, stops, total, kinds, s.count.Factor("script"))
	if want := len(s.names) + 1; kinds < want*2/3 {
		t.Errorf("only %d of %d kinds of fault came up", kinds, want)
	}
}
