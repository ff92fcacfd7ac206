package script

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"memgpt"
)

// responsesProtocol is OpenAI's Responses API (openai 3.57.0: types of requests, items and events).
var responsesProtocol = protocol{path: "/responses", read: readResponses, whole: (*Server).response, stream: (*Server).responseStream,
	kind: "text/event-stream", failure: failure, empty: `{"object":"response","status":"completed","output":[]}`}

type responsesRequest struct {
	Model     string `json:"model"`
	Stream    bool   `json:"stream"`
	MaxTokens int    `json:"max_output_tokens"`
	Choice    any    `json:"tool_choice"`
	Text      struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
	Input []responsesItem `json:"input"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"tools"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    string          `json:"output"`
}

// readResponses reads a body as a request. Items of the assistant that follow each other are one message.
func readResponses(body []byte) (head, *memgpt.Request, error) {
	var w responsesRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return head{}, nil, fmt.Errorf("read the body: %w", err)
	}
	req := &memgpt.Request{Model: w.Model, MaxTokens: w.MaxTokens, Schema: w.Text.Format.Schema}
	if choice, ok := w.Choice.(string); ok && choice != "auto" {
		req.Choice = memgpt.Choice(choice)
	}
	for i := range w.Input {
		role, parts, err := w.Input[i].read()
		if err != nil {
			return head{}, nil, err
		}
		if n := len(req.Messages); role == memgpt.RoleAssistant && n > 0 && req.Messages[n-1].Role == role {
			req.Messages[n-1].Parts = append(req.Messages[n-1].Parts, parts...)
			continue
		}
		req.Messages = append(req.Messages, memgpt.Message{Role: role, Parts: parts})
	}
	for _, t := range w.Tools {
		req.Tools = append(req.Tools, memgpt.ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return head{model: w.Model, stream: w.Stream, maxTokens: w.MaxTokens}, req, nil
}

func (i *responsesItem) read() (memgpt.Role, memgpt.Parts, error) {
	switch i.Type {
	case "function_call":
		return memgpt.RoleAssistant, memgpt.Parts{memgpt.Call{ID: i.CallID, Name: i.Name, Arguments: i.Arguments}}, nil
	case "function_call_output":
		return memgpt.RoleTool, memgpt.Parts{memgpt.Result{CallID: i.CallID, Text: i.Output}}, nil
	case "reasoning":
		return memgpt.RoleAssistant, nil, nil
	case "message":
		parts, err := readResponsesContent(i.Content)
		return memgpt.Role(i.Role), parts, err
	}
	return "", nil, fmt.Errorf("invalid value: %q is no type of an item", i.Type)
}

func readResponsesContent(raw json.RawMessage) (memgpt.Parts, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return memgpt.Parts{memgpt.Text{Text: text}}, nil
	}
	var list []struct {
		Text     string `json:"text"`
		ImageURL string `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read a message's content: %w", err)
	}
	var parts memgpt.Parts
	for _, p := range list {
		if p.ImageURL != "" {
			parts = append(parts, memgpt.Image{URL: p.ImageURL})
		} else {
			parts = append(parts, memgpt.Text{Text: p.Text})
		}
	}
	return parts, nil
}

// response is a whole reply on the wire.
func (s *Server) response(h head, r Reply) any {
	items := make([]any, 0, len(r.Parts))
	for i, p := range r.Parts {
		items = append(items, responseItem(i, p, r.Finish))
	}
	return s.responseOf(h, r, items)
}

func (s *Server) responseOf(h head, r Reply, items []any) map[string]any {
	u := usageOf(h, r)
	whole := map[string]any{"id": "resp_script", "object": "response", "model": s.name(), "status": "completed", "error": nil,
		"incomplete_details": nil, "output": items,
		"usage": map[string]any{"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
			"input_tokens_details":  map[string]any{"cached_tokens": u.Cached},
			"output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}}}
	if why := incomplete(r.Finish); why != "" {
		whole["status"], whole["incomplete_details"] = "incomplete", map[string]any{"reason": why}
	}
	return whole
}

// incomplete is why a reply is not whole; "" is one that is.
func incomplete(f memgpt.Finish) string {
	switch f {
	case memgpt.FinishLength:
		return "max_output_tokens"
	case memgpt.FinishFilter:
		return "content_filter"
	}
	return ""
}

// responseItem is a whole item.
func responseItem(i int, p memgpt.Part, f memgpt.Finish) map[string]any {
	status := "completed"
	if incomplete(f) != "" {
		status = "incomplete"
	}
	id := strconv.Itoa(i)
	switch p := p.(type) {
	case memgpt.Call:
		return map[string]any{"id": "fc_" + id, "type": "function_call", "status": status, "call_id": p.ID, "name": p.Name, "arguments": p.Arguments}
	case memgpt.Reasoning:
		return map[string]any{"id": "rs_" + id, "type": "reasoning", "summary": []any{map[string]any{"type": "summary_text", "text": p.Text}}}
	case memgpt.Text:
		return map[string]any{"id": "msg_" + id, "type": "message", "role": "assistant", "status": status,
			"content": []any{map[string]any{"type": "output_text", "text": p.Text, "annotations": []any{}}}}
	}
	panic(fmt.Sprintf("script: a reply of %T", p))
}

// responseStream writes a reply as server-sent events: each item is added empty, grows by its deltas and comes whole at
// its end, as does the response.
func (s *Server) responseStream(w *writer, h head, r Reply) {
	begun := s.responseOf(h, Reply{}, []any{})
	begun["status"], begun["usage"] = "in_progress", nil
	sequence := 0
	send := func(kind string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = kind, sequence
		sequence++
		w.named(kind, fields)
	}
	send("response.created", map[string]any{"response": begun})
	n := 0
	for i, p := range r.Parts {
		whole := responseItem(i, p, r.Finish)
		kind, text, empty := responsePieces(i, p)
		send("response.output_item.added", map[string]any{"output_index": i, "item": empty})
		for _, piece := range pieces(text, s.Model.cfg.Piece) {
			r.cut(n)
			n++
			send(kind, map[string]any{"output_index": i, "item_id": whole["id"], "content_index": 0, "summary_index": 0, "delta": piece})
		}
		send("response.output_item.done", map[string]any{"output_index": i, "item": whole})
	}
	if r.Err != nil {
		panic(http.ErrAbortHandler)
	}
	last := "response.completed"
	if incomplete(r.Finish) != "" {
		last = "response.incomplete"
	}
	send(last, map[string]any{"response": s.response(h, r)})
}

// responsePieces returns the type of the deltas of an item, what they add up to, and the item before them.
func responsePieces(i int, p memgpt.Part) (kind, text string, empty map[string]any) {
	switch p := p.(type) {
	case memgpt.Call:
		text = p.Arguments
		p.Arguments = ""
		return "response.function_call_arguments.delta", text, responseItem(i, p, "")
	case memgpt.Reasoning:
		return "response.reasoning_summary_text.delta", p.Text, responseItem(i, memgpt.Reasoning{}, "")
	case memgpt.Text:
		return "response.output_text.delta", p.Text, responseItem(i, memgpt.Text{}, "")
	}
	panic(fmt.Sprintf("script: a reply of %T", p))
}
