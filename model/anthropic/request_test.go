package anthropic

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memgpt"
)

// sent returns the body of a request, after the server found nothing in it that the API refuses.
func sent(t *testing.T, cfg Config, req *memgpt.Request) (wireRequest, string) {
	t.Helper()
	m, s := serve(t, cfg, answer("end_turn", textBlock(0, "o", "k")))
	if _, err := m.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	return s.requests()[0], s.body(0)
}

// outline renders a request's blocks, a * for each cache breakpoint.
func outline(r *wireRequest) []string {
	var lines []string
	star := func(set bool) string {
		if set {
			return " *"
		}
		return ""
	}
	for _, tool := range r.Tools {
		lines = append(lines, "tool "+tool.Name+star(tool.CacheControl != nil))
	}
	for _, b := range r.System {
		lines = append(lines, fmt.Sprintf("system %q", b.Text)+star(b.CacheControl != nil))
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			text := b.Text
			switch b.Type {
			case "tool_use":
				text = b.ID + " " + b.Name + string(b.Input)
			case "tool_result":
				text = b.ToolUseID
				for _, c := range b.Content {
					text += " " + c.Text
				}
				if b.IsError {
					text += " (error)"
				}
			case "thinking":
				text = b.Thinking
			case "redacted_thinking":
				text = b.Data
			case "image":
				text = fmt.Sprint(b.Source["type"], " ", b.Source["media_type"], " ", b.Source["data"], b.Source["url"])
			}
			lines = append(lines, m.Role+" "+b.Type+" "+text+star(b.CacheControl != nil))
		}
	}
	return lines
}

func wantOutline(t *testing.T, r *wireRequest, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, outline(r)); diff != "" {
		t.Error(diff)
	}
}

const (
	instructions = `system "Instructions about <memory_blocks>." *`
	workspace    = `system "\n<memory_blocks>\n<block>x</block>\n</memory_blocks>" *`
)

// TestBreakpoints holds that tools, instructions, working context and the newest message are cached, and nothing else.
func TestBreakpoints(t *testing.T) {
	req := ask(user(memgpt.Text{Text: "one"}), assistant(memgpt.Text{Text: "two"}), user(memgpt.Text{Text: "three"}), user(memgpt.Text{Text: "four"}))
	got, _ := sent(t, Config{}, req)
	wantOutline(t, &got, "tool f", "tool g *", instructions, workspace, "user text one", "assistant text two", "user text three", "user text four *")
	if got.System[0].Text+got.System[1].Text != req.Messages[0].Said() {
		t.Error("the parts of the system message don't add up to it")
	}

	req.Purpose = memgpt.PurposeSummary
	if got, body := sent(t, Config{}, req); strings.Contains(body, "cache_control") || len(got.System) != 2 {
		t.Errorf("a summary is cached: %s", body)
	}
	if _, body := sent(t, Config{NoCache: true}, ask(user(memgpt.Text{Text: "one"}))); strings.Contains(body, "cache_control") {
		t.Errorf("cached though it is off: %s", body)
	}
}

// TestBreakpointPlaces holds where the newest breakpoint goes when the last message ends in something else than text.
func TestBreakpointPlaces(t *testing.T) {
	call := assistant(memgpt.Call{ID: "a", Name: "f", Arguments: `{}`})
	got, _ := sent(t, Config{}, ask(user(memgpt.Text{Text: "one"}), call, toolResult("a", "done")))
	wantOutline(t, &got, "tool f", "tool g *", instructions, workspace, "user text one", "assistant tool_use a f{}", "user tool_result a done *")

	got, _ = sent(t, Config{}, ask(user(memgpt.Text{Text: "one"}, memgpt.Image{MIME: "image/png", Data: []byte("x")})))
	wantOutline(t, &got, "tool f", "tool g *", instructions, workspace, "user text one", "user image base64 image/png eA==<nil> *")
}

