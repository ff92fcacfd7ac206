package main

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
)

func TestSettingsAreTakenIn(t *testing.T) {
	got, err := apply(memgpt.Agent{Name: "a", System: "old"}, []string{"prefetch=auto", "prefetch_budget=500", "prefetch_age=30d", "model= gpt=5 ",
		"window=4096", "zone=Asia/Shanghai", "heartbeat=90m", "protocol=native", "alert=60%", "flush=.9", "target=0.25", "page_size=7",
		"max_steps=20", "max_repeats=2", "system=default", "budget=$2.5/day", "budget_total=100", "budget_tokens=500_000/day",
		"budget_tokens_total=7", "cron=0 9 * * 1-5", "quiet=22:00-07:00 all",
		"catch_up=skip", "timer_turns=7", "tidy=on", "tidy_turns=5", "tidy_idle=15m", "tidy_model=gpt-9", "archives=law, the manuals,law"})
	if err != nil {
		t.Fatal(err)
	}
	want := memgpt.Agent{Name: "a", Model: "gpt=5", Window: 4096, Zone: "Asia/Shanghai", Heartbeat: 90 * time.Minute,
		Protocol: memgpt.ProtocolNative, Policy: memgpt.Policy{Alert: .6, Flush: .9, Target: .25, PageSize: 7, MaxSteps: 20, MaxRepeats: 2},
		Prefetch: memgpt.Prefetch{Mode: memgpt.PrefetchAuto, Budget: 500, Age: 720 * time.Hour},
		Budget:   memgpt.Budget{Nano: 2_500_000_000, NanoTotal: 100_000_000_000, Tokens: 500_000, TokensTotal: 7},
		Timers:   memgpt.Timers{Cron: "0 9 * * 1-5", Quiet: "22:00-07:00", QuietAll: true, CatchUp: "skip", Turns: 7}, Tidy: memgpt.Tidy{On: true, Turns: 5, Idle: 15 * time.Minute, Model: "gpt-9"}, Archives: []string{"law", "the manuals"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var pairs []string // what is shown can be set
	for _, s := range settings() {
		pairs = append(pairs, s.key+"="+s.write(&want))
	}
	if again, err := apply(memgpt.Agent{Name: "a"}, pairs); err != nil || cmp.Diff(want, again) != "" {
		t.Errorf("%v: %v, %s", pairs, err, cmp.Diff(want, again))
	}
	for i := range pairs {
		pairs[i], _, _ = strings.Cut(pairs[i], "=")
		pairs[i] += "="
	}
	if bare, err := apply(want, pairs); err != nil || cmp.Diff(memgpt.Agent{Name: "a"}, bare) != "" {
		t.Errorf("%v: %v, %s", pairs, err, cmp.Diff(memgpt.Agent{Name: "a"}, bare))
	}
}

func TestWrongSettingsAreNamed(t *testing.T) {
	for pair, want := range map[string]string{
		"prefetch=maybe": "off, on or auto", "prefetch=ON": "off, on or auto", "prefetch_budget=5": "from 100", "prefetch_budget=1e3": "whole number",
		"prefetch_age=-1h": "duration", "prefetch_age=soon": "duration", "prefetch_age=NaNd": "duration", "prefetch_age=9999999d": "duration",
		"heartbeat=1ms": "from 1s", "window=-1": "from 1024", "window=99999999999": "from 1024", "zone=Mars/Olympus": "IANA", "zone=Local": "everywhere",
		"zone=../../etc/passwd": "IANA", "protocol=telnet": "memgpt or native", "alert=70": "share", "alert=NaN": "share", "alert=-.1": "share", "alert=x%": "share",
		"page_size=0.5": "whole number", "budget=-1": "in dollars", "budget=0": "for no bound", "budget=1.0000000001": "in dollars", "budget_tokens=2.5": "whole number", "max_steps=1000000": "from 1", "prefetchmode=on": "did you mean prefetch or prefetch_age?",
		"max-steps=3": "did you mean max_steps?", "colour=red": "the settings are prefetch, ", "=x": "the settings are", "window": "key=value", "": "key=value",
		"cron=9:00": "1 fields instead of 5", "quiet=22:00": "22:00-07:00", "quiet=7:00-7:00": "same time",
		"catch_up=maybe": "skip, once or all", "timer_turns=-1": "from 1", "tidy=yes": "on or off", "tidy_turns=x": "whole number", "tidy_idle=1ms": "from 1s",
		"alert=.2 flush=.1": "don't go together", "target=.9 flush=.8": "don't go together", "window=2048 window=4096": "set twice",
	} {
		before := memgpt.Agent{Window: 9000}
		if _, err := apply(before, strings.Split(pair, " ")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", pair, err, want)
		}
	}
	_, err := apply(memgpt.Agent{}, []string{"window=1", "zone=x", "page_size=3"})
	if err == nil || !strings.Contains(err.Error(), "window") || !strings.Contains(err.Error(), "zone") || strings.Contains(err.Error(), "page_size") {
		t.Errorf("not all that is wrong was named: %v", err)
	}
	odd := memgpt.Agent{Policy: memgpt.Policy{Alert: .9, Flush: .5}} // made by a program; other settings can still be changed
	if _, err := apply(odd, []string{"window=4096"}); err != nil {
		t.Error(err)
	}
}

func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"window=4096", "prefetch_age=1.5d", "alert=70%", "zone=UTC", "system=\x00", "=", "heartbeat=-9223372036854775808ns"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pair string) {
		agent, err := apply(memgpt.Agent{}, []string{pair})
		if err != nil {
			return
		}
		p := agent.Policy
		if agent.Window < 0 || agent.Heartbeat < 0 || agent.Prefetch.Age < 0 || !(p.Alert >= 0 && p.Alert <= 1) || math.IsNaN(p.Flush) {
			t.Errorf("%q gave %+v", pair, agent)
		}
		for _, s := range settings() {
			again := memgpt.Agent{}
			if err := s.read(&again, s.write(&agent)); err != nil || s.write(&again) != s.write(&agent) {
				t.Errorf("%q: %s=%q can't be set again: %v", pair, s.key, s.write(&agent), err)
			}
		}
	})
}

