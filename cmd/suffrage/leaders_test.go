package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"suffrage/membership"
)

// leader is which member led at a moment.
type leader struct {
	at     time.Time
	member string // its ID as operations have it
}

// leaders looks who leads until the context ends.
func (f *ownersFleet) leaders(ctx context.Context) <-chan []leader {
	client, all := f.client(), make(chan []leader, 1)
	go func() {
		var seen []leader
		for ctx.Err() == nil {
			now, term := leader{at: time.Now()}, uint64(0)
			for _, e := range client.Endpoints() {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				s, err := client.Status(ctx, e)
				cancel()
				if err == nil && s.Leader != 0 && s.RaftTerm > term {
					term, now.member = s.RaftTerm, fmt.Sprintf("%x", s.Leader)
				}
			}
			if now.member != "" {
				seen = append(seen, now)
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		all <- seen
	}()
	return all
}

// unmoved reports whether the voter that lost its vote led at every look from the
// beginning of its swap until it was asked to go, and nobody moved that.
func unmoved(r membership.Operation, seen []leader) bool {
	until := r.Ended
	for _, s := range r.Steps {
		switch s.Name {
		case "step-down":
			return false
		case "remove":
			until = s.Begun
		}
	}
	within := 0
	for _, l := range seen {
		if l.at.Before(r.Begun) || l.at.After(until) {
			continue
		}
		if l.member != r.OutMember {
			return false
		}
		within++
	}
	return within > 0
}

func TestUnmoved(t *testing.T) {
	at := time.Unix(1e9, 0)
	sec := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
	steps := func(names ...string) (out []membership.StepRecord) {
		for i, n := range names {
			out = append(out, membership.StepRecord{Name: n, Begun: sec(10 * (i + 1))})
		}
		return out
	}
	led := func(at int, who string) leader { return leader{sec(at), who} }
	for _, tt := range []struct {
		why   string
		steps []membership.StepRecord
		seen  []leader
		want  bool
	}{
		{"it led, and nobody moved that", steps("join", "remove"), []leader{led(-1, "b"), led(1, "a"), led(19, "a"), led(21, "b")}, true},
		{"it was moved", steps("join", "step-down", "remove"), []leader{led(1, "a"), led(19, "a")}, false},
		{"an election took it away before", steps("join", "remove"), []leader{led(1, "a"), led(19, "b")}, false},
		{"nobody looked", steps("join", "remove"), []leader{led(-1, "a"), led(21, "a")}, false},
	} {
		r := membership.Operation{OutMember: "a", Begun: at, Ended: sec(60), Steps: tt.steps}
		if got := unmoved(r, tt.seen); got != tt.want {
			t.Errorf("%s: %v", tt.why, got)
		}
	}
}
