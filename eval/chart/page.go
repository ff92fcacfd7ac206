package chart

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes of a page, in points.
const (
	pageMargin  = 14
	legendGap   = 16 // between plot and legend
	legendIcon  = 30 // width of a legend's sample
	legendLine  = 13 // height of a line of a legend
	legendSpace = 5  // between the entries of a legend
	legendMost  = 210
	slack       = 1.12 // room for fonts that are wider than Liberation
	markRadius  = 4.2
)

// page is a chart with its texts laid out: the title above, the legend at the right, where it covers no points, and the note
// below.
type page struct {
	chart               *Chart
	theme               *theme
	title, note         []string
	legend              [][]string // lines of each entry, by series
	column, height      vg.Length  // width of the legend with its gap; height of the page
	big, normal, little text.Style
}

func newPage(c *Chart, t *theme) *page {
	p := &page{chart: c, theme: t, big: t.letters(14, t.ink), normal: t.letters(10.5, t.ink), little: t.letters(9, t.faint)}
	inner := vg.Length(pageWidth - 2*pageMargin)
	p.title, p.note = wrapped(p.big, c.Title, inner/slack), wrapped(p.little, c.Note, inner/slack)
	height, width := vg.Length(0), vg.Length(0)
	for _, s := range c.Series {
		lines := wrapped(p.normal, s.Name, legendMost)
		p.legend = append(p.legend, lines)
		height += legendSpace + legendLine*vg.Length(len(lines))
		for _, l := range lines {
			width = max(width, p.normal.Width(l))
		}
	}
	p.column = width*slack + legendIcon + legendGap
	p.height = max(pageHeight, height+p.above()+p.below()+2*pageMargin)
	return p
}

// above and below are the heights of title and note.
func (p *page) above() vg.Length { return vg.Length(len(p.title))*18 + 8 }
func (p *page) below() vg.Length {
	if len(p.note) == 0 {
		return 0
	}
	return vg.Length(len(p.note))*12 + 8
}

// draw draws the whole page.
func (p *page) draw(on vg.CanvasSizer) {
	c := draw.New(on)
	c.SetColor(p.theme.back)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, pageMargin, -pageMargin, pageMargin, -pageMargin)
	for i, line := range p.title {
		c.FillText(p.big, vg.Point{X: c.Min.X, Y: c.Max.Y - 18*vg.Length(i)}, line)
	}
	for i, line := range p.note {
		c.FillText(p.little, vg.Point{X: c.Min.X, Y: c.Min.Y + 12*vg.Length(len(p.note)-i)}, line)
	}
	c = draw.Crop(c, 0, 0, p.below(), -p.above())
	p.drawLegend(draw.Crop(c, c.Size().X-p.column+legendGap, 0, 0, 0))
	plot := p.plot(c.Size().X - p.column)
	plot.Draw(draw.Crop(c, 0, -p.column, 0, 0))
}

func (p *page) drawLegend(c draw.Canvas) {
	y := c.Max.Y - 4
	for i, lines := range p.legend {
		s, l := &p.chart.Series[i], p.theme.lookOf(i, p.chart.Series[i].Paper)
		middle := vg.Point{X: c.Min.X + legendIcon/2 - 3, Y: y - legendLine/2}
		if s.Line && !p.chart.bars() {
			c.StrokeLine2(l.line(), c.Min.X, middle.Y, c.Min.X+legendIcon-6, middle.Y)
		}
		if p.chart.bars() {
			p.theme.bar(c, l, vg.Rectangle{Min: vg.Point{X: middle.X - 9, Y: middle.Y - 5}, Max: vg.Point{X: middle.X + 9, Y: middle.Y + 5}})
		}
		p.theme.marker(c, l, middle, markRadius)
		for _, line := range lines {
			c.FillText(p.normal, vg.Point{X: c.Min.X + legendIcon, Y: y + 1}, line)
			y -= legendLine
		}
		y -= legendSpace
	}
}

