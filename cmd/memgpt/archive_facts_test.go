package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/store/sqlite"
	"memgpt/tool"
)

// replaceInHome stores a passage in place of another, as the agent does.
func replaceInHome(t *testing.T, home, old, text string, at time.Time) (id string) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(home, "memgpt.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	agent, err := s.AgentNamed(t.Context(), "", "default")
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Passages(t.Context(), "", agent.ID, []string{old})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	p := memgpt.Passage{ID: "passage-by-" + text[:3], Owner: agent.ID, Text: text, Time: at, About: tool.Whole(at, tool.SpanYear), Key: memgpt.HashKey(retrieve.SameKey(text)),
		From: []string{"message-7"}, Cause: memgpt.Cause{Call: "archival_memory_update"}}
	o := list[0]
	o.SupersededBy, o.Superseded, o.Ended = p.ID, at, p.About
	terms, length := new(retrieve.Analyzer).Analyze(store.IndexText{Text: text, Time: p.About})
	_, err = s.Commit(t.Context(), &store.Commit{Now: at, Passages: []memgpt.Passage{o, p}, DeadDocs: []store.DocRef{{Owner: agent.ID, ID: o.ID}},
		Docs: []store.Doc{{Owner: agent.ID, ID: p.ID, Kind: memgpt.KindPassage, Time: p.About, Length: length, Terms: terms}}})
	if err != nil {
		t.Fatal(err)
	}
	return p.ID
}

// TestArchiveOverTime shows a replacement, asks for what was known before it, and takes it back.
func TestArchiveOverTime(t *testing.T) {
	home := t.TempDir()
	good(t, home, "", "run", "-m", "hello")
	good(t, home, "Lin lives in Rome.", "load", "-")
	old := lines[passageLine](t, good(t, home, "", "archive", "list", "--json").out)[0].ID
	next := time.Date(time.Now().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	by := replaceInHome(t, home, old, "Oslo is where Lin lives.", next)
	year := next.Format("2006")

	found := func(args ...string) (list []string) {
		for _, h := range lines[hitLine](t, good(t, home, "", append([]string{"search", "--json", "where does Lin live"}, args...)...).out) {
			if h.Kind == memgpt.KindPassage {
				list = append(list, h.ID)
			}
		}
		return list
	}
	if got := strings.Join(found(), " "); got != by {
		t.Errorf("now there is %q, want %s", got, by)
	}
	today := time.Now().Format(time.DateOnly)
	if got := strings.Join(found("--as-of", today), " "); got != old {
		t.Errorf("as of %s there is %q, want %s", today, got, old)
	}
	if got := good(t, home, "", "archive", "list", "--as-of", today).out; !strings.Contains(got, old) || strings.Contains(got, by+"  ") {
		t.Errorf("as of today the list is %s", got)
	}
	wants(t, "show", good(t, home, "", "archive", "show", by).out, "about "+year, "learned ", "from message-7", "one of 2 versions")
	wants(t, "history", good(t, home, "", "archive", "history", old).out, old, "ended "+year, "replaced by "+by, "Oslo is where")
	r := command(t, home, "", nil, "search", "Lin", "--as-of", "soon")
	if r.code == 0 || !strings.Contains(r.err, "--as-of") || !strings.Contains(r.err, "2024-10") {
		t.Errorf("%+v", r)
	}

	wants(t, "undo", good(t, home, "", "archive", "undo", old).err, "in results again: "+old, "out of results: "+by)
	if got := strings.Join(found(), " "); got != old {
		t.Errorf("after it was taken back there is %q, want %s", got, old)
	}
	for id, word := range map[string]string{old: "replaced none", "passage-none": "no passage"} {
		if r := command(t, home, "", nil, "archive", "undo", id); r.code == 0 || !strings.Contains(r.err, word) {
			t.Errorf("undo %s: %+v", id, r)
		}
	}
	good(t, home, "", "forget", "term", "Oslo", "--yes") // what is out of results is forgotten as well
	if left := filesWith(t, home, "Oslo"); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
	good(t, home, "", "forget", "passage", old, "--yes") // with the earlier one of its two documents
	if left := append(filesWith(t, home, "in Rome"), filesWith(t, home, "rome")...); len(left) > 0 {
		t.Errorf("left: %s", left)
	}
}
