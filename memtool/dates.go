package memtool

import (
	"fmt"
	"memgpt/calendar"
	"strings"
	"time"
)

// dateForm is a way to write a time: a layout, and how long what it names lasts, so that an end takes all of it in.
type dateForm struct {
	layout string
	lasts  time.Duration // 0 is a calendar day
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
		case err != nil:
			continue
		case form.lasts == 0:
			return t, t.AddDate(0, 0, 1), nil
		}
		return t, t.Add(form.lasts), nil
	}
	return begin, end, fmt.Errorf(`%s %s is not a date that is understood: write 2024-10-14, "2024-10-14 15:04", `+
		`2024-10-14T15:04:05+02:00, 2024/10/14, 2024年10月14日, now, today or yesterday, or leave it out`, argument, quote(shorten(text, 40)))
}
