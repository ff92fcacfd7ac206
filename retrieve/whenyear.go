package retrieve

import (
	"strconv"
	"strings"
	"time"
)

// This file holds the calendar: days, weeks, and what comes once a year.

// yearly is what comes once a year: a date, month, season or holiday.
type yearly struct {
	at    func(year int) (from, to time.Time) // zero where that year has none
	on    date                                // of the calendar
	vague bool                                // its word means other things too
}

// Which of the years, by how a question says it.
const (
	whichOpen = iota // the nearest
	whichBeforeLast
	whichLast
	whichThis
	whichNext
	whichAfterNext
)

var whichWords = words[int]("last:2 past:2 previous:2 this_past:2 this:3 current:3 next:4 coming:4 upcoming:4 this_coming:4 " +
	"上上:1 先々:1 上:2 先:2 这:3 本:3 今:3 当:3 下:4 来:4 下下:5 再来:5")

// words reads a table of words and numbers; _ stands for a space.
func words[T int | float64](list string) map[string]T {
	m := map[string]T{}
	for _, f := range strings.Fields(list) {
		word, value, _ := strings.Cut(f, ":")
		n, _ := strconv.ParseFloat(value, 64)
		m[strings.ReplaceAll(word, "_", " ")] = T(n)
	}
	return m
}

func civil(year, month, day int) time.Time {
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}

func days(t time.Time, n int) time.Time { return t.AddDate(0, 0, n) }

func sure(from, to time.Time, weight float64) []stretch {
	return []stretch{{from: from, to: to, sure: weight}}
}

// monday returns the first day of the week that is n weeks from now.
func (w *moment) monday(n int) time.Time { return days(w.today, 7*n-(int(w.today.Weekday())+6)%7) }

// unit returns the calendar's week, weekend, month, quarter or year that is n from the one now.
func (w *moment) unit(name string, n int) (from, to time.Time) {
	y, mon := w.today.Year(), int(w.today.Month())
	switch name {
	case "week":
		return w.monday(n), w.monday(n + 1)
	case "fortnight":
		return w.monday(2 * n), w.monday(2*n + 2)
	case "weekend":
		return days(w.monday(n), 5), w.monday(n + 1)
	case "month":
		return civil(y, mon+n, 1), civil(y, mon+n+1, 1)
	case "quarter":
		mon -= (mon - 1) % 3
		return civil(y, mon+3*n, 1), civil(y, mon+3*n+3, 1)
	case "decade":
		return civil(y-y%10+10*n, 1, 1), civil(y-y%10+10*n+10, 1, 1)
	}
	return civil(y+n, 1, 1), civil(y+n+1, 1, 1)
}

// nearestWeekend returns the one that a question means by "the weekend".
func (w *moment) nearestWeekend() (from, to time.Time) {
	if from, to = w.unit("weekend", 0); w.future || !from.After(w.today) {
		return from, to
	}
	return w.unit("weekend", -1)
}

// pick returns the year's occasion that is meant: in a year if one is given, else by which.
func (w *moment) pick(year, which int, at func(int) (from, to time.Time)) (from, to time.Time) {
	if year != 0 {
		return at(year)
	}
	y := w.today.Year()
	switch {
	case which == whichThis:
		if from, to = at(y - 1); from.After(w.today) || !to.After(w.today) { // a winter began last year
			from, to = at(y)
		}
		return from, to
	case which == whichOpen && w.future, which >= whichNext:
		skip := max(which-whichNext, 0)
		return seek(y-1, 1, skip, at, func(from, to time.Time) bool {
			return from.After(w.today) || which == whichOpen && to.After(w.today)
		})
	case which == whichOpen:
		return seek(y+1, -1, 0, at, func(from, to time.Time) bool { return !from.After(w.today) })
	}
	return seek(y+1, -1, whichLast-which, at, func(from, to time.Time) bool { return !to.After(w.today) })
}

// seek goes through the years from one on and returns the first occasion that is good, after skipping some. Eight years
// may lie between leap years.
func seek(year, step, skip int, at func(int) (from, to time.Time), good func(from, to time.Time) bool) (from, to time.Time) {
	for n := range 12 {
		if from, to = at(year + n*step); !from.IsZero() && good(from, to) {
			if skip--; skip < 0 {
				return from, to
			}
		}
	}
	return time.Time{}, time.Time{}
}

