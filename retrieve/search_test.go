package retrieve_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"memgpt"
	"memgpt/retrieve"
	"memgpt/store"
	"memgpt/tool"
)

// TestSearchInSQLite runs queries of every kind over SQLite and compares all of the hits with those over plain maps.
func TestSearchInSQLite(t *testing.T) {
	m := talk("我们在腾讯云上部署了服务", "重跑gen-itgc后50条", "the café serves running water", "학교에서 만났다", "party on 8 May 2021", "please keep still, water")
	m.addPassage(passage(9, "water flows", noon, "Work"))
	m.addPassage(passage(10, "dead zebra", noon, "Work"))
	m.kill("passage-10")
	s := m.store(t)
	inSQLite, err := retrieve.New(retrieve.Config{Index: s, Store: s, Off: ofWords})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []tool.Query{{}, {Text: "water"}, {Text: "running water"}, {Text: "腾讯云"}, {Text: "학교"}, {Text: "2021-05-08"}, {Text: "gen-itgc"},
		{Text: "water", Tags: []string{"work"}}, {Text: "water", Threads: []string{"conv-main"}}, {Tags: []string{"WORK"}}, {Text: `"still, water"`},
		{Text: "water", From: noon.Add(3 * time.Minute)}, {Text: "water", Exclude: []string{"passage-9"}}, {Text: "%"}, {Text: "zebra"}, {Text: "nothing"}, {Owner: "b"}} {
		if q.Owner == "" {
			q.Owner = "a"
		}
		got, err := inSQLite.Search(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		if d := cmp.Diff(find(t, m, q), got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-6)); d != "" {
			t.Errorf("%+v: -maps +SQLite\n%s", q, d)
		}
	}
}

// ofWords is what is left out where a test is about the words of each text alone.
var ofWords = []string{"context", "sessions"}

