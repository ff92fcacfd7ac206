package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"memgpt"
)

// Types of the items that an answer of the Responses API consists of.
const (
	itemMessage   = "message"
	itemCall      = "function_call"
	itemReasoning = "reasoning"
)

// responseItems gathers the items of an answer of the Responses API, in their order.
type responseItems struct {
	list []*responseItem
	by   map[string]*responseItem
}

// responseItem is an item under way.
type responseItem struct {
	kind   string
	text   strings.Builder // of a message, or of reasoning as far as it is shown
	join   joiner
	call   *call
	early  []byte          // arguments that came before the name of the call
	raw    json.RawMessage // of reasoning, as it came
	closed bool            // the whole item came
}

// responseEvent is an event of a stream, or a whole answer: the fields of both that matter.
type responseEvent struct {
	Type     label           `json:"type"`
	Object   label           `json:"object"`
	Index    *int            `json:"output_index"`
	ItemID   label           `json:"item_id"`
	Summary  int             `json:"summary_index"`
	Delta    arguments       `json:"delta"`
	Args     arguments       `json:"arguments"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
}

// wholeResponse is an answer as its last event has it.
type wholeResponse struct {
	Model      label             `json:"model"`
	Status     label             `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Usage      *usage            `json:"usage"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason label `json:"reason"`
	} `json:"incomplete_details"`
}

// wholeItem is an item as it is when it is whole.
type wholeItem struct {
	Type    label     `json:"type"`
	ID      label     `json:"id"`
	CallID  label     `json:"call_id"`
	Name    label     `json:"name"`
	Args    arguments `json:"arguments"`
	Content []struct {
		Text    content `json:"text"`
		Refusal content `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text content `json:"text"`
	} `json:"summary"`
}

// lenient reads JSON; a field of an unexpected type is left out.
func lenient(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return nil
	}
	return err
}

// take takes in one event, or a whole answer.
func (ri *responseItems) take(r *reply, kind string, data []byte) (*fault, error) {
	var ev responseEvent
	if err := lenient(data, &ev); err != nil {
		return nil, err
	}
	if ev.Type == "" {
		ev.Type = label(kind)
	}
	switch {
	case ev.Object == "response" || r.whole && ev.Type != "error" && !set(ev.Error):
		return ri.end(r, data)
	case ev.Type == "error" || ev.Type == "" && set(ev.Error):
		return faultInStream(r.call(), data), nil
	}
	r.pieces++
	switch ev.Type {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return ri.end(r, ev.Response)
	case "response.output_item.added":
		return nil, ri.open(r, ri.key(&ev), ev.Item)
	case "response.output_item.done":
		return nil, ri.close(r, ri.key(&ev), ev.Item)
	}
	ri.piece(r, &ev)
	return nil, nil
}

// piece takes in a piece of an item.
func (ri *responseItems) piece(r *reply, ev *responseEvent) {
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		ri.item(ri.key(ev), itemMessage).say(r, ev.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		ri.item(ri.key(ev), itemReasoning).say(r, ev.Delta)
	case "response.reasoning_summary_part.added":
		if it := ri.item(ri.key(ev), itemReasoning); ev.Summary > 0 && it.text.Len() > 0 {
			it.say(r, []byte("\n\n"))
		}
	case "response.function_call_arguments.delta":
		if it := ri.item(ri.key(ev), itemCall); it.kind == itemCall {
			it.argue(r, ev.Delta)
		}
	case "response.function_call_arguments.done":
		if it := ri.item(ri.key(ev), itemCall); it.kind == itemCall && it.call.args.Len() == 0 {
			it.argue(r, ev.Args)
		}
	}
}

// key tells items apart: by their place, or by their id where a server leaves the place out.
func (ri *responseItems) key(ev *responseEvent) string {
	if ev.Index != nil {
		return strconv.Itoa(*ev.Index)
	}
	if ev.ItemID == "" {
		var it wholeItem
		if lenient(ev.Item, &it) == nil {
			return "id " + string(it.ID)
		}
	}
	return "id " + string(ev.ItemID)
}

// item returns the item of a key, a new one if there is none.
func (ri *responseItems) item(key, kind string) *responseItem {
	if it := ri.by[key]; it != nil {
		return it
	}
	it := &responseItem{kind: kind}
	if kind == itemCall {
		it.call = &call{}
	}
	if ri.by == nil {
		ri.by = map[string]*responseItem{}
	}
	ri.by[key] = it
	ri.list = append(ri.list, it)
	return it
}

// say takes in a piece of text of a message or of reasoning.
func (it *responseItem) say(r *reply, piece []byte) {
	s := it.join.push(piece)
	switch {
	case it.kind == itemCall:
	case it.kind == itemReasoning:
		it.text.WriteString(s)
		r.pass(s, "")
	default:
		it.text.WriteString(s)
		r.pass("", s)
	}
}

// argue takes in a piece of a call's arguments.
func (it *responseItem) argue(r *reply, piece []byte) {
	if it.call.name == "" {
		it.early = append(it.early, piece...)
		return
	}
	if s := it.call.join.push(piece); s != "" {
		it.enter(r)
		r.calls.pass(r, it.call, s)
	}
}

