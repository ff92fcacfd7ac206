package retrieve

import (
	"math"
	"sync"

	"memgpt/store"
	"memgpt/tool"
)

// recipe has the constants of fusion. They were chosen by recall on public sets; docs/retrieval.md has what was tried.
type recipe struct {
	wordsNear, wordsFar   float32 // share of the neighbours' scores that a turn receives
	cosineNear, cosineFar float32
	shortWords            float32 // length from which on a text gives and takes less
	vectors               float32 // weight of cosines where words cover the query
	uncovered             float32 // what is added to it where they don't
	cover                 float32 // share of the greatest possible score that counts as whole cover
	session               float32 // weight of the best of the session
	speaker               float32 // for messages of whom the query names
	day                   float32 // for messages of the time that the query names
	tie                   float32 // share of words and cosines where the query asks for a time alone
	floor                 float64 // by how much a hit is nearer than strangers, in deviations of unrelated texts
	noFloor               bool    // all are hits
	leastDev, fewDev      float32 // least deviation of words, of what they can give; and more among few documents, by their root
	large                 halver
}

// defaultRecipe returns the constants.
func defaultRecipe() recipe {
	return recipe{wordsNear: .4, wordsFar: .15, cosineNear: .3, cosineFar: .1, shortWords: 60, vectors: .5, uncovered: 1,
		cover: .6, session: .4, speaker: 1, day: 3, tie: .1, floor: floorAbove, large: large, leastDev: .02, fewDev: 1}
}

// Parts names the parts of the ranking that Config.Off takes.
func Parts() []string { return []string{"floor", "context", "sessions", "speaker", "dates"} }

// off takes a part out of the recipe. It reports false for one that it doesn't have.
func (r *recipe) off(part string) bool {
	switch part {
	case "floor":
		r.noFloor = true
	case "context":
		r.wordsNear, r.wordsFar, r.cosineNear, r.cosineFar = 0, 0, 0, 0
	case "sessions":
		r.session = 0
	case "speaker":
		r.speaker = 0
	case "dates":
		r.day = 0
	default:
		return false
	}
	return true
}

// fused holds the dense columns of a fusion, by number less one. They are reused and hold rubbish between queries. Passes
// over them are few, since an owner may have a million documents.
type fused struct {
	cosine []float32 // noVector where there is none
	ease   []float32 // how much a document gives to its neighbours and takes from them
	words  []float32 // scores by words, with context
	near   []float32 // cosines in deviations, with context
	total  []float32
	top    []bestOf // by session
	seen   []uint8
	extras *extras

	recipe              *recipe
	meta                *store.Meta
	layout              *layout
	plain               []float32 // scores by words, without context; 0 for what is dead
	blind               bool      // there are no vectors: scores stay those of words
	dated               bool      // the query asks for a time alone
	scale, deviation    float32   // of words in the total; what a speaker and a date are worth there
	weight              float32   // of near
	wordsMean, wordsDev float32
	cosineMean, cosDev  float32
	covered             float32
}

func (f *fused) sized(n, sessions int) {
	for _, column := range []*[]float32{&f.cosine, &f.ease, &f.words, &f.near, &f.total} {
		if cap(*column) < n {
			*column = make([]float32, n+n/4)
		}
		*column = (*column)[:n]
	}
	if cap(f.top) < sessions {
		f.top, f.seen = make([]bestOf, sessions+sessions/4), make([]uint8, sessions+sessions/4)
	}
	f.top, f.seen = f.top[:sessions], f.seen[:sessions]
}

// fuse fills the columns of all owners from scores by words and cosines; those of dead documents are 0 and noVector.
// Possible is the greatest score that words can give. Means and deviations are those of all documents together.
func fuse(list []*fused, possible float32) {
	r := list[0].recipe
	docs, covered := 0, float32(0)
	for _, f := range list {
		docs += len(f.plain)
		covered = max(covered, f.measure())
	}
	if possible > 0 {
		covered = min(1, covered/(possible*r.cover))
	}
	mean, dev := moments(list, func(f *fused) []float32 { return f.cosine })
	for _, f := range list {
		f.covered, f.weight = covered, r.vectors+r.uncovered*(1-covered)
		f.cosineMean, f.cosDev = mean, dev
		f.spread()
	}
	mean, dev = moments(list, func(f *fused) []float32 { return f.words })
	if dev > 0 && !list[0].blind {
		dev = max(dev, (r.leastDev+r.fewDev/float32(math.Sqrt(float64(docs))))*possible)
	}
	for _, f := range list {
		f.wordsMean, f.wordsDev = mean, dev
		f.weigh()
		f.add()
		f.addBonus()
	}
}

