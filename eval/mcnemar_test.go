package eval

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMcNemarKnownValues(t *testing.T) {
	for _, c := range []struct {
		lost, gained int
		p, mid       float64
	}{
		{0, 0, 1, 1},
		{1, 0, 1, .5},                                 // 2·(1/2); less 1/2
		{0, 5, 2. / 32, 1. / 32},                      // 2·C(5,0)/2^5; less 1/32
		{1, 9, 22. / 1024, 12. / 1024},                // 2·(1+10)/2^10; less 10/2^10
		{2, 8, 112. / 1024, 67. / 1024},               // 2·(1+10+45)/2^10; less 45/2^10
		{8, 2, 112. / 1024, 67. / 1024},               // the same the other way round
		{3, 3, 1, 1 - 20./128},                        // equal; 1 less half of C(6,3)/2^6
		{6, 16, 220112. / 4194304, 145499. / 4194304}, // 2·(1+22+231+1540+7315+26334+74613)/2^22; less 74613/2^22
		{0, 60, math.Pow(2, -59), math.Pow(2, -60)},
	} {
		p, mid := McNemar(c.lost, c.gained)
		if !cmp.Equal(p, c.p, cmpopts.EquateApprox(1e-8, 0)) || !cmp.Equal(mid, c.mid, cmpopts.EquateApprox(1e-8, 0)) {
			t.Errorf("McNemar(%d, %d) = %v, mid %v, want %v, mid %v", c.lost, c.gained, p, mid, c.p, c.mid)
		}
	}
}

// Of large counts the exact test comes close to the normal distribution with Edwards' continuity correction, and stays a
// probability.
func TestMcNemarLargeCounts(t *testing.T) {
	for _, c := range [][2]int{{4900, 5100}, {49_500, 50_500}, {1_000_000, 1_001_000}} {
		p, mid := McNemar(c[0], c[1])
		n := float64(c[0] + c[1])
		want := math.Erfc((float64(c[1]-c[0]) - 1) / math.Sqrt(n) / math.Sqrt2)
		if math.Abs(p-want) > .002*want || mid >= p || mid < .9*p {
			t.Errorf("McNemar(%d, %d) = %v, mid %v, near %v", c[0], c[1], p, mid, want)
		}
	}
	if p, mid := McNemar(0, 1_000_000); p != 0 || mid != 0 {
		t.Errorf("a million to none: %v, %v", p, mid)
	}
}

// Two runs of one system differ by chance alone: the exact test must call out at most 5 of 100 such pairs, and it must
// call out nearly all pairs of which one is much better.
func TestMcNemarFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	pair := func(n int, a, b float64) float64 {
		lost, gained := 0, 0
		for range n {
			switch x, y := r.Float64() < a, r.Float64() < b; {
			case x && !y:
				lost++
			case y && !x:
				gained++
			}
		}
		p, _ := McNemar(lost, gained)
		return p
	}
	const runs = 4000
	for _, n := range []int{20, 80, 300} {
		for _, right := range []float64{.1, .5, .9} {
			alarms, found := 0, 0
			for range runs {
				if pair(n, right, right) <= .05 {
					alarms++
				}
			}
			if rate := float64(alarms) / runs; rate > .05 {
				t.Errorf("%d questions, right in %v: %v of the pairs of equals are called different", n, right, rate)
			} else {
				t.Logf("%d questions, right in %v: false alarms %v", n, right, rate)
			}
			for range 100 {
				if pair(300, .5, .75) <= .05 {
					found++
				}
			}
			if found < 95 {
				t.Errorf("a difference of 25 points in 300 questions is found in %d of 100", found)
			}
		}
	}
}

func TestHolm(t *testing.T) {
	// .01·4, .02·3, .03·2 raised to .06, .04·1 raised to .06
	got := Holm([]float64{.04, .01, .03, .02})
	if want := []float64{.06, .04, .06, .06}; !cmp.Equal(got, want, cmpopts.EquateApprox(1e-12, 0)) {
		t.Errorf("adjusted %v, want %v", got, want)
	}
	if got := Holm([]float64{.6, .7}); got[0] != 1 || got[1] != 1 {
		t.Errorf("adjusted %v, want no more than 1", got)
	}
	if got := Holm(nil); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}
