package retrieve

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"memgpt/store"
)

// said is a message of a made-up history.
type said struct {
	thread, session uint32
	unix            int64
	length          uint32
	author          uint32
	dead, passage   bool
	words           float32
	cosine          float32
}

func metaOf(list []said) *store.Meta {
	m := &store.Meta{Threads: []string{"", "t1", "t2", "t3"}, Authors: []string{"", "Ann", "Bob"}, Sessions: []string{"", "s1", "s2"}}
	for _, s := range list {
		m.Time = append(m.Time, s.unix)
		m.Length = append(m.Length, s.length)
		kind := uint8(0)
		if s.passage {
			kind = 1
		}
		m.Kind = append(m.Kind, kind)
		m.Role = append(m.Role, 2)
		m.Dead = append(m.Dead, s.dead)
		m.Thread = append(m.Thread, s.thread)
		m.Author = append(m.Author, s.author)
		m.Session = append(m.Session, s.session)
	}
	return m
}

func columns(list []said) (words, cosines []float32) {
	for _, s := range list {
		if s.dead {
			s.words, s.cosine = 0, noVector
		}
		words, cosines = append(words, s.words), append(cosines, s.cosine)
	}
	return words, cosines
}

func fuseOf(r *recipe, list []said, l *layout, possible float32, e *extras) *fused {
	words, cosines := columns(list)
	f := &fused{extras: e, recipe: r, meta: e.meta, layout: l, plain: words}
	f.sized(len(list), l.sessions)
	for i := range f.top {
		f.top[i], f.seen[i] = bestOf{9, 9, 9}, 3 // rubbish of an earlier query
	}
	copy(f.cosine, cosines)
	fuse([]*fused{f}, possible)
	return f
}

// naiveSessions gives each message the number of its session, 0 for none.
func naiveSessions(list []said) []int {
	out := make([]int, len(list))
	next := 0
	for i, s := range list {
		if s.passage || s.session == 0 && (s.unix == store.NoTime || s.unix%86400 == 0) {
			continue
		}
		for j := i - 1; j >= 0 && out[i] == 0; j-- {
			p := list[j]
			if out[j] == 0 || p.thread != s.thread {
				continue
			}
			if s.session != 0 && p.session == s.session {
				out[i] = out[j]
			}
			if s.session == 0 {
				if p.session == 0 && math.Abs(float64(p.unix-s.unix)) < 4*3600 {
					out[i] = out[j]
				}
				break // the last of the conversation decides
			}
		}
		if out[i] == 0 {
			next++
			out[i] = next
		}
	}
	return out
}

// naiveBeside returns the k-th message before i that follows on without a break in its session, -1 for none.
func naiveBeside(list []said, session []int, i, k int) int {
	for range k {
		j := i - 1
		for j >= 0 && (session[j] == 0 || list[j].thread != list[i].thread) {
			j--
		}
		if j < 0 || session[i] == 0 || session[j] != session[i] {
			return -1
		}
		i = j
	}
	return i
}

// naiveFuse is the formula as it is written, in double precision.
func naiveFuse(r *recipe, list []said, possible float64, named map[uint32]bool) []float64 {
	n := len(list)
	session := naiveSessions(list)
	ease := func(i int) float64 { return math.Min(1, float64(r.shortWords)/math.Max(1, float64(list[i].length))) }
	live := func(i int) bool { return !list[i].dead }
	words, cos := make([]float64, n), make([]float64, n)
	best := 0.
	for i, s := range list {
		if live(i) {
			words[i] = float64(s.words)
			best = math.Max(best, words[i])
		}
	}
	cover := 0.
	if possible > 0 {
		cover = math.Min(1, best/(possible*float64(r.cover)))
	}
	around := func(x []float64, near, far float32) []float64 {
		out := slices.Clone(x)
		for i := range x {
			for k, part := range []float32{near, far} {
				if j := naiveBeside(list, session, i, k+1); j >= 0 {
					out[i] += float64(part) * ease(i) * ease(j) * x[j]
					out[j] += float64(part) * ease(i) * ease(j) * x[i]
				}
			}
		}
		return out
	}
	z := func(x []float64, least float64, counts func(int) bool) []float64 {
		sum, squares, m := 0., 0., 0.
		for i := range x {
			if counts(i) {
				sum, squares, m = sum+x[i], squares+x[i]*x[i], m+1
			}
		}
		out := make([]float64, n)
		dev := math.Sqrt(math.Max(0, squares/m-sum/m*sum/m))
		for i := range x {
			if dev > 0 {
				out[i] = (x[i] - sum/m) / math.Max(dev, least)
			}
		}
		return out
	}
	for i, s := range list {
		cos[i] = float64(s.cosine)
	}
	has := func(i int) bool { return live(i) && list[i].cosine != noVector }
	zc := z(cos, 0, has)
	for i := range zc {
		if !has(i) {
			zc[i] = 0
		}
	}
	least := (float64(r.leastDev) + float64(r.fewDev)/math.Sqrt(float64(n))) * possible
	zc, zw := around(zc, r.cosineNear, r.cosineFar), z(around(words, r.wordsNear, r.wordsFar), least, live)
	y := make([]float64, n)
	for i := range y {
		y[i] = zw[i] + (float64(r.vectors)+float64(r.uncovered)*(1-cover))*zc[i]
	}
	out := slices.Clone(y)
	for i := range out {
		if session[i] != 0 {
			var top []float64
			for j := range y {
				if session[j] == session[i] && live(j) {
					top = append(top, y[j])
				}
			}
			sort.Sort(sort.Reverse(sort.Float64Slice(top)))
			top = top[:min(3, len(top))]
			for _, t := range top {
				out[i] += float64(r.session) * ease(i) * t / float64(len(top))
			}
		}
		if named[list[i].author] {
			out[i] += float64(r.speaker)
		}
	}
	return out
}