// weigh sets what words and cosines are worth in the total. By words alone it has their scale, that of BM25. Where a time
// is asked for and nothing else, what the question's other words mean breaks ties.
func (f *fused) weigh() {
	f.scale, f.deviation = 0, 1
	switch {
	case f.blind && f.wordsDev > 0:
		f.wordsMean, f.scale, f.deviation = 0, 1, f.wordsDev
	case f.wordsDev > 0:
		f.scale = 1 / f.wordsDev
	}
	if f.dated {
		f.scale *= f.recipe.tie
		f.weight *= f.recipe.tie
	}
}

// halver is the number of documents from which on work is done in two halves, side by side.
type halver int

// run calls do for 0 to n, whole or in two halves.
func (h halver) run(n int, do func(half, from, to int)) {
	if n < int(h) {
		do(0, 0, n)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { do(1, n/2, n) })
	do(0, 0, n/2)
	wg.Wait()
}

// measure sets each document's ease and returns the best score.
func (f *fused) measure() float32 {
	lengths, words := f.meta.Length, f.plain
	var best [2]float32
	f.recipe.large.run(len(words), func(half, from, to int) {
		short, top := f.recipe.shortWords, float32(0)
		ease, lengths := f.ease[from:to], lengths[from:to]
		for i, s := range words[from:to] {
			top = max(top, s)
			ease[i] = 1
			if n := float32(lengths[i]); n > short {
				ease[i] = short / n
			}
		}
		best[half] = top
	})
	return max(best[0], best[1])
}

// moments returns mean and deviation of a column over the owners' documents that live and have a value.
func moments(list []*fused, column func(*fused) []float32) (mean, dev float32) {
	var n, sum, squares float64
	for _, f := range list {
		own := f.sums(column(f))
		n, sum, squares = n+own[0], sum+own[1], squares+own[2]
	}
	if n == 0 {
		return 0, 0
	}
	m := sum / n
	return float32(m), float32(math.Sqrt(max(0, squares/n-m*m)))
}

// sums returns number, sum and squares of a column's values.
func (f *fused) sums(column []float32) [3]float64 {
	var sums [2][3]float64
	f.recipe.large.run(len(column), func(half, from, to int) {
		dead := f.meta.Dead[from:to]
		n, sum, squares := 0, 0., 0.
		for i, x := range column[from:to] {
			if x != noVector && !dead[i] {
				n++
				sum += float64(x)
				squares += float64(x) * float64(x)
			}
		}
		sums[half] = [3]float64{float64(n), sum, squares}
	})
	return [3]float64{sums[0][0] + sums[1][0], sums[0][1] + sums[1][1], sums[0][2] + sums[1][2]}
}

// spread gives shares of a turn's scores to the two before it and behind it in its session, giver and taker each scaled by
// ease. What crosses the border of two halves is given in the end.
func (f *fused) spread() {
	words := f.plain
	var across [2][]int
	f.recipe.large.run(len(words), func(half, from, to int) { across[half] = f.spreadRange(words, from, to) })
	for _, i := range across[1] {
		p := int(f.layout.prev[i])
		f.share(words, i, p-1, f.recipe.wordsNear, f.recipe.cosineNear)
		if far := int(f.layout.prev[p-1]); far != 0 {
			f.share(words, i, far-1, f.recipe.wordsFar, f.recipe.cosineFar)
		}
	}
}

// spreadRange begins the columns of a range and shares within it; it returns the turns of which one of the two before
// stands before the range. Total is, until the sum is made, the cosine without context. This is most of the time of a
// fusion: columns and constants are locals, which the compiler needn't load again for each turn.
func (f *fused) spreadRange(words []float32, from, to int) (across []int) {
	prev, ease, cosine, byWords, near, plain := f.layout.prev, f.ease, f.cosine, f.words, f.near, f.total
	wordsNear, wordsFar, cosineNear, cosineFar := f.recipe.wordsNear, f.recipe.wordsFar, f.recipe.cosineNear, f.recipe.cosineFar
	mean, scale := f.cosineMean, float32(0)
	if f.cosDev > 0 {
		scale = 1 / f.cosDev
	}
	for i := from; i < to; i++ {
		x, y := words[i], float32(0)
		if c := cosine[i]; c != noVector {
			y = (c - mean) * scale
		}
		byWords[i], near[i], plain[i] = x, y, y
		p := int(prev[i]) - 1
		if p < 0 {
			continue
		}
		far := int(prev[p]) - 1
		if p < from || far >= 0 && far < from {
			across = append(across, i)
			continue
		}
		e := ease[i] * ease[p]
		if u := words[p]; x != 0 || u != 0 {
			byWords[i] += wordsNear * e * u
			byWords[p] += wordsNear * e * x
		}
		near[i] += cosineNear * e * plain[p]
		near[p] += cosineNear * e * y
		if far < 0 {
			continue
		}
		e = ease[i] * ease[far]
		if u := words[far]; x != 0 || u != 0 {
			byWords[i] += wordsFar * e * u
			byWords[far] += wordsFar * e * x
		}
		near[i] += cosineFar * e * plain[far]
		near[far] += cosineFar * e * y
	}
	return across
}

