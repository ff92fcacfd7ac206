package chart

import (
	_ "embed" // the paper's figures
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed paper.json
var paperFile []byte

// paper holds the figures that the MemGPT paper prints, and nothing of ours. Shares are in the unit of the paper times the
// scale of their table, which makes per cent of them.
type paper struct {
	Source string `json:"source"`
	Models map[string]struct {
		ID     string `json:"id"`
		Window int    `json:"window"`
	} `json:"models"`
	Tables map[string]paperTable `json:"tables"` // by suite
}

// paperTable is one figure or table of the paper.
type paperTable struct {
	Where   string     `json:"where"`
	Scale   float64    `json:"scale"`
	X       []float64  `json:"x"`       // of a figure
	Columns []string   `json:"columns"` // measures of a table, as reports name them
	Rows    []paperRow `json:"rows"`
}

// paperRow is one line of a figure, or a row of a table.
type paperRow struct {
	Name   string    `json:"name"`
	Model  string    `json:"model"`
	Values []float64 `json:"values"` // by X or by column
	Flat   *float64  `json:"flat"`   // the one value of a line that doesn't depend on X
}

// readPaper reads the embedded file.
func readPaper() (*paper, error) {
	var p paper
	if err := json.Unmarshal(paperFile, &p); err != nil {
		return nil, fmt.Errorf("read the paper's figures: %w", err)
	}
	return &p, nil
}

// who says which models the paper's figures are of, and their windows.
func (p *paper) who() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		list = append(list, fmt.Sprintf("%s is %s with a window of %s", name, p.Models[name].ID, grouped(p.Models[name].Window)))
	}
	return strings.Join(list, ", ")
}

// window writes the windows of a row's models.
func (p *paper) window(models string) string {
	if m, ok := p.Models[models]; ok {
		return grouped(m.Window)
	}
	return ""
}

// bars are the rows of a table of the paper as series over the columns.
func (t *paperTable) bars() (list []Series) {
	for _, row := range t.Rows {
		s := Series{Name: row.Name + " (paper)", Paper: true}
		if row.Model != "" {
			s.Name = row.Name + ", " + row.Model + " (paper)"
		}
		for i, v := range row.Values {
			s.Points = append(s.Points, Point{X: float64(i), Y: v * t.Scale})
		}
		list = append(list, s)
	}
	return list
}

// lines are the series of a figure of the paper over X from low to high.
func (t *paperTable) lines(low, high float64) (list []Series) {
	for _, row := range t.Rows {
		s := Series{Name: row.Name + " (paper)", Paper: true, Line: true}
		if row.Flat != nil {
			s.Points = []Point{{X: low, Y: *row.Flat * t.Scale}, {X: high, Y: *row.Flat * t.Scale}}
		}
		for i, v := range row.Values {
			s.Points = append(s.Points, Point{X: t.X[i], Y: v * t.Scale})
		}
		list = append(list, s)
	}
	return list
}

// grouped writes a number with commas between thousands.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
