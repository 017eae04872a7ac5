package fitness

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var (
	lost   = math.Inf(1)
	failed = math.NaN()
)

// dumb is the second implementation: it keeps everything, and copies, sorts and
// indexes for each read.
type dumb []float64

func (d dumb) numbers() []float64 {
	var out []float64
	for _, v := range d[max(0, len(d)-WindowSize):] {
		if !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

func (d dumb) rank(r int) Figure {
	if n := d.numbers(); len(n) == WindowSize {
		return Figure(n[r-1])
	}
	return 0
}

// TestWindowAgainstDumb compares with the second implementation after every
// entry, over several times round the ring, with few distinct numbers so that
// many are equal.
func TestWindowAgainstDumb(t *testing.T) {
	entry := rapid.OneOf(
		rapid.SampledFrom([]float64{lost, failed, 0, 0.25, 0.25, 0.5, -1}),
		rapid.Map(rapid.IntRange(0, 9), func(i int) float64 { return float64(i) / 100 }),
		rapid.Float64(),
	)
	rapid.Check(t, func(t *rapid.T) {
		var w Window
		var d dumb
		// Failed entries are made rare in half of the runs, or no window would
		// ever be full.
		rare := rapid.Bool().Draw(t, "rare")
		for i, v := range rapid.SliceOfN(entry, 2*WindowSize, 3*WindowSize).Draw(t, "entries") {
			if rare && math.IsNaN(v) && i%150 != 0 {
				v = lost
			}
			if v == 0 {
				v = 0 // -0 equals 0 and prints differently
			}
			w.Add(v)
			d = append(d, v)
			n := d.numbers()
			var lowest, highest Figure
			lostNow := 0
			for _, x := range n {
				if math.IsInf(x, 1) {
					lostNow++
				}
			}
			if len(n) > 0 {
				lowest, highest = Figure(n[0]), Figure(n[len(n)-1])
			}
			got := fmt.Sprint(w.Count(), w.Full(), w.Failed(), w.Lost(), w.Min(), w.Max(), w.P50(), w.P99())
			want := fmt.Sprint(len(n), len(n) == WindowSize, min(len(d), WindowSize)-len(n), lostNow, lowest, highest, d.rank(50), d.rank(99))
			if got != want {
				t.Fatalf("after entry %d (%v): got %s, want %s", i, v, got, want)
			}
		}
	})
}

func TestWindow(t *testing.T) {
	type run struct {
		n int
		v float64
	}
	for _, c := range []struct {
		name                string
		feed                []run
		full                bool
		count, failed, lost int
		p50, p99            Figure
	}{
		{"nothing", nil, false, 0, 0, 0, 0, 0}, // the zero value is empty, not zero
		{"one", []run{{1, 5}}, false, 1, 0, 0, 0, 0},
		{"98", []run{{98, 5}}, false, 98, 0, 0, 0, 0},
		{"99", []run{{99, 5}}, false, 99, 0, 0, 0, 0}, // S067: have 99, need 100
		{"100", []run{{100, 5}}, true, 100, 0, 0, 5, 5},
		{"101", []run{{101, 5}}, true, 100, 0, 0, 5, 5},
		{"one outlier of 100 passes", []run{{99, 0.02}, {1, 5}}, true, 100, 0, 0, 0.02, 0.02}, // S076
		{"two do not", []run{{98, 0.02}, {2, 5}}, true, 100, 0, 0, 0.02, 5},                   // S076
		{"an outlier moves out", []run{{2, 5}, {99, 0.02}}, true, 100, 0, 0, 0.02, 0.02},      // one of the two is the 101st
		{"one lost passes", []run{{99, 0.02}, {1, lost}}, true, 100, 0, 1, 0.02, 0.02},        // lost is ordered after every number
		{"two lost do not", []run{{98, 0.02}, {2, lost}}, true, 100, 0, 2, 0.02, Inf},
		{"lost is over 5 s", []run{{98, 0.02}, {1, lost}, {1, 5}}, true, 100, 0, 1, 0.02, 5},
		{"all lost", []run{{150, lost}}, true, 100, 0, 100, Inf, Inf},
		{"one failed", []run{{100, 0.02}, {1, failed}}, false, 99, 1, 0, 0, 0},                             // never a zero, never dropped
		{"failed still in", []run{{1, failed}, {99, 0.02}}, false, 99, 1, 0, 0, 0},                         // it is the oldest of 100
		{"failed moved out", []run{{1, failed}, {100, 0.02}}, true, 100, 0, 0, 0.02, 0.02},                 // by one more
		{"median is the 50th", []run{{50, 1}, {50, 2}}, true, 100, 0, 0, 1, 2},                             // nearest rank, no mean of two
		{"equal numbers leave one by one", []run{{60, 1}, {60, 2}, {60, 1}}, true, 100, 0, 0, 1, 2},        // 40 twos, 60 ones are left
		{"three times round", []run{{100, 9}, {100, 8}, {97, 1}, {3, 2}}, true, 100, 0, 0, 1, 2},           // nothing of the old is left
		{"minus infinity is a number", []run{{2, math.Inf(-1)}, {98, 1}}, true, 100, 0, 0, 1, 1},           // a sample never has it, but nothing breaks
		{"lost among equal numbers", []run{{50, lost}, {50, 1}, {50, lost}}, true, 100, 0, 50, 1, Inf},     // the older lost are out
		{"failed everywhere", []run{{300, failed}}, false, 0, 100, 0, 0, 0},                                // a dead probe
		{"recovered from failed everywhere", []run{{300, failed}, {100, 1}}, true, 100, 0, 0, 1, 1},        // after one window
		{"not quite recovered", []run{{300, failed}, {99, 1}}, false, 99, 1, 0, 0, 0},                      // one sample before
		{"zero is a number", []run{{100, 0}}, true, 100, 0, 0, 0, 0},                                       // no restarts
		{"negative zero leaves again", []run{{50, math.Copysign(0, -1)}, {100, 1}}, true, 100, 0, 0, 1, 1}, // it equals zero
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Window
			for _, r := range c.feed {
				for range r.n {
					w.Add(r.v)
				}
			}
			got := fmt.Sprint(w.Full(), w.Count(), w.Failed(), w.Lost(), w.P50(), w.P99())
			if want := fmt.Sprint(c.full, c.count, c.failed, c.lost, c.p50, c.p99); got != want {
				t.Errorf("full, count, failed, lost, p50, p99: got %s, want %s", got, want)
			}
		})
	}
}

// TestWindowBurst is the arithmetic of the package comment: the p99 shows a
// burst of L bad samples for L+97 evaluations in a row.
func TestWindowBurst(t *testing.T) {
	for burst := 2; burst < WindowSize; burst++ {
		var w Window
		over := 0
		for i := range 5 * WindowSize {
			v := 0.02
			if i >= WindowSize && i < WindowSize+burst {
				v = 5
			}
			w.Add(v)
			if w.Full() && w.P99() > 1 {
				over++
			}
		}
		if over != burst+97 {
			t.Fatalf("a burst of %d shows for %d evaluations, want %d", burst, over, burst+97)
		}
	}
}

func TestWindowAllocates(t *testing.T) {
	var w Window
	v, sum := 0.0, Figure(0)
	if n := testing.AllocsPerRun(1000, func() {
		v += 0.618
		w.Add(v - math.Floor(v))
		sum += w.P99() + w.P50() + Figure(w.Lost())
	}); n != 0 {
		t.Errorf("adding one sample and reading it allocates %v times, want 0: it happens for every sample of every pair", n)
	}
}
