package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"memgpt"
)

// head is what a server keeps of a request while its reply is held.
type head struct {
	model     string
	stream    bool
	usage     bool // stream_options.include_usage
	maxTokens int
	prompt    int      // tokens
	fields    []string // names of the fields of the body
}

type wireRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int `json:"max_tokens"`
	MaxCompletionTokens int `json:"max_completion_tokens"`
	ToolChoice          any `json:"tool_choice"`
	Format              struct {
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Messages []wireMessage `json:"messages"`
	Tools    []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type wireMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// chatProtocol is Chat Completions.
var chatProtocol = protocol{path: "/chat/completions", read: readChat, whole: (*Server).completion, stream: (*Server).chatStream,
	kind: "text/event-stream", failure: failure, empty: `{"object":"chat.completion","choices":[]}`}

// fieldsOf returns the names of the fields of a body.
func fieldsOf(body []byte) ([]string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	return slices.Sorted(maps.Keys(fields)), nil
}

// readChat reads a body as a request.
func readChat(body []byte) (head, *memgpt.Request, error) {
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return head{}, nil, fmt.Errorf("read the body: %w", err)
	}
	h := head{model: w.Model, stream: w.Stream, usage: w.StreamOptions.IncludeUsage, maxTokens: max(w.MaxTokens, w.MaxCompletionTokens)}
	req := &memgpt.Request{Model: w.Model, MaxTokens: h.maxTokens, Schema: w.Format.Schema.Schema}
	if choice, ok := w.ToolChoice.(string); ok && choice != "auto" {
		req.Choice = memgpt.Choice(choice)
	}
	for _, m := range w.Messages {
		msg, err := m.read()
		if err != nil {
			return head{}, nil, err
		}
		req.Messages = append(req.Messages, msg)
	}
	for _, t := range w.Tools {
		req.Tools = append(req.Tools, memgpt.ToolSpec{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	return h, req, nil
}

func (m *wireMessage) read() (memgpt.Message, error) {
	msg := memgpt.Message{Role: memgpt.Role(m.Role)}
	parts, err := readContent(m.Content)
	if err != nil {
		return msg, err
	}
	if m.Role == string(memgpt.RoleTool) {
		text := ""
		for _, p := range parts {
			if t, ok := p.(memgpt.Text); ok {
				text += t.Text
			}
		}
		msg.Parts = memgpt.Parts{memgpt.Result{CallID: m.ToolCallID, Text: text}}
		return msg, nil
	}
	for _, c := range m.ToolCalls {
		parts = append(parts, memgpt.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	msg.Parts = parts
	return msg, nil
}

func readContent(raw json.RawMessage) (memgpt.Parts, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return memgpt.Parts{memgpt.Text{Text: text}}, nil
	}
	var list []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read a message's content: %w", err)
	}
	var parts memgpt.Parts
	for _, p := range list {
		if p.Type == "text" {
			parts = append(parts, memgpt.Text{Text: p.Text})
		} else {
			parts = append(parts, memgpt.Image{URL: p.ImageURL.URL})
		}
	}
	return parts, nil
}

// completion is a whole reply on the wire.
func (s *Server) completion(h head, r Reply) any {
	var text, thinking string
	var calls []any
	for _, p := range r.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			text += p.Text
		case memgpt.Reasoning:
			thinking += p.Text
		case memgpt.Call:
			calls = append(calls, map[string]any{"id": p.ID, "type": "function",
				"function": map[string]any{"name": p.Name, "arguments": p.Arguments}})
		}
	}
	msg := map[string]any{"role": "assistant", "content": text}
	if thinking != "" {
		msg["reasoning_content"] = thinking
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	choices := []any{map[string]any{"index": 0, "message": msg, "finish_reason": finishName(r.Finish)}}
	return map[string]any{"id": "chatcmpl-script", "object": "chat.completion", "created": 0, "model": s.name(),
		"choices": choices, "usage": usageBody(h, r)}
}

func isObject(args string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(args), &object) == nil && object != nil
}

// chatStream writes a reply as server-sent events.
func (s *Server) chatStream(w *writer, h head, r Reply) {
	w.event(s.chunk(map[string]any{"role": "assistant", "content": nil}, nil))
	n := 0
	for _, d := range deltas(r.Parts, s.Model.cfg.Piece) {
		r.cut(n)
		n++
		if s.cfg.Keepalive {
			w.write([]byte(": keepalive\n\n"))
		}
		w.event(s.chunk(deltaBody(d), nil))
	}
	r.cut(n)
	if r.Err != nil {
		panic(http.ErrAbortHandler)
	}
	w.event(s.chunk(map[string]any{}, finishName(r.Finish)))
	if h.usage {
		last := s.chunk(nil, nil)
		last["choices"], last["usage"] = []any{}, usageBody(h, r)
		w.event(last)
	}
	w.write([]byte("data: [DONE]\n\n"))
}

func (s *Server) chunk(delta map[string]any, finish any) map[string]any {
	return map[string]any{"id": "chatcmpl-script", "object": "chat.completion.chunk", "created": 0, "model": s.name(),
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
}

func deltaBody(d memgpt.Delta) map[string]any {
	switch {
	case d.Call != nil:
		c := map[string]any{"index": d.Call.Index, "function": map[string]any{"arguments": d.Call.Arguments}}
		if d.Call.Name != "" {
			c["id"], c["type"] = d.Call.ID, "function"
			c["function"] = map[string]any{"name": d.Call.Name, "arguments": d.Call.Arguments}
		}
		return map[string]any{"tool_calls": []any{c}}
	case d.Reasoning != "":
		return map[string]any{"reasoning_content": d.Reasoning}
	}
	return map[string]any{"content": d.Text}
}

func finishName(f memgpt.Finish) any { return string(f) }

// usageOf is the scripted usage; where there is none, the counted prompt and one token a byte of the reply.
func usageOf(h head, r Reply) memgpt.Usage {
	u := r.Usage
	if u == (memgpt.Usage{}) {
		u.Input = h.prompt
		for _, d := range deltas(r.Parts, 1<<20) {
			u.Output += len(d.Text) + len(d.Reasoning)
			if d.Call != nil {
				u.Output += len(d.Call.Name) + len(d.Call.Arguments)
			}
		}
	}
	return u
}

func usageBody(h head, r Reply) map[string]any {
	u := usageOf(h, r)
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.Cached},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
}

func errorBody(kind, text string, more map[string]any) map[string]any {
	e := map[string]any{"message": text, "type": kind}
	for k, v := range more {
		e[k] = v
	}
	return map[string]any{"error": e}
}

func failure(status int, kind, text string, more map[string]any) *Wire {
	return &Wire{Status: status, Body: encode(errorBody(kind, text, more)), Header: map[string]string{"Content-Type": "application/json"}}
}

// failed is the answer that stands for an error.
func failed(p *protocol, err error) *Wire {
	status, kind := http.StatusInternalServerError, "server_error"
	more := map[string]any{}
	switch memgpt.CodeOf(err) {
	case memgpt.CodeModelOverflow:
		status, kind = http.StatusBadRequest, "invalid_request_error"
		more["code"] = "context_length_exceeded"
	case memgpt.CodeModelRequest:
		status, kind = http.StatusBadRequest, "invalid_request_error"
	case memgpt.CodeModelAuth:
		status, kind = http.StatusUnauthorized, "authentication_error"
	case memgpt.CodeModelQuota:
		status, kind = http.StatusPaymentRequired, "insufficient_quota"
	case memgpt.CodeModelLimit:
		status, kind = http.StatusTooManyRequests, "rate_limit_error"
	case memgpt.CodeModelTimeout:
		status, kind = http.StatusRequestTimeout, "timeout"
	case memgpt.CodeModelEmpty:
		return &Wire{Body: p.empty, Header: map[string]string{"Content-Type": "application/json"}}
	}
	f := p.failure(status, kind, err.Error(), more)
	var e *memgpt.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		f.Header["Retry-After"] = strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds())))
	}
	return f
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(encode(v)))
}
