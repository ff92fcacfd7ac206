package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// SweepRun is one run of a sweep over policies: all runs ask the same questions.
type SweepRun struct {
	// Factor and Value say what was varied, as alert and .9; in a grid Factor is "" and Value all that was. Those of the run
	// that the others are held against are "".
	Factor string  `json:"factor"`
	Value  string  `json:"value"`
	Report *Report `json:"report"`

	// Verdict says in a word what came of it, see SweepVerdicts, and Diff the differences from the run with the policies that
	// were not varied. Both are empty in that run.
	Verdict string        `json:"verdict,omitempty"`
	P       *float64      `json:"p_holm,omitempty"` // of "all evidence in context", adjusted for the number of runs
	Diff    []MeasureDiff `json:"diff,omitempty"`
}

// Verdicts on a run of a sweep.
const (
	SweepSame  = "no difference"       // the same requests in number and length, the same evidence, the same answers
	SweepEqual = "same evidence"       // other requests or answers, and the same evidence in each question
	SweepMore  = "more evidence"       // by McNemar's exact test at 5 %, adjusted
	SweepLess  = "less evidence"       // by the same
	SweepOpen  = "can't be told apart" // evidence differs in some questions, as it might by chance
)

// JudgeSweep holds all runs against base and fills in verdicts and differences.
func JudgeSweep(base *Report, runs []SweepRun) error {
	ps := make([]float64, len(runs))
	for i := range runs {
		c, err := Compare(base.Records, runs[i].Report.Records, "")
		if err != nil {
			return fmt.Errorf("hold the run with %s=%s against the others: %w", runs[i].Factor, runs[i].Value, err)
		}
		runs[i].Diff = c.Measures
		ps[i] = 1
		if d := runs[i].diff(CompareAll); d != nil {
			ps[i] = *d.P
		}
	}
	for i, p := range Holm(ps) {
		r := &runs[i]
		r.P = &p
		d := r.diff(CompareAll)
		switch {
		case sameRuns(base, r.Report):
			r.Verdict = SweepSame
		case sameEvidence(base.Records, r.Report.Records):
			r.Verdict = SweepEqual
		case d == nil || p > .05:
			r.Verdict = SweepOpen
		case d.Diff > 0:
			r.Verdict = SweepMore
		default:
			r.Verdict = SweepLess
		}
	}
	return nil
}

func (r *SweepRun) diff(name string) *MeasureDiff {
	if i := slices.IndexFunc(r.Diff, func(d MeasureDiff) bool { return d.Name == name }); i >= 0 {
		return &r.Diff[i]
	}
	return nil
}

// sameRuns reports whether two runs can't be told apart by anything that is recorded of their questions, nor of the live
// conversations before them.
func sameRuns(a, b *Report) bool {
	if x, y := a.Pressure, b.Pressure; x != nil && y != nil && x.Live != nil && y.Live != nil && *x.Live != *y.Live {
		return false
	}
	same := func(x, y Record) bool {
		return x.Answer == y.Answer && x.Input == y.Input && x.Output == y.Output && x.Searches == y.Searches && x.Steps == y.Steps && x.Pressure == y.Pressure
	}
	return slices.EqualFunc(a.Records, b.Records, same) && sameEvidence(a.Records, b.Records)
}

func sameEvidence(a, b []Record) bool {
	return slices.EqualFunc(a, b, func(x, y Record) bool {
		return slices.EqualFunc(x.Evidence, y.Evidence, func(p, q Piece) bool { return p.Shown == q.Shown })
	})
}

// WriteSweep writes a sweep as a table for a person. The first run is the one that the others are held against.
func WriteSweep(w io.Writer, runs []SweepRun) error {
	base := runs[0].Report
	live := base.Pressure != nil && base.Pressure.Live != nil
	if _, err := fmt.Fprintf(w, "suite %s, mode %s, model %s, window %d, seed %d, %d questions in each run\npolicies where nothing else is said: %s\n\n", base.Suite,
		base.Mode, base.Model, base.Window, base.Seed, base.N, base.Policy.all()); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	head := []string{"policy", "evidence %", "95 %", "all %", "against default", "lost", "gained", "p (Holm)", "tokens", "searches", "alerts", "evicted"}
	if live {
		head = append(head, "live: alerts", "flushes", "calls", "tokens")
	}
	row(t, head...)
	for i := range runs {
		row(t, runs[i].cells(live)...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, sweepLegend)
	return err
}

const sweepLegend = `
evidence is the mean share of a question's evidence that was in context, all the share of questions of which all was. lost and
gained count questions of which only the default's run, or only this one, had all evidence in context; p is McNemar's exact test of
them, adjusted for the number of runs (Holm). tokens (of all requests), searches, alerts and evicted messages are a question's.
"no difference": nothing that is recorded differs, so the policy had nothing to act on here.
`

// cells is a line of the table.
func (r *SweepRun) cells(live bool) []string {
	rep := r.Report
	in := rep.Intervals["evidence_in_context"]
	verdict, lost, gained, p := "(default)", "", "", ""
	name := "default"
	if r.Value != "" {
		name = r.Value
		if r.Factor != "" {
			name = r.Factor + "=" + r.Value
		}
	}
	if r.Verdict != "" {
		verdict = r.Verdict
		if d := r.diff(CompareAll); d != nil {
			lost, gained, p = fmt.Sprint(d.Counts.Lost), fmt.Sprint(d.Counts.Gained), probability(*r.P)
		}
	}
	list := []string{name, fmt.Sprintf("%.2f", rep.Evidence), fmt.Sprintf("%.2f to %.2f", in[0], in[1]), fmt.Sprintf("%.2f", rep.All), verdict, lost, gained, p,
		fmt.Sprintf("%.0f", rep.Tokens), fmt.Sprint(rep.Searches), fmt.Sprint(rep.Pressure.Alerts), fmt.Sprint(rep.Pressure.Evicted)}
	if live {
		l := rep.Pressure.Live
		list = append(list, fmt.Sprint(l.Alerts), fmt.Sprint(l.Flushes), fmt.Sprint(l.Calls), fmt.Sprint(l.Tokens))
	}
	return list
}

// all names all policies.
func (p *Policy) all() string {
	text := fmt.Sprintf("alert=%v flush=%v target=%v page=%d summary=%s protocol=%s", p.Alert, p.Flush, p.Target, p.PageSize, p.Summary, p.Protocol)
	if p.Prefetch > 0 {
		text += fmt.Sprintf(" prefetch=%d", p.Prefetch)
	}
	return text
}

// WriteSweepJSON writes each run as a JSON object on a line of its own.
func WriteSweepJSON(w io.Writer, runs []SweepRun) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range runs {
		if err := enc.Encode(&runs[i]); err != nil {
			return err
		}
	}
	return nil
}
