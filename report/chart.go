package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"suffrage/fitness"
)

// The size of a chart in its own units, and the room beside its plot.
const (
	chartWidth = 800
	left       = 64
	right      = 8
	plotWidth  = chartWidth - left - right
)

// x is where a column begins.
func x(c int) float64 { return left + float64(plotWidth)*float64(c)/Columns }

// mark is a line or a text on an axis.
type mark struct {
	At   float64
	Text string
}

// timeMarks are at most eight times at round moments.
func timeMarks(from, to time.Time) (out []mark) {
	span := to.Sub(from)
	day := 24 * time.Hour
	every := span / 4
	for _, d := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day} {
		if span/d <= 8 {
			every = d
			break
		}
	}
	form := "15:04:05"
	switch {
	case every >= day:
		form = "2 Jan"
	case every >= time.Minute && span > day:
		form = "2 Jan 15:04"
	case every >= time.Minute:
		form = "15:04"
	}
	for t := from.Truncate(every); !t.After(to) && len(out) < 12; t = t.Add(every) {
		if t.Before(from) {
			continue
		}
		at := left + plotWidth*float64(t.Sub(from))/float64(span)
		if at > chartWidth-60 { // its text would be cut off
			break
		}
		out = append(out, mark{math.Round(at*10) / 10, t.UTC().Format(form)})
	}
	return out
}

// block is a piece of a chart's ground: a kind of decision, or a status.
type block struct {
	X, Y, W, H float64
	Class      string
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }

// decisionHeight is that of the chart of decisions.
const decisionHeight = 90

// decisionBlocks stack each column's time by what was said in it.
func decisionBlocks(kinds []kindColumn) (out []block) {
	// rows are blocks that may still grow to the right, so that a month of steady
	// is one block and not 240.
	type row struct {
		class string
		y, h  float64
	}
	var open []row
	var at []int
	for c := range kinds {
		k := &kinds[c]
		whole := float64(k.steady + k.plan + k.step + k.hold + k.owner + k.unknown)
		if whole == 0 {
			open, at = nil, nil
			continue
		}
		y := 0.0
		var rows []row
		for _, p := range []struct {
			class string
			d     time.Duration
		}{{"steady", k.steady}, {"hold", k.hold}, {"owner", k.owner}, {"plan", k.plan}, {"step", k.step}, {"gone", k.unknown}} {
			if p.d > 0 {
				h := tenth(decisionHeight * float64(p.d) / whole)
				rows = append(rows, row{p.class, tenth(y), max(h, 0.5)})
				y += h
			}
		}
		same := len(rows) == len(open)
		for i := range rows {
			same = same && rows[i] == open[i]
		}
		if same {
			for _, i := range at {
				out[i].W = tenth(x(c+1) - out[i].X)
			}
			continue
		}
		open, at = rows, nil
		for _, r := range rows {
			at = append(at, len(out))
			out = append(out, block{tenth(x(c)), r.y, tenth(x(c+1) - x(c)), r.h, r.class})
		}
	}
	return out
}

// stripHeight is that of one host's strip. The height of a block says the
// status too, since colour alone says nothing to many.
const stripHeight = 22

var stripLooks = [len(statuses)]struct {
	class string
	h     float64
}{{"fit", 5}, {"marginal", 11}, {"unfit", 20}, {"unknown", 2}}

// stripBlocks show the worst status of each column; unfit before unknown, since
// a violation is a fact, and below them whether the host voted.
func stripBlocks(s *[Columns]stripColumn, y float64) (out []block) {
	last := -1
	vote := -1
	for c := range s {
		worst := -1
		for _, i := range []int{2, 3, 1, 0} {
			if s[c].in[i] > 0 {
				worst = i
				break
			}
		}
		if worst >= 0 {
			look := stripLooks[worst]
			if last >= 0 && out[last].Class == look.class && out[last].X+out[last].W >= x(c)-0.2 {
				out[last].W = tenth(x(c+1) - out[last].X)
			} else {
				last = len(out)
				out = append(out, block{tenth(x(c)), y + stripHeight - look.h, tenth(x(c+1) - x(c)), look.h, look.class})
			}
		}
		if s[c].votes > 0 {
			if vote >= 0 && out[vote].X+out[vote].W >= x(c)-0.2 {
				out[vote].W = tenth(x(c+1) - out[vote].X)
			} else {
				vote = len(out)
				out = append(out, block{tenth(x(c)), y + stripHeight + 2, tenth(x(c+1) - x(c)), 2, "votes"})
			}
		}
	}
	return out
}

// plotHeight is that of a p99 over time.
const plotHeight = 150

// scale places seconds on a logarithmic axis: 0.2 ms and 2 s are both to be seen.
type scale struct{ low, high float64 }

func scaleOf(s Series) scale {
	low, high := float64(s.Limit), float64(s.Limit)
	for c := range s.low {
		for _, f := range []float64{float64(s.low[c]), float64(s.high[c])} {
			if f > 0 && !math.IsInf(f, 0) && !math.IsNaN(f) {
				low, high = min(low, f), max(high, f)
			}
		}
	}
	if low <= 0 {
		low, high = 1e-4, max(high, 1e-1)
	}
	return scale{math.Pow(10, math.Floor(math.Log10(low/1.1))), math.Pow(10, math.Ceil(math.Log10(high*1.1)))}
}

// y is where a figure lies; one that is infinite lies on the upper edge.
func (s scale) y(f float64) float64 {
	share := math.Log(max(f, s.low)/s.low) / math.Log(s.high/s.low)
	return tenth(plotHeight * (1 - min(share, 1)))
}

func (s scale) marks() (out []mark) {
	for v := s.low; v <= s.high*1.01; v *= 10 {
		out = append(out, mark{s.y(v), axisText(v)})
	}
	return out
}

func axisText(v float64) string {
	switch {
	case v >= 0.99:
		return fmt.Sprintf("%.0f s", v)
	case v >= 0.99e-3:
		return fmt.Sprintf("%.0f ms", v*1e3)
	}
	return fmt.Sprintf("%.0f µs", v*1e6)
}

// band is the path around what lies between the lowest and the highest p99 of
// each column, one piece for every time without a hole; ceiling is a line along
// the highest.
func band(s Series, sc scale) (area, ceiling string) {
	var a, l strings.Builder
	known := func(c int) bool { return c < Columns && !math.IsNaN(float64(s.high[c])) }
	for c := 0; c < Columns; c++ {
		if !known(c) {
			continue
		}
		end := c
		for known(end) {
			end++
		}
		at := func(b *strings.Builder, command string, px float64, f fitness.Figure) {
			fmt.Fprintf(b, "%s%.1f %.1f", command, px, sc.y(float64(f)))
		}
		for i := c; i < end; i++ {
			command := "L"
			if i == c {
				command = "M"
			}
			for _, b := range []*strings.Builder{&a, &l} {
				at(b, command, x(i), s.high[i])
				at(b, "L", x(i+1), s.high[i])
			}
		}
		for i := end - 1; i >= c; i-- {
			at(&a, "L", x(i+1), s.low[i])
			at(&a, "L", x(i), s.low[i])
		}
		a.WriteString("Z")
		c = end
	}
	return a.String(), l.String()
}
