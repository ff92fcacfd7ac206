package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"

	"memgpt"
	"memgpt/store"
)

// Report is what a run measured. Shares are in per cent, 0 to 100, rounded to two places.
type Report struct {
	Suite  string `json:"suite"`
	Mode   Mode   `json:"mode"`
	Model  string `json:"model"`
	Window int    `json:"window"`
	Seed   uint64 `json:"seed"`
	// Policy is how the agents managed their memory; nil for baselines.
	Policy *Policy `json:"policy,omitempty"`
	// Pressure is what the queue manager did; nil for baselines.
	Pressure *PressureReport `json:"pressure,omitempty"`
	Search   bool            `json:"search"` // the model had the functions that bring stored texts back
	N        int             `json:"n"`      // questions asked
	// Partial says that the run was stopped: the figures are of the Done of Planned records that there were then.
	Partial bool `json:"partial,omitempty"`
	Done    int  `json:"n_done,omitempty"`
	Planned int  `json:"n_planned,omitempty"`
	// WithoutEvidence counts the questions of the data that name no evidence; they are not asked and not in N.
	WithoutEvidence int `json:"without_evidence"`
	// GoldMissing counts the pieces of evidence that the data names and doesn't have, in the questions of N.
	GoldMissing int `json:"gold_missing"`

	// Evidence is the mean over the questions of the share of their evidence that was in context.
	Evidence float64 `json:"evidence_in_context"`
	Any      float64 `json:"any"`      // questions of which at least one piece of evidence was in context
	All      float64 `json:"all"`      // questions of which all evidence was
	Answered float64 `json:"answered"` // questions to which the agent said something, right or not
	// Accuracy is the share of questions that were answered rightly, by what AccuracyBy says; nil where nothing says it.
	Accuracy   *float64 `json:"accuracy,omitempty"`
	AccuracyBy string   `json:"accuracy_by,omitempty"`
	Failed     int      `json:"failed"` // questions in which the model failed; they count as they stood then

	// Measures of answers, see [Measures]; nil where no question has one.
	Contains        *float64 `json:"contains,omitempty"`
	F1              *float64 `json:"f1,omitempty"`
	RougeL          *float64 `json:"rouge_l,omitempty"`
	Abstained       *float64 `json:"abstained,omitempty"`
	AbstentionRight *float64 `json:"abstention_right,omitempty"`
	Sim1            *float64 `json:"sim1,omitempty"`
	Sim3            *float64 `json:"sim3,omitempty"`
	SimH            *float64 `json:"simh,omitempty"`
	// Judge says who judged; nil where nobody did.
	Judge *JudgeReport `json:"judge,omitempty"`
	// Intervals holds for each measure what 95 of 100 resamples of the questions give.
	Intervals map[string][2]float64 `json:"intervals"`
	// Lost is the share of questions whose evidence was lost at each place.
	Lost map[Loss]float64 `json:"lost"`
	// WrongGold reports the measures without the questions whose gold is known to be wrong; nil where no list was given.
	WrongGold *GoldReport `json:"wrong_gold,omitempty"`
	// Recall is the mean share of the sessions with evidence among the first k of a search, and NDCG its ranking's worth, by
	// k; in suites of sessions.
	Recall map[string]float64 `json:"recall,omitempty"`
	NDCG   map[string]float64 `json:"ndcg,omitempty"`

	Searches float64 `json:"searches"` // a question
	Steps    float64 `json:"steps"`    // a question
	Tokens   float64 `json:"tokens"`   // of all requests of a question, by our own count
	Output   float64 `json:"output"`   // tokens of all replies of a question
	// Prefix is the share of the tokens of requests with which the request before began too, so that a cache could serve them.
	Prefix float64 `json:"prefix"`
	// Cost is what the replies cost in dollars when they were asked for, a question, as in [Record]; CostTotal that of the whole
	// run with summaries and judge. They are nil where the price of a reply isn't known.
	Cost      *float64 `json:"cost,omitempty"`
	CostTotal *float64 `json:"cost_total,omitempty"`
	// SummaryTokens are those of the requests and replies that made the summaries of ModeSummary, of the whole run.
	SummaryTokens int     `json:"summary_tokens,omitempty"`
	Seconds       float64 `json:"seconds"` // of the whole run; set by whoever timed it
	// Prefetch tells what the system looked up; nil where the mode has it look for nothing.
	Prefetch *PrefetchReport `json:"prefetch,omitempty"`

	// K is the number of hits whose figures these are, and ByK holds the measures at each, in ModeRAG.
	K   int                 `json:"k,omitempty"`
	ByK map[string]Measures `json:"by_k,omitempty"`
	// ByCategory holds the share of evidence in context, of openers SIM-1, ByLevel the accuracy. One of them is set.
	ByCategory  map[string]float64 `json:"by_category,omitempty"`
	NByCategory map[string]int     `json:"n_by_category,omitempty"`
	ByLevel     map[string]float64 `json:"by_level,omitempty"`
	NByLevel    map[string]int     `json:"n_by_level,omitempty"`
	// Measures holds all measures by category or level.
	Measures map[string]Measures `json:"measures"`

	// Data is the name of the file or directory with the questions, Limit how many of them were wanted (0 is all), and Embedder
	// what found by meaning ("" is nothing).
	Data     string `json:"data,omitempty"`
	Pooled   bool   `json:"pooled,omitempty"`
	Limit    int    `json:"limit,omitempty"`
	Embedder string `json:"embedder,omitempty"`

	// Notes say what the figures do not: where the procedure differs from the paper's, and what the data can't show.
	Notes []string `json:"notes,omitempty"`

	// Records are the questions one by one, in the order of the data.
	Records []Record `json:"-"`
}

