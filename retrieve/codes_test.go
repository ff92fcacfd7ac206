package retrieve

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"memgpt/store"
)

// vectorList is a store.Index of one owner's vectors, in the order of documents.
type vectorList struct {
	store.Index
	list  []store.Vector
	reads int
}

func (l *vectorList) Vectors(_ context.Context, _, _, _ string, after int64, yield func(store.Vector) bool) error {
	l.reads++
	for _, v := range l.list {
		if v.Doc > after && !yield(v) {
			break
		}
	}
	return nil
}

func (l *vectorList) VectorsOf(_ context.Context, _, _, _ string, docs []int64, yield func(store.Vector) bool) error {
	for _, v := range l.list {
		if _, found := slices.BinarySearch(docs, v.Doc); found && !yield(v) {
			break
		}
	}
	return nil
}

// oneWay returns n unit vectors that all point one way, like a sentence encoder's, in groups of like ones.
func oneWay(rnd *rand.Rand, n, dim int) [][]float32 {
	centre := make([]float32, dim)
	for i := range centre {
		centre[i] = float32(rnd.NormFloat64()) * 2
	}
	groups := make([][]float32, 1+n/40)
	for g := range groups {
		groups[g] = make([]float32, dim)
		for i := range centre {
			groups[g][i] = float32(rnd.NormFloat64())
		}
	}
	out := make([][]float32, n)
	for k := range out {
		v := make([]float32, dim)
		g := groups[rnd.IntN(len(groups))]
		for i := range v {
			v[i] = centre[i] + g[i]*.6 + float32(rnd.NormFloat64())*.8
		}
		out[k] = scaled(v)
	}
	return out
}

func scaled(v []float32) []float32 {
	n := float32(math.Sqrt(float64(dot(v, v))))
	out := make([]float32, len(v))
	for i := range v {
		out[i] = v[i] / n
	}
	return out
}

func listed(vectors [][]float32) *vectorList {
	l := &vectorList{}
	for i, v := range vectors {
		l.list = append(l.list, store.Vector{Doc: int64(i + 1), Data: packVector(v)})
	}
	return l
}

func readingOf(l *vectorList, dim int) *reading {
	return &reading{index: l, owner: "a", model: "m", prior: &prior{mean: make([]float32, dim), apart: .1}}
}

func (c *codes) same(d *codes) bool {
	return c.dim == d.dim && c.through == d.through && c.basis == d.basis && slices.Equal(c.doc, d.doc) && slices.Equal(c.whole, d.whole) &&
		slices.Equal(c.bits, d.bits) && slices.Equal(c.mean, d.mean) && c.noise == d.noise && c.slope == d.slope
}

// TestGrowthEqualsRebuild grows codes in random steps, past the border from whole vectors to signs and powers of two.
func TestGrowthEqualsRebuild(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	const n = 5000
	list := listed(oneWay(rnd, n, 100))
	r := readingOf(list, 100)
	var grown *codes
	for through := int64(0); through < n; {
		through = min(n, through+int64(1+rnd.IntN(700)))
		before := grown
		var kept codes
		if before != nil {
			kept = *before
			kept.doc, kept.bits, kept.whole = slices.Clone(before.doc), slices.Clone(before.bits), slices.Clone(before.whole)
		}
		var err error
		if grown, err = r.grown(t.Context(), grown, store.Cursor{Through: through}); err != nil {
			t.Fatal(err)
		}
		fresh, err := r.grown(t.Context(), nil, store.Cursor{Through: through})
		if err != nil {
			t.Fatal(err)
		}
		if !grown.same(fresh) {
			t.Fatalf("codes grown up to %d differ from new ones", through)
		}
		if before != nil && !before.same(&kept) {
			t.Fatalf("growth to %d changed what a search may hold", through)
		}
		if signs := grown.bits != nil; signs != (through > exactVectors) || signs == (grown.whole != nil) {
			t.Fatalf("%d vectors are kept as signs: %v", through, signs)
		}
	}
	if whole, err := r.grown(t.Context(), nil, store.Cursor{Through: 100}); err != nil {
		t.Error(err)
	} else if smaller, err := r.grown(t.Context(), whole, store.Cursor{Through: 10}); err != nil || len(smaller.doc) != 10 {
		t.Errorf("after whole vectors were dropped there are %d, %v", len(smaller.doc), err)
	}
	if smaller, err := r.grown(t.Context(), grown, store.Cursor{Through: 10}); err != nil || len(smaller.doc) != 10 {
		t.Errorf("after vectors were dropped there are %v, %v", smaller, err)
	}
}

