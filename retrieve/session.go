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

// spread adds to each score shares of those of its neighbours: near of the next ones, far of those behind them, giver and
// taker each scaled by ease.
func (l *layout) spread(in, ease, out []float32, near, far float32) {
	copy(out, in)
	for i := range in {
		p := l.prev[i]
		if p == 0 {
			continue
		}
		give(in, ease, out, i, int(p-1), near)
		if p = l.prev[p-1]; p != 0 {
			give(in, ease, out, i, int(p-1), far)
		}
	}
}

func give(in, ease, out []float32, a, b int, part float32) {
	part *= ease[a] * ease[b]
	out[a] += part * in[b]
	out[b] += part * in[a]
}

// bestOf keeps the three best scores of each session.
type bestOf [3]float32

// best returns the mean of the three best scores of each session, of as many as there are.
func (l *layout) best(score []float32, live func(int) bool, top []bestOf, seen []uint8) {
	clear(seen)
	for i, s := range l.session[:len(score)] {
		if s == 0 || !live(i) {
			continue
		}
		b, y := &top[s-1], score[i]
		switch n := seen[s-1]; {
		case n < 3:
			b[n] = y
			seen[s-1]++
			for k := int(n); k > 0 && b[k] > b[k-1]; k-- {
				b[k], b[k-1] = b[k-1], b[k]
			}
		case y > b[2]:
			b[2] = y
			for k := 2; k > 0 && b[k] > b[k-1]; k-- {
				b[k], b[k-1] = b[k-1], b[k]
			}
		}
	}
	for s, b := range top {
		mean := float32(0)
		for _, y := range b[:seen[s]] {
			mean += y / float32(seen[s])
		}
		top[s][0] = mean
	}
}
