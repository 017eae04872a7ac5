package fitness

import (
	"math"
	"time"
)

const (
	// WindowSize is the number of samples in a window: the fewest that give a
	// p99 one sample of its own.
	WindowSize = 100
	// Whole is the number of evaluations in a row, one per sample, that "for a
	// whole window" means; the package comment says why it is two windows.
	Whole = 2 * WindowSize
	// SeriesSize is the number of samples that a series keeps. Three windows
	// decide Whole from the series alone, so that a reader that has just started
	// sees what one that never stopped sees; the fourth makes up for samples
	// that weigh nothing. Without it, two late samples in three windows would
	// keep a busy host from ever being judged whole.
	SeriesSize = 4 * WindowSize
	// BoundEvery is after how many samples etcd's histogram is read again: its
	// page is long, and a read says something of a whole window.
	BoundEvery = WindowSize / 10
)

// State tells a measured sample from one that has no number.
type State string

const (
	// Measured samples carry a number. It is the zero value.
	Measured State = ""
	// Lost is a ping without an answer. It is a sample, ordered after every number.
	Lost State = "lost"
	// Failed is a probe that could not measure. It takes a place in the window
	// and fills it with nothing, so the window cannot say.
	Failed State = "failed"
)

// Sample is one measurement. JSON names are short because a report carries
// thousands of them.
type Sample struct {
	// Seq grows by one for each sample that the agent takes, over all series. It
	// is the order of a series, since clocks can be set back; when an agent
	// starts anew, and with it its numbers, so do its series.
	Seq uint64 `json:"n"`
	// At is when the sample was complete, in microseconds since 1970, by the
	// clock of whoever holds the series.
	At int64 `json:"t"`
	// Value is in the signal's unit. Of a lost ping it is how long it was waited
	// for, of a failed sample it means nothing. Only a clock's offset can be
	// below zero, anything else that is has failed.
	Value float64 `json:"v"`
	// Late is by how many seconds the agent's own ticker fired late: an
	// observer that is sick itself does not judge. The ticker must not wait for
	// the probe, or a slow disk would excuse itself.
	Late  float64 `json:"l,omitempty"`
	State State   `json:"s,omitempty"`
}

// Time is At as a time in UTC.
func (s Sample) Time() time.Time { return time.UnixMicro(s.At).UTC() }

// number is what enters the window: lost pings are ordered after every number,
// what has no number is NaN, and a clock is off whichever way it is. A state that
// this version does not know is taken for a failure.
func (s Signal) number(m Sample) float64 {
	switch {
	case m.State == Lost && s.OfPair():
		return math.Inf(1)
	case m.State != Measured, m.Value < 0 && s != Clock:
		return math.NaN()
	case s == Clock:
		return math.Abs(m.Value)
	}
	return m.Value
}

// spoilt reports whether the observer ran late by more than the limit that is
// judged, the stricter of the two. Only what is timed can be spoilt that way.
func (s Signal) spoilt(m Sample, l Limit) bool {
	return s.times() && m.Late > float64(min(l.Voter, l.Candidate))
}

// took is how long the measurement lasted, at most an hour.
func (s Signal) took(m Sample) time.Duration {
	if !s.times() || m.State == Failed || !(m.Value > 0) {
		return 0
	}
	return time.Duration(min(m.Value, 3600) * float64(time.Second))
}

// Bound is what etcd's own histogram says of a p99 over at most one window:
// Lo < p99 <= Hi, from the N observations in it.
type Bound struct {
	// At is when the histogram was read, in microseconds since 1970.
	At int64  `json:"t"`
	Lo Figure `json:"lo"`
	Hi Figure `json:"hi"`
	N  uint64 `json:"count"`
}

// Series is what one agent has of one signal.
type Series struct {
	Signal Signal `json:"signal"`
	// Peer is the other host, where the signal is a pair's.
	Peer string `json:"peer,omitempty"`
	// Samples are oldest first, at most SeriesSize, all of one instance of the agent.
	Samples []Sample `json:"samples"`
	// Bounds are oldest first; only disk signals of a voter have any.
	Bounds []Bound `json:"bounds,omitempty"`
	// Error is what the probe said when it failed last, while it still fails.
	Error string `json:"error,omitempty"`
}