// TestPrefixStays holds that the next request repeats what was cached byte for byte, but for the moved breakpoint.
func TestPrefixStays(t *testing.T) {
	list := []memgpt.Message{user(memgpt.Text{Text: "one <&> 请"}), assistant(memgpt.Call{ID: "a", Name: "f", Arguments: `{"z":1,"a":"<b>"}`}), toolResult("a", "done")}
	_, first := sent(t, Config{}, ask(list...))
	_, second := sent(t, Config{}, ask(append(list, assistant(memgpt.Text{Text: "two"}), user(memgpt.Text{Text: "three"}))...))
	unmark := func(body string) string {
		at := strings.Index(body, `"messages":`)
		return body[at:strings.LastIndex(body[:strings.Index(body[at:], `"model"`)+at], "]")]
	}
	first = strings.ReplaceAll(unmark(first), `"cache_control":{"type":"ephemeral"},`, "")
	second = strings.ReplaceAll(unmark(second), `"cache_control":{"type":"ephemeral"},`, "")
	if !strings.HasPrefix(second, first) {
		t.Errorf("the second request does not go on from the first:\n%s\n%s", first, second)
	}
}

// TestResults holds the order of results, what follows them, and that each call has one.
func TestResults(t *testing.T) {
	calls := assistant(memgpt.Text{Text: "I think"}, memgpt.Call{ID: "a", Name: "f", Arguments: `{"x":1}`}, memgpt.Call{ID: "b", Name: "f", Arguments: "{broken"}, memgpt.Call{ID: "c", Name: "f.g h", Arguments: ""})
	failed := memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: "b", Name: "f", Text: "no", Failed: true}}}
	got, _ := sent(t, Config{NoCache: true}, ask(user(memgpt.Text{Text: "one"}), calls,
		user(memgpt.Text{Text: "an alert"}), toolResult("c", " "), failed, toolResult("a", "yes"), toolResult("gone", "late"), user(memgpt.Text{Text: "next"})))
	wantOutline(t, &got, "tool f", "tool g", strings.TrimSuffix(instructions, " *"), strings.TrimSuffix(workspace, " *"),
		"user text one", "assistant text I think", `assistant tool_use a f{"x":1}`, "assistant tool_use b f{}", "assistant tool_use c f_g_h{}",
		"user tool_result a yes", "user tool_result b no (error)", "user tool_result c",
		"user text an alert", "user text [result of f] late", "user text next")

	got, _ = sent(t, Config{NoCache: true}, ask(assistant(memgpt.Call{ID: "a", Name: "f", Arguments: `{}`})))
	wantOutline(t, &got, "tool f", "tool g", strings.TrimSuffix(instructions, " *"), strings.TrimSuffix(workspace, " *"),
		"user text "+began, "assistant tool_use a f{}", "user tool_result a "+missing+" (error)")
}

// TestThinking holds that thinking goes back as it came, before the calls, and only if it is this provider's.
func TestThinking(t *testing.T) {
	m, s := serve(t, Config{}, answer("tool_use", thinkingBlock(0), []string{started(1, `{"type":"redacted_thinking","data":"Em<>wKAhgB=="}`), stopped(1)},
		textBlock(2, "s", "o"), callBlock(3, "toolu_1", "f", `{"a":`, `"b"}`)))
	req := ask(user(memgpt.Text{Text: "one"}))
	resp, err := m.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	const data = `{"type":"thinking","thinking":"Let me \u003csee\u003e. 想一想","signature":"EqQBCg/+=="}`
	want := memgpt.Parts{memgpt.Reasoning{Text: "Let me <see>. 想一想", Provider: "anthropic", Data: json.RawMessage(data)},
		memgpt.Reasoning{Provider: "anthropic", Data: json.RawMessage(`{"type":"redacted_thinking","data":"Em<>wKAhgB=="}`)},
		memgpt.Text{Text: "so"}, memgpt.Call{ID: "toolu_1", Name: "f", Arguments: `{"a":"b"}`}}
	if diff := cmp.Diff(want, resp.Message.Parts); diff != "" {
		t.Fatal(diff)
	}
	foreign := memgpt.Reasoning{Text: "foreign", Provider: "openai", Data: json.RawMessage(data)}
	unsigned := memgpt.Reasoning{Text: "unsigned", Provider: "anthropic"}
	back := resp.Message
	back.Parts = append(memgpt.Parts{foreign, unsigned}, back.Parts...)
	req.Messages = append(req.Messages, back, toolResult("toolu_1", "ok"))
	if _, err := m.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if body := s.body(1); !strings.Contains(body, data) || strings.Contains(body, "foreign") || strings.Contains(body, "unsigned") {
		t.Errorf("thinking was changed: %s", body)
	}
	wantOutline(t, &s.requests()[1], "tool f", "tool g *", instructions, workspace, "user text one", "assistant thinking Let me <see>. 想一想",
		"assistant redacted_thinking Em<>wKAhgB==", "assistant text so", `assistant tool_use toolu_1 f{"a":"b"}`, "user tool_result toolu_1 ok *")
}

