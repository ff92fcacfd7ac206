package calendar

import (
	"strings"
	"testing"
	"time"
)

func inZone(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

const stamp = "2006-01-02T15:04:05Z07:00"

func TestLocal(t *testing.T) {
	for _, c := range []struct {
		zone, wall, want string
		kind             Kind
	}{
		{"UTC", "2026-03-29 02:30", "2026-03-29T02:30:00Z", Once},
		{"Europe/Berlin", "2026-03-29 01:59", "2026-03-29T01:59:00+01:00", Once},
		{"Europe/Berlin", "2026-03-29 02:00", "2026-03-29T03:00:00+02:00", Gap},
		{"Europe/Berlin", "2026-03-29 02:30", "2026-03-29T03:30:00+02:00", Gap},
		{"Europe/Berlin", "2026-03-29 03:00", "2026-03-29T03:00:00+02:00", Once},
		{"Europe/Berlin", "2026-10-25 01:59", "2026-10-25T01:59:00+02:00", Once},
		{"Europe/Berlin", "2026-10-25 02:30", "2026-10-25T02:30:00+02:00", Twice},
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25T03:00:00+01:00", Once},
		{"America/New_York", "2026-03-08 02:15", "2026-03-08T03:15:00-04:00", Gap},
		{"America/New_York", "2026-11-01 01:15", "2026-11-01T01:15:00-04:00", Twice},
		{"America/New_York", "2026-11-01 02:00", "2026-11-01T02:00:00-05:00", Once},
		{"Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-04T02:45:00+11:00", Gap},
		{"Australia/Lord_Howe", "2026-10-04 02:30", "2026-10-04T02:30:00+11:00", Once},
		{"Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-05T01:45:00+11:00", Twice},
		{"Australia/Lord_Howe", "2026-04-05 02:00", "2026-04-05T02:00:00+10:30", Once},
		{"Pacific/Apia", "2011-12-30 12:00", "2011-12-31T12:00:00+14:00", Gap}, // the day that Samoa left out
		{"America/Sao_Paulo", "2018-11-04 00:30", "2018-11-04T01:30:00-02:00", Gap},
		{"Pacific/Kiritimati", "2026-06-01 09:00", "2026-06-01T09:00:00+14:00", Once},
		{"Pacific/Pago_Pago", "2026-06-01 09:00", "2026-06-01T09:00:00-11:00", Once},
		{"Asia/Kathmandu", "2026-06-01 09:00", "2026-06-01T09:00:00+05:45", Once},
	} {
		w, err := time.Parse("2006-01-02 15:04", c.wall)
		if err != nil {
			t.Fatal(err)
		}
		got, kind := Local(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), 0, inZone(t, c.zone))
		if got.Format(stamp) != c.want || kind != c.kind {
			t.Errorf("%s in %s is %s (%d), want %s (%d)", c.wall, c.zone, got.Format(stamp), kind, c.want, c.kind)
		}
	}
}

// TestLocalAgrees goes over every quarter of an hour of the months in which clocks are changed: a time that exists is itself, and one that does not is as
// much later as the clocks skip.
func TestLocalAgrees(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Tehran"} {
		zone := inZone(t, name)
		for u := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); u.Year() == 2026; u = u.Add(15 * time.Minute) {
			if m := u.Month(); m == time.January || m > time.April && m < time.September || m == time.December {
				continue
			}
			got, kind := Local(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), 0, zone)
			same := got.Format("2006-01-02 15:04") == u.Format("2006-01-02 15:04")
			before := got.Add(-2 * time.Hour)
			_, a := before.Zone()
			_, b := got.Zone()
			if same == (kind == Gap) || !same && got.Sub(u.Add(-time.Duration(a)*time.Second)) != 0 || kind == Gap && b <= a {
				t.Fatalf("%s in %s is %s (%d)", u.Format("2006-01-02 15:04"), name, got, kind)
			}
		}
	}
}

