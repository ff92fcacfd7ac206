package calendar

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cron is a line of a crontab: minute, hour, day of the month, month and day of the week. Make one with ParseCron.
type Cron struct {
	text                           string
	minute, hour, day, month, week uint64 // a bit a value
	everyHour, everyDay, everyWeek bool   // the field begins with *
}

// cronField is what a field of a line may hold.
type cronField struct {
	name        string
	least, most int
	words       []string // for the values from least on
}

func cronFields() []cronField {
	return []cronField{
		{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of the month", 1, 31, nil},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{"day of the week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// cronNames are the names that crontabs have for whole lines.
func cronNames() map[string]string {
	return map[string]string{"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *"}
}

const cronHelp = `write minute, hour, day of the month, month and day of the week, as "0 9 * * 1-5" (on weekdays at 9:00) or "*/30 8-18 * * *"`

// ParseCron reads a line of five fields, or @hourly, @daily, @weekly, @monthly or @yearly. Fields take *, numbers, names of
// months and days, ranges, steps and lists. Where both days are restricted, either may match, as in every cron.
func ParseCron(line string) (*Cron, error) {
	c := &Cron{text: strings.Join(strings.Fields(line), " ")}
	full := c.text
	if whole, ok := cronNames()[strings.ToLower(c.text)]; ok {
		full = whole
	}
	fields := strings.Fields(full)
	if len(fields) != 5 {
		return nil, fmt.Errorf("%q has %d fields instead of 5: %s", c.text, len(fields), cronHelp)
	}
	for i, f := range cronFields() {
		set, err := f.parse(fields[i])
		if err != nil {
			return nil, fmt.Errorf("%q: %w: %s", c.text, err, cronHelp)
		}
		*[]*uint64{&c.minute, &c.hour, &c.day, &c.month, &c.week}[i] = set
	}
	c.week |= c.week >> 7 & 1
	star := func(i int) bool { return fields[i][0] == '*' || fields[i][0] == '?' }
	c.everyHour, c.everyDay, c.everyWeek = star(1), star(2), star(4)
	if !c.possible() {
		return nil, fmt.Errorf("%q names a day that no month of it has: %s", c.text, cronHelp)
	}
	return c, nil
}

// String returns the line, its spaces made single.
func (c *Cron) String() string { return c.text }

func (f cronField) parse(text string) (set uint64, err error) {
	for _, part := range strings.Split(text, ",") {
		span, by, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(by); err != nil || step < 1 || step > f.most {
				return 0, fmt.Errorf("the step %q of the %s is no number from 1 to %d", by, f.name, f.most)
			}
		}
		from, to := f.least, f.most
		if span != "*" && span != "?" {
			low, high, ranged := strings.Cut(span, "-")
			if from, err = f.value(low); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = f.value(high); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
		}
		if from > to {
			return 0, fmt.Errorf("the range %q of the %s runs backwards", span, f.name)
		}
		for v := from; v <= to; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func (f cronField) value(text string) (int, error) {
	if i := slices.Index(f.words, strings.ToLower(text)); i >= 0 {
		return f.least + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.least || n > f.most {
		return 0, fmt.Errorf("the %s %q is none from %d to %d", f.name, text, f.least, f.most)
	}
	return n, nil
}

// possible reports whether there is a day that matches.
func (c *Cron) possible() bool {
	if !c.everyWeek {
		return true
	}
	first := bits.TrailingZeros64(c.day)
	for m := time.January; m <= time.December; m++ {
		if c.month>>m&1 == 1 && first <= time.Date(2024, m+1, 0, 0, 0, 0, 0, time.UTC).Day() {
			return true
		}
	}
	return false
}

// onDate reports whether the line is met on the date of a time.
func (c *Cron) onDate(t time.Time) bool {
	if c.month>>t.Month()&1 == 0 {
		return false
	}
	day, week := c.day>>t.Day()&1 == 1, c.week>>t.Weekday()&1 == 1
	if c.everyDay || c.everyWeek {
		return day && week
	}
	return day || week
}

// horizon is how many days ahead a match is looked for: February 29th can be 8 years away, and on a given weekday 40.
const horizon = 41 * 366

// Next returns the first time after another at which the line is met by the clocks of a zone; zero where there is none
// within 40 years. A line that names its hours is met once for each of the times that it names: where the clocks skip one,
// as much later as they skip, and where it comes twice, at the first. A line for every hour goes by the time that passes.
func (c *Cron) Next(after time.Time, zone *time.Location) time.Time {
	after = after.In(zone)
	if c.everyHour {
		return c.nextPassing(after)
	}
	for day, n := noon(after, -2), 0; n < horizon; n++ {
		if day = noon(day, 1); !c.onDate(day) {
			continue
		}
		found := c.firstOn(day, after)
		if found.IsZero() {
			continue
		}
		// Clocks that skip midnight put the last times of a day behind the first of the next.
		if next := noon(day, 1); c.onDate(next) {
			if other := c.firstOn(next, after); !other.IsZero() && other.Before(found) {
				return other
			}
		}
		return found
	}
	return time.Time{}
}

// firstOn returns the first time after another that the line names on a day.
func (c *Cron) firstOn(day, after time.Time) (first time.Time) {
	for hours := c.hour; hours != 0; hours &= hours - 1 {
		h := bits.TrailingZeros64(hours)
		for minutes := c.minute; minutes != 0; minutes &= minutes - 1 {
			t := onDay(day, h*60+bits.TrailingZeros64(minutes))
			if t.After(after) && (first.IsZero() || t.Before(first)) {
				first = t
			}
		}
	}
	return first
}

// nextPassing walks from minute to minute and over what does not match, but never over a change of the clocks.
func (c *Cron) nextPassing(after time.Time) time.Time {
	t := after.Add(-time.Duration(after.Second())*time.Second - time.Duration(after.Nanosecond())).Add(time.Minute)
	for last := noon(after, horizon); t.Before(last); {
		var next time.Time
		switch {
		case !c.onDate(t):
			y, m, d := t.Date()
			next, _ = Local(y, m, d+1, 0, 0, 0, t.Location())
			if !next.After(t) {
				next = t.Add(time.Hour)
			}
		case c.hour>>t.Hour()&1 == 0:
			next = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case c.minute>>t.Minute()&1 == 0:
			next = t.Add(time.Minute)
		default:
			return t
		}
		if _, until := t.ZoneBounds(); !until.IsZero() && until.Before(next) {
			next = until.In(t.Location())
		}
		t = next
	}
	return time.Time{}
}
