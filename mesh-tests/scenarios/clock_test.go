package scenarios

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"suffrage/membership"
	"suffrage/mesh-tests/lab"
)

// The clock of a voter with a controller is an hour ahead, that of the newcomer an
// hour behind. Nothing depends on what time it is: a swap is asked for and made,
// its controller is killed, and the other one, whose clock is right, does not
// think that the Lease has long expired, nor that it never will.
func TestClocks(t *testing.T) {
	program := os.Getenv("SUFFRAGE_CLOCK_BIN")
	if program == "" {
		t.Skip("SKIPPED, nothing was proven: SUFFRAGE_CLOCK_BIN is not set: make mesh")
	}
	p := five
	p.ClockProgram, p.Clocks = program, map[string]time.Duration{"h1": time.Hour, "h4": -time.Hour}
	f := begin(t, p)
	f.fault("the clock of h1 is an hour ahead, that of h4 an hour behind", nil)
	f.seat = "h2"
	f.until("the owner is warned", func(s lab.Status) bool {
		return slices.ContainsFunc(s.Decision.Warnings, func(w string) bool { return strings.HasPrefix(w, "the clocks of h1 and h2 differ by ") })
	})
	op := f.ask("h3", "h4")
	if op.Outcome != membership.Completed {
		f.unchanged(op)
	}
	f.fault("both controllers are killed", errors.Join(f.Node("h1").Crash("controller"), f.Node("h2").Crash("controller")))
	f.well(f.after(op)...)
}
