// Package script is a model for tests that answers what it is told to: a list of replies, or a function of the request.
// [Model] is the model itself, [Server] the same behind the wire protocols of providers. Both record what they were asked.
//
// It owns no rules of conversation (that is model/offline) and is no client of any protocol.
package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"memgpt"
)

// Reply is one scripted answer. Values are changed by the methods that return a changed copy.
type Reply struct {
	Parts  memgpt.Parts  // Text, Reasoning and Call parts; a call without an ID gets one
	Finish memgpt.Finish // "" is FinishCalls where there are calls, else FinishStop
	Usage  memgpt.Usage  // as reported; a Server counts where it is zero
	Err    error         // fail with it instead
	Pieces int           // with Err: how many pieces of Parts come before
	Gate   *Gate         // hold the call until it is opened
	Delay  time.Duration // hold the call so long
	Wire   *Wire         // what a Server writes instead of a reply; in a Model it is a failure with CodeModelDown
}

// Text is a reply of plain content.
func Text(text string) Reply { return Reply{Parts: memgpt.Parts{memgpt.Text{Text: text}}} }

// Think is a reply with the thinking of a reasoning model; with others in [Calls]. Inner monologue as the paper has it is
// Text beside a Call.
func Think(text string) Reply { return Reply{Parts: memgpt.Parts{memgpt.Reasoning{Text: text}}} }

// Say is a reply with one send_message call.
func Say(text string) Reply { return Call(memgpt.FuncSendMessage, memgpt.ArgMessage, text) }

// Call is a reply with one call. Arguments are names and values in turn, in this order: Call("f", "page", 1); or one
// string, which is what the model wrote, JSON or not. It panics on an odd number of arguments above one.
func Call(name string, args ...any) Reply {
	return Reply{Parts: memgpt.Parts{memgpt.Call{Name: name, Arguments: arguments(name, args)}}}
}

func arguments(name string, args []any) string {
	if len(args) == 1 {
		if raw, ok := args[0].(string); ok {
			return raw
		}
	}
	if len(args)%2 != 0 {
		panic(fmt.Sprintf("script: Call %q: want names and values in turn, got %d arguments", name, len(args)))
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, arg := range args {
		switch {
		case i%2 == 1:
			b.WriteByte(':')
		case i > 0:
			b.WriteByte(',')
		}
		b.WriteString(encode(arg))
	}
	b.WriteByte('}')
	return b.String()
}

// encode is JSON with text as it is.
func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("script: encode %T: %v", v, err))
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// Calls is one reply with the parts of several, in order; what else the first of them sets is kept.
func Calls(replies ...Reply) Reply {
	var all Reply
	if len(replies) > 0 {
		all = replies[0]
	}
	all.Parts = nil
	for _, r := range replies {
		all.Parts = append(all.Parts, r.Parts...)
	}
	return all
}

// Fail is a reply that fails. A Server answers with the status and body that stand for the error's code.
func Fail(err error) Reply { return Reply{Err: err} }

// Truncated is the reply cut off by the bound of its length: the last text or the last call's arguments end in the
// middle, and Finish says so.
func Truncated(r Reply) Reply {
	r.Parts = slices.Clone(r.Parts)
	if n := len(r.Parts); n > 0 {
		switch p := r.Parts[n-1].(type) {
		case memgpt.Text:
			p.Text = memgpt.CutText(p.Text, len(p.Text)/2)
			r.Parts[n-1] = p
		case memgpt.Reasoning:
			p.Text = memgpt.CutText(p.Text, len(p.Text)/2)
			r.Parts[n-1] = p
		case memgpt.Call:
			p.Arguments = memgpt.CutText(p.Arguments, len(p.Arguments)/2)
			r.Parts[n-1] = p
		}
	}
	r.Finish = memgpt.FinishLength
	return r
}

// Heartbeat returns the reply with request_heartbeat set in every call whose arguments are a JSON object.
func (r Reply) Heartbeat() Reply {
	r.Parts = slices.Clone(r.Parts)
	for i, p := range r.Parts {
		c, ok := p.(memgpt.Call)
		if !ok || !json.Valid([]byte(c.Arguments)) || len(c.Arguments) < 2 || c.Arguments[0] != '{' {
			continue
		}
		comma := ","
		if c.Arguments == "{}" {
			comma = ""
		}
		c.Arguments = c.Arguments[:len(c.Arguments)-1] + comma + `"` + memgpt.ArgHeartbeat + `":true}`
		r.Parts[i] = c
	}
	return r
}

// Held returns the reply held by the gate.
func (r Reply) Held(g *Gate) Reply { r.Gate = g; return r }

// After returns the reply held for a time.
func (r Reply) After(d time.Duration) Reply { r.Delay = d; return r }

// Using returns the reply with a reported usage.
func (r Reply) Using(u memgpt.Usage) Reply { r.Usage = u; return r }

// Broken returns the reply broken off after a number of pieces, with CodeModelDown and Started.
func (r Reply) Broken(pieces int) Reply {
	r.Pieces = pieces
	r.Err = &memgpt.Error{Code: memgpt.CodeModelDown, Text: "script: the reply breaks off", Started: pieces > 0}
	return r
}

// Gate holds calls until it is opened. One gate may hold several replies.
type Gate struct{ entered, open chan struct{} }

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{entered: make(chan struct{}, 1<<16), open: make(chan struct{})} }

// Entered gives one value for each call that arrives at the gate (the first 65,536 that nobody receives are kept).
func (g *Gate) Entered() <-chan struct{} { return g.entered }

// Open lets all calls through, those to come too. It must be called at most once.
func (g *Gate) Open() { close(g.open) }

// deltas cuts parts into the pieces of a stream, at most size bytes each and never inside a character.
func deltas(parts memgpt.Parts, size int) []memgpt.Delta {
	var ds []memgpt.Delta
	index := 0
	for _, p := range parts {
		switch p := p.(type) {
		case memgpt.Text:
			for _, s := range pieces(p.Text, size) {
				ds = append(ds, memgpt.Delta{Text: s})
			}
		case memgpt.Reasoning:
			for _, s := range pieces(p.Text, size) {
				ds = append(ds, memgpt.Delta{Reasoning: s})
			}
		case memgpt.Call:
			ds = append(ds, memgpt.Delta{Call: &memgpt.CallDelta{Index: index, ID: p.ID, Name: p.Name}})
			for _, s := range pieces(p.Arguments, size) {
				ds = append(ds, memgpt.Delta{Call: &memgpt.CallDelta{Index: index, Arguments: s}})
			}
			index++
		}
	}
	return ds
}

func pieces(s string, size int) []string {
	var out []string
	for s != "" {
		p := memgpt.CutText(s, size)
		if p == "" { // the character is larger than a piece
			_, n := utf8.DecodeRuneInString(s)
			p = s[:n]
		}
		out = append(out, p)
		s = s[len(p):]
	}
	return out
}
