package memtool

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"memgpt/calendar"
)

const atHelp = `write a local time as "2026-12-01 09:00", "tomorrow 09:00" or "18:30", or one with an offset as 2026-12-01T09:00:00+01:00`

// localForms and offsetForms are the ways to write a time of a date, by the clocks of a zone or with an offset.
func localForms() []string {
	var forms []string
	for _, date := range []string{"2006-1-2", "2006/1/2", "2006.1.2", "2006年1月2日", "2.1.2006"} {
		for _, gap := range []string{" ", "T"} {
			for _, clock := range []string{"15:04", "15:04:05", "3:04 PM", "3:04PM", "3 PM", "3PM"} {
				forms = append(forms, date+gap+clock)
			}
		}
	}
	return forms
}

func offsetForms() []string {
	return []string{time.RFC3339Nano, "2006-1-2T15:04Z07:00", "2006-1-2 15:04:05Z07:00", "2006-1-2 15:04:05 Z07:00", "2006-1-2 15:04Z07:00",
		"2006-1-2 15:04 Z07:00", "2006-1-2 15:04 -0700", "2006-1-2T15:04:05-0700"}
}

// parseAt reads the time at which something is to be. now is in the agent's zone, in which times without an offset are.
func parseAt(text string, now time.Time) (time.Time, calendar.Kind, error) {
	given := strings.Join(strings.Fields(text), " ")
	for _, form := range offsetForms() {
		if t, err := time.Parse(form, given); err == nil {
			return t.In(now.Location()), calendar.Once, nil
		}
	}
	text = withDate(given, now)
	zone := now.Location()
	if i := strings.LastIndexByte(text, ' '); i > 0 && (strings.Contains(text[i:], "/") || text[i+1:] == "UTC") {
		if named, err := time.LoadLocation(text[i+1:]); err == nil {
			zone, text = named, text[:i]
		}
	}
	for _, form := range localForms() {
		t, err := time.Parse(form, strings.ToUpper(text))
		if err != nil {
			continue
		}
		at, kind := calendar.Local(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), zone)
		return at.In(now.Location()), kind, nil
	}
	if _, _, err := parseDate("at", given, now); err == nil {
		return time.Time{}, 0, fmt.Errorf(`at %s names no time of the day: %s`, quote(shorten(given, 40)), atHelp)
	}
	return time.Time{}, 0, fmt.Errorf(`at %s is not a time that is understood: %s`, quote(shorten(given, 40)), atHelp)
}

// withDate puts a date in place of today and tomorrow, and before a bare time of the day: the next such.
func withDate(text string, now time.Time) string {
	day := func(n int) string { return now.AddDate(0, 0, n).Format(time.DateOnly) + " " }
	lower := strings.ToLower(text)
	for word, n := range map[string]int{"today": 0, "tomorrow": 1, "今天": 0, "明天": 1, "后天": 2} {
		if rest, ok := strings.CutPrefix(lower, word); ok {
			rest = strings.TrimPrefix(strings.TrimSpace(rest), "at ")
			return day(n) + strings.TrimSpace(rest)
		}
	}
	if t, err := time.Parse("15:04", text); err == nil {
		n := 0
		if t.Hour()*60+t.Minute() <= now.Hour()*60+now.Minute() {
			n = 1
		}
		return day(n) + text
	}
	return text
}

const inHelp = `write a duration as "2h30m", "45 minutes", "3 days", "1 week" or "3 天"`

// spanUnits are the units of durations: calendar days and months, or a length.
type spanUnit struct {
	months, days float64
	length       time.Duration
}

