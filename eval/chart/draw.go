package chart

import (
	"cmp"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// drawing draws the data of a chart on its axes. It is a plot.Plotter.
type drawing struct {
	page *page
}

// mark is a point where it is drawn.
type mark struct {
	series, point int
	at            vg.Point
}

// Plot draws grid, bars or lines, intervals, markers and labels, in this order.
func (d *drawing) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, tick := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if !tick.IsMinor() && tick.Value >= p.Y.Min && tick.Value <= p.Y.Max {
			c.StrokeLine2(draw.LineStyle{Color: d.page.theme.grid, Width: pt(.7)}, c.Min.X, y(tick.Value), c.Max.X, y(tick.Value))
		}
	}
	if d.page.chart.bars() {
		d.bars(c, x, y)
		return
	}
	marks := d.marks(x, y)
	for _, paper := range []bool{true, false} { // ours lie above
		d.series(c, marks, y, paper)
	}
	d.labels(c, marks, y)
}

func (d *drawing) look(series int) look {
	return d.page.theme.lookOf(series, d.page.chart.Series[series].Paper)
}

// marks places all points. Those that would lie over each other are set side by side.
func (d *drawing) marks(x, y func(float64) vg.Length) (marks []mark) {
	for i, s := range d.page.chart.Series {
		for j, p := range s.Points {
			marks = append(marks, mark{i, j, vg.Point{X: x(d.page.chart.onAxis(p.X)), Y: y(p.Y)}})
		}
	}
	seen := make([]bool, len(marks))
	var clusters [][]int
	for i := range marks {
		if !seen[i] {
			seen[i] = true
			clusters = append(clusters, cluster(marks, seen, i))
		}
	}
	for _, list := range clusters {
		aside(marks, list)
	}
	return marks
}

// cluster is a mark with those that cover it, those that cover them and so on, in the order of their series.
func cluster(marks []mark, seen []bool, first int) []int {
	list := []int{first}
	for next := 0; next < len(list); next++ {
		a := marks[list[next]].at
		for j := range marks {
			if b := marks[j].at; !seen[j] && near(a.X, b.X) && near(a.Y, b.Y) {
				seen[j] = true
				list = append(list, j)
			}
		}
	}
	slices.Sort(list)
	return list
}

// near reports whether two marks so far apart, across or up, cover each other for the most part.
func near(a, b vg.Length) bool { return max(a, b)-min(a, b) < markRadius }

// aside sets marks side by side around their middle.
func aside(marks []mark, list []int) {
	if len(list) < 2 {
		return
	}
	const step = 1.7 * markRadius
	middle := vg.Length(0)
	for _, i := range list {
		middle += marks[i].at.X / vg.Length(len(list))
	}
	for n, i := range list {
		marks[i].at.X = middle + step*(vg.Length(n)-vg.Length(len(list)-1)/2)
	}
}

// series draws the paper's series, or ours.
func (d *drawing) series(c draw.Canvas, marks []mark, y func(float64) vg.Length, paper bool) {
	for i, s := range d.page.chart.Series {
		if s.Paper == paper {
			d.line(c, marks, i)
		}
	}
	for _, m := range marks {
		if s := &d.page.chart.Series[m.series]; s.Paper == paper {
			d.interval(c, m, y)
			d.page.theme.marker(c, d.look(m.series), m.at, markRadius)
		}
	}
}

func (d *drawing) line(c draw.Canvas, marks []mark, series int) {
	if !d.page.chart.Series[series].Line {
		return
	}
	var line []vg.Point
	for _, m := range marks {
		if m.series == series {
			line = append(line, m.at)
		}
	}
	slices.SortStableFunc(line, func(a, b vg.Point) int { return cmp.Compare(a.X, b.X) })
	style := d.look(series).line()
	if len(style.Dashes) == 0 {
		style.Width += pt(2) * vg.Length(d.hidden(series))
	}
	c.StrokeLines(style, line)
}

// hidden counts the series that are drawn over a line of this one, with two neighbouring points the same. The line is drawn
// wider by them, so that its edges show.
func (d *drawing) hidden(series int) (n int) {
	s := &d.page.chart.Series[series]
	for i := series + 1; i < len(d.page.chart.Series); i++ {
		over, run := &d.page.chart.Series[i], 0
		for _, p := range s.Points {
			if over.Line && over.Paper == s.Paper && slices.ContainsFunc(over.Points, func(q Point) bool { return p.X == q.X && p.Y == q.Y }) {
				run++
			} else if run < 2 {
				run = 0
			}
		}
		if run > 1 {
			n++
		}
	}
	return n
}

func (d *drawing) interval(c draw.Canvas, m mark, y func(float64) vg.Length) {
	p := &d.page.chart.Series[m.series].Points[m.point]
	if p.interval() {
		d.whisker(c, pale(d.look(m.series).color), m.at.X, y(p.Low), y(p.High))
	}
}