func TestAgentsCommand(t *testing.T) {
	home := t.TempDir()
	if r := good(t, home, "", "agents"); r.out != "" || !strings.Contains(r.err, "there are no agents") {
		t.Errorf("%+v", r)
	}
	good(t, home, "", "run", "-m", "hello")
	show := func() agentLine {
		t.Helper()
		got := lines[agentLine](t, good(t, home, "", "agents", "show", "default", "--json").out)
		if len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		return got[0]
	}
	if l := show(); l.Settings["prefetch"] != "auto" || l.Threads[0] != "main" {
		t.Errorf("a new agent has %+v", l)
	}
	before := show()
	r := good(t, home, "", "agents", "set", "default", "prefetch=on", "window=4096")
	if !strings.Contains(r.err, "prefetch is now on (was auto)") || !strings.Contains(r.err, "window is now 4096 (was that of MEMGPT_WINDOW, or of the model)") {
		t.Errorf("%+v", r)
	}
	after := show()
	if after.Settings["prefetch"] != "on" || after.Settings["window"] != "4096" || after.Version != before.Version+1 {
		t.Errorf("got %+v", after)
	}
	for _, args := range [][]string{{"default", "window=8192", "zone=Nowhere"}, {"default", "window=8192", "windo=9"}, {"nobody", "window=8192"}, {"default"}, {}} {
		if r := command(t, home, "", nil, append([]string{"agents", "set"}, args...)...); r.code != 1 || r.err == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if diff := cmp.Diff(after, show()); diff != "" {
		t.Errorf("a wrong key changed something: %s", diff)
	}
	good(t, home, "", "agents", "set", "default", "window=4096") // no change, no commit
	if l := show(); l.Version != after.Version {
		t.Errorf("version %d of nothing", l.Version)
	}
	if r := good(t, home, "", "agents"); !strings.Contains(r.out, "default") || !strings.Contains(r.out, "prefetch=on window=4096") {
		t.Errorf("%+v", r)
	}
	if r := good(t, home, "", "agents", "show", "default"); !strings.Contains(strings.Join(strings.Fields(r.out), " "), " page_size (5) ") {
		t.Errorf("%+v", r)
	}
}

func TestSettingsStayWhereTheEnvironmentIsSilent(t *testing.T) {
	home := t.TempDir()
	good(t, home, "", "run", "-m", "hello", "--prefetch", "off")
	good(t, home, "", "agents", "set", "default", "heartbeat=90m")
	good(t, home, "", "run", "-m", "hello again")
	settingsOf := func() map[string]string {
		return lines[agentLine](t, good(t, home, "", "agents", "--json").out)[0].Settings
	}
	if s := settingsOf(); s["heartbeat"] != "1h30m" || s["prefetch"] != "off" {
		t.Errorf("got %v", s)
	}
	r := command(t, home, "", []string{"MEMGPT_HEARTBEAT=0"}, "run", "-m", "hi", "--prefetch", "on")
	if s := settingsOf(); r.code != 0 || s["heartbeat"] != "" || s["prefetch"] != "on" || !strings.Contains(r.err, "prefetch is now on (was off)") {
		t.Errorf("got %v, %+v", s, r)
	}
	if r := command(t, home, "", nil, "run", "-m", "hi", "--prefetch", "perhaps"); r.code != 1 || !strings.Contains(r.err, "off, on or auto") {
		t.Errorf("%+v", r)
	}
}

func TestSettingsMadeMeanwhileAreKept(t *testing.T) {
	home := t.TempDir()
	good(t, home, "", "run", "-m", "hello")
	env := map[string]string{"MEMGPT_HOME": home, "MEMGPT_MODEL": "offline", "MEMGPT_EMBEDDER": "none"}
	var errs strings.Builder
	a := &app{streams: streams{strings.NewReader(""), io.Discard, &errs}, getenv: func(name string) string { return env[name] }, agentName: "default"}
	defer a.close()
	if err := a.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	stale, err := a.known(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.setAgent(t.Context(), stale, []string{"max_steps=7", "window=4096"}); err != nil {
		t.Fatal(err)
	}
	got, err := a.setAgent(t.Context(), stale, []string{"window=8192"}) // read before the other change
	if err != nil || got.Policy.MaxSteps != 7 || got.Window != 8192 {
		t.Errorf("got %+v, %v", got, err)
	}
	if now, err := a.known(t.Context()); err != nil || cmp.Diff(got, now) != "" {
		t.Errorf("%v, %s", err, cmp.Diff(got, now))
	}
	if !strings.Contains(errs.String(), "window is now 8192 (was 4096)") {
		t.Errorf("said was %s", errs.String())
	}
}

func TestContextShowsPrefetch(t *testing.T) {
	home := t.TempDir()
	good(t, home, "The oar of the green boat leans at the smithy.\n", "load", "--source", "oars.txt", "-")
	said := good(t, home, "", "run", "--json", "--prefetch", "on", "-m", "Where does the oar of the green boat lean?")
	if !strings.Contains(said.out, `"update":"handed_over"`) || strings.Contains(said.out, `"update":"unknown"`) {
		t.Errorf("%s", said.out)
	}
	r := good(t, home, "", "context")
	for _, want := range []string{`{"type":"prefetch"`, "\n   why passage-", "score ", "prefetch: on; in the newest turn 1 texts in "} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in %s", want, r.out)
		}
	}
	var got struct {
		Prefetch handedContext `json:"prefetch"`
	}
	if err := json.Unmarshal([]byte(good(t, home, "", "context", "--json").out), &got); err != nil {
		t.Fatal(err)
	}
	p := got.Prefetch
	if p.Mode != memgpt.PrefetchOn || len(p.Entries) != 1 || len(p.Entries[0].Hits) != 1 || p.Entries[0].Hits[0].Why == "" ||
		p.Newest == nil || p.Newest.Tokens <= 0 || p.Newest.Turn != p.Entries[0].Turn {
		t.Errorf("got %+v", p)
	}
	good(t, home, "", "run", "--thread", "empty", "--prefetch", "off", "-m", "Where is it?")
	if r := good(t, home, "", "context", "--thread", "empty"); !strings.Contains(r.out, "\nprefetch: off\n") {
		t.Errorf("%s", r.out)
	}
}

func TestContextSaysWhyNothingWasHandedOver(t *testing.T) {
	home := t.TempDir()
	good(t, home, "", "run", "--prefetch", "on", "-m", "Where is the zeppelin?")
	if r := good(t, home, "", "context"); !strings.Contains(r.out, "prefetch: on; nothing was handed over in the newest turn: ") {
		t.Errorf("%s", r.out)
	}
}
