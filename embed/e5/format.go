package e5

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the model
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"memgpt"
)

// The model's file, version 1, little endian; every section starts at a multiple of 64:
//
//	0    "MGE5Q4\0\0"
//	8    uint32 each: version, hidden size H, layers, heads, feed-forward size F, positions, pieces, block, bits, sections,
//	     bits of the hash, normalised code points
//	56   uint32 each: ids of <s>, <pad>, </s>, <unk>
//	72   float32: epsilon of the layer norm, score of an unknown character
//	80   uint32: longest piece in bytes, in characters
//	96   SHA-256 of everything from byte 128 on
//	128  the sections, 32 bytes each: name (16, zero padded), uint64 offset, uint64 length
//
// A matrix is its rows, which are outputs. A row of K inputs is K/32 blocks, each with a float16 scale d and 16 bytes: byte
// j holds weight j as its low and weight j+16 as its high four bits, and a weight is (bits - 8) d.
const (
	magic     = "MGE5Q4\x00\x00"
	headBytes = 128
	blockSize = 32 // weights with one scale
	headDim   = 32 // dimensions of an attention head
)

// builtinID names the model in the binary.
const builtinID = "memgpt-e5-small-q4"

//go:embed memgpt-e5-small-q4.bin
var builtin []byte

// header is what a file says of its model.
type header struct {
	hidden, layers, heads, ffn, positions, pieces int
	sections, hashBits, norms                     int
	start, end, unk                               uint32
	epsilon, unkScore                             float32
	longest                                       int // piece, in bytes
}

// file is a model's file, read or mapped. Its sections are slices of it.
type file struct {
	header
	section map[string][]byte
}

// readModel reads a file and checks it; the built-in one, which a test checks, is only taken apart.
func readModel(path string) (*file, error) {
	if path == "" {
		return parseFile(builtin, false)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "read the encoder's model: %w", err)
	}
	f, err := parseFile(data, true)
	if err != nil {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "read the encoder's model %s: %w", path, err)
	}
	return f, nil
}

// checkHeader refuses a file whose header isn't that of a model.
func checkHeader(path string) error {
	head := builtin
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return memgpt.Errorf(memgpt.CodeInvalid, "open the encoder's model: %w", err)
		}
		defer f.Close() //nolint:errcheck // only read
		head = make([]byte, headBytes)
		if _, err := io.ReadFull(f, head); err != nil {
			return memgpt.Errorf(memgpt.CodeInvalid, "read the header of the encoder's model %s: %w", path, err)
		}
	}
	if _, err := parseHeader(head); err != nil {
		return memgpt.Errorf(memgpt.CodeInvalid, "read the encoder's model %s: %w", path, err)
	}
	return nil
}

func parseHeader(data []byte) (header, error) {
	var h header
	if len(data) < headBytes || string(data[:len(magic)]) != magic {
		return h, fmt.Errorf("it is no model file: want one that begins with %q", magic[:6])
	}
	u := words(data)
	if v := u.at(2); v != 1 {
		return h, fmt.Errorf("its version is %d, and 1 is the only one known", v)
	}
	for i, p := range []*int{&h.hidden, &h.layers, &h.heads, &h.ffn, &h.positions, &h.pieces} {
		*p = int(u.at(3 + i))
	}
	for i, p := range []*int{&h.sections, &h.hashBits, &h.norms} {
		*p = int(u.at(11 + i))
	}
	h.start, h.end, h.unk = u.at(14), u.at(16), u.at(17)
	h.epsilon, h.unkScore = math.Float32frombits(u.at(18)), math.Float32frombits(u.at(19))
	h.longest = int(u.at(20))
	return h, h.validate(int(u.at(9)), int(u.at(10)))
}

// validate refuses what the forward pass could not run, before anything is taken for a size.
func (h *header) validate(block, bits int) error {
	switch {
	case block != blockSize || bits != 4:
		return fmt.Errorf("it has weights of %d bits in blocks of %d, and only 4 bits in blocks of %d are known", bits, block, blockSize)
	case h.hidden < headDim || h.hidden > 1<<12 || h.heads*headDim != h.hidden:
		return fmt.Errorf("it has %d dimensions in %d heads, and heads of %d are the only ones known", h.hidden, h.heads, headDim)
	case h.ffn < blockSize || h.ffn > 1<<14 || h.ffn%blockSize != 0:
		return fmt.Errorf("its feed-forward size is %d: want a multiple of %d", h.ffn, blockSize)
	case h.layers < 1 || h.layers > 100 || h.positions < 8 || h.positions > 1<<14:
		return fmt.Errorf("it has %d layers and %d positions", h.layers, h.positions)
	case h.pieces < 4 || h.pieces > 1<<24 || h.hashBits < 2 || h.hashBits > 28 || h.longest < 1 || h.longest > 1<<12:
		return fmt.Errorf("it has %d pieces, a hash of %d bits and pieces of up to %d bytes", h.pieces, h.hashBits, h.longest)
	case int(h.start) >= h.pieces || int(h.end) >= h.pieces || int(h.unk) >= h.pieces || h.sections > 1<<12 || h.norms > 1<<21:
		return fmt.Errorf("its header is damaged")
	}
	return nil
}