// pale lets what lies under a whisker show.
func pale(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	return color.NRGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: 0xa0}
}

// whisker is an upright line with caps.
func (d *drawing) whisker(c draw.Canvas, in color.Color, x, low, high vg.Length) {
	style := draw.LineStyle{Color: in, Width: pt(.9)}
	const cap = 2.5
	c.StrokeLine2(style, x, low, x, high)
	c.StrokeLine2(style, x-cap, low, x+cap, low)
	c.StrokeLine2(style, x-cap, high, x+cap, high)
}

// bars draws groups of bars, each with its marker on top.
func (d *drawing) bars(c draw.Canvas, x, y func(float64) vg.Length) {
	const share = .84 // of a group's room
	width := (x(1) - x(0)) * share / vg.Length(len(d.page.chart.Series))
	floor := max(y(0), c.Min.Y)
	for i, s := range d.page.chart.Series {
		for _, p := range s.Points {
			left := x(p.X) + width*(vg.Length(i)-vg.Length(len(d.page.chart.Series))/2)
			top := y(p.Y)
			box := vg.Rectangle{Min: vg.Point{X: left + width*.06, Y: min(floor, top)}, Max: vg.Point{X: left + width*.94, Y: max(floor, top)}}
			d.page.theme.bar(c, d.look(i), box)
			if p.interval() {
				d.whisker(c, d.page.theme.ink, left+width/2, y(p.Low), y(p.High))
			}
			d.page.theme.marker(c, d.look(i), vg.Point{X: left + width/2, Y: top}, min(markRadius, width*.42))
		}
	}
}

// bar draws one bar: full, or hollow and dashed.
func (t *theme) bar(c draw.Canvas, l look, box vg.Rectangle) {
	if !l.hollow {
		c.SetColor(l.color)
		c.Fill(box.Path())
		return
	}
	c.SetLineStyle(l.line())
	c.Stroke(box.Path())
}

// labels writes each label where it covers least of the markers and of the labels before it.
func (d *drawing) labels(c draw.Canvas, marks []mark, y func(float64) vg.Length) {
	var taken []vg.Rectangle
	for _, m := range marks {
		taken = append(taken, around(m.at, markRadius+1, markRadius+1))
		if p := &d.page.chart.Series[m.series].Points[m.point]; p.interval() {
			taken = append(taken, vg.Rectangle{Min: vg.Point{X: m.at.X - 3, Y: y(p.Low)}, Max: vg.Point{X: m.at.X + 3, Y: y(p.High)}})
		}
	}
	sty := d.page.theme.letters(9.5, d.page.theme.ink)
	for _, m := range marks {
		label := d.page.chart.Series[m.series].Points[m.point].Label
		if label == "" {
			continue
		}
		size := vg.Point{X: sty.Width(label) * slack, Y: 11}
		var best vg.Rectangle
		least := vg.Length(-1)
		for _, at := range labelPlaces(m.at, size) {
			box := around(at, size.X/2, size.Y/2)
			if cost := covered(box, taken, c.Rectangle); least < 0 || cost < least {
				best, least = box, cost
			}
		}
		taken = append(taken, best)
		c.FillText(sty, vg.Point{X: best.Min.X, Y: best.Max.Y}, label)
	}
}

func around(at vg.Point, dx, dy vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: at.X - dx, Y: at.Y - dy}, Max: vg.Point{X: at.X + dx, Y: at.Y + dy}}
}

// labelPlaces are the middles of where a label may stand, the best first.
func labelPlaces(at, size vg.Point) (list []vg.Point) {
	for _, far := range []vg.Length{1, 2.2} {
		dx, dy := size.X/2+markRadius+3, (size.Y/2+markRadius+1)*far
		for _, p := range []vg.Point{{X: dx}, {Y: dy}, {Y: -dy}, {X: -dx}, {X: dx, Y: dy}, {X: dx, Y: -dy}, {X: -dx, Y: dy}, {X: -dx, Y: -dy}} {
			list = append(list, vg.Point{X: at.X + p.X, Y: at.Y + p.Y})
		}
	}
	return list
}

// covered is how much of others a box covers; what lies outside of the page's frame counts ten times.
func covered(box vg.Rectangle, taken []vg.Rectangle, frame vg.Rectangle) (sum vg.Length) {
	for _, t := range taken {
		sum += overlap(box, t)
	}
	size := box.Size()
	return sum + 10*(size.X*size.Y-overlap(box, frame))
}

func overlap(a, b vg.Rectangle) vg.Length {
	w := min(a.Max.X, b.Max.X) - max(a.Min.X, b.Min.X)
	h := min(a.Max.Y, b.Max.Y) - max(a.Min.Y, b.Min.Y)
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h
}