// TestCosines compares whole vectors with plain arithmetic, with and without pieces.
func TestCosines(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for _, dim := range []int{1, 5, 63, 64, 100, 384} {
		vectors := oneWay(rnd, 200, dim)
		list := &vectorList{}
		for i, v := range vectors {
			if i%7 != 3 { // documents without text have no vector
				list.list = append(list.list, store.Vector{Doc: int64(i/2 + 1), Piece: i % 2, Data: packVector(v)})
			}
		}
		r := readingOf(list, dim)
		c, err := r.grown(t.Context(), nil, store.Cursor{Through: 100})
		if err != nil {
			t.Fatal(err)
		}
		q := oneWay(rnd, 1, dim)[0]
		out := make([]float32, 101)
		c.cosines(aimOf(q, c.mean), out)
		for doc := range out {
			want := float64(noVector)
			for i := 2 * doc; i < min(200, 2*doc+2); i++ {
				if i%7 == 3 {
					continue
				}
				kept, err := unpackVector(packVector(vectors[i]), nil)
				if err != nil {
					t.Fatal(err)
				}
				var ab, aa, bb float64
				for k := range q {
					x, y := float64(q[k]-c.mean[k]), float64(kept[k]-c.mean[k])
					ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
				}
				want = max(want, ab/math.Sqrt(aa*bb))
			}
			if math.Abs(want-float64(out[doc])) > 1e-4 {
				t.Fatalf("%d dimensions, document %d: cosine %v, want %v", dim, doc, out[doc], want)
			}
		}
	}
}

// TestSignCodesFindTheNearest holds recall@10 of what is rescored to .98, on vectors in groups.
func TestSignCodesFindTheNearest(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for _, dim := range []int{100, 384} {
		vectors := oneWay(rnd, 6000, dim)
		r := readingOf(listed(vectors), dim)
		signs, err := r.grown(t.Context(), nil, store.Cursor{Through: 6000})
		if err != nil {
			t.Fatal(err)
		}
		hits, asked := 0, 40
		for range asked {
			q := make([]float32, dim)
			for i, x := range vectors[rnd.IntN(len(vectors))] {
				q[i] = x + float32(rnd.NormFloat64()*.5/math.Sqrt(float64(dim)))
			}
			a := aimOf(q, signs.mean)
			told, exact := make([]float32, 6000), make([]float32, 6000)
			signs.cosines(a, told)
			all := make([]int, 6000)
			for i := range all {
				all[i] = i
			}
			if err := r.exact(t.Context(), signs, a, all, func(i int, x float32) { exact[i] = x }); err != nil {
				t.Fatal(err)
			}
			var order []found
			for _, i := range bestPlaces(told, mostRescored) {
				order = append(order, found{doc: i, score: told[i]})
			}
			si := &sight{reading: r, codes: signs, aim: a}
			mended := slices.Clone(told)
			done, err := si.rescoreBest(t.Context(), order, mended, func(i int, x float32) { mended[i] = x })
			if err != nil {
				t.Fatal(err)
			}
			for k, d := range order {
				if k < done && mended[d.doc] != exact[d.doc] || k >= done && mended[d.doc] != told[d.doc] {
					t.Fatalf("%d dimensions: %d are said to be replaced, and the cosine of number %d tells otherwise", dim, done, k)
				}
			}
			best := bestPlaces(mended, 10)
			for _, i := range bestPlaces(exact, 10) {
				if slices.Contains(best, i) {
					hits++
				}
			}
			var squares float64
			for i := range told {
				squares += float64((told[i] - exact[i]) * (told[i] - exact[i]))
			}
			if off := math.Sqrt(squares / 6000); off > 1.5*float64(signs.noise)+.005 || off > .12 {
				t.Errorf("%d dimensions: codes are off by %v, and say %v", dim, off, signs.noise)
			}
		}
		if recall := float64(hits) / float64(10*asked); recall < .98 {
			t.Errorf("%d dimensions: recall@10 is %v", dim, recall)
		}
	}
}