// share shares between two turns as spreadRange does.
func (f *fused) share(words []float32, a, b int, byWords, byCosine float32) {
	ease := f.ease[a] * f.ease[b]
	byWords, byCosine = byWords*ease, byCosine*ease
	f.words[a] += byWords * words[b]
	f.words[b] += byWords * words[a]
	f.near[a] += byCosine * f.total[b]
	f.near[b] += byCosine * f.total[a]
}

// add sums up words and cosines, and keeps the best of each session.
func (f *fused) add() {
	f.recipe.large.run(len(f.total), func(_, from, to int) {
		for i := from; i < to; i++ {
			f.total[i] = (f.words[i]-f.wordsMean)*f.scale + f.weight*f.near[i]
		}
	})
	clear(f.seen)
	for i, s := range f.layout.session[:len(f.total)] {
		if s != 0 && !f.meta.Dead[i] {
			f.top[s-1].put(f.total[i], &f.seen[s-1])
		}
	}
}

// bestOf keeps the three best scores of a session, the best first; in the end their mean stands first.
type bestOf [3]float32

// put adds a score; seen is how many there are.
func (b *bestOf) put(y float32, seen *uint8) {
	k := int(*seen)
	if k < 3 {
		*seen++
	} else if y <= b[2] {
		return
	} else {
		k = 2
	}
	for ; k > 0 && y > b[k-1]; k-- {
		b[k] = b[k-1]
	}
	b[k] = y
}

// addBonus adds what the session, the speaker and the date are worth.
func (f *fused) addBonus() {
	for s := range f.top {
		b, mean := &f.top[s], float32(0)
		for _, y := range b[:f.seen[s]] {
			mean += y / float32(f.seen[s])
		}
		b[0] = mean
	}
	extra := f.extras.any()
	f.recipe.large.run(len(f.total), func(_, from, to int) {
		for i := from; i < to; i++ {
			f.total[i] += f.bonus(i)
			if extra {
				speaker, day := f.extras.of(i)
				f.total[i] += (speaker + day) * f.deviation
			}
		}
	})
}

// bonus is what the best of a message's session add to it.
func (f *fused) bonus(i int) float32 {
	if s := f.layout.session[i]; s != 0 {
		return f.recipe.session * f.ease[i] * f.top[s-1][0]
	}
	return 0
}

// mend replaces the cosine of a document by a truer one in its total and in its neighbours'. What its session has of it
// stays.
func (f *fused) mend(i int, cosine float32) {
	change := float32(0)
	if f.cosDev > 0 {
		change = (cosine - f.cosine[i]) / f.cosDev
	}
	f.cosine[i] = cosine
	change = f.gain(i, change)
	near, far := f.recipe.cosineNear*f.ease[i]*change, f.recipe.cosineFar*f.ease[i]*change
	prev := f.layout.prev
	if p := prev[i]; p != 0 {
		f.gain(int(p-1), near*f.ease[p-1])
		if p = prev[p-1]; p != 0 {
			f.gain(int(p-1), far*f.ease[p-1])
		}
	}
	if n := f.layout.next(i); n > 0 {
		f.gain(n, near*f.ease[n])
		if n = f.layout.next(n); n > 0 {
			f.gain(n, far*f.ease[n])
		}
	}
}

func (f *fused) gain(i int, change float32) float32 {
	f.near[i] += change
	f.total[i] += f.weight * change
	return change
}

// parts explains the total of a document: its summands, and before each what that was made of.
func (f *fused) parts(i int) []tool.Part {
	value := func(name string, x float32) tool.Part { return tool.Part{Name: name, Value: float64(x)} }
	byWords, meaning := (f.words[i]-f.wordsMean)*f.scale, f.weight*f.near[i]
	speaker, day := f.extras.of(i)
	speaker, day = speaker*f.deviation, day*f.deviation
	list := []tool.Part{value("BM25", f.plain[i]), value("BM25 with neighbours", f.words[i]), value("words", byWords)}
	if f.cosine[i] != noVector {
		list = append(list, value("cosine", f.cosine[i]))
	}
	if !f.blind {
		list = append(list, value("cosine in deviations, with neighbours", f.near[i]), value("covered by words", f.covered),
			value("meaning", meaning))
	}
	rest := f.total[i] - (byWords + meaning + f.bonus(i) + speaker + day)
	return append(list, value("session", f.bonus(i)), value("speaker", speaker), value("date", day), value("verbatim", rest))
}
