package lease

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is what three clocks show at one moment. They start anywhere: only
// differences count.
type Instant struct {
	// Mono stands still while the machine is suspended (CLOCK_MONOTONIC, which
	// Go's timers follow); Boot goes on (CLOCK_BOOTTIME).
	Mono, Boot time.Duration
	// Wall is what people set.
	Wall time.Time
}

// Clock reads the clocks. Tests have their own.
type Clock func() Instant

// SystemClock is this machine's.
func SystemClock() Instant {
	return Instant{Mono: read(unix.CLOCK_MONOTONIC), Boot: read(unix.CLOCK_BOOTTIME), Wall: time.Now().Round(0)}
}

func read(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(fmt.Sprintf("lease: read clock %d: %v", id, err)) // Linux has had both since 2.6.39
	}
	return time.Duration(t.Nano())
}

// maxJump is by how much the clocks may disagree on the time that passed. Slewing
// moves wall clock and monotonic clock together, so only suspends and steps
// show. It is above a leap second and above the time between two reads of a
// process that is not scheduled; a shorter suspend is in the age anyway.
const maxJump = 2 * time.Second

// since is how long ago earlier was, by the clock that says most, and by how
// much the clocks disagree.
func (i Instant) since(earlier Instant) (age, jump time.Duration) {
	mono, boot, wall := i.Mono-earlier.Mono, i.Boot-earlier.Boot, i.Wall.Sub(earlier.Wall)
	return max(mono, boot), max((boot - mono).Abs(), (wall - boot).Abs())
}

// atLeast is how long ago earlier was, by the clock that says least.
func (i Instant) atLeast(earlier Instant) time.Duration {
	return min(i.Mono-earlier.Mono, i.Boot-earlier.Boot)
}
