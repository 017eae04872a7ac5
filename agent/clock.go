package agent

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock gives microseconds since 1970.
type clock func() int64

// bootClock begins at the wall clock's time and goes on by CLOCK_BOOTTIME.
// Unlike the wall clock it is never set, so that samples stay in order when
// somebody sets the time; unlike Go's monotonic clock it does not stop while
// the machine sleeps, so that a night is seen as a gap.
func bootClock() clock {
	start := time.Now()
	base := start.UnixMicro()
	boot, ok := bootTime()
	if !ok {
		return func() int64 { return base + time.Since(start).Microseconds() }
	}
	return func() int64 {
		now, _ := bootTime()
		return base + now - boot
	}
}

// bootTime is in microseconds.
func bootTime() (int64, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return ts.Nano() / 1000, true
}
