package eval

import (
	"bytes"
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

// notes is made-up data: two stores whose docs have the same ids, with speakers. One question has no evidence, one has a
// piece that isn't there, and one nothing but such.
const notes = `{"conv":"a","docs":[{"id":"1","text":"Ana: The otter sleeps under the bridge.","time":"2024-01-01","who":"Ana","session":"s"},` +
	`{"id":"2","text":"Ben: The bridge was painted green.","time":"2024-01-02","who":"Ben","session":"s"},` +
	`{"id":"3","text":"assistant: Noted.","time":"","who":"assistant"}],"queries":[` +
	`{"id":"q1","q":"Where does the otter sleep?","cat":"one","gold":["1"]},` +
	`{"id":"q2","q":"painted green","cat":"two","gold":["2","1"]},` +
	`{"id":"q3","q":"Is the bridge haunted?","cat":"none of it","gold":[]},` +
	`{"id":"q4","q":"bridge","cat":"two","gold":["2","9"]},` +
	`{"id":"q5","q":"bridge","cat":"two","gold":["9"]}]}` + "\n" +
	`{"conv":"b","docs":[{"id":"1","text":"user: The lighthouse has a red door.","time":"2024-03-01","who":"user"},` +
	`{"id":"2","text":"user: My otter is made of wood.","time":"2024-03-02","who":"user"}],"queries":[` +
	`{"id":"q1","q":"what is the otter made of","cat":"one","gold":["2"],"time":"2024/05/02 (Thu) 17:50"}]}` + "\n"

// measured runs a measurement with a clock that goes a millisecond a reading.
func measured(t *testing.T, cfg RetrievalConfig, files ...string) *RetrievalReport {
	t.Helper()
	o := newOpener(t)
	cfg.Open, cfg.Now = o.make, (&clock{at: timeless}).now
	rep, err := Retrieval(t.Context(), cfg, files)
	if err != nil {
		t.Fatal(err)
	}
	if n := o.open.Load(); n != 0 {
		t.Errorf("%d stores were not disposed of", n)
	}
	return rep
}

func TestRetrievalReportAsJSON(t *testing.T) {
	file := write(t, "notes.jsonl", notes)
	rep := measured(t, RetrievalConfig{}, file)
	var out bytes.Buffer
	if err := rep.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(out.String(), file, "FILE")
	const want = `{"files":[{"file":"FILE","queries":4,` +
		`"recall":{"1":87.5,"5":87.5,"10":87.5,"20":87.5},` +
		`"recall_95":{"1":[62.5,100],"5":[62.5,100],"10":[62.5,100],"20":[62.5,100]},"mrr":1,"mrr_95":[1,1],"p50_ms":1,"p95_ms":1,` +
		`"categories":{"one":{"queries":2,"recall":{"1":100,"5":100,"10":100,"20":100},` +
		`"recall_95":{"1":[100,100],"5":[100,100],"10":[100,100],"20":[100,100]},"mrr":1,"mrr_95":[1,1],"p50_ms":1,"p95_ms":1},` +
		`"two":{"queries":2,"recall":{"1":75,"5":75,"10":75,"20":75},` +
		`"recall_95":{"1":[50,100],"5":[50,100],"10":[50,100],"20":[50,100]},"mrr":1,"mrr_95":[1,1],"p50_ms":1,"p95_ms":1}},` +
		`"floor":{"ranked":4,"hidden":0,"without_evidence":1,"shown":1},"stores":2,"docs":5,"gold_missing":2,"left_out":1}]}` + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRetrievalReportAsText(t *testing.T) {
	rep := measured(t, RetrievalConfig{Variants: []Variant{{"blind", found()}}}, write(t, "notes.jsonl", notes))
	var out bytes.Buffer
	if err := rep.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	const want = `file         category  queries  R@1                  R@5                  R@10                 R@20                 MRR                  p50 ms  p95 ms
notes.jsonl  all       4        87.5 (62.5-100.0)    87.5 (62.5-100.0)    87.5 (62.5-100.0)    87.5 (62.5-100.0)    1.000 (1.000-1.000)  1.00    1.00
             one       2        100.0 (100.0-100.0)  100.0 (100.0-100.0)  100.0 (100.0-100.0)  100.0 (100.0-100.0)  1.000 (1.000-1.000)  1.00    1.00
             two       2        75.0 (50.0-100.0)    75.0 (50.0-100.0)    75.0 (50.0-100.0)    75.0 (50.0-100.0)    1.000 (1.000-1.000)  1.00    1.00

file         floor hides evidence  shown without evidence  evidence missing  questions left out
notes.jsonl  0 of 4 (0.0 %)        1 of 1 (100.0 %)        2                 1

file         variant    R@5   R@10  R@20
notes.jsonl  all parts  87.5  87.5  87.5
notes.jsonl  blind      0.0   0.0   0.0
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// found makes a search that finds the documents with the ids, whatever is asked.
func found(ids ...string) NewSearch {
	return func(store.Store) (tool.Searcher, error) { return fixed(ids), nil }
}

// Alike implements tool.Searcher.
func (fixed) Alike(context.Context, string, string, string, int) ([]tool.Alike, error) {
	return nil, nil
}

type fixed []string

func (f fixed) Search(_ context.Context, q tool.Query) (tool.Hits, error) {
	hits := tool.Hits{Total: len(f), Size: q.Size}
	for _, id := range f {
		hits.List = append(hits.List, tool.Hit{ID: id})
	}
	return hits, nil
}

func TestRetrievalCountsByRank(t *testing.T) {
	ids := strings.Fields("x1 g x3 x4 x5 h g x8 x9 x10 i x12 x13 x14 x15 x16 x17 x18 x19 x20 k")
	file := write(t, "ranks.jsonl", `{"docs":[{"id":"g","text":"g"},{"id":"h","text":"h"},{"id":"i","text":"i"},{"id":"k","text":"k"}],`+
		`"queries":[{"q":"one","cat":"c","gold":["g","h","i","k"]},{"q":"two","cat":"c","gold":["h"]},{"q":"three","gold":["k"]}]}`)
	r := measured(t, RetrievalConfig{Search: found(ids...)}, file).Files[0]
	want := ByDepth[float64]{0, 8.33, 50, 58.33} // of 4, 1 and 1 pieces: 0; 1; 2, 1; 3, 1. The 21st is no hit.
	if diff := cmp.Diff(want, r.Recall); diff != "" || r.MRR != 0.2222 || r.Queries != 3 {
		t.Errorf("%s, MRR %v, %d questions", diff, r.MRR, r.Queries)
	}
	if c := r.Categories["none"]; c.Queries != 1 || c.MRR != 0 || len(r.Categories) != 2 {
		t.Errorf("the categories are %+v", r.Categories)
	}
}

func TestRetrievalPooled(t *testing.T) {
	file := write(t, "notes.jsonl", notes)
	apart, pooled := measured(t, RetrievalConfig{}, file).Files[0], measured(t, RetrievalConfig{Pooled: true}, file).Files[0]
	if apart.Stores != 2 || pooled.Stores != 1 || pooled.Docs != 5 || pooled.Queries != 4 || pooled.GoldMissing != 2 {
		t.Errorf("apart %+v, pooled %+v", apart, pooled)
	}
	// All stores are in the one, and an id counts with its store alone.
	search := found("b\x1f1", "a\x1f1", "b\x1f2")
	r := measured(t, RetrievalConfig{Pooled: true, Search: search}, file).Files[0]
	if diff := cmp.Diff(ByDepth[float64]{0, 62.5, 62.5, 62.5}, r.Recall); diff != "" {
		t.Error(diff)
	}
	var seen []string
	search = func(s store.Store) (tool.Searcher, error) {
		sessions := map[string]bool{}
		list, err := s.EntriesByID(t.Context(), "", poolOwner, []string{"a\x1f1", "a\x1f2", "b\x1f1"})
		for _, e := range list {
			seen = append(seen, e.ID)
			sessions[e.Message.Session] = true
		}
		if !sessions["a\x1fs"] || !sessions[""] {
			t.Errorf("the sessions are %v", sessions)
		}
		return fixed{}, err
	}
	measured(t, RetrievalConfig{Pooled: true, Search: search}, file)
	if len(seen) != 3 {
		t.Errorf("the pool holds %q", seen)
	}
}

func TestRetrievalPoolsAStoreThatCameInParts(t *testing.T) {
	first := `{"conv":"a","docs":[{"id":"1","text":"plum"},{"id":"2","text":"pear"}],"queries":[{"q":"plum","gold":["1"]}]}`
	same := `{"conv":"a","docs":[{"id":"1","text":"plum"}],"queries":[{"q":"pear"}]}`
	r := measured(t, RetrievalConfig{Pooled: true}, write(t, "x.jsonl", first+"\n"+same)).Files[0]
	if r.Docs != 2 || r.Queries != 1 || r.Floor.Without != 1 {
		t.Errorf("got %+v", r)
	}
	_, err := Retrieval(t.Context(), RetrievalConfig{Pooled: true, Open: newOpener(t).make},
		[]string{write(t, "x.jsonl", first+"\n"+strings.Replace(same, "plum", "fig", 1))})
	if err == nil || !strings.Contains(err.Error(), `two stores have the name "a"`) {
		t.Errorf("got %v", err)
	}
}

func TestRetrievalTakesTheDocsOfAnotherFile(t *testing.T) {
	asked := write(t, "asked.jsonl", `{"conv":"zh","queries":[{"q":"water animal","gold":["2"]},{"q":"plum","gold":["1","7"]}]}`)
	one := `{"conv":"en","docs":[{"id":"1","text":"a plum tree"},{"id":"2","text":"an animal of the water"}],"queries":[{"q":"not asked"}]}`
	r := measured(t, RetrievalConfig{Docs: write(t, "docs.jsonl", one)}, asked).Files[0]
	if r.File != asked || r.Queries != 2 || r.Recall[0] != 100 || r.GoldMissing != 1 || r.Docs != 2 {
		t.Errorf("got %+v", r)
	}
	// Of several stores that of the name is asked; together all are there.
	two := `{"conv":"other","docs":[{"id":"2","text":"an animal of the water"}]}` + "\n" + strings.Replace(one, "en", "zh", 1)
	docs := write(t, "docs.jsonl", two)
	if r = measured(t, RetrievalConfig{Docs: docs}, asked).Files[0]; r.Recall[0] != 100 || r.Stores != 1 || r.Docs != 2 {
		t.Errorf("by name: %+v", r)
	}
	if r = measured(t, RetrievalConfig{Docs: docs, Pooled: true}, asked).Files[0]; r.Queries != 2 || r.Docs != 3 || r.Recall[1] != 100 {
		t.Errorf("pooled: %+v", r)
	}
}

func TestRetrievalReportsTheFloor(t *testing.T) {
	// q1, q2 and q4 of a and q1 of b have evidence; the search ranks that of q1, q2 and q4.
	cfg := RetrievalConfig{Search: found("1", "2"), Shown: func(s store.Store) (tool.Searcher, error) { return floored{}, nil }}
	r := measured(t, cfg, write(t, "notes.jsonl", notes)).Files[0]
	if want := (Floor{Ranked: 4, Hidden: 2, Without: 1, Shown: 0}); r.Floor != want {
		t.Errorf("got %+v, want %+v", r.Floor, want)
	}
	if r.Recall[3] != 100 {
		t.Errorf("the floor changed the ranks: %+v", r.Recall)
	}
	// One search alone: texts that match and are not listed are not shown.
	r = measured(t, RetrievalConfig{Search: cfg.Shown}, write(t, "notes.jsonl", notes)).Files[0]
	if want := (Floor{Ranked: 3, Without: 1}); r.Floor != want {
		t.Errorf("without a floor of its own: got %+v, want %+v", r.Floor, want)
	}
}

// floored shows the first document where an otter is asked for, the second for paint, and else nothing.
// Alike implements tool.Searcher.
func (floored) Alike(context.Context, string, string, string, int) ([]tool.Alike, error) {
	return nil, nil
}

type floored struct{}

func (floored) Search(ctx context.Context, q tool.Query) (tool.Hits, error) {
	switch {
	case strings.Contains(q.Text, "otter"):
		return fixed{"2", "1"}.Search(ctx, q)
	case strings.Contains(q.Text, "painted"):
		return fixed{"2"}.Search(ctx, q)
	}
	return tool.Hits{Total: 2, Size: q.Size}, nil
}

func TestRetrievalAsksAtTheQuestionsTime(t *testing.T) {
	var asked []tool.Query
	search := func(store.Store) (tool.Searcher, error) { return recorder{&asked}, nil }
	measured(t, RetrievalConfig{Search: search}, write(t, "notes.jsonl", notes))
	if len(asked) != 6 {
		t.Fatalf("%d questions were asked", len(asked))
	}
	want := tool.Query{Owner: poolOwner, Text: "what is the otter made of", Size: 20, Zone: time.UTC,
		Now: time.Date(2024, 5, 2, 17, 50, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, asked[5], cmp.Comparer(func(a, b *time.Location) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if got := asked[0].Now; !got.Equal(time.Date(2024, 1, 3, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("a question without a time is asked at %s", got)
	}
}

// Alike implements tool.Searcher.
func (recorder) Alike(context.Context, string, string, string, int) ([]tool.Alike, error) {
	return nil, nil
}

type recorder struct{ asked *[]tool.Query }

func (r recorder) Search(_ context.Context, q tool.Query) (tool.Hits, error) {
	*r.asked = append(*r.asked, q)
	return tool.Hits{}, nil
}

// TestRetrievalStoresAsAnImportDoes loads a conversation by an import and as a pool, and compares what search gives.
func TestRetrievalStoresAsAnImportDoes(t *testing.T) {
	c := talkSuite(t).Cases[0]
	c.Lines = append(c.Lines, talkSuite(t).Cases[1].Lines[1])
	c.Lines[4].ID = "D3:1" // by the assistant
	open := func() store.Store {
		s, dispose, err := newOpener(t).make(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dispose() })
		return s
	}
	imported, pooled := open(), open()
	l := loader{r: testRunner(t, standIn(t)), c: &c, store: imported}
	if err := l.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &pool{lines: c.Lines}
	if err := p.storeMessages(t.Context(), pooled, new(retrieve.Analyzer)); err != nil {
		t.Fatal(err)
	}
	hits := func(s store.Store, owner, text string) (list []tool.Hit) {
		search, err := retrieve.New(retrieve.Config{Index: s, Store: s})
		if err != nil {
			t.Fatal(err)
		}
		got, err := search.Search(t.Context(), tool.Query{Owner: owner, Text: text, Size: 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range got.List {
			h.Thread = ""
			list = append(list, h)
		}
		return list
	}
	for _, text := range []string{"plum tree boat kiln ladder", "Ana 2023-06-01", "记住", ""} {
		want := hits(imported, l.agent.ID, text)
		if diff := cmp.Diff(want, hits(pooled, poolOwner, text)); diff != "" || len(want) == 0 {
			t.Errorf("%q (- imported, + pooled), %d hits: %s", text, len(want), diff)
		}
	}
	entries := func(s store.Store, thread string) []memgpt.Entry {
		list, err := s.Entries(t.Context(), store.EntryRange{Thread: thread})
		if err != nil {
			t.Fatal(err)
		}
		list = list[:len(c.Lines)] // then an import gives notice
		for i := range list {
			list[i].Agent, list[i].Thread = "", ""
		}
		return list
	}
	threads, err := imported.Threads(t.Context(), "", l.agent.ID)
	if err != nil {
		t.Fatal(err)
	}
	main := threads[slices.IndexFunc(threads, func(th memgpt.Thread) bool { return th.Name == mainThread })].ID
	if diff := cmp.Diff(entries(imported, main), entries(pooled, poolThread)); diff != "" {
		t.Errorf("entries (- imported, + pooled): %s", diff)
	}
}

// TestRetrievalStoresPassages holds that docs without speakers are passages, with their times, also those of equal text.
func TestRetrievalStoresPassages(t *testing.T) {
	file := write(t, "notes.jsonl", `{"docs":[{"id":"1","text":"A plum.","time":"2024年04月01日 周一 08:30"},{"id":"2","text":"A plum."},`+
		`{"id":"3","text":""}],"queries":[{"q":"plum","gold":["1","2"]}]}`)
	search := func(s store.Store) (tool.Searcher, error) {
		list, err := s.Passages(t.Context(), "", poolOwner, []string{"1", "2", "3"})
		if len(list) != 3 || !list[0].Time.Equal(time.Date(2024, 4, 1, 8, 30, 0, 0, time.UTC)) || !list[1].Time.IsZero() {
			t.Errorf("the passages are %+v", list)
		}
		if err != nil {
			return nil, err
		}
		return retrieve.New(retrieve.Config{Index: s, Store: s})
	}
	if r := measured(t, RetrievalConfig{Search: search}, file).Files[0]; r.Recall[1] != 100 {
		t.Errorf("got %+v", r)
	}
}

func TestRetrievalEmbedsAndIndexesBeforeItAsks(t *testing.T) {
	e := &counting{}
	indexed := 0
	search := func(store.Store) (tool.Searcher, error) {
		if len(e.texts) != 6 || !e.query || indexed == 0 {
			t.Errorf("%q were embedded (questions: %v), %d stores indexed", e.texts, e.query, indexed)
		}
		return fixed{}, nil
	}
	cfg := RetrievalConfig{Embedder: e, Search: search, Index: func(ctx context.Context, s store.Store) error {
		indexed++
		meta, err := s.Meta(ctx, "", poolOwner)
		if err == nil && len(meta.Time) == 0 {
			t.Error("the store is empty when it is indexed")
		}
		return err
	}}
	var done, total int
	cfg.Progress = func(d, of int) { done, total = d, of }
	cfg.Variants = []Variant{{"again", found()}}
	measured(t, cfg, write(t, "notes.jsonl", notes))
	if indexed != 2 || done != 12 || total != 12 {
		t.Errorf("%d stores indexed, %d of %d searches told", indexed, done, total)
	}
}

func TestRetrievalErrorsSpeak(t *testing.T) {
	good := write(t, "good.jsonl", notes)
	absent := filepath.Join(t.TempDir(), "absent.jsonl")
	broken := func(text string) string { return write(t, "broken.jsonl", text) }
	line := `{"conv":"a","docs":[{"id":"1","text":"x"}],"queries":[{"q":"y","gold":["1"]}]}` + "\n"
	tests := map[string]struct {
		file, docs, want string
	}{
		"no file":        {absent, "", absent},
		"no docs file":   {good, absent, absent},
		"not JSON":       {broken(line + "\n{"), "", "line 3: it is no conversation"},
		"no docs":        {broken(line + `{"queries":[{"q":"y"}]}`), "", "line 2: it has no docs"},
		"docs twice":     {broken(line + `{"docs":[{"id":"1","text":"x"},{"id":"1","text":"y"}]}`), "", `line 2: two docs have the id "1"`},
		"empty question": {broken(`{"docs":[{"id":"1","text":"x"}],"queries":[{"q":""}]}`), "", "line 1: query 1 is empty"},
		"no questions":   {broken(`{"docs":[{"id":"1","text":"x"}]}`), "", "no questions"},
		"empty":          {broken(""), "", "it is empty"},
		"no such store":  {broken(strings.Replace(line, `"a"`, `"c"`, 1)), good, `no store with the name "c"`},
		"docs in twain":  {good, broken(line + line), `two stores with the name "a"`},
	}
	for name, test := range tests {
		o := newOpener(t)
		_, err := Retrieval(t.Context(), RetrievalConfig{Open: o.make, Docs: test.docs}, []string{good, test.file})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	if _, err := Retrieval(t.Context(), RetrievalConfig{}, []string{good}); err == nil {
		t.Error("no store is needed")
	}
}

func TestRetrievalFailsWhereAPartFails(t *testing.T) {
	bad := errors.New("out of order")
	failing := func(store.Store) (tool.Searcher, error) { return nil, bad }
	tests := map[string]RetrievalConfig{
		"search":  {Search: failing},
		"shown":   {Shown: failing},
		"variant": {Variants: []Variant{{"v", failing}}},
		"index":   {Index: func(context.Context, store.Store) error { return bad }},
		"embed":   {Embedder: &counting{err: bad}},
	}
	file := write(t, "notes.jsonl", notes)
	for name, cfg := range tests {
		o := newOpener(t)
		cfg.Open = o.make
		if _, err := Retrieval(t.Context(), cfg, []string{file}); !errors.Is(err, bad) || o.open.Load() != 0 {
			t.Errorf("%s: got %v, and %d stores are open", name, err, o.open.Load())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Retrieval(ctx, RetrievalConfig{Open: newOpener(t).make}, []string{file}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// TestBootstrapIsAsWideAsTheory compares with the standard error of a share: 400 questions of which half succeed have one
// of 2.5 points, so that 95 % lie within 4.9.
func TestBootstrapIsAsWideAsTheory(t *testing.T) {
	var all []scores
	for i := range 400 {
		all = append(all, scores{float64(i % 2), 1})
	}
	low, high := bootstrap(all)
	if math.Abs(low[0]-.451) > .01 || math.Abs(high[0]-.549) > .01 || low[1] != 1 || high[1] != 1 {
		t.Errorf("from %v to %v", low, high)
	}
	again, _ := bootstrap(all)
	if low != again {
		t.Error("a second run gives another interval")
	}
}

func TestQuantile(t *testing.T) {
	var list []time.Duration
	for i := range 20 {
		list = append(list, time.Duration(i+1)*time.Millisecond)
	}
	if p50, p95 := quantile(list, .5), quantile(list, .95); p50 != 10 || p95 != 19 {
		t.Errorf("p50 %v, p95 %v", p50, p95)
	}
	if got := quantile(list[:1], .95); got != 1 {
		t.Errorf("of one %v", got)
	}
}

func FuzzReadSet(f *testing.F) {
	f.Add(notes, true)
	f.Add(`{"docs":[{"id":"1","text":"x"}],"queries":[{"q":"y","gold":["1","2"]}]}`, false)
	f.Fuzz(func(t *testing.T, text string, pooled bool) {
		s, err := readSet(write(t, "x.jsonl", text), nil, pooled)
		if err != nil {
			return
		}
		for _, p := range s.pools {
			for _, q := range p.questions {
				for _, g := range q.Gold {
					if got, ok := p.texts[g.ID]; !ok || got != g.Text {
						t.Errorf("evidence %q of %q isn't in its store", g.ID, q.ID)
					}
				}
			}
		}
	})
}
