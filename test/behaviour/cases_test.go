package behaviour

import (
	"encoding/json"
	"fmt"
	"strings"

	"memgpt"
	"memgpt/model/script"
)

// answer is one reply of a model: by native calls, and the same as text. What is empty is rendered from native.
type answer struct {
	native      script.Reply
	prompted    string
	constrained string
}

// behaviour is what a model does in the turn of one message of a user, and what must come of it.
type behaviour struct {
	name     string
	protocol memgpt.Protocol
	answers  []answer
	want     effects
}

// noIDs reports whether its calls have no ids.
func (b *behaviour) noIDs() bool { return b.name == withoutIDs }

// withoutIDs is the behaviour of servers that name no calls.
const withoutIDs = "calls without ids"

// broken reports whether a native call of it has arguments that are no JSON object, which some protocols can't have.
func (b *behaviour) broken() bool {
	for _, a := range b.answers {
		for _, p := range a.native.Parts {
			var object map[string]json.RawMessage
			if c, ok := p.(memgpt.Call); ok && json.Unmarshal([]byte(c.Arguments), &object) != nil {
				return true
			}
		}
	}
	return false
}

func plain(replies ...script.Reply) (answers []answer) {
	for _, r := range replies {
		answers = append(answers, answer{native: r})
	}
	return answers
}

// written is a model that writes this text whatever way it is asked.
func written(text string) answer {
	return answer{native: script.Text(text), prompted: text, constrained: text}
}

func cutOff(r script.Reply) script.Reply {
	r.Finish = memgpt.FinishLength
	return r
}

func refused(text string) script.Reply {
	r := script.Text(text)
	r.Finish = memgpt.FinishFilter
	return r
}

func withID(id string, r script.Reply) script.Reply {
	c := r.Parts[0].(memgpt.Call)
	c.ID = id
	r.Parts[0] = c
	return r
}

func remember(text string) script.Reply {
	return script.Call("core_memory_append", "label", "human", "content", text)
}

const (
	jsonCall   = `{"name": "send_message", "arguments": {"message": "hi"}}`
	sourceCode = "printf(\"%d\\n\", a[\"x\"]);\n\tif (a < b && c > d) { return '\\''; } // \u2028 é 🍷"
)

var large = strings.Repeat("Forty kilobytes of <notes> with \"quotes\" and 中文. ", 800)

