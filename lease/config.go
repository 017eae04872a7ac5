package lease

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"suffrage/config"
	"suffrage/fitness"
)

const (
	minDuration = time.Second
	maxDuration = 10 * time.Minute
	minRenew    = 100 * time.Millisecond
)

// Config is the Lease's timing. E is etcd's election timeout.
type Config struct {
	// Duration is how long a holder that went silent keeps the Lease, in whole
	// seconds (Kubernetes knows no others), 1s to 10m, and more than
	// 5s + 6·E + 3·renew. Too short and the Lease is lost to an election; too
	// long and an operation waits that long when its controller died.
	Duration fitness.Duration `yaml:"duration"`
	// Renew is how often the holder renews it and others look, and how long one
	// call to the store may take, 100ms to a third of duration. Each renewal
	// writes the whole record with its journal.
	Renew fitness.Duration `yaml:"renew"`
	// ElectionTimeout is E. It is the members' own setting.
	ElectionTimeout fitness.Duration `yaml:"-"`

	Clock Clock        `yaml:"-"` // nil: this machine's
	Log   *slog.Logger `yaml:"-"` // nil: none
}

// DefaultConfig is right for E up to 6s, K3s's 5s included.
func DefaultConfig() Config {
	return Config{Duration: fitness.Duration(time.Minute), Renew: fitness.Duration(5 * time.Second), ElectionTimeout: fitness.Duration(time.Second)}
}

// Margin is how long before others could take the Lease its holder stops:
// 5 s + 2·E. It is etcd's own request timeout: what the holder sent at the last
// moment has been done or dropped by then.
func (c Config) Margin() time.Duration { return 5*time.Second + 2*c.ElectionTimeout.Std() }

// Stop is how long after it sent its last good renewal a holder stops:
// duration − (5 s + 2·E).
func (c Config) Stop() time.Duration { return c.Duration.Std() - c.Margin() }

// Validate gives every problem with its key.
func (c Config) Validate() error {
	d, r, e := c.Duration.Std(), c.Renew.Std(), c.ElectionTimeout.Std()
	var errs []error
	bad := func(key, found, allowed string) {
		errs = append(errs, config.Problem{Key: key, Found: found, Allowed: allowed})
	}
	if d < minDuration || d > maxDuration || d%time.Second != 0 {
		bad("duration", d.String(), fmt.Sprintf("%v to %v in whole seconds", minDuration, maxDuration))
	}
	if r < minRenew {
		bad("renew", r.String(), fmt.Sprintf("at least %v", minRenew))
	}
	if e <= 0 || e > 50*time.Second {
		bad("election_timeout", e.String(), "above 0, at most 50s: the members' own")
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if r >= d/3 {
		bad("renew", r.String(), fmt.Sprintf("below a third of duration (%v / 3): one lost renewal must not lose the Lease", d))
	}
	// The last good renewal was sent just before an election began. The next one
	// waits out two worst elections of 2·E, its own timeout and the pause and the
	// read after it: 4·E + 3·renew, and only then the holder may stop.
	if least := c.Margin() + 4*e + 3*r; d <= least {
		bad("duration", d.String(), fmt.Sprintf("above %v (5s + 6·election_timeout + 3·renew, with election_timeout %v and renew %v): it must outlast two elections and stop 5s + 2·election_timeout before others may begin", least, e, r))
	}
	return errors.Join(errs...)
}
