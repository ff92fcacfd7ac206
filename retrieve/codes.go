package retrieve

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"memgpt/store"
)

// Bounds of what is kept of vectors in memory.
const (
	exactVectors = 2000 // up to here an owner's vectors are kept whole, over it as sign codes
	sampled      = 4096 // documents whose vectors the mean is taken from
	pull         = 64   // vectors that the model's prior counts for in the mean, so that a few texts don't cancel themselves out
)

// codes are the vectors of one owner by one model, as a search compares them: less their mean, since the vectors of a
// model all point one way. They are whole, in a byte a dimension, up to exactVectors; over it a bit a dimension, its sign.
// What is read of them is never changed: growth appends, or makes them new.
type codes struct {
	dim, stride int
	through     int64     // documents that were asked for,
	version     int64     // of the cursor then
	doc         []uint32  // of each vector: its number less one, ascending
	whole       []int8    // rows of dim; nil for sign codes
	unit        []float32 // what a whole row is multiplied by
	bits        []uint64  // rows of stride
	sum         []float64 // of the whole rows
	mean        []float32
	basis       int64   // documents that the mean of sign codes is of: a power of two
	noise       float32 // deviation of a cosine by sign code from the true one
	slope       float32 // true cosine over that by sign code
}

func (c *codes) bytes() int64 {
	return int64(4*cap(c.doc)+cap(c.whole)+4*cap(c.unit)+8*cap(c.bits)+8*cap(c.sum)+4*cap(c.mean)) + 200
}

// reading is what codes are loaded from.
type reading struct {
	index                store.Index
	tenant, owner, model string
	prior                *prior
}

// grown returns the codes with all vectors of documents up to the cursor.
func (r *reading) grown(ctx context.Context, c *codes, at store.Cursor) (*codes, error) {
	through := at.Through
	switch {
	case c == nil || through < c.through || at.Version != c.version:
		c = &codes{version: at.Version}
	case through == c.through:
		return c, nil
	case c.bits != nil && basisOf(through) != c.basis:
		c = &codes{version: at.Version}
	}
	if c.bits != nil {
		return r.grownSigns(ctx, c, through)
	}
	next, err := r.grownWhole(ctx, c, through)
	if err != nil || next != nil {
		return next, err
	}
	return r.grownSigns(ctx, &codes{version: at.Version}, through)
}

// basisOf returns the largest power of two that is not over n.
func basisOf(n int64) int64 {
	b := int64(1)
	for b*2 <= n {
		b *= 2
	}
	return b
}

