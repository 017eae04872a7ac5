package memtest

import (
	"fmt"
	"testing"
	"time"

	"suffrage/membership"
)

// run is a swap in which nothing goes wrong but the controller's end at the
// given points, counted over the whole run. With turn, the outgoing host is
// pinned as soon as the operation has that step, so that it turns back. It
// gives the number of points passed.
func run(t *testing.T, turn string, crashes ...int) int {
	t.Helper()
	s := newSim(1, 3, 2)
	s.Leader = "m-h3" // the one that goes, so that leadership has to move
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("turned at %q, crashes at points %v: %v\n%s", turn, crashes, r, s.trace(80))
		}
	}()
	s.point = func(_ *Controller, name string) {
		for _, n := range crashes {
			if s.points == n {
				s.Logf("crash at point %d, %s", n, name)
				panic(crash{})
			}
		}
	}
	out := s.Host("h3")
	turned := false
	for range 300 {
		s.pass()
		if op := s.Lease.Open; turn != "" && op != nil && len(op.Steps) > 0 && !turned {
			for _, r := range op.Steps {
				if r.Name == turn {
					turned = true
					out.Mark.Pinned = &membership.Say{Value: true, By: "owner", At: s.Now}
				}
			}
		}
		if len(s.History) > 0 && s.Lease.Open == nil {
			break
		}
	}
	for range 8 { // what was called for may come until here
		s.pass()
	}
	want := map[string]int{"completed": 1}
	if turned && !s.Removed["m-h3"] {
		want = map[string]int{"undone": 1}
	}
	if got := s.outcomes(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("turned at %q, crashes at points %v: operations ended %v, want %v\n%s", turn, crashes, got, want, s.trace(80))
	}
	if why := s.unhealthy(); why != "" {
		t.Fatalf("turned at %q, crashes at points %v: %s\n%s", turn, crashes, why, s.trace(80))
	}
	return s.points
}

// turns are the steps of an operation's record at which it is made to turn back.
var turns = []string{"", "snapshot", "join", "promote", "soak", "step-down", "remove", "clean-up", "record"}

// TestEveryCrash ends the controller at every named point of a swap, and of the
// way back from each of its steps: once at each, and (make sim, or without
// turning) at each pair of them.
func TestEveryCrash(t *testing.T) {
	for _, turn := range turns {
		t.Run("turn="+turn, func(t *testing.T) {
			began, runs := time.Now(), 1
			n := run(t, turn)
			for i := 1; i <= n; i++ {
				// After a crash there are more points than without: every one that the
				// run comes by is a second.
				m := run(t, turn, i)
				runs++
				if turn != "" && !everything() {
					continue
				}
				for j := i + 1; j <= m; j++ {
					run(t, turn, i, j)
					runs++
				}
			}
			t.Logf("%d points, %d runs, %s", n, runs, time.Since(began).Round(time.Millisecond))
		})
	}
}
