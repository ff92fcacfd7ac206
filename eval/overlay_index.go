package eval

import (
	"context"
	"math"
	"slices"

	"memgpt"
	"memgpt/store"
)

// overlaidIndex is the index of what an overlay's owner committed: documents with numbers after those of the store
// beneath, and the numbers of those that died.
type overlaidIndex struct {
	first int64 // number of the first of docs
	docs  []store.Doc
	dead  map[int64]bool
	meta  *store.Meta // of both; nil when it must be made anew
}

// index takes the documents of a commit in.
func (x *overlaidIndex) index(ctx context.Context, base store.Store, agent string, c *store.Commit) error {
	if len(c.Docs)+len(c.DeadDocs) == 0 {
		return nil
	}
	if x.first == 0 {
		meta, err := base.Meta(ctx, "", agent)
		if err != nil {
			return err
		}
		x.first, x.dead = int64(len(meta.Time))+1, map[int64]bool{}
	}
	for _, d := range c.Docs {
		if d.Owner != agent {
			return memgpt.Errorf(memgpt.CodeInvalid, "commit beside a loaded memory: %s belongs to another owner", d.ID)
		}
		d.Number = x.first + int64(len(x.docs))
		x.docs = append(x.docs, d)
	}
	for _, ref := range c.DeadDocs {
		numbers, err := x.numbers(ctx, base, ref.Tenant, ref.Owner, []string{ref.ID})
		if err != nil {
			return err
		}
		for _, n := range numbers {
			x.dead[n] = true
		}
	}
	x.meta = nil
	return nil
}

func (x *overlaidIndex) numbers(ctx context.Context, base store.Store, tenant, owner string, ids []string) ([]int64, error) {
	out, err := base.DocNumbers(ctx, tenant, owner, ids)
	for _, d := range x.docs {
		if slices.Contains(ids, d.ID) {
			out = append(out, d.Number)
		}
	}
	return out, err
}

// DocNumbers implements store.Index.
func (o *overlay) DocNumbers(ctx context.Context, tenant, owner string, ids []string) ([]int64, error) {
	return o.numbers(ctx, o.Store, tenant, owner, ids)
}

// DocIDs implements store.Index.
func (o *overlay) DocIDs(ctx context.Context, tenant, owner string, numbers []int64) ([]string, error) {
	beneath := slices.DeleteFunc(slices.Clone(numbers), o.own)
	ids, err := o.Store.DocIDs(ctx, tenant, owner, beneath)
	if err != nil || len(ids) != len(beneath) {
		return ids, err
	}
	out := make([]string, 0, len(numbers))
	for _, n := range numbers {
		switch {
		case !o.own(n):
			out, ids = append(out, ids[0]), ids[1:]
		case n-o.first < int64(len(o.docs)):
			out = append(out, o.docs[n-o.first].ID)
		default:
			out = append(out, "")
		}
	}
	return out, nil
}

// occurrences is how often a document holds a term.
func occurrences(d *store.Doc, term string) uint32 {
	for _, t := range d.Terms {
		if t.Term == term {
			return uint32(t.N)
		}
	}
	return 0
}

func (x *overlaidIndex) own(number int64) bool { return x.first > 0 && number >= x.first }

// Stats implements store.Index.
func (o *overlay) Stats(ctx context.Context, tenant, owner string, terms []string) (store.Stats, error) {
	s, err := o.Store.Stats(ctx, tenant, owner, terms)
	if err != nil || len(o.docs)+len(o.dead) == 0 {
		return s, err
	}
	meta, err := o.Meta(ctx, tenant, owner)
	if err != nil {
		return s, err
	}
	df := make(map[string]int, len(terms))
	for _, term := range terms {
		df[term] = s.DF[term]
		for i := range o.docs {
			if occurrences(&o.docs[i], term) > 0 {
				df[term]++
			}
		}
	}
	s = store.Stats{DF: df}
	for i, dead := range meta.Dead {
		if !dead {
			s.Docs++
			s.Length += int64(meta.Length[i])
		}
	}
	return s, nil
}

// Postings implements store.Index.
func (o *overlay) Postings(ctx context.Context, tenant, owner, term string, yield func(block []store.Posting) bool) error {
	more := true
	err := o.Store.Postings(ctx, tenant, owner, term, func(block []store.Posting) bool {
		more = yield(block)
		return more
	})
	if err != nil || !more {
		return err
	}
	var block []store.Posting
	for i := range o.docs {
		if n := occurrences(&o.docs[i], term); n > 0 {
			block = append(block, store.Posting{Doc: uint32(o.docs[i].Number), N: n})
		}
	}
	if len(block) > 0 {
		yield(block)
	}
	return nil
}

// Meta implements store.Index.
func (o *overlay) Meta(ctx context.Context, tenant, owner string) (*store.Meta, error) {
	base, err := o.Store.Meta(ctx, tenant, owner)
	if err != nil || len(o.docs)+len(o.dead) == 0 {
		return base, err
	}
	if o.meta == nil {
		o.meta = o.merge(base)
	}
	return o.meta, nil
}

// merge returns what is known of the documents of both.
func (x *overlaidIndex) merge(base *store.Meta) *store.Meta {
	m := &store.Meta{Time: slices.Clone(base.Time), Length: slices.Clone(base.Length), Kind: slices.Clone(base.Kind),
		Role: slices.Clone(base.Role), Dead: slices.Clone(base.Dead), Thread: slices.Clone(base.Thread), Author: slices.Clone(base.Author),
		Session: slices.Clone(base.Session), Threads: slices.Clone(base.Threads), Authors: slices.Clone(base.Authors),
		Sessions: slices.Clone(base.Sessions)}
	for i := range x.docs {
		d := &x.docs[i]
		at := store.NoTime
		if !d.Time.IsZero() {
			at = d.Time.Unix()
		}
		m.Time, m.Length = append(m.Time, at), append(m.Length, uint32(min(d.Length, math.MaxUint32)))
		m.Kind = append(m.Kind, uint8(slices.Index(store.MetaKinds, d.Kind)))
		m.Role = append(m.Role, uint8(slices.Index(store.MetaRoles, d.Role)))
		m.Dead = append(m.Dead, false)
		m.Thread = append(m.Thread, place(&m.Threads, d.Thread))
		m.Author = append(m.Author, place(&m.Authors, d.Author))
		m.Session = append(m.Session, place(&m.Sessions, d.Session))
	}
	for n := range x.dead {
		m.Dead[n-1] = true
	}
	return m
}

// place returns the place of a name in a list, which takes in a new one.
func place(list *[]string, name string) uint32 {
	i := slices.Index(*list, name)
	if i < 0 {
		i = len(*list)
		*list = append(*list, name)
	}
	return uint32(i)
}
