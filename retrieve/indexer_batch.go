package retrieve

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"memgpt"
	"memgpt/store"
)

// batch is documents that get their vectors together, of one or several owners.
type batch struct {
	most    int // texts that it takes,
	room    int // and their size
	parts   []portion
	texts   []piece
	docs    int // live ones with a text,
	partial int // of them those with more pieces than it took
	size    int // of texts
}

func (b *batch) full() bool { return b.docs >= b.most || b.size >= b.room || len(b.parts) >= b.most }

// portion is what one commit does for an owner: it goes through new documents, or adds to such as it went through.
type portion struct {
	store.Vectors // Through is 0 where it adds
	rests         []store.Rest
	dims          int // of what it adds to; 0 is unknown
	docs          int // that are done with
}

// piece is a text that gets a vector.
type piece struct {
	part, rest int // in batch.parts, and in its rests; rest is -1 for a new document
	doc        int64
	no         int // within the document
	text       string
	size       int
	data       []byte // the vector, packed
}

// Some gives one batch of documents their vectors: of an owner, or where owner is "" of those whose documents are nearly
// done. It returns how many documents are done with, and whether there are more. A text that is longer than a batch gets
// its vectors in several, behind the shorter texts that follow it. Where ctx has a deadline the batch is made small enough,
// by what was seen of the embedder's speed. An error stores nothing and loses nothing. Where another process was faster it
// is no error: then there is more and nothing was done.
func (x *Indexer) Some(ctx context.Context, tenant, owner string) (embedded int, more bool, err error) {
	_, more, err = x.step(ctx, tenant, owner, &embedded)
	return embedded, more, err
}

// step is Some. It also reports whether anything was stored: of a long text that may be no document yet.
func (x *Indexer) step(ctx context.Context, tenant, owner string, embedded *int) (moved, more bool, err error) {
	select {
	case x.token <- struct{}{}:
	case <-ctx.Done():
		return false, true, ctx.Err()
	}
	defer func() { <-x.token }()
	list, err := x.behind(ctx, tenant, owner)
	left := 0
	for _, b := range list {
		left += int(b.Left())
	}
	if left > 0 {
		*embedded, moved, err = x.batch(ctx, list)
	}
	if err == nil && x.cfg.Retire && (!x.swept || *embedded > 0) {
		err = x.sweep(ctx)
	}
	switch {
	case err == nil:
		x.fails = 0
		if *embedded == left {
			x.reported = ""
			x.foresee(ctx)
		}
	case ctx.Err() == nil:
		err = fmt.Errorf("give documents vectors by %s: %w", x.cfg.Embedder.Model(), err)
		x.fails++
		if x.reported != err.Error() {
			x.reported = err.Error()
			x.cfg.Report(err)
		}
	}
	return moved, *embedded < left || err != nil, err
}

// foresee lets the model's prior be kept when all is done, so that no search has to wait for it. Where that fails a search
// tries again.
func (x *Indexer) foresee(ctx context.Context) {
	if !x.foreseen {
		x.foreseen = true
		_, _ = x.priors.of(ctx, x.cfg.Embedder, x.dims)
	}
}

// sweep drops the vectors by other models of owners that have all by this one, whenever they came to have them: the model
// may have been changed and changed back.
func (x *Indexer) sweep(ctx context.Context) error {
	list, err := x.cfg.Store.Superseded(ctx, x.cfg.Embedder.Model())
	if err == nil && len(list) > 0 {
		_, err = x.cfg.Store.Commit(ctx, &store.Commit{Now: x.cfg.Now(), Unembed: list})
	}
	x.swept = err == nil
	return err
}

// behind lists the owners that are to be looked at, the one with the fewest documents to do first.
func (x *Indexer) behind(ctx context.Context, tenant, owner string) ([]store.Backlog, error) {
	if owner == "" {
		return x.cfg.Store.Backlog(ctx, x.cfg.Embedder.Model())
	}
	at, err := x.cfg.Store.Embedded(ctx, tenant, owner)
	if err != nil {
		return nil, err
	}
	meta, err := x.cfg.Store.Meta(ctx, tenant, owner)
	if err != nil {
		return nil, err
	}
	c := at[x.cfg.Embedder.Model()]
	b := store.Backlog{Tenant: tenant, Owner: owner, After: c.Through, Docs: int64(len(meta.Time)), Partial: c.Partial}
	if b.Left() <= 0 {
		return nil, nil
	}
	return []store.Backlog{b}, nil
}

