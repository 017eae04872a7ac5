package scenarios

import (
	"slices"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/mesh-tests/lab"
)

// datastore is where etcd's files begin on a host's disk; the agent's probes
// write beside it.
const datastore = "etcd/"

// The leader's disk is slow, once for the agent's probe alone, which etcd's
// histogram is right to overrule, and then for etcd alone, whose histogram decides:
// every put waits for that disk then, until another leads.
func TestSlowDisk(t *testing.T) {
	f := beginWithDisks(t)
	out := f.leader()
	disk := f.Disk(out)
	disk.Slow(datastore, 0)
	disk.Slow("", 60*time.Millisecond)
	f.fault("each fsync of a voter takes 60 ms, but not etcd's", nil)
	f.measured(out, "the probe is slow, and etcd is not", func(r fitness.Reading) bool {
		return r.Band == fitness.Under && r.DecidedBy == "histogram" && r.Probe != nil
	})
	f.planless(4 * window)
	disk.Slow("", 0)
	disk.Slow(datastore, 20*time.Millisecond)
	f.fault("each fsync of its etcd takes 20 ms, and no other", nil)
	f.slower()
	f.measured(out, "etcd is slow, and the probe is not", func(r fitness.Reading) bool {
		return r.Band == fitness.Over && r.DecidedBy == "histogram" && r.Probe != nil
	})
	op := f.swapped(out)
	f.asFast() // while the disk is still slow, but no voter's
	f.cured(disk)
	f.well(f.after(op)...)
}

// A disk is so slow that etcd does not come to the hundred fsyncs a window that
// a p99 needs: the agent's probe decides.
func TestSlowDiskByProbe(t *testing.T) {
	f := beginWithDisks(t)
	out, _ := f.followers()
	disk := f.Disk(out)
	disk.Slow("", 80*time.Millisecond)
	f.fault("each fsync of a voter takes 80 ms", nil)
	f.measured(out, "the probe says that it is slow", func(r fitness.Reading) bool {
		return r.Band == fitness.Over && r.DecidedBy == "probe"
	})
	op := f.swapped(out)
	f.cured(disk)
	f.well(f.after(op)...)
}

// beginWithDisks gives a fleet whose voters have disks of their own. Its windows are of
// five seconds: in shorter ones a slow disk is not written to a hundred times.
func beginWithDisks(t *testing.T) *fleet {
	p := five
	p.Period = 2 * lab.Period
	p.Disks = []string{"h1", "h2", "h3"}
	return beginFit(t, p)
}

// measured waits until a voter's fsyncs are.
func (f *fleet) measured(host, what string, is func(fitness.Reading) bool) {
	f.t.Helper()
	f.wait(what, func() bool {
		all, err := f.Node(f.seat).Readings(f.t.Context(), host)
		return err == nil && slices.ContainsFunc(all, func(r fitness.Reading) bool { return r.Signal == fitness.WALFsync && is(r) })
	})
}

// cured makes a disk as fast as at first.
func (f *fleet) cured(disk *lab.Disk) {
	f.t.Helper()
	disk.Slow("", 0)
	disk.Slow(datastore, 0)
	f.ended("the disk is as fast as at first", nil)
}
