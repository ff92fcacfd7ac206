package anthropic

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"memgpt"
	"memgpt/internal/wire"
)

// reply gathers an answer from its events and passes the pieces on.
type reply struct {
	emit  func(memgpt.Delta)
	newID func() string

	blocks  []*block
	byIndex map[int64]*block
	ids     map[string]bool
	calls   int
	usage   memgpt.Usage
	cached  [2]int64 // tokens written to and read from the cache
	input   int64    // tokens beside those
	model   string
	stop    sdk.StopReason
	refusal string // why the provider declined
	started bool   // something was passed on
	done    bool   // message_stop came
	events  int
}

// block is a content block under way.
type block struct {
	kind      string
	text      strings.Builder // of a text, of thinking, or the arguments of a call
	raw       strings.Builder // thinking as it came, which its signature covers
	signature strings.Builder
	data      json.RawMessage // a block that is kept whole
	id, name  string
	input     string // arguments that came whole
	at        int    // number of a call
}

func newReply(emit func(memgpt.Delta), newID func() string, model string) *reply {
	return &reply{emit: emit, newID: newID, model: model, byIndex: map[int64]*block{}, ids: map[string]bool{}}
}

// read reads an answer: a stream of events, or a message in one piece from gateways that don't stream.
func (m *Model) read(w *wire.Watch, resp *http.Response, r *reply) (*memgpt.Response, *fault) {
	resp.Body = &wire.Watched{ReadCloser: resp.Body, Watch: w}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var f *fault
	switch kind {
	case "text/html":
		f = &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "messages at %s: a web page came instead of an answer: check the base URL", m.host)}
	case "application/json":
		f = r.readWhole(w, resp.Body)
	default:
		f = r.readEvents(w, resp)
	}
	if f != nil {
		return r.failed(m, w, f)
	}
	return r.response(), nil
}

// failed completes a fault with what is known of the call.
func (r *reply) failed(m *Model, w *wire.Watch, f *fault) (*memgpt.Response, *fault) {
	f.err.Started = r.started
	if f.err.Code == memgpt.CodeModelDown && w.Ended() {
		f = &fault{err: &memgpt.Error{Code: memgpt.CodeModelTimeout, Text: "messages at " + m.host + ": " + w.Limit(), Started: r.started}}
	}
	if f.err.Code != memgpt.CodeModelEmpty {
		return nil, f
	}
	return &memgpt.Response{Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel},
		Finish: memgpt.FinishStop, Usage: r.tokens(), Model: r.model}, f
}

// readWhole reads a message in one piece, as the events that it would have come in.
func (r *reply) readWhole(w *wire.Watch, body io.Reader) *fault {
	data, err := io.ReadAll(body)
	if err != nil {
		return r.ended(err)
	}
	w.Piece()
	var msg struct {
		Type    string            `json:"type"`
		Content []json.RawMessage `json:"content"`
		Stop    string            `json:"stop_reason"`
		Details json.RawMessage   `json:"stop_details"`
		Usage   json.RawMessage   `json:"usage"`
	}
	if err := json.Unmarshal(data, &msg); err != nil {
		return down("messages: the answer is not whole JSON: %w", err)
	}
	if msg.Type != "message" {
		return faultInStream(data)
	}
	events := []map[string]any{{"type": "message_start", "message": json.RawMessage(data)}}
	for i, b := range msg.Content {
		events = append(events, map[string]any{"type": "content_block_start", "index": i, "content_block": b})
	}
	delta := map[string]any{"stop_reason": msg.Stop, "stop_details": msg.Details}
	events = append(events, map[string]any{"type": "message_delta", "delta": delta, "usage": msg.Usage})
	for _, e := range events {
		one, err := json.Marshal(e)
		if err != nil {
			return down("messages: the answer can't be read: %w", err)
		}
		if f := r.take(one); f != nil {
			return f
		}
	}
	return r.ended(io.EOF)
}

