package retrieve

import (
	"strings"
	"sync"
	"unicode/utf8"

	"memgpt/store"
)

// Analyzer turns texts into terms (store.Analyzer). Its zero value is ready; it must not be copied. It is safe for
// concurrent use and holds nothing but scratch space.
type Analyzer struct {
	pool sync.Pool
}

var _ store.Analyzer = (*Analyzer)(nil)

// Bounds of one analysis, in bytes. Texts are taken in pieces, so that scratch space doesn't grow with them; a word or
// pair across a border is lost, and only where pieceSize bytes hold no space.
const (
	pieceSize = 64 << 10
	nameSize  = 256 // of an author or a tag
)

// Analyze returns the terms of a text in the order in which they first stand in it, and its length: words, plus .6 for
// each character of a script without spaces. Author, date and tags add terms but no length. It takes any string.
func (a *Analyzer) Analyze(in store.IndexText) (terms []store.TermCount, length int) {
	s := a.get()
	defer a.pool.Put(s)
	s.terms.reset()
	tenths := 0
	for rest := in.Text; rest != ""; {
		var piece string
		piece, rest = cutPiece(rest)
		s.read(piece)
		tenths += s.index()
	}
	if in.Author != "" {
		s.read(in.Author[:min(len(in.Author), nameSize)])
		s.index()
	}
	if !in.Time.IsZero() {
		s.stamp(in.Time)
	}
	for _, tag := range in.Tags {
		s.terms.add(prefixTag, s.tag(tag))
	}
	return s.terms.counts(), (tenths + 9) / 10
}

func (a *Analyzer) get() *scratch {
	if s, ok := a.pool.Get().(*scratch); ok {
		return s
	}
	return &scratch{terms: newCounter()}
}

// cutPiece cuts at the last space of the first pieceSize bytes, else at a character border.
func cutPiece(text string) (piece, rest string) {
	if len(text) <= pieceSize {
		return text, ""
	}
	if i := strings.LastIndexAny(text[:pieceSize], " \n"); i > pieceSize/2 {
		return text[:i], text[i:]
	}
	n := pieceSize
	for n > pieceSize-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n], text[n:]
}

// scratch is the working space of one analysis.
type scratch struct {
	text   []byte // the piece in normal form
	tmp    []byte
	base   []byte
	apart  []byte
	tokens []token
	dates  []date
	terms  counter
}

// read brings a piece into normal form and finds its tokens and dates.
func (s *scratch) read(piece string) {
	s.text, s.tmp = normalise(s.text[:0], s.tmp, piece)
	s.tokens = tokenise(s.tokens[:0], s.text)
	s.findDates()
}

func (s *scratch) bytes(t token) []byte { return s.text[t.start:t.end] }

// index counts the terms of the piece that was read and returns its length in tenths of a word.
func (s *scratch) index() int {
	tenths := 0
	for _, t := range s.tokens {
		tenths += s.indexToken(t)
	}
	for i := 0; i < len(s.tokens); {
		end := s.compoundEnd(i)
		if whole := s.whole(i, end); whole != nil {
			s.terms.add(prefixNone, whole)
		}
		i = end
	}
	for _, d := range s.dates {
		s.indexDate(d)
	}
	return tenths
}

func (s *scratch) indexToken(t token) int {
	switch t.class {
	case classHan, classThai:
		return 6 * s.indexRun(t)
	case classHangul:
		if s.indexRun(t) > 2 { // a word of two is the pair
			s.terms.add(prefixNone, s.bytes(t))
		}
		return 10
	}
	base, exact := s.forms(t)
	s.terms.add(prefixNone, base)
	s.terms.add(prefixExact, exact)
	if t.split != 0 {
		for _, part := range t.parts(s.text) {
			base, exact = s.forms(part)
			s.terms.add(prefixNone, base)
			s.terms.add(prefixExact, exact)
		}
	}
	return 10
}

// indexRun counts the single characters and the overlapping pairs of a run and returns how many characters it has. A
// character is what its combining marks make of it.
func (s *scratch) indexRun(t token) int {
	run := s.bytes(t)
	n, last := 0, 0
	for i := 0; i < len(run); n++ {
		end := unitEnd(run, i)
		s.terms.add(prefixNone, run[i:end])
		if n > 0 {
			s.terms.add(prefixNone, run[last:end])
		}
		last, i = i, end
	}
	return n
}

