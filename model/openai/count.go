package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"memgpt"
	"memgpt/internal/wire"
)

// CountWay is a way in which a server counts a request's tokens.
type CountWay string

// Ways to count.
const (
	CountInputTokens CountWay = "input_tokens" // POST …/input_tokens with the request's body (llama.cpp; OpenAI for the Responses API)
	CountTokenize    CountWay = "tokenize"     // POST /tokenize with the messages (vLLM)
	CountTemplate    CountWay = "template"     // POST /apply-template, then /tokenize with its text (llama.cpp)
)

// countTimeout bounds a count. It takes no turn of the model, but a busy server may be slow to answer.
const countTimeout = 30 * time.Second

// errNoCount is the end of a way that a server doesn't have.
var errNoCount = errors.New("the server does not count in this way")

// Count returns how many tokens a request has as the server itself counts them, functions and template included: what
// usage would report as its input. It generates nothing. A server that can't count is CodeInvalid; other errors have
// the codes of Generate.
func (m *Model) Count(ctx context.Context, req *memgpt.Request) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	name := req.Model
	if name == "" {
		name = m.cfg.Model
	}
	sh := m.shape(name)
	sh.noStream = true
	req.Restore()
	defer req.Release()
	ways := m.cfg.profile().Count
	if ways == nil {
		ways = []CountWay{CountInputTokens, CountTokenize, CountTemplate}
	}
	var refusal error
	for _, way := range ways {
		n, err := m.countBy(ctx, way, name, sh, req)
		switch {
		case errors.Is(err, errNoCount):
		case memgpt.CodeOf(err) == memgpt.CodeModelRequest: // another server may mean something else by that place
			refusal = err
		default:
			return n, err
		}
	}
	if refusal != nil {
		return 0, refusal
	}
	return 0, memgpt.Errorf(memgpt.CodeInvalid, "count tokens at %s: the server offers no way to count; rely on the usage that it reports", m.base.Host)
}

func (m *Model) countBy(ctx context.Context, way CountWay, name string, sh shape, req *memgpt.Request) (int, error) {
	switch {
	case way == CountInputTokens && sh.responses:
		return m.countAt(ctx, m.address(name, "responses/input_tokens"), countedResponse(req, name, &m.cfg, sh))
	case sh.responses:
		return 0, errNoCount
	case way == CountInputTokens:
		return m.countAt(ctx, m.address(name, "chat/completions/input_tokens"), encode(req, name, &m.cfg, sh))
	case way == CountTokenize:
		return m.countAt(ctx, at(m.base, "/tokenize"), encode(req, name, &m.cfg, sh))
	}
	return m.countTemplate(ctx, encode(req, name, &m.cfg, sh))
}

// countedResponse returns the fields of a request to the Responses API that make up its prompt: counting takes no others.
func countedResponse(req *memgpt.Request, model string, cfg *Config, sh shape) []byte {
	e := newEncoder(req, cfg, sh)
	e.raw(`{`)
	e.responsesInput(req, model)
	e.raw(`}`)
	return e.b
}

// countAt asks a place that answers with a count.
func (m *Model) countAt(ctx context.Context, address string, body []byte) (int, error) {
	var counted struct {
		Input int `json:"input_tokens"`
		Count int `json:"count"` // vLLM
	}
	if err := m.ask(ctx, address, body, &counted); err != nil {
		return 0, err
	}
	if n := max(counted.Input, counted.Count); n > 0 {
		return n, nil
	}
	return 0, errNoCount
}

// countTemplate has llama.cpp make the very prompt and cut it into tokens.
func (m *Model) countTemplate(ctx context.Context, body []byte) (int, error) {
	var made struct {
		Prompt string `json:"prompt"`
	}
	if err := m.ask(ctx, at(m.base, "/apply-template"), body, &made); err != nil {
		return 0, err
	}
	if made.Prompt == "" {
		return 0, errNoCount
	}
	text, err := json.Marshal(map[string]any{"content": made.Prompt, "add_special": true, "parse_special": true})
	if err != nil {
		return 0, memgpt.Errorf(memgpt.CodeModelRequest, "count tokens: %w", err)
	}
	var cut struct {
		Tokens []json.RawMessage `json:"tokens"`
	}
	if err := m.ask(ctx, at(m.base, "/tokenize"), text, &cut); err != nil {
		return 0, err
	}
	if len(cut.Tokens) == 0 {
		return 0, errNoCount
	}
	return len(cut.Tokens), nil
}

// ask posts a body and reads a JSON answer. A place that isn't there is errNoCount.
func (m *Model) ask(ctx context.Context, address string, body []byte, into any) error {
	w := wire.NewWatch(ctx, wire.Limits{First: countTimeout, Idle: countTimeout, Whole: countTimeout, Filler: filler})
	defer w.Stop()
	resp, f := m.send("count tokens", w, address, body)
	if f != nil && f.stale {
		resp, f = m.send("count tokens", w, address, body)
	}
	switch {
	case f != nil && ctx.Err() != nil:
		return ctx.Err()
	case f != nil:
		return f.err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return errNoCount
	default:
		return m.refused("count tokens", resp).err
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return memgpt.Errorf(memgpt.CodeModelDown, "count tokens at %s: %w", m.base.Host, err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || lenient(data, into) != nil {
		return errNoCount // something else answers there
	}
	return nil
}
