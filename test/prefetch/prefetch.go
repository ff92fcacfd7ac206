//go:build ignore

// Command prefetch measures who should look into memory, the model or the system, and writes what it finds into
// docs/prefetch.md, between its marks, and into two charts beside it. From the root of the module:
//
//	go build ./cmd/memgpt
//	go run test/prefetch/prefetch.go --bin ./memgpt --data locomo.jsonl --limit 100
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sweep is what the command line asks for.
type sweep struct {
	bin, data, cache, docs, runs string
	limit, window                int

	done map[string]json.RawMessage // reports, by command line
}

// report is what is read of a report of memgpt eval.
type report struct {
	Evidence float64 `json:"evidence_in_context"`
	Tokens   float64 `json:"tokens"`
	Searches float64 `json:"searches"`
	Prefetch struct {
		Turns, Hits, Tokens, Second, Evidence float64
		Floors                                []struct{ Score, Turns, Evidence float64 }
	} `json:"prefetch"`
}

func main() {
	var s sweep
	flag.StringVar(&s.bin, "bin", "memgpt", "the program that is measured")
	flag.StringVar(&s.data, "data", "", "file with conversations, as memgpt eval locomo reads it")
	flag.StringVar(&s.cache, "cache", filepath.Join(os.TempDir(), "memgpt-vectors"), "directory that keeps vectors from run to run")
	flag.StringVar(&s.docs, "docs", "docs", "directory with prefetch.md")
	flag.StringVar(&s.runs, "runs", "", "file that keeps reports, so that what was interrupted goes on")
	flag.IntVar(&s.limit, "limit", 100, "questions a run")
	flag.IntVar(&s.window, "window", 4096, "context window in tokens")
	flag.Parse()
	if err := s.run(); err != nil {
		log.Fatal(err)
	}
}

func (s *sweep) run() error {
	s.done = map[string]json.RawMessage{}
	if data, err := os.ReadFile(s.runs); err == nil {
		if err := json.Unmarshal(data, &s.done); err != nil {
			return fmt.Errorf("read %s: %w", s.runs, err)
		}
	} else if s.runs != "" && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	handed, err := s.budgets()
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := s.slips(&text, handed); err != nil {
		return err
	}
	if err := s.interruptions(&text, handed); err != nil {
		return err
	}
	return s.write(text.String())
}

// eval runs memgpt eval once.
func (s *sweep) eval(mode, model string, budget int) (r report, err error) {
	args := []string{"eval", "locomo", "--data", s.data, "--limit", fmt.Sprint(s.limit), "--window", fmt.Sprint(s.window),
		"--cache", s.cache, "--json", "--mode", mode, "--model", model}
	if budget > 0 {
		args = append(args, "--prefetch-budget", fmt.Sprint(budget))
	}
	key := strings.Join(args, " ")
	out, known := s.done[key]
	if !known {
		var errs bytes.Buffer
		cmd := exec.Command(s.bin, args...)
		cmd.Stderr = &errs
		if out, err = cmd.Output(); err != nil {
			return r, fmt.Errorf("%s: %w: %s", key, err, errs.String())
		}
		s.done[key] = out
		if err := s.keep(); err != nil {
			return r, err
		}
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return r, fmt.Errorf("%s: %w", key, err)
	}
	log.Printf("%s %s budget %d: evidence %.2f, tokens %.0f, searches %.2f", mode, model, budget, r.Evidence, r.Tokens, r.Searches)
	return r, nil
}

// keep writes all reports down.
func (s *sweep) keep() error {
	if s.runs == "" {
		return nil
	}
	data, err := json.Marshal(s.done)
	if err != nil {
		return err
	}
	return os.WriteFile(s.runs, data, 0o644)
}

var budgetSizes = []int{250, 500, 750, 1000}

