package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes the comparison as one JSON object on one line.
func (c *Comparison) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(c)
}

// WriteText writes the comparison for a person, with at most limit of the questions that changed; 0 is all.
func (c *Comparison) WriteText(w io.Writer, limit int) error {
	var b strings.Builder
	c.writeHead(&b)
	if err := c.writeMeasures(&b); err != nil {
		return err
	}
	if err := c.writeCategories(&b); err != nil {
		return err
	}
	c.writeQuestions(&b, limit)
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Comparison) writeHead(b *strings.Builder) {
	fmt.Fprintf(b, "suite %s\n", c.Suite)
	for i, s := range []*CompareSide{&c.A, &c.B} {
		fmt.Fprintf(b, "%c  %s: mode %s, model %s, window %d, seed %d, %d records", 'A'+i, s.Name, s.Mode, s.Model, s.Window, s.Seed, s.N)
		if s.Policy != "" {
			fmt.Fprintf(b, ", %s", s.Policy)
		}
		if s.Failed > 0 {
			fmt.Fprintf(b, ", model failed in %d", s.Failed)
		}
		b.WriteByte('\n')
	}
	if len(c.Differ) == 0 {
		b.WriteString("the runs differ in nothing that records tell: mode, model, window, seed, policy and judge are the same\n")
	} else {
		fmt.Fprintf(b, "what differs: %s\n", strings.Join(c.Differ, "; "))
	}
	fmt.Fprintf(b, "%d questions in both", c.Paired)
	if c.Hits > 0 {
		fmt.Fprintf(b, " at %d hits", c.Hits)
	}
	fmt.Fprintf(b, ", %d only in A, %d only in B\n", c.OnlyA, c.OnlyB)
	if n := len(c.Changed); n > 0 {
		fmt.Fprintf(b, "%d questions have changed their words and are left out: %s\n", n, firstFew(c.Changed, 5))
	}
	if c.Regold > 0 {
		fmt.Fprintf(b, "of %d questions the expected answer or the evidence has changed: their verdicts are measured against different things\n", c.Regold)
	}
}

func firstFew(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:n], "; "), len(list)-n)
}

func (c *Comparison) writeMeasures(b *strings.Builder) error {
	t := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "\nyes or no\tn\tA %\tB %\tB-A\t95 %\tboth\tonly A\tonly B\tneither\tp\tmid-p")
	for _, d := range c.Measures {
		if n := d.Counts; n != nil {
			_, _ = fmt.Fprintf(t, "%s\t%d\t%.2f\t%.2f\t%+.2f\t%+.2f to %+.2f\t%d\t%d\t%d\t%d\t%s\t%s\n", d.Name, d.N, d.A, d.B, d.Diff, d.Low, d.High,
				n.Both, n.Lost, n.Gained, n.Neither, probability(*d.P), probability(*d.MidP))
		}
	}
	_, _ = fmt.Fprintln(t, "\nhow much\tn\tA\tB\tB-A\t95 %")
	for _, d := range c.Measures {
		if d.Counts == nil {
			_, _ = fmt.Fprintf(t, "%s\t%d\t%g\t%g\t%+g\t%+g to %+g\n", d.Name, d.N, d.A, d.B, d.Diff, d.Low, d.High)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString("p: McNemar's exact test, two-sided, of the questions on which the runs disagree; mid-p is its less cautious variant.\n" +
		"Intervals: 95 of 100 resamples of the pairs. Each measure is a test of its own: choose one before you look.\n")
	return nil
}

func (c *Comparison) writeCategories(b *strings.Builder) error {
	if len(c.Categories) < 2 {
		return nil
	}
	t := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "\nby category\tmeasure\tn\tA %\tB %\tB-A\t95 %\tonly A\tonly B\tp\tp (Holm)")
	for _, cat := range c.Categories {
		for _, d := range cat.Measures {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%.2f\t%.2f\t%+.2f\t%+.2f to %+.2f\t%d\t%d\t%s\t%s\n", cat.Category, d.Name, d.N, d.A, d.B, d.Diff, d.Low, d.High,
				d.Counts.Lost, d.Counts.Gained, probability(*d.P), probability(*d.Holm))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b, "%d categories are as many chances of a false alarm: p (Holm) is p adjusted for that, for each measure by itself.\n", len(c.Categories))
	return nil
}

func (c *Comparison) writeQuestions(b *strings.Builder, limit int) {
	if c.By == "" {
		b.WriteString("\nthe runs share no yes-or-no measure, so no question is listed\n")
		return
	}
	if len(c.Questions) == 0 {
		fmt.Fprintf(b, "\nno question changed by %q\n", c.By)
		return
	}
	lost := 0
	for _, q := range c.Questions {
		lost += one(q.Lost)
	}
	fmt.Fprintf(b, "\nquestions that changed by %q: %d lost, %d gained\n", c.By, lost, len(c.Questions)-lost)
	for i, q := range c.Questions {
		if limit > 0 && i == limit {
			fmt.Fprintf(b, "… %d more; --all shows them\n", len(c.Questions)-limit)
			return
		}
		word := "gained"
		if q.Lost {
			word = "lost"
		}
		fmt.Fprintf(b, "%s  %s (%s)\n", word, q.Question, q.Category)
		if q.Expected != "" {
			fmt.Fprintf(b, "    expected  %s\n", inShort(q.Expected))
		}
		fmt.Fprintf(b, "    A  %s%s\n    B  %s%s\n", inShort(q.AnswerA), q.LossA.note(), inShort(q.AnswerB), q.LossB.note())
	}
}

// note says where evidence was lost.
func (l Loss) note() string {
	if l == LostNothing {
		return ""
	}
	return "  [evidence " + strings.ReplaceAll(string(l), "_", " ") + "]"
}

// inShort is a text on one line, of a length that is read at a glance.
func inShort(s string) string {
	const most = 160
	runes := []rune(oneLine(s))
	switch {
	case len(runes) == 0:
		return "(nothing said)"
	case len(runes) > most:
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// probability is a p-value with as many places as say something.
func probability(p float64) string {
	if p < .0001 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}
