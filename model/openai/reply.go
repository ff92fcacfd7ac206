package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// reply gathers an answer from its pieces and passes them on.
type reply struct {
	emit  func(memgpt.Delta)
	newID func() string
	max   int // bound of the reply that was asked for

	content, thought     joiner
	think                thinker
	text, thinking       strings.Builder
	details              []json.RawMessage // as OpenRouter gives reasoning
	extra                json.RawMessage   // the provider's own addition to the message
	calls                calls
	items                *responseItems // of a Responses API's answer; nil for chat
	usage                memgpt.Usage
	model, finish        string
	pieces               int  // pieces that came, empty ones too
	started, done, whole bool // something was passed on; [DONE] came; it is an answer in one piece
	costs                bool // the provider tells in dollars what the call cost
}

func newReply(emit func(memgpt.Delta), newID func() string, model string, maxTokens int) *reply {
	return &reply{emit: emit, newID: newID, model: model, max: maxTokens}
}

// call names the API in the words of errors.
func (r *reply) call() string { return callName(r.items != nil) }

// read reads an answer of any kind.
func (m *Model) read(w *wire.Watch, resp *http.Response, r *reply) (*memgpt.Response, *fault) {
	body := bufio.NewReaderSize(&wire.Watched{ReadCloser: resp.Body, Watch: w}, wire.BufferSize)
	c, err := first(body)
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	stream := strings.Contains(kind, "event-stream")
	var f *fault
	switch {
	case err != nil:
		f = r.ended(err)
	case c == '<':
		f = pageFault(r.call(), body, m.base.Host)
	case !stream && (c == '{' || c == '['):
		f = r.readWhole(w, body)
	case stream || strings.IndexByte("deri:", c) >= 0: // data, event, retry, id, a comment
		f = r.readEvents(w, body)
	default:
		f = down("%s: the answer is neither JSON nor a stream of events", r.call())
	}
	if f != nil {
		return r.failed(m, w, f)
	}
	return r.response()
}

// failed completes a fault with what is known of the call.
func (r *reply) failed(m *Model, w *wire.Watch, f *fault) (*memgpt.Response, *fault) {
	f.err.Started = f.err.Started || r.started
	if f.err.Code == memgpt.CodeModelDown && w.Ended() {
		f = &fault{err: &memgpt.Error{Code: memgpt.CodeModelTimeout, Text: r.call() + " at " + m.base.Host + ": " + w.Limit(), Started: r.started}}
	}
	if f.err.Code != memgpt.CodeModelEmpty {
		return nil, f
	}
	return &memgpt.Response{Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel},
		Finish: memgpt.FinishStop, Usage: r.tokens(), Model: r.model}, f
}

func (r *reply) readWhole(w *wire.Watch, body io.Reader) *fault {
	data, err := io.ReadAll(body)
	if err != nil {
		return r.ended(err)
	}
	w.Piece()
	r.whole = true
	f, err := r.take("", data)
	if err != nil {
		return down("%s: the answer is not whole JSON: %w", r.call(), err)
	}
	if f != nil {
		return f
	}
	return r.ended(io.EOF)
}

func (r *reply) readEvents(w *wire.Watch, body *bufio.Reader) *fault {
	ev := events{r: body}
	for !r.done {
		kind, data, err := ev.next()
		if err != nil {
			return r.ended(err)
		}
		w.Piece()
		f, err := r.takeAll(kind, data)
		if r.finish != "" {
			w.Linger(lingerTimeout)
		}
		switch {
		case f != nil:
			return f
		case errors.Is(ev.end, wire.ErrLong):
			return r.ended(ev.end)
		case err != nil && ev.end != nil:
			return r.ended(io.ErrUnexpectedEOF)
		case err != nil:
			return down("%s: a piece of the stream is not JSON: %w", r.call(), err)
		}
	}
	w.Linger(wire.DrainTimeout)
	_, _ = io.Copy(io.Discard, io.LimitReader(body, wire.BufferSize))
	return r.ended(io.EOF)
}

// lingerTimeout bounds the wait for what may follow the reason of the end: usage, and [DONE]. Some servers send neither
// and leave the connection open.
const lingerTimeout = 5 * time.Second

// takeAll takes in the data of one event. Some servers put several objects into one.
func (r *reply) takeAll(kind string, data []byte) (*fault, error) {
	for data = bytes.TrimSpace(data); len(data) > 0 && !r.done; data = bytes.TrimSpace(data) {
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			r.done = true
			return nil, nil
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			if kind == "error" {
				return faultInStream(r.call(), data), nil
			}
			return nil, err
		}
		if f, err := r.take(kind, one); f != nil || err != nil {
			return f, err
		}
		data = data[dec.InputOffset():]
	}
	return nil, nil
}

