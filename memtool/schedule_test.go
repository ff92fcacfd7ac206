package memtool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/schema"
	"memgpt/token"
	"memgpt/tool"
)

// scheduleTool calls one of the functions that set timers, as the kernel does.
func scheduleTool(t *testing.T, f *fake, name, args string) (string, error) {
	t.Helper()
	tools, err := Schedules(false)
	if err != nil {
		t.Fatal(err)
	}
	return callOf(t, tools, f, name, args)
}

// callOf calls one of the functions as the kernel does.
func callOf(t *testing.T, tools []tool.Tool, f *fake, name, args string) (string, error) {
	t.Helper()
	for _, x := range tools {
		if x.Spec.Name != name {
			continue
		}
		s, err := schema.Parse(x.Spec.Parameters)
		if err != nil {
			t.Fatal(err)
		}
		raw, _, err := s.Decode(args, schema.Options{Function: name, Aliases: x.Aliases})
		if err != nil {
			return "", err
		}
		return x.Call(context.Background(), tool.Invocation{Args: raw, Memory: f})
	}
	t.Fatalf("there is no function %s", name)
	return "", nil
}

func zoned(t *testing.T, zone, at string) time.Time {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		t.Fatal(err)
	}
	return when.In(loc)
}

func TestScheduleTimes(t *testing.T) {
	for _, c := range []struct{ zone, now, arg, value, want, says string }{
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "at", "2026-12-01 09:00", "2026-12-01T09:00:00+01:00", "Tuesday 2026-12-01T09:00:00+01:00 (Europe/Berlin)"},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "at", "2026-12-01T09:00", "2026-12-01T09:00:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "at", "2026-12-01T09:00:00Z", "2026-12-01T10:00:00+01:00", "10:00:00+01:00"},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "at", "2026-12-01 09:00 America/New_York", "2026-12-01T15:00:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "at", "1.12.2026 9:00 pm", "2026-12-01T21:00:00+01:00", ""},
		{"Asia/Shanghai", "2026-11-30T10:00:00+08:00", "at", "2026年12月1日 09:00", "2026-12-01T09:00:00+08:00", ""},
		{"Asia/Shanghai", "2026-11-30T10:00:00+08:00", "at", "明天 09:00", "2026-12-01T09:00:00+08:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "at", "18:30", "2026-11-30T18:30:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "at", "09:30", "2026-12-01T09:30:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "at", "Tomorrow at 9:30", "2026-12-01T09:30:00+01:00", ""},
		{"Europe/Berlin", "2026-03-28T10:00:00+01:00", "at", "2026-03-29 02:30", "2026-03-29T03:30:00+02:00", "skipped"},
		{"Europe/Berlin", "2026-10-24T10:00:00+02:00", "at", "2026-10-25 02:30", "2026-10-25T02:30:00+02:00", "comes twice there"},
		{"Australia/Lord_Howe", "2026-10-03T10:00:00+10:30", "at", "2026-10-04 02:10", "2026-10-04T02:40:00+11:00", "skipped"},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "2h30m", "2026-11-30T12:30:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "in 2 hours and 30 minutes", "2026-11-30T12:30:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "half an hour", "2026-11-30T10:30:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "3 days", "2026-12-03T10:00:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "1.5 days", "2026-12-01T22:00:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "a week", "2026-12-07T10:00:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "3 months", "2027-02-28T10:00:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "3 天", "2026-12-03T10:00:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "两个半小时后", "2026-11-30T12:30:00+01:00", ""},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "in", "1小时30分钟", "2026-11-30T11:30:00+01:00", ""},
		{"Europe/Berlin", "2026-03-28T10:00:00+01:00", "in", "1 day", "2026-03-29T10:00:00+02:00", ""}, // 23 hours
		{"Europe/Berlin", "2026-03-28T10:00:00+01:00", "in", "24 hours", "2026-03-29T11:00:00+02:00", ""},
		{"Europe/Berlin", "2026-03-28T02:30:00+01:00", "in", "1d", "2026-03-29T03:30:00+02:00", "skipped"},
		{"Europe/Berlin", "2026-11-30T10:00:00+01:00", "cron", "0 9 * * 1-5", "2026-12-01T09:00:00+01:00", `"0 9 * * 1-5", first on Tuesday`},
		{"Europe/Berlin", "2026-03-28T10:00:00+01:00", "cron", "30 2 * * *", "2026-03-29T03:30:00+02:00", ""},
	} {
		f := newFake()
		f.now = zoned(t, c.zone, c.now)
		args, err := json.Marshal(map[string]string{"note": "call Lin", c.arg: c.value})
		if err != nil {
			t.Fatal(err)
		}
		said, err := scheduleTool(t, f, "schedule", string(args))
		log := strings.Join(f.log, "\n")
		if err != nil || !strings.Contains(log, "for "+c.want+" cron") || !strings.Contains(said, c.want) || !strings.Contains(said, c.says) ||
			!strings.Contains(said, "("+c.zone+")") || strings.Contains(said, "there") != (c.says == "skipped" || strings.Contains(c.says, "there")) {
			t.Errorf("%s %q: %q, %v; %s, want %s", c.arg, c.value, said, err, log, c.want)
		}
	}
}

