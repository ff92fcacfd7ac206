package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"memgpt"
)

// chunk is a piece of a streamed answer, or a whole one: they differ in delta and message.
type chunk struct {
	Object  label    `json:"object"`
	Model   label    `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	XGroq   struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
	Error json.RawMessage `json:"error"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   *message        `json:"delta"`
	Message *message        `json:"message"`
	Finish  label           `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
}

type message struct {
	Content          content         `json:"content"`
	Refusal          content         `json:"refusal"`
	ReasoningContent content         `json:"reasoning_content"`
	Reasoning        content         `json:"reasoning"`
	Details          json.RawMessage `json:"reasoning_details"`
	ToolCalls        []toolCall      `json:"tool_calls"`
	FunctionCall     *function       `json:"function_call"`
	// Extra is what the provider adds to a message without calls and wants back, as with calls.
	Extra json.RawMessage `json:"extra_content"`
}

type toolCall struct {
	Index    *int     `json:"index"`
	ID       label    `json:"id"`
	Function function `json:"function"`
	// Extra is what the provider adds to a call and wants back unchanged (Gemini's thought signatures).
	Extra json.RawMessage `json:"extra_content"`
}

type function struct {
	Name      label     `json:"name"`
	Arguments arguments `json:"arguments"`
}

// thinking returns the reasoning of a message. Some servers send the same under both names.
func (m *message) thinking() []byte {
	for _, c := range []content{m.ReasoningContent, m.Reasoning} {
		if len(c.text) > 0 {
			return c.text
		}
	}
	return m.Content.thinking
}

// label is a short string that some servers send as a number.
type label string

// UnmarshalJSON implements json.Unmarshaler. It takes anything.
func (l *label) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case 'n':
	case '"':
		*l = label(clean(unquote(raw)))
	default:
		*l = label(clean(raw))
	}
	return nil
}

// content is a text, or a list of parts. Bytes may end inside a character.
type content struct{ text, thinking []byte }

// UnmarshalJSON implements json.Unmarshaler. It takes anything.
func (c *content) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case 'n':
	case '"':
		c.text = unquote(raw)
	case '[':
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for _, part := range list {
			c.add(part)
		}
	case '{':
		c.add(raw)
	default:
		c.text = bytes.Clone(raw)
	}
	return nil
}

// add takes in one part: a string, or an object with text or thinking.
func (c *content) add(raw json.RawMessage) {
	if len(raw) > 0 && raw[0] == '"' {
		c.text = append(c.text, unquote(raw)...)
		return
	}
	var part struct {
		Text     content `json:"text"`
		Thinking content `json:"thinking"`
	}
	if json.Unmarshal(raw, &part) == nil {
		c.text = append(c.text, part.Text.text...)
		c.thinking = append(c.thinking, part.Thinking.text...)
	}
}

// arguments are a call's arguments as text: servers send a string that holds JSON, or the JSON itself.
type arguments []byte

// UnmarshalJSON implements json.Unmarshaler. It takes anything.
func (a *arguments) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case 'n':
	case '"':
		*a = unquote(raw)
	default:
		*a = bytes.Clone(raw)
	}
	return nil
}

// usage counts tokens, under the names of OpenAI, DeepSeek (prompt_cache_hit_tokens), Mistral (num_cached_tokens), Moonshot
// (cached_tokens) and of proxies for other protocols (input_tokens, output_tokens).
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheHit   int `json:"prompt_cache_hit_tokens"`
	Cached     int `json:"cached_tokens"`
	NumCached  int `json:"num_cached_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Completed struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	InputDetails struct { // of the Responses API
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Cost *float64 `json:"cost"` // dollars, as OpenRouter tells
}

// tokens returns the counts. xAI counts reasoning beside the completion, which the total shows; here it is part of it.
func (u *usage) tokens() memgpt.Usage {
	out := memgpt.Usage{
		Input:     max(u.Prompt, u.Input, 0),
		Cached:    max(u.Details.Cached, u.InputDetails.Cached, u.CacheHit, u.Cached, u.NumCached, 0),
		Written:   max(u.Details.Written, u.InputDetails.Written, 0),
		Output:    max(u.Completion, u.Output, 0),
		Reasoning: max(u.Completed.Reasoning, u.OutputDetails.Reasoning, 0),
	}
	if u.Total > 0 && u.Total == out.Input+out.Output+out.Reasoning {
		out.Output += out.Reasoning
	}
	return out
}

// withCost adds what the provider says that the call cost, rounded up to the nano-dollar.
func (u *usage) withCost(out memgpt.Usage) memgpt.Usage {
	if u.Cost != nil && *u.Cost >= 0 && *u.Cost < 1e6 {
		out.Priced, out.Nano = 1, int64(math.Ceil(*u.Cost*1e9))
	}
	return out
}

// decodeChunk reads a piece. A field of an unexpected type is left out, the rest is read.
func decodeChunk(data []byte) (*chunk, error) {
	c := new(chunk)
	err := json.Unmarshal(data, c)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		err = nil
	}
	return c, err
}

// set reports whether a field is there and not empty.
func set(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}", `""`, "false":
		return false
	}
	return true
}

// finishOf maps a finish reason. Unknown ones are FinishStop.
func finishOf(s string) memgpt.Finish {
	switch strings.ToLower(s) {
	case "tool_calls", "tool_call", "function_call", "tool_use":
		return memgpt.FinishCalls
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return memgpt.FinishLength
	case "content_filter", "safety", "recitation", "prohibited_content", "sensitive":
		return memgpt.FinishFilter
	}
	return memgpt.FinishStop
}
