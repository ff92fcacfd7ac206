package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"memgpt/eval"
)

// compareFlags are the flags of eval compare.
type compareFlags struct {
	by          string
	limit       int
	all, asJSON bool
}

// compareLimit is how many questions are listed where nothing else is said.
const compareLimit = 20

const compareLong = `eval compare holds two runs of one suite against each other, question by question: A and B are files of records, as
"eval SUITE --out DIR" writes them (JSON lines), or directories of such files, of which those of the same name are compared.

Questions are paired by variant, case, id and number of hits. Those whose words have changed are said and left out, those
that only one run has are counted. For each yes-or-no measure that both runs have it prints how many questions both, only
one or none of them has, the difference with an interval (95 of 100 resamples of the pairs), and the probability of such
a difference by chance (McNemar's exact test, two-sided, and mid-p); for all else the mean difference. Categories have that
probability adjusted for their number (Holm). Then it lists the questions that changed, the lost ones first.

What else differs between the runs (mode, model, window, seed, policies, judge) stands at the head: a difference in results
says something about a change only where the rest is the same.`

func (a *app) evalCompareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use: "compare A B", Short: "hold two runs against each other, question by question", Long: compareLong, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.limit < 0 {
				return errors.New("eval compare: --limit takes 0 or more; 0 lists all")
			}
			if f.all {
				f.limit = 0
			}
			return a.runCompare(args[0], args[1], f)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.by, "by", "", "measure whose changed questions are listed, as \"all evidence in context\"; without it the first that both runs have")
	set.IntVar(&f.limit, "limit", compareLimit, "how many changed questions are listed")
	set.BoolVar(&f.all, "all", false, "list all of them")
	set.BoolVar(&f.asJSON, "json", false, "print one JSON object for each pair of files, on a line of its own, with all changed questions")
	return cmd
}

func (a *app) runCompare(pathA, pathB string, f compareFlags) error {
	files, notes, err := compareFiles(pathA, pathB)
	if err != nil {
		return fmt.Errorf("eval compare: %w", err)
	}
	for _, n := range notes {
		a.say("%s", n)
	}
	for i, pair := range files {
		c, err := compareRecordFiles(pair[0], pair[1], f.by)
		if err != nil {
			return fmt.Errorf("eval compare: %w", err)
		}
		if i > 0 && !f.asJSON {
			if _, err := io.WriteString(a.out, "\n"); err != nil {
				return err
			}
		}
		if f.asJSON {
			err = c.WriteJSON(a.out)
		} else {
			err = c.WriteText(a.out, f.limit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareRecordFiles compares two files of records.
func compareRecordFiles(pathA, pathB, by string) (*eval.Comparison, error) {
	var runs [2][]eval.Record
	for i, path := range []string{pathA, pathB} {
		var err error
		if runs[i], err = eval.ReadRecords(path); err != nil {
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				err = fmt.Errorf("%w; take the line away if the run was cut off in it", err)
			}
			return nil, fmt.Errorf("read the records: %w", err)
		}
	}
	c, err := eval.Compare(runs[0], runs[1], by)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", pathA, pathB, err)
	}
	c.A.Name, c.B.Name = pathA, pathB
	return c, nil
}

// compareFiles pairs the files of two paths. Notes tell of files that have no match.
func compareFiles(pathA, pathB string) (pairs [][2]string, notes []string, err error) {
	var lists [2]map[string]string
	var dirs [2]bool
	for i, path := range []string{pathA, pathB} {
		if lists[i], dirs[i], err = recordFiles(path); err != nil {
			return nil, nil, err
		}
	}
	if dirs[0] != dirs[1] {
		return nil, nil, fmt.Errorf("%s and %s: one is a directory and the other a file; give two files or two directories", pathA, pathB)
	}
	if !dirs[0] {
		return [][2]string{{pathA, pathB}}, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(lists[0])) {
		if other, ok := lists[1][name]; ok {
			pairs = append(pairs, [2]string{lists[0][name], other})
		} else {
			notes = append(notes, fmt.Sprintf("%s is only in %s", name, pathA))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lists[1])) {
		if _, ok := lists[0][name]; !ok {
			notes = append(notes, fmt.Sprintf("%s is only in %s", name, pathB))
		}
	}
	if len(pairs) == 0 {
		return nil, nil, fmt.Errorf("%s and %s have no file of records of the same name: %s and %s; compare two files by their paths", pathA, pathB,
			namesOf(lists[0]), namesOf(lists[1]))
	}
	return pairs, notes, nil
}

// recordFiles returns the files of records that a path holds, by name.
func recordFiles(path string) (files map[string]string, dir bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, false, err
	}
	if !info.IsDir() {
		return map[string]string{filepath.Base(path): path}, false, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, false, err
	}
	files = map[string]string{}
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".jsonl") {
			files[e.Name()] = filepath.Join(path, e.Name())
		}
	}
	return files, true, nil
}

func namesOf(files map[string]string) string {
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(files)), ", "), "none")
}
