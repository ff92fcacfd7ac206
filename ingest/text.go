package ingest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// blockKind says where a block may be cut when it does not fit into a chunk.
type blockKind int

const (
	noBlock  blockKind = iota
	prose              // at sentences
	rows               // at lines: a table
	fenced             // at lines: code, until its fence closes
	metadata           // at lines: front matter, until it closes
)

// span is a stretch of the document, in bytes of decoded text.
type span struct{ start, end int64 }

func (s span) empty() bool { return s.start == s.end }

// cutting is the cutting of one text. The text from base on is held: the chunk that is being filled, the block that is
// being read, and what lies between them. A chunk is always one stretch of the text.
type cutting struct {
	*job
	out      func(Chunk) error
	markdown bool

	held []byte
	base int64 // offset of held
	line int   // number of its first line

	chunk    span // empty when none is begun
	heading  string
	headOnly bool // chunk holds headings alone so far

	block  blockKind
	start  int64 // of the block
	lines  int   // lines of the block
	broken bool  // part of the block was cut already
	alone  bool  // nothing but blank lines stood before the block's first line
	fence  string

	path []title
	time time.Time
	tags []string
}

func (j *job) cutting(out func(Chunk) error) *cutting {
	return &cutting{job: j, out: out, markdown: j.rep.Format == FormatMarkdown, line: 1, alone: true}
}

// text cuts plain text or Markdown.
func (j *job) text(in *lines) error {
	t := j.cutting(j.emit)
	for inLine := false; ; {
		line, more, err := in.next()
		if errors.Is(err, io.EOF) {
			return t.finish()
		}
		if err == nil {
			err = j.alive()
		}
		if err == nil {
			err = t.add(line, inLine)
		}
		if err != nil {
			return err
		}
		inLine = more
	}
}

// add takes the next line, or a further piece of a long one.
func (t *cutting) add(line []byte, inLine bool) error {
	var err error
	blank := len(bytes.TrimSpace(line)) == 0
	switch {
	case inLine && t.block != noBlock:
		t.append(line)
	case t.block == fenced || t.block == metadata:
		err = t.enclosed(line)
	case blank:
		err = t.endBlock(true)
		t.append(line)
		t.alone = true
	case t.markdown:
		err = t.markdownLine(line)
	default:
		err = t.plainLine(line)
	}
	if err != nil {
		return err
	}
	return t.bound()
}

func (t *cutting) finish() error {
	if err := t.endBlock(false); err != nil {
		return err
	}
	return t.flush()
}

func (t *cutting) append(line []byte) { t.held = append(t.held, line...) }

func (t *cutting) end() int64 { return t.base + int64(len(t.held)) }

func (t *cutting) bytes(a, b int64) []byte { return t.held[a-t.base : b-t.base] }

func (t *cutting) string(a, b int64) string { return strings.TrimSpace(string(t.bytes(a, b))) }

// begin opens a block with its first line.
func (t *cutting) begin(kind blockKind, line []byte) {
	t.block, t.start, t.lines, t.broken = kind, t.end(), 1, false
	t.append(line)
}

// more adds a line to the open block, or opens one.
func (t *cutting) more(kind blockKind, line []byte) {
	if t.block == noBlock {
		t.begin(kind, line)
		return
	}
	t.append(line)
	t.lines++
}

// endBlock closes the open block. A line that stood alone may turn out to be a heading then.
func (t *cutting) endBlock(blank bool) error {
	kind, b := t.block, span{t.start, t.end()}
	if kind == noBlock {
		return nil
	}
	t.block = noBlock
	alone := t.alone && blank && t.lines == 1 && !t.broken
	t.alone = false
	if alone && !t.markdown && kind == prose {
		if level, ok := plainHeading(t.string(b.start, b.end)); ok {
			return t.head(b, level, t.string(b.start, b.end))
		}
	}
	if t.broken {
		_, err := t.split(b, kind, true)
		return err
	}
	return t.place(b, kind)
}

