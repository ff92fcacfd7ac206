package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// TestInputThatNeverEnds interrupts commands that wait for input: they end, as Ctrl-C asks.
func TestInputThatNeverEnds(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"load", "-"}, {"import", "-"}} {
		never, w := io.Pipe()
		defer func() { _ = w.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		var errs bytes.Buffer
		in := readerFunc(func(p []byte) (int, error) { cancel(); return never.Read(p) })
		env := map[string]string{"MEMGPT_HOME": t.TempDir(), "MEMGPT_MODEL": "offline"}
		if code := run(ctx, args, streams{in, io.Discard, &errs}, func(name string) string { return env[name] }); code == 0 {
			t.Errorf("%v: status 0, %s", args, errs.String())
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestStoppable reads all of an input, and the error at its end.
func TestStoppable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := io.MultiReader(strings.NewReader("all of it"), readerFunc(func([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }))
		ctx, cancel := context.WithCancel(t.Context())
		got, err := io.ReadAll(stoppable(ctx, in))
		if string(got) != "all of it" || err != io.ErrUnexpectedEOF {
			t.Errorf("read %q, %v", got, err)
		}
		cancel()
	})
	if _, _, err := openInput(t.Context(), filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("what isn't there was opened")
	}
}
