package agent

import (
	"context"
	"time"

	"suffrage/fitness"
	"suffrage/probes"
)

// equip makes the probes and what their results become. Adding one means adding
// a few lines here.
func (a *Agent) equip() {
	c, r := a.o.Config, a.record
	a.wal, a.commit = probes.NewWAL(c.Dir), probes.NewCommit(c.Dir)

	wal, commit := r.ring(fitness.WALFsync, ""), r.ring(fitness.BackendCommit, "")
	memory, stability := r.ring(fitness.Memory, ""), r.ring(fitness.Stability, "")

	a.disks[0] = a.disk("wal_fsync", wal, a.wal.Run)
	a.disks[1] = a.disk("backend_commit", commit, a.commit.Run)

	a.member = &member{url: c.MemberMetrics, client: metricsClient(), record: r, window: fitness.WindowSize * c.Period.Std(), wal: wal, commit: commit}
	a.scrape = newWorker(r.probe("member_metrics"), func(ctx context.Context, _ time.Duration) error { return a.member.read(ctx) })

	a.stability = probes.NewStability(a.o.Root, c.Dir, a.member.restarts)
	a.steady = []*worker{
		newWorker(r.probe("memory"), func(_ context.Context, late time.Duration) error {
			m, err := probes.ReadMemory(a.o.Root)
			if err == nil {
				r.tell(func(f *fitness.Facts) { f.MemoryTotal = m.Total })
			}
			a.note(memory, float64(m.Available), late, err)
			return err
		}),
		newWorker(r.probe("stability"), func(_ context.Context, late time.Duration) error {
			events, err := a.stability.Sample()
			a.note(stability, float64(events), late, err)
			return err
		}),
	}
	a.look = newWorker(r.probe("roster"), a.watchRoster)
	if a.o.Server != nil {
		a.serving = newWorker(r.probe("server"), a.readServer)
		a.serving.hung = func(time.Duration, time.Duration) { r.tell(func(f *fitness.Facts) { f.Server = nil }) }
	}
	a.now = []*worker{
		newWorker(r.probe("link"), a.readLink),
		newWorker(r.probe("overlay"), a.readOverlay),
		newWorker(r.probe("filesystem"), a.readFilesystem),
	}
	if a.o.Lacks != nil {
		a.now = append(a.now, a.prepared())
	}
	if a.o.K3s != nil {
		a.now = append(a.now, newWorker(r.probe("k3s"), a.readK3s))
	}
}

// prepared makes the worker that looks whether this host could be made a voter.
// Until it has looked, and while it hangs, the host could not.
func (a *Agent) prepared() *worker {
	say := func(all ...string) {
		var lacks []string
		for _, l := range all[:min(len(all), maxLacks)] {
			lacks = append(lacks, clip(l))
		}
		a.record.tell(func(f *fitness.Facts) { f.Prepared = &fitness.Preparation{Ready: len(lacks) == 0, Lacks: lacks} })
	}
	say("its agent has not looked yet")
	w := newWorker(a.record.probe("prepared"), func(ctx context.Context, _ time.Duration) error {
		lacks := a.o.Lacks(ctx)
		if ctx.Err() != nil {
			lacks = append(lacks, "not looked at to the end: "+context.Cause(ctx).Error())
		}
		say(lacks...)
		return nil
	})
	w.hung = func(sofar, _ time.Duration) { say(hangs(sofar)) }
	return w
}

// maxLacks bounds what a report says of them.
const maxLacks = 20

// disk makes the worker of a probe that nothing can interrupt.
func (a *Agent) disk(name string, g *ring, run func() (time.Duration, error)) *worker {
	w := newWorker(a.record.probe(name), func(_ context.Context, late time.Duration) error {
		took, err := run()
		a.note(g, took.Seconds(), late, err)
		return err
	})
	w.patience = max(2*a.o.Config.Period.Std(), 500*time.Millisecond)
	w.hung = func(sofar, late time.Duration) {
		// What is known by now is a lower bound, and true: so long it takes at least.
		a.record.sample(g, sofar.Seconds(), late, fitness.Measured, hangs(sofar))
	}
	return w
}

// note records what a run gave.
func (a *Agent) note(g *ring, value float64, late time.Duration, err error) {
	late = max(late, a.schedule.overdue())
	if err != nil {
		a.record.sample(g, 0, late, fitness.Failed, err.Error())
		return
	}
	a.record.sample(g, value, late, fitness.Measured, "")
}

// readLink finds the device of the mesh. Since when the class holds is told as
// far as this agent has seen it.
func (a *Agent) readLink(context.Context, time.Duration) error {
	link := fitness.Link{Class: fitness.UnknownLink}
	device, err := probes.DeviceOf(a.self().Address)
	if err == nil {
		link, err = probes.ReadLink(a.o.Root, device)
	}
	if err != nil {
		link.Note = clip(err.Error())
	}
	link.Since = a.record.now()
	a.record.tell(func(f *fitness.Facts) {
		if f.Link.Since != 0 && f.Link.Class == link.Class && f.Link.Device == link.Device {
			link.Since = f.Link.Since
		}
		f.Link = link
	})
	return err
}

// readK3s asks for the version of K3s. One that cannot be read is none: it may have
// been replaced.
func (a *Agent) readK3s(ctx context.Context, _ time.Duration) error {
	version, err := a.o.K3s(ctx)
	a.record.tell(func(f *fitness.Facts) { f.K3s = clip(version) })
	return err
}

func (a *Agent) readFilesystem(context.Context, time.Duration) error {
	fs, err := probes.ReadFilesystem(a.o.Root, a.o.Config.Dir)
	if err != nil {
		return err
	}
	a.record.tell(func(f *fitness.Facts) { f.DiskFree, f.Disk = fs.Free, clip(fs.String()) })
	return nil
}
