package openai

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"memgpt"
	"memgpt/internal/wire"
)

// FuzzEvents wants the same events however the bytes come, and no line end in a type.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: 1\r\ndata: 2\r\n\r\n: c\n\ndata:3\r\rdata"))
	f.Add([]byte("\uFEFFdata: 你\n\n{\"a\":1}\n\nid\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		read := func(r io.Reader) (list []string) {
			ev := events{r: bufio.NewReaderSize(r, 16)}
			for {
				kind, data, err := ev.next()
				if err != nil {
					if err != io.EOF {
						t.Errorf("error %v", err)
					}
					return list
				}
				if strings.ContainsAny(kind, "\r\n") || bytes.IndexByte(data, '\r') >= 0 {
					t.Errorf("a line end in %q %q", kind, data)
				}
				list = append(list, kind+"|"+string(data))
			}
		}
		whole, bytewise := read(bytes.NewReader(body)), read(iotest.OneByteReader(bytes.NewReader(body)))
		if fmt.Sprint(whole) != fmt.Sprint(bytewise) {
			t.Errorf("whole %q, byte by byte %q", whole, bytewise)
		}
	})
}

// FuzzPieces wants the same text wherever it is cut.
func FuzzPieces(f *testing.F) {
	f.Add([]byte("a你🍷\xff\xed\xa0\xbc"), uint(3))
	f.Add([]byte("\xed\xa0\xbc\xed\xbd\xb7!\x00"), uint(1))
	f.Add([]byte(" <think>hm</think>\n\nyes</think>"), uint(2))
	f.Add([]byte("<thought>hm</think></thought>yes"), uint(3))
	f.Fuzz(func(t *testing.T, s []byte, size uint) {
		n := int(size%7) + 1
		var j joiner
		var th thinker
		var joined, thinking, text string
		for rest := s; len(rest) > 0; {
			k := min(n, len(rest))
			piece := j.push(bytes.Clone(rest[:k]))
			rest = rest[k:]
			joined += piece
			a, b := th.push(piece)
			thinking, text = thinking+a, text+b
		}
		last := j.flush()
		joined += last
		for _, get := range []func() (string, string){func() (string, string) { return th.push(last) }, th.flush} {
			a, b := get()
			thinking, text = thinking+a, text+b
		}
		if want := clean(s); runs(joined) != runs(want) {
			t.Errorf("joined %q, want %q", joined, want)
		}
		var one thinker
		a, b := one.push(joined)
		c, d := one.flush()
		if thinking != a+c || text != b+d {
			t.Errorf("in pieces %q, %q; at once %q, %q", thinking, text, a+c, b+d)
		}
		if joined != memgpt.CleanText(joined) {
			t.Errorf("unclean %q", joined)
		}
	})
}

func TestEndlessLine(t *testing.T) {
	ev := events{r: bufio.NewReader(io.MultiReader(strings.NewReader("data: "), endless{}))}
	if _, _, err := ev.next(); !errors.Is(err, wire.ErrLong) {
		t.Errorf("error %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
