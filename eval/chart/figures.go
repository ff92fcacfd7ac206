package chart

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"memgpt/eval"
)

// section is what a report says of the runs of one suite on the same data.
type section struct {
	suite, data string
	runs        []*run
	paper       *paperTable // nil where the paper has no such experiment
	all         *paper
}

// figure is a chart of a section.
type figure struct {
	chart *Chart
	about string // what a person who doesn't see it is told, and the end of its file's name
}

// sections puts the runs of one suite and data together, in their order, and names them.
func sections(runs []*run, p *paper) (list []*section) {
	for _, r := range runs {
		if n := len(list); n == 0 || list[n-1].suite != r.Suite || list[n-1].data != r.Data {
			s := &section{suite: r.Suite, data: r.Data, all: p}
			if t, ok := p.Tables[r.Suite]; ok {
				s.paper = &t
			}
			list = append(list, s)
		}
		s := list[len(list)-1]
		s.runs = append(s.runs, r)
	}
	for _, s := range list {
		nameRuns(s.runs)
	}
	return list
}

// figures are the charts of a section.
func (s *section) figures() []figure {
	var list []figure
	add := func(about string, c *Chart) {
		if c != nil {
			c.Note = strings.TrimSpace(c.Note + " " + s.ours())
			list = append(list, figure{c, about})
		}
	}
	switch s.suite {
	case eval.SuiteNestedKV, eval.SuiteRelay:
		add("right answers by hops", s.levels())
	case eval.SuiteDocQA:
		add("right answers by documents", s.byK("right answers", s.paper, func(m *eval.Measures) *float64 { return m.Accuracy }))
		add("evidence by documents", s.byK("evidence in context", nil, func(m *eval.Measures) *float64 { return m.Evidence }))
		add("evidence and tokens", s.tokens())
	case eval.SuiteDMR:
		add("answers beside the paper", s.besidePaper(100))
		add("evidence and tokens", s.tokens())
	case eval.SuiteOpener:
		add("similarities beside the paper", s.besidePaper(1))
	default:
		add("evidence by category", s.categories())
		add("evidence and tokens", s.tokens())
	}
	return list
}

// ours says of all runs what they have in common.
func (s *section) ours() string {
	var list []string
	for _, one := range settings() {
		if v := same(s.runs, one.of); v != "" && v != one.usual {
			list = append(list, v)
		}
	}
	if v := same(s.runs, func(r *run) string { return fmt.Sprint("n ", r.N) }); v != "" {
		list = append(list, v)
	}
	return "Our runs: " + strings.Join(list, ", ") + "."
}

// dashed says in a figure which points aren't ours.
func (t *paperTable) dashed() string {
	return "Hollow and dashed: the paper's own points (" + t.Where + "), of other models in other windows."
}

// headed is a title with the data's name.
func (s *section) headed(title string) string {
	if s.data == "" {
		return s.suite + ": " + title
	}
	return s.suite + " (" + s.data + "): " + title
}

// levels is the paper's Fig. 7: right answers by the length of the chain.
func (s *section) levels() *Chart {
	c := &Chart{Title: s.headed("right answers by length of the chain"), X: "hops from key to key (nesting level)", Y: "right answers, %", YMax: 100,
		Note: "Whiskers: 95 % intervals of each level (Wilson)."}
	for _, r := range s.runs {
		line := Series{Name: r.name, Line: true}
		for _, level := range slices.SortedFunc(maps.Keys(r.ByLevel), byNumber) {
			x, err := strconv.ParseFloat(level, 64)
			if err != nil {
				continue // no number of hops
			}
			p := Point{X: x, Y: r.ByLevel[level]}
			p.Low, p.High = wilson(p.Y, r.NByLevel[level])
			line.Points = append(line.Points, p)
		}
		c.Series = append(c.Series, line)
	}
	if s.paper != nil {
		c.Series = append(c.Series, s.paper.lines(0, 0)...)
		c.Note = s.paper.dashed() + " " + c.Note
	}
	return c
}

// wilson is the 95 % interval of a share in per cent of n trials; of none it is 0, 0 (E. B. Wilson, 1927).
func wilson(share float64, n int) (low, high float64) {
	if n <= 0 {
		return 0, 0
	}
	const z = 1.959964
	p, m := share/100, float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return 100 * max(0, middle-half), 100 * min(1, middle+half)
}

// byK is the paper's Fig. 5: a measure against the number of documents in the prompt. Systems without such a number are flat
// lines. nil where nothing has the measure.
func (s *section) byK(title string, beside *paperTable, of func(*eval.Measures) *float64) *Chart {
	c := &Chart{Title: s.headed(title + " by documents in the prompt"), X: "K, documents in the prompt (logarithmic)", Y: title + ", %", LogX: true, YMax: 100}
	low, high := s.kRange(beside)
	for _, r := range s.runs {
		line := Series{Name: r.name, Line: true}
		if len(r.ByK) > 1 {
			for _, k := range slices.SortedFunc(maps.Keys(r.ByK), byNumber) {
				m := r.ByK[k]
				if x, err := strconv.ParseFloat(k, 64); err == nil && of(&m) != nil {
					line.Points = append(line.Points, Point{X: x, Y: *of(&m)})
				}
			}
		} else if v := of(&eval.Measures{Accuracy: r.Accuracy, Evidence: &r.Evidence}); v != nil {
			line.Points = []Point{{X: low, Y: *v}, {X: high, Y: *v}}
		}
		if len(line.Points) > 0 {
			c.Series = append(c.Series, line)
		}
	}
	if len(c.Series) == 0 {
		return nil
	}
	c.Note = "Flat lines: systems that take no K."
	if beside != nil {
		c.Series = append(c.Series, beside.lines(low, high)...)
		c.Note = beside.dashed() + " " + c.Note
	}
	return c
}