// TestEmpty holds that nothing empty is sent, and what stands where nothing is left.
func TestEmpty(t *testing.T) {
	signed := memgpt.Reasoning{Provider: "anthropic", Data: json.RawMessage(`{"type":"thinking","thinking":"t","signature":"s"}`)}
	got, _ := sent(t, Config{NoCache: true}, ask(user(memgpt.Text{Text: " \n"}), user(memgpt.Text{Text: "one"}), assistant(signed, memgpt.Text{Text: "\t"}), user(memgpt.Text{Text: "two"}),
		assistant(memgpt.Text{Text: "three"}, signed)))
	wantOutline(t, &got, "tool f", "tool g", strings.TrimSuffix(instructions, " *"), strings.TrimSuffix(workspace, " *"),
		"user text one", "user text two", "assistant text three", "user text "+goOn)

	got, _ = sent(t, Config{}, &memgpt.Request{Messages: []memgpt.Message{memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "")}})
	wantOutline(t, &got, "user text "+began+" *")
}

// TestIDs holds that ids are fit and unique, stay where they are, and still lead from result to call.
func TestIDs(t *testing.T) {
	long := strings.Repeat("x", 65)
	var list []memgpt.Message
	for _, id := range []string{"ok_1", "functions.f:0", long, "ok_1", "", "ok_1"} {
		list = append(list, user(memgpt.Text{Text: "go"}), assistant(memgpt.Call{ID: id, Name: "f", Arguments: "{}"}), toolResult(id, "result of "+id))
	}
	got, first := sent(t, Config{}, ask(list...))
	seen := map[string]bool{}
	for i, m := range got.Messages {
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				seen[b.ID] = true
				if result := got.Messages[i+1].Content[0]; result.ToolUseID != b.ID || len(result.Content) == 0 {
					t.Errorf("call %s has no result: %+v", b.ID, result)
				}
			}
		}
	}
	if len(seen) != 6 || !seen["ok_1"] {
		t.Errorf("ids %v", seen)
	}
	if _, again := sent(t, Config{}, ask(list...)); again != first {
		t.Error("the same history gave another request")
	}
}

// TestParts holds what stands for images and other parts.
func TestParts(t *testing.T) {
	png := []byte("\x89PNG\x0D\x0A\x1A\x0A")
	got, _ := sent(t, Config{NoCache: true}, ask(user(memgpt.Image{Data: png}, memgpt.Image{URL: "https://example.com/a.png"}, memgpt.Image{URL: "data:image/gif;base64,AAAA"},
		memgpt.Image{MIME: "image/tiff", Data: []byte("xx")}, memgpt.Image{URL: "data:image/gif;base64,%"}, memgpt.File{Name: "a.pdf", MIME: "application/pdf"},
		memgpt.Unknown{Kind: "hologram"}, memgpt.Quotes{IDs: []string{"m-1"}}, memgpt.Text{Text: "a\x00b\xff"})))
	wantOutline(t, &got, "tool f", "tool g", strings.TrimSuffix(instructions, " *"), strings.TrimSuffix(workspace, " *"),
		"user image base64 image/png iVBORw0KGgo=<nil>", "user image url <nil> <nil>https://example.com/a.png", "user image base64 image/gif AAAA<nil>",
		"user text [image image/tiff, 2 bytes: not shown, its form is not one that this model takes]",
		"user text [image : not shown, its form is not one that this model takes]", "user text [file a.pdf, application/pdf: its contents are not shown]",
		`user text [a part of kind "hologram": not shown]`, "user text ab\uFFFD")
}

