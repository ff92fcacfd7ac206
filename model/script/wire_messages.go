package script

import (
	"encoding/json"
	"fmt"
	"net/http"

	"memgpt"
)

// messagesProtocol is Anthropic's Messages API (its Go SDK v2.15.0: types of requests, blocks and events).
var messagesProtocol = protocol{path: "/messages", read: readMessages, whole: (*Server).message, stream: (*Server).messageStream,
	kind: "text/event-stream", failure: messagesFailure, empty: `{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":0}}`}

type messagesRequest struct {
	Model     string          `json:"model"`
	Stream    bool            `json:"stream"`
	MaxTokens int             `json:"max_tokens"`
	System    []messagesBlock `json:"system"`
	Choice    struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	Messages []struct {
		Role    string          `json:"role"`
		Content []messagesBlock `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"input_schema"`
	} `json:"tools"`
}

type messagesBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   []messagesBlock `json:"content"`
	IsError   bool            `json:"is_error"`
}

// readMessages reads a body as a request. Results in a user's message are messages of their own, before what else it says.
func readMessages(body []byte) (head, *memgpt.Request, error) {
	var w messagesRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return head{}, nil, fmt.Errorf("read the body: %w", err)
	}
	req := &memgpt.Request{Model: w.Model, MaxTokens: w.MaxTokens}
	switch w.Choice.Type {
	case "any":
		req.Choice = memgpt.ChoiceRequired
	case "none":
		req.Choice = memgpt.ChoiceNone
	}
	if len(w.System) > 0 {
		text := ""
		for _, b := range w.System {
			text += b.Text
		}
		req.Messages = append(req.Messages, memgpt.Message{Role: memgpt.RoleSystem, Parts: memgpt.Parts{memgpt.Text{Text: text}}})
	}
	for _, m := range w.Messages {
		req.Messages = append(req.Messages, readBlocks(memgpt.Role(m.Role), m.Content)...)
	}
	for _, t := range w.Tools {
		req.Tools = append(req.Tools, memgpt.ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return head{model: w.Model, stream: w.Stream, maxTokens: w.MaxTokens}, req, nil
}

func readBlocks(role memgpt.Role, blocks []messagesBlock) (list []memgpt.Message) {
	var parts memgpt.Parts
	for _, b := range blocks {
		switch b.Type {
		case "text":
			parts = append(parts, memgpt.Text{Text: b.Text})
		case "image":
			parts = append(parts, memgpt.Image{})
		case "tool_use":
			parts = append(parts, memgpt.Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		case "tool_result":
			text := ""
			for _, c := range b.Content {
				text += c.Text
			}
			list = append(list, memgpt.Message{Role: memgpt.RoleTool, Parts: memgpt.Parts{memgpt.Result{CallID: b.ToolUseID, Text: text, Failed: b.IsError}}})
		}
	}
	if len(parts) > 0 {
		list = append(list, memgpt.Message{Role: role, Parts: parts})
	}
	return list
}

func messagesFailure(status int, kind, text string, more map[string]any) *Wire {
	inner := errorBody(kind, text, more)["error"]
	return &Wire{Status: status, Body: encode(map[string]any{"type": "error", "error": inner}), Header: map[string]string{"Content-Type": "application/json"}}
}

// message is a whole reply on the wire. Arguments of a call are an object here.
func (s *Server) message(h head, r Reply) any {
	blocks := make([]any, 0, len(r.Parts))
	for _, p := range r.Parts {
		block, text := messageBlock(p)
		switch p := p.(type) {
		case memgpt.Call:
			if !isObject(p.Arguments) {
				panic(fmt.Sprintf("script: a message in one piece can't have the arguments %q", p.Arguments))
			}
			block["input"] = json.RawMessage(p.Arguments)
		case memgpt.Text:
			block["text"] = text
		case memgpt.Reasoning:
			block["thinking"], block["signature"] = text, "script"
		}
		blocks = append(blocks, block)
	}
	whole := s.messageOf(h, r)
	whole["content"], whole["stop_reason"] = blocks, stopReason(r.Finish)
	return whole
}

// messageOf is a message before its content.
func (s *Server) messageOf(h head, r Reply) map[string]any {
	u := usageOf(h, r)
	return map[string]any{"id": "msg_script", "type": "message", "role": "assistant", "model": s.name(), "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": u.Input - u.Cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": u.Cached, "output_tokens": u.Output,
			"output_tokens_details": map[string]any{"thinking_tokens": u.Reasoning}}}
}

func stopReason(f memgpt.Finish) string {
	switch f {
	case memgpt.FinishCalls:
		return "tool_use"
	case memgpt.FinishLength:
		return "max_tokens"
	case memgpt.FinishFilter:
		return "refusal"
	}
	return "end_turn"
}

// messageBlock is an empty block, and the text that its deltas add up to.
func messageBlock(p memgpt.Part) (block map[string]any, text string) {
	switch p := p.(type) {
	case memgpt.Call:
		return map[string]any{"type": "tool_use", "id": p.ID, "name": p.Name, "input": map[string]any{}}, p.Arguments
	case memgpt.Reasoning:
		return map[string]any{"type": "thinking", "thinking": "", "signature": ""}, p.Text
	case memgpt.Text:
		return map[string]any{"type": "text", "text": ""}, p.Text
	}
	panic(fmt.Sprintf("script: a reply of %T", p))
}

// messageDeltas are the types of deltas by that of their block, and the field that holds the piece.
var messageDeltas = map[any][2]string{"tool_use": {"input_json_delta", "partial_json"}, "thinking": {"thinking_delta", "thinking"}, "text": {"text_delta", "text"}}

// messageStream writes a reply as named events.
func (s *Server) messageStream(w *writer, h head, r Reply) {
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		w.named(kind, fields)
	}
	whole := s.messageOf(h, r)
	send("message_start", map[string]any{"message": whole})
	send("ping", map[string]any{})
	n := 0
	for i, p := range r.Parts {
		block, text := messageBlock(p)
		if block["type"] == "tool_use" && text == "{}" {
			text = "" // calls without arguments stream none
		}
		send("content_block_start", map[string]any{"index": i, "content_block": block})
		names := messageDeltas[block["type"]]
		for _, piece := range pieces(text, s.Model.cfg.Piece) {
			r.cut(n)
			n++
			send("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": names[0], names[1]: piece}})
		}
		if block["type"] == "thinking" {
			send("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": "signature_delta", "signature": "script"}})
		}
		send("content_block_stop", map[string]any{"index": i})
	}
	if r.Err != nil {
		panic(http.ErrAbortHandler)
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stopReason(r.Finish), "stop_sequence": nil}, "usage": whole["usage"]})
	send("message_stop", map[string]any{})
}
