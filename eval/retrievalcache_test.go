package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// counting is an embedder that remembers what it was asked.
type counting struct {
	model string
	dims  int // 0 is 3
	err   error

	mu    sync.Mutex
	texts []string
	most  int  // texts at once
	query bool // of the last call
}

func (c *counting) Model() string { return c.model }

func (c *counting) Embed(_ context.Context, texts []string, query bool) ([][]float32, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	c.texts, c.most, c.query = append(c.texts, texts...), max(c.most, len(texts)), query
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, max(c.dims, 3))
		out[i][0], out[i][1] = float32(len(text)), .1
		if query {
			out[i][2] = -1
		}
	}
	return out, nil
}

func openCache(t *testing.T, dir string, e *counting) *VectorCache {
	t.Helper()
	c, err := NewVectorCache(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func embed(t *testing.T, c *VectorCache, query bool, texts ...string) [][]float32 {
	t.Helper()
	got, err := c.Embed(t.Context(), texts, query)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestVectorCacheKeepsVectors(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "new", "cache")} {
		e := &counting{model: "m"}
		c := openCache(t, dir, e)
		first := embed(t, c, false, "a", "bb", "a")
		if want := [][]float32{{1, .1, 0}, {2, .1, 0}, {1, .1, 0}}; cmp.Diff(want, first) != "" {
			t.Errorf("got %v", first)
		}
		question := embed(t, c, true, "a")
		if again := embed(t, c, false, "bb", "c", "a"); again[0][0] != 2 || again[1][0] != 1 || question[0][2] != -1 {
			t.Errorf("got %v and %v", again, question)
		}
		if want := []string{"a", "bb", "a", "c"}; !slices.Equal(e.texts, want) {
			t.Errorf("%q were embedded, want %q", e.texts, want)
		}
	}
}

func TestVectorCacheOutlivesTheRun(t *testing.T) {
	dir := t.TempDir()
	e := &counting{model: "https://host/v1 model:x"}
	texts := make([]string, 150)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	want := embed(t, openCache(t, dir, e), false, texts...)
	if e.most != embedBatch {
		t.Errorf("at most %d texts were embedded at once", e.most)
	}
	later := &counting{model: e.model, err: errors.New("not to be asked")}
	c := openCache(t, dir, later)
	if diff := cmp.Diff(want, embed(t, c, false, texts...)); diff != "" {
		t.Error(diff)
	}
	if _, err := c.Embed(t.Context(), []string{"text 1"}, true); err == nil {
		t.Error("a passage's vector serves for a question")
	}
	if _, err := openCache(t, dir, &counting{model: "other", err: later.err}).Embed(t.Context(), texts[:1], false); err == nil {
		t.Error("one model's vector serves for another")
	}
}

// TestVectorCacheTornTail cuts the file at every byte of its end and damages it: whole records before stay, what comes
// later is appended soundly.
func TestVectorCacheTornTail(t *testing.T) {
	dir := t.TempDir()
	e := &counting{model: "m"}
	embed(t, openCache(t, dir, e), false, "a", "b")
	path := filepath.Join(dir, cacheName("m"))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.IndexByte(whole[1:], '\n') + 2 // where the second record begins
	for cut := line; cut < len(whole)-1; cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		e = &counting{model: "m"}
		embed(t, openCache(t, dir, e), false, "a", "b", "c")
		if want := []string{"b", "c"}; !slices.Equal(e.texts, want) {
			t.Fatalf("cut at %d: %q were embedded, want %q", cut, e.texts, want)
		}
		e = &counting{model: "m"}
		if embed(t, openCache(t, dir, e), false, "a", "b", "c"); len(e.texts) > 0 {
			t.Fatalf("cut at %d: %q were embedded again", cut, e.texts)
		}
	}
	for _, at := range []int{10, 50} { // in the key and in the vector of the first record
		damaged := bytes.Clone(whole)
		if damaged[at]++; !strings.Contains(base64Digits, string(damaged[at])) {
			damaged[at] = 'A'
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		e = &counting{model: "m"}
		if embed(t, openCache(t, dir, e), false, "a", "b"); !slices.Equal(e.texts, []string{"a"}) {
			t.Errorf("damaged at %d: %q were embedded", at, e.texts)
		}
	}
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func TestVectorCacheServesManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	caches := []*VectorCache{openCache(t, dir, &counting{model: "m"}), openCache(t, dir, &counting{model: "m"})}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for k := range 20 {
				if _, err := caches[i%2].Embed(t.Context(), []string{fmt.Sprint(k), fmt.Sprint(i, k)}, i%3 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	c := openCache(t, dir, &counting{model: "m", err: errors.New("not to be asked")})
	for i := range 8 {
		for k := range 20 {
			embed(t, c, i%3 == 0, fmt.Sprint(k), fmt.Sprint(i, k))
		}
	}
}

func TestVectorCacheRefusesWhatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	embed(t, openCache(t, dir, &counting{model: "m"}), false, "a")
	c := openCache(t, dir, &counting{model: "m", dims: 5})
	if _, err := c.Embed(t.Context(), []string{"b"}, false); err == nil {
		t.Error("vectors of two dimensions are kept under one model")
	}
	if _, err := NewVectorCache(filepath.Join(dir, cacheName("m")), &counting{}); err == nil {
		t.Error("a file serves as the directory")
	}
	short := openCache(t, "", &counting{})
	if err := short.keep([]string{"a", "b"}, [][]float32{{1}}, false); err == nil {
		t.Error("one vector serves two texts")
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(appendRecord(nil, keyOf("x", true), []float32{1, -2.5}))
	f.Add([]byte("AAAA"))
	f.Fuzz(func(t *testing.T, line []byte) {
		k, v, ok := parseRecord(line)
		if !ok {
			return
		}
		again, w, ok := parseRecord(appendRecord(nil, k, v))
		if !ok || again != k || len(v) == 0 || len(w) != len(v) {
			t.Errorf("%q reads as %v and then as %v", line, v, w)
		}
	})
}
