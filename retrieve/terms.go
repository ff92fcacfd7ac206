package retrieve

import (
	"hash/fnv"
	"hash/maphash"
	"strconv"

	"memgpt"
	"memgpt/store"
)

// First bytes of terms; see the package comment.
const (
	prefixNone  byte = 0
	prefixExact byte = 1
	prefixDate  byte = 2
	prefixSaid  byte = 3
	prefixTag   byte = 4
)

// maxTerm bounds the bytes of a term without its prefix. A longer one is cut to keepTerm bytes, and a hash of the whole
// stands for the rest, so that a UUID or address of any length is still found as one.
const (
	maxTerm  = 64
	keepTerm = 40
)

// cutTerm appends term to dst, bounded.
func cutTerm(dst, term []byte) []byte {
	if len(term) <= maxTerm {
		return append(dst, term...)
	}
	h := fnv.New64a()
	_, _ = h.Write(term)
	dst = append(dst, memgpt.CutText(string(term[:keepTerm+1]), keepTerm)...)
	return strconv.AppendUint(append(dst, '~'), h.Sum64(), 16)
}

// counter counts terms. Terms are kept in one arena in the order in which they came.
type counter struct {
	seed    maphash.Seed
	slots   []int32 // open addressing; index into entries plus one
	entries []counted
	arena   []byte
}

type counted struct {
	hash       uint64
	start, end uint32
	n          int
}

const fewTerms = 256 // slots of an empty table; a power of two

func newCounter() counter {
	return counter{seed: maphash.MakeSeed(), slots: make([]int32, fewTerms)}
}

// reset empties the table. What a very large text made it grow to is let go.
func (c *counter) reset() {
	if len(c.slots) > 64*fewTerms {
		*c = newCounter()
		return
	}
	clear(c.slots)
	c.entries, c.arena = c.entries[:0], c.arena[:0]
}

// add counts the term prefix+term.
func (c *counter) add(prefix byte, term []byte) {
	if len(term) == 0 {
		return
	}
	if len(term) > maxTerm {
		term = cutTerm(nil, term)
	}
	hash := maphash.Bytes(c.seed, term) + uint64(prefix)
	mask := uint64(len(c.slots) - 1)
	i := hash & mask
	for ; c.slots[i] != 0; i = (i + 1) & mask {
		if e := &c.entries[c.slots[i]-1]; e.hash == hash && c.is(e, prefix, term) {
			e.n++
			return
		}
	}
	start := len(c.arena)
	if prefix != prefixNone {
		c.arena = append(c.arena, prefix)
	}
	c.arena = append(c.arena, term...)
	c.entries = append(c.entries, counted{hash, uint32(start), uint32(len(c.arena)), 1})
	c.slots[i] = int32(len(c.entries))
	if len(c.entries)*2 > len(c.slots) {
		c.grow()
	}
}

// is reports whether an entry is the term prefix+term.
func (c *counter) is(e *counted, prefix byte, term []byte) bool {
	have := c.arena[e.start:e.end]
	if prefix != prefixNone {
		return have[0] == prefix && string(have[1:]) == string(term)
	}
	return string(have) == string(term)
}

func (c *counter) grow() {
	c.slots = make([]int32, 4*len(c.slots))
	mask := uint64(len(c.slots) - 1)
	for n := range c.entries {
		i := c.entries[n].hash & mask
		for c.slots[i] != 0 {
			i = (i + 1) & mask
		}
		c.slots[i] = int32(n + 1)
	}
}

// counts returns the terms, all slices of one string.
func (c *counter) counts() []store.TermCount {
	all := string(c.arena)
	out := make([]store.TermCount, len(c.entries))
	for i, e := range c.entries {
		out[i] = store.TermCount{Term: all[e.start:e.end], N: e.n}
	}
	return out
}
