package offline

import (
	"strings"

	"memgpt"
)

// decide chooses what to do in this step. Everything that it goes by stands in the prompt.
func (m *Model) decide(t *turn) act {
	if t.tidies() {
		return m.onTidy(t)
	}
	if a, ok := m.mend(t); ok && !t.late() {
		return a
	}
	if t.alerted && !t.late() {
		if a, ok := m.relieve(t); ok {
			return a
		}
	}
	switch {
	case t.start < 0 && len(t.items) == 0:
		return t.speak(t.lang.pick("Hello! How can I help?", "你好！"))
	case t.answered || t.start < 0:
		return t.rest("nothing left to do")
	case t.trigger.typ == memgpt.EventUser:
		return m.onUser(t)
	case t.trigger.typ == memgpt.EventLogin:
		return t.speak(m.welcome(t))
	case t.trigger.typ == memgpt.EventTimer:
		return m.onTimer(t)
	}
	return t.rest("taken note of " + string(t.trigger.typ))
}

// onUser handles what a user said: keep what he states, then answer what he asks, else acknowledge.
func (m *Model) onUser(t *turn) act {
	if t.count() == 0 && !t.late() { // what is to be kept is kept before the first search
		if a, ok := m.save(t, t.pending); ok {
			return a
		}
	}
	if kind := talkOf(t.question); kind != noTalk {
		return t.speak(m.smallTalk(t, kind))
	}
	ack := m.acknowledge(t)
	question := questionOf(t.question)
	if question != "" && m.onlyRemember(t.question) {
		question = ""
	}
	if start, ok := lookupStart(t.question); ok && question != "" {
		if a, ok := m.lookup(t, start); ok {
			return a.prefixed(ack, t)
		}
	}
	if question == "" {
		return t.speak(firstOf(ack, m.heardYou(t)))
	}
	return m.answer(t, question).prefixed(ack, t)
}

// onlyRemember tells whether every asking sentence of a text is a request to keep something in mind.
func (m *Model) onlyRemember(text string) bool {
	for _, s := range sentences(strings.ReplaceAll(text, "’", "'")) {
		if _, asked := m.grammar.asked(s); !asked && isQuestion(s) {
			return false
		}
	}
	return true
}

// onTimer saves what was overlooked, silently.
func (m *Model) onTimer(t *turn) act {
	var texts []string
	for _, it := range t.items {
		if it.kind == heard && it.typ == memgpt.EventUser {
			texts = append(texts, it.text)
		}
	}
	if a, ok := m.save(t, texts); ok {
		return a
	}
	return t.rest("nothing to do at this hour")
}

// mend tries another way once where a function failed: what an edit of working context held goes to the archive, and an
// eviction is asked for without summary.
func (m *Model) mend(t *turn) (act, bool) {
	var a act
	bare := false
	for _, it := range t.results {
		bare = bare || it.call.name == toolEvict && it.call.str("summary") == ""
	}
	for _, it := range t.results {
		text := contentOf(it.call)
		switch {
		case !it.failed:
		case editsBlock(it.call.name) && text != "" && t.has(toolInsert) && !t.tried(toolInsert, text):
			a.calls = append(a.calls, t.call(toolInsert, t.owes(), "content", text))
		case it.call.name == toolEvict && !bare && t.has(toolEvict):
			a.calls, bare = append(a.calls, t.call(toolEvict, t.owes())), true
		}
	}
	a.thought = t.think(t.lang.pick("That failed; I try another way.", "没成功，换个办法。"))
	return a, len(a.calls) > 0
}

func editsBlock(name string) bool {
	switch name {
	case toolAppend, toolReplace, "memory_insert", "memory_replace":
		return true
	}
	return false
}

// contentOf returns what an edit or an insertion would store.
func contentOf(c call) string {
	for _, key := range []string{"content", "new_content", "new_string"} {
		if s := c.str(key); s != "" {
			return s
		}
	}
	return ""
}

// tried tells whether a call of the queue already brought the text to the function.
func (t *turn) tried(name, text string) bool {
	for _, it := range t.items {
		for _, c := range it.calls {
			if c.name == name && strings.Contains(contentOf(c), text) {
				return true
			}
		}
	}
	return false
}

// call makes a call. The heartbeat is asked for where the function takes that argument.
func (t *turn) call(name string, heartbeat bool, pairs ...any) call {
	c := call{name: name, args: map[string]any{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if key, ok := pairs[i].(string); ok {
			c.args[key] = pairs[i+1]
		}
	}
	if schema := t.tools[name]; schema == "" || strings.Contains(schema, `"`+memgpt.ArgHeartbeat+`"`) {
		c.args[memgpt.ArgHeartbeat] = heartbeat
	}
	return c
}

// speak says something to the user: by the function where there is one and it did not fail, else as plain text.
func (t *turn) speak(text string) act {
	if n := t.req.MaxTokens; n > 0 {
		text = cutCost(text, max(n-16, 1))
	}
	if !t.has(memgpt.FuncSendMessage) || t.mute {
		return act{text: text}
	}
	return act{calls: []call{{name: memgpt.FuncSendMessage, args: map[string]any{memgpt.ArgMessage: text}}}}
}

// rest ends the turn without a word.
func (t *turn) rest(why string) act {
	if t.has(memgpt.FuncYield) {
		return act{thought: t.think(why), calls: []call{{name: memgpt.FuncYield}}}
	}
	return act{thought: why}
}

// think returns a thought where the protocol keeps it from the user: beside calls of a protocol that speaks by function.
func (t *turn) think(thought string) string {
	if t.has(memgpt.FuncSendMessage) {
		return thought
	}
	return ""
}

// prefixed puts an acknowledgement before what an act says.
func (a act) prefixed(ack string, t *turn) act {
	if ack == "" {
		return a
	}
	if a.text != "" {
		return t.speak(ack + " " + a.text)
	}
	for _, c := range a.calls {
		if c.name == memgpt.FuncSendMessage {
			return t.speak(ack + t.lang.pick(" ", "") + c.str(memgpt.ArgMessage))
		}
	}
	return a
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
