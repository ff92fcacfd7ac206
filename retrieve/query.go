package retrieve

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// group is one thing that a query looks for, under each of the terms that it may be indexed as. A document scores by
// the best of them, so that a word and its stem don't count twice.
type group struct {
	terms  []string
	weight float32 // how often the query says it
	stop   bool
	extra  bool // stands beside its parts: a text can hold the phrase without it
	phrase bool // part of what is looked for word by word
	id     int  // names it within the query
}

// query is a text as the index is asked for it.
type query struct {
	groups  []group
	phrases []phrase
	quoted  bool // the phrases stood in quotation marks
	code    bool // it is one code, number, address or path
	dated   bool // it asks for a time and nothing else; groups are names of that time
	known   map[string]int

	possible float32 // the greatest score that words can give
	rare     float32 // the greatest that a word can which a single document holds
}

// phrase is a text in plain form that is looked for verbatim.
type phrase struct {
	text string
	ids  []int // groups that a text with it holds
}

// Bounds of a query.
const (
	maxAsked   = 4096 // groups whose frequencies are looked up
	maxGroups  = 256  // groups that are scored: the rarest
	maxPhrases = 8
	maxPhrase  = 2048 // bytes
)

// parse analyses the text of a query.
func (a *Analyzer) parse(text string) *query {
	s := a.get()
	defer a.pool.Put(s)
	q := &query{known: map[string]int{}}
	for rest := text; rest != "" && len(q.groups) < maxAsked; {
		var piece string
		piece, rest = cutPiece(rest)
		s.read(piece)
		s.ask(q)
	}
	q.dropStops()
	s.askVerbatim(q, text)
	return q
}

// ask adds what the piece that was read looks for.
func (s *scratch) ask(q *query) {
	for i := 0; i < len(s.tokens); {
		end := s.compoundEnd(i)
		if whole := s.whole(i, end); whole != nil {
			thousands := s.thousands(i, end)
			q.add(group{terms: []string{term(prefixNone, whole)}, extra: !thousands})
			for k := i; k < end; k++ {
				s.tokens[k].used = s.tokens[k].used || thousands
			}
		}
		i = end
	}
	for i, t := range s.tokens {
		if !t.used {
			s.askToken(q, i)
		}
	}
	for _, d := range s.dates {
		q.add(group{terms: dateTerms(d)})
	}
}

func (s *scratch) askToken(q *query, i int) {
	t := s.tokens[i]
	switch t.class {
	case classHan, classThai:
		s.askRun(q, t)
	case classHangul:
		if s.askRun(q, t) > 2 {
			q.add(group{terms: []string{term(prefixNone, s.bytes(t))}, extra: true})
		}
	default:
		s.askWord(q, i)
	}
}

// askRun asks for the pairs of a run, or for its only character, and returns how many characters it has.
func (s *scratch) askRun(q *query, t token) int {
	run := s.bytes(t)
	n, last := 0, 0
	for i := 0; i < len(run) && len(q.groups) < maxAsked; n++ {
		end := unitEnd(run, i)
		if n > 0 {
			q.add(group{terms: []string{term(prefixNone, run[last:end])}})
			if w := weekdayHan(run[last:end]); w >= 0 {
				q.add(group{terms: []string{term(prefixSaid, appendWeekday(nil, w))}, extra: true})
			}
		}
		last, i = i, end
	}
	if n == 1 {
		q.add(group{terms: []string{term(prefixNone, run)}})
	}
	return n
}

// askWord asks for a word under its forms; for a month, weekday or year also among the dates.
func (s *scratch) askWord(q *query, i int) {
	t := s.tokens[i]
	w := s.bytes(t)
	base, exact := s.forms(t)
	g := group{terms: appendForms(nil, base, exact)}
	if t.split != 0 {
		for _, part := range t.parts(s.text) {
			base, exact = s.forms(part)
			g.terms = appendForms(g.terms, base, exact)
		}
	}
	g.stop = t.class == classLatin && t.ascii && stopWords[string(w)]
	switch {
	case t.class == classLatin && s.namesMonth(i):
		d := date{month: monthOf(w)}
		g.terms = append(g.terms, dateTerms(d)...)
		g.stop = false
	case t.class == classLatin && weekdayOf(w) >= 0:
		g.terms = append(g.terms, term(prefixSaid, appendWeekday(nil, weekdayOf(w))))
	case s.year(i) > 0:
		g.terms = append(g.terms, term(prefixSaid, w))
	}
	q.add(g)
}

func appendForms(terms []string, base, exact []byte) []string {
	if len(base) > 0 {
		terms = append(terms, term(prefixNone, base))
	}
	if len(exact) > 0 {
		terms = append(terms, term(prefixExact, exact))
	}
	return terms
}

// namesMonth reports whether token i is a month's name; words that mean something else too need a preposition.
func (s *scratch) namesMonth(i int) bool {
	w := s.bytes(s.tokens[i])
	if monthOf(w) == 0 {
		return false
	}
	switch string(w) {
	case "may", "march", "mar":
	default:
		return true
	}
	if i == 0 {
		return false
	}
	switch string(s.bytes(s.tokens[i-1])) {
	case "in", "of", "last", "this", "next", "since", "until", "by", "before", "after", "during", "early", "late", "mid":
		return true
	}
	return false
}

