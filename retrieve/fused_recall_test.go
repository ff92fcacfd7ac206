package retrieve_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memgpt/retrieve"
	"memgpt/tool"
)

// fusedRecall is what is measured: questions of one file over the documents of another, or of the same.
type fusedRecall struct {
	file, docs string
	pooled     bool       // all lines in one store
	want       [4]float64 // the least at 1/5/10/20; 0 is not held
}

var fusedRecalls = []fusedRecall{
	{file: "locomo_a", want: [4]float64{0, 70, 80, 86}}, {file: "longmemeval_sessions", want: [4]float64{0, 64, 79, 89}},
	{file: "madial_zh", want: [4]float64{0, 51, 61, 72}}, {file: "dmr_a", pooled: true, want: [4]float64{0, 31, 38, 46}},
	{file: "letta_facts", want: [4]float64{0, 98}}, {file: "xquad_en", want: [4]float64{0, 98.5}}, {file: "cmrc_zh", want: [4]float64{0, 99}},
	{file: "xquad_en", docs: "xquad_es", want: [4]float64{0, 93}}, {file: "xquad_en", docs: "xquad_hi", want: [4]float64{0, 93}},
	{file: "memdaily_zh_a", want: [4]float64{0, 96}}, {file: "memdaily_zh_a", pooled: true},
}

// TestFusedRecall measures search by words and vectors with the built-in encoder. It runs with MEMGPT_LONG=1; the vectors
// are kept in the user's cache folder, since the first run takes a while. The constants were tuned on every second question:
// both halves are printed. MEMGPT_RECIPE tries other ones: "speaker=2,session=.3;speaker=1.5".
func TestFusedRecall(t *testing.T) {
	if os.Getenv("MEMGPT_LONG") == "" {
		t.Skip("set MEMGPT_LONG=1 to measure recall on the evaluation data")
	}
	dir := sharedData(t)
	c := newEncoder(t)
	for _, f := range fusedRecalls {
		name := f.file
		if f.docs != "" {
			name += " over " + f.docs
		}
		if f.pooled {
			name += ", one store"
		}
		t.Run(name, func(t *testing.T) { f.measure(t, c, f.pools(t, dir)) })
	}
}

func (f fusedRecall) pools(t *testing.T, dir string) []pool {
	pools := readPools(t, filepath.Join(dir, cmp.Or(f.docs, f.file)+".jsonl"))
	if f.docs != "" {
		pools[0].Queries = readPools(t, filepath.Join(dir, f.file+".jsonl"))[0].Queries
	}
	if !f.pooled {
		return pools
	}
	for n, p := range pools { // some sets name the documents of each line alike
		for i := range p.Docs {
			p.Docs[i].ID = strconv.Itoa(n) + " " + p.Docs[i].ID
		}
		for i := range p.Queries {
			for k := range p.Queries[i].Gold {
				p.Queries[i].Gold[k] = strconv.Itoa(n) + " " + p.Queries[i].Gold[k]
			}
		}
		if n > 0 {
			pools[0].Docs = append(pools[0].Docs, p.Docs...)
			pools[0].Queries = append(pools[0].Queries, p.Queries...)
		}
	}
	return pools[:1]
}

func (f fusedRecall) measure(t *testing.T, c *cachedEncoder, pools []pool) {
	var searchers []*retrieve.Searcher
	for _, p := range pools {
		m := indexPool(p)
		var texts []string
		for _, d := range p.Docs {
			texts = append(texts, d.Text)
		}
		m.embed(c, texts)
		s, err := retrieve.New(retrieve.Config{Index: m, Store: m, Embedders: []tool.Embedder{c}})
		if err != nil {
			t.Fatal(err)
		}
		searchers = append(searchers, s)
	}
	for _, set := range strings.Split(os.Getenv("MEMGPT_RECIPE"), ";") {
		halves, all, n := recallByHalves(t, pools, searchers, set)
		t.Logf("%5d questions %s: R@1/5/10/20 %5.1f; every second %5.1f, the others %5.1f", n, set, all, halves[0], halves[1])
		for k := range all {
			if set == "" && all[k] < f.want[k] {
				t.Errorf("R@%d is %.1f, and %.1f is the least", depths[k], all[k], f.want[k])
			}
		}
	}
}

// recallByHalves returns the recall of every second question, that of the others, and that of all.
func recallByHalves(t *testing.T, pools []pool, searchers []*retrieve.Searcher, set string) (half [2][4]float64, all [4]float64, n int) {
	var count [2]int
	for i, p := range pools {
		tune(t, searchers[i], set)
		for j, q := range p.Queries {
			if len(q.Gold) == 0 {
				continue
			}
			now := poolTime(cmp.Or(q.Time, p.Docs[len(p.Docs)-1].Time))
			hits := ask(t, searchers[i], tool.Query{Text: q.Q, Size: 20, Now: now})
			if hits.Model == "" {
				t.Fatal(hits.Words)
			}
			count[j%2]++
			for k, depth := range depths {
				half[j%2][k] += share(hits, q.Gold, depth)
			}
		}
	}
	n = count[0] + count[1]
	for k := range all {
		all[k] = 100 * (half[0][k] + half[1][k]) / float64(n)
		half[0][k] *= 100 / float64(max(count[0], 1))
		half[1][k] *= 100 / float64(max(count[1], 1))
	}
	return half, all, n
}

func tune(t *testing.T, s *retrieve.Searcher, set string) {
	s.Reset()
	for _, change := range strings.Split(set, ",") {
		if name, value, ok := strings.Cut(change, "="); ok {
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			s.Tune(name, x)
		}
	}
}
