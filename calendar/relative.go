package calendar

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Relative returns the days that a text names by its own day, as "tomorrow" or 来週の金曜日: what is written and what it means,
// 2026-04-07, "2026-04-06 to 2026-04-12" for a week and "A or B" where both readings are usual. said is when it was said, in
// the zone of who said it. Only wordings that leave no other reading are taken, of English, German, French, Spanish, Chinese
// and Japanese; nil where there is none.
func Relative(text string, said time.Time) map[string]string {
	lower := strings.ToLower(text)
	y, m, d := said.Date()
	day := time.Date(y, m, d, 12, 0, 0, 0, time.UTC) // noon, so that no clock change matters
	found, taken := map[string]string{}, [][2]int{}
	for _, rule := range relativeRules() {
		for _, at := range rule.find.FindAllStringSubmatchIndex(lower, maxRelative) {
			group := make([]string, len(at)/2)
			for i := range group {
				if at[2*i] >= 0 {
					group[i] = lower[at[2*i]:at[2*i+1]]
				}
			}
			place := [2]int{at[2], at[3]}
			within := func(t [2]int) bool { return place[0] < t[1] && t[0] < place[1] } // of a longer wording
			means := rule.means(day, group)
			if means == "" || slices.ContainsFunc(taken, within) || len(taken) == maxRelative {
				continue
			}
			found[group[1]], taken = means, append(taken, place)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// maxRelative is how many wordings of one text are told.
const maxRelative = 8

// relativeRule is a wording, whose first group is what is told, and what it means by the day on which it is said.
type relativeRule struct {
	find  *regexp.Regexp
	means func(day time.Time, group []string) string
}

func dateOf(day time.Time) string { return day.Format(time.DateOnly) }

// after is a meaning: so many days on.
func after(days int) func(time.Time, []string) string {
	return func(day time.Time, _ []string) string { return dateOf(day.AddDate(0, 0, days)) }
}

// monday returns the first day of the week, so many weeks on.
func monday(day time.Time, weeks int) time.Time {
	return day.AddDate(0, 0, -(int(day.Weekday())+6)%7+7*weeks)
}

func week(weeks int) func(time.Time, []string) string {
	return func(day time.Time, _ []string) string {
		from := monday(day, weeks)
		return dateOf(from) + " to " + dateOf(from.AddDate(0, 0, 6))
	}
}

// weekdayIn is the day of the week that the second group names, so many weeks on by the calendar.
func weekdayIn(weeks int, names map[string]int) func(time.Time, []string) string {
	return func(day time.Time, group []string) string {
		n, ok := names[group[2]]
		if !ok {
			return ""
		}
		return dateOf(monday(day, weeks).AddDate(0, 0, n))
	}
}

// nextWeekday is a day that some count from today and others from the next week.
func nextWeekday(names map[string]int) func(time.Time, []string) string {
	return func(day time.Time, group []string) string {
		n, ok := names[group[2]]
		if !ok {
			return ""
		}
		this, next := monday(day, 0).AddDate(0, 0, n), monday(day, 1).AddDate(0, 0, n)
		if this.After(day) {
			return dateOf(this) + " or " + dateOf(next)
		}
		return dateOf(next)
	}
}

func lastWeekday(names map[string]int) func(time.Time, []string) string {
	return func(day time.Time, group []string) string {
		n, ok := names[group[2]]
		if !ok {
			return ""
		}
		this, last := monday(day, 0).AddDate(0, 0, n), monday(day, -1).AddDate(0, 0, n)
		if this.Before(day) {
			return dateOf(this) + " or " + dateOf(last)
		}
		return dateOf(last)
	}
}

// counted is so many days or weeks on, by the number in the second group and the unit in the third; back where sign is -1.
func counted(sign int, units map[string]int) func(time.Time, []string) string {
	return func(day time.Time, group []string) string {
		n, err := strconv.Atoi(group[2])
		if err != nil {
			n = smallNumbers()[group[2]]
		}
		unit := units[group[3]]
		if n == 0 || n > 366 || unit == 0 {
			return ""
		}
		return dateOf(day.AddDate(0, 0, sign*n*unit))
	}
}

func smallNumbers() map[string]int {
	return map[string]int{"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10, "einem": 1, "einer": 1,
		"zwei": 2, "drei": 3, "vier": 4, "一": 1, "二": 2, "两": 2, "兩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "十": 10}
}

func weekdays(lists ...string) map[string]int {
	names := map[string]int{}
	for _, list := range lists {
		for i, name := range strings.Fields(list) {
			names[name] = i
		}
	}
	return names
}

// anyOf is the pattern of one of a table's names.
func anyOf(names map[string]int) string {
	var list []string
	for name := range names {
		list = append(list, regexp.QuoteMeta(name))
	}
	return strings.Join(list, "|")
}

// word is the pattern of a wording that stands alone, as words of Latin letters do.
func word(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[^\pL\pN])(` + pattern + `)(?:[^\pL\pN]|$)`)
}

// relativeRules lists the longer wordings before those that stand within them. They are compiled once.
var relativeRules = sync.OnceValue(func() []relativeRule {
	return append(append(relativeEnglish(), relativeEurope()...), relativeEast()...)
})

func relativeEnglish() []relativeRule {
	days := weekdays("monday tuesday wednesday thursday friday saturday sunday")
	units := map[string]int{"day": 1, "days": 1, "week": 7, "weeks": 7}
	const number = `(\d{1,3}|a|one|two|three|four|five|six|ten) (days?|weeks?)`
	return []relativeRule{
		{word(`the day after tomorrow`), after(2)}, {word(`the day before yesterday`), after(-2)},
		{word(`tomorrow`), after(1)}, {word(`yesterday`), after(-1)}, {word(`today|tonight`), after(0)},
		{word(`next (` + anyOf(days) + `)`), nextWeekday(days)}, {word(`last (` + anyOf(days) + `)`), lastWeekday(days)},
		{word(`next week`), week(1)}, {word(`last week`), week(-1)},
		{word(`in ` + number), counted(1, units)}, {word(number + ` ago`), counted(-1, units)},
	}
}

func relativeEurope() []relativeRule {
	german := weekdays("montag dienstag mittwoch donnerstag freitag samstag sonntag")
	units := map[string]int{"tag": 1, "tagen": 1, "woche": 7, "wochen": 7}
	const number = `(\d{1,3}|einem|einer|zwei|drei|vier) (tagen?|wochen?)`
	return []relativeRule{
		{word(`übermorgen`), after(2)}, {word(`vorgestern`), after(-2)}, {word(`gestern`), after(-1)}, {word(`heute`), after(0)},
		{word(`nächsten (` + anyOf(german) + `)`), nextWeekday(german)}, {word(`letzten (` + anyOf(german) + `)`), lastWeekday(german)},
		{word(`nächste woche`), week(1)}, {word(`letzte woche`), week(-1)},
		{word(`in ` + number), counted(1, units)}, {word(`vor ` + number), counted(-1, units)},
		{word(`après-demain`), after(2)}, {word(`avant-hier`), after(-2)}, {word(`demain`), after(1)},
		{word(`aujourd['’]hui`), after(0)}, {word(`la semaine prochaine`), week(1)}, {word(`la semaine dernière`), week(-1)},
		{word(`pasado mañana`), after(2)}, {word(`anteayer`), after(-2)}, {word(`ayer`), after(-1)}, {word(`hoy`), after(0)},
		{word(`la semana que viene|la próxima semana`), week(1)}, {word(`la semana pasada`), week(-1)},
	}
}

func relativeEast() []relativeRule {
	chinese := weekdays("一 二 三 四 五 六 日", "一 二 三 四 五 六 天")
	japanese := weekdays("月 火 水 木 金 土 日")
	units := map[string]int{"天": 1, "日": 1, "周": 7, "週": 7, "週間": 7}
	east := func(pattern string) *regexp.Regexp { return regexp.MustCompile(`(` + pattern + `)`) }
	const number = `(\d{1,3}|[一二两兩三四五六七十])`
	return []relativeRule{
		{east(`大后天|大後天`), after(3)}, {east(`后天|後天`), after(2)}, {east(`大前天`), after(-3)}, {east(`前天`), after(-2)},
		{east(`明天`), after(1)}, {east(`昨天`), after(-1)}, {east(`今天`), after(0)},
		{east(`下(?:个|個)?(?:周|週|星期|礼拜|禮拜)([一二三四五六日天])`), weekdayIn(1, chinese)},
		{east(`上(?:个|個)?(?:周|週|星期|礼拜|禮拜)([一二三四五六日天])`), weekdayIn(-1, chinese)},
		{east(`下(?:周|週|个星期|個星期|星期)`), week(1)}, {east(`上(?:周|週|个星期|個星期|星期)`), week(-1)},
		{east(number + `(天|周|週)(?:后|後|之后|之後)`), counted(1, units)}, {east(number + `(天|周|週)(?:前|之前)`), counted(-1, units)},
		{east(`明後日|あさって`), after(2)}, {east(`一昨日|おととい`), after(-2)}, {east(`明日`), after(1)}, {east(`昨日`), after(-1)},
		{east(`今日`), after(0)},
		{east(`来週の?([月火水木金土日])曜日?`), weekdayIn(1, japanese)}, {east(`先週の?([月火水木金土日])曜日?`), weekdayIn(-1, japanese)},
		{east(`来週`), week(1)}, {east(`先週`), week(-1)},
		{east(number + `(日|週間)後`), counted(1, units)}, {east(number + `(日|週間)前`), counted(-1, units)},
	}
}
