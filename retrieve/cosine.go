package retrieve

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"sync"

	"memgpt/store"
)

// aim is the vector of a query, less the owner's mean, of length 1, and the same in 16 steps a dimension as four rows of
// bits, to be compared with sign codes.
type aim struct {
	v      []float32
	planes [][4]uint64 // of each 64 dimensions, the lowest bit first
	low    float32     // value of step 0
	step   float32
	sum    float32 // of all steps' values
}

// aimOf subtracts the mean. A query that is the mean itself is near to nothing.
func aimOf(v, mean []float32) *aim {
	a := &aim{v: make([]float32, len(v)), planes: make([][4]uint64, (len(v)+63)/64)}
	norm := 0.0
	for i := range v {
		a.v[i] = v[i] - mean[i]
		norm += float64(a.v[i]) * float64(a.v[i])
	}
	if norm == 0 {
		return a
	}
	most := float32(0)
	for i := range a.v {
		a.v[i] /= float32(math.Sqrt(norm))
		most = max(most, a.v[i], -a.v[i])
	}
	a.low, a.step = -most, most/7.5
	for i, x := range a.v {
		level := uint64(min(15, max(0, math.Round(float64((x-a.low)/a.step)))))
		for p := range 4 {
			a.planes[i/64][p] |= level >> p & 1 << (i % 64)
		}
		a.sum += a.low + a.step*float32(level)
	}
	return a
}

// noVector stands for the cosine of a document without a vector.
const noVector = float32(-2)

// large is the number of documents or vectors from which on two goroutines work.
const large = 50_000

// cosines sets out, by document, to the cosine of each with the aim; the best of its pieces. Documents without a vector
// get noVector.
func (c *codes) cosines(a *aim, out []float32) {
	for i := range out {
		out[i] = noVector
	}
	run := c.wholeRows
	if c.bits != nil {
		run = c.signRows
	}
	n := len(c.doc)
	if n < large {
		run(a, out, 0, n)
		return
	}
	half := n / 2
	for half < n && c.doc[half] == c.doc[half-1] { // no document on both sides
		half++
	}
	var wg sync.WaitGroup
	wg.Go(func() { run(a, out, 0, half) })
	run(a, out, half, n)
	wg.Wait()
}

func (c *codes) wholeRows(a *aim, out []float32, from, to int) {
	c.rows(a, out, from, to, c.wholeCosines)
}

func (c *codes) signRows(a *aim, out []float32, from, to int) {
	c.rows(a, out, from, to, c.signCosines)
}

// compare sets out to the cosines of the rows from one on: true ones where the whole rows are kept.
func (c *codes) compare(a *aim, out []float32, from, to int) {
	if c.bits != nil {
		c.signCosines(a, out, from, to)
		return
	}
	c.wholeCosines(a, out, from, to)
}

// rows compares in chunks that stay in the cache, and gives each document its best.
func (c *codes) rows(a *aim, out []float32, from, to int, compare func(*aim, []float32, int, int)) {
	var chunk [512]float32
	for ; from < to; from += len(chunk) {
		end := min(to, from+len(chunk))
		compare(a, chunk[:], from, end)
		for k, d := range c.doc[from:end] {
			if int(d) < len(out) {
				out[d] = max(out[d], chunk[k])
			}
		}
	}
}

// wholeCosines sets out to the cosines of the whole rows from one on, the mean subtracted.
func (c *codes) wholeCosines(a *aim, out []float32, from, to int) {
	meanDot := dot(a.v, c.mean)
	meanNorm := dot(c.mean, c.mean)
	for i := from; i < to; i++ {
		d, m, norm := rowDots(a.v, c.mean, c.whole[i*c.dim:(i+1)*c.dim])
		out[i-from] = centred(c.unit[i], d, m, norm, meanDot, meanNorm)
	}
}

