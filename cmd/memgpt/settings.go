package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"memgpt"
	"memgpt/calendar"
	"memgpt/host"
	"memgpt/model/offline"
	"memgpt/schema"
)

// setting is one thing about an agent that its owner may set.
type setting struct {
	key   string
	about string
	unset string                            // what holds where it has no value
	read  func(*memgpt.Agent, string) error // takes a value in; "" is none
	write func(*memgpt.Agent) string        // the value; "" is none
}

// Bounds of settings: what lies beyond can't do what it is for.
const (
	leastWindow    = 1024
	leastPrefetch  = 100 // tokens
	leastHeartbeat = time.Second
	mostPageSize   = 100
	mostSteps      = 10_000
	mostTimerTurns = 86_400 // one a second
)

// settings are all there are, in the order in which they are shown.
func settings() []setting {
	return slices.Concat([]setting{
		wordSetting("prefetch", "off, on or auto: whether the system looks memory up for a message of the user", "off",
			func(a *memgpt.Agent) *memgpt.PrefetchMode { return &a.Prefetch.Mode },
			memgpt.PrefetchOff, memgpt.PrefetchOn, memgpt.PrefetchAuto),
		countSetting("prefetch_budget", "tokens that it may hand over", "1000",
			func(a *memgpt.Agent) *int { return &a.Prefetch.Budget }, leastPrefetch, math.MaxInt32),
		spanSetting("prefetch_age", "what is older is left out, as 720h or 30d", "any age",
			func(a *memgpt.Agent) *time.Duration { return &a.Prefetch.Age }, time.Minute),
		textSetting("model", "[provider:]model, as MEMGPT_MODEL takes it", "that of MEMGPT_MODEL, or what is found",
			func(a *memgpt.Agent) *string { return &a.Model }, checkModel),
		countSetting("window", "tokens of the model's context window that may be used", "that of MEMGPT_WINDOW, or of the model",
			func(a *memgpt.Agent) *int { return &a.Window }, leastWindow, math.MaxInt32),
		textSetting("zone", "IANA time zone, as Europe/Paris", "UTC", func(a *memgpt.Agent) *string { return &a.Zone }, checkZone),
		spanSetting("heartbeat", "interval of timer heartbeats, as 30m", "none",
			func(a *memgpt.Agent) *time.Duration { return &a.Heartbeat }, leastHeartbeat),
		textSetting("cron", `cron line of timer heartbeats in the agent's zone, as "0 9 * * 1-5"`, "none",
			func(a *memgpt.Agent) *string { return &a.Timers.Cron }, checkCron),
		quietSetting(),
		wordSetting("catch_up", "skip, once or all: what becomes of times of repeating schedules at which nothing ran", host.CatchUpOnce,
			func(a *memgpt.Agent) *string { return &a.Timers.CatchUp }, host.CatchUpSkip, host.CatchUpOnce, host.CatchUpAll),
		countSetting("timer_turns", "turns that heartbeats and schedules may cause on a day", "48",
			func(a *memgpt.Agent) *int { return &a.Timers.Turns }, 1, mostTimerTurns),
		wordSetting("protocol", "memgpt (send_message speaks) or native (text speaks)", "memgpt",
			func(a *memgpt.Agent) *memgpt.Protocol { return &a.Protocol }, memgpt.ProtocolMemGPT, memgpt.ProtocolNative),
		shareSetting("alert", "share of the usable window at which the pressure alert is raised, as .7 or 70%", ".7",
			func(a *memgpt.Agent) *float64 { return &a.Policy.Alert }),
		shareSetting("flush", "share at which the queue is flushed", "1", func(a *memgpt.Agent) *float64 { return &a.Policy.Flush }),
		shareSetting("target", "share down to which a flush evicts", ".5", func(a *memgpt.Agent) *float64 { return &a.Policy.Target }),
		countSetting("page_size", "hits a page of search results", "5", func(a *memgpt.Agent) *int { return &a.Policy.PageSize }, 1, mostPageSize),
		countSetting("max_steps", "steps a turn", "50", func(a *memgpt.Agent) *int { return &a.Policy.MaxSteps }, 1, mostSteps),
		countSetting("max_repeats", "identical calls in a row before a turn is stopped", "3",
			func(a *memgpt.Agent) *int { return &a.Policy.MaxRepeats }, 1, mostSteps),
		archivesSetting(),
		textSetting("system", "system instructions in place of the built-in ones", "the built-in ones",
			func(a *memgpt.Agent) *string { return &a.System }, nil),
	}, budgetSettings(), reachSettings(), tidySettings())
}