func (r *reply) readEvents(w *wire.Watch, resp *http.Response) *fault {
	dec := ssestream.NewDecoder(resp)
	for !r.done && dec.Next() {
		ev := dec.Event()
		if ev.Type == "error" {
			return faultInStream(ev.Data)
		}
		if len(ev.Data) == 0 || ev.Type == "ping" {
			continue
		}
		w.Piece()
		if f := r.take(ev.Data); f != nil {
			return f
		}
	}
	if !r.done && dec.Err() != nil {
		return r.ended(dec.Err())
	}
	w.Linger(wire.DrainTimeout)
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, wire.BufferSize))
	return r.ended(io.EOF)
}

// take takes in one event. Kinds that this version doesn't know are passed over, as the API's rules ask for.
func (r *reply) take(data []byte) *fault {
	var ev sdk.MessageStreamEventUnion
	if err := json.Unmarshal(data, &ev); err != nil {
		return down("messages: a piece of the stream is not JSON: %w", err)
	}
	r.events++
	switch ev.Type {
	case "error":
		return faultInStream(data)
	case "message_start":
		if ev.Message.Model != "" {
			r.model = memgpt.CleanText(ev.Message.Model)
		}
		u := &ev.Message.Usage
		r.count(u.InputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
	case "content_block_start":
		r.open(ev.Index, &ev.ContentBlock)
	case "content_block_delta":
		if b := r.byIndex[ev.Index]; b != nil {
			r.grow(b, &ev.Delta)
		}
	case "message_delta":
		r.stop = ev.Delta.StopReason
		r.refusal = strings.TrimSpace(string(ev.Delta.StopDetails.Category) + ": " + ev.Delta.StopDetails.Explanation)
		u := &ev.Usage
		r.count(u.InputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens, u.OutputTokens, u.OutputTokensDetails.ThinkingTokens)
	case "message_stop":
		r.done = true
	}
	return nil
}

// count takes in totals so far. What a later event leaves out stays.
func (r *reply) count(input, written, read, output, thinking int64) {
	r.input = max(r.input, input)
	r.cached[0], r.cached[1] = max(r.cached[0], written), max(r.cached[1], read)
	r.usage.Output = max(r.usage.Output, int(output))
	r.usage.Reasoning = max(r.usage.Reasoning, int(thinking))
}

// tokens is the usage. The API counts what was cached apart from the input; here it is part of it.
func (r *reply) tokens() memgpt.Usage {
	u := r.usage
	u.Calls = 1
	u.Written, u.Cached = int(r.cached[0]), int(r.cached[1])
	u.Input = int(r.input + r.cached[0] + r.cached[1])
	return u
}

// open begins a block. Blocks of kinds that nobody asked for (the provider's own tools) have no pieces that count.
func (r *reply) open(index int64, c *sdk.ContentBlockStartEventContentBlockUnion) {
	b := &block{kind: c.Type}
	r.byIndex[index] = b
	r.blocks = append(r.blocks, b)
	switch c.Type {
	case "text":
		r.say(b, c.Text)
	case "thinking":
		r.think(b, c.Thinking)
		b.signature.WriteString(c.Signature)
	case "redacted_thinking":
		b.data = json.RawMessage(c.RawJSON())
	case "tool_use":
		r.openCall(b, c)
	}
}

// openCall settles the id of a call: one of our own if there is none, or the same twice.
func (r *reply) openCall(b *block, c *sdk.ContentBlockStartEventContentBlockUnion) {
	b.at, b.id, b.name = r.calls, memgpt.CleanText(c.ID), memgpt.CleanText(c.Name)
	r.calls++
	for b.id == "" || r.ids[b.id] {
		b.id = r.newID()
	}
	r.ids[b.id] = true
	if b.name == "" {
		b.name = "unknown"
	}
	if raw := strings.TrimSpace(c.JSON.Input.Raw()); raw != "{}" && raw != "null" {
		b.input = memgpt.CleanText(raw)
	}
	r.send(memgpt.Delta{Call: &memgpt.CallDelta{Index: b.at, ID: b.id, Name: b.name}})
}

func (r *reply) grow(b *block, d *sdk.MessageStreamEventUnionDelta) {
	switch d.Type {
	case "text_delta":
		if b.kind == "text" {
			r.say(b, d.Text)
		}
	case "thinking_delta":
		if b.kind == "thinking" {
			r.think(b, d.Thinking)
		}
	case "signature_delta":
		b.signature.WriteString(d.Signature)
	case "input_json_delta":
		if b.kind == "tool_use" {
			r.argue(b, d.PartialJSON)
		}
	}
}

func (r *reply) say(b *block, s string) {
	if s = memgpt.CleanText(s); s != "" {
		b.text.WriteString(s)
		r.send(memgpt.Delta{Text: s})
	}
}

func (r *reply) think(b *block, s string) {
	b.raw.WriteString(s)
	if s = memgpt.CleanText(s); s != "" {
		b.text.WriteString(s)
		r.send(memgpt.Delta{Reasoning: s})
	}
}

func (r *reply) argue(b *block, s string) {
	if s = memgpt.CleanText(s); s != "" {
		b.text.WriteString(s)
		r.send(memgpt.Delta{Call: &memgpt.CallDelta{Index: b.at, Arguments: s}})
	}
}

func (r *reply) send(d memgpt.Delta) {
	r.started = true
	r.emit(d)
}

// ended judges the end of an answer.
func (r *reply) ended(err error) *fault {
	switch {
	case errors.Is(err, wire.ErrLong):
		return &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "messages: the answer was given up: %w", err)}
	case r.stop != "" || r.done:
		return r.complete()
	case errors.Is(err, io.EOF) && r.events == 0:
		return down("messages: an answer without a body")
	case errors.Is(err, io.EOF):
		return down("messages: the answer broke off without an end")
	}
	return down("messages: the answer broke off: %w", err)
}

