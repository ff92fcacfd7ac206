package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"memgpt"
)

// minOutput is the least bound of a reply that the Responses API takes (OpenAI's reference of
// max_output_tokens).
const minOutput = 16

// encodeResponses returns the body of a request in the form of the Responses API. Nothing is stored at the provider:
// what it reasoned comes encrypted and goes back in its place.
func encodeResponses(req *memgpt.Request, model string, cfg *Config, sh shape) []byte {
	e := newEncoder(req, cfg, sh)
	e.raw(`{`)
	e.responsesInput(req, model)
	if e.sent.maxTokens {
		e.raw(`,"max_output_tokens":` + strconv.Itoa(max(req.MaxTokens, minOutput)))
	}
	extra := cfg.Extra
	if len(req.Schema) > 0 {
		extra = withFormat(extra, req.Schema)
	}
	if cfg.Extra["store"] == nil {
		e.raw(`,"store":false`)
	}
	if e.sent.encrypted && cfg.Extra["include"] == nil {
		e.raw(`,"include":["reasoning.encrypted_content"]`)
	}
	if e.sent.stream {
		e.raw(`,"stream":true`)
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		e.raw(`,`)
		e.str(name)
		e.raw(`:`)
		e.b = append(e.b, extra[name]...)
	}
	e.raw(`}`)
	return e.b
}

// withFormat returns further fields with the wish for a reply that fits a JSON schema, as schema has it in a chat (openai
// 3.57.0, ResponseTextConfig). It stands in the field "text", of which the configuration may set another part.
func withFormat(extra map[string]json.RawMessage, schema json.RawMessage) map[string]json.RawMessage {
	text := map[string]json.RawMessage{}
	_ = json.Unmarshal(extra["text"], &text)
	text["format"] = slices.Concat([]byte(`{"type":"json_schema","name":"reply","strict":false,"schema":`), schema, []byte(`}`))
	all := maps.Clone(extra)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	if raw, err := json.Marshal(text); err == nil {
		all["text"] = raw
	}
	return all
}

// responsesInput writes the fields that make up the prompt.
func (e *encoder) responsesInput(req *memgpt.Request, model string) {
	if model != "" {
		e.raw(`"model":`)
		e.str(model)
		e.raw(`,`)
	}
	e.raw(`"input":[`)
	for i := range req.Messages {
		e.inputItems(&req.Messages[i])
	}
	e.b = append(trimComma(e.b), ']')
	e.responsesTools(req)
}

// responsesTools writes functions. Strict is named for each, since it is the default of this API.
func (e *encoder) responsesTools(req *memgpt.Request) {
	if !e.sent.tools {
		return
	}
	e.raw(`,"tools":[`)
	for _, t := range req.Tools {
		e.raw(`{"type":"function","name":`)
		e.str(t.Name)
		if t.Description != "" {
			e.raw(`,"description":`)
			e.str(t.Description)
		}
		e.parameters(t.Parameters)
		e.raw(`,"strict":` + strconv.FormatBool(e.sent.strict && strictable(t.Parameters)) + `},`)
	}
	e.b = append(trimComma(e.b), ']')
	if e.sent.choice {
		e.raw(`,"tool_choice":`)
		e.str(e.choice(req.Choice))
	}
}

// inputItems writes the items of a message, each with a comma behind.
func (e *encoder) inputItems(m *memgpt.Message) {
	switch m.Role {
	case memgpt.RoleTool:
		e.results(m.Parts, `{"type":"function_call_output","call_id":`, `,"output":`)
	case memgpt.RoleAssistant:
		e.replyItems(m.Parts)
	default:
		e.raw(`{"type":"message","role":`)
		e.str(e.roleName(m.Role))
		e.raw(`,"content":`)
		if e.sent.images && m.Role == memgpt.RoleUser && hasImage(m.Parts) {
			e.inputParts(m.Parts)
		} else {
			e.content(textOf(m.Parts), false)
		}
		e.raw(`},`)
	}
}

// replyItems writes the items of an assistant's message in their order. A reasoning item goes back unchanged, and only
// with an item of the message behind it: the API refuses one without what it led to.
func (e *encoder) replyItems(parts memgpt.Parts) {
	if countCalls(parts) > 0 {
		e.ids.begin()
	}
	var pending []json.RawMessage
	for _, p := range parts {
		item := reasoningItem(p)
		if item != nil && e.sent.thoughts {
			pending = append(pending, item)
			continue
		}
		call, isCall := p.(memgpt.Call)
		text := partText(p)
		if !isCall && text == "" {
			continue
		}
		for _, item := range pending {
			e.b = append(append(e.b, item...), ',')
		}
		pending = nil
		if isCall {
			e.callItem(call)
		} else {
			e.raw(`{"type":"message","role":"assistant","content":`)
			e.str(text)
			e.raw(`},`)
		}
	}
}

func (e *encoder) callItem(c memgpt.Call) {
	e.raw(`{"type":"function_call","call_id":`)
	e.str(e.ids.call(c.ID))
	e.raw(`,"name":`)
	e.str(c.Name)
	e.raw(`,"arguments":`)
	e.arguments(c.Arguments)
	e.raw(`},`)
}

// reasoningItem returns the item that a part carries, if it is one of this API.
func reasoningItem(p memgpt.Part) json.RawMessage {
	r, ok := p.(memgpt.Reasoning)
	if !ok || r.Provider != providerName || !bytes.HasPrefix(bytes.TrimSpace(r.Data), []byte("{")) {
		return nil
	}
	var item struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(r.Data, &item) != nil || item.Type != itemReasoning {
		return nil
	}
	return r.Data
}

// inputParts writes content as a list, with images.
func (e *encoder) inputParts(parts memgpt.Parts) {
	e.raw(`[`)
	for _, p := range parts {
		if img, ok := p.(memgpt.Image); ok && e.takes(img) {
			e.raw(`{"type":"input_image","image_url":`)
			e.image(img)
			e.raw(`},`)
		} else if s := partText(p); s != "" {
			e.raw(`{"type":"input_text","text":`)
			e.str(s)
			e.raw(`},`)
		}
	}
	e.b = append(trimComma(e.b), ']')
}