// apply sets what pairs key=value say on a copy of an agent. All that is wrong is said at once.
func apply(agent memgpt.Agent, pairs []string) (memgpt.Agent, error) {
	var wrong []error
	before := agent.Policy
	seen := map[string]bool{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		switch s := settingNamed(key); {
		case !ok:
			wrong = append(wrong, fmt.Errorf("%q is no setting: write it as key=value", pair))
		case s == nil:
			wrong = append(wrong, unknownSetting(key))
		case seen[key]:
			wrong = append(wrong, fmt.Errorf("%s is set twice", key))
		default:
			if value = strings.TrimSpace(value); value == "default" {
				value = ""
			}
			if err := s.read(&agent, value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s is %q: %w", key, value, err))
			}
		}
		seen[key] = true
	}
	if len(wrong) == 0 && agent.Policy != before {
		wrong = append(wrong, checkMarks(agent.Policy))
	}
	return agent, errors.Join(wrong...)
}

func settingNamed(key string) *setting {
	all := settings()
	if i := slices.IndexFunc(all, func(s setting) bool { return s.key == key }); i >= 0 {
		return &all[i]
	}
	return nil
}

func unknownSetting(key string) error {
	var keys, near []string
	for _, s := range settings() {
		keys = append(keys, s.key)
	}
	closest := schema.Closest(key, keys)
	for _, k := range keys {
		if k == closest || strings.HasPrefix(strings.ToLower(key), k) {
			near = append(near, k)
		}
	}
	if len(near) > 0 {
		return fmt.Errorf("there is no setting %q; did you mean %s?", key, anyOfWords(near))
	}
	return fmt.Errorf("there is no setting %q; the settings are %s", key, strings.Join(keys, ", "))
}

// checkMarks refuses marks of the queue that contradict each other.
func checkMarks(p memgpt.Policy) error {
	mark := func(v, standard float64) float64 {
		if v == 0 {
			return standard
		}
		return v
	}
	alert, flush, target := mark(p.Alert, .7), mark(p.Flush, 1), mark(p.Target, .5)
	if alert > flush || target >= flush {
		return fmt.Errorf("alert=%v, flush=%v and target=%v don't go together: the alert comes at the flush at the latest, and a flush evicts down to less than its own mark", alert, flush, target)
	}
	return nil
}

func wordSetting[T ~string](key, about, unset string, at func(*memgpt.Agent) *T, words ...T) setting {
	return setting{key, about, unset, func(a *memgpt.Agent, v string) error {
		if v != "" && !slices.Contains(words, T(v)) {
			return fmt.Errorf("it takes %s", anyOfWords(words))
		}
		*at(a) = T(v)
		return nil
	}, func(a *memgpt.Agent) string { return string(*at(a)) }}
}

