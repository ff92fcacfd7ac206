package sqlite

import (
	"context"
	"sync"

	"memgpt/store"
)

// index is the cached parts of the owners' indexes.
type index struct {
	mu     sync.Mutex
	owners map[int64]*ownerIndex
	limit  int64 // bytes
	tick   int64 // counts uses
}

// ownerIndex is what is cached of one owner's index. Whoever brings it up to date holds mu from before its snapshot of
// the store begins, so that it is never ahead of the snapshot.
type ownerIndex struct {
	mu     sync.Mutex
	tail   tail
	meta   meta
	erased int64 // mark.erased when they were read

	used  int64 // tick of the last use; index.mu guards it
	bytes int64 // index.mu guards it
}

func (x *index) init(limit int64) {
	x.limit, x.owners = limit, map[int64]*ownerIndex{}
}

func (x *index) owner(no int64) *ownerIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.owners[no]
	if o == nil {
		o = &ownerIndex{}
		x.owners[no] = o
	}
	x.tick++
	o.used = x.tick
	return o
}

// grown notes the size of an owner's part and drops the parts that were idle the longest while all are over the limit.
// A dropped part lives on with those who hold it.
func (x *index) grown(no int64, bytes int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if o := x.owners[no]; o != nil {
		o.bytes = bytes
	}
	for x.size() > x.limit && len(x.owners) > 1 {
		idle := int64(-1)
		for other, o := range x.owners {
			if other != no && (idle < 0 || o.used < x.owners[idle].used) {
				idle = other
			}
		}
		delete(x.owners, idle)
	}
}

func (x *index) size() (sum int64) {
	for _, o := range x.owners {
		sum += o.bytes
	}
	return sum
}

// mark says how far an owner's index has come, as one snapshot sees it.
type mark struct {
	docs, live, length int64
	merged, mergeTo    int64
	mergeTerm          string
	deaths, packed     int64
	erased             int64 // differs where docs were erased in between
}

const sqlMark = `SELECT d.no, d.sum_length, x.no, x.sum_length, o.merged, o.merge_to, o.merge_term, o.packed, o.erased FROM owners o
	LEFT JOIN docs d ON d.no = (SELECT max(no) FROM docs WHERE no BETWEEN ?1 << 32 AND ?1 << 32 | 0xffffffff)
	LEFT JOIN dead x ON x.no = (SELECT max(no) FROM dead WHERE no BETWEEN ?1 << 32 AND ?1 << 32 | 0xffffffff)
	WHERE o.no = ?1`

func readMark(c *conn, no int64) (m mark, err error) {
	r, err := c.one(sqlMark, no)
	if err != nil || r == nil {
		return m, err
	}
	m = mark{docs: posOf(r.int(0)), length: r.int(1) - r.int(3), deaths: posOf(r.int(2)), merged: r.int(4), mergeTo: r.int(5),
		mergeTerm: r.text(6), packed: r.int(7), erased: r.int(8)}
	m.live = m.docs - m.deaths
	return m, nil
}

// bound returns the last doc of which the term's posting is in blocks.
func (m *mark) bound(term string) uint32 {
	if m.mergeTo > m.merged && term < m.mergeTerm {
		return uint32(m.mergeTo)
	}
	return uint32(m.merged)
}

// indexed runs fresh with an owner's cached part locked and on a snapshot, to bring it up to date and take what is
// needed of it, and then, without the lock, rest on the same snapshot. Neither runs when the owner has no rows.
func (s *Store) indexed(ctx context.Context, tenant, owner string, fresh func(c *conn, m mark, no int64, o *ownerIndex) error,
	rest func(c *conn, m mark, no int64) error) error {
	return s.read(ctx, "the index of "+owner, func(c *conn) error {
		no, err := s.ownerNo(c, name{tenant, owner})
		if err != nil || no == 0 {
			return err
		}
		o := s.index.owner(no)
		o.mu.Lock()
		locked := true
		defer func() {
			if locked {
				o.mu.Unlock()
			}
		}()
		return c.within(func() error {
			m, err := readMark(c, no)
			if err != nil {
				return err
			}
			before := o.size()
			if o.erased != m.erased {
				o.tail, o.meta, o.erased = tail{}, meta{}, m.erased
			}
			if err := fresh(c, m, no, o); err != nil {
				o.tail, o.meta = tail{}, meta{}
				return err
			}
			after := o.size()
			o.mu.Unlock()
			locked = false
			if after != before {
				s.index.grown(no, after)
			}
			return rest(c, m, no)
		})
	})
}

