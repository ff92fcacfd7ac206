package retrieve

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// SameKey returns the form under which two texts are the same passage: NFKC, case folded, each row of white space as
// one space and none at the ends. It is about as long as the text; who stores it hashes it (memgpt.HashKey).
func SameKey(text string) string {
	folded := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text)))
	return strings.Join(strings.Fields(folded), " ")
}

// Relation says what one text is to another.
type Relation string

// Relations, from nothing in common to equal.
const (
	Different Relation = "different"
	Conflict  Relation = "conflict" // the same but for what Likeness.Diff lists: never to be merged unseen
	Near      Relation = "near"     // the same content in other words
	Same      Relation = "same"     // equal under SameKey
)

// ChangeKind says in what two texts differ.
type ChangeKind string

// Kinds of changes.
const (
	ChangeNumber   ChangeKind = "number"
	ChangeDate     ChangeKind = "date"
	ChangeName     ChangeKind = "name" // a name, or any other word that says who, what, where or how
	ChangeNegation ChangeKind = "negation"
)

// Change is one piece in which two texts differ, as each writes it; "" where one has nothing in its place.
type Change struct {
	A, B string
	Kind ChangeKind
}

// Likeness compares two texts.
type Likeness struct {
	Score    float64 // weight of the words in common, 0 to 1, whatever their order; 0 where lengths rule likeness out
	Relation Relation
	Diff     []Change // of a Conflict, in the order of the texts, at most maxChanges
}

// Close reports whether the texts are worth showing to each other.
func (l Likeness) Close() bool { return l.Relation != Different && l.Relation != "" }

// Bounds of a comparison. The weights are tenths of a content word.
const (
	maxChanges   = 16
	maxPiece     = 80  // bytes of a piece that is shown
	nearScore    = .75 // least score of texts that are Near
	conflictLow  = .5  // least score of a Conflict between short texts, up to shortWeight
	conflictWord = .6  // least score where a common word differs: who likes coffee may like tea
	conflictHigh = .85 // and between long ones, from longWeight on
	shortWeight  = 40
	longWeight   = 200
	richWeight   = 40 // texts that share this much may differ by one inserted word
	manyWords    = 8  // and by more words in one for so much that they share
	oneWord      = 10
)

// Compare says how two texts relate, by their words alone: stems, numbers, dates, names and negations. Two texts that
// differ in a content word are never Near, since what means the same can't be told from what is merely similar; so a
// synonym is a Conflict. It takes time in proportion to the texts and is symmetric but for the sides of Diff.
func Compare(a, b string) Likeness {
	if a == b || SameKey(a) == SameKey(b) {
		return Likeness{Score: 1, Relation: Same}
	}
	var r reader
	return compare(r.read(a), r.read(b))
}

// compare is Compare for texts that are not the same.
func compare(a, b *wording) Likeness {
	if best := bound(min(a.weight, b.weight), max(a.weight, b.weight)); best < conflictLow {
		return Likeness{Relation: Different}
	}
	p := newPair(a, b)
	l := Likeness{Score: p.score(), Relation: Different}
	if l.Score < conflictLow {
		return l
	}
	changes := p.changes()
	if changes == nil {
		changes = p.moved()
	}
	switch {
	case changes == nil && l.Score >= nearScore && p.shared >= 10:
		l.Relation = Near
	case changes != nil && p.framed() && p.only(changes, l.Score):
		l.Relation, l.Diff = Conflict, changes[:min(len(changes), maxChanges)]
	}
	return l
}

// bound is the score that texts of such weights could reach at best.
func bound(light, heavy int) float64 {
	if heavy == 0 {
		return 0
	}
	return 2 * float64(light) / float64(light+heavy)
}

// framed reports whether the texts have a word in common, not only numbers: rows of codes don't contradict each other.
func (p *pair) framed() bool {
	extra := map[int]bool{}
	for _, i := range p.a.extra {
		extra[i] = true
	}
	for i := range p.a.units {
		if s := p.a.units[i].sense; s != senseNumber && s != senseDate && !extra[i] {
			return true
		}
	}
	return false
}

// only reports whether the changes are all that parts two texts of such a score, which is a conflict; where they are
// many for the length, or one word of a few, the texts are just different.
func (p *pair) only(changes []Change, score float64) bool {
	weight := min(p.a.weight, p.b.weight)
	names := 0
	for _, c := range changes {
		if c.Kind == ChangeName {
			names++
		}
	}
	if names > 1+weight/longWeight || len(changes) > 2+weight/(longWeight/2) {
		return false
	}
	if p.common(changes) && score < conflictWord {
		return false
	}
	share := float64(max(0, min(weight, longWeight)-shortWeight)) / (longWeight - shortWeight)
	return score >= conflictLow+share*(conflictHigh-conflictLow)
}

// common reports whether the only change is from one common word to another, of a script that would show a name.
func (p *pair) common(changes []Change) bool {
	return len(changes) == 1 && changes[0].Kind == ChangeName && p.a.common() && p.b.common()
}