func TestCronNext(t *testing.T) {
	for _, c := range []struct{ zone, line, after, want string }{
		{"UTC", "0 9 * * 1-5", "2026-05-01T09:00:00Z", "2026-05-04T09:00:00Z"},
		{"UTC", "0 9 * * mon-fri", "2026-05-01T08:59:59Z", "2026-05-01T09:00:00Z"},
		{"UTC", "0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"UTC", "0 0 29 2 0", "2026-03-01T00:00:00Z", "2027-02-07T00:00:00Z"}, // either day, as in every cron
		{"UTC", "0 0 13 * 5", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"},
		{"UTC", "0 0 */13 * 5", "2026-01-01T00:00:00Z", "2026-02-27T00:00:00Z"}, // * first: both
		{"UTC", "*/20 8-9,17 * * 7", "2026-05-03T09:40:00Z", "2026-05-03T17:00:00Z"},
		{"UTC", "5/10 * * * *", "2026-05-03T09:45:00Z", "2026-05-03T09:55:00Z"},
		{"UTC", "@hourly", "2026-05-03T09:45:01Z", "2026-05-03T10:00:00Z"},
		{"UTC", "@monthly", "2026-12-03T09:45:01Z", "2027-01-01T00:00:00Z"},
		{"UTC", "* * * * *", "2026-12-31T23:59:59.5Z", "2027-01-01T00:00:00Z"},
		// The clocks skip 2:00 to 3:00: what names a time of it is once, an hour later.
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T02:30:00+01:00", "2026-03-29T03:30:00+02:00"},
		{"Europe/Berlin", "30 2 * * *", "2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"},
		{"Europe/Berlin", "30 2,3 * * *", "2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"}, // both are one instant
		{"Europe/Berlin", "*/30 * * * *", "2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"}, // and time just goes on
		// They show 2:00 to 3:00 twice: what names a time of it is once, what goes by time is twice.
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T03:00:00+02:00", "2026-10-25T02:30:00+02:00"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		{"Europe/Berlin", "30 * * * *", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"},
		{"America/New_York", "15 2 8 3 *", "2026-01-01T00:00:00-05:00", "2026-03-08T03:15:00-04:00"},
		{"America/New_York", "0 1 * * *", "2026-11-01T01:00:00-04:00", "2026-11-02T01:00:00-05:00"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T03:00:00+10:30", "2026-10-04T02:45:00+11:00"},
		{"Australia/Lord_Howe", "0,30 * * * *", "2026-10-04T01:30:00+10:30", "2026-10-04T02:30:00+11:00"},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		{"Australia/Lord_Howe", "45 * * * *", "2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30"},
		{"America/Sao_Paulo", "30 0,23 * * *", "2018-11-03T23:30:00-03:00", "2018-11-04T01:30:00-02:00"},
		{"Pacific/Apia", "0 9 * * *", "2011-12-29T09:00:00-10:00", "2011-12-31T09:00:00+14:00"},
	} {
		line, err := ParseCron(c.line)
		if err != nil {
			t.Fatal(err)
		}
		after, err := time.Parse(time.RFC3339Nano, c.after)
		if err != nil {
			t.Fatal(err)
		}
		if got := line.Next(after, inZone(t, c.zone)).Format(stamp); got != c.want {
			t.Errorf("%s: %q after %s is %s, want %s", c.zone, c.line, c.after, got, c.want)
		}
	}
}

// TestCronAgainstCounting compares with the plain way: look at every minute of a year. A line that goes by time is met at
// all that match; one that names its hours as often as the calendar has such dates, each at its time where that exists.
func TestCronAgainstCounting(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		zone := inZone(t, name)
		begin := time.Date(2025, 12, 31, 12, 0, 0, 0, zone)
		end := time.Date(2026, 12, 31, 12, 0, 0, 0, zone)
		for _, text := range []string{"*/30 * * * *", "15 2 * * *", "45 1 * * 0"} {
			line, err := ParseCron(text)
			if err != nil {
				t.Fatal(err)
			}
			matches := map[string]int{} // by local time
			for m := begin.Add(time.Minute); !m.After(end); m = m.Add(time.Minute) {
				if line.onDate(m) && line.hour>>m.Hour()&1 == 1 && line.minute>>m.Minute()&1 == 1 {
					matches[m.Format("2006-01-02 15:04")]++
				}
			}
			want := 0
			for _, n := range matches {
				if line.everyHour {
					want += n
				} else {
					want++
				}
			}
			met, skipped := 0, 0
			for m := line.Next(begin, zone); !m.After(end); m = line.Next(m, zone) {
				met++
				if matches[m.Format("2006-01-02 15:04")] == 0 {
					skipped++
				}
			}
			if met-skipped != want || skipped > 1 || line.everyHour && skipped > 0 {
				t.Errorf("%s: %q is met %d times, %d of them at times that were skipped; %d minutes match", name, text, met, skipped, want)
			}
		}
	}
}

func TestCronRefused(t *testing.T) {
	for line, want := range map[string]string{
		"": "0 fields", "0 9 * *": "4 fields", "0 9 * * * *": "6 fields", "60 9 * * *": `minute "60"`, "0 24 * * *": `hour "24"`,
		"0 9 0 * *": `day of the month "0"`, "0 9 * 13 *": `month "13"`, "0 9 * * 8": `day of the week "8"`, "0 9 * * foo": `"foo"`,
		"5-1 * * * *": "backwards", "*/0 * * * *": "step", "*/x * * * *": "step", "0 0 30 2 *": "no month of it has",
		"0 0 31 4,6 *": "no month of it has", ", * * * *": `minute ""`, "@reboot": "1 fields",
	} {
		if _, err := ParseCron(line); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"0 9 * * 1-5"`) {
			t.Errorf("%q: %v, want %s and an example", line, err, want)
		}
	}
}

func FuzzCron(f *testing.F) {
	f.Add("*/7 1-3 * jan-mar 0,7", int64(1_775_000_000))
	f.Add("0 0 29 2 *", int64(0))
	zone := inZone(f, "Australia/Lord_Howe")
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		line, err := ParseCron(text)
		if err != nil {
			return
		}
		if again, err := ParseCron(line.String()); err != nil || again.minute != line.minute || again.week != line.week {
			t.Fatalf("%q reads back as %+v: %v", text, again, err)
		}
		after := time.Unix(unix%4_000_000_000, 0)
		if next := line.Next(after, zone); !next.IsZero() && !next.After(after) {
			t.Fatalf("%q after %s is %s", text, after, next)
		}
	})
}

func TestHours(t *testing.T) {
	for _, c := range []struct{ zone, hours, at, want string }{
		{"UTC", "22:00-07:00", "2026-05-01T21:59:59Z", "2026-05-01T21:59:59Z"},
		{"UTC", "22:00-07:00", "2026-05-01T22:00:00Z", "2026-05-02T07:00:00Z"},
		{"UTC", "22-7", "2026-05-02T06:59:59Z", "2026-05-02T07:00:00Z"},
		{"UTC", "22:00 – 07:00", "2026-05-02T07:00:00Z", "2026-05-02T07:00:00Z"},
		{"UTC", "12:30-14:00", "2026-05-02T13:00:00Z", "2026-05-02T14:00:00Z"},
		{"UTC", "22:00-24:00", "2026-05-02T23:00:00Z", "2026-05-03T00:00:00Z"},
		{"Europe/Berlin", "22:00-07:00", "2026-03-28T23:00:00+01:00", "2026-03-29T07:00:00+02:00"},
		{"Europe/Berlin", "22:00-02:30", "2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"},
		{"Europe/Berlin", "22:00-02:30", "2026-10-25T02:15:00+01:00", "2026-10-25T02:30:00+01:00"}, // the second 2:15
		{"Europe/Berlin", "22:00-07:00", "2026-10-24T23:00:00+02:00", "2026-10-25T07:00:00+01:00"},
		{"Australia/Lord_Howe", "22:00-02:15", "2026-10-03T23:00:00+10:30", "2026-10-04T02:45:00+11:00"},
	} {
		h, err := ParseHours(c.hours)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		zone := inZone(t, c.zone)
		if got := h.End(at, zone).In(zone).Format(stamp); got != c.want {
			t.Errorf("%s: %s ends for %s at %s, want %s", c.zone, c.hours, c.at, got, c.want)
		}
	}
	for _, wrong := range []string{"22:00", "22:00-25:00", "x-y", "7:00-7:00", "-"} {
		if _, err := ParseHours(wrong); err == nil {
			t.Errorf("%q is taken for hours", wrong)
		}
	}
	if none, err := ParseHours(" "); err != nil || none.End(time.Unix(0, 0), time.UTC) != time.Unix(0, 0) {
		t.Errorf("no hours are some: %v", err)
	}
}
