package kernel

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"memgpt"
	"memgpt/store"
)

// termMatcher finds texts that hold a term.
type termMatcher struct {
	k    *Kernel
	fold string // the term under Config.Normalize
	base []string
}

// newTermMatcher returns a matcher. Other forms are known of a single word only: the words of a phrase stand in many texts.
func (k *Kernel) newTermMatcher(term string) *termMatcher {
	m := &termMatcher{k: k, fold: k.cfg.Normalize(memgpt.CleanText(term))}
	if strings.ContainsFunc(m.fold, func(c rune) bool { return !inWord(c) }) {
		return m
	}
	terms, _ := k.cfg.Analyzer.Analyze(store.IndexText{Text: term})
	for _, t := range terms[:min(len(terms), 1)] {
		m.base = append(m.base, t.Term)
	}
	return m
}

// quotedLevels is how often a text is looked through for a term that was escaped: a name in a message, quoted in a result,
// quoted in a thought.
const quotedLevels = 3

// match reports whether a text holds the term as a word, and whether it holds it at all, in a longer word or another form:
// as it is, or as JSON or Go write it between quotation marks.
func (m *termMatcher) match(text string) (whole, related bool) {
	whole, related = m.matchPlain(text)
	for level := 0; level < quotedLevels && !whole && strings.Contains(text, `\`); level++ {
		text = unescaped(text)
		w, r := m.matchPlain(text)
		whole, related = w, related || r
	}
	return whole, related
}

var (
	escapedOne   = regexp.MustCompile(`(?:\\u[0-9A-Fa-f]{4})+|\\["\\/nrt]`)
	escapedUnits = regexp.MustCompile(`[0-9A-Fa-f]{4}`)
)

// unescaped takes one level of escapes out of a text, wherever in it they stand.
func unescaped(text string) string {
	return escapedOne.ReplaceAllStringFunc(text, func(s string) string {
		switch s[1] {
		case 'n', 'r', 't':
			return " "
		case 'u':
			var units []uint16
			for _, hex := range escapedUnits.FindAllString(s, -1) {
				n, _ := strconv.ParseUint(hex, 16, 16)
				units = append(units, uint16(n))
			}
			return string(utf16.Decode(units))
		}
		return s[1:]
	})
}

func (m *termMatcher) matchPlain(text string) (whole, related bool) {
	folded := m.k.cfg.Normalize(text)
	for from := 0; ; {
		i := strings.Index(folded[from:], m.fold)
		if i < 0 {
			break
		}
		i += from
		if atBorder(folded, i) && atBorder(folded, i+len(m.fold)) {
			return true, true
		}
		related = true
		_, size := utf8.DecodeRuneInString(folded[i:])
		from = i + size
	}
	if related || len(m.base) == 0 {
		return false, related
	}
	terms, _ := m.k.cfg.Analyzer.Analyze(store.IndexText{Text: text})
	return false, slices.ContainsFunc(terms, func(t store.TermCount) bool { return t.Term == m.base[0] })
}

// atBorder reports whether no word goes on at i.
func atBorder(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	return i == 0 || i == len(s) || !inWord(before) || !inWord(after)
}

// inWord reports whether a character is part of a word in a script that sets words apart.
func inWord(c rune) bool {
	if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) {
		return false
	}
	return !unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// messageTexts returns every text of a message: as it is stored, and what is within the arguments of calls as it is meant.
// Names of functions and of their parameters are no texts: else who has the word "message" forgotten would lose whatever
// send_message said.
func messageTexts(m *memgpt.Message) []string {
	texts := []string{m.Author, m.Session}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			texts = append(texts, p.Text)
		case memgpt.Call:
			texts = append(texts, argumentTexts(p.Arguments)...)
		case memgpt.Result:
			texts = append(append(texts, p.Text), jsonTexts(p.Text)...)
		case memgpt.Reasoning:
			texts = append(append(texts, p.Text, string(p.Data)), jsonTexts(string(p.Data))...)
		case memgpt.Image:
			texts = append(texts, p.URL, string(p.Data))
		case memgpt.File:
			texts = append(texts, p.Name, p.URL, string(p.Data))
		case memgpt.Quotes:
			texts = append(texts, p.IDs...)
		case memgpt.Unknown:
			texts = append(append(texts, string(p.Raw)), jsonTexts(string(p.Raw))...)
		}
	}
	return texts
}