// plot makes the axes, in a width that decides how labels are wrapped, with the data on them.
func (p *page) plot(width vg.Length) *plot.Plot {
	c, out := p.chart, plot.New()
	out.BackgroundColor = nil
	out.X.Min, out.X.Max = c.rangeX()
	out.Y.Min, out.Y.Max = c.rangeY()
	out.X.Label.Text, out.Y.Label.Text = c.X, c.Y
	for _, a := range []*plot.Axis{&out.X, &out.Y} {
		a.LineStyle.Color, a.Tick.LineStyle.Color = p.theme.faint, p.theme.faint
		a.Label.TextStyle.Font, a.Label.TextStyle.Color, a.Label.TextStyle.Handler = p.normal.Font, p.theme.ink, p.normal.Handler
		a.Tick.Label.Font, a.Tick.Label.Color, a.Tick.Label.Handler = p.theme.letters(9.5, p.theme.ink).Font, p.theme.ink, p.normal.Handler
		a.Label.Padding = pt(5)
		a.Padding = pt(4)
	}
	switch {
	case c.bars():
		out.X.Padding = 0
		out.X.Tick.LineStyle.Color = p.theme.back // room for markers on the axis
		out.X.Tick.Marker = p.categories(width)
	case c.LogX:
		out.X.Tick.Marker = plot.ConstantTicks(c.logTicks())
	case c.wholeX():
		low, high := c.endsX()
		out.X.Tick.Marker = plot.ConstantTicks(everyTick(low, high, 1))
	}
	if low, high := out.Y.Min, out.Y.Max; low == 0 && (high == 100 || high == 1) {
		out.Y.Tick.Marker = plot.ConstantTicks(everyTick(low, high, high/5)) // shares
	}
	out.TextHandler = p.normal.Handler
	out.Legend = plot.Legend{TextStyle: p.normal}
	out.Add(&drawing{page: p})
	return out
}

// categories are the names of groups of bars, each wrapped to its room.
func (p *page) categories(width vg.Length) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	room := (width - 50) / vg.Length(len(p.chart.Categories))
	for i, name := range p.chart.Categories {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: strings.Join(wrapped(p.normal, name, room), "\n")})
	}
	return ticks
}

// wholeX reports whether all X are whole numbers, and few.
func (c *Chart) wholeX() bool {
	for _, s := range c.Series {
		for _, p := range s.Points {
			if p.X != float64(int64(p.X)) {
				return false
			}
		}
	}
	low, high := c.endsX()
	return high-low <= 12
}

// everyTick puts a tick at each step from low to high.
func everyTick(low, high, step float64) (ticks []plot.Tick) {
	for i := 0; low+float64(i)*step <= high; i++ {
		v := low + float64(i)*step
		ticks = append(ticks, plot.Tick{Value: v, Label: number(v)})
	}
	return ticks
}

// logTicks are at 1, 2 and 5 of each power of ten.
func (c *Chart) logTicks() (ticks []plot.Tick) {
	low, high := c.rangeX()
	for power := 1e-6; power < 1e12; power *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if at := math.Log10(power * step); at >= low && at <= high {
				ticks = append(ticks, plot.Tick{Value: at, Label: number(power * step)})
			}
		}
	}
	return ticks
}

// number is a value in a few characters: 20,000 is 20k.
func number(v float64) string {
	end := ""
	switch {
	case v >= 1e6:
		v, end = v/1e6, "M"
	case v >= 1e4:
		v, end = v/1e3, "k"
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + end
}

// wrapped cuts a text into lines of at most that width, after spaces, hyphens, underscores and slashes. A word that is
// longer stays whole.
func wrapped(s text.Style, txt string, width vg.Length) (lines []string) {
	line := ""
	for _, word := range words(txt) {
		if line != "" && s.Width(strings.TrimSpace(line+word)) > width {
			lines, line = append(lines, strings.TrimSpace(line)), ""
		}
		line += word
	}
	if line = strings.TrimSpace(line); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// words cuts a text after each place where a line may end.
func words(txt string) (list []string) {
	from := 0
	for i, r := range txt {
		if strings.ContainsRune(" -_/\n", r) {
			list = append(list, strings.ReplaceAll(txt[from:i+1], "\n", " "))
			from = i + 1
		}
	}
	return append(list, txt[from:])
}
