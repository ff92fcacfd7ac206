package card

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteJSON writes the card as one JSON object on one line.
func (c *Card) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(c)
}

// WriteText writes the card for a person: the verdict, the figures side by side, and what came back.
func (c *Card) WriteText(w io.Writer) error {
	var b strings.Builder
	what := c.Model
	if c.StandIn {
		what += ", a stand-in and not a language model"
	}
	fmt.Fprintf(&b, "Report card of %s (agents with a window of %d tokens)\n\n%s\n", what, c.Window, c.sentence())
	if c.Partial {
		b.WriteString("The card is partial: there was no time for all of it. --time allows for more.\n")
	}
	c.table(&b)
	for _, r := range c.Raises {
		fmt.Fprintf(&b, "%s raises %s from %s to %s.\n", helpNamed(r.Way), r.Check, r.From, r.To)
	}
	if len(c.Settings) > 0 {
		fmt.Fprintf(&b, "To set: %s\n", strings.Join(c.Settings, ", "))
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", n)
	}
	c.details(&b)
	fmt.Fprintf(&b, "\n%.0f s, %d tokens\n", c.Seconds, c.Tokens)
	_, err := io.WriteString(w, b.String())
	return err
}

// sentence is the verdict with its subject.
func (c *Card) sentence() string {
	if c.StandIn {
		return "This is " + c.Says + "."
	}
	if c.Verdict == Unknown {
		return "Whether it can run an agent is " + c.Says + "."
	}
	return "It " + c.Says + "."
}

// helpNamed begins a sentence about a help.
func helpNamed(w Way) string {
	switch w {
	case WayPrompted:
		return "Describing functions in the prompt"
	case WayConstrained:
		return "Holding replies to a schema"
	case WayPrefetch:
		return "Looking memory up for it (prefetch)"
	}
	return string(w)
}

// table writes the figures side by side.
func (c *Card) table(b *strings.Builder) {
	b.WriteByte('\n')
	t := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprint(t, "\t")
	for _, way := range Ways() {
		_, _ = fmt.Fprintf(t, "%s\t", way)
	}
	_, _ = fmt.Fprint(t, "time\ttokens\t\n")
	for _, line := range c.Lines {
		_, _ = fmt.Fprintf(t, "%s\t", line.Check)
		var took float64
		tokens := 0
		for _, way := range Ways() {
			f := c.Figure(line.Check, way)
			_, _ = fmt.Fprintf(t, "%s\t", f.cell())
			if f != nil {
				took, tokens = took+f.Seconds, tokens+f.Tokens
			}
		}
		_, _ = fmt.Fprintf(t, "%.1f s\t%d\t%s\n", took, tokens, line.About)
	}
	_ = t.Flush() // a strings.Builder takes everything
	b.WriteByte('\n')
}

// cell is a figure in the table.
func (f *Figure) cell() string {
	switch {
	case f == nil:
		return "-"
	case f.Tries == 0:
		return "open"
	case f.full():
		return "pass " + f.of()
	case f.Passed == 0:
		return "FAIL " + f.of()
	}
	return "partly " + f.of()
}

// details writes what was asked and what came back.
func (c *Card) details(b *strings.Builder) {
	b.WriteString("\nWhat was asked, and what came back:\n")
	for _, line := range c.Lines {
		for i := range line.Figures {
			f := &line.Figures[i]
			name := line.Check + ", " + string(f.Way)
			if f.With != "" {
				name += " with " + string(f.With) + " calls"
			}
			fmt.Fprintf(b, "\n%s: %s\n", name, f.cell())
			for _, row := range [][2]string{{"asked", f.Asked}, {"came", f.Came}, {"wrong", f.Why}, {"open", f.Open}} {
				if row[1] != "" {
					fmt.Fprintf(b, "  %-6s %s\n", row[0], row[1])
				}
			}
		}
	}
}
