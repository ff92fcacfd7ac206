package openai

import (
	"net/http"
	"regexp"
	"strings"

	"memgpt"
)

// shape is what a server was found to want of requests for one model. The zero value is the first try.
type shape struct {
	noStream         bool // asks in one piece
	noUsage          bool // leaves out stream_options
	completionTokens bool // max_completion_tokens instead of max_tokens (OpenAI's reasoning models)
	noMaxTokens      bool
	noChoice         bool // leaves out tool_choice
	merge            bool // joins user messages that follow each other (templates that want roles to alternate)
}

// sentFields are the optional fields of a request.
type sentFields struct{ stream, usage, maxTokens, tools, choice, schema bool }

// sent tells which optional fields a request has.
func (s shape) sent(cfg *Config, req *memgpt.Request) sentFields {
	stream := !cfg.NoStream && !s.noStream
	tools := len(req.Tools) > 0 && !cfg.NoTools
	return sentFields{
		stream:    stream,
		usage:     stream && !s.noUsage,
		maxTokens: req.MaxTokens > 0 && !s.noMaxTokens,
		tools:     tools,
		choice:    tools && req.Choice != memgpt.ChoiceAuto && !s.noChoice,
		schema:    len(req.Schema) > 0,
	}
}

// Words with which servers refuse a field (OpenAI, FastAPI and Pydantic, Go and Rust decoders).
var (
	refusedField  = regexp.MustCompile(`unknown|unrecognized|unrecognised|unexpected|unsupported|not supported|does not support|doesn't support|not permitted|not allowed|not available|forbidden|disabled|invalid|extra|additional`)
	someField     = regexp.MustCompile(`(unknown|unrecognized|unrecognised|unexpected|extra|additional)[a-z ]* (field|argument|parameter|propert|key)|extra inputs`)
	streamingWord = regexp.MustCompile(`\bstream(ing|ed)?\b`)
)

// after returns the shape to try after a refusal, if there is one. Each change is made once, so that it ends.
func (s shape) after(sent sentFields, f *fault) (shape, bool) {
	if f.status < 400 || f.err.Code != memgpt.CodeModelRequest {
		return s, false
	}
	was, text := s, strings.ToLower(f.said)
	has := func(word string) bool { return strings.Contains(text, word) }
	formal := f.status != http.StatusNotFound && refusedField.MatchString(text)
	switch {
	case sent.schema && (has("response_format") || has("json_schema")): // the caller asked for it and has to know
	case has("alternat") && has("role"):
		s.merge = true
	case sent.maxTokens && !s.completionTokens && has("max_completion_tokens") && has("max_tokens") && formal:
		s.completionTokens = true
	case sent.usage && (has("stream_options") || has("include_usage")):
		s.noUsage = true
	case sent.choice && has("tool_choice") && formal:
		s.noChoice = true
	case sent.maxTokens && formal && (has("max_tokens") || has("max_completion_tokens")):
		s.noMaxTokens = true
	case sent.stream && formal && streamingWord.MatchString(text):
		s.noStream = true
	case sent.usage && someField.MatchString(text):
		s.noUsage = true
	}
	return s, s != was
}
