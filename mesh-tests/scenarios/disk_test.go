package scenarios

import (
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/mesh-tests/lab"
)

// datastore is where etcd's files begin on a host's disk; the agent's probes
// write beside it.
const datastore = "etcd/"

// A disk is slow, once for the agent's probe alone, which etcd's histogram is
// right to overrule, and then for etcd alone, whose histogram decides.
func TestSlowDisk(t *testing.T) {
	f, out := beginWithDisks(t)
	disk := f.Disk(out)
	disk.Slow(datastore, 0)
	disk.Slow("", 60*time.Millisecond)
	f.fault("each fsync of a voter takes 60 ms, but not etcd's", nil)
	f.measured(out, "the probe is slow, and etcd is not", func(r fitness.Reading) bool {
		return r.Band == fitness.Under && r.DecidedBy == "histogram" && r.Probe != nil
	})
	f.planless(2 * window)
	disk.Slow("", 0)
	disk.Slow(datastore, 20*time.Millisecond)
	f.fault("each fsync of its etcd takes 20 ms, and no other", nil)
	f.measured(out, "etcd is slow, and the probe is not", func(r fitness.Reading) bool {
		return r.Band == fitness.Over && r.DecidedBy == "histogram" && r.Probe != nil
	})
	f.replaced(out, disk)
}

// A disk is so slow that etcd does not come to the hundred fsyncs a window that
// a p99 needs: the agent's probe decides.
func TestSlowDiskByProbe(t *testing.T) {
	f, out := beginWithDisks(t)
	disk := f.Disk(out)
	disk.Slow("", 80*time.Millisecond)
	f.fault("each fsync of a voter takes 80 ms", nil)
	f.measured(out, "the probe says that it is slow", func(r fitness.Reading) bool {
		return r.Band == fitness.Over && r.DecidedBy == "probe"
	})
	f.replaced(out, disk)
}

// beginWithDisks gives a fleet, and a voter that follows.
func beginWithDisks(t *testing.T) (*fleet, string) {
	p := five
	p.Disks = []string{"h1", "h2", "h3"}
	f := beginFit(t, p)
	out, _ := f.followers()
	return f, out
}

// measured waits until a voter's fsyncs are.
func (f *fleet) measured(host, what string, is func(fitness.Reading) bool) {
	f.t.Helper()
	f.wait(what, func() bool {
		r, err := f.Node(f.seat).Reading(f.t.Context(), host, fitness.WALFsync)
		return err == nil && is(r)
	})
}

// replaced waits until the voter with that disk is swapped out and all is well.
func (f *fleet) replaced(out string, disk *lab.Disk) {
	f.t.Helper()
	op := f.swapped(out)
	disk.Slow("", 0)
	disk.Slow(datastore, 0)
	f.ended("the disk is as fast as at first", nil)
	f.well(f.after(op)...)
	f.asFast()
}