// batch takes documents, new ones first, embeds and stores them, and returns how many are done with. After failures it
// takes fewer, of one owner, each time another one: a document that the embedder can't bear doesn't hold up the rest.
func (x *Indexer) batch(ctx context.Context, list []store.Backlog) (done int, moved bool, err error) {
	b := &batch{}
	b.most, b.room = x.room(ctx)
	if x.fails > 0 {
		at := x.fails % len(list)
		list = list[at : at+1]
		b.room >>= min(x.fails, 20)
	}
	for _, gather := range []func(context.Context, *batch, store.Backlog) error{x.gather, x.gatherRests} {
		for _, o := range list {
			if len(b.parts) > 0 && b.full() {
				break
			}
			if err := gather(ctx, b, o); err != nil {
				return 0, false, err
			}
		}
	}
	start := x.cfg.Now()
	if err := x.embed(ctx, b); err != nil {
		return 0, false, err
	}
	if b.docs > 0 {
		x.ran(b, x.cfg.Now().Sub(start))
	}
	other, err := x.unlike(ctx, b)
	if err != nil {
		return 0, false, err
	}
	if len(other) > 0 {
		return 0, true, x.beginAnew(ctx, other)
	}
	return x.save(ctx, b)
}

// maxAlike bounds the owners that are remembered to have vectors of the right kind.
const maxAlike = 10_000

// unlike names the owners of a batch whose stored vectors have other dimensions than those that were just made: another
// model goes by the same name now. Mixed, none of them could be compared any more.
func (x *Indexer) unlike(ctx context.Context, b *batch) (list []store.OwnerModel, err error) {
	for _, p := range b.parts {
		o := store.OwnerModel{Tenant: p.Tenant, Owner: p.Owner, Model: p.Model}
		if p.dims > 0 && x.dims > 0 && p.dims != x.dims {
			list = append(list, o)
			continue
		}
		if p.After == 0 && p.Through > 0 || x.dims == 0 || x.alike[o] {
			continue
		}
		stored := 0
		for _, after := range []int64{p.After - 1, 0} { // the last document may have none
			err := x.cfg.Store.Vectors(ctx, o.Tenant, o.Owner, o.Model, after, func(v store.Vector) bool {
				stored = len(v.Data) - packedHead
				return false
			})
			if err != nil {
				return nil, unlessConflict(err)
			}
			if stored > 0 {
				break
			}
		}
		if stored > 0 && stored != x.dims {
			list = append(list, o)
			continue
		}
		if len(x.alike) >= maxAlike {
			clear(x.alike)
		}
		x.alike[o] = stored > 0 // without any, the next ones are looked at again
	}
	return list, nil
}

// beginAnew drops vectors that are another model's, so that all are made again.
func (x *Indexer) beginAnew(ctx context.Context, list []store.OwnerModel) error {
	_, err := x.cfg.Store.Commit(ctx, &store.Commit{Now: x.cfg.Now(), Unembed: list})
	if err == nil {
		x.cfg.Report(fmt.Errorf("%s gives vectors of %d dimensions now: the others of %d agents or archives are made anew",
			x.cfg.Embedder.Model(), x.dims, len(list)))
	}
	return err
}

// maxSpan bounds the documents of an owner that one batch goes through, most of them dead.
const maxSpan = 4096

// wordSize is the size of a word, about, for a guess at a text's size before it is read.
const wordSize = 6

// plan says how far a batch goes through an owner's documents, and which of them it wants: those that live, and passages that were
// replaced, which searches as of a time find.
func (x *Indexer) plan(b *batch, o store.Backlog, meta *store.Meta) (through int64, docs []int64) {
	through, size, passage := o.After, b.size, passageKind()
	for n := o.After + 1; n <= min(o.Docs, int64(len(meta.Time)), o.After+maxSpan); n++ {
		if !meta.Dead[n-1] || meta.Kind[n-1] == passage && meta.Length[n-1] > 0 {
			guess := wordSize * int(meta.Length[n-1])
			if held := b.docs + len(docs); held > 0 && (held >= b.most || size+guess > b.room) {
				break
			}
			size += guess
			docs = append(docs, n)
		}
		through = n
	}
	return through, docs
}

