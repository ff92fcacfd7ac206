package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A text of nothing but brackets must not be read once for each of them: all
// tries together may read this many times its length, each try counting as
// some bytes at least.
const (
	readings  = 8
	tryAtBest = 64
)

// FoundCall is a call that a model wrote as text.
type FoundCall struct {
	Name      string // one that the callback knows
	Arguments string // for [Schema.Decode]
	// Truncated says that the text ended inside of an argument, by the rule of
	// the function Truncated: the call must not run.
	Truncated bool
	// Open says that the text ended before the call did, be it only that the
	// last bracket was left out. It must not run if the reply was cut by its length.
	Open bool
}

// finder looks for calls from the start of a text to its end.
type finder struct {
	text  string
	known func(string) bool
	any   bool // calls of unknown functions too, see parser
	i     int
	work  int // what may still be read, in bytes
	calls []FoundCall
	rest  strings.Builder
	kept  int // up to here the text is in rest or dropped
}

// FindCalls returns the calls to known functions that a model without native
// calling wrote into its text, in order, and the rest of the text.
//
// It reads JSON in and outside of fences with the usual names for name and
// arguments, the tags and marks of Hermes, Qwen, Llama, Mistral and DeepSeek,
// and calls as Python writes them where they stand alone on their lines. What
// is inside of backticks in a sentence, of a thought between think tags, or
// announced as an example, is no call.
//
// After a call, what pretends to be its result is dropped, and all that follows
// it, since the model made it up. Thoughts that stood in a call beside its
// arguments are left in rest.
func FindCalls(text string, known func(name string) bool) (calls []FoundCall, rest string) {
	return newFinder(text, known).find()
}

func newFinder(text string, known func(string) bool) *finder {
	return &finder{text: text, known: known, i: afterThought(text), work: readings*len(text) + 1<<16}
}

func (f *finder) find() ([]FoundCall, string) {
	text := f.text
	for f.i < len(text) {
		if len(f.calls) > 0 && (f.atLineStart() || f.i == skipBlank(text, f.kept)) && isInvented(text[f.i:]) {
			text = text[:f.i]
			break
		}
		f.step()
	}
	if f.calls == nil {
		return nil, strings.TrimSpace(f.text)
	}
	f.keep(text[min(f.kept, len(text)):])
	return f.calls, strings.TrimSpace(f.rest.String())
}

// afterThought returns the end of a thought whose first tag stood in the prompt
// and so is not in the text.
func afterThought(text string) int {
	const end = "</think>"
	i := strings.Index(text, end)
	if i < 0 || strings.Contains(text[:i], "<think>") {
		return 0
	}
	return i + len(end)
}

// step takes a call that starts here, or skips what is none.
func (f *finder) step() {
	s := f.text[f.i:]
	switch c := s[0]; {
	case strings.HasPrefix(s, "```"):
		f.fence()
	case c == '`':
		f.inlineCode()
	case strings.HasPrefix(s, "<think>"):
		f.skipPast("</think>")
	case f.promising(s):
		f.attempt()
	default:
		f.i++
	}
}

// promising reports whether it is worth a try to read a call at s.
func (f *finder) promising(s string) bool {
	next := byteAt(s, skipBlank(s, 1))
	switch c := s[0]; c {
	case '{':
		return true
	case '<', '[':
		return hasPrefix(s, openers()) || strings.HasPrefix(s, "<function=") ||
			c == '[' && (next == '{' || startsName(next) && nameEnds(s, skipBlank(s, 1)) > 0)
	default:
		return startsName(c) && f.atLineStart() && nameEnds(s, 0) > 0
	}
}

func hasPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// attempt tries to read calls that start here.
func (f *finder) attempt() {
	if f.work <= 0 {
		f.i = len(f.text)
		return
	}
	p := &parser{text: f.text, i: f.i, known: f.known, any: f.any, alone: true}
	found := p.calls()
	f.work -= tryAtBest + p.spent
	if !found || f.isExample() {
		f.i = max(f.i+1, p.skip)
		return
	}
	f.accept(p, p.i)
}