func searcher(t testing.TB, m *memIndex) *retrieve.Searcher {
	t.Helper()
	s, err := retrieve.New(retrieve.Config{Index: m, Store: m, Off: ofWords})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// find returns the hits of a query of owner "a" (unless it names another).
func find(t testing.TB, m *memIndex, q tool.Query) tool.Hits {
	t.Helper()
	if q.Owner == "" {
		q.Owner = "a"
	}
	hits, err := searcher(t, m).Search(t.Context(), q)
	if err != nil {
		t.Fatalf("search %.80q: %v", q.Text, err)
	}
	return hits
}

func ids(hits tool.Hits) string {
	var list []string
	for _, h := range hits.List {
		_, n, _ := strings.Cut(h.ID, "-")
		list = append(list, n)
	}
	return strings.Join(list, " ")
}

var noon = time.Date(2023, 5, 8, 12, 0, 0, 0, time.UTC)

// talk stores texts as messages 1, 2, …, a minute apart.
func talk(texts ...string) *memIndex {
	m := newMemIndex()
	for i, text := range texts {
		m.addEntry(message(i+1, text, noon.Add(time.Duration(i)*time.Minute)))
	}
	return m
}

func TestSearchFindsEachForm(t *testing.T) {
	m := talk("我们在腾讯云上部署了服务", "今日は成語しりとりをした", "重跑gen-itgc后50条", "the café serves running water", "학교에서 만났다", "집에 갔다",
		"ผมชอบกินข้าว", "call +49-30-1234 at 12:30", "mail foo@bar.com", "ｆｕｌｌ ｗｉｄｔｈ", "请牢记,我不能喝酒 🍷", "كِتَاب جديد", "it costs 1,000 euros",
		"see /usr/lib/x.so", "the party is on 8 May 2021", "हिन्दी सीखना", `in C:\Temp\log.txt`, "id 550e8400-e29b-41d4-a716-446655440000")
	for query, want := range map[string]string{
		"腾讯云": "1", "部署": "1", "しりとり": "2", "itgc": "3", "gen-itgc": "3", "50": "3", "cafe": "4", "CAFÉ": "4", "runs": "4", "waters": "4",
		"학교": "5", "학교는": "5", "집": "6", "กินข้าว": "7", "+49-30-1234": "8", "12:30": "8", "foo@bar.com": "9", "bar.com": "9", "full": "10",
		"🍷": "11", "喝酒": "11", "كتاب": "12", "1000": "13", "1,000": "13", "x.so": "14", "lib": "14", "2021-05-08": "15", "May 8, 2021": "15",
		"2021年5月8日": "15", "हिन्दी": "16", "log.txt": "17", `c:\temp\log.txt`: "17", "550e8400-e29b-41d4-a716-446655440000": "18", "440000": "",
		"猫": "", "nothing": "",
	} {
		if got := ids(find(t, m, tool.Query{Text: query})); got != want {
			t.Errorf("%q found %q, want %q", query, got, want)
		}
	}
}

func TestSearchByDateOfTheMessage(t *testing.T) {
	m := newMemIndex()
	m.addEntry(message(3, "we met on 8 May 2023", time.Time{}))
	m.addEntry(message(1, "we met", time.Date(2023, 5, 8, 12, 0, 0, 0, time.UTC)))
	m.addEntry(message(2, "we met", time.Date(2023, 6, 9, 12, 0, 0, 0, time.UTC)))
	for query, want := range map[string]string{
		"8 May 2023": "3 1", "2023-05-08": "3 1", "2023年5月8日": "3 1", "in May": "3 1", "Monday": "1", "Friday": "2", "周五": "2", "June 2023": "2", "2022": "",
	} {
		got := find(t, m, tool.Query{Text: query})
		if list := strings.Fields(ids(got)); strings.Join(list, " ") != want && !(want == "3 1" && ids(got) == "1 3") {
			t.Errorf("%q found %q, want %q", query, ids(got), want)
		}
	}
}

func TestSearchStampsDoNotDrownTheText(t *testing.T) {
	m := newMemIndex()
	for i := range 50 {
		m.addEntry(message(i+1, "something else", noon.AddDate(0, 0, 7*i))) // all on Mondays
	}
	m.addEntry(message(99, "the market is on Monday", noon.AddDate(0, 0, 1)))
	if got := find(t, m, tool.Query{Text: "Monday", Size: 1}); ids(got) != "99" {
		t.Errorf("found %s before the text that speaks of Monday", ids(got))
	}
}

func TestSearchPrefersTheWordItself(t *testing.T) {
	m := talk("universe", "university", "universities", "nothing")
	if got := ids(find(t, m, tool.Query{Text: "university"})); !strings.HasPrefix(got, "2 ") || len(got) != 5 {
		t.Errorf("found %q, want 2 first and the other forms after", got)
	}
	both := find(t, talk("running late", "x"), tool.Query{Text: "running"}).List[0].Score
	once := find(t, talk("tea late", "x"), tool.Query{Text: "tea"}).List[0].Score
	if both != once {
		t.Errorf("scores %v and %v differ: a word counts beside its stem", both, once)
	}
}

// Passages coffee, books, rocket: the scores fall, and what fits less scores less.
func TestSearchScores(t *testing.T) {
	m := newMemIndex()
	for i, text := range []string{"I drink coffee, black coffee", "books and coffee", "the rocket starts; coffee is served on board by a crew of nine people"} {
		m.addPassage(passage(i+1, text, noon, "tag"))
	}
	hits := find(t, m, tool.Query{Text: "coffee"})
	if ids(hits) != "1 2 3" || hits.Total != 3 || hits.List[0].Score <= hits.List[1].Score || hits.List[1].Score <= hits.List[2].Score || hits.List[2].Score <= 0 {
		t.Errorf("got %+v", hits)
	}
	want := tool.Hit{ID: "passage-1", Kind: memgpt.KindPassage, Time: noon, Text: "I drink coffee, black coffee", Tags: []string{"tag"},
		Source: "notes.txt", Origin: memgpt.OriginModel, Score: hits.List[0].Score, Learned: noon}
	if d := cmp.Diff(want, hits.List[0]); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if none := find(t, m, tool.Query{Text: "is there a volcano"}); none.Total != 0 {
		t.Errorf("what was never stored is found: %+v", none)
	}
}

func TestSearchMessageHit(t *testing.T) {
	m := newMemIndex()
	e := message(1, "tea", noon)
	e.Message.Author = "Mel"
	m.addEntry(e)
	want := []tool.Hit{{ID: "message-1", Kind: memgpt.KindMessage, Thread: "conv-main", Role: memgpt.RoleUser, Author: "Mel", Time: noon, Text: "tea",
		Origin: memgpt.OriginUser}}
	for _, query := range []string{"tea", "mel"} {
		got := find(t, m, tool.Query{Text: query}).List
		got[0].Score = 0
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: -want +got\n%s", query, d)
		}
	}
}

