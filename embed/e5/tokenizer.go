package e5

import (
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// mark stands before each word in the pieces (U+2581).
const mark = "\u2581"

// The pieces' hash is FNV-1a of 64 bits with an offset basis of its own.
const (
	hashBasis = 1469598103934665603
	hashPrime = 1099511628211
)

// tokenizer splits texts into the model's pieces: SentencePiece's unigram model, the most probable split of each word. It
// reads the file in place and is safe for concurrent use.
type tokenizer struct {
	bytes              []byte
	offset, hash       words
	mask               uint64
	score              words
	cp, outOffset, out words
	longest            int
	start, end, unk    uint32
	unkScore           float32
	ascii              [utf8.RuneSelf]string // what each becomes
}

func newTokenizer(f *file) *tokenizer {
	t := &tokenizer{
		bytes: f.section["tok.bytes"], offset: words(f.section["tok.offset"]), score: words(f.section["tok.score"]),
		hash: words(f.section["tok.hash"]), mask: 1<<f.hashBits - 1,
		cp: words(f.section["norm.cp"]), outOffset: words(f.section["norm.offset"]), out: words(f.section["norm.out"]),
		longest: f.longest, start: f.start, end: f.end, unk: f.unk, unkScore: f.unkScore,
	}
	for r := range rune(utf8.RuneSelf) {
		t.ascii[r] = string(t.appendRune(nil, r))
	}
	return t
}

// appendRune appends what a character becomes: often itself, white space a space, a control character nothing.
func (t *tokenizer) appendRune(dst []byte, r rune) []byte {
	n := len(t.cp) / 4
	i := sort.Search(n, func(i int) bool { return t.cp.at(i) >= uint32(r) })
	if i == n || t.cp.at(i) != uint32(r) {
		return utf8.AppendRune(dst, r)
	}
	for k := t.outOffset.at(i); k < t.outOffset.at(i+1); k++ {
		dst = utf8.AppendRune(dst, rune(t.out.at(int(k))))
	}
	return dst
}

// normalize returns the text as the pieces are written: NFKC by the model's table, then composed.
func (t *tokenizer) normalize(text string) string {
	b := make([]byte, 0, len(text)+len(text)/8)
	plain := true
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			b = append(b, t.ascii[c]...)
			i++
			continue
		}
		plain = false
		r, size := utf8.DecodeRuneInString(text[i:]) // U+FFFD for an invalid byte
		b = t.appendRune(b, r)
		i += size
	}
	if plain {
		return string(b)
	}
	return string(norm.NFC.Bytes(b))
}

// encode returns the ids of a text between the two ends, of which at most max are the text's.
func (t *tokenizer) encode(text string, max int) []uint32 {
	ids := make([]uint32, 1, 2+min(max, len(text)/2))
	ids[0] = t.start
	var s splitter
	for word := range strings.SplitSeq(t.normalize(text), " ") {
		if word == "" {
			continue
		}
		ids = s.split(t, ids, mark+word)
		if len(ids) > max {
			ids = ids[:max+1]
			break
		}
	}
	return append(ids, t.end)
}

// splitter is the scratch space of one text.
type splitter struct{ best []step }

// step is the best way to the end of a prefix of a word.
type step struct {
	score float32
	from  int32 // where its last piece starts
	id    uint32
}

// split appends the ids of a word's most probable split (Viterbi). At equal scores the first found stays.
func (s *splitter) split(t *tokenizer, ids []uint32, word string) []uint32 {
	s.best = s.best[:0]
	for range len(word) + 1 {
		s.best = append(s.best, step{score: float32(math.Inf(-1))})
	}
	s.best[0].score = 0
	for from := 0; from < len(word); {
		_, size := utf8.DecodeRuneInString(word[from:])
		s.try(from, from+size, t.unkScore, t.unk)
		s.pieces(t, word, from)
		from += size
	}
	at := len(ids)
	for end := len(word); end > 0; end = int(s.best[end].from) {
		ids = append(ids, s.best[end].id)
	}
	slices.Reverse(ids[at:])
	return t.joinUnknown(ids, at)
}

// pieces tries all pieces that start at a place. The hash grows byte by byte, so one pass looks up every length.
func (s *splitter) pieces(t *tokenizer, word string, from int) {
	h := uint64(hashBasis)
	for end := from + 1; end <= min(len(word), from+t.longest); end++ {
		h = (h ^ uint64(word[end-1])) * hashPrime
		if end < len(word) && !utf8.RuneStart(word[end]) {
			continue
		}
		if id, ok := t.find(h, word[from:end]); ok {
			s.try(from, end, math.Float32frombits(t.score.at(int(id))), id)
		}
	}
}

func (s *splitter) try(from, end int, score float32, id uint32) {
	if sum := s.best[from].score + score; sum > s.best[end].score {
		s.best[end] = step{sum, int32(from), id}
	}
}

// find returns the id of a piece with the given hash.
func (t *tokenizer) find(h uint64, piece string) (uint32, bool) {
	for slot, left := h&t.mask, t.mask; left > 0; slot, left = (slot+1)&t.mask, left-1 {
		id := t.hash.at(int(slot))
		if id == 0 || int(id) >= len(t.offset)/4 {
			return 0, false
		}
		if id--; string(t.bytes[t.offset.at(int(id)):t.offset.at(int(id)+1)]) == piece {
			return id, true
		}
	}
	return 0, false
}

// joinUnknown makes one of neighbouring unknown characters, from a place on.
func (t *tokenizer) joinUnknown(ids []uint32, at int) []uint32 {
	out := ids[:at]
	for _, id := range ids[at:] {
		if id != t.unk || len(out) == 0 || out[len(out)-1] != t.unk {
			out = append(out, id)
		}
	}
	return out
}
