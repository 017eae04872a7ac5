package agent

import (
	"math"

	"suffrage/fitness"
)

// maxBounds is how many readings of etcd's histogram a series keeps: as far back
// as its samples.
const maxBounds = fitness.SeriesSize / fitness.BoundEvery

// ring holds the newest samples of one series, and the window that metrics are
// read from. Its owner is a record, whose mutex guards it.
type ring struct {
	signal  fitness.Signal
	peer    string
	samples [fitness.SeriesSize]fitness.Sample
	next    int
	count   int
	window  fitness.Window
	bounds  []fitness.Bound
	err     string
	lost    uint64 // since the agent started
	run     int    // of lost samples, newest included
}

// add takes a sample in and allocates nothing.
func (r *ring) add(s fitness.Sample) {
	if last := r.newest(); last != nil {
		s.At = max(s.At, last.At) // two goroutines may have read the clock in either order
	}
	r.samples[r.next] = s
	r.next = (r.next + 1) % len(r.samples)
	r.count = min(r.count+1, len(r.samples))
	r.run++
	switch s.State {
	case fitness.Lost:
		r.lost++
		r.window.Add(float64(fitness.Inf))
		return
	case fitness.Failed:
		r.window.Add(math.NaN())
	default:
		r.window.Add(s.Value)
	}
	r.run = 0
}

// newest is nil when there is none.
func (r *ring) newest() *fitness.Sample {
	if r.count == 0 {
		return nil
	}
	return &r.samples[(r.next-1+len(r.samples))%len(r.samples)]
}

func (r *ring) addBound(b fitness.Bound) {
	if len(r.bounds) == maxBounds {
		copy(r.bounds, r.bounds[1:])
		r.bounds = r.bounds[:maxBounds-1]
	}
	r.bounds = append(r.bounds, b)
}

// series copies the samples above a sequence number, oldest first.
func (r *ring) series(after uint64) fitness.Series {
	s := fitness.Series{Signal: r.signal, Peer: r.peer, Error: r.err, Samples: []fitness.Sample{}}
	n := 0 // newer samples are at the end, so count from there
	for n < r.count && r.at(r.count-1-n).Seq > after {
		n++
	}
	if n > 0 {
		s.Samples = make([]fitness.Sample, 0, n)
	}
	for i := r.count - n; i < r.count; i++ {
		s.Samples = append(s.Samples, *r.at(i))
	}
	s.Bounds = append(s.Bounds, r.bounds...)
	return s
}

// at is the i-th oldest sample.
func (r *ring) at(i int) *fitness.Sample {
	return &r.samples[(r.next-r.count+i+len(r.samples))%len(r.samples)]
}
