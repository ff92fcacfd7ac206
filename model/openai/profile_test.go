package openai

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"memgpt"
)

// dialectModel returns a model that reaches the server under the address that the provider's users write.
func dialectModel(t *testing.T, s *dialectServer, cfg Config) *Model {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", srv.Listener.Addr().String())
	}
	cfg.Client = &http.Client{Transport: &http.Transport{DialContext: dial}}
	cfg.Model, cfg.APIKey = s.model, "secret-key"
	cfg.Images = s.images != ""
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(); cfg.Client.CloseIdleConnections() })
	return m
}

const twoCalls = `"content":null,"tool_calls":[{"index":0,"id":"aB3dE6gH9","type":"function","extra_content":{"google":{"thought_signature":"sig"}},"function":{"name":"f","arguments":"{\"a\":1}"}},{"index":1,"id":"bB3dE6gH9","type":"function","function":{"name":"g","arguments":"{}"}}]`

// worked is a request as it is after a step with two calls: ids of another provider, results, then a user's word.
func worked() *memgpt.Request {
	req := ask("hi")
	req.MaxTokens = 500
	for _, name := range []string{"f", "g"} {
		req.Tools = append(req.Tools, memgpt.ToolSpec{Name: name, Description: "does", Parameters: jsonRaw(`{"type":"object","properties":{"a":{"type":"integer"}}}`)})
	}
	req.Messages = append(req.Messages,
		memgpt.Message{Role: memgpt.RoleAssistant, Parts: memgpt.Parts{memgpt.Call{ID: "call_f-1", Name: "f", Arguments: `{"a":1}`}, memgpt.Call{ID: "call_g-2", Name: "g", Arguments: `{}`}}},
		memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "call_f-1", Name: "f", Text: "one"}}},
		memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "call_g-2", Name: "g", Text: "two"}}},
		memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "go on"))
	return req
}

// dialectCases are the requests that each dialect must take, and what must come of the answer.
var dialectCases = []struct {
	name  string
	reply func(s *dialectServer) string
	req   func() *memgpt.Request
	check func(t *testing.T, s *dialectServer, m *Model, resp *memgpt.Response)
}{
	{"call with two tools", func(*dialectServer) string { return twoCalls }, worked, func(t *testing.T, _ *dialectServer, _ *Model, resp *memgpt.Response) {
		calls := resp.Message.Calls()
		if len(calls) != 2 || calls[0] != (memgpt.Call{ID: "aB3dE6gH9", Name: "f", Arguments: `{"a":1}`}) || resp.Finish != memgpt.FinishCalls {
			t.Errorf("calls %+v, finish %q", calls, resp.Finish)
		}
	}},
	{"forced choice", func(*dialectServer) string { return twoCalls }, func() *memgpt.Request {
		req := worked()
		req.Choice = memgpt.ChoiceRequired
		return req
	}, func(t *testing.T, _ *dialectServer, _ *Model, resp *memgpt.Response) {
		if len(resp.Message.Calls()) != 2 {
			t.Errorf("calls %+v", resp.Message.Calls())
		}
	}},
	{"reply with reasoning", func(s *dialectServer) string {
		if s.reasons == "" {
			return twoCalls
		}
		return s.reasons + strings.TrimPrefix(twoCalls, `"content":null`)
	}, worked, reasonedOn},
	{"usage", func(*dialectServer) string { return `"content":"so"` }, worked, func(t *testing.T, _ *dialectServer, _ *Model, resp *memgpt.Response) {
		if want := (memgpt.Usage{Calls: 1, Input: 100, Output: 7, Cached: 30}); resp.Usage != want {
			t.Errorf("usage %+v, want %+v", resp.Usage, want)
		}
	}},
	{"image", func(*dialectServer) string { return `"content":"so"` }, func() *memgpt.Request {
		req := worked()
		req.Messages = append(req.Messages, memgpt.Message{Role: memgpt.RoleUser, Parts: memgpt.Parts{
			memgpt.Text{Text: "see"}, memgpt.Image{MIME: "image/png", Data: []byte("PNG")}, memgpt.Image{URL: "https://example.com/a.png"}}})
		return req
	}, func(t *testing.T, _ *dialectServer, _ *Model, resp *memgpt.Response) {
		if resp.Message.Said() != "so" {
			t.Errorf("said %q", resp.Message.Said())
		}
	}},
}

