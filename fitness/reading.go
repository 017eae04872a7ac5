package fitness

import (
	"fmt"
	"time"
)

// Reading is a series judged: one figure against its limit.
type Reading struct {
	Signal Signal `json:"signal"`
	Host   string `json:"host"`
	Peer   string `json:"peer,omitempty"`
	Band   Band   `json:"band"`
	// Held is for how many evaluations in a row, one per sample, the series has
	// lain in this band: 0 to Whole.
	Held int `json:"held"`
	// Since is the time of the first of those evaluations, as far as the
	// samples reach back.
	Since time.Time `json:"since"`
	// Count is the number of samples in the newest window, 0 to WindowSize.
	Count int `json:"count"`
	// Lost is how many of them were lost; LostNow how many of the newest were,
	// in a row.
	Lost    int `json:"lost,omitempty"`
	LostNow int `json:"lost_now,omitempty"`
	// Figure is what is judged: the p99, or the lowest memory, the highest
	// count of events, the median clock offset.
	Figure Figure `json:"figure"`
	P50    Figure `json:"p50"`
	Limit  Limit  `json:"limit"`
	// DecidedBy is "probe" or "histogram", empty while the band is unknown.
	DecidedBy string `json:"decided_by,omitempty"`
	// Histogram is what etcd's own histogram said, whether it decided or not.
	Histogram *Bound `json:"histogram,omitempty"`
	// Newest is the time of the newest sample.
	Newest time.Time `json:"newest"`
	// Note says why the band is unknown.
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
	// Now is the time at which the report with the series was taken in, by the
	// same clock as the samples.
	Now time.Time
	// Period is the time between two samples.
	Period time.Duration
	// NotBefore leaves out samples up to and including this time: those from
	// before a membership change and those around a start of the member.
	NotBefore time.Time
	Limit     Limit
}

// staleAfter is the age from which the newest sample is too old to judge by.
// Three periods is the rule; a second is its floor, because with periods of a
// few milliseconds (the demo) three of them are less than a scheduler's hiccup.
func (c Context) staleAfter() time.Duration { return max(3*c.Period, time.Second) }

// Read judges a series by replaying it: each sample that counts is one
// evaluation of the window that it completes.
func Read(s Series, c Context) Reading {
	r := Reading{Signal: s.Signal, Host: c.Host, Peer: s.Peer, Limit: c.Limit}
	var (
		w       Window
		stale   = c.staleAfter().Microseconds()
		after   = int64(-1 << 62)
		last    int64
		bound   = -1
		judging = float64(c.Limit.Candidate)
	)
	if !c.NotBefore.IsZero() {
		after = c.NotBefore.UnixMicro()
	}
	for i := range s.Samples {
		m := &s.Samples[i]
		if m.At <= after || s.Signal.late(m.Late, judging) {
			continue
		}
		if last != 0 && m.At-last > stale {
			// Silence in between: whatever held before, nobody saw it hold.
			w = Window{}
			r.Band, r.Held, r.LostNow = Unknown, 0, 0
		}
		last = m.At
		if m.State == Failed {
			w.AddFailed()
		} else {
			w.Add(m.number())
		}
		if m.State == Lost {
			r.LostNow++
		} else {
			r.LostNow = 0
		}
		for bound+1 < len(s.Bounds) && s.Bounds[bound+1].At <= m.At {
			bound++
		}
		band := Unknown
		r.DecidedBy, r.Histogram = "", nil
		if w.Full() {
			band, r.DecidedBy = s.Signal.band(s.Signal.figure(&w), c.Limit), "probe"
		}
		// A histogram read longer ago than a window says nothing of this one.
		if bound >= 0 && s.Bounds[bound].At > after && m.At-s.Bounds[bound].At <= WindowSize*c.Period.Microseconds() {
			b := s.Bounds[bound]
			r.Histogram = &b
			if d, can := b.decide(c.Limit); can && w.Full() {
				band, r.DecidedBy = d, "histogram"
			}
		}
		if band != r.Band || band == Unknown {
			r.Band, r.Held, r.Since = band, 0, m.Time()
		}
		if band != Unknown && r.Held < Whole {
			r.Held++
		}
	}
	r.Count, r.Lost = w.Count(), w.Lost()
	r.P50 = w.P50()
	if w.Full() {
		r.Figure = s.Signal.figure(&w)
	}
	if last != 0 {
		r.Newest = time.UnixMicro(last).UTC()
	}
	r.judgeAge(s, c, last, stale)
	return r
}

// late reports whether a sample was taken by an observer that ran late by more
// than the limit being judged. Only durations can be spoilt that way.
func (s Signal) late(by, limit float64) bool {
	return (s == RTT || s == WALFsync || s == BackendCommit) && by > limit
}

// judgeAge turns a reading that nothing fresh supports into Unknown, and says why.
func (r *Reading) judgeAge(s Series, c Context, last, stale int64) {
	switch {
	case s.Error != "" && r.Count < WindowSize:
		r.Note = ProbeFails + s.Error
	case last == 0:
		r.Note = "no sample counts yet"
	case c.Now.UnixMicro()-last > stale:
		r.Note = fmt.Sprintf("newest sample is older than %s", c.staleAfter())
	case r.Count < WindowSize:
		r.Note = fmt.Sprintf("have %d samples, need %d", r.Count, WindowSize)
	default:
		return
	}
	if r.Band != Unknown || r.Since.IsZero() {
		r.Since = c.Now.UTC()
	}
	r.Band, r.Held, r.DecidedBy = Unknown, 0, ""
}
