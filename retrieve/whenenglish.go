package retrieve

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// alternatives returns a pattern for any of the words, the longest first.
func alternatives(list []string) string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return "(?:" + strings.Join(list, "|") + ")"
}

// expand fills in the pieces that patterns name in braces.
func expand(pattern string) string {
	for range 3 { // pieces hold pieces
		for i := 0; i+1 < len(pieces); i += 2 {
			pattern = strings.ReplaceAll(pattern, "{"+pieces[i]+"}", pieces[i+1])
		}
	}
	return pattern
}

var pieces = []string{
	"month", `\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|` +
		`oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?`,
	"dd", `(?:\d{1,2}(?:st|nd|rd|th)?|` + strings.ReplaceAll(ordinals, " ", "|") + `)`,
	"date", `(?:the )?{dd}[ -](?:day )?(?:of )?{month}|{month}[ -](?:the )?{dd}\b(?: ?- ?\d{1,2}\b)?|{month}`,
	"season", `\b(?:spring|summer|autumn|fall|winter)(?:time)?`,
	"quarter", `q[1-4]|h[12]|(?:first|second|third|fourth|last) quarter`,
	"holiday", holidayNames(true),
	"known", `(?:birthday|bday|(?:wedding )?anniversary)`,
	"rel", `\b(?:last|this past|this coming|this|past|previous|current|next|coming|upcoming)`,
	"part", `\b(?:early in|early|mid|middle of|late in|late|beginning of|start of|end of|first half of|second half of)`,
	"wd", `\b(?:mon|tues|wednes|thurs|fri|satur|sun)day`,
	"num", `\b(?:\d{1,4}(?:(?:-| or )\d{1,2})?|(?:one|two) and a half|half an?|(?:a )?couple(?: of)?|(?:a |several |` +
		`some )?few|several|an?|` +
		`(?:one|two|three|four|five|six|seven|eight|nine) or (?:two|three|four|five|six|seven|eight|nine|ten)|` +
		`one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|fifty)`,
	"unit", `(?:hour|day|night|weekend|week|fortnight|month|year|decade)`,
	"year4", `(?:19|20)\d\d`,

	"hn", `(?:\d{1,4}|[一二三四五六七八九十百〇零]{1,4})`,
	"hfew", `(?:\d{1,4}|好几|[一二两三四五六七八九十百几数半]{1,4})`,
	"hunit", `(?:小时|时间|天|日|个?周|个?星期|个?礼拜|个月|[ヶケかカ箇]月|年)(?:间)?`,
	"hyear", `(?:(?:19|20)\d\d年|[一二][九〇零][一二三四五六七八九〇零]{2}年|(?:令和|平成|昭和)\d{1,2}年|大前年|一昨年|おととし|前年|去年|昨年|旧年|今年|本年|再来年|明年|来年|` +
		`后年)`,
	"hpart", `(?:初旬|上旬|中旬|下旬|初め|始め|终わり|年初|年底|年末|年终|初|底|末|中)`,
	"hrel", `(?:上上|先々|上|先|这|本|今|下下|再来|下|来)`,
}

const ordinals = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth " +
	"sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth twenty-fifth " +
	"twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"

