package eval

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"memgpt"
)

// CompareSide is one of two runs that are compared.
type CompareSide struct {
	Name   string `json:"name,omitempty"` // where its records were read
	N      int    `json:"n"`
	Mode   Mode   `json:"mode"`
	Model  string `json:"model"`
	Window int    `json:"window"`
	Seed   uint64 `json:"seed"`
	Policy string `json:"policy,omitempty"` // what differs from the default policies
	Judge  string `json:"judge,omitempty"`  // model and version of the instructions; "" where nobody judged
	Failed int    `json:"failed"`           // questions in which the model failed
}

// Comparison holds two runs of the same questions against each other. Differences are of the second less the first.
type Comparison struct {
	Suite string      `json:"suite"`
	A     CompareSide `json:"a"`
	B     CompareSide `json:"b"`
	// Differ names what differs between the runs beside their results: mode, model, window, seed, policy, judge.
	Differ []string `json:"differ,omitempty"`

	Paired int `json:"paired"` // questions of both, in the same words
	OnlyA  int `json:"only_a"` // questions that only the first has
	OnlyB  int `json:"only_b"` // questions that only the second has
	Regold int `json:"regold"` // pairs whose expected answers or kinds differ: their verdicts are measured against different things
	// Hits is the number of hits whose records are compared, where a run has several; 0 elsewhere.
	Hits int `json:"hits,omitempty"`
	// Changed are the questions whose words differ. They are left out.
	Changed []string `json:"changed_questions,omitempty"`

	Measures   []MeasureDiff  `json:"measures"`
	Categories []CategoryDiff `json:"categories"`
	// By is the measure that Questions are about; "" where the runs share none.
	By string `json:"by"`
	// Questions are those whose By changed, the lost ones first.
	Questions []QuestionDiff `json:"questions"`
}

// MeasureDiff is how a measure differs over the questions for which both runs have it. Of yes-or-no measures and other
// shares A, B and Diff are in per cent, of similarities 0 to 1, of all else as it is counted.
type MeasureDiff struct {
	Name string  `json:"name"`
	N    int     `json:"n"`
	A    float64 `json:"a"`
	B    float64 `json:"b"`
	Diff float64 `json:"diff"`
	// Low and High are the bounds between which 95 of 100 resamples of the pairs lie.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Counts holds the questions of a yes-or-no measure, and P the test of its difference; nil of others.
	Counts *PairCounts `json:"counts,omitempty"`
	P      *float64    `json:"p,omitempty"`      // McNemar, exact
	MidP   *float64    `json:"mid_p,omitempty"`  // McNemar, mid-p
	Holm   *float64    `json:"p_holm,omitempty"` // of categories: P adjusted for how many there are
}

// PairCounts is the table of a yes-or-no measure.
type PairCounts struct {
	Both    int `json:"both"`
	Lost    int `json:"lost"`   // only the first
	Gained  int `json:"gained"` // only the second
	Neither int `json:"neither"`
}

// CategoryDiff is how the yes-or-no measures differ in one category or level.
type CategoryDiff struct {
	Category string        `json:"category"`
	Measures []MeasureDiff `json:"measures"`
}

// QuestionDiff is a question of which one run has what the other has not.
type QuestionDiff struct {
	Question string `json:"question"` // case and id, with variant and number of hits where there are any
	Category string `json:"category"`
	Lost     bool   `json:"lost"` // the first has it and the second not; else the other way round
	Expected string `json:"expected"`
	AnswerA  string `json:"answer_a"`
	AnswerB  string `json:"answer_b"`
	LossA    Loss   `json:"loss_a"`
	LossB    Loss   `json:"loss_b"`
}

// compared is a measure by which runs are compared.
type compared struct {
	name  string
	scale float64 // to what is printed
	yesNo bool
	of    func(r *Record) (float64, bool)
}

// Measures of a comparison: those of yes or no, and what replies cost.
const (
	CompareJudge    = "right by judge"
	CompareRule     = "right by rule"
	CompareContains = "answer contained"
	CompareAbstain  = "abstained rightly"
	CompareAll      = "all evidence in context"
	CompareAny      = "any evidence in context"

	CompareCost = "cost" // in dollars
)

