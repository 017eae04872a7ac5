package scenarios

import (
	"testing"
	"time"

	"suffrage/fitness"
)

// A disk whose fsyncs take 300 ms where 200 are allowed, under a voter that
// follows: etcd's histogram and the agent's own probe are both on it.
//
// What is allowed here is twenty times what it is on real hosts, and so is the
// time such a voter needs to answer a request through the quorum: with the usual
// 2 s it does not respond, which is the owner's case and not a swap.
func TestSlowDisk(t *testing.T) {
	p := five
	p.Disks = []string{"h1", "h2", "h3"}
	p.Timeout = fitness.Duration(8 * time.Second)
	f := beginFit(t, p)
	out := map[bool]string{true: "h2", false: "h3"}[f.leader() == "h3"]
	f.Disk(out).Slow(300 * time.Millisecond)
	f.fault("each fsync of a voter takes 300 ms", nil)
	op := f.swapped(out)
	f.Disk(out).Slow(0)
	f.ended("the disk is as fast as at first", nil)
	f.well(f.after(op)...)
}
