package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memgpt"
)

// filesWith names the files of a home that hold a text.
func filesWith(t *testing.T, home, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if at := bytes.Index(data, []byte(text)); at >= 0 {
			found = append(found, fmt.Sprintf("%s: %q", filepath.Base(path), data[max(0, at-200):min(len(data), at+100)]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestForgetCommand(t *testing.T) {
	home := t.TempDir()
	good(t, home, "", "run", "-m", "My sister Ottilie has the number 4711-Q.")
	good(t, home, "", "run", "-m", "I like tea.")
	file := filepath.Join(t.TempDir(), "isle.txt")
	if err := os.WriteFile(file, []byte("The treasure lies under the palm of Skull Island.\n\nNobody knows."), 0o600); err != nil {
		t.Fatal(err)
	}
	good(t, home, "", "load", file)
	log := lines[logLine](t, good(t, home, "", "log", "--json").out)
	var id string
	for _, l := range log {
		if l.Role == memgpt.RoleUser && strings.Contains(l.Text, "Ottilie") {
			id = l.ID
		}
	}

	// A preview changes nothing, and says so.
	for _, args := range [][]string{{"forget", "message", id}, {"forget", "term", "Ottilie"}, {"forget", "passage", "--source", "isle.txt"}} {
		r := good(t, home, "y\n", args...)
		if !strings.Contains(r.out, "to be erased: ") || !strings.Contains(r.err, "nothing was erased; --yes erases it") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if after := good(t, home, "", "log", "--json").out; len(lines[logLine](t, after)) != len(log) || len(filesWith(t, home, "Ottilie")) == 0 {
		t.Error("a preview changed something")
	}

	if r := good(t, home, "", "forget", "message", id, "--yes"); !strings.Contains(r.out, "Ottilie has the number") || !strings.Contains(r.err, "erased: 1 messages") {
		t.Errorf("%+v", r)
	}
	if found := filesWith(t, home, "sister Ottilie has"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	good(t, home, "", "forget", "term", "ottilie", "--yes") // what the stand-in said of it
	if found := filesWith(t, home, "Ottilie"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if r := good(t, home, "", "log"); !strings.Contains(r.out, "notice: forgotten by the owner on 2") || !strings.Contains(r.out, "I like tea") {
		t.Errorf("%s", r.out)
	}
	if r := good(t, home, "", "forget", "message", id, "--yes"); !strings.Contains(r.out, "that was forgotten already") {
		t.Errorf("%+v", r)
	}
	if r := good(t, home, "", "forget", "term", "Ottilie", "--yes"); !strings.Contains(r.out, "nothing was found to forget") {
		t.Errorf("%+v", r)
	}

	if r := good(t, home, "", "forget", "passage", "--search", "treasure palm", "--limit", "1", "--yes"); !strings.Contains(r.err, "1 passages") {
		t.Errorf("%+v", r)
	}
	if found := filesWith(t, home, "under the palm"); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if r := good(t, home, "", "run", "--thread", "other", "-m", "This is between us: plum cake."); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if r := good(t, home, "", "forget", "thread", "other", "--yes"); !strings.Contains(r.err, "1 conversations") || len(filesWith(t, home, "plum cake")) > 0 {
		t.Errorf("%+v %v", r, filesWith(t, home, "plum cake"))
	}
	for _, args := range [][]string{{"forget", "message", "nope"}, {"forget", "passage"}, {"forget", "passage", "x", "--source", "y"}, {"forget", "thread", "none"},
		{"forget", "agent", "none"}, {"forget", "term", " "}, {"forget", "passage", "--search", "x", "--limit", "0"}} {
		if r := command(t, home, "", nil, args...); r.code != 1 || r.err == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
	good(t, home, "", "run", "--agent", "b", "-m", "I am of b.")
	if r := good(t, home, "", "forget", "agent", "default", "--yes"); !strings.Contains(r.err, "erased: ") || len(filesWith(t, home, "I like tea")) > 0 {
		t.Errorf("%+v", r)
	}
	if r := command(t, home, "", nil, "log"); r.code != 1 || !strings.Contains(r.err, "there is no agent") {
		t.Errorf("%+v", r)
	}
	if r := good(t, home, "", "log", "--agent", "b"); !strings.Contains(r.out, "I am of b.") {
		t.Errorf("%+v", r)
	}
}
