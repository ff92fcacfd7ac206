package retrieve

import (
	"cmp"
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
	step   float32     // step 0 is 7.5 steps below 0
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
	a.step = most / 7.5
	for i, x := range a.v {
		level := uint64(min(15, max(0, math.Round(float64(x/a.step+7.5)))))
		for p := range 4 {
			a.planes[i/64][p] |= level >> p & 1 << (i % 64)
		}
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
// vector that follows a normal distribution. The 16 steps of the aim are the sums of 1, 2, 4 and 8 halves of a step, each
// with a sign of its own (aim.planes): so the product with s is a sum of how many signs agree, over four rows of bits.
func (c *codes) signCosines(a *aim, out []float32, from, to int) {
	scale := c.slope * float32(math.Sqrt(math.Pi/2)/math.Sqrt(float64(c.dim))) * a.step
	most := scale * 7.5 * float32(c.dim) // all signs agree
	if c.stride == 6 {
		c.signCosines6(a, most, scale, out, from, to)
		return
	}
	for i := from; i < to; i++ {
		apart := 0
		for w, code := range c.bits[i*c.stride : (i+1)*c.stride] {
			p := &a.planes[w]
			apart += bits.OnesCount64(code^p[0]) + 2*bits.OnesCount64(code^p[1]) + 4*bits.OnesCount64(code^p[2]) + 8*bits.OnesCount64(code^p[3])
		}
		out[i-from] = most - scale*float32(apart)
	}
}

// signCosines6 is signCosines for 384 dimensions.
func (c *codes) signCosines6(a *aim, most, scale float32, out []float32, from, to int) {
	aim := aim6(a.planes)
	var apart [512]int32
	for at := from; at < to; at += len(apart) {
		part := apart[:min(len(apart), to-at)]
		apart6(part, c.bits[6*at:], &aim)
		for i, n := range part {
			out[at-from+i] = most - scale*float32(n)
		}
	}
}

// splitReads is the number of documents from which on vectors are read from the store in two halves, side by side.
const splitReads = halver(64)

// exact reads the vectors of documents, whose numbers less one ascend, and tells their true cosines in that order.
func (r *reading) exact(ctx context.Context, c *codes, a *aim, docs []int, set func(doc int, cosine float32)) error {
	var told [2][]found
	var errs [2]error
	splitReads.run(len(docs), func(half, from, to int) {
		told[half], errs[half] = r.trueCosines(ctx, c, a, docs[from:to])
	})
	if err := cmp.Or(errs[0], errs[1]); err != nil {
		return fmt.Errorf("compare the nearest: %w", err)
	}
	for _, list := range told {
		for _, d := range list {
			set(d.doc, d.score)
		}
	}
	return nil
}

// trueCosines reads the vectors of documents and returns the cosine of each that has any.
func (r *reading) trueCosines(ctx context.Context, c *codes, a *aim, docs []int) ([]found, error) {
	numbers := make([]int64, len(docs))
	for k, d := range docs {
		numbers[k] = int64(d) + 1
	}
	meanDot, meanNorm := dot(a.v, c.mean), dot(c.mean, c.mean)
	row := make([]int8, c.dim)
	told := make([]found, 0, len(docs))
	var bad error
	err := r.index.VectorsOf(ctx, r.tenant, r.owner, r.model, numbers, func(v store.Vector) bool {
		unit, data, err := packed(v.Data)
		if err == nil && len(data) != c.dim {
			err = fmt.Errorf("it has %d dimensions, the owner's others have %d", len(data), c.dim)
		}
		if err != nil {
			bad = fmt.Errorf("the vector of document %d: %w", v.Doc, err)
			return false
		}
		for i, b := range data {
			row[i] = int8(b)
		}
		withAim, withMean, withSelf := rowDots(a.v, c.mean, row)
		cosine := centred(unit, withAim, withMean, withSelf, meanDot, meanNorm)
		if n := len(told); n > 0 && told[n-1].doc == int(v.Doc-1) { // another piece of it
			told[n-1].score = max(told[n-1].score, cosine)
		} else {
			told = append(told, found{doc: int(v.Doc - 1), score: cosine})
		}
		return true
	})
	return told, cmp.Or(err, bad)
}
