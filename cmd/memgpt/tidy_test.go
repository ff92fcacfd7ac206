package main

import (
	"path/filepath"
	"strings"
	"testing"

	"memgpt"
	"memgpt/store"
)

// forgetful is a stand-in that keeps nothing by itself, so that tidying has something to do.
var forgetful = []string{"MEMGPT_MODEL=offline:forget_save=1,seed=1"}

func talkTo(t *testing.T, home, text string) ran {
	t.Helper()
	r := command(t, home, "", forgetful, "run", "-m", text)
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	return r
}

// TestTidyAtTheTerminal: what is due is shown with its reason, runs by hand, is told with who did it and why, and is undone.
func TestTidyAtTheTerminal(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	talkTo(t, home, "My name is Ines and I live in Porto.")
	if r := refusedEvent(t, home, "", "tidy", "default"); !strings.Contains(r.err, "tidy=on") {
		t.Errorf("%+v", r)
	}
	good(t, home, "", "agents", "set", "default", "tidy=on", "tidy_idle=2h", "tidy_model=offline")
	list := eventLines(t, home)
	if len(list) != 1 || list[0].Type != memgpt.EventTidy || list[0].Thread != store.TidyThread || !strings.Contains(list[0].Why, "nobody wrote for 2h") {
		t.Errorf("%+v", list)
	}
	if r := refusedEvent(t, home, "", "events", "cancel", list[0].ID); !strings.Contains(r.err, "tidy=off") {
		t.Errorf("%+v", r)
	}
	if r := good(t, home, "", "tidy", "default"); r.out != "" || !strings.Contains(r.err, "nobody wrote for 2h") {
		t.Errorf("%+v", r)
	}
	done := good(t, home, "", "tidy", "default", "--now")
	turn, _, _ := strings.Cut(done.out, " ")
	if !strings.HasPrefix(turn, "turn-") || !strings.Contains(done.out, "1 change of blocks") {
		t.Fatalf("%+v", done)
	}
	if r := good(t, home, "", "tidy", "default", "--now"); r.out != "" || !strings.Contains(r.err, "nothing is new") || len(eventLines(t, home)) != 0 {
		t.Errorf("%+v", r)
	}
	edits := lines[blockLine](t, good(t, home, "", "blocks", "default", "human", "--history", "--json").out)
	last := edits[len(edits)-1]
	if last.Turn != turn || last.Why != "stated by the user" || last.By != "memory work of agent default" || !strings.Contains(last.Value, "Porto") {
		t.Errorf("%+v", last)
	}
	if r := good(t, home, "", "blocks", "default", "--history"); !strings.Contains(r.out, "     + The user lives in Porto.\n") || !strings.Contains(r.out, "why: stated") {
		t.Errorf("%s", r.out)
	}
	if r := good(t, home, "", "log", "--thread", store.TidyThread); !strings.Contains(r.out, "I live in Porto") {
		t.Errorf("%s", r.out)
	}
	if r := good(t, home, "", "search", "Porto"); strings.Contains(r.out, store.TidyThread) || strings.Count(r.out, "Porto") != 1 {
		t.Errorf("tidying is found: %s", r.out)
	}
	if r := good(t, home, "", "tidy", "undo", "default", turn); !strings.Contains(r.out, "block human holds again") {
		t.Errorf("%+v", r)
	}
	if r := good(t, home, "", "blocks", "default", "human"); strings.Contains(r.out, "Porto") {
		t.Errorf("%s", r.out)
	}
	good(t, home, "", "blocks", "undo", "default", "human")
	if r := good(t, home, "", "blocks", "default", "human"); !strings.Contains(r.out, "The user lives in Porto.") {
		t.Errorf("%s", r.out)
	}
	for args, want := range map[string]string{
		"tidy undo default turn-none":       "turn",
		"tidy nobody":                       `no agent "nobody"`,
		"blocks default moods":              "its blocks are persona, human",
		"blocks undo default human --to 77": "no version 77",
		"blocks undo default human --to 0":  "from 1 on",
	} {
		if r := refusedEvent(t, home, "", strings.Fields(args)...); !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v, want %s", args, r, want)
		}
	}
	if r := refusedEvent(t, home, "", "run", "-m", "obey", "--thread", store.TidyThread); !strings.Contains(r.err, "the system's own") {
		t.Errorf("%+v", r)
	}
}

// TestRunDoesItsShareOfTidying: a run tidies what was due before it began, after its answer; what its own turn makes due is left
// to the next.
func TestRunDoesItsShareOfTidying(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	talkTo(t, home, "My name is Ines.")
	good(t, home, "", "agents", "set", "default", "tidy=on", "tidy_turns=2", "tidy_idle=100h", "tidy_model=offline")
	talkTo(t, home, "I live in Porto.")
	human := func() string { return good(t, home, "", "blocks", "default", "human").out }
	if text := human(); strings.Contains(text, "Porto") || len(eventLines(t, home)) != 1 {
		t.Errorf("%s", text)
	}
	if r := talkTo(t, home, "Good morning."); strings.Count(r.out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	if text := human(); !strings.Contains(text, "Porto") || !strings.Contains(text, "Ines") {
		t.Errorf("%s", text)
	}
	good(t, home, "", "agents", "set", "default", "tidy=off")
	talkTo(t, home, "I work at Quillmoor Press.")
	talkTo(t, home, "Bye.")
	talkTo(t, home, "Bye again.")
	if text := human(); strings.Contains(text, "Quillmoor") || len(eventLines(t, home)) != 0 {
		t.Errorf("%s: %+v", text, eventLines(t, home))
	}
}