// report adds the records up. Its figures are of the headline: the first variant of a suite's, and one number of hits.
func (r *runner) report(records []Record) (*Report, error) {
	cfg := &r.cfg
	at, main := records, records
	rep := &Report{Suite: r.suite.Name, Mode: cfg.Mode, Model: cfg.Model.Capabilities().Name, Window: cfg.Window, Seed: cfg.Seed,
		Search: cfg.Mode.searches(), WithoutEvidence: r.suite.Skipped(), AccuracyBy: cfg.accuracyBy(r.suite), SummaryTokens: r.folds, CostTotal: r.bill.cost(), Records: records}
	if cfg.Mode == ModeRAG {
		rep.K = cfg.headline()
		byK := groups(records, func(r *Record) string { return strconv.Itoa(r.K) })
		at, main = byK[strconv.Itoa(rep.K)], byK[strconv.Itoa(rep.K)]
		rep.ByK = measureAll(byK, rep.AccuracyBy)
	}
	if r.suite.Variants {
		main = groups(at, func(r *Record) string { return r.Group })[WorkingOwn]
	}
	rep.N, rep.Notes = len(main), Notes(r.suite.Name)
	if err := rep.failures(main); err != nil {
		return nil, fmt.Errorf("run suite %s: %w", r.suite.Name, err)
	}
	rep.evidence(main)
	rep.costs(main)
	rep.measure(Measure(main, rep.AccuracyBy))
	rep.Intervals, rep.Lost = Intervals(main, rep.AccuracyBy, cfg.Seed), losses(main)
	rep.WrongGold, rep.Judge = goldReport(cfg.WrongGold, main, rep.AccuracyBy), judgeReport(cfg.Judge, main)
	if r.suite.Sessions {
		rep.Recall, rep.NDCG = sessionRecall(main)
	}
	rep.Policy, rep.Pressure = cfg.policyReport(), r.pressureReport(main)
	if cfg.Mode.prefetches() {
		rep.Prefetch = reportPrefetch(cfg.Budget, main)
	}
	byGroup := groups(at, func(r *Record) string { return r.Group })
	rep.Measures = measureAll(byGroup, rep.AccuracyBy)
	rep.group(r.suite, byGroup)
	rep.Data, rep.Pooled, rep.Limit = r.suite.Data, r.suite.Pooled, cfg.Limit
	if cfg.Embedder != nil {
		rep.Embedder = cfg.Embedder.Model()
	}
	return rep, nil
}

