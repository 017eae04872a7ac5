package memtest

import (
	"testing"
	"time"

	"suffrage/membership"
)

// The fence of the outgoing host is lifted while another voter is in trouble, by
// an order that has no answer and is carried out late; meanwhile that voter is
// well again, and the removal goes on. The fence that stands then is about to
// fall: behind it nothing may be removed.
func TestFenceIsLiftedLate(t *testing.T) {
	for delay := range 20 {
		for _, quiet := range []time.Duration{0, roundTime, 3 * roundTime} {
			aroundTheFence(t, func(op *membership.Operation) bool { return !op.Unfenced.IsZero() }, time.Duration(delay)*time.Second, quiet)
		}
	}
}

// The removal is asked for without an answer, and another voter gets into
// trouble: the request may still come, so the fence must not be lifted yet.
func TestRemovalIsAskedForLate(t *testing.T) {
	for delay := range 20 {
		aroundTheFence(t, func(op *membership.Operation) bool { return !op.Asked.IsZero() }, time.Duration(delay)*time.Second, time.Minute)
	}
}

// aroundTheFence is a swap in which the first call after the operation is as
// said comes late. Another voter is in trouble from the request for the removal
// on, until it has been quiet for so long after that call.
func aroundTheFence(t *testing.T, at func(*membership.Operation) bool, delay, quiet time.Duration) {
	t.Helper()
	s := newSim(1, 3, 2)
	defer func() {
		if r := recover(); r != nil {
			v, ok := r.(Violation)
			if !ok {
				panic(r)
			}
			t.Fatalf("%s late, well after %s: %s\n%s", delay, quiet, string(v), s.Trace(60))
		}
	}()
	s.Policy.Soak = 0
	s.Actor.Absent = true
	h2, late, wellAt := s.Host("h2"), false, time.Time{}
	for _, p := range s.Controllers {
		p.delay = func() time.Duration { return delay }
		p.fate = func(may bool) fate {
			if op := s.Lease.Open; late || !may || op == nil || !at(op) {
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
			broken, h2.Frozen = true, true
			s.broke(h2, "its etcd is frozen")
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
		t.Fatalf("%s late (%t), well after %s: ended %v; %s\n%s", delay, late, quiet, s.outcomes(), s.unhealthy(), s.Trace(60))
	}
}
