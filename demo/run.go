package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"suffrage/membership"
)

// Result is what a run ended with.
type Result struct {
	Decision membership.Decision
	// Operation is the one that ended, nil where none did; Writes is what a
	// client saw that wrote all the time until then.
	Operation *membership.Operation
	Writes    Writes
}

// Run runs the demo until what it waits for has come, or until ctx ends. No
// process is left afterwards.
func Run(ctx context.Context, o Options) (Result, error) {
	var none Result
	if err := o.Validate(); err != nil {
		return none, err
	}
	if len(o.SlowDisk) > 0 {
		if err := CheckSlowDisk(ctx, o.SlowExec); err != nil {
			return none, err
		}
	}
	temporary := o.Dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "suffrage-demo-")
		if err != nil {
			return none, fmt.Errorf("demo: %w", err)
		}
		o.Dir = dir
	}
	tell := &narrator{start: time.Now(), w: o.Progress, width: o.Width}
	d, err := o.run(ctx, tell)
	tell.done()
	stopped := errors.Is(err, context.Canceled) // by Ctrl-C: nothing to look into
	switch {
	case !temporary || o.Keep || (err != nil && !stopped):
		tell.say("files and logs are kept in %s", o.Dir)
	default:
		err = errors.Join(err, os.RemoveAll(o.Dir))
	}
	if o.Until == UntilStopped && stopped {
		err = nil
	}
	return d, err
}

func (o Options) run(ctx context.Context, tell *narrator) (Result, error) {
	var none Result
	fleet, err := NewFleet(o.Dir)
	if err != nil {
		return none, err
	}
	defer fleet.Close()
	fleet.begin(cmp.Or(o.Voters, voterCount))
	if err := fleet.Write(o.Configure); err != nil {
		return none, err
	}
	delays := &Delays{}
	log := slog.New(slog.NewTextHandler(o.Progress, &slog.HandlerOptions{Level: slog.LevelWarn}))
	relays, err := fleet.relays(delays, func(mesh, real netip.AddrPort) (*Relay, error) {
		return ListenRelay(mesh, real, delays, log)
	})
	if err != nil {
		return none, err
	}

	s := &story{o: o, fleet: fleet, delays: delays, tell: tell, supervisor: NewSupervisor()}
	sockets, err := s.listenUnits()
	if err != nil {
		for _, r := range relays {
			err = errors.Join(err, r.Close())
		}
		return none, err
	}

	// The network outlives the processes, so that they can say goodbye.
	network, stopNetwork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNetwork()
	var carrying errgroup.Group
	for _, r := range relays {
		carrying.Go(func() error { return r.Run(network) })
	}
	processes, stopProcesses := context.WithCancel(ctx)
	defer stopProcesses()
	var supervising errgroup.Group
	supervising.Go(func() error { return s.supervisor.Run(processes) })

	for h, l := range sockets {
		supervising.Go(func() error { return s.units[h].Run(processes, l) })
	}

	limited := ctx
	if o.For > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, o.For, fmt.Errorf("nothing to end with within %v", o.For))
		defer cancel()
	}
	d, err := s.play(limited)
	if err == context.DeadlineExceeded {
		err = fmt.Errorf("demo: %w; the last decision: %s", context.Cause(limited), s.last())
	}
	if o.Until == UntilStopped || err != nil {
		tell.say("stopping every process")
	}
	stopProcesses()
	err = errors.Join(err, supervising.Wait())
	stopNetwork()
	return d, errors.Join(err, s.closeDisks(), carrying.Wait())
}
