package retrieve

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// eastRules are the rules for Chinese and Japanese, in simplified characters.
func eastRules() []*rule {
	return []*rule{
		{pattern: `(?:(?P<pre>{hyear})[的の]?(?:[我你您他她]们?的?)?)?(?:(?P<holiday>` + holidayNames(false) + `)|` +
			`(?P<m>{hn})月份?(?:(?P<d>{hn})[日号])?|(?P<season>[春夏秋冬])(?P<full>天|季|に)?|` +
			`第?(?P<q>[一二三四1-4])季度|(?P<h>[上下前后])半年|(?P<known>生日|诞生日|(?:结婚)?(?:纪念|记念)日))` +
			`(?:[的の]?(?P<part>{hpart}))?`, read: readEastYearly},
		{pattern: `(?P<y>{hyear})(?:[的の]?(?P<part>{hpart}))?|(?P<part2>年初|年底|年末)`, read: readEastYear},
		{pattern: `(?P<rel>{hrel})一?个?(?:周|星期|礼拜)(?:(?P<wd>[の的]?[月火水木金土日]曜日?|[一二三四五六日天])|[の的]?周?(?P<end>末))?`,
			read: readEastWeek},
		{pattern: `(?P<rel>{hrel}|当)(?P<unit>个?月|个?季度)(?:[的の]?(?:(?P<d>{hn})[日号]|(?P<part>{hpart})))?`, read: readEastMonth},
		{pattern: `(?:周|星期|礼拜)(?:(?P<wd>[一二三四五六日天])|(?P<end>末))|(?P<jwd>[月火水木金土日]曜日?)`, read: readEastWeekday},
		{pattern: `(?P<n>{hfew})(?P<unit>{hunit}|个半月)(?P<half>半)?(?:ほど|ぐらい|くらい|左右|多)?(?:之前|以前|前)`, read: readEastAgo},
		{pattern: `(?:(?:过去|最近|近|ここ)的?(?P<n>{hfew})|[这前](?P<few>[几两]))(?P<unit>{hunit})`, read: readEastRolling},
		{pattern: `(?P<n>{hfew})(?P<unit>{hunit}|个半月)(?P<half>半)?(?:之后|以后|后)`, read: readEastIn},
		{pattern: `(?:(?P<y>{year4})|(?P<c>上世纪|20世纪|二十世纪|本世纪)?(?P<d>\d0|[一二三四五六七八九]?十))年代`, read: readEastDecade},
	}
}

// stick is what makes a number of the 一 after 周, a word of the 日 and the 天, and so on.
var stick = regexp.MustCompile(`^(?:一(?:[共直起次样些个般定]|下(?:[^午]|$))|[一二三四五六][次个天倍年]|日本|天气|末日)`)

func readEastYearly(m *match) []stretch {
	if list := m.anniversaries(); m.get("known") != "" {
		return list
	}
	item, ok := m.eastItem()
	year, weight := m.yearOf(m.get("pre")), 1.
	if m.get("pre") == "" {
		weight = .8
		if m.get("season") != "" && m.get("full") == "" || m.get("q") != "" && !strings.Contains(m.before(), "年") {
			return nil
		}
		if m.get("season") != "" || m.get("h") != "" {
			weight = .6
		}
	}
	if !ok || m.get("pre") != "" && year == 0 {
		return nil
	}
	if item.on.day > 0 {
		item.on.year = year
	}
	from, to := m.pick(year, whichOpen, item.at)
	if from.IsZero() {
		return nil
	}
	from, to = part(from, to, m.get("part"))
	return []stretch{{from, to, weight, item.on}}
}

func (m *match) eastItem() (yearly, bool) {
	switch {
	case m.get("season") != "":
		return months(seasons[m.get("season")], 3), true
	case m.get("q") != "":
		return months(3*number(m.get("q"))-2, 3), true
	case m.get("h") == "上", m.get("h") == "前":
		return months(1, 6), true
	case m.get("h") != "":
		return months(7, 6), true
	case m.get("holiday") != "":
		return holidayNamed(m.get("holiday"))
	case m.get("d") != "" && number(m.get("d")) == 0:
		return yearly{}, false
	}
	return dateItem(number(m.get("m")), number(m.get("d")), 0)
}

func readEastYear(m *match) []stretch {
	y := m.today.Year()
	if m.get("y") != "" {
		if y = m.yearOf(m.get("y")); y == 0 {
			return nil
		}
	}
	from, to := part(civil(y, 1, 1), civil(y+1, 1, 1), cmp.Or(m.get("part"), m.get("part2")))
	return sure(from, to, 1)
}

// notUp are the characters that make another word with 上, 下 and 来 behind them.
var notUp = regexp.MustCompile(`[晚早马网桌路手身以天床楼线头地乡原未将从本]$`)

func readEastWeek(m *match) []stretch {
	rel := m.get("rel")
	if notUp.MatchString(m.before()) {
		return nil
	}
	from := m.monday(whichWords[rel] - whichThis)
	wd := m.get("wd")
	switch {
	case m.get("end") != "":
		return sure(days(from, 5), days(from, 7), 1)
	case wd == "":
		return sure(from, days(from, 7), 1)
	case stick.MatchString(wd + m.after()):
		m.end -= len(wd)
		return sure(from, days(from, 7), 1)
	}
	from = days(from, eastWeekday(wd))
	return sure(from, days(from, 1), 1)
}

