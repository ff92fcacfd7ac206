package chart

import (
	"fmt"
	"slices"
	"strings"

	"memgpt/eval"
	"memgpt/store"
)

// table is one of Markdown. Columns in which no row has anything are left out, but for the first.
type table struct {
	head []string
	rows [][]string
}

func (t *table) write(b *strings.Builder) {
	var keep []int
	for i := range t.head {
		if i == 0 || slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "" }) {
			keep = append(keep, i)
		}
	}
	line := func(cells []string) {
		b.WriteString("|")
		for _, i := range keep {
			b.WriteString(" " + cells[i] + " |")
		}
		b.WriteString("\n")
	}
	line(t.head)
	b.WriteString("|" + strings.Repeat("---|", len(keep)) + "\n")
	for _, row := range t.rows {
		line(row)
	}
	b.WriteString("\n")
}

// plain makes a text safe in a line of Markdown.
func plain(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'", "*", `\*`, "[", `\[`, "\n", " ", "\r", " ").Replace(text)
}

// column is one of a table of measures.
type column struct {
	name, title string
	of          func(*eval.Measures) *float64
}

// measureColumns are the measures of answers, by the names of intervals and of the paper's columns.
func measureColumns() []column {
	return []column{
		{"accuracy", "right, %", func(m *eval.Measures) *float64 { return m.Accuracy }},
		{"contains", "holds the answer, %", func(m *eval.Measures) *float64 { return m.Contains }},
		{"f1", "F1, %", func(m *eval.Measures) *float64 { return m.F1 }},
		{"rouge_l", "ROUGE-L recall, %", func(m *eval.Measures) *float64 { return m.RougeL }},
		{"sim1", "SIM-1", func(m *eval.Measures) *float64 { return m.Sim1 }},
		{"sim3", "SIM-3", func(m *eval.Measures) *float64 { return m.Sim3 }},
		{"simh", "SIM-H", func(m *eval.Measures) *float64 { return m.SimH }},
		{"abstained", "abstained, %", func(m *eval.Measures) *float64 { return m.Abstained }},
		{"abstention_right", "abstained rightly, %", func(m *eval.Measures) *float64 { return m.AbstentionRight }},
	}
}

// measureNamed is the column of that name.
func measureNamed(name string) column {
	list := measureColumns()
	return list[max(0, slices.IndexFunc(list, func(c column) bool { return c.name == name }))]
}

// telling are the columns that tell something of a suite: where a rule says what is right, likeness to the expected answer
// tells nothing more.
func (s *section) telling() []column {
	list := measureColumns()
	if s.suite == eval.SuiteNestedKV || s.suite == eval.SuiteRelay {
		list = slices.DeleteFunc(list, func(c column) bool { return c.name == "contains" || c.name == "f1" || c.name == "rouge_l" })
	}
	return list
}

// total are the measures of all questions of a run.
func (r *run) total() eval.Measures {
	m := eval.Measures{N: r.N, Accuracy: r.Accuracy, Contains: r.Contains, F1: r.F1, RougeL: r.RougeL, Abstained: r.Abstained,
		AbstentionRight: r.AbstentionRight, Sim1: r.Sim1, Sim3: r.Sim3, SimH: r.SimH}
	if _, known := r.Intervals["evidence_in_context"]; known {
		m.Evidence = &r.Evidence
	}
	return m
}

