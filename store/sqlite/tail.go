package sqlite

import (
	"slices"
	"sort"

	"memgpt/store"
)

// tail is the postings of docs that are not merged yet: those in (base, last], by term. Lists are only appended to, or
// replaced, so that a slice of one stays as it is.
type tail struct {
	base, last uint32
	slots      map[string]int32
	lists      [][]store.Posting
	bytes      int64 // about
}

// Sizes in memory, roughly: of a term with its list and its place in the map, and of a posting with spare room.
const (
	termBytes    = 96
	postingBytes = 12
)

const sqlForward = "SELECT no, terms FROM docs WHERE no BETWEEN ? AND ? ORDER BY no"

// update reads the forward rows that came since, and drops what has been merged.
func (t *tail) update(c *conn, owner int64, m mark) error {
	merged, docs := uint32(m.merged), uint32(m.docs)
	if t.slots == nil || t.last < merged {
		*t = tail{base: merged, last: merged, slots: map[string]int32{}}
	}
	if t.base < merged {
		t.cut(merged)
	}
	return t.read(c, owner, docs)
}

// read appends the docs up to last.
func (t *tail) read(c *conn, owner int64, last uint32) error {
	if t.last >= last {
		return nil
	}
	return c.each(func(r row) error {
		t.last = uint32(posOf(r.int(0)))
		return eachTerm(r.blob(1), func(term []byte, n uint32) { t.add(term, store.Posting{Doc: t.last, N: n}) })
	}, sqlForward, rowNo(owner, int64(t.last)+1), rowNo(owner, int64(last)))
}

func (t *tail) add(term []byte, p store.Posting) {
	i, ok := t.slots[string(term)]
	if !ok {
		i = int32(len(t.lists))
		t.slots[string(term)] = i
		t.lists = append(t.lists, nil)
		t.bytes += termBytes + int64(len(term))
	}
	t.lists[i] = append(t.lists[i], p)
	t.bytes += postingBytes
}

// cut drops the postings of docs up to base.
func (t *tail) cut(base uint32) {
	old := *t
	*t = tail{base: base, last: old.last, slots: map[string]int32{}}
	for term, i := range old.slots {
		rest := postingsAfter(old.lists[i], base)
		if len(rest) == 0 {
			continue
		}
		t.slots[term] = int32(len(t.lists))
		t.lists = append(t.lists, slices.Clone(rest))
		t.bytes += termBytes + int64(len(term)) + postingBytes*int64(len(rest))
	}
}

// after returns the term's postings of docs after bound.
func (t *tail) after(term string, bound uint32) []store.Posting {
	i, ok := t.slots[term]
	if !ok {
		return nil
	}
	return postingsAfter(t.lists[i], bound)
}

func postingsAfter(list []store.Posting, bound uint32) []store.Posting {
	return list[sort.Search(len(list), func(i int) bool { return list[i].Doc > bound }):]
}
