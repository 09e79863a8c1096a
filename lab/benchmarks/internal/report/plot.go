// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	pictureWidth  = 15 * vg.Centimeter
	pictureHeight = 9.5 * vg.Centimeter
)

var (
	ink   = color.NRGBA{R: 0x33, G: 0x33, B: 0x33, A: 0xff}
	faint = color.NRGBA{R: 0xdd, G: 0xdd, B: 0xdd, A: 0xff}
	// looks also distinguishes contenders by shape, for readers who are color-blind.
	looks = map[string]look{
		HandWritten: {
			color: color.NRGBA{R: 0x6f, G: 0x75, B: 0x7d, A: 0xff}, shape: draw.BoxGlyph{},
			dashes: []vg.Length{vg.Points(5), vg.Points(3)},
		},
		Trueup: {color: color.NRGBA{R: 0x0b, G: 0x6e, B: 0xb8, A: 0xff}, shape: draw.CircleGlyph{}},
	}
)

type look struct {
	color  color.NRGBA
	shape  draw.GlyphDrawer
	dashes []vg.Length
}

// Draw writes an SVG file for each metric with Drawn into the directory, and returns the names of the files. A metric
// that is always 0 has no picture.
func (r *Run) Draw(dir string) ([]string, error) {
	names := []string{}
	for _, w := range r.Workloads {
		for _, metric := range w.Metrics {
			if !metric.Drawn {
				continue
			}
			picture, points, err := w.picture(metric)
			if err != nil {
				return names, fmt.Errorf("draw %s of %s: %w", metric.Name, w.Name, err)
			}
			if points == 0 {
				continue
			}
			name := w.Name + "-" + slug(metric.Name) + ".svg"
			if err := writeSVG(filepath.Join(dir, name), picture); err != nil {
				return names, err
			}
			names = append(names, name)
		}
	}
	return names, nil
}

func slug(name string) string {
	return strings.Join(
		strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }),
		"-",
	)
}

func writeSVG(path string, picture *plot.Plot) error {
	canvas := vgsvg.New(pictureWidth, pictureHeight)
	margin := vg.Points(8)
	picture.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin, -margin))
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(file)
	return errors.Join(err, file.Close())
}

// picture draws cost against size, both on logarithmic axes: a horizontal line means that the cost does not depend on
// the size. Lines connect medians; the rounds are around them. It returns the number of medians.
func (w *Workload) picture(metric Metric) (*plot.Plot, int, error) {
	p := plot.New()
	p.Title.Text = w.Name + ": " + metric.label()
	p.X.Label.Text = w.Noun
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = w.sizeTicks()
	p.Y.Tick.Marker = plot.TickerFunc(costTicks)
	style(p)

	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	p.Add(grid)
	drawn := 0
	for _, contender := range w.Contenders() {
		points, err := w.draw(p, metric, contender)
		if err != nil {
			return nil, 0, err
		}
		drawn += points
	}
	frame(p)
	return p, drawn, nil
}

// draw adds a contender, and returns the number of its points. A logarithmic axis cannot show 0.
func (w *Workload) draw(p *plot.Plot, metric Metric, contender string) (int, error) {
	points := func(samples []Sample) plotter.XYs {
		xys := plotter.XYs{}
		for _, sample := range samples {
			if value := sample.Values[metric.Name]; sample.Contender == contender && value > 0 {
				xys = append(xys, plotter.XY{X: float64(sample.Size), Y: value})
			}
		}
		return xys
	}
	medians, rounds := points(w.Medians), points(w.Samples)
	if len(medians) == 0 {
		return 0, nil
	}
	look := looks[contender]
	pale := look.color
	pale.A = 0x50
	around, err := plotter.NewScatter(rounds)
	if err != nil {
		return 0, err
	}
	around.GlyphStyle = draw.GlyphStyle{Color: pale, Radius: vg.Points(2), Shape: look.shape}
	line, dots, err := plotter.NewLinePoints(medians)
	if err != nil {
		return 0, err
	}
	line.LineStyle = draw.LineStyle{Color: look.color, Width: vg.Points(1.75), Dashes: look.dashes}
	dots.GlyphStyle = draw.GlyphStyle{Color: look.color, Radius: vg.Points(3.5), Shape: look.shape}
	p.Add(around, line, dots)
	p.Legend.Add(contender, line, dots)
	return len(medians), nil
}

// frame leaves room around the points, and above them for the legend. A cost that hardly differs spans a whole decade,
// because noise would otherwise look like a trend.
func frame(p *plot.Plot) {
	p.X.Min, p.X.Max = p.X.Min/1.2, p.X.Max*1.3
	low, high := p.Y.Min/1.2, p.Y.Max*1.2
	if high/low < 10 {
		middle := math.Sqrt(low * high)
		low, high = middle/math.Sqrt(10), middle*math.Sqrt(10)
	}
	p.Y.Min, p.Y.Max = low, high*math.Pow(high/low, 0.25)
}

func style(p *plot.Plot) {
	for _, s := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		s.Font.Variant = "Sans"
		s.Font.Size = vg.Points(10)
		s.Color = ink
	}
	p.Title.TextStyle.Font.Size = vg.Points(12)
	p.Title.Padding = vg.Points(8)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = ink, ink
		axis.Label.Padding = vg.Points(4)
		axis.Tick.Length = vg.Points(4)
		axis.Padding = 0
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Points(8), vg.Points(-4)
	p.Legend.Padding = vg.Points(3)
	p.Legend.ThumbnailWidth = vg.Points(28)
}

// sizeTicks are at the sizes.
func (w *Workload) sizeTicks() plot.ConstantTicks {
	ticks := plot.ConstantTicks{}
	for _, size := range w.Sizes() {
		ticks = append(ticks, plot.Tick{Value: float64(size), Label: thousands(strconv.Itoa(size))})
	}
	return ticks
}

// costTicks are at 1, 2 and 5 of each decade, or only at 1 if there would be too many.
func costTicks(low, high float64) []plot.Tick {
	steps := []float64{1, 2, 5}
	if high/low > 5000 {
		steps = []float64{1}
	}
	ticks := []plot.Tick{}
	for decade := math.Floor(math.Log10(low)); decade <= math.Log10(high); decade++ {
		for _, step := range steps {
			if value := step * math.Pow(10, decade); value >= low && value <= high {
				ticks = append(ticks, plot.Tick{Value: value, Label: tickLabel(value) + " "}) // apart from its mark
			}
		}
	}
	return ticks
}

func tickLabel(value float64) string {
	if value < 1 {
		return strconv.FormatFloat(value, 'g', 1, 64)
	}
	return number(value)
}
