package retrieve

import (
	"regexp"
	"strings"
	"time"
)

// This file holds what the words around a stretch make of it.

var (
	weekOf   = regexp.MustCompile(`\b(week|weekend) (?:of|beginning|starting|commencing)(?: the)? $`)
	nextTo   = regexp.MustCompile(`\b(?:the )?(day|week|weekend|month) (before|after)(?: (?:the|my|our|his|her))? $`)
	openEnd  = regexp.MustCompile(`\b(since|after)(?: (?:the|my|our|his|her))? $`)
	openHead = regexp.MustCompile(`\b(?:before|until|till|by)(?: the)? $`)

	enDaypart = regexp.MustCompile(`^(?:'s|,)? ?(?:in the |at )?(morning|afternoon|evening|night)\b`)
	hanPart   = regexp.MustCompile(`^[的の]?(早上|早晨|上午|中午|下午|傍晚|晚上|夜里|半夜|凌晨|午前|午後|午后|朝|夕方|夜|晚)`)
	meal      = regexp.MustCompile(`^[的の]?[晚夜朝][饭餐会霞安点市食宵]`)
	hanNextTo = regexp.MustCompile(`^[的の]?(前一天|前日|后一天|翌日|前一周|后一周|那一?周)`)
	hanEnd    = regexp.MustCompile(`^[的の]?(以来|至今|到现在|から|之后|以后|以降)`)
	hanHead   = regexp.MustCompile(`^[的の]?(?:以前|之前|前|までに)`)
)

// dayparts are the hours of a day's parts.
var dayparts = map[string][2]int{
	"morning": {5, 12}, "afternoon": {12, 18}, "evening": {17, 24}, "night": {18, 29},
	"早上": {5, 12}, "早晨": {5, 12}, "上午": {5, 12}, "午前": {5, 12}, "朝": {5, 12}, "中午": {11, 14}, "下午": {12, 18},
	"午后": {12, 18}, "傍晚": {16, 20}, "夕方": {16, 20}, "晚上": {18, 29}, "晚": {18, 29}, "夜": {18, 29}, "夜里": {18, 29},
	"半夜": {23, 29}, "凌晨": {0, 6},
}

// modified lets the words before and behind a find change it. What an open range leaves doubtful weighs less.
func (w *moment) modified(f find) find {
	before, after := w.text[max(0, f.start-40):f.start], w.text[f.end:]
	for i := range f.list {
		s := &f.list[i]
		day := s.to.Sub(s.from) == 24*time.Hour
		if m := weekOf.FindStringSubmatch(before); m != nil && day {
			s.aroundWeek()
			if m[1] == "weekend" {
				s.from = days(s.from, 5)
			}
		} else if m := nextTo.FindStringSubmatch(before); m != nil {
			s.beside(m[1], m[2] == "after")
		} else if m := openEnd.FindStringSubmatch(before); m != nil {
			w.open(s, m[1] == "after")
		} else if openHead.MatchString(before) {
			s.sure *= .6
		}
		w.behind(&f, s, after, day)
	}
	return f
}

// behind lets the words behind a find change a stretch of it, and takes a part of the day into the find.
func (w *moment) behind(f *find, s *stretch, after string, day bool) {
	m := enDaypart.FindStringSubmatch(after)
	if m == nil {
		m = hanPart.FindStringSubmatch(after)
	}
	if day && m != nil && !meal.MatchString(after) {
		hours := dayparts[m[1]]
		s.from, s.to = s.from.Add(time.Duration(hours[0])*time.Hour), s.from.Add(time.Duration(hours[1])*time.Hour)
		f.end = len(w.text) - len(after) + len(m[0])
		return
	}
	if m = hanNextTo.FindStringSubmatch(after); m != nil {
		switch {
		case strings.HasPrefix(m[1], "那"):
			s.aroundWeek()
		case strings.HasSuffix(m[1], "周"):
			s.beside("week", strings.HasPrefix(m[1], "后"))
		default:
			s.beside("day", !strings.HasPrefix(m[1], "前"))
		}
	} else if m = hanEnd.FindStringSubmatch(after); m != nil {
		w.open(s, strings.HasSuffix(m[1], "后"))
	} else if hanHead.MatchString(after) {
		s.sure *= .6
	}
}

// aroundWeek makes the stretch the week in which it begins.
func (s *stretch) aroundWeek() {
	s.from = days(s.from, -(int(s.from.Weekday())+6)%7)
	s.to, s.on = days(s.from, 7), date{}
}

// beside moves the stretch to the day, week, weekend or month before or after it.
func (s *stretch) beside(unit string, after bool) {
	s.on = date{}
	n := map[string]int{"day": 1, "week": 7, "month": 30, "weekend": 2}[unit]
	switch {
	case unit == "weekend" && after:
		s.from = days(s.to, (13-int(s.to.Weekday()))%7)
		s.to = days(s.from, n)
	case unit == "weekend":
		s.from = days(s.from, -2-(int(s.from.Weekday())+6)%7)
		s.to = days(s.from, n)
	case after:
		s.from, s.to = s.to, days(s.to, n)
	default:
		s.from, s.to = days(s.from, -n), s.from
	}
}

// open stretches what is over up to today; behind leaves out the stretch itself.
func (w *moment) open(s *stretch, behind bool) {
	if end := days(w.today, 1); s.to.Before(end) {
		if behind {
			s.from = s.to
		}
		s.to, s.on = end, date{}
		s.sure *= .6
	}
}
