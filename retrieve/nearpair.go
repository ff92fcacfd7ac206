package retrieve

import (
	"bytes"
	"encoding/binary"
	"strings"

	"memgpt"
)

// side is one text of a pair.
type side struct {
	*wording
	keys  []uint64 // of the units, as both texts know them
	extra []int    // units that the other side has no match for
}

// pair is two texts side by side.
type pair struct {
	a, b   side
	cased  map[uint64]bool // whether a stem always has a capital, of those whose case tells
	count  map[uint64][2]int32
	shared int // weight of what a has in common with b
}

func newPair(a, b *wording) *pair {
	p := &pair{a: side{wording: a}, b: side{wording: b}, cased: make(map[uint64]bool, len(a.units)), count: make(map[uint64][2]int32, len(a.units))}
	for _, s := range []*side{&p.a, &p.b} {
		for i := range s.units {
			if u := &s.units[i]; u.sense == senseContent && !s.shouts {
				all, known := p.cased[u.base]
				p.cased[u.base] = u.capital && (all || !known)
			}
		}
	}
	for which, s := range []*side{&p.a, &p.b} {
		s.keys = make([]uint64, len(s.units))
		for i := range s.units {
			s.keys[i] = s.units[i].base
			if p.named(&s.units[i]) {
				s.keys[i] = s.units[i].plain
			}
			n := p.count[s.keys[i]]
			n[which]++
			p.count[s.keys[i]] = n
		}
	}
	p.a.findExtra(p.count, 1)
	p.b.findExtra(p.count, 0)
	p.shared = p.a.weight - p.a.extraWeight()
	return p
}

// named reports whether a unit is a name: it is written with a capital wherever the case tells. Names are equal to the
// letter, other words by their stems.
func (p *pair) named(u *unit) bool { return u.capital && u.sense == senseContent && p.cased[u.base] }

// findExtra collects the units that stand more often here than on the other side.
func (s *side) findExtra(count map[uint64][2]int32, other int) {
	seen := map[uint64]int32{}
	for i, k := range s.keys {
		n := count[k]
		if n[other] >= n[1-other] {
			continue
		}
		if seen[k]++; seen[k] > n[other] {
			s.extra = append(s.extra, i)
		}
	}
}

func (s *side) extraWeight() int {
	n := 0
	for _, i := range s.extra {
		n += int(s.units[i].weight)
	}
	return n
}

// score is Dice's coefficient over the weights. Numbers and dates that stand for each other count half, so that short
// texts full of them still have a frame in common.
func (p *pair) score() float64 {
	all := p.a.weight + p.b.weight
	if all == 0 {
		return 0
	}
	common := all - p.a.extraWeight() - p.b.extraWeight()
	for _, k := range []sense{senseNumber, senseDate} {
		common += 10 * min(p.a.extraOf(k), p.b.extraOf(k))
	}
	return float64(common) / float64(all)
}

func (s *side) extraOf(as sense) int {
	n := 0
	for _, i := range s.extra {
		if s.units[i].sense == as {
			n++
		}
	}
	return n
}

// common reports whether all extra content of the side is common words of a script with capitals.
func (s *side) common() bool {
	for _, i := range s.extra {
		if u := &s.units[i]; u.sense == sensePerson || u.sense == senseContent && (u.capital || !u.cased) {
			return false
		}
	}
	return true
}

// changed is a row of units of one kind that only one side has.
type changed struct {
	from, to int // units
	kind     ChangeKind
}

// changes returns what keeps the texts from being the same, nil for nothing.
func (p *pair) changes() []Change {
	wordy := p.substituted()
	a, b := p.pieces(&p.a, wordy), p.pieces(&p.b, wordy)
	var list []Change
	for _, kind := range []ChangeKind{ChangeNegation, ChangeNumber, ChangeDate, ChangeName} {
		list = append(list, p.match(ofKind(a, kind), ofKind(b, kind))...)
	}
	return append(list, p.turned()...)
}

