package retrieve

import "math"

// Constants of the floor; docs/retrieval.md has how many questions, fitting and foreign ones, come over it.
const (
	floorCover  = .25 // of what words can give at best, see recipe.cover
	floorWords  = 2   // or as much as that many words that stand in one text alone
	floorCosine = 1.1 // of the cosine, in deviations of unrelated texts of the model, among floorTexts texts
	floorTexts  = 550 // among more, the nearest unrelated one comes nearer:
	floorGrowth = .2  // by so much for e times as many
	floorLeast  = .8  // among few
	floorMost   = 1.6 // but nothing related is asked to be nearer than that
	floorFar    = 1.3 // or it stands out: by so many times what the best of random ones would, in deviations
	fewTexts    = 20  // under so many texts any word is enough: there is little to mistake it for
	longQuery   = 12  // words from which on a query says more than it asks: its cosines are lower
	longFloor   = .75 // share of the floor for those
	hitShare    = .5  // share of the cosine's floor over which a text is a hit, where any clears it whole
)

// floors tell what is too weak to be called a hit.
type floors struct {
	words  float32 // a document's score by words
	cosine float32
}

// floorsOf returns the marks for a query among so many texts.
func floorsOf(r *recipe, p *prior, q *query, texts int, f *fused) floors {
	log := math.Log(float64(max(texts, 2)))
	deviations := min(floorMost, max(min(r.floor, floorLeast), r.floor+floorGrowth*(log-math.Log(floorTexts))))
	fl := floors{words: min(floorCover*q.possible, floorWords*q.rare) * r.cover, cosine: float32(deviations) * p.apart}
	fl.cosine = min(fl.cosine, f.cosineMean+f.cosDev*float32(floorFar*math.Sqrt(2*log)))
	if texts < fewTexts {
		fl.words = 0
	}
	if q.asked > longQuery {
		fl.cosine *= longFloor
	}
	return fl
}

// clears reports whether any document that passes is over one of the marks, or of the time that the query names.
func (fl floors) clears(words []float32, f *fused, si *sight, passes func(int) bool) bool {
	for i, s := range words {
		if (s >= fl.words && s > 0 || f.extras.within(i)) && passes(i) {
			return true
		}
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
