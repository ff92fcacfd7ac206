package offline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"memgpt"
)

// line is one statement that a summary may keep.
type line struct {
	text   string // as the summary would write it
	weight int    // how much it matters
	at     int    // its place
}

const (
	wordsEnglish = "Search for: "
	wordsChinese = "搜索词："
	foldDefault  = 400 // tokens of a summary when the request sets no bound
	foldMargin   = 0.8 // of the bound is used, since the count is rough
	maxWords     = 12  // words to search for
)

// foldRequest writes the summary that a request asks for.
func (m *Model) foldRequest(req *memgpt.Request) string {
	var texts []string
	for i := range req.Messages {
		if req.Messages[i].Role != memgpt.RoleSystem {
			texts = append(texts, req.Messages[i].Said())
		}
	}
	old, lines := readFold(strings.Join(texts, "\n"))
	budget := foldDefault
	if req.MaxTokens > 0 {
		budget = req.MaxTokens
	}
	if m := wordBound.FindStringSubmatch(systemOf(req)); m != nil {
		budget = min(budget, max(atoi(m[1])*3/2, leastRoom))
	}
	l := langOf(old + strings.Join(lines, " "))
	if !brings(old, lines) && estimate(old) <= budget {
		return firstOf(old, noSummary)
	}
	return firstOf(fold(old, lines, l, int(foldMargin*float64(budget))), noSummary)
}

// noSummary stands for a summary where there is nothing to sum up: an answer may not be empty. It is what the request
// writes there, and never read as something that was said.
const noSummary = "(none)"

// brings tells whether lines have anything to keep that the summary lacks. The steps of a search have not: what they hold
// are quotations, which stay where they were found.
func brings(old string, lines []string) bool {
	for _, s := range lines {
		if telling(spokenPart(s)) > 0 && !strings.Contains(old, s) {
			return true
		}
	}
	return false
}

var wordBound = regexp.MustCompile(`(?i)at most (\d+) words`)

func systemOf(req *memgpt.Request) string {
	for i := range req.Messages {
		if req.Messages[i].Role == memgpt.RoleSystem {
			return req.Messages[i].Said()
		}
	}
	return ""
}

var (
	foldHead   = regexp.MustCompile(`(?i)^(?:summary so far|old summary|earlier summary|messages(?: that| which)? .*|new messages|evicted messages|summary of .*|先前的?摘要|旧摘要|新消息)[:：]?$`)
	quotedLine = regexp.MustCompile(`^(\d{4}-\d\d-\d\d\S*|unknown) (.{1,80}?): (".*)$`)
	resultLine = regexp.MustCompile(`^(?:\d{4}-\d\d-\d\d\S*|unknown) result of `)
	calledLine = regexp.MustCompile(`; the agent called .*$|^(?:\d{4}-\d\d-\d\d\S*|unknown) the agent (?:called|thought).*$`)
)

// readFold reads the text to fold: the summary so far, and what was said since, a line each.
func readFold(text string) (old string, lines []string) {
	var kept []string
	inOld := strings.Contains(strings.ToLower(text), "summary so far:")
	for _, raw := range strings.Split(text, "\n") {
		raw = strings.TrimSpace(raw)
		switch {
		case foldHead.MatchString(raw):
			inOld = inOld && strings.Contains(strings.ToLower(raw), "summary")
		case raw == "" || raw == noSummary || resultLine.MatchString(raw):
		case inOld:
			kept = append(kept, raw)
		default:
			if said := foldLine(raw); said != "" {
				lines = append(lines, said)
			}
		}
	}
	return strings.Join(kept, "\n"), lines
}

// foldLine reads one line of what was said: a date, a speaker and a quoted text, an object, or plain words.
func foldLine(raw string) string {
	if strings.HasPrefix(raw, "{") {
		return objectLine(raw)
	}
	raw = calledLine.ReplaceAllString(raw, "")
	m := quotedLine.FindStringSubmatch(raw)
	if m == nil {
		return raw
	}
	text := unquote(m[3])
	if inner := objectLine(text); inner != "" && strings.HasPrefix(text, "{") {
		return inner
	}
	return attributed(m[1], m[2], text)
}

