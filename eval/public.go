package eval

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// publicFormat is the form in which a data set is published.
type publicFormat struct {
	name string
	// is recognises the form by the first object of the file: the file itself, the first of its array, or its first line.
	is   func(first map[string]json.RawMessage) bool
	read func(data []byte) ([]*unified, error) // the whole file, unpacked
}

// publicFormats are the published forms that are read beside the unified one, in the order in which they are tried.
func publicFormats() []publicFormat {
	return []publicFormat{
		{"LoCoMo (locomo10.json)", hasKeys("conversation", "qa"), readLocomoPublic},
		{"LongMemEval (longmemeval_s.json, longmemeval_oracle.json)", hasKeys("question_id", "haystack_sessions"), readLongMemEvalPublic},
		{"MSC-Self-Instruct (msc_self_instruct.jsonl)", hasKeys("previous_dialogs", "self_instruct"), readMSCPublic},
		{"XQuAD, CMRC 2018 (xquad.en.json, cmrc2018_dev.json)", isSquad, readSquad},
		{"NQ-open (nq-open-30_total_documents_gold_at_0.jsonl)", isNQOpen, readNQOpen},
		{"MemDaily (memdaily.json)", isMemDaily, readMemDaily},
	}
}

// hasKeys recognises objects that have all these keys.
func hasKeys(keys ...string) func(map[string]json.RawMessage) bool {
	return func(first map[string]json.RawMessage) bool { return hasAll(first, keys...) }
}

// knownFormats says in an error what would have been read.
func knownFormats() string {
	names := []string{`lines {"conv","docs","queries"}`}
	for _, f := range publicFormats() {
		names = append(names, f.name)
	}
	return strings.Join(append(names, "a directory with the two files of MADial-Bench in one language"), ", ")
}

// readUnified hands what a file holds to take: the lines of the unified format one by one, or what a published form is brought
// into. Either may be packed by gzip. Errors name the line, or the conversation or question of a published form.
func readUnified(file string, take func(*unified) error) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		all, err := readMADialDir(file)
		if err != nil {
			return fmt.Errorf("%s: read as MADial-Bench (a directory of one language): %w", file, err)
		}
		return takeAll(all, take)
	}
	first, err := firstObject(file)
	if err != nil {
		return err
	}
	_, docs := first["docs"]
	_, queries := first["queries"]
	if docs || queries {
		return readUnifiedLines(file, take)
	}
	for _, f := range publicFormats() {
		if f.is(first) {
			if err := readPublic(file, f, take); err != nil {
				return fmt.Errorf("%s: read as %s: %w", file, f.name, err)
			}
			return nil
		}
	}
	if err := readUnifiedLines(file, take); err != nil {
		return fmt.Errorf("%w; what is read: %s", err, knownFormats())
	}
	return nil
}

func readUnifiedLines(file string, take func(*unified) error) error {
	return readLines(file, unpacked, func(line []byte) error {
		in, err := decodeUnified(line)
		if err != nil {
			return err
		}
		return take(in)
	})
}

func readPublic(file string, f publicFormat, take func(*unified) error) error {
	data, err := readUnpacked(file)
	if err != nil {
		return err
	}
	all, err := f.read(data)
	if err != nil {
		return err
	}
	return takeAll(all, take)
}

func takeAll(all []*unified, take func(*unified) error) error {
	for _, in := range all {
		if err := in.check(); err != nil {
			return fmt.Errorf("%s: %w", in.Conv, err)
		}
		if err := take(in); err != nil {
			return fmt.Errorf("%s: %w", in.Conv, err)
		}
	}
	return nil
}

// unpacked is the text of a reader, which may be packed by gzip, whatever the file is called.
func unpacked(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil // a file that can't be read says so at the first read
	}
	return gzip.NewReader(in)
}

// readUnpacked returns the whole text of a file without a byte order mark.
func readUnpacked(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	in, err := unpacked(f)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	return bytes.TrimPrefix(data, []byte("\ufeff")), err
}

// firstObject returns the first object of a file, nil where it begins with none that is whole: who reads its lines then
// says what is wrong. A broken array is an error, since it has no lines.
func firstObject(file string) (first map[string]json.RawMessage, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	in, err := unpacked(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	text := bufio.NewReader(in)
	if mark, _ := text.Peek(3); string(mark) == "\ufeff" {
		_, _ = text.Discard(3)
	}
	array, err := opensArray(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	err = eachObject(text, func(raw json.RawMessage) error {
		if json.Unmarshal(raw, &first) != nil {
			first = nil
		}
		return errFirst
	})
	switch {
	case err == nil || errors.Is(err, errFirst):
		return first, nil
	case array: // no lines
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return nil, nil
}

// eachObject hands the values of a JSON array, or of a text of values one after the other, to take, which says what is wrong
// with one. Errors of the text itself say how many values came before.
func eachObject(r io.Reader, take func(raw json.RawMessage) error) error {
	text := bufio.NewReader(r)
	array, err := opensArray(text)
	if err != nil {
		return err
	}
	in := json.NewDecoder(text)
	if array {
		if _, err := in.Token(); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		if array && !in.More() {
			_, err := in.Token()
			return brokenText(n, err)
		}
		var raw json.RawMessage
		if err := in.Decode(&raw); errors.Is(err, io.EOF) && !array {
			return nil
		} else if err != nil {
			return brokenText(n, err)
		}
		if err := take(raw); err != nil {
			return err
		}
	}
}

// opensArray reports whether a text begins with a bracket. Spaces before it are skipped.
func opensArray(text *bufio.Reader) (bool, error) {
	for {
		next, err := text.Peek(1)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !bytes.ContainsAny(next, " \t\r\n") {
			return next[0] == '[', nil
		}
		_, _ = text.Discard(1)
	}
}

func brokenText(n int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it ends in the middle, after %d whole entries: download it again", n)
	}
	return fmt.Errorf("it is no JSON after %d whole entries: %w", n, err)
}

// looseText is a text that is published as a string or as a number.
type looseText string

// UnmarshalJSON takes a string, a number as it is written, or null for nothing.
func (t *looseText) UnmarshalJSON(raw []byte) error {
	var s string
	if err := json.Unmarshal(raw, &s); err == nil {
		*t = looseText(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil {
		return fmt.Errorf("%.40s is neither a text nor a number", raw)
	}
	*t = looseText(n)
	return nil
}
