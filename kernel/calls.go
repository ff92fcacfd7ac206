package kernel

import (
	"encoding/json"
	"fmt"
	"strings"

	"memgpt"
	"memgpt/schema"
)

// maxCalls is how many calls of one reply are run; a longer list is a model gone astray.
const maxCalls = 16

// call is one call of the step under way.
type call struct {
	memgpt.Call
	tool      *offered // nil when unknown
	args      json.RawMessage
	fault     string // why it can't run; "" when it can
	cut       bool   // its arguments were cut off
	endless   bool   // it was made so often that the turn ends
	asked     bool   // request_heartbeat was given
	heartbeat bool   // its value
	text      string
	failed    bool
	again     bool   // it is run anew, after it was done by what somebody else changed meanwhile
	rebased   bool   // it works on blocks as the model saw them, and keeps what others added since
	on        string // ID of the conversation whose answer it waits for
}

// outside reports whether the call has to be committed before it starts.
func (c *call) outside() bool { return c.fault == "" && c.tool.Effect == memgpt.EffectOutside }

// planned is what a reply amounts to: its calls, and the parts of the message that goes into the log.
type planned struct {
	reply *memgpt.Response
	calls []call
	parts memgpt.Parts
}

// plan reads a reply, once.
func (r *run) plan(reply *memgpt.Response) ([]call, memgpt.Parts) {
	if r.planned.reply != reply {
		calls, parts := r.readReply(reply)
		r.planned = planned{reply, calls, parts}
	}
	return r.planned.calls, r.planned.parts
}

// readReply reads the calls of a reply: those made natively, else those written as prose.
func (r *run) readReply(reply *memgpt.Response) ([]call, memgpt.Parts) {
	var parts memgpt.Parts
	var texts []string
	var native []memgpt.Call
	for _, p := range reply.Message.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			texts = append(texts, memgpt.CleanText(p.Text))
		case memgpt.Call:
			native = append(native, p)
		default:
			parts = append(parts, p)
		}
	}
	text := strings.Join(texts, "")
	var calls []call
	for _, c := range native {
		calls = append(calls, r.read(c, reply.Finish == memgpt.FinishLength))
	}
	switch all := text; {
	case reply.Prompted: // they were read from the text by whoever put the functions into the prompt
		for _, c := range native {
			all += "\n" + string(mustJSON(map[string]any{"name": c.Name, "arguments": json.RawMessage(safeArgs(c.Arguments))}))
		}
		calls, text = r.withoutQuoted(calls, native, text, all)
	case len(native) == 0:
		var written []memgpt.Call
		calls, written, text = r.prose(text, reply.Finish == memgpt.FinishLength)
		calls, text = r.withoutQuoted(calls, written, text, all)
	}
	calls = r.distinct(calls)
	if said := r.textPart(text, calls); !blank(said.Text) {
		parts = append(parts, said)
	}
	for i := range calls {
		parts = append(parts, calls[i].Call)
	}
	return calls, parts
}

// prose reads the calls that a model without native calling wrote as text: as they can run, and as they were written.
func (r *run) prose(text string, cut bool) (calls []call, written []memgpt.Call, rest string) {
	found, rest := schema.FindCalls(text, func(name string) bool { return r.ts.byName[name] != nil })
	if len(found) == 0 {
		return nil, nil, text
	}
	for _, f := range found {
		w := memgpt.Call{Name: f.Name, Arguments: f.Arguments}
		c := r.read(w, cut)
		c.cut = c.cut || f.Truncated || f.Open && cut
		calls, written = append(calls, c), append(written, w)
	}
	return calls, written, rest
}

// withoutQuoted looks for calls that were written among other words (rest) and stand word for word in what somebody else
// wrote: they are quotations, else whoever gets the model to repeat a text would have it run. A reply that has no others is
// all text; beside others they are refused.
func (r *run) withoutQuoted(calls []call, written []memgpt.Call, rest, all string) ([]call, string) {
	if blank(rest) {
		return calls, rest
	}
	n := 0
	for i, w := range written {
		if calls[i].Name != memgpt.FuncSendMessage && r.quoted(w) {
			calls[i].fault = "not run: this call stands word for word in what you were sent, so that it was taken for a quotation;" +
				" to make it, write it alone"
			n++
		}
	}
	if n > 0 && n == len(calls) {
		return nil, all
	}
	return calls, rest
}

// quoted reports whether a call stands in a message of the queue that the model did not write.
func (r *run) quoted(c memgpt.Call) bool {
	name, args := unspaced(c.Name), unspaced(c.Arguments)
	if len(args) <= len("{}") {
		return false
	}
	for i := range r.st.Queue {
		m := &r.st.Queue[i].Message
		if m.Role == memgpt.RoleAssistant {
			continue
		}
		if said := unspaced(m.Said()); strings.Contains(said, args) && strings.Contains(said, name) {
			return true
		}
	}
	return false
}

// unspaced is a text without white space, which nobody repeats exactly.
func unspaced(s string) string { return strings.Join(strings.Fields(s), "") }