func anyOfWords[T ~string](words []T) string {
	var list []string
	for _, w := range words {
		list = append(list, string(w))
	}
	last := len(list) - 1
	if last == 0 {
		return list[0]
	}
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

func countSetting(key, about, unset string, at func(*memgpt.Agent) *int, least, most int) setting {
	return setting{key, about, unset, func(a *memgpt.Agent, v string) error {
		n, err := 0, error(nil)
		if v != "" {
			n, err = strconv.Atoi(v)
		}
		if err != nil || n != 0 && n < least || n > most {
			return fmt.Errorf("it takes a whole number from %d to %d, or 0 for its default", least, most)
		}
		*at(a) = n
		return nil
	}, func(a *memgpt.Agent) string {
		if n := *at(a); n != 0 {
			return strconv.Itoa(n)
		}
		return ""
	}}
}

func spanSetting(key, about, unset string, at func(*memgpt.Agent) *time.Duration, least time.Duration) setting {
	return setting{key, about, unset, func(a *memgpt.Agent, v string) error {
		d, err := parseSpan(v)
		if err != nil || d < 0 || d > 0 && d < least {
			return fmt.Errorf("it takes a duration from %s, such as 90s, 30m, 720h or 30d, or 0 for none", spanText(least))
		}
		*at(a) = d
		return nil
	}, func(a *memgpt.Agent) string {
		if d := *at(a); d != 0 {
			return spanText(d)
		}
		return ""
	}}
}

// parseSpan reads a duration; beyond Go's units it knows days.
func parseSpan(v string) (time.Duration, error) {
	if v == "" || v == "0" || v == "off" || v == "none" {
		return 0, nil
	}
	if days, ok := strings.CutSuffix(v, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(math.Abs(n) < 36_500) {
			return 0, errors.New("no number of days")
		}
		return time.Duration(n * float64(24*time.Hour)), nil
	}
	return time.ParseDuration(v)
}

// spanText writes a duration without units that are 0: 30m, not 30m0s.
func spanText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func shareSetting(key, about, unset string, at func(*memgpt.Agent) *float64) setting {
	return setting{key, about, unset, func(a *memgpt.Agent, v string) error {
		p, err := 0.0, error(nil)
		if v != "" {
			percent, ok := strings.CutSuffix(v, "%")
			if p, err = strconv.ParseFloat(percent, 64); ok {
				p /= 100
			}
		}
		if err != nil || !(p >= 0 && p <= 1) {
			return errors.New("it takes a share above 0 and up to 1, such as .7 or 70%, or 0 for its default")
		}
		*at(a) = p
		return nil
	}, func(a *memgpt.Agent) string {
		if p := *at(a); p != 0 {
			return strconv.FormatFloat(p, 'g', -1, 64)
		}
		return ""
	}}
}

func textSetting(key, about, unset string, at func(*memgpt.Agent) *string, check func(string) error) setting {
	return setting{key, about, unset, func(a *memgpt.Agent, v string) error {
		v = memgpt.CleanText(v)
		if check != nil {
			if err := check(v); err != nil {
				return err
			}
		}
		*at(a) = v
		return nil
	}, func(a *memgpt.Agent) string { return *at(a) }}
}

func checkCron(line string) error {
	if line == "" {
		return nil
	}
	_, err := calendar.ParseCron(line)
	return err
}

// quietSetting are two settings in one, since they are thought of as one: the hours, and for what they hold.
func quietSetting() setting {
	const all = " all"
	return setting{"quiet", `hours in which heartbeats and repeating schedules wait, as 22:00-07:00; "22:00-07:00 all" for single reminders too`,
		"none", func(a *memgpt.Agent, v string) error {
			hours, both := strings.CutSuffix(v, all)
			hours = strings.TrimSpace(hours)
			if _, err := calendar.ParseHours(hours); err != nil {
				return err
			}
			a.Timers.Quiet, a.Timers.QuietAll = hours, both && hours != ""
			return nil
		}, func(a *memgpt.Agent) string {
			if a.Timers.QuietAll {
				return a.Timers.Quiet + all
			}
			return a.Timers.Quiet
		}}
}

func checkModel(name string) error {
	_, _, err := offline.Parse(name)
	return err
}

func checkZone(name string) error {
	if name == "Local" {
		return errors.New("it takes a name that means the same everywhere, such as Europe/Paris")
	}
	if _, err := time.LoadLocation(name); err != nil {
		return errors.New("it is no IANA time zone, such as Europe/Paris")
	}
	return nil
}