// eastWeekday returns the place of 三, 天 or 水曜日 in the week, from Monday.
func eastWeekday(name string) int {
	name = strings.TrimLeft(name, "の的")
	r, size := utf8.DecodeRuneInString(name)
	list := "一二三四五六日"
	if len(name) > size {
		list = "月火水木金土日"
	}
	if i := strings.IndexRune(list, r); i >= 0 {
		return i / 3
	}
	return 6
}

var notMonth = regexp.MustCompile(`^[亮光球饼薪经饭台]`)

func readEastMonth(m *match) []stretch {
	if notUp.MatchString(m.before()) || notMonth.MatchString(m.after()) {
		return nil
	}
	rel := m.get("rel")
	if d := m.get("d"); d != "" {
		return m.dayOfMonth(number(d), rel)
	}
	unit := "month"
	if strings.HasSuffix(m.get("unit"), "季度") {
		unit = "quarter"
	}
	from, to := m.unit(unit, whichWords[rel]-whichThis)
	from, to = part(from, to, m.get("part"))
	return sure(from, to, 1)
}

var numbered = regexp.MustCompile(`[一二两三四五六七八九十几数半个\d]$`)

func readEastWeekday(m *match) []stretch {
	wd := cmp.Or(m.get("jwd"), m.get("wd"))
	switch {
	case numbered.MatchString(m.before()), stick.MatchString(wd + m.after()):
		return nil
	case m.get("end") != "":
		from, to := m.nearestWeekend()
		return sure(from, to, .6)
	}
	names := strings.Fields("monday tuesday wednesday thursday friday saturday sunday")
	from := m.weekday(names[eastWeekday(wd)], whichOpen)
	return sure(from, days(from, 1), .7)
}

// eastAmount reads the number before a unit; 个半月 and 年半 are half a unit more.
func (m *match) eastAmount() (lo, hi float64) {
	lo, hi = amount(m.get("n"))
	if m.get("half") != "" || m.get("unit") == "个半月" {
		lo, hi = lo+.5, hi+.5
	}
	return lo, hi
}

func readEastAgo(m *match) []stretch {
	lo, hi := m.eastAmount()
	return m.away(lo, hi, m.get("unit"), -1, 1)
}

func readEastIn(m *match) []stretch {
	lo, hi := m.eastAmount()
	weight := .3
	if m.future {
		weight = .8
	}
	return m.away(lo, hi, m.get("unit"), 1, weight)
}

func readEastRolling(m *match) []stretch {
	_, n := amount(cmp.Or(m.get("n"), m.get("few")))
	return m.rolling(n, m.get("unit"), .8)
}

func readEastDecade(m *match) []stretch {
	y := number(m.get("y"))
	if y == 0 {
		y = number(m.get("d")) + 1900
		if m.get("c") == "本世纪" || m.get("c") == "" && y < 1950 {
			y += 100
		}
	}
	if y%10 != 0 || y > 2090 {
		return nil
	}
	return sure(civil(y, 1, 1), civil(y+10, 1, 1), 1)
}

// phrases are fixed words with the hours from today's midnight that they reach over, and how much they tell.
var phrases = phraseTable(`
-24 0 1 yesterday|昨天|昨日|昨儿|きのう
-48 -24 1 the day before yesterday|day before yesterday|前天|一昨日|おととい
-72 -48 1 大前天
0 24 .7 today|今天|今日|今儿|きょう
24 48 .9 tomorrow|明天|明日|あした
48 72 .9 the day after tomorrow|day after tomorrow|后天|明后日|あさって
72 96 .9 大后天
-6 5 1 last night|昨晚|昨夜|昨晩|昨天夜里|ゆうべ
-30 -19 .9 the night before last|前天晚上|前晚
5 12 1 this morning|今早|今朝|今天早上|今晨|けさ
12 18 1 this afternoon
17 24 1 this evening
18 29 .9 tonight|今晚|今夜|今晩
-720 24 .25 recently|lately|最近|近来|近日|近期
-240 0 .5 the other day|先日|この前|この间
-504 -72 .4 the other week
-168 0 .6 前几天|前些天|前两天|前些日子
-1440 -168 .4 前阵子|前段时间|前一阵
-96 24 .5 这几天|这两天
-720 24 .3 这阵子|这段时间
-9120 -8400 .8 this time last year|去年这个时候|去年这时候|去年の今顷
`)

type phrase4 struct{ from, to, sure float64 }

func phraseTable(table string) map[string]phrase4 {
	m := map[string]phrase4{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		var p phrase4
		for i, v := range []*float64{&p.from, &p.to, &p.sure} {
			*v, _ = strconv.ParseFloat(f[i], 64)
		}
		for name := range strings.SplitSeq(f[3], "|") {
			m[name] = p
		}
	}
	return m
}

func phrasePattern() string {
	var list []string
	for name := range phrases {
		list = append(list, name)
	}
	slices.Sort(list)
	return alternatives(list)
}

// otherWords are longer words that begin with a phrase: antennas, what is acquired, the nearest station.
var otherWords = regexp.MustCompile(`^(?:[前后]天[线性赋的]|今日头|明日香|最近[的一几两三十\d]|this morning glor)`)

func readPhrase(m *match) []stretch {
	if otherWords.MatchString(m.text[m.start:]) {
		return nil
	}
	p := phrases[m.text[m.start:m.end]]
	at := func(hours float64) time.Time { return m.today.Add(time.Duration(hours) * time.Hour) }
	return sure(at(p.from), at(p.to), p.sure)
}
