package retrieve_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

// addFact stores a passage under the time that it is about, as the kernel does.
func (m *memIndex) addFact(p memgpt.Passage) {
	o := m.owner(p.Tenant, p.Owner)
	o.passages[p.ID] = p
	m.commits = append(m.commits, store.Commit{Passages: []memgpt.Passage{p}})
	at := tool.Dated(&p)
	m.add(o, store.Doc{Tenant: p.Tenant, Owner: p.Owner, ID: p.ID, Kind: memgpt.KindPassage, Time: at}, store.IndexText{Text: p.Text, Time: at, Tags: p.Tags})
}

// replaceFact lets one passage take the place of another.
func (m *memIndex) replaceFact(old, by string, at time.Time) {
	o := m.owner("", "a")
	p := o.passages[old]
	p.SupersededBy, p.Superseded = by, at
	o.passages[old] = p
	m.kill(old)
}

// TestAsOfFindsWhatWasReplaced finds a passage by its words and by its meaning as of a time before it was replaced, with what replaced
// it, and never in a search of now.
func TestAsOfFindsWhatWasReplaced(t *testing.T) {
	e := &fakeEncoder{model: "m", same: map[string]string{"cat": "pet", "feline": "pet"}}
	m := newMemIndex()
	for i, text := range []string{"Lin keeps a cat at home", "Lin keeps a parrot at home", "林住在上海的老房子里"} {
		m.addFact(passage(i+1, text, noon.AddDate(0, i, 0)))
	}
	for i, text := range someTexts[1:] {
		m.addFact(passage(i+10, text, noon))
	}
	m.replaceFact("passage-1", "passage-2", noon.AddDate(0, 1, 0))
	m.replaceFact("passage-3", "passage-2", noon.AddDate(0, 3, 0))
	m.embedOwner("a", e)
	s, err := retrieve.New(retrieve.Config{Index: m, Store: m, Embedders: []tool.Embedder{e}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(text string, asOf time.Time) (found []string) {
		t.Helper()
		hits, err := s.Search(t.Context(), tool.Query{Owner: "a", Text: text, AsOf: asOf})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits.List {
			found = append(found, h.ID)
			if h.ID == "passage-1" && (h.SupersededBy != "passage-2" || !h.Superseded.Equal(noon.AddDate(0, 1, 0))) {
				t.Errorf("%+v", h)
			}
		}
		return found
	}
	june := noon.AddDate(0, 0, 20)
	for _, tt := range []struct {
		text  string
		asOf  time.Time
		id    string
		finds bool
	}{
		{"cat", june, "passage-1", true}, {"feline", june, "passage-1", true}, {"cat", time.Time{}, "passage-1", false},
		{"cat", noon.AddDate(0, 1, 1), "passage-1", false}, {"cat", noon, "passage-1", false}, {"feline", noon, "passage-1", false},
		{"cat", noon.Add(time.Nanosecond), "passage-1", true}, {"parrot", june, "passage-2", false}, {"parrot", time.Time{}, "passage-2", true},
		{"住在哪里的房子", noon.AddDate(0, 2, 1), "passage-3", true}, {"住在哪里的房子", time.Time{}, "passage-3", false},
	} {
		if got := ask(tt.text, tt.asOf); slices.Contains(got, tt.id) != tt.finds {
			t.Errorf("%q as of %v found %q: %s is to be among them: %v", tt.text, tt.asOf, got, tt.id, tt.finds)
		}
	}
}

// TestAsOfLeavesLaterMessagesOut: what was said later is neither found nor shown beside what is.
func TestAsOfLeavesLaterMessagesOut(t *testing.T) {
	m := talk("we sail to the lighthouse", "which lighthouse", "the lighthouse of the north")
	all := find(t, m, tool.Query{Text: "lighthouse"})
	second := all.List[0].Time
	for _, h := range all.List {
		if h.ID == "message-2" {
			second = h.Time
		}
	}
	hits := find(t, m, tool.Query{Text: "lighthouse", AsOf: second.Add(time.Second), Context: 3})
	if hits.Total != 2 {
		t.Fatalf("found %s", ids(hits))
	}
	for _, h := range hits.List {
		for _, n := range append(h.Before, h.After...) {
			if n.Time.After(second) {
				t.Errorf("%s is shown beside %s", n.ID, h.ID)
			}
		}
	}
}

// TestDatesCountByAbout: filters of time and questions of a time take a passage by what it is about.
func TestDatesCountByAbout(t *testing.T) {
	m := newMemIndex()
	p := passage(1, "Lin ran the marathon", noon)
	p.About = noon.AddDate(-1, 0, 0)
	m.addFact(p)
	m.addFact(passage(2, "Lin bought a tent", noon))
	last := tool.Query{From: noon.AddDate(-1, 0, -1), To: noon.AddDate(-1, 0, 1), Text: "Lin"}
	if got := ids(find(t, m, last)); got != "1" {
		t.Errorf("found %q of the last year", got)
	}
	last.From, last.To = noon.AddDate(0, 0, -1), noon.AddDate(0, 0, 1)
	if got := ids(find(t, m, last)); got != "2" {
		t.Errorf("found %q of this year", got)
	}
	if got := ids(find(t, m, tool.Query{Text: "what happened last May?", Now: noon.AddDate(0, -1, 0)})); got != "1" {
		t.Errorf("found %q of last May", got)
	}
}

// rivals are passages that differ in one fact.
func rivals(change func(i int, p *memgpt.Passage)) *memIndex {
	m := newMemIndex()
	for i, text := range []string{"Lin lives in Rome with her cat.", "Lin lives in Oslo with her cat.", "林的电话号码是4711。", "林的电话号码是4712。",
		"Bob likes to sail on Sundays.", "Ann likes to sail on Sundays."} {
		p := passage(i+1, text, noon.AddDate(0, 0, -i))
		p.Source = ""
		change(i, &p)
		m.addFact(p)
	}
	return m
}

// TestContradictionsOfAPage notes which hits contradict each other, and which of the two counts.
func TestContradictionsOfAPage(t *testing.T) {
	m := rivals(func(int, *memgpt.Passage) {})
	for query, want := range map[string]tool.Contradiction{
		"where does Lin live, with her cat": {First: "passage-1", Second: "passage-2", Newer: "passage-1", Differs: []tool.Difference{{Kind: "name", Here: "Rome", There: "Oslo"}}},
		"林的电话":                              {First: "passage-3", Second: "passage-4", Newer: "passage-3", Differs: []tool.Difference{{Kind: "number", Here: "4711", There: "4712"}}},
	} {
		if d := cmp.Diff([]tool.Contradiction{want}, find(t, m, tool.Query{Text: query}).Contradictions); d != "" {
			t.Errorf("%s (-want +got):\n%s", query, d)
		}
	}
	if hits := find(t, m, tool.Query{Text: "who likes to sail"}); hits.Total != 2 || len(hits.Contradictions) > 0 {
		t.Errorf("two people who sail contradict each other: %+v", hits)
	}
}

// TestCodesNameOtherThings: records of things that are named by codes don't contradict each other, however alike they are; what one
// thing has does.
func TestCodesNameOtherThings(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"3f2504e0-4f89-41d3-9a0c-0305e82c3301: 6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8: 7d444840-9dc0-11d1-b245-5ffdce74fad2", 0},
		{"3f2504e0-4f89-41d3-9a0c-0305e82c3301: 6ba7b810-9dad-11d1-80b4-00c04fd430c8", "9b2c66d1-1111-4c1e-8f6a-aa05e82c3377: 7d444840-9dc0-11d1-b245-5ffdce74fad2", 0},
		{"What is sent to depot KL-4F1 goes on to depot KL-77B.", "What is sent to depot KL-77B goes on to depot KL-90A.", 0},
		{"KL-4F1: the lid is red", "KL-4F2: the lid is blue", 0},
		{"The password of the old printer is kx4f-91b.", "The password of the old printer is mm7a-20c.", 1},
		{"KL-4F1 is kept on shelf 3 of the cellar", "KL-4F1 is kept on shelf 8 of the cellar", 1},
		{"The pool is open from 5pm to 7pm on Mondays", "The pool is open from 6pm to 7pm on Mondays", 1},
	} {
		hits := []tool.Hit{{ID: "1", Kind: memgpt.KindPassage, Text: tt.a}, {ID: "2", Kind: memgpt.KindPassage, Text: tt.b}}
		if got := retrieve.Contrast(hits, noon); len(got) != tt.want {
			t.Errorf("%q and %q: %+v", tt.a, tt.b, got)
		}
	}
}

