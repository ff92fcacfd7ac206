package openai

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"memgpt"
	"memgpt/internal/wire"
)

// encoder writes the body of a request. It writes JSON by itself: text stands as it is, without \u escapes of anything
// but control characters, and the body is made in one piece of memory, since thousands of them may be under way.
type encoder struct {
	b   []byte
	cfg *Config
	sh  shape
	ids wireIDs

	sent sentFields
}

func newEncoder(req *memgpt.Request, cfg *Config, sh shape) *encoder {
	return &encoder{b: make([]byte, 0, sizeOf(req)), cfg: cfg, sh: sh, ids: wireIDs{short: sh.shortIDs}, sent: sh.sent(cfg, req)}
}

// encode returns the body of a request. The request is not changed, and nothing of it is kept.
func encode(req *memgpt.Request, model string, cfg *Config, sh shape) []byte {
	e := newEncoder(req, cfg, sh)
	e.raw(`{`)
	if model != "" {
		e.raw(`"model":`)
		e.str(model)
		e.raw(`,`)
	}
	sent := e.sent
	e.messages(req.Messages)
	e.tools(req, sent)
	if len(req.Schema) > 0 {
		e.schema(req.Schema)
	}
	switch {
	case sent.maxTokens && sh.completionTokens:
		e.raw(`,"max_completion_tokens":` + strconv.Itoa(req.MaxTokens))
	case sent.maxTokens:
		e.raw(`,"max_tokens":` + strconv.Itoa(req.MaxTokens))
	}
	if sent.stream {
		e.raw(`,"stream":true`)
	}
	if sent.usage {
		e.raw(`,"stream_options":{"include_usage":true}`)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Extra)) {
		e.raw(`,`)
		e.str(name)
		e.raw(`:`)
		e.b = append(e.b, cfg.Extra[name]...)
	}
	e.raw(`}`)
	return e.b
}

// sizeOf guesses the size of a body, a little above it for most texts.
func sizeOf(req *memgpt.Request) int {
	n := 512
	for i := range req.Messages {
		n += 48
		for _, p := range req.Messages[i].Parts {
			switch p := p.(type) {
			case memgpt.Text:
				n += len(p.Text) * 9 / 8
			case memgpt.Call:
				n += 80 + len(p.Name) + len(p.ID) + len(p.Arguments)*9/8
			case memgpt.Result:
				n += 48 + len(p.CallID) + len(p.Text)*9/8
			case memgpt.Image:
				n += 64 + len(p.URL) + len(p.Data)*4/3
			}
		}
	}
	for _, t := range req.Tools {
		n += 80 + len(t.Name) + len(t.Description)*9/8 + len(t.Parameters)
	}
	return n + len(req.Schema)
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }

const hexDigits = "0123456789abcdef"

// str writes a JSON string. NUL is left out and bytes that are no text become U+FFFD, as in memgpt.CleanText.
func (e *encoder) str(s string) {
	e.b = append(e.b, '"')
	e.chars(s)
	e.b = append(e.b, '"')
}

func (e *encoder) chars(s string) {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				e.raw(s[start:i])
				e.raw("\uFFFD")
				start = i + 1
			}
			i += n
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			e.raw(s[start:i])
			e.escape(c)
			start = i + 1
		}
		i++
	}
	e.raw(s[start:])
}

