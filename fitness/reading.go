package fitness

import "time"

// Reading is a series judged: one figure against its limit.
type Reading struct {
	Signal Signal `json:"signal"`
	Host   string `json:"host"`
	Peer   string `json:"peer,omitempty"`
	Band   Band   `json:"band"`
	// Held is for how many evaluations in a row, one per sample, the series has
	// lain in this band: 0 to Whole, and 0 while the band is unknown.
	Held int `json:"held"`
	// Since is the time of the first of those evaluations, as far as the
	// samples reach back. Of an unknown band it is the first evaluation that
	// could not say, or the last sample before a silence, or Now when there
	// never was a sample.
	Since time.Time `json:"since"`
	// Count is the number of numbers in the newest window, 0 to WindowSize;
	// failed samples are none.
	Count int `json:"count"`
	// Lost is how many of them were lost; LostNow how many of the newest were,
	// in a row.
	Lost    int `json:"lost,omitempty"`
	LostNow int `json:"lost_now,omitempty"`
	// Figure is what is judged: the p99, or the lowest memory, the highest
	// count of events, the median of the clock's offset either way. 0 until a
	// window is full. Where etcd's histogram decided against the probe's p99, it
	// is the edge of the histogram's bucket that did: the p99 is above it in a
	// violation, else at most it.
	Figure Figure `json:"figure"`
	// Probe is the probe's p99 there, nil elsewhere.
	Probe *Figure `json:"probe,omitempty"`
	P50   Figure  `json:"p50"`
	Limit Limit   `json:"limit"`
	// DecidedBy is "probe" or "histogram", empty while the band is unknown.
	DecidedBy string `json:"decided_by,omitempty"`
	// Histogram is what etcd's own histogram said, whether it decided or not.
	Histogram *Bound `json:"histogram,omitempty"`
	// Newest is the time of the newest sample that counts.
	Newest time.Time `json:"newest"`
	// Note says why the band is unknown; else, while pings are lost, why the newest was.
	Note string `json:"note,omitempty"`
}

// Whole reports whether the band has held "for a whole window".
func (r Reading) Whole() bool { return r.Band != Unknown && r.Held >= Whole }

// ProbeFails begins the note of a reading whose probe is broken: its window will
// not fill by waiting.
const ProbeFails = "probe fails: "

// Context is what a series is read with.
type Context struct {
	Host string
	// Now is the time by which the age of the series is judged, by the same
	// clock as the samples: for a host that answered in this round, when its
	// report was taken in; for one that did not, the time of the round. An old
	// report read with its own old time would never grow stale.
	Now time.Time
	// Period is the time between two samples.
	Period time.Duration
	// NotBefore leaves out samples up to and including this time: those from
	// before a membership change and those around a start of the member. Not for
	// Stability, whose samples are about those very starts.
	NotBefore time.Time
	Limit     Limit
}

// staleAfter is the age from which the newest sample is too old to judge by.
// Three periods is the rule; a second is its floor, because with periods of a
// few milliseconds (the demo) three of them are less than a scheduler's hiccup.
func (c Context) staleAfter() time.Duration { return max(3*c.Period, time.Second) }

// Read judges a series by replaying it: each sample that counts is one
// evaluation of the window that it completes. These do not count:
//
//   - a sample up to NotBefore;
//   - a sample taken while the observer ran late by more than the limit;
//   - everything from before a silence, since nobody saw it hold meanwhile, and
//     from before a clock was set, since nobody knows how long ago it was.
//
// The order of the samples, and samples given twice, make no difference; of
// more than SeriesSize samples only the newest are read.
func Read(s Series, c Context) Reading {
	p := newReplay(s, c)
	for _, m := range newest(s.Samples) {
		p.take(m)
	}
	return p.reading(s, c)
}