// accuracyBy is what says whether an answer is right.
func (c *Config) accuracyBy(s *Suite) string {
	switch {
	case s.Scored:
		return ByRule
	case c.Judge != nil:
		return ByJudge
	case s.Contained:
		return ByContained
	}
	return ""
}

func measureAll(groups map[string][]Record, by string) map[string]Measures {
	out := make(map[string]Measures, len(groups))
	for name, list := range groups {
		out[name] = Measure(list, by)
	}
	return out
}

// failures counts the questions in which the model failed, and is an error where those are all.
func (r *Report) failures(records []Record) error {
	failure := ""
	for i := range records {
		if records[i].Failure != "" {
			r.Failed++
			failure = records[i].Failure
		}
	}
	if r.N == 0 {
		return memgpt.Errorf(memgpt.CodeInvalid, "no question is done")
	}
	if r.Failed == r.N {
		return memgpt.Errorf(memgpt.CodeModelRequest, "the model failed in every question, at last: %s", failure)
	}
	return nil
}

// evidence adds up what of the evidence was in context, over the questions that have some.
func (r *Report) evidence(records []Record) {
	var share, some, all, answered mean
	for i := range records {
		o := &records[i]
		answered.count(o.Spoke)
		r.GoldMissing += o.Faults
		if o.Gold() > 0 {
			share.add(ratio(o.Seen(), o.Gold()))
			some.count(o.Seen() > 0)
			all.count(o.Seen() == o.Gold())
		}
	}
	r.Evidence, r.Any, r.All, r.Answered = share.percent(), some.percent(), all.percent(), answered.percent()
}

// costs adds up what the questions took.
func (r *Report) costs(records []Record) {
	var searches, steps, tokens, output, dollars mean
	prefix := 0
	for i := range records {
		o := &records[i]
		searches.add(float64(o.Searches))
		steps.add(float64(o.Steps))
		tokens.add(float64(o.Input))
		output.add(float64(o.Output))
		prefix += o.Prefix
		if o.Cost != nil {
			dollars.add(*o.Cost)
		}
	}
	if dollars.n == len(records) {
		v := round(dollars.sum/float64(dollars.n), 9)
		r.Cost = &v
	}
	r.Searches, r.Steps, r.Tokens, r.Output = searches.value(), steps.value(), tokens.value(), output.value()
	if tokens.sum > 0 {
		r.Prefix = round(100*float64(prefix)/tokens.sum, 2)
	}
}

func (r *Report) measure(m Measures) {
	r.Accuracy, r.Contains, r.F1, r.RougeL = m.Accuracy, m.Contains, m.F1, m.RougeL
	r.Abstained, r.AbstentionRight, r.Sim1, r.Sim3, r.SimH = m.Abstained, m.AbstentionRight, m.Sim1, m.Sim3, m.SimH
}