// kRange is from the least K to the greatest.
func (s *section) kRange(beside *paperTable) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	add := func(x float64) { low, high = min(low, x), max(high, x) }
	for _, r := range s.runs {
		for k := range r.ByK {
			if x, err := strconv.ParseFloat(k, 64); err == nil {
				add(x)
			}
		}
	}
	if beside != nil {
		for _, x := range beside.X {
			add(x)
		}
	}
	if low > high || low <= 0 {
		return 1, 200
	}
	return low, high
}

// besidePaper has bars of the measures that the paper's table has too, up to a highest value, and the paper's beside.
func (s *section) besidePaper(highest float64) *Chart {
	c := &Chart{Title: s.headed("the measures of the paper's " + strings.Split(s.paper.Where, ",")[0]), X: "measure", Y: "share, %", YMax: highest,
		Note: s.paper.dashed()}
	if highest == 1 {
		c.Y = "cosine similarity"
	}
	if missing := s.unmeasured(); missing != "" {
		c.Note += " " + missing
	}
	for _, name := range s.paper.Columns {
		c.Categories = append(c.Categories, strings.TrimSuffix(measureNamed(name).title, ", %"))
	}
	for _, r := range s.runs {
		for _, v := range r.variants() {
			bars := Series{Name: v.name}
			for i, name := range s.paper.Columns {
				if value := measureNamed(name).of(&v.measures); value != nil {
					bars.Points = append(bars.Points, v.point(float64(i), name, *value))
				}
			}
			if len(bars.Points) > 0 {
				c.Series = append(c.Series, bars)
			}
		}
	}
	if len(c.Series) == 0 {
		return nil
	}
	c.Series = append(c.Series, s.paper.bars()...)
	return c
}

// unmeasured says why none of the runs has a measure that the paper's table has; "" where some have all.
func (s *section) unmeasured() string {
	has := func(name string) bool {
		return slices.ContainsFunc(s.runs, func(r *run) bool { m := r.total(); return measureNamed(name).of(&m) != nil })
	}
	switch {
	case s.suite == eval.SuiteDMR && !has("accuracy"):
		return "Nobody judged our answers, so that none is counted as right."
	case s.suite == eval.SuiteOpener && !has("simh"):
		return "The data has no human openers, so that there is no SIM-H of ours."
	}
	return ""
}

// variant is a run as it is, or one kind of its questions where each kind is a system of its own.
type variant struct {
	name      string
	measures  eval.Measures
	intervals map[string][2]float64
}

// variants returns the run, and of openers what each working context makes.
func (r *run) variants() []variant {
	if r.Suite != eval.SuiteOpener {
		return []variant{{r.name, r.total(), r.Intervals}}
	}
	list := []variant{{r.name + ", own working context", r.total(), r.Intervals}}
	for _, v := range []struct{ group, says string }{{eval.WorkingOther, "another person's"}, {eval.WorkingNone, "no working context"}} {
		if m, ok := r.Measures[v.group]; ok {
			list = append(list, variant{r.name + ", " + v.says, m, nil})
		}
	}
	return list
}

// point is a measure with its interval, where one is known.
func (v *variant) point(x float64, name string, value float64) Point {
	in := v.intervals[name]
	return Point{X: x, Y: value, Low: in[0], High: in[1]}
}

// categories has bars of the evidence in context by category.
func (s *section) categories() *Chart {
	c := &Chart{Title: s.headed("evidence in context by category"), X: "category", Y: "evidence in context, %", YMax: 100, Categories: s.groupNames()}
	for _, r := range s.runs {
		bars := Series{Name: r.name}
		for i, name := range c.Categories {
			if v, ok := r.ByCategory[name]; ok {
				bars.Points = append(bars.Points, Point{X: float64(i), Y: v})
			}
		}
		if len(bars.Points) > 0 {
			c.Series = append(c.Series, bars)
		}
	}
	if len(c.Series) == 0 || len(c.Categories) < 2 {
		return nil
	}
	return c
}

// groupNames are all categories or levels of the runs.
func (s *section) groupNames() []string {
	all := map[string]bool{}
	for _, r := range s.runs {
		for name := range r.Measures {
			all[name] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), byNumber)
}

// tokens sets evidence against what it costs.
func (s *section) tokens() *Chart {
	c := &Chart{Title: s.headed("evidence in context and its price in tokens"), X: "tokens of all requests of a question (logarithmic)",
		Y: "evidence in context, %", LogX: true, YMax: 100, Note: "Whiskers: 95 of 100 resamples of the questions."}
	for _, r := range s.runs {
		in, known := r.Intervals["evidence_in_context"]
		if r.Tokens > 0 && known {
			c.Series = append(c.Series, Series{Name: r.name, Points: []Point{{X: r.Tokens, Y: r.Evidence, Low: in[0], High: in[1], Label: r.name}}})
		}
	}
	if len(c.Series) < 2 {
		return nil // one point shows no trade
	}
	return c
}

// byNumber sorts numbers by their value, and other texts after them.
func byNumber(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return cmp.Compare(a, b)
}