// comparedMeasures are all of them, those first that say most about an answer.
func comparedMeasures() []compared {
	known := func(v func(*Record) float64) func(*Record) (float64, bool) {
		return func(r *Record) (float64, bool) { return v(r), true }
	}
	gold := func(v func(*Record) float64) func(*Record) (float64, bool) {
		return func(r *Record) (float64, bool) { return v(r), r.Gold() > 0 }
	}
	list := []compared{
		{CompareJudge, 100, true, accuracyOf(ByJudge)},
		{CompareRule, 100, true, accuracyOf(ByRule)},
		{CompareContains, 100, true, accuracyOf(ByContained)},
		{CompareAbstain, 100, true, func(r *Record) (float64, bool) { return one01(r.right()), r.Abstain }},
		{CompareAll, 100, true, gold(func(r *Record) float64 { return one01(r.Seen() == r.Gold()) })},
		{CompareAny, 100, true, gold(func(r *Record) float64 { return one01(r.Seen() > 0) })},
	}
	for _, k := range measureKinds("") {
		scale := 1.0
		switch {
		case k.name == "accuracy" || k.name == "contains" || strings.HasPrefix(k.name, "abst"):
			continue // above, or no matter of right and wrong
		case k.share:
			scale = 100
		}
		list = append(list, compared{k.name, scale, false, k.of})
	}
	return append(list,
		compared{"tokens", 1, false, known(func(r *Record) float64 { return float64(r.Input) })},
		compared{"output", 1, false, known(func(r *Record) float64 { return float64(r.Output) })},
		compared{CompareCost, 1, false, func(r *Record) (float64, bool) { return ofShare(r.Cost) }},
		compared{"searches", 1, false, known(func(r *Record) float64 { return float64(r.Searches) })},
		compared{"steps", 1, false, known(func(r *Record) float64 { return float64(r.Steps) })})
}

// compareKey names a question in a run.
type compareKey struct {
	variant, c, question string
	k                    int
}

func (r *Record) compareKey() compareKey { return compareKey{r.Variant, r.Case, r.Question, r.K} }

func (k compareKey) String() string {
	text := k.c + " / " + k.question
	if k.variant != "" {
		text += ", " + k.variant
	}
	if k.k > 0 {
		text += fmt.Sprintf(", %d hits", k.k)
	}
	return text
}

// recordPair is one question in two runs.
type recordPair struct{ a, b *Record }

// Compare holds two runs of the same suite against each other, question by question. by names the measure whose changed
// questions are listed; "" is the one that says most of those that both runs have. It fails where a side has no records,
// where it has a question twice or is of more than one run, and where the sides are of different suites.
func Compare(a, b []Record, by string) (*Comparison, error) {
	c := &Comparison{}
	var err error
	if c.A, err = compareSide(a); err != nil {
		return nil, fmt.Errorf("the first run: %w", err)
	}
	if c.B, err = compareSide(b); err != nil {
		return nil, fmt.Errorf("the second run: %w", err)
	}
	if c.Suite = a[0].Suite; c.Suite != b[0].Suite {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "the first run is of suite %s and the second of %s: their questions have nothing in common; compare"+
			" runs of one suite", c.Suite, b[0].Suite)
	}
	c.Differ = differing(&c.A, &c.B)
	pairs := c.pair(a, b)
	if len(pairs) == 0 {
		return nil, memgpt.Errorf(memgpt.CodeInvalid, "the runs share no question: %d are only in the first, %d only in the second, and of %d the words"+
			" changed; compare runs on the same data", c.OnlyA, c.OnlyB, len(c.Changed))
	}
	pairs = c.headline(pairs)
	c.measure(pairs)
	return c, c.list(pairs, by)
}

// headline leaves of a question that was asked with several numbers of hits the one by which a report begins: the others
// are no questions of their own, and would make every difference look surer than it is.
func (c *Comparison) headline(pairs []recordPair) []recordPair {
	var ks []int
	for _, p := range pairs {
		ks = append(ks, p.a.K)
	}
	ks = slices.Compact(slices.Sorted(slices.Values(ks)))
	if len(ks) < 2 {
		return pairs
	}
	c.Hits = (&Config{Ks: ks}).headline()
	pairs = slices.DeleteFunc(pairs, func(p recordPair) bool { return p.a.K != c.Hits })
	c.Paired = len(pairs)
	return pairs
}

// compareSide says what a run was, and refuses records that are not those of one run.
func compareSide(records []Record) (s CompareSide, err error) {
	if len(records) == 0 {
		return s, memgpt.Errorf(memgpt.CodeInvalid, "there is no record in it; a run that was stopped before its first question leaves none")
	}
	seen := map[compareKey]bool{}
	for i := range records {
		r := &records[i]
		one := CompareSide{N: len(records), Mode: r.Mode, Model: r.Model, Window: r.Window, Seed: r.Seed, Policy: r.Policy}
		if i == 0 {
			s = one
		} else if is := differing(&s, &one); len(is) > 0 || r.Suite != records[0].Suite {
			return s, memgpt.Errorf(memgpt.CodeInvalid, "records 1 and %d are not of one run (suite %s and %s; %s); keep each run's records in a file of its own",
				i+1, records[0].Suite, r.Suite, strings.Join(is, "; "))
		}
		if seen[r.compareKey()] {
			return s, memgpt.Errorf(memgpt.CodeInvalid, "it has the question %s twice; keep each run's records in a file of its own", r.compareKey())
		}
		seen[r.compareKey()] = true
	}
	for i := range records {
		s.Failed += one(records[i].Failure != "")
		if j := records[i].Verdicts.Judge; j != nil && s.Judge == "" {
			s.Judge = j.Model + ", instructions " + j.Prompt
		}
	}
	return s, nil
}

