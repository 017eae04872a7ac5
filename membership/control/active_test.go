package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"suffrage/fitness"
	"suffrage/membership"
)

// armed is a fleet whose agents could act, and a Lease that is always free. What
// an operation does is proven in memtest; here it is when one is begun at all.
type armed struct {
	*testFleet
	taken   atomic.Int32
	open    *membership.Operation
	order   []Order
	request *membership.Request
	obeys   bool // orders are answered, and show no effect
	target  int  // what the owner said, 0 for nothing
	k3s     bool // its servers are K3s's, and full
	unread  error
	waiting []string // controllers
	deaf    bool     // the Lease's store does not answer
}

func (f *armed) Read(ctx context.Context) (Entries, error) {
	e, err := f.testFleet.Read(ctx)
	f.do(func() {
		e.Request, e.Controllers = f.request, f.waiting
		if err == nil {
			err = f.unread
		}
	})
	if f.target != 0 {
		e.Say = func(p *membership.Policy) { p.Target, p.Maximum = f.target, 6 }
	}
	return e, err
}

func (f *armed) clear(_ context.Context, r membership.Request) error {
	f.do(func() {
		if f.request != nil && f.request.Same(r) {
			f.request = nil
		}
	})
	return nil
}

func (f *armed) Save(_ context.Context, op *membership.Operation) error { f.open = op; return nil }
func (f *armed) Check(context.Context) error                            { return nil }
func (f *armed) Term() uint64                                           { return 7 }
func (f *armed) Order(_ context.Context, _ string, o Order) error {
	f.order = append(f.order, o)
	if f.obeys {
		return nil
	}
	return errors.New("not today")
}

func (f *armed) Pull(ctx context.Context, host string, after uint64) (fitness.Report, error) {
	r, err := f.testFleet.Pull(ctx, host, after)
	r.Facts.Server = &fitness.ServerFacts{Role: "standby"}
	if f.k3s {
		r.Facts.Server = &fitness.ServerFacts{Role: "voter", Running: true, Datastore: true, Grade: fitness.Full}
	}
	return r, err
}

// run runs a loop on a host until a voter that is slow from now on has been so
// for a whole window, and gives what it ended with.
func (f *armed) run(t *testing.T, mode, on string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*window+whole+20*period)
	defer cancel()
	return f.runFor(ctx, mode, on)
}

func (f *armed) runFor(ctx context.Context, mode, on string) error {
	g := f.gatherer()
	g.Agents, g.Book, g.Policy.Mode = f, f, mode
	if f.k3s {
		g.Policy.Flavour = membership.K3s
	}
	l := &Loop{Gatherer: g, Round: period, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Acting: &Acting{
		Host: on, Pace: period,
		Away: func(err error) bool { return errors.Is(err, errRefused) },
		Peek: func(context.Context) (*membership.Operation, error) { return f.open, nil },
		Take: func(ctx context.Context, _ string, lead Lead) error {
			f.taken.Add(1)
			if f.deaf {
				<-ctx.Done()
				return ctx.Err()
			}
			return lead(ctx, &Operator{Journal: f, Hosts: f, By: membership.ByController, ClearRequest: f.clear, Peer: func(h string) string { return "https://" + h }},
				func() (*membership.Operation, error) { return f.open, nil })
		},
	}}
	NewMetrics(prometheus.NewRegistry(), l)
	return l.Run(ctx)
}

func TestLoopActsOnlyWhereItIsTold(t *testing.T) {
	for _, tc := range []struct {
		name, mode, on string
		taken, begun   bool
		err            error
	}{
		{"dry-run takes no Lease", membership.DryRun, "h1", false, false, context.DeadlineExceeded},
		{"active begins with a snapshot", membership.Active, "h1", true, true, context.DeadlineExceeded},
		{"never its own host", membership.Active, "h3", true, false, ErrHandOver},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &armed{testFleet: newTestFleet(period, 3, 2)}
				f.do(func() { f.slow["h3"] = time.Now() })
				err := f.run(t, tc.mode, tc.on)
				if !errors.Is(err, tc.err) {
					t.Errorf("ended with %v, want %v", err, tc.err)
				}
				if (f.taken.Load() > 0) != tc.taken || (f.open != nil) != tc.begun {
					t.Errorf("took the Lease %d times, operation %+v", f.taken.Load(), f.open)
				}
				if !tc.begun {
					return
				}
				if f.open.Out != "h3" || f.open.In != "h4" || f.taken.Load() != 1 {
					t.Errorf("%s → %s under %d Leases", f.open.Out, f.open.In, f.taken.Load())
				}
				if len(f.order) == 0 {
					t.Fatal("nothing was ordered")
				}
				if o := f.order[0]; o.Verb != membership.SaveSnapshot || o.Term != 7 || o.Operation != f.open.ID {
					t.Errorf("ordered %+v first, want a snapshot", o)
				}
			})
		})
	}
}

