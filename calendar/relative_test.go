package calendar

import (
	"maps"
	"testing"
	"time"
)

func TestRelative(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	// A Wednesday, late in the evening, when it is Thursday in UTC.
	said := time.Date(2026, 3, 4, 23, 30, 0, 0, zone)
	for text, want := range map[string]map[string]string{
		"See you tomorrow!":                    {"tomorrow": "2026-03-05"},
		"The day after tomorrow, not tomorrow": {"the day after tomorrow": "2026-03-06", "tomorrow": "2026-03-05"},
		"Yesterday we met; today we rest.":     {"yesterday": "2026-03-03", "today": "2026-03-04"},
		"next Friday":                          {"next friday": "2026-03-06 or 2026-03-13"},
		"next Monday":                          {"next monday": "2026-03-09"},
		"last Tuesday":                         {"last tuesday": "2026-03-03 or 2026-02-24"},
		"last Thursday":                        {"last thursday": "2026-02-26"},
		"next week, or last week":              {"next week": "2026-03-09 to 2026-03-15", "last week": "2026-02-23 to 2026-03-01"},
		"in three days and in 2 weeks":         {"in three days": "2026-03-07", "in 2 weeks": "2026-03-18"},
		"10 days ago":                          {"10 days ago": "2026-02-22"},
		"明天去医院，下周五出院":                          {"明天": "2026-03-05", "下周五": "2026-03-13"},
		"后天和大后天":                               {"后天": "2026-03-06", "大后天": "2026-03-07"},
		"三天后":                                  {"三天后": "2026-03-07"},
		"下周见":                                  {"下周": "2026-03-09 to 2026-03-15"},
		"来週の金曜日に会いましょう。明日は休みです。": {"来週の金曜日": "2026-03-13", "明日": "2026-03-05"},
		"来週、東京へ行く":                                     {"来週": "2026-03-09 to 2026-03-15"},
		"Übermorgen fahre ich, vorgestern war ich da.": {"übermorgen": "2026-03-06", "vorgestern": "2026-03-02"},
		"Guten Morgen, hier bin ich":                   nil,
		"Après-demain, la semaine prochaine":           {"après-demain": "2026-03-06", "la semaine prochaine": "2026-03-09 to 2026-03-15"},
		"pasado mañana":                                {"pasado mañana": "2026-03-06"},
		"I said tomorrowland, todays, in 900 days":     nil,
		"": nil,
	} {
		got := Relative(text, said)
		if !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestRelativeAroundMidnightsThatDontExist: days are those of the calendar, whatever the clocks do.
func TestRelativeAroundMidnightsThatDontExist(t *testing.T) {
	zone, err := time.LoadLocation("America/Santiago") // the clocks skip midnight of 2026-09-06
	if err != nil {
		t.Fatal(err)
	}
	if got := Relative("tomorrow", time.Date(2026, 9, 5, 23, 59, 0, 0, zone)); got["tomorrow"] != "2026-09-06" {
		t.Errorf("%v", got)
	}
}

func FuzzRelative(f *testing.F) {
	f.Add("next friday in 3 days 下周五")
	f.Fuzz(func(t *testing.T, text string) {
		if n := len(Relative(text, time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC))); n > maxRelative {
			t.Errorf("%d days", n)
		}
	})
}
