package retrieve

import (
	"math"

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
	floor                 float64 // cosine that makes a hit, in deviations of unrelated texts
	noFloor               bool    // all are hits
}

// defaultRecipe returns the constants.
func defaultRecipe() recipe {
	return recipe{wordsNear: .4, wordsFar: .15, cosineNear: .3, cosineFar: .1, shortWords: 60, vectors: .5, uncovered: 1,
		cover: .6, session: .4, speaker: 1, day: 1, floor: floorCosine}
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

// fused holds the dense columns of a fusion, by number less one. They are reused and hold rubbish between queries.
type fused struct {
	cosine []float32 // noVector where there is none
	ease   []float32
	words  []float32 // with context
	near   []float32 // cosines in deviations, with context
	total  []float32
	top    []bestOf // by session
	seen   []uint8
	bonus  []float32
	extras *extras

	weight              float32 // of near
	wordsMean, wordsDev float32
	cosineMean, cosDev  float32
	covered, floor      float32
}

func (f *fused) sized(n, sessions int) {
	for _, column := range []*[]float32{&f.cosine, &f.ease, &f.words, &f.near, &f.total, &f.bonus} {
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

// moments returns mean and deviation of a column over the documents that live and have a value.
func moments(column []float32, dead []bool) (mean, dev float32) {
	n, sum, squares := 0, 0., 0.
	for i, x := range column {
		if !dead[i] && x != noVector {
			n++
			sum += float64(x)
			squares += float64(x) * float64(x)
		}
	}
	if n == 0 {
		return 0, 0
	}
	m := sum / float64(n)
	return float32(m), float32(math.Sqrt(max(0, squares/float64(n)-m*m)))
}

// fuse fills the columns from scores by words and cosines. Possible is the greatest score that words can give.
func (f *fused) fuse(r *recipe, meta *store.Meta, l *layout, words []float32, possible float32) {
	n := len(words)
	for i, length := range meta.Length {
		f.ease[i] = min(1, r.shortWords/max(1, float32(length)))
	}
	f.covered = 0
	for i, s := range words {
		if !meta.Dead[i] {
			f.covered = max(f.covered, s)
		}
	}
	if possible > 0 {
		f.covered = min(1, f.covered/(possible*r.cover))
	}
	f.weight = r.vectors + r.uncovered*(1-f.covered)
	l.spread(words, f.ease, f.words, r.wordsNear, r.wordsFar)
	f.wordsMean, f.wordsDev = moments(f.words, meta.Dead)
	f.cosineMean, f.cosDev = moments(f.cosine, meta.Dead)
	for i, x := range f.cosine {
		f.total[i] = 0
		if x != noVector && f.cosDev > 0 {
			f.total[i] = (x - f.cosineMean) / f.cosDev
		}
	}
	l.spread(f.total, f.ease, f.near, r.cosineNear, r.cosineFar)
	for i := range n {
		f.total[i] = f.weight * f.near[i]
		if f.wordsDev > 0 {
			f.total[i] += (f.words[i] - f.wordsMean) / f.wordsDev
		}
	}
	f.addSessions(r, meta, l, n)
	for i := range n {
		speaker, day := f.extras.of(i)
		f.total[i] += f.bonus[i] + speaker + day
	}
}

// addSessions sets the bonus of each message from the best of its session.
func (f *fused) addSessions(r *recipe, meta *store.Meta, l *layout, n int) {
	l.best(f.total, func(i int) bool { return !meta.Dead[i] }, f.top, f.seen)
	for i := range n {
		f.bonus[i] = 0
		if s := l.session[i]; s != 0 {
			f.bonus[i] = r.session * f.ease[i] * f.top[s-1][0]
		}
	}
}

// parts explains the total of a document: its summands, and before each what that was made of. Words are the document's
// scores by them.
func (f *fused) parts(words []float32, i int) []tool.Part {
	value := func(name string, x float32) tool.Part { return tool.Part{Name: name, Value: float64(x)} }
	byWords := float32(0)
	if f.wordsDev > 0 {
		byWords = (f.words[i] - f.wordsMean) / f.wordsDev
	}
	speaker, day := f.extras.of(i)
	list := []tool.Part{value("BM25", words[i]), value("BM25 with neighbours", f.words[i]), value("words", byWords)}
	if f.cosine[i] != noVector {
		list = append(list, value("cosine", f.cosine[i]))
	}
	sum := byWords + f.weight*f.near[i] + f.bonus[i] + speaker + day
	return append(list, value("cosine in deviations, with neighbours", f.near[i]), value("covered by words", f.covered),
		value("meaning", f.weight*f.near[i]), value("session", f.bonus[i]), value("speaker", speaker), value("date", day),
		value("verbatim", f.total[i]-sum))
}
