package eval

import (
	"math"
	"slices"
)

// McNemar tests whether two runs of the same questions differ, by the questions on which they disagree: lost are those that
// the first got right and the second did not, gained the others. p is the exact two-sided probability (McNemar 1947 with
// the binomial distribution): how likely a difference at least as large would be if each of those questions had as well
// gone the other way. mid is the mid-p variant (Fagerland, Lydersen and Laake 2013), which is less cautious. Both are 1
// where nothing differs.
func McNemar(lost, gained int) (p, mid float64) {
	n, few := lost+gained, min(lost, gained)
	if n == 0 {
		return 1, 1
	}
	tail := 0.0
	for k := few; k >= 0; k-- { // the largest first: what follows is soon too small to count
		part := binomialHalf(n, k)
		tail += part
		if part < tail*1e-18 {
			break
		}
	}
	at := binomialHalf(n, few)
	if lost == gained {
		return 1, 1 - at/2
	}
	return min(1, 2*tail), min(1, 2*tail-at)
}

// binomialHalf is the probability of k heads in n throws of a fair coin.
func binomialHalf(n, k int) float64 {
	all, _ := math.Lgamma(float64(n) + 1)
	in, _ := math.Lgamma(float64(k) + 1)
	out, _ := math.Lgamma(float64(n-k) + 1)
	return math.Exp(all - in - out - float64(n)*math.Ln2)
}

// Holm adjusts the probabilities of several tests so that the chance of any false alarm among them stays what one test's is
// (Holm 1979). The order is kept.
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return 0
	})
	out, least := make([]float64, len(ps)), 0.0
	for rank, i := range order {
		least = max(least, min(1, ps[i]*float64(len(ps)-rank)))
		out[i] = least
	}
	return out
}
