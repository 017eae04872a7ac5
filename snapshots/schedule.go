package snapshots

import (
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"suffrage/config"
	"suffrage/fitness"
)

// Config says when snapshots are taken on every voter, and how many stay.
type Config struct {
	// Dir is where they are; each host has its own. Empty: snapshots under data.
	// On the disk of the datastore it shares that disk's fate: copy snapshots
	// elsewhere too.
	Dir string `yaml:"dir"`
	// At are times of day in UTC, "HH:MM", at most 24. UTC since a day on which
	// the clock is put back has no second midnight there. An empty list turns
	// the schedule off.
	At []string `yaml:"at"`
	// Jitter is the longest that a host waits after such a time, up to half of
	// the shortest time between two; each host has its own wait, so that voters
	// do not all read their disks at once.
	Jitter fitness.Duration `yaml:"jitter"`
	// Keep is how many stay in Dir, 1 to 1000, besides those that an open
	// operation holds.
	Keep int `yaml:"keep"`
}

// DefaultConfig is K3s's: midnight and noon, five kept.
func DefaultConfig() Config {
	return Config{At: []string{"00:00", "12:00"}, Jitter: fitness.Duration(10 * time.Minute), Keep: 5}
}

// Validate gives every problem with its key.
func (c Config) Validate() error {
	var errs []error
	bad := func(key, found, allowed string) {
		errs = append(errs, config.Problem{Key: key, Found: found, Allowed: allowed})
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		bad("dir", strconv.Quote(c.Dir), "an absolute path")
	}
	if len(c.At) > 24 {
		bad("at", fmt.Sprintf("%d times", len(c.At)), "at most 24")
	}
	seen := map[time.Duration]bool{}
	for i, s := range c.At {
		t, err := timeOfDay(s)
		if err != nil {
			bad(fmt.Sprintf("at[%d]", i), strconv.Quote(s), `a time of day in UTC, "00:00" to "23:59"`)
		} else if seen[t] {
			bad(fmt.Sprintf("at[%d]", i), strconv.Quote(s), "each time once")
		}
		seen[t] = true
	}
	if most := c.Schedule().gap() / 2; c.Jitter < 0 || c.Jitter.Std() > most {
		bad("jitter", c.Jitter.String(), fmt.Sprintf("0s to %v, half of the shortest time between two snapshots", most))
	}
	if c.Keep < 1 || c.Keep > 1000 {
		bad("keep", strconv.Itoa(c.Keep), "1 to 1000")
	}
	return errors.Join(errs...)
}

// timeOfDay reads "HH:MM" and nothing shorter.
func timeOfDay(s string) (time.Duration, error) {
	t, err := time.Parse("15:04", s)
	if err != nil || t.Format("15:04") != s {
		return 0, fmt.Errorf("snapshots: %q is not HH:MM", s)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

// Schedule is when snapshots are taken. The zero value is never.
type Schedule struct {
	at     []time.Duration // after midnight UTC, sorted
	jitter time.Duration
}

// Schedule is what a valid Config means; times that cannot be read are left out.
func (c Config) Schedule() Schedule {
	s := Schedule{jitter: c.Jitter.Std()}
	for _, text := range c.At {
		if t, err := timeOfDay(text); err == nil {
			s.at = append(s.at, t)
		}
	}
	slices.Sort(s.at)
	s.at = slices.Compact(s.at)
	return s
}

const day = 24 * time.Hour

// gap is the shortest time between two of a schedule; a day when there is one.
func (s Schedule) gap() time.Duration {
	least := day
	for i := 1; i < len(s.at); i++ {
		least = min(least, s.at[i]-s.at[i-1])
	}
	if n := len(s.at); n > 1 {
		least = min(least, s.at[0]+day-s.at[n-1])
	}
	return least
}

// around gives the last time of the schedule up to now and the first after it,
// without jitter.
func (s Schedule) around(now time.Time) (last, next time.Time) {
	midnight := now.UTC().Truncate(day) // days in UTC have 24 h in Go: no leap seconds
	for d := -day; d <= day; d += day {
		for _, at := range s.at {
			t := midnight.Add(d + at)
			if t.After(now) {
				return last, t
			}
			last = t
		}
	}
	return last, next
}

// Next is when a host takes its next snapshot: after now, at most a day and the
// jitter later. It is zero when there is no schedule. A time that passed while
// nobody ran is not made up for.
func (s Schedule) Next(host string, now time.Time) time.Time {
	if len(s.at) == 0 {
		return time.Time{}
	}
	last, next := s.around(now)
	if t := last.Add(s.wait(host, last)); t.After(now) {
		return t
	}
	return next.Add(s.wait(host, next))
}

// wait is a host's own part of the jitter: the same whenever it is asked, and
// different for hosts and for times, so that no two hosts always meet.
func (s Schedule) wait(host string, at time.Time) time.Duration {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", host, at.Unix())
	return time.Duration(h.Sum64() % uint64(s.jitter+1))
}
