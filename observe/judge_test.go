package observe

import (
	"math"
	"testing"

	"suffrage/fitness"
	"suffrage/probes"
)

// grown are two readings of a histogram: n observations in the bucket up to le
// in between.
func grown(n uint64, le float64) pages {
	edges := []float64{0.001, 0.002, 0.004, 0.008, 0.016, 0.032, math.Inf(1)}
	h := func(n uint64) probes.EtcdMetrics {
		var out probes.Histogram
		for _, e := range edges {
			b := probes.Bucket{Le: e, Count: 1000}
			if e >= le {
				b.Count += n
			}
			out.Buckets = append(out.Buckets, b)
		}
		out.Count = 1000 + n
		return probes.EtcdMetrics{WALFsync: out}
	}
	return pages{url: "x", first: h(0), last: h(n)}
}

func TestDisk(t *testing.T) {
	for _, test := range []struct {
		why   string
		p     pages
		limit fitness.Figure
		want  string
	}{
		{"up to 8 ms is under 10", grown(100, 0.008), 0.010, Passes},
		{"8 to 16 holds 10: no guess", grown(100, 0.016), 0.010, CannotSay},
		{"from 16 is over 10", grown(100, 0.032), 0.010, Fails},
		{"16 to 32 holds 25", grown(100, 0.032), 0.025, CannotSay},
		{"99 give no p99 of their own", grown(99, 0.008), 0.010, TooFew},
		{"an idle disk is neither good nor bad", grown(0, 0.008), 0.010, TooFew},
		{"no page", pages{}, 0.010, NoMetrics},
		{"a restart begins the totals again", pages{url: "x", first: grown(5, 0.008).last, last: grown(0, 0.008).last}, 0.010, TooFew},
	} {
		if got := test.p.disk(test.limit, walFsync); got.Says != test.want {
			t.Errorf("%s: %+v, want %s", test.why, got, test.want)
		}
	}
}

func TestTripOf(t *testing.T) {
	samples := make([]float64, 100)
	for i := range samples {
		samples[len(samples)-1-i] = float64(i + 1)
	}
	if r := tripOf(samples); *r.P50 != 50 || *r.P99 != 99 || r.Count != 100 || r.Lost != 0 {
		t.Errorf("1 to 100: %v %v", *r.P50, *r.P99)
	}
	if r := tripOf(samples[:99]); r.P99 != nil || r.P50 == nil {
		t.Error("99 samples have no p99 of their own")
	}
	samples[0], samples[1] = math.Inf(1), math.Inf(1)
	if r := tripOf(samples); *r.P99 != fitness.Inf || r.Lost != 2 {
		t.Errorf("two lost of 100 are the p99: %v, %d lost", *r.P99, r.Lost)
	}
	if r := tripOf(nil); r.P50 != nil || r.Count != 0 {
		t.Error("nothing is not zero")
	}
}
