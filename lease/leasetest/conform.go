package leasetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"suffrage/lease"
)

// Backend is a place for one record, empty at first.
type Backend struct {
	Store lease.Store
	// Delete removes the record and Garble puts something unreadable in its
	// place, as a person would, past the Store.
	Delete, Garble func()
}

// Suite is what a store is tested with. Its Duration is waited for.
type Suite struct {
	Config lease.Config
	Open   func(t *testing.T) Backend
	// Bubble runs each case in a synctest bubble: for stores without a network.
	Bubble bool
}

// Run runs all cases.
func (s Suite) Run(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Suite, Backend)
	}{
		{"nothing stored", empty},
		{"what is read is what was written", roundTrip},
		{"a write over another version is a conflict", conflict},
		{"no two writes have the same version", versions},
		{"of many writes over one version one is done", race},
		{"a record that cannot be is refused", refused},
		{"the floor is above every term", floor},
		{"what nobody can read is left alone", unreadable},
		{"calls end with their context", ended},
		{"the next holder has a higher term and the journal", handOver},
		{"who waits can say for whom", waits},
		{"deleted is lost", deleted},
		{"edited beyond reading is lost", garbled},
		{"another's write is lost", overwritten},
		{"a silent holder's lease runs out, its clock being ahead", func(t *testing.T, s Suite, b Backend) { runsOut(t, s, b, 10*time.Minute) }},
		{"a silent holder's lease runs out, its clock being behind", func(t *testing.T, s Suite, b Backend) { runsOut(t, s, b, -10*time.Minute) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s.Bubble {
				synctest.Test(t, func(t *testing.T) { c.run(t, s, s.Open(t)) })
				return
			}
			t.Parallel()
			c.run(t, s, s.Open(t))
		})
	}
}

func (s Suite) record(host string) lease.Record {
	return lease.Record{Holder: lease.Holder{Host: host, Instance: "1"}, Term: 1, Duration: s.Config.Duration, Renewals: 1,
		Since: time.Date(2026, 7, 1, 12, 0, 0, 123456000, time.UTC), Purpose: "test"}
}

func mustGet(t *testing.T, st lease.Store) lease.Seen {
	t.Helper()
	s, err := st.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPut(t *testing.T, st lease.Store, r lease.Record, old lease.Version) lease.Version {
	t.Helper()
	v, err := st.Put(t.Context(), r, old)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func empty(t *testing.T, _ Suite, b Backend) {
	if s := mustGet(t, b.Store); s.Version != "" || !s.Record.Equal(lease.Record{}) {
		t.Fatalf("got %+v; an empty version and a zero record say that there is none", s)
	}
}

func roundTrip(t *testing.T, s Suite, b Backend) {
	full, bare := s.record("h1"), s.record("h1")
	full.Journal = bytes.Repeat([]byte{0, 255, '"', '\n'}, lease.MaxJournal/4)
	full.Purpose = `swap "h1" <→> h4`
	bare.Holder, bare.Purpose = lease.Holder{}, ""
	v := lease.Version("")
	for _, r := range []lease.Record{full, bare} {
		v = mustPut(t, b.Store, r, v)
		if got := mustGet(t, b.Store); !got.Record.Equal(r) || got.Version != v {
			t.Fatalf("read version %s of %+v; wrote %s of %+v", got.Version, got.Record, v, r)
		}
	}
}

func conflict(t *testing.T, s Suite, b Backend) {
	first := mustPut(t, b.Store, s.record("h1"), "")
	r := s.record("h2")
	r.Renewals = 2
	second := mustPut(t, b.Store, r, first)
	for _, old := range []lease.Version{"", first} {
		if _, err := b.Store.Put(t.Context(), s.record("h3"), old); !errors.Is(err, lease.ErrConflict) {
			t.Errorf("write over version %q gave %v, want ErrConflict", old, err)
		}
	}
	if got := mustGet(t, b.Store); got.Version != second || !got.Record.Equal(r) {
		t.Errorf("a conflict changed the record: %+v", got)
	}
	b.Delete()
	if _, err := b.Store.Put(t.Context(), s.record("h3"), second); !errors.Is(err, lease.ErrConflict) {
		t.Errorf("write over a deleted record gave %v, want ErrConflict", err)
	}
}

func versions(t *testing.T, s Suite, b Backend) {
	seen := map[lease.Version]bool{"": true}
	v := lease.Version("")
	for i := range 6 {
		if i == 3 {
			b.Delete()
			v = ""
		}
		r := s.record("h1")
		r.Renewals = uint64(i % 3)
		v = mustPut(t, b.Store, r, v)
		if seen[v] {
			t.Fatalf("version %s came twice: a watcher would take it for no change", v)
		}
		seen[v] = true
	}
}

func race(t *testing.T, s Suite, b Backend) {
	v := mustPut(t, b.Store, s.record("h0"), "")
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			r := s.record("h" + string(rune('1'+i)))
			r.Renewals = 2
			_, errs[i] = b.Store.Put(t.Context(), r, v)
		})
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else if !errors.Is(err, lease.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
	}
	if done != 1 {
		t.Errorf("%d writes over one version were done", done)
	}
}

