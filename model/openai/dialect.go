package openai

import (
	"bytes"
	"encoding/json"

	"memgpt"
)

// providerName is the provider of Reasoning parts that this package makes.
const providerName = "openai"

// bridgeText stands between a result and a user's message where a provider wants an assistant's message there.
const bridgeText = "(noted)"

// backField returns the field in which reasoning goes back with each message that has some; "" where it doesn't.
func (c *Config) backField() string {
	if p := c.profile(); c.ReasoningField == "" && p.ReasoningBack == ReasoningAlways {
		return p.Reasoning
	}
	return c.ReasoningField
}

// roleName returns the role as the provider names it.
func (e *encoder) roleName(role memgpt.Role) string {
	if role == memgpt.RoleSystem && e.sh.developer {
		return "developer"
	}
	return string(role)
}

// choice returns the choice as the provider names it.
func (e *encoder) choice(c memgpt.Choice) string {
	if p := e.cfg.profile(); c == memgpt.ChoiceRequired && p.Required != "" {
		return p.Required
	}
	return string(c)
}

// takes reports whether the provider takes an image in its form.
func (e *encoder) takes(img memgpt.Image) bool {
	return img.Data != nil || !e.sh.imageData || bytes.HasPrefix([]byte(img.URL), []byte("data:"))
}

// bridge writes an assistant's message before a user's message at i that follows a result.
func (e *encoder) bridge(list []memgpt.Message, i int) {
	if e.sh.bridge && i > 0 && list[i].Role == memgpt.RoleUser && list[i-1].Role == memgpt.RoleTool {
		e.raw(`{"role":"assistant","content":`)
		e.str(bridgeText)
		e.raw(`},`)
	}
}

// reasoning sends reasoning back where the configuration or the provider names a field for it.
func (e *encoder) reasoning(parts memgpt.Parts) {
	field := e.cfg.backField()
	switch {
	case !e.sent.thoughts:
	case field == "reasoning_details":
		if data := detailsOf(parts); data != nil {
			e.raw(`,"reasoning_details":`)
			e.b = append(e.b, data...)
		}
	case field != "":
		if text := reasoningText(parts); text != "" {
			e.field(field, text)
		}
	case e.sh.thoughtsBack:
		e.field("reasoning_content", reasoningText(parts))
	}
}

func (e *encoder) field(name, text string) {
	e.raw(`,`)
	e.str(name)
	e.raw(`:`)
	e.str(text)
}

// detailsOf returns OpenRouter's list of reasoning, if the message has one.
func detailsOf(parts memgpt.Parts) json.RawMessage {
	for _, p := range parts {
		if r, ok := p.(memgpt.Reasoning); ok && bytes.HasPrefix(bytes.TrimSpace(r.Data), []byte("[")) && json.Valid(r.Data) {
			return r.Data
		}
	}
	return nil
}

func reasoningText(parts memgpt.Parts) string {
	for _, p := range parts {
		if r, ok := p.(memgpt.Reasoning); ok && r.Text != "" {
			return r.Text
		}
	}
	return ""
}

// skipSignature stands for a signature that is not known: Gemini's own word for calls that another model made
// (ai.google.dev/gemini-api/docs/thought-signatures).
const skipSignature = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// carriedExtras is the form in which a Reasoning part carries what a provider adds to calls, by the id of the call, and to
// the message.
type carriedExtras struct {
	Calls   map[string]json.RawMessage `json:"call_extra,omitempty"`
	Message json.RawMessage            `json:"message_extra,omitempty"`
}

// carried returns what a Reasoning part carries for the provider: its list of reasoning, or what it added to the message
// and its calls.
func (r *reply) carried() json.RawMessage {
	var carried any
	extras := carriedExtras{Calls: map[string]json.RawMessage{}, Message: r.extra}
	for _, c := range r.calls.list {
		if c.extra != nil {
			extras.Calls[c.id] = c.extra
		}
	}
	switch {
	case r.details != nil:
		carried = r.details
	case len(extras.Calls) > 0 || extras.Message != nil:
		carried = extras
	default:
		return nil
	}
	data, err := json.Marshal(carried)
	if err != nil {
		return nil
	}
	return data
}

// extras returns what goes back with a message and its calls. A provider that adds something to calls wants it at the
// first call of each message; a history that came from another model has none, and gets what the provider publishes for
// that case.
func (e *encoder) extras(parts memgpt.Parts) carriedExtras {
	var extras carriedExtras
	if !e.sh.extras {
		return extras
	}
	first := ""
	for _, p := range parts {
		switch p := p.(type) {
		case memgpt.Reasoning:
			var c carriedExtras
			if p.Provider == providerName && !e.sh.plainExtras && json.Unmarshal(p.Data, &c) == nil {
				extras = c
			}
		case memgpt.Call:
			if first == "" {
				first = p.ID
			}
		}
	}
	if e.sh.noMessageExtra {
		extras.Message = nil
	}
	if e.sh.fillExtras && first != "" && extras.Calls[first] == nil {
		calls := map[string]json.RawMessage{first: json.RawMessage(skipSignature)}
		for id, extra := range extras.Calls {
			calls[id] = extra
		}
		extras.Calls = calls
	}
	return extras
}

// extra writes what the provider added.
func (e *encoder) extra(extra json.RawMessage) {
	if extra != nil {
		e.raw(`,"extra_content":`)
		e.b = append(e.b, extra...)
	}
}

// strictable reports whether a schema keeps the rules that providers have for strict functions: each object names all of
// its properties as required and takes no others (OpenAI, "Structured outputs").
func strictable(schema json.RawMessage) bool {
	var top map[string]any
	return json.Unmarshal(schema, &top) == nil && top["type"] == "object" && strictObject(top)
}

func strictObject(s map[string]any) bool {
	for key, value := range s {
		switch key {
		case "type", "description", "enum", "properties", "required", "additionalProperties", "items":
		default:
			return false // other words are taken in part only
		}
		if key == "items" {
			sub, ok := value.(map[string]any)
			if !ok || !strictObject(sub) {
				return false
			}
		}
	}
	if s["type"] != "object" {
		return true
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	if s["additionalProperties"] != false || len(required) != len(properties) {
		return false
	}
	for _, p := range properties {
		if sub, ok := p.(map[string]any); !ok || !strictObject(sub) {
			return false
		}
	}
	return true
}
