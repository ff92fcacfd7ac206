package calendar

import (
	"errors"
	"strings"
	"time"
)

// Hours are hours of each day, as 22:00 to 7:00. The zero value is none.
type Hours struct{ from, to int } // minutes from midnight; equal is none

// ParseHours reads "22:00-07:00". The empty text is none.
func ParseHours(text string) (Hours, error) {
	if strings.TrimSpace(text) == "" {
		return Hours{}, nil
	}
	wrong := errors.New("it takes hours of the day, such as 22:00-07:00")
	from, to, ok := strings.Cut(strings.NewReplacer(" ", "", "–", "-").Replace(text), "-")
	if !ok {
		return Hours{}, wrong
	}
	var h Hours
	for i, text := range []string{from, to} {
		if text == "24:00" {
			text = "00:00"
		}
		t, err := time.Parse("15:04", text)
		if err != nil {
			if t, err = time.Parse("15", text); err != nil {
				return Hours{}, wrong
			}
		}
		*[]*int{&h.from, &h.to}[i] = t.Hour()*60 + t.Minute()
	}
	if h.from == h.to {
		return Hours{}, errors.New("it begins and ends at the same time")
	}
	return h, nil
}

// has reports whether a minute of the day is among them.
func (h Hours) has(minute int) bool {
	if h.from <= h.to {
		return minute >= h.from && minute < h.to
	}
	return minute >= h.from || minute < h.to
}

// End returns when the hours end in which a time lies, by the clocks of a zone; the time itself where it lies in none.
func (h Hours) End(t time.Time, zone *time.Location) time.Time {
	in := func(t time.Time) bool { return h.has(t.Hour()*60 + t.Minute()) }
	local := t.In(zone)
	if !in(local) {
		return t
	}
	day := local
	if h.from > h.to && local.Hour()*60+local.Minute() >= h.from {
		day = noon(local, 1)
	}
	end := onDay(day, h.to)
	for !end.After(local) || in(end.In(zone)) { // clocks that are put back make the end come twice
		end = later(end, local).Add(time.Minute).Truncate(time.Minute)
	}
	return end
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
