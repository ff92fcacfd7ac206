package chart

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// chainChart has lines of ours and of the paper's, points that coincide, and intervals.
func chainChart() *Chart {
	return &Chart{Title: "Right answers by length of the chain", X: "hops", Y: "right, %", YMax: 100, Note: "Of a test.", Series: []Series{
		{Name: "memgpt, offline", Line: true, Points: []Point{{X: 0, Y: 100}, {X: 1, Y: 100}, {X: 2, Y: 98, Low: 95, High: 100}}},
		{Name: "full", Line: true, Points: []Point{{X: 0, Y: 100}, {X: 1, Y: 34, Low: 20, High: 48}, {X: 2, Y: 2}}},
		{Name: "GPT-4 (paper)", Paper: true, Line: true, Points: []Point{{X: 0, Y: 90}, {X: 1, Y: 30}, {X: 2, Y: 10}}},
	}}
}

func barChart() *Chart {
	return &Chart{Title: "Evidence by category", X: "category", Y: "evidence, %", YMax: 100, Categories: []string{"single-hop", "multi-hop", "temporal & dates"},
		Series: []Series{
			{Name: "memgpt", Points: []Point{{X: 0, Y: 80, Low: 70, High: 90}, {X: 1, Y: 60}, {X: 2, Y: 55}}},
			{Name: "other <system>", Paper: true, Points: []Point{{X: 0, Y: 40}, {X: 2, Y: 30}}},
		}}
}

// drawn writes a chart and returns its files by their ends.
func drawn(t *testing.T, c *Chart) map[string][]byte {
	t.Helper()
	base := filepath.Join(t.TempDir(), "figure")
	if err := c.Write(base); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, end := range []string{".svg", ".png", "-dark.svg"} {
		data, err := os.ReadFile(base + end)
		if err != nil {
			t.Fatal(err)
		}
		files[end] = data
	}
	return files
}

// svgTexts parses an SVG and returns its texts; what isn't well formed fails the test.
func svgTexts(t *testing.T, data []byte) (list []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	inside := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatalf("the SVG isn't well formed: %v", err)
		}
		switch v := token.(type) {
		case xml.StartElement:
			inside = v.Name.Local == "text"
		case xml.CharData:
			if inside {
				list = append(list, string(v))
			}
		case xml.EndElement:
			inside = false
		}
	}
}

func TestFilesHoldTheirTexts(t *testing.T) {
	for _, c := range []*Chart{chainChart(), barChart()} {
		files := drawn(t, c)
		for _, end := range []string{".svg", "-dark.svg"} {
			all := strings.Join(svgTexts(t, files[end]), " ")
			want := append([]string{c.Title, c.X, c.Y, c.Note}, c.Categories...)
			for _, s := range c.Series {
				want = append(want, s.Name)
			}
			for _, w := range want {
				if !strings.Contains(all, w) {
					t.Errorf("%s of %q doesn't say %q: %s", end, c.Title, w, all)
				}
			}
		}
		img, err := png.Decode(bytes.NewReader(files[".png"]))
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() != pageWidth*pageDPI/72 || b.Dy() < pageHeight*pageDPI/72 {
			t.Errorf("the PNG is %v", b)
		}
		if _, _, _, a := img.At(0, 0).RGBA(); a != 0xffff {
			t.Error("the background isn't opaque")
		}
	}
}

func TestSameChartSameBytes(t *testing.T) {
	for _, make := range []func() *Chart{chainChart, barChart} {
		a, b := drawn(t, make()), drawn(t, make())
		for end := range a {
			if !bytes.Equal(a[end], b[end]) {
				t.Errorf("%s differs from one drawing to the next", end)
			}
		}
	}
	a, b := drawn(t, chainChart()), chainChart()
	b.Series[0].Points[1].Y = 50
	if bytes.Equal(a[".png"], drawn(t, b)[".png"]) {
		t.Error("another figure has the same picture")
	}
}

func TestPaperIsDashed(t *testing.T) {
	c := chainChart()
	if !bytes.Contains(drawn(t, c)[".svg"], []byte("stroke-dasharray")) {
		t.Error("the paper's line isn't dashed")
	}
	c.Series[2].Paper = false
	if bytes.Contains(drawn(t, c)[".svg"], []byte("stroke-dasharray")) {
		t.Error("a line of ours is dashed")
	}
}

