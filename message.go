package memgpt

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Role is who speaks in a message, as models know it.
type Role string

// Roles of messages. In the log a message of the system in the queue has RoleSystem; on the wire it has RoleUser.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Origin is the kind of source that a text has. It decides how far the text is trusted and how it is quoted.
type Origin string

// Kinds of origin.
const (
	OriginUser     Origin = "user"
	OriginModel    Origin = "model"
	OriginSystem   Origin = "system"
	OriginTool     Origin = "tool"
	OriginDocument Origin = "document"
	OriginImport   Origin = "import"
	OriginAgent    Origin = "agent"
	OriginOwner    Origin = "owner" // the person who runs the agent, outside of any conversation
)

// Names of the functions that the vocabulary itself knows.
const (
	FuncSendMessage     = "send_message"
	FuncYield           = "yield"
	FuncPauseHeartbeats = "pause_heartbeats"
	ArgMessage          = "message"
	ArgHeartbeat        = "request_heartbeat"
)

// Message is what one party said or did: a list of parts with author and origin.
type Message struct {
	Role   Role      `json:"role"`
	Type   EventType `json:"type,omitempty"`   // of a user's or the system's message in the queue
	Author string    `json:"author,omitempty"` // name of the speaker where it isn't simply the user or the agent
	Origin Origin    `json:"origin,omitempty"`
	Parts  Parts     `json:"parts"`
	// Session names the sitting in which an imported message was said; "" where that isn't known.
	Session string `json:"session,omitempty"`
}

// Said returns what the message says to its reader, without thoughts and envelopes: its text, and for an assistant the
// texts of its send_message calls; for a function's result the result.
func (m *Message) Said() string {
	var said []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case Text:
			if !p.Thought {
				said = append(said, p.Text)
			}
		case Call:
			if text, ok := p.Spoken(); ok {
				said = append(said, text)
			}
		case Result:
			said = append(said, p.Text)
		}
	}
	return strings.Join(said, "\n")
}

// Thoughts returns the inner monologue of the message.
func (m *Message) Thoughts() string {
	var thoughts []string
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok && t.Thought {
			thoughts = append(thoughts, t.Text)
		}
	}
	return strings.Join(thoughts, "\n")
}

// Calls returns the calls of the message in order.
func (m *Message) Calls() (calls []Call) {
	for _, p := range m.Parts {
		if c, ok := p.(Call); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// Result returns the function result that the message carries, if it carries one.
func (m *Message) Result() (Result, bool) {
	for _, p := range m.Parts {
		if r, ok := p.(Result); ok {
			return r, true
		}
	}
	return Result{}, false
}

// TextMessage returns a message of one text part.
func TextMessage(role Role, origin Origin, text string) Message {
	return Message{Role: role, Origin: origin, Parts: Parts{Text{Text: text}}}
}

// Part is one piece of a message: Text, Image, File, Reasoning, Call, Result, Quotes or Unknown.
type Part interface{ kind() string }

// Text is a piece of text. A thought is inner monologue: the model's own, not shown to the user.
type Text struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought,omitempty"`
}

// Image is a picture, by URL or by its bytes.
type Image struct {
	MIME string `json:"mime,omitempty"`
	URL  string `json:"url,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// File is an attached file, by URL or by its bytes.
type File struct {
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	URL  string `json:"url,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// Reasoning is what a reasoning model gave of its thinking. Data is the provider's own and goes back to it unchanged.
type Reasoning struct {
	Text     string          `json:"text,omitempty"`
	Provider string          `json:"provider,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
}

// Call is a function call. Arguments is a JSON object once the executor has taken it in; before, it is what the model
// wrote.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Spoken returns the message of a send_message call.
func (c Call) Spoken() (string, bool) {
	if c.Name != FuncSendMessage {
		return "", false
	}
	var args map[string]json.RawMessage
	var text string
	if json.Unmarshal([]byte(c.Arguments), &args) != nil || json.Unmarshal(args[ArgMessage], &text) != nil {
		return "", false
	}
	return text, true
}

// Result is what a call brought. A failed one changed nothing.
type Result struct {
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Quotes names the stored texts that the message quotes. Models don't see it.
type Quotes struct {
	IDs []string `json:"ids"`
}

// Unknown is a part of a kind that this version does not know. It survives a round trip.
type Unknown struct {
	Kind string
	Raw  json.RawMessage
}

func (Text) kind() string      { return "text" }
func (Image) kind() string     { return "image" }
func (File) kind() string      { return "file" }
func (Reasoning) kind() string { return "reasoning" }
func (Call) kind() string      { return "call" }
func (Result) kind() string    { return "result" }
func (Quotes) kind() string    { return "quotes" }
func (u Unknown) kind() string { return u.Kind }

// Parts is a list of parts. As JSON it is an array of objects with one member each, named for the kind of the part.
type Parts []Part

// MarshalJSON implements json.Marshaler. Text is written as it is, without \u escapes of characters.
func (ps Parts) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('[')
	for i, p := range ps {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.kind())
		if err != nil {
			return nil, err
		}
		b.WriteByte('{')
		b.Write(name)
		b.WriteByte(':')
		if u, ok := p.(Unknown); ok {
			b.Write(u.Raw)
		} else if err := enc.Encode(p); err != nil {
			return nil, fmt.Errorf("encode a part of kind %s: %w", p.kind(), err)
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return []byte(b.String()), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (ps *Parts) UnmarshalJSON(data []byte) error {
	var raw []map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return fmt.Errorf("decode parts: %w", err)
	}
	out := make(Parts, 0, len(raw))
	for _, member := range raw {
		for kind, value := range member {
			p, err := decodePart(kind, value)
			if err != nil {
				return fmt.Errorf("decode a part of kind %s: %w", kind, err)
			}
			out = append(out, p)
		}
	}
	*ps = out
	return nil
}

var partDecoders = map[string]func(json.RawMessage) (Part, error){
	"text": decodeAs[Text], "image": decodeAs[Image], "file": decodeAs[File], "reasoning": decodeAs[Reasoning],
	"call": decodeAs[Call], "result": decodeAs[Result], "quotes": decodeAs[Quotes],
}

func decodePart(kind string, value json.RawMessage) (Part, error) {
	if decode := partDecoders[kind]; decode != nil {
		return decode(value)
	}
	return Unknown{Kind: kind, Raw: append(json.RawMessage(nil), value...)}, nil
}

func decodeAs[T Part](value json.RawMessage) (Part, error) {
	var p T
	err := json.Unmarshal(value, &p)
	return p, err
}
