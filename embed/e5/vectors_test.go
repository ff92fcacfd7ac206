package e5

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// sample is one line of testdata/testvectors.jsonl, which came with the model.
type sample struct {
	Text, Prefix string
	N            int
	IDs          []uint32
	Dims         []float64 // the first 16
	Sum          float64   // of all
}

func samples(t testing.TB) []sample {
	t.Helper()
	f, err := os.Open("testdata/testvectors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	var list []sample
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := lines.Err(); err != nil || len(list) != 80 {
		t.Fatalf("read %d samples, want 80 (error %v)", len(list), err)
	}
	return list
}

func newEncoder(t testing.TB, k kernel) *Encoder {
	t.Helper()
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	e.kernel = k
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// tolerance bounds how far a vector may be from a sample: a dimension, the sum, and the cosine of the 16 dimensions.
type tolerance struct{ dim, sum, cos float64 }

func (tol tolerance) check(t *testing.T, s sample, v []float32) {
	t.Helper()
	var sum, dot, a, b, worst float64
	for _, x := range v {
		sum += float64(x)
	}
	for i, want := range s.Dims {
		got := float64(v[i])
		worst = max(worst, math.Abs(got-want))
		dot, a, b = dot+got*want, a+got*got, b+want*want
	}
	cos := dot / math.Sqrt(a*b)
	if !(worst <= tol.dim && math.Abs(sum-s.Sum) <= tol.sum && cos >= tol.cos) {
		t.Errorf("%.40q: off by %.2g a dimension, %.2g in the sum, cosine %.5f; want %+v", s.Text, worst, sum-s.Sum, cos, tol)
	}
}

func TestTokenizerAgreesWithTestVectors(t *testing.T) {
	f, err := readModel("")
	if err != nil {
		t.Fatal(err)
	}
	tok := newTokenizer(f)
	for _, s := range samples(t) {
		if got := tok.encode(s.Prefix+s.Text, MaxTokens); !slices.Equal(got, s.IDs) || len(got) != s.N {
			t.Errorf("%.60q\n got %v\nwant %v", s.Text, got, s.IDs)
		}
	}
}

// TestKernelsAgreeWithTestVectors holds each kernel of this CPU against the tolerance for activations of 8 bits.
func TestKernelsAgreeWithTestVectors(t *testing.T) {
	for _, k := range kernels() {
		t.Run(k.name, func(t *testing.T) {
			e := newEncoder(t, k)
			for _, query := range []bool{false, true} {
				var list []sample
				var texts []string
				for i, s := range samples(t) {
					if (k.name == "go" || testing.Short()) && (i%8 != 0 || s.N > 40) {
						continue // plain Go is slow, and the others are held against it
					}
					if (s.Prefix == queryPrefix) == query {
						list, texts = append(list, s), append(texts, s.Text)
					}
				}
				vectors, err := e.Embed(t.Context(), texts, query)
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range list {
					tolerance{8e-3, 4e-2, .998}.check(t, s, vectors[i])
				}
			}
		})
	}
}