// gather adds an owner's next documents to a batch.
func (x *Indexer) gather(ctx context.Context, b *batch, o store.Backlog) error {
	if o.After >= o.Docs {
		return nil
	}
	meta, err := x.cfg.Store.Meta(ctx, o.Tenant, o.Owner)
	if err != nil {
		return err
	}
	through, docs := x.plan(b, o, meta)
	if through == o.After {
		return nil
	}
	texts, err := x.texts(ctx, o, meta, docs)
	if err != nil {
		return err
	}
	p := portion{Vectors: store.Vectors{Tenant: o.Tenant, Owner: o.Owner, Model: x.cfg.Embedder.Model(), After: o.After, Through: through}}
	for i, text := range texts {
		pieces := x.cut(text, 0)
		fit := b.fit(pieces)
		if fit < len(pieces) && len(b.texts) > 0 { // a long text is the first of its batch
			p.Through = docs[i] - 1
			break
		}
		b.take(piece{part: len(b.parts), rest: -1, doc: docs[i]}, pieces, fit)
		if fit < len(pieces) {
			p.Partial = append(p.Partial, docs[i])
		}
	}
	if p.Through > p.After {
		p.docs = int(p.Through-p.After) - len(p.Partial)
		b.parts = append(b.parts, p)
	}
	return nil
}

// cut returns the pieces of a text from one on, none without anything in them.
func (x *Indexer) cut(text string, from int) (pieces []string) {
	for _, t := range x.cfg.Cut(text) {
		if strings.TrimSpace(t) != "" {
			pieces = append(pieces, t)
		}
	}
	return pieces[min(from, len(pieces)):]
}

// fit is how many pieces of a text a batch takes. A text of one piece was planned for; of others the batch takes what it
// has room for, and at least one piece where it has none.
func (b *batch) fit(pieces []string) (n int) {
	if len(pieces) == 1 {
		return 1
	}
	for size := b.size; n < len(pieces); n++ {
		if size += textSize(pieces[n]); size > b.room && (n > 0 || len(b.texts) > 0) {
			break
		}
	}
	return n
}

// take adds the first n pieces of a text to a batch, numbered from that of the first one on.
func (b *batch) take(first piece, pieces []string, n int) {
	for _, t := range pieces[:n] {
		first.text, first.size = t, textSize(t)
		b.texts = append(b.texts, first)
		b.size += first.size
		first.no++
	}
	b.docs += min(n, 1)
	if n < len(pieces) {
		b.partial++
	}
}

// gatherRests adds further pieces of an owner's partial documents to a batch. After failures it begins with another one of
// them each time.
func (x *Indexer) gatherRests(ctx context.Context, b *batch, o store.Backlog) error {
	if o.Partial == 0 {
		return nil
	}
	model := x.cfg.Embedder.Model()
	at, err := x.cfg.Store.Embedded(ctx, o.Tenant, o.Owner) // its version before the texts
	if err != nil {
		return err
	}
	list, err := x.cfg.Store.Partials(ctx, o.Tenant, o.Owner, model, x.cfg.Texts)
	if err != nil || len(list) == 0 {
		return err
	}
	meta, err := x.cfg.Store.Meta(ctx, o.Tenant, o.Owner)
	if err != nil {
		return err
	}
	var docs []int64
	for _, d := range list {
		docs = append(docs, d.Doc)
	}
	texts, err := x.texts(ctx, o, meta, docs)
	if err != nil {
		return err
	}
	p := portion{Vectors: store.Vectors{Tenant: o.Tenant, Owner: o.Owner, Model: model}}
	for i := range list {
		i := (i + x.fails) % len(list)
		d := list[i]
		var pieces []string
		if !meta.Dead[d.Doc-1] {
			pieces = x.cut(texts[i], d.Pieces)
		}
		fit := b.fit(pieces)
		if fit == 0 && len(pieces) > 0 || len(b.texts) > 0 && b.full() {
			break
		}
		b.take(piece{part: len(b.parts), rest: len(p.rests), doc: d.Doc, no: d.Pieces}, pieces, fit)
		r := store.Rest{Tenant: o.Tenant, Owner: o.Owner, Model: model, Doc: d.Doc, Pieces: d.Pieces, Version: at[model].Version, Whole: fit == len(pieces)}
		p.rests = append(p.rests, r)
		if r.Whole {
			p.docs++
		}
		p.dims = max(p.dims, len(d.First)-packedHead)
	}
	if len(p.rests) > 0 {
		b.parts = append(b.parts, p)
	}
	return nil
}