// part cuts a part out of a stretch of days: thirds for early, mid and late; a quarter for the beginning and the end.
func part(from, to time.Time, name string) (time.Time, time.Time) {
	n := int(to.Sub(from) / (24 * time.Hour))
	if n < 3 {
		return from, to
	}
	switch partWords[name] {
	case 1:
		return from, days(from, n/3)
	case 2:
		return days(from, n/3), days(from, n/3*2)
	case 3:
		return days(from, n/3*2), to
	case 4:
		return from, days(from, (n+3)/4)
	case 5:
		return days(to, -(n+3)/4), to
	case 6:
		return from, days(from, n/2)
	case 7:
		return days(from, n/2), to
	}
	return from, to
}

var partWords = words[int]("early:1 early_in:1 上旬:1 初旬:1 mid:2 mid-:2 middle_of:2 中旬:2 中:2 late:3 late_in:3 下旬:3 " +
	"beginning_of:4 start_of:4 初:4 初め:4 始め:4 年初:4 end_of:5 底:5 末:5 终わり:5 年底:5 年末:5 年终:5 first_half_of:6 second_half_of:7")

// dateItem is a month, or a day of it, or some days of it on end.
func dateItem(month, first, last int) (yearly, bool) {
	if month < 1 || month > 12 || first < 0 || first > 31 || last > 31 {
		return yearly{}, false
	}
	if first == 0 {
		return yearly{at: func(y int) (from, to time.Time) { return civil(y, month, 1), civil(y, month+1, 1) }}, true
	}
	last = max(first, last)
	at := func(y int) (from, to time.Time) {
		if from, to = civil(y, month, first), civil(y, month, last); int(to.Month()) != month {
			return time.Time{}, time.Time{}
		}
		return from, days(to, 1)
	}
	return yearly{at: at, on: date{0, month, first}}, true
}

// months is n months on end, from one on.
func months(month, n int) yearly {
	return yearly{at: func(y int) (from, to time.Time) { return civil(y, month, 1), civil(y, month+n, 1) }, vague: true}
}

// seasons by their words in all languages; in pattern form for the East, where 夏 alone is many things.
var seasons = words[int]("spring:3 springtime:3 summer:6 summertime:6 autumn:9 fall:9 winter:12 wintertime:12 春:3 夏:6 秋:9 冬:12")

// holiday has a date; or a day of the week, the nth in its month; or a date in the lunar table. It may begin some days
// off.
type holiday struct {
	names      string // in plain form, | between
	month, day int
	nth        int
	weekday    time.Weekday
	lunar      int // column of lunarDates, from 1
	shift      int
	days       int // 0 is 1
}

var holidays = []holiday{
	{names: "christmas day|christmas|xmas|圣诞节|圣诞|クリスマス", month: 12, day: 25},
	{names: "christmas eve|平安夜|クリスマスイブ", month: 12, day: 24},
	{names: "new year's eve|nye|大晦日|跨年夜", month: 12, day: 31},
	{names: "new year's day|new year's|new year|元旦|元日", month: 1, day: 1},
	{names: "お正月|正月", month: 1, day: 1, days: 3},
	{names: "halloween|万圣节|ハロウィン|ハロウィーン", month: 10, day: 31},
	{names: "valentine's day|valentine's|valentines|情人节|バレンタインデー|バレンタイン", month: 2, day: 14},
	{names: "st patrick's day|st. patrick's day", month: 3, day: 17},
	{names: "independence day", month: 7, day: 4},
	{names: "thanksgiving day|thanksgiving|感恩节", month: 11, nth: 4, weekday: time.Thursday},
	{names: "black friday|黑色星期五", month: 11, nth: 4, weekday: time.Thursday, shift: 1},
	{names: "labor day", month: 9, nth: 1, weekday: time.Monday},
	{names: "mother's day|母亲节|母の日", month: 5, nth: 2, weekday: time.Sunday},
	{names: "father's day|父亲节|父の日", month: 6, nth: 3, weekday: time.Sunday},
	{names: "妇女节", month: 3, day: 8},
	{names: "劳动节|五一", month: 5, day: 1, days: 5},
	{names: "儿童节", month: 6, day: 1},
	{names: "教师节", month: 9, day: 10},
	{names: "国庆节|国庆|十一假期", month: 10, day: 1, days: 7},
	{names: "双十一|双11", month: 11, day: 11},
	{names: "ゴールデンウィーク", month: 4, day: 29, days: 7},
	{names: "暑假|夏休み", month: 7, day: 1, days: 62},
	{names: "寒假|冬休み", month: 1, day: 10, days: 40},
	{names: "chinese new year|lunar new year|spring festival|春节|过年|农历新年|大年初一", lunar: 1, days: 7},
	{names: "除夕|大年三十|年夜饭", lunar: 1, shift: -1},
	{names: "元宵节|元宵", lunar: 1, shift: 14},
	{names: "dragon boat festival|端午节|端午", lunar: 2},
	{names: "mid-autumn festival|moon festival|中秋节|中秋", lunar: 3},
}

