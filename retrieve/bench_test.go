package retrieve_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/embed/e5"
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
			Time: noon.Add(time.Duration(i)*time.Minute + time.Duration(i/25)*6*time.Hour), Length: 3 + r.IntN(38)}
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

// madeIndex gives the documents of a memIndex vectors that are made when they are read: of 997 groups, all one way.
type madeIndex struct {
	*memIndex
	docs          int64
	groups, noise [][]int8
}

func newMadeIndex(m *memIndex) *madeIndex {
	r := rand.New(rand.NewPCG(2, 2))
	rows := func(n int, size float64) [][]int8 {
		out := make([][]int8, n)
		for i := range out {
			out[i] = make([]int8, 384)
			for d := range out[i] {
				out[i][d] = int8(max(-60, min(60, size*r.NormFloat64())))
			}
		}
		return out
	}
	x := &madeIndex{memIndex: m, docs: int64(len(m.owner("", "a").ids)), groups: rows(997, 14), noise: rows(4093, 14)}
	for _, g := range x.groups {
		for d := range g {
			g[d] += int8(d%60) - 30
		}
	}
	return x
}

// vector makes a document's vector in data, which has room for it.
func (x *madeIndex) vector(doc int64, data []byte) store.Vector {
	binary.LittleEndian.PutUint32(data, math.Float32bits(.2))
	g, n := x.groups[doc%997], x.noise[doc%4093]
	for d := range g {
		data[4+d] = byte(g[d] + n[d])
	}
	return store.Vector{Doc: doc, Data: data}
}

const madeSize = 388

func (x *madeIndex) Embedded(context.Context, string, string) (map[string]store.Cursor, error) {
	return map[string]store.Cursor{"bench": {Through: x.docs}}, nil
}

func (x *madeIndex) Vectors(_ context.Context, _, _, _ string, after int64, yield func(store.Vector) bool) error {
	data := make([]byte, madeSize)
	for doc := after + 1; doc <= x.docs && yield(x.vector(doc, data)); doc++ {
	}
	return nil
}

func (x *madeIndex) VectorsOf(_ context.Context, _, _, _ string, docs []int64, yield func(store.Vector) bool) error {
	data := make([]byte, madeSize)
	for _, doc := range docs {
		if !yield(x.vector(doc, data)) {
			break
		}
	}
	return nil
}

// benchEncoder is the built-in encoder under another name.
type benchEncoder struct{ *e5.Encoder }

func (benchEncoder) Model() string { return "bench" }

// BenchmarkHybrid measures questions of five words by words and vectors, the embedding of the question included, SQLite
// not. bytes/message is what the searcher keeps of vectors and layout.
func BenchmarkHybrid(b *testing.B) {
	sizes := []int{1000, 100_000}
	if os.Getenv("MEMGPT_LONG") != "" {
		sizes = append(sizes, 1_000_000)
	}
	enc, err := e5.New(e5.Config{})
	if err != nil {
		b.Skip(err)
	}
	for _, n := range sizes {
		m, question := zipfIndex(n)
		m.block = 512
		x := newMadeIndex(m)
		s, err := retrieve.New(retrieve.Config{Index: x, Store: m, Embedders: []tool.Embedder{benchEncoder{enc}}, Wait: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		for name, q := range map[string]tool.Query{"plain": {}, "filtered": {From: noon.Add(time.Hour), Roles: []memgpt.Role{memgpt.RoleUser}}} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				q.Owner, q.Text = "a", question()
				if hits, err := s.Search(b.Context(), q); err != nil || hits.Words != "" {
					b.Fatal(hits.Words, err)
				}
				var took []time.Duration
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
				b.ReportMetric(float64(s.Held())/float64(n), "bytes/message")
			})
		}
	}
}
