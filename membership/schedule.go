package membership

import (
	"fmt"
	"time"
)

// snapshotsDue hold back what would be started while a voter saves a snapshot by
// its schedule, or would do so before the newcomer had caught up and soaked: both
// read and write the voters' disks. Each voter goes by its own schedule, so each
// agent tells when.
func (a *assessment) snapshotsDue(then string) []Refusal {
	margin := a.in.Policy.StallTime + a.in.Policy.Soak
	var held []Refusal
	for _, v := range a.voters {
		h := a.hosts[v]
		s := h.Facts.ScheduledSnapshot
		if s == nil || !h.Reachable {
			continue
		}
		next := time.UnixMicro(s.Next).Round(time.Second)
		due := fmt.Sprintf("its scheduled snapshot is due at %s, and nothing new is started within %s before it", stamp(next), margin)
		switch {
		case s.Running:
			due = fmt.Sprintf("it saves its scheduled snapshot since %s", stamp(next))
		case next.Sub(a.in.Now) > margin.Std():
			continue
		}
		held = append(held, hold(SnapshotDue, v, due+then, "lifts when it is saved; its times: snapshots.at on "+v))
	}
	return held
}
