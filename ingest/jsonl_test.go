package ingest

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestJSONL(t *testing.T) {
	text := `{"text":"Plain."}

{"text":" 你好。\u0000\ud800 ","id":"a1","time":"2024-05-06T07:08:09+02:00","tags":["x"," y "],"source":"book","heading":"H","who":"Ana"}
not json
{"text":""}
{"txt":"no text"}
{"text":5}
["text"]
{"text":"Ana: hi","id":17,"speaker":"Ana","title":"T","tags":"p, q","time":1715000000}
{"text":"odd","time":"some day","tags":[1,null],"source":null}
{"text":"` + strings.Repeat("x", lineBytes) + `"}
{"text":"last"}`
	chunks, rep := cut(t, Config{}, "p.jsonl", strings.NewReader(text))
	var got []Chunk
	for _, c := range chunks {
		if !strings.Contains(text[c.Start:c.End], `"text"`) || strings.Count(text[:c.Start], "\n")+1 != c.Line {
			t.Errorf("chunk %d: bytes %d to %d, line %d", c.Index, c.Start, c.End, c.Line)
		}
		c.Start, c.End, c.Time = 0, 0, c.Time.UTC()
		got = append(got, c)
	}
	want := []Chunk{
		{Text: "Plain.", Source: "p.jsonl", Line: 1},
		{Text: "Ana: 你好。\uFFFD", Source: "book", Heading: "H", Line: 3, Index: 1, ID: "a1", Tags: []string{"x", "y"},
			Time: time.Date(2024, 5, 6, 5, 8, 9, 0, time.UTC)},
		{Text: "Ana: hi", Source: "p.jsonl", Heading: "T", Line: 9, Index: 2, ID: "17", Tags: []string{"p", "q"},
			Time: time.Unix(1715000000, 0).UTC()},
		{Text: "odd", Source: "p.jsonl", Line: 10, Index: 3, Tags: []string{"1"}},
		{Text: "last", Source: "p.jsonl", Line: 12, Index: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var lines []int
	for _, p := range rep.Problems {
		lines = append(lines, p.Line)
	}
	if diff := cmp.Diff([]int{4, 5, 6, 7, 8, 10, 11}, lines); diff != "" || rep.Skipped != 6 || rep.Chunks != 5 {
		t.Errorf("%+v %s", rep, diff)
	}
}

// TestJSONLLong holds that a long text is cut into parts which keep what the line says, and a text of a few chunks is not.
func TestJSONLLong(t *testing.T) {
	short := strings.TrimSpace(strings.Repeat("A sentence of the story. ", 60))
	long := strings.TrimSpace(strings.Repeat("A sentence of the story. ", 4000))
	chunks, _ := cut(t, Config{}, "-", strings.NewReader(`{"text":"`+short+`","id":"s"}`+"\n"+`{"text":"`+long+`","id":"l","title":"T"}`))
	if len(chunks) < 50 || chunks[0].Text != short || chunks[0].ID != "s" {
		t.Fatalf("%d chunks, the first has %d bytes", len(chunks), len(chunks[0].Text))
	}
	var parts []string
	for _, c := range chunks[1:] {
		if c.ID != "l" || c.Heading != "T" || c.Line != 2 || Estimate(c.Text) > DefaultMax {
			t.Errorf("%+v", c)
		}
		parts = append(parts, c.Text)
	}
	if strings.Join(parts, " ") != long {
		t.Error("the parts are not the text")
	}
}

func TestManyProblems(t *testing.T) {
	_, rep := cut(t, Config{}, "p.jsonl", strings.NewReader(strings.Repeat("{\n", 1000)))
	if len(rep.Problems) != maxProblems || rep.Skipped != 1000 {
		t.Errorf("%d problems, %d lines left out", len(rep.Problems), rep.Skipped)
	}
}

// FuzzJSONL holds that each line is handed over or reported.
func FuzzJSONL(f *testing.F) {
	f.Add(`{"text":"a","time":1e300,"tags":{"a":[]},"who":""}`)
	f.Add("{\"text\":\"\\ud800\"}\n\n[]\nnull\n{\"text\":null}")
	f.Fuzz(func(t *testing.T, text string) {
		chunks := 0
		seen := map[int]bool{}
		c := must(t, Config{Format: FormatJSONL, Encoding: "utf-8", Max: 64})
		rep, err := c.Cut(t.Context(), "x", strings.NewReader(text), func(c Chunk) error {
			chunks++
			seen[c.Line] = true
			if strings.TrimSpace(c.Text) == "" || !utf8.ValidString(c.Text) || strings.Contains(c.Text, "\x00") {
				t.Errorf("line %d: %q", c.Line, c.Text)
			}
			return nil
		})
		if err != nil {
			return // it looked binary
		}
		lines := 0
		for line := range strings.SplitSeq(strings.NewReplacer("\x00", "", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff")), "\n") {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
		if len(seen)+rep.Skipped != lines || chunks != rep.Chunks {
			t.Errorf("%d lines with text, %d read, %d left out", lines, len(seen), rep.Skipped)
		}
	})
}
