package eval

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"strings"

	"memgpt"
)

// Mode is the system that answers: an agent, in which the model looks into memory by its functions, the system does before
// the model reads the question (memgpt.Prefetch), both do, or nobody does; or a baseline, which puts what it has of the
// material into one prompt.
type Mode string

// Modes.
const (
	ModeMemGPT   Mode = "memgpt"   // the model pages, as the paper has it; the default
	ModePrefetch Mode = "prefetch" // the system hands over; the model lacks the functions that bring stored texts back
	ModeBoth     Mode = "both"
	ModeNone     Mode = "none"

	ModeFull    Mode = "full"    // baseline: the material in the order of its file, cut at the end
	ModeSliding Mode = "sliding" // baseline: the newest that fits
	ModeSummary Mode = "summary" // baseline: a recursive summary of all (paper, section 3.1.1)
	ModeRAG     Mode = "rag"     // baseline: the first K hits of one search with the question's words
	ModeOracle  Mode = "oracle"  // ceiling: the evidence
)

// Modes returns the modes.
func Modes() []Mode {
	return []Mode{ModePrefetch, ModeMemGPT, ModeBoth, ModeNone, ModeFull, ModeSliding, ModeSummary, ModeRAG, ModeOracle}
}

// ParseMode reads the name of a mode.
func ParseMode(name string) (Mode, error) {
	if m := Mode(name); slices.Contains(Modes(), m) {
		return m, nil
	}
	var names []string
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	return "", memgpt.Errorf(memgpt.CodeInvalid, "there is no mode %q; the modes are %s", name, strings.Join(names, ", "))
}

// searches reports whether the model has the functions that bring stored texts back.
func (m Mode) searches() bool { return m != ModePrefetch && m != ModeNone && !m.baseline() }

// Looks reports whether anything is searched for, so that vectors are of use.
func (m Mode) Looks() bool { return m.searches() || m.prefetches() || m == ModeRAG }

// baseline reports whether no agent answers but one prompt.
func (m Mode) baseline() bool {
	return m == ModeFull || m == ModeSliding || m == ModeSummary || m == ModeRAG || m == ModeOracle
}

// prefetches reports whether the system looks.
func (m Mode) prefetches() bool { return m == ModePrefetch || m == ModeBoth }

// settle puts defaults in place of zero values.
func (c *Config) settle() error {
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Parallel <= 0 {
		c.Parallel = runtime.GOMAXPROCS(0)
	}
	if c.Mode == "" {
		c.Mode = ModeMemGPT
	}
	if c.Purse == nil {
		c.Purse = NewPurse(0, 0)
	}
	if len(c.Ks) == 0 {
		c.Ks = []int{DefaultK}
	}
	var ks []int // each once: twice the same would count its questions twice
	for _, k := range c.Ks {
		if !slices.Contains(ks, k) {
			ks = append(ks, k)
		}
	}
	c.Ks = ks
	for _, k := range c.Ks {
		if k <= 0 || c.Mode != ModeRAG && len(c.Ks) > 1 {
			return memgpt.Errorf(memgpt.CodeInvalid, "numbers of hits %v: they are above 0, and several go with mode %s alone", c.Ks, ModeRAG)
		}
	}
	if c.Judge != nil && c.Judge.Capabilities().StandIn {
		return memgpt.Errorf(memgpt.CodeInvalid, "%s is a stand-in and understands nothing: it can't judge answers; name a language model", c.Judge.Capabilities().Name)
	}
	if _, err := ParseMode(string(c.Mode)); err != nil {
		return err
	}
	return c.settlePolicy()
}

// headline is the number of hits whose figures a report begins with.
func (c *Config) headline() int {
	if slices.Contains(c.Ks, DefaultK) {
		return DefaultK
	}
	return c.Ks[0]
}

// prefetch is the setting of the agents that are asked.
func (c *Config) prefetch() memgpt.Prefetch {
	if !c.Mode.prefetches() {
		return memgpt.Prefetch{}
	}
	return memgpt.Prefetch{Mode: memgpt.PrefetchOn, Budget: c.Budget}
}

// agentWindow is the window of the agent that holds the memory. For a baseline it only loads, in any window that does.
func (c *Config) agentWindow() int {
	if c.Mode.baseline() {
		return max(c.Window, DefaultWindow)
	}
	return c.Window
}

// PrefetchReport is what the system's looking up came to.
type PrefetchReport struct {
	Budget int     `json:"budget,omitempty"` // tokens; 0 is the kernel's default
	Turns  float64 `json:"turns"`            // share of questions for which it handed something over
	Hits   float64 `json:"hits"`             // handed over, a question
	Tokens float64 `json:"tokens"`           // handed over, a question, by the counter's encoding
	Second float64 `json:"second"`           // share of questions for which it looked twice, since the model said that it doesn't know
	// Evidence is the mean over the questions of the share of their evidence that stood in what was handed over.
	Evidence float64 `json:"evidence"`
	Used     float64 `json:"used"` // hits that the model then read or quoted, a question
	// Floors tells what would be left if the system spoke only where the score of its best hit is high: a tenth of the
	// questions more in each.
	Floors []PrefetchFloor `json:"floors,omitempty"`
}

// PrefetchFloor is what is left above a score.
type PrefetchFloor struct {
	Score    float64 `json:"score"`    // least one of a best hit
	Turns    float64 `json:"turns"`    // share of questions for which something would be handed over
	Evidence float64 `json:"evidence"` // as PrefetchReport.Evidence
}

// reportPrefetch adds up what the system looked up.
func reportPrefetch(budget int, outcomes []Record) *PrefetchReport {
	var turns, hits, tokens, second, evidence, used mean
	for i := range outcomes {
		o := &outcomes[i]
		turns.count(len(o.Prefetch.Hits) > 0)
		hits.add(float64(len(o.Prefetch.Hits)))
		tokens.add(float64(o.Prefetch.Tokens))
		second.count(o.Prefetch.Second)
		evidence.add(o.handedShare())
		used.add(float64(o.Prefetch.Used))
	}
	return &PrefetchReport{Budget: budget, Turns: turns.percent(), Hits: hits.value(), Tokens: tokens.value(),
		Second: second.percent(), Evidence: evidence.percent(), Used: used.value(), Floors: floors(outcomes)}
}

// handedShare is how much of the evidence the system handed over.
func (o *Record) handedShare() float64 { return ratio(o.Handed(), o.Gold()) }

// best is the score of the best hit that was handed over.
func (o *Record) best() float64 {
	best := math.Inf(-1)
	for _, h := range o.Prefetch.Hits {
		best = max(best, h.Score)
	}
	return best
}

// floors ranks the questions for which something was handed over by their best hit.
func floors(outcomes []Record) (list []PrefetchFloor) {
	spoke := slices.DeleteFunc(slices.Clone(outcomes), func(o Record) bool { return len(o.Prefetch.Hits) == 0 })
	slices.SortStableFunc(spoke, func(a, b Record) int { return cmp.Compare(b.best(), a.best()) })
	n := len(outcomes)
	carried, at := 0.0, 0
	for tenth := 1; tenth <= 10; tenth++ {
		upto := min(n*tenth/10, len(spoke))
		if upto == at {
			continue
		}
		for ; at < upto; at++ {
			carried += spoke[at].handedShare()
		}
		turns, evidence := mean{float64(at), n}, mean{carried, n}
		list = append(list, PrefetchFloor{(&mean{spoke[at-1].best(), 1}).value(), turns.percent(), evidence.percent()})
	}
	return list
}
