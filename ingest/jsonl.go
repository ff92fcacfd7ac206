package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"memgpt"
)

// wholeLines is how many times Max a line of JSON may have and still be kept whole: whoever made passages meant them.
const wholeLines = 4

// passage is one line of JSON as it was read.
type passage struct {
	text, id, source, heading string
	time                      time.Time
	tags                      []string
	odd                       string // what could not be read beside the text
}

// jsonl hands over each line of JSON as a chunk. A line that is none is reported and left out.
func (j *job) jsonl(in *lines) error {
	var held []byte
	start, long := int64(0), false
	for {
		line, more, err := in.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = j.alive()
		}
		if err != nil {
			return err
		}
		if long = long || len(held)+len(line) > lineBytes; !long {
			held = append(held, line...)
		}
		if more {
			continue
		}
		if err := j.jsonLine(held, long, span{start, j.rep.Bytes}, in.n); err != nil {
			return err
		}
		held, start, long = held[:0], j.rep.Bytes, false
	}
}

func (j *job) jsonLine(line []byte, long bool, at span, number int) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 && !long {
		return nil
	}
	p, err := parsePassage(line)
	if long {
		err = fmt.Errorf("it has more than %d bytes", lineBytes)
	}
	if err != nil {
		j.rep.Skipped++
		j.problem(number, err.Error())
		return nil
	}
	if p.odd != "" {
		j.problem(number, p.odd)
	}
	return j.passage(p, at, number)
}

// passage hands over one line, in parts where its text is far too long.
func (j *job) passage(p passage, at span, number int) error {
	out := func(c Chunk) error {
		if p.heading != "" && c.Heading != "" {
			c.Heading = " > " + c.Heading
		}
		c.Heading = p.heading + c.Heading
		c.ID, c.Time, c.Tags, c.Line, c.Start, c.End = p.id, p.time, p.tags, number, at.start, at.end
		if p.source != "" {
			c.Source = p.source
		}
		return j.emit(c)
	}
	if len(p.text) <= wholeLines*tokenBytes*j.cfg.Max && j.cfg.Count(p.text) <= wholeLines*j.cfg.Max {
		return out(Chunk{Text: p.text, Source: j.name})
	}
	t := j.cutting(out)
	for line := range strings.Lines(p.text) {
		if err := t.add([]byte(line), false); err != nil {
			return err
		}
	}
	return t.finish()
}

func parsePassage(line []byte) (passage, error) {
	var in struct {
		Text                          *string
		ID, Time, Tags, Source, Title json.RawMessage
		Heading, Who, Speaker         json.RawMessage
	}
	var typed *json.UnmarshalTypeError
	err := json.Unmarshal(line, &in)
	if errors.As(err, &typed) {
		err = fmt.Errorf("there is a JSON %s where it has another thing", typed.Value) // the rest is of Go
	}
	if err != nil {
		return passage{}, fmt.Errorf("it is not a JSON object of the form {\"text\", \"id\"?, \"time\"?, \"tags\"?, \"source\"?}: %w", err)
	}
	if in.Text == nil || strings.TrimSpace(memgpt.CleanText(*in.Text)) == "" {
		return passage{}, errors.New("it has no text")
	}
	p := passage{text: strings.TrimSpace(memgpt.CleanText(*in.Text)), id: word(in.ID), source: word(in.Source),
		heading: first(word(in.Heading), word(in.Title)), tags: words(in.Tags)}
	if who := first(word(in.Who), word(in.Speaker)); who != "" && !strings.HasPrefix(p.text, who+":") {
		p.text = who + ": " + p.text
	}
	if when := word(in.Time); when != "" {
		var ok bool
		if p.time, ok = ParseTime(when); !ok {
			p.odd = fmt.Sprintf("its time %q can't be read; the text was kept without", memgpt.CutText(when, maxTitle))
		}
	}
	return p, nil
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// word returns a string's text, or a number as it is written; "" for null and whatever else.
func word(raw json.RawMessage) string {
	var s string
	var n json.Number
	switch {
	case json.Unmarshal(raw, &s) == nil:
		return strings.TrimSpace(memgpt.CleanText(s))
	case json.Unmarshal(raw, &n) == nil:
		return n.String()
	}
	return ""
}

// words returns the texts of a list, or of one string that separates them with commas.
func words(raw json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return appendTags(nil, strings.Split(word(raw), ",")...)
	}
	var tags []string
	for _, item := range list {
		tags = appendTags(tags, word(item))
	}
	return tags
}

// ParseTime reads a time as documents write it, or as seconds or milliseconds since 1970. One without a zone is taken as UTC.
func ParseTime(s string) (time.Time, bool) {
	for _, form := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700",
		"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006/01/02 15:04:05", "2006/01/02 15:04", "2006/01/02",
		"2006/01/02 (Mon) 15:04", "3:04 pm on 2 January, 2006", "2 January 2006", "2 January, 2006", "January 2, 2006",
		"2006年1月2日 15:04", "2006年1月2日15:04", "2006年1月2日", time.RFC1123Z, time.RFC1123, time.ANSIC, time.UnixDate,
	} {
		if t, err := time.Parse(form, s); err == nil {
			return t, true
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || n < 1e8 || n > 1e13: // a small number is no time of a document
		return time.Time{}, false
	case n > 1e11:
		return time.UnixMilli(int64(n)).UTC(), true
	}
	return time.UnixMilli(int64(n * 1000)).UTC(), true
}
