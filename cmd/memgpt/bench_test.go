package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memgpt"
	"memgpt/bench"
)

// TestBenchParts holds the parts that the benchmark is wired with: the pair writes two rows into the store's own file, a
// start of the program reads the store, and the server in another process holds its clients until it is told.
func TestBenchParts(t *testing.T) {
	t.Setenv(childEnv, "main")
	dir := t.TempDir()
	var errs bytes.Buffer
	a := &app{streams: streams{nil, nil, &errs}, getenv: os.Getenv}
	site, err := benchSites(dir)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := site.Pair(t.Context(), "user's text", "agent's text"); err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(filepath.Join(site.Home, "memgpt.db-wal"))
	if err != nil || !bytes.Contains(wal, []byte("user's text")) || !bytes.Contains(wal, []byte("agent's text")) {
		t.Errorf("the texts are not in the store's file: %v", err)
	}
	if err := a.benchStartup(t.Context(), site); err == nil || !strings.Contains(errs.String(), `no agent "default"`) {
		t.Errorf("log on a store without agents: %v, %s", err, errs.String())
	}
	if err := site.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if bench, err := startSlow(t.Context(), 2); err != nil {
		t.Error(err)
	} else {
		slowHolds(t, bench)
	}
}

// slowHolds sends two requests and releases them when both are held.
func slowHolds(t *testing.T, s *bench.Slow) {
	answers := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.Model.Generate(t.Context(), &memgpt.Request{Messages: []memgpt.Message{
				memgpt.TextMessage(memgpt.RoleSystem, memgpt.OriginSystem, "s"), memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "u")}}, nil)
			answers <- err
		}()
	}
	if err := s.Arrived(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-answers:
		t.Errorf("an answer came before the release: %v", err)
	default:
	}
	if err := s.Release(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("end the server: %v", err)
	}
}
