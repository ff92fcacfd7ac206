package eval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"memgpt"
	"memgpt/kernel"
)

// talkPersona tells an agent what its recall storage is about.
const talkPersona = "I answer questions about earlier conversations. They are not in front of me: they are kept in my recall" +
	" storage, so I search it before I answer. What was said there counts, not what I suppose."

// unifiedDoc is a text of the unified format.
type unifiedDoc struct {
	ID      string  `json:"id"`
	Text    *string `json:"text"`
	Time    string  `json:"time"`
	Who     string  `json:"who"`
	Session string  `json:"session"`
}

// unifiedQuery is a question of the unified format.
type unifiedQuery struct {
	ID   string   `json:"id"`
	Q    string   `json:"q"`
	A    string   `json:"a"`
	Cat  string   `json:"cat"`
	Gold []string `json:"gold"`
	Time string   `json:"time"`
}

// Talks reads a suite of conversations with questions about them from a file of the unified format: one conversation a
// line, each remembered by an agent of its own, or all by one where they are pooled,
//
//	{"conv":…, "docs":[{"id","text","time","who","session"?}], "queries":[{"id","q","a","cat","gold":[ids of docs],"time"}]}
//
// or from a file as LoCoMo, LongMemEval or MSC-Self-Instruct are published, which is recognised by its first object; both may
// be packed by gzip. Any data set in that format will do. A speaker's name that a text begins with ("Caroline: …") is taken off. Times
// without a zone are UTC; what can't be read as a time is none. Gold ids that no doc has are counted as faults.
func Talks(name, path string, pooled bool) (*Suite, error) {
	set, err := readSet(path, nil, pooled)
	if err != nil {
		return nil, err
	}
	s := &Suite{Name: name, Sessions: name == SuiteLongMemEval}
	for _, p := range set.pools {
		for i := range p.questions {
			p.questions[i].Abstain = abstention(name, &p.questions[i])
		}
		s.Cases = append(s.Cases, Case{Name: p.name, Persona: talkPersona, Lines: p.lines, Now: afterLast(p.lines), Questions: p.questions})
	}
	return s, nil
}

// abstention reports whether the material is known not to hold the answer: LoCoMo's adversarial questions (category 5),
// whose expected answer is a trap, and those of LongMemEval that are marked so.
func abstention(suite string, q *Question) bool {
	switch suite {
	case SuiteLocomo:
		return q.Group == "adversarial" || q.Group == "5"
	case SuiteLongMemEval:
		return q.Group == "abstention" || strings.HasSuffix(q.ID, "_abs")
	}
	return false
}

// readLines hands the lines of a file that aren't blank to parse; open unpacks it first. Errors name the line.
func readLines(path string, open func(io.Reader) (io.Reader, error), parse func(line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var in io.Reader = f
	if open != nil {
		if in, err = open(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	r := bufio.NewReaderSize(in, 1<<16)
	for n := 1; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: read line %d: %w", path, n, err)
		}
		if text := strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")); text != "" {
			if err := parse([]byte(text)); err != nil {
				return fmt.Errorf("%s: line %d: %w", path, n, err)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// unified is a line of the unified format.
type unified struct {
	Conv    string         `json:"conv"`
	Docs    []unifiedDoc   `json:"docs"`
	Queries []unifiedQuery `json:"queries"`
}

func decodeUnified(line []byte) (*unified, error) {
	in := new(unified)
	if err := json.Unmarshal(line, in); err != nil {
		return nil, fmt.Errorf("it is no conversation {\"conv\",\"docs\",\"queries\"}: %w", err)
	}
	return in, in.check()
}

// check refuses questions that ask nothing.
func (u *unified) check() error {
	for i, q := range u.Queries {
		if strings.TrimSpace(q.Q) == "" {
			return fmt.Errorf("query %d is empty", i+1)
		}
	}
	return nil
}

var errNoDocs = errors.New("it has no docs")

// lines returns the docs as they are imported, and their texts by id.
func (u *unified) lines() ([]kernel.Line, map[string]string, error) {
	lines, texts := make([]kernel.Line, 0, len(u.Docs)), make(map[string]string, len(u.Docs))
	for i, d := range u.Docs {
		if d.ID == "" || d.Text == nil {
			return nil, nil, fmt.Errorf("doc %d has no id or no text", i+1)
		}
		l := d.line()
		if _, ok := texts[l.ID]; ok {
			return nil, nil, fmt.Errorf("two docs have the id %q", l.ID)
		}
		texts[l.ID] = l.Text
		lines = append(lines, l)
	}
	return lines, texts, nil
}

// line returns a doc as it is imported.
func (d *unifiedDoc) line() kernel.Line {
	who, text := memgpt.CleanText(d.Who), memgpt.CleanText(*d.Text)
	if who != "" {
		text = strings.TrimPrefix(text, who+": ")
	}
	return kernel.Line{Speaker: who, Text: text, Time: parseTime(d.Time), Session: d.Session, ID: memgpt.CleanText(d.ID)}
}

func (q *unifiedQuery) question(texts map[string]string) Question {
	out := Question{ID: q.ID, Text: memgpt.CleanText(q.Q), Answer: q.A, Group: q.Cat, Time: parseTime(q.Time)}
	if out.Group == "" {
		out.Group = "none"
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(q.Gold))) {
		if text, ok := texts[memgpt.CleanText(id)]; ok {
			out.Gold = append(out.Gold, Evidence{memgpt.CleanText(id), text})
		} else {
			out.Faults++
		}
	}
	return out
}

// afterLast is the day after the newest line: questions without a time are asked then.
func afterLast(lines []kernel.Line) time.Time {
	last := time.Time{}
	for _, l := range lines {
		if l.Time.After(last) {
			last = l.Time
		}
	}
	if last.IsZero() {
		return timeless
	}
	return last.AddDate(0, 0, 1)
}

// timeless is when material without times is loaded: any fixed moment, so that runs repeat.
var timeless = time.Date(2024, time.January, 1, 12, 0, 0, 0, time.UTC)

// timeForms are the forms of times in the unified format.
var timeForms = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
	"3:04 pm on 2 January, 2006", "2006/01/02 (Mon) 15:04", "2006/01/02 15:04", "2006/01/02", "2006年01月02日 15:04", "2006年01月02日"}

var weekdays = strings.NewReplacer("周一 ", "", "周二 ", "", "周三 ", "", "周四 ", "", "周五 ", "", "周六 ", "", "周日 ", "")

// parseTime reads a time, zero when it can't be read.
func parseTime(s string) time.Time {
	s = weekdays.Replace(strings.TrimSpace(s))
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil {
			return t
		}
	}
	return time.Time{}
}
