package leasetest

import (
	"sync"
	"time"

	"suffrage/lease"
)

// Clock follows Go's time, the bubble's in a synctest bubble, and can be made to
// jump. The zero Clock is ready.
type Clock struct {
	mu        sync.Mutex
	suspended time.Duration
	wall      time.Duration
}

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Now is a lease.Clock.
func (c *Clock) Now() lease.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Round(0)
	boot := now.Sub(start)
	return lease.Instant{Mono: boot - c.suspended, Boot: boot, Wall: now.Add(c.wall)}
}

// Suspended says that the machine was suspended for the last d: the monotonic
// clock stood still.
func (c *Clock) Suspended(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspended += d
}

// SetWall moves the wall clock by d.
func (c *Clock) SetWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall += d
}