// argumentTexts returns what the arguments of a call say: strings, numbers, and the names within them.
func argumentTexts(args string) (texts []string) {
	if !json.Valid([]byte(args)) {
		return []string{args}
	}
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	named := strings.HasPrefix(strings.TrimSpace(args), "{")
	for depth, place := 0, 0; ; {
		tok, err := dec.Token()
		if err != nil {
			return texts
		}
		if depth == 1 {
			place++
		}
		switch tok := tok.(type) {
		case json.Delim:
			if tok == '{' || tok == '[' {
				depth++
			} else {
				depth--
			}
		case json.Number:
			texts = append(texts, tok.String())
		case string:
			if !named || depth != 1 || place%2 == 0 { // at the top every second one is a parameter's name
				texts = append(texts, tok)
			}
		}
	}
}

// jsonTexts returns the strings in a JSON value; none where it isn't one.
func jsonTexts(data string) (texts []string) {
	if v := decodeTexts(data); v != nil {
		walkTexts(v, func(s string) string { texts = append(texts, s); return s })
	}
	return texts
}

// decodeTexts decodes a JSON object or list, numbers as they are written; nil where it is none.
func decodeTexts(data string) (v any) {
	if start := strings.TrimSpace(data); !strings.HasPrefix(start, "{") && !strings.HasPrefix(start, "[") || !json.Valid([]byte(data)) {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(data))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}

// walkTexts replaces every string in a decoded JSON value, names of members too.
func walkTexts(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = walkTexts(v[i], f)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[f(name)] = walkTexts(member, f)
		}
		return out
	}
	return v
}

// traces are how a forgotten text is known again where others quote it.
type traces struct {
	ids   map[string]bool
	idSet *strings.Replacer // cuts the ids out
	texts []string
	quote *strings.Replacer // puts the mark in place of texts
}

// Weights of texts that are looked for elsewhere: what is shorter may have been said by anybody about anything. A
// character of a script without spaces weighs three.
const (
	wholeWeight = 12 // of a text as a whole
	pieceWeight = 24 // of one sentence of it
	maxPieces   = 2000
)

func newTraces() *traces { return &traces{ids: map[string]bool{}} }

// addID notes something that goes: results that name it have quoted it.
func (t *traces) addID(id string) { t.ids[id] = true }

// addText notes a text that goes, and its sentences. Who quotes rarely keeps the marks around a sentence.
func (t *traces) addText(text string) {
	add := func(text string, least int) {
		if text = strings.TrimFunc(text, isPunct); textWeight(text) >= least {
			t.texts = append(t.texts, text)
		}
	}
	add(text, wholeWeight)
	for len(text) > 0 && len(t.texts) < maxPieces {
		var piece string
		piece, text = cutSentence(text)
		add(piece, pieceWeight)
	}
}

func isPunct(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) }

func (t *traces) addMessage(m *memgpt.Message) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case memgpt.Text:
			t.addText(p.Text)
		case memgpt.Reasoning:
			t.addText(p.Text)
		case memgpt.Result:
			t.addText(p.Text)
		case memgpt.Call:
			for _, s := range jsonTexts(p.Arguments) {
				t.addText(s)
			}
		}
	}
}

// cutSentence cuts a text after its first sentence, line, or what comes before a colon: who is told "remember: …" keeps the
// rest.
func cutSentence(text string) (first, rest string) {
	for i, c := range text {
		switch c {
		case '\n', '。', '！', '？', '：', '；':
		case '.', '!', '?', ':', ';':
			if i+1 < len(text) && text[i+1] != ' ' && text[i+1] != '\n' {
				continue
			}
		default:
			continue
		}
		end := i + utf8.RuneLen(c)
		return text[:end], text[end:]
	}
	return text, ""
}

func textWeight(s string) (n int) {
	for _, c := range s {
		switch {
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
			n += 3
		default:
			n++
		}
	}
	return n
}

