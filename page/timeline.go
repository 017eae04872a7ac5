package page

import (
	"time"

	"suffrage/membership"
)

// Timeline is an operation's steps over its time, in percent of it.
type Timeline struct {
	Took  string
	Steps []Taken
}

// Taken is one step that was begun.
type Taken struct {
	membership.StepRecord
	Took string
	// Going: it has not ended, and neither has the operation.
	Going bool
	// Start and Width are in percent of the operation's time.
	Start, Width float64
}

// timelineOf measures steps by the operation's own times. Two controllers' clocks may
// have written the two ends of one.
func timelineOf(op membership.Operation, now time.Time) Timeline {
	end := op.Ended
	if end.IsZero() {
		end = now
	}
	all := max(end.Sub(op.Begun), time.Millisecond)
	t := Timeline{Took: length(max(end.Sub(op.Begun), 0))}
	for _, s := range op.Steps {
		until := s.Ended
		if until.IsZero() {
			until = end
		}
		share := func(d time.Duration) float64 { return round(100 * min(max(d.Seconds()/all.Seconds(), 0), 1)) }
		t.Steps = append(t.Steps, Taken{s, length(max(until.Sub(s.Begun), 0)), s.Ended.IsZero() && op.Open(),
			min(share(s.Begun.Sub(op.Begun)), 99), max(share(until.Sub(s.Begun)), 1)})
	}
	return t
}

// outcome is an operation's in words.
func outcome(op membership.Operation) string {
	switch {
	case !op.Open():
		return string(op.Outcome)
	case op.TurnedBack != "":
		return "turning back"
	}
	return "under way"
}
