package retrieve_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

var benchTexts = map[string]string{
	"en":    "Caroline and I went hiking last weekend; the trail was muddy but the views over the valley were amazing. ",
	"zh":    "我们上周末去爬山了，路上有点泥泞，不过山谷的景色非常漂亮，下次想带孩子们一起去看日出。",
	"mixed": "Bart在学校用v1.2.3部署了gen-itgc on 8 May 2023, café crème 🍷 foo@bar.com 학교에서. ",
	"code":  "func (s *Server) Handle(w http.ResponseWriter, r *http.Request) { /usr/lib/x.so 550e8400-e29b-41d4-a716-446655440000 } ",
}

// BenchmarkAnalyze measures a message of some 200 bytes and a text of 64 KiB.
func BenchmarkAnalyze(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		for _, name := range []string{"en", "zh", "mixed", "code"} {
			text := memgpt.CutText(strings.Repeat(benchTexts[name], 1+size/len(benchTexts[name])), size)
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				var a retrieve.Analyzer
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					a.Analyze(store.IndexText{Text: text, Author: "Mel", Time: noon})
				}
			})
		}
	}
}

// zipfIndex holds n documents of 3 to 40 words drawn from 50,000 by Zipf's law, and gives questions of its words.
func zipfIndex(n int) (*memIndex, func() string) {
	r := rand.New(rand.NewPCG(1, 1))
	words := rand.NewZipf(r, 1.1, 8, 50_000)
	m := newMemIndex()
	o := m.owner("", "a")
	for i := range n {
		d := store.Doc{ID: fmt.Sprint("message-", i+1), Kind: memgpt.KindMessage, Thread: "conv-main", Role: memgpt.RoleUser,
			Time: noon.Add(time.Duration(i) * time.Minute), Length: 3 + r.IntN(38)}
		counts := map[uint64]int{}
		for range d.Length {
			counts[words.Uint64()]++
		}
		for w, c := range counts {
			d.Terms = append(d.Terms, store.TermCount{Term: fmt.Sprintf("w%d", w), N: c})
		}
		o.addDoc(d)
		o.entries[d.ID] = memgpt.Entry{ID: d.ID, Agent: "a", Thread: d.Thread, Time: d.Time, Message: memgpt.TextMessage(d.Role, memgpt.OriginUser, "text")}
	}
	return m, func() string { // the commonest of a language are its stop words: the first 20 here
		var q []string
		for len(q) < 5 {
			if w := words.Uint64(); w >= 20 {
				q = append(q, fmt.Sprintf("w%d", w))
			}
		}
		return strings.Join(q, " ")
	}
}

// BenchmarkSearch measures questions of five words. p50-ms is the median; it includes no SQLite.
func BenchmarkSearch(b *testing.B) {
	sizes := []int{1000, 100_000}
	if os.Getenv("MEMGPT_LONG") != "" {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		m, question := zipfIndex(n)
		m.block = 512
		s := searcher(b, m)
		for name, q := range map[string]tool.Query{"plain": {}, "filtered": {From: noon.Add(time.Hour), Roles: []memgpt.Role{memgpt.RoleUser}}, "page 20": {Page: 20}} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				var took []time.Duration
				q.Owner = "a"
				for b.Loop() {
					q.Text = question()
					start := time.Now()
					if _, err := s.Search(b.Context(), q); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(start))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			})
		}
	}
}

// BenchmarkRecall measures the evaluation data, with R@10 as a metric.
func BenchmarkRecall(b *testing.B) {
	if os.Getenv("MEMGPT_LONG") == "" {
		b.Skip("set MEMGPT_LONG=1 to measure recall on the evaluation data")
	}
	for _, file := range []string{"locomo_a", "madial_zh"} {
		pools := readPools(b, filepath.Join(sharedData(b), file+".jsonl"))
		b.Run(file, func(b *testing.B) {
			var r [4]float64
			for b.Loop() {
				r, _ = recall(b, pools)
			}
			b.ReportMetric(r[2], "R@10")
		})
	}
}