// 200 passages that fit as well, and one of today: the filter comes before the cut.
func TestSearchFiltersBeforeTheCut(t *testing.T) {
	m := newMemIndex()
	for i := range 200 {
		m.addPassage(passage(i+1, "the bike code is 7391", noon.Add(time.Duration(i)*time.Minute)))
	}
	today := noon.AddDate(1, 0, 0)
	m.addPassage(passage(999, "by the way, on another day long ago somebody said that the bike code is 7391", today))
	hits := find(t, m, tool.Query{Text: "bike code 7391", From: today, Size: 5})
	if ids(hits) != "999" || hits.Total != 1 {
		t.Errorf("found %q of %d", ids(hits), hits.Total)
	}
}

func TestSearchFilters(t *testing.T) {
	m := newMemIndex()
	other := message(1, "tea one", noon)
	other.Thread, other.Message.Role = "conv-b", memgpt.RoleAssistant
	m.addEntry(other)
	m.addEntry(message(2, "tea two", noon.Add(time.Hour)))
	m.addEntry(message(3, "tea three", time.Time{}))
	m.addPassage(passage(4, "tea four", noon.Add(2*time.Hour), "Work", "北京"))
	m.addPassage(passage(5, "tea five", noon.Add(3*time.Hour), "workshop"))
	m.addPassage(passage(6, "tea six dead", noon, "work"))
	m.kill("passage-6")
	for name, c := range map[string]struct {
		q    tool.Query
		want string
	}{
		"all":               {tool.Query{}, "5 4 2 1 3"},
		"messages":          {tool.Query{Kinds: []memgpt.DocKind{memgpt.KindMessage}}, "2 1 3"},
		"passages":          {tool.Query{Kinds: []memgpt.DocKind{memgpt.KindPassage}}, "5 4"},
		"no kind":           {tool.Query{Kinds: []memgpt.DocKind{}}, "5 4 2 1 3"},
		"role":              {tool.Query{Roles: []memgpt.Role{memgpt.RoleAssistant}}, "1"},
		"empty role":        {tool.Query{Roles: []memgpt.Role{""}}, ""},
		"thread":            {tool.Query{Threads: []string{"conv-main"}}, "2 3"},
		"threads":           {tool.Query{Threads: []string{"conv-main", "conv-b"}}, "2 1 3"},
		"unknown thread":    {tool.Query{Threads: []string{"conv-x", ""}}, ""},
		"from is inclusive": {tool.Query{From: noon.Add(time.Hour)}, "5 4 2"},
		"to is exclusive":   {tool.Query{To: noon.Add(time.Hour)}, "1"},
		"to the nanosecond": {tool.Query{To: noon.Add(time.Hour + 1)}, "2 1"},
		"between":           {tool.Query{From: noon, To: noon.Add(3 * time.Hour)}, "4 2 1"},
		"tag":               {tool.Query{Tags: []string{"ＷＯＲＫ "}}, "4"},
		"tags":              {tool.Query{Tags: []string{"北京", "workshop"}}, "5 4"},
		"no such tag":       {tool.Query{Tags: []string{"wor"}}, ""},
		"empty lists":       {tool.Query{Tags: []string{}, Roles: []memgpt.Role{}, Threads: []string{}, Exclude: []string{}}, "5 4 2 1 3"},
		"unknown kind":      {tool.Query{Kinds: []memgpt.DocKind{"x"}}, ""},
		"exclude":           {tool.Query{Exclude: []string{"message-2", "passage-5", "message-77"}}, "4 1 3"},
	} {
		for _, text := range []string{"tea", ""} {
			c.q.Text = text
			hits := find(t, m, c.q)
			if ids(hits) != c.want || hits.Total != len(strings.Fields(c.want)) {
				t.Errorf("%s, text %q: found %q of %d, want %q", name, text, ids(hits), hits.Total, c.want)
			}
		}
	}
}

