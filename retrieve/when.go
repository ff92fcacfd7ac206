package retrieve

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// span is a stretch of time that a question names, to exclusive. Weight, over 0 and at most 1, tells how sure the
// reading is and how much the stretch narrows: a day weighs more than a decade. Text is what the question says, as
// written.
type span struct {
	from, to time.Time
	weight   float64
	text     string
	at       int // where it stands in the question, in bytes
}

// spans are the stretches that a question names, in its order.
type spans []span

// Bounds of findSpans.
const (
	maxSpans    = 8
	maxDateText = 4096 // bytes of a question that are looked at
	maxFinds    = 64   // matches of one rule
)

// findSpans returns the stretches of time that q names, seen from now in now's zone. Dates without a year are the
// nearest past ones, unless the wording is of the future. Weeks begin on Monday, seasons are the northern half's. Known
// are dates that have a name only the caller knows, like birthdays.
func findSpans(q string, now time.Time, known []knownDate) spans {
	text, places := plainDates(q, maxDateText)
	m := newMoment(text, now)
	m.known = known
	var list spans
	for _, f := range m.ranges(m.find()) {
		for _, s := range f.list {
			from, to := zoned(s.from, now.Location()), zoned(s.to, now.Location())
			if from.Before(to) && len(list) < maxSpans {
				at := places[f.start]
				list = append(list, span{from, to, s.sure * narrowness(to.Sub(from)), q[at:places[f.end]], at})
			}
		}
	}
	return list
}

// boost returns how near a text's time, in Unix seconds, is to what the question names: 0 for far away or no time at
// all, up to the weight of a span that holds it. Of several spans the best counts.
func (list spans) boost(unix int64) float64 {
	best := 0.0
	for _, s := range list {
		best = max(best, s.weight*s.boost(unix))
	}
	return best
}

// boost is 1 inside the span and halves outside of it, over and over. Things are told after they happened, seldom
// before, and the later the longer they took: the half-life behind the span is two days and a quarter of its length, at
// most 180 days; before it, a quarter of that, for plans and for doubts about the zone. What is left after seven
// halvings, under 1 %, is 0.
func (s span) boost(unix int64) float64 {
	from, to := float64(s.from.Unix()), float64(s.to.Unix())
	half := min(2*daySeconds+(to-from)/4, 180*daySeconds)
	gap := float64(unix) - to
	if unix < s.to.Unix() {
		half /= 4
		gap = from - float64(unix)
	}
	if gap > 7*half {
		return 0
	}
	return math.Exp2(-max(gap, 0) / half)
}

const daySeconds = 24 * 60 * 60

// narrowness weighs a span by its length.
func narrowness(d time.Duration) float64 {
	switch days := d.Hours() / 24; {
	case days <= 32:
		return 1
	case days <= 124:
		return .9
	case days <= 367:
		return .8
	}
	return .5
}

// plainDates returns the first bytes of a text, at most most, as the rules want them: lower case, ASCII for full width,
// simplified characters; and for each byte of that, and its end, the place in the text.
func plainDates(q string, most int) (text string, places []int) {
	if len(q) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(q[end]) {
			end--
		}
		q = q[:end]
	}
	var b strings.Builder
	for i, r := range q {
		n := b.Len()
		b.WriteRune(plainDateRune(r))
		for range b.Len() - n {
			places = append(places, i)
		}
	}
	return b.String(), append(places, len(q))
}

func plainDateRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return rune(asciiLower[r])
	case r >= 0xff01 && r <= 0xff5e:
		return unicode.ToLower(r - 0xfee0)
	case r == 0x3000, r == 0xa0:
		return ' '
	case r == '\u2019', r == '\u2018':
		return '\''
	case r >= 0x2010 && r <= 0x2014:
		return '-'
	}
	if s, ok := simplified[r]; ok {
		return s
	}
	return unicode.ToLower(r)
}

