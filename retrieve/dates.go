package retrieve

import (
	"strconv"
	"time"
)

// date is a day, month or year that a text names; zero fields are open.
type date struct{ year, month, day int }

// Years that a number is taken to be.
const (
	firstYear = 1500
	lastYear  = 2199
)

// findDates collects the dates that the tokens name and marks the tokens that name them.
func (s *scratch) findDates() {
	s.dates = s.dates[:0]
	for i := 0; i < len(s.tokens); i++ {
		var d date
		end := 0
		switch t := &s.tokens[i]; {
		case t.class == classDigit && t.end-t.start == 4:
			d, end = s.yearFirst(i)
		case t.class == classDigit && t.end-t.start <= 2:
			if d, end = s.monthUnit(i, date{}); end == 0 {
				d, end = s.yearLast(i)
			}
		}
		if end == 0 {
			if s.tokens[i].class != classLatin {
				continue
			}
			var start int
			if start, d, end = s.monthNamed(i); end == 0 {
				continue
			}
			i = start
		}
		for k := i; k < end; k++ {
			s.tokens[k].used = true
		}
		s.dates = append(s.dates, d)
		i = end - 1
	}
}

// number returns the value of token i if it is a number of at most four digits between lo and hi, else 0.
func (s *scratch) number(i, lo, hi int) int {
	if i < 0 || i >= len(s.tokens) {
		return 0
	}
	t := s.tokens[i]
	if t.class != classDigit || t.end-t.start > 4 {
		return 0
	}
	n := 0
	for _, c := range s.bytes(t) {
		n = 10*n + int(c-'0')
	}
	if n < lo || n > hi {
		return 0
	}
	return n
}

func (s *scratch) year(i int) int {
	if i < 0 || i >= len(s.tokens) || s.tokens[i].end-s.tokens[i].start != 4 {
		return 0
	}
	return s.number(i, firstYear, lastYear)
}

// separator returns the one byte between tokens i and i+1 if it is one of those that dates are written with, else 0.
func (s *scratch) separator(i int) byte {
	if i+1 >= len(s.tokens) || s.tokens[i+1].start-s.tokens[i].end != 1 {
		return 0
	}
	switch c := s.text[s.tokens[i].end]; c {
	case '-', '/', '.':
		return c
	}
	return 0
}

// yearFirst reads 2023-05-08, 2023/5/8, 2023-05, 2023年5月8日 and their like at token i. The end is 0 where there is
// none.
func (s *scratch) yearFirst(i int) (date, int) {
	d := date{year: s.year(i)}
	if d.year == 0 {
		return d, 0
	}
	if s.unit(i+1, "年", "년", "") {
		if s.onlyUnit(i + 1) {
			if md, end := s.monthUnit(i+2, d); end > 0 {
				return md, end
			}
			return d, i + 2
		}
		return d, i + 1
	}
	sep := s.separator(i)
	if d.month = s.number(i+1, 1, 12); sep == 0 || d.month == 0 {
		return d, 0
	}
	if s.separator(i+1) == sep {
		if d.day = s.number(i+2, 1, 31); d.day == 0 {
			d.day = s.dayWithTime(i + 2)
		}
		if d.day == 0 {
			return d, 0
		}
		return d, i + 3
	}
	if t := s.tokens[i+1]; sep == '.' || t.end-t.start != 2 {
		return d, 0
	}
	return d, i + 2
}

// dayWithTime reads the day of RFC 3339's 08T13:56.
func (s *scratch) dayWithTime(i int) int {
	w := s.bytes(s.tokens[i])
	if len(w) < 3 || !asciiDigit(w[0]) || !asciiDigit(w[1]) || w[2] != 't' {
		return 0
	}
	if n := 10*int(w[0]-'0') + int(w[1]-'0'); n <= 31 {
		return n
	}
	return 0
}

// unit reports whether token i begins with one of the words for year, month or day after a number, close behind it.
func (s *scratch) unit(i int, a, b, c string) bool {
	if i >= len(s.tokens) || s.tokens[i].start-s.tokens[i-1].end > 1 {
		return false
	}
	t := s.tokens[i]
	if t.class != classHan && t.class != classHangul {
		return false
	}
	w := s.bytes(t)
	w = w[:unitEnd(w, 0)]
	return string(w) == a || string(w) == b || c != "" && string(w) == c
}

func (s *scratch) onlyUnit(i int) bool {
	w := s.bytes(s.tokens[i])
	return unitEnd(w, 0) == len(w)
}

// monthUnit reads 5月8日 or 5月 at token i, into a date that may have its year.
func (s *scratch) monthUnit(i int, d date) (date, int) {
	if d.month = s.number(i, 1, 12); d.month == 0 || !s.unit(i+1, "月", "월", "") {
		return d, 0
	}
	if !s.onlyUnit(i + 1) {
		return d, i + 1
	}
	day := s.number(i+2, 1, 31)
	if day == 0 || !s.unit(i+3, "日", "일", "号") {
		return d, i + 2
	}
	d.day = day
	if s.onlyUnit(i + 3) {
		return d, i + 4
	}
	return d, i + 3
}

// yearLast reads 8.5.2023, and 25/12/2023 or 12/25/2023 where only one reading is a date.
func (s *scratch) yearLast(i int) (date, int) {
	sep := s.separator(i)
	if sep == 0 || s.separator(i+1) != sep {
		return date{}, 0
	}
	a, b, y := s.number(i, 1, 31), s.number(i+1, 1, 31), s.year(i+2)
	switch {
	case a == 0 || b == 0 || y == 0:
		return date{}, 0
	case b <= 12 && (sep == '.' || a > 12 || a == b):
		return date{y, b, a}, i + 3
	case a <= 12 && b > 12:
		return date{y, a, b}, i + 3
	}
	return date{}, 0
}