// substituted reports whether words without a fact in them tell the texts apart: where one has words in place of the
// other's, or more of them than an insertion may bring.
func (p *pair) substituted() bool {
	a, b := p.wording(&p.a), p.wording(&p.b)
	if a == 0 || b == 0 {
		return a > 0 && !p.inserted(&p.a, a) || b > 0 && !p.inserted(&p.b, b)
	}
	return true
}

// inserted reports whether the extra words of a side, of such a weight, are few and no more than adjectives and the
// like: neither names, which only capitals show, nor one thing more in a list.
func (p *pair) inserted(s *side, weight int) bool {
	if weight > max(p.shared/manyWords, oneWord) || p.shared < richWeight || s.shouts || s.whispers {
		return false
	}
	for _, i := range s.extra {
		u := &s.units[i]
		if u.sense == senseContent && !u.cased || adding[s.word(i)] {
			return false
		}
	}
	return true
}

// wording returns the weight of the extra content of a side. Names count whatever they weigh, pronouns where the other
// side has something in their place.
func (p *pair) wording(s *side) int {
	n := 0
	for _, i := range s.extra {
		switch u := &s.units[i]; u.sense {
		case senseContent, sensePerson:
			n += int(u.weight)
		case sensePronoun:
			if p.other(s).replaces() {
				n += int(u.weight)
			}
		}
	}
	return n
}

func (p *pair) other(s *side) *side {
	if s == &p.a {
		return &p.b
	}
	return &p.a
}

// replaces reports whether the side has an extra word that can stand for a pronoun.
func (s *side) replaces() bool {
	for _, i := range s.extra {
		switch s.units[i].sense {
		case sensePronoun, senseContent, sensePerson:
			return true
		}
	}
	return false
}

// pieces returns the extra units of a side that tell: facts always, other words where wordy.
func (p *pair) pieces(s *side, wordy bool) []changed {
	var list []changed
	for _, i := range s.extra {
		kind, tells := p.kind(&s.units[i], wordy)
		if !tells {
			continue
		}
		if n := len(list); n > 0 && list[n-1].kind == kind && s.joins(list[n-1].to, i) {
			list[n-1].to = i + 1
			continue
		}
		list = append(list, changed{i, i + 1, kind})
	}
	return list
}

// joins reports whether one that ends at unit end goes on with unit i: with the next, or the one after that among
// characters, of which two words may share one.
func (s *side) joins(end, i int) bool {
	return end == i || end == i-1 && !s.units[i].cased && !s.units[end-1].cased && s.units[end].weight < 10
}

func (p *pair) kind(u *unit, wordy bool) (kind ChangeKind, tells bool) {
	switch u.sense {
	case senseNumber:
		return ChangeNumber, true
	case senseDate:
		return ChangeDate, true
	case senseNegation:
		return ChangeNegation, true
	case sensePerson:
		return ChangeName, true
	case senseContent:
		return ChangeName, wordy || p.named(u)
	case sensePronoun:
		return ChangeName, wordy
	}
	return "", false
}

func ofKind(list []changed, kind ChangeKind) []changed {
	var out []changed
	for _, p := range list {
		if p.kind == kind {
			out = append(out, p)
		}
	}
	return out
}

// match puts the pieces of both sides next to each other in their order.
func (p *pair) match(a, b []changed) []Change {
	var list []Change
	for i := range max(len(a), len(b)) {
		var c Change
		if i < len(a) {
			c.A, c.Kind = p.a.cut(a[i].from, a[i].to), a[i].kind
		}
		if i < len(b) {
			c.B, c.Kind = p.b.cut(b[i].from, b[i].to), b[i].kind
		}
		if c.Kind == ChangeName && opposite(strings.ToLower(c.A), strings.ToLower(c.B)) {
			c.Kind = ChangeNegation
		}
		list = append(list, c)
	}
	return list
}

// cut returns the text of the units as it was written.
func (s *side) cut(from, to int) string {
	text := s.shown[s.units[from].start:s.units[to-1].end]
	return strings.ToValidUTF8(memgpt.CutText(text, maxPiece), "")
}