// differing names what differs between runs.
func differing(a, b *CompareSide) (list []string) {
	add := func(name string, x, y any) {
		if x != y {
			list = append(list, fmt.Sprintf("%s %v and %v", name, x, y))
		}
	}
	add("mode", a.Mode, b.Mode)
	add("model", a.Model, b.Model)
	add("window", a.Window, b.Window)
	add("seed", a.Seed, b.Seed)
	add("policy", cmp.Or(a.Policy, "default"), cmp.Or(b.Policy, "default"))
	add("judge", cmp.Or(a.Judge, "nobody"), cmp.Or(b.Judge, "nobody"))
	return list
}

// pair finds the questions of both, in the order of the first, and counts all others.
func (c *Comparison) pair(a, b []Record) (pairs []recordPair) {
	other := make(map[compareKey]*Record, len(b))
	for i := range b {
		other[b[i].compareKey()] = &b[i]
	}
	for i := range a {
		key := a[i].compareKey()
		match, ok := other[key]
		delete(other, key)
		switch {
		case !ok:
			c.OnlyA++
		case match.QuestionHash != a[i].QuestionHash:
			c.Changed = append(c.Changed, key.String())
		default:
			c.Regold += one(match.Expected != a[i].Expected || match.Abstain != a[i].Abstain || match.Gold() != a[i].Gold())
			pairs = append(pairs, recordPair{&a[i], match})
		}
	}
	c.OnlyB, c.Paired = len(other), len(pairs)
	return pairs
}

// measure compares by each measure, over all and by category.
func (c *Comparison) measure(pairs []recordPair) {
	byCategory := map[string][]recordPair{}
	for _, p := range pairs {
		byCategory[p.a.Group] = append(byCategory[p.a.Group], p)
	}
	names := slices.Sorted(maps.Keys(byCategory))
	c.Categories = make([]CategoryDiff, len(names))
	for i, name := range names {
		c.Categories[i].Category = name
	}
	for _, m := range comparedMeasures() {
		d, ok := m.diff(pairs, c.A.Seed)
		if !ok {
			continue
		}
		c.Measures = append(c.Measures, d)
		if !m.yesNo {
			continue
		}
		var ps []float64
		var at []*MeasureDiff
		for i, name := range names {
			if d, ok := m.diff(byCategory[name], c.A.Seed); ok {
				list := &c.Categories[i].Measures
				*list = append(*list, d)
				ps, at = append(ps, *d.P), append(at, &(*list)[len(*list)-1])
			}
		}
		for i, p := range Holm(ps) {
			at[i].Holm = &p
		}
	}
}

// diff compares by one measure. It reports false where no pair has it.
func (m *compared) diff(pairs []recordPair, seed uint64) (d MeasureDiff, ok bool) {
	d.Name = m.name
	var counts PairCounts
	var as, bs, diffs []float64
	for _, p := range pairs {
		a, inA := m.of(p.a)
		b, inB := m.of(p.b)
		if !inA || !inB {
			continue
		}
		as, bs, diffs = append(as, a), append(bs, b), append(diffs, b-a)
		switch {
		case a > b:
			counts.Lost++
		case b > a:
			counts.Gained++
		case a > 0:
			counts.Both++
		default:
			counts.Neither++
		}
	}
	if d.N = len(diffs); d.N == 0 {
		return d, false
	}
	low, high := resampled(diffs, seed)
	d.A, d.B, d.Diff, d.Low, d.High = m.shown(average64(as)), m.shown(average64(bs)), m.shown(average64(diffs)), m.shown(low), m.shown(high)
	if m.yesNo {
		p, mid := McNemar(counts.Lost, counts.Gained)
		d.Counts, d.P, d.MidP = &counts, &p, &mid
	}
	return d, true
}

func (m *compared) shown(v float64) float64 {
	places := 1e2
	if m.name == CompareCost {
		places = 1e6
	}
	if m.scale == 1 && strings.HasPrefix(m.name, "sim") {
		places = 1e4
	}
	return math.Round(v*m.scale*places) / places
}

// list fills in the questions that changed.
func (c *Comparison) list(pairs []recordPair, by string) error {
	var shared []string
	for _, d := range c.Measures {
		if d.Counts != nil {
			shared = append(shared, d.Name)
		}
	}
	switch {
	case by != "" && !slices.Contains(shared, by):
		return memgpt.Errorf(memgpt.CodeInvalid, "questions can't be listed by %q; what both runs have is %s", by, strings.Join(shared, ", "))
	case by == "" && len(shared) == 0:
		return nil
	}
	c.By = cmp.Or(by, append(shared, "")[0])
	all := comparedMeasures()
	m := all[slices.IndexFunc(all, func(m compared) bool { return m.name == c.By })]
	for _, p := range pairs {
		a, inA := m.of(p.a)
		b, inB := m.of(p.b)
		if !inA || !inB || a == b {
			continue
		}
		c.Questions = append(c.Questions, QuestionDiff{Question: p.a.compareKey().String(), Category: p.a.Group, Lost: a > b, Expected: p.a.Expected,
			AnswerA: p.a.Answer, AnswerB: p.b.Answer, LossA: p.a.Lost, LossB: p.b.Lost})
	}
	slices.SortStableFunc(c.Questions, func(x, y QuestionDiff) int { return one(y.Lost) - one(x.Lost) })
	return nil
}
