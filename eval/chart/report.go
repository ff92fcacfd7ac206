package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"memgpt/eval"
)

// DefaultTitle heads reports.
const DefaultTitle = "What the evaluations show"

// Report reads the reports of a directory, which are its files that end in .json, each as memgpt eval SUITE --json prints
// it, and writes report.md and its figures beside them, over what an earlier call wrote. It returns the names of the files
// written. Where a file isn't such a report, or there is none, the error says which and why, and nothing is written.
func Report(dir, title string) ([]string, error) {
	runs, err := readRuns(dir)
	if err != nil {
		return nil, err
	}
	p, err := readPaper()
	if err != nil {
		return nil, err
	}
	if title == "" {
		title = DefaultTitle
	}
	var b strings.Builder
	b.WriteString("# " + plain(title) + "\n\n" + opening(runs, p))
	var written []string
	taken := map[string]bool{}
	for _, s := range sections(runs, p) {
		files, err := s.write(&b, dir, taken)
		if err != nil {
			return written, err
		}
		written = append(written, files...)
	}
	path := filepath.Join(dir, "report.md")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return written, fmt.Errorf("write the report: %w", err)
	}
	return append([]string{path}, written...), nil
}

// opening says what the report shows and what not.
func opening(runs []*run, p *paper) string {
	standIn, beside, models := false, false, map[string]bool{}
	var names []string
	for _, r := range runs {
		if _, ok := p.Tables[r.Suite]; ok {
			beside = true
		}
		switch {
		case r.Model == "offline" || strings.HasPrefix(r.Model, "offline:"):
			standIn = true
		case !models[r.Model]:
			models[r.Model] = true
			names = append(names, plain(r.Model))
		}
	}
	text := ""
	if standIn {
		text += "Runs of `offline` are answered by a stand-in that follows rules. They show that the mechanism loses nothing and finds what " +
			"is asked for. They say nothing of how well a language model decides when to search, for what, and when to stop.\n\n"
	}
	if len(names) > 0 {
		text += "Runs of " + strings.Join(names, ", ") + " show what the decisions of these models are worth, in the windows named, and of no others.\n\n"
	}
	text += "Shares are in per cent, similarities from 0 to 1. In brackets stands what 95 of 100 resamples of the questions give. " +
		"Searches, tokens and dollars are a question's, tokens those of all its requests.\n\n"
	if beside {
		text += "Some figures are the paper's and were not measured here (" + p.Source + "). They are marked *(paper)* in tables and drawn hollow " +
			"and dashed. They are of other models (" + p.who() + "), in other windows, on other samples of questions: compare the shape of lines and " +
			"not the height of points.\n\n"
	}
	return text
}

// write appends a section to the report and draws its figures, under names that nothing has taken yet.
func (s *section) write(b *strings.Builder, dir string, taken map[string]bool) (files []string, err error) {
	b.WriteString("## " + plain(s.headed(aim(s.suite))) + "\n\n")
	for _, f := range s.figures() {
		name := fileName(taken, s.suite, strings.TrimSuffix(s.data, filepath.Ext(s.data)), f.about)
		base := filepath.Join(dir, name)
		if err := f.chart.Write(base); err != nil {
			return files, err
		}
		files = append(files, base+".svg", base+"-dark.svg", base+".png")
		fmt.Fprintf(b, "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"%s-dark.svg\"><img alt=\"%s\" src=\"%s.svg\"></picture>\n\n",
			name, s.suite+": "+f.about, name)
	}
	if s.paper != nil {
		fmt.Fprintf(b, "The paper's are those of its %s.\n\n", s.paper.Where)
	}
	s.main().write(b)
	s.details(b)
	s.remarks(b)
	return files, nil
}

