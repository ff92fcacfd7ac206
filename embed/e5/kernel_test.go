package e5

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The tests of this file hold every kernel of this CPU against plain Go, and that against the formulas.

// others calls do for every kernel but plain Go.
func others(t *testing.T, do func(t *testing.T, k, plain kernel)) {
	list := kernels()
	if len(list) == 1 {
		t.Skip("no machine code for this CPU")
	}
	for _, k := range list[:len(list)-1] {
		t.Run(k.name, func(t *testing.T) { do(t, k, list[len(list)-1]) })
	}
}

// near reports the first number that is off by more than tol, relative to numbers over 1.
func near(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if !(math.Abs(g-w) <= tol*max(1, math.Abs(w))) {
			t.Errorf("%s: %g at %d of %d, want %g", what, g, i, len(want), w)
			return
		}
	}
}

func quantizeRows(k kernel, n, cols int, x []float32) *buffers {
	b := &buffers{tokens: n}
	b.quant.resize(n, cols)
	b.quantizeTile(k, b.quant.tile(0, n, cols), x, cols)
	return b
}

// edgeRow has blocks of zeros, of one great number, of equal numbers, and halves that must be rounded to even.
func edgeRow(cols int) []float32 {
	x := randomRow(cols)
	for i := range blockSize {
		x[i] = 0
		x[blockSize+i] = 0
		x[2*blockSize+i] = -7
		x[3*blockSize+i] = float32(i) - 15.5
	}
	x[blockSize+5] = 1e20
	x[3*blockSize] = 127
	return x
}

func TestKernelsQuantizeAlike(t *testing.T) {
	others(t, func(t *testing.T, k, plain kernel) {
		for _, cols := range []int{128, 384, 1536} {
			x := slices.Concat(edgeRow(cols), randomRow(cols), randomRow(cols))
			got, want := quantizeRows(k, 3, cols, x).quant, quantizeRows(plain, 3, cols, x).quant
			if !slices.Equal(got.bytes, want.bytes) || !slices.Equal(got.corr, want.corr) || !slices.Equal(got.scale, want.scale) {
				t.Errorf("%d columns: other bytes, sums or scales", cols)
			}
		}
	})
}

func TestQuantizeKeepsNumbers(t *testing.T) {
	x := edgeRow(384)
	q := quantizeRows(plainKernel(), 1, 384, x).quant
	for i, v := range x {
		scale := q.scale[i/blockSize]
		if off := math.Abs(float64(v) - float64(q.bytes[i])*float64(scale)); off > .501*float64(scale) {
			t.Errorf("%g became %d times %g", v, q.bytes[i], scale)
		}
	}
}

// TestKernelsMultiplyAlike takes every size of tile. The extreme inputs are all weights 15 or 0 and all activations 127 or
// -127: sums must not overflow. Scales are powers of two there, so that the sums must be equal to the bit.
func TestKernelsMultiplyAlike(t *testing.T) {
	others(t, func(t *testing.T, k, plain kernel) {
		for _, cols := range []int{384, 1536} {
			const rows = 3 * panelRows
			random, extreme := randomMatrix(rows, cols), extremeMatrix(rows, cols)
			for n := 1; n <= k.tile; n++ {
				compareProducts(t, fmt.Sprintf("random, %d tokens of %d", n, cols), k, plain, &random, randomRow(n*cols), 2e-5)
				for _, sign := range []float32{1, -1} {
					compareProducts(t, fmt.Sprintf("extreme, %d tokens of %d", n, cols), k, plain, &extreme, slices.Repeat([]float32{127 * sign}, n*cols), 0)
				}
			}
		}
	})
}

func compareProducts(t *testing.T, what string, k, plain kernel, m *matrix, x []float32, tol float64) {
	t.Helper()
	n := len(x) / m.cols
	b := quantizeRows(plain, n, m.cols, x)
	got, want := make([]float32, n*m.rows), make([]float32, n*m.rows)
	in := b.quant.tile(0, n, m.cols)
	k.multiply(got, m.rows, m.panels, m.bias, in, m.cols/blockSize)
	plain.multiply(want, m.rows, m.panels, m.bias, in, m.cols/blockSize)
	near(t, what, got, want, tol)
}

// extremeMatrix has rows of the weights -8, 7 and both by turns, with the scale 1.
func extremeMatrix(rows, cols int) matrix {
	f := &file{section: map[string][]byte{"m.scale": make([]byte, rows*cols/blockSize*2), "m.nibble": make([]byte, rows*cols/2)}}
	for i := range f.section["m.nibble"] {
		f.section["m.nibble"][i] = []byte{0x00, 0xff, 0xf0}[i/(cols/2)%3]
	}
	for i := 1; i < len(f.section["m.scale"]); i += 2 {
		f.section["m.scale"][i] = 0x3c
	}
	return f.matrix("m", rows, cols)
}

