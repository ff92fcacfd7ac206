package token

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	cacheSets  = 1 << 13
	cacheBytes = 48 // longer pieces are rarely seen again
)

// cache remembers the counts of pieces of text, of which a few thousand make up most of what is said. Each piece may stand
// in one set of two, in which the one used last stands first and a new one drives the other out; so the cache never grows
// beyond about two megabytes.
type cache struct {
	seed maphash.Seed
	sets [cacheSets][2]atomic.Pointer[counted]
}

type counted struct {
	piece string
	n     int
}

// count returns the count of a piece, from memory or from the function.
func (c *cache) count(piece string, count func(string) int) int {
	if len(piece) > cacheBytes {
		return count(piece)
	}
	set := &c.sets[maphash.String(c.seed, piece)%cacheSets]
	first := set[0].Load()
	if first != nil && first.piece == piece {
		return first.n
	}
	known := set[1].Load()
	if known == nil || known.piece != piece {
		known = &counted{strings.Clone(piece), count(piece)} // a clone, or the whole text would stay in memory
	}
	set[1].Store(first)
	set[0].Store(known)
	return known.n
}
