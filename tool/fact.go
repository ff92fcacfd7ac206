package tool

import (
	"time"

	"memgpt"
	"memgpt/calendar"
)

// NewPassage is a passage to be stored.
type NewPassage struct {
	Text  string
	Tags  []string
	About time.Time // see memgpt.Passage; Whole makes one of a whole month or year
	From  []string  // IDs of the messages that it is taken from; they say when it was learned
}

// Span is how much of the calendar a time names. It is kept in the time's nanoseconds, which no date has, so that a passage about
// 2024 isn't shown as one about the first of January.
type Span int

// Spans of times that passages are about.
const (
	SpanMoment Span = iota // a time; where it is midnight, a day
	SpanMonth
	SpanYear
	SpanDay
)

// Whole returns the beginning of a day, a month or a year as a time that stands for the whole of it.
func Whole(begin time.Time, s Span) time.Time {
	return begin.Truncate(time.Second).Add(time.Duration(s))
}

// Distances by which a beginning is moved before its date is read, since it may be one of another zone: the farthest zone is 14 hours
// ahead of UTC, and by whole months and years no two dates are mistaken for each other.
const (
	farthestZone = 14 * time.Hour
	middayShift  = 12 * time.Hour
)

// Over returns when all that a time names is over: the end of its day, month or year, or itself.
func Over(t time.Time) time.Time {
	switch Span(t.Nanosecond()) {
	case SpanYear:
		return t.AddDate(1, 0, 0)
	case SpanMonth:
		return t.AddDate(0, 1, 0)
	case SpanDay:
		return t.AddDate(0, 0, 1)
	}
	return t
}

// DateText shows a time that a passage is about, or that it ended, as exactly as it was given: 2024, 2024-05, 2024-05-03, or with
// the time of day. A year stays that year, and a day that day, where the agent's zone is another one by now (of zones that are
// under twelve hours apart). Zone nil is UTC.
func DateText(t time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	local := t.In(zone)
	h, m, s := local.Clock()
	switch {
	case t.IsZero():
		return ""
	case Span(t.Nanosecond()) == SpanYear:
		return t.UTC().Add(farthestZone).Format("2006")
	case Span(t.Nanosecond()) == SpanMonth:
		return t.UTC().Add(farthestZone).Format("2006-01")
	case Span(t.Nanosecond()) == SpanDay:
		return local.Add(middayShift).Format(time.DateOnly)
	case h+m+s == 0:
		return local.Format(time.DateOnly)
	}
	return calendar.Format(t, zone)
}

// Learned is when the agent was told what a passage says.
func Learned(p *memgpt.Passage) time.Time {
	if p.Learned.IsZero() {
		return p.Time
	}
	return p.Learned
}

// Dated is the time that a passage counts under where dates are asked for: what it is about, else when it was stored.
func Dated(p *memgpt.Passage) time.Time {
	if p.About.IsZero() {
		return p.Time
	}
	return p.About
}

// Known reports whether a passage was part of what the agent knew right before a time: it had been told, and nothing had replaced
// it. What was deleted counts up to its deletion; what the owner had forgotten never does.
func Known(p *memgpt.Passage, before time.Time) bool {
	forgotten := p.Cause.Origin == memgpt.OriginOwner && p.Key == "" && !p.Deleted.IsZero()
	if forgotten || p.SupersededBy != "" && p.Superseded.IsZero() {
		return false
	}
	return Learned(p).Before(before) && (p.Superseded.IsZero() || !p.Superseded.Before(before)) &&
		(p.Deleted.IsZero() || !p.Deleted.Before(before))
}
