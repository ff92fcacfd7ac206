package memtool

import (
	"fmt"
	"strings"
	"time"

	"memgpt/calendar"
	"memgpt/tool"
)

// dateForm is a way to write a time: a layout, and how long what it names lasts, so that an end takes all of it in.
type dateForm struct {
	layout string
	lasts  time.Duration // 0 is by the calendar: a day
}

// longForms are ways to write a month or a year.
var longForms = []struct {
	layout string
	span   tool.Span
}{
	{"2006", tool.SpanYear}, {"2006年", tool.SpanYear}, {"2006-1", tool.SpanMonth}, {"2006/1", tool.SpanMonth}, {"2006.1", tool.SpanMonth},
	{"2006年1月", tool.SpanMonth}, {"January 2006", tool.SpanMonth}, {"Jan 2006", tool.SpanMonth},
}

var dateForms = []dateForm{
	{"2006-1-2", 0}, {"2006/1/2", 0}, {"2006.1.2", 0}, {"2006年1月2日", 0}, {"20060102", 0},
	{time.RFC3339Nano, time.Second}, {"2006-1-2T15:04:05", time.Second}, {"2006-1-2T15:04", time.Minute},
	{"2006-1-2T15:04Z07:00", time.Minute}, {"2006-1-2 15:04:05Z07:00", time.Second}, {"2006-1-2 15:04:05 Z07:00", time.Second},
	{"2006-1-2 15:04:05", time.Second}, {"2006-1-2 15:04", time.Minute},
	{"2006/1/2 15:04:05", time.Second}, {"2006/1/2 15:04", time.Minute},
	{"2006.1.2 15:04:05", time.Second}, {"2006.1.2 15:04", time.Minute},
	{"2006年1月2日 15:04", time.Minute},
}

// span turns the dates of a search into a range: from inclusive, to exclusive, zero where open. now is the step's time
// in the agent's zone, in which dates without an offset are meant.
func span(start, end string, now time.Time) (from, to time.Time, err error) {
	if from, _, err = parseDate("start_date", start, now); err != nil {
		return from, to, err
	}
	last, to, err := parseDate("end_date", end, now)
	if err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from, to, fmt.Errorf("start_date %s is after end_date %s: exchange them",
			calendar.Format(from, now.Location()), calendar.Format(last, now.Location()))
	}
	return from, to, nil
}

// ParseDate reads a date as the functions that search take it: when what text names begins and ends, zeros for no date. Dates without
// an offset are of now's zone. An error names the argument and the forms that are understood.
func ParseDate(argument, text string, now time.Time) (begin, end time.Time, err error) {
	return parseDate(argument, text, now)
}

// parseDate returns when what text names begins and ends. Both are zero for no date.
func parseDate(argument, text string, now time.Time) (begin, end time.Time, err error) {
	text = strings.TrimSpace(text)
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch strings.ToLower(text) {
	case "", "none", "null":
		return begin, end, nil
	case "now":
		return now, now.Add(time.Second), nil
	case "today":
		return day, day.AddDate(0, 0, 1), nil
	case "yesterday":
		return day.AddDate(0, 0, -1), day, nil
	}
	for _, form := range dateForms {
		t, err := time.ParseInLocation(form.layout, text, now.Location())
		switch {
		case err != nil || t.Year() == 0: // the calendar has none
			continue
		case form.lasts == 0:
			return t, t.AddDate(0, 0, 1), nil
		}
		return t, t.Add(form.lasts), nil
	}
	if begin, end, _, ok := parseLong(text, now.Location()); ok {
		return begin, end, nil
	}
	return begin, end, fmt.Errorf(`%s %s is not a date that is understood: write 2024-10-14, 2024-10, 2024, "2024-10-14 15:04", `+
		`2024-10-14T15:04:05+02:00, 2024/10/14, 2024年10月14日, now, today or yesterday, or leave it out`, argument, quote(shorten(text, 40)))
}

// parseLong returns when a month or a year that text names begins and ends.
func parseLong(text string, zone *time.Location) (begin, end time.Time, s tool.Span, ok bool) {
	for _, form := range longForms {
		t, err := time.ParseInLocation(form.layout, text, zone)
		switch {
		case err != nil || t.Year() == 0:
			continue
		case form.span == tool.SpanYear:
			return t, t.AddDate(1, 0, 0), form.span, true
		}
		return t, t.AddDate(0, 1, 0), form.span, true
	}
	return begin, end, 0, false
}

// rangeSigns stand between the ends of a range of dates. A dash alone doesn't, since dates are written with it.
var rangeSigns = []string{"...", "..", " to ", " until ", " - ", "–", "—", "至", "到", "/", "~", "〜"}

// factDate reads the time that a fact is about, or when it ended: of a range its beginning. It keeps whether a day, a month or a
// year was meant. Zero is for no date.
func factDate(argument, text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	t, end, err := parseDate(argument, text, now)
	for i := 0; err != nil && i < len(rangeSigns); i++ {
		from, to, found := strings.Cut(text, rangeSigns[i])
		if !found {
			continue
		}
		if to = strings.TrimSpace(to); to != "" {
			if _, _, bad := parseDate(argument, to, now); bad != nil {
				continue
			}
		}
		if begin, over, bad := parseDate(argument, from, now); bad == nil && !over.IsZero() {
			t, end, text, err = begin, over, strings.TrimSpace(from), nil
		}
	}
	if err != nil || end.IsZero() {
		return time.Time{}, err
	}
	_, _, s, long := parseLong(text, now.Location())
	if !long && end.Equal(t.AddDate(0, 0, 1)) {
		s = tool.SpanDay
	}
	if t = tool.Whole(t, s); t.IsZero() { // it would stand for no date
		return t, fmt.Errorf("%s %s is the first second of the year 1, which can't be kept: write the day, 0001-01-01, or leave it out", argument, quote(text))
	}
	return t, nil
}
