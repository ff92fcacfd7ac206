package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
)

// Report is what a run measured. Times are medians in milliseconds, memory is in MiB. Maps are keyed by a number of agents
// or of messages in the log; a length that was not reached in time is missing.
type Report struct {
	Ratio float64 `json:"step_over_commit_ratio"` // StepMS by PairMS
	// StepMS is a whole step without the time of a model: from Send to the end of its last commit.
	StepMS float64 `json:"step_median_ms"`
	// PairMS is two transactions with the bare texts of the step.
	PairMS         float64            `json:"commit_pair_median_ms"`
	StartupMS      float64            `json:"startup_ms"` // of a process that opens a store and reads from it
	StepsPerSecond map[string]float64 `json:"steps_per_second"`
	BehindRatio    float64            `json:"step_indexing_ratio"` // a step while vectors are made behind it, by one alone
	Embedded       int64              `json:"step_indexing_texts"` // texts that got their vector meanwhile
	RSS            float64            `json:"rss_mb"`              // resident, with a store open and one conversation idle

	Waiting       int     `json:"waiting_agents"` // that waited for a slow model at once, at a window of 4,096
	WaitingRSS    float64 `json:"waiting_rss_mb"` // of the whole process while they did
	RSSPer1000    float64 `json:"rss_mb_per_1000_agents"`
	WaitingWindow int     `json:"waiting_prompt_tokens"` // of each request, by our count

	StepByLog    map[string]float64 `json:"step_ms_by_log"`
	CompileByLog map[string]float64 `json:"compile_ms_by_log"` // measuring and compiling the prompt
	SearchByLog  map[string]float64 `json:"search_ms_by_log"`  // words, over all messages of the agent

	// By words and vectors, the embedding of the query included: in milliseconds of a median search, of one of the later
	// half of the messages and one role, and of the first after the store was opened; bytes in memory a message; and
	// seconds that the storing of made-up vectors took.
	MeaningByLog  map[string]float64 `json:"hybrid_ms_by_log"`
	FilteredByLog map[string]float64 `json:"hybrid_filtered_ms_by_log"`
	MeaningFirst  map[string]float64 `json:"hybrid_first_ms_by_log"`
	HeldByLog     map[string]float64 `json:"hybrid_bytes_per_message_by_log"`
	VectorsByLog  map[string]float64 `json:"vectors_seconds_by_log"`

	Quick   bool     `json:"quick"`
	Seconds float64  `json:"seconds"`
	Notes   []string `json:"notes,omitempty"` // what was not measured, and why
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// WriteText writes the report as a table, the ratio first.
func (r *Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { _, _ = fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("step / its two commits, bare", "%.2f", r.Ratio)
	row("step, median", "%.2f ms", r.StepMS)
	row("two bare commits, median", "%.2f ms", r.PairMS)
	if r.StartupMS > 0 {
		row("start-up, median", "%.0f ms", r.StartupMS)
	}
	for _, n := range keys(r.StepsPerSecond) {
		row("steps a second, agents: "+n, "%.0f", r.StepsPerSecond[n])
	}
	if r.BehindRatio > 0 {
		row("step while vectors are made / alone", "%.2f (%d texts got one)", r.BehindRatio, r.Embedded)
	}
	row("memory, idle", "%.0f MiB", r.RSS)
	if r.Waiting > 0 {
		row(fmt.Sprintf("memory, %d agents waiting", r.Waiting), "%.0f MiB (%.1f per 1,000 agents)", r.WaitingRSS, r.RSSPer1000)
	}
	for _, n := range keys(r.StepByLog) {
		row("log of "+n, "step %.2f ms, compile %.2f ms, search %.2f ms", r.StepByLog[n], r.CompileByLog[n], r.SearchByLog[n])
	}
	for _, n := range keys(r.MeaningByLog) {
		row("words and vectors, log of "+n, "search %.2f ms, filtered %.2f ms, the first %.0f ms, %.0f bytes a message in memory",
			r.MeaningByLog[n], r.FilteredByLog[n], r.MeaningFirst[n], r.HeldByLog[n])
	}
	for _, n := range r.Notes {
		row("note", "%s", n)
	}
	return t.Flush()
}

// keys returns the keys of a map, which are numbers, in ascending order.
func keys(m map[string]float64) []string {
	var ns []int
	for k := range m {
		n, _ := strconv.Atoi(k)
		ns = append(ns, n)
	}
	slices.Sort(ns)
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = strconv.Itoa(n)
	}
	return out
}
