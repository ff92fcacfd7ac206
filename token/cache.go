package token

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

const (
	cacheSlots = 1 << 13
	cacheBytes = 48 // longer pieces are rarely seen again
)

// cache remembers the counts of pieces of text, of which a few thousand make up most of what is said. Each piece has one
// slot, which the newest piece takes; so it never grows beyond about a megabyte.
type cache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[counted]
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
	slot := &c.slots[maphash.String(c.seed, piece)%cacheSlots]
	if known := slot.Load(); known != nil && known.piece == piece {
		return known.n
	}
	n := count(piece)
	slot.Store(&counted{strings.Clone(piece), n}) // a clone, or the whole text would stay in memory
	return n
}
