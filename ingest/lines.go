package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"hash"
	"io"
	"unicode/utf8"
)

// lines reads decoded text line by line. What it reads goes into the hash and the count of the document.
type lines struct {
	in   *bufio.Reader
	hash hash.Hash
	read *int64
	n    int  // lines begun
	open bool // the last piece did not end its line
}

// next returns the next line with its "\n", which the last one may lack; io.EOF after that. A line longer than the buffer
// comes in pieces, perhaps cut within a character: more says that the line goes on. The line is valid until the next call.
func (l *lines) next() (line []byte, more bool, err error) {
	line, more, err = l.peek()
	if err != nil {
		return nil, false, err
	}
	if !l.open {
		l.n++
	}
	l.open = more
	_, _ = l.hash.Write(line)
	*l.read += int64(len(line))
	_, err = l.in.Discard(len(line)) // which moves nothing in the buffer
	return line, more, err
}

func (l *lines) peek() (line []byte, more bool, err error) {
	held, _ := l.in.Peek(l.in.Buffered())
	if i := bytes.IndexByte(held, '\n'); i >= 0 {
		return held[:i+1], false, nil
	}
	held, err = l.in.Peek(windowBytes)
	if i := bytes.IndexByte(held, '\n'); i >= 0 {
		return held[:i+1], false, nil
	}
	switch {
	case err == nil:
		return held, true, nil
	case errors.Is(err, io.EOF) && len(held) > 0:
		return held, false, nil
	}
	return nil, false, err
}

// wholeRunes returns how many bytes of s come before a character that s does not hold whole.
func wholeRunes(s []byte) int {
	for back := 1; back < utf8.UTFMax && back < len(s); back++ {
		if i := len(s) - back; utf8.RuneStart(s[i]) {
			if utf8.FullRune(s[i:]) {
				break
			}
			return i
		}
	}
	return len(s)
}