func TestSearchKeepsOwnersApart(t *testing.T) {
	m := newMemIndex()
	secret := message(1, "SECRET_A1 密 100%", noon)
	m.addEntry(secret)
	secret.Tenant = "t2"
	m.addEntry(secret)
	m.addEntry(memgpt.Entry{ID: "message-9", Agent: "b", Message: memgpt.TextMessage(memgpt.RoleUser, memgpt.OriginUser, "mine")})
	for _, query := range []string{"SECRET_A1", "密", "%", "", "secret a1", `"SECRET_A1"`, "*", "' OR 1=1 --"} {
		for _, h := range find(t, m, tool.Query{Owner: "b", Text: query, Size: 50}).List {
			if h.ID != "message-9" {
				t.Errorf("%q shows %+v", query, h)
			}
		}
		if hits := find(t, m, tool.Query{Owner: "b", Tenant: "t2", Text: query}); hits.Total != 0 {
			t.Errorf("%q in another tenant shows %+v", query, hits)
		}
	}
}

// leaky gives another agent's entry under an id that was asked for.
type leaky struct{ *memIndex }

func (l leaky) EntriesByID(_ context.Context, tenant, agent string, ids []string) ([]memgpt.Entry, error) {
	e := message(1, "secret", noon)
	e.Agent = "b"
	return []memgpt.Entry{e}, nil
}

func TestSearchShowsNoForeignOriginal(t *testing.T) {
	m := leaky{talk("tea")}
	s, err := retrieve.New(retrieve.Config{Index: m, Store: m})
	if err != nil {
		t.Fatal(err)
	}
	if hits, err := s.Search(t.Context(), tool.Query{Owner: "a", Text: "tea"}); err != nil || len(hits.List) != 0 {
		t.Errorf("got %+v, %v", hits, err)
	}
}

func TestSearchStopWords(t *testing.T) {
	m := talk("to be or not to be", "we are what we are", "rocket")
	for query, want := range map[string]string{"what is a rocket": "3", "to be": "1", "where are": "2", "": "3 2 1", "%!?": "", "？。": ""} {
		if got := ids(find(t, m, tool.Query{Text: query})); got != want {
			t.Errorf("%q found %q, want %q", query, got, want)
		}
	}
	hits := find(t, m, tool.Query{Text: "what were we", From: noon.Add(time.Second)})
	if ids(hits) != "3 2" || hits.List[0].Score <= hits.List[1].Score {
		t.Errorf("stop words beside a filter found %+v, want the newest", hits.List)
	}
	if got := ids(find(t, m, tool.Query{Text: "*", From: noon.Add(time.Second)})); got != "3 2" {
		t.Errorf("punctuation beside a filter found %q, want the newest", got)
	}
	if got := ids(find(t, m, tool.Query{Text: `"to be"`, From: noon})); got != "1" {
		t.Errorf("a quoted phrase of stop words found %q, want 1", got)
	}
}

