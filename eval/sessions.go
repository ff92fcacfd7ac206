package eval

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"memgpt/tool"
)

// sessionDepths are the depths at which sessions are measured (LongMemEval reports 5 and 10).
var sessionDepths = [...]int{1, 5, 10, 20}

// rankDepth is how many turns a search brings of which the sessions are ranked.
const rankDepth = 200

// rankSessions searches once with the question's words and ranks the sessions by their best turn. It notes the ranks of
// those with evidence.
func (l *loader) rankSessions(ctx context.Context, q *Question, rec *Record) error {
	session := make(map[string]string, len(l.c.Lines))
	for _, line := range l.c.Lines {
		session[line.ID] = line.Session
	}
	gold := map[string]bool{}
	for _, g := range q.Gold {
		gold[session[g.ID]] = true
	}
	now := func() time.Time { return l.askedAt(q) }
	s, err := l.searcher(l.store, now, "floor")
	if err != nil {
		return err
	}
	hits, err := s.Search(ctx, tool.Query{Owner: l.agent.ID, Text: q.Text, Size: rankDepth, Now: now()})
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, h := range hits.List {
		id := session[h.ID]
		if seen[id] {
			continue
		}
		seen[id] = true
		if gold[id] {
			rec.Ranks = append(rec.Ranks, len(seen))
		}
	}
	rec.RankedGold = len(slices.Collect(maps.Keys(gold)))
	return nil
}

// sessionRecall is the mean share of the sessions with evidence among the first k, and sessionNDCG the mean normalised
// discounted cumulative gain there (Järvelin and Kekäläinen 2002, a session has evidence or not), in per cent by depth.
func sessionRecall(records []Record) (recall, ndcg map[string]float64) {
	recall, ndcg = map[string]float64{}, map[string]float64{}
	for _, k := range sessionDepths {
		var r, g mean
		for i := range records {
			rec := &records[i]
			if rec.RankedGold == 0 {
				continue
			}
			found, gain, best := 0, 0.0, 0.0
			for _, at := range rec.Ranks {
				if at <= k {
					found++
					gain += discount(at)
				}
			}
			for at := 1; at <= min(k, rec.RankedGold); at++ {
				best += discount(at)
			}
			r.add(ratio(found, rec.RankedGold))
			g.add(gain / best)
		}
		if r.n > 0 {
			recall[strconv.Itoa(k)], ndcg[strconv.Itoa(k)] = r.percent(), g.percent()
		}
	}
	return recall, ndcg
}

func discount(rank int) float64 { return 1 / math.Log2(float64(rank)+1) }