// behaviours are all that models are known to do.
var behaviours = []behaviour{
	{"a call", "", plain(script.Say("hi")), effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"two calls", "", plain(script.Calls(remember("drinks tea"), script.Say("noted"))),
		effects{Said: []string{"noted"}, Human: "drinks tea", Steps: 1, Stop: memgpt.StopEnd}},
	{"content and call", "", plain(script.Calls(script.Text("They greet me."), script.Say("hi"))), effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"the same as content and call", "", plain(script.Calls(script.Text("hi"), script.Say("hi"))), effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"a heartbeat", "", plain(remember("drinks tea").Heartbeat(), script.Say("noted")),
		effects{Said: []string{"noted"}, Human: "drinks tea", Steps: 2, Stop: memgpt.StopEnd}},
	{"prose without a call", "", plain(script.Text("Hi there!")), effects{Said: []string{"Hi there!"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"prose in the native protocol", memgpt.ProtocolNative, plain(script.Calls(script.Text("One moment."), remember("drinks tea")), script.Text("Noted.")),
		effects{Said: []string{"One moment.", "Noted."}, Human: "drinks tea", Steps: 2, Stop: memgpt.StopEnd}},
	{"silence", "", plain(script.Call("yield")), effects{Steps: 1, Stop: memgpt.StopSilent}},

	{"a call in prose", "", []answer{written("I will greet them: " + jsonCall + " That should do.")}, effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"a call in a fence", "", []answer{written("I will greet them.\n```json\n" + jsonCall + "\n```")}, effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"a call between tags", "", []answer{written("<tool_call>\n" + jsonCall + "\n</tool_call>")}, effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"a Pythonic call", "", []answer{written(`[core_memory_append(label="human", content="drinks tea"), send_message(message="noted")]`)},
		effects{Said: []string{"noted"}, Human: "drinks tea", Steps: 1, Stop: memgpt.StopEnd}},
	{"an invented result", "", []answer{written(`{"function": "core_memory_append", "params": {"label": "human", "content": "drinks tea"}}` + "\n" + jsonCall +
		"\nFUNCTION RETURN: {\"status\": \"OK\"}\n" + strings.Replace(jsonCall, "hi", "what follows", 1))},
		effects{Said: []string{"hi"}, Human: "drinks tea", Steps: 1, Stop: memgpt.StopEnd}},
	{"an invented event", "", []answer{written(jsonCall + "\n" + `{"type": "function_result", "of": "send_message", "result": {"status": "OK"}}` + "\n" +
		`{"type": "user_message", "message": "thanks"}` + "\n" + strings.Replace(jsonCall, "hi", "what follows", 1))},
		effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},

	{"a name in another spelling", "", plain(script.Call("functions.sendMessage", "message", "hi")), effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"a name that does not exist", "", plain(script.Call("sing", "song", "x"), script.Say("hi")), effects{Said: []string{"hi"}, Steps: 2, Stop: memgpt.StopEnd}},
	{"a block that does not exist", "", plain(script.Call("core_memory_append", "label", "humans", "content", "x"), remember("drinks tea").Heartbeat(), script.Say("noted")),
		effects{Said: []string{"noted"}, Human: "drinks tea", Steps: 3, Stop: memgpt.StopEnd, Flags: "memory_write_failed"}},
	{"an argument is missing", "", plain(script.Call("send_message"), script.Say("hi")), effects{Said: []string{"hi"}, Steps: 2, Stop: memgpt.StopEnd}},
	{"arguments that don't exist", "", plain(script.Call("send_message", "inner_thoughts", "t", "message", "hi", "mood", 1)), effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"arguments of other types", "", plain(script.Call("core_memory_append", "label", "human", "content", map[string]any{"event": "Birthday", "date": "2023-1-1"}, "request_heartbeat", "true"), script.Say("noted")),
		effects{Said: []string{"noted"}, Human: `{"date":"2023-1-1","event":"Birthday"}`, Steps: 2, Stop: memgpt.StopEnd}},
	{"arguments as a text", "", plain(script.Call("send_message", `"{\"message\":\"hi\"}"`)), effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"source code in an argument", "", plain(remember(sourceCode).Heartbeat(), script.Say("noted")),
		effects{Said: []string{"noted"}, Human: sourceCode, Steps: 2, Stop: memgpt.StopEnd}},
	{"an argument of 40 kB", "", plain(script.Calls(script.Call("archival_memory_insert", "content", large), script.Say("stored"))),
		effects{Said: []string{"stored"}, Passages: []string{large}, Steps: 1, Stop: memgpt.StopEnd}},
	{"an id twice", "", plain(script.Calls(withID("call_a", remember("drinks tea")), withID("call_a", script.Say("noted")))),
		effects{Said: []string{"noted"}, Human: "drinks tea", Steps: 1, Stop: memgpt.StopEnd}},
	{withoutIDs, "", plain(script.Calls(remember("drinks tea"), script.Say("noted"))), effects{Said: []string{"noted"}, Human: "drinks tea", Steps: 1, Stop: memgpt.StopEnd}},
	{"a long id", "", plain(withID(strings.Repeat("x", 60), script.Say("hi"))), effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"the same call twice", "", plain(script.Calls(script.Say("hi"), script.Say("hi")), script.Call("yield")), effects{Said: []string{"hi"}, Steps: 2, Stop: memgpt.StopYield}},
	{"too many calls", "", plain(manyCalls(20), script.Call("yield")), effects{Said: numbers(15), Steps: 2, Stop: memgpt.StopYield}},

	{"an empty reply", "", plain(script.Text(""), script.Say("hi")), effects{Said: []string{"hi"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"a cut call", "", plain(cutOff(script.Call("send_message", `{"message":"long te`)), script.Say("short")), effects{Said: []string{"short"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"a call cut before its arguments", "", []answer{{native: cutOff(script.Call("send_message", "{")), prompted: `{"name": "send_mess`, constrained: `{"thoughts":"","calls":[{"name":"send`}, {native: script.Say("short")}},
		effects{Said: []string{"short"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"the second call is cut", "", plain(cutOff(script.Calls(remember("drinks tea"), script.Call("send_message", `{"message":"long te`))), script.Say("short")),
		effects{Said: []string{"short"}, Steps: 1, Stop: memgpt.StopEnd}},
	{"cut for ever", "", plain(cutOff(script.Call("send_message", `{"message":"a`)), cutOff(script.Call("send_message", `{"message":"b`)), cutOff(script.Call("send_message", `{"message":"c`))),
		effects{Stop: memgpt.StopTruncated}},
	{"cut prose", "", plain(cutOff(script.Text("It was a dark and stormy"))), effects{Said: []string{"It was a dark and stormy"}, Steps: 1, Stop: memgpt.StopEnd, Flags: "reply_truncated"}},
	{"a refusal", "", plain(refused("I can't help with that.")), effects{Said: []string{"I can't help with that."}, Steps: 1, Stop: memgpt.StopEnd}},
}

func manyCalls(n int) script.Reply {
	var list []script.Reply
	for _, word := range numbers(n) {
		list = append(list, script.Say(word))
	}
	return script.Calls(list...)
}

func numbers(n int) (words []string) {
	for i := range n {
		words = append(words, fmt.Sprint("number ", i))
	}
	return words
}

// asText renders a reply as prompted models write it: text, then the calls. What is cut off ends where it is cut.
func asText(r *script.Reply) string {
	text, calls := halves(r)
	if text != "" {
		text += "\n"
	}
	return text + strings.Join(calls, "\n")
}

// asObject renders a reply that is held to a schema.
func asObject(r *script.Reply, said string) string {
	text, calls := halves(r)
	if r.Finish == memgpt.FinishFilter {
		return text // a refusal is not held to it
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	whole := `{"` + said + `":` + string(quoted)
	if r.Finish == memgpt.FinishLength && len(calls) == 0 {
		return strings.TrimSuffix(whole, `"`)
	}
	whole += `,"calls":[` + strings.Join(calls, ",")
	if r.Finish == memgpt.FinishLength {
		return whole
	}
	return whole + `]}`
}

func halves(r *script.Reply) (text string, calls []string) {
	for _, p := range r.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			text += p.Text
		case memgpt.Call:
			c := `{"name":"` + p.Name + `","arguments":` + p.Arguments
			if json.Valid([]byte(p.Arguments)) {
				c += "}"
			}
			calls = append(calls, c)
		}
	}
	return text, calls
}
