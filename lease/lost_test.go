package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/lease"
	"suffrage/lease/leasetest"
)

// A lost reply is followed by a read, and the write is there once.
func TestLostReplies(t *testing.T) {
	for _, f := range []leasetest.Fault{{LoseReply: true}, {LoseRequest: true}, {Before: 1500 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			var m leasetest.Memory
			var l line
			var c leasetest.Clock
			writes := map[string]int{}
			m.Wrote = func(old, now lease.Record) {
				if string(old.Journal) != string(now.Journal) {
					writes[string(now.Journal)]++
				}
			}
			n := 0
			l.do(func(op string) leasetest.Fault { // every other put, the first one too
				if op == "put" {
					if n++; n%2 == 1 {
						return f
					}
				}
				return leasetest.Fault{}
			})
			if err := one(t, short(&c), &m, &l, func(ctx context.Context, h *lease.Held) {
				for _, j := range []string{"a", "b", "c"} {
					if err := errors.Join(h.Write(ctx, []byte(j)), h.Check(ctx)); err != nil || string(m.Peek().Journal) != j {
						t.Errorf("%+v: write %q: %v; stored %q", f, j, err, m.Peek().Journal)
					}
					if string(h.Journal()) != j {
						t.Errorf("%+v: Journal gives %q, want %q", f, h.Journal(), j)
					}
				}
			}); err != nil {
				t.Errorf("%+v: %v", f, err)
			}
			m.Wait()
			for j, n := range writes {
				if n != 1 {
					t.Errorf("%+v: journal %q was written %d times", f, j, n)
				}
			}
			if h := m.Peek().Holder; h != (lease.Holder{}) {
				t.Errorf("%+v: not released: %v", f, h)
			}
		})
	}
}

// A renewal that was found by reading counts from when it was first sent: others
// may have seen it since then.
func TestFoundRenewalIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m leasetest.Memory
		var l line
		var c leasetest.Clock
		cfg := short(&c)
		var sent, stopped time.Time
		err := one(t, cfg, &m, &l, func(ctx context.Context, h *lease.Held) {
			puts, gets := 0, 0
			l.do(func(op string) leasetest.Fault {
				if op == "put" {
					if puts++; puts == 1 {
						sent = time.Now()
						return leasetest.Fault{LoseReply: true}
					}
				} else if gets++; gets == 1 {
					return leasetest.Fault{}
				}
				return leasetest.Fault{LoseRequest: true} // nothing more after that read
			})
			<-ctx.Done()
			stopped = time.Now()
		})
		if !errors.Is(err, lease.ErrLost) || stopped.Sub(sent) > cfg.Stop() {
			t.Errorf("stopped %v after the last renewal was sent (%v); at most %v", stopped.Sub(sent), err, cfg.Stop())
		}
	})
}

// A Write that its caller gave up is brought to an end by what comes next.
func TestWriteGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m leasetest.Memory
		var l line
		var c leasetest.Clock
		if err := one(t, short(&c), &m, &l, func(ctx context.Context, h *lease.Held) {
			l.do(func(string) leasetest.Fault { return leasetest.Fault{LoseRequest: true} })
			brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if err := h.Write(brief, []byte("a")); !errors.Is(err, lease.ErrUnknown) || errors.Is(err, lease.ErrLost) {
				t.Errorf("Write gave %v, want ErrUnknown", err)
			}
			l.do(func(string) leasetest.Fault { return leasetest.Fault{} })
			if err := h.Check(ctx); err != nil || string(h.Journal()) != "a" || string(m.Peek().Journal) != "a" {
				t.Errorf("after Check, %v: journal %q, stored %q; both must say the same", err, h.Journal(), m.Peek().Journal)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}
