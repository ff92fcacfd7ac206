package retrieve

import (
	"hash/maphash"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// sense is what a word does in a comparison.
type sense uint8

const (
	senseContent sense = iota
	senseStop          // grammar: may come, go and change
	senseFiller        // very, currently: the same, and hardly counts
	sensePronoun       // may come and go, but not change
	sensePerson        // mother, friend: a name wherever it stands
	senseNumber
	senseDate
	senseNegation
)

// unit is a word, number, date or CJK character of a text that is compared.
type unit struct {
	base, plain uint64 // hashes: of the stem, and of the word without accents
	start, end  uint32 // in wording.shown
	weight      uint16 // tenths of a content word
	sense       sense
	capital     bool // written with a capital first letter
	cased       bool // of a script that has capitals
}

// wording is a text taken apart.
type wording struct {
	shown    string // the text in NFKC: what pieces are cut from
	lower    string // the same in lower case
	units    []unit
	weight   int
	shouts   bool // all in capitals: which words are names can't be seen
	whispers bool // or without any
}

// reader takes texts apart. Its zero value is ready; it is scratch space.
type reader struct {
	s        scratch
	out      *wording
	from     uint32 // where the piece begins in the text
	dates    []date // not yet met
	cased    bool   // shown and lower have the same length
	shown    []byte
	allShown []byte
	allLower []byte
}

// nearSeed makes hashes that no text can foresee.
var nearSeed = maphash.MakeSeed()

func hashOf(w []byte) uint64 { return maphash.Bytes(nearSeed, w) }

func (r *reader) read(text string) *wording {
	r.out, r.allShown, r.allLower = &wording{}, r.allShown[:0], r.allLower[:0]
	for rest := text; rest != ""; {
		var piece string
		piece, rest = cutPiece(rest)
		r.piece(piece)
	}
	r.out.shown, r.out.lower = string(r.allShown), string(r.allLower)
	r.out.whispers = r.out.shown == r.out.lower
	r.out.shouts = !strings.ContainsFunc(r.out.shown, unicode.IsLower)
	for i := range r.out.units {
		r.out.weight += int(r.out.units[i].weight)
	}
	return r.out
}

func (r *reader) piece(piece string) {
	s := &r.s
	r.shown = appendCased(r.shown[:0], piece)
	s.read(string(r.shown))
	r.from = uint32(len(r.allShown))
	if r.cased = len(s.text) == len(r.shown); !r.cased {
		r.shown = append(r.shown[:0], s.text...)
	}
	r.allShown, r.allLower = append(r.allShown, r.shown...), append(r.allLower, s.text...)
	r.dates = s.dates
	if s.dateRuns() != len(s.dates) {
		r.dates = nil
	}
	for i := 0; i < len(s.tokens); {
		i = r.token(i)
	}
}

// appendCased appends what normalise does, in the text's own case.
func appendCased(dst []byte, text string) []byte {
	for _, c := range norm.NFKC.String(text) {
		switch {
		case c < utf8.RuneSelf:
			dst = append(dst, byte(c))
		case c == utf8.RuneError:
			dst = append(dst, ' ')
		case ignorable(c):
		case unicode.Is(unicode.Nd, c):
			dst = append(dst, '0'+byte(digitValue(c)))
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return dst
}

// dateRuns counts the rows of tokens that belong to dates.
func (s *scratch) dateRuns() int {
	n := 0
	for i, t := range s.tokens {
		if t.used && (i == 0 || !s.tokens[i-1].used) {
			n++
		}
	}
	return n
}

// token adds the units of token i, or of what it begins, and returns the next.
func (r *reader) token(i int) int {
	s := &r.s
	t := s.tokens[i]
	if t.used {
		return r.date(i)
	}
	if end := s.compoundEnd(i); end-i > 1 && s.numeric(i, end) {
		key := s.text[t.start:s.tokens[end-1].end]
		if s.thousands(i, end) {
			key = s.whole(i, end)
		}
		r.number(i, end, key)
		return end
	}
	switch {
	case t.class == classHan:
		r.run(t)
	case t.class == classThai:
		r.characters(t)
	case t.class == classDigit:
		return r.plainNumber(i)
	case t.mixed:
		r.mixed(i)
	case t.class.wordy():
		r.word(i)
	default:
		r.add(t.start, t.end, s.bytes(t), senseContent, 10)
	}
	return i + 1
}

// numeric reports whether the tokens hold a digit and no part of a date.
func (s *scratch) numeric(i, end int) bool {
	digits := false
	for _, t := range s.tokens[i:end] {
		if t.used {
			return false
		}
		digits = digits || t.class == classDigit || t.mixed
	}
	return digits
}

func (r *reader) add(start, end uint32, key []byte, as sense, weight uint16) *unit {
	h := hashOf(key)
	r.out.units = append(r.out.units, unit{base: h, plain: h, start: r.from + start, end: r.from + end, sense: as, weight: weight})
	return &r.out.units[len(r.out.units)-1]
}

// date adds the row of tokens from i on that are part of dates, as one.
func (r *reader) date(i int) int {
	s := &r.s
	end := i
	for end < len(s.tokens) && s.tokens[end].used {
		end++
	}
	start, stop := s.tokens[i].start, s.tokens[end-1].end
	key := s.text[start:stop]
	if len(r.dates) > 0 {
		key = r.dates[0].key()
		r.dates = r.dates[1:]
	}
	r.add(start, stop, key, senseDate, 10)
	if end < len(s.tokens) && s.tokens[end].start == stop { // 日 of 5月3日是 stands in the next token
		if w := s.bytes(s.tokens[end]); len(w) >= 3 && strings.Contains("年月日号號년월일", string(w[:unitEnd(w, 0)])) {
			s.tokens[end].start += uint32(unitEnd(w, 0))
			r.out.units[len(r.out.units)-1].end = r.from + s.tokens[end].start
			if s.tokens[end].start == s.tokens[end].end {
				end++
			}
		}
	}
	return end
}

func (d date) key() []byte {
	if d.month == 0 {
		return strconv.AppendInt(nil, int64(d.year), 10)
	}
	return append2(append(append2(append(strconv.AppendInt(nil, int64(d.year), 10), '-'), d.month), '-'), d.day)
}

// number adds the tokens from i to end as one number, with the sign, currency or per cent that stands close to it.
func (r *reader) number(i, end int, key []byte) {
	s := &r.s
	start, stop := s.tokens[i].start, s.tokens[end-1].end
	as := senseNumber
	if end == i+1 && s.year(i) > 0 && i > 0 && yearBefore[string(s.bytes(s.tokens[i-1]))] {
		as = senseDate
	}
	before, size := utf8.DecodeLastRune(s.text[:start])
	sign := (before == '-' || before == '−') && (int(start) == size || s.text[int(start)-size-1] == ' ')
	if size > 0 && (sign || unicode.Is(unicode.Sc, before)) {
		start -= uint32(size)
		key = append([]byte(string(before)), key...)
	}
	if after, size := utf8.DecodeRune(s.text[stop:]); after == '%' || after == '‰' || after == '°' || unicode.Is(unicode.Sc, after) {
		stop += uint32(size)
		key = utf8.AppendRune(append([]byte(nil), key...), after)
	}
	r.add(start, stop, key, as, 10)
}

// plainNumber adds digits, and am or pm behind them.
func (r *reader) plainNumber(i int) int {
	s := &r.s
	if i+1 < len(s.tokens) && s.tokens[i+1].start-s.tokens[i].end == 1 && halfDay(s.bytes(s.tokens[i+1])) {
		r.number(i, i+2, append(append([]byte(nil), s.bytes(s.tokens[i])...), s.bytes(s.tokens[i+1])...))
		return i + 2
	}
	r.number(i, i+1, s.bytes(s.tokens[i]))
	return i + 1
}

func halfDay(w []byte) bool { return string(w) == "am" || string(w) == "pm" }

// mixed adds 5km as a number and a word, 8th as a number, and 3pm, v2 and codes whole.
func (r *reader) mixed(i int) {
	s := &r.s
	t := s.tokens[i]
	if t.split == 0 || !asciiDigit(s.text[t.start]) {
		r.number(i, i+1, s.bytes(t))
		return
	}
	unitWord := s.text[t.split:t.end]
	switch string(unitWord) {
	case "am", "pm":
		r.number(i, i+1, s.bytes(t))
	case "st", "nd", "rd", "th":
		r.add(t.start, t.end, s.text[t.start:t.split], senseNumber, 10)
	default:
		r.add(t.start, t.split, s.text[t.start:t.split], senseNumber, 10)
		s.base = append(s.base[:0], unitWord...)
		r.add(t.split, t.end, inflected(s.base), senseContent, 10)
	}
}

// word adds a word of letters.
func (r *reader) word(i int) {
	s := &r.s
	t := s.tokens[i]
	w := s.bytes(t)
	if l, ok := nearWords[string(w)]; ok {
		end := t.end
		if n := apostrophe(r.shown, int(end)-1); n > 0 { // of don't, which was mended to dont
			end += uint32(n)
		}
		r.add(t.start, end, []byte(l.keyOf(string(w))), l.sense, l.sense.weight())
		return
	}
	if t.ascii && stopWords[string(w)] && !s.namesMonth(i) {
		r.add(t.start, t.end, w, senseStop, senseStop.weight())
		return
	}
	as := senseContent
	if s.namesMonth(i) || weekdayOf(w) >= 0 {
		as = senseDate
	}
	s.base = append(s.base[:0], w...)
	if !t.ascii {
		s.base, s.tmp = fold(s.base[:0], s.tmp, w, t.class)
	}
	u := r.add(t.start, t.end, s.base, as, 10)
	u.cased = t.class == classLatin || t.class == classGreek || t.class == classCyrillic
	if t.class == classLatin && plainLetters(s.base) {
		u.base = hashOf(inflected(s.base))
	}
	if r.cased {
		first, _ := utf8.DecodeRune(r.shown[t.start:])
		u.capital = unicode.IsUpper(first) || unicode.IsTitle(first)
	}
	if n := len(r.out.units); u.capital && i > 0 && n > 1 && r.out.units[n-2].capital && t.start == s.tokens[i-1].end+1 {
		u.weight = 3 // a name counts little more for having several words
	}
	if u.capital && r.opens(i) && strings.HasSuffix(string(w), "ly") {
		u.sense, u.weight = senseFiller, senseFiller.weight()
	}
}

// inflected returns a word without plural, past and -ing, in place. What the stemmer takes besides makes animals of
// anime.
func inflected(w []byte) []byte {
	if len(w) <= 2 {
		return w
	}
	return step5(step1c(step1b(step1a(w))))
}

// opens reports whether token i may have its capital from standing at the head of a sentence.
func (r *reader) opens(i int) bool {
	return i == 0 || strings.ContainsAny(string(r.s.text[r.s.tokens[i-1].end:r.s.tokens[i].start]), ".!?:;\n\"“(")
}

// characters adds a run without spaces character by character.
func (r *reader) characters(t token) {
	run := r.s.bytes(t)
	for i := 0; i < len(run); {
		end := unitEnd(run, i)
		r.add(t.start+uint32(i), t.start+uint32(end), run[i:end], senseContent, 3)
		i = end
	}
}

// run adds Han and kana: the words of nearHan, katakana words, numerals, and other characters one by one.
func (r *reader) run(t token) {
	run := r.s.bytes(t)
	for i := 0; i < len(run); {
		n, w := longestHan(run[i:])
		key := []byte(w.key)
		as, weight := w.sense, w.sense.weight()
		if n == 0 {
			n, key, as, weight = hanUnit(run[i:])
		}
		r.add(t.start+uint32(i), t.start+uint32(i+n), key, as, weight)
		i += n
	}
}

// hanUnit reads a katakana word, a numeral or one character at the head of a run.
func hanUnit(run []byte) (n int, key []byte, as sense, weight uint16) {
	if n = spanOf(run, katakana); n > 0 {
		return n, run[:n], senseContent, 10
	}
	if n = spanOf(run, numeral); n > 0 {
		if d, ok := hanDigits[string(run[:n])]; ok {
			return n, []byte(d), senseNumber, 10
		}
		return n, run[:n], senseNumber, 10
	}
	n = unitEnd(run, 0)
	if first, _ := utf8.DecodeRune(run); first < 0x30a0 { // hiragana
		return n, run[:n], senseContent, 3
	}
	return n, run[:n], senseContent, 6
}

func spanOf(run []byte, is func(rune) bool) int {
	n := 0
	for n < len(run) {
		c, size := utf8.DecodeRune(run[n:])
		if !is(c) {
			break
		}
		n += size
	}
	return n
}

func katakana(c rune) bool { return c >= 0x30a1 && c <= 0x30ff && c != 0x30fb }

func numeral(c rune) bool {
	return strings.ContainsRune("〇零一二两兩三四五六七八九十百千万萬亿億半", c)
}

// weight is what a word of the sense counts in a comparison.
func (s sense) weight() uint16 {
	switch s {
	case senseStop, sensePronoun:
		return 3
	case senseFiller:
		return 1
	case senseNegation:
		return 5
	}
	return 10
}
