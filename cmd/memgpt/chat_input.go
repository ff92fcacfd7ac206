package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// inputLine is a line of input, or why none follows. Who took it closes done.
type inputLine struct {
	text string
	err  error
	done chan struct{}
}

// input reads lines until ctx ends or the input does. At a terminal it is put into raw mode, where what the agent says does
// not mix with what the person types; restore ends that. leave is called for Ctrl-C where no signal can be sent.
func (c *conversation) input(ctx context.Context, leave func()) (lines <-chan inputLine, restore func(), err error) {
	in, ok := c.in.(*os.File)
	c.person = ok && term.IsTerminal(int(in.Fd()))
	screen, ok := c.err.(*os.File)
	r := bufio.NewReader(c.in)
	if !c.person || !ok || !term.IsTerminal(int(screen.Fd())) || os.Getenv("TERM") == "dumb" || runtime.GOOS == "windows" {
		return readInput(ctx, func() (string, error) { return c.plainLine(r) }), func() {}, nil
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("set up the terminal: %w", err)
	}
	out, errs := c.out, c.err
	edit := &lineEditor{prompt: "> ", term: screen, width: func() int {
		w, _, err := term.GetSize(int(screen.Fd()))
		if err != nil || w <= 0 {
			return 80
		}
		return w
	}, interrupt: func() {
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(os.Interrupt) != nil {
			leave()
		}
	}}
	c.err = edit
	if _, ok := out.(terminal); ok {
		c.out = edit
	}
	_, _ = io.WriteString(screen, askPaste)
	return readInput(ctx, func() (string, error) { return edit.readLine(r) }), func() {
		edit.close()
		_, _ = io.WriteString(screen, leavePaste)
		_ = term.Restore(int(in.Fd()), before)
		c.out, c.err = out, errs
	}, nil
}

// plainLine reads a line, after a prompt where a person types it.
func (c *conversation) plainLine(r *bufio.Reader) (string, error) {
	if c.person {
		_, _ = fmt.Fprint(c.err, "> ")
	}
	line, err := r.ReadString('\n')
	if line != "" && errors.Is(err, io.EOF) {
		err = nil // the end comes with the next read
	}
	return trimNewline(strings.TrimPrefix(line, "\ufeff")), err
}

// readInput reads lines in a goroutine that ends with the input: a read from a terminal can't be called off.
func readInput(ctx context.Context, read func() (string, error)) <-chan inputLine {
	lines := make(chan inputLine)
	go func() {
		for {
			l := inputLine{done: make(chan struct{})}
			l.text, l.err = read()
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
			if l.err != nil {
				return
			}
			select { // a prompt doesn't come before the answer, where that is waited for
			case <-l.done:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
