package page

import (
	"fmt"
	"math"
	"strings"

	"suffrage/fitness"
)

// The picture of a window, in its own units: one bar for each of 100 samples.
const (
	chartWidth  = 300
	chartHeight = 84
	chartFoot   = 80 // where zero is
	chartHead   = 10 // where the top of the scale is
)

// Chart is a window as it is drawn: paths in a box of 300 by 84.
type Chart struct {
	// Good and Bad are the bars of samples on the right and on the wrong side of the
	// limit, Lost those of lost pings, Failed the marks of samples without a number.
	Good, Bad, Lost, Failed string
	// LimitY is where the limit is, FigureY where the figure that is judged is.
	LimitY, FigureY float64
	// Top is the figure at the top of the scale.
	Top string
	// Say is the picture in words, for whoever does not see it.
	Say string
}

// chartOf draws a window. The scale begins at zero and has the limit in it, so that
// the room that is left is what one sees.
func chartOf(w Window) Chart {
	top := scale(w)
	y := func(f fitness.Figure) float64 {
		v := math.Min(math.Abs(float64(f))/top, 1)
		return round(chartFoot - v*(chartFoot-chartHead))
	}
	c := Chart{LimitY: y(w.Limit), FigureY: y(w.Reading.Figure), Top: fitness.Figure(top).Text(w.Unit)}
	var good, bad, lost, failed strings.Builder
	first := fitness.WindowSize - len(w.Samples)
	n := struct{ bad, lost, failed int }{}
	for i, s := range w.Samples {
		x := float64(3*(first+i)) + 1.5
		switch {
		case s == nil:
			n.failed++
			fmt.Fprintf(&failed, "M%g %dv4", x, chartFoot)
		case math.IsInf(float64(*s), 1):
			n.lost++
			fmt.Fprintf(&lost, "M%g %dV%d", x, chartFoot, chartHead)
		case wrong(w, *s):
			n.bad++
			fmt.Fprintf(&bad, "M%g %dV%g", x, chartFoot, math.Min(y(*s), chartFoot-1))
		default:
			fmt.Fprintf(&good, "M%g %dV%g", x, chartFoot, math.Min(y(*s), chartFoot-1))
		}
	}
	c.Good, c.Bad, c.Lost, c.Failed = good.String(), bad.String(), lost.String(), failed.String()
	c.Say = fmt.Sprintf("%d samples: %d past the limit, %d lost, %d failed", len(w.Samples), n.bad, n.lost, n.failed)
	return c
}

func scale(w Window) float64 {
	top := float64(w.Limit) * 1.3
	for _, s := range w.Samples {
		if s != nil && !math.IsInf(float64(*s), 1) {
			top = max(top, math.Abs(float64(*s))*1.05)
		}
	}
	if top <= 0 {
		return 1
	}
	return top
}

// wrong reports whether one sample is past the limit: below it, of memory.
func wrong(w Window, f fitness.Figure) bool {
	if w.Reading.Signal == fitness.Memory {
		return f < w.Limit
	}
	return math.Abs(float64(f)) > float64(w.Limit)
}

func round(f float64) float64 { return math.Round(f*10) / 10 }
