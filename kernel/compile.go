package kernel

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"memgpt/calendar"
	"memgpt/store"

	"memgpt"
)

//go:embed prompts
var prompts embed.FS

// prompt returns an embedded text.
func prompt(name string) string {
	b, err := prompts.ReadFile("prompts/" + name + ".txt")
	if err != nil {
		panic("kernel: " + err.Error()) // a name that no build has
	}
	return string(b)
}

// instructions returns the system instructions of an agent: the kernel ABI, unless it has its own.
func (k *Kernel) instructions(a *memgpt.Agent, compact bool) string {
	text := a.System
	if text == "" {
		text = k.abi[formKey{compact: compact, native: a.Protocol == memgpt.ProtocolNative}]
	}
	return text + nameArchives(a)
}

// abi reads the built-in instructions.
func abi() map[formKey]string {
	return map[formKey]string{
		{}:                            prompt("memgpt"),
		{compact: true}:               prompt("memgpt_compact"),
		{native: true}:                prompt("native"),
		{compact: true, native: true}: prompt("native_compact"),
	}
}

// nameArchives says which shared archives an agent reads. That changes only when its owner changes the agent.
func nameArchives(a *memgpt.Agent) string {
	if len(a.Archives) == 0 {
		return ""
	}
	return "\nShared archives that archival_memory_search looks through too (read-only): " + tagLike.ReplaceAllString(strings.Join(a.Archives, ", "), "&lt;$1")
}

// tagLike matches what could pass for a tag of the blocks' frame.
var tagLike = regexp.MustCompile(`(?i)<(\s*/?\s*(?:memory_blocks|block)\b)`)

// frameBlocks renders working context; in the compact form without descriptions.
func frameBlocks(blocks []memgpt.Block, compact bool) string {
	var b strings.Builder
	b.WriteString("\n<memory_blocks>\n")
	for i := range blocks {
		bl := &blocks[i]
		fmt.Fprintf(&b, "<block label=%s chars=\"%d/%d\"", attribute(bl.Label), memgpt.Runes(bl.Value), bl.Limit)
		if bl.ReadOnly {
			b.WriteString(` read_only="true"`)
		}
		if bl.Description != "" && !compact {
			b.WriteString(" description=" + attribute(bl.Description))
		}
		b.WriteString(">\n")
		if bl.Value != "" {
			b.WriteString(tagLike.ReplaceAllString(bl.Value, "&lt;$1"))
			b.WriteString("\n")
		}
		b.WriteString("</block>\n")
	}
	b.WriteString("</memory_blocks>")
	return b.String()
}

func attribute(s string) string {
	return `"` + strings.NewReplacer(`"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ").Replace(s) + `"`
}

// prefix returns the system message of the working copy and its size, which stay while agent and blocks do.
func (r *run) prefix() *store.Prefix {
	p := &r.st.Prefix
	if !r.stale {
		return p
	}
	r.stale = false
	made := r.versions()
	if made == p.Made && len(r.pend.blocks) == 0 {
		return p
	}
	p.Made = made
	text := r.instructions() + frameBlocks(r.st.Blocks, r.compact)
	if text != p.Text {
		m := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, text)
		p.Text, p.Tokens = text, r.k.cfg.Counter.Message(&m)
	}
	return p
}

// versions names what the prefix is made from. Edits that are not committed have no version yet.
func (r *run) versions() string {
	if len(r.pend.blocks) > 0 {
		return ""
	}
	b := make([]byte, 0, 128)
	b = strconv.AppendBool(append(b, r.st.Agent.ID...), r.compact)
	b = strconv.AppendBool(b, r.tidies())
	b = strconv.AppendInt(b, r.st.Agent.Version, 10)
	for i := range r.st.Blocks {
		b = strconv.AppendInt(append(append(b, ' '), r.st.Blocks[i].ID...), r.st.Blocks[i].Version, 10)
	}
	return string(b)
}

// head returns the entry that stands at the head of the queue: what lies outside, and the recursive summary.
func head(st *store.State, v *view) (memgpt.Entry, bool) {
	s := &st.Thread.Summary
	if s.Time.IsZero() {
		return memgpt.Entry{}, false
	}
	text := describeOutside(&s.Outside, v)
	if s.Failed != "" {
		text += "\nThe messages that left last are not in the summary yet."
	}
	if s.Text != "" {
		text += fmt.Sprintf("\nSummary of %d earlier messages, as you keep it:\n%s", s.Covers, s.Text)
	}
	m := memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, text)
	m.Type = memgpt.EventSummary
	return memgpt.Entry{ID: "summary", Time: s.Time, Message: m}, true
}

// maxSources is how many sources are named in the head of the queue.
const maxSources = 12

