package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fontFamily is the name of the fonts in SVG files.
const fontFamily = "Liberation Sans"

// theme is how a figure looks on one kind of background.
type theme struct {
	back, ink, faint, grid color.Color
	colors                 []color.Color
	fonts                  *font.Cache
}

// lightTheme has the colours of Okabe and Ito ("Color universal design", 2008), which people with any of the common kinds of
// colour blindness tell apart, those that are faint on white made darker, and three more.
func lightTheme() *theme {
	return &theme{fonts: font.NewCache(liberation.Collection()), back: rgb(0xffffff), ink: rgb(0x1f2328), faint: rgb(0x57606a), grid: rgb(0xdfe3e8), colors: []color.Color{
		rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xb8559a), rgb(0xb98500), rgb(0x3fa7e0), rgb(0x4d4d4d), rgb(0x8c510a), rgb(0x6f4fc1), rgb(0x7d8a00)}}
}

// darkTheme has the same hues, lighter.
func darkTheme() *theme {
	return &theme{fonts: font.NewCache(liberation.Collection()), back: rgb(0x0d1117), ink: rgb(0xe6edf3), faint: rgb(0xa0a8b2), grid: rgb(0x2d333b), colors: []color.Color{
		rgb(0x4da3e0), rgb(0xff8a4c), rgb(0x2cc295), rgb(0xe39bc4), rgb(0xf0b429), rgb(0xa6dcff), rgb(0xd0d7de), rgb(0xc49a6c), rgb(0xb8a1ff), rgb(0xc3d045)}}
}

func rgb(v uint32) color.Color {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

// look is how one series is drawn.
type look struct {
	color  color.Color
	shape  int
	hollow bool
}

// lookOf gives each series a colour and a shape. After all colours have been used the shapes are shifted, so that no
// pair comes twice among 80.
func (t *theme) lookOf(i int, paper bool) look {
	n := len(t.colors)
	return look{color: t.colors[i%n], shape: (i + i/n) % len(markerShapes()), hollow: paper}
}

// letters is the style of texts of a size.
func (t *theme) letters(size float64, c color.Color) text.Style {
	return text.Style{Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: pt(size)},
		Handler: text.Plain{Fonts: t.fonts}, YAlign: draw.YTop}
}

// line is the style of a series' line.
func (l look) line() draw.LineStyle {
	s := draw.LineStyle{Color: l.color, Width: pt(1.6)}
	if l.hollow {
		s.Width, s.Dashes = pt(1.1), []vg.Length{pt(4), pt(3)}
	}
	return s
}

// marker draws the marker of a series at a place, in a radius.
func (t *theme) marker(c vg.Canvas, l look, at vg.Point, radius vg.Length) {
	var path vg.Path
	for i, p := range markerShapes()[l.shape] {
		to := vg.Point{X: at.X + p.X*radius, Y: at.Y + p.Y*radius}
		if i == 0 {
			path.Move(to)
		} else {
			path.Line(to)
		}
	}
	path.Close()
	c.SetLineDash(nil, 0)
	c.SetLineWidth(pt(1.3))
	c.SetColor(l.color)
	if l.hollow {
		c.SetColor(t.back)
	}
	c.Fill(path)
	c.SetColor(l.color)
	if !l.hollow {
		c.SetColor(t.back) // a rim, by which markers that touch are told apart
		c.SetLineWidth(pt(.6))
	}
	c.Stroke(path)
}

// markerShapes are the outlines of markers around 0, in a radius of about 1.
func markerShapes() [][]vg.Point {
	return [][]vg.Point{
		star(24, .95, .95, 0),          // circle
		star(4, 1.15, 1.15, math.Pi/4), // square
		star(3, 1.3, 1.3, math.Pi/2),   // triangle
		star(4, 1.25, 1.25, 0),         // diamond
		star(3, 1.3, 1.3, -math.Pi/2),  // triangle on its tip
		star(5, 1.4, .6, math.Pi/2),    // star
		star(4, 1.35, .5, math.Pi/4),   // cross of four points
		star(6, 1.1, 1.1, math.Pi/2),   // hexagon
	}
}

// star is a polygon of n points at one radius and between them n at another; of equal radii it is a plain polygon of n.
func star(n int, outer, inner, turn float64) (list []vg.Point) {
	for i := range n {
		at := turn + 2*math.Pi*float64(i)/float64(n)
		list = append(list, vg.Point{X: vg.Length(outer * math.Cos(at)), Y: vg.Length(outer * math.Sin(at))})
		if inner != outer {
			at += math.Pi / float64(n)
			list = append(list, vg.Point{X: vg.Length(inner * math.Cos(at)), Y: vg.Length(inner * math.Sin(at))})
		}
	}
	return list
}