// simplified maps the traditional and Japanese characters that the rules know to simplified ones.
var simplified = pairs("週周個个號号後后來来禮礼節节聖圣誕诞慶庆國国兩两幾几這这間间過过將将劃划準准備备紀纪記记勞劳動动萬万時时" +
	"點点媽妈們们從从預预結结內内說说雙双兒儿師师婦妇親亲裡里裏里剛刚對对陽阳歲岁總总頭头與与終终開开會会農农曆历爺爷" +
	"發发麼么討讨論论談谈話话請请幫帮憶忆顧顾錄录題题東东讓让給给問问還还當当經经歷历達达訴诉舉举")

func pairs(list string) map[rune]rune {
	runes := []rune(list)
	m := map[rune]rune{}
	for i := 0; i+1 < len(runes); i += 2 {
		m[runes[i]] = runes[i+1]
	}
	return m
}

// stretch is a span without its zone: times of the wall clock, kept as UTC.
type stretch struct {
	from, to time.Time
	sure     float64
	on       date // as written, for whoever wants the date itself; zero if it isn't a calendar's day
}

// moment is a text and the wall clock's time at which it is read.
type moment struct {
	text       string
	now, today time.Time
	future     bool // the wording is of the future
	ranged     bool // it says between or from
	east       bool // it holds Chinese or Japanese
	known      []knownDate
}

var (
	futureWords = regexp.MustCompile(`\b(?:will|won't|going to|upcoming|planning|plans? (?:to|for|on)|shall|coming up)\b|` +
		`'ll\b|将|打算|即将|计划|准备|予定|つもり`)
	pastWords  = regexp.MustCompile(`\b(?:did|didn't|was|were|had|went|said|told|been)\b|了|过`)
	rangeWords = regexp.MustCompile(`\b(?:between|from)\b|从|自`)
)

func newMoment(text string, now time.Time) *moment {
	y, mon, d := now.Date()
	return &moment{
		text:   text,
		now:    time.Date(y, mon, d, now.Hour(), now.Minute(), now.Second(), 0, time.UTC),
		today:  time.Date(y, mon, d, 0, 0, 0, 0, time.UTC),
		future: futureWords.MatchString(text) && !pastWords.MatchString(text),
		ranged: rangeWords.MatchString(text),
		east:   strings.ContainsFunc(text, func(r rune) bool { return r >= 0x2e80 }),
	}
}