// reasonedOn sends a reply with reasoning back, with the results of its calls.
func reasonedOn(t *testing.T, s *dialectServer, m *Model, resp *memgpt.Response) {
	if _, thinking := textAndThinking(resp); s.reasons != "" && thinking != "because" {
		t.Errorf("reasoning %q", thinking)
	}
	req := worked()
	req.Messages = append(req.Messages, resp.Message)
	for _, c := range resp.Message.Calls() {
		req.Messages = append(req.Messages, memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: c.ID, Name: c.Name, Text: "ok"}}})
	}
	if _, err := m.Generate(t.Context(), req, nil); err != nil {
		t.Errorf("the reply went back and was refused: %v", err)
	}
	body := encode(req, m.cfg.Model, &m.cfg, m.shape(m.cfg.Model))
	if s.back == "details" && !strings.Contains(string(body), `"reasoning_details":[{"type":"reasoning.text","text":"because","signature":"s==","index":0}]`) {
		t.Errorf("the list of reasoning is not as it came: %s", body)
	}
	if s.signed && (!strings.Contains(string(body), `"thought_signature":"sig"`) || strings.Count(string(body), `"extra_content"`) != 2) {
		t.Errorf("the signature is not as it came: %s", body)
	}
}

// TestDialects has every provider's scripted server take every request at the first try, streamed and in one piece.
func TestDialects(t *testing.T) {
	for i := range dialects {
		for _, test := range dialectCases {
			for _, noStream := range []bool{false, true} {
				name := dialects[i].name + "/" + test.name
				if noStream {
					name += " in one piece"
				}
				t.Run(name, func(t *testing.T) {
					s := &dialectServer{dialect: &dialects[i]}
					s.reply = test.reply(s)
					m := dialectModel(t, s, Config{BaseURL: s.base, NoStream: noStream})
					var h heard
					resp, err := m.Generate(t.Context(), test.req(), h.add)
					if err != nil {
						t.Fatal(err)
					}
					h.same(t, resp)
					test.check(t, s, m, resp)
					if s.refusals.Load() != 0 {
						t.Errorf("%d of %d requests were refused", s.refusals.Load(), s.chats.Load())
					}
				})
			}
		}
	}
}

// TestDialectsAreLearned has the same servers under addresses that nobody knows: what they refuse is learned. Their
// refusals show that the rules are enforced; those that have none are named.
func TestDialectsAreLearned(t *testing.T) {
	lenient := []string{"azure", "openrouter", "together", "vllm", "sglang", "llamacpp"}
	for i := range dialects {
		t.Run(dialects[i].name, func(t *testing.T) {
			var refusals int64
			for _, test := range dialectCases {
				s := &dialectServer{dialect: &dialects[i], anywhere: true}
				s.reply = test.reply(s)
				m := dialectModel(t, s, Config{BaseURL: "http://gateway.example/v1"})
				_, err := m.Generate(t.Context(), test.req(), nil)
				if err != nil {
					t.Errorf("%s: %v", test.name, err)
				}
				refusals += s.refusals.Load()
			}
			if got, want := refusals == 0, slices.Contains(lenient, dialects[i].name); got != want {
				t.Errorf("%d refusals of a careful form, want none: %v", refusals, want)
			}
		})
	}
}

