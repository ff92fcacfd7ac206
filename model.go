package memgpt

import (
	"context"
	"encoding/json"
)

// Model is a language model behind one wire protocol.
type Model interface {
	// Generate answers one request. With a stream it reports the reply's pieces as they come; their sum is the response,
	// which is returned whole. It keeps no reference to the request after it returns and may release the request's bytes
	// as soon as they are sent. It reads Messages after Restore. Errors are *Error with a code of the CodeModel kinds; a context's end is reported as the
	// context's error. An implementation is safe for concurrent use.
	Generate(ctx context.Context, req *Request, stream func(Delta)) (*Response, error)
	// Capabilities says what the model can do. It opens no connection.
	Capabilities() Capabilities
}

// Capabilities is what a caller may rely on. Zero values are the careful answer.
type Capabilities struct {
	Name      string // model's name, shown in banners
	Window    int    // tokens; 0 when unknown
	MaxOutput int    // tokens of a reply; 0 when unknown
	Tools     bool   // takes function schemas and answers with calls
	Parallel  bool   // may make several calls in a reply
	Forced    bool   // obeys ChoiceRequired
	Images    bool   // takes Image parts
	Reasoning bool   // gives Reasoning parts and takes them back
	Schema    bool   // obeys Request.Schema
	Tokenizer string // name of the tokenizer, e.g. "o200k_base"; "" when unknown
	StandIn   bool   // not a language model but a rule-based stand-in, to be said in every banner
}

// Request is one call of a model, to be given to one at a time. Messages hold what goes on the wire: the first has RoleSystem, the others have
// RoleUser, RoleAssistant or RoleTool.
type Request struct {
	Model     string // "" leaves it to the model's configuration
	Messages  []Message
	Tools     []ToolSpec
	Choice    Choice
	MaxTokens int     // bound of the reply; 0 leaves it to the provider
	Window    int     // context window that the caller counts with; 0 when unknown
	Purpose   Purpose // what it is for
	Session   string  // ID of the conversation, for providers that route by it
	// Schema is the JSON schema, of type object, that the reply's text must fit; nil is free text. A provider that can't
	// hold a reply to it refuses the request (CodeModelRequest) or, see Capabilities.Schema, ignores it.
	Schema json.RawMessage
	Meter  Meter // watches what calls cost; nil is nobody

	// Again, where set, makes Messages once more, so that a model may let go of them while it waits for an answer.
	Again func() []Message
}

// Meter is asked before each call that a request leads to, and told of the usage of each reply, used or thrown away.
type Meter interface {
	Afford(ctx context.Context, price func(Usage) (nano int64, known bool)) error // CodeBudget refuses the call
	Spent(model string, u Usage)                                                  // Calls is 1
}

// Release lets go of the messages where they can be made again.
func (r *Request) Release() {
	if r.Again != nil {
		r.Messages = nil
	}
}

// Restore makes messages again that were let go of.
func (r *Request) Restore() {
	if r.Messages == nil && r.Again != nil {
		r.Messages = r.Again()
	}
}

// Choice says whether the model may call functions.
type Choice string

// Choices. The zero value is ChoiceAuto.
const (
	ChoiceAuto     Choice = ""
	ChoiceNone     Choice = "none"
	ChoiceRequired Choice = "required"
)

// Purpose says what a request is for.
type Purpose string

// Purposes. The zero value is PurposeStep.
const (
	PurposeStep    Purpose = ""
	PurposeSummary Purpose = "summary"
)

// Response is a model's reply.
type Response struct {
	Message Message // RoleAssistant; Text, Reasoning and Call parts, the arguments of calls as the model wrote them
	Finish  Finish
	Usage   Usage  // zero when the provider reports none
	Model   string // name that answered
	// Prompted says that functions went as words of the prompt, in about half of the tokens of their schemas.
	Prompted bool
}

// Finish says why the model stopped.
type Finish string

// Reasons to stop.
const (
	FinishStop   Finish = "stop"
	FinishCalls  Finish = "tool_calls"
	FinishLength Finish = "length"
	FinishFilter Finish = "content_filter"
)

// Delta is a piece of a reply under way. One of the fields is set; Call pieces name the call by its index.
type Delta struct {
	Text      string
	Reasoning string
	Call      *CallDelta
}

// CallDelta is a piece of a call under way. ID and Name come with the first piece, Arguments in pieces.
type CallDelta struct {
	Index     int
	ID        string
	Name      string
	Arguments string
}

// ToolSpec is a function as a model sees it. Parameters is a JSON schema of type object.
type ToolSpec struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Effect says what a call touches, which decides when it is committed (invariant 2).
type Effect int

// Effects. The zero value is the careful one.
const (
	EffectOutside  Effect = iota // acts on the world: committed before it starts, never run twice
	EffectMemory                 // changes our memory only: part of the step's one commit
	EffectRead                   // only reads, may be repeated
	EffectDeferred               // answered later by someone else: the turn waits
)
