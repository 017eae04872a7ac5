package probes

import (
	"errors"
	"fmt"
	"math"

	"suffrage/fitness"
)

// Bucket counts the observations up to an upper edge, cumulatively.
type Bucket struct {
	// Le is the upper edge in seconds, included; the last one is +Inf.
	Le    float64
	Count uint64
}

// Histogram is a cumulative snapshot. The zero value is one that was never
// read. Snapshots are immutable.
type Histogram struct {
	Buckets []Bucket
	Count   uint64
}

// maxCount is the largest count that the text form, a float64, holds exactly.
const maxCount = 1 << 53

// check refuses what no histogram can be: a page may come from anywhere.
func (h Histogram) check() error {
	if len(h.Buckets) == 0 {
		return errors.New("it has no buckets")
	}
	for i, b := range h.Buckets {
		switch {
		case math.IsNaN(b.Le):
			return errors.New("a bucket's edge is not a number")
		case b.Count > maxCount:
			return fmt.Errorf("the bucket up to %v counts %d", b.Le, b.Count)
		case i > 0 && b.Le <= h.Buckets[i-1].Le:
			return fmt.Errorf("the bucket up to %v follows the one up to %v", b.Le, h.Buckets[i-1].Le)
		case i > 0 && b.Count < h.Buckets[i-1].Count:
			return fmt.Errorf("the bucket up to %v counts %d, fewer than the one before it", b.Le, b.Count)
		}
	}
	last := h.Buckets[len(h.Buckets)-1]
	if !math.IsInf(last.Le, 1) || last.Count != h.Count {
		return fmt.Errorf("its last bucket, up to %v, counts %d of %d", last.Le, last.Count, h.Count)
	}
	return nil
}

// Since is what was observed between an older snapshot and this one. It is
// false when the two do not belong together: the totals are since the process
// started, so a bucket that dropped (or other buckets) means that another one
// runs now, and this snapshot is where to begin again.
func (h Histogram) Since(older Histogram) (Histogram, bool) {
	if len(h.Buckets) == 0 || len(h.Buckets) != len(older.Buckets) || h.Count < older.Count {
		return Histogram{}, false
	}
	d := Histogram{Buckets: make([]Bucket, len(h.Buckets)), Count: h.Count - older.Count}
	var below uint64
	for i, b := range h.Buckets {
		o := older.Buckets[i]
		if b.Le != o.Le || b.Count < o.Count || b.Count-o.Count < below {
			return Histogram{}, false
		}
		below = b.Count - o.Count
		d.Buckets[i] = Bucket{Le: b.Le, Count: below}
	}
	return d, true
}

// P99 is the bucket in which the 99th percentile of the n observations lies, by
// nearest rank: lo < p99 <= hi. hi is infinite in the last bucket, and without
// any observation, when nothing can be said (0 to infinity).
func (h Histogram) P99() (lo, hi fitness.Figure, n uint64) {
	if h.Count == 0 {
		return 0, fitness.Inf, 0
	}
	rank := h.Count - h.Count/100 // ceil(0.99·n)
	for _, b := range h.Buckets {
		if b.Count >= rank {
			return lo, fitness.Figure(b.Le), h.Count
		}
		lo = fitness.Figure(b.Le)
	}
	return lo, fitness.Inf, h.Count
}

// Bound is P99 in the form that a series keeps. at is in microseconds since 1970.
func (h Histogram) Bound(at int64) fitness.Bound {
	lo, hi, n := h.P99()
	return fitness.Bound{At: at, Lo: lo, Hi: hi, N: n}
}