func englishRules() []*rule {
	return []*rule{
		{pattern: `(?P<y>{year4})(?P<s>[-/.])(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?:[t ]\d\d:\d\d[\d:.z+]*)?`, read: readISO},
		{pattern: `(?P<y>{year4})[-/](?P<m>0[1-9]|1[0-2])`, read: readISO},
		{pattern: `(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})[-/.](?P<y>{year4}|\d\d)`, read: readNumeric},
		{pattern: `\b(?:on|since|before|after|by|until|from) (?P<a>\d{1,2})(?P<s>/)(?P<b>\d{1,2})`, read: readNumeric},
		{pattern: `(?:(?P<pre>(?:last|this|next) year|{year4})(?:'s|,|-)? ?(?:(?:in|on|at|during|for) )?(?:(?:the|my|our|` +
			`his|her) )?)?` +
			`(?:(?:the )?(?P<part>{part})[ -])?(?:the )?(?:(?P<rel>{rel}) )?` +
			`(?:(?P<date>{date})|(?P<season>{season})|(?P<quarter>{quarter})|(?P<holiday>{holiday})|` +
			`(?:(?P<nth>\d{1,3})(?:st|nd|rd|th) )?(?P<known>{known}))` +
			`(?:(?P<last2> before last)|(?: of| in|,|'s)? ?(?P<year>{year4}\b|'\d\d\b|last year|this year|next year|` +
			`(?:the )?year before last))?`,
			needs: "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|spring|summer|autumn|fall|winter|q1|q2|q3|q4|h1|h2|quarter|" +
				"xmas|christmas|nye|new year|halloween|valentine|day|thanksgiving|festival|anniv", read: readYearly},
		{pattern: `(?:(?:the )?(?P<part>{part})[ -])?(?P<y>{year4})`, read: readYear},
		{pattern: `(?:the )?(?:(?P<part>early|mid|late)[ -])?(?:(?P<y>{year4}|'?\d0)'?s|(?P<w>fift|sixt|sevent|eight|` +
			`ninet)ies)`, needs: "0s|0's|ies", read: readDecade},
		{pattern: `(?:(?:the )?(?P<part>{part}) )?(?P<the>the )?(?P<rel>{rel}) (?P<unit>weekend|week|fortnight|month|` +
			`quarter|year|decade)`, read: readUnit},
		{pattern: `the (?:(?P<unit>weekend|week|month|year|decade)|(?P<wd>{wd})) (?P<dir>before last|after next)`,
			read: readBeforeLast},
		{pattern: `the weekend(?P<of> (?:before|after|of))?`, read: readWeekend},
		{pattern: `(?:(?P<pre>last|this|next) week(?:'s)? (?:on )?)?(?:(?P<rel>{rel}) )?(?P<wd>{wd})` +
			`(?:,? (?:of )?(?P<post>last|this|next) week)?`, read: readWeekday},
		{pattern: `(?:(?:about|around|almost|over) )?(?P<n>{num}) (?P<unit>{unit})s?(?P<or> or (?:two|` +
			`so))?(?P<half> and a half)? (?:ago|back|before now)`, needs: " ago| back| before now", read: readAgo},
		{pattern: `(?:past|last|previous|recent) (?P<n>{num}) (?P<unit>{unit})s`, read: func(m *match) []stretch {
			_, n := amount(m.get("n"))
			return m.rolling(n, m.get("unit"), .9)
		}},
		{pattern: `in (?P<n>{num}) (?P<unit>day|week|month|year|decade)s?(?:'? time)?|(?P<n2>{num}) (?P<unit2>day|week|` +
			`month|year)s? (?:from now|from today)`, needs: "in |from now|from today", read: readIn},
		{pattern: `(?:on|since|by|before|after|until) the (?P<d>\d{1,2})(?:st|nd|rd|th)(?: of (?P<rel>last|this|` +
			`next) month)?`, read: readDayOfMonth},
		{pattern: phrasePattern(), read: readPhrase},
	}
}

func number(s string) int { return max(hanNumber(s), 0) }

// onDate returns the stretch of a calendar's day, or month if the day is 0; nothing if there is no such day.
func onDate(y, mon, d int, weight float64) []stretch {
	item, ok := dateItem(mon, d, 0)
	if !ok {
		return nil
	}
	from, to := item.at(y)
	if from.IsZero() {
		return nil
	}
	return []stretch{{from, to, weight, date{y, mon, d}}}
}

func readISO(m *match) []stretch {
	return onDate(number(m.get("y")), number(m.get("m")), number(m.get("d")), 1)
}