// budgets measures the system alone with several budgets.
func (s *sweep) budgets() ([]report, error) {
	var list []report
	for _, b := range budgetSizes {
		r, err := s.eval("prefetch", "offline", b)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// slips measures a forgetful model, that with the system's help, and sets both against the system alone.
func (s *sweep) slips(text *strings.Builder, handed []report) error {
	kinds := []struct {
		name        string
		from, steps int // at 0 there is no slip of any kind
	}{{"forget_search", 0, 10}, {"bad_query", 1, 2}, {"stop_paging", 1, 2}}
	system := handed[len(handed)-1].Evidence
	fmt.Fprintf(text, "| slip | p | model pages: evidence, tokens, searches | both: evidence, tokens, searches | system alone |\n|---|---|---|---|---|\n")
	c := chart{title: "Evidence in the prompt against forgetfulness", x: "p: share of turns in which the model forgets to search", y: "evidence in the prompt, %", right: 1}
	said := ""
	for _, kind := range kinds {
		var pages, both []point
		for i := kind.from; i <= kind.steps; i++ {
			p := float64(i) / float64(kind.steps)
			model := fmt.Sprintf("offline:%s=%g,seed=1", kind.name, p)
			alone, err := s.eval("memgpt", model, 0)
			if err != nil {
				return err
			}
			with, err := s.eval("both", model, 0)
			if err != nil {
				return err
			}
			pages, both = append(pages, point{p, alone.Evidence}), append(both, point{p, with.Evidence})
			fmt.Fprintf(text, "| %s | %g | %.1f, %.0f, %.1f | %.1f, %.0f, %.1f | %.1f |\n", kind.name, p, alone.Evidence, alone.Tokens, alone.Searches,
				with.Evidence, with.Tokens, with.Searches, system)
		}
		if kind.name == "forget_search" {
			c.lines = []line{{"both", both}, {"the model pages", pages}}
			said = crossings(handed, pages, &c)
		}
	}
	text.WriteString(said + "\n![Evidence in the prompt against forgetfulness](prefetch-slips.svg)\n")
	return os.WriteFile(filepath.Join(s.docs, "prefetch-slips.svg"), []byte(c.svg()), 0o644)
}

// crossings says from which p on the system alone, with each budget, brings more than the model alone.
func crossings(handed []report, pages []point, c *chart) string {
	for i, r := range handed {
		c.lines = append(c.lines, line{fmt.Sprintf("system alone, %d tokens", budgetSizes[i]), []point{{0, r.Evidence}, {1, r.Evidence}}})
	}
	var said []string
	for i, r := range handed {
		at := "at no p"
		if p, ok := crossing(pages, r.Evidence); ok {
			at = fmt.Sprintf("from p = %.2f on", p)
			if p == 0 {
				at = "at every p"
			}
		}
		said = append(said, fmt.Sprintf("with %d tokens %s", budgetSizes[i], at))
	}
	return fmt.Sprintf("\nWhere the lines cross: the system alone brings more evidence than the model that forgets to search with probability p\n%s.\n",
		strings.Join(said, ", "))
}

// crossing returns the p at which a falling line passes a level.
func crossing(line []point, level float64) (float64, bool) {
	if line[0].y <= level {
		return 0, true
	}
	for i := 1; i < len(line); i++ {
		if a, b := line[i-1], line[i]; b.y <= level {
			return a.x + (a.y-level)/(a.y-b.y)*(b.x-a.x), true
		}
	}
	return 0, false
}

// interruptions sets what is carried against how often the system speaks, and how much.
func (s *sweep) interruptions(text *strings.Builder, handed []report) error {
	text.WriteString("\n| budget | window | turns with something handed over | looked twice | hits | tokens | evidence handed over |\n|---|---|---|---|---|---|---|\n")
	wide := *s
	wide.window = 4 * s.window
	row := func(window, budget int, r report) {
		p := r.Prefetch
		fmt.Fprintf(text, "| %d | %d | %.0f %% | %.0f %% | %.1f | %.0f | %.1f %% |\n", budget, window, p.Turns, p.Second, p.Hits, p.Tokens, p.Evidence)
	}
	for i, r := range handed {
		row(s.window, budgetSizes[i], r)
	}
	for _, budget := range []int{1000, 2000} {
		r, err := wide.eval("prefetch", "offline", budget)
		if err != nil {
			return err
		}
		row(wide.window, budget, r)
	}
	text.WriteString("\n| turns interrupted | least score of the best hit |")
	c := chart{title: "Evidence carried against turns interrupted", x: "turns interrupted, % (where the best hit scores highest)", y: "evidence handed over, %", right: 100}
	for i, r := range handed {
		fmt.Fprintf(text, " evidence with %d tokens |", budgetSizes[i])
		points := []point{{0, 0}}
		for _, f := range r.Prefetch.Floors {
			points = append(points, point{f.Turns, f.Evidence})
		}
		c.lines = append(c.lines, line{fmt.Sprintf("%d tokens", budgetSizes[i]), points})
	}
	text.WriteString("\n|---|---|" + strings.Repeat("---|", len(handed)) + "\n")
	for i, f := range handed[len(handed)-1].Prefetch.Floors {
		fmt.Fprintf(text, "| %.0f %% | %.1f |", f.Turns, f.Score)
		for _, r := range handed {
			if i < len(r.Prefetch.Floors) {
				fmt.Fprintf(text, " %.1f |", r.Prefetch.Floors[i].Evidence)
			} else {
				text.WriteString(" |")
			}
		}
		text.WriteByte('\n')
	}
	text.WriteString("\n![Evidence carried against turns interrupted](prefetch-turns.svg)\n")
	return os.WriteFile(filepath.Join(s.docs, "prefetch-turns.svg"), []byte(c.svg()), 0o644)
}

// Marks of the part of the page that is written here.
const begins, ends = "<!-- measured by test/prefetch -->\n", "<!-- end of what was measured -->\n"

func (s *sweep) write(text string) error {
	path := filepath.Join(s.docs, "prefetch.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(page), begins)
	_, after, ok2 := strings.Cut(rest, ends)
	if !ok || !ok2 {
		return errors.New(path + " lacks the marks between which the figures stand")
	}
	text = strings.ReplaceAll(text, "", "")
	return os.WriteFile(path, []byte(before+begins+"\n"+strings.TrimSpace(text)+"\n\n"+ends+after), 0o644)
}

// chart draws lines over an axis that begins at 0; y goes from 0 to 100.
type chart struct {
	title, x, y string
	right       float64 // end of the x axis
	lines       []line
}

type line struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// Colours and dashes of lines: told apart without colours too, readable on white and on black.
var (
	colours = []string{"#d1495b", "#3a7ca5", "#2e8b57", "#b8860b", "#8a63d2", "#888888"}
	dashes  = []string{"", "7 3", "2 3", "9 3 2 3", "4 4", "1 4"}
)

// Sizes of a chart in pixels.
const (
	width, height                     = 640, 360
	leftEdge, topEdge, plotW, plotH   = 60, 30, 380, 270
	labelX, labelGap, tickGap, charUp = leftEdge + plotW + 12, 15.0, 5, 4
)

func (c *chart) svg() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, c.title)
	b.WriteString("\n<style>text{font:12px sans-serif;fill:#333}.axis{stroke:#333}.grid{stroke:#999;stroke-opacity:.35}" +
		"@media(prefers-color-scheme:dark){text{fill:#ddd}.axis{stroke:#ddd}}</style>\n")
	fmt.Fprintf(&b, `<text x="%d" y="18" font-weight="bold">%s</text>`+"\n", leftEdge, c.title)
	for i := 0; i <= 5; i++ {
		x, y := leftEdge+plotW*i/5, topEdge+plotH-plotH*i/5
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%d" y2="%d"/><text x="%d" y="%d" text-anchor="end">%d</text>`, leftEdge, leftEdge+plotW, y, y,
			leftEdge-tickGap, y+charUp, 20*i)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%g</text>`+"\n", x, topEdge+plotH+16, c.right*float64(i)/5)
	}
	fmt.Fprintf(&b, `<path class="axis" fill="none" d="M%d %dV%dH%d"/>`+"\n", leftEdge, topEdge, topEdge+plotH, leftEdge+plotW)
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", leftEdge+plotW/2, topEdge+plotH+36, c.x)
	fmt.Fprintf(&b, `<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n", topEdge+plotH/2, c.y)
	labels := c.labels()
	for i, l := range c.lines {
		var path []string
		for _, p := range l.points {
			path = append(path, fmt.Sprintf("%.1f %.1f", leftEdge+plotW*p.x/c.right, topEdge+plotH*(1-p.y/100)))
		}
		fmt.Fprintf(&b, `<path fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s" d="M%s"/>`, colours[i%len(colours)], dashes[i%len(dashes)], strings.Join(path, "L"))
		fmt.Fprintf(&b, `<text x="%d" y="%.1f" style="fill:%s">%s</text>`+"\n", labelX, labels[i]+charUp, colours[i%len(colours)], l.name)
	}
	return b.String() + "</svg>\n"
}

// labels are the heights of the lines' names: at their ends, moved apart.
func (c *chart) labels() []float64 {
	at, order := make([]float64, len(c.lines)), make([]int, len(c.lines))
	for i, l := range c.lines {
		at[i], order[i] = topEdge+plotH*(1-l.points[len(l.points)-1].y/100), i
	}
	for i := range order { // few: the highest first
		for j := i + 1; j < len(order); j++ {
			if at[order[j]] < at[order[i]] {
				order[i], order[j] = order[j], order[i]
			}
		}
	}
	for i := 1; i < len(order); i++ {
		at[order[i]] = max(at[order[i]], at[order[i-1]]+labelGap)
	}
	return at
}
