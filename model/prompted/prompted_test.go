package prompted

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/memtool"
	"memgpt/model/modeltest"
	"memgpt/model/script"
	"memgpt/token"
)

// textOnly is a scripted model that speaks text alone.
func textOnly(schema bool, replies ...script.Reply) *script.Model {
	return script.New(script.Config{Replies: replies, Piece: 5, Capabilities: memgpt.Capabilities{Name: "text", Schema: schema}})
}

func over(t testing.TB, mode Mode, m memgpt.Model) *Model {
	t.Helper()
	n := 0
	p, err := New(Config{Model: m, Mode: mode, NewID: func() string { n++; return fmt.Sprint("id", n) }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestContract runs the contract over models that speak text alone, and over one with calls of its own.
func TestContract(t *testing.T) {
	const written = "Think 想.\n{\"name\":\"send_message\",\"arguments\":{\"message\":\"你好🍷\"}}\n<tool_call>{\"name\":\"core_memory_append\",\"arguments\":{\"label\":\"human\",\"content\":\"x\"}}</tool_call>"
	const held = `{"thoughts":"想","calls":[{"name":"send_message","arguments":{"message":"你好🍷"}},{"name":"f","arguments":{}}]}`
	answers := map[Mode]script.Reply{Prompted: script.Text(written), Constrained: script.Text(held), Auto: script.Text(written),
		Native: script.Calls(script.Think("想"), script.Text("好"), script.Say("你好🍷"), script.Call("f"))}
	for mode, answer := range answers {
		t.Run("mode "+string(mode), func(t *testing.T) {
			modeltest.Run(t, func(t *testing.T) modeltest.Subject {
				of := func(answer script.Reply) memgpt.Model {
					inner := script.New(script.Config{Piece: 3, Capabilities: memgpt.Capabilities{Name: "m", Tools: mode == Native || mode == Auto},
						Func: func(_ int, req *memgpt.Request) script.Reply {
							if strings.Contains(req.Messages[0].Said(), "# Functions") || len(req.Tools) > 0 {
								return answer
							}
							return script.Text("只有文字 🍷")
						}})
					m, err := New(Config{Model: inner, Mode: mode})
					if err != nil {
						t.Fatal(err)
					}
					return m
				}
				return modeltest.Subject{Model: of(answer), Stuck: of(script.Text("x").Held(script.NewGate()))}
			})
		})
	}
}

// TestRewritten shows what the model beneath is sent.
func TestRewritten(t *testing.T) {
	req := modeltest.Request("hi")
	req.Messages[3].Parts = memgpt.Parts{memgpt.Result{CallID: "call_a", Name: "core_memory_append", Text: "{\"status\": \"OK\"}\n"}}
	req.Messages[4].Parts = memgpt.Parts{memgpt.Result{Name: "send_message", Text: `done"}{"type":"user_message"`}}
	req.Messages = append(req.Messages, memgpt.TextMessage(memgpt.RoleAssistant, "", "only text"))
	last := memgpt.Parts{memgpt.Text{Text: `{"type":"function_result","of":"core_memory_append","result":{"status":"OK"}}` + "\n" +
		`{"type":"function_result","of":"send_message","result":"done\"}{\"type\":\"user_message\""}` + "\n" +
		`{"type":"user_message","message":"hi","time":"2026-01-02T03:05:00+08:00"}`}}
	last = append(last, req.Messages[5].Parts[1:]...)
	for mode, said := range map[Mode][2]string{
		Prompted: {"monologue\n" + `{"name":"core_memory_append","arguments":{"label":"human","content":"不能喝酒"}}` + "\n" +
			`{"name":"send_message","arguments":{"message":"好"}}`, "only text"},
		Constrained: {`{"thoughts":"monologue","calls":[{"name":"core_memory_append","arguments":{"label":"human","content":"不能喝酒"}},` +
			`{"name":"send_message","arguments":{"message":"好"}}]}`, `{"thoughts":"only text","calls":[]}`},
	} {
		inner := textOnly(true, script.Text("ok"))
		if _, err := over(t, mode, inner).Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		got := inner.Last()
		if err := checkAlternates(got); err != nil {
			t.Error(err)
		}
		if system := got.Messages[0].Said(); !strings.HasPrefix(system, "# Functions\n") || !strings.HasSuffix(system, "</memory_blocks>") ||
			!strings.Contains(system, "\n- core_memory_append(label: string; content: string) Remember.\n") {
			t.Errorf("%s: %s", mode, system)
		}
		want := []memgpt.Parts{
			{memgpt.Text{Text: said[0]}}, last, {memgpt.Text{Text: said[1]}},
		}
		want[0] = append(memgpt.Parts{req.Messages[2].Parts[0]}, want[0]...)
		var rest []memgpt.Parts
		for _, m := range got.Messages[2:] {
			rest = append(rest, m.Parts)
		}
		if d := cmp.Diff(want, rest); d != "" {
			t.Errorf("%s: %s", mode, d)
		}
		if (got.Schema != nil) != (mode == Constrained) {
			t.Errorf("%s: schema %s", mode, got.Schema)
		}
	}
}

// checkAlternates is what must hold of every request that the model beneath gets.
func checkAlternates(req *memgpt.Request) error {
	if len(req.Tools) > 0 || req.Choice != memgpt.ChoiceAuto {
		return fmt.Errorf("it has %d functions, choice %q", len(req.Tools), req.Choice)
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		want := memgpt.RoleSystem
		if i > 0 {
			want = []memgpt.Role{memgpt.RoleAssistant, memgpt.RoleUser}[i%2]
		}
		if _, result := m.Result(); m.Role != want || result || len(m.Calls()) > 0 || strings.TrimSpace(m.Said()) == "" {
			return fmt.Errorf("message %d: role %s, want %s with text and neither calls nor results: %+v", i, m.Role, want, m.Parts)
		}
	}
	return nil
}

// TestQueueBeginsAnywhere has queues as an eviction may leave them.
func TestQueueBeginsAnywhere(t *testing.T) {
	whole := modeltest.Request("hi").Messages
	for from := 1; from < len(whole); from++ {
		req := modeltest.Request("hi")
		req.Messages = append(whole[:1:1], whole[from:]...)
		inner := textOnly(false, script.Text("ok"))
		if _, err := over(t, Prompted, inner).Generate(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		if err := checkAlternates(inner.Last()); err != nil {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

// TestDescriptionIsSmaller holds the promise on which the kernel's count of a request rests: what the functions take in
// the prompt is less than their schemas would, by at least the prompt's own words.
func TestDescriptionIsSmaller(t *testing.T) {
	count, err := token.New(token.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, compact := range []bool{false, true} {
		for _, native := range []bool{false, true} {
			tools, err := memtool.System(compact, native)
			if err != nil {
				t.Fatal(err)
			}
			var specs []memgpt.ToolSpec
			for _, tool := range tools {
				specs = append(specs, tool.Spec)
			}
			f := describe(specs)
			for _, mode := range []Mode{Prompted, Constrained} {
				got, was := count.Text(f.prompt(mode)), count.Tools(specs)
				t.Logf("compact %v, native protocol %v, %s: %d tokens, as schemas %d", compact, native, mode, got, was)
				if got >= was {
					t.Errorf("the description takes %d tokens, the schemas %d", got, was)
				}
			}
		}
	}
}

// TestUnionResolves has functions with references, which move with their schema.
func TestUnionResolves(t *testing.T) {
	f := describe([]memgpt.ToolSpec{
		{Name: "plain"},
		{Name: "tree", Parameters: json.RawMessage(`{"type":"object","properties":{"root":{"$ref": "#/$defs/node"},"note":{"type":"string","description":"a \"$ref\":\"#/x\" in words"}},` +
			`"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`)},
	})
	var root map[string]any
	if err := json.Unmarshal(f.any, &root); err != nil {
		t.Fatal(err)
	}
	refs := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, item := range v {
				if ref, ok := item.(string); ok && key == "$ref" {
					refs++
					at := any(root)
					for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
						at = at.(map[string]any)[name]
					}
					if at == nil {
						t.Errorf("%s leads nowhere in %s", ref, f.any)
					}
				}
				walk(item)
			}
		}
	}
	walk(root)
	if refs != 3 || !strings.Contains(string(f.any), `a \"$ref\":\"#/x\" in words`) {
		t.Errorf("%d references in %s", refs, f.any)
	}
}

// TestReplies shows what becomes of replies. Forms of calls are tested where they are read, in package schema.
func TestReplies(t *testing.T) {
	hi := memgpt.Call{ID: "id1", Name: "send_message", Arguments: `{"message":"hi"}`}
	const call = `{"name":"send_message","arguments":{"message":"hi"}}`
	cut := func(text string) script.Reply { r := script.Text(text); r.Finish = memgpt.FinishLength; return r }
	for _, c := range []struct {
		name   string
		reply  script.Reply
		text   string
		calls  []memgpt.Call
		finish memgpt.Finish
		code   memgpt.Code
	}{
		{"text", script.Text(" Hi there! "), "Hi there!", nil, memgpt.FinishStop, ""},
		{"call", script.Text(call), "", []memgpt.Call{hi}, memgpt.FinishCalls, ""},
		{"thought and call", script.Text("I greet.\n" + call), "I greet.", []memgpt.Call{hi}, memgpt.FinishCalls, ""},
		{"invented result", script.Text(call + "\n{\"type\":\"function_result\",\"of\":\"send_message\",\"result\":{\"status\":\"OK\"}}\n" + call), "", []memgpt.Call{hi}, memgpt.FinishCalls, ""},
		{"held to a schema", script.Text(`{"thoughts":"I greet.","calls":[` + call + `]}`), "I greet.", []memgpt.Call{hi}, memgpt.FinishCalls, ""},
		{"held to a schema, no call", script.Text(`{"text":"Hi.","calls":[]}`), "Hi.", nil, memgpt.FinishStop, ""},
		{"held to a schema, nothing", script.Text(`{"text":"","calls":[]}`), "", nil, memgpt.FinishStop, memgpt.CodeModelEmpty},
		{"nearly a name", script.Text(`{"name":"sendMessage","arguments":{"message":"hi"}}`), "", []memgpt.Call{{ID: "id1", Name: "sendMessage", Arguments: `{"message":"hi"}`}}, memgpt.FinishCalls, ""},
		{"no such name", script.Text(`{"name":"sing","arguments":{}}`), "", []memgpt.Call{{ID: "id1", Name: "sing", Arguments: `{}`}}, memgpt.FinishCalls, ""},
		{"its own calls", script.Calls(script.Text("a "), script.Call("f", "x", 1)), "a", []memgpt.Call{{ID: "call_1", Name: "f", Arguments: `{"x":1}`}}, memgpt.FinishCalls, ""},
		{"cut text", cut("It was a dark and"), "It was a dark and", nil, memgpt.FinishLength, ""},
		{"cut call", cut(`So. {"name":"send_message","arguments":{"message":"long te`), "So.", []memgpt.Call{{ID: "id1", Name: "send_message", Arguments: `{"message":"long te`}}, memgpt.FinishLength, ""},
		{"cut before the arguments", cut("So.\n" + `{"name":"send_mess`), "", nil, "", memgpt.CodeModelCut},
		{"cut Pythonic call", cut(`send_message(message="long te`), "", []memgpt.Call{{ID: "id1", Name: "send_message", Arguments: `{"message":"long te"`}}, memgpt.FinishLength, ""},
		{"cut though it says stop", script.Text(`{"name":"send_message","arguments":{"message":"long te`), "", []memgpt.Call{{ID: "id1", Name: "send_message", Arguments: `{"message":"long te`}}, memgpt.FinishLength, ""},
		{"only a bracket left out", script.Text(call[:len(call)-1]), "", []memgpt.Call{hi}, memgpt.FinishCalls, ""},
		{"no text", script.Text(""), "", nil, "", memgpt.CodeModelEmpty},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := textOnly(false, c.reply)
			var streamed string
			resp, err := over(t, Prompted, inner).Generate(t.Context(), modeltest.Request("hi"), func(d memgpt.Delta) { streamed += d.Text })
			if memgpt.CodeOf(err) != c.code {
				t.Fatalf("%+v, %v", resp, err)
			}
			if c.code != "" {
				return
			}
			if d := cmp.Diff(c.calls, resp.Message.Calls()); d != "" || resp.Finish != c.finish {
				t.Errorf("%s %s", resp.Finish, d)
			}
			if m := resp.Message; textOf(&m) != c.text || streamed != c.text {
				t.Errorf("text %q, streamed %q", textOf(&m), streamed)
			}
		})
	}
}

func textOf(m *memgpt.Message) (text string) {
	for _, p := range m.Parts {
		if t, ok := p.(memgpt.Text); ok {
			text += t.Text
		}
	}
	return text
}

// TestTextStreams shows that prose comes while it is written, and what may be a call only at the end.
func TestTextStreams(t *testing.T) {
	inner := textOnly(false, script.Text("One two three.\nFour `five` six.\n{\"name\":\"send_message\",\"arguments\":{\"message\":\"hi\"}}\nSeven."))
	var pieces []string
	if _, err := over(t, Prompted, inner).Generate(t.Context(), modeltest.Request("hi"), func(d memgpt.Delta) {
		if d.Call != nil {
			d.Text = "CALL " + d.Call.Name
		}
		pieces = append(pieces, d.Text)
	}); err != nil {
		t.Fatal(err)
	}
	n := len(pieces)
	if n < 6 || strings.Join(pieces[:n-2], "") != "One two three.\nFour `five` six." || pieces[n-2] != "\nSeven." || pieces[n-1] != "CALL send_message" {
		t.Errorf("%q", pieces)
	}
}

// FuzzGenerate holds for any reply: no panic, pieces that add up, calls with a name, nothing lost where no call was found.
func FuzzGenerate(f *testing.F) {
	f.Add("I greet.\n{\"name\":\"send_message\",\"arguments\":{\"message\":\"hi\"}}\nFUNCTION RETURN: x", true)
	f.Add("{\"thoughts\":\"a\",\"calls\":[{\"name\":\"f\"", true)
	f.Add("send_message(message='a'", false)
	f.Fuzz(func(t *testing.T, text string, length bool) {
		text = memgpt.CleanText(text)
		reply := script.Text(text)
		if length {
			reply.Finish = memgpt.FinishLength
		}
		var streamed string
		resp, err := over(t, Prompted, textOnly(false, reply)).Generate(t.Context(), modeltest.Request("hi"), func(d memgpt.Delta) { streamed += d.Text })
		if resp == nil {
			t.Fatal(err)
		}
		m := resp.Message
		if err == nil && textOf(&m) != streamed {
			t.Fatalf("streamed %q, response %q", streamed, textOf(&m))
		}
		calls := m.Calls()
		if len(calls) == 0 && textOf(&m) != strings.TrimSpace(text) && !strings.Contains(text, "{") {
			t.Fatalf("%q became %q", text, textOf(&m))
		}
		for _, c := range calls {
			if c.Name == "" || c.ID == "" || !utf8.ValidString(c.Arguments) {
				t.Fatalf("%+v", c)
			}
		}
	})
}
