package snapshots

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"suffrage/fitness"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestNext(t *testing.T) {
	exact := Config{At: []string{"12:00", "00:00"}, Keep: 5}.Schedule()
	for _, tt := range []struct {
		s         Schedule
		now, want string
	}{
		{exact, "2026-08-06 11:59:59", "2026-08-06 12:00:00"},
		{exact, "2026-08-06 12:00:00", "2026-08-07 00:00:00"}, // after now, or a save at noon would be followed by another
		{exact, "2026-12-31 12:00:01", "2027-01-01 00:00:00"}, // over the year
		{exact, "2028-02-28 12:00:00", "2028-02-29 00:00:00"}, // a leap day
		{Config{At: []string{"23:59"}}.Schedule(), "2026-08-06 23:59:00", "2026-08-07 23:59:00"},
	} {
		if got := tt.s.Next("h1", at(tt.now)); !got.Equal(at(tt.want)) {
			t.Errorf("after %s comes %s, want %s", tt.now, got, tt.want)
		}
	}
	if got := (Schedule{}).Next("h1", noon); !got.IsZero() {
		t.Errorf("without a schedule: %v", got)
	}
	// A time zone of the caller's changes nothing.
	zone := time.FixedZone("", 5*3600+1800)
	if a, b := exact.Next("h1", noon.Add(time.Second)), exact.Next("h1", noon.Add(time.Second).In(zone)); !a.Equal(b) {
		t.Errorf("%v and %v", a, b)
	}
}

// For any schedule: each time has one snapshot per host, within its jitter.
func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := DefaultConfig()
		c.At = nil
		for m := range rapid.MapOfN(rapid.IntRange(0, 24*60-1), rapid.Just(0), 1, 24).Draw(t, "minutes") {
			c.At = append(c.At, fmt.Sprintf("%02d:%02d", m/60, m%60))
		}
		c.Jitter = fitness.Duration(rapid.Int64Range(0, int64(c.Schedule().gap()/2)).Draw(t, "jitter"))
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		s := c.Schedule()
		now := noon.Add(time.Duration(rapid.Int64Range(0, int64(400*day)).Draw(t, "now")))
		host := rapid.StringMatching("h[0-9]{1,3}").Draw(t, "host")
		n, end := 0, now.Add(3*day)
		for at := s.Next(host, now); !at.After(end); n++ {
			slot, _ := s.around(at)
			if wait := at.Sub(slot); wait < 0 || wait > s.jitter {
				t.Fatalf("%v is %v after its time", at, wait)
			}
			next := s.Next(host, at)
			if !next.After(at) {
				t.Fatalf("after %v comes %v", at, next)
			}
			if early := s.Next(host, next.Add(-1)); !early.Equal(next) {
				t.Fatalf("just before %v, the next is %v", next, early)
			}
			at = next
		}
		// The jitter moves at most one over either end.
		if want := 3 * len(c.At); n < want-1 || n > want+1 {
			t.Fatalf("%d snapshots in three days, want %d", n, want)
		}
	})
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		name string
		set  func(*Config)
		want string // empty: allowed
	}{
		{"off", func(c *Config) { c.At = nil }, ""},
		{"no jitter", func(c *Config) { c.Jitter = 0 }, ""},
		{"relative", func(c *Config) { c.Dir = "snapshots" }, "dir: "},
		{"no time", func(c *Config) { c.At = []string{"24:00"} }, "at[0]: "},
		{"short", func(c *Config) { c.At = []string{"00:00", "6:00"} }, "at[1]: "}, // one way to write a time
		{"seconds", func(c *Config) { c.At = []string{"06:00:00"} }, "at[0]: "},
		{"twice", func(c *Config) { c.At = []string{"06:00", "06:00"} }, "each time once"},
		{"too many", func(c *Config) { c.At = make([]string, 25) }, "at most 24"},
		{"jitter over the next", func(c *Config) { c.At = []string{"23:50", "00:00"} }, "0s to 5m0s"}, // 10 min
		{"negative jitter", func(c *Config) { c.Jitter = -1 }, "jitter: "},
		{"keep none", func(c *Config) { c.Keep = 0 }, "keep: "},
		{"keep all", func(c *Config) { c.Keep = 1001 }, "keep: "},
	} {
		c := DefaultConfig()
		tt.set(&c)
		err := c.Validate()
		if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// runKeeper runs a keeper for a time and gives when it saved, since the start.
func runKeeper(t *testing.T, s Schedule, d time.Duration, save func(n int) error) (saves []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC, 2000-01-01
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		var k *Keeper
		k = &Keeper{Host: "h1", Schedule: s, Log: quiet, Save: func(context.Context) error {
			saves = append(saves, time.Since(began))
			if next, saving := k.State(); !saving || !next.Equal(time.Now()) {
				t.Errorf("at %s it tells of %s, saving %t", time.Now(), next, saving)
			}
			time.Sleep(time.Second)
			return save(len(saves))
		}}
		if err := k.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
		if next, saving := k.State(); saving || next.IsZero() != (len(s.at) == 0) || !next.IsZero() && !next.After(time.Now()) {
			t.Errorf("at the end it tells of %s, saving %t", next, saving)
		}
	})
	return saves
}

func TestKeeper(t *testing.T) {
	s := Config{At: []string{"06:00", "18:00"}}.Schedule()
	broken := errors.New("disk full")
	for _, tt := range []struct {
		name string
		s    Schedule
		save func(n int) error
		want string
	}{
		{"each time once", s, func(int) error { return nil }, "[6h0m0s 18h0m0s 30h0m0s]"},
		{"a host without a vote does not try again", s, func(int) error { return fmt.Errorf("h1: %w", ErrNoVote) }, "[6h0m0s 18h0m0s 30h0m0s]"},
		{"tried again until it works", s, func(n int) error {
			if n == 1 {
				return broken
			}
			return nil
		}, "[6h0m0s 6h5m1s 18h0m0s 30h0m0s]"},
		{"three tries, then the next time", s, func(int) error { return broken },
			"[6h0m0s 6h5m1s 6h10m2s 18h0m0s 18h5m1s 18h10m2s 30h0m0s 30h5m1s 30h10m2s]"},
		{"no schedule", Schedule{}, func(int) error { return nil }, "[]"},
	} {
		if got := fmt.Sprint(runKeeper(t, tt.s, 31*time.Hour, tt.save)); got != tt.want {
			t.Errorf("%s: saved at %s, want %s", tt.name, got, tt.want)
		}
	}
}