// monthNamed reads 8 May 2023, 8th of May, May 8, 2023, May 2023 around the name of a month at token i.
func (s *scratch) monthNamed(i int) (start int, d date, end int) {
	t := s.tokens[i]
	if t.class != classLatin || t.mixed || t.end-t.start-3 > 6 { // may to september
		return i, d, 0
	}
	if d.month = monthOf(s.bytes(t)); d.month == 0 {
		return i, d, 0
	}
	start, end = i, i+1
	if i > 0 && !s.tokens[i-1].used && s.near(i-1) {
		if d.day = s.dayNumber(i - 1); d.day > 0 {
			start = i - 1
		} else if i > 1 && string(s.bytes(s.tokens[i-1])) == "of" && s.near(i-2) {
			if d.day = s.dayNumber(i - 2); d.day > 0 {
				start = i - 2
			}
		}
	}
	if d.day == 0 && s.near(i) {
		if d.day = s.dayNumber(i + 1); d.day > 0 {
			end++
		}
	}
	if s.near(end - 1) {
		if d.year = s.year(end); d.year > 0 {
			end++
		}
	}
	if d.day == 0 && d.year == 0 {
		return i, d, 0
	}
	return start, d, end
}

// near reports whether nothing but a space or a comma and the like stands between token i and the next.
func (s *scratch) near(i int) bool {
	if i+1 >= len(s.tokens) {
		return false
	}
	gap := s.text[s.tokens[i].end:s.tokens[i+1].start]
	for _, c := range gap {
		if c != ' ' && c != ',' && c != '.' && c != '-' && c != '/' {
			return false
		}
	}
	return len(gap) > 0 && len(gap) <= 2
}

// dayNumber reads a day: 8 or 8th.
func (s *scratch) dayNumber(i int) int {
	if n := s.number(i, 1, 31); n > 0 {
		if s.tokens[i].end-s.tokens[i].start <= 2 {
			return n
		}
		return 0
	}
	if i >= len(s.tokens) || s.tokens[i].split == 0 {
		return 0
	}
	w := s.bytes(s.tokens[i])
	switch string(w[s.tokens[i].split-s.tokens[i].start:]) {
	case "st", "nd", "rd", "th":
		if n, err := strconv.Atoi(string(w[:len(w)-2])); err == nil && n >= 1 && n <= 31 {
			return n
		}
	}
	return 0
}

// monthOf returns the number of a month by its English name or abbreviation, else 0.
func monthOf(w []byte) int {
	switch string(w) {
	case "january", "jan":
		return 1
	case "february", "feb":
		return 2
	case "march", "mar":
		return 3
	case "april", "apr":
		return 4
	case "may":
		return 5
	case "june", "jun":
		return 6
	case "july", "jul":
		return 7
	case "august", "aug":
		return 8
	case "september", "sep", "sept":
		return 9
	case "october", "oct":
		return 10
	case "november", "nov":
		return 11
	case "december", "dec":
		return 12
	}
	return 0
}

// weekdayOf returns the number of a day of the week by its English or Chinese name, Sunday being 0; else -1.
func weekdayOf(w []byte) int {
	switch string(w) {
	case "sunday":
		return 0
	case "monday":
		return 1
	case "tuesday":
		return 2
	case "wednesday":
		return 3
	case "thursday":
		return 4
	case "friday":
		return 5
	case "saturday":
		return 6
	}
	return -1
}

// The forms in which parts of dates are terms, after their prefix.
func appendDay(b []byte, d date) []byte {
	return append2(append(appendYearMonth(b, d), '-'), d.day)
}

func appendYearMonth(b []byte, d date) []byte {
	return append2(append(strconv.AppendInt(b, int64(d.year), 10), '-'), d.month)
}

func appendMonthDay(b []byte, d date) []byte {
	return append2(append(append2(b, d.month), '-'), d.day)
}

func appendMonth(b []byte, d date) []byte { return append2(append(b, 'm'), d.month) }

func append2(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// indexDate counts the terms of a date that a text speaks of.
func (s *scratch) indexDate(d date) { s.addDate(prefixDate, d) }

func (s *scratch) addDate(prefix byte, d date) {
	var buf [16]byte
	if d.month == 0 {
		return
	}
	s.terms.add(prefix, appendMonth(buf[:0], d))
	if d.year > 0 {
		s.terms.add(prefix, appendYearMonth(buf[:0], d))
	}
	if d.day > 0 {
		s.terms.add(prefix, appendMonthDay(buf[:0], d))
		if d.year > 0 {
			s.terms.add(prefix, appendDay(buf[:0], d))
		}
	}
}

// stamp counts the terms of the date on which the text was said.
func (s *scratch) stamp(t time.Time) {
	var buf [16]byte
	y, m, d := t.Date()
	s.addDate(prefixSaid, date{y, int(m), d})
	s.terms.add(prefixSaid, strconv.AppendInt(buf[:0], int64(y), 10))
	s.terms.add(prefixSaid, appendWeekday(buf[:0], int(t.Weekday())))
}

func appendWeekday(b []byte, n int) []byte { return append(b, 'w', byte('0'+n)) }