// figureText writes a measure: shares with one place, similarities with three.
func figureText(name string, v float64) string {
	if strings.HasPrefix(name, "sim") {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// cell writes a measure with its interval, where one is known.
func (v *variant) cell(name string, value *float64) string {
	if value == nil {
		return ""
	}
	text := figureText(name, *value)
	if in, ok := v.intervals[name]; ok {
		text += " (" + figureText(name, in[0]) + " to " + figureText(name, in[1]) + ")"
	}
	return text
}

// main is the table of a section's figures, with the paper's rows under ours where it has such a table.
func (s *section) main() *table {
	t := &table{head: []string{"system", "model", "window", "questions"}}
	for _, c := range s.telling() {
		t.head = append(t.head, c.title)
	}
	t.head = append(t.head, "evidence in context, %", "all of it, %", "searches", "tokens", "$ a question", "$ in all", "model failed")
	for _, r := range s.runs {
		for i, v := range r.variants() {
			n := fmt.Sprint(v.measures.N)
			if r.Partial {
				n += fmt.Sprintf("; stopped at %d of %d", r.Done, r.Planned)
			}
			row := []string{plain(v.name), plain(r.Model), grouped(r.Window), n}
			for _, c := range s.telling() {
				row = append(row, v.cell(c.name, c.of(&v.measures)))
			}
			row = append(row, v.cell("evidence_in_context", v.measures.Evidence))
			if i == 0 {
				row = append(row, r.prices()...)
			} else {
				row = append(row, make([]string, len(r.prices()))...)
			}
			t.rows = append(t.rows, row)
		}
	}
	s.paperRows(t)
	return t
}

// prices are the cells of what a run took, which are of its own variant alone.
func (r *run) prices() []string {
	all, failed := "", ""
	if _, known := r.Intervals["evidence_in_context"]; known {
		all = fmt.Sprintf("%.1f", r.All)
	}
	if r.Failed > 0 {
		failed = fmt.Sprint(r.Failed)
	}
	return []string{all, fmt.Sprintf("%.1f", r.Searches), grouped(int(r.Tokens + .5)), dollars(r.Cost), dollars(r.CostTotal), failed}
}

// dollars is a sum, "" where it isn't known or nothing was charged.
func dollars(v *float64) string {
	if v == nil || *v <= 0 {
		return ""
	}
	return store.FormatMoney(int64(*v*1e9 + .5))
}

// paperRows adds the paper's rows to a table of ours.
func (s *section) paperRows(t *table) {
	if s.paper == nil || len(s.paper.Columns) == 0 {
		return
	}
	for _, p := range s.paper.Rows {
		row := make([]string, len(t.head))
		row[0], row[1], row[2] = "*"+plain(p.Name)+" (paper)*", plain(p.Model), s.all.window(p.Model)
		for i, c := range s.telling() {
			if at := slices.Index(s.paper.Columns, c.name); at >= 0 {
				row[4+i] = figureText(c.name, p.Values[at]*s.paper.Scale)
			}
		}
		t.rows = append(t.rows, row)
	}
}

// lost is the table of where evidence was lost.
func (s *section) lost() *table {
	t := &table{head: []string{"system"}}
	for _, l := range eval.Losses() {
		t.head = append(t.head, strings.ReplaceAll(string(l), "_", " ")+", %")
	}
	for _, r := range s.runs {
		row := []string{plain(r.name)}
		for _, l := range eval.Losses() {
			row = append(row, fmt.Sprintf("%.1f", r.Lost[l]))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// groups is the table of one measure by category or level.
func (s *section) groups(c column) *table {
	names := s.groupNames()
	t := &table{head: append([]string{"system"}, names...)}
	for i := range names {
		t.head[i+1] = plain(names[i])
	}
	for _, r := range s.runs {
		row := []string{plain(r.name)}
		for _, name := range names {
			cell := ""
			if m, ok := r.Measures[name]; ok && c.of(&m) != nil {
				cell = fmt.Sprintf("%s (n %d)", figureText(c.name, *c.of(&m)), m.N)
			}
			row = append(row, cell)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// overK is the table of a measure against K, with the paper's beside where it is the same measure.
func (s *section) overK(c column, beside *paperTable) *table {
	var ks []string
	for _, r := range s.runs {
		for k := range r.ByK {
			if !slices.Contains(ks, k) {
				ks = append(ks, k)
			}
		}
	}
	slices.SortFunc(ks, byNumber)
	t := &table{head: append([]string{"K"}, ks...)}
	for _, r := range s.runs {
		if len(r.ByK) < 2 {
			continue
		}
		row := []string{plain(r.name)}
		for _, k := range ks {
			m, cell := r.ByK[k], ""
			if v := c.of(&m); v != nil {
				cell = figureText(c.name, *v)
			}
			row = append(row, cell)
		}
		t.rows = append(t.rows, row)
	}
	if beside != nil && len(t.rows) > 0 {
		beside.rowsOver(t, "%.0f")
	}
	return t
}

// rowsOver adds the paper's lines to a table whose head are values of X.
func (p *paperTable) rowsOver(t *table, form string) {
	for _, line := range p.Rows {
		row := []string{"*" + plain(line.Name) + " (paper)*"}
		for _, x := range t.head[1:] {
			cell := ""
			if line.Flat != nil {
				cell = fmt.Sprintf(form, *line.Flat*p.Scale)
			}
			for i, v := range line.Values {
				if fmt.Sprint(p.X[i]) == x {
					cell = fmt.Sprintf(form, v*p.Scale)
				}
			}
			row = append(row, cell)
		}
		t.rows = append(t.rows, row)
	}
}

// wrongGold compares the figures with those without the questions whose gold is known to be wrong.
func (s *section) wrongGold() *table {
	t := &table{head: []string{"system", "questions"}}
	columns := append(s.telling(), column{"evidence_in_context", "evidence in context, %", func(m *eval.Measures) *float64 { return m.Evidence }})
	for _, c := range columns {
		t.head = append(t.head, c.title)
	}
	row := func(name string, m *eval.Measures) {
		cells := []string{name, fmt.Sprint(m.N)}
		for _, c := range columns {
			cell := ""
			if v := c.of(m); v != nil {
				cell = figureText(c.name, *v)
			}
			cells = append(cells, cell)
		}
		t.rows = append(t.rows, cells)
	}
	for _, r := range s.runs {
		if g := r.WrongGold; g != nil {
			m := r.total()
			row(plain(r.name)+", all", &m)
			row(fmt.Sprintf("%s, without %d of wrong gold", plain(r.name), g.Asked), &g.Left)
		}
	}
	return t
}
