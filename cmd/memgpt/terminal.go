package main

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// terminal writes results to a terminal. What models and documents say holds no power over it: control characters are
// left out.
type terminal struct{ file *os.File }

func (t terminal) Write(p []byte) (int, error) {
	if _, err := t.file.WriteString(printable(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// guarded returns w, or a terminal where it is one. Files and pipes get every byte.
func guarded(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return terminal{f}
	}
	return w
}

// printable returns a text without control characters, but for line ends and tabs.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