func randomHistory(r *rand.Rand, n int) []said {
	list := make([]said, n)
	unix := int64(1_700_000_000)
	for i := range list {
		unix += int64(r.IntN(3 * 3600))
		s := said{thread: uint32(1 + r.IntN(3)), unix: unix, length: uint32(r.IntN(200)), author: uint32(r.IntN(3)),
			dead: r.IntN(8) == 0, passage: r.IntN(8) == 0, cosine: float32(r.NormFloat64() * .1)}
		switch r.IntN(8) {
		case 0:
			s.unix = store.NoTime
		case 1:
			s.unix -= s.unix % 86400
		case 2, 3:
			s.session = uint32(1 + r.IntN(2))
		}
		if r.IntN(3) == 0 {
			s.words = float32(r.Float64() * 10)
		}
		if r.IntN(8) == 0 {
			s.cosine = noVector
		}
		list[i] = s
	}
	return list
}

// TestFuseEqualsFormula compares with the formula on random histories, laid out in random steps.
func TestFuseEqualsFormula(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		list := randomHistory(rnd, 1+rnd.IntN(80))
		meta := metaOf(list)
		var l *layout
		for to := rnd.IntN(20); to < len(list); to += 1 + rnd.IntN(20) {
			part := metaOf(list[:to])
			l = l.grown(part, nil)
		}
		l = l.grown(meta, nil)
		r := defaultRecipe()
		if seed%2 == 0 {
			r.large = 2 // in two halves
		}
		f := fuseOf(&r, list, l, 12, &extras{recipe: &r, meta: meta, named: []bool{false, true, false}})
		want := naiveFuse(&r, list, 12, map[uint32]bool{1: true})
		for i := range want {
			if math.Abs(want[i]-float64(f.total[i])) > 1e-3 {
				t.Fatalf("seed %d: message %d of %d totals %v, by the formula %v", seed, i, len(list), f.total[i], want[i])
			}
		}
		sum := 0.
		for _, p := range f.parts(0) {
			switch p.Name {
			case "words", "meaning", "session", "speaker", "date", "verbatim":
				sum += p.Value
			}
		}
		if math.Abs(sum-want[0]) > 1e-3 {
			t.Fatalf("seed %d: the parts add up to %v, not %v", seed, sum, want[0])
		}
	}
}

// TestNeighboursShare is worked out by hand: a long turn gives and takes less.
func TestNeighboursShare(t *testing.T) {
	at := int64(1_700_000_000)
	list := []said{
		{thread: 1, unix: at, length: 60}, {thread: 2, unix: at, length: 1}, {thread: 1, unix: at + 60, length: 120},
		{thread: 1, unix: at + 120, length: 10}, {thread: 1, unix: at + 5*3600, length: 10},
	}
	meta := metaOf(list)
	l := (*layout)(nil).grown(meta, nil)
	for i := range list {
		list[i].cosine, list[i].words = noVector, []float32{10, 100, 20, 30, 40}[i]
	}
	r := defaultRecipe()
	out := fuseOf(&r, list, l, 0, &extras{recipe: &r, meta: meta}).words
	want := []float32{10 + .4*.5*20 + .15*30, 100, 20 + .4*.5*10 + .4*.5*30, 30 + .4*.5*20 + .15*10, 40}
	for i := range want {
		if math.Abs(float64(want[i]-out[i])) > 1e-5 {
			t.Errorf("turn %d has %v, want %v", i, out[i], want[i])
		}
	}
}

