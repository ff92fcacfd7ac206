package ingest

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// title is one heading of a path; lower levels lie above.
type title struct {
	level int
	text  string
}

const (
	maxTitle     = 120 // characters of a heading shown in a path
	maxPlainHead = 80  // bytes of a line that may be a heading in plain text: three of them make one of a Han character
)

// enter makes a heading the last of the path.
func (t *cutting) enter(level int, text string) {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) > maxTitle {
		text = string([]rune(text)[:maxTitle-1]) + "…"
	}
	for len(t.path) > 0 && t.path[len(t.path)-1].level >= level {
		t.path = t.path[:len(t.path)-1]
	}
	if text != "" && (len(t.path) == 0 || t.path[len(t.path)-1].text != text) {
		t.path = append(t.path, title{level, text})
	}
}

// where is the path of headings as a chunk shows it.
func (t *cutting) where() string {
	texts := make([]string, len(t.path))
	for i, h := range t.path {
		texts[i] = h.text
	}
	return strings.Join(texts, " > ")
}

// Levels of headings in plain text. What is underlined lies by its sign.
const (
	levelPart = iota + 1
	levelChapter
	levelCapitals
	levelNumbered // and below by the count of its numbers
)

var (
	chinesePart    = regexp.MustCompile(`^第[〇零一二三四五六七八九十百千万两0-9０-９]{1,8}([卷部篇集章回幕节節])(?:[\s:：　]\S.*|)$`)
	wordPart       = regexp.MustCompile(`^(?i:(part|book|volume|teil|band|partie|livre|parte|libro|часть|том)|chapter|kapitel|chapitre|cap[ií]tulo|глава|appendix|section) [\dIVXLC]+\b[.:]?[^.!?]*\.?$`)
	spelledPart    = regexp.MustCompile(`^(BOOK|PART|VOLUME|CHAPTER) [A-Z-]+\b[^.!?]*$`)
	numberedHead   = regexp.MustCompile(`^(\d{1,3}(?:\.\d{1,3}){0,4})\.?\s+\p{Lu}[^.!?:;,]{1,70}$`)
	underlineMarks = "=-~^*#\"+"
)

// plainHeading reports whether a line of plain text that stands alone is a heading. It is meant to miss some rather than
// to find what is none.
func plainHeading(line string) (level int, ok bool) {
	if len(line) > maxPlainHead {
		return 0, false
	}
	if m := wordPart.FindStringSubmatch(line); m != nil {
		if m[1] != "" {
			return levelPart, true
		}
		return levelChapter, true
	}
	if m := spelledPart.FindStringSubmatch(line); m != nil {
		if m[1] == "CHAPTER" {
			return levelChapter, true
		}
		return levelPart, true
	}
	if m := numberedHead.FindStringSubmatch(line); m != nil {
		return levelNumbered + strings.Count(m[1], "."), true
	}
	return levelCapitals, isCapitals(line)
}

func isCapitals(line string) bool {
	upper := 0
	for _, r := range line {
		if unicode.IsLower(r) || unicode.IsLetter(r) && !unicode.IsUpper(r) {
			return false
		}
		if unicode.IsUpper(r) {
			upper++
		}
	}
	return upper >= 4 && strings.Contains(line, " ") && !strings.ContainsAny(line[len(line)-1:], ".,;:!?") &&
		strings.IndexFunc(line, unicode.IsUpper) == 0
}

// plainLine takes a line of plain text that is not blank.
func (t *cutting) plainLine(line []byte) error {
	text := string(bytes.TrimSpace(line[:min(len(line), 2*maxPlainHead)]))
	if m := chinesePart.FindStringSubmatch(text); m != nil && len(text) <= 2*maxPlainHead && len(line) < 2*maxPlainHead &&
		!strings.ContainsAny(text, "。！？，；") {
		if err := t.endBlock(false); err != nil {
			return err
		}
		t.append(line)
		return t.head(span{t.end() - int64(len(line)), t.end()}, chineseLevel(m[1]), text)
	}
	if level, head, ok := t.underlined(text); ok {
		t.more(prose, line)
		t.block = noBlock
		return t.head(span{t.start, t.end()}, level, head)
	}
	t.more(prose, line)
	return nil
}

func chineseLevel(unit string) int {
	switch unit {
	case "章", "回", "幕":
		return levelChapter
	case "节", "節":
		return levelNumbered
	}
	return levelPart
}

// underlined reports whether a line underlines the open block, which must be one line, under another such line perhaps.
func (t *cutting) underlined(line string) (level int, head string, ok bool) {
	if t.block != prose || t.lines > 2 || t.broken || !isRule(line) {
		return 0, "", false
	}
	head = t.string(t.start, t.end())
	if over, under, found := strings.Cut(head, "\n"); found {
		if !isRule(over) || over[0] != line[0] {
			return 0, "", false
		}
		head = under
	}
	head = strings.TrimSpace(head)
	width := utf8.RuneCountInString(head)
	if isRule(head) || width > maxTitle || utf8.RuneCountInString(line)+2 < width {
		return 0, "", false
	}
	return levelNumbered + strings.IndexByte(underlineMarks, line[0]), head, true
}

// isRule reports whether a line is one sign three times or more.
func isRule(line string) bool {
	return len(line) > 2 && strings.IndexByte(underlineMarks, line[0]) >= 0 && strings.Trim(line, line[:1]) == ""
}
