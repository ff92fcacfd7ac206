// Package ingest turns files into passages: it reads plain text in any common encoding, Markdown and lines of JSON, and
// cuts them at headings, paragraphs and sentences into chunks that fit a budget. It owns the detection of encodings, the
// cleaning of text and the cutting, all in bounded memory. It stores nothing and opens no files but for those that the
// caller hands to it: who loads, resumes and shows progress is its caller.
package ingest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"sync"
	"time"

	"memgpt"
)

// Bounds of memory, in bytes.
const (
	windowBytes = 64 << 10 // looked at to tell an encoding or a format
	blockBytes  = 64 << 10 // of one block held before it is cut; more where Max is large
	lineBytes   = 1 << 20  // of one line of JSON
	tokenBytes  = 16       // that one token may have on average before a text is cut without having been counted
)

// DefaultMax is the size of a chunk where none is configured: a page of five hits then takes a third of a window of 4,096.
const DefaultMax = 256

const (
	minMax      = 16  // less would cut within most sentences
	maxProblems = 100 // kept in a report; the others are counted
)

// Chunk is one piece of a document.
type Chunk struct {
	Text    string    // valid UTF-8 without NUL, white space trimmed around it; never empty
	Source  string    // name of the document, or what the line of JSON says
	Heading string    // path of headings, as "Part > Chapter"; "" when there is none
	Start   int64     // where Text begins in the decoded text, in bytes of UTF-8; for JSON, where its line does
	End     int64     // where Text ends; for JSON, where its line does
	Line    int       // line in which it begins, from 1
	Index   int       // position among the chunks of the document, from 0
	Time    time.Time // when it was said, from JSON or front matter; zero when unknown
	Tags    []string  // from JSON or front matter
	ID      string    // from JSON; the parts of a line that was too long share it
}

// Report is what is known of a document after it was read.
type Report struct {
	Format   Format
	Encoding string // name of the encoding, as "utf-8"
	Bytes    int64  // of decoded text
	Invalid  int    // sequences that the encoding does not allow; each became U+FFFD
	Dropped  int    // NUL characters left out
	Chunks   int    // handed over
	Skipped  int    // lines of JSON left out
	Hash     string // of the decoded text, for a key of the whole document: 128 bits of SHA-256 in hexadecimal digits

	Problems []Problem // the first hundred
}

// Problem is something wrong with one line, which did not end the reading.
type Problem struct {
	Line int // from 1
	Text string
}

// Config configures a Cutter. The zero value is usable.
type Config struct {
	Max      int              // most tokens of a chunk; 0 is DefaultMax. One character is never cut, whatever it counts
	Count    func(string) int // counts the tokens of a text; must be deterministic. nil is Estimate
	Encoding string           // name of the documents' encoding, as "gb18030" or "windows-1252"; "" detects it
	Format   Format           // how documents are read, and no doubt about it; "" goes by name and content
}

// Cutter cuts documents. It keeps nothing between them and is safe for concurrent use.
type Cutter struct {
	cfg    Config
	named  *charset // by Config.Encoding; nil is to be detected
	detect func() *detector
}

// New returns a Cutter. It fails with CodeInvalid for an unknown encoding or format, or a Max too small to hold sentences.
func New(cfg Config) (*Cutter, error) {
	c := &Cutter{cfg: cfg, detect: sync.OnceValue(newDetector)}
	if c.cfg.Max == 0 {
		c.cfg.Max = DefaultMax
	}
	if c.cfg.Max < minMax {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "cut documents: chunks of %d tokens are too small; use %d or more", cfg.Max, minMax)
	}
	if c.cfg.Count == nil {
		c.cfg.Count = Estimate
	}
	switch cfg.Format {
	case "", FormatText, FormatMarkdown, FormatJSONL:
	default:
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "cut documents: format %q is unknown; use %q, %q or %q",
			cfg.Format, FormatText, FormatMarkdown, FormatJSONL)
	}
	if cfg.Encoding == "" {
		return c, nil
	}
	var err error
	c.named, err = charsetByName(cfg.Encoding)
	return c, err
}

// Cut reads a document and hands its chunks over in order. The same content gives the same chunks, whatever the sizes of
// reads, so that a load broken off is resumed by skipping what is stored. It fails with CodeInvalid when the document is
// not text (nothing was handed over then), and with what reader, context or yield failed with. The report is right as far as it was read.
func (c *Cutter) Cut(ctx context.Context, name string, r io.Reader, yield func(Chunk) error) (Report, error) {
	j := &job{alive: ctx.Err, cfg: c.cfg, name: memgpt.CleanText(name), yield: yield, hash: sha256.New()}
	d := c.decoder(r)
	err := c.run(j, d)
	if d.set != nil {
		j.rep.Encoding = d.set.name
	}
	j.rep.Invalid, j.rep.Dropped = d.clean.invalid, d.clean.dropped
	j.rep.Hash = hex.EncodeToString(j.hash.Sum(nil)[:16])
	if err != nil && memgpt.CodeOf(err) != memgpt.CodeInvalid {
		err = memgpt.Errorf(memgpt.CodeOf(err), "read %s: %w", name, err)
	}
	return j.rep, err
}

func (c *Cutter) decoder(r io.Reader) *decoder {
	return &decoder{in: bufio.NewReaderSize(r, windowBytes), set: c.named, detect: c.detect}
}

func (c *Cutter) run(j *job, d *decoder) error {
	if err := d.begin(j.name, c.cfg.Format != ""); err != nil {
		return err
	}
	in := bufio.NewReaderSize(d, windowBytes)
	j.rep.Format = c.cfg.Format
	if j.rep.Format == "" {
		head, _ := in.Peek(windowBytes) // an error comes again with the first line
		j.rep.Format = formatOf(j.name, head)
	}
	lines := &lines{in: in, hash: j.hash, read: &j.rep.Bytes}
	if j.rep.Format == FormatJSONL {
		return j.jsonl(lines)
	}
	return j.text(lines)
}

// job is the reading of one document.
type job struct {
	alive func() error // fails when the context ended
	cfg   Config
	name  string
	yield func(Chunk) error
	hash  hash.Hash
	rep   Report
}

// emit hands a chunk over, with its index.
func (j *job) emit(c Chunk) error {
	if err := j.alive(); err != nil {
		return err
	}
	c.Index = j.rep.Chunks
	if err := j.yield(c); err != nil {
		return err
	}
	j.rep.Chunks++
	return nil
}

func (j *job) problem(line int, text string) {
	if len(j.rep.Problems) < maxProblems {
		j.rep.Problems = append(j.rep.Problems, Problem{line, text})
	}
}

// fits reports whether a text, without the white space around it, is within the budget. What is far too long is not
// counted, white space or not.
func (j *job) fits(s []byte) bool {
	return len(s) <= tokenBytes*j.cfg.Max && j.cfg.Count(string(bytes.TrimSpace(s))) <= j.cfg.Max
}
