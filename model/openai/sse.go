package openai

import (
	"bufio"

	"memgpt/internal/wire"
)

// maxLine bounds one line of a stream: what is longer is no chat reply.
const maxLine = 32 << 20

// events reads server-sent events (WHATWG HTML, section 9.2). It is kinder than the standard in three points: a last
// event without its empty line counts, a line that begins with a brace counts as data, and NULs don't matter.
type events struct {
	r    *bufio.Reader
	line []byte
	cr   bool // the last line ended in CR, so that an LF still belongs to it
	some bool // lines came
	end  error
}

// next returns the type and the data of the next event that has data. The data is valid until the next call.
// At the end it returns the reader's error.
func (e *events) next() (string, []byte, error) {
	kind, found := "", false
	var data []byte
	for e.end == nil {
		line, err := e.readLine()
		e.end = err
		if err != nil && len(line) == 0 {
			break
		}
		if len(line) == 0 {
			if found {
				return kind, data, nil
			}
			kind = ""
			continue
		}
		name, value := field(line)
		switch name {
		case "event":
			kind = string(value)
		case "data":
			if found {
				data = append(data, '\n')
			}
			data, found = append(data, value...), true
		}
	}
	if found {
		return kind, data, nil
	}
	return "", nil, e.end
}

// field splits a line. Comments have the name "".
func field(line []byte) (string, []byte) {
	if line[0] == '{' {
		return "data", line
	}
	for i, c := range line {
		if c != ':' {
			continue
		}
		name, value := line[:i], line[i+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		return string(name), value
	}
	return string(line), nil
}

// readLine returns a line without its end (CR, LF or both), which is valid until the next call. At the end of the input
// the rest comes with the error.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		c, err := e.r.ReadByte()
		if err != nil {
			return e.line, err
		}
		after := e.cr
		e.cr = c == '\r'
		switch {
		case c == '\n' && after:
			continue
		case c == '\n' || c == '\r':
			e.bom()
			return e.line, nil
		case len(e.line) >= maxLine:
			return nil, wire.ErrLong
		}
		e.line = append(e.line, c)
	}
}

// bom drops a byte order mark from the first line.
func (e *events) bom() {
	if !e.some && len(e.line) >= 3 && string(e.line[:3]) == "\uFEFF" {
		e.line = e.line[3:]
	}
	e.some = true
}

// first returns the first byte of a body that is not white space or part of a byte order mark, without taking it.
func first(r *bufio.Reader) (byte, error) {
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
			continue
		}
		return c, r.UnreadByte()
	}
}
