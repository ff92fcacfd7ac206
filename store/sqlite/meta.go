package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"memgpt/store"
)

// meta is an owner's meta columns so far. They are only appended to, so that a snapshot of them stays as it is; a column
// in which an element changes is copied first.
type meta struct {
	columns store.Meta
	labels  [labelKinds]labels // of Threads, Authors and Sessions
	deaths  int64              // how many of the owner's dead are marked in columns.Dead
}

// labelKinds is how many columns hold places in a list of texts.
const labelKinds = 3

// labels is the places of the texts in one of those lists.
type labels struct {
	place map[string]uint32
	text  int64 // bytes of the list
}

// Sizes in memory: of one doc in all columns; of a label.
const (
	docBytes   = 8 + 4 + 1 + 1 + 1 + 4*labelKinds
	labelBytes = 64
)

func (m *meta) bytes() int64 {
	sum := int64(cap(m.columns.Time)) * docBytes
	for _, l := range m.labels {
		sum += int64(len(l.place))*labelBytes + 2*l.text
	}
	return sum
}

// metaUnit is how many docs are packed in a row of packs.
const metaUnit = 4096

const (
	sqlMetaDocs = "SELECT kind, role, thread, time, length, author, session FROM docs WHERE no BETWEEN ? AND ? ORDER BY no"
	sqlPacks    = "SELECT data FROM packs WHERE no BETWEEN ? AND ? ORDER BY no"
	sqlPackNew  = "INSERT INTO packs (no, data) VALUES (?, ?)"
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
	if m.columns.Time == nil {
		m.grow(int(at.docs))
	}
	if from := m.len(); from%metaUnit == 0 && from < at.packed {
		err := c.each(func(r row) error { return m.unpack(r.blob(0)) }, sqlPacks, rowNo(owner, from/metaUnit),
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
	c.Role, c.Dead = slices.Grow(c.Role, n), slices.Grow(c.Dead, n)
	c.Thread, c.Author, c.Session = slices.Grow(c.Thread, n), slices.Grow(c.Author, n), slices.Grow(c.Session, n)
}

// docMeta is one doc's meta.
type docMeta struct {
	time       int64
	length     uint32
	kind, role uint8
	labels     [labelKinds]string // thread, author, session
}

func docMetaOf(r row) docMeta {
	d := docMeta{store.NoTime, uint32(r.int(4)), uint8(r.int(0)), uint8(r.int(1)), [labelKinds]string{r.text(2), r.text(5), r.text(6)}}
	if r[3] != nil {
		d.time = r.int(3)
	}
	return d
}

func (m *meta) add(d docMeta) {
	m.addRow(d, m.place(0, d.labels[0]), m.place(1, d.labels[1]), m.place(2, d.labels[2]))
}

func (m *meta) addRow(d docMeta, thread, author, session uint32) {
	c := &m.columns
	c.Time = append(c.Time, d.time)
	c.Length = append(c.Length, d.length)
	c.Kind = append(c.Kind, d.kind)
	c.Role = append(c.Role, d.role)
	c.Dead = append(c.Dead, false)
	c.Thread, c.Author, c.Session = append(c.Thread, thread), append(c.Author, author), append(c.Session, session)
}

// place returns the place of a text in one of the lists, which takes in a new one.
func (m *meta) place(kind int, text string) uint32 {
	list := [labelKinds]*[]string{&m.columns.Threads, &m.columns.Authors, &m.columns.Sessions}[kind]
	l := &m.labels[kind]
	n, ok := l.place[text]
	if !ok {
		if l.place == nil {
			l.place = map[string]uint32{}
		}
		n = uint32(len(*list))
		l.place[text] = n
		*list = append(*list, text)
		l.text += int64(len(text))
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

// packMeta encodes docs: the threads that occur, the authors and the sessions, then a doc at a time: kind and role in one
// byte, its place in each list, length, and the difference in time to the doc before, doubled, with an odd number for none.
func packMeta(docs []docMeta) []byte {
	var out []byte
	var slots [labelKinds]map[string]int
	for kind := range slots {
		var list []string
		slots[kind] = map[string]int{}
		for _, d := range docs {
			if _, ok := slots[kind][d.labels[kind]]; !ok {
				slots[kind][d.labels[kind]] = len(list)
				list = append(list, d.labels[kind])
			}
		}
		out = appendLabels(out, list)
	}
	before := int64(0)
	for _, d := range docs {
		out = append(out, d.kind<<4|d.role)
		for kind, label := range d.labels {
			out = binary.AppendUvarint(out, uint64(slots[kind][label]))
		}
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

func appendLabels(out []byte, list []string) []byte {
	out = binary.AppendUvarint(out, uint64(len(list)))
	for _, text := range list {
		out = binary.AppendUvarint(out, uint64(len(text)))
		out = append(out, text...)
	}
	return out
}

// errPacked says that a unit can't be read.
var errPacked = errors.New("packed meta is damaged")

// unpack appends the docs that packMeta encoded.
func (m *meta) unpack(data []byte) error {
	r := reader{data}
	var places [labelKinds][]uint32
	for kind := range places {
		var err error
		if places[kind], err = m.unpackLabels(&r, kind); err != nil {
			return err
		}
	}
	before := int64(0)
	for len(r.data) > 0 {
		head := r.byte()
		var at [labelKinds]uint32
		for kind := range at {
			slot := r.uvarint()
			if slot >= uint64(len(places[kind])) {
				return errPacked
			}
			at[kind] = places[kind][slot]
		}
		d := docMeta{time: store.NoTime, length: uint32(r.uvarint()), kind: head >> 4, role: head & 15}
		if delta := r.uvarint(); delta&1 == 0 {
			u := delta >> 1
			before += int64(u>>1) ^ -int64(u&1)
			d.time = before
		}
		m.addRow(d, at[0], at[1], at[2])
	}
	return nil
}

// unpackLabels reads a list of a unit and returns the places that its texts have in ours.
func (m *meta) unpackLabels(r *reader, kind int) ([]uint32, error) {
	n := r.uvarint()
	if n > uint64(len(r.data)) {
		return nil, errPacked
	}
	places := make([]uint32, n)
	for i := range places {
		size := r.uvarint()
		if size > uint64(len(r.data)) {
			return nil, errPacked
		}
		places[i] = m.place(kind, string(r.data[:size]))
		r.data = r.data[size:]
	}
	return places, nil
}