func TestSearchQuotesComeFirst(t *testing.T) {
	long := strings.Repeat("some other words stand here too, and nobody minds them at all. ", 30)
	m := newMemIndex()
	for i := range 40 {
		m.addEntry(message(i+1, "blue whales, blue whales; the sea sings", noon))
	}
	for i := range 100 { // which score better, and can't hold the phrase
		m.addEntry(message(i+400, "the sea sings, sea sings, sea sings blue", noon))
	}
	m.addEntry(message(201, long+"The Sea  sings blue\nwhales. "+long, noon))
	for i := range 50 {
		m.addEntry(message(i+300, "用云讯腾，腾讯、讯云", noon))
	}
	m.addEntry(message(202, long+"我们在腾讯云上部署", noon))
	for query, want := range map[string]string{
		`who said "the sea sings blue whales"?`: "201", "the sea sings blue whales": "201", "sings blue whales!": "201", "腾讯云": "202",
		"「腾讯云」在哪": "202",
	} {
		hits := find(t, m, tool.Query{Text: query, Size: 3})
		if !strings.HasPrefix(ids(hits), want+" ") || hits.List[0].Score <= hits.List[1].Score {
			t.Errorf("%q found %q, want %s first", query, ids(hits), want)
		}
	}
	if got := ids(find(t, m, tool.Query{Text: "the sea sings blue whales", Size: 3, Exclude: []string{"message-201"}})); strings.Contains(got, "201") {
		t.Errorf("an excluded text was lifted: %q", got)
	}
}

func TestSearchPages(t *testing.T) {
	m := newMemIndex()
	for i := range 46 { // ten at the same time
		m.addEntry(message(i+1, "tea", noon.Add(time.Duration(max(i, 10))*time.Minute)))
	}
	for _, text := range []string{"tea", "", "tea tea-time"} {
		var walked []string
		for page := 0; ; page++ {
			hits := find(t, m, tool.Query{Text: text, Page: page, Size: 6})
			if hits.Total != 46 || hits.Page != page || hits.Size != 6 || hits.Pages() != 8 {
				t.Fatalf("page %d: %+v", page, hits)
			}
			if len(hits.List) == 0 {
				break
			}
			walked = append(walked, strings.Fields(ids(hits))...)
		}
		var want []string
		for i := 46; i > 0; i-- {
			want = append(want, fmt.Sprint(i))
		}
		if d := cmp.Diff(want, walked); d != "" {
			t.Errorf("%q: -want +got\n%s", text, d)
		}
	}
	for _, q := range []tool.Query{{Page: 1 << 62, Size: 1 << 62}, {Page: 8, Size: 6}, {Page: 1, Size: 46}, {Page: 1, Size: 1<<63 - 1}} {
		q.Text = "tea"
		if hits := find(t, m, q); hits.Total != 46 || len(hits.List) != 0 {
			t.Errorf("page %d of %d: %+v", q.Page, q.Size, hits)
		}
	}
	if hits := find(t, m, tool.Query{Text: "tea", Page: -1, Size: 0}); len(hits.List) != 5 || hits.Page != 0 {
		t.Errorf("default page: %+v", hits)
	}
}

func TestSearchTakesAnyText(t *testing.T) {
	m := talk("foo bar AND col x", "NOT NEAR select")
	for _, text := range []string{`foo"bar`, "AND", "col:x", "-x", "%", "'", `"`, `""`, `"" ""`, "\x00", "\xff\xfe", "\xed\xa0\x80", "NEAR(", "* OR *", "; DROP TABLE x",
		strings.Repeat("x", 1<<20), strings.Repeat("foo ", 1<<18), strings.Repeat("学校", 1<<18), strings.Repeat(`"foo" `, 1<<16), "\u202e\u200d", "🇩"} {
		find(t, m, tool.Query{Text: text})
	}
	empty := newMemIndex()
	if hits := find(t, empty, tool.Query{Text: "foo"}); hits.Total != 0 || len(hits.List) != 0 {
		t.Errorf("an empty store gave %+v", hits)
	}
	if hits := find(t, empty, tool.Query{}); hits.Total != 0 {
		t.Errorf("an empty store lists %+v", hits)
	}
}

