package control

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/membership"
)

var errRefused = errors.New("connection refused")

// A leader that its API server does not answer gives way to a controller that waits,
// with or without an operation open; alone it leads on, and says what it cannot read.
func TestLoopGivesWay(t *testing.T) {
	const back = 24 * time.Hour
	open := &membership.Operation{ID: "op", Out: "h3", In: "h4", ClusterID: "c1", MembersBefore: []string{"id-h1", "id-h2", "id-h3"}}
	for _, tc := range []struct {
		name    string
		unread  error
		lasts   time.Duration
		waiting []string
		mode    string
		open    *membership.Operation
		ends    error
	}{
		{"another waits", errRefused, back, []string{"h1", "h2"}, membership.Active, nil, ErrAway},
		{"in dry-run, too", errRefused, back, []string{"h1", "h2"}, membership.DryRun, nil, ErrAway},
		{"in the midst of an operation", errRefused, back, []string{"h1", "h2"}, membership.Active, open, ErrAway},
		{"nobody else waits", errRefused, back, []string{"h1"}, membership.Active, nil, context.DeadlineExceeded},
		{"who waits is not known", errRefused, back, nil, membership.Active, nil, context.DeadlineExceeded},
		{"it is back within the minute", errRefused, awayTime - 2*period, []string{"h1", "h2"}, membership.Active, nil, context.DeadlineExceeded},
		{"it answers, and what it says cannot be read", errors.New("Node h1: no mark"), back, []string{"h1", "h2"}, membership.Active, nil, context.DeadlineExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &armed{testFleet: newTestFleet(period, 3, 2), waiting: tc.waiting, open: tc.open}
				from := 5 * time.Minute
				time.AfterFunc(from, func() { f.do(func() { f.unread = tc.unread }) })
				time.AfterFunc(from+tc.lasts, func() { f.do(func() { f.unread = nil }) })
				ctx, cancel := context.WithTimeout(t.Context(), from+10*time.Minute)
				defer cancel()
				began := time.Now()
				err := f.runFor(ctx, tc.mode, "h1")
				if !errors.Is(err, tc.ends) {
					t.Errorf("ended with %v, want %v", err, tc.ends)
				}
				if took := time.Since(began) - from; errors.Is(err, ErrAway) && (took < awayTime || took > awayTime+4*period) {
					t.Errorf("it gave way %s after its API server went away, want %s", took, awayTime)
				}
				if len(f.order) > 0 && tc.open == nil {
					t.Errorf("it ordered %+v", f.order)
				}
			})
		})
	}
}

// Its API server goes away between a plan and the Lease, which is there, too.
func TestLoopGivesWayBeforeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &armed{testFleet: newTestFleet(period, 3, 2), waiting: []string{"h1", "h2"}, deaf: true}
		f.do(func() { f.slow["h3"] = time.Now() })
		from := 2*window + whole + 20*period // by then its swap is planned
		time.AfterFunc(from, func() { f.do(func() { f.unread = errRefused }) })
		ctx, cancel := context.WithTimeout(t.Context(), from+time.Hour)
		defer cancel()
		if err := f.runFor(ctx, membership.Active, "h1"); !errors.Is(err, ErrAway) || f.taken.Load() == 0 {
			t.Errorf("ended with %v, having asked for the Lease %d times", err, f.taken.Load())
		}
	})
}
