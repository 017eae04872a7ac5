package membership

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// quarantineFirst is how long a candidate is left alone after its swap failed
// once; each further failure in a row doubles it, up to quarantineMost.
const (
	quarantineFirst = 30 * time.Minute
	quarantineMost  = 7 * 24 * time.Hour
)

// movedBack is how long a host that lost or got a vote keeps out of another swap.
const movedBack = time.Hour

// futileSwaps in futileTime that did not lower the worst p99 stop everything:
// something else is slow.
const (
	futileSwaps = 2
	futileTime  = 24 * time.Hour
)

// history are the ended operations, oldest first, whatever order they came in.
func (a *assessment) history() []Operation {
	return slices.SortedFunc(slices.Values(a.in.Operations), func(x, y Operation) int {
		if c := x.Ended.Compare(y.Ended); c != 0 {
			return c
		}
		return strings.Compare(x.ID, y.ID)
	})
}

// quarantined is until when a host gets no vote: its swaps failed, or it was
// moved within the hour. The owner's clearing forgets what was before it.
func (a *assessment) quarantined(host string) (until time.Time, why string) {
	failures := 0
	cleared := time.Time{}
	if c := a.hosts[host].Mark.Cleared; c != nil {
		cleared = c.At
	}
	for _, op := range a.history() {
		switch {
		case !op.Ended.After(cleared):
		case op.In == host && op.Failed():
			until, why = op.Ended.Add(resting(failures)), "its last swap failed"
			failures++
			if op.Out == "" {
				why = "the last time it was to get a vote that failed"
			}
		case op.In == host:
			failures = 0
		case op.Out == host && op.Outcome == Completed && !op.Dead: // one that was dead and is mended may come back
			until, why = op.Ended.Add(movedBack), "it has just lost its vote"
		}
	}
	return until, why
}

// resting is how long a host is left alone after so many failures in a row and one.
func resting(failures int) time.Duration {
	if failures >= 16 {
		return quarantineMost
	}
	return min(quarantineFirst<<failures, quarantineMost)
}

// futile stops swapping where it does not help. Growing is not meant to.
func (a *assessment) futile() []Refusal {
	n := 0
	for _, op := range a.in.Operations {
		if op.Outcome == Completed && op.In != "" && op.Out != "" && op.WorstBefore != nil && op.WorstAfter != nil && *op.WorstAfter >= *op.WorstBefore &&
			a.in.Now.Sub(op.Ended) < futileTime {
			n++
		}
	}
	if n < futileSwaps {
		return nil
	}
	return []Refusal{owner(Futile, "", fmt.Sprintf("%d swaps within a day did not lower the worst round trip: something else is slow", n),
		"find what is slow: suffrage operations list; then, if you want to: suffrage swap OUT IN").with("futile_swaps", int64(n), futileSwaps, "1")}
}
