package retrieve_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/tool"
)

// original is what the oracle knows of a document: it looks at texts alone and never at the index.
type original struct {
	id     string
	kind   memgpt.DocKind
	thread string
	role   memgpt.Role
	time   time.Time
	words  []string
	tags   []string
	dead   bool
}

// vocabulary is of nonsense words that have no stems, dates or accents.
func vocabulary(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("%c%co%cu", 'b'+rune(i%19), 'a'+rune(i/19%19), 'b'+rune(i/361%19))
	}
	return words
}

// history is a random store with its originals.
func history(r *rand.Rand, size int, deaths bool) (*memIndex, []original) {
	m := newMemIndex()
	m.block = 1 + r.IntN(7)
	words := vocabulary(30)
	var docs []original
	for i := range size {
		d := original{kind: memgpt.KindMessage, time: noon.Add(time.Duration(r.IntN(size/2)) * time.Hour)}
		if r.IntN(10) == 0 {
			d.time = time.Time{}
		}
		for range r.IntN(12) {
			d.words = append(d.words, words[int(float64(len(words))*r.Float64()*r.Float64())])
		}
		text := strings.Join(d.words, " ")
		if r.IntN(3) == 0 {
			p := passage(i+1, text, d.time)
			for range r.IntN(3) {
				p.Tags = append(p.Tags, fmt.Sprint("tag", r.IntN(4)))
			}
			d.id, d.kind, d.tags = p.ID, memgpt.KindPassage, p.Tags
			m.addPassage(p)
		} else {
			e := message(i+1, text, d.time)
			e.Thread, e.Message.Role = fmt.Sprint("conv-", r.IntN(3)), []memgpt.Role{memgpt.RoleUser, memgpt.RoleAssistant}[r.IntN(2)]
			d.id, d.thread, d.role = e.ID, e.Thread, e.Message.Role
			m.addEntry(e)
		}
		docs = append(docs, d)
	}
	for i := range docs {
		if deaths && r.IntN(12) == 0 {
			docs[i].dead = true
			m.kill(docs[i].id)
		}
	}
	return m, docs
}

func randomQuery(r *rand.Rand, docs []original) tool.Query {
	q := tool.Query{Owner: "a"}
	words := vocabulary(33) // some of which nothing holds
	var text []string
	for range r.IntN(5) {
		text = append(text, words[r.IntN(len(words))])
	}
	slices.Sort(text)
	for i, w := range text { // apart, so that no text holds the query verbatim
		text[i] = w + " zzz" + fmt.Sprint(i) + "q9q"
	}
	q.Text = strings.Join(text, " ")
	if r.IntN(3) == 0 {
		q.From = noon.Add(time.Duration(r.IntN(len(docs)/2)) * time.Hour)
	}
	if r.IntN(3) == 0 {
		q.To = noon.Add(time.Duration(r.IntN(len(docs)/2)) * time.Hour)
	}
	if r.IntN(4) == 0 {
		q.Kinds = []memgpt.DocKind{[]memgpt.DocKind{memgpt.KindMessage, memgpt.KindPassage}[r.IntN(2)]}
	}
	if r.IntN(4) == 0 {
		q.Roles = []memgpt.Role{memgpt.RoleAssistant}
	}
	if r.IntN(4) == 0 {
		q.Threads = []string{fmt.Sprint("conv-", r.IntN(4))}
	}
	if r.IntN(4) == 0 {
		q.Tags = []string{fmt.Sprint("TAG", r.IntN(4)), fmt.Sprint("tag", r.IntN(4))}
	}
	for range r.IntN(4) {
		q.Exclude = append(q.Exclude, docs[r.IntN(len(docs))].id)
	}
	return q
}

func (d *original) passes(q tool.Query) bool {
	if d.dead || slices.Contains(q.Exclude, d.id) || q.Kinds != nil && !slices.Contains(q.Kinds, d.kind) ||
		q.Roles != nil && !slices.Contains(q.Roles, d.role) || q.Threads != nil && !slices.Contains(q.Threads, d.thread) {
		return false
	}
	if (!q.From.IsZero() || !q.To.IsZero()) && d.time.IsZero() || !q.From.IsZero() && d.time.Before(q.From) || !q.To.IsZero() && !d.time.Before(q.To) {
		return false
	}
	return q.Tags == nil || slices.ContainsFunc(q.Tags, func(t string) bool { return slices.Contains(d.tags, strings.ToLower(t)) })
}

