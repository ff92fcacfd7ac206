package retrieve

import "slices"

// strangers are questions that hardly anybody's memory answers, in several languages. How near an owner's texts come to
// them tells how near a text comes that is no answer.
func strangers() []string {
	return []string{
		"how do bees find their way back to the hive",
		"what is the boiling point of mercury",
		"who painted the ceiling of that chapel",
		"how are bridges kept from swaying",
		"why is the sea salty",
		"rules for castling in chess",
		"how to sharpen a chisel",
		"when was the printing press invented",
		"difference between a lawyer and a notary",
		"how many strings does a harp have",
		"火山为什么会喷发",
		"怎样给自行车换链条",
		"珊瑚是动物还是植物",
		"唐朝的都城在哪里",
		"股票和债券有什么区别",
		"飞机为什么能飞起来",
		"豆腐是怎么做成的",
		"长城有多长",
		"彩虹有几种颜色",
		"¿Cómo se fabrica el vidrio?",
		"なぜ空は青いのですか",
		"Wie entsteht Nebel?",
	}
}

// strangeness is how near the owner's texts come to a stranger.
type strangeness struct {
	rows   int     // vectors that the owner had when it was measured
	cosine float32 // median over the strangers of the best among the rows that were looked at
	looked int     // how many those were
}

// Bounds of the measure of strangeness.
const (
	strangeRows  = 4096 // rows that are looked at, in strangeRuns runs over all
	strangeRuns  = 16
	strangeGrown = 8 // it is measured again when the owner's vectors have grown by one in so many
)

// grown returns the measure for the owner's vectors, the old one where they are nearly the same.
func (s strangeness) grown(c *codes, p *prior) strangeness {
	n := len(c.doc)
	if s.rows > 0 && n >= s.rows && n-s.rows <= s.rows/strangeGrown {
		return s
	}
	out := strangeness{rows: n}
	run := min(n, strangeRows/strangeRuns)
	step := max(1, n/strangeRuns)
	if n <= strangeRows {
		run, step = n, max(n, 1)
	}
	cosines := make([]float32, run)
	best := make([]float32, len(p.strangers))
	for k, v := range p.strangers {
		_, aim := p.aim(v, c.mean)
		best[k], out.looked = noVector, 0
		for from := 0; from+run <= n && run > 0; from += step {
			c.compare(aim, cosines, from, from+run)
			best[k] = max(best[k], slices.Max(cosines))
			out.looked += run
		}
	}
	slices.Sort(best)
	out.cosine = best[len(best)/2]
	return out
}