// texts returns the originals of an owner's documents, "" for one that is gone or was deleted.
func (x *Indexer) texts(ctx context.Context, o store.Backlog, meta *store.Meta, docs []int64) ([]string, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	ids, err := x.cfg.Store.DocIDs(ctx, o.Tenant, o.Owner, docs)
	if err != nil {
		return nil, err
	}
	var messages, passages []string
	for i, n := range docs {
		if store.MetaKinds[meta.Kind[n-1]] == memgpt.KindPassage {
			passages = append(passages, ids[i])
		} else {
			messages = append(messages, ids[i])
		}
	}
	said := map[string]string{}
	entries, err := x.cfg.Store.EntriesByID(ctx, o.Tenant, o.Owner, messages)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		said[entries[i].ID] = embedded(&entries[i].Message)
	}
	archive, err := x.cfg.Store.Passages(ctx, o.Tenant, o.Owner, passages)
	if err != nil {
		return nil, err
	}
	for i := range archive {
		if archive[i].Deleted.IsZero() {
			said[archive[i].ID] = archive[i].Text
		}
	}
	texts := make([]string, len(docs))
	for i, id := range ids {
		texts[i] = said[id]
	}
	return texts, nil
}

// embedded is the text of a message that gets a vector: who said it is part of what it means.
func embedded(m *memgpt.Message) string {
	text := m.Said()
	if m.Author == "" || strings.TrimSpace(text) == "" {
		return text
	}
	return m.Author + ": " + text
}

// embed embeds the texts of a batch, those of like length together, since an embedder pads the shorter ones.
func (x *Indexer) embed(ctx context.Context, b *batch) error {
	order := make([]*piece, len(b.texts))
	for i := range b.texts {
		order[i] = &b.texts[i]
	}
	slices.SortStableFunc(order, func(p, q *piece) int { return cmp.Compare(p.size, q.size) })
	for len(order) > 0 {
		n, size := 1, order[0].size
		for n < min(len(order), x.cfg.Texts) && size+order[n].size <= x.cfg.Size {
			size += order[n].size
			n++
		}
		if err := x.embedSome(ctx, order[:n]); err != nil {
			return err
		}
		order = order[n:]
	}
	return nil
}

func (x *Indexer) embedSome(ctx context.Context, list []*piece) error {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.text
	}
	vectors, err := x.cfg.Embedder.Embed(ctx, texts, false)
	if err != nil {
		return err
	}
	dims, err := checkVectors(vectors, len(texts), x.dims)
	if err != nil {
		return err
	}
	x.dims = dims
	for i, p := range list {
		p.data = packVector(vectors[i])
	}
	return nil
}

// checkVectors refuses what an embedder must not answer: n vectors are wanted, of a known dimension if it isn't 0. It
// returns their dimension.
func checkVectors(vectors [][]float32, n, dims int) (int, error) {
	if len(vectors) != n {
		return 0, fmt.Errorf("the embedder gave %d vectors for %d texts", len(vectors), n)
	}
	for _, v := range vectors {
		if dims == 0 {
			dims = len(v)
		}
		if len(v) != dims || dims == 0 {
			return 0, fmt.Errorf("the embedder gave a vector of %d dimensions, want %d", len(v), dims)
		}
		for _, c := range v {
			if f := float64(c); math.IsNaN(f) || math.IsInf(f, 0) {
				return 0, fmt.Errorf("the embedder gave a vector with %v in it", c)
			}
		}
	}
	return dims, nil
}

// save stores a batch in one commit. Where another process was faster with one of the owners, each is tried alone.
func (x *Indexer) save(ctx context.Context, b *batch) (done int, moved bool, err error) {
	for _, p := range b.texts {
		list := &b.parts[p.part].List
		if p.rest >= 0 {
			list = &b.parts[p.part].rests[p.rest].List
		}
		*list = append(*list, store.Vector{Doc: p.doc, Piece: p.no, Data: p.data})
	}
	done, err = x.commit(ctx, b.parts)
	if memgpt.CodeOf(err) != memgpt.CodeConflict || len(b.parts) < 2 {
		return done, err == nil && len(b.parts) > 0, unlessConflict(err)
	}
	for i := range b.parts {
		n, err := x.commit(ctx, b.parts[i:i+1])
		if unlessConflict(err) != nil {
			return done, moved, err
		}
		done, moved = done+n, moved || err == nil
	}
	return done, moved, nil
}

func unlessConflict(err error) error {
	if memgpt.CodeOf(err) == memgpt.CodeConflict {
		return nil
	}
	return err
}

func (x *Indexer) commit(ctx context.Context, parts []portion) (done int, err error) {
	if len(parts) == 0 {
		return 0, nil
	}
	c := &store.Commit{Now: x.cfg.Now()}
	for _, p := range parts {
		if p.Through > 0 {
			c.Vectors = append(c.Vectors, p.Vectors)
		}
		c.Rests = append(c.Rests, p.rests...)
		done += p.docs
	}
	if _, err := x.cfg.Store.Commit(ctx, c); err != nil {
		return 0, err
	}
	x.stored = min(x.stored+1, slowStart)
	return done, nil
}
