package e5

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
)

func TestEmbedReturnsUnitVectorsWhateverStandsBeside(t *testing.T) {
	texts := []string{"", "x", "我家的猫叫咪咪，今年三岁", strings.Repeat("a long text goes on ", 8), "\xff\x00 broken"}
	for _, k := range kernels() {
		t.Run(k.name, func(t *testing.T) {
			e := newEncoder(t, k)
			e.threads, e.slots = 3, make(chan struct{}, 3)
			together, err := e.Embed(t.Context(), texts, true)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				alone, err := e.Embed(t.Context(), []string{text}, true)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(alone[0], together[i]) {
					t.Errorf("%.20q: another vector than in a batch", text)
				}
				sum := 0.0
				for _, x := range alone[0] {
					sum += float64(x) * float64(x)
				}
				if len(alone[0]) != 384 || math.Abs(sum-1) > 1e-5 {
					t.Errorf("%.20q: %d dimensions, length² %g", text, len(alone[0]), sum)
				}
			}
			stored, err := e.Embed(t.Context(), texts[2:3], false)
			if err != nil || slices.Equal(stored[0], together[2]) {
				t.Errorf("a question and a stored text have the same vector (error %v)", err)
			}
		})
	}
}

func TestEmbedCutsLongTexts(t *testing.T) {
	e := newEncoder(t, bestKernel())
	long := strings.Repeat("word ", 2000)
	v, err := e.Embed(t.Context(), []string{long, long + "and more", long[:len("word ")*600]}, false)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v[0], v[1]) || !slices.Equal(v[0], v[2]) {
		t.Error("what lies behind the bound changes the vector")
	}
}

func TestEmbedStopsWithItsContext(t *testing.T) {
	e := newEncoder(t, bestKernel())
	ctx, cancel := context.WithCancel(t.Context())
	groups := 0
	e.kernel.gelu = func(x []float32) { groups++; cancel() }
	e.threads = 1
	texts := slices.Repeat([]string{strings.Repeat("word ", 250)}, 5)
	if _, err := e.Embed(ctx, texts, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if groups != 12 { // the layers of one group
		t.Errorf("%d layers were computed, want those of one group", groups)
	}
	if _, err := e.Embed(ctx, texts, false); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestWeightsAreLoadedOnUseAndFreedWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Config{Idle: time.Minute, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close() //nolint:errcheck // never fails
		loaded := func() bool {
			synctest.Wait()
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.net != nil
		}
		use := func() {
			if _, err := e.Embed(t.Context(), []string{"x"}, false); err != nil {
				t.Fatal(err)
			}
		}
		if loaded() {
			t.Error("New loads the weights")
		}
		use()
		time.Sleep(59 * time.Second)
		use() // puts the end off
		time.Sleep(59 * time.Second)
		if !loaded() {
			t.Error("freed before the time")
		}
		time.Sleep(2 * time.Second)
		if loaded() {
			t.Error("not freed when idle")
		}
		use()
		if err := e.Close(); err != nil || loaded() {
			t.Errorf("not freed by Close (error %v)", err)
		}
	})
}

func TestWeightsStayWhileInUse(t *testing.T) {
	e := newEncoder(t, bestKernel())
	if _, err := e.acquire(); err != nil {
		t.Fatal(err)
	}
	e.drop(e.turn)
	if e.net == nil {
		t.Error("freed while a call is under way")
	}
	e.release()
	e.drop(e.turn - 1)
	if e.net == nil {
		t.Error("freed by a timer of an earlier use")
	}
}

func TestConcurrentUse(t *testing.T) {
	e := newEncoder(t, bestKernel())
	want, err := e.Embed(t.Context(), []string{shortText}, false)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := e.Embed(t.Context(), []string{"before", shortText}, false)
			if err != nil || !slices.Equal(got[1], want[0]) {
				t.Errorf("another vector (error %v)", err)
			}
			_ = e.Close()
		})
	}
	wg.Wait()
}

// builtinCopy writes the built-in model to a new folder, changed.
func builtinCopy(t *testing.T, change func(data []byte) []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "other-model.bin"), change(slices.Clone(builtin)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestModelFromFolder(t *testing.T) {
	dir := builtinCopy(t, func(data []byte) []byte { return data })
	e, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // never fails
	if e.Model() != "other-model" {
		t.Errorf("model %q", e.Model())
	}
	got, err := e.Embed(t.Context(), []string{shortText}, false)
	if err != nil {
		t.Fatal(err)
	}
	want, err := newEncoder(t, bestKernel()).Embed(t.Context(), []string{shortText}, false)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("another vector than the built-in model's (error %v):\n%s", err, diff)
	}
}

func TestBadModelsGetClearErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(data []byte) []byte
		want   string
	}{
		"damaged":     {func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "it is damaged: its SHA-256"},
		"cut":         {func(b []byte) []byte { return b[:len(b)-64] }, "it is damaged"},
		"empty":       {func([]byte) []byte { return nil }, "read the header"},
		"other":       {func(b []byte) []byte { b[0]++; return b }, "no model file"},
		"newer":       {func(b []byte) []byte { b[8] = 2; return b }, "its version is 2, and 1 is the only one known"},
		"other heads": {func(b []byte) []byte { b[20]++; return b }, "heads of 32 are the only ones"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := New(Config{Dir: builtinCopy(t, c.change)})
			if err == nil {
				_, err = e.Embed(t.Context(), []string{"x"}, false)
			}
			if memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := New(Config{Dir: dir}); memgpt.CodeOf(err) != memgpt.CodeInvalid || !strings.Contains(err.Error(), "exactly one file") {
			t.Errorf("a folder without a model: error %v", err)
		}
	}
}

func TestSectionsAreChecked(t *testing.T) {
	for at, want := range map[int]string{
		128 + 24:      "section tok.offset has",  // its length
		128 + 16 + 3:  "section tok.offset ends", // its place
		128:           "section tok.offset has 0 bytes",
		6656 + 4*1000: "section tok.offset is out of order",
	} {
		data := slices.Clone(builtin)
		data[at] ^= 0xff
		data[at+1] ^= 0xff
		if _, err := parseFile(data, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("byte %d: error %v, want %q", at, err, want)
		}
	}
}

func TestBuiltinModelIsWhole(t *testing.T) {
	if _, err := parseFile(builtin, true); err != nil {
		t.Error(err)
	}
}

// FuzzParseFile changes the head and the list of sections: whatever stands there, parsing and loading must not fail otherwise
// than by an error.
func FuzzParseFile(f *testing.F) {
	f.Add(uint16(8), byte(2), uint16(200), byte(9))
	f.Add(uint16(44), byte(255), uint16(145), byte(255))
	f.Add(uint16(128+24), byte(0), uint16(128+25), byte(0)) // the first section is shorter
	data := slices.Clone(builtin)
	f.Fuzz(func(t *testing.T, at1 uint16, x1 byte, at2 uint16, x2 byte) {
		const head = 6656
		copy(data[:head], builtin)
		data[int(at1)%head], data[int(at2)%head] = x1, x2
		if file, err := parseFile(data, false); err == nil {
			newTokenizer(file).encode("passage: some 文字", MaxTokens)
		}
	})
}
