package sqlite

import (
	"slices"

	"memgpt/store"
)

// docErasure is what is to be erased of one owner's documents: those with the ids, or with the numbers.
type docErasure struct {
	owner   *ownerState
	ids     map[string]*store.Doc // packed; what stays of them
	numbers map[int64]bool

	postings map[string][]store.Posting // by term: documents, ascending, with the occurrences that stay
	changes  []docChange                // ascending
}

// docChange says by how much a document shrank.
type docChange struct {
	number, length, bytes int64
	stays                 bool // with a part of its text
}

func (w *eraser) docs() error {
	byOwner := map[*ownerState]*docErasure{}
	var order []*docErasure
	for i := range w.e.Docs {
		d := &w.e.Docs[i]
		o, err := w.owner(name{d.Tenant, d.Owner})
		if err != nil {
			return err
		}
		if byOwner[o] == nil {
			byOwner[o] = &docErasure{owner: o, ids: map[string]*store.Doc{}}
			order = append(order, byOwner[o])
		}
		byOwner[o].ids[string(packID(d.ID))] = d
	}
	for _, d := range order {
		if err := w.eraseDocs(d); err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlDocsAll    = "SELECT no, id FROM docs WHERE no BETWEEN ? AND ? ORDER BY no"
	sqlDocRow     = "SELECT length, dead, terms FROM docs WHERE no = ?"
	sqlDocGone    = "UPDATE docs SET id = x'', author = '', session = '', terms = ? WHERE no = ?"
	sqlDocThinned = "UPDATE docs SET length = ?, terms = ? WHERE no = ?"
	sqlIDNoDoc    = "UPDATE ids SET doc = NULL WHERE owner = ? AND id = ? AND doc = ?"
	sqlIDUnused   = "DELETE FROM ids WHERE owner = ? AND id = ? AND entry IS NULL AND passage IS NULL AND doc IS NULL"
	sqlDocSums    = "UPDATE docs SET sum_length = sum_length - ?, sum_bytes = sum_bytes - ? WHERE no BETWEEN ? AND ?"
	sqlErased     = `UPDATE owners SET erased = erased + 1, blocks = blocks + ?, block_bytes = block_bytes + ?, merge_term = ? WHERE no = ?`
)

// eraseDocs erases documents from forward rows, postings, packed meta and vectors.
func (w *eraser) eraseDocs(d *docErasure) error {
	d.postings = map[string][]store.Posting{}
	if err := w.findDocs(d); err != nil || len(d.changes) == 0 {
		return err
	}
	w.erased[d.owner.no] = true
	if err := w.moveSums(d); err != nil {
		return err
	}
	var p progress
	for term, list := range d.postings {
		if err := w.thinTerm(&p, d.owner.no, term, list); err != nil {
			return err
		}
	}
	border, err := w.mergeBorder(d)
	if err != nil {
		return err
	}
	if _, err := w.c.exec(sqlErased, p.blocks, p.bytes, border, d.owner.no); err != nil {
		return err
	}
	if err := w.repack(d); err != nil {
		return err
	}
	return w.eraseVectors(d)
}

// findDocs finds the documents, earlier ones of the same ids among them, and empties their rows.
func (w *eraser) findDocs(d *docErasure) error {
	type found struct {
		number int64
		id     string
	}
	var list []found
	lo := rowNo(d.owner.no, 0)
	err := w.c.each(func(r row) error {
		n, id := posOf(r.int(0)), string(r.blob(1))
		if d.numbers[n] || d.ids[id] != nil {
			list = append(list, found{n, id})
		}
		return nil
	}, sqlDocsAll, lo, lo|maxPos)
	if err != nil {
		return err
	}
	for _, f := range list {
		if err := w.thinDoc(d, f.number, f.id, d.ids[f.id]); err != nil {
			return err
		}
	}
	return nil
}

// thinDoc takes from a document the terms that are not in keep, and notes what that means to the rest of the index.
func (w *eraser) thinDoc(d *docErasure, number int64, id string, keep *store.Doc) error {
	no := rowNo(d.owner.no, number)
	r, err := w.c.one(sqlDocRow, no)
	if err != nil {
		return err
	}
	length, dead, old := r.int(0), r.int(1) != 0, r.blob(2)
	left := map[string]int{}
	if keep != nil && !dead {
		for _, t := range keep.Terms {
			left[t.Term] += t.N
		}
	}
	var rest []store.TermCount
	err = eachTerm(old, func(term []byte, n uint32) {
		stays := min(uint32(left[string(term)]), n)
		if stays < n {
			d.postings[string(term)] = append(d.postings[string(term)], store.Posting{Doc: uint32(number), N: stays})
		}
		rest = append(rest, store.TermCount{Term: string(term), N: int(stays)})
	})
	if err != nil {
		return err
	}
	terms := packTerms(rest)
	change := docChange{number: number, bytes: int64(len(old) - len(terms))}
	if change.stays = len(left) > 0; change.stays {
		change.length = max(length-int64(keep.Length), 0)
		_, err = w.c.exec(sqlDocThinned, length-change.length, terms, no)
	} else {
		err = w.emptyDoc(d, number, id, terms)
	}
	d.changes = append(d.changes, change)
	return err
}

// emptyDoc takes a document out of results. Its row stays, since documents are numbered without gaps.
func (w *eraser) emptyDoc(d *docErasure, number int64, id string, terms []byte) error {
	if err := w.kill(d.owner, number); err != nil {
		return err
	}
	if _, err := w.c.exec(sqlDocGone, terms, rowNo(d.owner.no, number)); err != nil {
		return err
	}
	if _, err := w.c.exec(sqlIDNoDoc, d.owner.no, []byte(id), number); err != nil {
		return err
	}
	_, err := w.c.exec(sqlIDUnused, d.owner.no, []byte(id))
	return err
}

// moveSums brings the sums of the rows from each changed document on up to date.
func (w *eraser) moveSums(d *docErasure) error {
	var length, bytes int64
	for i, c := range d.changes {
		length, bytes = length+c.length, bytes+c.bytes
		last := int64(maxPos)
		if i+1 < len(d.changes) {
			last = d.changes[i+1].number - 1
		}
		if _, err := w.c.exec(sqlDocSums, length, bytes, rowNo(d.owner.no, c.number), rowNo(d.owner.no, last)); err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlTermBlocks = "SELECT first, last, total, data FROM postings WHERE owner = ? AND term = ? ORDER BY first"
	sqlBlockGone  = "DELETE FROM postings WHERE owner = ? AND term = ? AND first = ?"
)

// thinTerm takes postings out of a term's blocks, or lowers them. Those that are not merged yet are in no block.
func (w *eraser) thinTerm(p *progress, owner int64, term string, list []store.Posting) error {
	var blocks []block
	err := w.c.each(func(r row) error {
		b := block{first: r.int(0), last: r.int(1), total: r.int(2), data: slices.Clone(r.blob(3))}
		b.was = len(b.data)
		blocks = append(blocks, b)
		return nil
	}, sqlTermBlocks, owner, term)
	if err != nil {
		return err
	}
	removed := int64(0)
	for _, b := range blocks {
		n := 0
		for n < len(list) && int64(list[n].Doc) <= b.last {
			n++
		}
		thinned, gone := b.thin(list[:n])
		list = list[n:]
		removed += gone
		if gone == 0 && removed == 0 && n == 0 {
			continue
		}
		thinned.total = b.total - removed
		if err := w.replaceBlock(p, owner, term, b, thinned); err != nil {
			return err
		}
	}
	return nil
}

// thin returns a block with the changes made, and how many postings it lost.
func (b block) thin(list []store.Posting) (out block, gone int64) {
	stays := map[uint32]uint32{}
	for _, p := range list {
		stays[p.Doc] = p.N
	}
	for _, p := range appendPostings(nil, uint32(b.first), b.data) {
		if n, changed := stays[p.Doc]; changed {
			if p.N = n; n == 0 {
				gone++
				continue
			}
		}
		if out.first == 0 {
			out.first, out.last = int64(p.Doc), int64(p.Doc)
		}
		out.data = appendPosting(out.data, uint32(out.last), p)
		out.last = int64(p.Doc)
	}
	return out, gone
}

func (w *eraser) replaceBlock(p *progress, owner int64, term string, old, b block) error {
	if _, err := w.c.exec(sqlBlockGone, owner, term, old.first); err != nil {
		return err
	}
	p.bytes += int64(len(b.data) - old.was)
	if len(b.data) == 0 {
		p.blocks--
		return nil
	}
	_, err := w.c.exec(sqlPostingsNew, owner, term, b.first, b.last, b.total, b.data)
	return err
}

// mergeBorder returns the term before which a merge under way is done. A term that stands nowhere any more is none to
// keep, and the next one that is still to do says the same.
func (w *eraser) mergeBorder(d *docErasure) (string, error) {
	m, err := readMark(w.c, d.owner.no)
	if err != nil || len(d.postings[m.mergeTerm]) == 0 {
		return m.mergeTerm, err
	}
	next := "\U0010ffff" // after all terms
	err = w.c.each(func(r row) error {
		return eachTerm(r.blob(1), func(term []byte, _ uint32) {
			if t := string(term); t >= m.mergeTerm && t < next {
				next = t
			}
		})
	}, sqlForward, rowNo(d.owner.no, m.merged+1), rowNo(d.owner.no, m.mergeTo))
	return next, err
}

const sqlPackSet = "UPDATE packs SET data = ? WHERE no = ?"

// repack packs the units of meta anew that describe changed documents.
func (w *eraser) repack(d *docErasure) error {
	m, err := readMark(w.c, d.owner.no)
	if err != nil {
		return err
	}
	done := int64(-1)
	for _, c := range d.changes {
		unit := (c.number - 1) / metaUnit
		if unit == done || (unit+1)*metaUnit > m.packed {
			continue
		}
		done = unit
		docs := make([]docMeta, 0, metaUnit)
		err := w.c.each(func(r row) error { docs = append(docs, docMetaOf(r)); return nil }, sqlMetaDocs,
			rowNo(d.owner.no, unit*metaUnit+1), rowNo(d.owner.no, (unit+1)*metaUnit))
		if err != nil {
			return err
		}
		if _, err := w.c.exec(sqlPackSet, packMeta(docs), rowNo(d.owner.no, unit)); err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlSetsOf     = "SELECT no FROM sets WHERE owner = ?"
	sqlSetAt      = "SELECT through FROM sets WHERE no = ?"
	sqlVectorDel  = "DELETE FROM vectors WHERE no = ?"
	sqlVectorsDel = "DELETE FROM vectors WHERE no BETWEEN ? AND ?"
	sqlDroppedAll = "SELECT no FROM dropped"
	sqlErasedIn   = "SELECT no FROM docs WHERE no BETWEEN ? AND ? AND id = x''"
)

// eraseVectors erases the vectors of the documents; those of which a part stays get others later. The cursor moves back by
// one and has a new version: whoever embeds just now may have read what is gone, and his commit is refused; and who keeps
// vectors in memory sees that they are not what they were.
func (w *eraser) eraseVectors(d *docErasure) error {
	sets, err := w.numbers(sqlSetsOf, d.owner.no)
	if err != nil {
		return err
	}
	for _, set := range sets {
		r, err := w.c.one(sqlSetAt, set)
		if err != nil {
			return err
		}
		through, gone := r.int(0), map[int64]bool{}
		for _, c := range d.changes {
			gone[c.number] = true
		}
		if through > 0 {
			gone[through] = true
			if _, err := w.c.exec(sqlSetMove, through-1, set); err != nil {
				return err
			}
		}
		if _, err := w.c.exec(sqlSetChanged, set); err != nil {
			return err
		}
		if err := w.dropVectors(set, gone); err != nil {
			return err
		}
		if err := w.restartPartials(set, through-1, gone, d.changes); err != nil {
			return err
		}
	}
	return nil
}

// restartPartials takes the pieces of partial docs away, and makes docs up to the cursor that stay in part partial.
func (w *eraser) restartPartials(set, through int64, gone map[int64]bool, changes []docChange) error {
	for doc := range gone {
		if _, err := w.c.exec(sqlPartialDel, rowNo(set, doc)); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if c.stays && c.number <= through {
			if err := w.setPartial(set, c.number, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropVectors takes the vectors of documents out of the rows of a set.
func (w *eraser) dropVectors(set int64, gone map[int64]bool) error {
	rows := map[int64]codedVectors{}
	for doc := range gone {
		r, err := w.c.one(sqlVectors, rowNo(set, doc), rowNo(set, maxPos), 1)
		if err != nil {
			return err
		}
		if r != nil {
			rows[r.int(0)] = codedVectors{posOf(r.int(0)), slices.Clone(r.blob(1))}
		}
	}
	for no, row := range rows {
		left, err := row.without(gone)
		if err != nil {
			return err
		}
		if len(left) == 1 && left[0].doc == row.doc && len(left[0].data) == len(row.data) {
			continue
		}
		if _, err := w.c.exec(sqlVectorDel, no); err != nil {
			return err
		}
		for _, l := range left {
			if _, err := w.c.exec(sqlVectorNew, rowNo(set, l.doc), l.data); err != nil {
				return err
			}
		}
	}
	return nil
}

// without returns the rows that stay of a row.
func (row codedVectors) without(gone map[int64]bool) ([]codedVectors, error) {
	var list []store.Vector
	err := eachVector(row, func(v store.Vector) bool {
		if !gone[v.Doc] {
			list = append(list, v)
		}
		return true
	})
	return packVectors(list), err
}

// withoutErased leaves out the vectors of documents that were erased while somebody embedded them.
func (w *work) withoutErased(o *ownerState, v *store.Vectors, rows []codedVectors) ([]codedVectors, error) {
	gone := map[int64]bool{}
	err := w.c.each(func(r row) error { gone[posOf(r.int(0))] = true; return nil }, sqlErasedIn,
		rowNo(o.no, v.After+1), rowNo(o.no, v.Through))
	if err != nil || len(gone) == 0 {
		return rows, err
	}
	var out []codedVectors
	for _, r := range rows {
		left, err := r.without(gone)
		if err != nil {
			return nil, err
		}
		out = append(out, left...)
	}
	return out, nil
}

// droppedVectors erases all vectors of dropped sets at once: whose they were isn't known any more.
func (w *eraser) droppedVectors() error {
	sets, err := w.numbers(sqlDroppedAll)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if err := w.deleteAll(set, []string{sqlVectorsDel}, []string{sqlDroppedEnd}); err != nil {
			return err
		}
	}
	return nil
}