// details are the tables that belong to a suite, where evidence was lost, and wrong gold.
func (s *section) details(b *strings.Builder) {
	titled := func(title string, t *table) {
		if len(t.rows) > 0 && len(t.head) > 1 {
			b.WriteString(title + "\n\n")
			t.write(b)
		}
	}
	right := measureColumns()[0]
	evidence := column{"evidence_in_context", "", func(m *eval.Measures) *float64 { return m.Evidence }}
	switch s.suite {
	case eval.SuiteNestedKV, eval.SuiteRelay:
		t := s.groups(right)
		if s.paper != nil {
			s.paper.rowsOver(t, "%.0f")
		}
		titled("Right answers by hops, in per cent:", t)
	case eval.SuiteDocQA:
		titled("Right answers by documents in the prompt, in per cent:", s.overK(right, s.paper))
		titled("Evidence in context by documents in the prompt, in per cent:", s.overK(evidence, nil))
	case eval.SuiteOpener:
	default:
		if len(s.groupNames()) > 1 {
			titled("Evidence in context by category, in per cent:", s.groups(evidence))
		}
	}
	if s.suite != eval.SuiteOpener {
		titled("Where evidence was lost, in per cent of questions:", s.lost())
	}
	titled("With and without the questions whose gold is known to be wrong:", s.wrongGold())
}

// remarks say who judged, what was left out, and where the procedure differs from the paper's.
func (s *section) remarks(b *strings.Builder) {
	var list []string
	add := func(text string) {
		for _, have := range list {
			if have == text {
				return
			}
		}
		list = append(list, text)
	}
	if text := s.unmeasured(); text != "" {
		add(text)
	}
	for _, r := range s.runs {
		if r.Accuracy != nil && r.Judge == nil {
			add("Right, without a judge: " + plain(r.AccuracyBy) + ".")
		}
		if j := r.Judge; j != nil {
			add(fmt.Sprintf("%s: right by the judge %s, instructions %s; %d verdicts, and %d answers without one, which are in no share.",
				plain(r.name), plain(j.Model), plain(j.Prompt), j.N, j.Failed))
		}
		if r.Partial {
			add(fmt.Sprintf("%s: the run was stopped when %d of %d questions were done; its figures are of these.", plain(r.name), r.Done, r.Planned))
		}
		if r.WithoutEvidence > 0 {
			add(fmt.Sprintf("%d questions of the data name no evidence; they are not asked.", r.WithoutEvidence))
		}
		if r.GoldMissing > 0 {
			add(fmt.Sprintf("%s: %d pieces of evidence are named that the data doesn't have.", plain(r.name), r.GoldMissing))
		}
	}
	if same(s.runs, func(r *run) string { return fmt.Sprint(r.N) }) == "" {
		add("The runs have different numbers of questions: compare them with their intervals in mind.")
	}
	for _, note := range eval.Notes(s.suite) {
		add(plain(note))
	}
	for _, text := range list {
		b.WriteString("- " + text + "\n")
	}
	if len(list) > 0 {
		b.WriteString("\n")
	}
}

// aim says in a few words what a suite measures.
func aim(suite string) string {
	switch suite {
	case eval.SuiteNestedKV:
		return "chains of keys"
	case eval.SuiteRelay:
		return "the same chains in other words"
	case eval.SuiteDocQA:
		return "questions about documents"
	case eval.SuiteDMR:
		return "deep memory retrieval"
	case eval.SuiteOpener:
		return "the first message of the next session"
	case eval.SuiteLocomo:
		return "months of talk between two people"
	case eval.SuiteLongMemEval:
		return "sessions of a user with an assistant"
	case eval.SuiteMadial:
		return "memories that should come to mind unasked (Chinese)"
	case eval.SuiteMemDaily:
		return "daily notes (Chinese)"
	}
	return "results"
}

// fileName makes a name of a file without its end, of lower-case letters, digits and hyphens. Parts that come twice stand once,
// and a name that is taken gets a number.
func fileName(taken map[string]bool, parts ...string) string {
	var list []string
	for _, p := range parts {
		p = strings.Join(strings.FieldsFunc(strings.ToLower(p), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }), "-")
		if p != "" && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	base := strings.Join(list, "-")
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	taken[name] = true
	return name
}
