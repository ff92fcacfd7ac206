package offline

import (
	"strings"

	"memgpt"
)

// save keeps what users stated and what is not kept yet. It reports false when there is nothing to do.
func (m *Model) save(t *turn, texts []string) (act, bool) {
	if m.slips("save", m.cfg.ForgetSave, t) {
		return act{}, false
	}
	a := act{calls: m.savings(t, texts)}
	if len(a.calls) == 0 {
		return a, false
	}
	a.thought = t.think(t.lang.pick("The user told me something to keep.", "用户说了需要记住的事。"))
	return a, true
}

// savings are the calls that keep what the texts state.
func (m *Model) savings(t *turn, texts []string) []call {
	known, lines := m.grammar.known(t.blocks)
	var calls []call
	var fresh []string
	for _, text := range texts {
		facts, notes := m.grammar.keep(text)
		for _, f := range facts {
			old, replaces := replaced(f, known, t.blocks, m.grammar)
			switch {
			case isKnown(f, known, lines) || t.kept(f.line()):
			case replaces && (t.has(toolReplace) || t.has("memory_replace")):
				calls = append(calls, t.replaceLine(old, f.line()))
			default:
				fresh = append(fresh, f.line())
			}
			known = append(known, f)
		}
		for _, n := range notes {
			if t.has(toolInsert) && !t.kept(n) {
				calls = append(calls, t.call(toolInsert, true, "content", n))
			}
		}
	}
	return append(calls, t.place(fresh)...)
}

func isKnown(f fact, known []fact, lines []string) bool {
	for _, k := range known {
		if k.equal(f) {
			return true
		}
	}
	for _, line := range lines {
		if line == f.line() {
			return true
		}
	}
	return false
}

// kept tells whether a call of the queue already kept a line, in working context or archive.
func (t *turn) kept(line string) bool {
	for _, name := range []string{toolAppend, "memory_insert", toolInsert, toolReplace, "memory_replace"} {
		if t.triedLine(name, line) {
			return true
		}
	}
	return false
}

func (t *turn) triedLine(name, line string) bool {
	for _, it := range t.results {
		if it.call.name != name {
			continue
		}
		for _, l := range strings.Split(contentOf(it.call), "\n") {
			if l == line {
				return true
			}
		}
	}
	if name != toolInsert {
		return false
	}
	return t.tried(name, line)
}

// replaced finds the line that a fact corrects, in a block that may be written.
func replaced(f fact, known []fact, blocks []block, g *grammar) (string, bool) {
	if !f.single() {
		return "", false
	}
	for _, b := range blocks {
		if b.label != humanLabel || b.readOnly {
			continue
		}
		for _, line := range strings.Split(b.value, "\n") {
			if old, ok := g.read(line); ok && old.same(f) && !old.equal(f) {
				return strings.TrimSpace(line), true
			}
		}
	}
	return "", false
}

func (t *turn) replaceLine(old, line string) call {
	if t.has(toolReplace) {
		return t.call(toolReplace, true, "label", humanLabel, "old_content", old, "new_content", line)
	}
	return t.call("memory_replace", true, "label", humanLabel, "old_string", old, "new_string", line)
}

// place appends lines to the block about the user as far as it has room; the others go to the archive.
func (t *turn) place(lines []string) []call {
	room, writable := t.room()
	var fit, rest []string
	for _, line := range lines {
		n := memgpt.Runes(line) + 1
		if writable && n <= room {
			fit = append(fit, line)
			room -= n
		} else {
			rest = append(rest, line)
		}
	}
	var calls []call
	if len(fit) > 0 {
		text := strings.Join(fit, "\n")
		if t.has(toolAppend) {
			calls = append(calls, t.call(toolAppend, true, "label", humanLabel, "content", text))
		} else {
			calls = append(calls, t.call("memory_insert", true, "label", humanLabel, "new_string", text))
		}
	}
	for _, line := range rest {
		if t.has(toolInsert) {
			calls = append(calls, t.call(toolInsert, true, "content", line))
		}
	}
	return calls
}

// room says how many characters the block about the user still takes, and whether it can be written.
func (t *turn) room() (int, bool) {
	if !t.has(toolAppend) && !t.has("memory_insert") {
		return 0, false
	}
	for _, b := range t.blocks {
		if b.label != humanLabel || b.readOnly {
			continue
		}
		if b.limit == 0 {
			return 1 << 20, true
		}
		return b.limit - b.used, true
	}
	return 0, false
}

// acknowledge tells the user what the turn's calls kept of what he said; "" when he stated nothing.
func (m *Model) acknowledge(t *turn) string {
	facts, notes := m.grammar.keep(t.question)
	if len(facts)+len(notes) == 0 || m.slips("save", m.cfg.ForgetSave, t) {
		return ""
	}
	var core, archived, old []string
	for _, f := range facts {
		switch {
		case t.done(toolInsert, f.line()):
			archived = append(archived, f.tell(t.lang))
		case t.done(toolAppend, f.line()) || t.done(toolReplace, f.line()) || t.done("memory_insert", f.line()) || t.done("memory_replace", f.line()):
			core = append(core, f.tell(t.lang))
		case m.holds(t, f):
			old = append(old, f.tell(t.lang))
		}
	}
	kept := 0
	for _, n := range notes {
		if t.done(toolInsert, n) || t.tried(toolInsert, n) {
			kept++
		}
	}
	return t.acknowledgement(core, archived, old, kept > 0)
}

// done tells whether a call of the turn stored the line.
func (t *turn) done(name, line string) bool {
	for _, it := range t.results {
		if !it.failed && it.call.name == name && strings.Contains("\n"+contentOf(it.call)+"\n", "\n"+line+"\n") {
			return true
		}
	}
	return false
}

func (m *Model) holds(t *turn, f fact) bool {
	known, lines := m.grammar.known(t.blocks)
	return isKnown(f, known, lines)
}

// acknowledgement words what was kept: in working context, in the archive for want of room, known before, noted.
func (t *turn) acknowledgement(core, archived, old []string, noted bool) string {
	l := t.lang
	list := func(s []string) string { return strings.Join(s, l.pick("; ", "；")) }
	var out []string
	if len(core) > 0 {
		out = append(out, l.pick("Got it, I'll remember: "+list(core)+".", "好的，我记住了："+list(core)+"。"))
	}
	if len(archived) > 0 {
		out = append(out, l.pick("My working memory has no room for it, so I put it into the archive: "+list(archived)+".",
			"我的工作记忆放不下了，已存入档案："+list(archived)+"。"))
	}
	if noted {
		out = append(out, l.pick("I've stored that in the archive.", "好的，我已经把它存入档案。"))
	}
	if len(out) == 0 && len(old) > 0 {
		out = append(out, l.pick("Yes, I have that noted: "+list(old)+".", "嗯，我已经记着："+list(old)+"。"))
	}
	if len(out) == 0 {
		out = append(out, l.pick("I heard you, but I could not store it.", "我听到了，但没能存下来。"))
	}
	return strings.Join(out, l.pick(" ", ""))
}
