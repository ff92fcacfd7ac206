package offline

import (
	"strings"

	"memgpt"
)

// conclude words the answer after all searches: the best texts, quoted, or that there is none.
func (m *Model) conclude(t *turn, terms []term, want fact) string {
	hits := t.found()
	if text := t.fromHits(m, want, hits); text != "" {
		return text
	}
	all := append(append(hits, t.queued()...), t.summarised()...)
	r := rank(terms, all)
	if len(r) == 0 || r[0].score < leastScore {
		about := join(terms[:min(len(terms), 6)])
		if near, ok := t.nearest(); ok {
			return t.lang.pick("Nothing has just those words ("+about+"), but this comes nearest: ", "没有正好这样说的（"+about+"），最接近的是：") + t.quote(near, terms)
		}
		return t.lang.pick(nothingEnglish+" ("+about+"), neither in our conversations nor in the archive.",
			nothingChinese+"（"+about+"），对话记录和档案里都没有。")
	}
	text := t.quote(r[0].hit, terms)
	if second, ok := adds(r); ok {
		text += t.lang.pick(" Also: ", "另外：") + t.quote(second.hit, terms)
	}
	return text
}

// nearest returns the first hit of a search that is a statement of somebody else, for where no words are the same: searches
// also go by meaning.
func (t *turn) nearest() (hit, bool) {
	for _, p := range t.pages() {
		if p.call.name == toolRead || p.misses(p.call.str("query")) {
			continue
		}
		for _, h := range p.hits {
			if !h.own() && !asksOnly(h.Text) {
				return h, true
			}
		}
	}
	return hit{}, false
}

// adds returns a second text that has words which the best one lacks.
func adds(r []ranked) (ranked, bool) {
	for _, x := range r[1:] {
		if x.score < leastScore {
			break
		}
		for _, lack := range r[0].lacks {
			missing := false
			for _, l := range x.lacks {
				missing = missing || l == lack
			}
			if !missing && x.hit.Text != r[0].hit.Text {
				return x, true
			}
		}
	}
	return ranked{}, false
}

// summarised returns the sentences of the recursive summary as texts.
func (t *turn) summarised() []hit {
	var hits []hit
	for _, it := range t.items {
		if it.kind != heard || it.typ != memgpt.EventSummary {
			continue
		}
		for _, line := range strings.Split(oldSummary(it.text), "\n") {
			if line = strings.TrimLeft(strings.TrimSpace(line), "-• "); line != "" && line != noSummary && !wordsLine(line) && !headLine(line) {
				hits = append(hits, hit{ID: "summary " + line, Kind: "summary", Time: it.when, Text: line})
			}
		}
	}
	return hits
}

// quote words one text with its date and speaker.
func (t *turn) quote(h hit, terms []term) string {
	l := t.lang
	day := "?"
	if len(h.Time) >= len("2006-01-02") && h.Time[0] >= '0' && h.Time[0] <= '9' {
		day = h.Time[:len("2006-01-02")]
	}
	text := "“" + excerpt(h.Text, terms, maxQuote) + "”"
	dated := l.pick("On "+day+" ", day+" ")
	if day == "?" {
		dated = l.pick("At an unknown time ", "（时间不明）")
	}
	switch {
	case h.Kind == string(memgpt.KindPassage):
		from := l.pick("the archive", "档案")
		if h.Source != "" {
			from += l.pick(" ("+h.Source+")", "（"+h.Source+"）")
		}
		return l.pick("From "+from+", "+day+": "+text, from+"，"+day+"："+text)
	case h.Kind == "summary":
		return l.pick("From my summary of earlier talk: "+text, "先前谈话的摘要："+text)
	case h.own():
		return l.pick(dated+"I said: "+text, dated+"我说过："+text)
	case h.Name != "":
		return l.pick(dated+h.Name+" said: "+text, dated+h.Name+"说："+text)
	}
	return l.pick(dated+"you said: "+text, dated+"你说："+text)
}

// maxQuote is how much of a text an answer quotes, in characters.
const maxQuote = 320

// excerpt returns the part of a text that has most of the words, of at most about n characters.
func excerpt(text string, terms []term, n int) string {
	text = strings.TrimSpace(text)
	if memgpt.Runes(text) <= n {
		return text
	}
	list := sentences(text)
	from, best := 0, -1.0
	for i, s := range list {
		b := bagOf(s)
		score := 0.0
		for _, x := range terms {
			score += x.weight * b.has(x)
		}
		if score > best {
			from, best = i, score
		}
	}
	out := list[from]
	for i := from + 1; i < len(list) && memgpt.Runes(out)+memgpt.Runes(list[i]) < n; i++ {
		out += " " + list[i]
	}
	if from > 0 {
		out = "… " + out
	}
	return shorten(out, n)
}
