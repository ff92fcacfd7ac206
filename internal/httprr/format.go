package httprr

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The format is plain text but for what bodies hold. A body is as long as its head line says, and a newline follows it.
//
//	httprr trace 1
//	> POST http://127.0.0.1:8080/v1/chat/completions 17
//	Content-Type: application/json
//
//	{"messages":[{}]}
//	< 200 8 cut
//	Content-Type: text/event-stream
//
//	data: x
const magic = "httprr trace 1\n"

// Format is the text of a trace.
func Format(exchanges ...Exchange) []byte {
	var b bytes.Buffer
	b.WriteString(magic)
	for _, x := range exchanges {
		fmt.Fprintf(&b, "> %s %s %d\n", x.Request.Method, x.Request.URL, len(x.Request.Body))
		formatRest(&b, x.Request.Header, x.Request.Body)
		cut := ""
		if x.Response.Cut {
			cut = " cut"
		}
		fmt.Fprintf(&b, "< %d %d%s\n", x.Response.status(), len(x.Response.Body), cut)
		formatRest(&b, x.Response.Header, x.Response.Body)
	}
	return b.Bytes()
}

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func formatRest(b *bytes.Buffer, h http.Header, body []byte) {
	for _, name := range names(h) {
		for _, value := range h[name] {
			fmt.Fprintf(b, "%s: %s\n", name, oneLine.Replace(value))
		}
	}
	b.WriteByte('\n')
	b.Write(body)
	b.WriteByte('\n')
}

// WriteFile writes a trace file whole, its folder too, or leaves what was there.
func WriteFile(file string, exchanges ...Exchange) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("httprr: write trace: %w", err)
	}
	part := file + ".part"
	if err := os.WriteFile(part, Format(exchanges...), 0o666); err != nil {
		return fmt.Errorf("httprr: write trace: %w", err)
	}
	if err := os.Rename(part, file); err != nil {
		return fmt.Errorf("httprr: write trace: %w", errors.Join(err, os.Remove(part)))
	}
	return nil
}

// Parse reads a trace. An error names the line.
func Parse(data []byte) ([]Exchange, error) {
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return nil, fmt.Errorf("line 1: want %q", strings.TrimSpace(magic))
	}
	p := &scanner{all: data, rest: rest}
	var exchanges []Exchange
	for len(p.rest) > 0 {
		x, err := p.exchange()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
		exchanges = append(exchanges, x)
	}
	return exchanges, nil
}

// scanner reads a trace, and rest is what is left.
type scanner struct {
	all, rest []byte
	line      int // of the last line that next read
}

func (p *scanner) next() (string, error) {
	p.line = 1 + bytes.Count(p.all[:len(p.all)-len(p.rest)], []byte("\n"))
	line, rest, ok := bytes.Cut(p.rest, []byte("\n"))
	if !ok {
		return "", errors.New("the trace ends in the middle")
	}
	p.rest = rest
	return string(line), nil
}

func (p *scanner) exchange() (Exchange, error) {
	var x Exchange
	head, err := p.fields(">", 4)
	if err != nil {
		return x, err
	}
	x.Request.Method, x.Request.URL = head[1], head[2]
	if x.Request.Header, x.Request.Body, err = p.message(head[3]); err != nil {
		return x, err
	}
	if head, err = p.fields("<", 3); err != nil {
		return x, err
	}
	if x.Response.Status, err = strconv.Atoi(head[1]); err != nil || x.Response.Status < 100 || x.Response.Status > 999 {
		return x, fmt.Errorf("%q is no status", head[1])
	}
	x.Response.Cut = len(head) == 4
	x.Response.Header, x.Response.Body, err = p.message(head[2])
	return x, err
}

// fields reads a head line of at least n fields.
func (p *scanner) fields(mark string, n int) ([]string, error) {
	line, err := p.next()
	if err != nil {
		return nil, err
	}
	f := strings.Split(line, " ")
	if ok := f[0] == mark && (len(f) == n || mark == "<" && len(f) == n+1 && f[n] == "cut"); !ok {
		return nil, fmt.Errorf("want a line that begins with %q and has %d fields, not %q (is the length of the body before it right?)", mark, n, line)
	}
	return f, nil
}

func (p *scanner) message(length string) (http.Header, []byte, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, nil, fmt.Errorf("%q is no length of a body", length)
	}
	h := http.Header{}
	for {
		line, err := p.next()
		if err != nil {
			return nil, nil, err
		}
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ": ")
		if !ok || name == "" {
			return nil, nil, fmt.Errorf("%q is no header", line)
		}
		h[name] = append(h[name], value)
	}
	if n >= len(p.rest) || p.rest[n] != '\n' {
		return nil, nil, fmt.Errorf("no newline after a body of %d bytes (is its length right?)", n)
	}
	body := p.rest[:n]
	p.rest = p.rest[n+1:]
	return h, body, nil
}
