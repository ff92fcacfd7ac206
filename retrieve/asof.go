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
	through int // documents that were looked at
	spans   map[int]life
	dead    map[string]int // documents of passages that are out of results, by ID: one that comes back has another document
}

// life is a passage's, in nanoseconds of Unix time.
type life struct {
	known, gone int64
	dead        bool // when it was read
}

func (l *lives) bytes() int64 { return int64(64*len(l.spans) + 128*len(l.dead)) }

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
	key := shelfKey{q.Tenant, q.Owner, ""}
	sl := s.shelf.slot(key)
	defer s.shelf.done(key, sl)
	if sl.lives == nil || sl.lives.through > len(meta.Time) {
		sl.lives = &lives{spans: map[int]life{}, dead: map[string]int{}}
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
		l, ok := sl.lives.spans[i]
		then.Dead[i] = !ok || l.known >= at || l.gone < at || meta.Length[i] == 0
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
	for i, kind := range meta.Kind {
		if kind != passage {
			continue
		}
		was, ok := l.spans[i]
		if i < l.through && (!ok || was.dead == meta.Dead[i]) {
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
	if err := s.readSomeLives(ctx, q, meta, l, numbers); err != nil {
		return err
	}
	l.through = len(meta.Time)
	return nil
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
	current, err := s.index.DocNumbers(ctx, q.Tenant, q.Owner, known)
	if err != nil {
		return err
	}
	slices.Sort(current)
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
		delete(l.spans, i)
		if _, ok := slices.BinarySearch(current, n); !ok || p == nil {
			continue // forgotten, or an earlier document of a passage that came back
		}
		l.add(i, p, meta.Dead[i])
	}
	return ctx.Err()
}

// add notes the life of a passage.
func (l *lives) add(i int, p *memgpt.Passage, dead bool) {
	if before, ok := l.dead[p.ID]; ok && before != i {
		delete(l.spans, before)
		delete(l.dead, p.ID)
	}
	if dead {
		l.dead[p.ID] = i
	}
	span := life{known: nanos(tool.Learned(p)), gone: math.MaxInt64, dead: dead}
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
