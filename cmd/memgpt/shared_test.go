package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestSharedArchives goes the way of an archive: loaded, read by two agents of three, looked at, and forgotten in part.
func TestSharedArchives(t *testing.T) {
	home, docs := t.TempDir(), t.TempDir()
	file := writeFile(t, docs, "harbour.md", "# Ferry\n\nThe ferry to Skerry Island leaves at seven and at noon.\n\n# Kiosk\n\nTickets are sold at the kiosk.\n")
	wants(t, "made", good(t, home, "", "load", file, "--archive", "harbour").err, `archive "harbour" is new`, "harbour.md: 2 passages stored")
	wants(t, "again", good(t, home, "", "load", file, "--archive", "harbour").err, "harbour.md: 0 passages stored, 2 were there already")
	wants(t, "no agent was made", good(t, home, "", "agents").err, "there are no agents")
	for _, name := range []string{"default", "Ben", "Cleo"} {
		good(t, home, "", "run", "--agent", name, "-m", "Hello there!")
	}
	for _, name := range []string{"default", "Ben"} {
		wants(t, "set", good(t, home, "", "agents", "set", name, "archives=harbour").err, "archives is now harbour (was none)")
	}
	for name, found := range map[string]int{"default": 1, "Ben": 1, "Cleo": 0} {
		hits := lines[hitLine](t, good(t, home, "", "search", "--agent", name, "--json", "ferry to Skerry Island").out)
		n := 0
		for _, h := range hits {
			if h.Archive == "harbour" && strings.Contains(h.Text, "at noon") {
				n++
			}
		}
		if n != found {
			t.Errorf("%s finds %+v", name, hits)
		}
	}
	wants(t, "for people", good(t, home, "", "search", "ferry").out, "of archive harbour", "at noon")
	wants(t, "an answer", good(t, home, "", "run", "--agent", "Ben", "-m", "when does the ferry to Skerry Island leave?").out, "at noon")
	names := lines[archiveLine](t, good(t, home, "", "archive", "names", "--json").out)
	if len(names) != 1 || names[0].Name != "harbour" || names[0].Passages != 2 || strings.Join(names[0].Readers, " ") != "default Ben" && strings.Join(names[0].Readers, " ") != "Ben default" {
		t.Errorf("the archives are %+v", names)
	}
	list := lines[passageLine](t, good(t, home, "", "archive", "list", "--archive", "harbour", "--json").out)
	if len(list) != 2 || len(lines[passageLine](t, good(t, home, "", "archive", "list", "--json").out)) != 0 {
		t.Fatalf("the archive lists %+v", list)
	}
	wants(t, "show", good(t, home, "", "archive", "show", "--archive", "harbour", list[0].ID).out, "at seven and at noon")
	wants(t, "index", good(t, home, "", "index", "--wait").out, "none is left")
	wants(t, "delete", good(t, home, "", "archive", "delete", "--archive", "harbour", list[1].ID).err, "1 passages were taken out of results")
	wants(t, "forgotten", good(t, home, "", "forget", "passage", "--archive", "harbour", "--search", "ferry Skerry", "--yes").err, "erased: 1 passages")
	if found := filesWith(t, home, "Skerry Island leaves"); len(found) > 0 {
		t.Errorf("what was forgotten is in %v", found)
	}
	wants(t, "taken back", good(t, home, "", "agents", "set", "Ben", "archives=").err, "archives is now none")
}

// TestSharedArchivesRefuse: what can't be is said, and nothing is made or changed.
func TestSharedArchivesRefuse(t *testing.T) {
	home, docs := t.TempDir(), t.TempDir()
	good(t, home, "", "run", "-m", "hi")
	file := writeFile(t, docs, "a.txt", "Some text about a harbour.")
	for want, args := range map[string][]string{
		`no shared archive "harbour"`: {"agents", "set", "default", "archives=harbour"},
		`no shared archive "haven"`:   {"archive", "list", "--archive", "haven"},
		`no shared archive "shore"`:   {"forget", "passage", "--archive", "shore", "--source", "a.txt"},
		"may have no commas":          {"load", file, "--archive", "a,b"},
		"60 characters":               {"load", file, "--archive", strings.Repeat("x", 61)},
		"no such file":                {"load", filepath.Join(docs, "absent"), "--archive", "new"},
	} {
		if r := command(t, home, "", nil, args...); r.code == 0 || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%v: status %d, %q, want %s", args, r.code, r.err, want)
		}
	}
	if r := good(t, home, "", "archive", "names"); r.out != "" {
		t.Errorf("archives were made: %s", r.out)
	}
	good(t, home, "", "load", file, "--archive", "harbour")
	for want, args := range map[string][]string{
		"near to it: harbour":                  {"agents", "set", "default", "archives=harbor"},
		`archive "harbour" has no passage "x"`: {"archive", "show", "--archive", "harbour", "x"},
		`archive "harbour" has no passages of`: {"archive", "delete", "--archive", "harbour", "--source", "b.txt"},
		`not in the archive "harbour"`:         {"forget", "passage", "--archive", "harbour", "x"},
	} {
		if r := command(t, home, "", nil, args...); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("%v: status %d, %q, want %s", args, r.code, r.err, want)
		}
	}
}
