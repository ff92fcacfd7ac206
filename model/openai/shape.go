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
	otherTokens      bool // the name of that field was changed once
	noChoice         bool // leaves out tool_choice
	noForce          bool // leaves out tool_choice where it asks for a call
	merge            bool // joins user messages that follow each other (templates that want roles to alternate)
	bridge           bool // puts an assistant's message between a result and a user's message (Mistral)
	shortIDs         bool // ids of calls are 9 letters and digits (Mistral)
	emptyText        bool // content beside calls is "" instead of null (xAI)
	developer        bool // the system's message has the role developer (OpenAI's reasoning models)
	otherRole        bool // that role was changed once
	sees             bool // the model is known to see images
	imageData        bool // images go as their bytes alone
	noImages         bool // images are named in words
	strict           bool // marks functions whose schema allows it as strict
	noThoughts       bool // reasoning does not go back
	thoughtsBack     bool // reasoning goes back with each message of the assistant (DeepSeek)
	responses        bool // speaks the Responses API
	chatOnly         bool // must not change to it
	noEncrypted      bool // does not ask for encrypted reasoning
	extras           bool // what the provider added to messages and calls goes back (Gemini's signatures)
	fillExtras       bool // the first call of a message gets one where none is known
	plainExtras      bool // those of earlier replies stay away: another account made them
	noMessageExtra   bool // that of a message stays away
}

// sentFields are the optional fields of a request.
type sentFields struct{ stream, usage, maxTokens, tools, choice, images, strict, thoughts, encrypted, schema bool }

// sent tells which optional fields a request has.
func (s shape) sent(cfg *Config, req *memgpt.Request) sentFields {
	stream := !cfg.NoStream && !s.noStream
	tools := len(req.Tools) > 0 && !cfg.NoTools
	return sentFields{
		stream:    stream,
		usage:     stream && !s.noUsage,
		maxTokens: req.MaxTokens > 0 && !s.noMaxTokens,
		tools:     tools,
		choice:    tools && req.Choice != memgpt.ChoiceAuto && !s.noChoice && !(s.noForce && req.Choice == memgpt.ChoiceRequired),
		images:    (cfg.Images || s.sees) && !s.noImages,
		strict:    tools && s.strict,
		thoughts:  (s.thoughtsBack || s.responses || cfg.backField() != "") && !s.noThoughts,
		encrypted: s.responses && !s.noEncrypted,
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
	if s.afterDialect(sent, has, formal, text) {
		return s, s != was
	}
	switch {
	case sent.schema && (has("response_format") || has("json_schema") || has("text.format")): // the caller asked for it and has to know
	case has("alternat") && has("role"):
		s.merge = true
	case sent.maxTokens && !s.otherTokens && !s.completionTokens && has("max_completion_tokens") && has("max_tokens") && formal:
		s.completionTokens, s.otherTokens = true, true
	case sent.maxTokens && !s.otherTokens && s.completionTokens && has("max_completion_tokens") && formal:
		s.completionTokens, s.otherTokens = false, true
	case sent.usage && (has("stream_options") || has("include_usage")):
		s.noUsage = true
	case sent.choice && has("tool_choice") && formal:
		s.noChoice = true
	case sent.maxTokens && formal && (has("max_tokens") || has("max_completion_tokens") || has("max_output_tokens")):
		s.noMaxTokens = true
	case sent.stream && formal && streamingWord.MatchString(text):
		s.noStream = true
	case sent.usage && someField.MatchString(text):
		s.noUsage = true
	}
	return s, s != was
}

// Words with which servers ask for the dialects of single providers.
var (
	wantsText  = regexp.MustCompile(`content element|content[^.]{0,60}(must|should) be a (valid )?string|content[^.]{0,40}\b(null|none)\b`)
	wrongRole  = regexp.MustCompile(`\brole\b[^.]{0,60}'?(system|developer)'?|'(system|developer)'[^.]{0,40}role|role does not support`)
	wrongImage = regexp.MustCompile(`image_url|image input|images? (is|are) not|vision`)
	wrongSeal  = regexp.MustCompile(`encrypted.content|reasoning' was provided|reasoning item`)
)

// afterSignature learns of Gemini's signatures, behind a gateway too. A signature is good only where it was made.
func (s *shape) afterSignature(has func(string) bool, formal bool) bool {
	switch {
	case has("thought_signature") && has("missing"):
		s.extras, s.fillExtras = true, true
	case has("thought signature") && (has("corrupted") || has("invalid")):
		s.plainExtras, s.noMessageExtra = true, true
	case formal && s.extras && has("extra_content") && !s.noMessageExtra:
		s.noMessageExtra = true
	case formal && s.extras && has("extra_content"):
		s.extras = false
	default:
		return false
	}
	return true
}

// afterDialect learns of a dialect that one provider or template has. It reports whether the refusal was about one,
// which decides it even where there is nothing left to change.
func (s *shape) afterDialect(sent sentFields, has func(string) bool, formal bool, text string) bool {
	switch {
	case s.afterSignature(has, formal):
	case has("after role 'tool'") && has("'user'"):
		s.bridge = true
	case has("tool call id") && has("length of 9"):
		s.shortIDs = true
	case has("v1/responses") && !s.chatOnly:
		s.responses = true
	case has("reasoning_content") && has("passed back"):
		s.thoughtsBack, s.noThoughts = true, false
	case sent.encrypted && has("encrypted") && (formal || has("include")) && !has("verif"):
		s.noEncrypted = true
	case sent.thoughts && wrongSeal.MatchString(text):
		s.noThoughts = true
	case sent.thoughts && formal && (has("reasoning_content") || has("reasoning_details") || has("'reasoning'")):
		s.noThoughts = true
	case sent.images && wrongImage.MatchString(text):
		s.noImages = true
	case sent.strict && (has("strict") || has("invalid schema for function")):
		s.strict = false
	case !s.emptyText && wantsText.MatchString(text):
		s.emptyText = true
	case !s.otherRole && formal && wrongRole.MatchString(text):
		s.developer, s.otherRole = !s.developer, true
	default:
		return false
	}
	return true
}
