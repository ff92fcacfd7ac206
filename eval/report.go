package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"memgpt"
)

// Report is what a run measured. Shares are in per cent, 0 to 100, rounded to two places.
type Report struct {
	Suite  string `json:"suite"`
	Mode   Mode   `json:"mode"`
	Model  string `json:"model"`
	Window int    `json:"window"`
	Search bool   `json:"search"` // the model had the functions that bring stored texts back
	N      int    `json:"n"`      // questions asked
	// WithoutEvidence counts the questions of the data that name no evidence; they are not asked and not in N.
	WithoutEvidence int `json:"without_evidence"`
	// GoldMissing counts the pieces of evidence that the data names and doesn't have, in the questions of N.
	GoldMissing int `json:"gold_missing"`

	// Evidence is the mean over the questions of the share of their evidence that was in context.
	Evidence float64 `json:"evidence_in_context"`
	Any      float64 `json:"any"`      // questions of which at least one piece of evidence was in context
	All      float64 `json:"all"`      // questions of which all evidence was
	Answered float64 `json:"answered"` // questions to which the agent said something, right or not
	// Accuracy is the share of questions that were answered rightly; nil where the suite doesn't judge answers.
	Accuracy *float64 `json:"accuracy,omitempty"`
	Failed   int      `json:"failed"` // questions in which the model failed; they count as they stood then

	Searches float64 `json:"searches"` // a question
	Steps    float64 `json:"steps"`    // a question
	Tokens   float64 `json:"tokens"`   // of all requests of a question, by our own count
	Seconds  float64 `json:"seconds"`  // of the whole run; set by whoever timed it
	// Prefetch tells what the system looked up; nil where the mode has it look for nothing.
	Prefetch *PrefetchReport `json:"prefetch,omitempty"`

	// ByCategory holds the share of evidence in context, ByLevel the accuracy. One of them is set.
	ByCategory  map[string]float64 `json:"by_category,omitempty"`
	NByCategory map[string]int     `json:"n_by_category,omitempty"`
	ByLevel     map[string]float64 `json:"by_level,omitempty"`
	NByLevel    map[string]int     `json:"n_by_level,omitempty"`

	// Records are the questions one by one, in the order of the data.
	Records []Record `json:"-"`
}

// report adds the outcomes up.
func (r *runner) report(outcomes []Record) (*Report, error) {
	rep := &Report{Suite: r.suite.Name, Mode: r.cfg.Mode, Model: r.cfg.Model.Capabilities().Name, Window: r.cfg.Window, Search: r.cfg.Mode.searches(),
		N: len(outcomes), WithoutEvidence: r.suite.Skipped(), Records: outcomes}
	var evidence, some, all, answered, right, searches, steps, tokens mean
	groups := map[string]*mean{}
	failure := ""
	for i := range outcomes {
		o := &outcomes[i]
		share := ratio(o.Seen(), o.Gold())
		evidence.add(share)
		some.count(o.Seen() > 0)
		all.count(o.Seen() == o.Gold())
		answered.count(o.Spoke)
		right.count(o.right())
		searches.add(float64(o.Searches))
		steps.add(float64(o.Steps))
		tokens.add(float64(o.Input))
		if groups[o.Group] == nil {
			groups[o.Group] = new(mean)
		}
		if r.suite.Scored {
			groups[o.Group].count(o.right())
		} else {
			groups[o.Group].add(share)
		}
		rep.GoldMissing += o.Faults
		if o.Failure != "" {
			rep.Failed++
			failure = o.Failure
		}
	}
	if rep.Failed == rep.N {
		return nil, memgpt.Errorf(memgpt.CodeModelRequest, "run suite %s: the model failed in every question, at last: %s", r.suite.Name, failure)
	}
	rep.Evidence, rep.Any, rep.All, rep.Answered = evidence.percent(), some.percent(), all.percent(), answered.percent()
	rep.Searches, rep.Steps, rep.Tokens = searches.value(), steps.value(), tokens.value()
	if r.suite.Scored {
		accuracy := right.percent()
		rep.Accuracy = &accuracy
	}
	if r.cfg.Mode.prefetches() {
		rep.Prefetch = reportPrefetch(r.cfg.Budget, outcomes)
	}
	rep.group(r.suite.Levels, groups)
	return rep, nil
}

func (r *Report) group(levels bool, groups map[string]*mean) {
	by, n := map[string]float64{}, map[string]int{}
	for name, m := range groups {
		by[name], n[name] = m.percent(), m.n
	}
	if levels {
		r.ByLevel, r.NByLevel = by, n
	} else {
		r.ByCategory, r.NByCategory = by, n
	}
}

// mean is an average on its way.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) {
	m.sum += v
	m.n++
}

func (m *mean) count(yes bool) {
	if yes {
		m.sum++
	}
	m.n++
}

// ratio is a share of which none of none is all.
func ratio(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}

func (m *mean) value() float64   { return math.Round(100*m.sum/float64(max(m.n, 1))) / 100 }
func (m *mean) percent() float64 { return math.Round(10000*m.sum/float64(max(m.n, 1))) / 100 }

// WriteJSON writes the report as one JSON object on one line.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteText writes the report as a table for a person.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	rows := [][2]string{
		{"suite", r.Suite}, {"mode", string(r.Mode)}, {"model", r.Model}, {"window", fmt.Sprint(r.Window)},
		{"questions", fmt.Sprintf("%d (%d more name no evidence)", r.N, r.WithoutEvidence)},
		{"evidence in context", share(r.Evidence)}, {"  any of it", share(r.Any)}, {"  all of it", share(r.All)},
		{"answered", share(r.Answered)},
	}
	if r.Accuracy != nil {
		rows = append(rows, [2]string{"right", share(*r.Accuracy)})
	}
	if r.Failed > 0 {
		rows = append(rows, [2]string{"model failed", fmt.Sprint(r.Failed)})
	}
	rows = append(rows, [2]string{"searches a question", fmt.Sprint(r.Searches)}, [2]string{"steps a question", fmt.Sprint(r.Steps)},
		[2]string{"tokens a question", fmt.Sprintf("%.0f", r.Tokens)}, [2]string{"seconds", fmt.Sprintf("%.1f", r.Seconds)})
	if p := r.Prefetch; p != nil {
		rows = append(rows, [2]string{"prefetch handed over", share(p.Turns)}, [2]string{"  evidence in it", share(p.Evidence)},
			[2]string{"  hits a question", fmt.Sprint(p.Hits)}, [2]string{"  tokens a question", fmt.Sprintf("%.0f", p.Tokens)},
			[2]string{"  used a question", fmt.Sprint(p.Used)})
	}
	for _, row := range append(rows, r.groupRows()...) {
		if _, err := fmt.Fprintf(t, "%s\t%s\n", row[0], row[1]); err != nil {
			return err
		}
	}
	return t.Flush()
}

func (r *Report) groupRows() (rows [][2]string) {
	title, by, n := "category ", r.ByCategory, r.NByCategory
	if r.ByLevel != nil {
		title, by, n = "level ", r.ByLevel, r.NByLevel
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		rows = append(rows, [2]string{title + name, fmt.Sprintf("%s of %d", share(by[name]), n[name])})
	}
	return rows
}

func share(v float64) string { return fmt.Sprintf("%.2f %%", v) }
