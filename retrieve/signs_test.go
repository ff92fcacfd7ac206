package retrieve

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestApart wants the CPU's own code and the plain one to agree, for even and odd numbers of codes and for extremes, and
// nothing to be written past the end.
func TestApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		codes := make([]uint64, 6*n)
		var aim aim6
		for i := range codes {
			codes[i] = rng.Uint64()
			if n%5 == 1 {
				codes[i] = -uint64(i % 2) // all ones and none
			}
		}
		for w := range aim {
			for p := range aim[w] {
				if aim[w][p] = rng.Uint64(); n%7 == 1 {
					aim[w][p] = 0
				}
			}
		}
		want, got := make([]int32, n), make([]int32, n+2)
		got[n], got[n+1] = -7, -7
		plainApart6(want, codes, &aim)
		apart6(got[:n], codes, &aim)
		if !slices.Equal(got[:n], want) || got[n] != -7 || got[n+1] != -7 {
			t.Fatalf("%d codes: %v, want %v", n, got, want)
		}
	}
}

func BenchmarkApart(b *testing.B) {
	codes := make([]uint64, 6*512)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range codes {
		codes[i] = rng.Uint64()
	}
	var aim aim6
	apart := make([]int32, 512)
	for _, way := range []struct {
		name string
		do   func([]int32, []uint64, *aim6)
	}{{"plain", plainApart6}, {"this CPU", apart6}} {
		b.Run(way.name, func(b *testing.B) {
			for b.Loop() {
				way.do(apart, codes, &aim)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/code")
		})
	}
}