func TestSearchReusesItsBoardClean(t *testing.T) {
	m := talk("tea", "coffee", "tea, coffee", "x")
	s := searcher(t, m)
	for range 3 {
		for query, want := range map[string]string{"tea": "1 3", "coffee": "2 3", "tea coffee": "3 2 1", "tea and coffee": "3 2 1"} {
			hits, err := s.Search(t.Context(), tool.Query{Owner: "a", Text: query})
			if err != nil || ids(hits) != want {
				t.Errorf("%q found %q (%v), want %q", query, ids(hits), err, want)
			}
		}
	}
}

func TestSearchOriginalGone(t *testing.T) {
	m := talk("tea one", "tea two")
	delete(m.owner("", "a").entries, "message-1")
	if hits := find(t, m, tool.Query{Text: "tea"}); ids(hits) != "2" {
		t.Errorf("found %q", ids(hits))
	}
}

// broken fails at the n-th call.
type broken struct {
	*memIndex
	left int
}

var errBroken = errors.New("broken")

func (b *broken) fails() bool { b.left--; return b.left < 0 }

func (b *broken) Stats(ctx context.Context, tenant, owner string, terms []string) (store.Stats, error) {
	if b.fails() {
		return store.Stats{}, errBroken
	}
	return b.memIndex.Stats(ctx, tenant, owner, terms)
}

func (b *broken) Postings(ctx context.Context, tenant, owner, term string, yield func([]store.Posting) bool) error {
	if err := b.memIndex.Postings(ctx, tenant, owner, term, yield); err != nil || b.fails() {
		return errBroken
	}
	return nil
}

func (b *broken) EntriesByID(ctx context.Context, tenant, agent string, ids []string) ([]memgpt.Entry, error) {
	if b.fails() {
		return nil, errBroken
	}
	return b.memIndex.EntriesByID(ctx, tenant, agent, ids)
}

// A store that fails at each call in turn: the error comes through, and leaves nothing on the board for the next query.
func TestSearchPassesErrorsOn(t *testing.T) {
	b := &broken{memIndex: talk("running tea", "tea time")}
	s, err := retrieve.New(retrieve.Config{Index: b, Store: b})
	if err != nil {
		t.Fatal(err)
	}
	q := tool.Query{Owner: "a", Text: "running tea", Tags: nil}
	for n := 0; ; n++ {
		b.left = n
		hits, err := s.Search(t.Context(), q)
		if err == nil {
			if n < 5 || ids(hits) != "1 2" {
				t.Errorf("after %d failures found %q", n, ids(hits))
			}
			break
		}
		if !errors.Is(err, errBroken) {
			t.Fatalf("call %d: %v", n, err)
		}
	}
	b.left = 1 << 30
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Search(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled search gave %v", err)
	}
	if _, err := retrieve.New(retrieve.Config{}); err == nil {
		t.Error("a searcher without a store")
	}
}

func FuzzSearch(f *testing.F) {
	m := talk("The sea sings", "我们在腾讯云上部署了服务", "call 12:30 on 8 May 2023", "don't \"quote\" me", "학교에서")
	s, err := retrieve.New(retrieve.Config{Index: m, Store: m})
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"", `"sea`, "腾讯云", "2023年5月8日", "\xff\"x\"", "may may 8", "12:30:", "「」"} {
		f.Add(text, 0, 3)
	}
	f.Fuzz(func(t *testing.T, text string, page, size int) {
		hits, err := s.Search(t.Context(), tool.Query{Owner: "a", Text: text, Page: page, Size: size})
		if err != nil {
			t.Fatal(err)
		}
		if hits.Total > 5 || len(hits.List) > hits.Total {
			t.Fatalf("%+v", hits)
		}
		if !slices.IsSortedFunc(hits.List, func(a, b tool.Hit) int {
			if a.Score < b.Score {
				return 1
			}
			return 0
		}) {
			t.Fatalf("scores rise: %+v", hits.List)
		}
	})
}