// naive scores every document from its words; df counts dead documents too, as the index may.
func naive(docs []original, q tool.Query) map[string]float64 {
	live, length := 0, 0
	for _, d := range docs {
		if !d.dead {
			live, length = live+1, length+len(d.words)
		}
	}
	scores := map[string]float64{}
	for _, w := range strings.Fields(q.Text) {
		df := 0
		for _, d := range docs {
			if slices.Contains(d.words, w) {
				df++
			}
		}
		for _, d := range docs {
			tf := 0.
			for _, x := range d.words {
				if x == w {
					tf++
				}
			}
			if n := float64(live); tf > 0 && d.passes(q) {
				f := min(float64(df), n)
				idf := math.Log(1 + (n-f+.5)/(f+.5))
				scores[d.id] += idf * tf * 2.2 / (tf + 1.2*(.25+.75*float64(len(d.words))/(float64(length)/n)))
			}
		}
	}
	return scores
}

// TestSearchEqualsOracle walks all pages of random queries over random stores, each tenth of them in SQLite, where
// nothing dies since frequencies are but near after that.
func TestSearchEqualsOracle(t *testing.T) {
	rounds := 60
	if os.Getenv("MEMGPT_LONG") != "" {
		rounds = 2000
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		m, docs := history(r, 20+r.IntN(100), seed%10 != 0)
		cfg := retrieve.Config{Index: m, Store: m, Off: ofWords}
		if seed%10 == 0 {
			s := m.store(t)
			cfg.Index, cfg.Store = s, s
		}
		s, err := retrieve.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			q := randomQuery(r, docs)
			walked := walk(t, s, q, 1+r.IntN(9))
			if q.Text == "" {
				checkNewest(t, docs, q, walked)
			} else {
				checkScores(t, docs, naive(docs, q), walked)
			}
			if t.Failed() {
				t.Fatalf("seed %d, query %+v", seed, q)
			}
		}
	}
}

// walk returns all hits, page by page.
func walk(t *testing.T, s *retrieve.Searcher, q tool.Query, size int) []tool.Hit {
	t.Helper()
	var list []tool.Hit
	q.Size = size
	for q.Page = 0; ; q.Page++ {
		hits, err := s.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, hits.List...)
		if q.Page+1 >= hits.Pages() {
			if len(list) != hits.Total {
				t.Errorf("%d hits on all pages, total %d", len(list), hits.Total)
			}
			return list
		}
		if len(hits.List) != size {
			t.Errorf("page %d of %d has %d hits, not %d", q.Page, hits.Pages(), len(hits.List), size)
		}
	}
}

func checkScores(t *testing.T, docs []original, want map[string]float64, got []tool.Hit) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("found %d, want %d", len(got), len(want))
	}
	seen := map[string]bool{}
	for i, h := range got {
		if w, ok := want[h.ID]; !ok || seen[h.ID] || math.Abs(w-h.Score) > 1e-4*(1+w) {
			t.Errorf("hit %d, %s scores %v, want %v (seen: %v)", i, h.ID, h.Score, w, seen[h.ID])
		}
		seen[h.ID] = true
		if i > 0 && (h.Score > got[i-1].Score || h.Score == got[i-1].Score && newer(docs, h, got[i-1])) {
			t.Errorf("hit %d, %s stands behind %s", i, h.ID, got[i-1].ID)
		}
	}
}

func checkNewest(t *testing.T, docs []original, q tool.Query, got []tool.Hit) {
	t.Helper()
	n := 0
	for i := range docs {
		if docs[i].passes(q) {
			n++
		}
	}
	if len(got) != n {
		t.Errorf("listed %d, want %d", len(got), n)
	}
	for i := 1; i < len(got); i++ {
		if newer(docs, got[i], got[i-1]) {
			t.Errorf("%s stands behind %s", got[i].ID, got[i-1].ID)
		}
	}
}

// newer reports whether a stands before b among equals. Unknown times are the oldest.
func newer(docs []original, a, b tool.Hit) bool {
	if !a.Time.Equal(b.Time) {
		return a.Time.After(b.Time)
	}
	place := func(h tool.Hit) int { return slices.IndexFunc(docs, func(d original) bool { return d.id == h.ID }) }
	return place(a) > place(b)
}