// unquote reads a JSON string, also one that was cut.
func unquote(s string) string {
	var text string
	s = strings.TrimSuffix(s, " […]")
	for _, end := range []string{"", `"`} {
		if json.Unmarshal([]byte(s+end), &text) == nil {
			return text
		}
	}
	return strings.Trim(s, `"`)
}

func objectLine(raw string) string {
	var o struct {
		Type, Role, Name, Speaker, Time, Text string
		Message                               json.RawMessage
	}
	if json.Unmarshal([]byte(raw), &o) != nil {
		return ""
	}
	var text string
	if json.Unmarshal(o.Message, &text) != nil {
		text = o.Text
	}
	if o.Type != "" && memgpt.EventType(o.Type) != memgpt.EventUser || text == "" {
		return ""
	}
	return attributed(o.Time, firstOf(o.Name, o.Speaker, o.Role), text)
}

// attributed writes what was said with its day and speaker.
func attributed(when, who, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	who = strings.TrimSpace(who)
	l := langOf(text)
	switch who {
	case "user", "":
		who = l.pick("the user", "用户")
	case "assistant", "the agent said":
		who = l.pick("I", "我")
	case "system":
		return ""
	}
	if d := day(when); d != "" {
		who = d + " " + who
	}
	if text == "" {
		return ""
	}
	return who + l.pick(": ", "：") + text
}

// linesOf writes what was said in messages of the queue, a line each.
func linesOf(items []item) []string {
	var lines []string
	for _, it := range items {
		switch {
		case it.kind == heard && it.typ == memgpt.EventUser:
			lines = append(lines, attributed(it.when, firstOf(it.name, "user"), it.text))
		case it.kind == said && it.text != "":
			lines = append(lines, attributed("", "assistant", it.text))
		}
	}
	return slices.DeleteFunc(lines, func(s string) bool { return s == "" })
}

// fold writes a summary of an old one and of lines in at most budget tokens: the statements that matter most, verbatim,
// in their order, and then a line of words to search for. It returns "" where nothing matters or fits.
func fold(old string, lines []string, l lang, budget int) string {
	if budget < leastRoom {
		return ""
	}
	all := weigh(old, lines)
	words := searchWords(all, l, budget/4)
	left := budget - estimate(words) - 1
	var kept []line
	byWeight := slices.Clone(all)
	slices.SortStableFunc(byWeight, func(a, b line) int { return b.weight - a.weight })
	for _, x := range byWeight {
		if x.weight <= 0 {
			break
		}
		if need := estimate(x.text) + 2; need <= left {
			kept, left = append(kept, x), left-need
		} else if part := essence(x.text, min(left-2, budget/2)); part != "" {
			kept, left = append(kept, line{part, x.weight, x.at}), left-estimate(part)-2
		}
	}
	if len(kept) == 0 {
		return ""
	}
	slices.SortFunc(kept, func(a, b line) int { return a.at - b.at })
	var b strings.Builder
	for _, x := range kept {
		fmt.Fprintf(&b, "- %s\n", x.text)
	}
	return strings.TrimSpace(b.String() + words)
}

// weigh lists the statements of the old summary and of the lines, each once, with what they are worth.
func weigh(old string, lines []string) []line {
	var all []line
	seen := map[string]bool{}
	add := func(text string, bonus int) {
		text = strings.TrimSpace(strings.TrimLeft(text, "-• "))
		if text == "" || wordsLine(text) || seen[text] {
			return
		}
		seen[text] = true
		all = append(all, line{text, telling(spokenPart(text)) + bonus, len(all)})
	}
	for _, s := range strings.Split(old, "\n") {
		if s = strings.TrimSpace(s); s != "" {
			add(s, 2)
		}
	}
	for _, s := range lines {
		add(s, 0)
	}
	return all
}

