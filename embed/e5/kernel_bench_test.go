package e5

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkMultiply multiplies tiles with 8 panels of 384 columns, which stay in the first cache. best is the
// fastest call: what others do on the machine spoils the mean.
func BenchmarkMultiply(b *testing.B) {
	const cols, rows = 384, 8 * panelRows
	for _, k := range kernels() {
		for _, n := range []int{max(1, k.tile/2), k.tile} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				m, x := randomMatrix(rows, cols), randomRow(n*cols)
				buf := &buffers{tokens: n}
				buf.quant.resize(n, cols)
				t := buf.quant.tile(0, n, cols)
				buf.quantizeTile(k, t, x, cols)
				dst := make([]float32, n*rows)
				best := time.Hour
				for b.Loop() {
					began := time.Now()
					for range 20 {
						k.multiply(dst, rows, m.panels, m.bias, t, cols/blockSize)
					}
					best = min(best, time.Since(began)/20)
				}
				b.ReportMetric(float64(best.Nanoseconds()), "best-ns")
				b.ReportMetric(float64(n*rows*cols)/float64(best.Nanoseconds()), "products/ns")
			})
		}
	}
}

func randomRow(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// randomMatrix is a matrix with arbitrary weights, and scales from 1/64 to 1/16.
func randomMatrix(rows, cols int) matrix {
	r := rand.New(rand.NewPCG(3, 4))
	f := &file{section: map[string][]byte{"m.scale": make([]byte, rows*cols/blockSize*2), "m.nibble": make([]byte, rows*cols/2)}}
	for i := range f.section["m.nibble"] {
		f.section["m.nibble"][i] = byte(r.Uint32())
	}
	for i := 0; i < len(f.section["m.scale"]); i += 2 {
		f.section["m.scale"][i], f.section["m.scale"][i+1] = byte(r.Uint32()), 0x24+byte(r.IntN(8))
	}
	m := f.matrix("m", rows, cols)
	copy(m.bias, randomRow(rows))
	return m
}