func (e *encoder) escape(c byte) {
	switch c {
	case 0:
	case '"', '\\':
		e.b = append(e.b, '\\', c)
	case '\n':
		e.raw(`\n`)
	case '\r':
		e.raw(`\r`)
	case '\t':
		e.raw(`\t`)
	default:
		e.b = append(e.b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
}

func (e *encoder) messages(list []memgpt.Message) {
	e.raw(`"messages":[`)
	for i := 0; i < len(list); i++ {
		e.bridge(list, i)
		parts := list[i].Parts
		for e.sh.merge && list[i].Role == memgpt.RoleUser && i+1 < len(list) && list[i+1].Role == memgpt.RoleUser {
			i++
			parts = slices.Concat(parts, list[i].Parts)
		}
		e.message(list[i].Role, parts)
	}
	e.b = append(trimComma(e.b), ']')
}

// trimComma takes the comma after the last element away.
func trimComma(b []byte) []byte {
	if b[len(b)-1] == ',' {
		return b[:len(b)-1]
	}
	return b
}

// message writes a message, or several where it holds several results, each with a comma behind.
func (e *encoder) message(role memgpt.Role, parts memgpt.Parts) {
	if role == memgpt.RoleTool {
		e.results(parts, `{"role":"tool","tool_call_id":`, `,"content":`)
		return
	}
	e.raw(`{"role":`)
	e.str(e.roleName(role))
	e.raw(`,"content":`)
	calls := countCalls(parts)
	switch {
	case e.sent.images && role == memgpt.RoleUser && hasImage(parts):
		e.contentParts(parts)
	default:
		e.content(textOf(parts), calls > 0 && role == memgpt.RoleAssistant)
	}
	if role == memgpt.RoleAssistant {
		e.reasoning(parts)
		extras := e.extras(parts)
		e.extra(extras.Message)
		if calls > 0 {
			e.calls(parts, extras.Calls)
		}
	}
	e.raw(`},`)
}

// content writes a text. No content is empty unless there are calls.
func (e *encoder) content(text string, calls bool) {
	switch {
	case text != "":
		e.str(text)
	case calls && e.sh.emptyText:
		e.raw(`""`)
	case calls:
		e.raw(`null`)
	default:
		e.raw(`"(empty)"`)
	}
}

func countCalls(parts memgpt.Parts) int {
	n := 0
	for _, p := range parts {
		if _, ok := p.(memgpt.Call); ok {
			n++
		}
	}
	return n
}

func hasImage(parts memgpt.Parts) bool {
	return slices.ContainsFunc(parts, func(p memgpt.Part) bool {
		_, ok := p.(memgpt.Image)
		return ok
	})
}

// textOf returns the text of parts, with a note for each that has none.
func textOf(parts memgpt.Parts) string {
	var texts []string
	for _, p := range parts {
		if s := partText(p); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}

// partText returns the words that stand for a part: "" for those that have a place of their own on the wire.
func partText(p memgpt.Part) string { return wire.PartText(p, "this model can't see images") }

// contentParts writes content as a list, with images.
func (e *encoder) contentParts(parts memgpt.Parts) {
	e.raw(`[`)
	for _, p := range parts {
		if img, ok := p.(memgpt.Image); ok && e.takes(img) {
			e.raw(`{"type":"image_url","image_url":{"url":`)
			e.image(img)
			e.raw(`}},`)
		} else if s := partText(p); s != "" {
			e.raw(`{"type":"text","text":`)
			e.str(s)
			e.raw(`},`)
		}
	}
	e.b = append(trimComma(e.b), ']')
}

// image writes the address of an image, or its bytes as one.
func (e *encoder) image(img memgpt.Image) {
	e.raw(`"`)
	if img.Data == nil {
		e.chars(img.URL)
	} else {
		mime := img.MIME
		if mime == "" {
			mime = "image/png"
		}
		e.raw("data:")
		e.chars(mime)
		e.raw(";base64,")
		e.b = base64.StdEncoding.AppendEncode(e.b, img.Data)
	}
	e.raw(`"`)
}

func (e *encoder) calls(parts memgpt.Parts, extras map[string]json.RawMessage) {
	e.raw(`,"tool_calls":[`)
	e.ids.begin()
	for _, p := range parts {
		c, ok := p.(memgpt.Call)
		if !ok {
			continue
		}
		e.raw(`{"id":`)
		e.str(e.ids.call(c.ID))
		e.raw(`,"type":"function","function":{"name":`)
		e.str(c.Name)
		e.raw(`,"arguments":`)
		e.arguments(c.Arguments)
		e.raw(`}`)
		e.extra(extras[c.ID])
		e.raw(`},`)
	}
	e.b = append(trimComma(e.b), ']')
}

// arguments writes the arguments of a call. Servers fail at some in the history that are no object, llama.cpp with
// status 500.
func (e *encoder) arguments(args string) {
	if args = memgpt.CleanText(args); !object(args) {
		args = "{}"
	}
	e.str(args)
}

// results writes an item for each result, its id behind begin and its text behind middle. What else is in a message of a
// tool becomes part of the first.
func (e *encoder) results(parts memgpt.Parts, begin, middle string) {
	rest := textOf(parts)
	for _, p := range parts {
		r, ok := p.(memgpt.Result)
		if !ok {
			continue
		}
		text := r.Text
		if rest != "" {
			text, rest = strings.TrimPrefix(text+"\n"+rest, "\n"), ""
		}
		e.raw(begin)
		e.str(e.ids.result(r.CallID))
		e.raw(middle)
		e.content(text, false)
		e.raw(`},`)
	}
}

func (e *encoder) tools(req *memgpt.Request, sent sentFields) {
	if !sent.tools {
		return
	}
	e.raw(`,"tools":[`)
	for _, t := range req.Tools {
		e.raw(`{"type":"function","function":{"name":`)
		e.str(t.Name)
		if t.Description != "" {
			e.raw(`,"description":`)
			e.str(t.Description)
		}
		e.parameters(t.Parameters)
		if sent.strict && strictable(t.Parameters) {
			e.raw(`,"strict":true`)
		}
		e.raw(`}},`)
	}
	e.b = append(trimComma(e.b), ']')
	if sent.choice {
		e.raw(`,"tool_choice":`)
		e.str(e.choice(req.Choice))
	}
}

func (e *encoder) parameters(schema json.RawMessage) {
	e.raw(`,"parameters":`)
	if len(schema) > 0 {
		e.b = append(e.b, schema...)
	} else {
		e.raw(`{"type":"object","properties":{}}`)
	}
}

// schema asks for a reply that fits a JSON schema (OpenAI's structured outputs; llama.cpp, vLLM, SGLang and LM Studio make
// a grammar of it). It is not strict, since OpenAI then takes only schemas without optional properties; the others
// always hold to it.
func (e *encoder) schema(schema json.RawMessage) {
	e.raw(`,"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":false,"schema":`)
	e.b = append(e.b, schema...)
	e.raw(`}}`)
}

// maxID is the longest id of a call that every provider takes (OpenAI refuses longer ones).
const maxID = 40

// wireIDs gives calls and their results ids that are unique in a request and at most maxID characters long. An id that is
// both already stays as it is. The same history gives the same ids, so that prompts stay alike.
type wireIDs struct {
	short   bool                // 9 letters and digits
	used    map[string]int      // how often an id of ours was met
	taken   map[string]bool     // ids on the wire
	pending map[string][]string // ids on the wire that wait for the result, by id of ours
}

// begin starts a message with calls: results refer to the newest message that has them.
func (w *wireIDs) begin() {
	if w.used == nil {
		w.used, w.taken = map[string]int{}, map[string]bool{}
	}
	w.pending = map[string][]string{}
}

func (w *wireIDs) call(id string) string {
	wire := memgpt.CleanText(id)
	for n := w.used[id]; !w.fits(wire) || w.taken[wire]; n++ {
		wire = w.made(id, n)
	}
	w.used[id]++
	w.taken[wire] = true
	w.pending[id] = append(w.pending[id], wire)
	return wire
}

func (w *wireIDs) result(id string) string {
	if list := w.pending[id]; len(list) > 0 {
		w.pending[id] = list[1:]
		return list[0]
	}
	if wire := memgpt.CleanText(id); w.fits(wire) {
		return wire
	}
	return w.made(id, 0)
}

// fits reports whether the provider takes an id.
func (w *wireIDs) fits(wire string) bool {
	if w.short {
		return shortID.MatchString(wire)
	}
	return wire != "" && utf8.RuneCountInString(wire) <= maxID
}

// made returns the nth id that the provider takes for one of ours.
func (w *wireIDs) made(id string, n int) string {
	hash := memgpt.HashKey(id, strconv.Itoa(n))
	if w.short {
		return hash[:9]
	}
	return "call_" + hash
}

// shortID is the form of ids that Mistral takes.
var shortID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
