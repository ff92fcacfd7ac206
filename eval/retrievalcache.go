package eval

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"memgpt/tool"
)

// VectorCache is an embedder that keeps what another one made, in memory and, with a directory, in one file a model. A
// vector is found by the hash of its text and by whether that was a question.
//
// The file holds a record a line and is only appended to. A line that isn't whole and sound is none: what an interrupted
// run left half written costs one vector, and several processes may write at once.
type VectorCache struct {
	embedder tool.Embedder

	mu   sync.Mutex // guards what follows
	file *os.File   // nil without a directory
	kept map[vectorKey][]float32
	dims int // of all vectors; 0 before the first
}

var _ tool.Embedder = (*VectorCache)(nil)

type vectorKey [sha256.Size]byte

func keyOf(text string, query bool) vectorKey {
	if query {
		return sha256.Sum256([]byte("query\x00" + text))
	}
	return sha256.Sum256([]byte("passage\x00" + text))
}

// embedBatch is how many texts the embedder is given at once; as many are lost where a run is interrupted.
const embedBatch = 64

// NewVectorCache returns a cache before an embedder. The directory is made if missing; "" keeps vectors in memory alone.
func NewVectorCache(dir string, e tool.Embedder) (*VectorCache, error) {
	c := &VectorCache{embedder: e, kept: map[vectorKey][]float32{}}
	if dir == "" {
		return c, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("open the cache of vectors: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, cacheName(e.Model())), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open the cache of vectors: %w", err)
	}
	c.file = f
	if err := c.read(f); err != nil {
		return nil, errors.Join(fmt.Errorf("read the cache of vectors: %w", err), f.Close())
	}
	return c, nil
}

// cacheName is the name of a model's file: what can be read of its id, and a hash that tells ids apart.
func cacheName(model string) string {
	sum := sha256.Sum256([]byte(model))
	return fmt.Sprintf("%.80s-%x.vectors", url.QueryEscape(model), sum[:6])
}

// Model implements tool.Embedder.
func (c *VectorCache) Model() string { return c.embedder.Model() }

// Close closes the file.
func (c *VectorCache) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// Embed implements tool.Embedder. The vectors are shared and must not be changed.
func (c *VectorCache) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	for part := range slices.Chunk(c.missing(texts, query), embedBatch) {
		made, err := c.embedder.Embed(ctx, part, query)
		if err != nil {
			return nil, err
		}
		if err := c.keep(part, made, query); err != nil {
			return nil, fmt.Errorf("cache the vectors of %s: %w", c.Model(), err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = c.kept[keyOf(text, query)]
	}
	return out, nil
}

// missing returns the texts without a vector, each once.
func (c *VectorCache) missing(texts []string, query bool) (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	listed := map[vectorKey]bool{}
	for _, text := range texts {
		k := keyOf(text, query)
		if c.kept[k] == nil && !listed[k] {
			listed[k] = true
			list = append(list, text)
		}
	}
	return list
}

// keep takes vectors in and appends them to the file.
func (c *VectorCache) keep(texts []string, made [][]float32, query bool) error {
	if len(made) != len(texts) {
		return fmt.Errorf("the embedder gave %d vectors for %d texts", len(made), len(texts))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := []byte{'\n'} // ends a line that an interrupted run left unfinished
	for i, v := range made {
		if c.dims == 0 {
			c.dims = len(v)
		}
		if len(v) != c.dims || len(v) == 0 {
			return fmt.Errorf("the embedder gave a vector of %d dimensions, and earlier ones have %d: the model behind the name has changed,"+
				" so remove its file from the cache", len(v), c.dims)
		}
		k := keyOf(texts[i], query)
		c.kept[k] = v
		lines = append(appendRecord(lines, k, v), '\n')
	}
	if c.file == nil {
		return nil
	}
	_, err := c.file.Write(lines)
	return err
}

// A record is, in base64, the key, the dimensions as little-endian float32 and the CRC-32 (IEEE) of both.

func appendRecord(out []byte, k vectorKey, v []float32) []byte {
	raw := slices.Clone(k[:])
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	raw = binary.LittleEndian.AppendUint32(raw, crc32.ChecksumIEEE(raw))
	return base64.StdEncoding.AppendEncode(out, raw)
}

// parseRecord reads a line; ok is false where it isn't a whole record.
func parseRecord(line []byte) (k vectorKey, v []float32, ok bool) {
	raw, err := base64.StdEncoding.AppendDecode(nil, line)
	n := len(raw) - 4
	if err != nil || n <= len(k) || n%4 != 0 || binary.LittleEndian.Uint32(raw[n:]) != crc32.ChecksumIEEE(raw[:n]) {
		return k, nil, false
	}
	copy(k[:], raw)
	v = make([]float32, 0, (n-len(k))/4)
	for at := len(k); at < n; at += 4 {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(raw[at:])))
	}
	return k, v, true
}

// read takes the records of the file in. The first says how many dimensions all have.
func (c *VectorCache) read(in io.Reader) error {
	r := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if k, v, ok := parseRecord(bytes.TrimSpace(line)); ok && (c.dims == 0 || c.dims == len(v)) {
			c.kept[k], c.dims = v, len(v)
		}
		if err != nil {
			return nil
		}
	}
}