// unitEnd returns where the character at i ends, its combining marks included.
func unitEnd(run []byte, i int) int {
	_, size := utf8.DecodeRune(run[i:])
	for i += size; i < len(run); i += size {
		var c class
		if c, size = classAt(run, i); c != classMark {
			break
		}
	}
	return i
}

// forms returns the terms of a word: its base, which is the stem without accents, and the word itself where it differs.
// The base is valid until the next call.
func (s *scratch) forms(t token) (base, exact []byte) {
	w := s.bytes(t)
	if len(w) > maxTerm || t.mixed || !t.class.wordy() {
		return w, nil
	}
	if t.ascii {
		s.base = append(s.base[:0], w...)
	} else {
		s.base, s.apart = fold(s.base[:0], s.apart, w, t.class)
	}
	base = s.base
	if t.class == classLatin && (t.ascii || plainLetters(base)) {
		base = stem(base)
	}
	if len(base) == 0 || string(base) == string(w) {
		return w, nil
	}
	return base, w
}

func plainLetters(w []byte) bool {
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// parts returns the digits and the letters of a token like "v2" or "8th", apart.
func (t token) parts(text []byte) [2]token {
	left := token{start: t.start, end: t.split, class: t.class, ascii: t.ascii}
	right := token{start: t.split, end: t.end, class: t.class, ascii: t.ascii}
	if asciiDigit(text[t.start]) {
		left.class = classDigit
	} else {
		right.class = classDigit
	}
	return [2]token{left, right}
}

func asciiDigit(c byte) bool { return c >= '0' && c <= '9' }

// maxParts bounds the words of one code or address.
const maxParts = 32

// compoundEnd returns the index after the last token that punctuation alone joins to token i: codes, addresses, paths,
// times. It is at least i+1.
func (s *scratch) compoundEnd(i int) int {
	j := i + 1
	for j < len(s.tokens) && j-i < maxParts && s.joined(s.tokens[j-1], s.tokens[j]) {
		j++
	}
	return j
}

func (s *scratch) joined(a, b token) bool {
	if b.start-a.end-1 > 2 || s.text[a.end] == ' ' || !a.joinable() || !b.joinable() {
		return false
	}
	gap := s.text[a.end:b.start]
	switch len(gap) {
	case 1:
		if gap[0] == ',' {
			return asciiDigit(s.text[a.end-1]) && asciiDigit(s.text[b.start])
		}
		return joiner(gap[0])
	case 2, 3:
		for _, c := range gap {
			if !joiner(c) {
				return false
			}
		}
		return strings.ContainsAny(string(gap), `/\`)
	}
	return false
}

func (t token) joinable() bool { return t.class == classDigit || t.class.wordy() }

func joiner(c byte) bool {
	switch c {
	case '-', '_', '@', '/', '\\', '.', ':', '+', '#', '&', '=', '~', '%', '?':
		return true
	}
	return false
}

// whole returns the term of the tokens from i to end as one, nil where they are no compound or just a date. Thousands
// lose their commas: 1,000 is 1000.
func (s *scratch) whole(i, end int) []byte {
	if end-i < 2 {
		return nil
	}
	if dated := !slicesAny(s.tokens[i:end], func(t token) bool { return !t.used }); dated {
		return nil
	}
	if s.thousands(i, end) {
		s.base = s.base[:0]
		for _, t := range s.tokens[i:end] {
			s.base = append(s.base, s.bytes(t)...)
		}
		return s.base
	}
	return s.text[s.tokens[i].start:s.tokens[end-1].end]
}

func slicesAny(tokens []token, is func(token) bool) bool {
	for _, t := range tokens {
		if is(t) {
			return true
		}
	}
	return false
}

// thousands reports whether the tokens are a number with commas after every three digits.
func (s *scratch) thousands(i, end int) bool {
	for k := i; k < end; k++ {
		t := s.tokens[k]
		n := t.end - t.start
		if t.class != classDigit || n > 3 || k > i && (n != 3 || s.text[t.start-1] != ',') {
			return false
		}
	}
	return end-i > 1
}

// tag returns the normal form of a tag; valid until the next read.
func (s *scratch) tag(tag string) []byte {
	tag = strings.TrimSpace(tag)
	s.text, s.tmp = normalise(s.text[:0], s.tmp, tag)
	return s.text
}
