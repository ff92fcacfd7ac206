package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"memgpt"
	"memgpt/internal/wire"
)

// Words that stand where the API wants a message and there is none.
const (
	began   = "(The conversation goes on.)"
	goOn    = "(Go on.)"
	missing = "no result is known"
)

// turn is a message as the API wants it: what one side said until the other spoke.
type turn struct {
	assistant bool
	results   []sdk.ToolResultBlockParam // of the calls of the turn before, in their order
	blocks    []sdk.ContentBlockParamUnion
	calls     []sdk.ContentBlockParamUnion
}

// history gathers turns from messages: roles alternate, a user's comes first and last, every call is answered right after
// it, and nothing is empty.
type history struct {
	thoughts bool
	turns    []*turn
	ids      wireIDs
	names    []string // of functions that were called
}

// at returns the turn that a side's next words belong to.
func (h *history) at(assistant bool) *turn {
	if n := len(h.turns); n > 0 && h.turns[n-1].assistant == assistant {
		return h.turns[n-1]
	}
	h.turns = append(h.turns, &turn{assistant: assistant})
	return h.turns[len(h.turns)-1]
}

// add takes in a message. One without content leaves no trace, so that those around it join.
func (h *history) add(m *memgpt.Message) {
	if m.Role == memgpt.RoleAssistant {
		h.addReply(m.Parts)
		return
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case memgpt.Result:
			h.addResult(&p)
		case memgpt.Image:
			t := h.at(false)
			t.blocks = append(t.blocks, image(&p))
		default:
			if text := memgpt.CleanText(partText(p)); strings.TrimSpace(text) != "" {
				t := h.at(false)
				t.blocks = append(t.blocks, sdk.NewTextBlock(text))
			}
		}
	}
}

// addReply takes in what the model said. Thinking stands before the calls that it led to.
func (h *history) addReply(parts memgpt.Parts) {
	var blocks, calls []sdk.ContentBlockParamUnion
	if n := len(h.turns); n == 0 || !h.turns[n-1].assistant {
		h.ids.begin()
	}
	for _, p := range parts {
		switch p := p.(type) {
		case memgpt.Reasoning:
			if h.thoughts && p.Provider == provider && thought(p.Data) {
				blocks = append(blocks, param.Override[sdk.ContentBlockParamUnion](json.RawMessage(bytes.Clone(p.Data))))
			}
		case memgpt.Call:
			calls = append(calls, h.call(&p))
		default:
			if text := memgpt.CleanText(partText(p)); strings.TrimSpace(text) != "" {
				blocks = append(blocks, sdk.NewTextBlock(text))
			}
		}
	}
	for len(calls) == 0 && len(blocks) > 0 && blocks[len(blocks)-1].OfText == nil {
		blocks = blocks[:len(blocks)-1] // thinking can't end a message
	}
	if len(blocks)+len(calls) == 0 {
		return
	}
	t := h.at(true)
	t.blocks, t.calls = append(t.blocks, blocks...), append(t.calls, calls...)
}

// thought reports whether data is a block of thinking as the API gave it.
func thought(data json.RawMessage) bool {
	var block struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(data, &block) == nil && (block.Type == "thinking" || block.Type == "redacted_thinking")
}

func (h *history) call(c *memgpt.Call) sdk.ContentBlockParamUnion {
	name := wireName(c.Name)
	if !slices.Contains(h.names, name) {
		h.names = append(h.names, name)
	}
	args := strings.TrimSpace(memgpt.CleanText(c.Arguments))
	if !strings.HasPrefix(args, "{") || !json.Valid([]byte(args)) {
		args = "{}" // the API takes objects alone
	}
	return sdk.NewToolUseBlock(h.ids.call(c.ID), json.RawMessage(args), name)
}

// addResult takes in a result. One whose call isn't there is told in words, since the API refuses it otherwise.
func (h *history) addResult(r *memgpt.Result) {
	t := h.at(false)
	text := memgpt.CleanText(r.Text)
	id, ok := h.ids.result(r.CallID)
	if !ok {
		t.blocks = append(t.blocks, sdk.NewTextBlock("[result of "+memgpt.CleanText(r.Name)+"] "+text))
		return
	}
	t.results = append(t.results, result(id, text, r.Failed))
}

func result(id, text string, failed bool) sdk.ToolResultBlockParam {
	b := sdk.ToolResultBlockParam{ToolUseID: id}
	if strings.TrimSpace(text) != "" {
		b.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: text}}}
	}
	if failed {
		b.IsError = sdk.Bool(true)
	}
	return b
}

// finish returns the turns.
func (h *history) finish() []*turn {
	if len(h.turns) == 0 || h.turns[0].assistant {
		h.turns = slices.Insert(h.turns, 0, &turn{blocks: []sdk.ContentBlockParamUnion{sdk.NewTextBlock(began)}})
	}
	for i := 0; i < len(h.turns); i++ {
		t := h.turns[i]
		if !t.assistant || len(t.calls) == 0 {
			continue
		}
		if i+1 == len(h.turns) {
			h.turns = append(h.turns, &turn{})
		}
		h.turns[i+1].answer(t.calls)
	}
	if last := h.turns[len(h.turns)-1]; last.assistant {
		h.turns = append(h.turns, &turn{blocks: []sdk.ContentBlockParamUnion{sdk.NewTextBlock(goOn)}})
	}
	return h.turns
}

