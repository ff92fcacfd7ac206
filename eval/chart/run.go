package chart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"memgpt/eval"
)

// run is the report of one evaluation, as eval writes it, and the file that it is from.
type run struct {
	eval.Report
	Partial   bool     `json:"partial"` // the run was stopped, with n_done of n_planned records
	Done      int      `json:"n_done"`
	Planned   int      `json:"n_planned"`
	Cost      *float64 `json:"cost"`       // dollars a question
	CostTotal *float64 `json:"cost_total"` // dollars in all

	file string // its name without .json
	name string // by which figures and tables call it, among those of its section
}

// suiteOrder is the order of sections: the paper's experiments, and what came later.
func suiteOrder() []string {
	first := []string{eval.SuiteNestedKV, eval.SuiteRelay, eval.SuiteDocQA, eval.SuiteDMR, eval.SuiteOpener}
	for _, s := range eval.Suites() {
		if !slices.Contains(first, s) {
			first = append(first, s)
		}
	}
	return first
}

// readRuns reads all reports of a directory: its files that end in .json.
func readRuns(dir string) ([]*run, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read reports: %w", err)
	}
	var runs []*run
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".json" {
			continue
		}
		r, err := readRun(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read report %s: %w", filepath.Join(dir, e.Name()), err)
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("there is no report in %s: a report is what memgpt eval SUITE --json prints, in a file that ends in .json", dir)
	}
	order := suiteOrder()
	slices.SortStableFunc(runs, func(a, b *run) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Suite), slices.Index(order, b.Suite)), cmp.Compare(a.Data, b.Data),
			cmp.Compare(modePlace(a.Mode), modePlace(b.Mode)), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Window, b.Window), cmp.Compare(a.file, b.file))
	})
	return runs, nil
}

// modePlace puts the agent first, then what the system does for it, then the baselines.
func modePlace(m eval.Mode) int {
	if m == eval.ModeMemGPT {
		return -1
	}
	return slices.Index(eval.Modes(), m)
}

func readRun(path string) (*run, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty, as a run leaves it that was broken off: run it again, or remove the file")
	}
	r := &run{file: strings.TrimSuffix(filepath.Base(path), ".json")}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(r); err != nil {
		return nil, fmt.Errorf("it is no JSON of a report, near byte %d: %w", dec.InputOffset(), err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more than one JSON value in it, the second at byte %d: put each report into a file of its own", dec.InputOffset())
	}
	return r, r.check()
}

// check says why a report can't be used.
func (r *run) check() error {
	if r.Suite == "" {
		return errors.New("it has no suite, so it is no report of memgpt eval SUITE --json: move it elsewhere")
	}
	if !slices.Contains(eval.Suites(), r.Suite) {
		return fmt.Errorf("its suite is %q, and those of reports are %s: move it elsewhere", r.Suite, strings.Join(eval.Suites(), ", "))
	}
	if _, err := eval.ParseMode(string(r.Mode)); err != nil {
		return err
	}
	if r.N <= 0 || r.Window <= 0 {
		return fmt.Errorf("it has %d questions in a window of %d: neither can be 0", r.N, r.Window)
	}
	return nil
}

// setting is one setting of a run as names say it, "" where it has no part in the run. The usual one goes without saying
// where all runs have it.
type setting struct {
	of    func(*run) string
	usual string
}

// settings are what tells runs apart, other than their mode, in the order of names.
func settings() []setting {
	return []setting{
		{of: func(r *run) string { return r.Model }},
		{of: func(r *run) string { return "window " + grouped(r.Window) }},
		{func(r *run) string { return map[bool]string{true: "pooled", false: "not pooled"}[r.Pooled] }, "not pooled"},
		{of: func(r *run) string {
			if r.Limit == 0 {
				return "all questions"
			}
			return fmt.Sprint("limit ", r.Limit)
		}},
		{of: func(r *run) string { return fmt.Sprint("seed ", r.Seed) }},
		{of: func(r *run) string { return r.Embedder }},
		{of: func(r *run) string {
			if r.Prefetch == nil || r.Prefetch.Budget == 0 {
				return ""
			}
			return fmt.Sprintf("%d tokens handed over", r.Prefetch.Budget)
		}},
		{of: func(r *run) string {
			if r.K == 0 {
				return ""
			}
			return fmt.Sprint("K ", r.K)
		}},
	}
}

// nameRuns names the runs of a section by their mode and those settings in which they differ, so that runs of different
// settings are never one line. Where that isn't enough the file says which it is.
func nameRuns(runs []*run) {
	for _, r := range runs {
		r.name = string(r.Mode)
	}
	for _, s := range settings() {
		seen := map[string]bool{}
		for _, r := range runs {
			if v := s.of(r); v != "" {
				seen[v] = true
			}
		}
		for _, r := range runs {
			if v := s.of(r); len(seen) > 1 && v != "" {
				r.name += ", " + v
			}
		}
	}
	count := map[string]int{}
	for _, r := range runs {
		count[r.name]++
	}
	for _, r := range runs {
		if count[r.name] > 1 {
			r.name += ", " + r.file
		}
		if r.Partial {
			r.name += " (partial)"
		}
	}
}

// same is the value of a setting if all runs have the same, else "".
func same(runs []*run, of func(*run) string) string {
	for _, r := range runs {
		if of(r) != of(runs[0]) {
			return ""
		}
	}
	return of(runs[0])
}
