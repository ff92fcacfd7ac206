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
	room  int // size of what it takes
	parts []portion
	texts []piece
	docs  int // live ones with a text
	size  int // of texts
}

// portion is what one commit does for an owner.
type portion struct {
	store.Vectors
	retired []store.OwnerModel
	docs    int // its cursor moves on by
}

// piece is a text that gets a vector.
type piece struct {
	part int // in batch.parts
	doc  int64
	no   int // within the document
	text string
	size int
	data []byte // the vector, packed
}

// Some gives one batch of documents their vectors: of an owner, or where owner is "" of those whose documents are nearly
// done. It returns how many documents are done with, and whether there are more. Where ctx has a deadline the batch is
// made small enough, by what was seen of the embedder's speed. An error stores nothing and loses nothing. Where another
// process was faster it is no error: then there is more and nothing was done.
func (x *Indexer) Some(ctx context.Context, tenant, owner string) (embedded int, more bool, err error) {
	select {
	case x.token <- struct{}{}:
	case <-ctx.Done():
		return 0, true, ctx.Err()
	}
	defer func() { <-x.token }()
	list, err := x.behind(ctx, tenant, owner)
	left := 0
	for _, b := range list {
		left += int(b.Docs - b.After)
	}
	if left > 0 {
		embedded, err = x.batch(ctx, list)
	}
	switch {
	case err == nil:
		x.fails = 0
		if embedded == left {
			x.reported = ""
		}
	case ctx.Err() == nil:
		err = fmt.Errorf("give documents vectors by %s: %w", x.cfg.Embedder.Model(), err)
		x.fails++
		if x.reported != err.Error() {
			x.reported = err.Error()
			x.cfg.Report(err)
		}
	}
	return embedded, embedded < left || err != nil, err
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
	b := store.Backlog{Tenant: tenant, Owner: owner, After: at[x.cfg.Embedder.Model()], Docs: int64(len(meta.Time))}
	if b.After >= b.Docs {
		return nil, nil
	}
	return []store.Backlog{b}, nil
}

// batch takes documents, embeds and stores them, and returns how many are done with. After failures it takes fewer, of one
// owner, each time another one: a document that the embedder can't bear doesn't hold up the rest.
func (x *Indexer) batch(ctx context.Context, list []store.Backlog) (int, error) {
	b := &batch{room: x.room(ctx)}
	if x.fails > 0 {
		at := x.fails % len(list)
		list = list[at : at+1]
		b.room >>= min(x.fails, 20)
	}
	for _, o := range list {
		if len(b.parts) > 0 && (b.docs >= x.cfg.Texts || b.size >= b.room || len(b.parts) >= x.cfg.Texts) {
			break
		}
		if err := x.gather(ctx, b, o); err != nil {
			return 0, err
		}
	}
	start := x.cfg.Now()
	if err := x.embed(ctx, b); err != nil {
		return 0, err
	}
	if b.docs > 0 {
		x.ran(b, x.cfg.Now().Sub(start))
	}
	other, err := x.unlike(ctx, b)
	if err != nil {
		return 0, err
	}
	if len(other) > 0 {
		return 0, x.beginAnew(ctx, other)
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
		if p.After == 0 || x.dims == 0 || x.alike[o] {
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
		x.alike[o] = true
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

// plan says how far a batch goes through an owner's documents, and which of them it wants: those that live.
func (x *Indexer) plan(b *batch, o store.Backlog, meta *store.Meta) (through int64, docs []int64) {
	through, size := o.After, b.size
	for n := o.After + 1; n <= min(o.Docs, int64(len(meta.Time)), o.After+maxSpan); n++ {
		if !meta.Dead[n-1] {
			guess := wordSize * int(meta.Length[n-1])
			if held := b.docs + len(docs); held > 0 && (held >= x.cfg.Texts || size+guess > b.room) {
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
	p := portion{docs: int(through - o.After), Vectors: store.Vectors{Tenant: o.Tenant, Owner: o.Owner, Model: x.cfg.Embedder.Model(),
		After: o.After, Through: through}}
	if through >= o.Docs && x.cfg.Retire {
		if p.retired, err = x.otherModels(ctx, o); err != nil {
			return err
		}
	}
	for i, text := range texts {
		no := 0
		for _, t := range x.cfg.Cut(text) {
			if strings.TrimSpace(t) == "" {
				continue
			}
			size := textSize(t)
			b.texts = append(b.texts, piece{part: len(b.parts), doc: docs[i], no: no, text: t, size: size})
			b.size += size
			no++
		}
		b.docs += min(no, 1)
	}
	b.parts = append(b.parts, p)
	return nil
}

// texts returns the originals of an owner's documents, "" for one that is gone.
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
		said[archive[i].ID] = archive[i].Text
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

// otherModels names an owner's vectors of other models.
func (x *Indexer) otherModels(ctx context.Context, o store.Backlog) (list []store.OwnerModel, err error) {
	models, err := x.cfg.Store.Embedded(ctx, o.Tenant, o.Owner)
	for model := range models {
		if model != x.cfg.Embedder.Model() {
			list = append(list, store.OwnerModel{Tenant: o.Tenant, Owner: o.Owner, Model: model})
		}
	}
	return list, err
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
func (x *Indexer) save(ctx context.Context, b *batch) (done int, err error) {
	for _, p := range b.texts {
		list := &b.parts[p.part].List
		*list = append(*list, store.Vector{Doc: p.doc, Piece: p.no, Data: p.data})
	}
	done, err = x.commit(ctx, b.parts)
	if memgpt.CodeOf(err) != memgpt.CodeConflict || len(b.parts) < 2 {
		return done, unlessConflict(err)
	}
	for i := range b.parts {
		n, err := x.commit(ctx, b.parts[i:i+1])
		if unlessConflict(err) != nil {
			return done, err
		}
		done += n
	}
	return done, nil
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
		c.Vectors = append(c.Vectors, p.Vectors)
		c.Unembed = append(c.Unembed, p.retired...)
		done += p.docs
	}
	if _, err := x.cfg.Store.Commit(ctx, c); err != nil {
		return 0, err
	}
	return done, nil
}