// TestMultiplyIsTheProduct holds plain Go against a product of float64, from the file's own layout.
func TestMultiplyIsTheProduct(t *testing.T) {
	const rows, cols, n = 32, 128, 5
	f := &file{section: map[string][]byte{"m.scale": make([]byte, rows*cols/blockSize*2), "m.nibble": make([]byte, rows*cols/2)}}
	for i := range f.section["m.nibble"] {
		f.section["m.nibble"][i] = byte(i * 37)
	}
	for i := range f.section["m.scale"] {
		f.section["m.scale"][i] = byte(0x30 + i%7)
	}
	m, x := f.matrix("m", rows, cols), randomRow(n*cols)
	b := quantizeRows(plainKernel(), n, cols, x)
	got, want := make([]float32, n*rows), make([]float32, n*rows)
	multiplyPlain(got, rows, m.panels, m.bias, b.quant.tile(0, n, cols), cols/blockSize)
	q, w := quarter{f.section["m.scale"], f.section["m.nibble"], cols}, make([]float32, cols)
	for r := range rows {
		q.row(w, r)
		for i := range n {
			sum := 0.0
			for c := range cols {
				at := (c/blockSize)*n + i
				sum += float64(w[c]) * float64(b.quant.bytes[blockSize*at+c%blockSize]) * float64(b.quant.scale[at])
			}
			want[i*rows+r] = float32(sum)
		}
	}
	near(t, "product", got, want, 1e-5)
}

func TestKernelsNormAlike(t *testing.T) {
	others(t, func(t *testing.T, k, plain kernel) {
		const size = 384
		norm := lineNorm{randomRow(size), randomRow(2 * size)[size:]}
		got, y := slices.Concat(randomRow(3*size), make([]float32, size)), randomRow(4*size)
		clear(y[3*size:]) // a row of zeros: epsilon keeps it finite
		want := slices.Clone(got)
		k.addNorm(got, y, norm, 1e-12)
		plain.addNorm(want, y, norm, 1e-12)
		near(t, "norm", got, want, 2e-5)
	})
}

func TestGELU(t *testing.T) {
	for _, k := range kernels() {
		x := make([]float32, 16*1000)
		for i := range x {
			x[i] = float32(i)/800 - 10
		}
		x = append(x, slices.Repeat([]float32{-1e30, 1e30, 0, 4.5, -4.5, 4.4999, -4.4999, 1e-30}, 2)...)
		want := make([]float32, len(x))
		for i, v := range x {
			want[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
		}
		k.gelu(x)
		near(t, k.name, x, want, 2e-5)
	}
}

func TestExp2(t *testing.T) {
	for i := range 12_600 {
		x := -float32(i) / 100
		if want := math.Exp2(float64(x)); math.Abs(float64(exp2(x))-want) > 3e-7*want {
			t.Fatalf("2^%g is %g, want %g", x, exp2(x), want)
		}
	}
	if x := exp2(-1e30); x > 1e-37 {
		t.Errorf("2^-1e30 is %g", x)
	}
}

func TestKernelsAttendAlike(t *testing.T) {
	others(t, func(t *testing.T, k, plain kernel) {
		const hidden = 128
		for _, n := range []int{1, 2, 4, 5, 31, 32, 33, 200} {
			b := &buffers{texts: []span{{0, n}}}
			b.resize(&header{hidden: hidden, ffn: hidden}, n)
			qkv := slices.Concat(randomRow(n*qkvWidth(hidden)), make([]float32, slack*qkvWidth(hidden)))
			for i := range qkv { // scores that differ much
				qkv[i] *= 3
			}
			got, want := make([]float32, (n+slack)*hidden), make([]float32, (n+slack)*hidden)
			k.attend(got[headDim:], qkv[headDim:], hidden, n, b)
			plain.attend(want[headDim:], qkv[headDim:], hidden, n, b)
			for i := range n {
				near(t, fmt.Sprintf("%d tokens, row %d", n, i), got[i*hidden:][:hidden], want[i*hidden:][:hidden], 2e-5)
			}
		}
	})
}

// TestForwardPassInFloats runs the plain formulas in float64 over the file's weights, without panels, bytes or kernels: what
// the test vectors' narrow tolerance is for.
func TestForwardPassInFloats(t *testing.T) {
	f, err := readModel("")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range samples(t) {
		if i%20 == 3 && s.N < 40 {
			tolerance{1e-5, 1e-4, .99999}.check(t, s, floatForward(f, s.IDs))
		}
	}
}
