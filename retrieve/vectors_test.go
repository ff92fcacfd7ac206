package retrieve_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"memgpt/embed/e5"
	"memgpt/retrieve"
	"memgpt/store"
)

// cachedEncoder is the built-in encoder with a file of the vectors that it made in earlier runs.
type cachedEncoder struct {
	*e5.Encoder
	t     testing.TB
	known map[[32]byte][]float32
	file  *os.File
}

// newEncoder opens the cache under the user's cache folder. A record is the hash of what was embedded, and the vector.
func newEncoder(t testing.TB) *cachedEncoder {
	t.Helper()
	enc, err := e5.New(e5.Config{})
	if err != nil {
		t.Skipf("the built-in encoder is not here: %v", err)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "memgpt-test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, enc.Model()+".vectors"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	c := &cachedEncoder{Encoder: enc, t: t, known: map[[32]byte][]float32{}, file: f}
	t.Cleanup(func() { _ = f.Close() })
	r := bufio.NewReaderSize(f, 1<<20)
	for {
		key, v, err := readVector(r, 384)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			return c
		}
		c.known[key] = v
	}
}

func readVector(r io.Reader, dim int) (key [32]byte, v []float32, err error) {
	buf := make([]byte, 32+4*dim)
	if _, err = io.ReadFull(r, buf); err != nil {
		return key, nil, err
	}
	v = make([]float32, dim)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(buf[32+4*i:]))
	}
	return [32]byte(buf), v, nil
}

// vectors returns the vector of each text, and makes the missing ones.
func (c *cachedEncoder) vectors(t testing.TB, texts []string, query bool) [][]float32 {
	t.Helper()
	kind := "d:"
	if query {
		kind = "q:"
	}
	var missing []string
	for _, text := range texts {
		if _, ok := c.known[sha256.Sum256([]byte(kind+text))]; !ok {
			missing = append(missing, text)
		}
	}
	const batch = 64
	for from := 0; from < len(missing); from += batch {
		part := missing[from:min(len(missing), from+batch)]
		made, err := c.Encoder.Embed(t.Context(), part, query)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range made {
			c.keep(t, sha256.Sum256([]byte(kind+part[i])), v)
		}
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = c.known[sha256.Sum256([]byte(kind+text))]
	}
	return out
}

func (c *cachedEncoder) keep(t testing.TB, key [32]byte, v []float32) {
	c.known[key] = v
	rec := key[:]
	for _, x := range v {
		rec = binary.LittleEndian.AppendUint32(rec, math.Float32bits(x))
	}
	if _, err := c.file.Write(rec); err != nil {
		t.Fatal(err)
	}
}

// Embed implements tool.Embedder.
func (c *cachedEncoder) Embed(_ context.Context, texts []string, query bool) ([][]float32, error) {
	return c.vectors(c.t, texts, query), nil
}

// embed gives the documents of owner "a" their vectors.
func (m *memIndex) embed(c *cachedEncoder, texts []string) {
	o := m.owner("", "a")
	for i, v := range c.vectors(c.t, texts, false) {
		o.vectors[c.Model()] = append(o.vectors[c.Model()], store.Vector{Doc: int64(i + 1), Data: retrieve.PackVector(v)})
	}
}
