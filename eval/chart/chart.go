// Package chart draws the figures of evaluations, and writes the report that they stand in.
//
// It owns how figures look (SVG and PNG), the paper's own figures, and the Markdown. It measures nothing: what it draws and
// tells are the reports of package eval.
package chart

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is one figure: points and lines over two numbers, or, with Categories, groups of bars. The same chart gives the same
// bytes. Texts are in the scripts that the Liberation fonts have: Latin, Greek, Cyrillic, Hebrew.
type Chart struct {
	Title, X, Y string // of the figure and its axes
	LogX        bool   // X in a logarithmic scale; its values are above 0
	// Categories are the groups of a bar chart; the X of each point is the place of its group, from 0.
	Categories []string
	Series     []Series
	YMin, YMax float64 // ends of the Y axis; 0 and 0 take them from the data
	Note       string  // stands small under the figure
}

// Series is what one line, set of points or colour of bars shows.
type Series struct {
	Name   string
	Points []Point
	Paper  bool // figures of the paper, drawn hollow and dashed
	Line   bool // the points are joined
}

// Point is one figure.
type Point struct {
	X, Y      float64
	Low, High float64 // interval; 0 and 0 is none
	Label     string  // stands beside the point, not in bar charts
}

// Width of a figure in points of 1/72 inch, its least height, and dots an inch of the PNG.
const (
	pageWidth  = 760
	pageHeight = 400
	pageDPI    = 144
)

// Write draws the chart as base+".svg" and base+".png" on a light background, and as base+"-dark.svg" on a dark one. The
// backgrounds are opaque, so that each is readable wherever it stands. What can't be drawn is an error that says why, and then
// no file is written.
func (c *Chart) Write(base string) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("draw %s: %w", base, err)
	}
	light, dark := lightTheme(), darkTheme()
	for _, f := range []struct {
		end  string
		draw func(*theme) ([]byte, error)
		in   *theme
	}{{".svg", c.svg, light}, {"-dark.svg", c.svg, dark}, {".png", c.png, light}} {
		data, err := f.draw(f.in)
		if err != nil {
			return fmt.Errorf("draw %s%s: %w", base, f.end, err)
		}
		if err := os.WriteFile(base+f.end, data, 0o644); err != nil {
			return fmt.Errorf("write figure: %w", err)
		}
	}
	return nil
}

func (c *Chart) svg(t *theme) ([]byte, error) {
	p := newPage(c, t)
	canvas := vgsvg.New(pageWidth, p.height)
	p.draw(canvas)
	var buf bytes.Buffer
	if _, err := canvas.WriteTo(&buf); err != nil {
		return nil, err
	}
	// The fonts are not in the file, which would be 20 times as big: where Liberation is missing, fonts of the same widths do.
	return bytes.ReplaceAll(buf.Bytes(), []byte("font-family:"+fontFamily+";"),
		[]byte("font-family:'"+fontFamily+"',Arimo,Arial,Helvetica,sans-serif;")), nil
}

func (c *Chart) png(t *theme) ([]byte, error) {
	p := newPage(c, t)
	canvas := vgimg.NewWith(vgimg.UseWH(pageWidth, p.height), vgimg.UseDPI(pageDPI))
	p.draw(canvas)
	var buf bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(&buf)
	return buf.Bytes(), err
}

// check says what can't be drawn.
func (c *Chart) check() error {
	n := 0
	for i := range c.Series {
		s := &c.Series[i]
		n += len(s.Points)
		for _, p := range s.Points {
			if err := c.checkPoint(p); err != nil {
				return fmt.Errorf("series %q: %w", s.Name, err)
			}
		}
	}
	switch {
	case n == 0:
		return errors.New("there are no points")
	case c.YMin > c.YMax || c.YMin == c.YMax && c.YMin != 0 || !finite(c.YMin, c.YMax):
		return fmt.Errorf("the Y axis can't go from %g to %g", c.YMin, c.YMax)
	case c.LogX && c.bars():
		return errors.New("a bar chart has no logarithmic X axis")
	}
	return nil
}

func (c *Chart) checkPoint(p Point) error {
	switch {
	case !finite(p.X, p.Y, p.Low, p.High):
		return fmt.Errorf("point (%g, %g), interval %g to %g: it isn't finite", p.X, p.Y, p.Low, p.High)
	case p.Low > p.High:
		return fmt.Errorf("point (%g, %g): its interval goes from %g to %g", p.X, p.Y, p.Low, p.High)
	case c.LogX && p.X <= 0:
		return fmt.Errorf("point (%g, %g): a logarithmic axis begins above 0", p.X, p.Y)
	case c.bars() && (p.X != math.Trunc(p.X) || p.X < 0 || p.X >= float64(len(c.Categories))):
		return fmt.Errorf("bar at %g: there are %d categories, counted from 0", p.X, len(c.Categories))
	}
	return nil
}

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

func (c *Chart) bars() bool { return len(c.Categories) > 0 }

// interval reports whether the point has one.
func (p *Point) interval() bool { return p.Low != 0 || p.High != 0 }

// rangeY returns the ends of the Y axis.
func (c *Chart) rangeY() (low, high float64) {
	if c.YMin != 0 || c.YMax != 0 {
		return c.YMin, c.YMax
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range c.Series {
		for _, p := range s.Points {
			low, high = min(low, p.Y), max(high, p.Y)
			if p.interval() {
				low, high = min(low, p.Low), max(high, p.High)
			}
		}
	}
	if c.bars() {
		low, high = min(low, 0), max(high, 0)
	}
	if low == high {
		return low - 1, high + 1
	}
	return low, high
}

// rangeX returns the ends of the X axis as it is drawn, with some room at both, since markers that coincide are set side by side.
func (c *Chart) rangeX() (low, high float64) {
	if c.bars() {
		return -.5, float64(len(c.Categories)) - .5
	}
	low, high = c.endsX()
	if low == high {
		return low - 1, high + 1
	}
	const room = .07 // of the whole
	more := (high - low) * room
	return low - more, high + more
}

// endsX returns the least and the greatest X on the axis.
func (c *Chart) endsX() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range c.Series {
		for _, p := range s.Points {
			low, high = min(low, c.onAxis(p.X)), max(high, c.onAxis(p.X))
		}
	}
	return low, high
}

// onAxis is where an X lies on the axis: at its decimal logarithm where the axis is logarithmic. The library's own
// logarithmic axis leaves room at the right for a label that isn't there.
func (c *Chart) onAxis(x float64) float64 {
	if c.LogX {
		return math.Log10(x)
	}
	return x
}

// pt is a length in points.
func pt(v float64) vg.Length { return vg.Points(v) }