// accept drops the text up to end for the calls that it held.
func (f *finder) accept(p *parser, end int) {
	f.keep(f.text[f.kept:f.i])
	for _, thought := range p.thoughts {
		f.keep(thought)
	}
	f.calls = append(f.calls, p.found...)
	f.i, f.kept = end, end
}

// keep adds a piece to rest, on lines of its own.
func (f *finder) keep(s string) {
	s = strings.TrimSpace(s)
	if s == "" {
		return
	}
	if f.rest.Len() > 0 {
		f.rest.WriteString("\n")
	}
	f.rest.WriteString(s)
}

// fence takes a fenced block that holds calls and nothing else, and skips any
// other, which is code that the answer shows.
func (f *finder) fence() {
	// The body starts on the next line, or with a bracket on this one; no name
	// of a language is longer.
	body := strings.IndexAny(f.text[f.i:min(f.i+40, len(f.text))], "\n{[")
	if body > 0 && f.work > 0 {
		if body += f.i; f.text[body] == '\n' {
			body++
		}
		p := &parser{text: f.text, i: body, known: f.known, any: f.any}
		for p.calls() {
		}
		f.work -= tryAtBest + p.spent
		after, closed := p.fenceEnd()
		if p.found != nil && closed && !f.isExample() {
			f.accept(p, after)
			return
		}
	}
	f.i += 3
	f.skipPast("```")
}

func (f *finder) inlineCode() {
	f.i++
	end := strings.IndexByte(f.text[f.i:], '`')
	if end >= 0 && !strings.Contains(f.text[f.i:f.i+end], "\n") {
		f.i += end + 1
	}
}

func (f *finder) skipPast(end string) {
	n := strings.Index(f.text[f.i:], end)
	if n < 0 {
		f.i = len(f.text)
		return
	}
	f.i += n + len(end)
}

func (f *finder) atLineStart() bool { return lineStart(f.text, f.i) }

// lineStart reports whether only blanks stand before i on its line, and s[i] is
// none.
func lineStart(s string, i int) bool {
	before := strings.TrimRight(s[:i], " \t\r")
	return (before == "" || before[len(before)-1] == '\n') && i < len(s) && s[i] > ' '
}

func startsName(c byte) bool { return isWord(c) && (c < '0' || c > '9') && c < utf8.RuneSelf }

// isExample reports whether the line before announces an example. Only then is
// a whole call to a known function no call.
func (f *finder) isExample() bool {
	before := f.text[max(f.kept, f.i-200):f.i]
	before = strings.TrimRight(before, " \t\r\n")
	if i := strings.LastIndexByte(before, '\n'); i >= 0 {
		before = before[i+1:]
	}
	before = strings.ToLower(before)
	for _, cue := range []string{"example", "e.g.", "for instance", "would look", "looks like", "look like"} {
		if strings.HasSuffix(before, ":") && strings.Contains(before, cue) {
			return true
		}
	}
	return false
}

// inventedEvent is the start of an object by which a result or an event is told.
var inventedEvent = regexp.MustCompile(`^\{\s*"type"\s*:\s*"(?:(?:function|tool)_(?:result|response|output)|user_message|system_alert|heartbeat)s?"`)

// isInvented reports whether s starts with what marks a result or somebody
// else's turn, which no model has to write.
func isInvented(s string) bool {
	s = strings.TrimLeft(s, "*#> ")
	if hasPrefix(s, []string{"<tool_response>", "[TOOL_RESULTS]", "<|im_start|>", "<|start_header_id|>",
		"<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>", "<function_results>", "<|eot_id|>"}) {
		return true
	}
	if inventedEvent.MatchString(s) {
		return true
	}
	head := strings.ToUpper(s[:min(len(s), 40)])
	for _, mark := range []string{"FUNCTION RETURN", "FUNCTION RESULT", "FUNCTION RESPONSE", "FUNCTION OUTPUT",
		"TOOL RETURN", "TOOL RESULT", "TOOL RESPONSE", "TOOL OUTPUT", "OBSERVATION", "USER", "HUMAN"} {
		if after, ok := strings.CutPrefix(head, mark); ok {
			return strings.HasPrefix(strings.TrimLeft(after, "S* "), ":")
		}
	}
	return false
}