// spokenPart is a line without its day and speaker.
func spokenPart(s string) string {
	for _, sep := range []string{": ", "："} {
		if head, rest, ok := strings.Cut(s, sep); ok && memgpt.Runes(head) < 40 {
			return rest
		}
	}
	return s
}

// telling says how much a statement has to tell: numbers, names, the speaker's own matters; questions and small talk have
// nothing.
func telling(s string) int {
	if talkOf(s) != noTalk || admits(s) || asksOnly(s) {
		return 0
	}
	n := 1
	if strings.ContainsAny(s, "0123456789") || strings.ContainsAny(s, "一二三四五六七八九十") {
		n += 2
	}
	n += min(len(names(s)), 3)
	if aboutSpeaker(s) {
		n++
	}
	if memgpt.Runes(s) < 6 {
		n--
	}
	return n
}

// names returns the words of letters with a capital that no sentence begins with.
func names(s string) []string {
	var list []string
	first := true
	for _, w := range strings.Fields(s) {
		word := strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		r := []rune(word)
		if len(r) > 1 && unicode.IsUpper(r[0]) && !first && !stopWords[strings.ToLower(word)] {
			list = append(list, strings.TrimSuffix(word, "'s"))
		}
		first = strings.ContainsAny(w[len(w)-1:], ".!?:") || strings.HasSuffix(w, "。")
	}
	return list
}

// essence returns the most telling sentence of a text that costs at most n tokens, with the text's day and speaker.
func essence(text string, n int) string {
	said := spokenPart(text)
	head := strings.TrimSuffix(text, said)
	best, worth := "", 1
	for _, s := range sentences(said) {
		if w := telling(s); w > worth && estimate(head+s) <= n {
			best, worth = s, w
		}
	}
	if best == "" {
		return ""
	}
	return head + best
}

// searchWords writes the line of words to search for, in at most n tokens.
func searchWords(all []line, l lang, n int) string {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b line) int { return b.weight - a.weight })
	var words []string
	for _, x := range sorted {
		for _, w := range contentTerms(spokenPart(x.text)) {
			if findable(w, x.text) && len(words) < maxWords && !slices.Contains(words, w.text) && estimate(strings.Join(words, ", ")+w.text)+6 <= n {
				words = append(words, w.text)
			}
		}
	}
	if len(words) == 0 {
		return ""
	}
	return l.pick(wordsEnglish, wordsChinese) + strings.Join(words, l.pick(", ", "、"))
}

// findable tells whether a word of a text is one by which the text can be found again: a name, a number or code, a long
// word, a short run of characters, and none that any talk is full of.
func findable(w term, text string) bool {
	n := memgpt.Runes(w.text)
	switch {
	case n < 2 || n > maxWordLength || hollowWords[strings.ToLower(w.text)]:
		return false
	case w.dense:
		return n <= maxRun
	}
	return w.weight > 1 || slices.Contains(names(text), w.text)
}

const (
	maxWordLength = 40 // characters of a word to search for
	maxRun        = 8  // of one without spaces: longer ones are clauses
)

// wordsLine tells whether a line lists words to search for.
func wordsLine(s string) bool {
	return strings.HasPrefix(s, strings.TrimSpace(wordsEnglish)) || strings.HasPrefix(s, wordsChinese)
}

// headLine tells whether a line only introduces what follows.
func headLine(s string) bool { return strings.HasSuffix(s, ":") || strings.HasSuffix(s, "：") }

// oldSummary returns the recursive summary within the message at the head of the queue, without what is said there about
// what lies outside.
func oldSummary(message string) string {
	lines := strings.Split(message, "\n")
	for i, s := range lines {
		if s = strings.ToLower(s); strings.HasPrefix(s, "summary") && strings.HasSuffix(s, ":") {
			return strings.Join(lines[i+1:], "\n")
		}
	}
	if strings.HasPrefix(message, "Outside main context") {
		return ""
	}
	return message
}
