package offline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"memgpt"
)

// scene is a request as the stand-in reads it.
type scene struct {
	req    *memgpt.Request
	blocks []block
	items  []item
	given  []hit             // texts that stand in the system text of a prompt without working context
	tools  map[string]string // name to schema; empty when calls are not allowed
}

// block is a piece of working context as the prompt shows it.
type block struct {
	label    string
	value    string
	used     int // characters
	limit    int // characters; 0 when the prompt does not say
	readOnly bool
}

type itemKind int

const (
	heard  itemKind = iota // what a user or the system said
	said                   // the agent's own message
	result                 // what a call brought
)

// item is one message of the queue.
type item struct {
	kind   itemKind
	typ    memgpt.EventType // of what was heard
	text   string           // message without its envelope; of the agent's own, what it said
	name   string           // speaker, where the envelope names one
	when   string           // as the envelope writes it
	calls  []call           // of the agent's own
	musing string           // of the agent's own, what it thought
	call   call             // that a result answers
	failed bool
}

// readScene reads a request. Whatever it can't read it passes over.
func readScene(req *memgpt.Request) *scene {
	s := &scene{req: req, tools: map[string]string{}}
	if req.Choice != memgpt.ChoiceNone {
		for _, t := range req.Tools {
			s.tools[t.Name] = string(t.Parameters)
		}
	}
	open := map[string]call{}
	for i := range req.Messages {
		m := &req.Messages[i]
		switch m.Role {
		case memgpt.RoleSystem:
			s.blocks = append(s.blocks, readBlocks(m.Said())...)
			s.given = append(s.given, readGiven(m.Said())...)
		case memgpt.RoleUser:
			s.items = append(s.items, readHeard(m))
		case memgpt.RoleAssistant:
			s.items = append(s.items, readSaid(m, open, s.has(memgpt.FuncSendMessage)))
		case memgpt.RoleTool:
			s.items = append(s.items, readResult(m, open))
		}
	}
	return s
}

func (s *scene) has(tool string) bool {
	_, ok := s.tools[tool]
	return ok
}

var blockTag = regexp.MustCompile(`(?s)<block label="([^"\n]*)"(?: chars="(\d+)/(\d+)")?( read_only="true")?[^>\n]*>\n?(.*?)\n?</block>`)

// readBlocks reads the working context out of a system text.
func readBlocks(system string) []block {
	at := strings.LastIndex(system, "<memory_blocks>")
	if at < 0 {
		return nil
	}
	unquote := strings.NewReplacer("&lt;block", "<block", "&lt;/block", "</block",
		"&lt;memory_blocks", "<memory_blocks", "&lt;/memory_blocks", "</memory_blocks")
	var blocks []block
	for _, g := range blockTag.FindAllStringSubmatch(system[at:], -1) {
		b := block{label: g[1], value: unquote.Replace(g[5]), readOnly: g[4] != ""}
		b.used = memgpt.Runes(b.value)
		b.limit = atoi(g[3])
		blocks = append(blocks, b)
	}
	return blocks
}

var (
	givenTexts = regexp.MustCompile(`(?s)<context>\n(.*)\n?</context>`)
	givenHead  = regexp.MustCompile(`^\[(\d{4}-\d{2}-\d{2}|undated)\] (?:([^:]{1,60}): )?`)
)

// readGiven reads the texts of a prompt that has its material in its system text, a line each: bare, or with day and
// speaker before it. A prompt with working context has none.
func readGiven(system string) []hit {
	found := givenTexts.FindStringSubmatch(system)
	if found == nil || strings.Contains(system, "<memory_blocks>") {
		return nil
	}
	var hits []hit
	for line := range strings.Lines(found[1]) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		h := hit{ID: fmt.Sprint("context ", len(hits)), Kind: string(memgpt.KindPassage), Text: line}
		if m := givenHead.FindStringSubmatch(line); m != nil {
			h.Kind, h.Time, h.Text = string(memgpt.KindMessage), m[1], line[len(m[0]):]
			switch memgpt.Role(m[2]) {
			case memgpt.RoleUser, memgpt.RoleAssistant:
				h.Role = m[2]
			default:
				h.Name = m[2]
			}
		}
		hits = append(hits, h)
	}
	return hits
}

func atoi(s string) int {
	var n int
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil {
		return 0
	}
	return n
}

// readHeard opens the envelope of a message. Only the envelope itself says what kind of event it is: whatever stands in
// its message stays text. A message without envelope is what a user said.
func readHeard(m *memgpt.Message) item {
	raw := firstText(m)
	it := item{kind: heard, typ: memgpt.EventUser, text: raw, name: m.Author}
	var env struct {
		Type    memgpt.EventType `json:"type"`
		Message json.RawMessage  `json:"message"`
		Time    string           `json:"time"`
		Name    string           `json:"name"`
	}
	if json.Unmarshal([]byte(raw), &env) != nil || env.Type == "" {
		return it
	}
	it.typ, it.when, it.name, it.text = env.Type, env.Time, env.Name, string(env.Message)
	var text string
	if json.Unmarshal(env.Message, &text) == nil {
		it.text = text
	}
	return it
}

