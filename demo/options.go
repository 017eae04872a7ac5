package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"suffrage/fitness"
	"suffrage/membership"
)

// Until says when the demo ends by itself.
type Until string

const (
	// UntilStopped: never; Ctrl-C does.
	UntilStopped Until = ""
	// UntilDecision: when a plan, or a refusal that is not about unfilled
	// windows, has held for a window.
	UntilDecision Until = "decision"
	// UntilSteady: when "nothing needs doing" has held for a window.
	UntilSteady Until = "steady"
	// UntilSwap: when an operation has ended. Only with Active.
	UntilSwap Until = "swap"
)

// Options say what the demo does. Whatever depends on the other packages'
// configuration is wired by the caller.
type Options struct {
	// Program is this binary. SlowExec is the command that calls SlowExec with
	// the arguments that follow it.
	Program  string
	SlowExec []string
	// Dir is the directory of the fleet: missing or empty. Empty text makes a
	// temporary one, removed at the end unless Keep is set or the demo fails.
	Dir  string
	Keep bool
	// Voters is how many of the hosts have a vote from the start, 0 for 3.
	Voters int
	// StallTime is controller.stall_time, 0 for its default: the cooldown between
	// two operations is this and a window.
	StallTime time.Duration
	// Slow lengthens the round trips of hosts, SlowDisk each of their fsyncs;
	// once all hosts are fit, or from the start with UntilSteady.
	Slow, SlowDisk map[string]time.Duration
	// Period is between two samples, 10ms to 3s.
	Period time.Duration
	Until  Until
	// Active: the controllers act, and a client writes all the time. Ended gives
	// the operation that ended, nil while none has; Client is the one that writes.
	Active bool
	Ended  func(context.Context, *Fleet) (*membership.Operation, error)
	Client func(*Fleet) (*clientv3.Client, error)
	// For bounds the whole run; 0 is no bound.
	For time.Duration
	// Configure gives the content of a host's configuration file.
	Configure func(*Fleet, Host) (any, error)
	// Mark makes every host eligible. It is called again until it succeeds.
	Mark func(context.Context, *Fleet) error
	// Notes are said at the start: where the demo's limits differ, and why.
	Notes []string
	// Hints are said once all hosts are fit: what to try in another terminal.
	Hints func(*Fleet) string
	// Progress takes what is said; Width is that of its terminal, 0 for none.
	Progress io.Writer
	Width    func() int
}

const (
	minPeriod = 10 * time.Millisecond
	maxPeriod = 3 * time.Second
	maxSlow   = 30 * time.Second
)

// Validate says what cannot be done, before anything is started.
func (o Options) Validate() error {
	var errs []error
	if o.Period < minPeriod || o.Period > maxPeriod {
		errs = append(errs, fmt.Errorf("demo: period %v: allowed: %v to %v", o.Period, minPeriod, maxPeriod))
	}
	if o.Voters < 0 || o.Voters > hostCount {
		errs = append(errs, fmt.Errorf("demo: %d voters: allowed: 1 to %d", o.Voters, hostCount))
	}
	if o.StallTime < 0 {
		errs = append(errs, fmt.Errorf("demo: stall time %v: allowed: more than 0s", o.StallTime))
	}
	if o.For < 0 {
		errs = append(errs, fmt.Errorf("demo: for %v: allowed: more than 0s", o.For))
	}
	switch {
	case !slices.Contains([]Until{UntilStopped, UntilDecision, UntilSteady, UntilSwap}, o.Until):
		errs = append(errs, fmt.Errorf("demo: until %q: allowed: %s, %s or %s", o.Until, UntilDecision, UntilSteady, UntilSwap))
	case o.Until == UntilSwap && !o.Active:
		errs = append(errs, fmt.Errorf("demo: until %s: nothing is swapped in dry-run: use --mode active", UntilSwap))
	}
	known := &Fleet{Hosts: hosts(0, "")}
	for what, slow := range map[string]map[string]time.Duration{"slow": o.Slow, "slow-disk": o.SlowDisk} {
		for _, name := range slices.Sorted(maps.Keys(slow)) {
			if _, err := known.Host(name); err != nil {
				errs = append(errs, err)
			}
			if d := slow[name]; d < 0 || d > maxSlow {
				errs = append(errs, fmt.Errorf("demo: %s %s=%v: allowed: 0s to %v", what, name, d, maxSlow))
			}
		}
	}
	return errors.Join(errs...)
}

func (o Options) window() time.Duration { return fitness.WindowSize * o.Period }
