package probes_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"suffrage/fitness"
	"suffrage/probes"
)

// edges are those of etcd's disk histograms.
var edges = []float64{.001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1.024, 2.048, 4.096, 8.192, math.Inf(1)}

func histogramOf(values ...float64) probes.Histogram {
	h := probes.Histogram{Count: uint64(len(values))}
	for _, e := range edges {
		var n uint64
		for _, v := range values {
			if v <= e {
				n++
			}
		}
		h.Buckets = append(h.Buckets, probes.Bucket{Le: e, Count: n})
	}
	return h
}

func many(n int, v float64) []float64 { return slices.Repeat([]float64{v}, n) }

func TestHistogramP99(t *testing.T) {
	inf := fitness.Inf
	for _, tt := range []struct {
		why    string
		values []float64
		lo, hi fitness.Figure
	}{
		{"nothing observed says nothing", nil, 0, inf},
		{"one", many(1, .003), .002, .004},
		{"one slow in 100 passes", append(many(99, .0005), .5), 0, .001},
		{"two slow in 100 do not", append(many(98, .0005), .5, .5), .256, .512},
		{"one slow in 99 is the 99th", append(many(98, .0005), .5), .256, .512},
		{"two slow in 200 pass", append(many(198, .0005), .5, .5), 0, .001},
		{"beyond the last edge", append(many(98, .0005), 9, 9), 8.192, inf},
		{"an edge belongs to its bucket", many(100, .008), .004, .008},
	} {
		lo, hi, n := histogramOf(tt.values...).P99()
		if lo != tt.lo || hi != tt.hi || n != uint64(len(tt.values)) {
			t.Errorf("%s: %v..%v of %d, want %v..%v of %d", tt.why, lo, hi, n, tt.lo, tt.hi, len(tt.values))
		}
	}
}

func TestHistogramSince(t *testing.T) {
	old := histogramOf(many(1000, 5)...) // a bad boot a month ago
	now := histogramOf(append(many(1000, 5), many(100, .0005)...)...)
	d, ok := now.Since(old)
	if !ok || d.Count != 100 {
		t.Fatalf("%+v, %v", d, ok)
	}
	if _, hi, _ := d.P99(); hi != .001 {
		t.Errorf("p99 up to %v, want 1 ms: what was before does not count", hi)
	}
	if d, ok := now.Since(now); !ok || d.Count != 0 {
		t.Errorf("nothing since: %+v, %v", d, ok)
	}
	for _, tt := range []struct {
		why string
		old probes.Histogram
	}{
		{"a restart", histogramOf(many(2000, .0005)...)},
		{"a restart whose total has caught up, seen by one bucket", histogramOf(many(1050, .0005)...)},
		{"never read", probes.Histogram{}},
		{"other buckets", probes.Histogram{Count: 1, Buckets: []probes.Bucket{{Le: math.Inf(1), Count: 1}}}},
	} {
		if d, ok := now.Since(tt.old); ok {
			t.Errorf("%s: %+v, want false", tt.why, d)
		}
	}
}

// TestHistogramHoldsThePercentile compares with the p99 of the values themselves.
func TestHistogramHoldsThePercentile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64Range(1e-6, 20)
		before := rapid.SliceOfN(value, 0, 50).Draw(t, "before")
		since := rapid.SliceOfN(value, 1, 400).Draw(t, "since")
		d, ok := histogramOf(append(slices.Clone(before), since...)...).Since(histogramOf(before...))
		if !ok || d.Count != uint64(len(since)) {
			t.Fatalf("%+v, %v", d, ok)
		}
		slices.SortFunc(since, cmp.Compare)
		p99 := fitness.Figure(since[int(math.Ceil(.99*float64(len(since))))-1])
		if lo, hi, _ := d.P99(); !(lo < p99 && p99 <= hi) {
			t.Fatalf("p99 %v is not in %v..%v", p99, lo, hi)
		}
	})
}