// ready builds what finds the traces: each text as it is, and as JSON has it within strings.
func (t *traces) ready() {
	slices.SortFunc(t.texts, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }) // of those that begin alike the longest
	t.texts = slices.Compact(t.texts)
	var pairs, ids []string
	for _, text := range t.texts {
		escaped := string(appendString(nil, text))
		html, _ := json.Marshal(text)
		pairs = append(pairs, text, forgottenMark)
		for _, form := range []string{escaped[1 : len(escaped)-1], string(html[1 : len(html)-1])} {
			if form != text {
				pairs = append(pairs, form, forgottenMark)
			}
		}
	}
	for id := range t.ids {
		ids = append(ids, id, "")
	}
	t.quote, t.idSet = strings.NewReplacer(pairs...), strings.NewReplacer(ids...)
}

// cut returns a text with the mark in place of what goes.
func (t *traces) cut(s string) string { return t.quote.Replace(s) }

func (t *traces) in(s string) bool { return len(t.texts) > 0 && t.cut(s) != s }

// named reports whether a text names something that goes.
func (t *traces) named(s string) bool { return t.withoutIDs(s) != s }

func (t *traces) withoutIDs(s string) string { return t.idSet.Replace(s) }

// onlyMarks reports whether nothing but marks is left of a text.
func onlyMarks(s string) bool {
	return strings.TrimFunc(strings.ReplaceAll(s, forgottenMark, ""), isPunct) == ""
}

// cutMessage returns a message with the mark in place of what goes, and whether anything did. A part that can't be
// changed goes whole.
func (t *traces) cutMessage(m memgpt.Message) (memgpt.Message, bool) {
	changed := false
	parts := make(memgpt.Parts, 0, len(m.Parts))
	for _, p := range m.Parts {
		q, did := t.cutPart(p)
		changed = changed || did
		if q != nil {
			parts = append(parts, q)
		}
	}
	if !changed {
		return m, false
	}
	m.Parts = parts
	return m, true
}

func (t *traces) cutPart(p memgpt.Part) (memgpt.Part, bool) {
	switch p := p.(type) {
	case memgpt.Text:
		was := p.Text
		p.Text = t.cut(was)
		return p, p.Text != was
	case memgpt.Result:
		was := p.Text
		p.Text = t.cut(was)
		return p, p.Text != was
	case memgpt.Call:
		was := p.Arguments
		p.Arguments = t.cutJSON(was)
		if strings.HasPrefix(p.Name, factFunctions) && (p.Arguments != was || t.named(was)) {
			p.Arguments = withoutFactDates(p.Arguments)
		}
		return p, p.Arguments != was
	}
	if slices.ContainsFunc(messageTexts(&memgpt.Message{Parts: memgpt.Parts{p}}), t.in) {
		return nil, true
	}
	return p, false
}

// factFunctions is how the names of the functions begin that store and change passages.
const factFunctions = "archival_memory_"

// withoutFactDates puts the mark in place of the dates in a call of such a function, under all names that models give them: what a
// forgotten passage was about, and when it ended, is part of it.
func withoutFactDates(arguments string) string {
	args, object := decodeTexts(arguments).(map[string]any)
	changed := false
	for _, name := range []string{"about", "ended", "date", "when", "valid_from", "valid_until", "until"} {
		if text, ok := args[name].(string); object && ok && text != "" && text != forgottenMark {
			args[name], changed = forgottenMark, true
		} else if number, ok := args[name].(json.Number); object && ok && number != "" { // a year
			args[name], changed = forgottenMark, true
		}
	}
	if !changed {
		return arguments
	}
	return string(mustJSON(args))
}

// toldDates finds what results of those functions tell of a passage's dates.
func toldDates(result string) bool {
	return strings.Contains(result, "(about ") || strings.Contains(result, " is marked as true until ")
}

// cutJSON is cut for the strings in a JSON value, however they are escaped.
func (t *traces) cutJSON(data string) string {
	if !slices.ContainsFunc(jsonTexts(data), t.in) {
		return t.cut(data)
	}
	return string(mustJSON(walkTexts(decodeTexts(data), t.cut)))
}