func TestLooksDiffer(t *testing.T) {
	for _, theme := range []*theme{lightTheme(), darkTheme()} {
		seen := map[look]int{}
		for i := range 80 {
			l := theme.lookOf(i, false)
			if j, ok := seen[l]; ok {
				t.Fatalf("series %d and %d look the same", i, j)
			}
			seen[l] = i
		}
		for i, c := range theme.colors {
			if ratio := contrast(c, theme.back); ratio < 2.5 {
				t.Errorf("colour %d has a contrast of %.1f to its background", i, ratio)
			}
		}
		if ratio := contrast(theme.faint, theme.back); ratio < 4.5 {
			t.Errorf("small text has a contrast of %.1f", ratio)
		}
	}
}

// contrast is that of WCAG 2.
func contrast(a, b interface{ RGBA() (r, g, b, a uint32) }) float64 {
	light := func(c interface{ RGBA() (r, g, b, a uint32) }) float64 {
		r, g, b, _ := c.RGBA()
		linear := func(v uint32) float64 {
			s := float64(v) / 0xffff
			if s <= .04045 {
				return s / 12.92
			}
			return math.Pow((s+.055)/1.055, 2.4)
		}
		return .2126*linear(r) + .7152*linear(g) + .0722*linear(b)
	}
	x, y := light(a), light(b)
	return (max(x, y) + .05) / (min(x, y) + .05)
}

func TestWhatCannotBeDrawn(t *testing.T) {
	one := func(p Point) []Series { return []Series{{Name: "s", Points: []Point{p}}} }
	for want, c := range map[string]*Chart{
		"no points":      {Series: []Series{{Name: "empty"}}},
		"isn't finite":   {Series: one(Point{Y: math.NaN()})},
		"above 0":        {LogX: true, Series: one(Point{X: 0, Y: 1})},
		"interval goes":  {Series: one(Point{Y: 1, Low: 3, High: 2})},
		"1 categories":   {Categories: []string{"a"}, Series: one(Point{X: 1})},
		"Y axis":         {YMin: 3, YMax: 1, Series: one(Point{})},
		"no logarithmic": {LogX: true, Categories: []string{"a", "b"}, Series: one(Point{X: 1})},
	} {
		base := filepath.Join(t.TempDir(), "x")
		if err := c.Write(base); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if list, _ := filepath.Glob(base + "*"); len(list) > 0 {
			t.Errorf("%s: there are files %v", want, list)
		}
	}
}

// TestOddCharts draws what is at the border of what can be drawn; the library must not panic.
func TestOddCharts(t *testing.T) {
	one := []Series{{Name: "s", Points: []Point{{X: 1, Y: 0, Label: "alone"}}, Line: true}}
	for _, c := range []*Chart{
		{Series: one}, {Series: one, LogX: true}, {Series: one, Categories: []string{"a", "b"}},
		{Series: []Series{{Points: []Point{{X: 1, Y: -5}, {X: 1e6, Y: 1e9}}}}, LogX: true},
		{Title: strings.Repeat("long title ", 40), Note: strings.Repeat("note ", 200), Series: one},
	} {
		drawn(t, c)
	}
}

func TestLegendIsBesideThePlot(t *testing.T) {
	c := chainChart()
	for range 30 {
		c.Series = append(c.Series, Series{Name: strings.Repeat("a long name ", 6), Points: c.Series[0].Points})
	}
	p := newPage(c, lightTheme())
	if p.height <= pageHeight {
		t.Errorf("33 entries fit a page of %v", p.height)
	}
	if p.column > legendMost*slack+legendIcon+legendGap {
		t.Errorf("the legend takes %v of the page", p.column)
	}
}

func TestCoincidingPointsAreSetSideBySide(t *testing.T) {
	c := chainChart()
	d := &drawing{page: newPage(c, lightTheme())}
	marks := d.marks(lengthOf(100), lengthOf(2))
	if a, b := marks[0].at, marks[3].at; a == b || a.X+b.X != 0 {
		t.Errorf("two points at (0, 100) are drawn at %v and %v", a, b)
	}
	if at := marks[4].at; at.X != 100 {
		t.Errorf("a point alone at 100 is drawn at %v", at)
	}
}

func lengthOf(scale float64) func(float64) vg.Length {
	return func(v float64) vg.Length { return vg.Length(v * scale) }
}

// TestCoveredLineIsWider: a line under another is drawn wider, so that it is seen.
func TestCoveredLineIsWider(t *testing.T) {
	line := func(y ...float64) Series {
		s := Series{Line: true}
		for i, v := range y {
			s.Points = append(s.Points, Point{X: float64(i), Y: v})
		}
		return s
	}
	c := &Chart{Series: []Series{line(1, 1, 1), line(1, 2, 1), line(3, 1, 1)}}
	d := &drawing{page: newPage(c, lightTheme())}
	for i, want := range []int{1, 0, 0} {
		if got := d.hidden(i); got != want {
			t.Errorf("line %d lies under %d others, want %d", i, got, want)
		}
	}
}