// lunarDates are month and day of the first of the first, the fifth of the fifth and the fifteenth of the eighth month
// of the Chinese calendar from 2000 to 2040. Two implementations of that calendar agree on all of them, and the true moon
// and sun on all but those after the leap month of 2033, which has rules of its own. ICU says a day less for the new
// year of 2030 and a day more for that of 2027; the moon does not.
const lunarDates = `
020506060912 012406251001 021206150921 020106040911 012206220928 020906110918 012905311006
021806190925 020706080914 012605281003 021406160922 020306060912 012306230930 021006120919
013106020908 021906200927 020806090915 012805301004 021606180924 020506070913 012506251001
021206140921 020106030910 012206220929 021006100917 012905311006 021706190925 020606090915
012605281003 021306160922 020306050912 012306241001 021106120919 013106010908 021906200927
020806100916 012805301004 021506180924 020406070913 012405271002 021206140920`

// lunar returns the day of a column of the table; zero out of its years.
func lunar(year, column int) time.Time {
	list := strings.Fields(lunarDates)
	if year < 2000 || year-2000 >= len(list) {
		return time.Time{}
	}
	n, _ := strconv.Atoi(list[year-2000][4*column-4 : 4*column])
	return civil(year, n/100, n%100)
}

func (h *holiday) at(year int) (from, to time.Time) {
	switch {
	case h.lunar > 0:
		if from = lunar(year, h.lunar); from.IsZero() {
			return from, to
		}
	case h.nth > 0:
		first := civil(year, h.month, 1)
		from = days(first, (int(h.weekday)-int(first.Weekday())+7)%7+7*(h.nth-1))
	default:
		from = civil(year, h.month, h.day)
	}
	from = days(from, h.shift)
	return from, days(from, max(h.days, 1))
}

// holidayNames returns the names of all holidays, the ASCII ones or the others, as one pattern.
func holidayNames(ascii bool) string {
	var list []string
	for _, h := range holidays {
		for name := range strings.SplitSeq(h.names, "|") {
			if (name[0] < 0x80) == ascii {
				list = append(list, strings.ReplaceAll(strings.ReplaceAll(name, ".", `\.`), "'", "'?"))
			}
		}
	}
	return alternatives(list)
}

func holidayNamed(name string) (yearly, bool) {
	name = strings.ReplaceAll(name, "'", "")
	for i := range holidays {
		for n := range strings.SplitSeq(holidays[i].names, "|") {
			if strings.ReplaceAll(n, "'", "") == name {
				return yearly{at: holidays[i].at}, true
			}
		}
	}
	return yearly{}, false
}

// amount reads a number of units: digits, words, or a guess like "a few", of which it returns the least and the most. At
// most maxAmount; zero is no number.
func amount(s string) (lo, hi float64) {
	s = strings.TrimSpace(s)
	if a, b, ok := strings.Cut(s, " or "); ok {
		return min(first(amount(a)), first(amount(b))), max(first(amount(a)), first(amount(b)))
	}
	if a, b, ok := strings.Cut(s, "-"); ok {
		return first(amount(a)), first(amount(b))
	}
	if n, err := strconv.Atoi(s); err == nil && n <= maxAmount {
		return float64(n), float64(n)
	}
	switch {
	case strings.Contains(s, "couple"):
		return 2, 2
	case strings.Contains(s, "few"), s == "几", s == "数":
		return 2, 5
	case s == "several", s == "好几":
		return 3, 7
	case strings.HasPrefix(s, "half"), s == "半":
		return .5, .5
	}
	if n, ok := numberWords[s]; ok {
		return n, n
	}
	return hanAmount(s)
}

const maxAmount = 20000

func first(a, _ float64) float64 { return a }

var numberWords = words[float64]("a:1 an:1 one:1 two:2 three:3 four:4 five:5 six:6 seven:7 eight:8 nine:9 ten:10 eleven:11 twelve:12 " +
	"fifteen:15 twenty:20 thirty:30 fifty:50 hundred:100 one_and_a_half:1.5 two_and_a_half:2.5")

// hanAmount reads 三, 十二, 两三, 十几.
func hanAmount(s string) (lo, hi float64) {
	r := []rune(s)
	switch {
	case len(r) == 2 && hanDigit(r[0]) > 0 && hanDigit(r[1]) > hanDigit(r[0]):
		return float64(hanDigit(r[0])), float64(hanDigit(r[1]))
	case len(r) > 1 && r[len(r)-1] == '几':
		n := float64(hanNumber(string(r[:len(r)-1])))
		return n, n + 9
	}
	n := float64(hanNumber(s))
	return n, n
}

