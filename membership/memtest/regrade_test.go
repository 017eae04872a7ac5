package memtest

import (
	"testing"
	"time"

	"suffrage/fitness"
	"suffrage/membership"
)

// regradeIn is a step down of h3 with h2 in trouble from the first order on, for so
// long. That order is lost, or its giver stands still with it until all is over.
func regradeIn(t *testing.T, trouble func(h *Host), lasts time.Duration, lost bool) {
	t.Helper()
	s := newSim(1, 3, 2)
	regrading[0].begin(s)
	h2, begun, well := s.Host("h2"), false, time.Time{}
	ordering := func() bool {
		op := s.Lease.Open
		return !begun && op != nil && !op.Called.IsZero()
	}
	start := func() {
		begun, well = true, s.Now.Add(lasts)
		s.broke(h2, "in trouble")
		trouble(h2)
	}
	pass := func() {
		s.pass()
		if begun && s.Now.After(well) && h2.mendedAt.Before(well) {
			s.mend(h2, 1)
		}
	}
	for _, p := range s.Controllers {
		if lost {
			p.fate = func(bool) fate {
				if !ordering() {
					return fateDone
				}
				start()
				return fateFails
			}
			continue
		}
		p.stall = func() {
			if ordering() { // it stands still until all is over
				start()
				s.nested = true
				for i := 0; i < 60 && len(s.History) == 0; i++ {
					pass()
				}
				s.nested = false
			}
		}
	}
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("%v\n%s", r, s.Trace(60))
		}
	}()
	for i := 0; i < 90 && (len(s.History) == 0 || i < 60); i++ {
		pass()
		if len(s.History) > 0 {
			s.Host("h3").Pressed = 0
		}
	}
	if why := s.unhealthy(); len(s.History) != 1 || !begun || why != "" {
		t.Fatalf("begun %t, ended %v: %s\n%s", begun, s.outcomes(), why, s.Trace(60))
	}
}

var troubles = []func(h *Host){func(h *Host) { h.Gone = true }, func(h *Host) { h.Frozen = true }, func(h *Host) { h.Agent = false }}

// A restart that had no effect is ordered again, and meanwhile another voter has got
// into trouble: then it waits for that one.
func TestRegradeWaits(t *testing.T) {
	for _, trouble := range troubles {
		for _, lasts := range []time.Duration{20 * time.Second, 50 * time.Second, 3 * time.Minute} {
			regradeIn(t, trouble, lasts, true)
		}
	}
}

// The order is on its way in a controller that stands still, another one turns back
// without having restarted anything, and then the order comes.
func TestRegradeComesLate(t *testing.T) {
	for _, trouble := range troubles {
		regradeIn(t, trouble, 2*time.Minute, false)
	}
}

// A voter below full holds back whoever is to come or go, and the number of voters
// holds back nobody's step up: neither waits for the other. The owner's commands,
// asked as often as the refusals name them, lead out, and by itself it goes on, too.
func TestRegradeBesideANumber(t *testing.T) {
	for _, tc := range []struct {
		name           string
		voters, target int
		ago            time.Duration
		asks           []membership.Request
		by             string
	}{
		{"one of five is lost, and it has rested", 4, 5, 7 * time.Hour, []membership.Request{{Target: 5}}, membership.ByController},
		{"one of five is lost, and the owner does not wait", 4, 5, 5 * time.Hour, []membership.Request{{Regrade: "h2", To: fitness.Full}, {Target: 5}}, "anna"},
		{"more are asked for", 3, 5, 7 * time.Hour, []membership.Request{{Target: 5}}, membership.ByController},
		{"more are asked for, and the owner does not wait", 3, 5, 5 * time.Hour, []membership.Request{{Target: 5}, {Regrade: "h2", To: fitness.Full}, {Target: 5}}, "anna"},
		{"fewer are asked for", 4, 3, 7 * time.Hour, []membership.Request{{Target: 3}}, membership.ByController},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSim(1, tc.voters, 2)
			for _, h := range s.Hosts {
				h.Bad = false
			}
			s.asK3s()
			s.check.lost = true
			s.Policy.Target, s.Policy.Maximum = tc.target, tc.target+1
			s.stepsDown(s.Host("h2"), tc.ago)
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("%v\n%s", r, s.Trace(60))
				}
			}()
			asks := tc.asks
			for i := 0; i < 900 && len(s.Voters()) != tc.target; i++ {
				// What displaces another is asked for while that waits, all else afterwards.
				if len(asks) > 0 && s.Lease.Open == nil && i%24 == 0 && (s.Request == nil || asks[0].Displaces(*s.Request)) {
					s.asks(asks[0])
					asks = asks[1:]
				}
				s.pass()
			}
			regraded := 0
			for _, op := range s.History {
				if op.Regrade == "h2" && op.To == fitness.Full && op.Outcome == membership.Completed && op.By == tc.by {
					regraded++
				}
			}
			if len(s.Voters()) != tc.target || regraded != 1 || s.Host("h2").settings != fitness.Full {
				t.Errorf("%d voters, %d step ups by %s: %v\n%s", len(s.Voters()), regraded, tc.by, s.outcomes(), s.Trace(60))
			}
		})
	}
}
