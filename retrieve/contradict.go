package retrieve

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"memgpt"
	"memgpt/tool"
)

// Bounds of the comparison of a page's passages with each other.
const (
	contrasted   = 10   // the first so many passages: 45 pairs
	contrastText = 1000 // bytes; a longer text is no single fact
)

// contrast finds passages among the hits that contradict each other, and lets none that holds no more stand before the one that
// contradicts it: they change places, and scores. Passages change places only where one of the two says what time it is about or
// when it ended, and the query asks for no time of its own; without that the hits stay as they are.
func contrast(hits []tool.Hit, now time.Time, ordered bool) []tool.Contradiction {
	var at []int
	for i := range hits {
		if hits[i].Kind == memgpt.KindPassage && len(hits[i].Text) <= contrastText && len(at) < contrasted {
			at = append(at, i)
		}
	}
	if len(at) < 2 {
		return nil
	}
	wordings, keys := make([]*wording, len(at)), make([]string, len(at))
	for k, i := range at {
		wordings[k], keys[k] = new(reader).read(hits[i].Text), SameKey(hits[i].Text)
	}
	var list []tool.Contradiction
	rivals := map[[2]string]bool{}
	for a := range at {
		for b := a + 1; b < len(at); b++ {
			x, y := &hits[at[a]], &hits[at[b]]
			if keys[a] == keys[b] || x.Source != "" && x.Source == y.Source {
				continue
			}
			l := compare(wordings[a], wordings[b])
			if l.Relation != Conflict || otherSubject(x.Text, y.Text, l.Diff) {
				continue
			}
			c := tool.Contradiction{First: x.ID, Second: y.ID}
			if order := newerFact(x, y, now); order != 0 {
				c.Newer = x.ID
				if order < 0 {
					c.Newer = y.ID
				}
			}
			for _, d := range l.Diff {
				c.Differs = append(c.Differs, tool.Difference{Kind: string(d.Kind), Here: d.A, There: d.B})
			}
			list, rivals[[2]string{x.ID, y.ID}], rivals[[2]string{y.ID, x.ID}] = append(list, c), true, true
		}
	}
	if ordered {
		newerFirst(hits, at, rivals, now)
	}
	return inOrder(list, hits)
}

// inOrder turns those pairs around whose passages changed places.
func inOrder(list []tool.Contradiction, hits []tool.Hit) []tool.Contradiction {
	place := func(id string) int { return slices.IndexFunc(hits, func(h tool.Hit) bool { return h.ID == id }) }
	for i := range list {
		c := &list[i]
		if place(c.First) < place(c.Second) {
			continue
		}
		c.First, c.Second = c.Second, c.First
		for j := range c.Differs {
			d := &c.Differs[j]
			d.Here, d.There = d.There, d.Here
		}
	}
	return list
}

// newerFirst lets rivals change places where the newer one stands behind.
func newerFirst(hits []tool.Hit, at []int, rivals map[[2]string]bool, now time.Time) {
	for a := range at {
		for b := a + 1; b < len(at); b++ {
			x, y := &hits[at[a]], &hits[at[b]]
			if rivals[[2]string{x.ID, y.ID}] && (dated(x) || dated(y)) && newerFact(x, y, now) < 0 {
				*x, *y = *y, *x
				x.Score, y.Score = y.Score, x.Score
			}
		}
	}
}

// dated reports whether a passage says more of time than when it was stored.
func dated(h *tool.Hit) bool { return !h.About.IsZero() || !h.Ended.IsZero() }

// newerFact compares what two passages say of time: over 0 where the first counts. One that holds comes before one that ended, then
// counts the time that they are about, or were learned, then when they were learned.
func newerFact(a, b *tool.Hit, now time.Time) int {
	holds := func(h *tool.Hit) int {
		if h.Ended.IsZero() || h.Ended.After(now) {
			return 1
		}
		return 0
	}
	when := func(h *tool.Hit) time.Time {
		if h.About.IsZero() {
			return h.Learned
		}
		return h.About
	}
	return cmp.Or(holds(a)-holds(b), when(a).Compare(when(b)), a.Learned.Compare(b.Learned))
}

// otherSubject reports whether texts speak of two people or things, and so don't contradict each other: they differ in a name at the
// beginning of both, or in the code that names what they are about.
func otherSubject(a, b string, diff []Change) bool {
	head := func(text, piece string) bool {
		return piece != "" && strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), strings.ToLower(piece))
	}
	for _, d := range diff {
		if d.Kind == ChangeName && head(a, d.A) && head(b, d.B) {
			return true
		}
	}
	x, y := codeSubject(a), codeSubject(b)
	return x != "" && y != "" && !strings.EqualFold(x, y)
}

// codeSubject returns the code that a text is about: one that it begins with, or the first of several, of which the others are then
// what is said of it. A single code further on is a value, as a password is, and "" stands for it.
func codeSubject(text string) string {
	first, codes := "", 0
	for i, w := range strings.Fields(text) {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if !isCode(w) {
			continue
		}
		if i == 0 {
			return w
		}
		if codes++; codes == 1 {
			first = w
		}
	}
	if codes < 2 {
		return ""
	}
	return first
}

// isCode reports whether a word is a code, as DP-41 or a UUID: a digit follows a letter in it, other than in 5pm, 20 mg or 3rd. The
// letter in a date with a time makes none.
func isCode(word string) bool {
	if len(word) > 10 && word[4] == '-' && word[7] == '-' && (word[10] == 'T' || word[10] == 't') {
		return false
	}
	letter := false
	for _, r := range word {
		switch {
		case unicode.IsDigit(r) && letter:
			return true
		case unicode.IsLetter(r):
			letter = r < unicode.MaxLatin1 // the runs of other scripts have no spaces between word and number
		case r != '-' && r != '_':
			letter = false
		}
	}
	return false
}
