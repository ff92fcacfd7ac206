package offline

import (
	"strings"

	"memgpt"
)

// smallTalk answers greetings, thanks and the like.
func (m *Model) smallTalk(t *turn, kind talk) string {
	l := t.lang
	name := m.userName(t)
	switch kind {
	case thanks:
		return l.pick("You're welcome"+comma(l, name)+"!", "不客气"+comma(l, name)+"！")
	case farewell:
		return l.pick("Goodbye"+comma(l, name)+"! I'll keep what we talked about.", "再见"+comma(l, name)+"！我们聊过的我都会留着。")
	case wellbeing:
		return l.pick("I'm fine, thank you. What can I do for you?", "我很好，谢谢。有什么可以帮你的？")
	case identity:
		return l.pick("I'm a rule-based stand-in, not a language model: I keep what you tell me and find it again.",
			"我是一个基于规则的替身，不是语言模型：你告诉我的事我会存下来，需要时再找出来。")
	case agreement:
		return l.pick("All right.", "好的。")
	}
	return l.pick("Hello"+comma(l, name)+"! What can I do for you?", "你好"+comma(l, name)+"！有什么可以帮你的？")
}

func comma(l lang, name string) string {
	if name == "" {
		return ""
	}
	return l.pick(", ", "，") + name
}

// userName is what working context calls the user; "" when it does not.
func (m *Model) userName(t *turn) string {
	facts, _ := m.grammar.known(t.blocks)
	for i := len(facts) - 1; i >= 0; i-- {
		if facts[i].slot == slotName {
			return facts[i].value
		}
	}
	return ""
}

// heardYou answers what is neither a question nor anything to keep.
func (m *Model) heardYou(t *turn) string {
	if strings.TrimSpace(t.question) == "" {
		return t.lang.pick("I received an empty message.", "我收到了一条空消息。")
	}
	return t.lang.pick("I see. It stays in our conversation, and I can find it again when you ask.",
		"我知道了。这些都留在我们的对话里，你问起时我能再找出来。")
}

// welcome opens a conversation from working context and from what was talked about last.
func (m *Model) welcome(t *turn) string {
	l := t.lang
	name := m.userName(t)
	last := t.lastTopic()
	if last == "" {
		last = m.remembered(t)
	} else {
		last = l.pick("Last time you said: “"+last+"”", "上次你说：“"+last+"”")
	}
	if name == "" && last == "" {
		return l.pick("Hello! I'm here. What would you like to talk about?", "你好！我在这里，想聊点什么？")
	}
	hello := l.pick("Welcome back"+comma(l, name)+".", "欢迎回来。")
	if l == chinese && name != "" {
		hello = name + "，欢迎回来。"
	}
	if last != "" {
		hello += l.pick(" "+strings.TrimRight(last, ".")+".", strings.TrimRight(last, "。")+"。")
	}
	return hello
}

// maxRemembered is how many things that it knows of the user an opening names.
const maxRemembered = 3

// remembered names the newest things that working context holds about the user: facts, and notes as they stand there.
func (m *Model) remembered(t *turn) string {
	l := t.lang
	_, lines := m.grammar.known(t.blocks)
	var told []string
	quotes := false
	for _, line := range lines {
		switch f, ok := m.grammar.read(line); {
		case !ok:
			told, quotes = append(told, "“"+shorten(line, 2*maxTopic)+"”"), true
		case f.slot != slotName:
			told = append(told, f.tell(l))
		}
	}
	if len(told) == 0 {
		return ""
	}
	text := strings.Join(told[max(0, len(told)-maxRemembered):], l.pick("; ", "；"))
	if quotes {
		return l.pick("I have noted: ", "我记着：") + text
	}
	return l.pick("I remember that ", "我记得") + text
}

// maxTopic is how much of an earlier message an opening quotes, in characters.
const maxTopic = 60

// lastTopic is the newest thing that a user said and that is more than small talk; "" when the queue has none.
func (t *turn) lastTopic() string {
	for i := len(t.items) - 1; i >= 0; i-- {
		it := t.items[i]
		if it.kind == heard && it.typ == memgpt.EventUser && talkOf(it.text) == noTalk {
			return shorten(strings.Join(strings.Fields(it.text), " "), maxTopic)
		}
	}
	return ""
}

// shorten cuts a text to n characters, at a word where there is one near.
func shorten(s string, n int) string {
	rs := []rune(s)
	if len(rs) <= n {
		return s
	}
	cut := n
	for i := n; i > n*3/4; i-- {
		if rs[i] == ' ' {
			cut = i
			break
		}
	}
	return strings.TrimSpace(string(rs[:cut])) + "…"
}

const (
	nothingEnglish = "I couldn't find anything about that"
	nothingChinese = "我没有找到相关的内容"
)

// admits tells whether a text is the stand-in's own admission that it found nothing.
func admits(text string) bool {
	return strings.Contains(text, nothingEnglish) || strings.Contains(text, nothingChinese)
}