func spanUnits() map[string]spanUnit {
	units := map[string]spanUnit{}
	add := func(u spanUnit, names string) {
		for _, n := range strings.Fields(names) {
			units[n] = u
		}
	}
	add(spanUnit{length: time.Second}, "s sec secs second seconds 秒 秒钟")
	add(spanUnit{length: time.Minute}, "m min mins minute minutes 分 分钟")
	add(spanUnit{length: time.Hour}, "h hr hrs hour hours 小时 钟头 时")
	add(spanUnit{days: 1}, "d day days 天 日")
	add(spanUnit{days: 7}, "w week weeks 周 星期 礼拜")
	add(spanUnit{months: 1}, "mo month months 月")
	add(spanUnit{months: 12}, "y year years 年")
	return units
}

// parseIn reads how long from now something is to be. Days, months and years are those of the calendar, so that 3 days
// from 9:00 is 9:00 also where the clocks are changed between; hours and less are time that passes.
func parseIn(text string, now time.Time) (time.Time, calendar.Kind, error) {
	given := strings.ToLower(strings.Join(strings.Fields(text), " "))
	wrong := fmt.Errorf(`in %s is not a duration that is understood: %s`, quote(shorten(given, 40)), inHelp)
	rest := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(given, "in "), "之后"), "后")
	var sum spanUnit
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimLeft(rest, " ,") {
		n, u, left, ok := cutSpan(strings.TrimPrefix(rest, "and "))
		days := math.Trunc(n * u.days)
		if !ok || n > 1e6 || u.months > 0 && n != math.Trunc(n) {
			return time.Time{}, 0, wrong
		}
		sum.months, sum.days = sum.months+n*u.months, sum.days+days
		sum.length += time.Duration(n*float64(u.length)) + time.Duration((n*u.days-days)*float64(24*time.Hour))
		rest = left
	}
	const most = 366 * mostYears
	if sum == (spanUnit{}) || sum.months > 12*mostYears || sum.days > most || sum.length > most*24*time.Hour {
		return time.Time{}, 0, wrong
	}
	at, kind := now, calendar.Once
	if sum.days > 0 || sum.months > 0 {
		month := time.Date(now.Year(), now.Month()+time.Month(sum.months), 1, 0, 0, 0, 0, time.UTC)
		day := month.AddDate(0, 0, min(now.Day(), month.AddDate(0, 1, -1).Day())-1+int(sum.days))
		at, kind = calendar.Local(day.Year(), day.Month(), day.Day(), now.Hour(), now.Minute(), now.Second(), now.Location())
	}
	return at.Add(sum.length), kind, nil
}

// cutSpan takes a number with its unit from the front of a text.
func cutSpan(text string) (n float64, u spanUnit, rest string, ok bool) {
	digits := strings.TrimLeft(text, "0123456789.")
	if n, err := strconv.ParseFloat(text[:len(text)-len(digits)], 64); err == nil {
		return cutUnit(n, digits)
	}
	for _, w := range []struct {
		word string
		n    float64
	}{{"half an ", .5}, {"half a ", .5}, {"an ", 1}, {"a ", 1}, {"半", .5}, {"两", 2}, {"一", 1}, {"二", 2}, {"三", 3}, {"四", 4}, {"五", 5},
		{"六", 6}, {"七", 7}, {"八", 8}, {"九", 9}, {"十", 10}} {
		if rest, found := strings.CutPrefix(text, w.word); found {
			return cutUnit(w.n, rest)
		}
	}
	return 0, u, text, false
}

// cutUnit takes the unit of a number: a word of letters, or the longest unit that a text without spaces begins with.
func cutUnit(n float64, text string) (float64, spanUnit, string, bool) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "个")
	if rest, ok := strings.CutPrefix(text, "半"); ok {
		n, text = n+.5, rest
	}
	units := spanUnits()
	rest := strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz")
	if word := text[:len(text)-len(rest)]; word != "" {
		u, ok := units[word]
		return n, u, rest, ok
	}
	for size := min(len(text), len("分钟")); size > 0; size -= len("分") {
		if u, ok := units[text[:size]]; ok {
			return n, u, text[size:], true
		}
	}
	return n, spanUnit{}, text, false
}