// answer brings results into the order of the calls, and adds those that are missing.
func (t *turn) answer(calls []sdk.ContentBlockParamUnion) {
	ordered := make([]sdk.ToolResultBlockParam, 0, len(calls))
	for _, c := range calls {
		i := slices.IndexFunc(t.results, func(r sdk.ToolResultBlockParam) bool { return r.ToolUseID == c.OfToolUse.ID })
		if i < 0 {
			ordered = append(ordered, result(c.OfToolUse.ID, missing, true))
		} else {
			ordered = append(ordered, t.results[i])
		}
	}
	t.results = ordered
}

// param returns the message of a turn: results, then what else was said; what was said, then the calls.
func (t *turn) param() sdk.MessageParam {
	var content []sdk.ContentBlockParamUnion
	for i := range t.results {
		content = append(content, sdk.ContentBlockParamUnion{OfToolResult: &t.results[i]})
	}
	content = append(append(content, t.blocks...), t.calls...)
	if t.assistant {
		return sdk.NewAssistantMessage(content...)
	}
	return sdk.NewUserMessage(content...)
}

// markable returns the place of a cache breakpoint at the last block of a turn that can have one.
func (t *turn) markable() *sdk.CacheControlEphemeralParam {
	for _, list := range [][]sdk.ContentBlockParamUnion{t.calls, t.blocks} {
		for _, b := range slices.Backward(list) {
			if at := b.GetCacheControl(); at != nil {
				return at
			}
		}
	}
	if n := len(t.results); n > 0 {
		return &t.results[n-1].CacheControl
	}
	return nil
}

// stubs describes the functions that were called, for requests without tools: the API wants calls in the history to have
// a definition.
func (h *history) stubs() []sdk.ToolUnionParam {
	var list []sdk.ToolUnionParam
	for _, name := range slices.Sorted(slices.Values(h.names)) {
		list = append(list, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{Name: name, InputSchema: schema(nil)}})
	}
	return list
}

// imageTypes are those that the API takes (its guide to vision, 2026-11).
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// image shows an image, or names it in words where the API can't take it.
func image(img *memgpt.Image) sdk.ContentBlockParamUnion {
	data, mime := img.Data, img.MIME
	if data == nil && strings.HasPrefix(img.URL, "data:") {
		mime, data = readDataURL(img.URL)
	}
	if data == nil && (strings.HasPrefix(img.URL, "https://") || strings.HasPrefix(img.URL, "http://")) {
		return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: memgpt.CleanText(img.URL)})
	}
	if mime == "" {
		mime = http.DetectContentType(data)
	}
	if len(data) == 0 || !slices.Contains(imageTypes, mime) {
		return sdk.NewTextBlock(memgpt.CleanText(partText(*img)))
	}
	return sdk.NewImageBlockBase64(mime, base64.StdEncoding.EncodeToString(data))
}

// readDataURL reads a data URL of base64 (RFC 2397).
func readDataURL(s string) (mime string, data []byte) {
	head, body, _ := strings.Cut(strings.TrimPrefix(s, "data:"), ",")
	mime, ok := strings.CutSuffix(head, ";base64")
	if !ok {
		return "", nil
	}
	data, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return "", nil
	}
	return mime, data
}

// partText returns a text, or the words that stand for a part that is not shown. "" is for those with a place of their
// own on the wire.
func partText(p memgpt.Part) string {
	return wire.PartText(p, "its form is not one that this model takes")
}

// maxName is the longest name of a function that the API takes.
const maxName = 128

// wireName returns a name that the API takes: letters, digits, _ and -. Models sometimes make others up, and those stand
// in the history.
func wireName(name string) string {
	name = strings.Map(wireRune, name)
	if name == "" {
		return "unknown"
	}
	return name[:min(len(name), maxName)]
}

// wireRune replaces what may not stand in a name or an id by _.
func wireRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
		return r
	}
	return '_'
}

// maxID bounds ids on the wire.
const maxID = 64

// wireIDs gives calls ids that the API takes, unique in a request, and finds those of their results. An id that is fit
// stays as it is; the same history gives the same ids.
type wireIDs struct {
	used    map[string]int      // how often an id of ours was met
	taken   map[string]bool     // ids on the wire
	pending map[string][]string // ids on the wire that wait for a result, by id of ours
}

// begin starts a turn of the model: results belong to the newest one.
func (w *wireIDs) begin() {
	if w.used == nil {
		w.used, w.taken = map[string]int{}, map[string]bool{}
	}
	w.pending = map[string][]string{}
}

func (w *wireIDs) call(id string) string {
	wire := id
	for n := w.used[id]; wire == "" || len(wire) > maxID || wire != strings.Map(wireRune, wire) || w.taken[wire]; n++ {
		wire = "call_" + memgpt.HashKey(id, strconv.Itoa(n))
	}
	w.used[id]++
	w.taken[wire] = true
	w.pending[id] = append(w.pending[id], wire)
	return wire
}

func (w *wireIDs) result(id string) (string, bool) {
	list := w.pending[id]
	if len(list) == 0 {
		return "", false
	}
	w.pending[id] = list[1:]
	return list[0], true
}
