package sqlite

import (
	"unicode/utf8"

	"memgpt"
)

// message encodes a message as encoding/json does, text as it is. Messages are the greater part of what a step encodes,
// and by reflection and a Marshaler inside of it each would cost as much as a row.
func (es *encoders) message(m *memgpt.Message, what, id string) (string, error) {
	b := make([]byte, 0, 256)
	b = appendField(append(b, '{'), "role", string(m.Role))
	for _, f := range [...][2]string{{"type", string(m.Type)}, {"author", m.Author}, {"origin", string(m.Origin)}} {
		if f[1] != "" {
			b = appendField(append(b, ','), f[0], f[1])
		}
	}
	b = append(b, `,"parts":[`...)
	for i, p := range m.Parts {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = es.appendPart(b, p, what, id); err != nil {
			return "", err
		}
	}
	b = append(b, ']')
	if m.Session != "" {
		b = appendField(append(b, ','), "session", m.Session)
	}
	return string(append(b, '}')), nil
}

func (es *encoders) appendPart(b []byte, p memgpt.Part, what, id string) ([]byte, error) {
	switch p := p.(type) {
	case memgpt.Text:
		b = appendField(append(b, `{"text":{`...), "text", p.Text)
		if p.Thought {
			b = append(b, `,"thought":true`...)
		}
	case memgpt.Call:
		b = appendField(append(b, `{"call":{`...), "id", p.ID)
		b = appendField(append(b, ','), "name", p.Name)
		b = appendField(append(b, ','), "arguments", p.Arguments)
	case memgpt.Result:
		b = appendField(append(b, `{"result":{`...), "call_id", p.CallID)
		b = appendField(append(b, ','), "name", p.Name)
		b = appendField(append(b, ','), "text", p.Text)
		if p.Failed {
			b = append(b, `,"failed":true`...)
		}
	default:
		list, err := es.json(memgpt.Parts{p}, what, id)
		if err != nil {
			return nil, err
		}
		return append(b, list[1:len(list)-1]...), nil
	}
	return append(b, "}}"...), nil
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(append(b, '"'), name...), `":`...)
	return appendString(b, value)
}

const hexDigits = "0123456789abcdef"

// appendString encodes a string. U+2028 and U+2029 are escaped as encoding/json does; what is no UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if c >= utf8.RuneSelf && r != '\u2028' && r != '\u2029' && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		b = appendEscape(append(b, s[from:i]...), r)
		i += n
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	case utf8.RuneError:
		return append(b, "\ufffd"...)
	}
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// event encodes an event: its message, and what else is kept of it.
func (es *encoders) event(e *memgpt.Event) (string, error) {
	message, err := es.message(&e.Message, "event", e.ID)
	if err != nil {
		return "", err
	}
	rest, err := es.json((*eventRow)(e), "event", e.ID)
	if err != nil {
		return "", err
	}
	if rest != "{}" {
		rest = "," + rest[1:]
	} else {
		rest = "}"
	}
	return `{"message":` + message + rest, nil
}

func decodeEvent(data string) (memgpt.Event, error) {
	var row struct {
		eventRow
		Message memgpt.Message `json:"message"`
	}
	err := decode(data, &row, "event")
	e := memgpt.Event(row.eventRow)
	e.Message = row.Message
	return e, err
}
