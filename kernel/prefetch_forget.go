package kernel

import (
	"slices"

	"memgpt"
)

// cutPrefetched returns what is left of what was looked up for a turn, without what is to be forgotten: hits that go, and
// the query, which quotes the message. It reports whether something was taken.
func (p *forgetPlan) cutPrefetched(turn *memgpt.Turn) (*memgpt.Prefetched, bool) {
	if turn.Prefetch == nil {
		return nil, false
	}
	left := *turn.Prefetch
	left.Hits = slices.DeleteFunc(slices.Clone(left.Hits), func(h memgpt.PrefetchHit) bool { return p.traces.ids[h.ID] })
	left.Query = p.traces.cut(left.Query)
	if left.Query != "" && left.Query != forgottenMark && (p.term != nil && p.holds(left.Query) || p.thinned[turn.ID]) {
		left.Query = forgottenMark
	}
	return &left, left.Query != turn.Prefetch.Query || len(left.Hits) < len(turn.Prefetch.Hits)
}