// weekdayHan reads the last two characters of 星期一, 周一 and 礼拜一.
func weekdayHan(pair []byte) int {
	first, size := utf8.DecodeRune(pair)
	if first != '周' && first != '週' && first != '期' && first != '拜' {
		return -1
	}
	day, _ := utf8.DecodeRune(pair[size:])
	if day == '天' {
		return 0
	}
	for i, d := range []rune("日一二三四五六") {
		if d == day {
			return i
		}
	}
	return -1
}

// dateTerms returns the terms of a date at its finest, as texts speak of it and as the day on which they were said.
func dateTerms(d date) []string {
	var b []byte
	switch {
	case d.month == 0:
		b = strconv.AppendInt(b, int64(d.year), 10)
		return []string{term(prefixNone, b), term(prefixSaid, b)}
	case d.day > 0 && d.year > 0:
		b = appendDay(b, d)
	case d.day > 0:
		b = appendMonthDay(b, d)
	case d.year > 0:
		b = appendYearMonth(b, d)
	default:
		b = appendMonth(b, d)
	}
	return []string{term(prefixDate, b), term(prefixSaid, b)}
}

// term returns a term as the index has it.
func term(prefix byte, t []byte) string {
	b := make([]byte, 0, maxTerm+1)
	if prefix != prefixNone {
		b = append(b, prefix)
	}
	return string(cutTerm(b, t))
}

func (g *group) key() string { return strings.Join(g.terms, "\x00") }

// add adds a group, or weight to the same one.
func (q *query) add(g group) {
	if len(g.terms) == 0 {
		return
	}
	key := g.key()
	if i, ok := q.known[key]; ok {
		q.groups[i].weight++
		q.groups[i].extra = q.groups[i].extra && g.extra
		return
	}
	if len(q.groups) < maxAsked {
		g.weight, g.id = 1, len(q.groups)
		q.known[key] = len(q.groups)
		q.groups = append(q.groups, g)
	}
}

// stopsOnly reports whether the query has words but no other than stop words.
func (q *query) stopsOnly() bool {
	for i := range q.groups {
		if !q.groups[i].stop {
			return false
		}
	}
	return len(q.groups) > 0
}

// dropStops takes the stop words out, unless nothing else would be left.
func (q *query) dropStops() {
	if q.stopsOnly() {
		return
	}
	kept := q.groups[:0]
	for _, g := range q.groups {
		if !g.stop {
			kept = append(kept, g)
		}
	}
	q.groups = kept
	clear(q.known)
	for i := range kept {
		kept[i].id = i
		q.known[kept[i].key()] = i
	}
}

// askVerbatim notes what is to be looked for word by word: what stands in quotation marks, else the whole text where it
// is more than a word.
func (s *scratch) askVerbatim(q *query, text string) {
	list := quotes(text)
	q.quoted = list != nil
	if !q.quoted && len(text) <= maxPhrase {
		list = []string{text}
	}
	for _, quoted := range list {
		sub := &query{known: map[string]int{}}
		s.read(quoted)
		q.code = !q.quoted && s.isCode()
		many := len(s.tokens) > 1 || len(s.tokens) == 1 && s.indexRunLength() > 2 || q.code
		s.ask(sub)
		p := phrase{text: s.plain(quoted)}
		for key, i := range sub.known {
			if n, ok := q.known[key]; ok && !sub.groups[i].extra {
				p.ids = append(p.ids, n)
			}
		}
		if p.text != "" && (many || q.quoted) && len(p.ids) > 0 {
			q.phrases = append(q.phrases, p)
		}
	}
}

// isCode reports whether what was read is one code, number, address or path: no word of a language, and no date.
func (s *scratch) isCode() bool {
	if len(s.tokens) == 0 || len(s.dates) > 0 || s.compoundEnd(0) < len(s.tokens) {
		return false
	}
	only := s.tokens[0]
	return only.joinable() && (len(s.tokens) > 1 || only.mixed || only.class == classDigit && only.end-only.start > 2)
}

// indexRunLength returns the characters of the first token if it is a run without spaces, else 1.
func (s *scratch) indexRunLength() int {
	switch t := s.tokens[0]; t.class {
	case classHan, classHangul, classThai:
		return utf8.RuneCount(s.bytes(t))
	}
	return 1
}

// plain returns a text in normal form, each row of spaces as one, without spaces and punctuation at its ends.
func (s *scratch) plain(text string) string {
	s.text, s.tmp = normalise(s.text[:0], s.tmp, text)
	return string(bytes.TrimFunc(bytes.Join(bytes.Fields(s.text), []byte(" ")), func(r rune) bool {
		return runeClass(r) == classSpace
	}))
}

// quotes returns what stands in quotation marks, nil if nothing does.
func quotes(text string) []string {
	var list []string
	for i := 0; i < len(text) && len(list) < maxPhrases; {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		end := closing(r)
		if end == 0 {
			continue
		}
		n := strings.IndexRune(text[i:min(len(text), i+maxPhrase)], end)
		if n < 0 {
			continue
		}
		if strings.TrimSpace(text[i:i+n]) != "" {
			list = append(list, text[i:i+n])
		}
		i += n + utf8.RuneLen(end)
	}
	return list
}

// closing returns the mark that closes a quotation, 0 if r opens none. Single marks are apostrophes too often.
func closing(r rune) rune {
	switch r {
	case '"':
		return '"'
	case '\u201c', '\u201e':
		return '\u201d'
	case '«':
		return '»'
	case '「':
		return '」'
	case '『':
		return '』'
	}
	return 0
}
