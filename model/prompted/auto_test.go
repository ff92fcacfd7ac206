package prompted

import (
	"strings"
	"testing"

	"memgpt"
	"memgpt/model/modeltest"
	"memgpt/model/script"
)

const someCall = `{"name":"send_message","arguments":{"message":"hi"}}`

func refuse(text string) script.Reply {
	return script.Fail(memgpt.Errorf(memgpt.CodeModelRequest, "chat completion: status 400: %s", text))
}

// way names how a request asked for calls.
func way(req *memgpt.Request) string {
	switch {
	case len(req.Tools) > 0:
		return "native"
	case req.Schema != nil:
		return "constrained"
	case strings.HasPrefix(req.Messages[0].Said(), "# Functions"):
		return "prompted"
	}
	return "plain"
}

// TestAuto has servers of all kinds, and a verdict that must come of what they say and do.
func TestAuto(t *testing.T) {
	framedCall := `{"thoughts":"t","calls":[` + someCall + `]}`
	for _, c := range []struct {
		name    string
		schema  bool // the model obeys Request.Schema
		choice  memgpt.Choice
		before  string // remembered verdict
		server  func(n int, req *memgpt.Request) script.Reply
		calls   int    // calls of Generate
		ways    string // how the model beneath was asked
		verdict string // its beginning
	}{
		{"makes calls", false, "", "", func(int, *memgpt.Request) script.Reply { return script.Say("hi") }, 2, "native native", "native: it made a call"},
		{"refuses functions", false, "", "", func(_ int, req *memgpt.Request) script.Reply {
			if way(req) == "native" {
				return refuse("m does not support tools")
			}
			return script.Text(someCall)
		}, 2, "native prompted prompted", "prompted: functions were refused: chat completion: status 400: m does not support tools"},
		{"refuses functions without a word of them", true, "", "", func(_ int, req *memgpt.Request) script.Reply {
			if way(req) == "native" {
				return refuse("bad request")
			}
			return script.Text(framedCall)
		}, 2, "native constrained constrained", "constrained: functions were refused"},
		{"refuses everything", false, "", "", func(int, *memgpt.Request) script.Reply { return refuse("no") }, 1, "native prompted", ""},
		{"refuses functions and schemas", true, "", "", func(_ int, req *memgpt.Request) script.Reply {
			if way(req) != "prompted" {
				return refuse("not supported: " + way(req))
			}
			return script.Text(someCall)
		}, 2, "native constrained prompted prompted", "prompted: replies held to a schema were refused"},
		{"writes calls as text", false, "", "", func(int, *memgpt.Request) script.Reply { return script.Text("Hm.\n" + someCall) }, 2, "native prompted", "prompted: it wrote a call as text"},
		{"ignores the schema", true, "", "", func(int, *memgpt.Request) script.Reply { return script.Text("Hm.\n" + someCall) }, 3, "native constrained prompted", "prompted: replies were not held to the schema"},
		{"does not obey", false, memgpt.ChoiceRequired, "", func(int, *memgpt.Request) script.Reply { return script.Text("Hi.") }, 2, "native prompted", "prompted: it made no call where one was required"},
		{"never calls", false, "", "", func(int, *memgpt.Request) script.Reply { return script.Text("Hi.") }, 4, "native native native prompted", "prompted: it answered in prose"},
		{"calls at last", false, "", "", func(n int, _ *memgpt.Request) script.Reply {
			if n < 2 {
				return script.Text("Hi.")
			}
			return script.Say("hi")
		}, 4, "native native native native", "native"},
		{"remembered", false, "", "prompted: of old", func(int, *memgpt.Request) script.Reply { return script.Text(someCall) }, 1, "prompted", "prompted: of old"},
		{"not readable", false, "", "magic", func(int, *memgpt.Request) script.Reply { return script.Say("hi") }, 1, "native", "native"},
		{"native, and then started without templates", false, "", "native: of old", func(_ int, req *memgpt.Request) script.Reply {
			if way(req) == "native" {
				return refuse("tools param requires --jinja flag")
			}
			return script.Text(someCall)
		}, 2, "native prompted prompted", "prompted: functions were refused"},
		{"native, and a request is wrong", false, "", "native: of old", func(int, *memgpt.Request) script.Reply { return refuse("temperature is too high") }, 1, "native", "native: of old"},
		{"a slip of the model", false, "", "native: of old", func(_ int, req *memgpt.Request) script.Reply {
			if way(req) == "native" {
				return refuse("Failed to call a function. Please adjust your prompt. See 'failed_generation'")
			}
			return script.Text(someCall)
		}, 1, "native prompted", "native: of old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := script.New(script.Config{Func: c.server, Capabilities: memgpt.Capabilities{Name: "m", Tools: true, Schema: c.schema}})
			verdicts := &inMemory{verdicts: map[string]string{}}
			if c.before != "" {
				verdicts.Put("m", c.before)
			}
			m, err := New(Config{Model: inner, Verdicts: verdicts})
			if err != nil {
				t.Fatal(err)
			}
			for range c.calls {
				req := modeltest.Request("hi")
				req.Choice = c.choice
				messages := req.Messages
				req.Again = func() []memgpt.Message { return messages }
				resp, err := m.Generate(t.Context(), req, func(memgpt.Delta) {})
				if c.name == "refuses everything" || c.name == "native, and a request is wrong" {
					if memgpt.CodeOf(err) != memgpt.CodeModelRequest || resp != nil {
						t.Fatalf("%+v, %v", resp, err)
					}
				} else if err != nil {
					t.Fatal(err)
				}
			}
			var ways []string
			for _, req := range inner.Requests() {
				ways = append(ways, way(req))
			}
			verdict, _ := verdicts.Get("m")
			if got := strings.Join(ways, " "); got != c.ways || !strings.HasPrefix(verdict, c.verdict) || c.verdict == "" && verdict != "" {
				t.Errorf("asked %q, want %q; verdict %q, want %q", got, c.ways, verdict, c.verdict)
			}
		})
	}
}

// TestVerdictsAreByModel has two models behind one endpoint.
func TestVerdictsAreByModel(t *testing.T) {
	inner := script.New(script.Config{Capabilities: memgpt.Capabilities{Name: "default", Tools: true}, Func: func(_ int, req *memgpt.Request) script.Reply {
		if req.Model == "small" && len(req.Tools) > 0 {
			return refuse("does not support tools")
		}
		if len(req.Tools) == 0 {
			return script.Text(someCall)
		}
		return script.Say("hi")
	}})
	m, err := New(Config{Model: inner})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"small", "large", "small", "large"} {
		req := modeltest.Request("hi")
		req.Model = name
		resp, err := m.Generate(t.Context(), req, nil)
		if err != nil || len(resp.Message.Calls()) != 1 || resp.Message.Calls()[0].Arguments != `{"message":"hi"}` {
			t.Fatalf("%s: %+v, %v", name, resp, err)
		}
	}
	if n := inner.Count(); n != 5 {
		t.Errorf("%d requests, want 5: the refusal is remembered for one model", n)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(Config{}); memgpt.CodeOf(err) != memgpt.CodeInvalid {
		t.Error(err)
	}
	if _, err := New(Config{Model: script.Of(), Mode: "magic"}); memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), "prompted") {
		t.Error(err)
	}
}