// textPart decides whether a reply's text is said or thought. In the memgpt protocol text is inner monologue, but a reply
// without a call in a user's turn that has no answer yet is said: it is what a model means that forgot the function. In
// the native protocol text is said, except in a step that only the alert earned.
func (r *run) textPart(text string, calls []call) memgpt.Text {
	if r.tidies() { // nobody is there to be told
		return memgpt.Text{Text: strings.TrimSpace(text), Thought: true}
	}
	said := r.st.Agent.Protocol == memgpt.ProtocolNative && !r.extra
	if r.st.Agent.Protocol != memgpt.ProtocolNative {
		said = len(calls) == 0 && r.userTurn() && !r.spoke()
	}
	for i := range calls {
		if spoken, ok := calls[i].Spoken(); ok && strings.TrimSpace(spoken) == strings.TrimSpace(text) {
			return memgpt.Text{}
		}
	}
	return memgpt.Text{Text: strings.TrimSpace(text), Thought: !said}
}

// read checks one call: a known name, arguments that fit or can be made to fit. cut says that the reply was cut off.
func (r *run) read(c memgpt.Call, cut bool) call {
	out := call{Call: c}
	out.ID = memgpt.CleanText(c.ID)
	out.Name = memgpt.CleanText(c.Name)
	out.tool = r.ts.byName[out.Name]
	if out.tool == nil {
		if near := schema.Closest(out.Name, r.ts.names); near != "" && sameName(near, out.Name) {
			out.Name, out.tool = near, r.ts.byName[near]
		}
	}
	if out.tool == nil {
		out.fault = r.unknown(out.Name)
		out.Arguments = safeArgs(c.Arguments)
		return out
	}
	args, _, err := out.tool.args.Decode(c.Arguments, schema.Options{Function: out.Name, Aliases: out.tool.Aliases, Cut: cut})
	if err != nil {
		fault := schema.AsFault(err)
		out.fault, out.cut = err.Error(), fault != nil && fault.Cut
		out.Arguments = safeArgs(c.Arguments)
		return out
	}
	out.Arguments = string(args)
	out.args = out.takeHeartbeat(args)
	return out
}

// sameName reports whether two names differ in writing only: then the call is meant for it.
func sameName(a, b string) bool {
	plain := func(s string) string {
		if i := strings.LastIndexAny(s, "./:"); i >= 0 {
			s = s[i+1:]
		}
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	return plain(a) == plain(b)
}

func (r *run) unknown(name string) string {
	text := fmt.Sprintf("there is no function %q", memgpt.CutText(name, 80))
	if near := schema.Closest(name, r.ts.names); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return text + " The functions are " + strings.Join(r.ts.names, ", ") + "."
}

// takeHeartbeat reads and removes request_heartbeat.
func (c *call) takeHeartbeat(args json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return args
	}
	raw, ok := members[memgpt.ArgHeartbeat]
	if !ok {
		return args
	}
	c.asked = true
	c.heartbeat = string(raw) == "true"
	delete(members, memgpt.ArgHeartbeat)
	return mustJSON(members)
}

// safeArgs returns arguments that could not be read as a JSON object that any provider takes back.
func safeArgs(raw string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &members) == nil && members != nil {
		return memgpt.CleanText(raw)
	}
	return string(mustJSON(map[string]string{"unreadable": memgpt.CutText(memgpt.CleanText(raw), 200)}))
}

// distinct gives the calls of one reply ids of their own and marks what is not to be run: the second of two equal calls,
// what is beyond the bound, and what was called the same way before in this turn.
func (r *run) distinct(calls []call) []call {
	if len(calls) > maxCalls {
		calls = calls[:maxCalls]
		calls[maxCalls-1].fault = fmt.Sprintf("not run: a reply may make at most %d calls", maxCalls)
	}
	ids, same := map[string]bool{}, map[string]bool{}
	for i := range calls {
		c := &calls[i]
		if c.ID == "" || len(c.ID) > 40 || ids[c.ID] || r.usedID(c.ID) {
			c.ID = strings.ReplaceAll(r.k.cfg.NewID("call"), "-", "")
		}
		ids[c.ID] = true
		key := c.Name + "\x00" + c.Arguments
		if same[key] && c.fault == "" {
			c.fault = "not run: the same call stands before it in this reply"
		}
		same[key] = true
		n := r.repeats(c)
		if c.fault == "" && n >= r.maxRepeats()-1 {
			c.fault = fmt.Sprintf("not run: this very call was made %d times in this turn, with the result above; do something else", n)
		}
		c.endless = n >= r.maxRepeats() // one that can't run is made again for ever too
	}
	return calls
}

func (r *run) maxRepeats() int {
	if n := r.st.Agent.Policy.MaxRepeats; n > 0 {
		return n
	}
	return 3
}

// repeats counts the equal calls of the turn before this step.
func (r *run) repeats(c *call) (n int) {
	for i := range r.st.Queue {
		e := &r.st.Queue[i]
		if e.Turn != r.turn.ID {
			continue
		}
		for _, before := range e.Message.Calls() {
			if before.Name == c.Name && sameArgs(before.Arguments, c.Arguments) {
				n++
			}
		}
	}
	return n
}

// sameArgs reports whether arguments are the same but for the order of their members and request_heartbeat.
func sameArgs(a, b string) bool {
	if a == b {
		return true
	}
	plain := func(args string) string {
		var members map[string]any
		if json.Unmarshal([]byte(args), &members) != nil {
			return args
		}
		delete(members, memgpt.ArgHeartbeat)
		return string(mustJSON(members))
	}
	return plain(a) == plain(b)
}

func (r *run) usedID(id string) bool {
	for i := range r.st.Queue {
		for _, c := range r.st.Queue[i].Message.Calls() {
			if c.ID == id {
				return true
			}
		}
	}
	return false
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
