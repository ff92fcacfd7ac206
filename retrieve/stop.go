package retrieve

import "strings"

// stopWords are English words that carry no subject. They are indexed, and left out of queries that have other words.
var stopWords = stopSet(`
a about above arent aint after again against ain all also am an and any are aren arent as at be because been before being below
between both but by can cannot cant could couldn couldnt did didn didnt do does doesn doesnt doing don dont down during
each few for from further had hadn hadnt has hasn hasnt have haven havent having he her here hers herself him himself
his how i if in into is isn isnt it its itself just let ll may me might mightnt more most must mustnt my myself needn neednt no
nor not now of off on once only or other our ours ourselves out over own please re s same shall shan shant she should
shouldn shouldnt so some such t than that the their theirs them themselves then there these they this those through
to too under until up us ve very was wasn wasnt we were weren werent what when where which while who whom whose why
will with won wont would wouldn wouldnt you your yours yourself yourselves d m`)

func stopSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}
