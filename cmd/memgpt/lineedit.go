package main

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// lineEditor shares a terminal in raw mode between a person who types a line and a program that writes: what is written
// stands above the line, which is drawn again below it. The line takes one row of the screen, cut around the cursor where
// it is longer. It is safe for concurrent use; one goroutine reads.
type lineEditor struct {
	prompt    string
	width     func() int // columns of the terminal
	interrupt func()     // called for Ctrl-C

	mu      sync.Mutex
	term    io.Writer
	line    []rune
	at      int    // cursor, as an index of line
	partial []byte // what was written of a row that is not complete
	over    bool   // the line isn't drawn any more
	past    []string
	back    int    // how far back in past the line is from
	kept    []rune // the new line, while one of past is shown
}

// Control characters that a person types.
const (
	keyHome, keyLeft, keyInterrupt, keyEnd, keyEnd2, keyRight = 1, 2, 3, 4, 5, 6
	keyBackspace, keyEnter2, keyKill, keyClear, keyEnter      = 8, 10, 11, 12, 13
	keyDown, keyUp, keyDrop, keyWord, keyEscape, keyDelete    = 14, 16, 21, 23, 27, 127
)

// readLine returns what the person types up to Enter, and what he pastes. It returns io.EOF for Ctrl-D on an empty line.
func (l *lineEditor) readLine(in *bufio.Reader) (string, error) {
	l.change(func() {})
	for {
		r, _, err := in.ReadRune()
		if err != nil {
			return "", err
		}
		switch r {
		case keyEnter, keyEnter2:
			return l.enter(), nil
		case keyInterrupt:
			l.interrupt()
		case keyEnd:
			if l.empty() {
				return "", io.EOF
			}
		case keyEscape:
			l.escape(in)
		default:
			l.change(func() { l.key(r) })
		}
	}
}

func (l *lineEditor) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.line) == 0
}

// enter takes the line, which stays on the screen.
func (l *lineEditor) enter() (text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text = string(l.line)
	l.erase()
	_, _ = io.WriteString(l.term, l.prompt+strings.ReplaceAll(text, "\n", "\r\n")+"\r\n")
	if strings.TrimSpace(text) != "" {
		l.past = append(l.past, text)
	}
	l.line, l.at, l.back, l.kept = nil, 0, 0, nil
	return text
}

// change changes the line and draws it.
func (l *lineEditor) change(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
	l.erase()
	l.draw()
}

// key does what a key does. Callers hold l.mu.
func (l *lineEditor) key(r rune) {
	switch r {
	case keyHome:
		l.at = 0
	case keyEnd2:
		l.at = len(l.line)
	case keyLeft:
		l.at = max(l.at-1, 0)
	case keyRight:
		l.at = min(l.at+1, len(l.line))
	case keyBackspace, keyDelete:
		l.cut(l.at - 1)
	case keyDrop:
		l.cut(0)
	case keyKill:
		l.line = l.line[:l.at]
	case keyWord:
		l.cut(wordBefore(l.line[:l.at]))
	case keyUp:
		l.recall(1)
	case keyDown:
		l.recall(-1)
	case keyClear:
		_, _ = io.WriteString(l.term, "\x1b[2J\x1b[H")
	case '\t':
		l.insert(' ')
	default:
		if !unicode.IsControl(r) && r != utf8.RuneError {
			l.insert(r)
		}
	}
}

func (l *lineEditor) insert(text ...rune) {
	l.line = slices.Insert(l.line, l.at, text...)
	l.at += len(text)
}

// cut takes out what stands between from and the cursor.
func (l *lineEditor) cut(from int) {
	from = max(from, 0)
	l.line = append(l.line[:from], l.line[l.at:]...)
	l.at = from
}