func (o *ownerIndex) size() int64 { return o.tail.bytes + o.meta.bytes() }

const (
	sqlPostings = "SELECT first, data FROM postings WHERE owner = ? AND term = ? ORDER BY first"
	sqlTotal    = "SELECT total FROM postings WHERE owner = ? AND term = ? ORDER BY first DESC LIMIT 1"
)

// Stats implements store.Index.
func (s *Store) Stats(ctx context.Context, tenant, owner string, terms []string) (store.Stats, error) {
	st := store.Stats{DF: make(map[string]int, len(terms))}
	err := s.indexed(ctx, tenant, owner, func(c *conn, m mark, no int64, o *ownerIndex) error {
		st.Docs, st.Length = int(m.live), m.length
		if err := o.tail.update(c, no, m); err != nil {
			return err
		}
		for _, term := range terms {
			st.DF[term] = len(o.tail.after(term, m.bound(term)))
		}
		return nil
	}, func(c *conn, _ mark, no int64) error {
		for term := range st.DF {
			r, err := c.one(sqlTotal, no, term)
			if err != nil {
				return err
			}
			if r != nil {
				st.DF[term] += int(r.int(0))
			}
		}
		return nil
	})
	return st, err
}

// Postings implements store.Index. The blocks are read before the first is yielded, about two bytes a posting, so that
// yield holds up no one and may itself read the store.
func (s *Store) Postings(ctx context.Context, tenant, owner, term string, yield func(block []store.Posting) bool) error {
	type stored struct {
		first uint32
		data  []byte
	}
	var blocks []stored
	var rest []store.Posting
	err := s.indexed(ctx, tenant, owner, func(c *conn, m mark, no int64, o *ownerIndex) error {
		if err := o.tail.update(c, no, m); err != nil {
			return err
		}
		rest = o.tail.after(term, m.bound(term))
		return nil
	}, func(c *conn, _ mark, no int64) error {
		return c.each(func(r row) error {
			blocks = append(blocks, stored{uint32(r.int(0)), r.blob(1)})
			return ctx.Err()
		}, sqlPostings, no, term)
	})
	if err != nil {
		return err
	}
	var block []store.Posting
	for _, b := range blocks {
		block = appendPostings(block[:0], b.first, b.data)
		if !yield(block) {
			return nil
		}
	}
	if len(rest) > 0 {
		yield(append(block[:0], rest...))
	}
	return nil
}

const (
	sqlDocID     = "SELECT id FROM docs WHERE no = ?"
	sqlDocNumber = "SELECT doc FROM ids WHERE owner = ? AND id = ?"
)

// DocIDs implements store.Index; a number that no document has gives "".
func (s *Store) DocIDs(ctx context.Context, tenant, owner string, numbers []int64) ([]string, error) {
	ids := make([]string, len(numbers))
	err := s.snapshot(ctx, "documents of "+owner, func(c *conn) error {
		no, err := s.ownerNo(c, name{tenant, owner})
		if err != nil || no == 0 {
			return err
		}
		for i, n := range numbers {
			if n < 1 || n > maxPos {
				continue
			}
			r, err := c.one(sqlDocID, rowNo(no, n))
			if err != nil {
				return err
			}
			if r != nil {
				ids[i] = unpackID(r.blob(0))
			}
		}
		return nil
	})
	return ids, err
}

// DocNumbers implements store.Index; the numbers come in the order of the ids.
func (s *Store) DocNumbers(ctx context.Context, tenant, owner string, ids []string) (numbers []int64, err error) {
	err = s.snapshot(ctx, "documents of "+owner, func(c *conn) error {
		return s.byID(c, name{tenant, owner}, ids, func(_ int64, _ string, r row) error {
			if r.int(2) != 0 {
				numbers = append(numbers, r.int(2))
			}
			return nil
		})
	})
	return numbers, err
}
