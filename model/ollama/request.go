package ollama

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"memgpt"
	"memgpt/internal/wire"
)

// chatRequest is the body of POST /api/chat (Ollama's api/types.go, ChatRequest).
type chatRequest struct {
	Model     string                     `json:"model"`
	Messages  []message                  `json:"messages"`
	Tools     []tool                     `json:"tools,omitempty"`
	Stream    bool                       `json:"stream"`
	Think     any                        `json:"think,omitempty"`
	KeepAlive any                        `json:"keep_alive,omitempty"`
	Format    json.RawMessage            `json:"format,omitempty"` // the schema that the reply is held to; since 0.5
	Options   map[string]json.RawMessage `json:"options,omitempty"`
	// What doesn't fit is an error instead of being cut or pushed out in silence. Servers before 0.12 don't know these.
	Truncate bool `json:"truncate"`
	Shift    bool `json:"shift"`
}

type message struct {
	Role     string   `json:"role"`
	Content  string   `json:"content"`
	Thinking string   `json:"thinking,omitempty"`
	Images   [][]byte `json:"images,omitempty"`
	Calls    []call   `json:"tool_calls,omitempty"`
	ToolName string   `json:"tool_name,omitempty"`
	CallID   string   `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string   `json:"id,omitempty"`
	Function function `json:"function"`
}

// function is a call's name and arguments, which are an object here.
type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// encode returns the body of a request. The request is not changed, and nothing of it is kept.
func encode(req *memgpt.Request, model string, cfg *Config, shown *Shown) ([]byte, error) {
	body := chatRequest{Model: model, Stream: true, Format: req.Schema, Options: map[string]json.RawMessage{}}
	for name, value := range cfg.Options {
		body.Options[name] = value
	}
	if n := windowOf(req, cfg); n > 0 {
		body.Options["num_ctx"] = number(n)
	}
	if req.MaxTokens > 0 {
		body.Options["num_predict"] = number(req.MaxTokens)
	}
	body.KeepAlive = keepAlive(cfg.KeepAlive)
	if shown.Thinking {
		body.Think = think(cfg.Think)
	}
	if shown.Tools && req.Choice != memgpt.ChoiceNone {
		body.Tools = tools(req.Tools)
	}
	e := encoder{shown: shown}
	for i := range req.Messages {
		e.add(&req.Messages[i])
	}
	body.Messages = e.list
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(body)
	return b.Bytes(), err
}

// windowOf is the context of a request: the agent's window, whatever the server's default is. A model is loaded anew
// where it differs from the last request's, so all requests of an agent name the same.
func windowOf(req *memgpt.Request, cfg *Config) int {
	if req.Window > 0 {
		return req.Window
	}
	return cfg.Window
}

func number(n int) json.RawMessage { return fmt.Appendf(nil, "%d", n) }

// keepAlive is a duration as text, or a number, which the server reads as seconds.
func keepAlive(s string) any {
	if s == "" {
		return nil
	}
	var n json.Number
	if json.Unmarshal([]byte(s), &n) == nil {
		return n
	}
	return s
}

func think(s string) any {
	switch s {
	case "":
		return nil
	case "true", "false":
		return s == "true"
	}
	return s
}

// emptySchema is that of a function without arguments.
const emptySchema = `{"type":"object","properties":{}}`

func tools(specs []memgpt.ToolSpec) []tool {
	var list []tool
	for _, spec := range specs {
		t := tool{Type: "function"}
		t.Function.Name, t.Function.Description, t.Function.Parameters = spec.Name, spec.Description, spec.Parameters
		if len(spec.Parameters) == 0 {
			t.Function.Parameters = json.RawMessage(emptySchema)
		}
		list = append(list, t)
	}
	return list
}

// encoder makes messages.
type encoder struct {
	shown *Shown
	list  []message
	names map[string]string // of functions, by the id of their call
}

func (e *encoder) add(m *memgpt.Message) {
	switch m.Role {
	case memgpt.RoleAssistant:
		e.addReply(m.Parts)
	case memgpt.RoleTool:
		e.addResults(m.Parts)
	default:
		out := message{Role: string(m.Role), Content: e.text(m.Parts)}
		for _, p := range m.Parts {
			if img, ok := p.(memgpt.Image); ok && e.shows(&img) {
				out.Images = append(out.Images, img.Data)
			}
		}
		e.list = append(e.list, out)
	}
}

// addReply takes in what the model said. Thinking goes back where the model thinks and made it itself.
func (e *encoder) addReply(parts memgpt.Parts) {
	out := message{Role: string(memgpt.RoleAssistant), Content: e.text(parts)}
	for _, p := range parts {
		switch p := p.(type) {
		case memgpt.Reasoning:
			if p.Provider == provider && e.shown.Thinking {
				out.Thinking += memgpt.CleanText(p.Text)
			}
		case memgpt.Call:
			out.Calls = append(out.Calls, e.call(&p))
		}
	}
	if !e.shown.Tools { // templates without tools drop calls, or fail
		out.Content = strings.TrimSpace(out.Content + "\n" + callsInWords(out.Calls))
		out.Calls = nil
	}
	e.list = append(e.list, out)
}

func (e *encoder) call(c *memgpt.Call) call {
	args := strings.TrimSpace(memgpt.CleanText(c.Arguments))
	if !strings.HasPrefix(args, "{") || !json.Valid([]byte(args)) {
		args = "{}" // the server takes objects alone
	}
	if e.names == nil {
		e.names = map[string]string{}
	}
	e.names[c.ID] = c.Name
	return call{ID: memgpt.CleanText(c.ID), Function: function{Name: memgpt.CleanText(c.Name), Arguments: json.RawMessage(args)}}
}

func callsInWords(calls []call) string {
	var lines []string
	for _, c := range calls {
		lines = append(lines, c.Function.Name+string(c.Function.Arguments))
	}
	return strings.Join(lines, "\n")
}

// addResults writes one message for each result, with the name of its function: templates show that, not the id.
func (e *encoder) addResults(parts memgpt.Parts) {
	rest := e.text(parts)
	for _, p := range parts {
		r, ok := p.(memgpt.Result)
		if !ok {
			continue
		}
		text := memgpt.CleanText(r.Text)
		if rest != "" {
			text, rest = strings.TrimPrefix(text+"\n"+rest, "\n"), ""
		}
		name := r.Name
		if name == "" {
			name = e.names[r.CallID]
		}
		out := message{Role: string(memgpt.RoleTool), Content: text, ToolName: memgpt.CleanText(name), CallID: memgpt.CleanText(r.CallID)}
		if !e.shown.Tools {
			out = message{Role: string(memgpt.RoleUser), Content: "[result of " + out.ToolName + "] " + text}
		}
		e.list = append(e.list, out)
	}
}

func (e *encoder) shows(img *memgpt.Image) bool { return e.shown.Vision && len(img.Data) > 0 }

// text returns the text of parts, with words for each that is not shown.
func (e *encoder) text(parts memgpt.Parts) string {
	var texts []string
	for _, p := range parts {
		if img, ok := p.(memgpt.Image); ok && e.shows(&img) {
			continue
		}
		if s := memgpt.CleanText(partText(p)); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

// partText returns the words that stand for a part: "" for those that have a place of their own on the wire.
func partText(p memgpt.Part) string { return wire.PartText(p, "this model can't see it") }