func wordBefore(line []rune) int {
	i := len(line)
	for i > 0 && unicode.IsSpace(line[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(line[i-1]) {
		i--
	}
	return i
}

// recall shows an earlier line, or a later one.
func (l *lineEditor) recall(by int) {
	back := l.back + by
	if back < 0 || back > len(l.past) {
		return
	}
	if l.back == 0 {
		l.kept = l.line
	}
	if l.back = back; back == 0 {
		l.line = l.kept
	} else {
		l.line = []rune(l.past[len(l.past)-back])
	}
	l.at = len(l.line)
}

// escape reads the rest of a key that sends a sequence: ESC [ (or O), parameters, a letter or ~. An Escape that a person
// types alone does nothing, and takes nothing of what follows.
func (l *lineEditor) escape(in *bufio.Reader) {
	alone := in.Buffered() == 0
	r, _, err := in.ReadRune()
	if err != nil {
		return
	}
	if r != '[' && r != 'O' {
		if alone || unicode.IsControl(r) {
			_ = in.UnreadRune() // can't fail after a read
		}
		return
	}
	var sent string
	for {
		r, _, err := in.ReadRune()
		if err != nil {
			return
		}
		if unicode.IsControl(r) {
			_ = in.UnreadRune()
			return
		}
		if sent += string(r); r < 0x20 || r > 0x3f {
			break
		}
	}
	if sent == pasteBegins {
		l.paste(in)
		return
	}
	keys := map[string]rune{"A": keyUp, "B": keyDown, "C": keyRight, "D": keyLeft, "H": keyHome, "F": keyEnd2,
		"1~": keyHome, "7~": keyHome, "4~": keyEnd2, "8~": keyEnd2}
	l.change(func() {
		if sent == "3~" && l.at < len(l.line) { // the Delete key
			l.at++
			l.cut(l.at - 1)
		} else if k, ok := keys[sent]; ok {
			l.key(k)
		}
	})
}

// What a terminal that is asked to sends around a text that is pasted, after ESC [; and how it is asked.
const (
	pasteBegins, pasteEnds = "200~", "\x1b[201~"
	askPaste, leavePaste   = "\x1b[?2004h", "\x1b[?2004l"
)

// paste takes a pasted text into the line whole, its line ends included: it is one message, and no line of it is a command.
func (l *lineEditor) paste(in *bufio.Reader) {
	var text []rune
	for !strings.HasSuffix(string(text[max(0, len(text)-len(pasteEnds)):]), pasteEnds) {
		r, _, err := in.ReadRune()
		if err != nil {
			break
		}
		text = append(text, r)
	}
	pasted := strings.TrimSuffix(string(text), pasteEnds)
	pasted = strings.ReplaceAll(strings.ReplaceAll(pasted, "\r\n", "\n"), "\r", "\n")
	l.change(func() {
		l.insert([]rune(printable(strings.TrimRight(pasted, "\n")))...)
	})
}

// erase takes the line off the screen. Callers hold l.mu.
func (l *lineEditor) erase() { _, _ = io.WriteString(l.term, "\r\x1b[K") }

// draw writes the prompt and as much of the line as fits one row. The cursor gets to its place by writing what stands
// before it again, since only the terminal knows how wide characters are.
func (l *lineEditor) draw() {
	if l.over {
		return
	}
	from, to := l.window()
	text := l.prompt + string(l.line[from:to])
	if l.at < to {
		text += "\r" + l.prompt + string(l.line[from:l.at])
	}
	_, _ = io.WriteString(l.term, inRow.Replace(text))
}

// inRow shows what would leave the row.
var inRow = strings.NewReplacer("\n", "⏎", "\t", " ")

// window returns the part of the line around the cursor that surely fits.
func (l *lineEditor) window() (from, to int) {
	room := max(l.width()-len(l.prompt)-1, 8)
	from, to = l.at, l.at
	for used := 0; ; {
		grown := false
		if from > 0 && used+cells(l.line[from-1]) <= room {
			from--
			used += cells(l.line[from])
			grown = true
		}
		if to < len(l.line) && used+cells(l.line[to]) <= room {
			used += cells(l.line[to])
			to++
			grown = true
		}
		if !grown {
			return from, to
		}
	}
}

// cells is how wide a character may be on the screen.
func cells(r rune) int {
	if r < 0x300 && r != '\n' {
		return 1
	}
	return 2
}

// Write writes rows above the line. What does not end a row waits for its end.
func (l *lineEditor) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	end := bytes.LastIndexByte(l.partial, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	rows := strings.ReplaceAll(printable(string(l.partial[:end])), "\n", "\r\n")
	l.partial = append([]byte(nil), l.partial[end:]...)
	l.erase()
	if _, err := io.WriteString(l.term, rows); err != nil {
		return 0, err
	}
	l.draw()
	return len(p), nil
}

// close leaves an empty row.
func (l *lineEditor) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.erase()
}