// The owner's request is taken up or refused, and in both cases it is gone then.
func TestLoopTakesUpRequests(t *testing.T) {
	for _, tc := range []struct {
		name, mode, on string
		out, in        string
		left, begun    bool
		err            error
	}{
		{"a swap that nothing asks for but the owner", membership.Active, "h1", "h2", "h5", false, true, context.DeadlineExceeded},
		{"refused", membership.Active, "h1", "h4", "h5", false, false, context.DeadlineExceeded},
		{"dry-run writes nothing", membership.DryRun, "h1", "h2", "h5", true, false, context.DeadlineExceeded},
		{"left to another controller", membership.Active, "h2", "h2", "h5", true, false, ErrHandOver},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &armed{testFleet: newTestFleet(period, 3, 2)}
				// Once all that is needed was measured.
				time.AfterFunc(window+whole+10*period, func() {
					f.do(func() { f.request = &membership.Request{Out: tc.out, In: tc.in, By: "anna", At: time.Now()} })
				})
				if err := f.run(t, tc.mode, tc.on); !errors.Is(err, tc.err) {
					t.Errorf("ended with %v, want %v", err, tc.err)
				}
				if (f.request != nil) != tc.left || (f.open != nil) != tc.begun {
					t.Fatalf("request %+v, operation %+v", f.request, f.open)
				}
				if tc.begun && (f.open.Out != tc.out || f.open.In != tc.in || f.open.By != "anna") {
					t.Errorf("%s → %s by %s", f.open.Out, f.open.In, f.open.By)
				}
				if tc.mode == membership.DryRun && f.taken.Load() > 0 {
					t.Errorf("took the Lease %d times", f.taken.Load())
				}
			})
		})
	}
}

// A regrade is ordered with its grade, and never by a controller on that very host,
// whose API server may be the one that it talks to.
func TestLoopRegrades(t *testing.T) {
	for _, on := range []string{"h1", "h2"} {
		synctest.Test(t, func(t *testing.T) {
			f := &armed{testFleet: newTestFleet(period, 3, 2), k3s: true}
			time.AfterFunc(window+whole+10*period, func() {
				f.do(func() {
					f.request = &membership.Request{Regrade: "h2", To: fitness.EtcdOnly, By: "anna", At: time.Now()}
				})
			})
			err := f.run(t, membership.Active, on)
			if on == "h2" {
				if !errors.Is(err, ErrHandOver) || f.open != nil || len(f.order) > 0 {
					t.Errorf("on its own host: %v, operation %+v, orders %+v", err, f.open, f.order)
				}
				return
			}
			if f.open == nil || f.open.Regrade != "h2" || f.open.To != fitness.EtcdOnly || f.open.Member == "" || f.open.InPeer != "" {
				t.Fatalf("%v, operation %+v", err, f.open)
			}
			want := Order{Verb: membership.Regrade, Term: 7, Operation: f.open.ID, Member: f.open.Member, To: fitness.EtcdOnly}
			if len(f.order) == 0 || !reflect.DeepEqual(f.order[0], want) {
				t.Errorf("orders %+v, want %+v first", f.order, want)
			}
		})
	}
}

// A request for a number of voters stays, and holds no Lease, while it waits; it
// goes when the voters are as many, or when they cannot be.
func TestLoopKeepsATarget(t *testing.T) {
	for _, tc := range []struct {
		name        string
		target      int
		after       time.Duration // from the start
		left, begun bool
		taken       bool
	}{
		{"while windows fill it waits without a Lease", 5, window + whole - 10*period, true, false, false},
		{"it begins an operation and stays", 5, 2*window + whole + 20*period, true, true, true},
		{"as many as there are", 3, 2*window + whole + 20*period, false, false, true},
		{"four cannot be", 4, 2*window + whole + 20*period, false, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &armed{testFleet: newTestFleet(period, 3, 2), target: tc.target}
				f.request = &membership.Request{Target: f.target, By: "anna", At: time.Now()}
				ctx, cancel := context.WithTimeout(t.Context(), tc.after)
				defer cancel()
				if err := f.runFor(ctx, membership.Active, "h1"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("ended with %v", err)
				}
				if (f.request != nil) != tc.left || (f.open != nil) != tc.begun || (f.taken.Load() > 0) != tc.taken {
					t.Fatalf("request %+v, operation %+v, %d Leases", f.request, f.open, f.taken.Load())
				}
				if tc.begun && (f.open.Out != "" || f.open.In == "" || f.open.By != "anna" || f.open.InPeer != "https://"+f.open.In) {
					t.Errorf("%+v", f.open)
				}
			})
		})
	}
}

// One that comes while an operation is open is refused, not kept for later.
func TestLoopRefusesARequestBesideAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &armed{testFleet: newTestFleet(period, 3, 2), open: &membership.Operation{ID: "op", Out: "h3", In: "h4", OutMember: "id-h3", By: "ben", ClusterID: "c1",
			MembersBefore: []string{"id-h1", "id-h2", "id-h3"}, Begun: time.Now(), Term: 7}}
		f.request = &membership.Request{Out: "h2", In: "h5", By: "anna", At: time.Now()}
		if err := f.run(t, membership.Active, "h1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if f.request != nil || f.open == nil || f.open.ID != "op" {
			t.Errorf("request %+v, operation %+v", f.request, f.open)
		}
	})
}

// An act that was answered is looked at again at once, but one that shows no
// effect is not repeated without a pause.
func TestLoopKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &armed{testFleet: newTestFleet(period, 3, 2), obeys: true}
		f.do(func() { f.slow["h3"] = time.Now() })
		if err := f.run(t, membership.Active, "h1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if f.open == nil {
			t.Fatal("no operation was begun")
		}
		since := time.Since(f.open.Begun)
		if n := len(f.order); n < 3 || n > int(since/period)+10 {
			t.Errorf("%d orders within %s, at a pace of %s", n, since, period)
		}
	})
}
