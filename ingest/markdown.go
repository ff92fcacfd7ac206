package ingest

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	atxHead  = regexp.MustCompile(`^ {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$`)
	setext   = regexp.MustCompile(`^ {0,3}(?:=+|-+)[ \t]*$`)
	fenceRow = regexp.MustCompile("^[ \t>]*(?:[-*+] +|\\d+[.)] +)?(`{3,}|~{3,})([^`]*)$")
	ruleRow  = regexp.MustCompile(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$`)
)

const (
	maxMarkdownHead = 1 << 10 // bytes of a line that is looked at
	maxSetext       = 3       // lines of an underlined heading
	maxMetadata     = 200     // lines of front matter
)

// markdownLine takes a line that is not blank and not in a fence.
func (t *cutting) markdownLine(line []byte) error {
	text := strings.TrimRight(string(line[:min(len(line), maxMarkdownHead)]), " \t\n")
	if t.end() == 0 && (text == "---" || text == "+++") {
		t.fence = text
		t.begin(metadata, line)
		return nil
	}
	if m := atxHead.FindStringSubmatch(text); m != nil {
		return t.markedHead(line, len(m[1]), m[2])
	}
	if m := fenceRow.FindStringSubmatch(text); m != nil {
		if err := t.endBlock(false); err != nil {
			return err
		}
		t.fence = m[1]
		t.begin(fenced, line)
		return nil
	}
	if t.block == prose && !t.broken && t.lines <= maxSetext && setext.MatchString(text) && !startsItem(t.bytes(t.start, t.end())) {
		return t.setextHead(line, text)
	}
	return t.row(line, text)
}

func (t *cutting) markedHead(line []byte, level int, text string) error {
	if err := t.endBlock(false); err != nil {
		return err
	}
	t.append(line)
	return t.head(span{t.end() - int64(len(line)), t.end()}, level, text)
}

func (t *cutting) setextHead(line []byte, text string) error {
	level := 1
	if strings.Contains(text, "-") {
		level = 2
	}
	head := t.string(t.start, t.end())
	t.more(prose, line)
	t.block = noBlock
	return t.head(span{t.start, t.end()}, level, head)
}

// row takes a line of a paragraph or a table. The row under the heads of a table makes it one.
func (t *cutting) row(line []byte, text string) error {
	kind := prose
	if strings.HasPrefix(strings.TrimLeft(text, " \t"), "|") {
		kind = rows
	}
	if t.block == prose && t.lines == 1 && ruleRow.MatchString(text) {
		t.block = rows
	}
	if t.block == prose && kind == rows || t.block == rows && !strings.Contains(text, "|") {
		if err := t.endBlock(false); err != nil {
			return err
		}
	}
	t.more(kind, line)
	return nil
}

// enclosed takes a line of code or of front matter, which end with a line of their own.
func (t *cutting) enclosed(line []byte) error {
	t.more(t.block, line)
	text := strings.TrimSpace(string(line[:min(len(line), maxMarkdownHead)]))
	if t.block == fenced {
		text = strings.TrimLeft(text, "> \t")
		if strings.HasPrefix(text, t.fence) && strings.Trim(text, t.fence[:1]) == "" {
			return t.endBlock(false)
		}
		return nil
	}
	closed := text == t.fence || text == "..." && t.fence == "---"
	switch {
	case closed:
		t.metadata(t.bytes(t.start, t.end()))
		if err := t.endBlock(false); err != nil {
			return err
		}
		return t.flush()
	case t.lines > maxMetadata || t.lines == 2 && text == "": // a rule, and no front matter
		t.block = prose
		return t.endBlock(false)
	}
	return nil
}

// metadata takes title, date and tags out of front matter. What else it says stays text.
func (t *cutting) metadata(s []byte) {
	list := false
	for raw := range bytes.Lines(s) {
		line := strings.TrimSpace(string(raw))
		if item, ok := strings.CutPrefix(line, "- "); ok && list {
			t.tags = appendTags(t.tags, item)
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		if t.fence == "+++" {
			key, value, _ = strings.Cut(line, "=")
		}
		value = unquote(value)
		list = false
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "title":
			t.enter(0, value)
		case "date":
			t.time, _ = ParseTime(value)
		case "tags", "keywords":
			list = value == ""
			t.tags = appendTags(t.tags, strings.Split(strings.Trim(value, "[]"), ",")...)
		}
	}
}

func appendTags(tags []string, more ...string) []string {
	for _, tag := range more {
		if tag = unquote(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }
