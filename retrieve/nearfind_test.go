package retrieve_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"memgpt/retrieve"
)

func day(n int) time.Time { return noon.AddDate(0, 0, n) }

func TestNear(t *testing.T) {
	m := newMemIndex()
	for n, text := range []string{
		"I live in Paris",                       // 1
		"I really live in Paris, now",           // 2
		"I live in Berlin",                      // 3
		"My dentist is called Doctor Miller",    // 4
		"I don't live in Paris",                 // 5
		"I LIVE in Paris",                       // 6
		"Paris was sunny and we had ice cream.", // 7
		"I live in Rome",                        // 8
	} {
		m.addPassage(passage(n+1, text, day(n)))
	}
	m.addEntry(message(1, "I live in Paris", day(0)))
	m.kill("passage-8")
	hits, err := searcher(t, m).Near(t.Context(), "", "a", "i live in paris", 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range hits {
		got = append(got, fmt.Sprintf("%s %s %v", h.ID, h.Likeness.Relation, h.Likeness.Diff))
	}
	want := []string{"passage-6 same []", "passage-1 same []", "passage-2 near []", "passage-5 conflict [{ don't negation}]",
		"passage-3 conflict [{paris Berlin name}]"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if hits, err = searcher(t, m).Near(t.Context(), "", "a", "I live in Paris", 2); err != nil || len(hits) != 2 || hits[0].Time != day(5) {
		t.Errorf("two hits: %v, %v", hits, err)
	}
	for _, text := range []string{"", "zebra", "!!!"} {
		if hits, err := searcher(t, m).Near(t.Context(), "", "a", text, 5); err != nil || len(hits) != 0 {
			t.Errorf("near %q: %v, %v", text, hits, err)
		}
	}
}

func TestPiles(t *testing.T) {
	m := newMemIndex()
	for n, text := range []string{
		"I live in Paris",             // 1
		"我喜欢咖啡",                       // 2
		"My dentist is Doctor Miller", // 3
		"I live in Berlin",            // 4
		"I currently live in Paris!",  // 5
		"我非常喜欢咖啡",                     // 6
		"i live in  PARIS",            // 7
		"我不喜欢咖啡",                      // 8
	} {
		m.addPassage(passage(n+1, text, day(n)))
	}
	want := []string{"7 5 1 / ", "6 2 / ", "4 / 4-1", "8 / 8-2"}
	for range 3 {
		if got := piles(t, m); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestPilesKeepRivalsApart has two texts that are near to a third and not to each other.
func TestPilesKeepRivalsApart(t *testing.T) {
	m := newMemIndex()
	for n, size := range []string{"big ", "", "small ", "  "} {
		m.addPassage(passage(n+1, "My sister works as a nurse in a "+size+"hospital downtown", day(n)))
	}
	want := []string{"4 2 1 / ", "3 / 3-1"}
	if got := piles(t, m); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	stop := errors.New("enough")
	n := 0
	err := searcher(t, m).Piles(t.Context(), "", "a", func(retrieve.Pile) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("after %d piles: %v", n, err)
	}
	m.kill("passage-1")
	m.kill("passage-4")
	if got, want := piles(t, m), []string{"3 2 / "}; !slices.Equal(got, want) {
		t.Errorf("two left: got %q, want %q", got, want)
	}
	if err := searcher(t, m).Piles(t.Context(), "other", "a", func(p retrieve.Pile) error { return stop }); err != nil {
		t.Errorf("another tenant: %v", err)
	}
}

// TestNearByRareWords holds that the rarest words of a long text name the candidates, not the commonest.
func TestNearByRareWords(t *testing.T) {
	m := newMemIndex()
	r := rand.New(rand.NewPCG(7, 8))
	log := func(n int) string {
		words := strings.Fields(strings.Repeat("minutes of our weekly council meeting about roads parks schools water budget taxes lights harbour trees library police ", 2))
		for k := range 6 {
			words = slices.Insert(words, r.IntN(len(words)), fmt.Sprintf("topic%c%c%c", 'a'+n/26, 'a'+n%26, 'a'+k))
		}
		return strings.Join(words, " ")
	}
	first := log(0)
	m.addPassage(passage(1, first, day(0)))
	for n := 1; n < 200; n++ {
		m.addPassage(passage(n+1, log(n), day(n)))
	}
	hits, err := searcher(t, m).Near(t.Context(), "", "a", first+", really", 5)
	if err != nil || len(hits) != 1 || hits[0].ID != "passage-1" || hits[0].Likeness.Relation != retrieve.Near {
		t.Errorf("%+v, %v", hits, err)
	}
}

// TestPilesOfLongTexts has more text than is held at once.
func TestPilesOfLongTexts(t *testing.T) {
	m := newMemIndex()
	for n := range 6 {
		text := strings.Repeat(fmt.Sprintf("Word%d of the long text that it fills in part. ", n/2), 9000)
		m.addPassage(passage(n+1, text+map[bool]string{true: "Really."}[n%2 == 1], day(n)))
	}
	if got, want := piles(t, m), []string{"2 1 / ", "4 3 / ", "6 5 / "}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNearInStore holds that a store's own index gives what the maps give.
func TestNearInStore(t *testing.T) {
	texts, _ := repeats(rand.New(rand.NewPCG(5, 6)), 150)
	m := newMemIndex()
	seen := map[string]bool{}
	for n, text := range texts {
		if key := retrieve.SameKey(text); !seen[key] {
			seen[key] = true
			m.addPassage(passage(n+1, text, day(n)))
		}
	}
	db := m.store(t)
	s, err := retrieve.New(retrieve.Config{Index: db, Store: db})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts[:40] {
		got, err := s.Near(t.Context(), "", "a", text, 9)
		if err != nil {
			t.Fatal(err)
		}
		want, err := searcher(t, m).Near(t.Context(), "", "a", text, 9)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Errorf("%q: %v -maps +SQLite\n%s", text, err, d)
		}
	}
}

// piles returns each pile as the numbers of its passages and of its pairs of rivals.
func piles(t testing.TB, m *memIndex) (list []string) {
	t.Helper()
	number := func(id string) string { return strings.TrimPrefix(id, "passage-") }
	err := searcher(t, m).Piles(t.Context(), "", "a", func(p retrieve.Pile) error {
		line := ""
		for _, q := range p.Passages {
			line += number(q.ID) + " "
		}
		line += "/ "
		for _, r := range p.Rivals {
			line += number(r.Of) + "-" + number(r.Passage.ID) + " "
		}
		list = append(list, strings.TrimSuffix(line, " ")+map[bool]string{true: " "}[len(p.Rivals) == 0])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// fact is a statement that a generator can vary: its slots hold what makes it this one.
type fact struct {
	form  int
	slots [4]int
}

// forms say a thing in several ways. %[1]s is a person, %[2]s a place, %[3]s a day and %[4]s a number; a final line
// denies it.
var forms = [][]string{
	{"%[1]s moved to %[2]s on %[3]s with %[4]s boxes", "on %[3]s %[1]s moved to %[2]s with %[4]s boxes",
		"%[1]s really moved to %[2]s on %[3]s with %[4]s big boxes.", "%[1]s didn't move to %[2]s on %[3]s with %[4]s boxes"},
	{"The meeting of %[1]s in %[2]s is on %[3]s in room %[4]s", "On %[3]s the meeting of %[1]s in %[2]s is in room %[4]s",
		"Note: the meeting of %[1]s in %[2]s is on %[3]s, in room %[4]s!", "The meeting of %[1]s in %[2]s is not on %[3]s in room %[4]s"},
	{"%[1]s在%[2]s住了%[4]s年，%[3]s搬家", "%[1]s 在%[2]s住了 %[4]s 年,%[3]s 搬家。", "%[1]s一直在%[2]s住了%[4]s年，%[3]s搬家",
		"%[1]s在%[2]s没住了%[4]s年，%[3]s搬家"},
	{"%[1]sは%[3]sに%[2]sで%[4]s回発表しました", "%[1]sは%[3]sに%[2]sで%[4]s回発表しました。", "%[1]sは%[3]sに本当に%[2]sで%[4]s回発表しました",
		"%[1]sは%[3]sに%[2]sで%[4]s回発表しませんでした"},
}

var (
	people = []string{"Anna", "Bruno", "Chidi", "Dara", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jun"}
	places = []string{"Paris", "Lyon", "Kyoto", "Oslo", "Quito", "Lima", "Accra", "Turin", "Perth", "Delhi"}
	days   = []string{"2024-05-03", "2024-05-04", "2023-05-03", "2024-06-03", "2021-12-24"}
)

func (f fact) say(way int) string {
	return fmt.Sprintf(forms[f.form][way], people[f.slots[0]], places[f.slots[1]], days[f.slots[2]], fmt.Sprint(2+f.slots[3]))
}

// vary changes one slot.
func (f fact) vary(r *rand.Rand) fact {
	sizes := [4]int{len(people), len(places), len(days), 90}
	k := r.IntN(4)
	f.slots[k] = (f.slots[k] + 1 + r.IntN(sizes[k]-1)) % sizes[k]
	return f
}

// inserted is what one insert states.
type inserted struct {
	fact   fact
	denied bool
}

// repeats returns n inserts: facts again word by word, reworded, with one thing changed, and denied.
func repeats(r *rand.Rand, n int) (texts []string, what []inserted) {
	var facts []fact
	for len(texts) < n {
		if len(facts) == 0 || r.IntN(5) == 0 {
			facts = append(facts, fact{r.IntN(len(forms)), [4]int{r.IntN(len(people)), r.IntN(len(places)), r.IntN(len(days)), r.IntN(90)}})
		}
		in := inserted{fact: facts[r.IntN(len(facts))]}
		way := r.IntN(len(forms[0]) - 1)
		switch r.IntN(4) {
		case 0:
			in.fact = in.fact.vary(r)
		case 1:
			in.denied, way = true, len(forms[0])-1
		}
		text := in.fact.say(way)
		if way != 2 && r.IntN(3) == 0 { // an inserted word in capitals might be a name
			text = strings.ToUpper(text) + "  "
		}
		texts, what = append(texts, text), append(what, in)
	}
	return texts, what
}

// TestRepeatedInserts holds that of 5,000 inserts those that say a thing again are taken for the same or near, and
// that none with another number, name, date or with a negation ever is.
func TestRepeatedInserts(t *testing.T) {
	texts, what := repeats(rand.New(rand.NewPCG(1, 2)), 5000)
	m := newMemIndex()
	s := searcher(t, m)
	stored := map[string]int{} // by key
	seen := map[inserted]bool{}
	var exact, again, found, rival, wrong, byID int
	states := map[string]inserted{}
	for i, text := range texts {
		key := retrieve.SameKey(text)
		if _, ok := stored[key]; ok {
			exact++
			continue
		}
		hits, err := s.Near(t.Context(), "", "a", text, 5)
		if err != nil {
			t.Fatal(err)
		}
		near := false
		for _, h := range hits {
			switch h.Likeness.Relation {
			case retrieve.Conflict:
				rival++
			default:
				near = true
				if states[h.ID] != what[i] {
					wrong++
					t.Errorf("%q is taken for %q", text, h.Text)
				}
			}
		}
		if seen[what[i]] {
			again++
			if near {
				found++
			}
		}
		seen[what[i]] = true
		stored[key] = i
		byID++
		p := passage(byID, text, day(i))
		states[p.ID] = what[i]
		m.addPassage(p)
	}
	t.Logf("5,000 inserts: %d repeats, %d stored, %d of these say a thing again and %d of them were found; %d conflicts shown",
		exact, byID, again, found, rival)
	if exact < 1000 || again < 300 || found*100 < again*95 || rival == 0 {
		t.Errorf("%d repeats, %d reworded, %d found, %d conflicts", exact, again, found, rival)
	}
	start := time.Now()
	pilesOf(t, s, states)
	t.Logf("piles of %d passages took %v", byID, time.Since(start).Round(time.Millisecond))
}

// pilesOf holds that no pile has two passages that state different things, and that most that state the same share one.
func pilesOf(t *testing.T, s *retrieve.Searcher, states map[string]inserted) {
	t.Helper()
	total := map[inserted]bool{}
	for _, in := range states {
		total[in] = true
	}
	merged, extra := 0, len(states)-len(total) // passages that a merge would save, at best
	err := s.Piles(t.Context(), "", "a", func(p retrieve.Pile) error {
		for _, q := range p.Passages {
			if states[q.ID] != states[p.Passages[0].ID] {
				t.Errorf("a pile has %q and %q", p.Passages[0].Text, q.Text)
			}
		}
		for k := 1; k < len(p.Passages); k++ {
			if p.Passages[k].Time.After(p.Passages[k-1].Time) {
				t.Errorf("%q stands behind the older %q", p.Passages[k].Text, p.Passages[k-1].Text)
			}
		}
		for _, r := range p.Rivals {
			if states[r.Of] == states[r.Passage.ID] {
				t.Errorf("%q is shown as a rival of its own", r.Passage.Text)
			}
		}
		merged += len(p.Passages) - 1
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("piles would merge %d of %d passages that repeat another", merged, extra)
	if merged*100 < extra*95 {
		t.Errorf("piles merge %d of %d", merged, extra)
	}
}

// TestNearInvented counts what is taken for near among facts that all differ.
func TestNearInvented(t *testing.T) {
	var texts []string
	for _, p := range readPools(t, filepath.Join(sharedData(t), "letta_facts.jsonl")) {
		for _, d := range p.Docs {
			texts = append(texts, d.Text)
		}
	}
	m := newMemIndex()
	for n, text := range texts {
		m.addPassage(passage(n+1, text, day(n)))
	}
	start := time.Now()
	var piled, rivals int
	err := searcher(t, m).Piles(t.Context(), "", "a", func(p retrieve.Pile) error {
		rivals += len(p.Rivals)
		if len(p.Passages) > 1 {
			piled++
			for _, q := range p.Passages {
				t.Logf("pile %d: %s", piled, q.Text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d facts: %d piles, %d pairs of rivals, in %v", len(texts), piled, rivals, time.Since(start).Round(time.Millisecond))
	if piled*1000 > len(texts) {
		t.Errorf("%d piles of facts that differ", piled)
	}
}

// TestCompareLong holds that a number in a text of a megabyte is seen, within a bound of memory and time that a
// quadratic comparison breaks by far.
func TestCompareLong(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	for b.Len() < 1<<20 {
		fmt.Fprintf(&b, "In %s %s bought %d apples of kind %x. ", places[r.IntN(len(places))], people[r.IntN(len(people))], r.IntN(1000), r.IntN(1<<20))
	}
	text := b.String() + "The code is 99887766. " + b.String()[:1000]
	start := time.Now()
	l := retrieve.Compare(text, strings.Replace(text, "99887766", "99887767", 1))
	if l.Relation != retrieve.Conflict || len(l.Diff) != 1 || l.Diff[0] != (retrieve.Change{A: "99887766", B: "99887767", Kind: number}) {
		t.Errorf("a number changed: %v %.4f %v", l.Relation, l.Score, l.Diff)
	}
	if l := retrieve.Compare(text, "Note: "+text+" Indeed!"); l.Relation != retrieve.Near {
		t.Errorf("two fillers more: %v %.4f %v", l.Relation, l.Score, l.Diff)
	}
	if l := retrieve.Compare(text, strings.Repeat("什么都不一样 。", 60000)); l.Relation != retrieve.Different {
		t.Errorf("another text: %v %.4f", l.Relation, l.Score)
	}
	t.Logf("three comparisons of a megabyte took %v", time.Since(start).Round(time.Millisecond))
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("three comparisons took %v", took)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add("I live in Paris", "I don't live in Berlin, 3pm -5% $7 2024-05-03", uint64(7))
	f.Add("我不喜欢2023年5月3日的咖啡", "コーヒーが好きではありません。十二 ٣", uint64(1))
	f.Add("Daily I eat in May", "I may eat in May daily", uint64(3))
	f.Add("İ ﬁ ς don’t \xff\x00 e\u0301 ภาษา 한국어 👍🏽", "May will not. No. 1,000,000 a-b_c@d 8th v2", uint64(2))
	f.Fuzz(func(t *testing.T, a, b string, seed uint64) {
		if l := retrieve.Compare(a, a); l.Relation != retrieve.Same || l.Score != 1 {
			t.Errorf("Compare(a, a) is %+v", l)
		}
		l, m := retrieve.Compare(a, b), retrieve.Compare(b, a)
		if l.Score != m.Score || l.Relation != m.Relation || len(l.Diff) != len(m.Diff) {
			t.Errorf("not symmetric: %+v and %+v", l, m)
		}
		if l.Score < 0 || l.Score > 1 || (l.Relation == retrieve.Conflict) != (len(l.Diff) > 0) {
			t.Errorf("Compare is %+v", l)
		}
		if (retrieve.SameKey(a) == retrieve.SameKey(b)) != (l.Relation == retrieve.Same) {
			t.Errorf("same by key, not by Compare: %+v", l)
		}
		if key := retrieve.SameKey(a); retrieve.SameKey(key) != key {
			t.Errorf("the key of key %q is %q", key, retrieve.SameKey(key))
		}
		words := strings.Fields(a)
		r := rand.New(rand.NewPCG(seed, binary.LittleEndian.Uint64([]byte("shuffled"))))
		r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		retrieve.Compare(a, strings.Join(words, " "))
	})
}