// TestFields holds the fields beside messages.
func TestFields(t *testing.T) {
	req := ask(user(memgpt.Text{Text: "one"}))
	got, body := sent(t, Config{APIKey: "k", Extra: map[string]json.RawMessage{"thinking": json.RawMessage(`{"type":"adaptive"}`)}}, req)
	if got.Model != "claude-opus-5-5" || got.MaxTokens != 500 || !got.Stream || got.ToolChoice != nil || got.Thinking["type"] != "adaptive" {
		t.Errorf("%s", body)
	}
	if schema := string(got.Tools[0].InputSchema); schema != string(req.Tools[0].Parameters) {
		t.Errorf("the schema was changed: %s", schema)
	}
	if got.Tools[0].Description != "Does f." || string(got.Tools[1].InputSchema) != emptySchema {
		t.Errorf("tools %+v", got.Tools)
	}
	for _, tt := range []struct {
		model     string
		max, want int
		cfg       Config
	}{
		{"claude-haiku-4-5-20251001", 0, 64_000, Config{}}, {"claude-haiku-4-5", 100_000, 64_000, Config{}}, {"m", 0, careful, Config{}},
		{"m", 7, 7, Config{}}, {"claude-opus-5", 100_000, 2000, Config{MaxOutput: 2000}},
	} {
		req := ask(user(memgpt.Text{Text: "one"}))
		req.Model, req.MaxTokens = tt.model, tt.max
		if got, _ := sent(t, tt.cfg, req); got.MaxTokens != tt.want || got.Model != tt.model {
			t.Errorf("%s with %d: max_tokens %d, want %d", tt.model, tt.max, got.MaxTokens, tt.want)
		}
	}
}

// TestChoice holds how the choice of calling goes out.
func TestChoice(t *testing.T) {
	for _, tt := range []struct {
		choice memgpt.Choice
		extra  string
		want   any
	}{
		{memgpt.ChoiceAuto, "", nil}, {memgpt.ChoiceNone, "", "none"}, {memgpt.ChoiceRequired, "", "any"},
		{memgpt.ChoiceRequired, `{"type":"enabled","budget_tokens":1024}`, nil}, {memgpt.ChoiceRequired, `{"type":"disabled"}`, "any"},
	} {
		cfg := Config{}
		if tt.extra != "" {
			cfg.Extra = map[string]json.RawMessage{"thinking": json.RawMessage(tt.extra)}
		}
		req := ask(user(memgpt.Text{Text: "one"}))
		req.Choice = tt.choice
		body, _ := encode(req, "m", &cfg, form{force: (&Model{cfg: cfg}).forces("m"), thoughts: true})
		var got wireRequest
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if got.ToolChoice["type"] != tt.want {
			t.Errorf("%q with thinking %s: %v, want %v", tt.choice, tt.extra, got.ToolChoice, tt.want)
		}
	}
	for model, want := range map[string]bool{"claude-opus-5-5": false, "claude-opus-5": true, "vendor/claude-fable-5-1": false, "claude-haiku-5-5": true} {
		if got := (&Model{}).forces(model); got != want {
			t.Errorf("%s takes a forced choice: %v", model, got)
		}
	}
	req := ask(user(memgpt.Text{Text: "one"}), assistant(memgpt.Call{ID: "a", Name: "h", Arguments: "{}"}), toolResult("a", "x"))
	req.Tools = nil
	if got, _ := sent(t, Config{}, req); len(got.Tools) != 1 || got.Tools[0].Name != "h" || got.ToolChoice["type"] != "none" {
		t.Errorf("a request without tools: %+v %v", got.Tools, got.ToolChoice)
	}
}

