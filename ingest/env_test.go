package ingest

import (
	"io"
	"strings"
	"testing"
	"unicode"
)

func must(t testing.TB, cfg Config) *Cutter {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func copyText(w io.Writer, r io.Reader) (int64, error) { return io.Copy(w, struct{ io.Reader }{r}) }

// cut returns all chunks of a document.
func cut(t testing.TB, cfg Config, name string, r io.Reader) ([]Chunk, Report) {
	t.Helper()
	var chunks []Chunk
	rep, err := must(t, cfg).Cut(t.Context(), name, r, func(c Chunk) error {
		chunks = append(chunks, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return chunks, rep
}

// sound holds what is true of the chunks of every text: each is a stretch of it, in order, small enough, and nothing but
// white space lies between.
func sound(t testing.TB, cfg Config, text string, chunks []Chunk, rep Report) {
	t.Helper()
	if cfg.Max == 0 {
		cfg.Max, cfg.Count = DefaultMax, Estimate
	}
	at, line := int64(0), 1
	for i, c := range chunks {
		if c.Index != i || c.Start < at || c.End <= c.Start || c.End > int64(len(text)) || text[c.Start:c.End] != c.Text {
			t.Fatalf("chunk %d: index %d, bytes %d to %d after %d, text %.60q", i, c.Index, c.Start, c.End, at, c.Text)
		}
		if gap := text[at:c.Start]; strings.TrimSpace(gap) != "" {
			t.Fatalf("lost before chunk %d: %.60q", i, gap)
		}
		if n := cfg.Count(c.Text); n > cfg.Max && strings.IndexFunc(c.Text[1:], unicode.IsLetter) >= 0 {
			t.Errorf("chunk %d has %d tokens, %d are allowed: %.60q", i, n, cfg.Max, c.Text)
		}
		if line += strings.Count(text[at:c.Start], "\n"); c.Line != line {
			t.Errorf("chunk %d stands in line %d, not %d", i, line, c.Line)
		}
		if withinCharacter(text, int(c.Start)) {
			t.Errorf("chunk %d begins within a character: %.20q", i, c.Text)
		}
		line += strings.Count(c.Text, "\n")
		at = c.End
	}
	if strings.TrimSpace(text[at:]) != "" {
		t.Fatalf("lost at the end: %.60q", text[at:])
	}
	if rep.Chunks != len(chunks) || rep.Bytes != int64(len(text)) {
		t.Errorf("report says %d chunks of %d bytes, there are %d of %d", rep.Chunks, rep.Bytes, len(chunks), len(text))
	}
}

// withinCharacter reports whether byte i of s lies within what a reader sees as one character, and that one is not
// so long that it had to be cut.
func withinCharacter(s string, i int) bool {
	for back := i; !graphemeBorder(s, i) && back > max(0, i-60); back = runeStart(s, back-1) {
		if graphemeBorder(s, back) {
			return true
		}
	}
	return false
}
