package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"suffrage/fitness"
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
	// Slow lengthens the round trips of hosts, SlowDisk each of their fsyncs;
	// once all hosts are fit, or from the start with UntilSteady.
	Slow, SlowDisk map[string]time.Duration
	// Period is between two samples, 10ms to 3s.
	Period time.Duration
	Until  Until
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
	if o.For < 0 {
		errs = append(errs, fmt.Errorf("demo: for %v: allowed: more than 0s", o.For))
	}
	if !slices.Contains([]Until{UntilStopped, UntilDecision, UntilSteady}, o.Until) {
		errs = append(errs, fmt.Errorf("demo: until %q: allowed: %s or %s", o.Until, UntilDecision, UntilSteady))
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