// place puts a whole block into the chunk, or into a new one, or cuts it.
func (t *cutting) place(b span, kind blockKind) error {
	if t.join(b) {
		return nil
	}
	alone := t.fits(t.bytes(b.start, b.end))
	if !t.chunk.empty() && (!t.headOnly || alone && kind != prose) {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if t.chunk.empty() && t.join(b) {
		return nil
	}
	_, err := t.split(b, kind, true)
	return err
}

// join makes the chunk longer by a stretch if it fits.
func (t *cutting) join(b span) bool {
	from := b.start
	if !t.chunk.empty() {
		from = t.chunk.start
	}
	if !t.fits(t.bytes(from, b.end)) {
		return false
	}
	if t.chunk.empty() {
		t.heading = t.where()
	}
	t.chunk, t.headOnly = span{from, b.end}, false
	return true
}

// split fills chunks with the sentences or lines of a block. With final unset the block goes on: so much of it is left
// that what follows can't move a border, and split returns where the rest begins.
func (t *cutting) split(b span, kind blockKind, final bool) (int64, error) {
	for b.start < b.end && (final || b.end-b.start > int64(t.limit()/2)) {
		rest := t.bytes(b.start, b.end)
		n := nextPiece(rest, kind, tokenBytes*t.cfg.Max)
		if n > 0 && t.join(span{b.start, b.start + int64(n)}) {
			b.start += int64(n)
			continue
		}
		if t.headOnly && !t.chunk.empty() { // a heading stays with the beginning of its text
			b.start = t.chunk.start
			t.chunk, t.headOnly, n = span{}, false, 0
		}
		if err := t.flush(); err != nil {
			return 0, err
		}
		if n > 0 && t.join(span{b.start, b.start + int64(n)}) {
			b.start += int64(n)
			continue
		}
		n = t.hardCut(t.bytes(b.start, b.end))
		t.heading, t.chunk = t.where(), span{b.start, b.start + int64(n)}
		b.start += int64(n)
	}
	return b.start, nil
}

// head takes a heading. Headings that follow each other, each below the one before, stay in one chunk.
func (t *cutting) head(b span, level int, text string) error {
	deeper := t.headOnly && len(t.path) > 0 && level > t.path[len(t.path)-1].level
	if !deeper {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.enter(level, text)
	t.alone = false
	if err := t.place(b, prose); err != nil {
		return err
	}
	t.heading, t.headOnly = t.where(), true
	return nil
}

// flush hands the chunk over.
func (t *cutting) flush() error {
	c := t.chunk
	if c.empty() {
		return nil
	}
	t.chunk, t.headOnly = span{}, false
	s := t.bytes(c.start, c.end)
	text := bytes.TrimSpace(s)
	if len(text) == 0 {
		return nil
	}
	start := c.start + int64(bytes.Index(s, text))
	return t.out(Chunk{Text: string(text), Source: t.name, Heading: t.heading, Start: start, End: start + int64(len(text)),
		Line: t.line + bytes.Count(t.bytes(t.base, start), []byte("\n")), Time: t.time, Tags: t.tags})
}

// limit is how much of one block is held.
func (t *cutting) limit() int { return max(blockBytes, 4*tokenBytes*t.cfg.Max) }

// bound keeps what is held small: it cuts a block that is too long, ends a chunk that much white space follows, and drops
// what is done with.
func (t *cutting) bound() error {
	if t.block != noBlock && int(t.end()-t.start) > t.limit() {
		if t.block == metadata { // it never closed
			t.block = prose
		}
		t.broken = true
		rest, err := t.split(span{t.start, t.end()}, t.block, false)
		if err != nil {
			return err
		}
		t.start = rest
	}
	if !t.chunk.empty() && t.block == noBlock && int(t.end()-t.chunk.end) > t.limit() {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.drop()
	return nil
}

func (t *cutting) drop() {
	done := t.end()
	if t.block != noBlock {
		done = t.start
	}
	if !t.chunk.empty() {
		done = t.chunk.start
	}
	n := int(done - t.base)
	if n < blockBytes {
		return
	}
	t.line += bytes.Count(t.held[:n], []byte("\n"))
	t.held = append(t.held[:0], t.held[n:]...)
	t.base = done
}

// hardCut returns how much of a text that has no border in reach makes a chunk: as much as fits, up to the last end of a
// line, clause or word in its second half, else to the last border of a character as readers see it.
func (t *cutting) hardCut(s []byte) int {
	text := string(s[:min(len(s), tokenBytes*t.cfg.Max+utf8.UTFMax)])
	lo, hi := 0, len(text)+1 // a prefix of lo bytes fits, one of hi bytes does not
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; t.fits(s[:runeStart(text, mid)]) {
			lo = mid
		} else {
			hi = mid
		}
	}
	fit := runeStart(text, lo)
	if fit == len(s) {
		return fit
	}
	if n := softBorder(text[:fit]); n > 0 {
		return n
	}
	for n := fit; n > fit/2; n = runeStart(text, n-1) {
		if graphemeBorder(text, n) {
			return n
		}
	}
	if fit > 0 {
		return fit
	}
	_, n := utf8.DecodeRuneInString(text)
	return n
}

func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}