// TestWhatHoldsStandsFirst: of two passages that contradict each other the outdated one does not stand first, unless the query asks for
// its time.
func TestWhatHoldsStandsFirst(t *testing.T) {
	query := tool.Query{Text: "Lin lives in Rome", Now: noon}
	for name, tt := range map[string]struct {
		change func(i int, p *memgpt.Passage)
		want   string
	}{
		"nothing is said of time": {func(int, *memgpt.Passage) {}, "1 2"},
		"the first has ended":     {func(i int, p *memgpt.Passage) { p.Ended = map[int]time.Time{0: noon.AddDate(0, -1, 0)}[i] }, "2 1"},
		"the first will end":      {func(i int, p *memgpt.Passage) { p.Ended = map[int]time.Time{0: noon.AddDate(0, 1, 0)}[i] }, "1 2"},
		"the second is about a later time": {func(i int, p *memgpt.Passage) {
			p.About = map[int]time.Time{0: noon.AddDate(-2, 0, 0), 1: noon.AddDate(-1, 0, 0)}[i]
		}, "2 1"},
		"the first is about a later time": {func(i int, p *memgpt.Passage) {
			p.About = map[int]time.Time{0: noon.AddDate(-1, 0, 0), 1: noon.AddDate(-2, 0, 0)}[i]
		}, "1 2"},
	} {
		hits := find(t, rivals(tt.change), query)
		if got := ids(hits)[:3]; got != tt.want || hits.List[0].Score < hits.List[1].Score {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	m := rivals(func(i int, p *memgpt.Passage) { p.Ended = map[int]time.Time{0: noon.AddDate(0, -1, 0)}[i] })
	query.From = noon.AddDate(-9, 0, 0)
	if got := ids(find(t, m, query))[:3]; got != "1 2" {
		t.Errorf("a query with dates of its own got %s", got)
	}
}

// TestNoTimesNoChange: without About and Ended, Learned and From change no score and no place.
func TestNoTimesNoChange(t *testing.T) {
	plain := rivals(func(int, *memgpt.Passage) {})
	told := rivals(func(i int, p *memgpt.Passage) { p.Learned, p.From = noon.AddDate(-1, i, 0), []string{"message-1"} })
	score := func(m *memIndex, text string) (list []string) {
		for _, h := range find(t, m, tool.Query{Text: text, Size: 10}).List {
			list = append(list, fmt.Sprint(h.ID, " ", h.Score))
		}
		return list
	}
	for _, text := range []string{"Lin lives in Rome", "Lin Oslo cat", "电话号码", "sail Sundays", "who has a cat", "what happened in May 2023?", ""} {
		if d := cmp.Diff(score(plain, text), score(told, text)); d != "" {
			t.Errorf("%q:\n%s", text, d)
		}
	}
}

// BenchmarkContrast measures what a page of ten passages costs that are compared with each other: 45 pairs.
func BenchmarkContrast(b *testing.B) {
	var hits []tool.Hit
	for i := range 10 {
		hits = append(hits, tool.Hit{ID: fmt.Sprint("passage-", i), Kind: memgpt.KindPassage, Learned: noon.AddDate(0, 0, i),
			Text: fmt.Sprintf("On day %d of the trip Lin and Bob sailed from the harbour of town %c to the next island, and slept on the boat.", i, 'A'+i)})
	}
	for b.Loop() {
		retrieve.Contrast(hits, noon)
	}
}

// BenchmarkAsOf measures searches among 10,000 passages, of which every tenth was replaced: of now, as of a time for the first time,
// and again. It includes SQLite.
func BenchmarkAsOf(b *testing.B) {
	m := newMemIndex()
	for i := range 10_000 {
		m.addFact(passage(i+1, fmt.Sprintf("Fact %d of the harbour: berth %d is of size %d.", i, i%97, i%13), noon.Add(time.Duration(i)*time.Minute)))
	}
	for i := 0; i < 10_000; i += 10 {
		m.replaceFact(fmt.Sprint("passage-", i+1), fmt.Sprint("passage-", i+2), noon.AddDate(0, 0, 8))
		p := m.owner("", "a").passages[fmt.Sprint("passage-", i+1)]
		m.commits[len(m.commits)-1].Passages = []memgpt.Passage{p}
	}
	s := m.store(b)
	open := func() *retrieve.Searcher {
		x, err := retrieve.New(retrieve.Config{Index: s, Store: s})
		if err != nil {
			b.Fatal(err)
		}
		return x
	}
	ask := func(x *retrieve.Searcher, asOf time.Time) {
		hits, err := x.Search(b.Context(), tool.Query{Owner: "a", Text: "berth 42 harbour", AsOf: asOf})
		if err != nil || len(hits.List) == 0 {
			b.Fatal(hits, err)
		}
	}
	warm, at := open(), noon.AddDate(0, 0, 7)
	b.Run("now", func(b *testing.B) {
		for b.Loop() {
			ask(warm, time.Time{})
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			ask(open(), at)
		}
	})
	b.Run("again", func(b *testing.B) {
		ask(warm, at)
		for b.Loop() {
			ask(warm, at)
		}
	})
}
