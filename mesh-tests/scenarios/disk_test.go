package scenarios

import (
	"testing"
	"time"

	"suffrage/mesh-tests/lab"
)

// A disk whose fsyncs take 300 ms where 200 are allowed, under a voter that
// follows: etcd's histogram and the agent's own probe are both on it. With twice
// as much, a request through the quorum takes longer than the controller waits:
// the voter does not respond then, which is the owner's case and not a swap.
func TestSlowDisk(t *testing.T) {
	p := five
	p.Disks = []string{"h1", "h2", "h3"}
	f := begin(t, p)
	leader := f.until("one leads", func(s lab.Status) bool { return s.Leader != "" }).Leader
	out := map[bool]string{true: "h2", false: "h3"}[leader == "h3"]
	f.Disk(out).Slow(300 * time.Millisecond)
	op := f.swapped(out)
	f.Disk(out).Slow(0)
	f.well(f.after(op)...)
}
