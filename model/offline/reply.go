package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"memgpt"
)

// act is what the stand-in does in one step.
type act struct {
	thought string // inner monologue
	text    string // spoken as plain text, where there is no function to speak with
	calls   []call
	ledger  ledger // as the step leaves it
}

// call is a function call under construction.
type call struct {
	id   string // "" until it is made
	name string
	args map[string]any
}

// str returns an argument that is a text, "" when it is not.
func (c call) str(key string) string {
	s, _ := c.args[key].(string)
	return s
}

// respond makes the response of an act and streams it.
func respond(req *memgpt.Request, a act, stream func(memgpt.Delta)) *memgpt.Response {
	msg := memgpt.Message{Role: memgpt.RoleAssistant, Origin: memgpt.OriginModel, Parts: memgpt.Parts{}}
	if a.thought != "" {
		msg.Parts = append(msg.Parts, memgpt.Text{Text: memgpt.CleanText(a.thought), Thought: true})
	}
	if a.text != "" {
		msg.Parts = append(msg.Parts, memgpt.Text{Text: memgpt.CleanText(a.text)})
	}
	seed := callSeed(req)
	for i, c := range a.calls {
		msg.Parts = append(msg.Parts, memgpt.Call{ID: a.ledger.id(seed, i), Name: c.name, Arguments: encodeArgs(c.args)})
	}
	res := &memgpt.Response{Message: msg, Finish: memgpt.FinishStop, Model: Name}
	if len(a.calls) > 0 {
		res.Finish = memgpt.FinishCalls
	}
	res.Usage = usage(req, &msg)
	if stream != nil {
		streamMessage(&msg, stream)
	}
	return res
}

// callSeed makes the ids of a reply's calls from the request's end and length, so that a conversation repeats none.
func callSeed(req *memgpt.Request) string {
	parts := []string{fmt.Sprint(len(req.Messages))}
	for i := max(0, len(req.Messages)-3); i < len(req.Messages); i++ {
		m := &req.Messages[i]
		parts = append(parts, m.Said(), m.Thoughts())
		for _, c := range m.Calls() {
			parts = append(parts, c.ID, c.Arguments)
		}
		if r, ok := m.Result(); ok {
			parts = append(parts, r.CallID)
		}
	}
	return memgpt.HashKey(parts...)[:12]
}

// encodeArgs writes arguments as a JSON object, keys sorted, text as it is.
func encodeArgs(args map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if args == nil {
		args = map[string]any{}
	}
	if err := enc.Encode(args); err != nil {
		return "{}"
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

// streamPiece is the size of the pieces of a streamed reply, in bytes.
const streamPiece = 24

func streamMessage(msg *memgpt.Message, stream func(memgpt.Delta)) {
	index := 0
	for _, p := range msg.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			pieces(p.Text, func(s string) { stream(memgpt.Delta{Text: s}) })
		case memgpt.Call:
			i := index
			stream(memgpt.Delta{Call: &memgpt.CallDelta{Index: i, ID: p.ID, Name: p.Name}})
			pieces(p.Arguments, func(s string) {
				stream(memgpt.Delta{Call: &memgpt.CallDelta{Index: i, Arguments: s}})
			})
			index++
		}
	}
}

func pieces(s string, each func(string)) {
	for s != "" {
		head := memgpt.CutText(s, streamPiece)
		if head == "" {
			head = s
		}
		each(head)
		s = s[len(head):]
	}
}

// usage estimates the tokens of a request and its reply.
func usage(req *memgpt.Request, msg *memgpt.Message) memgpt.Usage {
	u := memgpt.Usage{Calls: 1, Output: messageCost(msg)}
	for i := range req.Messages {
		u.Input += messageCost(&req.Messages[i])
	}
	for _, t := range req.Tools {
		u.Input += estimate(t.Name) + estimate(t.Description) + estimate(string(t.Parameters)) + 4
	}
	return u
}

func messageCost(m *memgpt.Message) int {
	n := 4 // role and borders of a message
	for _, p := range m.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			n += estimate(p.Text)
		case memgpt.Reasoning:
			n += estimate(p.Text)
		case memgpt.Call:
			n += estimate(p.Name) + estimate(p.Arguments)
		case memgpt.Result:
			n += estimate(p.Text)
		}
	}
	return n
}

// estimate counts the tokens of a text roughly: 4 bytes of ASCII a token, 1.5 tokens a character of Chinese, Japanese or
// Korean, 1 token for any other two characters.
func estimate(s string) int {
	var quarters int
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			quarters++
		case dense(r):
			quarters += 6
		default:
			quarters += 2
		}
	}
	return (quarters + 3) / 4
}

// cutCost returns the longest prefix of s that costs at most n tokens.
func cutCost(s string, n int) string {
	if estimate(s) <= n {
		return s
	}
	lo, hi := 0, len(s)
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if estimate(memgpt.CutText(s, mid)) <= n {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return memgpt.CutText(s, lo)
}