// complete passes on what is only known at the end, and looks whether there is anything.
func (r *reply) complete() *fault {
	said, last := false, len(r.blocks)-1
	for i, b := range r.blocks {
		if b.kind == "tool_use" && b.text.Len() == 0 {
			switch {
			case b.input != "":
				r.argue(b, b.input)
			case i != last || r.finish() != memgpt.FinishLength: // else it was cut off before its first character
				r.argue(b, "{}")
			}
		}
		said = said || b.kind == "text" && strings.TrimSpace(b.text.String()) != ""
	}
	switch f := r.finish(); {
	case f == memgpt.FinishFilter && !said && r.calls == 0:
		b := &block{kind: "text"}
		r.blocks = append(r.blocks, b)
		r.say(b, "[The provider declined to answer. "+strings.Trim(r.refusal, ": ")+"]")
	case !said && r.calls == 0 && f != memgpt.FinishLength:
		return &fault{err: memgpt.Errorf(memgpt.CodeModelEmpty, "messages: an answer without content (stop reason %q)", string(r.stop))}
	}
	return nil
}

// finish maps the stop reason to what the answer holds. pause_turn comes of the provider's own tools alone, which are
// never offered: what was said until then stands.
func (r *reply) finish() memgpt.Finish {
	switch {
	case r.stop == sdk.StopReasonMaxTokens || r.stop == sdk.StopReasonModelContextWindowExceeded:
		return memgpt.FinishLength
	case r.stop == sdk.StopReasonRefusal:
		return memgpt.FinishFilter
	case r.calls > 0:
		return memgpt.FinishCalls
	}
	return memgpt.FinishStop
}

// response makes the response of a whole answer, its parts in the order of the blocks.
func (r *reply) response() *memgpt.Response {
	var parts memgpt.Parts
	for _, b := range r.blocks {
		text := b.text.String()
		switch b.kind {
		case "text":
			if text != "" {
				parts = append(parts, memgpt.Text{Text: text})
			}
		case "thinking":
			parts = append(parts, memgpt.Reasoning{Text: text, Provider: provider, Data: b.thinking()})
		case "redacted_thinking":
			parts = append(parts, memgpt.Reasoning{Provider: provider, Data: b.data})
		case "tool_use":
			parts = append(parts, memgpt.Call{ID: b.id, Name: b.name, Arguments: text})
		}
	}
	return &memgpt.Response{
		Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: parts},
		Finish:  r.finish(), Usage: r.tokens(), Model: r.model,
	}
}

// thinking is the block as it goes back. One without a signature was not finished, or comes from a gateway that has
// none: the API would refuse it.
func (b *block) thinking() json.RawMessage {
	if b.signature.Len() == 0 {
		return nil
	}
	data, err := json.Marshal(struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}{"thinking", b.raw.String(), b.signature.String()})
	if err != nil {
		return nil
	}
	return data
}
