package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// RetrievalReport is what [Retrieval] measured.
type RetrievalReport struct {
	Files []FileReport `json:"files"`
}

// FileReport is what was measured on one file.
type FileReport struct {
	File string `json:"file"` // as it was named
	Ranking
	Categories map[string]Ranking `json:"categories"` // those with evidence
	Floor      Floor              `json:"floor"`
	Stores     int                `json:"stores"`
	Docs       int                `json:"docs"`
	// GoldMissing counts the pieces of evidence that the data names and doesn't have. They are left out, and with them the
	// LeftOut questions of which all evidence is missing.
	GoldMissing int       `json:"gold_missing"`
	LeftOut     int       `json:"left_out"`
	Ablation    []Ablated `json:"ablation,omitempty"`
}

// Ranking is how well evidence ranks. Ranges hold the means of 95 of 100 resamples of the questions.
type Ranking struct {
	Queries     int                 `json:"queries"` // questions with evidence; all figures are of them
	Recall      ByDepth[float64]    `json:"recall"`  // mean share of a question's evidence in the first k, in per cent
	RecallRange ByDepth[[2]float64] `json:"recall_95"`
	MRR         float64             `json:"mrr"` // mean of 1/rank of the first piece of evidence, 0 beyond the first 20
	MRRRange    [2]float64          `json:"mrr_95"`
	// P50 and P95 are how long a search took, in milliseconds: the search alone, its question embedded before.
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
}

// ByDepth holds a value for each k of R@k: 1, 5, 10 and 20. In JSON it is an object with these keys.
type ByDepth[T any] [len(depths)]T

// MarshalJSON implements json.Marshaler.
func (d ByDepth[T]) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, v := range d {
		value, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out = append(fmt.Appendf(out, `"%d":`, depths[i]), value...)
		out = append(out, ',')
	}
	out[len(out)-1] = '}'
	return out, nil
}

// Floor is what the floor does under which hits are not shown.
type Floor struct {
	Ranked  int `json:"ranked"`           // questions with evidence among the first 20
	Hidden  int `json:"hidden"`           // those of them where the floor hides some of it
	Without int `json:"without_evidence"` // questions that have no evidence
	Shown   int `json:"shown"`            // those of them for which something is shown all the same
}

// Ablated is the recall of a variant of the search.
type Ablated struct {
	Name   string           `json:"name"`
	Recall ByDepth[float64] `json:"recall"`
}

func fileReport(s *set, list []answered) FileReport {
	rep := FileReport{File: s.file, Ranking: rank(list), Categories: map[string]Ranking{}, Stores: len(s.pools)}
	for _, p := range s.pools {
		rep.Docs += len(p.lines)
	}
	groups := map[string][]answered{}
	for _, a := range list {
		rep.count(&a)
		if a.gold > 0 {
			groups[a.group] = append(groups[a.group], a)
		}
	}
	for name, group := range groups {
		rep.Categories[name] = rank(group)
	}
	return rep
}

