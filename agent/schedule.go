package agent

import (
	"context"
	"sync/atomic"
	"time"
)

// slots is the number of ticks in a period: one kind of probe per slot, so that
// the two disk probes and the pings do not disturb each other.
const slots = 4

// schedule is the one ticker. It remembers when the next tick is due, which is
// how everything else can tell whether the agent itself runs late.
type schedule struct {
	begin time.Time // set before anything runs
	slot  time.Duration
	due   atomic.Int64 // of the next tick, in nanoseconds since begin
}

// run calls fire for each tick, numbered from 0, with how late it is. A tick
// that is late is still fired; after more than a period's delay the periods that
// were missed are left out, and slots keep their numbers.
func (s *schedule) run(ctx context.Context, fire func(n int64, late time.Duration)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := int64(0); ; n++ {
		due := time.Duration(n) * s.slot
		timer.Reset(due - time.Since(s.begin))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		late := max(0, time.Since(s.begin)-due)
		missed := int64(late / (slots * s.slot))
		s.due.Store(int64(time.Duration(n+1+missed*slots) * s.slot))
		fire(n, late)
		n += missed * slots
	}
}

// overdue is how late the next tick is by now: a sample that ends while it is
// overdue was measured by an agent that did not run.
func (s *schedule) overdue() time.Duration {
	return max(0, time.Since(s.begin)-time.Duration(s.due.Load()))
}
