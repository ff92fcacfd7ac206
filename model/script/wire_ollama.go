package script

import (
	"encoding/json"
	"fmt"
	"net/http"

	"memgpt"
)

// ollamaProtocol is Ollama's own protocol (its api/types.go; ollama 0.6.3 on PyPI).
var ollamaProtocol = protocol{path: "/api/chat", read: readOllama, whole: (*Server).ollamaWhole, stream: (*Server).ollamaStream,
	kind: "application/x-ndjson", failure: ollamaFailure, empty: `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}`}

type ollamaRequest struct {
	Model    string          `json:"model"`
	Stream   *bool           `json:"stream"`
	Format   json.RawMessage `json:"format"`
	Options  ollamaOptions   `json:"options"`
	Messages []struct {
		Role    string   `json:"role"`
		Content string   `json:"content"`
		Images  [][]byte `json:"images"`
		CallID  string   `json:"tool_call_id"`
		Name    string   `json:"tool_name"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type ollamaOptions struct {
	Window    int `json:"num_ctx"`
	MaxTokens int `json:"num_predict"`
}

// readOllama reads a body as a request.
func readOllama(body []byte) (head, *memgpt.Request, error) {
	var w ollamaRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return head{}, nil, fmt.Errorf("read the body: %w", err)
	}
	req := &memgpt.Request{Model: w.Model, MaxTokens: w.Options.MaxTokens, Window: w.Options.Window, Schema: w.Format}
	for _, m := range w.Messages {
		parts := memgpt.Parts{memgpt.Text{Text: m.Content}}
		switch {
		case m.Role == string(memgpt.RoleTool):
			parts = memgpt.Parts{memgpt.Result{CallID: m.CallID, Name: m.Name, Text: m.Content}}
		case m.Content == "":
			parts = nil
		}
		for _, img := range m.Images {
			parts = append(parts, memgpt.Image{Data: img})
		}
		for _, c := range m.Calls {
			parts = append(parts, memgpt.Call{ID: c.ID, Name: c.Function.Name, Arguments: string(c.Function.Arguments)})
		}
		req.Messages = append(req.Messages, memgpt.Message{Role: memgpt.Role(m.Role), Parts: parts})
	}
	for _, t := range w.Tools {
		req.Tools = append(req.Tools, memgpt.ToolSpec{Name: t.Function.Name, Description: t.Function.Description, Parameters: t.Function.Parameters})
	}
	return head{model: w.Model, stream: w.Stream == nil || *w.Stream, maxTokens: w.Options.MaxTokens}, req, nil
}

func ollamaFailure(status int, _, text string, _ map[string]any) *Wire {
	return &Wire{Status: status, Body: encode(map[string]any{"error": text}), Header: map[string]string{"Content-Type": "application/json"}}
}

// ollamaMessage is the message of some parts. Arguments of a call are an object here, and it comes whole.
func ollamaMessage(parts memgpt.Parts) map[string]any {
	text, thinking := "", ""
	msg := map[string]any{"role": "assistant"}
	var calls []any
	for _, p := range parts {
		switch p := p.(type) {
		case memgpt.Text:
			text += p.Text
		case memgpt.Reasoning:
			thinking += p.Text
		case memgpt.Call:
			if !isObject(p.Arguments) {
				panic(fmt.Sprintf("script: this protocol can't have the arguments %q", p.Arguments))
			}
			c := map[string]any{"function": map[string]any{"name": p.Name, "arguments": json.RawMessage(p.Arguments)}}
			if p.ID != "" {
				c["id"] = p.ID
			}
			calls = append(calls, c)
		}
	}
	msg["content"] = text
	if thinking != "" {
		msg["thinking"] = thinking
	}
	if calls != nil {
		msg["tool_calls"] = calls
	}
	return msg
}

func (s *Server) ollamaLine(msg map[string]any) map[string]any {
	return map[string]any{"model": s.name(), "created_at": "2026-11-30T12:00:00Z", "message": msg, "done": false}
}

func (s *Server) ollamaEnd(h head, r Reply, msg map[string]any) map[string]any {
	u, reason := usageOf(h, r), "stop"
	if r.Finish == memgpt.FinishLength {
		reason = "length"
	}
	line := s.ollamaLine(msg)
	line["done"], line["done_reason"] = true, reason
	line["prompt_eval_count"], line["prompt_eval_cached_count"], line["eval_count"] = u.Input, u.Cached, u.Output
	return line
}

// ollamaWhole is a whole reply on the wire.
func (s *Server) ollamaWhole(h head, r Reply) any { return s.ollamaEnd(h, r, ollamaMessage(r.Parts)) }

// ollamaStream writes a reply as lines.
func (s *Server) ollamaStream(w *writer, h head, r Reply) {
	n := 0
	send := func(p memgpt.Part) {
		r.cut(n)
		n++
		w.line(s.ollamaLine(ollamaMessage(memgpt.Parts{p})))
	}
	for _, p := range r.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			for _, piece := range pieces(p.Text, s.Model.cfg.Piece) {
				send(memgpt.Text{Text: piece})
			}
		case memgpt.Reasoning:
			for _, piece := range pieces(p.Text, s.Model.cfg.Piece) {
				send(memgpt.Reasoning{Text: piece})
			}
		default:
			send(p)
		}
	}
	if r.Err != nil {
		panic(http.ErrAbortHandler)
	}
	w.line(s.ollamaEnd(h, r, ollamaMessage(nil)))
}
