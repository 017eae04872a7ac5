package report

import (
	"math"
	"time"

	"suffrage/fitness"
)

// weights say for how long a figure was how large, to five percent: enough for a
// picture of weeks, in a few kilobytes however many figures there were.
type weights struct {
	of    [buckets]time.Duration
	lost  time.Duration // the time of an infinite figure
	total time.Duration
}

const (
	step     = 1.05
	smallest = 1e-6 // seconds; what is below is counted as this
	buckets  = 480  // up to four hours
)

func (w *weights) add(f fitness.Figure, d time.Duration) {
	w.total += d
	if math.IsInf(float64(f), 1) {
		w.lost += d
		return
	}
	i := int(math.Ceil(math.Log(max(float64(f), smallest)/smallest) / math.Log(step)))
	w.of[min(max(i, 0), buckets-1)] += d
}

// at is the figure that was not exceeded for this share of the time, rounded up
// to five percent; 0 without any time.
func (w *weights) at(share float64) fitness.Figure {
	if w.total == 0 {
		return 0
	}
	want := time.Duration(math.Ceil(share * float64(w.total)))
	sum := time.Duration(0)
	for i, d := range w.of {
		if sum += d; sum >= want && sum > 0 {
			return fitness.Figure(smallest * math.Pow(step, float64(i)))
		}
	}
	return fitness.Inf
}
