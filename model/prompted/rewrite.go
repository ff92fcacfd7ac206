package prompted

import (
	"bytes"
	"encoding/json"
	"strings"

	"memgpt"
)

// rewritten returns the request for the model beneath: no functions, no calls and no results but as text, and users and
// assistant in turn. It lets go of req's messages where they can be made again.
func rewritten(req *memgpt.Request, f *functions, mode Mode) *memgpt.Request {
	inner := *req
	inner.Tools, inner.Choice = nil, memgpt.ChoiceAuto
	if f != nil && mode == Constrained {
		inner.Schema = f.schema(req.Choice)
	}
	inner.Again = func() []memgpt.Message {
		req.Restore()
		msgs := rewriteAll(req.Messages, f, mode)
		req.Release()
		return msgs
	}
	inner.Messages = inner.Again()
	return &inner
}

// opening is the user's turn before a queue that begins with the assistant's.
const opening = `{"type":"notice","message":"The conversation goes on."}`

func rewriteAll(msgs []memgpt.Message, f *functions, mode Mode) []memgpt.Message {
	out := make([]memgpt.Message, 0, len(msgs)+1)
	if f != nil && (len(msgs) == 0 || msgs[0].Role != memgpt.RoleSystem) {
		out = append(out, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, f.prompt(mode)))
	}
	for i := range msgs {
		m := msgs[i] // a copy: the request is only lent
		switch {
		case m.Role == memgpt.RoleAssistant:
			m.Parts = spoken(&msgs[i], f, mode)
		case m.Role == memgpt.RoleTool:
			m.Role, m.Parts = memgpt.RoleUser, told(m.Parts)
		case m.Role == memgpt.RoleSystem && i == 0:
			if f != nil {
				m.Parts = append(memgpt.Parts{memgpt.Text{Text: f.prompt(mode) + "\n"}}, m.Parts...)
			}
			m.Parts = joined(nil, m.Parts)
			out = append(out, m)
			continue
		case m.Role == memgpt.RoleSystem:
			m.Role = memgpt.RoleUser
		}
		if len(m.Parts) > 0 {
			out = appendTurn(out, m)
		}
	}
	return out
}

// appendTurn appends a message, to the last one where that is of the same side: many templates want them in turn.
func appendTurn(out []memgpt.Message, m memgpt.Message) []memgpt.Message {
	n := len(out)
	if n > 0 && out[n-1].Role == m.Role {
		out[n-1].Parts = joined(out[n-1].Parts, m.Parts)
		return out
	}
	if m.Role == memgpt.RoleAssistant && (n == 0 || out[n-1].Role == memgpt.RoleSystem) {
		out = append(out, memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginSystem, opening))
	}
	m.Parts = joined(nil, m.Parts)
	return append(out, m)
}

// joined appends parts, texts that follow each other as one.
func joined(to, parts memgpt.Parts) memgpt.Parts {
	for _, p := range parts {
		t, isText := p.(memgpt.Text)
		if n := len(to); isText && n > 0 {
			if before, ok := to[n-1].(memgpt.Text); ok {
				to[n-1] = memgpt.Text{Text: before.Text + "\n" + t.Text}
				continue
			}
		}
		to = append(to, p)
	}
	return to
}

// spoken returns what the assistant said and called, as it is to write it itself. A message of nothing has no parts.
func spoken(m *memgpt.Message, f *functions, mode Mode) memgpt.Parts {
	var others memgpt.Parts
	var said, calls []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			if strings.TrimSpace(p.Text) != "" {
				said = append(said, p.Text)
			}
		case memgpt.Call:
			calls = append(calls, callText(p))
		default:
			others = append(others, p)
		}
	}
	if len(said)+len(calls) == 0 {
		return nil
	}
	text := strings.Join(append(said, calls...), "\n")
	if f != nil && mode == Constrained {
		text = `{"` + f.said + `":` + jsonText(strings.Join(said, "\n")) + `,"calls":[` + strings.Join(calls, ",") + `]}`
	}
	return append(others, memgpt.Text{Text: text})
}

// told returns the results of calls as events, in which no text can pass for another event.
func told(parts memgpt.Parts) (out memgpt.Parts) {
	for _, p := range parts {
		if r, ok := p.(memgpt.Result); ok {
			p = memgpt.Text{Text: `{"type":"function_result","of":` + jsonText(r.Name) + `,"result":` + objectOr(r.Text, jsonText(r.Text)) + `}`}
		}
		out = append(out, p)
	}
	return out
}

// callText is a call as models are asked to write it.
func callText(c memgpt.Call) string {
	return `{"name":` + jsonText(c.Name) + `,"arguments":` + objectOr(c.Arguments, "{}") + `}`
}

// objectOr returns s on one line if it is a JSON object, else another text.
func objectOr(s, other string) string {
	var b bytes.Buffer
	if !strings.HasPrefix(strings.TrimSpace(s), "{") || json.Compact(&b, []byte(s)) != nil {
		return other
	}
	return b.String()
}

// jsonText is a JSON string with its characters as they are.
func jsonText(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(memgpt.CleanText(s)) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
