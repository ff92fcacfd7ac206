package retrieve

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// lives are from when to when each of an owner's passages was known, by document less one: what a search as of a time needs, and
// no other. They are read once; later only what is new, and what was taken out of results, is read again.
type lives struct {
	spans []life         // of documents that were looked at
	dead  map[string]int // documents of passages that are out of results, by ID: one that comes back has another document
}

// life is a passage's, in nanoseconds of Unix time.
type life struct {
	known, gone int64
	is, dead    bool // whether there is a passage; whether it was out of results when it was read
}

func (l *lives) bytes() int64 { return int64(24*cap(l.spans) + 128*len(l.dead)) }

// livesModel stands for a model in the key of a shelf's slot: searches of now don't wait for the reading of lives.
const livesModel = "\x00lives"

// nanos is a time as lives keep it. What lies outside of their range is at its end.
func nanos(t time.Time) int64 {
	switch {
	case t.Year() < 1700:
		return math.MinInt64
	case t.Year() > 2200:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// asOf returns meta as it was right before a time: what was not known then is dead, and what was known lives, though it may have
// been replaced since. Its cost is a pass over the owner's documents, and the reading of passages that no such search has
// read.
func (s *Searcher) asOf(ctx context.Context, q tool.Query, meta *store.Meta) (*store.Meta, error) {
	key := shelfKey{q.Tenant, q.Owner, livesModel}
	sl := s.shelf.slot(key)
	defer s.shelf.done(key, sl)
	if sl.lives == nil || len(sl.lives.spans) > len(meta.Time) {
		sl.lives = &lives{dead: map[string]int{}}
	}
	if err := s.readLives(ctx, q, meta, sl.lives); err != nil {
		sl.lives = nil
		return nil, fmt.Errorf("read when passages were known: %w", err)
	}
	then := *meta
	then.Dead = make([]bool, len(meta.Dead))
	at, second := nanos(q.AsOf), q.AsOf.Unix()
	if q.AsOf.Nanosecond() > 0 {
		second++
	}
	passage := passageKind()
	for i, kind := range meta.Kind {
		if kind != passage {
			then.Dead[i] = meta.Dead[i] || meta.Time[i] == store.NoTime || meta.Time[i] >= second
			continue
		}
		l := &sl.lives.spans[i]
		then.Dead[i] = !l.is || l.known >= at || l.gone < at || meta.Length[i] == 0
	}
	return &then, nil
}

// passageKind is the code of passages in store.Meta.
func passageKind() uint8 { return uint8(slices.Index(store.MetaKinds, memgpt.KindPassage)) }

// livesPage is how many passages are read at a time.
const livesPage = 500

// readLives reads the passages that are new, or were taken out of results since they were read.
func (s *Searcher) readLives(ctx context.Context, q tool.Query, meta *store.Meta, l *lives) error {
	passage := passageKind()
	var numbers []int64
	through := len(l.spans)
	l.spans = append(l.spans, make([]life, len(meta.Time)-through)...)
	for i, kind := range meta.Kind {
		if was := &l.spans[i]; kind != passage || i < through && (!was.is || was.dead == meta.Dead[i]) {
			continue
		}
		numbers = append(numbers, int64(i)+1)
		if len(numbers) == livesPage {
			if err := s.readSomeLives(ctx, q, meta, l, numbers); err != nil {
				return err
			}
			numbers = numbers[:0]
		}
	}
	return s.readSomeLives(ctx, q, meta, l, numbers)
}

func (s *Searcher) readSomeLives(ctx context.Context, q tool.Query, meta *store.Meta, l *lives, numbers []int64) error {
	if len(numbers) == 0 {
		return nil
	}
	ids, err := s.index.DocIDs(ctx, q.Tenant, q.Owner, numbers)
	if err != nil {
		return err
	}
	known := make([]string, 0, len(ids))
	for _, id := range ids {
		if id != "" {
			known = append(known, id)
		}
	}
	list, err := s.texts.Passages(ctx, q.Tenant, q.Owner, known)
	if err != nil {
		return err
	}
	byID := make(map[string]*memgpt.Passage, len(list))
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	for k, n := range numbers {
		i, p := int(n)-1, byID[ids[k]]
		l.spans[i] = life{}
		if p != nil { // else it is forgotten
			l.add(i, p, meta.Dead[i])
		}
	}
	return ctx.Err()
}

// add notes the life of a passage. Documents come in ascending order, so an earlier one of the same passage was added before.
func (l *lives) add(i int, p *memgpt.Passage, dead bool) {
	if before, ok := l.dead[p.ID]; ok && before != i {
		l.spans[before] = life{}
		delete(l.dead, p.ID)
	}
	if dead {
		l.dead[p.ID] = i
	}
	span := life{known: nanos(tool.Learned(p)), gone: math.MaxInt64, is: true, dead: dead}
	for _, t := range []time.Time{p.Superseded, p.Deleted} {
		if !t.IsZero() {
			span.gone = min(span.gone, nanos(t))
		}
	}
	if p.SupersededBy != "" && p.Superseded.IsZero() { // nobody knows since when
		span.gone = math.MinInt64
	}
	l.spans[i] = span
}

// shows reports whether a search may show a passage.
func shows(q tool.Query, p *memgpt.Passage) bool {
	if q.AsOf.IsZero() {
		return p.Live()
	}
	return tool.Known(p, q.AsOf)
}
