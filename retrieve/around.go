package retrieve

import (
	"context"

	"memgpt"
	"memgpt/store"
	"memgpt/tool"
)

// maxContext bounds the turns around a hit on each side.
const maxContext = 20

// addContext gives each hit on a message the turns of its conversation that stand beside it. Docs are the hits'.
func (s *Searcher) addContext(ctx context.Context, owned owners, docs []found, hits []tool.Hit) error {
	k := min(owned[0].Context, maxContext)
	if k <= 0 {
		return nil
	}
	var list []found
	counts := make([][2]int, len(docs))
	for n, d := range docs {
		meta := owned[d.owner].meta
		before, after := beside(meta, d.doc, -1, k), beside(meta, d.doc, 1, k)
		for i := len(before) - 1; i >= 0; i-- {
			list = append(list, found{doc: before[i], owner: d.owner})
		}
		for _, doc := range after {
			list = append(list, found{doc: doc, owner: d.owner})
		}
		counts[n] = [2]int{len(before), len(after)}
	}
	texts, err := s.originalsOnce(ctx, owned, list)
	if err != nil {
		return err
	}
	for n, c := range counts {
		hits[n].Before = present(texts[:c[0]])
		hits[n].After = present(texts[c[0] : c[0]+c[1]])
		texts = texts[c[0]+c[1]:]
	}
	return nil
}

// originalsOnce is originalsOf for a list in which documents may stand twice.
func (s *Searcher) originalsOnce(ctx context.Context, owned owners, docs []found) ([]*tool.Hit, error) {
	place := map[found]int{} // none has a score
	var once []found
	for _, d := range docs {
		if _, ok := place[d]; !ok {
			place[d] = len(once)
			once = append(once, d)
		}
	}
	texts, err := s.originalsOf(ctx, owned, once)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	out := make([]*tool.Hit, len(docs))
	for i, d := range docs {
		out[i] = texts[place[d]]
	}
	return out, nil
}

func present(list []*tool.Hit) []tool.Hit {
	var out []tool.Hit
	for _, h := range list {
		if h != nil {
			out = append(out, *h)
		}
	}
	return out
}

// beside returns up to k messages of the document's conversation in a direction, the nearest first.
func beside(meta *store.Meta, doc, step, k int) []int {
	var list []int
	if store.MetaKinds[meta.Kind[doc]] != memgpt.KindMessage {
		return nil
	}
	for i := doc + step; i >= 0 && i < len(meta.Thread) && len(list) < k; i += step {
		if meta.Thread[i] == meta.Thread[doc] && !meta.Dead[i] && store.MetaKinds[meta.Kind[i]] == memgpt.KindMessage {
			list = append(list, i)
		}
	}
	return list
}
