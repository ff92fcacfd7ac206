package kernel

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Words of Chinese and Japanese by class, made when first used.
var (
	phaticRuns    = longestFirst(phaticEast)
	smallRuns     = longestFirst(phaticEast, assistantEast)
	leaningRuns   = longestFirst(leaningEast)
	politeRuns    = longestFirst(politeEast)
	askingRuns    = longestFirst(askingEast)
	lookingRuns   = longestFirst(lookingEast)
	commandRuns   = longestFirst(commandEast)
	aspectRuns    = longestFirst(aspectEast)
	farewellRuns  = longestFirst(farewellEast)
	japaneseAsks  = longestFirst(`してください して下さい ください 下さい してくれ してくれる てくれますか てもらえますか して`)
	japaneseLeans = longestFirst(`私 僕 俺 について`)
)

// judgeEast judges a run of Chinese or Japanese. question says that its sentence ends with a question mark.
func judgeEast(run string, question bool) verdict {
	left := leftover(run, phaticRuns())
	switch {
	case holdsAny(run, leaningRuns()):
		return leans
	case left == "":
		return phatic
	}
	for _, end := range japaneseAsks() {
		if strings.HasSuffix(run, end) && !holdsAny(run, japaneseLeans()) {
			return command
		}
	}
	bare := unwrapEast(run)
	request := startsWith(bare, commandRuns()) || startsWith(bare, lookingRuns()) || requestForm(bare)
	wrapped := bare != run && request && strings.HasSuffix(run, "吗")
	if (question || holdsAny(run, askingRuns())) && !wrapped {
		about := holdsAny(run, []string{"你", "您", "现在", "今天", "听"}) && !strings.Contains(bare, "我")
		if about && leftover(run, smallRuns()) == "" {
			return phatic
		}
		if !request || holdsAny(bare, askingRuns()) {
			return leans
		}
	}
	if request {
		if startsWith(bare, lookingRuns()) || strings.Contains(bare, "我") || namesPerson(bare) || strings.Contains(bare, "关于") {
			return leans
		}
		return command
	}
	return tellsEast(run, left)
}

// namesPerson reports whether a request is meant for somebody.
func namesPerson(bare string) bool {
	return holdsAny(bare, []string{"打电话", "写信给", "发给", "寄给", "给小", "给老", "给他", "给她", "的人"})
}

// tellsEast judges a statement: what happened, is or will be is news; what is short and says nothing of it is small talk.
func tellsEast(run, left string) verdict {
	n := utf8.RuneCountInString(left)
	switch {
	case startsWith(run, farewellRuns()) && n < 5:
		return phatic
	case n >= 5, n >= 2 && (strings.Contains(run, "我") || holdsAny(run, aspectRuns())):
		return leans
	}
	return phatic
}

// unwrapEast takes off what a request is wrapped in.
func unwrapEast(run string) string {
	for again := true; again; {
		again = false
		for _, p := range politeRuns() {
			if rest, ok := strings.CutPrefix(run, p); ok && rest != "" {
				run, again = rest, true
				break
			}
		}
	}
	return run
}

// requestForm reports whether a run begins with a verb and a measure word: "截个图", "来一首".
func requestForm(run string) bool {
	runes := []rune(run)
	for i := 1; i < min(3, len(runes)-1); i++ {
		if strings.ContainsRune("个首张段点下", runes[i]) {
			return true
		}
	}
	return false
}

// leftover returns what is left of a run when all words of a list that can be are taken out, so that as little as can be
// is left.
func leftover(run string, words []string) string {
	type way struct {
		cost int
		left string
	}
	best := make([]*way, len(run)+1)
	best[0] = &way{}
	keep := func(at int, w way) {
		if best[at] == nil || w.cost < best[at].cost {
			best[at] = &w
		}
	}
	for i, c := range run {
		if best[i] == nil {
			continue
		}
		keep(i+utf8.RuneLen(c), way{best[i].cost + 1, best[i].left + string(c)})
		for _, w := range words {
			if strings.HasPrefix(run[i:], w) {
				keep(i+len(w), *best[i])
			}
		}
	}
	return best[len(run)].left
}

func startsWith(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(text, w) })
}

func holdsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
