package fitness

import (
	"math"
	"slices"
)

// tally is a window for replaying: it knows the band of its figure after each
// sample, and the figure only when asked. The band of the figure is the band of
// the sample that the figure is, so counting the bands of the samples will do,
// and costs a tenth of keeping them sorted: a controller replays thousands of
// series a round.
type tally struct {
	values [WindowSize]float64
	ranks  [WindowSize]uint8
	count  [4]int // samples by severity of their band; failed ones are unknown
	next   int
	filled int
}

func (t *tally) add(v float64, b Band) {
	if t.filled == WindowSize {
		t.count[t.ranks[t.next]]--
	} else {
		t.filled++
	}
	t.values[t.next], t.ranks[t.next] = v, uint8(severity(b))
	t.count[severity(b)]++
	if t.next++; t.next == WindowSize {
		t.next = 0
	}
}

// band is the band of the window's figure, which so many outliers do not move.
func (t *tally) band(outliers int) Band {
	over := t.count[severity(Over)]
	switch {
	case t.filled < WindowSize || t.count[severity(Unknown)] > 0:
		return Unknown
	case over > outliers:
		return Over
	case over+t.count[severity(Between)] > outliers:
		return Between
	}
	return Under
}

// window is the same window with its numbers sorted.
func (t *tally) window() Window {
	w := Window{ring: t.values, next: t.next, filled: t.filled}
	for _, v := range t.values[:t.filled] {
		if !math.IsNaN(v) {
			w.sorted[w.n] = v
			w.n++
		}
	}
	slices.Sort(w.sorted[:w.n])
	return w
}
