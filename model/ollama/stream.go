package ollama

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"memgpt"
	"memgpt/internal/wire"
)

// maxLine bounds one line of a stream: what is longer is no reply.
const maxLine = 32 << 20

// lineEnd is how a stream of lines ended: with a fault that a line was, or with the reader's error.
type lineEnd struct {
	fault *fault
	err   error
}

// eachLine hands on each line that isn't blank, a last one without its end too.
func eachLine(r io.Reader, take func([]byte) *fault) lineEnd {
	body := bufio.NewReaderSize(r, wire.BufferSize)
	var line []byte
	for {
		piece, err := body.ReadSlice('\n')
		if line = append(line, piece...); len(line) > maxLine {
			return lineEnd{fault: &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "chat: a line is longer than any reply")}}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if whole := bytes.TrimSpace(line); len(whole) > 0 && !errors.Is(err, wire.ErrLong) {
			if f := take(whole); f != nil {
				return lineEnd{fault: f, err: err}
			}
		}
		if err != nil {
			return lineEnd{err: err}
		}
		line = line[:0]
	}
}

// chunk is a line of the answer: a piece, the end with its counts, or an error.
type chunk struct {
	Model   string `json:"model"`
	Message struct {
		Content  string `json:"content"`
		Thinking string `json:"thinking"`
		Calls    []call `json:"tool_calls"`
	} `json:"message"`
	Done       bool   `json:"done"`
	DoneReason string `json:"done_reason"`
	Prompt     int    `json:"prompt_eval_count"`
	Cached     *int   `json:"prompt_eval_cached_count"`
	Output     int    `json:"eval_count"`
	Error      string `json:"error"`
}

// reply gathers an answer from its lines and passes the pieces on.
type reply struct {
	emit  func(memgpt.Delta)
	newID func() string
	whole bool // the server counts whole prompts

	text, thinking strings.Builder
	calls          []memgpt.Call
	ids            map[string]bool
	usage          memgpt.Usage
	model, reason  string
	started, done  bool
	lines          int
}

func newReply(emit func(memgpt.Delta), newID func() string, model string, whole bool) *reply {
	return &reply{emit: emit, newID: newID, model: model, whole: whole, ids: map[string]bool{}}
}

// errDone ends the reading of lines after the last one.
var errDone = &fault{}

// read reads an answer.
func (m *Model) read(w *wire.Watch, resp *http.Response, r *reply) (*memgpt.Response, *fault) {
	body := &wire.Watched{ReadCloser: resp.Body, Watch: w}
	end := eachLine(body, func(line []byte) *fault {
		if line[0] == '<' {
			return &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "chat at %s: a web page came instead of an answer: check the base URL", m.base.Host)}
		}
		w.Piece()
		return r.take(line)
	})
	if r.done {
		w.Linger(wire.DrainTimeout)
		_, _ = io.Copy(io.Discard, io.LimitReader(body, wire.BufferSize))
	}
	f := end.fault
	if f == nil || f == errDone {
		f = r.ended(end.err)
	}
	if f == nil {
		return r.response(), nil
	}
	return r.failed(m, w, f)
}

// failed completes a fault with what is known of the call.
func (r *reply) failed(m *Model, w *wire.Watch, f *fault) (*memgpt.Response, *fault) {
	f.err.Started = r.started
	if f.err.Code == memgpt.CodeModelDown && w.Ended() {
		f = &fault{err: &memgpt.Error{Code: memgpt.CodeModelTimeout, Text: "chat at " + m.base.Host + ": " + w.Limit(), Started: r.started}}
	}
	if f.err.Code != memgpt.CodeModelEmpty {
		return nil, f
	}
	return &memgpt.Response{Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel},
		Finish: memgpt.FinishStop, Usage: r.usage, Model: r.model}, f
}

