package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// decoder reads a document as text that may be stored: UTF-8 without a byte order mark, NUL or anything invalid, with
// lines ended by "\n". An encoding that is not clear from the beginning is told by the first window that is not ASCII.
type decoder struct {
	in     *bufio.Reader // of windowBytes
	set    *charset      // nil until it is known
	detect func() *detector
	clean  cleaner
	before []byte    // the last bytes before what is not ASCII: a letter is told by its neighbours
	text   io.Reader // nil until set is known
}

// begin looks at the first window and refuses what is no text.
func (d *decoder) begin(name string, sure bool) error {
	head, err := d.in.Peek(windowBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	named := d.set != nil
	unicode := named && strings.HasPrefix(d.set.name, "utf-")
	if !unicode || d.set.enc == nil { // units of two or four bytes look binary
		if err := check(name, head, sure); err != nil {
			return err
		}
	}
	if marked := bomOf(head); marked != nil && (!named || unicode) {
		d.set = marked
	} else if !named {
		d.set = wide(head)
	}
	if d.set != nil {
		d.open()
	}
	return nil
}

// open starts the decoding in the encoding that was found.
func (d *decoder) open() {
	if bom, _ := d.in.Peek(len(d.set.bom)); d.set.bom != "" && string(bom) == d.set.bom {
		_, _ = d.in.Discard(len(bom))
	}
	var r io.Reader = d.in
	if d.set.enc != nil {
		r = transform.NewReader(r, d.set.enc.NewDecoder())
		d.clean.decoded = true
	}
	d.text = transform.NewReader(r, &d.clean)
}

// Read implements io.Reader.
func (d *decoder) Read(p []byte) (int, error) {
	if d.text != nil {
		return d.text.Read(p)
	}
	win, err := d.in.Peek(windowBytes)
	if len(win) == 0 || err != nil && !errors.Is(err, io.EOF) {
		if errors.Is(err, io.EOF) {
			d.set = utf8Set()
		}
		return 0, err
	}
	if n := plain(win); n > 0 {
		return d.ascii(p, win[:n])
	}
	d.set = d.detect().of(d.before, win, err != nil)
	d.open()
	return d.text.Read(p)
}

// plain returns how many bytes of s mean the same in every encoding that is told by content.
func plain(s []byte) int {
	for i, b := range s {
		if b >= utf8.RuneSelf || b == 0x1b && i+1 < len(s) && (s[i+1] == '$' || s[i+1] == '(') {
			return i
		}
	}
	return len(s)
}

func (d *decoder) ascii(p, s []byte) (int, error) {
	n, used, _ := d.clean.Transform(p, s, false)
	if used == 0 && len(p) > 0 { // a CR without LF before what is not ASCII, or at the end
		n, used = copy(p, newline), 1
	}
	d.before = append(d.before, s[max(0, used-aroundBytes):used]...)
	d.before = d.before[max(0, len(d.before)-aroundBytes):]
	_, _ = d.in.Discard(used)
	return n, nil
}

// cleaner is a transformer that makes any bytes valid UTF-8 without NUL and with "\n" alone at the ends of lines.
type cleaner struct {
	decoded bool // what comes in was decoded, so that U+FFFD stands for something invalid
	invalid int
	dropped int
}

// Reset implements transform.Transformer. The counts stay.
func (c *cleaner) Reset() {}

// Transform implements transform.Transformer.
func (c *cleaner) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		out, size := c.one(src[nSrc:], len(dst)-nDst, atEOF)
		if size == 0 {
			return nDst, nSrc, transform.ErrShortSrc
		}
		if len(dst)-nDst < len(out) {
			return nDst, nSrc, transform.ErrShortDst
		}
		c.note(src[nSrc:nSrc+size], out)
		nDst += copy(dst[nDst:], out)
		nSrc += size
	}
	return nDst, nSrc, nil
}

var (
	newline  = []byte("\n")
	replaced = []byte("\uFFFD")
)

// one returns what stands for the first character of src, or for as many of ASCII as there is room for, and their size:
// 0 when more of src is needed.
func (c *cleaner) one(src []byte, room int, atEOF bool) (out []byte, size int) {
	switch b := src[0]; {
	case b == 0:
		return nil, 1
	case b == '\r':
		if len(src) > 1 && src[1] == '\n' {
			return newline, 2
		}
		if len(src) > 1 || atEOF {
			return newline, 1
		}
		return nil, 0
	case b < utf8.RuneSelf:
		n := 1
		for n < len(src) && src[n] != 0 && src[n] != '\r' && src[n] < utf8.RuneSelf && n < room {
			n++
		}
		return src[:n], n
	}
	if !atEOF && !utf8.FullRune(src) {
		return nil, 0
	}
	if r, size := utf8.DecodeRune(src); r != utf8.RuneError || size > 1 {
		return src[:size], size
	}
	return replaced, 1
}

func (c *cleaner) note(src, out []byte) {
	switch {
	case len(out) == 0:
		c.dropped++
	case bytes.Equal(out, replaced) && (len(src) == 1 || c.decoded):
		c.invalid++
	}
}
