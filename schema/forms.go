package schema

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// parser reads calls, in whatever form, from one place of a text.
type parser struct {
	text  string
	i     int
	known func(string) bool
	alone bool // calls as of Python have to stand alone on their lines
	any   bool // unknown functions are called too where it is sure that a call is meant

	marked bool // marks stand around what is read, which so is sure to be a call

	found    []FoundCall
	thoughts []string
	skip     int // what was read up to here holds no call
	spent    int // bytes that were read, some more than once
}

// openers are the marks before calls, of Hermes and Qwen, Llama, Mistral,
// DeepSeek, and others that imitate them; closers are those behind.
func openers() []string {
	return []string{"<tool_call>", "<tool_calls>", "<function_call>", "<function_calls>", "<|tool_call|>",
		"<|tool_call_begin|>", "<|python_tag|>", "[TOOL_CALLS]", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"}
}

func closers() []string {
	return []string{"</tool_call>", "</tool_calls>", "</function_call>", "</function_calls>", "<|/tool_call|>",
		"<|tool_call_end|>", "<|eom_id|>", "<|eot_id|>", "<|im_end|>", "</s>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>",
		"<｜end▁of▁sentence｜>"}
}

func fences() []string { return []string{"```json", "```"} }

// calls reads one or more calls that start here, with the marks around them,
// and reports whether there were any.
func (p *parser) calls() bool {
	start, n := p.i, len(p.found)
	marked := p.token(openers())
	fenced := marked && p.open()
	p.marked = marked
	if marked {
		p.alone = false
		p.skip = p.i
	}
	p.blank()
	for !p.invented() && p.call(marked) {
		for p.token(closers()) || fenced && p.token(fences()) {
		}
		if !marked {
			break
		}
		if p.token(openers()) {
			fenced = p.open()
		}
		p.blank()
		p.token([]string{",", ";"})
	}
	if len(p.found) == n {
		p.i = start
		return false
	}
	return true
}

// open skips further marks, and reports whether a fence follows them.
func (p *parser) open() bool {
	for p.token(openers()) {
	}
	return p.token(fences())
}

// invented reports whether behind a call its made up result comes.
func (p *parser) invented() bool { return p.found != nil && isInvented(p.text[p.i:]) }

// call reads what stands between marks: one call, or a list of them.
func (p *parser) call(marked bool) bool {
	if p.i >= len(p.text) {
		return false
	}
	switch s := p.text[p.i:]; {
	case strings.HasPrefix(s, "<function="):
		return p.functionTag()
	case s[0] == '{' || s[0] == '[' && !p.pythonicList():
		return p.json()
	case marked && p.nameThenJSON():
		return true
	case s[0] == '[' || startsName(s[0]):
		return p.pythonic()
	}
	return false
}

func (p *parser) blank() { p.i = skipBlank(p.text, p.i) }

// token skips blanks and the first of the tokens that follows them.
func (p *parser) token(tokens []string) bool {
	j := skipBlank(p.text, p.i)
	for _, t := range tokens {
		if strings.HasPrefix(p.text[j:], t) {
			p.i = j + len(t)
			return true
		}
	}
	return false
}

// fenceEnd skips the end of a fence and reports whether nothing but that was
// left; the end of the text will do.
func (p *parser) fenceEnd() (int, bool) {
	j := skipBlank(p.text, p.i)
	if strings.HasPrefix(p.text[j:], "```") {
		return j + 3, true
	}
	return len(p.text), strings.HasPrefix("```", p.text[j:])
}

// add appends a call if its function is known, under whatever prefix.
func (p *parser) add(name string, args string, cut, open bool) bool {
	form := knownForm(name, p.known)
	if form == "" && p.any && p.marked && namesFunction(name) {
		form = name
	}
	if form != "" {
		p.found = append(p.found, FoundCall{Name: form, Arguments: args, Truncated: cut || Truncated(args), Open: open})
	}
	return form != ""
}

// knownForm returns the form of a name under which its function is known, or "".
func knownForm(name string, known func(string) bool) string {
	for _, form := range []string{name, strings.ReplaceAll(name, `\`, ""), unprefixed(name)} {
		if form != "" && known(form) {
			return form
		}
	}
	return ""
}

// namesFunction reports whether a function may have that name, which providers
// hold to 64 letters, digits and marks.
func namesFunction(name string) bool {
	if name == "" || len(name) > 64 || !startsName(name[0]) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || !isWord(byte(r)) && !strings.ContainsRune(`-.:/\`, r) }) < 0
}

// json reads an object or array of calls.
func (p *parser) json() bool {
	v, end, cut := p.readPrefix(p.i)
	if end == 0 {
		return false
	}
	n := len(p.found)
	p.object(v, cut, 0)
	if len(p.found) == n {
		if !v.open {
			p.skip = p.i + end
		}
		return false
	}
	p.i += end
	return true
}

// readPrefix reads the value that starts at i, and returns its length, or 0 if
// none starts there.
func (p *parser) readPrefix(i int) (v value, length int, cut bool) {
	s := p.text[i:]
	var whole json.RawMessage
	d := json.NewDecoder(strings.NewReader(s))
	if d.Decode(&whole) == nil {
		v, err := readStrict(string(whole))
		if err == nil {
			p.spent += len(whole)
			return v, int(d.InputOffset()), false
		}
	}
	for _, r := range []*reader{{s: s}, {s: s, plain: true}} {
		v, err := r.value()
		p.spent += r.i
		if err == nil && (!r.cut || r.plain) {
			return v, r.i, r.cut
		}
	}
	return value{}, 0, false
}

// object adds the calls in v, which may be one, a list, or hold a list.
func (p *parser) object(v value, cut bool, depth int) {
	if depth > 4 { // {"tool_calls": [{"function": {...}}]} has three
		return
	}
	for _, item := range v.items {
		p.object(item, cut, depth+1)
	}
	for _, key := range []string{"tool_calls", "function_calls", "calls", "function_call", "tool_call"} {
		if inner := v.get(key); inner != nil && (inner.kind == array || inner.kind == object) {
			n := len(p.found)
			p.object(*inner, cut, depth+1)
			if len(p.found) > n {
				p.think(v)
				return
			}
		}
	}
	p.single(v, cut, depth)
}

// single adds the call that v is, if it has a name and arguments.
func (p *parser) single(v value, cut bool, depth int) {
	key, name := callName(v)
	if name == nil {
		return
	}
	if name.kind == object { // {"function": {"name": ..., "arguments": ...}}
		p.object(*name, cut, depth+1)
		return
	}
	args, ok := callArguments(v, key)
	if !ok || isDefinition(v, args) {
		return
	}
	cut = cut && v.open // of a list only the last one can be
	defer func(before bool) { p.marked = before }(p.marked)
	p.marked = p.marked || key == "name" && isPlainCall(v)
	if flat := args.raw == "" && args.kind == object; p.add(name.str, written(args, cut), cut, v.open) && !(p.any && flat) {
		p.think(v)
	}
}

// isPlainCall reports whether v has a name, arguments, and else at most what
// stands beside them in calls.
func isPlainCall(v value) bool {
	for _, f := range v.fields {
		if !slices.Contains([]string{"name", "arguments", "parameters", "type", "id", "inner_thoughts", "thoughts"}, f.name) {
			return false
		}
	}
	return v.has("arguments") || v.has("parameters")
}

// think keeps the thoughts that stand beside the arguments, and for ReadReply any
// other text there.
func (p *parser) think(v value) {
	for _, f := range v.fields {
		switch f.name {
		case "inner_thoughts", "thoughts", "thought", "thinking", "reasoning":
		case "name", "function", "tool", "tool_name", "function_name", "type", "id":
			continue
		default:
			if !p.any || slices.Contains(argumentKeys(), f.name) {
				continue
			}
		}
		if f.value.kind == text && strings.TrimSpace(f.value.str) != "" {
			p.thoughts = append(p.thoughts, f.value.str)
		}
	}
}

func argumentKeys() []string {
	return []string{"arguments", "parameters", "params", "args", "kwargs", "input", "tool_input"}
}

// callName returns the field that names the function.
func callName(v value) (string, *value) {
	for _, key := range []string{"function", "name", "tool", "tool_name", "function_name"} {
		if name := v.get(key); name != nil && (name.kind == text || name.kind == object && key == "function") {
			return key, name
		}
	}
	return "", nil
}

// callArguments returns the field that holds the arguments. Beside "function"
// or "tool" the arguments may stand in no field of their own; "name" is too
// common a word for that.
func callArguments(v value, nameKey string) (value, bool) {
	for _, key := range argumentKeys() {
		if args := v.get(key); args != nil && (args.kind == object || args.kind == text || args.kind == null) {
			return *args, true
		}
	}
	if nameKey == "name" {
		return value{}, false
	}
	flat := value{kind: object}
	for _, f := range v.fields {
		if f.name != nameKey && f.name != "type" && f.name != "id" {
			flat.fields = append(flat.fields, f)
		}
	}
	return flat, true
}

// isDefinition reports whether v describes a function instead of calling it.
func isDefinition(v, args value) bool {
	return args.has("type") && args.has("properties") || v.has("name") && v.has("description")
}

// written returns arguments as JSON; of those that were cut off, what the model
// wrote, so that everyone sees that they were.
func written(args value, cut bool) string {
	switch {
	case args.kind == text:
		return args.str
	case args.kind == null:
		return "{}"
	case cut && args.raw != "":
		return args.raw
	}
	return args.String()
}

// nameThenJSON reads a name and its arguments with marks between: Mistral's
// name[ARGS]{...} and DeepSeek's two forms.
func (p *parser) nameThenJSON() bool {
	j := p.i
	if rest, ok := strings.CutPrefix(p.text[j:], "function<｜tool▁sep｜>"); ok {
		j = len(p.text) - len(rest)
	}
	start := j
	for j < len(p.text) && (isWord(p.text[j]) || strings.IndexByte("-.:", p.text[j]) >= 0) && !strings.HasPrefix(p.text[j:], "｜") {
		j++
	}
	inner := &parser{text: p.text, i: j}
	for inner.token([]string{"[ARGS]", "<｜tool▁sep｜>", "<|tool_call_argument_begin|>", "```json", "```"}) {
	}
	inner.blank()
	if inner.i >= len(p.text) || p.text[inner.i] != '{' {
		return false
	}
	v, end, cut := p.readPrefix(inner.i)
	if end == 0 || v.kind != object || !p.add(p.text[start:j], written(v, cut), cut, v.open) {
		return false
	}
	p.i = inner.i + end
	if strings.Contains(p.text[j:inner.i], "```") {
		p.token([]string{"```"})
	}
	return true
}

// functionTag reads <function=name>{...}</function> and Qwen's form with a tag
// for each parameter.
func (p *parser) functionTag() bool {
	s := p.text[p.i+len("<function="):]
	defer func(before bool) { p.marked = before }(p.marked)
	p.marked = true
	name, body, ok := strings.Cut(s, ">")
	if !ok || strings.ContainsAny(name, "\n<") {
		return false
	}
	name = strings.Trim(name, `"' `)
	start := len(p.text) - len(body)
	inner := &parser{text: p.text, i: skipBlank(p.text, start)}
	if strings.HasPrefix(p.text[inner.i:], "{") {
		v, end, cut := p.readPrefix(inner.i)
		if end == 0 || !p.add(name, written(v, cut), cut, v.open) {
			return false
		}
		p.i = inner.i + end
	} else {
		v, cut := inner.parameterTags()
		end := strings.HasPrefix(p.text[skipBlank(p.text, inner.i):], "</function>")
		prose := len(v.fields) == 0 && !end && skipBlank(p.text, inner.i) < len(p.text)
		if prose || !p.add(name, v.String(), cut, !end) {
			return false
		}
		p.i = inner.i
	}
	p.token([]string{"</function>"})
	return true
}

// parameterTags reads <parameter=name>text</parameter>. The text has no quotes
// and no escapes; one line break at each end belongs to the layout.
func (p *parser) parameterTags() (v value, cut bool) {
	v.kind = object
	for p.token([]string{"<parameter="}) {
		name, content, ok := strings.Cut(p.text[p.i:], ">")
		if !ok {
			p.i = len(p.text)
			return v, true
		}
		content, after, closed := strings.Cut(content, "</parameter>")
		p.i = len(p.text) - len(after)
		content = strings.TrimSuffix(strings.TrimPrefix(content, "\n"), "\n")
		v.fields = append(v.fields, field{strings.Trim(name, `"' `), textOf(clean(content))})
		if !closed {
			p.i = len(p.text)
			return v, true
		}
	}
	v.fields = settle(v.fields)
	return v, false
}

func byteAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}
