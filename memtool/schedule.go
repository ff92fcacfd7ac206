package memtool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/tool"
)

type scheduleArgs struct {
	Note string `json:"note"`
	At   string `json:"at,omitempty"`
	In   string `json:"in,omitempty"`
	Cron string `json:"cron,omitempty"`
}

type listSchedulesArgs struct{}

type cancelScheduleArgs struct {
	ID string `json:"id"`
}

// Schedules returns the functions by which a model sets timers for itself, in a fixed order. They need a host that runs
// timers; who has one offers them beside Tools (see SystemWithSchedules). Their specs are compact in every form, since they
// are part of each request: what is written wrong is told how to write it.
func Schedules(native bool) ([]tool.Tool, error) {
	var tools []tool.Tool
	for _, d := range scheduleFunctions() {
		t, err := d.tool(Form{Compact: true, Native: native})
		if err != nil {
			return nil, fmt.Errorf("define function %s: %w", d.name, err)
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// SystemWithSchedules is System with the functions of Schedules after the others. Small windows have no room for them: the
// compact form with them would pass the 1,000 tokens that its fixed part may have. There timers are their owner's alone.
func SystemWithSchedules(compact, native bool) ([]tool.Tool, error) {
	tools, err := System(compact, native)
	if err != nil || compact {
		return tools, err
	}
	more, err := Schedules(native)
	return append(tools, more...), err
}

func scheduleFunctions() []definition {
	id := map[string]string{"schedule": "id", "schedule_id": "id"}
	return []definition{
		define(definition{
			name: "schedule", effect: memgpt.EffectMemory,
			compact: "Remind yourself: at 18:30, in 2h.",
			aliases: map[string]string{"message": "note", "text": "note", "content": "note", "reminder": "note", "time": "at", "when": "at",
				"date": "at", "datetime": "at", "delay": "in", "after": "in", "repeat": "cron"},
		}, schedule),
		define(definition{name: "list_schedules", effect: memgpt.EffectRead, search: true}, listSchedules),
		define(definition{name: "cancel_schedule", effect: memgpt.EffectMemory, aliases: id}, cancelSchedule),
	}
}

const scheduleHelp = `give one of at ("2026-12-01 09:00", in your zone), in ("2h30m", "3 days") or cron ("0 9 * * 1-5")`

func schedule(ctx context.Context, c call, args scheduleArgs) (string, error) {
	if strings.TrimSpace(args.Note) == "" {
		return "", errors.New("nothing was scheduled: note is empty; write what you want to read then")
	}
	given := 0
	for _, text := range []string{args.At, args.In, args.Cron} {
		if strings.TrimSpace(text) != "" {
			given++
		}
	}
	if given != 1 {
		return "", fmt.Errorf("nothing was scheduled: %d of at, in and cron are given; %s", given, scheduleHelp)
	}
	p, said, err := planOf(args, c.Now())
	if err != nil {
		return "", fmt.Errorf("nothing was scheduled: %w", err)
	}
	r, err := c.Schedule(ctx, p)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Scheduled as %s: the note comes back %s.", r.ID, said), nil
}

// planOf reads when a note is to come back, and says so.
func planOf(args scheduleArgs, now time.Time) (p tool.Plan, said string, err error) {
	p.Note = args.Note
	kind := calendar.Once
	switch {
	case strings.TrimSpace(args.Cron) != "":
		var line *calendar.Cron
		if line, err = calendar.ParseCron(args.Cron); err != nil {
			return p, "", fmt.Errorf("cron: %w", err)
		}
		p.Cron = line.String()
		if p.For = line.Next(now, now.Location()); p.For.IsZero() {
			return p, "", fmt.Errorf("cron: %s is met on no day of the next 40 years", quote(p.Cron))
		}
		return p, fmt.Sprintf("by the cron line %s, first on %s", quote(p.Cron), spokenTime(p.For, now)), nil
	case strings.TrimSpace(args.In) != "":
		p.For, kind, err = parseIn(args.In, now)
	default:
		p.For, kind, err = parseAt(args.At, now)
	}
	if err == nil {
		err = checkAhead(p.For, now)
	}
	said = "on " + spokenTime(p.For, now)
	switch kind {
	case calendar.Gap:
		said += "; the time that you gave is skipped there, where the clocks are put forward"
	case calendar.Twice:
		said += "; the time that you gave comes twice there, where the clocks are put back: this is the first"
	}
	return p, said, err
}

// mostYears is how far ahead a note may be sent.
const mostYears = 20

func checkAhead(t, now time.Time) error {
	switch {
	case !t.After(now):
		return fmt.Errorf("%s is past: now it is %s. Give a time to come", spokenTime(t, now), spokenTime(now, now))
	case t.After(now.AddDate(mostYears, 0, 0)):
		return fmt.Errorf("%s is more than %d years ahead", spokenTime(t, now), mostYears)
	}
	return nil
}

// spokenTime writes a time with its day of the week and its zone.
func spokenTime(t, now time.Time) string {
	zone := now.Location()
	return fmt.Sprintf("%s %s (%s)", t.In(zone).Format("Monday"), calendar.Format(t, zone), zone)
}

// scheduleLine is a schedule as it is listed: one JSON object on one line.
type scheduleLine struct {
	ID           string `json:"id"`
	For          string `json:"for"`
	Cron         string `json:"cron,omitempty"`
	Waits        string `json:"waits,omitempty"`
	Set          string `json:"set"`
	Conversation string `json:"conversation,omitempty"`
	Note         string `json:"note"`
}

func listSchedules(ctx context.Context, c call, _ listSchedulesArgs) (string, error) {
	list, err := c.Schedules(ctx)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "There are no schedules.", nil
	}
	zone := c.Now().Location()
	return c.fitted(func(c call) (string, error) {
		lines := []string{fmt.Sprintf("%s, the next first; times are of %s.", count(len(list), "schedule"), zone)}
		for _, r := range list {
			text, err := marshal(scheduleLine{ID: r.ID, For: calendar.Format(r.For, zone), Cron: r.Cron, Waits: r.Wait,
				Set: calendar.Format(r.Set, zone), Conversation: r.Thread, Note: shorten(r.Note, c.excerpt)})
			if err != nil {
				return "", err
			}
			lines = append(lines, string(text))
		}
		return strings.Join(lines, "\n"), nil
	})
}

func cancelSchedule(ctx context.Context, c call, args cancelScheduleArgs) (string, error) {
	r, err := c.CancelSchedule(ctx, args.ID)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Cancelled %s, which was for %s: %s", r.ID, spokenTime(r.For, c.Now()), quote(shorten(oneLine(r.Note), 200))), nil
}