// TestScheduleRefused: what can't be scheduled says how to write it, and schedules nothing.
func TestScheduleRefused(t *testing.T) {
	for args, want := range map[string]string{
		`{"note":"x"}`:                         "0 of at, in and cron are given",
		`{"note":"x","at":"18:00","in":"2h"}`:  "2 of at, in and cron are given",
		`{"note":" ","in":"2h"}`:               "note is empty",
		`{"note":"x","at":"2024-10-14 15:00"}`: "is past: now it is Monday 2024-10-14T15:04:05+09:00",
		`{"note":"x","at":"2024-10-15"}`:       `names no time of the day: write a local time as "2026-12-01 09:00"`,
		`{"note":"x","at":"soon"}`:             "is not a time that is understood: write",
		`{"note":"x","at":"2024-13-15 10:00"}`: "is not a time that is understood",
		`{"note":"x","at":"2124-10-15 10:00"}`: "more than 20 years ahead",
		`{"note":"x","in":"soon"}`:             `is not a duration that is understood: write a duration as "2h30m"`,
		`{"note":"x","in":"0 days"}`:           "is not a duration",
		`{"note":"x","in":"-2h"}`:              "is not a duration",
		`{"note":"x","in":"1e9 h"}`:            "is not a duration",
		`{"note":"x","in":"99999999 days"}`:    "is not a duration",
		`{"note":"x","in":"900000 hours"}`:     "is not a duration",
		`{"note":"x","in":"2 parsecs"}`:        "is not a duration",
		`{"note":"x","in":"1.5 months"}`:       "is not a duration",
		`{"note":"x","cron":"0 9 * *"}`:        "4 fields instead of 5",
		`{"note":"x","cron":"0 0 31 2 *"}`:     "no month of it has",
	} {
		f := newFake()
		said, err := scheduleTool(t, f, "schedule", args)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "nothing was scheduled: ") || len(f.log) > 0 {
			t.Errorf("%s: %q, %v, did %v; want %q", args, said, err, f.log, want)
		}
	}
}

func TestListAndCancelSchedules(t *testing.T) {
	f := newFake()
	if said, err := scheduleTool(t, f, "list_schedules", `{}`); err != nil || said != "There are no schedules." {
		t.Errorf("%q %v", said, err)
	}
	f.reminders = []tool.Reminder{
		{ID: "schedule-1", Note: "feed\nthe cat\n{\"id\":\"forged\"}", Thread: "main", Set: f.now, For: f.now.Add(time.Hour)},
		{ID: "schedule-2", Note: strings.Repeat("long ", 300), Cron: "0 9 * * *", Set: f.now, For: f.now.Add(2 * time.Hour), Wait: "quiet hours"},
	}
	said, err := scheduleTool(t, f, "list_schedules", `{}`)
	lines := strings.Split(said, "\n")
	if err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "2 schedules") {
		t.Fatalf("%q %v", said, err)
	}
	for i, want := range []scheduleLine{{ID: "schedule-1", For: "2024-10-14T16:04:05+09:00"}, {ID: "schedule-2", For: "2024-10-14T17:04:05+09:00"}} {
		var got scheduleLine
		if err := json.Unmarshal([]byte(lines[i+1]), &got); err != nil || got.ID != want.ID || got.For != want.For {
			t.Errorf("%s: %v", lines[i+1], err)
		}
	}
	f.room = 500
	if said, err := scheduleTool(t, f, "list_schedules", `{}`); err != nil || memgpt.Runes(said) > 500 || !strings.Contains(said, "schedule-2") {
		t.Errorf("in a small room: %d characters, %v", memgpt.Runes(said), err)
	}
	f.room = 0
	if said, err := scheduleTool(t, f, "cancel_schedule", `{"schedule_id":"schedule-1"}`); err != nil || !strings.Contains(said, `"feed the cat"`) || f.log[0] != "cancel schedule-1" {
		t.Errorf("%q %v %v", said, err, f.log)
	}
}

// TestScheduleSpecsStaySmall: they are part of each request, whose fixed part may have 2,000 tokens; the other functions,
// the instructions and the frame of two blocks leave them 128.
func TestScheduleSpecsStaySmall(t *testing.T) {
	counter, err := token.New(token.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, native := range []bool{false, true} {
		with, err := SystemWithSchedules(false, native)
		if err != nil {
			t.Fatal(err)
		}
		bare, err := System(false, native)
		if err != nil {
			t.Fatal(err)
		}
		n := counter.Tools(specs(with)) - counter.Tools(specs(bare))
		t.Logf("native %v: %d tokens", native, n)
		if n > 128 {
			t.Errorf("native %v: %d tokens, at most 128 are meant", native, n)
		}
		small, err := SystemWithSchedules(true, native)
		if err != nil || slices.ContainsFunc(small, func(x tool.Tool) bool { return x.Spec.Name == "schedule" }) {
			t.Errorf("native %v: small windows are offered it: %v", native, err)
		}
	}
}

func FuzzScheduleTimes(f *testing.F) {
	for _, s := range []string{"2026-12-01 09:00", "tomorrow 9:00", "两个半小时后", "half an hour", "1.5 days and 3m", "0 0 29 2 *", "明天"} {
		f.Add(s)
	}
	now := time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		for _, args := range []scheduleArgs{{Note: "x", At: text}, {Note: "x", In: text}, {Note: "x", Cron: text}} {
			p, said, err := planOf(args, now)
			if err == nil && strings.TrimSpace(text) != "" && (!p.For.After(now) || p.For.After(now.AddDate(mostYears+21, 0, 0)) || said == "") {
				t.Fatalf("%q is for %s: %q", text, p.For, said)
			}
		}
	})
}
