package eval

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// comparedRecord is a record of question n with a verdict by word and evidence that was shown or not.
func comparedRecord(n int, contains, shown bool) Record {
	return Record{Version: RecordVersion, Suite: SuiteDMR, Mode: ModeMemGPT, Model: "m", Window: 4096, Case: "c", Question: fmt.Sprint("q", n),
		Group: []string{"odd", "even"}[n%2], QuestionHash: HashQuestion(fmt.Sprint("question ", n)), Expected: "plums", Answer: fmt.Sprint("answer ", n),
		Verdicts: Verdicts{Contains: &contains}, Evidence: []Piece{{ID: "e", Stored: true, Shown: shown}}, Input: 100, Lost: LostNotFound}
}

// comparedRuns are ten questions of which the second run loses 0 and 1, gains 2 to 4, and has 5 and 6 like the first.
func comparedRuns() (a, b []Record) {
	for n := range 10 {
		a = append(a, comparedRecord(n, n == 0 || n == 1 || n == 5 || n == 6, true))
		b = append(b, comparedRecord(n, n >= 2 && n <= 6, n != 9))
	}
	for i := range b {
		b[i].Input = 150
	}
	return a, b
}

func diffNamed(t *testing.T, list []MeasureDiff, name string) MeasureDiff {
	t.Helper()
	for _, d := range list {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("there is no measure %q in %+v", name, list)
	return MeasureDiff{}
}

func TestCompareCountsPairs(t *testing.T) {
	a, b := comparedRuns()
	c, err := Compare(a, b, "")
	if err != nil {
		t.Fatal(err)
	}
	d := diffNamed(t, c.Measures, CompareContains)
	if *d.Counts != (PairCounts{Both: 2, Lost: 2, Gained: 3, Neither: 3}) || d.A != 40 || d.B != 50 || d.Diff != 10 || d.Low > 10 || d.High < 10 {
		t.Errorf("%+v, %+v", d, *d.Counts)
	}
	if p, mid := McNemar(2, 3); *d.P != p || *d.MidP != mid || p < .999 {
		t.Errorf("p %v, mid %v", *d.P, *d.MidP)
	}
	if d := diffNamed(t, c.Measures, CompareAll); *d.Counts != (PairCounts{Both: 9, Lost: 1}) {
		t.Errorf("%+v", *d.Counts)
	}
	if d := diffNamed(t, c.Measures, "tokens"); d.Counts != nil || d.Diff != 50 || d.Low != 50 || d.High != 50 {
		t.Errorf("each question takes 50 tokens more: %+v", d)
	}
	if len(c.Categories) != 2 || c.Categories[0].Category != "even" {
		t.Fatalf("%+v", c.Categories)
	}
	even := diffNamed(t, c.Categories[0].Measures, CompareContains) // questions 1, 3, 5, 7, 9
	if *even.Counts != (PairCounts{Both: 1, Lost: 1, Gained: 1, Neither: 2}) || *even.Holm < *even.P {
		t.Errorf("%+v, %+v", even, *even.Counts)
	}
	if len(c.Differ) != 0 || c.Paired != 10 || c.OnlyA+c.OnlyB != 0 {
		t.Errorf("%+v", c)
	}
}

func TestCompareListsLostQuestionsFirst(t *testing.T) {
	a, b := comparedRuns()
	c, err := Compare(a, b, CompareContains)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range c.Questions {
		got = append(got, fmt.Sprint(q.Question, " ", q.Lost))
	}
	if want := "c / q0 true,c / q1 true,c / q2 false,c / q3 false,c / q4 false"; strings.Join(got, ",") != want {
		t.Errorf("%v", got)
	}
	var out bytes.Buffer
	if err := c.WriteText(&out, 3); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"2 lost, 3 gained", "lost  c / q0 (odd)", "answer 0  [evidence not found]", "… 2 more", "Holm", "expected  plums"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("there is no %q in\n%s", part, out.String())
		}
	}
	if strings.Contains(out.String(), "c / q4") {
		t.Error("more questions are listed than the limit says")
	}
}

// A planted change of a question's words takes the question out; a question that one run lacks is counted; and what else
// differs is told.
func TestCompareTellsWhatIsNotTheSame(t *testing.T) {
	a, b := comparedRuns()
	b[3].QuestionHash = HashQuestion("another question")
	b[4].Expected = "pears"
	a, b = a[1:], b[:9]
	for i := range b {
		b[i].Window, b[i].Seed, b[i].Policy = 8192, 4, "alert=0.9"
	}
	c, err := Compare(a, b, "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Paired != 7 || c.OnlyA != 1 || c.OnlyB != 1 || c.Regold != 1 || len(c.Changed) != 1 || c.Changed[0] != "c / q3" {
		t.Errorf("%+v", c)
	}
	if got := strings.Join(c.Differ, "; "); got != "window 4096 and 8192; seed 0 and 4; policy default and alert=0.9" {
		t.Errorf("what differs: %s", got)
	}
}

// With several numbers of hits each question counts once.
func TestCompareOneNumberOfHits(t *testing.T) {
	var a, b []Record
	for _, k := range []int{1, 10} {
		x, y := comparedRuns()
		for i := range x {
			x[i].K, y[i].K = k, k
		}
		a, b = append(a, x...), append(b, y...)
	}
	c, err := Compare(a, b, "")
	if err != nil {
		t.Fatal(err)
	}
	if d := diffNamed(t, c.Measures, CompareContains); c.Hits != 10 || c.Paired != 10 || d.N != 10 {
		t.Errorf("%d hits, %d pairs, %+v", c.Hits, c.Paired, d)
	}
}

func TestCompareRefuses(t *testing.T) {
	a, b := comparedRuns()
	change := func(f func(list []Record)) []Record {
		list := append([]Record(nil), b...)
		f(list)
		return list
	}
	for want, second := range map[string][]Record{
		"no record":                             nil,
		"c / q1 twice":                          change(func(l []Record) { l[2].Question = "q1" }),
		"not of one run":                        change(func(l []Record) { l[2].Mode = ModeRAG }),
		"of suite dmr and the second of locomo": change(func(l []Record) { allRecords(l, func(r *Record) { r.Suite = SuiteLocomo }) }),
		"share no question":                     change(func(l []Record) { allRecords(l, func(r *Record) { r.Case = "other" }) }),
		"(suite dmr and locomo":                 change(func(l []Record) { l[4].Suite = SuiteLocomo }),
	} {
		if _, err := Compare(a, second, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := Compare(a, b, CompareJudge); err == nil || !strings.Contains(err.Error(), CompareContains) {
		t.Errorf("a measure that no run has: %v", err)
	}
}

func allRecords(list []Record, f func(*Record)) {
	for i := range list {
		f(&list[i])
	}
}