// take takes in one line.
func (r *reply) take(line []byte) *fault {
	var c chunk
	var odd *json.UnmarshalTypeError // a field of another type is left out
	if err := json.Unmarshal(line, &c); err != nil && !errors.As(err, &odd) {
		return down("chat: a line of the answer is not JSON: %w", err)
	}
	r.lines++
	if c.Error != "" {
		e := judge(http.StatusInternalServerError, c.Error)
		e.Text = "chat: the answer ended in an error: " + memgpt.CutText(memgpt.CleanText(c.Error), saidLimit)
		return &fault{err: e}
	}
	if c.Model != "" {
		r.model = memgpt.CleanText(c.Model)
	}
	if s := memgpt.CleanText(c.Message.Thinking); s != "" {
		r.thinking.WriteString(s)
		r.send(memgpt.Delta{Reasoning: s})
	}
	if s := memgpt.CleanText(c.Message.Content); s != "" {
		r.text.WriteString(s)
		r.send(memgpt.Delta{Text: s})
	}
	for i := range c.Message.Calls {
		r.call(&c.Message.Calls[i])
	}
	if c.Done {
		r.done, r.reason = true, c.DoneReason
		r.count(&c)
		return errDone
	}
	return nil
}

// call takes in a call, which comes whole. Few servers name calls.
func (r *reply) call(c *call) {
	id, name := memgpt.CleanText(c.ID), memgpt.CleanText(c.Function.Name)
	for id == "" || r.ids[id] {
		id = r.newID()
	}
	r.ids[id] = true
	if name == "" {
		name = "unknown"
	}
	args := argumentsOf(c.Function.Arguments)
	r.send(memgpt.Delta{Call: &memgpt.CallDelta{Index: len(r.calls), ID: id, Name: name, Arguments: args}})
	r.calls = append(r.calls, memgpt.Call{ID: id, Name: name, Arguments: args})
}

// argumentsOf returns arguments as text: the server gives an object, some that copy it a string that holds one.
func argumentsOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return "{}"
	}
	if json.Unmarshal(raw, &s) == nil {
		return memgpt.CleanText(s)
	}
	return memgpt.CleanText(string(raw))
}

func (r *reply) send(d memgpt.Delta) {
	r.started = true
	r.emit(d)
}

// count takes in the tokens. With prompt_eval_cached_count the count of the prompt is known to be that of the whole; a
// count that may leave out what was cached is not passed on, since the prompt would look cut.
func (r *reply) count(c *chunk) {
	r.usage = memgpt.Usage{Output: max(c.Output, 0), Calls: 1}
	if !r.whole && c.Cached == nil {
		return
	}
	r.usage.Input = max(c.Prompt, 0)
	if c.Cached != nil {
		r.usage.Cached = min(max(*c.Cached, 0), r.usage.Input)
	}
}

// ended judges the end of an answer.
func (r *reply) ended(err error) *fault {
	switch {
	case errors.Is(err, wire.ErrLong):
		return &fault{err: memgpt.Errorf(memgpt.CodeModelRequest, "chat: the answer was given up: %w", err)}
	case r.done && len(r.calls) == 0 && strings.TrimSpace(r.text.String()) == "" && r.finish() != memgpt.FinishLength:
		return &fault{err: memgpt.Errorf(memgpt.CodeModelEmpty, "chat: an answer without content")}
	case r.done:
		return nil
	case errors.Is(err, io.EOF) && r.lines == 0:
		return down("chat: an answer without a body")
	case errors.Is(err, io.EOF):
		return down("chat: the answer broke off without an end")
	}
	return down("chat: the answer broke off: %w", err)
}

func (r *reply) finish() memgpt.Finish {
	switch {
	case r.reason == "length":
		return memgpt.FinishLength
	case len(r.calls) > 0:
		return memgpt.FinishCalls
	}
	return memgpt.FinishStop
}

// response makes the response of a whole answer.
func (r *reply) response() *memgpt.Response {
	var parts memgpt.Parts
	if r.thinking.Len() > 0 {
		parts = append(parts, memgpt.Reasoning{Text: r.thinking.String(), Provider: provider})
	}
	if r.text.Len() > 0 {
		parts = append(parts, memgpt.Text{Text: r.text.String()})
	}
	for _, c := range r.calls {
		parts = append(parts, c)
	}
	return &memgpt.Response{
		Message: memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: parts},
		Finish:  r.finish(), Usage: r.usage, Model: r.model,
	}
}
