package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"memgpt/store"
)

// meta is an owner's meta columns so far. They are only appended to, so that a snapshot of them stays as it is; a column
// in which an element changes is copied first.
type meta struct {
	columns store.Meta
	threads map[string]uint32
	deaths  int64 // how many of the owner's dead are marked in columns.Dead
	text    int64 // bytes of Threads
}

// Sizes in memory: of one doc in all columns; of a thread.
const (
	docBytes    = 8 + 4 + 1 + 1 + 4 + 1
	threadBytes = 64
)

func (m *meta) bytes() int64 {
	return int64(cap(m.columns.Time))*docBytes + int64(len(m.threads))*threadBytes + 2*m.text
}

// metaUnit is how many docs are packed in a row of metas.
const metaUnit = 4096

const (
	sqlMetaDocs = "SELECT kind, role, thread, time, length FROM docs WHERE no BETWEEN ? AND ? ORDER BY no"
	sqlMetas    = "SELECT data FROM metas WHERE no BETWEEN ? AND ? ORDER BY no"
	sqlMetaNew  = "INSERT INTO metas (no, data) VALUES (?, ?)"
	sqlDeadNew  = "SELECT doc FROM dead WHERE no BETWEEN ? AND ? ORDER BY no"
)

// Meta implements store.Index.
func (s *Store) Meta(ctx context.Context, tenant, owner string) (*store.Meta, error) {
	out := &store.Meta{}
	err := s.indexed(ctx, tenant, owner, func(c *conn, m mark, no int64, o *ownerIndex) error {
		if err := o.meta.update(c, no, m); err != nil {
			return err
		}
		*out = o.meta.columns
		return nil
	}, func(*conn, mark, int64) error { return nil })
	return out, err
}

func (m *meta) len() int64 { return int64(len(m.columns.Time)) }

// update reads what came since: whole units where they are packed, forward rows for the rest.
func (m *meta) update(c *conn, owner int64, at mark) error {
	if m.threads == nil {
		m.threads = map[string]uint32{}
		m.grow(int(at.docs))
	}
	if from := m.len(); from%metaUnit == 0 && from < at.packed {
		err := c.each(func(r row) error { return m.unpack(r.blob(0)) }, sqlMetas, rowNo(owner, from/metaUnit),
			rowNo(owner, at.packed/metaUnit-1))
		if err != nil {
			return err
		}
	}
	if from := m.len(); from < at.docs {
		err := c.each(func(r row) error { m.add(docMetaOf(r)); return nil }, sqlMetaDocs, rowNo(owner, from+1), rowNo(owner, at.docs))
		if err != nil {
			return err
		}
	}
	if m.len() != at.docs {
		return fmt.Errorf("%d of %d documents are described: the index is damaged", m.len(), at.docs)
	}
	return m.bury(c, owner, at.deaths)
}

// grow makes room, so that a first load doesn't copy the columns again and again.
func (m *meta) grow(n int) {
	c := &m.columns
	c.Time, c.Length, c.Kind = slices.Grow(c.Time, n), slices.Grow(c.Length, n), slices.Grow(c.Kind, n)
	c.Role, c.Thread, c.Dead = slices.Grow(c.Role, n), slices.Grow(c.Thread, n), slices.Grow(c.Dead, n)
}

// docMeta is one doc's meta.
type docMeta struct {
	time       int64
	length     uint32
	kind, role uint8
	thread     string
}

func docMetaOf(r row) docMeta {
	d := docMeta{store.NoTime, uint32(r.int(4)), uint8(r.int(0)), uint8(r.int(1)), r.text(2)}
	if r[3] != nil {
		d.time = r.int(3)
	}
	return d
}

func (m *meta) add(d docMeta) {
	c := &m.columns
	c.Time = append(c.Time, d.time)
	c.Length = append(c.Length, d.length)
	c.Kind = append(c.Kind, d.kind)
	c.Role = append(c.Role, d.role)
	c.Thread = append(c.Thread, m.thread(d.thread))
	c.Dead = append(c.Dead, false)
}

func (m *meta) thread(id string) uint32 {
	n, ok := m.threads[id]
	if !ok {
		n = uint32(len(m.columns.Threads))
		m.threads[id] = n
		m.columns.Threads = append(m.columns.Threads, id)
		m.text += int64(len(id))
	}
	return n
}

// bury marks those that died since.
func (m *meta) bury(c *conn, owner, deaths int64) error {
	if m.deaths >= deaths {
		return nil
	}
	m.columns.Dead = slices.Clone(m.columns.Dead)
	err := c.each(func(r row) error {
		m.columns.Dead[r.int(0)-1] = true
		return nil
	}, sqlDeadNew, rowNo(owner, m.deaths+1), rowNo(owner, deaths))
	m.deaths = deaths
	return err
}

// packMeta encodes docs: the threads that occur, then a doc at a time: kind and role in one byte, thread, length, and the
// difference in time to the doc before, doubled, with an odd number for none.
func packMeta(docs []docMeta) []byte {
	var threads []string
	slot := map[string]int{}
	for _, d := range docs {
		if _, ok := slot[d.thread]; !ok {
			slot[d.thread] = len(threads)
			threads = append(threads, d.thread)
		}
	}
	out := binary.AppendUvarint(nil, uint64(len(threads)))
	for _, t := range threads {
		out = binary.AppendUvarint(out, uint64(len(t)))
		out = append(out, t...)
	}
	before := int64(0)
	for _, d := range docs {
		out = append(out, d.kind<<4|d.role)
		out = binary.AppendUvarint(out, uint64(slot[d.thread]))
		out = binary.AppendUvarint(out, uint64(d.length))
		if d.time == store.NoTime {
			out = append(out, 1)
			continue
		}
		delta := d.time - before
		out = binary.AppendUvarint(out, (uint64(delta)<<1^uint64(delta>>63))<<1)
		before = d.time
	}
	return out
}

// unpack appends the docs that packMeta encoded.
func (m *meta) unpack(data []byte) error {
	r := reader{data}
	n := r.uvarint()
	if n > uint64(len(data)) {
		return fmt.Errorf("packed meta is damaged")
	}
	threads := make([]uint32, n)
	for i := range threads {
		size := r.uvarint()
		if size > uint64(len(r.data)) {
			return fmt.Errorf("packed meta is damaged")
		}
		threads[i] = m.thread(string(r.data[:size]))
		r.data = r.data[size:]
	}
	c, before := &m.columns, int64(0)
	for len(r.data) > 0 {
		head, slot, length, delta := r.byte(), r.uvarint(), r.uvarint(), r.uvarint()
		if slot >= n {
			return fmt.Errorf("packed meta is damaged")
		}
		time := store.NoTime
		if delta&1 == 0 {
			u := delta >> 1
			before += int64(u>>1) ^ -int64(u&1)
			time = before
		}
		c.Time = append(c.Time, time)
		c.Length = append(c.Length, uint32(length))
		c.Kind = append(c.Kind, head>>4)
		c.Role = append(c.Role, head&15)
		c.Thread = append(c.Thread, threads[slot])
		c.Dead = append(c.Dead, false)
	}
	return nil
}
