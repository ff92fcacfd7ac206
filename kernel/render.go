package kernel

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"memgpt"
	"memgpt/calendar"
)

// caps bound how many tokens of one entry are shown, by the counter's encoding. What is longer is shown cut, with its id
// to read on.
type caps struct{ user, assistant, result, results int }

func (w window) caps(factor, scale float64) caps {
	room := scale * float64(w.room()) / factor
	return caps{int(capUser * room), int(capAssistant * room), int(capResult * room), int(capResults * room)}
}

// of returns the cap of an entry. calls is the number of calls in the step that a result belongs to.
func (c caps) of(e *memgpt.Entry, calls int) int {
	switch e.Message.Role {
	case memgpt.RoleAssistant:
		return c.assistant
	case memgpt.RoleTool:
		return min(c.result, c.results/max(calls, 1))
	}
	return c.user
}

// view renders entries for the wire.
type view struct {
	count Counter
	zone  *time.Location
	caps  caps
	cuts  map[cutKey]int // sizes of entries that are shown cut; nil keeps none
}

// cutKey names an entry as it is shown at a cap.
type cutKey struct {
	entry string
	limit int
}

// size returns the tokens of an entry as shown. It remembers the size of the whole in the entry.
func (v *view) size(e *memgpt.Entry, calls int) int {
	if e.Tokens == 0 {
		whole := v.whole(e)
		e.Tokens = v.count.Message(&whole)
	}
	limit := v.caps.of(e, calls)
	if e.Tokens <= limit {
		return e.Tokens
	}
	key := cutKey{e.ID, limit}
	n, known := v.cuts[key]
	if !known {
		m := v.cut(e, limit)
		n = v.count.Message(&m)
		if v.cuts != nil {
			v.cuts[key] = n
		}
	}
	return n
}

// show returns the wire message of an entry.
func (v *view) show(e *memgpt.Entry, calls int) memgpt.Message {
	if v.size(e, calls); e.Tokens <= v.caps.of(e, calls) {
		return v.whole(e)
	}
	return v.cut(e, v.caps.of(e, calls))
}

func (v *view) whole(e *memgpt.Entry) memgpt.Message { return v.render(e, -1) }

// cut renders an entry so that its texts take at most limit tokens together.
func (v *view) cut(e *memgpt.Entry, limit int) memgpt.Message {
	return v.render(e, max(limit-cutNote, minShown))
}

const (
	cutNote  = 60 // tokens for envelope and note of what was cut
	minShown = 8  // tokens of a text that are shown at least
)

func (v *view) render(e *memgpt.Entry, limit int) memgpt.Message {
	m := &e.Message
	switch m.Role {
	case memgpt.RoleAssistant:
		return v.assistant(e, limit)
	case memgpt.RoleTool:
		return v.result(e, limit)
	}
	out := memgpt.Message{Role: memgpt.RoleUser, Type: m.Type, Origin: m.Origin, Author: m.Author}
	parts := memgpt.Parts{memgpt.Text{Text: v.envelope(e, m.Said(), limit)}}
	for _, p := range m.Parts {
		switch p.(type) {
		case memgpt.Image, memgpt.File, memgpt.Unknown:
			if limit < 0 {
				parts = append(parts, p)
			}
		}
	}
	out.Parts = parts
	return out
}

// envelope renders what a user or the system said: one JSON object, so that nothing inside a text can look like an event.
func (v *view) envelope(e *memgpt.Entry, said string, limit int) string {
	kind := e.Message.Type
	if kind == "" {
		kind = memgpt.EventUser
	}
	shown, note := v.shorten(e.ID, said, limit)
	b := make([]byte, 0, len(shown)+128)
	b = append(b, `{"type":`...)
	b = appendString(b, string(kind))
	if e.Message.Author != "" {
		b = append(b, `,"name":`...)
		b = appendString(b, e.Message.Author)
	}
	b = append(b, `,"message":`...)
	b = appendString(b, shown)
	b = append(b, note...)
	b = append(b, `,"time":`...)
	b = appendString(b, calendar.Format(e.Time, v.zone))
	return string(append(b, '}'))
}

func (v *view) result(e *memgpt.Entry, limit int) memgpt.Message {
	res, _ := e.Message.Result()
	status := "OK"
	if res.Failed {
		status = "Failed"
	}
	shown, note := v.shorten(e.ID, res.Text, limit)
	b := make([]byte, 0, len(shown)+96)
	b = append(b, `{"status":"`+status+`","message":`...)
	b = appendString(b, shown)
	b = append(b, note...)
	b = append(b, `,"time":`...)
	b = appendString(b, calendar.Format(e.Time, v.zone))
	res.Text = string(append(b, '}'))
	return memgpt.Message{Role: memgpt.RoleTool, Origin: e.Message.Origin, Parts: memgpt.Parts{res}}
}

func (v *view) assistant(e *memgpt.Entry, limit int) memgpt.Message {
	out := memgpt.Message{Role: memgpt.RoleAssistant, Origin: e.Message.Origin}
	if limit < 0 {
		out.Parts = e.Message.Parts
		return out
	}
	share := max(limit/max(len(e.Message.Parts), 1), minShown)
	for _, p := range e.Message.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			p.Text, _ = v.prefix(p.Text, share)
			out.Parts = append(out.Parts, p)
		case memgpt.Call:
			p.Arguments = v.shortenArgs(e.ID, p.Arguments, share)
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

// shortenArgs shortens the strings of a call's arguments. They stay a JSON object.
func (v *view) shortenArgs(id, args string, limit int) string {
	if v.fits(args, limit) {
		return args
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &members) != nil {
		return "{}"
	}
	short := map[string]any{"cut": "memory_read(id=" + strconv.Quote(id) + ") shows this call whole"}
	share := limit / max(len(members), 1)
	for name, raw := range members {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		if len(short) <= 8 { // more arguments than that are not shown
			short[name], _ = v.prefix(s, share)
		}
	}
	return string(mustJSON(short))
}

// shorten returns the part of a text that is shown, and the members of the envelope that say what is not.
func (v *view) shorten(id, text string, limit int) (shown, note string) {
	if limit < 0 {
		return text, ""
	}
	shown, cut := v.prefix(text, limit)
	if !cut {
		return text, ""
	}
	return shown, fmt.Sprintf(`,"cut":true,"id":%s,"length":%d,"read_on":"memory_read(id, offset=%d)"`,
		appendString(nil, id), utf8.RuneCountInString(text), utf8.RuneCountInString(shown))
}

func (v *view) fits(text string, limit int) bool {
	return len(text) <= limit || len(text) <= 64*limit && v.count.Text(text) <= limit
}

// prefix returns the longest beginning of text, near enough, that takes at most limit tokens.
func (v *view) prefix(text string, limit int) (string, bool) {
	if v.fits(text, limit) {
		return text, false
	}
	part := memgpt.CutText(text, 16*limit)
	for part != "" {
		n := v.count.Text(part)
		if n <= limit {
			break
		}
		part = memgpt.CutText(part, min(len(part)*limit/n, len(part)-1))
	}
	return part, true
}

func mustJSON(v any) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("{}") // cannot happen: strings and maps of strings always encode
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// appendString appends s as a JSON string. Characters beyond ASCII stay as they are: models read escapes badly.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}
