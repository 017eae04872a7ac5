package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/lease"
	"suffrage/lease/leasetest"
)

// line is a network that tests break.
type line struct {
	until atomic.Pointer[time.Time]
	fault atomic.Pointer[func(op string) leasetest.Fault]
}

// stall holds all requests back for d from now.
func (l *line) stall(d time.Duration) {
	t := time.Now().Add(d)
	l.until.Store(&t)
}

func (l *line) do(f func(op string) leasetest.Fault) { l.fault.Store(&f) }

func (l *line) call(op string) (f leasetest.Fault) {
	if p := l.fault.Load(); p != nil {
		f = (*p)(op)
	}
	if u := l.until.Load(); u != nil {
		f.Before += max(0, time.Until(*u))
	}
	return f
}

// one holds the Lease alone, over a line, while f runs.
func one(t *testing.T, cfg lease.Config, m *leasetest.Memory, l *line, f func(ctx context.Context, h *lease.Held)) error {
	t.Cleanup(m.Wait)
	return lease.Run(t.Context(), cfg, m.Client(l.call), lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
		f(ctx, h)
		return nil
	})
}

// next takes the Lease after another and gives the journal that it found.
func next(t *testing.T, m *leasetest.Memory) (journal string, term lease.Term) {
	t.Helper()
	var c leasetest.Clock
	err := lease.Run(t.Context(), short(&c), m.Client(nil), lease.NewHolder("h2"), "next", func(ctx context.Context, h *lease.Held) error {
		journal, term = string(h.Journal()), h.Term()
		return h.Check(ctx)
	})
	if err != nil {
		t.Error(err)
	}
	return journal, term
}

// S096: etcd stalls while the Lease is held.
func TestStalledStore(t *testing.T) {
	var c leasetest.Clock
	def, tight := lease.DefaultConfig(), short(&c)
	def.Clock = c.Now
	for _, s := range []struct {
		why    string
		cfg    lease.Config
		stall  time.Duration
		isLost bool
	}{
		{"two worst elections take 4s", tight, 5 * time.Second, false},
		{"longer than Stop, 8s", tight, 10 * time.Second, true},
		{"longer than Duration, 15s", tight, 20 * time.Second, true},
		{"Stop is 53s", def, 5 * time.Second, false},
		{"Stop is 53s", def, 10 * time.Second, false},
		{"Stop is 53s", def, 20 * time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var m leasetest.Memory
			var l line
			var term lease.Term
			err := one(t, s.cfg, &m, &l, func(ctx context.Context, h *lease.Held) {
				term = h.Term()
				if err := h.Write(ctx, []byte("step 4")); err != nil {
					t.Error(err)
				}
				time.Sleep(s.cfg.Renew.Std() - time.Millisecond) // the last renewal is as old as it gets
				began := time.Now()
				l.stall(s.stall)
				context.AfterFunc(ctx, func() {
					if s.isLost && time.Since(began) > s.cfg.Stop() {
						t.Errorf("%v: lead was stopped only after %v", s.stall, time.Since(began))
					}
				})
				time.Sleep(s.stall + 2*s.cfg.Renew.Std())
				if err := h.Check(ctx); (err != nil) != s.isLost {
					t.Errorf("%v, %s: Check gave %v", s.stall, s.why, err)
				}
			})
			if errors.Is(err, lease.ErrLost) != s.isLost {
				t.Errorf("%v, %s: Run gave %v", s.stall, s.why, err)
			}
			m.Wait()
			if j, n := next(t, &m); j != "step 4" || n <= term {
				t.Errorf("%v: the next holder found journal %q, term %d after %d", s.stall, j, n, term)
			}
		})
	}
}

// S097: the holder's machine sleeps past the expiry, another acts, it wakes.
func TestSleptPastExpiry(t *testing.T) {
	for _, suspend := range []time.Duration{3 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var m leasetest.Memory
			var l line
			var c leasetest.Clock
			err := one(t, short(&c), &m, &l, func(ctx context.Context, h *lease.Held) {
				if err := h.Write(ctx, []byte("step 7")); err != nil {
					t.Error(err)
				}
				l.do(func(string) leasetest.Fault { return leasetest.Fault{LoseRequest: true} }) // it sends nothing while it sleeps
				c.Suspended(suspend)
				time.Sleep(suspend)
				if suspend > 15*time.Second {
					if j, n := next(t, &m); j != "step 7" || n <= h.Term() {
						t.Errorf("the next holder found journal %q, term %d", j, n)
					}
				}
				l.do(func(string) leasetest.Fault { return leasetest.Fault{} })
				before := m.Peek()
				if err := h.Check(ctx); !errors.Is(err, lease.ErrLost) {
					t.Errorf("slept %v: Check gave %v", suspend, err)
				}
				if err := h.Write(ctx, []byte("late")); !errors.Is(err, lease.ErrLost) {
					t.Errorf("slept %v: Write gave %v", suspend, err)
				}
				if !m.Peek().Equal(before) {
					t.Error("who woke wrote the record")
				}
			})
			if !errors.Is(err, lease.ErrLost) {
				t.Errorf("slept %v: Run gave %v", suspend, err)
			}
		})
	}
}

