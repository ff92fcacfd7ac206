package offline

import (
	"regexp"
	"strings"

	"memgpt"
)

// relieve answers the pressure alert: what matters of the messages that leave is saved, and they are moved out with a
// summary. It never speaks; where the user still waits for an answer, the step asks for another one. It reports false
// when there is nothing to do about the pressure.
func (m *Model) relieve(t *turn) (act, bool) {
	alert := t.alertText()
	leaving, through := t.leaving(alert)
	calls := m.savings(t, usersTexts(t.items))
	if m.slips("save", m.cfg.ForgetSave, t) {
		calls = nil
	} else if text := m.details(t, leaving); text != "" && t.has(toolInsert) && !t.tried(toolInsert, text) {
		calls = append(calls, t.call(toolInsert, true, "content", text))
	}
	if t.has(toolEvict) && !gone(alert) {
		if c := m.evict(t, leaving, through); !t.owes() || len(calls) > 0 || c.str("summary") != "" {
			calls = append(calls, c) // else nothing that leaves is worth a step now: what looking up brought is noted anyway
		}
	}
	if len(calls) == 0 {
		return act{}, false
	}
	for _, c := range calls {
		if _, takes := c.args[memgpt.ArgHeartbeat]; takes {
			c.args[memgpt.ArgHeartbeat] = t.owes()
		}
	}
	if t.owes() && len(t.results) > 0 && !t.has(memgpt.FuncSendMessage) {
		return act{}, false // nowhere to note what was found: better to answer with it
	}
	why := t.lang.pick("Main context is filling up: save what matters, move the oldest messages out.", "上下文快满了：先存要紧的，再移出最早的消息。")
	return act{thought: t.think(why), calls: calls}, true
}

// owes tells whether somebody still waits for a word in this turn.
func (t *turn) owes() bool {
	return t.start >= 0 && !t.answered && (t.trigger.typ == memgpt.EventUser || t.trigger.typ == memgpt.EventLogin)
}

func (t *turn) alertText() string {
	for i := len(t.items) - 1; i >= 0; i-- {
		if it := t.items[i]; it.kind == heard && it.typ == memgpt.EventAlert {
			return it.text
		}
	}
	return ""
}

var (
	oldestMany = regexp.MustCompile(`oldest (\d+) messages`)
	lastLeaves = regexp.MustCompile(`the last is (message-[0-9A-Za-z-]+)\b`)
)

// gone tells whether an alert says that what leaves has left the queue already.
func gone(alert string) bool { return strings.Contains(alert, "leaving now") }

// leaving returns the messages that go: those the alert counts, else all before the present turn; and the id of the last
// one where the alert names it.
func (t *turn) leaving(alert string) (items []item, through string) {
	queue := t.items
	for len(queue) > 0 && queue[0].kind == heard && queue[0].typ == memgpt.EventSummary {
		queue = queue[1:]
	}
	before := len(queue) - (len(t.items) - max(t.start, 0))
	if t.answered || t.start < 0 {
		before = len(queue)
	}
	if m := oldestMany.FindStringSubmatch(alert); m != nil && atoi(m[1]) <= len(queue) {
		before = atoi(m[1])
		if id := lastLeaves.FindStringSubmatch(alert); id != nil {
			through = id[1]
		}
	}
	return queue[:max(before, 0)], through
}

func usersTexts(items []item) []string {
	var texts []string
	for _, it := range items {
		if it.kind == heard && it.typ == memgpt.EventUser {
			texts = append(texts, it.text)
		}
	}
	return texts
}

// evict moves the oldest messages out. The summary goes after the one that stands, and both have little room.
func (m *Model) evict(t *turn, leaving []item, through string) call {
	var pairs []any
	if through != "" {
		pairs = append(pairs, "through", through)
	}
	if text := fold("", linesOf(t.past(leaving)), t.lang, t.summaryRoom()); text != "" {
		pairs = append(pairs, "summary", text)
	}
	return t.call(toolEvict, true, pairs...)
}

// past leaves the message out that is being answered, and what came after it.
func (t *turn) past(leaving []item) []item {
	if !t.owes() {
		return leaving
	}
	for i, it := range leaving {
		if it.kind == heard && it.typ == t.trigger.typ && it.text == t.trigger.text && it.when == t.trigger.when {
			return leaving[:i]
		}
	}
	return leaving
}

const (
	summaryShare = 0.1 // of the window is for the recursive summary (DESIGN, section 1), and a fifth of the queue's room
	ownShare     = 0.4 // of that for what leaves now: the rest stays for the summary so far, and for miscounting
	unknownRoom  = 160 // tokens of a summary when the window is not known
	leastRoom    = 24  // tokens below which a summary is not worth it
)

// summaryRoom is how many tokens an own summary may take.
func (t *turn) summaryRoom() int {
	window := t.req.Window
	if window <= 0 {
		return unknownRoom
	}
	return int(ownShare * min(summaryShare*float64(window), 2*summaryShare*float64(t.queueRoom())))
}

// queueRoom is how many tokens the queue may take, of a window that is known.
func (t *turn) queueRoom() int {
	window, fixed := t.req.Window, 0
	if len(t.req.Messages) > 0 {
		fixed = messageCost(&t.req.Messages[0])
	}
	for _, spec := range t.req.Tools {
		fixed += estimate(spec.Name) + estimate(spec.Description) + estimate(string(spec.Parameters)) + 4
	}
	return max(window-min(window/8, 4096)-fixed, 0)
}

// maxDetails is how much of what leaves is put into the archive, in bytes.
const maxDetails = 600

// details are the statements of the leaving messages that have names, numbers or dates and are not kept as facts; "" when
// there are none.
func (m *Model) details(t *turn, leaving []item) string {
	var list []string
	size, from, to := 0, "", ""
	for _, it := range leaving {
		if it.kind != heard || it.typ != memgpt.EventUser || len(m.grammar.stated(it.text)) > 0 {
			continue
		}
		for _, s := range sentences(it.text) {
			if isQuestion(s) || telling(s) < 2 || len(s) > maxDetails/2 || size+len(s) > maxDetails {
				continue
			}
			list, size = append(list, s), size+len(s)
			from, to = firstOf(from, day(it.when)), firstOf(day(it.when), to)
		}
	}
	if len(list) == 0 {
		return ""
	}
	when := from
	if to != from {
		when += " – " + to
	}
	return t.lang.pick("From the conversation, "+when+": ", "对话摘录，"+when+"：") + strings.Join(list, " ")
}

// day is the date of a time as an envelope writes it; "" when there is none.
func day(when string) string {
	if len(when) < len("2006-01-02") || when[0] < '0' || when[0] > '9' {
		return ""
	}
	return when[:len("2006-01-02")]
}
