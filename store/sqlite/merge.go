package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"memgpt/store"
)

// A merge appends the postings of the docs after owners.merged, up to merge_to, to the blocks, term by term in slices.
// After each slice merge_term says how far it came, in the same transaction: a reader takes the blocks of a term before
// it as complete up to merge_to, and the others up to merged. So nothing is lost or doubled wherever it is interrupted.

// The tail at which a merge begins grows with the owner, so that the rewriting of the last blocks of terms stays a small
// part of the cost of a doc; its bounds keep the cached tail small.
const (
	minTail   = 4096
	maxTail   = 8192
	tailShare = 32
	// mergeMost is how many docs one merge takes, which bounds its memory.
	mergeMost = 16384
)

func (s *Store) mergeThreshold(docs int64) int64 {
	if s.cfg.mergeAt > 0 {
		return s.cfg.mergeAt
	}
	return min(max(docs/tailShare, minTail), maxTail)
}

// sliceTime is how long a slice works before it commits: what it may hold up a commit. Where a merge is far behind, as in a
// large import, what is not merged costs searches and memory more than that: slices are longer then, see urgency.
const (
	sliceTime  = 2 * time.Millisecond
	mostUrgent = 8
)

// urgency is how many full tails are unmerged, from 1 to mostUrgent.
func (at *mark) urgency() int { return int(min(max((at.docs-at.merged)/maxTail, 1), mostUrgent)) }

// blockBytes bounds a block, so that four rows fit on a page: SQLite moves what is longer to pages of its own.
const blockBytes = 900

// merges is what wants merging, and the goroutine that does it.
type merges struct {
	mu     sync.Mutex
	owners []int64
	closed bool
	wake   chan struct{}
	ending chan struct{} // closed when the goroutine is to end
	ended  chan struct{} // and when it has
}

func (m *merges) init() {
	m.wake, m.ending, m.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
}

func (m *merges) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *merges) want(owner int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.owners, owner) {
		m.owners = append(m.owners, owner)
		m.signal()
	}
}

func (m *merges) next() (owner int64, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, true
	}
	if len(m.owners) > 0 {
		owner = m.owners[0]
		m.owners = m.owners[1:]
	}
	return owner, false
}

func (m *merges) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.closed = true
		close(m.ending)
	}
	m.signal()
}

const sqlMergesLeft = `SELECT o.no, (SELECT max(no) FROM docs WHERE no BETWEEN o.no << 32 AND o.no << 32 | 0xffffffff), o.merged,
	o.merge_to, o.packed FROM owners o`

// findMerges lists the owners whose index was left unmerged, or unpacked, when the store was last open.
func (s *Store) findMerges() error {
	return s.read(context.Background(), "what is to merge", func(c *conn) error {
		return c.each(func(r row) error {
			docs := posOf(r.int(1))
			if docs-r.int(2) >= s.mergeThreshold(docs) || r.int(3) > r.int(2) || r.int(4)+metaUnit <= r.int(2) {
				s.merges.want(r.int(0))
			}
			return nil
		}, sqlMergesLeft)
	})
}

// merge is the merging goroutine. A merge that fails is begun again when the owner's next docs come: until then they are
// read from the forward rows, and nothing is wrong but slower.
func (s *Store) merge() {
	defer close(s.merges.ended)
	s.cleanLater()
	_ = s.findMerges()
	for {
		owner, closed := s.merges.next()
		switch {
		case closed:
			return
		case owner == 0:
			if more, err := s.eraseSome(); err != nil || !more {
				<-s.merges.wake
			}
		default:
			for more := true; more; {
				var err error
				if more, err = s.mergeOwner(owner); err != nil {
					more = false
				}
			}
		}
	}
}

// mergeJob is one merge: the postings of docs in (from.merged, to].
type mergeJob struct {
	owner int64
	from  mark // as the last slice left it
	to    int64
	tail  tail
	terms []string // those still to do, in order
	metas [][]byte // units to add at the end
	over  bool
	most  int // terms a slice, for tests; 0 is as many as there is time for
}

