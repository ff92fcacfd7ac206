// Package calendar knows what clocks on the wall do: which instant a local time is in a zone whose clocks are put forward
// and back, when a cron line is next met, and when quiet hours end. It owns no clock and no timer.
//
// The cron libraries that are kept up do not do this: robfig/cron/v3 (last release 2020) leaves out a time that the clocks
// skip and meets one that comes twice two times; adhocore/gronx counts in whole hours, where Lord Howe shifts by half of one.
package calendar

import "time"

// Kind says how a local time stands to a zone.
type Kind int

// Kinds of local times.
const (
	Once  Kind = iota // there is one such time
	Gap               // the clocks skip it when they are put forward
	Twice             // there are two, since the clocks are put back over it
)

// widest is more than any zone was ever off UTC.
const widest = 16 * time.Hour

// Local returns the instant of a local time in a zone. A time that the clocks skip is as much later as they skip, and of
// a time that comes twice it is the first: as RFC 5545, section 3.3.5, has it.
func Local(year int, month time.Month, day, hour, minute, second int, zone *time.Location) (time.Time, Kind) {
	wall := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	var found, skipped time.Time
	kind := Once
	at := wall.Add(-widest).In(zone)
	for last := wall.Add(widest); !at.After(last); {
		_, offset := at.Zone()
		from, until := at.ZoneBounds()
		t := wall.Add(-time.Duration(offset) * time.Second)
		early, late := !from.IsZero() && t.Before(from), !until.IsZero() && !t.Before(until)
		switch {
		case !early && !late && found.IsZero():
			found = t
		case !early && !late:
			kind = Twice
		case late: // it is a gap unless a later offset has it
			skipped = t
		}
		if until.IsZero() {
			break
		}
		at = until.In(zone)
	}
	if found.IsZero() {
		return skipped.In(zone), Gap
	}
	return found.In(zone), kind
}

// onDay is Local for a minute of the day of a time, in its zone.
func onDay(day time.Time, minute int) time.Time {
	t, _ := Local(day.Year(), day.Month(), day.Day(), minute/60, minute%60, 0, day.Location())
	return t
}

// noon is a time of a day that no zone's clocks skip, from which days can be counted.
func noon(t time.Time, days int) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day()+days, 12, 0, 0, 0, t.Location())
}