func describeOutside(o *memgpt.Outside, v *view) string {
	var b strings.Builder
	b.WriteString("Outside main context: ")
	switch {
	case o.Hidden == 0:
		b.WriteString("no earlier messages of this conversation")
	case o.First.IsZero():
		fmt.Fprintf(&b, "%d earlier messages of this conversation (times unknown)", o.Hidden)
	default:
		fmt.Fprintf(&b, "%d earlier messages of this conversation (%s to %s)", o.Hidden,
			calendar.Format(o.First, v.zone), calendar.Format(o.Last, v.zone))
	}
	if o.Elsewhere > 0 {
		fmt.Fprintf(&b, "; %d messages in other conversations", o.Elsewhere)
	}
	if o.Hidden+o.Elsewhere > 0 {
		b.WriteString(" (conversation_search)")
	}
	fmt.Fprintf(&b, "; %d passages in archival storage", o.Passages)
	if o.Passages > 0 {
		b.WriteString(" (archival_memory_search)")
	}
	if n := len(o.Sources); n > 0 {
		names := make([]string, 0, maxSources)
		for _, s := range o.Sources[:min(n, maxSources)] {
			names = append(names, memgpt.CutText(s, 80))
		}
		fmt.Fprintf(&b, "; documents: %s", strings.Join(names, ", "))
		if n > maxSources {
			fmt.Fprintf(&b, " and %d more", n-maxSources)
		}
	}
	b.WriteString(".")
	return b.String()
}

// layout is a compiled state measured: sizes in tokens by the counter's encoding.
type layout struct {
	summary, asked int
	queue          []int // by entry
	total          int   // the whole request: tools, system message, summary, queue
}

// measure sizes what compile would send. The layout is kept until something in it changes.
func (r *run) measure() layout {
	st := r.st
	key := layoutKey{entries: len(st.Queue), next: st.Thread.Next, head: st.Thread.Head, asked: st.Thread.Asked,
		summary: keyOf(&st.Thread.Summary), prefix: r.prefix().Tokens, scale: r.scale, factor: r.factor(), fixed: r.win.fixed}
	if key != r.measured.key {
		r.measured.key, r.measured.layout = key, r.lay()
	}
	return r.measured.layout
}

// changed says that the working copy was replaced: prefix and layout are made anew.
func (r *run) changed() {
	r.stale = true
	r.measured.key = layoutKey{}
}

// layoutKey changes with whatever a layout depends on.
type layoutKey struct {
	entries           int
	next, head, asked int64
	summary           summaryKey
	prefix, fixed     int
	scale, factor     float64
}

// summaryKey changes with the head of the queue. A time alone would not do: two summaries may be written in one tick.
type summaryKey struct {
	text, failed             string
	covers, hidden, passages int
	elsewhere, sources       int
	written, first, last     time.Time
}

func keyOf(s *memgpt.Summary) summaryKey {
	o := &s.Outside
	return summaryKey{text: s.Text, failed: s.Failed, covers: s.Covers, hidden: o.Hidden, passages: o.Passages, elsewhere: o.Elsewhere,
		sources: len(o.Sources), written: s.Time, first: o.First, last: o.Last}
}

func (r *run) lay() layout {
	st, v := r.st, r.view()
	l := layout{queue: make([]int, len(st.Queue)), total: r.ts.tokens() + r.prefix().Tokens + requestTokens}
	if e, ok := head(st, &v); ok {
		l.summary = r.headSize(&e, &v)
	}
	if st.Asked != nil {
		l.asked = v.size(st.Asked, 0)
	}
	l.total += l.summary + l.asked
	calls := 0
	for i := range st.Queue {
		calls = stepCalls(&st.Queue[i], calls)
		l.queue[i] = v.size(&st.Queue[i], calls)
		l.total += l.queue[i]
	}
	return l
}

// headSize sizes the head of the queue, which is made anew each time but seldom changes.
func (r *run) headSize(e *memgpt.Entry, v *view) int {
	p := &r.st.Prefix
	if said := e.Message.Said(); said != p.Head {
		p.Head, p.HeadTokens = said, 0
	}
	e.Tokens = p.HeadTokens
	own := *v
	own.cuts = nil // they are kept by id, and all heads have one
	n := own.size(e, 0)
	p.HeadTokens = e.Tokens
	return n
}

// requestTokens is what opens the reply in a request (OpenAI's chat format).
const requestTokens = 3

// stepCalls tracks the number of calls in the step that entries belong to.
func stepCalls(e *memgpt.Entry, before int) int {
	if e.Message.Role == memgpt.RoleTool {
		return before
	}
	n := 0
	for _, p := range e.Message.Parts {
		if _, ok := p.(memgpt.Call); ok {
			n++
		}
	}
	return n
}

// compile builds the request from the state: tools, system message | summary | queue. It asks nobody, and changes nothing but
// what the run knows of the blocks that the model sees.
func (r *run) compile() *memgpt.Request {
	r.shown = slices.Clone(r.st.Blocks)
	return &memgpt.Request{Model: r.asks(), Messages: r.messages(), Tools: r.ts.specs, MaxTokens: r.win.reserve,
		Window: r.win.size, Session: r.st.Thread.ID, Again: r.messages}
}

func (r *run) messages() []memgpt.Message {
	st, v := r.st, r.view()
	msgs := make([]memgpt.Message, 0, len(st.Queue)+3)
	msgs = append(msgs, memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, r.prefix().Text))
	if e, ok := head(st, &v); ok {
		msgs = append(msgs, v.show(&e, 0))
	}
	if st.Asked != nil {
		msgs = append(msgs, v.show(st.Asked, 0))
	}
	calls := 0
	for i := range st.Queue {
		calls = stepCalls(&st.Queue[i], calls)
		msgs = append(msgs, v.show(&st.Queue[i], calls))
	}
	return msgs
}

func (r *run) view() view {
	return view{count: r.k.cfg.Counter, zone: r.zone, caps: r.win.caps(r.factor(), r.scale), cuts: r.cuts}
}
