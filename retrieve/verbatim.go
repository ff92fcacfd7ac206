package retrieve

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of the verbatim check.
const (
	verbatimDocs  = 64      // documents whose texts are read
	verbatimBytes = 4 << 20 // of texts that are searched, together
)

// liftVerbatim raises the documents that hold a phrase of the query word by word over all others, and returns how many it
// found. It looks at the best of those that hold all words of a phrase.
func (s *Searcher) liftVerbatim(ctx context.Context, list owners, q *query) (lifted int, err error) {
	need := q.needed()
	if need == 0 {
		return 0, nil
	}
	best := make([]*ranking, len(list))
	for k, w := range list {
		best[k] = newRanking(w.meta, verbatimDocs)
		for i, held := range w.board.held {
			if int(held) >= need && w.pass.passes(i) {
				best[k].offer(found{doc: i, score: w.score[i]})
			}
		}
	}
	docs := list.joined(best)
	if docs = docs[:min(len(docs), verbatimDocs)]; len(docs) == 0 {
		return 0, nil
	}
	hits, err := s.originalsOf(ctx, list, docs)
	if err != nil {
		return 0, err
	}
	a := s.analyzer.get()
	defer s.analyzer.pool.Put(a)
	lift := list.spread()
	budget := verbatimBytes
	for k, hit := range hits {
		if hit == nil || len(hit.Text) > budget {
			continue
		}
		budget -= len(hit.Text)
		text, score, doc := a.plain(hit.Text), list[docs[k].owner].score, docs[k].doc
		before := score[doc]
		for _, p := range q.phrases {
			if holds(text, p.text) {
				score[doc] += lift
			}
		}
		if score[doc] > before {
			lifted++
		}
	}
	return lifted, nil
}

// needed returns how many groups a document must hold to be worth a look, 0 where no phrase can be found.
func (q *query) needed() int {
	need := 0
	for _, p := range q.phrases {
		if len(p.ids) > 0 && (need == 0 || len(p.ids) < need) {
			need = len(p.ids)
		}
	}
	return need
}

// literal reports whether the query is a code, or quotations and nothing beside them.
func (q *query) literal() bool {
	return q.code || q.quoted && !slices.ContainsFunc(q.groups, func(g group) bool { return !g.phrase && !g.extra })
}

// forget takes a group out of the phrases: it is too common to be scored.
func (q *query) forget(id int) {
	for i := range q.phrases {
		q.phrases[i].ids = slices.DeleteFunc(q.phrases[i].ids, func(n int) bool { return n == id })
	}
}

// missing takes the phrases away that a group is part of: no document holds it.
func (q *query) missing(id int) {
	q.phrases = slices.DeleteFunc(q.phrases, func(p phrase) bool { return slices.Contains(p.ids, id) })
}

// markPhrases marks the groups of the phrases that are left: only theirs are counted, which takes time.
func (q *query) markPhrases() {
	for i := range q.groups {
		g := &q.groups[i]
		g.phrase = slices.ContainsFunc(q.phrases, func(p phrase) bool { return slices.Contains(p.ids, g.id) })
	}
}

// spread returns by how much the best score is over the least, or over 0 where none is under it.
func (list owners) spread() float32 {
	least, most := float32(0), float32(0)
	for _, w := range list {
		for _, s := range w.score {
			least, most = min(least, s), max(most, s)
		}
	}
	return most - least
}

// holds reports whether a plain text holds a plain phrase, not in the midst of a word at either end.
func holds(text, phrase string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], phrase)
		if i < 0 {
			return false
		}
		i += from
		if border(text, i) && border(text, i+len(phrase)) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		from = i + size
	}
}

// border reports whether a word can begin or end at i.
func border(text string, i int) bool {
	if i <= 0 || i >= len(text) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i:])
	return !inWord(before) || !inWord(after)
}

func inWord(r rune) bool {
	c := runeClass(r)
	return c == classDigit || c.wordy()
}