// zoned returns the first instant at which the clocks of a zone show a wall clock's time, or the next after it where
// they leap over it.
func zoned(wall time.Time, zone *time.Location) time.Time {
	y, mon, d := wall.Date()
	t := time.Date(y, mon, d, wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	shown := func(t time.Time) time.Time {
		y, mon, d := t.Date()
		return time.Date(y, mon, d, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	start, end := t.ZoneBounds()
	switch early, gap := t.Add(-time.Hour), wall.Sub(shown(t)); {
	case shown(early).Equal(wall): // shown twice
		return early
	case gap > 0 && !end.IsZero(): // leapt over, and t stands before the leap
		return end
	case gap < 0 && !start.IsZero(): // or behind it
		return start
	}
	return t
}

// find is what a rule found: one place of the text, and its readings.
type find struct {
	start, end int
	list       []stretch
}

// match is a rule's match.
type match struct {
	*moment
	rule       *rule
	loc        []int
	start, end int
}

// rule reads the stretches that a pattern's match names; none if it only looks like a date.
type rule struct {
	pattern string
	needs   string // stems, | between, one of which is in every match; spares the pattern's cost. "" is none
	read    func(*match) []stretch
	east    bool // only for texts with Chinese or Japanese
	re      *regexp.Regexp
}

func (m *match) get(group string) string {
	if i := m.rule.re.SubexpIndex(group); i >= 0 && m.loc[2*i] >= 0 {
		return m.text[m.loc[2*i]:m.loc[2*i+1]]
	}
	return ""
}

func (m *match) before() string { return m.text[:m.start] }
func (m *match) after() string  { return m.text[m.end:] }

// find returns what the rules find, in the text's order. Where they overlap the longest counts.
func (w *moment) find() []find {
	var all []find
	for _, r := range whenRules() {
		if r.east && !w.east || !w.has(r.needs) {
			continue
		}
		for _, loc := range r.re.FindAllStringSubmatchIndex(w.text, maxFinds) {
			m := &match{moment: w, rule: r, loc: loc, start: loc[0], end: loc[1]}
			if list := r.read(m); len(list) > 0 && m.bounded() {
				all = append(all, w.modified(find{m.start, m.end, list}))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b find) int { return cmp.Compare(b.end-b.start, a.end-a.start) })
	taken := make([]bool, len(w.text))
	all = slices.DeleteFunc(all, func(f find) bool {
		if slices.Contains(taken[f.start:f.end], true) {
			return true
		}
		for i := f.start; i < f.end; i++ {
			taken[i] = true
		}
		return false
	})
	slices.SortFunc(all, func(a, b find) int { return cmp.Compare(a.start, b.start) })
	return all
}

// has reports whether the text holds one of the stems.
func (w *moment) has(stems string) bool {
	for s := range strings.SplitSeq(stems, "|") {
		if strings.Contains(w.text, s) {
			return true
		}
	}
	return false
}

var (
	badBefore = regexp.MustCompile(`(?:[\p{Latin}\pN_@#$€£¥+\\]|\d[-,.:/])$`)
	badAfter  = regexp.MustCompile(`^(?:[\p{Latin}\pN_@]|[.,:/-]\d|[%$€°])`)
	letters   = regexp.MustCompile(`[\p{Latin}_@#]$`)
	every     = regexp.MustCompile(`(?:\b(?:every|each|per|any|most) (?:single )?|[每各毎][年月周]?)$`)
	measured  = regexp.MustCompile(`^(?: (?:times|more|or more|percent|people|persons|miles|meters|metres|km|kg|dollars|` +
		`euros|bucks|` +
		`words|steps|calories|hours?|minutes?|seconds?|days|weeks|months|years|items|pages|points|users|model)\b|次|人|元|块|米)`)
)

// bounded reports whether a match stands for itself: it is no part of a word, number, price or code, nor of what recurs.
func (m *match) bounded() bool {
	before, after := m.before(), m.after()
	before = before[max(0, len(before)-40):]
	first, _ := utf8.DecodeRuneInString(m.text[m.start:])
	last, _ := utf8.DecodeLastRuneInString(m.text[:m.end])
	switch {
	case every.MatchString(before):
		return false
	case first < utf8.RuneSelf && letters.MatchString(before), last < utf8.RuneSelf && badAfter.MatchString(after):
		return false
	case isDigit(first) && badBefore.MatchString(before):
		return false
	}
	return !isDigit(last) || !measured.MatchString(after)
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

var joint = regexp.MustCompile(`^(?: ?(?:to|until|till|through|and|-) ?(?:the )?|到|至|から|和|~)$`)

// ranges joins what a range's two ends name.
func (w *moment) ranges(all []find) []find {
	var out []find
	for _, f := range all {
		if n := len(out); n > 0 && joint.MatchString(w.text[out[n-1].end:f.start]) {
			a, b := out[n-1].list[0], f.list[0]
			gap := w.text[out[n-1].end:f.start]
			if a.from.Before(b.to) && !a.to.After(b.from) && (w.ranged || !strings.Contains(gap, "and") && gap != "和") {
				a.to, a.on, a.sure = b.to, date{}, min(a.sure, b.sure)
				out[n-1] = find{out[n-1].start, f.end, []stretch{a}}
				continue
			}
		}
		out = append(out, f)
	}
	return out
}

// whenRules are the rules with their patterns compiled, once.
var whenRules = sync.OnceValue(func() []*rule {
	english := englishRules()
	list := append(english, eastRules()...)
	for i, r := range list {
		r.east = i >= len(english)
		r.re = regexp.MustCompile(expand(r.pattern))
	}
	return list
})