func (r *FileReport) count(a *answered) {
	r.GoldMissing += a.faults
	switch {
	case a.gold > 0:
		r.Floor.Ranked += one(len(a.ranks) > 0)
		r.Floor.Hidden += one(a.hidden)
	case a.faults > 0:
		r.LeftOut++
	default:
		r.Floor.Without++
		r.Floor.Shown += one(a.shown)
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// scores are a question's shares of evidence by depth, and the inverse of the first rank.
type scores [len(depths) + 1]float64

func (a *answered) scores() (s scores) {
	for i, k := range depths {
		n := 0
		for _, r := range a.ranks {
			n += one(r <= k)
		}
		s[i] = float64(n) / float64(a.gold)
	}
	if len(a.ranks) > 0 {
		s[len(depths)] = 1 / float64(a.ranks[0])
	}
	return s
}

// rank adds up the questions that have evidence.
func rank(list []answered) (r Ranking) {
	var all []scores
	var took []time.Duration
	for i := range list {
		if list[i].gold > 0 {
			all, took = append(all, list[i].scores()), append(took, list[i].took)
		}
	}
	r.Queries = len(all)
	if r.Queries == 0 {
		return r
	}
	means := average(all)
	low, high := bootstrap(all)
	for i := range depths {
		r.Recall[i], r.RecallRange[i] = round(100*means[i], 2), [2]float64{round(100*low[i], 2), round(100*high[i], 2)}
	}
	m := len(depths)
	r.MRR, r.MRRRange = round(means[m], 4), [2]float64{round(low[m], 4), round(high[m], 4)}
	slices.Sort(took)
	r.P50, r.P95 = quantile(took, .5), quantile(took, .95)
	return r
}

func average(all []scores) (m scores) {
	for _, s := range all {
		for i, v := range s {
			m[i] += v
		}
	}
	for i := range m {
		m[i] /= float64(len(all))
	}
	return m
}

// resamples is how often the questions are drawn anew for an interval, and resampleSeed makes runs repeat.
const (
	resamples    = 1000
	resampleSeed = 1
)

// bootstrap returns the bounds between which 95 % of the means lie of samples drawn from all with replacement (Efron's
// percentile interval).
func bootstrap(all []scores) (low, high scores) {
	r := rand.New(rand.NewPCG(resampleSeed, resampleSeed))
	var means [len(scores{})][]float64
	drawn := make([]scores, len(all))
	for range resamples {
		for i := range drawn {
			drawn[i] = all[r.IntN(len(all))]
		}
		for i, v := range average(drawn) {
			means[i] = append(means[i], v)
		}
	}
	const cut = resamples / 40 // 2.5 %
	for i := range means {
		slices.Sort(means[i])
		low[i], high[i] = means[i][cut-1], means[i][resamples-cut]
	}
	return low, high
}

// quantile returns the smallest of the sorted durations that a share q of them doesn't pass, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return round(float64(sorted[i])/float64(time.Millisecond), 3)
}

func round(v float64, places int) float64 {
	unit := math.Pow10(places)
	return math.Round(v*unit) / unit
}

// WriteJSON writes the report as one JSON object on one line.
func (r *RetrievalReport) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteText writes the report as tables for a person.
func (r *RetrievalReport) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row(t, "file", "category", "queries", "R@1", "R@5", "R@10", "R@20", "MRR", "p50 ms", "p95 ms")
	for i := range r.Files {
		f := &r.Files[i]
		f.Ranking.write(t, f.name(), "all")
		for _, name := range slices.Sorted(maps.Keys(f.Categories)) {
			c := f.Categories[name]
			c.write(t, "", name)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := r.writeFloor(w); err != nil {
		return err
	}
	return r.writeAblation(w)
}

func row(w io.Writer, cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) }

func (f *FileReport) name() string { return filepath.Base(f.File) }

func (r *Ranking) write(w io.Writer, file, category string) {
	cells := []string{file, category, fmt.Sprint(r.Queries)}
	if r.Queries == 0 {
		row(w, append(cells, "-", "-", "-", "-", "-", "-", "-")...)
		return
	}
	for i, v := range r.Recall {
		cells = append(cells, fmt.Sprintf("%.1f (%.1f-%.1f)", v, r.RecallRange[i][0], r.RecallRange[i][1]))
	}
	row(w, append(cells, fmt.Sprintf("%.3f (%.3f-%.3f)", r.MRR, r.MRRRange[0], r.MRRRange[1]), fmt.Sprintf("%.2f", r.P50),
		fmt.Sprintf("%.2f", r.P95))...)
}

// writeFloor writes what the floor does, and what was left out of the figures.
func (r *RetrievalReport) writeFloor(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row(t, "\nfile", "floor hides evidence", "shown without evidence", "evidence missing", "questions left out")
	for i := range r.Files {
		f := &r.Files[i]
		row(t, f.name(), part(f.Floor.Hidden, f.Floor.Ranked), part(f.Floor.Shown, f.Floor.Without), fmt.Sprint(f.GoldMissing),
			fmt.Sprint(f.LeftOut))
	}
	return t.Flush()
}

func part(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d (%.1f %%)", n, of, 100*float64(n)/float64(of))
}

func (r *RetrievalReport) writeAblation(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range r.Files {
		f := &r.Files[i]
		if len(f.Ablation) == 0 {
			continue
		}
		row(t, "\nfile", "variant", "R@5", "R@10", "R@20")
		for _, a := range slices.Insert(slices.Clone(f.Ablation), 0, Ablated{Name: "all parts", Recall: f.Recall}) {
			row(t, f.name(), a.Name, fmt.Sprintf("%.1f", a.Recall[1]), fmt.Sprintf("%.1f", a.Recall[2]), fmt.Sprintf("%.1f", a.Recall[3]))
		}
	}
	return t.Flush()
}