// group fills in the one figure of each group.
func (r *Report) group(s *Suite, groups map[string][]Record) {
	by, n := map[string]float64{}, map[string]int{}
	for name, list := range groups {
		m := r.Measures[name]
		figure := m.Evidence
		switch {
		case s.Scored:
			figure = m.Accuracy
		case s.Variants:
			figure = m.Sim1
		}
		n[name] = len(list)
		if figure != nil {
			by[name] = *figure
		}
	}
	if s.Levels {
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
	}
	rows = append(rows, r.policyRows()...)
	if r.Partial {
		rows = append(rows, [2]string{"partial", fmt.Sprintf("the run was stopped: %d of %d are done", r.Done, r.Planned)})
	}
	if _, known := r.Intervals["evidence_in_context"]; known {
		rows = append(rows, [2]string{"evidence in context", share(r.Evidence)}, [2]string{"  any of it", share(r.Any)}, [2]string{"  all of it", share(r.All)})
	}
	rows = append(rows, [2]string{"answered", share(r.Answered)})
	rows = append(rows, r.measureRows()...)
	if r.Failed > 0 {
		rows = append(rows, [2]string{"model failed", fmt.Sprint(r.Failed)})
	}
	rows = append(rows, [2]string{"searches a question", fmt.Sprint(r.Searches)}, [2]string{"steps a question", fmt.Sprint(r.Steps)},
		[2]string{"tokens a question", fmt.Sprintf("%.0f", r.Tokens)}, [2]string{"seconds", fmt.Sprintf("%.1f", r.Seconds)})
	rows = append(rows, r.costRows()...)
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

// costRows are what it cost. Nothing is said of what is free.
func (r *Report) costRows() (rows [][2]string) {
	for _, c := range []struct {
		title   string
		dollars *float64
	}{{"cost a question", r.Cost}, {"cost in all", r.CostTotal}} {
		if c.dollars != nil && *c.dollars > 0 {
			rows = append(rows, [2]string{c.title, store.FormatMoney(int64(math.Round(*c.dollars * 1e9)))})
		}
	}
	return rows
}

// measureRows are the measures of answers with their intervals, and where evidence was lost.
func (r *Report) measureRows() (rows [][2]string) {
	add := func(title, name string, v *float64, percent bool) {
		if v == nil {
			return
		}
		form, in := "%.4f (%.4f to %.4f)", r.Intervals[name]
		if percent {
			form = "%.2f %% (%.2f to %.2f)"
		}
		rows = append(rows, [2]string{title, fmt.Sprintf(form, *v, in[0], in[1])})
	}
	if r.K > 0 {
		rows = append(rows, [2]string{"hits", fmt.Sprint(r.K)})
	}
	add("right", "accuracy", r.Accuracy, true)
	if r.Accuracy != nil {
		rows = append(rows, [2]string{"  by", r.AccuracyBy})
	}
	add("holds the answer", "contains", r.Contains, true)
	add("F1", "f1", r.F1, true)
	add("ROUGE-L recall", "rouge_l", r.RougeL, true)
	add("abstained", "abstained", r.Abstained, true)
	add("  rightly", "abstention_right", r.AbstentionRight, true)
	add("SIM-1", "sim1", r.Sim1, false)
	add("SIM-3", "sim3", r.Sim3, false)
	add("SIM-H", "simh", r.SimH, false)
	for _, k := range sessionDepths {
		if v, ok := r.Recall[strconv.Itoa(k)]; ok {
			rows = append(rows, [2]string{fmt.Sprintf("sessions R@%d, NDCG@%d", k, k), share(v) + ", " + share(r.NDCG[strconv.Itoa(k)])})
		}
	}
	if j := r.Judge; j != nil {
		rows = append(rows, [2]string{"judge", fmt.Sprintf("%s, instructions %s, %d verdicts, %d failed", j.Model, j.Prompt, j.N, j.Failed)})
	}
	for _, l := range Losses() {
		if v := r.Lost[l]; v > 0 {
			rows = append(rows, [2]string{"lost: " + string(l), share(v)})
		}
	}
	if g := r.WrongGold; g != nil {
		rows = append(rows, [2]string{"gold known to be wrong", fmt.Sprintf("%d of these questions", g.Asked)}, [2]string{"  without them", g.Left.brief()})
	}
	return rows
}

// brief is the measures in one line.
func (m *Measures) brief() string {
	text := fmt.Sprintf("n %d", m.N)
	for _, k := range measureKinds("") {
		if v := *k.to(m); v != nil {
			text += fmt.Sprintf(", %s %g", k.name, *v)
		}
	}
	return text
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
	figure := share
	if r.Sim1 != nil {
		figure = func(v float64) string { return fmt.Sprintf("%.4f", v) }
	}
	for _, name := range names {
		rows = append(rows, [2]string{title + name, fmt.Sprintf("%s of %d", figure(by[name]), n[name])})
	}
	byNumber := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
	for _, k := range slices.SortedFunc(maps.Keys(r.ByK), byNumber) {
		m := r.ByK[k]
		rows = append(rows, [2]string{"hits " + k, m.brief()})
	}
	for _, note := range r.Notes {
		rows = append(rows, [2]string{"note", note})
	}
	return rows
}

func share(v float64) string { return fmt.Sprintf("%.2f %%", v) }