func refused(t *testing.T, s Suite, b Backend) {
	for _, change := range []func(*lease.Record){
		func(r *lease.Record) { r.Term = 0 },
		func(r *lease.Record) { r.Journal = make([]byte, lease.MaxJournal+1) },
		func(r *lease.Record) { r.Holder.Instance = "" },
		func(r *lease.Record) { r.Purpose = strings.Repeat("x", 300) },
		func(r *lease.Record) { r.Duration = 0 },
	} {
		r := s.record("h1")
		change(&r)
		if _, err := b.Store.Put(t.Context(), r, ""); err == nil || errors.Is(err, lease.ErrUnknown) {
			t.Errorf("got %v for %.200v, want a plain refusal", err, r)
		}
	}
	empty(t, s, b)
}

func floor(t *testing.T, s Suite, b Backend) {
	last := lease.Term(0)
	for range 5 {
		f := mustGet(t, b.Store).Floor
		if f < last {
			t.Fatalf("floor %d is below term %d, which was written", f, last)
		}
		r := s.record("h1")
		r.Term = f + 1 // as a taker of a deleted record has it
		mustPut(t, b.Store, r, "")
		b.Delete()
		last = r.Term
	}
}

func unreadable(t *testing.T, s Suite, b Backend) {
	b.Garble()
	if _, err := b.Store.Get(t.Context()); !errors.Is(err, lease.ErrUnreadable) {
		t.Errorf("read gave %v, want ErrUnreadable", err)
	}
	err := lease.Run(t.Context(), s.Config, b.Store, lease.NewHolder("h1"), "test", func(context.Context, *lease.Held) error {
		t.Error("took what it cannot read")
		return nil
	})
	if !errors.Is(err, lease.ErrUnreadable) {
		t.Errorf("Run gave %v, want ErrUnreadable: waiting does not mend it", err)
	}
}

func ended(t *testing.T, s Suite, b Backend) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Store.Get(ctx); err == nil {
		// Allowed: the answer was already there.
		t.Log("read answered all the same")
	}
	if _, err := b.Store.Put(ctx, s.record("h1"), ""); err != nil && !errors.Is(err, lease.ErrUnknown) {
		t.Errorf("write gave %v, want ErrUnknown or none", err)
	}
}