// enter gives a call its place among the calls.
func (it *responseItem) enter(r *reply) {
	for _, c := range r.calls.list {
		if c == it.call {
			return
		}
	}
	it.call.at = len(r.calls.list)
	r.calls.list = append(r.calls.list, it.call)
}

// open takes in the beginning of an item.
func (ri *responseItems) open(r *reply, key string, raw json.RawMessage) error {
	var whole wholeItem
	if err := lenient(raw, &whole); err != nil {
		return nil // an item that can't be read is none
	}
	switch kind := string(whole.Type); kind {
	case itemMessage, itemReasoning:
		ri.item(key, kind)
	case itemCall:
		it := ri.item(key, kind)
		if it.kind == itemCall && !it.call.opened {
			it.call.id, it.call.name = string(whole.CallID), string(whole.Name)
			it.enter(r)
			it.late(r)
		}
	}
	return nil
}

// late takes in what came before the name.
func (it *responseItem) late(r *reply) {
	if early := it.early; it.call.name != "" && early != nil {
		it.early = nil
		it.argue(r, early)
	}
}

// close takes in a whole item: what of it did not come in pieces.
func (ri *responseItems) close(r *reply, key string, raw json.RawMessage) error {
	if err := ri.open(r, key, raw); err != nil {
		return err
	}
	var whole wholeItem
	it := ri.by[key]
	if it == nil || it.closed || lenient(raw, &whole) != nil || it.kind != string(whole.Type) {
		return nil
	}
	it.closed = true
	switch it.kind {
	case itemMessage:
		if it.text.Len() == 0 {
			for _, c := range whole.Content {
				it.say(r, append(c.Text.text, c.Refusal.text...))
			}
		}
	case itemReasoning:
		it.raw = json.RawMessage(memgpt.CleanText(string(raw))) // as it came, but for bytes that are no text
		if it.text.Len() == 0 {
			it.say(r, shown(&whole))
		}
	case itemCall:
		if it.call.args.Len() == 0 && it.early == nil {
			it.argue(r, whole.Args)
		}
	}
	return nil
}

// shown returns what a whole item of reasoning shows of it: its summary, or the reasoning itself as open models give it.
func shown(whole *wholeItem) []byte {
	var texts [][]byte
	for _, s := range whole.Summary {
		texts = append(texts, s.Text.text)
	}
	if len(texts) == 0 {
		for _, c := range whole.Content {
			texts = append(texts, c.Text.text)
		}
	}
	return bytes.Join(texts, []byte("\n\n"))
}

// end takes in the whole answer at the end.
func (ri *responseItems) end(r *reply, data []byte) (*fault, error) {
	var whole wholeResponse
	if err := lenient(data, &whole); err != nil {
		return nil, err
	}
	if whole.Usage != nil && whole.Usage.tokens() != (memgpt.Usage{}) {
		r.usage = whole.Usage.tokens()
	}
	if whole.Model != "" {
		r.model = string(whole.Model)
	}
	if whole.Status == "failed" || whole.Status == "cancelled" || set(whole.Error) {
		if !set(whole.Error) {
			return down("%s: the answer was %s without an explanation", r.call(), whole.Status), nil
		}
		return faultInStream(r.call(), whole.Error), nil
	}
	if r.whole && whole.Output == nil {
		return down("%s: the answer has no output: %s", r.call(), memgpt.CutText(clean(data), 200)), nil
	}
	for i, raw := range whole.Output {
		if err := ri.close(r, ri.keyOf(i, raw), raw); err != nil {
			return nil, err
		}
	}
	r.finish = "stop"
	if whole.Status == "incomplete" {
		r.finish = orLength(string(whole.Incomplete.Reason))
	}
	r.done = true
	return nil, nil
}

// keyOf returns the key of an item of the whole answer, which may have come under its id.
func (ri *responseItems) keyOf(i int, raw json.RawMessage) string {
	var it wholeItem
	if lenient(raw, &it) == nil && ri.by["id "+string(it.ID)] != nil {
		return "id " + string(it.ID)
	}
	return strconv.Itoa(i)
}

// orLength returns the reason why an answer is incomplete. One that names none was cut.
func orLength(reason string) string {
	if reason == "" {
		return "length"
	}
	return reason
}

// flush passes on what was held back.
func (ri *responseItems) flush(r *reply) {
	for _, it := range ri.list {
		if it.early != nil { // its name never came
			it.enter(r)
			r.calls.pass(r, it.call, it.call.join.push(it.early))
		}
		s := it.join.flush()
		if s == "" {
			continue
		}
		it.text.WriteString(s)
		if it.kind == itemReasoning {
			r.pass(s, "")
		} else {
			r.pass("", s)
		}
	}
}

// parts returns the parts of the answer in the order of its items.
func (ri *responseItems) parts() memgpt.Parts {
	var parts memgpt.Parts
	for _, it := range ri.list {
		switch {
		case it.kind == itemReasoning && (it.text.Len() > 0 || it.raw != nil):
			parts = append(parts, memgpt.Reasoning{Text: it.text.String(), Provider: providerName, Data: it.raw})
		case it.kind == itemMessage && it.text.Len() > 0:
			parts = append(parts, memgpt.Text{Text: it.text.String()})
		case it.kind == itemCall && it.call.opened:
			parts = append(parts, memgpt.Call{ID: it.call.id, Name: it.call.name, Arguments: it.call.args.String()})
		}
	}
	return parts
}