// turned returns the words of grammar that say the opposite of one another: before and after.
func (p *pair) turned() []Change {
	var list []Change
	for _, i := range p.a.grammar() {
		for _, j := range p.b.grammar() {
			if opposite(p.a.word(i), p.b.word(j)) && len(list) < maxChanges {
				list = append(list, Change{p.a.cut(i, i+1), p.b.cut(j, j+1), ChangeNegation})
			}
		}
	}
	return list
}

func (s *side) word(i int) string { return s.lower[s.units[i].start:s.units[i].end] }

// maxGrammar bounds the words of grammar that are compared each with each.
const maxGrammar = 64

func (s *side) grammar() []int {
	var list []int
	for _, i := range s.extra {
		if as := s.units[i].sense; (as == senseStop || as == senseFiller) && len(list) < maxGrammar {
			list = append(list, i)
		}
	}
	return list
}

// moved returns a change where the words in common stand in another order that may say something else: nil where one
// row of them moved past another, as a clause does from the end of a sentence to its head.
func (p *pair) moved() []Change {
	loose := map[uint64]bool{} // by what a word is here or there: may is grammar, or a month
	for _, s := range []*side{&p.a, &p.b} {
		for i, k := range s.keys {
			if as := s.units[i].sense; as == senseStop || as == senseFiller {
				loose[k] = true
			}
		}
	}
	a, b := p.order(&p.a, loose), p.order(&p.b, loose)
	head := 0
	for head < len(a) && p.a.keys[a[head]] == p.b.keys[b[head]] {
		head++
	}
	if head == len(a) {
		return nil
	}
	denied := head > 0 && p.a.units[a[head-1]].sense == senseNegation
	for a, b = a[head:], b[head:]; p.a.keys[a[len(a)-1]] == p.b.keys[b[len(b)-1]]; {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if k := rotation(p.a.row(a), p.b.row(b)); k > 0 && !denied && p.harmless(a[:k], a[k:]) {
		return nil
	}
	return []Change{{p.a.cut(a[0], a[len(a)-1]+1), p.b.cut(b[0], b[len(b)-1]+1), p.orderKind(a)}}
}

// order returns the units of a side that both have equally often and whose order may tell.
func (p *pair) order(s *side, loose map[uint64]bool) []int {
	var list []int
	for i, k := range s.keys {
		if n := p.count[k]; n[0] == n[1] && !loose[k] {
			list = append(list, i)
		}
	}
	return list
}

// row returns the keys of units as bytes, eight a unit.
func (s *side) row(units []int) []byte {
	out := make([]byte, 0, 8*len(units))
	for _, i := range units {
		out = binary.LittleEndian.AppendUint64(out, s.keys[i])
	}
	return out
}

// rotation returns how many units of a moved to its end to make b, 0 if b is no such row.
func rotation(a, b []byte) int {
	i := bytes.Index(append(append([]byte(nil), a...), a...), b)
	if i < 0 || i%8 != 0 {
		return 0
	}
	return i / 8
}

// harmless reports whether two rows of units can change places: not where each is one thing of the same kind, as in
// from A to B, and not where one parts a negation from what it denies.
func (p *pair) harmless(x, y []int) bool {
	last := func(row []int) sense { return p.a.units[row[len(row)-1]].sense }
	if last(x) == senseNegation || last(y) == senseNegation {
		return false
	}
	if !p.single(x) || !p.single(y) {
		return true
	}
	return (last(x) == senseDate) != (last(y) == senseDate)
}

// single reports whether a row is one unit, or one name of several words.
func (p *pair) single(row []int) bool {
	for k := 1; k < len(row); k++ {
		if row[k] != row[k-1]+1 || !p.named(&p.a.units[row[k]]) || !p.named(&p.a.units[row[k-1]]) {
			return false
		}
	}
	return true
}

func (p *pair) orderKind(units []int) ChangeKind {
	kind := ChangeName
	for _, i := range units {
		switch p.a.units[i].sense {
		case senseNegation:
			return ChangeNegation
		case senseNumber:
			kind = ChangeNumber
		case senseDate:
			if kind == ChangeName {
				kind = ChangeDate
			}
		}
	}
	return kind
}