// take takes in one object.
func (r *reply) take(kind string, data []byte) (*fault, error) {
	if r.items != nil {
		return r.items.take(r, kind, data)
	}
	c, err := decodeChunk(data)
	if err != nil {
		return nil, err
	}
	if kind == "error" || c.Object == "error" || set(c.Error) || bytes.HasPrefix(data, []byte("[")) {
		return faultInStream(r.call(), data), nil
	}
	if c.Model != "" {
		r.model = string(c.Model)
	}
	for _, u := range []*usage{c.Usage, c.XGroq.Usage} {
		if u != nil && u.tokens() != (memgpt.Usage{}) {
			if r.usage = u.tokens(); r.costs {
				r.usage = u.withCost(r.usage)
			}
		}
	}
	if c.Choices == nil && r.whole && c.Usage == nil {
		return down("%s: the answer has no choices: %s", r.call(), memgpt.CutText(clean(data), 200)), nil
	}
	r.pieces++
	for i := range c.Choices {
		if set(c.Choices[i].Error) {
			return faultInStream(r.call(), c.Choices[i].Error), nil
		}
		if c.Choices[i].Index == 0 {
			r.choose(&c.Choices[i])
		}
	}
	return nil, nil
}

func (r *reply) choose(c *choice) {
	for _, m := range []*message{c.Delta, c.Message} {
		if m != nil {
			r.message(m, m == c.Message)
		}
	}
	if c.Finish != "" {
		r.finish = string(c.Finish)
	}
}

// message takes in a piece of a message; one of its own has whole calls.
func (r *reply) message(m *message, own bool) {
	if own && !r.whole && r.started {
		return // some servers repeat the message whole at the end of a stream
	}
	r.pass(r.thought.push(m.thinking()), "")
	if len(m.Content.text) > 0 {
		r.pass(r.think.push(r.content.push(m.Content.text)))
	}
	if len(m.Refusal.text) > 0 {
		r.pass(r.think.push(r.content.push(m.Refusal.text)))
	}
	if set(m.Details) {
		var list []json.RawMessage
		if json.Unmarshal(m.Details, &list) == nil {
			r.details = append(r.details, list...)
		}
	}
	if set(m.Extra) {
		r.extra = bytes.Clone(m.Extra)
	}
	if m.FunctionCall != nil && len(m.ToolCalls) == 0 {
		m.ToolCalls = []toolCall{{Index: new(int), Function: *m.FunctionCall}}
	}
	for i := range m.ToolCalls {
		r.calls.add(r, &m.ToolCalls[i], own)
	}
}

// pass hands pieces on.
func (r *reply) pass(thinking, text string) {
	if thinking != "" {
		r.thinking.WriteString(thinking)
		r.send(memgpt.Delta{Reasoning: thinking})
	}
	if text != "" {
		r.text.WriteString(text)
		r.send(memgpt.Delta{Text: text})
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
		return &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "%s: the answer was given up: %w", r.call(), err)}
	case strings.EqualFold(r.finish, "error"):
		return down("%s: the provider ended the answer with an error", r.call())
	case r.finish != "" || r.done || r.whole && err == io.EOF:
		return r.flush()
	case err == io.EOF && r.pieces == 0:
		return empty(r.call() + ": an answer without a body")
	case err == io.EOF:
		return down("%s: the answer broke off without an end", r.call())
	}
	return down("%s: the answer broke off: %w", r.call(), err)
}

// flush passes on what was held back. An answer without content is a fault, unless the provider says why it has none.
func (r *reply) flush() *fault {
	if r.items != nil {
		r.items.flush(r)
	}
	r.pass(r.thought.flush(), "")
	r.pass(r.think.push(r.content.flush()))
	r.pass(r.think.flush())
	r.calls.flush(r)
	if len(r.calls.list) > 0 || strings.TrimSpace(r.text.String()) != "" {
		return nil
	}
	if f := finishOf(r.finish); f == memgpt.FinishLength || f == memgpt.FinishFilter {
		return nil
	}
	return empty(r.call() + ": an answer without content")
}

// response makes the response of a whole answer.
func (r *reply) response() (*memgpt.Response, *fault) {
	parts := r.parts()
	if r.items != nil {
		parts = r.items.parts()
	}
	return &memgpt.Response{
		Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: parts},
		Finish:  r.finished(), Usage: r.tokens(), Model: r.model,
	}, nil
}

// parts returns the parts of a chat's reply.
func (r *reply) parts() memgpt.Parts {
	var parts memgpt.Parts
	if data := r.carried(); r.thinking.Len() > 0 || data != nil {
		parts = append(parts, memgpt.Reasoning{Text: r.thinking.String(), Provider: providerName, Data: data})
	}
	if r.text.Len() > 0 {
		parts = append(parts, memgpt.Text{Text: r.text.String()})
	}
	for _, c := range r.calls.list {
		parts = append(parts, memgpt.Call{ID: c.id, Name: c.name, Arguments: c.args.String()})
	}
	return parts
}

func (r *reply) tokens() memgpt.Usage {
	u := r.usage
	u.Calls = 1
	return u
}

// finished maps the finish reason to what the answer really holds: servers say "stop" beside calls, and "tool_calls"
// where the bound on tokens cut a call off.
func (r *reply) finished() memgpt.Finish {
	f := finishOf(r.finish)
	n := len(r.calls.list)
	switch {
	case f == memgpt.FinishLength || f == memgpt.FinishFilter:
	case n == 0:
		f = memgpt.FinishStop
	case r.max > 0 && r.usage.Output >= r.max && !object(r.calls.list[n-1].args.String()):
		f = memgpt.FinishLength
	default:
		f = memgpt.FinishCalls
	}
	return f
}

// object reports whether s is a JSON object.
func object(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "{") && json.Valid([]byte(s))
}