// errMoved ends a merge that another process has taken over, or the docs of which were erased.
var errMoved = errors.New("another process merges")

// mergeOwner does one merge and reports whether there is more to do for the owner.
func (s *Store) mergeOwner(owner int64) (more bool, err error) {
	m := &mergeJob{owner: owner}
	err = s.snapshot(context.Background(), "what is to merge", func(c *conn) error { return m.load(c, s.mergeThreshold) })
	if err != nil || m.to == 0 {
		return false, err
	}
	for !m.over {
		if !s.queue.idle(maxRounds / m.from.urgency()) {
			return false, closedError()
		}
		s.token <- struct{}{}
		err := s.writeSlice(m)
		s.release()
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// load reads the docs that are to be merged, if they are enough or a merge was interrupted.
func (m *mergeJob) load(c *conn, threshold func(docs int64) int64) (err error) {
	if m.from, err = readMark(c, m.owner); err != nil {
		return err
	}
	at := &m.from
	switch {
	case at.mergeTo > at.merged:
		m.to = at.mergeTo
	case at.docs-at.merged >= threshold(at.docs):
		m.to = min(at.docs, at.merged+mergeMost)
	case at.packed+metaUnit <= at.merged:
		m.to = at.merged // nothing to merge, but to pack
		return m.loadMetas(c)
	default:
		return nil
	}
	m.tail = tail{base: uint32(at.merged), last: uint32(at.merged), slots: map[string]int32{}}
	if err := m.tail.read(c, m.owner, uint32(m.to)); err != nil {
		return err
	}
	for term := range m.tail.slots {
		if at.mergeTo <= at.merged || term >= at.mergeTerm {
			m.terms = append(m.terms, term)
		}
	}
	slices.Sort(m.terms)
	return m.loadMetas(c)
}

// packMost is how many units of meta one merge packs: as many as it has docs for. They are behind where the form of units
// has changed.
const packMost = mergeMost / metaUnit

// loadMetas packs whole units up to the merge's end.
func (m *mergeJob) loadMetas(c *conn) error {
	for from := m.from.packed; from+metaUnit <= m.to && len(m.metas) < packMost; from += metaUnit {
		docs := make([]docMeta, 0, metaUnit)
		err := c.each(func(r row) error { docs = append(docs, docMetaOf(r)); return nil }, sqlMetaDocs,
			rowNo(m.owner, from+1), rowNo(m.owner, from+metaUnit))
		if err != nil {
			return err
		}
		m.metas = append(m.metas, packMeta(docs))
	}
	return nil
}

const (
	sqlMergeSet = `UPDATE owners SET merged = ?, merge_to = ?, merge_term = ?, packed = ?, blocks = blocks + ?,
		block_bytes = block_bytes + ? WHERE no = ?`
	sqlBlockLast   = "SELECT first, last, total, data FROM postings WHERE owner = ? AND term = ? ORDER BY first DESC LIMIT 1"
	sqlPostingsNew = "INSERT INTO postings (owner, term, first, last, total, data) VALUES (?, ?, ?, ?, ?, ?)"
	sqlPostingsSet = "UPDATE postings SET last = ?, total = ?, data = ? WHERE owner = ? AND term = ? AND first = ?"
)

// writeSlice makes one slice. The writer's token is held.
func (s *Store) writeSlice(m *mergeJob) error {
	if err := s.begin(); err != nil {
		return err
	}
	next, err := m.slice(s.writer)
	if err != nil {
		return errors.Join(err, s.rollback())
	}
	if _, err := s.writer.exec("COMMIT"); err != nil {
		return errors.Join(fmt.Errorf("commit a merge: %w", err), s.rollback())
	}
	m.done(next)
	if m.over {
		s.rows.dropOwner(m.owner)
	}
	return nil
}

// progress is what a slice did.
type progress struct {
	mark
	terms         int // of mergeJob.terms
	blocks, bytes int64
}

// slice merges terms until its time is over, and notes in the owner's row how far it came.
func (m *mergeJob) slice(c *conn) (p progress, err error) {
	at, err := readMark(c, m.owner)
	if err != nil {
		return p, err
	}
	if at.merged != m.from.merged || at.mergeTo != m.from.mergeTo || at.mergeTerm != m.from.mergeTerm || at.packed != m.from.packed ||
		at.erased != m.from.erased {
		return p, errMoved
	}
	p.mark = at
	for start := time.Now(); p.terms < len(m.terms) && !m.enough(p.terms, start); p.terms++ {
		if err := m.term(c, &p, m.terms[p.terms]); err != nil {
			return p, err
		}
	}
	if p.terms < len(m.terms) {
		p.mergeTo, p.mergeTerm = m.to, m.terms[p.terms]
	} else {
		p.merged, p.mergeTo, p.mergeTerm = m.to, 0, ""
		for _, data := range m.metas {
			if _, err := c.exec(sqlPackNew, rowNo(m.owner, p.packed/metaUnit), data); err != nil {
				return p, err
			}
			p.packed += metaUnit
		}
	}
	_, err = c.exec(sqlMergeSet, p.merged, p.mergeTo, p.mergeTerm, p.packed, p.blocks, p.bytes, m.owner)
	return p, err
}

// enough reports whether a slice is to end. It always does something.
func (m *mergeJob) enough(terms int, start time.Time) bool {
	if m.most > 0 {
		return terms >= m.most
	}
	return terms > 0 && terms%8 == 0 && time.Since(start) >= sliceTime*time.Duration(m.from.urgency())
}

func (m *mergeJob) done(p progress) {
	m.from, m.terms = p.mark, m.terms[p.terms:]
	m.over = p.merged >= m.to
}

// term appends a term's postings to its last block, and to new ones when that is full.
func (m *mergeJob) term(c *conn, p *progress, term string) error {
	list := m.tail.lists[m.tail.slots[term]]
	b, err := lastBlock(c, m.owner, term)
	if err != nil {
		return err
	}
	if b.total > 0 && uint32(b.last) >= list[0].Doc {
		return fmt.Errorf("the postings of %q reach to document %d, and %d is to be added: the index is damaged", term, b.last, list[0].Doc)
	}
	for len(list) > 0 {
		list = b.fill(list)
		if err := b.save(c, p, m.owner, term); err != nil {
			return err
		}
		b = block{total: b.total}
	}
	return nil
}

// block is a row of postings under work.
type block struct {
	first, last, total int64
	data               []byte
	was                int // bytes that are stored
	changed            bool
}

func lastBlock(c *conn, owner int64, term string) (b block, err error) {
	r, err := c.one(sqlBlockLast, owner, term)
	if err != nil || r == nil {
		return b, err
	}
	b = block{first: r.int(0), last: r.int(1), total: r.int(2), data: r.blob(3)}
	b.was = len(b.data)
	return b, nil
}

// fill appends postings while there is room and returns the others.
func (b *block) fill(list []store.Posting) []store.Posting {
	for i, p := range list {
		if len(b.data) >= blockBytes {
			return list[i:]
		}
		if b.first == 0 {
			b.first, b.last = int64(p.Doc), int64(p.Doc)
		}
		b.data = appendPosting(b.data, uint32(b.last), p)
		b.last = int64(p.Doc)
		b.total++
		b.changed = true
	}
	return nil
}

func (b *block) save(c *conn, p *progress, owner int64, term string) error {
	if !b.changed {
		return nil
	}
	p.bytes += int64(len(b.data) - b.was)
	if b.was > 0 {
		_, err := c.exec(sqlPostingsSet, b.last, b.total, b.data, owner, term, b.first)
		return err
	}
	p.blocks++
	_, err := c.exec(sqlPostingsNew, owner, term, b.first, b.last, b.total, b.data)
	return err
}