func firstText(m *memgpt.Message) string {
	for _, p := range m.Parts {
		if t, ok := p.(memgpt.Text); ok {
			return t.Text
		}
	}
	return ""
}

// readSaid reads one of the agent's own messages. Where a function speaks, text beside calls is inner monologue.
func readSaid(m *memgpt.Message, open map[string]call, byFunction bool) item {
	it := item{kind: said, text: m.Said(), musing: m.Thoughts()}
	if made := m.Calls(); byFunction && len(made) > 0 {
		it.text = spoken(made)
		it.musing = firstText(m)
	}
	for _, c := range m.Calls() {
		k := call{id: c.ID, name: c.Name, args: map[string]any{}}
		if json.Unmarshal([]byte(c.Arguments), &k.args) != nil || k.args == nil {
			k.args = map[string]any{}
		}
		open[c.ID] = k
		it.calls = append(it.calls, k)
	}
	return it
}

func spoken(made []memgpt.Call) string {
	var texts []string
	for _, c := range made {
		if text, ok := c.Spoken(); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

func readResult(m *memgpt.Message, open map[string]call) item {
	r, _ := m.Result()
	it := item{kind: result, text: r.Text, failed: r.Failed, call: open[r.CallID]}
	if it.call.name == "" {
		it.call.name = r.Name
	}
	var env struct {
		Status  string          `json:"status"`
		Message json.RawMessage `json:"message"`
		Time    string          `json:"time"`
	}
	if json.Unmarshal([]byte(r.Text), &env) != nil || env.Status == "" {
		return it
	}
	it.failed, it.when, it.text = it.failed || env.Status != "OK", env.Time, string(env.Message)
	var text string
	if json.Unmarshal(env.Message, &text) == nil {
		it.text = text
	}
	return it
}

// turn is where the present turn stands, as far as the queue shows it.
type turn struct {
	*scene
	start    int      // index of the event that began it; -1 when there is none
	trigger  item     // that event
	results  []item   // what the turn's calls brought so far
	pending  []string // what users said since the agent last spoke
	question string   // newest thing that a user said
	answered bool     // the agent spoke since the turn's event
	mute     bool     // speaking by function failed in this turn
	alerted  bool     // an alert waits for an answer
	notes    notes    // on the turn's searches, of which some may have left the context
	ledger   ledger   // what the turn did so far
	lang     lang
}

// readTurn finds the present turn.
func readTurn(s *scene) *turn {
	t := &turn{scene: s, start: -1}
	waiting := false // for an answer
	for i, it := range s.items {
		switch {
		case it.kind == said && strings.TrimSpace(it.text) != "":
			waiting = false
		case it.kind == heard && begins(it.typ) && !(waiting && remark(it.typ)):
			t.start, t.trigger = i, it
			waiting = it.typ == memgpt.EventUser || it.typ == memgpt.EventLogin
		}
	}
	for i, it := range s.items {
		t.take(i, it)
	}
	t.lang = langOf(t.question)
	if t.question == "" {
		t.lang = s.lang()
	}
	return t
}

// take brings the turn up to date with the next item of the queue. An alert is answered by the step that follows it.
func (t *turn) take(i int, it item) {
	inTurn := t.start >= 0 && i > t.start
	switch {
	case it.kind == heard && it.typ == memgpt.EventUser:
		t.pending = append(t.pending, it.text)
		t.question = it.text
	case it.kind == heard && it.typ == memgpt.EventAlert:
		t.alerted = true
	case it.kind == said:
		t.alerted = false
		if inTurn {
			t.recollect(it)
		}
		if strings.TrimSpace(it.text) != "" {
			t.pending, t.answered = nil, t.answered || inTurn
		}
	case it.kind == result && inTurn:
		t.results = append(t.results, it)
		if it.failed && it.call.name == memgpt.FuncSendMessage {
			t.answered, t.mute = false, true
		}
	}
}

// begins tells whether an event begins a turn: an alert, a prefetch or a summary only goes with one.
func begins(typ memgpt.EventType) bool {
	switch typ {
	case memgpt.EventAlert, memgpt.EventSummary, memgpt.EventPrefetch, memgpt.EventHeartbeat:
		return false
	}
	return true
}

// remark tells whether an event may come in the middle of a turn without being what the turn is about.
func remark(typ memgpt.EventType) bool {
	return typ == memgpt.EventNotice || typ == memgpt.EventDocument
}

// lang is the language of the talk: that of the newest thing a user said, else of what the agent knows.
func (s *scene) lang() lang {
	for i := len(s.items) - 1; i >= 0; i-- {
		if it := s.items[i]; it.kind == heard && it.typ == memgpt.EventUser {
			return langOf(it.text)
		}
	}
	var known strings.Builder
	for _, b := range s.blocks {
		if b.label == humanLabel {
			known.WriteString(b.value)
		}
	}
	for _, it := range s.items {
		if it.typ == memgpt.EventSummary && it.kind == heard && known.Len() == 0 {
			known.WriteString(oldSummary(it.text))
		}
	}
	return langOf(known.String())
}