func handOver(t *testing.T, s Suite, b Backend) {
	s.create(t, b)
	last := mustGet(t, b.Store).Record.Term
	for i := range 4 {
		if i == 2 {
			b.Delete()
		}
		began := time.Now()
		want := []string{"", "a", "", "a"}[i] // a deleted record takes the journal with it
		err := lease.Run(t.Context(), s.Config, b.Store, lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
			if h.Term() <= last {
				t.Errorf("term %d after %d", h.Term(), last)
			}
			last = h.Term()
			if waited := time.Since(began); i == 2 && waited < s.Config.Duration.Std() {
				t.Errorf("took a deleted record after %v; it may have had a holder, who works for up to %v", waited, s.Config.Duration)
			}
			if got := string(h.Journal()); got != want {
				t.Errorf("found journal %q, want %q", got, want)
			}
			return errors.Join(h.Check(ctx), h.Write(ctx, []byte("a")), h.Check(ctx))
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := mustGet(t, b.Store).Record; r.Holder != (lease.Holder{}) || r.Term != last || string(r.Journal) != "a" {
			t.Errorf("released record is %+v; want no holder, term and journal kept", r)
		}
	}
}

func (s Suite) create(t *testing.T, b Backend) {
	t.Helper()
	for range 2 { // the second one finds it
		if err := lease.Create(t.Context(), b.Store, s.Config.Duration); err != nil {
			t.Fatal(err)
		}
	}
}

// held calls f while h1 holds the Lease, and gives how that ended.
func held(t *testing.T, s Suite, b Backend, f func(ctx context.Context, h *lease.Held)) error {
	s.create(t, b)
	return lease.Run(t.Context(), s.Config, b.Store, lease.NewHolder("h1"), "swap h1 h4", func(ctx context.Context, h *lease.Held) error {
		if err := h.Check(ctx); err != nil {
			t.Error(err)
		}
		f(ctx, h)
		return nil
	})
}

func waits(t *testing.T, s Suite, b Backend) {
	err := held(t, s, b, func(ctx context.Context, h *lease.Held) {
		wait, cancel := context.WithTimeout(ctx, 3*s.Config.Renew.Std())
		defer cancel()
		err := lease.Run(wait, s.Config, b.Store, lease.NewHolder("h2"), "pin h2", func(context.Context, *lease.Held) error {
			t.Error("two hold it")
			return nil
		})
		var e *lease.HeldError
		if !errors.As(err, &e) || !errors.Is(err, lease.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a HeldError that ended with the deadline", err)
			return
		}
		if e.Record.Holder.Host != "h1" || e.Record.Purpose != "swap h1 h4" || e.Record.Term != h.Term() || e.Record.Since.IsZero() {
			t.Errorf("got %+v; want who, for what, since when, which term", e.Record)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func deleted(t *testing.T, s Suite, b Backend) {
	lost(t, s, b, func(lease.Term) { b.Delete() }, "deleted")
}

func garbled(t *testing.T, s Suite, b Backend) {
	lost(t, s, b, func(lease.Term) { b.Garble() }, "cannot be read")
}

func overwritten(t *testing.T, s Suite, b Backend) {
	lost(t, s, b, func(term lease.Term) {
		seen := mustGet(t, b.Store)
		seen.Record.Holder = lease.Holder{Host: "h2", Instance: "x"}
		seen.Record.Term++
		mustPut(t, b.Store, seen.Record, seen.Version)
	}, "h2 (instance x) holds it")
}

// lost is that meddling is noticed by itself, and by Check and Write before.
func lost(t *testing.T, s Suite, b Backend, meddle func(lease.Term), why string) {
	err := held(t, s, b, func(ctx context.Context, h *lease.Held) {
		meddle(h.Term())
		if err := h.Check(ctx); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Check gave %v, want ErrLost", err)
		}
		<-ctx.Done()
		if err := h.Write(ctx, []byte("late")); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Write gave %v, want ErrLost", err)
		}
	})
	var e *lease.LostError
	if !errors.As(err, &e) || e.Holder.Host != "h1" || !strings.Contains(e.Error(), why) {
		t.Errorf("Run gave %v, want a LostError of h1 that says %q", err, why)
	}
}

func runsOut(t *testing.T, s Suite, b Backend, skew time.Duration) {
	r := s.record("h1") // the same host as the one that waits: its earlier process
	r.Since = time.Now().Add(skew).UTC().Truncate(time.Microsecond)
	r.Journal = []byte("unfinished")
	r.Term = mustGet(t, b.Store).Floor + 1
	mustPut(t, b.Store, r, "")
	began := time.Now()
	err := lease.Run(t.Context(), s.Config, b.Store, lease.NewHolder("h1"), "test", func(ctx context.Context, h *lease.Held) error {
		if waited := time.Since(began); waited < s.Config.Duration.Std() {
			t.Errorf("took it after %v; the holder may work for up to %v", waited, s.Config.Duration)
		}
		if string(h.Journal()) != "unfinished" || h.Term() <= r.Term {
			t.Errorf("got journal %q and term %d; want the earlier holder's, and above %d", h.Journal(), h.Term(), r.Term)
		}
		return h.Check(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}
