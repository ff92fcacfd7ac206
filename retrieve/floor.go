package retrieve

import (
	"math"
)

// Constants of the floor; docs/retrieval.md has how many questions, fitting and foreign ones, come over it. Cosines are in
// deviations of unrelated texts of the model.
const (
	floorCover  = .25 // of what words can give at best, see recipe.cover
	floorWords  = 2   // or as much as that many words that stand in one text alone
	floorAbove  = .05 // of the cosine, over what the owner's texts have with questions that they don't answer
	floorGrowth = .2  // which is so much more for e times as many texts
	floorLeast  = .5  // and is taken to be that at least, among few
	floorMost   = 1.6 // but nothing related is asked to be nearer than that
	floorShared = 2.7 // so much less for a query whose words a text has all, and a share of it for a share of them
	fewTexts    = 20  // under so many texts any word is enough: there is little to mistake it for
	hitShare    = .5  // share of the cosine's floor, words left aside, over which a text is a hit where any clears it whole

	// A query that shares no word may be in another language than the texts, and then all are far from it.
	foreignCosine = 1.1 // of the cosine, among foreignTexts texts
	foreignTexts  = 550
	foreignLeast  = .8  // among few
	foreignFar    = 1.3 // or it stands out: by so many times what the best of random ones would, in deviations
)

// floors tell what is too weak to be called a hit.
type floors struct {
	words  float32 // a document's score by words
	cosine float32
	hit    float32 // cosine of the other hits
}

// floors returns the owners' marks for a query. Those by cosine are an owner's own: how near its texts come to what they
// don't answer is another matter for each. What counts of words is how much the best of all texts has of the query's.
func (list owners) floors(r *recipe, q *query) []floors {
	rows, best := 0, float32(0)
	for _, w := range list {
		if w.sight != nil {
			rows += len(w.sight.codes.doc)
		}
		for _, score := range w.board.score {
			best = max(best, score)
		}
	}
	marks := make([]floors, len(list))
	for k, w := range list {
		marks[k] = floorsOf(r, w.sight, q, &w.board.fused, best)
		if rows < fewTexts {
			marks[k].words = 0
		}
	}
	return marks
}

// floorsOf returns an owner's marks; without vectors no cosine is enough.
func floorsOf(r *recipe, si *sight, q *query, f *fused, best float32) floors {
	fl := floors{words: q.leastWords(r)}
	if si == nil {
		fl.cosine, fl.hit = float32(math.Inf(1)), float32(math.Inf(1))
		return fl
	}
	fl.cosine = si.farther(f)
	if best > 0 {
		fl.cosine = si.stranger(float32(r.floor))
	}
	fl.hit = hitShare * max(fl.cosine, foreignLeast*si.prior.apart)
	if best > 0 && q.possible > 0 {
		fl.cosine -= floorShared * si.prior.apart * best / q.possible
	}
	return fl
}

// leastWords returns the mark by words.
func (q *query) leastWords(r *recipe) float32 {
	return min(floorCover*q.possible, floorWords*q.rare) * r.cover
}

// stranger returns the mark by what the owner's texts have with questions that they don't answer.
func (si *sight) stranger(above float32) float32 {
	apart := si.prior.apart
	growth := math.Log(float64(max(len(si.codes.doc), 1)) / float64(max(si.strange.looked, 1)))
	strange := max(si.strange.cosine+floorGrowth*float32(growth)*apart, floorLeast*apart)
	return min(strange+above*apart, floorMost*apart)
}

// farther returns the mark for a query that may be in another language.
func (si *sight) farther(f *fused) float32 {
	log := math.Log(float64(max(len(si.codes.doc), 2)))
	deviations := min(floorMost, max(foreignLeast, foreignCosine+floorGrowth*(log-math.Log(foreignTexts))))
	return min(float32(deviations)*si.prior.apart, f.cosineMean+f.cosDev*float32(foreignFar*math.Sqrt(2*log)))
}

// clear reports whether any owner has a document that clears its marks.
func (list owners) clear(marks []floors) bool {
	for k, w := range list {
		if marks[k].clears(w.board.score, &w.board.fused, w.sight, w.pass.passes) {
			return true
		}
	}
	return false
}

// clears reports whether any document that passes is over one of the marks, or of the time that the query names.
func (fl floors) clears(words []float32, f *fused, si *sight, passes func(int) bool) bool {
	for i, s := range words {
		if (s >= fl.words && s > 0 || f.extras.within(i)) && passes(i) {
			return true
		}
	}
	if si == nil {
		return false
	}
	strict := f.cosine
	if si.strict != si.aim {
		strict = make([]float32, len(words))
		si.codes.cosines(si.strict, strict)
	}
	for i, c := range strict {
		if c >= fl.cosine && f.cosine[i] != noVector && passes(i) {
			return true
		}
	}
	return false
}
