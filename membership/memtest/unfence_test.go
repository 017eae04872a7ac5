package memtest

import (
	"testing"
	"time"
)

// The fence of the outgoing host is lifted while another voter is in trouble, by
// an order that has no answer and is carried out late; meanwhile that voter is
// well again, and the removal goes on. The fence that stands then is about to
// fall: behind it nothing may be removed.
func TestFenceIsLiftedLate(t *testing.T) {
	for delay := range 20 {
		for _, quiet := range []time.Duration{0, roundTime, 3 * roundTime} { // until the other voter is well again
			fenceLiftedLate(t, time.Duration(delay)*time.Second, quiet)
		}
	}
}

func fenceLiftedLate(t *testing.T, delay, quiet time.Duration) {
	t.Helper()
	s := newSim(1, 3, 2)
	defer func() {
		if r := recover(); r != nil {
			v, ok := r.(Violation)
			if !ok {
				panic(r)
			}
			t.Fatalf("lifted %s late, well after %s: %s\n%s", delay, quiet, string(v), s.Trace(60))
		}
	}()
	s.Policy.Soak = 0
	s.Actor.Absent = true
	h2, late, wellAt := s.Host("h2"), false, time.Time{}
	for _, p := range s.Controllers {
		p.delay = func() time.Duration { return delay }
		p.fate = func(may bool) fate {
			op := s.Lease.Open
			if late || !may || op == nil || op.Unfenced.IsZero() {
				return fateDone
			}
			late, wellAt = true, s.Now.Add(quiet)
			return fateLate
		}
	}
	broken := false
	for range 300 {
		s.pass()
		if op := s.Lease.Open; op != nil && !op.Asked.IsZero() && !broken {
			broken = true
			s.broke(h2, "its etcd is frozen")
			h2.Frozen = true
		}
		if late && h2.Frozen && !s.Now.Before(wellAt) {
			h2.Frozen, s.Actor.Absent, h2.mendedAt = false, false, s.soon()
			s.Logf("h2: mended")
		}
		if len(s.History) > 0 && s.Lease.Open == nil && len(s.late) == 0 {
			break
		}
	}
	if got := s.outcomes()["completed"]; got != 1 || !late || s.unhealthy() != "" {
		t.Fatalf("lifted %s late (%t), well after %s: ended %v; %s\n%s", delay, late, quiet, s.outcomes(), s.unhealthy(), s.Trace(60))
	}
}