// readNumeric reads 5/8/2023 both ways where both are dates; with dots the day stands first.
func readNumeric(m *match) []stretch {
	a, b, y := number(m.get("a")), number(m.get("b")), number(m.get("y"))
	if m.get("y") == "" {
		m.start += strings.IndexByte(m.text[m.start:], ' ') + 1
		return slices.Concat(m.yearless(a, b), m.yearless(b, a))
	}
	if len(m.get("y")) == 2 {
		if m.get("s") != "/" {
			return nil
		}
		y = m.yearOf("'" + m.get("y"))
	}
	us, eu := onDate(y, a, b, 1), onDate(y, b, a, 1)
	switch {
	case m.get("s") == "." || a == b || us == nil:
		return eu
	case eu == nil:
		return us
	}
	us[0].sure, eu[0].sure = .6, .5
	return append(us, eu...)
}

func (m *match) yearless(mon, d int) []stretch {
	if item, ok := dateItem(mon, d, 0); ok && mon > 0 && d > 0 {
		if from, to := m.pick(0, whichOpen, item.at); !from.IsZero() {
			return sure(from, to, .4)
		}
	}
	return nil
}

// readYearly reads what comes once a year with what says in which.
func readYearly(m *match) []stretch {
	if list := m.anniversaries(); m.get("known") != "" {
		return list
	}
	item, ok := m.item()
	which := whichWords[m.get("rel")]
	if m.get("last2") != "" {
		which = whichBeforeLast
	}
	year := m.yearOf(cmp.Or(m.get("year"), m.get("pre")))
	weight := 1.
	if year == 0 && which == whichOpen {
		weight = .8
	}
	bare := weight < 1 && m.get("part") == ""
	if !ok || bare && item.vague && !m.introduced(&weight) || m.misread(year) {
		return nil
	}
	from, to := m.pick(year, which, item.at)
	if from.IsZero() {
		return nil
	}
	if item.on.day > 0 {
		item.on.year = year
	}
	from, to = part(from, to, m.get("part"))
	return []stretch{{from, to, weight, item.on}}
}