func hanDigit(r rune) int {
	if r == '两' {
		return 2
	}
	for i, d := range []rune("〇一二三四五六七八九") {
		if d == r {
			return i
		}
	}
	if r == '零' {
		return 0
	}
	return -1
}

// hanNumber reads a number up to 9999 in digits or characters: 12, 十二, 二十三, 二〇二三; -1 is none.
func hanNumber(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	total, digit, runs := 0, 0, 0
	for _, r := range s {
		switch d := hanDigit(r); {
		case r == '十':
			total, digit, runs = total+10*max(digit, 1), 0, 0
		case r == '百':
			total, digit, runs = total+100*max(digit, 1), 0, 0
		case d < 0 || runs >= 4:
			return -1
		default:
			digit, runs = 10*digit+d, runs+1
		}
	}
	return total + digit
}

// unitDays are the lengths of units by the beginnings of their words.
var unitDays = []struct {
	names string // | between
	name  string
	days  float64
}{
	{"hour|小时|时间", "hour", 1. / 24},
	{"weekend|week|周|星期|礼拜", "week", 7},
	{"fortnight", "week", 14},
	{"month|月", "month", 30.44},
	{"decade", "year", 3652.5},
	{"year|年", "year", 365.25},
	{"day|night|天|日", "day", 1},
}

// unitOf returns the unit that a word is of, and its days.
func unitOf(word string) (name string, length float64) {
	for _, u := range unitDays {
		for n := range strings.SplitSeq(u.names, "|") {
			if strings.Contains(word, n) {
				return u.name, u.days
			}
		}
	}
	return "", 0
}

// shift moves the day or hour now by n units, by the calendar where it has the units; it refuses what is over 200 years.
func (w *moment) shift(n float64, word string) (t time.Time, ok bool) {
	name, length := unitOf(word)
	if name == "" || n*length > 200*366 || n*length < -200*366 {
		return t, false
	}
	whole := n == float64(int(n))
	switch {
	case name == "hour":
		return w.now.Add(time.Duration(n * float64(time.Hour))), true
	case name == "month" && whole:
		return w.today.AddDate(0, int(n), 0), true
	case name == "year" && whole && length < 1000:
		return w.today.AddDate(int(n), 0, 0), true
	}
	return days(w.today, int(n*length)), true
}

// away returns the stretch that lies lo to hi units from now, the units' own vagueness around it: half of one, at least
// the day. Sign is -1 for ago.
func (w *moment) away(lo, hi float64, word string, sign float64, weight float64) []stretch {
	near, ok := w.shift(sign*lo, word)
	far, ok2 := w.shift(sign*hi, word)
	if !ok || !ok2 || hi <= 0 {
		return nil
	}
	if sign < 0 {
		near, far = far, near
	}
	name, length := unitOf(word)
	if name == "hour" {
		return sure(near.Add(-30*time.Minute), far.Add(30*time.Minute), weight)
	}
	pad := int(length * min(lo, 1) / 2)
	return sure(days(near, -pad), days(far, pad+1), weight)
}

// rolling returns the last n units up to today's end.
func (w *moment) rolling(n float64, word string, weight float64) []stretch {
	from, ok := w.shift(-n, word)
	if !ok || n <= 0 {
		return nil
	}
	return sure(from, days(w.today, 1), weight)
}

// yearOf reads a year: 2023, '23, last year, 去年, 2023年, 二〇二三年, 令和5年; 0 is none.
func (w *moment) yearOf(s string) int {
	s = strings.TrimSpace(s)
	if n, ok := yearWords[s]; ok {
		return w.today.Year() + n
	}
	s = strings.TrimSuffix(s, "年")
	base := 0
	for prefix, b := range map[string]int{"'": 2000, "令和": 2018, "平成": 1988, "昭和": 1925} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			s, base = rest, b
		}
	}
	n := hanNumber(s)
	switch {
	case n < 0 || base == 0 && (n < 1900 || n > 2099):
		return 0
	case base == 2000 && base+n > w.today.Year()+10:
		base = 1900
	}
	return base + n
}

var yearWords = words[int]("the_year_before_last:-2 year_before_last:-2 last_year:-1 this_year:0 next_year:1 大前年:-3 前年:-2 一昨年:-2 " +
	"おととし:-2 去年:-1 昨年:-1 旧年:-1 上年:-1 今年:0 本年:0 明年:1 来年:1 后年:2 再来年:2")