// TestLearns holds that a refusal of a forced choice and of another account's thinking is answered with another form.
func TestLearns(t *testing.T) {
	m, s := serveFunc(t, Config{Model: "claude-next"}, func(_ int, req *wireRequest, w http.ResponseWriter, _ *http.Request) {
		switch {
		case req.ToolChoice["type"] == "any":
			refuse(w, 400, "invalid_request_error", "Thinking may not be enabled when tool_choice forces tool use.")
		case strings.Contains(mustJSON(req.Messages), `"signature":"foreign"`):
			refuse(w, 400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block")
		default:
			write(w, answer("end_turn", textBlock(0, "o", "k")))
		}
	})
	signed := memgpt.Reasoning{Provider: "anthropic", Data: json.RawMessage(`{"type":"thinking","thinking":"t","signature":"foreign"}`)}
	req := ask(user(memgpt.Text{Text: "one"}), assistant(signed, memgpt.Text{Text: "two"}), user(memgpt.Text{Text: "three"}))
	req.Choice = memgpt.ChoiceRequired
	if !m.Capabilities().Forced {
		t.Error("forced choice is denied before it was tried")
	}
	for _, posts := range []int{3, 5} { // the thinking is tried again, the choice is not
		if _, err := m.Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if n := len(s.requests()); n != posts {
			t.Errorf("%d requests, want %d", n, posts)
		}
	}
	if m.Capabilities().Forced {
		t.Error("it is not known that a choice can't be forced")
	}
}

// TestAnyHistory holds that requests stay in the API's rules whatever the history is (check V at the wire).
func TestAnyHistory(t *testing.T) {
	m, _ := serve(t, Config{}, answer("end_turn", textBlock(0, "o", "k")))
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	for range 400 {
		var list []memgpt.Message
		for range rnd.IntN(12) {
			var parts memgpt.Parts
			for range rnd.IntN(4) {
				parts = append(parts, []memgpt.Part{
					memgpt.Text{Text: pick("", " ", "hi", "请\x00"), Thought: rnd.IntN(2) == 0},
					memgpt.Reasoning{Provider: pick("anthropic", "other"), Data: json.RawMessage(pick("", `{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"redacted_thinking","data":"d"}`, `[1]`, `{"x":1}`))},
					memgpt.Call{ID: pick("a", "b", "c:1", ""), Name: pick("f", "g", "", "né"), Arguments: pick("{}", "", "[", `{"a":1}`, "null")},
					memgpt.Result{CallID: pick("a", "b", "c:1", ""), Name: "f", Text: pick("", "r")},
					memgpt.Image{MIME: "image/png", Data: []byte(pick("", "x"))}, memgpt.Quotes{}, memgpt.Unknown{Kind: "k"},
				}[rnd.IntN(7)])
			}
			role := []memgpt.Role{memgpt.RoleUser, memgpt.RoleAssistant, memgpt.RoleTool}[rnd.IntN(3)]
			list = append(list, memgpt.Message{Role: role, Parts: parts})
		}
		req := ask(list...)
		if rnd.IntN(3) == 0 {
			req.Tools = nil
		}
		if _, err := m.Generate(t.Context(), req, nil); err != nil {
			t.Fatalf("%v\n%+v", err, list)
		}
	}
}

// TestConfig holds what New refuses and where it connects.
func TestConfig(t *testing.T) {
	for _, cfg := range []Config{{BaseURL: "ftp://x"}, {BaseURL: "host"}, {Extra: map[string]json.RawMessage{"messages": nil}}, {Extra: map[string]json.RawMessage{"x": json.RawMessage("{")}}} {
		if _, err := New(cfg); memgpt.CodeOf(err) != memgpt.CodeInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	for in, want := range map[string]string{"": "https://api.anthropic.com/", "https://h/v1/": "https://h/", "http://h/p/v1/messages": "http://h/p/", " https://h/p ": "https://h/p/"} {
		if u, err := parseBase(in); err != nil || u.String() != want {
			t.Errorf("%q: %v %v, want %s", in, u, err, want)
		}
	}
}

// TestHeaders holds that the key and the set headers go out and that nothing of the environment does.
func TestHeaders(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Env: from-the-environment")
	m, s := serve(t, Config{APIKey: "k", Headers: map[string]string{"anthropic-version": "2023-06-01"}}, answer("end_turn", textBlock(0, "o", "k")))
	if _, err := m.Generate(t.Context(), ask(user(memgpt.Text{Text: "one"})), nil); err != nil {
		t.Fatal(err)
	}
	h := s.heads[0]
	if h.Get("Authorization") != "Bearer k" || h.Get("X-Api-Key") != "" || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("User-Agent") != "memgpt" || h.Get("Content-Length") == "" {
		t.Errorf("headers %v", h)
	}
	for name, values := range h {
		if strings.Contains(strings.Join(values, " "), "from-the-environment") {
			t.Errorf("%s comes from the environment", name)
		}
	}
}