// The clocks are compared before the store is asked: after a suspend the store
// may well say that nothing changed.
func TestClocksThatDisagree(t *testing.T) {
	for _, s := range []struct {
		why    string
		jump   func(*leasetest.Clock)
		isLost bool
	}{
		{"suspended", func(c *leasetest.Clock) { c.Suspended(3 * time.Second) }, true},
		{"wall clock set ahead, or a virtual machine that was paused", func(c *leasetest.Clock) { c.SetWall(10 * time.Minute) }, true},
		{"wall clock set back", func(c *leasetest.Clock) { c.SetWall(-10 * time.Minute) }, true},
		{"a leap second", func(c *leasetest.Clock) { c.SetWall(-time.Second) }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var m leasetest.Memory
			var l line
			var c leasetest.Clock
			err := one(t, short(&c), &m, &l, func(ctx context.Context, h *lease.Held) {
				time.Sleep(3500 * time.Millisecond)
				s.jump(&c)
				if err := h.Check(ctx); errors.Is(err, lease.ErrLost) != s.isLost {
					t.Errorf("%s: Check gave %v", s.why, err)
				}
			})
			if errors.Is(err, lease.ErrLost) != s.isLost || s.isLost && !strings.Contains(err.Error(), "clocks disagree") {
				t.Errorf("%s: Run gave %v", s.why, err)
			}
		})
	}
}

// S098: the holder's clock is ahead or behind. (A dead one's is in the suite.)
func TestHoldersClockIsWrong(t *testing.T) {
	for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var m leasetest.Memory
			var l line
			var c leasetest.Clock
			c.SetWall(skew)
			var released time.Time
			taken := make(chan time.Time, 1)
			go func() {
				time.Sleep(time.Second)
				next(t, &m)
				taken <- time.Now()
			}()
			if err := one(t, short(&c), &m, &l, func(ctx context.Context, h *lease.Held) {
				time.Sleep(10 * time.Minute)
				if err := h.Check(ctx); err != nil {
					t.Error(err)
				}
				released = time.Now()
			}); err != nil {
				t.Error(err)
			}
			if wait := (<-taken).Sub(released); wait < 0 || wait > 2*time.Second {
				t.Errorf("clock off by %v: the next one had it %v after the release", skew, wait)
			}
		})
	}
}

// S101: a conflict is no loss as long as the record is as it was left.
func TestConflictThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m leasetest.Memory
		var l line
		var c leasetest.Clock
		n := 0
		l.do(func(op string) leasetest.Fault {
			n++
			return leasetest.Fault{Conflict: op == "put" && n%3 != 0}
		})
		if err := one(t, short(&c), &m, &l, func(ctx context.Context, h *lease.Held) {
			for _, j := range []string{"a", "b", "c"} {
				if err := errors.Join(h.Write(ctx, []byte(j)), h.Check(ctx)); err != nil || string(m.Peek().Journal) != j {
					t.Errorf("write %q: %v; stored %q", j, err, m.Peek().Journal)
				}
			}
		}); err != nil {
			t.Error(err)
		}
	})
}

// What the store refuses for good is not tried again in Write, and a Lease that
// cannot be renewed for it says why.
func TestRefusedByStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m leasetest.Memory
		var l line
		var c leasetest.Clock
		full := errors.New("no space")
		err := one(t, short(&c), &m, &l, func(ctx context.Context, h *lease.Held) {
			l.do(func(op string) leasetest.Fault {
				if op == "put" {
					return leasetest.Fault{Err: full}
				}
				return leasetest.Fault{}
			})
			if err := h.Write(ctx, []byte("a")); !errors.Is(err, full) || errors.Is(err, lease.ErrUnknown) {
				t.Errorf("Write gave %v, want the store's refusal", err)
			}
			if err := h.Check(ctx); err != nil {
				t.Errorf("Check gave %v; reading works and the Lease is fresh", err)
			}
			if err := h.Write(ctx, make([]byte, lease.MaxJournal+1)); err == nil || errors.Is(err, full) {
				t.Errorf("a journal over the bound gave %v", err)
			}
			<-ctx.Done()
		})
		if !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "no space") {
			t.Errorf("Run gave %v, want ErrLost for no space", err)
		}
	})
}

// lead's error is Run's, its end releases, and ctx's end does so as well.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m leasetest.Memory
		var c leasetest.Clock
		own := errors.New("own")
		err := lease.Run(t.Context(), short(&c), m.Client(nil), lease.NewHolder("h1"), "", func(context.Context, *lease.Held) error { return own })
		if err != own {
			t.Errorf("got %v, want lead's error as it is", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = lease.Run(ctx, short(&c), m.Client(nil), lease.NewHolder("h1"), "", func(ctx context.Context, h *lease.Held) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if err != context.Canceled || m.Peek().Holder != (lease.Holder{}) {
			t.Errorf("got %v and holder %v; want it released after the context ended", err, m.Peek().Holder)
		}
		for _, h := range []lease.Holder{{}, {Host: "h1"}, {Host: "h1\n", Instance: "1"}} {
			if err := lease.Run(t.Context(), short(&c), m.Client(nil), h, "", nil); err == nil {
				t.Errorf("holder %v was accepted", h)
			}
		}
	})
}

// An unreachable store is no reason to give up waiting, and the error says it.
func TestWaitsForStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m leasetest.Memory
		var l line
		var c leasetest.Clock
		away := errors.New("away")
		l.do(func(string) leasetest.Fault { return leasetest.Fault{Err: away} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := lease.Run(ctx, short(&c), m.Client(l.call), lease.NewHolder("h1"), "", nil)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, away) || errors.Is(err, lease.ErrHeld) {
			t.Errorf("got %v, want the deadline and the store's error", err)
		}
	})
}