// parseFile takes a file apart, and with check compares its hash. Each section must have the size that the header calls for.
func parseFile(data []byte, check bool) (*file, error) {
	h, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256; check {
		if got := sum(data[headBytes:]); !bytes.Equal(got[:], data[96:headBytes]) {
			return nil, fmt.Errorf("it is damaged: its SHA-256 is %x, and its header says %x", got[:8], data[96:104])
		}
	}
	f := &file{header: h, section: make(map[string][]byte, h.sections)}
	if len(data) < headBytes+32*h.sections {
		return nil, fmt.Errorf("it is cut off in its list of sections")
	}
	for i := range h.sections {
		entry := data[headBytes+32*i:][:32]
		name := string(bytes.TrimRight(entry[:16], "\x00"))
		at, size := binary.LittleEndian.Uint64(entry[16:]), binary.LittleEndian.Uint64(entry[24:])
		if at > uint64(len(data)) || size > uint64(len(data))-at {
			return nil, fmt.Errorf("it is cut off: section %s ends at byte %d of %d", name, at+size, len(data))
		}
		f.section[name] = data[at : at+size : at+size]
	}
	return f, f.checkSections()
}

// checkSections holds each section's length against the header.
func (f *file) checkSections() error {
	for name, want := range f.sizes() {
		if got, ok := f.section[name]; !ok || len(got) != want {
			return fmt.Errorf("section %s has %d bytes, want %d", name, len(got), want)
		}
	}
	for _, list := range []struct{ offsets, items string }{{"tok.offset", "tok.bytes"}, {"norm.offset", "norm.out"}} {
		size := len(f.section[list.items])
		if list.items == "norm.out" {
			size /= 4
		}
		u, last := words(f.section[list.offsets]), uint32(0)
		for i := range len(u) / 4 {
			if at := u.at(i); at < last || int(at) > size {
				return fmt.Errorf("section %s is out of order at %d", list.offsets, i)
			}
			last = u.at(i)
		}
	}
	return nil
}

// sizes are the lengths of all sections but the two whose length nothing tells.
func (f *file) sizes() map[string]int {
	h := &f.header
	m := map[string]int{
		"tok.offset": 4 * (h.pieces + 1), "tok.score": 4 * h.pieces, "tok.hash": 4 << h.hashBits,
		"norm.cp": 4 * h.norms, "norm.offset": 4 * (h.norms + 1), "pos": 2 * h.positions * h.hidden,
		"emb.ln.w": 4 * h.hidden, "emb.ln.b": 4 * h.hidden,
	}
	matrix := func(name string, rows, cols int) {
		m[name+".scale"], m[name+".nibble"] = rows*cols/blockSize*2, rows*cols/2
	}
	matrix("emb", h.pieces, h.hidden)
	for l := range h.layers {
		p := layerName(l)
		matrix(p+"qkv", 3*h.hidden, h.hidden)
		matrix(p+"ao", h.hidden, h.hidden)
		matrix(p+"fi", h.ffn, h.hidden)
		matrix(p+"fo", h.hidden, h.ffn)
		m[p+"fi.bias"] = 4 * h.ffn
		for _, name := range []string{"q.bias", "ao.bias", "fo.bias", "ln1.w", "ln1.b", "ln2.w", "ln2.b"} {
			m[p+name] = 4 * h.hidden
		}
	}
	return m
}

func layerName(l int) string { return fmt.Sprintf("l%02d.", l) }

// words reads uint32 in place: nothing promises that a section is aligned in memory.
type words []byte

func (w words) at(i int) uint32 { return binary.LittleEndian.Uint32(w[4*i:]) }

// floats copies a section of float32.
func (f *file) floats(name string) []float32 {
	w := words(f.section[name])
	list := make([]float32, len(w)/4)
	for i := range list {
		list[i] = math.Float32frombits(w.at(i))
	}
	return list
}

// half reads the float16 at index i.
func half(data []byte, i int) float32 {
	h := uint32(binary.LittleEndian.Uint16(data[2*i:]))
	sign, exp, frac := h>>15<<31, h>>10&31, h&1023
	switch exp {
	case 0: // zero and subnormal: frac / 2^24
		return math.Float32frombits(sign | math.Float32bits(float32(frac)*(1.0/(1<<24))))
	case 31:
		return math.Float32frombits(sign | 255<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