// item returns what the match says comes once a year.
func (m *match) item() (yearly, bool) {
	if s := m.get("season"); s != "" {
		return months(seasons[s], 3), true
	}
	if s := m.get("quarter"); s != "" {
		n := int(s[1] - '0')
		switch {
		case s[0] == 'h':
			return months(6*n-5, 6), true
		case s[0] != 'q':
			n = map[string]int{"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}[strings.Fields(s)[0]]
		}
		return months(3*n-2, 3), true
	}
	if s := m.get("holiday"); s != "" {
		return holidayNamed(s)
	}
	return englishDate(m.get("date"))
}

// englishDate reads 8 May, the eighth of May, May 8th, May 3-5, May.
func englishDate(s string) (yearly, bool) {
	month, list, worded := 0, []int{}, false
	for _, word := range strings.FieldsFunc(strings.ReplaceAll(s, "twenty-", "twenty_"),
		func(r rune) bool { return r == ' ' || r == '-' || r == '.' }) {
		word = strings.Replace(word, "_", "-", 1)
		if n := monthOf([]byte(word)); n > 0 {
			month = n
		} else if n := slices.Index(strings.Fields(ordinals), word) + 1; n > 0 {
			list, worded = append(list, n), !strings.Contains(s, "of ")
		} else if n, err := strconv.Atoi(strings.TrimRight(word, "stndrh")); err == nil {
			list = append(list, max(n, 1))
		}
	}
	list = append(list, 0, 0)
	item, ok := dateItem(month, list[0], list[1])
	item.vague = list[0] == 0 && !longMonths[month] || worded && (month == 3 || month == 5)
	return item, ok
}

// longMonths are those whose names are neither words, nor people, when they are written out; their abbreviations pass
// too.
var longMonths = map[int]bool{1: true, 2: true, 7: true, 9: true, 10: true, 11: true, 12: true}

var (
	intro = regexp.MustCompile(`\b(?:in|of|since|until|till|by|before|after|during|through|throughout|around|over|from|` +
		`between|on)(?: the)? (?:the )?$`)
	faint  = regexp.MustCompile(`\b(?:of|by|before|after|from|on)(?: the)? $`)
	ranged = regexp.MustCompile(`\b(?:to|and|through|until) (?:the )?$`)
)

// introduced reports whether the words before a vague one make it a time. Some of them leave doubts.
func (m *match) introduced(weight *float64) bool {
	before := m.before()
	if strings.HasPrefix(m.text[m.start:], "the ") && m.get("season") == "" {
		return true
	}
	if faint.MatchString(before) {
		*weight = .5
	}
	return intro.MatchString(before) || m.ranged && ranged.MatchString(before)
}

var (
	afterMay = regexp.MustCompile(`^(?:$|[?.!,;:)"'-]|\s+(?:in|at|on|when|with|for|to|and|until|before|after|did|do|` +
		`was|were|last|this|i|we|he|she|they|[^a-z\s])\b)`)
	afterSpring = regexp.MustCompile(`^ (?:water|onion|roll|chicken|clean|loaded|mattress|board)`)
	afterFall   = regexp.MustCompile(`^ (?:of|down|off|apart|asleep|behind|out|over|short|in love|for|into)\b`)
)

// misread reports whether a month or season is the verb or the thing: this may be, spring water, the fall of Rome.
func (m *match) misread(year int) bool {
	if year != 0 {
		return false
	}
	switch end := m.text[m.start:m.end]; {
	case strings.HasSuffix(end, "may") && whichWords[m.get("rel")] != whichLast && !strings.HasSuffix(m.before(), "in "):
		return !afterMay.MatchString(m.after())
	case strings.HasSuffix(end, "spring"):
		return afterSpring.MatchString(m.after())
	case strings.HasSuffix(end, "fall"):
		return afterFall.MatchString(m.after())
	}
	return false
}

var (
	inYear = regexp.MustCompile(`(?:\b(?:in|during|since|of|from|until|till|before|after|around|throughout|year|` +
		`through|by|early|mid|late|about|back to) (?:the )?(?:year )?|\bmid-)$`)
	ownYear   = regexp.MustCompile(`\b(?:the|my|our|his|her|their) $`)
	afterYear = regexp.MustCompile(`^ [a-z]`)
)

func readYear(m *match) []stretch {
	y, weight := number(m.get("y")), 1.
	switch {
	case m.get("part") != "", inYear.MatchString(m.before()), m.ranged && ranged.MatchString(m.before()):
	case ownYear.MatchString(m.before()) && afterYear.MatchString(m.after()):
		weight = .5
	default:
		return nil
	}
	from, to := part(civil(y, 1, 1), civil(y+1, 1, 1), m.get("part"))
	return sure(from, to, weight)
}

func readDecade(m *match) []stretch {
	s, short := strings.CutPrefix(m.get("y"), "'")
	y := number(s)
	switch the := short || strings.HasPrefix(m.text[m.start:], "the "); {
	case m.get("w") != "":
		y = 1950 + 10*slices.Index([]string{"fift", "sixt", "sevent", "eight", "ninet"}, m.get("w"))
		if !the {
			return nil
		}
	case len(s) == 4 && y%10 == 0:
	case len(s) == 2 && the && y >= 50:
		y += 1900
	case len(s) == 2 && the && y <= 20:
		y += 2000
	default:
		return nil
	}
	from, to := part(civil(y, 1, 1), civil(y+10, 1, 1), m.get("part"))
	return sure(from, to, 1)
}

// beforeDate is what makes "last weekend" the one before the date that follows.
var beforeDate = regexp.MustCompile(expand(`^ (?:before|after|of) (?:the )?(?:{month}|\d)`))

var within = regexp.MustCompile(`\b(?:in|over|during|within|for) $`)

// readUnit reads last week by the calendar, and "over the last week" as the seven days up to now.
func readUnit(m *match) []stretch {
	rel, unit := m.get("rel"), m.get("unit")
	if rel == "past" || rel == "this past" && unit != "weekend" ||
		rel == "last" && m.get("the") != "" && within.MatchString(m.before()) {
		if unit != "weekend" && unit != "quarter" {
			return m.rolling(1, unit, .9)
		}
	}
	if beforeDate.MatchString(m.after()) {
		return nil
	}
	from, to := m.unit(unit, whichWords[rel]-whichThis)
	from, to = part(from, to, m.get("part"))
	return sure(from, to, 1)
}

// readWeekend leaves "the weekend before Christmas" to the date.
func readWeekend(m *match) []stretch {
	if m.get("of") != "" {
		return nil
	}
	from, to := m.nearestWeekend()
	return sure(from, to, .8)
}

func readBeforeLast(m *match) []stretch {
	n := -2
	if m.get("dir") == "after next" {
		n = 2
	}
	if wd := m.get("wd"); wd != "" {
		from := days(m.weekday(wd, whichNext), 7)
		if n < 0 {
			from = days(m.weekday(wd, whichLast), -7)
		}
		return sure(from, days(from, 1), 1)
	}
	from, to := m.unit(m.get("unit"), n)
	return sure(from, to, 1)
}

// weekday returns the day of the week that is meant. The last one is the latest before today, the next one is next
// week's.
func (w *moment) weekday(name string, which int) time.Time {
	i := (weekdayOf([]byte(name)) + 6) % 7 // from Monday
	t := days(w.monday(0), i)
	switch {
	case which == whichNext:
		return days(t, 7)
	case which == whichThis:
	case which == whichOpen && w.future:
		if !t.After(w.today) {
			return days(t, 7)
		}
	case !t.Before(w.today):
		return days(t, -7)
	}
	return t
}

func readWeekday(m *match) []stretch {
	if week := cmp.Or(m.get("pre"), m.get("post")); week != "" {
		from := days(m.weekday(m.get("wd"), whichThis), 7*(whichWords[week]-whichThis))
		return sure(from, days(from, 1), 1)
	}
	which, weight := whichWords[m.get("rel")], .9
	if which == whichOpen {
		weight = .7
	}
	from := m.weekday(m.get("wd"), which)
	return sure(from, days(from, 1), weight)
}

func readAgo(m *match) []stretch {
	lo, hi := amount(m.get("n"))
	if m.get("half") != "" {
		lo, hi = lo+.5, hi+.5
	}
	if m.get("or") == " or two" {
		hi = 2
	}
	return m.away(lo, hi, m.get("unit"), -1, 1)
}

// readIn reads "in two weeks", which is as often how long a thing takes.
func readIn(m *match) []stretch {
	lo, hi := amount(cmp.Or(m.get("n"), m.get("n2")))
	weight := .3
	if m.future || m.get("n2") != "" {
		weight = .8
	} else if hi <= 1 {
		return nil
	}
	return m.away(lo, hi, cmp.Or(m.get("unit"), m.get("unit2")), 1, weight)
}

var clauseEnd = regexp.MustCompile(`^(?:$|[?.!,;]| (?:and|at|in|did|i|we|with)\b)`)

func readDayOfMonth(m *match) []stretch {
	m.start += strings.IndexByte(m.text[m.start:], ' ') + 1
	d := number(m.get("d"))
	if d == 0 || !clauseEnd.MatchString(m.after()) {
		return nil
	}
	return m.dayOfMonth(d, m.get("rel"))
}

// dayOfMonth returns a day of the last, this or next month; without a word for that, of the nearest.
func (m *match) dayOfMonth(d int, rel string) []stretch {
	n, weight := whichWords[rel]-whichThis, 1.
	y, mon := m.today.Year(), int(m.today.Month())
	if rel == "" {
		n, weight = 0, .6
		if today := m.today.Day(); m.future && d < today {
			n = 1
		} else if !m.future && d > today {
			n = -1
		}
	}
	first := civil(y, mon+n, 1)
	return onDate(first.Year(), int(first.Month()), d, weight)
}
