package scenarios

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// The clock of a voter with a controller is an hour ahead, that of a standby an
// hour behind. Nothing depends on what time it is. A swap is asked for, and its
// controller is killed in the middle: first the one whose clock is ahead, so that
// the other one finds a Lease renewed in an hour, then the one whose clock is right,
// so that the one that is ahead finds a Lease that ran out long ago. Each waits for
// as long as the Lease is held, and ends the swap.
func TestClocks(t *testing.T) {
	program := os.Getenv("SUFFRAGE_CLOCK_BIN")
	if program == "" {
		t.Skip("SKIPPED, nothing was proven: SUFFRAGE_CLOCK_BIN is not set: make mesh")
	}
	f := begin(t, lab.Plan{
		Hosts: 6, Voters: 3,
		Controllers:  []string{"h1"}, // so that it leads first
		ClockProgram: program,
		StallTime:    fitness.Duration(10 * time.Second),
		// h4 gets no vote: here the start of a process is told by the kernel's clock, so
		// that an etcd would seem to have only just begun for an hour.
		Clocks: map[string]time.Duration{"h1": time.Hour, "h4": -time.Hour},
	})
	f.fault("the clock of h1 is an hour ahead, that of h4 an hour behind, and h1's controller leads", nil)
	f.do(f.Node("h2").Enable("controller"))
	f.seat = "h2"
	f.until("the owner is warned, and samples count", func(s lab.Status) bool {
		return s.Answering(f.names()...) && slices.ContainsFunc(s.Decision.Warnings, func(w string) bool { return strings.HasPrefix(w, "the clocks of h1 and h2 differ by ") })
	})
	f.clockSwap("h1", "h2", "h3", "h5")
	f.well("h1", "h2", "h5")
	f.clockSwap("h2", "h1", "h5", "h6")
	f.seat = "h2" // what a clock that is ahead wrote is read with one that is right
	f.well("h1", "h2", "h6")
	f.wait("the cooldown is over, though the swap ended in an hour", func() bool {
		said, err := f.Node("h2").Suffrage(t.Context(), "swap", "h6", "h5", "--yes")
		return err != nil && strings.Contains(said, string(membership.Quarantine)+"(h5)") && !strings.Contains(said, string(membership.CooldownRunning))
	})
}

// clockSwap has a swap begun by the controller of the one host and ended by that of
// the other. The owner sits beside the one that leads: a request is judged by its
// age, which is the one thing for which two clocks have to agree.
func (f *fleet) clockSwap(leads, next, out, in string) {
	f.t.Helper()
	f.seat = leads
	f.until(leads+"'s controller leads", func(s lab.Status) bool { return s.Controller != nil && s.Controller.Host == leads })
	op, killed := f.killedInTheMiddle(out, in)
	if killed != leads {
		f.fail("the controller of %s was killed, not that of %s", killed, leads)
	}
	f.until(next+"'s controller leads", func(s lab.Status) bool { return s.Controller != nil && s.Controller.Host == next })
	f.seat = next
	f.completed(op)
}