func bestPlaces(score []float32, n int) []int {
	places := make([]int, len(score))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int {
		switch {
		case score[a] > score[b]:
			return -1
		case score[a] < score[b]:
			return 1
		}
		return a - b
	})
	return places[:n]
}

func TestDamagedVectors(t *testing.T) {
	good := packVector([]float32{1, 2, 3})
	for name, data := range map[string][]byte{"empty": nil, "no dimension": {1, 2, 3, 4}, "another dimension": packVector([]float32{1, 2})} {
		r := readingOf(&vectorList{list: []store.Vector{{Doc: 1, Data: good}, {Doc: 2, Data: data}}}, 3)
		if _, err := r.grown(t.Context(), nil, store.Cursor{Through: 2}); err == nil || !strings.Contains(err.Error(), "load vectors") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShelf holds what is dropped: the one that was not used for the longest, and never the one in use.
func TestShelf(t *testing.T) {
	full := func() *codes { return &codes{doc: make([]uint32, 1000)} }
	key := func(owner string) shelfKey { return shelfKey{owner: owner, model: "m"} }
	s := newShelf(3 * (full().bytes() + 300))
	put := func(owner string) (had bool) {
		sl := s.slot(key(owner))
		had = sl.codes != nil
		sl.codes = full()
		s.done(key(owner), sl)
		return had
	}
	for _, owner := range []string{"a", "b", "c", "a", "d"} { // b goes
		put(owner)
	}
	if len(s.held) != 3 || s.total > s.limit {
		t.Errorf("%d owners with %d bytes are held, over %d", len(s.held), s.total, s.limit)
	}
	for owner, want := range map[string]bool{"a": true, "c": true, "d": true} {
		if had := put(owner); had != want {
			t.Errorf("%s is held: %v", owner, had)
		}
	}
	if put("b") {
		t.Error("b was used the longest ago and is held")
	}
	if small := newShelf(1); true {
		sl := small.slot(key("x"))
		sl.codes = full()
		small.done(key("x"), sl)
		if small.held[key("x")] == nil {
			t.Error("the only owner was dropped")
		}
	}
}

// TestSignsAreOverTheMean compares the bits with what they mean, for dimensions that fill no whole word and values that are
// the mean itself.
func TestSignsAreOverTheMean(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, dim := range []int{1, 63, 64, 65, 384} {
		for range 50 {
			unit, row, mean := r.Float32()/127, make([]byte, dim), make([]float32, dim)
			for d := range row {
				row[d] = byte(r.IntN(256))
				if mean[d] = (r.Float32() - .5) / 4; r.IntN(4) == 0 {
					mean[d] = unit * float32(int8(row[d]))
				}
			}
			bits := appendSigns([]uint64{7}, unit, row, mean)
			if len(bits) != 1+(dim+63)/64 || bits[0] != 7 {
				t.Fatalf("%d dimensions make %d words", dim, len(bits)-1)
			}
			for d := range row {
				if got, want := bits[1+d/64]>>(d%64)&1 == 1, unit*float32(int8(row[d])) > mean[d]; got != want {
					t.Fatalf("dimension %d of %d, %v beside a mean of %v: %v", d, dim, unit*float32(int8(row[d])), mean[d], got)
				}
			}
		}
	}
}