// grownWhole adds whole vectors; nil if they become too many.
func (r *reading) grownWhole(ctx context.Context, c *codes, through int64) (*codes, error) {
	next := *c
	next.sum = slices.Clone(c.sum)
	var bad error
	err := r.index.Vectors(ctx, r.tenant, r.owner, r.model, c.through, func(v store.Vector) bool {
		if v.Doc > through {
			return false
		}
		bad = next.addWhole(v)
		return bad == nil && len(next.doc) <= exactVectors
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("load vectors: %w", err)
	}
	if len(next.doc) > exactVectors {
		return nil, nil
	}
	next.through = through
	next.mean = r.meanOf(next.sum, len(next.doc))
	return &next, nil
}

func (c *codes) addWhole(v store.Vector) error {
	unit, row, err := packed(v.Data)
	if err != nil {
		return err
	}
	if err := c.sized(len(row)); err != nil {
		return err
	}
	if c.sum == nil {
		c.sum = make([]float64, c.dim)
	}
	c.doc = append(c.doc, uint32(v.Doc-1))
	c.unit = append(c.unit, unit)
	for i, b := range row {
		x := int8(b)
		c.whole = append(c.whole, x)
		c.sum[i] += float64(unit * float32(x))
	}
	return nil
}

// sized takes the dimensions from the first vector and holds the others to them.
func (c *codes) sized(dim int) error {
	if c.dim == 0 {
		c.dim, c.stride = dim, (dim+63)/64
	}
	if dim != c.dim {
		return fmt.Errorf("a vector has %d dimensions among others of %d", dim, c.dim)
	}
	return nil
}

func (r *reading) meanOf(sum []float64, n int) []float32 {
	mean := make([]float32, len(sum))
	for i, s := range sum {
		if i < len(r.prior.mean) {
			s += pull * float64(r.prior.mean[i])
		}
		mean[i] = float32(s / float64(n+pull))
	}
	return mean
}

// grownSigns adds sign codes. The mean is that of a sample of the documents up to a power of two, so that it doesn't
// depend on the steps in which an owner grew.
func (r *reading) grownSigns(ctx context.Context, c *codes, through int64) (*codes, error) {
	next := *c
	if next.mean == nil {
		if err := r.calibrate(ctx, &next, basisOf(through)); err != nil {
			return nil, err
		}
	}
	next.room(int(through - next.through))
	var bad error
	err := r.index.Vectors(ctx, r.tenant, r.owner, r.model, next.through, func(v store.Vector) bool {
		if v.Doc > through {
			return false
		}
		bad = next.addSigns(v)
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("load vectors: %w", err)
	}
	next.through = through
	return &next, nil
}

// room makes room for the sign codes of so many more vectors, so that a first load neither copies them again and again nor
// keeps more than it needs.
func (c *codes) room(n int) {
	if c.bits == nil {
		c.doc, c.bits = make([]uint32, 0, n), make([]uint64, 0, n*c.stride)
	}
}

func (c *codes) addSigns(v store.Vector) error {
	unit, row, err := packed(v.Data)
	if err != nil {
		return err
	}
	if err := c.sized(len(row)); err != nil {
		return err
	}
	c.doc = append(c.doc, uint32(v.Doc-1))
	c.bits = appendSigns(c.bits, unit, row, c.mean)
	return nil
}

// appendSigns appends a bit for each dimension: whether it is over the mean. The bit is the sign of their difference: half
// of the dimensions are over it, which no processor foretells, and a million vectors are loaded by this.
func appendSigns(bits []uint64, unit float32, row []byte, mean []float32) []uint64 {
	for len(row) > 0 {
		n := min(len(row), 64)
		word, means := uint64(0), mean[:n]
		for i, b := range row[:n] {
			under := means[i] - float32(unit*float32(int8(b))) // rounded, so that all processors agree
			word |= uint64(math.Float32bits(under)>>31) << (i & 63)
		}
		bits, row, mean = append(bits, word), row[n:], mean[n:]
	}
	return bits
}

// calibrate takes the mean from a sample of the first documents, and how true sign codes are to it.
func (r *reading) calibrate(ctx context.Context, c *codes, basis int64) error {
	numbers := make([]int64, 0, sampled)
	for k := range min(basis, sampled) {
		numbers = append(numbers, 1+k*basis/min(basis, sampled))
	}
	some := &codes{}
	var bad error
	err := r.index.VectorsOf(ctx, r.tenant, r.owner, r.model, numbers, func(v store.Vector) bool {
		bad = some.addWhole(v)
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return fmt.Errorf("sample vectors: %w", err)
	}
	if len(some.doc) == 0 {
		return fmt.Errorf("sample vectors: none of %d documents has one", len(numbers))
	}
	c.dim, c.stride, c.basis = some.dim, some.stride, basis
	c.mean = r.meanOf(some.sum, len(some.doc))
	c.slope, c.noise = some.trueness(c.mean)
	return nil
}

// Sizes of the check of sign codes on an owner's own vectors.
const (
	checkAsked = 24
	checkRows  = 512
)

// trueness compares cosines by sign code with true ones on a part of whole vectors.
func (c *codes) trueness(mean []float32) (slope, noise float32) {
	c.mean = mean
	n := len(c.doc)
	signs := &codes{dim: c.dim, stride: c.stride, slope: 1}
	rows := make([]int, 0, checkRows)
	for k := range min(n, checkRows) {
		i := k * n / min(n, checkRows)
		rows = append(rows, i)
		row := make([]byte, c.dim)
		for d, x := range c.whole[i*c.dim : (i+1)*c.dim] {
			row[d] = byte(x)
		}
		signs.doc = append(signs.doc, uint32(k))
		signs.bits = appendSigns(signs.bits, c.unit[i], row, mean)
	}
	near, told := make([]float32, n), make([]float32, len(rows))
	var xx, xy, yy float64
	count := 0
	for k := range min(checkAsked, len(rows)) {
		q := aimOf(c.row(rows[k*len(rows)/min(checkAsked, len(rows))]), mean)
		c.wholeCosines(q, near, 0, n)
		signs.signCosines(q, told, 0, len(rows))
		for j, i := range rows {
			x, y := float64(told[j]), float64(near[i])
			if y < .99 { // itself
				xx, xy, yy = xx+x*x, xy+x*y, yy+y*y
				count++
			}
		}
	}
	if xx == 0 {
		return 1, .05
	}
	slope = float32(xy / xx)
	return slope, float32(math.Sqrt(max(0, (yy-xy*xy/xx)/float64(count))))
}

// row returns a whole row as a vector.
func (c *codes) row(i int) []float32 {
	v := make([]float32, c.dim)
	for d, x := range c.whole[i*c.dim : (i+1)*c.dim] {
		v[d] = c.unit[i] * float32(x)
	}
	return v
}

// shelf keeps what is in memory of each owner, up to a limit in bytes. Who searches holds on to what it took, so that
// nothing waits for it to be dropped.
type shelf struct {
	limit int64

	mu    sync.Mutex
	held  map[shelfKey]*slot
	total int64
	clock int64
}

type shelfKey struct{ tenant, owner, model string }

// slot is the place of one owner and model. Its lock is held while it is loaded, so that it is loaded once.
type slot struct {
	loading sync.Mutex
	codes   *codes
	layout  *layout
	lives   *lives
	strange strangeness

	size, used int64 // under the shelf's lock
}

func newShelf(limit int64) *shelf { return &shelf{limit: limit, held: map[shelfKey]*slot{}} }

// slot returns an owner's place, locked.
func (s *shelf) slot(key shelfKey) *slot {
	s.mu.Lock()
	sl := s.held[key]
	if sl == nil {
		sl = &slot{}
		s.held[key] = sl
	}
	s.clock++
	sl.used = s.clock
	s.mu.Unlock()
	sl.loading.Lock()
	return sl
}

// done notes what a place holds now, unlocks it, and drops the places that were not used for the longest.
func (s *shelf) done(key shelfKey, sl *slot) {
	size := int64(300)
	if sl.codes != nil {
		size += sl.codes.bytes()
	}
	if sl.layout != nil {
		size += sl.layout.bytes()
	}
	if sl.lives != nil {
		size += sl.lives.bytes()
	}
	sl.loading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[key] != sl {
		return // dropped meanwhile
	}
	s.total += size - sl.size
	sl.size = size
	for s.total > s.limit && len(s.held) > 1 {
		oldest := key
		for k, other := range s.held {
			if k != key && (oldest == key || other.used < s.held[oldest].used) {
				oldest = k
			}
		}
		s.total -= s.held[oldest].size
		delete(s.held, oldest)
	}
}