// TestProfilesSayWhatIsPublished compares the profiles with the dialects, and has one for each.
func TestProfilesSayWhatIsPublished(t *testing.T) {
	var names []string
	for i := range dialects {
		d := &dialects[i]
		names = append(names, d.name)
		p, ok := ProfileOf(d.name)
		if !ok || p.Source == "" || d.source == "" {
			t.Errorf("%s: profile %v with the source %q", d.name, ok, p.Source)
		}
		if p.Cached != d.cached || p.Forced != d.forced || string(p.Images) != d.images || p.MaxTokens != d.limit {
			t.Errorf("%s: cached %q, forced %v, images %q, bound %q", d.name, p.Cached, p.Forced, p.Images, p.MaxTokens)
		}
		s := &dialectServer{dialect: d}
		m := dialectModel(t, s, Config{BaseURL: d.base})
		if c := m.Capabilities(); m.cfg.profile().Name != d.name || c.Forced != d.forced || !c.Parallel || !c.Tools || c.Images != (d.images != "") {
			t.Errorf("%s: recognised as %q, %+v", d.name, m.cfg.profile().Name, c)
		}
		if n, err := m.Window(t.Context()); n != d.wantWindow {
			t.Errorf("%s: window %d, %v; want %d", d.name, n, err, d.wantWindow)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, Providers()) {
		t.Errorf("dialects of %v, profiles of %v", names, Providers())
	}
}

func TestProviderByName(t *testing.T) {
	for _, test := range []struct{ base, provider, api, want string }{
		{"http://gateway.example/v1", "", "", ""},
		{"http://gateway.example/v1", "mistral", "", "mistral"},
		{"https://eu.api.openai.com/v1", "", "", "openai"},
		{"https://notapi.openai.com.example/v1", "", "", ""},
		{"https://example.com:8000/v1", "", "", ""}, // a port says something on machines near by alone
		{"http://192.168.1.4:8000/v1", "", "", "vllm"},
		{"https://api.openai.com/v1", "azure", "", "azure"},
		{"https://api.openai.com/v1", "", "responses", "openai"},
	} {
		m, err := New(Config{BaseURL: test.base, Provider: test.provider, API: test.api})
		if err != nil || m.cfg.profile().Name != test.want {
			t.Errorf("%+v: %+v, %v", test, m, err)
		}
	}
	for _, cfg := range []Config{{Provider: "nobody"}, {API: "telegraph"}} {
		cfg.BaseURL = "http://localhost/v1"
		if _, err := New(cfg); memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, test := range []struct{ base, want string }{
		{"https://r.openai.azure.com", "https://r.openai.azure.com/openai/deployments/m%20x/chat/completions?api-version=2024-10-21"},
		{"https://r.openai.azure.com/openai/v1/", "https://r.openai.azure.com/openai/v1/chat/completions"},
		{"https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-04-01-preview", "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-04-01-preview"},
		{"https://r.openai.azure.com/openai/deployments/d", "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"},
		{"https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"},
		{"https://api.groq.com", "https://api.groq.com/openai/v1/chat/completions"},
		{"https://gateway.example", "https://gateway.example/v1/chat/completions"},
	} {
		m, err := New(Config{BaseURL: test.base})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.address("m x", "chat/completions"); got != test.want {
			t.Errorf("%s: %s, want %s", test.base, got, test.want)
		}
	}
}

func TestStrictable(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                             true,
		`{"type":"object","properties":{},"additionalProperties":false}`:                                                                                                   true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x"]}}},"required":["a"],"additionalProperties":false}`:                       true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                          false,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                                              false,
		`{"type":"object","properties":{"a":{"type":"string","default":"x"}},"required":["a"],"additionalProperties":false}`:                                               false,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}},"required":["a"],"additionalProperties":false}`:                        false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"null"}}}}},"required":["a"],"additionalProperties":false}`: false,
		`{`: false, ``: false, `[]`: false,
	} {
		if got := strictable(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %v", schema, got)
		}
	}
	req := ask("hi")
	req.Tools = []memgpt.ToolSpec{{Name: "f", Parameters: jsonRaw(`{"type":"object","properties":{},"additionalProperties":false}`)}, {Name: "g"}}
	if got := encoded(req, Config{}, shape{strict: true}); strings.Count(got, `"strict":true`) != 1 {
		t.Errorf("one of two functions is to be strict: %s", got)
	}
}