func TestSessions(t *testing.T) {
	zone := time.FixedZone("UTC+8", 8*3600)
	at := time.Date(2024, 5, 1, 9, 30, 0, 0, zone).Unix()
	midnight := time.Date(2024, 5, 2, 0, 0, 0, 0, zone).Unix()
	list := []said{
		0:  {thread: 1, unix: at},
		1:  {thread: 1, unix: at},                           // the same time stamp
		2:  {thread: 1, unix: at + sitting - 1},             // just under four hours
		3:  {thread: 1, unix: at + 2*sitting - 1},           // four hours
		4:  {thread: 2, unix: at + 2*sitting - 1},           // another conversation
		5:  {thread: 1, unix: midnight},                     // no hour
		6:  {thread: 1, unix: store.NoTime},                 // no time
		7:  {thread: 1, unix: store.NoTime, session: 1},     // a name is enough
		8:  {thread: 1, unix: at + 100*sitting, session: 1}, // however late
		9:  {thread: 1, unix: at + 100*sitting, session: 2},
		10: {thread: 1, unix: at, passage: true},
		11: {thread: 1, unix: at + 101*sitting, session: 1}, // again
	}
	l := (*layout)(nil).grown(metaOf(list), zone)
	if want := []uint32{1, 1, 1, 2, 3, 0, 0, 4, 4, 5, 0, 4}; !slices.Equal(l.session, want) {
		t.Errorf("sessions are %v, want %v", l.session, want)
	}
	if want := []uint32{0, 1, 2, 0, 0, 0, 0, 0, 8, 0, 0, 0}; !slices.Equal(l.prev, want) {
		t.Errorf("turns before are %v, want %v", l.prev, want)
	}
}

func TestBestOfSession(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 9))
	for range 200 {
		var b bestOf
		var seen uint8
		var all []float32
		for range rnd.IntN(7) {
			y := float32(rnd.IntN(5) - 2)
			all = append(all, y)
			b.put(y, &seen)
		}
		slices.Sort(all)
		slices.Reverse(all)
		if want := all[:min(3, len(all))]; !slices.Equal(b[:seen], want) {
			t.Errorf("the best of %v are %v", all, b[:seen])
		}
	}
}

// TestMendEqualsFusion replaces cosines afterwards: totals are as if they had been there from the start, but for what the
// sessions and the deviations have of them.
func TestMendEqualsFusion(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		list := randomHistory(rnd, 2+rnd.IntN(60))
		meta := metaOf(list)
		l := (*layout)(nil).grown(meta, nil)
		r := defaultRecipe()
		r.session = 0
		e := &extras{recipe: &r, meta: meta}
		f := fuseOf(&r, list, l, 12, e)
		near := slices.Clone(f.near)
		changed := map[int]float32{}
		for i := range list {
			if !list[i].dead && list[i].cosine != noVector && rnd.IntN(3) == 0 {
				changed[i] = float32(rnd.NormFloat64() * .1)
				f.mend(i, changed[i])
			}
		}
		alone := make([]said, len(list)) // the changes, spread by themselves
		session := naiveSessions(list)
		want := slices.Clone(near)
		for i, c := range changed {
			d := (c - list[i].cosine) / f.cosDev
			want[i] += d
			for j := range alone {
				for k, part := range []float32{r.cosineNear, r.cosineFar} {
					if naiveBeside(list, session, i, k+1) == j || naiveBeside(list, session, j, k+1) == i {
						want[j] += part * f.ease[i] * f.ease[j] * d
					}
				}
			}
		}
		for i := range want {
			if math.Abs(float64(want[i]-f.near[i])) > 1e-3 {
				t.Fatalf("seed %d: message %d of %d has %v, want %v", seed, i, len(list), f.near[i], want[i])
			}
		}
	}
}

// TestFuseOwnersTogether: passages of two owners get the totals that one owner of them all would give them.
func TestFuseOwnersTogether(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		list := make([]said, 2+r.IntN(40))
		for i := range list {
			list[i] = said{passage: true, unix: int64(i) * 90_000, length: uint32(r.IntN(200)), dead: r.IntN(9) == 0,
				words: max(0, float32(r.NormFloat64())), cosine: float32(r.NormFloat64()) / 4}
		}
		recipe, cut := defaultRecipe(), 1+r.IntN(len(list)-1)
		of := func(list []said) *fused {
			meta := metaOf(list)
			words, cosines := columns(list)
			f := &fused{recipe: &recipe, meta: meta, plain: words, extras: &extras{recipe: &recipe, meta: meta}}
			f.layout = f.layout.grown(meta, time.UTC)
			f.sized(len(list), f.layout.sessions)
			copy(f.cosine, cosines)
			return f
		}
		one, a, b := of(list), of(list[:cut]), of(list[cut:])
		fuse([]*fused{one}, 6)
		fuse([]*fused{a, b}, 6)
		for i, got := range slices.Concat(a.total, b.total) {
			if math.Abs(float64(got-one.total[i])) > 1e-4 {
				t.Fatalf("seed %d: passage %d of %d, cut at %d, totals %v, not %v", seed, i, len(list), cut, got, one.total[i])
			}
		}
	}
}