// centred returns the cosine of a row less the mean with the aim, from the row's products with aim, mean and itself.
func centred(unit, withAim, withMean, withSelf, meanAim, meanSelf float32) float32 {
	square := unit*unit*withSelf - 2*unit*withMean + meanSelf
	if square <= 1e-9 {
		return 0
	}
	return (unit*withAim - meanAim) / float32(math.Sqrt(float64(square)))
}

func rowDots(aim, mean []float32, row []int8) (withAim, withMean, withSelf float32) {
	aim, mean = aim[:len(row)], mean[:len(row)]
	for i, b := range row {
		x := float32(b)
		withAim += x * aim[i]
		withMean += x * mean[i]
		withSelf += x * x
	}
	return withAim, withMean, withSelf
}

func dot(a, b []float32) float32 {
	s := float32(0)
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// signCosines estimates the cosines of the rows from one on by their signs: E[x·s] of a vector s of signs, over that of a
// vector that follows a normal distribution.
func (c *codes) signCosines(a *aim, out []float32, from, to int) {
	scale := c.slope * float32(math.Sqrt(math.Pi/2)/math.Sqrt(float64(c.dim)))
	if c.stride == 6 {
		c.signCosines6(a, scale, out, from, to)
		return
	}
	for i := from; i < to; i++ {
		ones, steps := 0, 0
		for w, code := range c.bits[i*c.stride : (i+1)*c.stride] {
			p := &a.planes[w]
			ones += bits.OnesCount64(code)
			steps += bits.OnesCount64(code&p[0]) + 2*bits.OnesCount64(code&p[1]) + 4*bits.OnesCount64(code&p[2]) + 8*bits.OnesCount64(code&p[3])
		}
		out[i-from] = scale * (2*(a.low*float32(ones)+a.step*float32(steps)) - a.sum)
	}
}

// signCosines6 is signCosines for 384 dimensions.
func (c *codes) signCosines6(a *aim, scale float32, out []float32, from, to int) {
	planes := [6][4]uint64(a.planes)
	for i := from; i < to; i++ {
		code := (*[6]uint64)(c.bits[6*i:])
		ones, steps := 0, 0
		for w := range code {
			x, p := code[w], &planes[w]
			ones += bits.OnesCount64(x)
			steps += bits.OnesCount64(x&p[0]) + 2*bits.OnesCount64(x&p[1]) + 4*bits.OnesCount64(x&p[2]) + 8*bits.OnesCount64(x&p[3])
		}
		out[i-from] = scale * (2*(a.low*float32(ones)+a.step*float32(steps)) - a.sum)
	}
}

// exact reads the vectors of documents, whose numbers less one ascend, and tells their true cosines.
func (r *reading) exact(ctx context.Context, c *codes, a *aim, docs []int, set func(doc int, cosine float32)) error {
	numbers := make([]int64, len(docs))
	for k, d := range docs {
		numbers[k] = int64(d) + 1
	}
	meanDot, meanNorm := dot(a.v, c.mean), dot(c.mean, c.mean)
	row := make([]int8, c.dim)
	last, best := int64(0), noVector
	var bad error
	err := r.index.VectorsOf(ctx, r.tenant, r.owner, r.model, numbers, func(v store.Vector) bool {
		unit, data, err := packed(v.Data)
		if err != nil || len(data) != c.dim {
			bad = fmt.Errorf("the vector of document %d has %d bytes, unlike the owner's others: %w", v.Doc, len(v.Data), err)
			return false
		}
		if v.Doc != last && last > 0 {
			set(int(last-1), best)
			best = noVector
		}
		for i, b := range data {
			row[i] = int8(b)
		}
		withAim, withMean, withSelf := rowDots(a.v, c.mean, row)
		last, best = v.Doc, max(best, centred(unit, withAim, withMean, withSelf, meanDot, meanNorm))
		return true
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return fmt.Errorf("compare the nearest: %w", err)
	}
	if last > 0 {
		set(int(last-1), best)
	}
	return nil
}
