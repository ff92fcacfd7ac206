package retrieve

import (
	"time"

	"memgpt"
	"memgpt/store"
)

// sitting is the longest gap between two messages of one session, in seconds.
const sitting = 4 * 60 * 60

// layout says which messages stand beside each other: the one before each, in its session, and the session. A session is
// what a message's field says, else messages of one conversation with gaps under four hours. Messages whose time has no
// hour have neither: nobody knows then what follows what. Passages have neither.
//
// It grows with the owner; what a search has taken of it is never changed.
type layout struct {
	prev     []uint32 // number of the message before; 0 is none
	session  []uint32 // from 1; 0 is none
	sessions int
	last     map[uint32]lastSaid
	named    map[[2]uint32]uint32 // sessions by conversation and name
}

// lastSaid is the last message of a conversation.
type lastSaid struct {
	number, name, session uint32
	time                  int64
}

func (l *layout) bytes() int64 {
	return int64(4*cap(l.prev)+4*cap(l.session)+48*len(l.last)+24*len(l.named)) + 200
}

// grown returns the layout of all documents of meta. A time at midnight in the zone, or in UTC, has no hour.
func (l *layout) grown(meta *store.Meta, zone *time.Location) *layout {
	n := len(meta.Time)
	if l == nil || len(l.prev) > n {
		l = &layout{last: map[uint32]lastSaid{}, named: map[[2]uint32]uint32{}}
	}
	if len(l.prev) == n {
		return l
	}
	next := *l
	for i := len(l.prev); i < n; i++ {
		next.add(meta, i, zone)
	}
	return &next
}

// add places document i.
func (l *layout) add(meta *store.Meta, i int, zone *time.Location) {
	t := meta.Time[i]
	name := uint32(0)
	if meta.Sessions[meta.Session[i]] != "" {
		name = meta.Session[i] + 1
	}
	if store.MetaKinds[meta.Kind[i]] != memgpt.KindMessage || name == 0 && !hasHour(t, zone) {
		l.prev, l.session = append(l.prev, 0), append(l.session, 0)
		return
	}
	last, known := l.last[meta.Thread[i]]
	same := known && last.name == name && (name != 0 || t-last.time < sitting && last.time-t < sitting)
	now := lastSaid{number: uint32(i + 1), name: name, time: t}
	if same {
		now.session = last.session
		l.prev = append(l.prev, last.number)
	} else {
		now.session = l.open(meta.Thread[i], name)
		l.prev = append(l.prev, 0)
	}
	l.session = append(l.session, now.session)
	l.last[meta.Thread[i]] = now
}

// hasHour reports whether a time is more than a day: not unknown, and not midnight.
func hasHour(unix int64, zone *time.Location) bool {
	if unix == store.NoTime || unix%86400 == 0 {
		return false
	}
	if zone == nil {
		return true
	}
	h, m, s := time.Unix(unix, 0).In(zone).Clock()
	return h+m+s > 0
}

// open returns the session of a name in a conversation, or a new one.
func (l *layout) open(thread, name uint32) uint32 {
	if name != 0 {
		if s, ok := l.named[[2]uint32{thread, name}]; ok {
			return s
		}
	}
	l.sessions++
	if name != 0 {
		l.named[[2]uint32{thread, name}] = uint32(l.sessions)
	}
	return uint32(l.sessions)
}

// maxApart bounds how many documents of other conversations are looked over for the next of one.
const maxApart = 64

// next returns the message after one in its session, 0 if none is near.
func (l *layout) next(i int) int {
	for j := i + 1; j < len(l.prev) && j <= i+maxApart; j++ {
		if l.prev[j] == uint32(i+1) {
			return j
		}
	}
	return 0
}
