package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Measures are what the measures of answers come to over some questions. Shares are in per cent, similarities 0 to 1. A
// measure that no question has is nil.
type Measures struct {
	N        int      `json:"n"`
	Evidence *float64 `json:"evidence_in_context,omitempty"`
	// Accuracy is the share of right answers, by what Report.AccuracyBy says. Questions whose answer the material doesn't
	// hold are not in it.
	Accuracy *float64 `json:"accuracy,omitempty"`
	Contains *float64 `json:"contains,omitempty"` // share of answers that hold the expected one word for word
	F1       *float64 `json:"f1,omitempty"`
	RougeL   *float64 `json:"rouge_l,omitempty"` // recall
	// Abstained is the share of questions with an answer in the material to which the agent said that it doesn't know.
	Abstained *float64 `json:"abstained,omitempty"`
	// AbstentionRight is the share of questions without an answer in the material to which it said so.
	AbstentionRight *float64 `json:"abstention_right,omitempty"`
	Sim1            *float64 `json:"sim1,omitempty"`
	Sim3            *float64 `json:"sim3,omitempty"`
	SimH            *float64 `json:"simh,omitempty"`
}

// measureKind is one measure of a record.
type measureKind struct {
	name  string
	share bool // in per cent
	of    func(r *Record) (float64, bool)
	to    func(m *Measures) **float64
}

func ofFlag(b *bool) (float64, bool) {
	if b == nil {
		return 0, false
	}
	return one01(*b), true
}

func one01(b bool) float64 { return float64(one(b)) }

func ofShare(f *float64) (float64, bool) {
	if f == nil {
		return 0, false
	}
	return *f, true
}

// Bases of accuracy.
const (
	ByRule      = "the expected answer said, all evidence in context"
	ByContained = "the expected answer contained word for word"
	ByJudge     = "judge"
)

// accuracyOf is whether an answer is right, by a basis of accuracy.
func accuracyOf(by string) func(r *Record) (float64, bool) {
	return func(r *Record) (float64, bool) {
		v := &r.Verdicts
		switch {
		case r.Abstain || by == "":
			return 0, false
		case by == ByJudge:
			if v.Judge == nil || v.Judge.Failure != "" {
				return 0, false
			}
			return one01(v.Judge.Right), true
		case by == ByContained:
			return ofFlag(v.Contains)
		}
		return ofFlag(v.Right)
	}
}

// measureKinds are all measures, with the basis of accuracy.
func measureKinds(by string) []measureKind {
	return []measureKind{
		{"evidence_in_context", true, func(r *Record) (float64, bool) { return ratio(r.Seen(), r.Gold()), r.Gold() > 0 },
			func(m *Measures) **float64 { return &m.Evidence }},
		{"accuracy", true, accuracyOf(by), func(m *Measures) **float64 { return &m.Accuracy }},
		{"contains", true, func(r *Record) (float64, bool) { return ofFlag(r.Verdicts.Contains) },
			func(m *Measures) **float64 { return &m.Contains }},
		{"f1", true, func(r *Record) (float64, bool) { return ofShare(r.Verdicts.F1) }, func(m *Measures) **float64 { return &m.F1 }},
		{"rouge_l", true, func(r *Record) (float64, bool) { return ofShare(r.Verdicts.RougeL) },
			func(m *Measures) **float64 { return &m.RougeL }},
		{"abstained", true, func(r *Record) (float64, bool) { return one01(r.Verdicts.Abstained), !r.Abstain && !r.opens() },
			func(m *Measures) **float64 { return &m.Abstained }},
		{"abstention_right", true, func(r *Record) (float64, bool) { return one01(r.right()), r.Abstain },
			func(m *Measures) **float64 { return &m.AbstentionRight }},
		{"sim1", false, func(r *Record) (float64, bool) { return ofShare(r.Verdicts.Sim1) }, func(m *Measures) **float64 { return &m.Sim1 }},
		{"sim3", false, func(r *Record) (float64, bool) { return ofShare(r.Verdicts.Sim3) }, func(m *Measures) **float64 { return &m.Sim3 }},
		{"simh", false, func(r *Record) (float64, bool) { return ofShare(r.Verdicts.SimH) }, func(m *Measures) **float64 { return &m.SimH }},
	}
}

// opens reports whether the record is of an opener, which is no answer.
func (r *Record) opens() bool { return r.Suite == SuiteOpener }

// scaled is a mean as it is reported.
func (k *measureKind) scaled(v float64) float64 {
	if k.share {
		return math.Round(v*1e4) / 100
	}
	return places4(v)
}

// values returns a measure of the records that have it.
func (k *measureKind) values(records []Record) (list []float64) {
	for i := range records {
		if v, ok := k.of(&records[i]); ok {
			list = append(list, v)
		}
	}
	return list
}

// Measure adds up the measures of records; by is the basis of accuracy, "" for none.
func Measure(records []Record, by string) Measures {
	m := Measures{N: len(records)}
	for _, k := range measureKinds(by) {
		if list := k.values(records); len(list) > 0 {
			v := k.scaled(average64(list))
			*k.to(&m) = &v
		}
	}
	return m
}

func average64(list []float64) (sum float64) {
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// Intervals returns, for each measure that the records have, the bounds between which 95 of 100 means of resamples of the
// questions lie (Efron's percentile interval), by the name of the measure.
func Intervals(records []Record, by string, seed uint64) map[string][2]float64 {
	out := map[string][2]float64{}
	for _, k := range measureKinds(by) {
		if list := k.values(records); len(list) > 0 {
			low, high := resampled(list, seed)
			out[k.name] = [2]float64{k.scaled(low), k.scaled(high)}
		}
	}
	return out
}

// resampled is the interval of a mean.
func resampled(list []float64, seed uint64) (low, high float64) {
	r := rand.New(rand.NewPCG(seed, resampleSeed))
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range list {
			sum += list[r.IntN(len(list))]
		}
		means[i] = sum / float64(len(list))
	}
	slices.Sort(means)
	const cut = resamples / 40 // 2.5 %
	return means[cut-1], means[resamples-cut]
}

// losses is the share of questions that lost evidence at each place, in per cent.
func losses(records []Record) map[Loss]float64 {
	out := map[Loss]float64{}
	for _, l := range Losses() {
		var m mean
		for i := range records {
			m.count(records[i].Lost == l)
		}
		out[l] = m.percent()
	}
	return out
}

// groups returns the records by group.
func groups(records []Record, of func(*Record) string) map[string][]Record {
	out := map[string][]Record{}
	for i := range records {
		name := of(&records[i])
		out[name] = append(out[name], records[i])
	}
	return out
}
