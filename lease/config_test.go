package lease_test

import (
	"strings"
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/lease"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		duration, renew, e time.Duration
		want               []string // in the error; none: valid
	}{
		{60 * time.Second, 5 * time.Second, time.Second, nil},                                                  // the default
		{60 * time.Second, 5 * time.Second, 5 * time.Second, nil},                                              // K3s: 5+30+15 = 50 s
		{15 * time.Second, time.Second, time.Second, nil},                                                      // 5+6+3 = 14 s
		{14 * time.Second, time.Second, time.Second, []string{"duration", "election_timeout", "renew", "14s"}}, // not more than 14 s
		{45 * time.Second, 5 * time.Second, 5 * time.Second, []string{"duration", "election_timeout", "50s"}},
		{60 * time.Second, 20 * time.Second, time.Second, []string{"renew", "third of duration"}},
		{1500 * time.Millisecond, 100 * time.Millisecond, time.Second, []string{"whole seconds"}},
		{time.Hour, time.Second, time.Second, []string{"duration", "10m"}},
		{0, 0, 0, []string{"duration", "renew", "election_timeout"}},
	} {
		cfg := lease.Config{Duration: fitness.Duration(c.duration), Renew: fitness.Duration(c.renew), ElectionTimeout: fitness.Duration(c.e)}
		err := cfg.Validate()
		if (err == nil) != (c.want == nil) {
			t.Errorf("%v %v %v: got %v", c.duration, c.renew, c.e, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v %v %v: %q does not say %q", c.duration, c.renew, c.e, err, w)
			}
		}
		if err == nil && cfg.Stop() <= 3*c.renew+4*c.e {
			t.Errorf("%v %v %v: stops after %v, which two elections may take", c.duration, c.renew, c.e, cfg.Stop())
		}
	}
	if err := lease.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestHeldErrorsAreReadable(t *testing.T) {
	h := lease.Holder{Host: "h1", Instance: "3fa9"}
	since := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	held := &lease.HeldError{Record: lease.Record{Holder: h, Term: 17, Since: since, Purpose: "swap h1 h4"}, Err: lease.ErrConflict}
	if got, want := held.Error(), `lease: held by h1 (instance 3fa9) since 2026-07-01T12:00:00Z for "swap h1 h4", term 17: lease: somebody else wrote the record`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	lost := &lease.LostError{Holder: h, Term: 17, Reason: "the record was deleted"}
	if got, want := lost.Error(), `lease: h1 (instance 3fa9) lost term 17: the record was deleted`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestSystemClockGoesOn(t *testing.T) {
	a := lease.SystemClock()
	for b := lease.SystemClock(); ; b = lease.SystemClock() {
		if b.Mono > a.Mono && b.Boot > a.Boot && b.Wall.After(a.Wall) {
			return
		}
	}
}
